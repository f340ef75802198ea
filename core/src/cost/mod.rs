//! From measured times to planner costs.
//!
//! [`mod@measure`] takes the times of pages, [`mod@tuple`] that of a tuple; [`times`] holds what reading a block takes, by
//! the tier that serves it and the pattern in which it is asked for. [`blend`] makes costs of times, [`curve`] tells what
//! reads with gaps take and how many should be in flight, and [`predict`] what the blocks of a plan's node would take.
//! [`model`] predicts whole scans, and [`choose`] finds the settings under which the planner picks the fast ones. [`pair`]
//! keeps the two page costs in order.
//! docs/model.md tells it in one piece.

pub mod blend;
pub mod choose;
pub mod curve;
pub mod measure;
pub mod model;
pub mod pair;
pub mod predict;
pub mod times;
pub mod tuple;

pub use times::{Estimate, PageTimes, Pattern, Tier, TimeRow};
