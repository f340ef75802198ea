//! What a block takes in ascending reads with gaps, by density and `effective_io_concurrency`; and what
//! follows from it.
//!
//! A bitmap heap scan reads so. Between measured densities the logarithm of the time is interpolated in that
//! of the density, since without prefetch the kernel's readahead makes the time fall about as 1 ÷ density;
//! between measured concurrencies, in the logarithm of 1 + concurrency.
//!
//! Outside of what was measured the curve is flat, but for two ends that are known: without prefetch (0), and
//! with but one request in flight (1), the time goes to that of random reads as the density falls to
//! [`SPARSE`]; and without prefetch every block read is a sequential scan.
//!
//! # Limitations and caveats
//! * 0 and 1 differ by much more than 1 and 2 do: at 1 the server's own advice undoes the kernel's readahead
//!   (seen on ext4). A curve measured at 0 and 16 alone says too little for 1.
//! * At 0 blocks are read when they are needed, as an index scan in order reads. From 18 on a bitmap scan at
//!   0 joins neighbours, and is faster than this where blocks lie densely.
//! * Gaps are taken as even. Clustered blocks are read as fast as their local density.

use std::collections::BTreeMap;

use crate::plateau::{Candidates, Plateau};
use io_probe_core::measure::page_times::{Estimate, PageTimes};

/// The density at and below which a read with gaps is a random one.
pub const SPARSE: f64 = 1e-3;

/// The lowest density that counts: a millionth of the blocks.
const LEAST: f64 = 1e-6;

/// The share by which all times at one concurrency may be off what scans take, however long they are
/// measured. Over 70 ranges the ratio of forced bitmap scans at 16 and at 128 was off that of the curve by 9
/// and 4 % (means, PostgreSQL 15 and 18), with what the device changed meanwhile.
const CURVE_ERROR: f64 = 0.04;

/// How far up the concurrencies that are as good one is chosen. With two thirds, on a disk whose speed
/// drifts, up to 9 of 40 calls advised 64 and the others 128.
pub(super) const CHOSEN: f64 = 0.8;

/// Time per block fetched, over density and concurrency.
#[derive(Debug, Clone, PartialEq)]
pub struct GapCurve {
    /// By concurrency.
    lines: BTreeMap<u32, Line>,
}

/// The times at one concurrency.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    /// By ascending density, as measured.
    measured: Vec<(f64, Estimate)>,
    /// Logarithms of both, with the ends that are known from other times.
    logarithms: Vec<(f64, f64)>,
}

impl Line {
    fn of(concurrency: u32, mut measured: Vec<(f64, Estimate)>, times: &PageTimes) -> Self {
        measured.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Of two measurements the first counts.
        measured.dedup_by_key(|point| point.0);
        let mut logarithms: Vec<(f64, f64)> =
            measured.iter().map(|(density, time)| (density.ln(), time.us.ln())).collect();
        let least = measured.first().map_or(1.0, |point| point.0);
        let greatest = measured.last().map_or(0.0, |point| point.0);
        if let Some(random) = times.device_random.filter(|_| concurrency <= 1 && least > SPARSE) {
            logarithms.insert(0, (SPARSE.ln(), random.us.ln()));
        }
        if let Some(sequential) = times.device_sequential.filter(|_| concurrency == 0 && greatest < 1.0) {
            logarithms.push((0.0, sequential.us.ln()));
        }
        Self { measured, logarithms }
    }

    /// The logarithm of the time at a density.
    fn at(&self, density: f64) -> f64 {
        interpolated(&self.logarithms, density.ln())
    }
}

/// A concurrency to set, and what is as good.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConcurrencyChoice {
    /// The value, and from and to where others are as good.
    pub plateau: Plateau,
    /// How much longer a block takes at that value than at each density's own best, as a geometric mean: 1 is
    /// no longer.
    pub score: f64,
    /// The score at the value in force, interpolated where it was not measured; None if it is not known.
    pub score_in_force: Option<f64>,
}

/// Which densities a setting is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// All: bitmap scans come in every density (`effective_io_concurrency`).
    Queries,
    /// The two least: ANALYZE and recovery read here and there (`maintenance_io_concurrency`).
    Maintenance,
}

impl GapCurve {
    /// The curve of the measured times, see [`PageTimes::of`]; None if no read with gaps was measured.
    pub fn of(times: &PageTimes) -> Option<Self> {
        let mut points: BTreeMap<u32, Vec<(f64, Estimate)>> = BTreeMap::new();
        for point in &times.sparse {
            points.entry(point.concurrency).or_default().push((point.density, point.time));
        }
        let line = |(concurrency, points)| (concurrency, Line::of(concurrency, points, times));
        let lines: BTreeMap<u32, Line> = points.into_iter().map(line).collect();
        (!lines.is_empty()).then_some(Self { lines })
    }

