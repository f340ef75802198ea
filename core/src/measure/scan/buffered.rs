//! The `os` path: through the OS page cache.

use std::os::unix::fs::FileExt;

use super::{Meter, Reader, Steps};
use crate::files::{Access, OpenFile, Part, RelationFiles};
use crate::{Error, Result};

/// Reads through the OS page cache, one block a call, as the server does without read streams.
pub struct Buffered<'a> {
    source: &'a RelationFiles,
    buffer: Vec<u8>,
    window: u64,
}

impl<'a> Buffered<'a> {
    /// Reads from `source`, of whose device the kernel's readahead window has so many bytes.
    pub fn new(source: &'a RelationFiles, window: u64) -> Self {
        let buffer = vec![0; source.block_size() as usize];
        Self { source, buffer, window }
    }

    /// Reading the clock for each block would cost a hundredth of an OS-cache hit.
    const BLOCKS_PER_LOOK: u64 = 8;
}

impl Reader for Buffered<'_> {
    fn read(&mut self, part: &Part, meter: &mut Meter<'_>) -> Result<()> {
        let open = self.source.open(part.segment, Access::Buffered)?;
        let mut unreported = 0;
        meter.begin();
        for block in part.blocks.clone() {
            read_block(&open, self.source.offset(block), &mut self.buffer, meter)?;
            unreported += 1;
            if unreported == Self::BLOCKS_PER_LOOK || block + 1 == part.blocks.end {
                if meter.arrived(unreported).is_break() {
                    break;
                }
                unreported = 0;
            }
        }
        Ok(())
    }

    fn steps(&self) -> Steps {
        Steps::above_readahead(self.window, self.source.block_size().into())
    }

    /// Nothing is in flight between two blocks, so that every hole can be set apart.
    fn least_hole(&self) -> u64 {
        1
    }
}

/// Fills `buffer` through the page cache.
pub(crate) fn read_block(
    open: &OpenFile,
    offset: u64,
    buffer: &mut [u8],
    meter: &mut Meter<'_>,
) -> Result<()> {
    let OpenFile { file, path, .. } = open;
    let wanted = buffer.len();
    #[cfg(test)]
    crate::golden::reached("read", offset, wanted as u64);
    loop {
        match file.read_at(buffer, offset) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => meter.idle(),
            Err(e) => return Err(Error::io_at("read", path, offset, e)),
            Ok(got) if got == wanted => return Ok(()),
            Ok(got) => return Err(Error::ShortRead { path: path.to_owned(), offset, wanted, got }),
        }
    }
}
