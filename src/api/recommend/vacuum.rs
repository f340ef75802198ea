//! autovacuum_vacuum_cost_limit, from what it allows a vacuum to read and what the volume reads.
//!
//! What tables have of their own (reloptions) is not looked at.

use std::sync::Arc;
use std::time::Duration;

use io_probe_advise::vacuum::{SHARE, VacuumCosts, VacuumLimit, kept_for, vacuum_limit};
use io_probe_core::machine::account::Account;
use io_probe_core::measure::load::Requests;
use io_probe_core::measure::sustain::{self, Sustain, SustainRun};
use io_probe_core::run::budget::Limits;
use io_probe_core::stats::{Interval, Slice, of_turns};
use io_probe_surface::doubt::Doubt;
use pgrx::pg_sys;

use super::RecommendCall;
use super::advice::{Found, Lacking, Recommendation, Setting};
use super::place::{Candidate, TablespaceTarget};
use crate::api::direct_reads::{self, Runs};
use crate::api::shared;
use crate::call::arguments::seed;
use crate::call::{Outcome, ProbedRelation, figure};
use crate::error::Result;
use crate::gucs;
use crate::pg::catalog::facts::{self, qualified_name};

/// Bytes of a read, and reads in flight: as readahead makes them.
const READ_BYTES: usize = 256 << 10;
const IN_ORDER: Runs = Runs { bytes: READ_BYTES, random: None };
const IN_FLIGHT: usize = 2;

/// Fewest turns, the longest time of one, in which max_bytes leaves a fast volume some, and of all.
const TURNS: u32 = 6;
const TURN: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

const MIB: f64 = 1_048_576.0;

const SOON: &str = "if few pages are changed, the pauses of a vacuum add up to less than an hour: a higher \
     autovacuum_vacuum_cost_limit saves less than that";

/// The row, by the largest table that no strong lock keeps from us.
pub(super) fn row(recommend: &RecommendCall<'_>, places: &[TablespaceTarget]) -> Result<Recommendation> {
    let row = Recommendation::of_cluster(Setting::AutovacuumVacuumCostLimit);
    let Some(costs) = costs() else {
        return Ok(row.unknown("not known: the settings of vacuum's costs can't be read"));
    };
    let (place, relation) = match TablespaceTarget::largest(places) {
        Ok(largest) => largest,
        Err(lacking) => return row.lacking(lacking),
    };
    let bytes = relation.bytes as f64;
    let unmeasured = told(&costs, relation.oid, bytes, None);
    let row = row
        .used(Some(relation.oid))
        .rests_on("allowed_read_mib_s", costs.read_s().map(|bytes| figure(bytes / MIB)))
        .rests_on("allowed_changed_mib_s", costs.changed_s().map(|bytes| figure(bytes / MIB)))
        .rests_on("table_mib", figure(bytes / MIB));
    match kept_for(&costs, bytes) {
        Some(VacuumLimit::KeepFree) => return Ok(row.keep(unmeasured)),
        Some(_) => return Ok(row.keep(format!("{unmeasured}; {SOON}"))),
        None => {}
    }
    let (read_s, doubt) = match measured(recommend, place, relation) {
        Ok(measured) => measured,
        Err(Lacking::Why(doubt, why)) => return Ok(row.without(doubt, format!("{why}; {unmeasured}"))),
        Err(lacking) => return row.lacking(lacking),
    };
    let told = told(&costs, relation.oid, bytes, Some(read_s.value));
    let row = row.rests_on("volume_read_mib_s", figure(read_s.value / MIB));
    let row = match vacuum_limit(&costs, read_s) {
        VacuumLimit::Raise { to, high } => {
            let raised = VacuumCosts { limit: to as f64, ..costs };
            let why = format!(
                "{told}; if all workers may take {} % of the volume's rate, a limit of {to} lets one \
                 worker read the table in {}",
                100.0 * SHARE,
                time(raised.read_time(bytes, read_s.value))
            );
            row.between(to.to_string(), high.to_string()).alter(to.to_string(), why)
        }
        _ => row.keep(format!(
            "{told}; with twice the limit, vacuum would leave too little of the volume's rate to others"
        )),
    };
    Ok(row.beside(doubt))
}

