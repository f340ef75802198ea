//! The row of one path.

use serde_json::json;

use super::findings::Findings;
use super::{PathOutcome, RandomTarget};
use crate::api::row::{Row, device_source, ms, us};
use crate::call::Attempt;
use crate::call::arguments::{Path, figure};
use crate::call::named::NamedEnum;

/// What is known before anything is fetched.
pub(super) fn blank(target: &RandomTarget<'_>, path: Path) -> Row {
    Row::of(target.relation).with(json!({
        "path": path.name(),
        "blks": 0,
        "complete": false,
        "blks_total": target.relation.source.blocks(),
        "depth": target.arguments.depth,
        "seed": target.arguments.seed as i64,
    }))
}

/// The same with what was measured, or why nothing was.
pub(super) fn filled(mut row: Row, target: &RandomTarget<'_>, found: Attempt<PathOutcome>) -> Row {
    if let Some(measured) = row.caveats.accept(found) {
        let findings = Findings::of(target, &measured);
        row.caveats = findings.caveats.clone();
        fill(&mut row, &measured, &findings, target.relation.block_size());
    }
    row
}

fn fill(row: &mut Row, measured: &PathOutcome, findings: &Findings, block_size: u64) {
    let (run, tiers) = (&measured.run, findings.tiers);
    let device_bytes = measured.cost.fetched_bytes();
    row.set(json!({
        "started_at": measured.began,
        "blks": run.fetches,
        "complete": run.complete && run.passed_over == 0,
        "cold": findings.cold,
        "elapsed_ms": ms(run.elapsed_ns),
        "hole_blks": run.holes,
        "depth": measured.way.depth,
        "engine": measured.way.engine,
        "shared_blks_hit": tiers.map(|tiers| tiers.shared),
        "os_blks_hit": tiers.map(|tiers| tiers.os),
        "device_blks_read": tiers.map(|tiers| tiers.device),
        "shared_blks_written": (measured.way.path == Path::Server).then(|| measured.usage.written()),
        "device_source": device_bytes.map(|_| device_source(measured.way.account)),
    }));
    row.set_shares(findings.percent);
    row.set_device(&measured.cost, tiers.map(|tiers| tiers.device));
    // Figures that can't be true must not be taken as true.
    if !findings.void {
        let asked = tiers.map_or(0, |tiers| tiers.device * block_size);
        row.set(json!({
            "iops": run.iops().map(figure),
            "mib_s": run.iops().map(|iops| figure(iops * block_size as f64 / f64::from(1 << 20))),
            "warmup_us": run.warmup_ns.map(|ns| us(ns as f64)),
            "over_read": device_bytes.filter(|_| asked > 0).map(|bytes| figure(bytes as f64 / asked as f64)),
        }));
        row.set_interval_of_rate(run.interval);
        tell_latencies(row, measured, findings);
    }
}

fn tell_latencies(row: &mut Row, measured: &PathOutcome, findings: &Findings) {
    let (run, latencies) = (&measured.run, &measured.run.latencies);
    row.set_latencies(latencies);
    let known = findings.tiers.is_some() || run.with_data() == 0;
    let [shared, os, device] = run.by_tier.map(|moments| moments.mean().map(us).filter(|_| known));
    // In a queue a hit waits until it is seen, and it is not known when a place was free and a request due.
    let is_single = measured.way.depth == 1;
    let responses = run.responses.as_ref().filter(|_| is_single);
    row.set(json!({
        "p999_us": latencies.quantile(0.999).map(|ns| us(ns as f64)),
        "max_us": latencies.most().map(|ns| us(ns as f64)),
        "min_us": latencies.least().map(|ns| us(ns as f64)),
        "mdev_us": latencies.moments().deviation().map(us),
        "service_iops": latencies.moments().mean().map(|ns| figure(1e9 / ns)),
        "shared_us": shared.filter(|_| is_single),
        "os_us": os.filter(|_| is_single),
        "device_us": device,
        "response_avg_us": responses.and_then(|responses| responses.moments().mean()).map(us),
        "response_p99_us": responses.and_then(|responses| responses.quantile(0.99)).map(|ns| us(ns as f64)),
    }));
}
