//! What the catalogs say, and queries: planned, explained, executed.

pub(crate) mod activity;
pub(crate) mod corrections;
pub(crate) mod explain;
pub(crate) mod facts;
pub(crate) mod indexes;
pub(crate) mod planner;
pub(crate) mod query;
mod statistics;
pub(crate) mod tuples;
