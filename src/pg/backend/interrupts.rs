//! When a probe has to stop for others: interrupts, the postmaster's death, exit, waiting DDL.
//!
//! A server process must answer barriers, catch-up and recovery conflicts at once, or DROP DATABASE elsewhere
//! waits for it.

use std::cell::Cell;
use std::sync::Once;
use std::time::{Duration, Instant};

use io_probe_core::run::budget::Stop;
use io_probe_core::run::clock::{Clock, Monotonic};
use io_probe_core::run::{memory, shutdown};
use pgrx::{pg_guard, pg_sys};

use crate::error::or_raise;
use crate::pg::backend::lock;
use crate::pg::compat::{self, WaitEvent};

unsafe extern "C" {
    /// `storage/pmsignal.h`: set by a signal when the postmaster may have died.
    static postmaster_possibly_dead: pg_sys::sig_atomic_t;
    /// `storage/pmsignal.h`: asks the kernel. Raises no ERROR.
    fn PostmasterIsAliveInternal() -> bool;
}

/// How often a probe looks whether it keeps someone from a lock.
const LOOK_AT_LOCKS: Duration = Duration::from_secs(1);

/// What a probe on some relations asks between requests.
pub(crate) struct Interrupts {
    relations: Vec<pg_sys::Oid>,
    looked: Cell<Instant>,
}

impl Interrupts {
    /// The interrupts of a probe that keeps others from strong locks on these relations.
    pub(crate) fn of(relations: Vec<pg_sys::Oid>) -> Self {
        Self { relations, looked: Cell::new(Instant::now()) }
    }

    /// Handles pending interrupts, which may leave by unwinding or end the process, and goes on if they
    /// don't. Looks now and then for sessions that wait.
    #[inline]
    pub(crate) fn check(&self) -> Option<Stop> {
        check();
        if self.looked.get().elapsed() < LOOK_AT_LOCKS {
            return None;
        }
        self.looked.set(Instant::now());
        lock::someone_waits_for(&self.relations).then_some(Stop::LockWaiter)
    }
}

/// CHECK_FOR_INTERRUPTS, the postmaster, and whether memory was refused.
#[inline]
pub(crate) fn check() {
    or_raise(memory::check());
    // SAFETY: both are set by signal handlers of this process, hence volatile; the calls are what the
    // server does in its own loops.
    unsafe {
        if std::ptr::read_volatile(&raw const pg_sys::InterruptPending) != 0 {
            pg_sys::ProcessInterrupts();
        }
        if std::ptr::read_volatile(&raw const postmaster_possibly_dead) != 0 && !PostmasterIsAliveInternal() {
            pg_sys::proc_exit(1);
        }
    }
}

/// A list of these items, of which a user may decide how many there are, with a [`check`] at each.
pub(crate) fn collect<T>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    or_raise(memory::collect(items.into_iter().inspect(|_| check())))
}

/// Waits on the latch of this process until the monotonic clock shows `when`, in nanoseconds. Interrupts are
/// handled at once, and may leave by unwinding.
pub(crate) fn sleep_until(when: u64) {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    let wait_event = compat::wait_event(WaitEvent::Samples);
    loop {
        check();
        let left = when.saturating_sub(Monotonic.now());
        // The latch counts in milliseconds. The rest is slept.
        let whole_ms = (left / 1_000_000).min(i32::MAX as u64);
        if whole_ms == 0 {
            return std::thread::sleep(Duration::from_nanos(left));
        }
        // SAFETY: the latch is this backend's own. The server's own loops do the same.
        unsafe {
            pg_sys::WaitLatch(pg_sys::MyLatch, events as i32, whole_ms as std::ffi::c_long, wait_event);
            pg_sys::ResetLatch(pg_sys::MyLatch);
        }
    }
}

/// Exit by FATAL unwinds nothing, so reads in flight and threads are brought to rest by a callback.
pub(crate) fn shut_down_at_exit() {
    #[pg_guard]
    unsafe extern "C-unwind" fn at_exit(_code: i32, _argument: pg_sys::Datum) {
        shutdown::all();
    }
    static REGISTERED: Once = Once::new();
    // SAFETY: the callback is a function of this library, which is never unloaded.
    REGISTERED.call_once(|| unsafe { pg_sys::before_shmem_exit(Some(at_exit), pg_sys::Datum::from(0)) });
}
