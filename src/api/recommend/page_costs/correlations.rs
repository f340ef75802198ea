//! The correlation that the planner should assume for each index: rows of scope `index`, at the settings that
//! are chosen.

use io_probe_core::advise::page_costs::choose::{Regret, Settings};
use io_probe_core::advise::page_costs::correlation::{CorrelationChoice, HARM};
use io_probe_core::advise::page_costs::visits::IndexVisits;
use io_probe_core::stats::Interval;
use pgrx::{pg_sys, spi};
use serde_json::json;

use super::Advice;
use super::planned::Probed;
use super::verdict::{NOTHING_BETTER, shown};
use crate::api::recommend::row::{RecommendRow, Statements};
use crate::call::arguments::figure;
use crate::pg::backend::server;
use crate::pg::catalog::facts;
use crate::pg::catalog::indexes::IndexName;

impl Advice<'_> {
    /// The rows of indexes: of each that was looked at if `all`, else where another correlation is better.
    pub(super) fn of_indexes(&self, all: bool) -> Vec<RecommendRow> {
        let answers = match &self.planned {
            Ok(answers) => answers,
            Err(why) if all => return vec![RecommendRow::of_index(None).unknown(why)],
            Err(_) => return Vec::new(),
        };
        let row = |(index, choice): (&Probed, &Option<CorrelationChoice>)| match choice {
            None if all => Some(identity(index).unknown(NOT_CHOSEN)),
            Some(choice) if all || !choice.holds_current => {
                Some(row(index, choice, &answers.joint.chosen.settings).beside(self.measured.disturbed))
            }
            _ => None,
        };
        answers.inquiry.indexes.iter().zip(&answers.joint.correlations).filter_map(row).collect()
    }
}

/// Why there is no advice for an index.
const NOT_CHOSEN: &str = "there was no time to ask the planner, or the plans that it picks can't be judged";

/// The row of an index, with what is in force.
fn identity(index: &Probed) -> RecommendRow {
    let (current, source) = match index.in_force() {
        Some(kept) => (kept, "io_probe_corrections"),
        None => (index.analyzed(), "pg_statistic"),
    };
    RecommendRow::of_index(Some(index.facts.index.qualified.clone()))
        .currently(figure(current).to_string(), source)
        .used(Some(pg_sys::Oid::from(index.facts.table)))
}

/// The correlation that the planner should assume for an index, at these settings.
fn row(index: &Probed, choice: &CorrelationChoice, settings: &Settings) -> RecommendRow {
    let CorrelationChoice { value, holds_current, low, high, regret, regret_in_force, slowdown } = choice;
    let IndexVisits { locality, scattered, stretch, .. } = &index.visits;
    let Settings { cell, concurrency } = settings;
    let interval = |of: &Interval, scale: f64| json!([figure(of.low * scale), figure(of.high * scale)]);
    let row = identity(index)
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
        let order = if locality.is_in_order() { " and hide no order" } else { "" };
        return row
            .keep(format!("{plans} {} {at}; {NOTHING_BETTER}, and to harm no query{order}", times(regret)));
    }
    let near =
        format!("rows that follow one another in it come from {:.0} blocks at a time", locality.stretch);
    let lie = match 100.0 * locality.scattered {
        few if few < 1.0 => near,
        most if most > 99.0 => "its rows lie anywhere in the table".to_owned(),
        some => format!("{some:.0} % of its rows lie anywhere in the table; of the others, {near}"),
    };
    let loss = match slowdown {
        slowdown if *slowdown > HARM => {
            format!("; with it a range of over a third of the rows may take {slowdown:.1} times as long")
        }
        _ => String::new(),
    };
    let why = format!(
        "{lie}; as it is, {plans} {}, and with {value} {} {at}{loss}",
        times(regret_in_force),
        times(regret)
    );
    row.change(value.to_string(), statements(index, *value), why)
}

const HIDES: &str = "it counts in sessions that have loaded the library (session_preload_libraries = \
     'pg_io_probe') and have pg_io_probe.correct_correlation on, until the table is rewritten, has a fifth \
     more or fewer rows, or ANALYZE finds another correlation; it also weighs in joins and in scans for an \
     order";

/// Statements that tell the planner: for all alike indexes, or else it would pick another one of them.
fn statements(index: &Probed, value: f64) -> Statements {
    // A role that can create functions in that schema could create one that takes other arguments.
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
        instead: restore_statistics(index, value).map(|statement| vec![statement]),
        hides: HIDES.to_owned(),
    }
}

/// A statement that sets it in the statistics, where the server can and the planner takes it as it is.
fn restore_statistics(index: &Probed, value: f64) -> Option<String> {
    if !server::RESTORES_STATISTICS || index.facts.key_columns > 1 {
        return None;
    }
    let [schema, table, column] = index.facts.names.each_ref().map(spi::quote_literal);
    Some(format!(
        "SELECT pg_catalog.pg_restore_attribute_stats('schemaname', {schema}, 'relname', {table}, 'attname', \
             {column}, \
         'inherited', false, 'correlation', {value}::real)"
    ))
}
