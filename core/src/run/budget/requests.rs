//! When a request may be issued, beside others that are in flight.
//!
//! A limit of the rate is a schedule: each request has a moment, which is kept when another one is late. A
//! limit of the time has the run rest after each time with requests in flight.

use super::pacer::is_early;
use super::{Limits, Rest};

/// Keeps limits for requests of one size.
#[derive(Debug, Default)]
pub(crate) struct RequestPacer {
    schedule: Option<Schedule>,
    busy: Option<Busy>,
}

/// The moments at which a rate limit wants requests.
#[derive(Debug)]
struct Schedule {
    start: u64,
    every_ns: f64,
    /// How far ahead of the schedule requests may be, in nanoseconds.
    ahead_ns: u64,
    issued: u64,
}

impl Schedule {
    /// When the next request is due.
    fn due(&self) -> u64 {
        self.start + (self.issued as f64 * self.every_ns) as u64
    }
}

/// How a limit of its time has a run rest: after each time with requests in flight.
#[derive(Debug)]
struct Busy {
    rest: Rest,
    /// Since when requests are in flight, if any are.
    since: Option<u64>,
}

impl Busy {
    /// No request joins others that have been in flight for this time, in nanoseconds.
    const LONGEST: u64 = 1_000_000;

    /// Until when a request that comes at `now` is to wait; where others are in flight, at least until they
    /// are done.
    #[inline]
    fn until(&self, now: u64) -> Option<u64> {
        match self.since {
            Some(since) => (now - since >= Self::LONGEST).then_some(now),
            None => Some(self.rest.due()).filter(|&due| now < due),
        }
    }

    /// `in_flight` requests are in flight at `now`.
    #[inline]
    fn see(&mut self, in_flight: usize, now: u64) {
        if in_flight > 0 {
            self.since.get_or_insert(now);
        } else if let Some(since) = self.since.take() {
            self.rest.after(since, now);
        }
    }
}

impl RequestPacer {
    /// The first is due at `start`.
    pub(crate) fn new(limits: &Limits, request_bytes: u64, start: u64) -> Self {
        let schedule = limits.bytes_per_s(request_bytes).map(|bytes_per_s| Schedule {
            start,
            every_ns: 1e9 * request_bytes as f64 / bytes_per_s as f64,
            ahead_ns: limits.ahead_ns(request_bytes),
            issued: 0,
        });
        let busy = limits.max_util.map(|util| Busy { rest: Rest::new(util), since: None });
        Self { schedule, busy }
    }

    /// Does nothing make requests wait?
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.schedule.is_none() && self.busy.is_none()
    }

    /// The run goes on at `now` after preparations since `before`, for which no request is late.
    pub(crate) fn resume(&mut self, before: u64, now: u64) {
        if let Some(schedule) = &mut self.schedule {
            schedule.start = if schedule.issued == 0 { now } else { schedule.start + (now - before) };
        }
    }

    /// Is a request that comes at `now` to wait, and until when?
    #[inline]
    pub(crate) fn early(&self, now: u64) -> Option<u64> {
        let by_schedule = self.schedule.as_ref().and_then(|schedule| {
            let due = schedule.due();
            is_early(now, due, schedule.ahead_ns).then_some(due)
        });
        by_schedule.max(self.rest_after(now))
    }

    /// Until when the limit of the time makes a request that comes at `now` wait.
    #[inline]
    pub(crate) fn rest_after(&self, now: u64) -> Option<u64> {
        self.busy.as_ref().and_then(|busy| busy.until(now))
    }

    /// A request is issued, and `in_flight` are in flight with it.
    #[inline]
    pub(crate) fn issue(&mut self, in_flight: usize, now: u64) {
        if let Some(busy) = &mut self.busy {
            busy.see(in_flight, now);
        }
        if let Some(schedule) = &mut self.schedule {
            schedule.issued += 1;
        }
    }

    /// A request is done, and `in_flight` are still in flight.
    #[inline]
    pub(crate) fn done(&mut self, in_flight: usize, now: u64) {
        if let Some(busy) = &mut self.busy {
            busy.see(in_flight, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_late_request_moves_none_of_the_others() {
        let mut pacer = RequestPacer::new(&Limits { max_iops: Some(100), ..Limits::none() }, 8192, 0);
        assert_eq!((pacer.is_free(), pacer.early(0)), (false, None));
        // Those follow at once that were due meanwhile.
        for (in_flight, now) in (1..).zip([35 * MS, 36 * MS, 37 * MS, 38 * MS]) {
            assert_eq!(pacer.early(now), None);
            pacer.issue(in_flight, now);
        }
        assert_eq!(pacer.early(39 * MS), Some(40 * MS));
        // No request is late because of preparations.
        pacer.resume(39 * MS, 1_039 * MS);
        assert_eq!(pacer.early(1_039 * MS), Some(1_040 * MS));
    }

    #[test]
    fn a_rest_follows_each_time_with_requests_in_flight() {
        let mut pacer = RequestPacer::new(&Limits { max_util: Some(0.1), ..Limits::none() }, 8192, 0);
        pacer.issue(1, 10 * MS);
        // Others join it, but not for ever.
        assert_eq!((pacer.early(10 * MS), pacer.early(11 * MS)), (None, Some(11 * MS)));
        pacer.done(0, 12 * MS);
        assert_eq!((pacer.early(12 * MS), pacer.early(29 * MS)), (Some(29 * MS), None));
    }
}
