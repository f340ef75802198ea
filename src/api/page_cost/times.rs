//! Measuring a relation's times: which ways, in which bounds, and what there is to say about each time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use io_probe_core::measure::page_times::tuple::{self, CountOutcome};
use io_probe_core::measure::page_times::{self, NotCold, PageTimesResult, PageTimesRun};
use io_probe_core::measure::page_times::{PageTimes, Pattern, Tier};
use io_probe_core::run::budget::{Limits, Stop};

use super::result::{NoTime, TimeResult};
use crate::api::depth::{self, SingleRead};
use crate::api::shared;
use crate::call::arguments::seed;
use crate::call::{Call, Failure, ProbedRelation};
use crate::error::Result;
use crate::gucs;
use crate::pg::backend::server;
use crate::pg::catalog::tuples;
use crate::pg::storage::buffers::flush_and_evict;
use crate::pg::storage::server_reader::ServerReader;
use crate::pg::storage::tablespace::Tablespace;
use io_probe_surface::doubt::Doubt;

/// Densities by default, as the SQL signature says.
pub(super) const DENSITIES: [f64; 7] = [0.03, 0.1, 0.2, 0.35, 0.5, 0.72, 1.0];

/// Concurrencies by default, the most important first: after the one in force for queries the first of these,
/// which index scans need, then the one in force for maintenance, then the others.
const CONCURRENCIES: [u32; 4] = [0, 64, 16, 128];

/// How long measuring takes by default; up to twice that, until each time is known roughly.
const DURATION: Duration = Duration::from_secs(14);

const PRECISION: f64 = 0.035;

#[derive(Debug, Clone)]
pub(in crate::api) struct Wanted {
    pub(in crate::api) densities: Vec<f64>,
    /// Its concurrencies; None for the usual ones and those in force.
    pub(in crate::api) concurrencies: Option<Vec<u32>>,
    pub(in crate::api) evicts: bool,
    /// Is it over at once if nothing comes from the device?
    pub(in crate::api) only_cold: bool,
    pub(in crate::api) seed: u64,
    /// Bounds of the turns.
    pub(in crate::api) limits: PageLimits,
}

/// Bounds of the turns.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) struct PageLimits {
    most: Limits,
    /// From this time on, it is enough that each time is known roughly.
    rough_after: Option<Duration>,
}

impl Wanted {
    /// Advice takes all or nothing of the device.
    fn reads_past_cache(&self) -> bool {
        !self.evicts && !self.only_cold
    }

    /// Bounds of the turns.
    fn limits_of_turns(&self) -> Limits {
        let Limits { duration, .. } = self.limits.most;
        let kept = if self.reads_past_cache() { duration / PAST_CACHE } else { Duration::ZERO };
        Limits { duration: duration - kept, ..self.limits.most }
    }

    /// What advice rests on: only where there is something to read from the device.
    pub(in crate::api) fn for_advice(limits: PageLimits, evicts: bool) -> Self {
        let densities = DENSITIES.to_vec();
        Self { densities, concurrencies: None, evicts, only_cold: true, seed: seed(None), limits }
    }
}

/// Bounds of a measurement that weighs `weight` of `all` parts of its call.
pub(in crate::api) fn limits(
    bounds: Limits,
    given: Option<Duration>,
    weight: u32,
    all: u32,
) -> Result<PageLimits> {
    let duration = gucs::share_of_duration(given, weight, all, DURATION)?;
    let rough_after = given.is_none().then_some(duration);
    // Of the cap a quarter is left to others.
    let most = gucs::MAX_DURATION.time() * 3 / 4 * weight / all.max(1);
    let duration = rough_after.map_or(duration, |short| (2 * short).min(most));
    let most = Limits { duration, precision: bounds.precision.or(Some(PRECISION)), ..bounds };
    Ok(PageLimits { most, rough_after })
}

/// Of a relation below this size, in bytes, the caches below the kernel serve much.
const SMALL: u64 = 64 << 20;

