//! What a run may use, and when it waits or stops: its time, bytes, rate and share of the device, the bound
//! of its latencies, and the caller's own reasons. What waits for a limit in this crate sleeps here.
//!
//! A [`Budget`] may have parts: a statement's has those of its runs, and a run's those of its turns. A part
//! does not outlast what it is a part of, unless it is of use only as a whole. It spends the bytes of the
//! whole, knows the same latencies, and hears the same reasons to stop.
//!
//! Three kinds of limiters tell when something is due, which a budget then waits for. What comes one at a
//! time has a `Pacer`; requests beside others in flight have a `RequestPacer`; reading in order has
//! `Bursts`.
//!
//! The caller's reasons come through a closure. It is asked between requests, never inside a timed span, and
//! it may not return at all: a cancelled PostgreSQL query leaves it by unwinding.

mod bursts;
mod latency;
mod limits;
mod pacer;
mod requests;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) use bursts::Bursts;
pub use latency::{BoundSource, LatencyBound};
pub use limits::Limits;
pub(crate) use pacer::{Pacer, Rest};
pub(crate) use requests::RequestPacer;

use crate::run::clock::{Clock, Monotonic, nanoseconds};
use crate::{Error, Result};

/// How much of a schedule a burst of requests makes up for, in nanoseconds.
const BURST_NS: u64 = 10_000_000;

/// Long sleeps are cut into pieces of this length, so that there is a look for reasons to stop in between.
pub(crate) const NAP: Duration = Duration::from_millis(10);

/// Why a run ended before it had done everything it was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The run's own duration is used up.
    Duration,
    /// The time that all runs of one statement share is used up.
    Statement,
    /// The time that the server leaves the statement is nearly used up.
    Timeout,
    /// The byte budget is used up.
    Bytes,
    /// The interval is as narrow as was asked for.
    Precise,
    /// Another session waits for a lock that the run keeps it from.
    LockWaiter,
    /// The device answers the run's own requests too slowly, see [`LatencyBound`].
    Slow(BoundSource),
}

impl Stop {
    /// Would more time have helped?
    pub fn is_of_time(self) -> bool {
        matches!(self, Stop::Duration | Stop::Statement | Stop::Timeout)
    }

    /// Does it end all that a call still had to do, and not just the present run?
    pub fn is_for_all(self) -> bool {
        matches!(self, Stop::Statement | Stop::Timeout | Stop::LockWaiter | Stop::Slow(_))
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stop::Duration => "stopped at the end of its duration",
            Stop::Statement => "stopped: this statement has used up pg_io_probe.max_duration",
            Stop::Timeout => "stopped: statement_timeout leaves no more time",
            Stop::Bytes => "stopped at max_bytes",
            Stop::Precise => "stopped: the confidence interval is as narrow as asked for",
            Stop::LockWaiter => "stopped early: another session waits for a lock on this relation",
            Stop::Slow(BoundSource::Call) => {
                "stopped early: more than 10 of the last 1000 requests took longer than max_p99"
            }
            Stop::Slow(BoundSource::Setting) => {
                "stopped early: more than 10 of the last 1000 requests took longer than pg_io_probe.max_p99"
            }
        })
    }
}

/// Why work gave no result.
#[derive(Debug)]
pub enum End {
    /// It was stopped.
    Stopped(Stop),
    /// It failed.
    Failed(Error),
}

/// What work gives that may be stopped before it has a result.
pub type Outcome<T> = std::result::Result<T, End>;

impl End {
    /// What stopped it.
    ///
    /// # Errors
    /// The error by which it failed.
    pub fn stop(self) -> Result<Stop> {
        match self {
            Self::Stopped(stop) => Ok(stop),
            Self::Failed(error) => Err(error),
        }
    }
}

/// Ends work if there is a reason to.
///
/// # Errors
/// The reason.
pub(crate) fn stop_if(stop: Option<Stop>) -> Outcome<()> {
    stop.map_or(Ok(()), |stop| Err(stop.into()))
}

/// What stopped work that has no result, if anything did.
///
/// # Errors
/// The error by which it failed.
pub fn stopped(outcome: Outcome<()>) -> Result<Option<Stop>> {
    match outcome {
        Ok(()) => Ok(None),
        Err(end) => end.stop().map(Some),
    }
}

impl From<Stop> for End {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// What the caller's closure may answer: nothing, or a reason to stop.
pub type StopCheck<'a> = dyn FnMut() -> Option<Stop> + 'a;

/// The budget of a run that has started, or of several.
pub struct Budget<'a> {
    clock: &'a dyn Clock,
    should_stop: &'a mut StopCheck<'a>,
    started: u64,
    deadline: u64,
    at_deadline: Stop,
    known: Known,
    /// What the budget that this one is a part of knows.
    parent: Option<&'a mut Known>,
    /// The most that `known.spent`, which counts the bytes of all parts, may reach.
    most_bytes: u64,
    pacer: Pacer,
    paused: bool,
}

