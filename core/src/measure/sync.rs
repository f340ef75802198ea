//! What it costs to make writes durable: the sections of pg_test_fsync, the WAL's own pattern, and group
//! commit.
//!
//! A [`Case`] is one way to write and sync. The cases take turns, round after round, so that a drift of the
//! disk's speed affects all of them alike: one after the other, as pg_test_fsync measures them, the last
//! would be compared with the noise that others make a minute later. The first operation of a turn is
//! warm-up: it may pay for what another method left in the journal or in the page cache. What is timed is the
//! system calls of an operation, one after another; the clock's own cost is taken off.
//!
//! With more than one committer, operations of `wal_segment` are commits that share one log: each inserts its
//! blocks and waits until they are durable, and a flush covers all that was inserted before it began
//! ([`GroupCommit`]).
//!
//! # Limitations and caveats
//! - A device that acknowledges a flush and keeps the data in volatile memory is faster than physics allows.
//!   Nothing here can tell. What swallows syncs above the device is seen: [`Durability`].
//! - A scratch file has no name, but for file systems that log nothing of such a file when it is synced
//!   (btrfs, ZFS) or write a whole checkpoint (f2fs): [`logs_nameless_files`].
//! - A closed loop without thinking: committers that also execute statements come to a flush less often.
//! - The server changes to the next segment now and then, and writes a block again while it is not full.
//!
//! Sources: `src/bin/pg_test_fsync/pg_test_fsync.c`, and `XLogWrite`, `XLogFlush`, `issue_xlog_fsync` and
//! `get_sync_bit` in `src/backend/access/transam/xlog.c` of PostgreSQL 15 to 18; open(2) for `O_DSYNC` and
//! `O_SYNC`.

mod calls;
mod case;
mod durability;
mod group_commit;
mod layout;
mod measured;
mod op;
#[cfg(test)]
mod tests;
mod turn;

use std::ops::ControlFlow::{Break, Continue};
use std::sync::Arc;
use std::time::Duration;

use crate::measure::content::Content;
use calls::{Calls, Kernel};
pub use case::{Case, FLUSHES, FlushMethod, Section, Selection};
pub use durability::{Durability, NotDurable};
pub use group_commit::GroupCommit;
pub use layout::{Files, Layout};
pub use measured::{CaseTimes, DeviceRequests};
use turn::CaseTurn;

use crate::machine::observer::Observer;
use crate::run::budget::{Budget, End, Limits};
use crate::run::clock::{self, nanoseconds};
use crate::run::memory;
use crate::run::rounds::{Contenders, Ended, Rounds, Turn};
use crate::{Error, Result};

/// Most rounds.
const ROUNDS: u128 = 10;
/// The shortest turn that is worth the warm-up of its first operation.
const SHORTEST_TURN: Duration = Duration::from_millis(100);

/// Bytes that a case's figures take, and some more.
const MEMORY_OF_CASE: usize = 96 << 10;

/// What is to be measured.
pub struct SyncRun<'a> {
    /// The cases.
    pub cases: &'a [Case],
    /// The committers.
    pub group: GroupCommit,
    /// What bounds each case.
    pub limits: Limits,
    /// Looks at the device before and after each turn.
    pub observer: &'a Observer<'a>,
    /// What is known of the storage.
    pub durability: Durability,
}

/// Does a sync of a file without a name cost on this type of file system what a sync of any other file does?
///
/// btrfs (`btrfs_log_inode_parent`) and ZFS (`zfs_log_write`) leave files without links out of their logs,
/// and f2fs (`need_do_checkpoint`) writes a checkpoint for each sync of one.
pub fn logs_nameless_files(fs_type: &str) -> bool {
    !matches!(fs_type, "btrfs" | "zfs" | "f2fs")
}

/// Measures the cases in turns; `report` hears of each turn before it begins: its number, of how many, and
/// its case.
///
/// Returns what is known of each. A stop of the caller, or of the statement, ends all that are not over.
///
/// # Errors
/// [`Error::Io`] if a call fails: a device that loses writes is not measured on.
pub fn run(
    files: &Files,
    run: &SyncRun<'_>,
    budget: &mut Budget<'_>,
    report: &mut dyn FnMut(u64, u64, &Case),
) -> Result<Vec<CaseTimes>> {
    let mut all = run_with(run, &|case| Kernel(files.of(case).clone()), budget, report)?;
    for (measured, case) in all.iter_mut().zip(run.cases) {
        measured.not_durable = run.durability.judge(case, measured);
    }
    Ok(all)
}

