//! What the executor calls: when a counted query starts, runs and ends, and for each row of its nodes.

use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use pgrx::pg_guard;
use pgrx::pg_sys;
use pgrx::pg_sys::InstrumentOption::{INSTRUMENT_BUFFERS, INSTRUMENT_ROWS, INSTRUMENT_TIMER};

#[cfg(feature = "count_every_query")]
use super::every_query;
use super::{ARMED, COUNTING, Counting, HOW, OF_WORKER, OfWorker};
use crate::pg::backend::encoding::text;
use crate::pg::backend::executor::bitmaps;
use crate::pg::backend::executor::io_workers::IoWorkers;
use crate::pg::backend::executor::shared_counts::{self, SharedCounts};
use crate::pg::backend::{interrupts, server};
use crate::pg::compat;

/// Is this the statement that is to be counted, run by EXPLAIN?
unsafe fn is_armed(query: *mut pg_sys::QueryDesc) -> bool {
    // SAFETY: the caller vouches for the query.
    unsafe {
        !ARMED.get().is_null()
            && (*query).sourceText == ARMED.get()
            && (*query).instrument_options as u32 & (INSTRUMENT_ROWS | INSTRUMENT_TIMER) != 0
    }
}

/// Takes note of a query that is about to start: the first one of a parallel worker is its own.
pub(in crate::pg::backend::executor) unsafe extern "C-unwind" fn starts(query: *mut pg_sys::QueryDesc) {
    // SAFETY: the executor hands us a query that is about to start.
    unsafe {
        if is_armed(query) && !HOW.get().prints {
            (*query).instrument_options &= !INSTRUMENT_BUFFERS as i32;
        }
    }
    if shared_counts::is_worker() && OF_WORKER.get() == OfWorker::Nothing {
        OF_WORKER.set(OfWorker::Query(query));
    }
}

/// Takes note of a query that has started, with these flags: its nodes are there.
pub(in crate::pg::backend::executor) unsafe extern "C-unwind" fn started(
    query: *mut pg_sys::QueryDesc,
    flags: c_int,
) {
    // SAFETY: the executor hands us a query that has started, with its plan.
    unsafe {
        if flags as u32 & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0 {
            return;
        }
        if is_armed(query) {
            start_counting(query);
        } else {
            #[cfg(feature = "count_every_query")]
            every_query::count(query);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn start_counting(query: *mut pg_sys::QueryDesc) {
    // SAFETY: as in `started`; the text is a C string.
    unsafe {
        ARMED.set(ptr::null());
        interrupts::shut_down_at_exit();
        let text = CStr::from_ptr((*query).sourceText);
        let mut counting = Counting::of(query);
        if (*(*query).plannedstmt).parallelModeNeeded {
            counting.shared = SharedCounts::create(text, counting.nodes.len());
            // Without it the workers' accounts end with them.
            counting.knows_device &= counting.shared.is_some();
        }
        if !HOW.get().exact {
            counting.io_workers = IoWorkers::of(server::read_account());
        }
        counting.restart();
        COUNTING.store(Box::into_raw(Box::new(counting)), Relaxed);
    }
}

/// The query is about to run.
pub(in crate::pg::backend::executor) unsafe extern "C-unwind" fn runs(query: *mut pg_sys::QueryDesc) {
    if OF_WORKER.get() == OfWorker::Query(query) && shared_counts::counts_here() {
        // SAFETY: the executor hands us a query that has started.
        unsafe { start_in_worker(query) };
    }
}

/// Only now: before it runs, a worker sets nodes up for what they share with the others.
#[pg_guard]
unsafe extern "C-unwind" fn start_in_worker(query: *mut pg_sys::QueryDesc) {
    // SAFETY: the caller vouches for the query.
    unsafe {
        let Some(shared) = SharedCounts::of_leader(CStr::from_ptr((*query).sourceText)) else { return };
        interrupts::shut_down_at_exit();
        let mut counting = Counting::of(query);
        counting.shared = Some(shared);
        counting.restart();
        COUNTING.store(Box::into_raw(Box::new(counting)), Relaxed);
    }
}

/// The query has run. A worker tells what it has counted.
pub(in crate::pg::backend::executor) unsafe extern "C-unwind" fn ran(query: *mut pg_sys::QueryDesc) {
    if OF_WORKER.get() != OfWorker::Query(query) {
        return;
    }
    OF_WORKER.set(OfWorker::Done);
    // SAFETY: made by `start_in_worker`.
    if let Some(counting) = unsafe { COUNTING.load(Relaxed).as_mut() } {
        counting.tell();
    }
}

/// The query is about to end.
pub(in crate::pg::backend::executor) unsafe extern "C-unwind" fn ends(query: *mut pg_sys::QueryDesc) {
    let counting = COUNTING.load(Relaxed);
    // SAFETY: the query's nodes are still there.
    unsafe {
        if !counting.is_null() && (*counting).estate == (*query).estate {
            end_counted(query);
        } else {
            #[cfg(feature = "count_every_query")]
            every_query::end(query);
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn end_counted(query: *mut pg_sys::QueryDesc) {
    // SAFETY: as in `ends`.
    unsafe {
        let counting = &mut *COUNTING.load(Relaxed);
        counting.bitmaps.iter_mut().for_each(|bitmap| bitmap.put_back());
        if counting.prints {
            counting.text = Some(text(compat::plan_as_text(query)));
        }
    }
}

/// Calls a node's own function for the first time.
pub(super) unsafe extern "C-unwind" fn counted_first(
    node: *mut pg_sys::PlanState,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as in `counted`.
    unsafe {
        compat::check_stack_depth();
        (*node).ExecProcNode = Some(counted);
        counted(node)
    }
}

/// Calls a node's own function.
pub(super) unsafe extern "C-unwind" fn counted(node: *mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the executor calls us for a node that has our function, which is one of a query that is being
    // counted. An ERROR passes through: there is nothing here that would have to be dropped.
    unsafe {
        let counting = Counting::around((*node).state);
        let number = (*(*node).plan).plan_node_id as usize;
        let caller = Counting::enter(counting, number);
        let slot = Counting::own_function(counting, number)(node);
        Counting::go_on(counting, number, caller);
        if !(*counting).instruments {
            compat::count_row(node, slot);
        }
        slot
    }
}

/// Calls the access method's own function.
pub(super) unsafe extern "C-unwind" fn counted_bitmap(
    scan: pg_sys::IndexScanDesc,
    bitmap: *mut pg_sys::TIDBitmap,
) -> i64 {
    // SAFETY: as in `counted`. Scans of other queries come here as well, and are in no list.
    unsafe {
        let own_function = bitmaps::own_function(scan);
        match Counting::of_bitmap(scan) {
            Some((counting, number)) => {
                let caller = Counting::enter(counting, number);
                let count = own_function(scan, bitmap);
                Counting::go_on(counting, number, caller);
                count
            }
            None => own_function(scan, bitmap),
        }
    }
}
