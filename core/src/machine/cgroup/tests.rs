use super::*;
use crate::machine::device::fixture::Fixture;
use crate::machine::device::{Activity, Traffic};

const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
const OWN_V2: &str = "sys/fs/cgroup/system.slice/postgresql.service";

fn number(text: &str) -> DeviceNumber {
    text.parse().expect("a device number")
}

/// A machine of 4 CPUs and 8 GiB, with one hierarchy, under systemd.
fn second() -> Fixture {
    let fixture = Fixture::new();
    fixture.mounts(&["22 27 0:21 / /proc rw - proc proc rw", V2]);
    fixture.file("proc/self/cgroup", "0::/system.slice/postgresql.service");
    fixture.file("proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4\ncpu1 1 2 3 4\ncpu2 1 2 3 4\ncpu3 1 2 3 4\nintr 1");
    fixture.file("proc/meminfo", "MemTotal:        8388608 kB\nMemFree: 1 kB");
    fixture.file(format!("{OWN_V2}/cgroup.events"), "populated 1\nfrozen 0");
    fixture
}

/// The same machine with a hierarchy for each controller.
fn first(own: &str, root: &str) -> Fixture {
    let fixture = second();
    let mount = |id, name: &str| {
        format!("{id} 31 0:{id} {root} /sys/fs/cgroup/{name} rw,relatime - cgroup cgroup rw,{name}")
    };
    let mounts = [
        mount(33, "cpu,cpuacct"),
        mount(34, "memory"),
        mount(35, "blkio"),
        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw".to_owned(),
    ];
    fixture.mounts(&mounts.iter().map(String::as_str).collect::<Vec<_>>());
    fixture.file(
        "proc/self/cgroup",
        &format!("9:name=systemd:/\n7:blkio:{own}\n4:memory:{own}\n1:cpu,cpuacct:{own}\n0::/"),
    );
    fixture
}

fn has_limits(fixture: &Fixture, device: &str) -> bool {
    !Cgroup::find(&fixture.roots()).io_limits("disk", number(device)).is_empty()
}

#[test]
fn the_tightest_limit_up_the_tree_binds() {
    let fixture = second();
    fixture.file(
        format!("{OWN_V2}/io.max"),
        "8:0 rbps=1 wbps=1 riops=1 wiops=1\n254:0 rbps=104857600 wbps=max riops=500 wiops=max",
    );
    fixture
        .file("sys/fs/cgroup/system.slice/io.max", "254:0 rbps=209715200 wbps=1572864 riops=400 wiops=max");
    let cgroup = Cgroup::find(&fixture.roots());
    assert_eq!(
        cgroup.device_notes("vda", number("254:0")),
        [
            "the cgroup of the server limits reads of vda to 100 MiB/s (io.max)",
            "the cgroup of the server limits reads of vda to 400 requests per second (io.max)",
            "the cgroup of the server limits writes of vda to 1.5 MiB/s (io.max)",
        ]
    );
    assert_eq!(cgroup.device_notes("vdb", number("254:16")), [""; 0]);
    fixture.file(format!("{OWN_V2}/io.max"), "254:16 rbps=4096 wbps=524288 riops=max wiops=max");
    assert_eq!(
        Cgroup::find(&fixture.roots()).device_notes("vdb", number("254:16")),
        [
            "the cgroup of the server limits reads of vdb to 4 kB/s (io.max)",
            "the cgroup of the server limits writes of vdb to 512 kB/s (io.max)",
        ]
    );
    assert_eq!(cgroup.notes(), [""; 0]);
}

#[test]
fn limits_beyond_the_machine_bind_nothing() {
    let fixture = second();
    let notes = |cpu: &str, max: &str, high: &str| {
        fixture.file(format!("{OWN_V2}/cpu.max"), cpu);
        fixture.file(format!("{OWN_V2}/memory.max"), max);
        fixture.file("sys/fs/cgroup/system.slice/memory.high", high);
        Cgroup::find(&fixture.roots()).notes()
    };
    assert_eq!(notes("max 100000", "max", "max"), [""; 0]);
    assert_eq!(notes("400000 100000", "8589934592", "max"), [""; 0]);
    assert_eq!(
        notes("150000 100000", "2147483648", "1073741824"),
        [
            "the cgroup of the server limits its CPU time to 1.5 of 4 CPUs (cpu.max)",
            "the cgroup of the server limits its memory, page cache included, to 1024 MiB (memory.high)",
        ]
    );
}

