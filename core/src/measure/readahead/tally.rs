//! What the turns of one window say together.

use crate::machine::observer::IoDelta;
use crate::measure::scan::Scan;
use crate::stats::{Interval, Slice, error_of_median, median, of_median, of_turns};

/// A turn through the page cache was disturbed if its CPU time a block, over what a quarter of them took at
/// most, is more than this, and if that made a difference: memory for the page cache had to be found first.
const DISTURBED: f64 = 1.3;
/// It made a difference if it was more than this share of the turn's time.
const NOTICEABLE: f64 = 0.05;

/// What a turn weighs, so that no nanosecond is rounded off.
const WEIGHT: f64 = 1024.0;

/// One turn.
#[derive(Debug, Clone)]
pub(super) struct WindowTurn {
    /// The round that it was part of.
    pub(super) round: u64,
    /// Nanoseconds, and blocks that held data.
    pub(super) ns: u64,
    pub(super) blocks: u64,
    /// CPU time in nanoseconds.
    pub(super) cpu_ns: u64,
    pub(super) cost: IoDelta,
    /// Bytes that were in the page cache before; None where the kernel does not tell.
    cached_bytes: Option<u64>,
}

impl WindowTurn {
    fn ns_per_block(&self) -> f64 {
        self.ns as f64 / self.blocks as f64
    }

    fn cpu_per_block(&self) -> f64 {
        self.cpu_ns as f64 / self.blocks as f64
    }
}

/// The turns of one window.
#[derive(Debug, Clone, Default)]
pub struct WindowTally {
    turns: Vec<WindowTurn>,
    /// Do they go through the page cache? Then they may be disturbed.
    cached: bool,
    /// Wall clock of all turns, in nanoseconds.
    pub elapsed_ns: u64,
    /// Reads of blocks that were never written, which no rate counts.
    pub holes: u64,
    /// Blocks of all turns, also of those that do not count.
    pub(super) read: u64,
}

impl WindowTally {
    /// No turns yet, which will go through the page cache; those of the default go past it.
    pub(super) fn through_page_cache() -> Self {
        Self { cached: true, ..Self::default() }
    }

    /// Adds a turn. In the first round everything is new: that one is warm-up.
    pub(super) fn add(&mut self, round: u64, scan: &Scan, cpu_ns: u64, cost: IoDelta) {
        self.elapsed_ns += scan.elapsed_ns;
        self.holes += scan.holes;
        self.read += scan.blocks.end - scan.blocks.start;
        let (ns, blocks) = (scan.rated.ns, scan.rated.work);
        if round > 0 && blocks > 0 {
            self.turns.push(WindowTurn { round, ns, blocks, cpu_ns, cost, cached_bytes: scan.cached_bytes });
        }
    }

    /// The turns that nothing disturbed.
    pub(super) fn kept(&self) -> impl Iterator<Item = &WindowTurn> + Clone {
        let mut cpu: Vec<f64> = self.turns.iter().map(WindowTurn::cpu_per_block).collect();
        cpu.sort_by(f64::total_cmp);
        // Not the least: a processor may give a burst at first, and less from then on.
        let usual = cpu.get(cpu.len() / 4).copied().filter(|_| self.cached).unwrap_or(f64::INFINITY);
        self.turns.iter().filter(move |turn| {
            let (cpu, time) = (turn.cpu_per_block(), turn.ns_per_block());
            cpu <= DISTURBED * usual || cpu - usual <= NOTICEABLE * time
        })
    }

    /// How many turns nothing disturbed.
    pub fn turns(&self) -> u64 {
        self.kept().count() as u64
    }

    /// Blocks that these turns read.
    pub fn blocks(&self) -> u64 {
        self.kept().map(|turn| turn.blocks).sum()
    }

    /// Turns that were disturbed, and left out.
    pub fn disturbed(&self) -> u64 {
        self.turns.len() as u64 - self.turns()
    }

