//! `io_probe_ping`: one request now and then, a row each.

use std::time::Duration;

use io_probe_core::files::scratch::{Created, Fill, Room, Scratch, ScratchLocation};
use io_probe_core::machine::account;
use io_probe_core::measure::ping::{self, PingOp, PingReader, Pong, Writer};
use io_probe_core::measure::random::{Found, Look, Plan};
use io_probe_core::run::budget::{Budget, Limits, StopCheck};
use io_probe_core::run::clock::Monotonic;
use io_probe_core::run::order::Permutation;
use pgrx::datum::Interval;
use pgrx::prelude::*;
use serde::Serialize;

use super::sync::check_may_write;
use crate::call::arguments::{self, Path, figure, quoted};
use crate::call::options::Options;
use crate::call::probed_relation::{Failure, Identity, NOT_DIRECT, Outcome, ProbedRelation, Verdict};
use crate::call::statement;
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::interrupts;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::progress::Progress;
use crate::pg::backend::row::Rows;
use crate::pg::storage::relation::Fork;

/// The options of this function.
const OPTIONS: [&str; 3] = ["max_p99_us", "seed", "wait"];

/// Most requests of a call: each is a row.
const MOST_REQUESTS: u32 = 10_000;

/// Blocks that writes go to.
const SCRATCH_BLOCKS: u64 = 1024;

/// What the requests do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
    PingPong,
}

impl Mode {
    const NAMES: [(&'static str, Mode); 3] =
        [("read", Mode::Read), ("write", Mode::Write), ("pingpong", Mode::PingPong)];

    fn parse(name: Option<&str>) -> Result<Self> {
        let name = name.unwrap_or("read");
        let found = Self::NAMES.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, mode)| mode).ok_or_else(|| {
            let valid = quoted(&Self::NAMES.map(|(name, _)| name));
            Error::invalid(format!("unknown mode \"{name}\"")).hint(format!("Valid modes are {valid}."))
        })
    }
}

#[pg_extern(sql = false)]
fn io_probe_ping(
    rel: Option<pg_sys::Oid>,
    count: Option<i32>,
    every: Option<Interval>,
    mode: Option<Text>,
    path: Option<Text>,
    options: Option<JsonbText>,
) -> Rows {
    let request = || {
        let options = Options::parse(options, &OPTIONS)?;
        let count = arguments::positive("count", count.unwrap_or(10))?;
        if count > MOST_REQUESTS {
            return Err(Error::invalid(format!("count must be at most {MOST_REQUESTS}, not {count}")));
        }
        let every = arguments::pause("every", every)?.unwrap_or(Duration::from_millis(100));
        gucs::span("count times every", every.saturating_mul(count - 1))?;
        Ok(PingRequest {
            rel: arguments::relation(rel)?,
            count,
            every,
            mode: Mode::parse(mode.as_deref())?,
            path: Path::one_of(path.as_deref(), &[Path::Direct, Path::Os])?,
            seed: arguments::seed(options.count("seed", 0)?.map(|seed| seed as i64)),
            limits: Limits { duration: gucs::max_duration(), ..options.limits(None)? },
            wait: options.flag("wait")?,
        })
    };
    Rows::answer(|| request().and_then(|request| request.run()))
}

/// A call whose arguments are right by themselves.
struct PingRequest {
    rel: pg_sys::Oid,
    count: u32,
    every: Duration,
    mode: Mode,
    path: Path,
    seed: u64,
    limits: Limits,
    wait: bool,
}

/// `io_probe_ping_row`; the type's comments say what each attribute means.
#[derive(Debug, Default, Serialize)]
struct PingRow {
    request: Option<u64>,
    op: Option<&'static str>,
    warmup: Option<bool>,
    time_us: Option<f64>,
    served_by: Option<&'static str>,
    path: &'static str,
    #[serde(flatten)]
    verdict: Verdict,
    blkno: Option<u64>,
    seed: i64,
    #[serde(flatten)]
    identity: Identity,
}

