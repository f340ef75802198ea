//! Which correlation of an index makes the planner pick the plans that are fast.
//!
//! The planner charges an index scan between what it costs in no order and what it costs in order,
//! `unordered + c² · (ordered − unordered)`, and takes `c` from `pg_stats.correlation`. Where rows lie in
//! local disorder that is far too near to 1. Here the planner was asked which plan it picks at each of some
//! correlations, at page costs that are given, and the picks are judged by their times as in
//! [`choose`](super::choose).
//!
//! The one whose charges come nearest to the pages that are read is another, and a worse one: over short and
//! long ranges it is a mean, and it leaves short ranges to index scans, since the planner does not know that
//! a bitmap scan of the same pages prefetches.
//!
//! # Limitations and caveats
//! - It is one number for short and long ranges.
//! - It is as good as the model's times, and as the ranges are like those that queries ask for.

use super::choose::{Asked, Judged, Regret, harms_one, judge};
use super::model::{Locality, Times};
use crate::advise::plateau::{AS_GOOD, INNER};

/// Correlations to ask for.
pub const CORRELATIONS: [f64; 13] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0];

/// No query may take longer by this factor than it does now, cold or warm: whoever runs that one all day does
/// not care for the others.
const HARM: f64 = 1.2;

/// What the planner should take a correlation for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorrelationChoice {
    /// The value in force if it is as good as the best, else the nearest that is surely better and harms no
    /// query.
    pub value: f64,
    /// Is it the value in force?
    pub holds_current: bool,
    /// From where values around it are as good.
    pub low: f64,
    /// To where.
    pub high: f64,
    /// The regret at the value in force.
    pub regret_in_force: Regret,
    /// The regret at this one.
    pub regret: Regret,
}

/// Queries by an index, for each of which the planner picked a plan at each of some correlations.
#[derive(Debug, Clone)]
pub struct IndexPicks {
    /// The queries.
    pub asked: Vec<Asked>,
    /// Other places where the rows may lie as well.
    pub moved: Vec<Locality>,
    /// The correlations, of which the first is in force.
    pub correlations: Vec<f64>,
}

impl IndexPicks {
    /// The correlation to tell the planner where this of the `concurrencies` that were measured is in force.
    /// None without a query.
    pub fn choose(
        &self,
        concurrency: u32,
        concurrencies: &[u32],
        times: &Times,
    ) -> Option<CorrelationChoice> {
        let Self { asked, moved, correlations } = self;
        let at = concurrencies.iter().position(|measured| *measured == concurrency)?;
        if asked.is_empty() || correlations.is_empty() {
            return None;
        }
        let elsewhere = |locality: &Locality| {
            let mut asked = asked.clone();
            asked.iter_mut().for_each(|asked| asked.index.locality = *locality);
            asked
        };
        let moved: Vec<Vec<Asked>> = moved.iter().map(elsewhere).collect();
        let places: Vec<(usize, usize)> = (0..correlations.len()).map(|cell| (cell, at)).collect();
        let Judged { regrets, candidates } = judge(asked, &moved, &places, concurrencies, times);
        const IN_FORCE: usize = 0;
        let harms = |place| harms_one(asked, (place, IN_FORCE), HARM, concurrency, times);
        let is_better = |place: &usize| {
            candidates.excess(*place) <= INNER && candidates.gains(*place, IN_FORCE) && !harms(*place)
        };
        let off = |place: &usize| (correlations[*place] - correlations[IN_FORCE]).abs();
        let nearest = (0..correlations.len()).filter(is_better).min_by(|a, b| off(a).total_cmp(&off(b)));
        let kept = Some(IN_FORCE).filter(|place| candidates.excess(*place) <= 1.0);
        let place = kept.or(nearest).unwrap_or(IN_FORCE);
        let mut along: Vec<(f64, usize)> = correlations.iter().copied().zip(0..).collect();
        along.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (low, high) = candidates.range(&along, correlations[place]);
        Some(CorrelationChoice {
            value: correlations[place],
            holds_current: place == IN_FORCE,
            low,
            high,
            regret_in_force: regrets[IN_FORCE],
            regret: regrets[place],
        })
    }
}

/// What to tell the planner of each of these indexes, where that gains, at the least concurrency at which all of
/// them do about best with it: at another one correlations that lead to bitmap scans may gain nothing.
pub fn choose_together(indexes: &[IndexPicks], concurrencies: &[u32], times: &Times) -> Vec<Option<f64>> {
    let at = |concurrency: &u32| -> Vec<Option<CorrelationChoice>> {
        indexes.iter().map(|picks| picks.choose(*concurrency, concurrencies, times)).collect()
    };
    let cost = |choices: &Vec<Option<CorrelationChoice>>| {
        let of_index = |(picks, choice): (&IndexPicks, &Option<CorrelationChoice>)| {
            choice.map_or(0.0, |choice| choice.regret.cost() * picks.asked.len() as f64)
        };
        indexes.iter().zip(choices).map(of_index).sum::<f64>()
    };
    let all: Vec<_> = concurrencies.iter().map(at).collect();
    let least = all.iter().map(cost).min_by(f64::total_cmp).unwrap_or(0.0);
    let queries = indexes.iter().map(|picks| picks.asked.len()).sum::<usize>() as f64;
    let best = all.into_iter().find(|choices| cost(choices) <= least + queries * AS_GOOD.ln());
    let told = |choice: CorrelationChoice| (!choice.holds_current).then_some(choice.value);
    best.unwrap_or_default().into_iter().map(|choice| choice.and_then(told)).collect()
}

#[cfg(test)]
mod tests;
