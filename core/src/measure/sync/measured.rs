//! The figures of one case, gathered over its turns.

use super::durability::NotDurable;
use crate::machine::device::Activity;
use crate::run::budget::Stop;
use crate::stats::{Interval, Latencies, Slice, Slices, of_ratio, of_turns};

/// Turns before which no interval is narrow enough: a few may be alike by luck.
const PRECISE_TURNS: usize = 5;

/// What is known of a case.
#[derive(Default)]
pub struct CaseTimes {
    /// How long each operation took. Of a commit: how long its committer waited.
    pub latencies: Latencies,
    /// Syncs that made them durable.
    pub flushes: u64,
    /// Did a limit make it pause?
    pub paused: bool,
    /// Why it was not measured for all of its duration.
    pub stop: Option<Stop>,
    /// Why it can't be done here.
    pub refused: Option<String>,
    /// Why the figures are not of syncs that make data durable, if that is known.
    pub not_durable: Option<NotDurable>,
    /// Time in which operations were done, and their number.
    pub(super) slices: Slices,
    /// Operations, the warm-up included, and the bytes that the storage got with them.
    pub(super) performed: u64,
    pub(super) bytes: u64,
    /// Each turn as one slice.
    turns: Vec<Slice>,
    device: Option<DeviceRequests>,
}

/// What the device did, for us and for everyone else.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceRequests {
    operations: u64,
    pub(super) writes: u64,
    pub(super) flushes: Option<u64>,
}

impl DeviceRequests {
    /// Write requests per operation.
    pub fn writes_per_op(&self) -> f64 {
        self.writes as f64 / self.operations as f64
    }

    /// Flushes of its cache per operation, where the kernel counts them.
    pub fn flushes_per_op(&self) -> Option<f64> {
        self.flushes.map(|flushes| flushes as f64 / self.operations as f64)
    }
}

impl CaseTimes {
    /// No figures yet.
    pub(super) fn new() -> Self {
        let device = Some(DeviceRequests { flushes: Some(0), ..DeviceRequests::default() });
        Self { device, ..Self::default() }
    }

    /// Operations that were measured.
    pub fn ops(&self) -> u64 {
        self.slices.total().work
    }

    /// Time spent in them, in nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        self.slices.total().ns
    }

    /// Nanoseconds per operation; None without any.
    pub fn ns_per_op(&self) -> Option<f64> {
        self.slices.total().ns_each()
    }

    /// Nanoseconds per operation with their 95 % interval: as wide as the turns differ from each other, or
    /// their slices, whichever is more. None with fewer than three turns.
    pub fn interval(&self) -> Option<Interval> {
        let value = self.ns_per_op()?;
        // The lower end may have been cut off at zero.
        let of_turns = of_turns(&self.turns)?;
        let of_turns = of_turns.high - of_turns.value;
        let of_slices = of_ratio(&self.slices.steady());
        let half = of_slices.map_or(of_turns, |slices| of_turns.max(slices.high - slices.value));
        Some(Interval { value, low: (value - half).max(0.0), high: value + half })
    }

    /// What the device did meanwhile; None if it has no counters, or nothing was done.
    pub fn device(&self) -> Option<DeviceRequests> {
        self.device.filter(|device| device.operations > 0)
    }

    /// Is there nothing more to do?
    pub(super) fn is_over(&self) -> bool {
        self.stop.is_some() || self.refused.is_some()
    }

    /// Adds an operation that took `ns` nanoseconds.
    #[inline]
    pub(super) fn record(&mut self, ns: u64) {
        self.latencies.record(ns);
        self.slices.add(ns, 1);
    }

    /// A turn has ended. Is the interval as narrow as wanted (0.05 is ±5 %)?
    pub(super) fn end_turn(&mut self, wanted: Option<f64>) {
        let (total, before) = (self.slices.total(), Slice::sum(&self.turns));
        if total.work > before.work {
            self.turns.push(Slice { ns: total.ns - before.ns, work: total.work - before.work });
        }
        let narrow =
            |wanted| self.interval().is_some_and(|interval| interval.relative_half_width() <= wanted);
        if self.turns.len() >= PRECISE_TURNS && wanted.is_some_and(narrow) {
            self.stop = self.stop.or(Some(Stop::Precise));
        }
    }

    /// Adds what the device did while `operations` were performed.
    pub(super) fn saw(&mut self, activity: Option<Activity>, operations: u64) {
        self.device = self.device.zip(activity).map(|(before, activity)| DeviceRequests {
            operations: before.operations + operations,
            writes: before.writes + activity.writes.requests,
            flushes: before.flushes.zip(activity.flushes).map(|(sum, now)| sum + now.requests),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_reaches_zero_keeps_its_upper_end() {
        let mut measured = CaseTimes::new();
        for ns in [100_000, 100_000, 400_000] {
            measured.record(ns);
            measured.end_turn(None);
        }
        // s = 173.2 us, t(0.975, 2) = 4.3027: half-width 4.3027 · 173.2 / √3 = 430.3, more than the 200
        // themselves.
        let interval = measured.interval().expect("3 turns");
        assert_eq!((interval.value, interval.low), (200_000.0, 0.0));
        assert!((interval.high - 630_270.0).abs() < 20.0, "{interval:?}");
        // A turn that came to nothing is none.
        measured.end_turn(None);
        assert_eq!(measured.interval(), Some(interval));
    }
}
