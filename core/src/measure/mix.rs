//! Reads and writes at once: what each takes while the other goes on, at shares of what each reaches alone.
//!
//! First each side runs alone, as fast as it is answered. Then come the cells: both are sent at even
//! distances at a share of those rates, and latencies count from when a request was due
//! ([`crate::measure::load`]). The cells have two turns: the lightest first, and once more in the other
//! order, so that a device that becomes slower or faster meanwhile does so under all of them. Each side's own
//! run has two turns as well, one before and one after the cells.
//!
//! Or the cells are so many percent of what others send at present, by the counters of the devices
//! ([`Present`]): both sides at the same share. It comes on top of what they go on sending.
//!
//! # Limitations and caveats
//! - Shares are of the rate at this number of requests in flight, not of what the device could do with more.
//! - A device that keeps what it is given in a buffer takes writes faster at first.

use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::engine::Kind;
use crate::machine::device::Traffic;
use crate::machine::observer::Observer;
use crate::measure::contradictions;
use crate::measure::load::{self, Pace, Reached, Requests, Stream};
use crate::run::budget::{Budget, Limits, Outcome, Stop, stop_if, stopped};
use crate::run::clock::nanoseconds;

/// The sides.
pub const READS: usize = 0;
/// See [`READS`].
pub const WRITES: usize = 1;

/// A cell carries its load if each side reached this share of what was offered, but for one request in each
/// of its two turns.
const CARRIES: f64 = 0.95;
const MISSED: u64 = 2;

/// What is to be measured.
pub struct MixRun<'a> {
    /// Reads and writes.
    pub sides: [Arc<dyn Requests>; 2],
    /// Shares of each side's own rate, in percent, ascending; if it is like others' load, of that.
    pub shares: &'a [u32],
    /// What others send, of each side, if it is to be like that.
    pub like: Option<[Present; 2]>,
    /// Most requests of a side in flight.
    pub workers: [usize; 2],
    /// What sends them.
    pub engine: Option<Kind>,
    /// What bounds each cell.
    pub limits: Limits,
    /// Look at the device of each side before and after each turn.
    pub observers: [&'a Observer<'a>; 2],
}

/// What others send to a device, or sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Present {
    /// Requests a second.
    pub per_s: f64,
    /// Bytes of each, in the mean.
    pub bytes: f64,
}

impl Present {
    fn of(traffic: Traffic, elapsed_ms: f64) -> Self {
        let requests = traffic.requests as f64;
        Self { per_s: requests * 1e3 / elapsed_ms, bytes: traffic.bytes as f64 / requests.max(1.0) }
    }

    /// Listens for so long: reads that come to the first device, and writes to the second, or its flushes,
    /// one of which ends a sync. None if it does not count them.
    ///
    /// # Errors
    /// A reason to stop.
    pub fn listen(
        observers: [&Observer<'_>; 2],
        flushes: bool,
        length: Duration,
        budget: &mut Budget<'_>,
    ) -> Outcome<Option<[Self; 2]>> {
        let before = observers.map(|observer| observer.look());
        let ends = budget.clock().now().saturating_add(nanoseconds(length));
        loop {
            let left = ends.saturating_sub(budget.clock().now());
            stop_if(budget.nap(Duration::from_nanos(left)))?;
            if left == 0 {
                break;
            }
        }
        let both = [READS, WRITES].map(|side| observers[side].since(&before[side]).activity);
        let [Some(reads), Some(writes)] = both else { return Ok(None) };
        let counted = if flushes { writes.flushes } else { Some(writes.writes) };
        let reads = Self::of(reads.reads, reads.elapsed_ms);
        Ok(counted.map(|counted| [reads, Self::of(counted, writes.elapsed_ms)]))
    }
}

/// What was measured of a load.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// Of reads and writes, in percent of their own rates; 100 for a side alone.
    pub shares: [u32; 2],
    /// Requests a second that were to be sent; None where they were sent as fast as they were answered.
    pub offered: [Option<f64>; 2],
    /// The workers of a side that sent as fast as it was answered.
    closed: [Option<usize>; 2],
    /// What came of them; None if it was not measured.
    pub reached: Option<[Reached; 2]>,
    /// Bytes that the device of the reads read meanwhile, and that of the writes wrote; None where it has no
    /// counters.
    pub moved: [Option<u64>; 2],
}

