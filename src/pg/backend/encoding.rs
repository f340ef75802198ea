//! Text between Rust, where it is UTF-8, and the database, which has an encoding of its own.
//!
//! What can't be converted is replaced: by U+FFFD in Rust, by a question mark in the database. So a name that
//! can't be shown prevents no probe. But replaced text has another meaning. So it is refused as an argument
//! ([`argument_text`]), and not looked up ([`name`]). SQL_ASCII is not converted, but taken for UTF-8.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ops::Deref;

use io_probe_core::run::memory;
use pgrx::datum::UnboxDatum;
use pgrx::{IntoDatum, pg_sys};

use crate::error::{Error, or_raise};
use crate::pg::backend::argument::{Argument, as_argument};

const UTF8: c_int = pg_sys::pg_enc::PG_UTF8 as c_int;
const SQL_ASCII: c_int = pg_sys::pg_enc::PG_SQL_ASCII as c_int;

/// The encoding of the database, if it has one, and another than UTF-8.
pub(in crate::pg) fn own_encoding() -> Option<c_int> {
    // SAFETY: reads a variable of this backend.
    let encoding = unsafe { pg_sys::GetDatabaseEncoding() };
    (encoding != UTF8 && encoding != SQL_ASCII).then_some(encoding)
}

fn is_utf8() -> bool {
    // SAFETY: reads a variable of this backend.
    unsafe { pg_sys::GetDatabaseEncoding() == UTF8 }
}

/// Most bytes of a text of the server's: no more can be imported, either.
const MOST_BYTES: usize = 64 << 20;

/// Copies a C string of the server, which is in the encoding of the database. More than [`MOST_BYTES`], or
/// than there is memory for, is an ERROR.
///
/// # Safety
/// `string` must be a valid C string.
pub(in crate::pg) unsafe fn text(string: *const c_char) -> String {
    // SAFETY: the caller vouches for it.
    let bytes = unsafe { CStr::from_ptr(string) }.to_bytes();
    if bytes.len() > MOST_BYTES {
        Error::larger("a text", bytes.len(), "bytes", MOST_BYTES).raise();
    }
    decoded(bytes)
}

/// Copies what a lookup returned; None if it returned NULL.
///
/// # Safety
/// `string` must be NULL or a valid C string.
pub(in crate::pg) unsafe fn text_or_none(string: *const c_char) -> Option<String> {
    // SAFETY: the caller vouches for it.
    (!string.is_null()).then(|| unsafe { text(string) })
}

/// Copies the start of a C string of the server, up to 10,000 bytes: however long it is, that is no ERROR.
///
/// # Safety
/// `string` must be a valid C string.
pub(in crate::pg) unsafe fn start_of(string: *const c_char) -> String {
    // SAFETY: the caller vouches for it.
    let bytes = unsafe { CStr::from_ptr(string) }.to_bytes();
    decoded(&bytes[..bytes.len().min(10_000)])
}

/// Copies an argument, as [`text`] does; an ERROR if it can't be converted to UTF-8.
///
/// # Safety
/// `string` must be a valid C string.
pub(in crate::pg) unsafe fn argument_text(string: *const c_char) -> String {
    // SAFETY: the caller vouches for it.
    let (text, bytes) = unsafe { (text(string), CStr::from_ptr(string)) };
    if encoded(&text) != bytes.to_bytes() {
        Error::untranslatable("an argument has characters that can't be converted to UTF-8").raise();
    }
    text
}

/// Text as a C string in the encoding of the database, cut at a NUL.
pub(in crate::pg) fn c_string(text: &str) -> CString {
    joined(&[&encoded(text.split('\0').next().unwrap_or_default())])
}

/// These parts, in which there is no NUL, as one C string.
pub(in crate::pg) fn joined(parts: &[&[u8]]) -> CString {
    let mut bytes = or_raise(memory::list_of(parts.iter().map(|part| part.len()).sum::<usize>() + 1));
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes.push(0);
    CString::from_vec_with_nul(bytes).unwrap_or_default()
}

/// Adds bytes; an ERROR if there is no room for them.
fn append(bytes: &mut Vec<u8>, more: &[u8]) {
    or_raise(memory::make_room(bytes, more.len()));
    bytes.extend_from_slice(more);
}

/// A name to look up, in the encoding of the database. None if something was replaced, in either direction.
pub(in crate::pg) fn name(text: &str) -> Option<CString> {
    // No name is as long, in any encoding.
    if text.len() > 4 * pg_sys::NAMEDATALEN as usize {
        return None;
    }
    let bytes = encoded(text);
    let is_whole = is_utf8() || !text.contains(char::REPLACEMENT_CHARACTER) && decoded(&bytes) == text;
    CString::new(bytes.into_owned()).ok().filter(|_| is_whole)
}

