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

#[cfg(feature = "count_every_query")]
mod every_query;
mod hooks;
mod walk;

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use io_probe_core::machine::account;
use io_probe_core::run::turns_at_work::TurnsAtWork;
use nix::sys::resource::{UsageWho, getrusage};
use pgrx::pg_sys::InstrumentOption::INSTRUMENT_ROWS;
use pgrx::pg_sys::{self, NodeTag};

use self::hooks::{counted, counted_first};
pub(super) use self::hooks::{ends, ran, runs, started, starts};
use super::bitmaps::BitmapScan;
use super::copies::CopyTimes;
use super::counts::{self, Counter, NodeCounts, Usage};
use super::io_workers::{IoWorkers, Share};
use super::shared_counts::SharedCounts;
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
        let own = getrusage(UsageWho::RUSAGE_THREAD).ok();
        let all = if of_process { getrusage(UsageWho::RUSAGE_SELF).ok() } else { own };
        Self {
            fetched: all.map_or(0, |usage| 512 * usage.block_reads()),
            sleeps: own.map_or(0, |usage| usage.voluntary_context_switches()),
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
        // SAFETY: as above.
        unsafe { counting.take_over_all(query) };
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
        let waited: Vec<u64> = self.nodes.iter().map(|node| node.counts.waited_ns()).collect();
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
        let nodes = self.order.iter().map(|number| {
            let Some(node) = self.nodes.get(*number) else { return OfNode::default() };
            let by_workers = has_io_workers && node.reads_ahead;
            OfNode { counts: node.counts, leader_ns: node.own_ns, by_workers }
        });
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
