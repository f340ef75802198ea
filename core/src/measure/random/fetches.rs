//! What a random run fetches, and its record: when each request began, what it took, what served it.

use std::ops::ControlFlow;

use super::{Fetch, FetchOrder, Found, RandomRun};
use crate::run::budget::{Budget, Limits, RequestPacer};
use crate::run::stopwatch::Stopwatch;
use crate::stats::{self, Slice};

/// What served a fetch.
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
            // The kernel makes up what was never written.
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
    /// When it was issued; None where others decided that.
    started: Option<u64>,
    /// Does its latency count? Not that of the requests that fill a queue.
    counts: bool,
    /// How long requests in flight had been disturbed when it was issued, in nanoseconds.
    disturbed_before: u64,
}

/// The interrupts of the caller are looked at this often, in nanoseconds.
const CHECK_EVERY_NS: u64 = 500_000;

/// What is to be fetched, and what came of it.
pub struct Fetches<'f, 'p> {
    /// Hands them out.
    pub fetch_order: &'f mut FetchOrder<'p>,
    /// Records each.
    pub record: FetchRecord,
}

/// The record of a run, beside its stopwatch, of which a block is a fetch.
#[derive(Default)]
pub struct FetchRecord {
    pacer: RequestPacer,
    /// What is added up fetch by fetch.
    found: RandomRun,
    in_flight: usize,
    /// How long requests in flight were disturbed, in all, in nanoseconds.
    disturbed: u64,
    next_check: u64,
    lead: Lead,
}

/// The beginning of a turn, which makes no part of its rate: until a moment, or so many blocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lead {
    /// When it is over, by the run's clock in nanoseconds.
    pub until: u64,
    /// Blocks after which it is over.
    pub most_blocks: u64,
}

impl FetchRecord {
    /// The record of a run that starts at `start`, and whose requests are of `block_size` bytes.
    pub fn start(limits: &Limits, block_size: u32, start: u64) -> Self {
        let pacer = RequestPacer::new(limits, block_size.into(), start);
        Self { pacer, next_check: start, ..Self::default() }
    }

    /// Leaves the beginning out of the rate.
    pub(super) fn after(self, lead: Lead) -> Self {
        Self { lead, ..self }
    }

    /// Starts timing again after preparations that took a while: no request is late because of them.
    pub fn resume(&mut self, watch: &mut Stopwatch<'_>) {
        let before = watch.last();
        watch.begin();
        self.pacer.resume(before, watch.last());
    }

    /// With a limit: is the next request to wait, and until when?
    #[inline]
    pub fn early(&self, watch: &Stopwatch<'_>) -> Option<u64> {
        if self.pacer.is_free() { None } else { self.pacer.early(watch.now()) }
    }

    /// A request is about to be issued: at `started`, or by others at a time that is not known, so that its
    /// latency won't be known. `counts` is false for one that fills a queue.
    #[inline]
    pub fn issue(
        &mut self,
        watch: &Stopwatch<'_>,
        fetch: Fetch,
        started: Option<u64>,
        counts: bool,
    ) -> InFlight {
        self.in_flight += 1;
        self.pacer.issue(self.in_flight, started.unwrap_or(watch.last()));
        InFlight { fetch, started, counts, disturbed_before: self.disturbed }
    }

