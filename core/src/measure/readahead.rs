//! What a sequential scan would get from other readahead windows, without touching the kernel's setting.
//!
//! The setting in force is measured as it is: blocks that the page cache does not hold, read one after another. Another
//! window is emulated by a twin of the kernel's readahead: direct requests of one window, of which the next is submitted
//! when the present one is entered, and a copy of each block. What the twin lacks is the page cache's own work. It is
//! the difference between the kernel and the twin at the setting in force, about the same for each block at every
//! window, and is added to the twin's time.
//!
//! All windows take turns, round after round, there and back, each turn on blocks of its own: a disk whose speed drifts
//! drifts under all of them. A turn through the page cache counts if it took no more CPU time a block than 1.3 of what a
//! quarter of them took at most: where memory is short, or given back to a host, pages cost more than the reading. Of the
//! turns that count the median is taken, with an interval that assumes nothing about their distribution.
//!
//! # Limitations and caveats
//! - It emulates the kernel's steady state: the mark that makes it read on lies on the first page of the present window.
//!   The first windows of a real scan are shorter.
//! - What the server does with a block is not in it, and may hide all differences of a fast device.
//! - Where io_uring is refused, threads take over, whose wake-ups cost small windows more than the kernel's.
//! - Where O_DIRECT is refused, windows are asked for by `readahead(2)`, which spends more CPU time than the kernel's own
//!   readahead; the correction takes that off as well.
//! - It reads a block at a time. A server that reads several at a time makes the kernel fetch as many at least.
//! - From a setting of less than 64 kB the page cache's work can't be told well from the cost of a request.
//!
//! Sources: `page_cache_ra_order`, `page_cache_async_ra` and `ondemand_readahead` in the kernel's `mm/readahead.c`;
//! readahead(2), posix_fadvise(2). How near it comes is shown in docs/experiments.

mod ahead;
#[cfg(test)]
mod golden;
mod tally;
#[cfg(test)]
mod tests;
mod twin;

use std::time::Duration;

pub use tally::{CacheCost, WindowTally};
pub use twin::{ROOM_OF_SLOT, SLOTS};

use self::ahead::ReadaheadCalls;
use self::twin::{Pages, Twin};
use crate::engine::Engine;
use crate::files::RelationFiles;
use crate::machine::observer::Observer;
use crate::measure::scan::{self, Buffered, Reader};
use crate::run::budget::{LatencyBound, Limits, Pace, Pauses, Stop, StopCheck};
use crate::run::clock::{Clock, cpu_of_thread_ns, nanoseconds};
use crate::stats::{Interval, MIN_FOR_MEDIAN};
use crate::{Error, Result};

/// A turn reads so many of the widest windows, within the two bounds that follow, in bytes.
const WINDOWS_OF_TURN: u64 = 8;
const SHORTEST_TURN: u64 = 32 << 20;
const LONGEST_TURN: u64 = 128 << 20;

/// A turn of the kernel reads so much at least: what the last turn's pages left in the processor's caches must not help,
/// as it does not help a scan that is longer.
const KERNEL_TURN: u64 = 64 << 20;

/// The first round is warm-up.
const LEAST_ROUNDS: u64 = 2;
/// More would say nothing new of a small relation.
const MOST_ROUNDS: u64 = 200;

/// A turn that reads fewer windows than this says little of them.
const LEAST_WINDOWS: u64 = 4;

/// A turn may take this share of the time of its window.
const TURNS_OF_WINDOW: u32 = 8;

/// The smallest window within this share of the best throughput is as good.
const NEARLY_BEST: f64 = 0.97;

/// Windows that are emulated may be so large, in bytes: they have to fit a slot twice.
pub const LARGEST_WINDOW: u64 = 16 << 20;

/// How windows are emulated.
pub enum Emulation {
    /// By direct requests through an engine of [`SLOTS`] slots of [`ROOM_OF_SLOT`] bytes.
    Direct(Box<dyn Engine>),
    /// By `readahead(2)`, of which the kernel takes `piece` bytes at a time: the larger one of its largest request and the
    /// window in force.
    ReadaheadCalls {
        /// Most bytes of a call.
        piece: u64,
    },
}

