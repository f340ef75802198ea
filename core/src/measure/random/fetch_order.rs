//! What to fetch next, and what is known of it before.

use std::cell::Ref;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use super::inspected::Inspected;
use crate::Result;
use crate::files::holes::WithoutData;
use crate::files::{Access, RelationFiles};
use crate::run::budget::{Budget, Outcome, StopCheck, stop_if, stopped};
use crate::run::order::Permutation;

/// What the kernel had of a block right before it was fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The file holds no data there: whatever comes back was made up by the kernel.
    Hole,
    /// All of it was in the page cache.
    Cached,
    /// Bytes of it that were not; all of them if it is fetched past the page cache, without a look.
    Missing(u32),
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
    /// Yes, right before, beside requests in flight. Where the page cache serves nearly all, that slows the
    /// queue down.
    Each,
    /// Yes, this number of blocks at a time, while nothing is being timed. What the first fetches of a batch
    /// read around their block may be found by the later ones: the smaller, the truer.
    Batches(usize),
}

impl Look {
    /// This look where a fetch may come long after the one before it: each block is looked for by itself.
    pub fn for_pauses(self) -> Self {
        if let Look::Batches(_) = self { Look::Batches(1) } else { self }
    }

    /// For fetches of our own at this depth.
    pub fn for_depth(depth: usize) -> Self {
        if depth == 1 { Look::Batches(32) } else { Look::Each }
    }
}

/// The file of a block, and the offset in it. Let go of it before the next is asked for.
pub struct Located<'a> {
    /// The file.
    pub file: Ref<'a, Arc<File>>,
    /// In bytes.
    pub offset: u64,
    /// Had the file to be opened?
    pub(super) is_new: bool,
}

/// The blocks of a relation in random order, each at most once.
///
/// An order, and a place in it: memory does not grow with the relation.
pub struct FetchOrder<'a> {
    source: &'a RelationFiles,
    order: Permutation,
    /// Where in the order to start; it goes round.
    first: u64,
    /// Elements handed out, or looked at.
    taken: u64,
    /// The block after those.
    ahead: Option<u64>,
    look: Look,
    batch: VecDeque<Fetch>,
    inspected: Inspected<'a>,
    /// Was all done that [`FetchOrder::inspect_segments`] does?
    seen_all: bool,
}

impl<'a> FetchOrder<'a> {
    /// Blocks of `source` in `order`, from its element number `first` on. Files are opened with O_DIRECT for
    /// [`Look::Never`].
    pub fn new(source: &'a RelationFiles, order: Permutation, first: u64, look: Look) -> Self {
        Self::with_data(source, order, first, look, None)
    }

    /// Like [`FetchOrder::new`], for a reader that has data, in memory, where the file has holes.
    pub fn with_data(
        source: &'a RelationFiles,
        order: Permutation,
        first: u64,
        look: Look,
        without_data: Option<&'a WithoutData<'a>>,
    ) -> Self {
        let access = if look == Look::Never { Access::Direct } else { Access::Buffered };
        let batch = VecDeque::with_capacity(if let Look::Batches(size) = look { size } else { 0 });
        let mut fetch_order = Self {
            source,
            first,
            order,
            taken: 0,
            ahead: None,
            look,
            batch,
            inspected: Inspected::new(source, access, without_data),
            seen_all: false,
        };
        fetch_order.ahead = fetch_order.peek();
        fetch_order
    }

    /// Are there bytes for another block? Holes are free.
    #[inline]
    fn is_affordable(&self, budget: &Budget<'_>) -> bool {
        budget.bytes_left() >= u64::from(self.source.block_size())
    }

    /// How many blocks there are.
    pub(super) fn len(&self) -> u64 {
        self.order.len()
    }

    /// Has every block been handed out?
    pub(super) fn is_complete(&self) -> bool {
        self.taken == self.order.len() && self.batch.is_empty()
    }

    /// Has no block been handed out yet?
    pub(super) fn is_untouched(&self) -> bool {
        self.taken == 0
    }

    /// Begins again in another order.
    pub(super) fn restart(&mut self, order: Permutation) {
        (self.order, self.first, self.taken) = (order, 0, 0);
        self.ahead = self.peek();
        self.batch.clear();
    }

    /// Is there nothing more to hand out: neither block nor budget?
    pub(super) fn is_over(&self, budget: &Budget<'_>) -> bool {
        self.batch.is_empty() && (self.taken == self.order.len() || !self.is_affordable(budget))
    }

