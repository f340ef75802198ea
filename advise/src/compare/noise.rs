//! How much the means of two sides differ by themselves, where runs that follow one another are alike.
//!
//! A run's ln is the level of its group, plus a state of the device that fades with time (its correlation is
//! exp(−Δt/τ): AR(1), for runs that are evenly spaced), plus noise of its own. Neither how long the state
//! lasts nor its share is known, and two dozen runs estimate both poorly: one estimate, however corrected, is
//! too low too often. So each of a grid of hypotheses is weighed by its restricted likelihood, and a
//! difference is as likely as they say together. Of each, the test is Student's with the effective size of
//! the sample. Nothing here asks in which order the sides ran: what neighbours in time share cancels where
//! the sides take turns, so that these are compared as pairs, and adds up where each ran at a stretch.
//!
//! A run is far off now and then. In the mean of many that does not show, but one run against thirty would be
//! called different too often: the degrees of freedom are no more than those that give Student's distribution
//! the tails of such a difference.
//!
//! Where a state may last as long as a side, no test can tell it from a difference; the hypotheses of long
//! states that runs at rest do not rule out cost such runs half of their power, and leave enough.
//!
//! Sources: Bayley & Hammersley (1946), "The 'effective' number of independent observations in an
//! autocorrelated time series"; Patterson & Thompson (1971) for the restricted likelihood, which needs no
//! correction for small samples; Kalman (1960) for the filter that computes it.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// How long a state lasts, in gaps between two runs.
const LASTING: [f64; 5] = [2.0, 4.0, 8.0, 16.0, 32.0];

/// The share of the variance that is a run's own. Over 0, since two runs may have one time.
const OWN: [f64; 4] = [0.01, 0.25, 0.5, 0.75];

/// Belief, before any run is looked at, that runs are independent.
const INDEPENDENT: f64 = 0.25;

/// Excess kurtosis of what is a run's own: a run is far off more often than a normal distribution says. The
/// figures of 484 equal runs had 0.8 to 12. With 1.5 Student's test calls one of them different from thirty
/// as often as its level says.
const KURTOSIS: f64 = 1.5;

/// A run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    /// When it started, in seconds.
    pub(super) at: f64,
    pub(super) ln: f64,
    /// Runs of a group have one level: from 0, without a gap within a series. None if it has a level of its
    /// own, and so tells nothing of the noise.
    pub(super) group: Option<usize>,
    /// Its weight in the difference of the sides; 0 if it is of neither.
    pub(super) part: f64,
}

/// What is known of a difference between the sides.
#[derive(Debug, Clone)]
pub(super) struct Noise {
    weighed: Vec<(f64, Hypothesis)>,
}

/// The hypothesis that the state lasts for some time and has some share.
#[derive(Debug, Clone, Copy)]
struct Hypothesis {
    /// Logarithm of its restricted likelihood.
    likelihood: f64,
    /// Standard error of the difference.
    error: f64,
    /// Variance of the difference, over that of independent runs.
    inflation: f64,
    degrees: f64,
}

impl Noise {
    /// From series of runs, each in the order of time: the runs of one series share one state. None if every
    /// run is the only one of its group.
    pub(super) fn of(series: &[Vec<Point>]) -> Option<Self> {
        let gap = median_gap(series);
        let alike = LASTING.iter().flat_map(|lasting| OWN.map(|own| (lasting * gap, own)));
        let belief = (1.0 - INDEPENDENT) / (LASTING.len() * OWN.len()) as f64;
        let all = [(INDEPENDENT, 0.0, 1.0)].into_iter().chain(alike.map(|(tau, own)| (belief, tau, own)));
        let weighed: Option<Vec<_>> =
            all.map(|(belief, tau, own)| Some((belief, Hypothesis::of(series, tau, own)?))).collect();
        let mut weighed = weighed?;
        let most = weighed.iter().map(|(_, found)| found.likelihood).fold(f64::MIN, f64::max);
        weighed.iter_mut().for_each(|(weight, found)| *weight *= (found.likelihood - most).exp());
        let sum: f64 = weighed.iter().map(|(weight, _)| weight).sum();
        weighed.iter_mut().for_each(|(weight, _)| *weight /= sum);
        Some(Self { weighed })
    }

