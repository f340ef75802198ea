//! Taking the turns: which one comes next, which blocks it reads, and what of it counts.

use std::ops::ControlFlow::{Break, Continue};
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::spans::{NotCold, Spans, Supply};
use super::{LEAST_BLOCKS, Order, PageTimesResult, PageTimesRun, ROUGHLY, TurnReader, Way, WaySeries};
use crate::machine::observer::IoDelta;
use crate::run::budget::{Budget, Stop};
use crate::run::clock::nanoseconds;
use crate::run::rounds::{Contenders, Ended, Rounds, Turn};
use crate::run::stopwatch::Stopwatch;
use crate::stats::{Looks, MIN_SLICES};
use crate::{Error, Result};

/// Blocks of a random turn; bytes read again from the OS cache in order, and blocks at random; blocks that
/// are hit, and reads of them in all.
const RANDOM_BLOCKS: usize = 64;
const OS_BYTES: u64 = 8 << 20;
const OS_RANDOM_BLOCKS: usize = 256;
const HOT_BLOCKS: usize = 16;
const HOT_READS: usize = 512;

/// Bytes of a stretch of a sparse turn; blocks for which it takes several stretches if need be, a few times
/// the requests that may be in flight; and the most stretches.
pub(super) const SPAN: u64 = 32 << 20;
const LEAST_FETCHES: f64 = 512.0;
const MOST_STRETCHES: usize = 8;

/// Windows that a sequential turn times, and the fewest bytes of them and of the warm-up. Timing begins
/// anywhere in a window: the reader waits once a window, and the wait must be in or out by chance.
const WINDOWS_OF_SCAN: u64 = 2;
const LEAST_SCAN: u64 = 8 << 20;
const LEAST_WARM_UP: u64 = 1 << 20;

/// Largest window, in bytes; larger ones are treated as this one.
const MOST_WINDOW: u64 = 8 << 20;

/// Number of sparse turns after which a sequential and a random one follow.
const SPARSE_PER_PAIR: usize = 2;

/// A turn takes at most the whole time over this, within the two bounds that follow.
const TURNS: u32 = 200;
const SHORTEST_TURN: Duration = Duration::from_millis(20);
const LONGEST_TURN: Duration = Duration::from_millis(100);

/// Largest share of the blocks outside shared buffers that a turn may want: no more than all can be read, but
/// nearly as many will do.
const MOST_SHARE: f64 = 1.1;

/// Largest share of hits with which a turn counts; and the least with which a turn of hits alone counts.
const MOST_HITS: f64 = 0.2;
const LEAST_HITS: f64 = 0.98;

/// Fewest turns of each sparse point before an interval as narrow as asked for ends the run.
pub(super) const LEAST_SPARSE_TURNS: usize = 10;

/// What a turn read: the time of its timed blocks, how many these were and how many of them in shared
/// buffers, and all blocks.
#[derive(Debug, Clone, Copy)]
struct Taken {
    ns: u64,
    blocks: u64,
    hits: u64,
    read: u64,
}

/// Which series a turn belongs to.
type Pick = fn(&mut PageTimesResult) -> &mut WaySeries;

pub(super) struct Turns<'a> {
    run: &'a PageTimesRun<'a>,
    reader: &'a mut TurnReader<'a>,
    report: &'a mut dyn FnMut(u64),
    /// Concurrency and density of the turns with gaps, by their places in the run.
    points: Vec<(usize, usize)>,
    looks: Looks,
    spans: Spans<'a>,
    rng: Xoshiro256PlusPlus,
    /// Nanoseconds that a turn may take.
    length_ns: u64,
    /// Most stretches of a sparse turn: fewer once no more are found to be cold.
    most_stretches: usize,
    /// Turns in a row in which nothing was read but what is read for hits.
    idle: usize,
    measured: PageTimesResult,
}

/// The ways without a concurrency: in order, and at random.
pub(super) const PLAIN_WAYS: usize = 2;

