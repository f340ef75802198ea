//! `io_probe_import`, `io_probe_record`, `io_probe_prune`: storing results, and deleting them.

use io_probe_core::run::memory;
use pgrx::prelude::*;
use serde::Deserialize;

use super::measure::{FORMAT, find, measure};
use crate::error::{Error, Result};
use crate::pg::backend::rethrow::answer;
use crate::pg::backend::{JsonbText, SqlInterval, Text, UpTo};
use crate::pg::history::{check_possible, delete_older, insert};

#[pg_extern(sql = false)]
fn io_probe_import(result: Option<UpTo<64, JsonbText>>, label: Option<Text>) -> i64 {
    let import = || {
        let UpTo(result) = result.ok_or_else(|| Error::invalid("result must not be null"))?;
        check_label(label.as_deref())?;
        check_possible("io_probe_import")?;
        store(&result, label)
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
        store(&measure(probe.as_deref(), rel, args)?, label)
    };
    answer(record)
}

#[pg_extern(sql = false)]
fn io_probe_prune(keep: Option<SqlInterval>, force: Option<bool>) -> i64 {
    const DAY: i128 = 86_400_000_000;
    let prune = || {
        let keep = keep.filter(|keep| keep.as_micros() >= 0);
        let keep = keep.ok_or_else(|| Error::invalid("keep must not be null or negative"))?;
        if keep.as_micros() < DAY && force != Some(true) {
            return Err(Error::invalid("keep must be at least a day")
                .hint("Add force => true to delete younger runs, too."));
        }
        check_possible("io_probe_prune")?;
        Ok(delete_older(keep))
    };
    answer(prune)
}

/// Most copies of a result that are held at a time.
const COPIES: usize = 8;

/// Most characters of a DETAIL.
const MOST_OF_DETAIL: usize = 1000;

/// Most bytes of a label: a longer one would not fit the index.
const MOST_OF_LABEL: usize = 1000;

fn check_label(label: Option<&str>) -> Result<()> {
    if label.is_some_and(|label| label.len() > MOST_OF_LABEL) {
        return Err(Error::invalid(format!("label must not have more than {MOST_OF_LABEL} bytes")));
    }
    Ok(())
}

/// What says how a result is to be read.
#[derive(Deserialize)]
struct Header {
    format: u32,
    probe: String,
}

/// Stores a result, here or elsewhere measured, and returns the number of the run.
fn store(result: &JsonbText, label: Option<Text>) -> Result<i64> {
    // It is copied to be read, and to be stored.
    let _memory = memory::hold(COPIES * result.len())?;
    let Header { format, probe } = serde_json::from_str(result).map_err(|e| not_a_result(&e.to_string()))?;
    if format != FORMAT {
        return Err(not_a_result(&format!("its format is {format}, but only format {FORMAT} is known")));
    }
    let (_, function) = find(&probe)?;
    insert(result, &function, label).map_err(|why| not_a_result(&why))
}

fn not_a_result(why: &str) -> Error {
    // The reason may quote what was found, at any length.
    let why: String = why.chars().take(MOST_OF_DETAIL).collect();
    Error::invalid("not a result of io_probe_measure").detail(why)
}
