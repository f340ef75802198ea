//! The one error type of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong, with the file, the offset and the errno where there is one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call on a file failed.
    #[error("could not {action} \"{}\"{}: {source}", path.display(), at(*offset))]
    Io {
        /// What was tried, such as `read file`.
        action: &'static str,
        /// The file, or the directory of one without a name.
        path: PathBuf,
        /// Byte offset in the file, where the call had one.
        offset: Option<u64>,
        /// The operating system's error.
        source: io::Error,
    },
    /// A read inside the file returned fewer bytes than the file should hold.
    #[error(
        "could not read file \"{}\" at offset {offset}: read only {got} of {wanted} bytes",
        path.display()
    )]
    ShortRead {
        /// The file.
        path: PathBuf,
        /// Byte offset of the request.
        offset: u64,
        /// Bytes asked for.
        wanted: usize,
        /// Bytes received.
        got: usize,
    },
    /// A segment file that should exist does not.
    #[error("could not open file \"{}\": the segment is missing", path.display())]
    MissingSegment {
        /// The file.
        path: PathBuf,
    },
    /// The kernel or the file system has no such facility.
    #[error("{what} is not available: {why}")]
    Unsupported {
        /// The facility, such as `O_DIRECT`.
        what: &'static str,
        /// What the kernel said, one clause.
        why: String,
    },
    /// The file system is too full for a scratch file.
    #[error("not enough room in directory \"{}\" for a scratch file of {wanted} bytes", directory.display())]
    NoRoom {
        /// The directory whose file system it is.
        directory: PathBuf,
        /// Bytes that an unprivileged process may still allocate there.
        free: u64,
        /// Bytes of the file.
        wanted: u64,
        /// Bytes that must stay free beside it.
        reserve: u64,
    },
    /// The kernel would not give this process the memory that it needs.
    #[error("not enough memory for {bytes} bytes more")]
    NoMemory {
        /// Bytes that would be needed.
        bytes: usize,
    },
    /// A system call that belongs to no file failed.
    #[error("could not {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
}

/// Shorthand of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An [`Error::Io`] without an offset.
    pub fn io(action: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Error::Io { action, path: path.to_owned(), offset: None, source: source.into() }
    }

    /// An [`Error::Io`] at an offset.
    pub fn io_at(action: &'static str, path: &Path, offset: u64, source: impl Into<io::Error>) -> Self {
        Error::Io { action, path: path.to_owned(), offset: Some(offset), source: source.into() }
    }

    /// The errno behind this error, where there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Io { source, .. } | Error::System { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// Was it refused descriptors, threads or memory?
    pub fn is_shortage(&self) -> bool {
        matches!(self, Error::NoMemory { .. })
            || matches!(self.errno(), Some(libc::EMFILE | libc::ENFILE | libc::EAGAIN | libc::ENOMEM))
    }
}

fn at(offset: Option<u64>) -> String {
    offset.map(|o| format!(" at offset {o}")).unwrap_or_default()
}
