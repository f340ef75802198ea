//! How a scan keeps a rate limit: short bursts, and pauses in between.
//!
//! Between two bursts nothing is in flight. That makes a scan slower than the device also where the device does not reach the
//! limit: no pause is ever made then, and what looks like its rate is that of the cuts. So bursts grow while the scan falls
//! behind the limit, until the cuts hardly matter, and get short again with the first pause. A scan that in the end is not
//! behind by more than a burst was held back, with or without a pause.

use std::time::Duration;

use super::Meter;
use crate::pace::{BURST_NS, Limits};

/// Cuts runs into pieces and pauses between them, so that a rate is kept.
pub(super) struct Throttle {
    blocks_per_s: Option<f64>,
    /// Blocks of a piece while the limit binds, and of the next one.
    least: u64,
    piece: u64,
    /// Was a run cut at all?
    cuts: bool,
    holds_back: bool,
}

impl Throttle {
    const PIECES_PER_S: u64 = 1_000_000_000 / BURST_NS;
    /// Of large requests, which only a queue of our own has, and which so go one by one at most rates: others' commits wait
    /// behind each that is in flight.
    const LARGE_PIECES_PER_S: u64 = 10 * Self::PIECES_PER_S;

    pub(super) fn new(limits: &Limits, block_size: u64, request_blocks: u64) -> Self {
        let bytes_per_s = limits.bytes_per_s(request_blocks * block_size);
        let blocks_per_s = bytes_per_s.map(|b| (b as f64 / block_size as f64).max(1.0));
        let pieces_per_s = if request_blocks > 1 { Self::LARGE_PIECES_PER_S } else { Self::PIECES_PER_S };
        let least = blocks_per_s.map_or(u64::MAX, |b| (b as u64 / pieces_per_s).max(request_blocks));
        Self { blocks_per_s, least, piece: least, cuts: false, holds_back: false }
    }

    /// No more blocks than these are read in such a time: what is due by its end, a burst ahead, and the piece that begins then.
    pub(super) fn most_within(&self, time: Duration) -> u64 {
        let burst = Duration::from_nanos(BURST_NS);
        let due = |rate| (time.saturating_add(2 * burst).as_secs_f64() * rate) as u64;
        self.blocks_per_s.map_or(u64::MAX, |rate| due(rate).saturating_add(self.least))
    }

    /// Blocks to read next of so many.
    pub(super) fn piece(&mut self, run: u64) -> u64 {
        self.cuts |= self.piece < run;
        run.min(self.piece)
    }

    /// A piece was read: pauses if it came before its time.
    pub(super) fn pause(&mut self, meter: &mut Meter<'_>) {
        let Some(rate) = self.blocks_per_s else { return };
        let due = meter.pace.started() + (meter.slices.total().work as f64 / rate * 1e9) as u64;
        let behind = meter.last.saturating_sub(due);
        let far_behind = behind >= BURST_NS;
        self.holds_back = self.cuts && !far_behind;
        if meter.stop.is_none() && meter.last < due {
            meter.throttled = true;
            meter.stop = meter.waits.leave_out(|| meter.pace.sleep_until(due));
            self.piece = self.least;
            return;
        }
        if far_behind {
            // A request that is late now and then is caught up with as it was, one by one.
            self.piece = self.piece.saturating_mul(2);
        }
        let allowed = (behind + BURST_NS) as f64 / 1e9 * rate;
        self.piece = self.piece.min(allowed as u64).max(self.least);
    }

    /// Did the limit make the rate of the scan, though there may have been no pause?
    pub(super) fn holds_back(&self) -> bool {
        self.holds_back
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs::File;
    use std::sync::Arc;

    use super::super::{Direct, Scan, scan};
    use super::*;
    use crate::clock::{Clock, Manual};
    use crate::engine::{Completion, Engine, Kind};
    use crate::source::fixture::{BLOCK, Relation};

    const DEPTH: usize = 8;
    const REQUEST_BLOCKS: u64 = 2;
    const LATENCY_NS: u64 = 2_000_000;

    /// What the device gives at this depth, in MiB a second.
    fn at_depth(depth: usize) -> f64 {
        let bytes = (depth as u64 * REQUEST_BLOCKS * BLOCK) as f64;
        bytes / f64::from(1 << 20) * 1e9 / LATENCY_NS as f64
    }

    /// Serves all that is in flight side by side.
    struct Device<'a> {
        clock: &'a Manual,
        in_flight: Vec<(u64, Completion)>,
        most: usize,
        completed: &'a Cell<u64>,
    }

