//! read_ahead_kb of the disks below the tablespaces, from the curve that io_probe_readahead measures.

use io_probe_core::advise::{Choice, plateau};
use io_probe_core::run::budget::Limits;
use io_probe_core::stats::Interval;
use serde_json::{Value, json};

use super::Call;
use super::place::{GONE, OpenedRelation, TablespaceTarget};
use super::row::RecommendRow;
use super::setting::Setting;
use crate::api::readahead::{self, CurveOf, PRECISION, WINDOWS_KB};
use crate::call::probed_relation::ProbedRelation;
use crate::call::statement;
use crate::error::Result;
use crate::pg::backend::server;

/// With fewer turns of the setting in force nothing is said.
const LEAST_TURNS: u64 = 3;

const KEEP: &str = "no other window makes a cold scan faster beyond the noise";

/// A row for each disk, measured on the largest relation that lies on it; where no disk is known, for each tablespace.
pub(super) fn rows(call: &Call<'_>, places: &[TablespaceTarget]) -> Result<Vec<RecommendRow>> {
    if !call.wants(Setting::ReadAheadKb) {
        return Ok(Vec::new());
    }
    let size = |place: &TablespaceTarget| place.relations.first().map_or(0, |relation| relation.bytes);
    let mut by_size: Vec<&TablespaceTarget> = places.iter().collect();
    by_size.sort_by_key(|place| std::cmp::Reverse(size(place)));
    let mut disks: Vec<&TablespaceTarget> = Vec::new();
    for place in by_size {
        let disk = place.placement.read_ahead_device.as_ref();
        let is_new = |known: &&TablespaceTarget| known.placement.read_ahead_device.as_ref() != disk;
        if disk.is_none() || disks.iter().all(is_new) {
            disks.push(place);
        }
    }
    disks.into_iter().map(|place| of_disk(call, place)).collect()
}

fn of_disk(call: &Call<'_>, place: &TablespaceTarget) -> Result<RecommendRow> {
    let placement = &place.placement;
    let relation = place.relation();
    let name = placement.read_ahead_device.clone();
    let row = RecommendRow::of_device(Setting::ReadAheadKb, name.clone(), placement.read_ahead_kb)
        .used(place.used(relation))
        .rests_on("tablespace", place.spcname.clone());
    let (Some(disk), Some(in_force)) = (name, placement.read_ahead_kb) else {
        let notes = placement.notes.join("; ");
        let why = if notes.is_empty() { "it is no disk's".to_owned() } else { notes };
        return Ok(row.unknown(format!("not measured: the readahead of this tablespace is not known: {why}")));
    };
    if server::reads_direct() {
        return Ok(row.unknown(
            "not measured: debug_io_direct makes the server read past the OS cache, where there is no readahead",
        ));
    }
    let Some(relation) = relation else { return Ok(row.unknown(place.why_none())) };
    if !call.request.cold {
        return Ok(row.unknown(
            "not measured: it takes cold => true, which evicts what it reads from the OS cache and needs EXECUTE on io_probe_evict",
        ));
    }
    if let Some(stop) = statement::over() {
        return Ok(row.unknown(stop.to_string()));
    }
    let subject = match place.open(relation)? {
        OpenedRelation::Ready(subject) => subject,
        OpenedRelation::Refused(why) => return Ok(row.unknown(why)),
        OpenedRelation::Gone => return Ok(row.unknown(GONE)),
    };
    let curve = measure(call, &subject)?;
    Ok(judge(row, &curve, &disk, in_force))
}

fn measure(call: &Call<'_>, subject: &ProbedRelation) -> Result<Vec<readahead::ReadaheadRow>> {
    let windows = WINDOWS_KB.map(|kb| u64::from(kb.unsigned_abs()) << 10);
    let duration = call.limits.duration / (windows.len() as u32 + 1);
    let precision = call.limits.precision.or(Some(PRECISION));
    CurveOf { subject, windows: &windows, limits: Limits { duration, precision, ..call.limits } }
        .rows(call.progress)
}

fn judge(row: RecommendRow, curve: &[readahead::ReadaheadRow], disk: &str, in_force: u64) -> RecommendRow {
    let Some(kernel) = curve.iter().find(|window| window.mode == "kernel") else {
        return row.unknown("not measured: the setting in force is unknown");
    };
    let row = row.rests_on("curve", curve.iter().map(evidence).collect::<Vec<Value>>());
    if kernel.us_per_block.is_none() {
        let notes = kernel.verdict.notes.join("; ");
        return row.unknown(format!("there are no figures of the setting in force: {notes}"));
    }
    // To a scan that reads so much at a time, less is none.
    let least = server::scan_read_kb().unwrap_or(0);
    let choice = |window: &readahead::ReadaheadRow| {
        let time = Interval { value: window.us_per_block?, low: window.ci_low_us?, high: window.ci_high_us? };
        Some(Choice { value: window.window_kb?, time })
    };
    let choices: Vec<Choice> = curve
        .iter()
        .filter(|window| window.mode == "kernel" || window.window_kb.is_some_and(|kb| kb >= least))
        .filter_map(choice)
        .collect();
    let Some(found) = plateau(&choices, in_force).filter(|_| choices.len() > 1) else {
        return without_interval(row, &choices, kernel);
    };
    let row = row.between(found.low.to_string(), found.high.to_string());
    if found.holds_current {
        return row.keep(KEEP);
    }
    let best = curve.iter().find(|window| window.window_kb == Some(found.best));
    let (Some(best), Some(now)) = (best, kernel.us_per_block) else {
        return row.unknown("the best window has no figures");
    };
    let gain = now / best.us_per_block.unwrap_or(now);
    let why = format!(
        "a cold scan that reads a block at a time is {gain:.2} times as fast with {} kB on {disk}; sessions notice after they reconnect",
        found.best
    );
    let statement = best.blockdev_setra.clone().unwrap_or_default();
    row.rests_on("udev_rule", best.udev_rule.clone()).change(found.best.to_string(), statement, why)
}

/// Few turns of the kernel counted, so that nothing can be better beyond the noise; but all others may be worse.
fn without_interval(row: RecommendRow, others: &[Choice], kernel: &readahead::ReadaheadRow) -> RecommendRow {
    let now = kernel.us_per_block.filter(|_| kernel.turns >= LEAST_TURNS);
    let is_no_faster = |now: f64| others.iter().all(|other| other.time.high >= now);
    if !others.is_empty() && now.is_some_and(is_no_faster) {
        return row.keep(KEEP);
    }
    row.unknown("too few turns counted for an interval: give it a longer duration, or a larger table")
}

fn evidence(window: &readahead::ReadaheadRow) -> Value {
    json!({
        "window_kb": window.window_kb, "mode": window.mode, "us_per_block": window.us_per_block,
        "ci_low_us": window.ci_low_us, "ci_high_us": window.ci_high_us, "turns": window.turns,
        "status": window.verdict.status,
    })
}
