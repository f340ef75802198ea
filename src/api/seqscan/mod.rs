//! `io_probe_seqscan`: a timed scan of a relation, one row per path.

mod row;

use std::ops::Range;
use std::time::{Duration, Instant};

use io_probe_core::account::Account;
use io_probe_core::clock::Monotonic;
use io_probe_core::device::{self, Placement, Roots};
use io_probe_core::engine::{self, Kind};
use io_probe_core::pace::{Ask, Limits, Stop};
use io_probe_core::scan::{self, Buffered, Direct, Reader, Scan};
use io_probe_core::source::Source;
use io_probe_core::witness::{Cost, Witness};
use pgrx::datum::Interval;
use pgrx::prelude::*;

use self::row::Row;
use super::arguments::{self, Path};
use super::cache::{check_may_evict, evict, write_back};
use super::options::Options;
use crate::error::{Error, Result};
use crate::pg::buffers::{BufferReader, Usage};
use crate::pg::interrupts;
use crate::pg::json::JsonbText;
use crate::pg::lock::ProbeLock;
use crate::pg::progress::Progress;
use crate::pg::relation::{Fork, Relation};
use crate::pg::row::Rows;
use crate::pg::server;
use crate::{gucs, statement};

/// The options of this function.
const OPTIONS: [&str; 6] = ["max_bytes", "max_iops", "max_mib_per_s", "precision", "wait", "start_blk"];

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
    paths: Option<Vec<Option<String>>>,
    duration: Option<Interval>,
    cold: Option<bool>,
    chunk_kb: Option<i32>,
    depth: Option<i32>,
    fork: Option<String>,
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
        Ok(Request {
            rel: arguments::relation(rel)?,
            paths: Path::pick(paths)?,
            cold: cold.unwrap_or(false),
            chunk_blocks: chunk_kb / block_kb,
            depth,
            fork: fork.as_deref().map_or(Ok(Fork::MAIN), Fork::parse)?,
            limits: Limits {
                duration: gucs::duration(arguments::duration(duration)?)?,
                shared: Duration::ZERO,
                max_bytes: gucs::bytes(options.count("max_bytes", pg_sys::BLCKSZ.into())?)?,
                max_iops: gucs::iops(options.rate("max_iops")?)?,
                max_mib_per_s: gucs::mib_per_s(options.rate("max_mib_per_s")?)?,
                precision: options.share("precision")?,
            },
            wait: options.flag("wait")?,
            start: options.count("start_blk", 0)?.unwrap_or(0),
        })
    };
    Rows::answer(request().and_then(|request| request.run()))
}

/// A call whose arguments are right by themselves.
struct Request {
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

impl Request {
    fn run(&self) -> Result<Vec<Row>> {
        if self.cold {
            check_may_evict()?;
        }
        let _lock = ProbeLock::acquire(self.wait)?;
        let relation = Relation::open_to_read(self.rel, "io_probe_seqscan")?;
        let source = relation.source(self.fork).ok_or_else(|| {
            Error::invalid(format!("relation \"{}\" has no fork \"{}\"", relation.name(), self.fork.name()))
        })?;
        if self.start > source.blocks() {
            return Err(Error::invalid(format!("start_blk of {} is past the end", self.start))
                .detail(format!("The relation has {} blocks.", source.blocks())));
        }
        let roots = Roots::default();
        let placement = device::locate(&relation.directory(), &roots);
        let target = Target {
            request: self,
            relation: &relation,
            source: &source,
            placement: &placement,
            roots: &roots,
        };
        let progress = Progress::start("seqscan", relation.oid());
        let mut ask = interrupts::ask(relation.locked());
        let mut warmed = false;
        let mut ended = None;
        let mut rows = Vec::with_capacity(self.paths.len());
        for (index, &path) in self.paths.iter().enumerate() {
            let _charge = statement::charge();
            let blocks = target.stripe(index);
            progress.path(path.name(), blocks.end - blocks.start);
            let mut row = Row::new(&target, path);
            if statement::left().is_zero() {
                ended = ended.or(Some(Stop::Statement));
            }
            match ended {
                // Whoever waits for us, or for the statement, does not wait for the other paths.
                Some(why) => row.not_read(why),
                None => ended = target.fill(&mut row, path, blocks, warmed, &progress, &mut ask)?,
            }
            rows.push(row);
            warmed |= path != Path::Direct && !target.has_stripes();
        }
        Ok(rows)
    }
}

/// A relation that is being scanned.
struct Target<'a> {
    request: &'a Request,
    relation: &'a Relation,
    source: &'a Source,
    placement: &'a Placement,
    roots: &'a Roots,
}

