-- What was stored, compared: figures, the last ones, and what moved.

CREATE TYPE io_probe_compare_row AS (
    probe     text,
    item      text,
    metric    text,
    unit      text,
    a         double precision,
    b         double precision,
    ratio     double precision,
    verdict   text,
    noise_pct double precision,
    runs      integer,
    a_setting text,
    b_setting text,
    object    text,
    notes     text[]
);
COMMENT ON TYPE io_probe_compare_row IS 'Row of io_probe_compare: one figure of both, or one setting that differs';
COMMENT ON COLUMN io_probe_compare_row.probe IS 'Probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_compare_row.item IS 'Which row of the probe, such as direct or depth 8';
COMMENT ON COLUMN io_probe_compare_row.metric IS 'Figure, as the probe''s column is called; or the setting that differs';
COMMENT ON COLUMN io_probe_compare_row.unit IS 'Unit of a and b';
COMMENT ON COLUMN io_probe_compare_row.a IS 'The figure in run_a; for a label the geometric mean of its runs';
COMMENT ON COLUMN io_probe_compare_row.b IS 'The figure in run_b';
COMMENT ON COLUMN io_probe_compare_row.ratio IS 'b divided by a';
COMMENT ON COLUMN io_probe_compare_row.verdict IS 'b against a: better, worse, same (within the noise) or unknown; NULL for a setting';
COMMENT ON COLUMN io_probe_compare_row.noise_pct IS 'A difference counts only if the greater of the two exceeds the smaller by more than so many percent of the smaller: the error within the runs, or the noise from run to run if that is larger, which runs close in time share; NULL if the noise is not known';
COMMENT ON COLUMN io_probe_compare_row.runs IS 'Runs that tell the noise: earlier ones of the same series and configurations, and of two labels their own, but for those that others disturbed; with fewer than 10 nothing is decided';
COMMENT ON COLUMN io_probe_compare_row.a_setting IS 'The setting in run_a';
COMMENT ON COLUMN io_probe_compare_row.b_setting IS 'The setting in run_b';
COMMENT ON COLUMN io_probe_compare_row.object IS 'What was measured';
COMMENT ON COLUMN io_probe_compare_row.notes IS 'What limits the verdict, a sentence each';

