//! `effective_io_concurrency` of a tablespace: by what its tables' queries take with the best plan at each,
//! and by the density curve.
//!
//! The setting is the tablespace's, and the queries are those of a few tables. A table in the order of its
//! indexes needs no bitmap scan, and one in nearly their order only dense ones: neither says what reads with
//! wide gaps take, which another table may need. So the logarithm of the score is twice that of the time of
//! the best plans, as a mean over the queries with nothing cached, and that of a block, as a mean over the
//! densities. (Divided by three it would be a mean; but then the values of a simulated device differed by
//! about the 5 % that count, and one call in four said something else.) Where no query needs a bitmap scan,
//! the density curve decides by itself.
//!
//! Of a slow device a point of the curve is the mean of a few turns, and its interval hardly known itself: of
//! two turns it may reach from 0 to twice the time, where those beside it are within a tenth. So no point
//! counts as off by more than twice what is usual of all.
//!
//! The value in force stays unless another one is surely better, see [`plateau()`](crate::plateau()).
//!
//! What the planner picks does not count so far: it knows nothing of the concurrency. But another value may
//! be as good (or nearly, where the one in force goes), and the planner's picks be further from the best
//! plans at one of them, whatever page costs and correlations are advised beside it. So these are chosen
//! beside each, and the time of the picks is put in the place of that of the best plans.

use super::choose::{Asked, Regrets, Settings, best_cold};
use super::curve::{CHOSEN, Use};
use super::model::Times;
use crate::plateau::{AS_GOOD, Candidates, Plateau, least_by};

/// How many times the usual error the one of a point of the curve may be.
const MOST_UNUSUAL: f64 = 2.0;

/// How many times as much as the densities, which any table may need, the queries of the tables that there
/// are weigh.
const QUERIES: f64 = 2.0;

/// A concurrency for queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryConcurrency {
    /// The value, and from and to where others are as good.
    pub plateau: Plateau,
    /// Do the queries take over 5 % longer at some concurrency than at another, each by its best plan?
    pub matters_to_queries: bool,
    /// At that value.
    pub scores: Scores,
    /// At the value in force.
    pub scores_in_force: Scores,
}

/// How many times as long as with the best value for each, as geometric means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// The best plans of the queries, with nothing cached.
    pub queries: f64,
    /// A block that is read with gaps.
    pub gaps: f64,
}

/// The best of the measured concurrencies, or the one in force if it is as good; after it others that are as
/// good (or nearly, if the one in force is not the first). Empty without a query, or if the one in force was
/// not measured.
pub fn choose_for_queries(asked: &[Asked], times: &Times, in_force: u32) -> Vec<QueryConcurrency> {
    let values: Vec<u32> = times.curve().concurrencies().collect();
    let place = |value: u32| values.iter().position(|other| *other == value);
    let Some(set) = place(in_force).filter(|_| !asked.is_empty()) else { return Vec::new() };
    let times = &times.with_usual_errors(MOST_UNUSUAL);
    let costs = Costs::of(asked, &values, times);
    let moved = each_moved(times).map(|times| Costs::of(asked, &values, &times).both());
    let ladder: Vec<u64> = values.iter().map(|value| u64::from(*value)).collect();
    let plateaus = Candidates::of(costs.both(), moved).plateaus(&ladder, Some(in_force.into()), CHOSEN);
    let of_plateau = |plateau: Plateau| {
        Some(QueryConcurrency {
            plateau,
            matters_to_queries: costs.range_of_queries() > AS_GOOD.ln(),
            scores: costs.scores(place(plateau.value as u32)?),
            scores_in_force: costs.scores(set),
        })
    };
    plateaus.into_iter().filter_map(of_plateau).collect()
}

/// The times with each of them at the upper end of its interval, and each line of the curve off.
fn each_moved(times: &Times) -> impl Iterator<Item = Times> {
    times.each_moved().chain(times.curve().concurrencies().map(|value| times.with_slower(value)))
}

