//! random_page_cost, effective_io_concurrency and maintenance_io_concurrency of a tablespace, and the
//! correlations of its indexes.

mod correlations;
mod planned;
mod verdict;

use std::collections::BTreeSet;
use std::time::Duration;

use io_probe_advise::page_costs::choose::{CostPair, Settings, grid};
use io_probe_advise::page_costs::curve::GapCurve;
use io_probe_advise::page_costs::model::Times;
use io_probe_core::measure::page_times::{Estimate, NotCold, PageTimes};
use io_probe_surface::doubt::Doubt;
use pgrx::pg_sys;
use serde_json::{Value, json};

use self::planned::{Answers, Question};
use super::advice::{Lacking, NEEDS_COLD, Recommendation, Setting, UNKNOWN};
use super::place::{Candidate, TablespaceTarget};
use super::{PARTS_OF_PAGES, RecommendCall};
use crate::api::page_cost::{self, MeasuredRelation, NoTime, TimeResult, Wanted};
use crate::call::{NamedEnum, ProbedRelation, figure};
use crate::error::Result;
use crate::pg::backend::server;
use crate::pg::catalog::facts::qualified_name;
use crate::pg::catalog::planner;
use crate::pg::storage::buffers;

/// A row for each of these settings that is wanted, from what was measured on the tablespace's relations.
pub(super) fn rows(recommend: &RecommendCall<'_>, place: &TablespaceTarget) -> Result<Vec<Recommendation>> {
    let wanted = Setting::OF_TABLESPACE.into_iter().filter(|setting| recommend.wants(*setting));
    let mut search = Search {
        recommend,
        place,
        wanted: wanted.collect(),
        skipped: Skipped::default(),
        first: None,
        why: place.why_none().to_owned(),
        needs_cold: false,
    };
    if search.wanted.is_empty() && !recommend.wants(Setting::Correlation) {
        return Ok(Vec::new());
    }
    for relation in place.free_relations() {
        if let Some(rows) = search.rows_by(relation)? {
            return Ok(rows);
        }
    }
    Ok(search.unknown(search.first, &search.why))
}

/// The search for a relation of a tablespace that gives all times.
struct Search<'a> {
    recommend: &'a RecommendCall<'a>,
    place: &'a TablespaceTarget,
    /// The tablespace's settings that are wanted.
    wanted: Vec<Setting>,
    skipped: Skipped,
    /// The first relation that did not give all times, and why the last one did not.
    first: Option<Candidate>,
    why: String,
    /// Would one of them give more times if it might be evicted?
    needs_cold: bool,
}

impl Search<'_> {
    /// The rows by the times of this relation; None where another one may give more.
    fn rows_by(&mut self, relation: Candidate) -> Result<Option<Vec<Recommendation>>> {
        let Self { recommend, place, .. } = *self;
        if place.named.is_none()
            && let Err(lacking) = planner::check_plannable(relation.oid)
        {
            self.skipped.add(relation.oid, lacking);
            return Ok(self.pass_over(relation, lacking));
        }
        let probed = match place.open(recommend.call, relation) {
            Ok(probed) => probed,
            Err(Lacking::Gone) => return Ok(None),
            Err(lacking) => return Ok(Some(self.unknown(Some(relation), &lacking.told()?.1))),
        };
        let measured = RelationTimes::of(recommend, &probed)?;
        drop(probed);
        if measured.times.device_sequential.is_none()
            && !measured.is_of_no_device
            && let Some(lacking) = &measured.lacking
        {
            self.needs_cold |= measured.lacks_cold_blocks;
            return Ok(self.pass_over(relation, lacking));
        }
        let advice = Advice::of(recommend, place, &measured, &self.skipped);
        let used = place.used(Some(relation));
        let rows = self
            .wanted
            .iter()
            .map(|setting| self.skipped.tell(advice.fill_row(*setting, place.row(*setting).used(used))));
        let mut rows: Vec<_> = rows.collect();
        if recommend.wants(Setting::Correlation) {
            rows.extend(advice.of_indexes(self.tells_of_indexes()));
        }
        Ok(Some(rows))
    }

    fn pass_over<T>(&mut self, relation: Candidate, why: &str) -> Option<T> {
        (self.first, self.why) = (self.first.or(Some(relation)), not_all_times(why));
        None
    }

    /// A call that lists correlations is told why there are none.
    fn tells_of_indexes(&self) -> bool {
        self.recommend.request.lists_settings && self.recommend.wants(Setting::Correlation)
    }

    /// All rows without advice.
    fn unknown(&self, relation: Option<Candidate>, why: &str) -> Vec<Recommendation> {
        let of_place = self.wanted.iter().map(|setting| self.place.row(*setting));
        let of_indexes = self.tells_of_indexes().then(|| Recommendation::of_index(None));
        let doubt = if self.needs_cold { NEEDS_COLD } else { UNKNOWN };
        let without =
            |row: Recommendation| row.used(self.place.used(relation)).without(doubt, why.to_owned());
        of_place.chain(of_indexes).map(without).collect()
    }
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
        self.told.extend(qualified_name(table).map(|name| format!("{name} ({why})")));
    }

    fn tell(&self, row: Recommendation) -> Recommendation {
        row.also(&planned::told(&self.told))
    }
}

