//! Which directories are those of this process's groups.

use std::fs;
use std::path::{Path, PathBuf};

use crate::machine::device::{Mount, Roots, mounts};

/// The two interfaces of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

/// The place of this process in one hierarchy.
#[derive(Debug, Clone)]
pub(super) struct Hierarchy {
    pub version: Version,
    /// The directory of its group, then those above it, as far as they are visible.
    pub levels: Vec<PathBuf>,
}

/// The place of this process in the hierarchy of each of these controllers, by their names in version 1.
pub(super) fn find<const N: usize>(controllers: [&str; N], roots: &Roots) -> [Option<Hierarchy>; N] {
    let own = fs::read_to_string(roots.proc.join("self/cgroup")).unwrap_or_default();
    let mounts = mounts(roots);
    controllers.map(|controller| {
        let (version, path) = path(&own, controller)?;
        let mut of_hierarchy = mounts.iter().rev().filter(|mount| match version {
            Version::V1 => {
                mount.fs_type == "cgroup" && mount.options.split(',').any(|option| option == controller)
            }
            Version::V2 => mount.fs_type == "cgroup2",
        });
        // A hierarchy may be mounted in several places, of which not each shows all of it.
        of_hierarchy.find_map(|mount| place(version, path, mount, roots))
    })
}

/// The version and the path of a controller's hierarchy in the text of `/proc/self/cgroup`.
pub(super) fn path<'a>(own: &'a str, controller: &str) -> Option<(Version, &'a str)> {
    // Not `lines`, which takes a carriage return for part of the end of a line: a name may end in one.
    let mut lines = own.split('\n').filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let first = lines.find(|(controllers, _)| controllers.split(',').any(|name| name == controller));
    if let Some((_, path)) = first {
        return Some((Version::V1, path));
    }
    Some((Version::V2, own.split('\n').find_map(|line| line.strip_prefix("0::"))?))
}

fn place(version: Version, path: &str, mount: &Mount, roots: &Roots) -> Option<Hierarchy> {
    // A container may see the paths of the host, or mount only a part of the hierarchy.
    let below = Path::new(path).strip_prefix(&mount.root).ok()?;
    // The group of another namespace is shown with `..`.
    if below.components().any(|part| part.as_os_str() == "..") {
        return None;
    }
    let top = match mount.mount_point.strip_prefix("/sys") {
        Ok(rest) => roots.sys.join(rest),
        Err(_) => mount.mount_point.clone(),
    };
    let levels: Vec<PathBuf> = below.ancestors().map(|part| top.join(part)).collect();
    levels.first()?.is_dir().then_some(Hierarchy { version, levels })
}
