//! `io_probe_progress`: what the probes of other sessions are doing.

use pgrx::prelude::*;

use crate::call::Probe;
use crate::pg::backend::Rows;
use crate::pg::backend::progress;

#[pg_extern(sql = false)]
fn io_probe_progress() -> Rows {
    Rows::answer(|| Ok(progress::running(Probe::name_of)))
}
