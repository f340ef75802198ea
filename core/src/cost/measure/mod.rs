//! Times of a block, measured in turns.
//!
//! A turn reads some blocks in one way: in order as a sequential scan, one by one at random, or ascending with gaps at one
//! density and one `effective_io_concurrency`. All ways take turns, sequential and random ones after every few of the
//! others, so that a disk whose speed drifts drifts under all of them. How the server reads is behind [`Server`]; which
//! blocks, whether they are cold, and what follows from the times is here.
//!
//! What comes from the device is read from spans of which the OS cache holds nothing, and the span is dropped from it
//! afterwards: the cache is left about as it was found. Only with leave to evict, spans that are cached are emptied first. After
//! a sequential turn, before the span is dropped, the same blocks are read again, from the OS cache, and some of them once
//! more, from shared buffers.
//!
//! # Limitations and caveats
//! - The first part of a sequential turn, in which the kernel's readahead gets going, is not timed: a scan goes through it
//!   once a segment.
//! - A page that another session fetches into a span during its turn is dropped with it.
//! - Caches below the kernel are part of the device. A small relation is soon in them: see [`Measured::passes`].
//! - Blocks found in shared buffers are counted and taken out of the time at what a hit takes; a turn with many of them
//!   does not count.
//!
//! Sources: `heapam.c`, `nodeBitmapHeapscan.c` and `read_stream.c` of PostgreSQL for how it reads; the kernel's
//! `mm/readahead.c`.

mod series;
mod spans;
#[cfg(test)]
mod tests;

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub use self::series::Series;
pub use self::spans::NotCold;
use self::spans::{Spans, State};
use crate::Result;
use crate::clock::{Clock, nanoseconds};
use crate::pace::{Ask, Limits, Pace, Stop, due_after};
use crate::source::Source;
use crate::stats::MIN_SLICES;

/// In which way the server reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As a sequential scan.
    Scan,
    /// One block after the other, each when it is needed, as an index scan.
    Single,
    /// As a bitmap heap scan at this `effective_io_concurrency`.
    Bitmap(u32),
}

/// What a turn wants of the server.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The blocks, in the order in which they are to be read.
    pub blocks: &'a [u64],
    /// How.
    pub way: Way,
    /// The first so many are not timed.
    pub warm_up: usize,
    /// After so many nanoseconds no more are begun, but for [`LEAST_BLOCKS`].
    pub budget_ns: u64,
}

/// A turn times so many blocks at least, however slow they are.
pub const LEAST_BLOCKS: usize = 16;

/// What the server did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Nanoseconds of the timed part.
    pub ns: u64,
    /// Its blocks.
    pub blocks: u64,
    /// Of these, how many were in shared buffers.
    pub hits: u64,
    /// Blocks read in all, with those not timed.
    pub read: u64,
    /// A reason to stop that came up meanwhile.
    pub stop: Option<Stop>,
}

/// Reads blocks of the relation.
pub trait Server {
    /// Reads them, and says how long it took.
    fn read(&mut self, order: &Order<'_>, ask: &mut Ask<'_>) -> Result<Taken>;

    /// Waits a little until the devices have nothing to do.
    fn settle(&mut self) {}
}

/// What is to be measured.
pub struct Run<'a> {
    /// The relation.
    pub source: &'a Source,
    /// Densities of the sparse turns, each over 0 and at most 1.
    pub densities: &'a [f64],
    /// Their concurrencies.
    pub concurrencies: &'a [u32],
    /// The kernel's readahead window, in bytes: so far beyond a turn's blocks pages may come into the OS cache.
    pub window: u64,
    /// Do reads go through the OS page cache?
    pub through_cache: bool,
    /// May pages be evicted that were cached before?
    pub evicts: bool,
    /// Is all over if nothing comes from the device?
    pub only_cold: bool,
    /// Blocks in shared buffers, ascending: they are passed over.
    pub buffered: &'a [u64],
    /// Which blocks.
    pub seed: u64,
    /// Bounds of all turns together; but `max_bytes` for each way: sequential, random, and each concurrency. What one does
    /// not need the others may have.
    pub limits: Limits,
}

