//! Looking at the plans that start while a query of the user's runs under our eyes, also those inside of
//! functions.
//!
//! The executor's hook is ours for just as long, unless another library has put its own before it meanwhile.

use std::cell::Cell;
use std::ptr::fn_addr_eq;

use pgrx::{pg_guard, pg_sys};

use crate::pg::compat;

/// The type of a hook that is there.
type Hook = unsafe extern "C-unwind" fn(*mut pg_sys::QueryDesc, std::ffi::c_int);

thread_local! {
    /// How many queries are under our eyes, one inside the other.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The hook before ours.
    static BEFORE: Cell<pg_sys::ExecutorStart_hook_type> = const { Cell::new(None) };
    /// Is the hook ours, or is ours below another one?
    static INSTALLED: Cell<bool> = const { Cell::new(false) };
    /// Was a plan for parallel workers started since the innermost [`ParallelPlans`] began?
    static PARALLEL: Cell<bool> = const { Cell::new(false) };
}

/// Each plan is looked at, and no RESET lets one write, until this is dropped.
pub(in crate::pg) struct ReadOnlyPlans {
    /// Did RESET make a transaction read-only before?
    reset_before: bool,
}

impl ReadOnlyPlans {
    /// Begins.
    pub(in crate::pg) fn begin() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        if !INSTALLED.replace(true) {
            // SAFETY: a variable of this backend; the hook is a function of this library, which is never
            // unloaded.
            unsafe {
                BEFORE.set(pg_sys::ExecutorStart_hook);
                pg_sys::ExecutorStart_hook = Some(look_at_plan);
            }
        }
        Self { reset_before: compat::reset_to_read_only(true) }
    }
}

impl Drop for ReadOnlyPlans {
    fn drop(&mut self) {
        compat::reset_to_read_only(self.reset_before);
        DEPTH.set(DEPTH.get() - 1);
        // SAFETY: a variable of this backend.
        let hook = unsafe { pg_sys::ExecutorStart_hook };
        if DEPTH.get() == 0 && hook.is_some_and(|hook| fn_addr_eq(hook, look_at_plan as Hook)) {
            // SAFETY: as above; what was there before us is there again.
            unsafe { pg_sys::ExecutorStart_hook = BEFORE.get() };
            INSTALLED.set(false);
        }
    }
}

/// Notes whether a plan for parallel workers is started, until it is dropped. One may be inside another.
pub(in crate::pg) struct ParallelPlans {
    /// What the outer one had noted.
    before: bool,
}

impl ParallelPlans {
    /// Begins.
    pub(in crate::pg) fn begin() -> Self {
        Self { before: PARALLEL.replace(false) }
    }

    /// Was there such a plan?
    pub(in crate::pg) fn seen(&self) -> bool {
        PARALLEL.get()
    }
}

impl Drop for ParallelPlans {
    fn drop(&mut self) {
        PARALLEL.set(PARALLEL.get() | self.before);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn look_at_plan(query: *mut pg_sys::QueryDesc, flags: std::ffi::c_int) {
    // SAFETY: the server, or a hook before us, hands us a query that is about to start, with its plan. What
    // we call is what the server would have called; an ERROR in it goes through the boundary as from the
    // server itself.
    unsafe {
        if DEPTH.get() > 0 {
            let explained_only = flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0;
            let is_parallel = (*(*query).plannedstmt).parallelModeNeeded && !explained_only;
            PARALLEL.set(PARALLEL.get() | is_parallel);
        }
        match BEFORE.get() {
            Some(hook) => pg_sys::ffi::pg_guard_ffi_boundary(|| hook(query, flags)),
            None => pg_sys::standard_ExecutorStart(query, flags),
        }
    }
}
