//! The planner's hook for what it knows of a relation, and is about to use.

use std::cell::Cell;
use std::ptr::fn_addr_eq;

use pgrx::{pg_guard, pg_sys};

#[cfg(not(feature = "pg19"))]
use pg_sys::{get_relation_info_hook as hook, get_relation_info_hook_type as HookType};
#[cfg(not(feature = "pg19"))]
type Hook = unsafe extern "C-unwind" fn(*mut pg_sys::PlannerInfo, pg_sys::Oid, bool, *mut pg_sys::RelOptInfo);

#[cfg(feature = "pg19")]
use pg_sys::{build_simple_rel_hook as hook, build_simple_rel_hook_type as HookType};
#[cfg(feature = "pg19")]
type Hook = unsafe extern "C-unwind" fn(
    *mut pg_sys::PlannerInfo,
    *mut pg_sys::RelOptInfo,
    *mut pg_sys::RangeTblEntry,
);

/// Looks at what the planner knows of a relation, and may change it.
pub(in crate::pg) type LookAtRelation = unsafe fn(*mut pg_sys::RelOptInfo);

thread_local! {
    /// The hook before ours.
    static BEFORE: Cell<HookType> = const { Cell::new(None) };
    /// What ours calls.
    static LOOK: Cell<Option<LookAtRelation>> = const { Cell::new(None) };
}

/// Until this is dropped, the planner shows a function what it knows of each relation. There is one such.
pub(in crate::pg) struct RelationHook {
    /// What was there before, if ours was not.
    before: Option<HookType>,
}

impl RelationHook {
    pub(in crate::pg) fn begin(look: LookAtRelation) -> Self {
        LOOK.set(Some(look));
        // SAFETY: a variable of this backend; the hook is a function of this library, which is never
        // unloaded.
        let before = unsafe {
            let before = hook;
            let is_ours = before.is_some_and(|before| fn_addr_eq(before, ours as Hook));
            (!is_ours).then(|| {
                BEFORE.set(before);
                hook = Some(ours);
                before
            })
        };
        Self { before }
    }
}

impl Drop for RelationHook {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: as above. Nobody else had a reason to set it: only planning went on meanwhile.
            unsafe { hook = before };
        }
    }
}

#[cfg(not(feature = "pg19"))]
#[pg_guard]
unsafe extern "C-unwind" fn ours(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    is_parent: bool,
    info: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the planner, or a hook before us, hands us what it knows of a relation.
    unsafe {
        if let Some(before) = BEFORE.get() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| before(root, relation, is_parent, info));
        }
        show(info);
    }
}

/// # Safety
/// `info` must be what the planner knows of a relation.
unsafe fn show(info: *mut pg_sys::RelOptInfo) {
    if let Some(look) = LOOK.get() {
        // SAFETY: the caller vouches for it.
        unsafe { look(info) };
    }
}

#[cfg(feature = "pg19")]
#[pg_guard]
unsafe extern "C-unwind" fn ours(
    root: *mut pg_sys::PlannerInfo,
    info: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: the planner, or a hook before us, hands us what it knows of what is in FROM: of a relation, or
    // of something else.
    unsafe {
        if let Some(before) = BEFORE.get() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| before(root, info, entry));
        }
        if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
            show(info);
        }
    }
}
