//! The median of a few values, with an interval that assumes nothing of how they are distributed.
//!
//! Each value lies below the true median with a chance of one half. So how many do is binomial, and the
//! interval from the k-th smallest to the k-th largest value misses it with a chance of 2·P(B(n, ½) < k): k
//! is the greatest for which that is at most 5 %. The values must not depend on each other.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::Interval;

/// Below this many values not even the smallest and the largest are far enough apart.
pub const MIN_FOR_MEDIAN: usize = 6;

/// The median; None without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The median with its 95 % interval; None for fewer than [`MIN_FOR_MEDIAN`].
pub fn of_median(values: &[f64]) -> Option<Interval> {
    let n = values.len();
    if n < MIN_FOR_MEDIAN {
        return None;
    }
    // At least 1, with as many values as there are.
    let k = Binomial::new(0.5, n as u64).ok()?.inverse_cdf(0.025) as usize;
    let sorted = sorted(values);
    Some(Interval { value: median(values)?, low: sorted[k - 1], high: sorted[n - k] })
}

/// How far the median of `values` may be off: its standard error, if they are about normal but for some
/// outliers (from the median absolute deviation). Infinite for fewer than three.
pub fn error_of_median(values: &[f64]) -> f64 {
    let Some(centre) = median(values).filter(|_| values.len() >= 3) else { return f64::INFINITY };
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    // 1.4826 makes a standard deviation of it, √(π/2) is what a median's error is over a mean's.
    let deviation = 1.4826 * median(&deviations).unwrap_or(0.0);
    1.2533 * deviation / (values.len() as f64).sqrt()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_distr::{Distribution, LogNormal};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn up_to(n: u32) -> Vec<f64> {
        (1..=n).rev().map(f64::from).collect()
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[9.0, 1.0, 2.0, 4.0]), Some(3.0));
    }

    #[test]
    fn intervals_are_those_of_the_tables() {
        // Ranks from the usual tables of the sign test at 5 %.
        for (n, low) in
            [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (17, 5), (20, 6), (25, 8), (100, 40)]
        {
            let interval = of_median(&up_to(n)).expect("enough");
            let low = f64::from(low);
            assert_eq!((interval.low, interval.high), (low, f64::from(n) + 1.0 - low), "{n}");
        }
        assert_eq!(of_median(&up_to(5)), None);
        for n in [500, 501, 1074, 1075, 100_000] {
            let interval = of_median(&up_to(n as u32)).expect("enough");
            let rank = (n as f64 - 1.96 * (n as f64).sqrt()) / 2.0;
            assert!((interval.low - rank).abs() <= 1.0, "{n}: {interval:?}");
            assert_eq!(interval.low + interval.high, n as f64 + 1.0);
        }
    }

    #[test]
    fn the_error_ignores_outliers() {
        assert_eq!(error_of_median(&[1.0, 2.0]), f64::INFINITY);
        let mut values = up_to(99);
        let error = error_of_median(&values);
        values[0] = 1e9;
        assert!((error_of_median(&values) - error).abs() < 0.2, "{error}");
        // Uniform from 1 to 99: MAD 25, so 1.2533 · 1.4826 · 25 / √99.
        assert!((error - 4.67).abs() < 0.2, "{error}");
    }

    #[test]
    fn intervals_hold_a_skewed_truth() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let times = LogNormal::new(0.0, 0.5).expect("a distribution");
        for n in [6, 11, 16, 40] {
            let held = (0..4000).filter(|_| {
                let values: Vec<f64> = (0..n).map(|_| times.sample(&mut rng)).collect();
                of_median(&values).is_some_and(|i| i.low <= 1.0 && 1.0 <= i.high)
            });
            let share = held.count() as f64 / 4000.0;
            assert!((0.945..=0.995).contains(&share), "{n}: {share}");
        }
    }
}
