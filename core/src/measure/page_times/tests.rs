//! What is asked of a server, what becomes of its answers, and what is left of it in the OS cache.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::spans::{Spans, Supply};
use super::turns::{LEAST_SPARSE_TURNS, SPAN};
use super::*;
use crate::files::RelationFiles;
use crate::files::descriptors::MOST_OPEN;
use crate::files::page_cache::{ResidencyMethod, decided};
use crate::files::relation_files::fixture::{BLOCK, Relation};
use crate::machine::account::{Account, Lost};
use crate::machine::device::fixture::Fixture;
use crate::machine::device::{Leaf, Roots};
use crate::run::clock::{Clock, Manual};
use crate::stats::MIN_SLICES;

mod made_up;

use made_up::{Files, Limit, MadeUp, seconds};

const DENSITIES: [f64; 3] = [0.1, 0.4, 1.0];
const CONCURRENCIES: [u32; 2] = [0, 16];
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A relation of three stretches, of which nothing is cached.
fn cold_relation() -> Relation {
    let relation = Relation::new(5 * 2304, 0..5 * 2304);
    relation.evict();
    relation
}

/// An observer of no device.
static OBSERVER: LazyLock<Observer<'static>> = LazyLock::new(|| {
    static ROOTS: LazyLock<Roots> = LazyLock::new(Roots::default);
    Observer::new(Account::Own, &[], &ROOTS)
});

fn run(source: &RelationFiles) -> PageTimesRun<'_> {
    PageTimesRun {
        source,
        densities: &DENSITIES,
        concurrencies: &CONCURRENCIES,
        window: 128 * KIB,
        through_cache: true,
        only_cold: false,
        evicts: false,
        buffered: &[],
        seed: 1,
        observer: &OBSERVER,
        limits: Limits { duration: Duration::from_millis(400), ..Limits::none() },
        rough_after: None,
    }
}

fn server<'a>(run: &PageTimesRun<'a>, clock: &'a Manual) -> MadeUp<'a> {
    let mut server = MadeUp::new(run.source, clock);
    server.densities = run.densities.to_vec();
    server.window = run.window;
    server
}

fn measured(run: &PageTimesRun<'_>, server: &mut MadeUp<'_>, clock: &Manual) -> PageTimesResult {
    measure(run, server, &mut Budget::unlimited(clock, &mut || None), &mut |_| ()).expect("measured")
}

/// Checks a time, of memory the median: the kernel may take a page back before it is read again.
fn assert_near(series: &WaySeries, ns: f64, what: &str) {
    let time = if what.starts_with("OS") { series.of_memory() } else { series.of_device() };
    let us = time.unwrap_or_else(|| panic!("{what}: no time")).us;
    assert!((us * 1e3 / ns - 1.0).abs() < 0.02, "{what}: {us} us, not {ns} ns");
}

/// A block may lie in a file of its own, and is asked for several times.
#[test]
fn files_stay_open_from_look_to_look() {
    let blocks = MOST_OPEN as u64 + 10;
    let relation = Relation::of_segments(1, blocks, 0..blocks);
    for evicts in [false, true] {
        relation.evict();
        if evicts {
            relation.read(0..blocks);
        }
        let files = relation.source.afresh();
        let run = PageTimesRun { evicts, ..run(&files) };
        let mut spans = Spans::new(&run, 1, 1);
        let before = decided::times();
        for _ in 0..blocks {
            assert!(matches!(spans.take(&mut || None), Ok(Supply::Cold { .. })), "{evicts}");
        }
        spans.taken.release().expect("released");
        // Once each, and once more those beyond the most that stay open.
        assert_eq!(u64::from(decided::times() - before), blocks + 10, "{evicts}");
    }
}

#[test]
fn each_tier_has_its_time() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let run = run(&relation.source);
    let mut server = server(&run, &clock);
    // A few out of step, so that not all turns are alike.
    let mut noise = [0.01, -0.01, 0.0].into_iter().cycle();
    server.noise = Box::new(move |_| noise.next().unwrap_or(0.0));
    let measured = measured(&run, &mut server, &clock);
    for (series, ns, what) in [
        (&measured.shared, made_up::HIT, "shared"),
        (&measured.os_sequential, made_up::OS_SEQUENTIAL, "OS, in order"),
        (&measured.os_random, made_up::OS_RANDOM, "OS, at random"),
        (&measured.device_sequential, made_up::SEQUENTIAL, "device, in order"),
        (&measured.device_random, made_up::RANDOM, "device, at random"),
    ] {
        assert_near(series, ns, what);
    }
    assert!((measured.hit_ns().expect("hits") / made_up::HIT - 1.0).abs() < 0.02);
    for (concurrency, curve) in CONCURRENCIES.iter().zip(&measured.sparse) {
        for (density, series) in DENSITIES.iter().zip(curve) {
            let what = format!("{density} at {concurrency}");
            assert_near(series, made_up::sparse(*density, *concurrency), &what);
            assert_eq!((series.cached_pct(), series.discarded()), (Some(0.0), 0), "{what}");
        }
    }
    assert_eq!((measured.not_cold, measured.paused), (None, false));
}

