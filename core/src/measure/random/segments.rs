//! The files of a relation in random order: a few of them open, the holes of those seen so far.

use std::fs::File;
use std::sync::Arc;

use crate::Result;
use crate::files::cache::{self, OpenFile, OpenFiles};
use crate::files::extents::Holes;
use crate::files::source::{Part, Source};
use crate::files::writeback;
use crate::run::budget::{Stop, StopCheck};

/// Tells which holes of a part of the relation have no data for its reader either.
pub type WithoutData<'a> = dyn Fn(&Part, Holes) -> Holes + 'a;

/// The segments of a run.
pub(super) struct Segments<'a> {
    source: &'a Source,
    direct: bool,
    without_data: Option<&'a WithoutData<'a>>,
    files: OpenFiles<'a>,
    /// By segment; None for what was not seen yet.
    holes: Vec<Option<Holes>>,
    written_back: u64,
}

impl<'a> Segments<'a> {
    pub(super) fn new(source: &'a Source, direct: bool, without_data: Option<&'a WithoutData<'a>>) -> Self {
        let files = OpenFiles::new(source, direct);
        Self { source, direct, without_data, files, holes: Vec::new(), written_back: 0 }
    }

    /// Is the file open?
    #[inline]
    pub(super) fn is_open(&self, segment: u32) -> bool {
        self.files.is_open(segment)
    }

    /// The file of a segment.
    #[inline]
    pub(super) fn file(&mut self, segment: u32) -> Result<&Arc<File>> {
        Ok(&self.files.segment(segment)?.file)
    }

    /// Is the block in a hole of its file, as far as that has been seen?
    #[inline]
    pub(super) fn is_hole(&self, block: u64) -> bool {
        let Some(Some(holes)) = self.holes.get(self.source.segment(block) as usize) else { return false };
        let start = self.source.offset(block);
        holes.cover(&(start..start + u64::from(self.source.block_size())))
    }

    /// Has the segment not been seen yet?
    #[inline]
    pub(super) fn is_new(&self, segment: u32) -> bool {
        !matches!(self.holes.get(segment as usize), Some(Some(_)))
    }

    /// Where reads are to go past the page cache, writes back what is dirty of all segments. The files do not stay open.
    pub(super) fn write_back(&mut self, should_stop: &mut StopCheck<'_>) -> Result<Option<Stop>> {
        if !self.direct {
            return Ok(None);
        }
        let (written, stop) = cache::write_back_blocks(self.source, 0..self.source.blocks(), should_stop)?;
        self.written_back += written;
        Ok(stop)
    }

    /// Looks a segment's holes up, which takes some ten microseconds. Where reads are to go past the page cache and
    /// something of it is dirty there, or may be, each would wait until that is written back, so it is done before, if the
    /// caller `may_wait`; else the segment stays unseen, as it does when there is a reason to stop, which is returned.
    #[cold]
    pub(super) fn see(
        &mut self,
        segment: u32,
        may_wait: bool,
        should_stop: &mut StopCheck<'_>,
    ) -> Result<Option<Stop>> {
        let blocks = self.source.blocks_of(segment);
        let bytes = 0..(blocks.end - blocks.start) * u64::from(self.source.block_size());
        let direct = self.direct;
        let OpenFile { file, path, method, .. } = self.files.segment(segment)?.clone();
        // Whoever may not wait has one to stop at once.
        let mut should_stop = || if may_wait { should_stop() } else { Some(Stop::Duration) };
        if direct {
            let dirty =
                method.residency(&file, &path, bytes.clone()).ok().and_then(|found| found.dirty_bytes);
            // Where that is not told, all was written back before the run.
            if dirty != Some(0) && (may_wait || dirty.is_some()) {
                if let Some(stop) = writeback::of_relation(&file, &path, bytes.clone(), &mut should_stop)? {
                    return Ok(Some(stop));
                }
                self.written_back += dirty.unwrap_or(0);
            }
        }
        let mut holes = match Holes::find(&file, method, &path, bytes, &mut should_stop)? {
            Ok(holes) => holes,
            Err(stop) => return Ok(Some(stop)),
        };
        if let Some(without_data) = self.without_data {
            holes = without_data(&Part { segment, blocks }, holes);
        }
        if self.holes.len() <= segment as usize {
            self.holes.resize(segment as usize + 1, None);
        }
        self.holes[segment as usize] = Some(holes);
        Ok(None)
    }

    /// What the page cache held of a block; None where the kernel does not tell.
    pub(super) fn cached_bytes(&mut self, block: u64) -> Result<Option<u64>> {
        let source = self.source;
        let start = source.offset(block);
        let open = self.files.segment(source.segment(block))?;
        let bytes = start..start + u64::from(source.block_size());
        let found = open.method.residency(&open.file, &open.path, bytes);
        Ok(found.ok().map(|found| found.cached_bytes))
    }

    /// Bytes that were dirty in the page cache and were written back.
    pub(super) fn written_back(&self) -> u64 {
        self.written_back
    }
}
