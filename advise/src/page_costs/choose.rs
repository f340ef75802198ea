//! The planner in the loop: which settings make the planner pick the plans that the measured times say are
//! fast.
//!
//! The planner itself was asked, for each of some queries, which plan it picks at each pair of page costs.
//! What each plan takes is known from the [`model`](super::model), cold and warm. The cost of a pair of page
//! costs, at the `effective_io_concurrency` that [`concurrency`](super::concurrency) has chosen, is the
//! geometric mean of the times of the picks over all queries, cold and warm weighing the same. What is set
//! stays where no other is better by more than the error of the measured times and by more than 5 %, see
//! [`plateau()`](crate::plateau()). The regret of a pick is its time over that of the best plan at any
//! concurrency: one that makes all bitmap scans slow is no excuse. `seq_page_cost` is the unit of all costs,
//! and stays.
//!
//! Correlations move picks as well. So the planner was asked twice where some are advised: as things are, and
//! with them. Costs are chosen that are as good as the best with them, and without them not surely slower
//! than what is set, since a user may follow only a part of the advice; of these the best without. In
//! simulations a user that follows all of it is told the same the next time.
//!
//! # Limitations and caveats
//! - The answer is as good as the model's times and as the queries are like the user's own.
//! - The planner has one number for reads one at a time and for reads that are prefetched. Where they
//!   disagree, the least regret is not zero.

use std::ops::Range;

use crate::plateau::{Candidates, INNER, least_by};

use super::model::{Caches, Index, PlannedScan, Table, Times};

/// A pair of page costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostPair {
    /// `seq_page_cost`.
    pub sequential: f64,
    /// `random_page_cost`.
    pub random: f64,
}

/// `random_page_cost` over `seq_page_cost`.
const RATIOS: [f64; 19] =
    [1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0];

/// The pairs of page costs to ask for: those in force, and multiples of `seq_page_cost`. A random page costs
/// no less than a sequential one.
pub fn grid(in_force: CostPair) -> Vec<CostPair> {
    let CostPair { sequential, random } = in_force;
    // Rounded, a cost might be below the other.
    let multiples = RATIOS.map(|ratio| rounded(sequential * ratio).max(sequential));
    let mut cells = Vec::new();
    for random in [random].into_iter().chain(multiples) {
        let cell = CostPair { sequential, random };
        if random >= sequential && !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    cells
}

/// A cost to three digits, as a person would set it.
fn rounded(cost: f64) -> f64 {
    to_digits(cost, f64::round)
}

/// A cost that is off three digits only by an error of the last bits is taken for them.
fn to_digits(cost: f64, round: fn(f64) -> f64) -> f64 {
    if cost <= 0.0 || !cost.is_finite() {
        return cost;
    }
    let scale = 10f64.powi(2 - cost.log10().floor() as i32);
    let (scaled, near) = (cost * scale, (cost * scale).round());
    if (scaled - near).abs() <= 1e-9 * near { near / scale } else { round(scaled) / scale }
}

/// A query, and what the planner said.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The table.
    pub table: Table,
    /// Its index.
    pub index: Index,
    /// Rows in the range.
    pub rows: f64,
    /// Does the index hold all that is asked for?
    pub covered: bool,
    /// What the planner picks in each cell.
    pub picks: Vec<PlannedScan>,
}

impl Asked {
    /// How many scans can answer it, of [`QueryTimes`].
    fn scans(&self) -> usize {
        if self.covered { 4 } else { 3 }
    }
}

/// Regrets at one pair of page costs and one concurrency: geometric means, 1 being the best plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regret {
    /// Nothing cached.
    pub cold: f64,
    /// All in shared buffers and in the OS cache.
    pub warm: f64,
}

impl Regret {
    /// What a choice is to make least, as a logarithm: cold and warm weigh the same.
    pub fn cost(&self) -> f64 {
        (self.cold * self.warm).ln() / 2.0
    }
}

/// The regrets of all cells at all concurrencies.
#[derive(Debug, Clone)]
pub struct Regrets {
    pub(super) cells: Vec<CostPair>,
    pub(super) concurrencies: Vec<u32>,
    judged: Judged,
    asked: Vec<Asked>,
}

/// Regrets, by cell, then concurrency, and the same places as candidates.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) regrets: Vec<Regret>,
    pub(super) candidates: Candidates,
}

