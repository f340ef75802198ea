//! `io_probe_compare` and `io_probe_changes`: what differs by more than its noise.

use std::collections::{BTreeMap, BTreeSet};

use io_probe_core::advise::compare::{self, Comparison, Group, LEVEL, Run, Verdict};
use io_probe_core::machine::disturbance;
use pgrx::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use crate::call::arguments::figure;
use crate::error::{Error, Result};
use crate::pg::backend::encoding::Text;
use crate::pg::backend::interrupts;
use crate::pg::backend::row::Rows;
use crate::pg::history::query::{self, Metric, Recent, RunSide, RunValue, Sides, Values};

/// Highest value of `last`: runs of a series that count as its last ones.
const MOST_LAST: u32 = 1000;

#[pg_extern(sql = false)]
fn io_probe_compare(run_a: Option<i64>, run_b: Option<i64>) -> Rows {
    let sides = || {
        let (a, b) = (given("run_a", run_a)?, given("run_b", run_b)?);
        check_runs(a, b)?;
        Ok(Sides::Runs(a, b))
    };
    Rows::answer(|| sides().map(|sides| rows(&sides)))
}

#[pg_extern(sql = false)]
fn io_probe_compare_labels(label_a: Option<Text>, label_b: Option<Text>) -> Rows {
    let compared = || {
        let labels = [given("label_a", label_a.as_deref())?, given("label_b", label_b.as_deref())?];
        if let Some(label) = labels.iter().find(|label| !query::has_label(label)) {
            return Err(Error::undefined_object(format!("no run that succeeded has the label \"{label}\"")));
        }
        let rows = rows(&Sides::Labels(labels[0], labels[1]));
        if rows.is_empty() && labels[0] != labels[1] {
            return Err(Error::invalid("the two labels have no figures in common")
                .hint("Both need runs of the same probe, object and arguments."));
        }
        Ok(rows)
    };
    Rows::answer(compared)
}

#[pg_extern(sql = false)]
fn io_probe_changes(last: Option<i32>, all_items: Option<bool>) -> Rows {
    let last = match u32::try_from(last.unwrap_or(1)) {
        Ok(last @ 1..=MOST_LAST) => Ok(last),
        _ => Err(Error::invalid(format!("last must be from 1 to {MOST_LAST}"))),
    };
    Rows::answer(|| last.map(|last| changes(query::recent(last), all_items.unwrap_or(false))))
}

fn given<T>(name: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::invalid(format!("{name} must not be null")))
}

/// Checks that both runs are there, have succeeded, and are of one probe.
fn check_runs(a: i64, b: i64) -> Result<()> {
    let found = query::runs(&[a, b]);
    let find = |id| {
        let run = found.iter().find(|run| run.id == id);
        let run = run.ok_or_else(|| Error::undefined_object(format!("there is no run {id}")))?;
        if run.status != "ok" {
            let error = Error::invalid(format!("run {id} has no figures: it was {}", run.status));
            return Err(run.message.iter().fold(error, |error, message| error.detail(message)));
        }
        Ok(run)
    };
    let (a, b) = (find(a)?, find(b)?);
    if a.probe != b.probe {
        let message = format!("run {} is of probe \"{}\", run {} of \"{}\"", a.id, a.probe, b.id, b.probe);
        return Err(Error::invalid(message).hint("Runs of the same probe can be compared."));
    }
    Ok(())
}

/// A figure of both sides, and of the runs before them.
struct Pair {
    metric: Metric,
    ordinal: i64,
    a: Vec<Group>,
    b: Vec<Group>,
    past: Vec<Group>,
}

fn rows(sides: &Sides) -> Vec<Value> {
    let mut pairs = BTreeMap::new();
    for values in sides.figures() {
        add(&mut pairs, values);
    }
    let mut pairs: Vec<Pair> =
        pairs.into_values().filter(|pair| !(pair.a.is_empty() && pair.b.is_empty())).collect();
    pairs.sort_by_cached_key(|pair| {
        let Metric { probe, object, metric, .. } = pair.metric.clone();
        (probe, object, pair.ordinal, metric)
    });
    let differences = sides.differences().into_iter().map(|difference| {
        json!({
            "probe": difference.probe,
            "metric": difference.name,
            "a_setting": difference.a,
            "b_setting": difference.b,
            "object": difference.object,
            "notes": [],
        })
    });
    pairs.into_iter().map(row).chain(differences).collect()
}

