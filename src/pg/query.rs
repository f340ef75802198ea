//! A query of the user's, run with his rights in a subtransaction that may not write, and what it used.

use io_probe_core::clock::{Clock, Monotonic};
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgSqlErrorCode, PgTryBuilder, pg_sys, spi::Spi};

use super::error_passage::{Lookout, Raised};
use super::executor::{ParallelPlans, ReadOnlyPlans};
use super::progress::Kept;
use super::server::c_string;
use crate::error::{Error, Result};

/// Exactly one statement, and one that is not a command of its own. Otherwise what follows a semicolon would be
/// executed as well. `allowed` is a HINT.
pub(super) fn check_single(query: &str, allowed: &str) -> Result<()> {
    let text = c_string(query);
    // SAFETY: the text is a C string that outlives the use of the list. A syntax error is an ERROR.
    let (count, tag, into) = unsafe {
        let list = pg_sys::pg_parse_query(text.as_ptr());
        if list.is_null() {
            (0, pg_sys::NodeTag::T_Invalid, false)
        } else {
            let raw = (*(*list).elements).ptr_value.cast::<pg_sys::RawStmt>();
            let statement = (*raw).stmt;
            ((*list).length, (*statement).type_, selects_into(statement))
        }
    };
    match count {
        0 => return Err(Error::invalid("query must not be empty")),
        1 => {}
        _ => return Err(Error::unsupported(format!("query must be one statement, not {count}"))),
    }
    let query = matches!(
        tag,
        pg_sys::NodeTag::T_SelectStmt
            | pg_sys::NodeTag::T_InsertStmt
            | pg_sys::NodeTag::T_UpdateStmt
            | pg_sys::NodeTag::T_DeleteStmt
            | pg_sys::NodeTag::T_MergeStmt
    );
    if !query || into {
        return Err(Error::unsupported("query must not be a utility command").hint(allowed));
    }
    Ok(())
}

/// Would the statement make a table? INTO is on the leftmost SELECT of a set operation.
///
/// # Safety
/// `statement` must be a raw parse tree.
unsafe fn selects_into(mut statement: *const pg_sys::Node) -> bool {
    // SAFETY: a node of this tag is a SelectStmt, whose left argument is NULL or another one.
    unsafe {
        while !statement.is_null() && (*statement).type_ == pg_sys::NodeTag::T_SelectStmt {
            let select = statement.cast::<pg_sys::SelectStmt>();
            if !(*select).intoClause.is_null() {
                return true;
            }
            statement = (*select).larg.cast();
        }
    }
    false
}

/// Runs `work` in a subtransaction that may not write, and undoes it: what a read-only transaction is
/// allowed to change all the same (temporary tables, settings) does not stay either.
pub(super) fn read_only<T>(work: impl FnOnce() -> T + std::panic::UnwindSafe) -> T {
    run_read_only(work, |_| None)
}

/// The same for work that others' data, functions or doings can spoil: None after an ERROR, but for those of the kinds in
/// [`NOT_OF_THE_WORK`].
pub(super) fn read_only_if_possible<T>(work: impl FnOnce() -> T + std::panic::UnwindSafe) -> Option<T> {
    run_read_only(
        || Some(work()),
        |raised| {
            let class = raised.sqlstate()? & 0xfff;
            let spoilt = !NOT_OF_THE_WORK.into_iter().any(|other| other as u32 & 0xfff == class);
            spoilt.then_some(None)
        },
    )
}

/// Classes of ERRORs, each by one of them, that say nothing of the work but of the session or the server: a cancel, a
/// transaction that can't go on, too little memory, a failing disk, a defect. What functions raise may be in any other.
const NOT_OF_THE_WORK: [PgSqlErrorCode; 5] = [
    PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
    PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
    PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY,
    PgSqlErrorCode::ERRCODE_IO_ERROR,
    PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
];

