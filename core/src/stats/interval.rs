//! The 95 % interval of a ratio Σtime ÷ Σwork over the slices of a run.
//!
//! Slices that follow one another are alike (lag-1 autocorrelation 0.3 is usual for storage), so the
//! textbook interval, and a bootstrap over slices too, is too narrow. Here Student's t is taken with
//! the variance inflated for a first-order autoregression: with r the bias-corrected lag-1
//! autocorrelation of the residuals, f = (1 + r) / (1 − r), the half-width is
//! t(0.975, (n − 1) / f) · s · √(f / n). The simulation in the tests shows its coverage.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Slice;
use super::step::has_step;

/// Below this many slices no interval is given.
pub const MIN_SLICES: usize = 20;

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The ratio itself.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Half the width over the value: 0.05 is ±5 %.
    pub fn relative_half_width(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.value
    }

    /// The interval of a value that may, besides, be off by this share of it.
    pub fn with_error(&self, share: f64) -> Self {
        let Self { value, low, high } = *self;
        let error = share * value;
        Self { value, low: value - (value - low).hypot(error), high: value + (high - value).hypot(error) }
    }
}

/// Nanoseconds per unit of work over `slices`; None for fewer than [`MIN_SLICES`] or without work.
pub fn of_ratio(slices: &[Slice]) -> Option<Interval> {
    interval(slices, MIN_SLICES, inflation)
}

/// Below this many turns no interval over them is given.
pub const MIN_TURNS: usize = 3;

/// Like [`of_ratio`], but over a few turns that lie apart, each a slice: Student's t on the residuals,
/// without a correction, since they are independent. None for fewer than three or without work.
pub fn of_turns(turns: &[Slice]) -> Option<Interval> {
    interval(turns, MIN_TURNS, |_| 1.0)
}

/// How many times as much as the turns of `other` those of `one` come to, over the rounds in which both
/// count.
pub fn of_rounds<T>(one: &[Option<T>], other: &[Option<T>], of: impl Fn(&T) -> u64) -> Option<Interval> {
    let both = one.iter().zip(other).filter_map(|(one, other)| Some((one.as_ref()?, other.as_ref()?)));
    let turns: Vec<Slice> = both.map(|(one, other)| Slice { ns: of(one), work: of(other).max(1) }).collect();
    of_turns(&turns)
}

fn interval(slices: &[Slice], least: usize, inflation: impl Fn(&[f64]) -> f64) -> Option<Interval> {
    let n = slices.len();
    let total = Slice::sum(slices);
    let value = total.ns_each().filter(|_| n >= least)?;
    let residuals: Vec<f64> = slices.iter().map(|s| s.ns as f64 - value * s.work as f64).collect();
    let inflation = inflation(&residuals);
    let count = n as f64;
    let degrees = ((count - 1.0) / inflation).max(1.0);
    let t = StudentsT::new(0.0, 1.0, degrees).ok()?.inverse_cdf(0.975);
    let half = t * deviation(&residuals) * (inflation / count).sqrt() / (total.work as f64 / count);
    Some(Interval { value, low: (value - half).max(0.0), high: value + half })
}

/// How much longer a unit of work took in the last slice than in the first, by a straight line: 0.2 is a
/// fifth slower. None within a tenth or three standard errors, or if it was a step up or down: a line through
/// one tells nothing.
pub fn trend(slices: &[Slice]) -> Option<f64> {
    if slices.len() < MIN_SLICES {
        return None;
    }
    let times = Slice::times(slices);
    if has_step(&times) {
        return None;
    }
    let middle = (times.len() as f64 - 1.0) / 2.0;
    let slope = slope(&times);
    let level = times.iter().sum::<f64>() / times.len() as f64;
    let residuals: Vec<f64> =
        times.iter().enumerate().map(|(place, t)| t - level - slope * (place as f64 - middle)).collect();
    let error = deviation(&residuals) * (inflation(&residuals) / spread(times.len())).sqrt();
    let (first, last) = (level - slope * middle, level + slope * middle);
    let clear = slope.abs() > 3.0 * error && first > 0.0 && last > 0.0;
    Some(last / first - 1.0).filter(|drift| clear && drift.abs() > 0.1)
}

/// By how much each value is greater than the one before, along the line that fits them best.
pub fn slope(values: &[f64]) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let product: f64 = values.iter().enumerate().map(|(place, value)| (place as f64 - middle) * value).sum();
    product / spread(values.len())
}

/// Sum of the squares of how far so many places are from their middle.
pub(super) fn spread(places: usize) -> f64 {
    let n = places as f64;
    n * (n * n - 1.0) / 12.0
}

/// Spread of residuals.
fn deviation(residuals: &[f64]) -> f64 {
    (squares(residuals) / (residuals.len() as f64 - 1.0)).sqrt()
}

/// How much the autocorrelation of residuals inflates the variance of a mean.
fn inflation(residuals: &[f64]) -> f64 {
    let squares = squares(residuals);
    if squares <= 0.0 {
        return 1.0;
    }
    let r1 = residuals.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / squares;
    let r = (r1 + (1.0 + 3.0 * r1) / residuals.len() as f64).clamp(0.0, 0.9);
    (1.0 + r) / (1.0 - r)
}

