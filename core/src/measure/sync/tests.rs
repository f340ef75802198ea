//! The loops on recorded calls, and on real files.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::calls::SyncCall;
use super::*;
use crate::files::scratch::{Fill, Room, Scratch, ScratchLocation};
use crate::machine::account::Account;
use crate::machine::device::Roots;
use crate::run::budget::{BoundSource, LatencyBound, Stop, StopCheck};
use crate::run::clock::{Clock, Monotonic};

/// What a case did, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Open(i32, i32),
    Write(i32, usize, u64),
    Sync(i32, SyncCall),
    Close(i32),
}

/// Which call goes wrong, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Open,
    ShortWrite,
    Full,
    Interrupted,
    Sync,
}

/// Calls that are recorded, and of which one kind may fail after the first `after`.
#[derive(Clone)]
struct Recorder {
    scratch: Arc<Scratch>,
    calls: Arc<Mutex<Vec<Call>>>,
    fault: Option<Fault>,
    after: usize,
    next: Arc<AtomicI32>,
    takes: Duration,
}

struct Recorded {
    number: i32,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.calls.lock().expect("calls").push(Call::Close(self.number));
    }
}

impl Recorder {
    fn new(size: u64) -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        let place = ScratchLocation { directory, fallback: &directory.join("fallback") };
        let room = Room { size, reserve: 0, limits: Limits::none() };
        let fill = Fill::Zeros { write_bytes: 8192 };
        let (created, _) = Scratch::create(place, None, room, fill, &mut || None).expect("created");
        Self {
            scratch: Arc::new(created),
            calls: Arc::default(),
            fault: None,
            after: 0,
            next: Arc::default(),
            takes: Duration::from_micros(50),
        }
    }

    fn record(&self, call: Call) -> usize {
        let mut calls = self.calls.lock().expect("calls");
        calls.push(call);
        let kind = std::mem::discriminant(&call);
        calls.iter().filter(|other| std::mem::discriminant(*other) == kind).count()
    }

    fn wait(&self) {
        if !self.takes.is_zero() {
            std::thread::sleep(self.takes);
        }
    }

    fn fails(&self, fault: Fault, count: usize) -> bool {
        self.fault == Some(fault) && count > self.after
    }

    fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("calls").clone()
    }
}

impl Calls for Recorder {
    type File = Recorded;

    fn open(&self, flags: i32) -> Result<Recorded> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.record(Call::Open(number, flags));
        if self.fails(Fault::Open, count) {
            let error = io::Error::from_raw_os_error(libc::EMFILE);
            return Err(self.scratch.failed("open scratch file in directory", None, error));
        }
        Ok(Recorded { number, calls: Arc::clone(&self.calls) })
    }

    fn check_direct(&self, _: &Recorded, bytes: u32) -> Result<()> {
        if bytes >= 4096 {
            return Ok(());
        }
        Err(Error::Unsupported { what: "O_DIRECT of one block", why: "too small".to_owned() })
    }

    fn write(&self, file: &Recorded, data: &[u8], offset: u64) -> io::Result<usize> {
        let count = self.record(Call::Write(file.number, data.len(), offset));
        self.wait();
        if self.fails(Fault::ShortWrite, count) {
            return Ok(data.len() / 2);
        }
        if self.fails(Fault::Full, count) {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        if self.fails(Fault::Interrupted, count) && count.is_multiple_of(2) {
            return Err(io::Error::from_raw_os_error(libc::EINTR));
        }
        Ok(data.len())
    }

    fn sync(&self, file: &Recorded, call: SyncCall) -> io::Result<()> {
        let count = self.record(Call::Sync(file.number, call));
        self.wait();
        if self.fails(Fault::Sync, count) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        Ok(())
    }

    fn scratch(&self) -> &Scratch {
        &self.scratch
    }
}

const BLOCK: u32 = 8192;
const SEGMENT: u64 = 8 * 32 * BLOCK as u64;
const ALONE: GroupCommit = GroupCommit { committers: 1, delay: Duration::ZERO, commit_bytes: None };

fn cases(section: Section) -> Vec<Case> {
    let selection = Selection {
        sections: &[section],
        write_bytes: BLOCK,
        wal_block: BLOCK,
        flushes: &FLUSHES,
        segment_direct: &|method| method == FlushMethod::OpenDatasync,
    };
    Case::all(&selection)
}

