//! A row of `io_probe_page_cost`.

use io_probe_core::measure::page_times::TimeRow;
use serde::Serialize;

use super::result::TimeResult;
use crate::api::row::{Identity, Verdict};
use crate::call::arguments::figure;

/// `io_probe_page_cost_row`; the type's comments say what each attribute means.
#[derive(Debug, Serialize)]
pub(super) struct PageCostRow {
    #[serde(flatten)]
    time: TimeRow,
    samples: u64,
    resident_pct: Option<f64>,
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
        let interval = measured.time.and_then(|time| time.interval);
        Self {
            time: TimeRow {
                tier: measured.tier,
                pattern: measured.pattern,
                density: measured.density,
                depth: measured.depth,
                us_per_block: measured.time.map(|time| figure(time.us)),
                ci_low_us: interval.map(|(low, _)| figure(low)),
                ci_high_us: interval.map(|(_, high)| figure(high)),
                us_per_tuple: measured.us_per_tuple.map(figure),
            },
            samples: result.samples,
            resident_pct: result.resident_pct.map(figure),
            verdict: result.verdict,
            turns: result.turns,
            seed: seed as i64,
            identity: identity.clone(),
        }
    }
}
