//! Rows to the server, built by attribute name from the call's own result descriptor.
//!
//! The catalog says which attributes a row has; a name that the library does not know becomes NULL,
//! a name that the catalog does not know is left out. So a newer library serves an older catalog. A
//! value travels as text through its type's input function: a call gives a few rows, and every type
//! is served alike.

use std::ffi::CString;
use std::ptr;

use pgrx::callconv::{CallCx, RetAbi};
use pgrx::{PgTupleDesc, pg_sys};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::Result;
use crate::pg::backend::argument::in_signatures;
use crate::pg::backend::encoding::c_string;
use crate::pg::backend::interrupts;
use crate::pg::backend::rethrow::answer;

/// The rows of a set-returning function, complete before the first is returned.
pub(crate) struct Rows(Vec<Map<String, Value>>);

impl Rows {
    /// One row for each item; its fields are the attributes.
    pub(crate) fn of<T: Serialize>(items: impl IntoIterator<Item = T>) -> Self {
        let row = |item| {
            interrupts::check();
            match serde_json::to_value(item) {
                Ok(Value::Object(row)) => row,
                other => unreachable!("rows are structures with named fields, not {other:?}"),
            }
        };
        Self(items.into_iter().map(row).collect())
    }

    /// The rows of what succeeds, or the ERROR of what fails.
    pub(crate) fn answer<T: Serialize>(items: impl FnOnce() -> Result<Vec<T>>) -> Self {
        answer(|| items().map(Self::of))
    }

    /// Fills the call's result.
    ///
    /// # Safety
    /// `call` must be the running call of a set-returning function.
    unsafe fn put(self, call: pg_sys::FunctionCallInfo) {
        // SAFETY: the caller vouches for the call. InitMaterializedSRF raises an ERROR unless the
        // caller accepts a set, and leaves a descriptor and a tuple store in the result info.
        unsafe {
            pg_sys::InitMaterializedSRF(call, 0);
            let result = (*call).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            let descriptor = PgTupleDesc::from_pg_copy((*result).setDesc);
            let types = pg_sys::TupleDescGetAttInMetadata((*result).setDesc);
            for row in &self.0 {
                interrupts::check();
                let tuple = tuple(row, &descriptor, types);
                pg_sys::tuplestore_puttuple((*result).setResult, tuple);
                pg_sys::heap_freetuple(tuple);
            }
        }
    }
}

/// A row as the server's tuple.
///
/// # Safety
/// `types` must be those of the descriptor.
unsafe fn tuple(
    row: &Map<String, Value>,
    descriptor: &PgTupleDesc<'_>,
    types: *mut pg_sys::AttInMetadata,
) -> pg_sys::HeapTuple {
    let value = |name: &str| Some(c_string(&as_text(row.get(name)?)?));
    let values: Vec<Option<CString>> = descriptor.iter().map(|attribute| value(attribute.name())).collect();
    let pointer =
        |value: &Option<CString>| value.as_ref().map_or(ptr::null_mut(), |value| value.as_ptr().cast_mut());
    let mut pointers: Vec<_> = values.iter().map(pointer).collect();
    // SAFETY: the caller vouches for the types. There is a C string or NULL for each attribute, which
    // outlives the call.
    unsafe { pg_sys::BuildTupleFromCStrings(types, pointers.as_mut_ptr()) }
}

/// A value as its type's input function reads it; None for NULL.
pub(in crate::pg) fn as_text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Array(items) => array_literal(items),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    })
}

fn array_literal(items: &[Value]) -> String {
    let quoted = items.iter().map(|item| match as_text(item) {
        Some(text) => format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"")),
        None => "NULL".to_owned(),
    });
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
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
