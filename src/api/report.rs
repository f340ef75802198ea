//! `io_probe_report`: what there is to know of this server's storage, measured in one call and said in words.
//!
//! A report is a list of lines, each a figure or a fact, which `io_probe_report_full` returns and
//! `io_probe_record('report')` stores. The text and the page are made of nothing but these lines, so that a
//! stored report can be shown at any time, here or on another server.
//!
//! # Limitations and caveats
//! The probes are called one after the other, with the caller's rights: what one of them refuses is an ERROR
//! of the whole report, but bad luck (storage that fails, another probe that runs) is a line. They are called
//! as functions of this library: what ALTER FUNCTION sets for one of them does not hold here.

mod changes;
mod gather;
mod load_map;
mod page;
mod plots;
mod text;

use std::ops::Deref;
use std::time::{Duration, Instant};

use io_probe_core::run::memory;
use io_probe_surface::doubt::Doubts;
use io_probe_surface::function::MEASURING;
use io_probe_surface::report::{Mark, ReportFullRow, ReportRow, ReportSection};
use io_probe_surface::value;
use pgrx::{prelude::*, spi};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::gather::{Measurements, count};
use super::history;
use crate::call::named::{NamedEnum, named};
use crate::call::{self, Options, arguments};
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::{JsonbText, Rows, SqlInterval, Text};
use crate::pg::history::report_lines;

/// How long a report takes by default.
const DURATION: Duration = Duration::from_secs(30);

/// The line that has the call's arguments.
const ARGUMENTS: &str = "arguments";

/// An argument with more bytes is not among them: the caller knows it.
const LONGEST_ARGUMENT: usize = 1000;

/// Most lines of a stored report, and their bytes as JSON: an imported one may say anything.
const MOST_LINES: usize = 5000;
const MOST_SIZE: usize = 2 << 20;

#[allow(clippy::too_many_arguments, reason = "the SQL signature")]
#[pg_extern(sql = false)]
fn io_probe_report(
    rel: Option<pg_sys::Oid>,
    duration: Option<SqlInterval>,
    cold: Option<bool>,
    writes: Option<bool>,
    promised: Option<JsonbText>,
    format: Option<Text>,
    run: Option<i64>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let format = Format::parse(format.as_deref())?.unwrap_or(Format::Text);
        // What a stored run says may be anyone's. Its lines and the page of them take less than this.
        let _memory = run.map(|_| memory::hold(32 * MOST_SIZE)).transpose()?;
        let (lines, changes) = match run {
            Some(run) => (stored(run)?, history::since_earlier(run)),
            None => (measured(rel, duration, cold, writes, promised, options)?, Vec::new()),
        };
        let shown = match format {
            Format::Text => text::render(&lines, &changes),
            Format::Html => page::render(&lines, &changes),
        };
        Ok(shown.lines().map(|line| ReportRow { report: line.to_owned().into() }).collect())
    })
}

#[pg_extern(sql = false)]
fn io_probe_report_full(
    rel: Option<pg_sys::Oid>,
    duration: Option<SqlInterval>,
    cold: Option<bool>,
    writes: Option<bool>,
    promised: Option<JsonbText>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let lines = measured(rel, duration, cold, writes, promised, options)?;
        Ok(lines.into_iter().map(|line| line.0).collect())
    })
}

named! {
    /// The form in which a report is shown.
    enum Format: "format", "formats" {
        Text = "text",
        Html = "html",
    }
}

/// A line of a report, measured or stored.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
struct Line(ReportFullRow);

impl Deref for Line {
    type Target = ReportFullRow;

    fn deref(&self) -> &ReportFullRow {
        &self.0
    }
}

impl Line {
    fn new(section: ReportSection, item: impl Into<value::Text>) -> Self {
        Self(ReportFullRow { section, item: item.into(), ..ReportFullRow::default() })
    }

    fn fact(section: ReportSection, item: impl Into<value::Text>, finding: impl Into<value::Text>) -> Self {
        let Self(line) = Self::new(section, item);
        Self(ReportFullRow { finding: Some(finding.into()), ..line })
    }

    /// A figure, with the ends of its interval.
    fn figure(
        section: ReportSection,
        item: impl Into<value::Text>,
        value: Option<f64>,
        unit: &'static str,
        (low, high): (Option<f64>, Option<f64>),
    ) -> Self {
        let Self(line) = Self::new(section, item);
        Self(ReportFullRow { value, unit: Some(unit.into()), low, high, ..line })
    }

    fn marked(self, mark: Option<Mark>, doubts: &Doubts) -> Self {
        Self(ReportFullRow { mark, doubt: doubts.clone(), ..self.0 })
    }

    /// Is it the figure that counts among its like?
    fn is_chosen(&self) -> bool {
        matches!(self.mark, Some(Mark::Best | Mark::InUse))
    }

    /// What speaks against a figure. What came from memory says nothing of the device anyway, and a load that
    /// was not carried is told before all else.
    fn against(&self) -> String {
        match self.mark {
            Some(mark @ (Mark::FromMemory | Mark::NotCarried)) => mark.name().to_owned(),
            _ => self.doubt.shown().unwrap_or_default(),
        }
    }

    /// What a figure is, and what speaks against it.
    fn remarks(&self) -> String {
        let mark = self.mark.filter(|_| self.is_chosen()).map_or("", Mark::name).to_owned();
        [mark, self.against()].into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join(", ")
    }

    fn finding(&self) -> &str {
        self.finding.as_deref().unwrap_or_default()
    }

