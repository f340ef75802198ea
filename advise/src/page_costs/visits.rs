//! Which pages of a table the ranges of an index visit, by samples of the index.
//!
//! The planner knows one number of how far rows that follow one another in an index do so in the table:
//! `pg_stats.correlation`, of ranks. Local disorder (late events, keys of several writers, updates) leaves it
//! at 0.999, although pages are visited at random. So the pages are predicted from where the rows of a few
//! entries lie ([`Locality`]).
//!
//! # Limitations and caveats
//! - The sampling error is a bootstrap's over the samples, of which there are few: the interval holds in nine
//!   of ten cases. It knows nothing of places of the index that are unlike all of these.
//! - One share and one stretch for all of the index: of rows that lie in two orders at once, as where
//!   deleted ones were filled again, or in groups that lie anywhere, they predict too many pages. So they
//!   are held against the samples that they are made of ([`IndexVisits::fits`]).
//!
//! Sources: Cardenas, "Analysis and performance of inverted data base structures", CACM 18 (1975); Efron,
//! "Bootstrap methods: another look at the jackknife", Annals of Statistics 7 (1979).

use std::collections::HashSet;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::locality::{Locality, lie_anywhere, locality};
use super::model::Table;
use super::visited::Visited;
use io_probe_core::stats::Interval;

/// Pages that a range visits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RangeVisits {
    /// All of them, each once.
    pub pages: Interval,
    /// Those that the kernel can't foresee in an index scan, with the window that it has.
    pub at_random: Interval,
}

/// Where the rows of an index lie, with intervals.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexVisits {
    /// Where they lie by the samples.
    pub locality: Locality,
    /// Share of the rows that lie anywhere.
    pub scattered: Interval,
    /// Pages of the stretch of the others.
    pub stretch: Interval,
    /// What ranges visit.
    pub ranges: Vec<RangeVisits>,
    /// Do the samples bear out what is predicted from them?
    pub fits: bool,
}

impl IndexVisits {
    /// Where the rows may lie as well: with one of its two figures at either end of its interval.
    pub fn each_moved(&self) -> [Locality; 4] {
        let Self { locality, scattered, stretch, .. } = self;
        [
            Locality { scattered: scattered.low, ..*locality },
            Locality { scattered: scattered.high, ..*locality },
            Locality { stretch: stretch.low, ..*locality },
            Locality { stretch: stretch.high, ..*locality },
        ]
    }
}

/// Draws of the bootstrap.
const DRAWS: usize = 200;
/// Fewest samples: fewer would be drawn alike.
const LEAST_SAMPLES: usize = 6;
/// What is predicted may be off by this factor, and by the page at the end of each sample.
const MISFIT: f64 = 2.0;

/// Visits by samples of an index of this table, in its order (see [`locality`]), and of ranges of as many
/// rows as `ranges` says where the kernel reads up to `window` pages ahead. None without several samples of
/// several rows.
pub fn index_visits(samples: &[Vec<u64>], table: &Table, ranges: &[f64], window: f64) -> Option<IndexVisits> {
    let found = locality(samples, table).filter(|_| samples.len() >= LEAST_SAMPLES)?;
    // Always the same draws: what is measured anew is the index.
    let mut random = Xoshiro256PlusPlus::seed_from_u64(DRAWS as u64);
    let mut draws = Vec::new();
    for _ in 0..DRAWS {
        let mut places: Vec<usize> = samples.iter().map(|_| random.random_range(0..samples.len())).collect();
        // Their order tells in which direction the rows lie.
        places.sort_unstable();
        let drawn: Vec<Vec<u64>> = places.into_iter().map(|place| samples[place].clone()).collect();
        draws.extend(locality(&drawn, table));
    }
    let ranges = ranges.iter().map(|rows| RangeVisits {
        pages: interval(&found, &draws, |drawn| Visited::of(table, drawn, *rows).pages()),
        at_random: interval(&found, &draws, |drawn| Visited::of(table, drawn, *rows).at_random(window)),
    });
    Some(IndexVisits {
        locality: found,
        scattered: interval(&found, &draws, |drawn| drawn.scattered),
        stretch: interval(&found, &draws, |drawn| drawn.stretch),
        ranges: ranges.collect(),
        fits: fits(&found, samples, table),
    })
}

