use super::*;
use crate::page_costs::locality::Locality;
use io_probe_core::measure::page_times::times::{Estimate, PageTimes, Sparse};

/// Ten rows a page.
const TABLE: Table = Table { pages: 1000.0, rows: 10_000.0 };
const INDEX: Index = Index { pages: 100.0, locality: Locality::of(1.0, 1.0) };
const CELLS: [CostPair; 4] = [cell(1.0, 1.1), cell(1.0, 4.0), cell(1.0, 8.0), cell(1.0, 16.0)];
const CONCURRENCIES: [u32; 3] = [1, 16, 64];

const fn cell(sequential: f64, random: f64) -> CostPair {
    CostPair { sequential, random }
}

fn set(cell: usize, concurrency: u32) -> Settings {
    Settings { cell: CELLS[cell], concurrency }
}

/// Reads with gaps take 64 us one at a time, and 16 us with 16 or more in flight.
fn times() -> Times {
    let exactly = |us| Estimate { us, interval: None };
    let point = |(concurrency, us)| Sparse { density: 0.1, concurrency, time: exactly(us) };
    let times = PageTimes {
        shared: Some(exactly(0.5)),
        os_sequential: Some(exactly(1.0)),
        os_random: Some(exactly(2.0)),
        device_sequential: Some(exactly(8.0)),
        device_random: Some(exactly(64.0)),
        sparse: [(1, 64.0), (16, 16.0), (64, 16.0)].map(point).into(),
        tuple: Some(exactly(0.25)),
    };
    Times::of(&times, 1e6, 1024.0).expect("all times")
}

fn asked(rows: f64, picks: [PlannedScan; 4]) -> Asked {
    Asked { table: TABLE, index: INDEX, rows, covered: false, picks: picks.to_vec() }
}

fn regrets(asked: &[Asked]) -> Regrets {
    Regrets::of(asked, &CELLS, &CONCURRENCIES, &times()).expect("queries")
}

fn beside(asked: &[Asked], corrected: &[Asked], in_force: &Settings) -> Option<Settings> {
    regrets(asked).choose_beside(&regrets(corrected), in_force).map(|chosen| chosen.settings)
}

const INDEX_SCAN: PlannedScan = PlannedScan::Index;
const BITMAP: PlannedScan = PlannedScan::Bitmap;
const ALL: PlannedScan = PlannedScan::Sequential;

/// Few rows and all rows. The first cell takes the index for both, the last reads all for both.
fn few_and_all() -> [Asked; 2] {
    [asked(10.0, [INDEX_SCAN, BITMAP, BITMAP, ALL]), asked(10_000.0, [INDEX_SCAN, ALL, ALL, ALL])]
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 2e-3
}

#[test]
fn the_best_cell_is_found_at_a_concurrency() {
    let regrets = regrets(&few_and_all());
    assert_eq!(regrets.queries(), 2);
    let chosen = regrets.choose(&set(0, 16)).expect("a choice");
    // Both cells in the middle are as good, with the same plans.
    assert_eq!(chosen.settings, set(1, 16));
    assert_eq!(chosen.same_plans, (4.0, 8.0));
    // Towards the cell that takes the index for all it ceases soon, and so towards that which never does.
    let (low, high) = chosen.as_good;
    assert!(low == 3.84 && high > 8.0 && high < 9.0, "{low} {high}");
    // Cold, no plan is faster than the one picked. Warm, the index scan is, for few rows.
    let few = |scan, concurrency, caches| times().of_scan(scan, &TABLE, &INDEX, 10.0, concurrency, caches);
    let warm = few(PlannedScan::Bitmap, 0, Caches::Warm) / few(PlannedScan::Index, 0, Caches::Warm);
    let regret = chosen.regret;
    assert!(warm > 1.0 && close(regret.warm, warm.sqrt()) && close(regret.cold, 1.0), "{regret:?}");
    assert_eq!(regrets.at(&set(1, 16)), Some(regret));
    // At 1 the bitmap scan of few rows takes 64 us a page instead of 16.
    let slow = regrets.at(&set(1, 1)).expect("a regret");
    let cold = few(PlannedScan::Bitmap, 1, Caches::Cold) / few(PlannedScan::Bitmap, 16, Caches::Cold);
    assert!(cold > 1.5 && close(slow.cold, cold.sqrt()) && close(slow.warm, regret.warm), "{slow:?}");
    assert_eq!(regrets.at(&Settings { cell: cell(1.0, 2.0), concurrency: 1 }), None);
}

