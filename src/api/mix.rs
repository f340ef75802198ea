//! `io_probe_mix`: reads of a relation while scratch files are written, at several loads.

use std::sync::Arc;

use io_probe_core::engine;
use io_probe_core::files::scratch::{Fill, ScratchName};
use io_probe_core::machine::account::Account;
use io_probe_core::machine::device::Placement;
use io_probe_core::machine::observer::{Observer, Surroundings};
use io_probe_core::measure::load::{BlockReads, Reached, Requests, ScratchWrites};
use io_probe_core::measure::mix::{self, Cell, MixRun, Present, READS, WRITES};
use io_probe_core::measure::sync::NotDurable;
use io_probe_core::measure::writes::LONG_WRITE;
use io_probe_core::run::budget::Limits;
use io_probe_surface::doubt::Doubt;
use io_probe_surface::function::SEEDED;
use io_probe_surface::mix::MixRow;
use io_probe_surface::shared::{LatencyColumns, PlaceColumns};
use io_probe_surface::value::Timestamp;
use pgrx::prelude::*;

use super::direct_reads::{self, Runs};
use super::ping::seed;
use super::shared::{self, CONTRADICTED, Caveats, ms, of_leaves};
use crate::call::named::{NamedEnum, named};
use crate::call::{
    Begin, Call, Failure, Options, Outcome, Probe, ProbedPlace, ProbedRelation, arguments, figure,
};
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::{Elements, JsonbText, Rows, SqlInterval, Text, server};
use crate::pg::history::{WatchedLoad, watched_load};
use crate::pg::storage::tablespace::Tablespace;
use crate::pg::storage::wal;

/// Most shares of a side: their pairs are rows.
const MOST_SHARES: usize = 10;

/// Greatest share, in percent of what a side reaches alone.
const MOST_SHARE: u32 = 200;

/// Greatest share, in percent of what others send.
const MOST_OF_NOW: u32 = 10_000;

#[pg_extern(sql = false)]
#[expect(clippy::too_many_arguments, reason = "the arguments of the function in SQL")]
fn io_probe_mix(
    rel: Option<pg_sys::Oid>,
    spcname: Option<Text>,
    writing: Option<Text>,
    shares: Option<Elements<i32>>,
    duration: Option<SqlInterval>,
    depth: Option<i32>,
    like: Option<Text>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, SEEDED)?;
        let rel = arguments::relation(rel)?;
        let writing = Writing::parse(writing.as_deref())?.unwrap_or(Writing::Data);
        let like = Like::parse(like.as_deref())?;
        let shares = pick(shares.map(|given| given.0), like)?;
        let depth = of_each_side(depth)?;
        let seed = arguments::seed(seed(&options)?);
        let candidate = spcname.as_deref().map(Tablespace::to_write).transpose()?;
        let rows = match like {
            Some(_) => 3 + shares.len(),
            None => loads(&shares),
        };
        let limits = options.limits(duration, rows)?;
        Measured { candidate, writing, shares, like, depth, seed, limits }.begin(rel, options.waits()?)
    })
}

/// Rows of loads at these shares, each side alone included.
pub(super) fn loads(shares: &[u32]) -> usize {
    1 + shares.len() * shares.len() + usize::from(shares[0] != 0)
}

/// Reads of a relation beside such writes, at these shares, ascending. The limits are those of each load.
pub(super) fn beside(
    rel: pg_sys::Oid,
    writing: Writing,
    shares: &[u32],
    limits: Limits,
    waits: bool,
) -> Result<Vec<MixRow>> {
    let (shares, depth, seed) = (shares.to_vec(), of_each_side(None)?, arguments::seed(None));
    Measured { candidate: None, writing, shares, like: None, depth, seed, limits }.begin(rel, waits)
}

/// The loads of rows.
pub(super) const BEND: &str = "bend";
pub(super) const READS_ALONE: &str = "reads alone";
pub(super) const WRITES_ALONE: &str = "writes alone";
pub(super) const CELL: &str = "cell";

