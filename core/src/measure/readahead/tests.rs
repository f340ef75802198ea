//! The readers against an engine that keeps a record, the figures against known answers, and all of it on
//! real files.

use crate::machine::observer::HeldBack;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::tally::WindowTally;
use super::*;
use crate::engine::{self, Completion, Kind};
use crate::files::page_cache::page_size;
use crate::files::relation_files::fixture::{BLOCK, Relation};
use crate::machine::account::{Account, Lost};
use crate::machine::device::{Activity, Roots, Traffic};
use crate::machine::observer::IoDelta;
use crate::measure::scan::Scan;
use crate::run::clock::{Clock, Manual, Monotonic, Ticking};
use crate::stats::Slice;

/// What a reader did with its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Did {
    Submit(usize, u64, usize),
    /// A request of this slot was waited for.
    Wait(usize),
    /// The slot, where in it, and how many bytes.
    Copied(usize, usize, usize),
}
use Did::{Copied, Submit, Wait};

/// Serves requests in order, each in `service_ns` of its own, and copies in no time.
struct Recorder<'a> {
    clock: &'a Manual,
    service_ns: u64,
    /// Slot, bytes, and when it will be served.
    in_flight: RefCell<Vec<(usize, usize, u64)>>,
    free_at: Cell<u64>,
    did: RefCell<Vec<Did>>,
    room: usize,
    short: Option<usize>,
}

impl<'a> Recorder<'a> {
    fn new(clock: &'a Manual, service_ns: u64) -> Self {
        let (in_flight, did) = Default::default();
        Self { clock, service_ns, in_flight, free_at: Cell::new(0), did, room: ROOM, short: None }
    }
}

impl Engine for Recorder<'_> {
    fn submit_at(&mut self, slot: usize, at: usize, _file: &Arc<File>, offset: u64, len: usize) {
        assert!(at + len <= self.room && at.is_multiple_of(KB8));
        assert!(self.in_flight.borrow().iter().all(|(busy, ..)| *busy != slot), "slot {slot} is busy");
        let served = self.free_at.get().max(self.clock.now()) + self.service_ns;
        self.free_at.set(served);
        self.in_flight.borrow_mut().push((slot, len, served));
        self.did.borrow_mut().push(Submit(slot, offset, len));
    }

    fn wait(&mut self, _idle: &mut dyn FnMut()) -> Result<Completion> {
        let (slot, len, served) = self.in_flight.borrow_mut().remove(0);
        self.clock.advance(served.saturating_sub(self.clock.now()));
        self.did.borrow_mut().push(Wait(slot));
        Ok(Completion { slot, result: Ok(self.short.unwrap_or(len)) })
    }

    fn bytes(&self, slot: usize, at: usize, len: usize) -> &[u8] {
        static BYTES: [u8; ROOM] = [0; ROOM];
        assert!(self.in_flight.borrow().iter().all(|(busy, ..)| *busy != slot), "slot {slot} is busy");
        self.did.borrow_mut().push(Copied(slot, at, len));
        &BYTES[..len]
    }
}

const KB8: usize = BLOCK as usize;

/// Room for three blocks.
const ROOM: usize = 3 * KB8;

/// Scans `blocks` in requests of `request` blocks.
fn scanned(
    relation: &Relation,
    blocks: Range<u64>,
    request: u64,
    reader: &mut dyn BlockReader<Part>,
    limits: Limits,
    clock: &Manual,
) -> Result<Scan> {
    let (source, steps) = (&relation.source, Steps::of(request));
    let run = ScanRun { source, blocks, steps, without_data: None, limits };
    scan::scan(&run, reader, &mut Budget::unlimited(clock, &mut || None), &mut |_| ())
}

/// Scans `blocks` with a twin of this window and notes what it does.
fn twin(relation: &Relation, blocks: Range<u64>, window: u64, limits: &Limits) -> (Vec<Did>, Scan) {
    let clock = Manual::default();
    let mut engine = Recorder::new(&clock, 1_000_000);
    let mut reader = Twin::new(&relation.source, &mut engine, window, ROOM);
    let scan = scanned(relation, blocks, window, &mut reader, *limits, &clock).expect("scanned");
    assert!(engine.in_flight.borrow().is_empty());
    (engine.did.into_inner(), scan)
}

