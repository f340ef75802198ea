//! `io_probe_depth`: random fetches past the page cache at several depths, and the knee of the curve.

use io_probe_core::advise::first_as_good;
use io_probe_core::machine::account::Account;
use io_probe_core::measure::random::{self, Engines, Look, Plan, RandomRun, Step, Sweep};
use io_probe_core::measure::tiers::Tiers;
use io_probe_core::run::budget::{Limits, Stop};
use io_probe_core::run::order::Permutation;
use pgrx::prelude::*;
use serde_json::json;

use super::row::{Caveats, DIRECT_PCT, Doubt, NOT_DIRECT, Row, TIERS_UNKNOWN, ms};
use crate::call::arguments::{self, Path, figure};
use crate::call::named::NamedEnum;
use crate::call::options::Options;
use crate::call::probe::Probe;
use crate::call::{Attempt, Begin, Call, Failure, Outcome, ProbedRelation};
use crate::error::Result;
use crate::gucs;
use crate::pg::backend::argument::Elements;
use crate::pg::backend::interval::Interval;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::row::Rows;
use crate::pg::storage::relation::Fork;

/// The options of this function.
const OPTIONS: [&str; 6] = ["max_bytes", "max_iops", "max_mib_s", "max_util_pct", "max_p99", "wait"];

#[pg_extern(sql = false)]
fn io_probe_depth(
    rel: Option<pg_sys::Oid>,
    depths: Option<Elements<i32>>,
    duration: Option<Interval>,
    seed: Option<i64>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, &OPTIONS)?;
        let rel = arguments::relation(rel)?;
        let depths = pick(depths.map(Elements::all))?;
        let seed = arguments::seed(seed);
        let limits = options.limits(duration, depths.len())?;

        let (call, relation) =
            Begin { waits: options.flag("wait")?, ..Begin::of(Probe::Depth) }.on_relation(rel, Fork::Main)?;
        let blank = Row::of(&relation).with(json!({"blks": 0, "seed": seed as i64}));
        let found =
            call.attempt_path(|| measure(&call, &relation, &depths, seed, limits), |curve| curve.stop)?;
        Ok(rows(found, &depths, &relation, &blank))
    })
}

/// The depths that were asked for, each once, ascending; by default those up to the cap.
fn pick(depths: Option<Vec<Option<i32>>>) -> Result<Vec<u32>> {
    let Some(depths) = depths else {
        let cap = gucs::depth(None, u32::MAX)?;
        return Ok([1, 2, 4, 8, 16, 32, 64].into_iter().filter(|depth| *depth <= cap).collect());
    };
    arguments::not_empty("depths", &depths)?;
    arguments::numbers("depths", depths, |depth| arguments::depth(Some(depth), 1))
}

/// The measured steps of all depths, and what they were measured with.
struct DepthCurve {
    steps: Vec<Step>,
    stop: Option<Stop>,
    /// The engine of each step.
    engines: Vec<&'static str>,
    /// What there is to know of the engine of the steps with a queue.
    note: Option<String>,
    /// Percent of the blocks that came from the device.
    from_device: Option<f64>,
    /// Did others use the device meanwhile?
    disturbed: bool,
    /// Bytes that had to be written back first.
    written_back: u64,
}

fn measure(
    call: &Call,
    relation: &ProbedRelation,
    depths: &[u32],
    seed: u64,
    limits: Limits,
) -> Outcome<DepthCurve> {
    let source = &relation.source;
    let block_size = relation.block_size();
    call.progress.path(Path::Direct.name(), source.blocks());
    let single = ProbedRelation::engine(1, block_size)?;
    let queue = ProbedRelation::engine(depths.iter().copied().max().unwrap_or(1), block_size)?;
    let mut engines = Engines { single: single.engine, queue: queue.engine };
    let mut plan = Plan::new(source, Permutation::new(source.blocks(), seed), 0, Look::Never);
    if let Some(stop) = plan.inspect_segments(&mut || call.should_stop(&relation.interrupts))? {
        return Err(Failure::NotBegun(stop));
    }
    let depths: Vec<usize> = depths.iter().map(|&depth| depth as usize).collect();
    let sweep = Sweep { depths: &depths, limits, seed };
    let mut report = |done| call.progress.done(done);
    let ((steps, stop), cost) = call.observed(relation, Account::Own, |budget| {
        random::sweep(&mut plan, &mut engines, sweep, budget, &mut report)
    })?;

    let fetches: u64 = steps.iter().filter_map(|step| step.run.as_ref()).map(RandomRun::with_data).sum();
    let fetched = cost.fetched_bytes().map(|bytes| bytes.div_ceil(block_size));
    let shares = fetched.and_then(|fetched| Tiers::of_direct(fetches, fetched).percent());
    let kinds = depths.iter().map(|depth| if *depth == 1 { single.kind } else { queue.kind });
    Ok(DepthCurve {
        engines: kinds.map(|kind| kind.name()).collect(),
        steps,
        stop,
        note: queue.note,
        from_device: shares.map(|[_, _, device]| device),
        disturbed: cost.is_disturbed(),
        written_back: plan.written_back(),
    })
}

