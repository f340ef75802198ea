//! A `jsonb` argument as its text, parsed where a bad number can be answered properly.

use std::ffi::CStr;

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{FromDatum, pg_sys};

/// The text of a `jsonb` value, as the server prints it.
pub(crate) struct JsonbText(pub(crate) String);

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
            CStr::from_ptr(printed).to_string_lossy().into_owned()
        };
        Some(Self(text))
    }
}

// SAFETY: read through FromDatum, as pgrx reads its own JsonB.
unsafe impl<'fcx> ArgAbi<'fcx> for JsonbText {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: an argument declared as jsonb.
        unsafe { arg.unbox_arg_using_from_datum() }.unwrap_or_else(|| Self("{}".to_owned()))
    }
}

// SAFETY: only functions whose SQL is written by hand take it.
unsafe impl SqlTranslatable for JsonbText {
    const TYPE_IDENT: &'static str = "JsonbText";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("jsonb"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::literal("jsonb")));
}
