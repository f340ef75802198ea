//! Memory that the kernel reads into.

use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::{Error, Result};

/// One buffer a slot, page-aligned (which satisfies every O_DIRECT rule), touched in advance so that
/// no page fault falls into a timed span. Nobody looks at the content, so it is never borrowed.
pub(super) struct Buffers {
    memory: NonNull<libc::c_void>,
    length: NonZeroUsize,
    slots: usize,
    each: usize,
}

// SAFETY: the memory is only handed out as raw pointers, and whoever writes through one has a slot
// of its own; the mapping itself is valid in every thread.
unsafe impl Send for Buffers {}
// SAFETY: as above.
unsafe impl Sync for Buffers {}

impl Buffers {
    /// `slots` buffers of `each` bytes, a multiple of the page size.
    pub(super) fn new(slots: usize, each: usize) -> Result<Self> {
        let failed = |e: nix::Error| Error::System { action: "allocate read buffers", source: e.into() };
        let length = slots.checked_mul(each).and_then(NonZeroUsize::new);
        let length = length.ok_or_else(|| failed(nix::Error::EINVAL))?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory = unsafe { mmap_anonymous(None, length, protection, flags) }.map_err(failed)?;
        Ok(Self { memory, length, slots, each })
    }

    /// The buffer of `slot`, for a read of `len` bytes.
    ///
    /// # Panics
    /// When there is no such slot, or the buffer is smaller.
    pub(super) fn slot(&self, slot: usize, len: usize) -> *mut u8 {
        assert!(slot < self.slots && len <= self.each, "a request must fit the buffer of its slot");
        // SAFETY: slot × each lies within the mapping, by the assertion.
        unsafe { self.memory.as_ptr().cast::<u8>().add(slot * self.each) }
    }

    /// How many there are.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and engines drop their buffers only when nothing is in flight.
        let _ = unsafe { munmap(self.memory, self.length.get()) };
    }
}
