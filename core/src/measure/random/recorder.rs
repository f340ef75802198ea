//! The stopwatch of a random run: when each request began, what it took, who served it.

use std::ops::ControlFlow;
use std::time::Duration;

use super::series::SecondSeries;
use super::{Fetch, Found, RandomRun};
use crate::measure::tiers::Tiers;
use crate::run::budget::{Limits, Pace, Rest, Stop, StopCheck, is_early};
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

/// A sleep lasts about this much longer than it should, in nanoseconds: the kernel's timer slack and the way back.
const OVERSLEEP_NS: u64 = 80_000;

/// Records a run.
pub struct Recorder<'a> {
    clock: &'a dyn Clock,
    pace: Pace<'a>,
    progress: &'a mut dyn FnMut(u64),
    precision: Precision,
    schedule: Option<Schedule>,
    busy: Option<Busy>,
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

/// The moments at which a rate limit wants requests.
struct Schedule {
    start: u64,
    every_ns: f64,
    /// How far ahead of it requests may be.
    ahead_ns: u64,
    issued: u64,
}

impl Schedule {
    fn due(&self, index: u64) -> u64 {
        self.start + (index as f64 * self.every_ns) as u64
    }
}

/// How a limit of its time has a run rest: after each time with requests in flight.
struct Busy {
    rest: Rest,
    /// Since when some are.
    since: Option<u64>,
}

impl Busy {
    /// No request joins others that are in flight for so long, in nanoseconds.
    const LONGEST: u64 = 1_000_000;

    /// Until when a request that comes at `now` is to wait; where others are in flight, at least until they are done.
    #[inline]
    fn until(&self, now: u64) -> Option<u64> {
        match self.since {
            Some(since) => (now - since >= Self::LONGEST).then_some(now),
            None => Some(self.rest.due()).filter(|&due| now < due),
        }
    }

    /// So many are in flight now.
    #[inline]
    fn see(&mut self, in_flight: usize, now: u64) {
        if in_flight > 0 {
            self.since.get_or_insert(now);
        } else if let Some(since) = self.since.take() {
            self.rest.after(since, now);
        }
    }
}

