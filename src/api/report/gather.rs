//! Measuring what a report is made of, and what it means.

mod writes;

use std::cmp::Ordering;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use io_probe_advise::report::{DepthPoint, Trust, flat, is_kept};
use io_probe_advise::served;
use io_probe_core::machine::host::Host;
use io_probe_core::machine::observer::{HeldBack, Surroundings};
use io_probe_core::measure::sync::{FLUSHES, GroupCommit, Section};
use io_probe_core::run::budget::Limits;
use io_probe_core::stats;
use io_probe_surface::depth::DepthRow;
use io_probe_surface::doubt::Doubt;
use io_probe_surface::facts::DeviceRow;
use io_probe_surface::report::ReportFullRow;
use io_probe_surface::seqscan::SeqscanRow;
use io_probe_surface::shared::{CaveatColumns, IntervalColumns};
use io_probe_surface::sync::SyncRow;
use pgrx::{pg_sys, spi};

use super::{ARGUMENTS, Line, Mark, Promised, ReportSection, of};
use crate::api::depth::{self, DepthSweep};
use crate::api::readahead::{WindowMode, WindowResult};
use crate::api::recommend::{ON_PRIMARY, RecommendRequest, Recommendation, Setting, UNKNOWN, told_beside};
use crate::api::seqscan::Seqscan;
use crate::api::sessions::OtherProcesses;
use crate::api::sync::{self, Bench};
use crate::api::{device, history, shared};
use crate::call::{self, NamedEnum, Probe, ReadPath, arguments, figure};
use crate::error::Result;
use crate::gucs;
use crate::pg::backend::server;
use crate::pg::catalog::activity::HIDDEN;
use crate::pg::catalog::facts;
use crate::pg::history::{Failed, RelationFacts, ServerFacts, attempt};
use crate::pg::storage::relation::{is_toast, table_of};
use crate::pg::storage::wal;

/// A server's scan is called one of the device if at least this percentage of it came from there, as in the
/// view io_probe_metrics.
const MOSTLY: f64 = 90.0;
/// Of a smaller table the same few blocks are read again and again.
const LEAST_BYTES: u64 = 1 << 20;

/// A scan by the server with less than this share of what the device gives is worth a look.
const MUCH_LESS: f64 = 0.8;

/// To measure again for a moment takes the time of the first measurement over this.
const AGAIN: u32 = 8;

/// A device that gives less than this share of the reads a second that it gave at first has slowed down.
const SLOWED: f64 = 0.5;

const SLOWED_DOWN: &str = "The device slowed down during the report. A volume does that when its burst \
                           credits run out; any device does when others use it. The figures mix both speeds. \
                           Call the report again to tell which.";

/// A 99th percentile of latencies that is this many times the median is worth a word.
const FAR: f64 = 10.0;

/// A percentile has no interval, and a short run none: nothing is said where that is nearer to what was
/// promised than this share.
const NEAR: f64 = 0.1;

/// The 99th percentile of one run may differ from that of the next by this share.
const NEAR_P99: f64 = 0.5;

/// Shortest flush, in microseconds, of storage that keeps what it is given.
const FASTEST_FLUSH_US: f64 = 10.0;

/// Why it is not known how far to trust a report.
const UNSEEN: &str = "it is not known what others did meanwhile";
const UNTOUCHED: &str = "it is not known whether the probes used any device";

const NO_TABLE: &str = "no table was found that you may read: name one, io_probe_report('tbl')";

/// What is measured of writes, as missing lines name it.
const OF_WRITES: [&str; 2] = ["writes", "mixed load"];

/// Doubts of figures that might have been better.
const MADE_WORSE: [Doubt; 2] = [Doubt::Limited, Doubt::Others];

const OTHERS_IN_ROWS: &str = "others used the device for part of the time: repeat later";

/// What a report measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Advice,
    Depths,
    Scans,
    Commits,
    Writes,
    Loads,
}

/// The order of the parts. Scans by the server leave what they read in the OS cache.
const IN_TURN: [Part; 6] =
    [Part::Advice, Part::Depths, Part::Scans, Part::Commits, Part::Writes, Part::Loads];

/// As many share the time without writes. That of commits is left over then.
const WITHOUT_WRITES: usize = 4;

impl Part {
    /// Its share of a report's time, where a moment has 1.
    fn weight(self) -> u32 {
        match self {
            Part::Advice => 21,
            Part::Loads => 15,
            Part::Depths | Part::Scans => 8,
            Part::Commits => 6,
            Part::Writes => 3,
        }
    }
}

/// The parts that are trusted more or less: their probes, and the sections of their figures, the main one
/// first.
const TRUSTED: [(&str, Probe, &[ReportSection]); 5] = [
    ("scans", Probe::Seqscan, &[ReportSection::Scan]),
    ("reads", Probe::Depth, &[ReportSection::Depth, ReportSection::P99]),
    (OF_WRITES[0], Probe::Write, &[ReportSection::Write, ReportSection::LongWrite]),
    ("commits", Probe::Sync, &[ReportSection::Commit, ReportSection::CommitP99]),
    (OF_WRITES[1], Probe::Mix, &[ReportSection::LoadP50]),
];

/// Moments besides: of reads before and after, and of a scan after.
const MOMENTS: u32 = 3;

