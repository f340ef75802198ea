//! The control group that this process is in: what it may at most.
//!
//! A limit explains a rate that the device does not: a throttled volume looks like a slow one.
//! `/proc/self/cgroup` says where the process is in each hierarchy, `/proc/self/mountinfo` where the
//! hierarchies are mounted. Both versions are served, and a machine that has both: each controller is looked
//! for in version 1, then in 2.
//!
//! # Limitations and caveats
//! - The group is that of this process: all of the server, if it was started in a group of its own.
//! - Version 1 limits direct I/O and reads, not what the page cache writes back.
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

use crate::machine::device::{DeviceNumber, Roots};
pub use limits::{BURSTS_EVERY, IoLimit, QuotaPeriods};
use place::Hierarchy;

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
