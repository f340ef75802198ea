//! Which candidates are as good as the best one, by costs that are known to some error only.
//!
//! A cost is a time, or a mean of times. One is as good as the least unless it exceeds it by more than 5 %
//! plus the 95 % error of their difference. Errors that move both costs alike do not count: each measured
//! time is moved to the upper end of its interval while the others stay, and the shifts of the difference of
//! the two logarithms are added in quadrature.
//!
//! The value in force stays where it is as good. Else a value is advised that is surely better, and exceeds
//! the least by half as much at most. It is not an edge value: noise would push it out next time. Of several
//! the one nearest to a place above the middle of the plateau is chosen, on the scale of ln(1 + value). Below
//! it times rise steeply, and the lower end moves the most from call to call.
//!
//! # Limitations and caveats
//! - The smallest is as good but unstable: up to 14 of 40 repeated calls left the usual range.
//! - The ends of a plateau lie between a value that is as good and one that is not. The logarithm of the cost
//!   is interpolated there, linearly over ln(1 + value).
//! - Times are taken as independent of each other.
//! - Of many candidates the least is low by luck, too. With the larger of 5 % and the error in place of their
//!   sum, simulated devices were given other advice in up to 13 of 40 calls; with the sum in 2.

use std::iter;

use io_probe_core::stats::Interval;

/// Costs within this factor of each other are as good, however well they are known.
pub const AS_GOOD: f64 = 1.05;

/// Largest excess over the least at which another value is advised.
pub(super) const INNER: f64 = 0.5;

/// Largest excess over the least of a value that another measure may still prefer.
const NEARLY: f64 = 3.0;

/// How far up the values that are as good one is chosen. (A concurrency by the curve alone lies higher.)
pub(super) const TWO_THIRDS: f64 = 2.0 / 3.0;

/// A value in force that costs this many times as much as the best, though not surely, is nothing to keep:
/// the next measurement may say otherwise.
pub const SEEMS_WORSE: f64 = 1.1;
/// It seems so only from this excess on: below it the best of several values is that by luck. In simulations
/// of four alike, with a noise of 10 to 20 %, 1 to 3 % of the calls say that one seems worse; without this
/// rule 1 to 43 %.
const NO_LUCK: f64 = 0.75;

/// What to do about a setting, by the ratios of what other values take to what the value in force takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ByRatios<T> {
    /// No other value is surely better.
    Keep,
    /// This one is.
    Change(T),
    /// Another one seems better, but not surely.
    SeemsBetter,
    /// There are no ratios.
    Unmeasured,
}

/// Candidates, by their costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidates {
    /// As logarithms.
    costs: Vec<f64>,
    /// For each time, how far each cost moves by its error.
    moves: Vec<Vec<f64>>,
    best: usize,
}

impl Candidates {
    /// From the logarithm of the cost of each; `moved` are these logarithms with one time after the other at
    /// the upper end of its interval.
    pub fn of(costs: Vec<f64>, moved: impl Iterator<Item = Vec<f64>>) -> Self {
        let best = least_by(0..costs.len(), |index| costs[*index]).unwrap_or(0);
        let moves =
            moved.map(|moved| moved.iter().zip(&costs).map(|(moved, cost)| moved - cost).collect()).collect();
        Self { costs, moves, best }
    }

    /// Excludes candidates that are not allowed: they are neither the best nor as good. None if no cost is
    /// left.
    pub fn among(&self, allowed: impl Fn(usize) -> bool) -> Option<Self> {
        let costs = self.costs.iter().enumerate();
        let costs: Vec<f64> =
            costs.map(|(index, cost)| if allowed(index) { *cost } else { f64::INFINITY }).collect();
        let known = (0..costs.len()).filter(|index| costs[*index].is_finite());
        let best = least_by(known, |index| costs[*index])?;
        Some(Self { costs, moves: self.moves.clone(), best })
    }

    /// How much more `one` costs than `other`, in units of what can be told apart.
    fn over(&self, one: usize, other: usize) -> f64 {
        let error = self.moves.iter().map(|by| (by[one] - by[other]).powi(2)).sum::<f64>().sqrt();
        (self.costs[one] - self.costs[other]) / (AS_GOOD.ln() + error)
    }

    /// How much more a candidate costs than the best, in units of what can be told apart: up to 1 is as good.
    pub fn excess(&self, index: usize) -> f64 {
        self.over(index, self.best)
    }

