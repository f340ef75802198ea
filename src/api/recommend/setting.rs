//! The settings that there is advice for.

use crate::call::named::named;

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
