//! Opening a relation for a probe: locks, rights, kind, and where its blocks are.

use std::ffi::CStr;
use std::path::PathBuf;

use io_probe_core::files::RelationFiles;
use pgrx::datum::DatumWithOid;
use pgrx::{pg_sys, spi};

use crate::error::{Error, Result};
use crate::pg::backend::encoding::{text, text_or_none};
use crate::pg::backend::lock::LOCK;
use crate::pg::backend::names;
use crate::pg::backend::nodes::elements;
use crate::pg::backend::server::{self, data_directory, in_recovery};
use crate::pg::compat::{self, MAIN};
use crate::pg::storage::expressions;
use crate::pg::storage::tablespace::Tablespace;

/// An open relation under a lock that keeps its files as they are. Dropping it closes it and gives up the
/// locks.
pub(crate) struct Relation {
    relation: pg_sys::Relation,
    held: Held,
    /// The lock that [`Relation::open_to_plan`] takes besides.
    _unchanged: Option<Held>,
}

/// Most indexes of a table that queries are planned of: the server has room for some thousand locks in all.
pub(in crate::pg) const MOST_INDEXES: usize = 200;

/// The lock that keeps others from changing what belongs to a table.
const UNCHANGED: pg_sys::LOCKMODE = pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE;

impl Relation {
    /// Opens a relation to read it: the caller needs SELECT (from 17 on, or MAINTAIN) on it, or on its table.
    /// `function` is the caller's name, for hints.
    pub(crate) fn open_to_read(oid: pg_sys::Oid, function: &str) -> Result<Self> {
        // Before the lock, so that a session without the right neither waits nor blocks; and again under it,
        // when nothing changes any more.
        check_may_read(oid)?;
        let relation = Self::open(oid)?;
        check_may_read(oid)?;
        relation.check_kind(function)?;
        Ok(relation)
    }

    /// Opens a relation to tell facts about it that need no right on the relation itself.
    pub(crate) fn open_for_facts(oid: pg_sys::Oid, function: &str) -> Result<Self> {
        let relation = Self::open(oid)?;
        relation.check_kind(function)?;
        Ok(relation)
    }

    /// Could a relation be opened right now, without waiting for a strong lock on it?
    pub(crate) fn is_free(oid: pg_sys::Oid) -> bool {
        Held::take(oid).is_some()
    }

    /// Locks the owner before the relation, as every command that drops them does.
    pub(in crate::pg) fn open(oid: pg_sys::Oid) -> Result<Self> {
        let held = Held::wait_for(oid);
        // SAFETY: gives NULL for a relation that is gone. It is locked.
        let relation = unsafe { pg_sys::try_relation_open(oid, pg_sys::NoLock as pg_sys::LOCKMODE) };
        if relation.is_null() {
            return Err(gone(oid));
        }
        let relation = Self { relation, held, _unchanged: None };
        // An oid can have been given to another relation between the two locks.
        if with_owner(oid) != relation.held.oids { Err(gone(oid)) } else { Ok(relation) }
    }

    /// Refuses an index that is being built: `CREATE INDEX CONCURRENTLY` writes it past shared buffers, and a
    /// page of zeros that the server has read meanwhile stays there, and passes for the page.
    pub(crate) fn check_is_built(&self) -> Result<()> {
        // SAFETY: the relation is open; of what is no index this is NULL.
        let index = unsafe { (*self.relation).rd_index.as_ref() };
        if index.is_none_or(|index| index.indisready) {
            return Ok(());
        }
        Err(Error::in_use(format!("index \"{}\" is not ready", self.name()))
            .detail("The index is being built, or building it has failed."))
    }

    pub(crate) fn check_is_table(&self) -> Result<()> {
        if [pg_sys::RELKIND_RELATION, pg_sys::RELKIND_MATVIEW].contains(&self.kind()) {
            return Ok(());
        }
        check_is_no_index(self.oid())?;
        Err(Error::wrong_kind(format!("\"{}\" is not a table", self.name())))
    }