/// Turns in a row without a read from the device or the OS cache after which the run ends. Where there are
/// hits, enough of these turns have measured them.
const MOST_IDLE: usize = MIN_SLICES * (PLAIN_WAYS + SPARSE_PER_PAIR);

impl<'a> Turns<'a> {
    /// The turns of `run`, which is to take `length`.
    pub(super) fn new(
        run: &'a PageTimesRun<'a>,
        reader: &'a mut TurnReader<'a>,
        report: &'a mut dyn FnMut(u64),
        length: Duration,
    ) -> Self {
        let block_size = u64::from(run.source.block_size());
        let scan = warm_up_bytes(run) + window(run) + scan_bytes(run);
        let longest = SPAN.max(scan) + window(run);
        let turn = (length / TURNS).clamp(SHORTEST_TURN, LONGEST_TURN);
        let of_concurrency = |c| (0..run.densities.len()).map(move |d| (c, d));
        Self {
            run,
            reader,
            report,
            points: (0..run.concurrencies.len()).rev().flat_map(|c| of_concurrency(c).rev()).collect(),
            looks: Looks::from(MIN_SLICES as u64),
            spans: Spans::new(run, longest / block_size, OS_BYTES / block_size),
            rng: Xoshiro256PlusPlus::seed_from_u64(run.seed),
            length_ns: nanoseconds(turn),
            most_stretches: MOST_STRETCHES,
            idle: 0,
            measured: PageTimesResult {
                sparse: vec![vec![WaySeries::default(); run.densities.len()]; run.concurrencies.len()],
                ..PageTimesResult::default()
            },
        }
    }

    /// Takes turns until there is a reason to stop.
    pub(super) fn measure(mut self, budget: &mut Budget<'_>) -> Result<PageTimesResult> {
        if matches!(self.run.source.cached_bytes(0..1), Err(Error::Unsupported { .. })) {
            return Ok(PageTimesResult { not_cold: Some(NotCold::Unknown), ..self.measured });
        }
        budget.pace(&self.run.limits, self.run.source.block_size().into());
        let rounds = if self.run.source.blocks() == 0 { 0 } else { u64::MAX };
        let rounds = Rounds::new(rounds, self.points.len()).with_references(PLAIN_WAYS, SPARSE_PER_PAIR);
        self.measured.stop = rounds.take(&mut self, budget)?.break_value().flatten();
        let rested = budget.pacer().due();
        budget.rest_until(rested);
        self.measured.paused = budget.has_paused();
        self.measured.passes = self.spans.passes();
        let was_read = self.read_from_device() + self.read_from_cache() > 0;
        self.measured.dried_up = was_read && self.idle >= MOST_IDLE;
        self.measured.not_cold = self.spans.why_none();
        Ok(self.measured)
    }

    /// Has these blocks read, of which the first `warm_up` are not timed. A turn that has begun goes on to
    /// its end, also when the time of the run is up.
    fn read(
        &mut self,
        blocks: &[u64],
        way: Way,
        warm_up: usize,
        budget: &mut Budget<'_>,
    ) -> Result<(Taken, Option<Stop>)> {
        let mut order = Order { blocks, way, warm_up, length_ns: self.length_ns, hits: 0 };
        let mut report = |_| ();
        let mut watch = Stopwatch::start(None, budget.part_to_its_end(), &mut report);
        self.reader.read(&mut order, &mut watch)?;
        let timed = watch.rated();
        let hits = order.hits.min(timed.work);
        Ok((Taken { ns: timed.ns, blocks: timed.work, hits, read: watch.blocks() }, watch.stop()))
    }

    /// Has these blocks read from the device, and looks at what went on there meanwhile.
    fn fetch(
        &mut self,
        blocks: &[u64],
        way: Way,
        warm_up: usize,
        budget: &mut Budget<'_>,
    ) -> Result<(Taken, IoDelta, Option<Stop>)> {
        let look = self.run.observer.look();
        let (taken, stop) = self.read(blocks, way, warm_up, budget)?;
        Ok((taken, self.run.observer.since(&look), stop))
    }

