//! Fetches through an engine, past the page cache or through it.

use super::{Fetches, Found, InFlight, Located, Served};
use crate::Result;
use crate::engine::{Engine, expect_full};
use crate::measure::BlockReader;
use crate::run::stopwatch::Stopwatch;

/// Single blocks, `depth` in flight.
pub struct Queued<'e> {
    engine: &'e mut dyn Engine,
    depth: usize,
    /// The request in each slot.
    slots: Vec<Option<InFlight>>,
    idle: Vec<usize>,
}

impl<'e> Queued<'e> {
    /// Fetches through `engine`, which has at least `depth` slots.
    pub fn new(engine: &'e mut dyn Engine, depth: usize) -> Self {
        Self { engine, depth, slots: vec![None; depth], idle: (0..depth).rev().collect() }
    }
}

impl BlockReader<Fetches<'_, '_>> for Queued<'_> {
    fn read(&mut self, fetches: &mut Fetches<'_, '_>, watch: &mut Stopwatch<'_>) -> Result<()> {
        let Fetches { fetch_order, record } = fetches;
        let block_size = fetch_order.source().block_size() as usize;
        let alone = self.depth == 1;
        let mut phase = Phase::new(self.depth);
        let mut more = watch.stop().is_none();
        loop {
            while more && let Some(&slot) = self.idle.last() {
                let in_flight = self.idle.len() < self.depth;
                if let Some(due) = record.early(watch) {
                    if in_flight {
                        // Until it is filled, nothing is rated.
                        if phase.was_filled() {
                            watch.hold_back();
                        }
                        break;
                    }
                    more = watch.pause_until(due).is_continue();
                    continue;
                }
                if fetch_order.next_is_new(watch.budget()) {
                    // A look at a segment may take long, and would count for every request in flight. So
                    // while some are, only a look that does not wait is tried. Failing that, nothing more is
                    // issued, and the caller looks once all have come.
                    let is_known = in_flight
                        && !phase.draining
                        && record.disturb(watch, |budget| fetch_order.inspect_next_segment(false, budget))?;
                    if !is_known {
                        phase.draining = true;
                        break;
                    }
                }
                let Some(fetch) = fetch_order.hand_out(watch.budget())? else {
                    more = false;
                    break;
                };
                if fetch.found == Found::Hole {
                    more = record.hole(watch).is_continue();
                    continue;
                }
                let Located { file, offset, is_new } = fetch_order.locate(fetch.block)?;
                if alone && is_new {
                    watch.begin();
                }
                // Alone, the end of the last is the start of this one.
                let (started, counts) =
                    if alone { (watch.last(), true) } else { (watch.now(), phase.issue()) };
                let request = record.issue(watch, fetch, Some(started), counts);
                self.slots[slot] = Some(request);
                self.engine.submit(slot, &file, offset, block_size);
                self.idle.pop();
            }
            if self.idle.len() == self.depth {
                return Ok(());
            }
            let completion = self.engine.wait(&mut || watch.idle())?;
            let request = self.slots[completion.slot].take().expect("a request is in this slot");
            self.idle.push(completion.slot);
            let block = request.fetch.block;
            if completion.result != Ok(block_size) {
                let source = fetch_order.source();
                expect_full(
                    completion,
                    &source.path(source.segment(block)),
                    source.offset(block),
                    block_size,
                )?;
            }
            let rated = alone || more && phase.complete();
            more &= record.done(watch, request, Served::from(request.fetch.found), rated).is_continue();
        }
    }
}

/// How full the queue is. The requests that fill it find the device idle: their latencies don't count. The
/// rate counts from when as many have come back, until it is emptied.
struct Phase {
    depth: usize,
    issued: usize,
    completed: usize,
    draining: bool,
}

impl Phase {
    fn new(depth: usize) -> Self {
        Self { depth, issued: 0, completed: 0, draining: false }
    }

    /// One is issued: does its latency count?
    #[inline]
    fn issue(&mut self) -> bool {
        self.issued += 1;
        self.issued > self.depth
    }

    /// Have enough been issued to fill the queue, if nothing held them back?
    #[inline]
    fn was_filled(&self) -> bool {
        self.issued >= self.depth
    }

    /// One has come back: does it make part of the rate?
    #[inline]
    fn complete(&mut self) -> bool {
        self.completed += 1;
        self.completed > self.depth && !self.draining
    }
}
