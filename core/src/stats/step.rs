//! A step up in the times of a run: a device that became slower in the middle, as at the end of a burst.
//!
//! The times are cut in two where that sorts them best: before the cut nearly all lie below the geometric
//! mean of both medians, after it nearly all above.
//!
//! # Limitations and caveats
//! - A step down is none, nor is a short stall: a tenth of the times at least is after the cut.
//! - What a straight line fits as well is no step but a drift, see [`super::trend`].

use super::interval::{slope, spread};
use super::{Slice, median};

/// Least factor of a step.
const STEP: f64 = 1.5;

/// Least factor of a step by which a device is said to have slowed down. Scans through the page cache have
/// had steps of 1.5 to 1.7 on devices that were steady.
const SLOWED: f64 = 2.0;

/// Largest share of the times on either side of the cut that may lie on the wrong side of the mean.
const MISPLACED: f64 = 0.15;

/// A cut counts only if times in random order would be sorted by it in at most this part of all cases. Over
/// all cuts it may be three times as many.
const CHANCE: f64 = 0.01;

/// How many times as long the later of these times are as the earlier, if they make one step up that is no
/// chance, to twice as long at least: of ten times, three at least lie on either side, and of eight or fewer
/// none show one.
pub fn step_up(times: &[f64]) -> Option<f64> {
    sure_step(times, SLOWED).map(|(_, ratio)| ratio)
}

/// The first slice in which less is done in the same time, to two thirds at most, if slices make one such
/// step that is no chance.
pub fn step_down_of_rate(slices: &[Slice]) -> Option<usize> {
    // A slice in which nothing was done counts as one in which one thing was.
    let times = slices.iter().map(|slice| slice.ns as f64 / slice.work.max(1) as f64);
    sure_step(&times.collect::<Vec<f64>>(), STEP).map(|(cut, _)| cut)
}

/// Do these times make one step up, or one down, that is no chance?
pub(super) fn has_step(times: &[f64]) -> bool {
    let backwards: Vec<f64> = times.iter().rev().copied().collect();
    [times, &backwards].into_iter().any(|times| sure_step(times, STEP).is_some())
}

/// The cut, and the factor of its step.
fn sure_step(times: &[f64], least: f64) -> Option<(usize, f64)> {
    let found = clearest(times, least, &|cut| chance(times.len(), cut) <= CHANCE)?;
    fits_better_than_a_line(times, found.0).then_some(found)
}

/// The clearest cut by which the later times are `least` times the earlier ones or more.
pub(crate) fn step(times: &[f64], least: f64) -> Option<f64> {
    clearest(times, least, &|_| true).map(|(_, ratio)| ratio)
}

/// The cut, and the factor of its step.
fn clearest(times: &[f64], least: f64, counts: &dyn Fn(usize) -> bool) -> Option<(usize, f64)> {
    let side = times.len().div_ceil(10).max(1);
    let last = times.len().checked_sub(side)?;
    let cuts = (side..=last).filter(|cut| counts(*cut));
    let found = cuts.filter_map(|cut| Some((cut, ratio(times.split_at(cut), least)?)));
    let (cut, (_, ratio)) = found.min_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b))?;
    Some((cut, ratio))
}

/// Do two levels fit the logarithms of the times better than a straight line, by least squares?
fn fits_better_than_a_line(times: &[f64], cut: usize) -> bool {
    let logs: Vec<f64> = times.iter().map(|time| time.ln()).collect();
    let (before, after) = logs.split_at(cut);
    let all = squares_around_mean(&logs);
    let of_line = all - slope(&logs).powi(2) * spread(logs.len());
    squares_around_mean(before) + squares_around_mean(after) < of_line
}