    /// How likely sides that do not differ are at least `difference` apart, to either side.
    pub(super) fn chance(&self, difference: f64) -> f64 {
        self.weighed.iter().map(|(weight, found)| weight * found.chance(difference)).sum()
    }

    /// The difference that has this chance.
    pub(super) fn bound(&self, chance: f64) -> f64 {
        let widest = self.weighed.iter().map(|(_, found)| found.error).fold(0.0, f64::max);
        let mut high = 2.0 * widest;
        while self.chance(high) > chance && high.is_finite() {
            high *= 2.0;
        }
        let mut low = 0.0;
        for _ in 0..26 {
            let middle = (low + high) / 2.0;
            if self.chance(middle) > chance { low = middle } else { high = middle }
        }
        high
    }

    /// Variance of the difference, over that of independent runs, as a mean of the hypotheses.
    pub(super) fn inflation(&self) -> f64 {
        self.weighed.iter().map(|(weight, found)| weight * found.inflation).sum()
    }
}

impl Hypothesis {
    fn of(series: &[Vec<Point>], tau: f64, own: f64) -> Option<Self> {
        let fits: Vec<Fit> = series.iter().map(|points| Fit::of(points, tau, own)).collect();
        let degrees = fits.iter().map(|fit| fit.degrees).sum::<f64>();
        if degrees <= 0.0 {
            return None;
        }
        // Runs that are all equal leave nothing.
        let squares = fits.iter().map(|fit| fit.squares).sum::<f64>().max(1e-12);
        let determinant = fits.iter().map(|fit| fit.determinant).sum::<f64>();
        let variance = fits.iter().map(|fit| fit.variance).sum::<f64>();
        let [independent, fourth] =
            [2, 4].map(|power| series.iter().flatten().map(|point| point.part.powi(power)).sum::<f64>());
        let inflation = variance / independent;
        Some(Self {
            likelihood: -(determinant + degrees * squares.ln()) / 2.0,
            error: (squares / degrees * inflation * independent).sqrt(),
            inflation,
            degrees: (degrees / inflation.max(1.0)).min(tails(fourth / independent.powi(2))).max(1.0),
        })
    }

    fn chance(&self, difference: f64) -> f64 {
        let t = difference.abs() / self.error;
        // The degrees are at least 1.
        StudentsT::new(0.0, 1.0, self.degrees).map_or(1.0, |student| 2.0 * student.sf(t))
    }
}

/// The degrees of freedom of Student's distribution with the excess kurtosis of a weighted sum of runs, where
/// `share` is the sum of the fourth powers of their weights over the square of that of their squares.
fn tails(share: f64) -> f64 {
    4.0 + 6.0 / (KURTOSIS * share)
}

/// What a hypothesis says of one series; variances are over that of a run.
struct Fit {
    /// Logarithms of the determinants of the restricted likelihood.
    determinant: f64,
    /// Squares of what is left when each group has its level.
    squares: f64,
    degrees: f64,
    /// Variance of the difference of the sides.
    variance: f64,
}

