//! `io_probe_iostat_query`: what the devices do while a query runs, and what the query used.

use std::cell::Cell;
use std::time::Duration;

use io_probe_core::machine::account::{Account, AccountTally};
use io_probe_core::machine::iostat::Sampler;
use io_probe_surface::function::OptionName;
use io_probe_surface::iostat::{IostatQueryRow, OPTIONS};
use io_probe_surface::shared::{CaveatColumns, SampleColumns};
use pgrx::prelude::*;

use super::samples::of_series;
use super::{MOST_ROWS, Watched, interval};
use crate::api::shared::{Caveats, IO_WORKERS, WORKERS_SERVE_ALL, device_source, ms, why_lost};
use crate::call::{Begin, Options, Probe};
use crate::error::{Error, Result};
use crate::pg::backend::{JsonbText, Rows, SqlInterval, server};
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
fn io_probe_iostat_query(
    query: Option<Query>,
    every: Option<SqlInterval>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, OPTIONS)?;
        let query = query.ok_or_else(|| Error::invalid("query must not be null"))?;
        let every = interval(every)?;
        let watched = Watched::find(options.text(OptionName::Device)?.as_deref())?;
        query::check_single(&query, "SELECT and VALUES can be watched.")?;
        watch(&query, every, &watched)
    })
}

/// Runs the query beside a thread that samples. The thread ends with the query, also by an ERROR. The query
/// is the user's, and may be a probe under its own bounds.
fn watch(query: &Query, every: Duration, watched: &Watched) -> Result<Vec<IostatQueryRow>> {
    let _call = Begin::of(Probe::IostatQuery).beside_query()?;
    let _nested = Nested::begin()?;
    let most = (MOST_ROWS / watched.rows_a_sample()).clamp(LEAST_SAMPLES, MOST_SAMPLES);
    let account = server::read_account();
    let tally = AccountTally::begin(account);
    let sampler = Sampler::start(watched.watch.clone(), every, most)?;
    let used = query::discard(query);
    let series = sampler.finish();
    let fetched = if used.parallel { Err(PARALLEL) } else { tally.bytes().map_err(why_lost) };
    let mut rows = of_series(watched, &series, None, |sample, caveats| row(None, sample, caveats))?;
    rows.push(OwnFigures { used, account, fetched }.row());
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

struct OwnFigures {
    used: Used,
    account: Account,
    /// Bytes fetched, or why they are not known.
    fetched: std::result::Result<u64, &'static str>,
}

impl OwnFigures {
    fn row(&self) -> IostatQueryRow {
        let mut caveats = Caveats::default();
        match self.fetched {
            Ok(_) if device_source(self.account) == IO_WORKERS => caveats.note(WORKERS_SERVE_ALL),
            Ok(_) => {}
            Err(why) => caveats.note(why),
        }
        let sample = SampleColumns {
            sampled_at: Some(server::present()),
            elapsed_ms: Some(ms(self.used.elapsed_ns)),
            ..SampleColumns::default()
        };
        row(Some(self), sample, caveats.columns())
    }
}

/// A row of a sample, or the query's own one.
fn row(own: Option<&OwnFigures>, sample: SampleColumns, caveats: CaveatColumns) -> IostatQueryRow {
    let used = own.map(|own| &own.used);
    let blocks = used.map(|used| &used.blocks);
    let fetched = own.and_then(|own| own.fetched.ok());
    IostatQueryRow {
        query_rows: used.map(|used| used.rows),
        shared_blks_hit: blocks.map(|blocks| blocks.shared_blks_hit),
        shared_blks_read: blocks.map(|blocks| blocks.shared_blks_read),
        shared_blks_dirtied: blocks.map(|blocks| blocks.shared_blks_dirtied),
        shared_blks_written: blocks.map(|blocks| blocks.shared_blks_written),
        local_blks_hit: blocks.map(|blocks| blocks.local_blks_hit),
        local_blks_read: blocks.map(|blocks| blocks.local_blks_read),
        local_blks_written: blocks.map(|blocks| blocks.local_blks_written),
        temp_blks_read: blocks.map(|blocks| blocks.temp_blks_read),
        temp_blks_written: blocks.map(|blocks| blocks.temp_blks_written),
        wal_bytes: used.map(|used| used.wal_bytes),
        device_bytes: fetched,
        device_source: own.filter(|_| fetched.is_some()).map(|own| device_source(own.account)),
        caveats,
        sample,
    }
}