#[test]
fn version_1_has_files_of_its_own() {
    let fixture = first("/pg", "/");
    let blkio = "sys/fs/cgroup/blkio";
    fixture.file(format!("{blkio}/pg/blkio.throttle.read_bps_device"), "7:0 20971520");
    fixture.file(format!("{blkio}/blkio.throttle.read_bps_device"), "7:0 10485760");
    fixture.file(format!("{blkio}/pg/blkio.throttle.write_iops_device"), "7:0 30\n7:1 20");
    fixture.file("sys/fs/cgroup/memory/pg/memory.limit_in_bytes", "536870912");
    fixture.file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
    fixture.file("sys/fs/cgroup/cpu,cpuacct/pg/cpu.cfs_quota_us", "-1");
    fixture.file("sys/fs/cgroup/cpu,cpuacct/pg/cpu.cfs_period_us", "100000");
    let cgroup = Cgroup::find(&fixture.roots());
    assert_eq!(
        cgroup.device_notes("loop0", number("7:0")),
        [
            // Not to that of the group above: in this version it does not hold here.
            "the cgroup of the server limits reads of loop0 to 20 MiB/s (blkio.throttle.read_bps_device)",
            "the cgroup of the server limits writes of loop0 to 30 requests per second \
             (blkio.throttle.write_iops_device)",
        ]
    );
    assert_eq!(
        cgroup.notes(),
        [concat!(
            "the cgroup of the server limits its memory, page cache included, to 512 MiB ",
            "(memory.limit_in_bytes)"
        )]
    );
    fixture.file("sys/fs/cgroup/cpu,cpuacct/pg/cpu.cfs_quota_us", "50000");
    let notes = Cgroup::find(&fixture.roots()).notes();
    assert_eq!(notes[0], "the cgroup of the server limits its CPU time to 0.5 of 4 CPUs (cpu.cfs_quota_us)");
}

/// A second in which a device did so many reads and writes of these bytes.
fn second_of(reads: (u64, u64), writes: (u64, u64)) -> Activity {
    let traffic = |(requests, bytes)| Traffic { requests, bytes, ..Traffic::default() };
    Activity {
        elapsed_ms: 1000.0,
        reads: traffic(reads),
        writes: traffic(writes),
        discards: None,
        flushes: None,
        aqu_sz: None,
        util_pct: None,
    }
}

#[test]
fn a_limit_holds_back_what_comes_near_it() {
    let fixture = second();
    fixture.file(format!("{OWN_V2}/io.max"), "254:0 rbps=131072000 wbps=max riops=3000 wiops=100");
    let limits = Cgroup::find(&fixture.roots()).io_limits("vda", number("254:0"));
    let held_back_of = |activity: Activity, own: Option<u64>| {
        limits.iter().filter(|limit| limit.held_back(&activity, own)).count()
    };
    let held_back = |activity: Activity| held_back_of(activity, None);
    assert_eq!(limits.len(), 3);
    assert_eq!(limits.iter().filter(|limit| limit.is_of_reads()).count(), 2);
    assert_eq!(held_back(second_of((2990, 2990 * 8192), (0, 0))), 1);
    // A slower device is its own limit.
    assert_eq!(held_back(second_of((1310, 1310 * 8192), (40, 40 << 20))), 0);
    assert_eq!(held_back(second_of((120, 125 << 20), (99, 1 << 20))), 2);
    assert_eq!(held_back(second_of((3000, 125 << 20), (0, 0))), 2);
    // A burst comes at once, whatever the limit.
    let short = |reads| Activity { elapsed_ms: 10.0, ..second_of(reads, (0, 0)) };
    assert_eq!(held_back(short((300, 12 << 20))), 0);
    assert_eq!(held_back(short((301, 13 << 20))), 2);
    // Others' reads are not ours, nor is two thirds of a limit on bytes near it.
    assert_eq!(held_back_of(second_of((2990, 2990 * 8192), (0, 0)), Some(8192)), 0);
    assert_eq!(held_back_of(second_of((2990, 2990 * 8192), (0, 0)), Some(2990 * 8192)), 1);
    assert_eq!(held_back(second_of((99, 80 << 20), (0, 0))), 0);
    assert_eq!(held_back(Activity { elapsed_ms: 0.0, ..second_of((9, 9), (9, 9)) }), 0);
}