CREATE FUNCTION io_probe_compare(run_a bigint, run_b bigint)
RETURNS SETOF io_probe_compare_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_compare_wrapper';
COMMENT ON FUNCTION io_probe_compare(bigint, bigint) IS 'Is run_b better or worse than run_a, beyond what runs of the same configuration differ anyway? A row for each figure, then one for each setting that differs';
REVOKE ALL ON FUNCTION io_probe_compare(bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_compare(bigint, bigint) TO pg_monitor;

CREATE FUNCTION io_probe_compare(label_a text, label_b text)
RETURNS SETOF io_probe_compare_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_compare_labels_wrapper';
COMMENT ON FUNCTION io_probe_compare(text, text) IS 'The same for all runs of two labels, of which those close in time are pairs if the labels take turns: each figure is the geometric mean of the label''s runs of a series, the latest 50, against the other''s of the same series; if that has none, of the same probe, object and arguments. What only one of the labels has is left out';
REVOKE ALL ON FUNCTION io_probe_compare(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_compare(text, text) TO pg_monitor;

CREATE TYPE io_probe_changes_row AS (
    probe     text,
    object    text,
    item      text,
    metric    text,
    unit      text,
    before    double precision,
    now       double precision,
    ratio     double precision,
    verdict   text,
    noise_pct double precision,
    runs      integer,
    since     timestamp with time zone,
    run_id    bigint,
    notes     text[]
);
COMMENT ON TYPE io_probe_changes_row IS 'Row of io_probe_changes: one figure of one series';
COMMENT ON COLUMN io_probe_changes_row.probe IS 'Probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_changes_row.object IS 'What was measured';
COMMENT ON COLUMN io_probe_changes_row.item IS 'Which row of the probe, such as direct or depth 8';
COMMENT ON COLUMN io_probe_changes_row.metric IS 'Figure, as the probe''s column is called';
COMMENT ON COLUMN io_probe_changes_row.unit IS 'Unit of before and now';
COMMENT ON COLUMN io_probe_changes_row.before IS 'Geometric mean of the figure in up to 30 runs before the last ones';
COMMENT ON COLUMN io_probe_changes_row.now IS 'The same of the last runs';
COMMENT ON COLUMN io_probe_changes_row.ratio IS 'now divided by before';
COMMENT ON COLUMN io_probe_changes_row.verdict IS 'now against before: better, worse, same (within the noise) or unknown';
COMMENT ON COLUMN io_probe_changes_row.noise_pct IS 'A difference counts only if the greater of the two exceeds the smaller by more than so many percent of the smaller: more, the more figures are looked at; NULL if the noise is not known';
COMMENT ON COLUMN io_probe_changes_row.runs IS 'Runs before the last ones, which tell the noise; with fewer than 10 nothing is decided';
COMMENT ON COLUMN io_probe_changes_row.since IS 'When the first of the last runs started';
COMMENT ON COLUMN io_probe_changes_row.run_id IS 'The last run';
COMMENT ON COLUMN io_probe_changes_row.notes IS 'What limits the verdict, a sentence each';

CREATE FUNCTION io_probe_changes(last integer DEFAULT 1, all_items boolean DEFAULT false)
RETURNS SETOF io_probe_changes_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_changes_wrapper';
COMMENT ON FUNCTION io_probe_changes(integer, boolean) IS 'What moved by more than its noise: the last so many runs of each series against up to 30 before them. Of each run the figures of what is in use (of sync the current method, of readahead the kernel''s window, of scans and random reads all paths but os), or all_items. If nothing has changed, a call in twenty calls any figure different, however many there are (Holm)';
REVOKE ALL ON FUNCTION io_probe_changes(integer, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_changes(integer, boolean) TO pg_monitor;

-- Which figures of a probe's rows are compared: the column, its unit, whether more is better, and the ends of an interval, of
-- which only the width over the middle counts, so that a rate may have that of a time. Each OFFSET 0 has something computed
-- once for each row, not wherever it is used. Whoever imports a run may give it any number of rows: an item counts once, and so many.
CREATE VIEW io_probe_metrics AS
SELECT run.id AS run_id, run.started_at, run.label, run.probe, run.object, figure.item, figure.metric, figure.unit, figure.value,
       figure.error, figure.more_is_better, run.series, run.configuration, figure.ordinal
FROM io_probe_runs AS run, LATERAL (SELECT DISTINCT ON (figure.item, figure.metric) * FROM (
    SELECT line.item, figure.metric, figure.unit, figure.value,
           CASE WHEN figure.low OPERATOR(pg_catalog.>=) 0::pg_catalog.float8 AND figure.high OPERATOR(pg_catalog.>) 0::pg_catalog.float8
                     AND figure.high OPERATOR(pg_catalog.>=) figure.low AND figure.high OPERATOR(pg_catalog.<) '1e300'::pg_catalog.float8
                THEN (figure.high OPERATOR(pg_catalog.-) figure.low) OPERATOR(pg_catalog./) (figure.high OPERATOR(pg_catalog.+) figure.low)
                WHEN figure.low IS NOT NULL AND figure.high IS NULL THEN 1
           END AS error,
           figure.more_is_better, line.ordinal
    FROM (VALUES
        ('seqscan',   'mib_s',    'MiB/s', true,  'ci_low',   'ci_high',   NULL,         NULL),
        ('random',    'iops',         '1/s',   true,  'ci_low', 'ci_high', 'p50_us', 'p99_us'),
        ('depth',     'iops',         '1/s',   true,  'ci_low', 'ci_high', NULL,         NULL),
        ('readahead', 'mib_s',    'MiB/s', true,  'ci_low',   'ci_high',   NULL,         NULL),
        ('sync',      'ops_s',    '1/s',   true,  'ci_low',   'ci_high',   'p99_us', NULL),
        ('page_cost', 'block_us', 'us',    false, 'ci_low',   'ci_high',   NULL,         NULL)
    ) AS known (probe, metric, unit, more_is_better, low, high, latency, other_latency), LATERAL (
        SELECT line.ordinal, line.result,
               CASE known.probe
                   WHEN 'depth' THEN pg_catalog.concat('depth ', line.result OPERATOR(pg_catalog.->>) 'depth')
                   -- The window of the kernel is a setting, of which each run says what it was.
                   WHEN 'readahead' THEN CASE line.result OPERATOR(pg_catalog.->>) 'mode' WHEN 'kernel' THEN 'kernel'
                       ELSE pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'mode', ' ', line.result OPERATOR(pg_catalog.->>) 'window_kb', ' kB') END
                   -- In the segment of the WAL a method is direct as the server has it, elsewhere it has a row for each.
                   WHEN 'sync' THEN pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'section', ' ', line.result OPERATOR(pg_catalog.->>) 'method',
                       CASE WHEN (line.result OPERATOR(pg_catalog.->>) 'direct')::pg_catalog.bool AND line.result OPERATOR(pg_catalog.->>) 'section' OPERATOR(pg_catalog.<>) 'wal_segment'
                            THEN ' direct' END,
                       ' ' OPERATOR(pg_catalog.||) NULLIF(line.result OPERATOR(pg_catalog.->>) 'writes', '1') OPERATOR(pg_catalog.||) ' x',
                       ' ', line.result OPERATOR(pg_catalog.->>) 'write_kb', ' kB')
                   WHEN 'page_cost' THEN pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'tier', ' ', line.result OPERATOR(pg_catalog.->>) 'pattern',
                       ' density ' OPERATOR(pg_catalog.||) (line.result OPERATOR(pg_catalog.->>) 'density'),
                       ' depth ' OPERATOR(pg_catalog.||) (line.result OPERATOR(pg_catalog.->>) 'depth'))
                   ELSE line.result OPERATOR(pg_catalog.->>) 'path'
               END AS item
        FROM io_probe_results AS line WHERE line.run_id OPERATOR(pg_catalog.=) run.id
        OFFSET 0
    ) AS line, LATERAL (
        SELECT column1 AS metric, column2 AS unit, column3 AS more_is_better,
               (line.result OPERATOR(pg_catalog.->>) column1)::pg_catalog.float8 AS value,
               (line.result OPERATOR(pg_catalog.->>) column4)::pg_catalog.float8 AS low,
               (line.result OPERATOR(pg_catalog.->>) column5)::pg_catalog.float8 AS high
        FROM (VALUES (known.metric, known.unit, known.more_is_better, known.low, known.high),
                     (known.latency, 'us', false, NULL, NULL), (known.other_latency, 'us', false, NULL, NULL)) AS each
        OFFSET 0
    ) AS figure
    WHERE known.probe OPERATOR(pg_catalog.=) run.probe
          AND figure.value OPERATOR(pg_catalog.>) '-Infinity'::pg_catalog.float8 AND figure.value OPERATOR(pg_catalog.<) 'Infinity'::pg_catalog.float8
    UNION ALL
    SELECT line.result OPERATOR(pg_catalog.->>) 'op', 'median_us', 'us',
           pg_catalog.percentile_cont(0.5) WITHIN GROUP (ORDER BY (line.result OPERATOR(pg_catalog.->>) 'lat_us')::pg_catalog.float8),
           NULL::pg_catalog.float8, false, pg_catalog.min(line.ordinal)
    FROM io_probe_results AS line
    WHERE line.run_id OPERATOR(pg_catalog.=) run.id AND run.probe OPERATOR(pg_catalog.=) 'ping'
          AND (line.result OPERATOR(pg_catalog.->>) 'lat_us')::pg_catalog.float8 OPERATOR(pg_catalog.>=) 0::pg_catalog.float8
          AND (line.result OPERATOR(pg_catalog.->>) 'lat_us')::pg_catalog.float8 OPERATOR(pg_catalog.<) 'Infinity'::pg_catalog.float8
          AND NOT COALESCE((line.result OPERATOR(pg_catalog.->>) 'warmup')::pg_catalog.bool, false)
    GROUP BY 1
    UNION ALL
    -- Of a report what its table shows: of flushes and windows, those in use.
    SELECT line.item, line.metric, line.unit, line.value,
           CASE WHEN line.low OPERATOR(pg_catalog.>=) 0::pg_catalog.float8 AND line.high OPERATOR(pg_catalog.>) 0::pg_catalog.float8
                     AND line.high OPERATOR(pg_catalog.>=) line.low AND line.high OPERATOR(pg_catalog.<) '1e300'::pg_catalog.float8
                THEN (line.high OPERATOR(pg_catalog.-) line.low) OPERATOR(pg_catalog./) (line.high OPERATOR(pg_catalog.+) line.low)
                WHEN line.low IS NOT NULL AND line.high IS NULL THEN 1
           END,
           line.more_is_better, line.ordinal
    FROM (
        SELECT pg_catalog.concat(known.section, ' ', CASE known.section WHEN 'readahead' THEN 'kernel' ELSE line.result OPERATOR(pg_catalog.->>) 'item' END) AS item,
               known.metric, known.unit, known.more_is_better, line.ordinal,
               (line.result OPERATOR(pg_catalog.->>) 'value')::pg_catalog.float8 AS value,
               (line.result OPERATOR(pg_catalog.->>) 'low')::pg_catalog.float8 AS low,
               (line.result OPERATOR(pg_catalog.->>) 'high')::pg_catalog.float8 AS high
        FROM (VALUES ('scan', 'mib_s', 'MiB/s', true), ('depth', 'iops', '1/s', true), ('p99', 'p99_us', 'us', false),
                     ('commit', 'op_us', 'us', false), ('readahead', 'mib_s', 'MiB/s', true)
        ) AS known (section, metric, unit, more_is_better), io_probe_results AS line
        WHERE run.probe OPERATOR(pg_catalog.=) 'report' AND line.run_id OPERATOR(pg_catalog.=) run.id
              AND line.result OPERATOR(pg_catalog.->>) 'section' OPERATOR(pg_catalog.=) known.section
              AND (known.section OPERATOR(pg_catalog.=) ANY ('{scan,depth}')
                   OR known.section OPERATOR(pg_catalog.=) 'p99' AND line.result OPERATOR(pg_catalog.->>) 'item' OPERATOR(pg_catalog.=) '1'
                   OR line.result OPERATOR(pg_catalog.->>) 'finding' OPERATOR(pg_catalog.=) 'in use')
        OFFSET 0
    ) AS line
    WHERE line.value OPERATOR(pg_catalog.>) '-Infinity'::pg_catalog.float8 AND line.value OPERATOR(pg_catalog.<) 'Infinity'::pg_catalog.float8
) AS figure WHERE figure.item IS NOT NULL ORDER BY figure.item, figure.metric, figure.ordinal LIMIT 3000) AS figure
WHERE run.status OPERATOR(pg_catalog.=) 'ok';
COMMENT ON VIEW io_probe_metrics IS 'The figures of stored runs that io_probe_compare, io_probe_changes and io_probe_latest are about, one a row';
COMMENT ON COLUMN io_probe_metrics.run_id IS 'Run in io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_metrics.label IS 'What the caller called the run';
COMMENT ON COLUMN io_probe_metrics.probe IS 'Probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_metrics.object IS 'What was measured';
COMMENT ON COLUMN io_probe_metrics.item IS 'Which row of the probe, such as direct or depth 8; of a report scan direct, depth 8, p99 1, commit fdatasync, readahead kernel';
COMMENT ON COLUMN io_probe_metrics.metric IS 'Figure, as the probe''s column is called; of ping median_us, without the warm-up';
COMMENT ON COLUMN io_probe_metrics.unit IS 'Its unit';
COMMENT ON COLUMN io_probe_metrics.value IS 'Its value';
COMMENT ON COLUMN io_probe_metrics.error IS 'Half the width of its 95 % confidence interval within the run, divided by the middle of that interval; 1 where it has no upper end, NULL without one';
COMMENT ON COLUMN io_probe_metrics.more_is_better IS 'Is a greater value better, as of a rate, or worse, as of a latency?';
COMMENT ON COLUMN io_probe_metrics.series IS 'Runs of the same series measure the same thing, see io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.configuration IS 'Runs of the same configuration did so under the same circumstances, see io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.ordinal IS 'Number of the row in the run, from 1';
GRANT SELECT ON io_probe_metrics TO pg_monitor;

