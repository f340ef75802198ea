//! Fetches at several depths: the curve of rate and latency, and its knee.
//!
//! The depths take turns in twenty rounds, so that a device whose speed drifts, as shared ones do by a factor
//! of three within minutes, affects no part of the curve more than another. The rounds of a depth are its
//! slices: they lie far apart, and the interval is taken over them. Under a rate limit there is one round.

use std::ops::ControlFlow::{Break, Continue};

use super::{Plan, Queued, RandomRun, run};
use crate::Result;
use crate::engine::Engine;
use crate::run::budget::{Budget, Limits, Stop};
use crate::run::order::Permutation;
use crate::run::rounds::{Contenders, Ended, Rounds, Turn};
use crate::stats::{self, MIN_SLICES, Slice};

/// Rounds, as many as an interval needs slices.
const ROUNDS: u32 = MIN_SLICES as u32;

/// What was found at one depth.
#[derive(Debug, Clone)]
pub struct Step {
    /// Requests in flight.
    pub depth: usize,
    /// All rounds together; None if there was none.
    pub run: Option<RandomRun>,
    rounds: Vec<Slice>,
}

/// What to sweep through.
#[derive(Debug, Clone, Copy)]
pub struct Sweep<'a> {
    /// Depths.
    pub depths: &'a [usize],
    /// Bounds of one depth.
    pub limits: Limits,
    /// When every block was fetched, the sweep begins again in the order of the next seed, `seed + 1`.
    pub seed: u64,
}

/// What fetches: at depth 1 as a run of that depth would, and at the others.
pub struct Engines {
    /// For depth 1.
    pub single: Box<dyn Engine>,
    /// For the others, with as many slots as the deepest of them.
    pub queue: Box<dyn Engine>,
}

impl Engines {
    /// The one that fetches at this depth.
    pub fn at(&mut self, depth: usize) -> &mut dyn Engine {
        if depth == 1 { self.single.as_mut() } else { self.queue.as_mut() }
    }
}

/// Fetches blocks of `plan` through `engines` at each depth in turn. `progress` gets the number of blocks
/// fetched.
///
/// Returns the depths as they were given, and the reason why not all rounds were made.
pub fn sweep(
    plan: &mut Plan<'_>,
    engines: &mut Engines,
    sweep: Sweep<'_>,
    budget: &mut Budget<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(Vec<Step>, Option<Stop>)> {
    let Sweep { depths, limits, seed } = sweep;
    let block_size = u64::from(plan.source().block_size());
    // Each round would begin a schedule of its own; and each needs a block at least.
    let limited = limits.make_pauses();
    let rounds = if limited { 1 } else { (limits.max_bytes / block_size).clamp(1, u64::from(ROUNDS)) as u32 };
    let limits = Limits {
        duration: limits.duration / rounds,
        max_bytes: limits.max_bytes / u64::from(rounds),
        ..limits
    };
    let steps = depths.iter().map(|&depth| Step { depth, run: None, rounds: Vec::new() }).collect();
    let mut depths = Depths { plan, engines, limits, seed, progress, fetched: 0, steps };
    let rounds = Rounds::new(rounds.into(), depths.steps.len()).as_given();
    let ended = rounds.take(&mut depths, budget)?;
    Ok((depths.steps, ended.break_value().flatten()))
}

/// Depths that take turns.
struct Depths<'a, 'p> {
    plan: &'a mut Plan<'p>,
    engines: &'a mut Engines,
    /// Bounds of one turn.
    limits: Limits,
    seed: u64,
    progress: &'a mut dyn FnMut(u64),
    fetched: u64,
    steps: Vec<Step>,
}

impl Contenders for Depths<'_, '_> {
    fn turn(&mut self, turn: Turn, budget: &mut Budget<'_>) -> Result<Ended> {
        let run = self.fetch(self.steps[turn.contender].depth, budget)?;
        let stop = run.stop.filter(|stop| stop.is_for_all());
        self.steps[turn.contender].add(run);
        Ok(stop.map_or(Continue(()), |stop| Break(Some(stop))))
    }
}

impl Depths<'_, '_> {
    /// Fetches at a depth for a turn, again and again through the relation.
    fn fetch(&mut self, depth: usize, budget: &mut Budget<'_>) -> Result<RandomRun> {
        let mut turn = budget.part(&self.limits);
        let mut all: Option<RandomRun> = None;
        loop {
            if self.plan.is_complete() {
                self.seed = self.seed.wrapping_add(1);
                self.plan.restart(Permutation::new(self.plan.source().blocks(), self.seed));
            }
            let whole = self.plan.is_untouched();
            let mut queued = Queued::new(self.engines.at(depth), depth);
            let mut report = |blocks| (self.progress)(self.fetched + blocks);
            let one = run(self.plan, &mut queued, &self.limits, &mut turn, &mut report)?;
            self.fetched += one.fetches;
            // It came to the end of the relation. Where all of that is too small for a rate, another pass
            // won't help.
            let too_small = whole && one.rated.work == 0;
            let again = one.stop.is_none() && !too_small && !turn.time_left().is_zero();
            let sum = match all.take() {
                None => one,
                Some(sum) => sum.plus(one),
            };
            if !again {
                return Ok(sum);
            }
            all = Some(sum);
        }
    }
}

impl Step {
    fn add(&mut self, round: RandomRun) {
        self.rounds.extend((round.rated.work > 0).then_some(round.rated));
        let interval = stats::of_ratio(&self.rounds);
        let run = match self.run.take() {
            None => round,
            Some(sum) => sum.plus(round),
        };
        self.run = Some(RandomRun { interval: interval.filter(|_| !run.throttled), trend: None, ..run });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_without_a_rate_is_no_slice() {
        let mut step = Step { depth: 8, run: None, rounds: Vec::new() };
        let round = |work| RandomRun { rated: Slice { ns: work * 100_000, work }, ..RandomRun::default() };
        (1..ROUNDS).for_each(|_| step.add(round(10)));
        step.add(round(0));
        assert_eq!(step.run.as_ref().map(|run| run.interval), Some(None));
        step.add(round(10));
        assert!(step.run.is_some_and(|run| run.interval.is_some()));
    }
}
