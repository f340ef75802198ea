//! What writing data files costs.

use crate::function::OptionName::{self, MaxBytes, MaxIops, MaxMibS, MaxP99, MaxUtilPct, Seed, Wait};
use crate::function::{FILES, Function, Group, Returns, Who, optional, options};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, IntervalColumns};
use crate::value::{Json, Text, Timestamp};

row! {
    /// one way to write
    row WriteRow "write" everyday [
        pattern, path, depth, write_kb, writes_s, err_pct, mib_s, p99_us, fsync_ms, doubt
    ] {
        /// random, backend (as sessions that need a buffer): blocks anywhere; sequential: 256 kB in order;
        /// checkpoint: half of the blocks in order, as the checkpointer; copy: in order, as COPY
        pattern: &'static str,
        /// direct: O_DIRECT; os: as the server writes, with a sync before a block is written again and after
        /// each of five turns
        path: &'static str,
        /// Most writes in flight
        depth: u32,
        /// Size of each write in kB
        write_kb: u32,
        /// kB after which the kernel is told to write back (checkpoint_flush_after, backend_flush_after);
        /// NULL: not before the sync
        flush_kb: Option<u64>,
        /// Writes a second, on path os with the time of the syncs
        writes_s: Option<f64>,
        /// writes_s times write_kb, in MiB a second
        mib_s: Option<f64>,
        /// Median in us; on path os of a copy in memory. NULL if fewer than ten lie above it, as for all
        /// percentiles
        p50_us: Option<f64>,
        /// 95th percentile in us
        p95_us: Option<f64>,
        /// 99th percentile in us
        p99_us: Option<f64>,
        /// Writes in each range of latencies that has some: {low_us, high_us, count}, each range 1.19 times
        /// the last
        histogram: Option<Json>,
        /// Mean ms of a sync; NULL on path direct
        fsync_ms: Option<f64>,
        /// Writes that were measured
        ops: u64,
        /// Their time in ms, with the syncs
        elapsed_ms: Option<f64>,
        /// MiB that the devices wrote meanwhile, for all processes
        device_mib: Option<f64>,
        /// Size of the scratch file in MiB
        scratch_mib: Option<u64>,
        /// Devices behind the directory
        device: Option<Text>,
        /// I/O scheduler of the devices behind the directory
        scheduler: Option<Text>,
        /// write back: the device has a volatile cache, which a sync must flush; write through: it has none,
        /// or says so
        write_cache: Option<Text>,
        /// Type of the file system
        fs_type: Option<Text>,
        /// Directory of the scratch file, symbolic links resolved
        directory: Option<Text>,
        /// Seed of the random order; option or argument seed repeats it
        seed: i64,
        /// When the call, or this path of it, started
        started_at: Timestamp,
        ..caveats: CaveatColumns,
        ..interval: IntervalColumns,
    }
}

/// Its options.
pub const OPTIONS: &[OptionName] = &[MaxBytes, MaxIops, MaxMibS, MaxUtilPct, MaxP99, Seed, Wait];

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "write",
    calls: None,
    arguments: &[
        optional("spcname", "text", "NULL"),
        optional("patterns", "text[]", "NULL"),
        optional("duration", "text", "NULL"),
        optional("depth", "integer", "16"),
        options(OPTIONS),
    ],
    returns: Returns::Rows(&WriteRow::TYPE, 6),
    group: Group::Measure,
    who: Who::Owner,
    comment: "\
        Times writes of data files in tablespace spcname (by default the database's own), into a scratch \
        file: past the OS cache, and in the server's ways, syncs included. Syncs of others may wait \
        meanwhile. Needs EXECUTE, also on io_probe_sync, and CREATE on a tablespace other than the \
        database's own. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, seed, wait",
    example: "patterns => '{copy}', duration => '10 ms'",
    errors: &[FILES],
}];
