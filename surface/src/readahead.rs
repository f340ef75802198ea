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
        /// Readahead window in kB of 1,024 bytes, as in /sys/block/*/queue/read_ahead_kb; NULL if the setting
        /// in force is unknown
        window_kb: Option<u64>,
        /// kernel: the setting in force, read through the OS page cache as it is; emulated: requests of one
        /// window past the page cache, where the next one is submitted while the present one is used, plus
        /// cache_us per block
        mode: &'static str,
        /// Rate of a cold sequential scan that reads one block at a time, in MiB (2^20 bytes) per second: the
        /// block size divided by block_us
        mib_s: Option<f64>,
        /// Time per block in microseconds, without the work of the server
        block_us: Option<f64>,
        /// Is this the smallest window that is as good as the fastest (not surely slower by more than 5 %,
        /// nor seemingly by more than 10 %)? NULL if a row is void or has no interval, or if something from
        /// outside ended the call early
        best: Option<bool>,
        /// Shell command that sets this window until the next boot, as root; sessions keep the window with
        /// which they opened a file. NULL if the device is unknown
        blockdev_setra: Option<Text>,
        /// Line for a file in /etc/udev/rules.d that sets this window at each boot; NULL if the device is
        /// unknown
        udev_rule: Option<Text>,
        /// emulated: cost of the page cache per block in microseconds, measured at the setting in force and
        /// contained in block_us; kernel: NULL
        cache_us: Option<f64>,
        /// Number of turns that count. The windows take turns; the first turn of each is warm-up, and kernel
        /// turns that other work disturbed are left out
        turns: u64,
        /// Blocks read in the turns that count
        blks: u64,
        /// Wall-clock time of all turns in ms, including warm-up and turns that are left out
        elapsed_ms: Option<f64>,
        /// Percent of the blocks that came from the device; below 100 something was cached. NULL if unknown
        device_pct: Option<f64>,
        /// How the reads were issued: pread for kernel; io_uring or threads, past the page cache, for
        /// emulated
        engine: Option<&'static str>,
        /// When the call started
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
            Times a cold sequential scan at several readahead windows, one row each, and changes no setting: \
            the window in force is read as it is, the others are emulated. The windows take turns and share \
            the duration. Evicts from the OS page cache what it reads there, so it needs EXECUTE on \
            io_probe_evict too. Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes, \
            max_iops, max_mib_s, max_util_pct, max_p99, precision, wait",
    example: "'public.probed', '{64}', '10 ms'",
    errors: &[],
}];
