//! The devices while the database works, as iostat shows them.

use crate::function::OptionName::{self, Device};
use crate::function::{Function, QUERY, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, SampleColumns};

row! {
    /// one device in one interval
    row IostatRow "iostat" everyday [
        sample, device, util_pct, aqu_sz, r_s, rmib_s, r_await_ms, wmib_s, w_await_ms, doubt
    ] {
        ..caveats: CaveatColumns,
        ..sample: SampleColumns,
    }
}

row! {
    /// one device in one interval, as in io_probe_iostat; the last row has no device, but the query's own
    /// figures
    row IostatQueryRow "iostat_query" everyday [
        device, elapsed_ms, util_pct, aqu_sz, r_s, rmib_s, r_await_ms, rareq_kb, wmib_s, doubt
    ] {
        /// Rows that the query returned, all of which were discarded. This and the following columns are NULL
        /// but in the last row
        query_rows: Option<u64>,
        /// Blocks that the query found in shared buffers, including its planning and its parallel workers.
        /// The columns from here to wal_bytes count as EXPLAIN (BUFFERS, WAL) does
        shared_blks_hit: Option<i64>,
        /// Blocks that the query asked the operating system for
        shared_blks_read: Option<i64>,
        /// Blocks that the query changed, hint bits and pruning included
        shared_blks_dirtied: Option<i64>,
        /// Blocks that the query itself had to write to make room in shared buffers, no matter which session
        /// had changed them
        shared_blks_written: Option<i64>,
        /// Blocks of temporary tables that the query found in the session's own buffers
        local_blks_hit: Option<i64>,
        /// Blocks of temporary tables that the query read
        local_blks_read: Option<i64>,
        /// Blocks of temporary tables that the query wrote
        local_blks_written: Option<i64>,
        /// Blocks of temporary files (sorts, hashes) that the query read
        temp_blks_read: Option<i64>,
        /// Blocks of temporary files that the query wrote
        temp_blks_written: Option<i64>,
        /// WAL that the query wrote, in bytes: a query that reads may prune pages and set hint bits
        wal_bytes: Option<u64>,
        /// Bytes fetched from storage for the query; NULL if unknown, as with parallel workers, and a note
        /// says why
        device_bytes: Option<u64>,
        /// Whose reads device_bytes counts: backend (this process alone) or io_workers (which read for other
        /// sessions too)
        device_source: Option<&'static str>,
        ..caveats: CaveatColumns,
        ..sample: SampleColumns,
    }
}

/// Its options.
pub const OPTIONS: &[OptionName] = &[Device];

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "iostat",
        calls: None,
        arguments: &[optional("every", "text", "'1 s'"), optional("count", "integer", "1"), options(OPTIONS)],
        returns: Returns::Rows(&IostatRow::TYPE, 10),
        who: Who::Monitor,
        comment: "\
            Watches devices for count intervals, as iostat -x does, with CPU use and I/O pressure: the \
            devices behind the tablespaces, the WAL and temporary files, or the one that option device \
            names. The first row is the first interval, never the time since boot. Reads /proc and /sys, and \
            causes no I/O. Takes no lock, so it runs beside a probe. pg_monitor may call it. Options: device",
        example: "'10 ms'",
        errors: &[],
    },
    Function {
        name: "iostat_query",
        calls: None,
        arguments: &[required("query", "text"), optional("every", "text", "'1 s'"), options(OPTIONS)],
        returns: Returns::Rows(&IostatQueryRow::TYPE, 10),
        who: Who::Owner,
        comment: "\
            Runs a query with the caller's rights, discards its rows, and returns the rows of \
            io_probe_iostat for the time that it took, then one row with the query's own figures. The query \
            must be one statement that reads; a statement that writes is refused. Only statement_timeout \
            limits its time. Takes no lock, so the query may call a probe, and this function up to four \
            deep. Needs EXECUTE. Options: device",
        example: "'SELECT FROM public.probed', '10 ms'",
        errors: &[QUERY, &["25000"]],
    },
];