    /// Is `index` sure to be better than `over`?
    pub fn gains(&self, index: usize, over: usize) -> bool {
        self.over(over, index) > 1.0
    }

    /// Candidates of which each has a time of its own.
    fn of_times(times: &[Interval]) -> Self {
        let costs: Vec<f64> = times.iter().map(|time| time.value.ln()).collect();
        let moved = times.iter().enumerate().map(|(index, time)| {
            let mut moved = costs.clone();
            moved[index] = time.high.ln();
            moved
        });
        Self::of(costs.clone(), moved)
    }

    /// The ends of the values around `chosen` that are as good. `along` are values, ascending, and which
    /// candidate each is.
    pub fn range(&self, along: &[(f64, usize)], chosen: f64) -> (f64, f64) {
        let at = along.iter().position(|(value, _)| *value == chosen).unwrap_or(0);
        (self.end(along[..=at].iter().rev()), self.end(along[at..].iter()))
    }

    /// Where the values `outwards` cease to be as good.
    fn end<'a>(&self, outwards: impl Iterator<Item = &'a (f64, usize)>) -> f64 {
        let mut last = (f64::NAN, 0.0);
        for &(value, index) in outwards {
            let excess = self.excess(index);
            if excess > 1.0 && !last.0.is_nan() {
                let share = if last.1 > 1.0 { 0.0 } else { (1.0 - last.1) / (excess - last.1) };
                // Written so that a share of 0 gives the last value exactly.
                return last.0 + (1.0 + last.0) * ((value.ln_1p() - last.0.ln_1p()) * share).exp_m1();
            }
            last = (value, excess);
        }
        last.0
    }

    /// The plateau of candidates that are the values of one setting, ascending; None without any. Chosen is
    /// the one nearest to `up` of the way from the least that is as good to the greatest.
    pub fn plateau(&self, values: &[u64], current: Option<u64>, up: f64) -> Option<Plateau> {
        let in_force = current.and_then(|current| values.iter().position(|value| *value == current));
        let along: Vec<(f64, usize)> = values.iter().map(|value| *value as f64).zip(0..).collect();
        let kept = in_force.filter(|index| self.excess(*index) <= 1.0);
        let value = values[kept.or_else(|| self.inner(&along, in_force, up))?];
        let (low, high) = self.range(&along, value as f64);
        Some(Plateau {
            value,
            low: low.ceil() as u64,
            high: high.floor() as u64,
            holds_current: current == Some(value),
            seems_worse: kept.is_some_and(|kept| self.seems_worse(kept)),
        })
    }

    /// The plateau, and after it the others: values that are as good too, apart from it. Where the first
    /// replaces what is in force, also those that are nearly as good; then all are surely better than that.
    /// In each the value nearest to `up` of the way up is chosen; of those that are nearly as good, the best.
    pub(super) fn plateaus(&self, values: &[u64], current: Option<u64>, up: f64) -> Vec<Plateau> {
        let along: Vec<(f64, usize)> = values.iter().map(|value| *value as f64).zip(0..).collect();
        let Some(first) = self.plateau(values, current, up) else { return Vec::new() };
        let in_force = current.and_then(|current| values.iter().position(|value| *value == current));
        let replaced = in_force.filter(|_| !first.holds_current);
        let worst = if first.holds_current { Standing::AsGood } else { Standing::NearlyAsGood };
        let runs = along.chunk_by(|one, next| self.standing(one.1) == self.standing(next.1));
        let others = runs.filter(|run| {
            self.standing(run[0].1) <= worst && run.iter().all(|(value, _)| *value != first.value as f64)
        });
        let others = others.filter_map(|run| {
            let (low, high) = match self.standing(run[0].1) {
                Standing::AsGood => self.range(&along, run[0].0),
                _ => least_by(run, |(_, index)| self.costs[*index]).map(|(value, _)| (*value, *value))?,
            };
            let (value, index) = *least_by(run, |(value, _)| off_place((low, high), up, *value))?;
            replaced.is_none_or(|replaced| self.gains(index, replaced)).then_some(Plateau {
                value: value as u64,
                low: low.ceil() as u64,
                high: high.floor() as u64,
                holds_current: false,
                seems_worse: false,
            })
        });
        iter::once(first).chain(others).collect()
    }

    fn standing(&self, index: usize) -> Standing {
        match self.excess(index) {
            excess if excess <= 1.0 => Standing::AsGood,
            excess if excess <= NEARLY => Standing::NearlyAsGood,
            _ => Standing::Worse,
        }
    }

    /// Is a value that is as good likely to be worse by over a tenth?
    fn seems_worse(&self, kept: usize) -> bool {
        self.costs[kept] - self.costs[self.best] > SEEMS_WORSE.ln() && self.excess(kept) > NO_LUCK
    }

    /// The value nearest to `up` of those that are surely better than what is in force, and no edge values.
    /// Of two plateaus that are about as good noise would pick either: it is on the last one.
    fn inner(&self, along: &[(f64, usize)], in_force: Option<usize>, up: f64) -> Option<usize> {
        let inner = along.iter().filter(|(_, index)| {
            self.excess(*index) <= INNER && in_force.is_none_or(|in_force| self.gains(*index, in_force))
        });
        let range = self.range(along, inner.clone().next_back()?.0);
        let last = inner.filter(|(value, _)| *value >= range.0);
        least_by(last, |(value, _)| off_place(range, up, *value)).map(|(_, index)| *index)
    }
}