/// What these parts and the moments weigh.
fn weight(parts: &[Part]) -> u32 {
    MOMENTS + parts.iter().map(|part| part.weight()).sum::<u32>()
}

/// What is to be measured, and within what.
pub(super) struct Measurements {
    /// None for the largest table.
    pub(super) rel: Option<pg_sys::Oid>,
    pub(super) began: Instant,
    pub(super) duration: Duration,
    /// Did the caller ask for that time? Else a part of it may be left over.
    pub(super) uses_all_time: bool,
    pub(super) cold: bool,
    pub(super) writes: bool,
    pub(super) promised: Promised,
    /// Bounds of each measurement, apart from its time.
    pub(super) bounds: Limits,
    /// Does it wait for a probe that runs?
    pub(super) waits: bool,
    /// The call's arguments as JSON; None if they are the defaults.
    pub(super) arguments: Option<String>,
}

/// What has been found so far.
#[derive(Default)]
struct ReportDraft {
    lines: Vec<Line>,
    relation: Option<RelationFacts>,
    /// What went on beside each probe.
    surroundings: Vec<(Probe, Surroundings)>,
    /// Bytes that other processes of the server moved meanwhile, by their kind, the most first.
    others: Vec<(String, u64)>,
    /// Was the relation measured where no device can be seen?
    has_unseen: bool,
    /// Did the device become slower in the middle?
    slowed: bool,
    /// The depth that gave the most reads a second, and how many.
    fastest: Option<(u32, f64)>,
    /// Is there advice on readahead without a doubt, or to change it?
    changes_readahead: Option<bool>,
    /// The sections of the parts of which the trust is poor.
    poor: Vec<ReportSection>,
}

impl Measurements {
    /// Measures all of it.
    pub(super) fn lines(&self) -> Result<Vec<Line>> {
        let others = OtherProcesses::begin();
        let (_in_time, left) = call::in_time();
        let rel = self.rel.or_else(facts::largest_table);
        let mut found = ReportDraft::begin(rel, self.arguments.clone());
        let objects = found.run(Probe::Device, || Ok(device::rows()));
        found.devices(&objects);
        // Credits may have run out by the time the depths are measured.
        let at_first = rel.and_then(|rel| self.moment_at_deepest(&mut found, rel));
        // Before the server's scan, which leaves what it read in the OS cache.
        // Plans are of tables: where values lie in TOAST tables, there may be another one for advice.
        self.advice(&mut found, rel.map(table_of).filter(|rel| !is_toast(*rel)));
        match rel {
            Some(rel) => {
                self.depths(&mut found, rel, at_first);
                self.scan(&mut found, rel);
            }
            None => found.missing("scans and reads", NO_TABLE),
        }
        self.commits(&mut found);
        self.data_writes(&mut found, rel);
        if let Some(left) = left.filter(|left| *left < self.duration) {
            let (left, whole) = (figure(left.as_secs_f64()), figure(self.duration.as_secs_f64()));
            let why = format!("statement_timeout left {left} s, but a report may take {whole} s");
            found.missing("time", &why);
        }
        let elapsed_s = self.began.elapsed().as_secs_f64();
        found.others = others.moved();
        Ok(found.finish(elapsed_s))
    }

    /// This part of the time; more if the parts before it left some over of the time that was asked for, and
    /// less if the statement has no more than that for it and the parts that come after it.
    fn share(&self, part: Part) -> Duration {
        let parts = self.parts();
        let later = &parts[parts.iter().position(|other| *other == part).unwrap_or(0)..];
        let usual = self.usual_share(part);
        let left_over = match self.uses_all_time {
            true => self.duration.saturating_sub(self.began.elapsed()) * part.weight() / weight(later),
            false => Duration::ZERO,
        };
        let left = call::time_left() * part.weight() / weight(later);
        usual.max(left_over).min(left).max(Duration::from_millis(1))
    }

    fn usual_share(&self, part: Part) -> Duration {
        self.duration * part.weight() / weight(self.parts())
    }

    /// The time of a look at what this part measures: nothing is left over for it.
    fn moment_of(&self, part: Part) -> Duration {
        self.usual_share(part).min(self.share(part)) / AGAIN
    }

