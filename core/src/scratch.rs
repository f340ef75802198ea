//! A file to write tests into that leaves nothing behind, whatever happens.
//!
//! It has no name: `O_TMPFILE`, or where that is missing a name that is unlinked before anything is written.
//! So the kernel frees its space when the last descriptor is closed, be it by `kill -9`, and nothing has to
//! be cleaned up. Only a kill between the two calls of the second way leaves a name, of an empty file: the
//! caller chooses one that is its own, and that the server sweeps after a crash.
//!
//! It is filled with incompressible data and synced before anyone gets it. As in a WAL segment, writing it
//! again then allocates nothing and changes no metadata but times. Holes and reserved blocks would make each
//! sync pay for a journal commit too; zeros would vanish in a file system or a device that compresses.
//!
//! It is not a lock on space: others may use up the reserve meanwhile. Nor is it evicted: what was written is
//! in the page cache, clean.
//!
//! # Limitations and caveats
//! - Copy-on-write file systems (btrfs, ZFS) allocate at each write, whatever was there before. So it is with
//!   the server's WAL on them.
//! - NFS renames an open file that is unlinked (`.nfs…`) and removes it at its last close.
//! - A quota is not seen beforehand: the file system says so (`EDQUOT`) in the middle.
//! - Another descriptor needs `/proc`.
//!
//! Sources: open(2) (`O_TMPFILE`, which errors mean that it is missing), proc_pid_fd(5), statvfs(3).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::clock::{Clock, Monotonic};
use crate::pace::{Ask, Stop};
use crate::source::refused;
use crate::{Error, Result, cache};

/// How much is written between two questions to the caller.
const FILL_STEP: u64 = 1 << 20;

/// What is written at a time, as the server extends its files. A longer write makes large folios in the page
/// cache, and there are kernels on which a buffered write of one block into such a folio takes twice as long.
const WRITE: usize = 8192;

/// Where a scratch file goes.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// A directory of the file system that is meant.
    pub directory: &'a Path,
    /// The file to create, and unlink at once, where the file system has no `O_TMPFILE`. Nobody else may use that name.
    pub fallback: &'a Path,
}

/// The space that a scratch file takes and leaves, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// The size of the file.
    pub size: u64,
    /// What must stay free afterwards.
    pub reserve: u64,
}

/// What came of an attempt to create a scratch file.
#[derive(Debug)]
pub enum Created {
    /// The file, filled and synced.
    Ready(Scratch),
    /// The caller's reason to stop. The file is gone.
    Stopped(Stop),
}

/// A nameless file, filled and synced.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    /// For messages: the file itself has no name.
    directory: PathBuf,
    size: u64,
}

impl Room {
    /// Is there so much, if `free` bytes are?
    fn fits(&self, free: u64) -> bool {
        self.size.checked_add(self.reserve).is_some_and(|needed| needed <= free)
    }
}

impl Scratch {
    /// Creates, fills and syncs a file. `ask` is asked before every MiB written, and before every
    /// [`cache::WRITE_BACK_STEP`] bytes on the way to the storage; what is left for the fsync is metadata.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if the file system is too full, before anything is created; [`Error::Io`] with the
    /// directory's path if it gets full meanwhile or the storage fails.
    pub fn create(place: Place<'_>, room: Room, ask: &mut Ask<'_>) -> Result<Created> {
        Self::create_with(libc::O_TMPFILE, place, room, ask)
    }

    /// [`Scratch::create`] with the flags that ask for a nameless file in a directory.
    fn create_with(nameless: i32, place: Place<'_>, room: Room, ask: &mut Ask<'_>) -> Result<Created> {
        let directory = place.directory;
        let free = free_bytes(directory)?;
        if !room.fits(free) {
            let Room { size: wanted, reserve } = room;
            return Err(Error::NoRoom { directory: directory.to_owned(), free, wanted, reserve });
        }
        let file = create_nameless(nameless, place)?;
        if let Some(stop) = fill(&file, directory, 0..room.size, ask)? {
            return Ok(Created::Stopped(stop));
        }
        if let Some(stop) = cache::write_back(&file, directory, 0..room.size, ask)? {
            return Ok(Created::Stopped(stop));
        }
        file.sync_all().map_err(|e| Error::io("sync a scratch file in", directory, e))?;
        Ok(Created::Ready(Self { file, directory: directory.to_owned(), size: room.size }))
    }

