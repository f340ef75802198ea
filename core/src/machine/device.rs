//! Which block device is behind a directory, what its queue is set to, and what its counters say.
//!
//! [`locate`] walks from a directory to its mount (`/proc/self/mountinfo`), from there to the device that
//! the file system sits on, and through `slaves/` down to the leaves: the devices that do the I/O.
//! Device mapper and md count each request again at their own level, so figures are taken from the
//! leaves; what a file system reads ahead is the property of the device on top.
//!
//! # Limitations and caveats
//! - Nothing here is an error. In a container without `/sys`, on tmpfs, overlay or NFS the fields are
//!   `None`, and a note says why.
//! - What is below the kernel (hypervisor, RAID controller, the drive's own cache) is out of sight.
//! - A file system's external journal or realtime device, and what lies under a loop device's file, are not
//!   followed. All members of a btrfs are.
//! - `stat` and `statvfs` wait for a network file system whose server is gone.
//!
//! Sources: `proc_pid_mountinfo(5)`; the kernel's `Documentation/ABI/stable/sysfs-block`,
//! `Documentation/ABI/testing/sysfs-class-bdi` and `Documentation/block/stat.rst`.

mod block;
mod counters;
#[cfg(any(test, fuzzing))]
pub(crate) mod hostile;
mod leaves;
mod mount;
mod queue;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use block::BlockDevice;
pub use counters::{Activity, Counters, Requests, Traffic};
pub use mount::Mount;
pub use queue::Leaf;

/// Where the kernel's trees are mounted. Tests give trees of their own.
#[derive(Clone, Debug)]
pub struct Roots {
    /// procfs, `/proc`.
    pub proc: PathBuf,
    /// sysfs, `/sys`.
    pub sys: PathBuf,
    /// Device nodes and the links to them, `/dev`.
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots { proc: "/proc".into(), sys: "/sys".into(), dev: "/dev".into() }
    }
}

/// A device number, `254:0` as the kernel prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceNumber {
    /// The driver; 0 for a file system that has no device of its own.
    pub major: u32,
    /// The device within the driver.
    pub minor: u32,
}

impl DeviceNumber {
    fn of(st_dev: libc::dev_t) -> Self {
        DeviceNumber { major: libc::major(st_dev), minor: libc::minor(st_dev) }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.split_once(':').unwrap_or((text, ""));
        Ok(DeviceNumber { major: major.parse()?, minor: minor.parse()? })
    }
}

/// What statvfs(3) says of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Allocation unit in bytes (`f_frsize`).
    pub block_size: u64,
    /// Bytes that an unprivileged process may still allocate (`f_bavail`).
    pub free_bytes: u64,
}

/// A directory and what it rests on.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Placement {
    /// The directory, symbolic links resolved.
    pub directory: PathBuf,
    /// The mount that covers the directory.
    pub mount: Option<Mount>,
    /// Block size and free space of the file system.
    pub file_system: Option<FileSystem>,
    /// Kernel name of the device that the file system sits on, such as `dm-0` or `vda1`.
    pub top: Option<String>,
    /// Readahead window in kB (1,024 bytes) that buffered reads through this file system use. A descriptor
    /// keeps the window of the moment when it was opened.
    pub read_ahead_kb: Option<u64>,
    /// The disk whose setting that is; None where it is no disk's.
    pub read_ahead_device: Option<String>,
    /// The devices that do the I/O, each once, partitions replaced by their disk.
    pub leaves: Vec<Leaf>,
    /// What could not be found out and why, one short sentence each.
    pub notes: Vec<String>,
}

/// How far the kernel reads ahead unless it is told otherwise, in kB.
const DEFAULT_READ_AHEAD_KB: u64 = 128;

impl Placement {
    /// How many blocks of this many bytes the kernel reads ahead at most: its default where that is not
    /// known.
    pub fn read_ahead_blocks(&self, block_size: u32) -> f64 {
        let kb = self.read_ahead_kb.unwrap_or(DEFAULT_READ_AHEAD_KB);
        kb as f64 * 1024.0 / f64::from(block_size)
    }

    /// Is its file system in memory, without any device?
    pub fn is_in_memory(&self) -> bool {
        self.mount.as_ref().is_some_and(|mount| matches!(mount.fs_type.as_str(), "tmpfs" | "ramfs"))
    }

