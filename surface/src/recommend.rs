//! Recommends values of settings from what was measured. Changes nothing.

use crate::function::{ADVISE, FILES, Function, MEASURING, Returns, optional, options};
use crate::row::{Row, row};
use crate::value::{Json, Relation, Text};

row! {
    /// one setting in one scope
    row RecommendRow "recommend" everyday [setting, name, current, recommended, low, high, doubt] {
        /// Where the value applies: cluster, tablespace, index or device. A setting of
        /// tablespaces has scope cluster if there is only one, without a value by ALTER TABLESPACE
        scope: &'static str,
        /// Name of the tablespace, index or device; NULL for the cluster, or if unknown
        name: Option<Text>,
        /// Setting of the server; for a device, setting of the kernel; for an index, correlation
        setting: &'static str,
        /// Value in force, as SHOW prints it; for a device in kB
        current: Option<Text>,
        /// Source of current: a source of pg_settings, tablespace (the tablespace has its own value),
        /// pg_statistic, io_probe_corrections, or /sys
        current_source: Option<Text>,
        /// Best value by this measurement, as ALTER SYSTEM takes it. Equal to current: keep it. NULL: no
        /// advice (see column why)
        recommended: Option<Text>,
        /// Lowest value that is as good as the best. Not as good: over 5 % worse with 95 % confidence, by the
        /// errors of measurement and model
        low: Option<Text>,
        /// Highest value that is as good as the best
        high: Option<Text>,
        /// When a change takes effect. now: at once; reload: after SELECT pg_reload_conf(); restart: after a
        /// restart of the server; root: statement is a shell command for root
        applies: &'static str,
        /// SQL that sets the recommended value (psql runs it by \gexec); a shell command if applies is root
        statement: Option<Text>,
        /// SQL or command that undoes statement: it sets the old value again, or resets the setting. Only a
        /// superuser sees what ALTER SYSTEM had set; for others, undo resets it
        undo: Option<Text>,
        /// Alternative to statement, one command per element. For a tablespace: resets its own value, if any,
        /// and sets the value for the whole server; then run SELECT pg_reload_conf(). For the cluster: sets
        /// the value for the only tablespace (SHOW does not show it). For a correlation, in PostgreSQL 18 and
        /// later: sets it in the column's statistics until the next ANALYZE. NULL if there is none
        instead: Option<Vec<String>>,
        /// Where else the setting may have a value (database, role ...) that overrides statement or instead,
        /// or is overridden by them. Begins with 'to be run on the primary' if a standby refuses statement
        hides: Option<Text>,
        /// Reason for the recommendation, or why there is none
        why: Text,
        /// Relation that was measured, or was to be measured
        relid: Option<Relation>,
        /// If recommended is NULL: needs cold, needs writes (that argument may bring advice), not looked at
        /// (no time was left for this index), or unknown (see column why). Else short (some values were not
        /// measured, see column why), or what happened meanwhile: slowed (the device slowed down), limited
        /// (an I/O limit of the server's cgroup was near), cpu quota (the cgroup's CPU quota was used up),
        /// others (others used the device). NULL: no doubt
        doubt: Option<&'static str>,
        /// Figures behind the recommendation
        evidence: Json,
        /// Major version of the server at the measurement. On another version the advice is stale
        server_version: i32,
        /// io_method at the measurement; NULL before PostgreSQL 18. With another io_method the advice is
        /// stale
        io_method: Option<Text>,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "recommend",
    arguments: &[
        optional("rel", "regclass", "NULL"),
        optional("settings", "text[]", "NULL"),
        optional("duration", "text", "NULL"),
        optional("cold", "boolean", "false"),
        optional("writes", "boolean", "false"),
        options(MEASURING),
    ],
    returns: Returns::Rows(&RecommendRow::TYPE, 8),
    comment: "\
        Measures, then recommends values of settings. Changes no setting. A NOTICE shows each statement that \
        would change a setting; io_probe_recommend_full also shows the reasons. Measures the relation, or \
        the largest table of each tablespace. settings selects the rows to show, and does not change their \
        values: random_page_cost, effective_io_concurrency, maintenance_io_concurrency, correlation, \
        read_ahead_kb, wal_sync_method, checkpoint_flush_after, backend_flush_after, bgwriter_flush_after, \
        checkpoint_completion_target and autovacuum_vacuum_cost_limit; in PostgreSQL 18 and later also \
        io_method, io_workers (PostgreSQL 19: io_min_workers and io_max_workers), io_max_concurrency, \
        io_combine_limit and io_max_combine_limit. An index has a row if another correlation is better, if \
        there was no time to look at it, or if settings names correlation. seq_page_cost stays as it is, as \
        the unit of all costs. cold => true evicts what the function reads (needs EXECUTE on \
        io_probe_evict). writes => true writes scratch files in the folder of the WAL and in the tablespace \
        of the largest table. This needs EXECUTE on io_probe_sync; without CREATE on that tablespace, if it \
        is not the database's default, the flush_after settings have no advice. Needs EXECUTE, and SELECT or \
        MAINTAIN on the tables. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, \
        wait",
    example: "'public.probed', duration => '30 ms', cold => true, writes => true",
    errors: &[FILES],
    ..ADVISE
}];
