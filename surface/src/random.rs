//! Random fetches of single blocks.

use crate::function::{Function, MEASURE, MEASURING, Returns, optional, options, required};
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
        /// direct: reads by O_DIRECT; server: through a small ring of shared buffers; os: pread through the
        /// OS cache
        path: &'static str,
        /// Fetches per second, without warm-up, holes and filling the queue. Under a rate limit: the rate
        /// that the limit allowed
        iops: Option<f64>,
        /// 99.9th percentile of the latency in us; NULL if fewer than ten fetches took longer
        p999_us: Option<f64>,
        /// Greatest latency in us
        max_us: Option<f64>,
        /// Number of blocks fetched, each once, including warm-up and holes (blocks never written)
        blks: u64,
        /// Was every block fetched? If not, column notes says why
        complete: bool,
        /// true: no fetch found its block in a cache. After cold => true, blocks that this path's own
        /// readahead had cached do not count
        cold: Option<bool>,
        /// Elapsed time in ms, with pauses, without the eviction
        elapsed_ms: Option<f64>,
        /// iops times the block size, in MiB per second
        mib_s: Option<f64>,
        /// Mean latency in us of fetches from shared buffers, at depth 1
        shared_us: Option<f64>,
        /// Mean latency in us of fetches from the OS cache, at depth 1
        os_us: Option<f64>,
        /// Mean latency in us of fetches from the device
        device_us: Option<f64>,
        /// Fetches from shared buffers (temporary table: from the session's local buffers)
        shared_blks_hit: Option<u64>,
        /// Fetches of blocks that were completely in the OS cache
        os_blks_hit: Option<u64>,
        /// Fetches that no cache served, without holes
        device_blks_read: Option<u64>,
        /// Where path is server: dirty shared buffers written to make room for the blocks read
        shared_blks_written: Option<u64>,
        /// backend: device_bytes counts reads of this process; io_workers: also all reads of the I/O workers,
        /// for all sessions
        device_source: Option<&'static str>,
        /// device_bytes divided by the bytes of device_blks_read. Over 1: the kernel read other blocks, too.
        /// Under 1: parts of blocks were cached
        over_read: Option<f64>,
        /// Latency of the first fetch in us. No other time includes it
        warmup_us: Option<f64>,
        /// Holes: blocks never written (where path is server: and not in shared buffers). blks counts them,
        /// but they are not read
        hole_blks: Option<u64>,
        /// Blocks of the relation
        blks_total: u64,
        /// Requests in flight; where path is server: how many blocks the server may read ahead
        depth: u32,
        /// pread: one read at a time; io_uring, threads: several at a time. Where path is server: ReadBuffer,
        /// PrefetchBuffer or a read stream
        engine: Option<Text>,
        /// Seed of the random order; option or argument seed repeats it
        seed: i64,
        /// When the call started; if it has several paths, when this path started
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
    comment: "\
        Times fetches of single blocks of a relation in random order, on up to three paths. Shows which tier \
        (shared buffers, OS cache, device) served them, and what the devices did. For duration, max_bytes \
        and cold see io_probe_seqscan. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: \
        max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait",
    example: "'public.probed', duration => '9 ms', cold => true, depth => 2",
    ..MEASURE
}];
