//! `io_probe_measure`: a probe called by its name, and all that is to be known of the run as one value.
//!
//! The probe runs with the caller's rights, which the server checks as in any call. Bad luck (storage that
//! fails, another probe that runs) is a result too, so that a job that runs at night leaves a trace of it; a
//! cancel, a wrong argument and a right that is missing are the caller's, and end the call.
//!
//! # Limitations and caveats
//!
//! The probe runs in a subtransaction, so that the call outlives its ERROR. On a standby, the server answers
//! a conflict with recovery in a subtransaction by ending the session, where it would otherwise end the
//! statement. `elapsed_ms` is the wall clock of the probe's whole call, waiting for another probe and
//! evicting included.

use std::collections::BTreeMap;

use io_probe_core::machine::device::{Leaf, Roots};
use io_probe_core::machine::observer::{Observer, Surroundings};
use io_probe_core::run::clock::{Clock, Monotonic};
use io_probe_core::run::memory;
use pgrx::prelude::*;
use serde_json::{Map, Value, json};

use super::facts;
use crate::call::named::{NamedEnum, quoted};
use crate::call::options;
use crate::call::probe::{Probe, Recorded};
use crate::call::{arguments, figure};
use crate::error::{Error, Result};
use crate::pg::backend::rethrow::answer;
use crate::pg::backend::{JsonbText, Text, lock, server};
use crate::pg::catalog::facts as catalog_facts;
use crate::pg::history::{Failed, Given, MOST_OF_TEXT, ProbeFunction, ServerFacts};

/// Version of the layout of a result.
pub(super) const FORMAT: u32 = 1;

#[pg_extern(sql = false)]
fn io_probe_measure(probe: Option<Text>, rel: Option<pg_sys::Oid>, args: Option<JsonbText>) -> JsonbText {
    answer(|| measure(probe.as_deref(), rel, args))
}

/// Runs a probe: the result as [`io_probe_measure`] returns it.
pub(super) fn measure(
    probe: Option<&str>,
    rel: Option<pg_sys::Oid>,
    args: Option<JsonbText>,
) -> Result<JsonbText> {
    let _memory = memory::hold(COPIES_OF_ARGUMENTS * args.as_ref().map_or(0, |args| args.len()))?;
    let (probe, function) = find(probe.ok_or_else(|| Error::invalid("probe must not be null"))?)?;
    let args = options::object("args", args)?;
    let rel = match probe.recorded() {
        // Runs of another table are another series.
        Recorded::LargestTable => rel.or_else(catalog_facts::largest_table),
        _ => rel,
    };
    let values = values(probe.name(), &function, rel, &args)?;
    lock::refuse_in_parallel()?;
    let (facts, below) = facts::gather(probe, rel, &args);
    let of_server = ServerFacts::now();
    let (started_at, started) = (server::now(), Monotonic.now());
    let (outcome, surroundings) = beside(probe, &below, || function.run(&values));
    let elapsed_ms = figure((Monotonic.now() - started) as f64 / 1e6);
    let (rows, failed) = match outcome {
        Ok(rows) => (rows, None),
        Err(failed) => ("[]".to_owned(), Some(failed)),
    };
    let run = json!({
        "format": FORMAT,
        "version": env!("CARGO_PKG_VERSION"),
        "probe": probe.name(),
        "args": plain(&function, &values),
        "status": failed.as_ref().map_or("ok", |failed| failed.status),
        "sqlstate": failed.as_ref().map(|failed| &failed.sqlstate),
        "message": failed.as_ref().map(|failed| &failed.message),
        "started_at": started_at,
        "elapsed_ms": elapsed_ms,
    });
    let _memory = memory::hold(COPIES * rows.len())?;
    Ok(with_rows(&[run, json!(surroundings), facts, json!(of_server)], &rows))
}

