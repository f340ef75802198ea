//! Correlations that are stored for indexes, and told to the planner in place of what ANALYZE says.
//!
//! They are rows of `io_probe_corrections`, by names, so that REINDEX CONCURRENTLY changes nothing. A role
//! that may maintain a table writes those of its indexes, and the relation cache of all sessions is told.
//! Where the library is loaded, the planner's hook puts a function of ours in the place of `btcostestimate`,
//! for an index that has a stored correlation: it calls that, and then writes the correlation. No statistics
//! are touched, so what they allow and hide stays as it is.
//!
//! A session reads the rows of a table once for each entry of its relation cache, not for each plan, and
//! again after an ANALYZE if there are some: by a scan as the server makes of its catalogs. This plans
//! nothing, calls no function of a user, and waits for no lock. Where another session holds a strong lock on
//! what is read, that plan goes without.
//!
//! A correlation becomes stale when the table is rewritten (as by a restore), when it has a fifth more or
//! fewer rows, when ANALYZE finds another one by a tenth, or under another major version or `io_method`. Then
//! the planner's own counts again.

mod store;
mod stored;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ptr::fn_addr_eq;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::LocalKey;

use io_probe_core::run::memory;
use pgrx::{pg_guard, pg_sys};

pub(crate) use self::store::store;
pub(crate) use self::stored::{Stored, stored};
use crate::gucs;
use crate::pg::backend::OnDrop;
use crate::pg::compat::{self, CostEstimate};
use crate::pg::storage::relation::Held;

/// The correlations that are stored for a table's indexes, and count.
pub(crate) fn not_stale(table: pg_sys::Oid) -> Vec<Stored> {
    let stored = Held::take(table).and_then(|_held| stored(table)).unwrap_or_default();
    stored.into_iter().filter(|stored| stored.stale.is_none()).collect()
}

thread_local! {
    /// Tables whose corrections were read, and whether there were some, stale ones included.
    static READ: RefCell<HashMap<pg_sys::Oid, bool>> = RefCell::default();
    /// Their indexes: the table, and the correlation that counts, if one is stored.
    static INDEXES: RefCell<HashMap<pg_sys::Oid, (pg_sys::Oid, Option<f64>)>> = RefCell::default();
    /// Is there a table with some in READ?
    static HAS_STORED: Cell<bool> = const { Cell::new(false) };
    /// How often something was forgotten.
    static FORGOTTEN: Cell<u64> = const { Cell::new(0) };
    /// What the planner is told of some indexes, whatever is stored.
    static TOLD: RefCell<Option<(Vec<pg_sys::Oid>, f64)>> = const { RefCell::new(None) };
}

/// Some of the tables in [`READ`] that have nothing stored, each at the place that its oid gives. Almost all
/// plans look no further: hashing and thread-local storage would cost a short one 1 %.
static UNCORRECTED: [AtomicU32; 64] = [const { AtomicU32::new(0) }; 64];

/// The place of a table in [`UNCORRECTED`]. Tables that were made one after the other, whose oids have a
/// common step, get different ones.
fn place_of(table: pg_sys::Oid) -> &'static AtomicU32 {
    const GOLDEN_RATIO: u32 = 0x9E37_79B1; // of 2³²
    let spread = table.to_u32().wrapping_mul(GOLDEN_RATIO);
    &UNCORRECTED[(spread >> (u32::BITS - UNCORRECTED.len().ilog2())) as usize]
}

/// Is it known already that nothing is stored for a table's indexes?
pub(in crate::pg) fn is_uncorrected(table: pg_sys::Oid) -> bool {
    place_of(table).load(Ordering::Relaxed) == table.to_u32()
}

fn forget_uncorrected() {
    UNCORRECTED.iter().for_each(|place| place.store(0, Ordering::Relaxed));
}

