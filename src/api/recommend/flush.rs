//! checkpoint_flush_after, backend_flush_after and bgwriter_flush_after, from what others' reads and the sync
//! at the end take while a scratch file is written as the server writes data files; and
//! checkpoint_completion_target, which takes no measurement.

use std::sync::Arc;
use std::time::Duration;

use io_probe_advise::ByRatios;
use io_probe_advise::flushes::{self as judgement, FlushRatios};
use io_probe_core::Error::NoRoom as Full;
use io_probe_core::files::scratch::Fill;
use io_probe_core::measure::flushes::{self, FlushRun, FlushTurn, Flushes};
use io_probe_core::measure::sync::NotDurable;
use io_probe_core::measure::writes::{WriteOrder, WriteWay};
use io_probe_core::run::budget::{End, Limits, Stop};
use io_probe_surface::doubt::Doubt;
use pgrx::pg_sys;
use serde_json::{Value, json};

use super::advice::{Found, Lacking, NEEDS_WRITES, Recommendation, SEEMS_BETTER, Setting};
use super::place::{Candidate, TablespaceTarget};
use super::{PARTS_OF_WAYS, RecommendCall, io_method};
use crate::api::direct_reads;
use crate::api::shared::{self, CONTRADICTED, us};
use crate::call::arguments::seed;
use crate::call::{Failure, Outcome, ProbedPlace, ProbedRelation};
use crate::error::Result;
use crate::pg::backend::server;
use crate::pg::storage::wal;

/// The server's default for checkpoints, in blocks.
const USUAL: u64 = (256 << 10) / pg_sys::BLCKSZ as u64;

/// In a shorter turn too little is written to tell anything.
const LEAST_TURN: Duration = Duration::from_millis(10);

/// What no turn shows of a change, to another size or to 0.
const WRITTEN_AGAIN: &str = "blocks that are rewritten often may then reach the device more often";
const LEFT_TO_THE_END: &str = "after a long checkpoint the sync, or the kernel's own writeback, may have far \
     more to write";

/// A row for each of these settings, measured on the largest relation that no strong lock keeps from us, and
/// in its tablespace.
pub(super) fn rows(
    recommend: &RecommendCall<'_>,
    places: &[TablespaceTarget],
) -> Result<Vec<Recommendation>> {
    let mut open = Setting::OF_WRITES.to_vec();
    open.retain(|setting| recommend.wants(*setting));
    if open.is_empty() {
        return Ok(Vec::new());
    }
    let rows = open.iter().map(|setting| (*setting, Recommendation::of_cluster(*setting)));
    if let Some(why) = needless() {
        return Ok(rows.map(|(_, row)| row.keep(why)).collect());
    }
    if !recommend.request.writes {
        let why = "not measured: this needs writes => true and EXECUTE on io_probe_sync; it writes a scratch \
             file in the tablespace of the largest table, and others wait meanwhile";
        return Ok(rows.map(|(_, row)| row.without(NEEDS_WRITES, why)).collect());
    }
    let largest = TablespaceTarget::largest(places);
    let used = largest.as_ref().ok().map(|(_, relation)| relation.oid);
    let rows = rows.map(|(setting, row)| (setting, row.used(used)));
    let judge = Judge { recommend, limits: recommend.limits(PARTS_OF_WAYS)?, ways: ways(&open) };
    match largest.and_then(|(place, relation)| judge.measured(place, relation)) {
        Ok((found, doubt)) => {
            Ok(rows.map(|(setting, row)| judge.judged(setting, row, &found).beside(doubt)).collect())
        }
        Err(lacking) => {
            let (doubt, why) = lacking.told()?;
            Ok(rows.map(|(_, row)| row.without(doubt, why.clone())).collect())
        }
    }
}