    /// Bytes of the blocks read that were in the page cache before; None where the kernel does not tell.
    pub fn cached_bytes(&self) -> Option<u64> {
        self.kept().map(|turn| turn.cached_bytes).sum()
    }

    /// What the turns cost the hardware together, had each block taken `added_ns` nanoseconds more.
    pub fn cost(&self, added_ns: f64) -> Option<IoDelta> {
        let cost = self.kept().map(|turn| turn.cost.clone()).reduce(IoDelta::then)?;
        let added_ms = added_ns * self.blocks() as f64 / 1e6;
        let activity = cost.activity.map(|activity| activity.spread_over(activity.elapsed_ms + added_ms));
        Some(IoDelta { activity, ..cost })
    }

    /// Nanoseconds a block: the median of the turns.
    pub(super) fn ns_per_block(&self) -> Option<f64> {
        median(&self.times())
    }

    /// Nanoseconds a block with their interval, if there are enough turns. Of a few, an outlier makes it
    /// wide.
    pub(super) fn interval(&self) -> Option<Interval> {
        let times = self.times();
        of_median(&times).or_else(|| {
            let slices: Vec<Slice> =
                times.iter().map(|ns| Slice { ns: (ns * WEIGHT) as u64, work: 1 }).collect();
            let (value, mean) = (median(&times)?, of_turns(&slices)?);
            let [low, high] = [mean.low / WEIGHT, mean.high / WEIGHT];
            Some(Interval { value, low: low.min(value), high: high.max(value) })
        })
    }

    fn times(&self) -> Vec<f64> {
        self.kept().map(WindowTurn::ns_per_block).collect()
    }
}

/// What the page cache costs a block: it finds memory, fills in its tree, and is entered by a system call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheCost {
    /// Nanoseconds a block.
    pub ns: f64,
    /// Half of its 95 % interval.
    pub half_ns: f64,
}

/// How far the CPU time may be off as an estimate of the wall clock, as a share: a part of the work may be
/// done while the device is busy.
const DOUBT: f64 = 0.5;

impl CacheCost {
    /// The cost, from turns through the page cache and their twins past it, with the same window, in the same
    /// rounds.
    pub(super) fn of(real: &WindowTally, twin: &WindowTally) -> Option<Self> {
        // The wall clock tells directly what is wanted, but it is a small difference of two times that vary
        // with the device's. The CPU time hardly varies, but some of it may be spent while the device is
        // busy. Both are weighted by how sure they are, and the result is no more than half as much again as
        // the CPU time. Nor is it below zero: no window is spared the page cache's work, so that a twin that
        // took longer says what its requests cost.
        let pairs = real.kept().filter_map(|real| {
            let twin = twin.kept().find(|twin| twin.round == real.round)?;
            Some((real.ns_per_block() - twin.ns_per_block(), real.cpu_per_block() - twin.cpu_per_block()))
        });
        let (wall, cpu): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let (by_wall, by_cpu) = (median(&wall)?, median(&cpu)?);
        let (error, doubt) = (error_of_median(&wall), DOUBT * by_cpu.abs());
        let weight = if error.is_finite() { doubt.powi(2) / (doubt.powi(2) + error.powi(2)) } else { 0.0 };
        let weight = if weight.is_finite() { weight } else { 1.0 };
        let ns = (by_cpu + weight * (by_wall - by_cpu)).clamp(0.0, (1.0 + DOUBT) * by_cpu.max(0.0));
        let deviation = if weight > 0.0 { error * weight.sqrt() } else { doubt };
        Some(Self { ns, half_ns: 1.96 * deviation })
    }

    /// The interval of the time with this cost, from that `without` it: both may be off.
    pub(super) fn added_to(self, without: Interval) -> Interval {
        let value = without.value + self.ns;
        let below = (without.value - without.low).hypot(self.half_ns);
        let above = (without.high - without.value).hypot(self.half_ns);
        Interval { value, low: (value - below).max(0.0), high: value + above }
    }
}
