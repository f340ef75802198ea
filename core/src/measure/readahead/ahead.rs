//! Windows asked for by `readahead(2)`, for file systems that refuse O_DIRECT.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::files::{Access, Part, RelationFiles};
use crate::measure::BlockReader;
use crate::measure::scan::read_block;
use crate::run::stopwatch::Stopwatch;
use crate::{Error, Result};

/// Reads through the page cache, whose own readahead is off (`POSIX_FADV_RANDOM`), and asks for the next
/// window when it enters one.
///
/// The kernel takes no more at a time than its largest request, or the window in force if that is larger, and
/// says nothing when it takes less. So a larger window is asked for in several pieces.
pub(super) struct ReadaheadCalls<'a> {
    source: &'a RelationFiles,
    window_blocks: u64,
    /// Most blocks of one call.
    piece_blocks: u64,
    block: Vec<u8>,
}

impl<'a> ReadaheadCalls<'a> {
    /// Reads from `source`, asking for `piece` bytes at a time at most.
    pub(super) fn new(source: &'a RelationFiles, window_blocks: u64, piece: u64) -> Self {
        let block_size = u64::from(source.block_size());
        Self {
            source,
            window_blocks: window_blocks.max(1),
            piece_blocks: (piece / block_size).max(1),
            block: vec![0; block_size as usize],
        }
    }

    fn ask_for(&self, file: &Arc<File>, mut start: u64, end: u64) {
        while start < end {
            let blocks = self.piece_blocks.min(end - start);
            let (offset, bytes) = (self.source.offset(start), blocks * u64::from(self.source.block_size()));
            // SAFETY: takes no pointer; the descriptor is open for as long as `file` is borrowed. A refusal
            // costs time only.
            unsafe { libc::readahead(file.as_raw_fd(), offset as i64, bytes as usize) };
            start += blocks;
        }
    }
}

impl BlockReader<Part> for ReadaheadCalls<'_> {
    fn read(&mut self, part: &mut Part, watch: &mut Stopwatch<'_>) -> Result<()> {
        let open = self.source.open(part.segment, Access::Buffered)?;
        posix_fadvise(&open.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM)
            .map_err(|e| Error::io("advise on", &open.path, e))?;
        let window = |start: u64| part.blocks.end.min(start + self.window_blocks);
        watch.begin();
        let mut start = part.blocks.start;
        self.ask_for(&open.file, start, window(start));
        while start < part.blocks.end {
            let end = window(start);
            if end < part.blocks.end {
                self.ask_for(&open.file, end, window(end));
            }
            for block in start..end {
                read_block(&open, self.source.offset(block), &mut self.block, watch)?;
            }
            if watch.done(end - start).is_break() {
                break;
            }
            start = end;
        }
        Ok(())
    }
}
