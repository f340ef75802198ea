//! Splits a history at different levels, as of a device that was throttled for a while: each level becomes a
//! group of its own. Else such a step would hide itself. Only steps count that are large and clear, so that
//! noise stays noise.
//!
//! Source: circular binary segmentation, Olshen and others (2004).

use super::noise::Point;

/// Least distance of two levels in ln: three quarters. What is less may be the usual unrest of a shared disk:
/// bursts of load make a few runs in a row slower by 1.6.
const STEP: f64 = 0.55;

/// Least distance of two levels in standard errors.
const CLEAR: f64 = 6.0;

/// Fewest runs of a level: one alone is an outlier.
const LEAST_OF_LEVEL: usize = 2;

/// Takes the stretch of a group that lies most apart from its rest, if it clearly does, and looks at both
/// parts again. The runs of the group are in the order of time.
pub(super) fn split(group: &[Point], levels: &mut Vec<Vec<Point>>) {
    let values: Vec<f64> = group.iter().map(|point| point.ln).collect();
    match level(&values) {
        Some((begin, end)) => {
            split(&group[begin..end], levels);
            split(&[&group[..begin], &group[end..]].concat(), levels);
        }
        None => levels.push(group.to_vec()),
    }
}

fn level(group: &[f64]) -> Option<(usize, usize)> {
    let (n, sums) = (group.len(), Sums::of(group));
    let stretches = (0..n).flat_map(|begin| (begin + LEAST_OF_LEVEL..=n).map(move |end| (begin, end)));
    stretches
        .filter(|(begin, end)| n - end + begin >= LEAST_OF_LEVEL)
        .map(|(begin, end)| (sums.apart(begin, end), (begin, end)))
        .max_by(|x, y| x.0.total_cmp(&y.0))
        .filter(|(errors, _)| *errors > CLEAR)
        .map(|(_, stretch)| stretch)
}

/// Sums of how far the values of a group are from their mean.
struct Sums {
    /// Of those before each place.
    before: Vec<f64>,
    all: f64,
    squares: f64,
}

impl Sums {
    fn of(group: &[f64]) -> Self {
        let centre = group.iter().sum::<f64>() / group.len() as f64;
        let (mut before, mut all, mut squares) = (vec![0.0], 0.0, 0.0);
        for value in group.iter().map(|value| value - centre) {
            (all, squares) = (all + value, squares + value * value);
            before.push(all);
        }
        Self { before, all, squares }
    }

    /// How many standard errors a stretch is apart from all others; 0 if that is less than a step.
    fn apart(&self, begin: usize, end: usize) -> f64 {
        let n = self.before.len() - 1;
        let (inside, outside) = ((end - begin) as f64, (n - end + begin) as f64);
        let of_inside = (self.before[end] - self.before[begin]) / inside;
        let of_outside = (self.all - self.before[end] + self.before[begin]) / outside;
        let rest = self.squares - inside * of_inside * of_inside - outside * of_outside * of_outside;
        let error = (rest.max(0.0) / (n as f64 - 2.0) * (1.0 / inside + 1.0 / outside)).sqrt();
        let step = (of_inside - of_outside).abs();
        if step >= STEP { step / error } else { 0.0 }
    }
}