#[test]
fn the_first_read_of_a_turn_is_no_figure() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let run = PageTimesRun { concurrencies: &[16], densities: &[0.4], ..run(&relation.source) };
    let mut server = server(&run, &clock);
    server.late_ns = 5_000_000;
    let measured = measured(&run, &mut server, &clock);
    assert_near(&measured.device_random, made_up::RANDOM, "device, at random");
    assert_near(&measured.sparse[0][0], made_up::sparse(0.4, 16), "0.4 at 16");
}

/// 3000 a second, the first 300 of each tenth at once.
#[test]
fn a_random_turn_outlasts_the_allowance_of_a_limit() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let limits = Limits { duration: Duration::from_secs(14), ..Limits::none() };
    let run = PageTimesRun { limits, concurrencies: &[], through_cache: false, ..run(&relation.source) };
    let mut server = server(&run, &clock);
    server.limit = Some(Limit::of(300));
    let measured = measured(&run, &mut server, &clock);
    let us = measured.device_random.of_device().expect("a time").us;
    assert!((us / 333.3 - 1.0).abs() < 0.15, "{us}");
}

/// Reads with gaps: each turn comes after a pause.
#[test]
fn the_allowance_of_a_limit_is_not_timed() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let machine = Fixture::new();
    machine.mounts(&["30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"]);
    machine.file("proc/self/cgroup", "0::/pg").file("sys/fs/cgroup/pg/cgroup.events", "");
    machine.file("sys/fs/cgroup/pg/io.max", "8:0 riops=3000").disk("sda", "8:0");
    let (roots, leaves) = (machine.roots(), [Leaf { name: "sda".to_owned(), ..Leaf::default() }]);
    let observer = Observer::new(Account::Own, &leaves, &roots);
    let limits = Limits { duration: Duration::from_secs(14), ..Limits::none() };
    let run = PageTimesRun {
        limits,
        concurrencies: &[16],
        densities: &[0.4, 0.6],
        through_cache: false,
        observer: &observer,
        ..run(&relation.source)
    };
    let mut server = server(&run, &clock);
    server.limit = Some(Limit::of(300));
    let measured = measured(&run, &mut server, &clock);
    for (series, density) in measured.sparse[0].iter().zip(run.densities) {
        let us = series.of_device().expect("a time").us;
        assert!((us / 333.3 - 1.0).abs() < 0.15, "{density}: {us}");
    }
}

#[test]
fn whole_windows_are_timed_however_long_each_takes() {
    for (seconds, window, ns) in [(14, MIB, 300_000.0), (6, 8 * MIB, 104_000.0)] {
        let (relation, clock) = (cold_relation(), Manual::default());
        let limits = Limits { duration: Duration::from_secs(seconds), ..Limits::none() };
        let run = PageTimesRun {
            limits,
            window,
            concurrencies: &[0],
            densities: &[1.0],
            through_cache: false,
            ..run(&relation.source)
        };
        let mut server = server(&run, &clock);
        server.lumps = Some((window / BLOCK, ns));
        let measured = measured(&run, &mut server, &clock);
        assert_near(&measured.device_sequential, ns, "device, in order");
        assert_near(&measured.sparse[0][0], ns, "1.0 at 0");
    }
}

#[test]
fn a_device_that_slows_down_in_the_middle_is_seen() {
    for (slower_from, is_seen) in [(u64::MAX, false), (200_000_000, true)] {
        let (relation, clock) = (cold_relation(), Manual::default());
        let run = PageTimesRun { concurrencies: &[], through_cache: false, ..run(&relation.source) };
        let mut server = server(&run, &clock);
        server.noise = Box::new(|_| if Clock::now(&clock) < slower_from { 0.0 } else { 3.0 });
        let measured = measured(&run, &mut server, &clock);
        assert_eq!(measured.slowed.is_some_and(|times| (3.5..4.5).contains(&times)), is_seen, "{measured:?}");
        assert_eq!(measured.slowed.is_some(), is_seen);
    }
}

