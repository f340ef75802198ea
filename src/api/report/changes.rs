//! What earlier reports with the same arguments say of a stored one.

use io_probe_core::advise::compare::{MIN_RUNS, Verdict};

use super::gather::{FROM_MEMORY, count};
use super::{Line, ReportSection};
use crate::api::history::Change;

/// A sentence for each figure that moved by more than its noise, and one for those that did not.
pub(super) fn told(changes: &[Change]) -> Vec<String> {
    let Some(runs) = changes.iter().map(|change| change.runs).max() else { return Vec::new() };
    if runs == 0 {
        return vec!["no earlier report with the same arguments is stored".to_owned()];
    }
    let earlier = if runs == 1 { "1 earlier report".to_owned() } else { format!("{runs} earlier reports") };
    let names = |of: &dyn Fn(&Change) -> Option<String>| {
        let names: Vec<String> = changes.iter().filter_map(of).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let same = names(&|change| (change.verdict == Verdict::Same).then(|| change.metric.item.clone()));
    let early = names(&|change| {
        let ratio = change.ratio.filter(|_| is_early(change))?;
        Some(format!("{} {ratio:.2}", change.metric.item))
    });
    let mut sentences: Vec<String> = changes.iter().filter_map(|change| moved(change, &earlier)).collect();
    sentences.extend(same.map(|names| format!("within the noise of {earlier}: {names}")));
    sentences.extend(early.map(|ratios| {
        format!("times what it was in {earlier} (it takes {MIN_RUNS} to call a change): {ratios}")
    }));
    sentences.extend(changes.iter().filter_map(not_known));
    sentences
}

fn moved(change: &Change, earlier: &str) -> Option<String> {
    let verdict = match change.verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Same | Verdict::Unknown => return None,
    };
    let (before, now, unit) = (count(change.before?), count(change.now?), &change.metric.unit);
    Some(format!("{}: {verdict}, {now} {unit} against {before} in {earlier}", change.metric.item))
}

fn is_early(change: &Change) -> bool {
    change.verdict == Verdict::Unknown && change.runs < MIN_RUNS
}

fn not_known(change: &Change) -> Option<String> {
    let why = match (change.verdict, change.before, change.now) {
        (Verdict::Unknown, None, _) => "no figure to compare in the earlier reports",
        (Verdict::Unknown, _, None) => "no figure to compare in this report",
        (Verdict::Unknown, ..) if !is_early(change) => change.notes.first()?,
        _ => return None,
    };
    Some(format!("{}: {why}", change.metric.item))
}

/// The range in which the figure of a line would be called the same as before; None if that is not known.
pub(super) fn same_as_before(line: &Line, changes: &[Change]) -> Option<(f64, f64)> {
    let item = match line.section {
        ReportSection::Scan | ReportSection::Depth | ReportSection::P99 | ReportSection::Commit => {
            let section = serde_json::to_value(line.section).ok()?;
            let tier = if line.finding() == FROM_MEMORY { ", from memory" } else { "" };
            format!("{} {}{tier}", section.as_str()?, line.item)
        }
        ReportSection::Readahead if line.is_marked() => "readahead kernel".to_owned(),
        _ => return None,
    };
    let change = changes.iter().find(|change| change.metric.item == item)?;
    let factor = 1.0 + change.noise_pct? / 100.0;
    Some((change.before? / factor, change.before? * factor))
}