    /// Opens the file once more, for reading and writing and with `flags`, such as `O_DIRECT` or `O_DSYNC`.
    /// These belong to a descriptor from its birth: `fcntl(2)` can't set the synchronous ones later.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the file system refuses `O_DIRECT`, or without `/proc`.
    pub fn open(&self, flags: i32) -> Result<File> {
        let link = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let opened =
            OpenOptions::new().read(true).write(true).custom_flags(flags | libc::O_CLOEXEC).open(&link);
        opened.map_err(|e| match e.raw_os_error() {
            // The descriptor is open, so it is the whole of /proc that is missing.
            Some(libc::ENOENT) => Error::Unsupported {
                what: "a second descriptor of a scratch file",
                why: "/proc is not mounted".to_owned(),
            },
            _ => refused(link.as_ref(), flags & libc::O_DIRECT != 0, e),
        })
    }

    /// The descriptor that filled the file: buffered, for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The directory that it was made in.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// Bytes that an unprivileged process may still allocate on the file system of a directory.
fn free_bytes(directory: &Path) -> Result<u64> {
    let facts = statvfs(directory).map_err(|e| Error::io("stat the file system of", directory, e))?;
    Ok(facts.blocks_available().saturating_mul(facts.fragment_size()))
}

fn create_nameless(nameless: i32, place: Place<'_>) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(nameless | libc::O_CLOEXEC).open(place.directory) {
        Ok(file) => return Ok(file),
        Err(e) if has_no_tmpfile(&e) => {}
        Err(e) => return Err(Error::io("create a scratch file in", place.directory, e)),
    }
    options.create_new(true).custom_flags(libc::O_CLOEXEC);
    let created = options.open(place.fallback).or_else(|e| match place.fallback.parent() {
        // A process of the same number was killed before it could remove it.
        _ if e.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(place.fallback)?;
            options.open(place.fallback)
        }
        // The server makes its folder for temporary files when the first is wanted, and so do we.
        Some(parent) if e.kind() == io::ErrorKind::NotFound => {
            fs::DirBuilder::new().mode(0o700).create(parent)?;
            options.open(place.fallback)
        }
        _ => Err(e),
    });
    let file = created.map_err(|e| Error::io("create", place.fallback, e))?;
    fs::remove_file(place.fallback).map_err(|e| Error::io("remove", place.fallback, e))?;
    Ok(file)
}

/// A file system that lacks it says `EOPNOTSUPP`, a kernel that does not know the flag opens a directory
/// for writing or looks for a name; `EINVAL` is what layers between the two make of it.
fn has_no_tmpfile(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT | libc::EINVAL))
}

