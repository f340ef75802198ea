//! Reading what is stored for a table's indexes, as the server reads its catalogs: planning may go on.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::backend::server;
use crate::pg::catalog::statistics;
use crate::pg::compat;
use crate::pg::storage::relation::Held;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored {
    pub(crate) index: pg_sys::Oid,
    pub(crate) correlation: f64,
    /// Why it does not count any more, if so.
    pub(crate) stale: Option<&'static str>,
}

/// What a correlation was measured of. Where it has changed, so may the correlation have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MeasuredOf {
    /// What ANALYZE said; 0 if nothing, as the planner takes it.
    pub(super) analyzed: f32,
    pub(super) file: pg_sys::Oid,
    pub(super) rows: f32,
    /// The server's major version.
    pub(super) version: i32,
    /// The server's `io_method`; empty before 18.
    pub(super) io_method: String,
}

impl MeasuredOf {
    /// Reads it for an index as it is now; None if it or its table is gone. Locks on both must be held.
    pub(super) fn now(table: pg_sys::Oid, index: pg_sys::Oid) -> Option<Self> {
        // SAFETY: the caller holds locks on both. The first key of an index is a column of its table, or 0
        // for an expression, of which the index itself has the statistics.
        unsafe {
            let of_table =
                |open: pg_sys::Relation| (compat::file_id(open).number, (*(*open).rd_rel).reltuples);
            let (file, rows) = opened(table, of_table)?;
            let column = opened(index, |open| (*(*open).rd_index).indkey.values.as_slice(1)[0])?;
            let (of, column) = if column == 0 { (index, 1) } else { (table, column) };
            let analyzed = statistics::correlation(of, column);
            let (version, io_method) = (server::major_version(), server::setting(c"io_method"));
            let io_method = io_method.unwrap_or_default();
            Some(Self { analyzed: analyzed.unwrap_or(0.0), file, rows, version, io_method })
        }
    }

    /// Why a correlation that was measured of this does not hold of `now`, if so.
    fn stale(&self, now: &Self) -> Option<&'static str> {
        const MOST_ROWS: f32 = 0.2;
        const MOST_OFF: f32 = 0.1;
        if self.version != now.version {
            Some("it was measured on another major version of the server")
        } else if self.io_method != now.io_method {
            Some("it was measured with another io_method")
        } else if self.file != now.file {
            Some("the table has been rewritten since")
        } else if (now.rows - self.rows).abs() > MOST_ROWS * self.rows.max(1.0) {
            Some("the table's number of rows has changed by more than 20 %")
        } else if (now.analyzed - self.analyzed).abs() > MOST_OFF {
            Some("pg_stats.correlation has changed by more than 0.1")
        } else {
            None
        }
    }
}

/// The table of the extension that correlations are stored in.
const CORRECTIONS: &CStr = c"io_probe_corrections";

/// The types of its columns, as far as they are read: schema, table, index, correlation, and what it was
/// measured of.
const COLUMNS: [pg_sys::Oid; 9] = [
    pg_sys::NAMEOID,
    pg_sys::NAMEOID,
    pg_sys::NAMEOID,
    pg_sys::FLOAT8OID,
    pg_sys::FLOAT4OID,
    pg_sys::OIDOID,
    pg_sys::FLOAT4OID,
    pg_sys::INT4OID,
    pg_sys::NAMEOID,
];

/// Most columns that it may have.
const MOST_COLUMNS: usize = 32;
/// Most rows that are read of a table. Its owner could make any number of them, of indexes that are renamed.
const MOST_KEPT: usize = 1000;

thread_local! {
    /// The table of corrections, once found.
    static PLACE: Cell<Option<pg_sys::Oid>> = const { Cell::new(None) };
    /// The last one found, also when it has gone: a rollback may bring it back. (If this session looks for it
    /// after its own DROP EXTENSION, which is then rolled back, it finds it again only after a change of the
    /// table that is planned.)
    static LAST_PLACE: Cell<pg_sys::Oid> = const { Cell::new(pg_sys::InvalidOid) };
}

