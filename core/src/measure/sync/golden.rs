//! When cases have their turns, and operations and flushes their time, under each limit.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::calls::{Calls, SyncCall};
use super::content::Content;
use super::turn::CaseTurn;
use super::{Case, CaseTimes, FlushMethod, Group, Section, SyncRun, run_with};
use crate::Result;
use crate::files::scratch::{Created, Fill, Room, Scratch, ScratchLocation};
use crate::golden::{Golden, Trace};
use crate::machine::account::Account;
use crate::machine::device::Roots;
use crate::machine::observer::Observer;
use crate::run::budget::{Budget, LatencyBound, Limits, Stop};
use crate::run::clock::Monotonic;

const MS: u64 = 1_000_000;
const BLOCK: u32 = 8192;
const SEGMENT: u64 = 8 * BLOCK as u64;

/// Calls that only leave a trace, and take the nanoseconds that `takes` gives for their number.
#[derive(Clone)]
struct MadeUp {
    scratch: Arc<Scratch>,
    trace: Trace,
    takes: fn(&str, u64) -> u64,
    calls: Arc<std::sync::atomic::AtomicU64>,
}

impl MadeUp {
    fn new(trace: &Trace, takes: fn(&str, u64) -> u64) -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        let place = ScratchLocation { directory, fallback: &directory.join("fallback") };
        let room = Room { size: SEGMENT, reserve: 0, limits: Limits::none() };
        let created = Scratch::create(place, room, Fill::Zeros { write_bytes: 8192 }, &mut || None);
        let Created::Ready(scratch) = created.expect("created") else { panic!("stopped") };
        Self { scratch: Arc::new(scratch), trace: trace.clone(), takes, calls: Arc::default() }
    }

    fn take(&self, what: &str) {
        let nth = self.calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.trace.clock().advance((self.takes)(what, nth));
    }
}

impl Calls for MadeUp {
    type File = ();
    type Clock = Trace;

    fn open(&self, _: i32) -> Result<()> {
        self.trace.says("open");
        Ok(())
    }

    fn check_direct(&self, _: &(), _: u32) -> Result<()> {
        Ok(())
    }

    fn write(&self, _: &(), data: &[u8], offset: u64) -> io::Result<usize> {
        self.trace.happens("write", offset, data.len() as u64);
        self.take("write");
        Ok(data.len())
    }

    fn sync(&self, _: &(), call: SyncCall) -> io::Result<()> {
        self.trace.says(match call {
            SyncCall::Fdatasync => "fdatasync",
            SyncCall::Fsync => "fsync",
        });
        self.take("sync");
        Ok(())
    }

    fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    fn clock(&self) -> &Trace {
        &self.trace
    }
}

fn even(what: &str, _: u64) -> u64 {
    if what == "write" { 2 * MS } else { 18 * MS }
}

/// The sixth call is late.
fn late(what: &str, nth: u64) -> u64 {
    if nth == 5 { 70 * MS } else { even(what, nth) / 10 }
}

fn fast(what: &str, nth: u64) -> u64 {
    even(what, nth) / 10
}

const SYNCED: Case = Case {
    section: Section::OneWrite,
    method: FlushMethod::Fdatasync,
    direct: false,
    writes: 1,
    write_bytes: BLOCK,
};
const UNSYNCED: Case = Case { section: Section::NoSync, method: FlushMethod::Write, ..SYNCED };
const SEGMENTS: Case = Case {
    section: Section::WalSegment,
    method: FlushMethod::OpenDatasync,
    write_bytes: 2 * BLOCK,
    ..SYNCED
};

fn of_ms(ms: u64) -> Limits {
    Limits { duration: Duration::from_millis(ms), ..Limits::none() }
}

