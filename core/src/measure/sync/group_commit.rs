//! Group commit: several committers, one log.
//!
//! As in XLogFlush: a committer inserts its record, and waits until it is durable. If no flush is running, it
//! flushes itself, for all that has been inserted until then; if one is, it waits for its end, and flushes
//! only if it was not covered. The leader may wait before it writes, for more to come (`commit_delay`).
//!
//! The rate is that of the time from the end of one flush to the end of the next; a committer's latency is
//! that from its insertion until its record was durable. The first flush of a turn, and each committer's
//! first commit, are warm-up.
//!
//! # Limitations and caveats
//! - Threads wake each other faster than processes do, and insert without the server's locks.
//! - Nothing flushes in the background here, as a server's WAL writer does.

use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::calls::{Calls, sync, write};
use super::case::Case;
use super::measured::CaseTimes;
use super::op;
use super::turn::CaseTurn;
use crate::measure::content::Content;
use crate::run::budget::{Budget, LatencyBound, Outcome, Pacer, Stop, sleep_in_thread, stop_if};
use crate::run::clock::{Clock, Monotonic};
use crate::run::lock;
use crate::run::workers::WorkerThreads;
use crate::stats::{Latencies, Slices};
use crate::{Error, Result};

/// The threads' name in `/proc`.
const NAME: &str = "io_probe_sync";

/// The longest write of a flush, as the server's with wal_buffers at its largest default.
const LONGEST_WRITE: u64 = 16 << 20;

/// The committers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupCommit {
    /// How many there are, each in a closed loop.
    pub committers: u32,
    /// How long a leader waits for others before it writes.
    pub delay: Duration,
    /// Bytes of WAL of a commit; None for as many as the case writes. Those of several commits may share a
    /// block.
    pub commit_bytes: Option<u32>,
}

impl GroupCommit {
    /// The longest write of a case, in bytes: all of its committers may be in one flush.
    pub(super) fn longest_write(&self, case: &Case) -> u64 {
        if self.committers == 1 {
            return case.write_bytes.into();
        }
        let block = u64::from(case.write_bytes);
        let all = u64::from(self.committers) * self.bytes_of_commit(case) + 2 * block;
        all.min(LONGEST_WRITE) / block * block
    }

    fn bytes_of_commit(&self, case: &Case) -> u64 {
        self.commit_bytes.map_or(case.bytes(), u64::from)
    }
}

/// The log that they share.
struct Log<C: Calls> {
    calls: C,
    file: C::File,
    case: Case,
    content: Arc<Content>,
    /// Bytes of a commit.
    commit_bytes: u64,
    longest_write: u64,
    delay: Duration,
    /// Most bytes of this turn.
    most_bytes: u64,
    clock_cost: u64,
    /// If true, committers begin no other commit, and leaders no other flush.
    over: AtomicBool,
    state: Mutex<LogState>,
    flushed: Condvar,
}

#[derive(Default)]
struct LogState {
    /// Positions in the log, in bytes.
    inserted: u64,
    durable: u64,
    /// What had been inserted when the last flush ended: with the records of those that waited then, but
    /// without the next commit of the flush's leader.
    waiting: u64,
    /// Bytes written, and when the limits allow more.
    written: u64,
    pacer: Pacer,
    /// Is there a leader?
    flushing: bool,
    /// When the last flush ended.
    last: Option<u64>,
    /// Time and commits of the flushes, of earlier turns too, but for the first of each turn.
    slices: Slices,
    /// How often those of this turn synced: more often than once where each write does.
    syncs: u64,
    latencies: Latencies,
    latency: LatencyBound,
    paused: bool,
    bytes_are_spent: bool,
    error: Option<Error>,
}

impl CaseTurn<'_> {
    /// A turn of committers that share one log.
    pub(super) fn together<C: Calls>(
        &self,
        calls: C,
        group: GroupCommit,
        measured: &mut CaseTimes,
        budget: &mut Budget<'_>,
    ) -> Outcome<()> {
        let case = self.case;
        let commit_bytes = group.bytes_of_commit(case);
        let start = measured.performed * commit_bytes;
        let before = measured.ops();
        budget.pacer().set_requests(self.limits, commit_bytes.next_multiple_of(case.write_bytes.into()));
        let log = Arc::new(Log {
            file: op::open(&calls, case)?,
            calls,
            case: *case,
            content: Arc::clone(self.content),
            commit_bytes,
            longest_write: group.longest_write(case),
            delay: group.delay,
            most_bytes: self.limits.max_bytes.saturating_sub(measured.bytes),
            clock_cost: self.clock_cost,
            over: AtomicBool::new(false),
            state: Mutex::new(LogState {
                inserted: start,
                durable: start,
                pacer: *budget.pacer(),
                // The file is open by now: a case that is refused keeps what it has.
                slices: mem::take(&mut measured.slices),
                latency: budget.latency(),
                ..LogState::default()
            }),
            flushed: Condvar::new(),
        });
        let (working, ending) = (Arc::clone(&log), Arc::clone(&log));
        let count = group.committers as usize;
        let workers = WorkerThreads::start(NAME, count, move || working.commit(), move || ending.end())?;
        let clock = budget.clock();
        let until = clock.now().saturating_add(self.length);
        let stop = loop {
            // Ends in time, but does not spin where the first flush takes longer than the turn.
            let left = Duration::from_nanos(until.saturating_sub(clock.now()));
            if let Some(stop) = budget.nap(left) {
                break Some(stop);
            }
            let state = lock(&log.state);
            *budget.latency_mut() = state.latency;
            if state.error.is_some() || state.bytes_are_spent {
                break None;
            }
            if clock.now() >= until && state.slices.total().work > before {
                break None;
            }
        };
        drop(workers);

        let mut state = lock(&log.state);
        measured.slices = mem::take(&mut state.slices);
        measured.flushes += state.syncs;
        *budget.latency_mut() = state.latency;
        if let Some(error) = state.error.take() {
            return Err(error.into());
        }
        // Committers that waited for a limit say nothing of the storage.
        if !state.paused {
            measured.latencies.absorb(&state.latencies);
        }
        measured.paused |= state.paused;
        measured.bytes += state.written;
        *budget.pacer() = state.pacer;
        measured.performed += (state.durable - start) / commit_bytes;
        if state.bytes_are_spent {
            measured.stop = Some(Stop::Bytes);
        }
        stop_if(stop)
    }
}

