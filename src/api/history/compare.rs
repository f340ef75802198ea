//! `io_probe_compare` and `io_probe_changes`: what differs by more than its noise.

use std::collections::{BTreeMap, BTreeSet};

use io_probe_advise::compare::{self, Comparison, Growing, LEVEL, Run, SeriesRuns, Unknown, Verdict};
use io_probe_core::machine::disturbance;
use io_probe_surface::compare::{ChangesRow, CompareRow};
use io_probe_surface::value::{Text as ColumnText, Timestamp};
use pgrx::prelude::*;

use crate::call::figure;
use crate::error::{Error, Result};
use crate::pg::backend::{Rows, Text, interrupts};
use crate::pg::history::query::{
    self, Difference, Metric, Recent, RunArgument, RunSide, RunValue, Sides, Values,
};

/// Highest value of `last`: runs of a series that count as its last ones.
const MOST_LAST: u32 = 1000;

#[pg_extern(sql = false)]
fn io_probe_compare(run_a: Option<i64>, run_b: Option<i64>) -> Rows {
    Rows::answer(|| {
        let (a, b) = (given("run_a", run_a)?, given("run_b", run_b)?);
        check_runs(a, b)?;
        Ok(rows(&Sides::Runs(a, b)))
    })
}

#[pg_extern(sql = false)]
fn io_probe_compare_labels(label_a: Option<Text>, label_b: Option<Text>) -> Rows {
    Rows::answer(|| {
        let labels = [given("label_a", label_a.as_deref())?, given("label_b", label_b.as_deref())?];
        if let Some(label) = labels.iter().find(|label| !query::has_label(label)) {
            return Err(Error::undefined_object(format!("no run that succeeded has the label \"{label}\""))
                .hint("The table io_probe_runs shows the labels."));
        }
        let mut rows = rows(&Sides::Labels(labels[0], labels[1]));
        let differs_in_nothing = !rows.is_empty() && rows.iter().all(|row| row.metric.is_some());
        let apart = Sides::OtherArguments(labels[0], labels[1]).differences().into_iter();
        rows.extend(interrupts::collect(apart.filter(Difference::is_argument).map(of_other_arguments)));
        if rows.is_empty() && labels[0] != labels[1] {
            return Err(Error::invalid("the two labels have no figures in common")
                .hint("Both labels need runs of the same probe, object and arguments."));
        }
        if labels[0] != labels[1] && differs_in_nothing {
            pgrx::notice!(
                "the two labels differ in no setting that affects reads, writes or syncs; random_page_cost, \
                 for example, affects only plans, which io_probe_explain shows"
            );
        }
        Ok(rows)
    })
}

#[pg_extern(sql = false)]
fn io_probe_changes(last: Option<i32>, all_items: Option<bool>) -> Rows {
    Rows::answer(|| match u32::try_from(last.unwrap_or(1)) {
        Ok(last @ 1..=MOST_LAST) => {
            let recent = query::recent(last);
            if recent.is_empty() {
                pgrx::notice!(
                    "no run with figures is stored: io_probe_record stores one; a verdict needs ten earlier \
                     runs"
                );
            }
            let changes = changes(recent, all_items.unwrap_or(false));
            Ok(interrupts::collect(changes.into_iter().map(|change| change.row)))
        }
        _ => Err(Error::invalid(format!("last must be from 1 to {MOST_LAST}"))),
    })
}

fn given<T>(name: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::invalid(format!("{name} must not be null")))
}

/// Checks that both runs are there, have succeeded, and are of one probe.
fn check_runs(a: i64, b: i64) -> Result<()> {
    let found = query::runs(&[a, b]);
    let (a, b) = (good_run(&found, a)?, good_run(&found, b)?);
    if a.probe != b.probe {
        let message = format!("run {} is of probe \"{}\", run {} of \"{}\"", a.id, a.probe, b.id, b.probe);
        return Err(Error::invalid(message).hint("Only runs of the same probe can be compared."));
    }
    Ok(())
}

fn good_run(found: &[query::StoredRun], id: i64) -> Result<&query::StoredRun> {
    let run = found.iter().find(|run| run.id == id);
    let run = run.ok_or_else(|| {
        Error::undefined_object(format!("there is no run {id}"))
            .hint("The table io_probe_runs shows the runs.")
    })?;
    if run.status != "ok" {
        let error = Error::invalid(format!("run {id} has no figures: its status is {}", run.status));
        return Err(run.message.iter().fold(error, |error, message| error.detail(message)));
    }
    Ok(run)
}

/// A figure of both sides, and of the runs before them.
struct Pair {
    metric: Metric,
    ordinal: i64,
    a: Vec<SeriesRuns>,
    b: Vec<SeriesRuns>,
    past: Vec<SeriesRuns>,
}

impl Pair {
    fn is_of_a_side(&self) -> bool {
        !(self.a.is_empty() && self.b.is_empty())
    }

