//! Stopping a run as soon as its interval is as narrow as was asked for.
//!
//! Each look at the interval is a chance to stop on one that is narrow by luck, and luck is commonest when
//! slices are few and alike. So the first look comes after [`FIRST_LOOK_NS`], which is a hundred joined
//! slices of 10 ms, or forty where a request takes 25 ms, as in the simulation; and another whenever half as
//! much time again has been spent. In simulated runs the intervals of runs that stopped so held the truth in
//! 95 to 96 % of independent and 93 to 94 % of AR(0.3) slices; with a first look at twenty and looks after
//! each quarter it was 91 to 92 %.

use super::{Interval, Slices, of_ratio};

/// Time that must have been measured before the first look, in nanoseconds.
const FIRST_LOOK_NS: u64 = 1_000_000_000;

/// When to look whether all is precise: an interval takes time to compute, and is hardly narrower than a
/// moment before. A look is due after so many turns, or so much time, and again after half as much more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looks {
    next: u64,
}

impl Looks {
    /// The first is due after `first` turns, or nanoseconds.
    pub(crate) fn from(first: u64) -> Self {
        Self { next: first }
    }

    /// Is a look due, after `spent` of them?
    pub(crate) fn are_due(&mut self, spent: u64) -> bool {
        let due = spent >= self.next;
        if due {
            self.next = spent + spent / 2;
        }
        due
    }
}

/// Decides when to look, and whether the interval is narrow enough.
#[derive(Debug)]
pub struct Precision {
    wanted: Option<f64>,
    looks: Looks,
}

impl Precision {
    /// Half the interval's width over its value shall be at most `wanted` (0.05 is ±5 %).
    pub fn new(wanted: Option<f64>) -> Self {
        Self { wanted, looks: Looks::from(FIRST_LOOK_NS) }
    }

    /// A slice was closed. Is the interval of all that are steady as narrow as wanted?
    pub fn reached(&mut self, slices: &Slices) -> bool {
        let Some(wanted) = self.wanted else { return false };
        let narrow = |interval: Interval| interval.relative_half_width() <= wanted;
        self.looks.are_due(slices.total().ns) && of_ratio(&slices.steady()).is_some_and(narrow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn looks_get_rarer() {
        let mut looks = Looks::from(6);
        let due: Vec<u64> = (1..=30).filter(|&turns| looks.are_due(turns)).collect();
        assert_eq!(due, [6, 9, 13, 19, 28]);
    }

    /// Share of runs, ended by the precision or after `most` slices, whose interval holds the truth; and
    /// the mean number of slices.
    fn coverage(wanted: f64, ar: f64, most: usize, runs: usize) -> (f64, f64) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let (mut held, mut length) = (0, 0);
        for _ in 0..runs {
            let mut slices = Slices::default();
            let mut precision = Precision::new(Some(wanted));
            let mut state: f64 = StandardNormal.sample(&mut rng);
            for _ in 0..most {
                let shock: f64 = StandardNormal.sample(&mut rng);
                state = ar * state + (1.0 - ar * ar).sqrt() * shock;
                // Each slice is one step of just its width, so that its work varies and not its time.
                let work = (1000.0 + 150.0 * state) as u64;
                assert!(slices.add(25_000_000, work));
                length += 1;
                if precision.reached(&slices) {
                    break;
                }
            }
            let truth = 25_000_000.0 / 1000.0;
            let interval = of_ratio(&slices.steady()).expect("enough slices");
            held += usize::from(interval.low <= truth && truth <= interval.high);
        }
        (held as f64 / runs as f64, length as f64 / runs as f64)
    }

    #[test]
    fn stopping_early_keeps_the_coverage() {
        for (ar, wanted) in [(0.0, 0.03), (0.0, 0.06), (0.3, 0.04), (0.3, 0.06)] {
            let (share, slices) = coverage(wanted, ar, 400, 4000);
            assert!((40.0..200.0).contains(&slices), "AR({ar}), {wanted}: stopped after {slices} slices");
            assert!((0.93..=0.97).contains(&share), "AR({ar}), {wanted}: {share} after {slices}");
        }
    }

    #[test]
    fn without_a_wish_it_never_stops() {
        let mut slices = Slices::default();
        let mut precision = Precision::new(None);
        for _ in 0..1000 {
            slices.add(25_000_000, 10);
            assert!(!precision.reached(&slices));
        }
    }
}
