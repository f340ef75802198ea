use super::*;
use crate::measure::page_times::times::Sparse;
use proptest::prelude::*;

fn exactly(us: f64) -> Estimate {
    Estimate { us, interval: Some((us, us)) }
}

fn point(density: f64, concurrency: u32, us: f64) -> Sparse {
    Sparse { density, concurrency, time: exactly(us) }
}

const DENSITIES: [f64; 6] = [0.03, 0.1, 0.2, 0.35, 0.5, 0.72];

/// One concurrency over all densities.
fn line(concurrency: u32, times: [f64; 6]) -> impl Iterator<Item = Sparse> {
    DENSITIES.into_iter().zip(times).map(move |(density, us)| point(density, concurrency, us))
}

fn measured(sparse: impl IntoIterator<Item = Sparse>) -> PageTimes {
    PageTimes {
        device_sequential: Some(exactly(5.0)),
        device_random: Some(exactly(70.0)),
        sparse: sparse.into_iter().collect(),
        ..PageTimes::default()
    }
}

/// What was seen on a virtio disk: prefetch wins below a fifth, the kernel's readahead above a third.
fn virtio() -> PageTimes {
    measured(
        line(0, [67.0, 46.0, 22.0, 13.0, 9.0, 7.0])
            .chain(line(1, [74.0; 6]))
            .chain(line(32, [12.0, 12.0, 12.0, 11.5, 12.0, 12.0])),
    )
}

