//! The settings that there is advice for.

use crate::call::named::NamedEnum;

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

impl NamedEnum for Setting {
    const WHAT: (&'static str, &'static str) = ("setting", "settings");
    const ALL: &'static [Setting] = &[
        Setting::RandomPageCost,
        Setting::SeqPageCost,
        Setting::EffectiveIoConcurrency,
        Setting::MaintenanceIoConcurrency,
        Setting::ReadAheadKb,
        Setting::IoCombineLimit,
        Setting::WalSyncMethod,
        Setting::CommitDelay,
    ];

    /// The server's name of it, or the kernel's.
    fn name(self) -> &'static str {
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
}