-- From one series to the next by the index: that takes a step for each series, however many runs there are.
CREATE VIEW io_probe_latest AS
WITH RECURSIVE each (series) AS (
    (SELECT series FROM io_probe_runs WHERE status OPERATOR(pg_catalog.=) 'ok' ORDER BY series LIMIT 1)
    UNION ALL
    SELECT (SELECT other.series FROM io_probe_runs AS other
            WHERE other.status OPERATOR(pg_catalog.=) 'ok' AND other.series OPERATOR(pg_catalog.>) each.series
            ORDER BY other.series LIMIT 1)
    FROM each WHERE each.series IS NOT NULL
)
SELECT metrics.probe, metrics.object, metrics.item, metrics.metric, metrics.value, metrics.unit,
       pg_catalog.now() OPERATOR(pg_catalog.-) metrics.started_at AS age, metrics.run_id, metrics.label, last.datname, last.host
FROM each, LATERAL (
    SELECT run.id, run.datname, run.host FROM io_probe_runs AS run
    WHERE run.status OPERATOR(pg_catalog.=) 'ok' AND run.series OPERATOR(pg_catalog.=) each.series
    ORDER BY run.started_at DESC, run.id DESC LIMIT 1
) AS last, LATERAL (
    SELECT * FROM io_probe_metrics AS found WHERE found.run_id OPERATOR(pg_catalog.=) last.id
) AS metrics;
COMMENT ON VIEW io_probe_latest IS 'The latest figures of each series: of each probe, object and set of arguments, in each database and cluster';
COMMENT ON COLUMN io_probe_latest.probe IS 'Probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_latest.object IS 'What was measured';
COMMENT ON COLUMN io_probe_latest.item IS 'Which row of the probe, such as direct or depth 8';
COMMENT ON COLUMN io_probe_latest.metric IS 'Figure, as the probe''s column is called; of ping median_us, without the warm-up';
COMMENT ON COLUMN io_probe_latest.value IS 'Its value';
COMMENT ON COLUMN io_probe_latest.unit IS 'Its unit';
COMMENT ON COLUMN io_probe_latest.age IS 'How long ago the run started';
COMMENT ON COLUMN io_probe_latest.run_id IS 'Run in io_probe_runs';
COMMENT ON COLUMN io_probe_latest.label IS 'What the caller called the run';
COMMENT ON COLUMN io_probe_latest.datname IS 'Database in which it ran';
COMMENT ON COLUMN io_probe_latest.host IS 'Name of the machine';
GRANT SELECT ON io_probe_latest TO pg_monitor;
