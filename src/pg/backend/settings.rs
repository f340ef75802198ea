//! Settings: those that hold for the time of a call, and whether the server took what a session began with.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::backend::encoding::c_string;
use crate::pg::compat;

/// How long to wait for a lock (`lock_timeout`) where nobody should have one: somebody may have come a moment
/// ago.
pub(in crate::pg) const BRIEF: &str = "100ms";

/// Calls `work` while these settings have these values, as SET would give them; an ERROR puts them back as
/// well.
pub(crate) fn with<T>(values: &[(&CStr, String)], work: impl FnOnce() -> T) -> T {
    // SAFETY: values for the time of a nesting level, which an ERROR in between ends as well; names and
    // values are C strings.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        for (name, value) in values {
            pg_sys::set_config_option(
                name.as_ptr(),
                c_string(value).as_ptr(),
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

/// Units in which an amount may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Units {
    /// B, kB, MB, GB, TB; bytes without one.
    Bytes,
    /// us, ms, s, min, h, d; milliseconds without one.
    Milliseconds,
}

/// An amount as the server reads that of a setting. Err holds its hint, if it has one.
pub(crate) fn amount(text: &str, units: Units) -> Result<f64, Option<String>> {
    let flags = match units {
        Units::Bytes => pg_sys::GUC_UNIT_BYTE,
        Units::Milliseconds => pg_sys::GUC_UNIT_MS,
    };
    let (mut value, mut hint) = (0.0, std::ptr::null());
    // SAFETY: the text is a C string, and both results are there to be written.
    let read = unsafe { pg_sys::parse_real(c_string(text).as_ptr(), &mut value, flags as i32, &mut hint) };
    if read {
        return Ok(value);
    }
    // SAFETY: a hint is a constant C string in ASCII.
    Err((!hint.is_null()).then(|| unsafe { CStr::from_ptr(hint) }.to_string_lossy().into_owned()))
}

/// A setting of which the server refused the value that the session began with.
///
/// A value may come before the library that defines its setting, and is judged when that is loaded: who gave
/// it, and what it is. One that is refused leaves the default: what it had taken the place of, the server no
/// longer knows.
pub(crate) struct Refused {
    pub(crate) name: &'static CStr,
    source: pg_sys::GucSource::Type,
}

impl Refused {
    /// Defines the setting by `define`: was its value refused?
    pub(crate) fn when_defined(name: &'static CStr, define: impl FnOnce()) -> Option<Self> {
        let before = compat::sources(name);
        define();
        let (_, source) = before?;
        // Whatever SET has put there meanwhile, RESET would show what is below.
        Some(Self { name, source }).filter(|refused| !refused.is_replaced())
    }

    /// Does it count? A value of SET, that of a function too, is one that the server has judged.
    pub(crate) fn counts(&self) -> bool {
        let set = compat::sources(self.name)
            .is_some_and(|(present, _)| present > pg_sys::GucSource::PGC_S_OVERRIDE);
        !set && !self.is_replaced()
    }

    /// Is there a value from where the refused one came, or from where it would have taken precedence?
    fn is_replaced(&self) -> bool {
        compat::sources(self.name).is_some_and(|(_, reset)| reset >= self.source)
    }

    /// Did it come with the connection, as PGOPTIONS does?
    pub(crate) fn is_of_connection(&self) -> bool {
        self.source == pg_sys::GucSource::PGC_S_CLIENT
    }
}
