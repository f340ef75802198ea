//! The planner in the loop: which settings make the planner pick the plans that the measured times say are
//! fast.
//!
//! The planner itself was asked, for each of some queries, which plan it picks at each pair of page costs.
//! What each plan takes is known from the [`model`](super::model), cold and warm. The regret of a pick is its
//! time over that of the best plan, and of a pair of page costs, with an `effective_io_concurrency`, the
//! geometric mean over all queries, cold and warm weighing the same. The best is at any concurrency: one that
//! makes all bitmap scans slow is no excuse.
//!
//! # Limitations and caveats
//! - The answer is as good as the model's times and as the queries are like the user's own.
//! - The planner has one number for reads one at a time and for reads that are prefetched. Where they
//!   disagree, the least regret is not zero.

use super::model::{Caches, Index, PlannedScan, Table, Times};

/// A pair of page costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// `seq_page_cost`.
    pub sequential: f64,
    /// `random_page_cost`.
    pub random: f64,
}

/// `random_page_cost` over `seq_page_cost`.
const RATIOS: [f64; 19] =
    [1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0];
/// `seq_page_cost` over the one that the processor's costs ask for.
const SCALES: [f64; 7] = [0.35, 0.5, 0.71, 1.0, 1.41, 2.0, 2.83];

impl Cell {
    /// Does a random page cost no less than a sequential one?
    pub fn is_in_order(&self) -> bool {
        self.random >= self.sequential
    }
}

/// The pairs of page costs to ask for: those in force, and a grid. `anchor` is the `seq_page_cost` that the
/// time of a tuple speaks for; without one `seq_page_cost` is the unit, and stays.
pub fn grid(in_force: Cell, anchor: Option<f64>) -> Vec<Cell> {
    let mut sequential = vec![in_force.sequential];
    sequential.extend(anchor.into_iter().flat_map(|anchor| SCALES.map(|scale| rounded(anchor * scale))));
    let mut cells = vec![in_force];
    for sequential in sequential {
        // Rounded, a cost might be below the other.
        let of_ratio = |ratio| Cell { sequential, random: rounded(sequential * ratio).max(sequential) };
        for cell in RATIOS.map(of_ratio) {
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
    }
    cells
}

/// A cost to three digits, as a person would set it.
pub fn rounded(cost: f64) -> f64 {
    if cost <= 0.0 || !cost.is_finite() {
        return cost;
    }
    let scale = 10f64.powi(2 - cost.log10().floor() as i32);
    (cost * scale).round() / scale
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

/// Regrets at one pair of page costs and one concurrency: geometric means and the greatest, 1 being the best
/// plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regret {
    /// Nothing cached.
    pub cold: f64,
    /// All in shared buffers and in the OS cache.
    pub warm: f64,
    /// The greatest of one query.
    pub worst_cold: f64,
    /// The same.
    pub worst_warm: f64,
}

impl Regret {
    fn score(&self) -> f64 {
        self.cold.ln() + self.warm.ln()
    }
}

/// The regrets of all cells at all concurrencies.
#[derive(Debug, Clone)]
pub struct Regrets {
    cells: Vec<Cell>,
    concurrencies: Vec<u32>,
    /// By cell, then concurrency.
    table: Vec<Vec<Regret>>,
    queries: usize,
}

/// What to set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Page costs.
    pub cell: Cell,
    /// `effective_io_concurrency`.
    pub concurrency: u32,
}

/// A recommendation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chosen {
    /// What to set: the settings in force if they are as good as the best.
    pub settings: Settings,
    /// Its regret.
    pub regret: Regret,
    /// Costs of random pages that are as good, with all else as it is.
    pub random: (f64, f64),
    /// Costs of sequential pages that are as good.
    pub sequential: (f64, f64),
    /// Concurrencies that are as good.
    pub concurrencies: (u32, u32),
}

/// Does a place, a cell and a concurrency, keep what is set?
type Keeps<'a> = &'a dyn Fn(&(usize, usize)) -> bool;

/// Scores that differ by less are as good: a hundredth.
const AS_GOOD: f64 = 0.01;

impl Regrets {
    /// Of what the planner said; None if it said nothing.
    pub fn of(asked: &[Asked], cells: &[Cell], concurrencies: &[u32], times: &Times) -> Option<Self> {
        let mut sums = vec![vec![Sum::default(); concurrencies.len()]; cells.len()];
        for query in asked {
            let scans: &[PlannedScan] = if query.covered {
                &[PlannedScan::Sequential, PlannedScan::Index, PlannedScan::Bitmap, PlannedScan::IndexOnly]
            } else {
                &[PlannedScan::Sequential, PlannedScan::Index, PlannedScan::Bitmap]
            };
            let time = |scan, concurrency, caches| {
                times.of_scan(scan, &query.table, &query.index, query.rows, concurrency, caches)
            };
            let least = |times: &mut dyn Iterator<Item = f64>| times.fold(f64::INFINITY, f64::min);
            let cold = least(
                &mut scans
                    .iter()
                    .flat_map(|scan| concurrencies.iter().map(|c| time(*scan, *c, Caches::Cold))),
            );
            let warm = least(&mut scans.iter().map(|scan| time(*scan, 0, Caches::Warm)));
            for (sums, pick) in sums.iter_mut().zip(&query.picks) {
                for (sum, concurrency) in sums.iter_mut().zip(concurrencies) {
                    sum.add(
                        time(*pick, *concurrency, Caches::Cold) / cold,
                        time(*pick, *concurrency, Caches::Warm) / warm,
                    );
                }
            }
        }
        let queries = asked.len();
        let table = sums.iter().map(|row| row.iter().map(|sum| sum.regret(queries)).collect()).collect();
        let (cells, concurrencies) = (cells.to_vec(), concurrencies.to_vec());
        (queries > 0).then_some(Self { cells, concurrencies, table, queries })
    }

