//! `pg_io_probe`: measures storage from inside PostgreSQL.
//!
//! A SQL call enters in `api`, which checks arguments and shapes rows; `pg` speaks with the
//! server; what is measured, and how, is the crate `io_probe_core`, which knows no PostgreSQL.

#[cfg(not(panic = "unwind"))]
compile_error!("build with panic = \"unwind\": a panic must become an ERROR, not the end of the server");

mod api;
mod call;
mod error;
mod gucs;
mod pg;

use pgrx::prelude::*;

pgrx::pg_module_magic!(name, version);

// The schema is written by hand, one file a family: what a DBA reads is what runs.
extension_sql!(
    r#"\echo Use "CREATE EXTENSION pg_io_probe" to load this file. \quit"#,
    name = "not_by_psql",
    bootstrap
);
extension_sql_file!("ddl/facts.sql", name = "facts");
extension_sql_file!("ddl/seqscan.sql", name = "seqscan");
extension_sql_file!("ddl/random.sql", name = "random");
extension_sql_file!("ddl/depth.sql", name = "depth");
extension_sql_file!("ddl/ping.sql", name = "ping");
extension_sql_file!("ddl/sync.sql", name = "sync");
extension_sql_file!("ddl/iostat.sql", name = "iostat");
extension_sql_file!("ddl/readahead.sql", name = "readahead");
extension_sql_file!("ddl/page_cost.sql", name = "page_cost");
extension_sql_file!("ddl/recommend.sql", name = "recommend");
extension_sql_file!("ddl/correlation.sql", name = "correlation");
extension_sql_file!("ddl/explain.sql", name = "explain");
extension_sql_file!("ddl/report.sql", name = "report");
extension_sql_file!("ddl/history.sql", name = "history");
extension_sql_file!("ddl/compare.sql", name = "compare", requires = ["history"]);
extension_sql_file!("ddl/derived.sql", name = "derived", finalize);

#[global_allocator]
static ALLOCATOR: io_probe_core::run::memory::Allocator = io_probe_core::run::memory::Allocator;

/// Runs when the library is loaded into a backend.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    pg::backend::rethrow::leave_errors_of_the_server_alone();
    gucs::define();
    pg::catalog::planner::watch();
}
