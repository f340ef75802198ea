//! What a caller bounds a run by.

use std::time::Duration;

use super::{BURST_NS, LatencyBound};

/// Bounds of one run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long the run may last.
    pub duration: Duration,
    /// Bytes of data that may be read, or made durable. Holes are free: they cost the device nothing.
    pub max_bytes: u64,
    /// Requests a second, if limited: single ones come evenly spaced, as those of an application might.
    pub max_iops: Option<u32>,
    /// MiB (2^20 bytes) a second, if limited: requests come in bursts, which wakes the processor less often.
    pub max_mib_s: Option<u32>,
    /// The share of its time, over 0 and at most 1, in which requests of the run may be in flight, if
    /// limited: the run rests after each such time.
    pub max_util: Option<f64>,
    /// Stop once half the interval's width is at most this share of the value (0.05 is ±5 %).
    pub precision: Option<f64>,
    /// The bound of its latencies.
    pub latency: LatencyBound,
}

impl Limits {
    /// No bounds at all.
    pub const fn none() -> Self {
        Self {
            duration: Duration::MAX,
            max_bytes: u64::MAX,
            max_iops: None,
            max_mib_s: None,
            max_util: None,
            precision: None,
            latency: LatencyBound::UNBOUND,
        }
    }

    /// These limits without what makes a run pause: for parts of a run whose pauses are made between them.
    pub fn without_pauses(self) -> Self {
        Self { max_iops: None, max_mib_s: None, max_util: None, ..self }
    }

    /// Does `left`, the time that is left, end the run before its own duration does? A run that may last as
    /// long as its statement loses a little to what comes before it, which is no news.
    pub fn are_cut_short_by(&self, left: Duration) -> bool {
        left < self.duration / 20 * 19
    }

    /// Does anything make a run pause?
    pub fn make_pauses(&self) -> bool {
        self.max_iops.is_some() || self.max_mib_s.is_some() || self.max_util.is_some()
    }

    /// The bytes a second that both rate limits allow for requests of `request_bytes`.
    pub fn bytes_per_s(&self, request_bytes: u64) -> Option<u64> {
        let by_count = self.max_iops.map(|n| u64::from(n) * request_bytes);
        let by_size = self.max_mib_s.map(|n| u64::from(n) << 20);
        [by_count, by_size].into_iter().flatten().min()
    }

    /// How far ahead of their schedule requests of `request_bytes` may be before they wait, in nanoseconds:
    /// to be woken for each takes more of the processor than the requests do.
    pub(crate) fn ahead_ns(&self, request_bytes: u64) -> u64 {
        let by_size = Self { max_iops: None, ..*self }.bytes_per_s(request_bytes);
        let is_by_size = by_size.is_some() && by_size == self.bytes_per_s(request_bytes);
        // A share of the time leaves no burst without its rest.
        if is_by_size && self.max_util.is_none() { BURST_NS } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tighter_rate_counts() {
        let none = Limits::none();
        let both = Limits { max_iops: Some(100), max_mib_s: Some(1), ..none };
        assert_eq!(both.bytes_per_s(8192), Some(819_200));
        assert_eq!(both.bytes_per_s(1 << 20), Some(1 << 20));
        assert_eq!(none.bytes_per_s(8192), None);
        assert_eq!((both.ahead_ns(8192), both.ahead_ns(1 << 20), none.ahead_ns(8192)), (0, BURST_NS, 0));
        assert!(both.make_pauses() && !both.without_pauses().make_pauses());
    }
}
