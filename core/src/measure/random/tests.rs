//! Runs over a made-up disk with a made-up clock, and over real files.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::Error;
use crate::engine::{self, Completion, Engine, Kind};
use crate::files::page_cache::{ResidencyMethod, decided};
use crate::files::relation_files::fixture::{BLOCK, Relation};
use crate::files::{Access, Part, RelationFiles};
use crate::run::budget::{BoundSource, LatencyBound, StopCheck};
use crate::run::clock::{Clock, Manual, Monotonic};
use crate::run::order::Permutation;

fn fetch_order(relation: &Relation, seed: u64, look: Look) -> FetchOrder<'_> {
    FetchOrder::new(&relation.source, Permutation::new(relation.source.blocks(), seed), 0, look)
}

/// A disk that serves requests side by side, each in a time that `takes` gives for its number.
struct Disk<'a> {
    clock: &'a Manual,
    takes: &'a dyn Fn(u64) -> u64,
    /// End of each request in flight, its slot, and what it gives.
    in_flight: VecDeque<(u64, usize, Result<usize, i32>)>,
    requests: Vec<u64>,
    gives: &'a dyn Fn(u64) -> Result<usize, i32>,
}

impl<'a> Disk<'a> {
    fn new(clock: &'a Manual, takes: &'a dyn Fn(u64) -> u64) -> Self {
        Self {
            clock,
            takes,
            in_flight: VecDeque::new(),
            requests: Vec::new(),
            gives: &|_| Ok(BLOCK as usize),
        }
    }
}

impl Engine for Disk<'_> {
    fn submit_at(&mut self, slot: usize, _at: usize, _file: &Arc<File>, offset: u64, _len: usize) {
        let end = crate::run::clock::Clock::now(self.clock) + (self.takes)(self.requests.len() as u64);
        self.in_flight.push_back((end, slot, (self.gives)(self.requests.len() as u64)));
        self.requests.push(offset);
    }

    fn wait(&mut self, _idle: &mut dyn FnMut()) -> crate::Result<Completion> {
        let next =
            (0..self.in_flight.len()).min_by_key(|&i| self.in_flight[i].0).expect("something in flight");
        let (end, slot, result) = self.in_flight.remove(next).expect("it is there");
        self.clock.advance(end.saturating_sub(crate::run::clock::Clock::now(self.clock)));
        Ok(Completion { slot, result })
    }

    fn bytes(&self, _slot: usize, _at: usize, _len: usize) -> &[u8] {
        &[]
    }
}

fn limits() -> Limits {
    Limits { duration: Duration::from_secs(1000), ..Limits::none() }
}

/// A run that is part of no other, and reports no progress.
fn run(
    fetch_order: &mut FetchOrder<'_>,
    reader: &mut FetchReader<'_>,
    limits: &Limits,
    clock: &dyn Clock,
    should_stop: &mut StopCheck<'_>,
) -> Result<RandomRun> {
    super::run(fetch_order, reader, limits, &mut Budget::unlimited(clock, should_stop), &mut |_| ())
}

fn simulate(relation: &Relation, depth: usize, limits: &Limits, takes: &dyn Fn(u64) -> u64) -> RandomRun {
    let clock = Manual::default();
    let mut disk = Disk::new(&clock, takes);
    let mut fetch_order = fetch_order(relation, 1, Look::Never);
    let mut queued = Queued::new(&mut disk, depth);
    run(&mut fetch_order, &mut queued, limits, &clock, &mut || None).expect("a run")
}

#[test]
fn one_request_after_the_other() {
    let relation = Relation::new(700, 0..700);
    let run = simulate(&relation, 1, &limits(), &|i| if i == 0 { 900_000 } else { 100_000 });
    assert_eq!((run.fetches, run.complete, run.stop), (700, true, None));
    assert_eq!(run.warmup_ns, Some(900_000));
    assert_eq!((run.latencies.total().ns_each(), run.latencies.most()), (Some(100_000.0), Some(100_000)));
    assert_eq!(run.rated, Slice { ns: 699 * 100_000, work: 699 });
    assert_eq!(run.iops(), Some(10_000.0));
    assert_eq!(run.elapsed_ns, 900_000 + 699 * 100_000);
    assert_eq!(run.tiers, Tiers { shared: 0, os: 0, device: 700 });
    assert_eq!(run.by_tier[2], Slice { ns: 699 * 100_000, work: 699 });
}

#[test]
fn a_queue_keeps_its_depth_and_its_ends_are_left_out() {
    let relation = Relation::new(2000, 0..2000);
    for depth in [2, 8, 32] {
        let run = simulate(&relation, depth, &limits(), &|i| 100_000 + i * 7919 % 1000);
        let expected = depth as f64 / 100_500e-9;
        let iops = run.iops().expect("a rate");
        assert!((iops / expected - 1.0).abs() < 0.01, "{depth}: {iops}, not {expected}");
        assert_eq!(run.fetches, 2000);
        assert_eq!(run.rated.work, 2000 - 2 * depth as u64 + 1);
        // The first `depth` latencies don't count, the last do.
        assert_eq!(run.latencies.total().work, 2000 - depth as u64);
        assert!(run.latencies.quantile(0.0) >= Some(100_000) && run.latencies.most() <= Some(101_000));
    }
}

