-- Comparing stored runs: their figures, the latest ones, and what has changed.

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
COMMENT ON TYPE io_probe_compare_row IS 'Row of io_probe_compare: one figure of both sides, or one setting that differs';
COMMENT ON COLUMN io_probe_compare_row.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_compare_row.item IS 'Row of the probe that the figure is from, such as direct or depth 8; NULL for a setting';
COMMENT ON COLUMN io_probe_compare_row.metric IS 'Name of the figure, which is a column of the probe, or of the setting that differs';
COMMENT ON COLUMN io_probe_compare_row.unit IS 'Unit of a and b; NULL for a setting';
COMMENT ON COLUMN io_probe_compare_row.a IS 'The figure in run_a; for labels its geometric mean over the runs of label_a';
COMMENT ON COLUMN io_probe_compare_row.b IS 'The figure in run_b; for labels its geometric mean over the runs of label_b';
COMMENT ON COLUMN io_probe_compare_row.ratio IS 'b divided by a';
COMMENT ON COLUMN io_probe_compare_row.verdict IS 'Verdict on b against a: better, worse, same (within the noise) or unknown; NULL for a setting';
COMMENT ON COLUMN io_probe_compare_row.noise_pct IS 'Percent of the smaller figure by which the greater must exceed it for a difference to count: the error within the runs, or the noise from run to run if that is larger (runs close in time share part of it). NULL if the noise is not known';
COMMENT ON COLUMN io_probe_compare_row.runs IS 'Number of runs from which the noise is known: earlier runs of the same series and configurations and, for labels, the labels'' own runs, without runs that others disturbed. With fewer than 10 the verdict is unknown';
COMMENT ON COLUMN io_probe_compare_row.a_setting IS 'Value of the setting in run_a, or in the runs of label_a; NULL for a figure';
COMMENT ON COLUMN io_probe_compare_row.b_setting IS 'Value of the setting in run_b, or in the runs of label_b; NULL for a figure';
COMMENT ON COLUMN io_probe_compare_row.object IS 'What was measured';
COMMENT ON COLUMN io_probe_compare_row.notes IS 'What limits the verdict, one sentence per element';

CREATE FUNCTION io_probe_compare(run_a bigint, run_b bigint)
RETURNS SETOF io_probe_compare_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_compare_wrapper';
COMMENT ON FUNCTION io_probe_compare(bigint, bigint) IS 'Is run_b better or worse than run_a, by more than runs of the same configuration differ anyway? One row for each figure, then one for each setting that differs. Reads stored runs only. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_compare(bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_compare(bigint, bigint) TO pg_monitor;

CREATE FUNCTION io_probe_compare(label_a text, label_b text)
RETURNS SETOF io_probe_compare_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_compare_labels_wrapper';
COMMENT ON FUNCTION io_probe_compare(text, text) IS 'Compares all runs of two labels as io_probe_compare(run_a, run_b) compares two runs. Each figure is the geometric mean over the latest 50 runs of a label in a series. It is compared with the other label''s figure in the same series or, if the other label lacks the series, with that of the same probe, object and arguments. What only one label has is left out. If the labels take turns, runs that are close in time count as pairs. pg_monitor may call it';
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
COMMENT ON COLUMN io_probe_changes_row.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_changes_row.object IS 'What was measured';
COMMENT ON COLUMN io_probe_changes_row.item IS 'Row of the probe that the figure is from, such as direct or depth 8';
COMMENT ON COLUMN io_probe_changes_row.metric IS 'Name of the figure, which is a column of the probe';
COMMENT ON COLUMN io_probe_changes_row.unit IS 'Unit of before and now';
COMMENT ON COLUMN io_probe_changes_row.before IS 'Geometric mean of the figure in up to 30 runs before the last runs';
COMMENT ON COLUMN io_probe_changes_row.now IS 'Geometric mean of the figure in the last runs';
COMMENT ON COLUMN io_probe_changes_row.ratio IS 'now divided by before';
COMMENT ON COLUMN io_probe_changes_row.verdict IS 'Verdict on now against before: better, worse, same (within the noise) or unknown';
COMMENT ON COLUMN io_probe_changes_row.noise_pct IS 'Percent of the smaller figure by which the greater must exceed it for a difference to count. The more figures the call compares, the larger it is. NULL if the noise is not known';
COMMENT ON COLUMN io_probe_changes_row.runs IS 'Number of runs before the last runs that count: those that others disturbed are set aside while enough others are left; with fewer than 10 the verdict is unknown';
COMMENT ON COLUMN io_probe_changes_row.since IS 'When the first of the last runs started';
COMMENT ON COLUMN io_probe_changes_row.run_id IS 'Number of the last run in io_probe_runs';
COMMENT ON COLUMN io_probe_changes_row.notes IS 'What limits the verdict, one sentence per element';