/// A figure of what was found, with what the middle 95 % of the draws say of it.
fn interval(found: &Locality, draws: &[Locality], figure: impl Fn(&Locality) -> f64) -> Interval {
    let value = figure(found);
    let mut drawn: Vec<f64> = draws.iter().map(figure).collect();
    drawn.sort_by(f64::total_cmp);
    let last = drawn.len().saturating_sub(1) as f64;
    let [low, high] =
        [0.025, 0.975].map(|share| drawn.get((share * last).round() as usize).copied().unwrap_or(value));
    Interval { value, low: low.min(value), high: high.max(value) }
}

/// Does a locality predict about as many pages as the samples visit, of which it is made, and have rows
/// that are said to lie anywhere no order of their own? All rows may: they come from several places.
fn fits(locality: &Locality, samples: &[Vec<u64>], table: &Table) -> bool {
    let (mut seen, mut predicted, ends) = (0.0, 0.0, samples.len() as f64);
    let is_of_places = locality.scattered == 1.0 && locality.reach.is_some();
    for sample in samples {
        seen += sample.iter().collect::<HashSet<_>>().len() as f64;
        predicted += Visited::of(table, locality, sample.len() as f64).pages();
    }
    predicted <= MISFIT * seen + ends
        && seen <= MISFIT * predicted + ends
        && (is_of_places || lie_anywhere(samples, table))
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, Normal};

    use super::*;

    /// 60 rows a page.
    const TABLE: Table = Table { pages: 20_000.0, rows: 1_200_000.0 };
    /// 8 MiB.
    const WINDOW: f64 = 1024.0;
    const SHARES: [f64; 4] = [0.0001, 0.001, 0.01, 0.1];

    /// The page of each row of a table with `per_page` rows a page, in the order of an index of which each
    /// row lies `off` pages off its place.
    fn pages_of_rows(per_page: f64, off: impl Fn(&mut Xoshiro256PlusPlus) -> f64) -> Vec<u64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let place = |row: u64| row as f64 / per_page;
        let mut keys: Vec<(f64, u64)> = (0..(TABLE.pages * per_page) as u64)
            .map(|row| (place(row) + off(&mut random), place(row) as u64))
            .collect();
        keys.sort_by(|a, b| a.0.total_cmp(&b.0));
        keys.into_iter().map(|(_, page)| page).collect()
    }

    /// Each writer has a part of the table, in the order of the index, in which they come at random.
    fn of_writers(writers: u64) -> Vec<u64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
        let each = 1_200_000 / writers;
        let mut written = vec![0; writers as usize];
        let rows = (0..1_200_000).map(|_| {
            let mut writer = random.random_range(0..writers);
            while written[writer as usize] == each {
                writer = (writer + 1) % writers;
            }
            written[writer as usize] += 1;
            (writer * each + written[writer as usize] - 1) / 60
        });
        rows.collect()
    }

    fn visits(pages: &[u64]) -> IndexVisits {
        const SAMPLES: usize = 12;
        let starts = (0..SAMPLES).map(|sample| (2 * sample + 1) * pages.len() / (2 * SAMPLES));
        let samples: Vec<Vec<u64>> =
            starts.map(|start| pages[start..pages.len().min(start + 200)].to_vec()).collect();
        let table = Table { rows: pages.len() as f64, ..TABLE };
        index_visits(&samples, &table, &SHARES.map(|share| share * table.rows), WINDOW).expect("samples")
    }

    /// The pages of ranges, as counted.
    fn counted(pages: &[u64], share: f64) -> f64 {
        const TIMES: usize = 10;
        let rows = (share * pages.len() as f64) as usize;
        let of_range = |start: usize| {
            let mut visited = pages[start..start + rows].to_vec();
            visited.sort_unstable();
            visited.dedup();
            visited.len()
        };
        let starts = (0..TIMES).map(|start| start * (pages.len() - rows) / TIMES);
        starts.map(of_range).sum::<usize>() as f64 / TIMES as f64
    }

    #[test]
    fn predicted_pages_are_those_that_are_visited() {
        let normal = Normal::new(0.0, 300.0).expect("a spread");
        let anywhere = |random: &mut Xoshiro256PlusPlus| random.random_range(-1e6..1e6);
        let jittered = pages_of_rows(60.0, |random| normal.sample(random));
        let late = pages_of_rows(60.0, |random| if random.random_bool(0.2) { anywhere(random) } else { 0.0 });
        for (what, pages) in [
            ("in order", pages_of_rows(60.0, |_| 0.0)),
            ("anywhere", pages_of_rows(60.0, anywhere)),
            ("jittered", jittered),
            ("a fifth anywhere", late),
            // Indexes of some of the rows, and equal values.
            ("one in five pages", pages_of_rows(0.2, |_| 0.0)),
            ("the last tenth", (1_080_000..1_200_000).map(|row| row / 60).collect()),
            (
                "five values",
                (0..5).flat_map(|value| (value..1_200_000).step_by(5).map(|row| row / 60)).collect(),
            ),
            ("backwards", (0..1_200_000).rev().map(|row| row / 60).collect()),
            ("fifty writers", of_writers(50)),
            ("a hundred writers", of_writers(100)),
        ] {
            let found = visits(&pages);
            for (share, range) in SHARES.iter().zip(&found.ranges) {
                let (Interval { low, high, .. }, mean) = (range.pages, counted(&pages, *share));
                // The model may be off by a sixth, and by the page at either end.
                let near = low / 1.2 - 1.0 <= mean && mean <= high * 1.2 + 1.0;
                assert!(near, "{what}, {share}: {mean}, {:?}", range.pages);
                assert!(high <= TABLE.pages, "{what}, {share}: {:?}", range.pages);
            }
            assert!(found.fits, "{what}: {found:?}");
        }
    }

    #[test]
    fn disorder_is_read_at_random_and_order_is_not() {
        let (mut last, normal) = (0.0, |off: f64| Normal::new(0.0, off).expect("a spread"));
        // The statistics say 0.999 of all of these.
        for off in [10.0, 60.0, 250.0] {
            let found = visits(&pages_of_rows(60.0, |random| normal(off).sample(random)));
            let at_random = found.ranges[2].at_random;
            assert!(at_random.low > last && found.scattered.value < 0.01, "{off}: {found:?}");
            last = at_random.value;
        }
        let in_order = [60.0, 0.2].map(|per_page| pages_of_rows(per_page, |_| 0.0));
        let equal: Vec<u64> = (0..1_200_000).step_by(50).map(|row| row / 60).collect();
        for pages in in_order.iter().chain([&equal]) {
            let found = visits(pages);
            assert!(found.ranges.iter().all(|range| range.at_random.high == 0.0), "{found:?}");
        }
        // No kernel reads ahead from the end to the beginning.
        let found = visits(&in_order[0].iter().rev().copied().collect::<Vec<u64>>());
        assert!(found.ranges.iter().all(|range| range.at_random == range.pages), "{found:?}");
    }

    /// Rows that came up to 400 pages late, newest first, by samples that span three pages.
    #[test]
    fn disorder_on_the_way_back_is_read_at_random() {
        let mut pages = pages_of_rows(60.0, |random| random.random_range(-400.0..400.0));
        let forwards = visits(&pages).ranges[3];
        pages.reverse();
        let backwards = visits(&pages).ranges[3];
        assert!(forwards.at_random.high < 0.4 * forwards.pages.value, "{forwards:?}");
        assert!(backwards.at_random.low > 0.7 * backwards.pages.value, "{backwards:?}");
        assert!((0.9..1.1).contains(&(backwards.pages.value / forwards.pages.value)));
    }

    #[test]
    fn disorder_over_a_tenth_of_the_table_is_told_within_a_quarter() {
        for width in [0.05, 0.1, 0.2] {
            let half = width * TABLE.pages;
            let pages = pages_of_rows(60.0, |random| random.random_range(-half..half));
            let range = visits(&pages).ranges[3];
            let times = range.pages.value / counted(&pages, SHARES[3]);
            assert!((0.8..1.25).contains(&times), "{width}: {times}");
        }
    }

    /// Of an index whose parts differ: each sample is jittered by another width, of 50 to 400 pages.
    #[test]
    fn intervals_hold_in_about_nine_of_ten_cases() {
        const CASES: usize = 200;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
        let mut sample = || {
            let (start, width) = (random.random_range(2_000..18_000_u64), random.random_range(50..400_u64));
            (0..200_u64).map(|row| start + row / 60 + random.random_range(0..width)).collect::<Vec<u64>>()
        };
        let many: Vec<Vec<u64>> = (0..4_000).map(|_| sample()).collect();
        let truth = locality(&many, &TABLE).expect("samples").stretch;
        let holds = |case: usize| {
            let found =
                index_visits(&many[12 * case..12 * (case + 1)], &TABLE, &[], WINDOW).expect("samples");
            found.stretch.low <= truth && truth <= found.stretch.high
        };
        let held = (0..CASES).filter(|case| holds(*case)).count();
        assert!((170..=198).contains(&held), "{held} of {CASES}");
    }

    /// Half of the rows were deleted, and as many put where they were, in the same order from the beginning
    /// on.
    #[test]
    fn two_orders_at_once_do_not_fit() {
        for per_page in [10, 60, 150] {
            let rows = 20_000 * per_page;
            let kept = (0..rows).step_by(2).map(|row| (row, row / per_page));
            // From the beginning of the table on, or near to where they were.
            let refilled = |row: u64| (row, 2 * row / per_page);
            let moved = |row: u64| (row, (row / per_page + 300).min(19_999));
            let orders: [&dyn Fn(u64) -> (u64, u64); 2] = [&refilled, &moved];
            for others in orders {
                let mut all: Vec<(u64, u64)> = kept.clone().chain((0..rows / 2).map(others)).collect();
                all.sort_unstable();
                let found = visits(&all.iter().map(|(_, page)| *page).collect::<Vec<u64>>());
                assert!(!found.fits, "{per_page}: {found:?}");
            }
        }
    }

    /// One row in 300 was moved to the end of the table, side by side with another one.
    #[test]
    fn a_few_rows_elsewhere_do_not_matter() {
        let place = |row: u64| if row % 600 < 2 { 19_000 + row / 36_000 } else { row / 60 };
        let found = visits(&(0..1_200_000).map(place).collect::<Vec<u64>>());
        assert!(found.fits, "{found:?}");
    }

    #[test]
    fn few_rows_say_nothing() {
        assert_eq!(index_visits(&[], &TABLE, &[1.0], WINDOW), None);
        assert_eq!(index_visits(&vec![vec![1; 3]; 12], &TABLE, &[1.0], WINDOW), None);
        assert_eq!(index_visits(&[vec![1; 200]], &TABLE, &[1.0], WINDOW), None);
    }

    /// An index of few entries has no order that a sample could tell.
    #[test]
    fn a_small_table_in_order_is_in_order() {
        for (pages, rows) in [(300, 600), (300, 3000), (5000, 5000)] {
            let places: Vec<u64> = (0..rows).map(|row| row * pages / rows).collect();
            let samples: Vec<Vec<u64>> = (0..12).map(|n| places[places.len() * n / 12..].to_vec()).collect();
            let table = Table { pages: pages as f64, rows: rows as f64 };
            let found = index_visits(&samples, &table, &[], WINDOW).expect("samples");
            assert_eq!(found.locality.scattered, 0.0, "{pages}, {rows}: {found:?}");
        }
    }
}
