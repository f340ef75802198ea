//! Loads: streams of requests, one as fast as answers come, another when its requests are due.
//!
//! A closed loop sends its next request when one is answered, or after that when a limit lets it. In an open
//! loop request n is due n / rate after the start, at even distances, whether others are answered or not. One
//! that had to wait for others counts from when it was due, so that a device that can't keep up shows
//! latencies that grow; one for whose time a thread slept counts from when it was sent.
//!
//! A stream is sent through io_uring by one thread, or, where that is refused, or only one request is in
//! flight, by a thread for each.
//!
//! All streams begin together. A run lasts for its time, and then until the streams that have a number of
//! requests are done. What is answered in the first tenth of the time, or of the bytes if these are
//! limited, is warm-up. A stream that runs again goes on with other requests.
//!
//! # Limitations and caveats
//! - No more requests of a stream are in flight than it has workers.
//! - What is due, and not answered when the time is over, is in no figure: where a stream does not reach its
//!   rate, its latencies are too low.
//! - By threads each request costs two changes of threads: some tens of thousands a second are the most on
//!   two processors.

mod requests;
mod ring;

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use requests::{BlockReads, Requests, ScratchWrites};
pub use ring::RingRequests;

use ring::RingFeed;

use crate::engine::{self, Kind};
use crate::measure::contradictions;
use crate::run::budget::{Budget, LatencyBound, Limits, Stop, sleep_in_thread};
use crate::run::clock::{Clock, Monotonic, nanoseconds};
use crate::run::lock;
use crate::run::workers::WorkerThreads;
use crate::stats::{Latencies, Slice};
use crate::{Error, Result};

/// The threads' name in `/proc`.
const NAME: &str = "io_probe_load";

/// This part of the time is warm-up.
const WARM_UP: u64 = 10;

/// Between two looks whether streams of so many requests are done.
const LOOK: Duration = Duration::from_millis(1);

/// When the requests of a stream are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// As fast as others are answered.
    Free,
    /// As fast as that, up to so many a second: a limit, which nothing that was late may make up for.
    AtMost(f64),
    /// So many a second, each when it is due.
    Due(f64),
}

/// Requests that go on until the time is over.
#[derive(Clone)]
pub struct Stream {
    /// What they are.
    pub requests: Arc<dyn Requests>,
    /// When they are sent.
    pub pace: Pace,
    /// Most in flight.
    pub workers: usize,
    /// What sends them if there are several; None: the best that there is.
    pub engine: Option<Kind>,
    /// How many are sent in a run, which lasts until they are answered; None: as many as its time allows.
    pub count: Option<u64>,
    /// The number of the next one, here and in clones of it.
    next: Arc<AtomicU64>,
}

impl Stream {
    /// A stream that has sent nothing yet.
    pub fn new(requests: Arc<dyn Requests>, workers: usize) -> Self {
        let (pace, engine, count) = (Pace::Free, None, None);
        Self { requests, pace, workers, engine, count, next: Arc::default() }
    }

    /// Has this engine send it.
    pub fn by(self, engine: Option<Kind>) -> Self {
        Self { engine, ..self }
    }

    /// Has it go as fast as these limits allow.
    pub fn within(self, limits: &Limits) -> Self {
        let bytes = self.requests.bytes();
        let most = limits.bytes_per_s(bytes);
        let pace = most.map_or(Pace::Free, |most| Pace::AtMost(most as f64 / bytes as f64));
        Self { pace, ..self }
    }

    fn is_by_ring(&self) -> Result<bool> {
        if self.workers < 2 || self.requests.by_ring().is_none() {
            return Ok(false);
        }
        engine::uses_ring(self.engine, self.workers)
    }

    /// A copy at another pace, which shares the order.
    pub fn at(&self, pace: Pace) -> Self {
        Self { pace, ..self.clone() }
    }

    /// A copy of so many requests in each run, which shares the order.
    pub fn of_count(&self, count: u64) -> Self {
        Self { count: Some(count), ..self.clone() }
    }
}

/// What came of a stream.
#[derive(Debug, Clone, Default)]
pub struct Reached {
    /// Requests that were answered.
    pub answered: u64,
    /// In so many nanoseconds.
    pub ns: u64,
    /// From when each was sent, or was due, to its answer.
    pub latencies: Latencies,
    /// Bytes that were moved, in the warm-up as well.
    pub bytes: u64,
}

impl Reached {
    /// Answers a second; None without any time.
    pub fn per_s(&self) -> Option<f64> {
        (self.ns > 0).then(|| self.answered as f64 * 1e9 / self.ns as f64)
    }

    /// Do its figures contradict each other, of so many workers that sent as fast as they were answered?
    pub(crate) fn exceeds(&self, workers: usize) -> bool {
        let rated = Slice { ns: self.ns, work: self.answered };
        contradictions::exceeds_depth(self.latencies.total(), rated, workers as u64)
    }

