//! `io_probe_sustain`: reads that go on, and what the device keeps up.

use std::sync::Arc;
use std::time::Duration;

use io_probe_advise::sustained::{Counts, Sustained, what_counts};
use io_probe_core::machine::account::Account;
use io_probe_core::machine::observer::Surroundings;
use io_probe_core::measure::load::Requests;
use io_probe_core::measure::sustain::{self, Sustain, SustainRun, SustainSlice};
use io_probe_core::run::budget::Limits;
use io_probe_core::run::memory;
use io_probe_core::stats::{Latencies, Slice};
use io_probe_surface::doubt::Doubt;
use io_probe_surface::function::SEEDED;
use io_probe_surface::sustain::SustainRow;
use io_probe_surface::value::Timestamp;
use pgrx::prelude::*;

use super::direct_reads::{self, Runs};
use super::ping::seed;
use super::shared::{self, CONTRADICTED, Caveats, ms, quantile_us};
use crate::call::named::{NamedEnum, named};
use crate::call::{Begin, Call, Options, Outcome, Probe, ProbedRelation, arguments, figure};
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::{Elements, JsonbText, Rows, SqlInterval, Text, server};

/// Most slices of a pattern: each is a row, and keeps its latencies.
const MOST_SLICES: u128 = 500;

/// Bytes of a slice's latencies, which are kept until the end.
const LATENCIES: usize = 40 << 10;

/// Slices of a pattern, and the shortest one, where the call gives no length.
const USUAL_SLICES: u32 = 100;
const SHORTEST: Duration = Duration::from_millis(100);

/// Bytes of a sequential read.
const LONG_READ: usize = 256 << 10;

#[pg_extern(sql = false)]
fn io_probe_sustain(
    rel: Option<pg_sys::Oid>,
    patterns: Option<Elements<Text>>,
    every: Option<SqlInterval>,
    duration: Option<SqlInterval>,
    depth: Option<i32>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, SEEDED)?;
        let rel = arguments::relation(rel)?;
        let patterns = Pattern::pick(patterns.map(|given| given.0))?;
        let depth = arguments::depth(depth, 16)?;
        let seed = arguments::seed(seed(&options)?);
        let limits = options.limits(duration, patterns.len())?;
        let every = arguments::positive_time("every", every)?
            .unwrap_or_else(|| (limits.duration / USUAL_SLICES).max(SHORTEST).min(limits.duration));
        if limits.duration.as_nanos() > MOST_SLICES.saturating_mul(every.as_nanos()) {
            return Err(Error::invalid(format!(
                "there must be at most {MOST_SLICES} slices of each pattern"
            )));
        }
        let slices = limits.duration.as_nanos().div_ceil(every.as_nanos()) as usize;
        let _memory = memory::hold(patterns.len() * slices * LATENCIES)?;
        let sustained = Sustaining { patterns, every, depth, seed, limits };
        let (call, relation) =
            Begin { waits: options.waits()?, ..Begin::of(Probe::Sustain) }.on_relation(rel)?;
        sustained.rows(&call, &relation)
    })
}

named! {
    /// How it reads.
    enum Pattern: "pattern", "patterns" {
        Random = "random",
        Sequential = "sequential",
    }
}

/// What is to be measured.
struct Sustaining {
    /// Each once, in their order.
    patterns: Vec<Pattern>,
    every: Duration,
    depth: u32,
    seed: u64,
    /// Of each pattern.
    limits: Limits,
}

/// What was measured of a pattern.
struct Found {
    sustain: Sustain,
    /// Is it known to be no figure of the device?
    is_void: bool,
    /// None where nothing was measured, or not of the device.
    sustained: Option<Sustained>,
    bytes_each: u64,
    /// Blocks that were read before they began again.
    blocks: u64,
    surroundings: Surroundings,
}

