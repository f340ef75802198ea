//! io_method, io_workers and what else rules how the server reads from 18 on.
//!
//! What a session may SET is tried by the server's own reads (io_combine_limit). What takes a reload or a
//! restart is emulated in this process, what is in force as well, and the ratio of the two counts. All scans
//! weigh the same.

use io_probe_advise::ByRatios;
use io_probe_advise::io_methods::{EMULATION_ERROR, OtherMethod, io_method, values_as_good};
use io_probe_advise::page_costs::model::BITMAP_TUPLE;
use io_probe_core::machine::device::Roots;
use io_probe_core::measure::io_methods::{self, Compared, Contender, Method, MethodsRun, SCANS, Work};
use io_probe_core::stats::Interval;
use io_probe_surface::doubt::Doubt;
use serde_json::{Value, json};

use super::advice::{Found, Lacking, NOT_COLD, Recommendation, SEEMS_BETTER, Setting};
use super::place::{Candidate, TablespaceTarget};
use super::{PARTS_OF_WAYS, RecommendCall};
use crate::api::page_cost;
use crate::api::shared::{self, us};
use crate::call::arguments::seed;
use crate::call::{NamedEnum, Outcome, ProbedRelation, figure};
use crate::error::Result;
use crate::gucs;
use crate::pg::backend::server;
use crate::pg::catalog::facts;
use crate::pg::storage::server_reader::ServerReader;

/// Workers, and blocks of a read, that are tried.
const WORKERS: [u64; 6] = [1, 2, 4, 8, 16, 32];
const BLOCKS_OF_READ: [u64; 6] = [1, 4, 8, 16, 32, 64];

/// Most blocks in flight: their buffers are ours.
const MOST_IN_FLIGHT: u64 = 2048;

/// A tuple's work in a sequential scan over that in a bare count: 1.8 with a filter, 1.1 if it only looks at
/// a column; 1.4 lies between.
const TUPLE_OF_SCAN: f64 = 1.4;

/// Where others use more of the processors' time than this share, a method is not judged: it might only be
/// the one that needs a processor less.
const BUSY: f64 = 0.5;

/// What is in force, in the settings' own units.
struct InForce {
    method: Method,
    /// Workers that there may be.
    workers: u64,
    /// Those that there are at least; the same on 18.
    least_workers: u64,
    /// Blocks of a read, and the most that they may be.
    combined: u64,
    most_combined: u64,
    /// Reads in flight of a process, and of a scan.
    of_process: u64,
    of_scan: u64,
}

impl InForce {
    /// None where the server has no such settings.
    fn now(of_scan: u32) -> Option<Self> {
        let workers = server::number(c"io_max_workers").or_else(|| server::number(c"io_workers"))?;
        let most_combined = server::number(c"io_max_combine_limit")?;
        let method = match server::setting(c"io_method")?.as_str() {
            "worker" => Method::Worker(workers as u32),
            "io_uring" => Method::IoUring,
            _ => Method::Sync,
        };
        Some(Self {
            method,
            workers,
            least_workers: server::number(c"io_min_workers").unwrap_or(workers),
            combined: server::number::<u64>(c"io_combine_limit")?.min(most_combined),
            most_combined,
            of_process: server::number(c"io_max_concurrency")?,
            of_scan: of_scan.into(),
        })
    }

    fn emulated(&self, method: Method, combined: u64, in_flight: u64) -> Contender {
        Contender { emulated: Some(method), combined, depth: depth(in_flight, combined) }
    }

    fn in_flight(&self) -> u64 {
        self.of_scan.min(self.of_process)
    }

    fn by_server(&self, combined: u64) -> Contender {
        Contender { emulated: None, combined, depth: depth(self.in_flight(), combined) }
    }

    /// The method, and the others.
    fn methods(&self) -> [Method; 3] {
        [Method::Sync, Method::Worker(self.workers as u32), Method::IoUring]
    }
}

fn depth(in_flight: u64, combined: u64) -> usize {
    let most = gucs::depth(None, u32::MAX).unwrap_or(1).into();
    in_flight.min(MOST_IN_FLIGHT / combined.max(1)).min(most).max(1) as usize
}