/// How much of a relation is dirty in the page cache.
fn dirty_bytes(relation: &Relation) -> u64 {
    let source = relation.source.afresh();
    let of = |part: Part| {
        let open = source.open(part.segment, Access::Buffered).expect("opened");
        open.residency(source.byte_range(&part)).expect("residency").dirty_bytes.unwrap_or(0)
    };
    source.parts(0..source.blocks()).map(of).sum()
}

/// Writes all blocks again, and syncs none of them.
fn make_dirty(relation: &Relation) {
    let source = &relation.source;
    for part in source.parts(0..source.blocks()) {
        let file = File::options().write(true).open(source.path(part.segment)).expect("opened");
        let bytes = source.byte_range(&part);
        file.write_all_at(&vec![2; (bytes.end - bytes.start) as usize], bytes.start).expect("written");
    }
}

#[test]
fn what_is_dirty_is_written_back_before_the_clock_runs() {
    // The files of the second are too many to stay open.
    for relation in [Relation::new(700, 0..700), Relation::of_segments(16, 800, 0..800)] {
        make_dirty(&relation);
        let dirty = dirty_bytes(&relation);
        let clock = Manual::default();
        let mut disk = Disk::new(&clock, &|_| 100_000);
        let mut fetch_order = fetch_order(&relation, 1, Look::Never);
        // As long as there is something to write back, time passes.
        let mut should_stop = || {
            clock.advance(if dirty_bytes(&relation) > 0 { 1_000_000_000 } else { 0 });
            None
        };
        let limits = Limits { duration: Duration::from_millis(500), ..limits() };
        let mut queued = Queued::new(&mut disk, 1);
        let run = run(&mut fetch_order, &mut queued, &limits, &clock, &mut should_stop).expect("a run");
        assert_eq!((run.fetches, run.stop), (relation.source.blocks(), None));
        assert_eq!(run.elapsed_ns, run.fetches * 100_000);
        assert_eq!(fetch_order.written_back() > 0, dirty > 0);
        assert_eq!(dirty_bytes(&relation), 0);
    }
}

#[test]
fn what_may_be_dirty_is_written_back_where_the_kernel_does_not_tell() {
    for relation in [Relation::new(700, 0..700), Relation::of_segments(16, 800, 0..800)] {
        make_dirty(&relation);
        let mut fetch_order = fetch_order(&relation, 1, Look::Never);
        let seen = decided::forced(ResidencyMethod::Mincore, || fetch_order.inspect_segments(&mut || None));
        assert!(seen.is_ok());
        assert_eq!(dirty_bytes(&relation), 0);
    }
}

#[test]
fn a_reason_to_stop_that_comes_up_before_the_clock_runs_ends_the_run() {
    let relation = Relation::new(700, 0..700);
    let clock = Manual::default();
    let mut disk = Disk::new(&clock, &|_| 100_000);
    let mut fetch_order = fetch_order(&relation, 1, Look::Never);
    // It is not given twice.
    let mut reasons = [Stop::LockWaiter].into_iter();
    let mut should_stop = || reasons.next();
    let mut queued = Queued::new(&mut disk, 1);
    let run = run(&mut fetch_order, &mut queued, &limits(), &clock, &mut should_stop).expect("a run");
    assert_eq!((run.fetches, run.stop), (0, Some(Stop::LockWaiter)));
}

#[test]
fn what_lasts_longer_than_the_statement_before_the_clock_runs_ends_the_run() {
    let relation = Relation::of_segments(100, 300, 0..300);
    let clock = Manual::default();
    let mut disk = Disk::new(&clock, &|_| 100_000);
    let mut fetch_order = fetch_order(&relation, 1, Look::Never);
    // A look at a segment takes longer than the statement has.
    let mut asked = 0;
    let mut should_stop = || {
        asked += 1;
        clock.advance(2_000_000);
        None
    };
    let mut budget = Budget::of_statement(Duration::from_millis(1), &clock, &mut should_stop);
    let run =
        super::run(&mut fetch_order, &mut Queued::new(&mut disk, 1), &limits(), &mut budget, &mut |_| ())
            .expect("a run");
    drop(budget);
    assert_eq!((run.fetches, run.stop, asked), (0, Some(Stop::Statement), 1));
}

#[test]
fn what_is_slow_once_in_a_thousand_shows_in_the_tail() {
    let relation = Relation::new(60_000, 0..60_000);
    let run = simulate(&relation, 1, &limits(), &|i| if i % 1000 == 500 { 40_000_000 } else { 80_000 });
    let q = |q| run.latencies.quantile(q).expect("a quantile") as f64;
    assert!((q(0.99) / 80e3 - 1.0).abs() < 0.01);
    assert!((q(0.999) / 40e6 - 1.0).abs() < 0.01, "{}", q(0.999));
    assert_eq!(run.latencies.most(), Some(40_000_000));
}

#[test]
fn segments_that_are_many_are_looked_at_beside_requests_in_flight() {
    let relation = Relation::of_segments(16, 2000, 0..2000);
    let run = simulate(&relation, 8, &limits(), &|_| 100_000);
    // No time passes on the made-up clock, so that nothing is disturbed.
    assert_eq!((run.fetches, run.rated.work, run.latencies.total().work), (2000, 1985, 1992));
}