impl<'a> Recorder<'a> {
    /// Starts the clock of a run whose requests are of `block_size` bytes.
    pub fn start(
        limits: &Limits,
        block_size: u32,
        clock: &'a dyn Clock,
        should_stop: &'a mut StopCheck<'a>,
        progress: &'a mut dyn FnMut(u64),
        mut series: Option<&'a mut SecondSeries>,
    ) -> Self {
        let pace = Pace::start(limits, clock, should_stop);
        let start = pace.started();
        if let Some(series) = &mut series {
            series.start(start);
        }
        let schedule = limits.bytes_per_s(block_size.into()).map(|bytes| Schedule {
            start,
            every_ns: 1e9 * f64::from(block_size) / bytes as f64,
            ahead_ns: limits.ahead_ns(block_size.into()),
            issued: 0,
        });
        let busy = limits.max_util.map(|util| Busy { rest: Rest::new(util), since: None });
        Self {
            clock,
            pace,
            progress,
            precision: Precision::new(limits.precision),
            schedule,
            busy,
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
    pub fn pace(&mut self) -> &mut Pace<'a> {
        &mut self.pace
    }

    /// Shall the run end?
    pub fn is_over(&self) -> bool {
        self.stop.is_some()
    }

    /// What comes next is timed from now on, not from when the last request was done. Nothing may be in flight:
    /// the device would go on while nobody counts the time.
    #[inline]
    pub fn begin(&mut self) {
        debug_assert_eq!(self.in_flight, 0, "requests are in flight");
        self.last = self.clock.now();
    }

    /// The same, after preparations that took a while: no request is late for them.
    pub fn resume(&mut self) {
        let before = self.last;
        self.begin();
        if let Some(schedule) = &mut self.schedule {
            schedule.start =
                if schedule.issued == 0 { self.last } else { schedule.start + (self.last - before) };
        }
    }

    /// With a limit: is the next request to wait, and until when?
    #[inline]
    pub fn early(&self) -> Option<u64> {
        if self.schedule.is_none() && self.busy.is_none() {
            return None;
        }
        let now = self.clock.now();
        let by_schedule = self.schedule.as_ref().and_then(|schedule| {
            let due = schedule.due(schedule.issued);
            is_early(now, due, schedule.ahead_ns).then_some(due)
        });
        by_schedule.max(self.busy.as_ref().and_then(|busy| busy.until(now)))
    }

    /// The limits keep places of a queue empty that would be filled without it.
    #[inline]
    pub fn hold_back(&mut self) {
        self.throttled = true;
    }

    /// Waits until the clock shows `due`. Breaks when the run shall end.
    pub fn pause(&mut self, due: u64) -> ControlFlow<()> {
        self.hold_back();
        // To be late by the timer would make every response late.
        let early = if self.is_evenly_spaced() { OVERSLEEP_NS } else { 0 };
        self.stop = self.stop.or(self.pace.sleep_until(due.saturating_sub(early)));
        self.begin();
        while self.last < due && self.stop.is_none() {
            self.stop = self.pace.check(self.last);
            self.begin();
        }
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
        if let Some(busy) = &mut self.busy {
            busy.see(self.in_flight, started.unwrap_or(self.last));
        }
        let mut due = 0;
        if let Some(schedule) = &mut self.schedule {
            due = schedule.due(schedule.issued);
            schedule.issued += 1;
        }
        InFlight { fetch, started, counts, disturbed_before: self.disturbed, due }
    }

    /// Does something that takes a while beside requests in flight: nobody sees meanwhile when they are done.
    pub fn disturb<T>(&mut self, f: impl FnOnce(&mut Pace<'a>) -> T) -> T {
        let before = self.clock.now();
        let result = f(&mut self.pace);
        self.disturbed += self.clock.now() - before;
        result
    }

    /// Was a request disturbed for so long that its latency is not to be believed? Judged by the mean, since its own
    /// would let the long ones pass.
    #[inline]
    fn was_disturbed(&self, request: &InFlight) -> bool {
        let disturbed = self.disturbed - request.disturbed_before;
        disturbed > 0 && disturbed as f64 * 20.0 > self.latencies.moments().mean().unwrap_or(0.0)
    }

    /// A request is done. The first is warm-up. One that is not `rated` makes no part of the rate, with the time
    /// before it: the queue was being filled or emptied. Breaks when the run shall end.
    #[inline]
    pub fn done(&mut self, request: InFlight, served: Served, rated: bool) -> ControlFlow<()> {
        let now = self.clock.now();
        let took = request.started.map(|started| now - started);
        self.in_flight -= 1;
        if let Some(busy) = &mut self.busy {
            busy.see(self.in_flight, now);
        }
        // Those that find the device idle, too: they are faster than the others. Of what others issued, just the wait is known.
        if took.is_none() || !self.was_disturbed(&request) {
            self.pace.latency.observe(took.unwrap_or(now - self.last));
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

    /// Is each request due at a moment of its own, which the limits let it keep?
    #[inline]
    fn is_evenly_spaced(&self) -> bool {
        self.busy.is_none() && self.schedule.as_ref().is_some_and(|schedule| schedule.ahead_ns == 0)
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
        if self.is_evenly_spaced() {
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

    /// Asks whether to stop, which may unwind, and tells how far it got. It takes no time of the run's when nothing is in
    /// flight; `ours` is false where the server reads ahead, of which `in_flight` knows nothing.
    fn check(&mut self, now: u64, ours: bool) {
        if self.stop.is_none() {
            self.stop = self.pace.check(now);
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
            self.stop = self.pace.check(self.clock.now());
        }
    }

    /// Takes the rest that is due after the last request: what comes next may come at once.
    pub(super) fn rest(&mut self) {
        if let Some(due) = self.busy.as_ref().and_then(|busy| busy.until(self.clock.now())) {
            // It is over, and what ends it now is no news.
            let _ = self.pace.sleep_until(due);
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
        let is_evenly_spaced = self.is_evenly_spaced();
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
            elapsed_ns: now - self.pace.started(),
            throttled: self.throttled,
            passed_over: self.passed_over,
            complete: false,
            latency: self.pace.latency,
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
            let mut recorder = Recorder::start(&limits, 8192, of, &mut should_stop, &mut progress, None);
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
