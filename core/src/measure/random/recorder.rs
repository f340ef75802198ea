//! The stopwatch of a random run: when each request began, what it took, who served it.

use std::ops::ControlFlow;
use std::time::Duration;

use super::series::SecondSeries;
use super::{Fetch, Found, RandomRun};
use crate::measure::tiers::Tiers;
use crate::run::budget::{Budget, Limits, RequestPacer, Stop};
use crate::run::clock::{Clock, nanoseconds};
use crate::stats::{self, Latencies, Moments, Precision, Slices};

/// Who served a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// The server's buffers.
    Shared,
    /// The OS page cache.
    Os,
    /// The device, or whatever is below the kernel.
    Device,
    /// The page cache or the device; the kernel does not tell.
    Unknown,
}

impl From<Found> for Served {
    fn from(found: Found) -> Self {
        match found {
            Found::Cached => Served::Os,
            // What nobody wrote, the kernel makes up.
            Found::Hole | Found::Missing(_) => Served::Device,
            Found::Unknown => Served::Unknown,
        }
    }
}

/// A request that has been issued.
#[derive(Debug, Clone, Copy)]
pub struct InFlight {
    /// What it fetches.
    pub fetch: Fetch,
    /// None where others decided when to issue it.
    started: Option<u64>,
    /// Does its latency count? Not that of the requests that fill a queue.
    counts: bool,
    /// How long requests in flight had been disturbed when it was issued, in nanoseconds.
    disturbed_before: u64,
    /// When the schedule of a rate limit wanted it.
    due: u64,
}

/// The interrupts of the caller are looked at this often, in nanoseconds.
const CHECK_EVERY_NS: u64 = 500_000;

/// Records a run.
pub struct Recorder<'a> {
    clock: &'a dyn Clock,
    budget: Budget<'a>,
    progress: &'a mut dyn FnMut(u64),
    precision: Precision,
    pacer: RequestPacer,
    series: Option<&'a mut SecondSeries>,
    slices: Slices,
    latencies: Latencies,
    responses: Latencies,
    /// Times by tier, in the order of [`Tiers`].
    by_tier: [Moments; 3],
    fetches: u64,
    tiers: Tiers,
    missing_bytes: u64,
    holes: u64,
    passed_over: u64,
    unknown: u64,
    in_flight: usize,
    /// How long requests in flight were disturbed, in all, in nanoseconds.
    disturbed: u64,
    warmup_ns: Option<u64>,
    /// The end of what was timed last, and so the start of what comes next.
    last: u64,
    next_check: u64,
    throttled: bool,
    stop: Option<Stop>,
}

impl<'a> Recorder<'a> {
    /// Of a run that starts with its budget, and whose requests are of `block_size` bytes.
    pub fn start(
        limits: &Limits,
        block_size: u32,
        budget: Budget<'a>,
        progress: &'a mut dyn FnMut(u64),
        mut series: Option<&'a mut SecondSeries>,
    ) -> Self {
        let start = budget.started();
        if let Some(series) = &mut series {
            series.start(start);
        }
        Self {
            clock: budget.clock(),
            budget,
            progress,
            precision: Precision::new(limits.precision),
            pacer: RequestPacer::new(limits, block_size.into(), start),
            series,
            slices: Slices::default(),
            latencies: Latencies::default(),
            responses: Latencies::default(),
            by_tier: [Moments::default(); 3],
            fetches: 0,
            tiers: Tiers::default(),
            missing_bytes: 0,
            holes: 0,
            passed_over: 0,
            unknown: 0,
            in_flight: 0,
            disturbed: 0,
            warmup_ns: None,
            last: start,
            next_check: start,
            throttled: false,
            stop: None,
        }
    }

