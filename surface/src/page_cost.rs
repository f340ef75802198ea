//! How long it takes to read a block.

use crate::function::{Function, MEASURE, MEASURING, Returns, optional, options, required};
use crate::row::{Row, row};
use crate::shared::{CaveatColumns, IntervalColumns, PlaceColumns};
use crate::value::Timestamp;

row! {
    /// one method of reading a block, or the work on a tuple
    row PageCostRow "page_cost" everyday [
        tier, pattern, density, depth, block_us, err_pct, tuple_us, blks, relid, doubt
    ] {
        /// Which tier serves the block: shared (shared buffers), os (OS cache) or device. For
        /// pattern tuple: cpu
        tier: &'static str,
        /// sequential: in order; random: one block at a time in random order, as an index scan; sparse:
        /// ascending with gaps, as a bitmap heap scan; tuple: the executor's work on the tuples of a block
        pattern: &'static str,
        /// Pattern sparse: what share of the blocks is read, over 0 and at most 1. NULL for other patterns
        density: Option<f64>,
        /// Reads in flight. random: 1; sparse: effective_io_concurrency (0: each block is read when it is
        /// needed). NULL if the server decides
        depth: Option<u32>,
        /// Mean us to get a block, without the work on its tuples. Pattern tuple: us of that work per block
        block_us: Option<f64>,
        /// Number of blocks that were timed; for pattern tuple, number of tuples
        blks: u64,
        /// Percent of the blocks that were in the OS cache before the read
        os_pct: Option<f64>,
        /// Pattern tuple: CPU time in us to count one tuple, without getting its page. NULL for other
        /// patterns
        tuple_us: Option<f64>,
        /// Number of turns, including turns that block_us leaves out; for pattern tuple, number of pairs of
        /// timed counts
        turns: u64,
        /// Seed of the random order; option or argument seed repeats it
        seed: i64,
        /// When the call started; if it has several paths, when this path started
        started_at: Timestamp,
        ..place: PlaceColumns,
        ..caveats: CaveatColumns,
        ..interval: IntervalColumns,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "page_cost",
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
    comment: "\
        Times the operations behind planner costs. Reads blocks from shared buffers, the OS page cache and \
        the device, in order, at random, and ascending with gaps at several densities and \
        effective_io_concurrency settings. Takes 14 s by default, and up to 28 s if some time is not known \
        to within 10 % by then. Afterwards it drops from the OS page cache what it read from the device. \
        cold => true evicts pages that were cached before; it needs EXECUTE on io_probe_evict. Without cold, \
        a cached relation has only one row of tier device: random reads by O_DIRECT. Needs EXECUTE, and \
        SELECT or MAINTAIN on the relation. Options: max_bytes (separately for sequential, for random and \
        for each depth of sparse), max_iops, max_mib_s, max_util_pct, max_p99, precision, wait",
    example: "'public.probed', '{1}', '{1}', '2 ms', cold => true",
    ..MEASURE
}];
