//! The row of one device in one interval.

use io_probe_core::machine::device::{Activity, Traffic};
use io_probe_core::machine::iostat::{DeviceSample, IntervalCounts, Sample, SnapshotSeries};
use io_probe_core::run::budget::Stop;
use serde::Serialize;
use serde_json::{Value, json};

use super::Watched;
use crate::api::row::{Caveats, Status, UTIL_DOUBTFUL};
use crate::call::arguments::figure;
use crate::pg::backend::server;

/// `io_probe_iostat_full_row`; the type's comments say what each attribute means.
#[derive(Debug, Default, Serialize)]
pub(super) struct IostatRow {
    sampled_at: String,
    device: Option<String>,
    /// What the device did.
    #[serde(flatten)]
    requests: Option<Value>,
    /// What the machine did.
    #[serde(flatten)]
    machine: Option<Value>,
    cgroup_rmib_s: Option<f64>,
    cgroup_wmib_s: Option<f64>,
    sample: Option<u64>,
    pub(super) elapsed_ms: Option<f64>,
    #[serde(flatten)]
    pub(super) caveats: Caveats,
}

/// The rows of a run, by interval, then by device. Only the last interval says that a run was stopped.
pub(super) fn of_series(watched: &Watched, series: &SnapshotSeries, stop: Option<Stop>) -> Vec<IostatRow> {
    let samples = series.samples();
    let mut rows = Vec::with_capacity(samples.len() * watched.rows_a_sample());
    for (number, sample) in (1..).zip(&samples) {
        let devices = watched.watch.devices().iter().zip(&sample.devices);
        rows.extend(devices.map(|(device, seen)| IostatRow::of_device(number, sample, device.name(), seen)));
        if sample.devices.is_empty() {
            rows.push(IostatRow::without_device(number, sample, &watched.notes));
        }
    }
    if let Some(stop) = stop {
        let last = rows.len().saturating_sub(watched.rows_a_sample());
        for IostatRow { caveats, .. } in &mut rows[last..] {
            // A row without figures is not a partial one: it keeps its status.
            match caveats.status {
                Status::Ok => caveats.stopped(stop),
                _ => caveats.note(stop.to_string()),
            }
        }
    }
    note_limits(watched, &mut rows);
    if let (Some(every), Some(first)) = (series.stretched(), rows.first_mut()) {
        let every = figure(every.as_secs_f64());
        first.caveats.note(format!(
            "the intervals were doubled to {every} s, to keep the number of rows within its limit"
        ));
    }
    rows
}

/// The rows of a call that came too late to begin.
pub(super) fn not_begun(watched: &Watched, why: Stop) -> Vec<IostatRow> {
    let row = |device: Option<String>| {
        let mut row = IostatRow::now(device);
        row.caveats.not_begun(why);
        row
    };
    let devices = watched.watch.devices();
    if devices.is_empty() {
        return vec![row(None)];
    }
    devices.iter().map(|device| row(Some(device.name().to_owned()))).collect()
}

/// Notes the limits that the cgroup sets, in the first interval; those on a device in its row.
fn note_limits(watched: &Watched, rows: &mut [IostatRow]) {
    for (device, row) in watched.watch.devices().iter().zip(&mut *rows) {
        row.caveats.notes.extend(watched.watch.limits_of(device));
    }
    if let Some(first) = rows.first_mut() {
        first.caveats.notes.extend(watched.watch.limits());
    }
}

impl IostatRow {
    /// A row without figures.
    pub(super) fn now(device: Option<String>) -> Self {
        Self { device, sampled_at: server::now(), ..Self::default() }
    }

    fn new(number: u64, sample: &Sample) -> Self {
        Self {
            sampled_at: server::timestamp_of_unix(sample.ended_us),
            machine: Some(of_machine(sample)),
            sample: Some(number),
            elapsed_ms: Some(figure(sample.length_ns as f64 / 1e6)),
            ..Self::default()
        }
    }