impl DepthCurve {
    /// Are these not the device's figures?
    fn is_void(&self) -> bool {
        self.from_device.is_some_and(|share| share < DIRECT_PCT)
    }

    fn runs(&self) -> impl Iterator<Item = &RandomRun> {
        self.steps.iter().filter_map(|step| step.run.as_ref())
    }

    /// The smallest depth that is as good as the fastest, if each step has an interval. Under a rate limit
    /// none has one.
    fn knee(&self) -> Option<usize> {
        let interval = |step: &Step| step.run.as_ref()?.interval.filter(|_| !self.is_void());
        first_as_good(self.steps.iter().map(interval)).map(|index| self.steps[index].depth)
    }
}

/// A row for each depth, which begins as a blank one.
fn rows(found: Attempt<DepthCurve>, depths: &[u32], relation: &ProbedRelation, blank: &Row) -> Vec<Row> {
    let mut caveats = Caveats::default();
    let Some(curve) = caveats.accept(found) else {
        let row = |depth: &u32| blank.clone().with(json!({"depth": depth})).under(caveats.clone());
        return depths.iter().map(row).collect();
    };
    let knee = curve.knee();
    let row = |(step, engine): (&Step, &&str)| {
        let mut row = blank.clone().with(json!({
            "depth": step.depth,
            "engine": engine,
            "device_pct": curve.from_device.map(figure),
            "best": knee.map(|knee| knee == step.depth),
        }));
        if let Some(run) = &step.run {
            set_figures(&mut row, run, curve.is_void(), relation.block_size());
        }
        add_notes(&mut row.caveats, &curve, step, relation);
        row
    };
    curve.steps.iter().zip(&curve.engines).map(row).collect()
}

fn set_figures(row: &mut Row, run: &RandomRun, void: bool, block_size: u64) {
    row.set(json!({"blks": run.fetches, "elapsed_ms": ms(run.elapsed_ns), "hole_blks": run.holes}));
    if void {
        row.caveats.void(NOT_DIRECT);
        return;
    }
    row.set(json!({
        "iops": run.iops().map(figure),
        "mib_s": run.iops().map(|iops| figure(iops * block_size as f64 / f64::from(1 << 20))),
    }));
    row.set_latencies(&run.latencies);
    row.set_interval_of_rate(run.interval);
    row.caveats.note_rate(run, "rounds");
    row.caveats.note_holes(run.holes);
}

/// Notes what else there is to know of a step.
fn add_notes(caveats: &mut Caveats, curve: &DepthCurve, step: &Step, relation: &ProbedRelation) {
    let full = step.run.as_ref().and_then(|run| run.stop).filter(|stop| *stop == Stop::Bytes);
    if let Some(stop) = curve.stop.or(full) {
        caveats.stopped(stop);
    }
    caveats.notes.extend(curve.note.iter().filter(|_| step.depth > 1).cloned());
    let fetches: u64 = curve.runs().map(RandomRun::with_data).sum();
    if fetches > 0 && curve.from_device.is_none() {
        caveats.doubt_since(Doubt::TiersUnknown, TIERS_UNKNOWN);
    }
    if curve.disturbed {
        caveats.doubt_since(
            Doubt::Others,
            "others moved over a tenth of the bytes that the devices moved meanwhile",
        );
    }
    let all: u64 = curve.runs().map(|run| run.fetches).sum();
    caveats.read_up_to(all.div_ceil(relation.source.blocks().max(1)));
    caveats.note_relation(relation);
    caveats.note_written_back(curve.written_back);
}
