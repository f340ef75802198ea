//! The devices while the database works, as iostat shows them.

use crate::function::OptionName::{self, Device};
use crate::function::{Function, Group, Returns, Who, optional, options};
use crate::row::{Row, row};
use crate::shared::CaveatColumns;
use crate::value::{Text, Timestamp};

row! {
    /// one device in one interval
    row IostatRow "iostat" everyday [
        sample, device, util_pct, aqu_sz, r_s, rmib_s, r_await_ms, wmib_s, w_await_ms, doubt
    ] {
        /// End of the interval
        sampled_at: Option<Timestamp>,
        /// Kernel name of the device, such as vda; NULL if no block device is known
        device: Option<Text>,
        /// Percent of the interval with at least one request in flight; it may read up to 102, since the
        /// kernel's clock is coarse. A device that serves requests in parallel is not saturated at 100
        util_pct: Option<f64>,
        /// Mean number of requests queued or in flight
        aqu_sz: Option<f64>,
        /// Reads completed per second
        r_s: Option<f64>,
        /// MiB (2^20 bytes) read per second
        rmib_s: Option<f64>,
        /// Mean time from queueing to completion of a read, in ms; NULL without reads
        r_await_ms: Option<f64>,
        /// Mean size of a read in kB of 1,024 bytes; NULL without reads
        rareq_kb: Option<f64>,
        /// Reads merged into queued ones per second
        rrqm_s: Option<f64>,
        /// Writes completed per second
        w_s: Option<f64>,
        /// MiB (2^20 bytes) written per second
        wmib_s: Option<f64>,
        /// Mean time from queueing to completion of a write, in ms; NULL without writes
        w_await_ms: Option<f64>,
        /// Mean size of a write in kB of 1,024 bytes; NULL without writes
        wareq_kb: Option<f64>,
        /// Writes merged into queued ones per second
        wrqm_s: Option<f64>,
        /// Discards completed per second; NULL before Linux 4.18
        d_s: Option<f64>,
        /// MiB (2^20 bytes) discarded per second
        dmib_s: Option<f64>,
        /// Mean time from queueing to completion of a discard, in ms; NULL without discards
        d_await_ms: Option<f64>,
        /// Mean size of a discard in kB of 1,024 bytes; NULL without discards
        dareq_kb: Option<f64>,
        /// Discards merged into queued ones per second
        drqm_s: Option<f64>,
        /// Flushes completed per second; NULL before Linux 5.5
        f_s: Option<f64>,
        /// Mean time from queueing to completion of a flush, in ms; NULL without flushes
        f_await_ms: Option<f64>,
        /// Percent of the machine's CPU time in user code, niced processes and guests included. This and the
        /// next four columns add up to 100
        cpu_user_pct: Option<f64>,
        /// Percent of the machine's CPU time in the kernel, interrupts included
        cpu_system_pct: Option<f64>,
        /// Percent of the machine's CPU time that was idle with I/O outstanding: a hint, not a measure of
        /// storage
        cpu_iowait_pct: Option<f64>,
        /// Percent of the machine's CPU time that was idle without I/O outstanding
        cpu_idle_pct: Option<f64>,
        /// Percent of the machine's CPU time that the hypervisor gave to others
        cpu_steal_pct: Option<f64>,
        /// Percent of the interval in which at least one task of the machine waited for I/O (some of
        /// /proc/pressure/io); NULL if the kernel does not tell
        io_pressure_pct: Option<f64>,
        /// Percent of the interval in which all tasks that had work waited for I/O (full of
        /// /proc/pressure/io); NULL if the kernel does not tell
        io_pressure_full_pct: Option<f64>,
        /// Part of rmib_s that the server's cgroup read; NULL without a cgroup that counts I/O
        cgroup_rmib_s: Option<f64>,
        /// Part of wmib_s that the server's cgroup wrote; NULL without a cgroup that counts I/O
        cgroup_wmib_s: Option<f64>,
        /// Number of the interval, from 1
        sample: Option<u32>,
        /// How long the interval really lasted, in ms
        elapsed_ms: Option<f64>,
        ..caveats: CaveatColumns,
    }
}

/// Its options.
pub const OPTIONS: &[OptionName] = &[Device];

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "iostat",
    calls: None,
    arguments: &[optional("every", "text", "'1 s'"), optional("count", "integer", "1"), options(OPTIONS)],
    returns: Returns::Rows(&IostatRow::TYPE, 10),
    group: Group::Look,
    who: Who::Monitor,
    comment: "\
        Watches devices for count intervals, as iostat -x does, with CPU use and I/O pressure: the \
        devices behind the tablespaces, the WAL and temporary files, or the one that option device \
        names. The first row is the first interval, never the time since boot. Reads /proc and /sys, and \
        causes no I/O. Takes no lock, so it runs beside a probe. pg_monitor may call it. Options: device",
    example: "'10 ms'",
    errors: &[],
}];
