//! `io_method` from the times of scans under each, and which values of a setting beside it are as good.
//!
//! All times are ratios to that of what is in force, from turns there and back. Another value is advised only
//! where it is faster by over 5 % beyond the interval of its ratio and what the emulation may be off by.

use io_probe_core::stats::Interval;

use crate::plateau::{AS_GOOD, SEEMS_WORSE};
use crate::{Choice, Plateau, plateau};

/// How far the ratio of two emulated ways may be off the server's, as a share: the median error on a disk and
/// a gp3 volume (docs/benchmarks.md), where the machine was busy.
pub const EMULATION_ERROR: f64 = 0.25;

/// What is in force, as a ratio to itself.
const IN_FORCE: Interval = Interval { value: 1.0, low: 1.0, high: 1.0 };

/// What to do about a setting whose values have no order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MethodChoice<T> {
    /// No other one is surely faster.
    Keep,
    /// This one is, by this factor.
    Change {
        /// The faster one.
        to: T,
        /// Time of what is in force over that of the faster one.
        gain: f64,
    },
    /// Another one may be faster by over a tenth, but the turns differ too much to be sure.
    SeemsBetter,
    /// There are no ratios.
    Unmeasured,
}

/// Compares the other methods with the one in force, by the ratios of their times.
pub fn io_method<T: Copy>(others: &[(T, Interval)]) -> MethodChoice<T> {
    let sure = others.iter().filter(|(_, ratio)| is_surely_better(ratio.with_error(EMULATION_ERROR)));
    if let Some((to, best)) = least(sure) {
        return MethodChoice::Change { to: *to, gain: 1.0 / best.value };
    }
    let Some((_, best)) = least(others.iter()) else { return MethodChoice::Unmeasured };
    if best.value * SEEMS_WORSE < 1.0 && !is_surely_better(*best) {
        MethodChoice::SeemsBetter
    } else {
        MethodChoice::Keep
    }
}

fn is_surely_better(ratio: Interval) -> bool {
    ratio.high * AS_GOOD < 1.0
}

fn least<'a, T>(ways: impl Iterator<Item = &'a (T, Interval)>) -> Option<&'a (T, Interval)> {
    ways.min_by(|a, b| a.1.value.total_cmp(&b.1.value))
}

/// The values of a setting that are as good as the best, by the ratios of their times to that of `current`.
/// `error` is what the ratios may be off by besides, as a share. None without other values.
pub fn values_as_good(current: u64, others: &[(u64, Interval)], error: f64) -> Option<Plateau> {
    let in_force = Choice { value: current, time: IN_FORCE, error: 0.0 };
    let others = others.iter().map(|&(value, time)| Choice { value, time, error });
    let choices: Vec<Choice> = others.chain([in_force]).collect();
    plateau(&choices, current).filter(|_| choices.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(value: f64, half: f64) -> Interval {
        Interval { value, low: value - half, high: value + half }
    }

    #[test]
    fn a_method_must_be_faster_beyond_noise_and_emulation() {
        let advice = |value, half| io_method(&[("sync", ratio(1.3, 0.01)), ("io_uring", ratio(value, half))]);
        assert!(matches!(advice(0.6, 0.02), MethodChoice::Change { to: "io_uring", .. }));
        assert_eq!(advice(0.92, 0.01), MethodChoice::Keep, "within the error of the emulation");
        assert_eq!(advice(0.8, 0.3), MethodChoice::SeemsBetter, "more turns would tell");
        assert_eq!(advice(1.2, 0.01), MethodChoice::Keep);
        assert_eq!(io_method::<&str>(&[]), MethodChoice::Unmeasured);
    }

    #[test]
    fn values_beside_the_one_in_force_have_a_range() {
        let others = [(1, ratio(2.0, 0.01)), (8, ratio(0.7, 0.01)), (16, ratio(0.7, 0.01))];
        let found = values_as_good(3, &others, 0.02).expect("a plateau");
        assert!(!found.holds_current && (8..=16).contains(&found.value), "{found:?}");
        let kept = values_as_good(8, &[(3, ratio(1.4, 0.01)), (16, ratio(1.0, 0.01))], 0.02);
        assert!(kept.is_some_and(|kept| kept.holds_current && kept.high == 16), "{kept:?}");
        assert_eq!(values_as_good(3, &[], 0.02), None);
    }
}
