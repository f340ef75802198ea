//! Differences between PostgreSQL 15, 16, 17, 18 and 19. The only place that knows versions.

mod execution;
mod planning;
mod reading;

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use pgrx::pg_sys;

pub(crate) use execution::TELLS_LOCAL_TIME;
pub(super) use execution::{
    QueryWatcher, check_stack_depth, count_row, io_ticks, nanoseconds, plan_as_text, walk_below,
    watch_queries,
};
pub(super) use planning::{CostEstimate, cost_estimate, watch_relations};
pub(super) use reading::{
    Blocks, PREFETCH_METHOD, READ_METHOD, ReadAhead, STREAMS_OBEY_TABLESPACE, most_pinned, read_block,
    read_blocks, reads_ahead, ring,
};

/// Where a relation's files are, by the server's own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    pub(super) tablespace: pg_sys::Oid,
    pub(super) database: pg_sys::Oid,
    pub(super) number: pg_sys::Oid,
}

/// The file identity of an open relation.
///
/// # Safety
/// `relation` must be open.
pub(super) unsafe fn file_id(relation: pg_sys::Relation) -> FileId {
    // SAFETY: the caller vouches for the relation.
    unsafe {
        #[cfg(feature = "pg15")]
        let (t, d, n) =
            ((*relation).rd_node.spcNode, (*relation).rd_node.dbNode, (*relation).rd_node.relNode);
        #[cfg(not(feature = "pg15"))]
        let (t, d, n) =
            ((*relation).rd_locator.spcOid, (*relation).rd_locator.dbOid, (*relation).rd_locator.relNumber);
        FileId { tablespace: t, database: d, number: n }
    }
}

/// The storage manager's handle of an open relation.
///
/// # Safety
/// `relation` must be open and have storage.
pub(super) unsafe fn storage_manager(relation: pg_sys::Relation) -> pg_sys::SMgrRelation {
    // SAFETY: the caller vouches for the relation.
    unsafe {
        #[cfg(feature = "pg15")]
        let locator = (*relation).rd_node;
        #[cfg(not(feature = "pg15"))]
        let locator = (*relation).rd_locator;
        pg_sys::smgropen(locator, (*relation).rd_backend)
    }
}

/// The file identity in a buffer's tag.
pub(super) fn tagged_file(tag: &pg_sys::BufferTag) -> FileId {
    #[cfg(feature = "pg15")]
    let (t, d, n) = (tag.rnode.spcNode, tag.rnode.dbNode, tag.rnode.relNode);
    #[cfg(not(feature = "pg15"))]
    let (t, d, n) = (tag.spcOid, tag.dbOid, tag.relNumber);
    FileId { tablespace: t, database: d, number: n }
}

/// The fork that has the relation's own blocks.
pub(super) const MAIN: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;

/// The path of a relation's first segment, relative to the data directory.
///
/// # Safety
/// `relation` must be open and have storage.
pub(super) unsafe fn first_segment(relation: pg_sys::Relation) -> PathBuf {
    // SAFETY: the caller vouches for the relation; the result is a C string that is ours to read.
    unsafe {
        let file = file_id(relation);
        let path = pg_sys::GetRelationPath(
            file.database,
            file.tablespace,
            file.number,
            (*relation).rd_backend,
            MAIN,
        );
        #[cfg(any(feature = "pg18", feature = "pg19"))]
        let path = path.str_.as_ptr();
        self::path(path)
    }
}

/// Copies a path, which has no encoding.
///
/// # Safety
/// `string` must be a valid C string.
pub(in crate::pg) unsafe fn path(string: *const c_char) -> PathBuf {
    // SAFETY: the caller vouches for it.
    PathBuf::from(OsStr::from_bytes(unsafe { CStr::from_ptr(string) }.to_bytes()))
}

