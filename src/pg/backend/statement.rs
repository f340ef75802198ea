//! A statement that is run through SPI, and its rows.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::backend::encoding::text_up_to;

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

    /// The text in the first column of each row, if it is not NULL; an ERROR if one has more bytes than
    /// `most`.
    pub(in crate::pg) fn texts(&self, most: usize) -> impl Iterator<Item = Option<String>> {
        (0..self.rows()).map(move |row| {
            // SAFETY: the table has these rows, and a column; a value is NULL or a C string, and is copied.
            unsafe {
                let value = pg_sys::SPI_getvalue(*(*self.table).vals.add(row), (*self.table).tupdesc, 1);
                (!value.is_null()).then(|| text_up_to(value, most))
            }
        })
    }

    /// The text of the one row; None for NULL; an ERROR if it has more bytes than `most`.
    pub(in crate::pg) fn one_text(&self, most: usize) -> Option<String> {
        if self.rows() != 1 {
            pgrx::error!("expected one row, not {}", self.rows());
        }
        self.texts(most).next().flatten()
    }

    /// The bigint of the one row.
    pub(in crate::pg) fn one_bigint(&self) -> i64 {
        let value = self.one_text(20).and_then(|text| text.parse().ok());
        value.unwrap_or_else(|| pgrx::error!("expected a number"))
    }

    fn rows(&self) -> usize {
        if self.table.is_null() { 0 } else { self.count as usize }
    }
}
