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
        /// direct: O_DIRECT; server: through a small ring of shared buffers; os: pread through the OS cache
        path: &'static str,
        /// Fetches a second of wall clock, without warm-up, holes and filling the queue; under a rate limit
        /// what that allowed
        iops: Option<f64>,
        /// 99.9th percentile of the latency in us; NULL if fewer than ten lie above it
        p999_us: Option<f64>,
        /// Greatest latency in us
        max_us: Option<f64>,
        /// Blocks fetched, each once, with warm-up and holes
        blks: u64,
        /// Was every block fetched? If not, a note says why
        complete: bool,
        /// true: verified that no cache served a fetch, or (after cold => true) only with what this run's
        /// readahead had brought in
        cold: Option<bool>,
        /// Wall clock in ms, with pauses, without evicting
        elapsed_ms: Option<f64>,
        /// iops times the block size, in MiB a second
        mib_s: Option<f64>,
        /// Mean latency in us of fetches from shared buffers, at depth 1
        shared_us: Option<f64>,
        /// Mean latency in us of fetches from the OS cache, at depth 1
        os_us: Option<f64>,
        /// Mean latency in us of fetches from the device
        device_us: Option<f64>,
        /// Fetches from shared buffers (or the session's own)
        shared_blks_hit: Option<u64>,
        /// Fetches of blocks that were wholly in the OS cache
        os_blks_hit: Option<u64>,
        /// Fetches that no cache served, without holes
        device_blks_read: Option<u64>,
        /// Path server: dirty buffers written to make room; else NULL
        shared_blks_written: Option<u64>,
        /// Whose reads device_bytes counts: backend (this process) or io_workers (for all sessions)
        device_source: Option<&'static str>,
        /// device_bytes over the bytes of device_blks_read. Over 1: neighbours were read, too; under 1: parts
        /// were cached
        over_read: Option<f64>,
        /// Latency of the first fetch in us, part of no other time
        warmup_us: Option<f64>,
        /// Mean us from when a fetch was due to its end; only under max_iops alone, at depth 1
        response_avg_us: Option<f64>,
        /// 99th percentile of that time in us
        response_p99_us: Option<f64>,
        /// Holes: blocks never written (path server: nor in a buffer), counted in blks, but not read
        hole_blks: Option<u64>,
        /// Blocks of the relation
        blks_total: u64,
        /// Requests in flight; path server: reads that the server may issue ahead
        depth: u32,
        /// pread: one read at a time; io_uring, threads: several. Path server: ReadBuffer, PrefetchBuffer or
        /// a read stream
        engine: Option<Text>,
        /// Seed of the random order; option or argument seed repeats it
        seed: i64,
        /// When the call, or this path of it, started
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
        Times fetches of single blocks of a relation in random order on up to three paths, with the tier \
        that served them and what the devices did. Duration, max_bytes and cold as in io_probe_seqscan. \
        Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, max_iops, max_mib_s, \
        max_util_pct, max_p99, precision, wait",
    example: "'public.probed', duration => '9 ms', cold => true, depth => 2",
    errors: &[],
}];
