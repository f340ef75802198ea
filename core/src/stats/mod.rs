//! From times to figures: slices of a run, and the interval of a ratio taken over them.

mod interval;
mod slices;

pub use interval::{Interval, MIN_SLICES, of_ratio, trend};
pub use slices::{Slice, Slices, recorder_cost_ns};