#[test]
fn the_next_window_is_submitted_before_the_present_one_is_waited_for() {
    let relation = Relation::new(5, 0..5);
    let (did, scan) = twin(&relation, 0..5, 2, &Limits::none());
    let window = |slot, first: usize, blocks: usize| Submit(slot, (first * KB8) as u64, blocks * KB8);
    assert_eq!(
        did,
        [
            window(0, 0, 2),
            window(1, 2, 2),
            Wait(0),
            Copied(0, 0, KB8),
            Copied(0, KB8, KB8),
            window(0, 4, 1),
            Wait(1),
            Copied(1, 0, KB8),
            Copied(1, KB8, KB8),
            Wait(0),
            // Behind what the slot held before.
            Copied(0, 2 * KB8, KB8),
        ]
    );
    // The device is never without a request: three windows at a millisecond each.
    assert_eq!(scan.rated, Slice { ns: 3_000_000, work: 5 });
}

#[test]
fn windows_end_with_their_segment() {
    let relation = Relation::of_segments(4, 10, 0..10);
    let (did, scan) = twin(&relation, 1..10, 3, &Limits::none());
    let submitted: Vec<(u64, usize)> = did
        .iter()
        .filter_map(
            |did| if let Submit(_, offset, len) = did { Some((*offset / BLOCK, len / KB8)) } else { None },
        )
        .collect();
    assert_eq!(submitted, [(1, 3), (0, 3), (3, 1), (0, 2)]);
    assert_eq!((scan.blocks, scan.rated.work), (1..10, 9));
}

#[test]
fn a_twin_that_is_stopped_leaves_nothing_in_flight() {
    let relation = Relation::new(64, 0..64);
    let limits = Limits { duration: Duration::from_millis(3), ..Limits::none() };
    let (did, scan) = twin(&relation, 0..64, 3, &limits);
    assert_eq!((scan.stop, scan.blocks), (Some(Stop::Duration), 0..9));
    let count = |wanted: fn(&Did) -> bool| did.iter().filter(|did| wanted(did)).count();
    assert_eq!((count(|d| matches!(d, Submit(..))), count(|d| matches!(d, Wait(_)))), (4, 4));
    assert_eq!(count(|d| matches!(d, Copied(..))), 9);
}

#[test]
fn without_readahead_each_page_is_waited_for() {
    let relation = Relation::new(3, 0..3);
    let clock = Manual::default();
    let mut engine = Recorder::new(&clock, 1_000_000);
    let mut reader = PageReads::new(&relation.source, &mut engine);
    let scan = scanned(&relation, 1..3, 1, &mut reader, Limits::none(), &clock).expect("scanned");
    let page = page_size() as usize;
    let pages = KB8 / page.min(KB8);
    assert_eq!(scan.rated, Slice { ns: 2 * pages as u64 * 1_000_000, work: 2 });
    assert_eq!(engine.did.borrow()[..3], [Submit(0, BLOCK, KB8 / pages), Wait(0), Copied(0, 0, KB8 / pages)]);
}

#[test]
fn a_window_that_comes_short_is_an_error_with_its_offset() {
    let relation = Relation::new(8, 0..8);
    let clock = Manual::default();
    let mut engine = Recorder { short: Some(512), ..Recorder::new(&clock, 1) };
    let mut reader = Twin::new(&relation.source, &mut engine, 2, ROOM);
    let error = scanned(&relation, 4..8, 2, &mut reader, Limits::none(), &clock).expect_err("short");
    assert!(error.to_string().contains("offset 32768: read only 512 of 16384 bytes"), "{error}");
}

/// Turns of 100 blocks each through the page cache, by the nanoseconds of wall clock and of CPU time that a
/// block took.
fn tally(turns: &[(u64, u64)]) -> WindowTally {
    added(WindowTally::through_page_cache(), turns)
}

