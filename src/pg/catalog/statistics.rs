//! What the catalogs say of a column's values. Whoever may maintain a table may have written it: from 18 on
//! statistics can be restored, and they need not be true, nor like those that ANALYZE makes.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::backend::encoding::text;

/// Most bounds of a histogram that ANALYZE makes (MAX_STATISTICS_TARGET and one more), and bytes of the
/// longest one (WIDTH_THRESHOLD).
const MOST_BOUNDS: usize = 10_001;
const LONGEST_BOUND: usize = 1024;

/// Most bytes of the values or numbers of a column that are looked at, as they are stored; and as text, which
/// may be a thousand times as long.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// The bounds of a column's histogram as text; whether the caller may see them is not looked at. None if
/// there are none, or they are not as ANALYZE makes them of this type, or too long.
pub(super) fn bounds(table: pg_sys::Oid, column: i16, of_type: pg_sys::Oid) -> Option<Vec<String>> {
    let kind = pg_sys::STATISTIC_KIND_HISTOGRAM;
    of_column(table, column, kind, pg_sys::ATTSTATSSLOT_VALUES, |slot| {
        let count = slot.nvalues as usize;
        if slot.valuetype != of_type || !(1..=MOST_BOUNDS).contains(&count) {
            return None;
        }
        let (mut length, mut by_value) = (0, false);
        let (mut output, mut _is_varlena) = (pg_sys::InvalidOid, false);
        // SAFETY: lookups of a type that a column has. The slot holds as many values as it says.
        let values = unsafe {
            pg_sys::get_typlenbyval(of_type, &mut length, &mut by_value);
            pg_sys::getTypeOutputInfo(of_type, &mut output, &mut _is_varlena);
            std::slice::from_raw_parts(slot.values, count)
        };
        let mut left = MOST_BYTES;
        let bounds = values.iter().map(|value| {
            // SAFETY: a value of that type, of which its function makes a C string, which is copied.
            unsafe {
                if pg_sys::datumGetSize(*value, by_value, length.into()) > LONGEST_BOUND {
                    return None;
                }
                let printed = pg_sys::OidOutputFunctionCall(output, *value);
                left = left.checked_sub(CStr::from_ptr(printed).count_bytes())?;
                let bound = text(printed);
                pg_sys::pfree(printed.cast());
                Some(bound)
            }
        });
        bounds.collect()
    })
}

pub(super) fn correlation(relation: pg_sys::Oid, column: i16) -> Option<f32> {
    let kind = pg_sys::STATISTIC_KIND_CORRELATION;
    of_column(relation, column, kind, pg_sys::ATTSTATSSLOT_NUMBERS, |slot| {
        // SAFETY: the slot holds as many numbers as it says.
        let found = (slot.nnumbers > 0).then(|| unsafe { *slot.numbers });
        found.filter(|correlation| correlation.abs() <= 1.0)
    })
}

/// What `read` makes of this kind of a column's statistics, if there are some.
#[allow(clippy::unnecessary_cast)] // from 19 on the cache is named by an i32
fn of_column<T>(
    relation: pg_sys::Oid,
    column: i16,
    kind: u32,
    flags: u32,
    read: impl FnOnce(&pg_sys::AttStatsSlot) -> Option<T>,
) -> Option<T> {
    // SAFETY: a lookup in a cache, in a transaction as calls and planning are, which gives NULL for what is
    // not there; the tuple is released, and the slot freed if it was filled.
    unsafe {
        let tuple = pg_sys::SearchSysCache3(
            pg_sys::SysCacheIdentifier::STATRELATTINH as i32,
            pg_sys::Datum::from(relation),
            pg_sys::Datum::from(column),
            pg_sys::Datum::from(false),
        );
        if tuple.is_null() {
            return None;
        }
        let mut slot = pg_sys::AttStatsSlot::default();
        let is_there =
            pg_sys::get_attstatsslot(&mut slot, tuple, kind as i32, pg_sys::InvalidOid, flags as i32);
        let found = if is_there { read(&slot) } else { None };
        if is_there {
            pg_sys::free_attstatsslot(&mut slot);
        }
        pg_sys::ReleaseSysCache(tuple);
        found
    }
}
