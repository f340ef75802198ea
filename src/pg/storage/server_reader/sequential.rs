//! Sequential scans: from PostgreSQL 17 on through a read stream.

use io_probe_core::Result as CoreResult;
use io_probe_core::files::Part;
use io_probe_core::measure::BlockReader;
use io_probe_core::measure::scan::Steps;
use io_probe_core::run::stopwatch::Stopwatch;
use pgrx::pg_sys;

use super::{Pages, ServerReader};
use crate::pg::compat::{Blocks, ReadAhead};
use crate::pg::storage::buffers::{Resident, Usage};
use crate::pg::storage::relation::Relation;

/// Reads as a sequential scan of a large table goes.
pub(crate) struct Sequential {
    skipped: u64,
}

impl Sequential {
    /// The steps of a scan above a kernel that reads `window` bytes ahead. Each run opens a read stream,
    /// which takes a few blocks to get going.
    pub(crate) fn steps(window: u64) -> Steps {
        let block_size = pg_sys::BLCKSZ.into();
        Steps { least_hole: 16 * block_size, ..Steps::above_readahead(window, block_size) }
    }
}

/// Blocks between two readings of the clock.
const BLOCKS_PER_LOOK: u64 = 16;

impl<'a> ServerReader<'a, Sequential> {
    /// Reads a relation. Pages that are in `skip` are passed over.
    pub(crate) fn sequential(relation: &'a Relation, skip: Option<&'a Resident<'_>>) -> Self {
        let way = Sequential { skipped: 0 };
        Self::new(Pages::new(relation, None), skip.map(Resident::blocks).unwrap_or_default(), way)
    }

    /// Blocks that were passed over.
    pub(crate) fn skipped(&self) -> u64 {
        self.way.skipped
    }
}

impl BlockReader<Part> for ServerReader<'_, Sequential> {
    fn read(&mut self, part: &mut Part, watch: &mut Stopwatch<'_>) -> CoreResult<()> {
        let mut scanning = Scanning {
            next: part.blocks.start,
            end: part.blocks.end,
            skip: self.skip,
            skipped: 0,
            unreported: 0,
            before: Usage::default(),
            watch,
        };
        self.pages.read(ReadAhead::Sequential, &mut scanning);
        let Scanning { skipped, unreported, before, .. } = scanning;
        if unreported > 0 {
            let _ = watch.arrived(unreported);
        }
        watch.pass_over(skipped);
        self.way.skipped += skipped;
        self.usage.add_since(before);
        Ok(())
    }
}

/// The blocks of a part as they are read.
struct Scanning<'s, 'm> {
    next: u64,
    end: u64,
    skip: &'s [pg_sys::BlockNumber],
    skipped: u64,
    /// Blocks since the clock was last read. To read it after each block would cost a tenth of a hit.
    unreported: u64,
    before: Usage,
    watch: &'s mut Stopwatch<'m>,
}

impl Blocks for Scanning<'_, '_> {
    fn begin(&mut self) {
        self.before = Usage::now();
        self.watch.begin();
    }

    fn next(&mut self) -> Option<pg_sys::BlockNumber> {
        while self.next < self.end {
            let block = self.next as pg_sys::BlockNumber;
            self.next += 1;
            if self.skip.binary_search(&block).is_ok() {
                self.skipped += 1;
                continue;
            }
            return Some(block);
        }
        None
    }

    #[inline]
    fn arrived(&mut self, _buffer: pg_sys::Buffer) {
        self.unreported += 1;
        if self.unreported == BLOCKS_PER_LOOK {
            self.unreported = 0;
            if self.watch.arrived(BLOCKS_PER_LOOK).is_break() {
                self.end = self.next;
            }
        }
    }
}