/// What `work` records on this clock.
fn recorded(clock: &Manual, work: impl FnOnce(&mut FetchRecord, &mut Stopwatch<'_>)) -> RandomRun {
    let (mut should_stop, mut progress) = (|| None, |_| ());
    let budget = Budget::unlimited(clock, &mut should_stop);
    let mut watch = Stopwatch::start(None, budget, &mut progress);
    let mut record = FetchRecord::start(&limits(), BLOCK as u32, watch.last());
    work(&mut record, &mut watch);
    record.finish(&watch)
}

const FETCH: Fetch = Fetch { block: 0, found: Found::Missing(BLOCK as u32) };

#[test]
fn what_was_disturbed_for_long_does_not_count() {
    let clock = Manual::default();
    let run = recorded(&clock, |record, watch| {
        for disturbance in [0, 0, 4_000, 6_000, 0] {
            let request = record.issue(watch, FETCH, Some(watch.now()), true);
            record.disturb(watch, |_| clock.advance(disturbance));
            clock.advance(100_000 - disturbance);
            let _ = record.done(watch, request, Served::Device, true);
        }
    });
    // The first is warm-up, and 6 of 100 us are too long.
    assert_eq!((run.rated.work, run.latencies.total().work), (4, 3));
}

#[test]
fn holes_take_no_time_of_the_request_after_them() {
    let clock = Manual::default();
    let run = recorded(&clock, |record, watch| {
        for _ in 0..3 {
            clock.advance(5_000);
            assert!(record.hole(watch).is_continue());
            let request = record.issue(watch, FETCH, Some(watch.last()), true);
            clock.advance(100_000);
            assert!(record.done(watch, request, Served::Device, true).is_continue());
        }
    });
    let (mean, most) = (run.latencies.total().ns_each(), run.latencies.most());
    assert_eq!((run.holes, mean, most), (3, Some(100_000.0), Some(100_000)));
    assert_eq!(run.rated, Slice { ns: 200_000, work: 2 });
}

#[test]
fn requests_in_flight_are_rate_times_latency_whatever_stalls() {
    let relation = Relation::of_segments(4000, 4000, 100..3900);
    for (depth, look) in [(4, Look::Never), (16, Look::Never), (16, Look::Each)] {
        let clock = Manual::default();
        let takes = |i| if i % 500 == 100 { 2_000_000 } else { 80_000 + i * 7919 % 20_000 };
        let mut disk = Disk::new(&clock, &takes);
        let mut fetch_order = fetch_order(&relation, 1, look);
        let mut queued = Queued::new(&mut disk, depth);
        let run = run(&mut fetch_order, &mut queued, &limits(), &clock, &mut || None).expect("a run");
        assert_eq!(run.latencies.most(), Some(2_000_000));
        let in_flight =
            run.latencies.total().ns_each().expect("a mean") * run.rated.work as f64 / run.rated.ns as f64;
        assert!((in_flight / depth as f64 - 1.0).abs() < 0.05, "{depth}: {in_flight}");
        // The rate may leave out the ends of the queue, not the stalls.
        let plain = run.with_data() as f64 * 1e9 / run.elapsed_ns as f64;
        assert!((0.95..1.15).contains(&(run.iops().expect("a rate") / plain)), "{:?}, {plain}", run.iops());
    }
}

#[test]
fn each_limit_ends_it_with_its_reason() {
    let relation = Relation::new(2000, 0..2000);
    for (limits, stop, fetches) in [
        (Limits { duration: Duration::from_millis(100), ..limits() }, Stop::Duration, 1000),
        (Limits { max_bytes: 300 * BLOCK + 1, ..limits() }, Stop::Bytes, 300),
    ] {
        let run = simulate(&relation, 1, &limits, &|_| 100_000);
        assert_eq!(run.stop, Some(stop));
        // It is asked twice in a millisecond.
        assert!((fetches..=fetches + 5).contains(&run.fetches), "{stop:?}: {}", run.fetches);
        assert!(!run.complete);
    }
    let many = Relation::new(12_000, 0..12_000);
    let run = simulate(&many, 1, &Limits { precision: Some(0.05), ..limits() }, &|_| 100_000);
    assert_eq!((run.stop, run.fetches), (Some(Stop::Precise), 10_001));
    let run = simulate(&relation, 8, &Limits { max_bytes: 300 * BLOCK, ..limits() }, &|_| 100_000);
    assert_eq!((run.stop, run.fetches), (Some(Stop::Bytes), 300), "exact at a depth, too");
    let run = simulate(&relation, 1, &Limits { max_bytes: 2000 * BLOCK, ..limits() }, &|_| 100_000);
    assert_eq!((run.stop, run.complete), (None, true));
}

/// A server that reads ahead by itself: the wait for each block takes `waits` nanoseconds.
struct Others<'a> {
    clock: &'a Manual,
    waits: u64,
}

