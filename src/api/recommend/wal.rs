//! wal_sync_method and commit_delay, from what a flush of one WAL block takes by each method.

use io_probe_core::advise::{self, Delay, MethodTime, SyncMethod, WriteCache};
use io_probe_core::measure::sync::{Case, CaseTimes, FlushMethod, Group, Section, Selection};
use io_probe_core::run::budget::Limits;
use io_probe_core::stats::Interval;
use serde_json::{Value, json};
use std::time::Duration;

use super::RecommendCall;
use super::row::Setting;
use super::row::{MissingArgument, RecommendRow};
use crate::api::random::us;
use crate::api::row::of_leaves;
use crate::api::sync::{Bench, Benched};
use crate::call::arguments::figure;
use crate::call::named::NamedEnum;
use crate::call::{Attempt, ProbedPlace};
use crate::error::Result;
use crate::pg::backend::server;
use crate::pg::catalog::facts;
use crate::pg::storage::wal;

const NEEDS_WRITES: &str = "not measured: it takes writes => true, which writes a scratch file beside the \
    WAL, makes commits wait meanwhile, and needs EXECUTE on io_probe_sync";

/// A row for each of the two that is wanted.
pub(super) fn rows(recommend: &RecommendCall<'_>) -> Result<Vec<RecommendRow>> {
    let wanted = [Setting::WalSyncMethod, Setting::CommitDelay].into_iter().filter(|s| recommend.wants(*s));
    let rows: Vec<(Setting, RecommendRow)> =
        wanted.filter_map(|s| Some((s, RecommendRow::of_cluster(s)?))).collect();
    let all = |why: &str| Ok(rows_of(&rows, |_, row| row.unknown(why)));
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let Some(current) = wal::sync_method() else {
        return all("not measured: fsync is off, this server syncs nothing");
    };
    let Some(current) = FlushMethod::of_wal(&current) else {
        return all("not measured: the method in force is unknown here");
    };
    if !recommend.request.writes {
        return Ok(rows_of(&rows, |_, row| row.without(MissingArgument::Writes, NEEDS_WRITES)));
    }
    // The delay is that of the method that is recommended, whether or not that is asked for.
    let cases = cases();
    let place = ProbedPlace::of_wal().located();
    let limits =
        Limits { duration: recommend.limits.duration / cases.len().max(1) as u32, ..recommend.limits };
    let group = Group { committers: 1, delay: Duration::ZERO, commit_bytes: None };
    let bench = Bench { cases, group, limits };
    if let Some(stop) = recommend.call.ended() {
        return all(&stop.to_string());
    }
    // Of another device something may be known.
    if let Err(refusal) = place.check_admitted() {
        return all(&refusal.to_string());
    }
    let Benched { cases: measured, disturbed, .. } =
        match recommend.call.attempt(|| bench.run(recommend.call, &place))? {
            Attempt::Unsupported(why) => return all(&format!("not measured: {why}")),
            Attempt::NotBegun(stop) => return all(&stop.to_string()),
            Attempt::Measured(benched) => benched,
        };
    let (cases, placement) = (&bench.cases, &place.placement);
    let of_current = || cases.iter().zip(&measured).find(|(case, _)| case.method == current);
    let flushes = Flushes {
        current,
        missing: of_current().map_or(String::new(), |(_, found)| missing(found)),
        cache: WriteCache::of(&placement.leaves),
        times: cases.iter().zip(&measured).filter_map(|(case, found)| time(case, found)).collect(),
    };
    let methods: Vec<Value> =
        cases.iter().zip(&measured).map(|(case, found)| evidence(case, found)).collect();
    let write_cache = of_leaves(placement, |leaf| leaf.write_cache.as_deref());
    let device = of_leaves(placement, |leaf| Some(&leaf.name));
    let fua: Vec<Option<bool>> = placement.leaves.iter().map(|leaf| leaf.fua).collect();
    Ok(rows_of(&rows, |setting, row| {
        let row = row
            .rests_on("methods", methods.clone())
            .rests_on("device", device.clone())
            .rests_on("write_cache", write_cache.clone())
            .rests_on("fua", fua.clone());
        let row = match setting {
            Setting::CommitDelay => flushes.commit_delay(row),
            _ => flushes.sync_method(row),
        };
        row.beside(disturbed)
    }))
}

fn rows_of(
    rows: &[(Setting, RecommendRow)],
    fill: impl Fn(Setting, RecommendRow) -> RecommendRow,
) -> Vec<RecommendRow> {
    rows.iter().map(|(setting, row)| fill(*setting, row.clone())).collect()
}

