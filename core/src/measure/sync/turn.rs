//! One case's turn, alone: one operation after another.

use std::sync::Arc;

use super::calls::Calls;
use super::case::Case;
use super::measured::CaseTimes;
use super::op::Operation;
use crate::measure::content::Content;
use crate::run::budget::{Budget, Limits, Outcome, Stop, stop_if, stopped};

/// How often a turn asks whether to go on, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;

/// One case's turn.
pub(super) struct CaseTurn<'a> {
    pub(super) case: &'a Case,
    /// How long it lasts, in nanoseconds.
    pub(super) length: u64,
    pub(super) limits: &'a Limits,
    /// What one reading of the clock takes, in nanoseconds: part of each measured time.
    pub(super) clock_cost: u64,
    pub(super) content: &'a Arc<Content>,
}

impl CaseTurn<'_> {
    /// One operation after another. The first is not counted; at least one more is, however long it takes.
    pub(super) fn alone<C: Calls>(
        &self,
        calls: &C,
        measured: &mut CaseTimes,
        budget: &mut Budget<'_>,
    ) -> Outcome<()> {
        let op = Operation::open(calls, self.case, self.content)?;
        let stop = stopped(self.repeat(&op, measured, budget))?;
        op.settle()?;
        stop_if(stop)
    }

    fn repeat<C: Calls>(
        &self,
        op: &Operation<'_, C>,
        measured: &mut CaseTimes,
        budget: &mut Budget<'_>,
    ) -> Outcome<()> {
        let bytes = self.case.durable_bytes();
        // When the next operation is due depends on those of all cases.
        budget.pacer().set_requests(self.limits, self.case.write_bytes.into());
        let clock = budget.clock();
        let began = clock.now();
        let mut next_look = began;
        for done in 0u64.. {
            let now = clock.now();
            if bytes > 0 && budget.pacer().is_early(now) {
                measured.paused = true;
                stop_if(budget.wait())?;
            }
            if measured.bytes + bytes > self.limits.max_bytes {
                measured.stop = Some(Stop::Bytes);
                break;
            }
            let started = clock.now();
            op.perform(measured.performed)?;
            let ended = clock.now();
            if bytes > 0 && budget.pacer().is_limited() {
                budget.pacer().charge(now, bytes, ended - started);
            }
            measured.performed += 1;
            measured.bytes += bytes;
            if done > 0 {
                measured.flushes += self.case.syncs();
                measured.record((ended - started).saturating_sub(self.clock_cost));
                // What is not synced tells nothing of the storage.
                if bytes > 0 {
                    budget.latency_mut().observe(ended - started);
                }
                if ended - began >= self.length {
                    break;
                }
            }
            if ended >= next_look {
                next_look = ended + LOOK_NS;
                stop_if(budget.check(ended))?;
            }
        }
        Ok(())
    }
}
