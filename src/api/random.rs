//! `io_probe_random`: random fetches of single blocks, one row per path. `io_probe_random_series`: the same run
//! second by second.

mod row;
mod series;

use io_probe_core::files::source::Part;
use io_probe_core::machine::account::Account;
use io_probe_core::machine::observer::{IoDelta, Observer};
use io_probe_core::measure::random::{self, Fetcher, Look, Plan, Queued, SecondSeries, WithoutData};
use io_probe_core::run::budget::{Budget, Limits, StopCheck};
use io_probe_core::run::clock::Monotonic;
use io_probe_core::run::order::Permutation;
use pgrx::datum::Interval;
use pgrx::prelude::*;

use self::row::RandomRow;
pub(super) use self::row::{LatencyFigures, us};
use self::series::{SeriesOfPath, SeriesRow};
use super::cache::{cached_bytes, check_may_evict};
use crate::call::arguments::{self, Path};
use crate::call::options::Options;
use crate::call::probed_relation::{
    BACKEND, IO_WORKERS, Outcome, ProbedRelation, Verdict, WORKERS_ENDED, WORKERS_SERVE_ALL,
};
use crate::call::statement;
use crate::error::Result;
use crate::gucs;
use crate::pg::backend::argument::Elements;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::progress::Progress;
use crate::pg::backend::row::Rows;
use crate::pg::backend::server;
use crate::pg::storage::buffers::{Resident, Usage};
use crate::pg::storage::fetch::{BufferFetcher, Missing};
use crate::pg::storage::relation::Fork;

/// The options of these functions.
const OPTIONS: [&str; 7] =
    ["max_bytes", "max_iops", "max_mib_per_s", "max_util_pct", "max_p99_us", "precision", "wait"];

#[allow(clippy::too_many_arguments, reason = "the SQL signature")]
#[pg_extern(sql = false)]
fn io_probe_random(
    rel: Option<pg_sys::Oid>,
    paths: Option<Elements<Text>>,
    duration: Option<Interval>,
    cold: Option<bool>,
    depth: Option<i32>,
    seed: Option<i64>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| RandomRequest::check(rel, paths, duration, cold, depth, seed, options)?.rows())
}

#[allow(clippy::too_many_arguments, reason = "the SQL signature")]
#[pg_extern(sql = false)]
fn io_probe_random_series(
    rel: Option<pg_sys::Oid>,
    paths: Option<Elements<Text>>,
    duration: Option<Interval>,
    cold: Option<bool>,
    depth: Option<i32>,
    seed: Option<i64>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| RandomRequest::check(rel, paths, duration, cold, depth, seed, options)?.series())
}

/// A call whose arguments are right by themselves.
struct RandomRequest {
    rel: pg_sys::Oid,
    paths: Vec<Path>,
    cold: bool,
    depth: u32,
    seed: u64,
    limits: Limits,
    wait: bool,
}

impl RandomRequest {
    fn check(
        rel: Option<pg_sys::Oid>,
        paths: Option<Elements<Text>>,
        duration: Option<Interval>,
        cold: Option<bool>,
        depth: Option<i32>,
        seed: Option<i64>,
        options: Option<JsonbText>,
    ) -> Result<Self> {
        let options = Options::parse(options, &OPTIONS)?;
        let depth = depth.map(|depth| arguments::positive("depth", depth)).transpose()?;
        Ok(Self {
            rel: arguments::relation(rel)?,
            paths: Path::pick(paths.map(Elements::all))?,
            cold: cold.unwrap_or(false),
            depth: gucs::depth(depth, 1)?,
            seed: arguments::seed(seed),
            limits: options.limits(arguments::duration(duration)?)?,
            wait: options.flag("wait")?,
        })
    }

    fn rows(&self) -> Result<Vec<RandomRow>> {
        self.each_path(
            "io_probe_random",
            "random",
            RandomRow::new,
            |target, row, path, place, progress, should_stop| {
                let measured = target.measure(path, place, None, progress, should_stop)?;
                row.fill(target, path, &measured);
                Ok(measured.run)
            },
        )
    }