    /// Does something that takes a while beside requests in flight: it is not seen meanwhile when they are
    /// done.
    pub fn disturb<T>(&mut self, watch: &mut Stopwatch<'_>, f: impl FnOnce(&mut Budget<'_>) -> T) -> T {
        let before = watch.now();
        let result = f(watch.budget());
        self.disturbed += watch.now() - before;
        result
    }

    /// Was a request disturbed too long for its latency to be believed? Judged by the mean latency, since its
    /// own would let the long ones pass.
    #[inline]
    fn was_disturbed(&self, request: &InFlight) -> bool {
        let disturbed = self.disturbed - request.disturbed_before;
        disturbed > 0 && disturbed as f64 * 20.0 > self.found.latencies.total().ns_each().unwrap_or(0.0)
    }

    /// A request is done. The first is warm-up. One that is not `rated` makes no part of the rate, with the
    /// time before it: the queue was being filled or emptied. Breaks when the run shall end.
    #[inline]
    pub fn done(
        &mut self,
        watch: &mut Stopwatch<'_>,
        request: InFlight,
        served: Served,
        rated: bool,
    ) -> ControlFlow<()> {
        let now = watch.now();
        let took = request.started.map(|started| now - started);
        self.in_flight -= 1;
        self.pacer.done(self.in_flight, now);
        // Requests that find the device idle are observed, too: they are faster than the others. Of what
        // others issued, just the wait is known.
        if took.is_none() || !self.was_disturbed(&request) {
            watch.observe(took.unwrap_or(now - watch.last()));
        }
        let is_first = watch.blocks() == self.found.holes;
        if is_first {
            self.found.warmup_ns = took;
        } else if let Some(took) = took
            && request.counts
            && !self.was_disturbed(&request)
        {
            self.record(served, took);
        }
        // A fetch that began within the lead belongs to it: so a pause at its end is not rated.
        let is_lead = watch.last() < self.lead.until && watch.blocks() < self.lead.most_blocks;
        watch.rate(rated && !is_first && !is_lead);
        watch.add(now, 1);
        self.count(request.fetch.found, served);
        if now >= self.next_check {
            // While others' requests run ahead, their time runs, too.
            self.check(watch, now, request.started.is_some());
        }
        watch.flow()
    }

    /// A block lies in a hole of its file: it is not fetched. Breaks when the run shall end.
    #[inline]
    pub fn hole(&mut self, watch: &mut Stopwatch<'_>) -> ControlFlow<()> {
        const HOLES_PER_LOOK: u64 = 256;
        watch.pass_over(1);
        self.found.holes += 1;
        if self.found.holes.is_multiple_of(HOLES_PER_LOOK) {
            self.check(watch, watch.now(), false);
        }
        // Alone, what comes next begins where this ends.
        if self.in_flight == 0 {
            watch.begin();
        }
        watch.flow()
    }

    /// A block that is in a buffer was not fetched, since it would not be cold.
    pub fn pass_over(&mut self) {
        self.found.passed_over += 1;
    }

    #[inline]
    fn record(&mut self, served: Served, took: u64) {
        match served {
            Served::Shared => self.found.by_tier[0].add(took),
            Served::Os => self.found.by_tier[1].add(took),
            Served::Device => self.found.by_tier[2].add(took),
            Served::Unknown => {}
        }
        self.found.latencies.record(took);
    }

    #[inline]
    fn count(&mut self, found: Found, served: Served) {
        match served {
            Served::Shared => self.found.tiers.shared += 1,
            Served::Os => self.found.tiers.os += 1,
            Served::Device => self.found.tiers.device += 1,
            Served::Unknown => self.found.unknown += 1,
        }
        if let (Served::Device, Found::Missing(bytes)) = (served, found) {
            self.found.missing_bytes += u64::from(bytes);
        }
    }

    /// Asks whether to stop, which may unwind, and reports progress. If nothing is in flight, this takes no
    /// time of the run; `ours` is false where the server reads ahead, of which `in_flight` knows nothing.
    fn check(&mut self, watch: &mut Stopwatch<'_>, now: u64, ours: bool) {
        watch.check(now);
        watch.report();
        self.next_check = now + CHECK_EVERY_NS;
        if ours && self.in_flight == 0 {
            watch.begin();
        }
    }

    /// Takes the rest that is due after the last request.
    pub(super) fn rest(&self, watch: &mut Stopwatch<'_>) {
        if let Some(due) = self.pacer.rest_after(watch.now()) {
            watch.budget().rest_until(due);
        }
    }

    /// The figures of the run.
    pub(super) fn finish(self, watch: &Stopwatch<'_>) -> RandomRun {
        let steady = watch.steady();
        let times = !watch.is_throttled();
        RandomRun {
            fetches: watch.blocks(),
            rated: watch.rated(),
            interval: stats::of_ratio(&steady).filter(|_| times),
            trend: stats::trend(&steady).filter(|_| times),
            slowed: stats::step_up(&Slice::times(&steady)).filter(|_| times),
            elapsed_ns: watch.elapsed_ns(),
            throttled: watch.is_throttled(),
            stop: watch.stop(),
            ..self.found
        }
    }
}
