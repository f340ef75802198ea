//! What a read of a cached block takes: a system call and a copy out of the OS page cache.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::run::clock::{Clock, Monotonic};
use crate::stats::median;

/// Blocks that are read: all in less than a millisecond.
const BLOCKS: u64 = 64;

/// Nanoseconds per byte of reading blocks of `block_size` bytes that are cached: those of the program that
/// runs, each read twice, of which the second time counts. None if it can't be read.
pub fn ns_per_byte(block_size: usize) -> Option<f64> {
    let program = File::open("/proc/self/exe").ok()?;
    let mut block = vec![0; block_size];
    let time = |block: &mut [u8], number: u64| {
        let began = Monotonic.now();
        let length = program.read_at(block, number * block_size as u64).ok()?;
        (length == block_size).then(|| (Monotonic.now() - began) as f64 / block_size as f64)
    };
    for number in 0..BLOCKS {
        time(&mut block, number);
    }
    let times: Vec<f64> = (0..BLOCKS).map_while(|number| time(&mut block, number)).collect();
    median(&times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_takes_some_time_and_less_than_a_device() {
        let ns = ns_per_byte(8192).expect("the test's own program");
        assert!((0.01..10.0).contains(&ns), "{ns}");
    }
}