/// What is to be measured.
pub struct ReadaheadRun<'a> {
    /// The relation.
    pub source: &'a RelationFiles,
    /// The window in force, in bytes; 0 is none.
    pub in_force: u64,
    /// Windows to emulate, in bytes, multiples of the block size; 0 is none. The one in force may be among them, and is
    /// emulated in any case.
    pub windows: &'a [u64],
    /// What bounds each window, and by `shared` all of them.
    pub limits: Limits,
    /// Looks at the devices.
    pub observer: &'a Observer<'a>,
}

/// The curve.
pub struct ReadaheadCurve {
    /// The setting in force, as it is.
    pub kernel: WindowTally,
    /// The same by the twin.
    twin: WindowTally,
    /// The other windows, in the order in which they were given.
    pub emulated: Vec<WindowTally>,
    /// Blocks of a turn past the page cache.
    turn_blocks: u64,
    /// Did a limit make it pause between turns?
    pub paused: bool,
    /// Why it ended before all rounds were done.
    pub stop: Option<Stop>,
}

/// What a window gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowFigures {
    /// Nanoseconds a block.
    pub ns_per_block: f64,
    /// The same with its interval, if there were enough turns.
    pub interval: Option<Interval>,
}

impl ReadaheadCurve {
    /// What the page cache costs a block; None before both were measured.
    pub fn cache_cost(&self) -> Option<CacheCost> {
        CacheCost::of(&self.kernel, &self.twin)
    }

    /// What the setting in force gets.
    pub fn of_kernel(&self) -> Option<WindowFigures> {
        Some(WindowFigures { ns_per_block: self.kernel.ns_per_block()?, interval: self.kernel.interval() })
    }

    /// What an emulated window gets, with the cost of the page cache.
    pub fn of_emulated(&self, tally: &WindowTally) -> Option<WindowFigures> {
        let cache = self.cache_cost()?;
        let interval = tally.interval().map(|interval| cache.added_to(interval));
        Some(WindowFigures { ns_per_block: tally.ns_per_block()? + cache.ns, interval })
    }
}

/// Did turns that count read enough windows of so many blocks to say something of them?
pub fn is_enough(tally: &WindowTally, window_blocks: u64) -> bool {
    tally.blocks() >= LEAST_WINDOWS * window_blocks * tally.turns()
}

/// Who has a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// The kernel.
    Kernel,
    /// The twin, with the kernel's window.
    Twin,
    /// The window of this index.
    Emulated(usize),
}

/// Measures all windows in turns. `report` hears of each turn before it begins: its number, of how many, and whose it is.
///
/// Reads of the kernel's turns are cold: the page cache is made to let go of the segments that they lie in.
///
/// # Errors
/// Of the reads, and of the eviction. What the file system refuses is part of the result.
pub fn curve(
    run: &ReadaheadRun<'_>,
    emulation: &mut Emulation,
    clock: &dyn Clock,
    should_stop: &mut StopCheck<'_>,
    report: &mut dyn FnMut(u64, u64, Contender),
) -> Result<ReadaheadCurve> {
    let block_size = u64::from(run.source.block_size());
    let widest = run.windows.iter().copied().chain([run.in_force]).max().unwrap_or(0);
    let rate = run.limits.bytes_per_s(block_size);
    let ahead = matches!(emulation, Emulation::ReadaheadCalls { .. });
    // The kernel's row has two turns a round: its own, and the twin's.
    let most = (run.limits.max_bytes / LEAST_ROUNDS / 2).min(rate.unwrap_or(u64::MAX));
    let bounded = |turn: u64| (turn.min(most) / block_size).clamp(1, run.source.blocks().max(1));
    let turn = (WINDOWS_OF_TURN * widest).clamp(SHORTEST_TURN, LONGEST_TURN);
    let (turn_blocks, kernel_blocks) = (bounded(turn), bounded(turn.max(KERNEL_TURN)));
    let order: Vec<Contender> = [Contender::Kernel, Contender::Twin]
        .into_iter()
        .chain((0..run.windows.len()).map(Contender::Emulated))
        .collect();
    let rows = run.windows.len() as u32 + 1;
    let rounds = (run.limits.max_bytes / ((kernel_blocks + turn_blocks) * block_size))
        .clamp(LEAST_ROUNDS, MOST_ROUNDS);
    let rounds = if run.source.blocks() == 0 { 0 } else { rounds };
    let mut turns = WindowTurns {
        run,
        clock,
        deadline: clock.now().saturating_add(nanoseconds(run.limits.duration.saturating_mul(rows))),
        end_of_statement: clock.now().saturating_add(nanoseconds(run.limits.shared)),
        position: 0,
        next_due: clock.now(),
        latency: run.limits.latency,
        pauses: run.limits.pauses(block_size),
        kernel_blocks,
        curve: ReadaheadCurve {
            kernel: WindowTally::new(true),
            twin: WindowTally::new(ahead),
            emulated: vec![WindowTally::new(ahead); run.windows.len()],
            turn_blocks,
            paused: false,
            stop: None,
        },
    };
    let mut precise = Precise { wanted: run.limits.precision, next_look: MIN_FOR_MEDIAN as u64 };
    let (mut number, of) = (0, rounds * order.len() as u64);
    for round in 0..rounds {
        for place in 0..order.len() {
            // There and back, so that no window always comes after the same other one, or always later.
            let whose = order[if round % 2 == 0 { place } else { order.len() - 1 - place }];
            number += 1;
            report(number, of, whose);
            if let Some(stop) = turns.take(round, whose, emulation, should_stop)? {
                turns.curve.stop = Some(stop);
                return Ok(turns.curve);
            }
        }
        if precise.reached(&turns.curve) {
            turns.curve.stop = Some(Stop::Precise);
            break;
        }
    }
    if turns.pauses.is_some() {
        // What comes next may come at once.
        let _ = turns.pause(0, should_stop);
    }
    if turns.curve.stop.is_none() {
        turns.curve.stop = (turns.curve.kernel.blocks() > 0).then_some(Stop::Bytes);
    }
    Ok(turns.curve)
}

