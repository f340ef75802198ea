//! How slowly a device may answer a run's requests. Where it is slower, it has more to do than it can, and a
//! probe must not add to that.
//!
//! Requests are looked at by the thousand. As soon as more than ten of those took longer than the bound, it
//! is passed, whatever the rest will do: a run notices after eleven slow requests, and does not forgive them
//! for the fast ones that were before.

use std::time::Duration;

use super::Stop;
use crate::run::clock::nanoseconds;

/// What says how slowly a device may answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BoundSource {
    /// An option of the call.
    #[default]
    Call,
    /// The setting that bounds all calls.
    Setting,
}

/// Does the 99th percentile of a run's own latencies stay within its bound?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyBound {
    /// In nanoseconds.
    bound: u64,
    of: BoundSource,
    requests: u32,
    slow: u32,
}

impl LatencyBound {
    const REQUESTS: u32 = 1000;

    /// No bound: nothing is too slow.
    pub const UNBOUND: Self = Self { bound: u64::MAX, of: BoundSource::Call, requests: 0, slow: 0 };

    /// A bound that the call gives.
    pub fn within(bound: Duration) -> Self {
        Self { bound: nanoseconds(bound), ..Self::UNBOUND }
    }

    /// Says that `of` gives the bound.
    pub fn of(self, of: BoundSource) -> Self {
        Self { of, ..self }
    }

    /// Is there a bound?
    pub fn is_bound(&self) -> bool {
        self.bound != u64::MAX
    }

    /// A request took `ns` nanoseconds.
    #[inline]
    pub fn observe(&mut self, ns: u64) {
        self.slow += u32::from(self.is_slow(ns));
        self.answered(1);
    }

    /// `requests` requests took no longer than the bound.
    pub fn observe_fast(&mut self, requests: u64) {
        let whole = u64::from(Self::REQUESTS);
        if requests >= whole {
            self.answered(whole);
        }
        self.answered(requests % whole);
    }

    /// Is a request that takes `ns` nanoseconds over the bound?
    #[inline]
    pub fn is_slow(&self, ns: u64) -> bool {
        ns > self.bound
    }

    #[inline]
    fn answered(&mut self, requests: u64) {
        self.requests += requests as u32;
        // What has passed the bound stays so.
        if self.requests >= Self::REQUESTS && !self.is_passed() {
            self.requests %= Self::REQUESTS;
            self.slow = 0;
        }
    }

    /// Is the percentile over the bound?
    #[inline]
    pub fn is_passed(&self) -> bool {
        self.slow * 100 > Self::REQUESTS
    }

    /// The reason to stop, if the percentile is over the bound.
    #[inline]
    pub fn stop(&self) -> Option<Stop> {
        self.is_passed().then_some(Stop::Slow(self.of))
    }
}

impl Default for LatencyBound {
    fn default() -> Self {
        Self::UNBOUND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_one_in_a_hundred_is_too_many() {
        let bound = 1_000;
        let after = |slow_every: usize, requests: usize| {
            let mut latency = LatencyBound::within(Duration::from_nanos(bound));
            (1..=requests).find(|index| {
                latency.observe(if index % slow_every == 0 { bound + 1 } else { bound });
                latency.is_passed()
            })
        };
        // Ten of each thousand are one in a hundred, which is the bound itself.
        assert_eq!(after(100, 100_000), None);
        assert_eq!(after(90, 100_000), Some(990));
        assert_eq!(after(1, 100_000), Some(11));
        // It stays passed, and what was long ago doesn't help.
        let mut latency = LatencyBound::within(Duration::from_nanos(bound));
        (0..100_500).for_each(|_| latency.observe(1));
        (0..11).for_each(|_| latency.observe(2 * bound));
        assert!(latency.is_passed());
        (0..100_000).for_each(|_| latency.observe(1));
        assert!(latency.is_passed());
    }
}
