//! How long a share of the time lets a run rest, and when bytes are due at a rate.

/// When a run that may have requests in flight for a share of its time may begin others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rest {
    util: f64,
    due: u64,
}

impl Rest {
    /// Who sleeps wakes later than it should, which may be made up for. Nothing else is saved up, in
    /// nanoseconds.
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

/// Time in which requests were in flight, with the rest that keeps it at that share of both, in nanoseconds.
pub(super) fn with_rest(busy_ns: u64, util: f64) -> u64 {
    (busy_ns as f64 / util) as u64
}

/// When so many bytes are due at so many a second, in nanoseconds from the start.
pub(super) fn due_after(bytes: u64, bytes_per_s: u64) -> u64 {
    let due = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1));
    u64::try_from(due).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
