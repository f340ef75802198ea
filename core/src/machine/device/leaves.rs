//! From a device number down to the devices that do the I/O.
//!
//! A device is named here by its canonical directory in sysfs. A partition gives way to its disk, a device
//! with `slaves/` (device mapper, md) to these, and so on down. NVMe multipath heads give way to
//! their paths, because a head counts nothing on many kernels; a path is hidden and has no device number.
//!
//! A file system with an anonymous device number (major 0) names its device, if it has one, as the source
//! of its mount.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{DeviceNumber, Mount, Roots, device_directory, text};

/// A disk at the bottom.
#[derive(Debug, PartialEq)]
pub(super) struct LeafFound {
    /// Its directory.
    pub disk: PathBuf,
    /// The names of the devices above it through which it was reached, such as `dm-0`, each once.
    pub above: Vec<String>,
}

/// The device that a file system sits on, or a note that says why there is none.
pub(super) fn top(number: DeviceNumber, mount: Option<&Mount>, roots: &Roots) -> Result<PathBuf, String> {
    if number.major != 0 {
        let link = roots.sys.join("dev/block").join(number.to_string());
        return fs::canonicalize(link).map_err(|_| format!("/sys does not show block device {number}"));
    }
    let Some(mount) = mount else { return Err("the file system has no block device number".to_owned()) };
    let source = mount.source.as_deref().unwrap_or_default();
    match source.strip_prefix("/dev/") {
        Some(node) => {
            by_node(node, roots).ok_or_else(|| format!("/sys does not show the mounted device {source}"))
        }
        None => Err(format!("{} has no block device", mount.fs_type)),
    }
}

/// A device by the name of its node below `/dev`. Where links such as `mapper/x` can't be followed, the
/// name itself may still be the kernel's, whose `/` sysfs writes as `!`.
fn by_node(node: &str, roots: &Roots) -> Option<PathBuf> {
    let target = fs::canonicalize(&roots.dev)
        .and_then(|dev| Ok((fs::canonicalize(dev.join(node))?, dev)))
        .ok()
        .and_then(|(target, dev)| Some(target.strip_prefix(dev).ok()?.to_str()?.to_owned()));
    device_directory(&target.as_deref().unwrap_or(node).replace('/', "!"), roots)
}

/// The kernel name of a device.
pub(super) fn name(device: &Path) -> Option<String> {
    Some(device.file_name()?.to_string_lossy().into_owned())
}

/// The disk of a partition, or the device itself.
pub(super) fn disk(device: &Path) -> PathBuf {
    match device.parent() {
        Some(parent) if device.join("partition").exists() => parent.to_owned(),
        _ => device.to_owned(),
    }
}

/// The leaves below some devices, in order, each once. Adds notes on what is odd about them.
pub(super) fn below(devices: Vec<PathBuf>, roots: &Roots, notes: &mut Vec<String>) -> Vec<LeafFound> {
    let mut leaves: Vec<LeafFound> = Vec::new();
    // A stack, so the first to visit comes last. A device may be reached twice, and a damaged tree could
    // even lead in a circle.
    let mut pending: Vec<(PathBuf, Vec<String>)> =
        devices.into_iter().rev().map(|device| (device, Vec::new())).collect();
    let mut seen = HashSet::new();
    while let Some((device, mut above)) = pending.pop() {
        if !seen.insert(device.clone()) {
            continue;
        }
        let disk = disk(&device);
        let slaves = entries(&disk.join("slaves"));
        if !slaves.is_empty() {
            above.extend(name(&disk));
            pending.extend(slaves.into_iter().rev().map(|slave| (slave, above.clone())));
            continue;
        }
        match leaves.iter_mut().find(|leaf| leaf.disk == disk) {
            Some(leaf) => {
                leaf.above.extend(above);
                leaf.above.sort_unstable();
                leaf.above.dedup();
            }
            None => leaves.push(LeafFound { disk, above }),
        }
    }
    leaves.into_iter().flat_map(|leaf| describe(leaf, roots, notes)).collect()
}

fn describe(leaf: LeafFound, roots: &Roots, notes: &mut Vec<String>) -> Vec<LeafFound> {
    let name = name(&leaf.disk).unwrap_or_default();
    if let Some(file) = text(&leaf.disk, "loop/backing_file") {
        notes.push(format!("{name} is a loop device on the file {file}"));
    }
    let paths = nvme_paths(&name, roots);
    if paths.is_empty() {
        return vec![leaf];
    }
    notes.push(format!("{name} is an NVMe multipath device: its paths are shown instead"));
    // What limits the head limits its paths together.
    let above: Vec<String> = leaf.above.into_iter().chain([name]).collect();
    paths.into_iter().map(|disk| LeafFound { disk, above: above.clone() }).collect()
}

/// The paths of the NVMe namespace `nvme<subsystem>n<namespace>`: hidden disks named
/// `nvme<subsystem>c<controller>n<namespace>`. Empty unless the driver's multipathing is at work.
fn nvme_paths(head: &str, roots: &Roots) -> Vec<PathBuf> {
    let Some((subsystem, namespace)) = head.strip_prefix("nvme").and_then(|rest| rest.split_once('n')) else {
        return Vec::new();
    };
    let (prefix, suffix) = (format!("nvme{subsystem}c"), format!("n{namespace}"));
    let mut devices = entries(&roots.sys.join("class/block"));
    devices.retain(|device| {
        let name = name(device).unwrap_or_default();
        name.strip_prefix(&*prefix).and_then(|rest| rest.strip_suffix(&*suffix)).is_some_and(digits)
    });
    devices
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Where the links in a directory lead, in the order of their names; empty if there is no such directory.
pub(super) fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut links: Vec<PathBuf> =
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    links.sort_unstable();
    links.iter().filter_map(|link| fs::canonicalize(link).ok()).collect()
}

/// The directory in `/sys/fs/btrfs` of the btrfs that `device` is a member of: mountinfo names one of its
/// devices only.
pub(super) fn btrfs(device: &Path, roots: &Roots) -> Option<PathBuf> {
    let mut all = entries(&roots.sys.join("fs/btrfs")).into_iter();
    all.find(|btrfs| entries(&btrfs.join("devices")).iter().any(|member| member == device))
}
