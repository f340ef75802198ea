//! The bounds of a run, and those that every loop asks for here: its time, and the caller's own reasons to stop.
//! Bytes and rates the loops keep themselves, and tell how long their requests took.
//!
//! The caller's reasons come through a closure. It is asked between requests, never inside a timed
//! span, and it may not return at all: a cancelled PostgreSQL query leaves it by unwinding.

use std::fmt;
use std::time::Duration;

use crate::run::clock::{Clock, nanoseconds};

/// Why a run ended before it had done everything it was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The run's own duration is used up.
    Duration,
    /// The time that all runs of one statement share is used up.
    Statement,
    /// The byte budget is used up.
    Bytes,
    /// The interval is as narrow as was asked for.
    Precise,
    /// Another session waits for a lock that the run keeps it from.
    LockWaiter,
    /// The device answers the run's own requests too slowly, see [`LatencyBound`].
    Slow(BoundSource),
}

/// Who says how slowly a device may answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BoundSource {
    /// An option of the call.
    #[default]
    Call,
    /// The setting that bounds all calls.
    Setting,
}

impl Stop {
    /// Does it end all that a call still had to do, and not just the present run?
    pub fn is_for_all(self) -> bool {
        matches!(self, Stop::Statement | Stop::LockWaiter | Stop::Slow(_))
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stop::Duration => "stopped at the end of its duration",
            Stop::Statement => "stopped: this statement has used up pg_io_probe.max_duration",
            Stop::Bytes => "stopped at max_bytes",
            Stop::Precise => "stopped: the interval is as narrow as asked for",
            Stop::LockWaiter => "stopped early: another session waits for a lock on this relation",
            Stop::Slow(BoundSource::Call) => {
                "stopped early: more than ten of a thousand requests took longer than max_p99_us"
            }
            Stop::Slow(BoundSource::Setting) => {
                "stopped early: more than ten of a thousand requests took longer than pg_io_probe.max_p99"
            }
        })
    }
}

/// What the caller's closure may answer: nothing, or a reason to stop.
pub type StopCheck<'a> = dyn FnMut() -> Option<Stop> + 'a;

/// Does the 99th percentile of a run's own latencies stay within its bound? Where it doesn't, the device has more to do than
/// it can, and a probe must not add to that.
///
/// Requests are looked at by the thousand. As soon as more than ten of those took longer than the bound, it is passed,
/// whatever the rest will do: a run notices after eleven slow requests, and does not forgive them for the fast ones that were
/// before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyBound {
    /// In nanoseconds.
    bound: u64,
    of: BoundSource,
    requests: u32,
    slow: u32,
}

impl LatencyBound {
    const REQUESTS: u32 = 1000;

    /// Nothing is too slow.
    pub const UNBOUND: Self = Self { bound: u64::MAX, of: BoundSource::Call, requests: 0, slow: 0 };

    /// With a bound that the call gives.
    pub fn within(bound: Duration) -> Self {
        Self { bound: nanoseconds(bound), ..Self::UNBOUND }
    }

    /// The same with a bound of somebody's.
    pub fn of(self, of: BoundSource) -> Self {
        Self { of, ..self }
    }

    /// A request took so many nanoseconds.
    #[inline]
    pub fn observe(&mut self, ns: u64) {
        self.slow += u32::from(self.is_slow(ns));
        self.answered(1);
    }

    /// So many requests took no longer than the bound.
    pub fn observe_fast(&mut self, requests: u64) {
        let whole = u64::from(Self::REQUESTS);
        if requests >= whole {
            self.answered(whole);
        }
        self.answered(requests % whole);
    }

    /// Is a request that takes so many nanoseconds over the bound?
    #[inline]
    pub fn is_slow(&self, ns: u64) -> bool {
        ns > self.bound
    }

    #[inline]
    fn answered(&mut self, requests: u64) {
        self.requests += requests as u32;
        // What has passed the bound stays so.
        if self.requests >= Self::REQUESTS && !self.is_passed() {
            self.requests %= Self::REQUESTS;
            self.slow = 0;
        }
    }

    /// Is the percentile over the bound?
    #[inline]
    pub fn is_passed(&self) -> bool {
        self.slow * 100 > Self::REQUESTS
    }

    /// The reason to stop, if it is.
    #[inline]
    pub fn stop(&self) -> Option<Stop> {
        self.is_passed().then_some(Stop::Slow(self.of))
    }
}

impl Default for LatencyBound {
    fn default() -> Self {
        Self::UNBOUND
    }
}

