//! Correlations that are kept of indexes, and told to the planner in place of what ANALYZE says.
//!
//! They are rows of `io_probe_corrections`, by names: REINDEX CONCURRENTLY changes oids, and a restore makes
//! indexes after it has filled tables. Whoever may maintain a table writes those of its indexes, and the
//! relation cache of all sessions is told. Where the library is loaded, the planner's hook puts a function of
//! ours in the place of `btcostestimate`, for an index of which a correlation is kept: it calls that, and then
//! writes the correlation. No statistics are touched, so what they allow and hide stays as it is.
//!
//! A session reads the rows of a table once for each entry of its relation cache, not for each plan: by a
//! scan as the server makes of its catalogs, which plans nothing, calls no function of a user, and waits for
//! nobody. Where somebody has locked the rows, there are none for that plan.
//!
//! A correlation is stale, and the planner's own counts again, when the table was rewritten, when it has a
//! fifth more or fewer rows, or when ANALYZE has found a correlation that is off by a tenth.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::ptr::fn_addr_eq;

use pgrx::datum::DatumWithOid;
use pgrx::{pg_guard, pg_sys};

use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::encoding::{Text, text};
use crate::pg::backend::lock::check_may_write;
use crate::pg::backend::server::{own, pairs};
use crate::pg::catalog::names;
use crate::pg::compat::{self, CostEstimate};
use crate::pg::storage::relation::{Held, Relation};

/// A correlation that is kept of an index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) index: pg_sys::Oid,
    pub(crate) correlation: f64,
    /// Why it does not count any more, if so.
    pub(crate) stale: Option<&'static str>,
}

/// What a correlation was measured of. Where it has changed, so may the correlation have.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MeasuredOf {
    /// What ANALYZE said; 0 if nothing, as the planner takes it.
    analyzed: f32,
    file: pg_sys::Oid,
    rows: f32,
}

impl MeasuredOf {
    /// Of an index as it is now; None if it or its table is gone. A lock on the table must be held.
    fn now(table: pg_sys::Oid, index: pg_sys::Oid) -> Option<Self> {
        // SAFETY: both are closed again, or an ERROR closes them. The first key of an index is a column of its
        // table, or 0 for an expression, of which the index itself has the statistics.
        unsafe {
            let relation = pg_sys::RelationIdGetRelation(table);
            if relation.is_null() {
                return None;
            }
            let (file, rows) = (compat::file_id(relation).number, (*(*relation).rd_rel).reltuples);
            pg_sys::RelationClose(relation);
            let relation = pg_sys::RelationIdGetRelation(index);
            if relation.is_null() {
                return None;
            }
            let column = (*(*relation).rd_index).indkey.values.as_slice(1)[0];
            pg_sys::RelationClose(relation);
            let analyzed = if column == 0 { analyzed(index, 1) } else { analyzed(table, column) };
            Some(Self { analyzed: analyzed.unwrap_or(0.0), file, rows })
        }
    }

    /// Why what was measured of this does not hold of `now`.
    fn stale(&self, now: &Self) -> Option<&'static str> {
        const MOST_ROWS: f32 = 0.2;
        const MOST_OFF: f32 = 0.1;
        if self.file != now.file {
            Some("the table was rewritten since")
        } else if (now.rows - self.rows).abs() > MOST_ROWS * self.rows.max(1.0) {
            Some("the table has a fifth more or fewer rows since")
        } else if (now.analyzed - self.analyzed).abs() > MOST_OFF {
            Some("ANALYZE has found another correlation since")
        } else {
            None
        }
    }
}

/// The correlation that ANALYZE has found of a column.
///
/// # Safety
/// To be called in a transaction.
unsafe fn analyzed(relation: pg_sys::Oid, column: i16) -> Option<f32> {
    // SAFETY: a lookup in a cache, which gives NULL for what is not there; the tuple is released, and a slot
    // that was filled holds so many numbers until it is freed.
    unsafe {
        let tuple = pg_sys::SearchSysCache3(
            pg_sys::SysCacheIdentifier::STATRELATTINH as i32,
            pg_sys::Datum::from(relation),
            pg_sys::Datum::from(column),
            pg_sys::Datum::from(false),
        );
        if tuple.is_null() {
            return None;
        }
        let mut slot = pg_sys::AttStatsSlot::default();
        let is_there = pg_sys::get_attstatsslot(
            &mut slot,
            tuple,
            pg_sys::STATISTIC_KIND_CORRELATION as i32,
            pg_sys::InvalidOid,
            pg_sys::ATTSTATSSLOT_NUMBERS as i32,
        );
        let found = (is_there && slot.nnumbers > 0).then(|| *slot.numbers);
        if is_there {
            pg_sys::free_attstatsslot(&mut slot);
        }
        pg_sys::ReleaseSysCache(tuple);
        found
    }
}