struct RelationTimes {
    times: PageTimes,
    /// Blocks that the kernel reads ahead at most.
    window: f64,
    /// Why a time is lacking, if one is, and why the measurement ended.
    lacking: Option<String>,
    /// Is it unknown what served the blocks below the page cache? So it is of other relations there.
    is_of_no_device: bool,
    /// The duration of a call that has time for all intervals, if one is lacking for want of time.
    needs: Option<Duration>,
    longer: String,
    /// Would eviction help?
    lacks_cold_blocks: bool,
    /// Must reads with gaps be at the tablespace's own concurrency?
    has_fixed_concurrency: bool,
    /// Number of concurrencies at which they were to be measured.
    concurrencies: usize,
    /// At which of these none was, and which call has the time for it.
    not_measured: Option<String>,
    /// What speaks against all of them.
    doubt: Option<Doubt>,
}

impl RelationTimes {
    fn of(recommend: &RecommendCall<'_>, probed: &ProbedRelation) -> Result<Self> {
        let wanted = Wanted::for_advice(recommend.page_limits()?, recommend.request.cold);
        let MeasuredRelation { results, times, stop, needs, needs_at_each, doubt } =
            page_cost::measure(recommend.call, probed, &wanted)?;
        let is_of_no_device = results.iter().any(TimeResult::is_of_no_device);
        // No longer call makes a device of it.
        let needs = needs.filter(|_| !is_of_no_device).map(|needs| recommend.whole(needs, PARTS_OF_PAGES));
        // Of the times that are lacking, the device's say why.
        let lacking = results.iter().filter(|one| one.no_time.is_some() && !one.is_left_out());
        let lacking = lacking.max_by_key(|one| (one.is_of_no_device(), one.is_from_device()));
        let lacking = lacking.and_then(|one| one.no_time);
        let lacks_cold_blocks = match lacking {
            Some(NoTime::NotCold(NotCold::Cached)) => true,
            Some(NoTime::NotCold(NotCold::Buffered)) => {
                !wanted.evicts && buffers::can_evict(&probed.relation)
            }
            _ => false,
        };
        let place = probed.relation.file_tablespace();
        let has_fixed_concurrency = place.fixed_concurrency().is_some();
        let (left_out, measured): (Vec<_>, Vec<_>) =
            results.iter().filter(|one| one.is_sparse()).partition(|one| one.is_left_out());
        let [left_out, measured] = [left_out, measured].map(depths);
        let longer_for_each =
            recommend.longer(needs_at_each.map(|needs| recommend.whole(needs, PARTS_OF_PAGES)));
        let not_measured = left_out.difference(&measured).map(u32::to_string).collect::<Vec<_>>().join(", ");
        let not_measured = (!not_measured.is_empty())
            .then(|| format!("not measured, since turns take long here: {not_measured}; {longer_for_each}"));
        Ok(Self {
            is_of_no_device,
            window: probed.placement.read_ahead_blocks(pg_sys::BLCKSZ),
            times: times.with_whole_lines(&[place.io_concurrency(), place.maintenance_concurrency()]),
            longer: recommend.longer(needs),
            needs,
            lacking: lacking.map(|why| match (why, stop) {
                (NoTime::NotBegun(_), _) | (_, None) => why.to_string(),
                (_, Some(stop)) => format!("{why}; {stop}"),
            }),
            lacks_cold_blocks,
            has_fixed_concurrency,
            concurrencies: measured.union(&left_out).count(),
            not_measured,
            doubt,
        })
    }

