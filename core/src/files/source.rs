//! A relation's segment files as one row of blocks.
//!
//! A relation of n blocks lies in files `BASE`, `BASE.1`, `BASE.2` … of a fixed number of blocks
//! each. Only the caller knows n, and that no one truncates the files meanwhile.

#[cfg(test)]
pub(crate) mod fixture;

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::direct_io;
use crate::{Error, Result};

/// Where the blocks of one relation fork are.
#[derive(Debug, Clone)]
pub struct Source {
    base: PathBuf,
    block_size: u32,
    segment_blocks: u32,
    blocks: u64,
}

/// The part of a block range that lies in one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The segment's number, from 0.
    pub segment: u32,
    /// The blocks, counted from the start of the relation.
    pub blocks: Range<u64>,
}

impl Source {
    /// `blocks` blocks of `block_size` bytes, `segment_blocks` to a file, the first file being `base`.
    pub fn new(base: impl Into<PathBuf>, block_size: u32, segment_blocks: u32, blocks: u64) -> Self {
        Self { base: base.into(), block_size, segment_blocks, blocks }
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

    /// How many there are.
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
        let per_segment = u64::from(self.segment_blocks);
        let mut next = blocks.start;
        std::iter::from_fn(move || {
            if next >= blocks.end {
                return None;
            }
            let segment = next / per_segment;
            let end = ((segment + 1) * per_segment).min(blocks.end);
            let part = Part { segment: segment as u32, blocks: next..end };
            next = end;
            Some(part)
        })
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

    /// Opens a segment for reading, through the page cache or with O_DIRECT.
    ///
    /// A descriptor keeps the readahead window of the moment it was opened, so each run opens afresh.
    pub fn open(&self, segment: u32, direct: bool) -> Result<File> {
        let path = self.path(segment);
        let flags = libc::O_CLOEXEC | if direct { libc::O_DIRECT } else { 0 };
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        let file = opened.map_err(|e| refused(&path, direct, e))?;
        if direct {
            direct_io::check(&file, self.block_size)?;
        }
        Ok(file)
    }
}

/// The segment that a reader is in, kept open until it goes to another one.
pub struct Entered<'a> {
    source: &'a Source,
    direct: bool,
    open: Option<(u32, PathBuf, Arc<File>)>,
}

impl<'a> Entered<'a> {
    /// None yet.
    pub fn new(source: &'a Source, direct: bool) -> Self {
        Self { source, direct, open: None }
    }

    /// Opens a segment unless it is the present one.
    pub fn segment(&mut self, segment: u32) -> Result<(PathBuf, Arc<File>)> {
        if let Some((open, path, file)) = &self.open
            && *open == segment
        {
            return Ok((path.clone(), Arc::clone(file)));
        }
        let path = self.source.path(segment);
        let file = Arc::new(self.source.open(segment, self.direct)?);
        self.open = Some((segment, path.clone(), Arc::clone(&file)));
        Ok((path, file))
    }
}

/// The error of an `open` that failed, with O_DIRECT or without.
fn refused(path: &Path, direct: bool, error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENOENT) => Error::MissingSegment { path: path.to_owned() },
        Some(libc::EINVAL | libc::EOPNOTSUPP) if direct => {
            Error::Unsupported { what: "O_DIRECT", why: "the file system refuses it".to_owned() }
        }
        _ => Error::io("open", path, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_range_and_split_at_segments() {
        let source = Source::new("/data/base/1/2", 8192, 100, 250);
        let parts: Vec<_> = source.parts(90..250).collect();
        assert_eq!(
            parts.iter().map(|p| (p.segment, p.blocks.clone())).collect::<Vec<_>>(),
            [(0, 90..100), (1, 100..200), (2, 200..250)]
        );
        assert_eq!(source.byte_range(&parts[0]), 90 * 8192..100 * 8192);
        assert_eq!(source.byte_range(&parts[2]), 0..50 * 8192);
        assert_eq!(source.parts(5..5).count(), 0);
    }

    #[test]
    fn segment_names_follow_the_server() {
        let source = Source::new("/data/base/1/2_fsm", 8192, 100, 250);
        assert_eq!(source.path(0), Path::new("/data/base/1/2_fsm"));
        assert_eq!(source.path(12), Path::new("/data/base/1/2_fsm.12"));
    }

    #[test]
    fn a_missing_segment_is_named() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let source = Source::new(dir.path().join("1"), 8192, 100, 250);
        match source.open(2, false) {
            Err(Error::MissingSegment { path }) => assert_eq!(path, dir.path().join("1.2")),
            other => panic!("{other:?}"),
        }
    }
}
