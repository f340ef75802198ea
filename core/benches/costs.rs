//! What measuring costs by itself: recording a fetch, and in CPU time a look of `io_probe_iostat` at the
//! devices of this machine, `/proc/stat`, I/O pressure and the cgroup.

use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use io_probe_core::machine::device::{BlockDevice, Roots};
use io_probe_core::machine::iostat::Watch;
use io_probe_core::measure::random::{Fetch, FetchRecord, Found, Served};
use io_probe_core::run::budget::{Budget, Limits};
use io_probe_core::run::clock::{self, Clock, Monotonic, nanoseconds};
use io_probe_core::run::order::Permutation;
use io_probe_core::run::stopwatch::Stopwatch;

const LOOKS: u32 = 1_000;

fn main() {
    recorder();
    looks();
}

fn recorder() {
    let (with_clock, without) = (fetch_ns(&Monotonic), fetch_ns(&Free(Cell::new(0))));
    println!("clock, a reading                        {:6.1} ns", clock::cost_ns());
    println!("recorder, a fetch with its clock reading {with_clock:5.1} ns");
    println!("recorder, a fetch without                {without:5.1} ns");
    println!("order, an element of 2^27                {:5.1} ns", order_ns());
}

/// What recording one fetch costs with this clock, in nanoseconds: the least mean of several batches.
fn fetch_ns(clock: &dyn Clock) -> f64 {
    const BATCHES: usize = 20;
    const FETCHES: u32 = 5000;
    let (mut should_stop, mut progress) = (|| None, |_| ());
    let budget = Budget::unlimited(clock, &mut should_stop);
    let mut watch = Stopwatch::start(None, budget, &mut progress);
    let mut record = FetchRecord::start(&Limits::none(), 8192, watch.last());
    let fetch = Fetch { block: 0, found: Found::Missing(8192) };
    let mut batch = || {
        let started = Monotonic.now();
        for _ in 0..FETCHES {
            let issued = Some(watch.last());
            let request = record.issue(&watch, black_box(fetch), issued, true);
            black_box(record.done(&mut watch, request, Served::Device, true).is_break());
        }
        (Monotonic.now() - started) as f64 / f64::from(FETCHES)
    };
    (0..BATCHES).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

/// A clock that costs nothing to read and moves on at each reading, as under a steady load.
struct Free(Cell<u64>);

impl Clock for Free {
    #[inline]
    fn now(&self) -> u64 {
        self.0.set(self.0.get() + 20_000);
        self.0.get()
    }

    fn sleep(&self, duration: Duration) {
        self.0.set(self.0.get() + nanoseconds(duration));
    }
}

fn order_ns() -> f64 {
    let order = Permutation::new(1 << 27, 1);
    let started = Monotonic.now();
    let sum: u64 = (0..1_000_000).map(|index| order.at(index)).fold(0, u64::wrapping_add);
    let took = Monotonic.now() - started;
    black_box(sum);
    took as f64 / 1e6
}

fn looks() {
    let roots = Roots::default();
    let devices: Vec<BlockDevice> =
        BlockDevice::names(&roots).iter().filter_map(|name| BlockDevice::find(name, &roots)).collect();
    for count in [1, devices.len()] {
        let watch = Watch::new(devices[..count].to_vec(), roots.clone());
        let (before, started) = (cpu(), Instant::now());
        for _ in 0..LOOKS {
            black_box(watch.look());
        }
        let (cpu, wall) = ((cpu() - before) / LOOKS, started.elapsed() / LOOKS);
        let share = 100.0 * cpu.as_secs_f64();
        println!(
            "a look at {count:3} devices  {cpu:>9.1?} of CPU, {wall:.1?} in all: \
             {share:.4} % of a core at 1 s"
        );
    }
}

/// CPU time of this thread so far, by the scheduler's own account.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    let ns = text.split_ascii_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.expect("a number"))
}
