//! Finds the nodes of a plan, and has each call our function.

use std::collections::{BTreeSet, HashSet};
use std::ffi::c_void;
use std::ptr;

use io_probe_advise::plan;
use pgrx::pg_guard;
use pgrx::pg_sys::{self, NodeTag};

use super::hooks::counted_bitmap;
use super::{CountedNode, Counting, Gather, HashJoin, OUTSIDE};
use crate::pg::backend::executor::bitmaps;
use crate::pg::backend::executor::counts::NodeCounts;
use crate::pg::compat;

/// A walk over the nodes of a plan.
struct Walk<'a> {
    counting: &'a mut Counting,
    /// A subplan may be used in several places.
    seen: HashSet<*mut pg_sys::PlanState>,
    /// The number of the node above, and the node.
    above: usize,
    above_node: *mut pg_sys::PlanState,
}

#[pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
    // SAFETY: called for the nodes of a plan, with the context of our walk.
    unsafe {
        let walk = &mut *context.cast::<Walk<'_>>();
        if node.is_null() || !walk.seen.insert(node) {
            return false;
        }
        let (above, above_node) = (walk.above, walk.above_node);
        // Not an InitPlan or a CTE that is printed there, which others call.
        let is_input =
            above_node.as_ref().is_some_and(|above| above.lefttree == node || above.righttree == node);
        walk.above = walk.counting.take_over(node, above, is_input);
        walk.above_node = node;
        compat::walk_below(node, visit, context);
        (walk.above, walk.above_node) = (above, above_node);
        false
    }
}

/// Adds the number of a node and of those below it to a list.
#[pg_guard]
unsafe extern "C-unwind" fn list(node: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
    // SAFETY: called for the nodes of a plan, with such a list.
    unsafe {
        if !node.is_null() {
            (*context.cast::<BTreeSet<usize>>()).extend(number_of(node));
            compat::walk_below(node, list, context);
        }
        false
    }
}

/// The number of a node in its plan; None for one that no plan of the server's has.
unsafe fn number_of(node: *mut pg_sys::PlanState) -> Option<usize> {
    // SAFETY: the caller vouches for the node.
    let number = usize::try_from(unsafe { (*(*node).plan).plan_node_id }).ok();
    number.filter(|number| *number < plan::MOST_NODES)
}

impl Counting {
    /// Has the nodes of a query that has started call our functions.
    ///
    /// # Safety
    /// It must have.
    pub(super) unsafe fn take_over_all(&mut self, query: *mut pg_sys::QueryDesc) {
        let mut walk =
            Walk { counting: self, seen: HashSet::new(), above: OUTSIDE, above_node: ptr::null_mut() };
        // SAFETY: the caller vouches for the query.
        unsafe { visit((*query).planstate, (&raw mut walk).cast()) };
        // SAFETY: as above. EXPLAIN does not show a Gather that was added for tests.
        if unsafe { is_invisible((*query).planstate) } {
            self.order.remove(0);
        }
    }

    /// Has a node call our function. Returns its number, and that of the node above if it is none of ours:
    /// extensions make nodes that have no number of their own, or belong to another query.
    unsafe fn take_over(&mut self, node: *mut pg_sys::PlanState, above: usize, is_input: bool) -> usize {
        // SAFETY: the caller vouches for the node, whose tag says what it is.
        unsafe {
            let number = number_of(node).filter(|number| {
                let is_taken = self.nodes.get(*number).is_some_and(|node| node.own_function.is_some());
                (*node).state == self.estate && (*node).ExecProcNodeReal.is_some() && !is_taken
            });
            let Some(number) = number else {
                self.order.push(OUTSIDE);
                return above;
            };
            if self.nodes.len() <= number {
                self.nodes.resize_with(number + 1, || CountedNode::NONE);
            }
            self.order.push(number);
            let own_function = self.make_ours(node);
            let reads_ahead = matches!(
                (*node).type_,
                NodeTag::T_SeqScanState | NodeTag::T_BitmapHeapScanState | NodeTag::T_SampleScanState
            );
            let hashes = matches!((*node).type_, NodeTag::T_HashState | NodeTag::T_HashJoinState);
            let is_of_hash = is_input && self.nodes.get(above).is_some_and(|above| above.hashes);
            let gives_to = if is_of_hash { above } else { OUTSIDE };
            self.nodes[number] =
                CountedNode { own_function, reads_ahead, gives_to, hashes, ..CountedNode::NONE };
            self.take_note(node, number, above);
            number
        }
    }

    /// Takes note of nodes that need more than that.
    unsafe fn take_note(&mut self, node: *mut pg_sys::PlanState, number: usize, parent: usize) {
        // SAFETY: as in `take_over`.
        unsafe {
            match (*node).type_ {
                NodeTag::T_BitmapIndexScanState => {
                    self.bitmaps.extend(bitmaps::watch(node.cast(), number, counted_bitmap));
                }
                NodeTag::T_GatherState | NodeTag::T_GatherMergeState => {
                    let mut below = BTreeSet::new();
                    compat::walk_below(node, list, (&raw mut below).cast());
                    let below = below.into_iter().collect();
                    self.gathers.push(Gather { state: node, number, below, settled: NodeCounts::default() });
                }
                NodeTag::T_HashJoinState if (*(*node).plan).parallel_aware => {
                    self.hash_joins.push(HashJoin { state: node, number, parent });
                }
                _ => {}
            }
        }
    }
}

/// Was this node added to the top of a plan for tests, and is not shown?
unsafe fn is_invisible(node: *mut pg_sys::PlanState) -> bool {
    // SAFETY: the caller vouches for the node; the plan of such a state is a Gather.
    unsafe { (*node).type_ == NodeTag::T_GatherState && (*(*node).plan.cast::<pg_sys::Gather>()).invisible }
}
