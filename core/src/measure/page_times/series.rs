//! The turns of one way.

use crate::machine::observer::IoDelta;
use crate::measure::page_times::Estimate;
use crate::stats::{self, Interval, MIN_SLICES, Slice, median};

/// What the turns of one way took.
#[derive(Debug, Clone, Default)]
pub struct WaySeries {
    turns: Vec<Slice>,
    cached: u64,
    read: u64,
    discarded: u64,
    cost: Option<IoDelta>,
    is_left_out: bool,
    account: Fetched,
}

/// What turns asked the device for, and what the account of bytes fetched has of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Fetched {
    /// Blocks that were read and neither in the OS cache nor hits, as far as that is known.
    pub(super) blocks: u64,
    /// Bytes in the account.
    pub(super) bytes: u64,
}

impl WaySeries {
    /// Of a point that had no room in the time.
    pub(super) fn left_out() -> Self {
        Self { is_left_out: true, ..Self::default() }
    }

    /// Was it left out, since turns take too long for all points?
    pub fn is_left_out(&self) -> bool {
        self.is_left_out
    }

    /// Adds a turn that read `read` blocks and timed `blocks`, of which about `cached` were in the OS cache.
    /// One that does not count adds only to `read` and `discarded`.
    pub(super) fn add(&mut self, ns: u64, blocks: u64, cached: u64, read: u64, counts: bool) {
        self.read += read;
        if !counts {
            self.discarded += 1;
        } else if blocks > 0 {
            self.turns.push(Slice { ns, work: blocks });
            self.cached += cached;
        }
    }

    /// What a turn cost that asked the device for `blocks` blocks, and what else the devices did meanwhile.
    pub(super) fn add_cost(&mut self, blocks: u64, cost: IoDelta) {
        if let Some(bytes) = cost.fetched_bytes() {
            self.account.blocks += blocks;
            self.account.bytes += bytes;
        }
        self.cost = self.cost.take().into_iter().chain([cost]).reduce(IoDelta::then);
    }

    /// What all turns cost together, and what else the devices did; None for turns that read from memory.
    pub fn cost(&self) -> Option<&IoDelta> {
        self.cost.as_ref()
    }

    /// What the account has of those turns for which it is known.
    pub(super) fn account(&self) -> Fetched {
        self.account
    }

    /// Turns that count.
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// Turns that did not count, because too many of their blocks were in shared buffers.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Blocks that were timed.
    pub fn blocks(&self) -> u64 {
        Slice::sum(&self.turns).work
    }

    /// Blocks read in all.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// Percent of the blocks that the OS cache held before.
    pub fn cached_pct(&self) -> Option<f64> {
        let blocks = self.blocks();
        (blocks > 0).then(|| (self.cached as f64 / blocks as f64 * 100.0).min(100.0))
    }

    /// The turns without the warm-up, and without those that took far longer than the others, if these are
    /// few. Each weighs the same, as a sample of an equal stretch: a slow one was cut short.
    fn steady(&self) -> Vec<Slice> {
        let times = self.without_warm_up();
        let usual = median(&times).unwrap_or(f64::INFINITY);
        let slow = times.iter().filter(|time| **time > FAR_SLOWER * usual).count();
        // Many slow turns are no accident.
        let longest = if slow * MOST_SLOW <= times.len() { FAR_SLOWER * usual } else { f64::INFINITY };
        let steady = times.into_iter().filter(|time| *time <= longest);
        steady.map(|time| Slice { ns: (time * WEIGHT as f64) as u64, work: WEIGHT }).collect()
    }

    /// Nanoseconds per block of each turn but the first, which is warm-up, if enough are left.
    fn without_warm_up(&self) -> Vec<f64> {
        let times = Slice::times(&self.turns);
        if times.len() > stats::MIN_TURNS { times[1..].to_vec() } else { times }
    }

    /// The time of a block: the mean of the turns, since a device's few slow requests belong to it.
    pub fn of_device(&self) -> Option<Estimate> {
        let steady = self.steady();
        Some(estimate(Slice::sum(&steady).ns_each()?, of_mean(&steady)))
    }

    /// The time of a block: the median turn. Turns in memory take a few microseconds, and one in which
    /// another process had the processor says nothing of memory.
    pub fn of_memory(&self) -> Option<Estimate> {
        let times = Slice::times(&self.turns);
        Some(estimate(median(&times)?, stats::of_median(&times)))
    }

    /// Nanoseconds per block of the last turn.
    pub(super) fn last(&self) -> Option<f64> {
        self.turns.last()?.ns_each()
    }

    /// Turns that were left out because they took far longer than the others.
    pub fn slow(&self) -> usize {
        self.without_warm_up().len() - self.steady().len()
    }

    /// Half the width of the mean's interval over its value.
    pub(super) fn relative_half_width(&self) -> Option<f64> {
        of_mean(&self.steady()).map(|interval| interval.relative_half_width())
    }

    /// Is the mean known, with a relative half width of at most `most`?
    pub(super) fn is_within(&self, most: f64) -> bool {
        self.relative_half_width().is_some_and(|half| half <= most)
    }
}

/// A turn that took this many times the median turn's time is slow. Slow turns are left out if no more than
/// one in `MOST_SLOW` is.
const FAR_SLOWER: f64 = 4.0;
const MOST_SLOW: usize = 10;

/// What each turn weighs, though a slow one, which was cut short, has fewer blocks.
const WEIGHT: u64 = 1024;

/// The mean of these turns with its interval.
fn of_mean(turns: &[Slice]) -> Option<Interval> {
    if turns.len() >= MIN_SLICES { stats::of_ratio(turns) } else { stats::of_turns(turns) }
}

fn estimate(ns: f64, interval: Option<Interval>) -> Estimate {
    Estimate { us: ns / 1e3, interval: interval.map(|interval| (interval.low / 1e3, interval.high / 1e3)) }
}
