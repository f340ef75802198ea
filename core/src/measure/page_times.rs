//! Times of a block, measured in turns.
//!
//! A turn reads some blocks in one way: in order as a sequential scan, one by one at random, or ascending
//! with gaps at one density and one `effective_io_concurrency`. All ways take turns, sequential and random
//! ones after every few of the others, so that a drift of the disk's speed affects all of them. How the
//! server reads is up to a [`BlockReader`]; which blocks, whether they are cold, and what follows from the
//! times is here.
//!
//! What comes from the device is read from spans of which the OS cache holds nothing, and the span is dropped
//! from it afterwards: the cache is left about as it was found. Cached spans are emptied first only if
//! [`PageTimesRun::evicts`] allows it. After a sequential turn, before the span is dropped, the same blocks
//! are read again, from the OS cache, and some of them once more, from shared buffers.
//!
//! Where turns are slow, points of the curve are left out, so that the others have intervals (`points`).
//!
//! # Limitations and caveats
//! - The first part of a sequential turn, in which the kernel's readahead gets going, is not timed: a scan
//!   goes through it once a segment.
//! - A page that another session fetches into a span during its turn is dropped with it.
//! - Caches below the kernel are part of the device. A small relation is soon in them: see
//!   [`PageTimesResult::passes`]. A layer within the kernel that serves blocks without the storage is not:
//!   see [`PageTimesResult::is_borne_out`].
//! - Blocks found in shared buffers are counted and taken out of the time at what a hit takes; a turn with
//!   many of them does not count.
//!
//! Sources: `heapam.c`, `nodeBitmapHeapscan.c` and `read_stream.c` of PostgreSQL for how it reads; the
//! kernel's `mm/readahead.c`.

mod points;
mod series;
mod spans;
#[cfg(test)]
mod tests;
pub mod times;
pub mod tuple;
mod turns;

use std::time::Duration;

pub use self::series::WaySeries;
pub use self::spans::NotCold;
pub use self::times::{Estimate, MeasuredTime, PageTimes, Pattern, Sparse, Tier};
use self::turns::Turns;
use crate::Result;
use crate::files::RelationFiles;
use crate::machine::observer::{HeldBack, IoDelta, Observer};
use crate::measure::BlockReader;
use crate::run::budget::{Budget, Limits, Stop};

/// How the server reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As a sequential scan.
    Scan,
    /// One block after the other, each when it is needed, as an index scan.
    Single,
    /// As a bitmap heap scan at this `effective_io_concurrency`; at 0 each block when it is needed.
    Bitmap(u32),
}

/// What a turn asks of the server.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The blocks, in the order in which they are to be read.
    pub blocks: &'a [u64],
    /// How they are read.
    pub way: Way,
    /// How many of the first blocks are not timed.
    pub warm_up: usize,
    /// Nanoseconds after which blocks are timed in any case.
    pub lead_ns: u64,
    /// Nanoseconds of timed blocks after which no more is begun; [`LEAST_BLOCKS`] are read in any case.
    pub length_ns: u64,
    /// As many blocks are timed, however many there are.
    pub most: u64,
    /// Filled in by the reader: how many of the timed blocks were in shared buffers.
    pub hits: u64,
}

/// Fewest blocks that a turn times, however slow they are.
pub const LEAST_BLOCKS: usize = 16;

/// Half of an interval's width over the time: with more, advice would be another one the next time.
pub const ROUGHLY: f64 = 0.1;

/// Least share of the bytes asked for that the account must have. Others may bring some of the blocks.
const BORNE_OUT: f64 = 0.8;

/// Reads the blocks of turns.
pub type TurnReader<'a> = dyn for<'o> BlockReader<Order<'o>> + 'a;

/// What is to be measured.
pub struct PageTimesRun<'a> {
    /// The relation.
    pub source: &'a RelationFiles,
    /// Densities of the sparse turns, each over 0 and at most 1.
    pub densities: &'a [f64],
    /// Concurrencies of the sparse turns, the most important first.
    pub concurrencies: &'a [u32],
    /// The kernel's readahead window, in bytes: pages up to this far beyond a turn's blocks may come into the
    /// OS cache.
    pub window: u64,
    /// Do reads go through the OS page cache?
    pub through_cache: bool,
    /// May pages be evicted that were cached before?
    pub evicts: bool,
    /// Does the run end if nothing comes from the device?
    pub only_cold: bool,
    /// Blocks in shared buffers, ascending: they are passed over.
    pub buffered: &'a [u32],
    /// Decides which blocks are read.
    pub seed: u64,
    /// Looks at the devices before and after each turn that reads from them. After one that the kernel may
    /// have read ahead of, waits a little until they have nothing to do.
    pub observer: &'a Observer<'a>,
    /// Bounds of all turns together; `max_bytes` is for each way: sequential, random, and each concurrency.
    /// What one way does not need, the others may use.
    pub limits: Limits,
    /// Time after which the run ends if each time is known to [`ROUGHLY`]; None to use all of the time.
    pub rough_after: Option<Duration>,
}

