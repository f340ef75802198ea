//! The `direct` path: past every cache of the server and the kernel.

use crate::Result;
use crate::engine::{Engine, expect_full};
use crate::files::{Access, Part, RelationFiles};
use crate::measure::BlockReader;
use crate::run::stopwatch::Stopwatch;

/// Large O_DIRECT reads at a depth.
pub struct Direct<'a> {
    source: &'a RelationFiles,
    engine: &'a mut dyn Engine,
    depth: usize,
    request_blocks: u64,
    /// Offset and blocks of the request in each slot, and when it was issued.
    requests: Vec<(u64, u64, u64)>,
}

impl<'a> Direct<'a> {
    /// Reads from `source` through `engine`, `request_blocks` blocks a request, `depth` in flight.
    pub fn new(
        source: &'a RelationFiles,
        engine: &'a mut dyn Engine,
        depth: usize,
        request_blocks: u64,
    ) -> Self {
        Self { source, engine, depth, request_blocks, requests: vec![(0, 0, 0); depth] }
    }
}

impl BlockReader<Part> for Direct<'_> {
    fn read(&mut self, part: &mut Part, watch: &mut Stopwatch<'_>) -> Result<()> {
        let open = self.source.open(part.segment, Access::Direct)?;
        let block_size = u64::from(self.source.block_size());
        let mut next = part.blocks.start;
        let mut submit =
            |engine: &mut dyn Engine, requests: &mut [(u64, u64, u64)], slot: usize, issued: u64| {
                let blocks = self.request_blocks.min(part.blocks.end - next);
                let offset = self.source.offset(next);
                requests[slot] = (offset, blocks, issued);
                engine.submit(slot, &open.file, offset, (blocks * block_size) as usize);
                next += blocks;
                next < part.blocks.end
            };
        let mut in_flight = 0;
        let mut more = !part.blocks.is_empty();
        watch.begin();
        while more && in_flight < self.depth {
            more = submit(self.engine, &mut self.requests, in_flight, watch.now());
            in_flight += 1;
        }
        while in_flight > 0 {
            let completion = self.engine.wait(&mut || watch.idle())?;
            let (offset, blocks, issued) = self.requests[completion.slot];
            expect_full(completion, &open.path, offset, (blocks * block_size) as usize)?;
            in_flight -= 1;
            more &= watch.answered(issued, blocks).is_continue();
            if more {
                more = submit(self.engine, &mut self.requests, completion.slot, watch.now());
                in_flight += 1;
            }
        }
        Ok(())
    }
}
