//! `io_probe_seqscan`: a timed scan of a relation, one row per path.

mod row;

use std::ops::Range;

use io_probe_core::engine::Kind;
use io_probe_core::files::cache;
use io_probe_core::machine::account::Account;
use io_probe_core::machine::observer::{IoDelta, Observer};
use io_probe_core::measure::scan::{self, Buffered, Direct, Reader, Scan, Steps};
use io_probe_core::run::budget::{Budget, Limits, Stop, StopCheck};
use io_probe_core::run::clock::Monotonic;
use pgrx::datum::Interval;
use pgrx::prelude::*;

use self::row::SeqscanRow;
use super::cache::check_may_evict;
use crate::call::arguments::{self, Path};
use crate::call::options::Options;
use crate::call::probed_relation::{
    BACKEND, IO_WORKERS, Outcome, ProbedRelation, WORKERS_ENDED, WORKERS_SERVE_ALL,
};
use crate::call::statement;
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::argument::Elements;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::progress::Progress;
use crate::pg::backend::row::Rows;
use crate::pg::backend::server;
use crate::pg::storage::buffers::{self, BufferReader, Usage};
use crate::pg::storage::relation::Fork;

/// The options of this function.
const OPTIONS: [&str; 8] = [
    "max_bytes",
    "max_iops",
    "max_mib_per_s",
    "max_util_pct",
    "max_p99_us",
    "precision",
    "wait",
    "start_blk",
];

/// Request size in kB that, at that depth, reached what any other did on every device measured. Both
/// together keep 4 MiB in flight.
const CHUNK_KB: i32 = 512;
/// Depth that did, with requests of that size.
const DEPTH: u32 = 8;
/// Buffers of the direct path, in kB: more would not fit a backend's manners.
const MAX_BUFFERS_KB: u64 = 128 << 10;

#[allow(clippy::too_many_arguments, reason = "the SQL signature")]
#[pg_extern(sql = false)]
fn io_probe_seqscan(
    rel: Option<pg_sys::Oid>,
    paths: Option<Elements<Text>>,
    duration: Option<Interval>,
    cold: Option<bool>,
    chunk_kb: Option<i32>,
    depth: Option<i32>,
    fork: Option<Text>,
    options: Option<JsonbText>,
) -> Rows {
    let request = || {
        let options = Options::parse(options, &OPTIONS)?;
        let block_kb = u64::from(pg_sys::BLCKSZ / 1024);
        let chunk_kb = u64::from(arguments::positive("chunk_kb", chunk_kb.unwrap_or(CHUNK_KB))?);
        if !chunk_kb.is_multiple_of(block_kb) {
            return Err(Error::invalid(format!("chunk_kb must be a multiple of {block_kb}, not {chunk_kb}")));
        }
        let depth = depth.map(|depth| arguments::positive("depth", depth)).transpose()?;
        let depth = gucs::depth(depth, DEPTH)?;
        if chunk_kb * u64::from(depth) > MAX_BUFFERS_KB {
            return Err(Error::invalid(format!("chunk_kb times depth must not exceed {MAX_BUFFERS_KB}"))
                .detail(format!("{depth} requests of {chunk_kb} kB would be in flight.")));
        }
        Ok(SeqscanRequest {
            rel: arguments::relation(rel)?,
            paths: Path::pick(paths.map(Elements::all))?,
            cold: cold.unwrap_or(false),
            chunk_blocks: chunk_kb / block_kb,
            depth,
            fork: fork.as_deref().map_or(Ok(Fork::MAIN), Fork::parse)?,
            limits: options.limits(arguments::duration(duration)?)?,
            wait: options.flag("wait")?,
            start: options.count("start_blk", 0)?.unwrap_or(0),
        })
    };
    Rows::answer(|| request().and_then(|request| request.run()))
}

/// A call whose arguments are right by themselves.
struct SeqscanRequest {
    rel: pg_sys::Oid,
    paths: Vec<Path>,
    cold: bool,
    chunk_blocks: u64,
    depth: u32,
    fork: Fork,
    limits: Limits,
    wait: bool,
    start: u64,
}

