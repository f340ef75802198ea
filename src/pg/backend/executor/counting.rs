//! What each node of a plan does itself, counted while it runs.
//!
//! Each node is called by a function of ours, which calls the node's own. At each call and return the node
//! that was at work gets what the process has used since the last one: as EXPLAIN counts it, but without what
//! other nodes do meanwhile, whoever called them. Bytes fetched from storage are the kernel's account of this
//! thread, which is asked only if something was read or waited for. The server's own counting of blocks for
//! each node, and its clock, are left out: a query takes about as long as it does without EXPLAIN.
//!
//! # Limitations and caveats
//! - What a node has the kernel or the server read ahead is its own if it reads a block in the same call.
//! - With io_uring the kernel also reads by threads of its own in this process: what they fetch is of the
//!   node that reads next.
//! - A parallel hash join of the leader sets itself up anew, and with that leaves our function until the node
//!   above it is called again. Right below a Gather its first call is the Gather's, which does nothing
//!   itself.
//! - What the leader adds up for parallel workers that have ended is no doing of the node that is at work.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use io_probe_advise::plan;
use io_probe_core::machine::account;
use io_probe_core::run::turns_at_work::TurnsAtWork;
use pgrx::pg_guard;
use pgrx::pg_sys::InstrumentOption::{INSTRUMENT_BUFFERS, INSTRUMENT_ROWS, INSTRUMENT_TIMER};
use pgrx::pg_sys::{self, NodeTag};

use super::bitmaps::{self, BitmapScan};
use super::copies::CopyTimes;
use super::counts::{self, Counter, NodeCounts, Usage};
use super::io_workers::{IoWorkers, Share};
use super::shared_counts::{self, SharedCounts};
use crate::pg::backend::encoding::text;
use crate::pg::backend::interrupts;
use crate::pg::backend::server;
use crate::pg::compat;

/// In place of a node's number: no node is at work.
pub(super) const OUTSIDE: usize = usize::MAX;

/// How a query is executed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Execution {
    /// No other process reads for it.
    pub(crate) exact: bool,
    /// Is its plan wanted as text, too?
    pub(crate) prints: bool,
}

/// What was counted of a node.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OfNode {
    pub(crate) counts: NodeCounts,
    /// Nanoseconds of its own in this process, which is the leader of those that ran it.
    pub(crate) leader_ns: u64,
    /// Did the I/O workers read for it?
    pub(crate) by_workers: bool,
}

/// What was counted of a query.
pub(crate) struct Counted {
    /// Of each node, in the order in which EXPLAIN prints them.
    pub(crate) nodes: Vec<OfNode>,
    /// Were bytes that the I/O workers fetched shared out among nodes by their blocks?
    pub(crate) shared_out: bool,
    /// Are the bytes that were fetched known?
    pub(crate) knows_device: bool,
    /// Nanoseconds of a block that the OS page cache had; None if there was none.
    pub(crate) copy_ns: Option<f64>,
    /// The plan as EXPLAIN prints it, if that was wanted.
    pub(crate) text: Option<String>,
}

/// Does `work`, which runs the statement `EXPLAIN (ANALYZE, BUFFERS…) …`, and counts what its nodes do. None
/// if it was not run.
pub(in crate::pg) fn count_nodes<T>(
    statement: &CStr,
    how: Execution,
    work: impl FnOnce() -> T,
) -> (T, Option<Counted>) {
    let armed = Armed::begin(statement, how);
    let result = work();
    (result, armed.counted())
}

/// The innermost query that is being counted, each of which knows the one around it. The executor has one
/// thread, and asks for each row.
static COUNTING: AtomicPtr<Counting> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// The statement that is to be counted when it starts: this text, and no other of the same words; NULL
    /// for none.
    static ARMED: Cell<*const c_char> = const { Cell::new(ptr::null()) };
    /// How it is executed.
    static HOW: Cell<Execution> = const { Cell::new(Execution { exact: false, prints: false }) };
    /// What this parallel worker counts.
    static OF_WORKER: Cell<OfWorker> = const { Cell::new(OfWorker::Nothing) };
}