/// Forgets the table if `relation` is that, or stands for all; returns whether it did.
pub(super) fn forget_place(relation: pg_sys::Oid) -> bool {
    let is_it = relation == pg_sys::InvalidOid || relation == LAST_PLACE.get();
    if is_it {
        PLACE.set(None);
    }
    is_it
}

/// What is stored for a table's indexes. None where a lock would have to be waited for. A lock on the
/// table must be held.
pub(crate) fn stored(table: pg_sys::Oid) -> Option<Vec<Stored>> {
    if PLACE.get().is_none() {
        // SAFETY: in a transaction, as planning and calls are.
        PLACE.set(unsafe { find() }?);
    }
    // Without the extension nothing is stored.
    let Some(corrections) = PLACE.get() else { return Some(Vec::new()) };
    LAST_PLACE.set(corrections);
    let _held = Held::take(corrections)?;
    // SAFETY: locked, and closed before that lock is given up; an ERROR does both.
    unsafe {
        let relation = pg_sys::try_relation_open(corrections, pg_sys::NoLock as pg_sys::LOCKMODE);
        if relation.is_null() {
            return Some(Vec::new());
        }
        let found = of_table(relation, table);
        pg_sys::relation_close(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
        found
    }
}

/// The table, found without a query: Some(None) where the extension is not created, or its version has no
/// such table. None where a lock would have to be waited for.
///
/// # Safety
/// To be called in a transaction.
unsafe fn find() -> Option<Option<pg_sys::Oid>> {
    // The indexes that are looked into, with their tables.
    let _by_name = Held::take(pg_sys::Oid::from(pg_sys::ExtensionNameIndexId))?;
    let _by_depender = Held::take(pg_sys::Oid::from(pg_sys::DependDependerIndexId))?;
    // SAFETY: a scan of a catalog by its index on names, ended and closed; what it finds is such a tuple.
    // Other lookups give 0 for what is not there.
    unsafe {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let catalog = pg_sys::table_open(pg_sys::ExtensionRelationId, lock);
        let name = name_of(c"pg_io_probe".as_ptr().cast_mut())?;
        let mut key = equals(pg_sys::Anum_pg_extension_extname, &name);
        let index = pg_sys::Oid::from(pg_sys::ExtensionNameIndexId);
        let scan = pg_sys::systable_beginscan(catalog, index, true, std::ptr::null_mut(), 1, &mut key);
        let tuple = pg_sys::systable_getnext(scan);
        let extension = (!tuple.is_null()).then(|| {
            let row = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_extension>();
            ((*row).oid, (*row).extnamespace)
        });
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, lock);
        let Some((extension, schema)) = extension else { return Some(None) };
        let table = pg_sys::get_relname_relid(CORRECTIONS.as_ptr(), schema);
        // A role that may create in that schema can take a name that an older version leaves free.
        let is_own = table != pg_sys::InvalidOid
            && pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, table) == extension;
        Some(is_own.then_some(table))
    }
}

/// A key of a scan: this column of type name has this value.
///
/// # Safety
/// The name must outlive the scan.
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

