//! Reads and writes at once.

use crate::function::{FILES, Function, MEASURE, Returns, SEEDED, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, PlaceColumns};
use crate::value::{Json, Timestamp};

row! {
    /// one load of reads and writes
    row MixRow "mix" everyday [
        load, read_pct, write_pct, reads_s, r_p50_us, r_p99_us, writes_s, w_p50_us, w_p99_us, doubt
    ] {
        /// bend (first row): the greatest load that was answered in time, as were all smaller loads; if there
        /// is none, the figures are NULL. others (with argument like): what others sent, now or in the stored
        /// run. reads alone, writes alone: as fast as possible. cell: reads and writes at the shares read_pct
        /// and write_pct
        load: &'static str,
        /// Rate of reads, in percent of row reads alone (with argument like: of row others)
        read_pct: Option<u32>,
        /// Rate of writes, in percent of row writes alone (with argument like: of row others)
        write_pct: Option<u32>,
        /// Reads answered per second
        reads_s: Option<f64>,
        /// Median time of a read in us, from its scheduled start until its answer. Each percentile is NULL if
        /// fewer than ten requests took longer
        r_p50_us: Option<f64>,
        /// 95th percentile of read times in us
        r_p95_us: Option<f64>,
        /// 99th percentile of read times in us
        r_p99_us: Option<f64>,
        /// Number of reads in each latency range, in the form of histogram of io_probe_depth
        r_histogram: Option<Json>,
        /// Writes answered per second
        writes_s: Option<f64>,
        /// Median time of a write in us, with its sync if writing is wal
        w_p50_us: Option<f64>,
        /// 95th percentile of write times in us
        w_p95_us: Option<f64>,
        /// 99th percentile of write times in us
        w_p99_us: Option<f64>,
        /// Number of writes in each latency range, in the form of histogram of io_probe_depth
        w_histogram: Option<Json>,
        /// Were at least 95 % of the reads and 95 % of the writes answered in time? If not, the percentiles
        /// are too low: they don't count unanswered requests. NULL for reads alone and writes alone
        carried: Option<bool>,
        /// Reads sent per second. NULL if each was sent as soon as an earlier one ended
        sent_reads_s: Option<f64>,
        /// Writes sent per second. NULL if each was sent as soon as an earlier one ended
        sent_writes_s: Option<f64>,
        /// data: blocks in random order; sequential: 256 kB in order; wal: a WAL block, then fdatasync
        writing: &'static str,
        /// Size of a read in kB
        read_kb: u32,
        /// Size of a write in kB
        write_kb: u32,
        /// Greatest number of reads in flight, and of writes in flight. With wal: one write at a time
        depth: u32,
        /// Measured time in ms
        elapsed_ms: Option<f64>,
        /// Seed of the random order; option or argument seed repeats it
        seed: i64,
        /// When the call started; if it has several paths, when this path started
        started_at: Timestamp,
        ..place: PlaceColumns,
        ..caveats: CaveatColumns,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "mix",
    arguments: &[
        required("rel", "regclass"),
        optional("spcname", "text", "NULL"),
        optional("writing", "text", "'data'"),
        optional("shares", "integer[]", "NULL"),
        optional("duration", "text", "NULL"),
        optional("depth", "integer", "16"),
        optional("like", "text", "NULL"),
        options(SEEDED),
    ],
    returns: Returns::Rows(&MixRow::TYPE, 28),
    comment: "\
        Shows how long reads take while writes go on. It reads random blocks of the relation, and writes a \
        scratch file, past the OS page cache. First it measures reads alone and writes alone, as fast as \
        possible with depth requests in flight. Then it sends both at even intervals, for each pair of \
        shares: a share is a percentage of the rate of reads alone, or of writes alone. By default shares \
        are 0, 20, 40, 60 and 80. The first row has the greatest load that the device keeps up with. like => \
        'now' first watches what others send to the devices. Then it sends 1, 2 and 4 times as many requests \
        of the same sizes. like => '17' takes that load from stored run 17 of io_probe_iostat. spcname is \
        another tablespace to try: the function then reads and writes scratch files there. writing: data \
        (random blocks, in the relation's tablespace), sequential (as a backup or COPY) or wal (WAL blocks \
        with a sync each, in the folder of the WAL). All rows take turns and share the duration. Needs \
        EXECUTE, also on io_probe_sync, SELECT or MAINTAIN on the relation, and CREATE on the tablespace if \
        it is not the database's default. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, \
        seed, wait",
    example: "'public.probed', shares => '{50}', duration => '60 ms'",
    errors: &[FILES],
    ..MEASURE
}];