fn add(pairs: &mut BTreeMap<(String, String, String), Pair>, values: Values) {
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

fn group(series: String, runs: &[RunValue]) -> Group {
    let run = |run: &RunValue| {
        let stolen = run.steal_pct.unwrap_or(0.0) / 100.0;
        let taken = disturbance::taken(run.own_bytes, run.other_bytes).max(stolen);
        Run { at: run.at, value: run.value, error: run.error, taken }
    };
    Group { series, runs: runs.iter().map(run).collect() }
}

/// A row of `io_probe_compare_row`; the type's comments say what each attribute means.
fn row(pair: Pair) -> Value {
    interrupts::check();
    let Metric { probe, object, item, metric, unit, more_is_better } = pair.metric;
    let found = compare::compare(&pair.a, &pair.b, &pair.past, more_is_better);
    json!({
        "probe": probe,
        "item": item,
        "metric": metric,
        "unit": unit,
        "a": found.a.map(figure),
        "b": found.b.map(figure),
        "ratio": found.ratio.map(figure),
        "verdict": found.verdict(LEVEL),
        "noise_pct": noise_pct(&found, LEVEL),
        "runs": found.runs,
        "object": object,
        "notes": found.notes(["a", "b"]),
    })
}

fn noise_pct(comparison: &Comparison, level: f64) -> Option<f64> {
    comparison.noise(level).map(|noise| figure(100.0 * noise))
}

/// `io_probe_changes_row`; the type's comments say what each attribute means.
#[derive(Debug, Serialize)]
pub(in crate::api) struct Change {
    #[serde(flatten)]
    pub(in crate::api) metric: Metric,
    pub(in crate::api) before: Option<f64>,
    pub(in crate::api) now: Option<f64>,
    pub(in crate::api) ratio: Option<f64>,
    pub(in crate::api) verdict: Verdict,
    pub(in crate::api) noise_pct: Option<f64>,
    pub(in crate::api) runs: usize,
    since: String,
    run_id: i64,
    pub(in crate::api) notes: Vec<String>,
}

/// Compares a run with those of its series before it.
pub(in crate::api) fn since_earlier(run: i64) -> Vec<Change> {
    changes(query::run_and_earlier(run), false)
}

/// What moved in the last runs, judged over all figures together.
fn changes(mut recent: Vec<Recent>, all_items: bool) -> Vec<Change> {
    if !all_items {
        let used: BTreeSet<i64> =
            recent.iter().filter(|figure| is_in_use(figure)).map(|figure| figure.run_id).collect();
        // A run without any figure that is in use keeps all of its figures.
        recent.retain(|figure| is_in_use(figure) || !used.contains(&figure.run_id));
    }
    recent.sort_by_cached_key(|figure| {
        let Metric { probe, object, metric, .. } = figure.metric.clone();
        (probe, object, figure.run_id, figure.ordinal, metric)
    });
    let compared = |figure: Recent| {
        interrupts::check();
        // A step before the last runs counts as noise: it is not what moved in them. A step among the last
        // runs does not: each of them has a level of its own.
        let before = [group(String::new(), &figure.before)];
        let now: Vec<Group> = figure.now.chunks(1).map(|run| group(String::new(), run)).collect();
        (compare::compare(&before, &now, &[], figure.metric.more_is_better), figure)
    };
    let all: Vec<(Comparison, Recent)> = recent.into_iter().map(compared).collect();
    let level = compare::holm(all.iter().filter_map(|(found, _)| found.chance()));
    all.into_iter().map(|(found, recent)| Change::of(&found, level, recent)).collect()
}

/// Does the server work in this way? The server's path leads through the OS cache, whose own path is measured
/// beside it.
fn is_in_use(figure: &Recent) -> bool {
    let Metric { probe, item, .. } = &figure.metric;
    match probe.as_str() {
        "sync" => figure.in_use == Some(true),
        "seqscan" | "random" => item.split(',').next() != Some("os"),
        "readahead" => item == "kernel",
        _ => true,
    }
}

impl Change {
    fn of(found: &Comparison, level: f64, recent: Recent) -> Self {
        Self {
            metric: recent.metric,
            before: found.a.map(figure),
            now: found.b.map(figure),
            ratio: found.ratio.map(figure),
            verdict: found.verdict(level),
            noise_pct: noise_pct(found, level),
            runs: found.compared[0],
            since: recent.since,
            run_id: recent.run_id,
            notes: found.notes(["before", "now"]),
        }
    }
}
