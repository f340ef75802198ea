//! The clock that every timed span reads, and what reading it costs.
//!
//! `CLOCK_MONOTONIC` in nanoseconds: it is slewed by NTP but never stepped, and a read goes through
//! the vDSO without entering the kernel. Loops take the clock as a parameter, so that tests run on a
//! clock of their own.

use std::time::Duration;

/// A source of monotonic time.
pub trait Clock {
    /// Nanoseconds since an arbitrary, fixed moment.
    fn now(&self) -> u64;

    /// Lets at least `duration` pass.
    fn sleep(&self, duration: Duration);
}

/// `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> u64 {
        ns_of(libc::CLOCK_MONOTONIC)
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// What one read of [`Monotonic`] costs, in nanoseconds: the least mean of several short batches,
/// since everything that disturbs a batch makes it longer.
pub fn cost_ns() -> f64 {
    const BATCHES: usize = 20;
    const READS: u32 = 500;
    let clock = Monotonic;
    (0..BATCHES)
        .map(|_| {
            let start = clock.now();
            for _ in 0..READS {
                std::hint::black_box(clock.now());
            }
            (clock.now() - start) as f64 / f64::from(READS + 1)
        })
        .fold(f64::INFINITY, f64::min)
}

/// The resolution that the kernel states for [`Monotonic`], in nanoseconds.
pub fn resolution_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as in `ns_of`.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// CPU time of the calling thread so far, in nanoseconds.
pub fn cpu_of_thread_ns() -> u64 {
    ns_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of this process so far, of all its threads and of those that the kernel runs for its io_uring, in
/// nanoseconds.
pub fn cpu_of_process_ns() -> u64 {
    ns_of(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// What a clock of the kernel shows, in nanoseconds.
#[inline]
fn ns_of(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: t is a valid timespec, and every Linux has the clocks that are asked for, so the call fills it.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// A duration in nanoseconds, or `u64::MAX` if they don't fit.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A clock that moves only when told to, or by a sleep, which takes no real time.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Manual(std::sync::atomic::AtomicU64);

#[cfg(test)]
impl Manual {
    /// Moves the clock forward by `ns` nanoseconds.
    pub(crate) fn advance(&self, ns: u64) {
        self.0.fetch_add(ns, std::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(test)]
impl Clock for Manual {
    fn now(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn sleep(&self, duration: Duration) {
        self.advance(nanoseconds(duration));
    }
}

/// A manual clock that also moves by 20 us whenever it is read: real calls take time on it.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Ticking(pub(crate) Manual);

#[cfg(test)]
impl Clock for Ticking {
    fn now(&self) -> u64 {
        self.0.advance(20_000);
        self.0.now()
    }

    fn sleep(&self, duration: Duration) {
        self.0.sleep(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_never_goes_back() {
        let mut last = Monotonic.now();
        for _ in 0..10_000 {
            let now = Monotonic.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn cost_is_that_of_a_read_not_of_a_batch() {
        let cost = cost_ns();
        assert!(cost > 0.0 && cost < 10_000.0, "{cost} ns");
    }

    #[test]
    fn manual_moves_by_what_it_is_told() {
        let clock = Manual::default();
        clock.advance(7);
        clock.advance(5);
        assert_eq!(clock.now(), 12);
        clock.sleep(Duration::from_nanos(3));
        assert_eq!(clock.now(), 15);
    }
}
