//! `io_probe_recommend_row`: what is set, what should be, and why; and the settings that there is advice for.

use pgrx::pg_sys;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::api::row::Doubt;
use crate::call::named::{NamedEnum, named};
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
    IoCombineLimit,
    WalSyncMethod,
}

/// Why a value in force that seems worse than another one is neither kept nor left.
pub(super) const SEEMS_BETTER: &str =
    "another value seems better, but the times differ too much to be sure: give it a longer duration";

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
    IoCombineLimit = "io_combine_limit",
    WalSyncMethod = "wal_sync_method",
});

/// An argument that the call does not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingArgument {
    Cold,
    Writes,
}

/// The type's comments say what each attribute means.
#[derive(Debug, Clone, Serialize)]
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
    instead: Option<String>,
    hides: Option<&'static str>,
    why: String,
    relid: Option<u32>,
    doubt: Option<&'static str>,
    evidence: Map<String, Value>,
    /// Settings that the tablespace has of its own, as `setting=value`.
    #[serde(skip)]
    own: Vec<String>,
    /// Was the value in force set by ALTER SYSTEM?
    #[serde(skip)]
    by_alter_system: bool,
}

/// What sets a value.
pub(super) struct Statements {
    pub(super) statement: String,
    /// What takes it back.
    pub(super) undo: String,
    /// What sets it for the whole server, where `statement` does not.
    pub(super) instead: Option<String>,
    /// Which other settings override this one.
    pub(super) hides: &'static str,
}

const RELOAD: &str = "SELECT pg_reload_conf()";
const IN_TABLESPACE: &str = "the tablespace's value hides there what the server, a database, a role or a \
     session SETs; what ALTER SYSTEM sets is hidden by all of these";
const OF_CLUSTER: &str =
    "the command line hides it, and what a database, a role or a session SETs, where that is allowed";

impl RecommendRow {
    fn new(scope: &'static str, name: Option<String>, setting: Setting, applies: &'static str) -> Self {
        Self {
            scope,
            name,
            setting: setting.name(),
            current: None,
            current_source: None,
            recommended: None,
            low: None,
            high: None,
            applies,
            statement: None,
            undo: None,
            instead: None,
            hides: None,
            why: String::new(),
            relid: None,
            doubt: None,
            evidence: Map::new(),
            own: Vec::new(),
            by_alter_system: false,
        }
    }

    /// The row of a setting of the whole server; None where this server has no such setting.
    pub(super) fn of_cluster(setting: Setting) -> Option<Self> {
        let found = facts::setting(setting.name())?;
        Some(Self::new("cluster", None, setting, "reload").in_force(Some(found)))
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
        let by_alter_system = value.as_ref().is_some_and(|value| value.by_alter_system);
        let (current, current_source) = value.map(|value| (value.shown, value.source)).unzip();
        Self { current, current_source, by_alter_system, ..self }
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

    /// There is no advice, for this reason; with this argument there might be.
    pub(super) fn without(self, argument: MissingArgument, why: impl Into<String>) -> Self {
        let doubt = match argument {
            MissingArgument::Cold => "needs cold",
            MissingArgument::Writes => "needs writes",
        };
        Self { doubt: Some(doubt), ..self.unknown(why) }
    }

    /// Adds the doubt that others used the device meanwhile, if they did.
    pub(super) fn beside(self, disturbed: bool) -> Self {
        let others = disturbed.then(|| Doubt::Others.name());
        Self { doubt: self.doubt.or(others), ..self }
    }

    /// Adds what else is to be known of the advice, if there is any.
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
        Self {
            recommended: Some(value.into()),
            statement: Some(statement),
            undo: Some(undo),
            instead,
            hides: Some(hides),
            why: why.into(),
            ..self
        }
    }

    /// Another value is better, and ALTER SYSTEM or ALTER TABLESPACE sets it; `literal` is the value as those
    /// take it.
    pub(super) fn alter(self, value: impl Into<String>, literal: &str, why: impl Into<String>) -> Self {
        let how = self.statements(&[(self.setting, literal.to_owned())]);
        self.change(value, how, why)
    }

    /// The same of a tablespace, where another setting has to change with this one.
    pub(super) fn alter_both(self, value: f64, (other, with): (Setting, f64), why: String) -> Self {
        let how = self.statements(&[(self.setting, value.to_string()), (other.name(), with.to_string())]);
        self.change(value.to_string(), how, why)
    }

    /// Statements that set all of these values.
    fn statements(&self, values: &[(&str, String)]) -> Statements {
        let system: String =
            values.iter().map(|(setting, value)| format!("ALTER SYSTEM SET {setting} = {value}; ")).collect();
        let Some(name) = self.name.as_ref().filter(|_| self.scope == "tablespace") else {
            let undo = match self.current.as_ref().filter(|_| self.by_alter_system) {
                Some(current) => format!("ALTER SYSTEM SET {} = '{current}'; {RELOAD}", self.setting),
                None => format!("ALTER SYSTEM RESET {}; {RELOAD}", self.setting),
            };
            return Statements { statement: system + RELOAD, undo, instead: None, hides: OF_CLUSTER };
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
        let unhide = reset(&own).map_or(String::new(), |reset| reset + "; ");
        Statements {
            statement: format!("{alter} SET ({})", set.join(", ")),
            undo: undo.join("; "),
            instead: Some(unhide + &system + RELOAD),
            hides: IN_TABLESPACE,
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
