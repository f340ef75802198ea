//! The three scans of each way of reading, in turns.
//!
//! A turn is one contender's: a cold bitmap scan, a cold sequential scan, and the latter's blocks once more,
//! from the OS cache. Each turn goes on where the last one ended, and all turns are of the same number of
//! blocks. What is to be cold is evicted before; a turn that finds it cached all the same does not count.

use std::ops::ControlFlow::{Break, Continue};
use std::ops::Range;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Emulation, Method, Spent, Stream};
use crate::files::RelationFiles;
use crate::files::relation_files::{NEARLY_CACHED, NEARLY_COLD};
use crate::machine::cpu::CpuTimes;
use crate::machine::device::Roots;
use crate::measure::page_times::{Order, TurnReader, Way};
use crate::run::budget::{Budget, Limits, Stop, stopped};
use crate::run::clock::{cpu_of_process_ns, nanoseconds};
use crate::run::rounds::{Contenders, Ended, Rounds, Turn};
use crate::run::stopwatch::Stopwatch;
use crate::stats::{Interval, of_rounds};
use crate::{Error, Result};

/// The scans of a turn.
pub const SCANS: [&str; 3] = ["cold bitmap scan", "cold scan", "cached scan"];

/// Share of the pages that a bitmap scan of a turn reads.
const DENSITY: f64 = 0.1;

/// Blocks that a bitmap scan reads, and bytes that a scan reads, in a turn: as many as take about
/// [`SCAN_TIME`].
const LEAST_PICKS: u64 = 48;
const MOST_PICKS: u64 = 2048;
const LEAST_SCAN: u64 = 4 << 20;
const MOST_SCAN: u64 = 64 << 20;
const SCAN_TIME: Duration = Duration::from_millis(60);

/// Most times that a turn reads what is cached: a slow device fills little of the cache in that time.
const MOST_PASSES: u64 = 50;

/// Most rounds.
const MOST_ROUNDS: u64 = 60;

/// A way of reading that is compared with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contender {
    /// The method that is emulated; None for the server's own reads.
    pub emulated: Option<Method>,
    /// Most blocks of a read.
    pub combined: u64,
    /// Most reads in flight.
    pub depth: usize,
}

/// Reads a turn with the reader that it is given.
pub type ReadTurn<'a> = dyn FnMut(&mut TurnReader<'_>) -> Result<()> + 'a;

/// Has a turn read as the server reads with at most so many blocks in one of its reads, and with so many
/// steps of [`super::Work`] for each block.
pub type ByServer<'a> = dyn FnMut(u64, u64, &mut ReadTurn<'_>) -> Result<()> + 'a;

/// What is to be compared.
pub struct MethodsRun<'a> {
    /// The relation.
    pub source: &'a RelationFiles,
    /// The contenders. The first one is compared with all others.
    pub contenders: &'a [Contender],
    /// Steps of [`super::Work`] for each block of a bitmap scan, and of a scan of the whole table.
    pub steps: [u64; 2],
    /// Most blocks that a scan may have in flight, since it holds a buffer for each: 1 or more.
    pub most_blocks: u64,
    /// Does the server verify what it reads?
    pub verifies: bool,
    /// Decides which blocks a bitmap scan reads.
    pub seed: u64,
    /// Bounds of all turns together; `max_bytes` is for each contender.
    pub limits: Limits,
    /// Where the processors are looked at.
    pub roots: &'a Roots,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Compared {
    /// Of each contender what its scans took, by round; None where that round does not count.
    rounds: Vec<Vec<Option<[Spent; 3]>>>,
    /// Why the kernel refused a contender, if so.
    pub refused: Vec<Option<String>>,
    /// Blocks of each scan.
    pub blocks: [u64; 3],
    /// Share of the processors' time that others used; None where it is not known.
    pub used_by_others: Option<f64>,
    /// Did a turn find cached what was evicted before?
    pub was_cached: bool,
    /// Why it ended.
    pub stop: Option<Stop>,
}

impl Compared {
    /// Nanoseconds of a scan's block, and of the processors, as means over the rounds.
    pub fn of_scan(&self, contender: usize, scan: usize) -> Option<Spent> {
        let turns: Vec<Spent> = self.rounds[contender].iter().flatten().map(|spent| spent[scan]).collect();
        let work = turns.len() as u64 * self.blocks[scan];
        let mean = |of: fn(&Spent) -> u64| turns.iter().map(of).sum::<u64>().checked_div(work);
        Some(Spent { wall_ns: mean(|spent| spent.wall_ns)?, cpu_ns: mean(|spent| spent.cpu_ns)? })
    }

