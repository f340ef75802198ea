//! Random fetches of single blocks.
//!
//! At depth 1 one ReadBuffer after the other, as an index scan makes them. At a greater depth the server's
//! own prefetching: on 15 and 16 PrefetchBuffer that many blocks ahead, as a bitmap heap scan does, from 17
//! on a read stream with `effective_io_concurrency` set to the depth for the time of the call. There the
//! server decides when a read is issued, so that single latencies are not known.
//!
//! A block is fetched once, so nothing is lost by the small ring that it comes into.

use io_probe_core::Result as CoreResult;
use io_probe_core::measure::BlockReader;
use io_probe_core::measure::random::{Fetch, FetchRecord, Fetches, Found, Look, Served};
use io_probe_core::run::stopwatch::Stopwatch;
use pgrx::pg_sys;

use super::{Pages, ServerReader};
use crate::pg::backend::server;
use crate::pg::compat::{self, Blocks, ReadAhead};
use crate::pg::storage::buffers::{Resident, Usage};
use crate::pg::storage::relation::Relation;

/// What the OS page cache did not have right before; all, where the server reads past it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Missing {
    /// Blocks, some of them perhaps in part.
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
}

/// Single blocks in random order.
pub(crate) struct Random {
    depth: u32,
    /// Does the server read past the OS page cache?
    past_cache: bool,
    /// What was missing of the blocks fetched at a depth over 1; None if unknown.
    missing: Option<Missing>,
}

impl Random {
    /// How to look into the page cache for fetches with `depth` reads ahead: the server starts anew with each
    /// batch, and takes a while to get going.
    pub(crate) fn look(depth: u32) -> Look {
        if depth == 1 { Look::for_depth(1) } else { Look::Batches((32 * depth as usize).max(256)) }
    }

    /// How many reads the server lets run ahead of a reader that wants `depth`.
    pub(crate) fn reads_ahead(relation: &Relation, depth: u32) -> u32 {
        // SAFETY: the relation is open.
        let depth = unsafe { compat::reads_ahead(relation.as_ptr(), depth) };
        let io_method = server::setting(c"io_method");
        // Advice to the kernel's cache is of no use past it, and I/O workers can't read into local buffers.
        let advises = io_method.as_deref().is_none_or(|method| method == "sync");
        let works_alone = advises && server::reads_direct()
            || io_method.as_deref() == Some("worker") && relation.is_temporary();
        if works_alone {
            return 1;
        }
        // From 18 on a process has this many I/O handles.
        let most = server::setting(c"io_max_concurrency").and_then(|most| most.parse::<u32>().ok());
        most.map_or(depth, |most| depth.min(most))
    }
}

impl<'a> ServerReader<'a, Random> {
    /// Fetches with `depth` reads ahead. Pages that are in `skip` are passed over.
    pub(crate) fn random(relation: &'a Relation, depth: u32, skip: Option<&'a Resident<'_>>) -> Self {
        let ahead = (depth > 1).then_some(ReadAhead::By(depth));
        let way = Random { depth, past_cache: server::reads_direct(), missing: Some(Missing::default()) };
        let pages = Pages::new(relation, ahead);
        Self::new(pages, skip.map(Resident::blocks).unwrap_or_default(), way)
    }

    /// What had to come from the device of the blocks fetched at a depth over 1, if the server had none of
    /// them itself; None if unknown.
    pub(crate) fn missing(&self) -> Option<Missing> {
        self.way.missing
    }

    /// The next block that holds data and is not to be passed over.
    fn next(&self, fetches: &mut Fetches<'_, '_>, watch: &mut Stopwatch<'_>) -> CoreResult<Option<Fetch>> {
        let Fetches { fetch_order, record } = fetches;
        while let Some(mut fetch) = fetch_order.hand_out(watch.budget())? {
            if self.way.past_cache && matches!(fetch.found, Found::Cached | Found::Missing(_)) {
                fetch.found = Found::Missing(pg_sys::BLCKSZ);
            }
            if fetch.found == Found::Hole {
                if record.hole(watch).is_break() {
                    return Ok(None);
                }
            } else if self.skip.binary_search(&number(fetch)).is_err() {
                return Ok(Some(fetch));
            } else {
                record.pass_over();
                watch.budget().refund(pg_sys::BLCKSZ.into());
            }
        }
        Ok(None)
    }

