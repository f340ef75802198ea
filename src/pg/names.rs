//! Statements whose names mean what they were meant to mean.
//!
//! A name in a statement is looked up when the statement is parsed, and by then it may be another relation's: who owns a schema
//! can rename it at any time, and no lock on a relation keeps him from it. So of a statement that is run with somebody else's
//! rights, or that names what belongs to the extension, each name is compared with what it was found to be, after the statement
//! was parsed and before it is planned. From then on the server goes by oid.
//!
//! The server's hook for parsed statements is ours for just as long.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::fn_addr_eq;

use pgrx::{PgSqlErrorCode, ereport, pg_guard, pg_sys};

use super::compat::Jumble;

/// The type of a hook that is there.
type Hook = unsafe extern "C-unwind" fn(*mut pg_sys::ParseState, *mut pg_sys::Query, Jumble);

thread_local! {
    /// Is the next statement that is parsed to be looked at?
    static ARMED: Cell<bool> = const { Cell::new(false) };
    /// What it may name.
    static MEANT: Cell<Meant> = const { Cell::new([pg_sys::InvalidOid; MOST]) };
    /// The hook before ours.
    static BEFORE: Cell<pg_sys::post_parse_analyze_hook_type> = const { Cell::new(None) };
    /// Is the hook ours, or is ours below another one?
    static INSTALLED: Cell<bool> = const { Cell::new(false) };
}

/// Most relations and functions that a statement may name.
const MOST: usize = 3;
type Meant = [pg_sys::Oid; MOST];

/// Runs a statement, the first that `run` has parsed. It is an ERROR if that names a relation or a function other than these
/// and the server's own: nothing of it has been planned or executed then.
///
/// `run` must parse it only once, as SPI_execute does. A plan that is kept is parsed anew after a change of the catalogs.
pub(super) fn meaning<T>(these: &[pg_sys::Oid], run: impl FnOnce() -> T) -> T {
    let mut meant = [pg_sys::InvalidOid; MOST];
    meant[..these.len()].copy_from_slice(these);
    let armed = Armed::begin(meant);
    let result = run();
    if ARMED.get() {
        pgrx::error!("the names in a statement were not looked at");
    }
    drop(armed);
    result
}

struct Armed(());

impl Armed {
    fn begin(meant: Meant) -> Self {
        // SAFETY: a variable of this backend; the hook is a function of this library, which is never unloaded.
        unsafe {
            let before = pg_sys::post_parse_analyze_hook;
            if !INSTALLED.replace(true) {
                BEFORE.set(before);
                pg_sys::post_parse_analyze_hook = Some(look_at_names);
            } else if !before.is_some_and(is_ours) {
                // A library that was loaded while a statement ran.
                pgrx::error!(
                    "could not look at the names in a statement: another library may keep it from that"
                );
            }
        }
        MEANT.set(meant);
        ARMED.set(true);
        Self(())
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        ARMED.set(false);
        // SAFETY: a variable of this backend; what was there before us is there again, unless somebody has put his before it.
        unsafe {
            if pg_sys::post_parse_analyze_hook.is_some_and(is_ours) {
                pg_sys::post_parse_analyze_hook = BEFORE.get();
                INSTALLED.set(false);
            }
        }
    }
}

fn is_ours(hook: Hook) -> bool {
    fn_addr_eq(hook, look_at_names as Hook)
}

#[pg_guard]
unsafe extern "C-unwind" fn look_at_names(
    state: *mut pg_sys::ParseState,
    query: *mut pg_sys::Query,
    jumble: Jumble,
) {
    // SAFETY: the server, or a hook before us, hands us a statement that it has just parsed.
    unsafe {
        if ARMED.replace(false) && means_another(query.cast(), std::ptr::null_mut()) {
            ereport!(
                ERROR,
                PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
                "a schema was renamed while a statement was about to run"
            );
        }
        if let Some(hook) = BEFORE.get() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| hook(state, query, jumble));
        }
    }
}

/// Does this part of a statement, or one of its own, name what it was not meant to?
#[pg_guard]
unsafe extern "C-unwind" fn means_another(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag::{T_ExplainStmt, T_Query, T_RangeTblEntry};
    if node.is_null() {
        return false;
    }
    // SAFETY: a node of this tag is of this type; the server's walkers call this for each node below.
    unsafe {
        match (*node).type_ {
            T_Query => {
                let query = node.cast::<pg_sys::Query>();
                let utility = (*query).utilityStmt;
                if !utility.is_null() {
                    // Of these, we run EXPLAIN only.
                    return (*utility).type_ != T_ExplainStmt
                        || means_another((*utility.cast::<pg_sys::ExplainStmt>()).query, context);
                }
                let flags = pg_sys::QTW_EXAMINE_RTES_BEFORE as i32;
                return pg_sys::query_tree_walker(query, Some(means_another), context, flags);
            }
            // What is below it, the walker of the query comes to by itself.
            T_RangeTblEntry => return is_another((*node.cast::<pg_sys::RangeTblEntry>()).relid, context),
            _ => {}
        }
        pg_sys::check_functions_in_node(node, Some(is_another), context)
            || pg_sys::expression_tree_walker(node, Some(means_another), context)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_another(oid: pg_sys::Oid, _context: *mut c_void) -> bool {
    oid.to_u32() >= pg_sys::FirstNormalObjectId && !MEANT.get().contains(&oid)
}
