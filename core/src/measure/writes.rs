//! Writes of data files: what the device takes, and what the server's ways of writing come to.
//!
//! Past the page cache, requests are sent as fast as they are answered ([`crate::measure::load`]). Through
//! it, blocks are written one by one, and begin to be written back after so many bytes, as
//! `checkpoint_flush_after` and `backend_flush_after` have the server do. Before any block is written once
//! more, and at the end of a turn, the file is synced: the time of the sync counts, since without it a write
//! is a copy in memory.
//!
//! All ways take turns, there and back, so that a drift of the device is in all of them alike.
//!
//! # Limitations and caveats
//! - Others' fsyncs of the same file system may wait for what was written here.
//! - A device takes writes into its own cache first: a scratch file smaller than that may fit into it.
//!
//! Source: `IssuePendingWritebacks` and `ScheduleBufferTagForWriteback` in
//! `src/backend/storage/buffer/bufmgr.c` of PostgreSQL 15 to 19.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::Kind;
use crate::files::scratch::Scratch;
use crate::files::writeback;
use crate::machine::observer::Observer;
use crate::measure::content::Content;
use crate::measure::contradictions;
use crate::measure::load::{self, Pace, ScratchWrites, Stream};
use crate::run::budget::{Budget, Limits, Stop, stopped};
use crate::run::clock::nanoseconds;
use crate::run::memory;
use crate::run::order::Permutation;
use crate::run::rounds::{Contenders, Ended, Rounds, Turn};
use crate::stats::{self, Interval, Latencies, Slice};
use crate::{Error, Result};

/// Rounds of turns.
const ROUNDS: u32 = 5;

/// How often a turn asks whether to go on, in writes.
const LOOK: u64 = 64;

/// Bytes of a sequential write past the page cache.
pub const LONG_WRITE: u32 = 256 << 10;

/// Where the next write goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOrder {
    /// Anywhere in the file, each place once before any comes again.
    Random,
    /// Behind the last one; at the end of the file it begins again.
    Sequential,
    /// To half of all places, in order.
    Sorted,
}

/// A way to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteWay {
    /// Where each goes.
    pub order: WriteOrder,
    /// Bytes of each.
    pub length: u32,
    /// Most in flight, past the page cache; None: through it, one at a time.
    pub direct: Option<usize>,
    /// Through the page cache: bytes after which they begin to be written back; 0: not before the sync.
    pub flush_after: u64,
}

/// What is known of a way.
#[derive(Debug, Default)]
pub struct WriteTimes {
    /// Turns past the page cache, or what was written between two syncs.
    passes: Vec<Slice>,
    /// Of single writes, and of having them written back, without syncs.
    pub latencies: Latencies,
    /// Of the syncs.
    pub syncs: Slice,
    /// Why there are none, if it can't be done here.
    pub refused: Option<String>,
    /// Bytes that were written.
    pub bytes: u64,
    /// Bytes that the device wrote meanwhile; None where it has no counters.
    pub moved: Option<u64>,
    /// What ended it early.
    pub stop: Option<Stop>,
    /// Did limits of the call hold it back?
    pub paused: bool,
}

impl WriteTimes {
    /// Time and writes of all turns.
    pub fn total(&self) -> Slice {
        Slice::sum(&self.passes)
    }

    /// Nanoseconds a write, its part of the syncs included. None for fewer than three passes, and under
    /// limits.
    pub fn interval(&self) -> Option<Interval> {
        if self.paused { None } else { stats::of_turns(&self.passes) }
    }

    /// Past the page cache, is this known to be no figure of the device: did it write less than was sent, or
    /// were more requests answered than may have been in flight?
    pub fn is_void(&self, way: &WriteWay) -> bool {
        let Some(workers) = way.direct else { return false };
        let (latencies, depth) = (self.latencies.total(), workers as u64);
        let exceeds = !self.paused && contradictions::exceeds_depth(latencies, self.total(), depth);
        exceeds || contradictions::moved_less(self.moved, self.bytes)
    }
}

/// What is to be measured.
pub struct WriteRun<'a> {
    /// The ways.
    pub ways: &'a [WriteWay],
    /// The file that is written, as all of them.
    pub scratch: Arc<Scratch>,
    /// The seed of random orders.
    pub seed: u64,
    /// What bounds each way.
    pub limits: Limits,
    /// What writes past the page cache.
    pub engine: Option<Kind>,
    /// Looks at the device before and after each turn.
    pub observer: &'a Observer<'a>,
}

