//! Fetches through an engine, past the page cache or through it.

use super::{Fetcher, Plan, Recorder, Request, Served};
use crate::Result;
use crate::engine::{Engine, expect_full};

/// Single blocks, `depth` in flight.
pub struct Queued<'e> {
    engine: &'e mut dyn Engine,
    depth: usize,
    /// The request in each slot.
    slots: Vec<Option<Request>>,
    idle: Vec<usize>,
}

impl<'e> Queued<'e> {
    /// Fetches through `engine`, which has at least `depth` slots.
    pub fn new(engine: &'e mut dyn Engine, depth: usize) -> Self {
        Self { engine, depth, slots: vec![None; depth], idle: (0..depth).rev().collect() }
    }
}

impl Fetcher for Queued<'_> {
    fn fetch(&mut self, plan: &mut Plan<'_>, recorder: &mut Recorder<'_>) -> Result<()> {
        let block_size = plan.source().block_size() as usize;
        let mut more = !recorder.is_over();
        // The first `depth` completions came while the queue was being filled, the last while it was emptied.
        let mut unrated = if self.depth > 1 { self.depth } else { 0 };
        loop {
            while more && let Some(&slot) = self.idle.last() {
                if let Some(due) = recorder.early() {
                    if self.idle.len() < self.depth {
                        break;
                    }
                    more = recorder.pause(due).is_continue();
                    continue;
                }
                let slow = plan.next_is_slow();
                let Some(fetch) = plan.next(recorder.pace())? else {
                    more = false;
                    break;
                };
                let (file, offset) = plan.file(fetch.block)?;
                if slow {
                    recorder.begin();
                }
                self.slots[slot] = Some(recorder.issue(fetch));
                self.engine.submit(slot, file, offset, block_size);
                self.idle.pop();
            }
            if self.idle.len() == self.depth {
                return Ok(());
            }
            let completion = self.engine.wait(&mut || recorder.idle())?;
            let Some(request) = self.slots[completion.slot].take() else { continue };
            self.idle.push(completion.slot);
            let block = request.fetch.block;
            if completion.result != Ok(block_size) {
                let source = plan.source();
                expect_full(
                    completion,
                    &source.path(source.segment(block)),
                    source.offset(block),
                    block_size,
                )?;
            }
            let rated = unrated == 0 && (more || self.depth == 1);
            unrated = unrated.saturating_sub(1);
            more &= recorder.done(request, Served::from(request.fetch.found), rated).is_continue();
        }
    }
}
