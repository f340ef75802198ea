//! The row of one path.

use io_probe_core::stats::Latencies;
use serde::Serialize;

use super::findings::Findings;
use super::{PathOutcome, RandomTarget};
use crate::api::row::{Caveats, DeviceFigures, Identity, IntervalFigures};
use crate::call::Attempt;
use crate::call::arguments::{Path, figure};
use crate::call::named::NamedEnum;

/// `io_probe_random_full_row`; the type's comments say what each attribute means.
#[derive(Debug, Default, Serialize)]
pub(super) struct RandomRow {
    path: &'static str,
    iops: Option<f64>,
    #[serde(flatten)]
    latency: LatencyFigures,
    p999_us: Option<f64>,
    max_us: Option<f64>,
    min_us: Option<f64>,
    mdev_us: Option<f64>,
    shared_pct: Option<f64>,
    os_pct: Option<f64>,
    device_pct: Option<f64>,
    blks: u64,
    complete: bool,
    cold: Option<bool>,
    #[serde(flatten)]
    caveats: Caveats,
    elapsed_ms: Option<f64>,
    service_iops: Option<f64>,
    #[serde(flatten)]
    interval: IntervalFigures,
    mib_s: Option<f64>,
    shared_us: Option<f64>,
    os_us: Option<f64>,
    device_us: Option<f64>,
    shared_blks_hit: Option<u64>,
    os_blks_hit: Option<u64>,
    device_blks_read: Option<u64>,
    shared_blks_written: Option<u64>,
    device_bytes: Option<u64>,
    device_source: Option<&'static str>,
    #[serde(flatten)]
    device_figures: DeviceFigures,
    over_read: Option<f64>,
    warmup_us: Option<f64>,
    response_avg_us: Option<f64>,
    response_p99_us: Option<f64>,
    hole_blks: Option<u64>,
    blks_total: u64,
    depth: u32,
    engine: Option<String>,
    seed: i64,
    #[serde(flatten)]
    identity: Identity,
}

/// The latencies that a person looks at first.
#[derive(Debug, Clone, Default, Serialize)]
pub(in crate::api) struct LatencyFigures {
    lat_us: Option<f64>,
    p50_us: Option<f64>,
    p95_us: Option<f64>,
    p99_us: Option<f64>,
}

impl LatencyFigures {
    /// The figures of these latencies.
    pub(in crate::api) fn of(latencies: &Latencies) -> Self {
        let quantile = |q| latencies.quantile(q).map(|ns| us(ns as f64));
        Self {
            lat_us: latencies.moments().mean().map(us),
            p50_us: quantile(0.5),
            p95_us: quantile(0.95),
            p99_us: quantile(0.99),
        }
    }
}

/// Nanoseconds as microseconds.
pub(in crate::api) fn us(ns: f64) -> f64 {
    figure(ns / 1e3)
}

impl RandomRow {
    /// What is known before anything is fetched.
    pub(super) fn new(target: &RandomTarget<'_>, path: Path) -> Self {
        Self {
            path: path.name(),
            blks_total: target.relation.source.blocks(),
            depth: target.arguments.depth,
            seed: target.arguments.seed as i64,
            identity: Identity::of(target.relation),
            ..Self::default()
        }
    }

    /// The same with what was measured, or why nothing was.
    pub(super) fn of(mut self, target: &RandomTarget<'_>, found: Attempt<PathOutcome>) -> Self {
        if let Some(measured) = self.caveats.accept(found) {
            let findings = Findings::of(target, &measured);
            self.caveats = findings.caveats.clone();
            self.fill(&measured, &findings, target.relation.block_size());
        }
        self
    }

    fn fill(&mut self, measured: &PathOutcome, findings: &Findings, block_size: u64) {
        let run = &measured.run;
        self.identity.begin(measured.began);
        self.blks = run.fetches;
        self.complete = run.complete && run.passed_over == 0;
        self.elapsed_ms = Some(figure(run.elapsed_ns as f64 / 1e6));
        self.hole_blks = Some(run.holes);
        self.depth = measured.depth;
        self.engine = Some(measured.engine.clone());
        self.shared_blks_written = (measured.path == Path::Server).then_some(measured.usage.written());
        self.tell_tiers(measured, findings);
        // Figures that can't be true must not be taken as true.
        if !findings.void {
            self.tell_rate(measured, block_size);
            self.tell_latencies(measured, findings);
            self.warmup_us = run.warmup_ns.map(|ns| us(ns as f64));
            let asked = findings.tiers.map_or(0, |tiers| tiers.device * block_size);
            let fetched = self.device_bytes.filter(|_| asked > 0);
            self.over_read = fetched.map(|fetched| figure(fetched as f64 / asked as f64));
        }
    }

    fn tell_rate(&mut self, measured: &PathOutcome, block_size: u64) {
        let run = &measured.run;
        self.iops = run.iops().map(figure);
        self.mib_s = run.iops().map(|iops| figure(iops * block_size as f64 / f64::from(1 << 20)));
        self.interval = IntervalFigures::of_rate(run.interval);
        self.caveats.judge_interval(&self.interval);
    }

    fn tell_latencies(&mut self, measured: &PathOutcome, findings: &Findings) {
        let run = &measured.run;
        let latencies = &run.latencies;
        self.latency = LatencyFigures::of(latencies);
        self.p999_us = latencies.quantile(0.999).map(|ns| us(ns as f64));
        self.max_us = latencies.most().map(|ns| us(ns as f64));
        self.min_us = latencies.least().map(|ns| us(ns as f64));
        self.mdev_us = latencies.moments().deviation().map(us);
        self.service_iops = latencies.moments().mean().map(|ns| figure(1e9 / ns));
        let known = findings.tiers.is_some() || run.with_data() == 0;
        let [shared, os, device] = run.by_tier.map(|moments| moments.mean().map(us).filter(|_| known));
        self.device_us = device;
        if measured.depth == 1 {
            // In a queue, a hit waits until it is seen.
            (self.shared_us, self.os_us) = (shared, os);
        }
        // With a queue it is not known when one of its places was free and a request was due.
        if let Some(responses) = run.responses.as_ref().filter(|_| measured.depth == 1) {
            self.response_avg_us = responses.moments().mean().map(us);
            self.response_p99_us = responses.quantile(0.99).map(|ns| us(ns as f64));
        }
    }

    fn tell_tiers(&mut self, measured: &PathOutcome, findings: &Findings) {
        self.device_bytes = measured.cost.fetched_bytes();
        self.device_source = self.device_bytes.map(|_| measured.device_source);
        if let Some(tiers) = findings.tiers {
            (self.shared_blks_hit, self.os_blks_hit) = (Some(tiers.shared), Some(tiers.os));
            self.device_blks_read = Some(tiers.device);
        }
        let percent = findings.percent.map(|shares| shares.map(figure));
        [self.shared_pct, self.os_pct, self.device_pct] =
            percent.map_or([None; 3], |shares| shares.map(Some));
        self.cold = findings.cold;
        let device_blocks = findings.tiers.map(|tiers| tiers.device);
        self.device_figures = DeviceFigures::of(&measured.cost, device_blocks);
    }
}
