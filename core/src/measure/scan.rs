//! A timed scan: blocks in order, by one [`BlockReader`], under a budget.
//!
//! What is timed is the reading alone. Opening files, looking for holes and asking the page cache
//! happen between timed spans; so do the caller's interrupts. Blocks that were never written are read
//! in runs of their own, outside the rate, since the device has nothing to do for them; so are they
//! outside the byte budget.
//!
//! Caveats. Residency is counted per segment before its first block is read, in spans of 1 MiB, as far as the
//! limits let the scan come; a scan that ends inside a span counts a proportionate part of it. Between two
//! runs a deep queue drains, which a file of many small pieces and holes would feel. A rate limit cuts runs
//! into short bursts with pauses in between: in the pauses the kernel's readahead goes on, and each burst
//! starts with an empty queue, so the times of a scan that had to pause say nothing about the device. (A
//! limit that the device does not reach costs a ramp: see `Bursts` in [`crate::run::budget`].)

#[cfg(test)]
mod limited;
mod readers;

use std::ops::{ControlFlow, Range};

pub use readers::{Buffered, Direct};

use crate::Result;
use crate::files::cached_data::CachedData;
use crate::files::holes::{Holes, WithoutData};
use crate::files::{Access, Part, RelationFiles};
use crate::measure::BlockReader;
use crate::run::budget::{Budget, Bursts, Limits, Outcome, Stop};
use crate::run::stopwatch::Stopwatch;
use crate::stats::{self, Interval, Slice};

/// In what steps a reader reads, in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// Blocks of one request to the operating system.
    pub request: u64,
    /// Blocks that may still be on their way when the reader has those that it asked for: the kernel reads
    /// ahead.
    pub ahead: u64,
    /// Shorter holes, in bytes, are read inside the run they lie in: to set them apart would disturb the
    /// reader more than it makes the rate truer.
    pub least_hole: u64,
}

impl Steps {
    /// Requests of `request` blocks through a queue, which is drained where a hole is set apart. Nothing
    /// reads ahead.
    pub const fn of(request: u64) -> Self {
        Self { request, ahead: 0, least_hole: 1 << 20 }
    }

    /// Block by block, each waited for, so that every hole can be set apart. The kernel reads ahead with a
    /// window of `window` bytes.
    pub const fn above_readahead(window: u64, block_size: u64) -> Self {
        Self { request: 1, ahead: window / block_size, least_hole: 1 }
    }
}

/// What is to be scanned.
pub struct ScanRun<'a> {
    /// The relation.
    pub source: &'a RelationFiles,
    /// Its blocks.
    pub blocks: Range<u64>,
    /// How the reader reads them.
    pub steps: Steps,
    /// Where the reader has data, in memory, though the file has holes.
    pub without_data: Option<&'a WithoutData<'a>>,
    /// What bounds the scan.
    pub limits: Limits,
}

/// What a scan found.
#[derive(Debug, Clone)]
pub struct Scan {
    /// The blocks that were read, holes included.
    pub blocks: Range<u64>,
    /// Of these, blocks that were never written to the file.
    pub holes: u64,
    /// Time and blocks of the rate: no holes.
    pub rated: Slice,
    /// Nanoseconds per block: the ratio over all slices but the first, which is warm-up, with its
    /// interval. None for fewer than [`stats::MIN_SLICES`] slices.
    pub interval: Option<Interval>,
    /// Drift over the run, see [`stats::trend`].
    pub trend: Option<f64>,
    /// How many times as long a block took from some time on, see [`stats::step_up`].
    pub slowed: Option<f64>,
    /// Wall clock of the scan, nanoseconds.
    pub elapsed_ns: u64,
    /// Bytes of `blocks` that were in the OS page cache before, those of holes in the file left out;
    /// None where the kernel does not tell.
    pub cached_bytes: Option<u64>,
    /// A rate limit held it back: its times are not the device's.
    pub throttled: bool,
    /// Why it ended early; None when it read everything.
    pub stop: Option<Stop>,
}

impl Scan {
    /// Nanoseconds per block that held data; None when there was none.
    pub fn ns_per_block(&self) -> Option<f64> {
        self.interval.map(|interval| interval.value).or_else(|| self.rated.ns_each())
    }
}

