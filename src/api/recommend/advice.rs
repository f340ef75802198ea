//! What is set, what should be, and why; and the settings that there is advice for.

use std::collections::BTreeMap;

use io_probe_surface::doubt::Doubt;
use io_probe_surface::recommend::RecommendRow;
use io_probe_surface::value::{Json, Relation, Text};
use pgrx::pg_sys;
use serde_json::{Map, Value};

use crate::api::readahead::WindowResult;
use crate::call::Failure;
use crate::call::named::{NamedEnum, named};
use crate::error::{Error, Result};
use crate::pg::backend::server;
use crate::pg::catalog::facts::{self, SettingValue};

named! {
    /// A setting, in the order of the rows.
    pub(in crate::api) enum Setting: "setting", "settings" {
        RandomPageCost = "random_page_cost",
        EffectiveIoConcurrency = "effective_io_concurrency",
        MaintenanceIoConcurrency = "maintenance_io_concurrency",
        Correlation = "correlation",
        ReadAheadKb = "read_ahead_kb",
        IoMethod = "io_method",
        IoWorkers = "io_workers",
        IoMinWorkers = "io_min_workers",
        IoMaxWorkers = "io_max_workers",
        IoMaxConcurrency = "io_max_concurrency",
        IoCombineLimit = "io_combine_limit",
        IoMaxCombineLimit = "io_max_combine_limit",
        WalSyncMethod = "wal_sync_method",
        CheckpointFlushAfter = "checkpoint_flush_after",
        BackendFlushAfter = "backend_flush_after",
        BgwriterFlushAfter = "bgwriter_flush_after",
        CheckpointCompletionTarget = "checkpoint_completion_target",
        AutovacuumVacuumCostLimit = "autovacuum_vacuum_cost_limit",
    }
}

/// Why a value in force that seems worse than another one is neither kept nor left.
pub(super) const SEEMS_BETTER: &str = "another value seems better, but the times vary too much to be \
     sure: give the call a longer duration and a larger max_bytes";

impl Setting {
    /// The settings that a tablespace may have of its own, apart from the unit of all costs.
    pub(super) const OF_TABLESPACE: [Setting; 3] =
        [Setting::RandomPageCost, Setting::EffectiveIoConcurrency, Setting::MaintenanceIoConcurrency];

    /// The settings that rule how a server from 18 on reads.
    pub(super) const OF_READS: [Setting; 7] = [
        Setting::IoMethod,
        Setting::IoWorkers,
        Setting::IoMinWorkers,
        Setting::IoMaxWorkers,
        Setting::IoMaxConcurrency,
        Setting::IoCombineLimit,
        Setting::IoMaxCombineLimit,
    ];

    /// Those of them that tell how many I/O workers there are.
    pub(super) const OF_WORKERS: [Setting; 3] =
        [Setting::IoWorkers, Setting::IoMinWorkers, Setting::IoMaxWorkers];

    /// The settings of how data files are written.
    pub(super) const OF_WRITES: [Setting; 3] =
        [Setting::CheckpointFlushAfter, Setting::BackendFlushAfter, Setting::BgwriterFlushAfter];

    /// Does a change of it take a restart?
    fn takes_restart(self) -> bool {
        matches!(self, Setting::IoMethod | Setting::IoMaxConcurrency | Setting::IoMaxCombineLimit)
    }
}

/// Doubts of a row without advice: with that argument there might be some.
pub(super) const NEEDS_COLD: &str = "needs cold";
pub(super) const NEEDS_WRITES: &str = "needs writes";
/// Doubt of the row of an index that there was no time for.
pub(super) const NOT_LOOKED_AT: &str = "not looked at";
/// Doubt of another row without advice.
pub(in crate::api) const UNKNOWN: &str = "unknown";

const GONE: &str = "not measured: the table was dropped meanwhile, or you lost the right to read it";

/// Why there is no advice.
pub(super) enum Lacking {
    /// The relation is gone by now, or the right to read it.
    Gone,
    /// With this doubt, for this reason.
    Why(&'static str, Text),
    Failed(Error),
}

/// What advice rests on, or why there is none.
pub(super) type Found<T> = std::result::Result<T, Lacking>;

pub(super) const NOT_COLD: Lacking = Lacking::Why(
    NEEDS_COLD,
    Text::Borrowed(
        "not measured: this needs cold => true and EXECUTE on io_probe_evict, since the blocks to be read \
         are first evicted from the OS cache",
    ),
);

impl Lacking {
    pub(super) fn unknown(why: impl Into<Text>) -> Self {
        Self::Why(UNKNOWN, why.into())
    }

