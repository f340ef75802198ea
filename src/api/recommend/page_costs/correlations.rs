//! The correlation that the planner should assume for each index: rows of scope `index`, at the settings that
//! are chosen.

use io_probe_advise::page_costs::choose::{Regret, Settings, Slowdown};
use io_probe_advise::page_costs::correlation::{CorrelationChoice, HARM};
use io_probe_advise::page_costs::locality::Reach;
use io_probe_advise::page_costs::visits::IndexVisits;
use io_probe_core::stats::Interval;
use pgrx::{pg_sys, spi};
use serde_json::{Value, json};

use super::Advice;
use super::planned::{NO_TIME_FOR_IT, Probed, Unasked, WHERE_UNKNOWN};
use super::verdict::{NOTHING_BETTER, shown};
use crate::api::recommend::advice::{NOT_LOOKED_AT, Recommendation, Statements};
use crate::call::figure;
use crate::pg::backend::server;
use crate::pg::catalog::facts;
use crate::pg::catalog::indexes::IndexFacts;

impl Advice<'_> {
    /// The rows of indexes: of each if `all`, else where another correlation is better, or where there was no
    /// time to look.
    pub(super) fn of_indexes(&self, all: bool) -> Vec<Recommendation> {
        let answers = match &self.planned {
            Ok(answers) => answers,
            Err(why) if all => return vec![Recommendation::of_index(None).unknown(why.clone())],
            Err(_) => return Vec::new(),
        };
        let choices = answers.inquiry.indexes.iter().zip(&answers.joint.correlations);
        let rows = choices.filter_map(|(index, choice)| match choice {
            None if all => Some(identity(index).unknown(NOT_CHOSEN)),
            Some(choice) if all || !choice.holds_current => {
                Some(row(index, choice, &answers.joint.chosen.settings).beside(self.measured.doubt))
            }
            _ => None,
        });
        let Unasked { not_looked_at, unknown } = &answers.unasked;
        let unlooked =
            not_looked_at.iter().map(|facts| of_index(facts).without(NOT_LOOKED_AT, NO_TIME_FOR_IT));
        let unknown = unknown.iter().filter(|_| all).map(|facts| of_index(facts).unknown(WHERE_UNKNOWN));
        rows.chain(unlooked).chain(unknown).collect()
    }
}

const NOT_CHOSEN: &str = "there was no time to ask the planner, or the plans that it picks can't be judged";

/// The row of an index, with what is in force.
fn identity(index: &Probed) -> Recommendation {
    let (current, source) = match index.in_force() {
        Some(stored) => (stored, "io_probe_corrections"),
        None => (index.analyzed(), "pg_statistic"),
    };
    of_index(&index.facts).currently(figure(current).to_string(), source)
}

fn of_index(facts: &IndexFacts) -> Recommendation {
    Recommendation::of_index(Some(facts.index.qualified.clone())).used(Some(pg_sys::Oid::from(facts.table)))
}

/// The correlation that the planner should assume for an index, at these settings.
fn row(index: &Probed, choice: &CorrelationChoice, settings: &Settings) -> Recommendation {
    let CorrelationChoice { value, holds_current, low, high, regret, regret_in_force, slowdown } = choice;
    let IndexVisits { locality, scattered, stretch, .. } = &index.visits;
    let Settings { cell, concurrency } = settings;
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
    let at = format!(
        "(at seq_page_cost {}, random_page_cost {} and effective_io_concurrency {concurrency})",
        cell.sequential, cell.random
    );
    if *holds_current {
        let order = if locality.is_in_order() { " or hiding that the rows are in order" } else { "" };
        return row.keep(format!(
            "{} {at}; {NOTHING_BETTER} without making a query much slower{order}",
            told(regret)
        ));
    }
    let backwards =
        if locality.is_backward { ", in reverse order, in which the kernel does not read ahead" } else { "" };
    let near = format!(
        "rows next to each other in the index are stored within about {}{backwards}",
        blocks(locality.stretch)
    );
    let far = match locality.reach {
        None => "are stored anywhere in the table".to_owned(),
        Some(Reach { pages, places }) => {
            format!("come from about {pages:.0} blocks at a time, in {places:.0} places of the table")
        }
    };
    let lie = match 100.0 * locality.scattered {
        few if few < 1.0 => near,
        most if most > 99.0 => format!("its rows {far}"),
        some => format!("{some:.0} % of its rows {far}; of the others, {near}"),
    };
    let loss = match slowdown {
        Slowdown { cold, .. } if *cold > HARM => {
            format!("; then a query for over a third of the rows may take {cold:.1} times as long")
        }
        Slowdown { warm, .. } if *warm > HARM => {
            format!("; then a query of a range may take {warm:.1} times as long if all of it is in memory")
        }
        _ => String::new(),
    };
    let why = format!(
        "{lie}; now {}; with correlation {value} they take {:.2} and {:.2} times as long {at}{loss}",
        told(regret_in_force),
        regret.cold,
        regret.warm
    );
    row.change(value.to_string(), statements(index, *value), why)
}

fn blocks(about: f64) -> String {
    let about = about.round();
    format!("{about} {}", if about == 1.0 { "block" } else { "blocks" })
}

fn interval(of: &Interval, scale: f64) -> Value {
    json!([figure(of.low * scale), figure(of.high * scale)])
}

fn told(Regret { cold, warm, .. }: &Regret) -> String {
    format!(
        "by the model, the planner's plans for ranges of this index take {cold:.2} times as long as the best \
         plans with cold caches and {warm:.2} times with warm ones"
    )
}

const HIDES: &str = "it takes effect in sessions that have loaded the library (session_preload_libraries = \
     'pg_io_probe') and have pg_io_probe.correct_correlation on; it no longer does once the table is \
     rewritten, or its number of rows changes by over 20 %, or the correlation by ANALYZE by over 0.1; it \
     also affects joins, and index scans that are planned for their order";

/// Statements that tell the planner: for all alike indexes, or else it would pick another one of them.
fn statements(index: &Probed, value: f64) -> Statements {
    let schema = facts::own_schema();
    Statements {
        statement: corrections(&schema, index, |_| Some(value)),
        undo: corrections(&schema, index, |alike| index.stored(alike)),
        instead: restore_statistics(index, value).map(|statement| vec![statement]),
        hides: HIDES.to_owned(),
    }
}

/// Statements that keep a value of each index that is alike. A role that can create functions in that schema
/// could create one that takes other arguments: so they are cast.
fn corrections(schema: &str, index: &Probed, value_of: impl Fn(u32) -> Option<f64>) -> String {
    let statements = index.alike.iter().map(|alike| {
        let value = value_of(alike.oid).map_or("NULL".to_owned(), |value| value.to_string());
        let name = spi::quote_literal(&alike.qualified);
        format!("SELECT {schema}.io_probe_correct({name}::regclass, {value}::double precision)")
    });
    statements.collect::<Vec<_>>().join("; ")
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