/// Measures the ways in turns; `report` hears of each turn before it begins: its number, of how many, and its
/// way.
///
/// # Errors
/// Those of the writes and syncs.
pub fn run(
    run: &WriteRun<'_>,
    budget: &mut Budget<'_>,
    report: &mut dyn FnMut(u64, u64, &WriteWay),
) -> Result<Vec<WriteTimes>> {
    let mut budget = budget.part(&Limits { duration: Duration::MAX, max_bytes: u64::MAX, ..run.limits });
    budget.pace(&run.limits, 1);
    let length = run.limits.duration / ROUNDS;
    let (mut writers, mut all) = (Vec::new(), Vec::new());
    let content = content_of(run.ways)?;
    for way in run.ways {
        let (writer, refused) = match Writer::new(run, way, &content) {
            Ok(writer) => (Some(writer), None),
            Err(refused @ Error::Unsupported { .. }) => (None, Some(refused.to_string())),
            Err(error) => return Err(error),
        };
        writers.push(writer);
        all.push(WriteTimes { moved: Some(0), refused, ..WriteTimes::default() });
    }
    let mut turns = WriteTurns { run, writers, length, report, all };
    let ended = Rounds::new(ROUNDS.into(), run.ways.len()).take(&mut turns, &mut budget)?;
    if let Ended::Break(Some(stop)) = ended {
        turns.all.iter_mut().for_each(|times| times.stop = Some(stop));
    }
    budget.rest_at_end(&run.limits);
    Ok(turns.all)
}

/// What writes in a way.
enum Writer {
    Direct(Stream),
    Buffered(Buffered),
}

/// What all of these ways write: each content takes a huge page.
pub(super) fn content_of(ways: &[WriteWay]) -> Result<Arc<Content>> {
    let longest = ways.iter().map(|way| way.length).max().unwrap_or_default();
    Ok(Arc::new(Content::new(longest as usize)?))
}

/// Writes through the page cache.
pub(super) struct Buffered {
    scratch: Arc<Scratch>,
    file: File,
    order: Order,
    length: u32,
    flush_after: u64,
    content: Arc<Content>,
    /// Writes so far, and where those went that have not begun to be written back.
    done: u64,
    pending: Vec<u64>,
}

/// Where a write goes, by its number.
enum Order {
    Random(Permutation),
    Sequential(u64),
    Sorted(Vec<u32>),
}

impl Order {
    fn new(order: WriteOrder, places: u64, seed: u64) -> Result<Self> {
        let random = Permutation::new(places, seed);
        Ok(match order {
            WriteOrder::Random => Self::Random(random),
            WriteOrder::Sequential => Self::Sequential(places),
            WriteOrder::Sorted => {
                let dirty = (0..places).filter(|place| 2 * random.at(*place) < places);
                let mut chosen = memory::list_of(places as usize / 2 + 1)?;
                chosen.extend(dirty.map(|place| place as u32));
                Self::Sorted(chosen)
            }
        })
    }

    /// How many there are before any comes again.
    fn places(&self) -> u64 {
        match self {
            Self::Random(order) => order.len(),
            Self::Sequential(places) => *places,
            Self::Sorted(places) => places.len() as u64,
        }
    }

    fn place(&self, number: u64) -> u64 {
        match self {
            Self::Random(order) => order.at(number % order.len()),
            Self::Sequential(places) => number % places,
            Self::Sorted(places) => places[(number % places.len() as u64) as usize].into(),
        }
    }
}

impl Writer {
    fn new(run: &WriteRun<'_>, way: &WriteWay, content: &Arc<Content>) -> Result<Self> {
        let (scratch, content) = (Arc::clone(&run.scratch), Arc::clone(content));
        if let Some(workers) = way.direct {
            let random = (way.order == WriteOrder::Random).then_some(run.seed);
            let writes = ScratchWrites::of(content, scratch, libc::O_DIRECT, way.length, random, false)?;
            let stream = Stream::new(Arc::new(writes), workers);
            return Ok(Self::Direct(stream.by(run.engine).within(&run.limits)));
        }
        Buffered::new(content, scratch, way, run.seed).map(Self::Buffered)
    }
}

struct WriteTurns<'a> {
    run: &'a WriteRun<'a>,
    writers: Vec<Option<Writer>>,
    length: Duration,
    report: &'a mut dyn FnMut(u64, u64, &WriteWay),
    all: Vec<WriteTimes>,
}

