//! What pg_stat_activity shows the caller, and what the I/O workers read for whom.

use io_probe_core::machine::handed_reads::OpenRead;
use serde::Deserialize;

use crate::pg::backend::{names, server};
use crate::pg::compat::BACKEND_WAL;

/// The kind of a process that the caller may not see.
pub(crate) const HIDDEN: &str = "hidden";

/// A process of the server.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ServerProcess {
    pub(crate) pid: i32,
    /// When it began: another process may get its number later. None if the caller may not see it.
    pub(crate) began: Option<String>,
    pub(crate) kind: String,
    /// Bytes of WAL so far, where the server counts them.
    pub(crate) wal_bytes: Option<f64>,
}

/// What a process does.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Activity {
    pub(crate) pid: i32,
    pub(crate) began: Option<String>,
    pub(crate) usename: Option<String>,
    pub(crate) datname: Option<String>,
    pub(crate) application_name: Option<String>,
    pub(crate) leader_pid: Option<i32>,
    pub(crate) state: Option<String>,
    pub(crate) wait: Option<String>,
    pub(crate) query: Option<String>,
}

/// All processes that there are now. What the view joins is left out: there may be thousands.
pub(crate) fn processes() -> Vec<ServerProcess> {
    server::look_anew();
    let query = format!(
        "SELECT json_build_object('pid', pid, 'began', backend_start, \
         'kind', coalesce(backend_type, '{HIDDEN}'), 'wal_bytes', {BACKEND_WAL}) \
         FROM pg_stat_get_activity(NULL)"
    );
    names::rows(&query, &[])
}

/// What these processes do, as they were seen last.
pub(crate) fn activities(pids: &[i32]) -> Vec<Activity> {
    let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
    let query = format!(
        "SELECT json_build_object('pid', pid, 'began', backend_start, \
         'usename', usename, 'datname', datname, 'application_name', nullif(application_name, ''), \
         'leader_pid', leader_pid, 'state', state, 'wait', wait_event, \
         'query', left(regexp_replace(btrim(left(query, 200)), '\\s+', ' ', 'g'), 24)) \
         FROM pg_stat_activity WHERE pid = ANY ('{{{}}}')",
        pids.join(",")
    );
    names::rows(&query, &[])
}

/// A read that an I/O worker does, or has done, for a process.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct HandedRead {
    pub(crate) pid: i32,
    #[serde(flatten)]
    pub(crate) read: OpenRead,
    pub(crate) file: Option<String>,
}

/// The reads that the server's processes have handed over, and not taken back yet. None where the caller may
/// not see them, or there are no I/O workers.
pub(crate) fn handed_reads() -> Vec<HandedRead> {
    let query = "SELECT json_build_object('pid', pid, 'handle', io_id, 'generation', io_generation, \
                 'bytes', length, 'in_flight', state = 'SUBMITTED', 'file', target_desc) \
                 FROM pg_aios WHERE NOT f_sync AND operation = 'readv' AND length > 0";
    names::rows(query, &[])
}

/// May the caller see what other processes read?
pub(crate) fn sees_reads() -> bool {
    let query = "SELECT pg_has_role('pg_read_all_stats', 'USAGE')";
    names::rows(query, &[]).into_iter().next().unwrap_or(false)
}