pub(in crate::api) struct MeasuredRelation {
    /// Each time, in the order of the rows.
    pub(in crate::api) results: Vec<TimeResult>,
    pub(in crate::api) times: PageTimes,
    pub(in crate::api) stop: Option<Stop>,
    /// About how long it would take until each time has an interval, if one has none for want of time.
    pub(in crate::api) needs: Option<Duration>,
    /// About how long it would take to measure each concurrency, if one was left out.
    pub(in crate::api) needs_at_each: Option<Duration>,
    /// What speaks against all of it.
    pub(in crate::api) doubt: Option<Doubt>,
}

/// Measures within what the statement has left.
pub(in crate::api) fn measure(
    call: &Call,
    relation: &ProbedRelation,
    wanted: &Wanted,
) -> Result<MeasuredRelation> {
    let (concurrencies, fixed) = concurrencies(relation, wanted);
    if wanted.evicts && call.ended().is_none() {
        // What stops the eviction stops the turns, too.
        let _ = flush_and_evict(&relation.relation, &mut || call.should_stop(&relation.interrupts));
    }
    let measured = take_turns(call, relation, wanted, &concurrencies)?;
    call.note_stop(measured.stop);
    let mut results = results(&measured, wanted, &concurrencies);
    let past_cache = past_cache(call, relation, wanted, &measured)?;
    for result in &mut results {
        result.caveats.slowed(measured.slowed.filter(|_| result.is_from_device()));
        add_notes(result, &measured, relation, wanted);
        if let Some(fixed) = fixed
            && (result.is_sparse() || concurrencies.is_empty() && result.is_from_device())
        {
            result.caveats.note(format!(
                "the tablespace sets effective_io_concurrency = {fixed} itself: no other value can be \
                 measured there"
            ));
        }
    }
    if let Some(read) = past_cache
        && let Some(random) = results.iter_mut().find(|result| result.is_random_from_device())
    {
        random.of_single_read(read);
    }
    let mut tuple = TimeResult::new(Tier::Cpu, Pattern::Tuple);
    // A stop that ends all, as when a session waits for the relation's lock, leaves no time to count tuples.
    match measured.stop.filter(|stop| stop.is_for_all()) {
        Some(stop) => tuple.lack(NoTime::NotBegun(stop)),
        None if measured.not_cold == Some(NotCold::Holes) => tuple.lack(NoTime::NotCold(NotCold::Holes)),
        None => time_tuples(&mut tuple, call, relation, measured.hit_ns()),
    }
    results.push(tuple);
    let known = results.iter().filter(|result| result.no_time.is_none());
    let times = PageTimes::of(known.map(|result| result.measured));
    remember(relation.relation.file_tablespace(), times.clone());
    let held_back = shared::worst(measured.is_disturbed(), &measured.held_back());
    let doubt = measured.slowed.map(|_| Doubt::Slowed).or(held_back);
    let needs = measured.needs.filter(|_| measured.stop.is_some_and(Stop::is_of_time));
    let needs_at_each = measured.needs_at_each;
    Ok(MeasuredRelation { results, times, stop: measured.stop, needs, needs_at_each, doubt })
}

/// Of the time of a call that may not evict, this part is kept for reads past the OS cache.
const PAST_CACHE: u32 = 8;

