//! A plan as rows. PUBLIC may execute these: they can do nothing that EXPLAIN can't.

use crate::function::OptionName::{self, PageCost};
use crate::function::{Function, QUERY, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::value::{Relation, Text};

row! {
    /// one plan node
    row ExplainRow "explain" everyday [
        node_id, node, relid, shared_blks_read, self_ms, io_ms, temp_io_ms, os_ms, device_ms
    ] {
        /// Number of the node: 1 for the top node, then in the order in which EXPLAIN prints them
        node_id: u32,
        /// Node below which EXPLAIN prints this one; NULL for the top node
        parent_id: Option<u32>,
        /// Levels below the top node, which has 0
        level: u32,
        /// Name of the node as EXPLAIN prints it
        node_type: Text,
        /// node_type, indented by level
        node: Text,
        /// Table that the node reads or modifies, for a Bitmap Index Scan the table that it works for; joins
        /// with every probe. NULL without a table
        relid: Option<Relation>,
        /// Index that the node reads; NULL without an index
        indexid: Option<Relation>,
        /// Name in the query of what the node scans
        alias: Option<Text>,
        /// How the node reaches its blocks: sequential, random or bitmap; NULL for a node that scans nothing
        access: Option<&'static str>,
        /// Blocks that the node itself found in shared buffers; NULL unless executed
        shared_blks_hit: Option<u64>,
        /// Blocks that the node itself read into shared buffers, from the OS page cache or the device; NULL
        /// unless executed
        shared_blks_read: Option<u64>,
        /// Blocks of temporary files that the node itself read; NULL unless executed
        temp_blks_read: Option<u64>,
        /// Blocks of temporary files that the node itself wrote; NULL unless executed
        temp_blks_written: Option<u64>,
        /// Time in ms that the node itself waited for blocks of tables and indexes, summed over all
        /// processes, so it can be more than self_ms; temporary files are in temp_io_ms. NULL without
        /// track_io_timing
        io_ms: Option<f64>,
        /// Time in ms that the node itself spent reading and writing temporary files, summed over all
        /// processes: the cost of a sort, a hash or a CTE that spilled. NULL without track_io_timing
        temp_io_ms: Option<f64>,
        /// Part of total_ms that the node itself took, never negative. The sum over all nodes is the total_ms
        /// of the top node
        self_ms: Option<f64>,
        /// Wall-clock time in ms in the node and below it: average per loop times loops; if processes ran it
        /// in parallel, the mean over them. No node has more than the node above it
        total_ms: Option<f64>,
        /// How many processes ran this part of the plan in parallel: below a Gather its workers and the
        /// leader, else 1. self_ms times processes is their time together
        processes: Option<u64>,
        /// Rows per loop that the planner expected
        plan_rows: Option<f64>,
        /// Rows per loop that the node returned; NULL unless executed
        actual_rows: Option<f64>,
        /// How often the node was started, summed over all processes; NULL unless executed
        loops: Option<u64>,
        /// The planner's cost up to the first row
        startup_cost: Option<f64>,
        /// The planner's cost up to the last row
        total_cost: Option<f64>,
        /// Blocks of temporary tables that the node itself found in the session's own buffers; NULL unless
        /// executed
        local_blks_hit: Option<u64>,
        /// Blocks of temporary tables that the node itself read into the session's own buffers; NULL unless
        /// executed
        local_blks_read: Option<u64>,
        /// Part of io_ms for blocks of temporary tables; NULL up to PostgreSQL 16, which does not tell it
        /// apart
        local_io_ms: Option<f64>,
        /// Predicted time in ms of the node's own shared blocks if all of shared_blks_read came from the OS
        /// page cache, from measured times, one process at a time; NULL unless executed and the times are
        /// known
        os_ms: Option<f64>,
        /// Predicted time in ms of the node's own shared blocks if all of shared_blks_read came from the
        /// device, in the order in which the node reaches them; NULL unless executed and the times are known.
        /// The real time lies between os_ms and device_ms, nearer to what served; io_ms is less if waiting
        /// overlaps with work (from PostgreSQL 18 on)
        device_ms: Option<f64>,
    }
}

/// Its options.
pub const OPTIONS: &[OptionName] = &[PageCost];

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "explain",
        calls: None,
        arguments: &[required("query", "text"), optional("execute", "boolean", "false"), options(OPTIONS)],
        returns: Returns::Rows(&ExplainRow::TYPE, 20),
        who: Who::Everyone,
        comment: "\
            Plan of one query as rows, one per node. With execute => true the query is run, in a read-only \
            subtransaction, and each row has the blocks and times of the node itself; the sums over all \
            nodes are those of the statement. Everyone may call it. Option page_cost: rows of \
            io_probe_page_cost to predict from, instead of those that this session measured last in the \
            tablespace",
        example: "'SELECT FROM public.probed', true",
        errors: &[QUERY],
    },
    Function {
        name: "explain",
        calls: Some("explain_json"),
        arguments: &[required("plan", "json"), options(OPTIONS)],
        returns: Returns::Rows(&ExplainRow::TYPE, 20),
        who: Who::Everyone,
        comment: "\
            The same rows from an EXPLAIN (FORMAT JSON) that was taken elsewhere, such as in the log of \
            auto_explain: io_probe_explain(plan => '...'). Names are looked up in this database, and so are \
            sizes and settings for predictions. Everyone may call it. Option page_cost: as for a query",
        example: "plan => '[{\"Plan\": {\"Node Type\": \"Seq Scan\", \"Schema\": \"public\", \
            \"Relation Name\": \"probed\"}}]'",
        errors: &[QUERY],
    },
];
