//! `io_probe_readahead`: the curve of throughput over readahead windows.

mod curve;

use io_probe_core::measure::readahead::LARGEST_WINDOW;
use io_probe_core::run::budget::Limits;
use io_probe_surface::function::MEASURING;
use io_probe_surface::readahead::ReadaheadRow;
use io_probe_surface::value::{Text, Timestamp};
use pgrx::prelude::*;

pub(super) use self::curve::{WindowMode, WindowResult, doubt, measure};
use super::shared::{self, ms, us};
use crate::call::{Begin, Options, Probe, ProbedRelation, arguments, figure};
use crate::error::{Error, Result};
use crate::pg::backend::{Elements, JsonbText, Rows, SqlInterval, server};

/// Windows by default, in kB, as the SQL signature says.
pub(super) const WINDOWS_KB: [i32; 9] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

const MOST_WINDOWS: usize = 32;

/// Precision where the call asks for none: as fine as what tells the best window.
pub(super) const PRECISION: f64 = 0.03;

#[pg_extern(sql = false)]
fn io_probe_readahead(
    rel: Option<pg_sys::Oid>,
    windows_kb: Option<Elements<i32>>,
    duration: Option<SqlInterval>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, MEASURING)?;
        let windows = pick(windows_kb.map(|given| given.0))?;
        let limits = options.limits(duration, windows.len() + 1)?;
        let limits = Limits { precision: limits.precision.or(Some(PRECISION)), ..limits };
        let rel = arguments::relation(rel)?;

        let waits = options.waits()?;
        let (call, relation) =
            Begin { evicts: true, waits, ..Begin::of(Probe::Readahead) }.on_relation(rel)?;
        let started_at = server::present();
        let (windows, _) = measure(&call, &relation, &windows, limits)?;
        Ok(windows.into_iter().map(|window| row(window, &relation, started_at)).collect())
    })
}

/// The windows that were asked for in bytes, each once, ascending.
fn pick(windows_kb: Option<Vec<Option<i32>>>) -> Result<Vec<u64>> {
    let windows_kb = windows_kb.unwrap_or_else(|| WINDOWS_KB.map(Some).to_vec());
    arguments::not_empty("windows_kb", &windows_kb)?;
    let windows = arguments::numbers("windows_kb", windows_kb, window_bytes)?;
    arguments::not_over("windows_kb", windows.len(), MOST_WINDOWS)?;
    Ok(windows)
}

fn window_bytes(kb: i32) -> Result<u64> {
    const BLOCK_KB: i32 = (pg_sys::BLCKSZ / 1024) as i32;
    const MOST_KB: i32 = (LARGEST_WINDOW >> 10) as i32;
    if !(0..=MOST_KB).contains(&kb) || kb % BLOCK_KB != 0 {
        let valid = format!("multiples of {BLOCK_KB} from 0 to {MOST_KB}");
        return Err(Error::invalid(format!("windows_kb must contain {valid}, not {kb}")));
    }
    Ok(u64::from(kb.unsigned_abs()) << 10)
}

fn row(mut window: WindowResult, relation: &ProbedRelation, started_at: Timestamp) -> ReadaheadRow {
    let device = relation.placement.read_ahead_device.as_deref();
    let lines = window.kb().zip(device).map(|(kb, device)| lines(kb, device));
    let (blockdev_setra, udev_rule) = lines.unzip();
    let activity = window.cost.as_ref().map(|cost| shared::activity(cost, Some(window.blocks)));
    ReadaheadRow {
        window_kb: window.kb(),
        mode: window.mode.name(),
        mib_s: window.mib_s(relation.block_size()),
        block_us: window.figures.map(|figures| us(figures.ns_per_block)),
        best: window.best,
        blockdev_setra: blockdev_setra.map(Text::from),
        udev_rule: udev_rule.map(Text::from),
        cache_us: window.cache_ns.map(us),
        turns: window.turns,
        blks: window.blocks,
        elapsed_ms: window.elapsed_ns.map(ms),
        device_pct: window.from_device.map(figure),
        engine: window.engine,
        started_at,
        place: shared::place(relation),
        interval: shared::interval_of_time(window.figures.and_then(|f| f.interval), &mut window.caveats),
        activity: activity.unwrap_or_default(),
        caveats: window.caveats.columns(),
    }
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
