//! What the OS page cache holds of a file.
//!
//! Residency comes from `cachestat(2)` (Linux 6.5), on older kernels and on overlayfs from `mincore(2)` over
//! a mapping, which does not tell dirty pages. Both look without touching: nothing is read in. ZFS keeps what
//! it has read in a cache of its own, of which neither tells: there nothing is known.
//!
//! # Limitations and caveats
//! - Pages count whole, though all together for no more than the range: one that ends within a page may count
//!   for more than it holds.

use std::fs::File;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::LazyLock;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::statfs::{FsType, OVERLAYFS_SUPER_MAGIC, fstatfs};
use nix::unistd::{SysconfVar, sysconf};

use crate::{Error, Result};

/// Bytes of a range in the OS page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Residency {
    /// Bytes cached, clean or dirty.
    pub cached_bytes: u64,
    /// Bytes that differ from the storage, or are just being written; None without cachestat.
    pub dirty_bytes: Option<u64>,
}

/// How residency is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResidencyMethod {
    /// `cachestat(2)`.
    Cachestat,
    /// `mincore(2)`.
    Mincore,
    /// Not at all: the file system keeps a cache of its own.
    Unknown,
}

/// Why nothing is known for [`ResidencyMethod::Unknown`].
pub const OWN_CACHE: &str = "ZFS reads through a cache of its own, and does not tell what comes from there";

static METHOD: LazyLock<ResidencyMethod> = LazyLock::new(|| {
    let probe = CachestatRange { offset: 0, length: 0 };
    // An invalid descriptor: EBADF where the call exists, ENOSYS (or a sandbox's EPERM) where not.
    match cachestat(-1, probe) {
        Err(nix::Error::EBADF) => ResidencyMethod::Cachestat,
        _ => ResidencyMethod::Mincore,
    }
});

/// The magic number of OpenZFS, which is not part of the kernel (`include/sys/fs/zfs.h`).
const ZFS_SUPER_MAGIC: FsType = FsType(0x2fc1_2fc1);

/// How residency is found on this kernel.
pub fn method() -> ResidencyMethod {
    *METHOD
}

impl ResidencyMethod {
    /// How residency is found for this file: cachestat looks at overlayfs's own, empty mapping, mincore at
    /// the file's below. To be asked once a file, since a network file system asks its server.
    pub fn of(file: &File) -> Self {
        #[cfg(test)]
        if let Some(wanted) = decided::count() {
            return wanted;
        }
        fstatfs(file).map_or(method(), |fs| ResidencyMethod::on(fs.filesystem_type(), method()))
    }

    /// How it is found on this type of file system, where the kernel has `method`.
    fn on(file_system: FsType, method: ResidencyMethod) -> Self {
        match file_system {
            OVERLAYFS_SUPER_MAGIC => ResidencyMethod::Mincore,
            ZFS_SUPER_MAGIC => ResidencyMethod::Unknown,
            _ => method,
        }
    }

    /// Does it tell dirty pages?
    pub(crate) fn tells_dirty(self) -> bool {
        self == ResidencyMethod::Cachestat
    }

    /// What the page cache holds of `bytes` of a file. `path` is only for messages.
    pub fn residency(self, file: &File, path: &Path, bytes: Range<u64>) -> Result<Residency> {
        if bytes.is_empty() {
            return Ok(Residency { cached_bytes: 0, dirty_bytes: Some(0) });
        }
        let of_pages = |pages: u64| (pages * page_size()).min(bytes.end - bytes.start);
        match self {
            ResidencyMethod::Cachestat => {
                let counts = cachestat_of(file, path, &bytes)?;
                Ok(Residency {
                    cached_bytes: of_pages(counts.cached),
                    dirty_bytes: Some(of_pages(counts.dirty + counts.writeback)),
                })
            }
            ResidencyMethod::Mincore => {
                let pages = mincore(file, path, &bytes)?;
                Ok(Residency { cached_bytes: of_pages(pages), dirty_bytes: None })
            }
            ResidencyMethod::Unknown => {
                Err(Error::Unsupported { what: "a look at the OS cache", why: OWN_CACHE.to_owned() })
            }
        }
    }

    /// Bytes of a range, which is not empty, that are just being read into the page cache: cachestat counts a
    /// page from when it is asked for, mincore from when it is there. 0 where one of them does not tell.
    pub(crate) fn arriving(self, file: &File, path: &Path, bytes: &Range<u64>) -> Result<u64> {
        match self {
            ResidencyMethod::Cachestat => {
                let asked_for = cachestat_of(file, path, bytes)?.cached;
                Ok(asked_for.saturating_sub(mincore(file, path, bytes)?) * page_size())
            }
            ResidencyMethod::Mincore | ResidencyMethod::Unknown => Ok(0),
        }
    }

    /// Bytes of a range, which is not empty, that are just being written to the storage; None where that is
    /// not told.
    pub(crate) fn under_way(self, file: &File, path: &Path, bytes: &Range<u64>) -> Result<Option<u64>> {
        match self {
            ResidencyMethod::Cachestat => Ok(Some(cachestat_of(file, path, bytes)?.writeback * page_size())),
            ResidencyMethod::Mincore | ResidencyMethod::Unknown => Ok(None),
        }
    }
}

/// Does the file system of this directory keep a cache of its own?
pub fn is_own_at(directory: &Path) -> bool {
    File::open(directory).is_ok_and(|directory| ResidencyMethod::of(&directory) == ResidencyMethod::Unknown)
}

