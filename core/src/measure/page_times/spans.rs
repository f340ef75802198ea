//! Stretches of a relation of which the OS cache holds nothing.
//!
//! They are handed out in a seeded order. What was read from one is dropped again when it is released:
//! nothing of it was in the cache before, so that nothing is lost.

use std::collections::HashSet;
use std::ops::Range;

use super::PageTimesRun;
use crate::Result;
use crate::files::RelationFiles;
use crate::run::budget::{Stop, StopCheck};
use crate::run::order::Permutation;

/// Largest cached share of an emptied stretch that counts as cold: what is left behind at its edges.
const NEARLY_COLD: f64 = 0.01;
/// Smallest cached share of a stretch that counts as cached.
const NEARLY_CACHED: f64 = 0.99;

/// A stretch is of use if no more than one in `MOST_BUFFERED` of its blocks is in shared buffers.
const MOST_BUFFERED: u64 = 4;

/// Stretches that are looked at before none is said to be cold.
const MOST_LOOKS: u64 = 256;

/// Bytes of the region around a scattered block that has to be cold as a whole.
const REGION: u64 = 1 << 20;

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
    /// A reason to stop came up.
    Stopped(Stop),
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
    pub(super) fn take(&mut self, should_stop: &mut StopCheck<'_>) -> Result<Supply> {
        let looks = if self.exhausted { 0 } else { MOST_LOOKS.min(self.order.len()) };
        for _ in 0..looks {
            let start = self.order.at(self.next % self.order.len()) * self.length;
            self.next += 1;
            let range = start..start + self.length;
            if self.taken.ranges.contains(&range) {
                self.skipped += 1;
                continue;
            }
            if let Some(stop) = should_stop() {
                return Ok(Supply::Stopped(stop));
            }
            if self.is_mostly_buffered(&range) {
                self.passed_over.buffered += 1;
                continue;
            }
            match self.source.have_holes(range.clone(), should_stop)? {
                Ok(true) => {
                    self.passed_over.holes += 1;
                    continue;
                }
                Ok(false) => {}
                Err(stop) => return Ok(Supply::Stopped(stop)),
            }
            match self.make_cold(&range, self.ours.contains(&range.start), should_stop)? {
                Ok(Some(cached)) => {
                    self.ours.insert(range.start);
                    self.taken.ranges.push(range.clone());
                    self.found = true;
                    return Ok(Supply::Cold { range, cached });
                }
                Ok(None) => self.passed_over.cached += 1,
                Err(stop) => return Ok(Supply::Stopped(stop)),
            }
            let again = range.start..range.end.min(range.start + self.again);
            if self.cached.is_none()
                && self.share(&range)? >= NEARLY_CACHED
                && self.share(&again)? >= NEARLY_CACHED
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
    /// cached all the same. Err holds a reason to stop.
    pub(super) fn scatter(
        &mut self,
        count: usize,
        should_stop: &mut StopCheck<'_>,
    ) -> Result<std::result::Result<(Vec<u64>, u64), Stop>> {
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
                if let Some(stop) = should_stop() {
                    return Ok(Err(stop));
                }
                match self.source.have_holes(around.clone(), should_stop)? {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(stop) => return Ok(Err(stop)),
                }
                match self.make_cold(&around, false, should_stop)? {
                    Ok(Some(cached)) => {
                        cached_blocks += cached as f64 / (around.end - around.start) as f64;
                        self.taken.ranges.push(around);
                    }
                    Ok(None) => continue,
                    Err(stop) => return Ok(Err(stop)),
                }
            }
            found.push(block);
        }
        Ok(Ok((found, cached_blocks.round() as u64)))
    }

    /// Was the block in shared buffers when the run began?
    pub(super) fn is_buffered(&self, block: u64) -> bool {
        self.buffered.binary_search_by_key(&block, |buffered| u64::from(*buffered)).is_ok()
    }

    fn is_mostly_buffered(&self, range: &Range<u64>) -> bool {
        let before = |end: u64| self.buffered.partition_point(|block| u64::from(*block) < end);
        (before(range.end) - before(range.start)) as u64 > (range.end - range.start) / MOST_BUFFERED
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
    ) -> Result<std::result::Result<Option<u64>, Stop>> {
        let blocks = |share: f64| (share * (range.end - range.start) as f64).round() as u64;
        let mut share = self.share(range)?;
        if share > NEARLY_COLD && self.evicts {
            if let (_, Some(stop)) = self.source.write_back(range.clone(), should_stop)? {
                return Ok(Err(stop));
            }
            self.source.drop_cached(range.clone())?;
            share = self.share(range)?;
        }
        if share > NEARLY_COLD && self.evicts {
            // Large folios go only as a whole.
            if let Some(stop) = self.source.evict(range.clone(), should_stop, &mut |_| ())? {
                return Ok(Err(stop));
            }
            share = self.share(range)?;
        }
        // What others have read there must not be dropped unless that is allowed.
        let most = if self.evicts || is_ours { NEARLY_COLD } else { 0.0 };
        Ok(Ok((share <= most).then(|| blocks(share))))
    }

    /// The share of a range that is cached.
    fn share(&self, range: &Range<u64>) -> Result<f64> {
        let bytes = (range.end - range.start) * u64::from(self.source.block_size());
        Ok(self.source.cached_bytes(range.clone())? as f64 / bytes.max(1) as f64)
    }
}

/// Blocks of which the OS cache held little or nothing: what was read there is dropped again.
pub(super) struct ColdRanges<'a> {
    source: &'a RelationFiles,
    ranges: Vec<Range<u64>>,
}

impl<'a> ColdRanges<'a> {
    pub(super) fn of(source: &'a RelationFiles, ranges: Vec<Range<u64>>) -> Self {
        Self { source, ranges }
    }

    /// Drops what was read. After an error the others are still to be dropped.
    pub(super) fn drop_cached(&mut self) -> Result<()> {
        while let Some(range) = self.ranges.pop() {
            self.source.drop_cached(range)?;
        }
        Ok(())
    }

    /// The same; returns how many bytes that were, about.
    pub(super) fn release(&mut self) -> Result<u64> {
        let mut bytes = 0;
        // In reverse: where there are many files, those of the last are still open.
        while let Some(range) = self.ranges.pop() {
            let cached = self.source.cached_bytes(range.clone());
            self.source.drop_cached(range)?;
            bytes += cached?;
        }
        Ok(bytes)
    }
}

/// Also if a caller unwinds, as a cancelled query does.
impl Drop for ColdRanges<'_> {
    fn drop(&mut self) {
        while !self.ranges.is_empty() {
            // No caller is left to hear of an error.
            let _ = self.drop_cached();
        }
    }
}
