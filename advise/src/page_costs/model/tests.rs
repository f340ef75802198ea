use super::*;
use crate::page_costs::visited::UNFORESEEN;
use io_probe_core::measure::page_times::Estimate;
use io_probe_core::measure::page_times::times::Sparse;
use proptest::prelude::*;

fn exactly(us: f64) -> Estimate {
    Estimate { us, interval: None }
}

fn page_times(sparse: &[(f64, u32, f64)]) -> PageTimes {
    let sparse = sparse.iter();
    PageTimes {
        shared: Some(exactly(HIT)),
        os_sequential: Some(exactly(1.0)),
        os_random: Some(exactly(OS_RANDOM)),
        device_sequential: Some(exactly(8.0)),
        device_random: Some(exactly(64.0)),
        sparse: sparse
            .map(|(density, concurrency, us)| Sparse {
                density: *density,
                concurrency: *concurrency,
                time: exactly(*us),
            })
            .collect(),
        tuple: Some(exactly(0.25)),
    }
}

/// The tuple, and the lock of its page.
fn of_index_tuple() -> f64 {
    INDEX_TUPLE * 0.25 + LOCKING * HIT
}

/// 8 MiB.
const WINDOW: f64 = 1024.0;
const HIT: f64 = 0.125;
const OS_RANDOM: f64 = 2.0;

/// Until readahead is going, which the flat curve makes as much of as in order.
fn going(pages: f64) -> f64 {
    (1.0 + pages).log2() * 64.0
}

const BEFORE_THE_FIRST: f64 = DESCENT * 64.0;
/// A page in shared buffers that no processor's cache holds.
const ELSEWHERE: f64 = FAR_PAGE * HIT;

/// Reads with gaps take 32 us whatever their density.
fn flat(buffers: f64) -> Times {
    Times::of(&page_times(&[(0.5, 16, 32.0)]), buffers, WINDOW).expect("all times")
}

/// Ten rows a page.
const TABLE: Table = Table { pages: 1000.0, rows: 10_000.0 };
const IN_THE_ORDER: Locality = Locality::of(0.0, 1.0);
const ANYWHERE: Locality = Locality::of(1.0, 1.0);

