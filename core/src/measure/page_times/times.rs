//! What reading a block takes, by the tier that serves it and the pattern in which it is asked for.
//!
//! The times are those of pages alone: what the executor does with a tuple stands in a row of its own, since
//! the planner charges it apart.

use serde::Deserialize;

/// What serves the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Shared buffers.
    Shared,
    /// The OS page cache.
    Os,
    /// The device.
    Device,
    /// No storage: the processor's work on a tuple.
    Cpu,
}

/// In which order blocks are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// One after the other, as a sequential scan reads.
    Sequential,
    /// In no order, one at a time, as an index scan on an uncorrelated column reads.
    Random,
    /// Ascending with gaps, as a bitmap heap scan reads.
    Sparse,
    /// No block: a tuple of a block that is in shared buffers.
    Tuple,
}

/// A time in microseconds, with its 95 % interval where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(from = "f64")]
pub struct Estimate {
    /// The time.
    pub us: f64,
    /// Lower and upper end.
    pub interval: Option<(f64, f64)>,
}

/// One measured time. Read from a row of `io_probe_page_cost` or `io_probe_page_cost_full`, it is without its
/// interval.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct MeasuredTime {
    /// What serves the block.
    pub tier: Tier,
    /// In which order blocks are asked for.
    pub pattern: Pattern,
    /// Sparse only: share of the blocks that are fetched, over 0 and up to 1.
    pub density: Option<f64>,
    /// Reads that may be in flight: 1 for random, `effective_io_concurrency` for sparse (0 is no prefetch).
    pub depth: Option<u32>,
    /// Per block fetched; for a tuple, of all tuples of a block. None if it could not be measured.
    #[serde(rename = "block_us")]
    pub time: Option<Estimate>,
    /// Microseconds per tuple; only of the tuple.
    pub tuple_us: Option<f64>,
}

/// A point of the density curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sparse {
    /// Share of the blocks that are fetched, over 0 and up to 1.
    pub density: f64,
    /// `effective_io_concurrency`.
    pub concurrency: u32,
    /// Time per block fetched.
    pub time: Estimate,
}

/// All times of a relation; None for what could not be measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PageTimes {
    /// A hit in shared buffers.
    pub shared: Option<Estimate>,
    /// From the OS page cache, one after the other.
    pub os_sequential: Option<Estimate>,
    /// From the OS page cache, in no order.
    pub os_random: Option<Estimate>,
    /// From the device, as a sequential scan of the server reads.
    pub device_sequential: Option<Estimate>,
    /// From the device, in no order, one at a time.
    pub device_random: Option<Estimate>,
    /// From the device, ascending with gaps.
    pub sparse: Vec<Sparse>,
    /// CPU of a tuple in a sequential scan, per tuple.
    pub tuple: Option<Estimate>,
}

impl PageTimes {
    /// The points of the curve that have intervals, over the densities that all of `needed` have, and without
    /// other concurrencies that lack an end of these: beyond its ends a line is taken for flat. Without
    /// prefetch both ends are known from other times.
    pub fn with_whole_lines(mut self, needed: &[u32]) -> Self {
        self.sparse.retain(|point| point.time.interval.is_some());
        let Some(widest) = span(&self.sparse, |_| true) else { return self };
        let needed = needed.iter().filter(|concurrency| **concurrency > 0);
        let (low, high) = needed
            .filter_map(|concurrency| span(&self.sparse, |other| other == *concurrency))
            .fold(widest, |all, line| (all.0.max(line.0), all.1.min(line.1)));
        self.sparse.retain(|point| (low..=high).contains(&point.density));
        let points = self.sparse.clone();
        let is_whole = |line: u32| span(&points, |other| other == line) == Some((low, high));
        self.sparse.retain(|point| point.concurrency == 0 || is_whole(point.concurrency));
        self
    }

    /// A copy of these times for each of them, with that one at the upper end of its interval.
    pub fn each_moved(&self) -> impl Iterator<Item = Self> {
        let mut all = self.clone();
        let count = all.each_mut().count();
        (0..count).map(move |index| {
            let mut moved = all.clone();
            if let Some(time) = moved.each_mut().nth(index) {
                time.us = time.interval.map_or(time.us, |(_, high)| high);
            }
            moved
        })
    }

    /// Each time that is known.
    pub fn each_mut(&mut self) -> impl Iterator<Item = &mut Estimate> {
        let single = [
            &mut self.shared,
            &mut self.os_sequential,
            &mut self.os_random,
            &mut self.device_sequential,
            &mut self.device_random,
            &mut self.tuple,
        ];
        single.into_iter().flatten().chain(self.sparse.iter_mut().map(|point| &mut point.time))
    }