fn curve(times: &PageTimes) -> GapCurve {
    GapCurve::of(times).expect("a curve")
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

#[test]
fn nothing_measured_is_no_curve() {
    assert_eq!(GapCurve::of(&measured([])), None);
    let bad = [(0.0, 5.0), (1.5, 5.0), (f64::NAN, 5.0), (0.5, 0.0), (0.5, f64::NAN)];
    assert_eq!(GapCurve::of(&measured(bad.map(|(density, us)| point(density, 0, us)))), None);
}

#[test]
fn measured_points_are_given_back() {
    let curve = curve(&virtio());
    for (density, us) in DENSITIES.into_iter().zip([67.0, 46.0, 22.0, 13.0, 9.0, 7.0]) {
        assert!(close(curve.at(density, 0), us), "{density}");
    }
    // The first of two.
    let twice = measured([point(0.1, 0, 20.0), point(0.1, 0, 30.0)]);
    assert!(close(super::GapCurve::of(&twice).expect("a curve").at(0.1, 0), 20.0));
}

#[test]
fn between_points_logarithms_are_interpolated() {
    let times =
        measured([point(0.5, 3, 8.0), point(0.02, 3, 32.0), point(0.5, 15, 2.0), point(0.02, 15, 2.0)]);
    let curve = curve(&times);
    // 0.1 is halfway between 0.02 and 0.5, 16 between 8 and 32; 1 + 7 between 1 + 3 and 1 + 15.
    assert!(close(curve.at(0.1, 3), 16.0));
    assert!(close(curve.at(0.5, 7), 4.0));
    assert!(close(curve.at(0.02, 7), 8.0));
}

#[test]
fn the_ends_are_flat_but_for_those_that_are_known() {
    let curve = curve(&virtio());
    for density in [1e-9, 1e-4, 1e-3] {
        assert!(close(curve.at(density, 0), 70.0), "{density}: {}", curve.at(density, 0));
        assert!(close(curve.at(density, 1), 70.0));
        assert!(close(curve.at(density, 32), 12.0));
    }
    // Halfway from 0.001 to 0.03.
    let between = f64::sqrt(0.001 * 0.03);
    assert!(close(curve.at(between, 0), f64::sqrt(70.0 * 67.0)));
    assert!(close(curve.at(between, 1), f64::sqrt(70.0 * 74.0)));
    // Every block without prefetch is a sequential scan; with it the server asks for one block after the
    // other.
    assert!(close(curve.at(1.0, 0), 5.0));
    assert!(close(curve.at(f64::sqrt(0.72), 0), f64::sqrt(7.0 * 5.0)));
    assert!(close(curve.at(1.0, 1), 74.0) && close(curve.at(1.0, 32), 12.0));
    // Beyond the measured concurrencies nothing is known to change.
    assert!(close(curve.at(0.1, 1000), 12.0));
    let alone =
        GapCurve::of(&PageTimes { sparse: virtio().sparse, ..PageTimes::default() }).expect("a curve");
    assert!(close(alone.at(1e-6, 0), 67.0) && close(alone.at(1.0, 0), 7.0));
}

/// By hand: at a constant k·t_seq, f* = 1/k, and S·(1/f* − √f*)/(1 − √f*) is (k − 1/√k)/(1 − 1/√k).
/// k = 4: (4 − 1/2)/(1/2) = 7; k = 9: (9 − 1/3)/(2/3) = 13; k = 2.25: (9/4 − 2/3)/(1/3) = 19/4.
#[test]
fn closed_form_of_a_flat_curve() {
    for (k, share, cost) in [(4.0, 1.0 / 4.0, 7.0), (9.0, 1.0 / 9.0, 13.0), (2.25, 4.0 / 9.0, 4.75)] {
        let times = measured([point(0.2, 16, 5.0 * k)]);
        assert!(close(curve(&times).crossing(16).expect("a crossing"), share), "{k}");
        assert!(close(cost_at(share), cost), "{k}");
    }
}

/// By hand. At t_b = 2·t_seq/√f, f·t_b = 2·√f·t_seq = t_seq gives f* = 1/4: 7 again; at 3·t_seq/√f, f* = 1/9:
/// 13. A power of the density is a straight line in logarithms.
#[test]
fn closed_form_of_a_falling_curve() {
    for (k, share, cost) in [(2.0, 1.0 / 4.0, 7.0), (3.0, 1.0 / 9.0, 13.0)] {
        let times = measured([0.01, 0.9].map(|f: f64| point(f, 16, 5.0 * k / f.sqrt())));
        assert!(close(curve(&times).crossing(16).expect("a crossing"), share), "{k}");
        assert!(close(cost_at(share), cost), "{k}");
    }
}

/// The planner's own formula, costsize.c: the cost of a page is R − (R − S)·√f.
#[test]
fn the_planner_changes_plans_at_the_crossing() {
    for concurrency in [1, 8, 32] {
        let share = curve(&virtio()).crossing(concurrency).expect("a crossing");
        let ratio = cost_at(share);
        let bitmap = share * (ratio - (ratio - 1.0) * share.sqrt());
        assert!(close(bitmap, 1.0), "{concurrency}: {bitmap}");
    }
}

#[test]
fn there_need_not_be_a_crossing() {
    let crossing = |us: f64| curve(&measured([point(0.2, 16, us)])).crossing(16);
    // Always cheaper, and never.
    assert_eq!((crossing(4.9), crossing(5.1e6)), (None, None));
    let unknown = PageTimes { device_sequential: None, ..virtio() };
    assert_eq!(curve(&unknown).crossing(16), None);
    // Equal up to the last block, where every read without prefetch is sequential.
    let equal = curve(&measured([point(0.2, 0, 5.0)])).crossing(0);
    assert!(close(cost_at(equal.expect("a crossing")), 3.0));
}

#[test]
fn the_least_mean_over_densities_is_chosen() {
    let choice = choose_concurrency(&virtio(), Use::Queries, Some(1)).expect("a choice");
    // By hand, 0: least of each density 12, 12, 12, 11.5, 9, 7: 5.583, 3.833, 1.833, 1.130, 1, 1: their
    // product 44.35, its sixth root 1.881. 32: 1, 1, 1, 1, 1.333, 1.714: 2.286, 1.148.
    assert_eq!(choice.plateau, Plateau { value: 32, low: 30, high: 32, holds_current: false });
    assert!((choice.score - 1.148).abs() < 1e-3, "{choice:?}");
    let zero = choose_concurrency(&virtio(), Use::Queries, Some(0)).expect("a choice").score_in_force;
    assert!((zero.expect("a score") - 1.881).abs() < 1e-3, "{zero:?}");
}

#[test]
fn maintenance_is_judged_where_reads_are_sparse() {
    // 0 is best where blocks are dense, 16 where they are sparse.
    let times = measured(
        line(0, [60.0, 40.0, 5.0, 5.0, 5.0, 5.0]).chain(line(16, [12.0, 12.0, 12.0, 12.0, 12.0, 12.0])),
    );
    assert_eq!(value(&times, Use::Queries, None), Some(0));
    assert_eq!(value(&times, Use::Maintenance, None), Some(16));
}

fn value(times: &PageTimes, what_for: Use, in_force: Option<u32>) -> Option<u64> {
    choose_concurrency(times, what_for, in_force).map(|choice| choice.plateau.value)
}

fn plateau(lines: &[(u32, f64)], in_force: Option<u32>) -> (u64, u64, u64) {
    let times = lines.iter().flat_map(|&(concurrency, us)| line(concurrency, [us; 6]));
    let choice = choose_concurrency(&measured(times), Use::Queries, in_force).expect("a choice");
    (choice.plateau.value, choice.plateau.low, choice.plateau.high)
}

#[test]
fn what_is_in_force_stays_if_it_is_on_the_plateau() {
    let lines = [(0, 60.0), (1, 70.0), (16, 12.2), (32, 12.1), (64, 12.0), (128, 13.0)];
    let choose = |in_force| plateau(&lines, in_force);
    // 5 % are 12.6.
    assert_eq!(choose(None), (16, 16, 97));
    assert_eq!(choose(Some(16)), (16, 16, 97));
    assert_eq!(choose(Some(64)), (64, 16, 97));
    assert_eq!(choose(Some(20)), (20, 16, 97));
    for bad in [0, 1, 128, 1000] {
        assert_eq!(choose(Some(bad)), (16, 16, 97), "{bad}");
    }
}

#[test]
fn a_plateau_ends_where_it_falls() {
    // 0 is as good as 32, and 1 between them is not.
    let choose = |in_force| plateau(&[(0, 12.0), (1, 70.0), (32, 12.1)], in_force);
    assert_eq!(choose(None), (0, 0, 0));
    assert_eq!(choose(Some(32)), (32, 30, 32));
    assert_eq!(choose(Some(1)), (0, 0, 0));
}

#[test]
fn what_can_not_be_told_apart_is_as_good() {
    let wide = |concurrency: u32, us: f64, share: f64| {
        line(concurrency, [us; 6]).map(move |mut point| {
            point.time.interval = Some((us * (1.0 - share), us * (1.0 + share)));
            point
        })
    };
    let of = |share| measured(wide(8, 10.0, share).chain(wide(16, 11.0, share)));
    let kept = |times: &PageTimes| value(times, Use::Queries, Some(16));
    // By hand: √(2 · ln²1.1 ÷ 6) is 0.055, which with ln 1.05 is more than ln 1.1; with ln 1.05 it is not.
    assert_eq!(kept(&of(0.1)), Some(16));
    assert_eq!(kept(&of(0.05)), Some(8));
    // One that is unknown makes the mean so.
    let mut times = of(0.05);
    times.sparse[0].time.interval = Some((5.0, 20.0));
    assert_eq!(kept(&times), Some(16));
}

fn any_times() -> impl Strategy<Value = PageTimes> {
    let point = (0.001..1.0, 0_u32..65, 0.5..200.0).prop_map(|(f, c, us)| point(f, c, us));
    let points = prop::collection::vec(point, 1..20);
    (points, 0.5..20.0, 0.5..200.0).prop_map(|(sparse, sequential, random)| PageTimes {
        device_sequential: Some(exactly(sequential)),
        device_random: Some(exactly(random)),
        sparse,
        ..PageTimes::default()
    })
}

proptest! {
    #[test]
    fn a_curve_stays_between_what_was_measured(times in any_times(), density in 1e-7..1.0, concurrency in 0_u32..1001) {
        let all: Vec<f64> = times.sparse.iter().map(|point| point.time)
            .chain(times.device_sequential).chain(times.device_random).map(|time| time.us).collect();
        let us = curve(&times).at(density, concurrency);
        let (low, high) = all.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), us| (l.min(*us), h.max(*us)));
        prop_assert!(us >= low * (1.0 - 1e-9) && us <= high * (1.0 + 1e-9), "{us}");
    }

    #[test]
    fn a_crossing_is_one(times in any_times(), concurrency in 0_u32..1001) {
        let curve = curve(&times);
        let whole = times.device_sequential.expect("a time").us;
        match curve.crossing(concurrency) {
            Some(share) => {
                prop_assert!(share > 0.0 && share <= 1.0);
                prop_assert!((share * curve.at(share, concurrency) / whole - 1.0).abs() < 1e-6, "{share}");
                prop_assert!(cost_at(share) >= 3.0 - 1e-6);
            }
            None => prop_assert!(curve.at(1.0, concurrency) < whole),
        }
    }

    #[test]
    fn a_choice_lies_on_its_plateau(times in any_times(), in_force in prop::option::of(0_u32..65)) {
        for what_for in [Use::Queries, Use::Maintenance] {
            let choice = choose_concurrency(&times, what_for, in_force).expect("a choice");
            let Plateau { value, low, high, holds_current } = choice.plateau;
            prop_assert!(low <= value && value <= high);
            prop_assert!(holds_current == (Some(value) == in_force.map(u64::from)));
            // What is set lies beyond it, if it is not kept.
            prop_assert!(holds_current || in_force.is_none_or(|set| u64::from(set) < low || u64::from(set) > high));
            prop_assert!(choice.score >= 1.0 - 1e-9);
        }
    }
}
