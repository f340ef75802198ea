//! Files that are opened without the server.

use io_probe_core::cache;
use io_probe_core::source::Source;
use pgrx::pg_sys;

/// While this lives the server counts the files of a relation that core keeps open, to look at the page cache, among the
/// descriptors of this backend: it closes some of its own in time, instead of finding out that there are none left.
pub(crate) struct Counted(usize);

impl Counted {
    /// Those of this relation.
    pub(crate) fn of(source: &Source) -> Self {
        let mut counted = Self(0);
        while counted.0 < cache::most_open(source) {
            // SAFETY: it counts, and closes files of the server's, which opens them again when it reads them.
            unsafe { pg_sys::ReserveExternalFD() };
            counted.0 += 1;
        }
        counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        for _ in 0..self.0 {
            // SAFETY: so many were reserved. It only counts, also while aborting.
            unsafe { pg_sys::ReleaseExternalFD() };
        }
    }
}
