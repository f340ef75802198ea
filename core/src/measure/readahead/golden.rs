//! When windows have their turns, and what is read in them, under each limit.

use std::time::Duration;

use super::{Contender, ReadaheadRun, curve};
use crate::files::relation_files::fixture::{BLOCK, Relation};
use crate::golden::{Disk, Golden, Trace};
use crate::machine::account::Account;
use crate::machine::device::Roots;
use crate::machine::observer::Observer;
use crate::run::budget::{Budget, LatencyBound, Limits};

const MS: u64 = 1_000_000;
const KB: u64 = 1 << 10;
const WINDOWS: [u64; 2] = [16 * KB, 256 * KB];

fn of_ms(ms: u64) -> Limits {
    // Two rounds of turns of all 64 blocks.
    Limits { duration: Duration::from_millis(ms), max_bytes: 256 * BLOCK, ..Limits::none() }
}

type Takes = fn(u64) -> u64;

fn even(_: u64) -> u64 {
    500_000
}

fn slow(_: u64) -> u64 {
    3 * MS
}

#[test]
fn windows_take_turns_as_they_did() {
    let mut golden = Golden::new(
        "readahead",
        "The kernel, its twin, and in some cases windows of 16 and 256 kB, on 64 blocks of 8 kB; places are \
         offsets.
         A block by the kernel takes 40 us, a request past the page cache 500; the latter are served side by \
         side.
         Not covered: a window of none; precision, which depends on CPU times; what eviction takes.",
    );
    let relation = Relation::of_segments(64, 64, 0..64);
    let all = of_ms(1000);
    let half = Limits { max_bytes: 128 * BLOCK, ..all };
    let latency = LatencyBound::within(Duration::from_millis(1));
    let cases: [(&str, Limits, Takes, Option<u64>); 11] = [
        ("no limit but of bytes", all, even, None),
        ("max_iops 5000", Limits { max_iops: Some(5000), ..half }, even, None),
        ("max_mib_s 20", Limits { max_mib_s: Some(20), ..half }, even, None),
        ("max_util 0.2, and the last rest", Limits { max_util: Some(0.2), ..half }, even, None),
        (
            "max_util 0.5 and max_mib_s 20",
            Limits { max_util: Some(0.5), max_mib_s: Some(20), ..half },
            slow,
            None,
        ),
        ("a deadline", of_ms(3), even, None),
        ("a deadline in a pause", Limits { max_mib_s: Some(2), ..of_ms(25) }, even, None),
        ("a deadline of the statement", all, even, None),
        ("a bound of the latency", Limits { latency, ..all }, slow, None),
        ("a caller's stop", all, even, Some(3 * MS)),
        ("a caller's stop in a pause", Limits { max_mib_s: Some(2), ..half }, even, Some(35 * MS)),
    ];
    let roots = Roots::default();
    for (name, limits, takes, stops_at) in cases {
        let statement =
            if name == "a deadline of the statement" { Duration::from_millis(6) } else { Duration::MAX };
        let trace = Trace::default();
        // The kernel and its twin will do where it takes long.
        let windows = if limits.max_bytes == half.max_bytes { &[] } else { &WINDOWS[..] };
        let observer = Observer::new(Account::Own, &[], &roots);
        let run = ReadaheadRun {
            source: &relation.source,
            in_force: 128 * KB,
            windows,
            limits,
            observer: &observer,
        };
        let mut report = |number, _, whose| {
            let whose = match whose {
                Contender::Kernel => "the kernel".to_owned(),
                Contender::Twin => "its twin".to_owned(),
                Contender::Emulated(index) => format!("{} kB", windows[index] / KB),
            };
            trace.says(&format!("turn {number}: {whose}"));
        };
        let mut caller = trace.caller(stops_at);
        let watched = trace.watch(|_, _| 40_000);
        let found = curve(
            &run,
            &mut Disk::new(&trace, takes),
            &mut Budget::of_statement(statement, &trace, &mut || caller.should_stop()),
            &mut report,
        );
        drop(watched);
        let found = found.expect("measured");
        trace.says(&format!("paused: {}", found.paused));
        caller.ends(found.stop);
        golden.add(name, &trace);
    }
    golden.check();
}
