//! `io_probe_ping`: one request now and then, a row each.

use std::sync::Arc;
use std::time::Duration;

use io_probe_core::files::scratch::{Fill, Scratch};
use io_probe_core::machine::account::{self, Account};
use io_probe_core::machine::observer::IoDelta;
use io_probe_core::measure::load::ScratchWrites;
use io_probe_core::measure::ping::{self, Pong};
use io_probe_core::measure::random::{FetchOrder, Found, Look};
use io_probe_core::measure::sync::NotDurable;
use io_probe_core::run::budget::{Limits, Stop};
use io_probe_core::run::order::Permutation;
use io_probe_surface::doubt::Doubt;
use io_probe_surface::function::OptionName;
use io_probe_surface::ping::{OPTIONS, PingRow};
use io_probe_surface::shared::PlaceColumns;
use io_probe_surface::value::Timestamp;
use pgrx::prelude::*;

use super::shared::{self, Caveats, NOT_DIRECT, us};
use crate::call::named::{NamedEnum, named};
use crate::call::{Begin, Call, Options, Outcome, Probe, ProbedPlace, ProbedRelation, ReadPath, arguments};
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::{JsonbText, Rows, SqlInterval, Text, server};

/// Most requests of a call: each is a row.
const MOST_REQUESTS: u32 = 10_000;

/// Blocks that writes go to.
const SCRATCH_BLOCKS: u64 = 1024;

#[pg_extern(sql = false)]
fn io_probe_ping(
    rel: Option<pg_sys::Oid>,
    path: Option<Text>,
    mode: Option<Text>,
    every: Option<SqlInterval>,
    count: Option<i32>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, OPTIONS)?;
        let count = arguments::positive_up_to("count", count.unwrap_or(10), MOST_REQUESTS)?;
        let every = arguments::pause("every", every)?.unwrap_or(Duration::from_millis(100));
        gucs::capped_duration("count times every", every.saturating_mul(count - 1))?;
        let rel = arguments::relation(rel)?;
        let mode = Mode::parse(mode.as_deref())?.unwrap_or(Mode::Read);
        let path = path
            .map_or(Ok(ReadPath::Direct), |path| ReadPath::among(&path, &[ReadPath::Direct, ReadPath::Os]))?;
        let seed = arguments::seed(seed(&options)?);
        // Only what the statement has left bounds its time.
        let limits = Limits { duration: Duration::MAX, ..options.bounds()? };
        let ping = Ping { count, every, mode, path, seed, limits };

        let (writes, waits) = (mode != Mode::Read, options.waits()?);
        let (call, relation) = Begin { writes, waits, ..Begin::of(Probe::Ping) }.on_relation(rel)?;
        if writes {
            relation.relation.file_tablespace().check_may_write()?;
        }
        let started_at = server::present();
        let answers = call.attempt_path(|| ping.measure(&call, &relation), |pongs| pongs.stop);
        ping.rows(answers, &relation, started_at)
    })
}

/// The seed as the rows report it, so that it may be given again.
pub(super) fn seed(options: &Options) -> Result<Option<i64>> {
    let seed = options.count(OptionName::Seed, 0)?;
    let too_large = |_| Error::invalid(format!("option \"seed\" must be at most {}", i64::MAX));
    seed.map(|seed| i64::try_from(seed).map_err(too_large)).transpose()
}

named! {
    /// What the requests do.
    enum Mode: "mode", "modes" {
        Read = "read",
        Write = "write",
        PingPong = "pingpong",
    }
}

/// What is to be measured.
struct Ping {
    count: u32,
    every: Duration,
    mode: Mode,
    path: ReadPath,
    seed: u64,
    limits: Limits,
}

/// The answers.
struct Pongs {
    pongs: Vec<Pong>,
    stop: Option<Stop>,
    /// Did fewer bytes move than were asked for past the page cache?
    not_direct: bool,
    /// What else went on meanwhile.
    cost: IoDelta,
}