    fn without_device(number: u64, sample: &Sample, why: &[String]) -> Self {
        let mut row = Self::new(number, sample);
        row.caveats.refuse("no block device is known behind the server's directories".to_owned());
        row.caveats.notes.extend_from_slice(why);
        row
    }

    fn of_device(number: u64, sample: &Sample, device: &str, seen: &DeviceSample) -> Self {
        let mut row = Self { device: Some(device.to_owned()), ..Self::new(number, sample) };
        let mib_s = |bytes: u64| {
            (sample.length_ns > 0)
                .then(|| figure(bytes as f64 * 1e9 / sample.length_ns as f64 / f64::from(1 << 20)))
        };
        row.cgroup_rmib_s = seen.cgroup.and_then(|moved| mib_s(moved.read_bytes));
        row.cgroup_wmib_s = seen.cgroup.and_then(|moved| mib_s(moved.written_bytes));
        match &seen.requests {
            IntervalCounts::Activity(activity) => {
                row.requests = Some(of_requests(activity));
                if activity.util_is_doubtful() {
                    row.caveats.note(UTIL_DOUBTFUL);
                }
            }
            IntervalCounts::Backwards => {
                row.caveats.void("a counter went backwards: another device has this name now")
            }
            IntervalCounts::Gone => {
                row.caveats.void("the device or its counters were not there all the time")
            }
            IntervalCounts::Nothing => {
                row.caveats
                    .refuse("the device has no counters: /sys hides them, or queue/iostats is 0".to_owned());
            }
        }
        row
    }
}

fn of_machine(sample: &Sample) -> Value {
    let (cpu, pressure) = (sample.cpu.as_ref(), sample.pressure.as_ref());
    json!({
        "cpu_user_pct": cpu.map(|cpu| figure(cpu.user_pct)),
        "cpu_system_pct": cpu.map(|cpu| figure(cpu.system_pct)),
        "cpu_iowait_pct": cpu.map(|cpu| figure(cpu.iowait_pct)),
        "cpu_idle_pct": cpu.map(|cpu| figure(cpu.idle_pct)),
        "cpu_steal_pct": cpu.map(|cpu| figure(cpu.steal_pct)),
        "io_pressure_pct": pressure.map(|pressure| figure(pressure.some_pct)),
        "io_pressure_full_pct": pressure.and_then(|pressure| pressure.full_pct).map(figure),
    })
}

fn of_requests(a: &Activity) -> Value {
    let rate = |amount: u64| a.per_second(amount).map(figure);
    let mib_s = |traffic: &Traffic| a.per_second(traffic.bytes).map(|b| figure(b / f64::from(1 << 20)));
    let (reads, writes) = (&a.reads, &a.writes);
    let (discards, flushes) = (a.discards.as_ref(), a.flushes.as_ref());
    json!({
        "util_pct": a.util_pct.map(figure),
        "aqu_sz": a.aqu_sz.map(figure),
        "r_s": rate(reads.requests),
        "rmib_s": mib_s(reads),
        "r_await_ms": reads.await_ms().map(figure),
        "rareq_kb": reads.request_kb().map(figure),
        "rrqm_s": rate(reads.merges),
        "w_s": rate(writes.requests),
        "wmib_s": mib_s(writes),
        "w_await_ms": writes.await_ms().map(figure),
        "wareq_kb": writes.request_kb().map(figure),
        "wrqm_s": rate(writes.merges),
        "d_s": discards.and_then(|d| rate(d.requests)),
        "dmib_s": discards.and_then(mib_s),
        "d_await_ms": discards.and_then(Traffic::await_ms).map(figure),
        "dareq_kb": discards.and_then(Traffic::request_kb).map(figure),
        "drqm_s": discards.and_then(|d| rate(d.merges)),
        "f_s": flushes.and_then(|f| rate(f.requests)),
        "f_await_ms": flushes.and_then(Traffic::await_ms).map(figure),
    })
}