/// What to set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Page costs.
    pub cell: CostPair,
    /// `effective_io_concurrency`.
    pub concurrency: u32,
}

/// A recommendation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chosen {
    /// What to set: the costs in force if they are as good as the best.
    pub settings: Settings,
    /// Its regret.
    pub regret: Regret,
    /// From and to where `random_page_cost` is as good.
    pub as_good: (f64, f64),
    /// From and to where, as far as the planner was asked, it picks plans that take the same.
    pub same_plans: (f64, f64),
}

/// Logarithms of costs that differ by less are sums of the same times.
pub(super) const SAME_PLANS: f64 = 1e-9;

impl Regrets {
    /// The regrets of what the planner picked; None without queries.
    pub fn of(asked: &[Asked], cells: &[CostPair], concurrencies: &[u32], times: &Times) -> Option<Self> {
        if asked.is_empty() {
            return None;
        }
        let places: Vec<(usize, usize)> =
            (0..cells.len()).flat_map(|cell| (0..concurrencies.len()).map(move |at| (cell, at))).collect();
        Some(Self {
            cells: cells.to_vec(),
            concurrencies: concurrencies.to_vec(),
            judged: judge(asked, &[], &places, concurrencies, times),
            asked: asked.to_vec(),
        })
    }

    /// How many queries were asked.
    pub fn queries(&self) -> usize {
        self.asked.len()
    }

    /// The regret at these settings, if they are among those asked for.
    pub fn at(&self, settings: &Settings) -> Option<Regret> {
        self.place(settings).map(|place| self.judged.regrets[place])
    }

    /// The logarithm of what the picks at these settings take by `times` with nothing cached, as a mean.
    pub(super) fn cold_at(&self, settings: &Settings, times: &Times) -> Option<f64> {
        let cell = self.cells.iter().position(|cell| *cell == settings.cell)?;
        let taken = self.asked.iter().map(|query| {
            let Asked { table, index, rows, .. } = query;
            times.of_scan(query.picks[cell], table, index, *rows, settings.concurrency, Caches::Cold).ln()
        });
        Some(taken.sum::<f64>() / self.asked.len() as f64)
    }

    fn place(&self, settings: &Settings) -> Option<usize> {
        self.places().find(|place| self.settings(*place) == *settings)
    }

    fn settings(&self, place: usize) -> Settings {
        let count = self.concurrencies.len();
        Settings { cell: self.cells[place / count], concurrency: self.concurrencies[place % count] }
    }

    /// The costs in force where none are sure to gain; else the nearest of those. All at the concurrency of
    /// `in_force`.
    pub fn choose(&self, in_force: &Settings) -> Option<Chosen> {
        let candidates = &self.judged.candidates.among(|place| self.is_at(place, in_force))?;
        Choosing { regrets: self, candidates, gaining: &[&self.judged.candidates], in_force }.choose()
    }

    /// Like [`Self::choose`], of costs that are as good as the best by `corrected`, the regrets with the
    /// advised correlations, and without these not surely slower than what is set. None if there are none.
    pub fn choose_beside(&self, corrected: &Self, in_force: &Settings) -> Option<Chosen> {
        let as_is = &self.judged.candidates;
        let with = &corrected.judged.candidates;
        let corrected = with.among(|place| self.is_at(place, in_force))?;
        let set = self.place(in_force);
        let candidates = &as_is.among(|place| {
            self.is_at(place, in_force)
                && corrected.excess(place) <= 1.0
                && set.is_none_or(|set| !as_is.gains(set, place))
        })?;
        Choosing { regrets: self, candidates, gaining: &[as_is, with], in_force }.choose()
    }

    fn is_at(&self, place: usize, settings: &Settings) -> bool {
        self.settings(place).concurrency == settings.concurrency
    }

    fn places(&self) -> Range<usize> {
        0..self.judged.regrets.len()
    }

    /// The places at this concurrency, with their `random_page_cost`, ascending.
    fn along(&self, at: &Settings) -> Vec<(f64, usize)> {
        let beside = self.places().filter(|place| self.is_at(*place, at));
        let mut along: Vec<(f64, usize)> =
            beside.map(|place| (self.settings(place).cell.random, place)).collect();
        along.sort_by(|a, b| a.0.total_cmp(&b.0));
        along
    }

    /// Do the planner's picks in both places take the same?
    fn is_same(&self, one: usize, other: usize) -> bool {
        let [one, other] = [one, other].map(|place| self.judged.regrets[place]);
        is_near(one.cold, other.cold) && is_near(one.warm, other.warm)
    }
}