/// What a parallel worker counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OfWorker {
    /// Nothing yet.
    Nothing,
    /// Its own query, which it starts before any other, and which has not run.
    Query(*mut pg_sys::QueryDesc),
    /// The query has run, or is not counted.
    Done,
}

/// A statement that is about to be counted; after it, its counts. Dropped by an ERROR, it leaves nothing
/// behind.
struct Armed {
    outer: *mut Counting,
    before: (*const c_char, Execution),
}

impl Armed {
    fn begin(statement: &CStr, how: Execution) -> Self {
        let before = (ARMED.replace(statement.as_ptr()), HOW.replace(how));
        Self { outer: COUNTING.load(Relaxed), before }
    }

    fn counted(&self) -> Option<Counted> {
        if COUNTING.load(Relaxed) == self.outer {
            return None;
        }
        // SAFETY: made by `started`, since the one around it is another one. Its query has ended.
        let counting = unsafe { Box::from_raw(COUNTING.swap(self.outer, Relaxed)) };
        Some(counting.end())
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        let (armed, how) = self.before;
        ARMED.set(armed);
        HOW.set(how);
        while COUNTING.load(Relaxed) != self.outer {
            // SAFETY: made by `started`. Its query has ended, or an ERROR has ended it.
            let counting = unsafe { Box::from_raw(COUNTING.load(Relaxed)) };
            COUNTING.store(counting.outer, Relaxed);
        }
    }
}

/// A node that is counted.
struct CountedNode {
    /// The node's own function.
    own_function: pg_sys::ExecProcNodeMtd,
    counts: NodeCounts,
    /// Does it have blocks read before it uses them? Then a hit may have come with a read.
    reads_ahead: bool,
    /// Which node goes on when it returns; OUTSIDE for the one that was at work before. A Hash has its input
    /// read in a call of its join, and is not called itself.
    gives_to: usize,
    /// Is it a Hash, or a join that has one?
    hashes: bool,
    /// Is there more to do than to count, when it goes to work?
    needs_care: bool,
    /// In this process.
    own_ns: u64,
}

impl CountedNode {
    /// Of a number that the plan does not have.
    const NONE: Self = Self {
        own_function: None,
        counts: NodeCounts::NONE,
        reads_ahead: false,
        gives_to: OUTSIDE,
        hashes: false,
        needs_care: false,
        own_ns: 0,
    };
}

/// A Gather, and the numbers of the nodes below it.
struct Gather {
    state: *mut pg_sys::PlanState,
    number: usize,
    below: Vec<usize>,
    /// What was taken note of, of what its workers have done.
    settled: NodeCounts,
}

/// A parallel hash join, and the node above it.
struct HashJoin {
    state: *mut pg_sys::PlanState,
    number: usize,
    parent: usize,
}

/// A query that is counted.
struct Counting {
    outer: *mut Counting,
    estate: *mut pg_sys::EState,
    /// By the numbers of the plan.
    nodes: Vec<CountedNode>,
    /// These numbers in EXPLAIN's order.
    order: Vec<usize>,
    gathers: Vec<Gather>,
    hash_joins: Vec<HashJoin>,
    bitmaps: Vec<BitmapScan>,
    shared: Option<SharedCounts>,
    io_workers: Option<IoWorkers>,
    at_work: usize,
    /// Does the server count and time each node as well?
    instruments: bool,
    last: Usage,
    /// [`counts::sum`] of it.
    last_sum: i64,
    last_kernel: KernelCounts,
    /// Whose bytes they are: this thread's, or the whole process's where others in it read for this one.
    of_process: bool,
    knows_device: bool,
    copies: CopyTimes,
    turns: TurnsAtWork,
    prints: bool,
    text: Option<String>,
}

