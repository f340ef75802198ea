//! Which correlation of an index makes the planner pick the plans that are fast.
//!
//! The planner charges an index scan between what it costs in no order and what it costs in order,
//! `unordered + c² · (ordered − unordered)`, and takes `c` from `pg_stats.correlation`. Where rows lie in
//! local disorder that is far too near to 1. Here the planner was asked which plan it picks at each of some
//! correlations, at page costs that are given, and the picks are judged by their times as in
//! [`choose`](super::choose).
//!
//! The correlation whose charges come nearest to the pages that are read is another, and a worse one: over
//! short and long ranges it is a mean, and it leaves short ranges to index scans, since the planner does not
//! know that a bitmap scan of the same pages prefetches.
//!
//! Where rows lie in the order of the index, no lower correlation is told, though bitmap scans may be faster:
//! merge joins and ORDER BY would be planned as if a scan in that order were slow.
//!
//! # Limitations and caveats
//! - It is one number for short and long ranges.
//! - It is as good as the model's times, and as the ranges are like those that queries ask for.

use super::choose::{Asked, Judged, Regret, SAME_PLANS, Slowdown, judge, slowdowns};
use super::locality::Locality;
use super::model::{PlannedScan, Times};
use crate::plateau::{INNER, least_by};

/// Correlations to ask for, without a sign.
pub const CORRELATIONS: [f64; 13] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0];

/// By the model no query may take longer by this factor than with the correlation in force, cold or warm: a
/// user may run that one all day, and none of the others. Only a scan of the whole table may take longer.
/// With 1.1 some calls advised nothing where others gained much.
pub const HARM: f64 = 1.2;

/// Up to this factor a query may take longer warm if it gains more than that cold, and all together take no
/// longer warm: the model's warm times are off by up to 1.65. A scan of the whole table in place of one of
/// the 45 % that are asked for takes 2.2 times as long at most, so with 2 the advice hung by a hair.
const WARM_HARM: f64 = 3.0;

/// Rows of a table over those of a query that asks for many of them.
const MANY: f64 = 3.0;

/// How many times as long queries may take.
struct Limits {
    /// How many times as fast they are on average.
    gain: f64,
    /// Do they take no longer warm, on average?
    is_faster_warm: bool,
}

impl Limits {
    /// Is a query with this pick within them?
    fn allow(&self, of: Slowdown, query: &Asked, pick: PlannedScan) -> bool {
        let limit = limit(query, pick, self.gain);
        let warm = if self.is_faster_warm { limit.max(WARM_HARM.min(1.0 / of.cold)) } else { limit };
        of.cold <= limit && of.warm <= warm
    }
}

/// How many times as long a query may take, cold or warm. One of over a third of the rows that gets a scan of
/// the whole table may take longer by as much as that has more rows, and by no more than the queries gain on
/// average.
fn limit(query: &Asked, pick: PlannedScan, gain: f64) -> f64 {
    let of_table = query.table.rows / query.rows;
    if pick == PlannedScan::Sequential && of_table < MANY { of_table.min(gain).max(HARM) } else { HARM }
}

/// What the planner should take a correlation for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorrelationChoice {
    /// The value in force if it is as good as the best, else the best that is surely better and harms no
    /// query: none takes over 1.2 times as long, or as a scan of the whole table may, or as one that gains
    /// more cold may warm. Of values with the same plans, the nearest.
    pub value: f64,
    /// Is it the value in force?
    pub holds_current: bool,
    /// Lower end of the values around it that are as good and harm no query.
    pub low: f64,
    /// Their upper end.
    pub high: f64,
    /// The regret at the value in force.
    pub regret_in_force: Regret,
    /// The regret at this one.
    pub regret: Regret,
    /// How many times as long as at the value in force the queries take that lose most; 1 if none does.
    pub slowdown: Slowdown,
}

/// Queries by an index, for each of which the planner picked a plan at each of some correlations.
#[derive(Debug, Clone)]
pub struct IndexPicks {
    /// The queries.
    pub asked: Vec<Asked>,
    /// Other queries, which are not to be harmed either.
    pub guarded: Vec<Asked>,
    /// Other places where the rows may lie as well.
    pub moved: Vec<Locality>,
    /// The correlations, from 0 to 1, of which the first is in force. Each query has a pick for each.
    pub correlations: Vec<f64>,
}

