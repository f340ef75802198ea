//! Taking the turns: which one comes next, which blocks it reads, and what of it counts.

use std::collections::BTreeMap;
use std::ops::ControlFlow::{Break, Continue};
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::points::Points;
use super::spans::{NotCold, Spans, Supply};
use super::{LEAST_BLOCKS, Order, PageTimesResult, PageTimesRun, ROUGHLY, TurnReader, Way, WaySeries};
use crate::machine::observer::IoDelta;
use crate::run::budget::{Budget, Outcome, Stop, stop_if, stopped};
use crate::run::clock::nanoseconds;
use crate::run::rounds::{Contenders, Ended, Rounds, Turn};
use crate::run::stopwatch::Stopwatch;
use crate::stats::{self, Looks, MIN_SLICES, MIN_TURNS, median};
use crate::{Error, Result};

/// Blocks of a random turn, and of a long one; bytes read again from the OS cache in order, and blocks at
/// random; blocks that are hit, and reads of them in all.
const RANDOM_BLOCKS: usize = 64;
const LONG_RANDOM_BLOCKS: usize = 2048;
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
/// Windows that are read before a sequential turn is timed: so far the kernel's windows grow, and some are
/// shorter once more (up to twice the greatest after the start, with Linux 6.18).
const WINDOWS_OF_WARM_UP: u64 = 3;
/// A volume that is held at a rate lets through at once what it has saved up, as much as it gives in 10 ms.
const LEAST_WARM_UP: u64 = 3 << 19;

/// Where a control group limits reads, the kernel lets them through in bursts: so many of them a long turn
/// times.
const BURSTS: u32 = 4;
/// Bursts to spare: those before it is timed, and one that its end cuts off.
const MORE_BURSTS: u64 = 3;

/// Largest window, in bytes; larger ones are treated as this one.
const MOST_WINDOW: u64 = 8 << 20;

/// Number of sparse turns after which a sequential and a random one follow.
const SPARSE_PER_PAIR: usize = 2;

/// A turn takes at most the whole time over this, within the two bounds that follow.
const TURNS: u32 = 200;
const SHORTEST_TURN: Duration = Duration::from_millis(20);
const LONGEST_TURN: Duration = Duration::from_millis(100);

/// A long turn takes at most this many times as long, and may take this long in any case: one in order, which
/// times whole windows, for a part of one is no figure; and one at random that has to outlast a limit's
/// allowance.
const LONG: u32 = 5;
const LEAST_OF_LONG: Duration = Duration::from_millis(350);
/// So many long turns have room in the time and the bytes.
const LEAST_LONG_TURNS: u64 = 16;

/// The first random turn is a long one. If its first blocks took this many times as long as its others, or
/// these as they, a turn of so few blocks is no figure, and all are long.
const UNEVEN: f64 = 1.5;

/// Largest share of the blocks outside shared buffers that a turn may want: no more than all can be read, but
/// nearly as many will do.
const MOST_SHARE: f64 = 1.1;

/// Largest share of hits with which a turn counts; and the least with which a turn of hits alone counts.
const MOST_HITS: f64 = 0.2;
const LEAST_HITS: f64 = 0.98;

/// Most parts of a run among which a step is looked for.
const MOST_PACES: usize = 200;

/// Fewest turns of each sparse point before an interval as narrow as asked for ends the run.
pub(super) const LEAST_SPARSE_TURNS: usize = 10;