impl PingRequest {
    fn run(&self) -> Result<Vec<PingRow>> {
        if self.mode != Mode::Read {
            check_may_write("The modes that write need")?;
        }
        let (_lock, subject) = ProbedRelation::open_alone(self.rel, Fork::MAIN, "io_probe_ping", self.wait)?;
        let identity = Identity::of(&subject);
        let only = |verdict| {
            let (path, seed) = (self.path.name(), self.seed as i64);
            PingRow { path, seed, verdict, identity: identity.clone(), ..PingRow::default() }
        };
        let mut verdict = Verdict::default();
        let _charge = statement::charge()?;
        if let Some(stop) = statement::over() {
            verdict.not_begun(stop);
            return Ok(vec![only(verdict)]);
        }
        let progress = Progress::start("ping", Some(subject.relation.oid()));
        progress.path(self.path.name(), self.count.into());
        let mut should_stop = interrupts::should_stop(subject.relation.locked());
        let pongs = match self.measure(&subject, &mut verdict, &mut should_stop) {
            Ok(pongs) => pongs,
            Err(Failure::Unsupported(why)) => {
                verdict.refuse(why);
                Vec::new()
            }
            Err(Failure::Error(error)) => return Err(error),
        };
        let (status, void) = (verdict.status, verdict.status == "void");
        let mut rows: Vec<PingRow> = (1..)
            .zip(&pongs)
            .map(|(request, pong)| PingRow {
                request: Some(request),
                verdict: Verdict { status, notes: Vec::new() },
                identity: identity.clone(),
                ..self.row(pong, void)
            })
            .collect();
        // The notes stand in the last row, be it one without a request.
        match rows.last_mut() {
            Some(last) => last.verdict = verdict,
            None => rows.push(only(verdict)),
        }
        Ok(rows)
    }

    fn row(&self, pong: &Pong, void: bool) -> PingRow {
        let served_by = match pong.found {
            _ if void => None,
            Some(Found::Cached) if self.path == Path::Os => Some("os"),
            Some(Found::Missing(_)) => Some("device"),
            _ => None,
        };
        PingRow {
            op: Some(if pong.op == PingOp::Read { "read" } else { "write" }),
            warmup: Some(pong.warmup),
            time_us: (!void).then(|| figure(pong.time_ns as f64 / 1e3)),
            served_by,
            path: self.path.name(),
            seed: self.seed as i64,
            blkno: (pong.op == PingOp::Read).then_some(pong.block),
            ..PingRow::default()
        }
    }

    fn measure(
        &self,
        subject: &ProbedRelation,
        verdict: &mut Verdict,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<Vec<Pong>> {
        let direct = self.path == Path::Direct;
        let scratch = match self.mode {
            Mode::Read => None,
            Mode::Write | Mode::PingPong => {
                match self.scratch(subject, &mut || statement::over().or_else(&mut *should_stop))? {
                    Created::Ready(scratch) => Some(scratch),
                    Created::Stopped(stop) => {
                        verdict.not_begun(stop);
                        return Ok(Vec::new());
                    }
                }
            }
        };
        let block_size = subject.source.block_size();
        let writer = scratch
            .as_ref()
            .map(|scratch| Writer::new(scratch, block_size, direct, self.seed))
            .transpose()?;
        let reader = (self.mode != Mode::Write)
            .then(|| {
                let order = Permutation::new(subject.source.blocks(), self.seed);
                let look = if direct { Look::Never } else { Look::Batches(1) };
                PingReader::new(Plan::new(&subject.source, order, 0, look))
            })
            .transpose()?;
        let mut budget = Budget::of_statement(statement::left(), &Monotonic, should_stop);
        let before = account::own_traffic();
        let (pongs, stop) =
            ping::ping(reader, writer, block_size, self.count, self.every, &self.limits, &mut budget)?;
        statement::heed(stop);
        let moved = account::own_traffic().zip(before).map(|(now, before)| now - before);
        if direct && moved.is_some_and(|bytes| bytes < pongs.len() as u64 * u64::from(block_size)) {
            verdict.void(NOT_DIRECT);
        }
        match stop {
            Some(stop) => verdict.stopped(stop),
            None if (pongs.len() as u64) < self.count.into() => {
                verdict.note("no more requests: every block that holds data has been read once");
            }
            None => {}
        }
        Ok(pongs)
    }

    fn scratch(&self, subject: &ProbedRelation, should_stop: &mut StopCheck<'_>) -> Result<Created> {
        let size = SCRATCH_BLOCKS * subject.block_size();
        let room = Room {
            size: size.min(gucs::scratch_limit()),
            reserve: gucs::scratch_reserve(),
            limits: self.limits,
        };
        let directory = subject.relation.directory();
        let fallback = subject.relation.file_tablespace().temporary_file();
        let place = ScratchLocation { directory: &directory, fallback: &fallback };
        Ok(Scratch::create(place, room, Fill::Incompressible, should_stop)?)
    }
}