/// The tally with these turns added.
fn added(mut tally: WindowTally, turns: &[(u64, u64)]) -> WindowTally {
    for (round, (ns, cpu)) in (0..).zip(turns) {
        tally.add(round, &scan_of(*ns), 100 * cpu, IoDelta { fetched: Ok(10), ..NO_COST });
    }
    tally
}

const NO_COST: IoDelta = IoDelta {
    written: None,
    fetched: Err(Lost::NoAccount),
    activity: None,
    held_back: HeldBack { limits: Vec::new(), quotas: Vec::new() },
};

const BUSY: Activity = Activity {
    elapsed_ms: 0.0,
    reads: Traffic { requests: 1, merges: 0, bytes: 0, ticks_ms: None },
    writes: Traffic { requests: 0, merges: 0, bytes: 0, ticks_ms: None },
    discards: None,
    flushes: None,
    aqu_sz: None,
    util_pct: Some(50.0),
};

/// 100 blocks that took `ns` nanoseconds each, and one that was a hole.
fn scan_of(ns: u64) -> Scan {
    Scan {
        blocks: 0..100,
        holes: 1,
        rated: Slice { ns: 100 * ns, work: 100 },
        interval: None,
        trend: None,
        slowed: None,
        elapsed_ns: 100 * ns,
        cached_bytes: Some(0),
        throttled: false,
        stop: None,
    }
}

#[test]
fn turns_that_were_disturbed_do_not_count_nor_does_the_first() {
    let tally =
        tally(&[(1, 1), (3000, 600), (3000, 700), (5000, 1900), (3200, 720), (3100, 1000), (3300, 800)]);
    assert_eq!((tally.turns(), tally.disturbed(), tally.blocks(), tally.holes), (4, 2, 400, 7));
    assert_eq!(tally.ns_per_block(), Some(3100.0));
    assert_eq!(tally.cost(0.0).and_then(|cost| cost.fetched_bytes()), Some(40));
    // A third more of next to nothing makes no difference.
    let tally = self::tally(&[(1, 1), (3000, 200), (3000, 290), (3000, 349)]);
    assert_eq!((tally.turns(), tally.disturbed()), (3, 0));
    assert_eq!(WindowTally::through_page_cache().ns_per_block(), None);
    // Past the page cache there is no memory to be found.
    let direct = added(WindowTally::default(), &[(1, 1), (3000, 600), (3000, 700), (3000, 1900)]);
    assert_eq!((direct.turns(), direct.disturbed()), (3, 0));
}

#[test]
fn the_page_cache_costs_what_clock_and_cpu_say() {
    let cost = |real: &[(u64, u64)], twin: &[(u64, u64)]| {
        let warmed_up = |turns: &[(u64, u64)]| [&[(1, 1)], turns].concat();
        let twin = added(WindowTally::default(), &warmed_up(twin));
        CacheCost::of(&tally(&warmed_up(real)), &twin).map(|cost| (cost.ns.round(), cost.half_ns.round()))
    };
    // Steady times: the wall clock alone.
    let cost_of_steady = cost(&[(3300, 700); 5], &[(3000, 400); 5]);
    assert_eq!(cost_of_steady, Some((300.0, 0.0)));
    // One pair, so no idea how sure it is: the CPU time alone, give or take half of it.
    assert_eq!(cost(&[(4000, 700)], &[(3000, 400)]), Some((300.0, 294.0)));
    // Times that jump: near the CPU time.
    let jumping = cost(
        &[(9000, 700), (2000, 700), (6000, 700), (3000, 700)],
        &[(3000, 400), (6000, 400), (2000, 400), (7000, 400)],
    );
    assert!(jumping.is_some_and(|(ns, half)| (ns - 300.0).abs() < 5.0 && half > 200.0), "{jumping:?}");
    // Never more than the CPU time and a half, and never less than nothing.
    assert_eq!(cost(&[(5000, 700); 5], &[(3000, 400); 5]).map(|c| c.0), Some(450.0));
    assert_eq!(cost(&[(2000, 700); 5], &[(3000, 400); 5]).map(|c| c.0), Some(0.0));
    // A twin that takes longer does not make the page cache a gain.
    assert_eq!(cost(&[(3000, 400); 5], &[(3300, 700); 5]).map(|c| c.0), Some(0.0));
    assert_eq!(cost(&[], &[(3000, 400)]), None);
}

