//! Measuring what a report is made of, and what it means.

use std::cmp::Ordering;
use std::time::Duration;

use io_probe_core::advise::report::{DepthPoint, Shape, Trust, is_kept};
use io_probe_core::run::clock::{Clock, Monotonic};
use io_probe_core::stats;
use pgrx::{pg_sys, spi};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::runs::{Circumstances, ReportedAdvice, ReportedFigure, ReportedPlace, ReportedRun};
use super::{BEST, IN_USE, Line, Promised, ReportSection, of};
use crate::api::history::measure;
use crate::api::recommend::ON_PRIMARY;
use crate::api::row::Doubt;
use crate::call::arguments::figure;
use crate::call::named::NamedEnum;
use crate::error::Result;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::server;
use crate::pg::catalog::facts;

/// A server's scan is called one of the device if at least this percentage of it came from there, as in the
/// view io_probe_metrics.
const MOSTLY: f64 = 90.0;

/// What is found of another one.
pub(super) const FROM_MEMORY: &str = "from memory";

/// A scan by the server with less than this share of what the device gives is worth a look.
const MUCH_LESS: f64 = 0.8;

/// A 99th percentile of latencies that is this many times the median is worth a word.
const FAR: f64 = 10.0;

/// A percentile has no interval, and a short run none: nothing is said where that is nearer to what was
/// promised than this share.
const NEAR: f64 = 0.1;

/// Shortest flush, in microseconds, of storage that keeps what it is given.
const FASTEST_FLUSH_US: f64 = 10.0;

/// The parts of a report's time: of scans, of reads at several depths, of flushes, and of advice.
const PARTS: [u32; 4] = [4, 4, 3, 9];

/// What is to be measured, and within what.
pub(super) struct Measurements {
    /// None for the largest table.
    pub(super) rel: Option<pg_sys::Oid>,
    pub(super) duration: Duration,
    pub(super) cold: bool,
    pub(super) writes: bool,
    pub(super) promised: Promised,
    /// Options for each probe.
    pub(super) options: Map<String, Value>,
}

/// What has been found so far.
#[derive(Default)]
struct ReportDraft {
    lines: Vec<Line>,
    circumstances: Vec<Circumstances>,
}

impl Measurements {
    /// Measures all of it.
    pub(super) fn lines(&self) -> Result<Vec<Line>> {
        let started = Monotonic.now();
        let rel = self.rel.or_else(facts::largest_table);
        let mut found = ReportDraft::default();
        let objects: Vec<ReportedPlace> = found.run("device", None, json!({}))?;
        found.devices(&objects);
        // Before the server's scan, which leaves what it read in the OS cache.
        self.advice(&mut found, rel)?;
        if rel.is_some() {
            self.depths(&mut found, rel)?;
            self.scan(&mut found, rel)?;
        } else {
            found.missing(
                "scans and reads",
                "there is no table of yours to read: name one, io_probe_report('tbl')",
            );
        }
        self.commits(&mut found)?;
        let elapsed_s = (Monotonic.now() - started) as f64 / 1e9;
        Ok(found.finish(elapsed_s))
    }

    /// The arguments of a probe that gets part number `part` of the time; `without` are options to leave out.
    fn arguments(&self, part: usize, mut given: Value, without: &[&str]) -> Value {
        let duration = self.duration * PARTS[part] / PARTS.iter().sum::<u32>();
        given["duration"] = json!(format!("{} ms", duration.as_millis().max(1)));
        let mut options = self.options.clone();
        options.retain(|name, _| !without.contains(&name.as_str()));
        given["options"] = Value::Object(options);
        given
    }