/// How a candidate stands to the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    AsGood,
    NearlyAsGood,
    Worse,
}

/// The first of the items with the least key; None without any.
pub(super) fn least_by<T>(items: impl IntoIterator<Item = T>, key: impl Fn(&T) -> f64) -> Option<T> {
    items.into_iter().min_by(|one, other| key(one).total_cmp(&key(other)))
}

/// How far a value is from the place `up` of the way up a range, as differences of ln(1 + value).
pub(super) fn off_place((low, high): (f64, f64), up: f64, value: f64) -> f64 {
    (value.ln_1p() - ((1.0 - up) * low.ln_1p() + up * high.ln_1p())).abs()
}

/// Which of these times are as good as the least: not surely longer by more than 5 %, nor seemingly by more
/// than 10 %.
fn as_good(times: &[Interval]) -> Vec<bool> {
    let candidates = Candidates::of_times(times);
    let least = times.iter().map(|time| time.value).fold(f64::INFINITY, f64::min);
    let times = times.iter().enumerate();
    times.map(|(i, time)| candidates.excess(i) <= 1.0 && time.value <= least * SEEMS_WORSE).collect()
}

/// The first of these times that is as good as the least, among those that are known. None if just one of
/// several is.
pub fn first_as_good(times: impl IntoIterator<Item = Option<Interval>>) -> Option<usize> {
    let all: Vec<Option<Interval>> = times.into_iter().collect();
    let known = all.iter().enumerate().filter_map(|(place, time)| Some((place, (*time)?)));
    let (places, times): (Vec<usize>, Vec<Interval>) = known.unzip();
    let is_told = times.len() > 1 || all.len() == 1;
    let first = as_good(&times).into_iter().position(|is_as_good| is_as_good).filter(|_| is_told);
    first.map(|first| places[first])
}

/// A value of a setting, and the time that it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// The value, in the setting's own unit.
    pub value: u64,
    /// Time of a unit of work, with its 95 % interval.
    pub time: Interval,
    /// The share by which it may be off besides, however long it is measured.
    pub error: f64,
}

/// The values that are as good as the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plateau {
    /// What to set: the value in force if it is as good.
    pub value: u64,
    /// The least of the values around it that are as good.
    pub low: u64,
    /// The greatest of them.
    pub high: u64,
    /// Is it the value in force?
    pub holds_current: bool,
    /// Is it kept only because the times are not known well enough? By them it is worse by over a tenth.
    pub seems_worse: bool,
}

impl Plateau {
    /// This plateau, beside the one by the measured intervals alone. A longer measurement narrows only the
    /// intervals, not what the times may be off by besides.
    pub(super) fn beside(self, measured: Self) -> Self {
        Self { seems_worse: self.seems_worse && measured.seems_worse, ..self }
    }
}