/// A flush of one block by each method, with the flags that this server would use.
fn cases() -> Vec<Case> {
    Case::all(&Selection {
        sections: &[Section::WalSegment],
        write_bytes: wal::BLOCK_BYTES,
        wal_block: wal::BLOCK_BYTES,
        flushes: &[1],
        segment_direct: &wal::opens_direct,
    })
}

/// Microseconds of a flush, if there are figures to trust.
fn time(case: &Case, found: &CaseTimes) -> Option<MethodTime> {
    if found.refused.is_some() || found.syncs_are_swallowed {
        return None;
    }
    let Interval { value, low, high } = found.interval()?;
    let time = Interval { value: value / 1e3, low: low / 1e3, high: high / 1e3 };
    Some(MethodTime { method: case.method, time })
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
        "refused": found.refused, "swallowed": found.syncs_are_swallowed,
    })
}

/// Why there are no figures of a method to trust, if so.
fn missing(found: &CaseTimes) -> String {
    match found.stop.filter(|stop| stop.is_for_all()) {
        Some(stop) => stop.to_string(),
        None if found.syncs_are_swallowed => {
            "fewer writes reached the device than were synced, so something swallows the syncs".to_owned()
        }
        None => found.refused.clone().unwrap_or_else(|| {
            "there was too little time for three turns of each method: give it a longer duration".to_owned()
        }),
    }
}

/// What flushes take.
struct Flushes {
    current: FlushMethod,
    /// Why there are no figures of the current one, if so.
    missing: String,
    cache: WriteCache,
    times: Vec<MethodTime>,
}

impl Flushes {
    fn sync_method(&self, row: RecommendRow) -> RecommendRow {
        match advise::sync_method(self.current, &self.times, self.cache) {
            SyncMethod::Keep => row.keep("no other method is faster by more than a tenth beyond the noise"),
            SyncMethod::Change { to, gain } => {
                let name = to.name();
                row.alter(
                    name,
                    name,
                    format!(
                        "a flush of one WAL block is {gain:.2} times as fast with {name}, beyond the noise"
                    ),
                )
            }
            SyncMethod::Distrust(method) => row.keep(format!(
                "{} is faster, but the device has a volatile cache and no FUA, so the data may just stay in \
                 it",
                method.name()
            )),
            SyncMethod::Unknown(method) => row.unknown(format!(
                "{} is faster, but whether the device has a volatile cache that makes it so is not known \
                 here",
                method.name()
            )),
            SyncMethod::Unmeasured => row.unknown(self.missing.clone()),
        }
    }

    /// That of the method that is recommended, if another one is.
    fn commit_delay(&self, row: RecommendRow) -> RecommendRow {
        let method = match advise::sync_method(self.current, &self.times, self.cache) {
            SyncMethod::Change { to, .. } => to,
            _ => self.current,
        };
        let Some(found) = self.times.iter().find(|time| time.method == method) else {
            return row.unknown(self.missing.clone());
        };
        let ms = found.time.value / 1e3;
        let siblings = server::setting(c"commit_siblings").unwrap_or_default();
        let set = facts::setting(Setting::CommitDelay.name()).and_then(|value| value.number());
        let set = set.map_or(0, |us| us as u32);
        let row = row.rests_on("method", method.name()).rests_on("flush_us", figure(found.time.value));
        match advise::commit_delay(found.time) {
            Delay::None if set == 0 && found.time.high < advise::LEAST_FLUSH_US => row.keep(format!(
                "a flush takes {ms:.2} ms: commits that meet share the next one anyway, and below 1 ms a \
                 delay costs more than it saves"
            )),
            Delay::None if found.time.high < advise::LEAST_FLUSH_US => row.alter("0", "0", format!(
                "a flush takes {ms:.2} ms: below 1 ms a delay costs each commit more than the flushes that \
                 it saves"
            )),
            Delay::None => {
                row.keep(format!("whether a flush takes 1 ms, about {ms:.2} ms, is within the noise"))
            }
            Delay::Of { us, low, high } => {
                let row = row.between(low.to_string(), high.to_string());
                if (low..=high).contains(&set) {
                    return row.keep(format!("it is about half the time of a flush, {ms:.2} ms"));
                }
                row.alter(us.to_string(), &us.to_string(), format!(
                    "half the time of a flush, {ms:.2} ms, lets others join it where {siblings} more \
                     transactions are active (commit_siblings)"
                ))
            }
        }
    }
}