/// Bytes of WAL of the session `pid`, as SQL; NULL for one that has had nothing to do for a while.
pub(super) const BACKEND_WAL: &str = if cfg!(any(feature = "pg18", feature = "pg19")) {
    // Asking takes eight microseconds for each.
    "CASE WHEN state <> 'idle' OR state_change > clock_timestamp() - interval '10 seconds' \
     THEN (pg_stat_get_backend_wal(pid)).wal_bytes END"
} else {
    "NULL"
};

pub(crate) const RESTORES_STATISTICS: bool = cfg!(any(feature = "pg18", feature = "pg19"));

/// The privileges of which one lets a user probe a table, as has_table_privilege takes them.
pub(super) const PROBE_PRIVILEGES: &str =
    if cfg!(any(feature = "pg15", feature = "pg16")) { "SELECT" } else { "SELECT, MAINTAIN" };

/// May the user read what the relation holds, or maintain it?
pub(super) fn may_probe(table: pg_sys::Oid) -> bool {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    const MODES: [pg_sys::AclMode; 1] = [pg_sys::ACL_SELECT as pg_sys::AclMode];
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    const MODES: [pg_sys::AclMode; 2] =
        [pg_sys::ACL_SELECT as pg_sys::AclMode, pg_sys::ACL_MAINTAIN as pg_sys::AclMode];
    MODES.into_iter().any(|mode| may(table, mode))
}

/// May the user read what the relation holds?
pub(super) fn may_select(table: pg_sys::Oid) -> bool {
    may(table, pg_sys::ACL_SELECT as pg_sys::AclMode)
}

fn may(table: pg_sys::Oid, mode: pg_sys::AclMode) -> bool {
    // SAFETY: a catalog lookup in a transaction; an unknown oid is an ERROR.
    let result = unsafe { pg_sys::pg_class_aclcheck(table, pg_sys::GetUserId(), mode) };
    result == pg_sys::AclResult::ACLCHECK_OK
}

pub(super) const HAS_MAINTAIN: bool = cfg!(not(any(feature = "pg15", feature = "pg16")));

/// May the user maintain the table: as its owner, or from 17 on by MAINTAIN?
pub(super) fn may_maintain(table: pg_sys::Oid) -> bool {
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    return may(table, pg_sys::ACL_MAINTAIN as pg_sys::AclMode);
    // SAFETY: a catalog lookup in a transaction; an unknown oid is an ERROR.
    #[cfg(feature = "pg16")]
    return unsafe { pg_sys::object_ownercheck(pg_sys::RelationRelationId, table, pg_sys::GetUserId()) };
    // SAFETY: as above.
    #[cfg(feature = "pg15")]
    return unsafe { pg_sys::pg_class_ownercheck(table, pg_sys::GetUserId()) };
}

/// May the user create files in the tablespace?
pub(super) fn may_create_in(tablespace: pg_sys::Oid) -> bool {
    // SAFETY: a catalog lookup in a transaction; an unknown oid is an ERROR.
    let result = unsafe {
        let (user, mode) = (pg_sys::GetUserId(), pg_sys::ACL_CREATE as pg_sys::AclMode);
        #[cfg(feature = "pg15")]
        let result = pg_sys::pg_tablespace_aclcheck(tablespace, user, mode);
        #[cfg(not(feature = "pg15"))]
        let result = pg_sys::object_aclcheck(pg_sys::TableSpaceRelationId, tablespace, user, mode);
        result
    };
    result == pg_sys::AclResult::ACLCHECK_OK
}

/// Bytes that this server writes at a time when it fills a new WAL segment with zeros: as many blocks as it
/// passes to one call (PG_IOV_MAX).
pub(crate) const SEGMENT_FILL: usize =
    (if cfg!(any(feature = "pg18", feature = "pg19")) { 128 } else { 32 }) * pg_sys::XLOG_BLCKSZ as usize;

