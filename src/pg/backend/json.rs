//! A `jsonb` value as its text, parsed where a bad number can be answered properly.

use std::ffi::c_char;
use std::ops::Deref;
use std::rc::Rc;

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::{IntoDatum, pg_sys};

use crate::pg::backend::argument::{Argument, as_argument};
use crate::pg::backend::encoding::{argument_text, c_string};

/// The text of a `jsonb` value, as the server prints it.
///
/// It may be large: there is one copy of it.
#[derive(Clone)]
pub(crate) struct JsonbText(Rc<String>);

impl JsonbText {
    pub(crate) fn of(text: String) -> Self {
        Self(Rc::new(text))
    }
}

impl Deref for JsonbText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Argument for JsonbText {
    const OUTPUT: u32 = pg_sys::F_JSONB_OUT;

    unsafe fn read(printed: *const c_char) -> Self {
        // SAFETY: the caller vouches for it.
        Self::of(unsafe { argument_text(printed) })
    }
}

as_argument!(JsonbText);

impl IntoDatum for JsonbText {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        let text = c_string(&self.0);
        // SAFETY: the input function of jsonb takes a C string, no parameter and no modifier.
        Some(unsafe {
            let input = pg_sys::Oid::from(pg_sys::F_JSONB_IN);
            pg_sys::OidInputFunctionCall(input, text.as_ptr().cast_mut(), pg_sys::InvalidOid, -1)
        })
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::JSONBOID
    }
}

// SAFETY: a jsonb datum, as the SQL function is declared.
unsafe impl BoxRet for JsonbText {
    unsafe fn box_into<'fcx>(self, call: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        match self.into_datum() {
            // SAFETY: of the present memory context, which outlives the call.
            Some(datum) => unsafe { call.return_raw_datum(datum) },
            None => call.return_null(),
        }
    }
}