impl<C: Calls> Log<C> {
    /// Commits again and again, until it is over. The first is not counted.
    fn commit(&self) {
        let mut counts = false;
        while !self.is_over() && self.commit_once(counts) {
            counts = true;
        }
    }

    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Inserts a record, and returns when it is durable; false if it was over before.
    fn commit_once(&self, counts: bool) -> bool {
        let started = Monotonic.now();
        let mut state = lock(&self.state);
        state.inserted += self.commit_bytes;
        let mine = state.inserted;
        while state.durable < mine {
            if state.flushing {
                state = self.flushed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.bytes_are_spent |= self.reach(&state) == state.durable;
            if self.is_over() || state.error.is_some() || state.bytes_are_spent {
                return false;
            }
            state = self.lead(state);
        }
        if counts {
            let took = Monotonic.now() - started;
            // Once the turn has paused, a commit may have waited for the limit: `lead` observes the flushes
            // then.
            if !state.paused {
                state.latency.observe(took);
            }
            state.latencies.record(took.saturating_sub(self.clock_cost));
        }
        true
    }

    /// Up to where whole commits may become durable with the bytes that are left.
    fn reach(&self, state: &LogState) -> u64 {
        let block = u64::from(self.case.write_bytes);
        let left = self.most_bytes.saturating_sub(state.written) / block * block;
        let blocks = (state.durable / block * block).saturating_add(left);
        state.durable + blocks.saturating_sub(state.durable) / self.commit_bytes * self.commit_bytes
    }

    /// Flushes what had been inserted when the last flush ended. If that is durable, or after a delay,
    /// flushes all that has been inserted by now.
    fn lead<'a>(&'a self, mut state: MutexGuard<'a, LogState>) -> MutexGuard<'a, LogState> {
        state.flushing = true;
        let pacer = state.pacer;
        drop(state);
        let lead = Lead(self);
        let paused = pacer.is_early(Monotonic.now()) && sleep_in_thread(&Monotonic, pacer.due(), &self.over);
        let resumed = Monotonic.now();
        // In one piece, as the server does it.
        Monotonic.sleep(self.delay);
        let mut state = lock(&self.state);
        let end = if self.delay.is_zero() && !paused && state.waiting > state.durable {
            state.waiting
        } else {
            state.inserted
        };
        if paused {
            state.paused = true;
            // The pause is no part of the time of a flush, but the delay is. The first stays warm-up.
            state.last = state.last.map(|_| resumed);
        }
        let range = state.durable..end.min(self.reach(&state));
        drop(state);
        let began = Monotonic.now();
        let result = self.flush(range.clone());
        let ended = Monotonic.now();
        mem::forget(lead);
        let mut state = lock(&self.state);
        state.flushing = false;
        state.waiting = state.inserted;
        match result {
            Ok(None) => {}
            Ok(Some((written, syncs))) => {
                state.durable = range.end;
                state.written += written;
                if state.paused {
                    state.latency.observe(ended - began);
                }
                if state.pacer.is_limited() {
                    state.pacer.charge(began, written, ended - began);
                }
                if let Some(last) = state.last.replace(ended) {
                    let commits = (range.end - range.start) / self.commit_bytes;
                    state.slices.add(ended - last, commits);
                    state.syncs += syncs;
                }
            }
            Err(e) => state.error = Some(e),
        }
        self.flushed.notify_all();
        state
    }

    /// Writes the blocks that lie between two positions, also those that are not full yet, and syncs them.
    /// Returns their bytes and how many syncs that took, or None if it was over before that.
    fn flush(&self, range: Range<u64>) -> Result<Option<(u64, u64)>> {
        let block = u64::from(self.case.write_bytes);
        let size = self.calls.scratch().size();
        let blocks = range.start / block * block..range.end.next_multiple_of(block);
        let (mut position, mut writes) = (blocks.start, 0);
        while position < blocks.end {
            if self.is_over() {
                return Ok(None);
            }
            // The end of the segment splits a flush, as it does in the server.
            let offset = position % size;
            let length = (blocks.end - position).min(size - offset).min(self.longest_write);
            write(&self.calls, &self.file, self.content.at(position, length as usize), offset)?;
            position += length;
            writes += 1;
        }
        if let Some(call) = self.case.method.sync_call() {
            if self.is_over() {
                return Ok(None);
            }
            sync(&self.calls, &self.file, call)?;
        }
        let syncs = if self.case.method.syncs_by_open() { writes } else { 1 };
        Ok(Some((blocks.end - blocks.start, syncs)))
    }
}

/// The right to flush. If a leader is lost in the middle, no other committer is left waiting for it.
struct Lead<'a, C: Calls>(&'a Log<C>);

impl<C: Calls> Drop for Lead<'_, C> {
    fn drop(&mut self) {
        let source = std::io::Error::other("the thread panicked");
        let mut state = lock(&self.0.state);
        state.error = Some(Error::System { action: "flush", source });
        state.flushing = false;
        self.0.flushed.notify_all();
    }
}
