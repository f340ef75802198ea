//! What a device does under a load that goes on: a burst, the rate that it keeps, and what looks like a cap.
//!
//! A volume with a bucket of credits gives a burst until the bucket is empty, and then what flows into it.
//! While requests come faster than that, what was answered beyond the later rate is what was in the bucket.
//!
//! A rate is steady by the test of SNIA's Solid State Storage Performance Test Specification, on five equal
//! parts: the greatest and the least differ by at most 20 % of the mean, and the line that fits them best
//! changes by at most 10 % of it from the first to the last.
//!
//! # Limitations and caveats
//! - A burst that lasts less than a tenth of the time, or more than nine tenths, or is not half as much again
//!   as the later rate, is not seen.
//! - Whether the bucket was full at first is not known: it holds at least what was in it.
//! - A rate that hardly varies may also be all that a device has.

use io_probe_core::stats::{Slice, median, slope, step_down_of_rate};

/// Parts of the test of steadiness, and its bounds as shares of the mean.
const PARTS: usize = 5;
const RANGE: f64 = 0.2;
const EXCURSION: f64 = 0.1;

/// What a limiter hands out varies by less than this share of the mean, over the parts.
const EVEN: f64 = 0.03;

/// A rate as near as this to a round number is taken for it: of any rates one in sixteen is. And rates as
/// near to each other are taken as equal.
const ROUND: f64 = 0.005;
const EQUAL: f64 = 0.05;

/// First digits of round numbers, as rates of volumes are sold.
const FIRST_DIGITS: [f64; 14] = [1.0, 1.2, 1.25, 1.5, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 6.4, 7.5, 8.0];

/// The rate that a device keeps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kept {
    /// The first of its slices.
    pub from: usize,
    /// Requests a second.
    pub per_s: f64,
    /// Is it steady? None for fewer than five slices.
    pub is_steady: Option<bool>,
    /// How far its parts lie apart, as a share of the mean. None for fewer than five slices.
    pub range: Option<f64>,
}

/// What came before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// Requests a second.
    pub per_s: f64,
    /// How long it lasted, in seconds.
    pub seconds: f64,
    /// Requests that were answered beyond the rate that is kept: what was in the bucket at first.
    pub bucket: f64,
    /// Seconds without any request in which as much flows in.
    pub refill_s: f64,
}

/// What a device did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sustained {
    /// At first, if there was a burst.
    pub burst: Option<Burst>,
    /// In the end.
    pub kept: Kept,
}

impl Sustained {
    /// From the requests that were answered in slices one behind the other; None without any.
    pub fn of(slices: &[Slice]) -> Option<Self> {
        // The slice in which a burst ends has some of both.
        let cut = step_down_of_rate(slices).filter(|cut| cut + 1 < slices.len());
        let kept = Kept::of(slices, cut.map_or(0, |cut| cut + 1))?;
        let burst = cut.and_then(|cut| Burst::before(&slices[..=cut], kept.per_s));
        Some(Self { burst, kept })
    }

    /// The rate a second that looks like that of a limiter: it is even, and either a burst came before it, or
    /// it is near a round number in this unit. None if nothing looks like one.
    pub fn cap(&self, unit: f64) -> Option<f64> {
        let Kept { per_s, range, is_steady, .. } = self.kept;
        let is_even = is_steady == Some(true) && range? <= EVEN;
        let round = rounded(per_s * unit);
        let is_cap = is_even && (self.burst.is_some() || round.is_some());
        is_cap.then(|| round.unwrap_or(per_s * unit))
    }
}

impl Kept {
    fn of(slices: &[Slice], from: usize) -> Option<Self> {
        let slices = &slices[from..];
        let per_s = rate(slices)?;
        let count = slices.len();
        let parts = (0..PARTS).map(|part| &slices[part * count / PARTS..(part + 1) * count / PARTS]);
        // A part without any answer has a rate of 0.
        let rates: Vec<f64> = parts.map(|part| rate(part).unwrap_or(0.0)).collect();
        let (range, is_steady) = if count < PARTS { (None, None) } else { steadiness(&rates) };
        Some(Self { from, per_s, is_steady, range })
    }
}

/// How far rates lie apart, as a share of their mean, and whether they are steady.
fn steadiness(parts: &[f64]) -> (Option<f64>, Option<bool>) {
    let mean = parts.iter().sum::<f64>() / parts.len() as f64;
    let most = parts.iter().copied().fold(f64::MIN, f64::max);
    let least = parts.iter().copied().fold(f64::MAX, f64::min);
    let excursion = slope(parts).abs() * (parts.len() - 1) as f64;
    let range = (most - least) / mean;
    (Some(range), Some(range <= RANGE && excursion <= EXCURSION * mean))
}

impl Burst {
    /// In these slices, with the one in which it ended, before a rate was kept. None if none was faster.
    fn before(slices: &[Slice], kept: f64) -> Option<Self> {
        let beyond: f64 = slices.iter().map(|slice| slice.work as f64 - kept * (slice.ns as f64 / 1e9)).sum();
        let per_s = 1e9 / median(&Slice::times(slices.split_last()?.1))?;
        (per_s > kept && beyond > 0.0).then(|| Self {
            per_s,
            seconds: beyond / (per_s - kept),
            bucket: beyond,
            refill_s: beyond / kept,
        })
    }
}

/// Requests a second; None without any time, and if there is none.
fn rate(slices: &[Slice]) -> Option<f64> {
    let all = Slice::sum(slices);
    all.ns_each().map(|ns| 1e9 / ns).filter(|rate| rate.is_finite())
}

