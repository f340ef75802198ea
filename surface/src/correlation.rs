//! Where the rows of indexes lie, and correlations that the planner uses in place of what ANALYZE found.

use crate::function::{ADVISE, Function, LOOK, Returns, Who, required};
use crate::row::{Row, row};
use crate::shared::CaveatColumns;
use crate::value::{Json, Relation, Text};

row! {
    /// one index
    row CorrelationRow "correlation" everyday [
        index, correlation, stored, scattered_pct, stretch_blks, ordered_blks, range_blks, random_blks, doubt
    ] {
        /// The index
        index: Relation,
        /// Correlation that ANALYZE found for the index's first column or expression, from -1 to 1
        correlation: Option<f64>,
        /// Correlation that io_probe_correct stored for the index; NULL if the caller may not see the
        /// statistics
        stored: Option<f64>,
        /// Percent of the rows that are stored far (over 5 % of the table) from their neighbours in the
        /// index. Up to a value of 5, scattered rows in the same block count as one
        scattered_pct: Option<f64>,
        /// Number of blocks from which rows that are not scattered come at any moment of an index scan; up to
        /// 4: stored in index order
        stretch_blks: Option<u64>,
        /// Number of blocks that a scan of 1 % of the index would visit if its rows were stored next to each
        /// other
        ordered_blks: Option<u64>,
        /// Number of different blocks that a scan of 1 % of the index visits, estimated from samples
        range_blks: Option<u64>,
        /// Number of range_blks visited in no order or backwards: the kernel does not read ahead for them
        random_blks: Option<u64>,
        /// Access method of the index; the figures are NULL unless it is btree
        method: Text,
        /// Table of the index
        relid: Relation,
        /// 95 % confidence intervals of scattered_pct and stretch_blks; number of index entries read; ranges:
        /// for 0.01, 0.1, 1 and 10 percent of the index {ordered_blks, blks, ci_blks, random_blks,
        /// random_ci_blks}
        evidence: Option<Json>,
        ..caveats: CaveatColumns,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "correlation",
        arguments: &[required("rel", "regclass")],
        returns: Returns::Rows(&CorrelationRow::TYPE, 4),
        who: Who::Owner,
        comment: "\
            Shows how far the rows of a table are stored in the order of each index, and the correlation \
            that the planner uses. Reads some pages of each btree index, and nothing of the table. Needs \
            EXECUTE, and SELECT or MAINTAIN on the table. The figures are NULL without SELECT, or if the \
            caller is under row-level security",
        example: "'public.probed'",
        ..LOOK
    },
    Function {
        name: "correct",
        arguments: &[required("index", "regclass"), required("correlation", "double precision")],
        returns: Returns::Value("void"),
        comment: "\
            Stores a correlation, from 0 to 1, for a btree index; NULL deletes it. The planner uses it in \
            all sessions that have loaded the library (session_preload_libraries = 'pg_io_probe'). Needs \
            EXECUTE. The caller must own the table or, in PostgreSQL 17 and later, have MAINTAIN on it",
        example: "'public.corrected_pkey', 0.5",
        errors: &[&["25006", "22003", "22P02"]],
        ..ADVISE
    },
];
