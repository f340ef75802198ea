//! Statements whose names mean what they were meant to mean.
//!
//! A name in a statement is looked up when the statement is parsed, and by then it may be another relation's:
//! the owner of a schema can rename it at any time, and no lock on a relation prevents that. So a statement
//! that is run with another role's rights, or that names what belongs to the extension, is parsed and
//! rewritten first. Then each relation, function and operator in it is compared with what it may name. Only
//! then it is planned, and from then on the server goes by oid.
//!
//! The server parses a plan anew when it was saved and the catalogs have changed, when `search_path` leads to
//! other schemas, or when row security depends on the role and that is another (plancache.c,
//! RevalidateCachedQuery). The plan is not saved, and the role stays. The user's `search_path` leads
//! elsewhere once this session hears that a schema was renamed. A lookup in the catalogs may make it hear of
//! that. So a statement that names only what is allowed by its oid is run without a lookup after parsing.

use std::ffi::{CStr, c_char, c_void};

use io_probe_core::run::memory;
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::NodeTag::{T_ExplainStmt, T_Query, T_RangeTblEntry};
use pgrx::{PgSqlErrorCode, ereport, pg_guard, pg_sys, spi::Spi};
use serde::de::DeserializeOwned;

use crate::error::{Error, or_raise};
use crate::pg::backend::encoding::c_string;
use crate::pg::backend::interrupts;
use crate::pg::backend::nodes::{elements, operators};
use crate::pg::backend::rethrow::unshown;
use crate::pg::backend::statement::StatementRows;
use crate::pg::settings;