impl Cell {
    fn of(shares: [u32; 2]) -> Self {
        Self { shares, moved: [Some(0); 2], ..Self::default() }
    }

    /// Did each side reach what was offered? None if it was not measured.
    pub fn carries(&self) -> Option<bool> {
        let mut sides = self.reached.as_ref()?.iter().zip(self.offered);
        Some(sides.all(|(reached, offered)| {
            let sent = offered.map_or(0.0, |per_s| per_s * reached.ns as f64 / 1e9);
            (reached.answered + MISSED) as f64 >= CARRIES * sent
        }))
    }

    /// Is this known to be no figure of the device: did it move less than was sent to it, or were more
    /// requests of a side answered than may have been in flight?
    pub fn is_void(&self) -> bool {
        let mut sides = self.reached.iter().flatten().zip(self.moved).zip(self.closed);
        sides.any(|((reached, moved), closed)| {
            let exceeds = closed.is_some_and(|workers| reached.exceeds(workers));
            exceeds || contradictions::moved_less(moved, reached.bytes)
        })
    }

    fn is_carried(&self) -> bool {
        self.carries() == Some(true) && !self.is_void()
    }

    /// Is this load no greater than another one, on both sides?
    fn is_within(&self, other: &Self) -> bool {
        self.shares[READS] <= other.shares[READS] && self.shares[WRITES] <= other.shares[WRITES]
    }
}

/// All that was measured.
pub struct Mix {
    /// Each side alone.
    pub alone: [Cell; 2],
    /// Both together, by their shares.
    pub cells: Vec<Cell>,
    /// What ended it early, if so.
    pub stop: Option<Stop>,
    /// Did limits of the call hold it back?
    pub paced: bool,
}

impl Mix {
    /// The greatest load that was carried, as all within it were: where the device bends.
    pub fn bend(&self) -> Option<&Cell> {
        let carried = self.cells.iter().filter(|cell| {
            // It is within itself, too.
            self.cells.iter().filter(|other| other.is_within(cell)).all(Cell::is_carried)
        });
        // Of equal sums the one with more of both.
        carried.max_by_key(|cell| {
            let [reads, writes] = cell.shares;
            (reads + writes, reads.min(writes))
        })
    }
}

/// Measures. `report` hears of each turn before it begins: its number, and of how many.
///
/// # Errors
/// Those of the requests.
pub fn run(run: &MixRun<'_>, budget: &mut Budget<'_>, report: &mut dyn FnMut(u64, u64)) -> Result<Mix> {
    let mut cells: Vec<Cell> = run.loads().into_iter().map(Cell::of).collect();
    cells.sort_by_key(|cell| (cell.shares[READS] + cell.shares[WRITES], cell.shares));
    let [reads, writes] = [[100, 0], [0, 100]].map(Cell::of);
    let paced = run.limits.make_pauses();
    let mut mix = Mix { alone: [reads, writes], cells, stop: None, paced };
    let streams = [READS, WRITES].map(|side| {
        Stream::new(Arc::clone(&run.sides[side]), run.workers[side]).by(run.engine).within(&run.limits)
    });
    let mut turns = MixTurns { run, streams, of: 2 * (mix.cells.len() as u64 + 2), number: 0, report };
    let mut budget = budget.part(&Limits { duration: Duration::MAX, max_bytes: u64::MAX, ..run.limits });
    budget.pace(&Limits { max_iops: None, max_mib_s: None, ..run.limits }, 1);
    mix.stop = stopped(turns.take_all(&mut mix.alone, &mut mix.cells, &mut budget))?;
    budget.rest_at_end(&run.limits);
    mix.cells.sort_by_key(|cell| cell.shares);
    Ok(mix)
}

