//! A run second by second, beside what the devices and the processors did.
//!
//! A mean hides an uneven rate: buffered reads come in bursts, cloud volumes run out of credit. Each second
//! is closed by the first request that ends after it, so that a slow one may make it longer; figures are per
//! second of what it really lasted. The devices' and the processors' figures are everyone's.

use super::Served;
use crate::machine::account::Account;
use crate::machine::cpu::{CpuShares, CpuTimes};
use crate::machine::device::{Activity, Leaf, Roots};
use crate::machine::observer::{Observer, Snapshot};
use crate::measure::tiers::Tiers;

/// Nominal length of a slice of the series, in nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;

/// What happened in about one second.
#[derive(Debug, Clone, Default)]
pub struct Second {
    /// Length in nanoseconds, all pauses included.
    pub length_ns: u64,
    /// Fetches that ended in it.
    pub fetches: u64,
    /// What served them, where that is known.
    pub tiers: Tiers,
    /// Sum of the latencies, and the greatest, in nanoseconds.
    pub latency_ns: (u64, u64),
    /// Fetches that `latency_ns` is of: those whose latency is known.
    pub timed: u64,
    /// What the devices did; None where one has no counters.
    pub activity: Option<Activity>,
    /// What the processors did; None where the kernel does not tell.
    pub cpu: Option<CpuShares>,
}

/// Collects the seconds of a run.
pub struct SecondSeries {
    leaves: Vec<Leaf>,
    roots: Roots,
    seconds: Vec<Second>,
    started: Option<Started>,
    /// What has come since then.
    open: Second,
}

/// The beginning of a second.
struct Started {
    at: u64,
    look: Snapshot,
    cpu: Option<CpuTimes>,
}

impl SecondSeries {
    /// Watches these devices.
    pub fn new(leaves: Vec<Leaf>, roots: Roots) -> Self {
        Self { leaves, roots, seconds: Vec::new(), started: None, open: Second::default() }
    }

    /// The seconds so far.
    pub fn into_seconds(self) -> Vec<Second> {
        self.seconds
    }

    /// Starts the first second at `now`.
    pub(super) fn start(&mut self, now: u64) {
        self.started = Some(self.begin(now));
    }

    fn begin(&self, at: u64) -> Started {
        Started { at, look: self.observer().look(), cpu: CpuTimes::read(&self.roots) }
    }

    fn observer(&self) -> Observer<'_> {
        Observer::new(Account::Own, &self.leaves, &self.roots)
    }

    #[inline]
    pub(super) fn add(&mut self, took: Option<u64>, served: Served) {
        self.open.fetches += 1;
        match served {
            Served::Shared => self.open.tiers.shared += 1,
            Served::Os => self.open.tiers.os += 1,
            Served::Device => self.open.tiers.device += 1,
            Served::Unknown => {}
        }
        if let Some(took) = took {
            let (sum, most) = self.open.latency_ns;
            self.open.latency_ns = (sum + took, most.max(took));
            self.open.timed += 1;
        }
    }

    /// Closes the second if it is over.
    pub(super) fn look(&mut self, now: u64) {
        if self.started.as_ref().is_some_and(|started| now - started.at >= SECOND_NS) {
            self.close(now);
            self.start(now);
        }
    }

    /// The run is over: closes the last second.
    pub(super) fn finish(&mut self, now: u64) {
        if self.started.as_ref().is_some_and(|started| now > started.at) && self.open.fetches > 0 {
            self.close(now);
        }
    }

    fn close(&mut self, now: u64) {
        let Some(started) = self.started.take() else { return };
        let cpu = CpuTimes::read(&self.roots);
        self.seconds.push(Second {
            length_ns: now - started.at,
            activity: self.observer().since(&started.look).activity,
            cpu: cpu.zip(started.cpu).and_then(|(now, before)| now.since(&before)),
            ..std::mem::take(&mut self.open)
        });
    }
}