named! {
    /// What is written.
    pub(super) enum Writing: "way of writing", "ways of writing" {
        Data = "data",
        Sequential = "sequential",
        Wal = "wal",
    }
}

/// What a load is to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Like {
    /// What others send now.
    Now,
    /// What a stored run of iostat saw.
    Run(i64),
}

impl Like {
    fn parse(like: Option<&str>) -> Result<Option<Self>> {
        let Some(like) = like else { return Ok(None) };
        if like == "now" {
            return Ok(Some(Self::Now));
        }
        match like.parse() {
            Ok(run) => Ok(Some(Self::Run(run))),
            Err(_) => Err(Error::invalid(format!("unknown load \"{like}\""))
                .hint("Valid loads are \"now\", and the number of a stored run of io_probe_iostat.")),
        }
    }
}

impl Writing {
    fn bytes(self, block_size: u32) -> u32 {
        match self {
            Self::Data => block_size,
            Self::Sequential => LONG_WRITE,
            Self::Wal => wal::BLOCK_BYTES,
        }
    }
}

/// The shares that were asked for, each once, ascending.
fn pick(shares: Option<Vec<Option<i32>>>, like: Option<Like>) -> Result<Vec<u32>> {
    let (usual, most) = match like {
        None => (vec![0, 20, 40, 60, 80], MOST_SHARE),
        Some(_) => (vec![100, 200, 400], MOST_OF_NOW),
    };
    let Some(shares) = shares else { return Ok(usual) };
    arguments::not_empty("shares", &shares)?;
    let shares = arguments::numbers("shares", shares, |share| match share {
        0 if like.is_none() => Ok(0),
        share => arguments::positive_up_to("share", share, most),
    })?;
    arguments::not_over("shares", shares.len(), MOST_SHARES)?;
    if shares == [0] {
        return Err(Error::invalid("shares must contain a share over 0"));
    }
    Ok(shares)
}

/// Requests in flight of a side: both together have no more than the cap.
pub(super) fn of_each_side(depth: Option<i32>) -> Result<u32> {
    let cap = gucs::depth(None, u32::MAX)?;
    match depth {
        Some(depth) => arguments::positive_up_to("depth", depth, cap / 2),
        None if cap < 2 => {
            Err(Error::invalid("a mixed load needs at least two requests in flight, one read and one write"))
        }
        None => Ok((cap / 2).min(16)),
    }
    .map_err(|error| error.detail(format!("Reads and writes share pg_io_probe.max_depth, which is {cap}.")))
}

/// What is to be measured.
struct Measured {
    /// The tablespace to be tried instead of the relation's own.
    candidate: Option<Tablespace>,
    writing: Writing,
    shares: Vec<u32>,
    like: Option<Like>,
    depth: u32,
    seed: u64,
    limits: Limits,
}

/// What was measured, and what went on beside it.
struct Found {
    mix: mix::Mix,
    /// What others sent before.
    present: Option<[Present; 2]>,
    /// Bytes of a read and of a write.
    sizes: [u64; 2],
    /// Blocks that are read before they begin again.
    blocks: u64,
    /// Is what was written in memory?
    in_memory: bool,
    surroundings: Surroundings,
    /// Of the tablespace that was tried instead of the relation's own.
    tried: Option<Placement>,
}

impl Measured {
    fn begin(&self, rel: pg_sys::Oid, waits: bool) -> Result<Vec<MixRow>> {
        let begin = Begin { writes: true, waits, ..Begin::of(Probe::Mix) };
        let (call, relation) = match self.candidate {
            Some(_) => begin.beside_relation(rel)?,
            None => begin.on_relation(rel)?,
        };
        if self.writing != Writing::Wal && self.candidate.is_none() {
            relation.relation.file_tablespace().check_may_write()?;
        }
        self.rows(&call, &relation)
    }

