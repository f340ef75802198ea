//! `io_probe_ping`: one request now and then, a row each.

use std::time::Duration;

use io_probe_core::files::scratch::{Fill, Room, Scratch, ScratchLocation};
use io_probe_core::machine::account;
use io_probe_core::measure::ping::{self, Pong, Writer};
use io_probe_core::measure::random::{Found, Look, Plan};
use io_probe_core::run::budget::{Limits, Stop};
use io_probe_core::run::order::Permutation;
use pgrx::prelude::*;
use serde_json::json;

use super::row::{Caveats, Doubt, NOT_DIRECT, Row, us};
use crate::call::arguments::{self, Path};
use crate::call::named::{NamedEnum, named};
use crate::call::options::Options;
use crate::call::probe::Probe;
use crate::call::{Attempt, Begin, Call, Failure, Outcome, ProbedRelation};
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::interval::Interval;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::row::Rows;
use crate::pg::storage::relation::Fork;

/// The options of this function.
const OPTIONS: [&str; 3] = ["max_p99", "seed", "wait"];

/// Most requests of a call: each is a row.
const MOST_REQUESTS: u32 = 10_000;

/// Blocks that writes go to.
const SCRATCH_BLOCKS: u64 = 1024;

#[pg_extern(sql = false)]
fn io_probe_ping(
    rel: Option<pg_sys::Oid>,
    path: Option<Text>,
    mode: Option<Text>,
    every: Option<Interval>,
    count: Option<i32>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, &OPTIONS)?;
        let count = arguments::positive_up_to("count", count.unwrap_or(10), MOST_REQUESTS)?;
        let every = arguments::pause("every", every)?.unwrap_or(Duration::from_millis(100));
        gucs::capped_duration("count times every", every.saturating_mul(count - 1))?;
        let rel = arguments::relation(rel)?;
        let mode = Mode::parse(mode.as_deref())?.unwrap_or(Mode::Read);
        let path = path.map_or(Ok(Path::Direct), |path| Path::among(&path, &[Path::Direct, Path::Os]))?;
        let seed = arguments::seed(seed(&options)?);
        // Only what the statement has left bounds its time.
        let limits = Limits { duration: Duration::MAX, ..options.bounds()? };
        let ping = Ping { count, every, mode, path, seed, limits };

        let (writes, waits) = (mode != Mode::Read, options.flag("wait")?);
        let (call, relation) =
            Begin { writes, waits, ..Begin::of(Probe::Ping) }.on_relation(rel, Fork::Main)?;
        if writes {
            relation.relation.file_tablespace().check_may_write()?;
        }
        let blank = Row::of(&relation).with(json!({"path": path.name(), "seed": seed as i64}));
        let answers = call.attempt_path(|| ping.measure(&call, &relation), |pongs| pongs.stop)?;
        Ok(ping.rows(answers, &relation, &blank))
    })
}

/// The seed as the rows report it, so that it may be given again.
fn seed(options: &Options) -> Result<Option<i64>> {
    let seed = options.count("seed", 0)?;
    let too_large = |_| Error::invalid(format!("option \"seed\" must be at most {}", i64::MAX));
    seed.map(|seed| i64::try_from(seed).map_err(too_large)).transpose()
}

/// What the requests do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
    PingPong,
}

named!(Mode, "mode", "modes", { Read = "read", Write = "write", PingPong = "pingpong" });

/// What is to be measured.
struct Ping {
    count: u32,
    every: Duration,
    mode: Mode,
    path: Path,
    seed: u64,
    limits: Limits,
}

/// The answers.
struct Pongs {
    pongs: Vec<Pong>,
    stop: Option<Stop>,
    /// Did fewer bytes move than were asked for past the page cache?
    not_direct: bool,
}