/// The logarithm of a score.
fn weighed(queries: f64, gaps: f64) -> f64 {
    QUERIES * queries + gaps
}

/// Of settings at concurrencies that are as good for the best plans, each with its regrets: the place of
/// those with which the planner's picks, cold, and reads with gaps take least. The first stay where no picks
/// are over 5 % faster, and if the first concurrency is `in_force`, where none are surely better.
pub fn least_by_picks(settings: &[(Settings, &Regrets)], times: &Times, in_force: bool) -> usize {
    let times = &times.with_usual_errors(MOST_UNUSUAL);
    let picks = cold_picks(settings, times);
    let costs = costs_of_picks(settings, times);
    let candidates =
        Candidates::of(costs.clone(), each_moved(times).map(|times| costs_of_picks(settings, &times)));
    let better = (1..settings.len()).filter(|place| {
        let is_faster = picks[0] - picks[*place] > AS_GOOD.ln();
        is_faster && if in_force { candidates.gains(*place, 0) } else { costs[*place] < costs[0] }
    });
    least_by(better, |place| costs[*place]).unwrap_or(0)
}

/// Logarithms of what the picks take cold.
fn cold_picks(settings: &[(Settings, &Regrets)], times: &Times) -> Vec<f64> {
    settings.iter().map(|(at, regrets)| regrets.cold_at(at, times).unwrap_or(f64::INFINITY)).collect()
}

/// Logarithms of the scores, with the picks in the place of the best plans.
fn costs_of_picks(settings: &[(Settings, &Regrets)], times: &Times) -> Vec<f64> {
    let densities = times.curve().densities(Use::Queries);
    let concurrencies: Vec<u32> = settings.iter().map(|(at, _)| at.concurrency).collect();
    let gaps = times.curve().costs(&densities, &concurrencies);
    cold_picks(settings, times).into_iter().zip(gaps).map(|(picks, gaps)| weighed(picks, gaps)).collect()
}

/// Logarithms of times at each concurrency, and of those with the best for each query or density.
struct Costs {
    queries: Vec<f64>,
    gaps: Vec<f64>,
    least_queries: f64,
    least_gaps: f64,
}

impl Costs {
    fn of(asked: &[Asked], values: &[u32], times: &Times) -> Self {
        let curve = times.curve();
        let densities = curve.densities(Use::Queries);
        let (queries, least_queries) = best_cold(asked, values, times);
        let (gaps, least_gaps) = (curve.costs(&densities, values), curve.least(&densities));
        Self { queries, gaps, least_queries, least_gaps }
    }

    fn both(&self) -> Vec<f64> {
        self.queries.iter().zip(&self.gaps).map(|(queries, gaps)| weighed(*queries, *gaps)).collect()
    }