impl IndexPicks {
    /// The correlation to tell the planner where `concurrency`, one of the measured `concurrencies`, is in
    /// force. None without a query.
    pub fn choose(
        &self,
        concurrency: u32,
        concurrencies: &[u32],
        times: &Times,
    ) -> Option<CorrelationChoice> {
        let Self { asked, correlations, .. } = self;
        let at = concurrencies.iter().position(|measured| *measured == concurrency)?;
        if asked.is_empty() || correlations.is_empty() {
            return None;
        }
        let mut moved = vec![asked.clone(); self.moved.len()];
        for (asked, locality) in moved.iter_mut().zip(&self.moved) {
            asked.iter_mut().for_each(|asked| asked.index.locality = *locality);
        }
        let places: Vec<(usize, usize)> = (0..correlations.len()).map(|cell| (cell, at)).collect();
        let judged = judge(asked, &moved, &places, concurrencies, times);
        Some(JudgedPicks { picks: self, judged, concurrency, times }.choice())
    }
}

/// The place of the correlation in force.
const IN_FORCE: usize = 0;

/// The correlations that may be told, judged at one concurrency. A place is that of a correlation.
struct JudgedPicks<'a> {
    picks: &'a IndexPicks,
    judged: Judged,
    concurrency: u32,
    times: &'a Times,
}

