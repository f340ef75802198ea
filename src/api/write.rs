//! `io_probe_write`: what writing data files costs, in a tablespace.

use std::ffi::CStr;
use std::sync::Arc;

use io_probe_core::files::scratch::Fill;
use io_probe_core::machine::observer::Surroundings;
use io_probe_core::measure::sync::NotDurable;
use io_probe_core::measure::writes::{self, LONG_WRITE, WriteOrder, WriteRun, WriteTimes, WriteWay};
use io_probe_core::run::budget::Limits;
use io_probe_core::stats::MIN_TURNS;
use io_probe_surface::doubt::Doubt;
use io_probe_surface::function::SEEDED;
use io_probe_surface::value::Timestamp;
use io_probe_surface::write::WriteRow;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::ping::seed;
use super::shared::{self, CONTRADICTED, Caveats, SMALL, ms, of_leaves};
use crate::call::named::{NamedEnum, named};
use crate::call::{Begin, Call, Options, Outcome, Probe, ProbedPlace, arguments, figure};
use crate::error::Result;
use crate::gucs;
use crate::pg::backend::interrupts::Interrupts;
use crate::pg::backend::{Elements, JsonbText, Rows, SqlInterval, Text, server};

/// Writes in flight, unless the call says otherwise.
const DEPTH: u32 = 16;

#[pg_extern(sql = false)]
fn io_probe_write(
    spcname: Option<Text>,
    patterns: Option<Elements<Text>>,
    duration: Option<SqlInterval>,
    depth: Option<i32>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, SEEDED)?;
        let depth = arguments::depth(depth, DEPTH)?;
        let patterns = Pattern::list(patterns.map(|given| given.0), |_| Ok(()))?;
        let patterns = patterns.unwrap_or_else(|| Pattern::ALL.to_vec());
        let ways: Vec<(Pattern, WriteWay)> =
            patterns.iter().flat_map(|pattern| pattern.ways(depth)).collect();
        let limits = options.limits(duration, ways.len())?;
        let seed = arguments::seed(seed(&options)?);
        rows(ways, seed, limits, options.waits()?, || ProbedPlace::of_data(spcname.as_deref()))
    })
}

/// Writes in these ways at a place, which is found as in [`Begin::on_place`]: a row for each.
pub(super) fn rows(
    ways: Vec<(Pattern, WriteWay)>,
    seed: u64,
    limits: Limits,
    waits: bool,
    find: impl Fn() -> Result<ProbedPlace>,
) -> Result<Vec<WriteRow>> {
    let (call, place) = Begin { writes: true, waits, ..Begin::of(Probe::Write) }.on_place(find)?;
    let place = if call.ended().is_none() { place.located() } else { place };
    Written { ways, limits, seed, place, started_at: server::present() }.rows(&call)
}

/// Past the page cache: blocks at random, one and several in flight, and long writes in sequence.
pub(super) fn direct_ways() -> Result<Vec<(Pattern, WriteWay)>> {
    let depth = arguments::depth(None, DEPTH)?;
    Ok([Pattern::Random, Pattern::Sequential].iter().flat_map(|pattern| pattern.ways(depth)).collect())
}

named! {
    /// Who writes so.
    pub(super) enum Pattern: "pattern", "patterns" {
        Random = "random",
        Sequential = "sequential",
        Checkpoint = "checkpoint",
        Backend = "backend",
        Copy = "copy",
    }
}

impl Pattern {
    /// Its ways to write: one row each.
    fn ways(self, depth: u32) -> Vec<(Self, WriteWay)> {
        let (order, flush_after) = match self {
            Self::Random => (WriteOrder::Random, 0),
            Self::Sequential => (WriteOrder::Sequential, 0),
            Self::Checkpoint => (WriteOrder::Sorted, bytes_of_setting(c"checkpoint_flush_after")),
            Self::Backend => (WriteOrder::Random, bytes_of_setting(c"backend_flush_after")),
            Self::Copy => (WriteOrder::Sequential, bytes_of_setting(c"backend_flush_after")),
        };
        let length = if self == Self::Sequential { LONG_WRITE } else { pg_sys::BLCKSZ };
        let depths: &[Option<usize>] = match self {
            Self::Random if depth > 1 => &[Some(1), Some(depth as usize)],
            Self::Random | Self::Sequential => &[Some(depth as usize)],
            Self::Checkpoint | Self::Backend | Self::Copy => &[None],
        };
        depths.iter().map(|&direct| (self, WriteWay { order, length, direct, flush_after })).collect()
    }
}

/// The value in bytes of a setting that counts blocks.
fn bytes_of_setting(setting: &CStr) -> u64 {
    server::number::<u64>(setting).unwrap_or(0) * u64::from(pg_sys::BLCKSZ)
}

/// A call of this function.
struct Written {
    ways: Vec<(Pattern, WriteWay)>,
    limits: Limits,
    seed: u64,
    place: ProbedPlace,
    started_at: Timestamp,
}

/// What was measured.
struct Found {
    all: Vec<WriteTimes>,
    scratch_bytes: u64,
    surroundings: Surroundings,
}

impl Written {
    fn rows(&self, call: &Call) -> Result<Vec<WriteRow>> {
        let mut caveats = Caveats::default();
        let is_over =
            |found: &Found| found.all.iter().filter_map(|times| times.stop).find(|stop| stop.is_for_all());
        let found = caveats.accept(call.attempt(|| self.measure(call), is_over))?;
        let rows = self.ways.iter().enumerate().map(|(index, way)| {
            let times = found.as_ref().map(|found| (found, &found.all[index]));
            self.row(way, times, caveats.clone())
        });
        Ok(rows.collect())
    }