    /// How many times as long as `other` a contender took for a scan, or for all of them alike, with an
    /// interval over the rounds in which both counted.
    pub fn ratio(&self, contender: usize, other: usize, scan: Option<usize>) -> Option<Interval> {
        of_rounds(&self.rounds[contender], &self.rounds[other], |spent| time(spent, scan))
    }
}

/// The wall clock of a scan, or the geometric mean of all.
fn time(spent: &[Spent; 3], scan: Option<usize>) -> u64 {
    match scan {
        Some(scan) => spent[scan].wall_ns,
        None => spent.iter().map(|spent| spent.wall_ns as f64).product::<f64>().cbrt() as u64,
    }
}

/// Has the contenders take turns until the time or the bytes are used up. `server` reads for those that are
/// not emulated.
///
/// # Errors
/// Those of the reads. That the kernel refuses a method is part of the result.
pub fn compare(
    run: &MethodsRun<'_>,
    server: &mut ByServer<'_>,
    budget: &mut Budget<'_>,
    report: &mut dyn FnMut(u64, u64),
) -> Result<Compared> {
    let all = run.contenders.len();
    let limits = Limits { max_bytes: run.limits.max_bytes.saturating_mul(all as u64), ..run.limits };
    let mut budget = budget.part(&limits);
    budget.pace(&run.limits, run.source.block_size().into());
    let mut turns = Turns {
        run,
        server,
        report,
        position: 0,
        rng: Xoshiro256PlusPlus::seed_from_u64(run.seed),
        picks: LEAST_PICKS,
        scan_blocks: 0,
        passes: 1,
        compared: Compared { rounds: vec![Vec::new(); all], refused: vec![None; all], ..Compared::default() },
    };
    let before = CpuTimes::read(run.roots);
    let own = cpu_of_process_ns();
    turns.find_refused()?;
    turns.size(&mut budget)?;
    let ended = Rounds::new(MOST_ROUNDS, all).take(&mut turns, &mut budget)?;
    let rested = budget.pacer().due();
    budget.rest_until(rested);
    let mut compared = turns.compared;
    compared.stop = ended.break_value().flatten();
    let own = Duration::from_nanos(cpu_of_process_ns() - own);
    compared.used_by_others = before.and_then(|before| CpuTimes::read(run.roots)?.used_besides(&before, own));
    Ok(compared)
}

struct Turns<'r, 'a> {
    run: &'r MethodsRun<'a>,
    server: &'r mut ByServer<'r>,
    report: &'r mut dyn FnMut(u64, u64),
    /// Where the next turn begins.
    position: u64,
    rng: Xoshiro256PlusPlus,
    /// Blocks of a turn's bitmap scan, and of its scans.
    picks: u64,
    scan_blocks: u64,
    /// How often the cached scan of a turn is made.
    passes: u64,
    compared: Compared,
}

