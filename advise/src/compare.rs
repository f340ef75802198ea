//! Whether figures of two runs, or of two groups of runs, differ by more than such runs do by themselves.
//!
//! Runs of a probe on an idle disk differ by 6 to 8 % (coefficient of variation), and far more than the
//! interval within a run says: what differs between runs is where the blocks lie, what the host does, how
//! warm the device is. So "the intervals do not overlap" calls 26 to 46 % of equal pairs different. On a
//! device with other users a run is also like the one before it. So two sides differ only if |ln(b/a)|
//! exceeds both the error within the runs and what all runs together say of the noise between them, which
//! `noise` models with the times of the runs.
//!
//! A run's own row knows what others took from it
//! ([`taken`](io_probe_core::machine::disturbance::taken)). Runs that were disturbed are set aside where
//! enough others are left. Where they are not, the sides are compared only if both had the same neighbours;
//! else the verdict is [`Verdict::CantTell`].
//!
//! Nor is "no difference was found" the same as "there is none": two runs on a noisy device differ by
//! anything. [`Verdict::Same`] is an equivalence test: the 95 % interval of the ratio, which is the
//! difference of ln with the noise at [`LEVEL`] to either side, must lie within 1 / [`ALIKE`] to [`ALIKE`].
//! So sides that differ by a factor of [`ALIKE`] are called the same in one case of forty. What is neither
//! different nor the same can't be told, and [`Comparison::remark`] says how many runs are lacking.
//!
//! # Limitations and caveats
//! - It takes [`MIN_RUNS`] runs that tell the noise; with fewer, the verdict is [`Verdict::CantTell`].
//! - A level that shifts just between two sides, of which each ran at a stretch, looks like a difference, and
//!   so does a steep drift over both. Only the rows' evidence may know better. Take turns.
//! - Figures are compared one by one, at [`LEVEL`]. Judge many of them at the level of [`holm`].
//! - A difference of less than [`RESOLUTION`] is never called one: percentiles come from histograms with two
//!   digits.
//!
//! Sources: Student (1908), "The probable error of a mean"; Schuirmann (1987), "A comparison of the two
//! one-sided tests procedure" for equivalence; those of `noise`.

use std::collections::BTreeMap;

use io_probe_core::machine::disturbance::DISTURBING;
use io_probe_surface::words;
use statrs::function::erf::{erfc, erfc_inv};

mod levels;
mod noise;
mod touch;

pub use touch::{SETTINGS, can_touch};

use noise::{Noise, Point};

/// Runs that it takes to know the noise.
pub const MIN_RUNS: usize = 10;

/// Differences of ln below this are none.
pub const RESOLUTION: f64 = 0.01;

/// Sides that differ by this factor are not called the same.
pub const ALIKE: f64 = 1.3;

/// Noise must be less by this factor if it is to tell in four cases of five: the figure of more runs is
/// another one, whose 80 % quantile is 0.43 of the half-width of its 95 % interval away.
const SURELY: f64 = 1.43;
/// For sides that do not differ, which either end of the interval may hide, by this one: its 90 % quantile
/// is 0.65 of the half-width away.
const SURELY_SAME: f64 = 1.65;

/// Most runs that are said to be lacking.
const MOST_MORE_RUNS: usize = 1000;

/// How often sides that do not differ may be called different.
pub const LEVEL: f64 = 0.05;

/// Fewest runs of a side that are left when others are set aside; at least half are, too.
const LEAST_QUIET: usize = 3;

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// When it started, in seconds since whenever.
    pub at: f64,
    /// In whatever unit; only those over zero can be compared.
    pub value: f64,
    /// Half the width of its 95 % interval within the run, over its value; None if it has none.
    pub error: Option<f64>,
    /// The share that others took, see [`taken`](io_probe_core::machine::disturbance::taken).
    pub taken: f64,
}

/// Runs of one configuration, which have one level. A single run tells nothing of the noise.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesRuns {
    /// Names the series: its runs share the states of one device.
    pub series: String,
    /// In the order of time.
    pub runs: Vec<Run>,
}

words! {
    /// What is said of the second side against the first.
    Verdict {
        /// It differs for the better.
        Better = "better",
        /// It differs for the worse.
        Worse = "worse",
        /// It surely differs by a factor of less than [`ALIKE`].
        Same = "same",
        /// Nothing can be said: for want of runs, or see [`Comparison::unknown`].
        CantTell = "can't tell",
        /// It differs, but what is known to be different of the sides is not the reason, see [`can_touch`].
        OtherCause = "other cause",
    }
}

