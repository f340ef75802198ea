//! io_combine_limit (from PostgreSQL 17 on), from scans on the server's own path under several limits in
//! turn.

use std::collections::HashSet;
use std::ops::Range;

use io_probe_core::advise::{Choice, plateau};
use io_probe_core::files::Part;
use io_probe_core::machine::observer::IoDelta;
use io_probe_core::measure::contest::{Contest, TurnResult, contest};
use io_probe_core::measure::scan::{self, Scan, ScanRun};
use io_probe_core::run::budget::{Budget, Limits, Stop, StopCheck};
use io_probe_core::stats::median;
use serde_json::{Value, json};

use super::RecommendCall;
use super::place::TablespaceTarget;
use super::row::{NEEDS_COLD, RecommendRow, SEEMS_BETTER, Setting};
use crate::call::arguments::figure;
use crate::call::named::NamedEnum;
use crate::call::{Call, ProbedRelation};
use crate::error::Result;
use crate::pg::backend::server;
use crate::pg::storage::buffers::{Resident, Usage};
use crate::pg::storage::relation::Fork;
use crate::pg::storage::server_reader::{Sequential, ServerReader};

/// Limits to compare with what is set, in blocks.
const LIMITS: [u64; 3] = [8, 16, 32];
/// Most bytes that a turn reads.
const TURN: u64 = 16 << 20;
/// A turn reads cold if no more than this share of it was cached.
const CACHED: f64 = 0.01;
/// Readahead windows that the kernel is ahead of a reader at most: it asks for one when the reader enters the
/// one before.
const WINDOWS_AHEAD: u64 = 2;
/// Stretches that are evicted at once.
const EVICTED: u64 = 8;
/// Precision where the call asks for none.
const PRECISION: f64 = 0.02;

/// The row, if it is wanted. Where the server has no such setting, a call that lists it is told so.
pub(super) fn row(
    recommend: &RecommendCall<'_>,
    places: &[TablespaceTarget],
) -> Result<Option<RecommendRow>> {
    if !recommend.wants(Setting::IoCombineLimit) {
        return Ok(None);
    }
    let row = RecommendRow::of_cluster(Setting::IoCombineLimit);
    let Some(current) = server::combine_limit() else {
        let row = row.unknown("this server has no such setting: it comes with PostgreSQL 17");
        return Ok(recommend.request.lists_settings.then_some(row));
    };
    let size = |place: &&TablespaceTarget| (place.relation().map(|free| free.bytes), place.largest_bytes());
    let Some(place) = places.iter().max_by_key(size) else { return Ok(None) };
    let relation = place.relation();
    let row = row.used(place.used(relation)).rests_on("tablespace", place.spcname.clone());
    let Some(relation) = relation else { return Ok(Some(row.unknown(place.why_none()))) };
    let highest = server::highest_combine_limit();
    let mut limits: Vec<u64> =
        LIMITS.into_iter().filter(|limit| *limit <= highest).chain([current]).collect();
    limits.sort_unstable();
    limits.dedup();
    let relation = match place.measurable(recommend.call, relation)? {
        Ok(relation) => relation,
        Err(why) => return Ok(Some(row.unknown(why))),
    };
    let (found, cost) = measure(recommend, &relation, &limits, current)?;
    let row =
        row.rests_on("io_max_combine_limit", shown(highest)).rests_on("read_method", server::read_method());
    let row = judge(row, &found, &limits, current, recommend.request.cold);
    Ok(Some(row.beside(cost.is_some_and(|cost| cost.is_disturbed()))))
}

/// A number of blocks as SHOW prints it.
fn shown(blocks: u64) -> String {
    format!("{}kB", blocks * u64::from(pgrx::pg_sys::BLCKSZ) / 1024)
}

