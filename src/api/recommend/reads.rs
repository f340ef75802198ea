//! Reads of a relation past the page cache, as others may make them meanwhile.

use io_probe_core::measure::load::BlockReads;
use io_probe_core::measure::random::{FetchOrder, Look};
use io_probe_core::run::order::Permutation;

use crate::call::{Call, Failure, Outcome, ProbedRelation, stop_if};

/// By so many workers: single blocks in a random order, or runs of so many bytes in order.
pub(super) fn of(
    call: &Call,
    relation: &ProbedRelation,
    seed: u64,
    workers: usize,
    run: Option<usize>,
) -> Outcome<BlockReads> {
    let source = &relation.source;
    let blocks = source.blocks_of_open_files().min(BlockReads::MOST);
    let mut order = FetchOrder::new(source, Permutation::new(blocks, seed), 0, Look::Never);
    stop_if(order.inspect_segments(&mut || call.should_stop(&relation.interrupts))?)?;
    let reads =
        call.with_budget(&relation.interrupts, |budget| BlockReads::of(&mut order, workers, budget))?;
    let reads = match (reads, run) {
        (Some(reads), Some(bytes)) => reads.in_runs(bytes, None, workers)?,
        (reads, _) => reads,
    };
    reads.ok_or_else(|| Failure::Unsupported("the relation has no data to read in this way".to_owned()))
}