/// Runs a statement that may name this relation or function, what belongs to the extension, and what is the
/// server's own: else it is an ERROR before anything is planned. For a caller that is connected to SPI.
pub(in crate::pg) fn run(
    statement: &CStr,
    arguments: &[DatumWithOid<'_>],
    may_name: Option<pg_sys::Oid>,
) -> StatementRows {
    unshown(statement.to_bytes(), || run_shown(statement, arguments, may_name))
}

/// Runs a statement that names only what belongs to the extension, with its schema, and what is the server's
/// own, and returns what `read` makes of its rows.
pub(in crate::pg) fn run_own<T>(
    statement: &str,
    arguments: &[DatumWithOid<'_>],
    read: impl FnOnce(&StatementRows) -> T,
) -> T {
    let statement = c_string(statement);
    settings::with(&[settings::OWN_NAMES], || Spi::connect(|_| read(&run(&statement, arguments, None))))
}

/// Most rows of a query of ours. What is made of them later allocates some hundred bytes for each.
const MOST_ROWS: u64 = 100_000;

/// The rows of such a query of ours, each one value that JSON can hold; without NULLs.
pub(in crate::pg) fn rows<T: DeserializeOwned>(query: &str, arguments: &[DatumWithOid<'_>]) -> Vec<T> {
    let query = format!("SELECT to_json(value)::text FROM ({query}) AS found(value)");
    run_own(&query, arguments, |rows| {
        // How many there are is up to their owners, or to the roles that store runs.
        if rows.count > MOST_ROWS {
            Error::too_large("this would read too many rows")
                .detail(format!("There are {} rows, but at most {MOST_ROWS} are allowed.", rows.count))
                .hint("If these are rows of stored runs, delete old runs by io_probe_prune.")
                .raise();
        }
        interrupts::collect(rows.texts().map(|row| {
            let _memory = or_raise(memory::hold(memory::of_json(&row)));
            // Only a defect of the queries, which are ours, could fail here.
            serde_json::from_str(&row).unwrap_or_else(|e| pgrx::error!("{e} in {row}"))
        }))
    })
}

/// The FROM and WHERE of such a query for the extension's objects in a catalog with `oid`.
pub(in crate::pg) fn from_own(catalog: &str, alias: &str) -> String {
    format!(
        "{catalog} AS {alias} JOIN pg_depend AS d ON d.objid = {alias}.oid \
         JOIN pg_extension AS e ON e.oid = d.refobjid \
         WHERE d.classid = '{catalog}'::regclass AND d.refclassid = 'pg_extension'::regclass \
         AND d.deptype = 'e' AND e.extname = 'pg_io_probe'"
    )
}

fn run_shown(
    statement: &CStr,
    arguments: &[DatumWithOid<'_>],
    may_name: Option<pg_sys::Oid>,
) -> StatementRows {
    let mut types: Vec<_> = arguments.iter().map(DatumWithOid::oid).collect();
    let given: Vec<_> = arguments.iter().map(|argument| Some(argument.datum()?.sans_lifetime())).collect();
    let mut values: Vec<_> = given.iter().map(|datum| datum.unwrap_or(pg_sys::Datum::null())).collect();
    let nulls: Vec<_> = given.iter().map(|d| if d.is_some() { b' ' } else { b'n' } as c_char).collect();
    // SAFETY: connected to SPI; the statement is a C string; as many types, values and nulls as there are
    // arguments. The plan is freed by the end of the connection if there is an ERROR.
    unsafe {
        let extension = pg_sys::get_extension_oid(c"pg_io_probe".as_ptr(), false);
        let mut allowed = Allowed { oid: may_name.unwrap_or(pg_sys::InvalidOid), extension };
        let plan = pg_sys::SPI_prepare(statement.as_ptr(), types.len() as i32, types.as_mut_ptr());
        if plan.is_null() {
            let result = pg_sys::SPI_result;
            pgrx::error!("could not prepare a statement: {result}");
        }
        if elements(pg_sys::SPI_plan_get_plan_sources(plan)).iter().any(|source| {
            let source = source.ptr_value.cast::<pg_sys::CachedPlanSource>();
            let mut queries = elements((*source).query_list).iter();
            queries.any(|query| names_another(query.ptr_value.cast(), (&raw mut allowed).cast()))
        }) {
            ereport!(
                ERROR,
                PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
                "a schema was renamed while a statement was about to run"
            );
        }
        let result = pg_sys::SPI_execute_plan(plan, values.as_mut_ptr(), nulls.as_ptr(), false, 0);
        if result < 0 {
            pgrx::error!("could not execute a statement: {result}");
        }
        let rows = StatementRows::of_spi();
        pg_sys::SPI_freeplan(plan);
        rows
    }
}

/// What a statement may name besides what is the server's own.
struct Allowed {
    oid: pg_sys::Oid,
    extension: pg_sys::Oid,
}

impl Allowed {
    /// Is this object of that catalog one that the statement may not name?
    fn excludes(&self, catalog: pg_sys::Oid, oid: pg_sys::Oid) -> bool {
        // SAFETY: a lookup in the catalogs, which gives 0 for what belongs to no extension.
        oid.to_u32() >= pg_sys::FirstNormalObjectId
            && oid != self.oid
            && unsafe { pg_sys::getExtensionOfObject(catalog, oid) } != self.extension
    }
}

/// Does this part of a statement, or a part of it, name what it may not?
///
/// # Safety
/// `node` must be NULL or a node of an analyzed statement, and `allowed` an [`Allowed`].
unsafe fn names_another(node: *mut pg_sys::Node, allowed: *mut c_void) -> bool {
    if node.is_null() {
        return false;
    }
    // SAFETY: the caller vouches for both. A node of this tag is of this type; the server's walkers come to
    // each node below.
    unsafe {
        match (*node).type_ {
            T_Query => {
                let query = node.cast::<pg_sys::Query>();
                let utility = (*query).utilityStmt;
                if !utility.is_null() {
                    // Of utility statements, we run EXPLAIN only.
                    return (*utility).type_ != T_ExplainStmt
                        || names_another((*utility.cast::<pg_sys::ExplainStmt>()).query, allowed);
                }
                let flags = pg_sys::QTW_EXAMINE_RTES_BEFORE as i32;
                return pg_sys::query_tree_walker(query, Some(walk), allowed, flags);
            }
            // The walker of the query comes by itself to what is below it.
            T_RangeTblEntry => {
                let relation = (*node.cast::<pg_sys::RangeTblEntry>()).relid;
                return (*allowed.cast::<Allowed>()).excludes(pg_sys::RelationRelationId, relation);
            }
            _ => {}
        }
        let is_another =
            |operator| (*allowed.cast::<Allowed>()).excludes(pg_sys::OperatorRelationId, operator);
        operators(node).0.into_iter().any(is_another)
            || pg_sys::check_functions_in_node(node, Some(is_another_function), allowed)
            || pg_sys::expression_tree_walker(node, Some(walk), allowed)
    }
}

/// [`names_another`] for the server. Called from Rust, its guard would jump over Rust's frames.
#[pg_guard]
unsafe extern "C-unwind" fn walk(node: *mut pg_sys::Node, allowed: *mut c_void) -> bool {
    // SAFETY: a node below one that is looked at, with what `run` allows.
    unsafe { names_another(node, allowed) }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_another_function(function: pg_sys::Oid, allowed: *mut c_void) -> bool {
    // SAFETY: what `run` allows.
    unsafe { (*allowed.cast::<Allowed>()).excludes(pg_sys::ProcedureRelationId, function) }
}
