//! checkpoint_flush_after, backend_flush_after and bgwriter_flush_after, from what others' reads and the sync
//! at the end take while a scratch file is written as the server writes data files; and
//! checkpoint_completion_target, from what checkpoints have written and what the volume carries.

use std::sync::Arc;
use std::time::Duration;

use io_probe_advise::flushes::{
    Checkpoints, CompletionTarget, FlushAfter, FlushRatios, SPREAD, completion_target, flush_after,
};
use io_probe_core::Error::NoRoom as Full;
use io_probe_core::files::scratch::Fill;
use io_probe_core::measure::flushes::{self, FlushRun, FlushTurn, FlushWay, Flushes};
use io_probe_core::measure::sync::{self, NotDurable};
use io_probe_core::measure::writes::{WriteOrder, WriteWay};
use io_probe_core::run::budget::{End, Limits, Stop};
use io_probe_surface::doubt::Doubt;
use pgrx::pg_sys;
use serde_json::{Value, json};

use super::advice::{NEEDS_WRITES, Recommendation, SEEMS_BETTER, Setting};
use super::place::{GONE, Opened, TablespaceTarget};
use super::{PARTS_OF_WRITES, RecommendCall, io_method, reads};
use crate::api::shared::{self, CONTRADICTED, us};
use crate::call::arguments::seed;
use crate::call::{Failure, Outcome, ProbedPlace, ProbedRelation, figure};
use crate::error::Result;
use crate::pg::backend::server;
use crate::pg::catalog::facts;
use crate::pg::storage::wal;

/// The server's default for checkpoints, in blocks.
const USUAL: u64 = (256 << 10) / pg_sys::BLCKSZ as u64;

/// In a shorter turn too little is written to tell anything.
const LEAST_TURN: Duration = Duration::from_millis(10);

const MIB: f64 = 1_048_576.0;

/// A row for each of these settings, measured on the largest relation that no strong lock keeps from us, and
/// in its tablespace.
pub(super) fn rows(
    recommend: &RecommendCall<'_>,
    places: &[TablespaceTarget],
) -> Result<Vec<Recommendation>> {
    let mut rows = Vec::new();
    for setting in Setting::OF_WRITES.into_iter().filter(|setting| recommend.wants(*setting)) {
        rows.push((setting, Recommendation::of_cluster(setting), needless(setting)));
    }
    let open: Vec<Setting> =
        rows.iter().filter(|(.., needless)| needless.is_none()).map(|(setting, ..)| *setting).collect();
    let judge = if open.is_empty() { None } else { Some(Judge::of(recommend, places, &open)?) };
    let filled = rows.into_iter().map(|(setting, row, needless)| match (needless, &judge) {
        (Some(why), _) => row.keep(why),
        (None, Some(judge)) => judge.judged(setting, row),
        (None, None) => row,
    });
    Ok(filled.collect())
}

/// Why a setting is kept, whatever would be measured.
fn needless(setting: Setting) -> Option<&'static str> {
    if setting == Setting::CheckpointCompletionTarget {
        return match completion_target(target(), counted(), None) {
            CompletionTarget::KeepSpread => {
                Some("a checkpoint's writes are spread over almost all of the time until the next one")
            }
            CompletionTarget::KeepUncounted => Some(
                "too few checkpoints came by checkpoint_timeout since the statistics were reset, or they \
                 wrote nothing, so that what they need is not known",
            ),
            _ => None,
        };
    }
    if wal::sync_method().is_none() {
        return Some("it has no effect while fsync is off");
    }
    server::reads_direct().then_some("it has no effect with debug_io_direct = data")
}

fn target() -> f64 {
    server::number(c"checkpoint_completion_target").unwrap_or(SPREAD)
}

fn counted() -> Option<Checkpoints> {
    let [timed, requested, buffers, write_ms] = facts::checkpoints()?;
    let bytes = buffers * f64::from(pg_sys::BLCKSZ);
    Some(Checkpoints { timed, requested, bytes, seconds: write_ms / 1e3 })
}