    fn scan(&self, found: &mut ReportDraft, rel: Option<pg_sys::Oid>) -> Result<()> {
        let arguments = self.arguments(0, json!({"paths": ["direct", "server"], "cold": self.cold}), &[]);
        let scans: Vec<ReportedFigure> = found.run("seqscan", rel, arguments)?;
        for scan in &scans {
            // Rate times the time of a block is the size of a block.
            let rate = |us: Option<f64>| Some(figure(scan.mib_s? * scan.block_us? / us?));
            let interval = (rate(scan.ci_high), rate(scan.ci_low));
            let line = Line::figure(ReportSection::Scan, &*scan.path, scan.mib_s, "MiB/s", interval);
            let line = Line { finding: said(scan), ..line };
            found.push(match scan.path.as_str() {
                "direct" => promise(line, self.promised.mib_s, true),
                _ => line,
            });
        }
        let of = |path: &str| scans.iter().find(|scan| scan.path == path);
        if let (Some(direct), Some(server)) = (of("direct"), of("server")) {
            found.compare_scans(direct, server, self.cold);
        }
        Ok(())
    }

    fn depths(&self, found: &mut ReportDraft, rel: Option<pg_sys::Oid>) -> Result<()> {
        let arguments = self.arguments(1, json!({}), &["precision"]);
        let depths: Vec<ReportedFigure> = found.run("depth", rel, arguments)?;
        let name = |row: &ReportedFigure| row.depth.map_or(String::new(), |depth| depth.to_string());
        // The smallest depth that is as good may give a little less than was promised, and a greater one all.
        let fastest = depths.iter().max_by(|a, b| a.iops.partial_cmp(&b.iops).unwrap_or(Ordering::Equal));
        let fastest = fastest.and_then(|row| row.depth);
        for row in &depths {
            let line = Line::figure(ReportSection::Depth, name(row), row.iops, "1/s", row.interval());
            let line = line.marked((row.best == Some(true)).then_some(BEST), row.doubt.as_deref());
            let promised = self.promised.iops.filter(|_| row.depth == fastest);
            found.push(match row.doubt.as_ref().is_some_and(|doubt| doubt.contains(Doubt::Paced.name())) {
                true => Line { promised, ..line }, // the rate of a limit says nothing of it
                false => promise(line, promised, true),
            });
        }
        for row in &depths {
            let line = |section, value| Line::figure(section, name(row), value, "us", (None, None));
            found.push(line(ReportSection::P50, row.p50_us));
            let promised = self.promised.p99_us.filter(|_| row.depth == Some(1));
            found.push(promise(line(ReportSection::P99, row.p99_us), promised, false));
        }
        found.shape_of(&depths);
        let Some(single) = depths.first().filter(|row| row.depth == Some(1)) else { return Ok(()) };
        if let (Some(median), Some(high)) = (single.p50_us, single.p99_us)
            && high >= FAR * median
        {
            found.say(
                "latency",
                format!("One read in a hundred takes {:.0} times the median.", high / median),
            );
        }
        Ok(())
    }

    fn commits(&self, found: &mut ReportDraft) -> Result<()> {
        if !self.writes {
            found.missing("commits", "needs writes");
            return Ok(());
        }
        let arguments = self.arguments(2, json!({"sections": ["wal_segment"]}), &[]);
        let syncs: Vec<ReportedFigure> = found.run("sync", None, arguments)?;
        let Some(least) = syncs.iter().map(|row| row.write_kb).min() else { return Ok(()) };
        for row in syncs.iter().filter(|row| row.write_kb == least) {
            let in_use = row.in_use == Some(true);
            let line = Line::figure(ReportSection::Commit, &*row.method, row.op_us, "us", row.interval());
            found.push(line.marked(in_use.then_some(IN_USE), row.doubt.as_deref()));
            if in_use && row.op_us.is_none() {
                found.missing("commits", row.doubt.as_deref().unwrap_or("no figure"));
            }
            let Some(us) = row.op_us.filter(|_| in_use) else { continue };
            let p99 = row.p99_us.map_or(String::new(), |p99| format!(", one in a hundred {}", time(p99)));
            let doubt = if us < FASTEST_FLUSH_US {
                ": no storage is that fast, so something keeps it in memory"
            } else {
                ""
            };
            found.say("commit", format!("A commit waits {} for its WAL{p99}{doubt}.", time(us)));
        }
        Ok(())
    }

