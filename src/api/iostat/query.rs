//! `io_probe_iostat_query`: what the devices do while a query runs, and what the query used.

use std::cell::Cell;

use io_probe_core::machine::account::{Account, AccountTally};
use io_probe_core::machine::iostat::Sampler;
use pgrx::prelude::*;
use serde_json::json;

use super::row;
use super::{MOST_ROWS, OPTIONS, Watched, interval};
use crate::api::row::{IO_WORKERS, Row, WORKERS_SERVE_ALL, device_source, ms, why_lost};
use crate::call::Begin;
use crate::call::options::Options;
use crate::call::probe::Probe;
use crate::error::{Error, Result};
use crate::pg::backend::interval::Interval;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::row::Rows;
use crate::pg::backend::server;
use crate::pg::catalog::query::{self, Query, Used};

/// Most samples that are kept: an hour of seconds. Then the intervals grow.
const MOST_SAMPLES: usize = 3_600;
/// Samples that are kept at least, however many devices there are.
const LEAST_SAMPLES: usize = 60;

/// Most calls of this function that run within one another. Each has a thread, which max_connections does
/// not count.
const MOST_NESTED: u32 = 4;

thread_local! {
    /// Calls that run now.
    static NESTED: Cell<u32> = const { Cell::new(0) };
}

/// Note of a query whose device_bytes are NULL.
const PARALLEL: &str =
    "device_bytes is unknown: the plan has parallel workers, and their accounts end with them";

#[pg_extern(sql = false)]
fn io_probe_iostat_query(query: Option<Query>, every: Option<Interval>, options: Option<JsonbText>) -> Rows {
    let rows = || {
        let options = Options::parse(options, &OPTIONS)?;
        let query = query.ok_or_else(|| Error::invalid("query must not be null"))?;
        let every = interval(every)?;
        let watched = Watched::find(options.text("device")?.as_deref())?;
        query::check_single(&query, "SELECT and VALUES can be watched.")?;
        watch(&query, every, watched)
    };
    Rows::answer(rows)
}

/// Runs the query beside a thread that samples. The thread ends with the query, also by an ERROR. The query
/// is the user's, and may be a probe under its own bounds.
fn watch(query: &Query, every: std::time::Duration, watched: Watched) -> Result<Vec<Row>> {
    let _call = Begin::of(Probe::IostatQuery).beside_query()?;
    let _nested = Nested::begin()?;
    let most = (MOST_ROWS / watched.rows_a_sample()).clamp(LEAST_SAMPLES, MOST_SAMPLES);
    let account = server::read_account();
    let tally = AccountTally::begin(account);
    let sampler = Sampler::start(watched.watch.clone(), every, most)?;
    let used = query::discard(query);
    let series = sampler.finish();
    let fetched = fetched(&tally, used.parallel);
    let mut rows = row::of_series(&watched, &series, None)?;
    rows.push(closing(&used, account, fetched));
    Ok(rows)
}

/// A call of this function, which may be in the query of another one.
struct Nested(());

impl Nested {
    fn begin() -> Result<Self> {
        if NESTED.get() == MOST_NESTED {
            return Err(Error::too_large(format!("at most {MOST_NESTED} watched queries may be nested")));
        }
        NESTED.set(NESTED.get() + 1);
        Ok(Self(()))
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        NESTED.set(NESTED.get() - 1);
    }
}

/// Bytes fetched for the query, or why that is not known.
fn fetched(tally: &AccountTally, parallel: bool) -> std::result::Result<u64, &'static str> {
    if parallel {
        return Err(PARALLEL);
    }
    tally.bytes().map_err(why_lost)
}

/// The last row, which is the query's.
fn closing(used: &Used, account: Account, fetched: std::result::Result<u64, &'static str>) -> Row {
    let mut row = row::now();
    let source = device_source(account);
    match fetched {
        Ok(_) if source == IO_WORKERS => row.caveats.note(WORKERS_SERVE_ALL),
        Ok(_) => {}
        Err(why) => row.caveats.note(why),
    }
    let blocks = &used.blocks;
    row.set(json!({
        "elapsed_ms": ms(used.elapsed_ns),
        "query_rows": used.rows,
        "shared_blks_hit": blocks.shared_blks_hit,
        "shared_blks_read": blocks.shared_blks_read,
        "shared_blks_dirtied": blocks.shared_blks_dirtied,
        "shared_blks_written": blocks.shared_blks_written,
        "local_blks_hit": blocks.local_blks_hit,
        "local_blks_read": blocks.local_blks_read,
        "local_blks_written": blocks.local_blks_written,
        "temp_blks_read": blocks.temp_blks_read,
        "temp_blks_written": blocks.temp_blks_written,
        "wal_bytes": used.wal_bytes,
        "device_bytes": fetched.ok(),
        "device_source": fetched.ok().map(|_| source),
    }));
    row
}