/// Which sides get more runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growing {
    /// Both, as many each.
    Both,
    /// The second; the first is the past.
    Second,
}

/// Why nothing can be said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unknown {
    /// One side, or both, has no value over zero: which of them have one.
    NoFigure([bool; 2]),
    /// Fewer than [`MIN_RUNS`] tell the noise.
    FewRuns,
    /// Others took these shares from the sides.
    Others([f64; 2]),
}

/// Two sides beside each other.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Geometric mean of the first side; None without a value over zero.
    pub a: Option<f64>,
    /// Geometric mean of the second side, likewise.
    pub b: Option<f64>,
    /// The second over the first.
    pub ratio: Option<f64>,
    /// Runs that tell the noise: of both sides and before them, but for those that are alone in their group.
    pub runs: usize,
    /// Runs of both sides that others disturbed, and that do not count.
    pub set_aside: usize,
    /// Why every verdict is [`Verdict::CantTell`], if it is not for the noise.
    pub unknown: Option<Unknown>,
    /// Runs of each side that count.
    pub compared: [usize; 2],
    /// How many independent runs would tell as much as these: fewer if neighbours in time are alike, more if
    /// the other side has such neighbours, too.
    pub effective: Option<f64>,
    judged: Option<Judged>,
}

#[derive(Debug, Clone)]
struct Judged {
    /// Difference of the means of ln.
    difference: f64,
    is_gain: bool,
    between_runs: Noise,
    /// Half the width of the 95 % interval of the difference by what is known within the runs.
    within_runs: f64,
}

/// Compares the second side with the first. `past` are groups of earlier runs of the same kind.
pub fn compare(a: &[SeriesRuns], b: &[SeriesRuns], past: &[SeriesRuns], more_is_better: bool) -> Comparison {
    let sides = [figures(a), figures(b)];
    let quiet = sides.each_ref().map(|side| undisturbed(side));
    let quiet = Some(quiet).filter(|[a, b]| is_enough(a, &sides[0]) && is_enough(b, &sides[1]));
    let kept = quiet.as_ref().unwrap_or(&sides);
    let past = quiet_past(figures(past));
    let means = kept.each_ref().map(|side| mean(side));
    let tell = kept.iter().flatten().chain(&past).map(|group| group.runs.len());
    let compared = kept.each_ref().map(|side| runs(side).count());
    let both = compared.iter().sum::<usize>();
    let mut comparison = Comparison {
        a: means[0].map(f64::exp),
        b: means[1].map(f64::exp),
        ratio: None,
        runs: tell.filter(|runs| *runs > 1).sum(),
        compared,
        set_aside: runs(sides.iter().flatten()).count() - both,
        unknown: None,
        effective: None,
        judged: None,
    };
    let [Some(mean_a), Some(mean_b)] = means else {
        let unknown = Some(Unknown::NoFigure(means.map(|mean| mean.is_some())));
        return Comparison { unknown, ..comparison };
    };
    let difference = mean_b - mean_a;
    comparison.ratio = Some(difference.exp());
    let taken = sides.each_ref().map(|side| taken(side));
    if quiet.is_none() && (taken[0] - taken[1]).abs() > DISTURBING {
        return Comparison { unknown: Some(Unknown::Others(taken)), ..comparison };
    }
    let between_runs = Noise::of(&series(kept, &past)).filter(|_| comparison.runs >= MIN_RUNS);
    let Some(between_runs) = between_runs else {
        return Comparison { unknown: Some(Unknown::FewRuns), ..comparison };
    };
    comparison.effective = Some(both as f64 / between_runs.inflation());
    let is_gain = (difference > 0.0) == more_is_better;
    let within_runs = error(&kept[0]).hypot(error(&kept[1]));
    comparison.judged = Some(Judged { difference, is_gain, between_runs, within_runs });
    comparison
}

impl Comparison {
    /// How likely sides that do not differ are as far apart as these; None if nothing can be said.
    pub fn chance(&self) -> Option<f64> {
        self.judged.as_ref().map(Judged::chance)
    }

    /// What is said where a share `level` of equal sides may be called different; usually [`LEVEL`].
    pub fn verdict(&self, level: f64) -> Verdict {
        match &self.judged {
            None => Verdict::CantTell,
            Some(judged) if judged.chance() > level => {
                if judged.is_alike() {
                    Verdict::Same
                } else {
                    Verdict::CantTell
                }
            }
            Some(judged) if judged.is_gain => Verdict::Better,
            Some(_) => Verdict::Worse,
        }
    }

