//! A row of `io_probe_page_cost`.

use io_probe_core::measure::page_times::{Pattern, Tier};
use serde::Serialize;

use super::result::TimeResult;
use crate::api::row::{Identity, IntervalFigures, Verdict};
use crate::call::arguments::figure;

/// `io_probe_page_cost_full_row`; the type's comments say what each attribute means.
#[derive(Debug, Serialize)]
pub(super) struct PageCostRow {
    tier: Tier,
    pattern: Pattern,
    density: Option<f64>,
    depth: Option<u32>,
    block_us: Option<f64>,
    #[serde(flatten)]
    interval: IntervalFigures,
    tuple_us: Option<f64>,
    blks: u64,
    os_pct: Option<f64>,
    #[serde(flatten)]
    verdict: Verdict,
    turns: usize,
    seed: i64,
    #[serde(flatten)]
    identity: Identity,
}

impl PageCostRow {
    pub(super) fn of(result: TimeResult, seed: u64, identity: &Identity) -> Self {
        let measured = result.measured;
        let ends = measured.time.and_then(|time| Some((time.us, time.interval?)));
        let around = |(us, (low, high))| IntervalFigures::around(us, low, Some(high));
        let interval = ends.map(around).unwrap_or_default();
        let mut verdict = result.verdict;
        verdict.judge_interval(&interval);
        Self {
            tier: measured.tier,
            pattern: measured.pattern,
            density: measured.density,
            depth: measured.depth,
            block_us: measured.time.map(|time| figure(time.us)),
            interval,
            tuple_us: measured.tuple_us.map(figure),
            blks: result.samples,
            os_pct: result.os_pct.map(figure),
            verdict,
            turns: result.turns,
            seed: seed as i64,
            identity: identity.clone(),
        }
    }
}