/// Has what was read forgotten when it may have changed. To be called once, when the library is loaded.
pub(crate) fn watch() {
    // SAFETY: the functions are of this library, which is never unloaded.
    unsafe {
        pg_sys::CacheRegisterRelcacheCallback(Some(forget), pg_sys::Datum::null());
        let statistics = pg_sys::SysCacheIdentifier::STATRELATTINH;
        pg_sys::CacheRegisterSyscacheCallback(
            statistics as _,
            Some(forget_judgements),
            pg_sys::Datum::null(),
        );
    }
}

/// Called when an entry of the cache of statistics is thrown away: by what ANALYZE has found, what is stored
/// may be stale. Must not fail.
#[pg_guard]
unsafe extern "C-unwind" fn forget_judgements(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    FORGOTTEN.set(FORGOTTEN.get() + 1);
    // ANALYZE sends one for each column.
    if HAS_STORED.replace(false) {
        forget_in(&READ, |read| read.retain(|_, has_stored| !*has_stored));
        forget_in(&INDEXES, |indexes| indexes.retain(|_, (_, counting)| counting.is_none()));
    }
}

/// Does `work` with what is known. A process that exits from foreign code may have no thread-local storage
/// any more, and still end a transaction: then nothing is known.
fn forget_in<K, V, T>(
    known: &'static LocalKey<RefCell<HashMap<K, V>>>,
    work: impl FnOnce(&mut HashMap<K, V>) -> T,
) -> Option<T> {
    known.try_with(|known| work(&mut known.borrow_mut())).ok()
}

/// Called when an entry of the relation cache is thrown away; 0 stands for all. Must not fail.
#[pg_guard]
unsafe extern "C-unwind" fn forget(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    FORGOTTEN.set(FORGOTTEN.get() + 1);
    if stored::forget_place(relation) {
        forget_uncorrected();
        forget_in(&READ, std::mem::take);
        forget_in(&INDEXES, std::mem::take);
        return;
    }
    let of_index = forget_in(&INDEXES, |indexes| indexes.remove(&relation)).flatten();
    let table = of_index.map_or(relation, |(table, _)| table);
    place_of(table).store(0, Ordering::Relaxed);
    if forget_in(&READ, |read| read.remove(&table)).flatten() == Some(true) {
        forget_in(&INDEXES, |indexes| indexes.retain(|_, (of, _)| *of != table));
    }
}

/// Lets the planner take the correlations that are stored for these indexes of a table, and what it is told.
///
/// # Safety
/// `indexes` must be what the planner knows of the table's indexes.
pub(in crate::pg) unsafe fn apply(
    table: pg_sys::Oid,
    indexes: impl Iterator<Item = *mut pg_sys::IndexOptInfo> + Clone,
) {
    // SAFETY: the caller vouches for them.
    let oid = |index: *mut pg_sys::IndexOptInfo| unsafe { (*index).indexoid };
    // Catalogs have no corrections.
    let is_wanted = table.to_u32() >= pg_sys::FirstNormalObjectId && gucs::CORRECT_CORRELATION.get();
    let has_stored = is_wanted && has_stored(table, indexes.clone().map(oid));
    if !has_stored && TOLD.with_borrow(Option::is_none) {
        return;
    }
    for index in indexes {
        if correlation_of(oid(index)).is_some() {
            // SAFETY: as above.
            unsafe { wrap(index) };
        }
    }
}

/// More bytes than what is stored for a table's indexes takes.
const MEMORY_TO_READ: usize = 256 << 10;

