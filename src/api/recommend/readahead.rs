//! read_ahead_kb of the disks below the tablespaces, from the curve that io_probe_readahead measures.

use io_probe_advise::{Choice, SEEMS_WORSE, plateau};
use io_probe_core::measure::readahead::WindowFigures;
use io_probe_core::run::budget::Limits;
use io_probe_surface::doubt::Doubt;
use serde_json::{Value, json};

use super::advice::{NOT_COLD, Recommendation, SEEMS_BETTER, Setting, Statements};
use super::place::TablespaceTarget;
use super::{PARTS_OF_WAYS, RecommendCall};
use crate::api::readahead::{self, PRECISION, WINDOWS_KB, WindowMode, WindowResult};
use crate::api::shared::us;
use crate::error::Result;
use crate::pg::backend::server;

/// Fewest turns of the setting in force: with fewer nothing is said.
const LEAST_TURNS: u64 = 3;

/// How far the time of an emulated window may be off the kernel's, as a share: two standard deviations of 24
/// comparisons, their noise included, see experiments/readahead.md.
const EMULATION_ERROR: f64 = 0.08;

const OF_DEVICE: &str =
    "a reboot or a udev rule sets the old value again: udev_rule in evidence keeps the new one";

const KEEP: &str = "no other window makes a cold scan over 5 % faster beyond the noise";

/// A row for each disk, measured on the largest relation that lies on it; where no disk is known, for each
/// tablespace.
pub(super) fn rows(
    recommend: &RecommendCall<'_>,
    places: &[TablespaceTarget],
) -> Result<Vec<Recommendation>> {
    if !recommend.wants(Setting::ReadAheadKb) {
        return Ok(Vec::new());
    }
    let mut by_size: Vec<&TablespaceTarget> = places.iter().collect();
    by_size.sort_by_key(|place| std::cmp::Reverse(place.relations.first().map(|relation| relation.bytes)));
    let mut disks: Vec<&TablespaceTarget> = Vec::new();
    for place in by_size {
        let disk = place.placement.read_ahead_device.as_ref();
        if disk.is_none() || disks.iter().all(|known| known.placement.read_ahead_device.as_ref() != disk) {
            disks.push(place);
        }
    }
    disks.into_iter().map(|place| of_disk(recommend, place)).collect()
}

fn of_disk(recommend: &RecommendCall<'_>, place: &TablespaceTarget) -> Result<Recommendation> {
    let placement = &place.placement;
    let relation = place.free_relations().next();
    let name = placement.read_ahead_device.clone();
    let row = Recommendation::of_device(Setting::ReadAheadKb, name.clone(), placement.read_ahead_kb)
        .used(place.used(relation))
        .rests_on("tablespace", place.spcname.clone());
    let (Some(disk), Some(in_force)) = (name, placement.read_ahead_kb) else {
        let notes = placement.notes.join("; ");
        let why = if notes.is_empty() { "no disk sets it".to_owned() } else { notes };
        return Ok(row.unknown(format!("not measured: the readahead of this tablespace is not known: {why}")));
    };
    if server::reads_direct() {
        return Ok(row.unknown(
            "not measured: debug_io_direct makes the server read past the OS cache, so the kernel reads \
             nothing ahead",
        ));
    }
    let Some(relation) = relation else { return Ok(row.unknown(place.why_none().to_owned())) };
    if !recommend.request.cold {
        return row.lacking(NOT_COLD);
    }
    let relation = match place.open(recommend.call, relation) {
        Ok(relation) => relation,
        Err(lacking) => return row.lacking(lacking),
    };
    let windows = WINDOWS_KB.map(|kb| u64::from(kb.unsigned_abs()) << 10);
    let limits = recommend.limits(PARTS_OF_WAYS)?;
    let duration = limits.duration / (windows.len() as u32 + 1);
    let limits = Limits { duration, precision: limits.precision.or(Some(PRECISION)), ..limits };
    let (curve, needs) = readahead::measure(recommend.call, &relation, &windows, limits)?;
    let longer = recommend.longer(needs.map(|needs| recommend.whole(needs, PARTS_OF_WAYS)));
    let row = judge(row, &curve, &disk, in_force, &longer).also(&left_out(&curve));
    Ok(row.beside(readahead::doubt(&curve)).by_curve(curve))
}