    fn rows(&self, call: &Call, relation: &ProbedRelation) -> Result<Vec<MixRow>> {
        let started_at = server::present();
        let mut caveats = Caveats::default();
        let found = call.attempt_path(|| self.measure(call, relation), |found| found.mix.stop);
        let found = caveats.accept(found)?;
        let usual =
            [relation.source.block_size(), self.writing.bytes(relation.source.block_size())].map(u64::from);
        let sizes = found.as_ref().map_or(usual, |found| found.sizes);
        let tried = found.as_ref().and_then(|found| found.tried.as_ref());
        let call_row = CallRow { measured: self, sizes, place: self.place(relation, tried), started_at };
        let Some(found) = found else { return Ok(vec![call_row.row(BEND, None, caveats)]) };
        let caveats = self.caveats(&found, relation);
        let others = caveats.doubts_alone();
        let [reads, writes] = &found.mix.alone;
        let mut rows = vec![call_row.row(BEND, found.mix.bend(), caveats)];
        rows.extend(found.present.map(|[reads, writes]| MixRow {
            read_pct: Some(100),
            write_pct: Some(100),
            reads_s: Some(figure(reads.per_s)),
            writes_s: Some(figure(writes.per_s)),
            caveats: Caveats::default().columns(),
            ..call_row.row("others", None, others.clone())
        }));
        rows.push(call_row.row(READS_ALONE, Some(reads), others.clone()));
        rows.push(call_row.row(WRITES_ALONE, Some(writes), others.clone()));
        rows.extend(found.mix.cells.iter().map(|cell| call_row.row(CELL, Some(cell), others.clone())));
        Ok(rows)
    }

    fn measure(&self, call: &Call, relation: &ProbedRelation) -> Outcome<Found> {
        call.progress.path(self.writing.name(), 0);
        let own = relation.relation.file_tablespace();
        let present = self.present(call, relation, &self.written(own))?;
        let sizes = self.sizes(relation, present);
        let workers = [self.depth, if self.writing == Writing::Wal { 1 } else { self.depth }];
        let workers = workers.map(|count| count as usize);
        let tried = self.candidate.map(|candidate| ProbedPlace::of_tablespace(candidate).located());
        let written = self.written(self.candidate.unwrap_or(own));
        for place in tried.iter().chain([&written]) {
            place.check_admitted()?;
        }
        let is_run = sizes[READS] > relation.block_size();
        let runs = is_run.then_some(Runs { bytes: sizes[READS] as usize, random: Some(self.seed) });
        let (reads, _read_name) = match &tried {
            None => {
                relation.reads_of_device()?;
                (direct_reads::of(call, relation, self.seed, workers[READS], runs)?, None)
            }
            Some(place) => self.scratch_reads(call, relation, place, workers[READS], runs)?,
        };
        let blocks = reads.blocks();
        let fill = match self.writing {
            Writing::Wal => Fill::Zeros { write_bytes: wal::SEGMENT_FILL },
            _ => Fill::Incompressible,
        };
        let (scratch, _name) =
            written.make_scratch(self.scratch_bytes()[WRITES], fill, self.limits, &mut || {
                call.should_stop(&relation.interrupts)
            })?;
        let random = (self.writing == Writing::Data).then_some(self.seed);
        let writes = ScratchWrites::new(
            Arc::new(scratch),
            libc::O_DIRECT,
            sizes[WRITES] as u32,
            random,
            self.writing == Writing::Wal,
        )?;
        let sides: [Arc<dyn Requests>; 2] = [Arc::new(reads), Arc::new(writes)];
        let of_reads = tried.as_ref().map_or_else(|| relation.observer(Account::Own), ProbedPlace::observer);
        let observers = [&of_reads, &written.observer()];
        let (shares, limits, engine) = (&self.shares, self.limits, gucs::engine());
        let run = MixRun { sides, shares, like: present, workers, engine, limits, observers };
        let read_from = tried.as_ref().map_or(&relation.placement, |place| &place.placement);
        let leaves = read_from.leaves_with(&written.placement);
        let (mix, surroundings) = of_reads.of(&leaves, written.placement.leaves.len()).beside(|| {
            call.with_budget(&relation.interrupts, |budget| {
                mix::run(&run, budget, &mut |turn, turns| {
                    call.progress.turn(self.writing.name(), turn, turns);
                })
            })
        });
        let in_memory = written.placement.is_in_memory();
        let tried = tried.map(|place| place.placement);
        Ok(Found { mix: mix?, present, sizes, blocks, in_memory, surroundings, tried })
    }

