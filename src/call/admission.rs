//! Whether a probe may begin while others use the device: `pg_io_probe.max_busy_pct`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use io_probe_core::machine::device::{Activity, Counters, Leaf, Placement, Roots};
use io_probe_core::run::clock::{Clock, Monotonic, nanoseconds};

use super::arguments::figure;
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::interrupts;
use crate::pg::backend::server;

/// How long a look at what others do takes. The kernel counts in ticks of 1 to 10 ms.
const LOOK: Duration = Duration::from_millis(250);

thread_local! {
    /// Devices that the present statement, known by when it started, was admitted to: what it finds there
    /// later is its own.
    static ADMITTED: RefCell<(i64, BTreeSet<String>)> = const { RefCell::new((0, BTreeSet::new())) };
}

/// Refuses if a device behind `placement` is busier than the cap allows, or if that can't be known. Looks
/// once for each device and statement; without a cap not at all.
pub(crate) fn admit(placement: &Placement, roots: &Roots) -> Result<()> {
    let Some(most) = gucs::max_busy_pct() else { return Ok(()) };
    let statement = server::statement_start();
    let new: Vec<&Leaf> = ADMITTED.with_borrow_mut(|(of, admitted)| {
        if *of != statement {
            (*of, *admitted) = (statement, BTreeSet::new());
        }
        placement.leaves.iter().filter(|leaf| !admitted.contains(&leaf.name)).collect()
    });
    if placement.leaves.is_empty() {
        return Err(unknown("the device itself is not known"));
    }
    if new.is_empty() {
        return Ok(());
    }
    let began = Monotonic.now();
    let before = counters(&new, roots);
    interrupts::sleep_until(began + nanoseconds(LOOK));
    let elapsed_ms = (Monotonic.now() - began) as f64 / 1e6;
    for ((leaf, before), now) in new.iter().zip(&before).zip(counters(&new, roots)) {
        let activity = before.as_ref().zip(now).and_then(|(before, now)| now.since(before, elapsed_ms));
        match activity.as_ref().and_then(Activity::busy_pct) {
            None => return Err(unknown(&format!("the kernel shows no busy time of \"{}\"", leaf.name))),
            Some(busy) if busy > most => {
                return Err(Error::unmet(format!("device \"{}\" is {} % busy", leaf.name, figure(busy)))
                    .detail(format!("pg_io_probe.max_busy_pct is {most}."))
                    .hint("Others use the device. Try again later."));
            }
            Some(_) => {}
        }
    }
    ADMITTED.with_borrow_mut(|(_, admitted)| admitted.extend(new.iter().map(|leaf| leaf.name.clone())));
    Ok(())
}

fn counters(leaves: &[&Leaf], roots: &Roots) -> Vec<Option<Counters>> {
    leaves.iter().map(|leaf| leaf.counters(roots)).collect()
}

/// The refusal where the load is not known: a cap that is set must hold.
fn unknown(why: &str) -> Error {
    Error::unmet("it is not known how busy the device is")
        .detail(format!("pg_io_probe.max_busy_pct is set, but {why}."))
        .hint("A superuser, or a role with GRANT SET ON PARAMETER pg_io_probe.max_busy_pct, can set it to 0.")
}
