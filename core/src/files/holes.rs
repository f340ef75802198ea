//! Where a file holds data that the device must fetch, and where it holds none.
//!
//! A block that was never written costs the device nothing to read: holes, and extents that fallocate
//! reserved and that were never written (from PostgreSQL 16 on, every bulk extension of a relation makes such
//! extents). A rate that counts them flatters the device.
//!
//! `SEEK_HOLE` alone is not enough: once a read has put zero pages of an unwritten extent into the page
//! cache, the kernel calls it data. So the file system's extent map (`FIEMAP`) is asked too, where it has
//! one, and an unwritten extent without dirty pages counts as a hole. Where the kernel does not tell dirty
//! pages, what was reserved is written back before it is asked.

use std::ops::Range;

use nix::unistd::{Whence, lseek64};

use crate::files::open_file::OpenFile;
use crate::files::{Part, fiemap, page_cache, writeback};
use crate::run::budget::{Outcome, StopCheck};
use crate::{Error, Result};

/// The holes of a byte range, in order, not touching each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holes(Vec<Range<u64>>);

/// Picks, of the holes in a part's file (as byte ranges), those that have no data for its reader either.
pub type WithoutData<'a> = dyn Fn(&Part, Holes) -> Holes + 'a;

/// A stretch of a byte range that is all hole, or mostly data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// The bytes.
    pub bytes: Range<u64>,
    /// No data at all in it.
    pub hole: bool,
}

impl Holes {
    /// The holes of `bytes` of a file.
    pub fn find(open: &OpenFile, bytes: Range<u64>, should_stop: &mut StopCheck<'_>) -> Outcome<Self> {
        let tells_dirty = open.method.tells_dirty();
        let unwritten = || fiemap::unwritten(&open.file, bytes.clone()).unwrap_or_default();
        let mut reserved = unwritten();
        if !tells_dirty && let (Some(first), Some(last)) = (reserved.first(), reserved.last()) {
            // In one go: the wait is for the whole file.
            writeback::of_relation(open, first.start..last.end, should_stop)?;
            reserved = unwritten();
        }
        let mut holes = sought(open, &bytes)?;
        if tells_dirty {
            for extent in reserved {
                clean_parts(open, extent, &mut holes)?;
            }
        } else {
            holes.extend(reserved);
        }
        Ok(Self::new(holes))
    }

    /// Are there no holes?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Does all of `bytes` lie in a hole?
    pub fn cover(&self, bytes: &Range<u64>) -> bool {
        let after = self.0.partition_point(|hole| hole.start <= bytes.start);
        after > 0 && self.0[after - 1].end >= bytes.end
    }

    /// What is left of the holes without these ranges, which come in order and do not overlap.
    pub fn without(self, ranges: &[Range<u64>]) -> Self {
        let mut left = Vec::with_capacity(self.0.len());
        for Range { mut start, end } in self.0 {
            let first = ranges.partition_point(|range| range.end <= start);
            for range in ranges[first..].iter().take_while(|range| range.start < end) {
                left.push(start..range.start.max(start));
                start = range.end.min(end);
            }
            left.push(start..end);
        }
        Self::new(left)
    }

    /// The parts of `bytes` that are holes, in order.
    pub fn within(&self, bytes: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0
            .iter()
            .map(move |hole| hole.start.max(bytes.start)..hole.end.min(bytes.end))
            .filter(|part| !part.is_empty())
    }

    /// Joins ranges that touch or overlap.
    fn new(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.retain(|r| !r.is_empty());
        ranges.sort_by_key(|r| r.start);
        let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        Self(joined)
    }

    /// Blocks of `unit` bytes in `bytes` that lie wholly in a hole. `bytes` starts at a block.
    pub fn whole_blocks(&self, bytes: Range<u64>, unit: u64) -> u64 {
        self.within(bytes).map(|hole| (hole.end / unit).saturating_sub(hole.start.div_ceil(unit))).sum()
    }

    /// `bytes` in runs at multiples of `unit`; holes shorter than `least` stay inside their run.
    pub fn runs(&self, bytes: Range<u64>, unit: u64, least: u64) -> Vec<Stretch> {
        let mut runs = Vec::new();
        let mut at = bytes.start;
        for hole in &self.0 {
            let start = hole.start.max(bytes.start).div_ceil(unit) * unit;
            let end = if hole.end >= bytes.end { bytes.end } else { hole.end / unit * unit };
            if start >= end || end - start < least {
                continue;
            }
            if at < start {
                runs.push(Stretch { bytes: at..start, hole: false });
            }
            runs.push(Stretch { bytes: start..end, hole: true });
            at = end;
        }
        if at < bytes.end {
            runs.push(Stretch { bytes: at..bytes.end, hole: false });
        }
        runs
    }
}

/// The parts of an unwritten extent without dirty pages: those are data that has not reached the device
/// yet. Found by halving, so a clean extent costs one look.
fn clean_parts(open: &OpenFile, extent: Range<u64>, clean: &mut Vec<Range<u64>>) -> Result<()> {
    let page = page_cache::page_size();
    match open.residency(extent.clone())?.dirty_bytes {
        None | Some(0) => clean.push(extent),
        Some(dirty) if dirty < extent.end - extent.start => {
            let middle = extent.start + ((extent.end - extent.start) / 2).div_ceil(page) * page;
            clean_parts(open, extent.start..middle, clean)?;
            clean_parts(open, middle..extent.end, clean)?;
        }
        Some(_) => {}
    }
    Ok(())
}

