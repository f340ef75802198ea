//! The timed scan.

use crate::function::OptionName::{
    self, MaxBytes, MaxIops, MaxMibS, MaxP99, MaxUtilPct, Precision, StartBlk, Wait,
};
use crate::function::{Function, MEASURE, Returns, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{ActivityColumns, CaveatColumns, IntervalColumns, PlaceColumns, TierColumns};
use crate::value::{Text, Timestamp};

row! {
    /// one path
    row SeqscanRow "seqscan" everyday [
        path, mib_s, block_us, err_pct, shared_pct, os_pct, device_pct, relid, doubt
    ] {
        /// direct: by O_DIRECT, with several large requests in flight; server: as a sequential scan of the
        /// server; os: through the OS cache, one block per call
        path: &'static str,
        /// MiB per second while the scan read blocks with data; NULL if a rate limit made it pause
        mib_s: Option<f64>,
        /// us per block; NULL if mib_s is NULL. Of more than 20 slices of time (1 ms or more), the first does
        /// not count
        block_us: Option<f64>,
        /// Number of blocks read, including holes (blocks never written)
        blks: u64,
        /// Was everything read? If not, column notes says why
        complete: bool,
        /// true: no block was in the OS cache before the scan, nor (where path is server) in shared buffers
        cold: Option<bool>,
        /// Elapsed time in ms, with pauses of a rate limit, without the eviction
        elapsed_ms: Option<f64>,
        /// Where path is server: blocks found in shared buffers; NULL for temporary tables
        shared_blks_hit: Option<i64>,
        /// Where path is server: blocks read into shared buffers; NULL for temporary tables
        shared_blks_read: Option<i64>,
        /// Where path is server: dirty shared buffers written to make room for the blocks read
        shared_blks_written: Option<u64>,
        /// Blocks of a temporary table found in the session's own buffers; only where path is server
        local_blks_hit: Option<i64>,
        /// Blocks of a temporary table read into the session's own buffers; only where path is server
        local_blks_read: Option<i64>,
        /// Blocks read that had been in the OS cache before the scan. Holes do not count
        os_blks_cached: Option<u64>,
        /// Holes: blocks never written (where path is server: and not in shared buffers). They are read, but
        /// the rate does not count them
        hole_blks: Option<u64>,
        /// backend: device_bytes counts reads of this process; io_workers: also all reads of the I/O workers,
        /// for all sessions
        device_source: Option<&'static str>,
        /// Blocks of the relation
        blks_total: u64,
        /// Size of the requests in kB; NULL if the server decides
        chunk_kb: Option<u64>,
        /// Requests in flight; NULL if the server decides
        depth: Option<u32>,
        /// pread: one read at a time; io_uring, threads: several at a time. Where path is server: ReadBuffer,
        /// PrefetchBuffer or a read stream
        engine: Option<Text>,
        /// When the call started; if it has several paths, when this path started
        started_at: Timestamp,
        ..place: PlaceColumns,
        ..caveats: CaveatColumns,
        ..interval: IntervalColumns,
        ..tiers: TierColumns,
        ..activity: ActivityColumns,
    }
}

/// Its options.
pub const OPTIONS: &[OptionName] =
    &[MaxBytes, MaxIops, MaxMibS, MaxUtilPct, MaxP99, Precision, Wait, StartBlk];

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "seqscan",
    arguments: &[
        required("rel", "regclass"),
        optional("paths", "text[]", "'{direct,server,os}'"),
        optional("duration", "text", "NULL"),
        optional("cold", "boolean", "false"),
        optional("depth", "integer", "NULL"),
        optional("chunk_kb", "integer", "NULL"),
        options(OPTIONS),
    ],
    returns: Returns::Rows(&SeqscanRow::TYPE, 3),
    comment: "\
        Times a scan of a relation on up to three paths. Shows which tier (shared buffers, OS cache, device) \
        served the blocks, and what the devices did. By default each path lasts at most \
        pg_io_probe.row_duration and reads at most pg_io_probe.default_max_bytes. cold => true evicts the \
        relation first; it needs EXECUTE on io_probe_evict. Needs EXECUTE, and SELECT or MAINTAIN on the \
        relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait, start_blk",
    example: "'public.probed', duration => '9 ms', cold => true",
    ..MEASURE
}];
