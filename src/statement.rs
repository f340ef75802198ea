//! The time that all probes of one statement share.
//!
//! `FROM pg_class, io_probe_seqscan(oid)` calls a probe once a row. Each call may last its duration,
//! all of them together `pg_io_probe.max_duration`.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::gucs;
use crate::pg::statement_start;

thread_local! {
    /// The statement, by the time when it started, and what its probes have used.
    static USED: Cell<(i64, Duration)> = const { Cell::new((0, Duration::ZERO)) };
}

/// What is left for the present statement.
pub(crate) fn left() -> Duration {
    let (statement, used) = USED.get();
    let used = if statement == statement_start() { used } else { Duration::ZERO };
    gucs::max_duration().saturating_sub(used)
}

/// Charges the time until it is dropped to the present statement, also when that happens by unwinding.
pub(crate) struct Charge {
    statement: i64,
    before: Duration,
    started: Instant,
}

/// Starts charging.
pub(crate) fn charge() -> Charge {
    let statement = statement_start();
    let (last, used) = USED.get();
    let before = if last == statement { used } else { Duration::ZERO };
    Charge { statement, before, started: Instant::now() }
}

impl Drop for Charge {
    fn drop(&mut self) {
        USED.set((self.statement, self.before + self.started.elapsed()));
    }
}
