//! Making the OS page cache let go of a file.
//!
//! Eviction is a request, not a command. `POSIX_FADV_DONTNEED` skips dirty pages, so the file is written back
//! first, in pieces that can be interrupted; it skips folios that only partly lie in the range, so whole
//! files are evicted, never single blocks; and pages that someone maps or locks stay. Only a count afterwards
//! says what happened, and it is part of the result.

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::Error;
use crate::files::open_file::OpenFile;
use crate::files::page_cache::Residency;
use crate::files::writeback;
use crate::run::budget::{Outcome, StopCheck};

/// Writes a file's dirty pages back and drops its clean ones; returns what is still cached.
///
/// Interruptible every 8 MiB. A `Stop` of the closure ends it early.
pub fn evict(open: &OpenFile, should_stop: &mut StopCheck<'_>) -> Outcome<Residency> {
    // Freshly read pages wait in per-CPU lists where the first attempt may not find them.
    const ATTEMPTS: usize = 3;
    let OpenFile { file, path, .. } = open;
    let size = file.metadata().map_err(|e| Error::io("stat file", path, e))?.len();
    let mut left = open.residency(0..size)?;
    for _ in 0..ATTEMPTS {
        if left.cached_bytes == 0 {
            break;
        }
        if left.dirty_bytes != Some(0) {
            writeback::of_relation(open, 0..size, should_stop)?;
        }
        posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
            .map_err(|e| Error::io("drop the cached pages of file", path, e))?;
        left = open.residency(0..size)?;
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::files::page_cache::{ResidencyMethod, decided};
    use crate::run::budget::{End, Stop};

    /// A file of `size` bytes in the crate's own directory, which is on a disk where /tmp may not be.
    fn file(size: usize) -> (tempfile::NamedTempFile, OpenFile) {
        let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        file.write_all(&vec![7u8; size]).expect("written");
        let open = OpenFile::of(file.reopen().expect("opened"), file.path().to_owned());
        (file, open)
    }

    #[test]
    fn where_the_file_system_has_a_cache_of_its_own_nothing_is_evicted() {
        let evicted = decided::forced(ResidencyMethod::Unknown, || evict(&file(1 << 20).1, &mut || None));
        assert!(matches!(evicted, Err(End::Failed(Error::Unsupported { .. }))));
    }

    #[test]
    fn dirty_and_read_ahead_pages_are_gone_after_eviction() {
        let (_file, open) = file(16 << 20);
        let cached = || open.residency(0..16 << 20).expect("residency").cached_bytes;
        assert_eq!(cached(), 16 << 20);
        let left = evict(&open, &mut || None).expect("evicted");
        assert_eq!(left.cached_bytes, 0);
        // A scan with readahead leaves large folios, which eviction in ranges would not drop.
        std::io::copy(&mut &*open.file, &mut std::io::sink()).expect("read");
        assert_eq!(cached(), 16 << 20);
        let left = evict(&open, &mut || None).expect("evicted");
        assert_eq!(left.cached_bytes, 0);
    }

    #[test]
    fn eviction_can_be_stopped_between_pieces() {
        let (_file, open) = file(32 << 20);
        let mut asked = 0;
        let mut should_stop = || {
            asked += 1;
            (asked == 2).then_some(Stop::Statement)
        };
        let evicted = evict(&open, &mut should_stop);
        assert!(matches!(evicted, Err(End::Stopped(Stop::Statement))), "{evicted:?}");
        assert_eq!(open.residency(0..32 << 20).expect("residency").cached_bytes, 32 << 20);
    }
}
