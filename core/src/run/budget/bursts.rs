//! How reading in order keeps limits of its rate and its time: short bursts, and pauses in between.
//!
//! Between two bursts nothing is in flight. That makes a scan slower than the device also where the device
//! does not reach the limit: no pause is ever made then, and what looks like its rate is that of the cuts. So
//! bursts grow while the scan falls behind the limit, until the cuts hardly matter, and get short again with
//! the first pause. A scan that in the end is not behind by more than a burst was held back, with or without
//! a pause.
//!
//! A limit of its time counts what the bursts take. Where the kernel reads ahead, the first window of a burst
//! has come in the pause before it, and the last goes on in the one after it: a burst has two, of which the
//! device's time for one is seen. What comes from a cache counts as well, as if the device had given it.

use std::time::Duration;

use super::{BURST_NS, Limits, Rest};
use crate::stats::Slice;

/// Cuts runs of blocks into bursts, and tells the pauses between them.
#[derive(Debug)]
pub(crate) struct Bursts {
    started: u64,
    blocks_per_s: Option<f64>,
    rest: Option<Rest>,
    /// The time of all bursts that have rested, in nanoseconds.
    rested: u64,
    /// Blocks of a burst while the limit binds, and of the next one.
    least: u64,
    next: u64,
    /// Was a run cut at all?
    cuts: bool,
    holds_back: bool,
}

impl Bursts {
    const PER_S: u64 = 1_000_000_000 / BURST_NS;
    /// Bursts a second of large requests, which only a queue of our own has: they go one by one at most
    /// rates, since others' commits wait behind each that is in flight.
    const LARGE_PER_S: u64 = 10 * Self::PER_S;

    /// Windows of a burst under a limit of the time, and its fewest bytes without and with readahead of the
    /// kernel. To begin a burst costs: the more of it is seen, the closer the limit is kept.
    const WINDOWS: u64 = 2;
    const LEAST_BYTES: u64 = 128 << 10;
    const LEAST_BYTES_AHEAD: u64 = 1 << 20;

    /// The bursts of a run from `started` on, in requests of `request` blocks, with `ahead` blocks of
    /// readahead.
    pub(crate) fn new(limits: &Limits, block_size: u64, request: u64, ahead: u64, started: u64) -> Self {
        let bytes_per_s = limits.bytes_per_s(request * block_size);
        let blocks_per_s = bytes_per_s.map(|b| (b as f64 / block_size as f64).max(1.0));
        let per_s = if request > 1 { Self::LARGE_PER_S } else { Self::PER_S };
        let by_rate = blocks_per_s.map(|b| (b as u64 / per_s).max(request));
        let least_bytes = if ahead > 0 { Self::LEAST_BYTES_AHEAD } else { Self::LEAST_BYTES };
        let of_windows = (Self::WINDOWS * ahead).max(least_bytes / block_size).max(request);
        let seen = (of_windows - ahead) as f64 / of_windows as f64;
        let rest = limits.max_util.map(|util| Rest::new(util * seen));
        let least = by_rate.max(rest.map(|_| of_windows)).unwrap_or(u64::MAX);
        Self { started, blocks_per_s, rest, rested: 0, least, next: least, cuts: false, holds_back: false }
    }

    /// The most blocks that are read within `time`: those due by its end, a burst ahead, and the burst that
    /// begins then.
    pub(crate) fn most_within(&self, time: Duration) -> u64 {
        let burst = Duration::from_nanos(BURST_NS);
        let seconds = time.saturating_add(2 * burst).as_secs_f64();
        self.blocks_per_s.map_or(u64::MAX, |rate| ((seconds * rate) as u64).saturating_add(self.least))
    }

    /// How many of the next `run` blocks to read in one burst.
    pub(crate) fn next_of(&mut self, run: u64) -> u64 {
        self.cuts |= self.next < run;
        run.min(self.next)
    }

    /// When `blocks` blocks may have been read, in nanoseconds from the start.
    fn due_by_rate(&self, blocks: u64) -> u64 {
        self.blocks_per_s.map_or(0, |rate| (blocks as f64 / rate * 1e9) as u64)
    }

