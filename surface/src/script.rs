//! The script of CREATE EXTENSION, as plain SQL.

use std::fmt::Write;

use crate::function::{Function, Returns, Who};
use crate::row::{Column, Row, RowType};
use crate::{
    compare, correlation, depth, explain, facts, history, iostat, mix, page_cost, ping, random, readahead,
    recommend, report, seqscan, sessions, sustain, sync, write,
};

/// A part of the script: functions with the types of their rows, then statements written by hand.
struct Part {
    title: &'static str,
    functions: &'static [Function],
    /// Tables and views that have a logic of their own.
    rest: &'static str,
}

const PARTS: &[Part] = &[
    Part::of("Facts that are only read: devices, caches, running probes", facts::FUNCTIONS),
    Part::of("The timed scan", seqscan::FUNCTIONS),
    Part::of("Random fetches of single blocks", random::FUNCTIONS),
    Part::of("Random fetches at several depths", depth::FUNCTIONS),
    Part::of("One request now and then", ping::FUNCTIONS),
    Part::of("What a sync costs: pg_test_fsync's table and the WAL's own pattern", sync::FUNCTIONS),
    Part::of("What writing data files costs", write::FUNCTIONS),
    Part::of("Reads and writes at once", mix::FUNCTIONS),
    Part::of("One load that goes on", sustain::FUNCTIONS),
    Part::of("The devices while the database works, as iostat shows them", iostat::FUNCTIONS),
    Part::of("Who uses the devices", sessions::FUNCTIONS),
    Part::of("Readahead windows, beside one another", readahead::FUNCTIONS),
    Part::of("What planner costs stand for", page_cost::FUNCTIONS),
    Part::of("Values of settings, from what was measured", recommend::FUNCTIONS),
    Part {
        title: "Where the rows of indexes lie, and correlations that the planner uses in place of ANALYZE's",
        functions: correlation::FUNCTIONS,
        rest: include_str!("../sql/correlation.sql"),
    },
    Part::of("A plan as rows", explain::FUNCTIONS),
    Part::of("All that there is to know of the storage, in one call and in words", report::FUNCTIONS),
    Part {
        title: "Runs that are kept, and the rows of their probes",
        functions: history::FUNCTIONS,
        rest: include_str!("../sql/history.sql"),
    },
    Part {
        title: "Comparing stored runs: their figures, the latest ones, and what has changed",
        functions: compare::FUNCTIONS,
        rest: include_str!("../sql/compare.sql"),
    },
];

/// The rows of the stored runs of these probes have views.
const STORED: [&[Function]; 11] = [
    seqscan::FUNCTIONS,
    random::FUNCTIONS,
    depth::FUNCTIONS,
    ping::FUNCTIONS,
    sync::FUNCTIONS,
    write::FUNCTIONS,
    mix::FUNCTIONS,
    sustain::FUNCTIONS,
    readahead::FUNCTIONS,
    page_cost::FUNCTIONS,
    recommend::FUNCTIONS,
];

/// The doubt of a stored row of advice: it holds of the server that it was measured on.
const DOUBT_OF_ADVICE: &str = "\
    CASE WHEN line.recommended IS NULL
                 OR line.server_version OPERATOR(pg_catalog.=) (
                     pg_catalog.current_setting('server_version_num')::pg_catalog.int4
                     OPERATOR(pg_catalog./) 10000)
                 AND COALESCE(line.io_method, '') OPERATOR(pg_catalog.=) COALESCE(
                     pg_catalog.current_setting('io_method', true), '')
            THEN line.doubt ELSE 'stale' END AS doubt";

impl Part {
    const fn of(title: &'static str, functions: &'static [Function]) -> Self {
        Self { title, functions, rest: "" }
    }
}

/// All functions, in the order of the script.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    PARTS.iter().flat_map(|part| part.functions)
}

/// The statements that are written by hand.
pub fn written_by_hand() -> impl Iterator<Item = &'static str> {
    PARTS.iter().flat_map(|part| part.rest.lines())
}

