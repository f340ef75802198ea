//! A cache in front of a device: the first read of a place is as slow as the device, the next is fast.
//!
//! It keeps what was read and what was written. Writes go through to the device. What has been in it longest
//! leaves first.

use std::collections::{HashSet, VecDeque};
use std::ops::RangeInclusive;

use crate::model::spec::{Invalid, Parameters};
use crate::request::{Kind, Request, Seconds};

/// Bytes of a piece that is in the cache, or is not.
const LINE: u64 = 4096;

/// A cache.
#[derive(Debug)]
pub struct Cache {
    latency: Seconds,
    most: usize,
    lines: HashSet<u64>,
    oldest_first: VecDeque<u64>,
}

impl Cache {
    /// A cache of `cache` MiB, of which a read takes `hit_ms`; None without the first. It is not larger than
    /// the device.
    pub fn new(size: u64, parameters: &mut Parameters) -> Result<Option<Self>, Invalid> {
        let Some(mib) = parameters.optional("cache")? else { return Ok(None) };
        let most = ((mib * 1_048_576.0) as u64).min(size) / LINE;
        Ok(Some(Self {
            latency: parameters.positive("hit_ms", 0.05)? / 1000.0,
            most: most as usize,
            lines: HashSet::new(),
            oldest_first: VecDeque::new(),
        }))
    }

    /// When a read is done; None unless the cache has all of it.
    pub fn hit(&self, now: Seconds, request: Request) -> Option<Seconds> {
        let has_all = request.kind == Kind::Read && lines(request).all(|line| self.lines.contains(&line));
        has_all.then_some(now + self.latency)
    }

    /// Keeps what the device has read or written.
    pub fn keep(&mut self, request: Request) {
        if request.length == 0 {
            return;
        }
        for line in lines(request) {
            if self.lines.insert(line) {
                self.oldest_first.push_back(line);
            }
        }
        while self.lines.len() > self.most {
            let Some(line) = self.oldest_first.pop_front() else { break };
            self.lines.remove(&line);
        }
    }
}

/// The pieces that a request touches.
fn lines(request: Request) -> RangeInclusive<u64> {
    request.offset / LINE..=request.end().saturating_sub(1) / LINE
}

#[cfg(test)]
mod tests {
    use crate::simulation::{Simulation, about};

    #[test]
    fn the_first_read_is_slow_and_the_second_fast() {
        let mut device = Simulation::new("net jitter=0 cache=64 hit_ms=0.02");
        about(device.read(8192, 8192), 0.00025, 1e-6);
        about(device.read(8192, 8192), 0.00002, 1e-6);
        about(device.read(12288, 8192), 0.00025, 1e-6); // it has one half only
    }

    #[test]
    fn what_was_written_is_there_and_a_write_goes_through() {
        let mut device = Simulation::new("net jitter=0 cache=64 hit_ms=0.02");
        for _ in 0..2 {
            about(device.write(8192, 8192), 0.00025, 1e-6);
        }
        about(device.read(8192, 8192), 0.00002, 1e-6);
    }

    #[test]
    fn the_oldest_leaves_first() {
        let mut device = Simulation::new("net jitter=0 cache=1 hit_ms=0.02");
        device.sequential_reads(8192, 1, 129);
        about(device.read(8192, 8192), 0.00002, 1e-6);
        about(device.read(0, 8192), 0.00025, 1e-6);
    }

    #[test]
    fn a_disk_reads_past_hits() {
        let mut disk = Simulation::new("hdd cache=64 hit_ms=0.02");
        disk.read(100 << 20, 8192);
        let hits = disk.repeated_reads(100 << 20, 8192, 4, 100);
        about(hits.most(), 0.00002, 1e-6);
    }
}
