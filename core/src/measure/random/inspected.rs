//! What a run knows of the segments that it has looked at so far.

use crate::files::holes::{Holes, WithoutData};
use crate::files::{Access, Part, RelationFiles, writeback};
use crate::run::budget::{Outcome, Stop, StopCheck};

/// The holes of segments, and what of them was written back.
pub(super) struct Inspected<'a> {
    files: &'a RelationFiles,
    pub(super) access: Access,
    without_data: Option<&'a WithoutData<'a>>,
    /// By segment; None for what was not seen yet.
    holes: Vec<Option<Holes>>,
    /// Bytes that were dirty in the page cache and were written back.
    pub(super) written_back: u64,
}

impl<'a> Inspected<'a> {
    /// Knows nothing yet; the files are read with `access`.
    pub(super) fn new(
        files: &'a RelationFiles,
        access: Access,
        without_data: Option<&'a WithoutData<'a>>,
    ) -> Self {
        Self { files, access, without_data, holes: Vec::new(), written_back: 0 }
    }

    /// Is the block in a hole of its file, as far as that has been seen?
    #[inline]
    pub(super) fn is_hole(&self, block: u64) -> bool {
        let Some(Some(holes)) = self.holes.get(self.files.segment(block) as usize) else { return false };
        let start = self.files.offset(block);
        holes.cover(&(start..start + u64::from(self.files.block_size())))
    }

    /// Has the segment not been seen yet?
    #[inline]
    pub(super) fn is_new(&self, segment: u32) -> bool {
        !matches!(self.holes.get(segment as usize), Some(Some(_)))
    }

    /// Where reads are to go past the page cache, writes back what is dirty of all segments.
    pub(super) fn write_back(&mut self, should_stop: &mut StopCheck<'_>) -> Outcome<()> {
        if self.access == Access::Direct {
            self.written_back += self.files.write_back(0..self.files.blocks(), should_stop)?;
        }
        Ok(())
    }

    /// Looks up a segment's holes. Dirty pages, for which direct reads would wait, are written back first if
    /// the caller `may_wait`. Else the segment stays unseen, as for a reason to stop.
    #[cold]
    pub(super) fn inspect(
        &mut self,
        segment: u32,
        may_wait: bool,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<()> {
        let part = Part { segment, blocks: self.files.blocks_of(segment) };
        let bytes = self.files.byte_range(&part);
        let open = self.files.open(segment, self.access)?;
        // A caller that may not wait has a reason to stop at once.
        let mut should_stop = || if may_wait { should_stop() } else { Some(Stop::Duration) };
        if self.access == Access::Direct {
            let dirty = open.residency(bytes.clone()).ok().and_then(|found| found.dirty_bytes);
            // Where that is not told, all was written back before the run.
            if dirty != Some(0) && (may_wait || dirty.is_some()) {
                writeback::of_relation(&open, bytes.clone(), &mut should_stop)?;
                self.written_back += dirty.unwrap_or(0);
            }
        }
        let mut holes = Holes::find(&open, bytes, &mut should_stop)?;
        if let Some(without_data) = self.without_data {
            holes = without_data(&part, holes);
        }
        if self.holes.len() <= segment as usize {
            self.holes.resize(segment as usize + 1, None);
        }
        self.holes[segment as usize] = Some(holes);
        Ok(())
    }
}