fn case(section: Section, method: FlushMethod) -> Case {
    cases(section).into_iter().find(|case| case.method == method).expect("a case")
}

fn limits() -> Limits {
    Limits::none()
}

/// Runs cases for `ms` milliseconds each.
fn measure(
    recorder: &Recorder,
    cases: &[Case],
    ms: u64,
    group: GroupCommit,
    limits: Limits,
    should_stop: &mut StopCheck<'_>,
) -> Result<(Vec<CaseTimes>, Option<Stop>)> {
    let roots = Roots::default();
    let observer = Observer::new(Account::Own, &[], &roots);
    let limits = Limits { duration: Duration::from_millis(ms), ..limits };
    let run = SyncRun { cases, group, limits, observer: &observer, durability: Durability::default() };
    let measured = {
        let mut budget = Budget::unlimited(&Monotonic, should_stop);
        run_with(&run, &|_| recorder.clone(), &mut budget, &mut |_, _, _| {})?
    };
    let stop = measured.iter().filter_map(|m| m.stop).find(|stop| stop.is_for_all());
    Ok((measured, stop))
}

fn one(recorder: &Recorder, case: Case, group: GroupCommit) -> Result<CaseTimes> {
    // Committers are threads, which a busy machine may not run for a while.
    let ms = if group.committers > 1 { 80 } else { 5 };
    let (mut measured, stop) = measure(recorder, &[case], ms, group, limits(), &mut || None)?;
    assert_eq!(stop, None);
    Ok(measured.remove(0))
}

/// The calls of the second operation, without what opens and closes the descriptor of all of them.
fn operation(case: Case, length: usize) -> Vec<Call> {
    let recorder = Recorder::new(SEGMENT);
    let measured = one(&recorder, case, ALONE).expect("measured");
    assert!(measured.ops() > 0);
    let calls = recorder.calls();
    let opens = usize::from(!matches!(case.section, Section::OtherFd));
    calls[opens + length..opens + 2 * length].to_vec()
}

#[test]
fn each_method_makes_the_calls_that_its_name_says() {
    use Call::{Close, Open, Write};
    let bytes = BLOCK as usize;
    let write = Write(0, bytes, 0);
    let second = Write(0, bytes, u64::from(BLOCK));
    let (data, all) = (Call::Sync(0, SyncCall::Fdatasync), Call::Sync(0, SyncCall::Fsync));
    let one = |method| operation(case(Section::OneWrite, method), 2);
    let plain = |method| operation(case(Section::OneWrite, method), 1);
    assert_eq!(plain(FlushMethod::OpenDatasync), [write]);
    assert_eq!(one(FlushMethod::Fdatasync), [write, data]);
    assert_eq!(one(FlushMethod::Fsync), [write, all]);
    assert_eq!(plain(FlushMethod::OpenSync), [write]);
    let two = |method| operation(case(Section::TwoWrites, method), 3);
    assert_eq!(two(FlushMethod::Fdatasync), [write, second, data]);
    assert_eq!(two(FlushMethod::Fsync), [write, second, all]);
    assert_eq!(operation(case(Section::TwoWrites, FlushMethod::OpenSync), 2), [write, second]);
    assert_eq!(operation(case(Section::NoSync, FlushMethod::Write), 1), [write]);
    assert_eq!(
        operation(case(Section::OtherFd, FlushMethod::WriteFsyncClose), 6),
        [Open(2, 0), Write(2, bytes, 0), Call::Sync(2, SyncCall::Fsync), Close(2), Open(3, 0), Close(3)]
    );
    assert_eq!(
        operation(case(Section::OtherFd, FlushMethod::WriteCloseFsync), 6),
        [Open(2, 0), Write(2, bytes, 0), Close(2), Open(3, 0), Call::Sync(3, SyncCall::Fsync), Close(3)]
    );
}

#[test]
fn descriptors_are_opened_once_a_turn_with_the_flags_of_the_case() {
    for case in Section::ALL.into_iter().flat_map(cases) {
        if case.section == Section::OtherFd || case.write_bytes < 4096 {
            continue;
        }
        let recorder = Recorder::new(SEGMENT);
        one(&recorder, case, ALONE).expect("measured");
        let opened: Vec<Call> =
            recorder.calls().into_iter().filter(|call| matches!(call, Call::Open(..))).collect();
        assert_eq!(opened, [Call::Open(0, case.flags())], "{case:?}");
        assert_eq!(recorder.calls().last(), Some(&Call::Close(0)), "{case:?}");
    }
}

