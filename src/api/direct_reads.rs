//! Reads of a relation past the page cache, as others may make them meanwhile.

use io_probe_core::measure::load::BlockReads;
use io_probe_core::measure::random::{FetchOrder, Look};
use io_probe_core::run::order::Permutation;

use crate::call::{Call, Failure, Outcome, ProbedRelation};

/// Reads of several blocks that lie one behind the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runs {
    /// Bytes of a read.
    pub(super) bytes: usize,
    /// The seed of their order; None: one behind the other.
    pub(super) random: Option<u64>,
}

/// By so many workers: single blocks in a random order of this seed, or such runs.
pub(super) fn of(
    call: &Call,
    relation: &ProbedRelation,
    seed: u64,
    workers: usize,
    runs: Option<Runs>,
) -> Outcome<BlockReads> {
    let source = &relation.source;
    // For runs all blocks are known beforehand.
    let most = if runs.is_some() { BlockReads::MOST } else { u64::MAX };
    let blocks = source.blocks_of_open_files().min(most);
    let mut order = FetchOrder::new(source, Permutation::new(blocks, seed), 0, Look::Never);
    order.inspect_segments(&mut || call.should_stop(&relation.interrupts))?;
    let reads =
        call.with_budget(&relation.interrupts, |budget| BlockReads::of(&mut order, workers, budget))?;
    in_runs(reads, workers, runs)
}

/// Joins reads of blocks to such runs.
pub(super) fn in_runs(reads: Option<BlockReads>, workers: usize, runs: Option<Runs>) -> Outcome<BlockReads> {
    let none = |why: &str| Failure::Unsupported(why.to_owned());
    let reads = reads.ok_or_else(|| none("there is no data to read"))?;
    let Some(Runs { bytes, random }) = runs else { return Ok(reads) };
    let in_runs = reads.in_runs(bytes, random, workers)?;
    in_runs.ok_or_else(|| none("no data is as long in one piece as a request"))
}
