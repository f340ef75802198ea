//! Who uses storage now.

use crate::function::{Function, Group, Returns, Who, optional};
use crate::row::{Row, row};
use crate::value::{Text, Timestamp};

row! {
    /// one process of the server that moved bytes in one interval; then what else the devices moved
    row SessionRow "sessions" everyday [
        pid, process, rmib_s, os_mib_s, wmib_s, wal_mib_s, wait, query
    ] {
        /// Number of the interval, from 1
        sample: u32,
        /// Process; NULL in the rows for what else the devices moved
        pid: Option<i32>,
        /// role@database of a session, the leader of a parallel worker, else the kind. io worker: what I/O
        /// workers read while no session was seen to wait. ended: ended meanwhile. Without pid: outside this
        /// server (read for others), kept in the OS cache (written here, not yet on a device) or out
        /// of the OS cache (written by the devices beyond these)
        process: Text,
        /// MiB a second fetched from the devices for it, by I/O workers as well
        rmib_s: Option<f64>,
        /// MiB a second that it read from the OS cache; NULL with io_method io_uring, which no account counts
        os_mib_s: Option<f64>,
        /// MiB a second that it wrote to the OS cache: they reach the device later, or never
        wmib_s: Option<f64>,
        /// MiB a second of WAL, counted at the end of a transaction, at most once a second; NULL before
        /// PostgreSQL 18, if it was idle when the interval began, and while unknown
        wal_mib_s: Option<f64>,
        /// wait_event of pg_stat_activity at the end of the interval
        wait: Option<Text>,
        /// Start of its query, 32 characters on one line
        query: Option<Text>,
        /// backend_type of pg_stat_activity; hidden if the caller may not see it
        kind: Text,
        /// Role
        usename: Option<Text>,
        /// Database
        datname: Option<Text>,
        /// As pg_stat_activity.application_name
        application_name: Option<Text>,
        /// Leader of a parallel worker
        leader_pid: Option<i32>,
        /// State as in pg_stat_activity: active, idle and so on
        state: Option<Text>,
        /// File and blocks that the I/O workers were last seen to read for it
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
    calls: None,
    arguments: &[optional("every", "text", "'1 s'"), optional("count", "integer", "1")],
    returns: Returns::Rows(&SessionRow::TYPE, 20),
    group: Group::Look,
    who: Who::Monitor,
    comment: "\
        Which processes of this server use storage, one row for each that moved bytes in an interval, the \
        greatest first, then two rows for what else the devices moved. Causes no I/O, and runs beside a \
        probe. pg_monitor may call it",
    example: "'10 ms'",
    errors: &[],
}];
