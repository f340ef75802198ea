//! Whether figures of two runs, or of two groups of runs, differ by more than such runs do by themselves.
//!
//! Runs of a probe on an idle disk differ by 6 to 8 % (coefficient of variation), and far more than the
//! interval within a run says: what differs between runs is where the blocks lie, what the host does, how
//! warm the device is. So "the intervals do not overlap" calls 26 to 46 % of equal pairs different. Here two
//! sides differ only if |ln(b/a)| exceeds both the error within the runs and what earlier runs of the same
//! kind say of the noise between runs: with s the standard deviation of their ln and ν its degrees of
//! freedom, t(0.975, ν) · s · √(1/n_a + 1/n_b), which for one run on each side is the usual √2. Of sides that
//! do not differ, 3 to 7 % are called different by that.
//!
//! # Limitations and caveats
//! - It takes [`MIN_HISTORY`] earlier runs; with fewer, the verdict is [`Verdict::Unknown`].
//! - Runs are taken as independent, and what they are noisy by as a factor. Runs in quick succession are more
//!   alike than those a night apart: a history of the former is a poor judge of the latter.
//! - Figures are compared one by one. Of a hundred that have not changed, a few are called different.
//! - A difference of less than [`RESOLUTION`] is never called one: percentiles come from histograms with two
//!   digits.
//!
//! Source: Student (1908), "The probable error of a mean"; the pooled two-sample test in any textbook of
//! statistics.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Earlier runs that it takes to know the noise.
pub const MIN_HISTORY: usize = 10;

/// Differences of ln below this are none.
pub const RESOLUTION: f64 = 0.01;

/// Two levels in the history are at least so far apart in ln, by three quarters. What is less may be the
/// usual unrest of a shared disk: with 0.4 a fifth of simulated pairs was called different, with this 5 %.
const STEP: f64 = 0.55;

/// They are so many standard errors apart, too.
const CLEAR: f64 = 6.0;

/// Each of them has at least so many runs: one alone is an outlier.
const LEAST_OF_LEVEL: usize = 2;

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct Figure {
    /// In whatever unit; only those over zero can be compared.
    pub value: f64,
    /// Half the width of its 95 % interval within the run, over its value; None if it has none.
    pub error: Option<f64>,
}

/// What is said of the second side against the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It differs for the better.
    Better,
    /// It differs for the worse.
    Worse,
    /// It does not differ by more than the noise.
    Same,
    /// Nothing can be said, see [`Comparison::note`].
    Unknown,
}

/// How figures differ from run to run where nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunNoise {
    /// Standard deviation of ln.
    deviation: f64,
    /// Its degrees of freedom.
    degrees: f64,
    /// Runs that it is taken from.
    runs: usize,
}

impl RunNoise {
    /// From values of groups of runs, each around a mean of its own. Values that are not over zero are left
    /// out, and so are groups of one.
    pub fn of_groups(groups: &[Vec<f64>]) -> Self {
        Self::pooled(groups.iter().map(|group| logarithms(group.iter().copied())))
    }

    /// The same where a group, in the order of time, may have been at several levels, as a device is that was
    /// throttled for a while: each has a mean of its own, if the step to it is large and clear.
    pub fn of_levels(groups: &[Vec<f64>]) -> Self {
        let mut levels = Vec::new();
        for group in groups {
            split(&logarithms(group.iter().copied()), &mut levels);
        }
        Self::pooled(levels.into_iter())
    }

    fn pooled(groups: impl Iterator<Item = Vec<f64>>) -> Self {
        let (mut squares, mut degrees, mut runs) = (0.0, 0.0, 0);
        for group in groups.filter(|group| group.len() > 1) {
            squares += squares_around_mean(&group);
            degrees += group.len() as f64 - 1.0;
            runs += group.len();
        }
        let deviation = if degrees > 0.0 { (squares / degrees).sqrt() } else { f64::INFINITY };
        Self { deviation, degrees, runs }
    }

    /// Both taken together.
    pub fn and(self, other: Self) -> Self {
        let runs = self.runs + other.runs;
        if self.degrees <= 0.0 || other.degrees <= 0.0 {
            return Self { runs, ..if self.degrees > 0.0 { self } else { other } };
        }
        let squares = |noise: &Self| noise.deviation * noise.deviation * noise.degrees;
        let degrees = self.degrees + other.degrees;
        Self { deviation: ((squares(&self) + squares(&other)) / degrees).sqrt(), degrees, runs }
    }

    /// What a difference between means of so many runs must exceed; None if too little is known.
    fn bound(&self, runs_a: usize, runs_b: usize) -> Option<f64> {
        if self.runs < MIN_HISTORY {
            return None;
        }
        let t = StudentsT::new(0.0, 1.0, self.degrees).ok()?.inverse_cdf(0.975);
        Some(t * self.deviation * (1.0 / runs_a as f64 + 1.0 / runs_b as f64).sqrt())
    }
}