/// The table of the extension that they are kept in.
const CORRECTIONS: &CStr = c"io_probe_corrections";

/// The types of its columns, as far as they are read: schema, table, index, correlation, and what it was
/// measured of.
const COLUMNS: [pg_sys::Oid; 7] = [
    pg_sys::NAMEOID,
    pg_sys::NAMEOID,
    pg_sys::NAMEOID,
    pg_sys::FLOAT8OID,
    pg_sys::FLOAT4OID,
    pg_sys::OIDOID,
    pg_sys::FLOAT4OID,
];

/// The table, found without a query; None where the extension is not created, or its version has none such.
///
/// # Safety
/// To be called in a transaction.
unsafe fn find() -> Option<pg_sys::Oid> {
    // SAFETY: a scan of a catalog by its index on names, ended and closed; what it finds is such a tuple. Other
    // lookups give 0 for what is not there.
    unsafe {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let catalog = pg_sys::table_open(pg_sys::ExtensionRelationId, lock);
        let mut name = c"pg_io_probe".to_owned().into_bytes_with_nul();
        name.resize(pg_sys::NAMEDATALEN as usize, 0);
        let mut key = equals(pg_sys::Anum_pg_extension_extname, name.as_ptr().cast());
        let scan = pg_sys::systable_beginscan(
            catalog,
            pg_sys::Oid::from(pg_sys::ExtensionNameIndexId),
            true,
            std::ptr::null_mut(),
            1,
            &mut key,
        );
        let tuple = pg_sys::systable_getnext(scan);
        let extension = (!tuple.is_null()).then(|| {
            let row = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_extension>();
            ((*row).oid, (*row).extnamespace)
        });
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, lock);
        let (extension, schema) = extension?;
        let table = pg_sys::get_relname_relid(CORRECTIONS.as_ptr(), schema);
        // Whoever may create in that schema can take a name that an older version leaves free.
        let is_own = table != pg_sys::InvalidOid
            && pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, table) == extension;
        is_own.then_some(table)
    }
}

/// A key of a scan: this column of type name has this value, of 64 bytes.
unsafe fn equals(column: u32, name: *const pg_sys::NameData) -> pg_sys::ScanKeyData {
    let mut key = pg_sys::ScanKeyData::default();
    // SAFETY: the key is ours, the function one that compares names.
    unsafe {
        pg_sys::ScanKeyInit(
            &mut key,
            column as i16,
            pg_sys::BTEqualStrategyNumber as u16,
            pg_sys::Oid::from(pg_sys::F_NAMEEQ),
            pg_sys::Datum::from(name),
        );
    }
    key
}

