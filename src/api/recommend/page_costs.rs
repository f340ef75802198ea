//! random_page_cost, seq_page_cost, effective_io_concurrency and maintenance_io_concurrency of a
//! tablespace, and the correlations of its indexes.

mod correlations;
mod planned;
mod verdict;

use std::collections::HashSet;

use io_probe_core::advise::page_costs::choose::{Cell, Settings, grid};
use io_probe_core::advise::page_costs::curve::GapCurve;
use io_probe_core::advise::page_costs::model::Times;
use io_probe_core::measure::page_times::{Estimate, NotCold, PageTimes};
use pgrx::pg_sys;
use serde_json::{Value, json};

use self::planned::Answers;
use super::place::{Candidate, TablespaceTarget};
use super::row::{RecommendRow, Setting};
use super::{RecommendCall, Unit};
use crate::api::page_cost::{self, MeasuredRelation, NoTime, Wanted};
use crate::call::ProbedRelation;
use crate::call::arguments::figure;
use crate::error::Result;
use crate::pg::backend::server;
use crate::pg::catalog::facts::relation_name;
use crate::pg::catalog::planner;
use crate::pg::storage::buffers;

/// A row for each of these settings that is wanted, from what was measured on the tablespace's relations.
pub(super) fn rows(recommend: &RecommendCall<'_>, place: &TablespaceTarget) -> Result<Vec<RecommendRow>> {
    let wanted: Vec<Setting> =
        Setting::OF_TABLESPACE.into_iter().filter(|setting| recommend.wants(*setting)).collect();
    let wants_indexes = recommend.wants(Setting::Correlation);
    if wanted.is_empty() && !wants_indexes {
        return Ok(Vec::new());
    }
    // A call that lists correlations is told why there are none.
    let wanted_anyway = recommend.request.lists_settings && wants_indexes;
    let all = |relation: Option<Candidate>, why: &str| {
        let of_indexes = wanted_anyway.then(|| RecommendRow::of_index(None));
        let of_place = wanted.iter().map(|setting| place.row(*setting));
        let row = |row: RecommendRow| row.used(place.used(relation)).unknown(why);
        Ok(of_place.chain(of_indexes).map(row).collect())
    };
    let (mut last, mut why) = (None, place.why_none().to_owned());
    let mut skipped = Skipped::default();
    for relation in place.free_relations() {
        // Another table may give all times.
        if place.named.is_none()
            && let Err(lacking) = planner::check_plannable(relation.oid)
        {
            (last, why) = (last.or(Some(relation)), not_all_times(lacking));
            skipped.add(relation.oid, lacking);
            continue;
        }
        let probed = match place.open(recommend.call, relation)? {
            Ok(Some(probed)) => probed,
            Ok(None) => continue,
            Err(why) => return all(Some(relation), &why),
        };
        let measured = RelationTimes::of(recommend, &probed)?;
        drop(probed);
        if measured.times.device_sequential.is_none()
            && let Some(lacking) = &measured.lacking
        {
            // Another relation may have a part that is not cached.
            (last, why) = (last.or(Some(relation)), not_all_times(lacking));
            continue;
        }
        let advice = Advice::of(recommend, place, &measured, &skipped);
        let used = place.used(Some(relation));
        let row = |setting| place.row(setting).used(used);
        let mut rows: Vec<_> =
            wanted.iter().map(|setting| skipped.tell(advice.fill_row(*setting, row(*setting)))).collect();
        if wants_indexes {
            rows.extend(advice.of_indexes(wanted_anyway));
        }
        return Ok(rows);
    }
    all(last, &why)
}

fn not_all_times(why: &str) -> String {
    format!("not all times could be measured: {why}")
}

/// Tables that are left out, since no query of them can be planned.
#[derive(Default)]
struct Skipped {
    tables: Vec<pg_sys::Oid>,
    told: Vec<String>,
}

impl Skipped {
    fn add(&mut self, table: pg_sys::Oid, why: &str) {
        self.tables.push(table);
        self.told.extend(relation_name(table).map(|name| format!("{name} ({why})")));
    }

    fn tell(&self, row: RecommendRow) -> RecommendRow {
        row.also(&planned::told(&self.told))
    }
}

/// The times of a relation.
struct RelationTimes {
    times: PageTimes,
    /// Why a time is lacking, if one is, and why the measurement ended.
    lacking: Option<String>,
    /// Would eviction help?
    lacks_cold_blocks: bool,
    /// Must reads with gaps be at the tablespace's own concurrency?
    has_fixed_concurrency: bool,
    /// Number of concurrencies at which they were to be measured.
    concurrencies: usize,
    /// Did others use the device meanwhile?
    disturbed: bool,
}

impl RelationTimes {
    fn of(recommend: &RecommendCall<'_>, probed: &ProbedRelation) -> Result<Self> {
        let wanted = Wanted::for_advice(recommend.page_limits, recommend.request.cold);
        let MeasuredRelation { results, times, stop, disturbed } =
            page_cost::measure(recommend.call, probed, &wanted)?;
        // Of the times that are lacking, the device's say why.
        let lacking = results.iter().filter(|one| one.no_time.is_some());
        let lacking = lacking.max_by_key(|one| one.is_from_device()).and_then(|one| one.no_time);
        let lacks_cold_blocks = match lacking {
            Some(NoTime::NotCold(NotCold::Cached)) => true,
            Some(NoTime::NotCold(NotCold::Buffered)) => {
                !wanted.evicts && buffers::can_evict(&probed.relation)
            }
            _ => false,
        };
        let has_fixed_concurrency = probed.relation.file_tablespace().fixed_concurrency().is_some();
        let depths: HashSet<Option<u32>> =
            results.iter().filter(|one| one.is_sparse()).map(|one| one.measured.depth).collect();
        Ok(Self {
            times: times.with_whole_lines(),
            lacking: lacking.map(|why| match (why, stop) {
                (NoTime::NotBegun(_), _) | (_, None) => why.to_string(),
                (_, Some(stop)) => format!("{why}; {stop}"),
            }),
            lacks_cold_blocks,
            has_fixed_concurrency,
            concurrencies: depths.len(),
            disturbed,
        })
    }

