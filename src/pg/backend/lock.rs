//! One probe at a time in the whole cluster, and giving way to sessions that wait.

use pgrx::pg_sys;

use crate::error::{Error, Result};
use crate::pg::backend::progress;
use crate::pg::backend::server::in_recovery;
use crate::pg::settings::SettingsLevel;

/// An advisory lock in database 0, which SQL's advisory locks can't reach. It works on a standby, obeys
/// lock_timeout, and goes with the transaction if the call ends by an error.
///
/// Until it is dropped nothing is sent to the client: a client that does not read what is sent would make
/// this process wait for it, deaf to all bounds, and other probes for the lock.
pub(crate) struct ProbeLock {
    _silence: SettingsLevel,
}

/// "ioprobe" in ASCII: the lock's key.
const KEY: u64 = 0x69_6f_70_72_6f_62_65;

impl ProbeLock {
    /// Takes the lock; if another probe holds it, waits or fails. One inside of another in the same session
    /// always fails. `name` has the name of a probe's number.
    pub(crate) fn acquire(wait: bool, name: impl Fn(i64) -> Option<&'static str>) -> Result<Self> {
        if let Some(lock) = Self::take(wait)? {
            return Ok(lock);
        }
        let error = Error::in_use("another probe is running").hint(
            "Two probes at a time would disturb each other. Try again later, or wait with \
             options => '{\"wait\": true}'.",
        );
        Err(match holder() {
            Some(pid) => error.detail(
                progress::told(pid, name)
                    .unwrap_or_else(|| format!("It runs in the server process with PID {pid}.")),
            ),
            None => error,
        })
    }

    /// Takes the lock unless another probe holds it.
    pub(crate) fn acquire_if_free() -> Result<Option<Self>> {
        Self::take(false)
    }

    fn take(wait: bool) -> Result<Option<Self>> {
        // Processes of one query don't conflict over locks, and each has a time of its own.
        refuse_in_parallel()?;
        // SAFETY: the tag is complete; the lock belongs to the present transaction.
        let result = unsafe { pg_sys::LockAcquire(&tag(), MODE, false, !wait) };
        if result == pg_sys::LockAcquireResult::LOCKACQUIRE_ALREADY_HELD {
            drop(Self::taken());
            return Err(Error::in_use("another probe is running in this session").detail(
                "That probe calls a function, perhaps while planning, and the function calls a probe.",
            ));
        }
        Ok((result != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL).then(Self::taken))
    }

    fn taken() -> Self {
        Self { _silence: SettingsLevel::begin(&[(c"client_min_messages", "error")]) }
    }
}

/// Refuses a parallel operation: the function that calls a probe is marked PARALLEL SAFE, and is not.
pub(crate) fn refuse_in_parallel() -> Result<()> {
    // SAFETY: reads a variable of this backend.
    if unsafe { pg_sys::IsInParallelMode() } {
        return Err(Error::wrong_state("cannot run a probe during a parallel operation")
            .hint("The function that calls the probe is marked PARALLEL SAFE, but it is not safe."));
    }
    Ok(())
}

/// Refuses to write to a table of the extension where that can't be done here and now. `function` is the
/// caller's name, `instead` a HINT for a standby.
pub(in crate::pg) fn check_may_write(function: &str, instead: &str) -> Result<()> {
    refuse_in_parallel()?;
    if in_recovery() {
        return Err(Error::unmet(format!("cannot execute {function}() during recovery")).hint(instead));
    }
    // SAFETY: reads a variable of this backend.
    if unsafe { pg_sys::XactReadOnly } {
        return Err(Error::read_only(format!("cannot execute {function}() in a read-only transaction")));
    }
    Ok(())
}

impl Drop for ProbeLock {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return; // The transaction is about to abort, which releases the lock.
        }
        // SAFETY: acquired in `acquire` with the same tag, mode and owner.
        unsafe { pg_sys::LockRelease(&tag(), MODE, false) };
    }
}

const MODE: pg_sys::LOCKMODE = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;

fn tag() -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        locktag_field1: 0,
        locktag_field2: (KEY >> 32) as u32,
        locktag_field3: KEY as u32,
        // 1 is the class of the SQL functions with one bigint key.
        locktag_field4: 1,
        locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
        locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
    }
}

/// The process that holds the probe lock, if it still does.
fn holder() -> Option<i32> {
    let wanted = key(&tag());
    find(|lock| lock.holdMask != 0 && key(&lock.locktag) == wanted)
}

/// What it is a lock on.
fn key(tag: &pg_sys::LOCKTAG) -> (u8, u32, u32, u32, u16) {
    (tag.locktag_type, tag.locktag_field1, tag.locktag_field2, tag.locktag_field3, tag.locktag_field4)
}

/// The lock that a probe takes on a relation. Under it the files stay as they are.
pub(in crate::pg) const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
/// The only lock that it keeps others from. A session that waits for another one does not wait for the probe.
const KEPT_OUT: pg_sys::LOCKMODE = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;

/// Does another process wait for a lock on one of these relations that a probe keeps it from? Takes 8 to
/// 18 us on a quiet server. (LockHasWaitersRelation knows no lock taken by the fast path.)
pub(in crate::pg) fn someone_waits_for(relations: &[pg_sys::Oid]) -> bool {
    if relations.is_empty() {
        return false;
    }
    // SAFETY: reads a variable of this backend.
    let database = unsafe { pg_sys::MyDatabaseId };
    find(|lock| {
        let tag = &lock.locktag;
        lock.waitLockMode == KEPT_OUT
            && tag.locktag_type == pg_sys::LockTagType::LOCKTAG_RELATION as u8
            && (tag.locktag_field1 == 0 || tag.locktag_field1 == database.to_u32())
            && relations.iter().any(|oid| oid.to_u32() == tag.locktag_field2)
    })
    .is_some()
}

/// The pid of the first lock in the server's list that `matches`.
fn find(matches: impl Fn(&pg_sys::LockInstanceData) -> bool) -> Option<i32> {
    // SAFETY: the server returns a list of as many elements as it says, in the present memory
    // context. Freed here, since a long probe looks often. `matches` can't unwind.
    unsafe {
        let data = pg_sys::GetLockStatusData();
        let count = usize::try_from((*data).nelements).unwrap_or(0);
        let pid = if count == 0 {
            None
        } else {
            let locks = std::slice::from_raw_parts((*data).locks, count);
            locks.iter().find(|lock| matches(lock)).map(|lock| lock.pid)
        };
        if !(*data).locks.is_null() {
            pg_sys::pfree((*data).locks.cast());
        }
        pg_sys::pfree(data.cast());
        pid
    }
}