    fn measure(&self, call: &Call) -> Outcome<Found> {
        let place = &self.place;
        place.check_admitted()?;
        let interrupts = Interrupts::of(Vec::new());
        call.progress.path("scratch file", 0);
        let (scratch, _name) =
            place.make_scratch(ProbedPlace::MOST_SCRATCH, Fill::Incompressible, self.limits, &mut || {
                call.should_stop(&interrupts)
            })?;
        let scratch_bytes = scratch.size();
        let ways: Vec<WriteWay> = self.ways.iter().map(|(_, way)| *way).collect();
        let observer = place.observer();
        let run = WriteRun {
            engine: gucs::engine(),
            ways: &ways,
            scratch: Arc::new(scratch),
            seed: self.seed,
            limits: self.limits,
            observer: &observer,
        };
        let (all, surroundings) = observer.beside(|| {
            call.with_budget(&interrupts, |budget| {
                writes::run(&run, budget, &mut |turn, turns, _| call.progress.turn("writes", turn, turns))
            })
        });
        Ok(Found { all: all?, scratch_bytes, surroundings })
    }

    fn row(
        &self,
        (pattern, way): &(Pattern, WriteWay),
        found: Option<(&Found, &WriteTimes)>,
        mut caveats: Caveats,
    ) -> WriteRow {
        let placement = &self.place.placement;
        let mount = placement.mount.as_ref();
        if let Some((found, times)) = found {
            if placement.is_in_memory() {
                caveats.void(&NotDurable::InMemory.to_string());
            } else {
                judge(way, times, &mut caveats);
                doubt_size(way, found.scratch_bytes, times, &mut caveats);
            }
            if found.surroundings.is_disturbed() {
                caveats.doubt_since(Doubt::Others, "others read from the device meanwhile");
            }
            caveats.note_held_back(&found.surroundings.held_back);
        }
        let timed = found.map(|(_, times)| times).filter(|_| !caveats.has(Doubt::Void));
        let total = timed.map(WriteTimes::total).filter(|total| total.work > 0);
        let writes_s = total.and_then(|total| total.ns_each()).map(|ns| 1e9 / ns);
        let latencies = timed.map(|times| shared::latencies(&times.latencies)).unwrap_or_default();
        WriteRow {
            pattern: pattern.name(),
            path: if way.direct.is_some() { "direct" } else { "os" },
            depth: way.direct.unwrap_or(1) as u32,
            write_kb: way.length >> 10,
            flush_kb: (way.flush_after > 0).then_some(way.flush_after >> 10),
            writes_s: writes_s.map(figure),
            mib_s: writes_s.map(|writes| shared::mib_s(writes, way.length.into())),
            p50_us: latencies.p50_us,
            p95_us: latencies.p95_us,
            p99_us: latencies.p99_us,
            histogram: latencies.histogram,
            fsync_ms: timed.and_then(|times| times.syncs.ns_each()).map(|ns| figure(ns / 1e6)),
            ops: total.map_or(0, |total| total.work),
            elapsed_ms: total.map(|total| ms(total.ns)),
            device_mib: found
                .and_then(|(_, times)| times.moved)
                .map(|bytes| figure(bytes as f64 / f64::from(1 << 20))),
            scratch_mib: found.map(|(found, _)| found.scratch_bytes >> 20),
            device: of_leaves(placement, |leaf| Some(&leaf.name)).map(Into::into),
            scheduler: of_leaves(placement, |leaf| leaf.scheduler.as_deref()).map(Into::into),
            write_cache: of_leaves(placement, |leaf| leaf.write_cache.as_deref()).map(Into::into),
            fs_type: mount.map(|mount| mount.fs_type.clone().into()),
            directory: mount.map(|_| placement.directory.display().to_string().into()),
            seed: self.seed as i64,
            started_at: self.started_at,
            interval: shared::interval_of_rate(timed.and_then(WriteTimes::interval), &mut caveats),
            caveats: caveats.columns(),
        }
    }
}

/// The caches of drives and controllers may hold all of a small file. What a device says of its write cache
/// does not tell of those with a battery. A sync, as on path os, empties the others.
fn doubt_size(way: &WriteWay, scratch_bytes: u64, times: &WriteTimes, caveats: &mut Caveats) {
    if way.direct.is_some() && times.total().work > 0 && scratch_bytes < SMALL {
        let (mib, least) = (scratch_bytes >> 20, SMALL >> 20);
        let why = format!(
            "a scratch file of {mib} MiB may fit the caches below the kernel: raise \
             pg_io_probe.scratch_limit to {least}MB"
        );
        caveats.doubt_since(Doubt::Small, why);
    }
}

/// What speaks against these times.
fn judge(way: &WriteWay, times: &WriteTimes, caveats: &mut Caveats) {
    if let Some(why) = &times.refused {
        return caveats.refuse(why.clone());
    }
    if times.is_void(way) {
        caveats.void(CONTRADICTED);
    }
    match times.stop {
        Some(stop) if times.total().work == 0 && stop.is_for_all() => return caveats.not_begun(stop),
        Some(stop) => caveats.stopped(stop),
        None => {}
    }
    if times.paused {
        caveats.doubt_since(Doubt::Paced, "rate-limited: the device could take more writes");
    } else if times.interval().is_none() {
        caveats.too_short(MIN_TURNS, "turns or syncs");
    }
}
