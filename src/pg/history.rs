//! Runs that are kept: calling a probe by its name, what the catalogs say of what it measured, and storing
//! what came of it.

mod circumstances;
mod probe;
mod store;
pub(crate) mod stored;
mod tables;

pub(crate) use circumstances::{RelationFacts, ServerFacts, setting_values, tablespace_options};
pub(crate) use probe::{Cause, Failed, ProbeFunction, Value};
pub(crate) use store::{check_possible, delete_older, first_that_fits_no_row, insert, is_of_the_future};
