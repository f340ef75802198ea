//! autovacuum_vacuum_cost_limit, from what it allows a vacuum to read and what the volume reads.
//!
//! What tables have of their own (reloptions) is not looked at.

use std::sync::Arc;
use std::time::Duration;

use io_probe_advise::vacuum::{SHARE, VacuumCosts, VacuumLimit, vacuum_limit};
use io_probe_core::machine::account::Account;
use io_probe_core::measure::load::Requests;
use io_probe_core::measure::sustain::{self, Sustain, SustainRun};
use io_probe_core::run::budget::Limits;
use io_probe_core::stats::{Interval, Slice, of_turns};
use io_probe_surface::doubt::Doubt;
use pgrx::pg_sys;

use super::advice::{Recommendation, Setting};
use super::place::{GONE, Opened, TablespaceTarget};
use super::{RecommendCall, io_method, reads};
use crate::api::shared;
use crate::call::arguments::seed;
use crate::call::{Outcome, ProbedRelation, figure};
use crate::error::Result;
use crate::pg::backend::server;
use crate::pg::catalog::facts::qualified_name;

/// Bytes of a read, and reads in flight: as readahead makes them.
const READ_BYTES: usize = 256 << 10;
const IN_FLIGHT: usize = 2;

/// Turns, and the longest time of all.
const TURNS: u32 = 6;
const LONGEST: Duration = Duration::from_secs(2);

const MIB: f64 = 1_048_576.0;

/// The row, by the largest table that no strong lock keeps from us.
pub(super) fn row(
    recommend: &RecommendCall<'_>,
    places: &[TablespaceTarget],
) -> Result<Option<Recommendation>> {
    if !recommend.wants(Setting::AutovacuumVacuumCostLimit) {
        return Ok(None);
    }
    let row = Recommendation::of_cluster(Setting::AutovacuumVacuumCostLimit);
    let Some(costs) = costs() else {
        return Ok(Some(row.unknown("not known: the settings of vacuum's costs can't be read")));
    };
    let largest = places.iter().filter_map(|place| Some((place, place.free_relations().next()?)));
    let Some((place, relation)) = largest.max_by_key(|(_, relation)| relation.bytes) else {
        let why = places.first().map_or("", TablespaceTarget::why_none);
        return Ok(Some(row.unknown(why)));
    };
    let told = told(&costs, relation.oid, relation.bytes as f64);
    let row = row
        .used(Some(relation.oid))
        .rests_on("allowed_read_mib_s", costs.read_s().map(|bytes| figure(bytes / MIB)))
        .rests_on("allowed_changed_mib_s", costs.changed_s().map(|bytes| figure(bytes / MIB)))
        .rests_on("table_mib", figure(relation.bytes as f64 / MIB));
    let probed = match place.open(recommend.call, relation)? {
        Opened::Relation(probed) => probed,
        Opened::Gone => return Ok(Some(row.unknown(GONE))),
        Opened::NotMeasured(why) => return Ok(Some(row.unknown(format!("{why}; {told}")))),
    };
    if recommend.limits.make_pauses() {
        let why = "not measured: with a limit of the rate or of the device's time the volume reads less";
        return Ok(Some(row.unknown(format!("{why}; {told}"))));
    }
    let measured = recommend.call.attempt(|| measure(recommend, &probed), |(sustain, _)| sustain.stop);
    let (sustain, doubt) = match measured {
        Ok(measured) => measured,
        Err(failure) => return Ok(Some(row.unknown(format!("{}; {told}", io_method::why_not(failure)?)))),
    };
    let Some(read_s) = read_s(&sustain) else {
        let longer = recommend.longer(None);
        let why = sustain.stop.map_or(format!("too few turns counted: {longer}"), |stop| stop.to_string());
        return Ok(Some(row.unknown(format!("{why}; {told}"))));
    };
    let told = format!("{told}; the volume was measured to read {} MiB/s", mib(read_s.value));
    let row = row.rests_on("volume_read_mib_s", figure(read_s.value / MIB));
    Ok(Some(judged(row, &costs, read_s, relation.bytes as f64, told).beside(doubt)))
}

