//! EXPLAIN of a query in a read-only subtransaction, and the names in a plan back to oids.

use std::ffi::CStr;

use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgTryBuilder, pg_sys, spi::Spi};

use super::server::{c_string, text};
use crate::error::{Error, Result};

/// The plan of a query as EXPLAIN (FORMAT JSON) prints it; with `execute` the query is run.
///
/// The query runs with the caller's rights in a read-only subtransaction: whatever it would write is
/// refused by the server.
pub(crate) fn plan(query: &str, execute: bool) -> Result<String> {
    check_single_query(query)?;
    let options = if execute { "ANALYZE, BUFFERS, VERBOSE, FORMAT JSON" } else { "VERBOSE, FORMAT JSON" };
    let statement = format!("EXPLAIN ({options}) {query}");
    let statement = c_string(&statement);
    Ok(read_only(move || Spi::connect(|_| run(&statement))))
}

/// Runs an EXPLAIN, which gives one row of one column. Not by the safe call for statements that may
/// write: that assigns a transaction id, which costs one for nothing and fails on a standby.
fn run(statement: &CStr) -> String {
    // SAFETY: connected to SPI; the statement is a C string; the tuple table is read before the next
    // call, and its value, NULL or a C string, is copied.
    unsafe {
        let result = pg_sys::SPI_execute(statement.as_ptr(), false, 0);
        if result != pg_sys::SPI_OK_UTILITY as i32 || pg_sys::SPI_processed != 1 {
            pgrx::error!("EXPLAIN returned no plan");
        }
        let table = pg_sys::SPI_tuptable;
        let value = pg_sys::SPI_getvalue(*(*table).vals, (*table).tupdesc, 1);
        if value.is_null() { String::new() } else { text(value) }
    }
}

/// Exactly one statement, and one that EXPLAIN can run without its being a command. Otherwise what
/// follows a semicolon would be executed as well.
fn check_single_query(query: &str) -> Result<()> {
    let text = c_string(query);
    // SAFETY: the text is a C string that outlives the use of the list. A syntax error is an ERROR.
    let (count, tag, into) = unsafe {
        let list = pg_sys::pg_parse_query(text.as_ptr());
        if list.is_null() {
            (0, pg_sys::NodeTag::T_Invalid, false)
        } else {
            let raw = (*(*list).elements).ptr_value.cast::<pg_sys::RawStmt>();
            let statement = (*raw).stmt;
            ((*list).length, (*statement).type_, selects_into(statement))
        }
    };
    match count {
        0 => return Err(Error::invalid("query must not be empty")),
        1 => {}
        _ => return Err(Error::unsupported(format!("query must be one statement, not {count}"))),
    }
    let query = matches!(
        tag,
        pg_sys::NodeTag::T_SelectStmt
            | pg_sys::NodeTag::T_InsertStmt
            | pg_sys::NodeTag::T_UpdateStmt
            | pg_sys::NodeTag::T_DeleteStmt
            | pg_sys::NodeTag::T_MergeStmt
    );
    if !query || into {
        return Err(Error::unsupported("query must not be a utility command")
            .hint("SELECT, VALUES, and without execute INSERT, UPDATE, DELETE and MERGE can be explained."));
    }
    Ok(())
}

/// Would the statement make a table? INTO is on the leftmost SELECT of a set operation.
///
/// # Safety
/// `statement` must be a raw parse tree.
unsafe fn selects_into(mut statement: *const pg_sys::Node) -> bool {
    // SAFETY: a node of this tag is a SelectStmt, whose left argument is NULL or another one.
    unsafe {
        while !statement.is_null() && (*statement).type_ == pg_sys::NodeTag::T_SelectStmt {
            let select = statement.cast::<pg_sys::SelectStmt>();
            if !(*select).intoClause.is_null() {
                return true;
            }
            statement = (*select).larg.cast();
        }
    }
    false
}

/// Runs `work` in a subtransaction that may not write, and undoes it: what a read-only transaction is
/// allowed to change all the same (temporary tables, settings) does not stay either.
fn read_only<T>(work: impl FnOnce() -> T + std::panic::UnwindSafe) -> T {
    // SAFETY: reads variables of this backend.
    let (context, owner) = unsafe { (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner) };
    // The pattern of PL/pgSQL's exception blocks: memory context and resource owner are put back by
    // hand, since the end of a subtransaction leaves its parent's.
    let put_back = move || {
        // SAFETY: both belong to the caller, whose transaction goes on.
        unsafe {
            pg_sys::MemoryContextSwitchTo(context);
            pg_sys::CurrentResourceOwner = owner;
        }
    };
    // SAFETY: ended by exactly one of the two calls below.
    unsafe {
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        // Put back by the end of the subtransaction.
        pg_sys::XactReadOnly = true;
    }
    let result = PgTryBuilder::new(std::panic::AssertUnwindSafe(work))
        .catch_rust_panic(move |error| roll_back(error, put_back))
        .catch_others(move |error| roll_back(error, put_back))
        .execute();
    // SAFETY: begun above. The result is Rust's own, so nothing of the subtransaction is needed.
    unsafe { pg_sys::RollbackAndReleaseCurrentSubTransaction() };
    put_back();
    result
}

fn roll_back(error: CaughtError, put_back: impl Fn()) -> ! {
    // SAFETY: begun in `read_only`.
    unsafe { pg_sys::RollbackAndReleaseCurrentSubTransaction() };
    put_back();
    error.rethrow()
}

/// The relation of this name, in this schema or on the search path; and an index of it.
pub(crate) fn find_relation(
    schema: Option<&str>,
    relation: &str,
    index: Option<&str>,
) -> (Option<pg_sys::Oid>, Option<pg_sys::Oid>) {
    let found = |oid: pg_sys::Oid| (oid != pg_sys::InvalidOid).then_some(oid);
    let relation_name = c_string(relation);
    // SAFETY: catalog lookups that give 0 for what does not exist; names are C strings.
    unsafe {
        let relation = match schema {
            Some(schema) => found(namespace(schema))
                .and_then(|n| found(pg_sys::get_relname_relid(relation_name.as_ptr(), n))),
            None => found(pg_sys::RelnameGetRelid(relation_name.as_ptr())),
        };
        let index = relation.zip(index).and_then(|(relation, index)| {
            let index = c_string(index);
            found(pg_sys::get_relname_relid(index.as_ptr(), pg_sys::get_rel_namespace(relation)))
        });
        (relation, index)
    }
}

/// The schema of this name; EXPLAIN calls the session's own temporary schema pg_temp.
fn namespace(name: &str) -> pg_sys::Oid {
    let c_name = c_string(name);
    // SAFETY: the name is a C string; the variables outlive the call.
    unsafe {
        if name != "pg_temp" {
            return pg_sys::get_namespace_oid(c_name.as_ptr(), true);
        }
        let (mut temporary, mut toast) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        pg_sys::GetTempNamespaceState(&mut temporary, &mut toast);
        temporary
    }
}
