//! What is set aside: descriptors for files that are opened without the server, and memory for an ERROR about
//! a lack of it.
//!
//! The server has some set aside for its own reports, but pgrx copies an ERROR on its way through Rust. Where
//! there is no memory for that, one ERROR raises another one, until the server ends itself.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;

use io_probe_core::files::RelationFiles;
use pgrx::{PgSqlErrorCode, pg_guard, pg_sys};

use crate::error::Error;

/// While this lives the server counts the files of a relation that core keeps open among the descriptors of
/// this backend: it closes some of its own in time, instead of finding out that there are none left.
pub(crate) struct Reserved(usize);

impl Reserved {
    /// Reserves descriptors for these files.
    pub(crate) fn of(files: &RelationFiles) -> Self {
        let count = files.most_open();
        for _ in 0..count {
            // SAFETY: it counts, and closes files of the server's, which opens them again when it reads them.
            unsafe { pg_sys::ReserveExternalFD() };
        }
        Self(count)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        for _ in 0..self.0 {
            // SAFETY: this many were reserved. It only counts, also while aborting.
            unsafe { pg_sys::ReleaseExternalFD() };
        }
    }
}

unsafe extern "C-unwind" {
    // `utils/elog.h`: the SQLSTATE of what is being reported.
    fn geterrcode() -> c_int;
}

/// Bytes set aside, more than the copies take: a memory context that has grown takes no block under 1 MiB.
const BYTES: usize = 4 << 20;

/// Bytes that it takes to report a lack of memory, a stack of the ERROR's included.
const LAST_BYTES: usize = 1 << 20;

thread_local! {
    /// Memory for that report, which nothing else uses.
    static LAST: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Sets aside what it takes to say that there is no memory, while there is some.
pub(crate) fn keep_last() {
    let mut last = LAST.take();
    let _ = last.try_reserve_exact(LAST_BYTES);
    LAST.set(last);
}

/// Does `work` while some memory is set aside for an ERROR about a lack of it.
pub(in crate::pg) fn with_reserve<T>(work: impl FnOnce() -> T) -> T {
    let _reserve = Reserve::begin();
    work()
}

/// The same; None where there is no memory to set aside.
pub(in crate::pg) fn if_there_is_memory<T>(work: impl FnOnce() -> T) -> Option<T> {
    keep_last();
    let _reserve = Reserve::try_begin()?;
    Some(work())
}

/// Belongs to the list of callbacks that add context to what is reported, until it is dropped.
struct Reserve(*mut ListEntry);

struct ListEntry {
    callback: pg_sys::ErrorContextCallback,
    memory: Cell<Vec<u8>>,
}

impl Reserve {
    fn begin() -> Self {
        keep_last();
        Self::try_begin().unwrap_or_else(|| {
            // Where even that is lacking, there is none for the call, either.
            LAST.take();
            Error::from(io_probe_core::Error::NoMemory { bytes: BYTES }).raise()
        })
    }

    fn try_begin() -> Option<Self> {
        let mut memory = Vec::new();
        memory.try_reserve_exact(BYTES).ok()?;
        // SAFETY: reads and writes a variable of this backend; the callback and its argument live until they
        // are taken off the list.
        unsafe {
            let callback = pg_sys::ErrorContextCallback {
                previous: pg_sys::error_context_stack,
                callback: Some(release),
                arg: ptr::null_mut(),
            };
            let entry = Box::into_raw(Box::new(ListEntry { callback, memory: Cell::new(memory) }));
            (*entry).callback.arg = entry.cast();
            pg_sys::error_context_stack = &raw mut (*entry).callback;
            Some(Self(entry))
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        // SAFETY: made in `begin`. On the way out by an ERROR there may be others before it in the list,
        // which complete that.
        unsafe {
            let own = &raw mut (*self.0).callback;
            let mut place = &raw mut pg_sys::error_context_stack;
            while !(*place).is_null() && *place != own {
                place = &raw mut (**place).previous;
            }
            if *place == own {
                *place = (*own).previous;
            }
            drop(Box::from_raw(self.0));
        }
    }
}

/// Called for whatever is reported.
#[pg_guard]
unsafe extern "C-unwind" fn release(entry: *mut c_void) {
    // SAFETY: the argument is that of `begin`, and something is being reported.
    unsafe {
        if geterrcode() == PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as c_int {
            (*entry.cast::<ListEntry>()).memory.take();
        }
    }
}
