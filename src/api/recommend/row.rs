//! `io_probe_recommend_row`: what is set, what should be, and why; and the settings that there is advice for.

use pgrx::pg_sys;
use serde::Serialize;
use serde_json::{Map, Value};

use super::place::TablespaceTarget;
use crate::call::named::{NamedEnum, named};
use crate::pg::catalog::facts::{self, SettingValue};

/// A setting, in the order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    RandomPageCost,
    SeqPageCost,
    EffectiveIoConcurrency,
    MaintenanceIoConcurrency,
    ReadAheadKb,
    IoCombineLimit,
    WalSyncMethod,
    CommitDelay,
}

impl Setting {
    /// Those that a tablespace may have of its own.
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
    ReadAheadKb = "read_ahead_kb",
    IoCombineLimit = "io_combine_limit",
    WalSyncMethod = "wal_sync_method",
    CommitDelay = "commit_delay",
});

/// An argument that the call does not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
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
    why: String,
    relid: Option<u32>,
    doubt: Option<&'static str>,
    evidence: Map<String, Value>,
}

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
            why: String::new(),
            relid: None,
            doubt: None,
            evidence: Map::new(),
        }
    }

    /// Of a setting of the whole server; None where this server has none such.
    pub(super) fn of_cluster(setting: Setting) -> Option<Self> {
        let found = facts::setting(setting.name())?;
        Some(Self::new("cluster", None, setting, "reload").in_force(Some(found)))
    }

    /// Of a setting that a tablespace may have of its own.
    pub(super) fn of_tablespace(setting: Setting, place: &TablespaceTarget) -> Self {
        let row = Self::new("tablespace", Some(place.spcname.clone()), setting, "now");
        row.in_force(place.setting(setting))
    }

    fn in_force(self, value: Option<SettingValue>) -> Self {
        let (current, current_source) = value.map(|value| (value.shown, value.source)).unzip();
        Self { current, current_source, ..self }
    }

    /// Of a setting of a device in the kernel.
    pub(super) fn of_device(setting: Setting, name: Option<String>, current: Option<u64>) -> Self {
        let row = Self::new("device", name, setting, "root");
        Self {
            current: current.map(|kb| kb.to_string()),
            current_source: current.map(|_| "/sys".to_owned()),
            ..row
        }
    }

    /// There is no advice, for this reason.
    pub(super) fn unknown(self, why: impl Into<String>) -> Self {
        Self { why: why.into(), doubt: Some("unknown"), ..self }
    }

    /// The same, and with this argument there might be.
    pub(super) fn without(self, argument: Missing, why: impl Into<String>) -> Self {
        let doubt = match argument {
            Missing::Cold => "needs cold",
            Missing::Writes => "needs writes",
        };
        Self { doubt: Some(doubt), ..self.unknown(why) }
    }

    /// What else is to be known of the advice, if there is one.
    pub(super) fn and_if_recommended(self, aside: &str) -> Self {
        let why = if self.recommended.is_some() { format!("{}; {aside}", self.why) } else { self.why };
        Self { why, ..self }
    }

    /// What is set is right, for this reason.
    pub(super) fn keep(self, why: impl std::fmt::Display) -> Self {
        Self { recommended: self.current.clone(), why: format!("{why}: keep what you have"), ..self }
    }

    /// Another value is better, and this statement sets it.
    pub(super) fn change(self, value: impl Into<String>, statement: String, why: impl Into<String>) -> Self {
        Self { recommended: Some(value.into()), statement: Some(statement), why: why.into(), ..self }
    }

    /// Another value is better, and ALTER SYSTEM or ALTER TABLESPACE sets it; `literal` is the value as those
    /// take it.
    pub(super) fn alter(self, value: impl Into<String>, literal: &str, why: impl Into<String>) -> Self {
        let setting = self.setting;
        let statement = match self.name.as_ref().filter(|_| self.scope == "tablespace") {
            Some(name) => {
                let name = pgrx::spi::quote_identifier(name);
                format!("ALTER TABLESPACE {name} SET ({setting} = {literal})")
            }
            None => format!("ALTER SYSTEM SET {setting} = {literal}; SELECT pg_reload_conf()"),
        };
        self.change(value, statement, why)
    }

    /// The same of a tablespace, where another setting has to go along.
    pub(super) fn alter_both(self, value: f64, (other, with): (Setting, f64), why: String) -> Self {
        self.alter(value.to_string(), &format!("{value}, {} = {with}", other.name()), why)
    }

    /// From and to where a value is as good.
    pub(super) fn between(self, low: impl Into<String>, high: impl Into<String>) -> Self {
        Self { low: Some(low.into()), high: Some(high.into()), ..self }
    }

    /// The relation that was measured, or would have been.
    pub(super) fn used(self, relation: Option<pg_sys::Oid>) -> Self {
        Self { relid: relation.map(|oid| oid.to_u32()), ..self }
    }

    /// A figure that the advice rests on.
    pub(super) fn rests_on(mut self, name: &str, figure: impl Into<Value>) -> Self {
        self.evidence.insert(name.to_owned(), figure.into());
        self
    }
}
