//! Facts about the running server.

use std::ffi::CStr;
use std::path::PathBuf;
use std::time::Duration;

use io_probe_core::machine::account::{Account, Workers};
use io_probe_surface::value::Timestamp;
use pgrx::pg_sys;

use crate::pg::backend::encoding::{text, text_or_none};
use crate::pg::backend::names::{self, from_own};
use crate::pg::compat;
pub(crate) use crate::pg::compat::{RESTORES_STATISTICS, TELLS_LOCAL_TIME};

/// When the present top-level statement started, in the server's microseconds.
pub(crate) fn statement_start() -> i64 {
    // SAFETY: reads a variable of this backend.
    unsafe { pg_sys::GetCurrentStatementStartTimestamp() }
}

/// The present time, in the server's microseconds.
pub(crate) fn moment() -> pg_sys::TimestampTz {
    // SAFETY: reads the clock.
    unsafe { pg_sys::GetCurrentTimestamp() }
}

pub(crate) fn present() -> Timestamp {
    Timestamp(moment())
}

/// The present time as the server prints it, in the session's time zone.
pub(crate) fn now() -> String {
    // SAFETY: the result is a static buffer, copied at once.
    unsafe { text(pg_sys::timestamptz_to_str(moment())) }
}

/// A moment in microseconds since 1970 began (UTC).
pub(crate) fn timestamp_of_unix(moment_us: i64) -> Timestamp {
    const DAYS: u32 = pg_sys::POSTGRES_EPOCH_JDATE - pg_sys::UNIX_EPOCH_JDATE;
    Timestamp(moment_us.saturating_sub(i64::from(DAYS) * 86_400_000_000))
}

/// The settings below this prefix belong to the extension: a misspelt one is an error.
pub(crate) fn reserve_setting_prefix(prefix: &'static CStr) {
    // SAFETY: a static C string.
    unsafe { pg_sys::MarkGUCPrefixReserved(prefix.as_ptr()) };
}

/// The present value of a setting; None when this server has no such setting.
pub(crate) fn setting(name: &CStr) -> Option<String> {
    // SAFETY: the name is a C string; a missing setting is allowed, a restricted one as well.
    unsafe { text_or_none(pg_sys::GetConfigOption(name.as_ptr(), true, false)) }
}

/// The value of a setting that is a number, in its own unit; None where this server has no such setting.
pub(crate) fn number<T: std::str::FromStr>(name: &CStr) -> Option<T> {
    setting(name)?.parse().ok()
}

pub(crate) fn data_directory() -> PathBuf {
    // SAFETY: set once at server start, never freed.
    unsafe { compat::path(pg_sys::DataDir) }
}

/// The major version of the server, such as 18.
pub(crate) fn major_version() -> i32 {
    (pg_sys::PG_VERSION_NUM / 10_000) as i32
}

