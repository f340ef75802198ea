//! The samples of one run, taken when they are due: on a schedule, the last whenever the run ends. They are
//! differences of counters, so a look that is left out loses nothing: its two intervals become one.

use std::time::Duration;

use super::{CounterSnapshot, Sample, Watch};
use crate::Result;
use crate::run::budget::Stop;
use crate::run::clock::{Clock, Monotonic, nanoseconds};
use crate::run::memory;

/// Takes `samples` samples of `every` length; `done` is told how many there are. `wait` returns at its moment
/// of the monotonic clock, or before with a reason to stop, which ends the last sample. Together they span
/// the time from the first look to the last.
///
/// # Errors
/// [`NoMemory`](crate::Error::NoMemory) when there is no room for them.
pub fn sample(
    watch: &Watch,
    every: Duration,
    samples: usize,
    wait: &mut dyn FnMut(u64) -> Option<Stop>,
    done: &mut dyn FnMut(u64),
) -> Result<(Vec<Sample>, Option<Stop>)> {
    let every_ns = nanoseconds(every).max(1);
    let mut looks = memory::list_of(samples + 1)?;
    looks.push(watch.look());
    let mut stop = None;
    while looks.len() <= samples {
        stop = wait(due(looks[0].at, every_ns, Monotonic.now()));
        if stop.is_some() {
            end(&mut looks, watch.look(), every_ns);
            break;
        }
        looks.push(watch.look());
        done(looks.len() as u64 - 1);
    }
    Ok((samples_between(&looks)?, stop))
}

/// When the next look is due after `now`: on the schedule since `start`, so that being late makes nothing
/// drift; what is missed is left out. In nanoseconds of the monotonic clock.
pub(super) fn due(start: u64, every_ns: u64, now: u64) -> u64 {
    let turns = now.saturating_sub(start) / every_ns + 1;
    start.saturating_add(turns.saturating_mul(every_ns))
}

/// Adds the last look. One that was taken right before gives way: in an interval of less than a tenth of the
/// others the ticks of the kernel's clock would show, and not what the device did.
pub(super) fn end(looks: &mut Vec<CounterSnapshot>, last: CounterSnapshot, every_ns: u64) {
    let before = looks.last().filter(|_| looks.len() > 1);
    if before.is_some_and(|before| last.at.saturating_sub(before.at) < every_ns / 10) {
        looks.pop();
    }
    looks.push(last);
}

/// What happened between each look and the next.
pub(super) fn samples_between(looks: &[CounterSnapshot]) -> Result<Vec<Sample>> {
    let mut known = vec![false; looks[0].devices.len()];
    memory::collect(looks.windows(2).map(|pair| {
        for (known, device) in known.iter_mut().zip(&pair[0].devices) {
            *known |= device.is_some();
        }
        pair[1].since(&pair[0], &known)
    }))
}
