//! The row of one path, and the sentences that go with it.

use io_probe_core::measure::tiers::{self, Evidence, Tiers};
use io_probe_core::stats::{Latencies, MIN_SLICES};
use serde::Serialize;

use super::{PathOutcome, RandomTarget};
use crate::call::arguments::{Path, figure};
use crate::call::probed_relation::{
    DIRECT_PCT, DeviceFigures, Identity, NOT_DIRECT, RATE_LIMITED, TIERS_UNKNOWN, TOO_FEW_BLOCKS, Verdict,
};

/// Below this size, in bytes, the caches of drives and controllers may hold the whole relation.
const SMALL_RELATION: u64 = 256 << 20;

/// `io_probe_random_row`; the type's comments say what each attribute means.
#[derive(Debug, Default, Serialize)]
pub(super) struct RandomRow {
    path: &'static str,
    iops: Option<f64>,
    #[serde(flatten)]
    latency: LatencyFigures,
    lat_p999_us: Option<f64>,
    lat_max_us: Option<f64>,
    lat_min_us: Option<f64>,
    lat_mdev_us: Option<f64>,
    from_shared_pct: Option<f64>,
    from_os_pct: Option<f64>,
    from_device_pct: Option<f64>,
    fetches: u64,
    complete: bool,
    cold: Option<bool>,
    #[serde(flatten)]
    verdict: Verdict,
    elapsed_ms: Option<f64>,
    service_iops: Option<f64>,
    ci_low_iops: Option<f64>,
    ci_high_iops: Option<f64>,
    mib_per_s: Option<f64>,
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
#[derive(Debug, Default, Serialize)]
pub(in crate::api) struct LatencyFigures {
    lat_avg_us: Option<f64>,
    lat_p50_us: Option<f64>,
    lat_p95_us: Option<f64>,
    lat_p99_us: Option<f64>,
}

impl LatencyFigures {
    /// Of these latencies.
    pub(in crate::api) fn of(latencies: &Latencies) -> Self {
        let quantile = |q| latencies.quantile(q).map(|ns| us(ns as f64));
        Self {
            lat_avg_us: latencies.moments().mean().map(us),
            lat_p50_us: quantile(0.5),
            lat_p95_us: quantile(0.95),
            lat_p99_us: quantile(0.99),
        }
    }
}

/// Nanoseconds as microseconds.
pub(in crate::api) fn us(ns: f64) -> f64 {
    figure(ns / 1e3)
}

impl AsMut<Verdict> for RandomRow {
    fn as_mut(&mut self) -> &mut Verdict {
        &mut self.verdict
    }
}

impl RandomRow {
    /// What is known before anything is fetched.
    pub(super) fn new(target: &RandomTarget<'_>, path: Path) -> Self {
        Self {
            path: path.name(),
            blks_total: target.subject.source.blocks(),
            depth: target.request.depth,
            seed: target.request.seed as i64,
            identity: Identity::of(target.subject),
            ..Self::default()
        }
    }

    /// Only what there is to know about it.
    pub(super) fn into_verdict(self) -> Verdict {
        self.verdict
    }

    /// What was measured.
    pub(super) fn fill(&mut self, target: &RandomTarget<'_>, path: Path, measured: &PathOutcome) {
        let run = &measured.run;
        self.fetches = run.fetches;
        self.complete = run.complete && run.passed_over == 0;
        self.elapsed_ms = Some(figure(run.elapsed_ns as f64 / 1e6));
        self.warmup_us = run.warmup_ns.map(|ns| us(ns as f64));
        self.hole_blks = Some(run.holes);
        self.depth = measured.depth;
        self.engine = Some(measured.engine.clone());
        self.shared_blks_written = (path == Path::Server).then_some(measured.usage.written());
        self.tell_rate(target, measured);
        self.tell_latencies(measured);
        let tiers = measured.tiers(path, target.subject.block_size());
        self.tell_tiers(path, target, measured, tiers);
        self.tell_notes(target, path, measured, tiers);
    }

    fn tell_rate(&mut self, target: &RandomTarget<'_>, measured: &PathOutcome) {
        let run = &measured.run;
        self.iops = run.iops().map(figure);
        self.mib_per_s =
            run.iops().map(|iops| figure(iops * target.subject.block_size() as f64 / f64::from(1 << 20)));
        // A time per fetch of that interval: the ends change places.
        self.ci_low_iops = run.interval.map(|interval| figure(1e9 / interval.high));
        self.ci_high_iops = run.interval.filter(|i| i.low > 0.0).map(|interval| figure(1e9 / interval.low));
        if run.throttled {
            self.verdict.note(RATE_LIMITED);
        } else if run.rated.work == 0 && run.with_data() > 0 {
            self.verdict.note(TOO_FEW_BLOCKS);
        } else if run.interval.is_none() && run.rated.work > 0 {
            self.verdict.note(format!("too short for an interval, which needs {MIN_SLICES} slices of 1 ms"));
        }
    }