/// Is this a standby, or a server that is recovering?
pub(crate) fn in_recovery() -> bool {
    // SAFETY: reads shared state.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// Does the server read data files past the OS page cache?
pub(crate) fn reads_direct() -> bool {
    io_direct("data").unwrap_or(false)
}

/// Does `debug_io_direct` name this kind of file? None where there is no such setting, before 16.
pub(in crate::pg) fn io_direct(wanted: &str) -> Option<bool> {
    let kinds = setting(c"debug_io_direct")?;
    Some(kinds.split(',').any(|kind| kind.trim().trim_matches('"').eq_ignore_ascii_case(wanted)))
}

pub(crate) fn reads_by_workers() -> bool {
    setting(c"io_method").as_deref() == Some("worker")
}

pub(crate) fn reads_by_io_uring() -> bool {
    setting(c"io_method").as_deref() == Some("io_uring")
}

/// The processes that read for this backend when it reads through the buffer manager: from 18 on, the
/// server's I/O workers may.
pub(crate) fn read_account() -> Account {
    if !reads_by_workers() {
        return Account::Own;
    }
    // In milliseconds. On 18 there is no such setting, and no worker ends by itself.
    let idle = number(c"io_worker_idle_timeout").map(Duration::from_millis);
    let block = pg_sys::BLCKSZ.into();
    Account::With(Workers { pids: io_workers, idle: idle.unwrap_or(Duration::MAX), block })
}

/// Lets the next look at other processes and at statistics show the present state: the server keeps what it
/// has shown until the transaction ends.
pub(in crate::pg) fn look_anew() {
    // SAFETY: throws away this process's own copies.
    unsafe { pg_sys::pgstat_clear_snapshot() };
}

/// The process that all others of the server are children of.
pub(crate) fn postmaster() -> i32 {
    // SAFETY: a variable of this process.
    unsafe { pg_sys::PostmasterPid }
}

/// The processes that read for all backends.
pub(crate) fn io_workers() -> Vec<i32> {
    backends().filter(|b| compat::is_io_worker(b)).map(|b| b.st_procpid).collect()
}

/// Does `work` with the rights of this user, and with those only. After an ERROR, the end of the transaction,
/// or of a subtransaction that begins before, puts the user back.
pub(in crate::pg) fn as_user<T>(user: pg_sys::Oid, work: impl FnOnce() -> T) -> T {
    let (mut before, mut context) = (pg_sys::InvalidOid, 0);
    let restricted = pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
    // SAFETY: reads and sets variables of this backend, and sets them back.
    unsafe {
        pg_sys::GetUserIdAndSecContext(&mut before, &mut context);
        pg_sys::SetUserIdAndSecContext(user, context | restricted);
    }
    let result = work();
    // SAFETY: as above.
    unsafe { pg_sys::SetUserIdAndSecContext(before, context) };
    result
}

/// Do sessions like this one load the library when they begin?
pub(crate) fn preloads_library() -> bool {
    let settings = [c"session_preload_libraries", c"shared_preload_libraries"].map(setting);
    settings.iter().flatten().any(|libraries| libraries.contains("pg_io_probe"))
}

pub(crate) fn shared_buffers() -> f64 {
    // SAFETY: set at server start.
    f64::from(unsafe { pg_sys::NBuffers })
}

/// Most shared buffers that the scans of a process may hold, where they run ahead (from 18 on).
pub(crate) fn most_pinned() -> Option<u64> {
    compat::most_pinned()
}

/// How many kB a sequential scan of this server reads at a time, where it may be more than a block (from 17
/// on).
pub(crate) fn scan_read_kb() -> Option<u64> {
    // From 18 on this caps the other one without a word.
    let most = number(c"io_max_combine_limit").unwrap_or(u64::MAX);
    Some(number::<u64>(c"io_combine_limit")?.min(most) * u64::from(pg_sys::BLCKSZ) / 1024)
}

/// How a sequential scan of this server reads.
pub(crate) fn read_method() -> String {
    with_io_method(compat::READ_METHOD)
}

/// How this server fetches single blocks with `depth` reads ahead.
pub(crate) fn fetch_method(depth: u32) -> String {
    if depth == 1 { "ReadBuffer".to_owned() } else { with_io_method(compat::PREFETCH_METHOD) }
}

fn with_io_method(method: &str) -> String {
    let io_method = setting(c"io_method").map(|method| format!(", {method}"));
    method.to_owned() + &io_method.unwrap_or_default()
}

/// May the caller execute the extension's function of this name? It is found through the extension itself,
/// not through search_path.
pub(crate) fn may_execute(name: &str) -> bool {
    let query = format!(
        "SELECT true FROM {} AND p.proname = $1::text AND has_function_privilege(p.oid, 'EXECUTE')",
        from_own("pg_proc", "p")
    );
    !names::rows::<bool>(&query, &[name.into()]).is_empty()
}

pub(crate) fn is_superuser() -> bool {
    // SAFETY: a lookup in the catalogs.
    unsafe { pg_sys::superuser() }
}

/// Process numbers of all backends and auxiliary processes, as of now.
pub(crate) fn pids() -> impl Iterator<Item = i32> {
    backends().map(|entry| entry.st_procpid)
}

/// Status entries of all backends and auxiliary processes, as of now.
pub(in crate::pg) fn backends() -> impl Iterator<Item = &'static pg_sys::PgBackendStatus> {
    // SAFETY: throws away this transaction's copy of the entries, so that the next look is a new one.
    let count = unsafe {
        pg_sys::pgstat_clear_backend_activity_snapshot();
        pg_sys::pgstat_fetch_stat_numbackends()
    };
    (1..=count).filter_map(compat::backend_entry)
}
