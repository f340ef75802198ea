//! What a device did in one interval, as columns.

use io_probe_core::machine::device::{Activity, BlockDevice, Traffic};
use io_probe_core::machine::iostat::{IntervalCounts, Sample};
use io_probe_core::run::budget::Stop;
use io_probe_core::run::memory;
use io_probe_surface::iostat::IostatRow;

use super::Watched;
use crate::api::shared::{Caveats, UTIL_DOUBTFUL, ms};
use crate::call::figure;
use crate::error::Result;
use crate::pg::backend::{interrupts, server};

/// The rows of a run, by interval, then by device; without a device there is one for each interval.
pub(super) fn rows(watched: &Watched, samples: &[Sample], stop: Option<Stop>) -> Result<Vec<IostatRow>> {
    let mut rows = memory::list_of(samples.len() * watched.rows_a_sample())?;
    for (number, sample) in (1..).zip(samples) {
        interrupts::check();
        for index in 0..watched.rows_a_sample() {
            let device = watched.watch.devices().get(index).zip(sample.devices.get(index));
            let mut caveats = caveats(watched, device.map(|(_, seen)| seen));
            match stop.filter(|_| number == samples.len()) {
                Some(stop) if caveats.is_ok() => caveats.stopped(stop),
                // A row without figures is not a partial one: it keeps its status.
                Some(stop) => caveats.note(stop.to_string()),
                None => {}
            }
            if number == 1 {
                let limits = device.map(|(device, _)| watched.watch.limits_of(device));
                caveats.notes.extend(limits.unwrap_or_default());
            }
            if rows.is_empty() {
                caveats.notes.extend(watched.watch.limits());
            }
            rows.push(row(number as u32, sample, device, caveats));
        }
    }
    Ok(rows)
}

/// What speaks against the figures of a device; None if no device is known.
fn caveats(watched: &Watched, seen: Option<&IntervalCounts>) -> Caveats {
    let mut caveats = Caveats::default();
    match seen {
        Some(IntervalCounts::Activity(activity)) => {
            if activity.util_is_doubtful() {
                caveats.note(UTIL_DOUBTFUL);
            }
        }
        Some(IntervalCounts::Backwards) => {
            caveats.void("a counter went backwards: another device has this name now")
        }
        Some(IntervalCounts::Gone) => {
            caveats.void("the device or its counters were missing for a part of the time")
        }
        Some(IntervalCounts::Nothing) => {
            caveats.refuse("the device has no counters: /sys hides them, or queue/iostats is 0");
        }
        None => {
            caveats.refuse("no block device is known behind the server's directories");
            caveats.notes.extend_from_slice(&watched.notes);
        }
    }
    caveats
}

fn row(
    number: u32,
    sample: &Sample,
    device: Option<(&BlockDevice, &IntervalCounts)>,
    caveats: Caveats,
) -> IostatRow {
    let (device, seen) = device.unzip();
    let activity = match seen {
        Some(IntervalCounts::Activity(activity)) => Some(activity),
        _ => None,
    };
    let reads = activity.map(|a| Rates::of(&a.reads, a)).unwrap_or_default();
    let writes = activity.map(|a| Rates::of(&a.writes, a)).unwrap_or_default();
    let discards = activity.and_then(|a| Some(Rates::of(a.discards.as_ref()?, a))).unwrap_or_default();
    let flushes = activity.and_then(|a| Some(Rates::of(a.flushes.as_ref()?, a))).unwrap_or_default();
    let (cpu, pressure) = (sample.cpu.as_ref(), sample.pressure.as_ref());
    IostatRow {
        caveats: caveats.columns(),
        sampled_at: Some(server::timestamp_of_unix(sample.ended_us)),
        device: device.map(|device| device.name().to_owned().into()),
        util_pct: activity.and_then(|activity| activity.util_pct).map(figure),
        aqu_sz: activity.and_then(|activity| activity.aqu_sz).map(figure),
        r_s: reads.requests_s,
        rmib_s: reads.mib_s,
        r_await_ms: reads.await_ms,
        rareq_kb: reads.request_kb,
        rrqm_s: reads.merges_s,
        w_s: writes.requests_s,
        wmib_s: writes.mib_s,
        w_await_ms: writes.await_ms,
        wareq_kb: writes.request_kb,
        wrqm_s: writes.merges_s,
        d_s: discards.requests_s,
        dmib_s: discards.mib_s,
        d_await_ms: discards.await_ms,
        dareq_kb: discards.request_kb,
        drqm_s: discards.merges_s,
        f_s: flushes.requests_s,
        f_await_ms: flushes.await_ms,
        cpu_user_pct: cpu.map(|cpu| figure(cpu.user_pct)),
        cpu_system_pct: cpu.map(|cpu| figure(cpu.system_pct)),
        cpu_iowait_pct: cpu.map(|cpu| figure(cpu.iowait_pct)),
        cpu_idle_pct: cpu.map(|cpu| figure(cpu.idle_pct)),
        cpu_steal_pct: cpu.map(|cpu| figure(cpu.steal_pct)),
        io_pressure_pct: pressure.map(|pressure| figure(pressure.some_pct)),
        io_pressure_full_pct: pressure.and_then(|pressure| pressure.full_pct).map(figure),
        sample: Some(number),
        elapsed_ms: Some(ms(sample.length_ns)),
    }
}

/// Figures of one kind of requests.
#[derive(Default)]
struct Rates {
    requests_s: Option<f64>,
    mib_s: Option<f64>,
    await_ms: Option<f64>,
    request_kb: Option<f64>,
    merges_s: Option<f64>,
}

impl Rates {
    fn of(traffic: &Traffic, activity: &Activity) -> Self {
        Self {
            requests_s: activity.per_second(traffic.requests).map(figure),
            mib_s: activity.per_second(traffic.bytes).map(mib),
            await_ms: traffic.await_ms().map(figure),
            request_kb: traffic.request_kb().map(figure),
            merges_s: activity.per_second(traffic.merges).map(figure),
        }
    }
}

fn mib(bytes: f64) -> f64 {
    figure(bytes / f64::from(1 << 20))
}
