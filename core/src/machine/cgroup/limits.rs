//! What a group may take at most. A group is held to its own limits and to those of all groups above it.

use std::fs;

use super::place::{Hierarchy, Version};
use crate::machine::device::{DeviceNumber, Roots, text};

/// Each limit on I/O: its key in `io.max`, its file in version 1, what it limits, and if it counts bytes.
const KINDS: [(&str, &str, &str, bool); 4] = [
    ("rbps", "blkio.throttle.read_bps_device", "reads", true),
    ("riops", "blkio.throttle.read_iops_device", "reads", false),
    ("wbps", "blkio.throttle.write_bps_device", "writes", true),
    ("wiops", "blkio.throttle.write_iops_device", "writes", false),
];

/// A sentence for each limit on the I/O of the device of this name.
pub(super) fn io_sentences(io: &Hierarchy, device: DeviceNumber, name: &str) -> Vec<String> {
    let sentence = |(key, file, what, is_bytes)| {
        let of_level = |directory| match io.version {
            Version::V2 => Some((of_io_max(&text(directory, "io.max")?, device, key)?, "io.max")),
            Version::V1 => Some((line(&text(directory, file)?, device)?.trim().parse().ok()?, file)),
        };
        let limits = io.levels.iter().filter_map(|directory| of_level(directory));
        let (limit, file) = limits.min_by_key(|(limit, _)| *limit)?;
        let limit =
            if is_bytes { format!("{}/s", size(limit)) } else { format!("{limit} requests a second") };
        Some(format!("the cgroup of the server limits {what} of {name} to {limit} ({file})"))
    };
    KINDS.into_iter().filter_map(sentence).collect()
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
        let is_cpu = |line: &&str| {
            line.strip_prefix("cpu")
                .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
        };
        let cpus = stat.lines().filter(is_cpu).count() as u32;
        let meminfo = fs::read_to_string(roots.proc.join("meminfo")).unwrap_or_default();
        let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.strip_suffix("kB"));
        let kb: Option<u64> = total.and_then(|kb| kb.trim().parse().ok());
        Self { cpus: (cpus > 0).then_some(cpus), memory_bytes: kb.map(|kb| kb.saturating_mul(1024)) }
    }
}

/// The CPU time that the group gets, if that is less than the machine has.
pub(super) fn cpu_sentence(cpu: &Hierarchy, machine: &MachineSize) -> Option<String> {
    let number = |text: Option<String>| text?.parse::<f64>().ok();
    let of_level = |directory| -> Option<f64> {
        let (quota, period) = match cpu.version {
            Version::V2 => {
                let text = text(directory, "cpu.max")?;
                let (quota, period) = text.split_once(' ')?;
                (quota.parse().ok()?, period.trim().parse().ok()?)
            }
            // Without a quota it is -1.
            Version::V1 => {
                (number(text(directory, "cpu.cfs_quota_us"))?, number(text(directory, "cpu.cfs_period_us"))?)
            }
        };
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    };
    let cpus = cpu.levels.iter().filter_map(|directory| of_level(directory)).reduce(f64::min)?;
    if machine.cpus.is_some_and(|all| cpus >= f64::from(all)) {
        return None;
    }
    let file = if cpu.version == Version::V2 { "cpu.max" } else { "cpu.cfs_quota_us" };
    let of = machine.cpus.map(|all| format!(" of {all}")).unwrap_or_default();
    let cpus = (cpus * 100.0).round() / 100.0;
    Some(format!("the cgroup of the server limits its CPU time to {cpus}{of} CPUs ({file})"))
}

/// The memory that the group gets, if that is less than the machine has: the page cache is part of it.
pub(super) fn memory_sentence(memory: &Hierarchy, machine: &MachineSize) -> Option<String> {
    let files: &[&'static str] = match memory.version {
        Version::V2 => &["memory.max", "memory.high"],
        Version::V1 => &["memory.limit_in_bytes"],
    };
    let of_file = |directory, file| Some((text(directory, file)?.parse::<u64>().ok()?, file));
    let (bytes, file) = memory
        .levels
        .iter()
        .flat_map(|directory| files.iter().filter_map(move |&file| of_file(directory, file)))
        .min_by_key(|(bytes, _)| *bytes)?;
    // No limit is a number of nearly 2^63 in version 1, the word `max` in version 2.
    if bytes >= machine.memory_bytes.unwrap_or(1 << 62) {
        return None;
    }
    Some(format!(
        "the cgroup of the server limits its memory, page cache included, to {} ({file})",
        size(bytes)
    ))
}
