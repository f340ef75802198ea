//! A time as an argument of type `text`. The server's `interval` takes a number without a unit for seconds,
//! and a function that takes an `interval` does not see that.

use std::ffi::c_char;

use pgrx::{FromDatum, datum, pg_sys};

use crate::error::Error;
use crate::pg::backend::argument::{Argument, as_argument};
use crate::pg::backend::encoding::{Text, c_string};
use crate::pg::backend::rethrow::answer;
use crate::pg::settings;

/// A time, as the server's `interval` has it.
pub(crate) struct SqlInterval(pub(in crate::pg) datum::Interval);

impl SqlInterval {
    /// Its microseconds, of which a month has 30 days.
    pub(crate) fn as_micros(&self) -> i128 {
        self.0.as_micros()
    }
}

impl Argument for SqlInterval {
    unsafe fn read(printed: *const c_char) -> Self {
        // SAFETY: the caller vouches for it.
        let text = unsafe { Text::read(printed) };
        answer(|| {
            if is_number(&text) {
                return Err(Error::invalid(format!("the time \"{}\" has no unit", &*text))
                    .hint("Write '10 s' or '1 day', for example."));
            }
            let text = c_string(&text);
            // SAFETY: the input function of interval takes a C string, no parameter and no modifier, and
            // gives an interval.
            let interval = settings::with(&[settings::OWN_INTERVALS], || unsafe {
                let input = pg_sys::Oid::from(pg_sys::F_INTERVAL_IN);
                let text = text.as_ptr().cast_mut();
                let datum = pg_sys::OidInputFunctionCall(input, text, pg_sys::InvalidOid, -1);
                datum::Interval::from_datum(datum, false)
            });
            Ok(Self(interval.unwrap_or_else(|| unreachable!("it is not NULL"))))
        })
    }
}

as_argument!(SqlInterval);

/// Is there no unit in a text, but a number other than 0? A colon parts hours from minutes; the server skips
/// what else is no letter.
fn is_number(text: &str) -> bool {
    let is_unit = |c: char| c == ':' || !c.is_ascii() || c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E');
    text.contains(|c| matches!(c, '1'..='9')) && !text.contains(is_unit)
}
