//! docs/columns.md: every function, column, table and setting.

use std::ffi::CStr;

use crate::function::{Argument, Function, Returns};
use crate::row::{Column, ColumnGroup, RowType};
use crate::script::{functions, stored, written_by_hand};
use crate::settings::{CORRECT_CORRELATION, ENGINE, NUMBERS, Number, Setting, Unit};

const HEAD: &str = "\
# Every function, column and setting

`make printed` prints this page from `surface/`: do not edit it. The texts are those of `\\df+`, `\\dT+`,
`\\d+` and `pg_settings`. [reading.md](reading.md) says how to act on what you see.

## Functions

Names are shown without `io_probe_`. Columns in **bold** are those of `io_probe_X`. `io_probe_X_full` takes
the same arguments and returns all columns, including the [shared columns](#shared-columns) of line *Also*. If
no column is bold, there is no `_full` function. The rows of a call share its duration. Most rows are measured
in turns: short timed parts that alternate with those of the other rows. Until EXECUTE is granted, only the
owner of the extension may call a function, unless its text says otherwise. A probe of a relation also needs
SELECT or MAINTAIN on it. *The bounds* are the options max_bytes, max_iops, max_mib_s, max_util_pct and
max_p99. A figure that is not known is NULL.";

/// What the page says once, in place of each comment.
const RIGHTS: &str = "Needs EXECUTE, and SELECT or MAINTAIN on the relation.";

/// What the page calls the bounds.
const BOUNDS: [&str; 5] = ["max_bytes", "max_iops", "max_mib_s", "max_util_pct", "max_p99"];

const SHARED: &str = "\
## Shared columns

These mean the same in all functions that name them.";

const TABLES: &str = "\
## Tables and views

`\\d+` shows their columns and what each means.

**io_probe_X_history**, views: the rows of `io_probe_X_full` in the stored runs. The first columns are run_id
(of io_probe_runs), run_started_at (when the probe was called) and label (of the run). relid is an oid, since
the relation may be gone, or in another cluster. X is";

const SETTINGS: &str = "\
## Settings

[settings.md](settings.md) says how to use them; `pg_settings` says more about each. If the range begins with
0, 0 means no limit. Where *who* is superuser, roles with GRANT SET ON PARAMETER may set it, too.";

/// The whole page.
pub fn columns() -> String {
    let functions: Vec<&Function> = functions().collect();
    let mut page = Page(vec![HEAD.into()]);
    for functions in functions.chunk_by(|one, next| one.name == next.name) {
        page.add(format!("### {}", functions[0].name));
        for function in functions {
            page.function(function);
        }
        page.columns(functions[0]);
    }
    page.add(SHARED);
    let columns = all_columns();
    let common = columns.iter().filter(|column| column.is_common(&columns));
    let common = each_once(common.map(|column| column.cells(false)));
    let of_groups = groups(&columns).into_iter().flat_map(group_cells);
    page.table(["column", "meaning"], common.into_iter().chain(of_groups));
    let stored: Vec<&str> = stored().map(|rows| rows.name).collect();
    page.add(format!("{TABLES} {}.", stored.join(", ")));
    page.relations();
    page.add(SETTINGS);
    page.settings();
    page.0.join("\n\n") + "\n"
}

/// Its blocks, between which there are blank lines.
struct Page(Vec<String>);

impl Page {
    fn add(&mut self, block: impl Into<String>) {
        self.0.push(block.into());
    }

    /// A table, unless it has no rows.
    fn table<const N: usize>(&mut self, head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) {
        let rows: Vec<String> = rows.into_iter().map(|row| row.join("|")).collect();
        if !rows.is_empty() {
            self.add(format!("{}\n{}\n{}", head.join("|"), ["---"; N].join("|"), rows.join("\n")));
        }
    }

    /// How to call it, and what it does.
    fn function(&mut self, function: &Function) {
        let Function { name, comment, .. } = function;
        let arguments: Vec<String> = function.arguments.iter().map(Argument::shown).collect();
        let returned = match function.returns {
            Returns::Value(sql_type) => format!(" RETURNS {sql_type}"),
            Returns::Rows(..) => String::new(),
        };
        self.add(format!("`{name}({}){returned}`", arguments.join(", ")));
        let said_above = [(format!(" {RIGHTS}"), ""), (BOUNDS.join(", "), "the bounds")];
        let shorter =
            said_above.iter().fold(format!("{comment}."), |text, (long, short)| text.replace(long, short));
        self.add(text(&shorter));
    }

    /// The columns of its rows: its own, and the shared groups with the everyday columns of each.
    fn columns(&mut self, function: &Function) {
        let Some(rows) = function.rows() else { return };
        if let Some(name) = first_with(rows).filter(|name| *name != function.name) {
            return self.add(format!("Columns: those of [{name}](#{name})."));
        }
        let about = format!("each row: {}", text(rows.about));
        let (columns, all) = (rows.columns(), all_columns());
        let everyday = |column: &&Column| rows.everyday.contains(&column.name);
        let (common, own): (Vec<&Column>, Vec<&Column>) =
            columns.iter().filter(|column| column.group.is_none()).partition(|column| column.is_common(&all));
        self.table(["column", about.as_str()], own.into_iter().map(|column| column.cells(everyday(&column))));
        let groups = groups(&columns).into_iter().map(|group| {
            let of_group = of_group(&columns, group);
            let names: Vec<String> =
                of_group.iter().filter(everyday).map(|column| column.shown(true)).collect();
            let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
            format!("{}{names}", group.title())
        });
        let common = common.into_iter().map(|column| column.shown(everyday(&column)));
        let shared: Vec<String> = common.chain(groups).collect();
        if !shared.is_empty() {
            self.add(format!("Also: {}.", shared.join(", ")));
        }
    }

    /// The tables and views that are written by hand.
    fn relations(&mut self) {
        for Comment { on, name, text } in written_by_hand().filter_map(Comment::read) {
            let kind = match on {
                "TABLE" => "a table",
                "VIEW" => "a view",
                _ => continue,
            };
            self.add(format!("**{name}**, {kind}: {text}."));
        }
    }

    fn settings(&mut self) {
        let numbers = NUMBERS.iter().map(|setting| {
            let Number { default, unit, .. } = setting.value;
            setting.cells(unit.shown(default), setting.value.range())
        });
        let engine = ENGINE.cells(ENGINE.value.0[0].into(), ENGINE.value.0.join(", "));
        let on = if CORRECT_CORRELATION.value { "on" } else { "off" };
        let correct = CORRECT_CORRELATION.cells(on.into(), "on, off".into());
        self.table(["pg_io_probe.", "default", "range", "who", "meaning"], numbers.chain([engine, correct]));
    }
}

impl Argument {
    /// `duration = NULL`.
    fn shown(&self) -> String {
        let Self { name, default, .. } = self;
        default.map_or((*name).to_owned(), |default| format!("{name} = {default}"))
    }
}

impl Column {
    fn cells(&self, is_everyday: bool) -> [String; 2] {
        [self.shown(is_everyday), text(self.comment)]
    }

    fn shown(&self, is_everyday: bool) -> String {
        if is_everyday { format!("**{}**", self.name) } else { self.name.into() }
    }

    /// Does a second row have it, with the same comment, and not in a group?
    fn is_common(&self, all: &[Self]) -> bool {
        let same =
            |other: &&Self| (other.group, other.name, other.comment) == (None, self.name, self.comment);
        self.group.is_none() && all.iter().filter(same).count() > 1
    }
}

impl ColumnGroup {
    /// `Place` for `PlaceColumns`.
    fn title(&self) -> &'static str {
        self.name.trim_end_matches("Columns")
    }
}

