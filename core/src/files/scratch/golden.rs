//! When a scratch file is filled, under each limit.

use super::{Created, Fill, Room, Scratch, ScratchLocation};
use crate::golden::{Golden, Trace};
use crate::run::budget::{Budget, Limits};

const MS: u64 = 1_000_000;
const MIB: u64 = 1 << 20;

/// Nanoseconds of a call: a fsync takes longer than a write, and the fifth call is late.
fn takes(what: &str, nth: u64) -> u64 {
    match (what, nth) {
        (_, 4) => 30 * MS,
        ("write", _) => 100_000,
        ("write back", _) => 2 * MS,
        _ => 5 * MS,
    }
}

#[test]
fn a_scratch_file_is_filled_as_it_was() {
    let mut golden = Golden::new(
        "scratch",
        "A file is filled with writes of 256 kB, 100 us each, written back in 2 ms and synced in 5; places \
         are offsets.
         Not covered: how the file is created. Filling it has no bounds of time, bytes or latency.",
    );
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    let place = ScratchLocation { directory: directory.path(), fallback: &directory.path().join("fallback") };
    let scratch = |size| {
        let room = Room { size, reserve: 0, limits: Limits::none() };
        let fill = Fill::Zeros { write_bytes: 1 << 20 };
        match Scratch::create(place, room, fill, &mut || None).expect("created") {
            Created::Ready(scratch) => scratch,
            Created::Stopped(stop) => panic!("{stop}"),
        }
    };
    // Neither is a multiple of the steps.
    let (small, large) = (scratch(4 * MIB + 8192), scratch(17 * MIB + 8192));
    let none = Limits::none();
    let cases = [
        ("no limit", none, None),
        ("max_iops 50", Limits { max_iops: Some(50), ..none }, None),
        ("max_mib_s 40", Limits { max_mib_s: Some(40), ..none }, None),
        ("max_util 0.2, and the last rest", Limits { max_util: Some(0.2), ..none }, None),
        (
            "max_util 0.5 and max_mib_s 100",
            Limits { max_util: Some(0.5), max_mib_s: Some(100), ..none },
            None,
        ),
        ("a caller's stop", none, Some(MS)),
        ("a caller's stop in a pause", Limits { max_iops: Some(5), ..none }, Some(75 * MS)),
    ];
    for (name, limits, stops_at) in cases {
        let trace = Trace::default();
        let mut caller = trace.caller(stops_at);
        let watched = trace.watch(takes);
        let scratch = if name == "no limit" { &large } else { &small };
        let fill = Fill::Zeros { write_bytes: 256 << 10 };
        let mut should_stop = || caller.should_stop();
        let mut budget = Budget::unlimited(&trace, &mut should_stop);
        let stop = scratch.fill(fill, &limits, &mut budget);
        drop(budget);
        drop(watched);
        caller.ends(stop.expect("filled"));
        golden.add(name, &trace);
    }
    golden.check();
}