    fn parts(&self) -> &'static [Part] {
        if self.writes { &IN_TURN } else { &IN_TURN[..WITHOUT_WRITES] }
    }

    /// The bounds of each of `rows` rows that share this part of the time.
    fn limits(&self, part: Part, rows: usize) -> Result<Limits> {
        let given = Some(self.share(part));
        let duration = gucs::share_of_duration(given, 1, rows as u32, gucs::ROW_DURATION.time())?;
        Ok(Limits { duration, ..self.bounds })
    }

    fn scan(&self, found: &mut ReportDraft, rel: pg_sys::Oid) {
        let scans = found.run(Probe::Seqscan, || {
            let paths = vec![ReadPath::Direct, ReadPath::Server];
            let limits = self.limits(Part::Scans, paths.len())?;
            Seqscan::usual(paths, self.cold, limits)?.rows(rel, self.waits)
        });
        for scan in &scans {
            let ends = (rate_at(scan, scan.interval.ci_high), rate_at(scan, scan.interval.ci_low));
            let line = Line::figure(ReportSection::Scan, scan.path, scan.mib_s, "MiB/s", ends);
            let line = line.marked(is_from_memory(scan).then_some(Mark::FromMemory), &scan.caveats.doubt);
            let promised = self.promised.mib_s.filter(|_| scan.path == ReadPath::Direct.name());
            found.push(promise(line, promised, true));
        }
        let [direct, server] = [ReadPath::Direct, ReadPath::Server]
            .map(|path| scans.iter().find(|scan| scan.path == path.name()));
        // Through the OS cache, a processor that does something else slows a scan down, too.
        found.slowed |= direct.is_some_and(|scan| scan.caveats.doubt.has(Doubt::Slowed));
        self.depth_again(found, rel);
        if let (Some(direct), Some(server)) = (direct, server) {
            if is_much_less(direct, server) {
                self.scan_again(found, rel, direct);
            }
            found.compare_scans(direct, server, self.cold);
        }
    }

    /// Scans again for a moment what gave so much at first: does the device give as much now?
    fn scan_again(&self, found: &mut ReportDraft, rel: pg_sys::Oid, first: &SeqscanRow) {
        let scans = found.attempt(Probe::Seqscan, || {
            let duration = self.moment_of(Part::Scans);
            let limits = Limits { duration, ..self.bounds };
            Seqscan::usual(vec![ReadPath::Direct], false, limits)?.rows(rel, self.waits)
        });
        let scans = scans.unwrap_or_default();
        let rates = scans.first().filter(|scan| !scan.caveats.doubt.has(Doubt::Others));
        let share = rates.and_then(|again| Some(again.mib_s? / first.mib_s?));
        found.slowed |= share.is_some_and(|share| share < MUCH_LESS);
    }

    /// All depths. `at_first` is how many reads a second there were at the deepest in the beginning.
    fn depths(&self, found: &mut ReportDraft, rel: pg_sys::Oid, at_first: Option<f64>) {
        let depths = found.run(Probe::Depth, || {
            let depths = depth::usual_depths()?;
            let limits = Limits { precision: None, ..self.limits(Part::Depths, depths.len())? };
            DepthSweep { depths, seed: arguments::seed(None), p99: None, limits }.rows(rel, self.waits)
        });
        // The smallest depth that is as good may give a little less than was promised, and a greater one all.
        let fastest = depths.iter().max_by(|a, b| a.iops.partial_cmp(&b.iops).unwrap_or(Ordering::Equal));
        found.fastest = fastest.and_then(|row| Some((row.depth, row.iops?)));
        let fastest = fastest.map(|row| row.depth);
        for row in &depths {
            let name = row.depth.to_string();
            let line = Line::figure(ReportSection::Depth, name, row.iops, "1/s", ends(&row.interval));
            let doubt = &row.caveats.doubt;
            let line = line.marked((row.best == Some(true)).then_some(Mark::Best), doubt);
            let promised = self.promised.iops.filter(|_| Some(row.depth) == fastest);
            found.push(promise(line, promised, true));
        }
        for row in &depths {
            let [p50, p99] =
                [(ReportSection::P50, row.latencies.p50_us), (ReportSection::P99, row.latencies.p99_us)].map(
                    |(section, value)| {
                        Line::figure(section, row.depth.to_string(), value, "us", (None, None))
                            .marked(None, &row.caveats.doubt)
                    },
                );
            found.push(p50);
            let promised = self.promised.p99_us.filter(|_| row.depth == 1);
            found.push(promise(p99, promised, false));
        }
        found.slowed |= depths.iter().any(|row| row.caveats.doubt.has(Doubt::Slowed));
        found.reads_a_second(at_first, depths.last().and_then(free_iops));
        found.shape_of(&depths);
        let Some(single) = depths.first().filter(|row| row.depth == 1) else { return };
        if let (Some(median), Some(high)) = (single.latencies.p50_us, single.latencies.p99_us)
            && high >= FAR * median
        {
            found.say(
                "latency",
                format!("One read in a hundred takes at least {:.0} times the median.", high / median),
            );
        }
    }

    /// Reads again for a moment at the depth that gave the most: does the device give as much now?
    fn depth_again(&self, found: &mut ReportDraft, rel: pg_sys::Oid) {
        let Some((depth, iops)) = found.fastest else { return };
        let now = self.moment(found, rel, depth);
        found.reads_a_second(Some(iops), now);
    }

    fn moment_at_deepest(&self, found: &mut ReportDraft, rel: pg_sys::Oid) -> Option<f64> {
        let deepest = depth::usual_depths().ok()?.pop()?;
        self.moment(found, rel, deepest)
    }

    /// Reads for a moment: how many a second?
    fn moment(&self, found: &mut ReportDraft, rel: pg_sys::Oid, depth: u32) -> Option<f64> {
        let depths = found.attempt(Probe::Depth, || {
            let limits = Limits { duration: self.moment_of(Part::Depths), precision: None, ..self.bounds };
            DepthSweep { depths: vec![depth], seed: arguments::seed(None), p99: None, limits }
                .rows(rel, self.waits)
        });
        depths.ok()?.first().and_then(free_iops)
    }

    fn commits(&self, found: &mut ReportDraft) {
        if !self.writes {
            return found.missing("commits", "needs writes");
        }
        let syncs = found.run(Probe::Sync, || {
            let cases = sync::cases(&[Section::WalSegment], wal::BLOCK_BYTES, &FLUSHES[..1], None);
            let limits = self.limits(Part::Commits, cases.len())?;
            let group = GroupCommit { committers: 1, delay: wal::commit_delay(1), commit_bytes: None };
            sync::rows(Bench { cases, group, limits }, None, self.waits)
        });
        syncs.iter().for_each(|row| found.flush(row, &self.promised));
    }

    fn advice(&self, found: &mut ReportDraft, rel: Option<pg_sys::Oid>) {
        let advice = found.run(Probe::Recommend, || {
            let request = RecommendRequest {
                settings: Setting::ALL.to_vec(),
                lists_settings: false,
                bounds: self.bounds,
                duration: Some(self.share(Part::Advice)),
                of_call: f64::from(weight(self.parts())) / f64::from(Part::Advice.weight()),
                cold: self.cold,
                writes: self.writes,
            };
            request.advice(rel, self.waits)
        });
        found.slowed |= advice.iter().any(|advice| advice.beside == Some(Doubt::Slowed));
        for advice in &advice {
            found.advise(advice);
            found.windows(&advice.curve);
        }
        if advice.iter().any(|Recommendation { row, .. }| row.statement.is_some() && row.applies == "reload")
        {
            found.push(Line(ReportFullRow {
                statement: Some("SELECT pg_reload_conf()".into()),
                ..Line::fact(ReportSection::Advice, "reload", "after ALTER SYSTEM").0
            }));
        }
    }
}