impl Ping {
    fn measure(&self, call: &Call, relation: &ProbedRelation) -> Outcome<Pongs> {
        call.progress.path(self.path.name(), self.count.into());
        let direct = self.path == ReadPath::Direct;
        let block_size = relation.source.block_size();
        let writes = match self.mode {
            Mode::Read => None,
            _ => Some(ScratchWrites::new(
                Arc::new(self.scratch(call, relation)?),
                if direct { libc::O_DIRECT } else { 0 },
                block_size,
                Some(self.seed),
                false,
            )?),
        };
        let fetch_order = (self.mode != Mode::Write).then(|| {
            let order = Permutation::new(relation.source.blocks(), self.seed);
            let look = if direct { Look::Never } else { Look::Batches(1) };
            FetchOrder::new(&relation.source, order, 0, look)
        });
        let observer = relation.observer(Account::Own);
        let (before, look) = (account::own_traffic(), observer.look());
        let (pongs, stop) = call.with_budget(&relation.interrupts, |budget| {
            let report = &mut |answered| call.progress.done(answered);
            ping::ping(fetch_order, writes, block_size, self.count, self.every, &self.limits, budget, report)
        })?;
        let moved = account::own_traffic().zip(before).map(|(now, before)| now - before);
        let asked = pongs.len() as u64 * u64::from(block_size);
        let not_direct = direct && moved.is_some_and(|bytes| bytes < asked);
        Ok(Pongs { pongs, stop, not_direct, cost: observer.since(&look) })
    }

    /// The file that writes go to.
    fn scratch(&self, call: &Call, relation: &ProbedRelation) -> Outcome<Scratch> {
        let size = SCRATCH_BLOCKS * relation.block_size();
        let place = ProbedPlace::beside(&relation.relation);
        let mut should_stop = || call.should_stop(&relation.interrupts);
        let (scratch, _) = place.make_scratch(size, Fill::Incompressible, self.limits, &mut should_stop)?;
        Ok(scratch)
    }

    /// A row for each answer. The notes stand in the last one, which may be one without a request.
    fn rows(
        &self,
        answers: Outcome<Pongs>,
        relation: &ProbedRelation,
        started_at: Timestamp,
    ) -> Result<Vec<PingRow>> {
        let mut caveats = Caveats::default();
        let pongs = match caveats.accept(answers)? {
            Some(answers) => {
                self.judge(&answers, relation, &mut caveats);
                answers.pongs
            }
            None => Vec::new(),
        };
        let place = shared::place(relation);
        let row = |request, caveats| self.row(request, caveats, started_at, place.clone());
        let mut rows: Vec<PingRow> =
            (1..).zip(&pongs).map(|request| row(Some(request), caveats.without_notes())).collect();
        match rows.last_mut() {
            Some(last) => last.caveats = caveats.columns(),
            None => rows.push(row(None, caveats)),
        }
        Ok(rows)
    }

    fn judge(&self, answers: &Pongs, relation: &ProbedRelation, caveats: &mut Caveats) {
        if self.mode != Mode::Read && relation.placement.is_in_memory() {
            caveats.void(&NotDurable::InMemory.to_string());
        }
        if answers.not_direct {
            caveats.void(NOT_DIRECT);
        }
        caveats.note_held_back(&answers.cost.held_back);
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

    fn row(
        &self,
        request: Option<(u64, &Pong)>,
        caveats: Caveats,
        started_at: Timestamp,
        place: PlaceColumns,
    ) -> PingRow {
        let pong = request.map(|(_, pong)| pong);
        let timed = pong.filter(|_| !caveats.has(Doubt::Void));
        PingRow {
            request: request.map(|(number, _)| number),
            op: pong.map(|pong| if pong.found.is_some() { "read" } else { "write" }),
            warmup: pong.map(|pong| pong.warmup),
            lat_us: timed.map(|pong| us(pong.time_ns as f64)),
            served_by: timed.and_then(|pong| self.served_by(pong)),
            path: self.path.name(),
            blkno: pong.and_then(|pong| pong.found.map(|_| pong.block)),
            seed: self.seed as i64,
            started_at,
            place,
            caveats: caveats.columns(),
        }
    }

    fn served_by(&self, pong: &Pong) -> Option<&'static str> {
        match pong.found? {
            Found::Cached => (self.path == ReadPath::Os).then_some("os"),
            Found::Missing(_) => Some("device"),
            _ => None,
        }
    }
}
