//! A query of the user's, before it is planned or run.

use std::ffi::{CStr, CString, c_char};

use pgrx::pg_sys;

use crate::error::{Error, Result};
use crate::pg::backend::argument::{Argument, as_argument};
use crate::pg::backend::encoding::joined;
use crate::pg::backend::nodes::elements;
use crate::pg::backend::rethrow::pointing_into;

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

const ALLOWED: &str =
    "Use SELECT or VALUES. INSERT, UPDATE, DELETE and MERGE can be planned, but not executed.";

/// Refuses all but one statement, which must not be a utility command: what follows a semicolon would be
/// executed as well. What writes is refused when it runs.
pub(in crate::pg) fn check_single(query: &Query) -> Result<()> {
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
    if tag == pg_sys::NodeTag::T_ExplainStmt {
        let error = Error::unsupported("query must not begin with EXPLAIN");
        return Err(error.hint("Pass the query itself, without EXPLAIN before it."));
    }
    if !is_query || into {
        return Err(Error::unsupported("query must not be a utility command").hint(ALLOWED));
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
