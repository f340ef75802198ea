//! What a sequential scan would get from other readahead windows, without touching the kernel's setting.
//!
//! The setting in force is measured as it is: blocks that the page cache does not hold, read one after
//! another. Another window is emulated by a twin of the kernel's readahead: direct requests of one window, of
//! which the next is submitted when the present one is entered, and a copy of each block. What the twin lacks
//! is the page cache's own work. It is the difference between the kernel and the twin at the setting in
//! force, about the same for each block at every window, and is added to the twin's time.
//!
//! All windows take turns, every second round in reverse order, each turn on blocks of its own: a drift of
//! the disk's speed affects all of them. A turn through the page cache counts if it took no more CPU time a
//! block than 1.3 of what a quarter of them took at most: where memory is short, or given back to a host,
//! pages cost more than the reading. Of the turns that count the median is taken, with an interval that
//! assumes nothing about their distribution.
//!
//! # Limitations and caveats
//! - It emulates the kernel's steady state: the mark that makes it read on lies on the first page of the
//!   present window. The first windows of a real scan are shorter.
//! - What the server does with a block is not in it, and may hide all differences of a fast device.
//! - Where io_uring is refused, threads take over, whose wake-ups cost small windows more than the kernel's.
//! - Where O_DIRECT is refused, only the setting in force is measured.
//! - It reads a block at a time. A server that reads several at a time makes the kernel fetch as many at
//!   least.
//! - From a setting of less than 64 kB the page cache's work can't be told well from the cost of a request.
//!
//! Sources: `page_cache_ra_order`, `page_cache_async_ra` and `ondemand_readahead` in the kernel's
//! `mm/readahead.c`; posix_fadvise(2). How near it comes is shown in experiments/readahead.md.

mod tally;
#[cfg(test)]
mod tests;
mod twin;

use std::ops::ControlFlow::{Break, Continue};
use std::ops::Range;
use std::time::Duration;

pub use tally::{CacheCost, WindowTally};
pub use twin::{ROOM_OF_SLOT, SLOTS};

use self::twin::{PageReads, Twin};
use crate::engine::Engine;
use crate::files::{Access, Part, RelationFiles};
use crate::machine::observer::{IoDelta, Observer};
use crate::measure::BlockReader;
use crate::measure::scan::{self, Buffered, Scan, ScanRun, Steps};
use crate::run::budget::{Budget, Limits, Outcome, Stop, stop_if, stopped};
use crate::run::clock::cpu_of_thread_ns;
use crate::run::clock::nanoseconds;
use crate::run::rounds::{Contenders, Ended, Rounds, Turn};
use crate::stats::{Interval, Looks, MIN_FOR_MEDIAN, MIN_TURNS};
use crate::{Error, Result};

/// How many of the widest windows a turn reads, within the two bounds that follow, in bytes.
const WINDOWS_OF_TURN: u64 = 8;
const SHORTEST_TURN: u64 = 32 << 20;
const LONGEST_TURN: u64 = 128 << 20;

/// Fewest bytes of a turn of the kernel: what the last turn's pages left in the processor's caches must not
/// help, as it does not help a scan that is longer.
const KERNEL_TURN: u64 = 64 << 20;

/// Bytes between two turns: a disk reads on into its own buffer, and what is there comes at once. A relation
/// that has room for fewer turns than `TURNS_APART` is read without a gap.
const BEHIND_BUFFER: u64 = 16 << 20;
const TURNS_APART: u64 = 4;

/// Where a control group limits reads, a turn lasts so many of the bursts that it lets through, if there is
/// time for that: the first costs none.
const BURSTS: u32 = 10;

/// Fewest rounds: the first is warm-up.
const LEAST_ROUNDS: u64 = 2;
/// Most rounds: more would say nothing new of a small relation.
const MOST_ROUNDS: u64 = 200;

/// A turn that reads fewer windows than this says little of them.
const LEAST_WINDOWS: u64 = 4;

/// A turn may take the time of its window over this, or as long as this: else what it takes to find the
/// first block is much of it, where the device is slow.
const TURNS_OF_WINDOW: u32 = 8;
const SHORTEST_OF_TURNS: Duration = Duration::from_millis(250);

/// How many windows there should be time for in a turn, a little more than it takes.
const WINDOWS_IN_TIME: f64 = 1.25 * (LEAST_WINDOWS + 1) as f64;

