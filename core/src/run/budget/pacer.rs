//! When something may begin that comes one at a time: a request, an operation, or a turn of many requests.
//!
//! What it costs is charged when it is done, or before. A [`Pacer`] is plain data, so that threads may share
//! one.
//!
//! Source: the generic cell rate algorithm (ITU-T I.371, annex A).

use super::Limits;

/// When the limits of its rate and of its time let a run go on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Pacer {
    bytes_per_s: Option<u64>,
    max_util: Option<f64>,
    /// The least time from one begin to the next, in nanoseconds.
    every_ns: u64,
    /// How far ahead of its moment something may come before it waits, in nanoseconds.
    ahead_ns: u64,
    due: u64,
    /// Of all that was charged in sum: since when, how many bytes, and how long it took.
    sum: (u64, u64, u64),
}

impl Pacer {
    /// Nothing is held back before `now`.
    pub(crate) fn new(limits: &Limits, request_bytes: u64, now: u64) -> Self {
        let mut pacer = Self { due: now, sum: (now, 0, 0), ..Self::default() };
        pacer.set_requests(limits, request_bytes);
        pacer
    }

    /// From now on requests have `request_bytes`. The moment at which the next is due stays.
    pub(crate) fn set_requests(&mut self, limits: &Limits, request_bytes: u64) {
        self.bytes_per_s = limits.bytes_per_s(request_bytes);
        self.max_util = limits.max_util;
        self.ahead_ns = limits.ahead_ns(request_bytes);
    }

    /// At most one comes every `ns` nanoseconds.
    pub(crate) fn set_every(&mut self, ns: u64) {
        self.every_ns = ns;
    }

    /// Do limits make it wait?
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.bytes_per_s.is_some() || self.max_util.is_some()
    }

    /// When the next is due, in the clock's nanoseconds.
    #[inline]
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// Has what comes at `now` to wait until it is due?
    #[inline]
    pub(crate) fn is_early(&self, now: u64) -> bool {
        self.is_limited() && is_early(now, self.due, self.ahead_ns)
    }

    /// Nanoseconds from the begin of what moved `bytes`, in flight for `busy_ns`, until others may follow.
    fn period(&self, bytes: u64, busy_ns: u64) -> u64 {
        let by_bytes = self.bytes_per_s.map_or(0, |rate| due_after(bytes, rate));
        let by_time = self.max_util.map_or(0, |util| with_rest(busy_ns, util));
        by_bytes.max(by_time).max(self.every_ns)
    }

    /// Charges what came at `now`. If that was late, the time before it is lost.
    #[inline]
    pub(crate) fn charge(&mut self, now: u64, bytes: u64, busy_ns: u64) {
        self.due = self.due.max(now).saturating_add(self.period(bytes, busy_ns));
    }

    /// Charges what came at `now`. If that was late, what follows may make up for as much as its period.
    pub(crate) fn charge_late(&mut self, now: u64, bytes: u64, busy_ns: u64) {
        let period = self.period(bytes, busy_ns);
        self.due = self.due.max(now.saturating_sub(period)).saturating_add(period);
    }

    /// Charges what came, however late: what follows may make up for all of it, and so does not move.
    pub(crate) fn charge_on_schedule(&mut self, bytes: u64, busy_ns: u64) {
        self.charge(0, bytes, busy_ns);
    }

    /// Charges what came to a sum, of which the tighter limit counts, and not that of each.
    pub(crate) fn charge_in_sum(&mut self, bytes: u64, busy_ns: u64) {
        let (started, moved, busy) = self.sum;
        self.sum = (started, moved.saturating_add(bytes), busy + busy_ns);
        self.due = started.saturating_add(self.period(self.sum.1, self.sum.2));
    }

    /// Keeps the rest that a limit of the time asks for after what began at `began`, whose bytes are paid
    /// for.
    pub(crate) fn rest(&mut self, began: u64, busy_ns: u64) {
        self.due = self.due.max(began.saturating_add(self.rest_ns(busy_ns)));
    }

    /// The time `busy_ns` in flight with its rest, in nanoseconds.
    pub(crate) fn rest_ns(&self, busy_ns: u64) -> u64 {
        self.max_util.map_or(0, |util| with_rest(busy_ns, util))
    }
}

