//! A limit on the time of what the server does for us. Planning and executing look at no clock of ours, and a
//! table's owner decides how long its expressions take.
//!
//! When the time is over, what runs is cancelled as by Ctrl-C: it ends where the server looks for a cancel.
//!
//! # Limitations and caveats
//!
//! A user's cancel that comes between that moment and the server's next look is taken for the timer's.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::pg::backend::rethrow::Caught;
use crate::pg::backend::server;

// `utils/timeout.h`, which pgrx leaves out.
unsafe extern "C-unwind" {
    fn RegisterTimeout(id: c_int, handler: extern "C" fn()) -> c_int;
    fn enable_timeout_after(id: c_int, delay_ms: c_int);
    fn disable_timeout(id: c_int, keep_indicator: bool);
    fn get_timeout_finish_time(id: c_int) -> pg_sys::TimestampTz;
}

/// STATEMENT_TIMEOUT in all versions.
const OF_STATEMENT: c_int = 3;

/// Any number from USER_TIMEOUT on, which is 12 on 15 and 13 on 19: the server looks for a free one.
const OF_USER: c_int = 16;

/// Has the timer cancelled what ran?
static OVER: AtomicBool = AtomicBool::new(false);

/// Called in a signal handler.
extern "C" fn cancel() {
    // SAFETY: flags that the server's own signal handlers set.
    unsafe {
        let pending = &raw mut pg_sys::QueryCancelPending;
        // The user was first.
        if pending.read_volatile() == 0 {
            OVER.store(true, Ordering::Relaxed);
            (&raw mut pg_sys::InterruptPending).write_volatile(1);
            pending.write_volatile(1);
        }
    }
}

/// Runs until it is dropped. There is one at a time.
pub(in crate::pg) struct Timer {
    id: c_int,
}

impl Timer {
    /// Starts it.
    pub(in crate::pg) fn start(most: Duration) -> Self {
        static ID: OnceLock<c_int> = OnceLock::new();
        // SAFETY: the handler is a function of this library, which is never unloaded. Once a session.
        let id = *ID.get_or_init(|| unsafe { pg_guard_ffi_boundary(|| RegisterTimeout(OF_USER, cancel)) });
        OVER.store(false, Ordering::Relaxed);
        let ms = most.as_millis().clamp(1, c_int::MAX as u128) as c_int;
        // SAFETY: registered above.
        unsafe { enable_timeout_after(id, ms) };
        Self { id }
    }

    /// Was this ERROR the end of the last one's time?
    pub(in crate::pg) fn has_ended(error: &Caught) -> bool {
        error.code() == PgSqlErrorCode::ERRCODE_QUERY_CANCELED as i32
            && OVER.load(Ordering::Relaxed)
            && !is_statement_over()
    }
}

/// Has `statement_timeout` ended this statement?
fn is_statement_over() -> bool {
    // SAFETY: reads a variable of this backend; of an earlier statement if this one has no timeout.
    let at = unsafe { get_timeout_finish_time(OF_STATEMENT) };
    (server::statement_start()..=server::moment()).contains(&at)
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: registered in `start`. Raises no ERROR. A cancel of ours that came too late ends nothing.
        unsafe {
            disable_timeout(self.id, false);
            if OVER.load(Ordering::Relaxed) && !is_statement_over() {
                (&raw mut pg_sys::QueryCancelPending).write_volatile(0);
            }
        }
    }
}
