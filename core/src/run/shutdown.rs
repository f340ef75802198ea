//! Brings to rest what goes on in the background: requests that the kernel still serves, threads that still
//! run.
//!
//! An owner may go in two ways. Unwinding drops it, and dropping waits for what is under way. A process that
//! exits without unwinding calls [`all`], so that neither the kernel nor a thread uses memory that is going
//! away.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// Work that the kernel or a thread may still be doing when its owner is gone.
pub(crate) trait ShutDown {
    /// Waits until nothing is under way and nothing can start again.
    fn shut_down(&self);
}

thread_local! {
    static LIVE: RefCell<Vec<Weak<dyn ShutDown>>> = const { RefCell::new(Vec::new()) };
}

/// Makes `live` known to [`all`] until it is dropped.
pub(crate) fn register(live: &Rc<dyn ShutDown>) {
    LIVE.with_borrow_mut(|known| {
        known.retain(|e| e.strong_count() > 0);
        known.push(Rc::downgrade(live));
    });
}

/// Brings to rest everything that this thread started. For a process that exits without unwinding.
pub fn all() {
    // What is dropped during the loop must find the list free.
    // And a process that exits from foreign code may have no thread-local storage any more.
    let live = LIVE.try_with(|live| live.take()).unwrap_or_default();
    live.iter().filter_map(Weak::upgrade).for_each(|live| live.shut_down());
}
