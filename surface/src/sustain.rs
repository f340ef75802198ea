//! One load that goes on.

use crate::function::{Function, MEASURE, Returns, SEEDED, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, PlaceColumns};
use crate::value::{Text, Timestamp};

row! {
    /// the result of a pattern, or one slice of its time
    row SustainRow "sustain" everyday [pattern, slice, at_s, iops, mib_s, p50_us, p99_us, verdict, doubt] {
        /// random: single blocks; sequential: 256 kB in order
        pattern: &'static str,
        /// Number of the slice. NULL in the first row of a pattern: that row has the rate after a burst, or
        /// without a burst the rate of the whole time
        slice: Option<u64>,
        /// When the slice began, in seconds since the first read of the pattern
        at_s: Option<f64>,
        /// Reads per second
        iops: Option<f64>,
        /// iops times the size of a read, in MiB (2^20 bytes) per second
        mib_s: Option<f64>,
        /// Median latency in us; NULL if fewer than ten reads took longer
        p50_us: Option<f64>,
        /// 99th percentile of the latency in us; NULL if fewer than ten reads took longer
        p99_us: Option<f64>,
        /// First row: cap of ..., steady, not steady (see column steady) or too short (under five slices);
        /// after a burst, 'burst of ... s, then' comes first. cap: the rate varies by at most 3 %, and is a
        /// round number or follows a burst. It may also be the device's own limit. NULL in other rows
        verdict: Option<Text>,
        /// First row: reads per second until the burst credits were used up; NULL without a burst
        burst_iops: Option<f64>,
        /// First row: how many seconds the burst lasted
        burst_s: Option<f64>,
        /// First row: burst credits at the start, as a number of reads; the bucket may not have been full
        bucket: Option<f64>,
        /// First row: seconds without reads until the bucket has as many credits again
        refill_s: Option<f64>,
        /// First row: is the rate steady by SNIA's test? It is if the rates of five equal parts of the time
        /// (after a burst, if any) differ by at most 20 % of their mean, and the best-fit line changes by at
        /// most 10 % of the mean. NULL with under five slices
        steady: Option<bool>,
        /// First row: highest minus lowest rate of the five parts (see steady), in percent of their mean
        range_pct: Option<f64>,
        /// Size of a read in kB
        read_kb: u32,
        /// Greatest number of reads in flight
        depth: u32,
        /// Length of the slice in ms; in the first row, of all slices
        elapsed_ms: Option<f64>,
        /// Seed of the random order; option seed repeats it
        seed: i64,
        /// When the call started
        started_at: Timestamp,
        ..place: PlaceColumns,
        ..caveats: CaveatColumns,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "sustain",
    arguments: &[
        required("rel", "regclass"),
        optional("patterns", "text[]", "NULL"),
        optional("every", "text", "NULL"),
        optional("duration", "text", "NULL"),
        optional("depth", "integer", "16"),
        options(SEEDED),
    ],
    returns: Returns::Rows(&SustainRow::TYPE, 202),
    comment: "\
        Reads the relation for a long time, past the OS page cache. Finds a burst and its end, and what \
        looks like a cap. patterns: random (single blocks), then sequential (256 kB). With both patterns, a \
        limit on IOPS and a limit on MiB/s can be told apart. The patterns share the duration. The first row \
        of a pattern has the verdict. The next rows are slices of the length every (by default a hundredth \
        of the pattern's time, at least 100 ms). If an earlier load has used up credits, the burst is \
        shorter. Evicts nothing. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, \
        max_iops, max_mib_s, max_util_pct, max_p99, seed, wait",
    example: "'public.probed', every => '10 ms', duration => '100 ms'",
    ..MEASURE
}];