impl<T> Setting<T> {
    fn cells(&self, default: String, range: String) -> [String; 5] {
        let [name, short] = [self.name, self.short].map(CStr::to_string_lossy);
        let name = name.trim_start_matches("pg_io_probe.");
        [name.into(), default, range, self.who.name().into(), text(short.trim_end_matches('.'))]
    }
}

impl Number {
    fn range(&self) -> String {
        let Self { least, most, unit, .. } = *self;
        match most {
            i32::MAX => format!("{} or more", unit.shown(least)),
            _ => format!("{} to {}", unit.shown(least), unit.shown(most)),
        }
    }
}

impl Unit {
    /// A number as SHOW prints it: in the largest unit of which it is a multiple.
    fn shown(self, number: i32) -> String {
        let units: &[(i32, &str)] = match self {
            Self::One => &[],
            Self::Ms => &[(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms")],
            Self::Mb => &[(1 << 20, "TB"), (1 << 10, "GB"), (1, "MB")],
        };
        match units.iter().find(|(size, _)| number != 0 && number % size == 0) {
            Some((size, name)) => format!("{}{name}", number / size),
            None => number.to_string(),
        }
    }
}

/// A statement COMMENT ON, which takes one line.
struct Comment {
    /// What kind of thing it is on: `TABLE`.
    on: &'static str,
    name: &'static str,
    text: String,
}

impl Comment {
    fn read(line: &'static str) -> Option<Self> {
        let (what, literal) = line.strip_prefix("COMMENT ON ")?.split_once(" IS '")?;
        let (on, name) = what.split_once(' ')?;
        Some(Self { on, name, text: text(&literal.strip_suffix("';")?.replace("''", "'")) })
    }
}

/// The columns of each type of row; functions that share one stand together.
fn all_columns() -> Vec<Column> {
    let mut rows: Vec<&RowType> = functions().filter_map(Function::rows).collect();
    rows.dedup_by_key(|rows| rows.name);
    rows.into_iter().flat_map(RowType::columns).collect()
}

/// The groups of these columns, each once.
fn groups(columns: &[Column]) -> Vec<ColumnGroup> {
    each_once(columns.iter().filter_map(|column| column.group))
}

/// Without those that are the same as one before them.
fn each_once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

/// The columns of a shared group behind what they are about, as the first row that has it declares them.
fn group_cells(group: ColumnGroup) -> Vec<[String; 2]> {
    let mut rows = functions().filter_map(Function::rows).map(|rows| of_group(&rows.columns(), group));
    let columns = rows.find(|columns| !columns.is_empty()).unwrap_or_default();
    let about = [format!("*{}*", group.title()), format!("*{}*", group.about.trim())];
    [about].into_iter().chain(columns.iter().map(|column| column.cells(false))).collect()
}

/// Those of a group.
fn of_group(columns: &[Column], group: ColumnGroup) -> Vec<Column> {
    columns.iter().copied().filter(|column| column.group == Some(group)).collect()
}

/// The function whose rows of that type are described.
fn first_with(rows: &RowType) -> Option<&'static str> {
    let first = functions().find(|function| function.rows().is_some_and(|other| other.name == rows.name));
    Some(first?.name)
}

/// A text as Markdown, also in a table.
fn text(text: &str) -> String {
    text.trim_start().replace('|', "\\|").replace('*', "\\*")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::Who;

    #[test]
    fn nothing_is_left_out() {
        let page = columns();
        let cells = |line| str::split_once(line, "|");
        let described = |column: &Column| {
            let ends = |(name, rest): (&str, &str)| {
                name.trim_matches('*') == column.name && rest.ends_with(&text(column.comment))
            };
            page.lines().filter_map(cells).any(ends)
        };
        for function in functions() {
            let name = function.name;
            assert!(page.contains(&format!("\n### {name}\n")), "{name}");
            for column in function.rows().map(RowType::columns).unwrap_or_default() {
                assert!(described(&column), "{name}: {}", column.name);
            }
        }
    }

    #[test]
    fn who_may_call_is_said() {
        for function in functions() {
            let Function { name, comment, who, .. } = function;
            assert_eq!(comment.contains("pg_monitor may call it"), *who == Who::Monitor, "{name}");
            assert_eq!(comment.contains("Everyone may call it"), *who == Who::Everyone, "{name}");
        }
    }

    #[test]
    fn comments_that_are_written_by_hand_are_read() {
        for line in written_by_hand().filter(|line| line.contains("COMMENT ON")) {
            assert!(Comment::read(line).is_some_and(|comment| !comment.text.ends_with('.')), "{line}");
        }
    }

    #[test]
    fn numbers_are_shown_as_the_server_shows_them() {
        for (unit, number, shown) in [
            (Unit::One, 1_000, "1000"),
            (Unit::Ms, 0, "0"),
            (Unit::Ms, 1_500, "1500ms"),
            (Unit::Ms, 60_000, "1min"),
            (Unit::Ms, 86_400_000, "1d"),
            (Unit::Mb, 64, "64MB"),
            (Unit::Mb, 64 << 10, "64GB"),
        ] {
            assert_eq!(unit.shown(number), shown);
        }
    }
}
