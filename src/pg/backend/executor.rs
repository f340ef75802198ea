//! Looking at a query of the user's that runs under our eyes: what each node of its plan reads.

mod bitmaps;
mod copies;
pub(in crate::pg) mod counting;
mod counts;
mod io_workers;
mod shared_counts;

pub(in crate::pg) use self::counting::count_nodes;
pub(crate) use self::counting::{Counted, Execution, OfNode};
pub(crate) use self::counts::{Counter, NodeCounts};
pub(crate) use self::shared_counts::define_setting;
pub(crate) use crate::pg::compat::watch_queries as watch;
