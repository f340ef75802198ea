//! What is written: random bytes, made beforehand.

use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Result;
use crate::engine::Buffers;
use crate::run::clock::{Clock, Monotonic};

/// Bytes to which O_DIRECT wants memory aligned, at most.
const PAGE: u64 = 4096;

/// Bytes of the content before it repeats: a prime number of pages, so that a segment gets other bytes at
/// each place whenever the writing comes round.
const PERIOD: u64 = 257 * PAGE;

/// A log that does not compress, in writes of up to a certain length.
pub(crate) struct Content {
    buffer: Buffers,
    longest: usize,
}

impl Content {
    /// For writes of up to `longest` bytes.
    pub(crate) fn new(longest: usize) -> Result<Self> {
        let size = (PERIOD as usize + longest).next_multiple_of(PAGE as usize);
        let buffer = Buffers::new(1, size)?;
        // SAFETY: the slot has this size, and nobody else knows it yet.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.slot_at(0, 0, size), size) };
        Xoshiro256PlusPlus::seed_from_u64(Monotonic.now()).fill_bytes(bytes);
        Ok(Self { buffer, longest })
    }

    /// What lies at a position of the log.
    ///
    /// # Panics
    /// When it is longer than the longest: a bug of the caller.
    #[inline]
    pub(crate) fn at(&self, position: u64, length: usize) -> &[u8] {
        assert!(length <= self.longest, "a write of {length} bytes");
        let start = (position % PERIOD / PAGE * PAGE) as usize;
        let bytes = self.buffer.slot_at(0, start, length);
        // SAFETY: within the buffer, as the slot has just checked; nobody writes there after `new`.
        unsafe { std::slice::from_raw_parts(bytes, length) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_writes_share_a_page_until_it_repeats() {
        let content = Content::new(8192).expect("memory");
        let mut pages = HashSet::new();
        for position in (0..PERIOD - 8192).step_by(8192) {
            let write = content.at(position, 8192);
            assert!(write.as_ptr().addr().is_multiple_of(PAGE as usize));
            assert!(write.chunks(PAGE as usize).all(|page| pages.insert(page)), "at {position}");
        }
    }

    #[test]
    fn a_place_gets_other_bytes_when_the_writing_comes_round() {
        let content = Content::new(8192).expect("memory");
        let segment = 16 << 20;
        let rounds: HashSet<&[u8]> = (0..20).map(|round| content.at(round * segment, 8192)).collect();
        assert_eq!(rounds.len(), 20);
    }
}