    /// When a burst may begin that makes it `blocks` blocks in all, if it has to be paid for beforehand: the
    /// windows of a limit of the time may be much for a rate.
    pub(crate) fn paid_by(&self, blocks: u64) -> Option<u64> {
        let is_paid = self.rest.is_some() && self.blocks_per_s.is_some();
        is_paid.then(|| self.started.saturating_add(self.due_by_rate(blocks).saturating_sub(BURST_NS)))
    }

    /// When the next burst is due, after one that ended at `now` and made it `total` in all.
    pub(crate) fn due_after(&mut self, total: Slice, now: u64) -> u64 {
        let by_rate = self.started.saturating_add(self.due_by_rate(total.work));
        let by_time = self.rest.as_mut().map_or(0, |rest| {
            rest.after(now - (total.ns - self.rested), now);
            rest.due()
        });
        self.rested = total.ns;
        by_rate.max(by_time)
    }

    /// Fits the length of the bursts that come: at `now` the next one has been due since `due`, or `waits`
    /// until then.
    pub(crate) fn fit(&mut self, due: u64, now: u64, waits: bool) {
        let behind = now.saturating_sub(due);
        let far_behind = behind >= BURST_NS;
        self.holds_back = self.cuts && (self.rest.is_some() || !far_behind);
        if waits {
            self.next = self.least;
            return;
        }
        let Some(rate) = self.blocks_per_s.filter(|_| self.rest.is_none()) else { return };
        if far_behind {
            // Bursts grow only here: a request that is late now and then is made up for one by one.
            self.next = self.next.saturating_mul(2);
        }
        let allowed = (behind + BURST_NS) as f64 / 1e9 * rate;
        self.next = self.next.min(allowed as u64).max(self.least);
    }

    /// Did the limit make the rate of the scan, though there may have been no pause?
    pub(crate) fn hold_back(&self) -> bool {
        self.holds_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 8192;

    #[test]
    fn what_the_kernel_reads_ahead_counts() {
        let limits = Limits { max_util: Some(0.1), ..Limits::none() };
        let bursts = |ahead| Bursts::new(&limits, BLOCK, 1, ahead, 0);
        // Bursts of two windows, of whose time half is not seen.
        let (none, window) = (bursts(0), bursts(1024));
        assert_eq!((none.least, bursts(16).least, window.least), (16, 128, 2048));
        let due = |mut bursts: Bursts| bursts.due_after(Slice { ns: 1_000_000, work: 1 }, 1_000_000);
        assert_eq!((due(none), due(window)), (10_000_000, 20_000_000));
    }

    #[test]
    fn a_window_that_a_rate_can_t_bear_is_paid_for_beforehand() {
        let rate = Limits { max_mib_s: Some(16), ..Limits::none() };
        let both = Limits { max_util: Some(0.5), ..rate };
        let paid = |limits| Bursts::new(&limits, BLOCK, 1, 1024, 7).paid_by(2048);
        // 16 MiB at 16 MiB/s, a burst ahead.
        assert_eq!((paid(rate), paid(both)), (None, Some(7 + 1_000_000_000 - BURST_NS)));
    }

    #[test]
    fn bursts_grow_while_the_device_is_behind_and_shrink_with_a_pause() {
        let limits = Limits { max_mib_s: Some(100), ..Limits::none() };
        let mut bursts = Bursts::new(&limits, BLOCK, 1, 0, 0);
        let least = bursts.next_of(u64::MAX);
        assert_eq!(least, 128);
        bursts.fit(0, 2 * BURST_NS, false);
        assert_eq!((bursts.next_of(u64::MAX), bursts.hold_back()), (2 * least, false));
        bursts.fit(0, 20 * BURST_NS, false);
        assert_eq!(bursts.next_of(u64::MAX), 4 * least);
        // Of what was behind, half a burst is left.
        bursts.fit(0, BURST_NS / 2, false);
        assert_eq!((bursts.next_of(u64::MAX), bursts.hold_back()), (least + least / 2, true));
        bursts.fit(3 * BURST_NS, 2 * BURST_NS, true);
        assert_eq!((bursts.next_of(u64::MAX), bursts.hold_back()), (least, true));
    }
}