    /// Why a time is not known: what the rows say of it, or else `or`.
    fn why_lacking(&self, or: &str) -> String {
        if self.needs.is_some() {
            return self.no_intervals();
        }
        not_all_times(self.lacking.as_deref().unwrap_or(or))
    }

    /// That times have no intervals, and which call has the time for them.
    fn no_intervals(&self) -> String {
        format!("the times have no confidence intervals: {}", self.longer)
    }

    /// The times that the model needs, or why one is lacking.
    fn model(&self) -> std::result::Result<Times, String> {
        let times = Times::of(&self.times, server::shared_buffers(), self.window);
        let times = times.map_err(|lacking| self.why_lacking(lacking))?;
        Ok(times.by_workers(server::reads_by_workers()))
    }

    /// Why reads with gaps are not known at other concurrencies.
    fn why_one_concurrency(&self) -> String {
        match &self.lacking {
            _ if self.needs.is_some() => self.no_intervals(),
            _ if self.has_fixed_concurrency => {
                "the tablespace has an effective_io_concurrency of its own, so no other could be measured: \
                 RESET it to compare"
                    .to_owned()
            }
            _ if self.concurrencies < 2 => {
                "pg_io_probe.max_depth leaves no other concurrency to compare with".to_owned()
            }
            Some(lacking) => {
                format!("reads of a share of the blocks were not measured at some concurrencies: {lacking}")
            }
            None => {
                "the concurrency in force is over pg_io_probe.max_depth, so it was not measured".to_owned()
            }
        }
    }
}

fn depths(results: Vec<&TimeResult>) -> BTreeSet<u32> {
    results.into_iter().filter_map(|one| one.measured.depth).collect()
}

struct Advice<'a> {
    measured: &'a RelationTimes,
    in_force: Settings,
    maintenance: Option<u32>,
    planned: std::result::Result<Answers, String>,
}

impl<'a> Advice<'a> {
    fn of(
        recommend: &RecommendCall<'_>,
        place: &TablespaceTarget,
        measured: &'a RelationTimes,
        skipped: &Skipped,
    ) -> Self {
        let in_force = Settings {
            cell: CostPair {
                sequential: place.number("seq_page_cost").unwrap_or(1.0),
                random: place.number(Setting::RandomPageCost.name()).unwrap_or(4.0),
            },
            concurrency: place.number(Setting::EffectiveIoConcurrency.name()).unwrap_or(1.0) as u32,
        };
        Self {
            measured,
            in_force,
            maintenance: place.number(Setting::MaintenanceIoConcurrency.name()).map(|number| number as u32),
            planned: ask_planner(recommend, place, measured, skipped, &in_force),
        }
    }

    fn curve(&self) -> Option<GapCurve> {
        GapCurve::of(&self.measured.times)
    }

    /// Adds the figures that all advice rests on to a row.
    fn evidence(&self, row: Recommendation) -> Recommendation {
        let times = &self.measured.times;
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

fn shown(time: Option<Estimate>) -> Option<f64> {
    time.map(|time| figure(time.us))
}

fn interval(time: Option<Estimate>) -> Value {
    json!(time.and_then(|time| time.interval).map(|(low, high)| [figure(low), figure(high)]))
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
    let asked = place.relations.iter().filter(|relation| !skipped.tables.contains(&relation.oid));
    let tables = asked.map(|relation| (relation.oid, relation.bytes / u64::from(pg_sys::BLCKSZ)));
    let tables: Vec<_> = tables.collect();
    let cells = grid(in_force.cell);
    let concurrencies: Vec<u32> = curve.concurrencies().collect();
    let times_of_device = [measured.times.device_random, measured.times.device_sequential];
    let has_intervals = times_of_device.iter().all(|time| time.is_some_and(|time| time.interval.is_some()));
    if !has_intervals || !curve.has_intervals() {
        return Err(measured.no_intervals());
    }
    let question = Question {
        call: recommend.call,
        cells: &cells,
        concurrencies: &concurrencies,
        in_force,
        times: &times,
    };
    question.ask(&tables)
}
