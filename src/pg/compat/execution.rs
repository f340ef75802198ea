//! The executor's hooks, and what differs in its counters and its nodes.

use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

use pgrx::pg_sys;

/// What sees the queries that the executor starts, runs and ends.
pub(in crate::pg) struct QueryWatcher {
    /// It is about to start.
    pub(in crate::pg) starts: unsafe extern "C-unwind" fn(*mut pg_sys::QueryDesc),
    /// It has started, with these flags: its nodes are there.
    pub(in crate::pg) started: unsafe extern "C-unwind" fn(*mut pg_sys::QueryDesc, c_int),
    /// It is about to run, or to go on.
    pub(in crate::pg) runs: unsafe extern "C-unwind" fn(*mut pg_sys::QueryDesc),
    /// It has run.
    pub(in crate::pg) ran: unsafe extern "C-unwind" fn(*mut pg_sys::QueryDesc),
    /// It is about to end: its nodes are still there.
    pub(in crate::pg) ends: unsafe extern "C-unwind" fn(*mut pg_sys::QueryDesc),
}

/// The hooks before ours, and who sees what they are called for.
struct Watched {
    start: pg_sys::ExecutorStart_hook_type,
    run: pg_sys::ExecutorRun_hook_type,
    end: pg_sys::ExecutorEnd_hook_type,
    watcher: &'static QueryWatcher,
}

static WATCHED: OnceLock<Watched> = OnceLock::new();

/// From now on `watcher` sees all queries. To be called once, when the library is loaded.
pub(in crate::pg) fn watch_queries(watcher: &'static QueryWatcher) {
    // SAFETY: variables of this process; the hooks are functions of this library, which is never unloaded.
    unsafe {
        let before = Watched {
            start: pg_sys::ExecutorStart_hook,
            run: pg_sys::ExecutorRun_hook,
            end: pg_sys::ExecutorEnd_hook,
            watcher,
        };
        if WATCHED.set(before).is_ok() {
            pg_sys::ExecutorStart_hook = Some(start);
            pg_sys::ExecutorRun_hook = Some(run);
            pg_sys::ExecutorEnd_hook = Some(end);
        }
    }
}

unsafe extern "C-unwind" {
    // `executor/executor.h` and `nodes/nodeFuncs.h`. Called as they are: pgrx would copy an ERROR on its way.
    fn standard_ExecutorStart(query: *mut pg_sys::QueryDesc, flags: c_int);
    fn standard_ExecutorRun(
        query: *mut pg_sys::QueryDesc,
        direction: pg_sys::ScanDirection::Type,
        count: u64,
        #[cfg(not(any(feature = "pg18", feature = "pg19")))] once: bool,
    );
    fn standard_ExecutorEnd(query: *mut pg_sys::QueryDesc);
    #[link_name = "check_stack_depth"]
    fn server_check_stack_depth();
    #[cfg_attr(not(feature = "pg15"), link_name = "planstate_tree_walker_impl")]
    fn planstate_tree_walker(node: *mut pg_sys::PlanState, visit: VisitNode, context: *mut c_void) -> bool;
}

// What the executor calls. An ERROR passes through these: there is nothing in them that would have to be
// dropped.

unsafe extern "C-unwind" fn start(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: the server, or a hook before us, hands us a query that is about to start. What we call is what
    // the server would have called.
    unsafe {
        let Some(watched) = WATCHED.get() else { return };
        (watched.watcher.starts)(query);
        watched.start.unwrap_or(standard_ExecutorStart)(query, flags);
        (watched.watcher.started)(query, flags);
    }
}

unsafe extern "C-unwind" fn run(
    query: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: u64,
    #[cfg(not(any(feature = "pg18", feature = "pg19")))] once: bool,
) {
    // SAFETY: as in `start`.
    unsafe {
        let Some(watched) = WATCHED.get() else { return };
        (watched.watcher.runs)(query);
        let run = watched.run.unwrap_or(standard_ExecutorRun);
        #[cfg(not(any(feature = "pg18", feature = "pg19")))]
        run(query, direction, count, once);
        #[cfg(any(feature = "pg18", feature = "pg19"))]
        run(query, direction, count);
        (watched.watcher.ran)(query);
    }
}