impl ReportDraft {
    /// Begins with what there is to know of the server.
    fn begin(rel: Option<pg_sys::Oid>, arguments: Option<String>) -> Self {
        let ServerFacts { datname, server_version, in_recovery, .. } = ServerFacts::now();
        let facts = [
            ("pg_io_probe", Some(env!("CARGO_PKG_VERSION").to_owned())),
            ("database", datname),
            ("host", Host::here().map(|host| host.name)),
            ("PostgreSQL", server_version),
            ("role", Some(if in_recovery { "standby" } else { "primary" }.to_owned())),
            ("started", Some(server::now())),
            (ARGUMENTS, arguments),
        ];
        let lines =
            facts.into_iter().filter_map(|(item, fact)| Some(Line::fact(ReportSection::Server, item, fact?)));
        Self { lines: lines.collect(), relation: rel.and_then(RelationFacts::find), ..Self::default() }
    }

    fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    fn say(&mut self, item: &'static str, sentence: String) {
        self.push(Line::fact(ReportSection::Verdict, item, sentence));
    }

    /// Notes what is not known; items with the same reason share a line.
    fn missing(&mut self, item: &str, why: &str) {
        let mut known = self.lines.iter_mut().filter(|line| line.section == ReportSection::Missing);
        match known.find(|line| line.finding() == why) {
            Some(line) => line.0.item = format!("{}, {item}", line.item).into(),
            None => self.push(Line::fact(ReportSection::Missing, item.to_owned(), why.to_owned())),
        }
    }

    /// The device gave so many reads a second before, and gives so many now, at the same depth.
    fn reads_a_second(&mut self, before: Option<f64>, now: Option<f64>) {
        let share = before.zip(now).map(|(before, now)| now / before);
        self.slowed |= share.is_some_and(|share| share < SLOWED);
    }

    /// Runs a probe if the caller may. One that had bad luck has no rows, which a line says.
    fn run<R>(&mut self, probe: Probe, rows: impl FnOnce() -> Result<Vec<R>>) -> Vec<R> {
        self.attempt(probe, rows).unwrap_or_else(|why| {
            self.missing(probe.name(), &why);
            Vec::new()
        })
    }

    /// Runs a probe if the caller may; else, and if it had bad luck, says why not.
    fn attempt<R>(
        &mut self,
        probe: Probe,
        rows: impl FnOnce() -> Result<Vec<R>>,
    ) -> std::result::Result<Vec<R>, String> {
        let function = probe.function_of_all_columns();
        if !server::may_execute(&function) {
            return Err(format!("needs EXECUTE on {function}"));
        }
        let relation = self.relation.as_ref().filter(|_| !matches!(probe, Probe::Device | Probe::Sync));
        let (_, _, placement) = history::locate(probe, relation, None);
        let rows = AssertUnwindSafe(|| rows().unwrap_or_else(|error| error.raise()));
        let (outcome, surroundings) = history::beside(probe, &placement.leaves, || attempt(rows));
        self.surroundings.push((probe, surroundings));
        self.has_unseen |= relation.is_some() && placement.leaves.is_empty();
        outcome.map_err(|Failed { message, .. }| message)
    }

    fn devices(&mut self, objects: &[DeviceRow]) {
        for row in objects {
            let name: Vec<&str> = [Some(row.object), row.spcname.as_deref()].into_iter().flatten().collect();
            let read_ahead = row.read_ahead_kb.map(|kb| format!("readahead {kb} kB"));
            let facts = [
                row.device.as_deref(),
                row.model.as_deref(),
                row.fs_type.as_deref(),
                row.scheduler.as_deref(),
                read_ahead.as_deref(),
                row.write_cache.as_deref(),
            ];
            let facts: Vec<&str> = facts.into_iter().flatten().collect();
            let facts = if facts.is_empty() { "not known".to_owned() } else { facts.join(", ") };
            self.push(Line::fact(ReportSection::Device, name.join(" "), facts));
        }
    }

