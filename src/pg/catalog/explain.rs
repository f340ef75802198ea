//! EXPLAIN of a query in a read-only subtransaction, and the names in a plan back to oids.

use std::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys, spi::Spi};

use crate::error::{Error, Result};
use crate::pg::backend::encoding;
use crate::pg::backend::executor::{Counted, Execution, count_nodes};
use crate::pg::backend::rethrow::hinting;
use crate::pg::backend::statement::{StatementRows, run};
use crate::pg::backend::subtransaction::read_only;
use crate::pg::catalog::facts;
use crate::pg::catalog::query::{Query, check_single};
use crate::pg::compat;
use crate::pg::settings::set_for_subtransaction;

/// What to do about the mistakes that are made most often with a query.
const HINTS: [(PgSqlErrorCode, &CStr); 2] = [
    (
        PgSqlErrorCode::ERRCODE_UNDEFINED_PARAMETER,
        c"pg_stat_statements shows $1 in place of a constant of the query: replace it by a constant.",
    ),
    (
        PgSqlErrorCode::ERRCODE_READ_ONLY_SQL_TRANSACTION,
        c"Only queries that read are executed. Without execute => true, io_probe_explain only plans a query \
          that writes. To see the blocks of such a query, run EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) on it \
          in a transaction, roll back, and pass the output to io_probe_explain(plan => ...).",
    ),
];

/// The plan of a query as EXPLAIN (FORMAT JSON) prints it.
pub(crate) fn plan(query: &Query) -> Result<String> {
    check_single(query)?;
    let statement = query.after("EXPLAIN (VERBOSE, FORMAT JSON) ");
    Ok(hinting(&HINTS, || read_only(move || Spi::connect(|_| printed(&run(&statement))))))
}

/// Runs a query with the caller's rights in a read-only subtransaction: its plan as EXPLAIN (FORMAT JSON)
/// prints it, and what was counted of each node.
pub(crate) fn execute(query: &Query, how: Execution) -> Result<(String, Option<Counted>)> {
    check_single(query)?;
    if how.exact && compat::STREAMS_OBEY_TABLESPACE && facts::has_tablespace_with("effective_io_concurrency")
    {
        return Err(Error::unsupported("option \"exact\" is not possible here").detail(
            "A tablespace has its own effective_io_concurrency, which overrides the session's setting.",
        ));
    }
    // Times and blocks of nodes are counted without EXPLAIN, but for its own text.
    let timing = if how.prints { "" } else { "TIMING OFF, " };
    let statement = query.after(&format!("EXPLAIN (ANALYZE, {timing}BUFFERS, VERBOSE, FORMAT JSON) "));
    let counted = move || {
        set_for_subtransaction(c"track_io_timing", c"on");
        if how.exact {
            set_for_subtransaction(c"effective_io_concurrency", c"0");
        }
        count_nodes(&statement, how, || Spi::connect(|_| printed(&run(&statement))))
    };
    Ok(hinting(&HINTS, || read_only(counted)))
}

/// What EXPLAIN prints in a format that is one text.
pub(in crate::pg) fn printed(rows: &StatementRows) -> String {
    rows.one_text().unwrap_or_default()
}

/// The relation of this name, in this schema or on the search path; and an index of it.
pub(crate) fn find_relation(
    schema: Option<&str>,
    relation: &str,
    index: Option<&str>,
) -> (Option<pg_sys::Oid>, Option<pg_sys::Oid>) {
    let Some(relation_name) = encoding::name(relation) else { return (None, None) };
    // SAFETY: catalog lookups that give 0 for what does not exist; names are C strings.
    unsafe {
        let relation = match schema {
            // EXPLAIN calls the session's own temporary schema pg_temp.
            Some(schema) => encoding::name(schema)
                .and_then(|schema| found(pg_sys::LookupNamespaceNoError(schema.as_ptr())))
                .and_then(|schema| found(pg_sys::get_relname_relid(relation_name.as_ptr(), schema))),
            None => found(pg_sys::RelnameGetRelid(relation_name.as_ptr())),
        };
        let index = relation.zip(index).and_then(|(relation, index)| {
            let index = encoding::name(index)?;
            found(pg_sys::get_relname_relid(index.as_ptr(), pg_sys::get_rel_namespace(relation)))
        });
        (relation, index)
    }
}

/// What a lookup gave; None if there is no such thing.
fn found(oid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    (oid != pg_sys::InvalidOid).then_some(oid)
}