    /// The doubt of a row, and its reason.
    pub(super) fn told(self) -> Result<(&'static str, Text)> {
        match self {
            Self::Gone => Ok((UNKNOWN, GONE.into())),
            Self::Why(doubt, why) => Ok((doubt, why)),
            Self::Failed(error) => Err(error),
        }
    }
}

impl From<Error> for Lacking {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Failure> for Lacking {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unsupported(why) => Self::unknown(format!("not measured: {why}")),
            Failure::NotBegun(stop) => Self::unknown(stop.to_string()),
            Failure::Error(error) => Self::Failed(error),
        }
    }
}

/// A row, and what it says beyond its columns.
#[derive(Debug, Default)]
pub(in crate::api) struct Recommendation {
    /// All but the evidence.
    pub(in crate::api) row: RecommendRow,
    /// The value that the tablespace has of its own.
    own: Option<String>,
    /// The tablespace that may have the setting of its own.
    tablespace: Option<String>,
    evidence: Map<String, Value>,
    /// What speaks against the measurement that there is advice from.
    pub(in crate::api) beside: Option<Doubt>,
    /// Does this standby refuse the statement?
    pub(in crate::api) on_primary: bool,
    /// Do all values from low to high give the same plans?
    pub(in crate::api) has_same_plans: bool,
    /// What read_ahead_kb was judged by; empty for other settings.
    pub(in crate::api) curve: Vec<WindowResult>,
}

/// What sets a value.
#[derive(Debug, Clone)]
pub(super) struct Statements {
    pub(super) statement: String,
    /// What takes it back.
    pub(super) undo: String,
    /// What sets it in another place, a command each.
    pub(super) instead: Option<Vec<String>>,
    /// Which other settings override this one.
    pub(super) hides: String,
}

/// What `hides` begins with where a standby refuses the statement.
pub(in crate::api) const ON_PRIMARY: &str = "to be run on the primary";
const IN_TABLESPACE: &str = "the tablespace's own value overrides the value of the server, a database, a \
     role or a session, but SHOW does not show it; what ALTER SYSTEM sets gives way to a value of the \
     tablespace, a database, a role or a session";
/// What `why` adds where the statement is one of a tablespace.
const UNSHOWN: &str = "; SHOW does not show a tablespace's own value, \\db+ does";
const OF_CLUSTER: &str = "a value on the server's command line overrides it; so does one of a database, a \
     role or a session, where that is allowed";
const UNDO_UNKNOWN: &str = "only a superuser may see what ALTER SYSTEM set before, so undo resets the \
     setting instead of restoring that value";

impl Recommendation {
    fn new(scope: &'static str, name: Option<String>, setting: Setting, applies: &'static str) -> Self {
        let row = RecommendRow {
            scope,
            name: name.map(Text::from),
            setting: setting.name(),
            applies,
            server_version: server::major_version(),
            io_method: server::setting(c"io_method").map(Text::from),
            ..RecommendRow::default()
        };
        Self { row, ..Self::default() }
    }

    /// The row, with its evidence.
    pub(super) fn into_row(self) -> RecommendRow {
        RecommendRow { evidence: Json(Value::Object(self.evidence).to_string()), ..self.row }
    }

    /// Shows what would set it, if there is something to set.
    pub(super) fn tell(&self) {
        let Some(statement) = &self.row.statement else { return };
        let doubt = self.row.doubt.as_ref().map_or(String::new(), |doubt| format!(" (doubt: {doubt})"));
        let advice = format!("advice for {}{doubt} (nothing was changed)", self.row.setting);
        match self.row.applies {
            "reload" => pgrx::notice!("{advice}: {statement}; SELECT pg_reload_conf()"),
            "root" => pgrx::notice!("{advice}, as root: {statement}"),
            _ => pgrx::notice!("{advice}: {statement}"),
        }
    }

    /// The row of a setting of the whole server.
    pub(super) fn of_cluster(setting: Setting) -> Self {
        let applies = if setting.takes_restart() { "restart" } else { "reload" };
        Self::new("cluster", None, setting, applies).in_force(facts::setting(setting.name()))
    }

