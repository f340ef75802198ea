-- Recommends values of settings from what was measured. Changes nothing.

CREATE TYPE io_probe_recommend_full_row AS (
    scope          text,
    name           text,
    setting        text,
    current        text,
    current_source text,
    recommended    text,
    low            text,
    high           text,
    applies        text,
    statement      text,
    undo           text,
    instead        text[],
    hides          text,
    why            text,
    relid          regclass,
    doubt          text,
    evidence       jsonb
);
COMMENT ON TYPE io_probe_recommend_full_row IS 'Row of io_probe_recommend_full: one setting in one place';
COMMENT ON COLUMN io_probe_recommend_full_row.scope IS 'Where the setting is set: cluster, tablespace, index or device';
COMMENT ON COLUMN io_probe_recommend_full_row.name IS 'Name of the tablespace, the index or the device; NULL for the cluster, or if the device or the index is unknown';
COMMENT ON COLUMN io_probe_recommend_full_row.setting IS 'Name of the setting: of the server, or for a device of the kernel; correlation (as the planner uses it) for an index';
COMMENT ON COLUMN io_probe_recommend_full_row.current IS 'Value in force, as SHOW prints it; for a device in kB, as in /sys. NULL if unknown';
COMMENT ON COLUMN io_probe_recommend_full_row.current_source IS 'Where current comes from: source of pg_settings for this session, tablespace if the tablespace has a value of its own, pg_statistic or io_probe_corrections for an index, or /sys';
COMMENT ON COLUMN io_probe_recommend_full_row.recommended IS 'Value that the measurement speaks for, in the form that ALTER SYSTEM takes. The same as current: keep what you have. NULL: nothing can be said, for the reason in why';
COMMENT ON COLUMN io_probe_recommend_full_row.low IS 'Lowest value that is as good as the best (not surely worse by more than 5 %, given what measurement and model may be off); NULL for a setting whose values have no order, or without figures';
COMMENT ON COLUMN io_probe_recommend_full_row.high IS 'Highest value that is as good as the best, in the same sense as low; NULL if low is';
COMMENT ON COLUMN io_probe_recommend_full_row.applies IS 'How a change takes effect: now, reload (of the configuration), restart (of the server), or root (a command of the operating system). For reload, run SELECT pg_reload_conf() after statement or undo';
COMMENT ON COLUMN io_probe_recommend_full_row.statement IS 'SQL that sets recommended (psql runs it by \gexec), or a shell command if applies is root; NULL if there is nothing to change';
COMMENT ON COLUMN io_probe_recommend_full_row.undo IS 'SQL or command that takes statement back: it sets the value that the tablespace, ALTER SYSTEM or the device had, or resets it. What ALTER SYSTEM had set only a superuser is told; NULL without a statement';
COMMENT ON COLUMN io_probe_recommend_full_row.instead IS 'Alternative to statement, a command in each element. Tablespace: resets the tablespace''s own value, if any, and sets it for the whole server; then run SELECT pg_reload_conf(). Correlation, from PostgreSQL 18 on: sets it in the statistics of the column until the next ANALYZE. Else NULL';
COMMENT ON COLUMN io_probe_recommend_full_row.hides IS 'Which other values of the setting statement or instead hides, and which hide it; on a standby it begins with ''to be run on the primary'' if the standby refuses statement. NULL without a statement';
COMMENT ON COLUMN io_probe_recommend_full_row.why IS 'Reason for the recommendation, or why there is none, in one sentence';
COMMENT ON COLUMN io_probe_recommend_full_row.relid IS 'Relation that was measured, or would have been';
COMMENT ON COLUMN io_probe_recommend_full_row.doubt IS 'needs cold, needs writes: with that argument there might be advice; unknown: no advice, for the reason in why of the full row; others: advice, but others used the device meanwhile; NULL: advice without doubt';
COMMENT ON COLUMN io_probe_recommend_full_row.evidence IS 'Figures that the recommendation rests on';

CREATE TYPE io_probe_recommend_row AS (
    setting     text,
    name        text,
    current     text,
    recommended text,
    low         text,
    high        text,
    applies     text,
    doubt       text
);
COMMENT ON TYPE io_probe_recommend_row IS 'Row of io_probe_recommend: one setting in one place';

CREATE FUNCTION io_probe_recommend(
    rel      regclass DEFAULT NULL,
    settings text[]   DEFAULT NULL,
    duration text     DEFAULT NULL,
    cold     boolean  DEFAULT false,
    writes   boolean  DEFAULT false,
    unit     text     DEFAULT 'seq_page',
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_recommend_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 8
AS 'MODULE_PATHNAME', 'io_probe_recommend_wrapper';
COMMENT ON FUNCTION io_probe_recommend(regclass, text[], text, boolean, boolean, text, jsonb) IS 'Measures, and recommends values of settings with reasons; changes no setting. Measures the relation, or the largest table of each tablespace. settings picks which rows are shown, not what they say: random_page_cost, seq_page_cost, effective_io_concurrency, maintenance_io_concurrency, correlation, read_ahead_kb and wal_sync_method. An index has a row if another correlation is better, or if settings names correlation. unit => ''cpu'' also recommends seq_page_cost, which otherwise is the unit and stays. cold => true lets it evict what it reads (needs EXECUTE on io_probe_evict); writes => true lets it write scratch files beside the WAL (needs EXECUTE on io_probe_sync). Needs EXECUTE, and SELECT or MAINTAIN on the tables. Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait';
REVOKE ALL ON FUNCTION io_probe_recommend(regclass, text[], text, boolean, boolean, text, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_recommend_full(
    rel      regclass DEFAULT NULL,
    settings text[]   DEFAULT NULL,
    duration text     DEFAULT NULL,
    cold     boolean  DEFAULT false,
    writes   boolean  DEFAULT false,
    unit     text     DEFAULT 'seq_page',
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_recommend_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 8
AS 'MODULE_PATHNAME', 'io_probe_recommend_wrapper';
COMMENT ON FUNCTION io_probe_recommend_full(regclass, text[], text, boolean, boolean, text, jsonb) IS 'The rows of io_probe_recommend with all columns';
REVOKE ALL ON FUNCTION io_probe_recommend_full(regclass, text[], text, boolean, boolean, text, jsonb) FROM PUBLIC;
