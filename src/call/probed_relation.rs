//! What every probe of a relation shares: the relation and the device below it, the loop over the paths, and the
//! parts of a row that say whether to trust it, what the device saw, and whose figures these are.

use std::ops::Range;

use io_probe_core::engine::{self, Opened};
use io_probe_core::files::{RelationFiles, page_cache};
use io_probe_core::machine::account::Account;
use io_probe_core::machine::device::{self, Leaf, Placement, Roots};
use io_probe_core::machine::observer::IoDelta;
use io_probe_core::run::budget::{Stop, StopCheck};
use pgrx::pg_sys;
use serde::Serialize;

use super::admission::{self, Refusal};
use super::arguments::{Path, figure};
use crate::call::statement;
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::descriptors::Reserved;
use crate::pg::backend::interrupts;
use crate::pg::backend::lock::ProbeLock;
use crate::pg::backend::progress::Progress;
use crate::pg::backend::server;
use crate::pg::storage::buffers;
use crate::pg::storage::relation::{Fork, Held, Relation, check_may_read};

/// A relation that is being measured.
pub(crate) struct ProbedRelation {
    pub(crate) relation: Relation,
    fork: Fork,
    pub(crate) source: RelationFiles,
    pub(crate) placement: Placement,
    pub(crate) roots: Roots,
    /// Does the file system keep a cache of its own, of which nobody can tell what comes from there?
    has_own_cache: bool,
    _descriptors: Reserved,
}

impl ProbedRelation {
    /// Opens a fork of a relation to read it. `function` is the caller's name, for hints.
    pub(crate) fn open(rel: pg_sys::Oid, fork: Fork, function: &str) -> Result<Self> {
        let relation = Relation::open_to_read(rel, function)?;
        relation.check_is_built()?;
        let source = relation.source(fork).ok_or_else(|| {
            Error::invalid(format!("relation \"{}\" has no fork \"{}\"", relation.name(), fork.name()))
        })?;
        let roots = Roots::default();
        let placement = device::locate(&relation.directory(), &roots);
        let has_own_cache = page_cache::is_own_at(&relation.directory());
        let _descriptors = Reserved::of(&source);
        Ok(Self { relation, fork, source, placement, roots, has_own_cache, _descriptors })
    }

    /// Takes the probe lock, opens the relation, and looks how busy its device is. Rights come first. Who holds the probe lock waits
    /// for no other lock: with LOCK TABLE one session would keep all others from probing. Nor does who waits for the probe lock
    /// hold one: nobody's DDL would get on.
    pub(crate) fn open_alone(
        rel: pg_sys::Oid,
        fork: Fork,
        function: &str,
        wait: bool,
    ) -> Result<(ProbeLock, Self)> {
        let (lock, subject) = Self::alone(rel, fork, function, wait)?;
        Ok((lock, subject.admitted()?))
    }

    /// The same, however busy the device is.
    pub(crate) fn alone(
        rel: pg_sys::Oid,
        fork: Fork,
        function: &str,
        wait: bool,
    ) -> Result<(ProbeLock, Self)> {
        check_may_read(rel)?;
        loop {
            let lock = ProbeLock::acquire(wait)?;
            if let Some(_held) = Held::take(rel) {
                return Ok((lock, Self::open(rel, fork, function)?));
            }
            drop(lock);
            interrupts::check();
            drop(Held::wait_for(rel));
        }
    }

    /// Refuses what takes reads of which it is known that they come from the device.
    pub(crate) fn reads_of_device(&self) -> Outcome<()> {
        if self.has_own_cache { Err(Failure::Unsupported(page_cache::OWN_CACHE.to_owned())) } else { Ok(()) }
    }

    /// This account, if it tells what came from the device.
    pub(crate) fn account(&self, account: Account) -> Account {
        if self.has_own_cache { Account::Unknown } else { account }
    }

    /// Refuses if others keep its device busier than the cap on that allows.
    pub(crate) fn admitted(self) -> std::result::Result<Self, Refusal> {
        admission::admit(&self.placement, &self.roots)?;
        Ok(self)
    }

    /// Bytes of a block.
    pub(crate) fn block_size(&self) -> u64 {
        self.source.block_size().into()
    }