    /// Opens a table to write to it with its owner's rights. Refuses one with triggers, which would run with
    /// these rights: other roles than the owner may make triggers, and foreign keys that refer to the table.
    pub(in crate::pg) fn open_to_write(oid: pg_sys::Oid) -> Result<Self> {
        // The statement will take this lock, too; it keeps others from making triggers and foreign keys until
        // the end of the transaction.
        // SAFETY: takes a lock of the present transaction, whatever has become of the relation.
        unsafe { pg_sys::LockRelationOid(oid, pg_sys::RowExclusiveLock as pg_sys::LOCKMODE) };
        let relation = Self::open(oid)?;
        relation.check_for_triggers()?;
        Ok(relation)
    }

    /// Refuses a table that has triggers. Those that the server makes are of foreign keys. They change tables
    /// of others, whose triggers run within the same statement.
    pub(in crate::pg) fn check_for_triggers(&self) -> Result<()> {
        // SAFETY: the relation is open.
        let triggers = unsafe { (*self.relation).trigdesc.as_ref() };
        if triggers.is_none_or(|triggers| triggers.numtriggers == 0) {
            return Ok(());
        }
        Err(Error::unmet(format!("\"{}\" has triggers, or foreign keys refer to it", self.name()))
            .detail("They would run with the rights of the table's owner.")
            .hint("Drop them, and REVOKE TRIGGER and REFERENCES from those who made them."))
    }

    fn check_kind(&self, function: &str) -> Result<()> {
        let name = self.name();
        let refuse = |kind: &str| Error::wrong_kind(format!("\"{name}\" is a {kind} and has no storage"));
        match self.kind() {
            pg_sys::RELKIND_RELATION
            | pg_sys::RELKIND_INDEX
            | pg_sys::RELKIND_TOASTVALUE
            | pg_sys::RELKIND_MATVIEW => {}
            pg_sys::RELKIND_PARTITIONED_TABLE | pg_sys::RELKIND_PARTITIONED_INDEX => {
                let kind = if self.kind() == pg_sys::RELKIND_PARTITIONED_TABLE { "table" } else { "index" };
                return Err(refuse(&format!("partitioned {kind}")).hint(format!(
                    "Probe its partitions: SELECT p.* FROM pg_partition_tree({}) AS t, \
                         {function}(t.relid) AS p WHERE t.isleaf;",
                    spi::quote_literal(self.qualified())
                )));
            }
            pg_sys::RELKIND_VIEW => {
                let query = spi::quote_literal(format!("SELECT FROM {}", self.qualified()));
                return Err(refuse("view").hint(format!(
                    "Probe the tables that the view reads: SELECT DISTINCT relid \
                         FROM io_probe_explain({query}) WHERE relid IS NOT NULL;"
                )));
            }
            pg_sys::RELKIND_FOREIGN_TABLE => {
                return Err(refuse("foreign table").hint("Probe the table on the server that has its data."));
            }
            pg_sys::RELKIND_SEQUENCE => {
                return Err(Error::wrong_kind(format!("\"{name}\" is a sequence and has only one block")));
            }
            pg_sys::RELKIND_COMPOSITE_TYPE => return Err(refuse("composite type")),
            _ => return Err(refuse("relation of a kind that is unknown here")),
        }
        if self.is_temporary() && !self.is_own_temporary() {
            return Err(Error::unsupported(format!("\"{name}\" is a temporary table of another session")));
        }
        if self.persistence() == pg_sys::RELPERSISTENCE_UNLOGGED && in_recovery() {
            return Err(Error::unsupported("cannot access unlogged relations during recovery"));
        }
        Ok(())
    }

    /// Its blocks, those of the main fork, in files; None where these are gone.
    pub(crate) fn source(&self) -> Option<RelationFiles> {
        // SAFETY: the relation is open and has storage.
        unsafe {
            if !pg_sys::smgrexists(compat::storage_manager(self.relation), MAIN) {
                return None;
            }
            let blocks = pg_sys::RelationGetNumberOfBlocksInFork(self.relation, MAIN);
            let path = compat::first_segment(self.relation);
            Some(RelationFiles::new(path, pg_sys::BLCKSZ, pg_sys::RELSEG_SIZE, blocks.into()))
        }
    }

    /// How many blocks it has.
    pub(crate) fn blocks(&self) -> u64 {
        self.source().map_or(0, |source| source.blocks())
    }

