//! `io_probe_readahead`: the curve of throughput over readahead windows.

mod curve;

use io_probe_core::measure::readahead::LARGEST_WINDOW;
use io_probe_core::run::budget::Limits;
use pgrx::prelude::*;
use serde_json::json;

pub(super) use self::curve::{WindowMode, WindowResult, is_disturbed, measure};
use super::row::{Row, ms, us};
use crate::call::arguments::{self, figure};
use crate::call::options::{MEASURING, Options};
use crate::call::probe::Probe;
use crate::call::{Begin, ProbedRelation};
use crate::error::{Error, Result};
use crate::pg::backend::argument::Elements;
use crate::pg::backend::interval::Interval;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::row::Rows;
use crate::pg::storage::relation::Fork;

/// Windows by default, in kB, as the SQL signature says.
pub(super) const WINDOWS_KB: [i32; 9] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/// Most windows of a call.
const MOST_WINDOWS: usize = 32;

/// Precision where the call asks for none: as fine as what tells the best window.
pub(super) const PRECISION: f64 = 0.03;

#[pg_extern(sql = false)]
fn io_probe_readahead(
    rel: Option<pg_sys::Oid>,
    windows_kb: Option<Elements<i32>>,
    duration: Option<Interval>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, &MEASURING)?;
        let windows = pick(windows_kb.map(Elements::all))?;
        let limits = options.limits(duration, windows.len() + 1)?;
        let limits = Limits { precision: limits.precision.or(Some(PRECISION)), ..limits };
        let rel = arguments::relation(rel)?;

        let waits = options.flag("wait")?;
        let (call, relation) =
            Begin { evicts: true, waits, ..Begin::of(Probe::Readahead) }.on_relation(rel, Fork::Main)?;
        let blank = Row::of(&relation);
        let windows = measure(&call, &relation, &windows, limits)?;
        Ok(windows.iter().map(|window| row(window, &relation, &blank)).collect())
    })
}

/// The windows that were asked for in bytes, each once, ascending.
fn pick(windows_kb: Option<Vec<Option<i32>>>) -> Result<Vec<u64>> {
    let windows_kb = windows_kb.unwrap_or_else(|| WINDOWS_KB.map(Some).to_vec());
    arguments::not_empty("windows_kb", &windows_kb)?;
    let block_kb = (pg_sys::BLCKSZ / 1024) as i32;
    let most_kb = (LARGEST_WINDOW >> 10) as i32;
    let bytes = |kb: i32| {
        if !(0..=most_kb).contains(&kb) || kb % block_kb != 0 {
            let valid = format!("multiples of {block_kb} from 0 to {most_kb}");
            return Err(Error::invalid(format!("windows_kb must contain {valid}, not {kb}")));
        }
        Ok(u64::from(kb.unsigned_abs()) << 10)
    };
    let windows = arguments::numbers("windows_kb", windows_kb, bytes)?;
    arguments::not_over("windows_kb", windows.len(), MOST_WINDOWS)?;
    Ok(windows)
}

/// The row of a window, which begins as a blank one.
fn row(window: &WindowResult, relation: &ProbedRelation, blank: &Row) -> Row {
    let device = relation.placement.read_ahead_device.as_deref();
    let lines = window.kb().zip(device).map(|(kb, device)| lines(kb, device));
    let (blockdev_setra, udev_rule) = lines.unzip();
    let mut row = blank.clone().with(json!({
        "window_kb": window.kb(),
        "mode": window.mode.name(),
        "mib_s": window.mib_s(relation.block_size()).map(figure),
        "block_us": window.figures.map(|figures| us(figures.ns_per_block)),
        "best": window.best,
        "blockdev_setra": blockdev_setra,
        "udev_rule": udev_rule,
        "cache_us": window.cache_ns.map(us),
        "turns": window.turns,
        "blks": window.blocks,
        "elapsed_ms": window.elapsed_ns.map(ms),
        "device_pct": window.from_device.map(figure),
        "engine": window.engine,
    }));
    row.caveats = window.caveats.clone();
    row.set_interval_of_time(window.figures.and_then(|figures| figures.interval));
    if let Some(cost) = &window.cost {
        row.set_device(cost, Some(window.blocks));
    }
    row
}

/// How to set a window of `kb` kB on a device: for now, and at each boot.
pub(super) fn lines(kb: u64, device: &str) -> (String, String) {
    let sectors = kb * 2;
    (
        format!("blockdev --setra {sectors} /dev/{device}"),
        format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{device}\", \
             ATTR{{queue/read_ahead_kb}}=\"{kb}\""
        ),
    )
}