#[test]
fn a_segment_is_written_on_and_on_and_round() {
    let size = 2 * 32 * u64::from(BLOCK);
    for case in cases(Section::WalSegment) {
        let recorder = Recorder { takes: Duration::ZERO, ..Recorder::new(size) };
        let limits = Limits { max_bytes: 2 * size, ..limits() };
        measure(&recorder, &[case], 10_000, ALONE, limits, &mut || None).expect("measured");
        let offsets: Vec<u64> = recorder
            .calls()
            .iter()
            .filter_map(|call| match call {
                Call::Write(0, length, offset) if *length == case.write_bytes as usize => Some(*offset),
                Call::Write(..) => panic!("{call:?} of {case:?}"),
                _ => None,
            })
            .collect();
        let step = u64::from(case.write_bytes);
        assert!(offsets.len() as u64 > size / step, "it came round");
        for (index, offset) in offsets.iter().enumerate() {
            assert_eq!(*offset, index as u64 * step % size);
        }
    }
}

#[test]
fn sizes_that_o_direct_refuses_are_rows_and_no_errors() {
    let recorder = Recorder::new(SEGMENT);
    let cases = cases(Section::OpenSyncSize);
    let (measured, _) = measure(&recorder, &cases, 2, ALONE, limits(), &mut || None).expect("measured");
    let refused: Vec<bool> = measured.iter().map(|m| m.refused.is_some()).collect();
    assert_eq!(refused, [false, false, false, true, true]);
    assert!(measured.iter().all(|m| m.refused.is_none() == (m.ops() > 0)));
}

#[test]
fn whatever_goes_wrong_is_an_error() {
    let wanted = [
        (Fault::Open, "could not open scratch file in directory", Some(libc::EMFILE)),
        (Fault::ShortWrite, "could not write scratch file in directory", Some(libc::ENOSPC)),
        (Fault::Full, "could not write scratch file in directory", Some(libc::ENOSPC)),
        (Fault::Sync, "sync scratch file in directory", Some(libc::EIO)),
    ];
    for (fault, message, errno) in wanted {
        for (section, method) in [
            (Section::TwoWrites, FlushMethod::Fdatasync),
            (Section::OneWrite, FlushMethod::Fsync),
            (Section::OtherFd, FlushMethod::WriteFsyncClose),
            (Section::OtherFd, FlushMethod::WriteCloseFsync),
            (Section::NoSync, FlushMethod::Write),
            (Section::WalSegment, FlushMethod::Fdatasync),
        ] {
            for committers in [1, 4] {
                if committers > 1 && section != Section::WalSegment {
                    continue;
                }
                let reopens = section == Section::OtherFd;
                // In the second operation at the latest, which every turn comes to.
                let after = match fault {
                    Fault::Open if reopens => 2,
                    Fault::Sync if section == Section::NoSync => 0,
                    Fault::Open => 0,
                    _ => 1,
                };
                let recorder = Recorder { fault: Some(fault), after, ..Recorder::new(SEGMENT) };
                let group = GroupCommit { committers, ..ALONE };
                let Err(error) = one(&recorder, case(section, method), group) else {
                    panic!("{fault:?} of {section:?} {method:?} by {committers} was not seen");
                };
                assert!(error.to_string().contains(message), "{error}");
                assert_eq!(error.errno(), errno);
                let calls = recorder.calls();
                let count = |wanted: fn(&Call) -> bool| calls.iter().filter(|call| wanted(call)).count();
                let opened = count(|call| matches!(call, Call::Open(..)));
                let closed = count(|call| matches!(call, Call::Close(_)));
                assert_eq!(opened - usize::from(fault == Fault::Open), closed, "left open: {calls:?}");
            }
        }
    }
}

#[test]
fn an_interrupted_write_is_made_again() {
    let recorder = Recorder { fault: Some(Fault::Interrupted), after: 1, ..Recorder::new(SEGMENT) };
    let measured = one(&recorder, case(Section::OneWrite, FlushMethod::Fdatasync), ALONE).expect("measured");
    let calls = recorder.calls();
    let count = |wanted: fn(&Call) -> bool| calls.iter().filter(|call| wanted(call)).count() as u64;
    let writes = count(|call| matches!(call, Call::Write(..)));
    let syncs = count(|call| matches!(call, Call::Sync(..)));
    assert!(writes > syncs && syncs == measured.ops() + 1, "{writes} writes, {syncs} syncs");
}

