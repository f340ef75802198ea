//! Random fetches of single blocks.

use crate::function::{Function, Group, MEASURING, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{
    ActivityColumns, CaveatColumns, IntervalColumns, LatencyColumns, PlaceColumns, TierColumns,
};
use crate::value::{Text, Timestamp};

row! {
    /// one path
    row RandomRow "random" everyday [
        path, iops, err_pct, p50_us, p99_us, os_us, device_us, device_pct, relid, doubt
    ] {
        /// direct: O_DIRECT; server: through the buffer manager, into a small ring of buffers; os: pread
        /// through the OS page cache
        path: &'static str,
        /// Fetches per second of wall-clock time, without warm-up, holes and the time to fill and empty the
        /// queue. Under a rate limit: what the limit allowed
        iops: Option<f64>,
        /// Latency in microseconds that 99.9 % of the fetches did not exceed; NULL if fewer than ten fetches
        /// lie above it
        p999_us: Option<f64>,
        /// Greatest latency in microseconds
        max_us: Option<f64>,
        /// Blocks fetched, each at most once, including warm-up and blocks that were never written
        /// (hole_blks), which need no read
        blks: u64,
        /// Was every block of the relation fetched? If not, a note says what ended the run
        complete: bool,
        /// true: verified that no cache served a fetch, or (after cold => true) only with blocks that this
        /// run's own readahead had brought into the OS page cache. NULL if the kernel does not tell, or if no
        /// block held data
        cold: Option<bool>,
        /// Wall-clock time of the run in ms, including pauses and looks at the caches, without the time to
        /// evict and to write dirty pages back before
        elapsed_ms: Option<f64>,
        /// iops times the block size, in MiB (2^20 bytes) per second
        mib_s: Option<f64>,
        /// Mean latency in microseconds of the fetches that shared buffers served; NULL at a depth over 1
        shared_us: Option<f64>,
        /// Mean latency in microseconds of the fetches that the OS page cache served; NULL at a depth over 1,
        /// where a hit waits until it is seen
        os_us: Option<f64>,
        /// Mean latency in microseconds of the fetches that came from the device; NULL if there are none
        device_us: Option<f64>,
        /// Fetches that shared buffers (or the session's own buffers) served; NULL if unknown
        shared_blks_hit: Option<u64>,
        /// Fetches of blocks that were wholly in the OS page cache right before the fetch; NULL if unknown
        os_blks_hit: Option<u64>,
        /// Fetches that neither shared buffers nor the OS page cache served, without holes
        device_blks_read: Option<u64>,
        /// Path server: dirty pages of shared buffers (for a temporary table: of the session's own buffers)
        /// that had to be written to make room; NULL for other paths
        shared_blks_written: Option<u64>,
        /// Whose reads device_bytes counts: backend (this process alone) or io_workers (from PostgreSQL 18
        /// on: all that the I/O workers read, for other sessions too)
        device_source: Option<&'static str>,
        /// device_bytes divided by the bytes of device_blks_read. Over 1: the kernel read around the
        /// requested blocks; under 1: it had parts of them in the cache
        over_read: Option<f64>,
        /// Latency of the first fetch in microseconds, which is part of no other time
        warmup_us: Option<f64>,
        /// Mean time in microseconds from when a fetch was due to its completion, which is more than its
        /// latency if it was issued late. NULL unless max_iops alone limits the rate, at depth 1
        response_avg_us: Option<f64>,
        /// Time in microseconds from when a fetch was due to its completion that 99 % did not exceed. NULL
        /// unless max_iops alone limits the rate, at depth 1
        response_p99_us: Option<f64>,
        /// Blocks that were never written to the file (path server: and are in no buffer). They count in
        /// blks, but are not read
        hole_blks: Option<u64>,
        /// Blocks of the relation
        blks_total: u64,
        /// Requests in flight; path server: how many reads the server may issue ahead
        depth: u32,
        /// How the reads were issued. pread: one at a time; io_uring, threads: several at a time. Path
        /// server: ReadBuffer (one block at a time), PrefetchBuffer or a read stream (some ahead), from
        /// PostgreSQL 18 on with the server's io_method
        engine: Option<Text>,
        /// Seed of the random order; the same seed gives the same order of a relation of the same size
        seed: i64,
        /// When the run on this path started
        started_at: Timestamp,
        ..place: PlaceColumns,
        ..caveats: CaveatColumns,
        ..interval: IntervalColumns,
        ..tiers: TierColumns,
        ..activity: ActivityColumns,
        ..latencies: LatencyColumns,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "random",
    calls: None,
    arguments: &[
        required("rel", "regclass"),
        optional("paths", "text[]", "'{direct,server,os}'"),
        optional("duration", "text", "NULL"),
        optional("cold", "boolean", "false"),
        optional("depth", "integer", "1"),
        optional("seed", "bigint", "NULL"),
        options(MEASURING),
    ],
    returns: Returns::Rows(&RandomRow::TYPE, 3),
    group: Group::Measure,
    who: Who::Owner,
    comment: "\
            Times fetches of single blocks of a relation in a seeded random order on up to three paths, one \
            row each, with the tier that served the fetches and what the devices did. The paths share the \
            duration; without a duration each path lasts at most pg_io_probe.row_duration. Each path reads \
            at most max_bytes (default pg_io_probe.default_max_bytes). Evicts nothing unless cold is true, \
            which needs EXECUTE on io_probe_evict. Needs EXECUTE, and SELECT or MAINTAIN on the relation. \
            Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait",
    example: "'public.probed', duration => '9 ms', cold => true, depth => 2",
    errors: &[],
}];
