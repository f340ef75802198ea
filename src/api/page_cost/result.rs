//! One measured time, and what there is to say of it.

use std::fmt::{self, Display, Formatter};

use io_probe_core::files::page_cache;
use io_probe_core::measure::page_times::tuple::TupleTime;
use io_probe_core::measure::page_times::{MeasuredTime, NotCold, Pattern, Tier, WaySeries};
use io_probe_core::run::budget::Stop;
use io_probe_surface::doubt::Doubt;
use io_probe_surface::page_cost::PageCostRow;
use io_probe_surface::shared::PlaceColumns;
use io_probe_surface::value::Timestamp;

use crate::api::depth::SingleRead;
use crate::api::shared::{self, Caveats};
use crate::call::figure;
use crate::call::named::{NamedEnum, named};

named!(Tier, "tier", "tiers", { Shared = "shared", Os = "os", Device = "device", Cpu = "cpu" });

named!(Pattern, "pattern", "patterns", {
    Sequential = "sequential",
    Random = "random",
    Sparse = "sparse",
    Tuple = "tuple",
});

#[derive(Debug, Clone, Copy)]
pub(in crate::api) enum NoTime {
    NotBegun(Stop),
    NotCold(NotCold),
    /// There is a time, but what served the blocks below the page cache is unknown.
    NotBorneOut,
    /// It had no room in the time, see [`WaySeries::is_left_out`].
    LeftOut,
    Other(&'static str),
}

impl Display for NoTime {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoTime::NotBegun(stop) => return stop.fmt(f),
            NoTime::NotCold(NotCold::Unknown) => page_cache::OWN_CACHE,
            NoTime::NotCold(NotCold::Cached) => {
                "the OS cache holds the relation, so the device can't be timed: add cold => true, which \
                 evicts it"
            }
            NoTime::NotCold(NotCold::Buffered) => {
                "every part of the relation has many pages in shared buffers: use a larger relation"
            }
            NoTime::NotCold(NotCold::Holes) => {
                "the relation's blocks were never written to its files (holes)"
            }
            NoTime::NotBorneOut => {
                "the kernel counted far fewer bytes fetched from storage than were read (as with FUSE or \
                 compression), so it is unknown where the blocks came from"
            }
            NoTime::LeftOut => "left out, since turns take long here: give a longer duration",
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
        self.measured.time = if from_device { series.of_device() } else { series.of_memory() };
        if from_device && series.slow() > 0 {
            self.caveats.note(format!(
                "number of turns left out because they took over four times the median: {}",
                series.slow()
            ));
        }
        series.cost().into_iter().for_each(|cost| self.caveats.note_device(cost));
        self.samples = series.blocks();
        self.turns = series.turns();
        self.no_time = series.is_left_out().then_some(NoTime::LeftOut);
        self.os_pct = match self.measured.tier {
            Tier::Device => series.cached_pct(),
            Tier::Os => (series.blocks() > 0).then_some(100.0),
            Tier::Shared | Tier::Cpu => None,
        };
        if series.discarded() > 0 {
            let how_many = if self.measured.tier == Tier::Shared { "few" } else { "many" };
            self.caveats.note(format!(
                "number of turns left out because {how_many} of their blocks were in shared buffers: {}",
                series.discarded()
            ));
        }
        self
    }

    pub(super) fn lack(&mut self, why: NoTime) {
        self.no_time = Some(why);
        self.caveats.partial(&why.to_string());
    }

    /// Something below the page cache served the blocks, or not all of them: the time is of no device.
    pub(super) fn doubt_tier(&mut self) {
        self.no_time = Some(NoTime::NotBorneOut);
        self.caveats.doubt_since(Doubt::TiersUnknown, NoTime::NotBorneOut.to_string());
    }

    /// Takes what counting tuples gave.
    pub(super) fn of_tuple(&mut self, tuple: &TupleTime) {
        self.measured.time = Some(tuple.time.divided_by(1.0 / tuple.per_block));
        self.measured.tuple_us = Some(tuple.time.us);
        self.samples = tuple.tuples;
        self.turns = tuple.pairs;
    }

    /// Takes what reads past the OS cache gave, in place of those through it.
    pub(super) fn of_single_read(&mut self, read: SingleRead) {
        let SingleRead { time, blks, mut caveats } = read;
        caveats.note("a cache holds the blocks, so these are reads past it (O_DIRECT)");
        (self.measured.time, self.no_time) = (Some(time), None);
        (self.samples, self.turns, self.caveats) = (blks, 1, caveats);
    }

    /// Why the device can't be timed without evicting what caches hold, if that is so.
    pub(super) fn lacks_cold_blocks(&self) -> Option<NoTime> {
        let is_lacking = self.is_from_device() && self.has_no_time();
        self.no_time.filter(|why| is_lacking && matches!(why, NoTime::NotCold(_)))
    }

    pub(super) fn is_random_from_device(&self) -> bool {
        self.is_from_device() && self.measured.pattern == Pattern::Random
    }

    pub(super) fn has_no_time(&self) -> bool {
        self.measured.time.is_none()
    }

    pub(in crate::api) fn is_from_device(&self) -> bool {
        self.measured.tier == Tier::Device
    }

    pub(in crate::api) fn is_of_no_device(&self) -> bool {
        matches!(self.no_time, Some(NoTime::NotBorneOut))
    }

    pub(in crate::api) fn is_left_out(&self) -> bool {
        matches!(self.no_time, Some(NoTime::LeftOut))
    }

    pub(super) fn is_from_os(&self) -> bool {
        self.measured.tier == Tier::Os
    }

    pub(in crate::api) fn is_sparse(&self) -> bool {
        self.measured.pattern == Pattern::Sparse
    }

    pub(super) fn row(self, place: PlaceColumns, seed: i64, started_at: Timestamp) -> PageCostRow {
        let Self { measured, mut caveats, .. } = self;
        let interval = measured.time.and_then(|time| {
            let (low, high) = time.interval?;
            Some(shared::interval_around(time.us, low, Some(high), &mut caveats))
        });
        PageCostRow {
            tier: measured.tier.name(),
            pattern: measured.pattern.name(),
            density: measured.density,
            depth: measured.depth,
            block_us: measured.time.map(|time| figure(time.us)),
            blks: self.samples,
            os_pct: self.os_pct.map(figure),
            tuple_us: measured.tuple_us.map(figure),
            turns: self.turns as u64,
            seed,
            started_at,
            place,
            interval: interval.unwrap_or_default(),
            caveats: caveats.columns(),
        }
    }
}
