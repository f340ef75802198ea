//! Made-up devices, measured again and again with noise: is the same recommended, and what is worth it?

use super::*;
use crate::page_costs::concurrency::{QueryConcurrency, choose_for_queries};
use crate::page_costs::curve::{Use, choose_concurrency};
use crate::page_costs::locality::Locality;
use io_probe_core::measure::page_times::times::Sparse;
use io_probe_core::measure::page_times::{Estimate, PageTimes};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

const REPEATS: u64 = 200;
/// Of 40 answers, at most 3 may contradict what is said most often, and 36 must find what is worth much.
const OF: f64 = 40.0;

/// Standard deviation of the logarithm of each measured time.
const NOISE: f64 = 0.1;

const CONCURRENCIES: [u32; 5] = [0, 1, 16, 64, 128];
const DENSITIES: [f64; 3] = [0.03, 0.2, 0.5];

const TABLE: Table = Table { pages: 20_000.0, rows: 1_000_000.0 };

/// A device by its true times: sequential, random, and at each concurrency.
struct Device {
    sequential: f64,
    random: f64,
    sparse: [f64; 5],
}

impl Device {
    fn times(&self) -> PageTimes {
        let exactly = |us| Estimate { us, interval: Some((us, us)) };
        let sparse = CONCURRENCIES.iter().zip(self.sparse).flat_map(|(&concurrency, us)| {
            DENSITIES.map(|density| {
                // Without prefetch the kernel reads ahead.
                let us = if concurrency == 0 { us.min(2.0 * self.sequential / density) } else { us };
                Sparse { density, concurrency, time: exactly(us) }
            })
        });
        PageTimes {
            shared: Some(exactly(0.08)),
            os_sequential: Some(exactly(0.9)),
            os_random: Some(exactly(1.8)),
            device_sequential: Some(exactly(self.sequential)),
            device_random: Some(exactly(self.random)),
            sparse: sparse.collect(),
            tuple: Some(exactly(0.04)),
        }
    }
}

/// The times as measured once.
fn measured(device: &Device, seed: u64) -> PageTimes {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut noisy = |time: &mut Estimate| {
        let noise: f64 = StandardNormal.sample(&mut rng);
        let us = time.us * (NOISE * noise).exp();
        let half = 1.96 * NOISE;
        *time = Estimate { us, interval: Some((us * (-half).exp(), us * half.exp())) };
    };
    let mut times = device.times();
    times.each_mut().for_each(&mut noisy);
    times
}

/// What the planner picks: costsize.c in short, for an index of which it believes that its order is the
/// table's, or none at all.
fn pick(cell: &CostPair, index: &Index, rows: f64, scattered: bool) -> PlannedScan {
    let CostPair { sequential, random } = *cell;
    let any = TABLE.pages * (1.0 - (1.0 - 1.0 / TABLE.pages).powf(rows));
    let pages = if scattered { any } else { (rows * TABLE.pages / TABLE.rows).max(1.0) };
    let leaves = (rows / TABLE.rows * index.pages).max(1.0) * random;
    let all = TABLE.pages * sequential + TABLE.rows * 0.0125;
    let one = if scattered { pages * random } else { random + (pages - 1.0) * sequential };
    let each = random - (random - sequential) * (pages / TABLE.pages).sqrt();
    let costs = [
        (PlannedScan::Sequential, all),
        (PlannedScan::Index, leaves + one + rows * 0.0175),
        (PlannedScan::Bitmap, leaves + pages * each + rows * 0.02),
    ];
    costs.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(PlannedScan::Sequential, |least| least.0)
}

/// What the planner believes of an index whose rows lie within some hundred pages, if there is one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Late {
    None,
    InOrder,
    /// With the correlation that is advised.
    Anywhere,
}

fn asked(cells: &[CostPair], late: Late) -> Vec<Asked> {
    let shares = [0.0003, 0.002, 0.01, 0.05, 0.2, 0.6];
    let query = |locality, believed, share| {
        let (index, rows) = (Index { pages: 2700.0, locality }, TABLE.rows * share);
        let picks = cells.iter().map(|cell| pick(cell, &index, rows, believed)).collect();
        Asked { table: TABLE, index, rows, covered: false, picks }
    };
    let mut all = Vec::new();
    for share in shares {
        all.push(query(Locality::of(0.0, 1.0), false, share));
        all.push(query(Locality::of(1.0, 1.0), true, share));
        if late != Late::None {
            all.push(query(Locality::of(0.0, 600.0), late == Late::Anywhere, share));
        }
    }
    all
}

fn regrets(times: &PageTimes, in_force: &Settings, late: Late) -> Regrets {
    let cells = grid(in_force.cell);
    let times = Times::of(times, 16_384.0, 1024.0).expect("all times");
    Regrets::of(&asked(&cells, late), &cells, &CONCURRENCIES, &times).expect("queries")
}

fn concurrency(times: &PageTimes, in_force: &Settings, late: Late) -> QueryConcurrency {
    let times = Times::of(times, 16_384.0, 1024.0).expect("all times");
    choose_for_queries(&asked(&[in_force.cell], late), &times, in_force.concurrency)[0]
}

fn choice(times: &PageTimes, in_force: &Settings, has_late: bool) -> Chosen {
    let late = if has_late { Late::InOrder } else { Late::None };
    let concurrency = concurrency(times, in_force, late).plateau.value as u32;
    let in_force = &Settings { concurrency, ..*in_force };
    let regrets = |late| regrets(times, in_force, late);
    let chosen = if has_late {
        regrets(Late::InOrder).choose_beside(&regrets(Late::Anywhere), in_force)
    } else {
        regrets(Late::None).choose(in_force)
    };
    chosen.expect("a choice")
}

