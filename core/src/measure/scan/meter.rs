//! The stopwatch that a reader carries through a scan.

use std::ops::ControlFlow;

use crate::run::budget::{Limits, Pace, Stop, StopCheck};
use crate::run::clock::Clock;
use crate::run::waits::Waits;
use crate::stats::{Precision, Slices};

/// The stopwatch that a reader carries.
pub struct Meter<'a> {
    clock: &'a dyn Clock,
    pub(super) pace: Pace<'a>,
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
    pub(super) fn start(
        limits: &Limits,
        clock: &'a dyn Clock,
        should_stop: &'a mut StopCheck<'a>,
        progress: &'a mut dyn FnMut(u64),
    ) -> Self {
        let pace = Pace::start(limits, clock, should_stop);
        Self {
            clock,
            last: pace.started(),
            pace,
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
        self.pace.latency.observe(now - issued);
        self.came(now, blocks)
    }

    /// `blocks` more have arrived, with a wait or out of a cache. Breaks when the scan shall end.
    #[inline]
    pub fn arrived(&mut self, blocks: u64) -> ControlFlow<()> {
        let now = self.clock.now();
        self.waits.looked(now - self.last, &mut self.pace.latency);
        self.came(now, blocks)
    }

    #[inline]
    fn came(&mut self, now: u64, blocks: u64) -> ControlFlow<()> {
        self.in_part += blocks;
        if self.rated && self.slices.add(now - self.last, blocks) {
            self.slice_closed();
        }
        if self.stop.is_none() {
            self.stop = self.pace.check(now);
        }
        self.last = self.clock.now();
        if self.stop.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// `blocks` were passed over: done without having been read.
    pub fn pass_over(&mut self, blocks: u64) {
        self.in_part += blocks;
    }

    /// Called while a reader waits, at least every few milliseconds where it can.
    pub fn idle(&mut self) {
        if self.stop.is_none() {
            self.stop = self.pace.check(self.clock.now());
        }
    }

    fn slice_closed(&mut self) {
        (self.progress)(self.before_part + self.in_part);
        if self.precision.reached(&self.slices) {
            self.stop = Some(Stop::Precise);
        }
    }
}
