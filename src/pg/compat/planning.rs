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
    /// Is the hook ours, or is ours below another one?
    static INSTALLED: Cell<bool> = const { Cell::new(false) };
    /// What ours calls.
    static LOOK: Cell<Option<LookAtRelation>> = const { Cell::new(None) };
}

/// Until this is dropped, the planner shows a function what it knows of each relation.
pub(in crate::pg) struct RelationHook {
    /// What it has shown that to before.
    before: Option<LookAtRelation>,
}

impl RelationHook {
    pub(in crate::pg) fn begin(look: LookAtRelation) -> Self {
        let before = LOOK.replace(Some(look));
        if !INSTALLED.replace(true) {
            // SAFETY: a variable of this backend; the hook is a function of this library, which is never
            // unloaded.
            unsafe {
                BEFORE.set(hook);
                hook = Some(ours);
            }
        }
        Self { before }
    }
}

impl Drop for RelationHook {
    fn drop(&mut self) {
        LOOK.set(self.before);
        // SAFETY: a variable of this backend. A library that planning has loaded, as that of an index's access
        // method, may have put its own before ours.
        let is_ours = unsafe { hook.is_some_and(|present| fn_addr_eq(present, ours as Hook)) };
        if self.before.is_none() && is_ours {
            // SAFETY: as above; what was there before us is there again.
            unsafe { hook = BEFORE.get() };
            INSTALLED.set(false);
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