/// Fills `bytes` with data that does not compress and that no other scratch file holds, since storage may
/// keep equal blocks once.
fn fill(file: &File, directory: &Path, bytes: Range<u64>, ask: &mut Ask<'_>) -> Result<Option<Stop>> {
    let seed = Monotonic.now() ^ u64::from(std::process::id()).rotate_left(32);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut piece = vec![0; FILL_STEP.min(bytes.end - bytes.start) as usize];
    let mut offset = bytes.start;
    while offset < bytes.end {
        if let Some(stop) = ask() {
            return Ok(Some(stop));
        }
        let step = FILL_STEP.min(bytes.end - offset);
        let piece = &mut piece[..step as usize];
        random.fill_bytes(piece);
        for write in piece.chunks(WRITE) {
            file.write_all_at(write, offset)
                .map_err(|e| Error::io_at("write a scratch file in", directory, offset, e))?;
            offset += write.len() as u64;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::os::unix::fs::MetadataExt;

    use nix::fcntl::{FcntlArg, fcntl};

    use super::*;
    use crate::extents::Holes;

    const BLOCK: usize = 8192;
    /// Not a multiple of the step, so that the last piece is shorter.
    const ROOM: Room = Room { size: (3 << 20) + BLOCK as u64, reserve: 1 << 20 };
    /// What a kernel that does not know O_TMPFILE takes it for: a directory, which can't be written to.
    const UNKNOWN: i32 = libc::O_DIRECTORY;

    /// A directory in the crate's own, which is on a disk where /tmp may not be, and the fallback's name.
    fn directory() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let fallback = directory.path().join("xlogtemp.1");
        (directory, fallback)
    }

    fn is_empty(directory: &Path) -> bool {
        fs::read_dir(directory).expect("listed").next().is_none()
    }

    /// A scratch file made with these flags. Its directory was empty whenever it asked.
    fn scratch(nameless: i32) -> (Scratch, tempfile::TempDir) {
        let (directory, fallback) = directory();
        let mut asked = 0;
        let mut ask = || {
            asked += 1;
            assert!(is_empty(directory.path()), "a name at question {asked}");
            None
        };
        let place = Place { directory: directory.path(), fallback: &fallback };
        let created = Scratch::create_with(nameless, place, ROOM, &mut ask).expect("created");
        // Four pieces written, one piece written back.
        assert_eq!(asked, 5);
        match created {
            Created::Ready(scratch) => (scratch, directory),
            Created::Stopped(stop) => panic!("{stop}"),
        }
    }

    fn flags(file: &File) -> i32 {
        fcntl(file, FcntlArg::F_GETFL).expect("flags")
    }

    #[test]
    fn it_never_has_a_name() {
        for nameless in [libc::O_TMPFILE, UNKNOWN] {
            let (scratch, directory) = scratch(nameless);
            let facts = scratch.file().metadata().expect("stat");
            assert_eq!((facts.nlink(), facts.mode() & 0o777), (0, 0o600));
            assert_eq!(facts.dev(), fs::metadata(directory.path()).expect("stat").dev());
            assert!(is_empty(directory.path()));
            drop(scratch);
            assert!(is_empty(directory.path()));
        }
    }

    #[test]
    fn the_fallback_is_used_only_where_it_must_be() {
        for (nameless, is_used) in [(libc::O_TMPFILE, false), (UNKNOWN, true)] {
            let (directory, fallback) = directory();
            fs::write(&fallback, "left by a process of the same number").expect("written");
            let place = Place { directory: directory.path(), fallback: &fallback };
            let created = Scratch::create_with(nameless, place, ROOM, &mut || None);
            assert!(matches!(created, Ok(Created::Ready(_))), "{created:?}");
            assert_eq!(fallback.exists(), !is_used);
        }
    }

    #[test]
    fn the_folder_of_the_fallback_is_made_as_the_server_makes_it() {
        let (directory, _) = directory();
        let fallback = directory.path().join("pgsql_tmp").join("pgsql_tmp1.io_probe");
        let place = Place { directory: directory.path(), fallback: &fallback };
        let created = Scratch::create_with(UNKNOWN, place, ROOM, &mut || None);
        assert!(matches!(created, Ok(Created::Ready(_))), "{created:?}");
        let folder = fs::metadata(directory.path().join("pgsql_tmp")).expect("a folder");
        assert_eq!(folder.mode() & 0o777, 0o700);
        assert!(is_empty(&directory.path().join("pgsql_tmp")));
    }

    #[test]
    fn other_errors_do_not_lead_to_the_fallback() {
        let (directory, fallback) = directory();
        let no_directory = directory.path().join("file");
        fs::write(&no_directory, "").expect("written");
        let place = Place { directory: &no_directory, fallback: &fallback };
        match Scratch::create(place, ROOM, &mut || None) {
            Err(Error::Io { path, source, .. }) => {
                assert_eq!((path, source.raw_os_error()), (no_directory, Some(libc::ENOTDIR)));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_is_allocated_and_clean_so_that_overwriting_allocates_nothing() {
        let (scratch, directory) = scratch(libc::O_TMPFILE);
        let all = 0..ROOM.size;
        assert_eq!(scratch.size(), ROOM.size);
        let before = scratch.file().metadata().expect("stat");
        assert_eq!(before.len(), ROOM.size);
        assert!(before.blocks() * 512 >= ROOM.size, "{} sectors", before.blocks());
        let holes = Holes::find(scratch.file(), directory.path(), all.clone()).expect("holes");
        assert!(holes.is_empty(), "{holes:?}");
        let residency = cache::residency(scratch.file(), directory.path(), all).expect("residency");
        assert!(matches!(residency.dirty_bytes, Some(0) | None), "{residency:?}");

        scratch.file().write_all_at(&[1; 4 * BLOCK], 0).expect("written");
        scratch.file().sync_all().expect("synced");
        assert_eq!(scratch.file().metadata().expect("stat").blocks(), before.blocks());
    }

    #[test]
    fn its_content_does_not_compress() {
        let contents = [scratch(libc::O_TMPFILE), scratch(libc::O_TMPFILE)].map(|(scratch, _directory)| {
            let mut content = vec![0; ROOM.size as usize];
            scratch.file().read_exact_at(&mut content, 0).expect("read");
            content
        });
        let blocks = || contents.iter().flat_map(|content| content.chunks(BLOCK));
        assert_eq!(blocks().collect::<HashSet<_>>().len(), blocks().count(), "equal blocks");
        for block in blocks() {
            let mut counts = [0usize; 256];
            block.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
            let share = |n: usize| n as f64 / BLOCK as f64;
            let entropy: f64 = counts.iter().filter(|n| **n > 0).map(|n| -share(*n) * share(*n).log2()).sum();
            // Of 8 bits a byte; a sample of 8,192 random bytes falls short by 0.02.
            assert!(entropy > 7.9, "{entropy} bits");
        }
    }

    #[test]
    fn it_stops_when_told_to_and_leaves_nothing() {
        for nameless in [libc::O_TMPFILE, UNKNOWN] {
            // Before anything is written, in the middle, and before the data is written back.
            for when in [1, 3, 5] {
                let (directory, fallback) = directory();
                let mut asked = 0;
                let mut ask = || {
                    asked += 1;
                    (asked == when).then_some(Stop::Statement)
                };
                let place = Place { directory: directory.path(), fallback: &fallback };
                match Scratch::create_with(nameless, place, ROOM, &mut ask).expect("no error") {
                    Created::Stopped(stop) => assert_eq!((stop, asked), (Stop::Statement, when)),
                    Created::Ready(_) => panic!("went on after question {when}"),
                }
                assert!(is_empty(directory.path()));
            }
        }
    }

    #[test]
    fn without_room_nothing_is_created() {
        let (directory, fallback) = directory();
        let place = Place { directory: directory.path(), fallback: &fallback };
        // Only the reserve is missing; only the sum overflows.
        for reserve in [u64::MAX - ROOM.size, u64::MAX] {
            let room = Room { reserve, ..ROOM };
            let error =
                Scratch::create_with(UNKNOWN, place, room, &mut || panic!("asked")).expect_err("no room");
            assert_eq!(
                error.to_string(),
                format!(
                    "not enough room in directory \"{}\" for a scratch file of 3153920 bytes",
                    directory.path().display()
                )
            );
            match error {
                Error::NoRoom { free, wanted, reserve: stays, .. } => {
                    assert!(free > 0);
                    assert_eq!((wanted, stays), (ROOM.size, reserve));
                }
                other => panic!("{other:?}"),
            }
            assert!(is_empty(directory.path()));
        }
    }

    #[test]
    fn room_is_counted_to_the_byte() {
        let room = Room { size: 10, reserve: 5 };
        assert!(room.fits(15));
        assert!(!room.fits(14));
        assert!(!Room { size: 1, reserve: u64::MAX }.fits(u64::MAX));
    }

    #[test]
    fn a_file_system_that_gets_full_is_an_error_with_the_directory() {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let directory = Path::new("/data/pg_wal");
        match fill(&full, directory, 0..ROOM.size, &mut || None) {
            Err(Error::Io { path, offset, source, .. }) => {
                assert_eq!((path.as_path(), offset), (directory, Some(0)));
                assert_eq!(source.raw_os_error(), Some(libc::ENOSPC));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn another_descriptor_of_the_same_file_has_its_own_flags() {
        #[repr(align(4096))]
        struct Aligned([u8; BLOCK]);
        for nameless in [libc::O_TMPFILE, UNKNOWN] {
            let (scratch, _directory) = scratch(nameless);
            let direct = scratch.open(libc::O_DIRECT | libc::O_DSYNC).expect("opened");
            assert_eq!(flags(&direct) & (libc::O_DIRECT | libc::O_DSYNC), libc::O_DIRECT | libc::O_DSYNC);
            assert_eq!(flags(scratch.file()) & (libc::O_DIRECT | libc::O_DSYNC), 0);
            assert_eq!(flags(&scratch.open(libc::O_SYNC).expect("opened")) & libc::O_SYNC, libc::O_SYNC);

            let block = Aligned([7; BLOCK]);
            assert_eq!(direct.write_at(&block.0, BLOCK as u64).expect("written"), BLOCK);
            let mut found = [0; BLOCK];
            scratch.file().read_exact_at(&mut found, BLOCK as u64).expect("read");
            assert_eq!(found, block.0);
        }
    }
}