/// The times, and how they came about.
#[derive(Debug, Default)]
pub struct Measured {
    /// Hits in shared buffers.
    pub shared: Series,
    /// From the OS cache, in order.
    pub os_sequential: Series,
    /// From the OS cache, at random.
    pub os_random: Series,
    /// From the device, in order.
    pub device_sequential: Series,
    /// From the device, at random.
    pub device_random: Series,
    /// From the device, ascending with gaps: for each concurrency, each density.
    pub sparse: Vec<Vec<Series>>,
    /// Why nothing came from the device, if nothing did.
    pub not_cold: Option<NotCold>,
    /// How many times the turns went through the whole relation.
    pub passes: u64,
    /// Did a rate limit make it pause between turns?
    pub paused: bool,
    /// Why it ended.
    pub stop: Option<Stop>,
}

impl Measured {
    /// What a hit takes, in nanoseconds; 0 as long as it is not known.
    pub fn hit_ns(&self) -> f64 {
        self.shared.of_memory().map_or(0.0, |time| time.us * 1e3)
    }
}

/// Blocks of a random turn, of a repetition from the OS cache in order and at random, and of the hits: how many, and how
/// often.
const RANDOM_BLOCKS: usize = 64;
const OS_BYTES: u64 = 8 << 20;
const OS_RANDOM_BLOCKS: usize = 256;
const HOT_BLOCKS: usize = 16;
const HOT_READS: usize = 512;

/// Sparse turns spread over so many bytes.
const SPAN: u64 = 32 << 20;

/// A sequential turn times so many windows, and so much at least, in bytes, after a window that it takes to get going. Then
/// timing begins anywhere within a window: the reader waits once a window, and the wait must be in or out by chance.
const WINDOWS_OF_SCAN: u64 = 2;
const LEAST_SCAN: u64 = 8 << 20;
const LEAST_WARM_UP: u64 = 1 << 20;

/// Larger windows are taken for this one, in bytes.
const MOST_WINDOW: u64 = 8 << 20;

/// After so many sparse turns come a sequential and a random one.
const SPARSE_PER_PAIR: usize = 2;

/// A turn takes at most this share of the whole time, within these bounds.
const TURNS: u32 = 200;
const SHORTEST_TURN: Duration = Duration::from_millis(20);
const LONGEST_TURN: Duration = Duration::from_millis(100);

/// Of blocks that are not in shared buffers no more than all can be read; nearly as many will do.
const MOST_SHARE: f64 = 1.1;

/// A turn with more hits than this share does not count.
const MOST_HITS: f64 = 0.2;

/// Each sparse point has so many turns before an interval as narrow as asked for ends the run.
const LEAST_SPARSE_TURNS: usize = 10;

/// Measures until the time or the bytes are used up, or the intervals are as narrow as asked for. `report` hears how many
/// turns are done.
///
/// # Errors
/// Of the files.
pub fn measure(
    run: &Run<'_>,
    server: &mut dyn Server,
    clock: &dyn Clock,
    ask: &mut Ask<'_>,
    report: &mut dyn FnMut(u64),
) -> Result<Measured> {
    let mut turns = Turns::new(run, server, clock);
    let result = turns.all(ask, report);
    turns.spans.release()?;
    turns.measured.stop = result?;
    turns.measured.passes = turns.spans.passes();
    turns.measured.not_cold = turns.spans.why_none();
    Ok(turns.measured)
}

struct Turns<'a> {
    run: &'a Run<'a>,
    server: &'a mut dyn Server,
    clock: &'a dyn Clock,
    spans: Spans<'a>,
    rng: Xoshiro256PlusPlus,
    /// When the time is up, and what that is called.
    deadline: u64,
    at_deadline: Stop,
    budget_ns: u64,
    rate: Option<u64>,
    next_due: u64,
    /// Bytes read; and in the present turn, as the OS cache shows.
    bytes: u64,
    fetched: u64,
    measured: Measured,
}

/// In order, and at random.
const PLAIN_WAYS: u64 = 2;

/// What comes next.
#[derive(Debug, Clone, Copy)]
enum Turn {
    InOrder,
    AtRandom,
    /// Of this concurrency and this density, by their places in the run.
    WithGaps(usize, usize),
}

