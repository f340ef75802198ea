//! What writing data files costs.

use crate::function::{FILES, Function, MEASURE, Returns, SEEDED, optional, options};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, IntervalColumns};
use crate::value::{Json, Text, Timestamp};

row! {
    /// one pattern at one depth
    row WriteRow "write" everyday [
        pattern, path, depth, write_kb, writes_s, err_pct, mib_s, p99_us, fsync_ms, doubt
    ] {
        /// random: blocks anywhere; backend: blocks anywhere, as sessions write that need a buffer;
        /// sequential: 256 kB in order; checkpoint: half of the blocks, in order, as the checkpointer writes;
        /// copy: blocks in order, as COPY writes
        pattern: &'static str,
        /// direct: by O_DIRECT; os: through the OS cache, as the server does, with a sync before a block is
        /// written again, and at the end of each of five turns
        path: &'static str,
        /// Greatest number of writes in flight
        depth: u32,
        /// Size of each write in kB
        write_kb: u32,
        /// After how many kB the kernel is told to write back (checkpoint_flush_after or
        /// backend_flush_after). NULL: not before the sync
        flush_kb: Option<u64>,
        /// Writes per second. Where path is os, the time includes the syncs
        writes_s: Option<f64>,
        /// writes_s times write_kb, in MiB per second
        mib_s: Option<f64>,
        /// Median time of a write in us; where path is os, a write only copies to the OS cache. Each
        /// percentile is NULL if fewer than ten writes took longer
        p50_us: Option<f64>,
        /// 95th percentile of write times in us
        p95_us: Option<f64>,
        /// 99th percentile of write times in us
        p99_us: Option<f64>,
        /// Number of writes in each latency range, in the form of histogram of io_probe_depth
        histogram: Option<Json>,
        /// Mean ms of a sync; NULL where path is direct
        fsync_ms: Option<f64>,
        /// Number of writes that were measured
        ops: u64,
        /// Total time of these writes in ms, including the syncs
        elapsed_ms: Option<f64>,
        /// MiB that the devices wrote during the measurement, for all processes
        device_mib: Option<f64>,
        /// Size of the scratch file in MiB
        scratch_mib: Option<u64>,
        /// Devices behind the directory
        device: Option<Text>,
        /// I/O scheduler of the devices behind the directory
        scheduler: Option<Text>,
        /// write back: the device has a volatile cache, which a sync must flush; write through: it has none,
        /// or reports none
        write_cache: Option<Text>,
        /// Type of the file system
        fs_type: Option<Text>,
        /// Directory of the scratch file, symbolic links resolved
        directory: Option<Text>,
        /// Seed of the random order; option or argument seed repeats it
        seed: i64,
        /// When the call started; if it has several paths, when this path started
        started_at: Timestamp,
        ..caveats: CaveatColumns,
        ..interval: IntervalColumns,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "write",
    arguments: &[
        optional("spcname", "text", "NULL"),
        optional("patterns", "text[]", "NULL"),
        optional("duration", "text", "NULL"),
        optional("depth", "integer", "16"),
        options(SEEDED),
    ],
    returns: Returns::Rows(&WriteRow::TYPE, 6),
    comment: "\
        Times writes as the server makes them to data files, on a scratch file in tablespace spcname (by \
        default the database's default). Some patterns bypass the OS cache; others write through it, and \
        sync. Meanwhile, syncs of others may wait. Needs EXECUTE, also on io_probe_sync, and CREATE on the \
        tablespace if it is not the database's default. Options: max_bytes, max_iops, max_mib_s, \
        max_util_pct, max_p99, seed, wait",
    example: "patterns => '{copy}', duration => '10 ms'",
    errors: &[FILES],
    ..MEASURE
}];
