//! Where the rows of indexes lie, and correlations that the planner uses in place of what ANALYZE found.

use crate::function::{Function, Group, Returns, Who, required};
use crate::row::{Row, row};
use crate::shared::CaveatColumns;
use crate::value::{Json, Relation, Text};

row! {
    /// one index
    row CorrelationRow "correlation" everyday [
        index, correlation, kept, scattered_pct, stretch_blks, ordered_blks, range_blks, random_blks, doubt
    ] {
        /// The index
        index: Relation,
        /// Correlation of the index's first column or expression by ANALYZE, -1 to 1
        correlation: Option<f64>,
        /// Correlation that io_probe_correct keeps for the index, if the caller may see the statistics
        kept: Option<f64>,
        /// Percent of the rows that lie far from those before and after them in the index. Up to 5 percent,
        /// those next to one another on one block count once
        scattered_pct: Option<f64>,
        /// Blocks from which the other rows come at any moment: up to 4 if the table is in index order
        stretch_blks: Option<u64>,
        /// Blocks that a range of 1 % of the index would visit if its rows lay together
        ordered_blks: Option<u64>,
        /// Blocks that a range of 1 % of the index visits by the samples, each counted once
        range_blks: Option<u64>,
        /// Part of range_blks reached in no order or backwards: the kernel does not read ahead
        random_blks: Option<u64>,
        /// Access method of the index; only btree is looked at
        method: Text,
        /// Table of the index
        relid: Relation,
        /// Intervals of scattered_pct and stretch_blks; index entries looked at; ranges: for 0.01, 0.1, 1 and
        /// 10 (percent of the index) {ordered_blks, blks, ci_blks, random_blks, random_ci_blks}
        evidence: Option<Json>,
        ..caveats: CaveatColumns,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "correlation",
        calls: None,
        arguments: &[required("rel", "regclass")],
        returns: Returns::Rows(&CorrelationRow::TYPE, 4),
        group: Group::Look,
        who: Who::Owner,
        comment: "\
            Where the rows of a table's indexes lie, beside the correlation that the planner uses. Reads \
            some pages of each btree index and nothing of the table. Needs EXECUTE, and SELECT or MAINTAIN \
            on the table. What the caller may not see in the statistics (it takes SELECT, and no row-level \
            security) is NULL",
        example: "'public.probed'",
        errors: &[],
    },
    Function {
        name: "correct",
        calls: None,
        arguments: &[required("index", "regclass"), required("correlation", "double precision")],
        returns: Returns::Value("void"),
        group: Group::Advise,
        who: Who::Owner,
        comment: "\
            Keeps a correlation, from 0 to 1, for a btree index; NULL forgets it. The planner uses it in all \
            sessions that have loaded the library (session_preload_libraries = 'pg_io_probe'). Needs \
            EXECUTE; the caller must own the table or, from PostgreSQL 17 on, have MAINTAIN on it",
        example: "'public.corrected_pkey', 0.5",
        errors: &[&["25006", "22003", "22P02"]],
    },
];