/// The row of checkpoint_completion_target, if it is wanted.
pub(super) fn completion_target(recommend: &RecommendCall<'_>) -> Option<Recommendation> {
    if !recommend.wants(Setting::CheckpointCompletionTarget) {
        return None;
    }
    let row = Recommendation::of_cluster(Setting::CheckpointCompletionTarget);
    Some(match judgement::completion_target(server::number(c"checkpoint_completion_target")?) {
        None => row.keep("a checkpoint's writes are spread over almost all of the time until the next one"),
        Some(target) => {
            let why = format!(
                "{target} spreads a checkpoint's writes over more of the time until the next one; it is the \
                 default since PostgreSQL 14"
            );
            row.alter(target.to_string(), why)
        }
    })
}

/// Why all settings of writes are kept, whatever would be measured.
fn needless() -> Option<&'static str> {
    if wal::sync_method().is_none() {
        return Some("it has no effect while fsync is off");
    }
    server::reads_direct().then_some("it has no effect with debug_io_direct = data")
}

/// The order in which a setting's writer writes.
fn order(setting: Setting) -> WriteOrder {
    if setting == Setting::CheckpointFlushAfter { WriteOrder::Sorted } else { WriteOrder::Random }
}

/// The blocks in force of a setting.
fn in_force(setting: Setting) -> u64 {
    let name = match setting {
        Setting::BackendFlushAfter => c"backend_flush_after",
        Setting::BgwriterFlushAfter => c"bgwriter_flush_after",
        _ => c"checkpoint_flush_after",
    };
    server::number(name).unwrap_or(0)
}

/// The blocks that are compared with 0 for writes in this order: of a setting in force, or the usual ones.
/// Sizes are not compared with each other: in a short turn the rest that is left for the sync would decide.
fn compared(order_of: WriteOrder) -> u64 {
    let alike = Setting::OF_WRITES.into_iter().filter(|setting| order(*setting) == order_of);
    alike.map(in_force).find(|blocks| *blocks > 0).unwrap_or(USUAL)
}

/// The ways that tell these settings: for each order 0, and then another size.
fn ways(open: &[Setting]) -> Vec<WriteWay> {
    let mut ways: Vec<WriteWay> = Vec::new();
    for order in open.iter().map(|setting| order(*setting)) {
        if ways.iter().any(|way| way.order == order) {
            continue;
        }
        let length = pg_sys::BLCKSZ;
        ways.extend([0, compared(order)].map(|blocks| {
            let flush_after = blocks * u64::from(length);
            WriteWay { order, length, direct: None, flush_after }
        }));
    }
    ways
}

/// What the rows are filled from.
struct Judge<'a> {
    recommend: &'a RecommendCall<'a>,
    limits: Limits,
    ways: Vec<WriteWay>,
}

