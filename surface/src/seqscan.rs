//! The timed scan.

use crate::function::OptionName::{
    self, MaxBytes, MaxIops, MaxMibS, MaxP99, MaxUtilPct, Precision, StartBlk, Wait,
};
use crate::function::{Function, Group, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{ActivityColumns, CaveatColumns, IntervalColumns, PlaceColumns, TierColumns};
use crate::value::{Text, Timestamp};

row! {
    /// one path
    row SeqscanRow "seqscan" everyday [
        path, mib_s, block_us, err_pct, shared_pct, os_pct, device_pct, relid, doubt
    ] {
        /// direct: O_DIRECT with large requests, several in flight; server: through the buffer manager, as
        /// the server scans; os: through the OS page cache, one block per call
        path: &'static str,
        /// MiB (2^20 bytes) per second while reading, of the blocks that hold data; NULL if a rate limit made
        /// the scan pause
        mib_s: Option<f64>,
        /// Microseconds per block: total time divided by total blocks; NULL if mib_s is. A run is timed in
        /// slices of 1 ms or more; if it has more than 20, the first is left out as warm-up
        block_us: Option<f64>,
        /// Blocks read, including blocks that were never written (hole_blks)
        blks: u64,
        /// Was everything read up to the end of the relation? If not, a note says what ended the scan
        complete: bool,
        /// true: verified that none of the blocks read was in the OS page cache before, nor on path server in
        /// shared buffers. NULL if the kernel does not tell, or if no block held data
        cold: Option<bool>,
        /// Wall-clock time of the scan in ms, including pauses of a rate limit and blocks that were never
        /// written, without the time to evict or to write back
        elapsed_ms: Option<f64>,
        /// Path server: blocks found in shared buffers; NULL for other paths and temporary tables
        shared_blks_hit: Option<i64>,
        /// Path server: blocks read into shared buffers; NULL for other paths and temporary tables
        shared_blks_read: Option<i64>,
        /// Path server: dirty pages of shared buffers (for a temporary table: of the session's own buffers)
        /// that had to be written to make room; NULL for other paths
        shared_blks_written: Option<u64>,
        /// Path server, temporary table: blocks found in the session's own buffers; else NULL
        local_blks_hit: Option<i64>,
        /// Path server, temporary table: blocks read into the session's own buffers; else NULL
        local_blks_read: Option<i64>,
        /// Blocks of the range read that the OS page cache held before the scan, without blocks that were
        /// never written; NULL if the kernel does not tell
        os_blks_cached: Option<u64>,
        /// Blocks that were never written to the file (path server: and are in no buffer). They are read, but
        /// left out of the rate
        hole_blks: Option<u64>,
        /// Whose reads device_bytes counts: backend (this process alone) or io_workers (from PostgreSQL 18
        /// on: all that the I/O workers read, for other sessions too)
        device_source: Option<&'static str>,
        /// Blocks of the fork
        blks_total: u64,
        /// Size of the requests in kB; NULL if the server decides
        chunk_kb: Option<u64>,
        /// Requests in flight; NULL if the server decides
        depth: Option<u32>,
        /// How the reads were issued. pread: one at a time; io_uring, threads: several at a time. Path
        /// server: ReadBuffer (one block at a time) or a read stream (several), from PostgreSQL 18 on with
        /// the server's io_method
        engine: Option<Text>,
        /// Fork of the relation: main, fsm, vm or init
        fork: &'static str,
        /// When the scan on this path started
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
    calls: None,
    arguments: &[
        required("rel", "regclass"),
        optional("paths", "text[]", "'{direct,server,os}'"),
        optional("duration", "text", "NULL"),
        optional("cold", "boolean", "false"),
        optional("depth", "integer", "NULL"),
        optional("chunk_kb", "integer", "NULL"),
        optional("fork", "text", "'main'"),
        options(OPTIONS),
    ],
    returns: Returns::Rows(&SeqscanRow::TYPE, 3),
    group: Group::Measure,
    who: Who::Owner,
    comment: "\
            Times a scan of a relation on up to three paths, one row each, with the tier that served the \
            blocks and what the devices did. The paths share the duration; without a duration each path \
            lasts at most pg_io_probe.row_duration. Each path reads at most max_bytes (default \
            pg_io_probe.default_max_bytes). Evicts nothing unless cold is true, which needs EXECUTE on \
            io_probe_evict. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, \
            max_iops, max_mib_s, max_util_pct, max_p99, precision, wait, start_blk",
    example: "'public.probed', duration => '9 ms', cold => true",
    errors: &[],
}];