#[test]
fn all_cases_get_turns_in_rounds() {
    let recorder = Recorder { takes: Duration::from_millis(2), ..Recorder::new(SEGMENT) };
    let cases = [case(Section::OneWrite, FlushMethod::Fdatasync), case(Section::NoSync, FlushMethod::Write)];
    let roots = Roots::default();
    let observer = Observer::new(Account::Own, &[], &roots);
    let limits = Limits { duration: Duration::from_millis(300), ..limits() };
    let run = SyncRun {
        cases: &cases,
        group: ALONE,
        limits,
        observer: &observer,
        durability: Durability::default(),
    };
    let mut turns = Vec::new();
    let mut report = |number, total, case: &Case| {
        assert!(total == 6 || total == 4, "{total}");
        turns.push((number, case.section));
    };
    let measured =
        run_with(&run, &|_| recorder.clone(), &mut Budget::unlimited(&Monotonic, &mut || None), &mut report)
            .expect("measured");
    let (one, no) = (Section::OneWrite, Section::NoSync);
    let all = [(1, one), (2, no), (3, no), (4, one), (5, one), (6, no)];
    // On a busy machine there is no time for the last round.
    let rounds = turns.len() / 2;
    assert!((2..=3).contains(&rounds) && turns == all[..2 * rounds], "{turns:?}");
    // The first of each turn is not counted.
    assert_eq!(measured[0].performed, measured[0].ops() + rounds as u64);
    assert_eq!((measured[0].flushes, measured[1].flushes), (measured[0].ops(), 0));
    // What is not synced by the operation is synced after the turn.
    let syncs = recorder.calls().iter().filter(|call| matches!(call, Call::Sync(_, SyncCall::Fsync))).count();
    assert_eq!(syncs, rounds);
}

#[test]
fn an_operation_is_counted_however_long_it_takes() {
    let recorder = Recorder { takes: Duration::from_millis(30), ..Recorder::new(SEGMENT) };
    let (measured, _) =
        measure(&recorder, &cases(Section::NoSync), 1, ALONE, limits(), &mut || None).expect("measured");
    assert_eq!(measured[0].ops(), 1);
    assert!(measured[0].ns_per_op().is_some_and(|ns| ns >= 25e6));
}

#[test]
fn bounds_end_what_they_bound() {
    let recorder = Recorder { takes: Duration::ZERO, ..Recorder::new(SEGMENT) };
    let both = [case(Section::OneWrite, FlushMethod::Fdatasync), case(Section::NoSync, FlushMethod::Write)];
    let few = Limits { max_bytes: 10 * u64::from(BLOCK), ..limits() };
    let (measured, stop) = measure(&recorder, &both, 50, ALONE, few, &mut || None).expect("measured");
    assert_eq!((measured[0].performed, measured[0].stop, stop), (10, Some(Stop::Bytes), None));
    // What is not made durable costs the storage nothing.
    assert!(measured[1].performed > 10 && measured[1].stop.is_none());

    let slow = Limits { max_iops: Some(100), ..limits() };
    let (measured, _) = measure(&recorder, &both, 95, ALONE, slow, &mut || None).expect("measured");
    // A busy machine does fewer.
    assert!((1..=12).contains(&measured[0].performed), "{}", measured[0].performed);
    assert!(measured[0].paused && !measured[1].paused);

    let mut asked = 0;
    let mut should_stop = || {
        asked += 1;
        (asked > 3).then_some(Stop::LockWaiter)
    };
    let (_, stop) = measure(&recorder, &both, 10_000, ALONE, limits(), &mut should_stop).expect("measured");
    assert_eq!(stop, Some(Stop::LockWaiter));
}

