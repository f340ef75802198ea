//! A run cut into slices of about equal time.
//!
//! The length of a run is not known when it starts: 2 ms from the OS cache, a minute from a slow
//! disk. So slices start at 1 ms, and whenever the fixed store is full, neighbours are merged and
//! the width doubles. Nothing is allocated after the start.

use super::MIN_SLICES;

/// Time and work of one slice, or of some requests together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// Nanoseconds.
    pub ns: u64,
    /// Units of work done in that time, such as blocks.
    pub work: u64,
}

impl Slice {
    /// Adds one unit of work, which took `ns`.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        *self = self.plus(Slice { ns, work: 1 });
    }

    /// Both as one.
    #[inline]
    pub fn plus(self, other: Slice) -> Slice {
        Slice { ns: self.ns + other.ns, work: self.work + other.work }
    }

    /// All of them as one.
    pub fn sum(slices: &[Slice]) -> Slice {
        slices.iter().copied().fold(Slice::default(), Slice::plus)
    }

    /// Nanoseconds per unit of work of each that has some.
    pub fn times(slices: &[Slice]) -> Vec<f64> {
        slices.iter().filter_map(|slice| slice.ns_each()).collect()
    }

    /// Nanoseconds per unit of work; None without any.
    pub fn ns_each(self) -> Option<f64> {
        (self.work > 0).then(|| self.ns as f64 / self.work as f64)
    }
}

/// The slices of one run. The last, unfinished one counts in [`Slices::total`] only.
#[derive(Debug)]
pub struct Slices {
    width_ns: u64,
    closed: Vec<Slice>,
    open: Slice,
    total: Slice,
}

impl Default for Slices {
    fn default() -> Self {
        Self {
            width_ns: Self::FIRST_WIDTH_NS,
            closed: Vec::with_capacity(Self::CAPACITY),
            open: Slice::default(),
            total: Slice::default(),
        }
    }
}

impl Slices {
    const CAPACITY: usize = 2048;
    const FIRST_WIDTH_NS: u64 = 1_000_000;
    /// Interval arithmetic wants about this many: enough to see rare stalls, few enough that
    /// neighbours are not copies of each other.
    const WANTED: usize = 100;

    /// Adds `work` that took `ns`. True when that closed a slice.
    #[inline]
    pub fn add(&mut self, ns: u64, work: u64) -> bool {
        let step = Slice { ns, work };
        self.total = self.total.plus(step);
        self.open = self.open.plus(step);
        if self.open.ns < self.width_ns {
            return false;
        }
        if self.closed.len() == Self::CAPACITY {
            self.merge_neighbours();
        }
        self.closed.push(std::mem::take(&mut self.open));
        true
    }

    /// Everything added, the unfinished slice included.
    pub fn total(&self) -> Slice {
        self.total
    }

    /// The closed slices, joined into about a hundred (99 at least where there are that many).
    fn joined(&self) -> Vec<Slice> {
        let per_group = (self.closed.len() / Self::WANTED).max(1);
        self.closed.chunks_exact(per_group).map(Slice::sum).collect()
    }

    /// The joined slices without the first, which is warm-up, as long as enough are left for an interval.
    pub fn steady(&self) -> Vec<Slice> {
        let mut slices = self.joined();
        if slices.len() > MIN_SLICES {
            slices.remove(0);
        }
        slices
    }

    fn merge_neighbours(&mut self) {
        for i in 0..self.closed.len() / 2 {
            self.closed[i] = self.closed[2 * i].plus(self.closed[2 * i + 1]);
        }
        self.closed.truncate(self.closed.len() / 2);
        self.width_ns *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_keep_all_time_and_work_in_bounded_memory() {
        let mut slices = Slices::default();
        let capacity = slices.closed.capacity();
        for _ in 0..1_000_000 {
            slices.add(100_000, 3);
        }
        assert_eq!(slices.total(), Slice { ns: 100_000_000_000, work: 3_000_000 });
        assert_eq!(slices.closed.capacity(), capacity);
        let kept: u64 = slices.closed.iter().map(|s| s.work).sum();
        assert_eq!(kept + slices.open.work, 3_000_000);
        let joined = slices.joined();
        assert!((99..200).contains(&joined.len()), "{}", joined.len());
        assert!(joined.iter().all(|s| s.ns * 3 == s.work * 100_000));
    }

    #[test]
    fn short_runs_are_not_joined() {
        let mut slices = Slices::default();
        for _ in 0..30 {
            assert!(slices.add(1_000_000, 10));
        }
        assert!(!slices.add(10, 1));
        assert_eq!(slices.joined().len(), 30);
        assert_eq!(slices.total().work, 301);
    }
}