CREATE FUNCTION io_probe_changes(last integer DEFAULT 1, all_items boolean DEFAULT false)
RETURNS SETOF io_probe_changes_row
LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 20
AS 'MODULE_PATHNAME', 'io_probe_changes_wrapper';
COMMENT ON FUNCTION io_probe_changes(integer, boolean) IS 'What moved by more than its noise: the last runs of each series (argument last says how many) against up to 30 runs before them. It shows the figures of what is in use (for sync the current method, for readahead the kernel''s window, for scans and random reads all paths but os), or all with all_items => true. If nothing has changed, one call in twenty should call any figure different (Holm''s correction). Reads stored runs only. pg_monitor may call it';
REVOKE ALL ON FUNCTION io_probe_changes(integer, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION io_probe_changes(integer, boolean) TO pg_monitor;

-- Which figures of a probe's rows are compared: the column, its unit, whether more is better, and the ends of an interval. Only
-- the width of the interval over its middle counts, so that a rate may have the interval of a time. Each OFFSET 0 makes the server
-- compute something once for each row, not wherever it is used. An imported run may have any number of rows: each item counts
-- once, and only up to a limit.
CREATE VIEW io_probe_metrics AS
SELECT run.id AS run_id, run.started_at, run.label, run.probe, run.object, figure.item, figure.metric, figure.unit, figure.value,
       CASE WHEN figure.low OPERATOR(pg_catalog.>=) 0::pg_catalog.float8 AND figure.high OPERATOR(pg_catalog.>) 0::pg_catalog.float8
                 AND figure.high OPERATOR(pg_catalog.>=) figure.low AND figure.high OPERATOR(pg_catalog.<) '1e300'::pg_catalog.float8
            THEN (figure.high OPERATOR(pg_catalog.-) figure.low) OPERATOR(pg_catalog./) (figure.high OPERATOR(pg_catalog.+) figure.low)
            WHEN figure.low IS NOT NULL AND figure.high IS NULL THEN 1
       END AS error,
       figure.more_is_better, run.series, run.configuration, figure.ordinal
FROM io_probe_runs AS run, LATERAL (SELECT DISTINCT ON (figure.item, figure.metric) * FROM (
    SELECT line.item, figure.metric, figure.unit, figure.value, figure.low, figure.high, figure.more_is_better, line.ordinal
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
                   -- The kernel's window is a setting: each run says what it was.
                   WHEN 'readahead' THEN CASE line.result OPERATOR(pg_catalog.->>) 'mode' WHEN 'kernel' THEN 'kernel'
                       ELSE pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'mode', ' ', line.result OPERATOR(pg_catalog.->>) 'window_kb', ' kB') END
                   -- In wal_segment a method is direct if the server's is. In other sections direct has a row of its own.
                   WHEN 'sync' THEN pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'section', ' ', line.result OPERATOR(pg_catalog.->>) 'method',
                       CASE WHEN (line.result OPERATOR(pg_catalog.->>) 'direct')::pg_catalog.bool AND line.result OPERATOR(pg_catalog.->>) 'section' OPERATOR(pg_catalog.<>) 'wal_segment'
                            THEN ' direct' END,
                       ' ' OPERATOR(pg_catalog.||) NULLIF(line.result OPERATOR(pg_catalog.->>) 'writes', '1') OPERATOR(pg_catalog.||) ' x',
                       ' ', line.result OPERATOR(pg_catalog.->>) 'write_kb', ' kB')
                   WHEN 'page_cost' THEN pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'tier', ' ', line.result OPERATOR(pg_catalog.->>) 'pattern',
                       ' density ' OPERATOR(pg_catalog.||) (line.result OPERATOR(pg_catalog.->>) 'density'),
                       ' depth ' OPERATOR(pg_catalog.||) (line.result OPERATOR(pg_catalog.->>) 'depth'))
                   ELSE (line.result OPERATOR(pg_catalog.->>) 'path') OPERATOR(pg_catalog.||)
                       CASE WHEN (line.result OPERATOR(pg_catalog.->>) 'device_pct')::pg_catalog.float8 OPERATOR(pg_catalog.<) 90::pg_catalog.float8
                            THEN ', from memory' ELSE '' END
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
          -- Under a limit this is the limit's rate.
          AND NOT (figure.metric OPERATOR(pg_catalog.=) 'iops'
                   AND COALESCE(line.result OPERATOR(pg_catalog.->>) 'doubt', '') OPERATOR(pg_catalog.~~) '%paced%')
          AND figure.value OPERATOR(pg_catalog.>) '-Infinity'::pg_catalog.float8 AND figure.value OPERATOR(pg_catalog.<) 'Infinity'::pg_catalog.float8
    UNION ALL
    SELECT line.result OPERATOR(pg_catalog.->>) 'op', 'median_us', 'us',
           pg_catalog.percentile_cont(0.5) WITHIN GROUP (ORDER BY (line.result OPERATOR(pg_catalog.->>) 'lat_us')::pg_catalog.float8),
           NULL::pg_catalog.float8, NULL::pg_catalog.float8, false, pg_catalog.min(line.ordinal)
    FROM io_probe_results AS line
    WHERE line.run_id OPERATOR(pg_catalog.=) run.id AND run.probe OPERATOR(pg_catalog.=) 'ping'
          AND (line.result OPERATOR(pg_catalog.->>) 'lat_us')::pg_catalog.float8 OPERATOR(pg_catalog.>=) 0::pg_catalog.float8
          AND (line.result OPERATOR(pg_catalog.->>) 'lat_us')::pg_catalog.float8 OPERATOR(pg_catalog.<) 'Infinity'::pg_catalog.float8
          AND NOT COALESCE((line.result OPERATOR(pg_catalog.->>) 'warmup')::pg_catalog.bool, false)
    GROUP BY 1
    UNION ALL
    -- Of a report, what its table shows; of flushes and windows, only those in use.
    SELECT line.item, line.metric, line.unit, line.value, line.low, line.high, line.more_is_better, line.ordinal
    FROM (
        SELECT pg_catalog.concat(known.section, ' ', CASE known.section WHEN 'readahead' THEN 'kernel' ELSE line.result OPERATOR(pg_catalog.->>) 'item' END,
                   CASE WHEN line.result OPERATOR(pg_catalog.->>) 'finding' OPERATOR(pg_catalog.=) 'from memory' THEN ', from memory' END) AS item,
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
                   AND COALESCE(line.result OPERATOR(pg_catalog.->>) 'finding', '') OPERATOR(pg_catalog.!~~) '%paced%'
                   OR known.section OPERATOR(pg_catalog.=) 'p99' AND line.result OPERATOR(pg_catalog.->>) 'item' OPERATOR(pg_catalog.=) '1'
                   OR line.result OPERATOR(pg_catalog.->>) 'finding' OPERATOR(pg_catalog.~) '^in use(, |$)'
                   AND line.result OPERATOR(pg_catalog.->>) 'finding' OPERATOR(pg_catalog.!~~) '%paced%')
        OFFSET 0
    ) AS line
    WHERE line.value OPERATOR(pg_catalog.>) '-Infinity'::pg_catalog.float8 AND line.value OPERATOR(pg_catalog.<) 'Infinity'::pg_catalog.float8
) AS figure WHERE figure.item IS NOT NULL ORDER BY figure.item, figure.metric, figure.ordinal LIMIT 3000) AS figure
WHERE run.status OPERATOR(pg_catalog.=) 'ok';
COMMENT ON VIEW io_probe_metrics IS 'Figures of stored runs, one per row, that io_probe_compare, io_probe_changes and io_probe_latest use. iops under a rate limit are left out: they are the limit''s';
COMMENT ON COLUMN io_probe_metrics.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_metrics.label IS 'Label that the caller gave the run; NULL without one';
COMMENT ON COLUMN io_probe_metrics.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_metrics.object IS 'What was measured';
COMMENT ON COLUMN io_probe_metrics.item IS 'Row of the probe that the figure is from, such as direct or depth 8; for a report scan direct, depth 8, p99 1, commit fdatasync, readahead kernel. A scan or fetches of which less than 90 % came from the device have an item of their own: server, from memory';
COMMENT ON COLUMN io_probe_metrics.metric IS 'Name of the figure, which is a column of the probe; for ping median_us, the median without the warm-up';
COMMENT ON COLUMN io_probe_metrics.unit IS 'Unit of value';
COMMENT ON COLUMN io_probe_metrics.value IS 'Value of the figure';
COMMENT ON COLUMN io_probe_metrics.error IS 'Half the width of the 95 % confidence interval of value within the run, divided by the middle of the interval; 1 if the interval has no upper end, NULL without an interval';
COMMENT ON COLUMN io_probe_metrics.more_is_better IS 'true: a greater value is better, as for a rate; false: it is worse, as for a latency';
COMMENT ON COLUMN io_probe_metrics.series IS 'Runs with the same series measure the same thing, see io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.configuration IS 'Runs with the same configuration ran under the same circumstances, see io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.ordinal IS 'Number of the row in the run, from 1';
GRANT SELECT ON io_probe_metrics TO pg_monitor;

-- It steps from one series to the next by the index: one step for each series, however many runs there are.
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
COMMENT ON COLUMN io_probe_latest.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_latest.object IS 'What was measured';
COMMENT ON COLUMN io_probe_latest.item IS 'Row of the probe that the figure is from, such as direct or depth 8';
COMMENT ON COLUMN io_probe_latest.metric IS 'Name of the figure, which is a column of the probe; for ping median_us, the median without the warm-up';
COMMENT ON COLUMN io_probe_latest.value IS 'Value of the figure';
COMMENT ON COLUMN io_probe_latest.unit IS 'Unit of value';
COMMENT ON COLUMN io_probe_latest.age IS 'How long ago the run started';
COMMENT ON COLUMN io_probe_latest.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_latest.label IS 'Label that the caller gave the run; NULL without one';
COMMENT ON COLUMN io_probe_latest.datname IS 'Database in which the probe ran';
COMMENT ON COLUMN io_probe_latest.host IS 'Name of the machine on which the probe ran';
GRANT SELECT ON io_probe_latest TO pg_monitor;
