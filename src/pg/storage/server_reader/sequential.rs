//! Sequential scans: from PostgreSQL 17 on through a read stream.

use io_probe_core::Result as CoreResult;
use io_probe_core::files::Part;
use io_probe_core::files::holes::Holes;
use io_probe_core::measure::scan::{Meter, Reader, Steps};
use pgrx::pg_sys;

use super::{Pages, ServerReader, Skip};
use crate::pg::compat::{self, Blocks, ReadAhead};
use crate::pg::storage::buffers::{Resident, Usage};
use crate::pg::storage::relation::{Fork, Relation};

/// As a sequential scan of a large table goes.
pub(crate) struct Sequential<'a> {
    resident: Resident<'a>,
    /// Blocks that the server may join into one read, where not as many as is set.
    combine_limit: Option<u32>,
    /// The kernel's readahead window, in bytes; zero where no limit asks for it.
    window: u64,
    skipped: u64,
}

/// The clock is read once for so many blocks.
const BLOCKS_PER_LOOK: u64 = 16;

impl<'a> ServerReader<'a, Sequential<'a>> {
    /// Reads from a fork, of whose device the kernel's readahead window has so many bytes. With
    /// `skip_resident`, pages that are in buffers now are passed over.
    pub(crate) fn sequential(relation: &'a Relation, fork: Fork, window: u64, skip_resident: bool) -> Self {
        let resident = Resident::new(relation, fork);
        let skip = if skip_resident { Skip::of(&resident) } else { Skip::default() };
        let way = Sequential { resident, combine_limit: None, window, skipped: 0 };
        Self::new(Pages::new(relation, fork, None), skip, way)
    }

    /// Reads from the main fork as if `io_combine_limit` were so many blocks (from PostgreSQL 17 on), with
    /// the ring that the server takes then.
    pub(crate) fn combining(relation: &'a Relation, blocks: u32) -> Self {
        let pages = compat::with_combine_limit(blocks, || Pages::new(relation, Fork::MAIN, None));
        let resident = Resident::new(relation, Fork::MAIN);
        let way = Sequential { resident, combine_limit: Some(blocks), window: 0, skipped: 0 };
        Self::new(pages, Skip::default(), way)
    }

    /// Makes it ready for another scan. The ring stays: with a new one for each, many scans would push out as
    /// many times the pages of others that one does.
    pub(crate) fn renew(&mut self) {
        let Pages { relation, fork, .. } = self.pages;
        relation.close_files();
        self.way.resident = Resident::new(relation, fork);
        self.way.skipped = 0;
        self.usage = Usage::default();
    }

    /// Blocks that were passed over.
    pub(crate) fn skipped(&self) -> u64 {
        self.way.skipped
    }
}

impl Reader for ServerReader<'_, Sequential<'_>> {
    fn read(&mut self, part: &Part, meter: &mut Meter<'_>) -> CoreResult<()> {
        let mut scanning = Scanning {
            next: part.blocks.start,
            end: part.blocks.end,
            skip: &self.skip,
            skipped: 0,
            unreported: 0,
            before: Usage::default(),
            meter,
        };
        let mut read = || self.pages.read(ReadAhead::Sequential, &mut scanning);
        match self.way.combine_limit {
            Some(blocks) => compat::with_combine_limit(blocks, read),
            None => read(),
        }
        let Scanning { skipped, unreported, before, .. } = scanning;
        if unreported > 0 {
            let _ = meter.arrived(unreported);
        }
        meter.pass_over(skipped);
        self.way.skipped += skipped;
        self.usage.add_since(before);
        Ok(())
    }

    fn steps(&self) -> Steps {
        Steps::above_readahead(self.way.window, pg_sys::BLCKSZ.into())
    }

    /// Each run opens a read stream, which takes a few blocks to get going.
    fn least_hole(&self) -> u64 {
        16 * u64::from(pg_sys::BLCKSZ)
    }

    /// A block that is in a buffer has data, also when it was never written to its file.
    fn without_data(&self, part: &Part, holes: Holes) -> Holes {
        self.way.resident.remove_from(part, holes)
    }
}

/// The blocks of a part as they are read.
struct Scanning<'s, 'm> {
    next: u64,
    end: u64,
    skip: &'s Skip,
    skipped: u64,
    /// Reading the clock for each block would cost a hundredth of a hit.
    unreported: u64,
    before: Usage,
    meter: &'s mut Meter<'m>,
}

impl Blocks for Scanning<'_, '_> {
    fn begin(&mut self) {
        self.before = Usage::now();
        self.meter.begin();
    }

    fn next(&mut self) -> Option<pg_sys::BlockNumber> {
        while self.next < self.end {
            let block = self.next as pg_sys::BlockNumber;
            self.next += 1;
            if self.skip.contains(block) {
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
            if self.meter.arrived(BLOCKS_PER_LOOK).is_break() {
                self.end = self.next;
            }
        }
    }
}
