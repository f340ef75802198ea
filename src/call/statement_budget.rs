//! What all probes of one statement share: their time, and that the device was too slow for one of them.
//!
//! `FROM pg_class, io_probe_seqscan(oid)` calls a probe once a row. Each call may last its duration,
//! all of them together `pg_io_probe.max_duration`.

use std::cell::Cell;
use std::time::{Duration, Instant};

use io_probe_core::run::budget::Stop;

use crate::error::Result;
use crate::gucs;
use crate::pg::backend::{OnDrop, server, timer};

/// What a statement has used.
#[derive(Clone, Copy)]
struct StatementUse {
    /// The statement, by the time when it started.
    statement: i64,
    used: Duration,
    /// Since when a probe of it has been running.
    running: Option<Instant>,
    /// Why one of its probes ended early, if the others must not begin for that reason.
    ended: Option<Stop>,
}

impl StatementUse {
    const fn new(statement: i64) -> Self {
        Self { statement, used: Duration::ZERO, running: None, ended: None }
    }
}

thread_local! {
    /// When what runs has to end, so that its rows come before the server ends the statement.
    static EARLIER_END: Cell<Option<Instant>> = const { Cell::new(None) };
    static ACCOUNT: Cell<StatementUse> = const { Cell::new(StatementUse::new(0)) };
}

/// The use of the present statement.
fn account() -> StatementUse {
    let statement = server::statement_start();
    let account = ACCOUNT.get();
    if account.statement == statement { account } else { StatementUse::new(statement) }
}

/// The time that probes still have, and what ends it.
pub(super) fn remaining() -> (Duration, Stop) {
    let StatementUse { used, running, .. } = account();
    let now = running.map_or(Duration::ZERO, |since| since.elapsed());
    let of_cap = gucs::MAX_DURATION.time().saturating_sub(used + now);
    let earlier = EARLIER_END.get().map(|end| end.saturating_duration_since(Instant::now()));
    match earlier {
        Some(left) if left < of_cap => (left, Stop::Timeout),
        _ => (of_cap, Stop::Statement),
    }
}

/// Why no other probe may begin, and those that run must end, if so.
pub(super) fn exhausted() -> Option<Stop> {
    let (left, stop) = remaining();
    if left.is_zero() { Some(stop) } else { account().ended }
}

/// Of what a statement_timeout leaves, this part is kept for the rows: within these bounds.
const KEPT: u32 = 10;
const KEPT_MOST: Duration = Duration::from_secs(1);

/// Until the first is dropped, also by unwinding, probes end in time for a statement_timeout. The second is
/// the time that is left if that is a matter of it.
pub(crate) fn in_time() -> (OnDrop<impl FnMut()>, Option<Duration>) {
    let before = EARLIER_END.get();
    let left = timer::statement_timeout_left().map(|left| left - (left / KEPT).min(KEPT_MOST));
    if let Some(left) = left {
        EARLIER_END.set(Some(Instant::now() + left));
    }
    (OnDrop(move || EARLIER_END.set(before)), left)
}

/// Notes why a probe has ended. A device that was too slow for it is too slow for the next one.
pub(super) fn note(reason: Option<Stop>) {
    if let Some(slow @ Stop::Slow(_)) = reason {
        ACCOUNT.set(StatementUse { ended: Some(slow), ..account() });
    }
}

/// Charges the time until it is dropped to the present statement, also when that happens by unwinding.
pub(super) struct Charge {
    /// None within another charge: planning a query for a probe may call another probe.
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
