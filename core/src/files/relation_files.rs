//! A relation's segment files as one row of blocks.
//!
//! A relation of n blocks lies in files `BASE`, `BASE.1`, `BASE.2` … of a fixed number of blocks each. Only
//! the caller knows n, and that no one truncates the files meanwhile.
//!
//! A segment is opened when it is first wanted, once for each way of reading, and stays open; in a large
//! relation the one that was unused the longest is closed for it. So a [`RelationFiles`] lives for one call,
//! no longer: a descriptor keeps the readahead window of the moment it was opened, and what the kernel has
//! seen of a reader's habits.

#[cfg(test)]
pub(crate) mod fixture;

use std::cell::Ref;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::Result;
use crate::files::descriptors::{Descriptors, MOST_OPEN};
use crate::files::eviction;
use crate::files::holes::Holes;
use crate::files::open_file::{Access, OpenFile};
use crate::files::writeback;
use crate::run::budget::{Outcome, StopCheck, stop_if};

/// Largest cached share of blocks that count as cold: what is left behind at the edges of what was dropped.
pub(crate) const NEARLY_COLD: f64 = 0.01;
/// Smallest cached share of blocks that count as cached.
pub(crate) const NEARLY_CACHED: f64 = 0.99;

/// The files of a relation.
#[derive(Debug)]
pub struct RelationFiles {
    base: PathBuf,
    block_size: u32,
    segment_blocks: u32,
    blocks: u64,
    open: Descriptors,
}

/// The part of a block range that lies in one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The segment's number, from 0.
    pub segment: u32,
    /// The blocks, counted from the start of the relation.
    pub blocks: Range<u64>,
}

impl RelationFiles {
    /// `blocks` blocks of `block_size` bytes, `segment_blocks` to a file, the first file being `base`.
    pub fn new(base: impl Into<PathBuf>, block_size: u32, segment_blocks: u32, blocks: u64) -> Self {
        Self { base: base.into(), block_size, segment_blocks, blocks, open: Descriptors::default() }
    }

    /// These files with none of them open yet.
    pub fn afresh(&self) -> Self {
        Self::new(self.base.clone(), self.block_size, self.segment_blocks, self.blocks)
    }

    /// Bytes of a block.
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Blocks of the relation.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The segment that a block is in.
    pub fn segment(&self, block: u64) -> u32 {
        (block / u64::from(self.segment_blocks)) as u32
    }

    /// How many segments there are.
    pub fn segments(&self) -> u32 {
        self.blocks.div_ceil(u64::from(self.segment_blocks)) as u32
    }

    /// The blocks of a segment.
    pub fn blocks_of(&self, segment: u32) -> Range<u64> {
        let per_segment = u64::from(self.segment_blocks);
        let start = u64::from(segment) * per_segment;
        start..(start + per_segment).min(self.blocks)
    }

    /// `blocks` segment by segment, in order.
    pub fn parts(&self, blocks: Range<u64>) -> impl Iterator<Item = Part> + use<> {
        let per = u64::from(self.segment_blocks);
        (blocks.start / per..blocks.end.div_ceil(per))
            .map(move |segment| Part {
                segment: segment as u32,
                blocks: blocks.start.max(segment * per)..blocks.end.min((segment + 1) * per),
            })
            .filter(|part| !part.blocks.is_empty())
    }

    /// The file of a segment.
    pub fn path(&self, segment: u32) -> PathBuf {
        if segment == 0 {
            return self.base.clone();
        }
        let mut name = self.base.clone().into_os_string();
        name.push(format!(".{segment}"));
        name.into()
    }

    /// Byte offset of a block in the file of its segment.
    pub fn offset(&self, block: u64) -> u64 {
        block % u64::from(self.segment_blocks) * u64::from(self.block_size)
    }

    /// The byte range of a part in its file.
    pub fn byte_range(&self, part: &Part) -> Range<u64> {
        let start = self.offset(part.blocks.start);
        start..start + (part.blocks.end - part.blocks.start) * u64::from(self.block_size)
    }

    /// How many files are kept open at most.
    pub fn most_open(&self) -> usize {
        MOST_OPEN.min(2 * self.segments() as usize)
    }

    /// Blocks of the first segments, as many as stay open for one way of reading.
    pub fn blocks_of_open_files(&self) -> u64 {
        self.blocks_of(MOST_OPEN as u32 - 1).end.min(self.blocks)
    }