    fn advice(&self, found: &mut ReportDraft, rel: Option<pg_sys::Oid>) -> Result<()> {
        let arguments = self.arguments(3, json!({"cold": self.cold, "writes": self.writes}), &[]);
        let advice: Vec<ReportedAdvice> = found.run("recommend", rel, arguments)?;
        for row in &advice {
            found.advise(row);
            if let Some(curve) = row.evidence.get("curve") {
                found.windows(curve);
            }
        }
        if advice.iter().any(|row| row.statement.is_some() && row.applies == "reload") {
            found.push(Line {
                statement: Some("SELECT pg_reload_conf()".to_owned()),
                ..Line::fact(ReportSection::Advice, "reload", "after ALTER SYSTEM")
            });
        }
        Ok(())
    }
}

impl ReportDraft {
    fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    fn say(&mut self, item: &str, sentence: String) {
        self.push(Line::fact(ReportSection::Verdict, item, sentence));
    }

    /// Notes what is not known; items with the same reason share a line.
    fn missing(&mut self, item: &str, why: &str) {
        let mut known = self.lines.iter_mut().filter(|line| line.section == ReportSection::Missing);
        match known.find(|line| line.finding() == why) {
            Some(line) => line.item = format!("{}, {item}", line.item),
            None => self.push(Line::fact(ReportSection::Missing, item, why)),
        }
    }

    /// Calls a probe. One that had bad luck has no rows, which a line says.
    fn run<R: DeserializeOwned>(
        &mut self,
        probe: &str,
        rel: Option<pg_sys::Oid>,
        arguments: Value,
    ) -> Result<Vec<R>> {
        let function = format!("io_probe_{probe}_full");
        if !server::may_execute(&function) {
            self.missing(probe, &format!("needs EXECUTE on {function}"));
            return Ok(Vec::new());
        }
        pgrx::notice!("report: io_probe_{probe}");
        let result = measure(Some(probe), rel, Some(JsonbText::of(arguments.to_string())))?;
        let run: ReportedRun<R> = match serde_json::from_str(&result) {
            Ok(run) => run,
            Err(e) => unreachable!("this library made it: {e}"),
        };
        if run.status != "ok" {
            self.missing(probe, &run.message.unwrap_or_default());
        }
        self.circumstances.push(run.circumstances);
        Ok(run.rows)
    }

    fn devices(&mut self, objects: &[ReportedPlace]) {
        for object in objects {
            let name = [Some(object.object.as_str()), object.spcname.as_deref()];
            let read_ahead = object.read_ahead_kb.map(|kb| format!("readahead {kb} kB"));
            let facts = [
                object.device.clone(),
                object.model.clone(),
                object.fs_type.clone(),
                object.scheduler.clone(),
                read_ahead,
                object.write_cache.clone(),
            ];
            let facts: Vec<String> = facts.into_iter().flatten().collect();
            let facts = if facts.is_empty() { "not known".to_owned() } else { facts.join(", ") };
            let name: Vec<&str> = name.into_iter().flatten().collect();
            self.push(Line::fact(ReportSection::Device, name.join(" "), facts));
        }
    }

    fn compare_scans(&mut self, direct: &ReportedFigure, server: &ReportedFigure, cold: bool) {
        let Some(device_pct) = server.device_pct else { return };
        if device_pct < MOSTLY {
            let part = 100.0 - device_pct;
            let why = match cold {
                true => "it could not be evicted, or others read it meanwhile",
                false => "cold => true evicts the table first",
            };
            self.say("scan", format!("{part:.0} % of PostgreSQL's scan came from memory: {why}."));
            return;
        }
        let Some(share) = server.mib_s.zip(direct.mib_s).map(|(server, direct)| server / direct) else {
            return;
        };
        let look = if share < MUCH_LESS { self.what_slows_scans(cold) } else { "" };
        self.say(
            "scan",
            format!("A scan by PostgreSQL gets {:.0} % of what the device gives{look}.", share * 100.0),
        );
    }

