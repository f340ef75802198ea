//! A probe of this extension, called by its name with arguments by theirs.

use pgrx::{PgSqlErrorCode, pg_sys, spi, spi::Spi};
use serde::Deserialize;
use serde_json::Value as Json;

use crate::pg::backend::encoding::{MOST_BYTES, c_string};
use crate::pg::backend::rethrow::Caught;
use crate::pg::backend::row::as_text;
use crate::pg::backend::server::{own, pairs};
use crate::pg::backend::subtransaction;
use crate::pg::catalog::names;

/// A function of this extension that gives rows, as the catalog has it.
#[derive(Debug, Deserialize)]
pub(crate) struct ProbeFunction {
    #[serde(skip)]
    oid: pg_sys::Oid,
    name: String,
    schema: String,
    /// Does a row name the relation?
    has_relid: bool,
    /// Its arguments in order.
    pub(crate) arguments: Vec<ProbeArgument>,
}

/// An argument of it.
#[derive(Debug, Deserialize)]
pub(crate) struct ProbeArgument {
    pub(crate) name: String,
    /// Its type, as a query wants it.
    type_name: String,
    /// Has it no default?
    pub(crate) required: bool,
}

/// What an argument is given.
pub(crate) enum Value<'a> {
    Relation(pg_sys::Oid),
    Json(&'a Json),
}

/// Why there are no rows.
pub(crate) enum Failed {
    /// Another probe was running, or others kept the device busy.
    Skipped(Cause),
    /// Storage or the server failed it.
    Failed(Cause),
}

/// An ERROR.
pub(crate) struct Cause {
    pub(crate) sqlstate: String,
    pub(crate) message: String,
}

/// Classes of ERRORs, each by one of them, that are the caller's business, and are not caught: he asked for
/// an end; or his arguments, his query, his rights, the state of his transaction are not what they should be.
const CALLERS: [PgSqlErrorCode; 6] = [
    PgSqlErrorCode::ERRCODE_OPERATOR_INTERVENTION,
    PgSqlErrorCode::ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION,
    PgSqlErrorCode::ERRCODE_DATA_EXCEPTION,
    PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
    PgSqlErrorCode::ERRCODE_INVALID_TRANSACTION_STATE,
    PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
];

impl ProbeFunction {
    /// The function of this name, found through the extension itself and not through search_path.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let name = spi::quote_literal(name);
        let query = format!(
            "SELECT p.oid, pg_catalog.jsonb_build_object('name', p.proname, 'schema', n.nspname, \
                 'has_relid', EXISTS (SELECT FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS r \
                     ON r.typrelid OPERATOR(pg_catalog.=) a.attrelid WHERE r.oid OPERATOR(pg_catalog.=) p.prorettype \
                     AND a.attname OPERATOR(pg_catalog.=) 'relid' AND NOT a.attisdropped), \
                 'arguments', (SELECT COALESCE(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object( \
                     'name', p.proargnames[i], 'type_name', pg_catalog.format('%I.%I', tn.nspname, t.typname), \
                     'required', i OPERATOR(pg_catalog.<=) (p.pronargs OPERATOR(pg_catalog.-) p.pronargdefaults)) \
                     ORDER BY i), '[]') \
                     FROM pg_catalog.unnest(p.proargtypes::pg_catalog.oid[]) WITH ORDINALITY AS argument(type, i) \
                     JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) argument.type \
                     JOIN pg_catalog.pg_namespace AS tn ON tn.oid OPERATOR(pg_catalog.=) t.typnamespace))::pg_catalog.text \
             FROM pg_catalog.pg_namespace AS n, {} AND n.oid OPERATOR(pg_catalog.=) p.pronamespace \
             AND p.proname OPERATOR(pg_catalog.=) {name}",
            own("pg_proc", "p")
        );
        let (oid, found) = pairs::<pg_sys::Oid>(&query).into_iter().next()?;
        Some(Self { oid, ..serde_json::from_str(&found).ok()? })
    }

    /// Calls it with the caller's rights, in a subtransaction: its rows as an array of objects in JSON, in
    /// which a relation is its oid. What is not the caller's business but bad luck is caught.
    pub(crate) fn run(&self, values: &[(&str, Value<'_>)]) -> Result<String, Failed> {
        let statement = c_string(&self.statement(values));
        subtransaction::attempt(
            || {
                let rows = Spi::connect(|_| names::run(&statement, &[], Some(self.oid)).one_text(MOST_BYTES));
                Ok(rows.unwrap_or_else(|| "[]".to_owned()))
            },
            |error| failed(error).map(Err),
        )
    }

    fn statement(&self, values: &[(&str, Value<'_>)]) -> String {
        let arguments: Vec<String> = values
            .iter()
            .filter_map(|(name, value)| {
                let argument = self.arguments.iter().find(|argument| argument.name == *name)?;
                let text = match value {
                    Value::Relation(oid) => Some(oid.to_u32().to_string()),
                    Value::Json(value) if argument.type_name.ends_with(".jsonb") => Some(value.to_string()),
                    Value::Json(value) => as_text(value),
                };
                let text = text.map_or_else(|| "NULL".to_owned(), spi::quote_literal);
                Some(format!("{} => {text}::{}", spi::quote_identifier(name), argument.type_name))
            })
            .collect();
        // Its name would say something else under another search_path, or nothing once the relation is gone.
        let relid = if self.has_relid {
            " OPERATOR(pg_catalog.||) pg_catalog.jsonb_build_object('relid', line.relid::pg_catalog.oid::pg_catalog.int8)"
        } else {
            ""
        };
        format!(
            "SELECT pg_catalog.jsonb_agg(pg_catalog.to_jsonb(line){relid})::pg_catalog.text FROM {}.{}({}) AS line",
            spi::quote_identifier(&self.schema),
            spi::quote_identifier(&self.name),
            arguments.join(", ")
        )
    }
}

/// None for what is to be raised again.
fn failed(error: &Caught) -> Option<Failed> {
    if error.is_of_class(&CALLERS) {
        return None;
    }
    let cause = Cause { sqlstate: sqlstate(error.code()), message: error.message() };
    // The server itself raises these of nothing that a probe does.
    const TAKEN: [PgSqlErrorCode; 2] =
        [PgSqlErrorCode::ERRCODE_OBJECT_IN_USE, PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE];
    let taken = TAKEN.iter().any(|taken| *taken as i32 == error.code());
    Some(if taken { Failed::Skipped(cause) } else { Failed::Failed(cause) })
}

/// A packed SQLSTATE as it is written: five characters of six bits each.
fn sqlstate(code: i32) -> String {
    (0..5).map(|place| char::from(b'0' + (code >> (6 * place) & 0x3f) as u8)).collect()
}
