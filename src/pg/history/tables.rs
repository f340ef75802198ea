//! The tables that runs are kept in, found through the extension itself, and statements about just these.

use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;
use serde::Deserialize;

use crate::error::Result;
use crate::pg::backend::server::{from_own, pairs};
use crate::pg::catalog::names;
use crate::pg::catalog::query::StatementRows;
use crate::pg::storage::relation::Relation;

/// Where runs are.
pub(super) struct Tables {
    /// io_probe_runs and io_probe_results.
    written: [pg_sys::Oid; 2],
    runs: Runs,
}

/// What a statement needs to know of io_probe_runs.
#[derive(Deserialize)]
pub(super) struct Runs {
    /// The schema of these tables and of io_probe_metrics, as a query wants it.
    pub(super) schema: String,
    /// The columns that a result brings with it; and the same with their types, which are the server's own.
    pub(super) columns: String,
    pub(super) typed_columns: String,
}

impl Tables {
    /// The tables of this database.
    pub(super) fn find() -> Self {
        let of_result = "pg_catalog.pg_attribute AS a WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid \
             AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped \
                 AND a.attidentity OPERATOR(pg_catalog.=) '' \
             AND a.attgenerated OPERATOR(pg_catalog.=) '' \
             AND a.attname OPERATOR(pg_catalog.<>) ALL ('{label,recorded_at}'::pg_catalog.name[])";
        let query = format!(
            "SELECT c.oid, pg_catalog.jsonb_build_object( \
                 'schema', pg_catalog.quote_ident(n.nspname), \
                 'columns', (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ' \
                     ORDER BY a.attnum) \
                     FROM {of_result}), \
                 'typed_columns', (SELECT pg_catalog.string_agg(pg_catalog.format('%I %s', a.attname, \
                     pg_catalog.format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum) \
                     FROM {of_result}))::pg_catalog.text \
             FROM pg_catalog.pg_namespace AS n, {} AND n.oid OPERATOR(pg_catalog.=) c.relnamespace \
             AND c.relname OPERATOR(pg_catalog.=) ANY \
                 ('{{io_probe_runs,io_probe_results}}'::pg_catalog.name[]) \
             ORDER BY c.relname DESC",
            from_own("pg_class", "c")
        );
        let found = pairs::<pg_sys::Oid>(&query);
        let [(runs, facts), (results, _)] = found.as_slice() else {
            pgrx::error!("could not find the tables of the extension");
        };
        let facts =
            serde_json::from_str(facts).unwrap_or_else(|e| pgrx::error!("could not read the catalogs: {e}"));
        Self { written: [*runs, *results], runs: facts }
    }

    /// Refuses to write to them while that would call triggers. Waits for no lock, and keeps none: a write
    /// looks again.
    pub(super) fn check_for_triggers(&self) -> Result<()> {
        let mut open = self.written.into_iter().filter_map(Relation::open_if_free);
        open.try_for_each(|table| table.check_for_triggers())
    }

    /// Runs a statement about them, of which `text` makes the text. Names in it are the server's own, or the
    /// extension's.
    pub(super) fn run<T>(
        &self,
        text: impl FnOnce(&Runs) -> String,
        arguments: &[DatumWithOid<'_>],
        read: impl FnOnce(&StatementRows) -> T,
    ) -> T {
        names::run_own(&text(&self.runs), arguments, read)
    }

    /// The same with the rights of their owner, as it is now: no other role may write to them.
    pub(super) fn write<T>(
        &self,
        text: impl FnOnce(&Runs) -> String,
        arguments: &[DatumWithOid<'_>],
        read: impl FnOnce(&StatementRows) -> T,
    ) -> T {
        let [runs, _results] =
            self.written.map(|oid| Relation::open_to_write(oid).unwrap_or_else(|e| e.raise()));
        runs.as_owner(|| self.run(text, arguments, read))
    }
}
