//! wal_sync_method, from what a flush of one WAL block takes by each method.
//!
//! commit_delay is not advised: what it gains depends on how many sessions commit at once. The manual's
//! half-flush rule is unstable on a busy device.

use io_probe_advise::{SyncMethod, WriteCache};
use io_probe_core::measure::sync::{Case, CaseTimes, FlushMethod, GroupCommit, Section};
use io_probe_core::run::budget::Limits;
use io_probe_core::stats::Interval;
use serde_json::{Value, json};
use std::time::Duration;

use super::RecommendCall;
use super::advice::{Found, Lacking, NEEDS_WRITES, Recommendation, Setting};
use crate::api::shared::{self, of_leaves, us};
use crate::api::sync::{self, Bench, Benched};
use crate::call::{ProbedPlace, figure, stop_if};
use crate::error::Result;
use crate::pg::storage::wal;

pub(super) fn row(recommend: &RecommendCall<'_>) -> Result<Recommendation> {
    let row = Recommendation::of_cluster(Setting::WalSyncMethod);
    let Some(current) = wal::sync_method() else {
        return Ok(row.unknown("not measured: fsync is off, this server syncs nothing"));
    };
    let Some(current) = FlushMethod::of_wal(&current) else {
        return Ok(row.unknown("not measured: the method in force is unknown here"));
    };
    if !recommend.request.writes {
        return Ok(row.without(
            NEEDS_WRITES,
            "not measured: this needs writes => true and EXECUTE on io_probe_sync; it writes a scratch file \
             beside the WAL, and commits wait meanwhile",
        ));
    }
    let cases = sync::cases(&[Section::WalSegment], wal::BLOCK_BYTES, &[1], None);
    let place = ProbedPlace::of_wal().located();
    let limits = recommend.limits(1)?;
    let limits = Limits { duration: limits.duration / cases.len().max(1) as u32, ..limits };
    let group = GroupCommit { committers: 1, delay: Duration::ZERO, commit_bytes: None };
    let bench = Bench { cases, group, limits };
    let benched = match benched(recommend, &bench, &place) {
        Ok(benched) => benched,
        Err(lacking) => return row.lacking(lacking),
    };
    let placement = &place.placement;
    let measured: Vec<(&Case, &CaseTimes)> = bench.cases.iter().zip(&benched.cases).collect();
    let row = row
        .rests_on(
            "methods",
            measured.iter().map(|(case, found)| evidence(case, found)).collect::<Vec<Value>>(),
        )
        .rests_on("device", of_leaves(placement, |leaf| Some(&leaf.name)))
        .rests_on("write_cache", of_leaves(placement, |leaf| leaf.write_cache.as_deref()))
        .rests_on("fua", placement.leaves.iter().map(|leaf| leaf.fua).collect::<Vec<Option<bool>>>());
    let times: Vec<_> = measured.iter().filter_map(|(case, found)| time(case, found)).collect();
    let row = match io_probe_advise::sync_method(current, &times, WriteCache::of(&placement.leaves)) {
        SyncMethod::Keep => row.keep("no other method is over 10 % faster beyond the noise"),
        SyncMethod::Change { to, gain } => {
            let name = to.name();
            let why =
                format!("a flush of one WAL block is {gain:.2} times as fast with {name}, beyond the noise");
            row.alter(name, why)
        }
        SyncMethod::Distrust(method) => row.keep(format!(
            "{} is faster, but the device has a volatile cache and no FUA, so data may stay in that cache",
            method.name()
        )),
        SyncMethod::Unknown(method) => row.unknown(format!(
            "{} is faster, but perhaps only because of a volatile cache: it is not known whether the device \
             has one",
            method.name()
        )),
        SyncMethod::Unmeasured => {
            let of_current = measured.iter().find(|(case, _)| case.method == current);
            row.unknown(of_current.map_or(String::new(), |(_, found)| missing(found)))
        }
    };
    Ok(row.beside(shared::worst(benched.disturbed, &benched.held_back)))
}

fn benched(recommend: &RecommendCall<'_>, bench: &Bench, place: &ProbedPlace) -> Found<Benched> {
    stop_if(recommend.call.ended())?;
    // No ERROR: other rows, of other devices, may be known.
    place.check_admitted().map_err(|refusal| Lacking::unknown(refusal.as_note()))?;
    Ok(recommend.call.attempt(|| bench.run(recommend.call, place), Benched::stop)?)
}

/// The time of a flush, if there are figures to trust.
fn time(case: &Case, found: &CaseTimes) -> Option<(FlushMethod, Interval)> {
    let is_trusted = found.refused.is_none() && found.not_durable.is_none();
    found.interval().filter(|_| is_trusted).map(|time| (case.method, time))
}

fn evidence(case: &Case, found: &CaseTimes) -> Value {
    let interval = found.interval();
    let flushes = found.device().and_then(|device| device.flushes_per_op());
    let writes = found.device().map(|device| device.writes_per_op());
    json!({
        "method": case.method.name(), "direct": case.direct, "ops": found.ops(),
        "op_us": found.ns_per_op().map(us), "ci_low": interval.map(|i| us(i.low)),
        "ci_high": interval.map(|i| us(i.high)), "device_flushes_per_op": flushes.map(figure),
        "device_writes_per_op": writes.map(figure),
        "refused": found.refused, "not_durable": found.not_durable.map(|why| why.to_string()),
    })
}

/// Why a method has no figures to trust.
fn missing(found: &CaseTimes) -> String {
    match found.stop.filter(|stop| stop.is_for_all()) {
        Some(stop) => stop.to_string(),
        None => found.not_durable.map(|why| why.to_string()).or(found.refused.clone()).unwrap_or_else(|| {
            "there was too little time for three turns of each method: give a longer duration".to_owned()
        }),
    }
}
