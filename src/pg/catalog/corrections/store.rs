//! Storing a correlation, and deleting it.

use pgrx::datum::DatumWithOid;
use pgrx::pg_sys;

use super::stored::MeasuredOf;
use crate::error::{Error, Result};
use crate::pg::backend::encoding::{self, Text, text_or_none};
use crate::pg::backend::lock::check_may_write;
use crate::pg::backend::names::{self, from_own};
use crate::pg::compat;
use crate::pg::storage::relation::{Relation, relation_name};

/// Stores this correlation of a btree index, or deletes the one that is stored.
pub(crate) fn store(index: pg_sys::Oid, correlation: Option<f64>) -> Result<()> {
    check_may_write(
        "io_probe_correct",
        "Call it on the primary: the standby receives the stored correlation from there.",
    )?;
    // Serializable transactions that plan read the rows, and would have to fail for this write.
    // SAFETY: reads a variable of this backend.
    if unsafe { pg_sys::XactIsoLevel } as u32 == pg_sys::XACT_SERIALIZABLE {
        return Err(Error::unsupported("cannot execute io_probe_correct() in a serializable transaction"));
    }
    let (_locked, table) = lock(index)?;
    let Some(of) = MeasuredOf::now(table, index) else {
        return Err(Error::undefined_relation("the table is gone"));
    };
    let (corrections, schema) = table_of_corrections()?;
    let names = names_of(table, index)?.map(|name| DatumWithOid::from(Text(name)));
    let written = Relation::open_to_write(corrections)?;
    let statement = match correlation {
        None => format!(
            "DELETE FROM {schema}.io_probe_corrections WHERE schemaname = $1::name AND tablename = $2::name \
             AND indexname = $3::name"
        ),
        Some(_) => format!(
            "INSERT INTO {schema}.io_probe_corrections AS c (schemaname, tablename, indexname, correlation, \
                 analyzed, relfilenode, reltuples, major_version, io_method, set_at) \
             VALUES ($1::name, $2::name, $3::name, $4, $5, $6, $7, $8, $9::name, now()) \
             ON CONFLICT (schemaname, tablename, indexname) DO UPDATE \
                 SET (correlation, analyzed, relfilenode, reltuples, major_version, io_method, set_at) \
                 = ROW (excluded.correlation, excluded.analyzed, excluded.relfilenode, excluded.reltuples, \
                 excluded.major_version, excluded.io_method, excluded.set_at)"
        ),
    };
    let figures = correlation.map(move |correlation| {
        [
            DatumWithOid::from(correlation),
            DatumWithOid::from(of.analyzed),
            DatumWithOid::from(of.file),
            DatumWithOid::from(of.rows),
            DatumWithOid::from(of.version),
            DatumWithOid::from(Text(of.io_method)),
        ]
    });
    let arguments: Vec<_> = names.into_iter().chain(figures.into_iter().flatten()).collect();
    // Before the row is written: what this session then reads of it is forgotten if all of that is undone.
    // SAFETY: the table is locked; others hear of it when the transaction commits.
    unsafe { pg_sys::CacheInvalidateRelcacheByRelid(table) };
    written.as_owner(|| names::run_own(&statement, &arguments, |_| ()));
    Ok(())
}

/// Locks an index for which a correlation can be stored, and says which table is its own.
fn lock(index: pg_sys::Oid) -> Result<(Relation, pg_sys::Oid)> {
    // Before the lock, so that no session without the right waits for it; and after it, when nothing changes
    // any more.
    check_may_maintain(table_of(index)?)?;
    let relation = Relation::open(index)?;
    let table = table_of(index)?;
    check_may_maintain(table)?;
    if !relation.is_btree() {
        return Err(not_a_btree(&relation.name()));
    }
    if table.to_u32() < pg_sys::FirstNormalObjectId {
        return Err(Error::unsupported(format!("\"{}\" is an index of a system catalog", relation.name())));
    }
    // SAFETY: a lookup in a catalog.
    if unsafe { pg_sys::get_rel_relkind(table) } as u8 == pg_sys::RELKIND_TOASTVALUE {
        return Err(Error::unsupported(format!("\"{}\" is an index of a TOAST table", relation.name())));
    }
    if relation.is_temporary() {
        return Err(Error::unsupported(format!("\"{}\" is an index of a temporary table", relation.name())));
    }
    Ok((relation, table))
}

/// The extension's table of corrections, and its schema as SQL names it.
fn table_of_corrections() -> Result<(pg_sys::Oid, String)> {
    let query = format!(
        "SELECT json_build_array(c.oid::int8, quote_ident(n.nspname)) FROM pg_namespace AS n, {} \
         AND n.oid = c.relnamespace AND c.relname = 'io_probe_corrections'",
        from_own("pg_class", "c")
    );
    names::rows(&query, &[]).into_iter().next().ok_or_else(|| {
        Error::unmet("the extension has no table io_probe_corrections")
            .hint("Run ALTER EXTENSION pg_io_probe UPDATE.")
    })
}

/// The names of the schema, the table and its index, under which a correlation is stored. They are stored as
/// text; one that is none in the database's encoding would come back as another name, so each is looked up
/// again.
fn names_of(table: pg_sys::Oid, index: pg_sys::Oid) -> Result<[String; 3]> {
    // SAFETY: lookups in catalogs, which give NULL for what is not there. An index lies in its table's
    // schema.
    let names = unsafe {
        let schema = pg_sys::get_rel_namespace(index);
        [pg_sys::get_namespace_name(schema), pg_sys::get_rel_name(table), pg_sys::get_rel_name(index)]
            .map(|name| text_or_none(name).unwrap_or_default())
    };
    let [of_schema, of_table, of_index] = &names;
    if leads_to(of_schema, of_table, table) && leads_to(of_schema, of_index, index) {
        return Ok(names);
    }
    Err(Error::unsupported("the name of the index, of its table or of their schema is not valid text"))
}

/// Is this relation found under these names?
fn leads_to(schema: &str, name: &str, relation: pg_sys::Oid) -> bool {
    let Some((schema, name)) = encoding::name(schema).zip(encoding::name(name)) else { return false };
    // SAFETY: lookups in catalogs, which give 0 for what is not there; the names are C strings.
    unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        pg_sys::get_relname_relid(name.as_ptr(), schema) == relation
    }
}

fn table_of(index: pg_sys::Oid) -> Result<pg_sys::Oid> {
    let Some(name) = relation_name(index) else {
        return Err(Error::undefined_relation(format!("index with OID {} does not exist", index.to_u32())));
    };
    // SAFETY: lookups in catalogs, which give 0 for what is not there.
    unsafe {
        let is_index = pg_sys::get_rel_relkind(index) as u8 == pg_sys::RELKIND_INDEX;
        let table = if is_index { pg_sys::IndexGetRelation(index, true) } else { pg_sys::InvalidOid };
        if table == pg_sys::InvalidOid { Err(not_a_btree(&name)) } else { Ok(table) }
    }
}

fn not_a_btree(name: &str) -> Error {
    Error::wrong_kind(format!("\"{name}\" is not a btree index"))
        .hint("io_probe_correlation lists the indexes of a table.")
}

fn check_may_maintain(table: pg_sys::Oid) -> Result<()> {
    if compat::may_maintain(table) {
        return Ok(());
    }
    let name = relation_name(table).unwrap_or_default();
    let needed = if compat::HAS_MAINTAIN { "MAINTAIN on the table" } else { "ownership of the table" };
    Err(Error::denied(format!("permission denied for table {name}"))
        .detail(format!("io_probe_correct needs {needed}.")))
}