impl Sustaining {
    fn rows(&self, call: &Call, relation: &ProbedRelation) -> Result<Vec<SustainRow>> {
        let started_at = server::present();
        let mut measured = Vec::new();
        for pattern in &self.patterns {
            let mut caveats = Caveats::default();
            let tried =
                call.attempt_path(|| self.measure(*pattern, call, relation), |found| found.sustain.stop);
            measured.push((*pattern, caveats.accept(tried)?, caveats));
        }
        let [random, sequential] = [Pattern::Random, Pattern::Sequential].map(|of| {
            let found = measured.iter().find(|(pattern, ..)| *pattern == of)?.1.as_ref()?;
            Some((found.sustained?.kept.per_s, found.bytes_each))
        });
        let counts = what_counts(random, sequential);
        let mut rows = Vec::new();
        for (pattern, found, mut caveats) in measured {
            let row = self.row(pattern, relation, started_at);
            let Some(found) = found else {
                rows.push(SustainRow { caveats: caveats.columns(), ..row });
                continue;
            };
            found.judge(relation, &mut caveats);
            let verdict = found.sustained.filter(|_| !found.sustain.paced);
            let verdict =
                verdict.map(|sustained| verdict_of(&sustained, counts[pattern as usize], found.bytes_each));
            let beside = caveats.without_notes();
            rows.push(SustainRow {
                verdict: verdict.map(Into::into),
                ..found.first_row(row.clone(), caveats)
            });
            rows.extend((1..).zip(&found.sustain.slices).map(|(number, slice)| {
                let whole =
                    SustainRow { slice: Some(number), caveats: beside.clone().columns(), ..row.clone() };
                found.row_of(whole, std::slice::from_ref(slice))
            }));
        }
        Ok(rows)
    }

    fn measure(&self, pattern: Pattern, call: &Call, relation: &ProbedRelation) -> Outcome<Found> {
        relation.reads_of_device()?;
        call.progress.path(pattern.name(), 0);
        let runs = match pattern {
            Pattern::Random => None,
            Pattern::Sequential => Some(Runs { bytes: LONG_READ, random: None }),
        };
        let workers = self.depth as usize;
        let reads = direct_reads::of(call, relation, self.seed, workers, runs)?;
        let (bytes_each, blocks) = (reads.bytes(), reads.blocks());
        let observer = relation.observer(Account::Own);
        let run = SustainRun {
            engine: gucs::engine(),
            requests: Arc::new(reads),
            workers,
            every: self.every,
            limits: self.limits,
            observer: &observer,
        };
        let (sustain, surroundings) = observer.beside(|| {
            call.with_budget(&relation.interrupts, |budget| {
                sustain::run(&run, budget, &mut |slice, slices| {
                    call.progress.turn(pattern.name(), slice, slices);
                })
            })
        });
        let sustain = sustain?;
        let is_void = sustain.is_void(workers);
        let slices: Vec<Slice> = sustain.slices.iter().map(|slice| slice.slice).collect();
        let sustained = Sustained::of(&slices).filter(|_| !is_void);
        Ok(Found { sustain, is_void, sustained, bytes_each, blocks, surroundings })
    }

    /// A row without figures.
    fn row(&self, pattern: Pattern, relation: &ProbedRelation, started_at: Timestamp) -> SustainRow {
        let read_kb = match pattern {
            Pattern::Random => relation.source.block_size() >> 10,
            Pattern::Sequential => (LONG_READ >> 10) as u32,
        };
        SustainRow {
            pattern: pattern.name(),
            read_kb,
            depth: self.depth,
            seed: self.seed as i64,
            started_at,
            place: shared::place(relation),
            ..SustainRow::default()
        }
    }
}

