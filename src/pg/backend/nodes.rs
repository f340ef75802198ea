//! Lists and nodes of the server's.

use pgrx::pg_sys::{self, NodeTag};

/// The elements of a list; none for NULL.
///
/// # Safety
/// `list` must be NULL, or a list that stays as it is for as long as its elements are used.
pub(in crate::pg) unsafe fn elements<'a>(list: *const pg_sys::List) -> &'a [pg_sys::ListCell] {
    // SAFETY: the caller vouches for it; a list has as many elements as it says.
    unsafe {
        match list.as_ref() {
            Some(list) => std::slice::from_raw_parts(list.elements, list.length as usize),
            None => &[],
        }
    }
}

/// The operators of a node, and their arguments: of several, those on the left.
///
/// # Safety
/// `node` must be a node of an expression.
pub(in crate::pg) unsafe fn operators(node: *mut pg_sys::Node) -> (Vec<pg_sys::Oid>, *mut pg_sys::List) {
    // SAFETY: the caller vouches for the node, whose tag says what it is.
    unsafe {
        match (*node).type_ {
            NodeTag::T_OpExpr | NodeTag::T_DistinctExpr | NodeTag::T_NullIfExpr => {
                let node = &*node.cast::<pg_sys::OpExpr>();
                (vec![node.opno], node.args)
            }
            NodeTag::T_ScalarArrayOpExpr => {
                let node = &*node.cast::<pg_sys::ScalarArrayOpExpr>();
                (vec![node.opno], node.args)
            }
            NodeTag::T_RowCompareExpr => {
                let node = &*node.cast::<pg_sys::RowCompareExpr>();
                (elements(node.opnos).iter().map(|operator| operator.oid_value).collect(), node.largs)
            }
            _ => (Vec::new(), std::ptr::null_mut()),
        }
    }
}