impl<'a> Turns<'a> {
    fn new(run: &'a Run<'a>, server: &'a mut dyn Server, clock: &'a dyn Clock) -> Self {
        let block_size = u64::from(run.source.block_size());
        let scan = warm_up_bytes(run) + window(run) + scan_bytes(run);
        let longest = SPAN.max(scan) + window(run);
        let length = run.limits.duration.min(run.limits.shared);
        let turn = (length / TURNS).clamp(SHORTEST_TURN, LONGEST_TURN);
        let now = clock.now();
        Self {
            run,
            server,
            clock,
            spans: Spans::new(run, longest / block_size),
            rng: Xoshiro256PlusPlus::seed_from_u64(run.seed),
            deadline: now.saturating_add(nanoseconds(length)),
            at_deadline: if run.limits.are_cut_short() { Stop::Statement } else { Stop::Duration },
            budget_ns: nanoseconds(turn),
            rate: run.limits.bytes_per_s(block_size),
            next_due: now,
            bytes: 0,
            fetched: 0,
            measured: Measured {
                sparse: vec![vec![Series::default(); run.densities.len()]; run.concurrencies.len()],
                ..Measured::default()
            },
        }
    }

    /// Takes turns until there is a reason to stop.
    fn all(&mut self, ask: &mut Ask<'_>, report: &mut dyn FnMut(u64)) -> Result<Option<Stop>> {
        if self.run.source.blocks() == 0 {
            return Ok(None);
        }
        let mut points: Vec<Turn> = (0..self.run.concurrencies.len())
            .flat_map(|c| (0..self.run.densities.len()).map(move |d| Turn::WithGaps(c, d)))
            .collect();
        let mut next_look = MIN_SLICES;
        let mut done = 0;
        loop {
            // There and back, so that no point always comes after the same other one.
            points.reverse();
            for group in points.chunks(SPARSE_PER_PAIR).chain(points.is_empty().then_some(&[] as &[Turn])) {
                let pair = [Turn::InOrder, Turn::AtRandom].into_iter();
                for turn in pair.chain(group.iter().copied()) {
                    report(done);
                    done += 1;
                    if let Some(stop) = self.turn(turn, ask)? {
                        return Ok(Some(stop));
                    }
                    if self.is_in_vain() {
                        return Ok(None);
                    }
                }
                let pairs = self.measured.device_sequential.turns().max(self.measured.os_sequential.turns());
                if pairs >= next_look {
                    next_look = pairs + pairs / 2;
                    if self.is_precise() {
                        return Ok(Some(Stop::Precise));
                    }
                }
            }
        }
    }

    fn turn(&mut self, turn: Turn, ask: &mut Ask<'_>) -> Result<Option<Stop>> {
        let ways = PLAIN_WAYS + self.run.concurrencies.len() as u64;
        if self.bytes >= self.run.limits.max_bytes.saturating_mul(ways) {
            return Ok(Some(Stop::Bytes));
        }
        if let Some(stop) = self.pause(ask) {
            return Ok(Some(stop));
        }
        let before = self.read_so_far();
        self.fetched = 0;
        let stop = match turn {
            Turn::InOrder => self.in_order(ask)?,
            Turn::AtRandom => self.at_random(ask)?,
            Turn::WithGaps(concurrency, density) => self.with_gaps(concurrency, density, ask)?,
        };
        // What the kernel reads ahead is paid for, too.
        let asked = (self.read_so_far() - before) * u64::from(self.run.source.block_size());
        let bytes = asked.max(self.fetched);
        // The budget is of what is asked for, the rate of what is moved. A turn without a read must not be free for ever.
        self.bytes += asked.max(1);
        if let Some(rate) = self.rate {
            self.next_due = self.next_due.max(self.clock.now().saturating_sub(due_after(bytes, rate)));
            self.next_due += due_after(bytes, rate);
        }
        Ok(stop)
    }

    /// Lets go of what was read.
    fn release(&mut self) -> Result<Option<Stop>> {
        self.fetched += self.spans.release()?;
        Ok(None)
    }

    /// Blocks read from the device.
    fn read_so_far(&self) -> u64 {
        let measured = &self.measured;
        let plain = [&measured.device_sequential, &measured.device_random];
        plain.into_iter().chain(measured.sparse.iter().flatten()).map(Series::read).sum()
    }

