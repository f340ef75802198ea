//! The `direct` path: past every cache of the server and the kernel.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Meter, Reader};
use crate::engine::{Engine, expect_full};
use crate::source::{Part, Source};
use crate::{Error, Result};

/// What almost every file system is content with, where the kernel does not tell.
const UNKNOWN_ALIGNMENT: u64 = 4096;

/// Large O_DIRECT reads at a depth.
pub struct Direct<'a> {
    source: &'a Source,
    engine: &'a mut dyn Engine,
    depth: usize,
    request_blocks: u64,
    open: Option<(u32, PathBuf, Arc<File>)>,
    /// Offset and blocks of the request in each slot.
    requests: Vec<(u64, u64)>,
}

impl<'a> Direct<'a> {
    /// Reads from `source` through `engine`, `request_blocks` blocks a request, `depth` in flight.
    pub fn new(source: &'a Source, engine: &'a mut dyn Engine, depth: usize, request_blocks: u64) -> Self {
        Self { source, engine, depth, request_blocks, open: None, requests: vec![(0, 0); depth] }
    }

    fn enter(&mut self, segment: u32) -> Result<(PathBuf, Arc<File>)> {
        if let Some((open, path, file)) = &self.open
            && *open == segment
        {
            return Ok((path.clone(), Arc::clone(file)));
        }
        let path = self.source.path(segment);
        let file = Arc::new(self.source.open(segment, true)?);
        let align = direct_alignment(&file).unwrap_or(UNKNOWN_ALIGNMENT);
        if align == 0 {
            // The open succeeds, and reads go through the page cache: ext4 with data=journal does so.
            let why = "the file system has none for this file".to_owned();
            return Err(Error::Unsupported { what: "O_DIRECT", why });
        }
        if !u64::from(self.source.block_size()).is_multiple_of(align) {
            let why = format!("the file system wants multiples of {align} bytes");
            return Err(Error::Unsupported { what: "O_DIRECT of one block", why });
        }
        self.open = Some((segment, path.clone(), Arc::clone(&file)));
        Ok((path, file))
    }
}

impl Reader for Direct<'_> {
    fn read(&mut self, part: &Part, meter: &mut Meter<'_>) -> Result<()> {
        let (path, file) = self.enter(part.segment)?;
        let block_size = u64::from(self.source.block_size());
        let mut next = part.blocks.start;
        let mut submit = |engine: &mut dyn Engine, requests: &mut [(u64, u64)], slot: usize| {
            let blocks = self.request_blocks.min(part.blocks.end - next);
            let offset = self.source.offset(next);
            requests[slot] = (offset, blocks);
            engine.submit(slot, &file, offset, (blocks * block_size) as usize);
            next += blocks;
            next < part.blocks.end
        };
        let mut in_flight = 0;
        let mut more = !part.blocks.is_empty();
        meter.begin();
        while more && in_flight < self.depth {
            more = submit(self.engine, &mut self.requests, in_flight);
            in_flight += 1;
        }
        while in_flight > 0 {
            let completion = self.engine.wait(&mut || meter.idle())?;
            let (offset, blocks) = self.requests[completion.slot];
            expect_full(completion, &path, offset, (blocks * block_size) as usize)?;
            in_flight -= 1;
            more &= meter.done(blocks).is_continue();
            if more {
                more = submit(self.engine, &mut self.requests, completion.slot);
                in_flight += 1;
            }
        }
        Ok(())
    }

    fn request_blocks(&self) -> u64 {
        self.request_blocks
    }

    /// Setting a hole apart drains the queue.
    fn least_hole(&self) -> u64 {
        1 << 20
    }
}

/// What offsets and lengths of O_DIRECT reads must be multiples of, in bytes, by `statx`
/// (STATX_DIOALIGN, Linux 6.1). 0: it has no O_DIRECT. None where the kernel does not tell.
fn direct_alignment(file: &File) -> Option<u64> {
    let mut found = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is an empty C string, which AT_EMPTY_PATH allows, and `found` has room.
    let result = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            found.as_mut_ptr(),
        )
    };
    // SAFETY: all zeroes is a valid statx, and the kernel only fills in fields.
    let found = unsafe { found.assume_init() };
    let told = result == 0 && found.stx_mask & libc::STATX_DIOALIGN != 0;
    told.then_some(u64::from(found.stx_dio_offset_align))
}

/// The same of the first regular file found below `directory`, at most three levels down.
pub fn direct_alignment_below(directory: &Path) -> Option<u64> {
    direct_alignment(&File::open(first_file(directory, 3)?).ok()?)
}

fn first_file(directory: &Path, levels: u32) -> Option<PathBuf> {
    let entries: Vec<_> = std::fs::read_dir(directory).ok()?.take(100).flatten().collect();
    let kind = |entry: &std::fs::DirEntry| entry.file_type().ok();
    let file = entries.iter().find(|e| kind(e).is_some_and(|k| k.is_file()));
    if file.is_some() || levels == 0 {
        return file.map(|e| e.path());
    }
    let below = |entry: &std::fs::DirEntry| first_file(&entry.path(), levels - 1);
    entries.iter().filter(|e| kind(e).is_some_and(|k| k.is_dir())).find_map(below)
}