#[test]
fn what_is_set_stays_if_it_is_as_good() {
    let regrets = regrets(&few_and_all());
    for (cell, concurrency) in [(1, 16), (1, 64), (2, 16), (2, 64)] {
        let in_force = set(cell, concurrency);
        assert_eq!(regrets.choose(&in_force).map(|chosen| chosen.settings), Some(in_force));
    }
    // Else of the best the nearest.
    let from = Settings { cell: cell(1.0, 12.0), concurrency: 16 };
    assert_eq!(regrets.choose(&from).map(|chosen| chosen.settings), Some(set(2, 16)));
}

#[test]
fn what_is_as_good_need_not_have_the_same_plans() {
    let regrets = regrets(&[asked(10_000.0, [INDEX_SCAN, INDEX_SCAN, INDEX_SCAN, ALL])]);
    let chosen = regrets.choose(&set(0, 1)).expect("a choice");
    assert_eq!(chosen.settings, set(3, 1));
    assert_eq!(chosen.same_plans, (16.0, 16.0));
    let (low, high) = chosen.as_good;
    assert!(low > 15.0 && low < 16.0 && high == 16.0, "{low} {high}");
}

#[test]
fn settings_suit_the_correlations_that_are_advised() {
    // As it is all cells have the same plan; with the correlations the first two read all.
    let as_is = [asked(100.0, [INDEX_SCAN; 4])];
    let corrected = [asked(100.0, [ALL, ALL, BITMAP, BITMAP])];
    let in_force = set(1, 16);
    assert_eq!(regrets(&as_is).choose(&in_force).map(|chosen| chosen.settings), Some(in_force));
    assert_eq!(beside(&as_is, &corrected, &in_force), Some(set(2, 16)));
    // A user that follows the one, the other, or both, is told the same here.
    assert_eq!(beside(&as_is, &corrected, &set(2, 16)), Some(set(2, 16)));
    assert_eq!(regrets(&corrected).choose(&in_force).map(|chosen| chosen.settings), Some(set(2, 16)));
    assert_eq!(regrets(&corrected).choose(&set(2, 16)).map(|chosen| chosen.settings), Some(set(2, 16)));
    // Where correlations change nothing, the costs are as without.
    let without = regrets(&few_and_all()).choose(&in_force).map(|chosen| chosen.settings);
    assert_eq!(beside(&few_and_all(), &few_and_all(), &in_force), without);
}

#[test]
fn what_is_slower_without_the_correlations_is_not_advised() {
    // The last cell is by far the best with them. Without them it reads all for few rows.
    let as_is = [asked(10.0, [INDEX_SCAN, INDEX_SCAN, INDEX_SCAN, ALL])];
    let corrected = [asked(10_000.0, [INDEX_SCAN, INDEX_SCAN, INDEX_SCAN, ALL])];
    assert_eq!(regrets(&corrected).choose(&set(1, 1)).expect("a choice").settings, set(3, 1));
    assert_eq!(beside(&as_is, &corrected, &set(1, 1)), None);
    // Of what is as good with them the best without.
    let as_is = [asked(10_000.0, [INDEX_SCAN, INDEX_SCAN, ALL, INDEX_SCAN])];
    let corrected = [asked(10_000.0, [INDEX_SCAN, ALL, ALL, ALL])];
    assert_eq!(beside(&as_is, &corrected, &set(0, 1)), Some(set(2, 1)));
}

#[test]
fn without_queries_nothing_is_known() {
    assert!(Regrets::of(&[], &CELLS, &CONCURRENCIES, &times()).is_none());
}

#[test]
fn the_index_alone_counts_only_where_it_holds_all() {
    let only = |covered| {
        let asked = Asked { covered, ..asked(100.0, [BITMAP; 4]) };
        regrets(&[asked]).at(&set(0, 16)).expect("a regret")
    };
    assert!(close(only(false).cold, 1.0));
    let time = |scan| times().of_scan(scan, &TABLE, &INDEX, 100.0, 16, Caches::Cold);
    let times_as_long = time(BITMAP) / time(PlannedScan::IndexOnly);
    assert!(times_as_long > 3.0 && close(only(true).cold, times_as_long), "{:?}", only(true));
}

/// Regrets that are given: of each cell, cold and warm, at one concurrency.
fn given(cells: &[(CostPair, f64, f64)]) -> Regrets {
    let costs: Vec<f64> = cells.iter().map(|(_, cold, warm)| (cold * warm).ln() / 2.0).collect();
    Regrets {
        cells: cells.iter().map(|(cell, _, _)| *cell).collect(),
        concurrencies: vec![16],
        judged: Judged {
            regrets: cells.iter().map(|&(_, cold, warm)| Regret { cold, warm }).collect(),
            candidates: Candidates::of(costs, std::iter::empty()),
        },
        asked: Vec::new(),
    }
}

