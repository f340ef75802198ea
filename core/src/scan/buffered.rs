//! The `os` path: through the OS page cache.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::{Meter, Reader};
use crate::source::{Part, Source};
use crate::{Error, Result};

/// Reads through the OS page cache, one block a call, as the server does without read streams.
pub struct Buffered<'a> {
    source: &'a Source,
    open: Option<(u32, PathBuf, File)>,
    buffer: Vec<u8>,
}

impl<'a> Buffered<'a> {
    /// Reads from `source`.
    pub fn new(source: &'a Source) -> Self {
        Self { source, open: None, buffer: vec![0; source.block_size() as usize] }
    }

    /// Reading the clock for each block would cost a hundredth of an OS-cache hit.
    const BLOCKS_PER_LOOK: u64 = 8;
}

impl Reader for Buffered<'_> {
    fn read(&mut self, part: &Part, meter: &mut Meter<'_>) -> Result<()> {
        if self.open.as_ref().is_none_or(|(segment, ..)| *segment != part.segment) {
            let file = self.source.open(part.segment, false)?;
            self.open = Some((part.segment, self.source.path(part.segment), file));
        }
        let Some((_, path, file)) = &self.open else { return Ok(()) };
        let wanted = self.buffer.len();
        let mut unreported = 0;
        meter.begin();
        for block in part.blocks.clone() {
            let offset = self.source.offset(block);
            let got = loop {
                match file.read_at(&mut self.buffer, offset) {
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => meter.idle(),
                    other => break other.map_err(|e| Error::io_at("read", path, offset, e))?,
                }
            };
            if got != wanted {
                return Err(Error::ShortRead { path: path.clone(), offset, wanted, got });
            }
            unreported += 1;
            if unreported == Self::BLOCKS_PER_LOOK || block + 1 == part.blocks.end {
                if meter.done(unreported).is_break() {
                    break;
                }
                unreported = 0;
            }
        }
        Ok(())
    }

    fn request_blocks(&self) -> u64 {
        1
    }

    /// Nothing is in flight between two blocks, so that every hole can be set apart.
    fn least_hole(&self) -> u64 {
        1
    }
}
