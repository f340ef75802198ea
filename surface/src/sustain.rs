//! One load that goes on.

use crate::function::OptionName::{self, MaxBytes, MaxIops, MaxMibS, MaxP99, MaxUtilPct, Seed, Wait};
use crate::function::{Function, Group, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, PlaceColumns};
use crate::value::{Text, Timestamp};

row! {
    /// one slice of the time, or what a pattern comes to
    row SustainRow "sustain" everyday [pattern, slice, at_s, iops, mib_s, p50_us, p99_us, verdict, doubt] {
        /// random: single blocks; sequential: 256 kB one behind the other
        pattern: &'static str,
        /// Number of the slice; NULL in the first row of a pattern, which has the rate that is kept after a
        /// burst, or that of the whole time if there is none
        slice: Option<u64>,
        /// When it began, in seconds since the first read of the pattern
        at_s: Option<f64>,
        /// Reads per second
        iops: Option<f64>,
        /// iops times the size of a read, in MiB (2^20 bytes) per second
        mib_s: Option<f64>,
        /// Median latency in microseconds; NULL if fewer than ten reads lie above it
        p50_us: Option<f64>,
        /// Latency in microseconds that 99 % of the reads did not exceed; NULL if fewer than ten lie above it
        p99_us: Option<f64>,
        /// Of the first row: what the rate looks like. A cap is even within 3 %, and is either round or comes
        /// after a burst; a device may have no more by itself. steady, not steady: by SNIA's test, on five
        /// equal parts of the time. NULL in other rows
        verdict: Option<Text>,
        /// Of the first row: reads per second before a bucket of credits was empty; NULL without a burst
        burst_iops: Option<f64>,
        /// Of the first row: how many seconds that lasted
        burst_s: Option<f64>,
        /// Of the first row: reads that the bucket held at first, which may not have been full
        bucket: Option<f64>,
        /// Of the first row: seconds without reads in which as much flows into the bucket
        refill_s: Option<f64>,
        /// Of the first row: is the rate steady (SNIA: on five equal parts, range up to 20 % and excursion of
        /// the line that fits best up to 10 % of the mean)? NULL with fewer than five slices
        steady: Option<bool>,
        /// Of the first row: how far the five parts lie apart, in percent of their mean
        range_pct: Option<f64>,
        /// Size of a read in kB
        read_kb: u32,
        /// Most reads in flight
        depth: u32,
        /// Time of the slice in ms; of the first row, of all
        elapsed_ms: Option<f64>,
        /// Seed of the random order; option seed repeats it
        seed: i64,
        /// When the call started
        started_at: Timestamp,
        ..place: PlaceColumns,
        ..caveats: CaveatColumns,
    }
}

/// Its options.
pub const OPTIONS: &[OptionName] = &[MaxBytes, MaxIops, MaxMibS, MaxUtilPct, MaxP99, Seed, Wait];

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "sustain",
    group: Group::Measure,
    calls: None,
    arguments: &[
        required("rel", "regclass"),
        optional("patterns", "text[]", "NULL"),
        optional("every", "text", "NULL"),
        optional("duration", "text", "NULL"),
        optional("depth", "integer", "16"),
        options(OPTIONS),
    ],
    returns: Returns::Rows(&SustainRow::TYPE, 202),
    who: Who::Owner,
    comment: "\
        What the device keeps up under reads of the relation that go on, past the OS page cache: a burst and \
        when it ends, and what looks like a cap. patterns: random (single blocks), then sequential (256 kB), \
        which tells a cap on IOPS from one on MiB/s; they share the duration. Each has a row for each slice, \
        every so long (by default a hundredth of its time, but 100 ms at least), after a row that has the \
        verdict. Credits that an earlier load used up are not there. Evicts nothing. Needs EXECUTE, and \
        SELECT or MAINTAIN on the relation. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, \
        seed, wait",
    example: "'public.probed', every => '10 ms', duration => '100 ms'",
    errors: &[],
}];
