//! A plan as rows, and who served each node's reads. PUBLIC may execute these: they can do nothing that
//! EXPLAIN can't.

use crate::function::OptionName::{self, Exact, PageCost};
use crate::function::{Function, Group, QUERY, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::value::{Relation, Text};

row! {
    /// one plan node; if the query was executed, the last row has the sums and no node_id. If it was not,
    /// columns that only a run can fill are NULL
    row ExplainRow "explain" everyday [
        node, relid, self_ms, io_ms, os_mib, device_mib, temp_mib
    ] {
        /// Number of the node, from 1, in the order of EXPLAIN; NULL for the sums
        node_id: Option<u32>,
        /// Number of the node above it; NULL for the top node
        parent_id: Option<u32>,
        /// Levels below the top node, which has 0
        level: u32,
        /// As EXPLAIN prints it; of the sums: the disk (at least half of the time was waiting for it), partly
        /// the disk (a tenth), not the disk, or unknown
        node_type: Text,
        /// node_type, indented by level; of the sums behind =
        node: Text,
        /// Table that the node reads, modifies, or (Bitmap Index Scan) works for; joins with every probe
        relid: Option<Relation>,
        /// Index that the node reads
        indexid: Option<Relation>,
        /// Name in the query of what the node scans
        alias: Option<Text>,
        /// How the node reaches its blocks: sequential, random or bitmap; NULL if it scans nothing
        access: Option<&'static str>,
        /// Blocks found in shared buffers by the node itself, as all figures
        shared_blks_hit: Option<u64>,
        /// Blocks read into shared buffers
        shared_blks_read: Option<u64>,
        /// MiB read from the OS cache; NULL if unknown
        os_mib: Option<f64>,
        /// MiB fetched from the device, with what the kernel read ahead, also in vain
        device_mib: Option<f64>,
        /// MiB of temporary files read and written
        temp_mib: Option<f64>,
        /// Blocks of temporary files read
        temp_blks_read: Option<u64>,
        /// Blocks of temporary files written
        temp_blks_written: Option<u64>,
        /// Part of self_ms that the node waited for blocks of tables and indexes; of parallel processes the
        /// mean, as all times. Of a plan NULL without track_io_timing
        io_ms: Option<f64>,
        /// Part of self_ms spent on temporary files: a sort, a hash or a CTE that spilled
        temp_io_ms: Option<f64>,
        /// Part of total_ms that the node itself took. With many short calls it is sampled every ms
        self_ms: Option<f64>,
        /// ms in the node and below it
        total_ms: Option<f64>,
        /// Processes that ran this part of the plan: below a Gather the workers and the leader, else 1
        processes: Option<u64>,
        /// Rows per loop that the planner expected
        plan_rows: Option<f64>,
        /// Rows per loop that the node returned
        actual_rows: Option<f64>,
        /// How often the node was started, summed over all processes
        loops: Option<u64>,
        /// The planner's cost up to the first row
        startup_cost: Option<f64>,
        /// The planner's cost up to the last row
        total_cost: Option<f64>,
        /// Blocks of temporary tables found in the session's own buffers
        local_blks_hit: Option<u64>,
        /// Blocks of temporary tables read
        local_blks_read: Option<u64>,
        /// Part of io_ms for blocks of temporary tables; NULL up to PostgreSQL 16
        local_io_ms: Option<f64>,
        /// ms of waiting by measured times: if io_ms is far above, requests queued or others used the device.
        /// NULL unless one process ran it
        expected_ms: Option<f64>,
        /// Predicted ms if all of shared_blks_read came from the OS cache
        os_ms: Option<f64>,
        /// Predicted ms if all came from the device, in the node's order; io_ms is less if waiting overlaps
        /// with work (from 18 on)
        device_ms: Option<f64>,
    }
}

row! {
    /// one line
    row ExplainTextRow "explain_text" everyday [] {
        /// The line
        plan: Text,
    }
}

/// Its options.
pub const OPTIONS: &[OptionName] = &[PageCost, Exact];
/// Those for a plan from elsewhere.
pub const OPTIONS_OF_PLAN: &[OptionName] = &[PageCost];

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "explain",
        calls: None,
        arguments: &[required("query", "text"), optional("execute", "boolean", "false"), options(OPTIONS)],
        returns: Returns::Rows(&ExplainRow::TYPE, 20),
        group: Group::Look,
        who: Who::Everyone,
        comment: "\
            Plan of one query, a row per node. With execute => true the query is run, read-only: each row \
            has the blocks and times of the node itself and who served them, a last row the sums and whether \
            it was the disk. Everyone may call it. Options: page_cost (rows of io_probe_page_cost to predict \
            from, instead of those that this session measured last), exact (from PostgreSQL 18 on with I/O \
            workers: the backend itself reads, with effective_io_concurrency 0, so that each node's bytes \
            are its own)",
        example: "'SELECT FROM public.probed', true",
        errors: &[QUERY],
    },
    Function {
        name: "explain",
        calls: Some("explain_json"),
        arguments: &[required("plan", "json"), options(OPTIONS_OF_PLAN)],
        returns: Returns::Rows(&ExplainRow::TYPE, 20),
        group: Group::Look,
        who: Who::Everyone,
        comment: "\
            Shows the same of an EXPLAIN (FORMAT JSON) that was taken elsewhere, as by auto_explain: \
            io_probe_explain(plan => '...'). Names, sizes and settings are looked up in this database. \
            Everyone may call it. Option page_cost: as for a query",
        example: "plan => '[{\"Plan\": {\"Node Type\": \"Seq Scan\", \"Schema\": \"public\", \
            \"Relation Name\": \"probed\"}}]'",
        errors: &[QUERY],
    },
    Function {
        name: "explain_text",
        calls: None,
        arguments: &[required("query", "text")],
        returns: Returns::Rows(&ExplainTextRow::TYPE, 20),
        group: Group::Look,
        who: Who::Everyone,
        comment: "\
            EXPLAIN (ANALYZE, BUFFERS) of a query that reads, with a line behind the Buffers of each node: \
            who served its reads, and how long it waited; the last line says whether it was the disk. \
            Everyone may call it",
        example: "'SELECT FROM public.probed'",
        errors: &[QUERY],
    },
];