impl JudgedPicks<'_> {
    /// What is in force, if it is as good or nothing is surely better; else the best that is. With one that
    /// is as good and nearer, short ranges were left to index scans, for many times the time.
    fn choice(&self) -> CorrelationChoice {
        let (Judged { regrets, candidates }, correlations) = (&self.judged, &self.picks.correlations);
        let inner = (0..correlations.len()).filter(|place| candidates.excess(*place) <= INNER);
        let better = inner.filter(|place| candidates.gains(*place, IN_FORCE));
        let better: Vec<usize> = better.filter(|place| self.is_harmless(*place)).collect();
        let least = better.iter().map(|place| regrets[*place].cost()).fold(f64::INFINITY, f64::min);
        let best = better.into_iter().filter(|place| regrets[*place].cost() <= least + SAME_PLANS);
        let best = least_by(best, |place| (correlations[*place] - correlations[IN_FORCE]).abs());
        let kept = Some(IN_FORCE).filter(|place| candidates.excess(*place) <= 1.0);
        let place = kept.or(best).unwrap_or(IN_FORCE);
        let (low, high) = self.range(place);
        CorrelationChoice {
            value: correlations[place],
            holds_current: place == IN_FORCE,
            low,
            high,
            regret_in_force: regrets[IN_FORCE],
            regret: regrets[place],
            slowdown: self.slowdowns(place).map(|(of, _)| of).fold(Slowdown::NONE, Slowdown::most),
        }
    }

    /// The ends of the correlations around this one that are as good. It stops at one that harms a query,
    /// though that may be as good on average.
    fn range(&self, place: usize) -> (f64, f64) {
        let correlations = &self.picks.correlations;
        let mut along: Vec<(f64, usize)> = correlations.iter().copied().zip(0..).collect();
        along.sort_by(|a, b| a.0.total_cmp(&b.0));
        let at = along.iter().position(|(_, other)| *other == place).unwrap_or(0);
        let below = along[..at].iter().rev().take_while(|(_, other)| self.is_harmless(*other)).count();
        let above = along[at + 1..].iter().take_while(|(_, other)| self.is_harmless(*other)).count();
        self.judged.candidates.range(&along[at - below..=at + above], correlations[place])
    }

    /// Does this correlation slow no query down too much, and hide no order of the rows?
    fn is_harmless(&self, place: usize) -> bool {
        let (IndexPicks { asked, correlations, .. }, regrets) = (self.picks, &self.judged.regrets);
        let hides_order =
            asked[0].index.locality.is_in_order() && correlations[place] < correlations[IN_FORCE];
        let gain = (regrets[IN_FORCE].cost() - regrets[place].cost()).exp();
        let limits = Limits { gain, is_faster_warm: regrets[place].warm <= regrets[IN_FORCE].warm };
        !hides_order && self.slowdowns(place).all(|(of, query)| limits.allow(of, query, query.picks[place]))
    }

    /// How many times as long each query takes as at the correlation in force.
    fn slowdowns(&self, place: usize) -> impl Iterator<Item = (Slowdown, &Asked)> {
        [&self.picks.asked, &self.picks.guarded].into_iter().flat_map(move |queries| {
            slowdowns(queries, (place, IN_FORCE), self.concurrency, self.times).zip(queries)
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::page_costs::choose::CostPair;
    use crate::page_costs::model::{Index, Table};
    use io_probe_core::measure::page_times::times::{Estimate, PageTimes, Sparse};

    /// 60 rows a page.
    const TABLE: Table = Table { pages: 60_000.0, rows: 3_600_000.0 };
    const DEFAULT: CostPair = CostPair { sequential: 1.0, random: 4.0 };
    pub(in super::super) const CONCURRENCIES: [u32; 3] = [0, 1, 16];

    /// Random reads take 100 us one at a time, and 10 us prefetched, with an error of `error_pct` percent.
    pub(in super::super) fn times(error_pct: f64) -> Times {
        times_of(error_pct, 6.0)
    }

    /// All pages, prefetched, take `all_us` each.
    fn times_of(error_pct: f64, all_us: f64) -> Times {
        let known = |us: f64| {
            let error = us * error_pct / 100.0;
            Estimate { us, interval: Some((us - error, us + error)) }
        };
        // At 1 each read waits for the one before.
        let curve = [
            (0.01, 0, 100.0),
            (0.5, 0, 12.0),
            (1.0, 0, 6.0),
            (0.01, 1, 110.0),
            (0.5, 1, 100.0),
            (1.0, 1, 90.0),
            (0.01, 16, 12.0),
            (0.5, 16, 8.0),
            (1.0, 16, all_us),
        ];
        let times = PageTimes {
            shared: Some(known(0.1)),
            os_sequential: Some(known(1.0)),
            os_random: Some(known(2.0)),
            device_sequential: Some(known(5.0)),
            device_random: Some(known(100.0)),
            sparse: curve
                .map(|(density, concurrency, us)| Sparse { density, concurrency, time: known(us) })
                .into(),
            tuple: Some(known(0.03)),
        };
        Times::of(&times, 16_384.0, 1024.0).expect("all times")
    }

    /// What the planner picks by its formulas, of a table that fits its cache.
    fn pick((cell, correlation): (CostPair, f64), rows: f64) -> PlannedScan {
        let Table { pages, rows: all } = TABLE;
        let anywhere = (2.0 * pages * rows / (2.0 * pages + rows)).min(pages);
        let (unordered, ordered) = (anywhere * cell.random, cell.random + rows / all * pages - 1.0);
        let index = unordered + correlation * correlation * (ordered - unordered) + rows * 0.0125;
        let a_page = cell.random - (cell.random - cell.sequential) * (anywhere / pages).sqrt();
        let bitmap = anywhere * a_page + rows * 0.0135;
        let sequential = pages + all * 0.0125;
        if sequential < index.min(bitmap) {
            PlannedScan::Sequential
        } else if bitmap < index {
            PlannedScan::Bitmap
        } else {
            PlannedScan::Index
        }
    }

    /// Queries by an index, and what is picked at each of these page costs and correlations.
    pub(in super::super) fn asked(locality: Locality, premises: &[(CostPair, f64)]) -> Vec<Asked> {
        let index = Index { pages: 6000.0, locality };
        let asked = |share: f64| {
            let rows = share * TABLE.rows;
            let picks = premises.iter().map(|premise| pick(*premise, rows)).collect();
            Asked { table: TABLE, index, rows, covered: false, picks }
        };
        [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1].map(asked).into()
    }

    /// What is picked at each correlation.
    pub(in super::super) fn picks(cell: CostPair, locality: Locality, in_force: f64) -> IndexPicks {
        let correlations: Vec<f64> = [in_force].into_iter().chain(CORRELATIONS).collect();
        let premises: Vec<(CostPair, f64)> =
            correlations.iter().map(|correlation| (cell, *correlation)).collect();
        let asked = asked(locality, &premises);
        IndexPicks { asked, guarded: Vec::new(), moved: Vec::new(), correlations }
    }

    fn chosen(locality: Locality, in_force: f64, error_pct: f64) -> CorrelationChoice {
        picks(DEFAULT, locality, in_force).choose(16, &CONCURRENCIES, &times(error_pct)).expect("queries")
    }

    pub(in super::super) const JITTERED: Locality = Locality::of(0.0, 600.0);

    #[test]
    fn local_disorder_is_told_to_the_planner() {
        let found = chosen(JITTERED, 0.9999, 3.0);
        assert!(found.value < 0.9 && found.low <= found.value && found.value <= found.high, "{found:?}");
        assert!(found.high < 0.9999 && found.regret_in_force.cold > 1.3 * found.regret.cold, "{found:?}");
        // Once told, it stays.
        assert_eq!(chosen(JITTERED, found.value, 3.0).value, found.value);
    }

    #[test]
    fn true_order_and_none_stay_as_they_are() {
        let in_order = Locality::of(0.0, 1.0);
        assert_eq!(chosen(in_order, 1.0, 3.0).value, 1.0);
        // Backwards each page is read at random.
        assert!(chosen(Locality { is_backward: true, ..in_order }, 1.0, 3.0).value < 1.0);
        let anywhere = Locality::of(1.0, 1.0);
        assert_eq!(chosen(anywhere, 0.01, 3.0).value, 0.01);
    }

    #[test]
    fn values_that_harm_are_not_said_to_be_as_good() {
        let index = Index { pages: 6000.0, locality: JITTERED };
        let bitmap = vec![PlannedScan::Bitmap; 4];
        let asked = |share: f64, picks: &[PlannedScan]| Asked {
            table: TABLE,
            index,
            rows: share * TABLE.rows,
            covered: false,
            picks: picks.to_vec(),
        };
        let mut last = bitmap.clone();
        last[3] = PlannedScan::Sequential;
        let found = |guarded| {
            let asked = vec![asked(0.01, &bitmap)];
            let correlations = vec![0.5, 0.6, 0.7, 0.4];
            let picks = IndexPicks { asked, guarded, moved: Vec::new(), correlations };
            let found = picks.choose(16, &CONCURRENCIES, &times(3.0)).expect("a query");
            (found.low, found.value, found.high)
        };
        assert_eq!(found(Vec::new()), (0.4, 0.5, 0.7));
        assert_eq!(found(vec![asked(0.0001, &last)]), (0.5, 0.5, 0.7));
    }

    #[test]
    fn what_is_not_sure_is_not_told() {
        // Neither where times are hardly known,
        assert_eq!(chosen(JITTERED, 0.9999, 900.0).value, 0.9999);
        // nor where the rows may as well lie in order, so that an index scan is faster.
        let index = Index { pages: 6000.0, locality: Locality::of(0.3, 1.0) };
        let picks = vec![PlannedScan::Index, PlannedScan::Bitmap];
        let asked = vec![Asked { table: TABLE, index, rows: 0.03 * TABLE.rows, covered: false, picks }];
        let value = |moved: &[Locality]| {
            let picks = IndexPicks {
                asked: asked.clone(),
                guarded: Vec::new(),
                moved: moved.to_vec(),
                correlations: vec![0.9, 0.0],
            };
            picks.choose(16, &CONCURRENCIES, &times_of(3.0, 12.0)).expect("queries").value
        };
        assert_eq!((value(&[]), value(&[Locality::of(0.0, 1.0)])), (0.0, 0.9));
        let none =
            IndexPicks { asked: Vec::new(), guarded: Vec::new(), moved: Vec::new(), correlations: vec![1.0] };
        assert_eq!(none.choose(16, &CONCURRENCIES, &times(3.0)), None);
    }

    #[test]
    fn a_correlation_may_gain_only_beside_another_concurrency() {
        let jittered = picks(DEFAULT, JITTERED, 0.9999);
        let at = |concurrency| jittered.choose(concurrency, &CONCURRENCIES, &times(3.0)).expect("queries");
        // At 1 bitmap scans are as slow as the index scans that read at random.
        assert!(at(1).holds_current && !at(16).holds_current, "{:?} {:?}", at(1), at(16));
        assert!(at(1).regret.cold > at(16).regret.cold, "{:?} {:?}", at(1), at(16));
    }

    #[test]
    fn a_scan_of_the_table_for_many_of_its_rows_may_take_longer_if_others_gain_as_much() {
        let index = Index { pages: 6000.0, locality: JITTERED };
        let of = |share: f64, pick| {
            let rows = share * TABLE.rows;
            let query = Asked { table: TABLE, index, rows, covered: false, picks: Vec::new() };
            [3.0, 1.3, 1.0].map(|gain| limit(&query, pick, gain))
        };
        let shares = [0.0001, 0.33, 0.625, 0.8, 1.0];
        assert_eq!(
            shares.map(|share| of(share, PlannedScan::Sequential)),
            [[1.2; 3], [1.2; 3], [1.6, 1.3, 1.2], [1.25, 1.25, 1.2], [1.2; 3]]
        );
        assert_eq!(of(0.8, PlannedScan::Bitmap), [1.2; 3]);
    }

    #[test]
    fn what_harms_one_query_is_not_told_for_the_sake_of_others() {
        let index = Index { pages: 6000.0, locality: JITTERED };
        let asked = |rows: f64, then: PlannedScan| Asked {
            table: TABLE,
            index,
            rows,
            covered: false,
            picks: vec![PlannedScan::Index, then],
        };
        let gain = asked(3000.0, PlannedScan::Bitmap);
        let chosen = |last: Asked| {
            // Whether it weighs or not.
            let of = |asked, guarded| {
                let picks = IndexPicks { asked, guarded, moved: Vec::new(), correlations: vec![0.9999, 0.0] };
                let choice = picks.choose(16, &CONCURRENCIES, &times(3.0)).expect("queries");
                (choice.value, choice.slowdown.cold.max(choice.slowdown.warm))
            };
            let found = of(vec![gain.clone(); 9], vec![last.clone()]);
            assert_eq!(of([vec![gain.clone(); 9], vec![last]].concat(), Vec::new()), found);
            found
        };
        assert_eq!(chosen(gain.clone()), (0.0, 1.0));
        assert_eq!(chosen(asked(3000.0, PlannedScan::Sequential)), (0.9999, 1.0));
        // A scan of the table may take as many times as long as the others gain.
        let mut many = asked(0.45 * 600_000.0, PlannedScan::Sequential);
        many.table.rows = 600_000.0;
        many.index.locality = Locality::of(0.0, 1.0);
        let (value, slowdown) = chosen(many);
        assert!(value == 0.0 && slowdown > 1.3, "{value}, {slowdown}");
        // 1.41 times as long.
        let mut most = asked(0.6 * TABLE.rows, PlannedScan::Bitmap);
        most.picks[0] = PlannedScan::Sequential;
        assert_eq!(chosen(most), (0.9999, 1.0));
        // An eleventh cold, and 1.5 times as long warm.
        let mut anywhere = asked(50_000.0, PlannedScan::Sequential);
        anywhere.index.locality = Locality::of(1.0, 1.0);
        let (value, slowdown) = chosen(anywhere.clone());
        assert!(value == 0.0 && (1.3..WARM_HARM).contains(&slowdown), "{value}, {slowdown}");
        // 3.5 times as long warm.
        anywhere.rows /= 2.5;
        assert_eq!(chosen(anywhere), (0.9999, 1.0));
    }

    /// With the nearer one a tenth of the queries take eight times as long, which the error of the times
    /// hides.
    #[test]
    fn the_best_of_those_that_are_as_good_is_told() {
        let index = Index { pages: 6000.0, locality: JITTERED };
        let asked = |rows: f64, picks: [PlannedScan; 3]| Asked {
            table: TABLE,
            index,
            rows,
            covered: false,
            picks: picks.into(),
        };
        let (by_index, bitmap) = (PlannedScan::Index, PlannedScan::Bitmap);
        let long = asked(3000.0, [by_index, bitmap, bitmap]);
        let short = asked(300.0, [by_index, by_index, bitmap]);
        let told = |asked: Vec<Asked>| {
            let correlations = vec![0.9999, 0.2, 0.0];
            let picks = IndexPicks { asked, guarded: Vec::new(), moved: Vec::new(), correlations };
            picks.choose(16, &CONCURRENCIES, &times(30.0)).expect("queries").value
        };
        assert_eq!(told([vec![long.clone(); 9], vec![short]].concat()), 0.0);
        // With the same plans the nearer one.
        assert_eq!(told(vec![long; 10]), 0.2);
    }
}
