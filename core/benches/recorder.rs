//! What recording a fetch costs. `cargo bench -p io_probe_core` prints it; `io_probe_check()` publishes the
//! same.

use io_probe_core::measure::random::FetchRecord;
use io_probe_core::run::clock::{self, Monotonic};
use io_probe_core::run::order::Permutation;

fn main() {
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
