//! Random fetches of single blocks: how long each takes, how many a second, and what served it.
//!
//! A [`FetchOrder`] says which blocks in which order; a [`BlockReader`] fetches them at its depth; a
//! [`FetchRecord`] has what came of them. At depth 1 the end of one request is the start of the next, so that
//! one reading of the clock is enough. At a greater depth a request ends when it is seen to be done. It is a
//! closed loop: these are service times. Under a rate limit there is a schedule too, which is kept when a
//! request is late.
//!
//! The rate is over the wall clock of what is timed. Left out of it are the first request (warm-up, given
//! apart), and at a depth over 1 the time in which the queue is being filled or emptied, with the requests
//! that come back in it; a latency counts unless its request was one of those that filled the queue. Blocks
//! in holes are not fetched at all. While nothing is in flight, what is not to be timed is not: opening
//! files, finding holes, looking into the page cache, the caller's interrupts. While requests are in flight
//! all time counts, for the device goes on. So the segments of a relation are looked at before the run if
//! they are no more than 48, which stay open then. In a larger one each is looked at when its first block is
//! to be fetched; the latencies of requests in flight meanwhile don't count if that took over a twentieth of
//! the mean. Past the page cache, what is dirty there is written back before the run, in as many segments as
//! there are.
//!
//! Caveats. In a relation of more than 48 segments files are opened and closed all the time, a few
//! microseconds each: above 100,000 fetches a second that limits the rate. With looks in batches, a block
//! that an earlier fetch of the same batch brought in by readahead counts as the device's; the time of looks
//! beside requests in flight is part of the rate, which shows where the page cache serves nearly all. What is
//! below the kernel may cache too.

mod fetch_order;
mod fetches;
mod inspected;
mod queued;
mod sweep;
#[cfg(test)]
mod tests;

pub use fetch_order::{Fetch, FetchOrder, Found, Located, Look};
use fetches::Lead;
pub use fetches::{FetchRecord, Fetches, InFlight, Served};
pub use queued::Queued;
pub use sweep::{Engines, Step, Sweep, sweep};

use crate::Result;
use crate::measure::BlockReader;
use crate::measure::tiers::Tiers;
use crate::run::budget::{Budget, Limits, Stop, stopped};
use crate::run::stopwatch::Stopwatch;
use crate::stats::{Interval, Latencies, Slice};

/// Reads blocks at random.
pub type FetchReader<'a> = dyn for<'f, 'p> BlockReader<Fetches<'f, 'p>> + 'a;

/// What a run found.
#[derive(Debug, Clone, Default)]
pub struct RandomRun {
    /// Blocks fetched; holes, which are not, included.
    pub fetches: u64,
    /// What served them, where that is known.
    pub tiers: Tiers,
    /// Of the blocks that the device served, the bytes that the page cache did not have, or was not asked
    /// for.
    pub missing_bytes: u64,
    /// Blocks that were never written to their file.
    pub holes: u64,
    /// Blocks of which the kernel does not tell where they came from.
    pub unknown: u64,
    /// Time and fetches of the rate.
    pub rated: Slice,
    /// Nanoseconds per fetch over the wall clock, without the first slice, with its interval. None for fewer
    /// than [`crate::stats::MIN_SLICES`] slices, and where a limit held it back.
    pub interval: Option<Interval>,
    /// Drift over the run, see [`crate::stats::trend`].
    pub trend: Option<f64>,
    /// How many times as long a fetch took from some time on, see [`crate::stats::step_up`]; in a sweep, at
    /// all depths together.
    pub slowed: Option<f64>,
    /// From issue to completion.
    pub latencies: Latencies,
    /// Latencies by tier: shared, os, device.
    pub by_tier: [Slice; 3],
    /// The first request, in nanoseconds; None where single latencies are not known.
    pub warmup_ns: Option<u64>,
    /// Wall clock from start to end, pauses included, in nanoseconds.
    pub elapsed_ns: u64,
    /// A limit held it back, by a pause or by a queue that was not full: the rate is not the device's.
    pub throttled: bool,
    /// Blocks that were in buffers and not fetched, since that would not be cold.
    pub passed_over: u64,
    /// Was every block of the relation fetched, or passed over?
    pub complete: bool,
    /// Why it ended early; None when it fetched all.
    pub stop: Option<Stop>,
}

impl RandomRun {
    /// Fetches a second over the wall clock of what was timed; with pauses, over the whole run. None without
    /// any.
    pub fn iops(&self) -> Option<f64> {
        if self.throttled {
            return (self.with_data() > 0).then(|| self.with_data() as f64 * 1e9 / self.elapsed_ns as f64);
        }
        let ns = self.interval.map(|interval| interval.value).or_else(|| self.rated.ns_each());
        ns.map(|ns| 1e9 / ns)
    }

    /// This run and a later one as one, without an interval.
    fn plus(mut self, later: RandomRun) -> RandomRun {
        self.latencies.absorb(&later.latencies);
        for (all, more) in self.by_tier.iter_mut().zip(&later.by_tier) {
            *all = all.plus(*more);
        }
        self.tiers.absorb(&later.tiers);
        RandomRun {
            fetches: self.fetches + later.fetches,
            missing_bytes: self.missing_bytes + later.missing_bytes,
            holes: self.holes + later.holes,
            passed_over: self.passed_over + later.passed_over,
            unknown: self.unknown + later.unknown,
            rated: self.rated.plus(later.rated),
            interval: None,
            elapsed_ns: self.elapsed_ns + later.elapsed_ns,
            throttled: self.throttled || later.throttled,
            complete: self.complete || later.complete,
            stop: later.stop,
            ..self
        }
    }

    /// Blocks fetched that hold data.
    pub fn with_data(&self) -> u64 {
        self.fetches - self.holes
    }
}

/// Fetches blocks in this order by `reader`, as a part of `budget` with these limits; `progress` gets the
/// number of blocks fetched. [`FetchOrder::inspect_segments`] is done before the part begins.
pub fn run(
    fetch_order: &mut FetchOrder<'_>,
    reader: &mut FetchReader<'_>,
    limits: &Limits,
    budget: &mut Budget<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<RandomRun> {
    run_after(Lead::default(), fetch_order, reader, limits, budget, progress)
}

/// A run whose beginning makes no part of its rate.
fn run_after(
    lead: Lead,
    fetch_order: &mut FetchOrder<'_>,
    reader: &mut FetchReader<'_>,
    limits: &Limits,
    budget: &mut Budget<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<RandomRun> {
    // The budget keeps a reason to stop.
    stopped(fetch_order.inspect_segments(&mut || budget.poll()))?;
    let block_size = fetch_order.source().block_size();
    let mut watch = Stopwatch::start(limits.precision, budget.part(limits), progress);
    let record = FetchRecord::start(limits, block_size, watch.last()).after(lead);
    let mut fetches = Fetches { fetch_order, record };
    while watch.stop().is_none() && !fetches.fetch_order.is_over(watch.budget()) {
        fetches.fetch_order.prepare(watch.budget())?;
        watch.idle();
        fetches.record.resume(&mut watch);
        reader.read(&mut fetches, &mut watch)?;
    }
    let Fetches { fetch_order, record } = fetches;
    record.rest(&mut watch);
    let mut run = record.finish(&watch);
    run.complete = run.fetches + run.passed_over == fetch_order.len();
    run.stop = match run.stop {
        _ if run.complete => None,
        None if !fetch_order.is_complete() => Some(Stop::Bytes),
        stop => stop,
    };
    Ok(run)
}
