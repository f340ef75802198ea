//! What a block takes that the OS page cache has: of the reads of a query for which nothing was fetched the
//! median, since a few of them waited for what was on its way.

use std::iter;

/// Classes of each doubling of the time.
const CLASSES: f64 = 4.0;

/// How many blocks took how long, each class a quarter longer than the one before.
pub(super) struct CopyTimes([u64; 160]);

impl CopyTimes {
    pub(super) const fn none() -> Self {
        Self([0; 160])
    }

    /// So many blocks were read together, and nothing was fetched for them.
    pub(super) fn add(&mut self, blocks: u64, ns: u64) {
        let each = (ns as f64 / blocks as f64).max(1.0);
        let class = ((each.log2() * CLASSES) as usize).min(self.0.len() - 1);
        self.0[class] += blocks;
    }

    /// Nanoseconds of a block; None if there was none.
    pub(super) fn median_ns(&self) -> Option<f64> {
        let all: u64 = self.0.iter().sum();
        let mut so_far = iter::successors(Some((0, self.0[0])), |(class, sum)| {
            Some((class + 1, sum + self.0.get(class + 1)?))
        });
        let (class, _) = so_far.find(|(_, sum)| all > 0 && 2 * sum >= all)?;
        Some(((class as f64 + 0.5) / CLASSES).exp2())
    }
}