/// The status entry of the backend number `index`, from 1, as of the first look of this transaction.
pub(super) fn backend_entry(index: i32) -> Option<&'static pg_sys::PgBackendStatus> {
    // SAFETY: an index out of range gives NULL; entries live until the end of the transaction, and
    // callers keep them no longer than a call.
    unsafe {
        #[cfg(feature = "pg15")]
        let entry = pg_sys::pgstat_fetch_stat_local_beentry(index);
        #[cfg(not(feature = "pg15"))]
        let entry = pg_sys::pgstat_get_local_beentry_by_index(index);
        entry.as_ref().map(|e| &e.backendStatus)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum WaitEvent {
    Reads,
    Syncs,
    /// The next sample is due: nothing is read or written meanwhile.
    Samples,
}

/// The wait event of a probe: named from PostgreSQL 17 on, plain `Extension` before.
pub(super) fn wait_event(_waits: WaitEvent) -> u32 {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    return pg_sys::PG_WAIT_EXTENSION;
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    {
        use std::sync::OnceLock;
        static EVENTS: [OnceLock<u32>; 3] = [const { OnceLock::new() }; 3];
        let name = match _waits {
            WaitEvent::Reads => c"IoProbeRead",
            WaitEvent::Syncs => c"IoProbeSync",
            WaitEvent::Samples => c"IoProbeSample",
        };
        // SAFETY: the name is a C string that lives for ever.
        *EVENTS[_waits as usize].get_or_init(|| unsafe { pg_sys::WaitEventExtensionNew(name.as_ptr()) })
    }
}

/// Is this the entry of an I/O worker? There are some from 18 on.
pub(super) fn is_io_worker(_entry: &pg_sys::PgBackendStatus) -> bool {
    #[cfg(not(any(feature = "pg18", feature = "pg19")))]
    return false;
    #[cfg(any(feature = "pg18", feature = "pg19"))]
    return _entry.st_backendType == pg_sys::BackendType::B_IO_WORKER;
}

/// The source of a setting's present value, and of the one that RESET goes back to. Works also before the
/// library that defines the setting is loaded.
pub(super) fn sources(name: &CStr) -> Option<(pg_sys::GucSource::Type, pg_sys::GucSource::Type)> {
    // SAFETY: NULL or a setting, of which nothing is kept.
    unsafe { find_setting(name).as_ref() }.map(|setting| (setting.source, setting.reset_source))
}

/// A setting as the server keeps it; NULL where there is none.
fn find_setting(name: &CStr) -> *mut pg_sys::config_generic {
    // SAFETY: the name is a C string; where there is no such setting none is made.
    #[cfg(not(feature = "pg15"))]
    return unsafe { pg_sys::find_option(name.as_ptr(), false, true, 0) };
    // SAFETY: as many settings as the server says, none of which is kept.
    #[cfg(feature = "pg15")]
    unsafe {
        let count = pg_sys::GetNumConfigOptions().unsigned_abs() as usize;
        let all = std::slice::from_raw_parts(pg_sys::get_guc_variables(), count);
        // As the server compares them: the name may have been written in capitals.
        let found = all.iter().copied().find(|setting| {
            let known = setting.as_ref().map(|setting| CStr::from_ptr(setting.name).to_bytes());
            known.is_some_and(|known| known.eq_ignore_ascii_case(name.to_bytes()))
        });
        found.unwrap_or(std::ptr::null_mut())
    }
}

/// Sets what RESET makes of transaction_read_only, and returns what that was. From 16 on the server refuses
/// that RESET.
pub(super) fn reset_to_read_only(_is_read_only: bool) -> bool {
    #[cfg(not(feature = "pg15"))]
    return false;
    // SAFETY: the setting is there, and a boolean one; what RESET goes back to is this backend's own.
    #[cfg(feature = "pg15")]
    unsafe {
        let setting = find_setting(c"transaction_read_only").cast::<pg_sys::config_bool>();
        std::mem::replace(&mut (*setting).reset_val, _is_read_only)
    }
}

/// Can this server make shared buffers let go of a relation?
pub(crate) const EVICTS_SHARED_BUFFERS: bool = cfg!(not(any(feature = "pg15", feature = "pg16")));

/// Pins a buffer if it still holds this block, which is not read otherwise.
///
/// # Safety
/// `relation` must be open and not temporary; `buffer` must be the number of a shared buffer.
pub(super) unsafe fn pin_recent(
    relation: pg_sys::Relation,
    block: pg_sys::BlockNumber,
    buffer: pg_sys::Buffer,
) -> bool {
    // SAFETY: the caller vouches for the relation and the number.
    unsafe {
        #[cfg(feature = "pg15")]
        let locator = (*relation).rd_node;
        #[cfg(not(feature = "pg15"))]
        let locator = (*relation).rd_locator;
        pg_sys::ReadRecentBuffer(locator, MAIN, block, buffer)
    }
}

/// Makes a buffer let go of its page, unless it is pinned; does nothing before 17.
///
/// # Safety
/// `buffer` must be the number of a shared buffer, found an instant ago. If it has another page by now, that
/// page goes, and is read again when it is wanted.
pub(super) unsafe fn evict_buffer(buffer: pg_sys::Buffer) {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let _ = buffer;
    #[cfg(feature = "pg17")]
    // SAFETY: the caller vouches for the number.
    unsafe {
        pg_sys::EvictUnpinnedBuffer(buffer);
    }
    #[cfg(any(feature = "pg18", feature = "pg19"))]
    // SAFETY: as above; the flag outlives the call.
    unsafe {
        let mut flushed = false;
        pg_sys::EvictUnpinnedBuffer(buffer, &mut flushed);
    }
}

/// The state of a buffer, in its header.
#[cfg(not(feature = "pg19"))]
pub(super) mod buffer_state {
    use pgrx::pg_sys;

    pub(in crate::pg) type State = u32;
    pub(in crate::pg) const DIRTY: State = pg_sys::BM_DIRTY;
    pub(in crate::pg) const VALID: State = pg_sys::BM_VALID;

    /// How often the buffer was used, as far as that is counted.
    pub(in crate::pg) fn uses(state: State) -> State {
        (state & pg_sys::BUF_USAGECOUNT_MASK) / pg_sys::BUF_USAGECOUNT_ONE
    }
}

/// The state of a buffer, in its header, as `storage/buf_internals.h` has it: of 64 bits, which bindgen
/// leaves out.
#[cfg(feature = "pg19")]
pub(super) mod buffer_state {
    use pgrx::pg_sys;

    pub(in crate::pg) type State = u64;
    pub(in crate::pg) const DIRTY: State = 1 << (pg_sys::BUF_FLAG_SHIFT + 1);
    pub(in crate::pg) const VALID: State = 1 << (pg_sys::BUF_FLAG_SHIFT + 2);

    /// How often the buffer was used, as far as that is counted.
    pub(in crate::pg) fn uses(state: State) -> State {
        state >> pg_sys::BUF_USAGECOUNT_SHIFT & ((1 << pg_sys::BUF_USAGECOUNT_BITS) - 1)
    }
}

/// Locks a buffer as for reading it.
///
/// # Safety
/// This backend must have pinned the buffer, and not locked it.
pub(super) unsafe fn lock_to_read(buffer: pg_sys::Buffer) {
    // SAFETY: the caller vouches for the buffer.
    unsafe {
        #[cfg(not(feature = "pg19"))]
        pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
        // What LockBuffer does there for a mode that locks.
        #[cfg(feature = "pg19")]
        pg_sys::LockBufferInternal(buffer, pg_sys::BufferLockMode::BUFFER_LOCK_SHARE);
    }
}

/// Locks a buffer as for writing it to its file.
///
/// # Safety
/// This backend must have pinned the buffer, and not locked it.
pub(super) unsafe fn lock_to_flush(buffer: pg_sys::Buffer) {
    // SAFETY: the caller vouches for the buffer.
    unsafe {
        #[cfg(not(feature = "pg19"))]
        lock_to_read(buffer);
        #[cfg(feature = "pg19")]
        pg_sys::LockBufferInternal(buffer, pg_sys::BufferLockMode::BUFFER_LOCK_SHARE_EXCLUSIVE);
    }
}
