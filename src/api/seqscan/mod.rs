//! `io_probe_seqscan`: a timed scan of a relation, one row per path.

mod row;

use std::ops::Range;
use std::time::Duration;

use io_probe_core::account::Account;
use io_probe_core::clock::Monotonic;
use io_probe_core::device::{self, Placement, Roots};
use io_probe_core::engine::{self, Kind};
use io_probe_core::pace::{Limits, Stop};
use io_probe_core::scan::{self, Buffered, Direct, Reader, Scan};
use io_probe_core::source::Source;
use io_probe_core::witness::{Cost, Witness};
use pgrx::datum::{Interval, JsonB};
use pgrx::prelude::*;

use self::row::Row;
use super::arguments::{self, Path};
use super::cache::{check_may_evict, evict};
use super::options::Options;
use crate::error::{Error, Result};
use crate::pg::buffers::{BufferReader, Usage};
use crate::pg::interrupts;
use crate::pg::lock::ProbeLock;
use crate::pg::progress::Progress;
use crate::pg::relation::{Fork, Relation};
use crate::pg::row::Rows;
use crate::pg::server;
use crate::{gucs, statement};

/// The options of this function.
const OPTIONS: [&str; 6] = ["max_bytes", "max_iops", "max_mib_per_s", "precision", "wait", "start_blk"];

/// Request size that reached the best rate on every device measured, in kB.
const CHUNK_KB: i32 = 256;
/// Depth that did, with requests of that size.
const DEPTH: i32 = 16;
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
    options: Option<JsonB>,
) -> Rows {
    let request = || {
        let options = Options::parse(options, &OPTIONS)?;
        let block_kb = u64::from(pg_sys::BLCKSZ / 1024);
        let chunk_kb = u64::from(arguments::positive("chunk_kb", chunk_kb.unwrap_or(CHUNK_KB))?);
        if !chunk_kb.is_multiple_of(block_kb) {
            return Err(Error::invalid(format!("chunk_kb must be a multiple of {block_kb}, not {chunk_kb}")));
        }
        let depth = gucs::depth(arguments::positive("depth", depth.unwrap_or(DEPTH))?)?;
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
        let relation = Relation::open_to_read(self.rel)?;
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
        let mut warmed = false;
        let mut rows = Vec::with_capacity(self.paths.len());
        for (index, &path) in self.paths.iter().enumerate() {
            let _charge = statement::charge();
            let start = target.stripe(index as u64);
            progress.path(path.name(), source.blocks() - start);
            rows.push(target.row(path, start, warmed, &progress)?);
            warmed |= path != Path::Direct && target.stripe(1) == target.stripe(0);
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
    /// Where the path number `index` starts. A relation of three byte budgets or more gives each path
    /// blocks of its own, so that none finds what another one left in the caches.
    fn stripe(&self, index: u64) -> u64 {
        let own = (self.source.blocks() - self.request.start) / 3 >= self.budget();
        self.request.start + if own { index * self.budget() } else { 0 }
    }

    /// The byte budget of a path in blocks.
    fn budget(&self) -> u64 {
        self.request.limits.max_bytes / self.block_size()
    }

    fn block_size(&self) -> u64 {
        self.source.block_size().into()
    }

    /// The row of one path. What the file system refuses is a row, too.
    fn row(&self, path: Path, start: u64, warmed: bool, progress: &Progress) -> Result<Row> {
        let mut row = Row::new(self, path);
        let blocks = start..self.source.blocks();
        let left = statement::left();
        if left.is_zero() {
            row.not_read(Stop::Statement);
            return Ok(row);
        }
        if self.request.cold {
            let within = start..blocks.end.min(start + self.budget());
            let mut ask = interrupts::ask_within(self.relation.locked(), left);
            evict(self.relation, self.source, within, &mut ask)?;
        }
        let run = match path {
            Path::Direct => self.direct(blocks, progress),
            Path::Server => self.server(blocks, progress),
            Path::Os => self.os(blocks, progress),
        };
        match run {
            Ok(run) => row.fill(self, path, &run, warmed),
            Err(Failure::Unsupported(why)) => row.refuse(why),
            Err(Failure::Error(error)) => return Err(error),
        }
        Ok(row)
    }

    fn direct(&self, blocks: Range<u64>, progress: &Progress) -> Outcome {
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
        let mut reader = Direct::new(self.source, engine, depth as usize, chunk_blocks);
        let (scan, cost) = self.measure(&mut reader, blocks, Account::Own, progress)?;
        let notes = opened.note.into_iter().collect();
        Ok(Run { scan, cost, method, usage: Usage::default(), skipped: 0, notes })
    }

    fn os(&self, blocks: Range<u64>, progress: &Progress) -> Outcome {
        let method = Method {
            engine: Kind::Pread.to_string(),
            chunk_kb: Some(self.block_size() / 1024),
            depth: Some(1),
            device_source: BACKEND,
        };
        let mut reader = Buffered::new(self.source);
        let (scan, cost) = self.measure(&mut reader, blocks, Account::Own, progress)?;
        Ok(Run { scan, cost, method, usage: Usage::default(), skipped: 0, notes: Vec::new() })
    }

    fn server(&self, blocks: Range<u64>, progress: &Progress) -> Outcome {
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
        let (scan, cost) = self.measure(&mut reader, blocks, account, progress)?;
        Ok(Run { scan, cost, method, usage: reader.usage(), skipped: reader.skipped(), notes })
    }

    fn measure(
        &self,
        reader: &mut dyn Reader,
        blocks: Range<u64>,
        account: Account,
        progress: &Progress,
    ) -> std::result::Result<(Scan, Cost), Failure> {
        let limits = Limits { shared: statement::left(), ..self.request.limits };
        let witness = Witness::new(account, &self.placement.leaves, self.roots);
        let mut ask = interrupts::ask(self.relation.locked());
        let mut report = |done| progress.done(done);
        let before = witness.look();
        let scan = scan::scan(self.source, blocks, reader, &limits, &Monotonic, &mut ask, &mut report)?;
        Ok((scan, witness.since(&before)))
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
