//! `io_probe_recommend_row`: what is set, what should be, and why; and the settings that there is advice for.

use pgrx::pg_sys;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::api::row::Doubt;
use crate::call::named::{NamedEnum, named};
use crate::pg::backend::server;
use crate::pg::catalog::facts::{self, SettingValue};

/// A setting, in the order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    RandomPageCost,
    SeqPageCost,
    EffectiveIoConcurrency,
    MaintenanceIoConcurrency,
    Correlation,
    ReadAheadKb,
    WalSyncMethod,
}

/// Why a value in force that seems worse than another one is neither kept nor left.
pub(super) const SEEMS_BETTER: &str = "another value seems better, but the times differ too much to be \
     sure: give it a longer duration and a larger max_bytes";

impl Setting {
    /// The settings that a tablespace may have of its own.
    pub(super) const OF_TABLESPACE: [Setting; 4] = [
        Setting::RandomPageCost,
        Setting::SeqPageCost,
        Setting::EffectiveIoConcurrency,
        Setting::MaintenanceIoConcurrency,
    ];
}

named!(Setting, "setting", "settings", {
    RandomPageCost = "random_page_cost",
    SeqPageCost = "seq_page_cost",
    EffectiveIoConcurrency = "effective_io_concurrency",
    MaintenanceIoConcurrency = "maintenance_io_concurrency",
    Correlation = "correlation",
    ReadAheadKb = "read_ahead_kb",
    WalSyncMethod = "wal_sync_method",
});

/// Doubts of a row without advice: with that argument there might be some.
pub(super) const NEEDS_COLD: &str = "needs cold";
pub(super) const NEEDS_WRITES: &str = "needs writes";

/// The type's comments say what each attribute means.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct RecommendRow {
    scope: &'static str,
    name: Option<String>,
    setting: &'static str,
    current: Option<String>,
    current_source: Option<String>,
    recommended: Option<String>,
    low: Option<String>,
    high: Option<String>,
    applies: &'static str,
    statement: Option<String>,
    undo: Option<String>,
    instead: Option<Vec<String>>,
    hides: Option<String>,
    why: String,
    relid: Option<u32>,
    doubt: Option<&'static str>,
    evidence: Map<String, Value>,
    /// Settings that the tablespace has of its own, as `setting=value`.
    #[serde(skip)]
    own: Vec<String>,
}

/// What sets a value.
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
const IN_TABLESPACE: &str = "in the tablespace its own value hides what the server, a database, a role or a \
     session SETs; what ALTER SYSTEM sets is hidden by all of these";
const OF_CLUSTER: &str =
    "the command line hides it, and what a database, a role or a session SETs, where that is allowed";
const UNDO_UNKNOWN: &str = "only a superuser is told what ALTER SYSTEM had set: undo resets it";

impl RecommendRow {
    fn new(scope: &'static str, name: Option<String>, setting: Setting, applies: &'static str) -> Self {
        Self { scope, name, setting: setting.name(), applies, ..Self::default() }
    }

    /// The row of a setting of the whole server.
    pub(super) fn of_cluster(setting: Setting) -> Self {
        Self::new("cluster", None, setting, "reload").in_force(facts::setting(setting.name()))
    }

    /// The row of a setting that a tablespace may have of its own.
    pub(super) fn of_tablespace(
        setting: Setting,
        name: &str,
        own: &[String],
        value: Option<SettingValue>,
    ) -> Self {
        let row = Self::new("tablespace", Some(name.to_owned()), setting, "now");
        Self { own: own.to_owned(), ..row.in_force(value) }
    }

    /// The row of the correlation of an index; `name` is None where there is no index to name.
    pub(super) fn of_index(name: Option<String>) -> Self {
        Self::new("index", name, Setting::Correlation, "now")
    }

    /// Adds the value in force, and where it comes from.
    pub(super) fn currently(self, value: String, source: &str) -> Self {
        Self { current: Some(value), current_source: Some(source.to_owned()), ..self }
    }

    fn in_force(self, value: Option<SettingValue>) -> Self {
        let (current, current_source) = value.map(|value| (value.shown, value.source)).unzip();
        Self { current, current_source, ..self }
    }

    /// The row of a setting of a device in the kernel.
    pub(super) fn of_device(setting: Setting, name: Option<String>, current: Option<u64>) -> Self {
        let row = Self::new("device", name, setting, "root");
        match current {
            Some(kb) => row.currently(kb.to_string(), "/sys"),
            None => row,
        }
    }

    /// There is no advice, for this reason.
    pub(super) fn unknown(self, why: impl Into<String>) -> Self {
        Self { why: why.into(), doubt: Some("unknown"), ..self }
    }

    /// There is no advice, for this reason; `needs` is one of the doubts above.
    pub(super) fn without(self, needs: &'static str, why: impl Into<String>) -> Self {
        Self { doubt: Some(needs), ..self.unknown(why) }
    }

