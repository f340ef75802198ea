-- Where the rows of indexes lie, and correlations that the planner takes in place of what ANALYZE says.

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
COMMENT ON TABLE io_probe_corrections IS 'Correlations that the planner takes of indexes, in sessions that have loaded the library, in place of what ANALYZE says. Written by io_probe_correct only';
COMMENT ON COLUMN io_probe_corrections.schemaname IS 'Schema of the table and of the index';
COMMENT ON COLUMN io_probe_corrections.tablename IS 'Name of the table';
COMMENT ON COLUMN io_probe_corrections.indexname IS 'Name of the index: a name, so that REINDEX CONCURRENTLY changes nothing';
COMMENT ON COLUMN io_probe_corrections.correlation IS 'Correlation that the planner takes, from 0 to 1';
COMMENT ON COLUMN io_probe_corrections.analyzed IS 'What ANALYZE said then; if it finds another one by more than 0.1, the row does not count any more';
COMMENT ON COLUMN io_probe_corrections.relfilenode IS 'The file of the table then; if the table is rewritten, the row does not count any more';
COMMENT ON COLUMN io_probe_corrections.reltuples IS 'Rows of the table then; with a fifth more or fewer, the row does not count any more';
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
COMMENT ON COLUMN io_probe_correlation_full_row.correlation IS 'Correlation of its first column, or expression, as ANALYZE has found it, from -1 to 1; NULL if that is not known, or not to this role';
COMMENT ON COLUMN io_probe_correlation_full_row.kept IS 'Correlation that io_probe_correct keeps of it';
COMMENT ON COLUMN io_probe_correlation_full_row.scattered_pct IS 'Share of its rows that lie anywhere in the table, in percent';
COMMENT ON COLUMN io_probe_correlation_full_row.stretch_blks IS 'Blocks of the stretch that the others come from at any moment: up to 4 if the table is in the order of the index';
COMMENT ON COLUMN io_probe_correlation_full_row.ordered_blks IS 'Blocks of the table that a range of 1 % of the index would visit if its rows lay together';
COMMENT ON COLUMN io_probe_correlation_full_row.range_blks IS 'Blocks that such a range visits, each counted once, as the samples say';
COMMENT ON COLUMN io_probe_correlation_full_row.random_blks IS 'Those of them that an index scan reaches in no order, or backwards, so that the kernel does not read ahead';
COMMENT ON COLUMN io_probe_correlation_full_row.method IS 'Its access method: only btree is looked at';
COMMENT ON COLUMN io_probe_correlation_full_row.relid IS 'The table';
COMMENT ON COLUMN io_probe_correlation_full_row.doubt IS 'What speaks against the figures of this row, the worst first, at most two: see docs/interface.md; NULL: nothing. stale is said of kept';
COMMENT ON COLUMN io_probe_correlation_full_row.status IS 'ok; partial: somebody holds a strong lock on it; unsupported: not possible here';
COMMENT ON COLUMN io_probe_correlation_full_row.notes IS 'What to know about this row, a sentence each';
COMMENT ON COLUMN io_probe_correlation_full_row.evidence IS 'Intervals of scattered_pct and stretch_blks, how many entries of the index were looked at, and ranges: by 0.01, 0.1, 1 and 10 (percent of the index), {ordered_blks, blks, ci_blks, random_blks, random_ci_blks, index_ms, bitmap_ms}; the last two are what a scan by the index and a bitmap scan are predicted to take, [cold, warm], once io_probe_page_cost or io_probe_recommend has measured the table''s tablespace in this session, also at the effective_io_concurrency in force and at 0';

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
COMMENT ON FUNCTION io_probe_correlation(regclass) IS 'Where the rows of a table''s indexes lie, beside the correlation that the planner believes. Reads some pages of each btree index and nothing of the table. io_probe_recommend, which knows what reads take, says whether another correlation gives better plans';
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
COMMENT ON FUNCTION io_probe_correct(regclass, double precision) IS 'Keeps a correlation of a btree index, from 0 to 1, which the planner takes from then on in sessions that have loaded the library (session_preload_libraries = ''pg_io_probe''); NULL forgets it. The caller must be the table''s owner, or from 17 on have MAINTAIN on it';
REVOKE ALL ON FUNCTION io_probe_correct(regclass, double precision) FROM PUBLIC;