/// Like [`run`], with the calls that `calls` gives for a case.
fn run_with<C: Calls>(
    run: &SyncRun<'_>,
    calls: &dyn Fn(&Case) -> C,
    budget: &mut Budget<'_>,
    report: &mut dyn FnMut(u64, u64, &Case),
) -> Result<Vec<CaseTimes>> {
    let _memory = memory::hold(run.cases.len() * MEMORY_OF_CASE)?;
    let measured: Vec<CaseTimes> = run.cases.iter().map(|_| CaseTimes::new()).collect();
    let longest = run.cases.iter().map(|case| run.group.longest_write(case)).max().unwrap_or(1);
    let duration = run.limits.duration;
    let rounds = (duration.as_millis() / SHORTEST_TURN.as_millis()).clamp(1, ROUNDS) as u32;
    let whole = nanoseconds(duration.saturating_mul(run.cases.len() as u32));
    let mut budget = budget.part(&Limits { duration: Duration::MAX, ..run.limits });
    let mut cases = Cases {
        run,
        calls,
        report,
        length: nanoseconds(duration / rounds),
        ends: budget.started().saturating_add(whole),
        turns_left: u64::from(rounds) * run.cases.len() as u64,
        clock_cost: clock::cost_ns().round() as u64,
        content: Arc::new(Content::new(longest as usize)?),
        all: measured,
    };
    let all = Rounds::new(rounds.into(), run.cases.len());
    let mut ended = all.first().take(&mut cases, &mut budget)?;
    if ended.is_continue() {
        let others = cases.others_like_the_first(rounds - 1, &budget);
        let all = Rounds::new(1 + others, run.cases.len());
        ended = all.after_first().take(&mut cases, &mut budget)?;
    }
    if let Break(Some(stop)) = ended {
        cases.all.iter_mut().filter(|measured| !measured.is_over()).for_each(|m| m.stop = Some(stop));
    }
    budget.rest_at_end(&run.limits);
    Ok(cases.all)
}

/// Cases that take turns.
struct Cases<'a, C> {
    run: &'a SyncRun<'a>,
    calls: &'a dyn Fn(&Case) -> C,
    report: &'a mut dyn FnMut(u64, u64, &Case),
    /// How long a turn lasts at most, and what one reading of the clock takes, in nanoseconds.
    length: u64,
    clock_cost: u64,
    /// When all turns should have ended, in the clock's nanoseconds, and how many there may still be.
    ends: u64,
    turns_left: u64,
    content: Arc<Content>,
    all: Vec<CaseTimes>,
}

impl<C> Cases<'_, C> {
    /// How many rounds, up to `most`, there is time for if each takes as long as the first: an operation that
    /// has begun goes on to its end, however short the turn.
    fn others_like_the_first(&mut self, most: u32, budget: &Budget<'_>) -> u64 {
        let now = budget.clock().now();
        let round = (now - budget.started()).max(1);
        // That a turn ends a little late is no reason.
        let rounds = (self.ends.saturating_sub(now) + round / 4) / round;
        let rounds = rounds.min(most.into());
        self.turns_left = rounds * self.all.len() as u64;
        rounds
    }

    /// How long the next turn is to last, in nanoseconds.
    fn next_length(&mut self, now: u64) -> u64 {
        let share = self.ends.saturating_sub(now) / self.turns_left.max(1);
        self.turns_left = self.turns_left.saturating_sub(1);
        share.min(self.length)
    }
}

impl<C: Calls> Contenders for Cases<'_, C> {
    fn is_over(&self, contender: usize) -> bool {
        self.all[contender].is_over()
    }

    fn turn(&mut self, turn: Turn, budget: &mut Budget<'_>) -> Result<Ended> {
        let (run, case) = (self.run, &self.run.cases[turn.contender]);
        let length = self.next_length(budget.clock().now());
        let measured = &mut self.all[turn.contender];
        (self.report)(turn.number, turn.of, case);
        let of_case = CaseTurn {
            case,
            length,
            limits: &run.limits,
            clock_cost: self.clock_cost,
            content: &self.content,
        };
        let calls = (self.calls)(case);
        let before = run.observer.look();
        let performed = measured.performed;
        let taken = match run.group {
            GroupCommit { committers: 1, .. } => of_case.alone(&calls, measured, budget),
            group => of_case.together(calls, group, measured, budget),
        };
        measured.saw(run.observer.since(&before).activity, measured.performed - performed);
        match taken {
            Ok(()) => measured.end_turn(run.limits.precision),
            Err(End::Stopped(stop)) => return Ok(Break(Some(stop))),
            Err(End::Failed(refused @ Error::Unsupported { .. })) => {
                measured.refused = Some(refused.to_string());
            }
            Err(End::Failed(error)) => return Err(error),
        }
        Ok(Continue(()))
    }
}
