//! Enums whose values are words, in SQL and in JSON.

/// Declares an enum and the word for each of its values.
#[macro_export]
macro_rules! words {
    ($(#[$of_type:meta])* $type:ident {$($(#[$of_value:meta])+ $value:ident = $word:literal,)+}) => {
        $(#[$of_type])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type {$($(#[$of_value])+ $value,)+}

        impl $type {
            /// The word for it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$value => $word),+ }
            }

            const ALL: &[Self] = &[$(Self::$value),+];
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = String::deserialize(from)?;
                let named = Self::ALL.iter().copied().find(|value| value.name() == word);
                named.ok_or_else(|| serde::de::Error::unknown_variant(&word, &[$($word),+]))
            }
        }
    };
}
pub(crate) use words;
