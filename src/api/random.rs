//! `io_probe_random`: random fetches of single blocks, one row per path.

mod findings;
mod row;

use std::borrow::Cow;
use std::cell::RefCell;

use io_probe_core::files::Part;
use io_probe_core::files::holes::WithoutData;
use io_probe_core::machine::account::Account;
use io_probe_core::machine::observer::IoDelta;
use io_probe_core::measure::random::{self, FetchOrder, FetchReader, Look, Queued};
use io_probe_core::run::budget::Limits;
use io_probe_core::run::order::{Permutation, overlap};
use io_probe_surface::function::MEASURING;
use io_probe_surface::random::RandomRow;
use io_probe_surface::value::Timestamp;
use pgrx::prelude::*;

use super::cache::cached_bytes;
use super::shared::account_notes;
use crate::call::{Begin, Call, NamedEnum, Options, Outcome, Probe, ProbedRelation, ReadPath, arguments};
use crate::error::Result;
use crate::pg::backend::{Elements, JsonbText, Rows, SqlInterval, Text, server};
use crate::pg::storage::buffers::{Resident, Usage};
use crate::pg::storage::server_reader::{self, Missing, ServerReader};

#[allow(clippy::too_many_arguments, reason = "the SQL signature")]
#[pg_extern(sql = false)]
fn io_probe_random(
    rel: Option<pg_sys::Oid>,
    paths: Option<Elements<Text>>,
    duration: Option<SqlInterval>,
    cold: Option<bool>,
    depth: Option<i32>,
    seed: Option<i64>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, MEASURING)?;
        let depth = arguments::depth(depth, 1)?;
        let rel = arguments::relation(rel)?;
        let paths = ReadPath::pick(paths.map(|given| given.0))?;
        let arguments = RandomArguments {
            limits: options.limits(duration, paths.len())?,
            paths,
            cold: cold.unwrap_or(false),
            depth,
            seed: arguments::seed(seed),
        };
        let waits = options.waits()?;

        let (call, relation) =
            Begin { evicts: arguments.cold, waits, ..Begin::of(Probe::Random) }.on_relation(rel)?;
        let cached = RefCell::default();
        let target = RandomTarget { arguments: &arguments, call: &call, relation: &relation, cached };
        arguments.paths.iter().enumerate().map(|(index, &path)| target.row(path, index)).collect()
    })
}

struct RandomArguments {
    paths: Vec<ReadPath>,
    cold: bool,
    depth: u32,
    seed: u64,
    limits: Limits,
}

/// Where a path starts, and what it finds there.
#[derive(Clone, Copy)]
struct StartAt {
    /// The place in the order.
    first: u64,
    /// Was the OS cache verified to hold nothing of the relation? None if the call does not ask for that, or
    /// the kernel does not tell.
    emptied: Option<bool>,
}

struct RandomTarget<'a> {
    arguments: &'a RandomArguments,
    call: &'a Call,
    relation: &'a ProbedRelation,
    /// Where the paths so far started that read through the OS cache, and how many blocks each fetched.
    cached: RefCell<Vec<(u64, u64)>>,
}

struct FetchWay {
    path: ReadPath,
    place: StartAt,
    engine: Cow<'static, str>,
    /// Requests in flight, as far as that was allowed.
    depth: u32,
    /// The processes whose reads count.
    account: Account,
}

struct PathOutcome {
    way: FetchWay,
    began: Timestamp,
    run: random::RandomRun,
    cost: IoDelta,
    /// Did it fetch blocks that an earlier path had brought into the OS cache?
    warmed: bool,
    usage: Usage,
    /// What the OS cache lacked of the blocks that the server read ahead; None if unknown.
    missing: Option<Missing>,
    /// Bytes that had to be written back first.
    written_back: u64,
    notes: Vec<String>,
}

