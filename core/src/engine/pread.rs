//! One blocking read at a time.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::buffers::Buffers;
use super::{Completion, Engine};
use crate::Result;

/// `pread(2)` at depth 1: the request is made when it is waited for.
pub struct Pread {
    buffers: Buffers,
    /// File, offset, place in the buffer, and bytes of the request that is submitted.
    pending: Option<(Arc<File>, u64, usize, usize)>,
}

impl Pread {
    /// A buffer of `request` bytes.
    pub fn new(request: usize) -> Result<Self> {
        Ok(Self { buffers: Buffers::new(1, request)?, pending: None })
    }
}

impl Engine for Pread {
    fn submit_at(&mut self, slot: usize, at: usize, file: &Arc<File>, offset: u64, len: usize) {
        assert!(slot == 0 && self.pending.is_none(), "I/O slot {slot} is busy or does not exist");
        self.pending = Some((Arc::clone(file), offset, at, len));
    }

    fn wait(&mut self, idle: &mut dyn FnMut()) -> Result<Completion> {
        let (file, offset, at, len) = self.pending.take().expect("nothing is in flight");
        loop {
            match pread(&file, self.buffers.slot_at(0, at, len), len, offset) {
                Err(libc::EINTR) => idle(),
                result => return Ok(Completion { slot: 0, result }),
            }
        }
    }

    fn bytes(&self, slot: usize, at: usize, len: usize) -> &[u8] {
        assert!(self.pending.is_none(), "I/O slot {slot} is busy");
        // SAFETY: reads are made when they are waited for, which nobody can while the engine is borrowed.
        unsafe { self.buffers.bytes(slot, at, len) }
    }
}

/// `pread(2)` into a buffer of at least `len` bytes that nothing else uses: bytes read, or the errno.
pub(crate) fn pread(file: &File, buffer: *mut u8, len: usize, offset: u64) -> Result<usize, i32> {
    // SAFETY: buffer comes from `Buffers::slot` for this length, and its slot is ours.
    let result = unsafe { libc::pread64(file.as_raw_fd(), buffer.cast(), len, offset as i64) };
    usize::try_from(result).map_err(|_| nix::Error::last_raw())
}
