//! `io_probe_compare` and `io_probe_changes`: what differs by more than its noise.

use std::collections::BTreeMap;

use io_probe_core::advise::compare::{self, Comparison, Figure, RunNoise, Verdict};
use pgrx::prelude::*;
use serde::Serialize;

use crate::call::arguments::figure;
use crate::error::{Error, Result};
use crate::pg::backend::encoding::Text;
use crate::pg::backend::row::Rows;
use crate::pg::history::query::{self, Metric, Recent, RunSide, Sides, Values};

/// Most runs of a series that are looked at as the last ones.
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
fn io_probe_changes(last: Option<i32>) -> Rows {
    let last = match u32::try_from(last.unwrap_or(1)) {
        Ok(last @ 1..=MOST_LAST) => Ok(last),
        _ => Err(Error::invalid(format!("last must be from 1 to {MOST_LAST}"))),
    };
    let rows = |last| {
        let mut recent = query::recent(last);
        recent.sort_by_cached_key(|figure| {
            let Metric { probe, object, metric, .. } = figure.metric.clone();
            (probe, object, figure.run_id, figure.ordinal, metric)
        });
        recent.into_iter().map(ChangesRow::of).collect()
    };
    Rows::answer(|| last.map(rows))
}

fn given<T>(name: &str, value: Option<T>) -> Result<T> {
    value.ok_or_else(|| Error::invalid(format!("{name} must not be null")))
}

/// Both must be there, have succeeded, and be of one probe.
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

/// `io_probe_compare_row`; the type's comments say what each attribute means.
#[derive(Debug, Default, Serialize)]
struct CompareRow {
    probe: Option<String>,
    item: Option<String>,
    metric: String,
    unit: Option<String>,
    a: Option<f64>,
    b: Option<f64>,
    ratio: Option<f64>,
    verdict: Option<Verdict>,
    noise_pct: Option<f64>,
    runs: Option<usize>,
    a_setting: Option<String>,
    b_setting: Option<String>,
    object: Option<String>,
    notes: Vec<&'static str>,
}

/// A figure of both sides, and what is known of its noise.
struct Pair {
    metric: Metric,
    ordinal: i64,
    a: Vec<Figure>,
    b: Vec<Figure>,
    /// Runs of the sides themselves, where these have several, and runs before them.
    own: Vec<Vec<f64>>,
    history: Vec<Vec<f64>>,
}

fn rows(sides: &Sides) -> Vec<CompareRow> {
    let of_labels = matches!(sides, Sides::Labels(..));
    let mut pairs = BTreeMap::new();
    for values in sides.figures() {
        add(&mut pairs, values, of_labels);
    }
    let mut pairs: Vec<Pair> =
        pairs.into_values().filter(|pair| !(pair.a.is_empty() && pair.b.is_empty())).collect();
    pairs.sort_by_cached_key(|pair| {
        let Metric { probe, object, metric, .. } = pair.metric.clone();
        (probe, object, pair.ordinal, metric)
    });
    let differences = sides.differences().into_iter().map(|difference| CompareRow {
        probe: difference.probe,
        metric: difference.name,
        a_setting: difference.a,
        b_setting: difference.b,
        object: difference.object,
        ..CompareRow::default()
    });
    pairs.into_iter().map(CompareRow::of).chain(differences).collect()
}

fn add(pairs: &mut BTreeMap<(String, String, String), Pair>, values: Values, of_labels: bool) {
    let Values { pair, whose, metric, ordinal, values, errors, .. } = values;
    let key = (pair, metric.item.clone(), metric.metric.clone());
    let pair = pairs.entry(key).or_insert_with(|| Pair {
        metric: metric.clone(),
        ordinal,
        a: Vec::new(),
        b: Vec::new(),
        own: Vec::new(),
        history: Vec::new(),
    });
    pair.ordinal = pair.ordinal.min(ordinal);
    let figures = values.iter().zip(errors).map(|(value, error)| Figure { value: *value, error });
    match whose {
        RunSide::A => pair.a.extend(figures),
        RunSide::B => {
            pair.b.extend(figures);
            // It may be another one's.
            pair.metric = metric;
        }
        RunSide::Past => {}
    }
    match whose {
        RunSide::Past => pair.history.push(values),
        // The runs of a label say how much such runs differ; a single run says nothing of it.
        RunSide::A | RunSide::B if of_labels => pair.own.push(values),
        RunSide::A | RunSide::B => {}
    }
}

impl CompareRow {
    fn of(pair: Pair) -> Self {
        let Metric { probe, object, item, metric, unit, more_is_better } = pair.metric;
        // A step within a side is in its mean, too, and so is part of its noise.
        let noise = RunNoise::of_levels(&pair.history).and(RunNoise::of_groups(&pair.own));
        let found = compare::compare(&pair.a, &pair.b, &noise, more_is_better);
        Self {
            probe: Some(probe),
            item: Some(item),
            metric,
            unit: Some(unit),
            a: found.a.map(figure),
            b: found.b.map(figure),
            ratio: found.ratio.map(figure),
            verdict: Some(found.verdict),
            noise_pct: noise_pct(&found),
            runs: Some(found.runs),
            object: Some(object),
            notes: found.note.into_iter().collect(),
            ..Self::default()
        }
    }
}

fn noise_pct(comparison: &Comparison) -> Option<f64> {
    comparison.noise.map(|noise| figure(100.0 * noise))
}

/// `io_probe_changes_row`; the type's comments say what each attribute means.
#[derive(Debug, Serialize)]
struct ChangesRow {
    probe: String,
    object: String,
    item: String,
    metric: String,
    unit: String,
    before: Option<f64>,
    now: Option<f64>,
    ratio: Option<f64>,
    verdict: Verdict,
    noise_pct: Option<f64>,
    runs: usize,
    since: String,
    run_id: i64,
}

impl ChangesRow {
    fn of(recent: Recent) -> Self {
        let Metric { probe, object, item, metric, unit, more_is_better } = recent.metric;
        let figures = |values: &[f64]| -> Vec<Figure> {
            values.iter().map(|value| Figure { value: *value, error: None }).collect()
        };
        let (before, now) = (figures(&recent.before), figures(&recent.now));
        // What has long changed is not what moved in the last runs: a step before them counts as noise.
        let noise = RunNoise::of_groups(&[recent.before]);
        let found = compare::compare(&before, &now, &noise, more_is_better);
        Self {
            probe,
            object,
            item,
            metric,
            unit,
            before: found.a.map(figure),
            now: found.b.map(figure),
            ratio: found.ratio.map(figure),
            verdict: found.verdict,
            noise_pct: noise_pct(&found),
            runs: found.runs,
            since: recent.since,
            run_id: recent.run_id,
        }
    }
}