/// The order in which a setting's writer writes.
fn order(setting: Setting) -> WriteOrder {
    match setting {
        Setting::BackendFlushAfter | Setting::BgwriterFlushAfter => WriteOrder::Random,
        _ => WriteOrder::Sorted,
    }
}

/// The blocks in force of a setting, or of the one that it goes with.
fn in_force(setting: Setting) -> u64 {
    let name = match setting {
        Setting::BackendFlushAfter => c"backend_flush_after",
        Setting::BgwriterFlushAfter => c"bgwriter_flush_after",
        _ => c"checkpoint_flush_after",
    };
    server::number(name).unwrap_or(0)
}

/// The blocks that are tried beside those in force. Sizes are not compared with each other: in a short turn
/// the rest that is left for the sync would decide.
fn alternative(now: u64) -> u64 {
    if now == 0 { USUAL } else { 0 }
}

/// The ways that tell these settings.
fn ways(open: &[Setting]) -> Vec<FlushWay> {
    let mut ways = Vec::new();
    let mut add = |order, blocks: u64, paced| {
        let flush_after = blocks * u64::from(pg_sys::BLCKSZ);
        let way = WriteWay { order, length: pg_sys::BLCKSZ, direct: None, flush_after };
        let way = FlushWay { way, paced };
        if !ways.contains(&way) {
            ways.push(way);
        }
    };
    for &setting in open {
        let (order, now) = (order(setting), in_force(setting));
        match setting {
            Setting::CheckpointCompletionTarget => add(order, now, false),
            _ => [now, alternative(now)].into_iter().for_each(|blocks| add(order, blocks, true)),
        }
    }
    ways
}

/// What the rows are filled from.
struct Judge<'a> {
    recommend: &'a RecommendCall<'a>,
    ways: Vec<FlushWay>,
    relation: Option<pg_sys::Oid>,
    /// What was measured, or why nothing was, with the doubt of such a row.
    found: std::result::Result<(Flushes, Option<Doubt>), NotMeasured>,
}

enum NotMeasured {
    NeedsWrites,
    Because(String),
}

impl<'a> Judge<'a> {
    fn of(recommend: &'a RecommendCall<'a>, places: &[TablespaceTarget], open: &[Setting]) -> Result<Self> {
        let judge =
            Self { recommend, ways: ways(open), relation: None, found: Err(NotMeasured::NeedsWrites) };
        if !recommend.request.writes {
            return Ok(judge);
        }
        let largest = places.iter().filter_map(|place| Some((place, place.free_relations().next()?)));
        let Some((place, relation)) = largest.max_by_key(|(_, relation)| relation.bytes) else {
            return Ok(judge.because(places.first().map_or("", TablespaceTarget::why_none)));
        };
        let judge = Self { relation: Some(relation.oid), ..judge };
        let turn = flushes::turn_length(recommend.writes_limits.duration, judge.ways.len());
        if turn < LEAST_TURN {
            let times = LEAST_TURN.as_secs_f64() / turn.as_secs_f64().max(1e-9);
            let why = judge.lacks_time(times);
            return Ok(judge.because(why));
        }
        let probed = match place.open(recommend.call, relation)? {
            Opened::Relation(probed) => probed,
            Opened::Gone => return Ok(judge.because(GONE)),
            Opened::NotMeasured(why) => return Ok(judge.because(why)),
        };
        match recommend.call.attempt(|| judge.write(&probed), |(found, _)| found.stop) {
            Ok((found, _)) if found.is_void() => Ok(judge.because(CONTRADICTED)),
            Ok(found) => Ok(Self { found: Ok(found), ..judge }),
            Err(failure) => Ok(judge.because(io_method::why_not(failure)?)),
        }
    }

    fn because(self, why: impl Into<String>) -> Self {
        Self { found: Err(NotMeasured::Because(why.into())), ..self }
    }

