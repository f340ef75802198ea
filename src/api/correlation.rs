//! `io_probe_correlation`: where the rows of indexes lie, by samples of the indexes. `io_probe_correct`:
//! telling the planner which correlation to assume for an index.

use io_probe_core::advise::page_costs::model::{Caches, Index, PlannedScan, Table, Times};
use io_probe_core::advise::page_costs::visits::{IndexVisits, RangeVisits, index_visits};
use io_probe_core::stats::Interval;
use pgrx::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::page_cost;
use super::row::{Caveats, Doubt};
use crate::call::Begin;
use crate::call::arguments::{self, figure};
use crate::call::probe::Probe;
use crate::error::Error;
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
        let times = ScanTimes::known(&relation);
        let row = |index: &AnyIndex| row(&relation, index, kept.as_deref(), times.as_ref());
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

/// `io_probe_correlation_full_row`.
#[derive(Serialize)]
struct CorrelationRow {
    index: u32,
    correlation: Option<f64>,
    kept: Option<f64>,
    method: String,
    relid: u32,
    #[serde(flatten)]
    figures: Option<Value>,
    #[serde(flatten)]
    caveats: Caveats,
}

fn row(
    relation: &Relation,
    index: &AnyIndex,
    kept: Option<&[Kept]>,
    times: Option<&ScanTimes>,
) -> CorrelationRow {
    let mut caveats = Caveats::default();
    if kept.is_none() {
        caveats.note("io_probe_corrections or an index is locked: what is kept is not known");
    }
    let kept = kept.unwrap_or_default().iter().find(|kept| kept.index.to_u32() == index.index);
    if let Some(why) = kept.and_then(|kept| kept.stale) {
        caveats.doubt_since(
            Doubt::Stale,
            format!("the correlation that is kept does not count any more: {why}"),
        );
    }
    let figures = samples(relation, index, &mut caveats)
        .and_then(|samples| figures(relation, index, &samples, times, &mut caveats));
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

/// Why an index has no figures: its rows lie in several ways at once, or in groups.
const MISFIT: &str = "the samples visit other blocks than predicted, so no correlation describes this index";

/// What scans take, by the times that this session has measured in the table's tablespace.
struct ScanTimes {
    times: Times,
    concurrency: u32,
}

impl ScanTimes {
    fn known(relation: &Relation) -> Option<Self> {
        let place = relation.file_tablespace();
        let measured = page_cost::recall(place)?;
        let measured = measured.as_ref().clone().with_whole_lines();
        let times = Times::of(&measured, server::shared_buffers()).ok()?;
        let times = times.by_workers(server::reads_by_workers());
        let concurrency = place.io_concurrency();
        times.covers(concurrency).then_some(Self { times, concurrency })
    }

    /// Time in ms of a scan of `rows` rows by an index: cold, and warm.
    fn of(&self, scan: PlannedScan, table: &Table, index: &Index, rows: f64) -> Value {
        let time = |caches| self.times.of_scan(scan, table, index, rows, self.concurrency, caches);
        json!([Caches::Cold, Caches::Warm].map(|caches| figure(time(caches) / 1e3)))
    }
}

/// Samples of an index; if there are none, notes why.
fn samples(relation: &Relation, index: &AnyIndex, caveats: &mut Caveats) -> Option<Vec<Vec<u64>>> {
    if !relation.shows_statistics() {
        caveats.refuse("it needs SELECT on the table, and no row-level security for this role");
    } else if index.method != "btree" {
        caveats.refuse("it is not a btree: where its rows lie is not looked at");
    } else if !index.is_valid {
        caveats.refuse("it is not valid: no query uses it");
    } else {
        let samples = indexes::samples(relation.oid().to_u32(), index.index);
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
    times: Option<&ScanTimes>,
    caveats: &mut Caveats,
) -> Option<Value> {
    let mut short = |why| {
        caveats.doubt_since(Doubt::Short, why);
        None
    };
    let pages = relation.source(Fork::MAIN).map_or(0, |source| source.blocks()) as f64;
    if pages < indexes::LEAST_PAGES {
        return short("the table has fewer than 256 blocks, which are near to one another anyhow");
    }
    if index.rows <= 0.0 || index.table_rows <= 0.0 || index.table_pages <= 0.0 {
        return short("how many rows there are is not known: ANALYZE the table");
    }
    // As the planner does: ANALYZE's rows per page, times the present pages.
    let not_null = index.rows * (1.0 - index.null_share.unwrap_or(0.0));
    let table = Table { pages, rows: not_null * pages / index.table_pages };
    let rows = RANGES_PCT.map(|percent| percent / 100.0 * table.rows);
    let Some(visits) = index_visits(samples, &table, &rows) else {
        return short("the index has too few entries");
    };
    if !visits.fits {
        caveats.void(MISFIT);
        return None;
    }
    let IndexVisits { locality, scattered, stretch, ranges, .. } = visits;
    // The index is taken to have grown with the table.
    let scanned = Index { pages: index.pages * pages / index.table_pages, locality };
    let blocks = |count: f64| count.round() as u64;
    let ordered = |rows: f64| blocks((rows * index.table_pages / index.table_rows).max(1.0));
    let interval = |of: &Interval| json!([blocks(of.low), blocks(of.high)]);
    let range = |((percent, rows), range): ((f64, f64), &RangeVisits)| {
        let ms = |scan| times.map_or(Value::Null, |times| times.of(scan, &table, &scanned, rows));
        let figures = json!({
            "ordered_blks": ordered(rows),
            "blks": blocks(range.pages.value), "ci_blks": interval(&range.pages),
            "random_blks": blocks(range.at_random.value), "random_ci_blks": interval(&range.at_random),
            "index_ms": ms(PlannedScan::Index), "bitmap_ms": ms(PlannedScan::Bitmap),
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
