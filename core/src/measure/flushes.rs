//! What others wait for while data files are written and synced, by how many bytes are written before the
//! kernel is told to write them back.
//!
//! A turn is a short checkpoint. Blocks are written through the page cache at even distances for half of the
//! turn, begin to be written back after so many bytes, and are synced. There are so many that the device
//! takes them in a quarter of the turn if they come as fast as it can: it is half busy. Where the file has no
//! places for so many, the turn is shorter. Meanwhile one thread reads blocks of a relation past the page
//! cache, one after another. All ways take turns, there and back.
//!
//! How long others wait is told of moments, not of reads ([`crate::stats::Latencies::quantile_of_time`]): a
//! read that lasts a second is one of thousands, but whoever comes in that second waits. One that outlasts
//! its turn counts as well.
//!
//! # Limitations and caveats
//! - No block is written twice between two syncs. That one which is written again is written back twice does
//!   not show.
//! - A turn is far shorter than a checkpoint: what the kernel writes back by itself, after 30 s or if much is
//!   dirty, does not show.

use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::Result;
use crate::files::scratch::Scratch;
use crate::machine::observer::Observer;
use crate::measure::content::Content;
use crate::measure::contradictions;
use crate::measure::load::{self, Pace, Requests, Stream};
use crate::measure::writes::{Buffered, WriteWay, content_of};
use crate::run::budget::{Budget, Limits, Outcome, Stop, stop_if, stopped};
use crate::run::clock::{Clock, Monotonic, nanoseconds};
use crate::run::lock;
use crate::run::rounds::{Contenders, Ended, Rounds, Turn};
use crate::stats::{Interval, Latencies, of_rounds};

/// Rounds of turns, and one more that finding the number of writes may take.
const ROUNDS: u32 = 6;

/// Part of a turn in which the device takes the writes, and in which they come.
const DEVICE_PART: u32 = 4;
const WRITING_PART: u32 = 2;

/// Writes with which finding their number begins, and by how much it may grow at a time.
const FIRST: u64 = 32;
const GROWTH: f64 = 4.0;

/// Fewest times that a turn must reach the number of bytes after which they are written back: else it is much
/// like one in which they never are.
const LEAST_FLUSHES: u64 = 2;

/// The share of moments that tells what others wait.
const MOMENTS: f64 = 0.99;

/// What is to be measured.
pub struct FlushRun<'a> {
    /// The ways, through the page cache.
    pub ways: &'a [WriteWay],
    /// The file that is written.
    pub scratch: Arc<Scratch>,
    /// What others read.
    pub reads: Arc<dyn Requests>,
    /// The seed of random orders.
    pub seed: u64,
    /// What bounds all ways together. It must make no pauses.
    pub limits: Limits,
    /// Looks at the device before and after.
    pub observer: &'a Observer<'a>,
}

/// A turn, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlushTurn {
    /// What the read under way took at most, in 99 of 100 moments.
    pub read_ns: u64,
    /// The sync at the end.
    pub sync_ns: u64,
    /// All writes, with having them written back and that sync.
    pub writing_ns: u64,
}

/// What is written in a turn.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Size {
    /// Writes.
    count: u64,
    /// How much of its time the turn takes: less than 1 where the file has no more places.
    part: f64,
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Flushes {
    /// Of each way, by round; None where a turn was ended early.
    turns: Vec<Vec<Option<FlushTurn>>>,
    /// Of each way.
    sizes: Vec<Size>,
    /// Of each way, how many times as long turns have to be to tell something of it, if they are too short.
    short_by: Vec<Option<f64>>,
    /// Bytes that were written, and that the device wrote meanwhile; None where it has no counters.
    written: u64,
    moved: Option<u64>,
    /// What ended it early.
    pub stop: Option<Stop>,
}

impl Flushes {
    /// Nothing yet, of so many ways.
    fn of(ways: usize) -> Self {
        let turns = vec![Vec::new(); ways];
        Self { turns, sizes: vec![Size::default(); ways], short_by: vec![None; ways], ..Self::default() }
    }

    /// How many times as long as `other` a way took for this, with an interval over the rounds in which both
    /// counted.
    pub fn ratio(&self, way: usize, other: usize, of: fn(&FlushTurn) -> u64) -> Option<Interval> {
        of_rounds(&self.turns[way], &self.turns[other], of)
    }