fn is_near(a: f64, b: f64) -> bool {
    (a.ln() - b.ln()).abs() <= SAME_PLANS
}

/// Costs to choose from.
struct Choosing<'a> {
    regrets: &'a Regrets,
    /// All at one concurrency.
    candidates: &'a Candidates,
    /// A place gains over what is set if it does by one of these, which have all concurrencies.
    gaining: &'a [&'a Candidates],
    in_force: &'a Settings,
}

impl Choosing<'_> {
    /// The best costs.
    fn choose(&self) -> Option<Chosen> {
        let Self { regrets, candidates, .. } = self;
        let place = self.best()?;
        let settings = regrets.settings(place);
        let (random, along) = (settings.cell.random, regrets.along(&settings));
        let (low, high) = candidates.range(&along, random);
        let at = along.iter().position(|(_, other)| *other == place).unwrap_or(0);
        let same = |(_, other): &&(f64, usize)| regrets.is_same(*other, place);
        let lowest = along[..at].iter().rev().take_while(same).last();
        let highest = along[at + 1..].iter().take_while(same).last();
        Some(Chosen {
            settings,
            regret: regrets.judged.regrets[place],
            as_good: (to_digits(low, f64::ceil).min(random), to_digits(high, f64::floor).max(random)),
            same_plans: (lowest.map_or(random, |of| of.0), highest.map_or(random, |of| of.0)),
        })
    }

    /// What is set, if it is as good as the best, at this concurrency or at some, or no place is sure to gain
    /// over it. Else, of those that are as good, the nearest.
    fn best(&self) -> Option<usize> {
        let Self { regrets, candidates, in_force, .. } = self;
        let set = self.set();
        if set.is_some_and(|set| candidates.excess(set) <= 1.0 || self.stays(set)) {
            return set;
        }
        // Not an edge value: noise would push it out next time.
        let inner = regrets.places().filter(|place| candidates.excess(*place) <= INNER);
        let distance =
            |place: &usize| (regrets.settings(*place).cell.random / in_force.cell.random).ln().abs();
        least_by(inner.filter(|place| self.gains(*place)), distance).or(set)
    }

    /// Are the costs that are set allowed, and as good as the best at some concurrency, by all that gains are
    /// judged by?
    fn stays(&self, set: usize) -> bool {
        let Self { regrets, gaining, .. } = self;
        let mut places = regrets.places().filter(|place| regrets.settings(*place).cell == self.in_force.cell);
        self.candidates.excess(set).is_finite()
            && places.any(|place| gaining.iter().all(|by| by.excess(place) <= 1.0))
    }

    /// The place of what is set, if it was asked for.
    fn set(&self) -> Option<usize> {
        self.regrets.place(self.in_force)
    }

    /// Is a place sure to gain over what is set?
    fn gains(&self, place: usize) -> bool {
        self.set().is_none_or(|set| self.gaining.iter().any(|by| by.gains(place, set)))
    }
}

/// The regret at each of these places, a cell and a concurrency, and which of them are as good as the best.
/// `moved` are the same queries where their rows may lie as well.
pub(super) fn judge(
    asked: &[Asked],
    moved: &[Vec<Asked>],
    places: &[(usize, usize)],
    concurrencies: &[u32],
    times: &Times,
) -> Judged {
    let measured = picks_at(places, asked, concurrencies, times);
    let by_times = times.each_moved().map(|times| picks_at(places, asked, concurrencies, &times));
    let by_places = moved.iter().map(|asked| picks_at(places, asked, concurrencies, times));
    let candidates = Candidates::of(costs(&measured), by_times.chain(by_places).map(|picks| costs(&picks)));
    Judged { regrets: measured.iter().map(Picks::regret).collect(), candidates }
}

fn picks_at(places: &[(usize, usize)], asked: &[Asked], concurrencies: &[u32], times: &Times) -> Vec<Picks> {
    let taken: Vec<QueryTimes> =
        asked.iter().map(|query| QueryTimes::of(query, concurrencies, times)).collect();
    places
        .iter()
        .map(|(cell, at)| Picks::of(asked.iter().map(|query| query.picks[*cell]).zip(&taken), *at))
        .collect()
}

fn costs(picks: &[Picks]) -> Vec<f64> {
    picks.iter().map(Picks::cost).collect()
}