#[test]
fn the_first_window_of_a_scan_is_not_timed() {
    for window in [0, 128 * KIB, 3 * MIB] {
        let (relation, clock) = (cold_relation(), Manual::default());
        let run = PageTimesRun { window, concurrencies: &[], through_cache: false, ..run(&relation.source) };
        let mut server = server(&run, &clock);
        let measured = measured(&run, &mut server, &clock);
        assert_near(&measured.device_sequential, made_up::SEQUENTIAL, "a scan");
        assert!(server.of(Way::Scan).count() > 3);
        for asked in server.of(Way::Scan) {
            assert!(asked.warm_up as u64 * BLOCK >= window, "{window}: {}", asked.warm_up);
            assert!(asked.blocks.is_sorted_by(|a, b| a + 1 == *b));
        }
    }
}

#[test]
fn densities_are_as_asked_for_and_blocks_ascend() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let run = run(&relation.source);
    let mut server = server(&run, &clock);
    server.fetches = false;
    let run = PageTimesRun { limits: Limits { duration: Duration::from_secs(3), ..run.limits }, ..run };
    measured(&run, &mut server, &clock);
    let (span, stretch) = (SPAN / BLOCK, (SPAN + run.window) / BLOCK);
    for (index, wanted) in DENSITIES.iter().enumerate() {
        // At the least density it takes two stretches for enough blocks.
        let stretches = if index == 0 { 2 } else { 1 };
        let shares: Vec<f64> = CONCURRENCIES
            .iter()
            .flat_map(|concurrency| server.of(Way::Bitmap(*concurrency)))
            .filter(|asked| asked.blocks.chunk_by(|a, b| a / stretch == b / stretch).count() == stretches)
            .map(|asked| {
                // Of density 1 a part of the span is read.
                let of = asked.blocks.chunk_by(|a, b| a / stretch == b / stretch);
                let spans: u64 = of.map(|blocks| blocks[blocks.len() - 1] - blocks[0] + 1).sum();
                asked.blocks.len() as f64 / spans as f64
            })
            .filter(|share| DENSITIES.iter().all(|other| (share - wanted).abs() <= (share - other).abs()))
            .collect();
        assert!(shares.len() > 10, "{index}: {} turns", shares.len());
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let blocks = span * (stretches * shares.len()) as u64;
        let error = (wanted * (1.0 - wanted) / blocks as f64).sqrt();
        assert!((mean - wanted).abs() <= 4.0 * error, "{wanted}: {mean}");
    }
    for asked in &server.asked {
        assert!(asked.way == Way::Single || asked.blocks.is_sorted_by(|a, b| a < b));
    }
}

#[test]
fn hits_are_taken_out_of_the_time() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let run = run(&relation.source);
    let mut server = server(&run, &clock);
    server.hits = Some(10);
    let measured = measured(&run, &mut server, &clock);
    assert_near(&measured.device_sequential, made_up::SEQUENTIAL, "device, in order");
    assert_near(&measured.device_random, made_up::RANDOM, "device, at random");
    assert_near(&measured.os_sequential, made_up::OS_SEQUENTIAL, "OS, in order");
    assert_near(&measured.os_random, made_up::OS_RANDOM, "OS, at random");
}

#[test]
fn a_turn_of_many_hits_does_not_count() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let run = run(&relation.source);
    let mut server = server(&run, &clock);
    server.hits = Some(4);
    let measured = measured(&run, &mut server, &clock);
    for series in [&measured.device_sequential, &measured.device_random, &measured.sparse[0][1]] {
        assert_eq!((series.turns(), series.of_device()), (0, None));
        assert!(series.discarded() > 0);
    }
    assert!(measured.shared.turns() > 0);
}

#[test]
fn a_disturbed_turn_is_left_out_and_counted() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let run = run(&relation.source);
    let mut server = server(&run, &clock);
    server.fetches = false;
    let mut scans = 0;
    server.noise = Box::new(move |way| {
        scans += usize::from(way == Way::Scan);
        // Ten times as slow.
        if way == Way::Scan && scans == 3 { 9.0 } else { 0.0 }
    });
    let run = PageTimesRun { concurrencies: &[], ..run };
    let measured = measured(&run, &mut server, &clock);
    assert_eq!((measured.device_sequential.slow(), measured.device_random.slow()), (1, 0));
    assert_near(&measured.device_sequential, made_up::SEQUENTIAL, "device, in order");
}