/// Rounds for which there has to be room, with the first, or windows are left out; and how many of these,
/// beside the one in force, are measured in any case.
const ROUNDS_WITH_ROOM: f64 = 1.0 + MIN_TURNS as f64;
const LEAST_EMULATED: usize = 2;

/// Other turns may take longer than those that were taken, by this much.
const SAFELY: f64 = 1.5;

/// Largest window that is emulated, in bytes: it has to fit a slot twice.
pub const LARGEST_WINDOW: u64 = 16 << 20;

/// What is to be measured.
pub struct ReadaheadRun<'a> {
    /// The relation.
    pub source: &'a RelationFiles,
    /// The window in force, in bytes; 0 is none.
    pub in_force: u64,
    /// Windows to emulate, in bytes, the most important first; multiples of the block size, 0 is none. The
    /// one in force may be among them, and is emulated in any case.
    pub windows: &'a [u64],
    /// What bounds each window.
    pub limits: Limits,
    /// Looks at the devices.
    pub observer: &'a Observer<'a>,
}

/// The curve.
pub struct ReadaheadCurve {
    /// The setting in force, as it is.
    pub kernel: WindowTally,
    /// The setting in force, emulated by the twin.
    twin: WindowTally,
    /// The windows to emulate, in the order in which they were given; none where they are refused.
    pub emulated: Vec<WindowTally>,
    /// How many of the first of these were measured: turns take so long that the others had no room.
    pub measured: usize,
    /// About how long it would take until each of these has an interval, if one has none now.
    pub needs: Option<Duration>,
    /// Why no window can be emulated here.
    pub refused: Option<String>,
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
    /// Nanoseconds a block with their interval, if there were enough turns.
    pub interval: Option<Interval>,
}

impl ReadaheadCurve {
    fn tally(&mut self, whose: Contender) -> &mut WindowTally {
        match whose {
            Contender::Kernel => &mut self.kernel,
            Contender::Twin => &mut self.twin,
            Contender::Emulated(index) => &mut self.emulated[index],
        }
    }

    /// Blocks that all contenders read: they go through the relation together.
    pub fn blocks_read(&self) -> u64 {
        self.emulated.iter().chain([&self.kernel, &self.twin]).map(|tally| tally.read).sum()
    }

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

/// Did turns that count read enough windows of `window_blocks` to say something of them?
pub fn is_enough(tally: &WindowTally, window_blocks: u64) -> bool {
    tally.blocks() >= LEAST_WINDOWS * window_blocks * tally.turns()
}

/// What has a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contender {
    /// The kernel.
    Kernel,
    /// The twin, with the kernel's window.
    Twin,
    /// The window of this index.
    Emulated(usize),
}

