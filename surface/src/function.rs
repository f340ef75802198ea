//! Functions: what SQL calls.

use self::OptionName::{MaxBytes, MaxIops, MaxMibS, MaxP99, MaxUtilPct, Precision, Seed, Wait};
use crate::row::RowType;
use crate::words::words;

/// A function, or two: of rows with everyday columns there is a twin `…_full` that shows all.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// Its name, without `io_probe_`.
    pub name: &'static str,
    /// The function of the library that it calls, without `io_probe_` and `_wrapper`, if that has another
    /// name.
    pub calls: Option<&'static str>,
    /// Its arguments.
    pub arguments: &'static [Argument],
    /// What it returns.
    pub returns: Returns,
    /// What it is for.
    pub group: Group,
    /// Who may call it from the start.
    pub who: Who,
    /// What it does: its COMMENT, behind its group.
    pub comment: &'static str,
    /// Arguments, as SQL, of a call that takes some milliseconds, for tests. There are the table
    /// `public.probed`, the index `public.corrected_pkey`, the functions `public.measured()`, a result to
    /// import, and `public.stored()`, the number of a run whose label is first.
    pub example: &'static str,
    /// The SQLSTATEs that it may end with besides those of any call (`ANYONE` in tests/fuzz.py).
    pub errors: &'static [&'static [&'static str]],
}

/// SQLSTATEs of what writes a file in a tablespace: disk full, no such tablespace.
pub const FILES: &[&str] = &["53100", "42704"];

/// SQLSTATEs of the caller's query: it is none, names what is not there, divides by zero, writes.
pub const QUERY: &[&str] = &["42601", "42703", "42883", "42P02", "22012", "25006", "42804", "42P18"];

/// SQLSTATEs of what stores a run: the transaction is read-only, the result is none.
pub const STORED: &[&str] = &["25006", "22P02", "22003", "22007", "22008", "23514"];

/// What a function is that measures, unless its literal says otherwise.
pub const MEASURE: Function = Function {
    name: "",
    calls: None,
    arguments: &[],
    returns: Returns::Value("void"),
    group: Group::Measure,
    who: Who::Owner,
    comment: "",
    example: "",
    errors: &[],
};

/// A function that shows what is there.
pub const LOOK: Function = Function { group: Group::Look, who: Who::Monitor, ..MEASURE };

/// A function that gives advice.
pub const ADVISE: Function = Function { group: Group::Advise, ..MEASURE };

/// A function that keeps results.
pub const KEEP: Function = Function { group: Group::Keep, ..MEASURE };

impl Function {
    /// The rows that it returns.
    pub fn rows(&self) -> Option<&'static RowType> {
        match self.returns {
            Returns::Rows(rows, _) => Some(rows),
            Returns::Value(_) => None,
        }
    }

    /// Is there a twin `…_full`?
    pub fn has_twin(&self) -> bool {
        self.rows().is_some_and(|rows| !rows.everyday.is_empty())
    }

    /// The SQL types of its arguments.
    pub fn types(&self) -> Vec<&'static str> {
        self.arguments.iter().map(|argument| argument.sql_type).collect()
    }

    /// Its arguments as SQL, on one line, or else on one line for each.
    pub fn parameters(&self) -> String {
        let arguments: Vec<String> =
            self.arguments.iter().map(|argument| argument.declared("DEFAULT")).collect();
        let line = arguments.join(", ");
        if line.len() < 80 { line } else { format!("\n    {}\n", arguments.join(",\n    ")) }
    }
}

/// An argument.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// Its type in SQL.
    pub sql_type: &'static str,
    /// Its default as SQL; None if it must be given.
    pub default: Option<&'static str>,
    /// The keys that its object may have, in the order of hints.
    pub options: &'static [OptionName],
}

impl Argument {
    /// Its declaration, with the default behind `is`: `DEFAULT` or `=`.
    pub(crate) fn declared(&self, is: &str) -> String {
        let Self { name, sql_type, default, .. } = self;
        default.map_or(format!("{name} {sql_type}"), |default| format!("{name} {sql_type} {is} {default}"))
    }
}