    /// By how much the larger side must exceed the smaller one to be different at this level: 0.2 is by a
    /// fifth.
    pub fn noise(&self, level: f64) -> Option<f64> {
        self.judged.as_ref().map(|judged| judged.bound(level).exp_m1())
    }

    /// How many more runs tell, of each side that grows, in four cases of five if the figures are what they
    /// seem: as many as make the noise small enough for `better` or `worse`, or else for `same`. Noise falls
    /// as with independent runs, so that those that are alike may need more. None where none are lacking, or
    /// runs are not what lacks, or more than 1,000 do.
    fn more_runs(&self, level: f64, growing: Growing) -> Option<usize> {
        match (&self.judged, self.unknown) {
            (_, Some(Unknown::FewRuns)) => {
                let lacking = MIN_RUNS.saturating_sub(self.runs);
                let of_each = if growing == Growing::Both { lacking.div_ceil(2) } else { lacking };
                Some(of_each.max(1))
            }
            (Some(judged), _) if self.verdict(level) == Verdict::CantTell => {
                let enough = judged.noise_to_tell(level);
                (1..=MOST_MORE_RUNS).find(|more| self.noise_after(*more, growing) < enough)
            }
            _ => None,
        }
    }

    /// The noise after so many more runs of each side that grows, as a share of what it is now.
    fn noise_after(&self, more: usize, growing: Growing) -> f64 {
        let [a, b] = self.compared.map(|runs| runs as f64);
        let more = more as f64;
        let of_a = if growing == Growing::Both { a + more } else { a };
        ((1.0 / of_a + 1.0 / (b + more)) / (1.0 / a + 1.0 / b)).sqrt()
    }

    /// What is lacking for a verdict, in a few words; None if nothing is. The sides have these names.
    pub fn remark(&self, level: f64, growing: Growing, [a, b]: [&str; 2]) -> Option<String> {
        match self.unknown {
            Some(Unknown::NoFigure([false, false])) => Some("no figures".to_owned()),
            Some(Unknown::NoFigure([has_a, _])) => Some(format!("{} is NULL", if has_a { b } else { a })),
            Some(Unknown::Others(_)) => Some("others busy".to_owned()),
            _ if self.verdict(level) != Verdict::CantTell => None,
            _ => Some(match self.more_runs(level, growing) {
                None => "too noisy".to_owned(),
                Some(more) if growing == Growing::Both => format!("{more} more each"),
                Some(1) => "1 more run".to_owned(),
                Some(more) => format!("{more} more runs"),
            }),
        }
    }

    /// What limits the verdict, a sentence each. The sides have these names.
    pub fn notes(&self, [a, b]: [&str; 2]) -> Vec<String> {
        let ratio = self.ratio.unwrap_or(f64::NAN);
        let unknown = self.unknown.map(|unknown| match unknown {
            Unknown::NoFigure([false, false]) => "no figure in either column".to_owned(),
            Unknown::NoFigure([has_a, _]) => format!("no figure in column {}", if has_a { b } else { a }),
            Unknown::FewRuns => {
                format!("{b} is {ratio:.2} times {a}: too few runs for a verdict, which needs {MIN_RUNS}")
            }
            Unknown::Others([of_a, of_b]) => {
                let (of_a, of_b) = (100.0 * of_a, 100.0 * of_b);
                format!("others took {of_a:.0} % of disk traffic or CPU time ({a}) and {of_b:.0} % ({b})")
            }
        });
        let compared = self.compared.iter().sum::<usize>();
        let of_sides = compared + self.set_aside;
        let set_aside = (self.set_aside > 0)
            .then(|| format!("others were at work: {} of {of_sides} runs do not count", self.set_aside));
        let runs = compared as f64;
        let alike =
            self.effective.filter(|effective| runs > 2.0 && !(0.5..=1.5).contains(&(effective / runs)));
        let alike = alike.map(|effective| match effective < runs {
            true => format!(
                "runs close in time are alike: these {runs} tell as much as {effective:.0} runs far apart"
            ),
            false => {
                "the labels take turns, and runs close in time are alike: so there is less noise".to_owned()
            }
        });
        [unknown, set_aside, alike].into_iter().flatten().collect()
    }
}

impl Judged {
    fn chance(&self) -> f64 {
        let difference = self.difference.abs();
        if difference <= RESOLUTION {
            return 1.0;
        }
        let within = erfc(difference / self.within_runs * erfc_inv(LEVEL));
        self.between_runs.chance(difference).max(within)
    }

    /// Does the interval of the difference exclude one by a factor of [`ALIKE`]?
    fn is_alike(&self) -> bool {
        self.difference.abs() + self.bound(LEVEL) <= ALIKE.ln()
    }

