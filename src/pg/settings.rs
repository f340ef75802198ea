//! Settings that hold for the time of a call, and amounts as settings are written.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

/// Settings under which names are the server's own, dates are written as they are read, and no lock is waited
/// for long: another session may have taken one a moment ago.
pub(in crate::pg) const PLAIN: [(&CStr, &str); 3] =
    [OWN_NAMES, (c"datestyle", "ISO"), (c"lock_timeout", "100ms")];
pub(in crate::pg) const OWN_NAMES: (&CStr, &str) = (c"search_path", "pg_catalog, pg_temp");

/// NOTICEs are not sent.
pub(in crate::pg) const NO_NOTICES: (&CStr, &str) = (c"client_min_messages", "warning");

/// Intervals are always read and printed in the same form.
pub(in crate::pg) const OWN_INTERVALS: (&CStr, &str) = (c"intervalstyle", "postgres");

/// Settings under which the text of a value depends on the value alone, and a date that may be read in more
/// than one way is refused.
pub(in crate::pg) const OWN_FORMS: [(&CStr, &str); 4] =
    [OWN_INTERVALS, (c"datestyle", "ISO, YMD"), (c"timezone", "GMT"), (c"extra_float_digits", "1")];

/// Settings that hold until this is dropped, or an ERROR puts the earlier values back.
pub(in crate::pg) struct SettingsLevel {
    level: i32,
}

impl SettingsLevel {
    /// Gives settings these values in ASCII, as SET would.
    pub(in crate::pg) fn begin(values: &[(&CStr, &str)]) -> Self {
        // SAFETY: values for the time of a nesting level, which an ERROR in between ends as well; names and
        // values are C strings.
        unsafe {
            let level = pg_sys::NewGUCNestLevel();
            for (name, value) in values {
                let value = CString::new(*value).unwrap_or_default();
                pg_sys::set_config_option(
                    name.as_ptr(),
                    value.as_ptr(),
                    pg_sys::GucContext::PGC_USERSET,
                    pg_sys::GucSource::PGC_S_SESSION,
                    pg_sys::GucAction::GUC_ACTION_SAVE,
                    true,
                    0,
                    false,
                );
            }
            Self { level }
        }
    }
}

impl Drop for SettingsLevel {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return; // The transaction is about to abort, which ends the level.
        }
        // SAFETY: levels end in the reverse order of their beginnings.
        unsafe { pg_sys::AtEOXact_GUC(true, self.level) };
    }
}

pub(in crate::pg) fn with<T>(values: &[(&CStr, &str)], work: impl FnOnce() -> T) -> T {
    let _level = SettingsLevel::begin(values);
    work()
}

/// Gives a setting a value until the end of the present subtransaction, whoever may set it.
pub(in crate::pg) fn set_for_subtransaction(name: &CStr, value: &CStr) {
    // SAFETY: C strings; what is set for a subtransaction ends with it.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_LOCAL,
            true,
            0,
            false,
        );
    }
}

/// Units in which an amount may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Units {
    /// B, kB, MB, GB, TB; bytes without one.
    Bytes,
    /// us, ms, s, min, h, d; milliseconds without one.
    Milliseconds,
}

/// An amount as the server reads that of a setting; None if it is none.
pub(crate) fn amount(text: &str, units: Units) -> Option<f64> {
    let flags = match units {
        Units::Bytes => pg_sys::GUC_UNIT_BYTE,
        Units::Milliseconds => pg_sys::GUC_UNIT_MS,
    };
    // A text with a zero byte is no amount, and nor is an empty one.
    let text = CString::new(text).unwrap_or_default();
    let mut value = 0.0;
    // SAFETY: the text is a C string, the result is there to be written, and no hint is asked for.
    let is_one = unsafe { pg_sys::parse_real(text.as_ptr(), &mut value, flags as i32, std::ptr::null_mut()) };
    is_one.then_some(value)
}
