//! The settings that there is advice for.

use crate::call::arguments::quoted;
use crate::error::{Error, Result};
use crate::pg::backend::encoding::Text;

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
    pub(super) const ALL: [Setting; 8] = [
        Setting::RandomPageCost,
        Setting::SeqPageCost,
        Setting::EffectiveIoConcurrency,
        Setting::MaintenanceIoConcurrency,
        Setting::ReadAheadKb,
        Setting::IoCombineLimit,
        Setting::WalSyncMethod,
        Setting::CommitDelay,
    ];

    /// Those that a tablespace may have of its own.
    pub(super) const OF_TABLESPACE: [Setting; 4] = [
        Setting::RandomPageCost,
        Setting::SeqPageCost,
        Setting::EffectiveIoConcurrency,
        Setting::MaintenanceIoConcurrency,
    ];

    /// Its name: the server's, or the kernel's.
    pub(super) fn name(self) -> &'static str {
        match self {
            Setting::RandomPageCost => "random_page_cost",
            Setting::SeqPageCost => "seq_page_cost",
            Setting::EffectiveIoConcurrency => "effective_io_concurrency",
            Setting::MaintenanceIoConcurrency => "maintenance_io_concurrency",
            Setting::ReadAheadKb => "read_ahead_kb",
            Setting::IoCombineLimit => "io_combine_limit",
            Setting::WalSyncMethod => "wal_sync_method",
            Setting::CommitDelay => "commit_delay",
        }
    }

    /// The settings that were picked, each once, in the order of [`Setting::ALL`].
    pub(super) fn pick(names: Option<Vec<Option<Text>>>) -> Result<Vec<Setting>> {
        let Some(names) = names else { return Ok(Self::ALL.to_vec()) };
        let hint = || format!("Valid settings are {}.", quoted(&Self::ALL.map(Setting::name)));
        if names.is_empty() {
            return Err(Error::invalid("settings must not be empty").hint(hint()));
        }
        for name in &names {
            let Some(name) = name.as_deref() else {
                return Err(Error::invalid("settings must not contain nulls").hint(hint()));
            };
            if !Self::ALL.iter().any(|setting| setting.name() == name) {
                return Err(Error::invalid(format!("unknown setting \"{name}\"")).hint(hint()));
            }
        }
        let picked = |setting: &Setting| names.iter().flatten().any(|name| **name == *setting.name());
        Ok(Self::ALL.into_iter().filter(picked).collect())
    }
}
