//! What parallel workers count, in a segment of dynamic shared memory that they find by a setting.
//!
//! The server gives its parallel workers the leader's settings. So for the time of a query that is counted
//! the segment's number is the value of a setting, which no user can set.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, Ordering};

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::{pg_guard, pg_sys};

use super::counts::{COUNTERS, NodeCounts};
use crate::pg::backend::OnDrop;
use crate::pg::settings::set_for_subtransaction;

const NAME: &CStr = c"pg_io_probe.counted_in";

static SETTING: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);

thread_local! {
    /// Is it us who set it?
    static OURS: Cell<bool> = const { Cell::new(false) };
}

/// To be called once, when the library is loaded.
pub(crate) fn define_setting() {
    let flags = GucFlags::NO_SHOW_ALL | GucFlags::DISALLOW_IN_FILE;
    // SAFETY: the hook is a function of this library, which is never unloaded.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            NAME,
            c"Tells parallel workers where to put their counts for io_probe_explain.",
            c"io_probe_explain sets it while a query runs. Nobody else can set it.",
            &SETTING,
            GucContext::Suset,
            flags,
            Some(check_ours),
            None,
            None,
        );
    }
}

/// Takes a value of ours, and what a parallel worker gets from its leader.
#[pg_guard]
unsafe extern "C-unwind" fn check_ours(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the server hands us a place for a value, which is NULL or a C string.
    unsafe { OURS.get() || is_worker() || (*value).is_null() || **value == 0 }
}

/// Is this process a parallel worker?
pub(super) fn is_worker() -> bool {
    // SAFETY: a variable of this process.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 }
}

/// Is this a parallel worker of a query that is counted?
pub(super) fn counts_here() -> bool {
    is_worker() && SETTING.get().is_some_and(|value| !value.is_empty())
}

/// What the segment begins with; counts follow, those of each node of the plan.
#[repr(C)]
struct Head {
    magic: u64,
    /// Of which query: a function in it may have parallel workers of its own.
    query: u64,
    nodes: u64,
}

const MAGIC: u64 = u64::from_ne_bytes(*b"ioprobe1");

/// The segment, as it is mapped here.
pub(super) struct SharedCounts {
    segment: NonNull<pg_sys::dsm_segment>,
    nodes: usize,
}

impl SharedCounts {
    /// Makes a segment for a query with so many nodes, and lets workers find it until the end of the
    /// subtransaction. None if there is no room for one.
    pub(super) fn create(query: &CStr, nodes: usize) -> Option<Self> {
        let size = size_of::<Head>() + nodes * COUNTERS * size_of::<AtomicI64>();
        // SAFETY: the segment is as large as asked for. It belongs to the present resource owner, which lets
        // go of it after an ERROR. Zeros are counts.
        unsafe {
            let flags = pg_sys::DSM_CREATE_NULL_IF_MAXSEGMENTS as c_int;
            let segment = NonNull::new(pg_sys::dsm_create(size, flags))?;
            let start = pg_sys::dsm_segment_address(segment.as_ptr()).cast::<u8>();
            start.write_bytes(0, size);
            start.cast::<Head>().write(Head { magic: MAGIC, query: hash(query), nodes: nodes as u64 });
            announce(pg_sys::dsm_segment_handle(segment.as_ptr()));
            Some(Self { segment, nodes })
        }
    }

    /// The segment of the leader, if it counts this query.
    pub(super) fn of_leader(query: &CStr) -> Option<Self> {
        let handle: pg_sys::dsm_handle = SETTING.get()?.to_str().ok()?.parse().ok()?;
        // SAFETY: a segment of this number is there, or NULL is returned. It stays mapped until this process
        // ends. What it holds is believed only if it is what a leader of ours has written.
        unsafe {
            let segment = NonNull::new(pg_sys::dsm_attach(handle))?;
            let length = pg_sys::dsm_segment_map_length(segment.as_ptr());
            let head = pg_sys::dsm_segment_address(segment.as_ptr()).cast::<Head>();
            let is_ours =
                length >= size_of::<Head>() && (*head).magic == MAGIC && (*head).query == hash(query);
            let nodes = if is_ours { (*head).nodes as usize } else { 0 };
            let fits = length >= size_of::<Head>() + nodes * COUNTERS * size_of::<AtomicI64>();
            if nodes == 0 || !fits {
                pg_sys::dsm_detach(segment.as_ptr());
                return None;
            }
            pg_sys::dsm_pin_mapping(segment.as_ptr());
            Some(Self { segment, nodes })
        }
    }

    fn counts(&self, node: usize) -> &[AtomicI64] {
        if node >= self.nodes {
            return &[];
        }
        // SAFETY: mapped as long as this is there, and large enough; others change it by atomic operations.
        unsafe {
            let start = pg_sys::dsm_segment_address(self.segment.as_ptr()).cast::<u8>();
            let counts = start.add(size_of::<Head>()).cast::<AtomicI64>();
            std::slice::from_raw_parts(counts.add(node * COUNTERS), COUNTERS)
        }
    }

    /// Adds what a worker's node did.
    pub(super) fn add(&self, node: usize, counts: &NodeCounts) {
        for (sum, more) in self.counts(node).iter().zip(counts.all()) {
            sum.fetch_add(*more, Ordering::Relaxed);
        }
    }

    /// What the workers that have ended counted of a node.
    pub(super) fn of(&self, node: usize) -> NodeCounts {
        let mut all = [0; COUNTERS];
        for (sum, count) in all.iter_mut().zip(self.counts(node)) {
            *sum = count.load(Ordering::Relaxed);
        }
        NodeCounts::of(all)
    }

    /// Lets go of the segment.
    pub(super) fn detach(self) {
        // SAFETY: attached here, and not detached by a resource owner: no ERROR came in between.
        unsafe { pg_sys::dsm_detach(self.segment.as_ptr()) };
    }
}

fn hash(query: &CStr) -> u64 {
    let mut hasher = DefaultHasher::new();
    query.hash(&mut hasher);
    hasher.finish()
}

/// Lets parallel workers know the segment until the end of the subtransaction.
fn announce(handle: pg_sys::dsm_handle) {
    let value = CString::new(handle.to_string()).unwrap_or_default();
    OURS.set(true);
    let _ours = OnDrop(|| OURS.set(false));
    set_for_subtransaction(NAME, &value);
}
