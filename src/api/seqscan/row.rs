//! The row of one path, and the sentences that go with it.

use io_probe_core::measure::scan::Scan;
use io_probe_core::measure::tiers::{Evidence, Tiers};
use io_probe_core::run::budget::Stop;
use io_probe_core::stats::MIN_SLICES;
use io_probe_surface::doubt::Doubt;
use io_probe_surface::seqscan::SeqscanRow;
use io_probe_surface::value::Timestamp;

use super::{PathScan, SeqscanTarget};
use crate::api::shared::{
    self, Caveats, DIRECT_PCT, NOT_DIRECT, SLICES, TIERS_UNKNOWN, device_source, ms, us,
};
use crate::call::{NamedEnum, Outcome, ReadPath};
use crate::error::Result;
use crate::pg::backend::server;

/// The row of a path that was tried at this moment.
pub(super) fn row(
    target: &SeqscanTarget<'_>,
    path: ReadPath,
    tried_at: Timestamp,
    measured: Outcome<PathScan>,
) -> Result<SeqscanRow> {
    let mut caveats = Caveats::default();
    let found = caveats.accept(measured)?.map(|run| FoundScan::of(target, path, run));
    let found = found.as_ref();
    if let Some(found) = found {
        found.judge(&mut caveats);
    }
    let (run, scan) = (found.map(|found| &found.run), found.map(|found| &found.run.scan));
    let rated = found.and_then(FoundScan::rated);
    let ns_per_block = rated.and_then(Scan::ns_per_block);
    let requests = found.and_then(FoundScan::requests);
    let usage = run.filter(|_| path == ReadPath::Server).map(|run| &run.usage);
    let temporary = target.relation.relation.is_temporary();
    let (shared, local) = (usage.filter(|_| !temporary), usage.filter(|_| temporary));
    let device_blocks = found.and_then(|found| found.tiers).map(|tiers| tiers.device);
    let block_size = target.relation.block_size();
    Ok(SeqscanRow {
        path: path.name(),
        mib_s: ns_per_block.map(|ns| shared::mib_s(1e9 / ns, block_size)),
        block_us: ns_per_block.map(us),
        blks: run.map_or(0, PathScan::blocks),
        complete: found.is_some_and(FoundScan::is_complete),
        cold: found.and_then(FoundScan::is_cold),
        elapsed_ms: scan.map(|scan| ms(scan.elapsed_ns)),
        shared_blks_hit: shared.map(|usage| usage.0.shared_blks_hit),
        shared_blks_read: shared.map(|usage| usage.0.shared_blks_read),
        shared_blks_written: usage.map(|usage| usage.written()),
        local_blks_hit: local.map(|usage| usage.0.local_blks_hit),
        local_blks_read: local.map(|usage| usage.0.local_blks_read),
        os_blks_cached: scan.and_then(|scan| scan.cached_bytes).map(|bytes| bytes.div_ceil(block_size)),
        hole_blks: scan.map(|scan| scan.holes),
        device_source: run.filter(|run| run.cost.fetched.is_ok()).map(|run| device_source(run.account)),
        blks_total: target.relation.source.blocks(),
        chunk_kb: requests.map(|(blocks, _)| blocks * block_size / 1024),
        depth: requests.map(|(_, depth)| depth),
        engine: run.map(|run| run.engine.clone()),
        started_at: run.map_or(tried_at, |run| run.began),
        place: shared::place(target.relation),
        interval: shared::interval_of_time(rated.and_then(|scan| scan.interval), &mut caveats),
        tiers: shared::tiers(found.and_then(|found| found.percent)),
        activity: run.map(|run| shared::activity(&run.cost, device_blocks)).unwrap_or_default(),
        caveats: caveats.columns(),
    })
}

/// What a path did, and where.
struct FoundScan<'a> {
    target: &'a SeqscanTarget<'a>,
    path: ReadPath,
    run: PathScan,
    /// Which tiers served the blocks; None where that is not known.
    tiers: Option<Tiers>,
    /// Their shares in percent: shared buffers, OS cache, device.
    percent: Option<[f64; 3]>,
}

impl<'a> FoundScan<'a> {
    fn of(target: &'a SeqscanTarget<'a>, path: ReadPath, run: PathScan) -> Self {
        let tiers = run.tiers(path, target.relation.block_size());
        Self { target, path, run, tiers, percent: tiers.and_then(|tiers| tiers.percent()) }
    }

    fn is_complete(&self) -> bool {
        let scan = &self.run.scan;
        scan.stop.is_none() && scan.blocks.end == self.target.relation.source.blocks()
    }