    fn series(&self) -> Result<Vec<SeriesRow>> {
        let function = "io_probe_random_series";
        let paths = self.each_path(
            function,
            "random_series",
            |_, path| SeriesOfPath::new(path),
            |target, rows, path, place, progress, should_stop| {
                let ProbedRelation { placement, roots, .. } = target.subject;
                let mut series = SecondSeries::new(placement.leaves.clone(), roots.clone());
                let measured = target.measure(path, place, Some(&mut series), progress, should_stop)?;
                rows.fill(target, &measured, series.into_seconds());
                Ok(measured.run)
            },
        )?;
        Ok(paths.into_iter().flat_map(SeriesOfPath::into_rows).collect())
    }

    /// What both functions do for each path; `measure` fills what `blank` began.
    fn each_path<R: AsMut<Verdict>>(
        &self,
        function: &str,
        probe: &str,
        blank: impl Fn(&RandomTarget<'_>, Path) -> R,
        mut measure: impl FnMut(
            &RandomTarget<'_>,
            &mut R,
            Path,
            StartAt,
            &Progress,
            &mut StopCheck<'_>,
        ) -> Outcome<random::RandomRun>,
    ) -> Result<Vec<R>> {
        if self.cold {
            check_may_evict("cold => true")?;
        }
        let (_lock, subject) = ProbedRelation::open_alone(self.rel, Fork::MAIN, function, self.wait)?;
        let blocks = subject.source.blocks();
        // Each path starts elsewhere in the order, so that it is long until one comes to where another was.
        let share = blocks / self.paths.len() as u64;
        let target = RandomTarget { request: self, subject: &subject };
        let mut warmed = false;
        subject.each_path(
            probe,
            &self.paths,
            |path| blank(&target, path),
            |row, index, path, progress, should_stop| {
                progress.path(path.name(), blocks);
                let mut emptied = None;
                if self.cold {
                    subject.reads_of_device()?;
                    if let Some(stop) = subject.evict_all(should_stop)? {
                        row.as_mut().not_begun(stop);
                        return Ok(Some(stop));
                    }
                    emptied = cached_bytes(&subject.source).map(|bytes| bytes == 0);
                }
                let place = StartAt { first: index as u64 * share, emptied, warmed };
                let run = measure(&target, row, path, place, progress, should_stop)?;
                warmed |= path != Path::Direct && run.fetches > share;
                Ok(run.stop)
            },
        )
    }
}

/// Where a path starts, and what it finds there.
#[derive(Clone, Copy)]
struct StartAt {
    /// The place in the order.
    first: u64,
    /// Was the OS cache verified to hold nothing of the relation? None if nobody asked for that, or the kernel
    /// does not tell.
    emptied: Option<bool>,
    /// Has an earlier path brought blocks into the OS cache that this one may come to?
    warmed: bool,
}

/// A relation that is being measured.
struct RandomTarget<'a> {
    request: &'a RandomRequest,
    subject: &'a ProbedRelation,
}

/// What one path did.
struct PathOutcome {
    run: random::RandomRun,
    cost: IoDelta,
    place: StartAt,
    engine: String,
    /// Requests in flight, as far as that was allowed.
    depth: u32,
    /// Whose account the device bytes come from.
    device_source: &'static str,
    usage: Usage,
    /// Of the blocks that others issued the reads for, what the OS cache did not have before; None if unknown.
    missing: Option<Missing>,
    notes: Vec<String>,
}

