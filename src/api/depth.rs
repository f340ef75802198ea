//! `io_probe_depth`: random fetches past the page cache at several depths, and the knee of the curve.

use io_probe_core::machine::account::Account;
use io_probe_core::machine::observer::Observer;
use io_probe_core::measure::random::{self, Engines, Look, Plan, RandomRun, Sweep};
use io_probe_core::measure::tiers::Tiers;
use io_probe_core::run::budget::{Budget, Limits, Stop};
use io_probe_core::run::clock::Monotonic;
use io_probe_core::run::order::Permutation;
use pgrx::datum::Interval;
use pgrx::prelude::*;
use serde::Serialize;

use super::random::LatencyFigures;
use crate::call::arguments::{self, Path, figure};
use crate::call::options::Options;
use crate::call::probed_relation::{
    DIRECT_PCT, Failure, Identity, NOT_DIRECT, Outcome, ProbedRelation, RATE_LIMITED, TOO_FEW_BLOCKS, Verdict,
};
use crate::call::statement;
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::argument::Elements;
use crate::pg::backend::interrupts;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::progress::Progress;
use crate::pg::backend::row::Rows;
use crate::pg::storage::relation::Fork;

/// The options of this function.
const OPTIONS: [&str; 6] = ["max_bytes", "max_iops", "max_mib_per_s", "max_util_pct", "max_p99_us", "wait"];

#[pg_extern(sql = false)]
fn io_probe_depth(
    rel: Option<pg_sys::Oid>,
    depths: Option<Elements<i32>>,
    duration: Option<Interval>,
    seed: Option<i64>,
    options: Option<JsonbText>,
) -> Rows {
    let request = || {
        let options = Options::parse(options, &OPTIONS)?;
        Ok(DepthRequest {
            rel: arguments::relation(rel)?,
            depths: pick(depths.map(Elements::all))?,
            seed: arguments::seed(seed),
            limits: options.limits(arguments::duration(duration)?)?,
            wait: options.flag("wait")?,
        })
    };
    Rows::answer(|| request().and_then(|request| request.run()))
}

/// The depths that were asked for, each once, ascending; by default those up to the cap.
fn pick(depths: Option<Vec<Option<i32>>>) -> Result<Vec<u32>> {
    let Some(depths) = depths else {
        let cap = gucs::depth(None, u32::MAX)?;
        return Ok([1, 2, 4, 8, 16, 32, 64].into_iter().filter(|depth| *depth <= cap).collect());
    };
    if depths.is_empty() {
        return Err(Error::invalid("depths must not be empty"));
    }
    let check = |depth: Option<i32>| {
        let depth = depth.ok_or_else(|| Error::invalid("depths must not contain nulls"))?;
        gucs::depth(Some(arguments::positive("depth", depth)?), 1)
    };
    let mut depths = depths.into_iter().map(check).collect::<Result<Vec<u32>>>()?;
    depths.sort_unstable();
    depths.dedup();
    Ok(depths)
}

/// A call whose arguments are right by themselves.
struct DepthRequest {
    rel: pg_sys::Oid,
    depths: Vec<u32>,
    seed: u64,
    limits: Limits,
    wait: bool,
}

/// `io_probe_depth_row`; the type's comments say what each attribute means.
#[derive(Debug, Default, Serialize)]
struct DepthRow {
    depth: u32,
    iops: Option<f64>,
    mib_per_s: Option<f64>,
    #[serde(flatten)]
    latency: LatencyFigures,
    knee: Option<bool>,
    engine: Option<&'static str>,
    #[serde(flatten)]
    verdict: Verdict,
    fetches: u64,
    elapsed_ms: Option<f64>,
    ci_low_iops: Option<f64>,
    ci_high_iops: Option<f64>,
    from_device_pct: Option<f64>,
    hole_blks: Option<u64>,
    seed: i64,
    #[serde(flatten)]
    identity: Identity,
}

impl DepthRequest {
    fn run(&self) -> Result<Vec<DepthRow>> {
        let (_lock, subject) = ProbedRelation::open_alone(self.rel, Fork::MAIN, "io_probe_depth", self.wait)?;
        // One moment and one device for all rows of the call.
        let identity = Identity::of(&subject);
        let blank = |depth| DepthRow {
            depth,
            seed: self.seed as i64,
            identity: identity.clone(),
            ..DepthRow::default()
        };
        let mut rows: Vec<DepthRow> = self.depths.iter().map(|&depth| blank(depth)).collect();
        let _charge = statement::charge()?;
        if let Some(stop) = statement::over() {
            rows.iter_mut().for_each(|row| row.verdict.not_begun(stop));
            return Ok(rows);
        }
        match self.measure(&subject, &mut rows) {
            Ok(()) => {}
            Err(Failure::Unsupported(why)) => rows.iter_mut().for_each(|row| row.verdict.refuse(why.clone())),
            Err(Failure::Error(error)) => return Err(error),
        }
        Ok(rows)
    }

