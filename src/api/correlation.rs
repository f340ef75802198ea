//! `io_probe_correlation`: where the rows of indexes lie, by samples of the indexes. `io_probe_correct`:
//! telling the planner which correlation to assume for an index.

use io_probe_core::advise::page_costs::model::Table;
use io_probe_core::advise::page_costs::visits::{IndexVisits, RangeVisits, index_visits};
use io_probe_core::stats::Interval;
use pgrx::prelude::*;
use serde_json::{Map, Value, json};

use super::row::{Caveats, Doubt, Row};
use crate::call::Begin;
use crate::call::arguments::{self, figure};
use crate::call::probe::Probe;
use crate::error::Error;
use crate::gucs;
use crate::pg::answer;
use crate::pg::backend::row::Rows;
use crate::pg::backend::server;
use crate::pg::catalog::corrections::{self, Kept};
use crate::pg::catalog::indexes::{self, AnyIndex};
use crate::pg::storage::relation::{Fork, Relation};

#[pg_extern(sql = false)]
fn io_probe_correlation(rel: Option<pg_sys::Oid>) -> Rows {
    Rows::answer(|| {
        let rel = arguments::relation(rel)?;
        let (_call, relation) = Begin::of(Probe::Correlation).on_relation_beside_probes(rel)?;
        relation.check_is_table()?;
        // It tells what ANALYZE has found.
        let kept = if relation.shows_statistics() { corrections::kept(rel) } else { Some(Vec::new()) };
        let row = |index: &AnyIndex| row(&relation, index, kept.as_deref());
        Ok(indexes::all_of(rel).iter().map(row).collect())
    })
}

#[pg_extern(sql = false)]
fn io_probe_correct(index: Option<pg_sys::Oid>, correlation: Option<f64>) {
    answer(|| {
        let index = index.ok_or_else(|| Error::invalid("index must not be null"))?;
        if correlation.is_some_and(|correlation| !(0.0..=1.0).contains(&correlation)) {
            return Err(Error::invalid("correlation must be from 0 to 1, or NULL to forget it"));
        }
        corrections::keep(index, correlation)?;
        if correlation.is_some() && !server::preloads_library() {
            pgrx::notice!(
                "only sessions that have loaded the library use it: add pg_io_probe to \
                 session_preload_libraries"
            );
        }
        Ok(())
    });
}

/// Sizes of the ranges that a row tells about, in percent of the index.
const RANGES_PCT: [f64; 4] = [0.01, 0.1, 1.0, 10.0];
/// Place in [`RANGES_PCT`] of the range that has columns of its own.
const SHOWN: usize = 2;

fn row(relation: &Relation, index: &AnyIndex, kept: Option<&[Kept]>) -> Row {
    let mut row = Row::default();
    if kept.is_none() {
        row.caveats.note("io_probe_corrections or an index is locked: what is kept is not known");
    }
    let kept = kept.unwrap_or_default().iter().find(|kept| kept.index.to_u32() == index.index);
    if let Some(why) = kept.and_then(|kept| kept.stale) {
        row.caveats.doubt_since(
            Doubt::Stale,
            format!("the correlation that is kept does not count any more: {why}"),
        );
    }
    row.set(json!({
        "index": index.index,
        "correlation": index.correlation.map(figure),
        "kept": kept.map(|kept| kept.correlation),
        "method": index.method,
        "relid": relation.oid().to_u32(),
    }));
    let figures = samples(relation, index, &mut row.caveats)
        .and_then(|samples| figures(relation, index, &samples, &mut row.caveats));
    figures.into_iter().for_each(|figures| row.set(figures));
    row
}

/// Why an index has no figures: its rows lie in several ways at once, or in groups.
const MISFIT: &str = "the samples visit other blocks than predicted, so no correlation describes this index";

/// Samples of an index; if there are none, notes why.
fn samples(relation: &Relation, index: &AnyIndex, caveats: &mut Caveats) -> Option<Vec<Vec<u64>>> {
    if !relation.shows_statistics() {
        caveats.refuse("it needs SELECT on the table, and no row-level security for this role");
    } else if index.method != "btree" {
        caveats.refuse("it is not a btree: where its rows lie is not looked at");
    } else if !index.is_valid {
        caveats.refuse("it is not valid: no query uses it");
    } else {
        let samples = indexes::samples(relation.oid().to_u32(), index.index, gucs::max_duration());
        if samples.is_none() {
            caveats.partial("another session holds a strong lock on it, or it is gone");
        }
        return samples;
    }
    None
}

/// Where the rows of an index lie by these samples, and what a range of 1 % of it visits; if they do not show
/// that, notes why.
fn figures(
    relation: &Relation,
    index: &AnyIndex,
    samples: &[Vec<u64>],
    caveats: &mut Caveats,
) -> Option<Value> {
    let mut short = |why| {
        caveats.doubt_since(Doubt::Short, why);
        None
    };
    let pages = relation.source(Fork::Main).map_or(0, |source| source.blocks()) as f64;
    if pages < indexes::LEAST_PAGES {
        return short("the table has fewer than 256 blocks, which are near to one another anyhow");
    }
    let Some((rows_of_page, table_rows_of_page)) = index.rows_of_page.zip(index.table_rows_of_page) else {
        return short("how many rows there are is not known: ANALYZE the table");
    };
    // As the planner does: ANALYZE's rows per page, times the present pages.
    let not_null = rows_of_page * (1.0 - index.null_share.unwrap_or(0.0));
    let table = Table { pages, rows: not_null * pages };
    let rows = RANGES_PCT.map(|percent| percent / 100.0 * table.rows);
    let Some(visits) = index_visits(samples, &table, &rows) else {
        return short("the index has too few entries");
    };
    if !visits.fits {
        caveats.void(MISFIT);
        return None;
    }
    let IndexVisits { scattered, stretch, ranges, .. } = visits;
    let blocks = |count: f64| count.round() as u64;
    let ordered = |rows: f64| blocks((rows / table_rows_of_page).max(1.0));
    let interval = |of: &Interval| json!([blocks(of.low), blocks(of.high)]);
    let range = |((percent, rows), range): ((f64, f64), &RangeVisits)| {
        let figures = json!({
            "ordered_blks": ordered(rows),
            "blks": blocks(range.pages.value), "ci_blks": interval(&range.pages),
            "random_blks": blocks(range.at_random.value), "random_ci_blks": interval(&range.at_random),
        });
        (percent.to_string(), figures)
    };
    let by_percent: Map<String, Value> = RANGES_PCT.into_iter().zip(rows).zip(&ranges).map(range).collect();
    Some(json!({
        "scattered_pct": figure(100.0 * scattered.value),
        "stretch_blks": blocks(stretch.value),
        "ordered_blks": ordered(rows[SHOWN]),
        "range_blks": blocks(ranges[SHOWN].pages.value),
        "random_blks": blocks(ranges[SHOWN].at_random.value),
        "evidence": {
            "scattered_ci_pct": [figure(100.0 * scattered.low), figure(100.0 * scattered.high)],
            "stretch_ci_blks": interval(&stretch),
            "entries": samples.iter().map(Vec::len).sum::<usize>(),
            "ranges": by_percent,
        },
    }))
}
