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
    let n = group.len();
    let centre = group.iter().sum::<f64>() / n as f64;
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
