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
        /// direct: O_DIRECT, large requests, several in flight; server: as the server scans; os: through the
        /// OS cache, one block per call
        path: &'static str,
        /// MiB a second while reading blocks that hold data; NULL if a rate limit made the scan pause
        mib_s: Option<f64>,
        /// us per block; NULL if mib_s is. Of more than 20 slices (1 ms or more) the first is left out as
        /// warm-up
        block_us: Option<f64>,
        /// Blocks read, with holes
        blks: u64,
        /// Was everything read? If not, a note says why
        complete: bool,
        /// true: verified that no block was in the OS cache before, nor (path server) in shared buffers
        cold: Option<bool>,
        /// Wall clock in ms, with pauses of a rate limit, without evicting
        elapsed_ms: Option<f64>,
        /// Path server: blocks found in shared buffers; else NULL, as for temporary tables
        shared_blks_hit: Option<i64>,
        /// Path server: blocks read into shared buffers; else NULL
        shared_blks_read: Option<i64>,
        /// Path server: dirty buffers written to make room; else NULL
        shared_blks_written: Option<u64>,
        /// Path server, temporary table: blocks found in the session's own buffers
        local_blks_hit: Option<i64>,
        /// Path server, temporary table: blocks read into the session's own buffers
        local_blks_read: Option<i64>,
        /// Blocks read that the OS cache held before the scan, without holes
        os_blks_cached: Option<u64>,
        /// Holes: blocks never written (path server: nor in a buffer), read, but left out of the rate
        hole_blks: Option<u64>,
        /// Whose reads device_bytes counts: backend (this process) or io_workers (for all sessions)
        device_source: Option<&'static str>,
        /// Blocks of the fork
        blks_total: u64,
        /// Size of the requests in kB; NULL if the server decides
        chunk_kb: Option<u64>,
        /// Requests in flight; NULL if the server decides
        depth: Option<u32>,
        /// pread: one read at a time; io_uring, threads: several. Path server: ReadBuffer, PrefetchBuffer or
        /// a read stream
        engine: Option<Text>,
        /// Fork of the relation: main, fsm, vm or init
        fork: &'static str,
        /// When the call, or this path of it, started
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
        Times a scan of a relation on up to three paths, with the tier that served the blocks and what the \
        devices did. By default each path lasts at most pg_io_probe.row_duration and reads at most \
        pg_io_probe.default_max_bytes. Evicts nothing unless cold is true, which needs EXECUTE on \
        io_probe_evict. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, max_iops, \
        max_mib_s, max_util_pct, max_p99, precision, wait, start_blk",
    example: "'public.probed', duration => '9 ms', cold => true",
    errors: &[],
}];