/// UTF-8 of text in the encoding of the database.
fn decoded(bytes: &[u8]) -> String {
    const UNKNOWN: &str = "\u{fffd}";
    let converted = own_encoding().map(|own| convert(bytes, own, UTF8, UNKNOWN.as_bytes()));
    let bytes = converted.as_deref().unwrap_or(bytes);
    let mut text = or_raise(memory::list_of(bytes.len()));
    for chunk in bytes.utf8_chunks() {
        append(&mut text, chunk.valid().as_bytes());
        append(&mut text, if chunk.invalid().is_empty() { "" } else { UNKNOWN }.as_bytes());
    }
    // SAFETY: valid pieces of UTF-8, one after the other.
    unsafe { String::from_utf8_unchecked(text) }
}

/// Text in the encoding of the database.
fn encoded(text: &str) -> Cow<'_, [u8]> {
    match own_encoding() {
        Some(own) => convert(text.as_bytes(), UTF8, own, b"?").into(),
        None => text.as_bytes().into(),
    }
}

/// A query of one relation, whose name is in the encoding of the database already: `what FROM ONLY name
/// condition`.
pub(in crate::pg) fn query_of(what: &str, name: &CStr, condition: &str) -> CString {
    joined(&[&encoded(what), b" FROM ONLY ", name.to_bytes(), b" ", &encoded(condition)])
}

/// Most bytes that are converted at a time.
const PIECE: usize = 1 << 16;

/// `text` in another encoding, with `unknown` for each character that it lacks, and for what is no character.
fn convert(text: &[u8], from: c_int, to: c_int, unknown: &[u8]) -> Vec<u8> {
    let mut converted = or_raise(memory::list_of(text.len()));
    if text.is_ascii() {
        append(&mut converted, text);
        return converted;
    }
    // SAFETY: a lookup in the catalogs, which gives 0 if there is none.
    let procedure = unsafe { pg_sys::FindDefaultConversionProc(from, to) };
    if procedure == pg_sys::InvalidOid {
        for byte in text {
            append(&mut converted, if byte.is_ascii() { std::slice::from_ref(byte) } else { unknown });
        }
        return converted;
    }
    // The server requires this size.
    let mut buffer = vec![0; (text.len().min(PIECE) + 1) * pg_sys::MAX_CONVERSION_GROWTH as usize];
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.len().min(PIECE);
        // SAFETY: the procedure is for these encodings. It reads as many bytes as it is told, and stops at
        // what it can't convert; the buffer has room for what becomes of them and a NUL.
        let done = unsafe {
            pg_sys::pg_do_encoding_conversion_buf(
                procedure,
                from,
                to,
                rest.as_ptr().cast_mut(),
                length as c_int,
                buffer.as_mut_ptr(),
                buffer.len() as c_int,
                true,
            )
        };
        let result = CStr::from_bytes_until_nul(&buffer).map(CStr::to_bytes).unwrap_or_default();
        append(&mut converted, result);
        let mut done = usize::try_from(done).unwrap_or(0).min(length);
        if done == 0 {
            append(&mut converted, unknown);
            // SAFETY: there is a character, or the beginning of one.
            let character = unsafe { pg_sys::pg_encoding_mblen(from, rest.as_ptr().cast()) };
            done = usize::try_from(character).unwrap_or(1).clamp(1, rest.len());
        }
        rest = &rest[done..];
    }
    converted
}

/// A datum of type text, in the present memory context.
pub(in crate::pg) fn text_datum(text: &str) -> pg_sys::Datum {
    let string = c_string(text);
    // SAFETY: a C string, which is copied.
    unsafe { pg_sys::cstring_to_text(string.as_ptr()) }.into()
}

/// A value of type `text`, or `json`: pgrx's own `&str` and `String` are for databases in UTF-8.
#[derive(Clone, Default)]
pub(crate) struct Text(pub(crate) String);

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Argument for Text {
    unsafe fn read(printed: *const c_char) -> Self {
        // SAFETY: the caller vouches for it.
        Self(unsafe { argument_text(printed) })
    }
}

impl IntoDatum for Text {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(text_datum(&self.0))
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}

// SAFETY: read as the argument is.
unsafe impl UnboxDatum for Text {
    type As<'src> = Self;

    unsafe fn unbox<'src>(datum: pgrx::datum::Datum<'src>) -> Self
    where
        Self: 'src,
    {
        // SAFETY: an element of an array of texts, which is an argument, that is not NULL.
        unsafe { Self::read(pg_sys::text_to_cstring(datum.sans_lifetime().cast_mut_ptr())) }
    }
}

as_argument!(Text);
