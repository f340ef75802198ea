//! Relations of real files, for tests.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Duration;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use super::RelationFiles;
use crate::files::eviction;
use crate::files::open_file::Access;

/// Bytes of a block.
pub(crate) const BLOCK: u64 = 8192;

/// Blocks of a segment.
const SEGMENT: u32 = 256;

/// Segment files in the crate's own directory: `/tmp` may be memory.
pub(crate) struct Relation {
    _directory: tempfile::TempDir,
    pub(crate) source: RelationFiles,
}

impl Relation {
    /// A relation of `blocks` blocks; those in `data` are written and synced, the others are holes.
    pub(crate) fn new(blocks: u64, data: Range<u64>) -> Self {
        Self::of_segments(SEGMENT, blocks, data)
    }

    /// Like [`Self::new`], with `segment` blocks to a segment.
    pub(crate) fn of_segments(segment: u32, blocks: u64, data: Range<u64>) -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let source = RelationFiles::new(directory.path().join("1"), BLOCK as u32, segment, blocks);
        for part in source.parts(0..blocks) {
            let file = File::create(source.path(part.segment)).expect("created");
            file.set_len(source.byte_range(&part).end).expect("extended");
            for block in part.blocks.clone().filter(|b| data.contains(b)) {
                file.write_all_at(&[1; BLOCK as usize], source.offset(block)).expect("written");
            }
            file.sync_all().expect("synced");
        }
        Self { _directory: directory, source }
    }

    /// Reads these blocks through the page cache, and nothing beside them.
    pub(crate) fn read(&self, blocks: Range<u64>) {
        // That advice is for these descriptors alone.
        let own = self.source.afresh();
        for part in own.parts(blocks) {
            let file = &own.open(part.segment, Access::Buffered).expect("opened").file;
            posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM).expect("advised");
            let bytes = own.byte_range(&part);
            let mut buffer = vec![0; (bytes.end - bytes.start) as usize];
            file.read_exact_at(&mut buffer, bytes.start).expect("read");
        }
    }

    /// Makes the page cache let go of all of it.
    pub(crate) fn evict(&self) {
        // A page that the kernel is just moving, to compact memory or to take it back, can't be let go of.
        for _ in 0..100 {
            if self.evict_once() == 0 {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("the page cache keeps {} bytes", self.evict_once());
    }

    /// Returns how many bytes are cached all the same.
    fn evict_once(&self) -> u64 {
        let mut cached = 0;
        let own = self.source.afresh();
        for part in own.parts(0..own.blocks()) {
            let open = own.open(part.segment, Access::Buffered).expect("opened");
            let left = eviction::evict(&open, &mut || None).expect("evicted");
            cached += left.cached_bytes;
        }
        cached
    }
}