#[test]
fn committers_share_flushes() {
    for (method, sync) in [
        (FlushMethod::Fdatasync, Some(SyncCall::Fdatasync)),
        (FlushMethod::Fsync, Some(SyncCall::Fsync)),
        (FlushMethod::OpenSync, None),
        (FlushMethod::OpenDatasync, None),
    ] {
        let recorder = Recorder { takes: Duration::from_millis(1), ..Recorder::new(SEGMENT) };
        let case = case(Section::WalSegment, method);
        let group = GroupCommit { committers: 8, ..ALONE };
        let (measured, _) = measure(&recorder, &[case], 80, group, limits(), &mut || None).expect("measured");
        let measured = &measured[0];
        let calls = recorder.calls();
        // One after another, each from where the last one ended, with the sync of the method after it.
        let mut next = 0;
        let mut flushes = 0;
        for call in &calls {
            match *call {
                Call::Write(0, length, offset) => {
                    assert_eq!(offset, next % SEGMENT);
                    assert!(length.is_multiple_of(BLOCK as usize) && length <= 8 * BLOCK as usize);
                    next += length as u64;
                    flushes += u64::from(sync.is_none());
                }
                Call::Sync(0, how) => {
                    assert_eq!(Some(how), sync);
                    flushes += 1;
                }
                Call::Open(0, flags) => assert_eq!(flags, case.flags()),
                _ => assert_eq!(*call, Call::Close(0)),
            }
        }
        // What was written was committed, save for a last flush that the end of the turn cut short.
        let committed = measured.performed * u64::from(BLOCK);
        assert!(committed <= next && next <= committed + 8 * u64::from(BLOCK), "{committed} of {next}");
        // The first flush is warm-up. The end of the segment splits a flush in two. Where each of them
        // syncs, the turn may end between them.
        let counted = measured.flushes + 1;
        let cut_short = 1 + u64::from(sync.is_none());
        assert!(counted <= flushes && counted + cut_short >= flushes, "{counted} of {flushes}");
        assert!(measured.ops() > measured.flushes, "{} in {}", measured.ops(), measured.flushes);
        assert!(measured.ops() <= 8 * measured.flushes);
        assert!(measured.latencies.quantile(0.0) >= Some(900_000), "a committer waits for a whole flush");
    }
}

#[test]
fn small_commits_share_a_block() {
    let recorder = Recorder { takes: Duration::from_millis(1), ..Recorder::new(SEGMENT) };
    let group = GroupCommit { committers: 8, commit_bytes: Some(100), ..ALONE };
    let measured = one(&recorder, case(Section::WalSegment, FlushMethod::OpenSync), group).expect("measured");
    let mut last = 0;
    for call in recorder.calls() {
        if let Call::Write(_, length, offset) = call {
            assert!(length == BLOCK as usize || length == 2 * BLOCK as usize, "{length}");
            assert!(offset == last || offset == last + u64::from(BLOCK), "{offset} after {last}");
            last = offset;
        }
    }
    assert!(measured.performed * 100 / u64::from(BLOCK) >= last / u64::from(BLOCK));
    assert!(measured.ops() > measured.flushes);
}

#[test]
fn a_leader_waits_before_each_flush() {
    let delay = Duration::from_millis(20);
    let recorder = Recorder { takes: Duration::ZERO, ..Recorder::new(SEGMENT) };
    let group = GroupCommit { committers: 6, delay, ..ALONE };
    let measured = one(&recorder, case(Section::WalSegment, FlushMethod::OpenSync), group).expect("measured");
    assert!(measured.elapsed_ns() >= measured.flushes * 20_000_000);
    assert!(measured.latencies.most() >= Some(20_000_000));
    // The others have inserted by the time that it writes.
    assert!(measured.ops() > measured.flushes, "{} in {}", measured.ops(), measured.flushes);

    // A pause is no part of a flush's time, but the delay after it is.
    let slow = Limits { max_iops: Some(60), ..limits() };
    let cases = [case(Section::WalSegment, FlushMethod::OpenSync)];
    let (measured, _) = measure(&recorder, &cases, 500, group, slow, &mut || None).expect("measured");
    let (elapsed, flushes) = (measured[0].elapsed_ns(), measured[0].flushes);
    assert!(measured[0].paused && flushes > 0 && elapsed >= flushes * 20_000_000, "{elapsed} for {flushes}");
}

