//! What O_DIRECT asks of offsets and lengths, and whether the file system has it at all.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::files::page_cache::{OWN_CACHE, ResidencyMethod};
use crate::{Error, Result};

/// Alignment that satisfies almost every file system, for where the kernel does not tell.
const UNKNOWN_ALIGNMENT: u64 = 4096;

/// Can requests of `block_size` bytes be made on this file, which is open with O_DIRECT, and looked for by
/// `method`?
pub(crate) fn check(file: &File, method: ResidencyMethod, block_size: u32) -> Result<()> {
    if method == ResidencyMethod::Unknown {
        return Err(Error::Unsupported { what: "O_DIRECT", why: OWN_CACHE.to_owned() });
    }
    match alignment(file).unwrap_or(UNKNOWN_ALIGNMENT) {
        // The open succeeds, and reads go through the page cache: ext4 with data=journal does so.
        0 => {
            let why = "the file system does not support it for this file".to_owned();
            Err(Error::Unsupported { what: "O_DIRECT", why })
        }
        align if !u64::from(block_size).is_multiple_of(align) => {
            let why = format!("the file system requires multiples of {align} bytes");
            Err(Error::Unsupported { what: "O_DIRECT of this size", why })
        }
        _ => Ok(()),
    }
}

/// What offsets and lengths of O_DIRECT reads must be multiples of, in bytes, by `statx`
/// (STATX_DIOALIGN, Linux 6.1). 0: it has no O_DIRECT. None where the kernel does not tell.
fn alignment(file: &File) -> Option<u64> {
    let mut found = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is an empty C string, which AT_EMPTY_PATH allows, and `found` has room.
    let result = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            found.as_mut_ptr(),
        )
    };
    // SAFETY: all zeroes is a valid statx, and the kernel only fills in fields.
    let found = unsafe { found.assume_init() };
    let told = result == 0 && found.stx_mask & libc::STATX_DIOALIGN != 0;
    told.then_some(u64::from(found.stx_dio_offset_align))
}

/// What O_DIRECT reads of the first regular file found below `directory`, at most three levels down, must be
/// multiples of, in bytes. 0: it has no O_DIRECT, or what is read so may come from a cache.
pub fn alignment_below(directory: &Path) -> Option<u64> {
    let file = File::open(first_file(directory, 3)?).ok()?;
    if ResidencyMethod::of(&file) == ResidencyMethod::Unknown { Some(0) } else { alignment(&file) }
}

fn first_file(directory: &Path, levels: u32) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?.take(100).flatten();
    let entries: Vec<_> = entries.filter_map(|entry| Some((entry.file_type().ok()?, entry.path()))).collect();
    if let Some((_, file)) = entries.iter().find(|(kind, _)| kind.is_file()) {
        return Some(file.clone());
    }
    let mut directories = entries.iter().filter(|(kind, _)| levels > 0 && kind.is_dir());
    directories.find_map(|(_, path)| first_file(path, levels - 1))
}