impl ScanRun<'_> {
    fn block_size(&self) -> u64 {
        self.source.block_size().into()
    }

    /// How its limits cut a scan that starts within `budget`, and the most blocks of data that it reads.
    fn bursts(&self, budget: &Budget<'_>) -> (Bursts, u64) {
        let Steps { request, ahead, .. } = self.steps;
        let bursts = Bursts::new(&self.limits, self.block_size(), request, ahead, budget.started());
        let most = bursts.most_within(budget.length()).min(self.limits.max_bytes / self.block_size());
        (bursts, most)
    }

    /// The blocks that it may come to under its limits: of others no cache need be emptied. Holes are free:
    /// if there is one on the way, it may come to all.
    pub fn reach(&self, budget: &mut Budget<'_>) -> Outcome<Range<u64>> {
        // A limit of the time alone bounds no blocks: it is not known how fast the device is.
        let (_, most) = self.bursts(&budget.part(&self.limits));
        let blocks = self.blocks.clone();
        let near = blocks.start..blocks.end.min(blocks.start.saturating_add(most));
        if near == blocks {
            return Ok(near);
        }
        let has_holes = self.source.have_holes(near.clone(), &mut || budget.caller_stop())?;
        Ok(if has_holes { blocks } else { near })
    }
}

/// Scans with `reader`, as a part of `budget` with the run's limits; `progress` gets the number of blocks
/// read.
pub fn scan(
    run: &ScanRun<'_>,
    reader: &mut dyn BlockReader<Part>,
    budget: &mut Budget<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<Scan> {
    let mut watch = Stopwatch::start(run.limits.precision, budget.part(&run.limits), progress);
    let (bursts, most) = run.bursts(watch.budget());
    let mut scanning =
        Scanning { run, reader, watch, bursts, most, holes: 0, rated_holes: 0, cached: Some(0) };
    for part in run.source.parts(run.blocks.clone()) {
        if scanning.segment(&part)?.is_break() {
            break;
        }
    }
    Ok(scanning.summarise())
}

/// A scan that is under way.
struct Scanning<'a> {
    run: &'a ScanRun<'a>,
    reader: &'a mut (dyn BlockReader<Part> + 'a),
    watch: Stopwatch<'a>,
    bursts: Bursts,
    /// The most blocks of data that its limits let it read.
    most: u64,
    /// Holes, and those of them inside rated runs.
    holes: u64,
    rated_holes: u64,
    cached: Option<u64>,
}

