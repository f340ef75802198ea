//! Arguments of a bounded size. The size is checked before anything is decompressed or copied.

use std::ffi::{CStr, c_char};

use io_probe_core::run::memory;
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::datum::UnboxDatum;
use pgrx::{Array, FromDatum, pg_sys};

use crate::error::{Error, or_raise};

/// Most bytes of an argument that is not an [`UpTo`].
pub(in crate::pg) const MOST_BYTES: usize = 1 << 20;

/// Most elements of an array: NULLs take a bit each there, and many bytes here.
const MOST_ELEMENTS: usize = 10_000;

/// What an argument of a type of variable length is read as, from its text. Functions take it as an Option,
/// which is None for NULL.
pub(in crate::pg) trait Argument: Sized {
    /// The server's function that makes a text of it.
    const OUTPUT: u32 = pg_sys::F_TEXTOUT;

    /// Reads its text.
    ///
    /// # Safety
    /// It must be a valid C string.
    unsafe fn read(printed: *const c_char) -> Self;
}

/// Reads an argument that has at most `most` bytes, decompressed and printed; an ERROR if it has more.
///
/// # Safety
/// The argument must be of a type that `T` is read from, and not NULL.
pub(in crate::pg) unsafe fn read<T: Argument>(arg: Arg<'_, '_>, most: usize) -> T {
    let number = arg.index() + 1;
    // SAFETY: the caller vouches for the type. The output function gives a C string.
    unsafe {
        let printed = pg_sys::OidOutputFunctionCall(pg_sys::Oid::from(T::OUTPUT), datum(arg, most));
        refuse_more(number, CStr::from_ptr(printed).count_bytes(), "bytes", most);
        let read = T::read(printed);
        pg_sys::pfree(printed.cast());
        read
    }
}

/// The datum of an argument that has at most `most` bytes, decompressed; an ERROR if it has more.
///
/// # Safety
/// The argument must be of a type of variable length, and not NULL.
unsafe fn datum(arg: Arg<'_, '_>, most: usize) -> pg_sys::Datum {
    let number = arg.index() + 1;
    // SAFETY: any datum can be looked at, and the caller vouches for its type.
    unsafe {
        let Some(datum) = arg.unbox_arg_using_from_datum::<pg_sys::Datum>() else {
            unreachable!("an argument that may be NULL is an Option")
        };
        let bytes = pg_sys::toast_raw_datum_size(datum).saturating_sub(pg_sys::VARHDRSZ);
        refuse_more(number, bytes, "bytes", most);
        or_raise(memory::begin());
        datum
    }
}

fn refuse_more(number: usize, found: usize, units: &str, most: usize) {
    if found > most {
        Error::larger(format!("argument {number}"), found, units, most).raise();
    }
}

/// Lets functions name a type in their signatures. Their SQL is written by hand, so pgrx never asks how SQL
/// calls that type.
macro_rules! in_signatures {
    ($type:ty $(, $parameter:ident)?) => {
        const _: () = {
            use pgrx::pgrx_sql_entity_graph::metadata::{
                ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
            };
            // SAFETY: never used.
            unsafe impl$(<$parameter>)? SqlTranslatable for $type {
                const TYPE_IDENT: &'static str = stringify!($type);
                const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
                const ARGUMENT_SQL: std::result::Result<SqlMappingRef, ArgumentError> =
                    Ok(SqlMappingRef::Skip);
                const RETURN_SQL: std::result::Result<ReturnsRef, ReturnsError> =
                    Ok(ReturnsRef::One(SqlMappingRef::Skip));
            }
        };
    };
}

macro_rules! as_argument {
    ($type:ty) => {
        // SAFETY: read as the function's SQL declares it.
        unsafe impl<'fcx> pgrx::callconv::ArgAbi<'fcx> for $type {
            unsafe fn unbox_arg_unchecked(arg: pgrx::callconv::Arg<'_, 'fcx>) -> Self {
                // SAFETY: of that type, and not NULL.
                unsafe { $crate::pg::backend::argument::read(arg, $crate::pg::backend::argument::MOST_BYTES) }
            }
        }
        $crate::pg::backend::argument::in_signatures!($type);
    };
}

pub(in crate::pg) use {as_argument, in_signatures};

/// An argument of up to `MIB` MiB.
pub(crate) struct UpTo<const MIB: usize, T>(pub(crate) T);

// SAFETY: as that of `T`.
unsafe impl<'fcx, const MIB: usize, T: Argument> ArgAbi<'fcx> for UpTo<MIB, T> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: an argument declared as `T` is, and not NULL.
        Self(unsafe { read(arg, MIB << 20) })
    }
}

in_signatures!(UpTo<16, T>, T);
in_signatures!(UpTo<64, T>, T);

/// The elements of an array.
pub(crate) struct Elements<T>(pub(crate) Vec<Option<T>>);

// SAFETY: an array of `T`, as the function's SQL declares it.
unsafe impl<'fcx, T> ArgAbi<'fcx> for Elements<T>
where
    for<'arr> T: UnboxDatum<As<'arr> = T> + 'arr,
{
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        let number = arg.index() + 1;
        // SAFETY: of that type, and not NULL.
        let array = unsafe { Array::<'_, T>::from_datum(datum(arg, MOST_BYTES), false) };
        let array = array.unwrap_or_else(|| unreachable!("it is not NULL"));
        refuse_more(number, array.len(), "elements", MOST_ELEMENTS);
        Self(array.iter().collect())
    }
}

in_signatures!(Elements<T>, T);
