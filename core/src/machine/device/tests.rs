//! Whole trees: from a directory to its leaves.

use std::fs;
use std::path::Path;

use super::fixture::Fixture;
use super::*;

fn leaves(placement: &Placement) -> Vec<&str> {
    placement.leaves.iter().map(|leaf| leaf.name.as_str()).collect()
}

#[test]
fn a_partition_gives_way_to_its_disk() {
    let fixture = Fixture::new();
    fixture.mounts(&["27 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw,discard"]);
    fixture.disk("vda", "254:0").partition("vda", "vda1", "254:1");
    for (name, value) in [
        ("size", "2097152"),
        ("ro", "0"),
        ("device/model", "Virtual disk  "),
        ("queue/scheduler", "none [mq-deadline] kyber"),
        ("queue/read_ahead_kb", "128"),
        ("queue/rotational", "1"),
        ("queue/nr_requests", "256"),
        ("queue/max_sectors_kb", "1280"),
        ("queue/max_hw_sectors_kb", "2147483647"),
        ("queue/logical_block_size", "512"),
        ("queue/physical_block_size", "4096"),
        ("queue/write_cache", "write back"),
        ("queue/fua", "0"),
        ("stat", "1 2 3 4 5 6 7 8 9 10 11"),
    ] {
        fixture.attribute("vda", name, value);
    }

    let placement = fixture.resolve("/srv/data", "254:1");
    assert_eq!(placement.mount.as_ref().unwrap().fs_type, "ext4");
    assert_eq!(placement.top.as_deref(), Some("vda1"));
    assert_eq!(placement.read_ahead_kb, Some(128));
    assert_eq!(placement.notes, [""; 0]);
    let expected = Leaf {
        above: Vec::new(),
        name: "vda".into(),
        model: Some("Virtual disk".into()),
        size_bytes: Some(1 << 30),
        read_only: Some(false),
        rotational: Some(true),
        scheduler: Some("mq-deadline".into()),
        schedulers: Some(vec!["none".into(), "mq-deadline".into(), "kyber".into()]),
        read_ahead_kb: Some(128),
        nr_requests: Some(256),
        max_sectors_kb: Some(1280),
        max_hw_sectors_kb: Some(2_147_483_647),
        logical_block_size: Some(512),
        physical_block_size: Some(4096),
        write_cache: Some("write back".into()),
        fua: Some(false),
    };
    assert_eq!(placement.leaves, [expected]);
    assert_eq!(placement.leaves[0].counters(&fixture.roots()).unwrap().in_flight, 9);
}

#[test]
fn what_a_disk_does_not_tell_is_unknown() {
    let fixture = Fixture::new();
    fixture.mounts(&["27 1 8:0 / / rw - xfs /dev/sda rw"]).disk("sda", "8:0");
    fixture.attribute("sda", "device/model", " ");
    let leaves = fixture.resolve("/", "8:0").leaves;
    assert_eq!(leaves, [Leaf { name: "sda".into(), ..Leaf::default() }]);
}

#[test]
fn device_mapper_on_a_partition() {
    let fixture = Fixture::new();
    fixture.mounts(&["27 1 252:0 / /data rw - ext4 /dev/mapper/vg-data rw"]);
    fixture.disk("sda", "8:0").partition("sda", "sda2", "8:2").disk("dm-0", "252:0").slave("dm-0", "sda2");
    fixture.attribute("dm-0", "queue/read_ahead_kb", "4096").attribute("sda", "queue/read_ahead_kb", "128");
    let placement = fixture.resolve("/data/base", "252:0");
    assert_eq!((placement.top.as_deref(), placement.read_ahead_kb), (Some("dm-0"), Some(4096)));
    assert_eq!(placement.read_ahead_blocks(8192), 512.0);
    // The kernel's default.
    assert_eq!(Placement::default().read_ahead_blocks(8192), 16.0);
    assert_eq!(leaves(&placement), ["sda"]);
    assert_eq!(placement.leaves[0].read_ahead_kb, Some(128));
}