    /// Was this concurrency measured?
    pub fn has(&self, concurrency: u32) -> bool {
        self.lines.contains_key(&concurrency)
    }

    /// The concurrencies that were measured, at any density.
    pub fn concurrencies(&self) -> impl Iterator<Item = u32> {
        self.lines.keys().copied()
    }

    /// Is the interval of each point known?
    pub fn has_intervals(&self) -> bool {
        self.measured().all(|(_, time)| time.interval.is_some())
    }

    fn measured(&self) -> impl Iterator<Item = &(f64, Estimate)> {
        self.lines.values().flat_map(|line| &line.measured)
    }

    /// Microseconds per block fetched, at a density over 0 and up to 1; what is beyond counts as either end.
    pub fn at(&self, density: f64, concurrency: u32) -> f64 {
        let density = density.clamp(LEAST, 1.0);
        let below = self.lines.range(..=concurrency).next_back();
        let above = self.lines.range(concurrency..).next();
        let lines = below.into_iter().chain(above);
        let ends: Vec<(f64, f64)> =
            lines.map(|(line, times)| (f64::from(*line).ln_1p(), times.at(density))).collect();
        interpolated(&ends, f64::from(concurrency).ln_1p()).exp()
    }

    /// The curve with the times at `concurrency` off by [`CURVE_ERROR`].
    pub(super) fn with_slower(&self, concurrency: u32) -> Self {
        let mut slower = self.clone();
        if let Some(line) = slower.lines.get_mut(&concurrency) {
            line.measured.iter_mut().for_each(|(_, time)| time.us *= 1.0 + CURVE_ERROR);
            line.logarithms.iter_mut().for_each(|(_, us)| *us += CURVE_ERROR.ln_1p());
        }
        slower
    }

    /// The measured densities that count.
    pub(super) fn densities(&self, what_for: Use) -> Vec<f64> {
        let mut all: Vec<f64> = self.measured().map(|point| point.0).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        if what_for == Use::Maintenance {
            all.truncate(2);
        }
        all
    }

    /// The logarithm of the time at a concurrency, as a mean over densities.
    fn cost(&self, densities: &[f64], concurrency: u32) -> f64 {
        densities.iter().map(|&density| self.at(density, concurrency).ln()).sum::<f64>()
            / densities.len() as f64
    }

    pub(super) fn costs(&self, densities: &[f64], values: &[u32]) -> Vec<f64> {
        values.iter().map(|value| self.cost(densities, *value)).collect()
    }

    /// The logarithm of the time at each density's own best concurrency, as a mean.
    pub(super) fn least(&self, densities: &[f64]) -> f64 {
        let least = densities
            .iter()
            .map(|&density| self.lines.values().map(|line| line.at(density)).fold(f64::INFINITY, f64::min));
        least.sum::<f64>() / densities.len() as f64
    }
}

/// The best of the measured concurrencies, if the one in force is not as good.
pub fn choose_concurrency(
    times: &PageTimes,
    what_for: Use,
    in_force: Option<u32>,
) -> Option<ConcurrencyChoice> {
    let curve = GapCurve::of(times)?;
    let densities = curve.densities(what_for);
    let mut values: Vec<u32> = curve.concurrencies().chain(in_force).collect();
    values.sort_unstable();
    values.dedup();
    let ladder: Vec<u64> = values.iter().map(|value| u64::from(*value)).collect();
    let costs = curve.costs(&densities, &values);
    let slower = times.each_moved().filter_map(|times| GapCurve::of(&times));
    let by_time: Vec<Vec<f64>> = slower.map(|curve| curve.costs(&densities, &values)).collect();
    let slower = curve.concurrencies().map(|line| curve.with_slower(line));
    let by_line = slower.map(|curve| curve.costs(&densities, &values)).collect();
    let [measured, plateau] = [by_time.clone(), [by_time, by_line].concat()].map(|moved| {
        let candidates = Candidates::of(costs.clone(), moved.into_iter());
        candidates.plateau(&ladder, in_force.map(u64::from), CHOSEN)
    });
    let (plateau, least) = (plateau?.beside(measured?), curve.least(&densities));
    Some(ConcurrencyChoice {
        plateau,
        score: (curve.cost(&densities, plateau.value as u32) - least).exp(),
        score_in_force: in_force.map(|in_force| (curve.cost(&densities, in_force) - least).exp()),
    })
}