    /// Writes a scratch file in the relation's tablespace, while the relation is read.
    fn write(&self, relation: &ProbedRelation) -> Outcome<(Flushes, Option<Doubt>)> {
        let call = self.recommend.call;
        let limits = self.recommend.writes_limits;
        if limits.make_pauses() {
            let why = "with a limit of the rate or of the device's time others would wait less";
            return Err(Failure::Unsupported(why.to_owned()));
        }
        relation.reads_of_device()?;
        let tablespace = relation.relation.file_tablespace();
        if let Err(denied) = tablespace.check_may_write() {
            return Err(Failure::Unsupported(denied.message));
        }
        let place = ProbedPlace::of_tablespace(tablespace).located();
        place.check_admitted()?;
        let mount = place.placement.mount.as_ref();
        if mount.is_some_and(|mount| sync::is_in_memory(&mount.fs_type)) {
            return Err(Failure::Unsupported(NotDurable::InMemory.to_string()));
        }
        let reads = reads::of(call, relation, seed(None), 1, None)?;
        call.progress.path("scratch file", 0);
        let mut should_stop = || call.should_stop(&relation.interrupts);
        let (size, fill) = (ProbedPlace::MOST_SCRATCH, Fill::Incompressible);
        let (scratch, _name) = match place.make_scratch(size, fill, limits, &mut should_stop) {
            Err(End::Failed(full @ Full { .. })) => return Err(Failure::Unsupported(full.to_string())),
            made => made?,
        };
        let observer = place.observer();
        let max_bytes = limits.max_bytes.saturating_mul(self.ways.len() as u64);
        let run = FlushRun {
            ways: &self.ways,
            scratch: Arc::new(scratch),
            reads: Arc::new(reads),
            seed: seed(None),
            limits: Limits { max_bytes, ..limits },
            observer: &observer,
        };
        let mut report = |turn: u64, turns: u64| {
            call.progress.path("writes", turns);
            call.progress.done(turn - 1);
        };
        let (found, surroundings) = observer.beside(|| {
            call.with_budget(&relation.interrupts, |budget| flushes::run(&run, budget, &mut report))
        });
        Ok((found?, shared::worst(surroundings.is_disturbed(), &surroundings.held_back)))
    }

    fn judged(&self, setting: Setting, row: Recommendation) -> Recommendation {
        let row = row.used(self.relation);
        let (found, doubt) = match &self.found {
            Ok(found) => found,
            Err(NotMeasured::Because(why)) => return row.unknown(why.clone()),
            Err(NotMeasured::NeedsWrites) => {
                return row.without(
                    NEEDS_WRITES,
                    "not measured: it takes writes => true, which writes a scratch file in the tablespace of \
                     the largest table, makes others wait meanwhile, and needs EXECUTE on io_probe_sync",
                );
            }
        };
        let row = row.rests_on("ways", self.evidence(order(setting), found));
        let row = match setting {
            Setting::CheckpointCompletionTarget => self.target(row, found),
            _ => self.flush_after(setting, row, found),
        };
        row.beside(*doubt)
    }

    fn way(&self, order: WriteOrder, blocks: u64, paced: bool) -> Option<usize> {
        let flush_after = blocks * u64::from(pg_sys::BLCKSZ);
        let is_it =
            |way: &FlushWay| (way.way.order, way.way.flush_after, way.paced) == (order, flush_after, paced);
        self.ways.iter().position(is_it)
    }

    fn flush_after(&self, setting: Setting, row: Recommendation, found: &Flushes) -> Recommendation {
        let now = in_force(setting);
        let other = alternative(now);
        let ways = [now, other].map(|blocks| self.way(order(setting), blocks, true));
        let [Some(current), Some(tried)] = ways else {
            return row.unknown(self.why_none(order(setting), found));
        };
        let ms = |way, of| found.mean(way, of).unwrap_or(f64::NAN) / 1e6;
        let told = format!(
            "while data files are written, a read takes up to {:.1} ms in 99 of 100 moments, and {:.1} ms \
             with {}; the sync at the end takes {:.1} ms, and {:.1} ms with it",
            ms(current, read),
            ms(tried, read),
            shown(other),
            ms(current, synced),
            ms(tried, synced),
        );
        match flush_after(ratios(found, tried, current)) {
            FlushAfter::Unmeasured => row.unknown(self.why_none(order(setting), found)),
            FlushAfter::SeemsBetter => row.unknown(SEEMS_BETTER),
            FlushAfter::Keep { other_is_worse } => {
                let ends = if other_is_worse { [now, now] } else { [now.min(other), now.max(other)] };
                row.between(shown(ends[0]), shown(ends[1]))
                    .keep(format!("{told}, so {} is not surely better", shown(other)))
            }
            FlushAfter::Change => {
                let aside = "blocks that are written repeatedly may reach the device more often";
                row.between(shown(other), shown(other)).alter_text(shown(other), format!("{told}; {aside}"))
            }
        }
    }

