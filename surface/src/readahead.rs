//! The curve of throughput over readahead windows, without touching /sys.

use crate::function::{Function, Group, MEASURING, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{ActivityColumns, CaveatColumns, IntervalColumns, PlaceColumns};
use crate::value::{Text, Timestamp};

row! {
    /// one readahead window
    row ReadaheadRow "readahead" everyday [
        window_kb, mode, mib_s, block_us, err_pct, rareq_kb, util_pct, best, relid, doubt
    ] {
        /// Readahead window in kB, as in /sys/block/*/queue/read_ahead_kb; NULL if that in force is unknown
        window_kb: Option<u64>,
        /// kernel: the setting in force, read through the OS cache; emulated: requests of one window past it,
        /// the next submitted while the present one is used, plus cache_us per block
        mode: &'static str,
        /// MiB a second of a cold scan that reads one block at a time
        mib_s: Option<f64>,
        /// Time per block in us, without the work of the server
        block_us: Option<f64>,
        /// Is it the smallest window as good as the fastest (not surely slower by over 5 %, nor seemingly by
        /// 10 %)? NULL if a row is void or has no interval, or if the call was ended early
        best: Option<bool>,
        /// Command for root that sets this window until the next boot; sessions keep that with which they
        /// opened a file
        blockdev_setra: Option<Text>,
        /// Line for /etc/udev/rules.d that sets this window at each boot
        udev_rule: Option<Text>,
        /// emulated: us of the page cache per block, measured at the setting in force, part of block_us
        cache_us: Option<f64>,
        /// Turns that count: without the first of each window, and disturbed ones of the kernel
        turns: u64,
        /// Blocks read in the turns that count
        blks: u64,
        /// Wall clock of all turns in ms
        elapsed_ms: Option<f64>,
        /// Percent of the blocks that came from the device; below 100 something was cached
        device_pct: Option<f64>,
        /// How reads were issued: pread for kernel; io_uring or threads for emulated
        engine: Option<&'static str>,
        /// When the call, or this path of it, started
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
    calls: None,
    arguments: &[
        required("rel", "regclass"),
        optional("windows_kb", "integer[]", "'{16,32,64,128,256,512,1024,2048,4096}'"),
        optional("duration", "text", "NULL"),
        options(MEASURING),
    ],
    returns: Returns::Rows(&ReadaheadRow::TYPE, 10),
    group: Group::Measure,
    who: Who::Owner,
    comment: "\
        Times a cold sequential scan at several readahead windows, and changes no setting: the window in \
        force is read as it is, the others are emulated. Evicts from the OS cache what it reads there, so it \
        needs EXECUTE on io_probe_evict too. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: \
        max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait",
    example: "'public.probed', '{64}', '10 ms'",
    errors: &[],
}];