    /// The budget of the run.
    pub fn budget(&mut self) -> &mut Budget<'a> {
        &mut self.budget
    }

    /// Shall the run end?
    pub fn is_over(&self) -> bool {
        self.stop.is_some()
    }

    /// What comes next is timed from now on, not from when the last request was done. Nothing may be in
    /// flight: the device would go on while nobody counts the time.
    #[inline]
    pub fn begin(&mut self) {
        debug_assert_eq!(self.in_flight, 0, "requests are in flight");
        self.last = self.clock.now();
    }

    /// The same, after preparations that took a while: no request is late for them.
    pub fn resume(&mut self) {
        let before = self.last;
        self.begin();
        self.pacer.resume(before, self.last);
    }

    /// With a limit: is the next request to wait, and until when?
    #[inline]
    pub fn early(&self) -> Option<u64> {
        if self.pacer.is_free() { None } else { self.pacer.early(self.clock.now()) }
    }

    /// The limits keep places of a queue empty that would be filled without it.
    #[inline]
    pub fn hold_back(&mut self) {
        self.throttled = true;
    }

    /// Waits until the clock shows `due`. Breaks when the run shall end.
    pub fn pause(&mut self, due: u64) -> ControlFlow<()> {
        self.hold_back();
        if self.stop.is_none() {
            // To be late by the timer would make every response late.
            let evenly = self.pacer.is_evenly_spaced();
            self.stop = if evenly { self.budget.wait_for_moment(due) } else { self.budget.sleep_until(due) };
        }
        self.begin();
        self.flow()
    }

    /// A request is about to be issued, right after the last one was done.
    #[inline]
    pub fn issue(&mut self, fetch: Fetch) -> InFlight {
        self.request(fetch, Some(self.last), true)
    }

    /// A request is about to be issued beside others, and its latency `counts` or does not.
    #[inline]
    pub fn issue_beside(&mut self, fetch: Fetch, counts: bool) -> InFlight {
        self.request(fetch, Some(self.clock.now()), counts)
    }

    /// A request was issued by others, nobody knows when: its latency won't be known.
    #[inline]
    pub fn issued_by_others(&mut self, fetch: Fetch) -> InFlight {
        self.request(fetch, None, false)
    }

    #[inline]
    fn request(&mut self, fetch: Fetch, started: Option<u64>, counts: bool) -> InFlight {
        self.in_flight += 1;
        let due = self.pacer.issue(self.in_flight, started.unwrap_or(self.last));
        InFlight { fetch, started, counts, disturbed_before: self.disturbed, due }
    }

    /// Does something that takes a while beside requests in flight: nobody sees meanwhile when they are done.
    pub fn disturb<T>(&mut self, f: impl FnOnce(&mut Budget<'a>) -> T) -> T {
        let before = self.clock.now();
        let result = f(&mut self.budget);
        self.disturbed += self.clock.now() - before;
        result
    }

    /// Was a request disturbed for so long that its latency is not to be believed? Judged by the mean, since
    /// its own would let the long ones pass.
    #[inline]
    fn was_disturbed(&self, request: &InFlight) -> bool {
        let disturbed = self.disturbed - request.disturbed_before;
        disturbed > 0 && disturbed as f64 * 20.0 > self.latencies.moments().mean().unwrap_or(0.0)
    }

    /// A request is done. The first is warm-up. One that is not `rated` makes no part of the rate, with the
    /// time before it: the queue was being filled or emptied. Breaks when the run shall end.
    #[inline]
    pub fn done(&mut self, request: InFlight, served: Served, rated: bool) -> ControlFlow<()> {
        let now = self.clock.now();
        let took = request.started.map(|started| now - started);
        self.in_flight -= 1;
        self.pacer.done(self.in_flight, now);
        // Those that find the device idle, too: they are faster than the others. Of what others issued, just
        // the wait is known.
        if took.is_none() || !self.was_disturbed(&request) {
            self.budget.latency_mut().observe(took.unwrap_or(now - self.last));
        }
        if self.fetches == self.holes {
            self.warmup_ns = took;
        } else {
            if let Some(took) = took
                && request.counts
                && !self.was_disturbed(&request)
            {
                self.record(request, served, took, now);
            }
            if rated && self.slices.add(now - self.last, 1) && self.precision.reached(&self.slices) {
                self.stop = Some(Stop::Precise);
            }
        }
        self.count(request.fetch.found, served);
        if let Some(series) = &mut self.series {
            series.add(took, served);
        }
        self.last = now;
        if now >= self.next_check {
            // While others' requests run ahead, their time runs, too.
            self.check(now, request.started.is_some());
        }
        self.flow()
    }

    /// A block lies in a hole of its file: it is not fetched. Breaks when the run shall end.
    #[inline]
    pub fn hole(&mut self) -> ControlFlow<()> {
        const HOLES_PER_LOOK: u64 = 256;
        self.fetches += 1;
        self.holes += 1;
        if self.holes.is_multiple_of(HOLES_PER_LOOK) {
            self.check(self.clock.now(), true);
        }
        self.flow()
    }

    /// A block that is in a buffer was not fetched, since it would not be cold.
    pub fn pass_over(&mut self) {
        self.passed_over += 1;
    }

    fn flow(&self) -> ControlFlow<()> {
        if self.stop.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    #[inline]
    fn record(&mut self, request: InFlight, served: Served, took: u64, now: u64) {
        match served {
            Served::Shared => self.by_tier[0].add(took),
            Served::Os => self.by_tier[1].add(took),
            Served::Device => self.by_tier[2].add(took),
            Served::Unknown => {}
        }
        self.latencies.record(took);
        if self.pacer.is_evenly_spaced() {
            self.responses.record(now.saturating_sub(request.due));
        }
    }

    #[inline]
    fn count(&mut self, found: Found, served: Served) {
        self.fetches += 1;
        match served {
            Served::Shared => self.tiers.shared += 1,
            Served::Os => self.tiers.os += 1,
            Served::Device => self.tiers.device += 1,
            Served::Unknown => self.unknown += 1,
        }
        if let (Served::Device, Found::Missing(bytes)) = (served, found) {
            self.missing_bytes += u64::from(bytes);
        }
    }

    /// Asks whether to stop, which may unwind, and tells how far it got. It takes no time of the run's when
    /// nothing is in flight; `ours` is false where the server reads ahead, of which `in_flight` knows
    /// nothing.
    fn check(&mut self, now: u64, ours: bool) {
        if self.stop.is_none() {
            self.stop = self.budget.check(now);
        }
        (self.progress)(self.fetches);
        if let Some(series) = &mut self.series {
            series.look(now);
        }
        self.next_check = now + CHECK_EVERY_NS;
        if ours && self.in_flight == 0 {
            self.begin();
        }
    }

    /// Called while nothing comes back, at least every few milliseconds where it can.
    pub fn idle(&mut self) {
        if self.stop.is_none() {
            self.stop = self.budget.check(self.clock.now());
        }
    }

    /// Takes the rest that is due after the last request.
    pub(super) fn rest(&mut self) {
        if let Some(due) = self.pacer.rest_after(self.clock.now()) {
            self.budget.rest_until(due);
        }
    }

    /// The figures of the run.
    pub(super) fn finish(mut self) -> RandomRun {
        let now = self.clock.now();
        if let Some(series) = &mut self.series {
            series.finish(now);
        }
        let steady = self.slices.steady();
        let times = !self.throttled;
        let is_evenly_spaced = self.pacer.is_evenly_spaced();
        RandomRun {
            fetches: self.fetches,
            tiers: self.tiers,
            missing_bytes: self.missing_bytes,
            holes: self.holes,
            unknown: self.unknown,
            rated: self.slices.total(),
            interval: stats::of_ratio(&steady).filter(|_| times),
            trend: stats::trend(&steady).filter(|_| times),
            latencies: self.latencies,
            responses: is_evenly_spaced.then_some(self.responses),
            by_tier: self.by_tier,
            warmup_ns: self.warmup_ns,
            elapsed_ns: now - self.budget.started(),
            throttled: self.throttled,
            passed_over: self.passed_over,
            complete: false,
            stop: self.stop,
        }
    }

    /// What recording one fetch costs, in nanoseconds, with its reading of the clock and without: the least
    /// means of several batches.
    pub fn cost_ns(clock: &dyn Clock) -> (f64, f64) {
        const BATCHES: usize = 20;
        const FETCHES: u32 = 5000;
        let least = |of: &dyn Clock| {
            let limits = Limits::none();
            let (mut should_stop, mut progress) = (|| None, |_| ());
            let budget = Budget::unlimited(of, &mut should_stop);
            let mut recorder = Recorder::start(&limits, 8192, budget, &mut progress, None);
            let fetch = Fetch { block: 0, found: Found::Missing(8192) };
            (0..BATCHES)
                .map(|_| {
                    let start = clock.now();
                    for _ in 0..FETCHES {
                        let request = recorder.issue(std::hint::black_box(fetch));
                        std::hint::black_box(recorder.done(request, Served::Device, true).is_break());
                    }
                    (clock.now() - start) as f64 / f64::from(FETCHES)
                })
                .fold(f64::INFINITY, f64::min)
        };
        (least(clock), least(&Free(std::cell::Cell::new(0))))
    }
}

/// A clock that costs nothing to read and moves on at each reading, as under a steady load.
struct Free(std::cell::Cell<u64>);

impl Clock for Free {
    #[inline]
    fn now(&self) -> u64 {
        self.0.set(self.0.get() + 20_000);
        self.0.get()
    }

    fn sleep(&self, duration: Duration) {
        self.0.set(self.0.get() + nanoseconds(duration));
    }
}
