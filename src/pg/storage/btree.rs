//! Where the rows of a btree index lie: samples of its leaves, and nothing of its table.
//!
//! The leaves are found from the root on by their place in the order of the index, so that no value is
//! compared: whatever the columns are, no function of theirs is called, and no statistics are asked for. From
//! each on, the entries are read that follow, as a scan of the index would come to them. One page at a time
//! is pinned and locked, for as long as it takes to copy it.

use io_probe_core::files::btree::{LeafPage, children, leaf, root};
use pgrx::pg_sys;

use crate::pg::backend::interrupts;
use crate::pg::compat::{self, MAIN};

/// Leaves that are read at most for a sample: a btree may have empty ones.
const MOST_PAGES: u32 = 32;

/// Levels that are gone down at most. A btree of a table of 32 TiB has six or so.
const MOST_LEVELS: usize = 16;

/// The table's blocks of `entries` entries that follow one another, from each of `places` places on that lie
/// evenly in the index; fewer where it has no more. The samples are in the order of the index.
///
/// # Safety
/// `index` must be an open btree index.
pub(in crate::pg) unsafe fn samples(index: pg_sys::Relation, places: u32, entries: usize) -> Vec<Vec<u64>> {
    // SAFETY: the caller vouches for the index.
    let blocks = unsafe { pg_sys::RelationGetNumberOfBlocksInFork(index, MAIN) };
    let (mut starts, mut samples) = (Vec::new(), Vec::new());
    // Where a place has no entries, as among nulls, another one is taken that lies between.
    for shift in [2, 0, 3, 1] {
        for quarter in (0..places).map(|place| 4 * place + shift) {
            if samples.len() == places as usize {
                break;
            }
            let share = f64::from(quarter) / f64::from(4 * places);
            // SAFETY: as above.
            let start = unsafe { leaf_at(index, blocks, share) };
            let Some(start) = start.filter(|start| !starts.contains(start)) else { continue };
            starts.push(start);
            // SAFETY: as above.
            let sample = unsafe { sample(index, start..blocks, entries) };
            samples.extend(Some((quarter, sample)).filter(|(_, sample)| !sample.is_empty()));
        }
    }
    samples.sort_by_key(|(quarter, _)| *quarter);
    samples.into_iter().map(|(_, sample)| sample).collect()
}

/// The leaf at this share of the index; None if it has none, or was changed on the way down.
///
/// # Safety
/// `index` must be an open btree index that has `blocks` blocks.
unsafe fn leaf_at(index: pg_sys::Relation, blocks: u32, mut share: f64) -> Option<u32> {
    let mut block = 0;
    for _ in 0..MOST_LEVELS {
        interrupts::check();
        // A page may lie in a block that the index has got since.
        if block >= blocks {
            return None;
        }
        // SAFETY: the caller vouches for the index, which loses no block while it is locked.
        let page = unsafe { copy(index, block) };
        let below = if block == 0 { vec![root(&page)?] } else { children(&page).unwrap_or_default() };
        if below.is_empty() {
            return Some(block);
        }
        let place = share * below.len() as f64;
        share = place.fract();
        block = below[place as usize];
    }
    None
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
            // Deleted since it was found.
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