    /// From the device in order, then the same from the OS cache and from shared buffers.
    fn in_order(&mut self, ask: &mut Ask<'_>) -> Result<Option<Stop>> {
        let block_size = u64::from(self.run.source.block_size());
        let (range, cached) = match self.spans.take(ask)? {
            State::Cold { range, cached } => (range, Some(cached)),
            State::Cached(range) => (range, None),
            State::None => return self.hits(&[0], ask),
            State::Stopped(stop) => return Ok(Some(stop)),
        };
        let phase = self.rng.random_range(0..=window(self.run));
        let warm_up = (warm_up_bytes(self.run) + phase) / block_size;
        let wanted = warm_up + scan_bytes(self.run) / block_size;
        let mut blocks: Vec<u64> = (range.start..range.end.min(range.start + wanted)).collect();
        let all = blocks.len() as u64;
        blocks.retain(|block| !self.spans.is_buffered(*block));
        // What lies between them the kernel reads as well.
        let whole =
            |taken: Taken| Taken { blocks: taken.blocks * all / (blocks.len() as u64).max(1), ..taken };
        let warm_up = (warm_up as usize).min(blocks.len() / 2);
        let order = Order { blocks: &blocks, way: Way::Scan, warm_up, budget_ns: self.budget_ns };
        let mut read = blocks.len();
        if let Some(cached) = cached {
            let taken = self.server.read(&order, ask)?;
            read = taken.read as usize;
            self.add(Kind::DeviceSequential, whole(taken), share_of(cached, &taken, &range));
            // What is still read ahead must not be in the next turn's way, and can't be dropped before it has come.
            self.server.settle();
            if taken.stop.is_some() {
                return Ok(taken.stop);
            }
        }
        if !self.run.through_cache {
            return self.release();
        }
        // What was just read, as far as it is in the OS cache now.
        let again = &blocks[..read.min((OS_BYTES / block_size) as usize)];
        if !self.spans.is_cached(again)? {
            return self.release();
        }
        let random: Vec<u64> = (0..OS_RANDOM_BLOCKS.min(again.len()))
            .map(|_| again[self.rng.random_range(0..again.len())])
            .collect();
        for (kind, blocks, way) in
            [(Kind::OsSequential, again, Way::Scan), (Kind::OsRandom, &random[..], Way::Single)]
        {
            let order = Order { blocks, way, warm_up: 0, budget_ns: self.budget_ns };
            let taken = self.server.read(&order, ask)?;
            self.add(kind, taken, 0);
            if taken.stop.is_some() {
                return Ok(taken.stop);
            }
        }
        // The last of them are in shared buffers.
        if let Some(stop) = self.hits(&random[random.len().saturating_sub(HOT_BLOCKS)..], ask)? {
            return Ok(Some(stop));
        }
        self.release()
    }

    /// From shared buffers, where the first of many rounds may bring them.
    fn hits(&mut self, blocks: &[u64], ask: &mut Ask<'_>) -> Result<Option<Stop>> {
        let rounds = blocks.repeat(HOT_READS / blocks.len().max(1));
        let order =
            Order { blocks: &rounds, way: Way::Single, warm_up: blocks.len(), budget_ns: self.budget_ns };
        let taken = self.server.read(&order, ask)?;
        self.add(Kind::Shared, taken, 0);
        Ok(taken.stop)
    }

    /// From the device at random, one at a time.
    fn at_random(&mut self, ask: &mut Ask<'_>) -> Result<Option<Stop>> {
        let (blocks, cached) = match self.spans.scatter(RANDOM_BLOCKS, ask)? {
            Ok(scattered) => scattered,
            Err(stop) => return Ok(Some(stop)),
        };
        if blocks.len() < LEAST_BLOCKS {
            return self.release();
        }
        let order = Order { blocks: &blocks, way: Way::Single, warm_up: 0, budget_ns: self.budget_ns };
        let taken = self.server.read(&order, ask)?;
        self.add(Kind::DeviceRandom, taken, cached);
        self.release()?;
        Ok(taken.stop)
    }