    /// Where to look for what slows a scan down.
    fn what_slows_scans(&self, cold: bool) -> &'static str {
        let mut advice = of(&self.lines, ReportSection::Advice);
        match advice.find(|line| line.item.starts_with("read_ahead_kb")) {
            Some(line) if line.statement.is_some() => ": look at the advice on read_ahead_kb",
            Some(_) => ": another readahead would gain little, so the processor may hold it back",
            None if cold => ": readahead or the processor holds it back",
            None => ": readahead or the processor holds it back. cold => true measures readahead",
        }
    }

    fn shape_of(&mut self, depths: &[ReportedFigure]) {
        let point = |row: &ReportedFigure| {
            let (value, low, high) = (row.iops?, row.ci_low?, row.ci_high?);
            Some(DepthPoint { depth: row.depth?, iops: stats::Interval { value, low, high } })
        };
        let Some(curve) = depths.iter().map(point).collect::<Option<Vec<DepthPoint>>>() else { return };
        let Some(shape) = Shape::of(&curve) else { return };
        let of_one = curve[0].iops.value;
        let told = |point: DepthPoint| {
            let iops = point.iops.value;
            format!(
                "{} reads a second with {} in flight, {:.1} times as many as with one",
                count(iops),
                point.depth,
                iops / of_one
            )
        };
        self.say(
            "reads",
            match shape {
                Shape::Flat(point) => format!(
                    "About {} reads a second whatever the depth, from {} on: a limit of the volume, or all \
                     that the device has.",
                    count(point.iops.value),
                    point.depth
                ),
                Shape::Knee(point) => {
                    format!("{}; a greater depth gains little, if anything.", told(point))
                }
                Shape::Rising(point) => format!("{}, and still growing.", told(point)),
            },
        );
    }

    /// The windows of the curve that advice on read_ahead_kb rests on.
    fn windows(&mut self, curve: &Value) {
        for point in curve.as_array().into_iter().flatten() {
            let Some(kb) = point["window_kb"].as_u64() else { continue };
            let us = |name: &str| point[name].as_f64();
            let mib_s = |name| us(name).map(|us| figure(f64::from(pg_sys::BLCKSZ) / us / 1.048_576));
            let (value, interval) = (mib_s("block_us"), (mib_s("ci_high"), mib_s("ci_low")));
            let line = Line::figure(ReportSection::Readahead, kb.to_string(), value, "MiB/s", interval);
            self.push(line.marked((point["mode"] == "kernel").then_some(IN_USE), None));
        }
    }

    fn advise(&mut self, row: &ReportedAdvice) {
        let name = row.name.as_ref().map_or(String::new(), |name| format!(" of {name}"));
        let item = format!("{}{name}", row.setting);
        let current = row.current.as_deref().unwrap_or("?");
        let Some(recommended) = &row.recommended else {
            return self.missing(
                &item,
                row.doubt.as_deref().filter(|doubt| *doubt != "unknown").unwrap_or(&row.why),
            );
        };
        let alike = match (&row.low, &row.high) {
            (Some(low), Some(high)) if low != high => format!(" ({low} to {high} are as good)"),
            _ => String::new(),
        };
        let others = row.doubt.as_ref().map_or("", |_| ", but others used the device");
        let is_elsewhere = row.hides.as_ref().is_some_and(|hides| hides.starts_with(ON_PRIMARY));
        let place = if is_elsewhere { format!(", {ON_PRIMARY}") } else { String::new() };
        let finding = match &row.statement {
            Some(_) => format!("{current} -> {recommended}{alike}{others}{place}"),
            None => format!("keep {current}{alike}{others}"),
        };
        self.push(Line {
            statement: row.statement.clone(),
            ..Line::fact(ReportSection::Advice, item, finding)
        });
    }

    /// All lines, with what is to be known of all runs.
    fn finish(mut self, elapsed_s: f64) -> Vec<Line> {
        let fact = |item: &str, finding: String| Line::fact(ReportSection::Server, item, finding);
        let mut lines = vec![fact("pg_io_probe", env!("CARGO_PKG_VERSION").to_owned())];
        if let Some(first) = self.circumstances.first() {
            lines.extend(first.datname.clone().map(|name| fact("database", name)));
            lines.extend(first.host.clone().map(|name| fact("host", name)));
            lines.extend(first.server_version.clone().map(|version| fact("PostgreSQL", version)));
            lines.push(fact("role", if first.in_recovery { "standby" } else { "primary" }.to_owned()));
            lines.push(fact("started", first.started_at.clone()));
        }
        let elapsed = Some(figure(elapsed_s));
        lines.push(Line::figure(ReportSection::Server, "elapsed", elapsed, "s", (None, None)));
        if let Some(relation) = self.circumstances.iter().find_map(|run| run.relation.as_ref()) {
            let bytes = relation.rel_bytes;
            lines.push(Line {
                value: bytes.map(|bytes| figure(bytes as f64 / (1 << 20) as f64)),
                unit: bytes.map(|_| "MiB".to_owned()),
                ..fact("relation", spi::quote_qualified_identifier(&relation.schemaname, &relation.relname))
            });
        }
        self.trust();
        self.promises();
        lines.append(&mut self.lines);
        // The lines of a section stay in the order in which they were found.
        lines.sort_by_key(|line| line.section as u8);
        lines
    }

    fn trust(&mut self) {
        // A run that knows only one of them is left out: others may have moved anything.
        let known = self.circumstances.iter().filter_map(|run| run.own_bytes.zip(run.other_bytes));
        let bytes = known.fold((0, 0), |sum, (own, others)| (sum.0 + own, sum.1 + others));
        let steal = self.circumstances.iter().filter_map(|run| run.steal_pct).reduce(f64::max);
        let (word, why) = match Trust::of(bytes, steal) {
            None => ("unknown", "what others did meanwhile can't be seen".to_owned()),
            Some(Trust::Good) => ("good", "others hardly used the devices meanwhile".to_owned()),
            Some(trust) => {
                let word = if trust == Trust::Fair { "fair" } else { "poor" };
                let all = bytes.0 + bytes.1;
                let moved = (all > 0).then(|| {
                    let share = 100.0 * bytes.1 as f64 / all as f64;
                    format!("others moved {share:.0} % of all bytes meanwhile")
                });
                let stolen = steal.filter(|steal| *steal > 10.0).map(|steal| {
                    format!("the hypervisor gave {steal:.0} % of the processors' time to others")
                });
                let why: Vec<String> = moved.into_iter().chain(stolen).collect();
                (word, format!("{}: repeat later", why.join(", and ")))
            }
        };
        self.push(Line::fact(ReportSection::Trust, word, why));
    }

    fn promises(&mut self) {
        let told = |line: &Line| {
            let (kept, promised, value) = (line.kept?, line.promised?, line.value?);
            let what = match line.section {
                ReportSection::Scan => "Scans",
                ReportSection::Depth => "Random reads",
                _ => "The 99th percentile of reads",
            };
            let verb = if kept { "as promised" } else { "not as promised" };
            Some(format!("{what}: {verb} ({} {}, of {}).", count(value), line.unit(), count(promised)))
        };
        let sentences: Vec<String> = self.lines.iter().filter_map(told).collect();
        sentences.into_iter().for_each(|sentence| self.say("promise", sentence));
    }
}