    fn measure(&self, subject: &ProbedRelation, rows: &mut [DepthRow]) -> Outcome<()> {
        let source = &subject.source;
        let block_size = subject.block_size();
        let progress = Progress::start("depth", Some(subject.relation.oid()));
        progress.path(Path::Direct.name(), source.blocks());
        let mut should_stop = interrupts::should_stop(subject.relation.locked());
        let depths: Vec<usize> = self.depths.iter().map(|&depth| depth as usize).collect();
        let single = ProbedRelation::engine(1, block_size)?.engine;
        let queue = ProbedRelation::engine(self.depths.iter().copied().max().unwrap_or(1), block_size)?;
        let mut engines = Engines { single, queue: queue.engine };
        let mut plan = Plan::new(source, Permutation::new(source.blocks(), self.seed), 0, Look::Never);
        let mut should_stop = || statement::over().or_else(&mut should_stop);
        let mut budget = Budget::of_statement(statement::left(), &Monotonic, &mut should_stop);
        plan.inspect_segments(&mut || budget.ask())?;
        let observer = Observer::new(Account::Own, &subject.placement.leaves, &subject.roots);
        let before = observer.look();
        let sweep = Sweep { depths: &depths, limits: self.limits, seed: self.seed };
        let mut report = |done| progress.done(done);
        let (steps, stop) = random::sweep(&mut plan, &mut engines, sweep, &mut budget, &mut report)?;
        statement::heed(stop);
        let cost = observer.since(&before);

        let runs: Vec<Option<&RandomRun>> = steps.iter().map(|step| step.run.as_ref()).collect();
        let fetches: u64 = runs.iter().flatten().map(|run| run.with_data()).sum();
        let fetched = cost.fetched_bytes.map(|bytes| bytes.div_ceil(block_size));
        let from_device = fetched
            .and_then(|fetched| Tiers::of_direct(fetches, fetched).percent())
            .map(|[_, _, share]| share);
        let void = from_device.is_some_and(|share| share < DIRECT_PCT);
        let curve: Vec<(usize, f64)> =
            steps.iter().filter_map(|step| Some((step.depth, step.run.as_ref()?.iops()?))).collect();
        let throttled = runs.iter().flatten().any(|run| run.throttled);
        let knee = random::knee(&curve).filter(|_| !void && !throttled && curve.len() == steps.len());
        for (row, run) in rows.iter_mut().zip(runs) {
            row.engine = Some(engines.at(row.depth as usize).kind().name());
            row.from_device_pct = from_device.map(figure);
            if let Some(run) = run {
                row.fill(run, void, block_size);
            }
            row.knee = knee.map(|knee| knee == row.depth as usize);
            let full = run.and_then(|run| run.stop).filter(|stop| *stop == Stop::Bytes);
            if let Some(stop) = stop.or(full) {
                row.verdict.stopped(stop);
            }
            row.verdict.notes.extend(queue.note.iter().filter(|_| row.depth > 1).cloned());
            if fetches > source.blocks() {
                let times = fetches.div_ceil(source.blocks().max(1));
                row.verdict.note(format!(
                    "blocks were fetched up to {times} times: caches below the kernel may serve them"
                ));
            }
            if plan.written_back() > 0 {
                let kb = plan.written_back() / 1024;
                row.verdict.note(format!("{kb} kB were dirty in the OS cache and were written back first"));
            }
        }
        Ok(())
    }
}

impl DepthRow {
    fn fill(&mut self, run: &RandomRun, void: bool, block_size: u64) {
        self.fetches = run.fetches;
        self.elapsed_ms = Some(figure(run.elapsed_ns as f64 / 1e6));
        self.hole_blks = Some(run.holes);
        if void {
            self.verdict.void(NOT_DIRECT);
            return;
        }
        self.iops = run.iops().map(figure);
        self.mib_per_s = run.iops().map(|iops| figure(iops * block_size as f64 / f64::from(1 << 20)));
        self.latency = LatencyFigures::of(&run.latencies);
        self.ci_low_iops = run.interval.map(|interval| figure(1e9 / interval.high));
        self.ci_high_iops = run.interval.filter(|i| i.low > 0.0).map(|interval| figure(1e9 / interval.low));
        if run.throttled {
            self.verdict.note(RATE_LIMITED);
        } else if run.rated.work == 0 && run.with_data() > 0 {
            self.verdict.note(TOO_FEW_BLOCKS);
        }
        if run.holes > 0 {
            self.verdict.note(format!(
                "{} blocks were never written to the file (holes) and were not fetched",
                run.holes
            ));
        }
    }
}