#[test]
fn cases_take_turns_as_they_did() {
    let mut golden = Golden::new(
        "sync",
        "One who commits: cases take turns, an operation is a write in 2 ms and a sync in 18, or a tenth of \
         that.
         Places are offsets in the scratch file. Cases: fdatasync, no sync, open_datasync of 16 kB through a \
         segment.
         Not covered: precision, since what a reading of the clock takes is taken off.",
    );
    let latency = LatencyBound::within(Duration::from_millis(19));
    type Takes = fn(&str, u64) -> u64;
    let all = [SYNCED, UNSYNCED, SEGMENTS];
    let bytes = Limits { max_bytes: 6 * u64::from(BLOCK), ..of_ms(200) };
    type Sync<'a> = (&'a str, &'a [Case], Limits, Takes, Option<u64>);
    let cases: [Sync<'_>; 12] = [
        ("no limit", &all, of_ms(200), even, None),
        ("bytes", &all, bytes, even, None),
        ("max_iops 50", &all, Limits { max_iops: Some(50), ..of_ms(50) }, fast, None),
        ("max_iops 100, one late", &[SYNCED], Limits { max_iops: Some(100), ..of_ms(150) }, late, None),
        ("max_mib_s 2, one late", &[SYNCED], Limits { max_mib_s: Some(2), ..of_ms(150) }, late, None),
        ("max_util 0.2, and the last rest", &all, Limits { max_util: Some(0.2), ..of_ms(50) }, fast, None),
        (
            "max_util 0.5 and max_mib_s 1",
            &[SYNCED, SEGMENTS],
            Limits { max_util: Some(0.5), max_mib_s: Some(1), ..of_ms(50) },
            fast,
            None,
        ),
        ("a deadline of the statement", &all, of_ms(100), even, None),
        ("a bound of the latency", &[SYNCED], Limits { latency, ..of_ms(1000) }, even, None),
        ("a caller's stop", &all, of_ms(1000), even, Some(45 * MS)),
        (
            "a caller's stop in a pause",
            &all,
            Limits { max_iops: Some(10), ..of_ms(1000) },
            fast,
            Some(25 * MS),
        ),
        ("a deadline in a pause", &all, Limits { max_iops: Some(10), ..of_ms(1000) }, fast, None),
    ];
    let roots = Roots::default();
    for (name, cases, limits, takes, stops_at) in cases {
        let statement = match name {
            "a deadline of the statement" => Duration::from_millis(70),
            "a deadline in a pause" => Duration::from_millis(35),
            _ => Duration::MAX,
        };
        let trace = Trace::default();
        let calls = MadeUp::new(&trace, takes);
        let observer = Observer::new(Account::Own, &[], &roots);
        let group = Group { committers: 1, delay: Duration::ZERO, commit_bytes: None };
        let run = SyncRun { cases, group, limits, observer: &observer };
        let mut report = |number, of, case: &Case| {
            trace.says(&format!("turn {number} of {of}: {}", case.section.name()));
        };
        let mut caller = trace.caller(stops_at);
        let found = run_with(
            &run,
            &|_| calls.clone(),
            &mut Budget::of_statement(statement, &trace, &mut || caller.should_stop()),
            &mut report,
        );
        let found = found.expect("measured");
        let paused: Vec<bool> = found.iter().map(|measured| measured.paused).collect();
        trace.says(&format!("paused: {paused:?}"));
        let stop = found.iter().filter_map(|measured| measured.stop);
        caller.ends(stop.clone().find(|stop| stop.is_for_all()).or(stop.clone().next()));
        golden.add(name, &trace);
    }
    golden.check();
}

#[test]
fn a_log_is_flushed_as_it_was() {
    let mut golden = Golden::new(
        "group_commit",
        "One committer of a shared log, who leads each flush; a write takes 200 us and a sync 1800; places \
         are offsets.
         Not covered: several committers and what they share, which is up to the threads; and all that ends \
         a turn but its
         bytes, since the caller looks at it on the real clock.",
    );
    let case = Case { method: FlushMethod::Fdatasync, write_bytes: BLOCK, ..SEGMENTS };
    let block = u64::from(BLOCK);
    let bytes = |blocks| Limits { max_bytes: blocks * block, ..Limits::none() };
    let none = Duration::ZERO;
    type Takes = fn(&str, u64) -> u64;
    let cases: [(&str, Option<u32>, Duration, Limits, Takes); 9] = [
        ("bytes", None, none, bytes(12), fast),
        ("commits of 3000 bytes", Some(3000), none, bytes(12), fast),
        ("a leader who waits", None, Duration::from_millis(3), bytes(4), fast),
        ("max_iops 100, one late", None, none, Limits { max_iops: Some(100), ..bytes(12) }, late),
        ("max_iops 20", None, none, Limits { max_iops: Some(20), ..bytes(4) }, fast),
        ("max_mib_s 2, one late", None, none, Limits { max_mib_s: Some(2), ..bytes(20) }, late),
        (
            "max_mib_s 2, commits of 3000 bytes",
            Some(3000),
            none,
            Limits { max_mib_s: Some(2), ..bytes(16) },
            fast,
        ),
        ("max_util 0.2", None, none, Limits { max_util: Some(0.2), ..bytes(5) }, fast),
        (
            "max_util 0.5 and max_mib_s 1",
            None,
            none,
            Limits { max_util: Some(0.5), max_mib_s: Some(1), ..bytes(8) },
            late,
        ),
    ];
    for (name, commit_bytes, delay, limits, takes) in cases {
        let trace = Trace::default();
        let calls = MadeUp::new(&trace, takes);
        let content = Arc::new(Content::new(1 << 20).expect("memory"));
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        let turn = CaseTurn {
            case: &case,
            // Longer than any test.
            length: 3_600_000 * MS,
            limits: &limits,
            clock_cost: 0,
            content: &content,
        };
        let mut measured = CaseTimes::new();
        let group = Group { committers: 1, delay, commit_bytes };
        let stop = turn.together(calls, group, &mut measured, &mut budget).expect("committed");
        assert_eq!((stop, measured.stop), (None, Some(Stop::Bytes)));
        let CaseTimes { performed, bytes, paused, .. } = measured;
        let due = budget.pacer().due();
        trace.says(&format!(
            "end: {performed} commits, {bytes} bytes, paused: {paused}, the next is due at {due}"
        ));
        golden.add(name, &trace);
    }
    golden.check();
}
