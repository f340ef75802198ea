//! Reads and writes at once.

use crate::function::OptionName::{self, MaxBytes, MaxIops, MaxMibS, MaxP99, MaxUtilPct, Seed, Wait};
use crate::function::{FILES, Function, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, PlaceColumns};
use crate::value::Timestamp;

row! {
    /// one load of reads and writes
    row MixRow "mix" everyday [
        load, read_pct, write_pct, reads_s, r_p50_us, r_p99_us, writes_s, w_p50_us, w_p99_us, doubt
    ] {
        /// bend: the greatest load that was carried, as all lesser ones were; reads alone, writes alone: as
        /// fast as they were answered; cell: both at these shares
        load: &'static str,
        /// Reads sent, in percent of those of reads alone
        read_pct: Option<u32>,
        /// Writes sent, in percent of those of writes alone
        write_pct: Option<u32>,
        /// Reads a second that were answered
        reads_s: Option<f64>,
        /// Median of a read in us from when it was due (alone: sent) to its answer; NULL if fewer than ten
        /// lie above it, as for all percentiles
        r_p50_us: Option<f64>,
        /// 95th percentile in us
        r_p95_us: Option<f64>,
        /// 99th percentile in us
        r_p99_us: Option<f64>,
        /// Writes a second that were answered
        writes_s: Option<f64>,
        /// Median time of a write in us, with its sync if writing is wal
        w_p50_us: Option<f64>,
        /// 95th percentile in us
        w_p95_us: Option<f64>,
        /// 99th percentile in us
        w_p99_us: Option<f64>,
        /// Were at least 95 % of the requests of both sides answered in time? If not, percentiles are too
        /// low: what was not answered is in none
        carried: Option<bool>,
        /// Reads a second that were sent; NULL: as fast as they were answered
        sent_reads_s: Option<f64>,
        /// Writes a second that were sent; NULL: as fast as they were answered
        sent_writes_s: Option<f64>,
        /// data: blocks at random; sequential: 256 kB one behind the other; wal: a WAL block and fdatasync
        writing: &'static str,
        /// Size of a read in kB
        read_kb: u32,
        /// Size of a write in kB
        write_kb: u32,
        /// Most reads in flight, and most writes; writes of wal are one at a time
        depth: u32,
        /// Time in ms that counts
        elapsed_ms: Option<f64>,
        /// Seed of the random order; option or argument seed repeats it
        seed: i64,
        /// When the call, or this path of it, started
        started_at: Timestamp,
        ..place: PlaceColumns,
        ..caveats: CaveatColumns,
    }
}

/// Its options.
pub const OPTIONS: &[OptionName] = &[MaxBytes, MaxIops, MaxMibS, MaxUtilPct, MaxP99, Seed, Wait];

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "mix",
    calls: None,
    arguments: &[
        required("rel", "regclass"),
        optional("writing", "text", "'data'"),
        optional("shares", "integer[]", "'{0,20,40,60,80}'"),
        optional("duration", "text", "NULL"),
        optional("depth", "integer", "16"),
        options(OPTIONS),
    ],
    returns: Returns::Rows(&MixRow::TYPE, 28),
    who: Who::Owner,
    comment: "\
        What reads take while others write: random reads of the relation beside writes of a scratch file, \
        past the OS cache. First each side alone, as fast as it is answered with depth requests in flight; \
        then both, sent at even distances, at each pair of shares (percent) of those rates. writing: data \
        (blocks at random), sequential (as a backup), both in the relation's tablespace, or wal (WAL blocks, \
        each synced, beside the WAL). Needs EXECUTE, also on io_probe_sync, SELECT or MAINTAIN on the \
        relation, and CREATE on its tablespace if that is not the database's own. Options: max_bytes, \
        max_iops, max_mib_s, max_util_pct, max_p99, seed, wait",
    example: "'public.probed', shares => '{50}', duration => '60 ms'",
    errors: &[FILES],
}];