/// Runs a probe, and tells what went on beside it on the devices below. A WARNING says why it failed, if so.
pub(in crate::api) fn beside<T>(
    probe: Probe,
    below: &[Leaf],
    run: impl FnOnce() -> std::result::Result<T, Failed>,
) -> (std::result::Result<T, Failed>, Surroundings) {
    let roots = Roots::default();
    let (outcome, surroundings) = Observer::new(server::read_account(), below, &roots).beside(run);
    if let Err(Failed { status, sqlstate, message, hint }) = &outcome {
        let (probe, was) = (probe.name(), if *status == "skipped" { "was " } else { "" });
        let warning = Error::warning(format!("probe \"{probe}\" {was}{status}: {message}"))
            .detail(format!("SQLSTATE is {sqlstate}."));
        hint.iter().fold(warning, |warning, hint| warning.hint(hint)).warn();
    }
    (outcome, surroundings)
}

pub(super) fn find(name: &str) -> Result<(Probe, ProbeFunction)> {
    let recordable = Probe::recordable();
    let probe = Probe::among(name, &recordable)?;
    // An older catalog lacks some functions.
    let function = ProbeFunction::find(&probe.function_of_all_columns())
        .or_else(|| ProbeFunction::find(probe.function()))
        .ok_or_else(|| Probe::unknown(name, &recordable))?;
    Ok((probe, function))
}

/// Most copies of the arguments: each is quoted, which may double it, and put into a statement.
const COPIES_OF_ARGUMENTS: usize = 32;

/// Most copies of the rows that are made.
const COPIES: usize = 4;

/// A result of these objects, which have different keys. Puts the rows, which are JSON already, at the end:
/// many of them would take much memory as parsed values.
fn with_rows(objects: &[Value], rows: &str) -> JsonbText {
    let all: BTreeMap<&String, &Value> = objects.iter().filter_map(Value::as_object).flatten().collect();
    let all = json!(all).to_string();
    // Without its closing brace.
    let open = &all[..all.len() - 1];
    JsonbText::of(format!("{open},\"rows\":{rows}}}"))
}

/// The arguments in one form, so that runs of calls that mean the same are one series: those that are not the
/// default, as their type prints them; options that are set, amounts as numbers.
fn plain(function: &ProbeFunction, values: &[(&str, Given<'_>)]) -> Map<String, Value> {
    const OPTIONS: &str = "options";
    let mut args = function.plain(values);
    if let Some(Value::Object(options)) = args.get_mut(OPTIONS) {
        options::make_plain(options);
        if options.is_empty() {
            args.remove(OPTIONS);
        }
    }
    args
}

/// The values that the function's arguments are given.
fn values<'a>(
    probe: &str,
    function: &ProbeFunction,
    rel: Option<pg_sys::Oid>,
    args: &'a Map<String, Value>,
) -> Result<Vec<(&'a str, Given<'a>)>> {
    const REL: &str = "rel";
    let names: Vec<&str> = function.arguments.iter().map(|argument| argument.name.as_str()).collect();
    if args.contains_key(REL) {
        return Err(Error::invalid("the relation must not be in args")
            .hint(format!("Name it outside: rel => 'tbl', as in io_probe_record('{probe}', 'tbl').")));
    }
    if let Some(name) = args.keys().find(|name| !names.contains(&name.as_str())) {
        let others: Vec<&str> = names.into_iter().filter(|name| *name != REL).collect();
        let hint = match others[..] {
            [] => "It takes none.".to_owned(),
            _ => format!("Valid arguments are {}.", quoted(&others)),
        };
        return Err(Error::invalid(format!("probe \"{probe}\" has no argument \"{name}\"")).hint(hint));
    }
    if args.values().filter_map(Value::as_str).any(|text| text.chars().count() > MOST_OF_TEXT) {
        let message =
            format!("an argument of a recorded probe must not have more than {MOST_OF_TEXT} characters");
        return Err(Error::too_large(message));
    }
    if rel.is_some() && !names.contains(&REL) {
        return Err(Error::invalid(format!("probe \"{probe}\" takes no relation")));
    }
    if function.arguments.iter().any(|argument| argument.required && argument.name == REL) {
        arguments::relation(rel)?;
    }
    let given = args.iter().map(|(name, value)| (name.as_str(), Given::Json(value)));
    Ok(rel.map(|oid| (REL, Given::Relation(oid))).into_iter().chain(given).collect())
}
