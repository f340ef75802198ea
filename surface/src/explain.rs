//! A plan as rows, and who served each node's reads. PUBLIC may execute these: they can do nothing that
//! EXPLAIN can't.

use crate::function::OptionName::{self, Exact, PageCost};
use crate::function::{Function, LOOK, QUERY, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::value::{Relation, Text};

row! {
    /// one plan node. If the query was executed, the last row has the sums, and its node_id is NULL. If not,
    /// columns that need an execution are NULL
    row ExplainRow "explain" everyday [
        node, relid, self_ms, io_ms, os_mib, device_mib, temp_mib
    ] {
        /// Number of the node, from 1, in the order of EXPLAIN; NULL in the row of sums
        node_id: Option<u32>,
        /// Number of the node above it; NULL for the top node
        parent_id: Option<u32>,
        /// Level of the node; the top node has 0
        level: u32,
        /// Type of the node as EXPLAIN prints it. In the row of sums, the cause of the time: the disk (the
        /// query waited for it at least 50 % of the time), partly the disk (at least 10 %), not the disk, or
        /// unknown
        node_type: Text,
        /// node_type, indented by level; the row of sums begins with =
        node: Text,
        /// Table that the node reads or modifies (of a Bitmap Index Scan: the index's table). Join it with
        /// relid of any probe
        relid: Option<Relation>,
        /// Index that the node reads
        indexid: Option<Relation>,
        /// Name in the query for what the node scans
        alias: Option<Text>,
        /// How the node reaches its blocks: sequential, random or bitmap; NULL if it scans nothing
        access: Option<&'static str>,
        /// Blocks found in shared buffers. All figures are of the node itself, without the nodes below it,
        /// unless the column says otherwise
        shared_blks_hit: Option<u64>,
        /// Blocks read into shared buffers
        shared_blks_read: Option<u64>,
        /// MiB read from the OS cache; NULL if unknown
        os_mib: Option<f64>,
        /// MiB fetched from the device. The kernel's readahead counts, even if nobody needed it
        device_mib: Option<f64>,
        /// MiB of temporary files that were read and written
        temp_mib: Option<f64>,
        /// Blocks of temporary files read
        temp_blks_read: Option<u64>,
        /// Blocks of temporary files written
        temp_blks_written: Option<u64>,
        /// Part of self_ms in which the node waited for blocks of tables and indexes. All times are means
        /// over the parallel processes. NULL if argument plan was made without track_io_timing
        io_ms: Option<f64>,
        /// Part of self_ms spent on temporary files: a sort, a hash or a CTE did not fit into memory
        temp_io_ms: Option<f64>,
        /// Part of total_ms that the node itself took. With many short calls, it is sampled every ms
        self_ms: Option<f64>,
        /// Time in ms of the node and of the nodes below it
        total_ms: Option<f64>,
        /// Number of processes that ran this part of the plan: below a Gather the workers and the leader,
        /// else 1
        processes: Option<u64>,
        /// Rows per loop that the planner estimated
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
        /// Part of io_ms spent on blocks of temporary tables; NULL before PostgreSQL 17
        local_io_ms: Option<f64>,
        /// io_ms as predicted from the times that io_probe_page_cost measured. If io_ms is much longer,
        /// requests had to queue, or others used the device. NULL if several processes ran the node
        expected_ms: Option<f64>,
        /// Predicted ms if all shared_blks_read came from the OS cache
        os_ms: Option<f64>,
        /// Predicted ms if all shared_blks_read came from the device, in the node's order. In PostgreSQL 18
        /// and later io_ms is shorter if waiting overlaps with work
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
        arguments: &[required("query", "text"), optional("execute", "boolean", "false"), options(OPTIONS)],
        returns: Returns::Rows(&ExplainRow::TYPE, 20),
        who: Who::Everyone,
        comment: "\
            Shows the plan of one query, a row per node. execute => true runs the query, read-only. Then \
            each row has the blocks and times of the node itself, and which tier served the blocks. The last \
            row has the sums, and tells whether the disk was the cause. Everyone may call it. Options: \
            page_cost (rows of io_probe_page_cost for the predictions, instead of what this session measured \
            last), exact (in PostgreSQL 18 and later with I/O workers: the backend itself reads, with \
            effective_io_concurrency 0, so that the bytes of each node are exact)",
        example: "'SELECT FROM public.probed', true",
        errors: &[QUERY],
        ..LOOK
    },
    Function {
        name: "explain",
        calls: Some("explain_json"),
        arguments: &[required("plan", "json"), options(OPTIONS_OF_PLAN)],
        returns: Returns::Rows(&ExplainRow::TYPE, 20),
        who: Who::Everyone,
        comment: "\
            Shows a plan that EXPLAIN (FORMAT JSON) or auto_explain printed, as io_probe_explain(query) \
            does. Name the argument: io_probe_explain(plan => '...'). Looks up names, sizes and settings in \
            this database. Everyone may call it. Option page_cost: works as in io_probe_explain(query)",
        example: "plan => '[{\"Plan\": {\"Node Type\": \"Seq Scan\", \"Schema\": \"public\", \
            \"Relation Name\": \"probed\"}}]'",
        errors: &[QUERY],
        ..LOOK
    },
    Function {
        name: "explain_text",
        arguments: &[required("query", "text")],
        returns: Returns::Rows(&ExplainTextRow::TYPE, 20),
        who: Who::Everyone,
        comment: "\
            Runs EXPLAIN (ANALYZE, BUFFERS) of a query that only reads. After the Buffers of each node, one \
            more line says which tier served its reads, and how long the node waited. The last line says \
            whether the disk was the cause. Everyone may call it",
        example: "'SELECT FROM public.probed'",
        errors: &[QUERY],
        ..LOOK
    },
];
