//! The devices while the database works, as iostat shows them.

use crate::function::OptionName::{self, Device};
use crate::function::{Function, LOOK, Returns, optional, options};
use crate::row::{Row, row};
use crate::shared::CaveatColumns;
use crate::value::{Text, Timestamp};

row! {
    /// one device in one interval
    row IostatRow "iostat" everyday [
        sample, device, util_pct, aqu_sz, r_s, rmib_s, r_await_ms, wmib_s, w_await_ms, doubt
    ] {
        /// When the interval ended
        sampled_at: Option<Timestamp>,
        /// Kernel name of the device, such as vda; NULL if none is known
        device: Option<Text>,
        /// Percent of the interval with a request in flight (up to 102, since the kernel's clock is coarse).
        /// Even at 100, a device that serves many requests at a time may have reserves
        util_pct: Option<f64>,
        /// Mean number of requests queued or in flight
        aqu_sz: Option<f64>,
        /// Reads completed per second
        r_s: Option<f64>,
        /// MiB read per second
        rmib_s: Option<f64>,
        /// Mean ms of a read, queueing included
        r_await_ms: Option<f64>,
        /// Mean size of a read in kB
        rareq_kb: Option<f64>,
        /// Reads merged into queued reads per second
        rrqm_s: Option<f64>,
        /// Writes completed per second
        w_s: Option<f64>,
        /// MiB written per second
        wmib_s: Option<f64>,
        /// Mean ms of a write
        w_await_ms: Option<f64>,
        /// Mean size of a write in kB
        wareq_kb: Option<f64>,
        /// Writes merged into queued writes per second
        wrqm_s: Option<f64>,
        /// Discards completed per second; NULL before Linux 4.18
        d_s: Option<f64>,
        /// MiB discarded per second
        dmib_s: Option<f64>,
        /// Mean ms of a discard
        d_await_ms: Option<f64>,
        /// Mean size of a discard in kB
        dareq_kb: Option<f64>,
        /// Discards merged into queued discards per second
        drqm_s: Option<f64>,
        /// Flushes completed per second; NULL before Linux 5.5
        f_s: Option<f64>,
        /// Mean ms of a flush
        f_await_ms: Option<f64>,
        /// Percent of the machine's CPU time in user code, with nice processes and guests. The five cpu_
        /// columns add up to 100
        cpu_user_pct: Option<f64>,
        /// Percent of the CPU time in the kernel, with interrupts
        cpu_system_pct: Option<f64>,
        /// Percent of the CPU time that was idle while I/O was in flight: a hint, not a measure of storage
        cpu_iowait_pct: Option<f64>,
        /// Percent of the CPU time that was idle without I/O in flight
        cpu_idle_pct: Option<f64>,
        /// Percent of the CPU time that the hypervisor gave to others
        cpu_steal_pct: Option<f64>,
        /// Percent of the interval in which a task waited for I/O (some of /proc/pressure/io)
        io_pressure_pct: Option<f64>,
        /// Percent of the interval in which all tasks that had work waited for I/O (full of
        /// /proc/pressure/io)
        io_pressure_full_pct: Option<f64>,
        /// Number of the interval, from 1
        sample: Option<u32>,
        /// Measured length of the interval in ms
        elapsed_ms: Option<f64>,
        ..caveats: CaveatColumns,
    }
}

/// Its options.
pub const OPTIONS: &[OptionName] = &[Device];

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "iostat",
    arguments: &[optional("every", "text", "'1 s'"), optional("count", "integer", "1"), options(OPTIONS)],
    returns: Returns::Rows(&IostatRow::TYPE, 10),
    comment: "\
        Watches devices as iostat -x does, and shows CPU use and I/O pressure. Arguments: every: length of \
        an interval; count: how many. It watches the devices behind the tablespaces, the WAL and temporary \
        files, or only the one in option device. The first row is the first interval, not the time since \
        boot. Causes no I/O, and may run while a probe runs. pg_monitor may call it. Options: device",
    example: "'10 ms'",
    ..LOOK
}];
