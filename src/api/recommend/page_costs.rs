//! random_page_cost, seq_page_cost, effective_io_concurrency and maintenance_io_concurrency of a tablespace.

mod planned;
mod verdict;

use std::collections::HashSet;
use std::fmt::{self, Display, Formatter};

use io_probe_core::advise::page_costs::cache_mix::{CacheMix, HitRatios};
use io_probe_core::advise::page_costs::choose::{Cell, Chosen, Settings, grid};
use io_probe_core::advise::page_costs::curve::GapCurve;
use io_probe_core::advise::page_costs::model::Times;
use io_probe_core::measure::page_times::{Estimate, NotCold, PageTimes};
use io_probe_core::run::budget::Stop;
use pgrx::pg_sys;
use serde_json::{Value, json};

use self::planned::Answers;
use super::RecommendCall;
use super::place::{Candidate, OpenedRelation, TablespaceTarget};
use super::row::{RecommendRow, Setting};
use super::{CachedPages, Unit};
use crate::api::cache::cached_bytes;
use crate::api::page_cost::{self, MeasuredRelation, NoTime, Wanted};
use crate::call::ProbedRelation;
use crate::call::arguments::figure;
use crate::call::probe::Probe;
use crate::error::Result;
use crate::pg::backend::reserve::Reserved;
use crate::pg::backend::{interrupts, server};
use crate::pg::catalog::{facts, planner};
use crate::pg::storage::relation::{Fork, Held, Relation, indexes_of};

/// A row for each of the four that is wanted, from what was measured on the tablespace's relations.
pub(super) fn rows(recommend: &RecommendCall<'_>, place: &TablespaceTarget) -> Result<Vec<RecommendRow>> {
    let wanted: Vec<Setting> =
        Setting::OF_TABLESPACE.into_iter().filter(|setting| recommend.wants(*setting)).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let all = |relation: Option<Candidate>, why: &str| {
        let row =
            |setting| RecommendRow::of_tablespace(setting, place).used(place.used(relation)).unknown(why);
        Ok(wanted.iter().map(|setting| row(*setting)).collect())
    };
    let (mut last, mut why) = (None, place.why_none().to_owned());
    for relation in place.free_relations() {
        if let Some(stop) = recommend.call.ended() {
            return all(last, &stop.to_string());
        }
        let probed = match place.open(relation)? {
            OpenedRelation::Ready(probed) => probed,
            OpenedRelation::Refused(why) => return all(Some(relation), &why),
            OpenedRelation::Gone => continue,
        };
        let measured = RelationTimes::of(recommend, &probed)?;
        drop(probed);
        if measured.times.device_sequential.is_none()
            && let Some(lacking) = measured.lacking
        {
            // Another one may have a part that is not cached.
            (last, why) = (last.or(Some(relation)), not_all_times(lacking));
            continue;
        }
        let advice = Advice::of(recommend, place, &measured);
        let row = |setting| RecommendRow::of_tablespace(setting, place).used(place.used(Some(relation)));
        return Ok(wanted.iter().map(|setting| advice.fill_row(*setting, row(*setting))).collect());
    }
    all(last, &why)
}

fn not_all_times(why: impl Display) -> String {
    format!("not all times could be measured: {why}")
}

/// Why a time is lacking, and why the measurement ended.
#[derive(Clone, Copy)]
struct Lacking {
    why: NoTime,
    stop: Option<Stop>,
}

impl Display for Lacking {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.why, self.stop) {
            (NoTime::NotBegun(_), _) | (_, None) => self.why.fmt(f),
            (why, Some(stop)) => write!(f, "{why}; {stop}"),
        }
    }
}

/// The times of a relation.
struct RelationTimes {
    times: PageTimes,
    /// Why one is lacking, if so.
    lacking: Option<Lacking>,
    /// Must reads with gaps be at the tablespace's own concurrency?
    has_fixed_concurrency: bool,
    /// At how many they were to be measured.
    concurrencies: usize,
}

impl RelationTimes {
    fn of(recommend: &RecommendCall<'_>, probed: &ProbedRelation) -> Result<Self> {
        let wanted = Wanted::usual(recommend.page_limits, recommend.request.cold);
        let MeasuredRelation { results, times, stop } = page_cost::measure(recommend.call, probed, &wanted)?;
        // Of those that are lacking, the device's say why.
        let lacking = results.iter().filter(|one| one.no_time.is_some());
        let lacking = lacking.max_by_key(|one| one.is_from_device()).and_then(|one| one.no_time);
        let has_fixed_concurrency = probed.relation.file_tablespace().fixed_concurrency().is_some();
        let depths: HashSet<Option<u32>> =
            results.iter().filter(|one| one.is_sparse()).map(|one| one.measured.depth).collect();
        Ok(Self {
            times: times.with_whole_lines(),
            lacking: lacking.map(|why| Lacking { why, stop }),
            has_fixed_concurrency,
            concurrencies: depths.len(),
        })
    }

