//! A volume that works on many requests at a time: a latency, slots, caps on I/Os and on bytes a second,
//! burst credits.
//!
//! As cloud volumes do, it counts an I/O for each 256 KiB of a request. What a cap allowed and nobody used
//! may be caught up with for 10 ms.

use crate::model::after_writes::AfterWrites;
use crate::model::spec::{Invalid, Parameters};
use crate::request::{Kind, Request, Seconds};

/// Bytes that count as one I/O.
const IO: u64 = 256 << 10;
/// How long a cap keeps what was not used.
const ALLOWANCE: Seconds = 0.010;
const MIB: f64 = 1_048_576.0;
/// A cap that is none.
const UNLIMITED: f64 = 1e9;

/// What a kind of volume is like, unless parameters say otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// Milliseconds from a request to its answer.
    ms: f64,
    /// The part of it by which it varies, up and down, evenly.
    jitter: f64,
    /// Requests at a time.
    slots: f64,
    /// I/Os a second.
    iops: f64,
    /// MiB a second.
    mib: f64,
    /// I/Os that may be saved for a burst, and those a second that are saved.
    credits: Option<(f64, f64)>,
}

/// A volume of 3,000 I/Os and 125 MiB a second.
pub const GP3: Defaults =
    Defaults { ms: 0.7, jitter: 0.2, slots: 1024.0, iops: 3000.0, mib: 125.0, credits: None };
/// A volume that is faster while its credits last.
pub const BURST: Defaults = Defaults { credits: Some((60_000.0, 300.0)), ..GP3 };
/// A network volume of 1 GB/s.
pub const NET: Defaults =
    Defaults { ms: 0.25, jitter: 0.1, slots: 64.0, iops: UNLIMITED, mib: 1e9 / MIB, credits: None };
/// An SSD of 3 GB/s.
pub const SSD: Defaults = Defaults { ms: 0.09, slots: 32.0, mib: 3e9 / MIB, ..NET };

/// Hands out a quantity at a constant rate.
#[derive(Debug)]
struct Cap {
    /// A second.
    rate: f64,
    /// When all that was handed out is paid for; it begins with the whole allowance.
    paid: Seconds,
}

impl Cap {
    /// Takes `amount`: when it is paid for.
    fn take(&mut self, now: Seconds, amount: f64) -> Seconds {
        self.paid = self.paid.max(now - ALLOWANCE) + amount / self.rate;
        self.paid
    }
}

/// I/Os that were saved.
#[derive(Debug)]
struct Credits {
    /// Below 0: I/Os that wait for credits.
    level: f64,
    most: f64,
    /// Saved a second.
    base: f64,
    since: Seconds,
}

impl Credits {
    /// What is there.
    fn level_at(&self, now: Seconds) -> f64 {
        (self.level + (now - self.since).max(0.0) * self.base).min(self.most)
    }

    /// Takes `ios`: seconds until there is a credit for them.
    fn take(&mut self, now: Seconds, ios: f64) -> Seconds {
        self.level = self.level_at(now) - ios;
        self.since = now;
        (-self.level).max(0.0) / self.base
    }
}

/// A volume.
#[derive(Debug)]
pub struct Volume {
    latency: Seconds,
    jitter: f64,
    ios: Cap,
    bytes: Cap,
    credits: Option<Credits>,
    after_writes: Option<AfterWrites>,
    /// When each slot is free.
    free: Vec<Seconds>,
    random: fastrand::Rng,
}

impl Volume {
    /// A kind of volume with parameters of their own: `ms`, `jitter`, `slots`, `iops`, `mib`; and for one
    /// with credits `credits` (the most, with which it begins) and `base`; and those of [`AfterWrites`].
    pub fn new(defaults: Defaults, parameters: &mut Parameters) -> Result<Self, Invalid> {
        let credits = defaults.credits.map(|defaults| Credits::new(defaults, parameters)).transpose()?;
        Ok(Self {
            latency: parameters.positive("ms", defaults.ms)? / 1000.0,
            jitter: parameters.within("jitter", 0.0..=1.0, defaults.jitter)?,
            ios: Cap { rate: parameters.positive("iops", defaults.iops)?, paid: -ALLOWANCE },
            bytes: Cap { rate: parameters.positive("mib", defaults.mib)? * MIB, paid: -ALLOWANCE },
            credits,
            after_writes: AfterWrites::new(parameters)?,
            free: vec![0.0; parameters.within("slots", 1.0..=4096.0, defaults.slots)? as usize],
            random: fastrand::Rng::with_seed(1),
        })
    }