/// What is added to `why` where windows were left out.
fn left_out(curve: &[WindowResult]) -> String {
    let windows = curve.iter().filter(|window| window.is_left_out).filter_map(WindowResult::kb);
    let windows: Vec<String> = windows.map(|kb| kb.to_string()).collect();
    if windows.is_empty() {
        return String::new();
    }
    format!("; windows of {} kB were not measured, since they take long here", windows.join(", "))
}

/// `longer` says how to get times that are lacking.
fn judge(
    row: Recommendation,
    curve: &[WindowResult],
    disk: &str,
    in_force: u64,
    longer: &str,
) -> Recommendation {
    let Some(kernel) = curve.iter().find(|window| window.mode == WindowMode::Kernel) else {
        return row.unknown("not measured: the setting in force is unknown");
    };
    let row = row
        .rests_on("curve", curve.iter().map(evidence).collect::<Vec<Value>>())
        .rests_on("emulation_error_pct", 100.0 * EMULATION_ERROR);
    let Some(now) = kernel.figures else {
        let why = &kernel.why_none;
        let lacks_time = kernel.caveats.has(Doubt::Short);
        let longer = if lacks_time { format!(": {longer}") } else { String::new() };
        return row.unknown(format!("there are no figures of the setting in force: {why}{longer}"));
    };
    if let Some(refused) = curve.iter().find(|window| window.caveats.has(Doubt::Unsupported)) {
        return row.unknown(format!("no other window can be measured: {}", refused.why_none));
    }
    // A window smaller than what a scan reads at a time is none to it.
    let least = server::scan_read_kb().unwrap_or(0);
    let choices: Vec<Choice> = curve
        .iter()
        .filter(|window| window.mode == WindowMode::Kernel || window.kb().is_some_and(|kb| kb >= least))
        .filter_map(choice)
        .collect();
    let Some(found) = plateau(&choices, in_force).filter(|_| choices.len() > 1) else {
        return without_interval(row, &choices, kernel, longer);
    };
    if found.seems_worse {
        return row.unknown(SEEMS_BETTER);
    }
    let row = row.between(found.low.to_string(), found.high.to_string());
    if found.holds_current {
        return row.keep(KEEP);
    }
    let best = curve.iter().find(|window| window.kb() == Some(found.value));
    let Some(best) = best.and_then(|best| best.figures) else {
        return row.unknown("the best window was not measured");
    };
    let gain = now.ns_per_block / best.ns_per_block;
    let why = format!(
        "a cold scan that reads a block at a time is {gain:.2} times as fast with {} kB on {disk}; sessions \
         use the new value after they reconnect",
        found.value
    );
    let (blockdev_setra, udev_rule) = readahead::lines(found.value, disk);
    let undo = readahead::lines(in_force, disk).0;
    let how = Statements { statement: blockdev_setra, undo, instead: None, hides: OF_DEVICE.to_owned() };
    row.rests_on("udev_rule", udev_rule).change(found.value.to_string(), how, why)
}

fn choice(window: &WindowResult) -> Option<Choice> {
    let error = if window.mode == WindowMode::Emulated { EMULATION_ERROR } else { 0.0 };
    Some(Choice { value: window.kb()?, time: window.figures?.interval?, error })
}

/// The row where few turns of the kernel counted: nothing can be better beyond the noise, but all other
/// windows may be no faster.
fn without_interval(
    row: Recommendation,
    others: &[Choice],
    kernel: &WindowResult,
    longer: &str,
) -> Recommendation {
    let now = kernel.figures.filter(|_| kernel.turns >= LEAST_TURNS);
    let is_no_faster =
        |now: WindowFigures| others.iter().all(|other| other.time.value * SEEMS_WORSE >= now.ns_per_block);
    if !others.is_empty() && now.is_some_and(is_no_faster) {
        return row.keep(KEEP);
    }
    row.unknown(format!("too few turns counted for a confidence interval: {longer}"))
}

fn evidence(window: &WindowResult) -> Value {
    let interval = window.figures.and_then(|figures| figures.interval);
    json!({
        "window_kb": window.kb(), "mode": window.mode.name(),
        "block_us": window.figures.map(|figures| us(figures.ns_per_block)),
        "ci_low": interval.map(|interval| us(interval.low)),
        "ci_high": interval.map(|interval| us(interval.high)), "turns": window.turns,
        "status": window.caveats.status(),
    })
}
