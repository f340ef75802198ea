//! The row of one path.

use io_probe_core::measure::random::RandomRun;
use io_probe_core::stats::Latencies;
use io_probe_surface::random::RandomRow;
use io_probe_surface::value::Timestamp;

use super::findings::Findings;
use super::{PathOutcome, RandomTarget};
use crate::api::shared::{self, Caveats, device_source, ms, us};
use crate::call::{NamedEnum, Outcome, ReadPath, figure};
use crate::error::Result;

/// The row of a path that was tried at this moment.
pub(super) fn row(
    target: &RandomTarget<'_>,
    path: ReadPath,
    tried_at: Timestamp,
    measured: Outcome<PathOutcome>,
) -> Result<RandomRow> {
    let mut caveats = Caveats::default();
    let found = caveats.accept(measured)?;
    let found = found.as_ref();
    let findings = found.map(|found| Findings::of(target, found)).unwrap_or_default();
    if let Some(found) = found {
        findings.judge(target, found, &mut caveats);
    }
    let run = found.map(|found| &found.run);
    let tiers = findings.tiers;
    let device_blocks = tiers.map(|tiers| tiers.device);
    let device_bytes = found.and_then(|found| found.cost.fetched_bytes());
    // Figures that can't be true must not be taken as true.
    let timed = run.filter(|_| !findings.is_void());
    let iops = timed.and_then(RandomRun::iops);
    let latencies = timed.map(|run| &run.latencies);
    let tiers_known = tiers.is_some() || run.is_some_and(|run| run.with_data() == 0);
    let [shared, os, device] = timed.filter(|_| tiers_known).map(|run| run.by_tier).unwrap_or_default();
    // In a queue a hit waits until it is seen.
    let depth = found.map_or(target.arguments.depth, |found| found.way.depth);
    let is_single = depth == 1;
    let block_size = target.relation.block_size();
    let asked = device_blocks.map(|blocks| blocks * block_size).filter(|bytes| *bytes > 0 && timed.is_some());
    Ok(RandomRow {
        path: path.name(),
        iops: iops.map(figure),
        p999_us: latencies.and_then(|latencies| latencies.quantile(0.999)).map(|ns| us(ns as f64)),
        max_us: latencies.and_then(Latencies::most).map(|ns| us(ns as f64)),
        blks: run.map_or(0, |run| run.fetches),
        complete: run.is_some_and(|run| run.complete && run.passed_over == 0),
        cold: findings.cold,
        elapsed_ms: run.map(|run| ms(run.elapsed_ns)),
        mib_s: iops.map(|iops| shared::mib_s(iops, block_size)),
        shared_us: shared.ns_each().filter(|_| is_single).map(us),
        os_us: os.ns_each().filter(|_| is_single).map(us),
        device_us: device.ns_each().map(us),
        shared_blks_hit: tiers.map(|tiers| tiers.shared),
        os_blks_hit: tiers.map(|tiers| tiers.os),
        device_blks_read: device_blocks,
        shared_blks_written: found.filter(|_| path == ReadPath::Server).map(|found| found.usage.written()),
        device_source: found.filter(|_| device_bytes.is_some()).map(|found| device_source(found.way.account)),
        over_read: device_bytes.zip(asked).map(|(bytes, asked)| figure(bytes as f64 / asked as f64)),
        warmup_us: timed.and_then(|run| run.warmup_ns).map(|ns| us(ns as f64)),
        hole_blks: run.map(|run| run.holes),
        blks_total: target.relation.source.blocks(),
        depth,
        engine: found.map(|found| found.way.engine.clone()),
        seed: target.arguments.seed as i64,
        started_at: found.map_or(tried_at, |found| found.began),
        place: shared::place(target.relation),
        interval: shared::interval_of_rate(timed.and_then(|run| run.interval), &mut caveats),
        tiers: shared::tiers(findings.percent),
        activity: found.map(|found| shared::activity(&found.cost, device_blocks)).unwrap_or_default(),
        latencies: latencies.map(shared::latencies).unwrap_or_default(),
        caveats: caveats.columns(),
    })
}
