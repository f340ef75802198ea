//! Arguments of a bounded size. It is looked at before anything is decompressed or copied: Rust answers a lack of memory with
//! an abort, which the server takes for a crash.

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::datum::UnboxDatum;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{Array, FromDatum, pg_sys};

use super::reserve::with_reserve;
use crate::error::Error;

/// Most bytes of an argument, if it is not [`UpTo`] so many.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// Most elements of an array: NULLs take a bit each there, and many bytes here.
const MOST_ELEMENTS: usize = 10_000;

/// What an argument is read as.
pub(super) trait Argument: FromDatum {
    /// Reads a datum that is not NULL.
    ///
    /// # Safety
    /// It must be of a type that this is read from.
    unsafe fn read(datum: pg_sys::Datum) -> Option<Self> {
        // SAFETY: the caller vouches for it.
        unsafe { Self::from_datum(datum, false) }
    }
}

impl<T: UnboxDatum> Argument for Array<'_, T> {}

/// Reads an argument that has at most so many bytes, decompressed; an ERROR if it has more. None for NULL.
///
/// # Safety
/// The argument must be of a type of variable length, as `T` reads it.
pub(super) unsafe fn read<T: Argument>(arg: Arg<'_, '_>, most: usize) -> Option<T> {
    let number = arg.index() + 1;
    // SAFETY: any datum can be looked at, and the caller vouches for its type.
    unsafe {
        let Unread(datum) = arg.unbox_arg_using_from_datum()?;
        let bytes = pg_sys::toast_raw_datum_size(datum).saturating_sub(pg_sys::VARHDRSZ);
        if bytes > most {
            Error::too_large(format!("argument {number} is too large"))
                .detail(format!("It has {bytes} bytes, of at most {most}."))
                .raise();
        }
        with_reserve(|| T::read(datum))
    }
}

/// A datum as it comes.
struct Unread(pg_sys::Datum);

impl FromDatum for Unread {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        (!is_null).then_some(Self(datum))
    }
}

/// An argument of up to so many MiB.
pub(crate) struct UpTo<const MIB: usize, T>(pub(crate) T);

// SAFETY: read through FromDatum.
unsafe impl<'fcx, const MIB: usize, T: Argument + Default> ArgAbi<'fcx> for UpTo<MIB, T> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: an argument declared as `T` is.
        Self(unsafe { read(arg, MIB << 20) }.unwrap_or_default())
    }
}

// SAFETY: as that of `T`.
unsafe impl<const MIB: usize, T: SqlTranslatable> SqlTranslatable for UpTo<MIB, T> {
    const TYPE_IDENT: &'static str = T::TYPE_IDENT;
    const TYPE_ORIGIN: TypeOrigin = T::TYPE_ORIGIN;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = T::ARGUMENT_SQL;
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = T::RETURN_SQL;
}

/// The elements of an array.
pub(crate) struct Elements<T>(Vec<Option<T>>);

impl<T> Elements<T> {
    /// All of them.
    pub(crate) fn all(self) -> Vec<Option<T>> {
        self.0
    }
}

// SAFETY: read through FromDatum, as pgrx reads its own Vec.
unsafe impl<'fcx, T> ArgAbi<'fcx> for Elements<T>
where
    for<'arr> T: UnboxDatum<As<'arr> = T> + 'arr,
{
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        let number = arg.index() + 1;
        // SAFETY: an argument declared as an array of `T`.
        let Some(array) = (unsafe { read::<Array<'_, T>>(arg, MOST_BYTES) }) else { return Self(Vec::new()) };
        if array.len() > MOST_ELEMENTS {
            Error::too_large(format!("argument {number} is too large"))
                .detail(format!("It has {} elements, of at most {MOST_ELEMENTS}.", array.len()))
                .raise();
        }
        Self(array.iter().collect())
    }
}

// SAFETY: only functions whose SQL is written by hand take it.
unsafe impl<T> SqlTranslatable for Elements<T> {
    const TYPE_IDENT: &'static str = "Elements";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> =
        Err(ArgumentError::NotValidAsArgument("Elements"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::Skip));
}
