//! `io_probe_seqscan`: a timed scan of a relation, one row per path.

mod row;

use std::borrow::Cow;
use std::ops::Range;

use io_probe_core::engine::Kind;
use io_probe_core::files::Part;
use io_probe_core::files::holes::WithoutData;
use io_probe_core::machine::account::Account;
use io_probe_core::machine::observer::IoDelta;
use io_probe_core::measure::BlockReader;
use io_probe_core::measure::scan::{self, Buffered, Direct, Scan, ScanRun, Steps};
use io_probe_core::run::budget::Limits;
use io_probe_surface::function::OptionName;
use io_probe_surface::seqscan::{OPTIONS, SeqscanRow};
use io_probe_surface::value::Timestamp;
use pgrx::prelude::*;

use super::shared::account_notes;
use crate::call::{Begin, Call, NamedEnum, Options, Outcome, Probe, ProbedRelation, ReadPath, arguments};
use crate::error::{Error, Result};
use crate::pg::backend::{Elements, JsonbText, Rows, SqlInterval, Text, server};
use crate::pg::storage::buffers::{self, Resident, Usage};
use crate::pg::storage::server_reader::{Sequential, ServerReader};

/// Request size in kB that, at [`DEPTH`], was as fast as any other on every device measured. Both together
/// keep 4 MiB in flight.
const CHUNK_KB: i32 = 512;
/// Depth that was as fast as any other, with requests of [`CHUNK_KB`].
const DEPTH: u32 = 8;
/// Most buffers of the direct path, in kB: a backend should not take more.
const MAX_BUFFERS_KB: u64 = 128 << 10;

#[pg_extern(sql = false)]
fn io_probe_seqscan(
    rel: Option<pg_sys::Oid>,
    paths: Option<Elements<Text>>,
    duration: Option<SqlInterval>,
    cold: Option<bool>,
    depth: Option<i32>,
    chunk_kb: Option<i32>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, OPTIONS)?;
        let (chunk_blocks, depth) = requests(chunk_kb, depth)?;
        let rel = arguments::relation(rel)?;
        let paths = ReadPath::pick(paths.map(|given| given.0))?;
        let scan = Seqscan {
            limits: options.limits(duration, paths.len())?,
            paths,
            cold: cold.unwrap_or(false),
            chunk_blocks,
            depth,
            start: options.count(OptionName::StartBlk, 0)?.unwrap_or(0),
        };
        scan.rows(rel, options.waits()?)
    })
}

/// Blocks of a request of the direct path, and how many of them are in flight.
fn requests(chunk_kb: Option<i32>, depth: Option<i32>) -> Result<(u64, u32)> {
    let block_kb = u64::from(pg_sys::BLCKSZ / 1024);
    let chunk_kb = u64::from(arguments::positive("chunk_kb", chunk_kb.unwrap_or(CHUNK_KB))?);
    if !chunk_kb.is_multiple_of(block_kb) {
        return Err(Error::invalid(format!("chunk_kb must be a multiple of {block_kb}, not {chunk_kb}")));
    }
    let depth = arguments::depth(depth, DEPTH)?;
    if chunk_kb * u64::from(depth) > MAX_BUFFERS_KB {
        return Err(Error::invalid(format!("chunk_kb times depth must not exceed {MAX_BUFFERS_KB}"))
            .detail(format!("{depth} requests of {chunk_kb} kB would be in flight.")));
    }
    Ok((chunk_kb / block_kb, depth))
}

/// What is to be measured.
pub(super) struct Seqscan {
    paths: Vec<ReadPath>,
    cold: bool,
    chunk_blocks: u64,
    depth: u32,
    limits: Limits,
    start: u64,
}

impl Seqscan {
    /// A scan from the start, in requests of the usual size; `limits` are a path's.
    pub(super) fn usual(paths: Vec<ReadPath>, cold: bool, limits: Limits) -> Result<Self> {
        let (chunk_blocks, depth) = requests(None, None)?;
        Ok(Self { paths, cold, chunk_blocks, depth, limits, start: 0 })
    }

