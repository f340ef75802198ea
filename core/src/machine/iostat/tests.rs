use std::time::Duration;

use proptest::prelude::*;

use super::series::{due, end, samples_between};
use super::*;
use crate::machine::device::Traffic;
use crate::machine::device::fixture::Fixture;
use crate::run::budget::Stop;

/// What `iostat -x -y -o JSON 2 1` of sysstat 12.6.1 printed when these texts were bound over /proc/stat,
/// /proc/uptime (1.37 s apart) and /sys/block/*/stat, the second ones in the middle of its interval.
const ELAPSED_MS: f64 = 1370.0;
const CPU: [&str; 2] = ["cpu  1000 20 300 50000 400 7 9 30 11 2", "cpu  1080 23 341 50061 468 9 14 44 31 3"];
/// %user and %nice, %system, %iowait, %steal, %idle.
const CPU_SHOWN: [f64; 5] = [29.20 + 1.09, 17.52, 24.82, 5.11, 22.26];

struct Known {
    what: &'static str,
    stat: [&'static str; 2],
    /// r/s, w/s, d/s, f/s.
    per_s: [f64; 4],
    /// rkB/s, wkB/s, dkB/s.
    kb_per_s: [f64; 3],
    /// rrqm/s, wrqm/s, drqm/s.
    merged_per_s: [f64; 3],
    /// r_await, w_await, d_await, f_await; 0 without requests.
    await_ms: [f64; 4],
    /// rareq-sz, wareq-sz, dareq-sz; 0 without requests.
    request_kb: [f64; 3],
    /// aqu-sz, %util.
    queue: [f64; 2],
}

const KNOWN: [Known; 7] = [
    Known {
        what: "17 fields",
        stat: [
            "100 10 8000 50 200 20 16000 400 1 1000 500 3 1 64 6 5 7",
            "3371 215 481234 2950 1250 370 90016 5500 3 2031 9177 25 4 40992 91 19 66",
        ],
        per_s: [2387.59, 766.42, 16.06, 10.22],
        kb_per_s: [172713.14, 27013.14, 14937.23],
        merged_per_s: [149.64, 255.47, 2.19],
        await_ms: [0.89, 4.86, 3.86, 4.21],
        request_kb: [72.34, 35.25, 930.18],
        queue: [6.33, 75.26],
    },
    Known {
        what: "15 fields, without flushes",
        stat: ["11 2 88 30 40 5 640 70 0 80 100 7 1 56 9", "18 3 200 77 49 9 1640 170 1 180 310 10 2 584 21"],
        per_s: [5.11, 6.57, 2.19, 0.0],
        kb_per_s: [40.88, 364.96, 192.70],
        merged_per_s: [0.73, 2.92, 0.73],
        await_ms: [6.71, 11.11, 4.0, 0.0],
        request_kb: [8.0, 55.56, 88.0],
        queue: [0.15, 7.30],
    },
    Known {
        what: "11 fields, without discards",
        stat: ["11 2 88 30 40 5 640 70 0 80 100", "18 3 200 77 49 9 1640 170 1 180 310"],
        per_s: [5.11, 6.57, 0.0, 0.0],
        kb_per_s: [40.88, 364.96, 0.0],
        merged_per_s: [0.73, 2.92, 0.0],
        await_ms: [6.71, 11.11, 0.0, 0.0],
        request_kb: [8.0, 55.56, 0.0],
        queue: [0.15, 7.30],
    },
    Known {
        what: "times that wrap",
        stat: [
            "1000 0 8000 4294967290 10 0 80 4294967000 0 4294967295 4294967000 0 0 0 0 0 0",
            "1003 1 8104 14 13 0 104 32 0 499 900 0 0 0 0 0 0",
        ],
        per_s: [2.19, 2.19, 0.0, 0.0],
        kb_per_s: [37.96, 8.76, 0.0],
        merged_per_s: [0.73, 0.0, 0.0],
        await_ms: [6.67, 109.33, 0.0, 0.0],
        request_kb: [17.33, 4.0, 0.0],
        queue: [0.87, 36.50],
    },
    Known {
        what: "a little over 100 % busy",
        stat: [
            "1000 0 8000 700 0 0 0 0 0 5000 700 0 0 0 0 0 0",
            "2000 0 16000 1400 0 0 0 0 0 6384 1400 0 0 0 0 0 0",
        ],
        per_s: [729.93, 0.0, 0.0, 0.0],
        kb_per_s: [2919.71, 0.0, 0.0],
        merged_per_s: [0.0; 3],
        await_ms: [0.70, 0.0, 0.0, 0.0],
        request_kb: [4.0, 0.0, 0.0],
        queue: [0.51, 101.02],
    },
    Known {
        what: "far over 100 % busy",
        stat: [
            "1000 0 8000 700 0 0 0 0 0 5000 700 0 0 0 0 0 0",
            "2000 0 16000 1400 0 0 0 0 0 7200 1400 0 0 0 0 0 0",
        ],
        per_s: [729.93, 0.0, 0.0, 0.0],
        kb_per_s: [2919.71, 0.0, 0.0],
        merged_per_s: [0.0; 3],
        await_ms: [0.70, 0.0, 0.0, 0.0],
        request_kb: [4.0, 0.0, 0.0],
        queue: [0.51, 160.58],
    },
    Known {
        what: "nothing",
        stat: ["5 0 40 3 1 0 8 1 0 4 4 0 0 0 0 0 0"; 2],
        per_s: [0.0; 4],
        kb_per_s: [0.0; 3],
        merged_per_s: [0.0; 3],
        await_ms: [0.0; 4],
        request_kb: [0.0; 3],
        queue: [0.0; 2],
    },
];

/// As iostat prints it.
fn two_decimals(value: f64) -> String {
    format!("{value:.2}")
}

#[track_caller]
fn same(ours: &[f64], shown: &[f64], what: &str) {
    let [ours, shown] =
        [ours, shown].map(|values| values.iter().copied().map(two_decimals).collect::<Vec<_>>());
    assert_eq!(ours, shown, "{what}");
}

fn snapshot(at_ms: f64, cpu: &str, stat: &[&str]) -> CounterSnapshot {
    CounterSnapshot {
        at: (at_ms * 1e6) as u64,
        moment_us: (at_ms * 1e3) as i64,
        cpu: CpuTimes::parse(cpu),
        pressure: None,
        devices: stat.iter().map(|stat| Counters::parse(stat)).collect(),
    }
}

#[test]
fn figures_are_those_of_iostat() {
    let stat = |index: usize| KNOWN.iter().map(|known| known.stat[index]).collect::<Vec<_>>();
    let earlier = snapshot(5000.0, CPU[0], &stat(0));
    let sample = snapshot(5000.0 + ELAPSED_MS, CPU[1], &stat(1)).since(&earlier, &[true; KNOWN.len()]);
    let cpu = sample.cpu.expect("shares");
    same(&[cpu.user_pct, cpu.system_pct, cpu.iowait_pct, cpu.steal_pct, cpu.idle_pct], &CPU_SHOWN, "cpu");
    for (known, device) in KNOWN.iter().zip(&sample.devices) {
        let IntervalCounts::Activity(a) = *device else { panic!("{}: {device:?}", known.what) };
        let none = Traffic { ticks_ms: Some(0), ..Traffic::default() };
        let kinds = [a.reads, a.writes, a.discards.unwrap_or(none), a.flushes.unwrap_or(none)];
        let rate = |amount| a.per_second(amount).expect("a rate");
        let what = known.what;
        same(&kinds.map(|kind| rate(kind.requests)), &known.per_s, what);
        same(&kinds.map(|kind| kind.await_ms().unwrap_or(0.0)), &known.await_ms, what);
        let [reads, writes, discards, _] = kinds;
        let three = [reads, writes, discards];
        same(&three.map(|kind| rate(kind.bytes) / 1024.0), &known.kb_per_s, what);
        same(&three.map(|kind| rate(kind.merges)), &known.merged_per_s, what);
        same(&three.map(|kind| kind.request_kb().unwrap_or(0.0)), &known.request_kb, what);
        same(&[a.aqu_sz.expect("a queue"), a.util_pct.expect("a share")], &known.queue, what);
    }
}

/// Looks at one device that has read `reads` times.
fn look(at_ms: u64, reads: Option<u64>) -> CounterSnapshot {
    let stat = reads.map(|reads| format!("{reads} 0 {} 0 0 0 0 0 0 0 0", 8 * reads));
    let stat = stat.unwrap_or_default();
    snapshot(at_ms as f64, "", &[stat.as_str()])
}

const EVERY_NS: u64 = 100_000_000;

fn first() -> Vec<CounterSnapshot> {
    vec![look(1000, Some(0))]
}

fn lengths_ms(looks: &[CounterSnapshot]) -> Vec<u64> {
    samples_between(looks).expect("memory").iter().map(|sample| sample.length_ns / 1_000_000).collect()
}

fn reads(looks: &[CounterSnapshot]) -> u64 {
    let reads = |sample: &Sample| match sample.devices[0] {
        IntervalCounts::Activity(activity) => activity.reads.requests,
        other => panic!("{other:?}"),
    };
    samples_between(looks).expect("memory").iter().map(reads).sum()
}

#[test]
fn looks_are_due_on_the_schedule_and_late_ones_left_out() {
    let start = 1000 * 1_000_000;
    let due_ms = |now_ms: u64| due(start, EVERY_NS, now_ms * 1_000_000) / 1_000_000;
    assert_eq!([1000, 1001, 1099, 1100, 1101, 1990].map(due_ms), [1100, 1100, 1100, 1200, 1200, 2000]);
    // Before the first, which can't be, and beyond all time.
    assert_eq!(due_ms(10), 1100);
    assert_eq!(due(start, EVERY_NS, u64::MAX), u64::MAX);
}

#[test]
fn samples_span_the_time_from_first_to_last() {
    let mut looks = first();
    for (at_ms, reads) in [(1100, 5), (1203, 5), (1310, 12)] {
        looks.push(look(at_ms, Some(reads)));
    }
    end(&mut looks, look(1345, Some(20)), EVERY_NS);
    assert_eq!(lengths_ms(&looks), [100, 103, 107, 35]);
    assert_eq!(reads(&looks), 20);
    let ends: Vec<i64> =
        samples_between(&looks).expect("memory").iter().map(|sample| sample.ended_us).collect();
    assert_eq!(ends, [1_100_000, 1_203_000, 1_310_000, 1_345_000]);
}

#[test]
fn a_run_shorter_than_an_interval_is_one_sample() {
    let mut looks = first();
    end(&mut looks, look(1003, Some(4)), EVERY_NS);
    assert_eq!((lengths_ms(&looks), reads(&looks)), (vec![3], 4));
}

#[test]
fn an_end_right_after_a_look_makes_no_sample_of_its_own() {
    let mut looks = first();
    looks.push(look(1100, Some(5)));
    looks.push(look(1200, Some(6)));
    end(&mut looks, look(1209, Some(8)), EVERY_NS);
    assert_eq!((lengths_ms(&looks), reads(&looks)), (vec![100, 109], 8));
}

#[test]
fn what_is_not_counted_is_told_apart() {
    let requests = |looks: &[Option<u64>]| {
        let looks: Vec<_> = (0..).zip(looks).map(|(turn, reads)| look(100 * turn, *reads)).collect();
        let kind = |sample: Sample| match sample.devices[0] {
            IntervalCounts::Activity(_) => "activity",
            IntervalCounts::Backwards => "backwards",
            IntervalCounts::Gone => "gone",
            IntervalCounts::Nothing => "nothing",
        };
        samples_between(&looks).expect("memory").into_iter().map(kind).collect::<Vec<_>>()
    };
    assert_eq!(requests(&[None, None, None]), ["nothing", "nothing"]);
    assert_eq!(requests(&[Some(1), Some(2), None, None]), ["activity", "gone", "gone"]);
    assert_eq!(requests(&[Some(5), Some(2), Some(2)]), ["backwards", "activity"]);
    assert_eq!(requests(&[None, Some(2), Some(3), None]), ["gone", "activity", "gone"]);
}

#[test]
fn a_watch_reads_what_there_is() {
    let fixture = Fixture::new();
    let nothing = Watch::new(Vec::new(), fixture.roots()).look();
    assert_eq!((nothing.cpu, nothing.pressure, nothing.devices.len()), (None, None, 0));

    fixture.disk("sda", "8:0").attribute("sda", "stat", KNOWN[0].stat[0]);
    fixture.file("proc/stat", CPU[0]).file("proc/pressure/io", "some total=1\nfull total=1");
    fixture.mounts(&["30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"]);
    fixture.file("proc/self/cgroup", "0::/pg").file("sys/fs/cgroup/pg/cgroup.events", "");
    fixture.file("sys/fs/cgroup/pg/io.max", "8:0 rbps=1048576 wbps=max");
    let device = BlockDevice::find("sda", &fixture.roots()).expect("the disk");
    let watch = Watch::new(vec![device.clone()], fixture.roots());
    let earlier = watch.look();
    fixture.attribute("sda", "stat", KNOWN[0].stat[1]);
    fixture.file("proc/stat", CPU[1]).file("proc/pressure/io", "some total=2\nfull total=1");
    let sample = watch.look().since(&earlier, &[true]);
    let IntervalCounts::Activity(activity) = sample.devices[0] else { panic!("{sample:?}") };
    assert_eq!((activity.reads.requests, activity.elapsed_ms), (3271, sample.length_ns as f64 / 1e6));
    assert!(
        sample.cpu.is_some() && sample.pressure.is_some_and(|p| p.some_pct > 0.0 && p.full_pct == Some(0.0))
    );
    assert_eq!(
        watch.limits_of(&device),
        ["the cgroup of the server limits reads of sda to 1 MiB/s (io.max)"]
    );
}

/// A fixture with one disk.
fn watch(fixture: &Fixture) -> Watch {
    fixture.disk("sda", "8:0").attribute("sda", "stat", "1 0 8 0 0 0 0 0 0 0 0");
    let device = BlockDevice::find("sda", &fixture.roots()).expect("the disk");
    Watch::new(vec![device], fixture.roots())
}

#[test]
fn whoever_waits_gets_as_many_as_asked_for() {
    let fixture = Fixture::new();
    let (mut moments, mut told) = (Vec::new(), Vec::new());
    let mut wait = |when: u64| {
        moments.push(when);
        while Monotonic.now() < when {}
        None
    };
    let every = Duration::from_millis(2);
    let (samples, stop) =
        sample(&watch(&fixture), every, 3, &mut wait, &mut |done| told.push(done)).expect("samples");
    assert_eq!((samples.len(), stop, told), (3, None, vec![1, 2, 3]));
    // On a schedule, and never twice for the same.
    assert!(
        moments.windows(2).all(|m| m[1] > m[0] && (m[1] - m[0]).is_multiple_of(2_000_000)),
        "{moments:?}"
    );
}

#[test]
fn a_reason_to_stop_ends_the_last_sample() {
    let fixture = Fixture::new();
    let mut waits = 0;
    let mut wait = |_| {
        waits += 1;
        std::thread::sleep(Duration::from_millis(1));
        (waits == 3).then_some(Stop::Statement)
    };
    let every = Duration::from_millis(1);
    let (samples, stop) = sample(&watch(&fixture), every, 5, &mut wait, &mut |_| ()).expect("samples");
    assert_eq!((samples.len(), stop), (3, Some(Stop::Statement)));
}

proptest! {
    #[test]
    fn whatever_the_looks_the_samples_add_up(
        steps in proptest::collection::vec((0u64..500, 0u64..1000), 0..60),
    ) {
        let mut looks = first();
        let (mut at, mut count) = (1000, 0);
        for (passed, more) in steps {
            at += passed;
            count += more;
            looks.push(look(at, Some(count)));
        }
        end(&mut looks, look(at + 7, Some(count + 1)), EVERY_NS);
        prop_assert_eq!(reads(&looks), count + 1);
        prop_assert_eq!(lengths_ms(&looks).iter().sum::<u64>(), at + 7 - 1000);
    }
}