#[test]
fn bounds_hold_for_committers_too() {
    let recorder = Recorder { takes: Duration::ZERO, ..Recorder::new(SEGMENT) };
    let cases = [case(Section::WalSegment, FlushMethod::Fdatasync)];
    let group = GroupCommit { committers: 4, ..ALONE };
    let few = Limits { max_bytes: 100 * u64::from(BLOCK), ..limits() };
    let (measured, _) = measure(&recorder, &cases, 1000, group, few, &mut || None).expect("measured");
    assert_eq!(measured[0].stop, Some(Stop::Bytes));
    assert_eq!(measured[0].performed, 100);

    let slow = Limits { max_iops: Some(200), ..limits() };
    let started = Instant::now();
    let (measured, _) = measure(&recorder, &cases, 95, group, slow, &mut || None).expect("measured");
    let most = started.elapsed().as_millis() as u64 / 5 + 8;
    assert!(measured[0].paused && measured[0].performed <= most, "{}", measured[0].performed);
}

#[test]
fn a_rate_of_small_commits_is_one_of_blocks() {
    let recorder = Recorder { takes: Duration::ZERO, ..Recorder::new(SEGMENT) };
    let case = case(Section::WalSegment, FlushMethod::OpenSync);
    let group = GroupCommit { committers: 2, commit_bytes: Some(100), ..ALONE };
    let limits = Limits { max_iops: Some(1), max_bytes: BLOCK.into(), ..limits() };
    let content = Arc::new(Content::new(group.longest_write(&case) as usize).expect("memory"));
    let turn = CaseTurn { case: &case, length: 0, limits: &limits, clock_cost: 0, content: &content };
    let mut should_stop = || None;
    let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
    let mut measured = CaseTimes::new();
    turn.together(recorder, group, &mut measured, &mut budget).expect("a turn");
    assert_eq!((measured.bytes, measured.stop), (BLOCK.into(), Some(Stop::Bytes)));
    // One flush of a block, so that the next is due a second after it.
    let due = budget.pacer().due();
    assert!(due > 0 && due <= Monotonic.now() + 1_000_000_000, "{due}");
}

#[test]
fn a_flush_of_many_does_not_exceed_the_bytes() {
    let recorder = Recorder { takes: Duration::ZERO, ..Recorder::new(SEGMENT) };
    let cases = [case(Section::WalSegment, FlushMethod::Fdatasync)];
    // All four insert before the first flush, which is of two.
    let group = GroupCommit { committers: 4, delay: Duration::from_millis(20), commit_bytes: None };
    let few = Limits { max_bytes: 2 * u64::from(BLOCK), ..limits() };
    let (measured, _) = measure(&recorder, &cases, 1000, group, few, &mut || None).expect("measured");
    let measured = &measured[0];
    assert_eq!((measured.performed, measured.bytes, measured.stop), (2, few.max_bytes, Some(Stop::Bytes)));
}

#[test]
fn a_share_of_the_time_is_kept() {
    let recorder = Recorder { takes: Duration::from_millis(1), ..Recorder::new(SEGMENT) };
    let limits = Limits { max_util: Some(0.1), ..limits() };
    let cases = [case(Section::WalSegment, FlushMethod::Fdatasync)];
    for committers in [1, 4] {
        let (group, roots) = (GroupCommit { committers, ..ALONE }, Roots::default());
        let observer = Observer::new(Account::Own, &[], &roots);
        let limits = Limits { duration: Duration::from_millis(200), ..limits };
        let run =
            SyncRun { cases: &cases, group, limits, observer: &observer, durability: Durability::default() };
        let (mut began, mut should_stop) = (None, || None);
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        let mut at_a_turn = |_, _, _: &Case| began = began.or(Some(Instant::now()));
        let measured = run_with(&run, &|_| recorder.clone(), &mut budget, &mut at_a_turn).expect("measured");
        let (measured, elapsed) = (&measured[0], began.expect("a turn").elapsed().as_nanos() as u64);
        // Of a write and a sync each takes a millisecond: with the rest, twenty.
        let most = elapsed / 20_000_000;
        assert!(
            measured.paused && (1..=most).contains(&measured.flushes),
            "{committers}: {}",
            measured.flushes
        );
        if committers == 1 {
            // The last has its rest, too. Of the first of each turn it is not known how long it took.
            let busy = measured.elapsed_ns() + 2_000_000 * (measured.performed - measured.ops());
            assert!(elapsed >= 10 * busy, "{elapsed} for {busy}");
        }
    }
    let unsynced = [case(Section::NoSync, FlushMethod::Write)];
    let (measured, _) = measure(&recorder, &unsynced, 100, ALONE, limits, &mut || None).expect("measured");
    assert!(!measured[0].paused, "what is not synced is not bound");
}

