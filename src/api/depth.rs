//! `io_probe_depth`: random fetches past the page cache at several depths, and the knee of the curve.

use std::time::Duration;

use io_probe_advise::first_as_good;
use io_probe_core::machine::account::Account;
use io_probe_core::machine::cgroup::IoLimit;
use io_probe_core::machine::observer::{HeldBack, IoDelta};
use io_probe_core::measure::contradictions::exceeds_depth;
use io_probe_core::measure::page_times::Estimate;
use io_probe_core::measure::random::{self, Engines, FetchOrder, Look, RandomRun, Step, Sweep};
use io_probe_core::measure::tiers::Tiers;
use io_probe_core::run::budget::{Limits, Stop};
use io_probe_core::run::order::Permutation;
use io_probe_core::stats::{Interval, MIN_TURNS};
use io_probe_surface::depth::{DepthRow, OPTIONS};
use io_probe_surface::doubt::Doubt;
use io_probe_surface::value::Timestamp;
use pgrx::prelude::*;

use super::shared::{self, CONTRADICTED, Caveats, DIRECT_PCT, NOT_DIRECT, TIERS_UNKNOWN, ms};
use crate::call::{
    Begin, Call, NamedEnum, Options, Outcome, Probe, ProbedRelation, ReadPath, arguments, figure,
};
use crate::error::Result;
use crate::gucs;
use crate::pg::backend::{Elements, JsonbText, Rows, SqlInterval, server};

#[pg_extern(sql = false)]
fn io_probe_depth(
    rel: Option<pg_sys::Oid>,
    depths: Option<Elements<i32>>,
    duration: Option<SqlInterval>,
    seed: Option<i64>,
    p99: Option<SqlInterval>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, OPTIONS)?;
        let rel = arguments::relation(rel)?;
        let depths = pick(depths.map(|given| given.0))?;
        let limits = options.limits(duration, depths.len())?;
        let p99 = arguments::positive_time("p99", p99)?;
        let sweep = DepthSweep { depths, seed: arguments::seed(seed), p99, limits };
        sweep.rows(rel, options.waits()?)
    })
}

/// The depths that were asked for, each once, ascending; by default those up to the cap.
fn pick(depths: Option<Vec<Option<i32>>>) -> Result<Vec<u32>> {
    let Some(depths) = depths else { return usual_depths() };
    arguments::not_empty("depths", &depths)?;
    arguments::numbers("depths", depths, |depth| arguments::depth(Some(depth), 1))
}

/// The depths up to the cap.
pub(super) fn usual_depths() -> Result<Vec<u32>> {
    let cap = gucs::depth(None, u32::MAX)?;
    Ok([1, 2, 4, 8, 16, 32, 64].into_iter().filter(|depth| *depth <= cap).collect())
}

/// What is to be measured.
pub(super) struct DepthSweep {
    /// Each once, ascending.
    pub(super) depths: Vec<u32>,
    pub(super) seed: u64,
    /// Longest 99th percentile of the latencies, of which it says the depth that gives the most.
    pub(super) p99: Option<Duration>,
    /// Limits of each depth.
    pub(super) limits: Limits,
}

/// What was measured.
struct DepthCurve {
    steps: Vec<Step>,
    stop: Option<Stop>,
    /// The engine at depth 1, and that of a queue.
    engines: [&'static str; 2],
    /// What there is to know of the engine of a queue.
    note: Option<String>,
    /// Percent of the blocks that came from the device.
    from_device: Option<f64>,
    /// What else went on meanwhile, and of each step the limits that it came near.
    cost: IoDelta,
    limits: Vec<Vec<IoLimit>>,
    /// Bytes that had to be written back first.
    written_back: u64,
}

impl DepthSweep {
    /// Reads of a relation: a row for each depth.
    pub(super) fn rows(&self, rel: pg_sys::Oid, waits: bool) -> Result<Vec<DepthRow>> {
        let (call, relation) = Begin { waits, ..Begin::of(Probe::Depth) }.on_relation(rel)?;
        let started_at = server::present();
        let mut caveats = Caveats::default();
        let measured = call.attempt_path(|| self.measure(&call, &relation), |curve| curve.stop);
        let curve = caveats.accept(measured)?;
        let places = 0..self.depths.len();
        Ok(places
            .map(|index| self.row(index, curve.as_ref(), &relation, started_at, caveats.clone()))
            .collect())
    }