impl<'a> Turns<'_, 'a> {
    /// Finds out which contenders the kernel refuses.
    fn find_refused(&mut self) -> Result<()> {
        for index in 0..self.run.contenders.len() {
            if let Err(error) = self.emulation(index) {
                self.compared.refused[index] = Some(why_refused(error)?);
            }
        }
        Ok(())
    }

    /// Made for each turn: all together would take much memory, and many threads.
    fn emulation(&self, index: usize) -> Result<Option<Emulation<'a>>> {
        let Contender { emulated, combined, depth } = self.run.contenders[index];
        let Some(method) = emulated else { return Ok(None) };
        let request = combined as usize * self.run.source.block_size() as usize;
        Emulation::new(self.run.source, method, depth, request, self.run.verifies).map(Some)
    }

    /// Finds how many blocks take about [`SCAN_TIME`], by a first turn of the first contender that is not
    /// refused.
    fn size(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let block_size = u64::from(self.run.source.block_size());
        self.scan_blocks = LEAST_SCAN / block_size;
        self.compared.blocks = self.place();
        let first = self.compared.refused.iter().position(Option::is_none).unwrap_or(0);
        let Some([bitmap, scan, cached]) = self.scans_or_refusal(first, budget)? else { return Ok(()) };
        budget.spend(self.compared.blocks.iter().take(2).sum::<u64>() * block_size);
        let blocks = self.run.source.blocks();
        let most = (blocks as f64 * DENSITY / 2.0) as u64;
        self.picks = fitting(self.picks, bitmap).clamp(LEAST_PICKS, MOST_PICKS.min(most).max(LEAST_PICKS));
        let least = self.scan_blocks;
        let most = (MOST_SCAN / block_size).min(blocks / 2).max(least);
        self.scan_blocks = fitting(least, scan).clamp(least, most);
        self.passes = (fitting(least, cached) / self.scan_blocks).clamp(1, MOST_PASSES);
        self.compared.blocks = self.place();
        Ok(())
    }

    /// Begins anew where a turn has no more room in the relation, and returns the blocks of its scans.
    fn place(&mut self) -> [u64; 3] {
        let blocks = self.run.source.blocks();
        let span = (self.picks as f64 / DENSITY) as u64;
        if self.position + span + self.scan_blocks > blocks {
            self.position = 0;
        }
        // Of a small relation, what is left: what one scan read must not be in the cache of the next.
        self.scan_blocks = self.scan_blocks.min(blocks.saturating_sub(span));
        [self.picks, self.scan_blocks, self.scan_blocks]
    }

    /// So many blocks of `span`, ascending, chosen at random.
    fn picked(&mut self, span: Range<u64>) -> Vec<u64> {
        let (mut left, mut wanted) = (span.end - span.start, self.picks);
        let mut picked = Vec::with_capacity(wanted as usize);
        for block in span {
            if self.rng.random_range(0..left) < wanted {
                picked.push(block);
                wanted -= 1;
            }
            left -= 1;
        }
        picked
    }

    /// The scans of a contender. An emulated one that gets too few descriptors or threads is refused, and the
    /// others go on.
    fn scans_or_refusal(&mut self, index: usize, budget: &mut Budget<'_>) -> Result<Option<[Spent; 3]>> {
        match self.scans(index, budget) {
            Err(error) if self.run.contenders[index].emulated.is_some() => {
                self.compared.refused[index] = Some(why_refused(error)?);
                // Of one that can't go on, nothing is told.
                self.compared.rounds[index].clear();
                Ok(None)
            }
            spent => spent,
        }
    }

    /// The three scans of a contender; None if what was to be cold was cached, or the other way round, or if
    /// there was a stop.
    fn scans(&mut self, index: usize, budget: &mut Budget<'_>) -> Result<Option<[Spent; 3]>> {
        let source = self.run.source;
        let span = self.position..(self.position + (self.picks as f64 / DENSITY) as u64).min(source.blocks());
        let in_order = span.end..(span.end + self.scan_blocks).min(source.blocks());
        self.position = in_order.end;
        for range in [&span, &in_order] {
            // The budget keeps a reason to stop.
            if stopped(source.evict(range.clone(), &mut || budget.caller_stop(), &mut |_| ()))?.is_some() {
                return Ok(None);
            }
        }
        if source.cached_share(&span)? > NEARLY_COLD || source.cached_share(&in_order)? > NEARLY_COLD {
            self.compared.was_cached = true;
            return Ok(None);
        }
        let mut emulation = self.emulation(index)?;
        let picked = self.picked(span);
        let all: Vec<u64> = in_order.clone().collect();
        let contender = self.run.contenders[index];
        let bitmap = self.read(&mut emulation, contender, &picked, true, budget)?;
        let cold = self.read(&mut emulation, contender, &all, false, budget)?;
        let mut cached = Spent::default();
        let (mut is_cached, mut is_ended) = (true, false);
        let mut passes = 0;
        while passes < self.passes && is_cached && !is_ended {
            let spent = self.read(&mut emulation, contender, &all, false, budget)?;
            (cached.wall_ns, cached.cpu_ns) = (cached.wall_ns + spent.wall_ns, cached.cpu_ns + spent.cpu_ns);
            passes += 1;
            // Of pages in memory that the kernel has taken back meanwhile, no time tells.
            is_cached = source.cached_share(&in_order)? >= NEARLY_CACHED;
            is_ended = budget.caller_stop().is_some() || budget.latency().is_passed();
        }
        let cached = Spent { wall_ns: cached.wall_ns / passes, cpu_ns: cached.cpu_ns / passes };
        // A scan that was ended early did less.
        Ok((is_cached && !is_ended).then_some([bitmap, cold, cached]))
    }

    fn read(
        &mut self,
        emulation: &mut Option<Emulation<'_>>,
        contender: Contender,
        blocks: &[u64],
        has_gaps: bool,
        budget: &mut Budget<'_>,
    ) -> Result<Spent> {
        match emulation {
            Some(emulation) => self.emulate(emulation, contender, blocks, has_gaps, budget),
            None => self.read_by_server(contender, blocks, has_gaps, budget),
        }
    }

    fn emulate(
        &self,
        emulation: &mut Emulation<'_>,
        contender: Contender,
        blocks: &[u64],
        has_gaps: bool,
        budget: &mut Budget<'_>,
    ) -> Result<Spent> {
        let steps = self.run.steps[usize::from(!has_gaps)];
        let combining = contender.combined.min(self.run.most_blocks);
        let reads = combined(blocks, combining, self.run.source);
        // The last read may begin before there are buffers for all of its blocks, so the count is rounded up.
        let blocks_of_read = if has_gaps { 1 } else { combining.max(1) };
        let depth = contender.depth.min(self.run.most_blocks.div_ceil(blocks_of_read) as usize);
        let stream = Stream { reads, depth, has_gaps, steps, verifies: self.run.verifies };
        emulation.read(&stream, &mut |waited| {
            // An interrupt unwinds; other reasons wait for the end of the turn.
            let _ = budget.caller_stop();
            if let Some(ns) = waited {
                budget.latency_mut().observe(ns);
            }
        })
    }

    fn read_by_server(
        &mut self,
        contender: Contender,
        blocks: &[u64],
        has_gaps: bool,
        budget: &mut Budget<'_>,
    ) -> Result<Spent> {
        let way = if has_gaps { Way::Bitmap(contender.depth as u32) } else { Way::Scan };
        let mut spent = Spent::default();
        let steps = self.run.steps[usize::from(!has_gaps)];
        (self.server)(contender.combined, steps, &mut |reader| {
            let (lead_ns, length_ns, most) = (u64::MAX, u64::MAX, u64::MAX);
            let mut order = Order { blocks, way, warm_up: 0, lead_ns, length_ns, most, hits: 0 };
            let mut report = |_| ();
            let mut watch = Stopwatch::start(None, budget.part_to_its_end(), &mut report);
            let cpu = cpu_of_process_ns();
            reader.read(&mut order, &mut watch)?;
            spent = Spent { wall_ns: watch.rated().ns, cpu_ns: cpu_of_process_ns() - cpu };
            Ok(())
        })?;
        Ok(spent)
    }
}