impl MixRun<'_> {
    /// The shares of all cells. What others do not send at all has none.
    fn loads(&self) -> Vec<[u32; 2]> {
        if let Some(present) = self.like {
            let is_sent = present.map(|side| side.per_s > 0.0);
            let shares = self.shares.iter();
            return shares.map(|share| is_sent.map(|is_sent| if is_sent { *share } else { 0 })).collect();
        }
        let pairs = self.shares.iter().flat_map(|read| self.shares.iter().map(|write| [*read, *write]));
        pairs.filter(|shares| *shares != [0, 0]).collect()
    }
}

struct MixTurns<'a> {
    run: &'a MixRun<'a>,
    streams: [Stream; 2],
    of: u64,
    number: u64,
    report: &'a mut dyn FnMut(u64, u64),
}

impl MixTurns<'_> {
    fn take_all(
        &mut self,
        alone: &mut [Cell; 2],
        cells: &mut [Cell],
        budget: &mut Budget<'_>,
    ) -> Outcome<()> {
        for side in [READS, WRITES] {
            self.take(&mut alone[side], budget)?;
        }
        let rates = [READS, WRITES].map(|side| alone[side].reached.as_ref().and_then(|r| r[side].per_s()));
        // Without both there are no shares of them.
        let [Some(reads), Some(writes)] = rates.map(|rate| rate.filter(|rate| *rate > 0.0)) else {
            return Ok(());
        };
        let rates = self.run.like.map_or([reads, writes], |like| like.map(|side| side.per_s));
        for cell in cells.iter_mut() {
            let wanted = [READS, WRITES].map(|side| rates[side] * f64::from(cell.shares[side]) / 100.0);
            cell.offered = self.within_limits(wanted).map(Some);
            self.take(cell, budget)?;
        }
        for cell in cells.iter_mut().rev().chain(alone) {
            self.take(cell, budget)?;
        }
        Ok(())
    }

    /// Rates of both sides, as the limits of the call allow them together.
    fn within_limits(&self, rates: [f64; 2]) -> [f64; 2] {
        let limits = &self.run.limits;
        let bytes_per_s: f64 =
            rates.iter().zip(&self.run.sides).map(|(rate, side)| rate * side.bytes() as f64).sum();
        let by_count = limits.max_iops.map(|most| f64::from(most) / rates.iter().sum::<f64>());
        let by_bytes = limits.max_mib_s.map(|most| f64::from(most) * f64::from(1 << 20) / bytes_per_s);
        let part = by_count.into_iter().chain(by_bytes).fold(1.0, f64::min);
        rates.map(|rate| rate * part)
    }

    /// When requests of a side are sent: under a limit none makes up for what was late.
    fn pace(&self, side: usize, offered: Option<f64>) -> Pace {
        match (offered, self.streams[side].pace) {
            (None, alone) => alone,
            (Some(rate), Pace::Free) => Pace::Due(rate),
            (Some(rate), _) => Pace::AtMost(rate),
        }
    }

    /// Half of a cell's time, within half of its bytes.
    fn take(&mut self, cell: &mut Cell, budget: &mut Budget<'_>) -> Outcome<()> {
        self.number += 1;
        (self.report)(self.number, self.of);
        stop_if(budget.wait())?;
        let sides: Vec<usize> = [READS, WRITES].into_iter().filter(|side| cell.shares[*side] > 0).collect();
        let stream = |side: &usize| self.streams[*side].at(self.pace(*side, cell.offered[*side]));
        let streams: Vec<Stream> = sides.iter().map(stream).collect();
        let before = self.run.observers.map(|observer| observer.look());
        let began = budget.clock().now();
        let max_bytes = self.run.limits.max_bytes / 2;
        let mut part = budget.part(&Limits { max_bytes, ..Limits::none() });
        let (reached, stop) = load::run(&streams, self.run.limits.duration / 2, &mut part)?;
        drop(part);
        let busy = budget.clock().now() - began;
        budget.pacer().rest(began, busy);
        let [reads, writes] =
            [READS, WRITES].map(|side| self.run.observers[side].since(&before[side]).activity);
        let moved =
            [reads.map(|activity| activity.reads.bytes), writes.map(|activity| activity.writes.bytes)];
        for (sum, more) in cell.moved.iter_mut().zip(moved) {
            *sum = sum.zip(more).map(|(sum, more)| sum + more);
        }
        cell.closed = [READS, WRITES].map(|side| {
            let is_closed = self.pace(side, cell.offered[side]) == Pace::Free;
            is_closed.then_some(self.run.workers[side])
        });
        let all = cell.reached.get_or_insert_with(Default::default);
        for (side, reached) in sides.iter().zip(&reached) {
            all[*side].add(reached);
        }
        stop_if(stop.filter(|stop| stop.is_for_all()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::account::Account;
    use crate::machine::device::Roots;

    /// No requests.
    impl Requests for Option<()> {
        fn make(&self, _number: u64, _worker: usize) -> Result<()> {
            Ok(())
        }

        fn bytes(&self) -> u64 {
            8192
        }
    }

    /// A cell whose sides were offered 100 a second each, and reached so many.
    fn cell(shares: [u32; 2], reached: [u64; 2]) -> Cell {
        let side =
            |answered| Reached { answered, ns: 1_000_000_000, bytes: 8192 * answered, ..Reached::default() };
        let moved = reached.map(|answered| Some(8192 * answered));
        Cell { shares, offered: [Some(100.0); 2], reached: Some(reached.map(side)), moved, ..Cell::default() }
    }

    fn mix(cells: Vec<Cell>) -> Mix {
        Mix { alone: [Cell::default(), Cell::default()], cells, stop: None, paced: false }
    }

    #[test]
    fn it_bends_behind_the_greatest_load_that_is_carried() {
        let cells = vec![
            cell([0, 50], [100, 100]),
            cell([50, 0], [100, 94]),
            cell([50, 50], [96, 93]),
            cell([50, 100], [92, 100]),
            // By luck: what is within it was not carried.
            cell([100, 100], [100, 100]),
        ];
        assert_eq!(mix(cells).bend().map(|cell| cell.shares), Some([50, 50]));
        assert!(mix(vec![cell([50, 0], [10, 100])]).bend().is_none());
        assert!(mix(vec![Cell::of([50, 0])]).bend().is_none());
    }

    #[test]
    fn what_is_like_others_has_the_same_share_of_both() {
        let like = |reads, writes| {
            Some([reads, writes].map(|requests| {
                Present::of(Traffic { requests, bytes: requests * 4096, ..Traffic::default() }, 2_000.0)
            }))
        };
        let (roots, leaves) = (Roots::default(), []);
        let observer = Observer::new(Account::Own, &leaves, &roots);
        let sides: [Arc<dyn Requests>; 2] = [Arc::new(None), Arc::new(None)];
        let run = MixRun {
            sides,
            shares: &[0, 50],
            like: None,
            workers: [1; 2],
            engine: None,
            limits: Limits::none(),
            observers: [&observer; 2],
        };
        assert_eq!(run.loads(), [[0, 50], [50, 0], [50, 50]]);
        let shares = &[100, 200];
        let of = |like| MixRun { like, shares, sides: run.sides.clone(), ..run }.loads();
        assert_eq!(of(like(8, 2)), [[100, 100], [200, 200]]);
        assert_eq!(of(like(8, 0)), [[100, 0], [200, 0]]);
        assert_eq!(like(8, 2).map(|sides| sides[READS]), Some(Present { per_s: 4.0, bytes: 4096.0 }));
    }

    #[test]
    fn a_device_that_moved_less_than_it_was_sent_is_not_what_answered() {
        let mut cell = cell([50, 50], [100, 100]);
        assert!(!cell.is_void());
        cell.moved = [None, Some(8192 * 89)];
        assert!(cell.is_void());
        cell.moved = [Some(0), None];
        assert!(cell.is_void());
        cell.moved = [None; 2];
        assert!(!cell.is_void());
    }
}