impl BlockReader<Fetches<'_, '_>> for Others<'_> {
    fn read(&mut self, fetches: &mut Fetches<'_, '_>, watch: &mut Stopwatch<'_>) -> crate::Result<()> {
        let Fetches { fetch_order, record } = fetches;
        watch.begin();
        while let Some(fetch) = fetch_order.hand_out(watch.budget())? {
            self.clock.advance(self.waits);
            let request = record.issue(watch, fetch, None, false);
            if record.done(watch, request, Served::Unknown, true).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[test]
fn slow_answers_end_it_also_where_others_issue_the_requests() {
    let relation = Relation::new(2000, 0..2000);
    let limits = Limits { latency: LatencyBound::within(Duration::from_millis(1)), ..limits() };
    for (waits, stop, fetches) in
        [(1_000_001, Some(Stop::Slow(BoundSource::Call)), 11), (1_000_000, None, 2000)]
    {
        let clock = Manual::default();
        let mut others = Others { clock: &clock, waits };
        let mut fetch_order = fetch_order(&relation, 1, Look::Never);
        let run = run(&mut fetch_order, &mut others, &limits, &clock, &mut || None).expect("a run");
        assert_eq!((run.stop, run.fetches), (stop, fetches));
    }
}

#[test]
fn holes_count_but_have_no_time() {
    let relation = Relation::new(700, 100..300);
    for depth in [1, 4] {
        let run = simulate(&relation, depth, &limits(), &|_| 100_000);
        assert_eq!((run.fetches, run.holes, run.with_data()), (700, 500, 200));
        assert_eq!(run.tiers.device, 200);
        assert!(run.rated.work < 200 && run.latencies.total().work < 200);
    }
    let one = simulate(&relation, 1, &limits(), &|_| 100_000);
    assert_eq!((one.rated.work, one.iops()), (199, Some(10_000.0)));
    let none = simulate(&Relation::new(300, 0..0), 1, &limits(), &|_| 1000);
    assert_eq!((none.fetches, none.holes, none.iops(), none.complete), (300, 300, None, true));
    // Holes cost nothing of the budget.
    let few = simulate(&relation, 1, &Limits { max_bytes: 20 * BLOCK, ..limits() }, &|_| 100_000);
    assert_eq!((few.with_data(), few.stop), (20, Some(Stop::Bytes)));
}

#[test]
fn an_empty_relation_is_complete() {
    let run = simulate(&Relation::new(0, 0..0), 4, &limits(), &|_| 100_000);
    assert_eq!((run.fetches, run.complete, run.stop, run.iops()), (0, true, None, None));
}

#[test]
fn a_rate_limit_keeps_its_schedule() {
    let relation = Relation::new(256, 0..256);
    let limits = Limits { max_iops: Some(1000), ..limits() };
    let mut opened = engine::open(None, 1, BLOCK as usize).expect("an engine");
    let mut fetch_order = fetch_order(&relation, 1, Look::for_depth(1));
    let mut queued = Queued::new(opened.engine.as_mut(), 1);
    let run = run(&mut fetch_order, &mut queued, &limits, &Monotonic, &mut || None).expect("a run");
    assert!(run.throttled && run.complete);
    assert!(run.elapsed_ns >= 255_000_000, "{}", run.elapsed_ns);
    let iops = run.iops().expect("a rate");
    assert!(iops < 1010.0, "{iops}");
    assert!(run.interval.is_none());
}

#[test]
fn a_limit_of_bytes_is_kept_in_bursts() {
    let relation = Relation::new(512, 0..512);
    // 1024 a second: after the eleventh they are 10 ms ahead.
    let limits = Limits { max_mib_s: Some(8), ..limits() };
    let (clock, fetched) = (Manual::default(), Cell::new(0));
    let takes = |_| {
        fetched.set(fetched.get() + 1);
        1_000
    };
    let mut disk = Disk::new(&clock, &takes);
    let mut fetch_order = fetch_order(&relation, 1, Look::Never);
    let mut queued = Queued::new(&mut disk, 1);
    // A run that sleeps asks whether to stop.
    let mut after = BTreeSet::new();
    let mut should_stop = || {
        after.insert(fetched.get());
        None
    };
    let run = run(&mut fetch_order, &mut queued, &limits, &clock, &mut should_stop).expect("a run");
    assert!(run.throttled && run.complete);
    assert!(run.elapsed_ns >= 485_000_000, "{}", run.elapsed_ns);
    // In each of 47 pauses, and after the request that ends it.
    assert!(after.len() <= 100, "{after:?}");
}

#[test]
fn a_share_of_the_time_is_kept_at_each_depth() {
    let relation = Relation::new(4000, 0..4000);
    for (depth, util) in [(1, 0.05), (1, 0.2), (8, 0.05), (8, 0.5)] {
        let limits = Limits { max_util: Some(util), max_bytes: 300 * BLOCK, ..limits() };
        let (clock, busy, end) = (Manual::default(), Cell::new(0u64), Cell::new(0u64));
        // Those of a queue are served side by side.
        let takes = |i: u64| {
            let (now, takes) = (clock.now(), 100_000 + i * 7919 % 1000);
            busy.set(busy.get() + (now + takes).saturating_sub(now.max(end.get())));
            end.set(end.get().max(now + takes));
            takes
        };
        let mut disk = Disk::new(&clock, &takes);
        let mut fetch_order = fetch_order(&relation, 1, Look::Never);
        let mut queued = Queued::new(&mut disk, depth);
        let run = run(&mut fetch_order, &mut queued, &limits, &clock, &mut || None).expect("a run");
        assert!(run.throttled && run.with_data() == 300);
        let share = busy.get() as f64 / run.elapsed_ns as f64;
        // The last of them have their rest still before them.
        assert!(share > 0.5 * util && share < 1.1 * util, "{depth}, {util}: {share}");
    }
}

#[test]
fn a_share_so_small_that_nothing_follows_ends_with_its_time() {
    let relation = Relation::new(4096, 0..4096);
    for depth in [1, 8] {
        let limits =
            Limits { max_util: Some(1e-300), duration: Duration::from_millis(500), ..Limits::none() };
        let mut opened = engine::open(None, depth, BLOCK as usize).expect("an engine");
        let mut fetch_order = fetch_order(&relation, 1, Look::Never);
        let mut queued = Queued::new(opened.engine.as_mut(), depth);
        let run = run(&mut fetch_order, &mut queued, &limits, &Monotonic, &mut || None);
        let run = run.expect("a run");
        assert_eq!((run.stop, run.throttled), (Some(Stop::Duration), true));
        assert!(run.fetches == 1 || depth > 1 && run.fetches < 4096, "{}", run.fetches);
    }
}

#[test]
fn a_short_relation_rests_before_it_is_read_again() {
    let relation = Relation::new(4, 0..4);
    let limits = Limits { max_util: Some(0.1), ..limits() };
    let clock = Manual::default();
    let takes = |_| 1_000_000;
    let mut disk = Disk::new(&clock, &takes);
    let mut fetch_order = fetch_order(&relation, 1, Look::Never);
    let mut queued = Queued::new(&mut disk, 4);
    let run = run(&mut fetch_order, &mut queued, &limits, &clock, &mut || None).expect("a run");
    assert!(run.complete && run.elapsed_ns >= 10_000_000, "{}", run.elapsed_ns);
}

#[test]
fn a_rate_limit_that_never_empties_the_queue_is_seen() {
    let relation = Relation::new(4000, 0..4000);
    let by_count = Limits { max_iops: Some(3000), ..limits() };
    let by_size = Limits { max_mib_s: Some(23), ..limits() };
    for (limits, takes, throttled) in [
        // 5,333 a second without a limit: about five of eight are in flight.
        (by_count, 1_500_000, true),
        (by_size, 1_500_000, true),
        // Just above the limit: the queue was filled, and has a place empty now and then.
        (by_count, 2_650_000, true),
        // 2,666 and 400 a second: after the queue is filled, no limit is felt.
        (by_count, 3_000_000, false),
        (by_size, 3_000_000, false),
        (by_count, 20_000_000, false),
    ] {
        let run = simulate(&relation, 8, &limits, &|i| takes + i * 7919 % 1000);
        assert_eq!((run.throttled, run.interval.is_none()), (throttled, throttled), "{takes}");
        let iops = run.iops().expect("a rate");
        let expected = if throttled { 3000.0 } else { 8e9 / (takes + 500) as f64 };
        assert!((iops / expected - 1.0).abs() < 0.03, "{takes}: {iops}, not {expected}");
    }
}

#[test]
fn a_late_request_makes_the_next_ones_late_but_not_their_schedule() {
    let relation = Relation::new(512, 0..512);
    // Due every 100 us; one takes 5 ms, all others 50 us. What piled up is served one by one, since the queue
    // has one place.
    let limits = Limits { max_iops: Some(10_000), ..limits() };
    let (clock, begun) = (Manual::default(), RefCell::new(Vec::new()));
    let takes = |i| {
        begun.borrow_mut().push(clock.now());
        if i == 100 { 5_000_000 } else { 50_000 }
    };
    let mut disk = Disk::new(&clock, &takes);
    let mut fetch_order = fetch_order(&relation, 1, Look::Never);
    let mut queued = Queued::new(&mut disk, 1);
    let run = run(&mut fetch_order, &mut queued, &limits, &clock, &mut || None).expect("a run");
    let late = |i: usize| begun.borrow()[i] - i as u64 * 100_000;
    assert_eq!([99, 100, 101, 102, 200, 511].map(late), [0, 0, 4_900_000, 4_850_000, 0, 0]);
    assert_eq!(run.latencies.most(), Some(5_000_000));
    assert!(run.latencies.quantile(0.9) < Some(60_000));
}

#[test]
fn errors_name_file_and_offset_and_leave_nothing_in_flight() {
    let relation = Relation::new(700, 0..700);
    for (gives, wanted) in [(Err(libc::EIO), "Input/output error"), (Ok(512), "read only 512 of 8192 bytes")]
    {
        let clock = Manual::default();
        let fails = move |i| if i == 123 { gives } else { Ok(BLOCK as usize) };
        let mut disk = Disk { gives: &fails, ..Disk::new(&clock, &|_| 1000) };
        let mut fetch_order = fetch_order(&relation, 9, Look::Never);
        let mut queued = Queued::new(&mut disk, 4);
        let error = run(&mut fetch_order, &mut queued, &limits(), &clock, &mut || None).expect_err("EIO");
        let block = Permutation::new(700, 9).at(123);
        let path = relation.source.path(relation.source.segment(block));
        let text = error.to_string();
        assert!(
            text.contains(&format!("\"{}\" at offset {}", path.display(), relation.source.offset(block))),
            "{text}"
        );
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn each_block_once_over_all_segments_in_the_order_of_the_seed() {
    let relation = Relation::new(700, 0..700);
    let clock = Manual::default();
    let mut disk = Disk::new(&clock, &|_| 1000);
    let mut fetch_order = fetch_order(&relation, 5, Look::Never);
    let mut queued = Queued::new(&mut disk, 1);
    run(&mut fetch_order, &mut queued, &limits(), &clock, &mut || None).expect("a run");
    let order = Permutation::new(700, 5);
    let expected: Vec<u64> = (0..700).map(|i| relation.source.offset(order.at(i))).collect();
    assert_eq!(disk.requests, expected);
    // From another place in the order, it goes round.
    let mut disk = Disk::new(&clock, &|_| 1000);
    let mut fetch_order = FetchOrder::new(&relation.source, order, 650, Look::Never);
    let run = run(&mut fetch_order, &mut Queued::new(&mut disk, 1), &limits(), &clock, &mut || None);
    assert!(run.expect("a run").complete);
    let round: Vec<u64> = expected[650..].iter().chain(&expected[..650]).copied().collect();
    assert_eq!(disk.requests, round);
}

/// Reads blocks without readahead, so that just these come to be cached.
fn cache(relation: &Relation, blocks: impl Iterator<Item = u64>) {
    let own = relation.source.afresh();
    for block in blocks {
        let file = &own.open(own.segment(block), Access::Buffered).expect("opened").file;
        nix::fcntl::posix_fadvise(file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_RANDOM)
            .expect("advised");
        file.read_exact_at(&mut [0; BLOCK as usize], own.offset(block)).expect("read");
    }
}

#[test]
fn what_others_cache_during_a_pause_is_seen() {
    let relation = Relation::new(64, 0..64);
    let tenth = Permutation::new(64, 1).at(9);
    let cached = |look: Look| {
        relation.evict();
        let takes = |request| {
            if request == 0 {
                cache(&relation, std::iter::once(tenth));
            }
            100_000
        };
        let clock = Manual::default();
        let (mut disk, mut fetch_order) = (Disk::new(&clock, &takes), fetch_order(&relation, 1, look));
        let run = run(&mut fetch_order, &mut Queued::new(&mut disk, 1), &limits(), &clock, &mut || None);
        run.expect("a run").tiers.os
    };
    assert_eq!(cached(Look::for_depth(1).for_pauses()), 1);
    assert_eq!(cached(Look::for_depth(1)), 0, "a batch was looked for before");
}

#[test]
fn the_page_cache_is_told_from_the_device_block_by_block() {
    let relation = Relation::new(700, 0..700);
    let engines = || {
        let mut all = vec![(1, engine::open(None, 1, BLOCK as usize).expect("pread").engine)];
        all.push((8, engine::open(Some(Kind::Threads), 8, BLOCK as usize).expect("threads").engine));
        all.extend(engine::open(Some(Kind::IoUring), 8, BLOCK as usize).ok().map(|o| (8, o.engine)));
        all
    };
    for (depth, mut engine) in engines() {
        relation.evict();
        cache(&relation, (0..700).step_by(2));
        let mut fetch_order = fetch_order(&relation, 3, Look::Batches(1));
        let mut queued = Queued::new(engine.as_mut(), depth);
        let run = run(&mut fetch_order, &mut queued, &limits(), &Monotonic, &mut || None).expect("a run");
        assert_eq!((run.fetches, run.complete, run.unknown), (700, true, 0));
        assert!(run.tiers.os >= 350, "{:?}", run.tiers);
        // The kernel reads ahead around a miss, if at all, so that some more may be found.
        assert!(run.tiers.device > 0 && run.tiers.os + run.tiers.device == 700, "{:?}", run.tiers);
        // One page of a block may be missing.
        let most = run.tiers.device * BLOCK;
        assert!(run.missing_bytes > most / 2 && run.missing_bytes <= most, "{} of {most}", run.missing_bytes);
    }
}

#[test]
fn how_to_look_into_the_page_cache_is_decided_once_a_file() {
    let relation = Relation::new(700, 0..700);
    let mut engine = engine::open(Some(Kind::Threads), 8, BLOCK as usize).expect("threads").engine;
    let before = decided::times();
    let mut fetch_order = fetch_order(&relation, 1, Look::Each);
    let mut queued = Queued::new(engine.as_mut(), 8);
    let run = run(&mut fetch_order, &mut queued, &limits(), &Monotonic, &mut || None);
    assert_eq!(run.expect("a run").fetches, 700);
    assert_eq!(decided::times() - before, 3);
}

#[test]
fn where_the_file_system_has_a_cache_of_its_own_no_tier_is_known() {
    let relation = Relation::new(700, 0..700);
    let fetch = |look| {
        let mut engine = engine::open(None, 1, BLOCK as usize).expect("pread").engine;
        let (mut fetch_order, mut queued) =
            (fetch_order(&relation, 1, look), Queued::new(engine.as_mut(), 1));
        decided::forced(ResidencyMethod::Unknown, || {
            run(&mut fetch_order, &mut queued, &limits(), &Monotonic, &mut || None)
        })
    };
    let run = fetch(Look::for_depth(1)).expect("a run");
    assert_eq!((run.fetches, run.unknown, run.tiers), (700, 700, Tiers::default()));
    assert!(matches!(fetch(Look::Never), Err(Error::Unsupported { what: "O_DIRECT", .. })));
}

#[test]
fn files_are_closed_again() {
    // A segment a block: 200 files.
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    let source = RelationFiles::new(directory.path().join("1"), BLOCK as u32, 1, 200);
    for segment in 0..200 {
        std::fs::write(source.path(segment), [1; BLOCK as usize]).expect("written");
    }
    let opened_below = || {
        let links = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
        links
            .filter_map(|l| std::fs::read_link(l.path()).ok())
            .filter(|t| t.starts_with(directory.path()))
            .count()
    };
    let mut engine = engine::open(Some(Kind::Threads), 4, BLOCK as usize).expect("threads").engine;
    let mut fetch_order = FetchOrder::new(&source, Permutation::new(200, 1), 0, Look::for_depth(4));
    let mut most = 0;
    let mut should_stop = || {
        most = most.max(opened_below());
        None
    };
    let mut queued = Queued::new(engine.as_mut(), 4);
    let run = run(&mut fetch_order, &mut queued, &limits(), &Monotonic, &mut should_stop).expect("a run");
    assert_eq!(run.fetches, 200);
    drop(source);
    assert!((1..=52).contains(&most), "{most}");
    assert_eq!(opened_below(), 0);
}

#[test]
fn a_sweep_visits_all_depths_in_turn_and_begins_again_when_it_is_through() {
    let relation = Relation::new(2000, 0..2000);
    // A sweep owns its engines, so the made-up disk lives for ever.
    let clock: &'static Manual = Box::leak(Box::default());
    let mut engines = Engines {
        single: Box::new(Disk::new(clock, &|_| 100_000)),
        queue: Box::new(Disk::new(clock, &|_| 100_000)),
    };
    let mut fetch_order = fetch_order(&relation, 1, Look::Never);
    let per_depth = Limits { duration: Duration::from_secs(1), ..limits() };
    let depths = [1, 2, 4, 8];
    let mut sweep = |limits, statement| {
        let sweep = Sweep { depths: &depths, limits, seed: 1, bursts_every: Duration::ZERO };
        let mut should_stop = || None;
        let mut budget = Budget::of_statement(statement, clock, &mut should_stop);
        super::sweep(&mut fetch_order, &mut engines, sweep, &mut budget, &mut |_| ()).expect("a sweep")
    };
    let (steps, stop) = sweep(per_depth, Duration::MAX);
    assert_eq!(stop, None);
    for (step, depth) in steps.iter().zip(depths) {
        let run = step.run.as_ref().expect("a run");
        let expected = depth as f64 / 100e-6;
        assert_eq!(step.depth, depth);
        assert!((run.iops().expect("a rate") / expected - 1.0).abs() < 0.02, "{:?}", run.iops());
        assert!(run.interval.is_some());
        assert!(run.fetches > 2000, "begins again");
    }
    let (steps, stop) = sweep(per_depth, Duration::from_millis(300));
    assert_eq!(stop, Some(Stop::Statement));
    assert!(steps.iter().all(|step| step.run.as_ref().is_some_and(|run| run.interval.is_none())));
    // Rounds so short that each queue is just filled and emptied.
    let slow = Limits {
        duration: Duration::from_micros(20),
        latency: LatencyBound::within(Duration::from_micros(99)),
        ..per_depth
    };
    let (steps, stop) = sweep(slow, Duration::MAX);
    assert_eq!(stop, Some(Stop::Slow(BoundSource::Call)));
    assert_eq!(steps.iter().filter_map(|step| step.run.as_ref()).map(|run| run.fetches).sum::<u64>(), 15);
}

/// A disk with one head serves 160 a second, however many wait.
#[test]
fn a_sweep_of_a_slow_device_keeps_its_time_and_has_all_rates() {
    let relation = Relation::new(2000, 0..2000);
    let clock: &'static Manual = Box::leak(Box::default());
    // As many as are in flight share it.
    const DEPTHS: [usize; 4] = [1, 4, 16, 64];
    for per_depth in [1, 4] {
        let mut engines = Engines {
            single: Box::new(Disk::new(clock, &|_| 6_250_000)),
            queue: Box::new(Disk::new(clock, &|_| 100_000_000)),
        };
        let mut fetch_order = fetch_order(&relation, 1, Look::Never);
        let limits = Limits { duration: Duration::from_secs(per_depth), ..limits() };
        let sweep = Sweep { depths: &DEPTHS, limits, seed: 1, bursts_every: Duration::ZERO };
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(clock, &mut should_stop);
        let began = clock.now();
        let (steps, stop) =
            super::sweep(&mut fetch_order, &mut engines, sweep, &mut budget, &mut |_| ()).expect("a sweep");
        let took = (clock.now() - began) as f64 / 1e9;
        assert_eq!(stop, None);
        // One request takes a tenth of a second.
        assert!(took < (4 * per_depth) as f64 + 0.2, "{took} s");
        let known = steps.iter().filter(|step| step.run.as_ref().is_some_and(|run| run.interval.is_some()));
        assert_eq!(known.count(), 4, "{per_depth}");
    }
}

/// A volume held at a rate: each request takes a time, and none is answered before its turn. What is not used
/// is saved up for a while.
struct Volume<'a> {
    clock: &'a Manual,
    /// Nanoseconds of a request, and between two of them; and for how long it saves.
    takes: u64,
    every: &'a Cell<u64>,
    saves: u64,
    /// It answers in bursts so far apart, if not zero.
    bursts_every: u64,
    next: &'a Cell<u64>,
    in_flight: VecDeque<(u64, usize)>,
}

impl Engine for Volume<'_> {
    fn submit_at(&mut self, slot: usize, _at: usize, _file: &Arc<File>, _offset: u64, _len: usize) {
        let now = self.clock.now();
        let turn = self.next.get().max(now.saturating_sub(self.saves)) + self.every.get();
        self.next.set(turn);
        let burst = turn.checked_div(self.bursts_every);
        let turn = burst.map_or(turn, |burst| burst * self.bursts_every);
        self.in_flight.push_back((turn.max(now + self.takes), slot));
    }

    fn wait(&mut self, _idle: &mut dyn FnMut()) -> crate::Result<Completion> {
        let (end, slot) = self.in_flight.pop_front().expect("something in flight");
        self.clock.advance(end.saturating_sub(self.clock.now()));
        Ok(Completion { slot, result: Ok(BLOCK as usize) })
    }

    fn bytes(&self, _slot: usize, _at: usize, _len: usize) -> &[u8] {
        &[]
    }
}

/// The steps of a sweep of six seconds over a volume of so many requests a second, and fewer from some time
/// on.
fn swept(per_second: u64, then: Option<(Duration, u64)>) -> Vec<Step> {
    swept_for(Duration::from_secs(6) / 7, per_second, then, Duration::ZERO)
}

/// So long for each depth, and in bursts.
fn swept_for(
    per_depth: Duration,
    per_second: u64,
    then: Option<(Duration, u64)>,
    bursts_every: Duration,
) -> Vec<Step> {
    let relation = Relation::new(2000, 0..2000);
    let clock: &'static Manual = Box::leak(Box::default());
    let every: &'static Cell<u64> = Box::leak(Box::new(Cell::new(1_000_000_000 / per_second)));
    let next: &'static Cell<u64> = Box::leak(Box::default());
    let volume = || Volume {
        clock,
        takes: 700_000,
        every,
        saves: bursts_every.max(Duration::from_millis(10)).as_nanos() as u64,
        bursts_every: bursts_every.as_nanos() as u64,
        next,
        in_flight: VecDeque::new(),
    };
    let mut engines = Engines { single: Box::new(volume()), queue: Box::new(volume()) };
    let mut fetch_order = fetch_order(&relation, 1, Look::Never);
    let limits = Limits { duration: per_depth, ..limits() };
    let sweep = Sweep { depths: &[1, 2, 4, 8, 16, 32, 64], limits, seed: 1, bursts_every };
    let mut should_stop = || None;
    let mut budget = Budget::unlimited(clock, &mut should_stop);
    let mut slow_down = |_| {
        if let Some((_, slower)) = then.filter(|(at, _)| clock.now() >= at.as_nanos() as u64) {
            every.set(1_000_000_000 / slower);
        }
    };
    super::sweep(&mut fetch_order, &mut engines, sweep, &mut budget, &mut slow_down).expect("a sweep").0
}

#[test]
fn no_depth_lives_on_what_a_volume_has_saved_up() {
    for step in swept(3000, None) {
        let run = step.run.expect("a run");
        let expected = (step.depth as f64 / 700e-6).min(3000.0);
        let iops = run.iops().expect("a rate");
        assert!((iops / expected - 1.0).abs() < 0.03, "{}: {iops}, not {expected}", step.depth);
        assert_eq!((run.interval.is_some(), run.slowed), (true, None), "{}", step.depth);
    }
}

/// As the kernel holds back a control group.
#[test]
fn a_limit_that_lets_through_in_bursts_gives_its_rate() {
    for per_second in [500, 3000] {
        for step in swept_for(Duration::from_secs(3), per_second, None, Duration::from_millis(100)) {
            let run = step.run.expect("a run");
            let expected = (step.depth as f64 / 700e-6).min(per_second as f64);
            let iops = run.iops().expect("a rate");
            assert!((iops / expected - 1.0).abs() < 0.07, "{}: {iops}, not {expected}", step.depth);
            assert!(run.interval.is_some(), "{}", step.depth);
        }
    }
}

#[test]
fn on_a_slow_volume_each_depth_has_an_interval_too() {
    for step in swept(300, None) {
        let run = step.run.expect("a run");
        let iops = run.iops().expect("a rate");
        assert!((iops / 300.0 - 1.0).abs() < 0.05, "{}: {iops}", step.depth);
        assert!(run.interval.is_some(), "{}", step.depth);
    }
}

#[test]
fn a_volume_that_slows_down_in_the_middle_is_seen() {
    for at in [1500, 3000, 4500] {
        let steps = swept(3000, Some((Duration::from_millis(at), 300)));
        let slowed = |step: &Step| step.run.as_ref().is_some_and(|run| run.slowed > Some(2.0));
        assert!(steps.iter().all(slowed), "{at} ms");
    }
}
