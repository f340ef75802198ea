//! The system calls of an operation.
//!
//! A trait, so that tests record them and make them fail; the measuring loops are compiled for the kernel's
//! own.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::Result;
use crate::files::direct_io;
use crate::files::page_cache::ResidencyMethod;
use crate::files::scratch::Scratch;

/// A call that waits for the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncCall {
    Fdatasync,
    Fsync,
}

/// What a case does to its file.
pub(super) trait Calls: Clone + Send + Sync + 'static {
    /// A descriptor. Dropping it closes it.
    type File: Send + Sync + 'static;

    /// Opens the file for reading and writing, with `flags`.
    fn open(&self, flags: i32) -> Result<Self::File>;

    /// Refuses a file that is open with O_DIRECT if it does not take requests of `bytes` bytes.
    fn check_direct(&self, file: &Self::File, bytes: u32) -> Result<()>;

    /// `pwrite(2)`.
    fn write(&self, file: &Self::File, data: &[u8], offset: u64) -> io::Result<usize>;

    /// Waits for the storage.
    fn sync(&self, file: &Self::File, call: SyncCall) -> io::Result<()>;

    /// What the calls are made on, for its size and for messages.
    fn scratch(&self) -> &Scratch;
}

/// The kernel's.
#[derive(Clone)]
pub(super) struct Kernel(pub(super) Arc<Scratch>);

impl Calls for Kernel {
    type File = File;

    #[inline]
    fn open(&self, flags: i32) -> Result<File> {
        self.0.open(flags)
    }

    fn check_direct(&self, file: &File, bytes: u32) -> Result<()> {
        direct_io::check(file, ResidencyMethod::of(file), bytes)
    }

    #[inline]
    fn write(&self, file: &File, data: &[u8], offset: u64) -> io::Result<usize> {
        file.write_at(data, offset)
    }

    #[inline]
    fn sync(&self, file: &File, call: SyncCall) -> io::Result<()> {
        match call {
            SyncCall::Fdatasync => file.sync_data(),
            SyncCall::Fsync => file.sync_all(),
        }
    }

    fn scratch(&self) -> &Scratch {
        &self.0
    }
}

/// Writes all of `data`.
#[inline]
pub(super) fn write<C: Calls>(calls: &C, file: &C::File, data: &[u8], offset: u64) -> Result<()> {
    calls.scratch().write_by(data.len(), offset, || calls.write(file, data, offset))
}

/// Waits for the storage.
#[inline]
pub(super) fn sync<C: Calls>(calls: &C, file: &C::File, call: SyncCall) -> Result<()> {
    let action = match call {
        SyncCall::Fdatasync => "fdatasync scratch file in directory",
        SyncCall::Fsync => "fsync scratch file in directory",
    };
    calls.sync(file, call).map_err(|e| calls.scratch().failed(action, None, e))
}