#[test]
fn blocks_in_shared_buffers_are_not_asked_for() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let buffered: Vec<u32> = (0..relation.source.blocks() as u32).step_by(29).collect();
    let run = PageTimesRun { buffered: &buffered, ..run(&relation.source) };
    let mut server = server(&run, &clock);
    let measured = measured(&run, &mut server, &clock);
    // The kernel reads those as well, in the same time.
    assert_near(&measured.device_sequential, made_up::SEQUENTIAL * 28.0 / 29.0, "device, in order");
    for asked in &server.asked {
        assert!(asked.blocks.iter().all(|block| block % 29 != 0), "{:?}", asked.way);
    }
    // The buffered blocks were not read ahead, but those between them can be read again.
    assert_near(&measured.os_sequential, made_up::OS_SEQUENTIAL, "OS, in order");

    let all: Vec<u32> = (0..relation.source.blocks() as u32).collect();
    let run = PageTimesRun { buffered: &all, ..run };
    let measured = self::measured(&run, &mut MadeUp::new(run.source, &clock), &clock);
    assert_eq!((measured.not_cold, measured.device_random.turns()), (Some(NotCold::Buffered), 0));
}

/// One in five, so that no other blocks make up for them where none is left out; or a fifth of a stretch, at
/// its end, which no read gets to.
#[test]
fn dense_reads_pass_over_what_is_in_shared_buffers() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let all = 0..relation.source.blocks() as u32;
    let spread = |block: &u32| block.is_multiple_of(5);
    let stretch = ((SPAN + 128 * KIB) / BLOCK) as u32;
    let at_the_end = |block: &u32| block % stretch >= stretch / 5 * 4;
    let [spread, at_the_end] =
        [all.clone().filter(spread).collect::<Vec<u32>>(), all.filter(at_the_end).collect()];
    // Without prefetch the kernel reads those between as well, if there is an OS cache to read them into.
    for (buffered, through_cache, read) in
        [(&spread, true, 4.0 / 5.0), (&spread, false, 1.0), (&at_the_end, true, 1.0)]
    {
        relation.evict();
        let run = PageTimesRun { buffered, through_cache, ..run(&relation.source) };
        let measured = measured(&run, &mut server(&run, &clock), &clock);
        let [in_order, prefetched] = [0, 1].map(|concurrency| &measured.sparse[concurrency][2]);
        assert_near(in_order, made_up::sparse(1.0, 0) * read, "in order");
        assert_near(prefetched, made_up::sparse(1.0, 16), "prefetched");
    }
}

#[test]
fn the_cache_is_left_as_it_was() {
    // The kernel reads a window ahead of what it is asked for.
    for window in [0, MIB] {
        let (relation, clock) = (cold_relation(), Manual::default());
        let files = Files::new(&relation.source);
        let before = files.fetch_all(0..relation.source.blocks() / 3);
        let run = PageTimesRun { window, ..run(&relation.source) };
        let measured = measured(&run, &mut server(&run, &clock), &clock);
        assert_near(&measured.device_sequential, made_up::SEQUENTIAL, "device, in order");
        assert_near(&measured.device_random, made_up::RANDOM, "device, at random");
        files.assert_kept(&before);
    }
}

#[test]
fn what_is_cached_is_evicted_only_with_leave() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let files = Files::new(&relation.source);
    let before = files.fetch_all(0..relation.source.blocks());
    let run = run(&relation.source);
    let kept = measured(&run, &mut server(&run, &clock), &clock);
    assert_eq!((kept.not_cold, kept.device_sequential.turns()), (Some(NotCold::Cached), 0));
    assert_eq!((kept.device_random.turns(), kept.sparse[0][0].turns()), (0, 0));
    files.assert_kept(&before);
    // What is cached is measured all the same.
    assert_near(&kept.os_sequential, made_up::OS_SEQUENTIAL, "OS, in order");

    let run = PageTimesRun { evicts: true, ..run };
    let evicted = measured(&run, &mut server(&run, &clock), &clock);
    assert_eq!(evicted.not_cold, None);
    assert_near(&evicted.device_sequential, made_up::SEQUENTIAL, "device, in order");
    assert_near(&evicted.device_random, made_up::RANDOM, "device, at random");
}

