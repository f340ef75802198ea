//! The measurements. Each returns its results unrounded.

pub mod contest;
#[cfg(test)]
mod opens;
pub mod page_times;
pub mod ping;
pub mod random;
pub mod readahead;
pub mod scan;
pub mod sync;
pub mod tiers;