impl RandomTarget<'_> {
    fn measure(
        &self,
        path: Path,
        place: StartAt,
        series: Option<&mut SecondSeries>,
        progress: &Progress,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<PathOutcome> {
        match path {
            Path::Direct => self.queued(Look::Never, place, series, progress, should_stop),
            Path::Os => {
                let look = Look::for_depth(self.request.depth as usize);
                self.queued(look, place, series, progress, should_stop)
            }
            Path::Server => self.server(place, series, progress, should_stop),
        }
    }

    /// Past the server, by an engine of our own.
    fn queued(
        &self,
        look: Look,
        place: StartAt,
        series: Option<&mut SecondSeries>,
        progress: &Progress,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<PathOutcome> {
        let depth = self.request.depth;
        let mut opened = ProbedRelation::engine(depth, self.subject.block_size())?;
        let engine = opened.engine.kind().to_string();
        let mut notes: Vec<String> = opened.note.into_iter().collect();
        let mut plan = self.plan(place, look, None);
        let mut fetcher = Queued::new(opened.engine.as_mut(), depth as usize);
        let (run, cost) = self.run(&mut plan, &mut fetcher, Account::Own, series, progress, should_stop)?;
        if plan.written_back() > 0 {
            let kb = plan.written_back() / 1024;
            notes.push(format!("{kb} kB were dirty in the OS cache and were written back first"));
        }
        let (usage, missing, device_source) = (Usage::default(), None, BACKEND);
        Ok(PathOutcome { run, cost, place, engine, depth, device_source, usage, missing, notes })
    }

    fn server(
        &self,
        place: StartAt,
        series: Option<&mut SecondSeries>,
        progress: &Progress,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<PathOutcome> {
        let RandomRequest { depth: wanted, cold, .. } = *self.request;
        let mut notes = Vec::new();
        let mut depth = BufferFetcher::reads_ahead(&self.subject.relation, wanted).max(1);
        if depth < wanted {
            notes.push(format!("the server reads at most {depth} ahead here"));
        }
        if depth > 1 && self.request.limits.make_pauses() {
            // What is read ahead is pinned, and would be for as long as the limit makes it pause.
            depth = 1;
            notes.push("under a rate limit the server path reads nothing ahead".to_owned());
        }
        // A single read is the backend's own, whatever io_method says.
        let account = if depth == 1 { Account::Own } else { server::read_account() };
        let resident = Resident::new(&self.subject.relation, Fork::MAIN);
        let without_data = |part: &Part, holes| resident.remove_from(part, holes);
        let mut plan = self.plan(place, BufferFetcher::look(depth), Some(&without_data));
        let ProbedRelation { relation, source, .. } = &self.subject;
        let mut fetcher = BufferFetcher::new(relation, source, depth, cold.then_some(&resident));
        let (run, cost) = self.run(&mut plan, &mut fetcher, account, series, progress, should_stop)?;
        let through_workers = matches!(account, Account::With(_));
        if through_workers {
            notes.push(WORKERS_SERVE_ALL.to_owned());
        }
        if cost.lost_workers {
            notes.push(WORKERS_ENDED.to_owned());
        }
        Ok(PathOutcome {
            run,
            cost,
            place,
            engine: server::fetch_method(depth),
            depth,
            device_source: if through_workers { IO_WORKERS } else { BACKEND },
            usage: fetcher.usage(),
            missing: fetcher.missing().filter(|_| depth > 1),
            notes,
        })
    }

    fn plan<'a>(&'a self, place: StartAt, look: Look, without_data: Option<&'a WithoutData<'a>>) -> Plan<'a> {
        let source = &self.subject.source;
        let look = if self.request.limits.max_util.is_some() { look.for_pauses() } else { look };
        let order = Permutation::new(source.blocks(), self.request.seed);
        Plan::with_data(source, order, place.first, look, without_data)
    }

    fn run(
        &self,
        plan: &mut Plan<'_>,
        fetcher: &mut dyn Fetcher,
        account: Account,
        series: Option<&mut SecondSeries>,
        progress: &Progress,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<(random::RandomRun, IoDelta)> {
        let stopped = plan.inspect_segments(&mut || statement::over().or_else(&mut *should_stop))?;
        let mut should_stop = || stopped.or_else(&mut *should_stop);
        let account = self.subject.account(account);
        let observer = Observer::new(account, &self.subject.placement.leaves, &self.subject.roots);
        let mut report = |done| progress.done(done);
        let mut before = observer.look();
        let mut should_stop = before.following(&mut should_stop);
        let mut budget = Budget::of_statement(statement::left(), &Monotonic, &mut should_stop);
        let run = random::run(plan, fetcher, &self.request.limits, &mut budget, &mut report, series)?;
        drop(budget);
        drop(should_stop);
        let cost = observer.since(&before);
        // What the kernel still reads ahead must not be taken for others' reads by the next path.
        observer.settle();
        Ok((run, cost))
    }
}
