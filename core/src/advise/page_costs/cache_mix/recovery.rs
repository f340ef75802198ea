//! The whole chain on a synthetic disk: from turns with noise to the ratio of two times with its interval.

use std::cell::RefCell;
use std::time::Duration;

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::CacheMix;
use crate::files::relation_files::fixture::Relation;
use crate::measure::page_times::tests::{made_up, measured, run, server};
use crate::measure::page_times::{PageTimesRun, Way, WaySeries};
use crate::run::budget::Limits;
use crate::run::clock::Manual;

const RUNS: u32 = 600;

/// Noise of standard deviation 1 with this lag-1 autocorrelation.
struct Noise {
    rng: Xoshiro256PlusPlus,
    ar: f64,
    state: f64,
}

impl Noise {
    fn new(seed: u64, ar: f64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let state = StandardNormal.sample(&mut rng);
        Self { rng, ar, state }
    }

    fn next(&mut self) -> f64 {
        let shock: f64 = StandardNormal.sample(&mut self.rng);
        self.state = self.ar * self.state + (1.0 - self.ar * self.ar).sqrt() * shock;
        self.state
    }
}

/// Of many runs: the share whose interval holds the true ratio, and the greatest error. Random and sequential
/// reads have noise of their own, or both that of the machine.
fn judge(ar: f64, shared: bool) -> (f64, f64) {
    let relation = Relation::of_segments(1 << 17, 2048, 0..2048);
    relation.evict();
    let noises = [1, 2].map(|seed| RefCell::new(Noise::new(seed, ar)));
    let truth = made_up::RANDOM / made_up::SEQUENTIAL;
    let (mut held, mut worst) = (0, 0.0_f64);
    for seed in 0..u64::from(RUNS) {
        let clock = Manual::default();
        let limits = Limits { duration: Duration::from_millis(600), ..Limits::none() };
        let run = PageTimesRun { concurrencies: &[], window: 0, seed, limits, ..run(&relation.source) };
        let mut server = server(&run, &clock);
        server.fetches = false;
        server.noise = Box::new(|way| match way {
            Way::Scan => 0.04 * noises[0].borrow_mut().next(),
            _ => 0.06 * noises[usize::from(!shared)].borrow_mut().next(),
        });
        let measured = measured(&run, &mut server, &clock);
        assert!(measured.device_random.turns() > 40, "{} turns", measured.device_random.turns());
        let time = |series: &WaySeries| series.of_device().expect("a time");
        let ratio = CacheMix::raw(time(&measured.device_random), time(&measured.device_sequential)).ratio();
        let ratio = ratio.expect("a ratio");
        let (low, high) = ratio.interval.expect("an interval");
        held += u32::from(low <= truth && truth <= high);
        worst = worst.max((ratio.value / truth - 1.0).abs());
    }
    (f64::from(held) / f64::from(RUNS), worst)
}

#[test]
fn the_ratio_is_recovered() {
    for ar in [0.0, 0.3] {
        let (share, worst) = judge(ar, false);
        assert!((0.93..=0.97).contains(&share), "AR({ar}): {share}");
        assert!(worst < 0.05, "AR({ar}): {worst}");
    }
}

/// What both share cancels out, and two intervals can't know: they are on the safe side.
#[test]
fn shared_noise_makes_two_intervals_say_less_than_is_true() {
    let (share, worst) = judge(0.3, true);
    assert!((0.97..=1.0).contains(&share), "{share}");
    assert!(worst < 0.05, "{worst}");
}
