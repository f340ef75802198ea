//! A synthetic disk: random and sequential slices in turn, of given times and noise, measured as a probe
//! measures and made into a ratio.

use super::{CacheMix, Cost};
use crate::measure::page_times::Estimate;
use crate::stats::{self, Slice};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Nanoseconds per block.
const RANDOM: f64 = 68_000.0;
const SEQUENTIAL: f64 = 5_500.0;

/// Noise of standard deviation 1 with this lag-1 autocorrelation.
pub(super) struct Noise {
    rng: Xoshiro256PlusPlus,
    ar: f64,
    state: f64,
}

impl Noise {
    pub(super) fn new(seed: u64, ar: f64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let state = StandardNormal.sample(&mut rng);
        Self { rng, ar, state }
    }

    pub(super) fn next(&mut self) -> f64 {
        let shock: f64 = StandardNormal.sample(&mut self.rng);
        self.state = self.ar * self.state + (1.0 - self.ar * self.ar).sqrt() * shock;
        self.state
    }
}

/// One run: so many slices of each kind. What each kind's noise is, is up to the caller.
fn run(slices: usize, mut noise: impl FnMut(bool) -> f64) -> (Vec<Slice>, Vec<Slice>) {
    let mut slice = |random: bool, us: f64, blocks: u64| {
        let deviation = if random { 0.06 } else { 0.04 };
        Slice { ns: (us * blocks as f64 * (1.0 + deviation * noise(random))) as u64, work: blocks }
    };
    (0..slices).map(|_| (slice(true, RANDOM, 400), slice(false, SEQUENTIAL, 5000))).unzip()
}

fn estimate(slices: &[Slice]) -> Estimate {
    let interval = stats::of_ratio(slices).expect("enough slices");
    Estimate { us: interval.value / 1e3, interval: Some((interval.low / 1e3, interval.high / 1e3)) }
}

/// Of 1,000 runs: the share whose interval holds the truth, and the greatest error of the ratio.
fn judge(slices: usize, mut noise: impl FnMut(bool) -> f64) -> (f64, f64) {
    let truth = RANDOM / SEQUENTIAL;
    let (mut held, mut worst) = (0, 0.0_f64);
    for _ in 0..1000 {
        let (random, sequential) = run(slices, &mut noise);
        let Cost { value, interval } =
            CacheMix::raw(estimate(&random), estimate(&sequential)).ratio().expect("a ratio");
        let (low, high) = interval.expect("an interval");
        held += usize::from(low <= truth && truth <= high);
        worst = worst.max((value / truth - 1.0).abs());
    }
    (held as f64 / 1000.0, worst)
}

/// Random and sequential slices have noise of their own.
fn own(ar: f64) -> impl FnMut(bool) -> f64 {
    let (mut random, mut sequential) = (Noise::new(1, ar), Noise::new(2, ar));
    move |is_random| if is_random { random.next() } else { sequential.next() }
}

/// Both have the noise of the machine, which goes on from slice to slice.
fn shared(ar: f64) -> impl FnMut(bool) -> f64 {
    let mut machine = Noise::new(3, ar);
    move |_| machine.next()
}

#[test]
fn the_ratio_is_recovered() {
    for (slices, ar) in [(50, 0.0), (50, 0.3), (100, 0.0), (100, 0.3)] {
        let (share, worst) = judge(slices, own(ar));
        assert!((0.93..=0.97).contains(&share), "{slices} slices, AR({ar}): {share}");
        assert!(worst < 0.05, "{slices} slices, AR({ar}): {worst}");
    }
}

/// What both share cancels out, and two intervals can't know: they are on the safe side.
#[test]
fn shared_noise_makes_two_intervals_say_less_than_is_true() {
    for slices in [50, 100] {
        let (share, worst) = judge(slices, shared(0.3));
        assert!((0.97..1.0).contains(&share), "{slices} slices: {share}");
        assert!(worst < 0.05, "{slices} slices: {worst}");
    }
}
