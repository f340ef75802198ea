//! Recommends values of settings from what was measured. Changes nothing.

use crate::function::{FILES, Function, Group, MEASURING, Returns, Who, optional, options};
use crate::row::{Row, row};
use crate::value::{Json, Relation, Text};

row! {
    /// one setting in one place
    row RecommendRow "recommend" everyday [setting, name, current, recommended, low, high, doubt] {
        /// Where the setting is set: cluster (also if there is but one tablespace, without a value of its
        /// own), tablespace, index or device
        scope: &'static str,
        /// Tablespace, index or device; NULL for the cluster, or if unknown
        name: Option<Text>,
        /// Setting of the server, or for a device of the kernel; correlation for an index
        setting: &'static str,
        /// Value in force, as SHOW prints it; of a device in kB
        current: Option<Text>,
        /// Source of current: as in pg_settings; tablespace (a value of its own), pg_statistic,
        /// io_probe_corrections, or /sys
        current_source: Option<Text>,
        /// Value that the measurement supports, as ALTER SYSTEM takes it. The same as current: keep what you
        /// have. NULL: no advice, see why
        recommended: Option<Text>,
        /// Lowest value as good as the best (not surely worse by over 5 %, with the errors of measurement and
        /// model)
        low: Option<Text>,
        /// Highest value as good as the best
        high: Option<Text>,
        /// When a change takes effect: now, reload (run SELECT pg_reload_conf() after it), restart (of the
        /// server), or root (a command of the operating system)
        applies: &'static str,
        /// SQL that sets recommended (psql runs it by \gexec), or a shell command if applies is root
        statement: Option<Text>,
        /// SQL or command that takes statement back to what was set there, or resets it. What ALTER SYSTEM
        /// had set only a superuser is told
        undo: Option<Text>,
        /// Alternative to statement, a command in each element. Tablespace: resets the tablespace's own
        /// value, if any, and sets it for the whole server; then run SELECT pg_reload_conf(). Cluster: sets
        /// it for the only tablespace, which SHOW does not show; if there is one that may have it.
        /// Correlation, from PostgreSQL 18 on: sets it in the statistics of the column until the next
        /// ANALYZE. Else NULL
        instead: Option<Vec<String>>,
        /// Which values of the setting hide statement or instead, or are hidden by it; begins with 'to be run
        /// on the primary' if a standby refuses statement
        hides: Option<Text>,
        /// Reason for the recommendation, or why there is none, in one sentence
        why: Text,
        /// Relation that was measured, or would have been
        relid: Option<Relation>,
        /// needs cold, needs writes: with that argument there might be advice; not looked at: there was no
        /// time left for this index; unknown: no advice, for the reason in why of the full row; slowed,
        /// limited, cpu quota, others: advice, but meanwhile the device slowed down, a limit of the server's
        /// cgroup held it back, the cgroup's CPU quota was used up, or others used the device; NULL: advice
        /// without doubt
        doubt: Option<&'static str>,
        /// Figures that the recommendation rests on
        evidence: Json,
        /// Major version of the server that it was measured on: on another one it is stale
        server_version: i32,
        /// io_method that it was measured with; NULL before PostgreSQL 18. With another one it is stale
        io_method: Option<Text>,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[Function {
    name: "recommend",
    calls: None,
    arguments: &[
        optional("rel", "regclass", "NULL"),
        optional("settings", "text[]", "NULL"),
        optional("duration", "text", "NULL"),
        optional("cold", "boolean", "false"),
        optional("writes", "boolean", "false"),
        optional("unit", "text", "'seq_page'"),
        options(MEASURING),
    ],
    returns: Returns::Rows(&RecommendRow::TYPE, 8),
    group: Group::Advise,
    who: Who::Owner,
    comment: "\
            Measures, and recommends values of settings; changes none. A NOTICE has each statement that \
            would change one; io_probe_recommend_full has the reasons, too. Measures the relation, or the \
            largest table of each tablespace. settings picks which rows are shown, not what they say: \
            random_page_cost, seq_page_cost, effective_io_concurrency, maintenance_io_concurrency, \
            correlation, read_ahead_kb, wal_sync_method, and from PostgreSQL 18 on io_method, io_workers \
            (from 19 on io_min_workers and io_max_workers), io_max_concurrency, io_combine_limit and \
            io_max_combine_limit; checkpoint_flush_after, backend_flush_after, bgwriter_flush_after, \
            checkpoint_completion_target and autovacuum_vacuum_cost_limit. An index has a row if another \
            correlation is better, if there was no time to look at it, or if settings names correlation. \
            unit => 'cpu' also recommends seq_page_cost, which otherwise is the unit and stays. cold => \
            true lets it evict what it reads (needs EXECUTE on io_probe_evict); writes => true lets it \
            write scratch files beside the WAL, and in the tablespace of the largest table (needs EXECUTE \
            on io_probe_sync; without CREATE on a tablespace other than the database's own, rows of writes \
            have no advice). Needs EXECUTE, and SELECT or MAINTAIN on the tables. Options: max_bytes, \
            max_iops, max_mib_s, max_util_pct, max_p99, precision, wait",
    example: "'public.probed', duration => '30 ms', cold => true, writes => true",
    errors: &[FILES],
}];
