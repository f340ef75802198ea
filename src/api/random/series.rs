//! The rows of one path second by second.

use io_probe_core::machine::device::Activity;
use io_probe_core::measure::random::Second;
use serde::Serialize;

use super::findings::Findings;
use super::row::us;
use super::{PathOutcome, RandomTarget};
use crate::api::iostat::row::{MachineColumns, RequestColumns};
use crate::api::row::{Caveats, Status};
use crate::call::Attempt;
use crate::call::arguments::{Path, figure};
use crate::call::named::NamedEnum;
use crate::pg::backend::server;

/// `io_probe_random_series_full_row`; the type's comments say what each attribute means.
#[derive(Debug, Default, Serialize)]
pub(super) struct SeriesRow {
    path: &'static str,
    second: Option<u64>,
    iops: Option<f64>,
    lat_us: Option<f64>,
    max_us: Option<f64>,
    blks: u64,
    shared_pct: Option<f64>,
    os_pct: Option<f64>,
    device_pct: Option<f64>,
    #[serde(flatten)]
    requests: RequestColumns,
    #[serde(flatten)]
    machine: MachineColumns,
    elapsed_ms: Option<f64>,
    #[serde(flatten)]
    caveats: Caveats,
    sampled_at: String,
}

/// A row for each second; the notes stand in the last one. Without any second there is a row that says why.
pub(super) fn rows(
    target: &RandomTarget<'_>,
    path: Path,
    began: i64,
    found: Attempt<PathOutcome>,
    seconds: &[Second],
) -> Vec<SeriesRow> {
    let mut caveats = Caveats::default();
    let (mut end, mut seconds, mut knows_tiers) = (began, seconds, false);
    match caveats.accept(found) {
        Some(measured) => {
            // When the fetches began: without the time that it took to empty the caches.
            end = measured.began;
            let findings = Findings::of(target, &measured);
            (caveats, knows_tiers) = (findings.caveats, findings.tiers.is_some());
        }
        None => seconds = &[],
    }
    let mut rows: Vec<SeriesRow> = Vec::with_capacity(seconds.len().max(1));
    for (number, second) in (1..).zip(seconds) {
        end += (second.length_ns / 1000) as i64;
        rows.push(SeriesRow::of(path, number, second, end, caveats.status, knows_tiers));
    }
    match rows.last_mut() {
        Some(last) => last.caveats = caveats,
        None => rows.push(SeriesRow {
            path: path.name(),
            sampled_at: server::timestamp(end),
            caveats,
            ..SeriesRow::default()
        }),
    }
    rows
}

impl SeriesRow {
    fn of(path: Path, number: u64, second: &Second, end: i64, status: Status, knows_tiers: bool) -> Self {
        let per_second = |count: u64| figure(count as f64 * 1e9 / second.length_ns as f64);
        let (sum, most) = second.latency_ns;
        // Figures that are not the device's must not be taken for it.
        let void = status == Status::Void;
        let timed = if void { 0 } else { second.timed };
        let percent =
            second.tiers.percent().filter(|_| knows_tiers && !void).map(|shares| shares.map(figure));
        // As in the rows of other probes: without what the timer tick explains.
        let mut requests = second.activity.as_ref().map(RequestColumns::of).unwrap_or_default();
        requests.util_pct = second.activity.as_ref().and_then(Activity::busy_pct).map(figure);
        Self {
            path: path.name(),
            second: Some(number),
            iops: (!void).then(|| per_second(second.fetches)),
            lat_us: (timed > 0).then(|| us(sum as f64 / timed as f64)),
            max_us: (timed > 0).then(|| us(most as f64)),
            blks: second.fetches,
            shared_pct: percent.map(|[shared, _, _]| shared),
            os_pct: percent.map(|[_, os, _]| os),
            device_pct: percent.map(|[_, _, device]| device),
            requests,
            machine: MachineColumns::of(second.cpu.as_ref(), None),
            elapsed_ms: Some(figure(second.length_ns as f64 / 1e6)),
            caveats: Caveats::of_status(status),
            sampled_at: server::timestamp(end),
        }
    }
}