impl Contenders for WriteTurns<'_> {
    fn is_over(&self, contender: usize) -> bool {
        let times = &self.all[contender];
        times.refused.is_some() || times.stop.is_some_and(Stop::is_for_all)
    }

    fn turn(&mut self, turn: Turn, budget: &mut Budget<'_>) -> Result<Ended> {
        let times = &mut self.all[turn.contender];
        (self.report)(turn.number, turn.of, &self.run.ways[turn.contender]);
        let most_bytes = self.run.limits.max_bytes / u64::from(ROUNDS);
        budget.pacer().set_requests(&self.run.limits, self.run.ways[turn.contender].length.into());
        let before = self.run.observer.look();
        let began = budget.clock().now();
        let (stop, paused_ns) = match &mut self.writers[turn.contender] {
            None => (None, 0),
            Some(Writer::Direct(stream)) => {
                times.paused |= stream.pace != Pace::Free;
                let mut part = budget.part(&Limits { max_bytes: most_bytes, ..Limits::none() });
                let (reached, stop) = load::run(std::slice::from_ref(stream), self.length, &mut part)?;
                times.passes.push(Slice { ns: reached[0].ns, work: reached[0].answered });
                times.latencies.absorb(&reached[0].latencies);
                times.bytes += reached[0].bytes;
                (stop, 0)
            }
            Some(Writer::Buffered(writer)) => writer.turn(times, self.length, most_bytes, budget)?,
        };
        if self.run.limits.max_util.is_some() {
            times.paused = true;
            let busy = (budget.clock().now() - began).saturating_sub(paused_ns);
            budget.pacer().rest(began, busy);
        }
        let written = self.run.observer.since(&before).activity.map(|activity| activity.writes.bytes);
        times.moved = times.moved.zip(written).map(|(sum, more)| sum + more);
        times.stop = stop;
        match stop.filter(|stop| stop.is_for_all()).or_else(|| budget.wait()) {
            Some(stop) => Ok(Ended::Break(Some(stop))),
            None => Ok(Ended::Continue(())),
        }
    }
}

impl Buffered {
    /// Has written nothing yet.
    pub(super) fn new(
        content: Arc<Content>,
        scratch: Arc<Scratch>,
        way: &WriteWay,
        seed: u64,
    ) -> Result<Self> {
        let places = (scratch.size() / u64::from(way.length)).max(1);
        Ok(Self {
            file: scratch.open(0)?,
            scratch,
            order: Order::new(way.order, places, seed)?,
            length: way.length,
            flush_after: way.flush_after,
            content,
            done: 0,
            pending: Vec::new(),
        })
    }

    /// How many writes there are before a place comes again.
    pub(super) fn places(&self) -> u64 {
        self.order.places()
    }

    /// Writes once, and has what is due written back.
    pub(super) fn write_next(&mut self) -> Result<()> {
        let bytes = u64::from(self.length);
        let offset = self.order.place(self.done) * bytes;
        let data = self.content.at(self.done.wrapping_mul(bytes), self.length as usize);
        self.scratch.write(&self.file, data, offset)?;
        self.done += 1;
        if self.flush_after > 0 {
            self.pending.push(offset);
            if self.pending.len() as u64 * bytes >= self.flush_after {
                self.begin_to_write_back()?;
            }
        }
        Ok(())
    }

