//! Times what a loop did: how many blocks came, how long they took, and whether to go on.
//!
//! Time is that between two readings of the clock. What a loop does for itself in between is left out of it
//! by [`Stopwatch::begin`], and what does not count by [`Stopwatch::rate`]. The wait for each answer of a
//! device is observed for the bound of the latencies.

use std::ops::ControlFlow;

use crate::run::budget::{Budget, Stop};
use crate::run::clock::Clock;
use crate::run::waits::Waits;
use crate::stats::{Precision, Slice, Slices};

/// The stopwatch that a reader carries.
pub struct Stopwatch<'a> {
    clock: &'a dyn Clock,
    budget: Budget<'a>,
    waits: Waits,
    progress: &'a mut dyn FnMut(u64),
    precision: Precision,
    slices: Slices,
    rates: bool,
    blocks: u64,
    last: u64,
    throttled: bool,
    stop: Option<Stop>,
}

impl<'a> Stopwatch<'a> {
    /// Starts with its budget. `progress` hears how many blocks came. Half the interval's width over its
    /// value shall be at most `precision`, if any.
    pub fn start(precision: Option<f64>, budget: Budget<'a>, progress: &'a mut dyn FnMut(u64)) -> Self {
        Self {
            clock: budget.clock(),
            last: budget.started(),
            budget,
            waits: Waits::here(),
            progress,
            precision: Precision::new(precision),
            slices: Slices::default(),
            rates: false,
            blocks: 0,
            throttled: false,
            stop: None,
        }
    }