/// Is a request due at `due` to wait until then, if requests may be `ahead_ns` ahead of their schedule?
#[inline]
pub(super) fn is_early(now: u64, due: u64, ahead_ns: u64) -> bool {
    now < due && now + ahead_ns <= due
}

/// When a run that may have requests in flight for a share of its time may begin others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rest {
    util: f64,
    due: u64,
}

impl Rest {
    /// How late a start may be and be made up for, in nanoseconds: sleeps last too long. Nothing else is
    /// saved up.
    const MADE_UP_NS: u64 = 1_000_000;

    /// The first requests may begin at once.
    pub(crate) fn new(util: f64) -> Self {
        Self { util, due: 0 }
    }

    /// A rest comes after requests that were in flight from `since` to `until`, in the clock's nanoseconds.
    pub(crate) fn after(&mut self, since: u64, until: u64) {
        let begin = self.due.max(since.saturating_sub(Self::MADE_UP_NS));
        self.due = begin.saturating_add(with_rest(until - since, self.util));
    }

    /// From when on others may begin.
    pub(crate) fn due(&self) -> u64 {
        self.due
    }
}

/// Time with requests in flight, and the rest that keeps it at the share `util` of both, in nanoseconds.
fn with_rest(busy_ns: u64, util: f64) -> u64 {
    (busy_ns as f64 / util) as u64
}

/// When `bytes` are due at `bytes_per_s`, in nanoseconds from the start.
fn due_after(bytes: u64, bytes_per_s: u64) -> u64 {
    let due = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1));
    u64::try_from(due).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn pacer(limits: Limits) -> Pacer {
        Pacer::new(&limits, 1 << 20, 0)
    }

    #[test]
    fn who_comes_early_waits() {
        assert!(is_early(9, 10, 0) && !is_early(10, 10, 0) && is_early(5, 10, 5) && !is_early(6, 10, 5));
        let mut free = pacer(Limits::none());
        free.charge(0, 1 << 30, MS);
        assert!(!free.is_limited() && !free.is_early(0));
    }

    #[test]
    fn a_share_of_the_time_leaves_the_rest_to_others() {
        let rested = pacer(Limits { max_util: Some(0.05), ..Limits::none() });
        assert_eq!((rested.period(1 << 30, 0), rested.period(0, 1_000)), (0, 20_000));
        // The tighter of both counts.
        let both = pacer(Limits { max_mib_s: Some(1), max_util: Some(0.5), ..Limits::none() });
        assert_eq!((both.period(1 << 20, 1_000), both.period(1, MS)), (1_000 * MS, 2 * MS));
    }

    #[test]
    fn what_is_late_makes_up_for_as_much_as_it_may() {
        // A MiB is due each 100 ms, and the first comes a second late.
        let late = |charge: &dyn Fn(&mut Pacer)| {
            let mut pacer = pacer(Limits { max_mib_s: Some(10), ..Limits::none() });
            charge(&mut pacer);
            pacer.due() / MS
        };
        assert_eq!(late(&|pacer| pacer.charge(1_000 * MS, 1 << 20, 0)), 1_100);
        assert_eq!(late(&|pacer| pacer.charge_late(1_000 * MS, 1 << 20, 0)), 1_000);
        assert_eq!(late(&|pacer| pacer.charge(0, 1 << 20, 0)), 100);
        assert_eq!(late(&|pacer| pacer.charge_in_sum(1 << 20, 0)), 100);
    }

    #[test]
    fn in_sum_the_tighter_limit_of_all_counts() {
        let mut sum = pacer(Limits { max_mib_s: Some(10), max_util: Some(0.5), ..Limits::none() });
        let mut each = sum;
        for busy in [200 * MS, MS] {
            sum.charge_in_sum(1 << 20, busy);
            each.charge(0, 1 << 20, busy);
        }
        assert_eq!((sum.due() / MS, each.due() / MS), (402, 500));
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
        // However small the share is, and however long it took, the next is not due before.
        let mut never = Rest::new(1e-300);
        never.after(1, 2);
        assert_eq!(never.due(), u64::MAX);
        never.after(2, 3);
        assert_eq!(never.due(), u64::MAX);
    }
}