    /// Adds what came of it another time.
    pub fn add(&mut self, other: &Self) {
        self.answered += other.answered;
        self.ns += other.ns;
        self.latencies.absorb(&other.latencies);
        self.bytes += other.bytes;
    }
}

/// What threads share.
struct Running {
    /// When the streams begin; 0 until all threads are there.
    begins: AtomicU64,
    over: AtomicBool,
    /// Requests that are not answered yet, of the streams that have a number of them.
    left: AtomicU64,
    /// Bytes of all requests that were sent, of as many as there may be.
    sent_bytes: AtomicU64,
    most_bytes: u64,
    state: Mutex<State>,
}

struct State {
    /// What is answered before is warm-up.
    warm_until: u64,
    /// Since when answers count, when the last one of them came, and whether no more of them do.
    since: Option<u64>,
    last: u64,
    over: bool,
    latency: LatencyBound,
    reached: Vec<Reached>,
    error: Option<Error>,
}

impl Running {
    /// Counts the bytes of one more request, if there may be one.
    fn may_send(&self, bytes: u64) -> bool {
        self.sent_bytes.fetch_add(bytes, Relaxed) + bytes <= self.most_bytes
    }

    /// Ends all with this error.
    fn fail(&self, error: Error) {
        lock(&self.state).error.get_or_insert(error);
        self.end();
    }

    fn end(&self) {
        self.over.store(true, Relaxed);
    }

    /// Counts a request of a feed that was made.
    fn take(&self, state: &mut State, feed: &Feed, number: u64, made: Result<()>, answer: Answer) {
        feed.stream.next.fetch_max(number + 1, Relaxed);
        if let Err(error) = made {
            state.error.get_or_insert(error);
            self.end();
            return;
        }
        if feed.stream.count.is_some() {
            self.left.fetch_sub(1, Relaxed);
        }
        let warm_bytes = self.most_bytes / WARM_UP;
        let is_warm = answer.answered >= state.warm_until || self.sent_bytes.load(Relaxed) >= warm_bytes;
        state.answered(feed.place, feed.stream.requests.bytes(), answer, is_warm);
    }
}

/// When a request was sent and answered, and since when it counts.
#[derive(Debug, Clone, Copy)]
struct Answer {
    sent: u64,
    answered: u64,
    began: u64,
}

/// A stream, and how far it is.
struct Feed {
    stream: Stream,
    /// Its place among the streams.
    place: usize,
    /// Does one thread send all of it, through io_uring?
    is_by_ring: bool,
    /// The number of its first request.
    first: u64,
    /// How many have been taken to be sent.
    taken: AtomicU64,
    workers: AtomicUsize,
    /// When the next is due by a limit.
    due: Mutex<u64>,
}

/// Runs streams beside one another for this time, as a part of `budget`. Returns what came of each, and what
/// ended it early.
///
/// # Errors
/// The first error of a request; no more of them are sent then.
pub fn run(
    streams: &[Stream],
    length: Duration,
    budget: &mut Budget<'_>,
) -> Result<(Vec<Reached>, Option<Stop>)> {
    let running = Arc::new(Running {
        begins: AtomicU64::new(0),
        over: AtomicBool::new(false),
        left: AtomicU64::new(streams.iter().filter_map(|stream| stream.count).sum()),
        sent_bytes: AtomicU64::new(0),
        most_bytes: budget.bytes_left(),
        state: Mutex::new(State {
            warm_until: u64::MAX,
            since: None,
            last: 0,
            over: false,
            latency: budget.latency(),
            reached: streams.iter().map(|_| Reached::default()).collect(),
            error: None,
        }),
    });
    let mut threads = Vec::new();
    for (place, stream) in streams.iter().enumerate() {
        let feed = Arc::new(Feed {
            stream: stream.clone(),
            place,
            is_by_ring: stream.is_by_ring()?,
            first: stream.next.load(Relaxed),
            taken: AtomicU64::new(0),
            workers: AtomicUsize::new(0),
            due: Mutex::new(0),
        });
        let count = if feed.is_by_ring { 1 } else { stream.workers };
        let (working, ending) = (Arc::clone(&running), Arc::clone(&running));
        threads.push(WorkerThreads::start(NAME, count, move || feed.work(&working), move || ending.end())?);
    }
    let begins = Monotonic.now();
    let ends = begins.saturating_add(nanoseconds(length));
    lock(&running.state).warm_until = begins + nanoseconds(length) / WARM_UP;
    running.begins.store(begins, Relaxed);
    let stop = loop {
        // Behind its time it waits for the streams of so many requests.
        let left = Duration::from_nanos(ends.saturating_sub(Monotonic.now())).max(LOOK);
        if let Some(stop) = budget.nap(left) {
            break Some(stop);
        }
        let state = lock(&running.state);
        *budget.latency_mut() = state.latency;
        if running.sent_bytes.load(Relaxed) > running.most_bytes {
            break Some(Stop::Bytes);
        }
        let is_done = Monotonic.now() >= ends && running.left.load(Relaxed) == 0;
        if state.error.is_some() || is_done {
            break None;
        }
    };
    // What is answered from now on does not count.
    let mut state = lock(&running.state);
    state.over = true;
    // When the bytes are used up, nothing more comes after the last answer.
    let ended = if stop == Some(Stop::Bytes) { state.last } else { Monotonic.now() };
    let ns = state.since.map_or(0, |since| ended.saturating_sub(since));
    drop(state);
    drop(threads);
    state = lock(&running.state);
    if let Some(error) = state.error.take() {
        return Err(error);
    }
    let mut reached = mem::take(&mut state.reached);
    reached.iter_mut().for_each(|reached| reached.ns = ns);
    budget.spend(reached.iter().map(|reached| reached.bytes).sum());
    Ok((reached, stop))
}