/// How many times as long a query takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slowdown {
    /// Nothing cached.
    pub cold: f64,
    /// All in shared buffers and in the OS cache.
    pub warm: f64,
}

impl Slowdown {
    pub(super) const NONE: Self = Self { cold: 1.0, warm: 1.0 };

    /// The larger factors of both.
    pub(super) fn most(self, other: Self) -> Self {
        Self { cold: self.cold.max(other.cold), warm: self.warm.max(other.warm) }
    }
}

/// How many times as long each of these queries takes in `cell` as in `than` at a concurrency.
pub(super) fn slowdowns(
    asked: &[Asked],
    (cell, than): (usize, usize),
    concurrency: u32,
    times: &Times,
) -> impl Iterator<Item = Slowdown> {
    asked.iter().map(move |query| {
        let taken = QueryTimes::of(query, &[concurrency], times);
        let [pick, other] = [cell, than].map(|cell| query.picks[cell] as usize);
        Slowdown {
            cold: (taken.cold[pick][0] - taken.cold[other][0]).exp(),
            warm: (taken.warm[pick] - taken.warm[other]).exp(),
        }
    })
}

/// The logarithm of what queries take at each concurrency with nothing cached, by the best plan that there is
/// then, as a mean; and of what they take with the best concurrency for each.
pub(super) fn best_cold(asked: &[Asked], concurrencies: &[u32], times: &Times) -> (Vec<f64>, f64) {
    let (mut costs, mut least_cost) = (vec![0.0; concurrencies.len()], 0.0);
    for query in asked {
        let taken = QueryTimes::of(query, concurrencies, times);
        least_cost += taken.least_cold / asked.len() as f64;
        for (at, cost) in costs.iter_mut().enumerate() {
            let least = taken.cold[..query.scans()].iter().map(|scan| scan[at]);
            *cost += least.fold(f64::INFINITY, f64::min) / asked.len() as f64;
        }
    }
    (costs, least_cost)
}

/// The logarithms of what a query takes by each scan, and of the least that any takes.
struct QueryTimes {
    /// By each scan, at each concurrency.
    cold: [Vec<f64>; 4],
    warm: [f64; 4],
    least_cold: f64,
    least_warm: f64,
}

impl QueryTimes {
    fn of(query: &Asked, concurrencies: &[u32], times: &Times) -> Self {
        const SCANS: [PlannedScan; 4] =
            [PlannedScan::Sequential, PlannedScan::Index, PlannedScan::Bitmap, PlannedScan::IndexOnly];
        let time = |scan, concurrency, caches| {
            times.of_scan(scan, &query.table, &query.index, query.rows, concurrency, caches).ln()
        };
        let cold = SCANS.map(|scan| {
            // Only bitmap scans prefetch.
            let at = if scan == PlannedScan::Bitmap { concurrencies } else { &concurrencies[..1] };
            let times: Vec<f64> = at.iter().map(|at| time(scan, *at, Caches::Cold)).collect();
            times.iter().copied().cycle().take(concurrencies.len()).collect::<Vec<f64>>()
        });
        let warm = SCANS.map(|scan| time(scan, 0, Caches::Warm));
        let scans = query.scans();
        let least_cold = cold[..scans].iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let least_warm = warm[..scans].iter().copied().fold(f64::INFINITY, f64::min);
        Self { cold, warm, least_cold, least_warm }
    }
}

/// What the picks at one place take over the best plans: how many they are, and sums of logarithms.
#[derive(Debug, Clone, Copy, Default)]
struct Picks {
    count: f64,
    cold: f64,
    warm: f64,
}

impl Picks {
    fn of<'a>(picked: impl Iterator<Item = (PlannedScan, &'a QueryTimes)>, at: usize) -> Self {
        picked.fold(Self::default(), |sum, (pick, times)| {
            let cold = times.cold[pick as usize][at] - times.least_cold;
            let warm = times.warm[pick as usize] - times.least_warm;
            Self { count: sum.count + 1.0, cold: sum.cold + cold, warm: sum.warm + warm }
        })
    }

    /// The logarithm of the mean, cold and warm weighing the same.
    fn cost(&self) -> f64 {
        (self.cold + self.warm) / 2.0 / self.count
    }

    fn regret(&self) -> Regret {
        Regret { cold: (self.cold / self.count).exp(), warm: (self.warm / self.count).exp() }
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