/// What the kernel has counted so far.
#[derive(Clone, Copy, Default)]
struct KernelCounts {
    /// Bytes that were fetched from storage.
    fetched: i64,
    /// How often this thread put itself to sleep.
    sleeps: i64,
}

impl KernelCounts {
    /// With what was fetched for this thread, or for the whole process.
    fn now(of_process: bool) -> Self {
        let usage = |whose: c_int| {
            // SAFETY: zeros are a rusage; the call fills it.
            unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                libc::getrusage(whose, &mut usage);
                usage
            }
        };
        let own = usage(libc::RUSAGE_THREAD);
        let blocks = if of_process { usage(libc::RUSAGE_SELF).ru_inblock } else { own.ru_inblock };
        Self { fetched: blocks * 512, sleeps: own.ru_nvcsw }
    }
}

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
pub(super) unsafe extern "C-unwind" fn starts(query: *mut pg_sys::QueryDesc) {
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

/// Takes note of a query that has started.
///
/// # Safety
/// It must have.
pub(super) unsafe fn started(query: *mut pg_sys::QueryDesc) {
    // SAFETY: the caller vouches for the query.
    unsafe {
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
pub(super) unsafe extern "C-unwind" fn runs(query: *mut pg_sys::QueryDesc) {
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
pub(super) unsafe extern "C-unwind" fn ran(query: *mut pg_sys::QueryDesc) {
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
pub(super) unsafe extern "C-unwind" fn ends(query: *mut pg_sys::QueryDesc) {
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
unsafe extern "C-unwind" fn counted_first(node: *mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: as in `counted`.
    unsafe {
        compat::check_stack_depth();
        (*node).ExecProcNode = Some(counted);
        counted(node)
    }
}

/// Calls a node's own function.
unsafe extern "C-unwind" fn counted(node: *mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot {
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
unsafe extern "C-unwind" fn counted_bitmap(
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

impl Counting {
    /// Has the nodes of a query that has started call our function.
    ///
    /// # Safety
    /// It must have.
    unsafe fn of(query: *mut pg_sys::QueryDesc) -> Self {
        let mut counting = Self {
            outer: COUNTING.load(Relaxed),
            // SAFETY: the caller vouches for the query.
            estate: unsafe { (*query).estate },
            nodes: Vec::new(),
            order: Vec::new(),
            gathers: Vec::new(),
            hash_joins: Vec::new(),
            bitmaps: Vec::new(),
            shared: None,
            io_workers: None,
            at_work: OUTSIDE,
            // SAFETY: as above.
            instruments: unsafe { (*query).instrument_options as u32 & !INSTRUMENT_ROWS != 0 },
            last: [0; counts::OF_SERVER],
            last_sum: 0,
            last_kernel: KernelCounts::default(),
            of_process: server::reads_by_io_uring(),
            knows_device: account::own_read_bytes().is_some(),
            copies: CopyTimes::none(),
            turns: TurnsAtWork::begin(0),
            prints: HOW.get().prints,
            text: None,
        };
        let mut walk = Walk {
            counting: &mut counting,
            seen: HashSet::new(),
            above: OUTSIDE,
            above_node: ptr::null_mut(),
        };
        // SAFETY: as above.
        unsafe { visit((*query).planstate, (&raw mut walk).cast()) };
        // SAFETY: as above. EXPLAIN does not show a Gather that was added for tests.
        if unsafe { is_invisible((*query).planstate) } {
            counting.order.remove(0);
        }
        counting
    }

    /// Begins to count.
    fn restart(&mut self) {
        self.last_sum = counts::sum();
        self.last = counts::usage(&counts::seen());
        self.last_kernel = KernelCounts::now(self.of_process);
        self.turns = TurnsAtWork::begin(self.nodes.len());
        for node in self.nodes.iter_mut().filter(|node| node.reads_ahead) {
            node.needs_care = self.io_workers.is_some();
        }
        for join in &self.hash_joins {
            if let Some(parent) = self.nodes.get_mut(join.parent) {
                parent.needs_care = true;
            }
            let inputs = self.nodes.iter_mut().filter(|node| node.gives_to == join.number);
            inputs.for_each(|node| node.needs_care = true);
        }
    }

    /// The one that a node with this state belongs to.
    #[inline]
    unsafe fn around(estate: *mut pg_sys::EState) -> *mut Self {
        let mut counting = COUNTING.load(Relaxed);
        // SAFETY: all are there until their queries have ended.
        unsafe {
            while (*counting).estate != estate {
                counting = (*counting).outer;
            }
        }
        counting
    }

    /// The one that this scan is a node of, and its number.
    unsafe fn of_bitmap(scan: pg_sys::IndexScanDesc) -> Option<(*mut Self, usize)> {
        let mut counting = COUNTING.load(Relaxed);
        // SAFETY: as in `around`.
        while let Some(here) = unsafe { counting.as_ref() } {
            if let Some(found) = here.bitmaps.iter().find(|bitmap| bitmap.scan == scan) {
                return Some((counting, found.node));
            }
            counting = here.outer;
        }
        None
    }

    /// A node's own function.
    #[inline(always)]
    unsafe fn own_function(
        this: *mut Self,
        number: usize,
    ) -> unsafe extern "C-unwind" fn(*mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot {
        // SAFETY: as in `enter`: such a node has one.
        unsafe {
            let this = &*this;
            this.nodes.get_unchecked(number).own_function.unwrap_unchecked()
        }
    }

    /// A node goes to work. Returns which one was at work.
    #[inline(always)]
    unsafe fn enter(this: *mut Self, number: usize) -> usize {
        // SAFETY: nobody else has a reference to it. The number is that of a node that has our function.
        let this = unsafe { &mut *this };
        let before = this.switch_to(number);
        // SAFETY: as above.
        if unsafe { this.nodes.get_unchecked(number) }.needs_care {
            this.enter_with_care(number);
        }
        before
    }

    /// The node that was at work before this one goes on.
    #[inline(always)]
    unsafe fn go_on(this: *mut Self, returned: usize, before: usize) {
        // SAFETY: as in `enter`.
        let this = unsafe { &mut *this };
        // SAFETY: as in `enter`.
        let gives_to = unsafe { this.nodes.get_unchecked(returned) }.gives_to;
        let number = if gives_to == OUTSIDE { before } else { gives_to };
        this.switch_to(number);
        if this.nodes.get(number).is_some_and(|node| node.needs_care) {
            this.begin_to_read(number);
        }
    }

    #[inline(always)]
    fn switch_to(&mut self, number: usize) -> usize {
        let sum = counts::sum();
        if sum != self.last_sum {
            self.last_sum = sum;
            self.charge();
        }
        self.turns.turn_to(number);
        std::mem::replace(&mut self.at_work, number)
    }

    #[cold]
    fn enter_with_care(&mut self, number: usize) {
        self.take_back_hash_joins();
        self.begin_to_read(number);
    }

    /// Gives the node that is at work what was used since the last time.
    #[inline(never)]
    fn charge(&mut self) {
        let now = &counts::usage(&counts::seen());
        self.settle();
        let has_read = counts::has_read(now, &self.last);
        if self.at_work == OUTSIDE {
            self.kernel_since();
        } else {
            let looks = has_read || self.nodes[self.at_work].reads_ahead;
            let since = if looks { self.kernel_since() } else { KernelCounts::default() };
            let node = &mut self.nodes[self.at_work];
            let before = (node.counts[Counter::SharedRead], node.counts[Counter::IoTime]);
            node.counts.add_since(now, &self.last);
            node.counts[Counter::Device] += since.fetched;
            let read = node.counts[Counter::SharedRead] - before.0;
            let ns = compat::nanoseconds(node.counts[Counter::IoTime] - before.1).max(0);
            if since.sleeps > 0 {
                let cached = read * i64::from(pg_sys::BLCKSZ) - since.fetched;
                node.counts[Counter::SleptTime] += ns;
                node.counts[Counter::SleptCached] += cached.max(0);
            } else if since.fetched == 0 && read > 0 {
                self.copies.add(read as u64, ns as u64);
            }
            if node.reads_ahead
                && read > 0
                && let Some(workers) = &mut self.io_workers
            {
                workers.add(self.at_work, read as u64);
            }
        }
        self.last = *now;
    }

    /// What the kernel has counted since this was asked the last time.
    fn kernel_since(&mut self) -> KernelCounts {
        let now = KernelCounts::now(self.of_process);
        let before = std::mem::replace(&mut self.last_kernel, now);
        KernelCounts { fetched: now.fetched - before.fetched, sleeps: now.sleeps - before.sleeps }
    }

    /// Where the workers of a Gather have ended, the server has added what they used to what this process
    /// has: takes it out of what will be given to the node that is at work.
    fn settle(&mut self) {
        let Some(shared) = &self.shared else { return };
        for gather in &mut self.gathers {
            // SAFETY: a node of the query, which has not ended.
            if unsafe { has_running_workers(gather.state) } {
                continue;
            }
            let mut sum = NodeCounts::default();
            gather.below.iter().for_each(|number| sum += shared.of(*number));
            let added = sum.all().iter().zip(gather.settled.all()).map(|(now, before)| now - before);
            self.last.iter_mut().zip(added).for_each(|(last, added)| *last += added);
            gather.settled = sum;
        }
    }

    /// Parallel hash joins of the leader that have set themselves up anew call our function again, before the
    /// nodes above them call them.
    fn take_back_hash_joins(&mut self) {
        for join in &self.hash_joins {
            // SAFETY: a node of the query, which has not ended.
            unsafe {
                if !self.is_ours(join.state) {
                    self.nodes[join.number].own_function = self.make_ours(join.state);
                }
            }
        }
    }

    /// Does a node call our function?
    unsafe fn is_ours(&self, node: *mut pg_sys::PlanState) -> bool {
        // SAFETY: the caller vouches for the node.
        let function =
            unsafe { if self.instruments { (*node).ExecProcNodeReal } else { (*node).ExecProcNode } };
        let function = function.map(|function| function as usize);
        [counted, counted_first].iter().any(|ours| Some(*ours as *const () as usize) == function)
    }

    /// Has a node call our function. Returns its own.
    unsafe fn make_ours(&self, node: *mut pg_sys::PlanState) -> pg_sys::ExecProcNodeMtd {
        // SAFETY: the caller vouches for the node.
        unsafe {
            let own_function = (*node).ExecProcNodeReal;
            if self.instruments {
                (*node).ExecProcNodeReal = Some(counted);
            } else {
                (*node).ExecProcNode = Some(counted_first);
            }
            own_function
        }
    }

    /// Takes note of who reads from now on, if the I/O workers may do it for this node.
    #[cold]
    fn begin_to_read(&mut self, number: usize) {
        let reads_ahead = self.nodes.get(number).is_some_and(|node| node.reads_ahead);
        if !reads_ahead {
            return;
        }
        let shares = self.io_workers.as_mut().map(|workers| workers.begin(number)).unwrap_or_default();
        self.give(&shares);
    }

    fn give(&mut self, shares: &[Share]) {
        for (number, bytes) in shares {
            self.nodes[*number].counts[Counter::Device] += *bytes as i64;
        }
    }

    /// Takes note of each node's time in this process.
    fn end_turns(&mut self) {
        let waited = |counts: &NodeCounts| counts.ns(Counter::IoTime) + counts.ns(Counter::TempIoTime);
        let waited: Vec<u64> = self.nodes.iter().map(|node| waited(&node.counts)).collect();
        let turns = std::mem::replace(&mut self.turns, TurnsAtWork::begin(0));
        for (node, ns) in self.nodes.iter_mut().zip(turns.end(&waited)) {
            node.own_ns = ns;
            node.counts[Counter::OwnTime] += ns as i64;
        }
    }

    /// Tells the leader what a worker has counted.
    fn tell(&mut self) {
        self.end_turns();
        let Some(shared) = &self.shared else { return };
        for (number, node) in self.nodes.iter_mut().enumerate() {
            shared.add(number, &std::mem::take(&mut node.counts));
        }
    }

    /// The query has ended.
    fn end(mut self: Box<Self>) -> Counted {
        self.end_turns();
        // Right below a Gather it was set up anew too late for the first call. A Gather does nothing itself.
        for join in std::mem::take(&mut self.hash_joins) {
            if self.gathers.iter().any(|gather| gather.number == join.parent) {
                let mut counts = std::mem::take(&mut self.nodes[join.parent].counts);
                // But wait for its workers.
                let waited = std::mem::take(&mut counts[Counter::OwnTime]);
                self.nodes[join.parent].counts[Counter::OwnTime] = waited;
                self.nodes[join.number].counts += counts;
            }
        }
        let of_workers = self.add_workers();
        let has_io_workers = self.io_workers.is_some();
        let mut counted = Counted {
            nodes: Vec::new(),
            shared_out: false,
            knows_device: self.knows_device,
            copy_ns: self.copies.median_ns(),
            text: self.text.take(),
        };
        if let Some(workers) = self.io_workers.take() {
            match workers.end(&of_workers) {
                Some((shares, shared_out)) => {
                    self.give(&shares);
                    counted.shared_out = shared_out;
                }
                None => counted.knows_device = false,
            }
        }
        let of = |node: &CountedNode| OfNode {
            counts: node.counts,
            leader_ns: node.own_ns,
            by_workers: has_io_workers && node.reads_ahead,
        };
        let nodes = self.order.iter().map(|number| self.nodes.get(*number).map(of).unwrap_or_default());
        counted.nodes = nodes.collect();
        counted
    }

    /// Adds what parallel workers have counted. Returns the blocks that they had the I/O workers read.
    fn add_workers(&mut self) -> Vec<(usize, u64)> {
        let Some(shared) = self.shared.take() else { return Vec::new() };
        let mut read = Vec::new();
        for (number, node) in self.nodes.iter_mut().enumerate() {
            let counts = shared.of(number);
            node.counts += counts;
            if node.reads_ahead && counts[Counter::SharedRead] > 0 {
                read.push((number, counts.get(Counter::SharedRead)));
            }
        }
        shared.detach();
        read
    }
}

/// A walk over the nodes of a plan.
struct Walk<'a> {
    counting: &'a mut Counting,
    /// A subplan may be used in several places.
    seen: HashSet<*mut pg_sys::PlanState>,
    /// The number of the node above, and the node.
    above: usize,
    above_node: *mut pg_sys::PlanState,
}

#[pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
    // SAFETY: called for the nodes of a plan, with the context of our walk.
    unsafe {
        let walk = &mut *context.cast::<Walk<'_>>();
        if node.is_null() || !walk.seen.insert(node) {
            return false;
        }
        let (above, above_node) = (walk.above, walk.above_node);
        // Not an InitPlan or a CTE that is printed there, which others call.
        let is_input =
            above_node.as_ref().is_some_and(|above| above.lefttree == node || above.righttree == node);
        walk.above = walk.counting.take_over(node, above, is_input);
        walk.above_node = node;
        compat::walk_below(node, visit, context);
        (walk.above, walk.above_node) = (above, above_node);
        false
    }
}

/// Adds the number of a node and of those below it to a list.
#[pg_guard]
unsafe extern "C-unwind" fn list(node: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
    // SAFETY: called for the nodes of a plan, with such a list.
    unsafe {
        if !node.is_null() {
            (*context.cast::<BTreeSet<usize>>()).extend(number_of(node));
            compat::walk_below(node, list, context);
        }
        false
    }
}

/// The number of a node in its plan; None for one that no plan of the server's has.
unsafe fn number_of(node: *mut pg_sys::PlanState) -> Option<usize> {
    // SAFETY: the caller vouches for the node.
    let number = usize::try_from(unsafe { (*(*node).plan).plan_node_id }).ok();
    number.filter(|number| *number < plan::MOST_NODES)
}

impl Counting {
    /// Has a node call our function. Returns its number, and that of the node above if it is none of ours:
    /// extensions make nodes that have no number of their own, or belong to another query.
    unsafe fn take_over(&mut self, node: *mut pg_sys::PlanState, above: usize, is_input: bool) -> usize {
        // SAFETY: the caller vouches for the node, whose tag says what it is.
        unsafe {
            let number = number_of(node).filter(|number| {
                let is_taken = self.nodes.get(*number).is_some_and(|node| node.own_function.is_some());
                (*node).state == self.estate && (*node).ExecProcNodeReal.is_some() && !is_taken
            });
            let Some(number) = number else {
                self.order.push(OUTSIDE);
                return above;
            };
            if self.nodes.len() <= number {
                self.nodes.resize_with(number + 1, || CountedNode::NONE);
            }
            self.order.push(number);
            let own_function = self.make_ours(node);
            let reads_ahead = matches!(
                (*node).type_,
                NodeTag::T_SeqScanState | NodeTag::T_BitmapHeapScanState | NodeTag::T_SampleScanState
            );
            let hashes = matches!((*node).type_, NodeTag::T_HashState | NodeTag::T_HashJoinState);
            let is_of_hash = is_input && self.nodes.get(above).is_some_and(|above| above.hashes);
            let gives_to = if is_of_hash { above } else { OUTSIDE };
            self.nodes[number] =
                CountedNode { own_function, reads_ahead, gives_to, hashes, ..CountedNode::NONE };
            self.take_note(node, number, above);
            number
        }
    }

    /// Takes note of nodes that need more than that.
    unsafe fn take_note(&mut self, node: *mut pg_sys::PlanState, number: usize, parent: usize) {
        // SAFETY: as in `take_over`.
        unsafe {
            match (*node).type_ {
                NodeTag::T_BitmapIndexScanState => {
                    self.bitmaps.extend(bitmaps::watch(node.cast(), number, counted_bitmap));
                }
                NodeTag::T_GatherState | NodeTag::T_GatherMergeState => {
                    let mut below = BTreeSet::new();
                    compat::walk_below(node, list, (&raw mut below).cast());
                    let below = below.into_iter().collect();
                    self.gathers.push(Gather { state: node, number, below, settled: NodeCounts::default() });
                }
                NodeTag::T_HashJoinState if (*(*node).plan).parallel_aware => {
                    self.hash_joins.push(HashJoin { state: node, number, parent });
                }
                _ => {}
            }
        }
    }
}

/// Was this node added to the top of a plan for tests, and is not shown?
unsafe fn is_invisible(node: *mut pg_sys::PlanState) -> bool {
    // SAFETY: the caller vouches for the node; the plan of such a state is a Gather.
    unsafe { (*node).type_ == NodeTag::T_GatherState && (*(*node).plan.cast::<pg_sys::Gather>()).invisible }
}

/// Has a Gather workers that have not been waited for?
unsafe fn has_running_workers(node: *mut pg_sys::PlanState) -> bool {
    // SAFETY: the caller vouches for the node, whose tag says which of the two it is.
    unsafe {
        let workers = match (*node).type_ {
            NodeTag::T_GatherState => (*node.cast::<pg_sys::GatherState>()).pei,
            _ => (*node.cast::<pg_sys::GatherMergeState>()).pei,
        };
        workers.as_ref().is_some_and(|workers| !workers.finished)
    }
}

/// Counts every query, and asks for no counts: so the server's own regression suite shows whether counting
/// changes anything. Made for that suite only.
#[cfg(feature = "count_every_query")]
mod every_query {
    use super::*;

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
}
