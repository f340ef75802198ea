//! Recommends values of settings from what was measured. Changes nothing.

use crate::function::{FILES, Function, MEASURING, Returns, Who, optional, options};
use crate::row::{Row, row};
use crate::value::{Json, Relation, Text};

row! {
    /// one setting in one place
    row RecommendRow "recommend" everyday [setting, name, current, recommended, low, high, statement, doubt] {
        /// Where the setting is set: cluster, tablespace, index or device
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
        /// Commands in place of statement. Tablespace: reset its own value and set it for the whole server
        /// (then SELECT pg_reload_conf()). Correlation, from PostgreSQL 18 on: set it in the column's
        /// statistics until the next ANALYZE
        instead: Option<Vec<String>>,
        /// Which values of the setting hide statement or instead, or are hidden by it; begins with 'to be run
        /// on the primary' if a standby refuses statement
        hides: Option<Text>,
        /// Reason for the recommendation, or why there is none, in one sentence
        why: Text,
        /// Relation that was measured, or would have been
        relid: Option<Relation>,
        /// needs cold, needs writes: with that argument there might be advice; unknown: no advice, see why;
        /// slowed, limited, cpu quota, others: advice, but meanwhile the device slowed down, the server's
        /// cgroup was at its limit on I/O or CPU, or others used the device
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
    who: Who::Owner,
    comment: "\
        Measures, and recommends values of settings with reasons; changes no setting. Measures the relation, \
        or the largest table of each tablespace. settings picks the rows: random_page_cost, seq_page_cost, \
        effective_io_concurrency, maintenance_io_concurrency, correlation (of indexes for which another one \
        is better, or of all if named here), read_ahead_kb and wal_sync_method. unit => 'cpu' also \
        recommends seq_page_cost, which otherwise is the unit. cold => true lets it evict what it reads \
        (needs EXECUTE on io_probe_evict), writes => true write scratch files beside the WAL (on \
        io_probe_sync). Needs EXECUTE, and SELECT or MAINTAIN on the tables. Options: max_bytes, max_iops, \
        max_mib_s, max_util_pct, max_p99, precision, wait",
    example: "'public.probed', duration => '30 ms', cold => true, writes => true",
    errors: &[FILES],
}];