impl Scanning<'_> {
    /// Reads blocks of one segment. Breaks when the scan shall end.
    fn segment(&mut self, part: &Part) -> Result<ControlFlow<()>> {
        let ScanRun { source, steps, without_data, .. } = self.run;
        let bytes = source.byte_range(part);
        let open = source.open(part.segment, Access::Buffered)?;
        let holes = match Holes::find(&open, bytes.clone(), &mut || self.watch.budget().poll()) {
            Ok(holes) => holes,
            Err(end) => {
                self.watch.end(end.stop()?);
                return Ok(ControlFlow::Break(()));
            }
        };
        let cached = CachedData::count(&open, bytes.clone(), &holes, self.bytes_in_reach());
        let holes = match without_data {
            Some(without_data) => without_data(part, holes),
            None => holes,
        };
        drop(open);

        let mut came = Part { segment: part.segment, blocks: part.blocks.start..part.blocks.start };
        for stretch in holes.runs(bytes.clone(), self.run.block_size(), steps.least_hole) {
            let end = part.blocks.start + (stretch.bytes.end - bytes.start) / self.run.block_size();
            let next = Part { segment: part.segment, blocks: came.blocks.end..end };
            self.watch.rate(!stretch.hole);
            came.blocks.end = if stretch.hole { self.at_once(next)? } else { self.in_bursts(next, &holes)? };
            if came.blocks.end < end || self.watch.stop().is_some() {
                break;
            }
        }
        let came = source.byte_range(&came);
        self.holes += holes.whole_blocks(came.clone(), self.run.block_size());
        let cached = cached.map(|spans| spans.up_to(came.end - came.start));
        self.cached = self.cached.zip(cached).map(|(sum, more)| sum + more);
        Ok(self.watch.flow())
    }

    /// The most bytes of data that its limits still let it read.
    fn bytes_in_reach(&mut self) -> u64 {
        let by_blocks = self.most.saturating_sub(self.watch.rated().work);
        let by_bytes = self.watch.budget().bytes_left() / self.run.block_size();
        by_bytes.min(by_blocks).saturating_mul(self.run.block_size())
    }

    /// Reads blocks that hold data as the limits let it. Returns the end of those that came.
    fn in_bursts(&mut self, mut part: Part, holes: &Holes) -> Result<u64> {
        while !part.blocks.is_empty() {
            let left = self.watch.budget().bytes_left() / self.run.block_size();
            let length = self.bursts.next_of(part.blocks.end - part.blocks.start).min(left);
            if length == 0 {
                self.watch.end(Stop::Bytes);
                break;
            }
            if let Some(due) = self.bursts.paid_by(self.watch.rated().work + length) {
                self.watch.wait_until(due);
                if self.watch.stop().is_some() {
                    break;
                }
            }
            let start = part.blocks.start;
            let end = self.at_once(Part { segment: part.segment, blocks: start..start + length })?;
            let came = self.run.source.byte_range(&Part { segment: part.segment, blocks: start..end });
            self.watch.budget().spend(came.end - came.start);
            self.rated_holes += holes.whole_blocks(came, self.run.block_size());
            let due = self.bursts.due_after(self.watch.rated(), self.watch.last());
            let waits = self.watch.wait_until(due);
            self.bursts.fit(due, self.watch.last(), waits);
            part.blocks.start = end;
            if self.watch.stop().is_some() || end < start + length {
                break;
            }
        }
        Ok(part.blocks.start)
    }

    /// Reads blocks at once. Returns the end of those that came: of all, if nothing ends the scan.
    fn at_once(&mut self, mut part: Part) -> Result<u64> {
        let Range { start, end } = part.blocks;
        let before = self.watch.blocks();
        self.reader.read(&mut part, &mut self.watch)?;
        self.watch.report();
        let came = start + self.watch.blocks() - before;
        debug_assert!(came == end || self.watch.stop().is_some(), "{came} of {start} to {end}");
        Ok(came)
    }

    /// The figures of the scan.
    fn summarise(mut self) -> Scan {
        if self.bursts.hold_back() {
            self.watch.hold_back();
        }
        let (wanted, watch) = (&self.run.blocks, &self.watch);
        let total = watch.rated();
        let with_data = total.work.saturating_sub(self.rated_holes);
        // Holes too short to be set apart took some of the time, but are not counted as blocks.
        let scale = |ns: f64| ns * total.work as f64 / with_data as f64;
        let slices = watch.steady();
        let interval = stats::of_ratio(&slices).filter(|_| with_data > 0).map(|i| Interval {
            value: scale(i.value),
            low: scale(i.low),
            high: scale(i.high),
        });
        let blocks = wanted.start..wanted.start + watch.blocks();
        Scan {
            holes: self.holes,
            rated: Slice { ns: total.ns, work: with_data },
            interval,
            trend: stats::trend(&slices),
            slowed: stats::step_up(&Slice::times(&slices)),
            elapsed_ns: watch.elapsed_ns(),
            cached_bytes: self.cached,
            throttled: watch.is_throttled(),
            stop: watch.stop().filter(|_| blocks.end < wanted.end),
            blocks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{self, Kind};
    use crate::files::eviction;
    use crate::files::page_cache::{ResidencyMethod, decided};
    use crate::files::relation_files::fixture::{BLOCK, Relation};
    use crate::run::budget::{BoundSource, LatencyBound};
    use crate::run::clock::{Clock, Manual, Monotonic};
    use std::time::Duration;

    /// Takes a fixed time a block.
    struct Steady<'a> {
        clock: &'a Manual,
        ns_per_block: u64,
        read: Vec<Range<u64>>,
    }

    impl BlockReader<Part> for Steady<'_> {
        fn read(&mut self, part: &mut Part, watch: &mut Stopwatch<'_>) -> Result<()> {
            watch.begin();
            let mut end = part.blocks.start;
            for _ in part.blocks.clone() {
                self.clock.advance(self.ns_per_block);
                end += 1;
                if watch.done(1).is_break() {
                    break;
                }
            }
            self.read.push(part.blocks.start..end);
            Ok(())
        }
    }

    const LIMITS: Limits = Limits { duration: Duration::from_secs(10), ..Limits::none() };

    const ONE: Steps = Steps::of(1);
    const BY_BLOCK: Steps = Steps::above_readahead(0, BLOCK);

    fn run<'a>(relation: &'a Relation, blocks: Range<u64>, steps: Steps, limits: &Limits) -> ScanRun<'a> {
        ScanRun { source: &relation.source, blocks, steps, without_data: None, limits: *limits }
    }

    /// A scan that is part of nothing else, and reports no progress.
    fn scan(run: &ScanRun<'_>, reader: &mut dyn BlockReader<Part>, clock: &dyn Clock) -> Result<Scan> {
        super::scan(run, reader, &mut Budget::unlimited(clock, &mut || None), &mut |_| ())
    }

    fn buffered(relation: &Relation, limits: &Limits) -> Result<Scan> {
        let run = run(relation, 0..relation.source.blocks(), BY_BLOCK, limits);
        scan(&run, &mut Buffered::new(run.source), &Monotonic)
    }

    fn steady(relation: &Relation, blocks: Range<u64>, limits: &Limits) -> (Scan, Vec<Range<u64>>) {
        let clock = Manual::default();
        let mut reader = Steady { clock: &clock, ns_per_block: 100_000, read: Vec::new() };
        let scan = scan(&run(relation, blocks, ONE, limits), &mut reader, &clock);
        (scan.expect("scanned"), reader.read)
    }

    #[test]
    fn holes_are_read_but_not_rated() {
        let relation = Relation::new(700, 0..300);
        let (scan, read) = steady(&relation, 0..700, &LIMITS);
        assert_eq!((scan.blocks.clone(), scan.holes, scan.stop), (0..700, 400, None));
        assert_eq!(scan.rated, Slice { ns: 300 * 100_000, work: 300 });
        assert_eq!(scan.ns_per_block(), Some(100_000.0));
        assert_eq!(scan.elapsed_ns, 700 * 100_000);
        // 256 blocks of the first segment, then a short rest of data with its holes set apart.
        assert_eq!(read, [0..256, 256..300, 300..512, 512..700]);
    }

    #[test]
    fn short_holes_stay_in_their_run_but_not_in_the_rate() {
        let relation = Relation::new(256, 0..200);
        let (scan, read) = steady(&relation, 100..256, &LIMITS);
        assert_eq!((read.len(), read[0].clone()), (1, 100..256));
        assert_eq!((scan.holes, scan.rated.work), (56, 100));
        assert_eq!(scan.ns_per_block(), Some(156_000.0));
    }

    #[test]
    fn a_scan_that_ends_in_a_hole_rates_none_of_it() {
        let relation = Relation::new(700, 0..300);
        for ms in [34, 42, 60] {
            let limits = Limits { duration: Duration::from_millis(ms), ..LIMITS };
            let (scan, _) = steady(&relation, 0..700, &limits);
            assert_eq!((scan.stop, scan.ns_per_block()), (Some(Stop::Duration), Some(100_000.0)), "{ms}");
            assert_eq!(scan.holes, ms * 10 - 300);
        }
    }

    #[test]
    fn cached_zero_pages_of_holes_are_not_data() {
        let relation = Relation::new(256, 0..100);
        let open = relation.source.afresh().open(0, Access::Buffered).expect("opened");
        eviction::evict(&open, &mut || None).expect("evicted");
        let mut holes = &*open.file;
        std::io::Seek::seek(&mut holes, std::io::SeekFrom::Start(150 * BLOCK)).expect("sought");
        std::io::copy(&mut holes, &mut std::io::sink()).expect("read");
        assert!(open.residency(0..256 * BLOCK).expect("residency").cached_bytes > 0);
        let (scan, _) = steady(&relation, 0..256, &LIMITS);
        assert_eq!(scan.cached_bytes, Some(0));
    }

    #[test]
    fn all_that_is_read_is_looked_up() {
        const MIB: u64 = 1 << 20;
        let relation = Relation::of_segments(2048, 2048, 1024..2048);
        relation.read(1024..2048);
        for limits in [
            LIMITS,
            Limits { max_bytes: 3 * MIB, ..LIMITS },
            Limits { max_iops: Some(500), duration: Duration::from_millis(500), ..LIMITS },
        ] {
            let scan = buffered(&relation, &limits).expect("scanned");
            let read = scan.blocks.end - scan.holes;
            assert_eq!(scan.cached_bytes, Some(read * BLOCK), "{limits:?}");
            assert!(read > 0);
        }
    }

    #[test]
    fn each_limit_stops_with_its_reason() {
        let relation = Relation::new(512, 0..512);
        for (limits, stop, blocks) in [
            (Limits { duration: Duration::from_millis(10), ..LIMITS }, Stop::Duration, 100),
            (Limits { max_bytes: 300 * BLOCK + 1, ..LIMITS }, Stop::Bytes, 300),
            (
                Limits { latency: LatencyBound::within(Duration::from_micros(99)), ..LIMITS },
                Stop::Slow(BoundSource::Call),
                11,
            ),
        ] {
            let (scan, _) = steady(&relation, 0..512, &limits);
            assert_eq!((scan.stop, scan.blocks), (Some(stop), 0..blocks));
        }
        // A second of blocks of 0.1 ms each is more than this relation has.
        let relation = Relation::new(12_000, 0..12_000);
        let (scan, _) = steady(&relation, 0..12_000, &Limits { precision: Some(0.05), ..LIMITS });
        assert_eq!((scan.stop, scan.blocks), (Some(Stop::Precise), 0..10_000));
        let relation = Relation::new(512, 0..512);
        // A limit that is met just at the end is no reason: everything was read.
        let (scan, _) = steady(&relation, 0..512, &Limits { max_bytes: 512 * BLOCK, ..LIMITS });
        assert_eq!((scan.stop, scan.blocks), (None, 0..512));
    }

    #[test]
    fn no_more_is_read_than_was_said() {
        const RATE: Option<u32> = Some(8);
        let relation = Relation::new(512, 0..512);
        let most_of = |left, limits: Limits, request| {
            let mut should_stop = || None;
            let mut statement = Budget::of_statement(left, &Monotonic, &mut should_stop);
            run(&relation, 0..512, Steps::of(request), &limits).bursts(&statement.part(&limits)).1
        };
        let most = |limits, request| most_of(Duration::MAX, limits, request);
        let second = Limits { duration: Duration::from_secs(1), ..LIMITS };
        assert_eq!(most(second, 1), u64::MAX / BLOCK);
        assert_eq!(most(Limits { max_bytes: 100 * BLOCK + 1, ..second }, 1), 100);
        // 1024 blocks in a second, as many as in a fiftieth more, and the burst or the request that begins
        // then.
        assert_eq!(most(Limits { max_mib_s: RATE, ..second }, 1), 1024 + 20 + 10);
        assert_eq!(most(Limits { max_mib_s: RATE, ..second }, 64), 1024 + 20 + 64);
        assert_eq!(most(Limits { max_mib_s: RATE, max_bytes: 100 * BLOCK, ..second }, 1), 100);
        assert_eq!(most_of(Duration::from_millis(100), Limits { max_mib_s: RATE, ..second }, 1), 122 + 10);
        let limits = Limits { max_mib_s: RATE, duration: Duration::from_millis(200), ..LIMITS };
        let read = buffered(&relation, &limits).expect("scanned").blocks.end;
        let reach = |relation: &Relation| {
            let mut should_stop = || None;
            let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
            run(relation, 0..512, ONE, &limits).reach(&mut budget).expect("holes")
        };
        let near = reach(&relation);
        assert!(read <= near.end && near == (0..most(limits, 1)) && near.end < 512, "{read}, {near:?}");
        // A hole on the way costs nothing, one behind the reach is not come to.
        for (data, end) in [(100..512, 512), (0..100, 512), (0..400, near.end)] {
            assert_eq!(reach(&Relation::new(512, data.clone())), 0..end, "{data:?}");
        }
    }

    #[test]
    fn copies_from_the_cache_are_never_slow_answers() {
        let relation = Relation::new(600, 0..600);
        // So that this thread has waited before.
        std::thread::sleep(Duration::from_millis(1));
        let limits = Limits { latency: LatencyBound::within(Duration::from_nanos(1)), ..LIMITS };
        let scan = buffered(&relation, &limits);
        assert_eq!(scan.map(|scan| (scan.stop, scan.blocks)).expect("scanned"), (None, 0..600));
    }

    #[test]
    fn holes_cost_no_bytes() {
        let relation = Relation::new(512, 256..512);
        let (scan, _) = steady(&relation, 0..512, &Limits { max_bytes: 16 * BLOCK, ..LIMITS });
        assert_eq!((scan.blocks, scan.holes, scan.rated.work), (0..272, 256, 16));
    }

    #[test]
    fn a_rate_limit_pauses_and_says_so() {
        let relation = Relation::new(256, 0..256);
        let limits = Limits { max_iops: Some(512), ..LIMITS };
        let scan = buffered(&relation, &limits).expect("scanned");
        assert_eq!(scan.blocks, 0..256);
        assert!(scan.elapsed_ns >= 490_000_000, "{scan:?}");
        assert!(scan.throttled);
        let (free, _) = steady(&relation, 0..256, &Limits { max_iops: Some(1_000_000), ..LIMITS });
        assert!(!free.throttled, "a limit that is not reached changes nothing");
    }

    #[test]
    fn real_readers_read_every_segment_and_see_the_cache() {
        let relation = Relation::new(600, 0..600);
        let direct = run(&relation, 0..600, Steps::of(8), &LIMITS);
        relation.evict();
        let before = decided::times();
        let mut engines = vec![engine::open(Some(Kind::Threads), 4, 64 << 10).expect("threads").engine];
        engines.extend(engine::open(Some(Kind::IoUring), 4, 64 << 10).ok().map(|o| o.engine));
        for engine in &mut engines {
            let mut reader = Direct::new(&relation.source, engine.as_mut(), 4, 8);
            let scan = scan(&direct, &mut reader, &Monotonic).expect("scanned");
            assert_eq!((scan.blocks, scan.stop, scan.cached_bytes), (0..600, None, Some(0)));
        }
        let cold = buffered(&relation, &LIMITS).expect("scanned");
        assert_eq!((cold.blocks, cold.cached_bytes), (0..600, Some(0)));
        let warm = buffered(&relation, &LIMITS).expect("scanned");
        assert_eq!((warm.blocks, warm.cached_bytes), (0..600, Some(600 * BLOCK)));
        assert_eq!(decided::times() - before, 2 * 3, "decided once a file and way of reading");
    }

    #[test]
    fn where_the_file_system_has_a_cache_of_its_own_nothing_is_known_of_it() {
        let relation = Relation::new(300, 0..300);
        let unknown =
            |scan: &mut dyn FnMut() -> Result<Scan>| decided::forced(ResidencyMethod::Unknown, scan);
        let through = unknown(&mut || buffered(&relation, &LIMITS)).expect("scanned");
        assert_eq!((through.blocks, through.cached_bytes), (0..300, None));
        let mut engine = engine::open(Some(Kind::Threads), 4, 64 << 10).expect("threads").engine;
        let mut reader = Direct::new(&relation.source, engine.as_mut(), 4, 8);
        let past = run(&relation, 0..300, Steps::of(8), &LIMITS);
        let direct = unknown(&mut || scan(&past, &mut reader, &Monotonic));
        assert!(matches!(direct, Err(crate::Error::Unsupported { what: "O_DIRECT", .. })), "{direct:?}");
    }

    #[test]
    fn a_truncated_segment_is_an_error_with_its_offset() {
        let relation = Relation::new(256, 0..256);
        let file = std::fs::OpenOptions::new().write(true).open(relation.source.path(0)).expect("opened");
        file.set_len(100 * BLOCK + 512).expect("truncated");
        let error = buffered(&relation, &LIMITS).expect_err("short");
        assert!(error.to_string().contains("offset 819200: read only 512 of 8192 bytes"), "{error}");
    }
}
