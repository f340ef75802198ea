//! The measurements. Each returns its results unrounded. What they read with is a [`BlockReader`].

pub(crate) mod content;
pub mod contradictions;
pub mod flushes;
pub mod io_methods;
pub mod load;
pub mod mix;
#[cfg(test)]
mod opens;
pub mod page_times;
pub mod ping;
pub mod random;
pub mod readahead;
pub mod scan;
pub mod sustain;
pub mod sync;
pub mod tiers;
pub mod writes;

use crate::Result;
use crate::run::stopwatch::Stopwatch;

/// One way to read: past every cache, through the OS page cache, or as the server does. `Wanted` is a
/// [`crate::files::Part`] in order, [`random::Fetches`], or the [`page_times::Order`] of a turn.
pub trait BlockReader<Wanted> {
    /// Reads it, and tells the watch when it begins and what arrives. Once the watch breaks it starts nothing
    /// more; it returns when nothing is in flight. Of a part all arrives unless the watch breaks; fetches and
    /// turns may end earlier by themselves.
    ///
    /// # Errors
    /// Those of the reads. The reader is of no more use: requests may be in flight, for which its engine
    /// waits when it is dropped.
    fn read(&mut self, wanted: &mut Wanted, watch: &mut Stopwatch<'_>) -> Result<()>;
}
