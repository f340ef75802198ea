//! A setting of which the server refused the value that the session began with.
//!
//! A value may come before the library that defines its setting. The server checks it when the library is
//! loaded. If it refuses the value, the default stands: the value that the refused one replaced is lost.

use std::ffi::CStr;

use pgrx::pg_sys;

use crate::pg::compat;

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

    /// Does the refusal count? Not after SET, or in a function that sets it: the server checked that value.
    pub(crate) fn counts(&self) -> bool {
        let set = compat::sources(self.name)
            .is_some_and(|(present, _)| present > pg_sys::GucSource::PGC_S_OVERRIDE);
        !set && !self.is_replaced()
    }

    /// Is there a value from the source of the refused one, or from one that takes precedence over it?
    fn is_replaced(&self) -> bool {
        compat::sources(self.name).is_some_and(|(_, reset)| reset >= self.source)
    }

    /// Did it come with the connection, as PGOPTIONS does?
    pub(crate) fn is_of_connection(&self) -> bool {
        self.source == pg_sys::GucSource::PGC_S_CLIENT
    }
}
