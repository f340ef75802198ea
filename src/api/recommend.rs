//! `io_probe_recommend`: what the settings should be by what was measured, with reasons. Nothing is changed.

mod page_costs;
mod place;
mod readahead;
mod row;
mod wal;

use std::time::Duration;

use io_probe_core::run::budget::Limits;
use pgrx::prelude::*;

use self::place::TablespaceTarget;
pub(super) use self::row::ON_PRIMARY;
use self::row::Setting;
use super::page_cost::{self, PageLimits};
use crate::call::arguments;
use crate::call::named::{NamedEnum, named};
use crate::call::options::{MEASURING, Options};
use crate::call::probe::Probe;
use crate::call::{Begin, Call};
use crate::error::Result;
use crate::gucs;
use crate::pg::backend::argument::Elements;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::interval::Interval;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::row::Rows;

/// The page times of a tablespace take this many times as long as any other measurement.
const PARTS_OF_PAGES: u32 = 3;

#[pg_extern(sql = false)]
fn io_probe_recommend(
    rel: Option<pg_sys::Oid>,
    settings: Option<Elements<Text>>,
    duration: Option<Interval>,
    cold: Option<bool>,
    writes: Option<bool>,
    unit: Option<Text>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, &MEASURING)?;
        let request = RecommendRequest {
            unit: Unit::parse(unit.as_deref())?.unwrap_or(Unit::SeqPage),
            lists_settings: settings.is_some(),
            settings: Setting::pick(settings.map(Elements::all))?,
            bounds: options.bounds()?,
            duration: arguments::duration(duration)?,
            cold: cold.unwrap_or(false),
            writes: writes.unwrap_or(false),
        };

        let (call, named) = Begin {
            evicts: request.cold,
            writes: request.writes,
            waits: options.flag("wait")?,
            ..Begin::of(Probe::Recommend)
        }
        .on_relations(rel)?;
        let places = match named {
            Some(relation) => vec![TablespaceTarget::of(relation)],
            None => TablespaceTarget::of_user_tables(),
        };
        let recommend = RecommendCall::new(&request, &call, &places)?;
        let mut rows = Vec::new();
        for place in &places {
            rows.extend(page_costs::rows(&recommend, place)?);
        }
        rows.extend(readahead::rows(&recommend, &places)?);
        rows.extend(wal::row(&recommend)?);
        Ok(rows)
    })
}

/// What a cost of 1 stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A page read in sequence.
    SeqPage,
    /// The unit in which the costs of the CPU are right.
    Cpu,
}

named!(Unit, "unit", "units", { SeqPage = "seq_page", Cpu = "cpu" });

/// What advice is asked for, and what may be done for it.
struct RecommendRequest {
    unit: Unit,
    settings: Vec<Setting>,
    /// Does the call list these settings?
    lists_settings: bool,
    /// Bounds of each measurement, apart from its time.
    bounds: Limits,
    /// Time of all measurements together, where the call gives it.
    duration: Option<Duration>,
    /// May it evict?
    cold: bool,
    /// May it write?
    writes: bool,
}

/// A request in a call that has begun.
struct RecommendCall<'a> {
    request: &'a RecommendRequest,
    call: &'a Call,
    /// Bounds of the page times of a tablespace.
    page_limits: PageLimits,
    /// Bounds of each other measurement.
    limits: Limits,
}

impl<'a> RecommendCall<'a> {
    fn new(request: &'a RecommendRequest, call: &'a Call, places: &[TablespaceTarget]) -> Result<Self> {
        let (bounds, given) = (request.bounds, request.duration);
        let parts = request.parts(places.iter().filter(|place| !place.relations.is_empty()).count() as u32);
        let page_limits = page_cost::limits(bounds, given, PARTS_OF_PAGES, parts)?;
        let duration = gucs::share_of_duration(given, 1, parts, gucs::row_duration())?;
        Ok(Self { request, call, page_limits, limits: Limits { duration, ..bounds } })
    }

    fn wants(&self, setting: Setting) -> bool {
        self.request.settings.contains(&setting)
    }
}

impl RecommendRequest {
    /// Parts of the call's time that its measurements may come to, for `places` tablespaces.
    fn parts(&self, places: u32) -> u32 {
        let wants = |settings: &[Setting]| settings.iter().any(|setting| self.settings.contains(setting));
        let by_pages = wants(&Setting::OF_TABLESPACE) || wants(&[Setting::Correlation]);
        let of_places = if by_pages { places * PARTS_OF_PAGES } else { 0 };
        let of_devices = if self.cold && wants(&[Setting::ReadAheadKb]) { places } else { 0 };
        let of_syncs = self.writes && wants(&[Setting::WalSyncMethod]);
        of_places + of_devices + u32::from(of_syncs)
    }
}
