//! One measured time, and what there is to say of it.

use io_probe_core::measure::page_times::tuple::TupleTime;
use io_probe_core::measure::page_times::{MeasuredTime, Pattern, Tier, WaySeries};
use io_probe_core::run::budget::Stop;

use crate::api::row::Verdict;

/// A time, and how it came about.
#[derive(Debug)]
pub(in crate::api) struct TimeResult {
    pub(in crate::api) measured: MeasuredTime,
    pub(super) samples: u64,
    /// Percent of the blocks that the OS cache held before.
    pub(super) os_pct: Option<f64>,
    pub(super) turns: usize,
    pub(in crate::api) verdict: Verdict,
}

impl TimeResult {
    pub(super) fn new(tier: Tier, pattern: Pattern) -> Self {
        Self {
            measured: MeasuredTime { tier, pattern, density: None, depth: None, time: None, tuple_us: None },
            samples: 0,
            os_pct: None,
            turns: 0,
            verdict: Verdict::default(),
        }
    }

    /// At this density, with so many reads in flight.
    pub(super) fn at(mut self, density: Option<f64>, depth: u32) -> Self {
        self.measured.density = density;
        self.measured.depth = Some(depth);
        self
    }

    /// What the turns gave.
    pub(super) fn of(mut self, series: &WaySeries) -> Self {
        let from_device = self.is_from_device();
        if let Some(time) = if from_device { series.of_device() } else { series.of_memory() } {
            self.measured.time = Some(time);
        }
        if from_device && series.slow() > 0 {
            self.verdict.note(format!(
                "turns left out because they took over four times the median: {}",
                series.slow()
            ));
        }
        self.samples = series.blocks();
        self.turns = series.turns();
        self.os_pct = match self.measured.tier {
            Tier::Device => series.cached_pct(),
            Tier::Os => (series.blocks() > 0).then_some(100.0),
            Tier::Shared | Tier::Cpu => None,
        };
        if series.discarded() > 0 {
            let how_many = if self.measured.tier == Tier::Shared { "few" } else { "many" };
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
        self.measured.time = Some(tuple.time.divided_by(1.0 / tuple.per_block));
        self.measured.tuple_us = Some(tuple.time.us);
        self.samples = tuple.tuples;
        self.turns = tuple.pairs;
    }

    pub(in crate::api) fn has_no_time(&self) -> bool {
        self.measured.time.is_none()
    }

    pub(in crate::api) fn is_from_device(&self) -> bool {
        self.measured.tier == Tier::Device
    }

    pub(super) fn is_from_os(&self) -> bool {
        self.measured.tier == Tier::Os
    }

    pub(in crate::api) fn is_sparse(&self) -> bool {
        self.measured.pattern == Pattern::Sparse
    }
}
