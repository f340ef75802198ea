//! The turns of one way.

use crate::machine::observer::IoDelta;
use crate::measure::page_times::Estimate;
use crate::stats::{self, Interval, MIN_SLICES, Slice, median};

/// What the turns of one way took.
#[derive(Debug, Clone, Default)]
pub struct WaySeries {
    turns: Vec<Slice>,
    cached: u64,
    blocks: u64,
    read: u64,
    discarded: u64,
    cost: Option<IoDelta>,
}

impl WaySeries {
    /// Adds a turn that read `read` blocks and timed `blocks`, of which about `cached` were in the OS cache.
    /// One that does not count adds only to `read` and `discarded`.
    pub(super) fn add(&mut self, ns: u64, blocks: u64, cached: u64, read: u64, counts: bool) {
        self.read += read;
        if !counts {
            self.discarded += 1;
        } else if blocks > 0 {
            self.turns.push(Slice { ns, work: blocks });
            self.cached += cached;
            self.blocks += blocks;
        }
    }

    /// What a turn cost, and what else the devices did meanwhile.
    pub(super) fn add_cost(&mut self, cost: IoDelta) {
        self.cost = self.cost.take().into_iter().chain([cost]).reduce(IoDelta::then);
    }

    /// What all turns cost together, and what else the devices did; None for turns that read from memory.
    pub fn cost(&self) -> Option<&IoDelta> {
        self.cost.as_ref()
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
        self.blocks
    }

    /// Blocks read in all.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// Percent of the blocks that the OS cache held before.
    pub fn cached_pct(&self) -> Option<f64> {
        (self.blocks > 0).then(|| (self.cached as f64 / self.blocks as f64 * 100.0).min(100.0))
    }

    /// The turns without the warm-up, and without those that took far longer than the others, if these are
    /// few. Each weighs the same, as a sample of an equal stretch: a slow one was cut short.
    fn steady(&self) -> Vec<Slice> {
        let times = self.without_warm_up();
        let usual = median(&times).unwrap_or(f64::INFINITY);
        let slow = |time: &f64| *time > FAR_SLOWER * usual;
        // Many slow turns are no accident.
        let few = times.iter().filter(|time| slow(time)).count() * MOST_SLOW <= times.len();
        let weighed = |time: &f64| Slice { ns: (time * WEIGHT as f64) as u64, work: WEIGHT };
        times.iter().filter(|time| !few || !slow(time)).map(weighed).collect()
    }

    /// Nanoseconds per block of each turn but the first, which is warm-up, if enough are left.
    fn without_warm_up(&self) -> Vec<f64> {
        let times = per_block(&self.turns);
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
        let times = per_block(&self.turns);
        Some(estimate(median(&times)?, stats::of_median(&times)))
    }

    /// Turns that were left out because they took far longer than the others.
    pub fn slow(&self) -> usize {
        self.without_warm_up().len() - self.steady().len()
    }

    /// Half the width of the mean's interval over its value.
    pub(super) fn relative_half_width(&self) -> Option<f64> {
        of_mean(&self.steady()).map(|interval| interval.relative_half_width())
    }
}

/// A turn that took this many times the median turn's time is slow. Slow turns are left out if no more than
/// one in `MOST_SLOW` is.
const FAR_SLOWER: f64 = 4.0;
const MOST_SLOW: usize = 10;

/// What each turn weighs, though a slow one, which was cut short, has fewer blocks.
const WEIGHT: u64 = 1024;

fn per_block(turns: &[Slice]) -> Vec<f64> {
    turns.iter().filter_map(|turn| turn.ns_each()).collect()
}

/// The mean of these turns with its interval.
fn of_mean(turns: &[Slice]) -> Option<Interval> {
    if turns.len() >= MIN_SLICES { stats::of_ratio(turns) } else { stats::of_turns(turns) }
}

fn estimate(ns: f64, interval: Option<Interval>) -> Estimate {
    Estimate { us: ns / 1e3, interval: interval.map(|interval| (interval.low / 1e3, interval.high / 1e3)) }
}