/// Measures all windows in turns; emulated ones use `engine`, of [`SLOTS`] slots of [`ROOM_OF_SLOT`] bytes.
/// `report` hears of each turn before it begins: its number, of how many, and whose it is.
///
/// Reads of the kernel's turns are cold: the page cache is made to let go of the segments that they lie in.
///
/// # Errors
/// Those of the reads, and of the eviction. That the file system refuses O_DIRECT is part of the result.
pub fn curve(
    run: &ReadaheadRun<'_>,
    engine: &mut dyn Engine,
    budget: &mut Budget<'_>,
    report: &mut dyn FnMut(u64, u64, Contender),
) -> Result<ReadaheadCurve> {
    let block_size = u64::from(run.source.block_size());
    let widest = run.windows.iter().copied().chain([run.in_force]).max().unwrap_or(0);
    let rate = run.limits.bytes_per_s(block_size);
    // The kernel's row has two turns a round: its own, and the twin's.
    let most = (run.limits.max_bytes / LEAST_ROUNDS / 2).min(rate.unwrap_or(u64::MAX));
    let bursts = u64::from(BURSTS) * run.observer.burst(run.in_force.max(block_size));
    let turn = (WINDOWS_OF_TURN * widest).clamp(SHORTEST_TURN, LONGEST_TURN).max(bursts);
    let [turn_blocks, kernel_blocks] = [turn, turn.max(KERNEL_TURN)]
        .map(|bytes| (bytes.min(most) / block_size).clamp(1, run.source.blocks().max(1)));
    let rows = run.windows.len() as u32 + 1;
    let rounds = (run.limits.max_bytes / ((kernel_blocks + turn_blocks) * block_size))
        .clamp(LEAST_ROUNDS, MOST_ROUNDS);
    let rounds = if run.source.blocks() == 0 { 0 } else { rounds };
    // All windows together have the time of all. The number of rounds keeps to their bytes.
    let duration = run.limits.duration.saturating_mul(rows);
    let all = Limits { duration, max_bytes: u64::MAX, ..run.limits };
    let mut budget = budget.part(&all);
    budget.pace(&run.limits, block_size);
    let refused = refusal(run.source)?;
    let contenders = if refused.is_some() { 1 } else { OF_KERNEL.len() + run.windows.len() };
    let mut turns = WindowTurns {
        run,
        engine,
        report,
        position: 0,
        kernel_blocks,
        length: budget.length(),
        is_first_round: true,
        has_no_room: false,
        kernel_pace: 0.0,
        taken: 0,
        looks: Looks::from(MIN_FOR_MEDIAN as u64),
        curve: ReadaheadCurve {
            kernel: WindowTally::through_page_cache(),
            twin: WindowTally::default(),
            emulated: vec![WindowTally::default(); contenders.saturating_sub(OF_KERNEL.len())],
            measured: run.windows.len(),
            needs: None,
            refused,
            turn_blocks,
            paused: false,
            stop: None,
        },
    };
    let mut ended = Rounds::new(rounds, contenders).first().take(&mut turns, &mut budget)?;
    turns.is_first_round = false;
    if turns.has_no_room || ended.is_continue() {
        let contenders = contenders.min(OF_KERNEL.len() + turns.curve.measured);
        ended = Rounds::new(rounds, contenders).after_first().take(&mut turns, &mut budget)?;
    }
    let stop = ended.break_value().flatten();
    turns.curve.needs = turns.time_for_intervals(&budget).filter(|_| stop.is_some_and(Stop::is_of_time));
    let rested = budget.pacer().due();
    budget.rest_until(rested);
    let mut curve = turns.curve;
    curve.paused = budget.has_paused();
    let by_bytes = rounds < MOST_ROUNDS && curve.kernel.blocks() > 0;
    curve.stop = stop.or(by_bytes.then_some(Stop::Bytes));
    Ok(curve)
}

/// Turns that are being taken.
struct WindowTurns<'a> {
    run: &'a ReadaheadRun<'a>,
    engine: &'a mut dyn Engine,
    report: &'a mut dyn FnMut(u64, u64, Contender),
    /// Where the next turn begins.
    position: u64,
    /// Blocks of the kernel's turns.
    kernel_blocks: u64,
    /// How long the run is to take.
    length: Duration,
    /// Is it the first round, which tells how many windows have room? And has the next none?
    is_first_round: bool,
    has_no_room: bool,
    /// Nanoseconds a byte in the kernel's first turn.
    kernel_pace: f64,
    /// Turns that were taken.
    taken: u64,
    looks: Looks,
    curve: ReadaheadCurve,
}

/// What has the first turns of a round, before the windows.
const OF_KERNEL: [Contender; 2] = [Contender::Kernel, Contender::Twin];

impl Contenders for WindowTurns<'_> {
    fn turn(&mut self, turn: Turn, budget: &mut Budget<'_>) -> Result<Ended> {
        let whose = match OF_KERNEL.get(turn.contender) {
            Some(whose) => *whose,
            None => Contender::Emulated(turn.contender - OF_KERNEL.len()),
        };
        if let Contender::Emulated(index) = whose
            && self.is_first_round
            && !self.has_room(index, budget)
        {
            (self.has_no_room, self.curve.measured) = (true, index);
            return Ok(Break(None));
        }
        self.taken += 1;
        (self.report)(self.taken, turn.of.max(self.taken), whose);
        let stop = stopped(self.read(turn.round, whose, budget))?;
        Ok(stop.map_or(Continue(()), |stop| Break(Some(stop))))
    }

    /// Are all intervals narrow enough?
    fn is_enough(&mut self) -> bool {
        let Some(wanted) = self.run.limits.precision else { return false };
        let curve = &self.curve;
        let twin = curve.refused.is_none().then_some(&curve.twin);
        let emulated = &curve.emulated[..curve.measured.min(curve.emulated.len())];
        let others = emulated.iter().chain(twin);
        let turns = others.map(WindowTally::turns).fold(curve.kernel.turns(), u64::min);
        if !self.looks.are_due(turns) {
            return false;
        }
        let emulated = emulated.iter().map(|tally| curve.of_emulated(tally));
        let mut intervals = emulated.chain([curve.of_kernel()]).map(|found| found?.interval);
        intervals.all(|interval| interval.is_some_and(|known| known.relative_half_width() <= wanted))
    }
}

