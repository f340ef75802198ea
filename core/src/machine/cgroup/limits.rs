//! What a group may take at most. A group is held to its own limits and to those of all groups above it; in
//! version 1 those on I/O are its own alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use super::place::{Hierarchy, Version};
use crate::machine::device::{Activity, DeviceNumber, Roots, text};

/// Each limit on I/O: its key in `io.max`, its file in version 1, what it limits, and if it counts bytes.
const KINDS: [(&str, &str, &str, bool); 4] = [
    ("rbps", "blkio.throttle.read_bps_device", "reads", true),
    ("riops", "blkio.throttle.read_iops_device", "reads", false),
    ("wbps", "blkio.throttle.write_bps_device", "writes", true),
    ("wiops", "blkio.throttle.write_iops_device", "writes", false),
];

/// A limit on the I/O of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoLimit {
    is_of_reads: bool,
    is_of_bytes: bool,
    /// Bytes or requests a second.
    per_second: u64,
    /// The limit as a sentence.
    pub sentence: String,
}

/// A limit held back what came to this share of it. It counts requests before they are merged, and what goes
/// on between two looks has its pauses.
const NEAR_REQUESTS: f64 = 0.5;
const NEAR_BYTES: f64 = 0.7;

/// Least share of what a device moved that is ours: a limit on what others do holds nothing of ours back.
const OWN_SHARE: f64 = 0.1;

/// A limit lets through what it allows for so long at once, and then nothing for as long. Some kernels do so
/// every 20 ms on disks that do not turn, of which this is a whole number. Source: `throtl_slice` of the
/// kernel's `block/blk-throttle.c`.
pub const BURSTS_EVERY: Duration = Duration::from_millis(100);

impl IoLimit {
    /// Is it one of reads?
    pub fn is_of_reads(&self) -> bool {
        self.is_of_reads
    }

    /// Did it hold us back meanwhile, by the device's own counters? Of the bytes that it moved, `own` are
    /// ours, if that is known.
    pub fn held_back(&self, activity: &Activity, own: Option<u64>) -> bool {
        let traffic = if self.is_of_reads { &activity.reads } else { &activity.writes };
        let amount = if self.is_of_bytes { traffic.bytes } else { traffic.requests };
        // No more than one burst has waited for nothing.
        if amount <= self.burst() {
            return false;
        }
        let is_ours = own.is_none_or(|own| own as f64 >= OWN_SHARE * traffic.bytes as f64);
        let rates = activity.per_second(traffic.requests).zip(activity.per_second(traffic.bytes));
        is_ours && rates.is_some_and(|(requests, bytes)| self.is_near(requests, bytes))
    }

    /// Do so many requests and bytes a second come near it?
    pub fn is_near(&self, requests: f64, bytes: f64) -> bool {
        let limit = self.per_second as f64;
        if self.is_of_bytes { bytes >= NEAR_BYTES * limit } else { requests >= NEAR_REQUESTS * limit }
    }

    /// Bytes or requests that it lets through at once.
    fn burst(&self) -> u64 {
        (self.per_second as f64 * BURSTS_EVERY.as_secs_f64()).max(1.0) as u64
    }

    /// Bytes that it lets through at once, in requests of this size.
    pub fn burst_bytes(&self, request: u64) -> u64 {
        self.burst().saturating_mul(if self.is_of_bytes { 1 } else { request })
    }
}

/// The tightest limit of each kind on the I/O of the device of this name.
pub(super) fn of_device(io: &Hierarchy, device: DeviceNumber, name: &str) -> Vec<IoLimit> {
    let mut found = Vec::new();
    // Version 1 holds a group to its own limits alone.
    let levels = match io.version {
        Version::V1 => &io.levels[..io.levels.len().min(1)],
        Version::V2 => &io.levels[..],
    };
    for (key, file, what, is_of_bytes) in KINDS {
        let limits = levels.iter().filter_map(|directory| match io.version {
            Version::V2 => Some((of_io_max(&text(directory, "io.max")?, device, key)?, "io.max")),
            Version::V1 => Some((line(&text(directory, file)?, device)?.trim().parse().ok()?, file)),
        });
        let Some((per_second, file)) = limits.min_by_key(|(limit, _)| *limit) else { continue };
        let limit = if is_of_bytes {
            format!("{}/s", size(per_second))
        } else {
            format!("{per_second} requests per second")
        };
        let sentence = format!("the cgroup of the server limits {what} of {name} to {limit} ({file})");
        found.push(IoLimit { is_of_reads: what == "reads", is_of_bytes, per_second, sentence });
    }
    found
}

/// What a file says of a device, whose number starts its line.
fn line(text: &str, device: DeviceNumber) -> Option<&str> {
    let device = device.to_string();
    text.lines().find_map(|line| line.strip_prefix(&*device)?.strip_prefix(' '))
}

/// The limit of this key: `254:0 rbps=2097152 wbps=max riops=max wiops=120`.
pub(super) fn of_io_max(text: &str, device: DeviceNumber, key: &str) -> Option<u64> {
    line(text, device)?
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
}