    /// Do all segments stay open, for one way of reading?
    pub(crate) fn all_stay_open(&self) -> bool {
        self.segments() as usize <= MOST_OPEN
    }

    /// A segment, opened unless it is open.
    pub fn open(&self, segment: u32, access: Access) -> Result<Arc<OpenFile>> {
        Ok(Arc::clone(&*self.get(segment, access)?.0))
    }

    /// Is a segment open?
    #[cfg(test)]
    pub(crate) fn is_open(&self, segment: u32, access: Access) -> bool {
        self.open.is_open(segment, access)
    }

    /// A segment for a reader that comes back for each block, and lets go of it before anything else is
    /// opened; and whether it had to be opened.
    #[inline]
    pub(crate) fn get(&self, segment: u32, access: Access) -> Result<(Ref<'_, Arc<OpenFile>>, bool)> {
        self.open.get(segment, access, || OpenFile::open(self.path(segment), access, self.block_size))
    }

    /// The file of a part, and the part's bytes in it.
    fn part(&self, part: &Part) -> Result<(Arc<OpenFile>, Range<u64>)> {
        Ok((self.open(part.segment, Access::Buffered)?, self.byte_range(part)))
    }

    /// Is any of these blocks in a hole?
    pub fn have_holes(&self, blocks: Range<u64>, should_stop: &mut StopCheck<'_>) -> Outcome<bool> {
        for part in self.parts(blocks) {
            let (open, bytes) = self.part(&part)?;
            if !Holes::find(&open, bytes, should_stop)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Bytes of these blocks in the page cache.
    pub fn cached_bytes(&self, blocks: Range<u64>) -> Result<u64> {
        let mut sum = 0;
        for part in self.parts(blocks) {
            let (open, bytes) = self.part(&part)?;
            sum += open.residency(bytes)?.cached_bytes;
        }
        Ok(sum)
    }

    /// The share of these blocks that is in the page cache.
    pub(crate) fn cached_share(&self, blocks: &Range<u64>) -> Result<f64> {
        let bytes = (blocks.end - blocks.start) * u64::from(self.block_size);
        Ok(self.cached_bytes(blocks.clone())? as f64 / bytes.max(1) as f64)
    }

    /// Are some of these blocks just being read into the page cache? False where that is not told.
    pub fn are_arriving(&self, blocks: Range<u64>) -> Result<bool> {
        for part in self.parts(blocks) {
            let (open, bytes) = self.part(&part)?;
            if open.arriving(&bytes)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Drops the clean pages of these blocks, but for large folios that reach beyond them.
    pub fn drop_cached(&self, blocks: Range<u64>) -> Result<()> {
        for part in self.parts(blocks) {
            let (open, bytes) = self.part(&part)?;
            open.drop_cached(&bytes)?;
        }
        Ok(())
    }

    /// Writes back what is dirty of these blocks, or may be; returns how many bytes that were, as far as the
    /// kernel tells.
    pub fn write_back(&self, blocks: Range<u64>, should_stop: &mut StopCheck<'_>) -> Outcome<u64> {
        let mut written = 0;
        for part in self.parts(blocks) {
            let (open, bytes) = self.part(&part)?;
            let dirty = open.residency(bytes.clone())?.dirty_bytes;
            if dirty != Some(0) {
                writeback::of_relation(&open, bytes, should_stop)?;
                written += dirty.unwrap_or(0);
            }
        }
        Ok(written)
    }

    /// Makes the page cache let go of the segments that `blocks` lie in, whole: single blocks may share a
    /// large folio with others. `report` hears of the blocks that are done.
    pub fn evict(
        &self,
        blocks: Range<u64>,
        should_stop: &mut StopCheck<'_>,
        report: &mut dyn FnMut(u64),
    ) -> Outcome<()> {
        let start = blocks.start;
        for part in self.parts(blocks) {
            report(part.blocks.start - start);
            // Letting go of a clean segment takes a tenth of a second.
            stop_if(should_stop())?;
            let open = self.open(part.segment, Access::Buffered)?;
            eviction::evict(&open, should_stop)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::fixture::{BLOCK, Relation};
    use super::*;
    use crate::Error;
    use crate::files::page_cache::decided;

    #[test]
    fn parts_cover_the_range_and_split_at_segments() {
        let files = RelationFiles::new("/data/base/1/2", 8192, 100, 250);
        let parts: Vec<_> = files.parts(90..250).collect();
        assert_eq!(
            parts.iter().map(|p| (p.segment, p.blocks.clone())).collect::<Vec<_>>(),
            [(0, 90..100), (1, 100..200), (2, 200..250)]
        );
        assert_eq!(files.byte_range(&parts[0]), 90 * 8192..100 * 8192);
        assert_eq!(files.byte_range(&parts[2]), 0..50 * 8192);
        assert_eq!(files.parts(5..5).count(), 0);
    }

    #[test]
    fn segment_names_follow_the_server() {
        let files = RelationFiles::new("/data/base/1/2_fsm", 8192, 100, 250);
        assert_eq!(files.path(0), Path::new("/data/base/1/2_fsm"));
        assert_eq!(files.path(12), Path::new("/data/base/1/2_fsm.12"));
    }

    #[test]
    fn a_missing_segment_is_named() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let files = RelationFiles::new(dir.path().join("1"), 8192, 100, 250);
        match files.open(2, Access::Buffered) {
            Err(Error::MissingSegment { path }) => assert_eq!(path, dir.path().join("1.2")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_few_stay_open_those_used_last() {
        let many = MOST_OPEN as u32 + 10;
        let relation = Relation::of_segments(1, u64::from(many), 0..u64::from(many));
        let files = relation.source.afresh();
        let times = decided::times();
        for segment in 0..many {
            assert!(!files.is_open(segment, Access::Buffered));
            files.open(segment, Access::Buffered).expect("opened");
            // In use all the time.
            files.open(0, Access::Buffered).expect("opened");
        }
        let open: Vec<u32> = (0..many).filter(|&segment| files.is_open(segment, Access::Buffered)).collect();
        assert_eq!(open, std::iter::once(0).chain(11..many).collect::<Vec<_>>());
        // The method was decided once a file.
        assert_eq!(decided::times() - times, many);
        // Both ways of reading share the room.
        let direct = (0..many).take_while(|&segment| files.open(segment, Access::Direct).is_ok()).count();
        let open = |access| (0..many).filter(|&segment| files.is_open(segment, access)).count();
        assert!(direct == 0 || open(Access::Direct) == MOST_OPEN, "{}", open(Access::Direct));
        assert_eq!(open(Access::Buffered) + open(Access::Direct), MOST_OPEN);
    }

    /// Runs in a process of its own, which may have few descriptors.
    #[test]
    fn where_descriptors_are_few_it_does_with_fewer() {
        const FEW: u32 = 24;
        if std::env::var_os("FEW_DESCRIPTORS").is_none() {
            let name = std::thread::current().name().expect("a test's thread has its name").to_owned();
            let child = std::process::Command::new("sh")
                .args(["-c", &format!("ulimit -n {FEW} && exec \"$0\" --exact \"$1\"")])
                .arg(std::env::current_exe().expect("this program"))
                .arg(name)
                .env("FEW_DESCRIPTORS", "yes")
                .output()
                .expect("started");
            let said = String::from_utf8_lossy(&child.stdout);
            assert!(child.status.success() && said.contains(" 1 passed"), "{said}");
            return;
        }
        let many = FEW + 10;
        let relation = Relation::of_segments(1, u64::from(many), 0..u64::from(many));
        let files = relation.source.afresh();
        let all = 0..u64::from(many);
        let open = |files: &RelationFiles| (0..many).filter(|&s| files.is_open(s, Access::Buffered)).count();
        for _ in 0..2 {
            files.cached_bytes(all.clone()).expect("looked");
            files.write_back(all.clone(), &mut || None).expect("written back");
            files.drop_cached(all.clone()).expect("dropped");
            files.evict(all.clone(), &mut || None, &mut |_| ()).expect("evicted");
            assert!((8..FEW as usize).contains(&open(&files)), "{} open", open(&files));
        }
    }

    #[test]
    fn it_looks_and_drops_over_segments() {
        let relation = Relation::of_segments(16, 64, 0..64);
        relation.evict();
        relation.read(10..50);
        let files = relation.source.afresh();
        assert_eq!(files.cached_bytes(0..64).expect("known"), 40 * BLOCK);
        assert_eq!(files.cached_bytes(0..17).expect("known"), 7 * BLOCK);
        files.drop_cached(15..33).expect("dropped");
        assert_eq!(files.cached_bytes(0..64).expect("known"), (5 + 17) * BLOCK);
        // By whole segments.
        assert!(files.evict(40..41, &mut || None, &mut |_| ()).is_ok());
        assert_eq!(files.cached_bytes(0..64).expect("known"), (5 + 2) * BLOCK);
    }
}
