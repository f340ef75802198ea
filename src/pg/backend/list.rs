//! Lists of the server's.

use pgrx::pg_sys;

/// The elements of a list; none for NULL.
///
/// # Safety
/// `list` must be NULL, or a list that stays as it is for as long as its elements are used.
pub(in crate::pg) unsafe fn elements<'a>(list: *const pg_sys::List) -> &'a [pg_sys::ListCell] {
    // SAFETY: the caller vouches for it; a list has as many elements as it says.
    unsafe {
        match list.as_ref() {
            Some(list) => std::slice::from_raw_parts(list.elements, list.length as usize),
            None => &[],
        }
    }
}