/// A value that is tried, and which contender it is.
type Tried<T> = Vec<(T, usize)>;

/// Who takes turns: the first one is the emulation of what is in force.
#[derive(Default)]
struct Field {
    contenders: Vec<Contender>,
    methods: Tried<Method>,
    workers: Tried<u64>,
    least_workers: Option<usize>,
    most_combined: Tried<u64>,
    /// The server's own reads: the one in force, and the others.
    by_server: Option<usize>,
    combined: Tried<u64>,
    /// With as many reads in flight as a scan may have, and no limit of the process.
    in_flight: Option<usize>,
}

impl Field {
    fn of(recommend: &RecommendCall<'_>, now: &InForce) -> Self {
        let in_force = now.emulated(now.method, now.combined, now.in_flight());
        let mut field = Self { contenders: vec![in_force], ..Self::default() };
        let emulated = |method| now.emulated(method, now.combined, now.in_flight());
        if recommend.wants(Setting::IoMethod) {
            for method in now.methods().into_iter().filter(|method| *method != now.method) {
                let place = field.add(emulated(method));
                field.methods.push((method, place));
            }
        }
        if recommend.request.wants_any(&Setting::OF_WORKERS) && matches!(now.method, Method::Worker(_)) {
            for workers in WORKERS.into_iter().filter(|workers| *workers != now.workers) {
                let place = field.add(emulated(Method::Worker(workers as u32)));
                field.workers.push((workers, place));
            }
            if now.least_workers < now.workers {
                field.least_workers = Some(field.add(emulated(Method::Worker(now.least_workers as u32))));
            }
        }
        if recommend.wants(Setting::IoMaxCombineLimit) {
            for blocks in BLOCKS_OF_READ.into_iter().filter(|blocks| *blocks > now.most_combined) {
                let place = field.add(now.emulated(now.method, blocks, now.in_flight()));
                field.most_combined.push((blocks, place));
            }
        }
        if recommend.wants(Setting::IoCombineLimit) {
            field.by_server = Some(field.add(now.by_server(now.combined)));
            let may_be = |blocks: &u64| *blocks != now.combined && *blocks <= now.most_combined;
            for blocks in BLOCKS_OF_READ.into_iter().filter(may_be) {
                let place = field.add(now.by_server(blocks));
                field.combined.push((blocks, place));
            }
        }
        if recommend.wants(Setting::IoMaxConcurrency) && now.of_scan > now.of_process {
            field.in_flight = Some(field.add(now.emulated(now.method, now.combined, now.of_scan)));
        }
        field
    }

    fn add(&mut self, contender: Contender) -> usize {
        self.contenders.push(contender);
        self.contenders.len() - 1
    }
}

/// The rows of this server's settings, measured on the largest relation that no strong lock keeps from us.
pub(super) fn rows(
    recommend: &RecommendCall<'_>,
    places: &[TablespaceTarget],
) -> Result<Vec<Recommendation>> {
    let rows: Vec<Recommendation> = Setting::OF_READS
        .into_iter()
        .filter(|setting| recommend.wants(*setting) && facts::setting(setting.name()).is_some())
        .map(Recommendation::of_cluster)
        .collect();
    if rows.is_empty() {
        return Ok(rows);
    }
    let largest = TablespaceTarget::largest(places);
    let used = largest.as_ref().ok().map(|(_, relation)| relation.oid);
    let rows = rows.into_iter().map(|row| row.used(used));
    match largest.and_then(|(place, relation)| Judge::measured(recommend, place, relation)) {
        Ok(judge) => Ok(rows.map(|row| judge.judged(row).beside(judge.doubt)).collect()),
        Err(lacking) => {
            let (doubt, why) = lacking.told()?;
            Ok(rows.map(|row| row.without(doubt, why.clone())).collect())
        }
    }
}