    /// The row of a setting that a tablespace may have of its own. Where it has none, and there is no other
    /// tablespace, it is one of the whole server.
    pub(super) fn of_tablespace(
        setting: Setting,
        name: &str,
        own: &BTreeMap<String, String>,
        value: Option<SettingValue>,
    ) -> Self {
        let own = own.get(setting.name()).cloned();
        let row = match own.is_none() && facts::has_one_tablespace() {
            true => Self::new("cluster", None, setting, "reload"),
            false => Self::new("tablespace", Some(name.to_owned()), setting, "now"),
        };
        Self { own, tablespace: Some(name.to_owned()), ..row.in_force(value) }
    }

    /// The row of the correlation of an index; `name` is None where there is no index to name.
    pub(super) fn of_index(name: Option<String>) -> Self {
        Self::new("index", name, Setting::Correlation, "now")
    }

    /// The row of a setting of a device in the kernel.
    pub(super) fn of_device(setting: Setting, name: Option<String>, current: Option<u64>) -> Self {
        let row = Self::new("device", name, setting, "root");
        match current {
            Some(kb) => row.currently(kb.to_string(), "/sys"),
            None => row,
        }
    }

    /// Is it of a setting of which is told only that it should change?
    pub(in crate::api) fn is_told_if_changed(&self) -> bool {
        let others = [Setting::CheckpointCompletionTarget, Setting::AutovacuumVacuumCostLimit];
        let all = Setting::OF_READS.iter().chain(&Setting::OF_WRITES).chain(&others);
        all.into_iter().any(|setting| setting.name() == self.row.setting)
    }

    /// Adds the value in force, and where it comes from.
    pub(super) fn currently(mut self, value: impl Into<Text>, source: impl Into<Text>) -> Self {
        self.row.current = Some(value.into());
        self.row.current_source = Some(source.into());
        self
    }

    fn in_force(self, value: Option<SettingValue>) -> Self {
        match value {
            Some(value) => self.currently(value.shown, value.source),
            None => self,
        }
    }

    /// There is no advice, for this reason.
    pub(super) fn unknown(self, why: impl Into<Text>) -> Self {
        self.without(UNKNOWN, why)
    }

    /// There is no advice, for this reason; `needs` is one of the doubts above.
    pub(super) fn without(mut self, needs: &'static str, why: impl Into<Text>) -> Self {
        self.row.why = why.into();
        self.row.doubt = Some(needs);
        self
    }

    /// There is no advice, for this reason.
    pub(super) fn lacking(self, lacking: Lacking) -> Result<Self> {
        let (doubt, why) = lacking.told()?;
        Ok(self.without(doubt, why))
    }

    /// Adds what went on beside the measurement, if anything did.
    pub(super) fn beside(self, doubt: Option<Doubt>) -> Self {
        let Some(doubt) = doubt.filter(|_| self.row.doubt.is_none()) else { return self };
        self.doubt(doubt).also(&format!("; {} meanwhile", told_beside(doubt)))
    }

    /// Adds which values were not measured, if there is advice, and some were not.
    pub(super) fn short_of(self, not_measured: Option<&str>) -> Self {
        let Some(not_measured) = not_measured.filter(|_| self.row.recommended.is_some()) else { return self };
        let row = if self.row.doubt.is_none() { self.doubt(Doubt::Short) } else { self };
        row.also(&format!("; {not_measured}"))
    }

    fn doubt(mut self, doubt: Doubt) -> Self {
        self.beside = Some(doubt);
        self.row.doubt = Some(doubt.name());
        self
    }

    /// Adds what else is to be known of the advice, if there is any.
    pub(super) fn also(mut self, aside: &str) -> Self {
        self.row.why = format!("{}{aside}", self.row.why).into();
        self
    }

    /// Adds something to `why`, if there is any, and advice.
    pub(super) fn and_if_recommended(self, aside: &str) -> Self {
        if self.row.recommended.is_none() || aside.is_empty() {
            return self;
        }
        self.also(&format!("; {aside}"))
    }

    /// What is set is right, for this reason.
    pub(super) fn keep(mut self, why: impl std::fmt::Display) -> Self {
        self.row.recommended = self.row.current.clone();
        self.row.why = format!("{why}: keep what you have").into();
        self
    }