fn chosen(regrets: &Regrets, in_force: CostPair) -> CostPair {
    regrets.choose(&Settings { cell: in_force, concurrency: 16 }).expect("a choice").settings.cell
}

#[test]
fn a_gain_of_less_than_5_percent_is_none() {
    let of = |cold, warm| given(&[(cell(1.0, 4.0), cold, warm), (cell(1.0, 8.0), 1.0, 1.0)]);
    // 1 % in all, at the cost of cold reads.
    assert_eq!(chosen(&of(0.98, 1.04), cell(1.0, 4.0)), cell(1.0, 4.0));
    assert_eq!(chosen(&of(1.09, 1.0), cell(1.0, 4.0)), cell(1.0, 4.0));
    assert_eq!(chosen(&of(1.0, 1.11), cell(1.0, 4.0)), cell(1.0, 8.0));
}

#[test]
fn beside_corrections_the_ends_of_what_is_as_good_are_values_of_the_grid() {
    // With the corrections the first and the last are far from as good.
    let corrected = |count: usize| -> Vec<f64> {
        (0..count).map(|at| if at == 0 || at + 1 == count { 2.0 } else { 1.0 }).collect()
    };
    let of = |costs: &[f64]| {
        let randoms = [1.0, 1.1, 2.0, 4.0, 8.0];
        let cells: Vec<_> = randoms.iter().zip(costs).map(|(r, cost)| (cell(1.0, *r), *cost, 1.0)).collect();
        given(&cells)
    };
    let in_force = Settings { cell: cell(1.0, 2.0), concurrency: 16 };
    let chosen = of(&[1.0; 5]).choose_beside(&of(&corrected(5)), &in_force).expect("a choice");
    assert_eq!(chosen.settings, in_force);
    assert_eq!((chosen.as_good, chosen.same_plans), ((1.1, 4.0), (1.0, 8.0)));
}

#[test]
fn of_what_is_as_good_the_nearest() {
    let regrets = given(&[
        (cell(1.0, 4.0), 2.0, 1.5),
        (cell(1.0, 8.0), 1.30, 1.10),
        (cell(1.0, 18.0), 1.29, 1.10),
        // As good as the best, but from the rim.
        (cell(1.0, 6.0), 1.38, 1.10),
    ]);
    assert_eq!(chosen(&regrets, cell(1.0, 4.0)), cell(1.0, 8.0));
    assert_eq!(chosen(&regrets, cell(1.0, 16.0)), cell(1.0, 18.0));
    // What is set stays.
    assert_eq!(chosen(&regrets, cell(1.0, 6.0)), cell(1.0, 6.0));
}

#[test]
fn the_grid_has_what_is_in_force_and_each_cell_once() {
    let plain = grid(cell(1.0, 4.0));
    assert_eq!((plain[0], plain.len()), (cell(1.0, 4.0), 19));
    assert!(plain.contains(&cell(1.0, 1.1)) && plain.contains(&cell(1.0, 24.0)));
    // What is in force need not be on the grid, which goes with the unit.
    let cells = grid(cell(1.25, 4.25));
    assert_eq!((cells[0], cells.len()), (cell(1.25, 4.25), 20));
    assert!(cells.contains(&cell(1.25, 1.38)) && cells.contains(&cell(1.25, 30.0)));
}

#[test]
fn the_unit_stays_and_a_random_page_costs_no_less() {
    // By its digits a cost may be below the other. In the wrong order there is a way out.
    for (sequential, random) in [(2.024, 500.0), (0.010049, 500.0), (123.4, 500.0), (2.0, 1.1)] {
        let cells = grid(cell(sequential, random));
        assert!(cells.len() >= 19, "{cells:?}");
        assert!(cells.iter().all(|cell| cell.sequential == sequential && cell.random >= sequential));
    }
}

#[test]
fn costs_are_rounded_to_three_digits() {
    let cases = [(0.012345, 0.0123), (1.0, 1.0), (17.449, 17.4), (12345.0, 12300.0), (0.0, 0.0)];
    for (cost, shown) in cases {
        assert!((rounded(cost) - shown).abs() < 1e-9 * shown.max(1.0), "{cost}: {}", rounded(cost));
    }
    // What has three digits is as it is, up and down.
    for cost in [0.35, 1.1, 1.15, 2.3, 4.0, 17.4, 1000.0] {
        assert_eq!([f64::ceil, f64::floor].map(|round| to_digits(cost, round)), [cost; 2]);
    }
    assert_eq!((to_digits(1.1001, f64::ceil), to_digits(1.1499, f64::floor)), (1.11, 1.14));
}