    /// Adds the doubt that others used the device meanwhile, if they did.
    pub(super) fn beside(self, disturbed: bool) -> Self {
        let others = disturbed.then(|| Doubt::Others.name());
        Self { doubt: self.doubt.or(others), ..self }
    }

    /// Adds what else is to be known of the advice, if there is any.
    pub(super) fn also(self, aside: &str) -> Self {
        Self { why: self.why + aside, ..self }
    }

    /// Adds something to `why` if there is advice.
    pub(super) fn and_if_recommended(self, aside: &str) -> Self {
        let why = if self.recommended.is_some() { format!("{}; {aside}", self.why) } else { self.why };
        Self { why, ..self }
    }

    /// What is set is right, for this reason.
    pub(super) fn keep(self, why: impl std::fmt::Display) -> Self {
        Self { recommended: self.current.clone(), why: format!("{why}: keep what you have"), ..self }
    }

    /// Another value is better, and `how` sets it.
    pub(super) fn change(self, value: impl Into<String>, how: Statements, why: impl Into<String>) -> Self {
        let Statements { statement, undo, instead, hides } = how;
        let is_replayed = server::in_recovery() && matches!(self.scope, "tablespace" | "index");
        Self {
            recommended: Some(value.into()),
            statement: Some(statement),
            undo: Some(undo),
            instead,
            hides: Some(if is_replayed { format!("{ON_PRIMARY}; {hides}") } else { hides }),
            why: why.into(),
            ..self
        }
    }

    /// Another value is better, and ALTER SYSTEM or ALTER TABLESPACE sets it.
    pub(super) fn alter(self, value: impl Into<String>, why: impl Into<String>) -> Self {
        let value = value.into();
        let how = self.statements(&[(self.setting, value.clone())]);
        self.change(value, how, why)
    }

    /// The same of a tablespace, where another setting has to change with this one.
    pub(super) fn alter_both(self, value: f64, (other, with): (Setting, f64), why: String) -> Self {
        let how = self.statements(&[(self.setting, value.to_string()), (other.name(), with.to_string())]);
        self.change(value.to_string(), how, why)
    }

    /// Statements that set all of these values.
    fn statements(&self, values: &[(&str, String)]) -> Statements {
        let system = |(setting, value): &(&str, String)| format!("ALTER SYSTEM SET {setting} = {value}");

        let Some(name) = self.name.as_ref().filter(|_| self.scope == "tablespace") else {
            let undo = match facts::set_by_alter_system(self.setting) {
                Some(before) => {
                    format!("ALTER SYSTEM SET {} = {}", self.setting, pgrx::spi::quote_literal(before))
                }
                None => format!("ALTER SYSTEM RESET {}", self.setting),
            };
            let is_known = server::is_superuser();
            let hides =
                if is_known { OF_CLUSTER.to_owned() } else { format!("{OF_CLUSTER}; {UNDO_UNKNOWN}") };
            return Statements { statement: system(&values[0]), undo, instead: None, hides };
        };
        let alter = format!("ALTER TABLESPACE {}", pgrx::spi::quote_identifier(name));
        let set: Vec<String> = values.iter().map(|(setting, value)| format!("{setting} = {value}")).collect();
        let own_value = |setting: &str| {
            self.own.iter().find_map(|own| Some(own.strip_prefix(setting)?.strip_prefix('=')?.to_owned()))
        };
        let (own, others): (Vec<&str>, Vec<&str>) =
            values.iter().map(|(setting, _)| *setting).partition(|setting| own_value(setting).is_some());
        let reset = |settings: &[&str]| {
            (!settings.is_empty()).then(|| format!("{alter} RESET ({})", settings.join(", ")))
        };
        let back: Vec<String> =
            own.iter().filter_map(|own| Some(format!("{own} = {}", own_value(own)?))).collect();
        let back = (!back.is_empty()).then(|| format!("{alter} SET ({})", back.join(", ")));
        let undo: Vec<String> = back.into_iter().chain(reset(&others)).collect();
        Statements {
            statement: format!("{alter} SET ({})", set.join(", ")),
            undo: undo.join("; "),
            instead: Some(reset(&own).into_iter().chain(values.iter().map(system)).collect()),
            hides: IN_TABLESPACE.to_owned(),
        }
    }

    /// The range of values that are as good.
    pub(super) fn between(self, low: impl Into<String>, high: impl Into<String>) -> Self {
        Self { low: Some(low.into()), high: Some(high.into()), ..self }
    }

    /// The relation that was measured, or would have been.
    pub(super) fn used(self, relation: Option<pg_sys::Oid>) -> Self {
        Self { relid: relation.map(|oid| oid.to_u32()), ..self }
    }

    /// Adds a figure that the advice rests on.
    pub(super) fn rests_on(mut self, name: &str, figure: impl Into<Value>) -> Self {
        self.evidence.insert(name.to_owned(), figure.into());
        self
    }
}
