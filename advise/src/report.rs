//! What the figures of a report mean.
//!
//! Only what the intervals carry is said: a promise is kept or broken where the whole interval is on one side
//! of it, and a curve is flat where no depth beyond is sure to be better.
//!
//! # Limitations and caveats
//! A limit of a volume looks like a device that has no more to give: [`flat`] can't tell the two apart. It
//! may also be the limit of a burst that has been used up.

use super::plateau::AS_GOOD;
use io_probe_core::stats::Interval;
use io_probe_surface::words;

/// Greatest depth from which on a curve may be flat.
const MOST_FLAT_FROM: u32 = 8;

/// Fewest greater depths that must bring no more where a curve is flat.
const LEAST_BEYOND: usize = 2;

/// How far the intervals of the greater depths may lie from their median where a curve is flat, and how far
/// the rates, however wide their intervals are. The depth where it begins may lie as far below as the first.
const FLAT: f64 = 1.1;
const ROUGHLY_FLAT: f64 = 1.25;

/// How far the depth where it begins may lie above: it comes after depths that leave some of a limit's
/// allowance, and lives on that.
const ON_ALLOWANCE: f64 = 1.3;

/// Does a figure keep what was promised, where more of it is better, or less? True if the whole interval is
/// at it, less 5 %, or better: what is held at a limit measures that limit. False if the whole interval is
/// worse than that; else None.
pub fn is_kept(measured: Interval, promised: f64, more_is_better: bool) -> Option<bool> {
    let (worst, best) =
        if more_is_better { (measured.low, measured.high) } else { (-measured.high, -measured.low) };
    let promised = if more_is_better { promised / AS_GOOD } else { -promised * AS_GOOD };
    if worst >= promised {
        Some(true)
    } else if best < promised {
        Some(false)
    } else {
        None
    }
}

/// Reads a second at a depth, with the 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DepthPoint {
    /// Requests in flight.
    pub depth: u32,
    /// Reads a second.
    pub iops: Interval,
}

/// If a curve is flat from a small depth on: that depth, with the median rate of the greater ones, which is a
/// limit. The points are in the order of their depths.
pub fn flat(curve: &[DepthPoint]) -> Option<DepthPoint> {
    (0..curve.len()).take_while(|from| curve[*from].depth <= MOST_FLAT_FROM).find_map(|from| {
        let beyond = &curve[from + 1..];
        let usual = middle(beyond).filter(|_| beyond.len() >= LEAST_BEYOND)?;
        let is_level = beyond.iter().all(|point| is_level(point.iops, usual.iops.value));
        let begins = (1.0 / FLAT..=ON_ALLOWANCE).contains(&(curve[from].iops.value / usual.iops.value));
        (is_level && begins).then_some(DepthPoint { depth: curve[from].depth, ..usual })
    })
}

fn is_level(iops: Interval, usual: f64) -> bool {
    let is_about = (1.0 / ROUGHLY_FLAT..=ROUGHLY_FLAT).contains(&(iops.value / usual));
    is_about && iops.high >= usual / FLAT && iops.low <= usual * FLAT
}

/// The point with the median rate, of two in the middle the lower one.
fn middle(points: &[DepthPoint]) -> Option<DepthPoint> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.iops.value.total_cmp(&b.iops.value));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

words! {
    /// How far the figures are those of the device alone.
    Trust {
        /// Others moved less than a tenth of the bytes.
        Good = "good",
        /// They moved less than a third.
        Fair = "fair",
        /// They moved more, or the hypervisor gave over a tenth of the processors' time to others.
        Poor = "poor",
    }
}

