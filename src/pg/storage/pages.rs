//! Turns of reading blocks on the server's own ways: as its sequential scan, its index scan and its bitmap heap scan do.
//!
//! Blocks come into two rings of buffers, so that a probe pushes few of others' pages out: that of a scan, and one of as many
//! buffers as a bitmap heap scan may pin at most, which from 18 on is up to an eighth of all. Where the server can (from 17 on), it lets go of them after each turn: else what one turn has left
//! behind would be found by the next. The server's scans of large tables take such a ring, too; index and bitmap heap scans don't.

use io_probe_core::Result as CoreResult;
use io_probe_core::machine::observer::Observer;
use io_probe_core::measure::page_times::{LEAST_BLOCKS, Order, Server, Taken, Way};
use io_probe_core::run::budget::StopCheck;
use io_probe_core::run::clock::{Clock, Monotonic};
use io_probe_core::run::waits::Waits;
use pgrx::pg_sys;

use crate::pg::compat::{self, Blocks, ReadAhead};
use crate::pg::storage::buffers::{Resident, Usage, evict_if_unused};
use crate::pg::storage::relation::{Fork, Relation};

/// Reads a relation's main fork.
pub(crate) struct PageReader<'a> {
    relation: &'a Relation,
    observer: &'a Observer<'a>,
    /// For scans and single blocks, and for bitmap scans: one that suits the greatest concurrency.
    rings: Vec<(bool, pg_sys::BufferAccessStrategy)>,
    most: u32,
}

impl<'a> PageReader<'a> {
    /// With descriptors that are opened afresh. Up to `most` is the `effective_io_concurrency` that will be asked for.
    pub(crate) fn new(relation: &'a Relation, observer: &'a Observer<'a>, most: u32) -> Self {
        relation.close_files();
        Self { relation, observer, rings: Vec::new(), most }
    }

    /// Blocks that are in shared buffers now, ascending.
    pub(crate) fn buffered(&self) -> Vec<u64> {
        Resident::new(self.relation, Fork::MAIN).blocks().iter().map(|block| u64::from(*block)).collect()
    }

    fn ring(&mut self, ahead: ReadAhead) -> pg_sys::BufferAccessStrategy {
        let is_bitmap = matches!(ahead, ReadAhead::Bitmap(_));
        if let Some((_, ring)) = self.rings.iter().find(|(of_bitmap, _)| *of_bitmap == is_bitmap) {
            return *ring;
        }
        let ring = compat::ring(if is_bitmap { ReadAhead::Bitmap(self.most) } else { ahead });
        self.rings.push((is_bitmap, ring));
        ring
    }
}

impl Server for PageReader<'_> {
    fn read(&mut self, order: &Order<'_>, should_stop: &mut StopCheck<'_>) -> CoreResult<Taken> {
        let mut turn = ArrivingBlocks::of(order, should_stop);
        let (relation, fork) = (self.relation.as_ptr(), Fork::MAIN.number());
        match order.way {
            Way::Single => {
                let ring = self.ring(ReadAhead::Sequential);
                turn.begin();
                while let Some(block) = turn.next() {
                    // SAFETY: the relation is open and locked, the block exists, the ring was made by this call.
                    let buffer = unsafe { compat::read_block(relation, fork, block, ring) };
                    turn.arrived(buffer);
                }
            }
            Way::Scan | Way::Bitmap(_) => {
                let ahead = match order.way {
                    Way::Bitmap(concurrency) => ReadAhead::Bitmap(concurrency),
                    _ => ReadAhead::Sequential,
                };
                let ring = self.ring(ahead);
                // SAFETY: as above.
                unsafe { compat::read_blocks(relation, fork, ring, ahead, &mut turn) };
            }
        }
        let (taken, buffers) = turn.taken();
        if compat::EVICTS_SHARED_BUFFERS && !buffers.is_empty() {
            evict_if_unused(self.relation, buffers);
        }
        Ok(taken)
    }

    fn settle(&mut self) {
        self.observer.settle();
    }
}

impl Drop for PageReader<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            for (_, ring) in &self.rings {
                // SAFETY: allocated in `ring`. (While aborting, its memory context frees it.)
                unsafe { pg_sys::FreeAccessStrategy(*ring) };
            }
        }
    }
}

/// The clock is read once in so much time, as far as the last blocks tell, and once in so many blocks at least: for each
/// block it would cost a tenth of a hit.
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
