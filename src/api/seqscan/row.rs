//! The row of one path, and the sentences that go with it.

use io_probe_core::pace::Stop;
use io_probe_core::stats::MIN_SLICES;
use io_probe_core::tiers::{Evidence, Tiers};
use serde::Serialize;

use super::{Run, Target};
use crate::api::arguments::{Path, figure};
use crate::pg::server;

/// `io_probe_seqscan_row`; the type's comments say what each attribute means.
#[derive(Debug, Default, Serialize)]
pub(super) struct Row {
    path: &'static str,
    mib_per_s: Option<f64>,
    us_per_block: Option<f64>,
    from_shared_pct: Option<f64>,
    from_os_pct: Option<f64>,
    from_device_pct: Option<f64>,
    blks_scanned: u64,
    complete: bool,
    cold: Option<bool>,
    status: &'static str,
    notes: Vec<String>,
    elapsed_ms: Option<f64>,
    ci_low_us: Option<f64>,
    ci_high_us: Option<f64>,
    shared_blks_hit: Option<u64>,
    shared_blks_read: Option<u64>,
    shared_blks_written: Option<u64>,
    local_blks_hit: Option<u64>,
    local_blks_read: Option<u64>,
    os_blks_cached: Option<u64>,
    hole_blks: Option<u64>,
    device_bytes: Option<u64>,
    device_source: Option<&'static str>,
    device_ios: Option<u64>,
    ios_per_block: Option<f64>,
    rareq_kb: Option<f64>,
    aqu_sz: Option<f64>,
    r_await_ms: Option<f64>,
    util_pct: Option<f64>,
    other_bytes: Option<u64>,
    blks_total: u64,
    chunk_kb: Option<u64>,
    depth: Option<u32>,
    engine: Option<String>,
    device: Option<String>,
    scheduler: Option<String>,
    read_ahead_kb: Option<u64>,
    fork: &'static str,
    relid: u32,
    schemaname: Option<String>,
    relname: String,
    spcname: Option<String>,
    started_at: String,
}

impl Row {
    /// What is known before anything is read.
    pub(super) fn new(target: &Target<'_>, path: Path) -> Self {
        let leaves = &target.placement.leaves;
        let joined = |names: Vec<&str>| (!names.is_empty()).then(|| names.join(","));
        let mut schedulers: Vec<&str> = leaves.iter().filter_map(|l| l.scheduler.as_deref()).collect();
        schedulers.dedup();
        Self {
            path: path.name(),
            status: "ok",
            blks_total: target.source.blocks(),
            device: joined(leaves.iter().map(|l| l.name.as_str()).collect()),
            scheduler: joined(schedulers),
            read_ahead_kb: target.placement.read_ahead_kb,
            fork: target.request.fork.name(),
            relid: target.relation.oid().to_u32(),
            schemaname: target.relation.schema(),
            relname: target.relation.name(),
            spcname: target.relation.tablespace(),
            started_at: server::now(),
            ..Self::default()
        }
    }

    /// The file system can't do it.
    pub(super) fn refuse(&mut self, why: String) {
        self.status = "unsupported";
        self.notes.push(why);
    }

    /// The call came too late to read anything.
    pub(super) fn not_read(&mut self, why: Stop) {
        self.status = "partial";
        self.notes.push(why.to_string());
    }

    /// What was measured.
    pub(super) fn fill(&mut self, target: &Target<'_>, path: Path, run: &Run, warmed: bool) {
        let scan = &run.scan;
        let block_size = target.block_size();
        self.blks_scanned = (scan.blocks.end - scan.blocks.start).saturating_sub(run.skipped);
        self.complete = scan.stop.is_none() && scan.blocks.end == self.blks_total;
        self.elapsed_ms = Some(figure(scan.elapsed_ns as f64 / 1e6));
        self.os_blks_cached = scan.cached_bytes.map(|bytes| bytes.div_ceil(block_size));
        self.hole_blks = Some(scan.holes);
        if path == Path::Server {
            let temporary = target.relation.is_temporary();
            let usage = run.usage;
            self.shared_blks_hit = (!temporary).then_some(usage.shared_hit);
            self.shared_blks_read = (!temporary).then_some(usage.shared_read);
            self.local_blks_hit = temporary.then_some(usage.local_hit);
            self.local_blks_read = temporary.then_some(usage.local_read);
            self.shared_blks_written = Some(usage.shared_written);
        }
        self.chunk_kb = run.method.chunk_kb;
        self.depth = run.method.depth;
        self.engine = Some(run.method.engine.clone());
        if self.with_data(run) > 0 {
            self.cold = scan.cached_bytes.map(|cached| cached == 0 && run.usage.hits() == 0);
        }
        self.tell_rate(run, block_size);
        self.tell_tiers(path, run, block_size);
        self.tell_notes(target, path, run, warmed);
    }

    /// Blocks read that hold data.
    fn with_data(&self, run: &Run) -> u64 {
        self.blks_scanned.saturating_sub(run.scan.holes)
    }

    fn tell_rate(&mut self, run: &Run, block_size: u64) {
        let scan = &run.scan;
        if scan.throttled {
            self.notes
                .push("rate-limited: pauses and short bursts, so no rate of the device is given".to_owned());
            return;
        }
        if mostly_skipped(run) {
            return;
        }
        if let Some(ns) = scan.ns_per_block() {
            self.us_per_block = Some(figure(ns / 1e3));
            self.mib_per_s = Some(figure(block_size as f64 / ns * 1e9 / f64::from(1 << 20)));
        }
        self.ci_low_us = scan.interval.map(|i| figure(i.low / 1e3));
        self.ci_high_us = scan.interval.map(|i| figure(i.high / 1e3));
        if scan.interval.is_none() && scan.rated.work > 0 {
            self.notes.push(format!("too short for an interval, which needs {MIN_SLICES} slices of 1 ms"));
        }
    }

