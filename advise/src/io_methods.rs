//! `io_method` from the times of scans under each, and which values of a setting beside it are as good.
//!
//! All times are ratios to that of what is in force, from turns there and back. Another value is advised only
//! where it is faster by over 5 % beyond the interval of its ratio and what the emulation may be off by.

use io_probe_core::stats::Interval;

use crate::plateau::{AS_GOOD, ByRatios, Choice, Plateau, SEEMS_WORSE, plateau};

/// How far the ratio of two emulated ways may be off the server's, as a share: the median error on a disk and
/// a gp3 volume (docs/benchmarks.md), where the machine was busy.
pub const EMULATION_ERROR: f64 = 0.25;

/// Ratios that differ by less are alike.
const ALIKE: f64 = 1.0 + EMULATION_ERROR;

/// What is in force, as a ratio to itself.
const IN_FORCE: Interval = Interval { value: 1.0, low: 1.0, high: 1.0 };

/// Another method, and its times over those of the one in force.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OtherMethod<T> {
    /// Which one.
    pub method: T,
    /// All scans together.
    pub ratio: Interval,
    /// The ratio of the scan that it is worst at.
    pub worst: f64,
}

/// Compares the other methods with the one in force. Of several that are surely faster, and as fast as one
/// another within the error of the emulation, it is the one that makes no scan much slower.
pub fn io_method<T: Copy>(others: &[OtherMethod<T>]) -> ByRatios<OtherMethod<T>> {
    let sure = others.iter().filter(|other| is_surely_better(other.ratio.with_error(EMULATION_ERROR)));
    let fastest = sure.clone().map(|other| other.ratio.value).fold(f64::INFINITY, f64::min);
    let as_fast = sure.filter(|other| other.ratio.value <= fastest * ALIKE);
    if let Some(best) = as_fast.min_by(|a, b| a.worst.total_cmp(&b.worst)) {
        return ByRatios::Change(*best);
    }
    let ratios = others.iter().map(|other| other.ratio);
    let Some(best) = ratios.min_by(|a, b| a.value.total_cmp(&b.value)) else {
        return ByRatios::Unmeasured;
    };
    if best.value * SEEMS_WORSE < 1.0 && !is_surely_better(best) {
        ByRatios::SeemsBetter
    } else {
        ByRatios::Keep
    }
}

fn is_surely_better(ratio: Interval) -> bool {
    ratio.high * AS_GOOD < 1.0
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
        let advice = |value, half| {
            let sync = OtherMethod { method: "sync", ratio: ratio(1.3, 0.01), worst: 1.3 };
            io_method(&[sync, OtherMethod { method: "io_uring", ratio: ratio(value, half), worst: 1.2 }])
        };
        assert!(matches!(advice(0.6, 0.02), ByRatios::Change(OtherMethod { method: "io_uring", .. })));
        assert_eq!(advice(0.92, 0.01), ByRatios::Keep, "within the error of the emulation");
        assert_eq!(advice(0.8, 0.3), ByRatios::SeemsBetter, "more turns would tell");
        assert_eq!(advice(1.2, 0.01), ByRatios::Keep);
        assert_eq!(io_method::<&str>(&[]), ByRatios::Unmeasured);
    }

    #[test]
    fn of_methods_that_are_as_fast_the_one_without_a_slow_scan_is_advised() {
        let other = |method, value, worst| OtherMethod { method, ratio: ratio(value, 0.01), worst };
        let to = |others: &[OtherMethod<&'static str>]| match io_method(others) {
            ByRatios::Change(other) => other.method,
            choice => panic!("{choice:?}"),
        };
        assert_eq!(to(&[other("sync", 0.55, 1.5), other("io_uring", 0.6, 1.1)]), "io_uring");
        assert_eq!(to(&[other("sync", 0.3, 1.5), other("io_uring", 0.6, 1.1)]), "sync");
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