/// Others take memory. A server that is asked for nothing takes no time, so that to ask on and on would have
/// no end.
#[test]
fn what_leaves_the_cache_meanwhile_is_not_waited_for() {
    let (all, stretch) = (5 * 2304, (SPAN + 128 * KIB) / BLOCK);
    let (none, in_vain, in_time) = (0..0, None, Some(Stop::Duration));
    for (through_cache, goes, stop) in [
        (false, [0..all, none.clone()], in_vain),
        (true, [0..all, none.clone()], in_vain),
        // One of these is the one that it has found; the other will do.
        (true, [0..stretch, none.clone()], in_time),
        (true, [stretch..all, none.clone()], in_time),
        // Next to nothing of a stretch, but more of what is read again.
        (true, [0..257, none.clone()], in_time),
        (true, [stretch..stretch + 257, none.clone()], in_time),
        (true, [0..257, stretch..stretch + 257], in_vain),
    ] {
        let what = format!("{through_cache}, {goes:?}");
        let (relation, clock) = (cold_relation(), Manual::default());
        Files::new(&relation.source).fetch_all(0..all);
        let run = PageTimesRun { through_cache, ..run(&relation.source) };
        let mut asked = 0;
        let mut should_stop = || {
            asked += 1;
            (asked > 20_000).then_some(Stop::LockWaiter)
        };
        // Between two turns.
        let mut report = |done| {
            if done == 60 {
                for start in goes.iter().flat_map(|goes| goes.clone().step_by(128)) {
                    relation.source.drop_cached(start..start + 8).expect("dropped");
                }
            }
        };
        let mut server = server(&run, &clock);
        let measured =
            measure(&run, &mut server, &mut Budget::unlimited(&clock, &mut should_stop), &mut report)
                .expect("measured");
        assert_eq!(measured.stop, stop, "{what}");
        assert_eq!(measured.os_sequential.turns() > 0, through_cache, "{what}");
        assert_eq!(measured.dried_up, stop.is_none() && through_cache, "{what}");
        assert_eq!((measured.not_cold, measured.device_sequential.turns()), (Some(NotCold::Cached), 0));
        assert_eq!(measured.passes, 0, "{what}");
    }
}

#[test]
fn where_nobody_can_tell_a_cache_from_the_device_nothing_is_measured() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let run = PageTimesRun { evicts: true, ..run(&relation.source) };
    let mut server = server(&run, &clock);
    let measured = decided::forced(ResidencyMethod::Unknown, || measured(&run, &mut server, &clock));
    assert_eq!((measured.not_cold, measured.device_sequential.turns()), (Some(NotCold::Unknown), 0));
    assert_eq!((measured.device_random.turns(), measured.os_sequential.turns()), (0, 0));
}

#[test]
fn files_of_holes_are_not_measured() {
    let (relation, clock) = (Relation::new(3000, 0..0), Manual::default());
    let run = PageTimesRun { evicts: true, ..run(&relation.source) };
    let measured = measured(&run, &mut server(&run, &clock), &clock);
    assert_eq!((measured.not_cold, measured.device_sequential.turns()), (Some(NotCold::Holes), 0));
    assert_eq!(measured.device_random.turns(), 0);
}

#[test]
fn nothing_and_next_to_nothing() {
    for blocks in [0, 1, 15, 40, 600] {
        let (relation, clock) = (Relation::new(blocks, 0..blocks), Manual::default());
        relation.evict();
        let run = run(&relation.source);
        let run =
            PageTimesRun { limits: Limits { duration: Duration::from_millis(30), ..run.limits }, ..run };
        let mut server = server(&run, &clock);
        let measured = measured(&run, &mut server, &clock);
        assert_eq!(measured.stop, (blocks > 0).then_some(Stop::Duration), "{blocks}");
        assert_eq!(server.asked.is_empty(), blocks == 0);
        assert_eq!(measured.device_sequential.turns() > 0, blocks > 0, "{blocks}");
        // Of 40 blocks most are still in shared buffers.
        assert!(blocks == 40 || (measured.device_random.turns() > 0) == (blocks == 600), "{blocks}");
        for asked in server.of(Way::Single).filter(|asked| asked.fetched > 0) {
            let mut blocks = asked.blocks.clone();
            blocks.sort_unstable();
            assert!(blocks.is_sorted_by(|a, b| a < b), "a block twice from the device");
        }
        assert!(!Files::new(&relation.source).cached().contains(&true));
    }
}

#[test]
fn a_rate_makes_it_pause() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let run = run(&relation.source);
    for (max_mib_s, max_iops) in [(Some(40), None), (None, Some(5000))] {
        let duration = Duration::from_secs(1);
        let run = PageTimesRun { limits: Limits { max_mib_s, max_iops, duration, ..run.limits }, ..run };
        let mut server = server(&run, &clock);
        let started = seconds(&clock);
        let measured = measured(&run, &mut server, &clock);
        assert!(measured.paused);
        let rate = max_mib_s.map_or(5000 * BLOCK, |mib| u64::from(mib) << 20) as f64;
        let blocks: u64 = server.asked.iter().map(|asked| asked.fetched).sum();
        let most = server.asked.iter().map(|asked| asked.fetched).max().unwrap_or(0);
        let allowed = rate * (seconds(&clock) - started);
        assert!(((blocks - most) * BLOCK) as f64 <= allowed, "{blocks} blocks, {allowed} bytes");
        assert!((blocks * BLOCK) as f64 >= allowed / 3.0, "{blocks} blocks, {allowed} bytes");
    }
}

