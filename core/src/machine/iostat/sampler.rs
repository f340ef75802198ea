//! Takes the looks when they are due: in the caller's own thread, or beside it in another one.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{SnapshotSeries, Watch};
use crate::Result;
use crate::run::budget::Stop;
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
    pub(super) shared: Arc<SamplerShared>,
    workers: WorkerThreads,
}

pub(super) struct SamplerShared {
    run: Mutex<SamplerThread>,
    /// The run is over.
    over: Condvar,
}

pub(super) struct SamplerThread {
    pub(super) series: SnapshotSeries,
    over: bool,
}

impl SamplerShared {
    pub(super) fn lock(&self) -> MutexGuard<'_, SamplerThread> {
        // A thread that holds the lock can't panic half way.
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.lock().over = true;
        self.over.notify_all();
    }
}

impl Sampler {
    /// Takes the first look, then starts the thread. It keeps `most` samples at most.
    ///
    /// # Errors
    /// When there is no room for `most` samples, or no thread can be started.
    pub fn start(watch: Watch, every: Duration, most: usize) -> Result<Self> {
        let watch = Arc::new(watch);
        let run = SamplerThread { series: SnapshotSeries::begin(watch.look(), every, most)?, over: false };
        let shared = Arc::new(SamplerShared { run: Mutex::new(run), over: Condvar::new() });
        let work = {
            let (watch, shared) = (Arc::clone(&watch), Arc::clone(&shared));
            move || take_looks(&watch, &shared)
        };
        let end = {
            let shared = Arc::clone(&shared);
            move || shared.end()
        };
        let workers = WorkerThreads::start("io_probe iostat", 1, work, end)?;
        Ok(Self { watch, shared, workers })
    }

    /// Ends the thread, then takes the last look.
    pub fn finish(self) -> SnapshotSeries {
        let Self { watch, shared, workers } = self;
        drop(workers);
        let last = watch.look();
        let series = &mut shared.lock().series;
        series.end(last);
        SnapshotSeries { snapshots: std::mem::take(&mut series.snapshots), ..*series }
    }
}

fn take_looks(watch: &Watch, shared: &SamplerShared) {
    let mut run = shared.lock();
    let mut due = run.series.due(Monotonic.now());
    while !run.over {
        let now = Monotonic.now();
        if now < due {
            let left = Duration::from_nanos(due - now);
            run = shared.over.wait_timeout(run, left).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        // Not under the lock: the end of the run would wait for slow files.
        drop(run);
        // A look that is left out makes its two intervals one.
        let look = memory::hold(MEMORY_OF_LOOK).map(|_memory| watch.look());
        run = shared.lock();
        look.into_iter().for_each(|look| run.series.add(look));
        due = run.series.due(Monotonic.now());
    }
}