fn measure(
    recommend: &RecommendCall<'_>,
    relation: &ProbedRelation,
    field: &Field,
) -> Outcome<(Compared, Option<Doubt>)> {
    let call = recommend.call;
    relation.evict_all(call)?;
    let run = MethodsRun {
        source: &relation.source,
        contenders: &field.contenders,
        steps: steps(recommend, relation),
        most_blocks: server::most_pinned().unwrap_or(u64::MAX),
        verifies: server::setting(c"data_checksums").as_deref() == Some("on"),
        seed: seed(None),
        limits: recommend.limits(PARTS_OF_WAYS)?,
        roots: &Roots::default(),
    };
    let most = field.contenders.iter().map(|contender| contender.depth).max().unwrap_or(1) as u32;
    let (compared, cost) = call.observed(relation, server::read_account(), |budget| {
        let mut by_server = |combined, steps, read: &mut io_methods::ReadTurn<'_>| {
            ServerReader::combining(&relation.relation, most, combined, steps, |reader| read(reader))
        };
        io_methods::compare(&run, &mut by_server, budget, &mut |done, _| call.progress.done(done))
    })?;
    Ok((compared, shared::worst(cost.is_disturbed(), &cost.held_back)))
}

/// Work of a block in a bitmap scan, which finds one tuple there, and in a scan of all, by counts of the
/// table's tuples.
fn steps(recommend: &RecommendCall<'_>, relation: &ProbedRelation) -> [u64; 2] {
    let counted = page_cost::count_tuples(recommend.call, relation, 0.0);
    let work = Work::measured();
    counted.ok().and_then(|counted| counted.time).map_or([0; 2], |tuple| {
        let ns = 1e3 * tuple.time.us;
        [BITMAP_TUPLE * ns, TUPLE_OF_SCAN * ns * tuple.per_block].map(|ns| work.of(ns))
    })
}

/// What the rows are filled from.
struct Judge<'a> {
    recommend: &'a RecommendCall<'a>,
    now: InForce,
    field: Field,
    compared: Compared,
    doubt: Option<Doubt>,
}

impl<'a> Judge<'a> {
    fn measured(
        recommend: &'a RecommendCall<'a>,
        place: &TablespaceTarget,
        relation: Candidate,
    ) -> Found<Self> {
        if !recommend.request.cold {
            return Err(NOT_COLD);
        }
        if server::reads_direct() {
            return Err(Lacking::unknown(
                "not measured: with debug_io_direct the server bypasses the OS cache",
            ));
        }
        let relation = place.open(recommend.call, relation)?;
        let now = InForce::now(relation.relation.file_tablespace().io_concurrency());
        let now = now.ok_or(Lacking::unknown("not measured: the settings in force are not known"))?;
        let field = Field::of(recommend, &now);
        let measure = || measure(recommend, &relation, &field);
        let (compared, doubt) = recommend.call.attempt(measure, |(compared, _)| compared.stop)?;
        Ok(Self { recommend, now, field, compared, doubt })
    }

    fn judged(&self, row: Recommendation) -> Recommendation {
        let row = row
            .rests_on("ways", self.evidence())
            .rests_on("effective_io_concurrency", self.now.of_scan)
            .rests_on("most_pinned_blks", server::most_pinned())
            .rests_on("used_by_others_pct", self.compared.used_by_others.map(|share| figure(100.0 * share)));
        let setting = row.row.setting;
        let setting = Setting::OF_READS.into_iter().find(|known| known.name() == setting);
        // The server's I/O workers are others, too, and all of what is tried of that setting is by them.
        let is_by_server = setting == Some(Setting::IoCombineLimit);
        if let Some(share) = self.compared.used_by_others.filter(|share| *share > BUSY && !is_by_server) {
            return row.unknown(format!(
                "other processes used {:.0} % of the processors' time meanwhile, so a method might seem slow \
                 only for lack of a processor: repeat when they use less",
                100.0 * share
            ));
        }
        match setting {
            Some(Setting::IoMethod) => self.method(row),
            Some(Setting::IoWorkers | Setting::IoMaxWorkers) => self.workers(row),
            Some(Setting::IoMinWorkers) => self.least_workers(row),
            Some(Setting::IoMaxConcurrency) => self.in_flight(row),
            Some(Setting::IoCombineLimit) => self.combined(row),
            _ => self.most_combined(row),
        }
    }

    fn ratio(&self, place: usize) -> Option<Interval> {
        self.compared.ratio(place, 0, None)
    }