#[test]
fn a_share_of_the_time_makes_it_rest() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let run = run(&relation.source);
    let blocks = |max_util| {
        let limits = Limits { max_util, duration: Duration::from_secs(1), ..run.limits };
        // What is read through the page cache hangs on what the kernel keeps.
        let run = PageTimesRun { limits, through_cache: false, ..run };
        let mut server = server(&run, &clock);
        let measured = measured(&run, &mut server, &clock);
        assert_eq!(measured.paused, max_util.is_some());
        server.asked.iter().map(|asked| asked.fetched).sum::<u64>() as f64
    };
    let share = blocks(Some(0.2)) / blocks(None);
    assert!((0.1..0.3).contains(&share), "{share}");

    // Of as many turns each has its rest, the last too.
    let took = |max_util| {
        let limits =
            Limits { max_util, max_bytes: 1 << 20, duration: Duration::from_secs(1000), ..run.limits };
        let run = PageTimesRun { limits, through_cache: false, ..run };
        let started = seconds(&clock);
        assert_eq!(measured(&run, &mut server(&run, &clock), &clock).stop, Some(Stop::Bytes));
        seconds(&clock) - started
    };
    let ratio = took(Some(0.1)) / took(None);
    assert!((9.99..10.01).contains(&ratio), "{ratio}");
}

#[test]
fn it_ends_early_where_all_is_known_roughly() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let run = run(&relation.source);
    let run = PageTimesRun { densities: &DENSITIES[..1], concurrencies: &CONCURRENCIES[..1], ..run };
    let limits = Limits { duration: Duration::from_millis(1200), ..run.limits };
    let took = |rough_after, noise: f64| {
        let run = PageTimesRun { limits, rough_after, ..run };
        let mut server = server(&run, &clock);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        server.noise = Box::new(move |_| if rng.random_bool(0.2) { noise } else { 0.0 });
        let started = seconds(&clock);
        let measured = measured(&run, &mut server, &clock);
        assert_eq!(measured.stop, Some(Stop::Duration));
        seconds(&clock) - started
    };
    let early = Some(Duration::from_millis(600));
    assert!((0.6..0.8).contains(&took(early, 0.0)), "{}", took(early, 0.0));
    for (rough_after, noise) in [(early, 9.0), (None, 0.0)] {
        assert!(took(rough_after, noise) >= 1.2, "{rough_after:?}, {noise}");
    }
}

#[test]
fn the_bytes_are_bounded() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let limits = Limits { max_bytes: 15 * MIB, ..Limits::none() };
    let run = PageTimesRun { limits, ..run(&relation.source) };
    let mut server = server(&run, &clock);
    let measured = measured(&run, &mut server, &clock);
    assert_eq!(measured.stop, Some(Stop::Bytes));
    // In order, at random, and two concurrencies share what is allowed. Hits count as if they were read.
    let (bytes, most) =
        (4 * 15 * MIB, server.asked.iter().map(|asked| asked.fetched * BLOCK).max().unwrap_or(0));
    let fetched: u64 = server.asked.iter().map(|asked| asked.fetched * BLOCK).sum();
    assert!(fetched > bytes - most && fetched < bytes + most, "{fetched}, a turn of {most}");
}

#[test]
fn the_time_is_obeyed() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let long = Duration::from_secs(60);
    let short = Duration::from_millis(300);
    for (duration, statement, reason) in [(short, long, Stop::Duration), (long, short, Stop::Statement)] {
        let run = run(&relation.source);
        let run = PageTimesRun { limits: Limits { duration, ..run.limits }, ..run };
        let mut server = server(&run, &clock);
        server.fetches = false;
        let started = seconds(&clock);
        let mut should_stop = || None;
        let mut budget = Budget::of_statement(statement, &clock, &mut should_stop);
        let measured = measure(&run, &mut server, &mut budget, &mut |_| ()).expect("measured");
        assert_eq!(measured.stop, Some(reason));
        let took = seconds(&clock) - started;
        // Beyond it no more than a turn's share and its warm-up.
        assert!((0.3..0.36).contains(&took), "{took} s");
    }
}

#[test]
fn a_search_ends_with_the_time() {
    let (relation, clock) = (cold_relation(), Manual::default());
    // Beginning with this turn: in order, at random, with gaps.
    for turn in 0..3 {
        let run = run(&relation.source);
        let late = Cell::new(None);
        let mut should_stop = || {
            if let Some(asks) = late.get() {
                late.set(Some(asks + 1));
                clock.advance(1_000_000_000);
            }
            None
        };
        let mut report = |done| late.set(late.get().or((done == turn).then_some(0)));
        let mut budget = Budget::unlimited(&clock, &mut should_stop);
        let measured = measure(&run, &mut server(&run, &clock), &mut budget, &mut report).expect("measured");
        drop(budget);
        // Before the turn, and no more.
        assert_eq!((measured.stop, late.get()), (Some(Stop::Duration), Some(1)), "{turn}");
        assert!(!Files::new(&relation.source).cached().contains(&true), "{turn}");
    }
}