fn squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|e| e * e).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn slices(values: &[u64]) -> Vec<Slice> {
        values.iter().map(|&ns| Slice { ns, work: 1 }).collect()
    }

    #[test]
    fn known_answer_without_autocorrelation() {
        // 20 values of 90 and 110, + − − +: value 100, s = √(20·100/19) = 10.26, r1 = −1/20, r clipped to 0,
        // t(0.975, 19) = 2.0930: half-width 2.0930 · 10.26 / √20 = 4.802.
        let pattern = [110, 90, 90, 110];
        let values: Vec<u64> = (0..20).map(|i| pattern[i % 4]).collect();
        let interval = of_ratio(&slices(&values)).expect("20 slices");
        assert_eq!(interval.value, 100.0);
        assert!((interval.high - 104.802).abs() < 0.01, "{interval:?}");
        assert!((interval.low - 95.198).abs() < 0.01, "{interval:?}");
    }

    #[test]
    fn too_few_slices_give_no_interval() {
        assert!(of_ratio(&slices(&[100; 19])).is_none());
        assert_eq!(of_ratio(&slices(&[100; 20])).map(|i| i.relative_half_width()), Some(0.0));
        assert!(of_ratio(&[Slice { ns: 5, work: 0 }; 30]).is_none());
    }

    #[test]
    fn known_answer_of_turns() {
        // 90, 100 and 110: s = 10, t(0.975, 2) = 4.3027: half-width 4.3027 · 10 / √3 = 24.84.
        let interval = of_turns(&slices(&[90, 100, 110])).expect("3 turns");
        assert_eq!(interval.value, 100.0);
        assert!((interval.high - 124.84).abs() < 0.01 && (interval.low - 75.16).abs() < 0.01, "{interval:?}");
        assert!(of_turns(&slices(&[90, 110])).is_none());
        assert!(of_turns(&[Slice { ns: 5, work: 0 }; 3]).is_none());
    }

    /// Ten turns of ten slices; a share of the variance is common to a turn.
    #[test]
    fn the_noise_that_a_turn_shares_is_covered() {
        for share in [0.0_f64, 0.2, 0.5] {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
            let runs = 4000;
            let mut held = 0;
            for _ in 0..runs {
                let turns: Vec<Slice> = (0..10)
                    .map(|_| {
                        let shared: f64 = StandardNormal.sample(&mut rng);
                        let own: f64 = (0..10).map(|_| -> f64 { StandardNormal.sample(&mut rng) }).sum();
                        let noise = 10.0 * share.sqrt() * shared + (1.0 - share).sqrt() * own;
                        Slice { ns: (1e7 + 1e5 * noise) as u64, work: 10 }
                    })
                    .collect();
                let interval = of_turns(&turns).expect("enough turns");
                held += usize::from(interval.low <= 1e6 && 1e6 <= interval.high);
            }
            let coverage = f64::from(held as u32) / f64::from(runs);
            assert!((0.93..=0.97).contains(&coverage), "{share}: {coverage}");
        }
    }

    #[test]
    fn errors_add_in_quadrature() {
        let measured = Interval { value: 100.0, low: 97.0, high: 104.0 };
        let Interval { value, low, high } = measured.with_error(0.03);
        assert_eq!((value, high), (100.0, 105.0));
        assert!((low - (100.0 - 18_f64.sqrt())).abs() < 1e-9, "{low}");
        assert_eq!(measured.with_error(0.0), measured);
    }

    #[test]
    fn only_a_clear_drift_is_a_trend() {
        let bumpy = |i: u64| 100_000 + i * 7919 % 5000;
        let level: Vec<u64> = (0..100).map(bumpy).collect();
        assert_eq!(trend(&slices(&level)), None);
        let slower: Vec<u64> = (0..100).map(|i| bumpy(i) + 500 * i).collect();
        let drift = trend(&slices(&slower)).expect("a trend");
        assert!((0.45..0.51).contains(&drift), "{drift}");
        let slightly: Vec<u64> = (0..100).map(|i| bumpy(i) + 80 * i).collect();
        assert_eq!(trend(&slices(&slightly)), None);
        for times in [2, 3, 4, 10] {
            let down = |i| if i < 50 { times * bumpy(i) } else { bumpy(i) };
            let step: Vec<u64> = (0..100).map(down).collect();
            assert_eq!(trend(&slices(&step)), None, "down by {times}");
            let step: Vec<u64> = (0..100).rev().map(down).collect();
            assert_eq!(trend(&slices(&step)), None, "up by {times}");
        }
    }

    /// Share of simulated runs whose interval holds the true mean.
    fn coverage(n: usize, ar: f64, runs: usize, seed: u64) -> f64 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mean = 1e6;
        let mut held = 0;
        for _ in 0..runs {
            let mut state: f64 = StandardNormal.sample(&mut rng);
            let run: Vec<Slice> = (0..n)
                .map(|_| {
                    let shock: f64 = StandardNormal.sample(&mut rng);
                    state = ar * state + (1.0 - ar * ar).sqrt() * shock;
                    Slice { ns: (mean + 1e5 * state) as u64, work: 1 }
                })
                .collect();
            let interval = of_ratio(&run).expect("enough slices");
            held += usize::from(interval.low <= mean && mean <= interval.high);
        }
        held as f64 / runs as f64
    }

    #[test]
    fn simulated_coverage_is_what_it_says() {
        for (ar, low, high) in [(0.0, 0.93, 0.97), (0.3, 0.93, 0.97), (0.6, 0.92, 0.97)] {
            let share = coverage(100, ar, 4000, 42);
            assert!((low..=high).contains(&share), "AR({ar}): {share}");
        }
    }
}
