//! The row of one path, and the sentences that go with it.

use io_probe_core::measure::tiers::{Evidence, Tiers};
use io_probe_core::run::budget::Stop;
use io_probe_core::stats::MIN_SLICES;
use serde::Serialize;

use super::{PathScan, SeqscanTarget};
use crate::api::row::{
    Caveats, DIRECT_PCT, DeviceFigures, Doubt, Identity, IntervalFigures, NOT_DIRECT, SLICES, Status,
    TIERS_UNKNOWN,
};
use crate::call::Attempt;
use crate::call::arguments::{Path, figure};
use crate::call::named::NamedEnum;
use crate::pg::backend::server;

/// `io_probe_seqscan_full_row`; the type's comments say what each attribute means.
#[derive(Debug, Default, Serialize)]
pub(super) struct SeqscanRow {
    path: &'static str,
    mib_s: Option<f64>,
    block_us: Option<f64>,
    shared_pct: Option<f64>,
    os_pct: Option<f64>,
    device_pct: Option<f64>,
    blks: u64,
    complete: bool,
    cold: Option<bool>,
    #[serde(flatten)]
    caveats: Caveats,
    elapsed_ms: Option<f64>,
    #[serde(flatten)]
    interval: IntervalFigures,
    shared_blks_hit: Option<u64>,
    shared_blks_read: Option<u64>,
    shared_blks_written: Option<u64>,
    local_blks_hit: Option<u64>,
    local_blks_read: Option<u64>,
    os_blks_cached: Option<u64>,
    hole_blks: Option<u64>,
    device_bytes: Option<u64>,
    device_source: Option<&'static str>,
    #[serde(flatten)]
    device_figures: DeviceFigures,
    blks_total: u64,
    chunk_kb: Option<u64>,
    depth: Option<u32>,
    engine: Option<String>,
    fork: &'static str,
    #[serde(flatten)]
    identity: Identity,
}

impl SeqscanRow {
    /// What is known before anything is read.
    pub(super) fn new(target: &SeqscanTarget<'_>, path: Path) -> Self {
        Self {
            path: path.name(),
            blks_total: target.relation.source.blocks(),
            fork: target.scan.fork.name(),
            identity: Identity::of(target.relation),
            ..Self::default()
        }
    }

    /// The same with what was measured, or why nothing was.
    pub(super) fn of(mut self, target: &SeqscanTarget<'_>, path: Path, found: Attempt<PathScan>) -> Self {
        if let Some(run) = self.caveats.accept(found) {
            self.fill(target, path, &run);
        }
        self
    }

    fn fill(&mut self, target: &SeqscanTarget<'_>, path: Path, run: &PathScan) {
        let scan = &run.scan;
        self.identity.begin(run.began);
        let block_size = target.relation.block_size();
        self.blks = (scan.blocks.end - scan.blocks.start).saturating_sub(run.skipped);
        self.complete = scan.stop.is_none() && scan.blocks.end == self.blks_total;
        self.elapsed_ms = Some(figure(scan.elapsed_ns as f64 / 1e6));
        self.os_blks_cached = scan.cached_bytes.map(|bytes| bytes.div_ceil(block_size));
        self.hole_blks = Some(scan.holes);
        if path == Path::Server {
            let temporary = target.relation.relation.is_temporary();
            let usage = run.usage.0;
            self.shared_blks_hit = (!temporary).then_some(usage.shared_blks_hit as u64);
            self.shared_blks_read = (!temporary).then_some(usage.shared_blks_read as u64);
            self.local_blks_hit = temporary.then_some(usage.local_blks_hit as u64);
            self.local_blks_read = temporary.then_some(usage.local_blks_read as u64);
            self.shared_blks_written = Some(run.usage.written());
        }
        self.chunk_kb = run.method.chunk_kb;
        self.depth = run.method.depth;
        self.engine = Some(run.method.engine.clone());
        if self.with_data(run) > 0 {
            self.cold = scan.cached_bytes.map(|cached| cached == 0 && run.usage.hits() == 0);
        }
        self.tell_rate(run, block_size);
        let percent = self.tell_tiers(path, run, block_size);
        self.tell_notes(target, path, run, percent);
    }

    /// Blocks read that hold data.
    fn with_data(&self, run: &PathScan) -> u64 {
        self.blks.saturating_sub(run.scan.holes)
    }

