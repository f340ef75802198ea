//! Threads that are gone when their owner is.
//!
//! All signals are blocked in them, since those that the process gets are for its main thread. They end when
//! they are told to, and are joined before their [`WorkerThreads`] is dropped or the process exits.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Barrier};
use std::thread::{Builder, JoinHandle};

use nix::sys::signal::{SigSet, SigmaskHow};

use crate::run::memory;
use crate::run::shutdown::{ShutDown, register};
use crate::{Error, Result};

/// Enough for a blocking system call and what the runtime puts around it.
const STACK_BYTES: usize = 128 << 10;

/// The stack, and more than the C library allocates for a thread that begins.
const MEMORY_TO_BEGIN: usize = STACK_BYTES + (1 << 20);

/// Threads that all do the same work.
pub(crate) struct WorkerThreads {
    threads: Rc<dyn ShutDown>,
}

struct RunningThreads<E> {
    /// Makes each of them return soon.
    end: E,
    handles: RefCell<Vec<JoinHandle<()>>>,
}

impl WorkerThreads {
    /// Starts `count` threads of this name, each of which does `work`. They return by themselves, or soon
    /// after `end` was called, which may happen more than once.
    pub(crate) fn start<W, E>(name: &str, count: usize, work: W, end: E) -> Result<Self>
    where
        W: Fn() + Clone + Send + 'static,
        E: Fn() + 'static,
    {
        let threads = Rc::new(RunningThreads { end, handles: RefCell::new(Vec::with_capacity(count)) });
        let workers = Self { threads: Rc::clone(&threads) as Rc<dyn ShutDown> };
        register(&workers.threads);
        // A thread inherits the mask of the moment it starts. Miri knows no signals.
        let failed = |e: nix::Error| Error::System { action: "block signals", source: e.into() };
        let mask = (!cfg!(miri)).then(|| SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK));
        let mask = mask.transpose().map_err(failed)?;
        let started = (0..count).try_for_each(|_| {
            let handle = begin(name, work.clone())?;
            threads.handles.borrow_mut().push(handle);
            Ok(())
        });
        mask.map_or(Ok(()), |mask| mask.thread_set_mask()).map_err(failed)?;
        started?;
        Ok(workers)
    }
}

/// Starts a thread, and waits until it does its work: the C library ends a process in which a thread that
/// begins finds no memory.
fn begin(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    drop(memory::hold(MEMORY_TO_BEGIN)?);
    let here = Arc::new(Barrier::new(2));
    let there = Arc::clone(&here);
    let thread = Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
    let handle = thread.spawn(move || {
        there.wait();
        work();
    });
    let handle = handle.map_err(|source| Error::System { action: "start a thread", source })?;
    here.wait();
    Ok(handle)
}

impl<E: Fn()> ShutDown for RunningThreads<E> {
    fn shut_down(&self) {
        (self.end)();
        for handle in self.handles.borrow_mut().drain(..) {
            // These threads have nothing that could panic; if one did, it is gone as well.
            let _ = handle.join();
        }
    }
}

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        self.threads.shut_down();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    /// Threads that run until they are told to end, and the number of those that run.
    fn workers(count: usize) -> (WorkerThreads, Arc<AtomicUsize>) {
        let running = Arc::new(AtomicUsize::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let (counted, ended) = (Arc::clone(&running), Arc::clone(&over));
        let work = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            while !ended.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            counted.fetch_sub(1, Ordering::SeqCst);
        };
        let workers =
            WorkerThreads::start("workers", count, work, move || over.store(true, Ordering::SeqCst))
                .expect("workers");
        while running.load(Ordering::SeqCst) < count {
            std::thread::yield_now();
        }
        (workers, running)
    }

    #[test]
    fn dropping_joins() {
        let (workers, running) = workers(4);
        drop(workers);
        assert_eq!(running.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_process_that_exits_joins_what_nobody_dropped() {
        let (workers, running) = workers(4);
        std::mem::forget(workers);
        crate::run::shutdown::all();
        assert_eq!(running.load(Ordering::SeqCst), 0);
    }
}
