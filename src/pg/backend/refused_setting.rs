//! A setting of which the server refused the value that the session began with.
//!
//! A value may come before the library that defines its setting, and is judged when that is loaded: who gave
//! it, and what it is. One that is refused leaves the default: what it had taken the place of, the server no
//! longer knows.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::compat;

/// Such a setting.
pub(crate) struct RefusedSetting {
    pub(crate) name: &'static CStr,
    source: pg_sys::GucSource::Type,
}

impl RefusedSetting {
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
