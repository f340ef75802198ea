//! Which of the looks at arriving blocks were waits: a bound of latencies is about answers of the device, and
//! not about copies of what the kernel or the server has read ahead, of which there may be hundreds between
//! two answers.
//!
//! The kernel counts how often a thread has put itself to sleep (`ru_nvcsw`), which it does when it waits for
//! the device, for an I/O worker or for another process that reads the same block, and not when it copies or
//! loses its processor. The count costs a call into the kernel, so it is read only after looks that were
//! slow: it tells how many waits there were since the last reading, all of which but the present one were
//! fast.
//!
//! # Limitations and caveats
//! - Waits for a lock are waits, too.
//! - A slow look without a wait of its own is taken for one if there was a fast wait since the last slow
//!   look.
//! - No thread sleeps while it polls a device: the answers of such a device are not seen.
//!
//! Sources: getrusage(2); `__schedule` in the kernel's `kernel/sched/core.c`.

use nix::sys::resource::{UsageWho, getrusage};

use crate::run::budget::LatencyBound;

/// Knows how often this thread has waited.
pub(crate) struct Waits {
    count: fn() -> u64,
    /// The count at the last reading. None where nothing is counted, so each look is taken for a wait.
    known: Option<u64>,
}

impl Waits {
    /// Counts the waits of this thread from now on.
    pub(crate) fn here() -> Self {
        Self::by(voluntary_switches)
    }

    fn by(count: fn() -> u64) -> Self {
        // A process that serves a client has waited for it: 0 means that waits are not counted.
        Self { count, known: Some(count()).filter(|&known| known > 0) }
    }

    /// Tells `latency` of a look at what has arrived, which took `ns` nanoseconds.
    #[inline]
    pub(crate) fn looked(&mut self, ns: u64, latency: &mut LatencyBound) {
        let Some(known) = &mut self.known else { return latency.observe(ns) };
        if !latency.is_slow(ns) {
            return;
        }
        let now = (self.count)();
        let waits = now.saturating_sub(*known);
        *known = now;
        if waits > 0 {
            latency.observe_fast(waits - 1);
            latency.observe(ns);
        }
    }

    /// Runs `f`, whose waits don't count.
    pub(crate) fn leave_out<T>(&mut self, f: impl FnOnce() -> T) -> T {
        let before = (self.count)();
        let result = f();
        let waits = (self.count)().saturating_sub(before);
        self.known = self.known.map(|known| known + waits);
        result
    }
}

/// How often this thread has put itself to sleep; 0 where that is not known.
fn voluntary_switches() -> u64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.voluntary_context_switches() as u64)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;

    thread_local! {
        static COUNT: Cell<u64> = const { Cell::new(7) };
    }

    const BOUND_NS: u64 = 300_000;

    fn wait() {
        COUNT.set(COUNT.get() + 1);
    }

    fn bound() -> LatencyBound {
        LatencyBound::within(Duration::from_nanos(BOUND_NS))
    }

    #[test]
    fn copies_between_two_answers_do_not_hide_that_they_are_slow() {
        let (mut waits, mut latency) = (Waits::by(|| COUNT.get()), bound());
        // A window of 8 MiB is a wait for the device, and 127 looks at what is there.
        let answers = (1..100).find(|_| {
            wait();
            waits.looked(4_000_000, &mut latency);
            (0..127).for_each(|_| waits.looked(20_000, &mut latency));
            latency.is_passed()
        });
        assert_eq!(answers, Some(11));
    }

    #[test]
    fn who_only_copies_has_not_waited() {
        let (mut waits, mut latency) = (Waits::by(|| COUNT.get()), bound());
        (0..1000).for_each(|_| waits.looked(BOUND_NS + 1, &mut latency));
        assert!(!latency.is_passed());
        waits.leave_out(wait);
        (0..1000).for_each(|_| waits.looked(BOUND_NS + 1, &mut latency));
        assert_eq!(latency, self::bound());
    }

    #[test]
    fn fast_answers_are_counted_as_well() {
        // Ten of a thousand, and eleven.
        for (every, passed) in [(100, false), (90, true)] {
            let (mut waits, mut latency) = (Waits::by(|| COUNT.get()), bound());
            for answer in 1..=100_000 {
                wait();
                waits.looked(if answer % every == 0 { BOUND_NS + 1 } else { 1000 }, &mut latency);
            }
            assert_eq!(latency.is_passed(), passed, "{every}");
        }
    }

    #[test]
    fn where_waits_are_not_counted_each_look_is_one() {
        let (mut waits, mut latency) = (Waits::by(|| 0), bound());
        (0..11).for_each(|_| waits.looked(BOUND_NS + 1, &mut latency));
        assert!(latency.is_passed());
    }

    #[test]
    fn the_kernel_counts_sleeps() {
        let before = voluntary_switches();
        std::thread::sleep(Duration::from_millis(1));
        assert!(voluntary_switches() > before);
    }
}