unsafe extern "C-unwind" fn end(query: *mut pg_sys::QueryDesc) {
    // SAFETY: as in `start`.
    unsafe {
        let Some(watched) = WATCHED.get() else { return };
        (watched.watcher.ends)(query);
        watched.end.unwrap_or(standard_ExecutorEnd)(query);
    }
}

/// An ERROR if the stack is too deep, as the server raises it at the first call of a node.
///
/// # Safety
/// The ERROR must find nothing on its way that would have to be dropped.
pub(in crate::pg) unsafe fn check_stack_depth() {
    // SAFETY: the caller vouches for what an ERROR finds.
    unsafe { server_check_stack_depth() }
}

/// Counts a row that a node returns, as the server does it where that is all that it counts.
///
/// # Safety
/// `node` must be one that runs, and `slot` what it has returned.
#[inline(always)]
pub(in crate::pg) unsafe fn count_row(node: *mut pg_sys::PlanState, slot: *mut pg_sys::TupleTableSlot) {
    // SAFETY: the caller vouches for both.
    unsafe {
        if let Some(instrument) = (*node).instrument.as_mut() {
            let is_row = !slot.is_null() && u32::from((*slot).tts_flags) & pg_sys::TTS_FLAG_EMPTY == 0;
            instrument.running = true;
            instrument.tuplecount += f64::from(u8::from(is_row));
        }
    }
}

/// Is called for a node, with the context of the walk; true ends the walk.
pub(in crate::pg) type VisitNode = unsafe extern "C-unwind" fn(*mut pg_sys::PlanState, *mut c_void) -> bool;

/// Visits the nodes right below one, in the order in which EXPLAIN prints them.
///
/// # Safety
/// `node` must be a node of a query that has started.
pub(in crate::pg) unsafe fn walk_below(
    node: *mut pg_sys::PlanState,
    visit: VisitNode,
    context: *mut c_void,
) -> bool {
    // SAFETY: the caller vouches for the node.
    unsafe { planstate_tree_walker(node, visit, context) }
}

/// How long reading blocks of tables and indexes took so far, reading those of temporary tables, where the
/// server tells that apart, and reading and writing temporary files; in the server's own unit.
pub(in crate::pg) fn io_ticks(usage: &pg_sys::BufferUsage) -> [i64; 3] {
    let temp = ticks(&usage.temp_blk_read_time) + ticks(&usage.temp_blk_write_time);
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    return [ticks(&usage.blk_read_time), 0, temp];
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        let local = ticks(&usage.local_blk_read_time);
        [ticks(&usage.shared_blk_read_time) + local, local, temp]
    }
}

/// Is the time of reading blocks of temporary tables told apart?
pub(crate) const TELLS_LOCAL_TIME: bool = cfg!(not(any(feature = "pg15", feature = "pg16")));

#[cfg(feature = "pg15")]
fn ticks(time: &pg_sys::instr_time) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(not(feature = "pg15"))]
fn ticks(time: &pg_sys::instr_time) -> i64 {
    time.ticks
}

/// The server's unit of time in nanoseconds; from 19 on it may be the processor's.
pub(in crate::pg) fn nanoseconds(ticks: i64) -> i64 {
    #[cfg(not(feature = "pg19"))]
    return ticks;
    #[cfg(feature = "pg19")]
    {
        const SHIFT: u32 = pg_sys::TICKS_TO_NS_SHIFT;
        // SAFETY: set when the process began.
        match unsafe { pg_sys::ticks_per_ns_scaled } {
            0 => ticks,
            scaled => ((i128::from(ticks) * i128::from(scaled)) >> SHIFT) as i64,
        }
    }
}

/// The plan of a query that has run, as EXPLAIN (ANALYZE, BUFFERS) prints it: a string of the present memory
/// context.
///
/// # Safety
/// The query must have run with instruments, and must not have ended.
pub(in crate::pg) unsafe fn plan_as_text(query: *mut pg_sys::QueryDesc) -> *const c_char {
    // SAFETY: the caller vouches for the query.
    unsafe {
        let state = pg_sys::NewExplainState();
        ((*state).analyze, (*state).buffers, (*state).timing) = (true, true, true);
        ((*state).costs, (*state).format) = (true, pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT);
        #[cfg(feature = "pg19")]
        {
            (*state).io = true;
        }
        pg_sys::ExplainPrintPlan(state, query);
        (*(*state).str_).data
    }
}