impl Judge<'_> {
    /// What is written in the tablespace of this relation, which is read meanwhile.
    fn measured(&self, place: &TablespaceTarget, relation: Candidate) -> Found<(Flushes, Option<Doubt>)> {
        let recommend = self.recommend;
        let turn = flushes::turn_length(self.limits.duration, self.ways.len());
        if turn < LEAST_TURN {
            let times = LEAST_TURN.as_secs_f64() / turn.as_secs_f64().max(1e-9);
            return Err(Lacking::unknown(self.lacks_time(times)));
        }
        let probed = place.open(recommend.call, relation)?;
        let (found, doubt) = recommend.call.attempt(|| self.write(&probed), |(found, _)| found.stop)?;
        if found.is_void() {
            return Err(Lacking::unknown(CONTRADICTED));
        }
        Ok((found, doubt))
    }

    /// Writes a scratch file in the relation's tablespace, while the relation is read.
    fn write(&self, relation: &ProbedRelation) -> Outcome<(Flushes, Option<Doubt>)> {
        let call = self.recommend.call;
        let limits = self.limits;
        if limits.make_pauses() {
            let why = "with a limit of the rate or of the device's time, others wait less than without";
            return Err(Failure::Unsupported(why.to_owned()));
        }
        relation.reads_of_device()?;
        let tablespace = relation.relation.file_tablespace();
        if let Err(denied) = tablespace.check_may_write() {
            return Err(Failure::Unsupported(denied.message));
        }
        let place = ProbedPlace::of_tablespace(tablespace).located();
        place.check_admitted()?;
        if place.placement.is_in_memory() {
            return Err(Failure::Unsupported(NotDurable::InMemory.to_string()));
        }
        let reads = direct_reads::of(call, relation, seed(None), 1, None)?;
        call.progress.path("scratch file", 0);
        let made = place.make_scratch(ProbedPlace::MOST_SCRATCH, Fill::Incompressible, limits, &mut || {
            call.should_stop(&relation.interrupts)
        });
        let (scratch, _name) = match made {
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
        let (found, surroundings) = observer.beside(|| {
            call.with_budget(&relation.interrupts, |budget| {
                flushes::run(&run, budget, &mut |turn, turns| call.progress.turn("writes", turn, turns))
            })
        });
        Ok((found?, shared::worst(surroundings.is_disturbed(), &surroundings.held_back)))
    }

    fn judged(&self, setting: Setting, row: Recommendation, found: &Flushes) -> Recommendation {
        let order = order(setting);
        let row = row.rests_on("ways", self.evidence(order, found));
        let Some(never) = self.ways.iter().position(|way| way.order == order) else { return row };
        let blocks = compared(order);
        let mut sides = [(never, 0), (never + 1, blocks)];
        if in_force(setting) > 0 {
            sides.reverse();
        }
        let [(current, now), (tried, other)] = sides;
        let [reads, syncs] = [read, synced]
            .map(|of| [current, tried].map(|way| found.mean(way, of).unwrap_or(f64::NAN) / 1e6));
        let told = format!(
            "while data files were written, 1 % of the time went to reads of over {:.1} ms with {}, and of \
             over {:.1} ms with {}; the sync at the end took {:.1} ms and {:.1} ms",
            reads[0],
            shown(now),
            reads[1],
            shown(other),
            syncs[0],
            syncs[1],
        );
        match judgement::flush_after(ratios(found, tried, current), other == 0) {
            ByRatios::Unmeasured => row.unknown(self.why_none(order, found)),
            ByRatios::SeemsBetter => row.unknown(SEEMS_BETTER),
            ByRatios::Keep => row.keep(format!("{told}, so {} is not clearly better", shown(other))),
            ByRatios::Change(()) => {
                let aside = if other == 0 { LEFT_TO_THE_END } else { WRITTEN_AGAIN };
                row.alter_text(shown(other), format!("{told}; {aside}"))
            }
        }
    }

    /// Why there are no ratios of ways of this order.
    fn why_none(&self, order: WriteOrder, found: &Flushes) -> String {
        if let Some(stop) = found.stop.filter(|stop| stop.is_for_all() || *stop == Stop::Bytes) {
            return stop.to_string();
        }
        let ways = (0..self.ways.len()).filter(|way| self.ways[*way].order == order);
        if ways.clone().any(|way| found.lacks_places(way)) {
            return "the scratch file is too small: raise pg_io_probe.scratch_limit".to_owned();
        }
        let short_by = ways.filter_map(|way| found.short_by(way)).reduce(f64::max);
        self.lacks_time(short_by.unwrap_or(2.0))
    }

    /// Says that it takes so many times the time, and a tenth more: next time the device may be a little
    /// faster.
    fn lacks_time(&self, times: f64) -> String {
        let needs = self.limits.duration.mul_f64((1.1 * times).min(1e6));
        let longer = self.recommend.longer(Some(self.recommend.whole(needs, PARTS_OF_WAYS)));
        format!("too few turns counted, or too little was written in them: {longer}")
    }

    fn evidence(&self, order: WriteOrder, found: &Flushes) -> Vec<Value> {
        let of_order = self.ways.iter().enumerate().filter(|(_, way)| way.order == order);
        let evidence = of_order.map(|(place, way)| {
            let [read_us, sync_us, writing_us] =
                [read, synced, written].map(|of| found.mean(place, of).map(us));
            json!({
                "flush_after_kb": way.flush_after >> 10, "writes": found.count(place),
                "read_us": read_us, "sync_us": sync_us, "writing_us": writing_us,
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