/// The round number that a value is near to, if it is.
fn rounded(value: f64) -> Option<f64> {
    let power = 10f64.powf(value.log10().floor());
    let numbers = FIRST_DIGITS.iter().chain(&[10.0]).map(|digits| digits * power);
    let near = numbers.filter(|round| off(value, *round) <= ROUND);
    near.min_by(|a, b| off(value, *a).total_cmp(&off(value, *b)))
}

/// How far `a` is from `b`, as a share of that.
fn off(a: f64, b: f64) -> f64 {
    (a / b - 1.0).abs()
}

/// What a cap counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Requests.
    Requests,
    /// Bytes.
    Bytes,
    /// One of the two.
    Either,
}

/// What the caps of small and of large requests count, by the rates that were kept, in requests a second and
/// bytes each. Where both kinds come to as many bytes, or as many requests, one cap holds both.
pub fn what_counts(small: Option<(f64, u64)>, large: Option<(f64, u64)>) -> [Counts; 2] {
    let (Some(small), Some(large)) = (small, large) else { return [Counts::Either; 2] };
    let [of_small, of_large] = [small, large].map(|(per_s, each)| per_s * each as f64);
    if off(of_small, of_large) <= EQUAL {
        [Counts::Bytes; 2]
    } else if off(small.0, large.0) <= EQUAL {
        [Counts::Requests; 2]
    } else {
        [Counts::Requests, Counts::Bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    const MS: f64 = 1e-3;

    /// A bucket: what is in it, what flows in a second, and the most that is answered a second.
    struct Bucket {
        credits: f64,
        refill: f64,
        most: f64,
    }

    impl Bucket {
        /// Slices of this length, by a closed loop that always has something waiting.
        fn slices(mut self, count: usize, slice_s: f64, noise: f64) -> Vec<Slice> {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
            let mut left_over = 0.0;
            let slice = |_| {
                let ns = slice_s * (1.0 + noise * random.random_range(-1.0..1.0));
                let mut answered = left_over;
                for _ in 0..(ns / MS) as usize {
                    self.credits += self.refill * MS;
                    let now =
                        (self.most * (1.0 + noise * random.random_range(-1.0..1.0)) * MS).min(self.credits);
                    self.credits -= now;
                    answered += now;
                }
                left_over = answered.fract();
                Slice { ns: ((ns / MS).floor() * MS * 1e9) as u64, work: answered as u64 }
            };
            (0..count).map(slice).collect()
        }
    }

    fn near(found: f64, known: f64) -> bool {
        (found / known - 1.0).abs() < 0.05
    }

    #[test]
    fn buckets_are_recovered() {
        for (credits, refill, most, count, slice_s) in [
            (60_000.0, 300.0, 3_000.0, 60, 1.0),
            (54_000.0, 1_000.0, 4_000.0, 120, 0.5),
            (900.0, 160.0, 500.0, 100, 0.1),
        ] {
            for noise in [0.0, 0.02] {
                let slices = Bucket { credits, refill, most }.slices(count, slice_s, noise);
                let found = Sustained::of(&slices).expect("slices");
                let burst = found.burst.expect("a burst");
                assert!(near(burst.bucket, credits), "{credits}: {burst:?}");
                assert!(near(burst.per_s, most) && near(found.kept.per_s, refill), "{found:?}");
                assert!(near(burst.seconds, credits / (most - refill)), "{burst:?}");
                assert!(near(burst.refill_s, credits / refill), "{burst:?}");
                assert_eq!(found.kept.is_steady, Some(true));
                assert!(near(found.cap(1.0).expect("a cap"), refill), "{found:?}");
            }
        }
    }

    #[test]
    fn a_rate_that_is_even_and_round_looks_like_a_cap() {
        let slices = |rates: &[u64]| -> Vec<Slice> {
            rates.iter().map(|work| Slice { ns: 1_000_000_000, work: *work }).collect()
        };
        let cap = |rates: &[u64], unit| Sustained::of(&slices(rates)).and_then(|found| found.cap(unit));
        assert_eq!(cap(&[3010, 2998, 3002, 3001, 2999, 3000], 1.0), Some(3000.0));
        // 256 kB each.
        assert_eq!(cap(&[500, 501, 499, 500, 500], 0.25), Some(125.0));
        // Even, but not round: it may be all that the device has.
        assert_eq!(cap(&[3410, 3398, 3402, 3401, 3399], 1.0), None);
        // Round, but not even; too little; nothing.
        assert_eq!(cap(&[3100, 2900, 3050, 2950, 3000], 1.0), None);
        assert_eq!(cap(&[3000, 3000], 1.0), None);
        assert_eq!((cap(&[0, 0], 1.0), cap(&[], 1.0)), (None, None));
    }

    #[test]
    fn what_is_steady_neither_varies_much_nor_drifts() {
        let is_steady = |rates: &[f64]| steadiness(rates).1;
        assert_eq!(is_steady(&[100.0, 109.0, 91.0, 109.0, 100.0]), Some(true));
        assert_eq!(is_steady(&[100.0, 112.0, 89.0, 112.0, 100.0]), Some(false));
        assert_eq!(is_steady(&[94.0, 97.0, 100.0, 103.0, 106.0]), Some(false));
        assert_eq!(is_steady(&[96.0, 98.0, 100.0, 102.0, 104.0]), Some(true));
    }

    #[test]
    fn two_sizes_tell_what_a_cap_counts() {
        let (block, long) = (8 << 10, 256 << 10);
        assert_eq!(
            what_counts(Some((3000.0, block)), Some((500.0, long))),
            [Counts::Requests, Counts::Bytes]
        );
        assert_eq!(what_counts(Some((16_000.0, block)), Some((500.0, long))), [Counts::Bytes; 2]);
        assert_eq!(what_counts(Some((400.0, block)), Some((401.0, long))), [Counts::Requests; 2]);
        assert_eq!(what_counts(Some((400.0, block)), None), [Counts::Either; 2]);
    }
}