fn judge(row: RecommendRow, found: &Contest, limits: &[u64], current: u64, cold: bool) -> RecommendRow {
    let in_force = limits.iter().position(|limit| *limit == current).unwrap_or(0);
    let ratios: Vec<_> = (0..limits.len()).map(|index| found.ratio(index, in_force)).collect();
    let evidence = |(index, limit): (usize, &u64)| {
        let times: Vec<f64> = found.rounds.iter().map(|round| round[index]).collect();
        let ratio = ratios[index];
        json!({
            "limit": shown(*limit), "block_us": median(&times).map(|ns| figure(ns / 1e3)),
            "to_current": ratio.map(|r| figure(r.value)), "ci_low": ratio.map(|r| figure(r.low)),
            "ci_high": ratio.map(|r| figure(r.high)),
        })
    };
    let row = row
        .rests_on("limits", limits.iter().enumerate().map(evidence).collect::<Vec<Value>>())
        .rests_on("rounds", found.rounds.len() as u64)
        .rests_on("turns_left_out", found.unfit);
    let choices: Option<Vec<Choice>> = limits
        .iter()
        .zip(&ratios)
        .map(|(value, ratio)| Some(Choice { value: *value, time: (*ratio)? }))
        .collect();
    let Some(plateau) = choices.as_ref().and_then(|choices| plateau(choices, current)) else {
        if found.exhausted && !cold {
            return row.without(
                NEEDS_COLD,
                "not measured: too little of the largest table lies outside of the caches; with \
                 cold => true it evicts what it reads",
            );
        }
        return row.unknown(match found.stop {
            Some(stop) => stop.to_string(),
            None if found.unfit > 0 && !cold => {
                "others read the table meanwhile, or blocks of it were never written".to_owned()
            }
            None if found.unfit > 0 => {
                "the table could not be evicted from the caches, or others read it meanwhile".to_owned()
            }
            None => "there was too little time for six rounds: give it a longer duration".to_owned(),
        });
    };
    if plateau.seems_worse {
        return row.unknown(SEEMS_BETTER);
    }
    let row = row.between(shown(plateau.low), shown(plateau.high));
    if plateau.holds_current {
        return row.keep("no other limit is sure to make a cold scan faster by more than 5 %");
    }
    let best = shown(plateau.value);
    let ratio = limits.iter().position(|limit| *limit == plateau.value).and_then(|index| ratios[index]);
    let gain = 1.0 / ratio.map_or(1.0, |ratio| ratio.value);
    let why = format!(
        "a cold sequential scan is {gain:.2} times as fast with {best} as with {}, beyond the noise",
        shown(current)
    );
    row.alter(best.clone(), &format!("'{best}'"), why)
}

fn measure(
    recommend: &RecommendCall<'_>,
    relation: &ProbedRelation,
    limits: &[u64],
    current: u64,
) -> Result<(Contest, Option<IoDelta>)> {
    let length = (TURN / relation.block_size()).min(relation.source.blocks().max(1));
    let mut stretches = Stretches::new(recommend, relation, length);
    let observer = relation.observer(server::read_account());
    let mut cost = None;
    let precision = recommend.limits.precision.or(Some(PRECISION));
    let bounds = Limits { precision, ..recommend.limits };
    let mut done = 0;
    let mut readers: Vec<_> =
        limits.iter().map(|limit| ServerReader::combining(&relation.relation, *limit as u32)).collect();
    recommend.call.progress.path(Setting::IoCombineLimit.name(), 0);
    let mut turn = |contender: usize, budget: &mut Budget<'_>| -> Result<TurnResult> {
        let Stretch { blocks, reach } = match stretches.next(&mut || budget.poll())? {
            ColdStretch::Cold(stretch) => stretch,
            ColdStretch::Cached => return Ok(TurnResult::Unfit),
            ColdStretch::None => return Ok(TurnResult::Exhausted),
            ColdStretch::Stopped(stop) => return Ok(TurnResult::Stopped(stop)),
        };
        let reader = &mut readers[contender];
        reader.renew();
        let resident = Resident::new(&relation.relation, Fork::MAIN);
        let run = ScanRun {
            source: &relation.source,
            blocks: blocks.clone(),
            steps: Sequential::steps(0),
            without_data: Some(&|part: &Part, holes| resident.remove_from(part, holes)),
            limits: Limits::none(),
        };
        let look = observer.look();
        let scan = scan::scan(&run, reader, budget, &mut |_| ());
        cost = Some(observer.since(&look).after(cost.take()));
        // What the kernel still reads ahead must not be in the next turn's way.
        observer.settle();
        relation.source.drop_cached(reach)?;
        let scan = scan?;
        done += 1;
        recommend.call.progress.done(done);
        Ok(judge_turn(&scan, reader.usage(), blocks.end - blocks.start, relation.block_size()))
    };
    let in_force = limits.iter().position(|limit| *limit == current).unwrap_or(0);
    let bytes = length * relation.block_size();
    let found = recommend.call.with_budget(&relation.interrupts, |budget| {
        contest(limits.len(), in_force, bytes, &bounds, budget, &mut turn)
    })?;
    recommend.call.note_stop(found.stop);
    Ok((found, cost))
}