    fn range_of_queries(&self) -> f64 {
        let most = self.queries.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        most - self.queries.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn scores(&self, place: usize) -> Scores {
        Scores {
            queries: (self.queries[place] - self.least_queries).exp(),
            gaps: (self.gaps[place] - self.least_gaps).exp(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_costs::choose::CostPair;
    use crate::page_costs::locality::Locality;
    use crate::page_costs::model::{Index, PlannedScan, Table};
    use io_probe_core::measure::page_times::times::{Estimate, PageTimes, Sparse};

    const TABLE: Table = Table { pages: 20_000.0, rows: 1_000_000.0 };
    const ORDERED: Locality = Locality::of(0.0, 1.0);
    const NEARLY: Locality = Locality::of(0.0, 12.0);
    const ANYWHERE: Locality = Locality::of(1.0, 1.0);

    /// Wide gaps take `speedup` times as long at 0 and 1 as at 16 and 64; up to close ones `dense` times as
    /// long at 16 and 64 as at 0. All times are known to `error` of them.
    fn times(speedup: f64, dense: f64, error: f64) -> Times {
        let alone = [100.0, 50.0, 10.0];
        let ahead = [100.0 / speedup, 50.0 / speedup, 10.0 * dense];
        let lines = [(0, alone), (1, [100.0, 90.0, 60.0]), (16, ahead), (64, ahead)];
        times_of(&lines.map(|(concurrency, us)| line(concurrency, us, [error; 3])).concat())
    }

    fn known(us: f64, error: f64) -> Estimate {
        Estimate { us, interval: Some((us * (1.0 - error), us * (1.0 + error))) }
    }

    /// The curve at a concurrency, and the errors of its points.
    fn line(concurrency: u32, us: [f64; 3], errors: [f64; 3]) -> Vec<Sparse> {
        let points = [0.03, 0.2, 0.9].into_iter().zip(us).zip(errors);
        points.map(|((density, us), error)| Sparse { density, concurrency, time: known(us, error) }).collect()
    }

    fn times_of(sparse: &[Sparse]) -> Times {
        let exactly = |us| Some(known(us, 0.0));
        let measured = PageTimes {
            shared: exactly(0.1),
            os_sequential: exactly(1.0),
            os_random: exactly(2.0),
            device_sequential: exactly(8.0),
            device_random: exactly(100.0),
            sparse: sparse.to_vec(),
            tuple: exactly(0.05),
        };
        Times::of(&measured, 16_384.0, 16.0).expect("all times")
    }

    #[test]
    fn a_point_of_few_turns_does_not_hide_what_all_others_show() {
        let times = |error: f64| {
            let few = line(1, [100.0; 3], [0.05, error, 0.05]);
            times_of(&[line(0, [100.0; 3], [0.05; 3]), few, line(16, [50.0; 3], [0.05; 3])].concat())
        };
        let kept = |times: &Times| chosen(ORDERED, times, 1).plateau.holds_current;
        assert!(!kept(&times(0.05)) && !kept(&times(30.0)));
        let is_moved = |times: &Times| times.each_moved().any(|moved| moved.curve().at(0.2, 1) > 1000.0);
        assert!(is_moved(&times(30.0)) && !is_moved(&times(30.0).with_usual_errors(MOST_UNUSUAL)));
        // Where all points are as bad, it stays.
        let all = [(0, 100.0), (1, 100.0), (16, 50.0)];
        assert!(kept(&times_of(&all.map(|(at, us)| line(at, [us; 3], [30.0; 3])).concat())));
    }

    fn asked(locality: Locality) -> Vec<Asked> {
        let index = Index { pages: 2700.0, locality };
        let shares = [0.0003, 0.002, 0.01, 0.05, 0.2, 0.6];
        let of = |share: f64| Asked {
            table: TABLE,
            index,
            rows: share * TABLE.rows,
            covered: false,
            picks: vec![PlannedScan::Index],
        };
        shares.map(of).into()
    }

    fn chosen(locality: Locality, times: &Times, in_force: u32) -> QueryConcurrency {
        choose_for_queries(&asked(locality), times, in_force)[0]
    }

    #[test]
    fn where_no_query_needs_a_bitmap_scan_the_density_curve_decides() {
        let found = chosen(ORDERED, &times(8.0, 1.0, 0.02), 1);
        assert!(!found.matters_to_queries, "{found:?}");
        assert_eq!((found.plateau.value, found.plateau.high, found.plateau.holds_current), (64, 64, false));
        assert!(found.scores.gaps < 1.01 && found.scores_in_force.gaps > 3.0, "{found:?}");
        // The queries alone would keep it.
        assert!(found.scores_in_force.queries < 1.05, "{found:?}");
    }

    #[test]
    fn a_table_of_one_kind_does_not_decide_for_its_tablespace() {
        // Dense bitmap scans take twice as long with prefetch, sparse ones an eighth.
        let times = times(8.0, 2.0, 0.02);
        let [nearly, anywhere] = [NEARLY, ANYWHERE].map(|locality| chosen(locality, &times, 1).plateau.value);
        assert_eq!((nearly, anywhere), (64, 64));
    }

    #[test]
    fn what_is_set_stays_unless_another_value_is_surely_better() {
        for locality in [ORDERED, ANYWHERE] {
            let kept = |times: &Times, set| chosen(locality, times, set).plateau.holds_current;
            assert!(kept(&times(8.0, 1.0, 0.02), 16) && kept(&times(8.0, 1.0, 0.02), 64));
            assert!(!kept(&times(8.0, 1.0, 0.02), 0));
            // Half as long again, and no more than the times may be off.
            assert!(kept(&times(1.2, 1.0, 0.9), 0), "{locality:?}");
        }
    }

    #[test]
    fn queries_that_need_bitmap_scans_count_beside_the_curve() {
        // By the curve alone 0 and 64 are alike: wide gaps gain what close ones lose.
        let times = times(1.5, 2.25, 0.001);
        let curve_alone = chosen(ORDERED, &times, 0);
        assert!(curve_alone.plateau.holds_current, "{curve_alone:?}");
        let found = chosen(ANYWHERE, &times, 0);
        assert!(found.matters_to_queries && found.plateau.value == 64, "{found:?}");
    }

    #[test]
    fn as_good_apart_from_each_other_are_told_each() {
        let plateaus = |speedup, in_force| {
            let found = choose_for_queries(&asked(ORDERED), &times(speedup, 2.25, 0.001), in_force);
            found.iter().map(|of| (of.plateau.value, of.plateau.holds_current)).collect::<Vec<_>>()
        };
        assert_eq!(plateaus(1.5, 0), [(0, true), (64, false)]);
        assert_eq!(plateaus(1.5, 64), [(64, true), (0, false)]);
        // Neither is in force, and of both the last one is first.
        assert_eq!(plateaus(1.5, 1), [(64, false), (0, false)]);
        assert_eq!(plateaus(8.0, 1), [(64, false)]);
    }

    #[test]
    fn of_values_as_good_the_one_is_told_with_which_the_planner_picks_what_is_fast() {
        const CELL: CostPair = CostPair { sequential: 1.0, random: 4.0 };
        let least = |at_0: PlannedScan, at_64: PlannedScan, error: f64, in_force: bool| {
            let times = times(1.5, 2.25, error);
            let regrets = [at_64, at_0].map(|pick| {
                let asked: Vec<Asked> =
                    asked(ANYWHERE).into_iter().map(|of| Asked { picks: vec![pick], ..of }).collect();
                Regrets::of(&asked, &[CELL], &[0, 64], &times).expect("queries")
            });
            let settings = [64, 0].map(|concurrency| Settings { cell: CELL, concurrency });
            let both: Vec<(Settings, &Regrets)> = settings.into_iter().zip(&regrets).collect();
            least_by_picks(&both, &times, in_force)
        };
        use PlannedScan::{Bitmap, Index};
        // Rows that lie anywhere are read faster page by page.
        assert_eq!(least(Bitmap, Index, 0.001, false), 1);
        assert_eq!(least(Index, Bitmap, 0.001, false), 0);
        assert_eq!(least(Bitmap, Index, 0.001, true), 1);
        // What is in force stays where the difference is not sure.
        assert_eq!([true, false].map(|in_force| least(Bitmap, Index, 9.0, in_force)), [0, 1]);
        assert_eq!(least(Index, Index, 0.001, false), 0);
        assert_eq!(least_by_picks(&[], &times(1.5, 2.25, 0.001), true), 0);
    }

    #[test]
    fn without_queries_or_the_value_in_force_nothing_is_said() {
        let times = times(8.0, 1.0, 0.02);
        assert_eq!(choose_for_queries(&[], &times, 1), []);
        assert_eq!(choose_for_queries(&asked(ANYWHERE), &times, 3), []);
    }
}
