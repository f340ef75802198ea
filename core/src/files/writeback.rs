//! Writing a file's dirty pages back: before it is read past the page cache, or let go of by it.
//!
//! # Limitations and caveats
//!
//! The server must hear of what could not be written, or its next checkpoint takes it for stored. The kernel
//! reports such an error to each descriptor that was open by then, and to the first one opened later that
//! asks: by fsync, or by `sync_file_range` with one of its WAIT flags. Had a probe asked, the checkpointer,
//! which opens a file when it syncs it, would not be told. So a file of a relation is only ever *begun* to be
//! written, which reports nothing, and to wait is to look: at cachestat, and where that does not tell (an
//! older kernel, overlayfs), by having the extent map synced, which leaves the report where it is, but takes
//! the whole file, and can't be interrupted.
//!
//! Sources: `fs/sync.c`, `mm/filemap.c` (`file_check_and_advance_wb_err`), `lib/errseq.c`, `fs/ioctl.c`
//! (`fiemap_prep`) of Linux 6.12; `pg_flush_data` of the server, which begins only, too.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use crate::files::fiemap;
use crate::files::open_file::OpenFile;
use crate::run::budget::{self, Outcome, StopCheck, stop_if};
use crate::{Error, Result};

/// How much is written back between two looks at the clock.
pub const STEP: u64 = 8 << 20;

/// Writes the dirty pages of `bytes` of a relation's file back, and waits until the storage has taken them,
/// or has failed to, which the server's own fsync tells. Asks every [`STEP`] bytes, and while it waits.
pub fn of_relation(open: &OpenFile, bytes: Range<u64>, should_stop: &mut StopCheck<'_>) -> Outcome<()> {
    let tells_dirty = open.method.tells_dirty();
    // What is being written already is passed over, also where it has become dirty again meanwhile.
    let rounds = if tells_dirty { 3 } else { 1 };
    for step in steps(bytes) {
        for _ in 0..rounds {
            stop_if(should_stop())?;
            flush("write back file", &open.file, &open.path, &step, libc::SYNC_FILE_RANGE_WRITE)?;
            settle(open, &step, should_stop)?;
            if tells_dirty && open.residency(step.clone())?.dirty_bytes == Some(0) {
                break;
            }
        }
    }
    if !tells_dirty {
        fiemap::sync(&open.file, &open.path)?;
    }
    Ok(())
}

/// Writes back the dirty pages of `bytes` of a file that is the caller's own, as are its errors; they name
/// the directory.
pub fn of_scratch(
    file: &File,
    directory: &Path,
    bytes: Range<u64>,
    should_stop: &mut StopCheck<'_>,
) -> Outcome<()> {
    for step in steps(bytes) {
        stop_if(should_stop())?;
        let wait = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        let flags = libc::SYNC_FILE_RANGE_WRITE | wait;
        flush("write back scratch file in directory", file, directory, &step, flags)?;
    }
    Ok(())
}

/// Has the kernel begin to write back `bytes` of a file that is the caller's own, without waiting; errors
/// name the directory.
pub(crate) fn begin_of_scratch(file: &File, directory: &Path, bytes: &Range<u64>) -> Result<()> {
    flush("write back scratch file in directory", file, directory, bytes, libc::SYNC_FILE_RANGE_WRITE)
}

/// Waits while pages of a range are being written, as far as that can be seen: others may never cease to
/// write there.
fn settle(open: &OpenFile, step: &Range<u64>, should_stop: &mut StopCheck<'_>) -> Outcome<()> {
    const NAP: Duration = Duration::from_micros(500);
    const PATIENCE: Duration = Duration::from_secs(10);
    budget::wait_while(PATIENCE, NAP, &mut || {
        let is_busy = open.under_way(step)?.is_some_and(|bytes| bytes > 0);
        if is_busy {
            stop_if(should_stop())?;
        }
        Ok(is_busy)
    })
}

fn steps(bytes: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let end = bytes.end;
    bytes.step_by(STEP as usize).map(move |start| start..end.min(start + STEP))
}

fn flush(
    action: &'static str,
    file: &File,
    path: &Path,
    step: &Range<u64>,
    flags: libc::c_uint,
) -> Result<()> {
    let (offset, length) = (step.start as i64, (step.end - step.start) as i64);
    loop {
        // SAFETY: the call takes no pointer; the descriptor is open for as long as `file` is borrowed.
        let result = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, flags) };
        match nix::Error::result(result) {
            Ok(_) => return Ok(()),
            Err(nix::Error::EINTR) => {}
            Err(e) => return Err(Error::io_at(action, path, step.start, e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::budget::{Stop, stopped};
    use std::io::Write;

    /// A file of `size` dirty bytes in the crate's own directory, which is on a disk where /tmp may not be.
    fn dirty(size: usize) -> (tempfile::NamedTempFile, OpenFile) {
        let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        file.write_all(&vec![7u8; size]).expect("written");
        let open = OpenFile::of(file.reopen().expect("opened"), file.path().to_owned());
        (file, open)
    }

    type Way = fn(&OpenFile, Range<u64>, &mut StopCheck<'_>) -> Outcome<()>;

    /// Both ways to write back.
    const WAYS: [Way; 2] =
        [of_relation, |open, bytes, should_stop| of_scratch(&open.file, &open.path, bytes, should_stop)];

    #[test]
    fn what_is_dirty_is_written_and_waited_for() {
        for written in WAYS {
            let (_file, open) = dirty(20 << 20);
            let left = || open.residency(0..20 << 20).expect("residency").dirty_bytes;
            let Some(before) = left() else { return };
            assert!(before > 0);
            assert_eq!(stopped(written(&open, 0..20 << 20, &mut || None)).expect("written"), None);
            assert_eq!(left(), Some(0));
        }
    }

    #[test]
    fn it_can_be_stopped_between_steps() {
        for written in WAYS {
            let (_file, open) = dirty(32 << 20);
            let mut asked = 0;
            let mut should_stop = || {
                asked += 1;
                (asked == 2).then_some(Stop::Statement)
            };
            let stop = stopped(written(&open, 0..32 << 20, &mut should_stop)).expect("written");
            assert_eq!((stop, asked), (Some(Stop::Statement), 2));
        }
    }

    #[test]
    fn steps_cover_the_range() {
        let all: Vec<_> = steps(5..STEP + 6).collect();
        assert_eq!(all, [5..STEP + 5, STEP + 5..STEP + 6]);
        assert_eq!(steps(3..3).count(), 0);
    }
}
