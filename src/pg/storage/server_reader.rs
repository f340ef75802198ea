//! The `server` path: blocks of a relation through the buffer manager, in the ways in which the server itself
//! reads.
//!
//! The way is the reader's parameter: [`sequential`] as a scan of a large table goes, [`random`] single
//! blocks, [`in_turns`] both and ascending blocks with gaps, as a bitmap heap scan reads them.
//!
//! Blocks come into rings of buffers, so that a probe evicts few pages of others: the ring of a scan, and one
//! of as many buffers as reads ahead may pin.

mod in_turns;
mod random;
mod sequential;

use pgrx::pg_sys;

pub(crate) use self::random::{Missing, Random};
pub(crate) use self::sequential::Sequential;
use crate::pg::compat::{self, Blocks, ReadAhead};
use crate::pg::storage::buffers::Usage;
use crate::pg::storage::relation::Relation;

/// Reads blocks of a relation through the buffer manager.
pub(crate) struct ServerReader<'a, Way> {
    pages: Pages<'a>,
    /// Blocks not to read, ascending: the server could not evict them, and cold was asked for.
    skip: &'a [pg_sys::BlockNumber],
    usage: Usage,
    way: Way,
}

impl<'a, Way> ServerReader<'a, Way> {
    /// Reads `pages` with descriptors that are opened afresh, and passes `skip` over.
    fn new(pages: Pages<'a>, skip: &'a [pg_sys::BlockNumber], way: Way) -> Self {
        pages.relation.close_files();
        Self { pages, skip, usage: Usage::default(), way }
    }

    /// What the buffer manager counted during the reads, and nothing else.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }
}

/// A relation, and the buffers that its blocks come into. The rings belong to the memory context of the call.
struct Pages<'a> {
    relation: &'a Relation,
    /// The ring for reads that run no further ahead than in a sequential scan.
    ring: pg_sys::BufferAccessStrategy,
    ring_ahead: Option<pg_sys::BufferAccessStrategy>,
}

impl<'a> Pages<'a> {
    /// Pages that come into the ring of a sequential scan; those read ahead, by at most `most`, into a ring
    /// for that.
    fn new(relation: &'a Relation, most: Option<ReadAhead>) -> Self {
        let ring = compat::ring(ReadAhead::Sequential);
        Self { relation, ring, ring_ahead: most.map(compat::ring) }
    }

    /// Reads a block, as an index scan does, and lets go of it. Returns the buffer that it is in.
    #[inline]
    fn read_one(&self, block: pg_sys::BlockNumber) -> pg_sys::Buffer {
        // SAFETY: the relation is open and locked for as long as it is borrowed, its callers name blocks that
        // exist, and the ring was made in this call.
        unsafe { compat::read_block(self.relation.as_ptr(), block, self.ring) }
    }

    /// Reads `blocks`, and lets go of each.
    fn read(&self, ahead: ReadAhead, blocks: &mut dyn Blocks) {
        let ring = match ahead {
            ReadAhead::Sequential => self.ring,
            ReadAhead::By(_) | ReadAhead::Bitmap(_) => self.ring_ahead.unwrap_or(self.ring),
        };
        // SAFETY: as above.
        unsafe { compat::read_blocks(self.relation.as_ptr(), ring, ahead, blocks) }
    }
}