    /// An engine of `depth` slots of so many bytes: what `pg_io_probe.engine` says at a depth over 1, which is an error
    /// where the kernel has none such.
    pub(crate) fn engine(depth: u32, request: u64) -> Result<Opened> {
        let wanted = gucs::engine().filter(|_| depth > 1);
        Ok(engine::open(wanted, depth as usize, request as usize)?)
    }

    /// Makes the caches let go of `blocks`, within what is left of the statement's time: what stays, a probe will count. Not of
    /// a cache of the file system's own, see [`ProbedRelation::reads_of_device`]. Of the OS cache go the segments that they lie in.
    pub(crate) fn evict(&self, blocks: Range<u64>, should_stop: &mut StopCheck<'_>) -> Result<Option<Stop>> {
        let mut should_stop = || statement::over().or_else(&mut *should_stop);
        match buffers::evict_blocks(&self.relation, self.fork, &blocks, &mut should_stop) {
            Some(stop) => Ok(Some(stop)),
            None => Ok(self.source.evict(blocks, &mut should_stop, &mut |_| ())?),
        }
    }

    /// The same of all, and of the relation's other forks in shared buffers; also what others use of it is written.
    pub(crate) fn evict_all(&self, should_stop: &mut StopCheck<'_>) -> Result<Option<Stop>> {
        let mut should_stop = || statement::over().or_else(&mut *should_stop);
        buffers::flush_and_evict(&self.relation);
        Ok(self.source.evict(0..self.source.blocks(), &mut should_stop, &mut |_| ())?)
    }

    /// Makes a row for each path in turn: `blank` begins it, `measure` fills it, unless a reason for the whole
    /// call to end came before. What the file system refuses is a row, too.
    pub(crate) fn each_path<R: AsMut<Verdict>>(
        &self,
        probe: &str,
        paths: &[Path],
        blank: impl Fn(Path) -> R,
        mut measure: impl FnMut(&mut R, usize, Path, &Progress, &mut StopCheck<'_>) -> Outcome<Option<Stop>>,
    ) -> Result<Vec<R>> {
        let progress = Progress::start(probe, Some(self.relation.oid()));
        let mut should_stop = interrupts::should_stop(self.relation.locked());
        let mut ended = None;
        let mut rows = Vec::with_capacity(paths.len());
        for (index, &path) in paths.iter().enumerate() {
            let _charge = statement::charge()?;
            let mut row = blank(path);
            ended = ended.or_else(statement::over);
            match ended {
                // Whoever waits for us, or for the statement, does not wait for the other paths.
                Some(why) => row.as_mut().not_begun(why),
                None => match measure(&mut row, index, path, &progress, &mut should_stop) {
                    Ok(stop) => {
                        statement::heed(stop);
                        ended = stop.filter(|stop| stop.is_for_all());
                    }
                    Err(Failure::Unsupported(why)) => row.as_mut().refuse(why),
                    Err(Failure::Error(error)) => return Err(error),
                },
            }
            rows.push(row);
        }
        Ok(rows)
    }
}

/// Why a path gave no figures.
pub(crate) enum Failure {
    /// The file system can't: a row that says so.
    Unsupported(String),
    Error(Error),
}

/// What measuring a path gave.
pub(crate) type Outcome<T> = std::result::Result<T, Failure>;

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

/// Can a row be trusted, and what is there to know about it?
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) status: &'static str,
    pub(crate) notes: Vec<String>,
}

impl Default for Verdict {
    fn default() -> Self {
        Self { status: "ok", notes: Vec::new() }
    }
}

impl Verdict {
    /// One short sentence.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The file system can't do it.
    pub(crate) fn refuse(&mut self, why: String) {
        self.status = "unsupported";
        self.note(why);
    }

    /// Not all that was wanted could be had.
    pub(crate) fn partial(&mut self, why: &str) {
        self.status = "partial";
        self.note(why);
    }

    /// The call came too late to begin.
    pub(crate) fn not_begun(&mut self, why: Stop) {
        self.partial(&why.to_string());
    }

    /// It read what it could until something from outside ended it, or a bound of its own.
    pub(crate) fn stopped(&mut self, why: Stop) {
        if why.is_for_all() {
            self.status = "partial";
        }
        self.note(why.to_string());
    }

    /// The figures contradict each other.
    pub(crate) fn void(&mut self, why: &str) {
        self.status = "void";
        self.note(why);
    }
}