fn judged(
    row: Recommendation,
    costs: &VacuumCosts,
    read_s: Interval,
    table: f64,
    told: String,
) -> Recommendation {
    match vacuum_limit(costs, read_s, table) {
        VacuumLimit::KeepFree => row.keep(told),
        VacuumLimit::KeepVolume => row.keep(format!("{told}, so the limit does not slow a vacuum")),
        VacuumLimit::Keep => row.keep(format!("{told}, so a higher limit would gain little")),
        VacuumLimit::Raise { to, high } => {
            let raised = VacuumCosts { limit: to as f64, ..*costs };
            let why = format!(
                "{told}; if a vacuum may have {} % of that, {to} lets it read the table in {}",
                100.0 * SHARE,
                hours(table / raised.read_s().unwrap_or(f64::INFINITY))
            );
            row.between(to.to_string(), high.to_string()).alter(to.to_string(), why)
        }
    }
}

/// What autovacuum goes by: its own settings, or those of any vacuum where it has none.
fn costs() -> Option<VacuumCosts> {
    let limit = server::number::<f64>(c"autovacuum_vacuum_cost_limit").filter(|limit| *limit > 0.0);
    let delay_ms = server::number::<f64>(c"autovacuum_vacuum_cost_delay").filter(|delay| *delay >= 0.0);
    Some(VacuumCosts {
        limit: limit.or_else(|| server::number(c"vacuum_cost_limit"))?,
        delay_ms: delay_ms.or_else(|| server::number(c"vacuum_cost_delay"))?,
        miss: server::number(c"vacuum_cost_page_miss")?,
        dirty: server::number(c"vacuum_cost_page_dirty")?,
        page_bytes: pg_sys::BLCKSZ,
    })
}

/// What the settings allow, and how long the largest table takes by that.
fn told(costs: &VacuumCosts, table: pg_sys::Oid, bytes: f64) -> String {
    let (Some(read), Some(changed)) = (costs.read_s(), costs.changed_s()) else {
        return "the settings do not slow autovacuum".to_owned();
    };
    let name = qualified_name(table).unwrap_or_default();
    format!(
        "all workers of autovacuum together may read {} MiB/s, {} where they change each page: to read all \
         of {name} ({} MiB) takes {}, to change all {}",
        mib(read),
        mib(changed),
        mib(bytes),
        hours(bytes / read),
        hours(bytes / changed)
    )
}

/// So many seconds in hours.
fn hours(seconds: f64) -> String {
    let hours = seconds / 3600.0;
    if hours < 0.1 { "under 0.1 h".to_owned() } else { format!("{hours:.1} h") }
}

fn mib(bytes: f64) -> f64 {
    figure((bytes / MIB * 10.0).round() / 10.0)
}

/// Reads the table in order, past the page cache.
fn measure(recommend: &RecommendCall<'_>, relation: &ProbedRelation) -> Outcome<(Sustain, Option<Doubt>)> {
    relation.reads_of_device()?;
    let reads = reads::of(recommend.call, relation, seed(None), IN_FLIGHT, Some(READ_BYTES))?;
    let requests: Arc<dyn Requests> = Arc::new(reads);
    let duration = recommend.limits.duration.min(LONGEST);
    let observer = relation.observer(Account::Own);
    let run = SustainRun {
        requests,
        workers: IN_FLIGHT,
        every: duration / TURNS,
        limits: Limits { duration, ..recommend.limits },
        observer: &observer,
    };
    let call = recommend.call;
    let mut report = |turn: u64, _| call.progress.done(turn - 1);
    let (sustain, surroundings) = observer
        .beside(|| call.with_budget(&relation.interrupts, |budget| sustain::run(&run, budget, &mut report)));
    Ok((sustain?, shared::worst(surroundings.is_disturbed(), &surroundings.held_back)))
}

/// Bytes a second. None for too few turns, or if they contradict themselves.
fn read_s(sustain: &Sustain) -> Option<Interval> {
    let turns: Vec<Slice> = sustain.slices.iter().map(|slice| slice.slice).collect();
    let time = of_turns(&turns).filter(|time| time.low > 0.0 && !sustain.is_void(IN_FLIGHT))?;
    let of_time = |ns: f64| READ_BYTES as f64 * 1e9 / ns;
    Some(Interval { value: of_time(time.value), low: of_time(time.high), high: of_time(time.low) })
}