/// Bounds of one run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long the run may last.
    pub duration: Duration,
    /// What is left of the time that several runs share.
    pub shared: Duration,
    /// Bytes of data that may be read, or made durable. Holes are free: they cost the device nothing.
    pub max_bytes: u64,
    /// Requests a second, if limited: single ones come evenly spaced, as those of an application might.
    pub max_iops: Option<u32>,
    /// MiB (2^20 bytes) a second, if limited: requests come in bursts, which wakes the processor less often.
    pub max_mib_per_s: Option<u32>,
    /// The share of its time, over 0 and at most 1, in which requests of the run may be in flight, if limited: after each it
    /// rests so long.
    pub max_util: Option<f64>,
    /// Stop once half the interval's width is at most this share of the value (0.05 is ±5 %).
    pub precision: Option<f64>,
    /// The bound of its latencies, and what is known of them from earlier runs of the same probe.
    pub latency: LatencyBound,
}

impl Limits {
    /// No bounds at all.
    pub const fn none() -> Self {
        Self {
            duration: Duration::MAX,
            shared: Duration::MAX,
            max_bytes: u64::MAX,
            max_iops: None,
            max_mib_per_s: None,
            max_util: None,
            precision: None,
            latency: LatencyBound::UNBOUND,
        }
    }

    /// The same without what makes a run pause: for parts of it whose pauses are made between them.
    pub fn without_pauses(self) -> Self {
        Self { max_iops: None, max_mib_per_s: None, max_util: None, ..self }
    }

    /// Does the time that several runs share end this one before its own duration does? A run that may last as long as its
    /// statement loses a little to what comes before it, which is no news.
    pub fn are_cut_short(&self) -> bool {
        self.shared < self.duration / 20 * 19
    }

    /// What makes a run of requests of `request_bytes` pause; None where nothing does.
    pub fn pauses(&self, request_bytes: u64) -> Option<Pauses> {
        let bytes_per_s = self.bytes_per_s(request_bytes);
        let pauses = Pauses { bytes_per_s, max_util: self.max_util };
        (bytes_per_s.is_some() || self.max_util.is_some()).then_some(pauses)
    }

    /// The bytes a second that both rate limits allow for requests of `request_bytes`.
    pub fn bytes_per_s(&self, request_bytes: u64) -> Option<u64> {
        let by_count = self.max_iops.map(|n| u64::from(n) * request_bytes);
        let by_size = self.max_mib_per_s.map(|n| u64::from(n) << 20);
        match (by_count, by_size) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// How far ahead of the schedule that these limits make requests of `request_bytes` may be before they wait until it has
    /// caught up, in nanoseconds.
    ///
    /// To be woken for each request takes more of the processor from those who work beside a probe than the requests do.
    pub(crate) fn ahead_ns(&self, request_bytes: u64) -> u64 {
        let by_size = Self { max_iops: None, ..*self }.bytes_per_s(request_bytes);
        let is_by_size = by_size.is_some() && by_size == self.bytes_per_s(request_bytes);
        // A share of the time leaves no burst without its rest.
        if is_by_size && self.max_util.is_none() { BURST_NS } else { 0 }
    }
}

/// The pauses that limits of the rate and of the time ask for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pauses {
    bytes_per_s: Option<u64>,
    max_util: Option<f64>,
}

impl Pauses {
    /// After so many nanoseconds from their begin others may follow requests of so many bytes that were in flight for
    /// `busy_ns`.
    pub(crate) fn period(&self, bytes: u64, busy_ns: u64) -> u64 {
        let by_bytes = self.bytes_per_s.map_or(0, |rate| due_after(bytes, rate));
        by_bytes.max(self.max_util.map_or(0, |util| with_rest(busy_ns, util)))
    }
}

/// Time in which requests were in flight, with the rest that keeps it at that share of both, in nanoseconds.
fn with_rest(busy_ns: u64, util: f64) -> u64 {
    (busy_ns as f64 / util) as u64
}

/// When a run that may have requests in flight for a share of its time may begin others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rest {
    util: f64,
    due: u64,
}

impl Rest {
    /// Who sleeps wakes later than it should, which may be made up for. Nothing else is saved up, in nanoseconds.
    const MADE_UP_NS: u64 = 1_000_000;

    /// At once.
    pub(crate) fn new(util: f64) -> Self {
        Self { util, due: 0 }
    }

    /// After requests that were in flight from `since` to `until`, in the clock's nanoseconds.
    pub(crate) fn after(&mut self, since: u64, until: u64) {
        let begin = self.due.max(since.saturating_sub(Self::MADE_UP_NS));
        self.due = begin.saturating_add(with_rest(until - since, self.util));
    }