/// What one path did.
struct Run {
    scan: Scan,
    cost: Cost,
    method: Method,
    usage: Usage,
    /// Blocks that were in buffers and were passed over.
    skipped: u64,
    notes: Vec<String>,
}

/// How a path reads.
struct Method {
    engine: String,
    /// Size and number of the requests that the probe itself issues; None where the server does.
    chunk_kb: Option<u64>,
    depth: Option<u32>,
    /// Whose account the device bytes come from.
    device_source: &'static str,
}

impl Target<'_> {
    /// The blocks of the path number `index`. A relation of three byte budgets or more gives each path
    /// blocks of its own, so that none finds what another one left in the caches.
    fn stripe(&self, index: usize) -> Range<u64> {
        let (start, end) = (self.request.start, self.source.blocks());
        if !self.has_stripes() {
            return start..end;
        }
        let start = start + index as u64 * self.budget();
        let is_last = index + 1 == self.request.paths.len();
        start..if is_last { end } else { start + self.budget() }
    }

    fn has_stripes(&self) -> bool {
        let blocks = self.source.blocks() - self.request.start;
        self.request.paths.len() > 1 && blocks / 3 >= self.budget()
    }

    /// The byte budget of a path in blocks.
    fn budget(&self) -> u64 {
        self.request.limits.max_bytes / self.block_size()
    }

    /// As many of the blocks as the byte budget allows if none of them is a hole.
    fn within_budget(&self, blocks: &Range<u64>) -> Range<u64> {
        blocks.start..blocks.end.min(blocks.start + self.budget())
    }

    fn block_size(&self) -> u64 {
        self.source.block_size().into()
    }

    /// Fills the row of one path; what the file system refuses is a row, too. Returns a reason for the
    /// whole call to end.
    fn fill(
        &self,
        row: &mut Row,
        path: Path,
        blocks: Range<u64>,
        warmed: bool,
        progress: &Progress,
        ask: &mut Ask<'_>,
    ) -> Result<Option<Stop>> {
        if self.request.cold {
            let within = self.within_budget(&blocks);
            let started = Instant::now();
            let left = statement::left();
            let mut ask = || if started.elapsed() > left { Some(Stop::Statement) } else { ask() };
            if let Some(stop) = evict(self.relation, self.source, within, &mut ask)? {
                row.not_read(stop);
                return Ok(Some(stop));
            }
        }
        let run = match path {
            Path::Direct => self.direct(blocks, progress, ask),
            Path::Server => self.server(blocks, progress, ask),
            Path::Os => self.os(blocks, progress, ask),
        };
        match run {
            Ok(run) => {
                row.fill(self, path, &run, warmed);
                Ok(run.scan.stop.filter(|stop| matches!(stop, Stop::LockWaiter | Stop::Statement)))
            }
            Err(Failure::Unsupported(why)) => {
                row.refuse(why);
                Ok(None)
            }
            Err(Failure::Error(error)) => Err(error),
        }
    }

    fn direct(&self, blocks: Range<u64>, progress: &Progress, ask: &mut Ask<'_>) -> Outcome {
        let (depth, chunk_blocks) = (self.request.depth, self.request.chunk_blocks);
        let chunk = chunk_blocks * self.block_size();
        let mut opened = engine::open(gucs::engine(), depth as usize, chunk as usize).map_err(Error::from)?;
        let engine = opened.engine.as_mut();
        let method = Method {
            engine: engine.kind().to_string(),
            chunk_kb: Some(chunk / 1024),
            depth: Some(depth),
            device_source: BACKEND,
        };
        let mut notes: Vec<String> = opened.note.into_iter().collect();
        // A direct read writes dirty pages of its range back first. Better before the clock runs.
        let (dirty, _) = write_back(self.source, self.within_budget(&blocks), ask)?;
        if dirty > 0 {
            notes.push(format!("{} kB were dirty in the OS cache and were written back first", dirty / 1024));
        }
        let mut reader = Direct::new(self.source, engine, depth as usize, chunk_blocks);
        let (scan, cost) = self.measure(&mut reader, blocks, Account::Own, progress, ask)?;
        Ok(Run { scan, cost, method, usage: Usage::default(), skipped: 0, notes })
    }

    fn os(&self, blocks: Range<u64>, progress: &Progress, ask: &mut Ask<'_>) -> Outcome {
        let method = Method {
            engine: Kind::Pread.to_string(),
            chunk_kb: Some(self.block_size() / 1024),
            depth: Some(1),
            device_source: BACKEND,
        };
        let mut reader = Buffered::new(self.source);
        let (scan, cost) = self.measure(&mut reader, blocks, Account::Own, progress, ask)?;
        Ok(Run { scan, cost, method, usage: Usage::default(), skipped: 0, notes: Vec::new() })
    }

    fn server(&self, blocks: Range<u64>, progress: &Progress, ask: &mut Ask<'_>) -> Outcome {
        let mut notes = Vec::new();
        let account = server::read_account();
        let through_workers = matches!(account, Account::With(_));
        if through_workers {
            notes
                .push("device_bytes counts all that the I/O workers read, for other sessions too".to_owned());
        }
        let method = Method {
            engine: server::read_method(),
            chunk_kb: None,
            depth: None,
            device_source: if through_workers { "io_workers" } else { BACKEND },
        };
        let mut reader = BufferReader::new(self.relation, self.request.fork, self.request.cold);
        let (scan, mut cost) = self.measure(&mut reader, blocks, account.clone(), progress, ask)?;
        if server::read_account() != account {
            cost.fetched_bytes = None;
            notes.push("the set of I/O workers changed meanwhile: what they fetched is unknown".to_owned());
        }
        Ok(Run { scan, cost, method, usage: reader.usage(), skipped: reader.skipped(), notes })
    }

    fn measure(
        &self,
        reader: &mut dyn Reader,
        blocks: Range<u64>,
        account: Account,
        progress: &Progress,
        ask: &mut Ask<'_>,
    ) -> std::result::Result<(Scan, Cost), Failure> {
        let limits = Limits { shared: statement::left(), ..self.request.limits };
        let witness = Witness::new(account, &self.placement.leaves, self.roots);
        let mut report = |done| progress.done(done);
        let before = witness.look();
        let scan = scan::scan(self.source, blocks, reader, &limits, &Monotonic, ask, &mut report)?;
        let cost = witness.since(&before);
        if scan.stop.is_some() {
            // What the kernel still reads ahead must not be taken for others' reads by the next path.
            witness.settle();
        }
        Ok((scan, cost))
    }
}

/// `device_source` of what this process reads itself.
const BACKEND: &str = "backend";

type Outcome = std::result::Result<Run, Failure>;

/// Why a path gave no figures.
enum Failure {
    /// The file system can't: a row that says so.
    Unsupported(String),
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

impl From<io_probe_core::Error> for Failure {
    fn from(error: io_probe_core::Error) -> Self {
        match error {
            io_probe_core::Error::Unsupported { .. } => Failure::Unsupported(error.to_string()),
            error => Failure::Error(error.into()),
        }
    }
}