    impl Engine for Device<'_> {
        fn kind(&self) -> Kind {
            Kind::IoUring
        }

        fn submit_at(&mut self, slot: usize, _at: usize, _file: &Arc<File>, _offset: u64, len: usize) {
            assert!(self.in_flight.iter().all(|(_, busy)| busy.slot != slot), "slot {slot} is busy");
            self.in_flight.push((self.clock.now() + LATENCY_NS, Completion { slot, result: Ok(len) }));
            self.most = self.most.max(self.in_flight.len());
        }

        fn wait(&mut self, _idle: &mut dyn FnMut()) -> crate::Result<Completion> {
            let (end, completion) = self.in_flight.remove(0);
            self.clock.advance(end.saturating_sub(self.clock.now()));
            self.completed.set(self.completed.get() + 1);
            Ok(completion)
        }

        fn copy(&self, _slot: usize, _at: usize, _into: &mut [u8]) {}
    }

    /// A direct scan under a limit: what it found, and the most that was in flight.
    fn limited(relation: &Relation, limits: Limits) -> (Scan, usize) {
        let (clock, completed) = (Manual::default(), Cell::new(0));
        let mut device = Device { clock: &clock, in_flight: Vec::new(), most: 0, completed: &completed };
        let mut reader = Direct::new(&relation.source, &mut device, DEPTH, REQUEST_BLOCKS);
        // It is asked after each request. Asked again without one, it sleeps, which moves no made-up clock.
        let mut known = 0;
        let mut ask = || {
            if completed.get() == known {
                clock.advance(500_000);
            }
            known = completed.get();
            None
        };
        let blocks = 0..relation.source.blocks();
        let scan = scan(&relation.source, blocks, &mut reader, &limits, &clock, &mut ask, &mut |_| ());
        (scan.expect("scanned"), device.most)
    }

    const LIMITS: Limits = Limits { duration: Duration::from_millis(500), ..Limits::none() };

    fn mib_per_s(scan: &Scan) -> f64 {
        BLOCK as f64 / f64::from(1 << 20) * 1e9 / scan.ns_per_block().expect("a time")
    }

    #[test]
    fn a_limit_that_is_out_of_reach_does_not_empty_the_queue() {
        let relation = Relation::of_segments(4096, 4096, 0..4096);
        let (free, _) = limited(&relation, LIMITS);
        assert!((mib_per_s(&free) / at_depth(DEPTH) - 1.0).abs() < 0.01, "{}", mib_per_s(&free));
        for limit in [75, 100, 200, 1000, 10_000] {
            let (scan, _) = limited(&relation, Limits { max_mib_per_s: Some(limit), ..LIMITS });
            assert!(!scan.throttled, "{limit}");
            assert!(mib_per_s(&scan) > 0.9 * at_depth(DEPTH), "{limit}: {}", mib_per_s(&scan));
        }
    }

    #[test]
    fn a_limit_that_is_reached_is_seen() {
        let relation = Relation::of_segments(4096, 4096, 0..4096);
        // Also where it takes as much as two, four, or nearly all of the requests in flight to reach it.
        for limit in [2, 5, 7, 8, 15, 16, 20, 31, 32, 50, 60, 62] {
            let (scan, most) = limited(&relation, Limits { max_mib_per_s: Some(limit), ..LIMITS });
            assert!(scan.throttled || mib_per_s(&scan) > 0.9 * at_depth(DEPTH), "{limit}");
            let mib = (scan.rated.work * BLOCK) as f64 / f64::from(1 << 20);
            let allowed = f64::from(limit) * scan.elapsed_ns as f64 / 1e9;
            // A burst of 10 ms may be ahead.
            assert!(mib <= allowed * 1.02 + f64::from(limit) / 50.0, "{limit}: {mib} MiB, not {allowed}");
            assert!(mib >= allowed * 0.9, "{limit}: {mib} MiB, not {allowed}");
            // What goes one by one fast enough does.
            assert!(most == 1 || f64::from(limit) > at_depth(1), "{limit}: {most}");
        }
    }

    #[test]
    fn a_limit_that_makes_no_pause_is_seen() {
        let relation = Relation::of_segments(4096, 4096, 0..4096);
        // What one request, two, or four at a time give; and a scan that ends before it is far behind.
        let short = Limits { duration: Duration::from_millis(10), ..LIMITS };
        for (max_iops, limits) in [(500, LIMITS), (1000, LIMITS), (2000, LIMITS), (16_000, short)] {
            let (scan, _) = limited(&relation, Limits { max_iops: Some(max_iops), ..limits });
            assert!(scan.throttled, "{max_iops}");
        }
    }
}
