//! The report as plain text of 80 columns.

use textwrap::Options;

use super::gather::count;
use super::load_map::LoadMap;
use super::{Line, ReportSection, changes, fact, next, of};
use crate::api::history::Change;

const WIDTH: usize = 80;

/// Characters of the longest bar.
const BAR: usize = 34;

pub(super) fn render(lines: &[Line], changes: &[Change]) -> String {
    let mut text = TextPage::default();
    text.head(lines);
    text.figures(lines);
    text.bars(lines, ReportSection::Depth, "Random reads per second, by requests in flight");
    text.bars(lines, ReportSection::Readahead, "MiB/s of a cold scan, by readahead in kB");
    if let Some(map) = LoadMap::find(lines) {
        text.map(&map);
    }
    text.list(lines, ReportSection::Verdict, "VERDICT");
    text.titled("CHANGED", changes::told(changes).into_iter().map(|told| (told, None)));
    text.list(lines, ReportSection::Advice, "ADVICE");
    text.list(lines, ReportSection::Missing, "MISSING");
    if let Some(next) = next(lines).filter(|_| changes.is_empty()) {
        text.push("");
        // It is pasted, so no line of it is wrapped.
        for (place, line) in next.lines().enumerate() {
            let word = if place == 0 { "NEXT" } else { "" };
            text.push(format!("{word:<9}{line}"));
        }
    }
    text.0.join("\n")
}

/// The lines so far.
#[derive(Default)]
struct TextPage(Vec<String>);

impl TextPage {
    fn push(&mut self, line: impl AsRef<str>) {
        self.0.push(printable(line.as_ref()).trim_end().to_owned());
    }

    /// A paragraph behind a word, wrapped under its own beginning.
    fn paragraph(&mut self, word: &str, text: &str) {
        let first = format!("{word:<9}");
        let options = Options::new(WIDTH).initial_indent(&first).subsequent_indent("         ");
        for line in textwrap::wrap(&printable(text), options) {
            self.push(line);
        }
    }

    fn head(&mut self, lines: &[Line]) {
        let name = |item: &str| fact(lines, item);
        let place = [name("database"), name("host")].join("@");
        let started = name("started").get(..16).unwrap_or_default().replace('T', " ");
        let elapsed =
            of(lines, ReportSection::Server).find(|line| line.item == "elapsed").and_then(|line| line.value);
        let version = name("PostgreSQL").split(' ').next().unwrap_or_default();
        self.push(format!("pg_io_probe {}  PostgreSQL {version}  {place}", name("pg_io_probe")));
        let elapsed = elapsed.map_or(String::new(), |seconds| format!("{seconds:.0} s"));
        let relation = of(lines, ReportSection::Server).find(|line| line.item == "relation");
        let size =
            relation.and_then(|line| line.value).map_or(String::new(), |mib| format!(", {} MiB", count(mib)));
        let relation = relation.map_or(String::new(), |line| format!("  {}{size}", line.finding()));
        self.push(format!("{started}  {elapsed}{relation}"));
        self.push("");
        let mut places: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in of(lines, ReportSection::Device) {
            match places.iter_mut().find(|(facts, _)| *facts == line.finding()) {
                Some((_, names)) => names.push(&line.item),
                None => places.push((line.finding(), vec![&line.item])),
            }
        }
        for (facts, names) in places {
            self.paragraph("DEVICE", &format!("{facts}: {}", names.join(", ")));
        }
        for line in of(lines, ReportSection::Trust) {
            self.paragraph("TRUST", &format!("{}: {}", line.item, line.finding()));
        }
    }

    fn figures(&mut self, lines: &[Line]) {
        let shown: Vec<(String, &Line)> =
            lines.iter().filter_map(|line| Some((name_of(line)?, line))).collect();
        if shown.is_empty() {
            return;
        }
        self.push("");
        let has_promises = shown.iter().any(|(_, line)| line.promised.is_some());
        let last = if has_promises { "promised/doubt" } else { "doubt" };
        self.push(format!("{:34}{:>10}{:>18}  {last}", "", "measured", "95 % interval"));
        for (name, line) in shown {
            let said = line.shown_promise().map(|promise| format!("{promise} {}", line.shown_kept()));
            let (unit, value, range) = (line.unit(), line.shown(), line.range());
            let doubt = line.against();
            let against = said.as_deref().unwrap_or(&doubt);
            self.push(format!("{name:<27} {unit:<6}{value:>10}{range:>18}  {against}"));
            if said.is_some() && !doubt.is_empty() {
                self.push(format!("{:63} ({doubt})", ""));
            }
        }
    }

