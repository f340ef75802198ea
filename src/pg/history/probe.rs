//! A probe of this extension, called by its name with arguments by theirs.

use std::panic::UnwindSafe;
use std::slice;

use pgrx::{PgSqlErrorCode, pg_sys, spi, spi::Spi};
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::pg::backend::encoding::c_string;
use crate::pg::backend::names::{self, from_own};
use crate::pg::backend::rethrow::Caught;
use crate::pg::backend::server;
use crate::pg::backend::subtransaction;
use crate::pg::settings;

/// A function of this extension that gives rows, as the catalog has it.
#[derive(Debug, Deserialize)]
pub(crate) struct ProbeFunction {
    oid: pg_sys::Oid,
    name: String,
    schema: String,
    /// Does a row name the relation?
    has_relid: bool,
    pub(super) row_type: pg_sys::Oid,
    /// Its arguments in order.
    pub(crate) arguments: Vec<ProbeArgument>,
}

/// An argument of it.
#[derive(Debug, Deserialize)]
pub(crate) struct ProbeArgument {
    pub(crate) name: String,
    /// Its type, as a query wants it.
    type_name: String,
    is_array: bool,
    /// Has it no default?
    pub(crate) required: bool,
    /// Its default as an expression.
    default: Option<String>,
}

impl ProbeArgument {
    /// Its value as an expression of its type.
    fn expression(&self, value: &Given<'_>) -> String {
        let text = match value {
            Given::Relation(oid) => Some(oid.to_u32().to_string()),
            Given::Json(value) if self.type_name.ends_with(".jsonb") => Some(value.to_string()),
            Given::Json(value) if self.is_array => as_array(value),
            Given::Json(value) => as_text(value),
        };
        let text = text.map_or_else(|| "NULL".to_owned(), spi::quote_literal);
        format!("{text}::{}", self.type_name)
    }

    /// Its name and its value for `jsonb_build_object`.
    fn pair(&self, expression: &str) -> String {
        let interval = if TIMES.contains(&self.name.as_str()) { "::interval" } else { "" };
        format!("{}, ({expression}){interval}", spi::quote_literal(&self.name))
    }
}

/// An array as its type's input function reads it; None for NULL. One value stands for an array of it; a
/// text with a brace is an array as SQL writes it.
fn as_array(value: &Json) -> Option<String> {
    match value {
        Json::Null | Json::Array(_) => as_text(value),
        Json::String(text) if text.contains('{') => as_text(value),
        one => Some(array_literal(slice::from_ref(one))),
    }
}

/// A value as its type's input function reads it; None for NULL.
fn as_text(value: &Json) -> Option<String> {
    Some(match value {
        Json::Null => return None,
        Json::String(text) => text.clone(),
        Json::Array(items) => array_literal(items),
        Json::Bool(_) | Json::Number(_) | Json::Object(_) => value.to_string(),
    })
}

fn array_literal(items: &[Json]) -> String {
    let quoted = items.iter().map(|item| match as_text(item) {
        Some(text) => format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\"")),
        None => "NULL".to_owned(),
    });
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
}

/// Arguments of type text that are times.
const TIMES: [&str; 2] = ["duration", "every"];

/// What an argument is given.
pub(crate) enum Given<'a> {
    Relation(pg_sys::Oid),
    Json(&'a Json),
}

