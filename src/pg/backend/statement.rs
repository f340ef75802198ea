//! A statement that is run through SPI, and its rows.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::backend::encoding::text_or_none;

/// Runs a statement as it is written, for a caller that is connected to SPI. (The safe call for statements
/// that may write assigns a transaction id, which fails on a standby.)
pub(in crate::pg) fn run(statement: &CStr) -> StatementRows {
    // SAFETY: connected to SPI; the statement is a C string.
    unsafe {
        let result = pg_sys::SPI_execute(statement.as_ptr(), false, 0);
        if result < 0 {
            pgrx::error!("could not execute a statement: {result}");
        }
        StatementRows::of_spi()
    }
}

/// The rows that a statement has given, or how many it has written; until the end of the connection to SPI.
pub(in crate::pg) struct StatementRows {
    pub(in crate::pg) count: u64,
    table: *mut pg_sys::SPITupleTable,
}

impl StatementRows {
    /// The rows of the last statement.
    ///
    /// # Safety
    /// It must have been executed in the present connection to SPI.
    pub(in crate::pg) unsafe fn of_spi() -> Self {
        // SAFETY: variables of this backend, which the statement has set.
        unsafe { Self { count: pg_sys::SPI_processed, table: pg_sys::SPI_tuptable } }
    }

    /// The texts in the first column of the rows, without NULLs.
    pub(in crate::pg) fn texts(&self) -> impl Iterator<Item = String> {
        (0..self.rows()).filter_map(move |row| {
            // SAFETY: the table has these rows, and a column; a value is NULL or a C string, and is copied.
            unsafe {
                let table = &*self.table;
                text_or_none(pg_sys::SPI_getvalue(*table.vals.add(row), table.tupdesc, 1))
            }
        })
    }

    /// The text of the one row; None for NULL.
    pub(in crate::pg) fn one_text(&self) -> Option<String> {
        if self.rows() != 1 {
            pgrx::error!("expected one row, not {}", self.rows());
        }
        self.texts().next()
    }

    /// The bigint of the one row.
    pub(in crate::pg) fn one_bigint(&self) -> i64 {
        let value = self.one_text().and_then(|text| text.parse().ok());
        value.unwrap_or_else(|| pgrx::error!("expected a number"))
    }

    fn rows(&self) -> usize {
        if self.table.is_null() { 0 } else { self.count as usize }
    }
}