/// What can be told of a device whose blocks are cached, without evicting them: how long one takes at random.
fn past_cache(
    call: &Call,
    relation: &ProbedRelation,
    wanted: &Wanted,
    measured: &PageTimesResult,
) -> Result<Option<SingleRead>> {
    let is_cached = matches!(measured.not_cold, Some(NotCold::Cached | NotCold::Buffered));
    let ended = measured.stop.is_some_and(Stop::is_for_all);
    if !is_cached || !wanted.reads_past_cache() || ended {
        return Ok(None);
    }
    let limits = Limits { duration: wanted.limits.most.duration / PAST_CACHE, ..wanted.limits.most };
    match depth::single_read(call, relation, wanted.seed, limits) {
        Ok(read) => Ok(read),
        Err(Failure::Error(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

fn take_turns(
    call: &Call,
    relation: &ProbedRelation,
    wanted: &Wanted,
    concurrencies: &[u32],
) -> Result<PageTimesResult> {
    let observer = relation.observer(server::read_account());
    let most = concurrencies.iter().copied().max().unwrap_or(0);
    let mut reader = ServerReader::in_turns(&relation.relation, most);
    let buffered = reader.buffered();
    let run = PageTimesRun {
        source: &relation.source,
        densities: &wanted.densities,
        concurrencies,
        window: relation.readahead_window(),
        through_cache: !server::reads_direct(),
        evicts: wanted.evicts,
        only_cold: wanted.only_cold,
        buffered: &buffered,
        seed: wanted.seed,
        observer: &observer,
        limits: wanted.limits_of_turns(),
        rough_after: wanted.limits.rough_after,
    };
    call.progress.path("server", 0);
    let measured = call.with_budget(&relation.interrupts, |budget| {
        page_times::measure(&run, &mut reader, budget, &mut |turns| call.progress.done(turns))
    });
    Ok(measured?)
}

fn results(measured: &PageTimesResult, wanted: &Wanted, concurrencies: &[u32]) -> Vec<TimeResult> {
    let new = TimeResult::new;
    let mut results = vec![
        new(Tier::Shared, Pattern::Random).of(&measured.shared),
        new(Tier::Os, Pattern::Sequential).of(&measured.os_sequential),
        new(Tier::Os, Pattern::Random).at(None, 1).of(&measured.os_random),
        new(Tier::Device, Pattern::Sequential).of(&measured.device_sequential),
        new(Tier::Device, Pattern::Random).at(None, 1).of(&measured.device_random),
    ];
    let mut curves: Vec<_> = concurrencies.iter().zip(&measured.sparse).collect();
    curves.sort_by_key(|(concurrency, _)| **concurrency);
    for (concurrency, curve) in curves {
        for (density, series) in wanted.densities.iter().zip(curve) {
            results.push(new(Tier::Device, Pattern::Sparse).at(Some(*density), *concurrency).of(series));
        }
    }
    results
}

/// The concurrencies of the curve, the most important first; and the tablespace's own one, if others give
/// way to it.
fn concurrencies(relation: &ProbedRelation, wanted: &Wanted) -> (Vec<u32>, Option<u32>) {
    let place = relation.relation.file_tablespace();
    let in_force = [place.io_concurrency(), place.maintenance_concurrency()];
    let mut concurrencies = match &wanted.concurrencies {
        Some(concurrencies) => concurrencies.clone(),
        None => CONCURRENCIES.into_iter().chain(in_force).collect(),
    };
    if wanted.concurrencies.is_none() {
        // The usual concurrencies give way to the cap.
        concurrencies.retain(|concurrency| gucs::depth(Some(*concurrency), 1).is_ok());
    }
    let fixed = place.fixed_concurrency().filter(|fixed| concurrencies.iter().any(|other| other != fixed));
    if let Some(fixed) = fixed {
        concurrencies.retain(|other| *other == fixed);
    }
    concurrencies.sort_unstable();
    concurrencies.dedup();
    let [queries, maintenance] = in_force;
    let by_importance = [&[queries, CONCURRENCIES[0], maintenance], &CONCURRENCIES[1..]].concat();
    let rank = |concurrency: &u32| by_importance.iter().position(|other| other == concurrency);
    concurrencies.sort_by_key(|concurrency| rank(concurrency).unwrap_or(usize::MAX));
    (concurrencies, fixed)
}

/// Says what is to be known about a result.
fn add_notes(
    result: &mut TimeResult,
    measured: &PageTimesResult,
    relation: &ProbedRelation,
    wanted: &Wanted,
) {
    let from_device = result.is_from_device();
    if result.has_no_time() {
        let left_out = result.no_time;
        result.lack(match measured.not_cold {
            _ if left_out.is_some() => NoTime::LeftOut,
            _ if relation.source.blocks() == 0 => NoTime::Other("the relation is empty"),
            Some(NotCold::Cached) if from_device && wanted.evicts => NoTime::Other(
                "the OS cache holds the relation: its pages could not be evicted, or others read them \
                 meanwhile",
            ),
            Some(why) if from_device || why == NotCold::Unknown => NoTime::NotCold(why),
            _ if server::reads_direct() && result.is_from_os() => {
                NoTime::Other("the server bypasses the OS cache (debug_io_direct)")
            }
            _ => NoTime::Other("not enough turns"),
        });
    }
    let block_size = relation.block_size();
    if from_device && !result.has_no_time() && measured.is_borne_out(block_size) == Some(false) {
        result.doubt_tier();
    }
    if from_device && relation.source.blocks() * block_size < SMALL {
        result.caveats.doubt_since(Doubt::Small, "a small relation: caches below the kernel may serve it");
    } else if from_device {
        result.caveats.read_up_to(measured.passes);
    }
    if measured.dried_up && (from_device || result.is_from_os()) {
        result.caveats.note("ended early: the rest of the relation is cached, or was never written");
    }
    if measured.paused {
        result.caveats.paused_between_turns();
    }
    measured.stop.into_iter().for_each(|stop| result.caveats.stopped(stop));
}

/// How long one count may take: the blocks are few, but planning computes what the owner likes.
const LONGEST_COUNT: Duration = Duration::from_secs(1);

/// Counts tuples in blocks that stay in shared buffers, where a hit takes `hit_ns`. Err tells why that is not
/// possible, or not allowed to this caller.
pub(in crate::api) fn count_tuples(
    call: &Call,
    relation: &ProbedRelation,
    hit_ns: f64,
) -> std::result::Result<CountOutcome, &'static str> {
    relation.relation.tuples_can_be_counted()?;
    let window = relation.readahead_window();
    let mut count = |ranges: &[Range<u64>]| {
        tuples::count(&relation.relation, ranges, LONGEST_COUNT.min(call.time_left()))
    };
    Ok(call.with_budget(&relation.interrupts, |budget| {
        tuple::measure(&relation.source, window, hit_ns, &mut count, budget)
    }))
}

/// The time of a tuple.
fn time_tuples(result: &mut TimeResult, call: &Call, relation: &ProbedRelation, hit_ns: Option<f64>) {
    let counted = match count_tuples(call, relation, hit_ns.unwrap_or(0.0)) {
        Ok(counted) => counted,
        Err(why) => return result.lack(NoTime::Other(why)),
    };
    if let Some(error) = counted.left_behind {
        result
            .caveats
            .note(format!("the pages that were read to count tuples stay in the OS cache: {error}"));
    }
    match counted.time {
        Some(tuple) => {
            result.of_tuple(&tuple);
            if hit_ns.is_none() {
                result
                    .caveats
                    .note("the time includes hits in shared buffers, since the time of a hit is not known");
            }
        }
        None if counted.is_refused => result.lack(NoTime::Other(
            "tuples could not be counted, for one of these reasons: another session holds a lock; \
             expressions of an index or of statistics call a user-defined function or compute constants; \
             there are over 200 indexes; planning took long or raised an ERROR",
        )),
        None if counted.is_lost_in_noise => result.lack(NoTime::Other(
            "the time of tuples is smaller than the noise: reading the blocks from shared buffers seemed to \
             take as long as counting their tuples",
        )),
        None => result.lack(NoTime::Other("no tuples were found, or blocks had to be read")),
    }
}

// What io_probe_explain predicts from: the times that this session measured last, by tablespace. They stay
// for as long as the session, whatever becomes of the transaction that measured them.
thread_local! {
    static TIMES: RefCell<HashMap<Tablespace, Rc<PageTimes>>> = RefCell::default();
}

/// Keeps the times of a relation for all of its tablespace. What they lack stays as it was known before.
fn remember(tablespace: Tablespace, times: PageTimes) {
    TIMES.with_borrow_mut(|all| {
        let times = match all.get(&tablespace) {
            Some(earlier) => times.or(earlier),
            None => times,
        };
        all.insert(tablespace, Rc::new(times));
    });
}

/// The times measured last in a tablespace.
pub(in crate::api) fn recall(tablespace: Tablespace) -> Option<Rc<PageTimes>> {
    TIMES.with_borrow(|all| all.get(&tablespace).cloned())
}
