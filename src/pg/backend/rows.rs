//! Rows to the server, built from the declared columns by the call's own result descriptor.
//!
//! The catalog says which attributes a row has. One that the library does not know by name and type becomes
//! NULL, and what the catalog does not know is left out. So a newer library serves an older catalog, as long
//! as no column changes its type.

use io_probe_surface::row::{Column, Row};
use io_probe_surface::value::{SqlType, SqlValue};
use pgrx::callconv::{CallCx, RetAbi};
use pgrx::{IntoDatum, PgMemoryContexts, PgTupleDesc, pg_sys};

use crate::error::Result;
use crate::pg::backend::argument::in_signatures;
use crate::pg::backend::encoding::{Text, text_datum};
use crate::pg::backend::rethrow::answer;
use crate::pg::backend::{JsonbText, interrupts};

/// The rows of a set-returning function, complete before the first is returned.
pub(crate) struct Rows {
    columns: Vec<Column>,
    rows: Box<dyn Iterator<Item = Vec<SqlValue>>>,
}

impl Rows {
    /// The rows of what succeeds, or the ERROR of what fails.
    pub(crate) fn answer<R: Row + 'static>(items: impl FnOnce() -> Result<Vec<R>>) -> Self {
        let rows = answer(items).into_iter().map(|item| {
            let mut values = Vec::new();
            item.put(&mut values);
            values
        });
        Self { columns: R::TYPE.columns(), rows: Box::new(rows) }
    }

    /// Fills the call's result.
    ///
    /// # Safety
    /// `call` must be the running call of a set-returning function.
    unsafe fn put(self, call: pg_sys::FunctionCallInfo) {
        // SAFETY: the caller vouches for the call. InitMaterializedSRF raises an ERROR unless the
        // caller accepts a set, and leaves a descriptor and a tuple store in the result info.
        let result = unsafe {
            pg_sys::InitMaterializedSRF(call, 0);
            &*(*call).resultinfo.cast::<pg_sys::ReturnSetInfo>()
        };
        // SAFETY: a descriptor, which outlives the call.
        let places = self.places(&unsafe { PgTupleDesc::from_pg_copy(result.setDesc) });
        let mut nulls = vec![false; places.len()];
        let mut datums = vec![pg_sys::Datum::null(); places.len()];
        let mut row_memory = PgMemoryContexts::new("pg_io_probe row");
        for mut row in self.rows {
            interrupts::check();
            // SAFETY: each attribute has a datum of its type, or NULL. The store copies them.
            unsafe {
                row_memory.switch_to(|_| {
                    for (attribute, place) in places.iter().enumerate() {
                        let value = place.map(|place| std::mem::replace(&mut row[place], SqlValue::Null));
                        let found = value.and_then(datum);
                        nulls[attribute] = found.is_none();
                        datums[attribute] = found.unwrap_or(pg_sys::Datum::null());
                    }
                });
                pg_sys::tuplestore_putvalues(
                    result.setResult,
                    result.setDesc,
                    datums.as_mut_ptr(),
                    nulls.as_mut_ptr(),
                );
                row_memory.reset();
            }
        }
    }

    /// Where the column of each attribute is; None if none is declared with its name and type.
    fn places(&self, attributes: &PgTupleDesc<'_>) -> Vec<Option<usize>> {
        let places = attributes.iter().map(|attribute| {
            let (name, of_type) = (attribute.name(), attribute.type_oid().value());
            self.columns.iter().position(|column| column.name == name && type_of(column) == of_type)
        });
        places.collect()
    }
}

fn type_of(column: &Column) -> pg_sys::Oid {
    match column.sql_type {
        SqlType::Boolean => pg_sys::BOOLOID,
        SqlType::Integer => pg_sys::INT4OID,
        SqlType::Bigint => pg_sys::INT8OID,
        SqlType::DoublePrecision => pg_sys::FLOAT8OID,
        SqlType::Text => pg_sys::TEXTOID,
        SqlType::TextArray => pg_sys::TEXTARRAYOID,
        SqlType::Regclass => pg_sys::REGCLASSOID,
        SqlType::Timestamptz => pg_sys::TIMESTAMPTZOID,
        SqlType::Jsonb => pg_sys::JSONBOID,
    }
}

/// A value as a datum of its type, in the present memory context; None for NULL.
fn datum(value: SqlValue) -> Option<pg_sys::Datum> {
    match value {
        SqlValue::Null => None,
        SqlValue::Bool(value) => value.into_datum(),
        SqlValue::Int4(value) => value.into_datum(),
        SqlValue::Int8(value) | SqlValue::Timestamp(value) => value.into_datum(),
        SqlValue::Float8(value) => value.into_datum(),
        SqlValue::Text(value) => text_datum(&value).into(),
        SqlValue::Texts(values) => values.into_iter().map(Text).collect::<Vec<_>>().into_datum(),
        SqlValue::Relation(value) => pg_sys::Oid::from(value).into_datum(),
        SqlValue::Json(value) => JsonbText::of(value).into_datum(),
    }
}

// SAFETY: a row set is returned by filling the tuple store of the call, which is what the server
// expects of a function that returns a set in materialize mode.
unsafe impl RetAbi for Rows {
    type Item = Self;
    type Ret = Self;

    unsafe fn check_fcinfo_and_prepare(_call: pg_sys::FunctionCallInfo) -> CallCx {
        // SAFETY: reads a variable of this backend.
        CallCx::WrappedFn(unsafe { pg_sys::CurrentMemoryContext })
    }

    fn to_ret(self) -> Self {
        self
    }

    unsafe fn box_ret_in_fcinfo(call: pg_sys::FunctionCallInfo, rows: Self) -> pg_sys::Datum {
        // SAFETY: pgrx hands us the running call.
        unsafe {
            rows.put(call);
            (*call).isnull = true;
        }
        pg_sys::Datum::null()
    }

    unsafe fn move_into_fcinfo_fcx(self, _call: pg_sys::FunctionCallInfo) {}

    unsafe fn fill_fcinfo_fcx(&self, _call: pg_sys::FunctionCallInfo) {}
}

in_signatures!(Rows);