#[test]
fn what_is_added_widens_the_interval_and_empties_the_queue() {
    let cost = CacheCost { ns: 300.0, half_ns: 40.0 };
    let with = cost.added_to(Interval { value: 3000.0, low: 2970.0, high: 3000.0 });
    assert_eq!(with, Interval { value: 3300.0, low: 3250.0, high: 3340.0 });
    let activity = Activity { elapsed_ms: 2.0, aqu_sz: Some(1.5), ..BUSY };
    let mut tally = WindowTally::default();
    tally.add(1, &scan_of(20_000), 1, IoDelta { fetched: Ok(7), activity: Some(activity), ..NO_COST });
    // 100 blocks, each of which takes 20 us more.
    let cost = tally.cost(20_000.0).expect("a turn");
    assert_eq!(
        cost.activity.map(|a| (a.elapsed_ms, a.aqu_sz, a.util_pct)),
        Some((4.0, Some(0.75), Some(25.0)))
    );
    assert_eq!(cost.fetched_bytes(), Some(7));
}

const KB: u64 = 1 << 10;

/// Measures beside a setting of 128 kB. Returns also what had each turn.
fn measured(
    source: &RelationFiles,
    windows: &[u64],
    limits: Limits,
    engine: &mut dyn Engine,
    clock: &dyn Clock,
) -> (ReadaheadCurve, Vec<Contender>) {
    let roots = Roots::default();
    let observer = Observer::new(Account::Own, &[], &roots);
    let run = ReadaheadRun { source, in_force: 128 * KB, windows, limits, observer: &observer };
    let mut order = Vec::new();
    let curve = curve(&run, engine, &mut Budget::unlimited(clock, &mut || None), &mut |_, _, whose| {
        order.push(whose)
    });
    (curve.expect("measured"), order)
}

/// Like `measured`, on a made-up clock, on which a request takes 500 us. Returns also the time that all took.
fn made_up(source: &RelationFiles, windows: &[u64], limits: Limits) -> (ReadaheadCurve, Vec<Contender>, u64) {
    let clock = Ticking::default();
    let mut engine = Recorder { room: ROOM_OF_SLOT as usize, ..Recorder::new(&clock.0, 500_000) };
    let (curve, order) = measured(source, windows, limits, &mut engine, &clock);
    (curve, order, clock.0.now())
}

#[test]
fn all_windows_take_turns_there_and_back() {
    let relation = Relation::new(600, 0..600);
    let limits = Limits { max_bytes: 1200 * BLOCK, ..Limits::none() };
    let open = |kind| engine::open(Some(kind), SLOTS as usize, ROOM_OF_SLOT as usize);
    let mut engines = vec![open(Kind::Threads).expect("threads").engine];
    engines.extend(open(Kind::IoUring).ok().map(|opened| opened.engine));
    for engine in &mut engines {
        let windows = [0, 16 * KB, 256 * KB];
        let (curve, order) = measured(&relation.source, &windows, limits, engine.as_mut(), &Monotonic);
        use Contender::{Emulated, Kernel, Twin};
        assert_eq!(
            order,
            [
                Kernel,
                Twin,
                Emulated(0),
                Emulated(1),
                Emulated(2), //
                Emulated(2),
                Emulated(1),
                Emulated(0),
                Twin,
                Kernel,
            ]
        );
        assert_eq!((curve.turn_blocks, curve.stop, curve.paused), (300, Some(Stop::Bytes), false));
        assert_eq!(curve.refused, None);
        for tally in [&curve.kernel, &curve.twin].into_iter().chain(&curve.emulated) {
            assert_eq!((tally.turns(), tally.blocks()), (1, 300));
            assert!(tally.ns_per_block() > Some(0.0));
        }
        assert!(curve.of_kernel().is_some() && curve.of_emulated(&curve.emulated[1]).is_some());
        assert!(curve.cache_cost().is_some());
        assert!(is_enough(&curve.kernel, 75) && !is_enough(&curve.kernel, 76));
        assert_eq!(curve.kernel.cached_bytes(), Some(0));
    }
}

