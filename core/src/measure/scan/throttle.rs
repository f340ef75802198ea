//! How a scan keeps limits of its rate and its time: short bursts, and pauses in between.
//!
//! Between two bursts nothing is in flight. That makes a scan slower than the device also where the device does not reach the
//! limit: no pause is ever made then, and what looks like its rate is that of the cuts. So bursts grow while the scan falls
//! behind the limit, until the cuts hardly matter, and get short again with the first pause. A scan that in the end is not
//! behind by more than a burst was held back, with or without a pause.
//!
//! A limit of its time counts what the bursts take. Where the kernel reads ahead, the first window of a burst has come in the
//! pause before it, and the last goes on in the one after it: a burst has two, of which the device's time for one is seen.
//! What comes from a cache counts as well, as if the device had given it.

use std::time::Duration;

use super::{Meter, Steps};
use crate::run::budget::{BURST_NS, Limits, Rest};

/// Cuts runs into pieces and pauses between them, so that a rate is kept.
pub(super) struct Throttle {
    blocks_per_s: Option<f64>,
    rest: Option<Rest>,
    /// The time of all bursts that have rested, in nanoseconds.
    rested: u64,
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

    /// Windows of a burst under a limit of the time, and its bytes at least, where nobody reads ahead and where the kernel does: to
    /// begin one has a cost, and the more of it is seen, the closer the limit is kept.
    const WINDOWS: u64 = 2;
    const LEAST_BYTES: u64 = 128 << 10;
    const LEAST_BYTES_AHEAD: u64 = 1 << 20;

