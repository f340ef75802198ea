//! What a block takes in ascending reads with gaps, by density and `effective_io_concurrency`; and what
//! follows from it.
//!
//! A bitmap heap scan reads so. Between measured densities the logarithm of the time is interpolated in that
//! of the density, since without prefetch the kernel's readahead makes the time fall about as 1 ÷ density;
//! between measured concurrencies, in the logarithm of 1 + concurrency.
//!
//! Outside of what was measured the curve is flat, but for two ends that are known: without prefetch (0), and
//! with but one request in flight (1), the time goes to that of random reads as the density falls to
//! [`SPARSE`]; and without prefetch every block read is a sequential scan.
//!
//! # Limitations and caveats
//! * 0 and 1 differ by much more than 1 and 2 do: at 1 the server's own advice undoes the kernel's readahead
//!   (seen on ext4). A curve measured at 0 and 16 alone says too little for 1.
//! * Gaps are taken as even. Clustered blocks are read as fast as their local density.

use crate::advise::plateau::{Candidates, Plateau};
use crate::measure::page_times::{Estimate, PageTimes};

/// The density at and below which a read with gaps is a random one.
pub const SPARSE: f64 = 1e-3;

/// Below this density no crossing is looked for: a random read would have to take a million sequential ones.
const LEAST: f64 = 1e-6;

/// The times of one concurrency, by ascending density.
#[derive(Debug, Clone, PartialEq)]
struct TimesByDensity {
    concurrency: u32,
    points: Vec<(f64, Estimate)>,
}

/// Time per block fetched, over density and concurrency.
#[derive(Debug, Clone, PartialEq)]
pub struct GapCurve {
    lines: Vec<TimesByDensity>,
    random: Option<f64>,
    sequential: Option<f64>,
}

/// A concurrency to set, and what is as good.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConcurrencyChoice {
    /// The value, and from and to where others are as good.
    pub plateau: Plateau,
    /// How much longer a block takes at that value than at each density's own best, as a geometric mean: 1 is
    /// no longer.
    pub score: f64,
    /// The same at the value in force, interpolated where it was not measured; None if it is not known.
    pub score_in_force: Option<f64>,
}

/// Which densities a setting is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// All: bitmap scans come in every density (`effective_io_concurrency`).
    Queries,
    /// The two least: ANALYZE and recovery read here and there (`maintenance_io_concurrency`).
    Maintenance,
}

impl GapCurve {
    /// The curve of the measured times; None if no read with gaps was measured.
    pub fn of(times: &PageTimes) -> Option<Self> {
        let mut lines: Vec<TimesByDensity> = Vec::new();
        for point in &times.sparse {
            let usable = point.density > 0.0 && point.density <= 1.0;
            if !usable || !positive(point.time.us) {
                continue;
            }
            let found = lines.iter().position(|line| line.concurrency == point.concurrency);
            let index = found.unwrap_or_else(|| {
                lines.push(TimesByDensity { concurrency: point.concurrency, points: Vec::new() });
                lines.len() - 1
            });
            lines[index].points.push((point.density, point.time));
        }
        lines.sort_by_key(|line| line.concurrency);
        for line in &mut lines {
            line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
            // Measured twice: the first counts.
            line.points.dedup_by_key(|point| point.0);
        }
        let known = |time: Option<Estimate>| time.map(|time| time.us).filter(|us| positive(*us));
        (!lines.is_empty()).then(|| Self {
            lines,
            random: known(times.device_random),
            sequential: known(times.device_sequential),
        })
    }

    /// Was this concurrency measured?
    pub fn has(&self, concurrency: u32) -> bool {
        self.concurrencies().any(|measured| measured == concurrency)
    }

    /// The concurrencies that were measured, at each density at which any was.
    pub fn concurrencies(&self) -> impl Iterator<Item = u32> {
        self.lines.iter().map(|line| line.concurrency)
    }

    /// Is the interval of each point known?
    pub fn has_intervals(&self) -> bool {
        self.lines.iter().flat_map(|line| &line.points).all(|(_, time)| time.interval.is_some())
    }

    /// Microseconds per block fetched, at a density over 0 and up to 1; what is beyond counts as either end.
    pub fn at(&self, density: f64, concurrency: u32) -> f64 {
        let density = density.clamp(LEAST, 1.0);
        let place = |concurrency: u32| f64::from(concurrency).ln_1p();
        let over: Vec<(f64, f64)> =
            self.lines.iter().map(|line| (place(line.concurrency), self.on(line, density).ln())).collect();
        interpolated(&over, place(concurrency)).exp()
    }

