//! What earlier reports with the same arguments say of a stored one.

use io_probe_advise::compare::{MIN_RUNS, Verdict};
use io_probe_surface::compare::ChangesRow;

use super::gather::count;
use super::{Line, Mark, ReportSection};
use crate::api::history::Change;

/// A sentence for each figure that moved by more than its noise, and one for those that did not.
pub(super) fn told(changes: &[Change]) -> Vec<String> {
    let Some(runs) = changes.iter().map(|change| change.row.runs).max() else { return Vec::new() };
    if runs == 0 {
        return vec!["no earlier report with the same arguments is stored".to_owned()];
    }
    let earlier = if runs == 1 { "1 earlier report".to_owned() } else { format!("{runs} earlier reports") };
    let names = |of: &dyn Fn(&Change) -> Option<String>| {
        let names: Vec<String> = changes.iter().filter_map(of).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let same = names(&|change| (change.verdict == Verdict::Same).then(|| change.row.item.to_string()));
    let early = names(&|change| {
        let ratio = change.row.ratio.filter(|_| is_early(change))?;
        Some(format!("{} {ratio:.2}", change.row.item))
    });
    let mut sentences: Vec<String> = changes.iter().filter_map(|change| moved(change, &earlier)).collect();
    sentences.extend(same.map(|names| format!("the same as in {earlier}, within 30 %: {names}")));
    sentences.extend(
        early.map(|ratios| {
            format!("ratio to {earlier} ({MIN_RUNS} are needed to call it a change): {ratios}")
        }),
    );
    sentences.extend(changes.iter().filter_map(not_known));
    sentences
}

fn moved(change: &Change, earlier: &str) -> Option<String> {
    if ![Verdict::Better, Verdict::Worse].contains(&change.verdict) {
        return None;
    }
    let ChangesRow { item, verdict, unit, before, now, .. } = &change.row;
    let (before, now) = (count((*before)?), count((*now)?));
    Some(format!("{item}: {verdict}, {now} {unit} against {before} in {earlier}"))
}

fn is_unknown(change: &Change) -> bool {
    change.verdict == Verdict::CantTell
}

fn is_early(change: &Change) -> bool {
    is_unknown(change) && (change.row.runs as usize) < MIN_RUNS
}

fn not_known(change: &Change) -> Option<String> {
    let why = match (change.row.before, change.row.now) {
        _ if !is_unknown(change) => return None,
        (None, _) => "no figure to compare in the earlier reports",
        (_, None) => "no figure to compare in this report",
        _ if is_early(change) => return None,
        _ => match change.row.notes.first() {
            Some(why) => why,
            None => return Some(too_noisy(change)),
        },
    };
    Some(format!("{}: {why}", change.row.item))
}

/// That a figure is neither surely the same nor another one, and what would tell.
fn too_noisy(change: &Change) -> String {
    let ChangesRow { item, ratio, noise_pct, remark, .. } = &change.row;
    let [ratio, noise] = [ratio, noise_pct].map(|of| of.map_or("?".to_owned(), count));
    let remark = remark.as_deref().unwrap_or_default();
    format!("{item}: can't tell ({remark}): it is {ratio} times what it was, the noise is {noise} %")
}

/// The range in which the figure of a line would be called the same as before; None if that is not known.
pub(super) fn same_as_before(line: &Line, changes: &[Change]) -> Option<(f64, f64)> {
    let item = match line.section {
        ReportSection::Scan
        | ReportSection::Depth
        | ReportSection::P99
        | ReportSection::Write
        | ReportSection::LongWrite
        | ReportSection::Commit
        | ReportSection::CommitP99 => {
            let tier = if line.mark == Some(Mark::FromMemory) { ", cached" } else { "" };
            format!("{} {}{tier}", line.section.name(), line.item)
        }
        ReportSection::Readahead if line.mark == Some(Mark::InUse) => "readahead kernel".to_owned(),
        _ => return None,
    };
    let change = changes.iter().map(|change| &change.row).find(|change| change.item == item)?;
    let factor = 1.0 + change.noise_pct? / 100.0;
    Some((change.before? / factor, change.before? * factor))
}