/// As many blocks as take about [`SCAN_TIME`], where these took so long.
fn fitting(blocks: u64, spent: Spent) -> u64 {
    (blocks as f64 * nanoseconds(SCAN_TIME) as f64 / spent.wall_ns.max(1) as f64) as u64
}

/// Why a way of reading can't be tried here, if that is all that its error tells.
fn why_refused(error: Error) -> Result<String> {
    match error {
        Error::Unsupported { why, .. } => Ok(why),
        error if error.is_shortage() => Ok(error.to_string()),
        error => Err(error),
    }
}

/// Neighbours in reads of at most `most` blocks, none of which goes from one segment into another.
fn combined(blocks: &[u64], most: u64, source: &RelationFiles) -> Vec<Range<u64>> {
    let mut reads: Vec<Range<u64>> = Vec::new();
    for &block in blocks {
        match reads.last_mut() {
            Some(last)
                if last.end == block
                    && last.end - last.start < most
                    && source.segment(last.start) == source.segment(block) =>
            {
                last.end += 1;
            }
            _ => reads.push(block..block + 1),
        }
    }
    reads
}

impl Contenders for Turns<'_, '_> {
    fn is_over(&self, contender: usize) -> bool {
        self.compared.refused[contender].is_some()
    }

    fn turn(&mut self, turn: Turn, budget: &mut Budget<'_>) -> Result<Ended> {
        (self.report)(turn.number, turn.of);
        if budget.bytes_left() == 0 {
            return Ok(Break(Some(Stop::Bytes)));
        }
        if let Some(stop) = budget.wait() {
            return Ok(Break(Some(stop)));
        }
        let began = budget.clock().now();
        let blocks = self.place();
        let spent = self.scans_or_refusal(turn.contender, budget)?;
        let rounds = &mut self.compared.rounds[turn.contender];
        rounds.resize(turn.round as usize, None);
        rounds.push(spent);
        let asked = (blocks[0] + blocks[1]) * u64::from(self.run.source.block_size());
        budget.spend(asked);
        let now = budget.clock().now();
        budget.pacer().charge_late(now, asked, now - began);
        Ok(budget.check(now).map_or(Continue(()), |stop| Break(Some(stop))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::relation_files::fixture::Relation;
    use crate::measure::BlockReader;
    use crate::run::clock::Monotonic;

    const BLOCKS: u64 = 4000;

    /// A server that reads nothing, and takes a millisecond for each scan.
    struct Slow;

    impl BlockReader<Order<'_>> for Slow {
        fn read(&mut self, order: &mut Order<'_>, watch: &mut Stopwatch<'_>) -> Result<()> {
            watch.begin();
            watch.rate(true);
            std::thread::sleep(Duration::from_millis(1));
            let _ = watch.arrived(order.blocks.len() as u64);
            Ok(())
        }
    }

    fn compared(relation: &Relation, contenders: &[Contender], max_bytes: u64) -> Compared {
        let run = MethodsRun {
            source: &relation.source,
            contenders,
            steps: [1, 10],
            most_blocks: 100,
            verifies: true,
            seed: 1,
            limits: Limits { duration: Duration::from_secs(60), max_bytes, ..Limits::none() },
            roots: &Roots::default(),
        };
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        let mut server = |_: u64, _: u64, read: &mut ReadTurn<'_>| read(&mut Slow);
        compare(&run, &mut server, &mut budget, &mut |_, _| ()).expect("compared")
    }

    fn emulated(method: Method) -> Contender {
        Contender { emulated: Some(method), combined: 16, depth: 8 }
    }

    #[test]
    fn all_take_turns_and_ratios_are_to_one_of_them() {
        let relation = Relation::new(BLOCKS, 0..BLOCKS);
        let contenders = [emulated(Method::Sync), emulated(Method::Worker(2)), emulated(Method::IoUring)];
        let found = compared(&relation, &contenders, 100 << 20);
        assert_eq!(found.stop, Some(Stop::Bytes));
        let [bitmap, cold, cached] = found.blocks;
        assert!(bitmap >= LEAST_PICKS && cold >= LEAST_SCAN / 8192 && cached == cold, "{:?}", found.blocks);
        for place in 0..contenders.len() {
            if found.refused[place].is_some() {
                assert_eq!(found.of_scan(place, 0), None);
                continue;
            }
            let of_cached = found.of_scan(place, 2).expect("turns");
            assert!(of_cached.wall_ns > 0 && of_cached.cpu_ns > 0);
            let ratio = found.ratio(place, 0, None).expect("three turns and more");
            assert!(ratio.low <= ratio.value && ratio.value <= ratio.high);
            assert!(place > 0 || (ratio.value, ratio.low, ratio.high) == (1.0, 1.0, 1.0), "{ratio:?}");
        }
    }

    #[test]
    fn what_did_not_come_into_the_cache_does_not_count() {
        let relation = Relation::new(BLOCKS, 0..BLOCKS);
        let server = Contender { emulated: None, combined: 16, depth: 8 };
        let found = compared(&relation, &[emulated(Method::Sync), server], 20 << 20);
        assert!(found.of_scan(0, 1).is_some());
        assert_eq!((found.of_scan(1, 1), found.ratio(1, 0, None)), (None, None));
    }

    #[test]
    fn neighbours_are_read_at_once() {
        let files = RelationFiles::new("/nowhere", 8192, 10, 30);
        let reads = combined(&[0, 1, 2, 3, 5, 8, 9, 10, 11], 3, &files);
        assert_eq!(reads, [0..3, 3..4, 5..6, 8..10, 10..12]);
        assert_eq!(combined(&[4, 5], 1, &files), [4..5, 5..6]);
        assert_eq!(combined(&[], 1, &files), []);
    }
}