#[test]
fn a_search_that_is_cut_short_does_not_say_that_nothing_is_cold() {
    let (relation, clock) = (cold_relation(), Manual::default());
    Files::new(&relation.source).fetch_all(0..relation.source.blocks());
    // When the first of two stretches is looked at, and when the second is.
    for most in 1..3 {
        let run = run(&relation.source);
        let mut asks = 0;
        let mut should_stop = || {
            asks += 1;
            clock.advance(if asks == most { 1_000_000_000 } else { 0 });
            None
        };
        let mut server = server(&run, &clock);
        let mut budget = Budget::unlimited(&clock, &mut should_stop);
        let measured = measure(&run, &mut server, &mut budget, &mut |_| ()).expect("measured");
        assert_eq!((measured.stop, measured.not_cold), (Some(Stop::Duration), None), "{most}");
        assert!(server.asked.is_empty(), "{most}");
    }
}

#[test]
fn a_reason_to_stop_ends_it_at_once() {
    let (relation, clock) = (cold_relation(), Manual::default());
    for most in [0, 3, 7, 20, 60, 150] {
        let run = run(&relation.source);
        let mut asks = 0;
        let mut should_stop = || {
            asks += 1;
            // Said once and never again, as the server's interrupts do.
            (asks == most + 1).then_some(Stop::LockWaiter)
        };
        let measured = measure(
            &run,
            &mut server(&run, &clock),
            &mut Budget::unlimited(&clock, &mut should_stop),
            &mut |_| (),
        )
        .expect("measured");
        assert_eq!((measured.stop, asks), (Some(Stop::LockWaiter), most + 1));
        assert!(!Files::new(&relation.source).cached().contains(&true), "{most}");
    }
}

/// A cancelled query leaves by unwinding.
#[test]
fn who_unwinds_leaves_the_cache_as_it_was() {
    let (relation, clock) = (cold_relation(), Manual::default());
    for most in [20, 60, 150] {
        let run = run(&relation.source);
        let mut asks = 0;
        let mut should_stop = || {
            asks += 1;
            if asks > most {
                std::panic::resume_unwind(Box::new("cancelled"));
            }
            None
        };
        let mut server = server(&run, &clock);
        let cancelled = catch_unwind(AssertUnwindSafe(|| {
            measure(&run, &mut server, &mut Budget::unlimited(&clock, &mut should_stop), &mut |_| ())
        }));
        assert!(cancelled.is_err());
        assert!(!Files::new(&relation.source).cached().contains(&true), "{most}");
    }
}

#[test]
fn precision_ends_it() {
    let (relation, clock) = (cold_relation(), Manual::default());
    let limits = Limits { duration: Duration::from_secs(60), precision: Some(0.05), ..Limits::none() };
    let run = PageTimesRun { limits, ..run(&relation.source) };
    let mut server = server(&run, &clock);
    server.fetches = false;
    let measured = measured(&run, &mut server, &clock);
    assert_eq!(measured.stop, Some(Stop::Precise));
    assert!(measured.device_sequential.turns() >= MIN_SLICES);
    assert!(measured.sparse.iter().flatten().all(|series| series.turns() >= LEAST_SPARSE_TURNS));
    assert!(seconds(&clock) < 30.0);
}

#[test]
fn the_account_bears_out_what_came_from_the_device() {
    let cost = |fetched| IoDelta { fetched, written: None, activity: None, held_back: Default::default() };
    let mut measured = PageTimesResult::default();
    assert_eq!(measured.is_borne_out(BLOCK), None);
    measured.device_random.add_cost(100, cost(Err(Lost::Ended)));
    assert_eq!(measured.is_borne_out(BLOCK), None, "what is not known says nothing");
    measured.device_random.add_cost(100, cost(Ok(100 * BLOCK)));
    assert_eq!(measured.is_borne_out(BLOCK), Some(true));
    // Readahead fetches more than is read; what serves blocks by itself fetches less.
    measured.device_sequential.add_cost(1000, cost(Ok(1200 * BLOCK)));
    assert_eq!(measured.is_borne_out(BLOCK), Some(true));
    measured.sparse = vec![vec![WaySeries::default()]];
    measured.sparse[0][0].add_cost(1000, cost(Ok(0)));
    assert_eq!(measured.is_borne_out(BLOCK), Some(false));
}