impl Found {
    fn judge(&self, relation: &ProbedRelation, caveats: &mut Caveats) {
        let Sustain { slices, bytes, stop, paced, .. } = &self.sustain;
        if self.is_void {
            caveats.void(CONTRADICTED);
        }
        if let Some(stop) = stop {
            caveats.stopped(*stop);
        }
        if *paced {
            caveats.doubt_since(Doubt::Paced, "rate-limited: the rate is not what the device could give");
        }
        if slices.is_empty() {
            caveats.doubt_since(Doubt::Short, "the run was too short for a slice");
        }
        if self.surroundings.is_disturbed() {
            caveats.doubt_since(
                Doubt::Others,
                "others used the device during the measurement, and may have used its burst credits",
            );
        }
        caveats.note_held_back(&self.surroundings.held_back);
        caveats.read_up_to((bytes / relation.block_size()).div_ceil(self.blocks.max(1)));
        if self.sustained.is_some_and(|sustained| sustained.burst.is_none()) {
            caveats.note(
                "no burst ended during the measurement: a burst may be longer, or its credits were already \
                 used up",
            );
        }
        caveats.note_open_files(relation);
        caveats.note_relation(relation);
    }

    /// The row of the rate that is kept.
    fn first_row(&self, row: SustainRow, caveats: Caveats) -> SustainRow {
        let all = &self.sustain.slices;
        let from = self.sustained.map_or(0, |sustained| sustained.kept.from);
        let burst = self.sustained.and_then(|sustained| sustained.burst);
        let kept = self.sustained.map(|sustained| sustained.kept);
        let row = SustainRow {
            burst_iops: burst.map(|burst| figure(burst.per_s)),
            burst_s: burst.map(|burst| figure(burst.seconds)),
            bucket: burst.map(|burst| figure(burst.bucket)),
            refill_s: burst.map(|burst| figure(burst.refill_s)),
            steady: kept.and_then(|kept| kept.is_steady),
            range_pct: kept.and_then(|kept| kept.range).map(|range| figure(range * 100.0)),
            caveats: caveats.columns(),
            ..row
        };
        let elapsed_ms = Some(ms(all.iter().map(|slice| slice.slice.ns).sum()));
        SustainRow { elapsed_ms, ..self.row_of(row, &all[from..]) }
    }

    /// A row with the figures of these slices.
    fn row_of(&self, row: SustainRow, slices: &[SustainSlice]) -> SustainRow {
        if self.is_void {
            return row;
        }
        let mut latencies = Latencies::default();
        slices.iter().for_each(|slice| latencies.absorb(&slice.latencies));
        let all = slices.iter().fold(Slice::default(), |all, slice| all.plus(slice.slice));
        let iops = (all.ns > 0).then(|| all.work as f64 * 1e9 / all.ns as f64);
        SustainRow {
            at_s: slices.first().map(|slice| figure(slice.began_ns as f64 / 1e9)),
            iops: iops.map(figure),
            mib_s: iops.map(|iops| shared::mib_s(iops, self.bytes_each)),
            p50_us: quantile_us(&latencies, 0.5),
            p99_us: quantile_us(&latencies, 0.99),
            elapsed_ms: Some(ms(all.ns)),
            ..row
        }
    }
}

/// What a rate looks like, of requests of so many bytes.
fn verdict_of(sustained: &Sustained, counts: Counts, bytes_each: u64) -> String {
    let mib = bytes_each as f64 / f64::from(1 << 20);
    let [iops, mib_s] = [(1.0, "IOPS"), (mib, "MiB/s")]
        .map(|(unit, name)| Some(format!("{} {name}", figure(sustained.cap(unit)?))));
    let cap = match (counts, iops, mib_s) {
        (Counts::Either, Some(iops), Some(mib_s)) => Some(format!("{iops} or {mib_s}")),
        (Counts::Either, iops, mib_s) => iops.or(mib_s),
        (Counts::Requests, iops, _) => iops,
        (Counts::Bytes, _, mib_s) => mib_s,
    };
    let kept = match (cap, sustained.kept.is_steady) {
        (Some(cap), _) => format!("cap of {cap}"),
        (None, Some(true)) => "steady".to_owned(),
        (None, Some(false)) => "not steady".to_owned(),
        (None, None) => "too short".to_owned(),
    };
    match sustained.burst {
        Some(burst) => format!("burst of {} s, then {kept}", figure(burst.seconds)),
        None => kept,
    }
}
