//! Memory that the kernel reads into, or writes from.
//!
//! It lies in huge pages where the kernel has them: a request whose memory is contiguous reaches the device
//! as one segment, not as one every 4 kB, and there are virtual disks that read large requests three times as
//! fast for it, and single blocks a tenth faster. The page cache, whose folios are large, and shared buffers
//! in huge pages have that advantage too.

use std::num::NonZeroUsize;
use std::ptr::NonNull;

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::{Error, Result};

/// The size of a transparent huge page, in bytes.
const HUGE_PAGE: usize = 2 << 20;

/// One buffer a slot, page-aligned (which satisfies every O_DIRECT rule). What is read is thrown away, looked
/// at or not; a writer borrows one, to fill it.
pub(crate) struct Buffers {
    /// The whole mapping.
    mapping: NonNull<libc::c_void>,
    length: NonZeroUsize,
    /// The first buffer, at the start of a huge page.
    first: NonNull<u8>,
    slots: usize,
    each: usize,
}

// SAFETY: the memory is handed out as raw pointers, and each that writes through one has a slot of its own;
// and as bytes that nothing writes into meanwhile. The mapping itself is valid in every thread.
unsafe impl Send for Buffers {}
// SAFETY: as above.
unsafe impl Sync for Buffers {}

impl Buffers {
    /// `slots` buffers of `each` bytes, a multiple of the page size.
    pub(crate) fn new(slots: usize, each: usize) -> Result<Self> {
        let failed = |e: nix::Error| Error::System { action: "allocate I/O buffers", source: e.into() };
        let used = slots.checked_mul(each).ok_or_else(|| failed(nix::Error::ENOMEM))?;
        let used = used.checked_next_multiple_of(HUGE_PAGE).ok_or_else(|| failed(nix::Error::ENOMEM))?;
        let length = used.checked_add(HUGE_PAGE).and_then(NonZeroUsize::new);
        let length = length.ok_or_else(|| failed(nix::Error::ENOMEM))?;
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let mapping =
            unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_PRIVATE) }.map_err(failed)?;
        let padding = mapping.as_ptr().cast::<u8>().align_offset(HUGE_PAGE);
        // SAFETY: the mapping is a huge page longer than what is used, so the padding lies within.
        let first = unsafe { mapping.cast::<u8>().add(padding) };
        let buffers = Self { mapping, length, first, slots, each };
        // Miri knows no advice.
        if !cfg!(miri) {
            // SAFETY: advice on our own mapping. Without huge pages it is refused, and small ones do.
            let _ = unsafe { madvise(first.cast(), used, MmapAdvise::MADV_HUGEPAGE) };
        }
        for offset in (0..slots * each).step_by(4096) {
            // Touched now, so that no page fault falls into a timed span.
            // SAFETY: within the mapping, which nobody else knows yet.
            unsafe { first.add(offset).write_volatile(0) };
        }
        Ok(buffers)
    }

    /// The buffer of `slot` from byte `at` on, for a read of `len` bytes.
    ///
    /// # Panics
    /// When there is no such slot, or the buffer ends before.
    pub(crate) fn slot_at(&self, slot: usize, at: usize, len: usize) -> *mut u8 {
        assert!(slot < self.slots && at + len <= self.each, "a request must fit the buffer of its slot");
        // SAFETY: within the buffer, by the assertion.
        unsafe { self.first.as_ptr().add(slot * self.each + at) }
    }

    /// `len` bytes of the buffer of `slot`, from byte `at` on.
    ///
    /// # Panics
    /// When there is no such slot, or its buffer ends before.
    ///
    /// # Safety
    /// Nothing may write into these bytes as long as they are borrowed.
    pub(super) unsafe fn bytes(&self, slot: usize, at: usize, len: usize) -> &[u8] {
        // SAFETY: within the mapping, whose bytes are all written; nobody writes there, says the caller.
        unsafe { std::slice::from_raw_parts(self.slot_at(slot, at, len), len) }
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and engines drop their buffers only when nothing is in flight.
        let _ = unsafe { munmap(self.mapping, self.length.get()) };
    }
}

/// Bytes of a line of the processor's caches.
const LINE: usize = 64;

/// Sums that `checksum_impl.h` computes beside one another, and the prime of its hash, FNV-1a.
const SUMS: usize = 32;
const PRIME: u32 = 16_777_619;

/// Looks at each line of these bytes, and computes a checksum of them if it `verifies`: that of a page of
/// PostgreSQL, up to its seeds, which takes the same time.
pub(crate) fn look_at(bytes: &[u8], verifies: bool) -> u32 {
    if verifies { checksum(bytes) } else { bytes.iter().step_by(LINE).map(|byte| u32::from(*byte)).sum() }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut sums = [0_u32; SUMS];
    for row in bytes.chunks_exact(4 * SUMS) {
        for (sum, word) in sums.iter_mut().zip(row.as_chunks::<4>().0) {
            let mixed = *sum ^ u32::from_ne_bytes(*word);
            *sum = mixed.wrapping_mul(PRIME) ^ (mixed >> 17);
        }
    }
    sums.iter().fold(0, |all, sum| all ^ sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_apart() {
        for (slots, each) in [(1, 8192), (16, 256 << 10), (3, 1 << 20)] {
            let buffers = Buffers::new(slots, each).expect("memory");
            let addresses: Vec<usize> =
                (0..slots).map(|slot| buffers.slot_at(slot, 0, each).addr()).collect();
            assert!(addresses[0].is_multiple_of(HUGE_PAGE));
            assert!(addresses.windows(2).all(|w| w[1] - w[0] == each));
        }
    }

    #[test]
    fn each_byte_is_in_the_checksum() {
        let page: Vec<u8> = (0..8192_u32).map(|place| (place % 251) as u8).collect();
        let whole = checksum(&page);
        for place in [0, 1, 127, 128, 4095, 8191] {
            let mut other = page.clone();
            other[place] ^= 1;
            assert_ne!(checksum(&other), whole, "{place}");
        }
    }

    #[test]
    #[should_panic(expected = "fit the buffer")]
    fn a_request_that_is_too_large_is_a_bug() {
        Buffers::new(2, 8192).expect("memory").slot_at(1, 0, 8193);
    }
}
