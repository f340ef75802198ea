//! Files of a relation that stay open, for those who come back to them from block to block.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use super::{Method, drop_range};
use crate::Result;
use crate::source::Source;

/// Files that are kept open. A relation of 1 TB has 1,024, and a server process may have no more
/// descriptors than that in all.
pub(crate) const MOST_OPEN: usize = 48;

/// Segment files, opened when they are wanted; of too many, the one that was unused the longest is closed.
pub(crate) struct Opened<'a> {
    source: &'a Source,
    direct: bool,
    open: Vec<Open>,
    /// Counts the uses of all.
    uses: u64,
}

/// One of them.
#[derive(Clone)]
pub(crate) struct Open {
    segment: u32,
    last_use: u64,
    pub(crate) file: Arc<File>,
    /// How one looks for it in the page cache.
    pub(crate) method: Method,
}

impl<'a> Opened<'a> {
    /// None yet.
    pub(crate) fn new(source: &'a Source, direct: bool) -> Self {
        Self { source, direct, open: Vec::new(), uses: 0 }
    }

    /// Is the file open?
    #[inline]
    pub(crate) fn is_open(&self, segment: u32) -> bool {
        self.open.iter().any(|open| open.segment == segment)
    }

    /// The file of a segment.
    #[inline]
    pub(crate) fn segment(&mut self, segment: u32) -> Result<&Open> {
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
        if self.open.len() == MOST_OPEN {
            self.close_oldest();
        }
        let file = loop {
            match self.source.open(segment, self.direct) {
                // The server keeps as many files open as it may; it closes some of its own when it lacks one.
                Err(e) if e.errno() == Some(libc::EMFILE) && !self.open.is_empty() => self.close_oldest(),
                opened => break Arc::new(opened?),
            }
        };
        let method = Method::of(&file);
        self.open.push(Open { segment, last_use: self.uses, file, method });
        Ok(self.open.len() - 1)
    }

    fn close_oldest(&mut self) {
        let oldest = (0..self.open.len()).min_by_key(|&index| self.open[index].last_use);
        if let Some(oldest) = oldest {
            self.open.swap_remove(oldest);
        }
    }

    /// As [`cached_bytes`](super::cached_bytes).
    pub(crate) fn cached_bytes(&mut self, blocks: Range<u64>) -> Result<u64> {
        let (source, mut sum) = (self.source, 0);
        for part in source.parts(blocks) {
            let open = self.segment(part.segment)?;
            let (path, bytes) = (source.path(part.segment), source.byte_range(&part));
            sum += open.method.residency(&open.file, &path, bytes)?.cached_bytes;
        }
        Ok(sum)
    }

    /// As [`drop_blocks`](super::drop_blocks).
    pub(crate) fn drop_blocks(&mut self, blocks: Range<u64>) -> Result<()> {
        let source = self.source;
        source.parts(blocks).try_for_each(|part| {
            let open = self.segment(part.segment)?;
            drop_range(&open.file, &source.path(part.segment), source.byte_range(&part))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::decided;
    use crate::source::fixture::{BLOCK, Relation};

    #[test]
    fn a_few_stay_open_those_used_last() {
        let many = MOST_OPEN as u32 + 10;
        let relation = Relation::of_segments(1, u64::from(many), 0..u64::from(many));
        let mut opened = Opened::new(&relation.source, false);
        let times = decided::times();
        for segment in 0..many {
            assert!(!opened.is_open(segment));
            opened.segment(segment).expect("opened");
            // In use all the time.
            opened.segment(0).expect("opened");
        }
        let open: Vec<u32> = (0..many).filter(|&segment| opened.is_open(segment)).collect();
        assert_eq!(open, std::iter::once(0).chain(11..many).collect::<Vec<_>>());
        // Once a file.
        assert_eq!(decided::times() - times, many);
    }

    #[test]
    fn it_looks_and_drops_over_segments() {
        let relation = Relation::of_segments(16, 64, 0..64);
        relation.evict();
        relation.read(10..50);
        let mut opened = Opened::new(&relation.source, false);
        assert_eq!(opened.cached_bytes(0..64).expect("known"), 40 * BLOCK);
        assert_eq!(opened.cached_bytes(0..17).expect("known"), 7 * BLOCK);
        opened.drop_blocks(15..33).expect("dropped");
        assert_eq!(opened.cached_bytes(0..64).expect("known"), (5 + 17) * BLOCK);
    }
}