    /// What a flush of one WAL block takes.
    fn flush(&mut self, row: &SyncRow, promised: &Promised) {
        let in_use = row.in_use == Some(true);
        let line = Line::figure(ReportSection::Commit, row.method, row.op_us, "us", ends(&row.interval));
        let line = line.marked(in_use.then_some(Mark::InUse), &row.caveats.doubt);
        self.push(promise(line, promised.commit_us.filter(|_| in_use), false));
        if !in_use {
            return;
        }
        let p99 = Line::figure(ReportSection::CommitP99, row.method, row.p99_us, "us", (None, None));
        let p99 = p99.marked(Some(Mark::InUse), &row.caveats.doubt);
        self.push(promise(p99, promised.commit_p99_us, false));
        let Some(us) = row.op_us else { return self.missing("commits", &why_none(&row.caveats)) };
        let p99 = row.p99_us.map(|p99| format!("; one in a hundred waits at least {}", time(p99)));
        let p99 = p99.unwrap_or_default();
        let doubt = if us < FASTEST_FLUSH_US {
            ": no storage is that fast, so something keeps the WAL in memory"
        } else {
            ""
        };
        let beside = beside_others(&row.caveats);
        let about = if row.caveats.doubt.has(Doubt::Short) { "about " } else { "" };
        self.say("commit", format!("A commit waits {about}{} for its WAL{p99}{beside}{doubt}.", time(us)));
    }

    fn compare_scans(&mut self, direct: &SeqscanRow, server: &SeqscanRow, cold: bool) {
        let Some(device_pct) = server.tiers.device_pct else { return };
        if device_pct < MOSTLY {
            let part = 100.0 - device_pct;
            let why = match cold {
                true => "the table could not be evicted, or others read it meanwhile",
                false => "cold => true evicts the table first",
            };
            self.say("scan", format!("{part:.0} % of PostgreSQL's scan came from memory: {why}."));
            return;
        }
        let Some(share) = server.mib_s.zip(direct.mib_s).map(|(server, direct)| server / direct) else {
            return;
        };
        let look = match share < MUCH_LESS {
            true if self.slowed => ": the device slowed down meanwhile",
            true => self.what_slows_scans(cold),
            false => "",
        };
        self.say(
            "scan",
            format!("A scan by PostgreSQL gets {:.0} % of what the device gives{look}.", share * 100.0),
        );
    }

