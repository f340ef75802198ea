//! Fetches at several depths: the curve of rate and latency, and its knee.
//!
//! The depths take turns in twenty rounds, so that a device whose speed drifts, as shared ones do by a factor
//! of three within minutes, affects no part of the curve more than another. The rounds of a depth are its
//! slices: they lie far apart, and the interval is taken over them. Under a rate limit there is one round.
//!
//! To fill a queue and to wait until it is empty takes as many requests as it is deep, each time. Where that
//! is much of a turn, by the turns of the first round, there are fewer and longer ones, the longest for the
//! deepest queues; and a turn ends so early that its last requests come back in its time.
//!
//! The beginning of a turn makes no part of its rate. A volume that is held at a limit lets through at once
//! what it has saved up meanwhile, as much as it gives in 10 ms or more, and a shallow depth before leaves it
//! all. A limit of a control group lets requests through in bursts, and nothing between them: there a turn
//! begins with one that makes no part of the rate, and lasts several.

use std::ops::ControlFlow::{Break, Continue};
use std::time::Duration;

use super::{FetchOrder, Lead, Queued, RandomRun, run_after};
use crate::Result;
use crate::engine::Engine;
use crate::run::budget::{Budget, Limits, Stop};
use crate::run::clock::nanoseconds;
use crate::run::order::Permutation;
use crate::run::rounds::{Contenders, Ended, Rounds, Turn};
use crate::stats::{self, MIN_SLICES, MIN_TURNS, Slice, median};

/// Rounds, as many as an interval needs slices.
const ROUNDS: u32 = MIN_SLICES as u32;

/// Fewest rounds after the first, in which turns may be too short.
const LEAST_ROUNDS: u32 = MIN_TURNS as u32;

/// Fewest requests of a turn that make its rate.
const LEAST_RATED: usize = 16;

/// The beginning of a turn that makes no part of its rate: this part of it, and no more than this.
const LEAD: u32 = 3;
const LONGEST_LEAD: Duration = Duration::from_millis(50);

/// Bursts of a limit that a turn lasts at least.
const BURSTS: u32 = 5;

/// Least factor of a step of all depths together, by so few rounds.
const STEP: f64 = 2.0;

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
    /// From one burst to the next, where a limit lets requests through in bursts; else zero.
    pub bursts_every: Duration,
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