/// The times, and how they came about.
#[derive(Debug, Default)]
pub struct PageTimesResult {
    /// Hits in shared buffers.
    pub shared: WaySeries,
    /// From the OS cache, in order.
    pub os_sequential: WaySeries,
    /// From the OS cache, at random.
    pub os_random: WaySeries,
    /// From the device, in order.
    pub device_sequential: WaySeries,
    /// From the device, at random.
    pub device_random: WaySeries,
    /// From the device, ascending with gaps: for each concurrency, each density.
    pub sparse: Vec<Vec<WaySeries>>,
    /// Why nothing came from the device, if nothing did.
    pub not_cold: Option<NotCold>,
    /// How many times the turns went through the whole relation.
    pub passes: u64,
    /// About how long a run has to be until each time has an interval, if one has none now.
    pub needs: Option<Duration>,
    /// About how long a run has to be to measure each concurrency, if one was left out.
    pub needs_at_each: Option<Duration>,
    /// How many times as long a block from the device took from some turn on, see [`crate::stats::step_up`].
    pub slowed: Option<f64>,
    /// Did a limit make it pause between turns?
    pub paused: bool,
    /// Did it end because there was nothing left to read, from the device or the OS cache, though there had
    /// been?
    pub dried_up: bool,
    /// Why it ended; None where there was nothing, or nothing more, to read.
    pub stop: Option<Stop>,
}

impl PageTimesResult {
    /// All ways that read from the device.
    fn ways_of_device(&self) -> impl Iterator<Item = &WaySeries> {
        let plain = [&self.device_sequential, &self.device_random];
        plain.into_iter().chain(self.sparse.iter().flatten())
    }

    /// Did others use the device beside the reads of a pattern? The points of the curve count as one pattern,
    /// since each has few turns.
    pub fn is_disturbed(&self) -> bool {
        let sparse = self.sparse.iter().flatten().filter_map(WaySeries::cost).cloned().reduce(IoDelta::then);
        let plain = [&self.device_sequential, &self.device_random].into_iter().filter_map(WaySeries::cost);
        plain.chain(&sparse).any(IoDelta::is_disturbed)
    }

    /// Does the account of bytes fetched bear out that what was read as the device's came from storage? It
    /// does not where a layer below the page cache serves the blocks (FUSE), or fetches fewer bytes for them
    /// (compression). None where the account is unknown, or nothing was read.
    pub fn is_borne_out(&self, block_size: u64) -> Option<bool> {
        let all = self.ways_of_device().map(WaySeries::account);
        let (blocks, bytes) = all.fold((0, 0), |sum, of_way| (sum.0 + of_way.blocks, sum.1 + of_way.bytes));
        (blocks > 0).then(|| bytes as f64 >= BORNE_OUT * (blocks * block_size) as f64)
    }

    /// What the server's control group held back of the reads from the device.
    pub fn held_back(&self) -> HeldBack {
        let all = self.ways_of_device().filter_map(WaySeries::cost);
        all.map(|cost| cost.held_back.clone()).reduce(HeldBack::then).unwrap_or_default()
    }

    /// What a hit takes, in nanoseconds; None if no turn tells.
    pub fn hit_ns(&self) -> Option<f64> {
        self.shared.of_memory().map(|time| time.us * 1e3)
    }
}

/// Measures until the time or the bytes are used up, the intervals are as narrow as asked for, or there is
/// nothing left to read. `report` hears how many turns are done.
///
/// # Errors
/// Errors of the files that are read.
pub fn measure(
    run: &PageTimesRun<'_>,
    reader: &mut TurnReader<'_>,
    budget: &mut Budget<'_>,
    report: &mut dyn FnMut(u64),
) -> Result<PageTimesResult> {
    // What one way does not need, the others may use.
    let ways = (turns::PLAIN_WAYS + run.concurrencies.len()) as u64;
    let limits = Limits { max_bytes: run.limits.max_bytes.saturating_mul(ways), ..run.limits };
    let mut budget = budget.part(&limits);
    let length = run.rough_after.unwrap_or(budget.length()).min(budget.length());
    Turns::new(run, reader, report, length).measure(&mut budget)
}
