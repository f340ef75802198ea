//! A query of the user's, run with his rights in a subtransaction that may not write, and what it used.

use std::ffi::{CStr, CString, c_char};

use io_probe_core::run::clock::{Clock, Monotonic};
use pgrx::{pg_sys, spi::Spi};

use crate::error::{Error, Result};
use crate::pg::backend::argument::{Argument, as_argument};
use crate::pg::backend::encoding::joined;
use crate::pg::backend::executor::ParallelPlans;
use crate::pg::backend::nodes::elements;
use crate::pg::backend::rethrow::pointing_into;
use crate::pg::backend::subtransaction::read_only;
use crate::pg::storage::buffers::Usage;

/// A query as the caller wrote it, in the encoding of the database: what is executed is never converted.
pub(crate) struct Query(CString);

impl Query {
    /// The query with `start` before it.
    pub(in crate::pg) fn after(&self, start: &str) -> CString {
        joined(&[start.as_bytes(), self.0.to_bytes()])
    }
}

impl Argument for Query {
    unsafe fn read(printed: *const c_char) -> Self {
        // SAFETY: the caller vouches for it.
        Self(joined(&[unsafe { CStr::from_ptr(printed) }.to_bytes()]))
    }
}

as_argument!(Query);

/// Refuses all but one statement, which must not be a utility command: what follows a semicolon would be
/// executed as well. What writes is refused when it runs. `allowed` is a HINT.
pub(crate) fn check_single(query: &Query, allowed: &str) -> Result<()> {
    // SAFETY: the text is a C string that outlives the use of the list. A syntax error is an ERROR. The list
    // holds raw parse trees.
    let (tag, into) = unsafe {
        let list = pointing_into(&query.0, || pg_sys::pg_parse_query(query.0.as_ptr()));
        match elements(list) {
            [] => return Err(Error::invalid("query must not be empty")),
            [only] => {
                let statement = (*only.ptr_value.cast::<pg_sys::RawStmt>()).stmt;
                ((*statement).type_, selects_into(statement))
            }
            several => {
                let count = several.len();
                return Err(Error::unsupported(format!("query must be one statement, not {count}")));
            }
        }
    };
    let is_query = matches!(
        tag,
        pg_sys::NodeTag::T_SelectStmt
            | pg_sys::NodeTag::T_InsertStmt
            | pg_sys::NodeTag::T_UpdateStmt
            | pg_sys::NodeTag::T_DeleteStmt
            | pg_sys::NodeTag::T_MergeStmt
    );
    if !is_query || into {
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

/// What a query took and used, from its parsing to its end, parallel workers included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    pub(crate) elapsed_ns: u64,
    pub(crate) rows: u64,
    /// Whether it, or a query inside it, was executed under a plan for parallel workers.
    pub(crate) parallel: bool,
    pub(crate) blocks: pg_sys::BufferUsage,
    pub(crate) wal_bytes: u64,
}

/// Runs a query that [`check_single`] has passed, and throws its rows away one by one: they take no memory.
pub(crate) fn discard(query: &Query) -> Used {
    let statement = query.0.as_c_str();
    read_only(move || {
        // The query may call for another one to be watched.
        let plans = ParallelPlans::begin();
        let started = Monotonic.now();
        let before = Usage::now();
        // SAFETY: this backend's own counter.
        let wal_before = unsafe { pg_sys::pgWalUsage.wal_bytes };
        let rows = Spi::connect(|_| {
            // SAFETY: connected to SPI; the statement is a C string; the receiver is a static one of the
            // server's that drops all it gets. The subtransaction prevents writes, not SPI's read_only, under
            // which volatile functions get no snapshots of their own.
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
        let mut usage = Usage::default();
        usage.add_since(before);
        // SAFETY: as above.
        let wal_bytes = unsafe { pg_sys::pgWalUsage.wal_bytes }.wrapping_sub(wal_before);
        let elapsed_ns = Monotonic.now() - started;
        Used { elapsed_ns, rows, parallel: plans.seen(), blocks: usage.0, wal_bytes }
    })
}
