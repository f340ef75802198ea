//! Files of a relation that stay open, for those who come back to them from block to block.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::{ResidencyMethod, evict};
use crate::files::source::{Part, Source};
use crate::files::writeback;
use crate::run::budget::{Stop, StopCheck};
use crate::{Error, Result};

/// Files that are kept open. A relation of 1 TB has 1,024, and a server process may have no more
/// descriptors than that in all.
pub(crate) const MOST_OPEN: usize = 48;

/// How many files of a relation a measurement keeps open at most.
pub fn most_open(source: &Source) -> usize {
    MOST_OPEN.min(source.segments() as usize)
}

/// Segment files, opened when they are wanted; of too many, the one that was unused the longest is closed.
pub(crate) struct OpenFiles<'a> {
    source: &'a Source,
    direct: bool,
    most: usize,
    open: Vec<OpenFile>,
    /// Counts the uses of all.
    uses: u64,
}

/// One of them.
#[derive(Clone)]
pub(crate) struct OpenFile {
    segment: u32,
    last_use: u64,
    pub(crate) file: Arc<File>,
    pub(crate) path: PathBuf,
    /// How one looks for it in the page cache.
    pub(crate) method: ResidencyMethod,
}

impl<'a> OpenFiles<'a> {
    /// None yet; they will be opened with O_DIRECT or without.
    pub(crate) fn new(source: &'a Source, direct: bool) -> Self {
        Self { source, direct, most: MOST_OPEN, open: Vec::new(), uses: 0 }
    }

    /// For one who goes through the relation in order: no more than the file that he is in.
    pub(crate) fn one_by_one(source: &'a Source) -> Self {
        Self { most: 1, ..Self::new(source, false) }
    }

    /// Is the file open?
    #[inline]
    pub(crate) fn is_open(&self, segment: u32) -> bool {
        self.open.iter().any(|open| open.segment == segment)
    }

    /// The file of a segment.
    #[inline]
    pub(crate) fn segment(&mut self, segment: u32) -> Result<&OpenFile> {
        self.uses += 1;
        let index = match self.open.iter().position(|open| open.segment == segment) {
            Some(index) => index,
            None => self.add(segment)?,
        };
        self.open[index].last_use = self.uses;
        Ok(&self.open[index])
    }

    #[cold]
    fn add(&mut self, segment: u32) -> Result<usize> {
        if self.open.len() == self.most {
            self.close_oldest();
        }
        let file = loop {
            match self.source.open(segment, self.direct) {
                // The server keeps as many files open as it may; it closes some of its own when it lacks one.
                Err(e) if is_out_of_files(&e) && !self.open.is_empty() => self.close_oldest(),
                opened => break Arc::new(opened?),
            }
        };
        let (path, method) = (self.source.path(segment), ResidencyMethod::of(&file));
        self.open.push(OpenFile { segment, last_use: self.uses, file, path, method });
        Ok(self.open.len() - 1)
    }

    fn close_oldest(&mut self) {
        let oldest = (0..self.open.len()).min_by_key(|&index| self.open[index].last_use);
        if let Some(oldest) = oldest {
            self.open.swap_remove(oldest);
        }
    }

    /// The file of a part, and the part's bytes in it.
    fn part(&mut self, part: &Part) -> Result<(&OpenFile, Range<u64>)> {
        let bytes = self.source.byte_range(part);
        Ok((self.segment(part.segment)?, bytes))
    }

    /// Bytes of these blocks in the page cache.
    pub(crate) fn cached_bytes(&mut self, blocks: Range<u64>) -> Result<u64> {
        let mut sum = 0;
        for part in self.source.parts(blocks) {
            let (OpenFile { file, path, method, .. }, bytes) = self.part(&part)?;
            sum += method.residency(file, path, bytes)?.cached_bytes;
        }
        Ok(sum)
    }

