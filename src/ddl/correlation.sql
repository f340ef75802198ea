-- Where the rows of indexes lie, and correlations that the planner uses in place of what ANALYZE found.

CREATE TABLE io_probe_corrections (
    schemaname  name NOT NULL,
    tablename   name NOT NULL,
    indexname   name NOT NULL,
    correlation double precision NOT NULL,
    analyzed    real NOT NULL,
    relfilenode oid NOT NULL,
    reltuples   real NOT NULL,
    set_at      timestamp with time zone NOT NULL DEFAULT pg_catalog.now(),
    PRIMARY KEY (schemaname, tablename, indexname)
) USING heap;
SELECT pg_catalog.pg_extension_config_dump('io_probe_corrections', '');
COMMENT ON TABLE io_probe_corrections IS 'Correlations of indexes that the planner uses in place of what ANALYZE found, in sessions that have loaded the library. Written by io_probe_correct; its owner may DELETE rows of tables that are gone. Of more than 1000 rows of a table the others do not count';
COMMENT ON COLUMN io_probe_corrections.schemaname IS 'Schema of the table and of the index';
COMMENT ON COLUMN io_probe_corrections.tablename IS 'Name of the table';
COMMENT ON COLUMN io_probe_corrections.indexname IS 'Name of the index; it is not an oid, so that REINDEX CONCURRENTLY changes nothing';
COMMENT ON COLUMN io_probe_corrections.correlation IS 'Correlation that the planner uses, from 0 to 1';
COMMENT ON COLUMN io_probe_corrections.analyzed IS 'Correlation that ANALYZE had found at set_at; if it finds one that differs by more than 0.1, the row does not count any more';
COMMENT ON COLUMN io_probe_corrections.relfilenode IS 'File of the table at set_at; if the table is rewritten, the row does not count any more';
COMMENT ON COLUMN io_probe_corrections.reltuples IS 'Rows of the table at set_at; with a fifth more or fewer, the row does not count any more';
COMMENT ON COLUMN io_probe_corrections.set_at IS 'When io_probe_correct was called';

CREATE TYPE io_probe_correlation_full_row AS (
    index         regclass,
    correlation   double precision,
    kept          double precision,
    scattered_pct double precision,
    stretch_blks  bigint,
    ordered_blks  bigint,
    range_blks    bigint,
    random_blks   bigint,
    method        text,
    relid         regclass,
    doubt         text,
    status        text,
    notes         text[],
    evidence      jsonb
);
COMMENT ON TYPE io_probe_correlation_full_row IS 'Row of io_probe_correlation_full: one index';
COMMENT ON COLUMN io_probe_correlation_full_row.index IS 'The index';
COMMENT ON COLUMN io_probe_correlation_full_row.correlation IS 'Correlation of the index''s first column or expression that ANALYZE found, from -1 to 1; NULL if unknown, or if this role may not know it';
COMMENT ON COLUMN io_probe_correlation_full_row.kept IS 'Correlation that io_probe_correct keeps for the index; NULL without one, or if the caller may not see the table''s statistics';
COMMENT ON COLUMN io_probe_correlation_full_row.scattered_pct IS 'Percent of the index''s rows that are scattered: they lie anywhere in the table. Of up to 5 percent, those that follow one another on one block count once';
COMMENT ON COLUMN io_probe_correlation_full_row.stretch_blks IS 'Blocks of the stretch of the table from which rows that are not scattered come at any moment: up to 4 if the table is in the order of the index';
COMMENT ON COLUMN io_probe_correlation_full_row.ordered_blks IS 'Blocks of the table that a range of 1 % of the index would visit if its rows lay together';
COMMENT ON COLUMN io_probe_correlation_full_row.range_blks IS 'Blocks of the table that a range of 1 % of the index visits according to the samples, each counted once';
COMMENT ON COLUMN io_probe_correlation_full_row.random_blks IS 'Part of range_blks that an index scan reaches in no order, or backwards, so that the kernel does not read ahead';
COMMENT ON COLUMN io_probe_correlation_full_row.method IS 'Access method of the index; only btree is looked at';
COMMENT ON COLUMN io_probe_correlation_full_row.relid IS 'Table of the index';
COMMENT ON COLUMN io_probe_correlation_full_row.doubt IS 'What speaks against this row''s figures: at most two codes of docs/interface.md, the worst first; NULL: nothing. stale concerns kept';
COMMENT ON COLUMN io_probe_correlation_full_row.status IS 'ok; partial: another session holds a strong lock on the table or index; unsupported: not possible here; void: the samples visit other blocks than predicted';
COMMENT ON COLUMN io_probe_correlation_full_row.notes IS 'What to know about this row, one sentence per element';
COMMENT ON COLUMN io_probe_correlation_full_row.evidence IS 'Intervals of scattered_pct and stretch_blks; how many index entries were looked at; and ranges: for 0.01, 0.1, 1 and 10 (percent of the index) {ordered_blks, blks, ci_blks, random_blks, random_ci_blks}';

CREATE TYPE io_probe_correlation_row AS (
    index         regclass,
    correlation   double precision,
    kept          double precision,
    scattered_pct double precision,
    stretch_blks  bigint,
    ordered_blks  bigint,
    range_blks    bigint,
    random_blks   bigint,
    doubt         text
);
COMMENT ON TYPE io_probe_correlation_row IS 'Row of io_probe_correlation: one index';

CREATE FUNCTION io_probe_correlation(rel regclass)
RETURNS SETOF io_probe_correlation_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4
AS 'MODULE_PATHNAME', 'io_probe_correlation_wrapper';
COMMENT ON FUNCTION io_probe_correlation(regclass) IS 'Where the rows of a table''s indexes lie, beside the correlation that the planner uses, one row per index. Reads some pages of each btree index and nothing of the table. io_probe_recommend also knows how long reads take, and says whether another correlation gives better plans. Needs EXECUTE, and SELECT or MAINTAIN on the table. What is in no statistics that the caller may see is NULL: it takes SELECT, and no row-level security for the caller';
REVOKE ALL ON FUNCTION io_probe_correlation(regclass) FROM PUBLIC;

CREATE FUNCTION io_probe_correlation_full(rel regclass)
RETURNS SETOF io_probe_correlation_full_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 4
AS 'MODULE_PATHNAME', 'io_probe_correlation_wrapper';
COMMENT ON FUNCTION io_probe_correlation_full(regclass) IS 'The rows of io_probe_correlation with all columns';
REVOKE ALL ON FUNCTION io_probe_correlation_full(regclass) FROM PUBLIC;

CREATE FUNCTION io_probe_correct(index regclass, correlation double precision)
RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'io_probe_correct_wrapper';
COMMENT ON FUNCTION io_probe_correct(regclass, double precision) IS 'Keeps a correlation, from 0 to 1, for a btree index; NULL forgets it. From then on the planner uses it, in sessions of all users that have loaded the library (session_preload_libraries = ''pg_io_probe''). Needs EXECUTE; the caller must also own the table or, from PostgreSQL 17 on, have MAINTAIN on it';
REVOKE ALL ON FUNCTION io_probe_correct(regclass, double precision) FROM PUBLIC;