/// A longer run has longer turns: it takes this many times as long as the turns of this one let expect.
const SAFELY: f64 = 1.5;

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
    /// The points of the turns with gaps.
    points: Points,
    /// Of each turn that came from the device: whose it was, and nanoseconds per block.
    paces: Vec<(usize, f64)>,
    /// Number of turns that were begun, and of those with gaps.
    taken: u64,
    sparse_taken: u64,
    /// Is it the first round, which tells how many points have room? And which is the first that has none?
    is_first_round: bool,
    no_room_from: Option<usize>,
    /// How long the run is to take.
    length: Duration,
    looks: Looks,
    spans: Spans<'a>,
    rng: Xoshiro256PlusPlus,
    /// Nanoseconds that a turn may take, and a long one.
    length_ns: u64,
    long_ns: u64,
    /// Blocks of a random turn; none before the first.
    random_blocks: Option<usize>,
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
        Self {
            run,
            reader,
            report,
            points: Points::of(run.concurrencies, run.densities),
            paces: Vec::new(),
            taken: 0,
            sparse_taken: 0,
            is_first_round: true,
            no_room_from: None,
            length,
            looks: Looks::from(MIN_SLICES as u64),
            spans: Spans::new(run, longest / block_size, OS_BYTES / block_size),
            rng: Xoshiro256PlusPlus::seed_from_u64(run.seed),
            length_ns: nanoseconds(turn),
            long_ns: nanoseconds(long_turn(run, turn, length)),
            random_blocks: run.observer.limits_reads().then_some(LONG_RANDOM_BLOCKS),
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
        if self.run.source.blocks() > 0 {
            self.measured.stop = self.take_rounds(budget)?;
        }
        self.measured.needs = self.time_for_intervals(budget);
        let at_each = self.points.turns_at_each().filter(|_| self.sparse_taken > 0);
        self.measured.needs_at_each = at_each.map(|turns| self.time_for(turns, budget));
        self.measured.slowed = step_of(&self.paces);
        let rested = budget.pacer().due();
        budget.rest_until(rested);
        self.measured.paused = budget.has_paused();
        self.measured.passes = self.spans.passes();
        let was_read = self.read_from_device() + self.read_from_cache() > 0;
        self.measured.dried_up = was_read && self.idle >= MOST_IDLE;
        self.measured.not_cold = self.spans.why_none();
        Ok(self.measured)
    }

    /// Takes rounds, and says which points were left out.
    fn take_rounds(&mut self, budget: &mut Budget<'_>) -> Result<Option<Stop>> {
        let stop = self.take_each_round(budget)?;
        for (concurrency, density) in self.points.left_out() {
            self.measured.sparse[*concurrency][*density] = WaySeries::left_out();
        }
        Ok(stop)
    }

    /// Takes one round after another, of the points that have room by what the last one took.
    fn take_each_round(&mut self, budget: &mut Budget<'_>) -> Result<Option<Stop>> {
        for number in 0.. {
            let began = budget.clock().now();
            let rounds =
                Rounds::new(u64::MAX, self.points.len()).with_references(PLAIN_WAYS, SPARSE_PER_PAIR);
            let ended = rounds.only(number).take(self, budget)?;
            let round = Duration::from_nanos(budget.clock().now() - began);
            match (ended, self.no_room_from.take()) {
                (_, Some(from)) => self.points.leave_out(from),
                (Break(stop), None) => {
                    if self.is_first_round && stop.is_some_and(Stop::is_of_time) {
                        self.points.leave_out(self.points.end_of_stage(self.sparse_taken as usize));
                    }
                    return Ok(stop);
                }
                (Continue(()), None) if self.is_first_round => {}
                (Continue(()), None) => self.points.take_more(round, budget.time_left()),
            }
            self.is_first_round = false;
        }
        Ok(None)
    }

    /// Which part of the time is gone.
    fn gone(&self, budget: &Budget<'_>) -> f64 {
        (budget.clock().now() - budget.started()) as f64 / nanoseconds(self.length) as f64
    }

    /// Has a point no room in the time any more, by what those before it took in the first round? Where
    /// nothing comes from the device, another reason than the time keeps it from a figure.
    fn has_no_room(&mut self, point: usize, budget: &Budget<'_>) -> bool {
        let is_measured = self.is_first_round && self.read_from_device() > 0;
        let has_none = is_measured && !self.points.has_room(point, self.gone(budget));
        self.no_room_from = has_none.then_some(point);
        has_none
    }

    /// If a time has no interval, about how long it would take until each has one.
    fn time_for_intervals(&self, budget: &Budget<'_>) -> Option<Duration> {
        let plain = [&self.measured.device_sequential, &self.measured.device_random];
        // What could not be read where others were several times needs no time, but other blocks.
        let most = self.of_points().map(WaySeries::turns).max().unwrap_or(0);
        let points = self.of_points().filter(|series| series.turns() > 0 || most < MIN_TURNS);
        let mut all = plain.into_iter().chain(points);
        if self.sparse_taken == 0 || all.all(|series| series.relative_half_width().is_some()) {
            return None;
        }
        Some(self.time_for(self.points.turns(), budget))
    }

    /// About how long a run has to be to have time for so many turns with gaps, and more than this one had.
    fn time_for(&self, turns: f64, budget: &Budget<'_>) -> Duration {
        let gone = Duration::from_nanos(budget.clock().now() - budget.started());
        gone.mul_f64(SAFELY * (turns / self.sparse_taken as f64).max(1.0))
    }

    /// The points that were not left out.
    fn of_points(&self) -> impl Iterator<Item = &WaySeries> {
        self.points.iter().map(|(concurrency, density)| &self.measured.sparse[concurrency][density])
    }

    /// An order of blocks from the device. The first one is not timed: it comes after something else.
    fn order<'o>(&self, blocks: &'o [u64], way: Way) -> Order<'o> {
        let (lead_ns, length_ns) = (self.length_ns / 2, self.length_ns);
        Order { blocks, way, warm_up: 1, lead_ns, length_ns, most: u64::MAX, hits: 0 }
    }

    /// An order that takes longer, of blocks from the device. Under a limit it is timed from a moment on, so
    /// that it has whole bursts; blocks that all come at once are timed from the middle on.
    fn long_order<'o>(&self, blocks: &'o [u64], way: Way, warm_up: usize) -> Order<'o> {
        let (warm_up, lead_ns) = match self.run.observer.bursts_every() {
            Duration::ZERO => (warm_up, self.long_ns / 4 * 3),
            every => (blocks.len() / 2, nanoseconds(every)),
        };
        Order { warm_up, lead_ns, length_ns: self.long_ns, ..self.order(blocks, way) }
    }

    /// Has blocks read. A turn that has begun goes on to its end, also when the time of the run is up.
    fn read(&mut self, mut order: Order<'_>, budget: &mut Budget<'_>) -> Result<(Taken, Option<Stop>)> {
        let mut report = |_| ();
        let mut watch = Stopwatch::start(None, budget.part_to_its_end(), &mut report);
        self.reader.read(&mut order, &mut watch)?;
        let timed = watch.rated();
        let hits = order.hits.min(timed.work);
        Ok((Taken { ns: timed.ns, blocks: timed.work, hits, read: watch.blocks() }, watch.stop()))
    }

    /// Blocks of a read in order: how many come before it is timed, and how many are timed, which are whole
    /// windows from anywhere in one.
    fn whole_windows(&mut self) -> (u64, u64) {
        let block_size = u64::from(self.run.source.block_size());
        let phase = self.rng.random_range(0..=window(self.run));
        ((warm_up_bytes(self.run) + phase) / block_size, scan_bytes(self.run) / block_size)
    }

    /// Blocks at random or with gaps of a long turn under a limit; 0 without one.
    fn blocks_of_bursts(&self) -> u64 {
        let block_size = u64::from(self.run.source.block_size());
        (u64::from(BURSTS) + MORE_BURSTS) * self.run.observer.burst(block_size) / block_size
    }

    /// Waits until what the kernel reads ahead has arrived: it must not be in the next turn's way, and can't
    /// be dropped before.
    fn settle(&self) -> Result<()> {
        self.run.observer.settle_after(&mut || self.spans.taken.are_arriving())
    }

    /// Has blocks read from the device, and looks at what went on there meanwhile.
    fn fetch(&mut self, order: Order<'_>, budget: &mut Budget<'_>) -> Result<(Taken, IoDelta, Option<Stop>)> {
        let look = self.run.observer.look();
        let (taken, stop) = self.read(order, budget)?;
        Ok((taken, self.run.observer.since(&look), stop))
    }

    /// Blocks read from the device.
    fn read_from_device(&self) -> u64 {
        self.measured.ways_of_device().map(WaySeries::read).sum()
    }

    /// Blocks read from the OS cache.
    fn read_from_cache(&self) -> u64 {
        self.measured.os_sequential.read() + self.measured.os_random.read()
    }

    /// The series of the device that a contender adds to.
    fn series(&self, contender: usize) -> &WaySeries {
        let Some(point) = contender.checked_sub(PLAIN_WAYS) else {
            return [&self.measured.device_sequential, &self.measured.device_random][contender];
        };
        let (concurrency, density) = self.points.at(point);
        &self.measured.sparse[concurrency][density]
    }

    /// Reads from the device in order, then the same blocks from the OS cache and from shared buffers.
    fn in_order(&mut self, budget: &mut Budget<'_>) -> Outcome<()> {
        let block_size = u64::from(self.run.source.block_size());
        // How many of its blocks are cached, of a stretch that is cold.
        let (range, cold) = match self.spans.take(&mut || budget.poll())? {
            Supply::Cold { range, cached } => (range, Some(cached)),
            Supply::Cached(range) => (range, None),
            Supply::None => return self.hits(&[0], budget),
        };
        let (warm_up, timed) = self.whole_windows();
        let wanted = warm_up + timed;
        let mut blocks: Vec<u64> = (range.start..range.end.min(range.start + wanted)).collect();
        let all = blocks.len() as u64;
        blocks.retain(|block| !self.spans.is_buffered(*block));
        let warm_up = (warm_up as usize).min(blocks.len() / 2);
        let mut read = blocks.len();
        if let Some(cached) = cold {
            let order = Order { most: timed, ..self.long_order(&blocks, Way::Scan, warm_up) };
            let (taken, cost, stop) = self.fetch(order, budget)?;
            read = taken.read as usize;
            let cached = share_of(cached, &taken, range.end - range.start);
            let whole = self.with_passed_over(taken, all, blocks.len());
            self.add(|measured| &mut measured.device_sequential, whole, cached, Some(cost));
            self.settle()?;
            stop_if(stop)?;
        }
        if !self.run.through_cache {
            return self.hits(&[blocks.first().copied().unwrap_or(0)], budget);
        }
        let again = read.min((OS_BYTES / block_size) as usize);
        self.again_from_cache(&blocks[..again], cold.is_some(), budget)
    }

    /// With the blocks that were passed over: of `all` in order `read` were outside shared buffers. Through
    /// the OS cache the kernel reads the others, too.
    fn with_passed_over(&self, taken: Taken, all: u64, read: usize) -> Taken {
        let blocks = taken.blocks * all / (read as u64).max(1);
        if self.run.through_cache { Taken { blocks, ..taken } } else { taken }
    }

    /// Reads blocks that were just read, if they are in the OS cache now: from there, and from shared
    /// buffers.
    fn again_from_cache(&mut self, again: &[u64], was_cold: bool, budget: &mut Budget<'_>) -> Outcome<()> {
        if !self.spans.is_cached(again)? {
            if !was_cold {
                // Others have taken pages of it meanwhile. What is found next may be cold.
                self.spans.forget_cached();
                self.most_stretches = MOST_STRETCHES;
            }
            return Ok(());
        }
        let random: Vec<u64> = (0..OS_RANDOM_BLOCKS.min(again.len()))
            .map(|_| again[self.rng.random_range(0..again.len())])
            .collect();
        let in_order: Pick = |measured| &mut measured.os_sequential;
        let at_random: Pick = |measured| &mut measured.os_random;
        for (blocks, way, series) in [(again, Way::Scan, in_order), (&random[..], Way::Single, at_random)] {
            let (taken, stop) = self.read(Order { warm_up: 0, ..self.order(blocks, way) }, budget)?;
            self.add(series, taken, 0, None);
            stop_if(stop)?;
        }
        // The last of them are in shared buffers.
        self.hits(&random[random.len().saturating_sub(HOT_BLOCKS)..], budget)
    }

    /// Reads `blocks` from shared buffers, in many rounds, of which the first may bring them there.
    fn hits(&mut self, blocks: &[u64], budget: &mut Budget<'_>) -> Outcome<()> {
        let rounds = blocks.repeat(HOT_READS / blocks.len().max(1));
        let order = Order { warm_up: blocks.len(), ..self.order(&rounds, Way::Single) };
        let (taken, stop) = self.read(order, budget)?;
        let counts = taken.hits as f64 >= LEAST_HITS * taken.blocks as f64;
        self.measured.shared.add(taken.ns, taken.blocks, 0, taken.read, counts);
        stop_if(stop)
    }

    /// Reads from the device at random, one block at a time.
    fn at_random(&mut self, budget: &mut Budget<'_>) -> Outcome<()> {
        let wanted = self.random_blocks.unwrap_or(LONG_RANDOM_BLOCKS).max(self.blocks_of_bursts() as usize);
        let affordable = budget.bytes_left() / u64::from(self.run.source.block_size()) / LEAST_LONG_TURNS;
        let wanted = wanted.min(affordable as usize).max(RANDOM_BLOCKS);
        let (blocks, cached) = self.spans.scatter(wanted, &mut || budget.poll())?;
        if blocks.len() < LEAST_BLOCKS {
            return Ok(());
        }
        let (taken, cost, stop) = match self.random_blocks {
            None => self.first_at_random(blocks.split_at(blocks.len().min(RANDOM_BLOCKS)), budget)?,
            Some(RANDOM_BLOCKS) => self.fetch(self.order(&blocks, Way::Single), budget)?,
            Some(_) => self.fetch(self.long_order(&blocks, Way::Single, 1), budget)?,
        };
        let cached = share_of(cached, &taken, blocks.len() as u64);
        self.add(|measured| &mut measured.device_random, taken, cached, Some(cost));
        stop_if(stop)
    }

    /// Reads a few blocks at random, then many, and tells whether later turns may be of a few.
    fn first_at_random(
        &mut self,
        (few, many): (&[u64], &[u64]),
        budget: &mut Budget<'_>,
    ) -> Result<(Taken, IoDelta, Option<Stop>)> {
        self.random_blocks = Some(RANDOM_BLOCKS);
        let (first, cost, stop) = self.fetch(self.order(few, Way::Single), budget)?;
        if stop.is_some() || many.len() < few.len() {
            return Ok((first, cost, stop));
        }
        let (others, more, stop) = self.fetch(self.long_order(many, Way::Single, 1), budget)?;
        if are_uneven(first, others) {
            self.random_blocks = Some(LONG_RANDOM_BLOCKS);
        }
        Ok((Taken { read: first.read + others.read, ..others }, cost.then(more), stop))
    }

    /// Reads from the device, ascending with gaps.
    fn with_gaps(
        &mut self,
        (concurrency, density_index): (usize, usize),
        budget: &mut Budget<'_>,
    ) -> Outcome<()> {
        let density = self.run.densities[density_index];
        let span = SPAN / u64::from(self.run.source.block_size());
        // At a low density one stretch has few blocks, and with many in flight no more than a beginning and
        // an end.
        let least = LEAST_FETCHES.max(self.blocks_of_bursts() as f64);
        let wanted = (least / density / span as f64).ceil().min(self.most_stretches as f64) as usize;
        let (mut ranges, mut cached) = (Vec::new(), 0);
        while ranges.len() < wanted {
            match self.spans.take(&mut || budget.poll())? {
                Supply::Cold { range, cached: some } => {
                    let length = range.end - range.start;
                    let length_read = if density < 1.0 { span.min(length) } else { length };
                    ranges.push(range.start..range.start + length_read);
                    cached += some * span / length.max(span);
                }
                Supply::Cached(_) | Supply::None => {
                    // Another search would be in vain, too.
                    self.most_stretches = ranges.len().max(1);
                    break;
                }
            }
        }
        ranges.sort_by_key(|range| range.start);
        // Where no block is left out, the kernel reads as far ahead as for a scan, and whole windows are
        // timed.
        let (warm_up, timed) = if density < 1.0 { (1, u64::MAX) } else { self.whole_windows() };
        let most = usize::try_from(warm_up.saturating_add(timed)).unwrap_or(usize::MAX);
        let stretch: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let mut blocks: Vec<u64> = ranges.into_iter().flatten().take(most).collect();
        let all = blocks.len() as u64;
        blocks.retain(|block| !self.spans.is_buffered(*block));
        let unbuffered = blocks.len();
        // Other blocks make up for those that are passed over, as far as there are enough; where none is left
        // out, there are no others.
        let share = density * all as f64 / unbuffered.max(1) as f64;
        if share > MOST_SHARE && density < 1.0 {
            return Ok(());
        }
        blocks.retain(|_| self.rng.random_bool(share.min(1.0)));
        if blocks.len() >= LEAST_BLOCKS {
            let way = Way::Bitmap(self.run.concurrencies[concurrency]);
            let is_long = density >= 1.0 || self.run.observer.limits_reads();
            let order = match is_long {
                false => self.order(&blocks, way),
                true => self.long_order(&blocks, way, (warm_up as usize).min(blocks.len() / 2)),
            };
            let order = Order { most: timed, ..order };
            let (taken, cost, stop) = self.fetch(order, budget)?;
            let cached = share_of(cached, &taken, stretch);
            // Blocks that are prefetched are each read by themselves.
            let is_in_order = density >= 1.0 && self.run.concurrencies[concurrency] == 0;
            let taken = if is_in_order { self.with_passed_over(taken, all, unbuffered) } else { taken };
            self.add(|measured| &mut measured.sparse[concurrency][density_index], taken, cached, Some(cost));
            self.settle()?;
            stop_if(stop)?;
        }
        Ok(())
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
        let missing = taken.read.saturating_sub(taken.hits + cached);
        cost.into_iter().for_each(|cost| series.add_cost(missing, cost));
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
        let mut all = self.measured.ways_of_device();
        self.run.rough_after.is_some_and(|after| gone >= nanoseconds(after))
            && all.all(|series| series.turns() == 0 || series.is_within(ROUGHLY))
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
        let mut sparse = self.of_points();
        pair.into_iter().all(|series| series.is_within(wanted))
            && (!is_cold || sparse.all(|series| series.turns() >= LEAST_SPARSE_TURNS))
    }
}

