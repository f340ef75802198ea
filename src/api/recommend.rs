//! `io_probe_recommend`: what the settings should be by what was measured, with reasons. Nothing is changed.

mod combine;
mod page_costs;
mod place;
mod readahead;
mod row;
mod wal;

use io_probe_core::run::budget::Limits;
use pgrx::datum::Interval;
use pgrx::prelude::*;

use self::place::TablespaceTarget;
use self::row::Setting;
use crate::call::named::{NamedEnum, named};
use crate::call::options::{MEASURING, Options};
use crate::call::probe::Probe;
use crate::call::{Begin, Call};
use crate::gucs;
use crate::pg::backend::argument::Elements;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::row::Rows;

#[allow(clippy::too_many_arguments, reason = "the SQL signature")]
#[pg_extern(sql = false)]
fn io_probe_recommend(
    rel: Option<pg_sys::Oid>,
    settings: Option<Elements<Text>>,
    duration: Option<Interval>,
    cold: Option<bool>,
    writes: Option<bool>,
    cache: Option<Text>,
    unit: Option<Text>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, &MEASURING)?;
        let request = RecommendRequest {
            cache: CachedPages::parse(cache.as_deref())?.unwrap_or(CachedPages::Planned),
            unit: Unit::parse(unit.as_deref())?.unwrap_or(Unit::SeqPage),
            settings: Setting::pick(settings.map(Elements::all))?,
            limits: options.limits(duration)?,
            given: duration.is_some(),
            cold: cold.unwrap_or(false),
            writes: writes.unwrap_or(false),
        };

        let (call, named) = Begin::of(Probe::Recommend)
            .evicting(request.cold)
            .writing(request.writes)
            .waiting(options.flag("wait")?)
            .on_relations(rel)?;
        let places = match named {
            Some(relation) => vec![TablespaceTarget::of(relation)],
            None => TablespaceTarget::of_user_tables(),
        };
        let recommend = RecommendCall::new(&request, &call, &places);
        let mut rows = Vec::new();
        for place in &places {
            rows.extend(page_costs::rows(&recommend, place)?);
        }
        rows.extend(readahead::rows(&recommend, &places)?);
        rows.extend(combine::rows(&recommend, &places)?);
        rows.extend(wal::rows(&recommend)?);
        Ok(rows)
    })
}

/// How much of the pages the planner shall take for cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CachedPages {
    /// None.
    Cold,
    /// What the caches hold now.
    Current,
    /// What the server's counters say of the past.
    Stats,
    /// None and all: the costs under which the planner's choices are best for both.
    Planned,
}

named!(CachedPages, "cache", "caches", {
    Cold = "cold",
    Current = "current",
    Stats = "stats",
    Planned = "planned",
});

/// What a cost of 1 is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A page read in sequence.
    SeqPage,
    /// What makes the costs of the CPU right.
    Cpu,
}

named!(Unit, "unit", "units", { SeqPage = "seq_page", Cpu = "cpu" });

/// What there is to be advice for, and what may be done for it.
struct RecommendRequest {
    cache: CachedPages,
    unit: Unit,
    settings: Vec<Setting>,
    /// Of each relation that is measured, or of all syncs.
    limits: Limits,
    /// Does the call itself give the duration?
    given: bool,
    /// May it evict?
    cold: bool,
    /// May it write?
    writes: bool,
}

/// The same in a call that has begun.
struct RecommendCall<'a> {
    request: &'a RecommendRequest,
    call: &'a Call,
    /// As in the request. If the call gives no duration, all but the page times together leave half of the
    /// cap.
    limits: Limits,
    /// Tablespaces whose page times are measured.
    places: usize,
}

impl<'a> RecommendCall<'a> {
    fn new(request: &'a RecommendRequest, call: &'a Call, places: &[TablespaceTarget]) -> Self {
        let parts = request.parts(places.len() as u32);
        let limits = if request.given { request.limits } else { gucs::shared_by_rows(request.limits, parts) };
        Self { request, call, limits, places: places.len() }
    }

    fn wants(&self, setting: Setting) -> bool {
        self.request.settings.contains(&setting)
    }
}

impl RecommendRequest {
    /// Measurements that the call may come to, for so many tablespaces.
    fn parts(&self, places: u32) -> u32 {
        let wants = |settings: &[Setting]| settings.iter().any(|setting| self.settings.contains(setting));
        let of_places = if wants(&Setting::OF_TABLESPACE) { places } else { 0 };
        let of_devices = if self.cold && wants(&[Setting::ReadAheadKb]) { places } else { 0 };
        let of_syncs = self.writes && wants(&[Setting::WalSyncMethod, Setting::CommitDelay]);
        of_places + of_devices + u32::from(wants(&[Setting::IoCombineLimit])) + u32::from(of_syncs)
    }
}
