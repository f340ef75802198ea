//! What the cost limits of vacuum allow it to read, and whether that is little beside what a volume reads.
//!
//! A vacuum adds up the costs of the pages that it visits, and sleeps for the delay whenever their sum has
//! reached the limit, all workers of autovacuum together. The sleep comes on top of the work: what is allowed
//! in each delay is read in no less than the delay and the time that the volume takes for it. While some
//! workers sleep others work: together they may reach what the limit allows.
//!
//! Source: the manual, "Cost-based Vacuum Delay"; `vacuum_delay_point` and `AutoVacuumUpdateCostLimit`.

use io_probe_core::stats::Interval;

/// Greatest limit that the server takes.
const MOST_LIMIT: u64 = 10_000;

/// Sleeps that take longer than this for a table, in seconds, are worth a higher limit.
const LONG_S: f64 = 3600.0;

/// The share of what the volume reads that all workers together are taken to be allowed.
pub const SHARE: f64 = 0.5;

/// The costs that hold a vacuum back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VacuumCosts {
    /// Cost at which it sleeps.
    pub limit: f64,
    /// For so long, in milliseconds.
    pub delay_ms: f64,
    /// Of a page that was not in shared buffers.
    pub miss: f64,
    /// Of a page that it changes, besides.
    pub dirty: f64,
    /// Bytes of a page.
    pub page_bytes: u32,
}

impl VacuumCosts {
    /// Bytes a second that it may read at most; None if nothing holds it back.
    pub fn read_s(&self) -> Option<f64> {
        self.bytes_s(self.miss)
    }

    /// Bytes a second that it may read if it changes each page.
    pub fn changed_s(&self) -> Option<f64> {
        self.bytes_s(self.miss + self.dirty)
    }

    /// Seconds that it takes to read so many bytes of a volume that reads so many a second, with its sleeps.
    pub fn read_time(&self, bytes: f64, volume_s: f64) -> f64 {
        bytes / volume_s + self.read_s().map_or(0.0, |allowed| bytes / allowed)
    }

    fn bytes_s(&self, cost: f64) -> Option<f64> {
        let pages_s = self.limit / cost * 1e3 / self.delay_ms;
        pages_s.is_finite().then(|| pages_s * f64::from(self.page_bytes))
    }
}

/// What to do about the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VacuumLimit {
    /// Nothing holds a vacuum back.
    KeepFree,
    /// It sleeps for less than an hour while it reads the table: a higher limit gains no more than that.
    KeepSoon,
    /// Twice the limit would allow more than their share.
    KeepNear,
    /// This limit allows up to their share of what the volume reads.
    Raise {
        /// The limit: as many times the present one as powers of two go into that share.
        to: u64,
        /// The greatest that keeps within the share.
        high: u64,
    },
}

/// What to do about a table of so many bytes, if that does not depend on the volume.
pub fn kept_for(costs: &VacuumCosts, table_bytes: f64) -> Option<VacuumLimit> {
    match costs.read_s() {
        None => Some(VacuumLimit::KeepFree),
        Some(allowed) => (table_bytes / allowed < LONG_S).then_some(VacuumLimit::KeepSoon),
    }
}

/// What to do about one for which it sleeps longer, if the volume reads so many bytes a second.
pub fn vacuum_limit(costs: &VacuumCosts, volume_s: Interval) -> VacuumLimit {
    let Some(allowed) = costs.read_s() else { return VacuumLimit::KeepFree };
    let high = (costs.limit * SHARE * volume_s.low / allowed).min(MOST_LIMIT as f64);
    let doublings = (high / costs.limit).log2().floor();
    if doublings < 1.0 {
        return VacuumLimit::KeepNear;
    }
    VacuumLimit::Raise { to: (costs.limit * doublings.exp2()) as u64, high: high as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: f64 = 1_048_576.0;
    const DEFAULT: VacuumCosts =
        VacuumCosts { limit: 200.0, delay_ms: 2.0, miss: 2.0, dirty: 20.0, page_bytes: 8192 };

    fn known(mib_s: f64) -> Interval {
        Interval { value: mib_s * MIB, low: mib_s * MIB, high: mib_s * MIB }
    }

    #[test]
    fn the_defaults_by_hand() {
        // 100 pages in 2 ms are 390.625 MiB a second; 9.09 pages 35.5.
        assert_eq!(DEFAULT.read_s(), Some(390.625 * MIB));
        assert_eq!(DEFAULT.changed_s().map(|bytes| (bytes / MIB * 10.0).round()), Some(355.0));
        let free = |costs: VacuumCosts| assert_eq!(costs.read_s(), None, "{costs:?}");
        free(VacuumCosts { delay_ms: 0.0, ..DEFAULT });
        free(VacuumCosts { miss: 0.0, ..DEFAULT });
    }

    #[test]
    fn a_long_vacuum_of_a_fast_volume_gets_a_higher_limit() {
        let advice = |mib_s| vacuum_limit(&DEFAULT, known(mib_s));
        assert_eq!(advice(120.0), VacuumLimit::KeepNear);
        assert_eq!(advice(1500.0), VacuumLimit::KeepNear, "twice as much is over half of it");
        // Half of 3,200 is 4.096 times 390.625.
        assert_eq!(advice(3200.0), VacuumLimit::Raise { to: 800, high: 819 });
        assert_eq!(advice(1e6), VacuumLimit::Raise { to: 6400, high: 10_000 });
    }

    #[test]
    fn a_vacuum_sleeps_and_reads_in_turn() {
        // 1 GiB by 390.625 MiB a second, and by 100.
        assert!((DEFAULT.read_time(1024.0 * MIB, f64::INFINITY) - 2.62144).abs() < 1e-9);
        assert!((DEFAULT.read_time(1024.0 * MIB, 100.0 * MIB) - 12.86144).abs() < 1e-9);
        let free = VacuumCosts { delay_ms: 0.0, ..DEFAULT };
        assert_eq!(free.read_time(100.0, 10.0), 10.0);
    }

    #[test]
    fn a_table_for_which_it_sleeps_under_an_hour_needs_no_measurement() {
        assert_eq!(kept_for(&DEFAULT, 1_400_000.0 * MIB), Some(VacuumLimit::KeepSoon));
        assert_eq!(kept_for(&DEFAULT, 1_410_000.0 * MIB), None);
        let free = VacuumCosts { delay_ms: 0.0, ..DEFAULT };
        assert_eq!(kept_for(&free, 1e15), Some(VacuumLimit::KeepFree));
    }

    proptest! {
        #[test]
        fn a_limit_is_one_that_the_volume_carries(
            limit in 1u32..10_000,
            delay_ms in 0.0..100.0,
            miss in 0u32..10_000,
            mib_s in 1.0..10_000.0,
        ) {
            let costs = VacuumCosts { limit: limit.into(), delay_ms, miss: miss.into(), ..DEFAULT };
            if let VacuumLimit::Raise { to, high } = vacuum_limit(&costs, known(mib_s)) {
                prop_assert!(u64::from(limit) < to && to <= high && high <= MOST_LIMIT);
                let raised = VacuumCosts { limit: to as f64, ..costs };
                prop_assert!(raised.read_s().is_some_and(|bytes| bytes <= SHARE * mib_s * MIB * 1.0001));
            }
        }
    }
}
