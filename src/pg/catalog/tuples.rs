//! What the executor does with a tuple: a count of all tuples in some blocks that are in shared buffers.
//!
//! It is done with the rights of the table's owner, from whom no policy hides rows.

use std::ffi::CStr;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use io_probe_core::measure::page_times::tuple::TuplesCounted;
use io_probe_core::run::clock::cpu_of_thread_ns;
use pgrx::{pg_sys, spi::Spi};

use crate::pg::backend::encoding::query_of;
use crate::pg::backend::subtransaction::read_only_if_possible;
use crate::pg::backend::{interrupts, names};
use crate::pg::catalog::planner;
use crate::pg::settings;
use crate::pg::storage::buffers::Usage;
use crate::pg::storage::relation::Relation;

/// Counts the tuples of these ranges of blocks, one after the other. None if they can't be counted within
/// `most`, or not without reading other blocks.
pub(crate) fn count(
    relation: &Relation,
    ranges: &[Range<u64>],
    most: Duration,
) -> Option<Vec<TuplesCounted>> {
    let alone = [
        (c"max_parallel_workers_per_gather", "0"),
        (c"jit", "off"),
        (c"enable_tidscan", "on"),
        (c"enable_seqscan", "off"),
        (c"constraint_exclusion", "off"),
    ];
    let alone = [&alone[..], &settings::PLAIN].concat();
    let conditions: Vec<String> = ranges
        .iter()
        .map(|blocks| {
            format!("WHERE ctid >= '({},0)'::tid AND ctid < '({},0)'::tid", blocks.start, blocks.end)
        })
        .collect();
    let work = AssertUnwindSafe(|| {
        // Planning locks the indexes, too: nothing is counted if a lock would have to be waited for.
        let relation = Relation::open_to_plan(relation.oid())?;
        let name = relation.qualified_name()?;
        relation.as_owner(|| {
            settings::with(&alone, || {
                Spi::connect(|_| {
                    let plan = query_of("EXPLAIN (FORMAT JSON) SELECT count(*)", name, conditions.first()?);
                    if planner::leaf_node(&plan, relation.oid())? != "Tid Range Scan" {
                        return None;
                    }
                    let counts = conditions.iter().map(|at| query_of("SELECT count(*)", name, at));
                    Some(counts.map(|statement| timed(&statement, relation.oid())).collect())
                })
            })
        })
    });
    read_only_if_possible(most, work).ok().flatten()
}

fn timed(statement: &CStr, table: pg_sys::Oid) -> TuplesCounted {
    interrupts::check();
    let reads = reads_so_far();
    // Not the wall clock: another process may have the processor meanwhile.
    let started = cpu_of_thread_ns();
    let rows = names::run(statement, &[], Some(table));
    let ns = cpu_of_thread_ns() - started;
    TuplesCounted { ns, tuples: rows.one_bigint() as u64, reads: reads_so_far() - reads }
}

fn reads_so_far() -> u64 {
    let usage = Usage::now().0;
    (usage.shared_blks_read + usage.local_blks_read) as u64
}
