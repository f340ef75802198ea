//! `io_probe_progress`: what the probes of other sessions are doing.

use pgrx::prelude::*;
use serde::Serialize;

use crate::call::probe::Probe;
use crate::pg::backend::progress::{Running, running};
use crate::pg::backend::row::Rows;

/// `io_probe_progress_row`; the type's comments say what each attribute means.
#[derive(Debug, Serialize)]
struct ProgressRow {
    #[serde(flatten)]
    running: Running,
    probe: Option<&'static str>,
}

#[pg_extern(sql = false)]
fn io_probe_progress() -> Rows {
    let row = |running: Running| ProgressRow { probe: Probe::name_of(running.probe), running };
    Rows::of(running().into_iter().map(row))
}
