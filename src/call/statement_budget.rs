//! What all probes of one statement share: their time, and that the device was too slow for one of them.
//!
//! `FROM pg_class, io_probe_seqscan(oid)` calls a probe once a row. Each call may last its duration,
//! all of them together `pg_io_probe.max_duration`.

use std::cell::Cell;
use std::time::{Duration, Instant};

use io_probe_core::run::budget::Stop;

use crate::error::Result;
use crate::gucs;
use crate::pg::statement_start;

/// What a statement has used.
#[derive(Clone, Copy)]
struct StatementUse {
    /// The statement, by the time when it started.
    statement: i64,
    used: Duration,
    /// Since when a probe of it has been running.
    running: Option<Instant>,
    /// The reason why one of its probes ended early, if that holds for all that it has not begun yet.
    ended: Option<Stop>,
}

impl StatementUse {
    /// The use of a statement that has used nothing.
    const fn new(statement: i64) -> Self {
        Self { statement, used: Duration::ZERO, running: None, ended: None }
    }
}

thread_local! {
    static ACCOUNT: Cell<StatementUse> = const { Cell::new(StatementUse::new(0)) };
}

/// The use of the present statement.
fn account() -> StatementUse {
    let statement = statement_start();
    let account = ACCOUNT.get();
    if account.statement == statement { account } else { StatementUse::new(statement) }
}

/// The time that the present statement has left.
pub(super) fn remaining() -> Duration {
    let StatementUse { used, running, .. } = account();
    let now = running.map_or(Duration::ZERO, |since| since.elapsed());
    gucs::max_duration().saturating_sub(used + now)
}

/// Why no other probe may begin, and those that run must end, if so.
pub(super) fn exhausted() -> Option<Stop> {
    if remaining().is_zero() { Some(Stop::Statement) } else { account().ended }
}

/// A probe has ended for this reason, if any: a device that was too slow for it is so for the next one.
pub(super) fn note(reason: Option<Stop>) {
    if let Some(slow @ Stop::Slow(_)) = reason {
        ACCOUNT.set(StatementUse { ended: Some(slow), ..account() });
    }
}

/// Charges the time until it is dropped to the present statement, also when that happens by unwinding.
pub(super) struct Charge {
    /// None within another charge: a probe may plan a query, and that call another probe.
    statement: Option<i64>,
}

/// Starts charging, which each probe does before it begins. Refuses while the caps are unknown.
pub(super) fn start() -> Result<Charge> {
    gucs::check_caps()?;
    let account = account();
    if account.running.is_some() {
        return Ok(Charge { statement: None });
    }
    ACCOUNT.set(StatementUse { running: Some(Instant::now()), ..account });
    Ok(Charge { statement: Some(account.statement) })
}

impl Drop for Charge {
    fn drop(&mut self) {
        let account = ACCOUNT.get();
        if let (true, Some(since)) = (self.statement == Some(account.statement), account.running) {
            ACCOUNT.set(StatementUse { used: account.used + since.elapsed(), running: None, ..account });
        }
    }
}
