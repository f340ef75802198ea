//! Looking at a query of the user's that runs under our eyes: what each node of its plan reads.

mod bitmaps;
mod copies;
mod counting;
mod counts;
mod io_workers;
mod shared_counts;

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

unsafe extern "C-unwind" fn started(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: the executor hands us a query that has started, with its plan.
    unsafe {
        if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY == 0 {
            counting::started(query);
        }
    }
}