/// The first 64 blocks of a relation, as blocks of less than a sector, which O_DIRECT refuses.
fn refusing(relation: &Relation) -> RelationFiles {
    RelationFiles::new(relation.source.path(0), 256, 32 * 64, 32 * 64)
}

#[test]
fn where_o_direct_is_refused_the_kernel_has_all_turns() {
    let relation = Relation::new(64, 0..64);
    let source = refusing(&relation);
    let limits = Limits { max_bytes: 256 * BLOCK, ..Limits::none() };
    let (curve, order, _) = made_up(&source, &[16 * KB], limits);
    let refused = curve.refused.as_deref().unwrap_or_default();
    assert!(refused.starts_with("O_DIRECT of this size"), "{refused}");
    assert_eq!((order.as_slice(), curve.stop), (&[Contender::Kernel; 2][..], Some(Stop::Bytes)));
    assert_eq!((curve.kernel.turns(), curve.kernel.blocks(), curve.emulated.len()), (1, 32 * 64, 0));
    // The clock is read once for eight blocks.
    assert_eq!(curve.of_kernel().map(|figures| figures.ns_per_block), Some(2_500.0));
    assert_eq!(curve.cache_cost(), None);
    // What is precise does not wait for the others.
    let limits = Limits { precision: Some(0.999), ..Limits::none() };
    assert_eq!(made_up(&source, &[16 * KB], limits).0.stop, Some(Stop::Precise));
}

#[test]
fn it_ends_when_it_is_precise_or_out_of_time() {
    let relation = Relation::new(64, 0..64);
    let limits = Limits { precision: Some(0.999), ..Limits::none() };
    let (curve, order, _) = made_up(&relation.source, &[], limits);
    assert_eq!(curve.stop, Some(Stop::Precise));
    assert!(order.len() >= 2 * (MIN_FOR_MEDIAN + 1), "{}", order.len());

    let limits = Limits { duration: Duration::from_millis(50), ..Limits::none() };
    let (curve, order, _) = made_up(&relation.source, &[16 * KB], limits);
    assert_eq!(curve.stop, Some(Stop::Duration));
    assert!(order.len() > 3);
    let limits = Limits { duration: Duration::ZERO, ..Limits::none() };
    let (curve, order, _) = made_up(&relation.source, &[16 * KB], limits);
    assert_eq!((curve.stop, order.len(), curve.kernel.ns_per_block()), (Some(Stop::Duration), 1, None));
}

#[test]
fn eviction_ends_with_the_time() {
    let relation = Relation::new(64, 0..64);
    let (roots, clock) = (Roots::default(), Manual::default());
    let observer = Observer::new(Account::Own, &[], &roots);
    let limits = Limits { duration: Duration::from_millis(50), ..Limits::none() };
    let run =
        ReadaheadRun { source: &relation.source, in_force: 0, windows: &[], limits, observer: &observer };
    let mut engine = Recorder { room: ROOM_OF_SLOT as usize, ..Recorder::new(&clock, 500_000) };
    // The time is up when the first turn begins to evict.
    let mut asked = 0;
    let mut should_stop = || {
        asked += 1;
        clock.advance(100_000_000);
        None
    };
    let mut budget = Budget::unlimited(&clock, &mut should_stop);
    let curve = curve(&run, &mut engine, &mut budget, &mut |_, _, _| ()).expect("measured");
    drop(budget);
    assert_eq!((curve.stop, asked), (Some(Stop::Duration), 1));
}

#[test]
fn all_rounds_of_a_small_relation_are_no_bytes_used_up() {
    let relation = Relation::new(1, 0..1);
    let (curve, order, _) = made_up(&relation.source, &[], Limits::none());
    assert_eq!((order.len() as u64, curve.stop), (2 * MOST_ROUNDS, None));
}