/// What the devices did meanwhile, everyone's requests included.
#[derive(Debug, Default, Serialize)]
pub(crate) struct DeviceFigures {
    device_ios: Option<u64>,
    pub(crate) ios_per_block: Option<f64>,
    rareq_kb: Option<f64>,
    aqu_sz: Option<f64>,
    r_await_ms: Option<f64>,
    util_pct: Option<f64>,
    other_bytes: Option<u64>,
}

impl DeviceFigures {
    /// Of a run that got so many blocks from the device.
    pub(crate) fn of(cost: &IoDelta, device_blocks: Option<u64>, verdict: &mut Verdict) -> Self {
        let other_bytes = cost.other_bytes();
        let Some(activity) = &cost.activity else { return Self { other_bytes, ..Self::default() } };
        if activity.util_is_doubtful() {
            verdict.note(UTIL_DOUBTFUL);
        }
        Self {
            device_ios: Some(activity.reads.requests),
            ios_per_block: device_blocks
                .filter(|blocks| *blocks > 0)
                .map(|blocks| figure(activity.reads.requests as f64 / blocks as f64)),
            rareq_kb: activity.reads.request_kb().map(figure),
            r_await_ms: activity.reads.await_ms().map(figure),
            aqu_sz: activity.aqu_sz.map(figure),
            util_pct: activity.busy_pct().map(figure),
            other_bytes,
        }
    }
}

/// Whose figures these are: what to join a row by.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Identity {
    device: Option<String>,
    scheduler: Option<String>,
    read_ahead_kb: Option<u64>,
    relid: u32,
    schemaname: Option<String>,
    relname: String,
    spcname: Option<String>,
    started_at: String,
}

impl Identity {
    /// Of a row that begins now.
    pub(crate) fn of(subject: &ProbedRelation) -> Self {
        let ProbedRelation { relation, placement, .. } = subject;
        Self {
            device: of_leaves(placement, |leaf| Some(&leaf.name)),
            scheduler: of_leaves(placement, |leaf| leaf.scheduler.as_deref()),
            read_ahead_kb: placement.read_ahead_kb,
            relid: relation.oid().to_u32(),
            schemaname: relation.schema(),
            relname: relation.name(),
            spcname: relation.tablespace(),
            started_at: server::now(),
        }
    }
}

/// A fact of the devices behind a directory, those of equal neighbours once.
pub(crate) fn of_leaves(placement: &Placement, fact: impl Fn(&Leaf) -> Option<&str>) -> Option<String> {
    let mut facts: Vec<&str> = placement.leaves.iter().filter_map(fact).collect();
    facts.dedup();
    (!facts.is_empty()).then(|| facts.join(","))
}

/// `device_source` of what this process reads itself.
pub(crate) const BACKEND: &str = "backend";
/// `device_source` of what PostgreSQL's I/O workers read, for this process and for others.
pub(crate) const IO_WORKERS: &str = "io_workers";

/// Note of a row whose device was busy for longer than the row lasted.
pub(crate) const UTIL_DOUBTFUL: &str = "the device's busy time exceeds the wall clock: util_pct is doubtful";
/// Note of a row whose shares are NULL.
pub(crate) const TIERS_UNKNOWN: &str =
    "who served the blocks is unknown: bytes fetched and blocks missing from the OS cache don't tell";
/// A direct row is void if less of it than this, in percent, came from the device.
pub(crate) const DIRECT_PCT: f64 = 99.9;
/// Note of a row that is void.
pub(crate) const NOT_DIRECT: &str = "O_DIRECT was accepted, but not all bytes came from a block device";
/// Note of what `IO_WORKERS` means.
pub(crate) const WORKERS_SERVE_ALL: &str =
    "device_bytes counts all that the I/O workers read, for other sessions too";
/// Note of a row without device_bytes.
pub(crate) const WORKERS_ENDED: &str =
    "device_bytes is unknown: an I/O worker ended meanwhile, or may have, and with it its account";
/// Note of a row that a rate limit made pause.
pub(crate) const RATE_LIMITED: &str = "rate-limited: iops is not what the device could give";
/// Note of a row whose few fetches all belong to what is left out.
pub(crate) const TOO_FEW_BLOCKS: &str =
    "too few blocks for a rate: warm-up and the ends of the queue are left out";
