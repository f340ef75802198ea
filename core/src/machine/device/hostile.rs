//! For `crate::hostile`: what holds for any mountinfo, any list of schedulers and any tree of devices.

use std::collections::HashSet;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::mount::{self, Mount};
use super::{DeviceNumber, Roots, queue, resolve};

/// Reads a mountinfo file. `wanted` is a directory, or a device number and a directory.
pub(crate) fn mounts(mountinfo: &[u8], wanted: &str) {
    let mounts = mount::parse(mountinfo);
    for mount in &mounts {
        let printed = print(mount);
        let again = mount::parse(printed.as_bytes());
        let [again] = again.as_slice() else { panic!("{printed:?} gave {again:?}") };
        let plain = |mount: &Mount| Mount { options: String::new(), ..mount.clone() };
        assert_eq!(plain(again), plain(mount), "{printed:?}");
        // A comma that was escaped is none of a list, and printed it is.
        let order = |mount: &Mount| {
            let mut options: Vec<_> = mount.options.split(',').skip(1).map(str::to_owned).collect();
            options.sort_unstable();
            options.dedup();
            options.retain(|option| !matches!(option.as_str(), "ro" | "rw" | ""));
            options
        };
        let lost: HashSet<_> =
            names(&order(again)).symmetric_difference(&names(&order(mount))).cloned().collect();
        assert!(lost.is_empty(), "{lost:?} of {printed:?}");
        assert!(mount.options.starts_with("ro") || mount.options.starts_with("rw"));
    }

    let (number, path) = wanted.split_once(' ').unwrap_or(("", wanted));
    let (path, number) = (Path::new(path), number.parse::<DeviceNumber>().ok());
    let Some(found) = mount::covering(mounts.clone(), path, number) else { return };
    assert!(path.starts_with(&found.mount_point) && mounts.contains(&found));
    let depth = |mount: &Mount| mount.mount_point.components().count();
    let same =
        |mount: &&Mount| mount.device_number == found.device_number && path.starts_with(&mount.mount_point);
    assert!(
        mounts.iter().filter(same).all(|mount| depth(mount) <= depth(&found)),
        "{found:?} is not the longest"
    );
    if number.is_none() {
        assert!(
            mounts.iter().all(|mount| !path.starts_with(&mount.mount_point) || depth(mount) <= depth(&found))
        );
    }
    if let Some(number) = number {
        let exact =
            mounts.iter().any(|mount| mount.device_number == number && path.starts_with(&mount.mount_point));
        assert!(
            found.device_number == number || !exact && number.major == 0 && found.device_number.major == 0
        );
    }
}

/// The names of options: of a name that came with several values, one value stays.
fn names(options: &[String]) -> HashSet<String> {
    options.iter().map(|option| option.split('=').next().unwrap_or_default().to_owned()).collect()
}

/// The line as the kernel prints it.
fn print(mount: &Mount) -> String {
    let escape = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, &byte| {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b'\\' | 0x80.. => {
                    write!(text, "\\{byte:03o}").expect("a text")
                }
                _ => text.push(byte.into()),
            }
            text
        })
    };
    let Mount { device_number, root, mount_point, fs_type, source, options } = mount;
    let [root, mount_point] = [root, mount_point].map(|path| escape(path.as_os_str().as_bytes()));
    let source = source.as_ref().map_or("none".to_owned(), |source| escape(source.as_bytes()));
    let [fs_type, options] = [fs_type, options].map(|text| escape(text.as_bytes()));
    let access = &options[..2];
    format!("22 27 {device_number} {root} {mount_point} {options} shared:1 - {fs_type} {source} {access}")
}

/// Reads a list of schedulers.
pub(crate) fn schedulers(line: &str) {
    let (current, offered) = queue::parse_schedulers(line);
    let count = line.split_whitespace().count();
    assert_eq!(offered.as_ref().map_or(0, Vec::len), count);
    assert!(current.is_none_or(|current| offered.is_some_and(|offered| offered.contains(&current))));
}

/// Walks from a directory to its devices, twice.
pub(crate) fn walk(directory: &Path, number: Option<DeviceNumber>, roots: &Roots, inside: &Path) {
    let found = resolve(directory.to_owned(), number, roots);
    assert_eq!(found, resolve(directory.to_owned(), number, roots));
    assert!(found.read_ahead_device.is_none() || found.read_ahead_kb.is_some());
    let mut seen = HashSet::new();
    for leaf in &found.leaves {
        assert!(leaf.size_bytes.is_none_or(|bytes| bytes % 512 == 0 || bytes == u64::MAX));
        assert!(leaf.scheduler.is_none() || leaf.schedulers.is_some());
        let _ = leaf.counters(roots);
        seen.insert(&leaf.name);
    }
    assert!(found.leaves.is_empty() || found.top.is_some());
    for name in super::BlockDevice::names(roots) {
        if let Some(directory) = super::device_directory(&name, roots) {
            assert!(directory.starts_with(inside), "{name:?} leads to {}", directory.display());
        }
    }
}
