//! Names that the user gives: one of a few words, or a list of such.

use io_probe_core::measure::sync::Section;

use crate::error::{Error, Result};
use crate::pg::backend::encoding::Text;

/// What has a name in arguments and results.
pub(crate) trait NamedEnum: Copy + PartialEq + 'static {
    /// What is named, in the singular and in the plural.
    const WHAT: (&'static str, &'static str);
    /// All values, in the order of hints and rows.
    const ALL: &'static [Self];
    /// What a list may have in place of all names, if anything.
    const EVERY: Option<&'static str> = None;

    fn name(self) -> &'static str;

    /// The value of this name; None where no name is given.
    fn parse(name: Option<&str>) -> Result<Option<Self>> {
        name.map(|name| Self::among(name, Self::ALL)).transpose()
    }

    /// The value of `valid` that has this name.
    fn among(name: &str, valid: &[Self]) -> Result<Self> {
        let found = valid.iter().copied().find(|known| known.name() == name);
        found.ok_or_else(|| Self::unknown(name, valid))
    }

    fn unknown(name: &str, valid: &[Self]) -> Error {
        Error::invalid(format!("unknown {} \"{name}\"", Self::WHAT.0)).hint(Self::hint(valid))
    }

    /// The refusal of a list: what it must not be or do.
    fn refused(why: &str) -> Error {
        Error::invalid(format!("{} must not {why}", Self::WHAT.1)).hint(Self::hint(Self::ALL))
    }

    /// The values of a list in its order, each of which must pass `check`; None where no list is given.
    fn list(
        names: Option<Vec<Option<Text>>>,
        check: impl Fn(Self) -> Result<()>,
    ) -> Result<Option<Vec<Self>>> {
        let Some(names) = names else { return Ok(None) };
        if names.is_empty() {
            return Err(Self::refused("be empty"));
        }
        let values = names.into_iter().map(|name| {
            let name = name.ok_or_else(|| Self::refused("contain nulls"))?;
            let found = Self::among(&name, Self::ALL)?;
            check(found).map(|()| found)
        });
        values.collect::<Result<_>>().map(Some)
    }

    /// The values of a list, each once, in the order of [`NamedEnum::ALL`]; all where no list is given.
    fn pick(names: Option<Vec<Option<Text>>>) -> Result<Vec<Self>> {
        let named = Self::list(names, |_| Ok(()))?.unwrap_or_else(|| Self::ALL.to_vec());
        Ok(Self::ALL.iter().copied().filter(|known| named.contains(known)).collect())
    }

    /// The valid names, for a HINT.
    fn hint(valid: &[Self]) -> String {
        let names: Vec<&str> = valid.iter().map(|known| known.name()).collect();
        let every =
            Self::EVERY.map_or_else(String::new, |every| format!("; \"{every}\" alone means all of them"));
        format!("Valid {} are {}{every}.", Self::WHAT.1, quoted(&names))
    }
}

/// An enum whose variants have names: `named! { enum ReadPath: "path", "paths" { Os = "os" } }`. Or the names
/// of one of another crate, with `every` if a word means all of them:
/// `named!(Section, "section", "sections", every "all", { OneWrite = "one_write" })`.
macro_rules! named {
    (
        $(#[$of_type:meta])* $vis:vis enum $type:ident: $one:literal, $several:literal
        { $($(#[$of_variant:meta])* $variant:ident = $name:literal),+ $(,)? }
    ) => {
        $(#[$of_type])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $type { $($(#[$of_variant])* $variant),+ }

        $crate::call::named::named!($type, $one, $several, { $($variant = $name),+ });
    };
    (
        $type:ident, $one:literal, $several:literal, $(every $every:literal,)?
        { $($variant:ident = $name:literal),+ $(,)? }
    ) => {
        impl $crate::call::named::NamedEnum for $type {
            const WHAT: (&'static str, &'static str) = ($one, $several);
            const ALL: &'static [Self] = &[$(Self::$variant),+];
            $(const EVERY: Option<&'static str> = Some($every);)?

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}
pub(crate) use named;

named!(Section, "section", "sections", every "all", {
    OneWrite = "one_write",
    TwoWrites = "two_writes",
    OpenSyncSize = "open_sync_size",
    OtherFd = "other_fd",
    NoSync = "no_sync",
    WalSegment = "wal_segment",
});

/// Names as a list for a HINT.
pub(crate) fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}