    /// Mean of this over the turns of a way, in nanoseconds.
    pub fn mean(&self, way: usize, of: fn(&FlushTurn) -> u64) -> Option<f64> {
        let turns: Vec<u64> = self.turns[way].iter().flatten().map(of).collect();
        (!turns.is_empty()).then(|| turns.iter().sum::<u64>() as f64 / turns.len() as f64)
    }

    /// Writes of each turn of a way.
    pub fn count(&self, way: usize) -> u64 {
        self.sizes[way].count
    }

    /// Are turns of a way shorter than their time, since the file has no more places?
    pub fn lacks_places(&self, way: usize) -> bool {
        self.sizes[way].part < 1.0
    }

    /// How many times as long turns have to be to tell something of this way, if they are too short.
    pub fn short_by(&self, way: usize) -> Option<f64> {
        self.short_by[way]
    }

    /// Did the device write less than was synced?
    pub fn is_void(&self) -> bool {
        contradictions::moved_less(self.moved, self.written)
    }
}

/// How long a turn is if so many ways share this time.
pub fn turn_length(all: Duration, ways: usize) -> Duration {
    all / (ways.max(1) as u32 * (ROUNDS + 1))
}

/// Measures the ways in turns; `report` hears of each turn before it begins: its number, and of how many.
///
/// # Errors
/// Those of the requests and syncs.
pub fn run(run: &FlushRun<'_>, budget: &mut Budget<'_>, report: &mut dyn FnMut(u64, u64)) -> Result<Flushes> {
    let mut budget = budget.part(&run.limits);
    let counted = Arc::new(CountedReads { reads: Arc::clone(&run.reads), latencies: Mutex::default() });
    let content = content_of(run.ways)?;
    let mut turns = FlushTurns {
        run,
        reads: Stream::new(counted.clone(), 1),
        counted,
        writes: run.ways.iter().map(|way| FlushedWrites::new(run, way, &content)).collect::<Result<_>>()?,
        length: turn_length(run.limits.duration, run.ways.len()),
        report,
        found: Flushes::of(run.ways.len()),
    };
    let before = run.observer.look();
    let mut stop = stopped(turns.size(&mut budget))?;
    if stop.is_none() {
        let rounds = Rounds::new(ROUNDS.into(), run.ways.len());
        stop = rounds.take(&mut turns, &mut budget)?.break_value().flatten();
    }
    let moved = run.observer.since(&before).activity.map(|activity| activity.writes.bytes);
    Ok(Flushes { moved, stop, ..turns.found })
}

/// Writes of a way; the last one of a turn is synced with all others.
struct FlushedWrites {
    turn: Mutex<WriterTurn>,
    length: u32,
}

struct WriterTurn {
    writer: Buffered,
    /// Writes until the sync.
    left: u64,
    sync_ns: u64,
    writing_ns: u64,
}

impl FlushedWrites {
    fn new(run: &FlushRun<'_>, way: &WriteWay, content: &Arc<Content>) -> Result<Arc<Self>> {
        let writer = Buffered::new(Arc::clone(content), Arc::clone(&run.scratch), way, run.seed)?;
        let turn = WriterTurn { writer, left: 0, sync_ns: 0, writing_ns: 0 };
        Ok(Arc::new(Self { turn: Mutex::new(turn), length: way.length }))
    }
}

impl Requests for FlushedWrites {
    fn make(&self, _number: u64, _worker: usize) -> Result<()> {
        let mut turn = lock(&self.turn);
        let began = Monotonic.now();
        turn.writer.write_next()?;
        turn.left = turn.left.saturating_sub(1);
        if turn.left == 0 {
            let written = Monotonic.now();
            turn.writer.sync()?;
            turn.sync_ns = Monotonic.now() - written;
        }
        turn.writing_ns += Monotonic.now() - began;
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.length.into()
    }
}

/// Reads that are counted until the last one is answered, though the turn may be over.
struct CountedReads {
    reads: Arc<dyn Requests>,
    latencies: Mutex<Latencies>,
}

impl Requests for CountedReads {
    fn make(&self, number: u64, worker: usize) -> Result<()> {
        let began = Monotonic.now();
        self.reads.make(number, worker)?;
        lock(&self.latencies).record(Monotonic.now() - began);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.reads.bytes()
    }
}