    /// Queries that tell.
    pub fn queries(&self) -> usize {
        self.queries
    }

    /// The regret at these settings, if they are among those asked for.
    pub fn at(&self, settings: &Settings) -> Option<Regret> {
        let (cell, concurrency) = self.place(settings)?;
        Some(self.table[cell][concurrency])
    }

    fn place(&self, settings: &Settings) -> Option<(usize, usize)> {
        let cell = self.cells.iter().position(|cell| *cell == settings.cell)?;
        Some((cell, self.concurrencies.iter().position(|c| *c == settings.concurrency)?))
    }

    /// The best settings, but for what is set and as good. A random page costs no less than a sequential one
    /// in them, unless there are no such.
    pub fn choose(&self, in_force: &Settings) -> Option<Chosen> {
        let none_is_in_order = !self.cells.iter().any(Cell::is_in_order);
        let may_be = |cell: usize| none_is_in_order || self.cells[cell].is_in_order();
        let cells = || (0..self.cells.len()).filter(|cell| may_be(*cell));
        let places = || cells().flat_map(|a| (0..self.concurrencies.len()).map(move |b| (a, b)));
        let score = |(cell, concurrency): (usize, usize)| self.table[cell][concurrency].score();
        let least = places().map(score).fold(f64::INFINITY, f64::min);
        let good = |place| score(place) <= least + AS_GOOD;
        // What is set stays where it is as good, or as much of it as may be. Of the rest what is better cold,
        // where more time is lost; and of equals the one nearest to what is set.
        let cold = |(cell, concurrency): (usize, usize)| self.table[cell][concurrency].cold;
        let distance = |place: (usize, usize)| {
            let (cell, set) = (self.cells[place.0], in_force.cell);
            (cell.sequential / set.sequential).ln().abs() + (cell.random / set.random).ln().abs()
        };
        let costs = |place: &(usize, usize)| self.cells[place.0] == in_force.cell;
        let reads = |place: &(usize, usize)| self.concurrencies[place.1] == in_force.concurrency;
        let unit = |place: &(usize, usize)| self.cells[place.0].sequential == in_force.cell.sequential;
        let kept: [Keeps<'_>; 5] = [&|place| costs(place) && reads(place), &costs, &reads, &unit, &|_| true];
        let (cell, concurrency) = kept.into_iter().find_map(|keeps| {
            let as_good = || places().filter(|place| good(*place) && keeps(place));
            let best = as_good().map(score).fold(f64::INFINITY, f64::min);
            // One from the rim would not stay the next time.
            let inner = as_good().filter(|place| score(*place) <= best + AS_GOOD / 2.0);
            inner.min_by(|a, b| cold(*a).total_cmp(&cold(*b)).then(distance(*a).total_cmp(&distance(*b))))
        })?;
        let chosen = self.cells[cell];
        // As far as it goes without a gap.
        let range = |of: fn(&Cell) -> f64, other: fn(&Cell) -> f64| {
            let mut along: Vec<(f64, bool)> = cells()
                .filter(|index| other(&self.cells[*index]) == other(&chosen))
                .map(|index| (of(&self.cells[index]), good((index, concurrency))))
                .collect();
            along.sort_by(|a, b| a.0.total_cmp(&b.0));
            plateau(&along, of(&chosen))
        };
        let mut along: Vec<(f64, bool)> = (0..self.concurrencies.len())
            .map(|index| (f64::from(self.concurrencies[index]), good((cell, index))))
            .collect();
        along.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (low, high) = plateau(&along, f64::from(self.concurrencies[concurrency]));
        Some(Chosen {
            settings: Settings { cell: chosen, concurrency: self.concurrencies[concurrency] },
            regret: self.table[cell][concurrency],
            random: range(|cell| cell.random, |cell| cell.sequential),
            sequential: range(|cell| cell.sequential, |cell| cell.random),
            concurrencies: (low as u32, high as u32),
        })
    }
}

/// The least and the greatest of ascending values around `chosen` that are good without a gap.
fn plateau(along: &[(f64, bool)], chosen: f64) -> (f64, f64) {
    let at = along.iter().position(|(value, _)| *value == chosen).unwrap_or(0);
    let low = along[..=at].iter().rev().take_while(|(_, good)| *good).last();
    let high = along[at..].iter().take_while(|(_, good)| *good).last();
    (low.map_or(chosen, |low| low.0), high.map_or(chosen, |high| high.0))
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    cold: f64,
    warm: f64,
    worst_cold: f64,
    worst_warm: f64,
}

impl Sum {
    fn add(&mut self, cold: f64, warm: f64) {
        self.cold += cold.ln();
        self.warm += warm.ln();
        self.worst_cold = self.worst_cold.max(cold);
        self.worst_warm = self.worst_warm.max(warm);
    }

    fn regret(&self, count: usize) -> Regret {
        let count = count as f64;
        Regret {
            cold: (self.cold / count).exp(),
            warm: (self.warm / count).exp(),
            worst_cold: self.worst_cold,
            worst_warm: self.worst_warm,
        }
    }
}

#[cfg(test)]
mod tests;
