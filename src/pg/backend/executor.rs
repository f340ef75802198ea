//! Looking at a query of the user's that runs under our eyes: what each node of its plan reads.

mod bitmaps;
mod copies;
mod counting;
mod counts;
mod io_workers;
mod shared_counts;

pub(crate) use self::counting::{Counted, Execution, OfNode};
pub(in crate::pg) use self::counting::{count_nodes, ends, ran, runs, started, starts};
pub(crate) use self::counts::{Counter, NodeCounts};
pub(crate) use self::shared_counts::define_setting;
pub(crate) use crate::pg::compat::watch_queries;