    /// The time on one line.
    fn on(&self, line: &TimesByDensity, density: f64) -> f64 {
        let mut points: Vec<(f64, f64)> =
            line.points.iter().map(|(density, time)| (density.ln(), time.us.ln())).collect();
        let least = line.points.first().map_or(1.0, |point| point.0);
        let greatest = line.points.last().map_or(0.0, |point| point.0);
        if let Some(random) = self.random.filter(|_| line.concurrency <= 1 && least > SPARSE) {
            points.insert(0, (SPARSE.ln(), random.ln()));
        }
        if let Some(sequential) = self.sequential.filter(|_| line.concurrency == 0 && greatest < 1.0) {
            points.push((0.0, sequential.ln()));
        }
        interpolated(&points, density.ln()).exp()
    }

    /// The share f of blocks whose reads with gaps take as long as a sequential scan: f·t(f) = t_seq; of
    /// several such, any. None if that was not measured, or one of both is always cheaper.
    pub fn crossing(&self, concurrency: u32) -> Option<f64> {
        let sequential = self.sequential?;
        let over = |density: f64| density * self.at(density, concurrency) / sequential - 1.0;
        // Without prefetch both meet at the last block, but for rounding: bisection then ends there.
        if over(1.0) < -1e-9 || over(LEAST) >= 0.0 {
            return None;
        }
        let (mut low, mut high) = (LEAST.ln(), 0.0);
        for _ in 0..80 {
            let middle = f64::midpoint(low, high);
            if over(middle.exp()) < 0.0 { low = middle } else { high = middle }
        }
        Some(f64::midpoint(low, high).exp())
    }

    /// The measured densities that count.
    fn densities(&self, what_for: Use) -> Vec<f64> {
        let mut all: Vec<f64> =
            self.lines.iter().flat_map(|line| line.points.iter().map(|point| point.0)).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        if what_for == Use::Maintenance {
            all.truncate(2);
        }
        all
    }

    /// The logarithm of the time at a concurrency, as a mean over densities.
    fn cost(&self, densities: &[f64], concurrency: u32) -> f64 {
        densities.iter().map(|&density| self.at(density, concurrency).ln()).sum::<f64>()
            / densities.len() as f64
    }

    /// The same at each density's own best concurrency.
    fn least(&self, densities: &[f64]) -> f64 {
        let least =
            |density| self.lines.iter().map(|line| self.on(line, density)).fold(f64::INFINITY, f64::min).ln();
        densities.iter().map(|&density| least(density)).sum::<f64>() / densities.len() as f64
    }
}

/// The best of the measured concurrencies, if the one in force is not as good.
pub fn choose_concurrency(
    times: &PageTimes,
    what_for: Use,
    in_force: Option<u32>,
) -> Option<ConcurrencyChoice> {
    let curve = GapCurve::of(times)?;
    let densities = curve.densities(what_for);
    let mut values: Vec<u32> = curve.concurrencies().chain(in_force).collect();
    values.sort_unstable();
    values.dedup();
    let costs =
        |curve: GapCurve| values.iter().map(|value| curve.cost(&densities, *value)).collect::<Vec<f64>>();
    let moved = times.each_moved().filter_map(|times| GapCurve::of(&times)).map(costs);
    let score = |value: u32| (curve.cost(&densities, value) - curve.least(&densities)).exp();
    let ladder: Vec<u64> = values.iter().map(|value| u64::from(*value)).collect();
    let plateau = Candidates::of(costs(curve.clone()), moved).plateau(&ladder, in_force.map(u64::from))?;
    Some(ConcurrencyChoice {
        plateau,
        score: score(plateau.value as u32),
        score_in_force: in_force.map(score),
    })
}

/// The ratio R/S of the page costs at which the planner changes from a bitmap scan to a sequential one at
/// this share f of the blocks, whose page cost is R − (R − S)·√f: R = S·(1/f + 1/√f + 1). Pages alone.
pub fn cost_at(crossing: f64) -> f64 {
    1.0 / crossing + 1.0 / crossing.sqrt() + 1.0
}

fn positive(us: f64) -> bool {
    us.is_finite() && us > 0.0
}

/// The y of ascending points (x, y) at an x, flat outside. There is at least one point.
fn interpolated(points: &[(f64, f64)], x: f64) -> f64 {
    let above = points.partition_point(|point| point.0 <= x);
    match (above.checked_sub(1).map(|below| points[below]), points.get(above)) {
        (Some(low), Some(high)) => low.1 + (high.1 - low.1) * (x - low.0) / (high.0 - low.0),
        (Some(end), None) => end.1,
        (None, Some(end)) => end.1,
        (None, None) => f64::NAN,
    }
}

#[cfg(test)]
mod tests;