impl RandomTarget<'_> {
    fn row(&self, path: ReadPath, index: usize) -> Result<RandomRow> {
        let tried_at = server::present();
        let measured = self.call.attempt_path(|| self.measure(path, index), |found| found.run.stop);
        row::row(self, path, tried_at, measured)
    }

    fn measure(&self, path: ReadPath, index: usize) -> Outcome<PathOutcome> {
        let blocks = self.relation.source.blocks();
        self.call.progress.path(path.name(), blocks);
        let emptied = if self.arguments.cold { self.evict()? } else { None };
        // Each path starts elsewhere in the order, so that it comes late to the blocks of another.
        let share = blocks / self.arguments.paths.len() as u64;
        let place = StartAt { first: index as u64 * share, emptied };
        let found = match path {
            ReadPath::Direct => self.queued(path, Look::Never, place)?,
            ReadPath::Os => {
                let look = Look::for_depth(self.arguments.depth as usize);
                self.queued(path, look, place)?
            }
            ReadPath::Server => self.server(place)?,
        };
        let fetched = (place.first, found.run.fetches);
        let mut cached = self.cached.borrow_mut();
        let warmed = cached.iter().any(|earlier| overlap(*earlier, fetched, blocks));
        if path != ReadPath::Direct {
            cached.push(fetched);
        }
        Ok(PathOutcome { warmed, ..found })
    }

    /// Empties the caches: see [`StartAt::emptied`].
    fn evict(&self) -> Outcome<Option<bool>> {
        self.relation.reads_of_device()?;
        self.relation.evict_all(self.call)?;
        Ok(cached_bytes(&self.relation.source).map(|bytes| bytes == 0))
    }

    /// Measures a path that passes the server by, with an engine of our own.
    fn queued(&self, path: ReadPath, look: Look, place: StartAt) -> Outcome<PathOutcome> {
        let depth = self.arguments.depth;
        let mut opened = ProbedRelation::engine(depth, self.relation.block_size())?;
        let engine = opened.kind.name().into();
        let notes = opened.note.into_iter().collect();
        let mut fetch_order = self.fetch_order(place, look, None);
        let mut reader = Queued::new(opened.engine.as_mut(), depth as usize);
        let way = FetchWay { path, place, engine, depth, account: Account::Own };
        let found = self.run(way, &mut fetch_order, &mut reader)?;
        Ok(PathOutcome { written_back: fetch_order.written_back(), notes, ..found })
    }

    fn server(&self, place: StartAt) -> Outcome<PathOutcome> {
        let RandomArguments { depth: wanted, cold, .. } = *self.arguments;
        let mut notes = Vec::new();
        let mut depth = server_reader::Random::reads_ahead(&self.relation.relation, wanted).max(1);
        if depth < wanted {
            notes.push(format!("here the server reads at most {depth} blocks ahead"));
        }
        if depth > 1 && self.arguments.limits.make_pauses() {
            // What is read ahead is pinned, and would be for as long as the limit makes it pause.
            depth = 1;
            notes.push("under a rate limit the server path reads nothing ahead".to_owned());
        }
        // A single read is the backend's own, whatever io_method says.
        let account = if depth == 1 { Account::Own } else { server::read_account() };
        let resident = Resident::new(&self.relation.relation);
        let without_data = |part: &Part, holes| resident.remove_from(part, holes);
        let mut fetch_order =
            self.fetch_order(place, server_reader::Random::look(depth), Some(&without_data));
        let mut reader = ServerReader::random(&self.relation.relation, depth, cold.then_some(&resident));
        let engine = server::fetch_method(depth).into();
        let way = FetchWay { path: ReadPath::Server, place, engine, depth, account };
        let found = self.run(way, &mut fetch_order, &mut reader)?;
        notes.extend(account_notes(account, &found.cost));
        let missing = reader.missing().filter(|_| depth > 1);
        Ok(PathOutcome { usage: reader.usage(), missing, notes, ..found })
    }

    fn fetch_order<'p>(
        &'p self,
        place: StartAt,
        look: Look,
        without_data: Option<&'p WithoutData<'p>>,
    ) -> FetchOrder<'p> {
        let source = &self.relation.source;
        let look = if self.arguments.limits.make_pauses() { look.for_pauses() } else { look };
        let order = Permutation::new(source.blocks(), self.arguments.seed);
        FetchOrder::with_data(source, order, place.first, look, without_data)
    }

    /// Fetches in the order. What the reader and the order know at the end is left to the caller.
    fn run(
        &self,
        way: FetchWay,
        fetch_order: &mut FetchOrder<'_>,
        reader: &mut FetchReader<'_>,
    ) -> Outcome<PathOutcome> {
        let relation = self.relation;
        fetch_order.inspect_segments(&mut || self.call.should_stop(&relation.interrupts))?;
        let began = server::present();
        let (run, cost) = self.call.observed(relation, way.account, |budget| {
            random::run(fetch_order, reader, &self.arguments.limits, budget, &mut |done| {
                self.call.progress.done(done)
            })
        })?;
        Ok(PathOutcome {
            way,
            began,
            run,
            cost,
            warmed: false,
            usage: Usage::default(),
            missing: None,
            written_back: 0,
            notes: Vec::new(),
        })
    }
}