struct FlushTurns<'a> {
    run: &'a FlushRun<'a>,
    reads: Stream,
    counted: Arc<CountedReads>,
    writes: Vec<Arc<FlushedWrites>>,
    length: Duration,
    report: &'a mut dyn FnMut(u64, u64),
    found: Flushes,
}

impl FlushTurns<'_> {
    /// Finds how many writes the device takes in its part of a turn; the same for all ways of an order.
    fn size(&mut self, budget: &mut Budget<'_>) -> Outcome<()> {
        for way in 0..self.run.ways.len() {
            let WriteWay { order, length, flush_after, .. } = self.run.ways[way];
            let alike = self.run.ways[..way].iter().position(|other| other.order == order);
            let size = match alike {
                Some(other) => self.found.sizes[other],
                None => self.size_of(way, budget)?,
            };
            let least = LEAST_FLUSHES * flush_after;
            let short = least as f64 / (size.count * u64::from(length)) as f64;
            self.found.sizes[way] = size;
            self.found.short_by[way] = (short > 1.0).then_some(short);
        }
        Ok(())
    }

    fn size_of(&mut self, way: usize, budget: &mut Budget<'_>) -> Outcome<Size> {
        let most = lock(&self.writes[way].turn).writer.places();
        let wanted = nanoseconds(self.length / DEVICE_PART) as f64;
        let mut count = FIRST.min(most);
        loop {
            let (turn, stop) = self.write(way, count, None, budget)?;
            stop_if(stop)?;
            let fitting = count as f64 * wanted / turn.writing_ns.max(1) as f64;
            let grown = count as f64 * GROWTH;
            if fitting <= grown || count == most {
                let part = (most as f64 / fitting).min(1.0);
                return Ok(Size { count: (fitting as u64).clamp(1, most), part });
            }
            count = (grown as u64).min(most);
        }
    }

    /// Writes and syncs so many times: beside reads for a turn of this length, or alone and at once.
    fn write(
        &mut self,
        way: usize,
        count: u64,
        length: Option<Duration>,
        budget: &mut Budget<'_>,
    ) -> Result<(FlushTurn, Option<Stop>)> {
        let writes = Arc::clone(&self.writes[way]);
        {
            let mut turn = lock(&writes.turn);
            (turn.left, turn.sync_ns, turn.writing_ns) = (count, 0, 0);
        }
        let stream = Stream::new(writes.clone(), 1).of_count(count);
        let (_, stop) = match length {
            None => load::run(&[stream], Duration::ZERO, budget)?,
            Some(length) => {
                let evenly = count as f64 / (length / WRITING_PART).as_secs_f64().max(1e-9);
                load::run(&[stream.at(Pace::Due(evenly)), self.reads.clone()], length, budget)?
            }
        };
        let turn = lock(&writes.turn);
        if turn.left == 0 {
            self.found.written += count * u64::from(writes.length);
        }
        let waited = mem::take(&mut *lock(&self.counted.latencies)).quantile_of_time(MOMENTS);
        let (sync_ns, writing_ns) = (turn.sync_ns, turn.writing_ns);
        Ok((FlushTurn { read_ns: waited.unwrap_or(0), sync_ns, writing_ns }, stop))
    }
}