#[test]
fn a_quota_counts_its_periods() {
    let used_up = |fixture: &Fixture| {
        Cgroup::find(&fixture.roots()).quota_periods().iter().map(|quota| (quota.all, quota.used_up)).max()
    };
    let stat = "usage_usec 5\nnr_periods 107\nnr_throttled 99\nthrottled_usec 8399517\nnr_bursts 0";
    let fixture = second();
    fixture.file(format!("{OWN_V2}/cpu.stat"), "nr_periods 0\nnr_throttled 0");
    assert_eq!(used_up(&fixture), None, "without a quota nothing is read");
    fixture.file(format!("{OWN_V2}/cpu.max"), "15000 100000").file(format!("{OWN_V2}/cpu.stat"), stat);
    assert_eq!(used_up(&fixture), Some((107, 99)));
    let fixture = first("/pg", "/");
    fixture.file("sys/fs/cgroup/cpu,cpuacct/pg/cpu.cfs_quota_us", "15000");
    fixture.file("sys/fs/cgroup/cpu,cpuacct/pg/cpu.cfs_period_us", "100000");
    fixture.file("sys/fs/cgroup/cpu,cpuacct/pg/cpu.stat", "nr_periods 7\nnr_throttled 1\nthrottled_time 5");
    assert_eq!(used_up(&fixture), Some((7, 1)));
    for (all, used_up, is_short) in [(107, 99, true), (100, 11, true), (100, 10, false), (0, 0, false)] {
        assert_eq!(QuotaPeriods { all, used_up }.is_short(), is_short, "{used_up} of {all}");
    }
    let (one, two) = (QuotaPeriods { all: 4, used_up: 1 }, QuotaPeriods { all: 9, used_up: 3 });
    assert_eq!(
        (two.since(one), one.since(two)),
        (QuotaPeriods { all: 5, used_up: 2 }, QuotaPeriods::default())
    );
    assert_eq!(one.then(two), QuotaPeriods { all: 13, used_up: 4 });
}

#[test]
fn a_container_mounts_its_own_part_of_the_hierarchy() {
    let limit = "sys/fs/cgroup/blkio/blkio.throttle.read_bps_device";
    let fixture = first("/docker/0123", "/docker/0123");
    fixture.file(limit, "7:0 20971520");
    assert!(has_limits(&fixture, "7:0"));
    // What is mounted is not where this process is.
    let fixture = first("/docker/0123", "/docker/4567");
    fixture.file(limit, "7:0 20971520");
    assert!(!has_limits(&fixture, "7:0"));
    let fixture = second();
    fixture.file("proc/self/cgroup", "0::/../../elsewhere");
    fixture.file("sys/fs/elsewhere/io.max", "254:0 rbps=1 wbps=2");
    assert!(!has_limits(&fixture, "254:0"));
}

#[test]
fn a_name_may_end_in_a_carriage_return() {
    let fixture = second();
    fixture.file("proc/self/cgroup", "0::/odd\r");
    fixture.file("sys/fs/cgroup/odd\r/io.max", "254:0 rbps=1 wbps=2");
    assert!(has_limits(&fixture, "254:0"));
}

#[test]
fn nothing_is_an_error() {
    let fixture = Fixture::new();
    for own in ["", "garbage", "1:blkio", "0::", "0::/x", "7:blkio:/x\n0::/"] {
        fixture.file("proc/self/cgroup", own);
        let cgroup = Cgroup::find(&fixture.roots());
        assert_eq!(cgroup.device_notes("loop0", number("7:0")), [""; 0]);
        assert_eq!(cgroup.notes(), [""; 0]);
    }
    // Numbers that are none.
    let fixture = second();
    for (file, text) in [
        ("io.max", "254:0 rbps=-1 wbps riops= wiops=x"),
        ("cpu.max", "x y"),
        ("cpu.max", "1"),
        ("memory.max", "-5"),
    ] {
        fixture.file(format!("{OWN_V2}/{file}"), text);
        let cgroup = Cgroup::find(&fixture.roots());
        let notes = (cgroup.device_notes("vda", number("254:0")), cgroup.notes());
        assert_eq!(notes, (vec![], vec![]), "{text}");
    }
}