/// The size of a page of the page cache, in bytes.
pub fn page_size() -> u64 {
    static SIZE: LazyLock<u64> = LazyLock::new(|| {
        sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|n| u64::try_from(n).ok()).unwrap_or(4096)
    });
    *SIZE
}

/// `struct cachestat_range` of linux/mman.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat` of linux/mman.h, in pages.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

fn cachestat_of(file: &File, path: &Path, bytes: &Range<u64>) -> Result<Cachestat> {
    let range = CachestatRange { offset: bytes.start, length: bytes.end - bytes.start };
    cachestat(file.as_raw_fd(), range)
        .map_err(|e| Error::io_at("query the page cache for file", path, bytes.start, e))
}

fn cachestat(fd: i32, range: CachestatRange) -> nix::Result<Cachestat> {
    // The number is the same on every architecture: it is newer than their unification.
    const SYS_CACHESTAT: libc::c_long = 451;
    let mut counts = Cachestat::default();
    // SAFETY: both structures have the kernel's layout and outlive the call.
    let result = unsafe { libc::syscall(SYS_CACHESTAT, fd, &raw const range, &raw mut counts, 0u32) };
    nix::Error::result(result).map(|_| counts)
}

/// Pages of a range, which is not empty, that are cached.
fn mincore(file: &File, path: &Path, bytes: &Range<u64>) -> Result<u64> {
    let page = page_size();
    let start = bytes.start / page * page;
    let failed = |e: nix::Error| Error::io_at("map file", path, start, e);
    let length = NonZeroUsize::new((bytes.end - start) as usize).ok_or_else(|| failed(nix::Error::EINVAL))?;
    // SAFETY: a new mapping at an address of the kernel's choice; nothing else refers to it.
    let mapped =
        unsafe { mmap(None, length, ProtFlags::PROT_NONE, MapFlags::MAP_SHARED, file, start as libc::off_t) }
            .map_err(failed)?;
    let mut pages = vec![0u8; length.get().div_ceil(page as usize)];
    // SAFETY: the range is the mapping just made, and the vector has a byte for each of its pages.
    let result = unsafe { libc::mincore(mapped.as_ptr(), length.get(), pages.as_mut_ptr()) };
    let result = nix::Error::result(result);
    // SAFETY: the mapping was made above, no reference into it exists.
    unsafe { munmap(mapped, length.get()) }.map_err(failed)?;
    result.map_err(failed)?;
    Ok(pages.iter().filter(|p| *p & 1 == 1).count() as u64)
}

/// Counts calls of [`ResidencyMethod::of`] and forces their result, for each test in a thread of its own.
#[cfg(test)]
pub(crate) mod decided {
    use std::cell::Cell;

    use super::ResidencyMethod;

    thread_local! {
        static TIMES: Cell<u32> = const { Cell::new(0) };
        static FORCED: Cell<Option<ResidencyMethod>> = const { Cell::new(None) };
    }

    /// Counts a call; returns the method that a test forces, if any.
    pub(super) fn count() -> Option<ResidencyMethod> {
        TIMES.set(TIMES.get() + 1);
        FORCED.get()
    }

    /// How often this thread has asked.
    pub(crate) fn times() -> u32 {
        TIMES.get()
    }

    /// Does `work` while all files of this thread have this method.
    pub(crate) fn forced<T>(method: ResidencyMethod, work: impl FnOnce() -> T) -> T {
        FORCED.set(Some(method));
        let result = work();
        FORCED.set(None);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A file of `size` bytes in the crate's own directory, which is on a disk where /tmp may not be.
    fn file(size: usize) -> (tempfile::NamedTempFile, Range<u64>) {
        let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        file.write_all(&vec![7u8; size]).expect("written");
        (file, 0..size as u64)
    }

    #[test]
    fn where_the_file_system_has_a_cache_of_its_own_nothing_is_known() {
        assert_eq!(
            ResidencyMethod::on(ZFS_SUPER_MAGIC, ResidencyMethod::Cachestat),
            ResidencyMethod::Unknown
        );
        assert_eq!(
            ResidencyMethod::on(OVERLAYFS_SUPER_MAGIC, ResidencyMethod::Cachestat),
            ResidencyMethod::Mincore
        );
        assert_eq!(
            ResidencyMethod::on(FsType(0xef53), ResidencyMethod::Cachestat),
            ResidencyMethod::Cachestat
        );
        let (file, all) = file(1 << 20);
        let found = ResidencyMethod::Unknown.residency(file.as_file(), file.path(), all);
        assert!(matches!(found, Err(Error::Unsupported { .. })));
    }

    #[test]
    fn both_methods_count_the_same_pages() {
        let (file, all) = file(1 << 20);
        let pages = mincore(file.as_file(), file.path(), &all).expect("mincore");
        assert_eq!(pages * page_size(), 1 << 20);
        let (file, path) = (file.as_file(), file.path());
        let cached =
            |bytes| ResidencyMethod::of(file).residency(file, path, bytes).expect("residency").cached_bytes;
        assert_eq!(cached(all), 1 << 20);
        assert_eq!(cached(8192..24576), 16384);
    }

    #[test]
    fn no_more_is_counted_than_was_asked_for() {
        let (file, _) = file(1 << 20);
        for method in [ResidencyMethod::Cachestat, ResidencyMethod::Mincore] {
            if method == ResidencyMethod::Mincore || method == ResidencyMethod::of(file.as_file()) {
                let found = method.residency(file.as_file(), file.path(), 100..300).expect("residency");
                assert_eq!(found.cached_bytes, 200, "{method:?}");
                assert!(found.dirty_bytes.is_none_or(|dirty| dirty <= 200), "{found:?}");
            }
        }
    }
}
