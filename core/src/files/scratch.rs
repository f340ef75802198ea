//! A file for write tests, which leaves nothing behind, or no more than the server sweeps.
//!
//! It has no name: `O_TMPFILE`, or where that is missing a name that is unlinked before anything is written.
//! So the kernel frees its space when the last descriptor is closed, be it by `kill -9`, and nothing has to
//! be cleaned up. Only a kill between the two calls of the second way leaves a name, of an empty file: the
//! caller chooses one that is its own, and that the server sweeps after a crash.
//!
//! Where a sync of a file without a name is no sync like others, the file keeps such a name for as long as
//! the caller holds its [`ScratchName`]. It goes when that is dropped, also by unwinding, or when the process
//! exits; a `kill -9` leaves it to the server.
//!
//! It is filled and synced before the caller gets it. As in a WAL segment, writing it again then allocates
//! nothing and changes no metadata but times. Holes and reserved blocks would make each sync pay for a
//! journal commit too. What it is filled with does not compress, unless the caller wants zeros, as the server
//! wants them in a new segment.
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
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::sys::statvfs::statvfs;
use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::files::writeback;
use crate::run::budget::{Budget, Limits, Outcome, StopCheck, stop_if};
use crate::run::clock::Monotonic;
use crate::run::shutdown::{self, ShutDown};
use crate::{Error, Result};

/// How much is written between two questions to the caller.
const FILL_STEP: u64 = 1 << 20;

/// Where a scratch file goes.
#[derive(Debug, Clone, Copy)]
pub struct ScratchLocation<'a> {
    /// A directory of the file system that is meant.
    pub directory: &'a Path,
    /// The file to create, and unlink at once, where the file system has no `O_TMPFILE`. Nothing else may use
    /// that name, nor one that begins with it.
    pub fallback: &'a Path,
}

/// A name that a scratch file keeps: a fallback, and a number. Dropping it removes the file.
#[derive(Debug)]
pub struct ScratchName(Rc<HeldName>);

#[derive(Debug)]
struct HeldName(PathBuf);

impl ScratchName {
    /// The name of this number beside the fallback. Nothing is made yet.
    fn new(fallback: &Path, number: usize) -> Self {
        let mut path = fallback.as_os_str().to_owned();
        path.push(format!(".{number}"));
        let held = Rc::new(HeldName(path.into()));
        let live: Rc<dyn ShutDown> = held.clone();
        shutdown::register(&live);
        Self(held)
    }

    fn path(&self) -> &Path {
        &self.0.0
    }
}

impl ShutDown for HeldName {
    fn shut_down(&self) {
        // If it can't be removed, the server removes it when it starts. Nobody is left to hear of it.
        let _ = fs::remove_file(&self.0);
    }
}

impl Drop for HeldName {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// The space that a scratch file takes and leaves, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// The size of the file.
    pub size: u64,
    /// What must stay free afterwards.
    pub reserve: u64,
    /// What makes it wait while it is filled: the limits of its rate and its time, and no others.
    pub limits: Limits,
}

/// What a scratch file holds at first, and how long the writes are that fill it: a long write makes large
/// folios, into which some kernels take longer to write one block.
#[derive(Debug, Clone, Copy)]
pub enum Fill {
    /// Data that does not compress, in writes of 8 kB, as the server extends its relations.
    Incompressible,
    /// Zeros.
    Zeros {
        /// Bytes of a write, a divisor of 1 MiB.
        write_bytes: usize,
    },
}

/// A nameless file, filled and synced.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    /// For messages: the file itself has no name.
    directory: PathBuf,
    size: u64,
    /// The directory with a link to each descriptor, through which the file is opened again; None without
    /// `/proc`.
    links: Option<OwnedFd>,
}

impl Room {
    /// Is there room for file and reserve on the file system of `directory`?
    ///
    /// # Errors
    /// [`Error::NoRoom`] if not.
    pub(crate) fn check(&self, directory: &Path) -> Result<()> {
        let free = free_bytes(directory)?;
        if self.fits(free) {
            return Ok(());
        }
        let Room { size: wanted, reserve, .. } = *self;
        Err(Error::NoRoom { directory: directory.to_owned(), free, wanted, reserve })
    }

