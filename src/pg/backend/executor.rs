//! Looking at the plans that start while a query of the user's runs under our eyes, also those inside of
//! functions.
//!
//! The executor's hook is ours from the first such query of a session on.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::OnceLock;

use pgrx::pg_sys;

/// The hook before ours, once ours is there.
static BEFORE: OnceLock<pg_sys::ExecutorStart_hook_type> = OnceLock::new();

thread_local! {
    /// Was a plan for parallel workers started since the innermost [`ParallelPlans`] began?
    static PARALLEL: Cell<bool> = const { Cell::new(false) };
}

/// Notes whether a plan for parallel workers is started, until it is dropped. One may be inside another.
pub(in crate::pg) struct ParallelPlans {
    /// What the outer one had noted.
    before: bool,
}

impl ParallelPlans {
    pub(in crate::pg) fn begin() -> Self {
        // SAFETY: a variable of this backend; the hook is a function of this library, which is never
        // unloaded.
        BEFORE.get_or_init(|| unsafe {
            let before = pg_sys::ExecutorStart_hook;
            pg_sys::ExecutorStart_hook = Some(look_at_plan);
            before
        });
        Self { before: PARALLEL.replace(false) }
    }

    pub(in crate::pg) fn seen(&self) -> bool {
        PARALLEL.get()
    }
}

impl Drop for ParallelPlans {
    fn drop(&mut self) {
        PARALLEL.set(PARALLEL.get() | self.before);
    }
}

unsafe extern "C-unwind" {
    /// `executor/executor.h`. Called as it is: pgrx would copy an ERROR on its way.
    fn standard_ExecutorStart(query: *mut pg_sys::QueryDesc, flags: c_int);
}

/// What the executor calls. An ERROR passes through it: there is nothing in it that would have to be dropped.
unsafe extern "C-unwind" fn look_at_plan(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: the server, or a hook before us, hands us a query that is about to start, with its plan. What
    // we call is what the server would have called.
    unsafe {
        let explained_only = flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0;
        let is_parallel = (*(*query).plannedstmt).parallelModeNeeded && !explained_only;
        PARALLEL.set(PARALLEL.get() | is_parallel);
        match BEFORE.get() {
            Some(Some(before)) => before(query, flags),
            _ => standard_ExecutorStart(query, flags),
        }
    }
}