impl WindowTurns<'_> {
    /// Is there time for this window, too, if each turn takes as long as those before it did?
    fn has_room(&self, index: usize, budget: &Budget<'_>) -> bool {
        let gone = (budget.clock().now() - budget.started()) as f64;
        let round = gone * (self.taken + 1) as f64 / self.taken.max(1) as f64;
        index < LEAST_EMULATED || round * ROUNDS_WITH_ROOM <= nanoseconds(self.length) as f64
    }

    /// If a window has no interval, about how long it would take until each has one.
    fn time_for_intervals(&self, budget: &Budget<'_>) -> Option<Duration> {
        let curve = &self.curve;
        let emulated = curve.emulated.iter().take(curve.measured).map(|tally| curve.of_emulated(tally));
        let mut all = emulated.chain([curve.of_kernel()]);
        if self.taken == 0 || all.all(|figures| figures.is_some_and(|figures| figures.interval.is_some())) {
            return None;
        }
        let gone = Duration::from_nanos(budget.clock().now() - budget.started());
        let turns = ROUNDS_WITH_ROOM * (OF_KERNEL.len() + curve.measured) as f64;
        Some(gone.mul_f64((SAFELY * turns / self.taken as f64).max(1.0)))
    }

    /// How long a turn of this window may take.
    fn longest(&self, window: u64) -> Duration {
        let limit = self.run.limits.duration / TURNS_OF_WINDOW;
        let for_windows = Duration::from_nanos((WINDOWS_IN_TIME * window as f64 * self.kernel_pace) as u64);
        let bursts = (BURSTS * self.run.observer.bursts_every()).min(self.length / TURNS_OF_WINDOW);
        // One turn must leave time for the rest that follows it.
        let share = self.run.limits.max_util.unwrap_or(1.0);
        limit.max(SHORTEST_OF_TURNS).max(for_windows).max(bursts).min(self.length.mul_f64(share))
    }

    /// Reads the blocks of a turn; a reason to stop ends all.
    fn read(&mut self, round: u64, whose: Contender, budget: &mut Budget<'_>) -> Outcome<()> {
        let blocks = self.pay_and_place(whose, budget)?;
        self.empty(whose, blocks.clone(), budget)?;
        let began = budget.clock().now();
        let (scanned, cpu, cost) = self.scan(whose, blocks, budget)?;
        if whose == Contender::Kernel {
            self.kernel_blocks = fitting(self.kernel_blocks, &scanned, self.in_force_blocks());
            // What the kernel still reads ahead must not be in the next turn's way.
            let source = self.run.source;
            let until = source.blocks().min(scanned.blocks.end + self.in_force_blocks());
            let ahead = scanned.blocks.end..until;
            self.run.observer.settle_after(&mut || source.are_arriving(ahead.clone()))?;
        }
        let busy = budget.clock().now() - began;
        if self.taken == 1 && scanned.rated.work > 0 {
            let block_size = f64::from(self.run.source.block_size());
            self.kernel_pace = scanned.rated.ns as f64 / scanned.rated.work as f64 / block_size;
        }
        budget.pacer().rest(began, busy);
        self.curve.tally(whose).add(round, &scanned, cpu, cost);
        stop_if(scanned.stop.filter(|stop| stop.is_for_all()))
    }

    fn in_force_blocks(&self) -> u64 {
        self.run.in_force / u64::from(self.run.source.block_size())
    }

    /// The blocks of a turn, which is paid for before it is taken, with what the kernel reads beyond its own.
    fn pay_and_place(&mut self, whose: Contender, budget: &mut Budget<'_>) -> Outcome<Range<u64>> {
        let source = self.run.source;
        let (length, beyond) = match whose {
            Contender::Kernel => (self.kernel_blocks, self.run.in_force),
            _ => (self.curve.turn_blocks, 0),
        };
        let now = budget.clock().now();
        budget.pacer().charge_late(now, length * u64::from(source.block_size()) + beyond, 0);
        stop_if(budget.wait())?;
        let gap = BEHIND_BUFFER / u64::from(source.block_size());
        let start = start_of_turn(self.position, length, gap, source.blocks());
        let blocks = start..source.blocks().min(start + length);
        self.position = blocks.end;
        Ok(blocks)
    }

    /// Writes back what is dirty, which would happen in the middle otherwise, and makes the page cache let go
    /// of what the kernel is to read.
    fn empty(&self, whose: Contender, blocks: Range<u64>, budget: &mut Budget<'_>) -> Outcome<()> {
        let source = self.run.source;
        if whose == Contender::Kernel {
            source.evict(blocks, &mut || budget.poll(), &mut |_| ())
        } else {
            source.write_back(blocks, &mut || budget.poll()).map(drop)
        }
    }

    /// Reads the blocks. Returns also the CPU time that it took, in nanoseconds, and what it cost the
    /// devices.
    fn scan(
        &mut self,
        whose: Contender,
        blocks: Range<u64>,
        budget: &mut Budget<'_>,
    ) -> Result<(Scan, u64, IoDelta)> {
        let source = self.run.source;
        let block_size = u64::from(source.block_size());
        let window = match whose {
            Contender::Kernel | Contender::Twin => self.run.in_force,
            Contender::Emulated(index) => self.run.windows[index],
        };
        let duration = self.longest(window);
        // The kernel's turns open the files anew: none finds what another has left with a descriptor.
        let anew = source.afresh();
        let by_block = Steps::above_readahead(window, block_size);
        let window_blocks = window / block_size;
        let (steps, mut reader): (Steps, Box<dyn BlockReader<Part> + '_>) = match (whose, window_blocks) {
            (Contender::Kernel, _) => (by_block, Box::new(Buffered::new(&anew))),
            (_, 0) => (by_block, Box::new(PageReads::new(source, self.engine))),
            _ => {
                let twin = Twin::new(source, self.engine, window_blocks, ROOM_OF_SLOT as usize);
                (Steps::of(window_blocks), Box::new(twin))
            }
        };
        let limits = Limits { duration, precision: None, ..self.run.limits.without_pauses() };
        let run = ScanRun { source, blocks, steps, without_data: None, limits };
        let before = self.run.observer.look();
        let cpu = cpu_of_thread_ns();
        let scanned = scan::scan(&run, reader.as_mut(), budget, &mut |_| ());
        let cpu = cpu_of_thread_ns() - cpu;
        Ok((scanned?, cpu, self.run.observer.since(&before)))
    }
}

