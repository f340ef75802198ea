//! Work in a subtransaction of its own: what may not write, and what may fail without taking the transaction
//! with it.

use std::time::Duration;

use io_probe_core::run::memory;
use pgrx::{PgSqlErrorCode, pg_sys};

use crate::error::or_raise;
use crate::pg::backend::progress::KeptProgress;
use crate::pg::backend::rethrow::{Caught, catch};
use crate::pg::backend::timer::Timer;
use crate::pg::compat;

/// Runs `work` in a subtransaction that may not write, and undoes it: what a read-only transaction is
/// allowed to change all the same (temporary tables, settings) does not stay either.
pub(in crate::pg) fn read_only<T>(work: impl FnOnce() -> T + std::panic::UnwindSafe) -> T {
    run(true, work, |_| None)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotDone {
    Slow,
    /// Others' data, functions or doings have spoilt it.
    Spoilt,
}

/// Runs `work` as [`read_only`] does. It counts as not done if it takes longer than `most`, or ends by an
/// ERROR of the server's that others' data, functions or doings may cause: not one of [`NOT_OF_THE_WORK`].
pub(in crate::pg) fn read_only_if_possible<T>(
    most: Duration,
    work: impl FnOnce() -> T + std::panic::UnwindSafe,
) -> Result<T, NotDone> {
    let timed = || {
        let _timer = Timer::start(most);
        Ok(work())
    };
    run(true, timed, |error| match error {
        _ if Timer::has_ended(error) => Some(Err(NotDone::Slow)),
        Caught::OfServer(_) if !error.is_of_class(&NOT_OF_THE_WORK) => Some(Err(NotDone::Spoilt)),
        _ => None,
    })
}

/// Classes of ERRORs, each named by one of them, that say nothing of the work but of the session or the
/// server. ERRORs that functions raise may be in any other class.
const NOT_OF_THE_WORK: [PgSqlErrorCode; 5] = [
    PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
    PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
    PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
    PgSqlErrorCode::ERRCODE_IO_ERROR,
    PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
];

/// More bytes than the server allocates to begin a subtransaction.
const MEMORY_TO_BEGIN: usize = 256 << 10;

/// Runs `work` in a subtransaction. What it does stays, unless it is `read_only` or ends by an ERROR, which
/// is raised again unless `instead` gives a result for it.
pub(in crate::pg) fn run<T>(
    read_only: bool,
    work: impl FnOnce() -> T + std::panic::UnwindSafe,
    instead: impl FnOnce(&Caught) -> Option<T>,
) -> T {
    // SAFETY: reads variables of this backend.
    let (context, owner) = unsafe { (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner) };
    // An earlier one may have ended for want of memory.
    or_raise(memory::begin());
    // The server ends a session in which a subtransaction has begun by half.
    drop(or_raise(memory::hold(MEMORY_TO_BEGIN)));
    // SAFETY: ended by exactly one of the calls below.
    unsafe {
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        if read_only {
            // Put back by the end of the subtransaction.
            pg_sys::XactReadOnly = true;
        }
    }
    let kept = KeptProgress::now();
    // No RESET lets the work write.
    let reset_before = read_only.then(|| compat::reset_to_read_only(true));
    let result = catch(work);
    if let Some(before) = reset_before {
        compat::reset_to_read_only(before);
    }
    let stays = result.is_ok() && !read_only;
    // As PL/pgSQL does, memory context and resource owner are put back by hand: the end of a subtransaction
    // leaves its parent's.
    // SAFETY: begun above. The result and the copy of an ERROR do not belong to the subtransaction; context
    // and owner belong to the caller, whose transaction goes on.
    unsafe {
        if stays {
            pg_sys::ReleaseCurrentSubTransaction();
        } else {
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
    }
    if !stays {
        kept.put_back();
    }
    match result {
        Ok(result) => result,
        // Only now: this looks at catalogs, and may raise an ERROR itself.
        Err(caught) => instead(&caught).unwrap_or_else(|| caught.rethrow()),
    }
}
