-- What the settings should be by what was measured. Nothing is changed.

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
    instead        text,
    hides          text,
    why            text,
    relid          regclass,
    doubt          text,
    evidence       jsonb
);
COMMENT ON TYPE io_probe_recommend_full_row IS 'Row of io_probe_recommend_full: one setting in one place';
COMMENT ON COLUMN io_probe_recommend_full_row.scope IS 'For what it is set: cluster, tablespace, index or device';
COMMENT ON COLUMN io_probe_recommend_full_row.name IS 'Name of the tablespace, the index or the device; NULL for the cluster, and where the device or the index is unknown';
COMMENT ON COLUMN io_probe_recommend_full_row.setting IS 'Name of the setting: the server''s, or the kernel''s for a device; of an index correlation, as the planner takes it';
COMMENT ON COLUMN io_probe_recommend_full_row.current IS 'Value in force, as SHOW prints it; of a device in kB as in /sys';
COMMENT ON COLUMN io_probe_recommend_full_row.current_source IS 'Where it comes from: source of pg_settings for this session, tablespace if the tablespace has a value of its own, pg_statistic or io_probe_corrections for an index, or /sys';
COMMENT ON COLUMN io_probe_recommend_full_row.recommended IS 'Value that what was measured speaks for, in the form that ALTER SYSTEM takes; the same as current: keep what you have; NULL: nothing can be said, and why says so';
COMMENT ON COLUMN io_probe_recommend_full_row.low IS 'Lowest value that is as good: not surely worse than the best by more than 5 %, given the error of the measured times; NULL for a setting without an order, or without figures';
COMMENT ON COLUMN io_probe_recommend_full_row.high IS 'Highest value that is as good, in the same sense';
COMMENT ON COLUMN io_probe_recommend_full_row.applies IS 'How a change takes effect: now, reload (of the configuration), restart (of the server), or root (a command of the operating system)';
COMMENT ON COLUMN io_probe_recommend_full_row.statement IS 'What sets it: SQL, or a shell command where applies is root; NULL if there is nothing to change';
COMMENT ON COLUMN io_probe_recommend_full_row.undo IS 'What takes statement back: it sets again what the tablespace, ALTER SYSTEM or the device had, or resets what had none; NULL without a statement';
COMMENT ON COLUMN io_probe_recommend_full_row.instead IS 'What sets it for the whole server where statement sets it for a tablespace, which then has to give up a value of its own; of a correlation, from 18 on, what sets it in the statistics of the column until the next ANALYZE; else NULL';
COMMENT ON COLUMN io_probe_recommend_full_row.hides IS 'What each of them hides, and what hides it; NULL without a statement';
COMMENT ON COLUMN io_probe_recommend_full_row.why IS 'The reason, one sentence';
COMMENT ON COLUMN io_probe_recommend_full_row.relid IS 'Relation that was measured, or would have been';
COMMENT ON COLUMN io_probe_recommend_full_row.doubt IS 'needs cold, needs writes: with that argument there might be advice; unknown: there is none, for the reason that the full row gives; others: there is, but others used the device meanwhile; NULL: there is';
COMMENT ON COLUMN io_probe_recommend_full_row.evidence IS 'The figures that it rests on';

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
    duration interval DEFAULT NULL,
    cold     boolean  DEFAULT false,
    writes   boolean  DEFAULT false,
    unit     text     DEFAULT 'seq_page',
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_recommend_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 8
AS 'MODULE_PATHNAME', 'io_probe_recommend_wrapper';
COMMENT ON FUNCTION io_probe_recommend(regclass, text[], interval, boolean, boolean, text, jsonb) IS 'What the settings should be by what was measured, with reasons; changes nothing. Measures on the relation, or on the largest tables of each tablespace; settings picks from random_page_cost, seq_page_cost, effective_io_concurrency, maintenance_io_concurrency, correlation, read_ahead_kb, io_combine_limit and wal_sync_method: which rows there are, not what they say. An index has a row where another correlation is better, or if correlation is picked. unit => ''cpu'' finds seq_page_cost, too, which else is the unit and stays. cold => true lets it evict what it reads (needs EXECUTE on io_probe_evict), writes => true lets it write scratch files beside the WAL (needs EXECUTE on io_probe_sync). Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision, wait';
REVOKE ALL ON FUNCTION io_probe_recommend(regclass, text[], interval, boolean, boolean, text, jsonb) FROM PUBLIC;

CREATE FUNCTION io_probe_recommend_full(
    rel      regclass DEFAULT NULL,
    settings text[]   DEFAULT NULL,
    duration interval DEFAULT NULL,
    cold     boolean  DEFAULT false,
    writes   boolean  DEFAULT false,
    unit     text     DEFAULT 'seq_page',
    options  jsonb    DEFAULT '{}'
)
RETURNS SETOF io_probe_recommend_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 8
AS 'MODULE_PATHNAME', 'io_probe_recommend_wrapper';
COMMENT ON FUNCTION io_probe_recommend_full(regclass, text[], interval, boolean, boolean, text, jsonb) IS 'The rows of io_probe_recommend with all columns';
REVOKE ALL ON FUNCTION io_probe_recommend_full(regclass, text[], interval, boolean, boolean, text, jsonb) FROM PUBLIC;
