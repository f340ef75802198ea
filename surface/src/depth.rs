//! Random fetches at several depths.

use crate::function::OptionName::{self, MaxBytes, MaxIops, MaxMibS, MaxP99, MaxUtilPct, Wait};
use crate::function::{Function, MEASURE, Returns, optional, options, required};
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
        /// Fetches per second
        iops: Option<f64>,
        /// iops times the block size, in MiB per second
        mib_s: Option<f64>,
        /// Is it the smallest depth that is as good as the fastest? Not as good: measured over 10 % slower,
        /// or over 5 % slower with 95 % confidence. NULL under a rate limit, if this depth has no
        /// confidence interval, or if it alone of several has one
        best: Option<bool>,
        /// Among the depths whose p99_us does not exceed argument p99, has this one the most iops? NULL
        /// without that argument, and under a rate limit
        best_within: Option<bool>,
        /// pread: one read at a time; io_uring, threads: several at a time
        engine: Option<&'static str>,
        /// Number of blocks fetched at this depth, including holes (blocks never written)
        blks: u64,
        /// Elapsed time of this depth in ms
        elapsed_ms: Option<f64>,
        /// Percent of the fetches at all depths together that came from the device
        device_pct: Option<f64>,
        /// Holes: blocks never written (where path is server: and not in shared buffers). blks counts them,
        /// but they are not read
        hole_blks: Option<u64>,
        /// Seed of the random order; option or argument seed repeats it
        seed: i64,
        /// When the call started; if it has several paths, when this path started
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
    arguments: &[
        required("rel", "regclass"),
        optional("depths", "integer[]", "NULL"),
        optional("duration", "text", "NULL"),
        optional("seed", "bigint", "NULL"),
        optional("p99", "text", "NULL"),
        options(OPTIONS),
    ],
    returns: Returns::Rows(&DepthRow::TYPE, 7),
    comment: "\
        Times random fetches past the OS page cache at several depths (by default 1, 2, 4 and so on to 64). \
        Marks as best the smallest depth that is as good as the fastest. With p99, such as '2 ms', it also \
        marks the fastest depth whose p99_us does not exceed it. Evicts nothing. Needs EXECUTE, and SELECT \
        or MAINTAIN on the relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, wait",
    example: "'public.probed', '{1,2}', '6 ms', p99 => '2 ms'",
    ..MEASURE
}];
