//! Takes the looks when they are due: in the caller's own thread, or beside it in another one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{SnapshotSeries, Watch};
use crate::Result;
use crate::run::budget::{Stop, sleep_in_thread};
use crate::run::clock::{Clock, Monotonic};
use crate::run::memory;
use crate::run::workers::WorkerThreads;

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
    let mut series = SnapshotSeries::begin(watch.look(), every, samples + 1)?;
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

/// Far more than a look allocates.
const MEMORY_OF_LOOK: usize = 1 << 20;

/// A thread that takes the looks while something else goes on. It ends when this is dropped, or the process
/// exits.
pub struct Sampler {
    watch: Arc<Watch>,
    series: Arc<Mutex<SnapshotSeries>>,
    /// The run is over.
    over: Arc<AtomicBool>,
    workers: WorkerThreads,
}

impl Sampler {
    /// Takes the first look, then starts the thread. It keeps `most` samples at most.
    ///
    /// # Errors
    /// When there is no room for `most` samples, or no thread can be started.
    pub fn start(watch: Watch, every: Duration, most: usize) -> Result<Self> {
        let watch = Arc::new(watch);
        let series = Arc::new(Mutex::new(SnapshotSeries::begin(watch.look(), every, most)?));
        let over = Arc::new(AtomicBool::new(false));
        let work = {
            let (watch, series, over) = (Arc::clone(&watch), Arc::clone(&series), Arc::clone(&over));
            move || take_looks(&watch, &series, &over)
        };
        let end = {
            let over = Arc::clone(&over);
            move || over.store(true, Ordering::Relaxed)
        };
        let workers = WorkerThreads::start("io_probe iostat", 1, work, end)?;
        Ok(Self { watch, series, over, workers })
    }

    /// Takes the last look and ends the thread.
    pub fn finish(self) -> SnapshotSeries {
        let Self { watch, series, over, workers } = self;
        over.store(true, Ordering::Relaxed);
        // Not later by what the thread takes to end, which may add a last look of its own meanwhile.
        let last = watch.look();
        drop(workers);
        let mut series = lock(&series);
        series.end(last);
        SnapshotSeries { snapshots: std::mem::take(&mut series.snapshots), ..*series }
    }

    /// Samples so far.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        lock(&self.series).len()
    }
}

fn lock(series: &Mutex<SnapshotSeries>) -> MutexGuard<'_, SnapshotSeries> {
    // A thread that holds the lock can't panic half way.
    series.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_looks(watch: &Watch, series: &Mutex<SnapshotSeries>, over: &AtomicBool) {
    loop {
        let due = lock(series).due(Monotonic.now());
        sleep_in_thread(&Monotonic, due, over);
        if over.load(Ordering::Relaxed) {
            return;
        }
        // A look that is left out makes its two intervals one; an allocation that fails would end the server.
        if memory::expect(MEMORY_OF_LOOK).is_ok() {
            let look = watch.look();
            lock(series).add(look);
        }
    }
}
