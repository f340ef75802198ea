//! The report as one page of HTML, with everything in it: no script, no font, no address.

use askama::Template;

use super::load_map::LoadMap;
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
    /// What each of all figures is of, and its line.
    figures: Vec<(&'static str, &'a Line)>,
    /// The title and the SVG of each picture, which the plotting library makes and escapes.
    charts: Vec<(String, String)>,
    verdicts: Vec<&'a Line>,
    changes: Vec<String>,
    has_bands: bool,
    advice: Vec<&'a Line>,
    missing: Vec<&'a Line>,
    next: Option<String>,
}

pub(super) fn render(lines: &[Line], changes: &[Change]) -> String {
    let shown = |section| of(lines, section).collect::<Vec<_>>();
    let page = HtmlPage {
        title: format!("Storage of {} on {}", fact(lines, "database"), fact(lines, "host")),
        facts: of(lines, ReportSection::Server).map(|line| (&*line.item, told(line))).collect(),
        devices: shown(ReportSection::Device),
        trust: shown(ReportSection::Trust),
        figures: lines.iter().filter_map(|line| Some((what(line)?, line))).collect(),
        charts: charts(lines, changes),
        verdicts: shown(ReportSection::Verdict),
        changes: changes::told(changes),
        has_bands: changes.iter().any(|change| change.row.noise_pct.is_some()),
        advice: shown(ReportSection::Advice),
        missing: shown(ReportSection::Missing),
        next: next(lines).filter(|_| changes.is_empty()),
    };
    match page.render() {
        Ok(page) => ascii(&page),
        Err(e) => unreachable!("it is written to memory: {e}"),
    }
}

/// The page with a numeric reference for each character beyond ASCII: so it is the same in any encoding, of
/// the database and of the file that it is written to.
fn ascii(page: &str) -> String {
    page.chars().fold(String::with_capacity(page.len()), |mut ascii, letter| {
        if letter.is_ascii() {
            ascii.push(letter);
        } else {
            ascii += &format!("&#{};", u32::from(letter));
        }
        ascii
    })
}

/// A fact, with its figure.
fn told(line: &Line) -> String {
    let value = line.value.map(|_| format!("{} {}", line.shown(), line.unit()));
    [line.finding.as_deref(), value.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What a figure in the table is of; None for a line that is no figure.
fn what(line: &Line) -> Option<&'static str> {
    Some(match line.section {
        ReportSection::Scan => "scan",
        ReportSection::Depth => "random reads, in flight",
        ReportSection::P50 => "median latency, in flight",
        ReportSection::P99 => "99th percentile, in flight",
        ReportSection::Write => "random writes, in flight",
        ReportSection::WriteP50 => "median latency of writes, in flight",
        ReportSection::WriteP99 => "99th percentile of writes, in flight",
        ReportSection::LongWrite => "long writes, in flight",
        ReportSection::Commit => "flush of WAL",
        ReportSection::CommitP99 => "99th percentile of flushes",
        ReportSection::Load => "reads and writes alone",
        ReportSection::LoadP50 => "median latency beside writes, reads",
        ReportSection::LoadP99 => "99th percentile beside writes, reads",
        ReportSection::CommitLoadP50 => "median of flushes of WAL, beside reads",
        ReportSection::CommitLoadP99 => "99th percentile of flushes of WAL, beside reads",
        ReportSection::Readahead => "scan, readahead kB",
        _ => return None,
    })
}

fn charts(lines: &[Line], changes: &[Change]) -> Vec<(String, String)> {
    let bar = |line| Bar::of(line, changes::same_as_before(line, changes));
    let bars = |section| -> Vec<Bar> { of(lines, section).filter_map(bar).collect() };
    [
        ("Scans, MiB/s", plots::bars(&bars(ReportSection::Scan))),
        ("Random reads per second, by requests in flight", plots::curve(&bars(ReportSection::Depth))),
        ("99th percentile of the latencies of random reads, us", plots::curve(&bars(ReportSection::P99))),
        ("Cold scan, MiB/s, by readahead in kB", plots::curve(&bars(ReportSection::Readahead))),
        ("Flush of one WAL block, us (less is better)", plots::bars(&bars(ReportSection::Commit))),
    ]
    .into_iter()
    .map(|(title, svg)| (title.to_owned(), svg))
    .chain(LoadMap::find(lines).map(|map| (map.title(), plots::map(&map))))
    .filter_map(|(title, svg)| Some((title, svg?)))
    .collect()
}
