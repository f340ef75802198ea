//! A block device by its kernel name: a disk, a partition, or a device made of others.

use std::fs;
use std::path::PathBuf;

use super::{Counters, DeviceNumber, Roots, attribute, device_directory, leaves, text};

/// A block device that has a directory in sysfs. It is found once; its counters can then be read often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    name: String,
    number: Option<DeviceNumber>,
    is_partition: bool,
    /// Its own directory, which holds the counters.
    directory: PathBuf,
    /// The queue of the disk, which says whether anything is counted.
    queue: PathBuf,
}

impl BlockDevice {
    /// The device of this kernel name, such as `vda`, `vda1` or `dm-0`; `None` if there is none. The name may
    /// come from a user: nothing outside `/sys/class/block` is looked at.
    pub fn find(name: &str, roots: &Roots) -> Option<Self> {
        let directory = device_directory(name, roots)?;
        let disk = leaves::disk(&directory);
        Some(Self {
            name: leaves::name(&directory)?,
            number: attribute(&directory, "dev"),
            is_partition: disk != directory,
            queue: disk.join("queue"),
            directory,
        })
    }

    /// The kernel names of all devices, in order.
    pub fn names(roots: &Roots) -> Vec<String> {
        let entries = fs::read_dir(roots.sys.join("class/block")).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    /// Its kernel name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number by which cgroups know it: that of a whole device, since of partitions they know nothing.
    pub fn number_in_cgroups(&self) -> Option<DeviceNumber> {
        self.number.filter(|_| !self.is_partition)
    }

    /// Its counters now; `None` when it is gone, or where `queue/iostats` turns the counting off.
    pub fn counters(&self) -> Option<Counters> {
        match text(&self.queue, "iostats").as_deref() {
            Some("0") => None,
            _ => Counters::parse(&text(&self.directory, "stat")?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::device::fixture::Fixture;

    const STAT: &str = "1 0 8 1 0 0 0 0 0 1 1";

    fn fixture() -> Fixture {
        let fixture = Fixture::new();
        fixture.disk("sda", "8:0").partition("sda", "sda1", "8:1");
        fixture.attribute("sda", "stat", STAT).attribute("sda/sda1", "stat", STAT);
        fixture
    }

    #[test]
    fn finds_disks_and_partitions_and_nothing_else() {
        let fixture = fixture();
        let roots = fixture.roots();
        let disk = BlockDevice::find("sda", &roots).expect("the disk");
        assert_eq!((disk.name(), disk.number_in_cgroups()), ("sda", "8:0".parse().ok()));
        let partition = BlockDevice::find("sda1", &roots).expect("the partition");
        assert_eq!((partition.name(), partition.number_in_cgroups()), ("sda1", None));
        fixture.file("sys/class/stat", STAT);
        for name in ["", ".", "..", "sdb", "/dev/sda", "sda/", "sda/sda1", "../block/sda", "sda\0"] {
            assert_eq!(BlockDevice::find(name, &roots), None, "{name:?}");
        }
        assert_eq!(BlockDevice::names(&roots), ["sda", "sda1"]);
    }

    #[test]
    fn counts_unless_the_disk_says_not_to() {
        let fixture = fixture();
        let devices = ["sda", "sda1"].map(|name| BlockDevice::find(name, &fixture.roots()).expect(name));
        assert!(devices.iter().all(|device| device.counters() == Counters::parse(STAT)));
        fixture.attribute("sda", "queue/iostats", "1");
        assert!(devices.iter().all(|device| device.counters().is_some()));
        fixture.attribute("sda", "queue/iostats", "0");
        assert!(devices.iter().all(|device| device.counters().is_none()));
    }

    #[test]
    fn a_device_that_is_gone_counts_nothing() {
        let fixture = fixture();
        let disk = BlockDevice::find("sda", &fixture.roots()).expect("the disk");
        fs::remove_dir_all(fixture.path("sys/devices/sda")).expect("removed");
        assert_eq!(disk.counters(), None);
    }
}