    pub(super) fn new(limits: &Limits, block_size: u64, steps: Steps) -> Self {
        let bytes_per_s = limits.bytes_per_s(steps.request * block_size);
        let blocks_per_s = bytes_per_s.map(|b| (b as f64 / block_size as f64).max(1.0));
        let pieces_per_s = if steps.request > 1 { Self::LARGE_PIECES_PER_S } else { Self::PIECES_PER_S };
        let by_rate = blocks_per_s.map(|b| (b as u64 / pieces_per_s).max(steps.request));
        let least_bytes = if steps.ahead > 0 { Self::LEAST_BYTES_AHEAD } else { Self::LEAST_BYTES };
        let of_windows = (Self::WINDOWS * steps.ahead).max(least_bytes / block_size).max(steps.request);
        let seen = (of_windows - steps.ahead) as f64 / of_windows as f64;
        let rest = limits.max_util.map(|util| Rest::new(util * seen));
        let least = by_rate.max(rest.map(|_| of_windows)).unwrap_or(u64::MAX);
        Self { blocks_per_s, rest, rested: 0, least, piece: least, cuts: false, holds_back: false }
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

    /// When so many blocks may have been read, in nanoseconds from the start.
    fn due_by_rate(&self, blocks: u64) -> u64 {
        self.blocks_per_s.map_or(0, |rate| (blocks as f64 / rate * 1e9) as u64)
    }

    /// A piece of so many blocks is about to be read. The windows of a limit of the time may be much to a rate, so they are paid
    /// for beforehand.
    pub(super) fn pay(&self, blocks: u64, meter: &mut Meter<'_>) {
        if self.rest.is_none() || self.blocks_per_s.is_none() {
            return;
        }
        let by_then = self.due_by_rate(meter.slices.total().work + blocks).saturating_sub(BURST_NS);
        sleep(meter, meter.pace.started().saturating_add(by_then));
    }

    /// A piece was read: pauses if it came before its time.
    pub(super) fn pause(&mut self, meter: &mut Meter<'_>) {
        let total = meter.slices.total();
        let mut due = meter.pace.started().saturating_add(self.due_by_rate(total.work));
        if let Some(rest) = &mut self.rest {
            rest.after(meter.last - (total.ns - self.rested), meter.last);
            self.rested = total.ns;
            due = due.max(rest.due());
        }
        let behind = meter.last.saturating_sub(due);
        let far_behind = behind >= BURST_NS;
        self.holds_back = self.cuts && (self.rest.is_some() || !far_behind);
        if sleep(meter, due) {
            self.piece = self.least;
            return;
        }
        let Some(rate) = self.blocks_per_s.filter(|_| self.rest.is_none()) else { return };
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

/// Sleeps until something is due; false if it is already, or all is over.
fn sleep(meter: &mut Meter<'_>, due: u64) -> bool {
    let early = meter.stop.is_none() && meter.last < due;
    if early {
        meter.throttled = true;
        meter.stop = meter.waits.leave_out(|| meter.pace.sleep_until(due));
    }
    early
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use super::super::{Direct, Scan, scan};
    use super::*;
    use crate::engine::{Completion, Engine, Kind};
    use crate::files::relation_files::fixture::{BLOCK, Relation};
    use crate::run::clock::{Clock, Manual};

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
            Ok(completion)
        }

        fn copy(&self, _slot: usize, _at: usize, _into: &mut [u8]) {}
    }

    /// A direct scan under a limit: what it found, and the most that was in flight.
    fn limited(relation: &Relation, limits: Limits) -> (Scan, usize) {
        let clock = Manual::default();
        let mut device = Device { clock: &clock, in_flight: Vec::new(), most: 0 };
        let mut reader = Direct::new(&relation.source, &mut device, DEPTH, REQUEST_BLOCKS);
        let blocks = 0..relation.source.blocks();
        let scan = scan(&relation.source, blocks, &mut reader, &limits, &clock, &mut || None, &mut |_| ());
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
    fn a_share_of_the_time_is_kept() {
        let relation = Relation::of_segments(4096, 4096, 0..4096);
        for util in [0.02, 0.1, 0.5, 0.9] {
            let (scan, most) = limited(&relation, Limits { max_util: Some(util), ..LIMITS });
            assert!(scan.throttled && most == DEPTH, "{util}: {most}");
            let share = scan.rated.ns as f64 / scan.elapsed_ns as f64;
            assert!(share <= 1.02 * util && share > 0.5 * util, "{util}: {share}");
        }
        // A rate that is tighter counts.
        let both = Limits { max_util: Some(0.9), max_mib_per_s: Some(2), ..LIMITS };
        let (scan, _) = limited(&relation, both);
        let mib = (scan.rated.work * BLOCK) as f64 / f64::from(1 << 20);
        assert!(mib <= 2.0 * scan.elapsed_ns as f64 / 1e9 + 0.1, "{mib} MiB in {} ns", scan.elapsed_ns);
        // What is hardly held back is, too: its queue was emptied all the time.
        let (scan, _) = limited(&relation, Limits { max_util: Some(0.9999), ..LIMITS });
        assert!(scan.throttled);
    }

    #[test]
    fn time_in_holes_is_not_saved_up() {
        // Of a second in holes, and some data: the data has its rests.
        let relation = Relation::of_segments(8192, 8192, 7168..8192);
        let limits = Limits { max_util: Some(0.5), duration: Duration::from_secs(10), ..LIMITS };
        let (scan, _) = limited(&relation, limits);
        assert_eq!((scan.holes, scan.rated.work, scan.throttled), (7168, 1024, true));
        let in_holes = LATENCY_NS * 7168 / REQUEST_BLOCKS / DEPTH as u64;
        let with_rests = (scan.elapsed_ns - in_holes) as f64;
        assert!(in_holes > scan.rated.ns && with_rests > 1.9 * scan.rated.ns as f64, "{scan:?}");
    }

    #[test]
    fn what_the_kernel_reads_ahead_counts() {
        let limits = Limits { max_util: Some(0.1), ..LIMITS };
        let throttle = |ahead| Throttle::new(&limits, BLOCK, Steps { request: 1, ahead });
        // Bursts of two windows, of whose time half is not seen.
        let (none, window) = (throttle(0), throttle(1024));
        assert_eq!((none.least, throttle(16).least, window.least), (16, 128, 2048));
        let due = |throttle: Throttle| {
            let mut rest = throttle.rest.expect("a limit");
            rest.after(0, 1_000_000);
            rest.due()
        };
        assert_eq!((due(none), due(window)), (10_000_000, 20_000_000));
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