    /// The devices of this place and of another one, each once, with all that is above it.
    pub fn leaves_with(&self, other: &Self) -> Vec<Leaf> {
        let mut leaves = self.leaves.clone();
        for leaf in &other.leaves {
            match leaves.iter_mut().find(|own| own.name == leaf.name) {
                Some(own) => own.above.extend(leaf.above.iter().cloned()),
                None => leaves.push(leaf.clone()),
            }
        }
        leaves
    }
}

/// Finds the mount, the device on top and the leaves behind a directory. Never fails: see
/// [`Placement::notes`].
pub fn locate(directory: &Path, roots: &Roots) -> Placement {
    let canonical = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
    let status = fs::metadata(&canonical);
    let number = status.as_ref().ok().map(|status| DeviceNumber::of(status.dev()));
    let mut placement = resolve(canonical, number, roots);
    if let Err(error) = status {
        placement.notes.push(format!("could not stat the directory: {error}"));
    }
    placement.file_system = file_system(&placement.directory);
    placement
}

/// The mounts that this process sees, in the order of mounting; none where the kernel does not tell.
pub(crate) fn mounts(roots: &Roots) -> Vec<Mount> {
    mount::parse(&fs::read(roots.proc.join("self/mountinfo")).unwrap_or_default())
}

/// [`locate`] without the system calls on the directory itself: reads only below `roots`.
fn resolve(directory: PathBuf, number: Option<DeviceNumber>, roots: &Roots) -> Placement {
    let mut placement = Placement { directory, ..Placement::default() };
    placement.mount = mount::covering(mounts(roots), &placement.directory, number);
    if placement.mount.is_none() {
        placement.notes.push("no mount in mountinfo matches the directory".to_owned());
    }
    let Some(number) = number else { return placement };

    let members = members(&mut placement, number, roots);
    let found = leaves::below(members, roots, &mut placement.notes);
    placement.leaves = found.into_iter().map(Leaf::read).collect();
    placement
}

/// The devices that hold the file system, whole or partitions. Sets what follows from the one on top.
fn members(placement: &mut Placement, number: DeviceNumber, roots: &Roots) -> Vec<PathBuf> {
    let top = match leaves::top(number, placement.mount.as_ref(), roots) {
        Ok(top) => top,
        Err(note) => {
            placement.notes.push(note);
            // NFS and FUSE have a readahead window of their own, listed under st_dev.
            let own = roots.sys.join("class/bdi").join(number.to_string());
            placement.read_ahead_kb = attribute(&own, "read_ahead_kb");
            return Vec::new();
        }
    };
    placement.top = leaves::name(&top);
    if placement.mount.as_ref().is_none_or(|mount| mount.fs_type != "btrfs") {
        let disk = leaves::disk(&top);
        placement.read_ahead_kb = attribute(&disk, "queue/read_ahead_kb");
        placement.read_ahead_device = placement.read_ahead_kb.and(leaves::name(&disk));
        return vec![top];
    }
    match leaves::btrfs(&top, roots) {
        Some(btrfs) => {
            // It reads ahead by a setting of its own, from kernel 5.9 on.
            placement.read_ahead_kb = attribute(&btrfs, "bdi/read_ahead_kb");
            leaves::entries(&btrfs.join("devices"))
        }
        None => {
            placement.notes.push("/sys does not show the readahead and all devices of this btrfs".to_owned());
            vec![top]
        }
    }
}

fn file_system(directory: &Path) -> Option<FileSystem> {
    let facts = nix::sys::statvfs::statvfs(directory).ok()?;
    let block_size = facts.fragment_size();
    Some(FileSystem { block_size, free_bytes: facts.blocks_available().saturating_mul(block_size) })
}

/// The text of a small kernel file; `None` when it can't be read or is empty.
pub(crate) fn text(directory: &Path, name: &str) -> Option<String> {
    let bytes = fs::read(directory.join(name)).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// A small kernel file that holds one value.
fn attribute<T: FromStr>(directory: &Path, name: &str) -> Option<T> {
    text(directory, name)?.parse().ok()
}

/// A small kernel file that holds 0 or 1.
fn flag(directory: &Path, name: &str) -> Option<bool> {
    match attribute(directory, name)? {
        0u8 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// The directory of a block device, by its kernel name. The name may come from a user: it must not lead
/// out of `/sys/class/block`.
fn device_directory(name: &str, roots: &Roots) -> Option<PathBuf> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
        return None;
    }
    fs::canonicalize(roots.sys.join("class/block").join(name)).ok()
}
