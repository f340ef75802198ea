//! The measurements. Each returns its results unrounded. What they read with is a [`BlockReader`].

mod block_reader;
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

pub use block_reader::BlockReader;