    /// From the device, ascending with gaps.
    fn with_gaps(&mut self, concurrency: usize, density: usize, ask: &mut Ask<'_>) -> Result<Option<Stop>> {
        let (range, cached) = match self.spans.take(ask)? {
            State::Cold { range, cached } => (range, cached),
            State::Cached(_) | State::None => return Ok(None),
            State::Stopped(stop) => return Ok(Some(stop)),
        };
        let span = SPAN / u64::from(self.run.source.block_size());
        let end = range.end.min(range.start + span);
        let mut blocks: Vec<u64> =
            (range.start..end).filter(|block| !self.spans.is_buffered(*block)).collect();
        // Those that are passed over are made up for by others, as far as there are some.
        let share = self.run.densities[density] * (end - range.start) as f64 / blocks.len().max(1) as f64;
        if share > MOST_SHARE {
            return self.release();
        }
        blocks.retain(|_| self.rng.random_bool(share.min(1.0)));
        if blocks.len() >= LEAST_BLOCKS {
            let way = Way::Bitmap(self.run.concurrencies[concurrency]);
            let order = Order { blocks: &blocks, way, warm_up: 0, budget_ns: self.budget_ns };
            let taken = self.server.read(&order, ask)?;
            let cached = share_of(cached, &taken, &range);
            self.add(Kind::Sparse(concurrency, density), taken, cached);
            self.server.settle();
            if taken.stop.is_some() {
                return Ok(taken.stop);
            }
        }
        self.release()
    }

    /// Adds a turn, of whose blocks about so many were in the OS cache.
    fn add(&mut self, kind: Kind, taken: Taken, cached: u64) {
        let hit_ns = self.measured.hit_ns();
        let hits = taken.hits as f64 / taken.blocks.max(1) as f64;
        let counts = match kind {
            Kind::Shared => hits >= 1.0 - MOST_HITS / 10.0,
            _ => hits <= MOST_HITS,
        };
        let series = match kind {
            Kind::Shared => &mut self.measured.shared,
            Kind::OsSequential => &mut self.measured.os_sequential,
            Kind::OsRandom => &mut self.measured.os_random,
            Kind::DeviceSequential => &mut self.measured.device_sequential,
            Kind::DeviceRandom => &mut self.measured.device_random,
            Kind::Sparse(concurrency, density) => &mut self.measured.sparse[concurrency][density],
        };
        let (ns, blocks) = match kind {
            Kind::Shared => (taken.ns, taken.blocks),
            _ => {
                let of_hits = (taken.hits as f64 * hit_ns) as u64;
                (taken.ns.saturating_sub(of_hits), taken.blocks - taken.hits)
            }
        };
        series.add(ns, blocks, cached, taken.read, counts);
    }

    /// Nothing comes from the device, and either nothing else is wanted, or there is nothing but hits, which are known by now.
    fn is_in_vain(&self) -> bool {
        let only_hits =
            self.measured.os_sequential.turns() == 0 && self.measured.shared.turns() >= MIN_SLICES;
        self.spans.why_none().is_some() && (self.run.only_cold || only_hits)
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
        let narrow = |series: &Series| series.relative_half_width().is_some_and(|half| half <= wanted);
        let enough = |series: &Series| series.turns() >= LEAST_SPARSE_TURNS;
        pair.into_iter().all(narrow) && (!is_cold || measured.sparse.iter().flatten().all(enough))
    }

    /// Waits as long as the rate limit says. The time may be up.
    fn pause(&mut self, ask: &mut Ask<'_>) -> Option<Stop> {
        let now = self.clock.now();
        if now >= self.deadline {
            return Some(self.at_deadline);
        }
        let left = Duration::from_nanos(self.deadline - now);
        let limits = Limits { duration: left, shared: Duration::MAX, ..self.run.limits };
        let mut ask = || ask();
        let mut pace = Pace::start(&limits, self.clock, &mut ask);
        self.measured.paused |= self.next_due > pace.started();
        pace.sleep_until(self.next_due)
            .map(|stop| if stop == Stop::Duration { self.at_deadline } else { stop })
    }
}

/// Of the blocks of a stretch that were cached, about as many as were timed.
fn share_of(cached: u64, taken: &Taken, range: &std::ops::Range<u64>) -> u64 {
    cached * taken.blocks / (range.end - range.start).max(1)
}

/// Whose time a turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Shared,
    OsSequential,
    OsRandom,
    DeviceSequential,
    DeviceRandom,
    Sparse(usize, usize),
}

/// What is expected to be read ahead beyond a turn's blocks, in bytes.
fn window(run: &Run<'_>) -> u64 {
    run.window.min(MOST_WINDOW)
}

fn scan_bytes(run: &Run<'_>) -> u64 {
    (WINDOWS_OF_SCAN * window(run)).max(LEAST_SCAN)
}

fn warm_up_bytes(run: &Run<'_>) -> u64 {
    window(run).max(LEAST_WARM_UP)
}
