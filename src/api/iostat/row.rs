//! The row of one device in one interval.

use io_probe_core::machine::device::{Activity, BlockDevice, Traffic};
use io_probe_core::machine::iostat::{DeviceSample, IntervalCounts, Sample, SnapshotSeries};
use io_probe_core::run::budget::Stop;
use io_probe_core::run::memory;
use serde_json::{Value, json};

use super::Watched;
use crate::api::row::{Row, UTIL_DOUBTFUL, ms};
use crate::call::arguments::figure;
use crate::error::Result;
use crate::pg::backend::interrupts;
use crate::pg::backend::server;

/// The rows of a run, by interval, then by device. Only the last interval says that a run was stopped.
pub(super) fn of_series(watched: &Watched, series: &SnapshotSeries, stop: Option<Stop>) -> Result<Vec<Row>> {
    let samples = series.samples()?;
    let mut rows = memory::list_of(samples.len() * watched.rows_a_sample())?;
    for (number, sample) in (1..).zip(&samples) {
        interrupts::check();
        let devices = watched.watch.devices().iter().zip(&sample.devices);
        rows.extend(
            devices.map(|(device, seen)| of_device(of_sample(number, sample), sample, device.name(), seen)),
        );
        if sample.devices.is_empty() {
            let mut row = of_sample(number, sample);
            row.caveats.refuse("no block device is known behind the server's directories");
            row.caveats.notes.extend_from_slice(&watched.notes);
            rows.push(row);
        }
    }
    if let Some(stop) = stop {
        let last = rows.len().saturating_sub(watched.rows_a_sample());
        for Row { caveats, .. } in &mut rows[last..] {
            // A row without figures is not a partial one: it keeps its status.
            match caveats.is_ok() {
                true => caveats.stopped(stop),
                false => caveats.note(stop.to_string()),
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
    Ok(rows)
}

/// The rows of a call that came too late to begin: one for each device, or one without.
pub(super) fn not_begun(watched: &Watched, why: Stop) -> Vec<Row> {
    let mut blank = now();
    blank.caveats.not_begun(why);
    let of_device = |device: &BlockDevice| blank.clone().with(json!({"device": device.name()}));
    match watched.watch.devices() {
        [] => vec![blank],
        devices => devices.iter().map(of_device).collect(),
    }
}

/// A row without figures.
pub(super) fn now() -> Row {
    Row::default().with(json!({"sampled_at": server::now()}))
}

/// Notes the limits that the cgroup sets, in the first interval; those on a device in its row.
fn note_limits(watched: &Watched, rows: &mut [Row]) {
    for (device, row) in watched.watch.devices().iter().zip(&mut *rows) {
        row.caveats.notes.extend(watched.watch.limits_of(device));
    }
    if let Some(first) = rows.first_mut() {
        first.caveats.notes.extend(watched.watch.limits());
    }
}

/// A row of a sample, with what the machine did.
fn of_sample(number: u64, sample: &Sample) -> Row {
    Row::default().with(of_machine(sample)).with(json!({
        "sampled_at": server::timestamp_of_unix(sample.ended_us),
        "sample": number,
        "elapsed_ms": ms(sample.length_ns),
    }))
}

/// The same with what a device did.
fn of_device(mut row: Row, sample: &Sample, device: &str, seen: &DeviceSample) -> Row {
    let mib_s = |bytes: u64| {
        (sample.length_ns > 0)
            .then(|| figure(bytes as f64 * 1e9 / sample.length_ns as f64 / f64::from(1 << 20)))
    };
    row.set(json!({
        "device": device,
        "cgroup_rmib_s": seen.cgroup.and_then(|moved| mib_s(moved.read_bytes)),
        "cgroup_wmib_s": seen.cgroup.and_then(|moved| mib_s(moved.written_bytes)),
    }));
    match &seen.requests {
        IntervalCounts::Activity(activity) => {
            row.set(of_requests(activity));
            if activity.util_is_doubtful() {
                row.caveats.note(UTIL_DOUBTFUL);
            }
        }
        IntervalCounts::Backwards => {
            row.caveats.void("a counter went backwards: another device has this name now")
        }
        IntervalCounts::Gone => row.caveats.void("the device or its counters were not there all the time"),
        IntervalCounts::Nothing => {
            row.caveats.refuse("the device has no counters: /sys hides them, or queue/iostats is 0");
        }
    }
    row
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