    fn measure(&self, call: &Call, relation: &ProbedRelation) -> Outcome<DepthCurve> {
        let source = &relation.source;
        let block_size = relation.block_size();
        call.progress.path(ReadPath::Direct.name(), source.blocks());
        let single = ProbedRelation::engine(1, block_size)?;
        let queue = ProbedRelation::engine(self.depths.iter().copied().max().unwrap_or(1), block_size)?;
        let mut engines = Engines { single: single.engine, queue: queue.engine };
        let mut fetch_order =
            FetchOrder::new(source, Permutation::new(source.blocks(), self.seed), 0, Look::Never);
        fetch_order.inspect_segments(&mut || call.should_stop(&relation.interrupts))?;
        let depths: Vec<usize> = self.depths.iter().map(|&depth| depth as usize).collect();
        let observer = relation.observer(Account::Own);
        let bursts_every = observer.bursts_every();
        let sweep = Sweep { depths: &depths, limits: self.limits, seed: self.seed, bursts_every };
        let ((steps, stop), cost) = call.observed(relation, Account::Own, |budget| {
            random::sweep(&mut fetch_order, &mut engines, sweep, budget, &mut |done| call.progress.done(done))
        })?;

        let fetches = runs(&steps).map(RandomRun::with_data).sum();
        let fetched = cost.fetched_bytes().map(|bytes| bytes.div_ceil(block_size));
        let shares = fetched.and_then(|fetched| Tiers::of_direct(fetches, fetched).percent());
        // A shallow depth may be far from a limit that deep ones reach.
        let rates = steps.iter().map(|step| step.run.as_ref().and_then(RandomRun::iops));
        let limits = rates
            .map(|iops| {
                iops.map_or_else(Vec::new, |iops| observer.limits_near(iops, iops * block_size as f64))
            })
            .collect();
        Ok(DepthCurve {
            steps,
            stop,
            engines: [single.kind.name(), queue.kind.name()],
            note: queue.note,
            from_device: shares.map(|[_, _, device]| device),
            cost,
            limits,
            written_back: fetch_order.written_back(),
        })
    }

    fn row(
        &self,
        index: usize,
        curve: Option<&DepthCurve>,
        relation: &ProbedRelation,
        started_at: Timestamp,
        mut caveats: Caveats,
    ) -> DepthRow {
        let depth = self.depths[index];
        let run = curve.and_then(|curve| curve.steps[index].run.as_ref());
        if let Some(curve) = curve {
            curve.judge(index, relation, &mut caveats);
        }
        let timed = curve.and_then(|curve| curve.believed(&curve.steps[index]));
        let iops = timed.and_then(RandomRun::iops);
        let block_size = relation.block_size();
        DepthRow {
            depth,
            iops: iops.map(figure),
            mib_s: iops.map(|iops| shared::mib_s(iops, block_size)),
            best: timed.and_then(|run| run.interval).and_then(|_| Some(curve?.knee()? == index)),
            best_within: self
                .p99
                .zip(curve)
                .filter(|(_, curve)| timed.is_some() && !curve.is_paced())
                .map(|(p99, curve)| curve.most_within(p99) == Some(index)),
            engine: curve.map(|curve| curve.engines[usize::from(depth > 1)]),
            blks: run.map_or(0, |run| run.fetches),
            elapsed_ms: run.map(|run| ms(run.elapsed_ns)),
            device_pct: curve.and_then(|curve| curve.from_device).map(figure),
            hole_blks: run.map(|run| run.holes),
            seed: self.seed as i64,
            started_at,
            place: shared::place(relation),
            interval: shared::interval_of_rate(timed.and_then(|run| run.interval), &mut caveats),
            latencies: timed.map(|run| shared::latencies(&run.latencies)).unwrap_or_default(),
            caveats: caveats.columns(),
        }
    }
}

/// What a read takes that is in flight alone, past the OS cache.
pub(super) struct SingleRead {
    pub(super) time: Estimate,
    pub(super) blks: u64,
    pub(super) caveats: Caveats,
}

/// Reads one block after the other at random; None without figures of the device.
pub(super) fn single_read(
    call: &Call,
    relation: &ProbedRelation,
    seed: u64,
    limits: Limits,
) -> Outcome<Option<SingleRead>> {
    let sweep = DepthSweep { depths: vec![1], seed, p99: None, limits };
    let curve = call.attempt(|| sweep.measure(call, relation), |curve: &DepthCurve| curve.stop)?;
    let mut caveats = Caveats::default();
    curve.judge(0, relation, &mut caveats);
    let run = curve.steps[0].run.as_ref().filter(|_| !curve.is_void());
    Ok(run.and_then(|run| {
        let interval = run.interval.map(|found| (found.low / 1e3, found.high / 1e3));
        let time = Estimate { us: 1e6 / run.iops()?, interval };
        Some(SingleRead { time, blks: run.fetches, caveats })
    }))
}

impl DepthCurve {
    /// Are these not the device's figures?
    fn is_void(&self) -> bool {
        self.from_device.is_some_and(|share| share < DIRECT_PCT)
    }