/// What is to be known of a scan's figure.
fn said(scan: &ReportedFigure) -> Option<String> {
    let from_memory = scan.device_pct.is_some_and(|pct| pct < MOSTLY).then(|| FROM_MEMORY.to_owned());
    from_memory.or_else(|| scan.doubt.clone())
}

/// Judges a figure by what was promised.
fn promise(line: Line, promised: Option<f64>, more_is_better: bool) -> Line {
    let interval = line.value.map(|value| match (line.low, line.high) {
        (None, None) => stats::Interval { value, low: value - NEAR * value, high: value + NEAR * value },
        (low, high) => {
            stats::Interval { value, low: low.unwrap_or(0.0), high: high.unwrap_or(f64::INFINITY) }
        }
    });
    let Some((promised, interval)) = promised.zip(interval) else { return Line { promised, ..line } };
    Line { promised: Some(promised), kept: is_kept(interval, promised, more_is_better), ..line }
}

/// A number as people write it.
pub(super) fn count(value: f64) -> String {
    if value >= 1e15 {
        return format!("{value:.4e}");
    } else if value < 100.0 {
        return figure(value).to_string();
    }
    let digits = format!("{value:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

fn time(us: f64) -> String {
    if us < 1000.0 { format!("{us:.0} us") } else { format!("{:.1} ms", us / 1000.0) }
}
