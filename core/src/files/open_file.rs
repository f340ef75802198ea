//! One file that is open to be read and to be looked at.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::files::direct_io;
use crate::files::page_cache::{Residency, ResidencyMethod};
use crate::{Error, Result};

/// How a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Through the page cache.
    Buffered,
    /// Past it, with O_DIRECT.
    Direct,
}

/// An open file.
///
/// A descriptor keeps the readahead window of the moment it was opened.
#[derive(Debug)]
pub struct OpenFile {
    /// The file.
    pub file: Arc<File>,
    /// Its path, for messages.
    pub path: PathBuf,
    /// How one looks for it in the page cache: decided once, since a network file system asks its server.
    pub method: ResidencyMethod,
}

impl OpenFile {
    /// Opens a file of blocks of `block_size` bytes for reading.
    pub fn open(path: PathBuf, access: Access, block_size: u32) -> Result<Self> {
        #[cfg(test)]
        opened::note(&path, access);
        let direct = access == Access::Direct;
        let flags = if direct { libc::O_DIRECT } else { 0 };
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        let open = Self::of(opened.map_err(|e| refused(&path, direct, e))?, path);
        if direct {
            direct_io::check(&open.file, open.method, block_size)?;
        }
        Ok(open)
    }

    /// A file that was opened already.
    pub fn of(file: File, path: PathBuf) -> Self {
        let method = ResidencyMethod::of(&file);
        Self { file: Arc::new(file), path, method }
    }

    /// What the page cache holds of a byte range.
    pub fn residency(&self, bytes: Range<u64>) -> Result<Residency> {
        self.method.residency(&self.file, &self.path, bytes)
    }

    /// Bytes of a range, which is not empty, that are just being read into the page cache.
    pub(crate) fn arriving(&self, bytes: &Range<u64>) -> Result<u64> {
        self.method.arriving(&self.file, &self.path, bytes)
    }

    /// Bytes of a range, which is not empty, that are just being written to the storage; None where that is
    /// not told.
    pub(crate) fn under_way(&self, bytes: &Range<u64>) -> Result<Option<u64>> {
        self.method.under_way(&self.file, &self.path, bytes)
    }

    /// Drops the clean pages of a byte range, but for large folios that reach beyond it.
    pub(crate) fn drop_cached(&self, bytes: &Range<u64>) -> Result<()> {
        #[cfg(test)]
        dropped::note(&self.path, bytes);
        let (offset, length) = (bytes.start as i64, (bytes.end - bytes.start) as i64);
        posix_fadvise(&self.file, offset, length, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
            .map_err(|e| Error::io_at("drop cached pages of file", &self.path, bytes.start, e))
    }
}

/// The error of an `open` that failed, with O_DIRECT or without.
fn refused(path: &Path, direct: bool, error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENOENT) => Error::MissingSegment { path: path.to_owned() },
        Some(libc::EINVAL | libc::EOPNOTSUPP) if direct => {
            Error::Unsupported { what: "O_DIRECT", why: "the file system refuses it".to_owned() }
        }
        _ => Error::io("open file", path, error),
    }
}

/// What a test's thread has opened.
#[cfg(test)]
pub(crate) mod opened {
    use std::cell::RefCell;
    use std::path::{Path, PathBuf};

    use super::Access;

    thread_local! {
        static OPENED: RefCell<Vec<(PathBuf, Access)>> = const { RefCell::new(Vec::new()) };
    }

    /// Notes one more file.
    pub(super) fn note(path: &Path, access: Access) {
        OPENED.with_borrow_mut(|opened| opened.push((path.to_owned(), access)));
    }

    /// All files that were opened since the last call.
    pub(crate) fn take() -> Vec<(PathBuf, Access)> {
        OPENED.take()
    }
}

/// What a test's thread has dropped from the cache.
#[cfg(test)]
pub(crate) mod dropped {
    use std::cell::RefCell;
    use std::ops::Range;
    use std::path::{Path, PathBuf};

    thread_local! {
        static DROPPED: RefCell<Vec<(PathBuf, Range<u64>)>> = const { RefCell::new(Vec::new()) };
    }

    /// Notes one more range of bytes.
    pub(super) fn note(path: &Path, bytes: &Range<u64>) {
        DROPPED.with_borrow_mut(|dropped| dropped.push((path.to_owned(), bytes.clone())));
    }

    /// All ranges that were dropped since the last call.
    pub(crate) fn take() -> Vec<(PathBuf, Range<u64>)> {
        DROPPED.take()
    }
}