/// A recommended value, and from and to where others are as good.
type Answer = (f64, f64, f64);

/// Of 40: answers that lie outside of what the usual answer gives, and answers that advise a change.
fn judge(answers: &[Answer], in_force: f64) -> (f64, f64) {
    let count = |value: f64| answers.iter().filter(|answer| answer.0 == value).count();
    let usual = answers.iter().map(|answer| answer.0).max_by_key(|value| count(*value)).expect("answers");
    let median = |of: fn(&Answer) -> f64| {
        let ends: Vec<f64> = answers.iter().filter(|answer| answer.0 == usual).map(of).collect();
        io_probe_core::stats::median(&ends).expect("answers")
    };
    let (low, high) = (median(|answer| answer.1), median(|answer| answer.2));
    let of = |holds: &dyn Fn(f64) -> bool| {
        answers.iter().filter(|answer| holds(answer.0)).count() as f64 / answers.len() as f64 * OF
    };
    let outside = of(&|value| value < low || value > high);
    let changes = of(&|value| value != in_force);
    println!(
        "{in_force} in force: {usual} from {low} to {high}; outside {outside}, changes {changes} of {OF}"
    );
    (outside, changes)
}

/// All answers on a device: of random_page_cost, of the concurrency, and of that by the curve alone.
fn answers(device: &Device, in_force: &Settings, has_late: bool) -> [Vec<Answer>; 3] {
    let mut answers = [const { Vec::new() }; 3];
    for seed in 0..REPEATS {
        let times = measured(device, seed);
        let chosen = choice(&times, in_force, has_late);
        let (low, high) = chosen.as_good;
        answers[0].push((chosen.settings.cell.random, low, high));
        let late = if has_late { Late::InOrder } else { Late::None };
        let plateau = concurrency(&times, in_force, late).plateau;
        answers[1].push((plateau.value as f64, plateau.low as f64, plateau.high as f64));
        let alone = choose_concurrency(&times, Use::Queries, Some(in_force.concurrency)).expect("a choice");
        let plateau = alone.plateau;
        answers[2].push((plateau.value as f64, plateau.low as f64, plateau.high as f64));
    }
    answers
}

fn settings(random: f64, concurrency: u32) -> Settings {
    Settings { cell: CostPair { sequential: 1.0, random }, concurrency }
}

/// What is gained by a change, in truth.
fn gain(device: &Device, from: &Settings, to: &Settings, late: Late) -> f64 {
    let exact = regrets(&device.times(), from, late);
    let cost =
        |settings| exact.at(settings).map(|regret| (regret.cold * regret.warm).sqrt()).expect("a regret");
    cost(from) / cost(to)
}

/// In an SSD more reads in flight go faster; in a disk the kernel's readahead is better than any.
const VIRTIO: Device = Device { sequential: 5.0, random: 90.0, sparse: [90.0, 95.0, 26.0, 25.0, 25.0] };
const SSD: Device = Device { sequential: 2.5, random: 70.0, sparse: [70.0, 72.0, 8.0, 6.0, 6.0] };
const DISK: Device =
    Device { sequential: 60.0, random: 6000.0, sparse: [6000.0, 6000.0, 4000.0, 3900.0, 3900.0] };

#[test]
fn the_same_is_said_again_and_again_and_what_is_worth_it() {
    let mut worth = 0;
    for (device, has_late) in [VIRTIO, SSD, DISK].iter().flat_map(|device| [(device, false), (device, true)])
    {
        for (random, concurrency) in [(4.0, 1), (4.0, 16), (1.1, 64)] {
            let in_force = settings(random, concurrency);
            let best = choice(&device.times(), &in_force, has_late).settings;
            let [costs, depths, alone] = answers(device, &in_force, has_late);
            let other_cost = Settings { cell: in_force.cell, ..best };
            let other_depth = Settings { concurrency, ..best };
            let late = if has_late { Late::Anywhere } else { Late::None };
            for (answers, value, gain) in [
                (costs, random, gain(device, &other_cost, &best, late)),
                (depths, f64::from(concurrency), gain(device, &other_depth, &best, late)),
                (alone, f64::from(concurrency), 1.0),
            ] {
                let (outside, changes) = judge(&answers, value);
                assert!(outside <= 3.0, "{in_force:?}: {outside} of {OF}");
                if gain >= 1.3 {
                    worth += 1;
                    assert!(changes >= 36.0, "{in_force:?}: {changes} of {OF} at a gain of {gain}");
                }
            }
        }
    }
    assert!(worth >= 6, "{worth}");
}

#[test]
fn who_follows_a_part_or_all_is_told_the_same() {
    for device in [VIRTIO, SSD, DISK] {
        for (random, concurrency) in [(4.0, 1), (4.0, 16), (1.1, 64)] {
            let in_force = settings(random, concurrency);
            let times = device.times();
            let advised = choice(&times, &in_force, true).settings;
            assert_eq!(choice(&times, &advised, true).settings, advised, "{in_force:?}");
            let both = regrets(&times, &advised, Late::Anywhere).choose(&advised).expect("a choice");
            assert_eq!(both.settings, advised, "{in_force:?}");
        }
    }
}
