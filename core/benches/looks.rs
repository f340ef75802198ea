//! What a look of `io_probe_iostat` costs in CPU time: the devices of this machine, `/proc/stat`, I/O
//! pressure and the cgroup. `cargo bench -p io_probe_core --bench looks` prints it.

use std::time::{Duration, Instant};

use io_probe_core::machine::device::{BlockDevice, Roots};
use io_probe_core::machine::iostat::Watch;

const LOOKS: u32 = 1_000;

fn main() {
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
            "a look at {count:3} devices  {cpu:>9.1?} of CPU, {wall:.1?} in all: {share:.4} % of a core at 1 s"
        );
    }
}

/// CPU time of this thread so far, by the scheduler's own account.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    let ns = text.split_ascii_whitespace().next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.expect("a number"))
}