    /// Are `free` bytes enough for file and reserve?
    fn fits(&self, free: u64) -> bool {
        self.size.checked_add(self.reserve).is_some_and(|needed| needed <= free)
    }
}

impl Scratch {
    /// Creates, fills and syncs a file. Asks before every MiB written, and before every 8 MiB (under a limit
    /// every MiB) on the way to the storage; the fsync has only metadata left. With a number, the file keeps
    /// the name of that number for as long as the caller keeps it.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if the file system is too full, before anything is created; [`Error::Io`] if it gets
    /// full meanwhile or the storage fails.
    pub fn create(
        place: ScratchLocation<'_>,
        number: Option<usize>,
        room: Room,
        fill: Fill,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<(Self, Option<ScratchName>)> {
        room.check(place.directory)?;
        let name = number.map(|number| ScratchName::new(place.fallback, number));
        let file = match &name {
            Some(name) => create_new(name.path())?,
            None => create_nameless(libc::O_TMPFILE, place)?,
        };
        let links = match nix::fcntl::open("/proc/self/fd", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()) {
            Ok(links) => Some(links),
            // There is a `/proc`, but no descriptor or memory to open it.
            Err(e @ (nix::Error::EMFILE | nix::Error::ENFILE | nix::Error::ENOMEM)) => {
                return Err(Error::io("open scratch file in directory", place.directory, e).into());
            }
            Err(_) => None,
        };
        let scratch = Self { file, directory: place.directory.to_owned(), size: room.size, links };
        scratch.fill(fill, &room.limits, &mut Budget::unlimited(&Monotonic, should_stop))?;
        Ok((scratch, name))
    }

    /// Fills and syncs the file, and has the kernel write it back as it goes: others that sync wait for what
    /// is dirty. Storage may keep equal blocks once, so the data is that of no other scratch file.
    fn fill(&self, fill: Fill, limits: &Limits, budget: &mut Budget<'_>) -> Outcome<()> {
        // It reaches the device in long requests, whatever the length of the writes.
        budget.pace(limits, FILL_STEP);
        let clock = budget.clock();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(
            budget.started() ^ u64::from(std::process::id()).rotate_left(32),
        );
        let mut step = vec![0; FILL_STEP.min(self.size) as usize];
        let at_once = if limits.make_pauses() { FILL_STEP } else { writeback::STEP };
        let (mut offset, mut written_back) = (0, 0);
        while offset < self.size {
            stop_if(budget.wait())?;
            let (began, start) = (clock.now(), offset);
            let step = &mut step[..FILL_STEP.min(self.size - offset) as usize];
            let write = match fill {
                Fill::Zeros { write_bytes } => write_bytes,
                Fill::Incompressible => {
                    random.fill_bytes(step);
                    8192
                }
            };
            for write in step.chunks(write) {
                self.write(&self.file, write, offset)?;
                offset += write.len() as u64;
            }
            if offset == self.size || offset - written_back >= at_once {
                let range = written_back..offset;
                writeback::of_scratch(&self.file, &self.directory, range, &mut || budget.caller_stop())?;
                written_back = offset;
            }
            budget.pacer().charge_in_sum(offset - start, clock.now() - began);
        }
        let began = clock.now();
        self.file.sync_all().map_err(|e| self.failed("fsync scratch file in directory", None, e))?;
        budget.pacer().charge_in_sum(0, clock.now() - began);
        if limits.make_pauses() {
            stop_if(budget.wait())?;
        }
        Ok(())
    }

    /// Writes all of `data` at an offset, through any descriptor of the file.
    #[inline]
    pub fn write(&self, file: &File, data: &[u8], offset: u64) -> Result<()> {
        self.write_by(data.len(), offset, || file.write_at(data, offset))
    }

    /// Makes a call that writes `wanted` bytes, and judges what it returned. One that a signal interrupts
    /// before its first byte is made again, as the server does it.
    #[inline]
    pub(crate) fn write_by(
        &self,
        wanted: usize,
        offset: u64,
        call: impl Fn() -> io::Result<usize>,
    ) -> Result<()> {
        loop {
            match call() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                result => return self.judge_write(wanted, offset, result),
            }
        }
    }

