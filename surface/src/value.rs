//! Values on their way to the server, by their SQL types.

use std::borrow::Cow;

use crate::words::words;

/// Text that is either fixed or made.
pub type Text = Cow<'static, str>;

words! {
    /// The type of a column.
    SqlType {
        /// `boolean`
        Boolean = "boolean",
        /// `integer`
        Integer = "integer",
        /// `bigint`
        Bigint = "bigint",
        /// `double precision`
        DoublePrecision = "double precision",
        /// `text`
        Text = "text",
        /// `text[]`
        TextArray = "text[]",
        /// `regclass`
        Regclass = "regclass",
        /// `timestamp with time zone`
        Timestamptz = "timestamp with time zone",
        /// `jsonb`
        Jsonb = "jsonb",
    }
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum SqlValue {
    /// NULL of any type.
    Null,
    /// `boolean`
    Bool(bool),
    /// `integer`
    Int4(i32),
    /// `bigint`
    Int8(i64),
    /// `double precision`
    Float8(f64),
    /// `text`
    Text(Text),
    /// `text[]`
    Texts(Vec<String>),
    /// `regclass`
    Relation(u32),
    /// `timestamp with time zone`, in microseconds since 2000-01-01 00:00 UTC
    Timestamp(i64),
    /// `jsonb`, as text
    Json(String),
}

/// The oid of a relation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Relation(pub u32);

/// A point in time, in microseconds since 2000-01-01 00:00 UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timestamp(pub i64);

/// A value of JSON, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Json(pub String);

/// What can be a column's type.
pub trait ColumnType {
    /// The type in SQL.
    const SQL: SqlType;

    /// The value that the server gets.
    fn into_value(self) -> SqlValue;
}

impl<T: ColumnType> ColumnType for Option<T> {
    const SQL: SqlType = T::SQL;

    fn into_value(self) -> SqlValue {
        self.map_or(SqlValue::Null, T::into_value)
    }
}

macro_rules! column_types {
    ($($type:ty: $sql:ident = |$value:ident| $made:expr;)+) => {$(
        impl ColumnType for $type {
            const SQL: SqlType = SqlType::$sql;

            fn into_value(self) -> SqlValue {
                let $value = self;
                $made
            }
        }
    )+};
}

pub(crate) use column_types;

column_types! {
    bool: Boolean = |value| SqlValue::Bool(value);
    i32: Integer = |value| SqlValue::Int4(value);
    i64: Bigint = |value| SqlValue::Int8(value);
    // A figure that can't be computed is not known.
    f64: DoublePrecision = |value| if value.is_finite() { SqlValue::Float8(value) } else { SqlValue::Null };
    // Counts. No count of this project comes near the greatest.
    u32: Integer = |value| SqlValue::Int4(i32::try_from(value).unwrap_or(i32::MAX));
    u64: Bigint = |value| SqlValue::Int8(i64::try_from(value).unwrap_or(i64::MAX));
    &'static str: Text = |value| SqlValue::Text(value.into());
    String: Text = |value| SqlValue::Text(value.into());
    Text: Text = |value| SqlValue::Text(value);
    Vec<String>: TextArray = |value| SqlValue::Texts(value);
    Relation: Regclass = |value| SqlValue::Relation(value.0);
    Timestamp: Timestamptz = |value| SqlValue::Timestamp(value.0);
    Json: Jsonb = |value| SqlValue::Json(value.0);
}