/// Those of `choices` that are as good as the fastest. None without choices, or if the value in force is none
/// of them.
pub fn plateau(choices: &[Choice], current: u64) -> Option<Plateau> {
    let mut sorted = choices.to_vec();
    sorted.sort_by_key(|choice| choice.value);
    let values: Vec<u64> = sorted.iter().map(|choice| choice.value).collect();
    values.binary_search(&current).ok()?;
    let measured: Vec<Interval> = sorted.iter().map(|choice| choice.time).collect();
    let times: Vec<Interval> = sorted.iter().map(|choice| choice.time.with_error(choice.error)).collect();
    let [found, measured] = [times, measured]
        .map(|times| Candidates::of_times(&times).plateau(&values, Some(current), TWO_THIRDS));
    Some(found?.beside(measured?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(value: u64, time: f64, half: f64) -> Choice {
        Choice { value, time: Interval { value: time, low: time - half, high: time + half }, error: 0.0 }
    }

    fn found(choices: &[Choice], current: u64) -> (u64, u64, u64) {
        let Plateau { value, low, high, holds_current, .. } = plateau(choices, current).expect("a plateau");
        assert_eq!(value == current, holds_current);
        (value, low, high)
    }

    #[test]
    fn what_is_nearly_as_good_is_told_apart_from_the_plateau() {
        let plateaus = |costs: &[f64], values: &[u64], current| {
            let found =
                Candidates::of(costs.to_vec(), iter::empty()).plateaus(values, Some(current), TWO_THIRDS);
            found.iter().map(|of| (of.value, of.low, of.high)).collect::<Vec<_>>()
        };
        // A twentieth is an excess of 1: here those of 0 are 2 and 4, those of 1 are 10.
        assert_eq!(plateaus(&[0.1, 0.5, 0.0, 0.02], &[0, 1, 10, 16], 1), [(16, 9, 16), (0, 0, 0)]);
        assert_eq!(plateaus(&[0.2, 0.5, 0.0, 0.02], &[0, 1, 10, 16], 1), [(16, 9, 16)]);
        // Beside the plateau, too.
        assert_eq!(plateaus(&[0.1, 0.0, 0.02, 0.5], &[0, 10, 16, 64], 64), [(10, 3, 17), (0, 0, 0)]);
        // But not where what is in force stays.
        assert_eq!(plateaus(&[0.1, 0.5, 0.0, 0.02], &[0, 1, 10, 16], 16), [(16, 9, 16)]);
        // What is in force is not told again, nor what is not surely better than it.
        assert_eq!(plateaus(&[0.1, 0.5, 0.0, 0.02], &[0, 1, 10, 16], 0), [(16, 9, 16)]);
    }

    #[test]
    fn two_thirds_up_what_is_as_good_is_recommended() {
        let choices =
            [choice(8, 20.0, 0.1), choice(16, 10.2, 0.1), choice(32, 10.0, 0.1), choice(64, 11.0, 0.1)];
        // By hand: ln 1.1 is 1.532 of 5 % and the error, so that from 33 to 65 the end is at 0.653.
        assert_eq!(found(&choices, 8), (32, 16, 50));
        assert_eq!(found(&choices, 16), (16, 16, 50));
        assert_eq!(found(&choices, 32), (32, 16, 50));
        assert_eq!(found(&choices, 64), (32, 16, 50));
        // In the middle of 8 to 128 lies 32.
        let flat = [8, 16, 32, 64, 128].map(|value| choice(value, 10.0, 0.1));
        let choices = [&[choice(4, 20.0, 0.1)][..], &flat].concat();
        assert_eq!(found(&choices, 4).0, 64);
    }

    #[test]
    fn within_the_noise_nothing_is_better() {
        let choices = [choice(8, 12.0, 1.5), choice(16, 10.0, 1.0), choice(32, 14.0, 0.5)];
        // ln 1.2 is 0.182; the error of both √(0.118² + 0.095²) = 0.151, and 5 %.
        assert_eq!(found(&choices, 8), (8, 8, 21));
        assert_eq!(found(&[choice(8, 12.0, 0.5), choice(16, 10.0, 0.5)], 8).0, 16);
        // Within 5 % nothing is, however well it is known.
        assert_eq!(found(&[choice(8, 10.4, 0.0), choices[1]], 8), (8, 8, 16));
        assert_eq!(found(&[choice(8, 10.6, 0.0), choice(16, 10.0, 0.0)], 8).0, 16);
        // Nor is a value advised that is better by less than what is in force.
        assert_eq!(found(&[choice(8, 10.6, 0.0), choice(16, 10.2, 0.0), choice(32, 10.0, 0.0)], 8).0, 32);
    }

    #[test]
    fn what_seems_worse_is_told_from_what_is_as_good() {
        let of = |half: f64, slow: f64| {
            let choices = [choice(8, slow, half), choice(16, 10.0, half)];
            let found = plateau(&choices, 8).expect("a plateau");
            (found.holds_current, found.seems_worse)
        };
        assert_eq!(of(0.0, 10.4), (true, false));
        assert_eq!(of(2.0, 10.9), (true, false));
        // By hand: of the error of 0.246 and 5 % it is 0.35, and 0.82.
        assert_eq!(of(2.0, 11.1), (true, false));
        assert_eq!(of(2.0, 12.6), (true, true));
        assert_eq!(of(0.1, 12.0), (false, false));
    }

    #[test]
    fn what_a_time_may_be_off_by_is_no_reason_to_measure_for_longer() {
        let of = |half, slow| {
            let other = Choice { error: 0.08, ..choice(16, 10.0, half) };
            let found = plateau(&[choice(8, slow, half), other], 8).expect("a plateau");
            (found.holds_current, found.seems_worse)
        };
        // It takes 1.05 · 1.08.
        assert_eq!(of(0.0, 11.3), (true, false));
        assert_eq!(of(0.0, 11.4), (false, false));
        // The noise alone would hide it, or would not.
        assert_eq!(of(2.0, 12.7), (true, true));
        assert_eq!(of(0.1, 11.3), (true, false));
    }

    #[test]
    fn what_is_neither_surely_nor_seemingly_slower_is_as_good() {
        let times = |half: f64| [20.0, 10.4, 10.8, 10.0].map(|time| choice(0, time, half).time);
        assert_eq!(as_good(&times(0.0)), [false, true, false, true]);
        assert_eq!(as_good(&times(0.5)), [false, true, true, true]);
        // Nothing is sure, but the first takes twice as long.
        assert_eq!(as_good(&times(9.0)), [false, true, true, true]);
        assert_eq!(as_good(&[]), [true; 0]);
    }

    #[test]
    fn a_time_that_is_lacking_takes_nothing_from_the_others() {
        let times = [20.0, 10.4, 10.0].map(|time| Some(choice(0, time, 0.1).time));
        assert_eq!(first_as_good(times), Some(1));
        assert_eq!(first_as_good([&[None], &times[..], &[None]].concat()), Some(2));
        // Of several, one is as good as none.
        assert_eq!(first_as_good([None, times[0]]), None);
        assert_eq!(first_as_good([times[0]]), Some(0));
        assert_eq!(first_as_good([]), None);
    }

    #[test]
    fn a_plateau_has_a_width_unless_there_is_one_candidate() {
        assert_eq!(found(&[choice(16, 10.0, 1.0)], 16), (16, 16, 16));
        let (value, low, high) =
            found(&[choice(1, 30.0, 0.1), choice(64, 10.0, 0.1), choice(128, 30.0, 0.1)], 1);
        assert!(value == 64 && low < 64 && high > 64, "{low} {high}");
    }

    #[test]
    fn what_moves_both_alike_does_not_count() {
        let costs = vec![1.0, 1.2];
        let moved = Candidates::of(costs.clone(), std::iter::once(vec![1.5, 1.2])).excess(1);
        assert!((moved - 0.2 / (0.5 + AS_GOOD.ln())).abs() < 1e-9, "{moved}");
        let moved_alike = Candidates::of(costs.clone(), std::iter::once(vec![1.5, 1.7]));
        assert!((moved_alike.excess(1) - 0.2 / AS_GOOD.ln()).abs() < 1e-9, "{moved_alike:?}");
    }

    #[test]
    fn what_is_not_allowed_is_not_the_best() {
        let all = Candidates::of(vec![1.0, 1.2, 1.21, 2.0], std::iter::empty());
        let some = all.among(|index| index > 0).expect("three");
        let as_good: Vec<bool> = (0..4).map(|index| some.excess(index) <= 1.0).collect();
        assert_eq!(as_good, [false, true, true, false]);
        let along: Vec<(f64, usize)> = [10.0, 20.0, 30.0, 40.0].into_iter().zip(0..).collect();
        let (low, high) = some.range(&along, 30.0);
        assert!(low == 20.0 && high > 30.0 && high < 40.0, "{low} {high}");
        assert_eq!(all.among(|_| false), None);
    }

    #[test]
    fn what_was_not_measured_can_t_be_compared() {
        assert_eq!(plateau(&[], 8), None);
        assert_eq!(plateau(&[choice(16, 10.0, 1.0)], 8), None);
    }
}