/// # Safety
/// `corrections` must be open and locked.
unsafe fn of_table(corrections: pg_sys::Relation, table: pg_sys::Oid) -> Option<Vec<Stored>> {
    // SAFETY: the caller vouches for the relation. Its columns are looked at before any is read; names are 64
    // bytes and outlive the scan. The index is locked before it is opened.
    unsafe {
        let pg_sys::RelationData { rd_id: own, rd_rel, rd_att: descriptor, .. } = *corrections;
        let form = &*rd_rel;
        let count = (*descriptor).natts as usize;
        let is_known = form.relkind as u8 == pg_sys::RELKIND_RELATION
            && form.relpersistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT
            && (COLUMNS.len()..=MOST_COLUMNS).contains(&count)
            && (1..).zip(COLUMNS).all(|(column, wanted)| pg_sys::get_atttype(own, column) == wanted);
        let schema = pg_sys::get_rel_namespace(table);
        let schema_name = name_of(pg_sys::get_namespace_name(schema));
        let table_name = name_of(pg_sys::get_rel_name(table));
        let Some((schema_name, table_name)) = schema_name.zip(table_name).filter(|_| is_known) else {
            return Some(Vec::new());
        };
        pg_sys::list_free(pg_sys::RelationGetIndexList(corrections));
        let primary = (*corrections).rd_pkindex;
        let held = if primary == pg_sys::InvalidOid { None } else { Some(Held::take(primary)?) };
        let is_by_names = held.is_some() && begins_with_names(primary);
        let mut keys = [equals(1, &schema_name), equals(2, &table_name)];
        let (none, count, keys) = (std::ptr::null_mut(), keys.len() as i32, keys.as_mut_ptr());
        let scan = pg_sys::systable_beginscan(corrections, primary, is_by_names, none, count, keys);
        let (mut found, mut is_free) = (Vec::new(), true);
        for _ in 0..MOST_KEPT {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let (mut values, mut nulls) = ([pg_sys::Datum::null(); MOST_COLUMNS], [true; MOST_COLUMNS]);
            pg_sys::heap_deform_tuple(tuple, descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            if nulls[..COLUMNS.len()].contains(&true) {
                continue;
            }
            let name = values[2].cast_mut_ptr::<pg_sys::NameData>();
            let io_method = values[8].cast_mut_ptr::<pg_sys::NameData>();
            let index = pg_sys::get_relname_relid((*name).data.as_ptr(), schema);
            let correlation = f64::from_bits(values[3].value() as u64);
            let of = MeasuredOf {
                analyzed: f32::from_bits(values[4].value() as u32),
                file: pg_sys::Oid::from(values[5].value() as u32),
                rows: f32::from_bits(values[6].value() as u32),
                version: values[7].value() as i32,
                io_method: CStr::from_ptr((*io_method).data.as_ptr()).to_string_lossy().into_owned(),
            };
            // Another relation may have the name meanwhile.
            let is_its = index != pg_sys::InvalidOid && pg_sys::IndexGetRelation(index, true) == table;
            if !is_its || !(0.0..=1.0).contains(&correlation) {
                continue;
            }
            // Without this lock DROP INDEX CONCURRENTLY may end before the index is opened.
            let Some(_held) = Held::take(index) else {
                is_free = false;
                break;
            };
            let Some(now) = MeasuredOf::now(table, index) else { continue };
            found.push(Stored { index, correlation, stale: of.stale(&now) });
        }
        pg_sys::systable_endscan(scan);
        is_free.then_some(found)
    }
}

/// Are the first columns of an index the first two of its table?
///
/// # Safety
/// `index` must be the oid of an index, on which this session holds a lock.
unsafe fn begins_with_names(index: pg_sys::Oid) -> bool {
    // SAFETY: the caller vouches for it, and for the lock. An index has as many keys as it says.
    let begins = unsafe {
        opened(index, |open| {
            let form = (*open).rd_index;
            (*form).indisvalid && (*form).indnkeyatts >= 2 && (*form).indkey.values.as_slice(2) == [1, 2]
        })
    };
    begins.unwrap_or(false)
}

/// What `read` makes of a relation; None if it is gone.
///
/// # Safety
/// This session must hold a lock on it.
unsafe fn opened<T>(oid: pg_sys::Oid, read: impl FnOnce(pg_sys::Relation) -> T) -> Option<T> {
    // SAFETY: the caller vouches for the lock; closed again, or by an ERROR.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(oid);
        if relation.is_null() {
            return None;
        }
        let read = read(relation);
        pg_sys::RelationClose(relation);
        Some(read)
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
    unsafe { pg_sys::namestrcpy(&mut copy, name) };
    Some(copy)
}
