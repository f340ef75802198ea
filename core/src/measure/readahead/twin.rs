//! What the kernel's readahead does, past the page cache.

use std::ops::Range;
use std::path::Path;

use crate::Result;
use crate::engine::{Engine, expect_full};
use crate::files::page_cache::page_size;
use crate::files::{Access, OpenFile, Part, RelationFiles};
use crate::measure::BlockReader;
use crate::run::stopwatch::Stopwatch;

/// Slots of an engine that emulates: the window that is entered, and the next.
pub const SLOTS: u32 = 2;

/// Bytes of each slot. Windows lie in a slot one behind the other, as in the page cache: a window must not
/// find the place of the last one, still in the processor's caches.
pub const ROOM_OF_SLOT: u64 = 32 << 20;

/// Direct requests of one window. The next is submitted when the present one is entered, arrived or not: the
/// kernel's mark is on its first page. Each block is copied once, as `read` copies it out of the cache.
pub(super) struct Twin<'a> {
    source: &'a RelationFiles,
    engine: &'a mut dyn Engine,
    window_blocks: u64,
    block: Vec<u8>,
    /// What is in each slot, and whether it has arrived.
    requests: [WindowRequest; SLOTS as usize],
    /// Bytes of a slot.
    room: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct WindowRequest {
    offset: u64,
    bytes: usize,
    /// Where in the slot it is.
    at: usize,
    arrived: bool,
}

impl<'a> Twin<'a> {
    /// Reads from `source` through an engine of [`SLOTS`] slots of `room` bytes, at least `window_blocks`
    /// blocks.
    pub(super) fn new(
        source: &'a RelationFiles,
        engine: &'a mut dyn Engine,
        window_blocks: u64,
        room: usize,
    ) -> Self {
        Self {
            source,
            engine,
            window_blocks,
            block: vec![0; source.block_size() as usize],
            requests: Default::default(),
            room,
        }
    }

    /// Requests these blocks into `slot`, behind those of its last request where there is room.
    fn submit(&mut self, slot: usize, open: &OpenFile, blocks: &Range<u64>) {
        let offset = self.source.offset(blocks.start);
        let bytes = (blocks.end - blocks.start) as usize * self.block.len();
        let last = self.requests[slot];
        let at = last.at + last.bytes;
        let at = if at + bytes <= self.room { at } else { 0 };
        self.requests[slot] = WindowRequest { offset, bytes, at, arrived: false };
        self.engine.submit_at(slot, at, &open.file, offset, bytes);
    }

    /// The window of a part that begins at a block.
    fn window(&self, part: &Part, start: u64) -> Range<u64> {
        start..part.blocks.end.min(start + self.window_blocks)
    }

    /// Waits until the request in `slot` has arrived.
    fn await_slot(&mut self, slot: usize, path: &Path, watch: &mut Stopwatch<'_>) -> Result<()> {
        while !self.requests[slot].arrived {
            let completion = self.engine.wait(&mut || watch.idle())?;
            let request = &mut self.requests[completion.slot];
            expect_full(completion, path, request.offset, request.bytes)?;
            request.arrived = true;
        }
        Ok(())
    }
}

impl BlockReader<Part> for Twin<'_> {
    fn read(&mut self, part: &mut Part, watch: &mut Stopwatch<'_>) -> Result<()> {
        let open = self.source.open(part.segment, Access::Direct)?;
        let block_size = self.block.len();
        let mut present = self.window(part, part.blocks.start);
        let mut slot = 0;
        watch.begin();
        if !present.is_empty() {
            self.submit(slot, &open, &present);
        }
        while !present.is_empty() {
            let next = self.window(part, present.end);
            if !next.is_empty() {
                self.submit(1 - slot, &open, &next);
            }
            self.await_slot(slot, &open.path, watch)?;
            let blocks = present.end - present.start;
            for block in 0..blocks as usize {
                let at = self.requests[slot].at + block * block_size;
                self.block.copy_from_slice(self.engine.bytes(slot, at, block_size));
            }
            let goes_on = watch.done(blocks).is_continue();
            slot = 1 - slot;
            if !goes_on && !next.is_empty() {
                self.await_slot(slot, &open.path, watch)?;
                break;
            }
            present = next;
        }
        Ok(())
    }
}

/// Direct requests of one page, each waited for: what the kernel makes of a block when readahead is off.
pub(super) struct PageReads<'a> {
    source: &'a RelationFiles,
    engine: &'a mut dyn Engine,
    page: Vec<u8>,
}

impl<'a> PageReads<'a> {
    /// Reads from `source` through an engine.
    pub(super) fn new(source: &'a RelationFiles, engine: &'a mut dyn Engine) -> Self {
        let page = vec![0; (page_size() as usize).min(source.block_size() as usize)];
        Self { source, engine, page }
    }
}

impl BlockReader<Part> for PageReads<'_> {
    fn read(&mut self, part: &mut Part, watch: &mut Stopwatch<'_>) -> Result<()> {
        let open = self.source.open(part.segment, Access::Direct)?;
        let bytes = self.page.len();
        watch.begin();
        for block in part.blocks.clone() {
            let start = self.source.offset(block);
            for offset in (start..start + u64::from(self.source.block_size())).step_by(bytes) {
                self.engine.submit(0, &open.file, offset, bytes);
                let completion = self.engine.wait(&mut || watch.idle())?;
                expect_full(completion, &open.path, offset, bytes)?;
                self.page.copy_from_slice(self.engine.bytes(0, 0, bytes));
            }
            if watch.done(1).is_break() {
                break;
            }
        }
        Ok(())
    }
}