#[test]
fn md_over_two_disks_and_its_partition() {
    let fixture = Fixture::new();
    fixture.mounts(&["27 1 259:3 / /data rw - ext4 /dev/md0p1 rw"]);
    fixture.disk("sdb", "8:16").disk("sda", "8:0").disk("md0", "9:0").slave("md0", "sdb").slave("md0", "sda");
    fixture.partition("md0", "md0p1", "259:3").attribute("md0", "queue/read_ahead_kb", "1024");
    let placement = fixture.resolve("/data", "259:3");
    assert_eq!((placement.top.as_deref(), placement.read_ahead_kb), (Some("md0p1"), Some(1024)));
    assert_eq!(leaves(&placement), ["sda", "sdb"]);
}

#[test]
fn lvm_over_md_lists_each_leaf_once() {
    let fixture = Fixture::new();
    fixture.mounts(&["27 1 252:2 / /data rw - ext4 /dev/mapper/vg-data rw"]);
    fixture.disk("sda", "8:0").partition("sda", "sda1", "8:1");
    fixture.disk("sdb", "8:16").partition("sdb", "sdb1", "8:17");
    fixture.disk("sdc", "8:32").partition("sdc", "sdc1", "8:33");
    fixture.disk("md0", "9:0").slave("md0", "sda1").slave("md0", "sdb1");
    fixture.disk("md1", "9:1").slave("md1", "sdb1").slave("md1", "sdc1");
    fixture.disk("dm-2", "252:2").slave("dm-2", "md0").slave("dm-2", "md1");
    let placement = fixture.resolve("/data", "252:2");
    assert_eq!(leaves(&placement), ["sda", "sdb", "sdc"]);
    assert_eq!(placement.notes, [""; 0]);
}

#[test]
fn several_partitions_of_one_disk() {
    let fixture = Fixture::new();
    fixture.mounts(&["27 1 252:0 / / rw - ext4 /dev/dm-0 rw"]).disk("dm-0", "252:0").disk("sda", "8:0");
    for (name, number) in [("sda1", "8:1"), ("sda2", "8:2"), ("sda3", "8:3")] {
        fixture.partition("sda", name, number).slave("dm-0", name);
    }
    let placement = fixture.resolve("/", "252:0");
    assert_eq!(leaves(&placement), ["sda"]);
    assert_eq!(placement.notes, [""; 0]);
}

#[test]
fn a_circle_of_slaves_ends() {
    let fixture = Fixture::new();
    fixture.mounts(&["27 1 252:0 / / rw - ext4 /dev/dm-0 rw"]).disk("sda", "8:0");
    fixture.disk("dm-0", "252:0").disk("dm-1", "252:1");
    fixture.slave("dm-0", "dm-1").slave("dm-1", "dm-0").slave("dm-1", "sda");
    assert_eq!(leaves(&fixture.resolve("/", "252:0")), ["sda"]);
}

#[test]
fn btrfs_has_all_its_members_and_a_readahead_of_its_own() {
    let fixture = Fixture::new();
    fixture.mounts(&["34 27 0:45 /@data /data rw - btrfs /dev/mapper/pool rw,subvol=/@data"]);
    fixture
        .disk("sda", "8:0")
        .disk("dm-0", "252:0")
        .slave("dm-0", "sda")
        .disk("sdb", "8:16")
        .disk("sdz", "65:0");
    fixture.file("dev/dm-0", "").link("dev/dm-0", "dev/mapper/pool").attribute(
        "dm-0",
        "queue/read_ahead_kb",
        "128",
    );
    fixture.link("sys/devices/sdz", "sys/fs/btrfs/0000-other/devices/sdz");
    fixture.link("sys/devices/dm-0", "sys/fs/btrfs/1111-ours/devices/dm-0");
    fixture.link("sys/devices/sdb", "sys/fs/btrfs/1111-ours/devices/sdb");
    fixture.file("sys/fs/btrfs/1111-ours/bdi/read_ahead_kb", "4096");
    // A subvolume's number is not that of the mount.
    let placement = fixture.resolve("/data/base", "0:46");
    assert_eq!((placement.top.as_deref(), placement.read_ahead_kb), (Some("dm-0"), Some(4096)));
    assert_eq!(leaves(&placement), ["sda", "sdb"]);
    assert_eq!(placement.notes, [""; 0]);
}

