//! Where the rows of a btree index lie: samples of its leaves, and nothing of its table.
//!
//! Leaves are taken by their place in the file, so that no value is compared: whatever the columns are, no
//! function of theirs is called, and no statistics are asked for. From each on, the entries are read that
//! follow, as a scan of the index would come to them. One page at a time is pinned and locked, for as long as
//! it takes to copy it.

use io_probe_core::files::btree::{LeafPage, leaf};
use pgrx::pg_sys;

use crate::pg::backend::interrupts;
use crate::pg::compat;

/// Pages that are read at most for a sample: those above the leaves are one in some hundreds, and a btree may
/// have empty ones.
const MOST_PAGES: u32 = 32;

/// The table's blocks of `entries` entries that follow one another, from each of `places` places on that lie
/// evenly in the index; fewer where it has no more.
///
/// # Safety
/// `index` must be an open btree index.
pub(in crate::pg) unsafe fn samples(index: pg_sys::Relation, places: u32, entries: usize) -> Vec<Vec<u64>> {
    // SAFETY: the caller vouches for the index.
    let blocks = unsafe { pg_sys::RelationGetNumberOfBlocksInFork(index, pg_sys::ForkNumber::MAIN_FORKNUM) };
    // The first block tells of the others.
    let others = u64::from(blocks.saturating_sub(1));
    let (mut starts, mut samples) = (Vec::new(), Vec::new());
    // Where a place has no entries, as among nulls, another one is taken that lies between.
    for shift in [2, 0, 3, 1] {
        for place in 0..u64::from(places) {
            let start = 1 + (others * (4 * place + shift) / (4 * u64::from(places))) as u32;
            if samples.len() == places as usize || start >= blocks || starts.contains(&start) {
                continue;
            }
            starts.push(start);
            // SAFETY: as above.
            let sample = unsafe { sample(index, start..blocks, entries) };
            samples.extend(Some(sample).filter(|sample| !sample.is_empty()));
        }
    }
    samples
}

/// # Safety
/// `index` must be an open btree index that has these blocks.
unsafe fn sample(index: pg_sys::Relation, blocks: std::ops::Range<u32>, entries: usize) -> Vec<u64> {
    let (mut found, mut block) = (Vec::with_capacity(entries), blocks.start);
    for _ in 0..MOST_PAGES {
        // A sibling may lie in a block that the index has got since.
        if found.len() >= entries || block >= blocks.end {
            break;
        }
        interrupts::check();
        // SAFETY: the caller vouches for the index, which loses no block while it is locked.
        match leaf(&unsafe { copy(index, block) }) {
            Some(LeafPage { blocks, .. }) if blocks.is_empty() && found.is_empty() => break,
            Some(LeafPage { next, blocks }) => {
                found.extend(blocks);
                let Some(next) = next else { break };
                block = next;
            }
            None if found.is_empty() => block += 1,
            // Deleted since its sibling was read.
            None => break,
        }
    }
    found.truncate(entries);
    found
}

/// # Safety
/// `index` must be an open relation that has this block.
unsafe fn copy(index: pg_sys::Relation, block: pg_sys::BlockNumber) -> Vec<u8> {
    // SAFETY: the caller vouches for the block. Its page, of BLCKSZ bytes, is pinned and locked while it is
    // copied; an ERROR ends both.
    unsafe {
        let buffer = pg_sys::ReadBuffer(index, block);
        compat::lock_to_read(buffer);
        let page = pg_sys::BufferGetPage(buffer).cast::<u8>();
        let copy = std::slice::from_raw_parts(page, pg_sys::BLCKSZ as usize).to_vec();
        pg_sys::UnlockReleaseBuffer(buffer);
        copy
    }
}
