//! What the planner should take the correlation of each index for: rows of scope `index`, at the settings that
//! are chosen.

use io_probe_core::advise::page_costs::choose::{Asked, Regret, Settings};
use io_probe_core::advise::page_costs::correlation::{CORRELATIONS, CorrelationChoice, choose_correlation};
use io_probe_core::advise::page_costs::model::Times;
use io_probe_core::advise::page_costs::visits::IndexVisits;
use io_probe_core::stats::Interval;
use pgrx::{pg_sys, spi};
use serde_json::json;

use super::Advice;
use super::planned::{Answers, IndexQuery, Probed, goes_on, premise};
use super::verdict::{NOTHING_BETTER, shown};
use crate::api::recommend::row::{RecommendRow, Statements};
use crate::call::arguments::figure;
use crate::gucs;
use crate::pg::backend::server;
use crate::pg::catalog::facts;
use crate::pg::catalog::indexes::IndexName;
use crate::pg::catalog::planner::{self, ParallelPlans, Premise, TableQuery};

impl Advice<'_> {
    /// The rows of indexes: of each that was looked at if `all`, else where another correlation is better.
    pub(super) fn of_indexes(&self, all: bool) -> Vec<RecommendRow> {
        let known = self.planned.as_ref().map_err(String::clone);
        let known = known.and_then(|planned| Ok((planned, self.measured.model()?)));
        let ((answers, chosen), times) = match known {
            Ok(known) => known,
            Err(why) if all => return vec![RecommendRow::of_index(None).unknown(why)],
            Err(_) => return Vec::new(),
        };
        let goes_on = goes_on(self.recommend.call);
        // What could not be asked for lack of time has no row.
        let row = |place: usize| {
            let index = &answers.indexes[place];
            let choice = answers.correlation(place, &chosen.settings, &times, &mut || goes_on())?;
            let is_wanted = all || !choice.holds_current;
            is_wanted.then(|| row(index, &choice, &chosen.settings))
        };
        (0..answers.indexes.len()).filter_map(row).collect()
    }
}

impl Answers {
    /// What the planner should take the correlation of the index of this place for, where these settings are in
    /// force. None if it was not asked.
    fn correlation(
        &self,
        place: usize,
        settings: &Settings,
        times: &Times,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<CorrelationChoice> {
        let index = &self.indexes[place];
        let alike: Vec<_> = index.alike.iter().map(|index| pg_sys::Oid::from(index.oid)).collect();
        let in_force = index.in_force().unwrap_or_else(|| index.analyzed());
        let others: Vec<f64> = CORRELATIONS.into_iter().filter(|other| *other != in_force).collect();
        let told = |correlation: &f64| Premise {
            correlation: Some((alike.clone(), *correlation)),
            ..premise(settings.cell)
        };
        let premises: Vec<Premise> =
            [premise(settings.cell)].into_iter().chain(others.iter().map(told)).collect();
        // An index-only scan of a vacuumed table costs the same whatever the correlation.
        let is_its = |query: &&IndexQuery| query.place == place && !query.covered;
        let its: Vec<&IndexQuery> = self.queries.iter().filter(is_its).collect();
        let queries: Vec<TableQuery> = its.iter().map(|query| query.query.clone()).collect();
        let picks = planner::picks(&queries, &premises, ParallelPlans::None, goes_on)?;
        let asked: Vec<Asked> =
            its.iter().zip(picks).filter_map(|(query, picks)| index.asked(query, &picks?)).collect();
        let correlations = [vec![in_force], others].concat();
        choose_correlation(&asked, &index.visits.each_moved(), &correlations, settings.concurrency, times)
    }
}

impl Probed {
    /// What the planner makes of what ANALYZE says.
    fn analyzed(&self) -> f64 {
        // Of several columns it takes less.
        let factor = if self.facts.key_columns > 1 { 0.75 } else { 1.0 };
        self.facts.correlation.map_or(0.0, |correlation| correlation.abs() * factor)
    }

    /// The correlation that is kept of it, where this session's planner takes it.
    fn in_force(&self) -> Option<f64> {
        self.kept(self.facts.index.oid).filter(|_| gucs::correct_correlation())
    }

