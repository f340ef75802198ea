//! What a sync costs: pg_test_fsync's table and the WAL's own pattern, on a scratch file.

use crate::function::OptionName::{
    self, CommitBytes, CommitDelay, Direct, MaxBytes, MaxIops, MaxMibS, MaxP99, MaxUtilPct, Precision, Wait,
};
use crate::function::{FILES, Function, MEASURE, Returns, optional, options};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, IntervalColumns};
use crate::value::{Json, Text, Timestamp};

row! {
    /// one method of writing and syncing
    row SyncRow "sync" everyday [
        section, method, direct, write_kb, ops_s, err_pct, p50_us, p99_us, in_use, doubt
    ] {
        /// What is written. wal_segment: forward through a zero-filled segment, as the server writes WAL. All
        /// others are sections of pg_test_fsync, which overwrite the same blocks. one_write, two_writes: one
        /// or two writes, then a sync. open_sync_size: 16 kB in 1 to 16 synchronous writes. other_fd: a sync
        /// through the descriptor of the write, or another one. no_sync: a write without a sync
        section: &'static str,
        /// Value of wal_sync_method (open_datasync: O_DSYNC; open_sync: O_SYNC), or the system calls
        method: &'static str,
        /// Write calls per operation
        writes: u32,
        /// Size of each write in kB. At a depth over 1: kB of WAL per commit; with option commit_bytes, size
        /// of a WAL block
        write_kb: u32,
        /// Operations per second. An operation is the writes and their sync. At a depth over 1: commits per
        /// second. NULL under a rate limit
        ops_s: Option<f64>,
        /// Mean us of an operation. At a depth over 1: elapsed time divided by the number of commits
        op_us: Option<f64>,
        /// Median time of an operation in us; at a depth over 1, median wait of a committer. NULL with fewer
        /// than 20 operations
        p50_us: Option<f64>,
        /// 95th percentile in us; NULL with fewer than 200 operations
        p95_us: Option<f64>,
        /// 99th percentile in us; NULL with fewer than 1,000 operations
        p99_us: Option<f64>,
        /// Number of operations in each latency range, in the form of histogram of io_probe_depth
        histogram: Option<Json>,
        /// Longest operation in us
        max_us: Option<f64>,
        /// Does this server sync its WAL with this method and this value of direct? NULL in sections
        /// open_sync_size, other_fd and no_sync
        in_use: Option<bool>,
        /// Was the file opened with O_DIRECT?
        direct: bool,
        /// Number of operations, without the first of each turn (warm-up)
        ops: u64,
        /// Number of committers that share one WAL. A committer does not flush if the flush of another one
        /// has covered its WAL
        depth: u32,
        /// Number of syncs. With the open methods each write counts as a sync
        flushes: u64,
        /// Writes of the device, from all processes, per operation. Many kernels count a flush as another
        /// write
        device_writes_per_op: Option<f64>,
        /// Cache flushes of the device, from all processes, per operation. 0 without a volatile cache, or if
        /// writes bypass it (FUA)
        device_flushes_per_op: Option<f64>,
        /// Total time of the operations in ms
        elapsed_ms: Option<f64>,
        /// Devices behind the directory
        device: Option<Text>,
        /// I/O scheduler of the devices behind the directory
        scheduler: Option<Text>,
        /// write back: the device has a volatile cache, which a sync must flush; write through: it has none,
        /// or reports none
        write_cache: Option<Text>,
        /// Can a single write bypass the device's volatile cache (Force Unit Access)?
        fua: Option<bool>,
        /// Type of the file system
        fs_type: Option<Text>,
        /// Directory of the scratch file, symbolic links resolved
        directory: Option<Text>,
        /// When the call started; if it has several paths, when this path started
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
    arguments: &[
        optional("spcname", "text", "NULL"),
        optional("sections", "text[]", "NULL"),
        optional("duration", "text", "NULL"),
        optional("depth", "integer", "1"),
        optional("write_kb", "integer", "NULL"),
        options(OPTIONS),
    ],
    returns: Returns::Rows(&SyncRow::TYPE, 40),
    comment: "\
        Times writes and syncs of a scratch file in the folder of the WAL, or in tablespace spcname. While \
        it runs, commits of other sessions wait for its syncs. By default there is a row for each \
        wal_sync_method, with writes of one WAL block. sections => '{wal_segment}' adds larger writes. \
        '{all}' adds the sections of pg_test_fsync; write_kb sets the size of their writes (by default a WAL \
        block). A depth over 1 is the number of committers that share one WAL (section wal_segment). Needs \
        EXECUTE, and CREATE on the tablespace if it is not the database's default. Options: commit_bytes \
        (bytes of WAL per commit, so that several commits may share a block; needs a depth over 1), \
        commit_delay (microseconds, by default as on this server; needs a depth over 1), direct (whether \
        wal_segment is written by O_DIRECT, by default as on this server), max_bytes, max_iops, max_mib_s, \
        max_util_pct (these four do not limit section no_sync), max_p99, precision, wait",
    example: "'pg_default', '{no_sync}', '1 ms'",
    errors: &[FILES],
    ..MEASURE
}];