    /// Where to look for what slows a scan down.
    fn what_slows_scans(&self, cold: bool) -> &'static str {
        match self.changes_readahead {
            Some(true) => ": look at the advice on read_ahead_kb",
            Some(false) => ": another readahead would gain little, so the processor may be the limit",
            None if cold => ": readahead or the processor is the limit",
            None => ": readahead or the processor is the limit. cold => true measures readahead",
        }
    }

    fn shape_of(&mut self, depths: &[DepthRow]) {
        // A depth that is lacking takes nothing from the others.
        let curve: Vec<DepthPoint> = depths.iter().filter_map(depth_point).collect();
        let best = depths.iter().find(|row| row.best == Some(true)).and_then(depth_point);
        let (Some(best), [_, .., deepest]) = (best, &*curve) else { return };
        if let Some(bytes) = self.relation.as_ref().and_then(|of| of.rel_bytes).filter(|of| *of < LEAST_BYTES)
        {
            let kib = bytes.div_ceil(1 << 10);
            self.say("reads", format!("A table of {kib} kB is too small to tell how fast the device is."));
            return;
        }
        let of_one = depths.iter().find(|row| row.depth == 1).and_then(|row| row.iops);
        let told = match flat(&curve) {
            Some(limit) => format!(
                "About {} reads per second at any depth from {} on: the volume is limited, or the device \
                 gives no more.",
                count(limit.iops.value),
                limit.depth
            ),
            None if best.depth == deepest.depth => {
                format!("{}; a greater depth may give more.", told_over_one(best, of_one))
            }
            None => format!("{}; a greater depth gains little, if anything.", told_over_one(best, of_one)),
        };
        self.say("reads", told);
    }

    /// The windows of the curve that advice on read_ahead_kb rests on.
    fn windows(&mut self, curve: &[WindowResult]) {
        for window in curve {
            let Some(kb) = window.kb() else { continue };
            let value = window.figures.map(|figures| mib_s_of(figures.ns_per_block));
            let interval = window.figures.and_then(|figures| figures.interval);
            let ends = (interval.map(|i| mib_s_of(i.high)), interval.map(|i| mib_s_of(i.low)));
            let line = Line::figure(ReportSection::Readahead, kb.to_string(), value, "MiB/s", ends);
            let in_use = (window.mode == WindowMode::Kernel).then_some(Mark::InUse);
            self.push(Line(ReportFullRow { mark: in_use, ..line.0 }));
        }
    }

    fn advise(&mut self, advice: &Recommendation) {
        let row = &advice.row;
        // How the server reads and writes has a line only where another way is better.
        if advice.is_told_if_changed() && row.statement.is_none() {
            return;
        }
        let name = row.name.as_ref().map_or(String::new(), |name| format!(" of {name}"));
        let item = format!("{}{name}", row.setting);
        let current = row.current.as_deref().unwrap_or("?");
        let Some(recommended) = &row.recommended else {
            return self.missing(&item, row.doubt.filter(|doubt| *doubt != UNKNOWN).unwrap_or(&row.why));
        };
        let is_sure = row.statement.is_some() || row.doubt.is_none();
        if row.setting == Setting::ReadAheadKb.name() && is_sure {
            self.changes_readahead.get_or_insert(row.statement.is_some());
        }
        let alike = match (&row.low, &row.high) {
            (Some(low), Some(high)) if low != high && advice.has_same_plans => {
                format!(" (any from {low} to {high} gives the same plans)")
            }
            (Some(low), Some(high)) if low != high => format!(" (any from {low} to {high} is as good)"),
            _ => String::new(),
        };
        let others = advice.beside.map_or(String::new(), |doubt| format!(", but {}", told_beside(doubt)));
        let place = if advice.on_primary { format!(", {ON_PRIMARY}") } else { String::new() };
        let unshown = if row.scope == "tablespace" { "; SHOW does not show it" } else { "" };
        let finding = match &row.statement {
            Some(_) => format!("{current} -> {recommended}{alike}{others}{place}{unshown}"),
            None => format!("keep {current}{alike}{others}"),
        };
        self.push(Line(ReportFullRow {
            statement: row.statement.clone(),
            ..Line::fact(ReportSection::Advice, item, finding).0
        }));
    }

    /// All lines, with what is to be known of all runs.
    fn finish(mut self, elapsed_s: f64) -> Vec<Line> {
        let elapsed = Some(figure(elapsed_s));
        self.push(Line::figure(ReportSection::Server, "elapsed", elapsed, "s", (None, None)));
        if let Some(RelationFacts { schemaname, relname, rel_bytes, .. }) = self.relation.take() {
            let name = spi::quote_qualified_identifier(schemaname, relname);
            self.push(Line(ReportFullRow {
                value: rel_bytes.map(|bytes| figure(bytes as f64 / f64::from(1 << 20))),
                unit: rel_bytes.map(|_| "MiB".into()),
                ..Line::fact(ReportSection::Server, "relation", name).0
            }));
        }
        self.held_back();
        self.trust();
        self.promises(elapsed_s);
        // The lines of a section stay in the order in which they were found.
        self.lines.sort_by_key(|line| line.section as u8);
        self.lines
    }

    /// Says what held the device back, or slowed it down.
    fn held_back(&mut self) {
        let held_back = self.all_held_back();
        held_back.limits.iter().for_each(|limit| self.say("limit", sentence(&limit.sentence)));
        if self.slowed {
            self.say("slower", SLOWED_DOWN.to_owned());
        }
    }

    fn all_held_back(&self) -> HeldBack {
        let all = self.surroundings.iter().map(|(_, run)| run.held_back.clone());
        all.reduce(HeldBack::then).unwrap_or_default()
    }

    /// Says how far the figures of each part can be trusted, in a line for all parts of which the same is to
    /// be said.
    fn trust(&mut self) {
        let mut told: Vec<(&'static str, String, Vec<&'static str>)> = Vec::new();
        for (part, probe, sections) in TRUSTED {
            if !of(&self.lines, sections[0]).any(|line| line.value.is_some()) {
                continue;
            }
            let (trust, why) = self.trust_in(probe, sections[0]);
            if trust == Some(Trust::Poor) {
                self.poor.extend(sections);
            }
            let word = trust.map_or("unknown", Trust::name);
            match told.iter_mut().find(|(other, because, _)| *other == word && *because == why) {
                Some((.., parts)) => parts.push(part),
                None => told.push((word, why, vec![part])),
            }
        }
        let lines = told.into_iter().map(|(word, why, parts)| {
            Line::fact(ReportSection::Trust, word, format!("{}, because {why}", parts.join(", ")))
        });
        let lines: Vec<Line> = lines.collect();
        if lines.is_empty() {
            self.push(Line::fact(ReportSection::Trust, "unknown", "nothing was measured"));
        }
        self.lines.extend(lines);
    }

    /// How far the figures of a probe can be trusted, if that is known, and why.
    fn trust_in(&self, probe: Probe, section: ReportSection) -> (Option<Trust>, String) {
        let runs = self.surroundings.iter().filter(|(run, _)| *run == probe).map(|(_, run)| run);
        // A run that knows only one of them is left out: others may have moved anything.
        let known = runs.clone().filter_map(|run| run.own_bytes.zip(run.other_bytes));
        let bytes = known.fold((0, 0), |sum, (own, others)| (sum.0 + own, sum.1 + others));
        let steal = runs.filter_map(|run| run.steal_pct).reduce(f64::max);
        let is_seen = probe == Probe::Sync || !self.has_unseen;
        let others = Trust::of(bytes, steal).filter(|trust| *trust != Trust::Good || is_seen);
        let has_others = of(&self.lines, section).any(|line| line.doubt.has(Doubt::Others));
        // A flush waits for all that others write.
        let with_others = if probe == Probe::Sync { Trust::Poor } else { Trust::Fair };
        let by_rows = has_others.then_some(with_others);
        let own = self.distrust();
        let worst = own.iter().map(|(trust, _)| *trust).chain(others).chain(by_rows).max();
        let by_others = match others.filter(|trust| *trust > Trust::Good) {
            Some(_) => Some(self.by_others(bytes, steal)),
            None if has_others => Some(OTHERS_IN_ROWS.to_owned()),
            None if others.is_none() => Some(if bytes.0 == 0 { UNTOUCHED } else { UNSEEN }.to_owned()),
            None => own.is_empty().then(|| "others hardly used the devices meanwhile".to_owned()),
        };
        let why: Vec<String> = own.into_iter().map(|(_, why)| why).chain(by_others).collect();
        (worst, why.join("; "))
    }

    /// What others moved, or took of the processors.
    fn by_others(&self, (own, others): (u64, u64), steal: Option<f64>) -> String {
        let moved = (others > 0 && own > 0).then(|| {
            let share = 100.0 * others as f64 / (own + others) as f64;
            format!("others caused {share:.0} % of the disk traffic ({})", self.who(others))
        });
        let stolen = steal.filter(|steal| *steal > 10.0);
        let stolen =
            stolen.map(|steal| format!("the hypervisor gave {steal:.0} % of the processors' time to others"));
        let why: Vec<String> = moved.into_iter().chain(stolen).collect();
        format!("{}: repeat later", why.join(", and "))
    }

    /// Who caused these bytes of others.
    fn who(&self, other_bytes: u64) -> String {
        let named = self.others.iter().filter(|(_, bytes)| *bytes >= 1 << 20).take(2).map(|(of, bytes)| {
            let kind = if of == HIDDEN { "sessions that you may not see" } else { of };
            format!("{kind} {}", served::mib(*bytes))
        });
        let of_server: u64 = self.others.iter().map(|(_, bytes)| bytes).sum();
        let outside = (2 * of_server < other_bytes).then(|| "most from outside this server".to_owned());
        named.chain(outside).collect::<Vec<_>>().join(", ")
    }

    /// What speaks against the figures besides others.
    fn distrust(&self) -> Vec<(Trust, String)> {
        let held_back = self.all_held_back();
        let slowed = self.slowed.then(|| (Trust::Poor, "the device slowed down meanwhile".to_owned()));
        let quota = held_back.quota_sentence().map(|short| (Trust::Poor, short));
        let limit = "the device came near the cgroup's limit: the figures may show the limit";
        let limited = (!held_back.limits.is_empty()).then(|| (Trust::Fair, limit.to_owned()));
        slowed.into_iter().chain(quota).chain(limited).collect()
    }

    /// A promise is neither kept nor broken by a short moment. What makes figures worse breaks none: others,
    /// limits, and processors that were taken away. But what is kept in spite of them is kept,
    /// unless the device was faster for a part of the time only.
    fn leave_open_what_is_not_sure(&mut self) {
        for place in 0..self.lines.len() {
            if self.is_open(&self.lines[place]) {
                self.lines[place].0.kept = None;
            }
        }
    }

    fn is_open(&self, line: &Line) -> bool {
        let is_made_worse = MADE_WORSE.iter().any(|doubt| line.doubt.has(*doubt));
        line.doubt.has(Doubt::Short)
            || match line.kept {
                Some(false) => self.is_poor(line) || is_made_worse || is_of_limit(line),
                _ => self.slowed,
            }
    }

    fn is_poor(&self, line: &Line) -> bool {
        self.poor.contains(&line.section)
    }

    /// Why it can't be told whether a promise is kept.
    fn why_open(&self, line: &Line) -> &'static str {
        match line {
            _ if line.doubt.has(Doubt::Short) => "the measurement was short",
            _ if self.slowed => "the device slowed down meanwhile",
            _ if is_of_limit(line) => "a rate limit held the probe back",
            _ if may_be_of_cache(line) && line.value >= line.promised => "the file may fit in a cache",
            _ if self.is_poor(line) => "others or a limit may have slowed it (see TRUST)",
            _ if line.doubt.has(Doubt::Limited) => "a limit of the cgroup slowed the device",
            _ if line.doubt.has(Doubt::Others) => "others used the device meanwhile",
            _ => "the difference is within the error of measurement",
        }
    }

    /// Whether a promise of this line is kept, as a sentence.
    fn promise_told(&self, line: &Line) -> Option<String> {
        let (promised, value) = (line.promised?, line.value?);
        let (what, has_depth) = match line.section {
            ReportSection::Scan => ("Scans", false),
            ReportSection::Depth => ("Random reads", true),
            ReportSection::Write => ("Random writes", true),
            ReportSection::LongWrite => ("Long writes", true),
            ReportSection::Commit => ("Commits", false),
            ReportSection::CommitP99 => ("The 99th percentile of commits", false),
            _ => ("The 99th percentile of reads", true),
        };
        let depth = if has_depth { format!(" with {} in flight", line.item) } else { String::new() };
        let verb = match line.kept {
            Some(true) if line.doubt.has(Doubt::Small) => {
                "as promised, unless a cache below the kernel served the reads".to_owned()
            }
            Some(true) => "as promised".to_owned(),
            Some(false) => "not as promised".to_owned(),
            None => format!("can't tell whether as promised: {}", self.why_open(line)),
        };
        let (value, promised) = (count(value), count(promised));
        Some(format!("{what}{depth}: {verb} ({value} {}, promised {promised}).", line.unit()))
    }

    fn promises(&mut self, elapsed_s: f64) {
        self.leave_open_what_is_not_sure();
        let sentences: Vec<String> = self.lines.iter().filter_map(|line| self.promise_told(line)).collect();
        for sentence in sentences {
            self.say("promise", sentence);
        }
        if self.lines.iter().any(|line| line.kept == Some(true) && line.unit != Some("us".into())) {
            self.say(
                "credits",
                format!("A run of {elapsed_s:.0} s can't see burst credits that last for minutes."),
            );
        }
    }
}

