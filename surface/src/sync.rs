//! What a sync costs: pg_test_fsync's table and the WAL's own pattern, on a scratch file.

use crate::function::OptionName::{
    self, CommitBytes, CommitDelay, Direct, MaxBytes, MaxIops, MaxMibS, MaxP99, MaxUtilPct, Precision, Wait,
};
use crate::function::{FILES, Function, Group, Returns, Who, optional, options};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, IntervalColumns};
use crate::value::{Json, Text, Timestamp};

row! {
    /// one way to make writes durable
    row SyncRow "sync" everyday [
        section, method, direct, write_kb, ops_s, err_pct, p50_us, p99_us, in_use, doubt
    ] {
        /// one_write, two_writes: so many writes, then a sync; open_sync_size: 16 kB in 1 to 16 synchronous
        /// writes; other_fd: synced through the same descriptor or another; no_sync: a write alone (these are
        /// of pg_test_fsync, and write one place again and again); wal_segment: on through a zero-filled
        /// segment, as the server does
        section: &'static str,
        /// As in wal_sync_method (open_datasync: O_DSYNC; open_sync: O_SYNC), or the system calls
        method: &'static str,
        /// Write calls per operation
        writes: u32,
        /// Size of each write in kB; at a depth over 1 the WAL of each commit, or one WAL block with option
        /// commit_bytes
        write_kb: u32,
        /// Operations (writes and their sync) a second; at a depth over 1 commits. NULL under a rate limit
        ops_s: Option<f64>,
        /// Mean us of an operation; at a depth over 1, elapsed time over all commits
        op_us: Option<f64>,
        /// Median in us; at a depth over 1, how long a committer waited. NULL with fewer than 20 operations
        p50_us: Option<f64>,
        /// 95th percentile in us; NULL with fewer than 200
        p95_us: Option<f64>,
        /// 99th percentile in us; NULL with fewer than 1,000
        p99_us: Option<f64>,
        /// Operations in each range of latencies that has some: {low_us, high_us, count}, each range 1.19
        /// times the last
        histogram: Option<Json>,
        /// Longest operation in us
        max_us: Option<f64>,
        /// Does this server sync its WAL in just this way (wal_sync_method, O_DIRECT)? NULL in
        /// open_sync_size, other_fd and no_sync
        in_use: Option<bool>,
        /// Was the file opened with O_DIRECT?
        direct: bool,
        /// Operations, without the first of each turn (warm-up)
        ops: u64,
        /// Committers that share one WAL. One does not flush if another's flush has covered its WAL
        depth: u32,
        /// Syncs that made them durable; by the open methods each write is one
        flushes: u64,
        /// Writes of the device per operation, for all processes; many kernels count a flush as one more
        device_writes_per_op: Option<f64>,
        /// Cache flushes of the device per operation, for all processes; 0 without a volatile cache, or if
        /// writes pass it (FUA)
        device_flushes_per_op: Option<f64>,
        /// Time of the operations in ms
        elapsed_ms: Option<f64>,
        /// Devices behind the directory
        device: Option<Text>,
        /// I/O scheduler of the devices behind the directory
        scheduler: Option<Text>,
        /// write back: the device has a volatile cache, which a sync must flush; write through: it has none,
        /// or says so
        write_cache: Option<Text>,
        /// Can a single write pass the device's volatile cache (Force Unit Access)?
        fua: Option<bool>,
        /// Type of the file system
        fs_type: Option<Text>,
        /// Directory of the scratch file, symbolic links resolved
        directory: Option<Text>,
        /// When the call, or this path of it, started
        started_at: Timestamp,
        ..caveats: CaveatColumns,
        ..interval: IntervalColumns,
    }
}

/// Its options.
pub const OPTIONS: &[OptionName] =
    &[CommitBytes, CommitDelay, Direct, MaxBytes, MaxIops, MaxMibS, MaxUtilPct, MaxP99, Precision, Wait];

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "sync",
    calls: None,
    arguments: &[
        optional("spcname", "text", "NULL"),
        optional("sections", "text[]", "NULL"),
        optional("duration", "text", "NULL"),
        optional("depth", "integer", "1"),
        optional("write_kb", "integer", "NULL"),
        options(OPTIONS),
    ],
    returns: Returns::Rows(&SyncRow::TYPE, 40),
    group: Group::Measure,
    who: Who::Owner,
    comment: "\
            Times writes and syncs of a scratch file beside the WAL, or in tablespace spcname. While it \
            runs, commits of other sessions wait. By default a row for each wal_sync_method, with writes of \
            one WAL block. sections => '{wal_segment}' adds larger writes, '{all}' the sections of \
            pg_test_fsync, with writes of write_kb (by default a WAL block). depth over 1: that many \
            committers share one WAL (section wal_segment). Needs EXECUTE, and CREATE on a tablespace other \
            than the database's own. Options: commit_bytes (WAL of a commit, which may then share a block \
            with others; depth over 1), commit_delay (microseconds, by default as this server; depth over \
            1), direct (wal_segment with or without O_DIRECT, by default as this server), max_bytes, \
            max_iops, max_mib_s, max_util_pct (these four limit what is made durable, not no_sync), max_p99, \
            precision, wait",
    example: "'pg_default', '{no_sync}', '1 ms'",
    errors: &[FILES],
}];