    /// Where it stands among the rows.
    fn place(&self) -> impl Ord {
        let Metric { probe, object, item, metric, .. } = &self.metric;
        (probe, object, self.ordinal, metric, item)
    }
}

fn rows(sides: &Sides) -> Vec<CompareRow> {
    let mut pairs = BTreeMap::new();
    for values in sides.figures() {
        add(&mut pairs, values);
    }
    let mut pairs = interrupts::collect(pairs.into_values().filter(Pair::is_of_a_side));
    pairs.sort_unstable_by(|one, other| one.place().cmp(&other.place()));
    let differences = sides.differences();
    let figures = pairs.into_iter().map(|pair| of_figure(pair, &differences));
    interrupts::collect(figures.chain(differences.iter().cloned().map(of_setting)))
}

fn add(pairs: &mut BTreeMap<(String, String, String), Pair>, values: Values) {
    interrupts::check();
    let Values { pair, whose, metric, ordinal, series, runs } = values;
    let key = (pair, metric.item.clone(), metric.metric.clone());
    let pair = pairs.entry(key).or_insert_with(|| Pair {
        metric: metric.clone(),
        ordinal,
        a: Vec::new(),
        b: Vec::new(),
        past: Vec::new(),
    });
    pair.ordinal = pair.ordinal.min(ordinal);
    let group = group(series, &runs);
    match whose {
        RunSide::A => pair.a.push(group),
        RunSide::B => {
            pair.b.push(group);
            // Shows B's object, which may be another one.
            pair.metric = metric;
        }
        RunSide::Past => pair.past.push(group),
    }
}

fn group(series: String, runs: &[RunValue]) -> SeriesRuns {
    let runs = runs.iter().map(|run| {
        let stolen = run.steal_pct.unwrap_or(0.0) / 100.0;
        let taken = disturbance::taken(run.own_bytes, run.other_bytes).max(stolen);
        Run { at: run.at, value: run.value, error: run.error, taken }
    });
    SeriesRuns { series, runs: runs.collect() }
}

/// The names of the sides.
const SIDES: [&str; 2] = ["a", "b"];

/// `differences` are those of all figures.
fn of_figure(pair: Pair, differences: &[Difference]) -> CompareRow {
    let Metric { probe, object, item, metric, unit, more_is_better } = pair.metric;
    let found = compare::compare(&pair.a, &pair.b, &pair.past, more_is_better);
    let differing = differences.iter().filter(|difference| difference.is_of(&probe, &object));
    let mut notes = found.notes(SIDES);
    let mut remark = found.remark(LEVEL, Growing::Both, SIDES);
    let arguments = differing.clone().filter(|difference| difference.is_argument());
    let arguments: Vec<&str> = arguments.map(|argument| &*argument.name).collect();
    if matches!(found.unknown, Some(Unknown::NoFigure(_))) && !arguments.is_empty() {
        let arguments = arguments.join(", ");
        notes.push(format!("the sides differ in {arguments}"));
        remark = Some(arguments);
    }
    let verdict = match found.verdict(LEVEL) {
        Verdict::Better | Verdict::Worse if !may_be_touched(differing.clone(), &probe, &item) => {
            notes.push("no setting that differs can affect this figure: something else changed".to_owned());
            Verdict::OtherCause
        }
        verdict => verdict,
    };
    CompareRow {
        probe: Some(probe.into()),
        item: Some(item.into()),
        metric: Some(metric.into()),
        unit: Some(unit.into()),
        a: found.a.map(figure),
        b: found.b.map(figure),
        ratio: found.ratio.map(shown_ratio),
        verdict: Some(verdict.name()),
        remark: remark.map(ColumnText::from),
        noise_pct: noise_pct(&found, LEVEL),
        runs: Some(found.runs as u32),
        a_setting: None,
        b_setting: None,
        object: Some(object.into()),
        notes,
    }
}

/// May the figures of an item have moved by what differs? Where nothing is known to differ, anything may.
fn may_be_touched<'a>(differing: impl Iterator<Item = &'a Difference>, probe: &str, item: &str) -> bool {
    let mut names = differing.map(|difference| &*difference.name).peekable();
    names.peek().is_none() || names.any(|name| compare::can_touch(name, probe, item))
}

fn of_setting(difference: Difference) -> CompareRow {
    let Difference { name, a, b, probe, object } = difference;
    let [shown_a, shown_b] = [&a, &b].map(|value| value.as_deref().unwrap_or("unset"));
    CompareRow {
        probe: probe.map(ColumnText::from),
        item: Some(name.into()),
        remark: Some(format!("{shown_a} -> {shown_b}").into()),
        a_setting: a.map(ColumnText::from),
        b_setting: b.map(ColumnText::from),
        object: object.map(ColumnText::from),
        ..CompareRow::default()
    }
}

/// An argument that keeps runs of two labels apart.
fn of_other_arguments(difference: Difference) -> CompareRow {
    CompareRow {
        verdict: Some(Verdict::CantTell.name()),
        notes: vec!["runs that differ in this argument are not compared".to_owned()],
        ..of_setting(difference)
    }
}