/// Of throughputs with their windows, the smallest window that is nearly as good as the best.
pub fn best(curve: &[(u64, f64)]) -> Option<u64> {
    let most = curve.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    curve
        .iter()
        .filter(|(_, rate)| *rate > 0.0 && *rate >= NEARLY_BEST * most)
        .map(|(window, _)| *window)
        .min()
}

/// Turns that are being taken.
struct WindowTurns<'a> {
    run: &'a ReadaheadRun<'a>,
    clock: &'a dyn Clock,
    /// When all windows together have had their time, and when the statement has.
    deadline: u64,
    end_of_statement: u64,
    /// Where the next turn begins.
    position: u64,
    pauses: Option<Pauses>,
    next_due: u64,
    latency: LatencyBound,
    /// Blocks of the kernel's turns.
    kernel_blocks: u64,
    curve: ReadaheadCurve,
}

impl WindowTurns<'_> {
    /// Takes one; a reason to stop ends all.
    fn take(
        &mut self,
        round: u64,
        whose: Contender,
        emulation: &mut Emulation,
        should_stop: &mut StopCheck<'_>,
    ) -> Result<Option<Stop>> {
        if self.tally(whose).refused.is_some() {
            return Ok(None);
        }
        let source = self.run.source;
        let length = if whose == Contender::Kernel { self.kernel_blocks } else { self.curve.turn_blocks };
        // Turns are paid for before they are taken, with what the kernel reads beyond its own.
        let beyond = if whose == Contender::Kernel { self.run.in_force } else { 0 };
        if let Some(stop) = self.pause(length * u64::from(source.block_size()) + beyond, should_stop) {
            return Ok(Some(stop));
        }
        if self.position + length > source.blocks() {
            self.position = 0;
        }
        let blocks = self.position..source.blocks().min(self.position + length);
        self.position = blocks.end;
        // What is dirty would be written back in the middle; and only what is not cached comes from the device.
        let buffered = whose == Contender::Kernel || matches!(emulation, Emulation::ReadaheadCalls { .. });
        let stopped = if buffered {
            source.evict(blocks.clone(), should_stop, &mut |_| ())?
        } else {
            source.write_back(blocks.clone(), should_stop)?.1
        };
        if stopped.is_some() {
            return Ok(stopped);
        }

        let window = match whose {
            Contender::Kernel | Contender::Twin => self.run.in_force,
            Contender::Emulated(index) => self.run.windows[index],
        };
        let window_blocks = window / u64::from(source.block_size());
        // Who reads through the page cache opens its files anew: none finds what another has left with a
        // descriptor.
        let anew = source.afresh();
        let mut reader: Box<dyn Reader + '_> = match (whose, emulation) {
            (Contender::Kernel, _) => Box::new(Buffered::new(&anew, self.run.in_force)),
            (_, Emulation::Direct(engine)) if window_blocks == 0 => {
                Box::new(Pages::new(source, engine.as_mut()))
            }
            (_, Emulation::Direct(engine)) => {
                Box::new(Twin::new(source, engine.as_mut(), window_blocks, ROOM_OF_SLOT as usize))
            }
            (_, Emulation::ReadaheadCalls { piece }) => {
                Box::new(ReadaheadCalls::new(&anew, window_blocks, *piece))
            }
        };
        let limits = Limits {
            latency: self.latency,
            duration: (self.run.limits.duration / TURNS_OF_WINDOW).min(self.left(self.deadline)),
            shared: self.left(self.end_of_statement),
            precision: None,
            ..self.run.limits.without_pauses()
        };
        let mut should_stop = || should_stop();
        let before = self.run.observer.look();
        let (began, cpu) = (self.clock.now(), cpu_of_thread_ns());
        let scanned =
            scan::scan(source, blocks, reader.as_mut(), &limits, self.clock, &mut should_stop, &mut |_| ());
        let cpu = cpu_of_thread_ns() - cpu;
        let cost = self.run.observer.since(&before);
        let scanned = match scanned {
            Ok(scanned) => scanned,
            Err(refused @ Error::Unsupported { .. }) => {
                self.tally(whose).refused = Some(refused.to_string());
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        if buffered {
            // What the kernel still reads ahead must not be in the next turn's way.
            self.run.observer.settle();
        }
        self.latency = scanned.latency;
        if let Some(pauses) = self.pauses {
            // Its bytes are paid for.
            let busy = self.clock.now() - began;
            self.next_due = self.next_due.max(began.saturating_add(pauses.period(0, busy)));
        }
        self.tally(whose).add(round, &scanned, cpu, cost);
        Ok(scanned.stop.filter(|stop| stop.is_for_all()))
    }

    /// Waits until the limits allow so many bytes. A reason to stop may be that all time is used up.
    fn pause(&mut self, bytes: u64, should_stop: &mut StopCheck<'_>) -> Option<Stop> {
        if let Some(pauses) = self.pauses {
            // What was not used before can't be saved up.
            let period = pauses.period(bytes, 0);
            self.next_due = self.next_due.max(self.clock.now().saturating_sub(period)).saturating_add(period);
        }
        let limits = Limits {
            duration: self.left(self.deadline),
            shared: self.left(self.end_of_statement),
            ..self.run.limits
        };
        let mut should_stop = || should_stop();
        let mut pace = Pace::start(&limits, self.clock, &mut should_stop);
        self.curve.paused |= self.next_due > pace.started();
        pace.sleep_until(self.next_due)
    }

    fn left(&self, end: u64) -> Duration {
        Duration::from_nanos(end.saturating_sub(self.clock.now()))
    }

    fn tally(&mut self, whose: Contender) -> &mut WindowTally {
        match whose {
            Contender::Kernel => &mut self.curve.kernel,
            Contender::Twin => &mut self.curve.twin,
            Contender::Emulated(index) => &mut self.curve.emulated[index],
        }
    }
}

/// Decides when all intervals are narrow enough: looks after six rounds, and whenever half as many more were made.
struct Precise {
    wanted: Option<f64>,
    next_look: u64,
}

impl Precise {
    fn reached(&mut self, curve: &ReadaheadCurve) -> bool {
        let Some(wanted) = self.wanted else { return false };
        let known = |tally: &&WindowTally| tally.refused.is_none();
        let all = [&curve.kernel, &curve.twin].into_iter().chain(&curve.emulated);
        let turns = all.filter(known).map(WindowTally::turns).min().unwrap_or(0);
        if turns < self.next_look {
            return false;
        }
        self.next_look = turns + turns / 2;
        let emulated = curve.emulated.iter().filter(known).map(|tally| curve.of_emulated(tally));
        let narrow = |interval: Interval| interval.relative_half_width() <= wanted;
        [curve.of_kernel()]
            .into_iter()
            .chain(emulated)
            .all(|f| f.and_then(|f| f.interval).is_some_and(narrow))
    }
}
