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

use io_probe_core::machine::device::Roots;
use io_probe_core::machine::observer::{Observer, Surroundings};
use io_probe_core::run::clock::{Clock, Monotonic};
use io_probe_core::run::memory;
use pgrx::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value};

use super::facts::ResultHeader;
use crate::call::arguments::{self, figure};
use crate::call::named::{NamedEnum, quoted};
use crate::call::options;
use crate::call::probe::{Probe, Recorded};
use crate::error::{Error, Result};
use crate::pg::answer;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::lock;
use crate::pg::backend::server;
use crate::pg::catalog::facts as catalog_facts;
use crate::pg::history::{Cause, Failed, ProbeFunction, Value as Given};

/// Version of the layout of a result.
pub(super) const FORMAT: u32 = 1;

#[pg_extern(sql = false)]
fn io_probe_measure(probe: Option<Text>, rel: Option<pg_sys::Oid>, args: Option<JsonbText>) -> JsonbText {
    answer(|| measure(probe.as_deref(), rel, args))
}

/// A result without its rows.
#[derive(Debug, Serialize)]
struct RunHeader<'a> {
    format: u32,
    version: &'static str,
    probe: &'a str,
    args: &'a Map<String, Value>,
    status: &'static str,
    sqlstate: Option<String>,
    message: Option<String>,
    started_at: String,
    elapsed_ms: f64,
    #[serde(flatten)]
    surroundings: Surroundings,
    #[serde(flatten)]
    facts: ResultHeader,
}

/// Runs a probe: the result as [`io_probe_measure`] returns it.
pub(in crate::api) fn measure(
    probe: Option<&str>,
    rel: Option<pg_sys::Oid>,
    args: Option<JsonbText>,
) -> Result<JsonbText> {
    let probe = probe.ok_or_else(|| Error::invalid("probe must not be null"))?;
    let recordable = Probe::recordable();
    let probe = Probe::among(probe, &recordable)?;
    // An older catalog lacks some functions.
    let function = ProbeFunction::find(&probe.function_of_all_columns())
        .or_else(|| ProbeFunction::find(probe.function()))
        .ok_or_else(|| Probe::unknown(probe.name(), &recordable))?;
    let args = options::object("args", args)?;
    let rel = match probe.recorded() {
        // Runs of another table are another series.
        Recorded::LargestTable => rel.or_else(catalog_facts::largest_table),
        _ => rel,
    };
    let values = values(probe.name(), &function, rel, &args)?;
    lock::refuse_in_parallel()?;
    let facts = ResultHeader::gather(probe, rel, &args);
    let probe = probe.name();
    let (started_at, started) = (server::now(), Monotonic.now());
    let roots = Roots::default();
    let observer = Observer::new(server::read_account(), &facts.below, &roots);
    let (outcome, surroundings) = observer.beside(|| function.run(&values));
    let elapsed_ms = figure((Monotonic.now() - started) as f64 / 1e6);
    let (status, what, rows, cause) = match outcome {
        Ok(rows) => ("ok", "ended", rows, None),
        Err(Failed::Skipped(cause)) => ("skipped", "was skipped", "[]".to_owned(), Some(cause)),
        Err(Failed::Failed(cause)) => ("failed", "failed", "[]".to_owned(), Some(cause)),
    };
    if let Some(Cause { sqlstate, message }) = &cause {
        Error::warning(format!("probe \"{probe}\" {what}: {message}"))
            .detail(format!("SQLSTATE is {sqlstate}."))
            .warn();
    }
    let args = plain(&function, &values);
    let (sqlstate, message) = cause.map(|cause| (cause.sqlstate, cause.message)).unzip();
    let run = RunHeader {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION"),
        probe,
        args: &args,
        status,
        sqlstate,
        message,
        started_at,
        elapsed_ms,
        surroundings,
        facts,
    };
    memory::expect(COPIES * rows.len())?;
    Ok(with_rows(&run, &rows))
}

/// Most copies of the rows that are made.
const COPIES: usize = 4;

/// Puts the rows, which are JSON already, at the end: many of them would take much memory as parsed values.
fn with_rows(run: &RunHeader<'_>, rows: &str) -> JsonbText {
    let mut text = match serde_json::to_string(run) {
        Ok(text) => text,
        Err(e) => unreachable!("its maps have texts for keys: {e}"),
    };
    // Its closing brace.
    text.pop();
    text.push_str(",\"rows\":");
    text.push_str(rows);
    text.push('}');
    JsonbText::of(text)
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
    if rel.is_some() && !names.contains(&REL) {
        return Err(Error::invalid(format!("probe \"{probe}\" takes no relation")));
    }
    for argument in function.arguments.iter().filter(|argument| argument.required) {
        if argument.name == REL {
            arguments::relation(rel)?;
        } else if !args.contains_key(&argument.name) {
            return Err(Error::invalid(format!("probe \"{probe}\" requires argument \"{}\"", argument.name)));
        }
    }
    let given = args.iter().map(|(name, value)| (name.as_str(), Given::Json(value)));
    Ok(rel.map(|oid| (REL, Given::Relation(oid))).into_iter().chain(given).collect())
}