/// Are correlations stored for a table's indexes, stale ones included? Reads them, unless that was done.
fn has_stored(table: pg_sys::Oid, indexes: impl Iterator<Item = pg_sys::Oid> + Clone) -> bool {
    if let Some(has_stored) = READ.with_borrow(|read| read.get(&table).copied()) {
        if !has_stored {
            place_of(table).store(table.to_u32(), Ordering::Relaxed);
        }
        return has_stored;
    }
    let before = FORGOTTEN.get();
    let found = memory::hold(MEMORY_TO_READ).ok().and_then(|_memory| stored(table));
    let is_known = found.is_some();
    let stored = found.unwrap_or_default();
    let has_stored = !stored.is_empty();
    // Also of indexes that this plan does not know: a later plan may know them without any notice to us.
    let counting = stored.iter().filter(|stored| stored.stale.is_none());
    let values = counting.map(|stored| (stored.index, (table, Some(stored.correlation))));
    INDEXES.with_borrow_mut(|known| {
        READ.with_borrow_mut(|read| {
            let most = indexes.clone().count() + stored.len();
            let has_room = known.try_reserve(most).and_then(|()| read.try_reserve(1)).is_ok();
            // Without memory all is forgotten. Maps that were allocated from the reserve must not stay there.
            if memory::check().is_err() || !has_room {
                forget_uncorrected();
                (*known, *read) = Default::default();
                return false;
            }
            known.extend(indexes.map(|index| (index, (table, None))));
            known.extend(values);
            // What has changed meanwhile is read again for the next plan.
            if is_known && FORGOTTEN.get() == before {
                HAS_STORED.set(HAS_STORED.get() | has_stored);
                read.insert(table, has_stored);
            }
            has_stored
        })
    })
}

/// Until the result is dropped, the planner takes this correlation for some indexes, whatever is stored. Only
/// for use while the planner sees another tablespace: otherwise its hook passes by most tables.
pub(in crate::pg) fn tell(indexes: Vec<pg_sys::Oid>, correlation: f64) -> OnDrop<impl FnMut()> {
    TOLD.set(Some((indexes, correlation)));
    OnDrop(|| TOLD.set(None))
}

/// The correlation that the planner is to take. Does not panic.
fn correlation_of(index: pg_sys::Oid) -> Option<f64> {
    let told = TOLD.with(|told| {
        let told = told.try_borrow().ok()?;
        let (_, correlation) = told.as_ref().filter(|(indexes, _)| indexes.contains(&index))?;
        Some(*correlation)
    });
    if told.is_some() || !gucs::CORRECT_CORRELATION.get() {
        return told;
    }
    INDEXES.with(|indexes| indexes.try_borrow().ok()?.get(&index)?.1)
}

unsafe extern "C-unwind" {
    /// `utils/index_selfuncs.h` of PostgreSQL, which pgrx leaves out. Called as it is: pgrx would copy an
    /// ERROR on its way, and where there is no memory for that, one ERROR would raise another.
    fn btcostestimate(
        root: *mut pg_sys::PlannerInfo,
        path: *mut pg_sys::IndexPath,
        loop_count: f64,
        startup_cost: *mut pg_sys::Cost,
        total_cost: *mut pg_sys::Cost,
        selectivity: *mut pg_sys::Selectivity,
        correlation: *mut f64,
        pages: *mut f64,
    );
}

/// Puts our function in the place of `btcostestimate`. An index that has another one stays as it is.
///
/// # Safety
/// `index` must be what the planner knows of it.
unsafe fn wrap(index: *mut pg_sys::IndexOptInfo) {
    // SAFETY: the caller vouches for it.
    unsafe {
        let estimate = compat::cost_estimate(index);
        if (*estimate).is_some_and(|present| fn_addr_eq(present, btcostestimate as CostEstimate)) {
            *estimate = Some(corrected_cost_estimate);
        }
    }
}

/// What the planner calls. An ERROR passes through it: there is nothing in it that would have to be dropped.
#[allow(clippy::too_many_arguments, reason = "they are the server's")]
unsafe extern "C-unwind" fn corrected_cost_estimate(
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::IndexPath,
    loop_count: f64,
    startup_cost: *mut pg_sys::Cost,
    total_cost: *mut pg_sys::Cost,
    selectivity: *mut pg_sys::Selectivity,
    correlation: *mut f64,
    pages: *mut f64,
) {
    // SAFETY: the planner hands us what it would hand to btcostestimate.
    unsafe {
        btcostestimate(root, path, loop_count, startup_cost, total_cost, selectivity, correlation, pages);
        if let Some(corrected) = correlation_of((*(*path).indexinfo).indexoid) {
            *correlation = corrected;
        }
    }
}
