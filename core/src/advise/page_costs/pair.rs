//! Which of the two page costs to set, and to what, so that a random page never costs less than a sequential
//! one.
//!
//! Both are decided together. But what is advised for each is a statement of its own, of which people run
//! some and not others. So what one leaves in force is looked at together with what the other leaves, and
//! with what is set now. Where both are to change and one alone would put them in the wrong order, its
//! statement has to set both. Where only the sequential one is known, and is more than the random one that
//! stays, there is no advice.

use super::cache_mix::Cost;
use super::choose::{Cell, rounded};
use crate::advise::plateau::AS_GOOD;

/// An interval wider than this, half of it over the value, says too little.
const TOO_WIDE: f64 = 0.25;

/// What becomes of a page cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CostVerdict {
    /// What is set is right.
    Keep,
    /// Another value is.
    Set {
        /// The value.
        value: f64,
        /// What the other one has to be set to at the same time, if this value alone would be on the wrong
        /// side of it.
        with: Option<f64>,
    },
    /// The interval is too wide to tell, or there is none.
    Unsure,
    /// A sequential page costs more than what is set for a random one, and that stays.
    OverRandom,
}

impl CostVerdict {
    /// What is in force after it.
    fn leaves(self, in_force: f64) -> f64 {
        match self {
            CostVerdict::Set { value, .. } => value,
            _ => in_force,
        }
    }
}

/// What is known of a page cost, and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Advised {
    /// The cost by the mean, no less than it may be.
    pub cost: f64,
    /// Is it more than what was measured, since it may not be less than `seq_page_cost`?
    pub is_raised: bool,
    /// From and to where a value is as good, if that is known.
    pub range: Option<(f64, f64)>,
    /// What becomes of it.
    pub verdict: CostVerdict,
}

impl Advised {
    fn of(measured: Cost, floor: f64, in_force: f64) -> Self {
        // What is shown must not fall below by its rounding either.
        let shown = |cost: f64| rounded(cost).max(floor);
        let cost = measured.value.max(floor);
        let interval = narrow(measured.value, measured.interval)
            .map(|(low, high)| (low.min(measured.value / AS_GOOD), high.max(measured.value * AS_GOOD)))
            .map(|(low, high)| (low.max(floor), high.max(floor)));
        let verdict = match interval {
            None => CostVerdict::Unsure,
            Some((low, high)) if (low..=high).contains(&in_force) || shown(cost) == in_force => {
                CostVerdict::Keep
            }
            Some(_) => CostVerdict::Set { value: shown(cost), with: None },
        };
        let range = interval.map(|(low, high)| (shown(low), shown(high)));
        Self { cost, is_raised: cost > measured.value, range, verdict }
    }
}

/// The interval of a value, if it has one that is not so wide.
fn narrow(value: f64, interval: Option<(f64, f64)>) -> Option<(f64, f64)> {
    interval.filter(|(low, high)| (high - low) / 2.0 <= TOO_WIDE * value)
}

/// Advice for both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostPair<S, R> {
    /// `seq_page_cost`.
    pub sequential: S,
    /// `random_page_cost`.
    pub random: R,
}

/// By costs that were measured. Without that of a sequential page it is the unit, and stays.
pub fn of_costs(
    in_force: Cell,
    sequential: Option<Cost>,
    random: Cost,
) -> CostPair<Option<Advised>, Advised> {
    let mut sequential = sequential.map(|cost| Advised::of(cost, 0.0, in_force.sequential));
    let below = sequential.map_or(in_force.sequential, |found| found.verdict.leaves(in_force.sequential));
    let mut random = Advised::of(random, below, in_force.random);
    if let Some(sequential) = &mut sequential {
        if sequential.verdict != CostVerdict::Unsure && below > random.verdict.leaves(in_force.random) {
            sequential.verdict = CostVerdict::OverRandom;
        }
        tie(in_force, &mut sequential.verdict, &mut random.verdict);
    }
    CostPair { sequential, random }
}

/// By a choice of both.
pub fn of_choice(in_force: Cell, chosen: Cell) -> CostPair<CostVerdict, CostVerdict> {
    let verdict = |value: f64, in_force: f64| {
        if value == in_force { CostVerdict::Keep } else { CostVerdict::Set { value, with: None } }
    };
    let mut sequential = verdict(chosen.sequential, in_force.sequential);
    let mut random = verdict(chosen.random, in_force.random);
    tie(in_force, &mut sequential, &mut random);
    CostPair { sequential, random }
}

/// Where both are to change, one that is on the wrong side of what is set for the other takes that along.
fn tie(in_force: Cell, sequential: &mut CostVerdict, random: &mut CostVerdict) {
    if let (
        CostVerdict::Set { value: sequential, with: random_too },
        CostVerdict::Set { value: random, with: sequential_too },
    ) = (sequential, random)
    {
        *random_too = (*sequential > in_force.random).then_some(*random);
        *sequential_too = (*random < in_force.sequential).then_some(*sequential);
    }
}

#[cfg(test)]
mod tests;
