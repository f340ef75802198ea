//! How long it takes to read a block.

use crate::function::{Function, Group, MEASURING, Returns, Who, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, IntervalColumns, PlaceColumns};
use crate::value::Timestamp;

row! {
    /// one way to read a block, or the work on a tuple
    row PageCostRow "page_cost" everyday [
        tier, pattern, density, depth, block_us, err_pct, tuple_us, blks, relid, doubt
    ] {
        /// What serves the block: shared (shared buffers), os (OS cache) or device; cpu for pattern tuple
        tier: &'static str,
        /// sequential: in order; random: one block after the other in no order, as an index scan; sparse:
        /// ascending with gaps, as a bitmap heap scan; tuple: the executor's work on the tuples of a block
        pattern: &'static str,
        /// Pattern sparse: share of the blocks that is read, over 0 and at most 1; else NULL
        density: Option<f64>,
        /// Reads in flight: 1 for random, effective_io_concurrency for sparse (0: when needed); NULL if the
        /// server decides
        depth: Option<u32>,
        /// us per block read, without the work on its tuples; for pattern tuple, that work
        block_us: Option<f64>,
        /// Blocks that were timed; for pattern tuple, tuples
        blks: u64,
        /// Percent of the blocks that the OS cache held before
        os_pct: Option<f64>,
        /// Pattern tuple: us per tuple in a count of all, without the page; else NULL
        tuple_us: Option<f64>,
        /// Turns, also those that block_us leaves out; of pattern tuple pairs of counts
        turns: u64,
        /// Seed of the random order; option or argument seed repeats it
        seed: i64,
        /// When the call, or this path of it, started
        started_at: Timestamp,
        ..place: PlaceColumns,
        ..caveats: CaveatColumns,
        ..interval: IntervalColumns,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "page_cost",
    calls: None,
    arguments: &[
        required("rel", "regclass"),
        optional("densities", "double precision[]", "'{0.03,0.1,0.2,0.35,0.5,0.72,1}'"),
        optional("concurrencies", "integer[]", "NULL"),
        optional("duration", "text", "NULL"),
        optional("cold", "boolean", "false"),
        optional("seed", "bigint", "NULL"),
        options(MEASURING),
    ],
    returns: Returns::Rows(&PageCostRow::TYPE, 42),
    group: Group::Measure,
    who: Who::Owner,
    comment: "\
            Times what planner costs stand for: reading a block from shared buffers, the OS page cache and \
            the device, in order, at random, and ascending with gaps at several densities and \
            effective_io_concurrency settings. Takes 14 s by default, up to twice that if a time is not \
            known to within a tenth by then. What it reads from the device it drops from the OS page cache \
            afterwards. Of a cached relation the device has one row, of random reads by O_DIRECT. Only with \
            cold => true, which needs EXECUTE on io_probe_evict, are pages evicted that were cached before. \
            Needs EXECUTE, and SELECT or MAINTAIN on the relation. Options: max_bytes (for each of \
            sequential, random and the depths of sparse; all together may read their sum), max_iops, \
            max_mib_s, max_util_pct, max_p99, precision, wait",
    example: "'public.probed', '{1}', '{1}', '2 ms', cold => true",
    errors: &[],
}];