    /// Blocks read from the device.
    fn read_from_device(&self) -> u64 {
        let measured = &self.measured;
        let plain = [&measured.device_sequential, &measured.device_random];
        plain.into_iter().chain(measured.sparse.iter().flatten()).map(WaySeries::read).sum()
    }

    /// Blocks read from the OS cache.
    fn read_from_cache(&self) -> u64 {
        self.measured.os_sequential.read() + self.measured.os_random.read()
    }

    /// Reads from the device in order, then the same blocks from the OS cache and from shared buffers.
    fn in_order(&mut self, budget: &mut Budget<'_>) -> Result<Option<Stop>> {
        let block_size = u64::from(self.run.source.block_size());
        // How many of its blocks are cached, of a stretch that is cold.
        let (range, cold) = match self.spans.take(&mut || budget.poll())? {
            Supply::Cold { range, cached } => (range, Some(cached)),
            Supply::Cached(range) => (range, None),
            Supply::None => return self.hits(&[0], budget),
            Supply::Stopped(stop) => return Ok(Some(stop)),
        };
        let phase = self.rng.random_range(0..=window(self.run));
        let warm_up = (warm_up_bytes(self.run) + phase) / block_size;
        let wanted = warm_up + scan_bytes(self.run) / block_size;
        let mut blocks: Vec<u64> = (range.start..range.end.min(range.start + wanted)).collect();
        let all = blocks.len() as u64;
        blocks.retain(|block| !self.spans.is_buffered(*block));
        // The kernel also reads what lies between them.
        let whole =
            |taken: Taken| Taken { blocks: taken.blocks * all / (blocks.len() as u64).max(1), ..taken };
        let warm_up = (warm_up as usize).min(blocks.len() / 2);
        let mut read = blocks.len();
        if let Some(cached) = cold {
            let (taken, cost, stop) = self.fetch(&blocks, Way::Scan, warm_up, budget)?;
            read = taken.read as usize;
            let cached = share_of(cached, &taken, range.end - range.start);
            self.add(|measured| &mut measured.device_sequential, whole(taken), cached, Some(cost));
            // What is still read ahead must not be in the next turn's way, and can't be dropped before it has
            // come.
            self.run.observer.settle();
            if stop.is_some() {
                return Ok(stop);
            }
        }
        if !self.run.through_cache {
            return self.hits(&[blocks.first().copied().unwrap_or(0)], budget);
        }
        let again = read.min((OS_BYTES / block_size) as usize);
        self.again_from_cache(&blocks[..again], cold.is_some(), budget)
    }

