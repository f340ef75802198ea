//! The order of a random run: a seeded permutation of 0 … n − 1, computed element by element.
//!
//! Sampling without replacement needs a shuffled list, which for a relation of 1 TB is a gigabyte. A
//! Feistel network over a rectangle of just over n cells is a permutation without any list: an index is
//! split into two digits, each round shifts one of them by a hash of the other, and what ends up past n is
//! sent through again (cycle walking). Since the rectangle has at most √n + 1 cells more than n, that
//! hardly ever happens.
//!
//! The order is a function of the seed and n alone: 64-bit integer arithmetic, the same on every machine
//! and in every version of the extension. It scatters; it does not keep secrets.
//!
//! Sources: J. Black and P. Rogaway, "Ciphers with Arbitrary Finite Domains" (2002), for the rectangle and
//! the walk; the finalizer of SplitMix64 as the hash.

use rand::{RngCore, SeedableRng};
use rand_xoshiro::SplitMix64;

/// Each digit is shifted three times; the tests below see no pattern left.
const ROUNDS: usize = 6;

/// A permutation of 0 … `len` − 1.
#[derive(Debug, Clone)]
pub struct Permutation {
    len: u64,
    /// Values of the two digits: `high` × `low` is at least `len`.
    high: u64,
    low: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of 0 … `len` − 1 that belongs to `seed`.
    pub fn new(len: u64, seed: u64) -> Self {
        let low = len.isqrt().max(1);
        let mut keys = SplitMix64::seed_from_u64(seed);
        Self { len, high: len.div_ceil(low), low, keys: std::array::from_fn(|_| keys.next_u64()) }
    }

    /// How many elements there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element at `index`.
    ///
    /// # Panics
    /// When `index` is not below [`Permutation::len`]: a bug of the caller.
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        assert!(index < self.len, "index {index} of {}", self.len);
        let mut element = self.shift(index);
        // It came from below `len`, and a permutation's cycle leads back there.
        while element >= self.len {
            element = self.shift(element);
        }
        element
    }

    #[inline]
    fn shift(&self, cell: u64) -> u64 {
        let (mut high, mut low) = (cell / self.low, cell % self.low);
        for keys in self.keys.chunks_exact(2) {
            high = wrapped(high + below(hash(low ^ keys[0]), self.high), self.high);
            low = wrapped(low + below(hash(high ^ keys[1]), self.low), self.low);
        }
        high * self.low + low
    }
}

/// Do two stretches of an order of `len` elements, which begins again at its end, have an element in common?
/// Each is the index of its first element and how many it has.
pub fn overlap(a: (u64, u64), b: (u64, u64), len: u64) -> bool {
    let ahead = |from: u64, to: u64| (to + len - from) % len.max(1);
    a.1 > 0 && b.1 > 0 && (ahead(a.0, b.0) < a.1 || ahead(b.0, a.0) < b.1)
}