/// The concurrencies and densities that a run of this length measures where the turn of this number takes
/// `slower` times as long, and the whole of the run's result.
fn on_slow(slower: impl Fn(usize) -> f64, duration: Duration) -> (usize, PageTimesResult) {
    on_slow_within(slower, Limits { duration, ..Limits::none() }, None)
}

/// The same with these limits, where the run may end early.
fn on_slow_within(
    slower: impl Fn(usize) -> f64,
    limits: Limits,
    rough_after: Option<Duration>,
) -> (usize, PageTimesResult) {
    const SEVEN: [f64; 7] = [0.03, 0.1, 0.2, 0.35, 0.5, 0.72, 1.0];
    let (relation, clock) = (cold_relation(), Manual::default());
    let run = PageTimesRun {
        densities: &SEVEN,
        concurrencies: &[16, 0, 64, 128],
        limits,
        rough_after,
        through_cache: false,
        ..run(&relation.source)
    };
    let mut server = server(&run, &clock);
    server.fetches = false;
    let mut turns = 0..;
    server.noise = Box::new(move |_| turns.next().map_or(0.0, &slower) - 1.0);
    let measured = measured(&run, &mut server, &clock);
    let kept = measured.sparse.iter().flatten().filter(|series| !series.is_left_out());
    (kept.count(), measured)
}

#[test]
fn where_turns_are_slow_there_are_fewer_points_and_each_has_an_interval() {
    let duration = Duration::from_secs(14);
    assert_eq!(on_slow(|_| 1.0, duration).0, 28);
    let (count, slow) = on_slow(|_| 150.0, duration);
    assert!((6..28).contains(&count), "{count}");
    // The same densities at the concurrencies that are left, the most important ones.
    let kept = |line: &Vec<WaySeries>| line.iter().filter(|series| !series.is_left_out()).count();
    let lines: Vec<usize> = slow.sparse.iter().map(kept).collect();
    assert!(lines[0] >= 3 && lines[1] == lines[0], "{lines:?}");
    assert!(lines.iter().all(|count| *count == 0 || *count == lines[0]), "{lines:?}");
    for series in slow.sparse.iter().flatten() {
        assert_eq!(series.relative_half_width().is_some(), !series.is_left_out());
        assert_eq!(series.turns() > 0, !series.is_left_out());
    }
    assert_eq!((slow.needs, slow.stop), (None, Some(Stop::Duration)));
}

#[test]
fn what_a_slow_first_round_left_out_is_taken_where_later_ones_are_faster() {
    let (count, measured) = on_slow(|turn| if turn < 20 { 150.0 } else { 1.0 }, Duration::from_secs(14));
    assert_eq!((count, measured.needs), (28, None));
    assert!(measured.sparse.iter().flatten().all(|series| series.relative_half_width().is_some()));
}

#[test]
fn what_may_end_early_takes_the_points_that_have_room_in_all_of_its_time() {
    let half = Duration::from_secs(14);
    let (whole, early) = (Limits { duration: 2 * half, ..Limits::none() }, Some(half));
    let (of_half, _) = on_slow(|_| 20.0, half);
    let (of_whole, measured) = on_slow_within(|_| 20.0, whole, early);
    assert!(of_half < of_whole, "{of_half}, {of_whole}");
    for series in measured.sparse.iter().flatten() {
        assert_eq!(series.relative_half_width().is_some(), !series.is_left_out());
    }
}

#[test]
fn what_a_short_run_lacks_one_of_the_length_that_it_names_has() {
    let (count, short) = on_slow(|_| 150.0, Duration::from_secs(3));
    assert_eq!(count, 6);
    let needs = short.needs.expect("too short");
    assert!(needs > Duration::from_secs(3) && needs < Duration::from_secs(60), "{needs:?}");
    let (_, longer) = on_slow(|_| 150.0, needs);
    assert_eq!(longer.needs, None);
}

#[test]
fn a_run_of_the_length_that_is_named_for_it_measures_each_concurrency() {
    let is_measured = |line: &Vec<WaySeries>| line.iter().any(|series| series.turns() > 0);
    for (slower, length) in [(20.0, 3), (20.0, 14), (60.0, 14), (150.0, 3)] {
        let (_, short) = on_slow(|_| slower, Duration::from_secs(length));
        assert!(!short.sparse.iter().all(is_measured), "{slower}, {length}");
        let needs = short.needs_at_each.expect("a concurrency was left out");
        let (_, longer) = on_slow(|_| slower, needs);
        assert!(longer.sparse.iter().all(is_measured), "{slower}, {length}: {needs:?}");
        assert_eq!(longer.needs_at_each, None);
    }
}