    /// Why a time is not known: what the rows say of it, or else this.
    fn why_lacking(&self, or: &str) -> String {
        self.lacking.map_or_else(|| not_all_times(or), not_all_times)
    }

    /// Would eviction help?
    fn lacks_cold_blocks(&self) -> bool {
        self.lacking.as_ref().is_some_and(|lacking| matches!(lacking.why, NoTime::NotCold(NotCold::Cached)))
    }

    /// Why reads with gaps are not known at other concurrencies.
    fn why_one_concurrency(&self) -> String {
        match &self.lacking {
            _ if self.has_fixed_concurrency => {
                "the tablespace has an effective_io_concurrency of its own, so no other could be measured: RESET it to compare".to_owned()
            }
            _ if self.concurrencies < 2 => "pg_io_probe.max_depth leaves no other concurrency to compare with".to_owned(),
            Some(lacking) => format!("reads with gaps were not measured at all concurrencies: {lacking}"),
            None => "the concurrency in force is over pg_io_probe.max_depth, so it was not measured".to_owned(),
        }
    }
}

/// What the times say.
struct Advice<'a> {
    recommend: &'a RecommendCall<'a>,
    measured: &'a RelationTimes,
    in_force: Settings,
    maintenance: Option<u32>,
    hits: Option<HitRatios>,
    planned: Option<std::result::Result<(Answers, Chosen), String>>,
}

impl<'a> Advice<'a> {
    fn of(recommend: &'a RecommendCall<'a>, place: &TablespaceTarget, measured: &'a RelationTimes) -> Self {
        let number = |setting: Setting| place.setting(setting).and_then(|value| value.number());
        let in_force = Settings {
            cell: Cell {
                sequential: number(Setting::SeqPageCost).unwrap_or(1.0),
                random: number(Setting::RandomPageCost).unwrap_or(4.0),
            },
            concurrency: number(Setting::EffectiveIoConcurrency).unwrap_or(1.0) as u32,
        };
        let hits = match recommend.request.cache {
            CachedPages::Current => hits_of_residency(&place.relations),
            CachedPages::Stats => hits_of_statistics(&place.relations),
            CachedPages::Cold | CachedPages::Planned => None,
        };
        let mut advice = Self {
            recommend,
            measured,
            in_force,
            maintenance: number(Setting::MaintenanceIoConcurrency).map(|number| number as u32),
            hits,
            planned: None,
        };
        if recommend.request.cache == CachedPages::Planned {
            advice.planned = Some(
                Times::of(&measured.times, server::shared_buffers())
                    .map_err(|lacking| measured.why_lacking(lacking))
                    .and_then(|times| advice.ask_planner(place, &times)),
            );
        }
        advice
    }

    fn ask_planner(
        &self,
        place: &TablespaceTarget,
        times: &Times,
    ) -> std::result::Result<(Answers, Chosen), String> {
        // Without prefetch, which index scans need, and as it is now.
        let has =
            |curve: &GapCurve, wanted: u32| curve.concurrencies().any(|concurrency| concurrency == wanted);
        let in_force = self.in_force.concurrency;
        let Some(curve) = self.curve().filter(|curve| has(curve, 0) && has(curve, in_force)) else {
            return Err(self.measured.why_one_concurrency());
        };
        let tables: Vec<_> = place.relations.iter().map(|relation| relation.oid).collect();
        let cells = grid(self.in_force.cell, self.anchor());
        let concurrencies: Vec<u32> = curve.concurrencies().collect();
        let mut answers = planned::ask(self.recommend.call, &tables, &cells, &concurrencies, times)?;
        let measured = &self.measured.times;
        let known = |time: Option<Estimate>| time.is_some_and(|time| time.interval.is_some());
        if !known(measured.device_random) || !known(measured.device_sequential) || !curve.has_intervals() {
            return Err("the times have no intervals: measure for longer".to_owned());
        }
        let chosen = answers.regrets.choose(&self.in_force).ok_or_else(|| "no query tells".to_owned())?;
        answers.look_at_thresholds(self.recommend.call, self.in_force.cell, chosen.settings.cell);
        Ok((answers, chosen))
    }

