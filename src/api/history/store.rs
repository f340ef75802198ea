//! `io_probe_import`, `io_probe_record`, `io_probe_prune`: storing results, and deleting them.

use std::fmt;

use io_probe_core::run::memory;
use pgrx::datum::Interval;
use pgrx::prelude::*;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::measure::{FORMAT, measure};
use crate::error::{Error, Result};
use crate::pg::answer;
use crate::pg::backend::argument::UpTo;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::json::JsonbText;
use crate::pg::history::{check_possible, delete_older, first_that_fits_no_row, insert, is_of_the_future};

#[pg_extern(sql = false)]
fn io_probe_import(result: Option<UpTo<64, JsonbText>>, label: Option<Text>) -> i64 {
    let import = || {
        let UpTo(result) = result.ok_or_else(|| Error::invalid("result must not be null"))?;
        check_label(label.as_deref())?;
        check_possible("io_probe_import")?;
        // It is copied to be read, and to be stored.
        let _memory = memory::hold(COPIES * result.len())?;
        let probe = check(&result)?;
        if let Some(number) = first_that_fits_no_row(&result, &probe) {
            return Err(not_a_result(format!("row {number} is not an object")));
        }
        if is_of_the_future(&result) {
            return Err(not_a_result("its started_at is more than a day ahead".to_owned()));
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

/// Most copies of a result that are held at a time.
const COPIES: usize = 8;

/// Most bytes of a probe's name: as many as of the server's own names.
const MOST_OF_PROBE: usize = 63;

/// Most bytes of a text, such as the object: each figure of a run has it when runs are compared.
const MOST_OF_TEXT: usize = 10_000;

/// Most bytes of any other part but the rows.
const MOST_OF_PART: usize = 1 << 20;

/// Most characters of a DETAIL.
const MOST_OF_DETAIL: usize = 1000;

/// Most bytes of a label: a longer one would not fit the index.
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
struct Header<'a> {
    format: u32,
    probe: String,
    status: String,
    #[serde(rename = "started_at")]
    _started_at: String,
    #[serde(rename = "object")]
    _object: String,
    #[serde(rename = "system_identifier")]
    _system_identifier: String,
    #[serde(borrow)]
    args: &'a RawValue,
    #[serde(borrow)]
    settings: &'a RawValue,
    #[serde(borrow)]
    leaves: Vec<&'a RawValue>,
    #[serde(rename = "rows")]
    _rows: Vec<IgnoredAny>,
}

impl Header<'_> {
    /// What must be objects, with any number of keys.
    fn objects(&self) -> impl Iterator<Item = &str> {
        [self.args, self.settings].into_iter().chain(self.leaves.iter().copied()).map(RawValue::get)
    }
}

/// The parts of a result, none of which is kept: they must not be too long.
struct Parts;

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(Self)
    }
}

impl<'de> Visitor<'de> for Parts {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self, A::Error> {
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            let value = value.get();
            let most = if value.starts_with('"') { MOST_OF_TEXT } else { MOST_OF_PART };
            // A message is kept as it was measured, and no figure repeats it.
            if !["rows", "message"].contains(&key.as_str()) && value.len() > most {
                return Err(A::Error::custom(format!("{key} has {} bytes, more than {most}", value.len())));
            }
        }
        Ok(self)
    }
}

/// Checks all but the rows, and returns the probe.
fn check(result: &JsonbText) -> Result<String> {
    serde_json::from_str::<Parts>(result).map_err(|e| not_a_result(e.to_string()))?;
    let header: Header<'_> = serde_json::from_str(result).map_err(|e| not_a_result(e.to_string()))?;
    if header.format != FORMAT {
        return Err(not_a_result(format!(
            "its format is {}, of which only {FORMAT} is known",
            header.format
        )));
    }
    if !header.objects().all(|value| value.starts_with('{')) {
        return Err(not_a_result("args, settings and each of leaves must be an object".to_owned()));
    }
    if !["ok", "failed", "skipped"].contains(&header.status.as_str()) {
        return Err(not_a_result(format!("its status is \"{}\"", header.status)));
    }
    if header.probe.len() > MOST_OF_PROBE {
        return Err(not_a_result("its probe has no such name".to_owned()));
    }
    Ok(header.probe)
}

fn not_a_result(why: String) -> Error {
    // The reason may quote what was found, at any length.
    let why: String = why.chars().take(MOST_OF_DETAIL).collect();
    Error::invalid("not a result of io_probe_measure").detail(why)
}
