//! `io_probe_page_cost`: what reading a block of a relation takes, by tier and pattern.

mod row;
mod times;

use pgrx::datum;
use pgrx::prelude::*;

pub(super) use self::row::PageCostRow;
pub(super) use self::times::{Wanted, limits, measure};

use super::cache::check_may_evict;
use crate::call::arguments;
use crate::call::options::Options;
use crate::call::probed_relation::ProbedRelation;
use crate::call::statement;
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::argument::Elements;
use crate::pg::backend::interrupts;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::progress::Progress;
use crate::pg::backend::row::Rows;
use crate::pg::storage::relation::Fork;

/// The options of this function.
const OPTIONS: [&str; 7] =
    ["max_bytes", "max_iops", "max_mib_per_s", "max_util_pct", "max_p99_us", "precision", "wait"];

/// Most densities, and most concurrencies, of a call.
const MOST_POINTS: usize = 16;

#[pg_extern(sql = false)]
fn io_probe_page_cost(
    rel: Option<pg_sys::Oid>,
    duration: Option<datum::Interval>,
    cold: Option<bool>,
    densities: Option<Elements<f64>>,
    concurrencies: Option<Elements<i32>>,
    seed: Option<i64>,
    options: Option<JsonbText>,
) -> Rows {
    let request = || {
        let options = Options::parse(options, &OPTIONS)?;
        let wanted = Wanted {
            densities: densities
                .map(Elements::all)
                .map_or_else(|| Ok(times::DENSITIES.to_vec()), of_densities)?,
            concurrencies: concurrencies.map(Elements::all).map(of_concurrencies).transpose()?,
            evicts: cold.unwrap_or(false),
            only_cold: false,
            seed: arguments::seed(seed),
            limits: times::limits(options.limits(arguments::duration(duration)?)?, duration.is_some(), 1),
        };
        Ok(PageCostRequest { rel: arguments::relation(rel)?, wanted, wait: options.flag("wait")? })
    };
    Rows::answer(|| request().and_then(|request| request.run()))
}

/// Densities that were asked for, each once, ascending.
fn of_densities(densities: Vec<Option<f64>>) -> Result<Vec<f64>> {
    check_count("densities", densities.len())?;
    let valid = |density: Option<f64>| {
        let density = density.ok_or_else(|| Error::invalid("densities must not contain nulls"))?;
        if density > 0.0 && density <= 1.0 {
            return Ok(density);
        }
        Err(Error::invalid(format!("densities must be over 0 and at most 1, not {density}")))
    };
    let mut densities = densities.into_iter().map(valid).collect::<Result<Vec<f64>>>()?;
    densities.sort_unstable_by(f64::total_cmp);
    densities.dedup();
    Ok(densities)
}

/// Concurrencies that were asked for, each once, ascending.
fn of_concurrencies(concurrencies: Vec<Option<i32>>) -> Result<Vec<u32>> {
    check_count("concurrencies", concurrencies.len())?;
    let valid = |concurrency: Option<i32>| {
        let concurrency =
            concurrency.ok_or_else(|| Error::invalid("concurrencies must not contain nulls"))?;
        let depth = u32::try_from(concurrency).map_err(|_| {
            Error::invalid(format!("concurrencies must not be negative, as {concurrency} is"))
        })?;
        gucs::depth(Some(depth), depth)
    };
    let mut concurrencies = concurrencies.into_iter().map(valid).collect::<Result<Vec<u32>>>()?;
    concurrencies.sort_unstable();
    concurrencies.dedup();
    Ok(concurrencies)
}

fn check_count(what: &str, count: usize) -> Result<()> {
    if count > MOST_POINTS {
        return Err(Error::invalid(format!("{what} must contain at most {MOST_POINTS}, not {count}")));
    }
    Ok(())
}

/// A call whose arguments are right by themselves.
struct PageCostRequest {
    rel: pg_sys::Oid,
    wanted: Wanted,
    wait: bool,
}

impl PageCostRequest {
    fn run(&self) -> Result<Vec<PageCostRow>> {
        if self.wanted.evicts {
            check_may_evict("cold")?;
        }
        let (_lock, subject) =
            ProbedRelation::open_alone(self.rel, Fork::MAIN, "io_probe_page_cost", self.wait)?;
        let progress = Progress::start("page_cost", Some(subject.relation.oid()));
        let _charge = statement::charge()?;
        let mut should_stop = interrupts::should_stop(subject.relation.locked());
        let mut should_stop = || statement::over().or_else(&mut should_stop);
        measure(&subject, &self.wanted, &progress, &mut should_stop)
    }
}
