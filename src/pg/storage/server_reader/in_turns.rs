//! Turns of reading blocks as the server's sequential scan, its index scan and its bitmap heap scan do.
//!
//! From 18 on a bitmap heap scan may pin up to an eighth of all buffers, and its ring has as many. From 17 on
//! pages are evicted after each turn, so that the next turn does not find them. The server's scans of large
//! tables also take a ring; its index and bitmap heap scans don't.

use io_probe_core::Result as CoreResult;
use io_probe_core::measure::BlockReader;
use io_probe_core::measure::io_methods::Work;
use io_probe_core::measure::page_times::{LEAST_BLOCKS, Order, Way};
use io_probe_core::run::stopwatch::Stopwatch;
use pgrx::pg_sys;

use super::{Pages, ServerReader};
use crate::pg::compat::{self, Blocks, ReadAhead};
use crate::pg::settings;
use crate::pg::storage::buffers::{Resident, Usage, evict_if_unused};
use crate::pg::storage::relation::Relation;

pub(crate) struct InTurns {
    /// Steps of work on each block that arrives.
    steps: u64,
}

impl<'a> ServerReader<'a, InTurns> {
    /// Reads a relation. `most` is the greatest `effective_io_concurrency` that will be asked for.
    pub(crate) fn in_turns(relation: &'a Relation, most: u32) -> Self {
        let pages = Pages::new(relation, Some(ReadAhead::Bitmap(most)));
        Self::new(pages, &[], InTurns { steps: 0 })
    }

    /// Reads while the session's `io_combine_limit` is `combined` blocks, with so many steps of work on each
    /// block that arrives. `most` is as in [`Self::in_turns`].
    pub(crate) fn combining<T>(
        relation: &'a Relation,
        most: u32,
        combined: u64,
        steps: u64,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        settings::with(&[(c"io_combine_limit", &combined.to_string())], || {
            let mut reader = Self::in_turns(relation, most);
            reader.way.steps = steps;
            read(&mut reader)
        })
    }

    /// Blocks that are in shared buffers now, ascending.
    pub(crate) fn buffered(&self) -> Vec<pg_sys::BlockNumber> {
        Resident::new(self.pages.relation).into_blocks()
    }
}

impl BlockReader<Order<'_>> for ServerReader<'_, InTurns> {
    fn read(&mut self, order: &mut Order<'_>, watch: &mut Stopwatch<'_>) -> CoreResult<()> {
        let mut turn = ArrivingBlocks::of(order, watch, self.way.steps);
        match turn.order.way {
            // The times at 0 are those of index scans in order. (From 18 on bitmap heap scans join
            // neighbours.)
            Way::Single | Way::Bitmap(0) => {
                turn.begin();
                while let Some(block) = turn.next() {
                    let buffer = self.pages.read_one(block);
                    turn.arrived(buffer);
                }
            }
            Way::Scan => self.pages.read(ReadAhead::Sequential, &mut turn),
            Way::Bitmap(concurrency) => self.pages.read(ReadAhead::Bitmap(concurrency), &mut turn),
        }
        let buffers = turn.end();
        if compat::EVICTS_SHARED_BUFFERS && !buffers.is_empty() {
            evict_if_unused(self.pages.relation, buffers);
        }
        Ok(())
    }
}

/// Longest time (estimated by the last blocks) and most blocks between two readings of the clock. Reading it
/// after each block would cost a tenth of a hit.
const LOOK_NS: u64 = 50_000;
const BLOCKS_PER_LOOK: u64 = 16;

/// The blocks of a turn as they arrive, which is in order. Each turn has a stopwatch of its own.
struct ArrivingBlocks<'t, 'o, 'w> {
    order: &'t mut Order<'o>,
    watch: &'t mut Stopwatch<'w>,
    handed_out: usize,
    stop_at: usize,
    begun: u64,
    /// Hits so far when timing began.
    hits_when_timed: Option<i64>,
    /// Blocks since the last look at the clock, and until the next.
    since_look: u64,
    step: u64,
    /// Buffers that blocks went to, with room for all from the start.
    buffers: Vec<pg_sys::Buffer>,
    hits_before: i64,
    /// Steps of work on each block.
    steps: u64,
}

impl<'t, 'o, 'w> ArrivingBlocks<'t, 'o, 'w> {
    fn of(order: &'t mut Order<'o>, watch: &'t mut Stopwatch<'w>, steps: u64) -> Self {
        Self {
            handed_out: 0,
            stop_at: order.blocks.len(),
            begun: 0,
            hits_when_timed: None,
            since_look: 0,
            step: 1,
            buffers: Vec::with_capacity(order.blocks.len()),
            hits_before: Usage::hits_so_far(),
            steps,
            order,
            watch,
        }
    }

    fn look(&mut self) {
        let (before, blocks) = (self.watch.last(), std::mem::take(&mut self.since_look));
        let is_over = self.watch.arrived(blocks).is_break();
        let per_block = (self.watch.last() - before) / blocks;
        self.step = (LOOK_NS / per_block.max(1)).clamp(1, BLOCKS_PER_LOOK);
        let elapsed = self.watch.last() - self.begun;
        let warm_up = (self.order.warm_up as u64).saturating_sub(self.watch.blocks());
        match self.hits_when_timed {
            None if warm_up == 0 || elapsed > self.order.lead_ns => self.time(),
            None => self.step = self.step.min(warm_up),
            Some(_) => {
                let timed = self.watch.rated();
                let is_long = timed.ns >= self.order.length_ns && timed.work >= LEAST_BLOCKS as u64;
                if is_long || timed.work >= self.order.most {
                    self.stop_at = self.handed_out;
                }
            }
        }
        if is_over {
            self.stop_at = self.handed_out;
        }
    }

    fn time(&mut self) {
        self.hits_when_timed = Some(Usage::hits_so_far());
        self.watch.rate(true);
    }

    /// All blocks have come. Returns the buffers that it filled, unless all was in buffers before.
    fn end(mut self) -> Vec<pg_sys::Buffer> {
        if self.since_look > 0 {
            self.look();
        }
        let hits = Usage::hits_so_far();
        self.order.hits = self.hits_when_timed.map_or(0, |before| hits - before).max(0) as u64;
        let filled = self.watch.blocks() as i64 > hits - self.hits_before;
        if filled { self.buffers } else { Vec::new() }
    }
}

impl Blocks for ArrivingBlocks<'_, '_, '_> {
    fn begin(&mut self) {
        self.watch.begin();
        self.begun = self.watch.last();
        if self.order.warm_up == 0 {
            self.time();
        }
    }

    fn next(&mut self) -> Option<pg_sys::BlockNumber> {
        let block = self.order.blocks.get(self.handed_out).filter(|_| self.handed_out < self.stop_at)?;
        self.handed_out += 1;
        Some(*block as pg_sys::BlockNumber)
    }

    #[inline]
    fn arrived(&mut self, buffer: pg_sys::Buffer) {
        if compat::EVICTS_SHARED_BUFFERS && self.buffers.last() != Some(&buffer) {
            self.buffers.push(buffer);
        }
        std::hint::black_box(Work::steps(self.steps));
        self.since_look += 1;
        if self.since_look >= self.step {
            self.look();
        }
    }
}