    fn bars(&mut self, lines: &[Line], section: ReportSection, title: &str) {
        let known: Vec<&Line> = of(lines, section).filter(|line| line.value.is_some()).collect();
        if known.is_empty() {
            return;
        }
        self.push("");
        // A figure without an interval may be far off: it has no bar.
        let all = if known.iter().all(|line| line.low.is_some()) { "" } else { " (no bar: unsure)" };
        self.push(format!("{title}{all}"));
        let length_of = |line: &Line| line.value.filter(|_| line.low.is_some()).unwrap_or(0.0);
        let greatest = known.iter().map(|line| length_of(line)).fold(f64::MIN_POSITIVE, f64::max);
        for line in known {
            let value = line.value.unwrap_or(0.0);
            let bar = "#".repeat((length_of(line) / greatest * BAR as f64).ceil() as usize);
            self.push(format!("{:>8} {bar:<BAR$} {:>10}  {}", line.item, count(value), line.remarks()));
        }
    }

    /// A row for each load of reads, a column for each of writes.
    fn map(&mut self, map: &LoadMap<'_>) {
        self.push("");
        self.push(map.title());
        let cells = |cell: &dyn Fn(u32) -> String| -> String {
            map.writes.iter().map(|writes| format!(" {:>15}", cell(*writes))).collect()
        };
        self.push(format!("{:>13}{}", "", cells(&|writes| format!("writes {writes} %"))));
        for reads in &map.reads {
            let shown = |writes| map.at(reads, writes).map_or(String::new(), Line::shown_of_load);
            self.push(format!("{:>13}{}", format!("reads {reads} %"), cells(&shown)));
        }
    }

    /// Paragraphs under a title, each with its statement below it, if it has one.
    fn titled<'a>(&mut self, title: &str, paragraphs: impl Iterator<Item = (String, Option<&'a str>)>) {
        for (place, (text, statement)) in paragraphs.enumerate() {
            if place == 0 {
                self.push("");
            }
            self.paragraph(if place == 0 { title } else { "" }, &text);
            if let Some(statement) = statement {
                self.push(format!("         {statement}"));
            }
        }
    }

    fn list(&mut self, lines: &[Line], section: ReportSection, title: &str) {
        let is_named = matches!(section, ReportSection::Advice | ReportSection::Missing);
        let paragraphs = of(lines, section).map(|line| {
            let name = if is_named { format!("{}: ", line.item) } else { String::new() };
            (name + line.finding(), line.statement.as_deref())
        });
        self.titled(title, paragraphs);
    }
}

/// The name of a figure in the table; None for one that is not in it.
fn name_of(line: &Line) -> Option<String> {
    Some(match (line.section, &*line.item) {
        (ReportSection::Scan, "direct") => "scan, device".to_owned(),
        (ReportSection::Scan, "server") => "scan, PostgreSQL".to_owned(),
        (ReportSection::Depth, depth) if depth == "1" || line.is_chosen() || line.promised.is_some() => {
            format!("random reads, {depth} in flight")
        }
        (ReportSection::P50, "1") => "random read, median".to_owned(),
        (ReportSection::P99, "1") => "random read, p99".to_owned(),
        (ReportSection::Commit, method) if line.is_chosen() => format!("commit, {method}"),
        (ReportSection::Write, depth) => format!("random writes, {depth} in flight"),
        (ReportSection::WriteP50, "1") => "random write, median".to_owned(),
        (ReportSection::WriteP99, "1") => "random write, p99".to_owned(),
        (ReportSection::LongWrite, depth) => format!("long writes, {depth} in flight"),
        (ReportSection::Load, side) => format!("{side} alone, for the map"),
        (ReportSection::CommitLoadP50 | ReportSection::CommitLoadP99, "0") => return None,
        (ReportSection::CommitLoadP50, _) => "commit beside reads, median".to_owned(),
        (ReportSection::CommitLoadP99, _) if line.value.is_some() => "commit beside reads, p99".to_owned(),
        (ReportSection::CommitP99, method) if line.value.is_some() || line.promised.is_some() => {
            format!("commit p99, {method}")
        }
        _ => return None,
    })
}

/// Replaces control characters: a name may hold them, but a line may not.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
