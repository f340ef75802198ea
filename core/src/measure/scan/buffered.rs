//! The `os` path: through the OS page cache.

use std::os::unix::fs::FileExt;

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

    /// Reading the clock for each block would cost a hundredth of an OS-cache hit.
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
pub(crate) fn read_block(
    open: &OpenFile,
    offset: u64,
    buffer: &mut [u8],
    watch: &mut Stopwatch<'_>,
) -> Result<()> {
    let OpenFile { file, path, .. } = open;
    let wanted = buffer.len();
    #[cfg(test)]
    crate::golden::reached("read", offset, wanted as u64);
    loop {
        match file.read_at(buffer, offset) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => watch.idle(),
            Err(e) => return Err(Error::io_at("read", path, offset, e)),
            Ok(got) if got == wanted => return Ok(()),
            Ok(got) => return Err(Error::ShortRead { path: path.to_owned(), offset, wanted, got }),
        }
    }
}
