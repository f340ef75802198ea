//! `io_probe_page_cost`: what reading a block of a relation takes, by tier and pattern.

mod result;
mod times;

use io_probe_surface::function::MEASURING;
use pgrx::prelude::*;

pub(super) use self::result::{NoTime, TimeResult};
pub(super) use self::times::{MeasuredRelation, PageLimits, Wanted, count_tuples, limits, measure, recall};
use super::shared;
use crate::call::{Begin, Options, Probe, arguments};
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::{Elements, JsonbText, Rows, SqlInterval, server};

/// Most densities, and most concurrencies, of a call.
const MOST_POINTS: usize = 16;

#[pg_extern(sql = false)]
fn io_probe_page_cost(
    rel: Option<pg_sys::Oid>,
    densities: Option<Elements<f64>>,
    concurrencies: Option<Elements<i32>>,
    duration: Option<SqlInterval>,
    cold: Option<bool>,
    seed: Option<i64>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, MEASURING)?;
        let wanted = Wanted {
            densities: densities
                .map(|given| given.0)
                .map_or_else(|| Ok(times::DENSITIES.to_vec()), of_densities)?,
            concurrencies: concurrencies.map(|given| given.0).map(of_concurrencies).transpose()?,
            evicts: cold.unwrap_or(false),
            only_cold: false,
            seed: arguments::seed(seed),
            limits: times::limits(options.bounds()?, arguments::duration(duration)?, 1, 1)?,
        };
        let rel = arguments::relation(rel)?;

        let waits = options.waits()?;
        let (call, relation) =
            Begin { evicts: wanted.evicts, waits, ..Begin::of(Probe::PageCost) }.on_relation(rel)?;
        let started_at = server::present();
        let mut results = measure(&call, &relation, &wanted)?.results;
        let place = shared::place(&relation);
        let seed = wanted.seed as i64;
        drop((call, relation)); // nothing can be told before
        if !wanted.evicts {
            leave_out_what_is_cached(&mut results);
        }
        Ok(results.into_iter().map(|result| result.row(place.clone(), seed, started_at)).collect())
    })
}

/// Leaves out the device's rows that have no time because caches hold the blocks, and says so.
fn leave_out_what_is_cached(results: &mut Vec<TimeResult>) {
    let Some(why) = results.iter().find_map(TimeResult::lacks_cold_blocks) else { return };
    let before = results.len();
    results.retain(|result| result.lacks_cold_blocks().is_none());
    match before - results.len() {
        0 => (),
        1 => pgrx::notice!("1 row left out: {why}"),
        rows => pgrx::notice!("{rows} rows left out: {why}"),
    }
}

/// Densities that were asked for, each once, ascending.
fn of_densities(densities: Vec<Option<f64>>) -> Result<Vec<f64>> {
    arguments::not_over("densities", densities.len(), MOST_POINTS)?;
    arguments::numbers("densities", densities, |density: f64| {
        if density > 0.0 && density <= 1.0 {
            return Ok(density);
        }
        Err(Error::invalid(format!("densities must be over 0 and at most 1, not {density}")))
    })
}

/// Concurrencies that were asked for, each once, ascending.
fn of_concurrencies(concurrencies: Vec<Option<i32>>) -> Result<Vec<u32>> {
    arguments::not_over("concurrencies", concurrencies.len(), MOST_POINTS)?;
    arguments::numbers("concurrencies", concurrencies, |concurrency: i32| {
        let depth = u32::try_from(concurrency)
            .map_err(|_| Error::invalid(format!("concurrencies must be 0 or more, not {concurrency}")))?;
        gucs::MAX_DEPTH.allows("concurrency", depth)
    })
}
