//! Turns of reading blocks as the server's sequential scan, its index scan and its bitmap heap scan do.
//!
//! From 18 on a bitmap heap scan may pin up to an eighth of all buffers, and so many its ring has. Where the
//! server can (from 17 on), it lets go of the pages after each turn: else what one turn has left behind would
//! be found by the next. The server's scans of large tables take such a ring, too; index and bitmap heap
//! scans don't.

use io_probe_core::Result as CoreResult;
use io_probe_core::machine::observer::Observer;
use io_probe_core::measure::page_times::{LEAST_BLOCKS, Order, Server, Taken, Way};
use io_probe_core::run::budget::StopCheck;
use io_probe_core::run::clock::{Clock, Monotonic};
use io_probe_core::run::waits::Waits;
use pgrx::pg_sys;

use super::{Pages, ServerReader, Skip};
use crate::pg::compat::{self, Blocks, ReadAhead};
use crate::pg::storage::buffers::{Resident, Usage, evict_if_unused};
use crate::pg::storage::relation::{Fork, Relation};

/// In turns, each in a way of its own.
pub(crate) struct InTurns<'a> {
    observer: &'a Observer<'a>,
}

impl<'a> ServerReader<'a, InTurns<'a>> {
    /// Reads from the main fork. Up to `most` is the `effective_io_concurrency` that will be asked for.
    pub(crate) fn in_turns(relation: &'a Relation, observer: &'a Observer<'a>, most: u32) -> Self {
        let pages = Pages::new(relation, Fork::MAIN, Some(ReadAhead::Bitmap(most)));
        Self::new(pages, Skip::default(), InTurns { observer })
    }

    /// Blocks that are in shared buffers now, ascending.
    pub(crate) fn buffered(&self) -> Vec<u64> {
        let resident = Resident::new(self.pages.relation, Fork::MAIN);
        resident.blocks().iter().map(|block| u64::from(*block)).collect()
    }
}

impl Server for ServerReader<'_, InTurns<'_>> {
    fn read(&mut self, order: &Order<'_>, should_stop: &mut StopCheck<'_>) -> CoreResult<Taken> {
        let mut turn = ArrivingBlocks::of(order, should_stop);
        match order.way {
            Way::Single => {
                turn.begin();
                while let Some(block) = turn.next() {
                    let buffer = self.pages.read_one(block);
                    turn.arrived(buffer);
                }
            }
            Way::Scan => self.pages.read(ReadAhead::Sequential, &mut turn),
            Way::Bitmap(concurrency) => self.pages.read(ReadAhead::Bitmap(concurrency), &mut turn),
        }
        let (taken, buffers) = turn.taken();
        if compat::EVICTS_SHARED_BUFFERS && !buffers.is_empty() {
            evict_if_unused(self.pages.relation, buffers);
        }
        Ok(taken)
    }

    fn settle(&mut self) {
        self.way.observer.settle();
    }
}

/// The clock is read once in so much time, as far as the last blocks tell, and once in so many blocks at
/// least: for each block it would cost a tenth of a hit.
const LOOK_NS: u64 = 50_000;
const BLOCKS_PER_LOOK: usize = 16;

/// The blocks of a turn as they arrive, which is in order.
struct ArrivingBlocks<'t, 'a> {
    order: &'t Order<'t>,
    should_stop: &'t mut StopCheck<'a>,
    next: usize,
    end: usize,
    arrived: usize,
    begun: u64,
    /// When timing began, after how many blocks, and with how many hits.
    timed: Option<(u64, usize, i64)>,
    /// The last look at the clock, and the block of the next.
    looked: (u64, usize),
    next_look: usize,
    taken: Taken,
    /// Where blocks went, with room for all from the start.
    buffers: Vec<pg_sys::Buffer>,
    all_hits: i64,
    /// Which of the looks were waits.
    waits: Waits,
}

impl<'t, 'a> ArrivingBlocks<'t, 'a> {
    fn of(order: &'t Order<'t>, should_stop: &'t mut StopCheck<'a>) -> Self {
        Self {
            order,
            should_stop,
            next: 0,
            end: order.blocks.len(),
            arrived: 0,
            begun: 0,
            timed: None,
            looked: (0, 0),
            next_look: 1,
            taken: Taken { latency: order.latency, ..Taken::default() },
            buffers: Vec::with_capacity(order.blocks.len()),
            all_hits: Usage::hits_so_far(),
            waits: Waits::here(),
        }
    }

    fn look(&mut self) {
        let now = Monotonic.now();
        self.waits.looked(now - self.looked.0, &mut self.taken.latency);
        let per_block = (now - self.looked.0) / (self.arrived - self.looked.1).max(1) as u64;
        self.looked = (now, self.arrived);
        let step = (LOOK_NS / per_block.max(1)).clamp(1, BLOCKS_PER_LOOK as u64) as usize;
        self.next_look = self.arrived + step;
        let elapsed = now - self.begun;
        match self.timed {
            // A warm-up that takes half of the time has lasted long enough.
            None if self.arrived >= self.order.warm_up || elapsed > self.order.budget_ns / 2 => {
                self.timed = Some((now, self.arrived, Usage::hits_so_far()));
            }
            None => self.next_look = self.next_look.min(self.order.warm_up),
            Some((_, first, _)) => {
                if elapsed > self.order.budget_ns && self.arrived >= first + LEAST_BLOCKS {
                    self.end = self.next;
                }
            }
        }
        if self.taken.stop.is_none() {
            self.taken.stop = (self.should_stop)().or(self.taken.latency.stop());
        }
        if self.taken.stop.is_some() {
            self.end = self.next;
        }
    }

    /// What came of it; and the buffers that it filled, unless all was in buffers before.
    fn taken(mut self) -> (Taken, Vec<pg_sys::Buffer>) {
        self.taken.read = self.arrived as u64;
        if let Some((since, first, hits)) = self.timed {
            let hits = (Usage::hits_so_far() - hits).max(0) as u64;
            self.taken.ns = Monotonic.now() - since;
            self.taken.blocks = (self.arrived - first) as u64;
            self.taken.hits = hits.min(self.taken.blocks);
        }
        let filled = self.arrived as i64 > Usage::hits_so_far() - self.all_hits;
        (self.taken, if filled { self.buffers } else { Vec::new() })
    }
}

impl Blocks for ArrivingBlocks<'_, '_> {
    fn begin(&mut self) {
        self.begun = Monotonic.now();
        self.looked = (self.begun, 0);
        if self.order.warm_up == 0 {
            self.timed = Some((self.begun, 0, Usage::hits_so_far()));
        }
    }

    fn next(&mut self) -> Option<pg_sys::BlockNumber> {
        let block = self.order.blocks[..self.end].get(self.next)?;
        self.next += 1;
        Some(*block as pg_sys::BlockNumber)
    }

    #[inline]
    fn arrived(&mut self, buffer: pg_sys::Buffer) {
        if compat::EVICTS_SHARED_BUFFERS && self.buffers.last() != Some(&buffer) {
            self.buffers.push(buffer);
        }
        self.arrived += 1;
        if self.arrived >= self.next_look {
            self.look();
        }
    }
}
