//! Runs that are kept: calling a probe by its name, what the catalogs say of what it measured, and storing
//! what came of it.

mod environment;
mod insert;
mod probe;
pub(crate) mod query;
mod tables;

pub(crate) use environment::{RelationFacts, server_facts, setting_values};
pub(crate) use insert::{check_possible, delete_older, first_that_fits_no_row, insert, is_of_the_future};
pub(crate) use probe::{Failed, ProbeFunction, Value};
pub(crate) use query::report_lines;
