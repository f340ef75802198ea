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
        /// Name of the tablespace, the index or the device; NULL for the cluster, or if the device or the
        /// index is unknown
        name: Option<Text>,
        /// Name of the setting: of the server, or for a device of the kernel; correlation (as the planner
        /// uses it) for an index
        setting: &'static str,
        /// Value in force, as SHOW prints it; for a device in kB, as in /sys. NULL if unknown
        current: Option<Text>,
        /// Where current comes from: source of pg_settings for this session, tablespace if the tablespace has
        /// a value of its own, pg_statistic or io_probe_corrections for an index, or /sys
        current_source: Option<Text>,
        /// Value that the measurement speaks for, in the form that ALTER SYSTEM takes. The same as current:
        /// keep what you have. NULL: nothing can be said, for the reason in why
        recommended: Option<Text>,
        /// Lowest value that is as good as the best (not surely worse by more than 5 %, given what
        /// measurement and model may be off); NULL for a setting whose values have no order, or without
        /// figures
        low: Option<Text>,
        /// Highest value that is as good as the best, in the same sense as low; NULL if low is
        high: Option<Text>,
        /// How a change takes effect: now, reload (of the configuration), restart (of the server), or root (a
        /// command of the operating system). For reload, run SELECT pg_reload_conf() after statement or undo
        applies: &'static str,
        /// SQL that sets recommended (psql runs it by \gexec), or a shell command if applies is root; NULL if
        /// there is nothing to change
        statement: Option<Text>,
        /// SQL or command that takes statement back: it sets the value that the tablespace, ALTER SYSTEM or
        /// the device had, or resets it. What ALTER SYSTEM had set only a superuser is told; NULL without a
        /// statement
        undo: Option<Text>,
        /// Alternative to statement, a command in each element. Tablespace: resets the tablespace's own
        /// value, if any, and sets it for the whole server; then run SELECT pg_reload_conf(). Cluster: sets
        /// it for the only tablespace, which SHOW does not show; if there is one that may have it.
        /// Correlation, from PostgreSQL 18 on: sets it in the statistics of the column until the next
        /// ANALYZE. Else NULL
        instead: Option<Vec<String>>,
        /// Which other values of the setting statement or instead hides, and which hide it; on a standby it
        /// begins with 'to be run on the primary' if the standby refuses statement. NULL without a statement
        hides: Option<Text>,
        /// Reason for the recommendation, or why there is none, in one sentence
        why: Text,
        /// Relation that was measured, or would have been
        relid: Option<Relation>,
        /// needs cold, needs writes: with that argument there might be advice; unknown: no advice, for the
        /// reason in why of the full row; slowed, limited, cpu quota, others: advice, but meanwhile the
        /// device slowed down, a limit of the server's cgroup held it back, the cgroup's CPU quota was used
        /// up, or others used the device; NULL: advice without doubt
        doubt: Option<&'static str>,
        /// Figures that the recommendation rests on
        evidence: Json,
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
            correlation, read_ahead_kb and wal_sync_method. An index has a row if another correlation is \
            better, or if settings names correlation. unit => 'cpu' also recommends seq_page_cost, which \
            otherwise is the unit and stays. cold => true lets it evict what it reads (needs EXECUTE on \
            io_probe_evict); writes => true lets it write scratch files beside the WAL (needs EXECUTE on \
            io_probe_sync). Needs EXECUTE, and SELECT or MAINTAIN on the tables. Options: max_bytes, \
            max_iops, max_mib_s, max_util_pct, max_p99, precision, wait",
    example: "'public.probed', duration => '30 ms', cold => true, writes => true",
    errors: &[FILES],
}];
