//! The extent map of a file, where its file system has one (`FIEMAP`).

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::{Error, Result};

const BATCH: usize = 64;

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` of linux/fiemap.h with room for a batch of extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; BATCH],
}

impl Fiemap {
    /// The first extents of a range.
    fn of(file: &File, bytes: Range<u64>, flags: u32) -> nix::Result<Self> {
        // _IOWR('f', 11, struct fiemap), whose size counts without the extents.
        const FS_IOC_FIEMAP: libc::Ioctl = nix::request_code_readwrite!(b'f', 11, 32) as libc::Ioctl;
        let mut map = Self {
            start: bytes.start,
            length: bytes.end - bytes.start,
            flags,
            mapped_extents: 0,
            extent_count: BATCH as u32,
            reserved: 0,
            extents: [FiemapExtent::default(); BATCH],
        };
        // SAFETY: the structure has the kernel's layout with room for as many extents as it says.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) };
        nix::Error::result(result).map(|_| map)
    }
}

/// Has all of a file written before its map is looked at, and waits for that, if the file system has a map.
/// It can't be interrupted.
pub(crate) fn sync(file: &File, path: &Path) -> Result<()> {
    const FIEMAP_FLAG_SYNC: u32 = 0x1;
    use nix::errno::Errno::{EDQUOT, EIO, ENOSPC};
    match Fiemap::of(file, 0..1, FIEMAP_FLAG_SYNC) {
        Err(e @ (EIO | ENOSPC | EDQUOT)) => Err(Error::io("write back file", path, e)),
        _ => Ok(()),
    }
}

/// Extents that are reserved and unwritten, by FIEMAP; None where the file system has no such map.
pub(crate) fn unwritten(file: &File, bytes: Range<u64>) -> Option<Vec<Range<u64>>> {
    const FIEMAP_EXTENT_LAST: u32 = 0x1;
    const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;

    let mut found = Vec::new();
    let mut at = bytes.start;
    while at < bytes.end {
        let map = Fiemap::of(file, at..bytes.end, 0).ok()?;
        let extents = map.extents.get(..map.mapped_extents as usize)?;
        for extent in extents.iter().filter(|e| e.flags & FIEMAP_EXTENT_UNWRITTEN != 0) {
            found.push(extent.logical.max(bytes.start)..(extent.logical + extent.length).min(bytes.end));
        }
        match extents.last() {
            // A map that does not advance would never end.
            Some(last) if last.flags & FIEMAP_EXTENT_LAST == 0 && last.logical + last.length > at => {
                at = last.logical + last.length;
            }
            _ => break,
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::files::page_cache::ResidencyMethod;

    #[test]
    fn the_map_can_be_synced() {
        let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        file.write_all(&vec![7u8; 1 << 20]).expect("written");
        let (file, path) = (file.as_file(), file.path());
        sync(file, path).expect("synced");
        let left = ResidencyMethod::of(file).residency(file, path, 0..1 << 20).expect("residency");
        assert!(left.dirty_bytes.is_none_or(|dirty| dirty == 0));
    }
}