    fn method(&self, row: Recommendation) -> Recommendation {
        let others: Vec<OtherMethod<Method>> =
            self.field.methods.iter().filter_map(|tried| self.other_method(*tried)).collect();
        match io_method(&others) {
            ByRatios::Keep => {
                row.keep(format!("no other method is over 5 % faster beyond the noise{}", self.in_words()))
            }
            ByRatios::Change(OtherMethod { method, ratio, .. }) => {
                let (method, gain) = (name(method), 1.0 / ratio.value);
                let why = format!("scans are {gain:.2} times as fast with {method}{}", self.in_words());
                row.alter(method, why)
            }
            ByRatios::SeemsBetter => row.unknown(SEEMS_BETTER),
            ByRatios::Unmeasured => row.unknown(self.why_none()),
        }
    }

    fn other_method(&self, (method, place): (Method, usize)) -> Option<OtherMethod<Method>> {
        let of_scans = (0..SCANS.len()).filter_map(|scan| self.compared.ratio(place, 0, Some(scan)));
        let worst = of_scans.map(|ratio| ratio.value).reduce(f64::max)?;
        Some(OtherMethod { method, ratio: self.ratio(place)?, worst })
    }

    /// The other methods' times as multiples of the present one's, scan by scan.
    fn in_words(&self) -> String {
        let mut words = String::new();
        for (method, place) in &self.field.methods {
            let ratio = |scan| self.compared.ratio(*place, 0, Some(scan)).map(|ratio| ratio.value);
            match (&self.compared.refused[*place], ratio(0), ratio(1), ratio(2)) {
                (Some(why), ..) => words += &format!("; {} is refused here: {why}", name(*method)),
                (None, Some(bitmap), Some(cold), Some(cached)) => {
                    let [first, second, third] = SCANS;
                    words += &format!(
                        "; with {} a {first} takes {bitmap:.2} times as long, a {second} {cold:.2}, \
                         a {third} {cached:.2}",
                        name(*method)
                    );
                }
                _ => (),
            }
        }
        words
    }

    fn workers(&self, row: Recommendation) -> Recommendation {
        if !matches!(self.now.method, Method::Worker(_)) {
            return row.keep("it has an effect only with io_method = worker");
        }
        self.by_value(row, self.now.workers, &self.field.workers, 0, EMULATION_ERROR, &plain)
    }

    fn least_workers(&self, row: Recommendation) -> Recommendation {
        let Some(place) = self.field.least_workers else {
            return row.keep("it has an effect only with io_method = worker, and below io_max_workers");
        };
        let Some(ratio) = self.ratio(place) else { return row.unknown(self.why_none()) };
        let most = (
            self.now.workers,
            Interval { value: 1.0 / ratio.value, low: 1.0 / ratio.high, high: 1.0 / ratio.low },
        );
        match values_as_good(self.now.least_workers, &[most], EMULATION_ERROR) {
            Some(found) if !found.holds_current => row.alter(
                found.value.to_string(),
                format!("with io_min_workers workers alone, scans take {:.2} times as long", ratio.value),
            ),
            _ => row.keep("scans are as fast before more workers are started"),
        }
    }

    fn in_flight(&self, row: Recommendation) -> Recommendation {
        let Some(place) = self.field.in_flight else {
            let of_scan = self.now.of_scan;
            return row
                .keep(format!("no scan has more than effective_io_concurrency = {of_scan} reads in flight"));
        };
        let [present, more] = [0, place].map(|place| self.field.contenders[place].depth);
        if more <= present {
            return row.unknown(format!(
                "more than {present} reads in flight can't be tried: pg_io_probe.max_depth, or the memory \
                 for their buffers, allows no more"
            ));
        }
        let tried = vec![(self.now.of_scan, place)];
        self.by_value(row, self.now.of_process, &tried, 0, EMULATION_ERROR, &plain)
    }

    fn combined(&self, row: Recommendation) -> Recommendation {
        let Some(in_force) = self.field.by_server else { return row.unknown(self.why_none()) };
        self.by_value(row, self.now.combined, &self.field.combined, in_force, 0.0, &in_kb)
    }

