//! Reading blocks of a relation: past every cache, through the OS page cache, or as the server does.

use crate::Result;
use crate::run::stopwatch::Stopwatch;

/// One way to read what is wanted: a part in order ([`crate::files::Part`]), blocks at random
/// ([`super::random::Fetches`]), or those of a turn ([`super::page_times::Order`]).
pub trait BlockReader<Wanted> {
    /// Reads it, and tells the watch when it begins and what arrives. Starts nothing more once that breaks,
    /// and returns when nothing is in flight.
    fn read(&mut self, wanted: &mut Wanted, watch: &mut Stopwatch<'_>) -> Result<()>;
}
