//! A plan as rows, and who served each node's reads. PUBLIC may execute these: they can do nothing that
//! EXPLAIN can't.

use crate::function::OptionName::{self, Exact, PageCost};
use crate::function::{Function, Group, QUERY, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::value::{Relation, Text};

row! {
    /// one plan node; of a query that was executed the last row has no node_id, but the sums
    row ExplainRow "explain" everyday [
        node, relid, self_ms, io_ms, os_mib, device_mib, temp_mib
    ] {
        /// Number of the node: 1 for the top node, then in the order in which EXPLAIN prints them; NULL in
        /// the row of the sums
        node_id: Option<u32>,
        /// Node below which EXPLAIN prints this one; NULL for the top node
        parent_id: Option<u32>,
        /// Levels below the top node, which has 0
        level: u32,
        /// Name of the node as EXPLAIN prints it; in the row of the sums: the disk (at least half of the time
        /// was waiting for it), partly the disk (at least a tenth), not the disk, or unknown
        node_type: Text,
        /// node_type, indented by level; in the row of the sums behind =
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
        /// MiB that the node itself read and that the OS page cache had; NULL unless executed, and if
        /// device_mib is not known
        os_mib: Option<f64>,
        /// MiB that were fetched from the device for the node itself, what the kernel read ahead for it
        /// included: more than it read where that was in vain. NULL unless executed, and if it is not known
        device_mib: Option<f64>,
        /// MiB of temporary files that the node itself read and wrote; NULL unless executed
        temp_mib: Option<f64>,
        /// Blocks of temporary files that the node itself read; NULL unless executed
        temp_blks_read: Option<u64>,
        /// Blocks of temporary files that the node itself wrote; NULL unless executed
        temp_blks_written: Option<u64>,
        /// Part of self_ms that the node itself waited for blocks of tables and indexes; temporary files are
        /// in temp_io_ms. If processes ran it in parallel, the mean over them, as all times here. NULL unless
        /// executed; of a plan also if that was taken without track_io_timing
        io_ms: Option<f64>,
        /// Part of self_ms that the node itself spent reading and writing temporary files: the cost of a
        /// sort, a hash or a CTE that spilled. NULL as io_ms
        temp_io_ms: Option<f64>,
        /// Part of total_ms that the node itself took, never negative. The sum over all nodes is the total_ms
        /// of the top node, which the row of the sums has. In a query with many short calls of nodes it is by
        /// looks at which node is at work, every ms: TIMING, which makes such queries slow, is off
        self_ms: Option<f64>,
        /// Wall-clock time in ms in the node and below it; if processes ran it in parallel, the mean over
        /// them. No node has more than the node above it
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
        /// Time in ms that the node itself would wait by measured times, os_mib from the OS page cache and
        /// device_mib from the device: less than io_ms says that requests queued, or that others used the
        /// device. NULL unless executed by one process, the times are known and the tiers are
        expected_ms: Option<f64>,
        /// Predicted time in ms of the node's own shared blocks if all of shared_blks_read came from the OS
        /// page cache, from measured times; NULL unless executed and the times are known
        os_ms: Option<f64>,
        /// Predicted time in ms of the node's own shared blocks if all of shared_blks_read came from the
        /// device, in the order in which the node reaches them; NULL as os_ms. io_ms is less if waiting
        /// overlaps with work (from PostgreSQL 18 on)
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
            Plan of one query as rows, one per node. With execute => true the query is run, in a read-only \
            subtransaction, each row has the blocks and times of the node itself and who served them, and a \
            last row has the sums and says whether it was the disk. Everyone may call it. Options: page_cost \
            (rows of io_probe_page_cost to predict from, instead of those that this session measured last in \
            the tablespace), exact (from PostgreSQL 18 on with I/O workers: the backend itself reads, with \
            effective_io_concurrency 0, so that each node's bytes are its own)",
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
            The same rows from an EXPLAIN (FORMAT JSON) that was taken elsewhere, such as in the log of \
            auto_explain: io_probe_explain(plan => '...'). Names are looked up in this database, and so are \
            sizes and settings for predictions. Everyone may call it. Option page_cost: as for a query",
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
            who served its reads, and how long it waited. The last line says whether it was the disk. \
            Everyone may call it",
        example: "'SELECT FROM public.probed'",
        errors: &[QUERY],
    },
];