    fn cache_mix(&self) -> Option<CacheMix> {
        let times = &self.measured.times;
        let (random, sequential) = times.device_random.zip(times.device_sequential)?;
        match self.recommend.request.cache {
            CachedPages::Cold | CachedPages::Planned => Some(CacheMix::raw(random, sequential)),
            CachedPages::Current => Some(CacheMix::cached(random, sequential, times.os_random?, self.hits?)),
            CachedPages::Stats => Some(CacheMix::cached(random, sequential, times.shared?, self.hits?)),
        }
    }

    /// `seq_page_cost` with the processor's costs as they are; None if it is the unit.
    fn anchor(&self) -> Option<f64> {
        if self.recommend.request.unit == Unit::SeqPage {
            return None;
        }
        let costs = self.cache_mix()?.in_cpu(self.measured.times.tuple?, planner::cpu_tuple_cost()?)?;
        Some(costs.sequential.value)
    }

    fn curve(&self) -> Option<GapCurve> {
        GapCurve::of(&self.measured.times)
    }

    /// The figures that all rests on, on a row.
    fn evidence(&self, row: RecommendRow) -> RecommendRow {
        let times = &self.measured.times;
        let shown = |time: Option<Estimate>| time.map_or(Value::Null, |time| json!(figure(time.us)));
        let interval = |time: Option<Estimate>| {
            let interval = time.and_then(|time| time.interval);
            interval.map_or(Value::Null, |(low, high)| json!([figure(low), figure(high)]))
        };
        let row = row
            .rests_on("random_us", shown(times.device_random))
            .rests_on("random_ci_us", interval(times.device_random))
            .rests_on("sequential_us", shown(times.device_sequential))
            .rests_on("sequential_ci_us", interval(times.device_sequential))
            .rests_on("os_random_us", shown(times.os_random))
            .rests_on("os_sequential_us", shown(times.os_sequential))
            .rests_on("shared_us", shown(times.shared))
            .rests_on("tuple_us", shown(times.tuple));
        match self.hits {
            Some(hits) => row
                .rests_on("random_hit_ratio", figure(hits.random))
                .rests_on("sequential_hit_ratio", figure(hits.sequential)),
            None => row,
        }
    }
}

/// What the OS cache holds now: of the tables for sequential reads, of their indexes, too, for random ones.
/// None if that can't be seen.
fn hits_of_residency(relations: &[Candidate]) -> Option<HitRatios> {
    let tables = Cached::of(relations.iter().map(|relation| relation.oid));
    let indexes: Vec<pg_sys::Oid> = relations.iter().flat_map(|relation| indexes_of(relation.oid)).collect();
    let indexes = Cached::of(indexes.into_iter());
    let all = Cached { bytes: tables.bytes + indexes.bytes, cached: tables.cached + indexes.cached };
    tables.share().zip(all.share()).map(|(sequential, random)| HitRatios { random, sequential })
}

/// What the server has counted since its statistics were reset: of tables for sequential reads, of indexes
/// for random ones. Hits are those in shared buffers. None before anything was read.
fn hits_of_statistics(relations: &[Candidate]) -> Option<HitRatios> {
    let oids: Vec<pg_sys::Oid> = relations.iter().map(|relation| relation.oid).collect();
    let counted = facts::hits(&oids)?;
    let share = |hit: u64, read: u64| (hit + read > 0).then(|| hit as f64 / (hit + read) as f64);
    let sequential = share(counted.heap_hit, counted.heap_read)?;
    let random = share(counted.index_hit, counted.index_read)?;
    Some(HitRatios { random, sequential })
}

#[derive(Default)]
struct Cached {
    bytes: u64,
    cached: u64,
}

impl Cached {
    fn of(relations: impl Iterator<Item = pg_sys::Oid>) -> Self {
        let mut sum = Self::default();
        for oid in relations {
            interrupts::check();
            let Some(_held) = Held::take(oid) else { continue };
            // One that is gone by now holds nothing.
            let Ok(relation) = Relation::open_to_read(oid, Probe::Recommend.function()) else { continue };
            let Some(source) = relation.source(Fork::MAIN) else { continue };
            let _descriptors = Reserved::of(&source);
            if let Some(cached) = cached_bytes(&source) {
                sum.bytes += source.blocks() * u64::from(source.block_size());
                sum.cached += cached;
            }
        }
        sum
    }

    fn share(&self) -> Option<f64> {
        (self.bytes > 0).then(|| (self.cached as f64 / self.bytes as f64).min(1.0))
    }
}