    /// Judges what a write of `wanted` bytes returned.
    #[inline]
    pub(crate) fn judge_write(&self, wanted: usize, offset: u64, result: io::Result<usize>) -> Result<()> {
        let error = match result {
            Ok(got) if got == wanted => return Ok(()),
            // The server says the same of a write that was cut short without a reason.
            Ok(_) => io::Error::from_raw_os_error(libc::ENOSPC),
            Err(e) => e,
        };
        Err(self.failed("write scratch file in directory", Some(offset), error))
    }

    /// The error of a system call on this file.
    pub(crate) fn failed(
        &self,
        action: &'static str,
        offset: Option<u64>,
        source: impl Into<io::Error>,
    ) -> Error {
        Error::Io { action, path: self.directory.clone(), offset, source: source.into() }
    }

    /// Opens the file once more, for reading and writing and with `flags`, such as `O_DIRECT` or `O_DSYNC`.
    /// These belong to a descriptor from its birth: `fcntl(2)` can't set the synchronous ones later.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the file system refuses `O_DIRECT`, or without `/proc`.
    pub fn open(&self, flags: i32) -> Result<File> {
        let Some(links) = &self.links else {
            let what = "a second descriptor of a scratch file";
            return Err(Error::Unsupported { what, why: "/proc/self/fd can't be opened".to_owned() });
        };
        let mut link = [0; 12];
        let name = decimal(&mut link, self.file.as_raw_fd());
        let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC | OFlag::from_bits_retain(flags);
        match openat(links, name, flags, Mode::empty()) {
            Ok(file) => Ok(file.into()),
            Err(nix::Error::EINVAL | nix::Error::EOPNOTSUPP) if flags.contains(OFlag::O_DIRECT) => {
                Err(Error::Unsupported { what: "O_DIRECT", why: "the file system refuses it".to_owned() })
            }
            Err(e) => Err(self.failed("open scratch file in directory", None, e)),
        }
    }

    /// The descriptor that filled the file: buffered, for reading and writing.
    #[cfg(test)]
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Where it is.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }
}

/// Bytes that an unprivileged process may still allocate on the file system of a directory.
fn free_bytes(directory: &Path) -> Result<u64> {
    let facts =
        statvfs(directory).map_err(|e| Error::io("find room for scratch file in directory", directory, e))?;
    Ok(facts.blocks_available().saturating_mul(facts.fragment_size()))
}

fn create_nameless(nameless: i32, place: ScratchLocation<'_>) -> Result<File> {
    match options().custom_flags(nameless).open(place.directory) {
        Ok(file) => return Ok(file),
        Err(e) if has_no_tmpfile(&e) => {}
        Err(e) => return Err(Error::io("create scratch file in directory", place.directory, e)),
    }
    let file = create_new(place.fallback)?;
    fs::remove_file(place.fallback).map_err(|e| Error::io("remove file", place.fallback, e))?;
    Ok(file)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// Creates a file of a name that nothing else uses.
fn create_new(path: &Path) -> Result<File> {
    let mut options = options();
    options.create_new(true);
    let created = options.open(path).or_else(|e| match path.parent() {
        // A process of the same number was killed before it could remove it.
        _ if e.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            options.open(path)
        }
        // The server makes its folder for temporary files when the first is wanted, and so do we.
        Some(parent) if e.kind() == io::ErrorKind::NotFound => {
            match fs::DirBuilder::new().mode(0o700).create(parent) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
                _ => options.open(path),
            }
        }
        _ => Err(e),
    });
    created.map_err(|e| Error::io("create file", path, e))
}