    fn target(&self, row: Recommendation, found: &Flushes) -> Recommendation {
        let way = self.way(WriteOrder::Sorted, in_force(Setting::CheckpointFlushAfter), false);
        let time = way.and_then(|way| found.write_time(way));
        let mib_s = |bytes: f64| figure(bytes / MIB);
        let carried = time.map_or(f64::NAN, |time| mib_s(f64::from(pg_sys::BLCKSZ) * 1e9 / time.value));
        match completion_target(target(), counted(), time.map(|time| (time, pg_sys::BLCKSZ))) {
            CompletionTarget::KeepLight { needed } => row.keep(format!(
                "checkpoints write {} MiB/s of the {carried} that the volume carries, which others hardly \
                 feel",
                mib_s(needed)
            )),
            CompletionTarget::Spread { needed: [now, then] } => {
                let why = format!(
                    "checkpoints write {} MiB/s of the {carried} that the volume carries; spread over more \
                     of the time until the next one it is {}",
                    mib_s(now),
                    mib_s(then)
                );
                row.alter(SPREAD.to_string(), why)
            }
            _ => row.unknown(self.why_none(WriteOrder::Sorted, found)),
        }
    }

    /// Why there are no ratios of ways of this order.
    fn why_none(&self, order: WriteOrder, found: &Flushes) -> String {
        if let Some(stop) = found.stop.filter(|stop| stop.is_for_all() || *stop == Stop::Bytes) {
            return stop.to_string();
        }
        let ways = (0..self.ways.len()).filter(|way| self.ways[*way].way.order == order);
        let short_by = ways.filter_map(|way| found.short_by(way)).reduce(f64::max);
        self.lacks_time(short_by.unwrap_or(2.0))
    }

    /// Says that it takes so many times the time, and a tenth more: next time the device may be a little
    /// faster.
    fn lacks_time(&self, times: f64) -> String {
        let needs = self.recommend.writes_limits.duration.mul_f64((1.1 * times).min(1e6));
        let longer = self.recommend.longer(Some(self.recommend.whole(needs, PARTS_OF_WRITES)));
        format!("too little was written in too few turns: {longer}")
    }

    fn evidence(&self, order: WriteOrder, found: &Flushes) -> Vec<Value> {
        let of_order = self.ways.iter().enumerate().filter(|(_, way)| way.way.order == order);
        let evidence = of_order.map(|(place, way)| {
            let mean = |of| found.mean(place, of).map(us);
            json!({
                "flush_after_kb": way.way.flush_after >> 10, "paced": way.paced,
                "writes": found.count(place), "read_us": mean(read), "sync_us": mean(synced),
                "writing_us": mean(written),
            })
        });
        evidence.collect()
    }
}

fn read(turn: &FlushTurn) -> u64 {
    turn.read_ns
}

fn synced(turn: &FlushTurn) -> u64 {
    turn.sync_ns
}

fn written(turn: &FlushTurn) -> u64 {
    turn.writing_ns
}

fn ratios(found: &Flushes, way: usize, current: usize) -> Option<FlushRatios> {
    Some(FlushRatios {
        read: found.ratio(way, current, read)?,
        sync: found.ratio(way, current, synced)?,
        writing: found.ratio(way, current, written)?,
    })
}

/// So many blocks, as SHOW prints them.
fn shown(blocks: u64) -> String {
    if blocks == 0 { "0".to_owned() } else { io_method::in_kb(blocks) }
}