    /// Does the load of others go on beside this one?
    fn is_on_top(&self) -> bool {
        self.like == Some(Like::Now) && self.candidate.is_none()
    }

    /// Most bytes of the scratch files of each side: together they have no more than the limit on such files.
    fn scratch_bytes(&self) -> [u64; 2] {
        let limit = gucs::SCRATCH_LIMIT.bytes();
        let left = match (self.candidate, self.writing) {
            (None, _) => limit,
            (Some(_), Writing::Wal) => limit.saturating_sub(wal::segment_bytes()),
            (Some(_), _) => limit / 2,
        };
        let of_data = left.min(ProbedPlace::MOST_SCRATCH);
        [
            if self.candidate.is_some() { of_data } else { 0 },
            if self.writing == Writing::Wal { wal::segment_bytes() } else { of_data },
        ]
    }

    /// Where is written if the relation lies in this tablespace.
    fn written(&self, tablespace: Tablespace) -> ProbedPlace {
        match self.writing {
            Writing::Wal => ProbedPlace::of_wal(),
            _ => ProbedPlace::of_tablespace(tablespace),
        }
        .located()
    }

    /// Reads of a scratch file as it might be in a tablespace.
    fn scratch_reads(
        &self,
        call: &Call,
        relation: &ProbedRelation,
        place: &ProbedPlace,
        workers: usize,
        runs: Option<Runs>,
    ) -> Outcome<(BlockReads, Option<ScratchName>)> {
        let (scratch, name) = place.make_scratch(
            self.scratch_bytes()[READS],
            Fill::Incompressible,
            self.limits,
            &mut || call.should_stop(&relation.interrupts),
        )?;
        let block_size = relation.source.block_size();
        let reads = BlockReads::of_scratch(&scratch, block_size, self.seed, workers)?;
        Ok((direct_reads::in_runs(reads, workers, runs)?, name))
    }

    /// What others send, or sent, if it is to be like that.
    fn present(
        &self,
        call: &Call,
        relation: &ProbedRelation,
        written: &ProbedPlace,
    ) -> Outcome<Option<[Present; 2]>> {
        let Some(like) = self.like else { return Ok(None) };
        let observers = [&relation.observer(Account::Own), &written.observer()];
        if observers.iter().any(|observer| observer.devices() > 1) {
            return Err(Failure::Unsupported(
                "the volume has several devices, and each counts its own requests: how many others send to \
                 the whole volume is not known"
                    .to_owned(),
            ));
        }
        let present = match like {
            Like::Now => self.listen(call, relation, observers)?,
            Like::Run(run) => self.stored(run, [&relation.placement, &written.placement])?,
        };
        if present.iter().all(|side| side.per_s == 0.0) {
            return Err(Failure::Unsupported(
                "others neither read nor write, so there is no load to copy".to_owned(),
            ));
        }
        Ok(Some(present))
    }

