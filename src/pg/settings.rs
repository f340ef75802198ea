//! Settings that hold for the time of a call.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

/// Under which names are the server's own, dates are written as they are read, and nobody is waited for: who
/// has a lock may have come a moment ago.
pub(in crate::pg) const PLAIN: [(&CStr, &str); 3] =
    [(c"search_path", "pg_catalog, pg_temp"), (c"datestyle", "ISO"), (c"lock_timeout", "100ms")];

/// Calls `work` while these settings have these values in ASCII, as SET would give them; an ERROR puts them
/// back as well.
pub(in crate::pg) fn with<T>(values: &[(&CStr, &str)], work: impl FnOnce() -> T) -> T {
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
        let result = work();
        pg_sys::AtEOXact_GUC(true, level);
        result
    }
}