    /// Waits until all is durable.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.pending.clear();
        let synced = self.file.sync_all();
        synced.map_err(|e| self.scratch.failed("fsync scratch file in directory", None, e))
    }

    /// Writes for this time. Returns what ended it early, and how long it waited for limits.
    fn turn(
        &mut self,
        times: &mut WriteTimes,
        length: Duration,
        most_bytes: u64,
        budget: &mut Budget<'_>,
    ) -> Result<(Option<Stop>, u64)> {
        let ends = budget.clock().now().saturating_add(nanoseconds(length));
        let most_writes = most_bytes / u64::from(self.length);
        let (mut writes, mut paused_ns) = (0, 0);
        loop {
            let most = (most_writes - writes).min(self.order.places());
            let (written, paused, stop) = self.pass(times, most, ends, budget)?;
            writes += written;
            paused_ns += paused;
            let is_full = writes == most_writes;
            if stop.is_some() || is_full || budget.clock().now() >= ends {
                return Ok((stop.or(is_full.then_some(Stop::Bytes)), paused_ns));
            }
        }
    }

    /// Writes so many times, or until then, and syncs. Returns the number of writes, how long it waited for
    /// limits, and what ended it early.
    fn pass(
        &mut self,
        times: &mut WriteTimes,
        most: u64,
        ends: u64,
        budget: &mut Budget<'_>,
    ) -> Result<(u64, u64, Option<Stop>)> {
        let clock = budget.clock();
        let (began, bytes) = (clock.now(), u64::from(self.length));
        let (mut writes, mut paused_ns, mut stop) = (0, 0, None);
        while writes < most && clock.now() < ends {
            let now = clock.now();
            if budget.pacer().is_early(now) {
                times.paused = true;
                stop = budget.wait();
                paused_ns += clock.now() - now;
            } else if writes % LOOK == 0 {
                stop = budget.poll();
            }
            if stop.is_some() {
                break;
            }
            let started = clock.now();
            self.write_next()?;
            writes += 1;
            let took = clock.now() - started;
            times.latencies.record(took);
            budget.latency_mut().observe(took);
            if budget.pacer().is_limited() {
                budget.pacer().charge(started, bytes, took);
            }
        }
        let started = clock.now();
        let all = 0..self.scratch.size();
        let waited =
            stopped(writeback::of_scratch(&self.file, self.scratch.directory(), all, &mut || budget.poll()))?;
        if waited.is_none() {
            self.sync()?;
            let took = clock.now() - started;
            times.syncs.add(took);
            budget.latency_mut().observe(took);
            times.passes.push(Slice { ns: clock.now() - began, work: writes });
        }
        times.bytes += writes * bytes;
        budget.spend(writes * bytes);
        Ok((writes, paused_ns, stop.or(waited)))
    }

    /// Has the kernel write back what was written, in order, what lies side by side at once.
    fn begin_to_write_back(&mut self) -> Result<()> {
        let length = u64::from(self.length);
        self.pending.sort_unstable();
        self.pending.dedup();
        for run in self.pending.chunk_by(|one, next| one + length == *next) {
            let range = run[0]..run[run.len() - 1] + length;
            writeback::begin_of_scratch(&self.file, self.scratch.directory(), &range)?;
        }
        self.pending.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::scratch::{Fill, Room, ScratchLocation};
    use crate::machine::account::Account;
    use crate::machine::device::Roots;
    use crate::run::clock::Monotonic;

    const BLOCK: u32 = 8192;

    #[test]
    fn what_is_sorted_goes_up_and_leaves_gaps() {
        let order = Order::new(WriteOrder::Sorted, 1000, 7).expect("memory");
        let places: Vec<u64> = (0..500).map(|number| order.place(number)).collect();
        assert!(places.is_sorted() && places[499] > 900);
        assert_eq!(order.place(500), places[0]);
        assert!(places.windows(2).any(|two| two[1] == two[0] + 1));
        assert!(places.windows(2).any(|two| two[1] > two[0] + 1));
    }

    #[test]
    fn each_way_writes_and_syncs() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let fallback = directory.path().join("fallback");
        let place = ScratchLocation { directory: directory.path(), fallback: &fallback };
        let limits = Limits { duration: Duration::from_millis(50), ..Limits::none() };
        let room = Room { size: 1 << 20, reserve: 0, limits: Limits::none() };
        let mut should_stop = || None;
        let (scratch, _) =
            Scratch::create(place, None, room, Fill::Incompressible, &mut should_stop).expect("a file");
        let way = |order, flush_after| WriteWay { order, length: BLOCK, direct: None, flush_after };
        let ways = [
            way(WriteOrder::Sorted, 32 * u64::from(BLOCK)),
            way(WriteOrder::Random, 0),
            way(WriteOrder::Sequential, 0),
        ];
        let (roots, leaves) = (Roots::default(), []);
        let observer = Observer::new(Account::Own, &leaves, &roots);
        let run = WriteRun {
            ways: &ways,
            scratch: Arc::new(scratch),
            seed: 7,
            limits,
            engine: None,
            observer: &observer,
        };
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        let all = super::run(&run, &mut budget, &mut |_, _, _| ()).expect("written");
        for times in &all {
            assert!(times.syncs.work >= ROUNDS.into() && times.stop.is_none());
            assert_eq!(times.total().work * u64::from(BLOCK), times.bytes);
            assert_eq!(times.latencies.total().work, times.total().work);
            assert!(times.interval().is_some());
        }
        // The bytes are shared by the turns.
        let duration = Duration::from_secs(300);
        let limits = Limits { duration, max_bytes: 15 * u64::from(BLOCK), ..limits };
        let all = super::run(&WriteRun { limits, ..run }, &mut budget, &mut |_, _, _| ()).expect("written");
        for times in &all {
            assert_eq!((times.bytes, times.stop), (15 * u64::from(BLOCK), Some(Stop::Bytes)));
            assert_eq!(times.syncs.work, ROUNDS.into());
        }
    }
}