    fn most_combined(&self, row: Recommendation) -> Recommendation {
        // Reads grow with io_combine_limit, too.
        if self.now.combined < self.now.most_combined {
            return row.keep("io_combine_limit is lower and takes effect");
        }
        let row =
            self.by_value(row, self.now.most_combined, &self.field.most_combined, 0, EMULATION_ERROR, &in_kb);
        let changes = row.row.statement.is_some();
        row.also(if changes { "; set io_combine_limit, too" } else { "" })
    }

    /// The row of a setting whose values have an order; `in_force` is the contender that has the present one.
    fn by_value(
        &self,
        row: Recommendation,
        current: u64,
        tried: &Tried<u64>,
        in_force: usize,
        error: f64,
        shown: &dyn Fn(u64) -> String,
    ) -> Recommendation {
        let others: Vec<(u64, Interval)> = tried
            .iter()
            .filter_map(|(value, place)| Some((*value, self.compared.ratio(*place, in_force, None)?)))
            .collect();
        let Some(found) = values_as_good(current, &others, error) else {
            return row.unknown(self.why_none());
        };
        if found.seems_worse {
            return row.unknown(SEEMS_BETTER);
        }
        let row = row.between(shown(found.low), shown(found.high));
        if found.holds_current {
            return row.keep("no other value is over 5 % faster beyond the noise");
        }
        let ratio = others.iter().find(|(value, _)| *value == found.value);
        let gain = ratio.map_or(1.0, |(_, ratio)| 1.0 / ratio.value);
        row.alter_text(shown(found.value), format!("scans are {gain:.2} times as fast"))
    }

    fn why_none(&self) -> String {
        if self.compared.was_cached {
            return "the OS cache holds the relation: its pages could not be evicted, or others read them \
                    meanwhile: repeat it when nobody uses the relation"
                .to_owned();
        }
        let refused: Vec<&str> = self.compared.refused.iter().flatten().map(String::as_str).collect();
        if !refused.is_empty() {
            return refused.join("; ");
        }
        format!("too few turns counted: {}", self.recommend.longer(None))
    }

    fn evidence(&self) -> Vec<Value> {
        let contenders = self.field.contenders.iter().enumerate();
        contenders.map(|(place, contender)| self.evidence_of(place, contender)).collect()
    }

    fn evidence_of(&self, place: usize, contender: &Contender) -> Value {
        let in_force = if contender.emulated.is_none() { self.field.by_server.unwrap_or(0) } else { 0 };
        let ratio = self.compared.ratio(place, in_force, None);
        let method = contender.emulated.unwrap_or(self.now.method);
        let scans: Vec<Value> = (0..SCANS.len())
            .map(|scan| {
                let spent = self.compared.of_scan(place, scan);
                let of_scan = self.compared.ratio(place, in_force, Some(scan));
                json!({
                    "scan": SCANS[scan],
                    "block_us": spent.map(|spent| us(spent.wall_ns as f64)),
                    "cpu_us": spent.map(|spent| us(spent.cpu_ns as f64)),
                    "ratio": of_scan.map(|ratio| figure(ratio.value)),
                })
            })
            .collect();
        json!({
            "io_method": name(method),
            "workers": if let Method::Worker(workers) = method { Some(workers) } else { None },
            "io_combine_limit": contender.combined,
            "in_flight": contender.depth,
            "by": if contender.emulated.is_some() { "emulation" } else { "server" },
            "ratio": ratio.map(|ratio| figure(ratio.value)),
            "ci_low": ratio.map(|ratio| figure(ratio.low)),
            "ci_high": ratio.map(|ratio| figure(ratio.high)),
            "scans": scans,
            "refused": self.compared.refused[place],
        })
    }
}

fn name(method: Method) -> &'static str {
    match method {
        Method::Sync => "sync",
        Method::Worker(_) => "worker",
        Method::IoUring => "io_uring",
    }
}

fn plain(value: u64) -> String {
    value.to_string()
}

/// So many blocks, as SHOW prints them.
pub(super) fn in_kb(blocks: u64) -> String {
    let kb = blocks * u64::from(pgrx::pg_sys::BLCKSZ) / 1024;
    if kb.is_multiple_of(1024) { format!("{}MB", kb / 1024) } else { format!("{kb}kB") }
}