    /// Another value is better, and `how` sets it.
    pub(super) fn change(mut self, value: impl Into<Text>, how: Statements, why: impl Into<Text>) -> Self {
        self.on_primary = server::in_recovery() && matches!(self.row.scope, "tablespace" | "index");
        let mut why: Text = why.into();
        if self.row.scope == "tablespace" {
            why = format!("{why}{UNSHOWN}").into();
        }
        let hides = if self.on_primary { format!("{ON_PRIMARY}; {}", how.hides) } else { how.hides };
        self.row = RecommendRow {
            recommended: Some(value.into()),
            statement: Some(how.statement.into()),
            undo: Some(how.undo.into()),
            instead: how.instead,
            hides: Some(hides.into()),
            why,
            ..self.row
        };
        self
    }

    /// Another value is better, and ALTER SYSTEM sets it; it is written with a unit.
    pub(super) fn alter_text(self, value: String, why: impl Into<Text>) -> Self {
        let how = of_server(self.row.setting, &pgrx::spi::quote_literal(&value));
        self.change(value, how, why)
    }

    /// Another value is better, and ALTER SYSTEM or ALTER TABLESPACE sets it.
    pub(super) fn alter(self, value: impl Into<String>, why: impl Into<Text>) -> Self {
        let value = value.into();
        let how = self.statements(&value);
        self.change(value, how, why)
    }

    /// Statements that set this value.
    fn statements(&self, value: &str) -> Statements {
        let of_tablespace = self.tablespace.as_ref().map(|name| self.statements_of_tablespace(name, value));
        match of_tablespace {
            Some(statements) if self.row.scope == "tablespace" => statements,
            of_tablespace => {
                let instead = of_tablespace.map(|statements| vec![statements.statement]);
                Statements { instead, ..of_server(self.row.setting, value) }
            }
        }
    }

    fn statements_of_tablespace(&self, name: &str, value: &str) -> Statements {
        let setting = self.row.setting;
        let alter = format!("ALTER TABLESPACE {}", pgrx::spi::quote_identifier(name));
        let reset = format!("{alter} RESET ({setting})");
        let by_system = alter_system(setting, value);
        let (undo, instead) = match &self.own {
            Some(before) => (format!("{alter} SET ({setting} = {before})"), vec![reset, by_system]),
            None => (reset, vec![by_system]),
        };
        Statements {
            statement: format!("{alter} SET ({setting} = {value})"),
            undo,
            instead: Some(instead),
            hides: IN_TABLESPACE.to_owned(),
        }
    }

    /// The range of values that are as good.
    pub(super) fn between(mut self, low: impl Into<Text>, high: impl Into<Text>) -> Self {
        self.row.low = Some(low.into());
        self.row.high = Some(high.into());
        self
    }

    /// Says that all values from low to high give the same plans.
    pub(super) fn with_same_plans(self) -> Self {
        Self { has_same_plans: true, ..self }
    }

    /// The relation that was measured, or would have been.
    pub(super) fn used(mut self, relation: Option<pg_sys::Oid>) -> Self {
        self.row.relid = relation.map(|oid| Relation(oid.to_u32()));
        self
    }

    /// Adds the windows that the advice rests on.
    pub(super) fn by_curve(self, curve: Vec<WindowResult>) -> Self {
        Self { curve, ..self }
    }

    /// Adds a figure that the advice rests on.
    pub(super) fn rests_on(mut self, name: &str, figure: impl Into<Value>) -> Self {
        self.evidence.insert(name.to_owned(), figure.into());
        self
    }
}

/// Statements that set a value for the whole server.
fn of_server(setting: &str, value: &str) -> Statements {
    let undo = match facts::set_by_alter_system(setting) {
        Some(before) => format!("ALTER SYSTEM SET {setting} = {}", pgrx::spi::quote_literal(before)),
        None => format!("ALTER SYSTEM RESET {setting}"),
    };
    let unknown = if server::is_superuser() { String::new() } else { format!("; {UNDO_UNKNOWN}") };
    Statements {
        statement: alter_system(setting, value),
        undo,
        instead: None,
        hides: format!("{OF_CLUSTER}{unknown}"),
    }
}

fn alter_system(setting: &str, value: &str) -> String {
    format!("ALTER SYSTEM SET {setting} = {value}")
}

/// What is so of the measurement of advice with this doubt.
pub(in crate::api) fn told_beside(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::Limited => "the I/O was near the cgroup's limit",
        Doubt::CpuQuota => "the CPU quota was used up",
        Doubt::Slowed => "the device slowed down",
        Doubt::Short => "some values were not measured",
        _ => "others used the device",
    }
}