/// The y of ascending points (x, y) at an x, flat outside. There is at least one point.
fn interpolated(points: &[(f64, f64)], x: f64) -> f64 {
    let above = points.partition_point(|point| point.0 <= x);
    match (above.checked_sub(1).map(|below| points[below]), points.get(above)) {
        (Some(low), Some(high)) => low.1 + (high.1 - low.1) * (x - low.0) / (high.0 - low.0),
        (Some(end), None) => end.1,
        (None, Some(end)) => end.1,
        (None, None) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use io_probe_core::measure::page_times::times::Sparse;
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

    #[test]
    fn the_least_mean_over_densities_is_chosen() {
        let choice = choose_concurrency(&virtio(), Use::Queries, Some(1)).expect("a choice");
        // By hand, 0: least of each density 12, 12, 12, 11.5, 9, 7: 5.583, 3.833, 1.833, 1.130, 1, 1: their
        // product 44.35, its sixth root 1.881. 32: 1, 1, 1, 1, 1.333, 1.714: 2.286, 1.148.
        assert_eq!(
            choice.plateau,
            Plateau { value: 32, low: 28, high: 32, holds_current: false, seems_worse: false }
        );
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
        let lines = [(0, 60.0), (1, 70.0), (16, 12.2), (32, 12.1), (64, 12.0), (128, 14.0)];
        let choose = |in_force| plateau(&lines, in_force);
        // By hand: 5 %, and 4 % times √2 of the curve, are 13.32.
        assert_eq!(choose(None), (64, 15, 102));
        assert_eq!(choose(Some(16)), (16, 15, 102));
        assert_eq!(choose(Some(64)), (64, 15, 102));
        assert_eq!(choose(Some(20)), (20, 15, 102));
        for bad in [0, 1, 128, 1000] {
            assert_eq!(choose(Some(bad)), (64, 15, 102), "{bad}");
        }
    }

    #[test]
    fn a_plateau_ends_where_it_falls() {
        // 0 is as good as 32, and 1 between them is not: whichever seems better, the last one is chosen.
        for other in [11.9, 12.1] {
            let choose = |in_force| plateau(&[(0, 12.0), (1, 70.0), (32, other)], in_force);
            for set in [None, Some(32), Some(1)] {
                let (value, low, high) = choose(set);
                assert!((value, high) == (32, 32) && (27..=28).contains(&low), "{set:?}: {low}");
            }
            assert_eq!(choose(Some(0)), (0, 0, 0));
        }
        // Where it is surely better, 0 is.
        assert_eq!(plateau(&[(0, 10.0), (1, 70.0), (32, 12.1)], Some(1)), (0, 0, 0));
    }

    #[test]
    fn what_can_not_be_told_apart_is_as_good() {
        let wide = |concurrency: u32, us: f64, share: f64| {
            line(concurrency, [us; 6]).map(move |mut point| {
                point.time.interval = Some((us * (1.0 - share), us * (1.0 + share)));
                point
            })
        };
        let beside = |us, share| measured(wide(8, 10.0, share).chain(wide(16, us, share)));
        let of = |share| beside(11.3, share);
        let kept = |times: &PageTimes| value(times, Use::Queries, Some(16));
        // By hand: √(2 · ln²1.1 ÷ 6) is 0.055, and √2 · ln 1.04 of the curve 0.055. In quadrature, with
        // ln 1.05 besides, that is 0.127, more than ln 1.13. With half as much error it is 0.111, which is
        // not.
        assert_eq!(kept(&of(0.1)), Some(16));
        assert_eq!(kept(&of(0.05)), Some(8));
        // A longer measurement would mend the error of the times, and not that of the curve.
        let seems_worse = |share| {
            let choice = choose_concurrency(&beside(11.05, share), Use::Queries, Some(16)).expect("a choice");
            (choice.plateau.holds_current, choice.plateau.seems_worse)
        };
        assert_eq!([seems_worse(0.0), seems_worse(0.1)], [(true, false), (true, true)]);
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
        fn a_curve_stays_between_what_was_measured(
            times in any_times(), density in 1e-7..1.0, concurrency in 0_u32..1001
        ) {
            let all: Vec<f64> = times.sparse.iter().map(|point| point.time)
                .chain(times.device_sequential).chain(times.device_random).map(|time| time.us).collect();
            let us = curve(&times).at(density, concurrency);
            let ends = |(low, high): (f64, f64), us: &f64| (low.min(*us), high.max(*us));
            let (low, high) = all.iter().fold((f64::INFINITY, 0.0), ends);
            prop_assert!(us >= low * (1.0 - 1e-9) && us <= high * (1.0 + 1e-9), "{us}");
        }

        #[test]
        fn a_choice_lies_on_its_plateau(times in any_times(), in_force in prop::option::of(0_u32..65)) {
            for what_for in [Use::Queries, Use::Maintenance] {
                let choice = choose_concurrency(&times, what_for, in_force).expect("a choice");
                let Plateau { value, low, high, holds_current, .. } = choice.plateau;
                prop_assert!(low <= value && value <= high);
                prop_assert!(holds_current == (Some(value) == in_force.map(u64::from)));
                // What is set lies beyond it, if it is not kept.
                let is_beyond = |set: u32| u64::from(set) < low || u64::from(set) > high;
                prop_assert!(holds_current || in_force.is_none_or(is_beyond));
                prop_assert!(choice.score >= 1.0 - 1e-9);
            }
        }
    }
}
