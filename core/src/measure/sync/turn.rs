//! One case's turn, alone: one operation after another.

use std::cell::Cell;
use std::sync::Arc;

use super::calls::Calls;
use super::case::Case;
use super::content::Content;
use super::measured::CaseTimes;
use super::op::Operation;
use crate::Result;
use crate::run::budget::{Limits, Pace, Stop, is_early};
use crate::run::clock::Clock;

/// How often a turn asks whether to go on, in nanoseconds.
const LOOK_NS: u64 = 1_000_000;

/// One case's turn.
pub(super) struct CaseTurn<'a> {
    pub(super) case: &'a Case,
    /// How long it lasts, in nanoseconds.
    pub(super) length: u64,
    pub(super) limits: &'a Limits,
    pub(super) clock: &'a dyn Clock,
    /// What one reading of the clock takes, in nanoseconds: as much of it is in each time.
    pub(super) clock_cost: u64,
    pub(super) content: &'a Arc<Content>,
    /// When the limits allow the next operation of any case, in the clock's nanoseconds.
    pub(super) next_due: &'a Cell<u64>,
}

impl CaseTurn<'_> {
    /// One operation after another. The first is not counted; another one is, however long it takes.
    pub(super) fn alone<C: Calls>(
        &self,
        calls: &C,
        measured: &mut CaseTimes,
        pace: &mut Pace<'_>,
    ) -> Result<Option<Stop>> {
        let op = Operation::open(calls, self.case, self.content)?;
        let stopped = self.repeat(&op, measured, pace)?;
        op.settle()?;
        Ok(stopped)
    }

    fn repeat<C: Calls>(
        &self,
        op: &Operation<'_, C>,
        measured: &mut CaseTimes,
        pace: &mut Pace<'_>,
    ) -> Result<Option<Stop>> {
        let bytes = self.case.durable_bytes();
        let pauses = self.limits.pauses(self.case.write_bytes.into()).filter(|_| bytes > 0);
        let ahead = self.limits.ahead_ns(self.case.write_bytes.into());
        let began = self.clock.now();
        let mut next_look = began;
        for done in 0u64.. {
            let (due, now) = (self.next_due.get(), self.clock.now());
            if pauses.is_some() && is_early(now, due, ahead) {
                measured.paused = true;
                if let Some(stop) = pace.sleep_until(due) {
                    return Ok(Some(stop));
                }
            }
            if measured.bytes + bytes > self.limits.max_bytes {
                measured.stop = Some(Stop::Bytes);
                break;
            }
            let started = self.clock.now();
            op.perform(measured.performed)?;
            let ended = self.clock.now();
            if let Some(pauses) = pauses {
                let period = pauses.period(bytes, ended - started);
                self.next_due.set(due.max(now).saturating_add(period));
            }
            measured.performed += 1;
            measured.bytes += bytes;
            if done > 0 {
                measured.flushes += self.case.syncs();
                measured.record((ended - started).saturating_sub(self.clock_cost));
                // What is not synced tells nothing of the storage.
                if bytes > 0 {
                    pace.latency.observe(ended - started);
                }
                if ended - began >= self.length {
                    break;
                }
            }
            if ended >= next_look {
                next_look = ended + LOOK_NS;
                if let Some(stop) = pace.check(ended) {
                    return Ok(Some(stop));
                }
            }
        }
        Ok(None)
    }
}
