//! `io_probe_correlation`: where the rows of indexes lie, by samples of the indexes. `io_probe_correct`:
//! telling the planner which correlation to assume for an index.

use io_probe_advise::page_costs::model::Table;
use io_probe_advise::page_costs::visits::{IndexVisits, index_visits};
use io_probe_core::machine::device::{self, Roots};
use io_probe_core::stats::Interval;
use io_probe_surface::correlation::CorrelationRow;
use io_probe_surface::doubt::Doubt;
use io_probe_surface::value::{self, Json};
use pgrx::prelude::*;
use serde_json::{Map, Value, json};

use super::shared::Caveats;
use crate::call::{Begin, Probe, arguments, figure};
use crate::error::Error;
use crate::gucs;
use crate::pg::backend::rethrow::answer;
use crate::pg::backend::{Rows, server};
use crate::pg::catalog::corrections::{self, Stored};
use crate::pg::catalog::indexes::{self, AnyIndex};
use crate::pg::storage::relation::Relation;

#[pg_extern(sql = false)]
fn io_probe_correlation(rel: Option<pg_sys::Oid>) -> Rows {
    Rows::answer(|| {
        let rel = arguments::relation(rel)?;
        let (_call, relation) = Begin::of(Probe::Correlation).on_relation_beside_probes(rel)?;
        relation.check_is_table()?;
        // It tells what ANALYZE has found.
        let stored = if relation.shows_statistics() { corrections::stored(rel) } else { Some(Vec::new()) };
        Ok(indexes::all_of(rel).iter().map(|index| row(&relation, index, stored.as_deref())).collect())
    })
}

#[pg_extern(sql = false)]
fn io_probe_correct(index: Option<pg_sys::Oid>, correlation: Option<f64>) {
    answer(|| {
        let index = index.ok_or_else(|| Error::invalid("index must not be null"))?;
        if correlation.is_some_and(|correlation| !(0.0..=1.0).contains(&correlation)) {
            return Err(Error::invalid("correlation must be from 0 to 1, or NULL to delete it"));
        }
        corrections::store(index, correlation)?;
        if correlation.is_some() && !server::preloads_library() {
            pgrx::notice!(
                "only sessions that have loaded the library use the correlation: add pg_io_probe to \
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

fn row(relation: &Relation, index: &AnyIndex, stored: Option<&[Stored]>) -> CorrelationRow {
    let mut caveats = Caveats::default();
    if stored.is_none() {
        caveats.note("io_probe_corrections or an index is locked, so the stored correlation is not known");
    }
    let stored = stored.unwrap_or_default().iter().find(|stored| stored.index.to_u32() == index.index);
    if let Some(why) = stored.and_then(|stored| stored.stale) {
        let note = format!("the planner no longer uses the stored correlation: {why}");
        caveats.doubt_since(Doubt::Stale, note);
    }
    let figures = samples(relation, index, &mut caveats).and_then(|samples| {
        let figures = Figures::of(relation, index, &samples);
        figures.map_err(|(doubt, why)| caveats.doubt_since(doubt, why)).ok()
    });
    let figures = figures.as_ref();
    CorrelationRow {
        index: value::Relation(index.index),
        correlation: index.correlation.map(figure),
        stored: stored.map(|stored| stored.correlation),
        scattered_pct: figures.map(|figures| figure(100.0 * figures.visits.scattered.value)),
        stretch_blks: figures.map(|figures| blocks(figures.visits.stretch.value)),
        ordered_blks: figures.map(|figures| blocks(figures.ordered[SHOWN])),
        range_blks: figures.map(|figures| blocks(figures.visits.ranges[SHOWN].pages.value)),
        random_blks: figures.map(|figures| blocks(figures.visits.ranges[SHOWN].at_random.value)),
        method: index.method.clone().into(),
        relid: value::Relation(relation.oid().to_u32()),
        evidence: figures.map(|figures| Json(figures.evidence().to_string())),
        caveats: caveats.columns(),
    }
}

/// Why an index has no figures: its rows lie in several ways at once, or in groups.
const MISFIT: &str = "no correlation describes this index: its samples point to other blocks than predicted";

/// Samples of an index; if there are none, notes why.
fn samples(relation: &Relation, index: &AnyIndex, caveats: &mut Caveats) -> Option<Vec<Vec<u64>>> {
    if !relation.shows_statistics() {
        caveats.refuse("figures need SELECT on the table, and no row-level security for this role");
    } else if index.method != "btree" {
        caveats.refuse("not a btree index: only btree indexes are sampled");
    } else if !index.is_valid {
        caveats.refuse("the index is not valid: no query uses it");
    } else {
        let samples = indexes::samples(relation.oid().to_u32(), index.index, gucs::MAX_DURATION.time());
        if samples.is_none() {
            caveats.partial("another session holds a strong lock, or the index was dropped");
        }
        return samples;
    }
    None
}

/// Where the rows of an index lie by samples of it.
struct Figures {
    visits: IndexVisits,
    /// Blocks that each of [`RANGES_PCT`] would visit if its rows lay together.
    ordered: [f64; 4],
    entries: usize,
}

impl Figures {
    /// Err says why the samples do not show it.
    fn of(
        relation: &Relation,
        index: &AnyIndex,
        samples: &[Vec<u64>],
    ) -> std::result::Result<Self, (Doubt, &'static str)> {
        let pages = relation.blocks() as f64;
        if pages < indexes::LEAST_PAGES {
            let why = "the table has fewer than 256 blocks, too few to lie far apart";
            return Err((Doubt::Short, why));
        }
        let Some((rows_of_page, table_rows_of_page)) = index.rows_of_page.zip(index.table_rows_of_page)
        else {
            return Err((Doubt::Short, "the number of rows is not known: ANALYZE the table"));
        };
        // As the planner does: ANALYZE's rows per page, times the present pages.
        let not_null = rows_of_page * (1.0 - index.null_share.unwrap_or(0.0));
        let table = Table { pages, rows: not_null * pages };
        let rows = RANGES_PCT.map(|percent| percent / 100.0 * table.rows);
        let placement = device::locate(&relation.directory(), &Roots::default());
        let window = placement.read_ahead_blocks(pg_sys::BLCKSZ);
        let Some(visits) = index_visits(samples, &table, &rows, window) else {
            return Err((Doubt::Short, "the index has too few entries to sample"));
        };
        if !visits.fits {
            return Err((Doubt::Void, MISFIT));
        }
        let ordered = rows.map(|rows| (rows / table_rows_of_page).max(1.0));
        Ok(Self { visits, ordered, entries: samples.iter().map(Vec::len).sum() })
    }

    fn evidence(&self) -> Value {
        let IndexVisits { scattered, stretch, ranges, .. } = &self.visits;
        let mut by_percent = Map::new();
        for ((percent, ordered), range) in RANGES_PCT.into_iter().zip(self.ordered).zip(ranges) {
            let figures = json!({
                "ordered_blks": blocks(ordered),
                "blks": blocks(range.pages.value), "ci_blks": ends(&range.pages),
                "random_blks": blocks(range.at_random.value), "random_ci_blks": ends(&range.at_random),
            });
            by_percent.insert(percent.to_string(), figures);
        }
        json!({
            "scattered_ci_pct": [figure(100.0 * scattered.low), figure(100.0 * scattered.high)],
            "stretch_ci_blks": ends(stretch),
            "entries": self.entries,
            "ranges": by_percent,
        })
    }
}

fn ends(of: &Interval) -> [u64; 2] {
    [blocks(of.low), blocks(of.high)]
}

fn blocks(count: f64) -> u64 {
    count.round() as u64
}
