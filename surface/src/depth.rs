//! Random fetches at several depths.

use crate::function::OptionName::{self, MaxBytes, MaxIops, MaxMibS, MaxP99, MaxUtilPct, Wait};
use crate::function::{Function, Group, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, IntervalColumns, LatencyColumns, PlaceColumns};
use crate::value::Timestamp;

row! {
    /// one depth
    row DepthRow "depth" everyday [
        depth, iops, err_pct, mib_s, p50_us, p99_us, best, best_within, relid, doubt
    ] {
        /// Requests in flight
        depth: u32,
        /// Fetches a second of wall-clock time
        iops: Option<f64>,
        /// iops times the block size, in MiB a second
        mib_s: Option<f64>,
        /// Is it the smallest depth as good as the fastest (not surely slower by over 5 %, nor seemingly by
        /// 10 %)? NULL under a rate limit, or if a depth has no interval
        best: Option<bool>,
        /// Is it the depth with the most iops of those whose p99_us is at most argument p99? NULL without
        /// that argument
        best_within: Option<bool>,
        /// pread: one read at a time; io_uring, threads: several
        engine: Option<&'static str>,
        /// Blocks fetched at this depth, with holes
        blks: u64,
        /// Wall clock of this depth in ms
        elapsed_ms: Option<f64>,
        /// Percent of all fetches of the call that came from the device
        device_pct: Option<f64>,
        /// Holes: blocks never written (path server: nor in a buffer), counted in blks, but not read
        hole_blks: Option<u64>,
        /// Seed of the random order; option or argument seed repeats it
        seed: i64,
        /// When the call, or this path of it, started
        started_at: Timestamp,
        ..place: PlaceColumns,
        ..caveats: CaveatColumns,
        ..interval: IntervalColumns,
        ..latencies: LatencyColumns,
    }
}

/// Its options.
pub const OPTIONS: &[OptionName] = &[MaxBytes, MaxIops, MaxMibS, MaxUtilPct, MaxP99, Wait];

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "depth",
    calls: None,
    arguments: &[
        required("rel", "regclass"),
        optional("depths", "integer[]", "NULL"),
        optional("duration", "text", "NULL"),
        optional("seed", "bigint", "NULL"),
        optional("p99", "text", "NULL"),
        options(OPTIONS),
    ],
    returns: Returns::Rows(&DepthRow::TYPE, 7),
    group: Group::Measure,
    who: Who::Owner,
    comment: "\
            Times random fetches past the OS page cache at several depths (by default 1, 2, 4 and so on to \
            64), and marks the knee of the curve as best. With p99, such as '2 ms', it also marks the depth \
            that gives the most within it. Evicts nothing. Needs EXECUTE, and SELECT or MAINTAIN on the \
            relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, wait",
    example: "'public.probed', '{1,2}', '6 ms', p99 => '2 ms'",
    errors: &[],
}];
