//! Readers and writers of a device on a clock that jumps from one answer to the next.

use std::time::Duration;

use crate::model::Model;
use crate::request::{Kind, Request, Seconds};
use crate::schedule::{Answer, Schedule};

/// Bytes of the device.
const SIZE: u64 = 4 << 30;

/// A value is within a share of what is expected.
#[track_caller]
pub fn about(value: f64, expected: f64, share: f64) {
    assert!((value - expected).abs() <= expected.abs() * share + 1e-9, "{value}, expected {expected}");
}

/// A device, and the time.
#[derive(Debug)]
pub struct Simulation {
    /// Replies are the times at which the requests came.
    schedule: Schedule<Duration>,
    now: Duration,
}

/// What some requests took.
#[derive(Debug)]
pub struct Run {
    seconds: Vec<Seconds>,
    bytes: u64,
    whole: Seconds,
}

impl Run {
    /// The mean of one.
    pub fn seconds_each(&self) -> Seconds {
        self.seconds.iter().sum::<f64>() / self.seconds.len() as f64
    }

    /// The shortest.
    pub fn least(&self) -> Seconds {
        self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The longest.
    pub fn most(&self) -> Seconds {
        self.seconds.iter().copied().fold(0.0, f64::max)
    }

    /// How many were answered in a second.
    pub fn per_second(&self) -> f64 {
        self.seconds.len() as f64 / self.whole
    }

    /// Bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.whole
    }
}

impl Simulation {
    /// A device of a model.
    pub fn new(model: &str) -> Self {
        Self { schedule: Schedule::new(Model::new(model, SIZE).expect(model)), now: Duration::ZERO }
    }

    /// Seconds pass.
    pub fn wait(&mut self, seconds: Seconds) {
        self.now += Duration::from_secs_f64(seconds);
    }

    /// Burst credits that are left.
    pub fn credits(&self) -> Option<f64> {
        self.schedule.credits(self.now)
    }

    /// One read: seconds that it takes.
    pub fn read(&mut self, offset: u64, length: u64) -> Seconds {
        self.one(Request { kind: Kind::Read, offset, length }).0
    }

    /// One write: seconds that it takes.
    pub fn write(&mut self, offset: u64, length: u64) -> Seconds {
        self.one(Request { kind: Kind::Write, offset, length }).0
    }

    /// Does a read fail?
    pub fn fails_to_read(&mut self, offset: u64, length: u64) -> bool {
        self.one(Request { kind: Kind::Read, offset, length }).1
    }

    /// So many reads at random places, `depth` at a time.
    pub fn random_reads(&mut self, length: u64, depth: usize, count: usize) -> Run {
        let mut random = fastrand::Rng::with_seed(7);
        let offsets = std::iter::repeat_with(|| random.u64(0..SIZE / length) * length).take(count);
        self.run(Kind::Read, offsets, length, depth)
    }

    /// So many reads of one place, `depth` at a time.
    pub fn repeated_reads(&mut self, offset: u64, length: u64, depth: usize, count: usize) -> Run {
        self.run(Kind::Read, std::iter::repeat_n(offset, count), length, depth)
    }

    /// So many reads from the beginning on, `depth` at a time.
    pub fn sequential_reads(&mut self, length: u64, depth: usize, count: usize) -> Run {
        self.run(Kind::Read, (0..count as u64).map(|index| index * length), length, depth)
    }

    /// So many writes from the beginning on, `depth` at a time.
    pub fn sequential_writes(&mut self, length: u64, depth: usize, count: usize) -> Run {
        self.run(Kind::Write, (0..count as u64).map(|index| index * length), length, depth)
    }

    fn one(&mut self, request: Request) -> (Seconds, bool) {
        self.schedule.submit(self.now, request, self.now);
        let answer = self.jump();
        ((self.now - answer.reply).as_secs_f64(), answer.fails)
    }

    fn run(&mut self, kind: Kind, mut offsets: impl Iterator<Item = u64>, length: u64, depth: usize) -> Run {
        let begin = self.now;
        let mut seconds = Vec::new();
        for offset in offsets.by_ref().take(depth) {
            self.schedule.submit(begin, Request { kind, offset, length }, begin);
        }
        while self.schedule.in_flight() > 0 {
            let answer = self.jump();
            seconds.push((self.now - answer.reply).as_secs_f64());
            if let Some(offset) = offsets.next() {
                self.schedule.submit(self.now, Request { kind, offset, length }, self.now);
            }
        }
        let bytes = length * seconds.len() as u64;
        Run { seconds, bytes, whole: (self.now - begin).as_secs_f64() }
    }

    /// The clock jumps to the next answer.
    fn jump(&mut self) -> Answer<Duration> {
        let deadline = self.schedule.next_deadline().expect("something is in flight");
        self.now = self.now.max(deadline);
        self.schedule.take_due(self.now).expect("the deadline has come")
    }
}