    /// Looks at all segments, if they are few enough for their files to stay open. Where fetches are to go
    /// past the page cache, what is dirty there is written back, however many segments there are.
    ///
    /// A run does this before its clock starts. A caller that watches the devices does it before that, or
    /// would take what is written back for others' writes. May be called again, also if it was stopped.
    pub fn inspect_segments(&mut self, should_stop: &mut StopCheck<'_>) -> Outcome<()> {
        if self.seen_all {
            return Ok(());
        }
        if !self.source.all_stay_open() {
            self.inspected.write_back(should_stop)?;
        } else {
            for segment in 0..self.source.segments() {
                stop_if(should_stop())?;
                if self.inspected.is_new(segment) {
                    self.inspected.inspect(segment, true, should_stop)?;
                }
            }
        }
        self.seen_all = true;
        Ok(())
    }

    /// Looks at the segment of the next block. True when that is known now; it may not be, if the caller may
    /// not wait.
    pub(super) fn inspect_next_segment(&mut self, may_wait: bool, budget: &mut Budget<'_>) -> Result<bool> {
        if let Some(block) = self.ahead {
            let segment = self.source.segment(block);
            // What is not seen stays new; the budget keeps a reason to stop.
            stopped(self.inspected.inspect(segment, may_wait, &mut || budget.poll()))?;
        }
        Ok(!self.next_is_new(budget))
    }

    /// Makes sure that [`FetchOrder::hand_out`] need not do anything slow, as far as this can be.
    ///
    /// Called while nothing is being timed.
    pub(crate) fn prepare(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let size = if let Look::Batches(size) = self.look { size } else { 0 };
        if self.next_is_new(budget) {
            self.inspect_next_segment(true, budget)?;
        }
        while self.batch.len() < size && self.is_affordable(budget) {
            let Some(block) = self.ahead else { break };
            let segment = self.source.segment(block);
            if self.inspected.is_new(segment) {
                stopped(self.inspected.inspect(segment, true, &mut || budget.poll()))?;
                if budget.poll().is_some() {
                    break;
                }
            }
            let fetch = self.take(block, budget)?;
            self.batch.push_back(fetch);
        }
        Ok(())
    }

    /// Takes the block ahead, whose segment has been seen.
    #[inline]
    fn take(&mut self, block: u64, budget: &mut Budget<'_>) -> Result<Fetch> {
        let hole = self.inspected.is_hole(block);
        let size = self.source.block_size();
        let found = match self.look {
            _ if hole => Found::Hole,
            Look::Never => Found::Missing(size),
            Look::Each | Look::Batches(_) => match self.cached_bytes(block)? {
                None => Found::Unknown,
                Some(bytes) => match u64::from(size).saturating_sub(bytes) {
                    0 => Found::Cached,
                    missing => Found::Missing(missing as u32),
                },
            },
        };
        self.taken += 1;
        self.ahead = self.peek();
        if !hole {
            budget.spend(size.into());
        }
        Ok(Fetch { block, found })
    }

    /// What the page cache held of a block; None where the kernel does not tell.
    fn cached_bytes(&self, block: u64) -> Result<Option<u64>> {
        let start = self.source.offset(block);
        let (open, _) = self.source.get(self.source.segment(block), self.inspected.access)?;
        let found = open.residency(start..start + u64::from(self.source.block_size()));
        Ok(found.ok().map(|found| found.cached_bytes))
    }

    fn peek(&self) -> Option<u64> {
        let (index, len) = (self.first + self.taken, self.order.len());
        (self.taken < len).then(|| self.order.at(if index < len { index } else { index - len }))
    }

    /// The next block, whose bytes are spent with it; None when there is none, or none that is prepared.
    #[inline]
    pub fn hand_out(&mut self, budget: &mut Budget<'_>) -> Result<Option<Fetch>> {
        if let Look::Batches(_) = self.look {
            return Ok(self.batch.pop_front());
        }
        match self.ahead {
            Some(block)
                if self.is_affordable(budget) && !self.inspected.is_new(self.source.segment(block)) =>
            {
                self.take(block, budget).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Is the next block in a segment of which nothing is known yet?
    #[inline]
    pub(super) fn next_is_new(&self, budget: &Budget<'_>) -> bool {
        !matches!(self.look, Look::Batches(_))
            && self.is_affordable(budget)
            && self.ahead.is_some_and(|block| self.inspected.is_new(self.source.segment(block)))
    }

    /// Where a block is.
    #[inline]
    pub fn locate(&self, block: u64) -> Result<Located<'a>> {
        let source = self.source;
        let (open, is_new) = source.get(source.segment(block), self.inspected.access)?;
        Ok(Located { file: Ref::map(open, |open| &open.file), offset: source.offset(block), is_new })
    }

    /// The relation.
    pub fn source(&self) -> &'a RelationFiles {
        self.source
    }

    /// Bytes that were dirty in the page cache and had to be written back first.
    pub fn written_back(&self) -> u64 {
        self.inspected.written_back
    }
}
