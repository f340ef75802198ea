//! The tables that runs are kept in, found through the extension itself, and statements that write to just
//! these.

use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use serde::Deserialize;

use crate::error::Result;
use crate::pg::backend::names::{self, from_own};
use crate::pg::backend::statement::StatementRows;
use crate::pg::storage::relation::Relation;

/// Where runs are.
#[derive(Deserialize)]
pub(super) struct Tables {
    /// io_probe_runs and io_probe_results.
    written: [pg_sys::Oid; 2],
    /// The schema of these tables and of io_probe_metrics, as a query wants it.
    pub(super) schema: String,
    /// The columns that a result brings with it; and the same with their types, which are the server's own.
    pub(super) columns: String,
    pub(super) typed_columns: String,
}

impl Tables {
    pub(super) fn find() -> Self {
        let of_result = "pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
             AND a.attidentity = '' AND a.attgenerated = '' AND a.attname NOT IN ('label', 'recorded_at')";
        let query = format!(
            "SELECT json_build_object( \
                 'written', ARRAY(SELECT own.oid::int8 FROM {} \
                     AND own.relname IN ('io_probe_runs', 'io_probe_results') ORDER BY own.relname DESC), \
                 'schema', quote_ident(n.nspname), \
                 'columns', (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) \
                     FROM {of_result}), \
                 'typed_columns', (SELECT string_agg(format('%I %s', a.attname, \
                     format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum) FROM {of_result})) \
             FROM pg_namespace AS n, {} AND n.oid = c.relnamespace AND c.relname = 'io_probe_runs'",
            from_own("pg_class", "own"),
            from_own("pg_class", "c")
        );
        let found = names::rows(&query, &[]).into_iter().next();
        found.unwrap_or_else(|| pgrx::error!("could not find the tables of the extension"))
    }

    /// Refuses to write to them while that would call triggers. Waits for no lock, and keeps none: a write
    /// looks again.
    pub(super) fn check_for_triggers(&self) -> Result<()> {
        let mut open = self.written.into_iter().filter_map(Relation::open_if_free);
        open.try_for_each(|table| table.check_for_triggers())
    }

    /// Runs a statement about them, with the rights of their owner, as it is now: no other role may write to
    /// them. Names in it are the server's own, or the extension's. Returns what `read` makes of its rows.
    pub(super) fn write<T>(
        &self,
        statement: &str,
        arguments: &[DatumWithOid<'_>],
        read: impl FnOnce(&StatementRows) -> T,
    ) -> T {
        let [runs, _results] =
            self.written.map(|oid| Relation::open_to_write(oid).unwrap_or_else(|e| e.raise()));
        runs.as_owner(|| names::run_own(statement, arguments, read))
    }
}