    /// The times in `measured`; what could not be measured is left out.
    pub fn of(measured: impl IntoIterator<Item = MeasuredTime>) -> Self {
        let mut times = Self::default();
        for MeasuredTime { tier, pattern, density, depth, time, tuple_us } in measured {
            let Some(time) = time.filter(|time| time.us.is_finite() && time.us > 0.0) else { continue };
            let place = match (tier, pattern) {
                (Tier::Shared, _) => &mut times.shared,
                (Tier::Os, Pattern::Sequential) => &mut times.os_sequential,
                (Tier::Os, Pattern::Random) => &mut times.os_random,
                (Tier::Device, Pattern::Sequential) => &mut times.device_sequential,
                (Tier::Device, Pattern::Random) => &mut times.device_random,
                (Tier::Device, Pattern::Sparse) => {
                    let point = density.zip(depth);
                    times.sparse.extend(point.map(|(density, concurrency)| Sparse {
                        density,
                        concurrency,
                        time,
                    }));
                    continue;
                }
                (Tier::Cpu, Pattern::Tuple) => {
                    let tuples = tuple_us.filter(|one| *one > 0.0).map(|one| time.us / one);
                    times.tuple = tuples.map(|tuples| time.divided_by(tuples));
                    continue;
                }
                _ => continue,
            };
            *place = Some(time);
        }
        times
    }

    /// These times, and from `earlier` those that are lacking here. The curve is taken as a whole.
    pub fn or(self, earlier: &Self) -> Self {
        Self {
            shared: self.shared.or(earlier.shared),
            os_sequential: self.os_sequential.or(earlier.os_sequential),
            os_random: self.os_random.or(earlier.os_random),
            device_sequential: self.device_sequential.or(earlier.device_sequential),
            device_random: self.device_random.or(earlier.device_random),
            sparse: if self.sparse.is_empty() { earlier.sparse.clone() } else { self.sparse },
            tuple: self.tuple.or(earlier.tuple),
        }
    }
}

/// A time without an interval.
impl From<f64> for Estimate {
    fn from(us: f64) -> Self {
        Self { us, interval: None }
    }
}

impl Estimate {
    /// The time of one part, if `n` parts take as long as the whole.
    pub fn divided_by(self, n: f64) -> Self {
        Self { us: self.us / n, interval: self.interval.map(|(low, high)| (low / n, high / n)) }
    }
}

/// The least and the greatest density of the points at these concurrencies.
fn span(points: &[Sparse], is_one: impl Fn(u32) -> bool) -> Option<(f64, f64)> {
    let of_line = points.iter().filter(|point| is_one(point.concurrency));
    let densities = of_line.map(|point| (point.density, point.density));
    densities.reduce(|(low, high), (one, _)| (one.min(low), one.max(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(us: f64) -> PageTimes {
        let time = Some(Estimate::from(us));
        PageTimes {
            shared: time,
            os_sequential: time,
            os_random: time,
            device_sequential: time,
            device_random: time,
            sparse: time.map(|time| Sparse { density: 0.1, concurrency: 0, time }).into_iter().collect(),
            tuple: time,
        }
    }

    /// The points that are left of these, of which the third says whether it has an interval.
    fn left(points: &[(u32, f64, bool)], needed: &[u32]) -> Vec<(u32, f64)> {
        let sparse = points.iter().map(|&(concurrency, density, has_interval)| Sparse {
            density,
            concurrency,
            time: Estimate { us: 1.0, interval: has_interval.then_some((1.0, 1.0)) },
        });
        let times = PageTimes { sparse: sparse.collect(), ..PageTimes::default() };
        let left = times.with_whole_lines(needed).sparse;
        left.iter().map(|point| (point.concurrency, point.density)).collect()
    }

    #[test]
    fn a_point_that_is_lacking_takes_nothing_from_others() {
        let all = |concurrency| [0.03, 0.2, 1.0].map(|density| (concurrency, density, true));
        let three = [all(0), all(16), all(64)].concat();
        assert_eq!(left(&three, &[16]).len(), 9);
        let without = |place: usize| {
            let mut points = three.clone();
            points[place].2 = false;
            left(&points, &[16, 0])
        };
        // The curve goes on from the densities beside it; without prefetch also from a random read.
        assert_eq!([without(4).len(), without(7).len(), without(0).len()], [8, 8, 8]);
        // At an end of another concurrency that one goes, at an end of the one in force that density.
        assert!(without(6).iter().all(|(concurrency, _)| *concurrency != 64) && without(6).len() == 6);
        assert!(without(3).iter().all(|(_, density)| *density > 0.03) && without(3).len() == 6);
        assert_eq!(left(&[], &[16]), []);
    }

    #[test]
    fn earlier_times_fill_what_is_lacking() {
        assert_eq!(all(1.0).or(&all(2.0)), all(1.0));
        assert_eq!(PageTimes::default().or(&all(2.0)), all(2.0));
        assert_eq!(all(1.0).or(&PageTimes::default()), all(1.0));
    }
}