fn index(locality: Locality) -> Index {
    Index { pages: 100.0, locality }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

fn assert_takes(times: &Times, scan: PlannedScan, locality: Locality, rows: f64, [cold, warm]: [f64; 2]) {
    for (caches, wanted) in [(Caches::Cold, cold), (Caches::Warm, warm)] {
        let us = times.of_scan(scan, &TABLE, &index(locality), rows, 16, caches);
        assert!((us / wanted - 1.0).abs() < 1e-3, "{scan:?}, {caches:?}: {us}, not {wanted}");
    }
}

#[test]
fn a_sequential_scan_takes_what_is_slower() {
    // Processor and OS cache: 1000 · 1, and the tuples; device 1000 · 8. Whatever is looked for.
    let warm = 1000.0 + 1e4 * FILTERED_TUPLE * 0.25;
    for rows in [0.0, 100.0, 10_000.0] {
        assert_takes(&flat(1e6), PlannedScan::Sequential, ANYWHERE, rows, [8000.0, warm]);
    }
    // 40 rows a page: the processor is slower.
    let dense = Table { rows: 40_000.0, ..TABLE };
    for caches in [Caches::Cold, Caches::Warm] {
        let us = flat(1e6).of_scan(PlannedScan::Sequential, &dense, &index(ANYWHERE), 10.0, 16, caches);
        assert_eq!(us, 1000.0 + 4e4 * FILTERED_TUPLE * 0.25);
    }
}

#[test]
fn an_index_only_scan_takes_its_leaves_and_tuples() {
    // A tenth of the leaves: cold 5 · 64 + 10 · 32, warm 10 · 1.
    let tuples = 1000.0 * INDEX_ONLY_TUPLE * 0.25;
    assert_takes(
        &flat(1e6),
        PlannedScan::IndexOnly,
        ANYWHERE,
        1000.0,
        [BEFORE_THE_FIRST + 320.0 + tuples, 10.0 + tuples],
    );
}

#[test]
fn ten_rows_anywhere() {
    // 1000 · (1 − 0.999^10) = 9.9551 pages, and 0.0449 times one of them again, in buffers that hold all.
    let pages = 9.9551;
    let (cold, warm) = (BEFORE_THE_FIRST + 0.1 * 32.0, 0.1);
    let rest = 0.0449 * FAR_AGAIN * HIT + 10.0 * of_index_tuple();
    let wanted = [cold + pages * 64.0 + rest, warm + pages * ELSEWHERE + rest];
    assert_takes(&flat(1e6), PlannedScan::Index, ANYWHERE, 10.0, wanted);
    // Tuples, and their places in the bitmap.
    let rest = 10.0 * BITMAP_TUPLE * 0.25 + 10.0 * HIT;
    let cold = cold + going(pages) + pages * 32.0 + rest;
    assert_takes(&flat(1e6), PlannedScan::Bitmap, ANYWHERE, 10.0, [cold, warm + pages * ELSEWHERE + rest]);
    // Buffers of five pages: each pushes another one out.
    let wanted = [cold, warm + pages * (OS_RANDOM + PUSHING * HIT) + rest];
    assert_takes(&flat(5.0), PlannedScan::Bitmap, ANYWHERE, 10.0, wanted);
}

#[test]
fn a_tenth_in_order() {
    // 101 pages, as the kernel reads ahead once it is going; no page is looked up again for its next row.
    let pages = 101.0;
    let cold = BEFORE_THE_FIRST + 320.0 + going(pages) + pages * 32.0;
    let tuples = 1000.0 * of_index_tuple();
    let wanted = [cold + tuples, 10.0 + pages * ELSEWHERE + tuples];
    assert_takes(&flat(1e6), PlannedScan::Index, IN_THE_ORDER, 1000.0, wanted);
}

#[test]
fn a_tenth_in_a_stretch() {
    // 1000 rows in 100 + 100 pages: 200 · (1 − 0.995^1000) = 198.67 of them, some of which are read at
    // random.
    let locality = Locality::of(0.0, 100.0);
    let pages = 198.67;
    let at_random = UNFORESEEN * 100.0;
    // One row in a hundred lies where the one before does.
    let rest = (990.0 - pages) * NEAR_AGAIN * HIT + 1000.0 * of_index_tuple();
    let foreseen = pages - at_random;
    let cold = BEFORE_THE_FIRST + 320.0 + at_random * 64.0 + going(foreseen) + foreseen * 32.0 + rest;
    assert_takes(&flat(1e6), PlannedScan::Index, locality, 1000.0, [cold, 10.0 + pages * ELSEWHERE + rest]);
}

#[test]
fn a_bitmap_scan_goes_by_the_curve() {
    // The whole table, so all pages: at density 1.
    let times = Times::of(&page_times(&[(0.01, 16, 60.0), (1.0, 16, 10.0), (1.0, 1, 64.0)]), 1e6, WINDOW)
        .expect("all");
    let of = |concurrency| {
        times.of_scan(PlannedScan::Bitmap, &TABLE, &index(ANYWHERE), 1e4, concurrency, Caches::Cold)
    };
    let rest = BEFORE_THE_FIRST + 6400.0 + going(1000.0) + 1e4 * BITMAP_TUPLE * 0.25 + 1e4 * HIT;
    assert!((of(16) / (rest + 1e4) - 1.0).abs() < 1e-3, "{}", of(16));
    assert!((of(1) / (rest + 6.4e4) - 1.0).abs() < 1e-3, "{}", of(1));
}

#[test]
fn workers_overlap_only_after_some_pages() {
    let times = Times::of(&page_times(&[(1.0, 0, 8.0), (0.1, 16, 32.0)]), 1e6, WINDOW).expect("all times");
    let later = |scan, rows| {
        let of = |times: &Times| times.of_scan(scan, &TABLE, &index(ANYWHERE), rows, 16, Caches::Cold);
        let by_workers = times.clone().by_workers(true);
        let moved = by_workers.each_moved().all(|times| times.by_workers);
        assert!(moved && of(&times.clone().by_workers(false)) == of(&times));
        of(&by_workers) - of(&times)
    };
    let all = UNTIL_OVERLAP.sqrt() * BEFORE_OVERLAP * 64.0;
    assert!(close(later(PlannedScan::Bitmap, 1e4), all), "{}", later(PlannedScan::Bitmap, 1e4));
    let ten = later(PlannedScan::Bitmap, 10.0);
    assert!((ten / (9.9551_f64.sqrt() * BEFORE_OVERLAP * 64.0) - 1.0).abs() < 1e-3, "{ten}");
    assert_eq!(later(PlannedScan::Index, 1e4), 0.0);
    // Rows near and far are of one scan.
    let of_both = Locality::of(0.3, 100.0);
    let Visited { near, far, .. } = Visited::of(&TABLE, &of_both, 40.0);
    let (near, far) = (near.pages, far.pages);
    let of =
        |times: &Times| times.of_scan(PlannedScan::Bitmap, &TABLE, &index(of_both), 40.0, 16, Caches::Cold);
    let both = of(&times.clone().by_workers(true)) - of(&times);
    assert!(near > 10.0 && far > 10.0 && close(both, (near + far).sqrt() * BEFORE_OVERLAP * 64.0), "{both}");
    // At 0 the server reads by itself.
    let alone =
        |times: &Times| times.of_scan(PlannedScan::Bitmap, &TABLE, &index(ANYWHERE), 1e4, 0, Caches::Cold);
    assert_eq!(alone(&times.clone().by_workers(true)), alone(&times));
}

/// A page in order takes 8 us, and 32 with gaps: a quarter of the pages come by readahead.
#[test]
fn what_comes_more_slowly_than_in_order_does_not_wait_for_readahead() {
    let times = Times::of(&page_times(&[(1.0, 0, 8.0), (0.1, 16, 32.0)]), 1e6, WINDOW).expect("all times");
    let part = |pages, density| Part { pages, density, ..Visited::of(&TABLE, &ANYWHERE, 10.0).far };
    assert!(close(times.ascending(&part(1.0, 0.1), 16), 32.0 + 64.0 / 4.0));
    assert!(close(times.ascending(&part(15.0, 1.0), 0), 15.0 * 8.0 + 4.0 * 64.0));
    assert!(close(times.ascending(&part(1e6, 1.0), 0), 8e6 + (1.0 + WINDOW).log2() * 64.0));
    assert!(close(times.ascending(&part(0.0, 1.0), 0), 0.0));
    // At each of five places, unless pages are asked for ahead.
    let at_places = Part { places: 5.0, ..part(15.0, 1.0) };
    assert!(close(times.ascending(&at_places, 0), 15.0 * 8.0 + 5.0 * 2.0 * 64.0));
    let ahead = Times::of(&page_times(&[(1.0, 0, 8.0), (1.0, 16, 8.0)]), 1e6, WINDOW).expect("all times");
    assert!(close(ahead.ascending(&at_places, 16), 15.0 * 8.0 + 2.0 * 64.0));
}

#[test]
fn what_is_lacking_is_named() {
    let all = page_times(&[(0.5, 16, 32.0)]);
    let lacks = |times: PageTimes| Times::of(&times, 1e6, WINDOW).err();
    assert_eq!(lacks(all.clone()), None);
    assert_eq!(lacks(PageTimes { tuple: None, ..all.clone() }), Some("the time per tuple"));
    assert_eq!(lacks(PageTimes { sparse: Vec::new(), ..all.clone() }), Some("reads with gaps"));
    assert_eq!(lacks(PageTimes { device_random: None, ..all.clone() }), Some("random reads from the device"));
    assert_eq!(lacks(PageTimes { shared: None, ..all }), Some("a hit in shared buffers"));
}

/// Cold index scans of PostgreSQL 18 on a volume that was held at 125 MiB/s, in milliseconds, where a random
/// read took 0.99 ms: shares of tables of 400 and 250 MiB, with a readahead of 128 kB and of 8 MiB.
#[test]
fn forced_scans_of_a_stretch_took_what_is_predicted() {
    const NARROW: Table = Table { pages: 50_000.0, rows: 2_900_000.0 };
    const WIDE: Table = Table { pages: 32_000.0, rows: 320_000.0 };
    let (jittered, late) = (Locality::of(0.0, 1500.0), Locality::of(0.0, 800.0));
    let newest_first = Locality { is_backward: true, ..late };
    for (table, index_pages, locality, share, took) in [
        (WIDE, 773.0, Locality::of(0.0, 960.0), 0.2, [4550.0, 1165.0]),
        (WIDE, 773.0, Locality::of(0.0, 960.0), 0.02, [947.0, 618.0]),
        (NARROW, 6989.0, jittered, 0.2, [2722.0, 2446.0]),
        (NARROW, 6989.0, jittered, 0.02, [1376.0, 1133.0]),
        (NARROW, 6984.0, late, 0.2, [1413.0, 1449.0]),
        (NARROW, 6983.0, newest_first, 0.2, [9639.0, 9297.0]),
        (NARROW, 6983.0, newest_first, 0.003, [669.0, 737.0]),
        (WIDE, 774.0, newest_first, 0.2, [5443.0, 5094.0]),
    ] {
        for ((window, in_order), took) in [(16.0, 57.7), (1024.0, 69.0)].into_iter().zip(took) {
            let times = PageTimes {
                device_sequential: Some(exactly(in_order)),
                device_random: Some(exactly(990.0)),
                tuple: Some(exactly(0.05)),
                ..page_times(&[(1.0, 0, in_order), (0.5, 0, 2.0 * in_order)])
            };
            let times = Times::of(&times, 16_384.0, window).expect("all times");
            let index = Index { pages: index_pages, locality };
            let rows = share * table.rows;
            let ms = times.of_scan(PlannedScan::Index, &table, &index, rows, 16, Caches::Cold) / 1000.0;
            assert!(
                (1.0 / 1.5..1.5).contains(&(ms / took)),
                "{locality:?} {share} {window}: {ms}, not {took}"
            );
        }
    }
}

const SCANS: [PlannedScan; 4] =
    [PlannedScan::Sequential, PlannedScan::Index, PlannedScan::Bitmap, PlannedScan::IndexOnly];

proptest! {
    /// On a disk where more blocks of a stretch never take less in all.
    #[test]
    fn more_rows_take_no_less_and_cold_is_no_faster(
        scattered in 0.0..=1.0_f64,
        stretch in 1.0..500.0_f64,
        rows in 1.0..9000.0_f64,
        more in 1.0..=1000.0_f64,
        buffers in prop_oneof![Just(16.0), Just(1e6)],
        concurrency in prop_oneof![Just(0_u32), Just(1), Just(16)],
    ) {
        let alone = [(0.03, 0, 60.0), (0.3, 0, 20.0), (1.0, 0, 8.0), (1.0, 1, 64.0)];
        let disk = [&alone[..], &[(0.1, 16, 12.0), (1.0, 16, 12.0)]].concat();
        let times = Times::of(&page_times(&disk), buffers, WINDOW).expect("all times");
        let index = index(Locality::of(scattered, stretch));
        let of = |scan, rows, caches| times.of_scan(scan, &TABLE, &index, rows, concurrency, caches);
        for scan in SCANS {
            for caches in [Caches::Cold, Caches::Warm] {
                let (few, many) = (of(scan, rows, caches), of(scan, rows + more, caches));
                let is_less = few.is_finite() && few > 0.0 && few <= many * (1.0 + 1e-9);
                prop_assert!(is_less, "{scan:?} {caches:?}: {few} {many}");
            }
            prop_assert!(of(scan, rows, Caches::Cold) >= of(scan, rows, Caches::Warm), "{scan:?}");
        }
    }
}