#[test]
fn a_btrfs_that_sys_does_not_show_has_an_unknown_readahead() {
    let fixture = Fixture::new();
    fixture.mounts(&["34 27 0:45 / /data rw - btrfs /dev/sda rw"]).disk("sda", "8:0");
    fixture.attribute("sda", "queue/read_ahead_kb", "128");
    let placement = fixture.resolve("/data", "0:45");
    assert_eq!((leaves(&placement), placement.read_ahead_kb), (vec!["sda"], None));
    assert_eq!(placement.notes.len(), 1);
}

#[test]
fn a_source_is_found_by_its_kernel_name_where_dev_is_empty() {
    let fixture = Fixture::new();
    fixture.mounts(&["34 27 0:45 / /data rw - fuse /dev/cciss/c0d0p1 rw"]);
    fixture.disk("cciss!c0d0", "104:0").partition("cciss!c0d0", "cciss!c0d0p1", "104:1");
    let placement = fixture.resolve("/data", "0:45");
    assert_eq!(placement.top.as_deref(), Some("cciss!c0d0p1"));
    assert_eq!(leaves(&placement), ["cciss!c0d0"]);
}

#[test]
fn a_source_that_sys_does_not_know() {
    for source in ["/dev/sdq", "/dev/", "/dev/..", "/dev/../sys"] {
        let fixture = Fixture::new();
        fixture.mounts(&[&format!("34 27 0:45 / /data rw - btrfs {source} rw")]);
        let placement = fixture.resolve("/data", "0:45");
        assert_eq!((placement.top, placement.leaves), (None, vec![]));
        assert_eq!(placement.notes, [format!("/sys does not show the mounted device {source}")]);
    }
}

#[test]
fn file_systems_without_a_block_device() {
    for (fs_type, source) in
        [("overlay", "overlay"), ("tmpfs", "tmpfs"), ("tmpfs", "none"), ("nfs4", "server:/export")]
    {
        let fixture = Fixture::new();
        fixture.mounts(&[&format!("34 27 0:45 / /data rw - {fs_type} {source} rw")]).disk("sda", "8:0");
        let placement = fixture.resolve("/data", "0:45");
        assert_eq!((placement.top, placement.read_ahead_kb, placement.leaves), (None, None, vec![]));
        assert_eq!(placement.notes, [format!("{fs_type} has no block device")]);
    }
}

#[test]
fn nfs_reads_ahead_by_its_own_setting() {
    let fixture = Fixture::new();
    fixture.mounts(&["34 27 0:45 / /data rw - nfs4 server:/export rw"]);
    fixture.file("sys/class/bdi/0:45/read_ahead_kb", "256");
    assert_eq!(fixture.resolve("/data", "0:45").read_ahead_kb, Some(256));
}

#[test]
fn without_sys_and_proc_there_are_notes() {
    let fixture = Fixture::new();
    fs::remove_dir_all(fixture.path("sys")).unwrap();
    let placement = fixture.resolve("/data", "8:1");
    assert_eq!((&placement.mount, &placement.top, placement.read_ahead_kb), (&None, &None, None));
    assert_eq!(
        placement.notes,
        ["no mount in mountinfo matches the directory", "/sys does not show block device 8:1"]
    );
    let placement = fixture.resolve("/data", "0:45");
    assert_eq!(placement.notes.len(), 2);
}

