//! `io_probe_correlation`: where the rows of indexes lie, by samples of the indexes. `io_probe_correct`: telling
//! the planner what it should take a correlation for.

use io_probe_core::advise::page_costs::model::Table;
use io_probe_core::advise::page_costs::visits::{IndexVisits, RangeVisits, index_visits};
use io_probe_core::stats::Interval;
use pgrx::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::row::{Caveats, Doubt};
use crate::call::Begin;
use crate::call::arguments::{self, figure};
use crate::call::probe::Probe;
use crate::error::Error;
use crate::pg::answer;
use crate::pg::backend::row::Rows;
use crate::pg::catalog::corrections::{self, Kept};
use crate::pg::catalog::indexes::{self, AnyIndex};
use crate::pg::storage::relation::{Fork, Relation};

#[pg_extern(sql = false)]
fn io_probe_correlation(rel: Option<pg_sys::Oid>) -> Rows {
    Rows::answer(|| {
        let rel = arguments::relation(rel)?;
        let (_call, relation) = Begin::of(Probe::Correlation).on_relation_beside_probes(rel)?;
        relation.check_is_table()?;
        // Of all of them, before any is sampled: others may hold its rows.
        let kept = corrections::kept(rel).unwrap_or_default();
        Ok(indexes::all_of(rel).iter().map(|index| row(&relation, index, &kept)).collect())
    })
}

#[pg_extern(sql = false)]
fn io_probe_correct(index: Option<pg_sys::Oid>, correlation: Option<f64>) {
    answer(|| {
        let index = index.ok_or_else(|| Error::invalid("index must not be null"))?;
        if correlation.is_some_and(|correlation| !(0.0..=1.0).contains(&correlation)) {
            return Err(Error::invalid("correlation must be from 0 to 1, or NULL to forget it"));
        }
        corrections::keep(index, correlation)
    });
}

/// Shares of an index, in percent, of whose ranges the rows tell.
const RANGES_PCT: [f64; 4] = [0.01, 0.1, 1.0, 10.0];
/// In a smaller table all is near.
const LEAST_PAGES: f64 = 256.0;
/// The one that has columns of its own.
const SHOWN: usize = 2;

/// `io_probe_correlation_full_row`.
#[derive(Serialize)]
struct CorrelationRow {
    index: u32,
    correlation: Option<f64>,
    kept: Option<f64>,
    method: String,
    relid: u32,
    #[serde(flatten)]
    figures: Option<Figures>,
    #[serde(flatten)]
    caveats: Caveats,
}

/// Where the rows of an index lie.
#[derive(Serialize)]
struct Figures {
    scattered_pct: f64,
    stretch_blks: u64,
    in_order_blks: u64,
    blks: u64,
    random_blks: u64,
    entries: usize,
    scattered_low_pct: f64,
    scattered_high_pct: f64,
    stretch_low_blks: u64,
    stretch_high_blks: u64,
    ranges: Map<String, Value>,
}

fn row(relation: &Relation, index: &AnyIndex, kept: &[Kept]) -> CorrelationRow {
    let kept = kept.iter().find(|kept| kept.index.to_u32() == index.index);
    let mut caveats = Caveats::default();
    if let Some(why) = kept.and_then(|kept| kept.stale) {
        caveats.doubt_since(Doubt::Stale, format!("the correlation that is kept does not count: {why}"));
    }
    let figures = match samples(relation, index) {
        Err(why) => {
            caveats.refuse(why.to_owned());
            None
        }
        Ok(samples) => {
            let figures = Figures::of(relation, index, &samples);
            if figures.is_none() {
                caveats.doubt_since(Doubt::Short, "the table has fewer than 256 blocks, the index too few entries, or no ANALYZE has counted them");
            }
            figures
        }
    };
    CorrelationRow {
        index: index.index,
        correlation: index.correlation.map(figure),
        kept: kept.map(|kept| kept.correlation),
        method: index.method.clone(),
        relid: relation.oid().to_u32(),
        figures,
        caveats,
    }
}

/// Samples of an index, or why there are none.
fn samples(relation: &Relation, index: &AnyIndex) -> std::result::Result<Vec<Vec<u64>>, &'static str> {
    if index.method != "btree" {
        return Err("it is not a btree: where its rows lie is not looked at");
    }
    if !index.is_valid {
        return Err("it is not valid: no query uses it");
    }
    indexes::samples(relation.oid().to_u32(), index.index).ok_or("somebody holds a strong lock on it")
}

impl Figures {
    /// None where the samples, or the numbers of rows, say too little.
    fn of(relation: &Relation, index: &AnyIndex, samples: &[Vec<u64>]) -> Option<Self> {
        let pages = relation.source(Fork::MAIN).map_or(0, |source| source.blocks()) as f64;
        if index.rows <= 0.0 || pages < LEAST_PAGES {
            return None;
        }
        let table = Table { pages, rows: index.rows };
        let rows = RANGES_PCT.map(|percent| percent / 100.0 * table.rows);
        let IndexVisits { scattered, stretch, ranges, .. } = index_visits(samples, &table, &rows)?;
        let blocks = |count: f64| count.round() as u64;
        let in_order =
            |percent: f64| blocks((percent / 100.0 * pages).min(percent / 100.0 * index.rows).max(1.0));
        let interval = |of: &Interval| json!([blocks(of.low), blocks(of.high)]);
        let range = |(percent, range): (&f64, &RangeVisits)| {
            let figures = json!({
                "in_order_blks": in_order(*percent),
                "blks": blocks(range.pages.value), "ci_blks": interval(&range.pages),
                "random_blks": blocks(range.at_random.value), "ci_random_blks": interval(&range.at_random),
            });
            (percent.to_string(), figures)
        };
        Some(Self {
            scattered_pct: figure(100.0 * scattered.value),
            stretch_blks: blocks(stretch.value),
            in_order_blks: in_order(RANGES_PCT[SHOWN]),
            blks: blocks(ranges[SHOWN].pages.value),
            random_blks: blocks(ranges[SHOWN].at_random.value),
            entries: samples.iter().map(Vec::len).sum(),
            scattered_low_pct: figure(100.0 * scattered.low),
            scattered_high_pct: figure(100.0 * scattered.high),
            stretch_low_blks: blocks(stretch.low),
            stretch_high_blks: blocks(stretch.high),
            ranges: RANGES_PCT.iter().zip(&ranges).map(range).collect(),
        })
    }
}