    /// Says how much of a table's values lies in its TOAST table, which is not among its own blocks.
    pub(crate) fn toast_note(&self) -> Option<String> {
        let toast =
            Self::open_if_free(Some(self.form().reltoastrelid).filter(|oid| *oid != pg_sys::InvalidOid)?)?;
        let (blocks, name) = (toast.blocks(), toast.name());
        (blocks > 0)
            .then(|| format!("its TOAST table pg_toast.{name} has {blocks} more blocks, not looked at here"))
    }

    /// Says how many blocks its indexes have, which are not among its own blocks.
    pub(crate) fn indexes_note(&self) -> Option<String> {
        let indexes = self.indexes().into_iter().filter_map(Self::open_if_free);
        let blocks: u64 = indexes.map(|index| index.blocks()).sum();
        (blocks > 0).then(|| format!("its indexes have {blocks} more blocks, not looked at here"))
    }

    pub(crate) fn directory(&self) -> PathBuf {
        // SAFETY: the relation is open and has storage.
        let path = unsafe { compat::first_segment(self.relation) };
        data_directory().join(path).parent().map_or_else(data_directory, PathBuf::from)
    }

    /// The tablespace that its files are in.
    pub(crate) fn file_tablespace(&self) -> Tablespace {
        // SAFETY: the relation is open.
        Tablespace::of_file(unsafe { compat::file_id(self.relation) })
    }

    /// Makes this backend close its descriptors of the relation. They keep the readahead window of the
    /// moment when they were opened; the next read opens them afresh, under the present setting.
    pub(in crate::pg) fn close_files(&self) {
        // SAFETY: the relation is open and has storage.
        unsafe { pg_sys::smgrrelease(compat::storage_manager(self.relation)) };
    }

    /// The relation, for calls of the server.
    pub(in crate::pg) fn as_ptr(&self) -> pg_sys::Relation {
        self.relation
    }

    pub(crate) fn oid(&self) -> pg_sys::Oid {
        // SAFETY: the relation is open.
        unsafe { (*self.relation).rd_id }
    }

    /// The relations on which this holds a lock.
    pub(crate) fn locked(&self) -> Vec<pg_sys::Oid> {
        self.held.oids.clone()
    }

    fn form(&self) -> &pg_sys::FormData_pg_class {
        // SAFETY: the relation is open; its pg_class row lives as long.
        unsafe { &*(*self.relation).rd_rel }
    }

    fn kind(&self) -> u8 {
        self.form().relkind as u8
    }

    fn persistence(&self) -> u8 {
        self.form().relpersistence as u8
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.persistence() == pg_sys::RELPERSISTENCE_TEMP
    }

    fn is_own_temporary(&self) -> bool {
        // SAFETY: the relation is open.
        unsafe { (*self.relation).rd_islocaltemp }
    }

    pub(crate) fn name(&self) -> String {
        // SAFETY: a name is a NUL-terminated array.
        unsafe { text(self.form().relname.data.as_ptr()) }
    }

    pub(crate) fn schema(&self) -> Option<String> {
        // SAFETY: a catalog lookup; NULL when there is none.
        unsafe { text_or_none(pg_sys::get_namespace_name(self.form().relnamespace)) }
    }

    pub(in crate::pg) fn is_btree(&self) -> bool {
        self.kind() == pg_sys::RELKIND_INDEX && self.form().relam == pg_sys::BTREE_AM_OID
    }

    pub(in crate::pg) fn is_btree_of(&self, table: pg_sys::Oid) -> bool {
        self.is_btree() && self.held.oids == [table, self.oid()]
    }

    /// Opens a table to look at it, if that takes no waiting: neither for the table nor for one of its
    /// indexes.
    pub(in crate::pg) fn open_if_free(oid: pg_sys::Oid) -> Option<Self> {
        let _held = Held::take(oid)?;
        let relation = Self::open(oid).ok()?;
        relation.indexes().into_iter().all(Self::is_free).then_some(relation)
    }

    /// Opens a table to have queries of it planned, as [`Self::open_if_free`] does. None also if planning
    /// would call functions that are not the server's, or lock more than [`MOST_INDEXES`] indexes.
    pub(in crate::pg) fn open_to_plan(oid: pg_sys::Oid) -> Option<Self> {
        // This keeps others from making an index or statistics, and from VACUUM. A standby can't lock so.
        let unchanged = if in_recovery() { None } else { Some(Held::take_as(oid, UNCHANGED)?) };
        let mut relation = Self::open_if_free(oid)?;
        relation._unchanged = unchanged;
        // SAFETY: just opened.
        let calls = unsafe { expressions::call_functions(relation.relation) };
        (!calls && relation.indexes().len() <= MOST_INDEXES).then_some(relation)
    }

