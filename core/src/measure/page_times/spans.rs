//! Stretches of a relation of which the OS cache holds nothing.
//!
//! They are handed out in a seeded order. What was read from one is dropped again when it is released:
//! nothing of it was in the cache before, so that nothing is lost.

use std::collections::HashSet;
use std::ops::Range;

use super::PageTimesRun;
use crate::Result;
use crate::files::RelationFiles;
use crate::files::relation_files::{NEARLY_CACHED, NEARLY_COLD};
use crate::run::budget::{Outcome, StopCheck, stop_if};
use crate::run::order::Permutation;

/// A stretch is of use if no more than one in `MOST_BUFFERED` of its blocks is in shared buffers.
const MOST_BUFFERED: u64 = 4;

/// Stretches that are looked at before none is said to be cold.
const MOST_LOOKS: u64 = 256;

/// Bytes of the region around a scattered block that has to be cold as a whole.
const REGION: u64 = 1 << 20;

/// Bytes of the largest folio, the piece in which the page cache holds a file: those that a huge page has.
/// The file system's blocks may be larger than pages, and no folio is smaller than they are.
const LARGEST_FOLIO: u64 = 2 << 20;

/// Most bytes beyond a region that are dropped with it.
const MOST_AHEAD: u64 = 8 << 20;

/// Most blocks that are looked at for each that is wanted.
const LOOKS_PER_BLOCK: usize = 8;

/// What there is to read.
#[derive(Debug)]
pub(super) enum Supply {
    /// A stretch of which the cache holds next to nothing.
    Cold {
        /// The blocks.
        range: Range<u64>,
        /// How many are cached.
        cached: u64,
    },
    /// None is cold; this one is cached.
    Cached(Range<u64>),
    /// None is cold, and none is cached.
    None,
}

/// Why no stretch is cold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotCold {
    /// The OS cache holds some of each.
    Cached,
    /// Shared buffers hold much of each.
    Buffered,
    /// Each has blocks that were never written to the file.
    Holes,
    /// It is impossible to tell, see [`crate::files::page_cache::OWN_CACHE`].
    Unknown,
}

/// How many stretches were passed over, and why.
#[derive(Debug, Default, Clone, Copy)]
struct PassedOver {
    cached: u64,
    holes: u64,
    buffered: u64,
}

/// The stretches of a relation.
pub(super) struct Spans<'a> {
    source: &'a RelationFiles,
    /// Blocks in shared buffers, ascending.
    buffered: &'a [u32],
    evicts: bool,
    /// Blocks of a stretch, and how many of its first are read from the cache.
    length: u64,
    again: u64,
    order: Permutation,
    next: u64,
    /// How many of the first `next` were passed over, since they were still taken.
    skipped: u64,
    blocks: Permutation,
    next_block: u64,
    /// Blocks that the kernel may read ahead beyond a scattered block's region: next to cached pages it takes
    /// a single read for a sequence.
    ahead: u64,
    /// Stretches that are handed out.
    pub(super) taken: ColdRanges<'a>,
    /// First blocks of stretches that were cold: what a turn has left there is ours.
    ours: HashSet<u64>,
    /// Why stretches were passed over.
    passed_over: PassedOver,
    /// Was any stretch cold?
    found: bool,
    /// Has a search come to its end?
    searched: bool,
    /// Would another search be in vain?
    exhausted: bool,
    /// A stretch that is cached, which a search has found.
    cached: Option<Range<u64>>,
}

impl<'a> Spans<'a> {
    pub(super) fn new(run: &PageTimesRun<'a>, length: u64, again: u64) -> Self {
        let blocks = run.source.blocks();
        let length = length.clamp(1, blocks.max(1));
        Self {
            source: run.source,
            buffered: run.buffered,
            evicts: run.evicts,
            length,
            again,
            order: Permutation::new(blocks / length, run.seed),
            next: 0,
            skipped: 0,
            blocks: Permutation::new(blocks, !run.seed),
            next_block: 0,
            ahead: run.window.min(MOST_AHEAD) / u64::from(run.source.block_size()),
            taken: ColdRanges::of(run.source, Vec::new()),
            ours: HashSet::new(),
            passed_over: PassedOver::default(),
            found: false,
            searched: false,
            exhausted: false,
            cached: None,
        }
    }

    /// How often the whole relation was gone through, if any of it was cold.
    pub(super) fn passes(&self) -> u64 {
        if !self.found {
            return 0;
        }
        (self.next - self.skipped).div_ceil(self.order.len().max(1))
    }

