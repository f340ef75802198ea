//! `io_probe_progress`: what the probes of other sessions are doing.

use pgrx::prelude::*;

use crate::pg::backend::progress::running;
use crate::pg::backend::row::Rows;

#[pg_extern(sql = false)]
fn io_probe_progress() -> Rows {
    Rows::of(running())
}