    fn indexes(&self) -> Vec<pg_sys::Oid> {
        // SAFETY: the relation is open; the list is a copy, of oids.
        unsafe {
            let indexes = elements(pg_sys::RelationGetIndexList(self.relation));
            indexes.iter().map(|index| index.oid_value).collect()
        }
    }

    /// Does `work` with the rights of its owner, and with those only. Each statement in it has to be run by
    /// [`crate::pg::backend::names::run`].
    pub(in crate::pg) fn as_owner<T>(&self, work: impl FnOnce() -> T) -> T {
        server::as_user(self.form().relowner, work)
    }

    /// Its name with its schema's, as a query wants it, in the encoding of the database; None if the schema
    /// is gone.
    pub(in crate::pg) fn qualified_name(&self) -> Option<&CStr> {
        // SAFETY: catalog lookups, of which the first gives NULL if there is none; the result belongs to the
        // present memory context, which outlives this relation.
        unsafe {
            let schema = pg_sys::get_namespace_name(self.form().relnamespace);
            (!schema.is_null()).then(|| {
                CStr::from_ptr(pg_sys::quote_qualified_identifier(schema, self.form().relname.data.as_ptr()))
            })
        }
    }

    /// Its name with its schema's, for a message.
    fn qualified(&self) -> String {
        // SAFETY: a C string.
        self.qualified_name().map(|name| unsafe { text(name.as_ptr()) }).unwrap_or_default()
    }

    /// Does a policy hide some of its rows from the user?
    fn has_row_security(&self) -> bool {
        // SAFETY: a catalog lookup, for the present user.
        let security = unsafe { pg_sys::check_enable_rls(self.oid(), pg_sys::InvalidOid, true) };
        security == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
    }

    /// May the user know its statistics, as by pg_stats?
    pub(crate) fn shows_statistics(&self) -> bool {
        compat::may_select(self.oid()) && !self.has_row_security()
    }

    /// Can a query count the tuples of some of its blocks, and read no others? The reason why not, otherwise.
    pub(crate) fn tuples_can_be_counted(&self) -> std::result::Result<(), &'static str> {
        if ![pg_sys::RELKIND_RELATION, pg_sys::RELKIND_MATVIEW].contains(&self.kind()) {
            return Err("not a table: its tuples are not counted");
        }
        if self.form().relam != pg_sys::HEAP_TABLE_AM_OID {
            return Err("its access method is not heap: its tuples are not counted");
        }
        if self.has_row_security() {
            return Err("it has row-level security for this role: its tuples are not counted");
        }
        if !self.form().relispopulated {
            return Err("not populated: it has no tuples");
        }
        if !compat::may_select(self.oid()) {
            return Err("this role has no SELECT on it: its tuples are not counted");
        }
        Ok(())
    }
}

/// May the user probe what is in this relation: is there a right to it, or to the table that it is an index
/// or the TOAST table of? Takes no lock.
pub(crate) fn check_may_read(oid: pg_sys::Oid) -> Result<()> {
    let table = owner_of(oid).unwrap_or(oid);
    if compat::may_probe(table) {
        return Ok(());
    }
    let name = relation_name(table).unwrap_or_default();
    // SAFETY: a catalog lookup, which gives 0 for what does not exist.
    let kind = match unsafe { pg_sys::get_rel_relkind(table) } as u8 {
        pg_sys::RELKIND_VIEW => "view",
        pg_sys::RELKIND_MATVIEW => "materialized view",
        pg_sys::RELKIND_SEQUENCE => "sequence",
        pg_sys::RELKIND_FOREIGN_TABLE => "foreign table",
        _ => "table",
    };
    Err(Error::denied(format!("permission denied for {kind} {name}")))
}

