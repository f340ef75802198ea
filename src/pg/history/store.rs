//! Storing runs, and deleting them. Only these statements run with the rights of the tables' owner; nobody else may write.

use pgrx::datum::{DatumWithOid, Interval};
use pgrx::{pg_sys, spi, spi::Spi};

use crate::error::{Error, Result};
use crate::pg::encoding::{Text, c_string};
use crate::pg::json::JsonbText;
use crate::pg::server::{as_user, in_recovery, own, pairs};
use crate::pg::settings;

/// Columns of io_probe_runs that a result brings with it.
const COLUMNS: [&str; 27] = [
    "started_at",
    "elapsed_ms",
    "probe",
    "object",
    "status",
    "sqlstate",
    "message",
    "args",
    "rolname",
    "datname",
    "relid",
    "relkind",
    "schemaname",
    "relname",
    "rel_bytes",
    "spcname",
    "device",
    "model",
    "leaves",
    "kernel",
    "server_version",
    "in_recovery",
    "cluster_name",
    "host",
    "system_identifier",
    "settings",
    "version",
];

/// Can runs be stored, or deleted, here and now? `function` is the caller's name.
pub(crate) fn check_possible(function: &str) -> Result<()> {
    if in_recovery() {
        return Err(Error::unmet(format!("cannot execute {function}() during recovery")).hint(
            "Measure here with io_probe_measure, and store what it returns on the primary with io_probe_import.",
        ));
    }
    // SAFETY: reads a variable of this backend.
    if unsafe { pg_sys::XactReadOnly } {
        return Err(Error::read_only(format!("cannot execute {function}() in a read-only transaction")));
    }
    Ok(())
}

/// Stores a result of which the header was checked, and returns the number of the run.
pub(crate) fn insert(result: &JsonbText, label: Option<Text>) -> i64 {
    let tables = Tables::find();
    let schema = &tables.schema;
    let columns = COLUMNS.join(", ");
    let values = COLUMNS.map(|column| format!("run.{column}")).join(", ");
    let statement = format!(
        "WITH run AS ( \
             INSERT INTO {schema}.io_probe_runs ({columns}, label) SELECT {values}, $2 \
             FROM pg_catalog.jsonb_populate_record(NULL::{schema}.io_probe_runs, \
                 CASE WHEN pg_catalog.jsonb_typeof($1 -> 'relation') = 'object' THEN $1 -> 'relation' ELSE '{{}}' END || $1) AS run \
             RETURNING id \
         ), result AS ( \
             INSERT INTO {schema}.io_probe_results (run_id, ordinal, result) SELECT run.id, line.ordinal, line.value \
             FROM run, pg_catalog.jsonb_array_elements($1 -> 'rows') WITH ORDINALITY AS line(value, ordinal) \
         ) SELECT id FROM run"
    );
    let arguments = [DatumWithOid::from(result.clone()), DatumWithOid::from(label)];
    let inserted = tables.as_owner(|| {
        let statement = c_string(&statement);
        Spi::connect_mut(|client| {
            client.update(statement.as_c_str(), None, &arguments)?.first().get_one::<i64>()
        })
    });
    // The row is there, or there was an ERROR.
    inserted.ok().flatten().unwrap_or_else(|| pgrx::error!("could not store the run"))
}

/// Deletes the runs that started longer ago than this, and returns how many there were.
pub(crate) fn delete_older(keep: Interval) -> i64 {
    let tables = Tables::find();
    let statement =
        format!("DELETE FROM {}.io_probe_runs WHERE started_at < pg_catalog.now() - $1", tables.schema);
    let statement = c_string(&statement);
    let deleted = tables.as_owner(|| {
        Spi::connect_mut(|client| {
            Ok::<_, spi::Error>(client.update(statement.as_c_str(), None, &[DatumWithOid::from(keep)])?.len())
        })
    });
    let deleted = deleted.unwrap_or_else(|e| pgrx::error!("could not delete runs: {e}"));
    i64::try_from(deleted).unwrap_or(i64::MAX)
}

/// The number of the first row of a result that is no object; a row whose values are not of the types that the probe's rows
/// have is an ERROR. Both with the caller's rights.
pub(crate) fn first_that_fits_no_row(result: &JsonbText, probe: &str) -> Option<i64> {
    let rows = "pg_catalog.jsonb_array_elements($1 OPERATOR(pg_catalog.->) 'rows') WITH ORDINALITY AS line(value, ordinal)";
    let other = format!(
        "SELECT pg_catalog.min(ordinal) FROM {rows} \
         WHERE pg_catalog.jsonb_typeof(value) OPERATOR(pg_catalog.<>) 'object'"
    );
    let row_type = own_type(&format!("io_probe_{probe}_row"));
    let typed = row_type.map(|row_type| {
        // A relation by its name may be unknown here; it is the run's that counts.
        format!(
            "SELECT pg_catalog.count(pg_catalog.jsonb_populate_record(NULL::{row_type}, value OPERATOR(pg_catalog.-) \
             '{{relid,rel_used}}'::pg_catalog.text[])) FROM {rows}"
        )
    });
    let arguments = [DatumWithOid::from(result.clone())];
    let one = |query: &str| {
        Spi::connect(|client| {
            client.select(c_string(query).as_c_str(), None, &arguments)?.first().get_one::<i64>()
        })
    };
    let read = one(&other).and_then(|found| match (found, typed) {
        (None, Some(typed)) => one(&typed).map(|_| None),
        (found, _) => Ok(found),
    });
    read.unwrap_or_else(|e| pgrx::error!("could not read the rows: {e}"))
}

/// A type of this extension, as a query wants it.
fn own_type(name: &str) -> Option<String> {
    let query = format!(
        "SELECT t.oid, pg_catalog.format('%I.%I', n.nspname, t.typname) FROM pg_catalog.pg_namespace AS n, {} \
         AND n.oid OPERATOR(pg_catalog.=) t.typnamespace AND t.typname OPERATOR(pg_catalog.=) {}",
        own("pg_type", "t"),
        spi::quote_literal(name)
    );
    Some(pairs::<pg_sys::Oid>(&query).into_iter().next()?.1)
}

/// Where the runs are.
struct Tables {
    /// Their schema, as a query wants it.
    schema: String,
    owner: pg_sys::Oid,
}

impl Tables {
    fn find() -> Self {
        let query = format!(
            "SELECT c.relowner, pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_namespace AS n, {} \
             AND n.oid OPERATOR(pg_catalog.=) c.relnamespace AND c.relname OPERATOR(pg_catalog.=) 'io_probe_runs'",
            own("pg_class", "c")
        );
        let Some((owner, schema)) = pairs::<pg_sys::Oid>(&query).into_iter().next() else {
            pgrx::error!("could not find io_probe_runs");
        };
        Self { schema, owner }
    }

    /// Names in `work` are the server's own, or have a schema.
    fn as_owner<T>(&self, work: impl FnOnce() -> T) -> T {
        as_user(self.owner, || settings::with(&[(c"search_path", "pg_catalog, pg_temp".to_owned())], work))
    }
}
