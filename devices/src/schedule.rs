//! What is in flight, and when it is answered. The time comes from the caller, and what a request is answered
//! with is the caller's.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::model::{Due, Model};
use crate::request::{Kind, Request, Seconds, Ticket};

/// What a device has done since it was there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Reads that came.
    pub reads: u64,
    /// Writes that came.
    pub writes: u64,
    /// Flushes that came.
    pub flushes: u64,
    /// Bytes of these reads.
    pub read_bytes: u64,
    /// Bytes of these writes.
    pub written_bytes: u64,
    /// Requests that failed.
    pub failed: u64,
    /// The most by which an answer was late under the present model.
    pub late: Duration,
}

impl Counts {
    fn add(&mut self, request: Request) {
        match request.kind {
            Kind::Read => {
                self.reads += 1;
                self.read_bytes += request.length;
            }
            Kind::Write => {
                self.writes += 1;
                self.written_bytes += request.length;
            }
            Kind::Flush => self.flushes += 1,
        }
    }
}

#[derive(Debug)]
struct Flight<R> {
    request: Request,
    reply: R,
}

/// A request whose time has come.
#[derive(Debug)]
pub struct Answer<R> {
    /// What was asked for.
    pub request: Request,
    /// What the caller answers it with.
    pub reply: R,
    /// Does it fail?
    pub fails: bool,
}

/// The requests in flight. Times are since the device was there.
#[derive(Debug)]
pub struct Schedule<R> {
    model: Model,
    /// When the model was set.
    set: Duration,
    /// By time; those of one time in the order in which they came.
    due: BTreeMap<(Duration, Ticket), (Due, Flight<R>)>,
    waiting: HashMap<Ticket, Flight<R>>,
    next_ticket: Ticket,
    counts: Counts,
}

impl<R> Schedule<R> {
    /// Nothing is in flight.
    pub fn new(model: Model) -> Self {
        Self {
            model,
            set: Duration::ZERO,
            due: BTreeMap::new(),
            waiting: HashMap::new(),
            next_ticket: 0,
            counts: Counts::default(),
        }
    }

    /// A request comes.
    pub fn submit(&mut self, now: Duration, request: Request, reply: R) {
        self.counts.add(request);
        self.arrive(now, Flight { request, reply });
    }

    /// When the next request is due; None if none is.
    pub fn next_deadline(&self) -> Option<Duration> {
        Some(self.due.first_key_value()?.0.0)
    }

    /// A request that is due by now.
    pub fn take_due(&mut self, now: Duration) -> Option<Answer<R>> {
        let entry = self.due.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((deadline, _), (due, Flight { request, reply })) = entry.remove_entry();
        self.counts.late = self.counts.late.max(now - deadline);
        if let Some(next) = self.model.answered(due, request)
            && let Some(flight) = self.waiting.remove(&next.ticket)
        {
            self.insert(next, flight);
        }
        let fails = self.model.fails(self.model_time(deadline), request);
        self.counts.failed += u64::from(fails);
        Some(Answer { request, reply, fails })
    }

    /// From now on requests meet another model. What is due stays due; what waits begins anew.
    pub fn set_model(&mut self, now: Duration, model: Model) {
        self.model = model;
        self.set = now;
        self.counts.late = Duration::ZERO;
        let mut waiting: Vec<_> = self.waiting.drain().collect();
        waiting.sort_unstable_by_key(|(ticket, _)| *ticket);
        for (_, flight) in waiting {
            self.arrive(now, flight);
        }
    }

    /// What it has done.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Requests that are not answered yet.
    pub fn in_flight(&self) -> usize {
        self.due.len() + self.waiting.len()
    }

    /// Burst credits that are left; None for a device without.
    pub fn credits(&self, now: Duration) -> Option<f64> {
        self.model.credits(self.model_time(now))
    }

    fn arrive(&mut self, now: Duration, flight: Flight<R>) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        match self.model.arrive(self.model_time(now), ticket, flight.request) {
            Some(due) => self.insert(due, flight),
            None => drop(self.waiting.insert(ticket, flight)),
        }
    }

    fn insert(&mut self, due: Due, flight: Flight<R>) {
        let at = self.set.saturating_add(Duration::try_from_secs_f64(due.at).unwrap_or(Duration::MAX));
        self.due.insert((at, due.ticket), (due, flight));
    }

    fn model_time(&self, time: Duration) -> Seconds {
        time.saturating_sub(self.set).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 30;

    fn read(offset: u64) -> Request {
        Request { kind: Kind::Read, offset, length: 8192 }
    }

    fn schedule(model: &str) -> Schedule<u64> {
        Schedule::new(Model::new(model, SIZE).unwrap())
    }

    #[test]
    fn answers_come_in_the_order_of_their_times() {
        let mut schedule = schedule("gp3 jitter=0");
        let at = [0, 100, 50].map(Duration::from_micros);
        for (reply, at) in (0..).zip(at) {
            schedule.submit(at, read(0), reply);
        }
        assert_eq!(schedule.next_deadline(), Some(Duration::from_micros(700)));
        assert!(schedule.take_due(Duration::from_micros(699)).is_none());
        let order: Vec<u64> = std::iter::from_fn(|| schedule.take_due(Duration::from_secs(1)))
            .map(|answer| answer.reply)
            .collect();
        assert_eq!(order, [0, 2, 1]);
        assert_eq!(schedule.in_flight(), 0);
    }

    #[test]
    fn a_new_model_takes_over_what_waits_and_leaves_what_is_due() {
        let mut schedule = schedule("hdd");
        for reply in 0..3 {
            schedule.submit(Duration::ZERO, read(reply * SIZE / 4), reply);
        }
        let due = schedule.next_deadline();
        let now = Duration::from_nanos(1);
        schedule.set_model(now, Model::new("off", SIZE).unwrap());
        assert_eq!(schedule.in_flight(), 3);
        let order: Vec<u64> =
            std::iter::from_fn(|| schedule.take_due(now)).map(|answer| answer.reply).collect();
        assert_eq!(order, [1, 2]);
        assert_eq!(schedule.next_deadline(), due);
        assert_eq!(schedule.take_due(Duration::from_secs(1)).map(|answer| answer.reply), Some(0));
    }

    #[test]
    fn what_came_and_what_failed_is_counted() {
        let mut schedule = schedule("off eio_after=1");
        let flush = Request { kind: Kind::Flush, offset: 0, length: 0 };
        let write = Request { kind: Kind::Write, offset: 0, length: 4096 };
        for (seconds, request) in [(0, read(0)), (0, write), (0, flush), (2, read(0))] {
            let now = Duration::from_secs(seconds);
            schedule.submit(now, request, 0);
            assert_eq!(schedule.take_due(now).map(|answer| answer.fails), Some(seconds == 2));
        }
        let counts = schedule.counts();
        assert_eq!((counts.reads, counts.writes, counts.flushes), (2, 1, 1));
        assert_eq!((counts.read_bytes, counts.written_bytes, counts.failed), (16384, 4096, 1));
    }
}