    /// Reads blocks that were just read, if they are in the OS cache now: from there, and from shared
    /// buffers.
    fn again_from_cache(
        &mut self,
        again: &[u64],
        was_cold: bool,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Stop>> {
        if !self.spans.is_cached(again)? {
            if !was_cold {
                // Others have taken pages of it meanwhile. What is found next may be cold.
                self.spans.forget_cached();
                self.most_stretches = MOST_STRETCHES;
            }
            return Ok(None);
        }
        let random: Vec<u64> = (0..OS_RANDOM_BLOCKS.min(again.len()))
            .map(|_| again[self.rng.random_range(0..again.len())])
            .collect();
        let in_order: Pick = |measured| &mut measured.os_sequential;
        let at_random: Pick = |measured| &mut measured.os_random;
        for (blocks, way, series) in [(again, Way::Scan, in_order), (&random[..], Way::Single, at_random)] {
            let (taken, stop) = self.read(blocks, way, 0, budget)?;
            self.add(series, taken, 0, None);
            if stop.is_some() {
                return Ok(stop);
            }
        }
        // The last of them are in shared buffers.
        self.hits(&random[random.len().saturating_sub(HOT_BLOCKS)..], budget)
    }

    /// Reads `blocks` from shared buffers, in many rounds, of which the first may bring them there.
    fn hits(&mut self, blocks: &[u64], budget: &mut Budget<'_>) -> Result<Option<Stop>> {
        let rounds = blocks.repeat(HOT_READS / blocks.len().max(1));
        let (taken, stop) = self.read(&rounds, Way::Single, blocks.len(), budget)?;
        let counts = taken.hits as f64 >= LEAST_HITS * taken.blocks as f64;
        self.measured.shared.add(taken.ns, taken.blocks, 0, taken.read, counts);
        Ok(stop)
    }

    /// Reads from the device at random, one block at a time.
    fn at_random(&mut self, budget: &mut Budget<'_>) -> Result<Option<Stop>> {
        let (blocks, cached) = match self.spans.scatter(RANDOM_BLOCKS, &mut || budget.poll())? {
            Ok(scattered) => scattered,
            Err(stop) => return Ok(Some(stop)),
        };
        if blocks.len() < LEAST_BLOCKS {
            return Ok(None);
        }
        let (taken, cost, stop) = self.fetch(&blocks, Way::Single, 0, budget)?;
        self.add(|measured| &mut measured.device_random, taken, cached, Some(cost));
        Ok(stop)
    }

    /// Reads from the device, ascending with gaps.
    fn with_gaps(
        &mut self,
        (concurrency, density_index): (usize, usize),
        budget: &mut Budget<'_>,
    ) -> Result<Option<Stop>> {
        let density = self.run.densities[density_index];
        let span = SPAN / u64::from(self.run.source.block_size());
        // At a low density one stretch has few blocks, and with many in flight no more than a beginning and
        // an end.
        let wanted = (LEAST_FETCHES / density / span as f64).ceil().min(self.most_stretches as f64) as usize;
        let (mut ranges, mut cached) = (Vec::new(), 0);
        while ranges.len() < wanted {
            match self.spans.take(&mut || budget.poll())? {
                Supply::Cold { range, cached: some } => {
                    let length = range.end - range.start;
                    ranges.push(range.start..range.end.min(range.start + span));
                    cached += some * span / length.max(span);
                }
                Supply::Cached(_) | Supply::None => {
                    // Another search would be in vain, too.
                    self.most_stretches = ranges.len().max(1);
                    break;
                }
                Supply::Stopped(stop) => return Ok(Some(stop)),
            }
        }
        ranges.sort_by_key(|range| range.start);
        let all: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let mut blocks: Vec<u64> =
            ranges.into_iter().flatten().filter(|block| !self.spans.is_buffered(*block)).collect();
        // Other blocks make up for those that are passed over, as far as there are enough.
        let share = density * all as f64 / blocks.len().max(1) as f64;
        if share > MOST_SHARE {
            return Ok(None);
        }
        blocks.retain(|_| self.rng.random_bool(share.min(1.0)));
        if blocks.len() >= LEAST_BLOCKS {
            let way = Way::Bitmap(self.run.concurrencies[concurrency]);
            let (taken, cost, stop) = self.fetch(&blocks, way, 0, budget)?;
            let cached = share_of(cached, &taken, all);
            self.add(|measured| &mut measured.sparse[concurrency][density_index], taken, cached, Some(cost));
            self.run.observer.settle();
            return Ok(stop);
        }
        Ok(None)
    }

    /// Adds a turn, of whose blocks about `cached` were in the OS cache. Hits are taken out of it.
    fn add(
        &mut self,
        series: impl FnOnce(&mut PageTimesResult) -> &mut WaySeries,
        taken: Taken,
        cached: u64,
        cost: Option<IoDelta>,
    ) {
        let of_hits = (taken.hits as f64 * self.measured.hit_ns().unwrap_or(0.0)) as u64;
        let counts = taken.hits as f64 <= MOST_HITS * taken.blocks as f64;
        let (ns, blocks) = (taken.ns.saturating_sub(of_hits), taken.blocks - taken.hits);
        let series = series(&mut self.measured);
        series.add(ns, blocks, cached, taken.read, counts);
        cost.into_iter().for_each(|cost| series.add_cost(cost));
    }

    /// Is it in vain to go on: nothing comes from the device, and nothing else is wanted; or many turns in a
    /// row had nothing to read?
    fn is_in_vain(&self) -> bool {
        self.run.only_cold && self.spans.why_none().is_some() || self.idle >= MOST_IDLE
    }

    /// Has it taken long enough for times that are known roughly, and are they?
    fn is_rough_end(&self, budget: &Budget<'_>) -> bool {
        let gone = budget.clock().now() - budget.started();
        // Of what could not be read at all, more time brings nothing.
        let is_known = |series: &WaySeries| {
            series.turns() == 0 || series.relative_half_width().is_some_and(|half| half <= ROUGHLY)
        };
        let measured = &self.measured;
        let plain = [&measured.device_sequential, &measured.device_random];
        self.run.rough_after.is_some_and(|after| gone >= nanoseconds(after))
            && plain.into_iter().chain(measured.sparse.iter().flatten()).all(is_known)
    }

    /// Are the sequential and the random time known as well as was asked for, and the curve well enough?
    fn is_precise(&self) -> bool {
        let Some(wanted) = self.run.limits.precision else { return false };
        let measured = &self.measured;
        let is_cold = measured.device_sequential.turns() > 0;
        let pair = if !is_cold {
            [&measured.os_sequential, &measured.os_random]
        } else {
            [&measured.device_sequential, &measured.device_random]
        };
        let narrow = |series: &WaySeries| series.relative_half_width().is_some_and(|half| half <= wanted);
        let enough = |series: &WaySeries| series.turns() >= LEAST_SPARSE_TURNS;
        pair.into_iter().all(narrow) && (!is_cold || measured.sparse.iter().flatten().all(enough))
    }
}

impl Contenders for Turns<'_> {
    fn turn(&mut self, turn: Turn, budget: &mut Budget<'_>) -> Result<Ended> {
        (self.report)(turn.number - 1);
        if budget.bytes_left() == 0 {
            return Ok(Break(Some(Stop::Bytes)));
        }
        if let Some(stop) = budget.wait() {
            return Ok(Break(Some(stop)));
        }
        // A rough end counts as the end of the duration.
        if turn.contender == 0 && self.is_rough_end(budget) {
            return Ok(Break(Some(Stop::Duration)));
        }
        let (before, began) = (self.read_from_device(), budget.clock().now());
        let from_cache = self.read_from_cache();
        let stop = match turn.contender {
            0 => self.in_order(budget)?,
            1 => self.at_random(budget)?,
            other => self.with_gaps(self.points[other - PLAIN_WAYS], budget)?,
        };
        let fetched = self.spans.taken.release()?;
        // The budget is of what is asked for. A turn without a read must not be free for ever.
        let asked = (self.read_from_device() - before) * u64::from(self.run.source.block_size());
        budget.spend(asked.max(1));
        let is_idle = asked == 0 && self.read_from_cache() == from_cache;
        self.idle = if is_idle { self.idle + 1 } else { 0 };
        // The rate is of what is moved: what the kernel reads ahead is paid for, too.
        let now = budget.clock().now();
        budget.pacer().charge_late(now, asked.max(fetched), now - began);
        let is_over = stop.is_some() || self.is_in_vain();
        Ok(if is_over { Break(stop) } else { Continue(()) })
    }

    /// Is the time known as well as was asked for?
    fn is_enough(&mut self) -> bool {
        let pairs = self.measured.device_sequential.turns().max(self.measured.os_sequential.turns());
        self.looks.are_due(pairs as u64) && self.is_precise()
    }
}

/// About how many timed blocks were cached, if `cached` of the `stretch` blocks of a stretch were.
fn share_of(cached: u64, taken: &Taken, stretch: u64) -> u64 {
    cached * taken.blocks / stretch.max(1)
}

/// What is expected to be read ahead beyond a turn's blocks, in bytes.
fn window(run: &PageTimesRun<'_>) -> u64 {
    run.window.min(MOST_WINDOW)
}

fn scan_bytes(run: &PageTimesRun<'_>) -> u64 {
    (WINDOWS_OF_SCAN * window(run)).max(LEAST_SCAN)
}

fn warm_up_bytes(run: &PageTimesRun<'_>) -> u64 {
    window(run).max(LEAST_WARM_UP)
}