    fn one_by_one(&mut self, fetches: &mut Fetches<'_, '_>, watch: &mut Stopwatch<'_>) -> CoreResult<()> {
        loop {
            if let Some(due) = fetches.record.early(watch)
                && watch.pause_until(due).is_break()
            {
                return Ok(());
            }
            let Some(fetch) = self.next(fetches, watch)? else { return Ok(()) };
            let hits = Usage::hits_so_far();
            let request = fetches.record.issue(watch, fetch, Some(watch.last()), true);
            self.pages.read_one(number(fetch));
            let served = if Usage::hits_so_far() > hits { Served::Shared } else { fetch.found.into() };
            if fetches.record.done(watch, request, served, true).is_break() {
                return Ok(());
            }
        }
    }

    /// Fetches all that is prepared, with the server reading ahead.
    fn ahead(&mut self, fetches: &mut Fetches<'_, '_>, watch: &mut Stopwatch<'_>) -> CoreResult<()> {
        let mut batch = Vec::new();
        while let Some(fetch) = self.next(fetches, watch)? {
            batch.push(fetch);
        }
        if watch.stop().is_some() {
            return Ok(());
        }
        let Self { pages, way, .. } = self;
        let depth = way.depth;
        let (record, end) = (&mut fetches.record, batch.len());
        let mut arriving = Arriving { way, record, watch, handed_out: 0, arrived: 0, end, batch };
        pages.read(ReadAhead::By(depth), &mut arriving);
        Ok(())
    }
}

impl BlockReader<Fetches<'_, '_>> for ServerReader<'_, Random> {
    fn read(&mut self, fetches: &mut Fetches<'_, '_>, watch: &mut Stopwatch<'_>) -> CoreResult<()> {
        let before = Usage::now();
        let result =
            if self.way.depth == 1 { self.one_by_one(fetches, watch) } else { self.ahead(fetches, watch) };
        self.usage.add_since(before);
        result
    }
}

fn number(fetch: Fetch) -> pg_sys::BlockNumber {
    fetch.block as pg_sys::BlockNumber
}

/// The blocks of a batch as they arrive, which is in order.
struct Arriving<'t, 'w> {
    way: &'t mut Random,
    record: &'t mut FetchRecord,
    watch: &'t mut Stopwatch<'w>,
    batch: Vec<Fetch>,
    handed_out: usize,
    arrived: usize,
    end: usize,
}

impl Blocks for Arriving<'_, '_> {
    fn begin(&mut self) {
        self.watch.begin();
    }

    fn next(&mut self) -> Option<pg_sys::BlockNumber> {
        let fetch = self.batch.get(self.handed_out).filter(|_| self.handed_out < self.end)?;
        self.handed_out += 1;
        Some(number(*fetch))
    }

    fn arrived(&mut self, _buffer: pg_sys::Buffer) {
        let fetch = self.batch[self.arrived];
        self.arrived += 1;
        match (fetch.found, &mut self.way.missing) {
            (Found::Missing(bytes), Some(missing)) => {
                missing.blocks += 1;
                missing.bytes += u64::from(bytes);
            }
            (Found::Unknown, missing) => *missing = None,
            _ => {}
        }
        let depth = self.way.depth as usize;
        let steady = self.arrived > depth && self.arrived + depth <= self.end;
        let request = self.record.issue(self.watch, fetch, None, false);
        let over = self.record.done(self.watch, request, Served::Unknown, steady).is_break();
        if over {
            self.end = self.handed_out;
        }
    }
}