    /// Why no stretch was cold, if a search that was not cut short has found none.
    pub(super) fn why_none(&self) -> Option<NotCold> {
        let PassedOver { cached, holes, buffered } = self.passed_over;
        let most = cached.max(holes).max(buffered);
        match most {
            _ if self.found || !self.searched || most == 0 => None,
            most if most == cached => Some(NotCold::Cached),
            most if most == buffered => Some(NotCold::Buffered),
            _ => Some(NotCold::Holes),
        }
    }

    /// The next stretch that is cold, or is made so: none that was taken and not yet released.
    pub(super) fn take(&mut self, should_stop: &mut StopCheck<'_>) -> Outcome<Supply> {
        let looks = if self.exhausted { 0 } else { MOST_LOOKS.min(self.order.len()) };
        for _ in 0..looks {
            let start = self.order.at(self.next % self.order.len()) * self.length;
            self.next += 1;
            let range = start..start + self.length;
            if self.taken.ranges.contains(&range) {
                self.skipped += 1;
                continue;
            }
            stop_if(should_stop())?;
            if self.is_mostly_buffered(&range) {
                self.passed_over.buffered += 1;
                continue;
            }
            if self.source.have_holes(range.clone(), should_stop)? {
                self.passed_over.holes += 1;
                continue;
            }
            if let Some(cached) = self.make_cold(&range, self.ours.contains(&range.start), should_stop)? {
                self.ours.insert(range.start);
                self.taken.ranges.push(range.clone());
                self.found = true;
                return Ok(Supply::Cold { range, cached });
            }
            self.passed_over.cached += 1;
            let again = range.start..range.end.min(range.start + self.again);
            if self.cached.is_none()
                && self.source.cached_share(&range)? >= NEARLY_CACHED
                && self.source.cached_share(&again)? >= NEARLY_CACHED
            {
                self.cached = Some(range);
            }
        }
        (self.searched, self.exhausted) = (true, !self.found);
        Ok(self.cached.clone().map_or(Supply::None, Supply::Cached))
    }

    /// Forgets the cached stretch, which is cached no longer: the next search is for another.
    pub(super) fn forget_cached(&mut self) {
        if self.cached.take().is_some() {
            self.exhausted = false;
        }
    }

    /// Up to `count` blocks from all over the relation, whose surroundings are cold; and how many of them are
    /// cached all the same.
    pub(super) fn scatter(
        &mut self,
        count: usize,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<(Vec<u64>, u64)> {
        let region = (REGION / u64::from(self.source.block_size())).max(1);
        let (mut found, mut cached_blocks) = (Vec::with_capacity(count), 0.0);
        // No block twice: the second time it would be cached.
        let most = self.blocks.len().min((count * LOOKS_PER_BLOCK) as u64);
        let looks = if self.exhausted { 0 } else { most };
        for _ in 0..looks {
            if found.len() == count {
                break;
            }
            let block = self.blocks.at(self.next_block % self.blocks.len());
            self.next_block += 1;
            if self.is_buffered(block) {
                continue;
            }
            let start = block / region * region;
            let around = start..(start + region).min(self.source.blocks());
            // One that lies in a region that was taken already shares its fate.
            if !self.taken.ranges.contains(&around) {
                stop_if(should_stop())?;
                if self.source.have_holes(around.clone(), should_stop)? {
                    continue;
                }
                let Some(cached) = self.make_cold(&around, false, should_stop)? else { continue };
                cached_blocks += cached as f64 / (around.end - around.start) as f64;
                let ahead = around.end..(around.end + self.ahead).min(self.source.blocks());
                if self.source.cached_bytes(ahead.clone())? == 0 {
                    self.taken.ahead.push(ahead);
                }
                self.taken.ranges.push(around);
            }
            found.push(block);
        }
        Ok((found, cached_blocks.round() as u64))
    }

    /// Was the block in shared buffers when the run began?
    pub(super) fn is_buffered(&self, block: u64) -> bool {
        self.buffered.binary_search_by_key(&block, |buffered| u64::from(*buffered)).is_ok()
    }

    fn is_mostly_buffered(&self, range: &Range<u64>) -> bool {
        let [before, until] = [range.start, range.end]
            .map(|end| self.buffered.partition_point(|block| u64::from(*block) < end));
        (until - before) as u64 > (range.end - range.start) / MOST_BUFFERED
    }

    /// Are these blocks, which ascend, in the cache? What lies between them, because it is in shared buffers,
    /// need not be.
    pub(super) fn is_cached(&self, blocks: &[u64]) -> Result<bool> {
        let mut bytes = 0;
        for run in blocks.chunk_by(|a, b| a + 1 == *b) {
            bytes += self.source.cached_bytes(run[0]..run[0] + run.len() as u64)?;
        }
        let all = blocks.len() as u64 * u64::from(self.source.block_size());
        Ok(all > 0 && bytes as f64 >= NEARLY_CACHED * all as f64)
    }

    /// How many blocks of `range` are cached, if it is cold or can be made so.
    fn make_cold(
        &self,
        range: &Range<u64>,
        is_ours: bool,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<Option<u64>> {
        let mut share = self.source.cached_share(range)?;
        if share > NEARLY_COLD && self.evicts {
            self.source.write_back(range.clone(), should_stop)?;
            self.source.drop_cached(range.clone())?;
            share = self.source.cached_share(range)?;
        }
        if share > NEARLY_COLD && self.evicts {
            // Large folios go only as a whole.
            self.source.evict(range.clone(), should_stop, &mut |_| ())?;
            share = self.source.cached_share(range)?;
        }
        // What others have read there must not be dropped unless that is allowed.
        let most = if self.evicts || is_ours { NEARLY_COLD } else { 0.0 };
        Ok((share <= most).then(|| (share * (range.end - range.start) as f64).round() as u64))
    }
}

/// Blocks of which the OS cache held little or nothing: what was read there is dropped again.
pub(super) struct ColdRanges<'a> {
    source: &'a RelationFiles,
    ranges: Vec<Range<u64>>,
    /// What follows some of them, and was not cached either.
    ahead: Vec<Range<u64>>,
}

impl<'a> ColdRanges<'a> {
    pub(super) fn of(source: &'a RelationFiles, ranges: Vec<Range<u64>>) -> Self {
        Self { source, ranges, ahead: Vec::new() }
    }

