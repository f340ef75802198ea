//! Storing runs, and deleting them. Only these statements run with the rights of the tables' owner; no other
//! role may write.

use pgrx::datum::{DatumWithOid, Interval};
use pgrx::{pg_sys, spi};

use super::tables::Tables;
use crate::error::Result;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::lock::check_may_write;
use crate::pg::backend::names::{self, from_own};

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
    let Tables { schema, columns, typed_columns, .. } = &tables;
    let statement = format!(
        "WITH stored AS ( \
             INSERT INTO {schema}.io_probe_runs ({columns}, label) SELECT {columns}, $2 \
             FROM jsonb_to_record( \
                 CASE WHEN jsonb_typeof($1 -> 'relation') = 'object' THEN $1 -> 'relation' \
                     ELSE '{{}}' END || $1) \
             AS run ({typed_columns}) RETURNING id \
         ), lines AS ( \
             INSERT INTO {schema}.io_probe_results (run_id, ordinal, result) \
             SELECT stored.id, line.ordinal, line.value \
             FROM stored, jsonb_array_elements($1 -> 'rows') WITH ORDINALITY AS line(value, ordinal) \
         ) \
         SELECT id FROM stored"
    );
    tables.write(&statement, &[DatumWithOid::from(result.clone()), DatumWithOid::from(label)])
}

/// Deletes the runs that started longer ago than `keep`, and returns how many there were; and the rows of
/// runs that are gone.
pub(crate) fn delete_older(keep: Interval) -> i64 {
    let tables = Tables::find();
    let schema = &tables.schema;
    // In one statement none of its parts sees what another has deleted.
    let statement = format!(
        "WITH old AS (DELETE FROM {schema}.io_probe_runs WHERE started_at < now() - $1 RETURNING id), \
         kept AS (SELECT id FROM {schema}.io_probe_runs EXCEPT SELECT id FROM old), \
         orphans AS ( \
             DELETE FROM {schema}.io_probe_results \
             WHERE NOT EXISTS (SELECT FROM kept WHERE kept.id = io_probe_results.run_id) \
         ) \
         SELECT count(*) FROM old"
    );
    tables.write(&statement, &[DatumWithOid::from(keep)])
}

/// The number of the first row of a result that is no object; a row whose values are not of the types that
/// the probe's rows have is an ERROR. Both with the caller's rights.
pub(crate) fn first_that_fits_no_row(result: &JsonbText, probe: &str) -> Option<i64> {
    let rows = "jsonb_array_elements($1 -> 'rows') WITH ORDINALITY AS line(value, ordinal)";
    let other = format!("SELECT min(ordinal) FROM {rows} WHERE jsonb_typeof(value) <> 'object'");
    // A relation's name may be unknown here; what counts is the run's relation.
    let typed = format!("SELECT count(jsonb_populate_record($2, value - 'relid'::text)) FROM {rows}");
    let result = || DatumWithOid::from(result.clone());
    let found = names::rows(&other, &[result()]).into_iter().next();
    if found.is_none()
        && let Some(row_type) = own_type(&format!("io_probe_{probe}_full_row"))
    {
        names::run_own(&typed, &[result(), DatumWithOid::null_oid(row_type)], |_| ());
    }
    found
}

/// Does a result say that it was measured tomorrow or later? It would never be old enough to be deleted.
pub(crate) fn is_of_the_future(result: &JsonbText) -> bool {
    let query = "SELECT ($1 ->> 'started_at')::timestamptz > now() + '1 day'::interval";
    names::rows(query, &[DatumWithOid::from(result.clone())]).into_iter().next().unwrap_or(false)
}

/// A type of this extension.
fn own_type(name: &str) -> Option<pg_sys::Oid> {
    let query = format!(
        "SELECT t.oid::int8 FROM {} AND t.typname = {}",
        from_own("pg_type", "t"),
        spi::quote_literal(name)
    );
    names::rows(&query, &[]).into_iter().next()
}
