//! Reads and writes at once.

use crate::function::OptionName::{self, MaxBytes, MaxIops, MaxMibS, MaxP99, MaxUtilPct, Seed, Wait};
use crate::function::{FILES, Function, Group, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, PlaceColumns};
use crate::value::{Json, Timestamp};

row! {
    /// one load of reads and writes
    row MixRow "mix" everyday [
        load, read_pct, write_pct, reads_s, r_p50_us, r_p99_us, writes_s, w_p50_us, w_p99_us, doubt
    ] {
        /// bend: the greatest load that was carried, as all lesser ones were (first row; NULL figures if none
        /// was); others: what they send, or sent in the stored run (with like); reads alone, writes alone: as
        /// fast as they were answered; cell: both at these shares
        load: &'static str,
        /// Reads that were sent, in percent of those of reads alone, or with like of those of others
        read_pct: Option<u32>,
        /// Writes that were sent, in percent of those of writes alone, or with like of those of others
        write_pct: Option<u32>,
        /// Reads a second that were answered
        reads_s: Option<f64>,
        /// Median of a read in us to its answer, from when it was sent, or due if it waited for others; NULL
        /// if fewer than ten lie above it, as for all percentiles
        r_p50_us: Option<f64>,
        /// 95th percentile in us
        r_p95_us: Option<f64>,
        /// 99th percentile in us
        r_p99_us: Option<f64>,
        /// How many reads there are in each range of latencies that has some, as histogram of io_probe_depth
        r_histogram: Option<Json>,
        /// Writes per second that were answered
        writes_s: Option<f64>,
        /// Median time of a write in us, with its sync if writing is wal
        w_p50_us: Option<f64>,
        /// 95th percentile in us
        w_p95_us: Option<f64>,
        /// 99th percentile in us
        w_p99_us: Option<f64>,
        /// How many writes there are in each range of latencies that has some, as histogram of io_probe_depth
        w_histogram: Option<Json>,
        /// Were at least 95 % of the requests that were sent answered in time, on both sides? If not,
        /// percentiles are too low: what was not answered is in none. NULL for a side alone
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
        optional("spcname", "text", "NULL"),
        optional("writing", "text", "'data'"),
        optional("shares", "integer[]", "NULL"),
        optional("duration", "text", "NULL"),
        optional("depth", "integer", "16"),
        optional("like", "text", "NULL"),
        options(OPTIONS),
    ],
    returns: Returns::Rows(&MixRow::TYPE, 28),
    group: Group::Measure,
    who: Who::Owner,
    comment: "\
        What reads take while others write: random reads of the relation beside writes of a scratch file, \
        past the OS page cache. First each side alone, as fast as it is answered with depth requests in \
        flight; then both, sent at even distances at each pair of shares (percent) of those rates. The \
        first row says where the device bends. shares are by default 0, 20, 40, 60 and 80. like => 'now' \
        first listens to what others send to the devices, and then sends 1, 2 and 4 times as much of the \
        same size, both sides alike: the first row says how much of it is carried. like => '17' takes what \
        the stored run 17 of io_probe_iostat saw of the device instead. spcname is a tablespace to try \
        instead of the relation's own: scratch files there are read and written. writing: data (blocks \
        at random, in the relation's tablespace), sequential (as a backup or COPY) or wal (WAL blocks, \
        each synced, beside the WAL). All rows take turns and share the duration. Needs EXECUTE, also on \
        io_probe_sync, and SELECT or MAINTAIN on the relation, and CREATE on its tablespace if that is not \
        the database's own. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, seed, wait",
    example: "'public.probed', shares => '{50}', duration => '60 ms'",
    errors: &[FILES],
}];
