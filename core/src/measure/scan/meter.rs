//! The stopwatch that a reader carries through a scan.

use std::ops::ControlFlow;

use crate::run::budget::{Budget, Bursts, Limits, Stop};
use crate::run::clock::Clock;
use crate::run::waits::Waits;
use crate::stats::{Precision, Slices};

/// The stopwatch that a reader carries.
pub struct Meter<'a> {
    clock: &'a dyn Clock,
    pub(super) budget: Budget<'a>,
    pub(super) waits: Waits,
    pub(super) progress: &'a mut dyn FnMut(u64),
    precision: Precision,
    pub(super) slices: Slices,
    /// Does the present part count in the rate?
    pub(super) rated: bool,
    pub(super) last: u64,
    /// Blocks of the present part, and of all parts before it.
    pub(super) in_part: u64,
    pub(super) before_part: u64,
    pub(super) stop: Option<Stop>,
    /// Has a rate limit made it pause?
    pub(super) throttled: bool,
}

impl<'a> Meter<'a> {
    pub(super) fn start(limits: &Limits, budget: Budget<'a>, progress: &'a mut dyn FnMut(u64)) -> Self {
        Self {
            clock: budget.clock(),
            last: budget.started(),
            budget,
            waits: Waits::here(),
            progress,
            precision: Precision::new(limits.precision),
            slices: Slices::default(),
            rated: false,
            in_part: 0,
            before_part: 0,
            stop: None,
            throttled: false,
        }
    }

    /// The first read of a part is about to be issued.
    #[inline]
    pub fn begin(&mut self) {
        self.last = self.clock.now();
    }

    /// When a request is issued that is not waited for at once, for [`Meter::answered`].
    #[inline]
    pub fn issue(&self) -> u64 {
        self.clock.now()
    }

    /// `blocks` more have arrived, for which the reader has waited. Breaks when the scan shall end.
    #[inline]
    pub fn done(&mut self, blocks: u64) -> ControlFlow<()> {
        self.answered(self.last, blocks)
    }

    /// A request that was issued then has brought `blocks`. Breaks when the scan shall end.
    #[inline]
    pub fn answered(&mut self, issued: u64, blocks: u64) -> ControlFlow<()> {
        let now = self.clock.now();
        self.budget.latency_mut().observe(now - issued);
        self.came(now, blocks)
    }

    /// `blocks` more have arrived, with a wait or out of a cache. Breaks when the scan shall end.
    #[inline]
    pub fn arrived(&mut self, blocks: u64) -> ControlFlow<()> {
        let now = self.clock.now();
        self.waits.looked(now - self.last, self.budget.latency_mut());
        self.came(now, blocks)
    }

    #[inline]
    fn came(&mut self, now: u64, blocks: u64) -> ControlFlow<()> {
        self.in_part += blocks;
        if self.rated && self.slices.add(now - self.last, blocks) {
            self.slice_closed();
        }
        if self.stop.is_none() {
            self.stop = self.budget.check(now);
        }
        self.last = self.clock.now();
        if self.stop.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// A burst of so many blocks is about to be read: pauses if it is to be paid for before.
    pub(super) fn pay(&mut self, bursts: &Bursts, blocks: u64) {
        if let Some(due) = bursts.paid_by(self.slices.total().work + blocks) {
            self.sleep_until(due);
        }
    }

    /// A burst was read: pauses if it came before its time.
    pub(super) fn pause(&mut self, bursts: &mut Bursts) {
        let due = bursts.due_after(self.slices.total(), self.last);
        let waits = self.sleep_until(due);
        bursts.fit(due, self.last, waits);
    }

    /// Sleeps until something is due; false if it is already, or all is over.
    fn sleep_until(&mut self, due: u64) -> bool {
        let early = self.stop.is_none() && self.last < due;
        if early {
            self.throttled = true;
            let budget = &mut self.budget;
            self.stop = self.waits.leave_out(|| budget.sleep_until(due));
        }
        early
    }

    /// `blocks` were passed over: done without having been read.
    pub fn pass_over(&mut self, blocks: u64) {
        self.in_part += blocks;
    }

    /// Called while a reader waits, at least every few milliseconds where it can.
    pub fn idle(&mut self) {
        if self.stop.is_none() {
            self.stop = self.budget.check(self.clock.now());
        }
    }

    fn slice_closed(&mut self) {
        (self.progress)(self.before_part + self.in_part);
        if self.precision.reached(&self.slices) {
            self.stop = Some(Stop::Precise);
        }
    }
}
