//! `io_probe_report`: what there is to know of this server's storage, measured in one call and said in words.
//!
//! A report is a list of lines, each a figure or a fact, which `io_probe_report_full` returns and
//! `io_probe_record('report')` stores. The text and the page are made of nothing but these lines, so that a
//! stored report can be shown at any time, here or on another server.
//!
//! # Limitations and caveats
//! The probes are called one after the other, with the caller's rights: what one of them refuses is an ERROR
//! of the whole report, but bad luck (storage that fails, another probe that runs) is a line.

mod changes;
mod gather;
mod page;
mod plots;
mod runs;
mod text;

use std::time::Duration;

use pgrx::{prelude::*, spi};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::gather::{Measurements, count};
use super::history;
use crate::call::arguments;
use crate::call::named::{NamedEnum, named};
use crate::call::options::{MEASURING, Options};
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::interval::Interval;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::row::Rows;
use crate::pg::history::report_lines;

/// How long a report takes by default.
const DURATION: Duration = Duration::from_secs(30);

/// Most lines of a stored report, and their bytes as JSON: an imported one may say anything.
const MOST_LINES: usize = 5000;
const MOST_SIZE: usize = 2 << 20;

/// Marks with which the finding of a figure may begin.
const BEST: &str = "best";
const IN_USE: &str = "in use";
const MARKS: [&str; 2] = [BEST, IN_USE];

#[allow(clippy::too_many_arguments, reason = "the SQL signature")]
#[pg_extern(sql = false)]
fn io_probe_report(
    rel: Option<pg_sys::Oid>,
    duration: Option<Interval>,
    cold: Option<bool>,
    writes: Option<bool>,
    promised: Option<JsonbText>,
    format: Option<Text>,
    run: Option<i64>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let format = Format::parse(format.as_deref())?.unwrap_or(Format::Text);
        let (lines, changes) = match run {
            Some(run) => (stored(run)?, history::since_earlier(run)),
            None => (measured(rel, duration, cold, writes, promised, options)?, Vec::new()),
        };
        let shown = match format {
            Format::Text => text::render(&lines, &changes),
            Format::Html => page::render(&lines, &changes),
        };
        Ok(shown.lines().map(|line| ReportRow { report: line.to_owned() }).collect())
    })
}

#[pg_extern(sql = false)]
fn io_probe_report_full(
    rel: Option<pg_sys::Oid>,
    duration: Option<Interval>,
    cold: Option<bool>,
    writes: Option<bool>,
    promised: Option<JsonbText>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| measured(rel, duration, cold, writes, promised, options))
}

/// The form in which a report is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text,
    Html,
}

named!(Format, "format", "formats", { Text = "text", Html = "html" });

/// `io_probe_report_row`.
#[derive(Serialize)]
struct ReportRow {
    report: String,
}

/// What a line is about, in the order of the report.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ReportSection {
    #[default]
    Server,
    Device,
    Trust,
    Scan,
    Depth,
    P50,
    P99,
    Commit,
    Readahead,
    Verdict,
    Advice,
    Missing,
}

/// `io_probe_report_full_row`; the type's comments say what each attribute means.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    section: ReportSection,
    item: String,
    value: Option<f64>,
    unit: Option<String>,
    low: Option<f64>,
    high: Option<f64>,
    promised: Option<f64>,
    kept: Option<bool>,
    finding: Option<String>,
    statement: Option<String>,
}

impl Line {
    fn new(section: ReportSection, item: impl Into<String>) -> Self {
        Self { section, item: item.into(), ..Self::default() }
    }

    /// A fact.
    fn fact(section: ReportSection, item: impl Into<String>, finding: impl Into<String>) -> Self {
        Self { finding: Some(finding.into()), ..Self::new(section, item) }
    }

    /// A figure, with the ends of its interval.
    fn figure(
        section: ReportSection,
        item: impl Into<String>,
        value: Option<f64>,
        unit: &str,
        (low, high): (Option<f64>, Option<f64>),
    ) -> Self {
        Self { value, unit: Some(unit.to_owned()), low, high, ..Self::new(section, item) }
    }

    /// A figure's finding: its mark, if it is the best one or the one in use, and what speaks against it.
    fn marked(self, mark: Option<&str>, doubt: Option<&str>) -> Self {
        let finding = mark.into_iter().chain(doubt).collect::<Vec<_>>().join(", ");
        Self { finding: Some(finding).filter(|finding| !finding.is_empty()), ..self }
    }