    fn tell_latencies(&mut self, measured: &PathOutcome) {
        let run = &measured.run;
        let latencies = &run.latencies;
        self.latency = LatencyFigures::of(latencies);
        self.lat_p999_us = latencies.quantile(0.999).map(|ns| us(ns as f64));
        self.lat_max_us = latencies.most().map(|ns| us(ns as f64));
        self.lat_min_us = latencies.least().map(|ns| us(ns as f64));
        self.lat_mdev_us = latencies.moments().deviation().map(us);
        self.service_iops = latencies.moments().mean().map(|ns| figure(1e9 / ns));
        let [shared, os, device] = run.by_tier.map(|moments| moments.mean().map(us));
        self.device_us = device;
        if measured.depth == 1 {
            // In a queue, a hit waits until it is seen.
            (self.shared_us, self.os_us) = (shared, os);
        }
        // With a queue it is not told when one of its places was free and a request was due.
        if let Some(responses) = run.responses.as_ref().filter(|_| measured.depth == 1) {
            self.response_avg_us = responses.moments().mean().map(us);
            self.response_p99_us = responses.quantile(0.99).map(|ns| us(ns as f64));
        }
        if latencies.moments().count() == 0 && run.rated.work > 0 {
            self.verdict.note("the server decides when it reads ahead: single latencies are not known");
        }
    }

    fn tell_tiers(
        &mut self,
        path: Path,
        target: &RandomTarget<'_>,
        measured: &PathOutcome,
        tiers: Option<Tiers>,
    ) {
        let block_size = target.subject.block_size();
        self.device_bytes = measured.cost.fetched_bytes;
        self.device_source = self.device_bytes.map(|_| measured.device_source);
        if let Some(tiers) = tiers {
            (self.shared_blks_hit, self.os_blks_hit) = (Some(tiers.shared), Some(tiers.os));
            self.device_blks_read = Some(tiers.device);
            if let Some([shared, os, device]) = tiers.percent() {
                self.from_shared_pct = Some(figure(shared));
                self.from_os_pct = Some(figure(os));
                self.from_device_pct = Some(figure(device));
            }
            let asked = tiers.device * block_size;
            self.over_read =
                self.device_bytes.filter(|_| asked > 0).map(|fetched| figure(fetched as f64 / asked as f64));
            if measured.run.with_data() > 0 {
                self.cold =
                    Some(tiers.shared == 0 && (tiers.os == 0 || measured.read_ahead(tiers, block_size)));
            }
        } else if measured.run.with_data() > 0 {
            (self.shared_us, self.os_us, self.device_us) = (None, None, None);
            self.verdict.note(TIERS_UNKNOWN);
        }
        if path == Path::Direct && self.from_device_pct.is_some_and(|share| share < DIRECT_PCT) {
            self.withhold(NOT_DIRECT);
        }
        if measured.fullness().is_some_and(|share| !(0.85..1.1).contains(&share)) {
            self.withhold("rate times latency is not the depth: the figures contradict each other");
        }
        let device_blocks = tiers.map(|tiers| tiers.device);
        self.device_figures = DeviceFigures::of(&measured.cost, device_blocks, &mut self.verdict);
    }

    /// Figures that can't be true must not be taken for it.
    fn withhold(&mut self, why: &str) {
        self.latency = LatencyFigures::default();
        (self.iops, self.mib_per_s, self.service_iops) = (None, None, None);
        (self.ci_low_iops, self.ci_high_iops) = (None, None);
        (self.lat_p999_us, self.lat_max_us, self.lat_min_us, self.lat_mdev_us) = (None, None, None, None);
        (self.shared_us, self.os_us, self.device_us) = (None, None, None);
        (self.response_avg_us, self.response_p99_us) = (None, None);
        (self.warmup_us, self.over_read) = (None, None);
        self.verdict.void(why);
    }