    /// What others send now.
    fn listen(
        &self,
        call: &Call,
        relation: &ProbedRelation,
        observers: [&Observer<'_>; 2],
    ) -> Outcome<[Present; 2]> {
        call.progress.path("listening", 0);
        let found = call.with_budget(&relation.interrupts, |budget| {
            Present::listen(observers, self.writing == Writing::Wal, self.limits.duration, budget)
        })?;
        found.ok_or_else(|| {
            Failure::Unsupported(
                "the device does not count its requests or flushes, so the load of others is not known"
                    .to_owned(),
            )
        })
    }

    /// What a stored run saw of the devices.
    fn stored(&self, run: i64, placements: [&Placement; 2]) -> Outcome<[Present; 2]> {
        let [reads, writes] = [watched(run, placements[READS])?, watched(run, placements[WRITES])?];
        let writes = match self.writing {
            Writing::Wal => {
                let Some(per_s) = writes.f_s else {
                    return Err(Failure::Unsupported("the stored run has no count of flushes".to_owned()));
                };
                Present { per_s, bytes: 0.0 }
            }
            _ => Present { per_s: writes.w_s, bytes: writes.w_bytes },
        };
        Ok([Present { per_s: reads.r_s, bytes: reads.r_bytes }, writes])
    }

    /// Bytes of a read and of a write: if they are to be like others', whole blocks, up to the longest.
    fn sizes(&self, relation: &ProbedRelation, present: Option<[Present; 2]>) -> [u64; 2] {
        let block_size = relation.block_size();
        let usual = self.writing.bytes(relation.source.block_size()).into();
        match present {
            None => [block_size, usual],
            Some([reads, _]) if self.writing != Writing::Data => [whole_blocks(reads, block_size), usual],
            Some(sides) => sides.map(|side| whole_blocks(side, block_size)),
        }
    }

    /// What speaks against all of it.
    fn caveats(&self, found: &Found, relation: &ProbedRelation) -> Caveats {
        let mut caveats = Caveats::default();
        if found.in_memory {
            caveats.void(&NotDurable::InMemory.to_string());
        }
        if let Some(stop) = found.mix.stop {
            caveats.stopped(stop);
        }
        if self.is_on_top() {
            caveats.note("others go on sending requests: this load comes on top of theirs");
        }
        if found.mix.paced {
            caveats.doubt_since(
                Doubt::Paced,
                "rate-limited: read_pct and write_pct are shares of the rates that the limits allow",
            );
        }
        if found.surroundings.is_disturbed() && !self.is_on_top() {
            caveats.doubt_since(Doubt::Others, "others used the devices meanwhile");
        }
        if self.depth > 1 && !engine::uses_ring(gucs::engine(), self.depth as usize).is_ok_and(|uses| uses) {
            caveats
                .note("threads send the requests, not io_uring: latencies include the time to wake threads");
        }
        caveats.note_held_back(&found.surroundings.held_back);
        let reads = found.mix.alone.iter().chain(&found.mix.cells).filter_map(|cell| cell.reached.as_ref());
        let read_bytes: u64 = reads.map(|reached| reached[READS].bytes).sum();
        caveats.read_up_to(read_bytes.div_ceil(relation.block_size()).div_ceil(found.blocks.max(1)));
        if self.candidate.is_some() {
            let mib = self.scratch_bytes()[READS] >> 20;
            caveats.doubt_since(
                Doubt::Small,
                format!(
                    "the file that is read was just written, and has at most {mib} MiB: caches below the \
                     kernel may hold it"
                ),
            );
        }
        caveats.note_open_files(relation);
        if found.mix.cells.iter().all(|cell| cell.carries() == Some(true)) {
            caveats.note("the device kept up with all loads: only greater loads can show its limit");
        }
        caveats.note_relation(relation);
        caveats
    }

    /// What was read: the relation, or a file in the tablespace that was tried.
    fn place(&self, relation: &ProbedRelation, tried: Option<&Placement>) -> PlaceColumns {
        let of_relation = shared::place(relation);
        let Some(tried) = tried else { return of_relation };
        PlaceColumns {
            device: of_leaves(tried, |leaf| Some(&leaf.name)).map(Into::into),
            scheduler: of_leaves(tried, |leaf| leaf.scheduler.as_deref()).map(Into::into),
            read_ahead_kb: tried.read_ahead_kb,
            spcname: self.candidate.and_then(Tablespace::name).map(Into::into),
            ..of_relation
        }
    }
}

/// What a stored run of iostat saw of a side's device.
fn watched(run: i64, placement: &Placement) -> Result<WatchedLoad> {
    let device = placement.leaves.first().map_or("", |leaf| leaf.name.as_str());
    watched_load(run, device).ok_or_else(|| {
        Error::undefined_object(format!("run {run} has no iostat figures of device \"{device}\""))
            .hint("io_probe_record('iostat') stores a run of io_probe_iostat.")
    })
}

/// Bytes of a request that is like those of a side: whole blocks, up to the longest.
fn whole_blocks(side: Present, block_size: u64) -> u64 {
    let blocks = (side.bytes / block_size as f64).round().max(1.0) as u64;
    (blocks * block_size).min(LONG_WRITE.into())
}

/// What all rows of a call have.
struct CallRow<'a> {
    measured: &'a Measured,
    /// Bytes of a read and of a write.
    sizes: [u64; 2],
    place: PlaceColumns,
    started_at: Timestamp,
}