/// The rate of a scan if a block took so many microseconds: rate times time is the size of a block.
fn rate_at(scan: &SeqscanRow, block_us: Option<f64>) -> Option<f64> {
    Some(figure(scan.mib_s? * scan.block_us? / block_us?))
}

/// The rate if a block takes so many nanoseconds.
fn mib_s_of(block_ns: f64) -> f64 {
    shared::mib_s(1e9 / block_ns, pg_sys::BLCKSZ.into())
}

fn depth_point(row: &DepthRow) -> Option<DepthPoint> {
    let (value, low, high) = (row.iops?, row.interval.ci_low?, row.interval.ci_high?);
    Some(DepthPoint { depth: row.depth, iops: stats::Interval { value, low, high } })
}

/// The reads a second of a depth, also as a multiple of those of depth 1.
fn told_over_one(point: DepthPoint, of_one: Option<f64>) -> String {
    let iops = point.iops.value;
    let times =
        of_one.map(|one| format!(", {:.1} times as many as with one", iops / one)).unwrap_or_default();
    format!("{} reads per second with {} in flight{times}", count(iops), point.depth)
}

/// Reads a second; None where others or a rate limit had a part in it.
fn free_iops(row: &DepthRow) -> Option<f64> {
    let is_free = ![Doubt::Others, Doubt::Paced].iter().any(|doubt| row.caveats.doubt.has(*doubt));
    row.iops.filter(|_| is_free)
}