/// What all parts of a budget know.
#[derive(Debug, Clone, Copy)]
struct Known {
    latency: LatencyBound,
    /// Bytes that were moved.
    spent: u64,
    /// The caller's reason to stop, once there was one: it may not be given twice.
    stopped: Option<Stop>,
}

impl<'a> Budget<'a> {
    /// The budget of one statement, which has `left` for all of its runs.
    pub fn of_statement(left: Duration, clock: &'a dyn Clock, should_stop: &'a mut StopCheck<'a>) -> Self {
        let started = clock.now();
        Self {
            clock,
            should_stop,
            started,
            deadline: started.saturating_add(nanoseconds(left)),
            at_deadline: Stop::Statement,
            known: Known { latency: LatencyBound::UNBOUND, spent: 0, stopped: None },
            parent: None,
            most_bytes: u64::MAX,
            pacer: Pacer::default(),
            paused: false,
        }
    }

    /// Gives the deadline this reason.
    pub fn ending_by(mut self, at_deadline: Stop) -> Self {
        self.at_deadline = at_deadline;
        self
    }

    /// A budget without a deadline.
    pub fn unlimited(clock: &'a dyn Clock, should_stop: &'a mut StopCheck<'a>) -> Self {
        Self::of_statement(Duration::MAX, clock, should_stop)
    }

    /// A part of this budget, which begins now.
    pub fn part(&mut self, limits: &Limits) -> Budget<'_> {
        let started = self.clock.now();
        let left = Duration::from_nanos(self.deadline.saturating_sub(started));
        // Without a deadline nothing is cut short, however long it may last.
        let is_cut_short = self.deadline < u64::MAX && limits.are_cut_short_by(left);
        let most_bytes = self.known.spent.saturating_add(limits.max_bytes).min(self.most_bytes);
        let latency = if self.known.latency.is_bound() { self.known.latency } else { limits.latency };
        Budget {
            clock: self.clock,
            should_stop: &mut *self.should_stop,
            started,
            deadline: started.saturating_add(nanoseconds(limits.duration)).min(self.deadline),
            at_deadline: if is_cut_short { self.at_deadline } else { Stop::Duration },
            known: Known { latency, ..self.known },
            parent: Some(&mut self.known),
            most_bytes,
            pacer: Pacer::default(),
            paused: false,
        }
    }

    /// A part that begins now and has no end of its own: what it does is of use only as a whole.
    pub(crate) fn part_to_its_end(&mut self) -> Budget<'_> {
        let mut part = self.part(&Limits::none());
        part.deadline = u64::MAX;
        part
    }

    /// The clock that it goes by.
    pub fn clock(&self) -> &'a dyn Clock {
        self.clock
    }

    /// When it started, in the clock's nanoseconds.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// The time that it has in all.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.deadline.saturating_sub(self.started))
    }

    /// The time that is left.
    pub fn time_left(&self) -> Duration {
        Duration::from_nanos(self.deadline.saturating_sub(self.clock.now()))
    }

    /// Bytes that are left of it.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.most_bytes.saturating_sub(self.known.spent)
    }

    /// `bytes` bytes were moved.
    pub(crate) fn spend(&mut self, bytes: u64) {
        self.known.spent = self.known.spent.saturating_add(bytes);
    }

    /// Gives back `bytes` bytes that were spent, but are not moved after all.
    pub fn refund(&mut self, bytes: u64) {
        self.known.spent = self.known.spent.saturating_sub(bytes);
    }

    /// What is known of the latencies of its requests, and of those before.
    #[inline]
    pub(crate) fn latency(&self) -> LatencyBound {
        self.known.latency
    }

    /// What is known of the latencies, to add to: each loop observes how long its requests took.
    #[inline]
    pub(crate) fn latency_mut(&mut self) -> &mut LatencyBound {
        &mut self.known.latency
    }

    /// Is its time up at `now`?
    #[inline]
    pub fn is_up(&self, now: u64) -> bool {
        now >= self.deadline
    }

    /// Is there a reason to stop at `now`?
    #[inline]
    pub fn check(&mut self, now: u64) -> Option<Stop> {
        if self.is_up(now) {
            return Some(self.at_deadline);
        }
        if self.known.stopped.is_none() {
            self.known.stopped = (self.should_stop)().or_else(|| self.known.latency.stop());
        }
        self.known.stopped
    }

    /// Is there a reason to stop now?
    pub fn poll(&mut self) -> Option<Stop> {
        self.check(self.clock.now())
    }

    /// Has the caller a reason to stop? Ignores the deadline, for work that is not cut short by it.
    pub fn caller_stop(&mut self) -> Option<Stop> {
        if self.known.stopped.is_none() {
            self.known.stopped = (self.should_stop)();
        }
        self.known.stopped
    }

    /// Sleeps until the clock shows `when`, or until there is a reason to stop.
    pub(crate) fn sleep_until(&mut self, when: u64) -> Option<Stop> {
        loop {
            let now = self.clock.now();
            if let Some(stop) = self.check(now) {
                return Some(stop);
            }
            if now >= when {
                return None;
            }
            let left = Duration::from_nanos(when.min(self.deadline) - now);
            self.clock.sleep(left.min(NAP));
        }
    }

    /// Sleeps for `length`, at most [`NAP`], and says whether there is a reason to stop. It sleeps a tenth of
    /// [`NAP`] at least, since a loop that looks for something must not spin.
    pub(crate) fn nap(&mut self, length: Duration) -> Option<Stop> {
        self.clock.sleep(length.clamp(NAP / 10, NAP));
        self.poll()
    }

    /// From now on these limits hold for what comes one at a time, in requests of `request_bytes`.
    pub(crate) fn pace(&mut self, limits: &Limits, request_bytes: u64) {
        self.pacer = Pacer::new(limits, request_bytes, self.started);
    }

    /// The pacer, which tells when something is due that comes one at a time.
    #[inline]
    pub(crate) fn pacer(&mut self) -> &mut Pacer {
        &mut self.pacer
    }

    /// Waits until the limits let it go on, or there is a reason to stop.
    pub(crate) fn wait(&mut self) -> Option<Stop> {
        self.wait_until(self.pacer.due())
    }

    fn wait_until(&mut self, due: u64) -> Option<Stop> {
        let now = self.clock.now();
        self.paused |= due > now && !self.is_up(now);
        self.sleep_until(due)
    }

    /// At the end of a run, waits until it has had its rest: what comes next may come at once. What ends the
    /// wait early is no news.
    pub(crate) fn rest_until(&mut self, rested: u64) {
        let _ = self.wait_until(rested);
    }

    /// At the end of a run of turns, waits until the last one has had the rest that a limit of the time asks
    /// for.
    pub(crate) fn rest_at_end(&mut self, limits: &Limits) {
        if limits.max_util.is_some() {
            self.rest_until(self.pacer.due());
        }
    }

    /// Has it waited for its limits?
    pub(crate) fn has_paused(&self) -> bool {
        self.paused
    }
}