    /// Is something that was read ahead still on its way?
    pub(super) fn are_arriving(&self) -> Result<bool> {
        for range in &self.ranges {
            if self.source.are_arriving(range.clone())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Drops what was read, and returns about how many bytes that were. After an error the others are still
    /// to be dropped.
    pub(super) fn release(&mut self) -> Result<u64> {
        let mut bytes = 0;
        // In reverse: where there are many files, those of the last are still open.
        while let Some(range) = self.ahead.pop().or_else(|| self.ranges.pop()) {
            let cached = self.source.cached_bytes(range.clone());
            self.drop_whole(range)?;
            bytes += cached?;
        }
        Ok(bytes)
    }

    /// Drops a range, and the folios at its ends that reach beyond it. As the range was cold, they came with
    /// what was read there; and each is the smallest piece of the file of its size that has the end in it, so
    /// that nothing else is dropped with it.
    fn drop_whole(&self, range: Range<u64>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let (first, last) = (range.start, range.end - 1);
        self.source.drop_cached(range)?;
        let largest = LARGEST_FOLIO / u64::from(self.source.block_size());
        for block in [first, last] {
            let mut length = 2;
            while length <= largest && self.source.cached_bytes(block..block + 1)? > 0 {
                let start = block / length * length;
                self.source.drop_cached(start..start + length)?;
                length *= 2;
            }
        }
        Ok(())
    }
}

/// Also if a caller unwinds, as a cancelled query does.
impl Drop for ColdRanges<'_> {
    fn drop(&mut self) {
        while !self.ranges.is_empty() || !self.ahead.is_empty() {
            // No caller is left to hear of an error.
            let _ = self.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::files::open_file::Access;
    use crate::files::relation_files::fixture::Relation;

    #[test]
    fn pieces_that_reach_beyond_a_range_are_dropped_with_it() {
        const BLOCKS: u64 = 2048;
        let relation = Relation::of_segments(BLOCKS as u32, BLOCKS, 0..BLOCKS);
        let source = relation.source.afresh();
        for range in [100..613, 1..2, 700..1025, 1500..BLOCKS] {
            relation.evict();
            // With readahead, which makes large folios where the file system has them.
            let open = source.open(0, Access::Buffered).expect("opened");
            std::io::copy(&mut (&*open.file).take(BLOCKS * 8192), &mut std::io::sink()).expect("read");
            let all = source.cached_bytes(0..BLOCKS).expect("known");
            ColdRanges::of(&source, vec![range.clone()]).release().expect("released");
            assert_eq!(source.cached_bytes(range.clone()).expect("known"), 0, "{range:?}");
            // Each end takes at most a piece with it.
            let most = (range.end - range.start) * 8192 + 2 * LARGEST_FOLIO;
            assert!(all - source.cached_bytes(0..BLOCKS).expect("known") <= most, "{range:?}");
        }
    }
}
