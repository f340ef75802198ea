//! A limit on the time of what the server does for us. Planning and executing look at no clock of ours, and a
//! table's owner decides how long its expressions take.
//!
//! When the time is over, what runs is cancelled as by Ctrl-C: it ends where the server looks for a cancel.
//! Every other cancel (a user's, `statement_timeout`, `lock_timeout`) comes as SIGINT, which is noted.
//!
//! # Limitations and caveats
//!
//! The server ends a session that registers an eleventh timeout: other libraries may have up to nine.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::pg::backend::rethrow::Caught;

// `utils/timeout.h`, which pgrx leaves out.
unsafe extern "C-unwind" {
    fn RegisterTimeout(id: c_int, handler: extern "C" fn()) -> c_int;
    fn enable_timeout_after(id: c_int, delay_ms: c_int);
    fn disable_timeout(id: c_int, keep_indicator: bool);
    fn get_timeout_active(id: c_int) -> bool;
    fn get_timeout_finish_time(id: c_int) -> pg_sys::TimestampTz;
}

/// STATEMENT_TIMEOUT in each version from 15 to 19.
const OF_STATEMENT: c_int = 3;

/// Any number from USER_TIMEOUT on, which is 12 on 15 and 13 on 19: the server looks for a free one.
const OF_USER: c_int = 16;

/// What the timer sets QueryCancelPending to. All others set it to 1.
const OURS: c_int = 2;

static RUNNING: AtomicBool = AtomicBool::new(false);
/// Has the timer cancelled what runs?
static OVER: AtomicBool = AtomicBool::new(false);
/// Was there another cancel?
static CANCELLED: AtomicBool = AtomicBool::new(false);
/// The server's handler of SIGINT.
static BEFORE: AtomicUsize = AtomicUsize::new(0);

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// The timer's handler, called in that of a signal.
extern "C" fn cancel() {
    OVER.store(true, Ordering::Relaxed);
    set_pending(0, OURS);
    // SAFETY: a flag that the server's own signal handlers set.
    unsafe { (&raw mut pg_sys::InterruptPending).write_volatile(1) };
}

/// Sets QueryCancelPending, if it has the value `from`; other handlers may set it meanwhile.
fn set_pending(from: c_int, to: c_int) {
    // SAFETY: a variable of this process, aligned.
    let pending = unsafe { AtomicI32::from_ptr(&raw mut pg_sys::QueryCancelPending) };
    let _ = pending.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
}

/// SIGINT's handler while the timer runs. The server's takes one argument, or from 19 on three.
extern "C" fn note_cancel(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    CANCELLED.store(true, Ordering::Relaxed);
    let before = BEFORE.load(Ordering::Relaxed);
    if before != libc::SIG_IGN && before != libc::SIG_DFL {
        // SAFETY: the server's handler of this signal.
        let before = unsafe { std::mem::transmute::<usize, Handler>(before) };
        before(signal, info, context);
    }
}

/// The time until statement_timeout ends the present statement; None without one.
pub(crate) fn statement_timeout_left() -> Option<Duration> {
    // SAFETY: these look at the server's timeouts, of which this is one. They raise no ERROR.
    let left_us = unsafe {
        let ends = get_timeout_active(OF_STATEMENT).then(|| get_timeout_finish_time(OF_STATEMENT))?;
        ends - pg_sys::GetCurrentTimestamp()
    };
    Some(Duration::from_micros(left_us.max(0).unsigned_abs()))
}

/// Runs until it is dropped. Inside another one it does nothing.
pub(in crate::pg) struct Timer {
    started: Option<(c_int, libc::sigaction)>,
}

impl Timer {
    pub(in crate::pg) fn start(most: Duration) -> Self {
        static ID: OnceLock<c_int> = OnceLock::new();
        // SAFETY: the handler is a function of this library, which is never unloaded. Once a session.
        let id = *ID.get_or_init(|| unsafe { pg_guard_ffi_boundary(|| RegisterTimeout(OF_USER, cancel)) });
        if RUNNING.swap(true, Ordering::Relaxed) {
            return Self { started: None };
        }
        OVER.store(false, Ordering::Relaxed);
        CANCELLED.store(false, Ordering::Relaxed);
        let ms = most.as_millis().clamp(1, c_int::MAX as u128) as c_int;
        // SAFETY: registered above. The handler of SIGINT goes on to the server's, with its mask and flags.
        unsafe {
            let mut before = std::mem::zeroed::<libc::sigaction>();
            libc::sigaction(libc::SIGINT, std::ptr::null(), &mut before);
            BEFORE.store(before.sa_sigaction, Ordering::Relaxed);
            let ours = libc::sigaction { sa_sigaction: note_cancel as *const () as usize, ..before };
            libc::sigaction(libc::SIGINT, &ours, std::ptr::null_mut());
            enable_timeout_after(id, ms);
            Self { started: Some((id, before)) }
        }
    }

    /// Was this ERROR the end of the last one's time?
    pub(in crate::pg) fn has_ended(error: &Caught) -> bool {
        error.code() == PgSqlErrorCode::ERRCODE_QUERY_CANCELED as i32
            && OVER.load(Ordering::Relaxed)
            && !CANCELLED.load(Ordering::Relaxed)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let Some((id, before)) = self.started else { return };
        // SAFETY: as in `start`. Raises no ERROR. What has come too late ends nothing.
        unsafe {
            disable_timeout(id, false);
            libc::sigaction(libc::SIGINT, &before, std::ptr::null_mut());
        }
        set_pending(OURS, 0);
        RUNNING.store(false, Ordering::Relaxed);
    }
}
