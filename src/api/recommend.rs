//! `io_probe_recommend`: what the settings should be by what was measured, with reasons. Nothing is changed.

mod advice;
mod flush;
mod io_method;
mod page_costs;
mod place;
mod readahead;
mod vacuum;
mod wal;

use std::time::Duration;

use io_probe_core::run::budget::Limits;
use io_probe_surface::function::MEASURING;
use pgrx::prelude::*;

pub(super) use self::advice::{ON_PRIMARY, Recommendation, Setting, UNKNOWN, told_beside};
use self::place::TablespaceTarget;
use super::page_cost::{self, PageLimits};
use crate::call::{Begin, Call, NamedEnum, Options, Probe, arguments};
use crate::error::Result;
use crate::gucs;
use crate::pg::backend::{Elements, JsonbText, Rows, SqlInterval, Text, server};
use crate::pg::storage::relation::check_is_no_index;

/// The page times of a tablespace take this many times as long as any other measurement.
const PARTS_OF_PAGES: u32 = 3;
/// So do the windows of a device's readahead, of which a turn of the largest takes long on a slow device; the
/// ways in which a server from 18 on can read; and the ways of writing data files.
const PARTS_OF_WAYS: u32 = 2;

#[pg_extern(sql = false)]
fn io_probe_recommend(
    rel: Option<pg_sys::Oid>,
    settings: Option<Elements<Text>>,
    duration: Option<SqlInterval>,
    cold: Option<bool>,
    writes: Option<bool>,
    options: Option<JsonbText>,
) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, MEASURING)?;
        let request = RecommendRequest {
            lists_settings: settings.is_some(),
            settings: Setting::pick(settings.map(|given| given.0))?,
            bounds: options.bounds()?,
            duration: arguments::duration(duration)?,
            of_call: 1.0,
            cold: cold.unwrap_or(false),
            writes: writes.unwrap_or(false),
        };
        rel.map_or(Ok(()), check_is_no_index)?;
        let advice = request.advice(rel, options.waits()?)?;
        advice.iter().for_each(Recommendation::tell);
        Ok(advice.into_iter().map(Recommendation::into_row).collect())
    })
}

/// What advice is asked for, and what may be done for it.
pub(super) struct RecommendRequest {
    pub(super) settings: Vec<Setting>,
    /// Does the call list these settings?
    pub(super) lists_settings: bool,
    /// Bounds of each measurement, apart from its time.
    pub(super) bounds: Limits,
    /// Time of all measurements together, where the call gives it.
    pub(super) duration: Option<Duration>,
    /// How many times that time the duration of the whole call is.
    pub(super) of_call: f64,
    /// May it evict?
    pub(super) cold: bool,
    /// May it write?
    pub(super) writes: bool,
}

/// A request in a call that has begun.
struct RecommendCall<'a> {
    request: &'a RecommendRequest,
    call: &'a Call,
    /// Parts of the call's time that its measurements may come to.
    parts: u32,
}

impl RecommendCall<'_> {
    /// Bounds of what weighs `weight` of the call's parts.
    fn limits(&self, weight: u32) -> Result<Limits> {
        let usual = gucs::ROW_DURATION.time() * weight;
        let duration = gucs::share_of_duration(self.request.duration, weight, self.parts, usual)?;
        Ok(Limits { duration, ..self.request.bounds })
    }

    /// Bounds of the page times of a tablespace.
    fn page_limits(&self) -> Result<PageLimits> {
        page_cost::limits(self.request.bounds, self.request.duration, PARTS_OF_PAGES, self.parts)
    }

    /// The duration of a call in which what weighs `weight` of its parts has this time.
    fn whole(&self, its: Duration, weight: u32) -> Duration {
        its.mul_f64(f64::from(self.parts) / f64::from(weight) * self.request.of_call)
    }

    /// How to get times that are lacking, by a call of this duration, if it is known.
    fn longer(&self, whole: Option<Duration>) -> String {
        let Some(whole) = whole else {
            return "give the call a longer duration and a larger max_bytes, or name a larger table"
                .to_owned();
        };
        // A quarter is left for the planner.
        let is_over = whole > gucs::MAX_DURATION.time() * 3 / 4;
        let raised = if is_over { ", once a superuser has raised pg_io_probe.max_duration" } else { "" };
        format!("duration => '{} s' leaves time for enough turns{raised}", whole.as_secs() + 1)
    }

    fn wants(&self, setting: Setting) -> bool {
        self.request.wants_any(&[setting])
    }
}

impl RecommendRequest {
    /// Measures the relation, or else the largest table of each tablespace.
    pub(super) fn advice(&self, rel: Option<pg_sys::Oid>, waits: bool) -> Result<Vec<Recommendation>> {
        self.duration.map_or(Ok(Duration::ZERO), |given| gucs::capped_duration("duration", given))?;
        let begin = Begin { evicts: self.cold, writes: self.writes, waits, probe: Probe::Recommend };
        let (call, named) = begin.on_relations(rel)?;
        let places = match named {
            Some(relation) => vec![TablespaceTarget::of(relation)],
            None => TablespaceTarget::of_user_tables(),
        };
        let measurable = places.iter().filter(|place| !place.relations.is_empty()).count() as u32;
        let recommend = RecommendCall { request: self, call: &call, parts: self.parts(measurable) };
        let mut rows = Vec::new();
        for place in &places {
            rows.extend(page_costs::rows(&recommend, place)?);
        }
        rows.extend(readahead::rows(&recommend, &places)?);
        rows.extend(io_method::rows(&recommend, &places)?);
        if recommend.wants(Setting::WalSyncMethod) {
            rows.push(wal::row(&recommend)?);
        }
        rows.extend(flush::rows(&recommend, &places)?);
        rows.extend(flush::completion_target(&recommend));
        if recommend.wants(Setting::AutovacuumVacuumCostLimit) {
            rows.push(vacuum::row(&recommend, &places)?);
        }
        Ok(rows)
    }

    fn wants_any(&self, settings: &[Setting]) -> bool {
        settings.iter().any(|setting| self.settings.contains(setting))
    }

    /// Parts of the call's time that its measurements may come to, for `places` tablespaces.
    fn parts(&self, places: u32) -> u32 {
        let pages = self.wants_any(&Setting::OF_TABLESPACE) || self.wants_any(&[Setting::Correlation]);
        let windows = self.cold && self.wants_any(&[Setting::ReadAheadKb]);
        let of_place = u32::from(pages) * PARTS_OF_PAGES + u32::from(windows) * PARTS_OF_WAYS;
        let has_methods = server::setting(c"io_method").is_some();
        let reads = self.cold && has_methods && self.wants_any(&Setting::OF_READS);
        let writes = self.writes && self.wants_any(&Setting::OF_WRITES);
        let ways = u32::from(reads) + u32::from(writes);
        let syncs = self.writes && self.wants_any(&[Setting::WalSyncMethod]);
        let vacuum = self.wants_any(&[Setting::AutovacuumVacuumCostLimit]);
        places * of_place + ways * PARTS_OF_WAYS + u32::from(syncs) + u32::from(vacuum)
    }
}
