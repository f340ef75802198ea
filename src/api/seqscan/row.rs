//! The row of one path, and the sentences that go with it.

use io_probe_core::measure::tiers::{Evidence, Tiers};
use io_probe_core::run::budget::Stop;
use io_probe_core::stats::MIN_SLICES;
use serde_json::json;

use super::{PathScan, SeqscanTarget};
use crate::api::row::{DIRECT_PCT, Doubt, NOT_DIRECT, Row, SLICES, TIERS_UNKNOWN, device_source, ms, us};
use crate::call::Attempt;
use crate::call::arguments::{Path, figure};
use crate::call::named::NamedEnum;
use crate::pg::backend::server;

/// What is known before anything is read.
pub(super) fn blank(target: &SeqscanTarget<'_>, path: Path) -> Row {
    Row::of(target.relation).with(json!({
        "path": path.name(),
        "blks": 0,
        "complete": false,
        "blks_total": target.relation.source.blocks(),
        "fork": target.scan.fork.name(),
    }))
}

/// The same with what was measured, or why nothing was.
pub(super) fn filled(mut row: Row, target: &SeqscanTarget<'_>, path: Path, found: Attempt<PathScan>) -> Row {
    if let Some(run) = row.caveats.accept(found) {
        FoundScan { target, path, run: &run }.fill(&mut row);
    }
    row
}

/// What a path did, and where.
struct FoundScan<'a> {
    target: &'a SeqscanTarget<'a>,
    path: Path,
    run: &'a PathScan,
}

impl FoundScan<'_> {
    fn fill(&self, row: &mut Row) {
        let (run, scan, block_size) = (self.run, &self.run.scan, self.target.relation.block_size());
        let tiers = self.tiers();
        let percent = tiers.and_then(|tiers| tiers.percent());
        // What says that nothing was cached can't be believed if the tiers contradict it.
        let cold = scan.cached_bytes.map(|cached| cached == 0 && run.usage.hits() == 0);
        let cold = cold.filter(|_| self.with_data() > 0 && percent.is_some());
        row.set(json!({
            "started_at": run.began,
            "blks": self.blocks(),
            "complete": self.is_complete(),
            "cold": cold,
            "elapsed_ms": ms(scan.elapsed_ns),
            "os_blks_cached": scan.cached_bytes.map(|bytes| bytes.div_ceil(block_size)),
            "hole_blks": scan.holes,
            "device_source": run.cost.fetched_bytes().map(|_| device_source(run.account)),
            "engine": run.engine,
        }));
        self.tell_requests(row);
        row.set_shares(percent);
        row.set_device(&run.cost, tiers.map(|tiers| tiers.device));
        // A rate that is not the device's must not be taken for it.
        let is_void = self.path == Path::Direct && percent.is_some_and(|[_, _, device]| device < DIRECT_PCT);
        self.tell_rate(row, is_void);
        if percent.is_none() && self.with_data() > 0 {
            row.caveats.doubt_since(Doubt::TiersUnknown, TIERS_UNKNOWN);
        }
        if is_void {
            row.caveats.void(NOT_DIRECT);
        }
        row.caveats.note_device(&run.cost);
        self.tell_notes(row, percent);
    }

    /// Blocks that were read.
    fn blocks(&self) -> u64 {
        let blocks = &self.run.scan.blocks;
        (blocks.end - blocks.start).saturating_sub(self.run.skipped)
    }

    /// Those of them that hold data.
    fn with_data(&self) -> u64 {
        self.blocks().saturating_sub(self.run.scan.holes)
    }

    fn is_complete(&self) -> bool {
        let scan = &self.run.scan;
        scan.stop.is_none() && scan.blocks.end == self.target.relation.source.blocks()
    }

    fn tell_requests(&self, row: &mut Row) {
        let (relation, scan) = (self.target.relation, self.target.scan);
        row.set(match self.path {
            Path::Direct => {
                let chunk_kb = scan.chunk_blocks * relation.block_size() / 1024;
                json!({"chunk_kb": chunk_kb, "depth": scan.depth})
            }
            Path::Os => json!({"chunk_kb": relation.block_size() / 1024, "depth": 1}),
            Path::Server => {
                let (usage, temporary) = (self.run.usage.0, relation.relation.is_temporary());
                json!({
                    "shared_blks_hit": (!temporary).then_some(usage.shared_blks_hit),
                    "shared_blks_read": (!temporary).then_some(usage.shared_blks_read),
                    "shared_blks_written": self.run.usage.written(),
                    "local_blks_hit": temporary.then_some(usage.local_blks_hit),
                    "local_blks_read": temporary.then_some(usage.local_blks_read),
                })
            }
        });
    }

    fn tell_rate(&self, row: &mut Row, is_void: bool) {
        let scan = &self.run.scan;
        if scan.throttled {
            row.caveats.doubt_since(
                Doubt::Paced,
                "rate-limited: pauses and short bursts, so no rate of the device is given",
            );
            return;
        }
        if mostly_skipped(self.run) || is_void {
            return;
        }
        if let Some(ns) = scan.ns_per_block() {
            let block_size = self.target.relation.block_size();
            let mib_s = block_size as f64 / ns * 1e9 / f64::from(1 << 20);
            row.set(json!({"block_us": us(ns), "mib_s": figure(mib_s)}));
        }
        row.set_interval_of_time(scan.interval);
        if scan.interval.is_none() && scan.rated.work > 0 {
            row.caveats.too_short(MIN_SLICES, SLICES);
        }
    }

    /// Which tiers served the blocks; None where that is not known.
    fn tiers(&self) -> Option<Tiers> {
        let (run, block_size) = (self.run, self.target.relation.block_size());
        let fetched_bytes = run.cost.fetched_bytes();
        let hits = run.usage.hits();
        let reads = self.with_data().saturating_sub(hits);
        if self.path == Path::Direct {
            return fetched_bytes.map(|bytes| Tiers::of_direct(reads, bytes.div_ceil(block_size)));
        }
        let past_cache = self.path == Path::Server && server::reads_direct();
        let cached_bytes = run.scan.cached_bytes.map(|cached| if past_cache { 0 } else { cached });
        Tiers::of_buffered(Evidence { block_size, hits, reads, cached_bytes, fetched_bytes })
    }

    fn tell_notes(&self, row: &mut Row, percent: Option<[f64; 3]>) {
        let (target, run, scan, caveats) = (self.target, self.run, &self.run.scan, &mut row.caveats);
        match scan.stop {
            Some(stop) => caveats.stopped(stop),
            None if !self.is_complete() => caveats.stopped(Stop::Bytes),
            None => {}
        }
        if target.has_stripes() {
            caveats
                .note(format!("each path read blocks of its own, this one from block {}", scan.blocks.start));
        }
        caveats.note_holes(scan.holes);
        caveats.note_passed_over(run.skipped);
        if mostly_skipped(run) {
            caveats.partial("too many were passed over for a sequential scan: no rate is given");
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
        } else if run.warmed && self.path != Path::Direct && cached > 0 {
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
