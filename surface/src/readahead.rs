//! The curve of throughput over readahead windows, without touching /sys.

use crate::function::{Function, MEASURE, MEASURING, Returns, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{ActivityColumns, CaveatColumns, IntervalColumns, PlaceColumns};
use crate::value::{Text, Timestamp};

row! {
    /// one readahead window
    row ReadaheadRow "readahead" everyday [
        window_kb, mode, mib_s, block_us, err_pct, rareq_kb, util_pct, best, relid, doubt
    ] {
        /// Readahead window in kB, as in /sys/block/*/queue/read_ahead_kb; NULL if the setting in force is
        /// unknown
        window_kb: Option<u64>,
        /// kernel: the window in force, with reads through the OS cache. emulated: the probe reads one window
        /// at a time past the OS cache, and fetches the next window while it uses the present one; block_us
        /// includes cache_us
        mode: &'static str,
        /// MiB per second of a cold scan, one block at a time
        mib_s: Option<f64>,
        /// Time per block in us, without the server's own work
        block_us: Option<f64>,
        /// Is it the smallest window that is as good as the fastest (see best of io_probe_depth)? NULL if the
        /// row is void or has no confidence interval, or if the call ended early
        best: Option<bool>,
        /// Command for root that sets this window until the next boot. For open files, sessions keep the old
        /// window
        blockdev_setra: Option<Text>,
        /// Line for /etc/udev/rules.d that sets this window at each boot
        udev_rule: Option<Text>,
        /// Mode emulated: us per block that the OS cache takes, measured at the window in force and included
        /// in block_us
        cache_us: Option<f64>,
        /// Number of turns that count. Left out are the first turn and, in mode kernel, turns with much more
        /// CPU time than others
        turns: u64,
        /// Number of blocks read in the turns that count
        blks: u64,
        /// Elapsed time of all turns in ms
        elapsed_ms: Option<f64>,
        /// Percent of the blocks that came from the device. Below 100, some blocks were cached
        device_pct: Option<f64>,
        /// How the probe read: pread for mode kernel; io_uring or threads for mode emulated
        engine: Option<&'static str>,
        /// When the call started; if it has several paths, when this path started
        started_at: Timestamp,
        ..place: PlaceColumns,
        ..caveats: CaveatColumns,
        ..interval: IntervalColumns,
        ..activity: ActivityColumns,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "readahead",
    arguments: &[
        required("rel", "regclass"),
        optional("windows_kb", "integer[]", "'{16,32,64,128,256,512,1024,2048,4096}'"),
        optional("duration", "text", "NULL"),
        options(MEASURING),
    ],
    returns: Returns::Rows(&ReadaheadRow::TYPE, 10),
    comment: "\
        Times a cold sequential scan at several readahead windows. Changes no setting: it measures the \
        window in force, and emulates the others. It drops the blocks that it read through the OS cache, so \
        it also needs EXECUTE on io_probe_evict. Needs EXECUTE, and SELECT or MAINTAIN on the relation. \
        Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait",
    example: "'public.probed', '{64}', '10 ms'",
    ..MEASURE
}];