    fn tell_rate(&mut self, run: &PathScan, block_size: u64) {
        let scan = &run.scan;
        if scan.throttled {
            self.caveats.doubt_since(
                Doubt::Paced,
                "rate-limited: pauses and short bursts, so no rate of the device is given",
            );
            return;
        }
        if mostly_skipped(run) {
            return;
        }
        if let Some(ns) = scan.ns_per_block() {
            self.block_us = Some(figure(ns / 1e3));
            self.mib_s = Some(figure(block_size as f64 / ns * 1e9 / f64::from(1 << 20)));
        }
        self.interval = IntervalFigures::of_time(scan.interval);
        self.caveats.judge_interval(&self.interval);
        if scan.interval.is_none() && scan.rated.work > 0 {
            self.caveats.too_short(MIN_SLICES, SLICES);
        }
    }

    /// Returns the shares of the tiers, in percent.
    fn tell_tiers(&mut self, path: Path, run: &PathScan, block_size: u64) -> Option<[f64; 3]> {
        self.device_bytes = run.cost.fetched_bytes();
        self.device_source = run.cost.fetched_bytes().map(|_| run.method.device_source);
        let hits = run.usage.hits();
        let reads = self.with_data(run).saturating_sub(hits);
        let tiers = match path {
            Path::Direct => {
                run.cost.fetched_bytes().map(|bytes| Tiers::of_direct(reads, bytes.div_ceil(block_size)))
            }
            Path::Os | Path::Server => {
                let past_cache = path == Path::Server && server::reads_direct();
                let cached_bytes = run.scan.cached_bytes.map(|cached| if past_cache { 0 } else { cached });
                let fetched_bytes = run.cost.fetched_bytes();
                Tiers::of_buffered(Evidence { block_size, hits, reads, cached_bytes, fetched_bytes })
            }
        };
        let percent = tiers.and_then(|tiers| tiers.percent());
        match percent {
            Some(shares) => {
                [self.shared_pct, self.os_pct, self.device_pct] = shares.map(|share| Some(figure(share)));
            }
            None if hits + reads > 0 => {
                // What says that nothing was cached can't be believed then.
                self.cold = None;
                self.caveats.doubt_since(Doubt::TiersUnknown, TIERS_UNKNOWN);
            }
            None => {}
        }
        if path == Path::Direct && percent.is_some_and(|[_, _, device]| device < DIRECT_PCT) {
            // A rate that is not the device's must not be taken for it.
            (self.mib_s, self.block_us, self.interval) = (None, None, IntervalFigures::default());
            self.caveats.void(NOT_DIRECT);
        }
        let device_blocks = tiers.map(|tiers| tiers.device);
        self.caveats.note_device(&run.cost);
        self.device_figures = DeviceFigures::of(&run.cost, device_blocks);
        percent
    }

    fn tell_notes(
        &mut self,
        target: &SeqscanTarget<'_>,
        path: Path,
        run: &PathScan,
        percent: Option<[f64; 3]>,
    ) {
        let scan = &run.scan;
        match scan.stop {
            Some(stop) => self.caveats.stopped(stop),
            None if !self.complete => self.caveats.stopped(Stop::Bytes),
            None => {}
        }
        let caveats = &mut self.caveats;
        if target.has_stripes() {
            caveats
                .note(format!("each path read blocks of its own, this one from block {}", scan.blocks.start));
        }
        caveats.note_holes(scan.holes);
        caveats.note_passed_over(run.skipped);
        if mostly_skipped(run) {
            caveats.status = Status::Partial;
            caveats.note("too many were passed over for a sequential scan: no rate is given");
        }
        let cached = scan.cached_bytes.unwrap_or(0);
        if target.scan.cold && (cached > 0 || run.usage.hits() > 0) {
            caveats.doubt_since(
                Doubt::NotCold,
                format!(
                    "not cold: {} kB stayed in the OS cache, {} blocks in buffers",
                    cached / 1024,
                    run.usage.hits()
                ),
            );
        } else if run.warmed && path != Path::Direct && cached > 0 {
            caveats.warmed();
        }
        caveats.drifted(scan.trend.filter(|_| !scan.throttled), percent);
        if scan.cached_bytes.is_none() {
            caveats.note("the kernel does not tell what the OS cache holds of this file");
        }
        caveats.note_relation(target.relation);
        caveats.notes.extend(run.notes.iter().cloned());
        caveats.note_written_back(run.written_back);
    }
}

/// Were too many blocks passed over for the rest to be a sequential scan?
fn mostly_skipped(run: &PathScan) -> bool {
    run.skipped * 10 > run.scan.blocks.end - run.scan.blocks.start
}