/// The ERROR for which there are no rows.
pub(crate) struct Failed {
    /// `skipped` if another probe was running, or others kept the device busy; `failed` if storage or the
    /// server failed it.
    pub(crate) status: &'static str,
    pub(crate) sqlstate: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

/// Classes of ERRORs, each named by one of them, that are the caller's business, and are not caught: a
/// cancel; or the arguments, the query, the rights, the state of the transaction are not what they should be.
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
            "SELECT json_build_object('oid', p.oid::int8, 'name', p.proname, 'schema', n.nspname, \
                 'row_type', p.prorettype::int8, \
                 'has_relid', EXISTS (SELECT FROM pg_attribute AS a JOIN pg_type AS r \
                     ON r.typrelid = a.attrelid \
                     WHERE r.oid = p.prorettype AND a.attname = 'relid' AND NOT a.attisdropped), \
                 'arguments', (SELECT coalesce(json_agg(json_build_object( \
                     'name', p.proargnames[i], 'type_name', format('%I.%I', tn.nspname, t.typname), \
                     'is_array', t.typcategory = 'A', \
                     'required', i <= p.pronargs - p.pronargdefaults, \
                     'default', pg_get_function_arg_default(p.oid, i::int4)) ORDER BY i), '[]') \
                     FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS argument(type, i) \
                     JOIN pg_type AS t ON t.oid = argument.type \
                     JOIN pg_namespace AS tn ON tn.oid = t.typnamespace)) \
             FROM pg_namespace AS n, {} AND n.oid = p.pronamespace AND p.proname = {name}",
            from_own("pg_proc", "p")
        );
        names::rows(&query, &[]).into_iter().next()
    }

    /// Calls it with the caller's rights: its rows as an array of objects in JSON, in which a relation is its
    /// oid.
    pub(crate) fn run(&self, values: &[(&str, Given<'_>)]) -> Result<String, Failed> {
        let statement = c_string(&self.statement(values));
        let call = || Spi::connect(|_| names::run(&statement, &[], Some(self.oid)).one_text());
        attempt(|| {
            // What a person would see meanwhile, a job would mail.
            let hears_all = server::setting(c"client_min_messages").is_none_or(|least| least != "error");
            let rows = if hears_all { settings::with(&[settings::NO_NOTICES], call) } else { call() };
            rows.unwrap_or_else(|| "[]".to_owned())
        })
    }

    /// The values of arguments but the relation, as their types print them, without defaults. The function
    /// has taken them.
    pub(crate) fn plain(&self, values: &[(&str, Given<'_>)]) -> Map<String, Json> {
        let (mut is, mut defaults) = (Vec::new(), Vec::new());
        for (argument, value) in self.given(values).filter(|(_, value)| matches!(value, Given::Json(_))) {
            is.push(argument.pair(&argument.expression(value)));
            defaults.extend(argument.default.as_ref().map(|default| argument.pair(default)));
        }
        let query = format!(
            "SELECT jsonb_build_array(jsonb_build_object({}), jsonb_build_object({}))",
            is.join(", "),
            defaults.join(", ")
        );
        let printed = settings::with(&[settings::OWN_INTERVALS], || names::rows(&query, &[]));
        let [mut is, defaults]: [Map<String, Json>; 2] = printed.into_iter().next().unwrap_or_default();
        is.retain(|name, value| defaults.get(name) != Some(value));
        is
    }

    /// The arguments that are given a value.
    fn given<'a, 'b>(
        &'a self,
        values: &'a [(&str, Given<'b>)],
    ) -> impl Iterator<Item = (&'a ProbeArgument, &'a Given<'b>)> {
        values.iter().filter_map(move |(name, value)| {
            let argument = self.arguments.iter().find(|argument| argument.name == *name)?;
            Some((argument, value))
        })
    }

    fn statement(&self, values: &[(&str, Given<'_>)]) -> String {
        let arguments = self.given(values).map(|(argument, value)| {
            format!("{} => {}", spi::quote_identifier(&argument.name), argument.expression(value))
        });
        let arguments: Vec<String> = arguments.collect();
        // The relation's name would say something else under another search_path, or nothing once the
        // relation is gone.
        let relid = if self.has_relid {
            " OPERATOR(pg_catalog.||) pg_catalog.jsonb_build_object('relid', \
                 line.relid::pg_catalog.oid::pg_catalog.int8)"
        } else {
            ""
        };
        format!(
            "SELECT pg_catalog.jsonb_agg(pg_catalog.to_jsonb(line){relid})::pg_catalog.text \
                 FROM {}.{}({}) AS line",
            spi::quote_identifier(&self.schema),
            spi::quote_identifier(&self.name),
            arguments.join(", ")
        )
    }
}

/// Runs a probe in a subtransaction. An ERROR that is not the caller's business but bad luck is caught.
pub(crate) fn attempt<T>(probe: impl FnOnce() -> T + UnwindSafe) -> Result<T, Failed> {
    subtransaction::run(false, || Ok(probe()), |error| failed(error).map(Err))
}

/// None for an ERROR that is to be raised again.
fn failed(error: &Caught) -> Option<Failed> {
    if error.is_of_class(&CALLERS) {
        return None;
    }
    // The server itself raises these for nothing that a probe does.
    const TAKEN: [PgSqlErrorCode; 2] =
        [PgSqlErrorCode::ERRCODE_OBJECT_IN_USE, PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE];
    let taken = TAKEN.iter().any(|taken| *taken as i32 == error.code());
    let status = if taken { "skipped" } else { "failed" };
    Some(Failed { status, sqlstate: sqlstate(error.code()), message: error.message(), hint: error.hint() })
}

/// A packed SQLSTATE as it is written: five characters of six bits each.
fn sqlstate(code: i32) -> String {
    (0..5).map(|place| char::from(b'0' + (code >> (6 * place) & 0x3f) as u8)).collect()
}