    fn is_marked(&self) -> bool {
        MARKS.iter().any(|mark| self.finding().starts_with(mark))
    }

    fn doubt(&self) -> &str {
        let rest = MARKS.iter().find_map(|mark| self.finding().strip_prefix(mark));
        rest.map_or(self.finding(), |rest| rest.trim_start_matches(", "))
    }

    fn finding(&self) -> &str {
        self.finding.as_deref().unwrap_or_default()
    }

    fn unit(&self) -> &str {
        self.unit.as_deref().unwrap_or_default()
    }

    /// The value as people write it.
    fn shown(&self) -> String {
        self.value.map_or("-".to_owned(), count)
    }

    /// The interval as people write it; empty without one.
    fn range(&self) -> String {
        let range = self.low.zip(self.high);
        range.map_or(String::new(), |(low, high)| format!("{} - {}", count(low), count(high)))
    }

    /// What was promised, as people write it; empty if nothing was.
    fn shown_promise(&self) -> String {
        self.promised.map_or(String::new(), count)
    }
}

/// The lines of a section.
fn of(lines: &[Line], section: ReportSection) -> impl Iterator<Item = &Line> {
    lines.iter().filter(move |line| line.section == section)
}

/// The fact of that name about the server.
fn fact<'a>(lines: &'a [Line], item: &str) -> &'a str {
    of(lines, ReportSection::Server).find(|line| line.item == item).map_or("", Line::finding)
}

/// The statement that stores such a report.
fn next(lines: &[Line]) -> String {
    let relation = match fact(lines, "relation") {
        "" => String::new(),
        name => format!("{}, ", spi::quote_literal(name)),
    };
    format!("SELECT io_probe_record('report', {relation}label => 'today');")
}

/// The lines of a stored run.
fn stored(run: i64) -> Result<Vec<Line>> {
    let rows = report_lines(run).ok_or_else(|| {
        Error::undefined_object(format!("run {run} is no stored report"))
            .hint("Stored reports are the rows of io_probe_runs whose probe is \"report\".")
    })?;
    let size: usize = rows.iter().map(String::len).sum();
    if rows.len() > MOST_LINES || size > MOST_SIZE {
        return Err(Error::too_large(format!(
            "run {run} can't be shown: it has {} lines of {size} bytes",
            rows.len()
        ))
        .detail(format!("A report has at most {MOST_LINES} lines of {MOST_SIZE} bytes in all.")));
    }
    let line = |row: String| {
        serde_json::from_str(&row).map_err(|e| {
            Error::invalid(format!("run {run} can't be shown"))
                .detail(format!("A row of it is no line of a report: {e}"))
        })
    };
    rows.into_iter().map(line).collect()
}

fn measured(
    rel: Option<pg_sys::Oid>,
    duration: Option<Interval>,
    cold: Option<bool>,
    writes: Option<bool>,
    promised: Option<JsonbText>,
    options: Option<JsonbText>,
) -> Result<Vec<Line>> {
    let given = arguments::duration(duration)?;
    Measurements {
        rel,
        duration: gucs::share_of_duration(given, 1, 1, DURATION)?,
        cold: cold.unwrap_or(false),
        writes: writes.unwrap_or(false),
        promised: Promised::parse(promised)?,
        options: of_all_probes(options)?,
    }
    .lines()
}

/// Options that the report's probes take; io_probe_depth is not given `precision`.
fn of_all_probes(options: Option<JsonbText>) -> Result<Map<String, Value>> {
    let options = Options::parse(options, &MEASURING)?;
    options.bounds()?;
    Ok(options.into_object())
}

/// What the storage was bought for.
#[derive(Debug, Default, Clone, Copy)]
struct Promised {
    /// Rate of a scan past all caches.
    mib_s: Option<f64>,
    /// Reads a second at the fastest depth.
    iops: Option<f64>,
    /// 99th percentile of single reads.
    p99_us: Option<f64>,
}

impl Promised {
    fn parse(promised: Option<JsonbText>) -> Result<Self> {
        let names = ["mib_s", "iops", "p99_us"];
        let given = Options::of("promised", "promise", promised, &names)?;
        let [mib_s, iops, p99_us] = names.map(|name| given.positive(name));
        Ok(Self { mib_s: mib_s?, iops: iops?, p99_us: p99_us? })
    }
}
