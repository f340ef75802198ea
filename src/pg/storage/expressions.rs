//! The expressions that belong to a table, which the server evaluates while it plans a query of that table:
//! what is constant in those of its indexes and statistics.
//!
//! Functions in them that are not the server's could do anything, and take any time, with the rights of the
//! role that has a query planned. The planner also calls what an operator leads to (its negator, its
//! commutator), and functions of a range type, to estimate how many rows satisfy a condition.
//!
//! The planner also computes the server's own functions of constants, and can't be cancelled meanwhile:
//! `md5(repeat('x', 1000000000))` takes seconds, and there may be many such.

use std::ffi::c_void;

use pgrx::{pg_guard, pg_sys};

use crate::pg::backend::nodes::{elements, operators};

/// Would the planner call functions that are not the server's own, or compute what takes any time? CHECK
/// constraints are not looked at: the planner leaves them alone while `constraint_exclusion` is off.
///
/// # Safety
/// `table` must be an open table, on which this session holds a lock.
#[allow(clippy::unnecessary_cast)] // from 19 on the cache is named by an i32
pub(in crate::pg) unsafe fn call_functions(table: pg_sys::Relation) -> bool {
    // SAFETY: the caller vouches for the table. The lists are copies, of oids; from the caches, so that they
    // are those the planner finds, and not those of this transaction's snapshot.
    unsafe {
        let indexes = elements(pg_sys::RelationGetIndexList(table));
        let statistics = elements(pg_sys::RelationGetStatExtList(table));
        let (of_indexes, of_statistics) =
            (pg_sys::SysCacheIdentifier::INDEXRELID, pg_sys::SysCacheIdentifier::STATEXTOID);
        let of_index = [pg_sys::Anum_pg_index_indexprs, pg_sys::Anum_pg_index_indpred];
        indexes.iter().any(|index| expressions_call(of_indexes as i32, index.oid_value, &of_index))
            || statistics.iter().any(|object| {
                expressions_call(of_statistics as i32, object.oid_value, &[STXEXPRS])
            })
            // Policies hold for the owner, too, if they are forced.
            || (*(*table).rd_rel).relforcerowsecurity
    }
}

/// `stxexprs` of `pg_statistic_ext.h`, of all versions from 14 on; pgrx has it of some.
const STXEXPRS: u32 = 9;

/// # Safety
/// The attributes must be of type pg_node_tree, in the catalog of that cache, whose key is an oid.
unsafe fn expressions_call(cache: i32, oid: pg_sys::Oid, attributes: &[u32]) -> bool {
    // SAFETY: the caller vouches for the catalog; what is read belongs to the present memory context, and the
    // tuple is released.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(oid));
        if tuple.is_null() {
            return false; // dropped meanwhile
        }
        let calls = attributes.iter().any(|attribute| {
            let mut is_null = false;
            let tree = pg_sys::SysCacheGetAttr(cache, tuple, *attribute as pg_sys::AttrNumber, &mut is_null);
            !is_null && {
                let text = pg_sys::text_to_cstring(tree.cast_mut_ptr());
                calls_function(pg_sys::stringToNode(text).cast())
            }
        });
        pg_sys::ReleaseSysCache(tuple);
        calls
    }
}

/// # Safety
/// `node` must be NULL or a node of an expression.
unsafe fn calls_function(node: *mut pg_sys::Node) -> bool {
    if node.is_null() {
        return false;
    }
    let context = std::ptr::null_mut();
    // SAFETY: the caller vouches for the node; the server's walker comes to each node below.
    unsafe {
        // A domain's constraints may call functions.
        matches!((*node).type_, pg_sys::NodeTag::T_CoerceToDomain)
            || leads_to_others(node)
            || is_computed(node)
            || pg_sys::check_functions_in_node(node, Some(is_not_the_server_s), context)
            || pg_sys::expression_tree_walker(node, Some(walk), context)
    }
}

/// Is it a call of constants alone? A cast of one takes no time.
///
/// # Safety
/// `node` must be a node of an expression.
unsafe fn is_computed(node: *mut pg_sys::Node) -> bool {
    use pg_sys::{CoercionForm, NodeTag};
    // SAFETY: the caller vouches for the node; one with this tag is of this type.
    unsafe {
        let is_cast = match (*node).type_ {
            NodeTag::T_FuncExpr => {
                let call = &*node.cast::<pg_sys::FuncExpr>();
                // With more arguments it makes a value as long as its type says.
                elements(call.args).len() == 1
                    && matches!(
                        call.funcformat,
                        CoercionForm::COERCE_EXPLICIT_CAST | CoercionForm::COERCE_IMPLICIT_CAST
                    )
            }
            NodeTag::T_CoerceViaIO => true,
            _ => false,
        };
        !is_cast
            && pg_sys::check_functions_in_node(node, Some(is_any), std::ptr::null_mut())
            && !pg_sys::contain_var_clause(node)
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_any(_function: pg_sys::Oid, _context: *mut c_void) -> bool {
    true
}

/// Does the node have an operator that is not the server's, or one with an argument of a user's range type?
///
/// # Safety
/// `node` must be a node of an expression.
unsafe fn leads_to_others(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller vouches for the node; an operator has its arguments.
    unsafe {
        let (operators, arguments) = operators(node);
        let mut types =
            elements(arguments).iter().map(|argument| pg_sys::exprType(argument.ptr_value.cast()));
        operators.into_iter().any(is_of_others) || types.any(is_range_of_others)
    }
}

/// Is it a range type, or multirange type, that is not the server's, or an array of such?
fn is_range_of_others(of: pg_sys::Oid) -> bool {
    // SAFETY: catalog lookups of a type that an expression has.
    unsafe {
        let element = pg_sys::get_base_element_type(of);
        let base = pg_sys::getBaseType(if element == pg_sys::InvalidOid { of } else { element });
        let kind = pg_sys::get_typtype(base) as u8;
        is_of_others(base) && [pg_sys::TYPTYPE_RANGE, pg_sys::TYPTYPE_MULTIRANGE].contains(&kind)
    }
}

fn is_of_others(oid: pg_sys::Oid) -> bool {
    oid.to_u32() >= pg_sys::FirstNormalObjectId
}

/// [`calls_function`] for the server. Called from Rust, its guard would jump over Rust's frames.
#[pg_guard]
unsafe extern "C-unwind" fn walk(node: *mut pg_sys::Node, _context: *mut c_void) -> bool {
    // SAFETY: a node below one of an expression.
    unsafe { calls_function(node) }
}

#[pg_guard]
unsafe extern "C-unwind" fn is_not_the_server_s(function: pg_sys::Oid, _context: *mut c_void) -> bool {
    is_of_others(function)
}