    /// The noise with which this difference would tell something, over what it is.
    fn noise_to_tell(&self, level: f64) -> f64 {
        let difference = self.difference.abs();
        let for_change = if difference > RESOLUTION { difference / self.bound(level) } else { 0.0 };
        let for_same = (ALIKE.ln() - difference) / self.bound(LEVEL);
        (for_change / SURELY).max(for_same / SURELY_SAME)
    }

    fn bound(&self, level: f64) -> f64 {
        let within = self.within_runs * erfc_inv(level) / erfc_inv(LEVEL);
        self.between_runs.bound(level).max(within).max(RESOLUTION)
    }
}

/// The level at which each of several figures is judged so that, if none differs, one of them is called
/// different in as many cases as [`LEVEL`] says, however many they are (Holm, 1979).
pub fn holm(chances: impl Iterator<Item = f64>) -> f64 {
    let mut chances: Vec<f64> = chances.collect();
    chances.sort_unstable_by(f64::total_cmp);
    let left = (1..=chances.len()).rev();
    let rejected =
        chances.iter().zip(left).take_while(|&(chance, left)| *chance <= LEVEL / left as f64).count();
    LEVEL / (chances.len() - rejected).max(1) as f64
}

/// All runs that tell the noise, by series. Both sides of a series have one state of the device, and so
/// each series is in the order of time.
fn series(sides: &[Vec<SeriesRuns>; 2], past: &[SeriesRuns]) -> Vec<Vec<Point>> {
    let mut series: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    for (side, sign) in sides.iter().zip([-1.0, 1.0]) {
        let part = sign / runs(side).count() as f64;
        for group in side {
            let points = series.entry(&group.series).or_default();
            let next = points.iter().filter_map(|point| point.group).max().map_or(0, |last| last + 1);
            let level = (group.runs.len() > 1).then_some(next);
            points.extend(group.runs.iter().map(|run| point(run, level, part)));
        }
    }
    let mut series: Vec<Vec<Point>> = series.into_values().collect();
    for group in past {
        let points: Vec<Point> = group.runs.iter().map(|run| point(run, Some(0), 0.0)).collect();
        levels::split(&points, &mut series);
    }
    series.iter_mut().for_each(|points| points.sort_by(|one, other| one.at.total_cmp(&other.at)));
    series
}

fn point(run: &Run, group: Option<usize>, part: f64) -> Point {
    Point { at: run.at, ln: run.value.ln(), group, part }
}

fn runs<'a>(groups: impl IntoIterator<Item = &'a SeriesRuns>) -> impl Iterator<Item = &'a Run> {
    groups.into_iter().flat_map(|group| &group.runs)
}

fn filtered(side: &[SeriesRuns], keep: impl Fn(&Run) -> bool) -> Vec<SeriesRuns> {
    let mut groups = side.to_vec();
    groups.iter_mut().for_each(|group| group.runs.retain(&keep));
    groups.retain(|group| !group.runs.is_empty());
    groups
}

fn figures(side: &[SeriesRuns]) -> Vec<SeriesRuns> {
    filtered(side, |run| run.value > 0.0 && run.value.is_finite())
}

fn undisturbed(side: &[SeriesRuns]) -> Vec<SeriesRuns> {
    filtered(side, |run| run.taken <= DISTURBING)
}

fn is_enough(quiet: &[SeriesRuns], all: &[SeriesRuns]) -> bool {
    let (quiet, all) = (runs(quiet).count(), runs(all).count());
    quiet == all || (quiet >= LEAST_QUIET && 2 * quiet >= all)
}

fn quiet_past(past: Vec<SeriesRuns>) -> Vec<SeriesRuns> {
    let quiet = undisturbed(&past);
    if runs(&quiet).count() >= MIN_RUNS { quiet } else { past }
}

/// The mean share that others took.
fn taken(side: &[SeriesRuns]) -> f64 {
    runs(side).map(|run| run.taken).sum::<f64>() / runs(side).count().max(1) as f64
}

/// The mean of ln; None without runs.
fn mean(side: &[SeriesRuns]) -> Option<f64> {
    let count = runs(side).count();
    (count > 0).then(|| runs(side).map(|run| run.value.ln()).sum::<f64>() / count as f64)
}

/// Half the width of the interval of the mean by what is known within the runs.
fn error(side: &[SeriesRuns]) -> f64 {
    let squares: f64 = runs(side).filter_map(|run| run.error).map(|error| error * error).sum();
    squares.sqrt() / runs(side).count() as f64
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
