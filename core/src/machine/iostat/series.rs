//! The looks of one run, taken when they are due. They are looks at counters, so one that is left out loses
//! nothing: its two intervals become one.

use std::time::Duration;

use super::{CounterSnapshot, Sample, Watch};
use crate::Result;
use crate::run::budget::Stop;
use crate::run::clock::{Clock, Monotonic, nanoseconds};
use crate::run::memory;

/// Takes `samples` samples of `every` length; `done` is told how many there are. `wait` returns at its moment
/// of the monotonic clock, or before with a reason to stop, which ends the last sample.
///
/// # Errors
/// [`NoMemory`](crate::Error::NoMemory) when there is no room for them.
pub fn sample(
    watch: &Watch,
    every: Duration,
    samples: usize,
    wait: &mut dyn FnMut(u64) -> Option<Stop>,
    done: &mut dyn FnMut(u64),
) -> Result<(SnapshotSeries, Option<Stop>)> {
    let mut series = SnapshotSeries::begin(watch.look(), every, samples)?;
    while series.len() < samples {
        let stop = wait(series.due(Monotonic.now()));
        if stop.is_some() {
            series.end(watch.look());
            return Ok((series, stop));
        }
        series.add(watch.look());
        done(series.len() as u64);
    }
    Ok((series, None))
}

/// Looks on a schedule: the first, then one each `every`, then the last, whenever that is.
#[derive(Debug)]
pub struct SnapshotSeries {
    snapshots: Vec<CounterSnapshot>,
    every_ns: u64,
}

impl SnapshotSeries {
    /// Begins with this look, with room for so many samples.
    ///
    /// # Errors
    /// [`NoMemory`](crate::Error::NoMemory) when there is no room for them.
    pub(super) fn begin(first: CounterSnapshot, every: Duration, samples: usize) -> Result<Self> {
        let every_ns = nanoseconds(every).max(1);
        let mut snapshots = memory::list_of(samples + 1)?;
        snapshots.push(first);
        Ok(Self { snapshots, every_ns })
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
                *known |= device.is_some();
            }
            pair[1].since(&pair[0], &known)
        }))
    }
}
