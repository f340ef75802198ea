//! What to fetch next, and what is known of it before.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use super::segments::Segments;
use crate::Result;
use crate::order::Permutation;
use crate::pace::Pace;
use crate::source::Source;

/// What the kernel had of a block right before it was fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The file holds no data there: whatever comes back was made up by the kernel.
    Hole,
    /// All of it was in the page cache.
    Cached,
    /// Some of it was not.
    Missing,
    /// The kernel does not tell.
    Unknown,
}

/// A block to fetch.
#[derive(Debug, Clone, Copy)]
pub struct Fetch {
    /// Its number in the relation.
    pub block: u64,
    /// What was found of it.
    pub found: Found,
}

/// Whether to look for a block in the page cache before it is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// No: fetches go past the page cache.
    Never,
    /// Yes, so many blocks at a time, while nothing is being timed. What the first fetches of such a batch
    /// read around their block may be found by the later ones: the smaller, the truer.
    Batches(usize),
}

impl Look {
    /// For fetches at this depth. Each batch begins and ends with a queue that is not full, which is left out
    /// of the figures, so that it has to be several times as long.
    pub fn for_depth(depth: usize) -> Self {
        Look::Batches((8 * depth).max(32))
    }

    /// For fetches that the server makes with so many reads ahead: it starts anew with each batch and takes a while
    /// to get going.
    pub fn for_server(depth: usize) -> Self {
        Look::Batches((32 * depth).max(256))
    }
}

/// The blocks of a relation in random order, each at most once.
///
/// An order, and a place in it: memory does not grow with the relation.
pub struct Plan<'a> {
    source: &'a Source,
    order: Permutation,
    /// Where in the order to start; it goes round.
    first: u64,
    /// Elements handed out, or looked at.
    taken: u64,
    /// The block after those.
    ahead: Option<u64>,
    /// Blocks with data that may still be handed out.
    budget: u64,
    look: Look,
    batch: VecDeque<Fetch>,
    segments: Segments<'a>,
}

impl<'a> Plan<'a> {
    /// Blocks of `source` in `order`, from its element number `first` on. Files are opened with O_DIRECT if
    /// nobody looks into the page cache.
    pub fn new(source: &'a Source, order: Permutation, first: u64, look: Look) -> Self {
        let segments = Segments::new(source, look == Look::Never);
        let batch = VecDeque::with_capacity(if let Look::Batches(size) = look { size } else { 0 });
        let mut plan =
            Self { source, first, order, taken: 0, ahead: None, budget: u64::MAX, look, batch, segments };
        plan.ahead = plan.peek();
        plan
    }

    /// At most so many bytes more. Holes are free.
    pub(super) fn set_budget(&mut self, bytes: u64) {
        self.budget = bytes / u64::from(self.source.block_size());
    }

    /// Has every block been handed out?
    pub fn is_complete(&self) -> bool {
        self.taken == self.order.len() && self.batch.is_empty()
    }

    /// Begins again in another order.
    pub fn restart(&mut self, order: Permutation) {
        (self.order, self.first, self.taken) = (order, 0, 0);
        self.ahead = self.peek();
        self.batch.clear();
    }

    /// Is there nothing more to hand out: neither block nor budget?
    pub(super) fn is_over(&self) -> bool {
        self.batch.is_empty() && (self.taken == self.order.len() || self.budget == 0)
    }

    /// Makes sure that [`Plan::next`] need not do anything slow, as far as this can be.
    ///
    /// Called while nothing is being timed.
    pub(crate) fn prepare(&mut self, pace: &mut Pace<'_>) -> Result<()> {
        let Look::Batches(size) = self.look else {
            if let Some(block) = self.ahead {
                self.segments.is_hole(block, pace)?;
            }
            return Ok(());
        };
        while self.batch.len() < size && self.budget > 0 {
            let Some(block) = self.ahead else { break };
            let mut found = Found::Hole;
            if !self.segments.is_hole(block, pace)? {
                found = match self.segments.cached_bytes(block)? {
                    None => Found::Unknown,
                    Some(bytes) if bytes >= u64::from(self.source.block_size()) => Found::Cached,
                    Some(_) => Found::Missing,
                };
                self.budget -= 1;
            }
            self.advance();
            self.batch.push_back(Fetch { block, found });
        }
        Ok(())
    }

    fn peek(&self) -> Option<u64> {
        let (index, len) = (self.first + self.taken, self.order.len());
        (self.taken < len).then(|| self.order.at(if index < len { index } else { index - len }))
    }

    #[inline]
    fn advance(&mut self) {
        self.taken += 1;
        self.ahead = self.peek();
    }

    /// The next block; None when there is none, or none that is prepared.
    #[inline]
    pub fn next(&mut self, pace: &mut Pace<'_>) -> Result<Option<Fetch>> {
        if self.look != Look::Never {
            return Ok(self.batch.pop_front());
        }
        if self.budget == 0 {
            return Ok(None);
        }
        let Some(block) = self.ahead else { return Ok(None) };
        let hole = self.segments.is_hole(block, pace)?;
        self.advance();
        self.budget -= u64::from(!hole);
        Ok(Some(Fetch { block, found: if hole { Found::Hole } else { Found::Missing } }))
    }

    /// Does the next block need anything slow: a file that is not open, a segment that was not seen?
    #[inline]
    pub(super) fn next_is_slow(&self) -> bool {
        let block = self.batch.front().map(|fetch| fetch.block).or(self.ahead);
        block.is_some_and(|b| self.segments.is_new(b) || !self.segments.is_open(self.source.segment(b)))
    }

    /// The file of a block, and the offset in it.
    #[inline]
    pub fn file(&mut self, block: u64) -> Result<(&Arc<File>, u64)> {
        let source = self.source;
        Ok((self.segments.file(source.segment(block))?, source.offset(block)))
    }

    /// The relation.
    pub fn source(&self) -> &'a Source {
        self.source
    }

    /// Bytes that were dirty in the page cache and had to be written back first.
    pub fn written_back(&self) -> u64 {
        self.segments.written_back()
    }
}