fn is_from_memory(scan: &SeqscanRow) -> bool {
    scan.tiers.device_pct.is_some_and(|pct| pct < MOSTLY)
}

/// Does a scan of the device by the server get far less of it than one past all caches?
fn is_much_less(direct: &SeqscanRow, server: &SeqscanRow) -> bool {
    let share = server.mib_s.zip(direct.mib_s).map(|(server, direct)| server / direct);
    !is_from_memory(server) && share.is_some_and(|share| share < MUCH_LESS)
}

/// A sentence from what stands without a beginning and an end.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}

/// The ends of an interval.
fn ends(interval: &IntervalColumns) -> (Option<f64>, Option<f64>) {
    (interval.ci_low, interval.ci_high)
}

/// Why there is no figure: the first note of a void row says what makes it so.
fn why_none(caveats: &CaveatColumns) -> String {
    let void = caveats.notes.first().filter(|_| caveats.doubt.has(Doubt::Void)).cloned();
    void.or_else(|| caveats.doubt.shown()).unwrap_or_else(|| "no figure".to_owned())
}

fn beside_others(caveats: &CaveatColumns) -> &'static str {
    if caveats.doubt.has(Doubt::Others) { " while others use the device" } else { "" }
}

/// Is a figure held down by a limit of the probe? The time of a read is its own.
fn is_of_limit(line: &Line) -> bool {
    line.doubt.has(Doubt::Paced) && line.section != ReportSection::P99
}

/// A cache may take all writes to a small file. Reads that come from a cache of the volume are the volume's.
fn may_be_of_cache(line: &Line) -> bool {
    let of_writes = matches!(line.section, ReportSection::Write | ReportSection::LongWrite);
    of_writes && line.doubt.has(Doubt::Small)
}

/// Judges a figure by what was promised. Writes that a cache may have taken can break a promise, not keep it.
fn promise(line: Line, promised: Option<f64>, more_is_better: bool) -> Line {
    let interval = line.value.map(|value| match (line.low, line.high) {
        (None, None) => {
            let is_p99 = matches!(line.section, ReportSection::P99 | ReportSection::CommitP99);
            let near = 1.0 + if is_p99 { NEAR_P99 } else { NEAR };
            stats::Interval { value, low: value / near, high: value * near }
        }
        (low, high) => {
            stats::Interval { value, low: low.unwrap_or(0.0), high: high.unwrap_or(f64::INFINITY) }
        }
    });
    let judged = promised.zip(interval);
    let kept = judged.and_then(|(promised, measured)| is_kept(measured, promised, more_is_better));
    let kept = kept.filter(|kept| !kept || !may_be_of_cache(&line));
    Line(ReportFullRow { promised, kept, ..line.0 })
}

/// A number as people write it.
pub(super) fn count(value: f64) -> String {
    if value >= 1e15 {
        return format!("{value:.4e}");
    } else if value < 100.0 {
        return figure(value).to_string();
    }
    served::count(value)
}

fn time(us: f64) -> String {
    if us < 1000.0 { format!("{us:.0} us") } else { format!("{:.1} ms", us / 1000.0) }
}