impl Fit {
    fn of(points: &[Point], tau: f64, own: f64) -> Self {
        // A column for each group, which is 1 where a run is of it, and one for the runs themselves.
        let groups = points.iter().filter_map(|point| point.group).max().map_or(0, |last| last + 1);
        let mut products = vec![vec![0.0; groups + 1]; groups + 1];
        let (mut expected, mut error) = (vec![0.0; groups + 1], vec![0.0; groups + 1]);
        let (mut determinant, mut variance, mut degrees) = (0.0, 0.0, -(groups as f64));
        let (mut uncertain, mut carried) = (0.0, 0.0);
        for (index, point) in points.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| points[before]);
            let alike =
                before.filter(|_| tau > 0.0).map_or(0.0, |before| (-(point.at - before.at) / tau).exp());
            carried = alike * (carried + before.map_or(0.0, |before| before.part));
            variance += point.part * point.part + 2.0 * (1.0 - own) * point.part * carried;
            // What is expected of the state now, and what this run tells of it.
            uncertain = alike * alike * uncertain + (1.0 - alike * alike) * (1.0 - own);
            expected.iter_mut().for_each(|expected| *expected *= alike);
            let Some(group) = point.group else { continue };
            let spread = uncertain + own;
            for (column, expected) in expected.iter_mut().enumerate() {
                let value = if column == groups { point.ln } else { f64::from(column == group) };
                error[column] = value - *expected;
                *expected += uncertain / spread * error[column];
            }
            uncertain *= own / spread;
            determinant += spread.ln();
            for (row, one) in products.iter_mut().zip(&error) {
                row.iter_mut().zip(&error).for_each(|(sum, other)| *sum += one * other / spread);
            }
            degrees += 1.0;
        }
        let (of_groups, squares) = eliminate(&mut products);
        Self { determinant: determinant + of_groups, squares, degrees, variance }
    }
}

/// Takes the groups' columns out of the last one; gives the logarithm of their determinant, and what is left.
fn eliminate(products: &mut [Vec<f64>]) -> (f64, f64) {
    let last = products.len() - 1;
    let mut determinant = 0.0;
    for pivot in 0..last {
        let of_pivot = products[pivot].clone();
        determinant += of_pivot[pivot].ln();
        for row in &mut products[pivot + 1..] {
            let share = row[pivot] / of_pivot[pivot];
            row.iter_mut().zip(&of_pivot).for_each(|(value, taken)| *value -= share * taken);
        }
    }
    (determinant, products[last][last].max(0.0))
}

