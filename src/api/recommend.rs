//! `io_probe_recommend`: what the settings should be by what was measured, with reasons. Nothing is changed.

mod combine;
mod page_costs;
mod place;
mod readahead;
mod row;
mod setting;
mod wal;

use io_probe_core::run::budget::Limits;
use pgrx::datum::Interval;
use pgrx::prelude::*;

use self::place::TablespaceTarget;
use self::row::RecommendRow;
use self::setting::Setting;
use super::cache::check_may_evict;
use super::sync::check_may_write;
use crate::call::arguments::{self, quoted};
use crate::call::options::Options;
use crate::call::probed_relation::ProbedRelation;
use crate::call::statement;
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::argument::Elements;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::json::JsonbText;
use crate::pg::backend::lock::ProbeLock;
use crate::pg::backend::progress::Progress;
use crate::pg::backend::row::Rows;
use crate::pg::storage::relation::Fork;

/// The options of this function.
const OPTIONS: [&str; 7] =
    ["max_bytes", "max_iops", "max_mib_per_s", "max_util_pct", "max_p99_us", "precision", "wait"];

#[allow(clippy::too_many_arguments, reason = "the SQL signature")]
#[pg_extern(sql = false)]
fn io_probe_recommend(
    rel: Option<pg_sys::Oid>,
    cache: Option<Text>,
    unit: Option<Text>,
    settings: Option<Elements<Text>>,
    duration: Option<Interval>,
    cold: Option<bool>,
    writes: Option<bool>,
    options: Option<JsonbText>,
) -> Rows {
    let request = || {
        let options = Options::parse(options, &OPTIONS)?;
        Ok(RecommendRequest {
            rel,
            cache: CachedPages::parse(cache.as_deref())?,
            unit: Unit::parse(unit.as_deref())?,
            settings: Setting::pick(settings.map(Elements::all))?,
            limits: options.limits(arguments::duration(duration)?)?,
            given: duration.is_some(),
            cold: cold.unwrap_or(false),
            writes: writes.unwrap_or(false),
            wait: options.flag("wait")?,
        })
    };
    Rows::answer(|| request().and_then(|request| request.run()))
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

impl CachedPages {
    const ALL: [(&'static str, CachedPages); 4] = [
        ("cold", CachedPages::Cold),
        ("current", CachedPages::Current),
        ("stats", CachedPages::Stats),
        ("planned", CachedPages::Planned),
    ];

    fn parse(name: Option<&str>) -> Result<Self> {
        one_of("cache", "caches", name, &Self::ALL, CachedPages::Planned)
    }
}

/// What a cost of 1 is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A page read in sequence.
    SeqPage,
    /// What makes the costs of the CPU right.
    Cpu,
}

impl Unit {
    const ALL: [(&'static str, Unit); 2] = [("seq_page", Unit::SeqPage), ("cpu", Unit::Cpu)];

    fn parse(name: Option<&str>) -> Result<Self> {
        one_of("unit", "units", name, &Self::ALL, Unit::Cpu)
    }
}

/// What has this name.
fn one_of<T: Copy>(what: &str, those: &str, name: Option<&str>, all: &[(&str, T)], default: T) -> Result<T> {
    let Some(name) = name else { return Ok(default) };
    all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        Error::invalid(format!("unknown {what} \"{name}\""))
            .hint(format!("Valid {those} are {}.", quoted(&names)))
    })
}

/// A call whose arguments are right by themselves.
struct RecommendRequest {
    rel: Option<pg_sys::Oid>,
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
    wait: bool,
}

/// A call that is running.
struct Call<'a> {
    request: &'a RecommendRequest,
    /// As in the request; if the call gives no duration, all measurements but those of page times leave half of the cap to
    /// others.
    limits: Limits,
    /// Tablespaces whose page times are measured.
    places: usize,
    progress: &'a Progress,
}

impl Call<'_> {
    fn wants(&self, setting: Setting) -> bool {
        self.request.settings.contains(&setting)
    }
}

impl RecommendRequest {
    fn run(&self) -> Result<Vec<RecommendRow>> {
        if self.cold {
            check_may_evict("cold => true")?;
        }
        if self.writes {
            check_may_write("writes => true needs")?;
        }
        let (_lock, places) = match self.rel {
            None => (ProbeLock::acquire(self.wait)?, TablespaceTarget::of_user_tables()),
            Some(rel) => {
                let (lock, subject) =
                    ProbedRelation::alone(rel, Fork::MAIN, "io_probe_recommend", self.wait)?;
                (lock, vec![TablespaceTarget::of(subject)])
            }
        };
        let _charge = statement::charge()?;
        let progress = Progress::start("recommend", self.rel);
        let limits =
            if self.given { self.limits } else { gucs::shared_by_rows(self.limits, self.parts(&places)) };
        let call = Call { request: self, limits, places: places.len(), progress: &progress };
        let mut rows = Vec::new();
        for place in &places {
            rows.extend(page_costs::rows(&call, place)?);
        }
        rows.extend(readahead::rows(&call, &places)?);
        rows.extend(combine::rows(&call, &places)?);
        rows.extend(wal::rows(&call)?);
        Ok(rows)
    }

    /// Measurements that the call may come to.
    fn parts(&self, places: &[TablespaceTarget]) -> u32 {
        let wants = |settings: &[Setting]| settings.iter().any(|setting| self.settings.contains(setting));
        let of_places = if wants(&Setting::OF_TABLESPACE) { places.len() as u32 } else { 0 };
        let of_devices = if self.cold && wants(&[Setting::ReadAheadKb]) { places.len() as u32 } else { 0 };
        let of_syncs = self.writes && wants(&[Setting::WalSyncMethod, Setting::CommitDelay]);
        of_places + of_devices + u32::from(wants(&[Setting::IoCombineLimit])) + u32::from(of_syncs)
    }
}
