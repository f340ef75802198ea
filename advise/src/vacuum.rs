//! What the cost limits of vacuum allow it to read, and whether that is little beside what a volume reads.
//!
//! A vacuum adds up the costs of the pages that it visits, and sleeps for the delay whenever their sum has
//! reached the limit. So it reads no more than the limit allows in each delay, all workers of autovacuum
//! together.
//!
//! Source: the manual, "Cost-based Vacuum Delay"; `vacuum_delay_point` and `AutoVacuumUpdateCostLimit`.

use io_probe_core::stats::Interval;

/// Greatest limit that the server takes.
const MOST_LIMIT: u64 = 10_000;

/// A table that takes longer than this to read, in seconds, is worth a higher limit.
const LONG_S: f64 = 3600.0;

/// The share of what the volume reads that a vacuum is taken to be allowed.
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
    /// Bytes a second that it may read; None if nothing holds it back.
    pub fn read_s(&self) -> Option<f64> {
        self.bytes_s(self.miss)
    }

    /// The same if it changes each page.
    pub fn changed_s(&self) -> Option<f64> {
        self.bytes_s(self.miss + self.dirty)
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
    /// The volume reads no faster than the limit allows.
    KeepVolume,
    /// The table is read soon enough, or the volume reads little more.
    Keep,
    /// This limit lets it read up to its share of what the volume reads.
    Raise {
        /// The limit: as many times the present one as powers of two go into that share.
        to: u64,
        /// The greatest that keeps within the share.
        high: u64,
    },
}

/// What to do, if the volume reads so many bytes a second, and a table has so many bytes.
pub fn vacuum_limit(costs: &VacuumCosts, volume_s: Interval, table_bytes: f64) -> VacuumLimit {
    let Some(allowed) = costs.read_s() else { return VacuumLimit::KeepFree };
    if allowed >= volume_s.low {
        return VacuumLimit::KeepVolume;
    }
    let high = (costs.limit * SHARE * volume_s.low / allowed).min(MOST_LIMIT as f64);
    let doublings = (high / costs.limit).log2().floor();
    if table_bytes / allowed < LONG_S || doublings < 1.0 {
        return VacuumLimit::Keep;
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
        let large = 4_000_000.0 * MIB;
        let advice = |mib_s, bytes| vacuum_limit(&DEFAULT, known(mib_s), bytes);
        assert_eq!(advice(120.0, large), VacuumLimit::KeepVolume);
        assert_eq!(advice(1000.0, large), VacuumLimit::Keep, "half of that is hardly more");
        assert_eq!(advice(3200.0, 1_000_000.0 * MIB), VacuumLimit::Keep, "soon enough");
        // Half of 3,200 is 4.096 times 390.625.
        assert_eq!(advice(3200.0, large), VacuumLimit::Raise { to: 800, high: 819 });
        assert_eq!(advice(1e6, large), VacuumLimit::Raise { to: 6400, high: 10_000 });
        let free = VacuumCosts { delay_ms: 0.0, ..DEFAULT };
        assert_eq!(vacuum_limit(&free, known(3200.0), large), VacuumLimit::KeepFree);
    }

    proptest! {
        #[test]
        fn a_limit_is_one_that_the_volume_carries(
            limit in 1u32..10_000,
            delay_ms in 0.0..100.0,
            miss in 0u32..10_000,
            mib_s in 1.0..10_000.0,
            mib in 0.0..1e8,
        ) {
            let costs = VacuumCosts { limit: limit.into(), delay_ms, miss: miss.into(), ..DEFAULT };
            if let VacuumLimit::Raise { to, high } = vacuum_limit(&costs, known(mib_s), mib * MIB) {
                prop_assert!(u64::from(limit) < to && to <= high && high <= MOST_LIMIT);
                let raised = VacuumCosts { limit: to as f64, ..costs };
                prop_assert!(raised.read_s().is_some_and(|bytes| bytes <= SHARE * mib_s * MIB * 1.0001));
            }
        }
    }
}