/// The median time between two runs that follow one another; runs of the same time are left out.
fn median_gap(series: &[Vec<Point>]) -> f64 {
    let gaps = series.iter().flat_map(|points| points.windows(2).map(|pair| pair[1].at - pair[0].at));
    let mut gaps: Vec<f64> = gaps.filter(|gap| *gap > 0.0).collect();
    gaps.sort_unstable_by(f64::total_cmp);
    gaps.get(gaps.len() / 2).copied().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sides, of runs at these times.
    fn points(a: &[(f64, f64)], b: &[(f64, f64)]) -> Vec<Point> {
        let side = |runs: &[(f64, f64)], group, sign: f64| -> Vec<Point> {
            let part = sign / runs.len() as f64;
            runs.iter().map(|(at, ln)| Point { at: *at, ln: *ln, group: Some(group), part }).collect()
        };
        let mut points = [side(a, 0, -1.0), side(b, 1, 1.0)].concat();
        points.sort_by(|one, other| one.at.total_cmp(&other.at));
        points
    }

    fn hypothesis(points: &[Point], tau: f64, own: f64) -> Hypothesis {
        Hypothesis::of(&[points.to_vec()], tau, own).expect("more runs than groups")
    }

    #[test]
    fn independent_runs_have_students_test() {
        // Squares around the means 2 and 3: 2 and 2, over 4 degrees; √(1 · (1/3 + 1/3)).
        let points = points(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)], &[(3.0, 2.0), (4.0, 3.0), (5.0, 4.0)]);
        let found = hypothesis(&points, 0.0, 1.0);
        assert!((found.error - (2.0f64 / 3.0).sqrt()).abs() < 1e-12 && found.degrees == 4.0, "{found:?}");
        assert!((found.inflation - 1.0).abs() < 1e-12);
        // t(0.975, 4) = 2.776445.
        assert!((found.chance(2.776445 * found.error) - 0.05).abs() < 1e-6);
    }

    #[test]
    fn one_run_against_many_is_far_off_more_often_than_a_mean() {
        let thirty: Vec<(f64, f64)> = (0..30).map(|run| (f64::from(run), f64::from(run % 7))).collect();
        // The fourth powers come to 1.000037, the squares to 31/30: 4 + 6 / (1.5 · 0.93656).
        let single = hypothesis(&points(&thirty, &[(30.0, 3.0)]), 0.0, 1.0);
        assert!((single.degrees - 8.271).abs() < 1e-3, "{single:?}");
        let halves = hypothesis(&points(&thirty[..15], &thirty[15..]), 0.0, 1.0);
        assert_eq!(halves.degrees, 28.0);
    }

    #[test]
    fn alike_runs_by_matrices() {
        // With ρ = 1/2 from run to run the difference of two and two has the variance
        // 1 + (2ρ − ρ − 2ρ² − ρ³) / 2 = 0.9375, against 1 of independent ones.
        let (a, b) = ([(0.0, 0.0), (1.0, 1.0)], [(2.0, 1.0), (3.0, 4.0)]);
        let tau = 1.0 / 2.0f64.ln();
        let found = hypothesis(&points(&a, &b), tau, 0.0);
        assert!((found.inflation - 0.9375).abs() < 1e-12, "{found:?}");
        // In turns: 1 + (2ρ² − 3ρ − ρ³) / 2.
        let turns = hypothesis(&points(&[a[0], (2.0, 1.0)], &[(1.0, 1.0), b[1]]), tau, 0.0);
        assert!((turns.inflation - 0.4375).abs() < 1e-12, "{turns:?}");
        // Half of it is a run's own: the products of neighbours count half.
        let own = hypothesis(&points(&a, &b), tau, 0.5);
        assert!((own.inflation - 0.96875).abs() < 1e-12, "{own:?}");
    }

    /// The filter does what the inverse of the matrix of covariances does: generalised least squares.
    #[test]
    fn the_filter_is_generalised_least_squares() {
        // One group of two runs with the correlation r: the squares are (y₂ − y₁)² / (2 (1 − r)), the
        // determinants 1 − r² and 2 / (1 + r).
        let (tau, own) = (1.0f64, 0.3);
        let r = (1.0 - own) * (-1.0f64).exp();
        let one = |at, ln| Point { at, ln, group: Some(0), part: 0.0 };
        let fit = Fit::of(&[one(0.0, 1.0), one(1.0, 4.0)], tau, own);
        assert!((fit.squares - 9.0 / (2.0 * (1.0 - r))).abs() < 1e-12, "{}", fit.squares);
        assert!((fit.determinant - (1.0 - r * r).ln() - (2.0 / (1.0 + r)).ln()).abs() < 1e-12);
    }

    #[test]
    fn the_bound_has_the_chance() {
        let a: Vec<(f64, f64)> = (0..12).map(|run| (f64::from(run), f64::from(run * run % 7))).collect();
        let b: Vec<(f64, f64)> = (12..24).map(|run| (f64::from(run), f64::from(run * run % 5))).collect();
        let noise = Noise::of(&[points(&a, &b)]).expect("enough runs");
        for chance in [0.5, 0.05, 0.001] {
            assert!((noise.chance(noise.bound(chance)) / chance - 1.0).abs() < 1e-5, "{chance}");
        }
    }

    #[test]
    fn runs_of_one_time_and_of_one_value_do() {
        let noise = Noise::of(&[points(&[(0.0, 1.0); 6], &[(0.0, 1.0); 6])]).expect("enough runs");
        assert!(noise.bound(0.05) < 1e-4 && noise.chance(0.0) > 0.99, "{noise:?}");
        assert!(Noise::of(&[points(&[(0.0, 1.0)], &[(1.0, 2.0)])]).is_none());
        assert!(Noise::of(&[]).is_none());
    }

    #[test]
    fn a_run_with_a_level_of_its_own_tells_nothing_and_is_as_uncertain() {
        let (a, b) = ([(0.0, 1.0), (1.0, 2.0), (2.0, 4.0)], [(3.0, 5.0)]);
        let in_group = hypothesis(&points(&a, &b), 2.0, 0.5);
        let mut alone = points(&a, &b);
        alone[3].group = None;
        let alone = hypothesis(&alone, 2.0, 0.5);
        let figures = |found: &Hypothesis| [found.likelihood, found.error, found.degrees];
        for (one, other) in figures(&in_group).iter().zip(figures(&alone)) {
            assert!((one - other).abs() < 1e-9, "{in_group:?} {alone:?}");
        }
    }
}
