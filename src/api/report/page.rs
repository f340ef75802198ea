//! The report as one page of HTML, with everything in it: no script, no font, no address.

use askama::Template;

use super::gather::count;
use super::plots::{self, Bar};
use super::{Line, ReportSection, changes, fact, next, of};
use crate::api::history::Change;

#[derive(Template)]
#[template(path = "report.html")]
struct HtmlPage<'a> {
    title: String,
    facts: Vec<(&'a str, String)>,
    devices: Vec<&'a Line>,
    trust: Vec<&'a Line>,
    figures: Vec<Figure>,
    charts: Vec<Chart>,
    verdicts: Vec<&'a Line>,
    changes: Vec<String>,
    has_bands: bool,
    advice: Vec<&'a Line>,
    missing: Vec<&'a Line>,
    next: Option<String>,
}

/// A row of the table of all figures.
struct Figure {
    what: &'static str,
    item: String,
    value: String,
    unit: String,
    range: String,
    promised: String,
    kept: Option<bool>,
    finding: String,
}

/// A picture; the SVG is made by the plotting library, which escapes.
struct Chart {
    title: &'static str,
    svg: String,
}

pub(super) fn render(lines: &[Line], changes: &[Change]) -> String {
    let shown = |section| of(lines, section).collect::<Vec<_>>();
    let page = HtmlPage {
        title: format!("Storage of {} on {}", fact(lines, "database"), fact(lines, "host")),
        facts: of(lines, ReportSection::Server).map(|line| (line.item.as_str(), told(line))).collect(),
        devices: shown(ReportSection::Device),
        trust: shown(ReportSection::Trust),
        figures: lines.iter().filter_map(Figure::of).collect(),
        charts: charts(lines, changes),
        verdicts: shown(ReportSection::Verdict),
        changes: changes::told(changes),
        has_bands: changes.iter().any(|change| change.noise_pct.is_some()),
        advice: shown(ReportSection::Advice),
        missing: shown(ReportSection::Missing),
        next: changes.is_empty().then(|| next(lines)),
    };
    match page.render() {
        Ok(page) => page,
        Err(e) => unreachable!("it is written to memory: {e}"),
    }
}

/// A fact, with its figure.
fn told(line: &Line) -> String {
    let value =
        line.value.map(|value| format!("{} {}", count(value), line.unit.as_deref().unwrap_or_default()));
    [line.finding.clone(), value].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

impl Figure {
    fn of(line: &Line) -> Option<Self> {
        let what = match line.section {
            ReportSection::Scan => "scan",
            ReportSection::Depth => "random reads, in flight",
            ReportSection::P50 => "median latency, in flight",
            ReportSection::P99 => "99th percentile, in flight",
            ReportSection::Commit => "flush of WAL",
            ReportSection::Readahead => "scan, readahead kB",
            _ => return None,
        };
        Some(Self {
            what,
            item: line.item.clone(),
            value: line.value.map_or("–".to_owned(), count),
            unit: line.unit.clone().unwrap_or_default(),
            range: line
                .low
                .zip(line.high)
                .map_or(String::new(), |(low, high)| format!("{} – {}", count(low), count(high))),
            promised: line.promised.map_or(String::new(), count),
            kept: line.kept,
            finding: line.finding.clone().unwrap_or_default(),
        })
    }
}

fn charts(lines: &[Line], changes: &[Change]) -> Vec<Chart> {
    let bar = |line| Bar::of(line, changes::same_as_before(line, changes));
    let bars = |section| -> Vec<Bar> { of(lines, section).filter_map(bar).collect() };
    [
        ("Scans, MiB/s", plots::bars(&bars(ReportSection::Scan))),
        ("Random reads a second, by requests in flight", plots::curve(&bars(ReportSection::Depth))),
        ("99th percentile of their latencies, us", plots::curve(&bars(ReportSection::P99))),
        ("Cold scan, MiB/s, by readahead in kB", plots::curve(&bars(ReportSection::Readahead))),
        ("Flush of one WAL block, us (less is better)", plots::bars(&bars(ReportSection::Commit))),
    ]
    .into_iter()
    .filter_map(|(title, svg)| Some(Chart { title, svg: svg? }))
    .collect()
}
