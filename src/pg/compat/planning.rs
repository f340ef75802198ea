//! The planner's hook for what it knows of a relation, and is about to use; and what it charges for an index.

use std::sync::OnceLock;

use pgrx::pg_sys;

#[cfg(not(feature = "pg19"))]
use pg_sys::{get_relation_info_hook as hook, get_relation_info_hook_type as HookType};

#[cfg(feature = "pg19")]
use pg_sys::{build_simple_rel_hook as hook, build_simple_rel_hook_type as HookType};

/// Looks at what the planner knows of the relation of this oid, and may change it.
pub(in crate::pg) type LookAtRelation = unsafe extern "C-unwind" fn(pg_sys::Oid, *mut pg_sys::RelOptInfo);

/// What our hook calls: the hook before it, and then the function that looks.
static CALLED: OnceLock<(HookType, LookAtRelation)> = OnceLock::new();

/// From now on the planner shows this function what it knows of each relation. To be called once, when the
/// library is loaded.
pub(in crate::pg) fn watch_relations(look: LookAtRelation) {
    // SAFETY: a variable of this process; the hook is a function of this library, which is never unloaded.
    unsafe {
        if CALLED.set((hook, look)).is_ok() {
            hook = Some(ours);
        }
    }
}

/// What the planner calls. The hook before ours is called as it is: an ERROR of its passes through this
/// function, in which there is nothing that would have to be dropped.
#[cfg(not(feature = "pg19"))]
unsafe extern "C-unwind" fn ours(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    is_parent: bool,
    info: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the planner, or a hook before us, hands us what it knows of a relation.
    unsafe {
        let Some((before, look)) = CALLED.get() else { return };
        if let Some(before) = before {
            before(root, relation, is_parent, info);
        }
        look(relation, info);
    }
}

/// Calls the hook before ours, then ours; the server of 19 also calls it for what is no relation.
#[cfg(feature = "pg19")]
unsafe extern "C-unwind" fn ours(
    root: *mut pg_sys::PlannerInfo,
    info: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the planner, or a hook before us, hands us what it knows of what is in FROM: of a relation, or
    // of something else.
    unsafe {
        let Some((before, look)) = CALLED.get() else { return };
        if let Some(before) = before {
            before(root, info, entry);
        }
        if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
            look((*entry).relid, info);
        }
    }
}

/// How an access method estimates what a scan of an index costs.
pub(in crate::pg) type CostEstimate = unsafe extern "C-unwind" fn(
    *mut pg_sys::PlannerInfo,
    *mut pg_sys::IndexPath,
    f64,
    *mut pg_sys::Cost,
    *mut pg_sys::Cost,
    *mut pg_sys::Selectivity,
    *mut f64,
    *mut f64,
);

/// What estimates the costs of this index. Up to 16 the pointer is declared without arguments, and is called
/// with these.
///
/// # Safety
/// `index` must be what the planner knows of it.
pub(in crate::pg) unsafe fn cost_estimate(index: *mut pg_sys::IndexOptInfo) -> *mut Option<CostEstimate> {
    // SAFETY: the caller vouches for it.
    unsafe { (&raw mut (*index).amcostestimate).cast() }
}
