//! Descriptors for files that are opened without the server.

use io_probe_core::files::RelationFiles;
use pgrx::pg_sys;

/// While this lives the server counts the files of a relation that core keeps open among the descriptors of
/// this backend: it closes some of its own in time, instead of finding out that there are none left.
pub(crate) struct Reserved(usize);

impl Reserved {
    pub(crate) fn of(files: &RelationFiles) -> Self {
        let count = files.most_open();
        for _ in 0..count {
            // SAFETY: it counts, and closes files of the server's, which opens them again when it reads them.
            unsafe { pg_sys::ReserveExternalFD() };
        }
        Self(count)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        for _ in 0..self.0 {
            // SAFETY: this many were reserved. It only counts, also while aborting.
            unsafe { pg_sys::ReleaseExternalFD() };
        }
    }
}