    /// Did a limit hold back a step?
    fn is_paced(&self) -> bool {
        runs(&self.steps).any(|run| run.throttled)
    }

    /// Were more requests in flight than may have been? All figures of the step are void then.
    fn is_contradictory(step: &Step) -> bool {
        step.run.as_ref().is_some_and(|run| {
            !run.throttled && exceeds_depth(run.latencies.total(), run.rated, step.depth as u64)
        })
    }

    /// What was measured of a step, if its figures can be.
    fn believed<'a>(&self, step: &'a Step) -> Option<&'a RandomRun> {
        step.run.as_ref().filter(|_| !self.is_void() && !Self::is_contradictory(step))
    }

    fn interval(&self, step: &Step) -> Option<Interval> {
        self.believed(step)?.interval
    }

    /// The smallest depth that is surely faster than this step, though it is a shallower one.
    fn shallower_and_faster(&self, index: usize) -> Option<usize> {
        let least = self.interval(&self.steps[index])?.low;
        let mut shallower = self.steps[..index].iter();
        let faster = shallower.find(|step| self.interval(step).is_some_and(|interval| interval.high < least));
        faster.map(|step| step.depth)
    }

    /// The step of the smallest depth that is as good as the fastest, of those that have an interval. Under a
    /// rate limit none has one.
    fn knee(&self) -> Option<usize> {
        first_as_good(self.steps.iter().map(|step| self.interval(step)))
    }

    /// The step that gives the most within this 99th percentile of its latencies; None if no other is known.
    fn most_within(&self, p99: Duration) -> Option<usize> {
        let within = self.steps.iter().enumerate().filter_map(|(index, step)| {
            let run = self.believed(step)?;
            let is_within = u128::from(run.latencies.quantile(0.99)?) <= p99.as_nanos();
            run.iops().filter(|_| is_within).map(|iops| (index, iops))
        });
        within.max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(index, _)| index)
    }

    fn judge(&self, index: usize, relation: &ProbedRelation, caveats: &mut Caveats) {
        let step = &self.steps[index];
        match &step.run {
            Some(_) if self.is_void() => caveats.void(NOT_DIRECT),
            Some(_) if DepthCurve::is_contradictory(step) => caveats.void(CONTRADICTED),
            Some(run) => {
                caveats.note_rate(run, MIN_TURNS, "rounds");
                caveats.slowed(run.slowed);
                caveats.note_holes(run.holes);
                if let Some(depth) = self.shallower_and_faster(index) {
                    caveats.note(format!(
                        "fewer reads per second than at depth {depth}, beyond the noise: more requests in \
                         flight do not help"
                    ));
                }
            }
            None => {}
        }
        let full = step.run.as_ref().and_then(|run| run.stop).filter(|stop| *stop == Stop::Bytes);
        if let Some(stop) = self.stop.or(full) {
            caveats.stopped(stop);
        }
        caveats.notes.extend(self.note.clone().filter(|_| step.depth > 1));
        let with_data: u64 = runs(&self.steps).map(RandomRun::with_data).sum();
        if with_data > 0 && self.from_device.is_none() {
            caveats.doubt_since(Doubt::TiersUnknown, TIERS_UNKNOWN);
        }
        let limits = if self.is_void() { Vec::new() } else { self.limits[index].clone() };
        caveats.note_held_back(&HeldBack { limits, ..self.cost.held_back.clone() });
        if self.cost.is_disturbed() {
            caveats.doubt_since(
                Doubt::Others,
                "others moved over 10 % of the bytes that the devices moved during the measurement",
            );
        }
        let fetches: u64 = runs(&self.steps).map(|run| run.fetches).sum();
        caveats.read_up_to(fetches.div_ceil(relation.source.blocks().max(1)));
        caveats.note_relation(relation);
        caveats.note_written_back(self.written_back);
    }
}

fn runs(steps: &[Step]) -> impl Iterator<Item = &RandomRun> {
    steps.iter().filter_map(|step| step.run.as_ref())
}
