//! Runs that are kept: calling a probe by its name, what the catalogs say of what it measured, and storing
//! what came of it.

mod environment;
mod insert;
mod probe;
pub(crate) mod query;
mod tables;

pub(crate) use environment::{RelationFacts, ServerFacts, setting_value};
pub(crate) use insert::{MOST_OF_TEXT, check_possible, delete_older, insert};
pub(crate) use probe::{Failed, Given, ProbeFunction, attempt};
pub(crate) use query::{WatchedLoad, report_lines, watched_load};