    /// Why a time is not known: what the rows say of it, or else `or`.
    fn why_lacking(&self, or: &str) -> String {
        not_all_times(self.lacking.as_deref().unwrap_or(or))
    }

    /// The times that the model needs, or why one is lacking.
    fn model(&self) -> std::result::Result<Times, String> {
        let times = Times::of(&self.times, server::shared_buffers());
        let times = times.map_err(|lacking| self.why_lacking(lacking))?;
        Ok(times.by_workers(server::reads_by_workers()))
    }

    /// Why reads with gaps are not known at other concurrencies.
    fn why_one_concurrency(&self) -> String {
        match &self.lacking {
            _ if self.has_fixed_concurrency => {
                "the tablespace has an effective_io_concurrency of its own, so no other could be measured: \
                 RESET it to compare"
                    .to_owned()
            }
            _ if self.concurrencies < 2 => {
                "pg_io_probe.max_depth leaves no other concurrency to compare with".to_owned()
            }
            Some(lacking) => format!("reads with gaps were not measured at all concurrencies: {lacking}"),
            None => {
                "the concurrency in force is over pg_io_probe.max_depth, so it was not measured".to_owned()
            }
        }
    }
}

/// The advice that the times give.
struct Advice<'a> {
    recommend: &'a RecommendCall<'a>,
    measured: &'a RelationTimes,
    in_force: Settings,
    maintenance: Option<u32>,
    planned: std::result::Result<Answers, String>,
}

impl<'a> Advice<'a> {
    fn of(
        recommend: &'a RecommendCall<'a>,
        place: &TablespaceTarget,
        measured: &'a RelationTimes,
        skipped: &Skipped,
    ) -> Self {
        let number = |setting: Setting| place.setting(setting).and_then(|value| value.number());
        let in_force = Settings {
            cell: Cell {
                sequential: number(Setting::SeqPageCost).unwrap_or(1.0),
                random: number(Setting::RandomPageCost).unwrap_or(4.0),
            },
            concurrency: number(Setting::EffectiveIoConcurrency).unwrap_or(1.0) as u32,
        };
        Self {
            recommend,
            measured,
            in_force,
            maintenance: number(Setting::MaintenanceIoConcurrency).map(|number| number as u32),
            planned: ask_planner(recommend, place, measured, skipped, &in_force),
        }
    }

    fn curve(&self) -> Option<GapCurve> {
        GapCurve::of(&self.measured.times)
    }

    /// Adds the figures that all advice rests on to a row.
    fn evidence(&self, row: RecommendRow) -> RecommendRow {
        let times = &self.measured.times;
        let shown = |time: Option<Estimate>| time.map_or(Value::Null, |time| json!(figure(time.us)));
        let interval = |time: Option<Estimate>| {
            let interval = time.and_then(|time| time.interval);
            interval.map_or(Value::Null, |(low, high)| json!([figure(low), figure(high)]))
        };
        row.rests_on("random_us", shown(times.device_random))
            .rests_on("random_ci_us", interval(times.device_random))
            .rests_on("sequential_us", shown(times.device_sequential))
            .rests_on("sequential_ci_us", interval(times.device_sequential))
            .rests_on("os_random_us", shown(times.os_random))
            .rests_on("os_sequential_us", shown(times.os_sequential))
            .rests_on("shared_us", shown(times.shared))
            .rests_on("tuple_us", shown(times.tuple))
    }
}

/// Which settings are best by what the planner picks. Err says why nothing can be said of that.
fn ask_planner(
    recommend: &RecommendCall<'_>,
    place: &TablespaceTarget,
    measured: &RelationTimes,
    skipped: &Skipped,
    in_force: &Settings,
) -> std::result::Result<Answers, String> {
    let times = measured.model()?;
    // Reads must be known without prefetch, which index scans need, and at the present concurrency.
    let curve = GapCurve::of(&measured.times)
        .filter(|_| times.covers(in_force.concurrency))
        .ok_or_else(|| measured.why_one_concurrency())?;
    let pages = |relation: &Candidate| relation.bytes / u64::from(pg_sys::BLCKSZ);
    let is_asked = |relation: &&Candidate| !skipped.tables.contains(&relation.oid);
    let asked = place.relations.iter().filter(is_asked);
    let tables: Vec<_> = asked.map(|relation| (relation.oid, pages(relation))).collect();
    let anchor = match recommend.request.unit {
        Unit::SeqPage => None,
        Unit::Cpu => planner::cpu_tuple_cost().and_then(|cost| times.seq_page_cost(cost)),
    };
    let cells = grid(in_force.cell, anchor);
    let concurrencies: Vec<u32> = curve.concurrencies().collect();
    let PageTimes { device_random, device_sequential, .. } = measured.times;
    let known = |time: Option<Estimate>| time.is_some_and(|time| time.interval.is_some());
    if !known(device_random) || !known(device_sequential) || !curve.has_intervals() {
        return Err(
            "the times have no intervals: give it a longer duration and a larger max_bytes".to_owned()
        );
    }
    let mut answers = planned::ask(recommend.call, &tables, &cells, &concurrencies, in_force, &times)?;
    answers.look_at_thresholds(recommend.call, in_force.cell);
    Ok(answers)
}
