//! A `jsonb` value as its text, parsed where a bad number can be answered properly.

use std::ops::Deref;
use std::rc::Rc;

use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, IntoDatum, pg_sys};

use super::argument::{self, Argument};
use super::encoding::{argument_text, c_string};

/// The text of a `jsonb` value, as the server prints it.
///
/// It may be large: there is one copy of it.
#[derive(Clone)]
pub(crate) struct JsonbText(Rc<String>);

impl JsonbText {
    /// That of a text which is JSON.
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

impl Default for JsonbText {
    fn default() -> Self {
        Self::of("{}".to_owned())
    }
}

impl FromDatum for JsonbText {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _type: pg_sys::Oid,
    ) -> Option<Self> {
        if is_null {
            return None;
        }
        // SAFETY: the caller vouches for a jsonb datum; the output function gives a C string.
        let text = unsafe {
            let printed = pg_sys::OidOutputFunctionCall(pg_sys::Oid::from(pg_sys::F_JSONB_OUT), datum);
            let text = argument_text(printed);
            pg_sys::pfree(printed.cast());
            text
        };
        Some(Self::of(text))
    }
}

impl Argument for JsonbText {}

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

// SAFETY: read through FromDatum, as pgrx reads its own JsonB.
unsafe impl<'fcx> ArgAbi<'fcx> for JsonbText {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: an argument declared as jsonb.
        unsafe { argument::read(arg, argument::MOST_BYTES) }.unwrap_or_default()
    }
}

// SAFETY: only functions whose SQL is written by hand take it.
unsafe impl SqlTranslatable for JsonbText {
    const TYPE_IDENT: &'static str = "JsonbText";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("jsonb"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::literal("jsonb")));
}