    /// Scans a relation: a row for each path.
    pub(super) fn rows(&self, rel: pg_sys::Oid, waits: bool) -> Result<Vec<SeqscanRow>> {
        let (call, relation) =
            Begin { evicts: self.cold, waits, ..Begin::of(Probe::Seqscan) }.on_relation(rel)?;
        self.check_start(&relation)?;
        let target = SeqscanTarget { scan: self, call: &call, relation: &relation };
        self.paths.iter().enumerate().map(|(index, &path)| target.row(path, index)).collect()
    }

    fn check_start(&self, relation: &ProbedRelation) -> Result<()> {
        let blocks = relation.source.blocks();
        if self.start > blocks {
            return Err(Error::invalid(format!("start_blk of {} is past the end", self.start))
                .detail(format!("The relation has {blocks} blocks.")));
        }
        Ok(())
    }
}

/// A relation that is being scanned.
struct SeqscanTarget<'a> {
    scan: &'a Seqscan,
    call: &'a Call,
    relation: &'a ProbedRelation,
}

/// What one path did.
struct PathScan {
    began: Timestamp,
    scan: Scan,
    cost: IoDelta,
    /// The processes whose reads the cost counts.
    account: Account,
    engine: Cow<'static, str>,
    usage: Usage,
    /// Blocks that were in buffers and were passed over.
    skipped: u64,
    /// Had an earlier path of this call read the blocks through the page cache?
    warmed: bool,
    /// Bytes that had to be written back first.
    written_back: u64,
    notes: Vec<String>,
}

