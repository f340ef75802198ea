//! Rows: structures whose fields are the columns of SQL types.

use crate::value::{ColumnType, SqlType, SqlValue};

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type in SQL.
    pub sql_type: SqlType,
    /// What it means, in which unit, and when it is NULL: the COMMENT of the column.
    pub comment: &'static str,
    /// The group from which the row has it; None if it is the row's own.
    pub group: Option<ColumnGroup>,
}

impl Column {
    /// A column of type `T`.
    pub fn of<T: ColumnType>(name: &'static str, comment: &'static str, group: Option<ColumnGroup>) -> Self {
        Self { name, sql_type: T::SQL, comment: comment.trim_start(), group }
    }
}

/// Columns that several rows have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnGroup {
    /// The structure: `PlaceColumns`.
    pub name: &'static str,
    /// What they say.
    pub about: &'static str,
}

/// Some columns and their values, in the same order.
pub trait Columns {
    /// Adds the columns.
    fn declare(columns: &mut Vec<Column>);

    /// Adds the values.
    fn put(self, values: &mut Vec<SqlValue>);
}

/// The rows of a function. All columns are filled, and only those that are declared:
///
/// ```
/// use io_probe_surface::facts::CheckRow;
/// CheckRow { item: "a".into(), status: "ok", value: "b".into(), what_to_do: None };
/// ```
///
/// ```compile_fail,E0063
/// use io_probe_surface::facts::CheckRow;
/// CheckRow { item: "a".into(), status: "ok", value: "b".into() };
/// ```
///
/// ```compile_fail,E0560
/// use io_probe_surface::facts::CheckRow;
/// CheckRow { item: "a".into(), status: "ok", value: "b".into(), what_to_do: None, more: None };
/// ```
pub trait Row: Columns {
    /// Their types.
    const TYPE: RowType;
}

/// The types of the rows of a function: one of all columns, or one of the everyday columns and a `full` one.
#[derive(Debug, Clone, Copy)]
pub struct RowType {
    /// Its name: `ping` of `io_probe_ping_row`.
    pub name: &'static str,
    /// What a row is about: `one request`.
    pub about: &'static str,
    /// Names of the columns that a person sees, in this order; none if all are shown.
    pub everyday: &'static [&'static str],
    /// Adds all columns.
    pub declare: fn(&mut Vec<Column>),
}

impl RowType {
    /// All columns.
    pub fn columns(&self) -> Vec<Column> {
        let mut columns = Vec::new();
        (self.declare)(&mut columns);
        columns
    }

    /// The everyday columns in their order.
    ///
    /// # Panics
    /// If there is no such column, which a test excludes.
    pub fn everyday_columns(&self) -> Vec<Column> {
        let columns = self.columns();
        let everyday = self.everyday.iter().map(|name| {
            let found = columns.iter().find(|column| column.name == *name);
            *found.unwrap_or_else(|| panic!("rows of {} have no column {name}", self.name))
        });
        everyday.collect()
    }
}

/// Declares the rows of a function, or columns that several rows have (`shared`). A doc comment is the
/// column's COMMENT. A row's own columns come first, then `..name: Type` adds those of a shared group.
macro_rules! row {
    ($(#[doc = $about:literal])+ shared $type:ident {$($fields:tt)*}) => {
        $crate::row::row!(
            @columns
            Some($crate::row::ColumnGroup { name: stringify!($type), about: concat!($($about),+) }),
            $(#[doc = $about])+ $type {$($fields)*}
        );
    };
    ($(#[doc = $about:literal])+ $(#[derive($derived:ident)])?
     row $type:ident $name:literal everyday [$($everyday:ident),* $(,)?] {$($fields:tt)*}) => {
        $crate::row::row!(@columns None, $(#[doc = $about])+ $(#[derive($derived)])? $type {$($fields)*});

        impl $crate::row::Row for $type {
            const TYPE: $crate::row::RowType = $crate::row::RowType {
                name: $name,
                about: concat!($($about),+),
                everyday: &[$(stringify!($everyday)),*],
                declare: <Self as $crate::row::Columns>::declare,
            };
        }
    };
    (@columns $in_group:expr, $(#[doc = $about:literal])+ $(#[derive($derived:ident)])? $type:ident {
        $($(#[doc = $comment:literal])+ $name:ident: $of:ty,)*
        $(..$group:ident: $columns:ty,)*
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Default, PartialEq $(, $derived)?)]
        pub struct $type {
            $($(#[doc = $comment])+ pub $name: $of,)*
            $(#[doc = concat!("[`", stringify!($columns), "`].")] pub $group: $columns,)*
        }

        impl $crate::row::Columns for $type {
            fn declare(columns: &mut Vec<$crate::row::Column>) {
                $(columns.push($crate::row::Column::of::<$of>(
                    stringify!($name), concat!($($comment),+), $in_group
                ));)*
                $(<$columns as $crate::row::Columns>::declare(columns);)*
            }

            fn put(self, values: &mut Vec<$crate::value::SqlValue>) {
                $(values.push($crate::value::ColumnType::into_value(self.$name));)*
                $($crate::row::Columns::put(self.$group, values);)*
            }
        }
    };
}
pub(crate) use row;