    /// The one that is kept of an index of the table.
    fn kept(&self, index: u32) -> Option<f64> {
        self.kept.iter().find(|kept| kept.index.to_u32() == index).map(|kept| kept.correlation)
    }
}

/// What the planner should take the correlation of an index for, at these settings.
fn row(index: &Probed, choice: &CorrelationChoice, settings: &Settings) -> RecommendRow {
    let CorrelationChoice { value, holds_current, low, high, regret, regret_in_force } = choice;
    let IndexVisits { locality, scattered, stretch, .. } = &index.visits;
    let Settings { cell, concurrency } = settings;
    let interval = |of: &Interval, scale: f64| json!([figure(of.low * scale), figure(of.high * scale)]);
    let (current, source) = match index.in_force() {
        Some(kept) => (kept, "io_probe_corrections"),
        None => (index.analyzed(), "pg_statistic"),
    };
    let row = RecommendRow::of_index(Some(index.facts.index.qualified.clone()))
        .currently(figure(current).to_string(), source)
        .used(Some(pg_sys::Oid::from(index.facts.table)))
        .between(figure(*low).to_string(), figure(*high).to_string())
        .rests_on("scattered_pct", figure(100.0 * locality.scattered))
        .rests_on("scattered_ci_pct", interval(scattered, 100.0))
        .rests_on("stretch_blks", figure(locality.stretch))
        .rests_on("stretch_ci_blks", interval(stretch, 1.0))
        .rests_on("regret", shown(regret))
        .rests_on("regret_in_force", shown(regret_in_force))
        .rests_on("seq_page_cost", cell.sequential)
        .rests_on("random_page_cost", cell.random)
        .rests_on("effective_io_concurrency", *concurrency);
    let times = |regret: &Regret| {
        format!("{:.2} times as long as the best ones cold and {:.2} times warm", regret.cold, regret.warm)
    };
    let at = format!(
        "(at seq_page_cost {}, random_page_cost {} and effective_io_concurrency {concurrency})",
        cell.sequential, cell.random
    );
    let plans = "the planner's plans for ranges of this index take";
    if *holds_current {
        return row.keep(format!("{plans} {} {at}; {NOTHING_BETTER}", times(regret)));
    }
    let near =
        format!("rows that follow one another in it come from {:.0} blocks at a time", locality.stretch);
    let lie = match 100.0 * locality.scattered {
        few if few < 1.0 => near,
        most if most > 99.0 => "its rows lie anywhere in the table".to_owned(),
        some => format!("{some:.0} % of its rows lie anywhere in the table; of the others, {near}"),
    };
    let why = format!(
        "{lie}; as it is, {plans} {}, and with {value} {} {at}",
        times(regret_in_force),
        times(regret)
    );
    row.change(value.to_string(), statements(index, *value), why)
}

const HIDES: &str = "it counts in sessions that have loaded the library (session_preload_libraries = 'pg_io_probe') and \
     have pg_io_probe.correct_correlation on, until the table is rewritten, has a fifth more or fewer rows, or ANALYZE finds \
     another correlation; it also weighs in joins and in scans for an order";

/// What tells it to the planner: of all that are alike, for else the planner would pick another one of them.
fn statements(index: &Probed, value: f64) -> Statements {
    // Who can make functions in that schema could make one that takes other arguments.
    let schema = facts::own_schema();
    let all = |value: &dyn Fn(u32) -> Option<f64>| {
        let call = |index: &IndexName| {
            let value = value(index.oid).map_or("NULL".to_owned(), |value| value.to_string());
            let index = spi::quote_literal(&index.qualified);
            format!("SELECT {schema}.io_probe_correct({index}::regclass, {value}::double precision)")
        };
        index.alike.iter().map(call).collect::<Vec<_>>().join("; ")
    };
    Statements {
        statement: all(&|_| Some(value)),
        undo: all(&|alike| index.kept(alike)),
        instead: restore_statistics(index, value),
        hides: HIDES,
    }
}

/// What sets it in the statistics, where the server can do that and the planner takes it as it is.
fn restore_statistics(index: &Probed, value: f64) -> Option<String> {
    if !server::RESTORES_STATISTICS || index.facts.key_columns > 1 {
        return None;
    }
    let [schema, table, column] = index.facts.names.each_ref().map(spi::quote_literal);
    Some(format!(
        "SELECT pg_catalog.pg_restore_attribute_stats('schemaname', {schema}, 'relname', {table}, 'attname', {column}, \
         'inherited', false, 'correlation', {value}::real)"
    ))
}