    /// A request comes: when it is done.
    pub fn arrive(&mut self, now: Seconds, request: Request) -> Seconds {
        let latency = self.latency * (1.0 + self.jitter * (2.0 * self.random.f64() - 1.0));
        if request.kind == Kind::Flush {
            return now + latency;
        }
        let ios = request.length.div_ceil(IO).max(1) as f64;
        let credit = self.credits.as_mut().map_or(0.0, |credits| credits.take(now, ios));
        let begin = (now + credit).max(self.ios.paid).max(self.bytes.paid);
        self.ios.take(now, ios);
        let transferred = self.bytes.take(now, request.length as f64);
        let penalty = self.after_writes.as_mut().map_or(0.0, |writes| writes.arrive(now, request));
        self.in_a_slot(begin, latency).max(transferred) + penalty
    }

    /// Takes the slot that is free first: when the request is done.
    fn in_a_slot(&mut self, begin: Seconds, latency: Seconds) -> Seconds {
        let slot = self.free.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("a volume has slots");
        *slot = begin.max(*slot) + latency;
        *slot
    }

    /// Credits that are left; None for a volume without.
    pub fn credits(&self, now: Seconds) -> Option<f64> {
        Some(self.credits.as_ref()?.level_at(now).max(0.0))
    }
}

impl Credits {
    fn new((most, base): (f64, f64), parameters: &mut Parameters) -> Result<Self, Invalid> {
        let most = parameters.positive("credits", most)?;
        Ok(Self { level: most, most, base: parameters.positive("base", base)?, since: 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use crate::simulation::{Simulation, about};

    #[test]
    fn alone_a_read_takes_the_latency() {
        for (volume, seconds) in [("gp3", 0.0007), ("net", 0.00025), ("ssd", 0.00009), ("gp3 ms=2", 0.002)] {
            about(Simulation::new(volume).random_reads(8192, 1, 2000).seconds_each(), seconds, 0.02);
        }
    }

    #[test]
    fn the_latency_varies_by_the_jitter() {
        let reads = Simulation::new("gp3").random_reads(8192, 1, 2000);
        about(reads.least(), 0.0007 * 0.8, 0.01);
        about(reads.most(), 0.0007 * 1.2, 0.01);
        let even = Simulation::new("gp3 jitter=0").random_reads(8192, 1, 10);
        about(even.most(), even.least(), 1e-6);
    }

    #[test]
    fn more_at_a_time_get_what_the_cap_allows() {
        for (volume, iops) in [("gp3", 3000.0), ("gp3 iops=500", 500.0)] {
            for depth in [8, 32] {
                about(Simulation::new(volume).random_reads(8192, depth, 10_000).per_second(), iops, 0.01);
            }
        }
    }

    #[test]
    fn more_at_a_time_are_limited_by_the_slots() {
        about(
            Simulation::new("net slots=4").random_reads(8192, 32, 10_000).per_second(),
            4.0 / 0.00025,
            0.02,
        );
        about(Simulation::new("ssd").random_reads(8192, 64, 50_000).per_second(), 32.0 / 0.00009, 0.02);
    }

    #[test]
    fn large_reads_get_the_bytes_that_the_cap_allows() {
        for (volume, mib) in [("gp3", 125.0), ("gp3 mib=40", 40.0), ("net", 953.7)] {
            for depth in [1, 8] {
                let rate = Simulation::new(volume).sequential_reads(1 << 20, depth, 1000).bytes_per_second();
                about(rate / 1_048_576.0, mib, 0.03);
            }
        }
    }

    #[test]
    fn an_io_is_256_kib() {
        // 4 I/Os each
        about(
            Simulation::new("gp3 mib=100000").sequential_reads(1 << 20, 32, 3000).per_second(),
            750.0,
            0.02,
        );
    }

    #[test]
    fn what_a_cap_allowed_is_kept_for_10_ms() {
        let mut volume = Simulation::new("gp3 jitter=0 iops=100");
        volume.wait(1.0);
        // Two I/Os: the second would be due 10 ms after the first.
        about(volume.read(0, 8192), 0.0007, 1e-6);
        about(volume.read(0, 8192), 0.0007, 1e-6);
        about(volume.read(0, 8192), 0.010 - 2.0 * 0.0007 + 0.0007, 0.01);
    }

    #[test]
    fn a_burst_lasts_as_long_as_its_credits() {
        let mut volume = Simulation::new("burst credits=5400");
        // 5400 / (3000 - 300) seconds
        about(volume.random_reads(8192, 8, 6000).per_second(), 3000.0, 0.01);
        about(volume.random_reads(8192, 8, 1000).per_second(), 300.0, 0.02);
        assert!(volume.credits().is_some_and(|credits| credits < 1.0));
        volume.wait(10.0);
        about(volume.credits().unwrap(), 3000.0, 0.01);
        volume.wait(1000.0);
        about(volume.credits().unwrap(), 5400.0, 1e-6);
    }

    #[test]
    fn only_a_burst_has_credits() {
        assert_eq!(Simulation::new("gp3").credits(), None);
    }
}