#[test]
fn a_rate_limit_makes_it_pause_between_turns() {
    let relation = Relation::new(256, 0..256);
    let limits = Limits { max_mib_s: Some(20), max_bytes: 1024 * BLOCK, ..Limits::none() };
    let (curve, order, ns) = made_up(&relation.source, &[], limits);
    assert!(curve.paused);
    assert_eq!((order.len(), curve.stop), (4, Some(Stop::Bytes)));
    // Four turns of 2 MiB, each paid for before it is taken, the kernel's with what it reads ahead.
    let last = curve.kernel.blocks() as f64 * curve.kernel.ns_per_block().expect("a time");
    assert!(ns as f64 - last >= 412_500_000.0, "{ns}, {last}");
}

#[test]
fn a_share_of_the_time_makes_it_rest_between_turns() {
    let relation = Relation::new(256, 0..256);
    let limits = Limits { max_util: Some(0.1), max_bytes: 1024 * BLOCK, ..Limits::none() };
    let (curve, order, ns) = made_up(&relation.source, &[], limits);
    assert!(curve.paused);
    assert_eq!((order.len(), curve.stop), (4, Some(Stop::Bytes)));
    let of = |tally: &WindowTally| tally.blocks() as f64 * tally.ns_per_block().expect("a time");
    let busy = of(&curve.kernel) + of(&curve.twin);
    assert!(ns as f64 >= 9.9 * busy, "{ns}, {busy}");

    // Of two turns the last has its rest, too.
    let took = |max_util| {
        let limits = Limits { max_util, max_bytes: 256 * BLOCK, ..limits };
        let (_, order, ns) = made_up(&refusing(&relation), &[], limits);
        assert_eq!(order, [Contender::Kernel; 2]);
        ns as f64
    };
    let ratio = took(Some(0.1)) / took(None);
    assert!((9.5..10.0).contains(&ratio), "{ratio}");
}

#[test]
fn turns_leave_a_gap_where_there_is_room() {
    assert_eq!(start_of_turn(0, 10, 5, 100), 0);
    assert_eq!(start_of_turn(10, 10, 5, 100), 15);
    assert_eq!(start_of_turn(85, 10, 5, 100), 90);
    assert_eq!(start_of_turn(86, 10, 5, 100), 0, "it goes on at the beginning");
    // Of a small relation each part has its turn.
    assert_eq!([start_of_turn(10, 10, 5, 30), start_of_turn(20, 10, 5, 30)], [10, 20]);
    assert_eq!(start_of_turn(30, 10, 5, 30), 0);
}

#[test]
fn nothing_to_read_is_no_curve() {
    let relation = Relation::new(0, 0..0);
    let limits = Limits { max_bytes: BLOCK, ..Limits::none() };
    let (curve, ..) = made_up(&relation.source, &[16 * KB], limits);
    assert_eq!((curve.kernel.ns_per_block(), curve.cache_cost(), curve.stop), (None, None, None));
    let holes = Relation::new(64, 0..0);
    let limits = Limits { max_bytes: 256 * BLOCK, ..Limits::none() };
    let (curve, ..) = made_up(&holes.source, &[16 * KB], limits);
    assert_eq!((curve.kernel.turns(), curve.kernel.holes), (0, 128));
}

#[test]
fn a_turn_that_its_time_cuts_short_is_of_whole_windows_from_then_on() {
    let cut = |blocks, stop| Scan { blocks: 0..blocks, stop, ..scan_of(1) };
    // Seven windows, and one block of the eighth, for which it had to wait.
    assert_eq!(fitting(8192, &cut(7 * 1024 + 1, Some(Stop::Duration)), 1024), 7 * 1024);
    assert_eq!(fitting(8192, &cut(8192, None), 1024), 8192);
    assert_eq!(fitting(8192, &cut(7 * 1024 + 1, Some(Stop::Statement)), 1024), 8192);
    assert_eq!(fitting(8192, &cut(100, Some(Stop::Duration)), 1024), 8192);
    assert_eq!(fitting(8192, &cut(100, Some(Stop::Duration)), 0), 100);
}