impl Contenders for Turns<'_> {
    fn turn(&mut self, turn: Turn, budget: &mut Budget<'_>) -> Result<Ended> {
        (self.report)(self.taken);
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
        let point = turn.contender.checked_sub(PLAIN_WAYS);
        if point.is_some_and(|point| self.has_no_room(point, budget)) {
            return Ok(Break(None));
        }
        self.taken += 1;
        self.sparse_taken += u64::from(point.is_some());
        let (before, began) = (self.read_from_device(), budget.clock().now());
        let from_cache = self.read_from_cache();
        let had = self.series(turn.contender).turns();
        let stop = stopped(match turn.contender {
            0 => self.in_order(budget),
            1 => self.at_random(budget),
            other => self.with_gaps(self.points.at(other - PLAIN_WAYS), budget),
        })?;
        let series = self.series(turn.contender);
        let pace = series.last().filter(|_| series.turns() > had);
        self.paces.extend(pace.map(|pace| (turn.contender, pace)));
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

/// The step in the times of all turns. Each way alone has few, so a turn is measured by the median of its
/// way.
fn step_of(paces: &[(usize, f64)]) -> Option<f64> {
    let mut of_way: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    paces.iter().for_each(|(way, pace)| of_way.entry(*way).or_default().push(*pace));
    let usual: BTreeMap<usize, f64> =
        of_way.into_iter().filter_map(|(way, paces)| Some((way, median(&paces)?))).collect();
    let over_usual: Vec<f64> = paces.iter().map(|(way, pace)| pace / usual[way]).collect();
    // Each is looked at with each other: of many turns those that follow one another are taken together.
    let together = over_usual.len().div_ceil(MOST_PACES).max(1);
    let parts: Vec<f64> = over_usual.chunks(together).filter_map(median).collect();
    stats::step_up(&parts)
}

/// Did a block take far longer in one of two turns than in the other?
fn are_uneven(one: Taken, other: Taken) -> bool {
    let [one, other] = [one, other].map(|taken| taken.ns as f64 / taken.blocks as f64);
    one > UNEVEN * other || other > UNEVEN * one
}

/// About how many timed blocks were cached, if `cached` of the `stretch` blocks of a stretch were.
fn share_of(cached: u64, taken: &Taken, stretch: u64) -> u64 {
    cached * taken.blocks / stretch.max(1)
}

/// What is expected to be read ahead beyond a turn's blocks, in bytes.
fn window(run: &PageTimesRun<'_>) -> u64 {
    run.window.min(MOST_WINDOW)
}

/// Whole windows; and as many bytes as the bursts of a limit that are timed, and one more.
fn scan_bytes(run: &PageTimesRun<'_>) -> u64 {
    let bursts = (u64::from(BURSTS) + 1) * burst(run);
    (WINDOWS_OF_SCAN * window(run)).max(LEAST_SCAN).max(bursts).next_multiple_of(window(run).max(1))
}

fn warm_up_bytes(run: &PageTimesRun<'_>) -> u64 {
    (WINDOWS_OF_WARM_UP * window(run)).max(LEAST_WARM_UP).max((MORE_BURSTS - 1) * burst(run))
}

/// Bytes of a scan that a limit lets through at once; 0 without one.
fn burst(run: &PageTimesRun<'_>) -> u64 {
    run.observer.burst(window(run).max(run.source.block_size().into()))
}

/// How long a long turn is timed: under a limit whole bursts.
fn long_turn(run: &PageTimesRun<'_>, turn: Duration, length: Duration) -> Duration {
    let long = (turn * LONG).max(LEAST_OF_LONG).min(length / LEAST_LONG_TURNS as u32).max(turn);
    match run.observer.bursts_every() {
        Duration::ZERO => long,
        every => every * BURSTS,
    }
}
