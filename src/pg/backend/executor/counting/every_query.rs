//! Counts every query, and asks for no counts: so the server's own regression suite shows whether counting
//! changes anything. Made for that suite only.

use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

use pgrx::{pg_guard, pg_sys};

use super::{COUNTING, Counting};
use crate::pg::backend::executor::shared_counts;

#[pg_guard]
pub(super) unsafe extern "C-unwind" fn count(query: *mut pg_sys::QueryDesc) {
    // SAFETY: the query has started. What counts it is forgotten with the memory of its nodes.
    unsafe {
        if (*query).planstate.is_null() || shared_counts::counts_here() {
            return;
        }
        let mut counting = Counting::of(query);
        counting.restart();
        let counting = Box::into_raw(Box::new(counting));
        COUNTING.store(counting, Relaxed);
        let context = (*(*query).estate).es_query_cxt;
        let size = size_of::<pg_sys::MemoryContextCallback>();
        let callback = pg_sys::MemoryContextAlloc(context, size).cast::<pg_sys::MemoryContextCallback>();
        (*callback).func = Some(forget);
        (*callback).arg = counting.cast();
        pg_sys::MemoryContextRegisterResetCallback(context, callback);
    }
}

pub(super) unsafe fn end(query: *mut pg_sys::QueryDesc) {
    let mut counting = COUNTING.load(Relaxed);
    // SAFETY: the query's nodes are still there, and so are all that are in the list.
    unsafe {
        while let Some(here) = counting.as_mut() {
            if here.estate == (*query).estate {
                here.bitmaps.iter_mut().for_each(|bitmap| bitmap.put_back());
            }
            counting = here.outer;
        }
    }
}

unsafe extern "C-unwind" fn forget(counting: *mut c_void) {
    let counting: *mut Counting = counting.cast();
    // SAFETY: made by `count`, and still in the list.
    unsafe {
        let mut link = COUNTING.as_ptr();
        while *link != counting {
            link = &raw mut (**link).outer;
        }
        *link = (*counting).outer;
        drop(Box::from_raw(counting));
    }
}
