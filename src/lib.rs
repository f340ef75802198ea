//! `pg_io_probe`: measures storage from inside PostgreSQL.
//!
//! A SQL call enters in `api`, which checks arguments and shapes rows; `pg` speaks with the
//! server. What is measured, and how, is the crate `io_probe_core`, which knows no PostgreSQL; what follows
//! from it is `io_probe_advise`; `io_probe_surface` declares functions, rows and settings.

#[cfg(not(panic = "unwind"))]
compile_error!("build with panic = \"unwind\": a panic must become an ERROR, not the end of the server");

mod api;
mod call;
mod error;
mod gucs;
mod pg;

use pgrx::prelude::*;

pgrx::pg_module_magic!(name, version);

#[global_allocator]
static ALLOCATOR: io_probe_core::run::memory::Allocator = io_probe_core::run::memory::Allocator;

/// Runs when the library is loaded into a backend.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    io_probe_core::run::memory::prepare();
    pg::backend::rethrow::leave_errors_of_the_server_alone();
    gucs::define();
    pg::backend::executor::watch();
    pg::catalog::planner::watch();
}