impl Drop for Budget<'_> {
    fn drop(&mut self) {
        if let Some(parent) = &mut self.parent {
            **parent = self.known;
        }
    }
}

/// Waits while something is busy, for `patience` at most; looks at it once every `nap`.
///
/// # Errors
/// The error of a look.
pub(crate) fn wait_while<E>(
    patience: Duration,
    nap: Duration,
    is_busy: &mut dyn FnMut() -> Result<bool, E>,
) -> Result<(), E> {
    let until = Monotonic.now().saturating_add(nanoseconds(patience));
    while Monotonic.now() < until && is_busy()? {
        Monotonic.sleep(nap);
    }
    Ok(())
}

/// Sleeps in a thread of a run until its clock shows `when`, or all is over: a thread can't share the
/// caller's budget. True if that took time.
pub(crate) fn sleep_in_thread(clock: &impl Clock, when: u64, over: &AtomicBool) -> bool {
    let mut slept = false;
    while !over.load(Ordering::Relaxed) {
        let left = when.saturating_sub(clock.now());
        if left == 0 {
            break;
        }
        slept = true;
        clock.sleep(NAP.min(Duration::from_nanos(left)));
    }
    slept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::clock::Manual;

    const LIMITS: Limits = Limits { duration: Duration::from_millis(5), ..Limits::none() };
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_run_with_a_slow_tail_is_stopped() {
        let clock = Manual::default();
        let mut should_stop = || None;
        let mut statement = Budget::of_statement(SECOND, &clock, &mut should_stop);
        let of_setting = LatencyBound::within(Duration::from_micros(10)).of(BoundSource::Setting);
        let limits = Limits { latency: of_setting, ..LIMITS };
        let mut run = statement.part(&limits);
        (0..10).for_each(|_| run.latency_mut().observe(20_000));
        assert_eq!(run.poll(), None);
        run.latency_mut().observe(20_000);
        assert_eq!(run.poll(), Some(Stop::Slow(BoundSource::Setting)));
        drop(run);
        // The next run of the same statement does not begin, though its limits know nothing of that.
        let stop = statement.part(&limits).poll().expect("a reason");
        assert!(stop.is_for_all() && stop.to_string().ends_with(" took longer than pg_io_probe.max_p99"));
    }

    #[test]
    fn the_nearer_deadline_gives_the_reason() {
        for (left_us, reason) in
            [(1_000_000, Stop::Duration), (4_900, Stop::Duration), (3_000, Stop::Statement)]
        {
            let clock = Manual::default();
            let mut should_stop = || None;
            let mut statement =
                Budget::of_statement(Duration::from_micros(left_us), &clock, &mut should_stop);
            let mut run = statement.part(&LIMITS);
            assert_eq!(run.check(clock.now()), None);
            clock.advance(5_000_000);
            assert_eq!(run.check(clock.now()), Some(reason));
        }
    }

    #[test]
    fn a_part_never_outlasts_the_whole() {
        let clock = Manual::default();
        let mut should_stop = || None;
        let mut statement = Budget::of_statement(SECOND, &clock, &mut should_stop);
        let mut run = statement.part(&LIMITS);
        clock.advance(4_000_000);
        // It ends for the same reason as what it is a part of, at the same moment.
        let mut turn = run.part(&LIMITS);
        assert_eq!((turn.length(), turn.time_left()), (Duration::from_millis(1), Duration::from_millis(1)));
        assert_eq!(turn.sleep_until(u64::MAX), Some(Stop::Duration));
        assert_eq!(clock.now(), 5_000_000);
        drop(turn);
        assert_eq!((run.time_left(), run.poll()), (Duration::ZERO, Some(Stop::Duration)));
        drop(run);
        assert_eq!(statement.poll(), None);
    }

    #[test]
    fn a_reason_that_is_given_once_stays() {
        let clock = Manual::default();
        let mut reasons = vec![Stop::LockWaiter];
        let mut should_stop = || reasons.pop();
        let mut whole = Budget::unlimited(&clock, &mut should_stop);
        let mut part = whole.part(&LIMITS);
        assert_eq!((part.poll(), part.caller_stop()), (Some(Stop::LockWaiter), Some(Stop::LockWaiter)));
        drop(part);
        assert_eq!(whole.poll(), Some(Stop::LockWaiter));
    }

    #[test]
    fn the_caller_can_stop_a_sleep() {
        let mut asked = 0;
        let mut should_stop = || {
            asked += 1;
            (asked == 3).then_some(Stop::LockWaiter)
        };
        let clock = Monotonic;
        let mut budget = Budget::unlimited(&clock, &mut should_stop);
        let end = clock.now() + 60_000_000_000;
        assert_eq!(budget.sleep_until(end), Some(Stop::LockWaiter));
    }

    #[test]
    fn bytes_of_a_part_are_those_of_the_whole() {
        let mut should_stop = || None;
        let mut whole = Budget::unlimited(&Monotonic, &mut should_stop);
        let mut part = whole.part(&Limits { max_bytes: 10, ..LIMITS });
        part.spend(7);
        let mut turn = part.part(&Limits { max_bytes: 2, ..LIMITS });
        turn.spend(1);
        assert_eq!(turn.bytes_left(), 1);
        drop(turn);
        assert_eq!((part.bytes_left(), part.part(&LIMITS).bytes_left()), (2, 2));
        part.spend(7);
        assert_eq!(part.bytes_left(), 0);
        part.refund(7);
        assert_eq!(part.bytes_left(), 2);
        drop(part);
        assert_eq!(whole.bytes_left(), u64::MAX - 8);
    }

    #[test]
    fn nobody_waits_for_ever() {
        let (second, nap) = (Duration::from_secs(1), Duration::from_micros(100));
        let mut looks = 0;
        let mut is_busy = || {
            looks += 1;
            Ok::<bool, ()>(looks < 3)
        };
        assert_eq!(wait_while(second, nap, &mut is_busy), Ok(()));
        assert_eq!((looks, wait_while(second, nap, &mut || Err(7))), (3, Err(7)));
        assert_eq!(wait_while(10 * nap, nap, &mut || Ok::<bool, ()>(true)), Ok(()));
    }

    #[test]
    fn a_thread_sleeps_until_all_is_over() {
        let (clock, over) = (Manual::default(), AtomicBool::new(false));
        assert!(sleep_in_thread(&clock, 25_000_000, &over) && clock.now() == 25_000_000);
        assert!(!sleep_in_thread(&clock, 25_000_000, &over));
        over.store(true, Ordering::Relaxed);
        assert!(!sleep_in_thread(&clock, u64::MAX, &over));
    }
}
