//! When a ping sends its requests, under each limit.

use std::time::Duration;

use super::{Writer, ping};
use crate::files::relation_files::fixture::{BLOCK, Relation};
use crate::files::scratch::{Created, Fill, Room, Scratch, ScratchLocation};
use crate::golden::{Golden, Trace};
use crate::measure::random::{Look, Plan};
use crate::run::budget::{Budget, LatencyBound, Limits};
use crate::run::order::Permutation;

const MS: u64 = 1_000_000;

fn of_ms(ms: u64) -> Limits {
    Limits { duration: Duration::from_millis(ms), ..Limits::none() }
}

fn scratch(directory: &std::path::Path) -> Scratch {
    let place = ScratchLocation { directory, fallback: &directory.join("fallback") };
    let room = Room { size: 16 * BLOCK, reserve: 0, limits: Limits::none() };
    match Scratch::create(place, room, Fill::Incompressible, &mut || None).expect("created") {
        Created::Ready(scratch) => scratch,
        Created::Stopped(stop) => panic!("{stop}"),
    }
}

/// A write takes less than a read. The fourth request is late, whatever it is.
fn even(what: &str, nth: u64) -> u64 {
    match (what, nth) {
        (_, 3) => 3_100_000,
        ("write", _) => 80_000,
        _ => 120_000,
    }
}

fn slow(_: &str, _: u64) -> u64 {
    900_000
}

#[test]
fn a_ping_keeps_its_limits_as_it_did() {
    let mut golden = Golden::new(
        "ping",
        "Reads of 8 kB from a relation and writes to a scratch file, in turn, 120 and 80 us each; places are \
         offsets.
         Not covered: what the system calls take on real files, and looks into the page cache.",
    );
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    let (relation, scratch) = (Relation::of_segments(4, 4, 0..4), scratch(directory.path()));
    let latency = LatencyBound::within(Duration::from_micros(500));
    let (all, short) = (of_ms(1000), Duration::from_micros(2500));
    let bytes = Limits { max_bytes: 3 * BLOCK + 1, ..all };
    type Takes = fn(&str, u64) -> u64;
    type Ping = (&'static str, u32, u64, Limits, Takes, Option<u64>);
    let cases: [Ping; 14] = [
        ("each ms, one late", 8, 1000, all, even, None),
        ("as fast as it goes, until nothing is left", 20, 0, all, even, None),
        ("max_iops 500", 6, 1000, Limits { max_iops: Some(500), ..all }, even, None),
        ("max_mib_s 4", 6, 0, Limits { max_mib_s: Some(4), ..all }, even, None),
        ("max_util 0.1, and the last rest", 4, 0, Limits { max_util: Some(0.1), ..all }, even, None),
        (
            "max_util 0.1 and max_iops 100",
            3,
            1000,
            Limits { max_util: Some(0.1), max_iops: Some(100), ..all },
            even,
            None,
        ),
        ("each 25 ms", 2, 25_000, all, even, None),
        ("bytes", 8, 1000, bytes, even, None),
        ("a deadline", 20, 1000, Limits { duration: short, ..all }, even, None),
        ("a deadline of the statement", 20, 1000, all, even, None),
        ("a deadline in a pause", 20, 25_000, of_ms(40), even, None),
        ("a bound of the latency", 60, 1000, Limits { latency, ..all }, slow, None),
        ("a caller's stop", 20, 1000, all, even, Some(2 * MS)),
        ("a caller's stop in a pause", 20, 100_000, all, even, Some(25 * MS)),
    ];
    for (name, count, every_us, limits, takes, stops_at) in cases {
        let statement = if name == "a deadline of the statement" { short } else { Duration::MAX };
        let trace = Trace::default();
        let plan = Plan::new(&relation.source, Permutation::new(4, 1), 0, Look::Never);
        // A few blocks are not enough for a bound of the latency.
        let plan = (name != "a bound of the latency").then_some(plan);
        let writer = Writer::new(&scratch, BLOCK as u32, false, 1).expect("a writer");
        let every = Duration::from_micros(every_us);
        let mut caller = trace.caller(stops_at);
        let watched = trace.watch(takes);
        let found = {
            let mut should_stop = || caller.should_stop();
            let mut budget = Budget::of_statement(statement, &trace, &mut should_stop);
            ping(plan, Some(writer), BLOCK as u32, count, every, &limits, &mut budget)
        };
        drop(watched);
        caller.ends(found.expect("answers").1);
        golden.add(name, &trace);
    }
    golden.check();
}