    /// What the figure is at: the item, and the writes beside it.
    fn shown_item(&self) -> String {
        self.write_pct.map_or(self.item.to_string(), |writes| format!("{} %, writes {writes} %", self.item))
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

    /// What was promised, as people write it; None if nothing was.
    fn shown_promise(&self) -> Option<String> {
        self.promised.map(count)
    }

    /// Whether a promise is kept.
    fn shown_kept(&self) -> &'static str {
        match self.kept {
            Some(true) => "ok",
            Some(false) => "NO",
            None => "can't tell",
        }
    }
}

fn of(lines: &[Line], section: ReportSection) -> impl Iterator<Item = &Line> {
    lines.iter().filter(move |line| line.section == section)
}

/// The fact of that name about the server.
fn fact<'a>(lines: &'a [Line], item: &str) -> &'a str {
    of(lines, ReportSection::Server).find(|line| line.item == item).map_or("", Line::finding)
}

/// The statement that stores such a report, on three lines if the call had arguments. None if nothing was
/// measured.
fn next(lines: &[Line]) -> Option<String> {
    if !lines.iter().any(|line| line.section != ReportSection::Server && line.value.is_some()) {
        return None;
    }
    let relation = match fact(lines, "relation") {
        "" => String::new(),
        name => format!(", {}", spi::quote_literal(name)),
    };
    Some(match fact(lines, ARGUMENTS) {
        "" => format!("SELECT io_probe_record('report'{relation}, label => 'today');"),
        json => format!(
            "SELECT io_probe_record('report'{relation},\nargs => {},\nlabel => 'today');",
            spi::quote_literal(json)
        ),
    })
}

/// The lines of a stored run.
fn stored(run: i64) -> Result<Vec<Line>> {
    let rows = report_lines(run, MOST_LINES + 1).ok_or_else(|| {
        Error::undefined_object(format!("run {run} is not a stored report"))
            .hint("Stored reports are the rows of io_probe_runs whose probe is \"report\".")
    })?;
    let size: usize = rows.iter().map(String::len).sum();
    if rows.len() > MOST_LINES || size > MOST_SIZE {
        return Err(Error::too_large(format!(
            "run {run} can't be shown: it has too many lines, or too long ones"
        ))
        .detail(format!("A report has at most {MOST_LINES} lines, and {MOST_SIZE} bytes in all.")));
    }
    let line = |row: String| {
        serde_json::from_str(&row).map_err(|e| {
            Error::invalid(format!("run {run} can't be shown"))
                .detail(format!("One of its rows is not a line of a report: {e}"))
        })
    };
    rows.into_iter().map(line).collect()
}

fn measured(
    rel: Option<pg_sys::Oid>,
    duration: Option<SqlInterval>,
    cold: Option<bool>,
    writes: Option<bool>,
    promised: Option<JsonbText>,
    options: Option<JsonbText>,
) -> Result<Vec<Line>> {
    let given = arguments::duration(duration)?;
    let (cold, writes) = (cold.unwrap_or(false), writes.unwrap_or(false));
    let arguments = call_arguments(given, cold, writes, [&promised, &options]);
    let promised = Promised::parse(promised)?;
    // io_probe_depth takes all of these but `precision`.
    let options = Options::parse(options, MEASURING)?;
    let (duration, bounds) = (gucs::share_of_duration(given, 1, 1, DURATION)?, options.bounds()?);
    let waits = options.waits()?;
    call::check_no_probe_runs(waits)?;
    Measurements {
        rel,
        began: Instant::now(),
        duration,
        uses_all_time: given.is_some(),
        cold,
        writes,
        promised,
        bounds,
        waits,
        arguments,
    }
    .lines()
}

/// The arguments of a call besides the relation, as `io_probe_record` takes them, without defaults.
fn call_arguments(
    duration: Option<Duration>,
    cold: bool,
    writes: bool,
    [promised, options]: [&Option<JsonbText>; 2],
) -> Option<String> {
    let given: Map<String, Value> = [
        ("duration", duration.map(|duration| format!("{} s", duration.as_secs_f64()).into())),
        ("cold", cold.then_some(Value::Bool(true))),
        ("writes", writes.then_some(Value::Bool(true))),
        ("promised", short_json(promised)),
        ("options", short_json(options).filter(|options| *options != json!({}))),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect();
    (!given.is_empty()).then(|| Value::Object(given).to_string())
}

/// An argument as JSON; None without one, or if it is too long.
fn short_json(argument: &Option<JsonbText>) -> Option<Value> {
    let text = argument.as_deref().filter(|text| text.len() <= LONGEST_ARGUMENT)?;
    serde_json::from_str(text).ok()
}

macro_rules! promised {
    ($($(#[$doc:meta])* $name:ident)+) => {
        /// What the storage was bought for.
        #[derive(Debug, Default, Clone, Copy)]
        struct Promised {
            $($(#[$doc])* $name: Option<f64>,)+
        }

        impl Promised {
            fn parse(promised: Option<JsonbText>) -> Result<Self> {
                let given = Options::of("promised", "promise", promised, &[$(stringify!($name)),+])?;
                Ok(Self { $($name: given.positive(stringify!($name))?,)+ })
            }
        }
    };
}

promised! {
    /// Rate of a scan past all caches.
    mib_s
    /// Reads a second at the fastest depth.
    iops
    /// 99th percentile of single reads.
    p99_us
    /// Rate of long writes past the page cache.
    write_mib_s
    /// Random writes a second at the faster depth.
    write_iops
    /// Time of a flush of the WAL as the server does it, and 99th percentile.
    commit_us
    commit_p99_us
}
