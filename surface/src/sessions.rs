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
        /// Process; NULL in the last rows of an interval
        pid: Option<i32>,
        /// Whose it is: role@database of a session, the leader of a parallel worker, else its kind. io
        /// worker: what the I/O workers read and no session was seen to wait for. ended: processes that ended
        /// meanwhile. Then, without a pid, what makes the sum that of the devices: outside this server (what
        /// they read for no process of this server), and kept in the OS cache (below 0: writes of this server
        /// that have not reached the devices yet) or out of the OS cache (what they wrote beyond these)
        process: Text,
        /// MiB per second that were fetched from the devices for it, by the I/O workers as well
        rmib_s: Option<f64>,
        /// MiB per second that it read and that the OS page cache served; NULL in the last rows, and with
        /// io_method io_uring, whose reads are in no account of calls
        os_mib_s: Option<f64>,
        /// MiB per second that it wrote to the OS page cache: they reach the device later, or never, if the
        /// file is deleted before
        wmib_s: Option<f64>,
        /// MiB per second of WAL that it wrote; NULL before PostgreSQL 18, if it had nothing to do when the
        /// interval began, and while it is not known: the server counts it when a transaction has ended, at
        /// most once a second
        wal_mib_s: Option<f64>,
        /// What it waited for at the end of the interval, as pg_stat_activity.wait_event; NULL if for
        /// nothing, or if the caller may not see it
        wait: Option<Text>,
        /// The start of its query, up to 32 characters on one line, as far as pg_stat_activity shows it to
        /// the caller; NULL if it has none
        query: Option<Text>,
        /// As pg_stat_activity.backend_type; hidden if the caller may not see it; in the last rows as process
        kind: Text,
        /// Role, NULL for processes without
        usename: Option<Text>,
        /// Database, NULL for processes without
        datname: Option<Text>,
        /// As pg_stat_activity.application_name
        application_name: Option<Text>,
        /// Leader of a parallel worker, beside which it stands
        leader_pid: Option<i32>,
        /// State as in pg_stat_activity: active, idle and so on
        state: Option<Text>,
        /// The file, and the blocks of it, that the I/O workers were last seen to read for it; NULL if none
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
        greatest first, and two rows for what else the devices moved: all rows together are what the \
        devices did. Reads /proc, and causes no I/O. Takes no lock, so it runs beside a probe. pg_monitor \
        may call it",
    example: "'10 ms'",
    errors: &[],
}];