/// Fetches blocks in this order through `engines` at each depth in turn. `progress` gets the number of blocks
/// fetched.
///
/// Returns the depths as they were given, and the reason why not all rounds were made.
pub fn sweep(
    fetch_order: &mut FetchOrder<'_>,
    engines: &mut Engines,
    sweep: Sweep<'_>,
    budget: &mut Budget<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(Vec<Step>, Option<Stop>)> {
    let Sweep { depths, limits, seed, bursts_every } = sweep;
    let block_size = u64::from(fetch_order.source().block_size());
    // Each round would begin a schedule of its own; and each needs a block at least.
    let limited = limits.make_pauses();
    let bursts = limits.duration.as_secs_f64() / bursts_every.as_secs_f64();
    let room = ROUNDS.min((bursts / f64::from(BURSTS)) as u32).max(1);
    let rounds = if limited { 1 } else { (limits.max_bytes / block_size).clamp(1, room.into()) as u32 };
    let all: Vec<Step> = depths.iter().map(|&depth| Step { depth, run: None, rounds: Vec::new() }).collect();
    let whole = limits.duration.saturating_mul(depths.len() as u32);
    let ends = budget.clock().now().saturating_add(nanoseconds(whole));
    let lengths = vec![TurnLength { all: limits.duration / rounds, draining: Duration::ZERO }; depths.len()];
    let first = if limited { rounds } else { 1 };
    let mut depths = Depths {
        fetch_order,
        engines,
        limits: Limits { max_bytes: limits.max_bytes / u64::from(rounds), ..limits },
        seed,
        bursts_every,
        progress,
        fetched: 0,
        ends: None,
        rounds: first,
        lengths,
        steps: all,
    };
    let contenders = depths.steps.len();
    let mut ended = Rounds::new(first.into(), contenders).as_given().take(&mut depths, budget)?;
    if ended.is_continue() && rounds > first {
        depths.plan(ends, rounds - first, budget);
        ended = Rounds::new(depths.rounds.into(), contenders).as_given().take(&mut depths, budget)?;
    }
    depths.find_step();
    Ok((depths.steps, ended.break_value().flatten()))
}

/// How long a turn lasts, and how much of that its last requests take.
#[derive(Debug, Clone, Copy)]
struct TurnLength {
    all: Duration,
    draining: Duration,
}

/// Depths that take turns.
struct Depths<'a, 'p> {
    fetch_order: &'a mut FetchOrder<'p>,
    engines: &'a mut Engines,
    /// Bounds of one turn, apart from its time.
    limits: Limits,
    seed: u64,
    /// From one burst that a limit lets through to the next, or zero.
    bursts_every: Duration,
    progress: &'a mut dyn FnMut(u64),
    fetched: u64,
    /// When all turns have to end, in the clock's nanoseconds; None in the first round.
    ends: Option<u64>,
    /// Rounds from now on.
    rounds: u32,
    /// Turns of each depth.
    lengths: Vec<TurnLength>,
    steps: Vec<Step>,
}

impl Contenders for Depths<'_, '_> {
    fn turn(&mut self, turn: Turn, budget: &mut Budget<'_>) -> Result<Ended> {
        let now = budget.clock().now();
        if self.ends.is_some_and(|ends| now >= ends) {
            return Ok(Break(budget.poll()));
        }
        let limits = Limits { duration: self.of_bursts(self.length(turn, now)), ..self.limits };
        let run = self.fetch(turn.contender, &limits, budget)?;
        let stop = run.stop.filter(|stop| stop.is_for_all());
        self.steps[turn.contender].add(run);
        Ok(stop.map_or(Continue(()), |stop| Break(Some(stop))))
    }
}

impl Depths<'_, '_> {
    /// Plans up to `most` rounds until `ends`, by what the first round took.
    fn plan(&mut self, ends: u64, most: u32, budget: &Budget<'_>) {
        for (length, step) in self.lengths.iter_mut().zip(&self.steps) {
            let Some(run) = step.run.as_ref().filter(|run| run.fetches > 0) else { continue };
            let each = Duration::from_nanos(run.elapsed_ns / run.fetches);
            length.draining = if step.depth > 1 { each * step.depth as u32 } else { Duration::ZERO };
            let rated = (each * LEAST_RATED as u32).max(BURSTS * self.bursts_every);
            length.all = length.all.max(2 * length.draining + rated);
        }
        let left = Duration::from_nanos(ends.saturating_sub(budget.clock().now()));
        let round: Duration = self.lengths.iter().map(|length| length.all).sum();
        let rounds = left.as_secs_f64() / round.as_secs_f64().max(1e-9);
        let rounds = (rounds.round() as u32).clamp(LEAST_ROUNDS.min(most), most);
        self.limits.max_bytes = self.limits.max_bytes.saturating_mul(most.into()) / u64::from(rounds);
        (self.ends, self.rounds) = (Some(ends), rounds);
    }

    /// How long this turn issues requests: as long as its share of what is left lets it.
    fn length(&self, turn: Turn, now: u64) -> Duration {
        let own = self.lengths[turn.contender];
        let Some(ends) = self.ends else { return own.all };
        let of = |lengths: &[TurnLength]| lengths.iter().map(|length| length.all.as_secs_f64()).sum::<f64>();
        let rounds_after = f64::from(self.rounds) - 1.0 - turn.round as f64;
        let turns_left = of(&self.lengths[turn.contender..]) + rounds_after * of(&self.lengths);
        let left = Duration::from_nanos(ends.saturating_sub(now));
        let share = left.mul_f64((own.all.as_secs_f64() / turns_left.max(1e-9)).min(1.0));
        share.saturating_sub(own.draining)
    }

    /// The most whole bursts in this time: it has as many whatever moment it begins at. Without bursts, and
    /// if it is shorter than one, all of it.
    fn of_bursts(&self, length: Duration) -> Duration {
        let bursts = length.as_secs_f64() / self.bursts_every.as_secs_f64();
        if (1.0..f64::from(u32::MAX)).contains(&bursts) { self.bursts_every * bursts as u32 } else { length }
    }

    /// Notes how many times as long a fetch took from some round on, at all depths together: each alone has
    /// few rounds.
    fn find_step(&mut self) {
        // A deep one may have none of the slow rounds: they have no rate.
        let rounds = self.steps.iter().map(|step| step.rounds.len()).max().unwrap_or(0);
        let whole = self.steps.iter().filter(|step| step.rounds.len() == rounds);
        let times: Vec<Vec<f64>> = whole.map(|step| Slice::times(&step.rounds)).collect();
        let by_round = (0..rounds).filter_map(|round| {
            let over_usual = times.iter().filter_map(|times| Some(times[round] / median(times)?));
            median(&over_usual.collect::<Vec<f64>>())
        });
        let by_round: Vec<f64> = by_round.collect();
        let slowed = if rounds < LEAST_ROUNDS as usize { None } else { stats::step(&by_round, STEP) };
        self.steps.iter_mut().filter_map(|step| step.run.as_mut()).for_each(|run| run.slowed = slowed);
    }

    /// The beginning of a depth's turn that starts now: a part of its time, or of what it may fetch at most.
    fn lead(&self, contender: usize, limits: &Limits, now: u64) -> Lead {
        let source = self.fetch_order.source();
        let most = (limits.max_bytes / u64::from(source.block_size())).min(source.blocks());
        let longest = match self.bursts_every {
            Duration::ZERO => LONGEST_LEAD,
            // The queue may be deeper than a burst.
            every => every + self.lengths[contender].draining,
        };
        let lead = nanoseconds(self.of_bursts((limits.duration / LEAD).min(longest)));
        let until = if limits.make_pauses() { 0 } else { now + lead };
        Lead { until, most_blocks: most / u64::from(LEAD) }
    }

    /// Fetches at a depth for a turn, again and again through the relation.
    fn fetch(&mut self, contender: usize, limits: &Limits, budget: &mut Budget<'_>) -> Result<RandomRun> {
        let depth = self.steps[contender].depth;
        let mut turn = budget.part(limits);
        let lead = self.lead(contender, limits, turn.started());
        let mut all: Option<RandomRun> = None;
        loop {
            if self.fetch_order.is_complete() {
                self.seed = self.seed.wrapping_add(1);
                self.fetch_order.restart(Permutation::new(self.fetch_order.source().blocks(), self.seed));
            }
            let whole = self.fetch_order.is_untouched();
            let mut queued = Queued::new(self.engines.at(depth), depth);
            let mut progress = |blocks| (self.progress)(self.fetched + blocks);
            let one = run_after(lead, self.fetch_order, &mut queued, limits, &mut turn, &mut progress)?;
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
        let interval = stats::of_ratio(&self.rounds).or_else(|| stats::of_turns(&self.rounds));
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
        (1..LEAST_ROUNDS).for_each(|_| step.add(round(10)));
        step.add(round(0));
        assert_eq!(step.run.as_ref().map(|run| run.interval), Some(None));
        step.add(round(10));
        assert!(step.run.is_some_and(|run| run.interval.is_some()));
    }
}
