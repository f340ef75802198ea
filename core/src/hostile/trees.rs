//! A machine's `/proc`, `/sys` and `/dev`, whatever is in them.
//!
//! The bytes are lines. `@proc/self/mountinfo` begins a file of that name, `@sys/dev/block/8:0 ->
//! sys/devices/sda` is a link to another place in the tree, and the lines before the first name are the
//! directory and the device number to look for.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use crate::machine::cgroup::Cgroup;
use crate::machine::cpu::CpuTimes;
use crate::machine::device::{BlockDevice, DeviceNumber, Roots, hostile as device};
use crate::machine::pressure::Pressure;

/// Most entries that are planted: more than the fixtures have.
const MOST_ENTRIES: usize = 60;

/// Plants the tree in a temporary folder and looks for the device.
pub fn trees(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (wanted, entries) = text.split_once('@').unwrap_or((&text, ""));
    let tree = tempfile::tempdir().expect("a folder");
    for entry in entries.split("\n@").take(MOST_ENTRIES) {
        // What can't be planted, such as a file below a file, is left out.
        let _ = plant(tree.path(), entry);
    }
    let root = fs::canonicalize(tree.path()).expect("the folder");
    let roots = Roots { proc: root.join("proc"), sys: root.join("sys"), dev: root.join("dev") };
    let mut wanted = wanted.lines();
    let directory = PathBuf::from(wanted.next().unwrap_or_default());
    let number: Option<DeviceNumber> = wanted.next().and_then(|number| number.parse().ok());

    device::walk(&directory, number, &roots, &root);
    let cgroup = Cgroup::find(&roots);
    for name in BlockDevice::names(&roots) {
        let Some(found) = BlockDevice::find(&name, &roots) else { continue };
        let _ = found.counters();
        let Some(number) = found.number_in_cgroups() else { continue };
        assert!(cgroup.device_notes(&name, number).len() <= 4);
    }
    assert!(cgroup.notes().len() <= 2);
    if let Some(times) = CpuTimes::read(&roots) {
        assert_eq!(times.since(&times), None);
    }
    let _ = Pressure::read(&roots);
}

/// Makes one entry of the tree, which can't lead out of it.
fn plant(root: &Path, entry: &str) -> std::io::Result<()> {
    let (name, text) = entry.split_once('\n').unwrap_or((entry, ""));
    let (name, target) = name.split_once(" -> ").map_or((name, None), |(name, target)| (name, Some(target)));
    let at = root.join(inside(name));
    if at == root {
        return Ok(());
    }
    if let Some(parent) = at.parent() {
        fs::create_dir_all(parent)?;
    }
    match target {
        Some(target) => symlink(root.join(inside(target)), at),
        None => fs::write(at, text),
    }
}

/// The plain names of a path.
fn inside(path: &str) -> PathBuf {
    let plain = |part: &Component| matches!(part, Component::Normal(_));
    Path::new(path).components().filter(plain).take(10).collect()
}