fn squares_around_mean(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// How likely the least `cut` of `all` times come first by chance: one in the ways to choose them.
fn chance(all: usize, cut: usize) -> f64 {
    (0..cut).map(|taken| (taken + 1) as f64 / (all - taken) as f64).product()
}

/// The share of times that a cut misplaces, and the factor of its step.
fn ratio((before, after): (&[f64], &[f64]), least: f64) -> Option<(f64, f64)> {
    let (low, high) = (median(before)?, median(after)?);
    if !(low > 0.0 && high / low >= least) {
        return None;
    }
    let middle = (low * high).sqrt();
    let off_before = before.iter().filter(|time| **time > middle).count() as f64 / before.len() as f64;
    let off_after = after.iter().filter(|time| **time < middle).count() as f64 / after.len() as f64;
    let off = off_before.max(off_after);
    (off <= MISPLACED).then_some((off, high / low))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n` times around `level`.
    fn around(level: f64, n: usize) -> impl Iterator<Item = f64> {
        (0..n).map(move |i| level * (1.0 + [0.1, -0.15, 0.0, 0.2, -0.05][i % 5]))
    }

    #[test]
    fn a_burst_that_ends_is_a_step_wherever_it_ends() {
        for (before, after) in [(3, 7), (7, 3), (5, 5), (10, 90), (50, 50), (85, 15)] {
            let times: Vec<f64> = around(1.0, before).chain(around(4.0, after)).collect();
            let found = step_up(&times).expect("a step");
            assert!((found / 4.0 - 1.0).abs() < 0.3, "{before} {after} {found}");
        }
    }

    #[test]
    fn noise_stalls_and_steps_down_are_none() {
        assert_eq!(step_up(&around(1.0, 100).collect::<Vec<f64>>()), None);
        assert_eq!(step_up(&around(4.0, 50).chain(around(1.0, 50)).collect::<Vec<f64>>()), None);
        let stall: Vec<f64> = around(1.0, 40).chain(around(9.0, 5)).chain(around(1.0, 40)).collect();
        assert_eq!(step_up(&stall), None);
        let saw: Vec<f64> = (0..100).map(|i| if i % 2 == 0 { 1.0 } else { 4.0 }).collect();
        assert_eq!(step_up(&saw), None);
        assert_eq!((step_up(&[1.0, 1.0, 9.0]), step_up(&[])), (None, None));
        let slight: Vec<f64> = around(1.0, 50).chain(around(1.7, 50)).collect();
        assert_eq!((step_up(&slight), has_step(&slight)), (None, true));
    }

    #[test]
    fn a_step_down_of_a_rate_has_a_place() {
        let slices = |rates: &[u64]| -> Vec<Slice> {
            rates.iter().map(|work| Slice { ns: 1_000, work: *work }).collect()
        };
        let rates = [[90; 10], [50; 10]].concat();
        assert_eq!(step_down_of_rate(&slices(&rates)), Some(10));
        assert_eq!(step_down_of_rate(&slices(&[[50; 10], [90; 10]].concat())), None);
        assert_eq!(step_down_of_rate(&slices(&[50; 20])), None);
    }

    #[test]
    fn a_ramp_is_none() {
        for factor in [2.0, 5.0, 20.0] {
            let ramp = |i: usize| 1.0 + (factor - 1.0) * i as f64 / 99.0;
            let times: Vec<f64> = around(1.0, 100).enumerate().map(|(i, noise)| noise * ramp(i)).collect();
            assert_eq!(step_up(&times), None, "{factor}");
        }
    }

    #[test]
    fn what_chance_may_sort_is_none() {
        // The two slowest of nine come last in one of 36 cases, three of ten in one of 120.
        for (before, after) in [(1, 9), (8, 1), (7, 2), (4, 4), (3, 97)] {
            let times: Vec<f64> = around(1.0, before).chain(around(4.0, after)).collect();
            assert_eq!(step_up(&times), None, "{before} {after}");
        }
        assert!((chance(9, 2) - 1.0 / 36.0).abs() < 1e-12 && (chance(10, 7) - 1.0 / 120.0).abs() < 1e-12);
    }
}
