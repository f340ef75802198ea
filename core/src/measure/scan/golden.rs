//! What a scan asks of its disk, and when, under each limit.

use std::time::Duration;

use super::{Direct, ScanRun, Steps, scan};
use crate::Result;
use crate::files::Part;
use crate::files::relation_files::fixture::{BLOCK, Relation};
use crate::golden::{Disk, Golden, Trace};
use crate::measure::BlockReader;
use crate::run::budget::{Budget, LatencyBound, Limits};
use crate::run::stopwatch::Stopwatch;

const MS: u64 = 1_000_000;
const DEPTH: usize = 4;
const REQUEST_BLOCKS: u64 = 2;

fn of_ms(ms: u64) -> Limits {
    Limits { duration: Duration::from_millis(ms), ..Limits::none() }
}

/// Reads through a page cache for which the kernel reads ahead. A piece is an event.
struct Ahead<'a> {
    trace: &'a Trace,
}

impl BlockReader<Part> for Ahead<'_> {
    fn read(&mut self, part: &mut Part, watch: &mut Stopwatch<'_>) -> Result<()> {
        let blocks = part.blocks.end - part.blocks.start;
        self.trace.happens("read blocks", part.blocks.start, blocks);
        watch.begin();
        let mut left = blocks;
        while left > 0 {
            let some = left.min(8);
            self.trace.clock().advance(some * 50_000);
            left -= some;
            if watch.done(some).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[test]
fn a_scan_keeps_its_limits_as_it_did() {
    let mut golden = Golden::new(
        "scan",
        "A direct scan, 4 requests of 16 kB in flight, 2 ms each; places are offsets. Last, one above \
         readahead, in pieces.
         Not covered: what the server's readers do, and pauses that others' load would make longer.",
    );
    let relation = Relation::of_segments(4096, 4096, 0..4096);
    let run = |steps, limits| {
        let (source, blocks) = (&relation.source, 0..relation.source.blocks());
        ScanRun { source, blocks, steps, without_data: None, limits }
    };
    let even = |_| 2 * MS;
    // One in four is late.
    let late = |nth: u64| if nth % 4 == 3 { 7 * MS } else { 2 * MS };
    let latency = LatencyBound::within(Duration::from_micros(1999));
    type Takes = fn(u64) -> u64;
    let cases: [(&str, Limits, Takes, Option<u64>); 16] = [
        ("no limit but of bytes", Limits { max_bytes: 40 * BLOCK + 1, ..of_ms(100) }, even, None),
        ("max_iops 200", Limits { max_iops: Some(200), ..of_ms(40) }, even, None),
        ("max_iops 200, some late", Limits { max_iops: Some(200), ..of_ms(32) }, late, None),
        ("max_mib_s 16", Limits { max_mib_s: Some(16), ..of_ms(36) }, even, None),
        ("max_mib_s 28, just in reach", Limits { max_mib_s: Some(28), ..of_ms(24) }, even, None),
        ("max_mib_s 1000, out of reach", Limits { max_mib_s: Some(1000), ..of_ms(40) }, even, None),
        (
            "max_iops and max_mib_s",
            Limits { max_iops: Some(400), max_mib_s: Some(5), ..of_ms(30) },
            even,
            None,
        ),
        ("max_util 0.2, woken late", Limits { max_util: Some(0.2), ..of_ms(60) }, even, None),
        ("max_util 0.2", Limits { max_util: Some(0.2), ..of_ms(60) }, even, None),
        (
            "max_util 0.5 and max_mib_s 8",
            Limits { max_util: Some(0.5), max_mib_s: Some(8), ..of_ms(60) },
            even,
            None,
        ),
        ("a deadline", of_ms(5), even, None),
        ("a deadline of the statement", of_ms(100), even, None),
        ("a bound of the latency", Limits { latency, ..of_ms(1000) }, even, None),
        ("a caller's stop", of_ms(1000), even, Some(3 * MS)),
        ("a caller's stop in a pause", Limits { max_iops: Some(10), ..of_ms(1000) }, even, Some(25 * MS)),
        ("a deadline in a pause", Limits { max_iops: Some(10), ..of_ms(35) }, even, None),
    ];
    for (name, limits, takes, stops_at) in cases {
        let statement =
            if name == "a deadline of the statement" { Duration::from_millis(3) } else { Duration::MAX };
        let trace = Trace::oversleeping(if name.ends_with("woken late") { 700_000 } else { 0 });
        let mut disk = Disk::new(&trace, takes);
        let mut reader = Direct::new(&relation.source, &mut disk, DEPTH, REQUEST_BLOCKS);
        let mut caller = trace.caller(stops_at);
        let stop = {
            let mut should_stop = || caller.should_stop();
            let mut budget = Budget::of_statement(statement, &trace, &mut should_stop);
            scan(&run(Steps::of(REQUEST_BLOCKS), limits), &mut reader, &mut budget, &mut |_| ())
        };
        caller.ends(stop.expect("scanned").stop);
        golden.add(name, &trace);
    }
    for (name, limits) in [
        ("above readahead: max_mib_s 64", Limits { max_mib_s: Some(64), ..of_ms(50) }),
        ("above readahead: max_util 0.3", Limits { max_util: Some(0.3), ..of_ms(80) }),
        ("above readahead: both", Limits { max_util: Some(0.3), max_mib_s: Some(16), ..of_ms(200) }),
    ] {
        let trace = Trace::default();
        let mut caller = trace.caller(None);
        let stop = {
            let mut should_stop = || caller.should_stop();
            let mut budget = Budget::unlimited(&trace, &mut should_stop);
            let run = run(Steps::above_readahead(512 << 10, BLOCK), limits);
            scan(&run, &mut Ahead { trace: &trace }, &mut budget, &mut |_| ())
        };
        caller.ends(stop.expect("scanned").stop);
        golden.add(name, &trace);
    }
    golden.check();
}
