//! `io_probe_import`, `io_probe_record`, `io_probe_prune`: storing results, and deleting them.

use std::collections::BTreeMap;

use pgrx::datum::Interval;
use pgrx::prelude::*;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::measure::{FORMAT, measure};
use crate::error::{Error, Result};
use crate::pg::answer;
use crate::pg::encoding::Text;
use crate::pg::history::{check_possible, delete_older, first_that_fits_no_row, insert};
use crate::pg::json::JsonbText;

#[pg_extern(sql = false)]
fn io_probe_import(result: Option<JsonbText>, label: Option<Text>) -> i64 {
    let import = || {
        let result = result.ok_or_else(|| Error::invalid("result must not be null"))?;
        check_label(label.as_deref())?;
        check_possible("io_probe_import")?;
        if result.0.len() > MOST_BYTES {
            return Err(Error::too_large(format!("a result must not have more than {MOST_BYTES} bytes")));
        }
        let probe = check(&result)?;
        if let Some(number) = first_that_fits_no_row(&result, &probe) {
            return Err(not_a_result(format!("row {number} is not an object")));
        }
        Ok(insert(&result, label))
    };
    answer(import)
}

#[pg_extern(sql = false)]
fn io_probe_record(
    probe: Option<Text>,
    rel: Option<pg_sys::Oid>,
    args: Option<JsonbText>,
    label: Option<Text>,
) -> i64 {
    let record = || {
        // Before anything is measured in vain.
        check_label(label.as_deref())?;
        check_possible("io_probe_record")?;
        Ok(insert(&measure(probe.as_deref(), rel, args)?, label))
    };
    answer(record)
}

#[pg_extern(sql = false)]
fn io_probe_prune(keep: Option<Interval>) -> i64 {
    let prune = || {
        let keep = keep.filter(|keep| keep.as_micros() >= 0);
        let keep = keep.ok_or_else(|| Error::invalid("keep must be given and not be negative"))?;
        check_possible("io_probe_prune")?;
        Ok(delete_older(keep))
    };
    answer(prune)
}

/// A result of more is not read: it is held in memory several times.
const MOST_BYTES: usize = 64 << 20;

/// A label of more, in bytes, would not fit the index.
const MOST_OF_LABEL: usize = 1000;

fn check_label(label: Option<&str>) -> Result<()> {
    match label {
        Some(label) if label.len() > MOST_OF_LABEL => {
            Err(Error::invalid(format!("label must not have more than {MOST_OF_LABEL} bytes")))
        }
        _ => Ok(()),
    }
}

/// What a result must have, so that it can be stored and compared.
#[derive(Deserialize)]
struct Header {
    format: u32,
    probe: String,
    status: String,
    #[serde(rename = "started_at")]
    _started_at: String,
    #[serde(rename = "object")]
    _object: String,
    #[serde(rename = "system_identifier")]
    _system_identifier: String,
    #[serde(rename = "args")]
    _args: BTreeMap<String, IgnoredAny>,
    #[serde(rename = "settings")]
    _settings: BTreeMap<String, IgnoredAny>,
    #[serde(rename = "leaves")]
    _leaves: Vec<BTreeMap<String, IgnoredAny>>,
    #[serde(rename = "rows")]
    _rows: Vec<IgnoredAny>,
}

/// Checks all but the rows, and returns the probe.
fn check(result: &JsonbText) -> Result<String> {
    let header: Header = serde_json::from_str(&result.0).map_err(|e| not_a_result(e.to_string()))?;
    if header.format != FORMAT {
        return Err(not_a_result(format!(
            "its format is {}, of which only {FORMAT} is known",
            header.format
        )));
    }
    if !["ok", "failed", "skipped"].contains(&header.status.as_str()) {
        return Err(not_a_result(format!("its status is \"{}\"", header.status)));
    }
    Ok(header.probe)
}

fn not_a_result(why: String) -> Error {
    Error::invalid("not a result of io_probe_measure").detail(why)
}