fn noise_pct(comparison: &Comparison, level: f64) -> Option<f64> {
    comparison.noise(level).map(|noise| figure(100.0 * noise))
}

/// Figures of runs have no more digits that mean something.
fn shown_ratio(ratio: f64) -> f64 {
    let unit = 10f64.powf(ratio.log10().floor() - 3.0);
    if unit > 0.0 && unit.is_finite() { figure((ratio / unit).round() * unit) } else { ratio }
}

/// What a figure's last runs say beside those before them.
pub(in crate::api) struct Change {
    pub(in crate::api) verdict: Verdict,
    pub(in crate::api) row: ChangesRow,
}

/// Compares a run with those of its series before it.
pub(in crate::api) fn since_earlier(run: i64) -> Vec<Change> {
    changes(query::run_and_earlier(run), false)
}

/// What moved in the last runs, judged over all figures together.
fn changes(mut recent: Vec<Recent>, all_items: bool) -> Vec<Change> {
    if !all_items {
        let used: BTreeSet<i64> =
            recent.iter().filter(|figure| figure.in_use).map(|figure| figure.run_id).collect();
        // A run without any figure that is in use keeps all of its figures.
        recent.retain(|figure| figure.in_use || !used.contains(&figure.run_id));
    }
    recent.sort_unstable_by(|one, other| one.place().cmp(&other.place()));
    let compared = recent.iter().map(|figure| {
        // A step before the last runs counts as noise: it is not what moved in them. A step among the last
        // runs does not: each of them has a level of its own.
        let before = [group(String::new(), &figure.before)];
        let now: Vec<SeriesRuns> = figure.now.chunks(1).map(|run| group(String::new(), run)).collect();
        compare::compare(&before, &now, &[], figure.metric.more_is_better)
    });
    let all = interrupts::collect(compared);
    let level = compare::holm(all.iter().filter_map(Comparison::chance));
    let told_apart = differing_arguments(&recent);
    let changes = all.iter().zip(recent).map(|(found, recent)| change(found, level, recent, &told_apart));
    interrupts::collect(changes)
}

/// Of runs those arguments in which other series of the same probe and object differ from theirs.
type ToldApart = BTreeMap<i64, String>;

fn differing_arguments(recent: &[Recent]) -> ToldApart {
    let mut series: BTreeMap<(&str, &str), BTreeSet<i64>> = BTreeMap::new();
    for Recent { metric, run_id, .. } in recent {
        series.entry((&metric.probe, &metric.object)).or_default().insert(*run_id);
    }
    series.retain(|_, runs| runs.len() > 1);
    let ids: Vec<i64> = series.values().flatten().copied().collect();
    let mut of_run: BTreeMap<i64, BTreeMap<String, Option<String>>> = BTreeMap::new();
    for RunArgument { run_id, name, value } in query::arguments(&ids) {
        of_run.entry(run_id).or_default().insert(name, value);
    }
    let mut told = ToldApart::new();
    for runs in series.values() {
        let all: Vec<_> = runs.iter().map(|run| (*run, of_run.remove(run).unwrap_or_default())).collect();
        let names: BTreeSet<&String> = all.iter().flat_map(|(_, arguments)| arguments.keys()).collect();
        let differing = names
            .into_iter()
            .filter(|name| all.windows(2).any(|two| two[0].1.get(*name) != two[1].1.get(*name)));
        let names: Vec<&String> = differing.collect();
        for (run, arguments) in all.iter().filter(|_| !names.is_empty()) {
            let shown = names.iter().map(|name| match arguments.get(*name).cloned().flatten() {
                Some(value) => format!("{name} {value}"),
                None => format!("no {name}"),
            });
            told.insert(*run, shown.collect::<Vec<_>>().join(", "));
        }
    }
    told
}

fn change(found: &Comparison, level: f64, recent: Recent, told_apart: &ToldApart) -> Change {
    let lacking = found.remark(level, Growing::Second, SIDES_IN_TIME);
    let remark: Vec<String> = told_apart.get(&recent.run_id).cloned().into_iter().chain(lacking).collect();
    let Metric { probe, object, item, metric, unit, .. } = recent.metric;
    let verdict = found.verdict(level);
    let row = ChangesRow {
        probe: probe.into(),
        object: object.into(),
        item: item.into(),
        metric: metric.into(),
        unit: unit.into(),
        before: found.a.map(figure),
        now: found.b.map(figure),
        ratio: found.ratio.map(shown_ratio),
        verdict: verdict.name(),
        remark: (!remark.is_empty()).then(|| remark.join("; ").into()),
        noise_pct: noise_pct(found, level),
        runs: found.compared[0] as u32,
        since: Timestamp(recent.since),
        run_id: recent.run_id,
        notes: found.notes(SIDES_IN_TIME),
    };
    Change { verdict, row }
}

/// The names of the sides, of which the first is the past.
const SIDES_IN_TIME: [&str; 2] = ["before", "now"];