impl SeqscanTarget<'_> {
    /// The blocks of the path number `index`. A relation of three byte budgets or more gives each path
    /// blocks of its own, so that none finds what another one left in the caches.
    fn stripe(&self, index: usize) -> Range<u64> {
        let (start, end) = (self.scan.start, self.relation.source.blocks());
        if !self.has_stripes() {
            return start..end;
        }
        let start = start + index as u64 * self.budget();
        let is_last = index + 1 == self.scan.paths.len();
        start..if is_last { end } else { start + self.budget() }
    }

    fn has_stripes(&self) -> bool {
        let blocks = self.relation.source.blocks() - self.scan.start;
        self.scan.paths.len() > 1 && blocks / 3 >= self.budget()
    }

    /// The byte budget of a path in blocks.
    fn budget(&self) -> u64 {
        self.scan.limits.max_bytes / self.relation.block_size()
    }

    /// Makes the caches let go of what a path may read of its blocks.
    fn evict(&self, path: ReadPath, blocks: &Range<u64>) -> Outcome<()> {
        self.relation.reads_of_device()?;
        let near = self.reach(path, blocks.clone())?;
        self.relation.evict(self.call, near)
    }

    /// Those of a path's blocks that its limits let it come to.
    fn reach(&self, path: ReadPath, blocks: Range<u64>) -> Outcome<Range<u64>> {
        if path == ReadPath::Server && !buffers::can_evict(&self.relation.relation) {
            // What stays in buffers is passed over, and no rate limit counts that.
            return Ok(self.within_budget(&blocks));
        }
        let run = self.run(path, blocks, None);
        Ok(self.call.with_budget(&self.relation.interrupts, |budget| run.reach(budget))?)
    }

    /// The scan of a path.
    fn run<'s>(
        &'s self,
        path: ReadPath,
        blocks: Range<u64>,
        without_data: Option<&'s WithoutData<'s>>,
    ) -> ScanRun<'s> {
        let steps = match path {
            ReadPath::Direct => Steps::of(self.scan.chunk_blocks),
            ReadPath::Server => Sequential::steps(self.window(path)),
            ReadPath::Os => Steps::above_readahead(self.window(path), self.relation.block_size()),
        };
        ScanRun { source: &self.relation.source, blocks, steps, without_data, limits: self.scan.limits }
    }

    /// How far the kernel reads ahead of a path, in bytes: its window, or a longer request of the server's.
    fn window(&self, path: ReadPath) -> u64 {
        let request_kb = if path == ReadPath::Server { server::scan_read_kb() } else { None };
        self.relation.readahead_window().max(request_kb.unwrap_or(0) << 10)
    }

    /// As many of the blocks as the byte budget allows if none of them is a hole.
    fn within_budget(&self, blocks: &Range<u64>) -> Range<u64> {
        blocks.start..blocks.end.min(blocks.start + self.budget())
    }

    /// Has an earlier path of this call read the blocks of path number `index` through the page cache?
    fn was_warmed(&self, index: usize) -> bool {
        !self.has_stripes() && self.scan.paths[..index].iter().any(|path| *path != ReadPath::Direct)
    }

    fn row(&self, path: ReadPath, index: usize) -> Result<SeqscanRow> {
        let tried_at = server::present();
        let measured = self.call.attempt_path(|| self.measure(path, index), |found| found.scan.stop);
        row::row(self, path, tried_at, measured)
    }

    fn measure(&self, path: ReadPath, index: usize) -> Outcome<PathScan> {
        let blocks = self.stripe(index);
        self.call.progress.path(path.name(), blocks.end - blocks.start);
        if self.scan.cold {
            self.evict(path, &blocks)?;
        }
        let found = match path {
            ReadPath::Direct => self.direct(blocks)?,
            ReadPath::Server => self.server(blocks)?,
            ReadPath::Os => self.os(blocks)?,
        };
        Ok(PathScan { warmed: self.was_warmed(index), ..found })
    }

    fn direct(&self, blocks: Range<u64>) -> Outcome<PathScan> {
        let (depth, chunk_blocks) = (self.scan.depth, self.scan.chunk_blocks);
        let chunk = chunk_blocks * self.relation.block_size();
        let mut opened = ProbedRelation::engine(depth, chunk)?;
        let engine = opened.engine.as_mut();
        let kind = opened.kind.name();
        let notes = opened.note.into_iter().collect();
        // A direct read writes dirty pages of its range back first. Better before the clock runs; but no more
        // than the byte budget is written back, though over holes the scan may go further.
        let near = self.reach(ReadPath::Direct, self.within_budget(&blocks))?;
        let mut should_stop = || self.call.should_stop(&self.relation.interrupts);
        let written_back = self.relation.source.write_back(near, &mut should_stop)?;
        let mut reader = Direct::new(&self.relation.source, engine, depth as usize, chunk_blocks);
        let run = self.run(ReadPath::Direct, blocks, None);
        Ok(PathScan { written_back, notes, ..self.timed(kind.into(), &mut reader, &run, Account::Own)? })
    }

    fn os(&self, blocks: Range<u64>) -> Outcome<PathScan> {
        let mut reader = Buffered::new(&self.relation.source);
        let run = self.run(ReadPath::Os, blocks, None);
        self.timed(Kind::Pread.name().into(), &mut reader, &run, Account::Own)
    }

    fn server(&self, blocks: Range<u64>) -> Outcome<PathScan> {
        let account = server::read_account();
        let relation = &self.relation.relation;
        let resident = Resident::new(relation);
        let mut reader = ServerReader::sequential(relation, self.scan.cold.then_some(&resident));
        // A block that is in a buffer has data, also when it was never written to its file.
        let without_data = |part: &Part, holes| resident.remove_from(part, holes);
        let run = self.run(ReadPath::Server, blocks, Some(&without_data));
        let found = self.timed(server::read_method().into(), &mut reader, &run, account)?;
        let (usage, skipped, notes) = (reader.usage(), reader.skipped(), account_notes(account, &found.cost));
        Ok(PathScan { usage, skipped, notes, ..found })
    }

    fn timed(
        &self,
        engine: Cow<'static, str>,
        reader: &mut dyn BlockReader<Part>,
        run: &ScanRun<'_>,
        account: Account,
    ) -> Outcome<PathScan> {
        let relation = self.relation;
        let mut report = |done| self.call.progress.done(done);
        let began = server::present();
        let (scan, cost) =
            self.call.observed(relation, account, |budget| scan::scan(run, reader, budget, &mut report))?;
        Ok(PathScan {
            began,
            scan,
            cost,
            account,
            engine,
            usage: Usage::default(),
            skipped: 0,
            warmed: false,
            written_back: 0,
            notes: Vec::new(),
        })
    }
}
