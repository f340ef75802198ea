//! Page costs and the correlations of indexes, each chosen beside the other.
//!
//! Which costs are best depends on what the planner takes the correlations for, and the other way round. So
//! correlations are chosen at the costs in force, then costs beside these correlations, then correlations at
//! these costs, and so on, until neither changes. All at one concurrency, which is chosen before.

use super::choose::{Asked, Chosen, CostPair, Regrets, Settings};
use super::correlation::{CorrelationChoice, IndexPicks};
use super::model::Times;

/// Most rounds in which something may still change.
const ROUNDS: usize = 4;

/// The planner, asked about some queries by indexes. Where there is no time left, it answers None.
pub trait Planner {
    /// What it picks at each of some correlations of each index, at these page costs.
    fn at_correlations(&mut self, cell: CostPair) -> Option<Vec<IndexPicks>>;

    /// What it picks for each query at each pair of page costs, where it takes these correlations of the
    /// indexes, from 0 to 1 and in the order of [`Self::at_correlations`]; None stands for the one in force.
    fn told(&mut self, correlations: &[Option<f64>]) -> Option<Vec<Asked>>;
}

/// Settings, and the correlations beside them.
#[derive(Debug, Clone)]
pub struct Joint {
    /// The settings.
    pub chosen: Chosen,
    /// What each index's correlation should be at these settings; None if it has no query.
    pub correlations: Vec<Option<CorrelationChoice>>,
    /// The regrets with these correlations; None if all are those in force.
    pub corrected: Option<Regrets>,
}

/// Chooses both; `as_is` are the regrets with the correlations in force, and `in_force` the costs in force
/// with the concurrency that was chosen. None if they do not come to rest, if no costs suit the correlations,
/// or if there was no time to find out.
pub fn joint(
    planner: &mut dyn Planner,
    as_is: &Regrets,
    in_force: &Settings,
    times: &Times,
) -> Option<Joint> {
    let Regrets { cells, concurrencies, .. } = as_is;
    let mut assumed = choices(planner, in_force, concurrencies, times)?;
    for _ in 0..ROUNDS {
        let told = told(&assumed);
        let (chosen, corrected) = if told.iter().all(Option::is_none) {
            (as_is.choose(in_force)?, None)
        } else {
            let corrected = Regrets::of(&planner.told(&told)?, cells, concurrencies, times)?;
            (as_is.choose_beside(&corrected, in_force)?, Some(corrected))
        };
        let correlations = choices(planner, &chosen.settings, concurrencies, times)?;
        if self::told(&correlations) == told {
            return Some(Joint { chosen, correlations, corrected });
        }
        assumed = correlations;
    }
    None
}

/// What each index's correlation should be at these settings.
fn choices(
    planner: &mut dyn Planner,
    at: &Settings,
    concurrencies: &[u32],
    times: &Times,
) -> Option<Vec<Option<CorrelationChoice>>> {
    let picks = planner.at_correlations(at.cell)?;
    Some(picks.iter().map(|picks| picks.choose(at.concurrency, concurrencies, times)).collect())
}

