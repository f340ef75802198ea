//! From times to figures: slices of a run, the interval of a ratio taken over them, and the distribution of
//! latencies.

mod interval;
mod latency;
mod median;
mod precision;
mod slices;
mod step;

pub use interval::{Interval, MIN_SLICES, MIN_TURNS, of_ratio, of_rounds, of_turns, slope, trend};
pub use latency::{Class, Latencies};
pub use median::{MIN_FOR_MEDIAN, error_of_median, median, of_median};
pub(crate) use precision::Looks;
pub use precision::Precision;
pub use slices::{Slice, Slices};
pub(crate) use step::step;
pub use step::{step_down_of_rate, step_up};