    /// Was none of the blocks cached? What says so can't be believed if the tiers contradict it.
    fn is_cold(&self) -> Option<bool> {
        let cached_bytes = self.run.scan.cached_bytes?;
        let known = self.run.with_data() > 0 && self.percent.is_some();
        known.then_some(cached_bytes == 0 && self.run.usage.hits() == 0)
    }

    /// Did a direct scan not read all from the device?
    fn is_void(&self) -> bool {
        self.path == ReadPath::Direct && self.percent.is_some_and(|[_, _, device]| device < DIRECT_PCT)
    }

    /// The scan, if its rate is the device's, and that of a sequential scan.
    fn rated(&self) -> Option<&Scan> {
        let hidden = self.run.scan.throttled || self.run.is_mostly_skipped() || self.is_void();
        (!hidden).then_some(&self.run.scan)
    }

    /// The blocks of a request, and how many requests are in flight; None if the server decides.
    fn requests(&self) -> Option<(u64, u32)> {
        match self.path {
            ReadPath::Direct => Some((self.target.scan.chunk_blocks, self.target.scan.depth)),
            ReadPath::Server => None,
            ReadPath::Os => Some((1, 1)),
        }
    }

    fn judge(&self, caveats: &mut Caveats) {
        let (run, scan) = (&self.run, &self.run.scan);
        if scan.throttled {
            caveats.doubt_since(
                Doubt::Paced,
                "rate-limited: the scan made pauses, so its rate is not the device's",
            );
        }
        if self.rated().is_some_and(|scan| scan.interval.is_none() && scan.rated.work > 0) {
            caveats.too_short(MIN_SLICES, SLICES);
        }
        if self.percent.is_none() && run.with_data() > 0 {
            caveats.doubt_since(Doubt::TiersUnknown, TIERS_UNKNOWN);
        }
        if self.is_void() {
            caveats.void(NOT_DIRECT);
        }
        caveats.note_device(&run.cost);
        match scan.stop {
            Some(stop) => caveats.stopped(stop),
            None if !self.is_complete() => caveats.stopped(Stop::Bytes),
            None => {}
        }
        if self.target.has_stripes() {
            caveats
                .note(format!("each path read blocks of its own, this one from block {}", scan.blocks.start));
        }
        caveats.note_holes(scan.holes);
        caveats.note_passed_over(run.skipped);
        if run.is_mostly_skipped() {
            caveats.partial("too many blocks were passed over for a sequential scan: no rate is given");
        }
        self.judge_caches(caveats);
        let is_free = !scan.throttled;
        caveats.drifted(scan.trend.filter(|_| is_free), scan.slowed.filter(|_| is_free), self.percent);
        if scan.cached_bytes.is_none() {
            caveats.note("the kernel does not tell what the OS cache holds of this file");
        }
        caveats.note_relation(self.target.relation);
        caveats.notes.extend(run.notes.iter().cloned());
        caveats.note_written_back(run.written_back);
    }

    fn judge_caches(&self, caveats: &mut Caveats) {
        let cached_bytes = self.run.scan.cached_bytes.unwrap_or(0);
        let hits = self.run.usage.hits();
        if self.target.scan.cold && (cached_bytes > 0 || hits > 0) {
            let kb = cached_bytes / 1024;
            caveats.doubt_since(
                Doubt::NotCold,
                format!("not cold: {kb} kB stayed in the OS cache, {hits} blocks in buffers"),
            );
        } else if self.run.warmed && self.path != ReadPath::Direct && cached_bytes > 0 {
            caveats.warmed();
        }
    }
}

impl PathScan {
    /// Blocks that were read.
    fn blocks(&self) -> u64 {
        (self.scan.blocks.end - self.scan.blocks.start).saturating_sub(self.skipped)
    }

    /// Those of them that hold data.
    fn with_data(&self) -> u64 {
        self.blocks().saturating_sub(self.scan.holes)
    }

    /// Were too many blocks passed over for the rest to be a sequential scan?
    fn is_mostly_skipped(&self) -> bool {
        self.skipped * 10 > self.scan.blocks.end - self.scan.blocks.start
    }

    fn tiers(&self, path: ReadPath, block_size: u64) -> Option<Tiers> {
        let fetched_bytes = self.cost.fetched_bytes();
        let hits = self.usage.hits();
        let reads = self.with_data().saturating_sub(hits);
        if path == ReadPath::Direct {
            return fetched_bytes.map(|bytes| Tiers::of_direct(reads, bytes.div_ceil(block_size)));
        }
        let past_cache = path == ReadPath::Server && server::reads_direct();
        let cached_bytes = self.scan.cached_bytes.map(|cached| if past_cache { 0 } else { cached });
        Tiers::of_buffered(Evidence { block_size, hits, reads, cached_bytes, fetched_bytes })
    }
}
