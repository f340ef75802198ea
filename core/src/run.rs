//! What every measurement needs to run: a clock, a budget, a stopwatch, an order, turns, threads that end
//! with it.

pub mod budget;
pub mod clock;
pub mod memory;
pub mod order;
pub mod rounds;
pub mod shutdown;
pub mod stopwatch;
pub mod turns_at_work;
pub(crate) mod waits;
pub(crate) mod workers;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also if another thread panicked with the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