impl SeqscanRequest {
    fn run(&self) -> Result<Vec<SeqscanRow>> {
        if self.cold {
            check_may_evict("cold => true")?;
        }
        let (_lock, subject) =
            ProbedRelation::open_alone(self.rel, self.fork, "io_probe_seqscan", self.wait)?;
        if self.start > subject.source.blocks() {
            return Err(Error::invalid(format!("start_blk of {} is past the end", self.start))
                .detail(format!("The relation has {} blocks.", subject.source.blocks())));
        }
        let target = SeqscanTarget { request: self, subject: &subject };
        subject.each_path(
            "seqscan",
            &self.paths,
            |path| SeqscanRow::new(&target, path),
            |row, index, path, progress, should_stop| {
                let blocks = target.stripe(index);
                progress.path(path.name(), blocks.end - blocks.start);
                if self.cold {
                    subject.reads_of_device()?;
                }
                if self.cold
                    && let Some(stop) = target.evict(path, &blocks, should_stop)?
                {
                    row.as_mut().not_begun(stop);
                    return Ok(Some(stop));
                }
                let run = target.measure_path(path, blocks, progress, should_stop)?;
                row.fill(&target, path, &run, target.was_warmed(index));
                Ok(run.scan.stop)
            },
        )
    }
}

/// A relation that is being scanned.
struct SeqscanTarget<'a> {
    request: &'a SeqscanRequest,
    subject: &'a ProbedRelation,
}

/// What one path did.
struct PathScan {
    scan: Scan,
    cost: IoDelta,
    method: ReadMethod,
    usage: Usage,
    /// Blocks that were in buffers and were passed over.
    skipped: u64,
    notes: Vec<String>,
}

/// How a path reads.
struct ReadMethod {
    engine: String,
    /// Size and number of the requests that the probe itself issues; None where the server does.
    chunk_kb: Option<u64>,
    depth: Option<u32>,
    /// Whose account the device bytes come from.
    device_source: &'static str,
}