    fn tell_notes(
        &mut self,
        target: &RandomTarget<'_>,
        path: Path,
        measured: &PathOutcome,
        tiers: Option<Tiers>,
    ) {
        let run = &measured.run;
        if let Some(stop) = run.stop {
            self.verdict.stopped(stop);
        }
        let verdict = &mut self.verdict;
        if run.holes > 0 {
            verdict.note(format!(
                "{} blocks were never written to the file (holes) and were not fetched",
                run.holes
            ));
        }
        if run.passed_over > 0 {
            verdict.note(format!(
                "{} blocks could not be evicted from buffers and were passed over",
                run.passed_over
            ));
            if run.with_data() == 0 {
                verdict.status = "partial";
            }
        }
        let Tiers { shared, os, .. } = tiers.unwrap_or_default();
        if target.request.cold && path != Path::Direct {
            if self.cold == Some(false) {
                verdict.note(format!(
                    "not cold: {shared} fetches found a buffer, {os} the OS cache, where others had brought them"
                ));
            } else if os > 0 {
                verdict.note(format!("readahead around other fetches had brought in {os} of the blocks"));
            }
        } else if measured.place.warmed && path != Path::Direct && os > 0 {
            verdict.note("an earlier path of this call left blocks in the OS cache");
        }
        let bytes = self.blks_total * target.subject.block_size();
        if path == Path::Direct && run.with_data() > 0 && bytes < SMALL_RELATION {
            let mib = bytes.div_ceil(1 << 20);
            verdict.note(format!("a relation of {mib} MiB may fit the caches below the kernel"));
        }
        // Where the tier changes in the middle, so does the time.
        let one_tier = [self.from_shared_pct, self.from_os_pct, self.from_device_pct].contains(&Some(100.0));
        if let Some(trend) = run.trend.filter(|_| one_tier) {
            let percent = trend * 100.0;
            verdict.note(format!("the time per fetch changed by {percent:+.0} % from start to end"));
        }
        if target.subject.placement.leaves.is_empty() {
            verdict.notes.extend(target.subject.placement.notes.iter().cloned());
        }
        verdict.notes.extend(measured.notes.iter().cloned());
    }
}

impl PathOutcome {
    /// Did caches that were verified to be empty get the blocks that were found there by our own readahead? It must
    /// have fetched at least as much beyond what was asked for.
    fn read_ahead(&self, tiers: Tiers, block_size: u64) -> bool {
        let beyond =
            self.cost.fetched_bytes.and_then(|fetched| fetched.checked_sub(tiers.device * block_size));
        self.place.emptied == Some(true) && beyond.is_some_and(|bytes| bytes >= tiers.os * block_size)
    }

    /// Requests in flight by Little's law (rate times latency), as a share of the depth; None where there is no queue of
    /// our own, or too little to tell.
    fn fullness(&self) -> Option<f64> {
        // In a short run, a moment without a CPU while the queue is emptied would count for much.
        const ENOUGH_NS: u64 = 500_000_000;
        let run = &self.run;
        let full = self.depth > 1 && !run.throttled && run.rated.ns >= ENOUGH_NS;
        let latency = run.latencies.moments().mean().filter(|_| full)?;
        Some(latency * run.rated.work as f64 / run.rated.ns as f64 / f64::from(self.depth))
    }

    /// Who served the fetches; None when it is not known, or when what tells it contradicts itself.
    pub(super) fn tiers(&self, path: Path, block_size: u64) -> Option<Tiers> {
        let run = &self.run;
        let (blocks, fetched_bytes) = (run.with_data(), self.cost.fetched_bytes);
        if path == Path::Direct {
            return fetched_bytes.map(|bytes| Tiers::of_direct(blocks, bytes.div_ceil(block_size)));
        }
        let (tiers, missing_bytes) = match self.missing {
            None if run.unknown > 0 => return None,
            None => (run.tiers, run.missing_bytes),
            Some(missing) => {
                let hits = self.usage.hits().min(blocks);
                if hits > 0 {
                    // Which blocks those were, nobody says.
                    let cached_bytes = Some((blocks * block_size).saturating_sub(missing.bytes));
                    let reads = blocks - hits;
                    let evidence = Evidence { block_size, hits, reads, cached_bytes, fetched_bytes };
                    return Tiers::of_buffered(evidence);
                }
                (Tiers { shared: 0, os: blocks - missing.blocks, device: missing.blocks }, missing.bytes)
            }
        };
        let contradicted = fetched_bytes.is_some_and(|fetched| {
            tiers::are_too_few(fetched, missing_bytes, blocks * block_size, block_size)
        });
        (!contradicted).then_some(tiers)
    }
}
