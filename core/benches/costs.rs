//! What measuring costs by itself: recording a fetch, which `io_probe_check()` publishes as well, and in
//! CPU time a look of `io_probe_iostat` at the devices of this machine, `/proc/stat`, I/O pressure and the
//! cgroup.

use std::time::{Duration, Instant};

use io_probe_core::machine::device::{BlockDevice, Roots};
use io_probe_core::machine::iostat::Watch;
use io_probe_core::measure::random::FetchRecord;
use io_probe_core::run::clock::{self, Monotonic};
use io_probe_core::run::order::Permutation;

const LOOKS: u32 = 1_000;

fn main() {
    recorder();
    looks();
}

fn recorder() {
    let (with_clock, without) = FetchRecord::cost_ns(&Monotonic);
    println!("clock, a reading                        {:6.1} ns", clock::cost_ns());
    println!("recorder, a fetch with its clock reading {with_clock:5.1} ns");
    println!("recorder, a fetch without                {without:5.1} ns");
    println!("order, an element of 2^27                {:5.1} ns", order_ns());
}

fn order_ns() -> f64 {
    let order = Permutation::new(1 << 27, 1);
    let started = clock::Clock::now(&Monotonic);
    let sum: u64 = (0..1_000_000).map(|index| order.at(index)).fold(0, u64::wrapping_add);
    let took = clock::Clock::now(&Monotonic) - started;
    std::hint::black_box(sum);
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
            std::hint::black_box(watch.look());
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
