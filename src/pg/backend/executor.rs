//! Looking at a query of the user's that runs under our eyes: what each node of its plan reads.

mod bitmaps;
mod copies;
mod counting;
mod counts;
mod io_workers;
mod shared_counts;

pub(in crate::pg) use self::counting::count_nodes;
pub(crate) use self::counting::{Counted, Execution, OfNode};
pub(crate) use self::counts::{Counter, NodeCounts};
pub(crate) use self::shared_counts::define_setting;
use crate::pg::compat::{self, QueryWatcher};

/// From now on we see what the executor does. To be called once, when the library is loaded.
pub(crate) fn watch() {
    static WATCHER: QueryWatcher = QueryWatcher {
        starts: counting::starts,
        started: counting::started,
        runs: counting::runs,
        ran: counting::ran,
        ends: counting::ends,
    };
    compat::watch_queries(&WATCHER);
}
