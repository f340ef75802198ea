//! What devices and processors did, interval by interval, as iostat -x shows it.
//!
//! A [`Watch`] takes [`CounterSnapshot`]s of counters that the kernel keeps anyway; the difference of two
//! that follow each other in a run is a [`Sample`].
//!
//! # Limitations and caveats
//! - What holds for the counters of [`device`](crate::machine::device), of [`cpu`](crate::machine::cpu) and
//!   of [`pressure`](crate::machine::pressure) holds here.
//! - The figures are everyone's.
//! - The files of one snapshot are read one after the other, some 0.1 ms in all: in intervals of a few
//!   milliseconds the figures of one row fit each other less well.
//!
//! Source: iostat(1) and `iostat.c` of sysstat, whose formulas these are.

mod series;

#[cfg(test)]
mod tests;

use std::time::{SystemTime, UNIX_EPOCH};

pub use series::sample;

use crate::machine::cgroup::Cgroup;
use crate::machine::cpu::{CpuShares, CpuTimes};
use crate::machine::device::{Activity, BlockDevice, Counters, Roots};
use crate::machine::pressure::{Pressure, PressureShares};
use crate::run::clock::{Clock, Monotonic};

/// What is looked at: devices, the machine and a control group.
#[derive(Debug, Clone)]
pub struct Watch {
    devices: Vec<BlockDevice>,
    cgroup: Cgroup,
    roots: Roots,
}

/// The counters as one look found them.
#[derive(Debug, Clone)]
pub struct CounterSnapshot {
    /// When, in nanoseconds of [`Monotonic`].
    at: u64,
    /// When, in microseconds since 1970 began (UTC).
    moment_us: i64,
    cpu: Option<CpuTimes>,
    pressure: Option<Pressure>,
    devices: Box<[Option<Counters>]>,
}

/// What happened between two looks.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When it ended, in microseconds since 1970 began (UTC).
    pub ended_us: i64,
    /// How long it lasted, in nanoseconds.
    pub length_ns: u64,
    /// What the processors did; `None` where the kernel does not tell, or without a tick of its clock in
    /// between.
    pub cpu: Option<CpuShares>,
    /// How much was waited for I/O; `None` where the kernel does not tell.
    pub pressure: Option<PressureShares>,
    /// What each device did, in the order of the [`Watch`].
    pub devices: Vec<IntervalCounts>,
}

/// What the counters of a device say of an interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum IntervalCounts {
    /// What it did.
    Activity(Activity),
    /// A counter went backwards.
    Backwards,
    /// It has counters at one end of the interval only, or had some before.
    Gone,
    /// It has no counters.
    Nothing,
}

impl Watch {
    /// A watch of these devices, in this order.
    pub fn new(devices: Vec<BlockDevice>, roots: Roots) -> Self {
        Self { devices, cgroup: Cgroup::find(&roots), roots }
    }

    /// The devices.
    pub fn devices(&self) -> &[BlockDevice] {
        &self.devices
    }

    /// A sentence for each limit of the cgroup on the I/O of a device.
    pub fn limits_of(&self, device: &BlockDevice) -> Vec<String> {
        device
            .number_in_cgroups()
            .map(|number| self.cgroup.device_notes(device.name(), number))
            .unwrap_or_default()
    }

    /// A sentence for each other limit of the cgroup.
    pub fn limits(&self) -> Vec<String> {
        self.cgroup.notes()
    }

    /// Looks now.
    pub fn look(&self) -> CounterSnapshot {
        let at = Monotonic.now();
        let devices = self.devices.iter().map(BlockDevice::counters).collect();
        let cpu = CpuTimes::read(&self.roots);
        let pressure = Pressure::read(&self.roots);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        CounterSnapshot {
            at,
            moment_us: i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX),
            cpu,
            pressure,
            devices,
        }
    }
}

impl CounterSnapshot {
    /// What happened since `earlier`. `known` says of each device whether it ever had counters.
    fn since(&self, earlier: &CounterSnapshot, known: &[bool]) -> Sample {
        let length_ns = self.at.saturating_sub(earlier.at);
        let pressure = self.pressure.zip(earlier.pressure);
        let devices = self.devices.iter().zip(&earlier.devices).zip(known);
        Sample {
            ended_us: self.moment_us,
            length_ns,
            cpu: self.cpu.zip(earlier.cpu).and_then(|(now, before)| now.since(&before)),
            pressure: pressure.and_then(|(now, before)| now.since(&before, length_ns)),
            devices: devices.map(|((now, before), known)| counts(*now, *before, length_ns, *known)).collect(),
        }
    }
}

/// What a device did in an interval of this length, by its counters at the end and at the start of it.
/// `is_known`: it has had counters, at the start or before.
fn counts(now: Option<Counters>, before: Option<Counters>, length_ns: u64, is_known: bool) -> IntervalCounts {
    match (now, before) {
        (Some(now), Some(before)) => now
            .since(&before, length_ns as f64 / 1e6)
            .map_or(IntervalCounts::Backwards, IntervalCounts::Activity),
        (None, None) if !is_known => IntervalCounts::Nothing,
        _ => IntervalCounts::Gone,
    }
}
