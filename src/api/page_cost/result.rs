//! One measured time, and what there is to say of it.

use std::fmt::{self, Display, Formatter};

use io_probe_core::files::page_cache;
use io_probe_core::machine::observer::IoDelta;
use io_probe_core::measure::page_times::tuple::TupleTime;
use io_probe_core::measure::page_times::{MeasuredTime, NotCold, Pattern, Tier, WaySeries};
use io_probe_core::run::budget::Stop;
use serde_json::json;

use crate::api::row::{Caveats, Doubt, Row};
use crate::call::arguments::figure;

/// Why a time is not known.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) enum NoTime {
    NotBegun(Stop),
    NotCold(NotCold),
    /// Another reason, in words.
    Other(&'static str),
}

impl Display for NoTime {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoTime::NotBegun(stop) => return stop.fmt(f),
            NoTime::NotCold(NotCold::Unknown) => page_cache::OWN_CACHE,
            NoTime::NotCold(NotCold::Cached) => {
                "no stretch of the relation is without pages in the OS cache: with cold => true it may be \
                 evicted"
            }
            NoTime::NotCold(NotCold::Buffered) => {
                "no stretch of the relation is without many pages in shared buffers: take a larger one"
            }
            NoTime::NotCold(NotCold::Holes) => {
                "the relation's blocks were never written to its files (holes)"
            }
            NoTime::Other(why) => why,
        })
    }
}

/// A time, and how it came about.
#[derive(Debug)]
pub(in crate::api) struct TimeResult {
    pub(in crate::api) measured: MeasuredTime,
    pub(super) samples: u64,
    /// Percent of the blocks that the OS cache held before.
    pub(super) os_pct: Option<f64>,
    pub(super) turns: usize,
    /// Why there is no time, where that is known.
    pub(in crate::api) no_time: Option<NoTime>,
    pub(super) caveats: Caveats,
}

impl TimeResult {
    pub(super) fn new(tier: Tier, pattern: Pattern) -> Self {
        Self {
            measured: MeasuredTime { tier, pattern, density: None, depth: None, time: None, tuple_us: None },
            samples: 0,
            os_pct: None,
            turns: 0,
            no_time: None,
            caveats: Caveats::default(),
        }
    }

    /// At this density, with `depth` reads in flight.
    pub(super) fn at(mut self, density: Option<f64>, depth: u32) -> Self {
        self.measured.density = density;
        self.measured.depth = Some(depth);
        self
    }

    /// Takes what the turns gave.
    pub(super) fn of(mut self, series: &WaySeries) -> Self {
        let from_device = self.is_from_device();
        if let Some(time) = if from_device { series.of_device() } else { series.of_memory() } {
            self.measured.time = Some(time);
        }
        if from_device && series.slow() > 0 {
            self.caveats.note(format!(
                "turns left out because they took over four times the median: {}",
                series.slow()
            ));
        }
        if series.cost().is_some_and(IoDelta::is_disturbed) {
            self.caveats.doubt(Doubt::Others);
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
            self.caveats.note(format!(
                "turns left out because {how_many} of their blocks were in shared buffers: {}",
                series.discarded()
            ));
        }
        self
    }

    /// Says that there is no time, for this reason.
    pub(super) fn lack(&mut self, why: NoTime) {
        self.no_time = Some(why);
        self.caveats.partial(&why.to_string());
    }

    /// Takes what counting tuples gave.
    pub(super) fn of_tuple(&mut self, tuple: &TupleTime) {
        self.measured.time = Some(tuple.time.divided_by(1.0 / tuple.per_block));
        self.measured.tuple_us = Some(tuple.time.us);
        self.samples = tuple.tuples;
        self.turns = tuple.pairs;
    }

    pub(super) fn has_no_time(&self) -> bool {
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

/// A row, which begins as a blank one.
pub(super) fn row(result: TimeResult, blank: &Row) -> Row {
    let TimeResult { measured, caveats, .. } = result;
    let mut row = blank.clone().with(json!({
        "tier": measured.tier,
        "pattern": measured.pattern,
        "density": measured.density,
        "depth": measured.depth,
        "block_us": measured.time.map(|time| figure(time.us)),
        "tuple_us": measured.tuple_us.map(figure),
        "blks": result.samples,
        "os_pct": result.os_pct.map(figure),
        "turns": result.turns,
    }));
    row.caveats = caveats;
    if let Some((us, (low, high))) = measured.time.and_then(|time| Some((time.us, time.interval?))) {
        row.set_interval(us, low, Some(high));
    }
    row
}