    /// From when on.
    pub(crate) fn due(&self) -> u64 {
        self.due
    }
}

/// What bursts of requests make up for, in nanoseconds.
pub(crate) const BURST_NS: u64 = 10_000_000;

/// Is a request that is due at `due` to wait until then, if requests may be so far ahead of their schedule?
#[inline]
pub(crate) fn is_early(now: u64, due: u64, ahead_ns: u64) -> bool {
    now < due && now + ahead_ns <= due
}

/// When so many bytes are due at so many a second, in nanoseconds from the start.
pub(crate) fn due_after(bytes: u64, bytes_per_s: u64) -> u64 {
    let due = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1));
    u64::try_from(due).unwrap_or(u64::MAX)
}

/// The budget of a run that has started.
pub struct Pace<'a> {
    clock: &'a dyn Clock,
    should_stop: &'a mut StopCheck<'a>,
    started: u64,
    deadline: u64,
    at_deadline: Stop,
    /// What is known of its latencies, and of those before: each loop tells it how long its requests took.
    pub latency: LatencyBound,
    /// The caller's reason to stop, once there was one: it may not be given twice.
    stopped: Option<Stop>,
}

impl<'a> Pace<'a> {
    /// Long sleeps are cut into pieces of this length, so that the closure is asked in between.
    const NAP: Duration = Duration::from_millis(10);

    /// Starts the clock.
    pub fn start(limits: &Limits, clock: &'a dyn Clock, should_stop: &'a mut StopCheck<'a>) -> Self {
        let started = clock.now();
        let length = limits.duration.min(limits.shared);
        let at_deadline = if limits.are_cut_short() { Stop::Statement } else { Stop::Duration };
        let deadline = started.saturating_add(nanoseconds(length));
        Self { clock, should_stop, started, deadline, at_deadline, latency: limits.latency, stopped: None }
    }

    /// When the run started, in the clock's nanoseconds.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Is there a reason to stop at `now`?
    #[inline]
    pub fn check(&mut self, now: u64) -> Option<Stop> {
        if now >= self.deadline {
            return Some(self.at_deadline);
        }
        if self.stopped.is_none() {
            self.stopped = (self.should_stop)().or_else(|| self.latency.stop());
        }
        self.stopped
    }

    /// Is there a reason to stop now?
    pub fn poll(&mut self) -> Option<Stop> {
        self.check(self.clock.now())
    }