/// An argument that must be given.
pub const fn required(name: &'static str, sql_type: &'static str) -> Argument {
    Argument { name, sql_type, default: None, options: &[] }
}

/// An argument with a default, which is SQL.
pub const fn optional(name: &'static str, sql_type: &'static str, default: &'static str) -> Argument {
    Argument { default: Some(default), ..required(name, sql_type) }
}

/// The argument `options`.
pub const fn options(options: &'static [OptionName]) -> Argument {
    Argument { options, ..optional("options", "jsonb", "'{}'") }
}

words! {
    /// An option of a function.
    OptionName {
        /// Bytes of a commit.
        CommitBytes = "commit_bytes",
        /// How long a commit waits for others.
        CommitDelay = "commit_delay",
        /// What is watched.
        Device = "device",
        /// Past the page cache?
        Direct = "direct",
        /// Does this process read by itself?
        Exact = "exact",
        /// Most bytes of a row.
        MaxBytes = "max_bytes",
        /// Most requests per second.
        MaxIops = "max_iops",
        /// Most MiB per second.
        MaxMibS = "max_mib_s",
        /// Longest 99th percentile of its latencies.
        MaxP99 = "max_p99",
        /// Most of the time that a device may be busy.
        MaxUtilPct = "max_util_pct",
        /// Times to predict from.
        PageCost = "page_cost",
        /// How narrow an interval is to be.
        Precision = "precision",
        /// Seed of an order.
        Seed = "seed",
        /// Where to begin.
        StartBlk = "start_blk",
        /// Wait for another probe?
        Wait = "wait",
    }
}

/// Options of probes that measure rows: their bounds, and whether to wait for another probe.
pub const MEASURING: &[OptionName] = &[MaxBytes, MaxIops, MaxMibS, MaxUtilPct, MaxP99, Precision, Wait];

/// Options of probes that send requests: their bounds, the seed of the order, and whether to wait.
pub const SEEDED: &[OptionName] = &[MaxBytes, MaxIops, MaxMibS, MaxUtilPct, MaxP99, Seed, Wait];

/// What a function returns.
#[derive(Debug, Clone, Copy)]
pub enum Returns {
    /// One value of this type.
    Value(&'static str),
    /// Rows, and how many the planner is to expect.
    Rows(&'static RowType, u32),
}

words! {
    /// What a function is for.
    Group {
        /// It measures.
        Measure = "Measure",
        /// It shows what there is, and what goes on.
        Look = "Look",
        /// It says what to set, or sets it.
        Advise = "Advise",
        /// It keeps runs, and compares those that are kept.
        Keep = "Keep",
    }
}

words! {
    /// Who may call a function from the start.
    Who {
        /// Its owner; others once EXECUTE is granted.
        Owner = "owner",
        /// The members of `pg_monitor`, too.
        Monitor = "pg_monitor",
        /// Everyone.
        Everyone = "public",
    }
}

#[cfg(test)]
mod tests {
    use crate::script::functions;

    /// The options that a comment names at its end: `Options: one, another (with a remark)`.
    fn told(comment: &str) -> Vec<String> {
        let Some((_, told)) = comment.split_once(" Option") else { return Vec::new() };
        let told = told.strip_prefix("s:").unwrap_or(told);
        let mut parentheses = 0;
        let mut is_outside = |letter: &char| {
            parentheses += u32::from(*letter == '(');
            let is_outside = parentheses == 0;
            parentheses -= u32::from(*letter == ')');
            is_outside
        };
        let names: String =
            told.chars().take_while(|letter| *letter != ':').filter(&mut is_outside).collect();
        names.split(',').map(|name| name.trim().to_owned()).collect()
    }

    #[test]
    fn a_comment_names_the_options() {
        for function in functions().filter(|function| function.name != "report_full") {
            let options = function.arguments.iter().flat_map(|argument| argument.options);
            let names: Vec<&str> = options.map(|option| option.name()).collect();
            assert_eq!(told(function.comment), names, "{}", function.name);
        }
    }
}
