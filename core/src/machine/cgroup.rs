//! The control group that this process is in: what it has moved to and from devices, and what it may at most.
//!
//! A limit explains a rate that the device does not: a throttled volume looks like a slow one.
//! `/proc/self/cgroup` says where the process is in each hierarchy, `/proc/self/mountinfo` where the
//! hierarchies are mounted. Both versions are served, and a machine that has both: each controller is looked
//! for in version 1, then in 2.
//!
//! # Limitations and caveats
//! - The group is that of this process: all of the server, if it was started in a group of its own.
//! - Version 1 counts and limits direct I/O and reads; what the page cache writes back counts with the root.
//!   Some kernels count nothing there before there is a limit for the device.
//! - Version 2 counts for a group only if its parent enabled the controller `io` (systemd:
//!   `IOAccounting=yes`).
//! - A container sees its own group as the uppermost: limits above it stay out of sight.
//! - A limit on a device made of others (LVM, RAID) is not looked for, only those on the disks below it.
//! - `io.latency`, `io.cost` and weights hold a group back without a fixed limit: they are not shown.
//!
//! Sources: the kernel's `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/blkio-controller.rst`;
//! cgroups(7).

#[cfg(any(test, fuzzing))]
pub(crate) mod hostile;
mod limits;
mod place;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use crate::machine::device::{DeviceNumber, Roots, text as file};
pub use limits::{BURSTS_EVERY, IoLimit, QuotaPeriods};
use place::{Hierarchy, Version};

/// Where this process is, by controller; each may be missing.
#[derive(Debug, Clone)]
pub struct Cgroup {
    io: Option<Hierarchy>,
    cpu: Option<Hierarchy>,
    memory: Option<Hierarchy>,
    /// The directories of those groups, from its own up, that have a quota of CPU time.
    quotas: Vec<PathBuf>,
    /// CPUs and bytes of memory that the machine has: a limit beyond them limits nothing.
    machine: limits::MachineSize,
}

impl Cgroup {
    /// Finds the group. What the kernel does not show is missing, never an error.
    pub fn find(roots: &Roots) -> Self {
        let [io, cpu, memory] = place::find(["blkio", "cpu", "memory"], roots);
        let quotas = cpu.as_ref().map_or_else(Vec::new, limits::with_quota);
        Self { io, cpu, memory, quotas, machine: limits::MachineSize::read(roots) }
    }

    /// Whether the group's own I/O can be told from that of the whole machine: not in the uppermost group.
    pub fn counts_io(&self) -> bool {
        self.io.as_ref().is_some_and(|io| !io.is_root && traffic_text(io).is_some())
    }

    /// Version and path of the group that I/O is counted for, as a person reads it.
    pub fn io_path(&self) -> Option<String> {
        self.io.as_ref().map(Hierarchy::describe)
    }

    /// What the group has moved to and from each of these devices, in their order; `None` where that is
    /// unknown.
    pub fn moved(&self, devices: impl Iterator<Item = Option<DeviceNumber>>) -> Vec<Option<Moved>> {
        let io = self.io.as_ref().filter(|io| !io.is_root);
        let text = io.and_then(|io| Some((io.version, traffic_text(io)?)));
        devices
            .map(|number| {
                let (version, text) = text.as_ref()?;
                moved_of(*version, text, number?)
            })
            .collect()
    }

    /// The limits on this device: of each kind the tightest that holds for the group.
    pub fn io_limits(&self, name: &str, device: DeviceNumber) -> Vec<IoLimit> {
        self.io.iter().flat_map(|io| limits::of_device(io, device, name)).collect()
    }

    /// A sentence for each of these limits.
    pub fn device_notes(&self, name: &str, device: DeviceNumber) -> Vec<String> {
        self.io_limits(name, device).into_iter().map(|limit| limit.sentence).collect()
    }

    /// Periods of the quotas of CPU time so far, of the group and of those above it.
    pub fn quota_periods(&self) -> Vec<QuotaPeriods> {
        self.quotas.iter().map(|directory| QuotaPeriods::of(directory)).collect()
    }

    /// A sentence for each limit of CPU time and memory that is below what the machine has.
    pub fn notes(&self) -> Vec<String> {
        let cpu = self.cpu.as_ref().and_then(|cpu| limits::cpu_sentence(cpu, &self.machine));
        let memory = self.memory.as_ref().and_then(|memory| limits::memory_sentence(memory, &self.machine));
        cpu.into_iter().chain(memory).collect()
    }
}

/// Bytes since the group exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Read.
    pub read_bytes: u64,
    /// Written.
    pub written_bytes: u64,
}

impl Moved {
    /// What was moved since `earlier`; `None` if it went backwards.
    pub fn since(self, earlier: Moved) -> Option<Moved> {
        Some(Moved {
            read_bytes: self.read_bytes.checked_sub(earlier.read_bytes)?,
            written_bytes: self.written_bytes.checked_sub(earlier.written_bytes)?,
        })
    }
}

/// The text of the file with the group's counters; it is empty while nothing was moved.
fn traffic_text(hierarchy: &Hierarchy) -> Option<String> {
    let directory = hierarchy.levels.first()?;
    match hierarchy.version {
        Version::V2 => std::fs::read_to_string(directory.join("io.stat")).ok(),
        Version::V1 => file(directory, "blkio.throttle.io_service_bytes_recursive")
            .or_else(|| file(directory, "blkio.throttle.io_service_bytes")),
    }
}

/// A device's counters in that text. Version 2 leaves a device out that nothing was moved to or from; version
/// 1 may leave out one that it does not count.
fn moved_of(version: Version, text: &str, device: DeviceNumber) -> Option<Moved> {
    let device = device.to_string();
    match version {
        Version::V2 => {
            // Some kernels leave devices without counters on the line of the next one that has some.
            let words = text.lines().map(str::split_ascii_whitespace);
            let of_device = words.filter(|words| {
                words.clone().take_while(|word| !word.contains('=')).last() == Some(&*device)
            });
            let words: Vec<&str> = of_device.flatten().collect();
            let [read_bytes, written_bytes] = ["rbytes=", "wbytes="]
                .map(|name| words.iter().find_map(|word| word.strip_prefix(name)?.parse().ok()).unwrap_or(0));
            Some(Moved { read_bytes, written_bytes })
        }
        Version::V1 => {
            let [read_bytes, written_bytes] = [" Read ", " Write "].map(|name| {
                text.lines()
                    .find_map(|line| line.strip_prefix(&*device)?.strip_prefix(name)?.trim().parse().ok())
            });
            Some(Moved { read_bytes: read_bytes?, written_bytes: written_bytes? })
        }
    }
}