/// Where a turn of `length` blocks begins in a relation of `blocks`, after one that ended there; 0: it is the
/// first.
fn start_of_turn(last: u64, length: u64, gap: u64, blocks: u64) -> u64 {
    let is_apart = last > 0 && TURNS_APART * (length + gap) <= blocks;
    let start = if is_apart { last + gap } else { last };
    if start + length > blocks { 0 } else { start }
}

/// Blocks of the kernel's next turn. After one that its time has cut short it has as many whole windows of
/// `window` blocks as that read: a turn that ends with the wait for a window has nothing of it. There is time
/// for a few in any case ([`WINDOWS_IN_TIME`]).
fn fitting(blocks: u64, scanned: &Scan, window: u64) -> u64 {
    let read = scanned.blocks.end - scanned.blocks.start;
    match read / window.max(1) * window.max(1) {
        whole if scanned.stop == Some(Stop::Duration) && whole > 0 => {
            blocks.min(whole.max((LEAST_WINDOWS + 1) * window))
        }
        _ => blocks,
    }
}

/// Why requests past the page cache are refused, if so.
fn refusal(source: &RelationFiles) -> Result<Option<String>> {
    // Where nothing is to be read, nothing is opened.
    if source.blocks() == 0 {
        return Ok(None);
    }
    match source.open(0, Access::Direct) {
        Ok(_) => Ok(None),
        Err(refused @ Error::Unsupported { .. }) => Ok(Some(refused.to_string())),
        Err(error) => Err(error),
    }
}