impl Feed {
    /// Sends requests until all is over.
    fn work(&self, running: &Running) {
        wake_in_time();
        let worker = self.workers.fetch_add(1, Relaxed);
        let mut begins = 0;
        while begins == 0 && !running.over.load(Relaxed) {
            Monotonic.sleep(Duration::from_micros(100));
            begins = running.begins.load(Relaxed);
        }
        match self.stream.requests.by_ring().filter(|_| self.is_by_ring) {
            None => self.send_one_by_one(running, worker, begins),
            Some(requests) => match RingFeed::new(self, running, requests, begins) {
                Ok(ring) => ring.work(),
                Err(error) => running.fail(error),
            },
        }
    }

    fn send_one_by_one(&self, running: &Running, worker: usize, begins: u64) {
        while !running.over.load(Relaxed) {
            let Some((number, due)) = self.take(begins) else { return };
            let slept = sleep_in_thread(&Monotonic, due, &running.over);
            if running.over.load(Relaxed) || !running.may_send(self.stream.requests.bytes()) {
                return;
            }
            let sent = Monotonic.now();
            let made = self.stream.requests.make(number, worker);
            let answered = Monotonic.now();
            let began = self.counts_from(due, sent, slept.then_some(sent));
            running.take(&mut lock(&running.state), self, number, made, Answer { sent, answered, began });
        }
    }

    /// The number of the next request, and when it may be sent; None if there is none.
    fn take(&self, begins: u64) -> Option<(u64, u64)> {
        let taken = self.taken.fetch_add(1, Relaxed);
        let is_there = self.stream.count.is_none_or(|count| taken < count);
        is_there.then(|| (self.first + taken, self.due(taken, begins)))
    }

    /// Since when a request counts. If it had to wait for others, that is when it was due. How late the
    /// machine wakes a thread that slept until then, at `woken`, is nothing that the device does.
    fn counts_from(&self, due: u64, sent: u64, woken: Option<u64>) -> u64 {
        if matches!(self.stream.pace, Pace::Due(_)) { woken.unwrap_or(due) } else { sent }
    }

    /// When a request may be sent, which is the one after `taken` others.
    fn due(&self, taken: u64, begins: u64) -> u64 {
        match self.stream.pace {
            Pace::Free => 0,
            Pace::Due(rate) => begins.saturating_add(time_of(taken as f64, rate)),
            Pace::AtMost(rate) => {
                let mut next = lock(&self.due);
                let due = (*next).max(Monotonic.now());
                *next = due.saturating_add(time_of(1.0, rate));
                due
            }
        }
    }
}

/// Nanoseconds that so many requests take at a rate a second.
fn time_of(requests: f64, rate: f64) -> u64 {
    (requests * 1e9 / rate) as u64
}

impl State {
    /// A request of a stream was answered.
    fn answered(&mut self, place: usize, bytes: u64, answer: Answer, is_warm: bool) {
        let Answer { sent, answered, began } = answer;
        self.latency.observe(answered - sent);
        let reached = &mut self.reached[place];
        reached.bytes += bytes;
        if self.over {
            return;
        }
        match self.since {
            None if is_warm => (self.since, self.last) = (Some(answered), answered),
            // What was found with the first one came before it as well.
            Some(since) if answered > since => {
                self.last = answered;
                reached.answered += 1;
                reached.latencies.record(answered.saturating_sub(began));
            }
            _ => {}
        }
    }
}