/// Each bit of the result depends on each bit of `x`.
#[inline]
fn hash(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The sum of two numbers below `bound`, modulo `bound`.
#[inline]
fn wrapped(sum: u64, bound: u64) -> u64 {
    if sum < bound { sum } else { sum - bound }
}

/// A 64-bit hash as a number below `bound`.
#[inline]
fn below(hash: u64, bound: u64) -> u64 {
    ((u128::from(hash) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use statrs::distribution::{ChiSquared, ContinuousCDF};

    proptest! {
        #[test]
        fn each_element_occurs_once(len in 1u64..5000, seed: u64) {
            let order = Permutation::new(len, seed);
            let mut seen = vec![false; len as usize];
            for index in 0..len {
                let element = order.at(index);
                prop_assert!(element < len);
                prop_assert!(!std::mem::replace(&mut seen[element as usize], true), "{element} twice");
            }
        }
    }

    #[test]
    fn stretches_overlap_if_they_share_an_element() {
        const LEN: u64 = 6;
        let stretches = || (0..LEN).flat_map(|first| (0..=LEN).map(move |count| (first, count)));
        let elements = |(first, count): (u64, u64)| (first..first + count).map(|index| index % LEN);
        for a in stretches() {
            for b in stretches() {
                let shared = elements(a).any(|element| elements(b).any(|other| other == element));
                assert_eq!(overlap(a, b, LEN), shared, "{a:?} {b:?}");
            }
        }
        assert!(!overlap((0, 0), (0, 0), 0));
    }

    #[test]
    fn known_answers_bind_every_machine_and_version() {
        let first = |len, seed| -> Vec<u64> {
            let order = Permutation::new(len, seed);
            (0..len.min(6)).map(|index| order.at(index)).collect()
        };
        assert_eq!(first(94_393, 1), KNOWN_94393);
        assert_eq!(first(1 << 27, 42), KNOWN_1_TIB);
        assert_eq!(first(u64::from(u32::MAX) - 1, u64::MAX), KNOWN_LARGEST);
    }

    const KNOWN_94393: [u64; 6] = [40197, 81631, 27570, 45531, 11703, 3797];
    const KNOWN_1_TIB: [u64; 6] = [2793621, 45616856, 46838227, 62209883, 64920553, 35071695];
    const KNOWN_LARGEST: [u64; 6] = [996472350, 3213535064, 2660924990, 928042192, 1503207892, 3640874071];

    /// The probability of counts at least as uneven, if all cells are equally likely.
    fn chance(counts: &[u64]) -> f64 {
        let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        assert!(expected >= 20.0);
        let statistic: f64 = counts.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum();
        let distribution = ChiSquared::new((counts.len() - 1) as f64).expect("degrees of freedom");
        1.0 - distribution.cdf(statistic)
    }

    /// Neither uneven, nor evener than chance: both are signs of a pattern.
    fn assert_uniform(counts: &[u64], what: &str) {
        let chance = chance(counts);
        assert!((1e-4..=1.0 - 1e-4).contains(&chance), "{what}: {chance}");
    }

    #[test]
    fn every_place_gets_every_element_alike() {
        for len in [2, 3, 7, 24, 100] {
            for place in [0, 1, len - 1] {
                let mut counts = vec![0; len as usize];
                for seed in 0..len * 400 {
                    counts[Permutation::new(len, seed).at(place) as usize] += 1;
                }
                assert_uniform(&counts, &format!("place {place} of {len}"));
            }
        }
    }

    #[test]
    fn a_small_sample_is_spread_evenly() {
        let (len, bins) = (1u64 << 27, 1000);
        for seed in 0..5 {
            let order = Permutation::new(len, seed);
            let mut counts = vec![0; bins];
            for index in 0..100_000 {
                counts[(order.at(index) * bins as u64 / len) as usize] += 1;
            }
            assert_uniform(&counts, &format!("seed {seed}"));
        }
    }

    #[test]
    fn neighbours_have_nothing_to_do_with_each_other() {
        let (len, bins) = (94_393u64, 20);
        let mut counts = vec![0; bins * bins];
        for seed in 0..3 {
            let order = Permutation::new(len, seed);
            let bin = |index| (order.at(index) * bins as u64 / len) as usize;
            for index in 0..20_000 {
                counts[bin(index) * bins + bin(index + 1)] += 1;
            }
        }
        assert_uniform(&counts, "pairs");
    }

    #[test]
    fn seeds_differ() {
        let of = |seed| -> Vec<u64> { (0..100).map(|i| Permutation::new(1 << 20, seed).at(i)).collect() };
        assert_ne!(of(1), of(2));
        assert_eq!(of(1), of(1));
    }

    #[test]
    #[should_panic(expected = "index 5 of 5")]
    fn an_index_past_the_end_is_a_bug() {
        Permutation::new(5, 0).at(5);
    }
}
