//! Storing runs, and deleting them. Only these statements run with the rights of the tables' owner; no other
//! role may write.

use pgrx::datum::{DatumWithOid, Interval};
use pgrx::{pg_sys, spi};

use super::tables::{Runs, Tables};
use crate::error::Result;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::lock::check_may_write;
use crate::pg::backend::server::{from_own, one, pairs};
use crate::pg::catalog::query::StatementRows;

/// Can runs be stored, or deleted, here and now? `function` is the caller's name.
pub(crate) fn check_possible(function: &str) -> Result<()> {
    check_may_write(
        function,
        "Measure here with io_probe_measure, and store what it returns on the primary with io_probe_import.",
    )?;
    Tables::find().check_for_triggers()
}

/// Stores a result of which the header was checked, and returns the number of the run.
pub(crate) fn insert(result: &JsonbText, label: Option<Text>) -> i64 {
    let tables = Tables::find();
    let run = |runs: &Runs| {
        let Runs { schema, columns, typed_columns, .. } = runs;
        format!(
            "INSERT INTO {schema}.io_probe_runs ({columns}, label) SELECT {columns}, $2 \
                 FROM jsonb_to_record( \
                 CASE WHEN jsonb_typeof($1 -> 'relation') = 'object' THEN $1 -> 'relation' \
                     ELSE '{{}}' END || $1) \
             AS run ({typed_columns}) RETURNING id"
        )
    };
    let arguments = [DatumWithOid::from(result.clone()), DatumWithOid::from(label)];
    let id = tables.write(run, &arguments, StatementRows::one_bigint);

    let rows = |runs: &Runs| {
        format!(
            "INSERT INTO {}.io_probe_results (run_id, ordinal, result) SELECT $2, ordinal, value \
             FROM jsonb_array_elements($1 -> 'rows') WITH ORDINALITY AS line(value, ordinal)",
            runs.schema
        )
    };
    let arguments = [DatumWithOid::from(result.clone()), DatumWithOid::from(id)];
    tables.write(rows, &arguments, |_| id)
}

/// Deletes the runs that started longer ago than `keep`, and returns how many there were; and the rows of
/// runs that are gone.
pub(crate) fn delete_older(keep: Interval) -> i64 {
    let tables = Tables::find();
    let arguments = [DatumWithOid::from(keep)];
    let old =
        |runs: &Runs| format!("DELETE FROM {}.io_probe_runs WHERE started_at < now() - $1", runs.schema);
    let deleted = tables.write(old, &arguments, |rows| rows.count);
    let orphans = |Runs { schema, .. }: &Runs| {
        format!(
            "DELETE FROM {schema}.io_probe_results \
             WHERE NOT EXISTS (SELECT FROM {schema}.io_probe_runs \
                 WHERE io_probe_runs.id = io_probe_results.run_id)"
        )
    };
    tables.write(orphans, &[], |_| deleted as i64)
}

/// The number of the first row of a result that is no object; a row whose values are not of the types that
/// the probe's rows have is an ERROR. Both with the caller's rights.
pub(crate) fn first_that_fits_no_row(result: &JsonbText, probe: &str) -> Option<i64> {
    let rows = "pg_catalog.jsonb_array_elements($1 OPERATOR(pg_catalog.->) 'rows') \
        WITH ORDINALITY AS line(value, ordinal)";
    let other = format!(
        "SELECT pg_catalog.min(ordinal) FROM {rows} \
         WHERE pg_catalog.jsonb_typeof(value) OPERATOR(pg_catalog.<>) 'object'"
    );
    // A relation's name may be unknown here; what counts is the run's relation.
    let typed = format!(
        "SELECT pg_catalog.count(pg_catalog.jsonb_populate_record($2, value OPERATOR(pg_catalog.-) \
         'relid'::pg_catalog.text)) FROM {rows}"
    );
    let result = || DatumWithOid::from(result.clone());
    let row_type = own_type(&format!("io_probe_{probe}_full_row"));
    let read = one(&other, &[result()]).and_then(|found| match (found, row_type) {
        (None, Some(row_type)) => {
            one::<i64>(&typed, &[result(), DatumWithOid::null_oid(row_type)]).map(|_| None)
        }
        (found, _) => Ok(found),
    });
    read.unwrap_or_else(|e| pgrx::error!("could not read the rows: {e}"))
}

/// Does a result say that it was measured tomorrow or later? It would never be old enough to be deleted.
pub(crate) fn is_of_the_future(result: &JsonbText) -> bool {
    let query = "SELECT ($1 OPERATOR(pg_catalog.->>) 'started_at')::pg_catalog.timestamptz \
        OPERATOR(pg_catalog.>) \
                 (pg_catalog.now() OPERATOR(pg_catalog.+) '1 day'::pg_catalog.interval)";
    let read = one::<bool>(query, &[DatumWithOid::from(result.clone())]);
    read.unwrap_or_else(|e| pgrx::error!("could not read started_at: {e}")).unwrap_or(false)
}

/// A type of this extension.
fn own_type(name: &str) -> Option<pg_sys::Oid> {
    let query = format!(
        "SELECT t.oid, ''::pg_catalog.text FROM {} AND t.typname OPERATOR(pg_catalog.=) {}",
        from_own("pg_type", "t"),
        spi::quote_literal(name)
    );
    Some(pairs::<pg_sys::Oid>(&query).into_iter().next()?.0)
}
