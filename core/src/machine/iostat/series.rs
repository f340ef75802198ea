//! The looks of one run, in bounded memory.
//!
//! They are looks at counters, so one that is left out loses nothing: its two intervals become one. Once
//! there are as many as there may be, every second one goes, and from then on they are taken half as often.

use std::time::Duration;

use super::{CounterSnapshot, Sample};
use crate::Result;
use crate::run::clock::nanoseconds;
use crate::run::memory;

/// Looks on a schedule: the first, then one each `every`, then the last, whenever that is.
#[derive(Debug)]
pub struct SnapshotSeries {
    pub(super) snapshots: Vec<CounterSnapshot>,
    pub(super) every_ns: u64,
    pub(super) most: usize,
    /// How often every second look was dropped.
    pub(super) halved: u32,
}

impl SnapshotSeries {
    /// Begins with this look. There will never be more than `most` samples.
    ///
    /// # Errors
    /// [`NoMemory`](crate::Error::NoMemory) when there is no room for them.
    pub(super) fn begin(first: CounterSnapshot, every: Duration, most: usize) -> Result<Self> {
        let every_ns = nanoseconds(every).max(1);
        let most = most.max(2);
        let mut snapshots = memory::list_of(most + 1)?;
        snapshots.push(first);
        Ok(Self { snapshots, every_ns, most, halved: 0 })
    }

    /// When the next look is due after `now`: on the schedule, so that being late makes nothing drift; what
    /// is missed is left out. In nanoseconds of the monotonic clock.
    pub(super) fn due(&self, now: u64) -> u64 {
        let start = self.snapshots[0].at;
        let turns = now.saturating_sub(start) / self.every_ns + 1;
        start.saturating_add(turns.saturating_mul(self.every_ns))
    }

    /// Adds a look on the schedule.
    pub(super) fn add(&mut self, snapshot: CounterSnapshot) {
        // The last look needs room, too.
        if self.snapshots.len() >= self.most {
            let mut index = 0;
            self.snapshots.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every_ns = self.every_ns.saturating_mul(2);
            self.halved += 1;
            // The new one may belong to those that go.
            let last = self.snapshots.last().map_or(0, |last| last.at);
            if snapshot.at < last.saturating_add(self.every_ns / 4 * 3) {
                return;
            }
        }
        self.snapshots.push(snapshot);
    }

    /// Adds the last look. One that was taken right before gives way: in an interval of less than a tenth of
    /// the others the ticks of the kernel's clock would show, and not what the device did.
    pub(super) fn end(&mut self, last: CounterSnapshot) {
        let least = self.every_ns / 10;
        if self.snapshots.len() > 1
            && self.snapshots.last().is_some_and(|s| last.at.saturating_sub(s.at) < least)
        {
            self.snapshots.pop();
        }
        self.snapshots.push(last);
    }

    /// The interval that samples were to have in the end, if it is not the one that was asked for.
    pub fn stretched(&self) -> Option<Duration> {
        (self.halved > 0).then(|| Duration::from_nanos(self.every_ns))
    }

    /// Samples so far.
    pub(super) fn len(&self) -> usize {
        self.snapshots.len() - 1
    }

    /// The samples in order: together they span the time from the first look to the last.
    ///
    /// # Errors
    /// [`NoMemory`](crate::Error::NoMemory) when there is no room for them.
    pub fn samples(&self) -> Result<Vec<Sample>> {
        let mut known = vec![false; self.snapshots[0].devices.len()];
        memory::collect(self.snapshots.windows(2).map(|pair| {
            for (known, device) in known.iter_mut().zip(&pair[0].devices) {
                *known |= device.counters.is_some();
            }
            pair[1].since(&pair[0], &known)
        }))
    }
}