/// What autovacuum goes by: its own settings, or those of any vacuum where it has none. What this session has
/// SET does not count.
fn costs() -> Option<VacuumCosts> {
    let limit = facts::number_at_reset("autovacuum_vacuum_cost_limit").filter(|limit| *limit > 0.0);
    let delay_ms = facts::number_at_reset("autovacuum_vacuum_cost_delay").filter(|delay| *delay >= 0.0);
    Some(VacuumCosts {
        limit: limit.or_else(|| facts::number_at_reset("vacuum_cost_limit"))?,
        delay_ms: delay_ms.or_else(|| facts::number_at_reset("vacuum_cost_delay"))?,
        miss: facts::number_at_reset("vacuum_cost_page_miss")?,
        dirty: facts::number_at_reset("vacuum_cost_page_dirty")?,
        page_bytes: pg_sys::BLCKSZ,
    })
}

/// What the settings allow, and how long the largest table takes by that, if the volume reads so many bytes a
/// second.
fn told(costs: &VacuumCosts, table: pg_sys::Oid, bytes: f64, volume_s: Option<f64>) -> String {
    let (Some(read), Some(changed)) = (costs.read_s(), costs.changed_s()) else {
        return "the settings do not hold back what a vacuum reads".to_owned();
    };
    let name = qualified_name(table).unwrap_or_default();
    let allowed = format!(
        "all autovacuum workers together may read at most {} MiB/s, or {} MiB/s if they change every page",
        mib(read),
        mib(changed)
    );
    let (volume, least) = match volume_s {
        Some(volume) => (format!("; the volume was measured to read {} MiB/s", mib(volume)), ""),
        None => (String::new(), "at least "),
    };
    let volume_s = volume_s.unwrap_or(f64::INFINITY);
    format!(
        "{allowed}{volume}: reading all of {name} ({} MiB) takes {least}{}, changing each page at least {}",
        mib(bytes),
        time(costs.read_time(bytes, volume_s)),
        time(bytes / volume_s + bytes / changed)
    )
}

/// So many seconds, in hours if they are many.
fn time(seconds: f64) -> String {
    if seconds < 360.0 { format!("{seconds:.1} s") } else { format!("{:.1} h", seconds / 3600.0) }
}

fn mib(bytes: f64) -> f64 {
    figure((bytes / MIB * 10.0).round() / 10.0)
}

/// Bytes that the volume reads a second, and what went on beside that.
fn measured(
    recommend: &RecommendCall<'_>,
    place: &TablespaceTarget,
    relation: Candidate,
) -> Found<(Interval, Option<Doubt>)> {
    let probed = place.open(recommend.call, relation)?;
    if recommend.request.bounds.make_pauses() {
        let why = "not measured: with a limit of the rate or of the device's time, the volume reads less \
             than it can";
        return Err(Lacking::unknown(why));
    }
    let measure = || measure(recommend, &probed);
    let (sustain, doubt) = recommend.call.attempt(measure, |(sustain, _)| sustain.stop)?;
    match (read_s(&sustain), sustain.stop) {
        (Some(read_s), _) => Ok((read_s, doubt)),
        (None, Some(stop)) => Err(Lacking::unknown(stop.to_string())),
        (None, None) => Err(Lacking::unknown(format!("too few turns counted: {}", recommend.longer(None)))),
    }
}

/// Reads the table in order, past the page cache.
fn measure(recommend: &RecommendCall<'_>, relation: &ProbedRelation) -> Outcome<(Sustain, Option<Doubt>)> {
    relation.reads_of_device()?;
    let reads = direct_reads::of(recommend.call, relation, seed(None), IN_FLIGHT, Some(IN_ORDER))?;
    let requests: Arc<dyn Requests> = Arc::new(reads);
    let limits = recommend.limits(1)?;
    let duration = limits.duration.min(LONGEST);
    let observer = relation.observer(Account::Own);
    let run = SustainRun {
        engine: gucs::engine(),
        requests,
        workers: IN_FLIGHT,
        every: (duration / TURNS).min(TURN),
        limits: Limits { duration, ..limits },
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