/// The rows of the probes whose stored runs have views.
pub fn stored() -> impl Iterator<Item = &'static RowType> {
    STORED.into_iter().flatten().filter_map(Function::rows)
}

/// The whole script.
pub fn script() -> String {
    let mut script = Script(String::new());
    script.line("-- Printed from the declaration in surface/: do not edit.");
    script.line(r#"\echo Use "CREATE EXTENSION pg_io_probe" to load this file. \quit"#);
    for part in PARTS {
        script.line(&format!("\n-- {}.", part.title));
        let mut made: Vec<&str> = Vec::new();
        for function in part.functions {
            if let Returns::Rows(rows, _) = &function.returns
                && !made.contains(&rows.name)
            {
                made.push(rows.name);
                script.row_types(rows);
            }
        }
        for function in part.functions {
            script.functions(function);
        }
        if !part.rest.is_empty() {
            script.line(&format!("\n{}", part.rest.trim_end()));
        }
    }
    script.line("\n-- The rows of the stored runs.");
    for rows in stored() {
        script.history_view(rows);
    }
    script.0
}

struct Script(String);

impl Script {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn comment(&mut self, what: &str, text: &str) {
        self.line(&format!("COMMENT ON {what} IS {};", literal(text)));
    }

    fn row_types(&mut self, rows: &RowType) {
        if rows.everyday.is_empty() {
            return self.row_type(rows.name, rows.name, rows.about, &rows.columns());
        }
        let full = format!("{}_full", rows.name);
        self.row_type(&full, &full, rows.about, &rows.columns());
        self.row_type(rows.name, rows.name, rows.about, &rows.everyday_columns());
    }

    fn row_type(&mut self, name: &str, function: &str, about: &str, columns: &[Column]) {
        let name = format!("io_probe_{name}_row");
        let width = columns.iter().map(|column| column.name.len()).max().unwrap_or(0);
        let attribute = |column: &Column| format!("    {:width$} {}", column.name, column.sql_type.name());
        let attributes: Vec<String> = columns.iter().map(attribute).collect();
        self.line(&format!("\nCREATE TYPE {name} AS (\n{}\n);", attributes.join(",\n")));
        self.comment(&format!("TYPE {name}"), &format!("Row of io_probe_{function}: {}", about.trim_start()));
        for column in columns {
            self.comment(&format!("COLUMN {name}.{}", column.name), column.comment);
        }
    }

    /// The function, and its twin of all columns.
    fn functions(&mut self, function: &Function) {
        let name = format!("io_probe_{}", function.name);
        self.function(&name, function, function.returned(""), function.comment);
        if function.has_twin() {
            let comment = format!("{name} with all columns");
            self.function(&format!("{name}_full"), function, function.returned("_full"), &comment);
        }
    }

    fn function(&mut self, name: &str, function: &Function, returned: String, comment: &str) {
        let called = function.calls.unwrap_or(function.name);
        self.line(&format!(
            "\nCREATE FUNCTION {name}({})\nRETURNS {returned}\nAS 'MODULE_PATHNAME', \
             'io_probe_{called}_wrapper';",
            function.parameters()
        ));
        let signature = format!("FUNCTION {name}({})", function.types().join(", "));
        self.comment(&signature, &format!("[{}] {comment}", function.group.name()));
        if function.who != Who::Everyone {
            self.line(&format!("REVOKE ALL ON {signature} FROM PUBLIC;"));
        }
        if function.who == Who::Monitor {
            self.line(&format!("GRANT EXECUTE ON {signature} TO pg_monitor;"));
        }
    }

    /// The rows of the stored runs of a probe, with their types. relid is the run's oid, since the relation
    /// may be gone or in another cluster.
    fn history_view(&mut self, rows: &RowType) {
        let (probe, columns) = (rows.name, rows.columns());
        let is_advice = probe == recommend::RecommendRow::TYPE.name;
        let view = format!("io_probe_{probe}_history");
        let mut shown = String::new();
        for column in &columns {
            let _ = match column.name {
                "relid" => write!(shown, ",\n       run.relid"),
                "doubt" if is_advice => write!(shown, ",\n       {DOUBT_OF_ADVICE}"),
                name => write!(shown, ",\n       line.{name}"),
            };
        }
        self.line(&format!(
            "\nCREATE VIEW {view} AS\n\
             SELECT run.id AS run_id, run.started_at AS run_started_at, run.label{shown}\n\
             FROM io_probe_runs AS run\n\
             JOIN io_probe_results AS result ON result.run_id OPERATOR(pg_catalog.=) run.id,\n\
             -- Rows of other probes need not fit the type, and may be read before they are left out.\n\
             LATERAL pg_catalog.jsonb_populate_record(NULL::io_probe_{probe}_full_row,\n    \
                 CASE WHEN run.probe OPERATOR(pg_catalog.=) '{probe}'\n         \
                      THEN result.result OPERATOR(pg_catalog.-) 'relid'::pg_catalog.text END) AS line\n\
             WHERE run.probe OPERATOR(pg_catalog.=) '{probe}';"
        ));
        let about = format!("Rows of io_probe_{probe}_full in the stored runs");
        let stale = ". doubt is stale if the advice is of another major version or io_method";
        self.comment(&format!("VIEW {view}"), &(about + if is_advice { stale } else { "" }));
        let of_run = [
            ("run_id", "Number of the run in io_probe_runs"),
            ("run_started_at", "When the probe was called"),
            ("label", "Label that the caller gave the run"),
        ];
        let of_row = columns.iter().map(|column| (column.name, column.comment));
        for (name, comment) in of_run.into_iter().chain(of_row) {
            self.comment(&format!("COLUMN {view}.{name}"), comment);
        }
        self.line(&format!("GRANT SELECT ON {view} TO pg_monitor;"));
    }
}

impl Function {
    /// What it returns, and how.
    fn returned(&self, twin: &str) -> String {
        const PROPERTIES: &str = "LANGUAGE c VOLATILE PARALLEL UNSAFE";
        match self.returns {
            Returns::Value(sql_type) => format!("{sql_type}\n{PROPERTIES}"),
            Returns::Rows(rows, number) => {
                format!("SETOF io_probe_{}{twin}_row\n{PROPERTIES} ROWS {number}", rows.name)
            }
        }
    }
}

/// A text as an SQL literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn rows() -> impl Iterator<Item = &'static RowType> {
        functions().filter_map(Function::rows)
    }

    /// CREATE EXTENSION reads it in the encoding of the database.
    #[test]
    fn it_is_ascii() {
        let other = script().lines().find(|line| !line.is_ascii()).map(str::to_owned);
        assert_eq!(other, None);
    }

    #[test]
    fn everyday_names_are_columns() {
        for rows in rows() {
            assert_eq!(rows.everyday_columns().len(), rows.everyday.len());
        }
    }

    #[test]
    fn no_row_has_a_column_twice() {
        for rows in rows() {
            let mut seen = HashSet::new();
            for column in rows.columns() {
                assert!(seen.insert(column.name), "{}: {}", rows.name, column.name);
            }
        }
    }

    #[test]
    fn no_two_functions_are_called_alike() {
        let mut seen = HashSet::new();
        for function in functions() {
            assert!(seen.insert((function.name.to_string(), function.types())), "{}", function.name);
            let twin = (format!("{}_full", function.name), function.types());
            assert!(!function.has_twin() || seen.insert(twin), "the twin of {}", function.name);
        }
    }

    #[test]
    fn comments_end_without_a_period() {
        let of_functions = functions().map(|function| (function.name, function.comment));
        let of_rows = rows().map(|rows| (rows.name, rows.about));
        let of_columns = rows().flat_map(RowType::columns).map(|column| (column.name, column.comment));
        for (name, comment) in of_functions.chain(of_rows).chain(of_columns) {
            assert!(!comment.trim().is_empty() && !comment.ends_with('.'), "{name}: {comment}");
        }
    }
}
