//! Settings and the correlations of indexes, each chosen beside the other.
//!
//! Which settings are best depends on what the planner takes the correlations for, and the other way round.
//! So correlations are chosen at the settings in force, then settings beside these correlations, then
//! correlations at these settings, and so on, until the correlations stay.

use super::choose::{Asked, Cell, Chosen, Regrets, Settings};
use super::correlation::{CorrelationChoice, IndexPicks, choose_together};
use super::model::Times;

/// Most rounds in which the correlations may still change.
const ROUNDS: usize = 4;

/// The planner, asked about some queries by indexes. Where there is no time left, it answers None.
pub trait Planner {
    /// What it picks at each of some correlations of each index, at these page costs.
    fn at_correlations(&mut self, cell: Cell) -> Option<Vec<IndexPicks>>;

    /// What it picks for each query at each pair of page costs, where it takes these correlations of the
    /// indexes; None stands for the one in force.
    fn told(&mut self, correlations: &[Option<f64>]) -> Option<Vec<Asked>>;
}

/// Settings, and the correlations beside them.
#[derive(Debug, Clone)]
pub struct Joint {
    /// The settings.
    pub chosen: Chosen,
    /// What each index's correlation should be at these settings; None if it has no query.
    pub correlations: Vec<Option<CorrelationChoice>>,
    /// The regrets with these correlations.
    pub corrected: Regrets,
}

/// Chooses both; `as_is` are the regrets with the correlations in force. None if no other correlation gains,
/// they do not come to rest, or there was no time to find out.
pub fn joint(
    planner: &mut dyn Planner,
    as_is: &Regrets,
    in_force: &Settings,
    times: &Times,
) -> Option<Joint> {
    let Regrets { cells, concurrencies, .. } = as_is;
    let together = |planner: &mut dyn Planner, at: &Settings, among: &[u32]| {
        choose_together(&planner.at_correlations(at.cell)?, at.concurrency, among, concurrencies, times)
    };
    let mut assumed = together(planner, in_force, concurrencies)?;
    let mut wanted = None;
    for _ in 0..ROUNDS {
        let told = assumed.told();
        if told.iter().all(Option::is_none) {
            return None;
        }
        let corrected = Regrets::of(&planner.told(&told)?, cells, concurrencies, times)?;
        let chosen = as_is.choose_beside(&corrected, in_force, wanted)?;
        let concurrency = chosen.settings.concurrency;
        // Another concurrency is wanted once: it may be refused.
        let among = if wanted.is_none() { concurrencies } else { &vec![concurrency] };
        let found = together(planner, &chosen.settings, among)?;
        if found.told() == told && found.concurrency == concurrency {
            return Some(Joint { chosen, correlations: found.choices, corrected });
        }
        wanted = wanted.or(Some(found.concurrency).filter(|found| *found != concurrency));
        assumed = found;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::page_costs::correlation::tests::{CONCURRENCIES, JITTERED, asked, picks, times};
    use crate::advise::page_costs::model::Locality;

    const COSTS: [f64; 4] = [1.1, 2.0, 4.0, 8.0];
    const DEFAULT: Cell = Cell { sequential: 1.0, random: 4.0 };

    /// The planner with one index.
    struct MadeUp {
        locality: Locality,
        correlation: f64,
        cells: Vec<Cell>,
        /// Answers that it gives before time ends.
        left: usize,
    }

    impl MadeUp {
        fn of(locality: Locality, correlation: f64) -> Self {
            let cells = COSTS.map(|random| Cell { sequential: 1.0, random }).into();
            Self { locality, correlation, cells, left: 100 }
        }

        fn at(&self, correlation: f64) -> Vec<Asked> {
            let premises: Vec<(Cell, f64)> = self.cells.iter().map(|cell| (*cell, correlation)).collect();
            asked(self.locality, &premises)
        }

        fn joint(&mut self, concurrency: u32) -> Option<Joint> {
            let (times, as_is) = (times(3.0), self.at(self.correlation));
            let as_is = Regrets::of(&as_is, &self.cells, &CONCURRENCIES, &times).expect("queries");
            joint(self, &as_is, &Settings { cell: DEFAULT, concurrency }, &times)
        }
    }

    impl Planner for MadeUp {
        fn at_correlations(&mut self, cell: Cell) -> Option<Vec<IndexPicks>> {
            self.left = self.left.checked_sub(1)?;
            Some(vec![picks(cell, self.locality, self.correlation)])
        }

        fn told(&mut self, correlations: &[Option<f64>]) -> Option<Vec<Asked>> {
            self.left = self.left.checked_sub(1)?;
            Some(self.at(correlations[0].unwrap_or(self.correlation)))
        }
    }

    #[test]
    fn settings_and_a_correlation_are_chosen_beside_each_other() {
        let found = MadeUp::of(JITTERED, 0.9999).joint(1).expect("another correlation");
        let told = found.correlations[0].expect("queries");
        let settings = found.chosen.settings;
        assert!(settings.concurrency == 16 && told.value < 0.9 && !told.holds_current, "{found:?}");
        let corrected = found.corrected.at(&settings).expect("asked for");
        assert!(corrected.cold < found.chosen.regret.cold, "{corrected:?}, {found:?}");
        // Who follows it is told nothing else.
        assert_eq!(settings.cell, DEFAULT);
        assert!(MadeUp::of(JITTERED, told.value).joint(16).is_none());
    }

    #[test]
    fn nothing_is_told_where_nothing_gains_or_time_ends() {
        assert!(MadeUp::of(Locality::of(0.0, 1.0), 1.0).joint(1).is_none());
        for left in 0..3 {
            assert!(MadeUp { left, ..MadeUp::of(JITTERED, 0.9999) }.joint(1).is_none(), "{left}");
        }
        assert!(MadeUp { left: 3, ..MadeUp::of(JITTERED, 0.9999) }.joint(1).is_some());
    }
}
