//! Who uses storage now.

use crate::function::{Function, LOOK, Returns, optional};
use crate::row::{Row, row};
use crate::value::{Text, Timestamp};

row! {
    /// one process of the server that moved bytes in one interval; then what else the devices moved
    row SessionRow "sessions" everyday [
        pid, process, application_name, rmib_s, wmib_s, wal_mib_s, wait, query
    ] {
        /// Number of the interval, from 1
        sample: u32,
        /// Process id; NULL in a row of several processes
        pid: Option<i32>,
        /// role@database of a session; worker of PID for a parallel worker; else the kind of process. Rows
        /// without pid are: io worker (reads by I/O workers for which no session was seen to wait); NAME,
        /// ended (processes of this name that ended in the interval, until they were last seen); ended (the
        /// rest of what processes moved that ended); outside this server (device reads for none of the
        /// processes above); other writes (the devices wrote this much more than the processes: other
        /// programs write, or earlier writes leave the OS cache); still cached (the processes wrote this much
        /// more than the devices, which get it later)
        process: Text,
        /// MiB per second fetched from the devices for this process, also by I/O workers
        rmib_s: Option<f64>,
        /// MiB per second that the process read from the OS cache, also of what was read ahead in an earlier
        /// interval; NULL with io_method io_uring, since the kernel does not count these reads
        os_mib_s: Option<f64>,
        /// MiB per second that the process wrote to the OS cache. These bytes reach the device later, or
        /// never
        wmib_s: Option<f64>,
        /// MiB of WAL per second. The server counts WAL at the end of a transaction, at most once per second.
        /// NULL before PostgreSQL 18, if the process was idle when the interval began, or if unknown
        wal_mib_s: Option<f64>,
        /// wait_event of pg_stat_activity at the end of the interval
        wait: Option<Text>,
        /// First 24 characters of its query, on one line
        query: Option<Text>,
        /// backend_type of pg_stat_activity, ended (the process has ended), or hidden (the caller may not see
        /// it)
        kind: Text,
        /// Role
        usename: Option<Text>,
        /// Database
        datname: Option<Text>,
        /// application_name of pg_stat_activity
        application_name: Option<Text>,
        /// Leader of a parallel worker
        leader_pid: Option<i32>,
        /// State as in pg_stat_activity: active, idle and so on
        state: Option<Text>,
        /// File and blocks that I/O workers were last seen to read for the process
        file: Option<Text>,
        /// When the interval ended
        sampled_at: Timestamp,
        /// Length of the interval in ms
        elapsed_ms: f64,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "sessions",
    arguments: &[optional("every", "text", "'1 s'"), optional("count", "integer", "1")],
    returns: Returns::Rows(&SessionRow::TYPE, 20),
    comment: "\
        Shows which processes of this server use storage. There is a row for each process that moved bytes \
        in an interval, the largest amount first. Two more rows show what else the devices moved. Causes no \
        I/O, and may run while a probe runs. pg_monitor may call it",
    example: "'10 ms'",
    ..LOOK
}];