/// Holes by SEEK_HOLE and SEEK_DATA. A file system without them calls everything data.
fn sought(open: &OpenFile, bytes: &Range<u64>) -> Result<Vec<Range<u64>>> {
    let failed = |e: nix::Error| Error::io("seek in file", &open.path, e);
    let mut holes = Vec::new();
    let mut at = bytes.start;
    while at < bytes.end {
        let hole = match seek(open, at, Whence::SeekHole, bytes.end) {
            Ok(offset) if offset < bytes.end => offset,
            Ok(_) | Err(nix::Error::EINVAL | nix::Error::EOPNOTSUPP) => break,
            Err(e) => return Err(failed(e)),
        };
        let data = seek(open, hole, Whence::SeekData, bytes.end).map_err(failed)?;
        holes.push(hole..data);
        // The implicit hole at the end of the file: nothing moves any more.
        if data <= at {
            break;
        }
        at = data;
    }
    Ok(holes)
}

/// Where the next hole, or data, begins; `end` if not before that.
fn seek(open: &OpenFile, from: u64, whence: Whence, end: u64) -> nix::Result<u64> {
    match lseek64(&open.file, from as i64, whence) {
        Ok(offset) => Ok((offset as u64).min(end)),
        Err(nix::Error::ENXIO) => Ok(end),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::files::page_cache::{ResidencyMethod, decided};

    const BLOCK: u64 = 8192;

    fn holes(ranges: &[Range<u64>]) -> Holes {
        Holes::new(ranges.to_vec())
    }

    #[test]
    fn overlapping_sources_count_once() {
        let holes = holes(&[40..80, 0..16, 16..24, 60..70, 5..5]);
        assert_eq!(holes.0, [0..24, 40..80]);
    }

    #[test]
    fn what_is_in_buffers_is_no_hole() {
        let holes = holes(&[0..10, 20..40]);
        assert_eq!(holes.clone().without(&[2..4, 8..22, 30..31, 50..60]).0, [0..2, 4..8, 22..30, 31..40]);
        assert_eq!(holes.clone().without(&[0..30, 30..100]).0, []);
        assert_eq!(holes.clone().without(&[]), holes);
        assert_eq!(holes.within(5..25).collect::<Vec<_>>(), [5..10, 20..25]);
    }

    #[test]
    fn only_whole_blocks_count() {
        let holes = holes(&[4096..20480, 40960..57344]);
        assert_eq!(holes.whole_blocks(0..81920, BLOCK), 1 + 2);
        assert_eq!(holes.whole_blocks(0..49152, BLOCK), 1 + 1);
        assert_eq!(holes.whole_blocks(57344..81920, BLOCK), 0);
    }

    #[test]
    fn runs_cover_the_range_and_keep_short_holes_inside() {
        let holes = holes(&[BLOCK * 2..BLOCK * 3, BLOCK * 10..BLOCK * 30 + 100]);
        let runs = holes.runs(BLOCK..BLOCK * 40, BLOCK, BLOCK * 4);
        assert_eq!(
            runs,
            [
                Stretch { bytes: BLOCK..BLOCK * 10, hole: false },
                Stretch { bytes: BLOCK * 10..BLOCK * 30, hole: true },
                Stretch { bytes: BLOCK * 30..BLOCK * 40, hole: false },
            ]
        );
    }

    #[test]
    fn sparse_and_reserved_blocks_are_holes_also_once_cached() {
        sparse_and_reserved_blocks_are_holes();
        for method in [ResidencyMethod::Mincore, ResidencyMethod::Unknown] {
            decided::forced(method, sparse_and_reserved_blocks_are_holes);
        }
    }

    fn sparse_and_reserved_blocks_are_holes() {
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        let open = OpenFile::of(file.reopen().expect("opened"), file.path().to_owned());
        let file = &*open.file;
        let size = 64 * BLOCK;
        file.set_len(size).expect("truncated");
        file.write_all_at(&[7; 8 * BLOCK as usize], 16 * BLOCK).expect("written");
        // SAFETY: the call takes no pointer.
        let result = unsafe { libc::fallocate(file.as_raw_fd(), 0, 32 * BLOCK as i64, 16 * BLOCK as i64) };
        assert_eq!(result, 0);
        file.sync_all().expect("synced");
        let count = || {
            let found = Holes::find(&open, 0..size, &mut || None).expect("holes");
            found.whole_blocks(0..size, BLOCK)
        };
        assert_eq!(count(), 56);
        std::io::copy(&mut &*file, &mut std::io::sink()).expect("read");
        assert_eq!(count(), 56);
        file.write_all_at(&[7; BLOCK as usize], 40 * BLOCK).expect("written");
        // The kernel keeps dirtiness by folio, which may be larger than a block, but not the 16 of the
        // extent.
        assert!((41..56).contains(&count()), "{}", count());
        file.sync_all().expect("synced");
        assert!((41..56).contains(&count()), "{}", count());
    }
}