#[test]
fn a_mount_point_with_spaces() {
    let fixture = Fixture::new();
    fixture.mounts(&[
        "27 1 254:0 / / rw - ext4 /dev/vda rw",
        r"28 27 8:0 / /mnt/old\040disk rw - xfs /dev/sda rw",
    ]);
    let placement = fixture.disk("sda", "8:0").resolve("/mnt/old disk/pg", "8:0");
    assert_eq!(placement.mount.unwrap().mount_point, Path::new("/mnt/old disk"));
    assert_eq!(placement.top.as_deref(), Some("sda"));
}

#[test]
fn a_loop_device_names_its_file() {
    let fixture = Fixture::new();
    fixture.mounts(&["27 1 7:0 / / rw - ext4 /dev/loop0 rw"]).disk("loop0", "7:0");
    fixture.attribute("loop0", "loop/backing_file", "/srv/disk image");
    let placement = fixture.resolve("/", "7:0");
    assert_eq!(leaves(&placement), ["loop0"]);
    assert_eq!(placement.notes, ["loop0 is a loop device on the file /srv/disk image"]);
}

#[test]
fn an_nvme_multipath_device_is_shown_by_its_paths() {
    let fixture = Fixture::new();
    fixture.mounts(&["27 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw"]);
    fixture.disk("nvme0n1", "259:0").partition("nvme0n1", "nvme0n1p1", "259:1");
    for other in ["nvme0c0n2", "nvme1c0n1", "nvme0cn1", "nvme0cxn1", "nvme0c0n11"] {
        fixture.disk(other, "");
    }
    fixture.disk("nvme0c1n1", "").disk("nvme0c0n1", "").attribute("nvme0n1", "queue/read_ahead_kb", "128");
    fixture.attribute("nvme0c1n1", "stat", "7 0 0 0 0 0 0 0 0 0 0");
    let placement = fixture.resolve("/", "259:1");
    assert_eq!((placement.top.as_deref(), placement.read_ahead_kb), (Some("nvme0n1p1"), Some(128)));
    assert_eq!(leaves(&placement), ["nvme0c0n1", "nvme0c1n1"]);
    assert_eq!(placement.leaves[1].counters(&fixture.roots()).unwrap().reads.completed, 7);
    assert_eq!(placement.notes, ["nvme0n1 is an NVMe multipath device: its paths are shown instead"]);
}

#[test]
fn an_nvme_disk_without_multipathing_is_itself() {
    let fixture = Fixture::new();
    fixture.mounts(&["27 1 259:0 / / rw - ext4 /dev/nvme1n1 rw"]);
    fixture.disk("nvme1n1", "259:0").disk("nvme0n1", "259:5").disk("nvme10n1", "259:9");
    let placement = fixture.resolve("/", "259:0");
    assert_eq!(leaves(&placement), ["nvme1n1"]);
    assert_eq!(placement.notes, [""; 0]);
}

#[test]
fn the_directory_of_a_placement_is_canonical() {
    let fixture = Fixture::new();
    let real = fs::canonicalize(fixture.path("proc")).unwrap();
    fixture.link("proc", "link");
    let placement = locate(&fixture.path("link"), &fixture.roots());
    assert_eq!(placement.directory, real);
    let file_system = placement.file_system.unwrap();
    assert!(file_system.block_size >= 512);
    assert!(file_system.free_bytes.is_multiple_of(file_system.block_size));
}

#[test]
fn a_missing_directory_is_a_note() {
    let placement = locate(Path::new("/nowhere/at all"), &Roots::default());
    assert_eq!(placement.file_system, None);
    assert!(placement.notes[0].starts_with("could not stat the directory: "), "{:?}", placement.notes);
}

#[test]
fn a_device_number_prints_as_it_parses() {
    let number = DeviceNumber::of(libc::makedev(254, 3));
    assert_eq!(number.to_string(), "254:3");
    assert_eq!("254:3".parse(), Ok(number));
    for text in ["", "254", "254:", ":3", "254:3:4", "a:b", "-1:0"] {
        assert!(text.parse::<DeviceNumber>().is_err(), "{text}");
    }
}