/// Has the kernel wake this thread when it should, not 50 microseconds later.
fn wake_in_time() {
    if !cfg!(miri) {
        // SAFETY: the call takes numbers and changes a property of this thread.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers after a time, so many at once.
    struct Answers {
        time: Duration,
        at_once: Mutex<()>,
        alone: bool,
        fails_at: u64,
    }

    impl Requests for Answers {
        fn make(&self, number: u64, _worker: usize) -> Result<()> {
            if number >= self.fails_at {
                return Err(Error::MissingSegment { path: "away".into() });
            }
            let _turn = self.alone.then(|| self.at_once.lock());
            Monotonic.sleep(self.time);
            Ok(())
        }

        fn bytes(&self) -> u64 {
            8192
        }
    }

    fn stream(ms: u64, alone: bool, pace: Pace) -> Stream {
        let time = Duration::from_millis(ms);
        let requests = Answers { time, at_once: Mutex::new(()), alone, fails_at: u64::MAX };
        Stream::new(Arc::new(requests), 4).at(pace)
    }

    fn reached(streams: &[Stream], ms: u64) -> (Vec<Reached>, Option<Stop>) {
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        run(streams, Duration::from_millis(ms), &mut budget).expect("answers")
    }

    #[test]
    fn a_closed_loop_keeps_all_its_threads_busy() {
        let (reached, stop) = reached(&[stream(5, false, Pace::Free)], 400);
        // At most 800 a second, if the machine lets them sleep no longer than they should.
        let per_s = reached[0].per_s().expect("answers");
        assert!(per_s <= 850.0 && reached[0].answered > 0, "{per_s}");
        assert_eq!((stop, reached[0].latencies.total().work), (None, reached[0].answered));
        assert!(reached[0].bytes >= reached[0].answered * 8192);
    }

    #[test]
    fn an_open_loop_sends_what_is_due() {
        let (reached, _) =
            reached(&[stream(1, false, Pace::Due(100.0)), stream(1, false, Pace::Due(50.0))], 1_000);
        let answered: Vec<u64> = reached.iter().map(|reached| reached.answered).collect();
        assert!((1..=91).contains(&answered[0]) && (1..=46).contains(&answered[1]), "{answered:?}");
    }

    #[test]
    fn a_request_that_waits_for_its_turn_counts_its_waiting() {
        // One at a time takes 5 ms, and one is due every 2.5 ms: the last ones wait for half the time.
        let (reached, _) = reached(&[stream(5, true, Pace::Due(400.0))], 600);
        let most = reached[0].latencies.most().expect("answers");
        assert!(most > 150_000_000, "{most}");
        assert!(reached[0].per_s() < Some(210.0));
    }

    #[test]
    fn a_limit_makes_nothing_up() {
        // One at a time takes 20 ms, so that 50 a second are answered of the 100 that may be sent.
        let (reached, _) = reached(&[stream(20, true, Pace::AtMost(100.0))], 600);
        assert!(reached[0].per_s() <= Some(55.0), "{:?}", reached[0].per_s());
        // Those that were sent before are still under way: no more than four wait for one another.
        let sent = reached[0].latencies.total().work;
        assert!(sent <= 31, "{sent}");
    }

    #[test]
    fn a_stream_goes_on_where_it_was() {
        let stream = stream(1, false, Pace::Free);
        let (first, _) = reached(std::slice::from_ref(&stream), 300);
        let sent = stream.next.load(Relaxed);
        assert!(sent >= first[0].answered && sent > 0);
        reached(&[stream.at(Pace::Due(100.0))], 300);
        assert!(stream.next.load(Relaxed) > sent);
    }

    #[test]
    fn a_stream_of_so_many_is_waited_for() {
        // Ten of 20 ms each by four threads take 60 ms, and the others go on meanwhile.
        let few = stream(20, false, Pace::Free).of_count(10);
        let (reached, stop) = reached(&[few.clone(), stream(1, false, Pace::Free)], 10);
        assert_eq!((stop, reached[0].bytes, few.next.load(Relaxed)), (None, 10 * 8192, 10));
        assert!(reached[1].answered > 0);
    }

    #[test]
    fn an_error_ends_it() {
        let fails = Answers { time: Duration::ZERO, at_once: Mutex::new(()), alone: false, fails_at: 7 };
        let stream = Stream::new(Arc::new(fails), 2);
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        let ended = run(&[stream], Duration::from_secs(60), &mut budget);
        assert!(matches!(ended, Err(Error::MissingSegment { .. })));
    }

    #[test]
    fn bounds_end_it() {
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        let limits = Limits { max_bytes: 10 * 8192, ..Limits::none() };
        let mut part = budget.part(&limits);
        let ended =
            run(&[stream(1, false, Pace::Free)], Duration::from_secs(60), &mut part).expect("answers");
        assert_eq!(ended.1, Some(Stop::Bytes));
    }
}