/// What is kept of a table's indexes. None where somebody has locked the rows. A lock on the table must be
/// held.
pub(crate) fn kept(table: pg_sys::Oid) -> Option<Vec<Kept>> {
    // SAFETY: in a transaction, as all who plan or call are.
    let Some(corrections) = PLACE.get().or_else(|| unsafe { find() }) else { return Some(Vec::new()) };
    PLACE.set(Some(corrections));
    // SAFETY: the lock is given up after the table is closed. A tuple that the scan gives has the columns that
    // were looked at; an ERROR ends scan and lock.
    unsafe {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        if !pg_sys::ConditionalLockRelationOid(corrections, lock) {
            return None;
        }
        let relation = pg_sys::try_relation_open(corrections, pg_sys::NoLock as pg_sys::LOCKMODE);
        let found = if relation.is_null() { Vec::new() } else { of_table(relation, table) };
        if !relation.is_null() {
            pg_sys::relation_close(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
        }
        pg_sys::UnlockRelationOid(corrections, lock);
        Some(found)
    }
}

/// What is kept of a table's indexes and the planner takes in this session.
pub(crate) fn in_force(table: pg_sys::Oid) -> Vec<Kept> {
    let held = Held::take(table).filter(|_| gucs::correct_correlation());
    let kept = held.and_then(|_held| kept(table)).unwrap_or_default();
    kept.into_iter().filter(|kept| kept.stale.is_none()).collect()
}

/// # Safety
/// `corrections` must be open and locked.
unsafe fn of_table(corrections: pg_sys::Relation, table: pg_sys::Oid) -> Vec<Kept> {
    // SAFETY: the caller vouches for the relation. Its columns are looked at before any is read; names are 64
    // bytes and live as long as the scan, or the memory context.
    unsafe {
        let descriptor = (*corrections).rd_att;
        let count = (*descriptor).natts as usize;
        let is_as_known = |(column, wanted)| pg_sys::get_atttype((*corrections).rd_id, column) == wanted;
        let has_columns = (*(*corrections).rd_rel).relkind as u8 == pg_sys::RELKIND_RELATION
            && (1..).zip(COLUMNS).all(is_as_known);
        let schema = pg_sys::get_rel_namespace(table);
        let schema_name = name_of(pg_sys::get_namespace_name(schema));
        let table_name = name_of(pg_sys::get_rel_name(table));
        let Some((schema_name, table_name)) = schema_name.zip(table_name).filter(|_| has_columns) else {
            return Vec::new();
        };
        pg_sys::list_free(pg_sys::RelationGetIndexList(corrections));
        let mut keys = [equals(1, &schema_name), equals(2, &table_name)];
        let scan = pg_sys::systable_beginscan(
            corrections,
            (*corrections).rd_pkindex,
            (*corrections).rd_pkindex != pg_sys::InvalidOid,
            std::ptr::null_mut(),
            keys.len() as i32,
            keys.as_mut_ptr(),
        );
        let mut found = Vec::new();
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let (mut values, mut nulls) = (vec![pg_sys::Datum::null(); count], vec![true; count]);
            pg_sys::heap_deform_tuple(tuple, descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            if nulls[..COLUMNS.len()].contains(&true) {
                continue;
            }
            let name = values[2].cast_mut_ptr::<pg_sys::NameData>();
            let index = pg_sys::get_relname_relid((*name).data.as_ptr(), schema);
            let correlation = f64::from_bits(values[3].value() as u64);
            let real = |at: usize| f32::from_bits(values[at].value() as u32);
            let of = MeasuredOf {
                analyzed: real(4),
                file: pg_sys::Oid::from(values[5].value() as u32),
                rows: real(6),
            };
            // Another relation may have the name meanwhile.
            let is_its = index != pg_sys::InvalidOid && pg_sys::IndexGetRelation(index, true) == table;
            if is_its
                && (0.0..=1.0).contains(&correlation)
                && let Some(now) = MeasuredOf::now(table, index)
            {
                found.push(Kept { index, correlation, stale: of.stale(&now) });
            }
        }
        pg_sys::systable_endscan(scan);
        found
    }
}

/// A copy of a name; None for NULL.
///
/// # Safety
/// `name` must be NULL or a C string of less than 64 bytes.
unsafe fn name_of(name: *mut std::ffi::c_char) -> Option<pg_sys::NameData> {
    if name.is_null() {
        return None;
    }
    let mut copy = pg_sys::NameData { data: [0; pg_sys::NAMEDATALEN as usize] };
    // SAFETY: the caller vouches for it.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    copy.data.iter_mut().zip(bytes).for_each(|(copy, byte)| *copy = *byte as std::ffi::c_char);
    Some(copy)
}

/// Keeps this correlation of a btree index, or forgets the one that is kept.
pub(crate) fn keep(index: pg_sys::Oid, correlation: Option<f64>) -> Result<()> {
    check_may_write("io_probe_correct", "Call it on the primary: a standby has what is kept there.")?;
    // Nobody without the right waits for a lock; and once more when nothing changes any more.
    check_may_maintain(table_of(index)?)?;
    let relation = Relation::open(index)?;
    let table = table_of(index)?;
    check_may_maintain(table)?;
    if !relation.is_btree() {
        return Err(not_a_btree(&relation.name()));
    }
    if relation.is_temporary() {
        return Err(Error::unsupported(format!("\"{}\" is an index of a temporary table", relation.name())));
    }
    let Some(of) = MeasuredOf::now(table, index) else {
        return Err(Error::undefined_relation("the table is gone"));
    };
    let query = format!(
        "SELECT c.oid, pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_namespace AS n, {} \
         AND n.oid OPERATOR(pg_catalog.=) c.relnamespace AND c.relname OPERATOR(pg_catalog.=) 'io_probe_corrections'",
        own("pg_class", "c")
    );
    let Some((corrections, schema)) = pairs::<pg_sys::Oid>(&query).into_iter().next() else {
        return Err(Error::unmet("the extension has no table of corrections")
            .hint("Run ALTER EXTENSION pg_io_probe UPDATE."));
    };
    // SAFETY: catalog lookups; an index that is open has a name, its table one, and both a schema.
    let names = unsafe {
        let schema = pg_sys::get_rel_namespace(index);
        [pg_sys::get_namespace_name(schema), pg_sys::get_rel_name(table), pg_sys::get_rel_name(index)]
            .map(|name| if name.is_null() { String::new() } else { text(name) })
    };
    let written = Relation::open_to_write(corrections)?;
    let names = names.map(|name| DatumWithOid::from(Text(name)));
    let statement = match correlation {
        None => format!(
            "DELETE FROM {schema}.io_probe_corrections WHERE schemaname = $1::name AND tablename = $2::name \
             AND indexname = $3::name"
        ),
        Some(_) => format!(
            "INSERT INTO {schema}.io_probe_corrections AS c (schemaname, tablename, indexname, correlation, analyzed, \
                 relfilenode, reltuples, set_at) VALUES ($1::name, $2::name, $3::name, $4, $5, $6, $7, now()) \
             ON CONFLICT (schemaname, tablename, indexname) DO UPDATE SET (correlation, analyzed, relfilenode, reltuples, set_at) \
                 = ROW (excluded.correlation, excluded.analyzed, excluded.relfilenode, excluded.reltuples, excluded.set_at)"
        ),
    };
    let figures = correlation.map(|correlation| {
        [
            DatumWithOid::from(correlation),
            DatumWithOid::from(of.analyzed),
            DatumWithOid::from(of.file),
            DatumWithOid::from(of.rows),
        ]
    });
    let arguments: Vec<_> = names.into_iter().chain(figures.into_iter().flatten()).collect();
    written.as_owner(|| names::run_own(&statement, &arguments, |_| ()));
    // SAFETY: the table is locked; the message goes out when the transaction commits.
    unsafe { pg_sys::CacheInvalidateRelcacheByRelid(table) };
    Ok(())
}

/// The table of an index.
fn table_of(index: pg_sys::Oid) -> Result<pg_sys::Oid> {
    // SAFETY: lookups in catalogs, which give 0 for what is not there.
    unsafe {
        let is_index = pg_sys::get_rel_relkind(index) as u8 == pg_sys::RELKIND_INDEX;
        let table = if is_index { pg_sys::IndexGetRelation(index, true) } else { pg_sys::InvalidOid };
        if table != pg_sys::InvalidOid {
            return Ok(table);
        }
        let name = pg_sys::get_rel_name(index);
        Err(not_a_btree(&if name.is_null() { index.to_u32().to_string() } else { text(name) }))
    }
}

fn not_a_btree(name: &str) -> Error {
    Error::wrong_kind(format!("\"{name}\" is not a btree index"))
        .hint("io_probe_correlation lists the indexes of a table.")
}

fn check_may_maintain(table: pg_sys::Oid) -> Result<()> {
    if compat::may_maintain(table) {
        return Ok(());
    }
    // SAFETY: a lookup in a catalog, which gives NULL for what is not there.
    let name = unsafe {
        let name = pg_sys::get_rel_name(table);
        if name.is_null() { String::new() } else { text(name) }
    };
    let needed = if compat::HAS_MAINTAIN { "MAINTAIN on the table" } else { "the table's ownership" };
    Err(Error::denied(format!("permission denied for table {name}"))
        .detail(format!("io_probe_correct needs {needed}.")))
}

thread_local! {
    /// The table of corrections, once found.
    static PLACE: Cell<Option<pg_sys::Oid>> = const { Cell::new(None) };
    /// Tables whose corrections were read.
    static READ: RefCell<HashSet<pg_sys::Oid>> = RefCell::default();
    /// Their indexes: the table, and the correlation that counts, if one is kept.
    static INDEXES: RefCell<HashMap<pg_sys::Oid, (pg_sys::Oid, Option<f64>)>> = RefCell::default();
    /// How often something was forgotten.
    static FORGOTTEN: Cell<u64> = const { Cell::new(0) };
    /// What the planner is told of some indexes, whatever is kept.
    static TOLD: RefCell<Option<(Vec<pg_sys::Oid>, f64)>> = const { RefCell::new(None) };
}

/// Has what is kept forgotten when it may have changed. To be called once, when the library is loaded.
pub(crate) fn watch() {
    // SAFETY: the function is one of this library, which is never unloaded.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(forget), pg_sys::Datum::null()) };
}

/// Called when an entry of the relation cache is thrown away; 0 stands for all. Must not fail.
#[pg_guard]
unsafe extern "C-unwind" fn forget(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    FORGOTTEN.set(FORGOTTEN.get() + 1);
    if relation == pg_sys::InvalidOid || PLACE.get() == Some(relation) {
        PLACE.set(None);
        READ.take();
        INDEXES.take();
        return;
    }
    // What is there of its indexes is written over before it is looked at.
    let table =
        INDEXES.with_borrow_mut(|indexes| indexes.remove(&relation)).map_or(relation, |(table, _)| table);
    READ.with_borrow_mut(|read| read.remove(&table));
}

/// Lets the planner take the correlations that are kept of these indexes of a table.
///
/// # Safety
/// They must be what the planner knows of them.
pub(in crate::pg) unsafe fn apply(table: pg_sys::Oid, indexes: &[*mut pg_sys::IndexOptInfo]) {
    // Catalogs have none.
    if table.to_u32() >= pg_sys::FirstNormalObjectId && gucs::correct_correlation() {
        // SAFETY: the caller vouches for them.
        read(table, indexes.iter().map(|index| unsafe { (**index).indexoid }));
    }
    for index in indexes {
        // SAFETY: as above.
        unsafe {
            if correlation_of((**index).indexoid).is_some() {
                wrap(*index);
            }
        }
    }
}

/// Reads what is kept of these indexes of a table, unless that was done.
fn read(table: pg_sys::Oid, indexes: impl Iterator<Item = pg_sys::Oid>) {
    if !READ.with_borrow(|read| read.contains(&table)) {
        let before = FORGOTTEN.get();
        let Some(kept) = kept(table) else { return };
        let value = |index| {
            let counts = |kept: &&Kept| kept.index == index && kept.stale.is_none();
            (index, (table, kept.iter().find(counts).map(|kept| kept.correlation)))
        };
        INDEXES.with_borrow_mut(|known| known.extend(indexes.map(value)));
        // What has changed meanwhile is read again for the next plan.
        if FORGOTTEN.get() == before {
            READ.with_borrow_mut(|read| read.insert(table));
        }
    }
}

/// Until this is dropped, the planner is told that some indexes have this correlation, whatever is kept.
pub(in crate::pg) struct Telling(());

impl Telling {
    pub(in crate::pg) fn begin(indexes: Vec<pg_sys::Oid>, correlation: f64) -> Self {
        TOLD.set(Some((indexes, correlation)));
        Self(())
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        TOLD.set(None);
    }
}

unsafe extern "C-unwind" {
    /// `utils/index_selfuncs.h` of PostgreSQL, which pgrx leaves out.
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

/// Puts ours in the place of `btcostestimate`. An index that has another one stays as it is.
///
/// # Safety
/// `index` must be what the planner knows of it.
unsafe fn wrap(index: *mut pg_sys::IndexOptInfo) {
    // SAFETY: the caller vouches for it.
    unsafe {
        if compat::cost_estimate(index)
            .is_some_and(|present| fn_addr_eq(present, btcostestimate as CostEstimate))
        {
            compat::set_cost_estimate(index, corrected_cost_estimate);
        }
    }
}

/// The correlation that the planner is to take.
fn correlation_of(index: pg_sys::Oid) -> Option<f64> {
    let told = TOLD.with_borrow(|told| {
        let told = told.as_ref().filter(|(indexes, _)| indexes.contains(&index));
        told.map(|(_, correlation)| *correlation)
    });
    let kept =
        || INDEXES.with_borrow(|indexes| indexes.get(&index).and_then(|(_, correlation)| *correlation));
    told.or_else(|| if gucs::correct_correlation() { kept() } else { None })
}

#[pg_guard]
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
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            btcostestimate(root, path, loop_count, startup_cost, total_cost, selectivity, correlation, pages);
        });
        if let Some(corrected) = correlation_of((*(*path).indexinfo).indexoid) {
            *correlation = corrected;
        }
    }
}