/// Bytes as a person reads them.
fn size(bytes: u64) -> String {
    let (unit, name) = if bytes < 1 << 20 { (1 << 10, "kB") } else { (1 << 20, "MiB") };
    let count = bytes as f64 / f64::from(unit);
    let text = if count < 10.0 { format!("{count:.2}") } else { format!("{count:.1}") };
    format!("{} {name}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// What the machine has; `None` where the kernel does not tell.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MachineSize {
    cpus: Option<u32>,
    memory_bytes: Option<u64>,
}

impl MachineSize {
    pub fn read(roots: &Roots) -> Self {
        let stat = fs::read_to_string(roots.proc.join("stat")).unwrap_or_default();
        let numbers = stat.lines().filter_map(|line| line.strip_prefix("cpu"));
        let cpus = numbers.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())).count() as u32;
        let meminfo = fs::read_to_string(roots.proc.join("meminfo")).unwrap_or_default();
        let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.strip_suffix("kB"));
        let kb: Option<u64> = total.and_then(|kb| kb.trim().parse().ok());
        Self { cpus: (cpus > 0).then_some(cpus), memory_bytes: kb.map(|kb| kb.saturating_mul(1024)) }
    }
}

/// The CPU time that the group gets, if that is less than the machine has.
pub(super) fn cpu_sentence(cpu: &Hierarchy, machine: &MachineSize) -> Option<String> {
    let cpus = cpu.levels.iter().filter_map(|level| cpus_of(level, cpu.version)).reduce(f64::min)?;
    if machine.cpus.is_some_and(|all| cpus >= f64::from(all)) {
        return None;
    }
    let file = if cpu.version == Version::V2 { "cpu.max" } else { "cpu.cfs_quota_us" };
    let of = machine.cpus.map(|all| format!(" of {all}")).unwrap_or_default();
    let cpus = (cpus * 100.0).round() / 100.0;
    Some(format!("the cgroup of the server limits its CPU time to {cpus}{of} CPUs ({file})"))
}

/// CPUs that one group may use; None without a limit.
fn cpus_of(directory: &Path, version: Version) -> Option<f64> {
    let (quota, period): (f64, f64) = match version {
        Version::V2 => {
            let text = text(directory, "cpu.max")?;
            let (quota, period) = text.split_once(' ')?;
            (quota.parse().ok()?, period.trim().parse().ok()?)
        }
        // Without a quota it is -1.
        Version::V1 => (number(directory, "cpu.cfs_quota_us")?, number(directory, "cpu.cfs_period_us")?),
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Periods of a quota of CPU time, and in how many of them it was used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaPeriods {
    /// Periods in which the group ran.
    pub all: u64,
    /// Those in which it had to wait for the next one.
    pub used_up: u64,
}

impl QuotaPeriods {
    /// Those since `earlier`; none if they went backwards.
    pub fn since(self, earlier: Self) -> Self {
        let [all, used_up] = [(self.all, earlier.all), (self.used_up, earlier.used_up)]
            .map(|(now, before)| now.saturating_sub(before));
        Self { all, used_up }
    }

    /// These and later ones.
    pub fn then(self, later: Self) -> Self {
        let [all, used_up] = [(self.all, later.all), (self.used_up, later.used_up)]
            .map(|(one, other)| one.saturating_add(other));
        Self { all, used_up }
    }

    /// Was it used up in over a tenth of them?
    pub fn is_short(self) -> bool {
        self.used_up.saturating_mul(10) > self.all
    }
}

/// The directories of those that have a quota, of the group and of each above it.
pub(super) fn with_quota(cpu: &Hierarchy) -> Vec<PathBuf> {
    cpu.levels.iter().filter(|level| cpus_of(level, cpu.version).is_some()).cloned().collect()
}

impl QuotaPeriods {
    /// Those so far of the group of this directory.
    pub(super) fn of(directory: &Path) -> Self {
        Self::parse(&text(directory, "cpu.stat").unwrap_or_default())
    }

    /// The text of `cpu.stat`, of which both versions have these lines.
    pub(super) fn parse(text: &str) -> Self {
        let count = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
        };
        Self { all: count("nr_periods").unwrap_or(0), used_up: count("nr_throttled").unwrap_or(0) }
    }
}

fn number<T: FromStr>(directory: &Path, file: &str) -> Option<T> {
    text(directory, file)?.parse().ok()
}

/// The memory that the group gets, if that is less than the machine has: the page cache is part of it.
pub(super) fn memory_sentence(memory: &Hierarchy, machine: &MachineSize) -> Option<String> {
    let files: &[&'static str] = match memory.version {
        Version::V2 => &["memory.max", "memory.high"],
        Version::V1 => &["memory.limit_in_bytes"],
    };
    let limits = memory.levels.iter().flat_map(|directory| {
        files.iter().filter_map(move |file| Some((number::<u64>(directory, file)?, *file)))
    });
    let (bytes, file) = limits.min_by_key(|(bytes, _)| *bytes)?;
    // No limit is a number of nearly 2^63 in version 1, the word `max` in version 2.
    if bytes >= machine.memory_bytes.unwrap_or(1 << 62) {
        return None;
    }
    Some(format!(
        "the cgroup of the server limits its memory, page cache included, to {} ({file})",
        size(bytes)
    ))
}
