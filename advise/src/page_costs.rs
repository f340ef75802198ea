//! From measured times to planner costs.
//!
//! The times are those of [`io_probe_core::measure::page_times`]. [`curve`] tells what reads with gaps take
//! and how many should be in flight, and [`predict`] what the blocks of a plan's node would take. [`model`]
//! predicts whole scans, [`concurrency`] how many reads of them should be in flight, and [`choose`] finds the
//! page costs under which the planner picks the fast ones.
//! [`visits`] tells which pages the ranges of an index visit, and [`correlation`] what the planner should
//! take its correlation for; [`joint`] chooses page costs and correlations beside each other. [`worth`] tells
//! which indexes there is time for. docs/model.md tells it in one piece.

pub mod choose;
pub mod concurrency;
pub mod correlation;
pub mod curve;
pub mod joint;
pub mod locality;
pub mod model;
pub mod predict;
mod visited;
pub mod visits;
pub mod worth;