impl SeqscanTarget<'_> {
    /// The blocks of the path number `index`. A relation of three byte budgets or more gives each path
    /// blocks of its own, so that none finds what another one left in the caches.
    fn stripe(&self, index: usize) -> Range<u64> {
        let (start, end) = (self.request.start, self.subject.source.blocks());
        if !self.has_stripes() {
            return start..end;
        }
        let start = start + index as u64 * self.budget();
        let is_last = index + 1 == self.request.paths.len();
        start..if is_last { end } else { start + self.budget() }
    }

    fn has_stripes(&self) -> bool {
        let blocks = self.subject.source.blocks() - self.request.start;
        self.request.paths.len() > 1 && blocks / 3 >= self.budget()
    }

    /// The byte budget of a path in blocks.
    fn budget(&self) -> u64 {
        self.request.limits.max_bytes / self.subject.block_size()
    }

    /// Makes the caches let go of what a path may read of its blocks.
    fn evict(
        &self,
        path: Path,
        blocks: &Range<u64>,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<Option<Stop>> {
        match self.reach(path, blocks, should_stop)? {
            Ok(near) => Ok(self.subject.evict(near, should_stop)?),
            Err(stop) => Ok(Some(stop)),
        }
    }

    /// Of the blocks of a path, those that its limits let it come to. Err holds a reason to stop.
    fn reach(
        &self,
        path: Path,
        blocks: &Range<u64>,
        should_stop: &mut StopCheck<'_>,
    ) -> io_probe_core::Result<std::result::Result<Range<u64>, Stop>> {
        if path == Path::Server && !buffers::can_evict(&self.subject.relation) {
            // What stays in buffers is passed over, and no rate limit counts that.
            return Ok(Ok(self.within_budget(blocks)));
        }
        let steps = match path {
            Path::Direct => Steps::of(self.request.chunk_blocks),
            Path::Server | Path::Os => Steps::above_readahead(self.window(path), self.subject.block_size()),
        };
        let mut budget = Budget::of_statement(statement::left(), &Monotonic, should_stop);
        scan::reach(&self.subject.source, blocks.clone(), &self.request.limits, steps, &mut budget)
    }

    /// How far the kernel reads ahead of a path, in bytes: its window, or a longer request of the server's. Where the window is
    /// not known, it is taken for 4 MiB, which few are longer than.
    fn window(&self, path: Path) -> u64 {
        let request_kb = if path == Path::Server { server::scan_read_kb() } else { None };
        self.subject.placement.read_ahead_kb.unwrap_or(4 << 10).max(request_kb.unwrap_or(0)) << 10
    }

    /// As many of the blocks as the byte budget allows if none of them is a hole.
    fn within_budget(&self, blocks: &Range<u64>) -> Range<u64> {
        blocks.start..blocks.end.min(blocks.start + self.budget())
    }

    /// Has an earlier path of this call read the blocks of path number `index` through the page cache?
    fn was_warmed(&self, index: usize) -> bool {
        !self.has_stripes() && self.request.paths[..index].iter().any(|path| *path != Path::Direct)
    }

    fn measure_path(
        &self,
        path: Path,
        blocks: Range<u64>,
        progress: &Progress,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<PathScan> {
        match path {
            Path::Direct => self.direct(blocks, progress, should_stop),
            Path::Server => self.server(blocks, progress, should_stop),
            Path::Os => self.os(blocks, progress, should_stop),
        }
    }

    fn direct(
        &self,
        blocks: Range<u64>,
        progress: &Progress,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<PathScan> {
        let (depth, chunk_blocks) = (self.request.depth, self.request.chunk_blocks);
        let chunk = chunk_blocks * self.subject.block_size();
        let mut opened = ProbedRelation::engine(depth, chunk)?;
        let engine = opened.engine.as_mut();
        let method = ReadMethod {
            engine: engine.kind().to_string(),
            chunk_kb: Some(chunk / 1024),
            depth: Some(depth),
            device_source: BACKEND,
        };
        let mut notes: Vec<String> = opened.note.into_iter().collect();
        // A direct read writes dirty pages of its range back first. Better before the clock runs.
        let near = self.reach(Path::Direct, &self.within_budget(&blocks), should_stop)?;
        let near = near.unwrap_or(blocks.start..blocks.start);
        let (dirty, _) = cache::write_back_blocks(&self.subject.source, near, should_stop)?;
        if dirty > 0 {
            notes.push(format!("{} kB were dirty in the OS cache and were written back first", dirty / 1024));
        }
        let mut reader = Direct::new(&self.subject.source, engine, depth as usize, chunk_blocks);
        let (scan, cost) = self.measure(&mut reader, blocks, Account::Own, progress, should_stop)?;
        Ok(PathScan { scan, cost, method, usage: Usage::default(), skipped: 0, notes })
    }

    fn os(
        &self,
        blocks: Range<u64>,
        progress: &Progress,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<PathScan> {
        let method = ReadMethod {
            engine: Kind::Pread.to_string(),
            chunk_kb: Some(self.subject.block_size() / 1024),
            depth: Some(1),
            device_source: BACKEND,
        };
        let mut reader = Buffered::new(&self.subject.source, self.window(Path::Os));
        let (scan, cost) = self.measure(&mut reader, blocks, Account::Own, progress, should_stop)?;
        Ok(PathScan { scan, cost, method, usage: Usage::default(), skipped: 0, notes: Vec::new() })
    }

    fn server(
        &self,
        blocks: Range<u64>,
        progress: &Progress,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<PathScan> {
        let mut notes = Vec::new();
        let account = server::read_account();
        let through_workers = matches!(account, Account::With(_));
        if through_workers {
            notes.push(WORKERS_SERVE_ALL.to_owned());
        }
        let method = ReadMethod {
            engine: server::read_method(),
            chunk_kb: None,
            depth: None,
            device_source: if through_workers { IO_WORKERS } else { BACKEND },
        };
        let mut reader = BufferReader::new(
            &self.subject.relation,
            self.request.fork,
            self.window(Path::Server),
            self.request.cold,
        );
        let (scan, cost) = self.measure(&mut reader, blocks, account, progress, should_stop)?;
        if cost.lost_workers {
            notes.push(WORKERS_ENDED.to_owned());
        }
        Ok(PathScan { scan, cost, method, usage: reader.usage(), skipped: reader.skipped(), notes })
    }

    fn measure(
        &self,
        reader: &mut dyn Reader,
        blocks: Range<u64>,
        account: Account,
        progress: &Progress,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<(Scan, IoDelta)> {
        let account = self.subject.account(account);
        let observer = Observer::new(account, &self.subject.placement.leaves, &self.subject.roots);
        let mut report = |done| progress.done(done);
        let mut before = observer.look();
        let mut should_stop = before.following(should_stop);
        let mut budget = Budget::of_statement(statement::left(), &Monotonic, &mut should_stop);
        let limits = &self.request.limits;
        let scan = scan::scan(&self.subject.source, blocks, reader, limits, &mut budget, &mut report)?;
        drop(budget);
        drop(should_stop);
        let cost = observer.since(&before);
        if scan.stop.is_some() {
            // What the kernel still reads ahead must not be taken for others' reads by the next path.
            observer.settle();
        }
        Ok((scan, cost))
    }
}