impl Trust {
    /// By bytes of one's own and of others, and by stolen time in percent. None without bytes of one's own,
    /// which others could have disturbed, unless the stolen time alone makes it poor.
    pub fn of((own, others): (u64, u64), steal_pct: Option<f64>) -> Option<Self> {
        if steal_pct.is_some_and(|steal| steal > 10.0) {
            return Some(Self::Poor);
        }
        if own == 0 {
            return None;
        }
        let share = others as f64 / (own + others) as f64;
        Some(match share {
            _ if share >= 1.0 / 3.0 => Self::Poor,
            _ if share >= 0.1 => Self::Fair,
            _ => Self::Good,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(value: f64) -> Interval {
        Interval { value, low: value - value / 10.0, high: value + value / 10.0 }
    }

    fn curve(iops: &[f64]) -> Vec<DepthPoint> {
        let point = |(place, iops): (usize, &f64)| DepthPoint { depth: 1 << place, iops: about(*iops) };
        iops.iter().enumerate().map(point).collect()
    }

    #[test]
    fn a_promise_is_judged_by_the_whole_interval() {
        for (promised, more, less) in [
            (80.0, Some(true), Some(false)),
            (90.0, Some(true), None),
            (94.0, Some(true), None),
            (95.0, None, None),
            (105.0, None, Some(true)),
            (115.0, None, Some(true)),
            (116.0, Some(false), Some(true)),
        ] {
            let judged = [true, false].map(|is_better| is_kept(about(100.0), promised, is_better));
            assert_eq!(judged, [more, less], "{promised}");
        }
        // A volume that is held at its limit.
        let limit = Interval { value: 2990.0, low: 2985.0, high: 2995.0 };
        assert_eq!(is_kept(limit, 3000.0, true), Some(true));
    }

    #[test]
    fn a_limit_makes_a_curve_flat() {
        let flat = |iops: &[f64]| flat(&curve(iops));
        let at = |depth: u32, iops: f64| Some(DepthPoint { depth, iops: about(iops) });
        // A provisioned volume: its limit is reached at once, and nothing goes beyond.
        assert_eq!(flat(&[2000.0, 3000.0, 3010.0, 2990.0, 3000.0]), at(2, 3000.0));
        assert_eq!(flat(&[3000.0, 3001.0, 3000.0]), at(1, 3000.0));
        // One more point says too little, and one that falls is no limit.
        assert_eq!(flat(&[2000.0, 3000.0, 3010.0]), None);
        assert_eq!(flat(&[3000.0, 3010.0, 2000.0, 1000.0]), None);
        // The depth that lives on a limit's allowance does no harm; nor does noise of a few percent.
        let capped = [1308.0, 2590.0, 3644.0, 3010.0, 2960.0, 3005.0, 3100.0];
        assert_eq!(flat(&capped), at(4, 3005.0));
        assert_eq!(flat(&[484.0, 1057.0, 2069.0, 3047.0, 2876.0, 2993.0]), at(8, 2876.0));
        assert_eq!(flat(&[1308.0, 2590.0, 4100.0, 3010.0, 2960.0]), None);
        // A flash drive, and one that was not driven to its end.
        assert_eq!(flat(&[12e3, 20e3, 40e3, 70e3, 99e3, 100e3, 101e3]), None);
        assert_eq!(flat(&[12e3, 24e3, 48e3]), None);
        assert_eq!(flat(&[12e3]), None);
        assert_eq!(flat(&[]), None);
    }

    #[test]
    fn trust_depends_on_others() {
        let by = |own, others, steal| Trust::of((own, others), Some(steal));
        assert_eq!(by(1000, 99, 0.0), Some(Trust::Good));
        assert_eq!(by(1000, 200, 0.0), Some(Trust::Fair));
        assert_eq!(by(1000, 600, 0.0), Some(Trust::Poor));
        assert_eq!(by(1000, 0, 11.0), Some(Trust::Poor));
        assert_eq!(Trust::of((0, 0), None), None);
        assert_eq!(Trust::of((0, 1 << 30), Some(0.0)), None);
        assert_eq!(Trust::of((0, 0), Some(0.0)), None);
        assert_eq!(Trust::of((0, 0), Some(11.0)), Some(Trust::Poor));
    }
}
