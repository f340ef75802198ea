//! What the figures of one run can't be together: such a run is void.
//!
//! # Limitations and caveats
//! - Where the server reads ahead, or a device has no counters, there is nothing to hold figures against.

use crate::stats::Slice;

/// In a short run, a moment without a CPU while a queue is emptied would count for much; and with few
/// requests, so would those in flight at its ends.
const ENOUGH_NS: u64 = 500_000_000;
const ENOUGH_EACH: u64 = 20;

/// Requests in flight, as a share of the depth: fewer than this where a queue was always full, and more than
/// this anywhere, contradict each other.
const LEAST_FULL: f64 = 0.85;
const MOST_FULL: f64 = 1.1;

/// Did a device move clearly less than was sent to it past the page cache? False where it has no counters.
pub fn moved_less(moved: Option<u64>, sent: u64) -> bool {
    moved.is_some_and(|moved| (moved as f64) < 0.9 * sent as f64)
}

/// Requests in flight by Little's law (rate times latency), as a share of the depth. None where there is too
/// little to tell.
fn fullness(latencies: Slice, rated: Slice, depth: u64) -> Option<f64> {
    let is_enough = rated.ns >= ENOUGH_NS && rated.work >= ENOUGH_EACH * depth;
    let latency = latencies.ns_each().filter(|_| is_enough)?;
    Some(latency * rated.work as f64 / rated.ns as f64 / depth as f64)
}

/// Were more requests in flight than may have been?
pub fn exceeds_depth(latencies: Slice, rated: Slice, depth: u64) -> bool {
    fullness(latencies, rated, depth).is_some_and(|share| share > MOST_FULL)
}

/// Were more requests in flight than may have been, or fewer than a queue held that was always full?
pub fn differs_from_depth(latencies: Slice, rated: Slice, depth: u64) -> bool {
    fullness(latencies, rated, depth).is_some_and(|share| !(LEAST_FULL..=MOST_FULL).contains(&share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_times_latency_is_what_was_in_flight() {
        // A thousand in a second at 8 ms each: eight at a time.
        let mut latencies = Slice::default();
        (0..1000).for_each(|_| latencies.add(8_000_000));
        let second = Slice { ns: 1_000_000_000, work: 1000 };
        for (depth, differs, exceeds) in
            [(8, false, false), (7, true, true), (10, true, false), (9, false, false)]
        {
            assert_eq!(differs_from_depth(latencies, second, depth), differs, "{depth}");
            assert_eq!(exceeds_depth(latencies, second, depth), exceeds, "{depth}");
        }
        // Too short, and too few.
        assert!(!exceeds_depth(latencies, Slice { ns: 400_000_000, work: 1000 }, 1));
        assert!(!exceeds_depth(latencies, Slice { ns: 1_000_000_000, work: 19 }, 1));
    }

    #[test]
    fn a_device_moves_what_is_sent_to_it() {
        assert!(!moved_less(None, 100) && !moved_less(Some(90), 100) && moved_less(Some(89), 100));
    }
}
