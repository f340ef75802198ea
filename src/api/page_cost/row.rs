//! A row of `io_probe_page_cost`.

use io_probe_core::measure::page_times::WaySeries;
use io_probe_core::measure::page_times::tuple::TupleTime;
use io_probe_core::measure::page_times::{Estimate, Pattern, Tier, TimeRow};
use io_probe_core::run::budget::Stop;
use serde::Serialize;

use crate::call::arguments::figure;
use crate::call::probed_relation::{Identity, Verdict};

/// `io_probe_page_cost_row`; the type's comments say what each attribute means.
#[derive(Debug, Serialize)]
pub(in crate::api) struct PageCostRow {
    #[serde(flatten)]
    pub(in crate::api) time: TimeRow,
    samples: u64,
    resident_pct: Option<f64>,
    #[serde(flatten)]
    pub(in crate::api) verdict: Verdict,
    turns: usize,
    seed: i64,
    #[serde(flatten)]
    identity: Identity,
}

impl PageCostRow {
    pub(super) fn new(tier: Tier, pattern: Pattern, seed: u64, identity: &Identity) -> Self {
        Self {
            time: TimeRow {
                tier,
                pattern,
                density: None,
                depth: None,
                us_per_block: None,
                ci_low_us: None,
                ci_high_us: None,
                us_per_tuple: None,
            },
            samples: 0,
            resident_pct: None,
            verdict: Verdict::default(),
            turns: 0,
            seed: seed as i64,
            identity: identity.clone(),
        }
    }

    /// At this density, with so many reads in flight.
    pub(super) fn at(mut self, density: Option<f64>, depth: u32) -> Self {
        self.time.density = density;
        self.time.depth = Some(depth);
        self
    }

    /// What the turns gave.
    pub(super) fn of(mut self, series: &WaySeries) -> Self {
        let from_device = self.is_from_device();
        if let Some(time) = if from_device { series.of_device() } else { series.of_memory() } {
            self.tell(time);
        }
        if from_device && series.slow() > 0 {
            self.verdict.note(format!(
                "turns left out because they took over four times the median: {}",
                series.slow()
            ));
        }
        self.samples = series.blocks();
        self.turns = series.turns();
        self.resident_pct = match self.time.tier {
            Tier::Device => series.cached_pct().map(figure),
            Tier::Os => (series.blocks() > 0).then_some(100.0),
            Tier::Shared | Tier::Cpu => None,
        };
        if series.discarded() > 0 {
            let how_many = if self.time.tier == Tier::Shared { "few" } else { "many" };
            self.verdict.note(format!(
                "turns left out because {how_many} of their blocks were in shared buffers: {}",
                series.discarded()
            ));
        }
        self
    }

    /// Its relation has none.
    pub(super) fn without_tuples(mut self) -> Self {
        self.verdict.partial("the relation's blocks were never written to its files (holes)");
        self
    }

    /// There was no time for it.
    pub(super) fn not_begun(mut self, stop: Stop) -> Self {
        self.verdict.not_begun(stop);
        self
    }

    /// What counting gave.
    pub(super) fn of_tuple(&mut self, tuple: &TupleTime) {
        self.tell(tuple.time.divided_by(1.0 / tuple.per_block));
        self.time.us_per_tuple = Some(figure(tuple.time.us));
        self.samples = tuple.tuples;
        self.turns = tuple.pairs;
    }

    fn tell(&mut self, time: Estimate) {
        self.time.us_per_block = Some(figure(time.us));
        let (low, high) = time.interval.unzip();
        self.time.ci_low_us = low.map(figure);
        self.time.ci_high_us = high.map(figure);
    }

    pub(in crate::api) fn has_no_time(&self) -> bool {
        self.time.us_per_block.is_none()
    }

    pub(in crate::api) fn is_from_device(&self) -> bool {
        self.time.tier == Tier::Device
    }

    pub(super) fn is_from_os(&self) -> bool {
        self.time.tier == Tier::Os
    }

    pub(in crate::api) fn is_sparse(&self) -> bool {
        self.time.pattern == Pattern::Sparse
    }
}