impl Contenders for FlushTurns<'_> {
    fn is_over(&self, contender: usize) -> bool {
        self.found.short_by[contender].is_some()
    }

    fn turn(&mut self, turn: Turn, budget: &mut Budget<'_>) -> Result<Ended> {
        (self.report)(turn.number, turn.of);
        let way = turn.contender;
        let Size { count, part } = self.found.sizes[way];
        let (found, stop) = self.write(way, count, Some(self.length.mul_f64(part)), budget)?;
        let is_whole = stop.is_none() && found.read_ns > 0;
        let turns = &mut self.found.turns[way];
        turns.resize(turn.round as usize, None);
        turns.push(is_whole.then_some(found));
        Ok(stop.map_or(Ended::Continue(()), |stop| Ended::Break(Some(stop))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::scratch::{Fill, Room, ScratchLocation};
    use crate::machine::account::Account;
    use crate::machine::device::Roots;
    use crate::measure::writes::WriteOrder;

    const BLOCK: u32 = 8192;

    /// Reads that take half a millisecond each; every 20th takes `LONG`.
    struct Reads;

    const LONG: Duration = Duration::from_millis(100);

    impl Requests for Reads {
        fn make(&self, number: u64, _worker: usize) -> Result<()> {
            Monotonic.sleep(if number % 20 == 19 { LONG } else { Duration::from_micros(500) });
            Ok(())
        }

        fn bytes(&self) -> u64 {
            BLOCK.into()
        }
    }

    fn flushes(ways: &[WriteWay], limits: Limits) -> Flushes {
        flushes_in(env!("CARGO_MANIFEST_DIR"), 4 << 20, ways, limits)
    }

    fn flushes_in(parent: &str, size: u64, ways: &[WriteWay], limits: Limits) -> Flushes {
        let directory = tempfile::tempdir_in(parent).expect("a directory");
        let fallback = directory.path().join("fallback");
        let place = ScratchLocation { directory: directory.path(), fallback: &fallback };
        let room = Room { size, reserve: 0, limits: Limits::none() };
        let mut should_stop = || None;
        let (scratch, _) =
            Scratch::create(place, None, room, Fill::Incompressible, &mut should_stop).expect("a file");
        let (roots, leaves) = (Roots::default(), []);
        let observer = Observer::new(Account::Own, &leaves, &roots);
        let (scratch, reads) = (Arc::new(scratch), Arc::new(Reads));
        let run = FlushRun { ways, scratch, reads, seed: 7, limits, observer: &observer };
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        super::run(&run, &mut budget, &mut |_, _| ()).expect("written")
    }

    fn way(flush_after: u64) -> WriteWay {
        WriteWay { order: WriteOrder::Sorted, length: BLOCK, direct: None, flush_after }
    }

    #[test]
    fn ways_of_an_order_write_as_much_in_turns() {
        let limits = Limits { duration: Duration::from_secs(4), ..Limits::none() };
        let found = flushes(&[way(0), way(4 * 8192)], limits);
        assert!(found.sizes.len() == 2 && found.sizes[0] == found.sizes[1] && found.count(0) > 0);
        // If the machine lets it have its turns in time.
        for (index, turns) in found.turns.iter().enumerate() {
            assert!(turns.len() <= ROUNDS as usize);
            for turn in turns.iter().flatten() {
                assert!(turn.read_ns >= 500_000 && turn.sync_ns > 0, "{turn:?}");
                assert!(turn.writing_ns >= turn.sync_ns);
            }
            let whole = turns.iter().flatten().count();
            assert_eq!(found.mean(index, |turn| turn.sync_ns).is_some(), whole > 0);
        }
        if let Some(same) = found.ratio(0, 0, |turn| turn.read_ns) {
            assert_eq!((same.low, same.value, same.high), (1.0, 1.0, 1.0));
        }
        assert!(!found.is_void());
    }

    #[test]
    fn a_turn_that_is_too_short_tells_nothing_of_a_way() {
        let limits = Limits { duration: Duration::from_millis(400), ..Limits::none() };
        // More than the whole file has.
        let found = flushes(&[way(4 << 20)], limits);
        assert!(found.short_by(0) > Some(1.0));
        assert_eq!(found.mean(0, |turn| turn.read_ns), None);
    }

    #[test]
    fn bytes_end_it() {
        let max_bytes = 20 * u64::from(BLOCK);
        let limits = Limits { duration: Duration::from_secs(60), max_bytes, ..Limits::none() };
        let found = flushes(&[way(0)], limits);
        assert_eq!((found.stop, found.mean(0, |turn| turn.read_ns)), (Some(Stop::Bytes), None));
    }

    #[test]
    fn a_file_of_few_places_shortens_the_turns() {
        // 256 places would take a quarter of half a minute.
        let limits = Limits { duration: Duration::from_secs(200), ..Limits::none() };
        let found = flushes(&[way(0)], limits);
        assert!(found.lacks_places(0) && found.count(0) == 256, "{:?}", found.sizes);
        assert_eq!(found.stop, None);
    }

    #[test]
    fn a_read_that_outlasts_its_turn_counts() {
        // Turns are shorter than a long read.
        let limits = Limits { duration: Duration::from_millis(400), ..Limits::none() };
        // In memory, where no turn is so small that it has fewer than ten reads.
        let found = flushes_in("/dev/shm", 128 << 20, &[way(0)], limits);
        let is_long = |turn: &FlushTurn| Duration::from_nanos(turn.read_ns) >= LONG;
        assert!(found.turns[0].iter().flatten().any(is_long), "{:?}", found.turns);
    }
}