#[test]
fn committers_who_wait_too_long_end_it() {
    let group = GroupCommit { committers: 4, delay: Duration::from_millis(20), ..ALONE };
    let cases = [case(Section::WalSegment, FlushMethod::Fdatasync)];
    let bound = |ms| Limits { latency: LatencyBound::within(Duration::from_millis(ms)), ..limits() };
    let recorder = Recorder { takes: Duration::ZERO, ..Recorder::new(SEGMENT) };
    // Its flushes take no time, but committers wait for the delay.
    let (_, stop) = measure(&recorder, &cases, 10_000, group, bound(15), &mut || None).expect("measured");
    assert_eq!(stop, Some(Stop::Slow(BoundSource::Call)));
    // With a rate limit they wait for that, which is not the storage's fault.
    let paused = Limits { max_iops: Some(50), ..bound(15) };
    let group = GroupCommit { delay: Duration::ZERO, ..group };
    let (measured, stop) = measure(&recorder, &cases, 600, group, paused, &mut || None).expect("measured");
    assert!(measured[0].paused && stop.is_none());
}

#[test]
fn what_is_not_synced_tells_nothing_of_the_storage() {
    let recorder = Recorder { takes: Duration::from_millis(2), ..Recorder::new(SEGMENT) };
    let slow = Limits { latency: LatencyBound::within(Duration::from_millis(1)), ..limits() };
    let run = |case, ms| measure(&recorder, &[case], ms, ALONE, slow, &mut || None).expect("measured").1;
    assert_eq!(run(case(Section::NoSync, FlushMethod::Write), 100), None);
    // It ends as soon as there were enough of them.
    assert_eq!(
        run(case(Section::OneWrite, FlushMethod::Fdatasync), 10_000),
        Some(Stop::Slow(BoundSource::Call))
    );
}

#[test]
fn a_caller_who_unwinds_leaves_no_thread() {
    let recorder = Recorder::new(SEGMENT);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut should_stop = || -> Option<Stop> { std::panic::resume_unwind(Box::new("cancelled")) };
        let cases = [case(Section::WalSegment, FlushMethod::Fdatasync)];
        let group = GroupCommit { committers: 4, ..ALONE };
        measure(&recorder, &cases, 10_000, group, limits(), &mut should_stop).map(drop)
    }));
    assert!(unwound.is_err());
    // The log that the threads share has a copy of the recorder.
    assert_eq!(Arc::strong_count(&recorder.next), 1);
    assert_eq!(recorder.calls().last(), Some(&Call::Close(0)));
}

#[test]
fn real_files_are_written_and_left_to_nobody() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    let cases: Vec<Case> = Section::ALL.into_iter().flat_map(cases).collect();
    let fallback = directory.path().join("fallback");
    let place = ScratchLocation { directory: directory.path(), fallback: &fallback };
    let roots = Roots::default();
    let placement = crate::machine::device::locate(directory.path(), &roots);
    let observer = Observer::new(Account::Own, &placement.leaves, &roots);
    let layout = Layout::plan(&cases, 8 << 20, 2 << 20).expect("fits");
    assert_eq!(layout.segment_bytes(), Some(2 << 20));
    let files = layout.make(place, false, 0, Limits::none(), 1 << 18, &mut || None).expect("made");
    for committers in [1, 4] {
        let group = GroupCommit { committers, ..ALONE };
        let cases: Vec<Case> = cases
            .iter()
            .copied()
            .filter(|case| committers == 1 || case.section == Section::WalSegment)
            .collect();
        let limits = Limits { duration: Duration::from_millis(5), ..limits() };
        let run =
            SyncRun { cases: &cases, group, limits, observer: &observer, durability: Durability::default() };
        let measured =
            super::run(&files, &run, &mut Budget::unlimited(&Monotonic, &mut || None), &mut |_, _, _| {})
                .expect("measured");
        assert!(measured.iter().all(|m| m.stop.is_none()));
        for (case, measured) in cases.iter().zip(&measured) {
            assert!(measured.refused.is_some() == (measured.ops() == 0), "{case:?}");
            assert!(measured.refused.is_none() || case.direct);
        }
    }
    assert!(std::fs::read_dir(directory.path()).expect("listed").next().is_none());
}