/// Refuses an index where only a table will do.
pub(crate) fn check_is_no_index(oid: pg_sys::Oid) -> Result<()> {
    if !is_index(oid) {
        return Ok(());
    }
    let name = relation_name(oid).unwrap_or_default();
    Err(Error::wrong_kind(format!("\"{name}\" is not a table")).hint("Give the table of the index."))
}

/// Is it an index? False for what does not exist.
fn is_index(oid: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup, which gives 0 for what does not exist.
    let kind = unsafe { pg_sys::get_rel_relkind(oid) } as u8;
    [pg_sys::RELKIND_INDEX, pg_sys::RELKIND_PARTITIONED_INDEX].contains(&kind)
}

/// The table of an index; of anything else itself.
pub(crate) fn table_of(oid: pg_sys::Oid) -> pg_sys::Oid {
    owner_of(oid).filter(|_| is_index(oid)).unwrap_or(oid)
}

/// Is it a TOAST table? False for what does not exist.
pub(crate) fn is_toast(oid: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup, which gives 0 for what does not exist.
    unsafe { pg_sys::get_rel_relkind(oid) as u8 == pg_sys::RELKIND_TOASTVALUE }
}

/// The lock on a relation, and on the table that it belongs to, until this is dropped.
pub(crate) struct Held {
    mode: pg_sys::LOCKMODE,
    oids: Vec<pg_sys::Oid>,
}

impl Held {
    /// Takes the lock, unless it would have to be waited for.
    pub(crate) fn take(oid: pg_sys::Oid) -> Option<Self> {
        Self::take_as(oid, LOCK)
    }

    fn take_as(oid: pg_sys::Oid, mode: pg_sys::LOCKMODE) -> Option<Self> {
        let mut held = Self { mode, oids: Vec::with_capacity(2) };
        for oid in with_owner(oid) {
            // SAFETY: takes a lock of the present transaction if it need not be waited for.
            if !unsafe { pg_sys::ConditionalLockRelationOid(oid, mode) } {
                return None;
            }
            held.oids.push(oid);
        }
        Some(held)
    }

    /// Takes the lock, and waits as long as that takes.
    pub(crate) fn wait_for(oid: pg_sys::Oid) -> Self {
        let oids = with_owner(oid);
        // SAFETY: takes locks of the present transaction, whatever has become of the relation.
        oids.iter().for_each(|oid| unsafe { pg_sys::LockRelationOid(*oid, LOCK) });
        Self { mode: LOCK, oids }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: gives up locks that were taken here.
            self.oids.iter().for_each(|oid| unsafe { pg_sys::UnlockRelationOid(*oid, self.mode) });
        }
    }
}

impl Drop for Relation {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return; // The transaction is about to abort, which closes it.
        }
        // SAFETY: opened in `open`, not closed since; the locks are given up only then.
        unsafe { pg_sys::relation_close(self.relation, pg_sys::NoLock as pg_sys::LOCKMODE) };
    }
}

fn gone(oid: pg_sys::Oid) -> Error {
    Error::undefined_relation(format!("relation with OID {} does not exist", oid.to_u32()))
}

/// The relation, after the table whose privileges count, if that is another one: the table is locked first.
fn with_owner(oid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    owner_of(oid).into_iter().chain([oid]).collect()
}

/// The table that an index or a TOAST table (or the index of one) belongs to.
fn owner_of(oid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: catalog lookups that give 0 for what does not exist.
    let kind = unsafe { pg_sys::get_rel_relkind(oid) } as u8;
    match kind {
        pg_sys::RELKIND_INDEX | pg_sys::RELKIND_PARTITIONED_INDEX => {
            // SAFETY: as above.
            let table = unsafe { pg_sys::IndexGetRelation(oid, true) };
            (table != pg_sys::InvalidOid).then(|| owner_of(table).unwrap_or(table))
        }
        pg_sys::RELKIND_TOASTVALUE => {
            let query = "SELECT oid::int8 FROM pg_class WHERE reltoastrelid = $1";
            names::rows(query, &[DatumWithOid::from(oid)]).into_iter().next()
        }
        _ => None,
    }
}

/// The name of a relation; None if it is gone.
pub(in crate::pg) fn relation_name(oid: pg_sys::Oid) -> Option<String> {
    // SAFETY: a catalog lookup; NULL when there is none.
    unsafe { text_or_none(pg_sys::get_rel_name(oid)) }
}