/// Two sides beside each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Geometric mean of the first side; None without a value over zero.
    pub a: Option<f64>,
    /// The same of the second.
    pub b: Option<f64>,
    /// The second over the first.
    pub ratio: Option<f64>,
    /// What is said of the second.
    pub verdict: Verdict,
    /// The larger of the two must exceed the smaller by this to be different: 0.2 is by a fifth.
    pub noise: Option<f64>,
    /// Earlier runs that this is from.
    pub runs: usize,
    /// Why the verdict is [`Verdict::Unknown`].
    pub note: Option<&'static str>,
}

/// Compares the second side with the first.
pub fn compare(a: &[Figure], b: &[Figure], noise: &RunNoise, more_is_better: bool) -> Comparison {
    let (of_a, of_b) = (Side::of(a), Side::of(b));
    let mut comparison = Comparison {
        a: of_a.map(|side| side.mean.exp()),
        b: of_b.map(|side| side.mean.exp()),
        ratio: None,
        verdict: Verdict::Unknown,
        noise: None,
        runs: noise.runs,
        note: None,
    };
    let (of_a, of_b) = match (of_a, of_b) {
        (Some(of_a), Some(of_b)) => (of_a, of_b),
        (None, Some(_)) => return Comparison { note: Some("no figure in a"), ..comparison },
        (Some(_), None) => return Comparison { note: Some("no figure in b"), ..comparison },
        (None, None) => return Comparison { note: Some("no figure in either"), ..comparison },
    };
    let difference = of_b.mean - of_a.mean;
    comparison.ratio = Some(difference.exp());
    let Some(between_runs) = noise.bound(of_a.runs, of_b.runs) else {
        return Comparison { note: Some("no history"), ..comparison };
    };
    let bound = between_runs.max(of_a.error.hypot(of_b.error)).max(RESOLUTION);
    comparison.noise = Some(bound.exp_m1());
    comparison.verdict = match difference {
        d if d.abs() <= bound => Verdict::Same,
        d if (d > 0.0) == more_is_better => Verdict::Better,
        _ => Verdict::Worse,
    };
    comparison
}

/// One of the two.
#[derive(Debug, Clone, Copy)]
struct Side {
    /// Of ln.
    mean: f64,
    runs: usize,
    /// Half the width of its interval by what is known within the runs.
    error: f64,
}

impl Side {
    fn of(figures: &[Figure]) -> Option<Self> {
        let logarithms = logarithms(figures.iter().map(|figure| figure.value));
        let runs = logarithms.len();
        if runs == 0 {
            return None;
        }
        let errors: f64 = figures.iter().filter_map(|figure| figure.error).map(|error| error * error).sum();
        Some(Self { mean: mean(&logarithms), runs, error: errors.sqrt() / runs as f64 })
    }
}

fn logarithms(values: impl Iterator<Item = f64>) -> Vec<f64> {
    values.filter(|value| *value > 0.0 && value.is_finite()).map(f64::ln).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares_around_mean(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean) * (value - mean)).sum()
}

/// Takes the stretch of a group that lies most apart from its rest, if it clearly does, and looks at both
/// parts again (circular binary segmentation: Olshen and others, 2004).
fn split(group: &[f64], levels: &mut Vec<Vec<f64>>) {
    match level(group) {
        Some((begin, end)) => {
            split(&group[begin..end], levels);
            split(&[&group[..begin], &group[end..]].concat(), levels);
        }
        None => levels.push(group.to_vec()),
    }
}

fn level(group: &[f64]) -> Option<(usize, usize)> {
    let n = group.len();
    let centre = mean(group);
    // Sums of the values before each place, and of their squares.
    let (mut sums, mut sum, mut squares) = (vec![0.0], 0.0, 0.0);
    for value in group.iter().map(|value| value - centre) {
        (sum, squares) = (sum + value, squares + value * value);
        sums.push(sum);
    }
    let apart = |begin: usize, end: usize| {
        let (inside, outside) = ((end - begin) as f64, (n - end + begin) as f64);
        let of_inside = (sums[end] - sums[begin]) / inside;
        let of_outside = (sum - sums[end] + sums[begin]) / outside;
        let rest = squares - inside * of_inside * of_inside - outside * of_outside * of_outside;
        let error = (rest.max(0.0) / (n as f64 - 2.0) * (1.0 / inside + 1.0 / outside)).sqrt();
        let step = (of_inside - of_outside).abs();
        if step >= STEP { step / error } else { 0.0 }
    };
    let stretches = (0..n).flat_map(|begin| (begin + LEAST_OF_LEVEL..=n).map(move |end| (begin, end)));
    stretches
        .filter(|(begin, end)| n - end + begin >= LEAST_OF_LEVEL)
        .map(|(begin, end)| (apart(begin, end), (begin, end)))
        .max_by(|x, y| x.0.total_cmp(&y.0))
        .filter(|(errors, _)| *errors > CLEAR)
        .map(|(_, stretch)| stretch)
}

#[cfg(test)]
mod tests;
