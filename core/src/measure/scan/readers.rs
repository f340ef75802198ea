//! The `os` path, through the OS page cache, and the `direct` path, past every cache of the server and the
//! kernel.

use std::os::unix::fs::FileExt;

use crate::engine::{Engine, expect_full};
use crate::files::{Access, OpenFile, Part, RelationFiles};
use crate::measure::BlockReader;
use crate::run::stopwatch::Stopwatch;
use crate::{Error, Result};

/// Reads through the OS page cache, one block a call, as the server does without read streams.
pub struct Buffered<'a> {
    source: &'a RelationFiles,
    buffer: Vec<u8>,
}

impl<'a> Buffered<'a> {
    /// Reads from `source`.
    pub fn new(source: &'a RelationFiles) -> Self {
        Self { source, buffer: vec![0; source.block_size() as usize] }
    }

    /// Blocks per reading of the clock: to read it for each would cost a hundredth of an OS-cache hit.
    const BLOCKS_PER_LOOK: u64 = 8;
}

impl BlockReader<Part> for Buffered<'_> {
    fn read(&mut self, part: &mut Part, watch: &mut Stopwatch<'_>) -> Result<()> {
        let open = self.source.open(part.segment, Access::Buffered)?;
        let mut unreported = 0;
        watch.begin();
        for block in part.blocks.clone() {
            read_block(&open, self.source.offset(block), &mut self.buffer, watch)?;
            unreported += 1;
            if unreported == Self::BLOCKS_PER_LOOK || block + 1 == part.blocks.end {
                if watch.arrived(unreported).is_break() {
                    break;
                }
                unreported = 0;
            }
        }
        Ok(())
    }
}

/// Fills `buffer` through the page cache.
fn read_block(open: &OpenFile, offset: u64, buffer: &mut [u8], watch: &mut Stopwatch<'_>) -> Result<()> {
    let OpenFile { file, path, .. } = open;
    let wanted = buffer.len();
    loop {
        match file.read_at(buffer, offset) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => watch.idle(),
            Err(e) => return Err(Error::io_at("read file", path, offset, e)),
            Ok(got) if got == wanted => return Ok(()),
            Ok(got) => return Err(Error::ShortRead { path: path.to_owned(), offset, wanted, got }),
        }
    }
}

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
