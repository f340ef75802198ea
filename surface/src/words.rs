//! Enums whose values are words.

/// Declares an enum and the word for each of its values.
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
        }
    };
}
pub(crate) use words;
