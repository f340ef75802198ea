//! Reads by a thread a slot, for kernels and containers that refuse io_uring.
//!
//! Threads only ever read: all signals are blocked in them, they touch nothing of the process but
//! their buffer, and they are joined before the engine is gone.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::rc::Rc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use nix::sys::signal::{SigSet, SigmaskHow};

use super::buffers::Buffers;
use super::pread::pread;
use super::{Completion, Engine, Kind, Quiesce, register};
use crate::{Error, Result};

/// The threads' name in `/proc`.
pub(super) const NAME: &str = "io_probe_read";

/// Enough for a blocking read and what the runtime puts around it.
const STACK_BYTES: usize = 128 << 10;

/// How long the waiting side sleeps before it looks around.
const NAP: Duration = Duration::from_millis(10);

/// A pool of reading threads.
pub struct Threads {
    pool: Rc<Pool>,
    busy: Vec<bool>,
    in_flight: usize,
}

struct Pool {
    shared: Arc<Shared>,
    handles: RefCell<Vec<JoinHandle<()>>>,
}

struct Shared {
    queues: Mutex<Queues>,
    work: Condvar,
    done: Condvar,
    buffers: Buffers,
}

#[derive(Default)]
struct Queues {
    work: VecDeque<Job>,
    done: VecDeque<Completion>,
    closed: bool,
}

struct Job {
    slot: usize,
    file: Arc<File>,
    offset: u64,
    len: usize,
}

impl Threads {
    /// `depth` threads with a buffer of `request` bytes each.
    pub fn new(depth: usize, request: usize) -> Result<Self> {
        let queues = Queues {
            work: VecDeque::with_capacity(depth),
            done: VecDeque::with_capacity(depth),
            closed: false,
        };
        let shared = Arc::new(Shared {
            queues: Mutex::new(queues),
            work: Condvar::new(),
            done: Condvar::new(),
            buffers: Buffers::new(depth, request)?,
        });
        let pool = Rc::new(Pool { shared, handles: RefCell::new(Vec::with_capacity(depth)) });
        register(&(Rc::clone(&pool) as Rc<dyn Quiesce>));
        // A thread inherits the mask of the moment it starts.
        let failed = |e: nix::Error| Error::System { action: "block signals", source: e.into() };
        let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK).map_err(failed)?;
        let spawned = (0..depth).try_for_each(|_| pool.spawn());
        mask.thread_set_mask().map_err(failed)?;
        spawned?;
        Ok(Self { pool, busy: vec![false; depth], in_flight: 0 })
    }
}

impl Pool {
    fn spawn(&self) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let handle = Builder::new()
            .name(NAME.to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || shared.serve())
            .map_err(|source| Error::System { action: "start a reading thread", source })?;
        self.handles.borrow_mut().push(handle);
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let mut queues = self.lock();
        loop {
            if queues.closed {
                return;
            }
            let Some(job) = queues.work.pop_front() else {
                queues = self.work.wait(queues).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(queues);
            let buffer = self.buffers.slot(job.slot, job.len);
            let result = pread(&job.file, buffer, job.len, job.offset);
            drop(job.file);
            queues = self.lock();
            queues.done.push_back(Completion { slot: job.slot, result });
            self.done.notify_one();
        }
    }
}

impl Engine for Threads {
    fn kind(&self) -> Kind {
        Kind::Threads
    }

    fn submit(&mut self, slot: usize, file: &Arc<File>, offset: u64, len: usize) {
        let shared = &self.pool.shared;
        assert!(slot < shared.buffers.slots() && !self.busy[slot], "slot {slot} is busy or does not exist");
        self.busy[slot] = true;
        self.in_flight += 1;
        shared.lock().work.push_back(Job { slot, file: Arc::clone(file), offset, len });
        shared.work.notify_one();
    }

    fn wait(&mut self, idle: &mut dyn FnMut()) -> Result<Completion> {
        assert!(self.in_flight > 0, "nothing is in flight");
        let shared = Arc::clone(&self.pool.shared);
        let mut queues = shared.lock();
        loop {
            if let Some(completion) = queues.done.pop_front() {
                self.busy[completion.slot] = false;
                self.in_flight -= 1;
                return Ok(completion);
            }
            let (guard, nap) = shared.done.wait_timeout(queues, NAP).unwrap_or_else(PoisonError::into_inner);
            queues = guard;
            if nap.timed_out() {
                drop(queues);
                idle();
                queues = shared.lock();
            }
        }
    }
}

impl Quiesce for Pool {
    fn quiesce(&self) {
        let mut queues = self.shared.lock();
        queues.closed = true;
        queues.work.clear();
        drop(queues);
        self.shared.work.notify_all();
        for handle in self.handles.borrow_mut().drain(..) {
            // A reading thread has nothing that could panic; if one did, it is gone as well.
            let _ = handle.join();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.quiesce();
    }
}