    /// What the loop may use.
    pub fn budget(&mut self) -> &mut Budget<'a> {
        &mut self.budget
    }

    /// Sets whether what comes from now on makes part of the rate.
    #[inline]
    pub fn rate(&mut self, rates: bool) {
        self.rates = rates;
    }

    /// What comes next is timed from now on.
    #[inline]
    pub fn begin(&mut self) {
        self.last = self.clock.now();
    }

    /// The present moment of its clock.
    #[inline]
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The end of what was timed last, and so the start of what comes next.
    #[inline]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// `blocks` more have arrived, for which the reader has waited. Breaks when the loop shall end.
    #[inline]
    pub fn done(&mut self, blocks: u64) -> ControlFlow<()> {
        self.answered(self.last, blocks)
    }

    /// A request that was issued at `issued` has brought `blocks`. Breaks when the loop shall end.
    #[inline]
    pub fn answered(&mut self, issued: u64, blocks: u64) -> ControlFlow<()> {
        let now = self.clock.now();
        self.observe(now - issued);
        self.came(now, blocks)
    }

    /// `blocks` more have arrived, with a wait or out of a cache. Breaks when the loop shall end.
    #[inline]
    pub fn arrived(&mut self, blocks: u64) -> ControlFlow<()> {
        let now = self.clock.now();
        self.waits.looked(now - self.last, self.budget.latency_mut());
        self.came(now, blocks)
    }

    #[inline]
    fn came(&mut self, now: u64, blocks: u64) -> ControlFlow<()> {
        self.add(now, blocks);
        self.check(now);
        self.begin();
        self.flow()
    }

    /// `blocks` more have come by `now`. The budget is not checked.
    #[inline]
    pub fn add(&mut self, now: u64, blocks: u64) {
        self.blocks += blocks;
        if self.rates && self.slices.add(now - self.last, blocks) {
            self.slice_closed();
        }
        self.last = now;
    }

    /// `blocks` were passed over: done without having been read.
    #[inline]
    pub fn pass_over(&mut self, blocks: u64) {
        self.blocks += blocks;
    }

    /// A device has answered within `ns` nanoseconds.
    #[inline]
    pub(crate) fn observe(&mut self, ns: u64) {
        self.budget.latency_mut().observe(ns);
    }

    /// Called while a reader waits, at least every few milliseconds where it can.
    pub fn idle(&mut self) {
        self.check(self.clock.now());
    }

    #[inline]
    pub(crate) fn check(&mut self, now: u64) {
        if self.stop.is_none() {
            self.stop = self.budget.check(now);
        }
    }

    /// Tells `progress` how many blocks came.
    pub(crate) fn report(&mut self) {
        (self.progress)(self.blocks);
    }

    fn slice_closed(&mut self) {
        self.report();
        // Of a run that a limit holds back, no interval is given.
        if self.stop.is_none() && !self.throttled && self.precision.reached(&self.slices) {
            self.stop = Some(Stop::Precise);
        }
    }

    /// Waits until something is due. False if it is due already, or all is over.
    pub(crate) fn wait_until(&mut self, due: u64) -> bool {
        let early = self.stop.is_none() && self.last < due;
        if early {
            self.hold_back();
            let budget = &mut self.budget;
            self.stop = self.waits.leave_out(|| budget.sleep_until(due));
        }
        early
    }

    /// Waits until something is due, which makes no part of the times. Breaks when the run shall end.
    pub fn pause_until(&mut self, due: u64) -> ControlFlow<()> {
        self.wait_until(due);
        self.begin();
        self.flow()
    }

    /// Notes that a limit holds the run back: its times are not the device's.
    #[inline]
    pub(crate) fn hold_back(&mut self) {
        self.throttled = true;
    }

    /// Was it held back?
    pub(crate) fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// Ends the run for this reason.
    pub(crate) fn end(&mut self, stop: Stop) {
        self.stop = Some(stop);
    }

    /// Why the run shall end, if it shall.
    #[inline]
    pub fn stop(&self) -> Option<Stop> {
        self.stop
    }

    #[inline]
    pub(crate) fn flow(&self) -> ControlFlow<()> {
        if self.stop.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Blocks that came, or were passed over.
    #[inline]
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Time and blocks of the rate.
    #[inline]
    pub fn rated(&self) -> Slice {
        self.slices.total()
    }

    /// The rate slice by slice, without the warm-up.
    pub(crate) fn steady(&self) -> Vec<Slice> {
        self.slices.steady()
    }

    /// Wall clock since it started, in nanoseconds.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        self.clock.now() - self.budget.started()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::budget::{BoundSource, LatencyBound, Limits};
    use crate::run::clock::Manual;
    use std::time::Duration;

    /// Does `work` with a stopwatch, and returns what `progress` heard.
    fn timed(limits: Limits, work: impl FnOnce(&Manual, &mut Stopwatch<'_>)) -> Vec<u64> {
        let (clock, mut heard) = (Manual::default(), Vec::new());
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&clock, &mut should_stop);
        let mut progress = |blocks| heard.push(blocks);
        work(&clock, &mut Stopwatch::start(limits.precision, budget.part(&limits), &mut progress));
        heard
    }

    #[test]
    fn only_what_is_rated_and_not_done_for_itself_is_timed() {
        let heard = timed(Limits::none(), |clock, watch| {
            clock.advance(7_000);
            assert!(watch.done(2).is_continue());
            watch.rate(true);
            clock.advance(5_000);
            watch.begin();
            clock.advance(600_000);
            assert!(watch.arrived(3).is_continue());
            watch.pass_over(4);
            clock.advance(500_000);
            assert!(watch.answered(watch.last(), 1).is_continue());
            assert_eq!((watch.rated(), watch.blocks()), (Slice { ns: 1_100_000, work: 4 }, 10));
            assert_eq!((watch.stop(), watch.elapsed_ns()), (None, 1_112_000));
        });
        // A slice of a millisecond is closed.
        assert_eq!(heard, [10]);
    }

    #[test]
    fn it_breaks_at_the_end_of_its_budget_and_after_slow_answers() {
        let latency = LatencyBound::within(Duration::from_micros(9));
        let slow = Some(Stop::Slow(BoundSource::Call));
        for (duration_us, asked, stop, blocks) in
            [(1000, true, slow, 11), (55, true, Some(Stop::Duration), 6), (1000, false, None, 20)]
        {
            let limits = Limits { duration: Duration::from_micros(duration_us), latency, ..Limits::none() };
            timed(limits, |clock, watch| {
                for _ in 0..20 {
                    clock.advance(10_000);
                    if asked && watch.done(1).is_break() {
                        break;
                    } else if !asked {
                        watch.add(clock.now(), 1);
                    }
                }
                assert_eq!((watch.stop(), watch.blocks()), (stop, blocks));
            });
        }
    }

    #[test]
    fn what_is_precise_hides_no_other_reason_to_stop() {
        for stop in [None, Some(Stop::LockWaiter)] {
            timed(Limits { precision: Some(0.5), ..Limits::none() }, |clock, watch| {
                watch.rate(true);
                stop.into_iter().for_each(|stop| watch.end(stop));
                for _ in 0..1000 {
                    clock.advance(1_000_000);
                    watch.add(clock.now(), 1);
                }
                assert_eq!(watch.stop(), stop.or(Some(Stop::Precise)));
            });
        }
    }

    #[test]
    fn a_wait_is_known_and_is_no_time_of_the_loop() {
        timed(Limits::none(), |clock, watch| {
            watch.rate(true);
            assert!(!watch.wait_until(0) && !watch.is_throttled());
            assert!(watch.wait_until(3_000_000) && watch.is_throttled());
            watch.begin();
            clock.advance(20);
            let _ = watch.done(1);
            assert_eq!(watch.rated(), Slice { ns: 20, work: 1 });
            watch.end(Stop::Bytes);
            assert!(!watch.wait_until(9_000_000) && watch.now() == 3_000_020);
        });
    }
}