/// The correlations that are not those in force.
fn told(choices: &[Option<CorrelationChoice>]) -> Vec<Option<f64>> {
    let choices = choices.iter();
    choices.map(|choice| choice.filter(|choice| !choice.holds_current).map(|told| told.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_costs::correlation::tests::{CONCURRENCIES, JITTERED, asked, picks, times};
    use crate::page_costs::locality::Locality;

    const DEFAULT: CostPair = CostPair { sequential: 1.0, random: 4.0 };

    /// The planner, with an index of which it takes rows to be in order.
    struct MadeUp {
        /// Where its rows lie, and those of an index of which it knows that they lie anywhere.
        localities: Vec<Locality>,
        correlations: Vec<f64>,
        cells: Vec<CostPair>,
        /// Answers that it gives before time ends.
        left: usize,
    }

    impl MadeUp {
        fn of(localities: &[Locality], correlations: &[f64]) -> Self {
            let cells = [1.1, 2.0, 4.0, 8.0, 200.0].map(|random| CostPair { sequential: 1.0, random }).into();
            Self { localities: localities.into(), correlations: correlations.into(), cells, left: 100 }
        }

        fn at(&self, correlations: &[f64]) -> Vec<Asked> {
            let of = |(locality, correlation): (&Locality, &f64)| {
                let premises: Vec<(CostPair, f64)> =
                    self.cells.iter().map(|cell| (*cell, *correlation)).collect();
                asked(*locality, &premises)
            };
            self.localities.iter().zip(correlations).flat_map(of).collect()
        }

        fn joint(&mut self, in_force: &Settings) -> Option<Joint> {
            let (times, as_is) = (times(3.0), self.at(&self.correlations));
            let as_is = Regrets::of(&as_is, &self.cells, &CONCURRENCIES, &times).expect("queries");
            joint(self, &as_is, in_force, &times)
        }
    }

    impl Planner for MadeUp {
        fn at_correlations(&mut self, cell: CostPair) -> Option<Vec<IndexPicks>> {
            self.left = self.left.checked_sub(1)?;
            let of = |(locality, correlation): (&Locality, &f64)| picks(cell, *locality, *correlation);
            Some(self.localities.iter().zip(&self.correlations).map(of).collect())
        }

        fn told(&mut self, correlations: &[Option<f64>]) -> Option<Vec<Asked>> {
            self.left = self.left.checked_sub(1)?;
            let told = correlations.iter().zip(&self.correlations);
            Some(self.at(&told.map(|(told, in_force)| told.unwrap_or(*in_force)).collect::<Vec<f64>>()))
        }
    }

    const AT_16: Settings = Settings { cell: DEFAULT, concurrency: 16 };

    #[test]
    fn settings_and_a_correlation_are_chosen_beside_each_other() {
        let found = MadeUp::of(&[JITTERED], &[0.9999]).joint(&AT_16).expect("settings");
        let told = found.correlations[0].expect("queries");
        let settings = found.chosen.settings;
        assert!(settings.concurrency == 16 && told.value < 0.9 && !told.holds_current, "{found:?}");
        // At 1 bitmap scans are as slow as the index scans that read at random.
        let at_1 = MadeUp::of(&[JITTERED], &[0.9999]).joint(&Settings { concurrency: 1, ..AT_16 });
        assert!(at_1.is_some_and(|found| found.correlations[0].is_some_and(|told| told.holds_current)));
        let corrected = found.corrected.as_ref().and_then(|of| of.at(&settings)).expect("asked for");
        assert!(corrected.cold < found.chosen.regret.cold, "{corrected:?}, {found:?}");
        // Who follows it is told nothing else.
        let again = MadeUp::of(&[JITTERED], &[told.value]).joint(&settings).expect("settings");
        assert_eq!((again.chosen.settings, again.corrected.is_none()), (settings, true), "{again:?}");
    }

    #[test]
    fn a_correlation_that_gains_only_at_other_page_costs_is_judged_beside_them() {
        let anywhere = Locality::of(1.0, 1.0);
        let in_force = Settings { cell: CostPair { sequential: 1.0, random: 200.0 }, concurrency: 16 };
        let mut planner = MadeUp::of(&[JITTERED, anywhere], &[0.9999, 0.0]);
        let here = picks(in_force.cell, JITTERED, 0.9999);
        let here = here.choose(16, &CONCURRENCIES, &times(3.0)).expect("queries");
        assert!(here.holds_current, "{here:?}");
        let found = planner.joint(&in_force).expect("settings");
        let (cell, told) = (found.chosen.settings.cell, found.correlations[0].expect("queries"));
        assert!(cell.random < 10.0 && !told.holds_current, "{cell:?}, {told:?}");
        let corrected = found.corrected.expect("regrets with it");
        assert!(
            corrected.at(&found.chosen.settings).is_some_and(|of| of.cold < found.chosen.regret.cold / 2.0)
        );
    }

    #[test]
    fn nothing_is_told_where_nothing_gains_or_time_ends() {
        let in_order = MadeUp::of(&[Locality::of(0.0, 1.0)], &[1.0]).joint(&AT_16).expect("settings");
        assert!(in_order.corrected.is_none() && in_order.correlations[0].is_some_and(|of| of.holds_current));
        let jittered = |left| MadeUp { left, ..MadeUp::of(&[JITTERED], &[0.9999]) }.joint(&AT_16);
        assert_eq!([0, 1, 2, 3].map(|left| jittered(left).is_some()), [false, false, false, true]);
    }
}