    /// Drops the clean pages of these blocks, but for large folios that reach beyond them.
    pub(crate) fn drop_blocks(&mut self, blocks: Range<u64>) -> Result<()> {
        for part in self.source.parts(blocks) {
            let (OpenFile { file, path, .. }, bytes) = self.part(&part)?;
            let (offset, length) = (bytes.start as i64, (bytes.end - bytes.start) as i64);
            posix_fadvise(file, offset, length, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
                .map_err(|e| Error::io_at("drop cached pages of", path, bytes.start, e))?;
        }
        Ok(())
    }

    /// Writes back what is dirty of these blocks, or may be; returns how many bytes that were, as far as the kernel tells.
    pub(crate) fn write_back(
        &mut self,
        blocks: Range<u64>,
        should_stop: &mut StopCheck<'_>,
    ) -> Result<(u64, Option<Stop>)> {
        let mut written = 0;
        for part in self.source.parts(blocks) {
            let (OpenFile { file, path, method, .. }, bytes) = self.part(&part)?;
            let dirty = method.residency(file, path, bytes.clone())?.dirty_bytes;
            if dirty != Some(0) {
                written += dirty.unwrap_or(0);
                if let Some(stop) = writeback::of_relation(file, path, bytes, should_stop)? {
                    return Ok((written, Some(stop)));
                }
            }
        }
        Ok((written, None))
    }

    /// Makes the page cache let go of the segments that `blocks` lie in, whole: single blocks may share a large folio with
    /// others. `report` hears of the blocks that are done.
    pub(crate) fn evict(
        &mut self,
        blocks: Range<u64>,
        should_stop: &mut StopCheck<'_>,
        report: &mut dyn FnMut(u64),
    ) -> Result<Option<Stop>> {
        let start = blocks.start;
        for part in self.source.parts(blocks) {
            report(part.blocks.start - start);
            // Letting go of a clean segment takes a tenth of a second.
            if let Some(stop) = should_stop() {
                return Ok(Some(stop));
            }
            let OpenFile { file, path, .. } = self.segment(part.segment)?;
            if let (_, Some(stop)) = evict(file, path, should_stop)? {
                return Ok(Some(stop));
            }
        }
        Ok(None)
    }
}

/// The process has as many as it may, or the system.
fn is_out_of_files(error: &Error) -> bool {
    matches!(error.errno(), Some(libc::EMFILE | libc::ENFILE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::cache::decided;
    use crate::files::source::fixture::{BLOCK, Relation};

    #[test]
    fn a_few_stay_open_those_used_last() {
        let many = MOST_OPEN as u32 + 10;
        let relation = Relation::of_segments(1, u64::from(many), 0..u64::from(many));
        let open_after = |files: &mut OpenFiles<'_>| -> Vec<u32> {
            for segment in 0..many {
                assert!(!files.is_open(segment));
                files.segment(segment).expect("opened");
                // In use all the time.
                files.segment(0).expect("opened");
            }
            (0..many).filter(|&segment| files.is_open(segment)).collect()
        };
        let times = decided::times();
        let open = open_after(&mut OpenFiles::new(&relation.source, false));
        assert_eq!(open, std::iter::once(0).chain(11..many).collect::<Vec<_>>());
        // Once a file.
        assert_eq!(decided::times() - times, many);
        let mut one = OpenFiles::one_by_one(&relation.source);
        one.segment(3).expect("opened");
        one.segment(4).expect("opened");
        assert_eq!((one.is_open(3), one.is_open(4)), (false, true));
    }

    /// In a process of its own, which may have a few only.
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
        let mut files = OpenFiles::new(&relation.source, false);
        let all = 0..u64::from(many);
        let open = |files: &OpenFiles<'_>| (0..many).filter(|&segment| files.is_open(segment)).count();
        for _ in 0..2 {
            files.cached_bytes(all.clone()).expect("looked");
            files.write_back(all.clone(), &mut || None).expect("written back");
            files.drop_blocks(all.clone()).expect("dropped");
            files.evict(all.clone(), &mut || None, &mut |_| ()).expect("evicted");
            assert!((8..FEW as usize).contains(&open(&files)), "{} open", open(&files));
        }
    }

    #[test]
    fn it_looks_and_drops_over_segments() {
        let relation = Relation::of_segments(16, 64, 0..64);
        relation.evict();
        relation.read(10..50);
        let mut files = OpenFiles::new(&relation.source, false);
        assert_eq!(files.cached_bytes(0..64).expect("known"), 40 * BLOCK);
        assert_eq!(files.cached_bytes(0..17).expect("known"), 7 * BLOCK);
        files.drop_blocks(15..33).expect("dropped");
        assert_eq!(files.cached_bytes(0..64).expect("known"), (5 + 17) * BLOCK);
        // By whole segments.
        assert_eq!(files.evict(40..41, &mut || None, &mut |_| ()).expect("evicted"), None);
        assert_eq!(files.cached_bytes(0..64).expect("known"), (5 + 2) * BLOCK);
    }
}