/// A turn counts if it read all of its blocks, and none of them from a cache.
fn judge_turn(scan: &Scan, usage: Usage, blocks: u64, block_size: u64) -> TurnResult {
    if let Some(stop) = scan.stop {
        return TurnResult::Stopped(stop);
    }
    let few = (blocks as f64 * CACHED) as u64;
    let cached = scan.cached_bytes.unwrap_or(0) / block_size;
    if scan.holes > 0 || usage.hits() > few || cached > few || scan.rated.work == 0 {
        return TurnResult::Unfit;
    }
    TurnResult::Took(scan.rated.ns as f64 / scan.rated.work as f64)
}

/// Stretches of a relation that no cache holds, one after another, round and round.
struct Stretches<'a> {
    call: &'a Call,
    relation: &'a ProbedRelation,
    /// Blocks of each, and how many behind them the kernel may read ahead.
    length: u64,
    ahead: u64,
    next: u64,
    /// May they be evicted?
    cold: bool,
    /// Numbers of those that were cold before: what is left there is ours.
    ours: HashSet<u64>,
}

/// Blocks to read, and all that a cache may hold afterwards because of that.
struct Stretch {
    blocks: Range<u64>,
    reach: Range<u64>,
}

enum ColdStretch {
    /// A stretch to read.
    Cold(Stretch),
    /// It could not be evicted.
    Cached,
    /// There is none.
    None,
    Stopped(Stop),
}

impl<'a> Stretches<'a> {
    fn new(recommend: &'a RecommendCall<'_>, relation: &'a ProbedRelation, length: u64) -> Self {
        Self {
            call: recommend.call,
            relation,
            length,
            ahead: WINDOWS_AHEAD * relation.readahead_window() / relation.block_size(),
            next: 0,
            cold: recommend.request.cold,
            ours: HashSet::new(),
        }
    }

    fn next(&mut self, should_stop: &mut StopCheck<'_>) -> Result<ColdStretch> {
        let (all, step) = (self.relation.source.blocks(), self.length + self.ahead);
        let count = (all / step).max(1);
        let resident = Resident::new(&self.relation.relation, Fork::MAIN);
        for _ in 0..count {
            let number = self.next % count;
            self.next += 1;
            let start = number * step;
            let stretch =
                Stretch { blocks: start..start + self.length, reach: start..(start + step).min(all) };
            if let Some(stop) = should_stop() {
                return Ok(ColdStretch::Stopped(stop));
            }
            if self.is_cold(number, &stretch, &resident) {
                self.ours.insert(number);
                return Ok(ColdStretch::Cold(stretch));
            }
            if self.cold {
                // Evicts the next ones, too: with large shared buffers each search for pages takes a while.
                let until = (start + EVICTED * step).min(all);
                if let Some(stop) = self.relation.evict(self.call, start..until)? {
                    return Ok(ColdStretch::Stopped(stop));
                }
                let resident = Resident::new(&self.relation.relation, Fork::MAIN);
                let is_cold = self.is_cold(number, &stretch, &resident);
                return Ok(if is_cold { ColdStretch::Cold(stretch) } else { ColdStretch::Cached });
            }
        }
        Ok(ColdStretch::None)
    }

    /// May it be read, and dropped afterwards? What others have read may not, unless the call evicts.
    fn is_cold(&self, number: u64, stretch: &Stretch, resident: &Resident<'_>) -> bool {
        let few = (self.length as f64 * CACHED) as u64;
        let most =
            if self.cold || self.ours.contains(&number) { few * self.relation.block_size() } else { 0 };
        self.relation.source.cached_bytes(stretch.reach.clone()).is_ok_and(|bytes| bytes <= most)
            && resident.count_in(stretch.blocks.clone()) <= few
    }
}