    fn tell_tiers(&mut self, path: Path, run: &Run, block_size: u64) {
        self.device_bytes = run.cost.fetched_bytes;
        self.device_source = run.cost.fetched_bytes.map(|_| run.method.device_source);
        self.other_bytes = run.cost.other_bytes();
        let fetched = run.cost.fetched_bytes.map(|bytes| bytes.div_ceil(block_size));
        let hits = run.usage.hits();
        let reads = self.with_data(run).saturating_sub(hits);
        let tiers = match path {
            Path::Direct => fetched.map(|fetched| Tiers::of_direct(reads, fetched)),
            Path::Os | Path::Server => {
                let past_cache = path == Path::Server && server::reads_direct();
                let cached = if past_cache { Some(0) } else { self.os_blks_cached };
                Tiers::of_buffered(Evidence { hits, reads, cached, fetched })
            }
        };
        match tiers.and_then(|tiers| tiers.percent()) {
            Some([shared, os, device]) => {
                self.from_shared_pct = Some(figure(shared));
                self.from_os_pct = Some(figure(os));
                self.from_device_pct = Some(figure(device));
            }
            None if hits + reads > 0 => {
                // Whatever says that nothing was cached is not to be believed then.
                self.cold = None;
                self.notes.push(
                    "who served the blocks is unknown: bytes fetched and blocks missing from the OS cache don't tell"
                        .to_owned(),
                );
            }
            None => {}
        }
        if path == Path::Direct && self.from_device_pct.is_some_and(|share| share < 99.9) {
            // A rate that is not the device's must not be taken for it.
            (self.mib_per_s, self.us_per_block, self.ci_low_us, self.ci_high_us) = (None, None, None, None);
            self.status = "void";
            self.notes.push("O_DIRECT was accepted, but not all bytes came from a block device".to_owned());
        }
        self.tell_device(run, tiers.map(|tiers| tiers.device));
    }

    fn tell_device(&mut self, run: &Run, device_blocks: Option<u64>) {
        let Some(activity) = &run.cost.activity else { return };
        self.device_ios = Some(activity.reads.requests);
        self.ios_per_block = device_blocks
            .filter(|blocks| *blocks > 0)
            .map(|blocks| figure(activity.reads.requests as f64 / blocks as f64));
        self.rareq_kb = activity.reads.request_kb().map(figure);
        self.r_await_ms = activity.reads.await_ms().map(figure);
        self.aqu_sz = activity.aqu_sz.map(figure);
        self.util_pct = activity.util_pct.map(figure);
        if activity.util_is_doubtful() {
            self.notes.push("the device's busy time exceeds the wall clock: util_pct is doubtful".to_owned());
        }
    }

    fn tell_notes(&mut self, target: &Target<'_>, path: Path, run: &Run, warmed: bool) {
        let scan = &run.scan;
        let mut note = |text: String| self.notes.push(text);
        match scan.stop {
            Some(stop) => note(stop.to_string()),
            None if !self.complete => note(Stop::Bytes.to_string()),
            None => {}
        }
        if matches!(scan.stop, Some(Stop::LockWaiter | Stop::Statement)) {
            self.status = "partial";
        }
        if target.has_stripes() {
            note(format!("each path read blocks of its own, this one from block {}", scan.blocks.start));
        }
        if scan.holes > 0 {
            note(format!(
                "{} blocks were never written to the file (holes); the rate leaves them out",
                scan.holes
            ));
        }
        if run.skipped > 0 {
            note(format!("{} blocks could not be evicted from buffers and were passed over", run.skipped));
        }
        if mostly_skipped(run) {
            note("too many were passed over for a sequential scan: no rate is given".to_owned());
            self.status = "partial";
        }
        let cached = scan.cached_bytes.unwrap_or(0);
        if target.request.cold && (cached > 0 || run.usage.hits() > 0) {
            note(format!(
                "not cold: {} kB stayed in the OS cache, {} blocks in buffers",
                cached / 1024,
                run.usage.hits()
            ));
        } else if warmed && path != Path::Direct && cached > 0 {
            note("an earlier path of this call left blocks in the OS cache".to_owned());
        }
        // Where the tier changes in the middle, so does the time.
        let one_tier = [self.from_shared_pct, self.from_os_pct, self.from_device_pct].contains(&Some(100.0));
        if let Some(trend) = scan.trend.filter(|_| one_tier && !scan.throttled) {
            let percent = trend * 100.0;
            note(format!(
                "the time per block changed by {percent:+.0} % from the start of the run to its end"
            ));
        }
        if scan.cached_bytes.is_none() {
            note("the kernel does not tell what the OS cache holds of this file".to_owned());
        }
        if target.placement.leaves.is_empty() {
            self.notes.extend(target.placement.notes.iter().cloned());
        }
        self.notes.extend(run.notes.iter().cloned());
    }
}

/// Were so many blocks passed over that what is left is no sequential scan?
fn mostly_skipped(run: &Run) -> bool {
    run.skipped * 10 > run.scan.blocks.end - run.scan.blocks.start
}