    /// Sleeps until the clock shows `when`, or until there is a reason to stop.
    pub fn sleep_until(&mut self, when: u64) -> Option<Stop> {
        loop {
            let now = self.clock.now();
            if let Some(stop) = self.check(now) {
                return Some(stop);
            }
            if now >= when {
                return None;
            }
            let left = Duration::from_nanos(when.min(self.deadline) - now);
            self.clock.sleep(left.min(Self::NAP));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::clock::{Manual, Monotonic};

    const LIMITS: Limits = Limits {
        duration: Duration::from_millis(5),
        shared: Duration::from_secs(1),
        max_bytes: 1 << 30,
        max_iops: None,
        max_mib_per_s: None,
        max_util: None,
        precision: None,
        latency: LatencyBound::UNBOUND,
    };

    #[test]
    fn more_than_one_in_a_hundred_is_too_many() {
        let bound = 1_000;
        let after = |slow_every: usize, requests: usize| {
            let mut latency = LatencyBound::within(Duration::from_nanos(bound));
            (1..=requests).find(|index| {
                latency.observe(if index % slow_every == 0 { bound + 1 } else { bound });
                latency.is_passed()
            })
        };
        // Ten of each thousand are one in a hundred, which is the bound itself.
        assert_eq!(after(100, 100_000), None);
        assert_eq!(after(90, 100_000), Some(990));
        assert_eq!(after(1, 100_000), Some(11));
        // It stays passed, and what was long ago doesn't help.
        let mut latency = LatencyBound::within(Duration::from_nanos(bound));
        (0..100_500).for_each(|_| latency.observe(1));
        (0..11).for_each(|_| latency.observe(2 * bound));
        assert!(latency.is_passed());
        (0..100_000).for_each(|_| latency.observe(1));
        assert!(latency.is_passed());
    }

    #[test]
    fn a_run_with_a_slow_tail_is_stopped() {
        let clock = Manual::default();
        let mut should_stop = || None;
        let limits = Limits { latency: LatencyBound::within(Duration::from_micros(10)), ..LIMITS };
        let mut pace = Pace::start(&limits, &clock, &mut should_stop);
        (0..10).for_each(|_| pace.latency.observe(20_000));
        assert_eq!(pace.poll(), None);
        pace.latency.observe(20_000);
        assert_eq!(pace.poll(), Some(Stop::Slow(BoundSource::Call)));
        // The next run of the same probe does not begin, and it is told whose bound it was.
        let (next, mut should_stop) =
            (Limits { latency: pace.latency.of(BoundSource::Setting), ..LIMITS }, || None);
        let stop = Pace::start(&next, &clock, &mut should_stop).poll().expect("a reason");
        assert_eq!(stop, Stop::Slow(BoundSource::Setting));
        assert!(stop.is_for_all() && stop.to_string().ends_with(" took longer than pg_io_probe.max_p99"));
    }

    #[test]
    fn the_nearer_deadline_gives_the_reason() {
        for (shared_us, reason) in
            [(1_000_000, Stop::Duration), (4_900, Stop::Duration), (3_000, Stop::Statement)]
        {
            let clock = Manual::default();
            let mut should_stop = || None;
            let limits = Limits { shared: Duration::from_micros(shared_us), ..LIMITS };
            let mut pace = Pace::start(&limits, &clock, &mut should_stop);
            assert_eq!(pace.check(clock.now()), None);
            clock.advance(5_000_000);
            assert_eq!(pace.check(clock.now()), Some(reason));
        }
    }

    #[test]
    fn a_reason_that_is_given_once_stays() {
        let clock = Manual::default();
        let mut reasons = vec![Stop::LockWaiter];
        let mut should_stop = || reasons.pop();
        let mut pace = Pace::start(&LIMITS, &clock, &mut should_stop);
        assert_eq!((pace.poll(), pace.poll()), (Some(Stop::LockWaiter), Some(Stop::LockWaiter)));
    }

    #[test]
    fn the_caller_can_stop_a_sleep() {
        let mut asked = 0;
        let mut should_stop = || {
            asked += 1;
            (asked == 3).then_some(Stop::LockWaiter)
        };
        let clock = Monotonic;
        let limits = Limits { duration: Duration::from_secs(60), shared: Duration::from_secs(60), ..LIMITS };
        let mut pace = Pace::start(&limits, &clock, &mut should_stop);
        let end = clock.now() + 60_000_000_000;
        assert_eq!(pace.sleep_until(end), Some(Stop::LockWaiter));
    }

    #[test]
    fn a_share_of_the_time_leaves_the_rest_to_others() {
        assert_eq!(LIMITS.pauses(8192), None);
        let pauses = |limits: Limits| limits.pauses(1 << 20).expect("a limit");
        let rested = pauses(Limits { max_util: Some(0.05), ..LIMITS });
        assert_eq!((rested.period(1 << 30, 0), rested.period(0, 1_000)), (0, 20_000));
        // The tighter of both counts.
        let both = pauses(Limits { max_mib_per_s: Some(1), max_util: Some(0.5), ..LIMITS });
        assert_eq!((both.period(1 << 20, 1_000), both.period(1, 1_000_000)), (1_000_000_000, 2_000_000));
        assert_eq!(
            Limits { max_util: Some(0.5), max_iops: Some(1), ..LIMITS }.without_pauses().pauses(1),
            None
        );
    }

    #[test]
    fn rests_can_not_be_saved_up() {
        const MS: u64 = 1_000_000;
        let mut rest = Rest::new(0.1);
        assert_eq!(rest.due(), 0);
        // A second late, of which a millisecond is made up for.
        rest.after(1000 * MS, 1002 * MS);
        assert_eq!(rest.due(), 999 * MS + 20 * MS);
        rest.after(1019 * MS, 1020 * MS);
        assert_eq!(rest.due(), 1029 * MS);
        // However small the share is, and however long it took, it is not before.
        let mut never = Rest::new(1e-300);
        never.after(1, 2);
        assert_eq!(never.due(), u64::MAX);
        never.after(2, 3);
        assert_eq!(never.due(), u64::MAX);
    }

    #[test]
    fn the_tighter_rate_counts() {
        let both = Limits { max_iops: Some(100), max_mib_per_s: Some(1), ..LIMITS };
        assert_eq!(both.bytes_per_s(8192), Some(819_200));
        assert_eq!(both.bytes_per_s(1 << 20), Some(1 << 20));
        assert_eq!(LIMITS.bytes_per_s(8192), None);
        assert!(is_early(9, 10, 0) && !is_early(10, 10, 0) && is_early(5, 10, 5) && !is_early(6, 10, 5));
        assert_eq!((both.ahead_ns(8192), both.ahead_ns(1 << 20), LIMITS.ahead_ns(8192)), (0, BURST_NS, 0));
    }
}