/// A file system that lacks it says `EOPNOTSUPP`, a kernel that does not know the flag opens a directory
/// for writing or looks for a name; `EINVAL` is what layers between the two make of it.
fn has_no_tmpfile(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT | libc::EINVAL))
}

/// A descriptor's number as text, without an allocation: opening may be what is timed.
fn decimal(buffer: &mut [u8; 12], number: RawFd) -> &str {
    let mut rest: &mut [u8] = buffer;
    // No number has more digits than the buffer takes.
    write!(rest, "{number}").unwrap_or_else(|e| unreachable!("{e}"));
    let left = rest.len();
    let digits = &buffer[..buffer.len() - left];
    std::str::from_utf8(digits).unwrap_or_else(|e| unreachable!("{e}"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::os::unix::fs::MetadataExt;

    use nix::fcntl::{FcntlArg, fcntl};

    use super::*;
    use crate::files::holes::Holes;
    use crate::files::open_file::OpenFile;
    use crate::run::budget::{End, Stop};
    use crate::run::clock::{Clock, Manual};

    const BLOCK: usize = 8192;
    /// Not a multiple of the step, so that the last piece is shorter.
    const ROOM: Room = Room { size: (3 << 20) + BLOCK as u64, reserve: 1 << 20, limits: Limits::none() };
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

    /// A scratch file. Its directory was empty whenever it asked.
    fn scratch() -> (Scratch, tempfile::TempDir) {
        let (directory, fallback) = directory();
        let mut asked = 0;
        let mut should_stop = || {
            asked += 1;
            assert!(is_empty(directory.path()), "a name at question {asked}");
            None
        };
        let place = ScratchLocation { directory: directory.path(), fallback: &fallback };
        let created = Scratch::create(place, None, ROOM, Fill::Incompressible, &mut should_stop);
        let (created, _) = created.expect("created");
        // Four pieces written, one piece written back.
        assert_eq!(asked, 5);
        (created, directory)
    }

    fn flags(file: &File) -> i32 {
        fcntl(file, FcntlArg::F_GETFL).expect("flags")
    }

    #[test]
    fn it_never_has_a_name() {
        for nameless in [libc::O_TMPFILE, UNKNOWN] {
            let (directory, fallback) = directory();
            let place = ScratchLocation { directory: directory.path(), fallback: &fallback };
            let file = create_nameless(nameless, place).expect("created");
            let facts = file.metadata().expect("stat");
            assert_eq!((facts.nlink(), facts.mode() & 0o777), (0, 0o600));
            assert_eq!(facts.dev(), fs::metadata(directory.path()).expect("stat").dev());
            assert!(is_empty(directory.path()));
            drop(file);
            assert!(is_empty(directory.path()));
        }
    }

    #[test]
    fn the_fallback_is_used_only_where_it_must_be() {
        for (nameless, is_used) in [(libc::O_TMPFILE, false), (UNKNOWN, true)] {
            let (directory, fallback) = directory();
            fs::write(&fallback, "left by a process of the same number").expect("written");
            let place = ScratchLocation { directory: directory.path(), fallback: &fallback };
            create_nameless(nameless, place).expect("created");
            assert_eq!(fallback.exists(), !is_used);
        }
    }

    #[test]
    fn the_folder_of_the_fallback_is_made_as_the_server_makes_it() {
        let (directory, _) = directory();
        let fallback = directory.path().join("pgsql_tmp").join("pgsql_tmp1.io_probe");
        let place = ScratchLocation { directory: directory.path(), fallback: &fallback };
        create_nameless(UNKNOWN, place).expect("created");
        let folder = fs::metadata(directory.path().join("pgsql_tmp")).expect("a folder");
        assert_eq!(folder.mode() & 0o777, 0o700);
        assert!(is_empty(&directory.path().join("pgsql_tmp")));
    }

    #[test]
    fn a_name_lasts_as_long_as_it_is_held() {
        let (directory, fallback) = directory();
        let left = directory.path().join("xlogtemp.1.2");
        fs::write(&left, "left by a process of the same number").expect("written");
        let place = ScratchLocation { directory: directory.path(), fallback: &fallback };
        let make = |should_stop: &mut StopCheck<'_>| {
            Scratch::create(place, Some(2), ROOM, Fill::Incompressible, should_stop)
        };
        let (scratch, name) = make(&mut || None).expect("created");
        let facts = scratch.file().metadata().expect("stat");
        assert_eq!((facts.nlink(), facts.mode() & 0o777, facts.len()), (1, 0o600, ROOM.size));
        assert_eq!(fs::metadata(&left).expect("stat").ino(), facts.ino());
        drop(name);
        assert!(is_empty(directory.path()));
        // One that is stopped while it is filled leaves none, nor does a process that exits without
        // unwinding.
        let mut had_name = false;
        let stopped = make(&mut || {
            had_name = !is_empty(directory.path());
            Some(Stop::LockWaiter)
        });
        assert!(stopped.is_err() && had_name);
        assert!(is_empty(directory.path()));
        let made = make(&mut || None);
        assert!(made.is_ok() && !is_empty(directory.path()));
        shutdown::all();
        assert!(is_empty(directory.path()));
    }

    #[test]
    fn several_may_make_the_folder_at_once() {
        for _ in 0..200 {
            let (directory, _) = directory();
            let start = std::sync::Barrier::new(4);
            let create = |process: usize| {
                let fallback = directory.path().join("pgsql_tmp").join(process.to_string());
                start.wait();
                let place = ScratchLocation { directory: directory.path(), fallback: &fallback };
                create_nameless(UNKNOWN, place).expect("created");
            };
            std::thread::scope(|threads| {
                (0..4).for_each(|process| drop(threads.spawn(move || create(process))))
            });
        }
    }

    #[test]
    fn other_errors_do_not_lead_to_the_fallback() {
        let (directory, fallback) = directory();
        let no_directory = directory.path().join("file");
        fs::write(&no_directory, "").expect("written");
        let place = ScratchLocation { directory: &no_directory, fallback: &fallback };
        match Scratch::create(place, None, ROOM, Fill::Incompressible, &mut || None) {
            Err(End::Failed(Error::Io { path, source, .. })) => {
                assert_eq!((path, source.raw_os_error()), (no_directory, Some(libc::ENOTDIR)));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_is_allocated_and_clean_so_that_overwriting_allocates_nothing() {
        let (scratch, directory) = scratch();
        let all = 0..ROOM.size;
        assert_eq!(scratch.size(), ROOM.size);
        let before = scratch.file().metadata().expect("stat");
        assert_eq!(before.len(), ROOM.size);
        assert!(before.blocks() * 512 >= ROOM.size, "{} sectors", before.blocks());
        let file = scratch.file().try_clone().expect("a descriptor");
        let open = OpenFile::of(file, directory.path().to_owned());
        let holes = Holes::find(&open, all.clone(), &mut || None).expect("holes");
        assert!(holes.is_empty(), "{holes:?}");
        let residency = open.residency(all).expect("residency");
        assert!(matches!(residency.dirty_bytes, Some(0) | None), "{residency:?}");

        scratch.file().write_all_at(&[1; 4 * BLOCK], 0).expect("written");
        scratch.file().sync_all().expect("synced");
        assert_eq!(scratch.file().metadata().expect("stat").blocks(), before.blocks());
    }

    #[test]
    fn its_content_does_not_compress() {
        let contents = [scratch(), scratch()].map(|(scratch, _directory)| {
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
        // Before anything is written, in the middle, and before the data is written back.
        for when in [1, 3, 5] {
            let (directory, fallback) = directory();
            let mut asked = 0;
            let mut should_stop = || {
                asked += 1;
                (asked == when).then_some(Stop::Statement)
            };
            let place = ScratchLocation { directory: directory.path(), fallback: &fallback };
            let created = Scratch::create(place, None, ROOM, Fill::Incompressible, &mut should_stop);
            assert!(matches!(created, Err(End::Stopped(Stop::Statement))), "{created:?}");
            assert_eq!(asked, when);
            assert!(is_empty(directory.path()));
        }
    }

    #[test]
    fn it_is_filled_no_faster_than_allowed() {
        let (directory, fallback) = directory();
        let place = ScratchLocation { directory: directory.path(), fallback: &fallback };
        let limits = Limits { max_mib_s: Some(30), ..Limits::none() };
        let started = Monotonic.now();
        let room = Room { limits, ..ROOM };
        let created = Scratch::create(place, None, room, Fill::Incompressible, &mut || None);
        assert!(created.is_ok(), "{created:?}");
        // It is ready when a little over three MiB are due.
        assert!(Monotonic.now() - started >= 100_000_000);
    }

    #[test]
    fn each_piece_is_paid_for_and_written_back_under_a_limit() {
        let (scratch, _directory) = scratch();
        let filled = |limits| {
            let (clock, mut asked) = (Manual::default(), 0);
            let mut should_stop = || {
                asked += 1;
                None
            };
            let mut budget = Budget::unlimited(&clock, &mut should_stop);
            let fill = Fill::Zeros { write_bytes: 1 << 20 };
            assert!(scratch.fill(fill, &limits, &mut budget).is_ok());
            drop(budget);
            (clock.now(), asked)
        };
        // On a clock on which writes take no time, the last piece is paid for when it is over.
        let (ns, _) = filled(Limits { max_mib_s: Some(30), ..Limits::none() });
        assert_eq!(ns, ROOM.size * 1_000_000_000 / (30 << 20));
        // Before each of four pieces, and in each of four pauses; and before each piece is written back.
        let (_, asked) = filled(Limits { max_mib_s: Some(1 << 20), ..Limits::none() });
        assert_eq!(asked, 9 + 4);
        assert_eq!(filled(Limits::none()), (0, 4 + 1));
    }

    #[test]
    fn without_room_nothing_is_created() {
        let (directory, fallback) = directory();
        // No file can be created in a file: to try would be another error.
        let no_directory = directory.path().join("file");
        fs::write(&no_directory, "").expect("written");
        let place = ScratchLocation { directory: &no_directory, fallback: &fallback };
        // Only the reserve is missing; only the sum overflows.
        for reserve in [u64::MAX - ROOM.size, u64::MAX] {
            let room = Room { reserve, ..ROOM };
            let error = Scratch::create(place, None, room, Fill::Incompressible, &mut || panic!("asked"))
                .expect_err("no room")
                .stop()
                .expect_err("no room");
            assert_eq!(
                error.to_string(),
                format!(
                    "not enough room in directory \"{}\" for a scratch file of 3153920 bytes",
                    no_directory.display()
                )
            );
            match error {
                Error::NoRoom { free, wanted, reserve: stays, .. } => {
                    assert!(free > 0);
                    assert_eq!((wanted, stays), (ROOM.size, reserve));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn room_is_counted_to_the_byte() {
        let room = Room { size: 10, reserve: 5, limits: Limits::none() };
        assert!(room.fits(15));
        assert!(!room.fits(14));
        assert!(!Room { size: 1, reserve: u64::MAX, limits: Limits::none() }.fits(u64::MAX));
    }

    #[test]
    fn a_file_system_that_gets_full_is_an_error_with_the_directory() {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let directory = Path::new("/data/pg_wal");
        let scratch = Scratch { file: full, directory: directory.to_owned(), size: ROOM.size, links: None };
        match scratch.fill(
            Fill::Zeros { write_bytes: BLOCK },
            &Limits::none(),
            &mut Budget::unlimited(&Monotonic, &mut || None),
        ) {
            Err(End::Failed(Error::Io { path, offset, source, .. })) => {
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
            let (scratch, directory) = scratch();
            let fallback = directory.path().join("xlogtemp.1");
            let place = ScratchLocation { directory: directory.path(), fallback: &fallback };
            let scratch = Scratch { file: create_nameless(nameless, place).expect("created"), ..scratch };
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