impl Ping {
    fn measure(&self, call: &Call, relation: &ProbedRelation) -> Outcome<Pongs> {
        call.progress.path(self.path.name(), self.count.into());
        let direct = self.path == Path::Direct;
        let block_size = relation.source.block_size();
        let scratch = if self.mode == Mode::Read { None } else { Some(self.scratch(call, relation)?) };
        let writer = scratch
            .as_ref()
            .map(|scratch| Writer::new(scratch, block_size, direct, self.seed))
            .transpose()?;
        let plan = (self.mode != Mode::Write).then(|| {
            let order = Permutation::new(relation.source.blocks(), self.seed);
            let look = if direct { Look::Never } else { Look::Batches(1) };
            Plan::new(&relation.source, order, 0, look)
        });
        let before = account::own_traffic();
        let (pongs, stop) = call.with_budget(&relation.interrupts, |budget| {
            ping::ping(plan, writer, block_size, self.count, self.every, &self.limits, budget)
        })?;
        let moved = account::own_traffic().zip(before).map(|(now, before)| now - before);
        let asked = pongs.len() as u64 * u64::from(block_size);
        Ok(Pongs { pongs, stop, not_direct: direct && moved.is_some_and(|bytes| bytes < asked) })
    }

    /// The file that writes go to.
    fn scratch(&self, call: &Call, relation: &ProbedRelation) -> Outcome<Scratch> {
        let size = SCRATCH_BLOCKS * relation.block_size();
        let room = Room {
            size: size.min(gucs::scratch_limit()),
            reserve: gucs::scratch_reserve(),
            limits: self.limits,
        };
        let directory = relation.relation.directory();
        let fallback = relation.relation.file_tablespace().temporary_file();
        let place = ScratchLocation { directory: &directory, fallback: &fallback };
        let mut should_stop = || call.should_stop(&relation.interrupts);
        Scratch::create(place, room, Fill::Incompressible, &mut should_stop)?.map_err(Failure::NotBegun)
    }

    /// A row for each answer. The notes stand in the last one, which may be one without a request.
    fn rows(&self, answers: Attempt<Pongs>, relation: &ProbedRelation, blank: &Row) -> Vec<Row> {
        let mut caveats = Caveats::default();
        let pongs = match caveats.accept(answers) {
            Some(answers) => {
                self.judge(&answers, relation, &mut caveats);
                answers.pongs
            }
            None => Vec::new(),
        };
        let row = |(number, pong): (u64, &Pong)| {
            self.row(number, pong, caveats.has(Doubt::Void), blank.clone()).under(caveats.without_notes())
        };
        let mut rows: Vec<Row> = (1..).zip(&pongs).map(row).collect();
        match rows.last_mut() {
            Some(last) => last.caveats = caveats,
            None => rows.push(blank.clone().under(caveats)),
        }
        rows
    }

    fn judge(&self, answers: &Pongs, relation: &ProbedRelation, caveats: &mut Caveats) {
        if answers.not_direct {
            caveats.void(NOT_DIRECT);
        }
        match answers.stop {
            Some(stop) => caveats.stopped(stop),
            None if answers.pongs.len() < self.count as usize => {
                caveats.note("no more requests: every block that holds data has been read once");
            }
            None => {}
        }
        if self.mode == Mode::Write {
            caveats.notes.extend(relation.notes().cloned());
        } else {
            caveats.note_relation(relation);
        }
    }

    fn row(&self, number: u64, pong: &Pong, void: bool, blank: Row) -> Row {
        let served_by = match pong.found {
            _ if void => None,
            Some(Found::Cached) if self.path == Path::Os => Some("os"),
            Some(Found::Missing(_)) => Some("device"),
            _ => None,
        };
        blank.with(json!({
            "request": number,
            "op": if pong.found.is_some() { "read" } else { "write" },
            "warmup": pong.warmup,
            "lat_us": (!void).then(|| us(pong.time_ns as f64)),
            "served_by": served_by,
            "blkno": pong.found.map(|_| pong.block),
        }))
    }
}
