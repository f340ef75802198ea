//! `io_probe_progress`: what the probes of other sessions are doing.

use pgrx::prelude::*;
use serde::Serialize;

use crate::call::probe::Probe;
use crate::pg::backend::progress::{Running, running};
use crate::pg::backend::row::Rows;

/// `io_probe_progress_row`; the type's comments say what each attribute means.
#[derive(Debug, Serialize)]
struct ProgressRow {
    pid: i32,
    relid: Option<u32>,
    probe: Option<&'static str>,
    path: Option<&'static str>,
    done: i64,
    total: i64,
    started_at: String,
}

#[pg_extern(sql = false)]
fn io_probe_progress() -> Rows {
    Rows::of(running().into_iter().map(ProgressRow::of))
}

impl ProgressRow {
    fn of(running: Running) -> Self {
        let Running { pid, relid, probe, path, done, total, started_at } = running;
        Self { pid, relid, probe: Probe::name_of(probe), path, done, total, started_at }
    }
}
