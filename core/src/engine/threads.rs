//! Reads by a thread a slot, for kernels and containers that refuse io_uring.
//!
//! Threads only ever read, and touch nothing of the process but their buffer.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::buffers::{Buffers, look_at};
use super::pread::pread;
use super::{Completion, Engine};
use crate::Result;
use crate::run::lock;
use crate::run::workers::WorkerThreads;

/// The threads' name in `/proc`.
const NAME: &str = "io_probe_read";

/// How long the waiting side sleeps before it calls `idle`.
const NAP: Duration = Duration::from_millis(10);

/// A pool of reading threads.
pub struct Threads {
    shared: Arc<PoolShared>,
    /// Kept for its drop.
    _crew: WorkerThreads,
    busy: Vec<bool>,
    in_flight: usize,
}

struct PoolShared {
    queues: Mutex<Queues>,
    work: Condvar,
    done: Condvar,
    buffers: Buffers,
    /// Do the threads verify what they have read?
    verifies: bool,
}

#[derive(Default)]
struct Queues {
    work: VecDeque<Job>,
    done: VecDeque<Completion>,
    closed: bool,
}

struct Job {
    slot: usize,
    at: usize,
    file: Arc<File>,
    offset: u64,
    len: usize,
}

impl Threads {
    /// `depth` threads with a buffer of `request` bytes each.
    pub fn new(depth: usize, request: usize) -> Result<Self> {
        Self::serving(depth, depth, request, false)
    }

    /// So many threads for `depth` buffers of `request` bytes: what no thread is free for waits. They also
    /// look at what they have read, if it `verifies`, as the server's I/O workers do.
    pub fn serving(threads: usize, depth: usize, request: usize, verifies: bool) -> Result<Self> {
        let queues = Queues {
            work: VecDeque::with_capacity(depth),
            done: VecDeque::with_capacity(depth),
            closed: false,
        };
        let shared = Arc::new(PoolShared {
            queues: Mutex::new(queues),
            work: Condvar::new(),
            done: Condvar::new(),
            buffers: Buffers::new(depth, request)?,
            verifies,
        });
        let (serving, ending) = (Arc::clone(&shared), Arc::clone(&shared));
        let workers = WorkerThreads::start(NAME, threads, move || serving.serve(), move || ending.close())?;
        Ok(Self { shared, _crew: workers, busy: vec![false; depth], in_flight: 0 })
    }
}

impl PoolShared {
    fn serve(&self) {
        let mut queues = lock(&self.queues);
        loop {
            if queues.closed {
                return;
            }
            let Some(job) = queues.work.pop_front() else {
                queues = self.work.wait(queues).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(queues);
            let buffer = self.buffers.slot_at(job.slot, job.at, job.len);
            let result = pread(&job.file, buffer, job.len, job.offset);
            drop(job.file);
            if self.verifies {
                // SAFETY: the slot is this job's until its completion is known.
                let bytes = unsafe { self.buffers.bytes(job.slot, job.at, job.len) };
                std::hint::black_box(look_at(bytes, true));
            }
            queues = lock(&self.queues);
            queues.done.push_back(Completion { slot: job.slot, result });
            self.done.notify_one();
        }
    }

    /// Makes each thread return after the read that it is at.
    fn close(&self) {
        let mut queues = lock(&self.queues);
        queues.closed = true;
        queues.work.clear();
        drop(queues);
        self.work.notify_all();
    }
}

impl Engine for Threads {
    fn submit_at(&mut self, slot: usize, at: usize, file: &Arc<File>, offset: u64, len: usize) {
        let shared = &self.shared;
        assert!(
            slot < shared.buffers.slots() && !self.busy[slot],
            "I/O slot {slot} is busy or does not exist"
        );
        self.busy[slot] = true;
        self.in_flight += 1;
        lock(&shared.queues).work.push_back(Job { slot, at, file: Arc::clone(file), offset, len });
        shared.work.notify_one();
    }

    fn wait(&mut self, idle: &mut dyn FnMut()) -> Result<Completion> {
        assert!(self.in_flight > 0, "nothing is in flight");
        let shared = Arc::clone(&self.shared);
        let mut queues = lock(&shared.queues);
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
                queues = lock(&shared.queues);
            }
        }
    }

    fn bytes(&self, slot: usize, at: usize, len: usize) -> &[u8] {
        assert!(!self.busy[slot], "I/O slot {slot} is busy");
        // SAFETY: no thread has a job in this slot, and none gets one while the engine is borrowed; the lock
        // under which its completion came makes its bytes visible.
        unsafe { self.shared.buffers.bytes(slot, at, len) }
    }
}