impl CallRow<'_> {
    fn row(&self, load: &'static str, cell: Option<&Cell>, mut caveats: Caveats) -> MixRow {
        let reached = cell.and_then(|cell| cell.reached.as_ref());
        if cell.is_some_and(Cell::is_void) {
            caveats.void(CONTRADICTED);
        }
        if reached.is_none() && caveats.is_ok() {
            let why = if load == BEND {
                "no load was carried"
            } else {
                "not sent: the rate of reads or of writes alone is not known"
            };
            caveats.doubt_since(Doubt::Short, why);
        }
        let timed = reached.filter(|_| !caveats.has(Doubt::Void));
        let [reads, writes] = [READS, WRITES].map(|side| SideColumns::of(cell, timed, side));
        let elapsed = timed.map(|reached| reached[READS].ns.max(reached[WRITES].ns));
        MixRow {
            load,
            read_pct: cell.map(|cell| cell.shares[READS]),
            write_pct: cell.map(|cell| cell.shares[WRITES]),
            reads_s: reads.per_s,
            r_p50_us: reads.latencies.p50_us,
            r_p95_us: reads.latencies.p95_us,
            r_p99_us: reads.latencies.p99_us,
            r_histogram: reads.latencies.histogram,
            writes_s: writes.per_s,
            w_p50_us: writes.latencies.p50_us,
            w_p95_us: writes.latencies.p95_us,
            w_p99_us: writes.latencies.p99_us,
            w_histogram: writes.latencies.histogram,
            carried: cell.filter(|_| matches!(load, BEND | CELL)).and_then(Cell::carries),
            sent_reads_s: reads.sent_per_s,
            sent_writes_s: writes.sent_per_s,
            writing: self.measured.writing.name(),
            read_kb: (self.sizes[READS] >> 10) as u32,
            write_kb: (self.sizes[WRITES] >> 10) as u32,
            depth: self.measured.depth,
            elapsed_ms: elapsed.map(ms),
            seed: self.measured.seed as i64,
            started_at: self.started_at,
            place: self.place.clone(),
            caveats: caveats.columns(),
        }
    }
}

/// What a row tells of reads, or of writes.
#[derive(Default)]
struct SideColumns {
    per_s: Option<f64>,
    latencies: LatencyColumns,
    sent_per_s: Option<f64>,
}

impl SideColumns {
    /// `timed` is what came of the cell, if that counts.
    fn of(cell: Option<&Cell>, timed: Option<&[Reached; 2]>, side: usize) -> Self {
        let Some(cell) = cell.filter(|cell| cell.shares[side] > 0) else { return Self::default() };
        let sent_per_s = cell.offered[side].map(figure);
        let Some(reached) = timed.map(|timed| &timed[side]) else {
            return Self { sent_per_s, ..Self::default() };
        };
        Self {
            per_s: reached.per_s().map(figure),
            latencies: shared::latencies(&reached.latencies),
            sent_per_s,
        }
    }
}
