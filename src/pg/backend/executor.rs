//! Looking at queries of the user's that run under our eyes: whether plans have parallel workers, also those
//! inside of functions, and what each node of one plan reads.

mod bitmaps;
mod copies;
mod counting;
mod counts;
mod io_workers;
mod shared_counts;

use std::cell::Cell;
use std::ffi::c_int;

use pgrx::pg_sys;

pub(in crate::pg) use self::counting::count_nodes;
pub(crate) use self::counting::{Counted, Execution, OfNode};
pub(crate) use self::counts::{Counter, NodeCounts};
pub(crate) use self::shared_counts::define_setting;
use crate::pg::compat::{self, QueryWatcher};

static WATCHER: QueryWatcher = QueryWatcher {
    starts: counting::starts,
    started,
    runs: counting::runs,
    ran: counting::ran,
    ends: counting::ends,
};

/// From now on we see what the executor does. To be called once, when the library is loaded.
pub(crate) fn watch() {
    compat::watch_queries(&WATCHER);
}

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

unsafe extern "C-unwind" fn started(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: the executor hands us a query that has started, with its plan.
    unsafe {
        if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY == 0 {
            PARALLEL.set(PARALLEL.get() | (*(*query).plannedstmt).parallelModeNeeded);
            counting::started(query);
        }
    }
}