/// `instead` may give a result for an ERROR of the server's; others are raised again.
fn run_read_only<T>(
    work: impl FnOnce() -> T + std::panic::UnwindSafe,
    instead: impl FnOnce(&Raised) -> Option<T>,
) -> T {
    // SAFETY: reads variables of this backend.
    let (context, owner) = unsafe { (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner) };
    // The pattern of PL/pgSQL's exception blocks: memory context and resource owner are put back by
    // hand, since the end of a subtransaction leaves its parent's.
    let put_back = move || {
        // SAFETY: both belong to the caller, whose transaction goes on.
        unsafe {
            pg_sys::MemoryContextSwitchTo(context);
            pg_sys::CurrentResourceOwner = owner;
        }
    };
    // SAFETY: ended by exactly one of the two calls below.
    unsafe {
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        // Put back by the end of the subtransaction.
        pg_sys::XactReadOnly = true;
    }
    let kept = Kept::now();
    let plans = ReadOnlyPlans::begin();
    let lookout = Lookout::begin();
    let result = PgTryBuilder::new(std::panic::AssertUnwindSafe(|| Ok(work())))
        .catch_rust_panic(|error| Err(Box::new(error)))
        .catch_others(|error| Err(Box::new(error)))
        .execute();
    let raised = lookout.end();
    drop(plans);
    let result = match result {
        Ok(result) => {
            raised.forget();
            result
        }
        Err(error) => {
            let is_servers = matches!(*error, CaughtError::PostgresError(_));
            match is_servers.then(|| instead(&raised)).flatten() {
                Some(result) => {
                    raised.forget();
                    result
                }
                None => roll_back(*error, raised, put_back),
            }
        }
    };
    // SAFETY: begun above. The result is Rust's own, so nothing of the subtransaction is needed.
    unsafe { pg_sys::RollbackAndReleaseCurrentSubTransaction() };
    put_back();
    kept.put_back();
    result
}

fn roll_back(error: CaughtError, raised: Raised, put_back: impl Fn()) -> ! {
    // SAFETY: begun in `read_only`.
    unsafe { pg_sys::RollbackAndReleaseCurrentSubTransaction() };
    put_back();
    match error {
        CaughtError::PostgresError(_) => raised.complete_next(),
        // One of ours, which has all that it needs.
        _ => raised.forget(),
    }
    error.rethrow()
}

/// What a query took and used, from its parsing to its end, parallel workers included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    /// Time in nanoseconds.
    pub(crate) elapsed_ns: u64,
    /// Rows that it returned.
    pub(crate) rows: u64,
    /// Whether it, or a query inside it, was executed under a plan for parallel workers.
    pub(crate) parallel: bool,
    /// The server's counters of blocks.
    pub(crate) blocks: pg_sys::BufferUsage,
    /// Bytes of WAL.
    pub(crate) wal_bytes: u64,
}

/// One statement, and no utility command. What writes is refused when it runs.
pub(crate) fn check(query: &str) -> Result<()> {
    check_single(query, "SELECT and VALUES can be watched.")
}

/// Runs a query that [`check`] has passed, and throws its rows away one by one: they take no memory.
pub(crate) fn discard(query: &str) -> Used {
    let statement = c_string(query);
    read_only(move || {
        // The query may call for another one to be watched.
        let plans = ParallelPlans::begin();
        let started = Monotonic.now();
        // SAFETY: both are this backend's own counters.
        let (blocks, wal) = unsafe { (pg_sys::pgBufferUsage, pg_sys::pgWalUsage) };
        let rows = Spi::connect(|_| {
            // SAFETY: connected to SPI; the statement is a C string; the receiver is a static one of the server's
            // that drops all it gets. Not read-only by SPI's word, which would refuse volatile functions' own
            // snapshots: the subtransaction sees to that.
            unsafe {
                let options = pg_sys::SPIExecuteOptions {
                    dest: pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestNone),
                    ..Default::default()
                };
                let result = pg_sys::SPI_execute_extended(statement.as_ptr(), &options);
                if result < 0 {
                    pgrx::error!("could not execute the query: {result}");
                }
                pg_sys::SPI_processed
            }
        });
        // SAFETY: as above; the difference is between two states of the same counters.
        let (blocks, wal_bytes) = unsafe {
            let mut difference = pg_sys::BufferUsage::default();
            pg_sys::BufferUsageAccumDiff(&mut difference, &raw const pg_sys::pgBufferUsage, &blocks);
            (difference, pg_sys::pgWalUsage.wal_bytes.wrapping_sub(wal.wal_bytes))
        };
        Used { elapsed_ns: Monotonic.now() - started, rows, parallel: plans.seen(), blocks, wal_bytes }
    })
}
