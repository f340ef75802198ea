//! Index scans for a bitmap: the executor calls them past the function that each other node is called by.
//!
//! What they call is the access method's `amgetbitmap`. So the open index gets a copy of its method's
//! routine, in which that function is ours. Whoever else scans that index meanwhile comes through it, too. A
//! copy that an ERROR leaves behind does no harm: it does what the method's own does.

use std::cell::RefCell;

use pgrx::{pg_guard, pg_sys};

/// A copy of an access method's routine; never freed, since an open index may point to it.
#[repr(C)]
struct OurRoutine {
    routine: pg_sys::IndexAmRoutine,
    /// The method's own function.
    get_bitmap: pg_sys::amgetbitmap_function,
}

thread_local! {
    /// One of each method that was met.
    static ROUTINES: RefCell<Vec<&'static OurRoutine>> = const { RefCell::new(Vec::new()) };
}

type Routine = *const pg_sys::IndexAmRoutine;

/// A bitmap index scan of a plan.
pub(super) struct BitmapScan {
    pub(super) scan: pg_sys::IndexScanDesc,
    pub(super) node: usize,
    /// Its index, and the routine that this had; None if another one has changed it before.
    changed: Option<(pg_sys::Relation, Routine)>,
}

/// Calls `ours` in place of the method's function when this node scans its index. None if it will not.
///
/// # Safety
/// `node` must be a bitmap index scan that has started.
pub(super) unsafe fn watch(
    node: *mut pg_sys::BitmapIndexScanState,
    number: usize,
    ours: unsafe extern "C-unwind" fn(pg_sys::IndexScanDesc, *mut pg_sys::TIDBitmap) -> i64,
) -> Option<BitmapScan> {
    // SAFETY: the caller vouches for the node; its index is open, and has a routine.
    unsafe {
        let scan = (*node).biss_ScanDesc;
        let index = scan.as_ref()?.indexRelation;
        let before: Routine = (*index).rd_indam;
        let changed = if is_ours(before) {
            None
        } else {
            (*index).rd_indam = copy_of(before, ours).cast_mut().cast();
            Some((index, before))
        };
        Some(BitmapScan { scan, node: number, changed })
    }
}

impl BitmapScan {
    /// Gives the index its own routine back.
    ///
    /// # Safety
    /// The query must not have ended.
    pub(super) unsafe fn put_back(&mut self) {
        let Some((index, before)) = self.changed.take() else { return };
        // SAFETY: the caller vouches for the query, which has the index open. A routine that was read anew is
        // left alone.
        unsafe {
            if is_ours((*index).rd_indam) {
                (*index).rd_indam = before.cast_mut();
            }
        }
    }
}

fn is_ours(routine: Routine) -> bool {
    ROUTINES.with_borrow(|all| all.iter().any(|ours| std::ptr::eq(&ours.routine, routine)))
}

fn address(function: pg_sys::amgetbitmap_function) -> Option<usize> {
    function.map(|function| function as usize)
}

/// # Safety
/// `routine` must be that of an access method.
unsafe fn copy_of(
    routine: Routine,
    ours: unsafe extern "C-unwind" fn(pg_sys::IndexScanDesc, *mut pg_sys::TIDBitmap) -> i64,
) -> Routine {
    // SAFETY: the caller vouches for it.
    let routine = unsafe { *routine };
    let get_bitmap = routine.amgetbitmap;
    ROUTINES.with_borrow_mut(|all| {
        let known = all.iter().copied().find(|known| {
            address(known.get_bitmap) == address(get_bitmap) && is_same_method(&known.routine, &routine)
        });
        let known = known.unwrap_or_else(|| {
            let routine = pg_sys::IndexAmRoutine { amgetbitmap: Some(ours), ..routine };
            let new: &'static OurRoutine = Box::leak(Box::new(OurRoutine { routine, get_bitmap }));
            all.push(new);
            new
        });
        std::ptr::from_ref(known).cast()
    })
}

/// The method's own function, for a scan that has called ours.
///
/// # Safety
/// `scan` must be what our function was called with.
pub(super) unsafe fn own_function(
    scan: pg_sys::IndexScanDesc,
) -> unsafe extern "C-unwind" fn(pg_sys::IndexScanDesc, *mut pg_sys::TIDBitmap) -> i64 {
    // SAFETY: an index on which ours was called has a routine, of ours unless another library has copied it.
    unsafe {
        let routine: Routine = (*(*scan).indexRelation).rd_indam;
        let own = is_ours(routine).then(|| (*routine.cast::<OurRoutine>()).get_bitmap).flatten();
        own.unwrap_or_else(|| own_of_copy(&*routine))
    }
}

/// The function of the method that this is a copy of.
#[pg_guard]
extern "C-unwind" fn own_of_copy(
    copy: &pg_sys::IndexAmRoutine,
) -> unsafe extern "C-unwind" fn(pg_sys::IndexScanDesc, *mut pg_sys::TIDBitmap) -> i64 {
    let own = ROUTINES.with_borrow(|all| {
        all.iter().find(|ours| is_same_method(&ours.routine, copy)).and_then(|ours| ours.get_bitmap)
    });
    own.unwrap_or_else(|| pgrx::error!("could not find the plan node that scans an index"))
}

/// Have both the functions of one method, but for the one that is ours?
fn is_same_method(one: &pg_sys::IndexAmRoutine, other: &pg_sys::IndexAmRoutine) -> bool {
    addresses(one) == addresses(other)
}

/// Those of a method's functions, without the one that may be ours.
fn addresses(of: &pg_sys::IndexAmRoutine) -> [Option<usize>; 7] {
    [
        of.ambeginscan.map(|f| f as usize),
        of.amrescan.map(|f| f as usize),
        of.amendscan.map(|f| f as usize),
        of.amgettuple.map(|f| f as usize),
        of.aminsert.map(|f| f as usize),
        of.ambuild.map(|f| f as usize),
        of.amcostestimate.map(|f| f as usize),
    ]
}
