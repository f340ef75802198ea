-- Comparing stored runs: their figures, the latest ones, and what has changed.

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
        ('page_cost', 'block_us', 'us',    false, 'ci_low',   'ci_high',   NULL,         NULL),
        ('write',     'writes_s', '1/s',   true,  'ci_low',   'ci_high',   'p99_us', NULL),
        ('mix',       'reads_s',  '1/s',   true,  NULL,       NULL,        NULL,         NULL),
        ('mix',       'writes_s', '1/s',   true,  NULL,       NULL,        NULL,         NULL),
        ('sustain',   'iops',     '1/s',   true,  NULL,       NULL,        'p99_us', NULL)
    ) AS known (probe, metric, unit, more_is_better, low, high, latency, other_latency), LATERAL (
        SELECT line.ordinal, line.result,
               CASE known.probe
                   WHEN 'depth' THEN pg_catalog.concat('depth ', line.result OPERATOR(pg_catalog.->>) 'depth')
                   -- The kernel's window is a setting: each run says what it was.
                   WHEN 'readahead' THEN CASE line.result OPERATOR(pg_catalog.->>) 'mode' WHEN 'kernel' THEN 'kernel'
                       ELSE pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'mode', ' ', line.result OPERATOR(pg_catalog.->>) 'window_kb', ' kB') END
                   -- In wal_segment a method is direct if the server's is. In other sections direct has a row of its own.
                   WHEN 'sync' THEN pg_catalog.concat(NULLIF(line.result OPERATOR(pg_catalog.->>) 'section', 'wal_segment') OPERATOR(pg_catalog.||) ' ',
                       line.result OPERATOR(pg_catalog.->>) 'method',
                       CASE WHEN (line.result OPERATOR(pg_catalog.->>) 'direct')::pg_catalog.bool AND line.result OPERATOR(pg_catalog.->>) 'section' OPERATOR(pg_catalog.<>) 'wal_segment'
                            THEN ' direct' END,
                       ' ' OPERATOR(pg_catalog.||) NULLIF(line.result OPERATOR(pg_catalog.->>) 'writes', '1') OPERATOR(pg_catalog.||) ' x',
                       ' ', line.result OPERATOR(pg_catalog.->>) 'write_kb', ' kB')
                   WHEN 'page_cost' THEN pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'tier', ' ', line.result OPERATOR(pg_catalog.->>) 'pattern',
                       ' density ' OPERATOR(pg_catalog.||) (line.result OPERATOR(pg_catalog.->>) 'density'),
                       ' depth ' OPERATOR(pg_catalog.||) (line.result OPERATOR(pg_catalog.->>) 'depth'))
                   WHEN 'write' THEN pg_catalog.concat(line.result OPERATOR(pg_catalog.->>) 'pattern',
                       ' depth ', line.result OPERATOR(pg_catalog.->>) 'depth',
                       ' flush ' OPERATOR(pg_catalog.||) (line.result OPERATOR(pg_catalog.->>) 'flush_kb') OPERATOR(pg_catalog.||) ' kB')
                   -- All other loads are shares of these two.
                   WHEN 'mix' THEN CASE WHEN line.result OPERATOR(pg_catalog.->>) 'load' OPERATOR(pg_catalog.~~) '%alone'
                       THEN line.result OPERATOR(pg_catalog.->>) 'load' END
                   WHEN 'sustain' THEN CASE WHEN line.result OPERATOR(pg_catalog.->>) 'slice' IS NULL
                       THEN line.result OPERATOR(pg_catalog.->>) 'pattern' END
                   ELSE (line.result OPERATOR(pg_catalog.->>) 'path') OPERATOR(pg_catalog.||)
                       CASE WHEN (line.result OPERATOR(pg_catalog.->>) 'device_pct')::pg_catalog.float8 OPERATOR(pg_catalog.<) 90::pg_catalog.float8
                            THEN ', cached' ELSE '' END
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
          AND NOT (figure.metric OPERATOR(pg_catalog.=) ANY ('{iops,reads_s,writes_s}')
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
                   CASE WHEN line.result OPERATOR(pg_catalog.->>) 'mark' OPERATOR(pg_catalog.=) 'from memory' THEN ', cached' END) AS item,
               known.metric, known.unit, known.more_is_better, line.ordinal,
               (line.result OPERATOR(pg_catalog.->>) 'value')::pg_catalog.float8 AS value,
               (line.result OPERATOR(pg_catalog.->>) 'low')::pg_catalog.float8 AS low,
               (line.result OPERATOR(pg_catalog.->>) 'high')::pg_catalog.float8 AS high
        FROM (VALUES ('scan', 'mib_s', 'MiB/s', true), ('depth', 'iops', '1/s', true), ('p99', 'p99_us', 'us', false),
                     ('write', 'writes_s', '1/s', true), ('long_write', 'mib_s', 'MiB/s', true),
                     ('commit', 'op_us', 'us', false), ('commit_p99', 'p99_us', 'us', false), ('readahead', 'mib_s', 'MiB/s', true)
        ) AS known (section, metric, unit, more_is_better), io_probe_results AS line
        WHERE run.probe OPERATOR(pg_catalog.=) 'report' AND line.run_id OPERATOR(pg_catalog.=) run.id
              AND line.result OPERATOR(pg_catalog.->>) 'section' OPERATOR(pg_catalog.=) known.section
              AND (known.section OPERATOR(pg_catalog.=) ANY ('{scan,depth,write,long_write}')
                   OR known.section OPERATOR(pg_catalog.=) 'p99' AND line.result OPERATOR(pg_catalog.->>) 'item' OPERATOR(pg_catalog.=) '1'
                   OR line.result OPERATOR(pg_catalog.->>) 'mark' OPERATOR(pg_catalog.=) 'in use')
              AND (known.section OPERATOR(pg_catalog.=) 'p99' OR COALESCE(line.result OPERATOR(pg_catalog.->>) 'doubt', '') OPERATOR(pg_catalog.!~~) '%paced%')
        OFFSET 0
    ) AS line
    WHERE line.value OPERATOR(pg_catalog.>) '-Infinity'::pg_catalog.float8 AND line.value OPERATOR(pg_catalog.<) 'Infinity'::pg_catalog.float8
) AS figure WHERE figure.item IS NOT NULL ORDER BY figure.item, figure.metric, figure.ordinal LIMIT 3000) AS figure
WHERE run.status OPERATOR(pg_catalog.=) 'ok';
COMMENT ON VIEW io_probe_metrics IS 'Figures of stored runs, one per row, for io_probe_compare, io_probe_changes and io_probe_latest. It has no rates of requests under a rate limit, since they only show the limit';
COMMENT ON COLUMN io_probe_metrics.run_id IS 'Number of the run in io_probe_runs';
COMMENT ON COLUMN io_probe_metrics.started_at IS 'When the probe was called';
COMMENT ON COLUMN io_probe_metrics.label IS 'Label that the caller gave the run; NULL without one';
COMMENT ON COLUMN io_probe_metrics.probe IS 'Name of the probe: seqscan is io_probe_seqscan, and so on';
COMMENT ON COLUMN io_probe_metrics.object IS 'What was measured';
COMMENT ON COLUMN io_probe_metrics.item IS 'Row of the probe that the figure is from, such as direct or depth 8. sync: fdatasync 8 kB (section wal_segment), one_write fdatasync 8 kB. write: random depth 16. mix: reads alone, writes alone. sustain: random, sequential. report: scan direct, depth 8, p99 1, commit fdatasync, commit_p99 fdatasync, write 16, long_write 16, readahead kernel. If less than 90 % of the blocks came from the device, ", cached" follows';
COMMENT ON COLUMN io_probe_metrics.metric IS 'Name of the figure, which is a column of the probe; for ping median_us, the median without the warm-up';
COMMENT ON COLUMN io_probe_metrics.unit IS 'Unit of value';
COMMENT ON COLUMN io_probe_metrics.value IS 'Value of the figure';
COMMENT ON COLUMN io_probe_metrics.error IS 'Half the width of the 95 % confidence interval of value within the run, as a share of the middle of the interval: 0.05 is +- 5 %. 1 if the interval has no upper end; NULL without an interval';
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
COMMENT ON VIEW io_probe_latest IS 'The latest figures of each series. A series is one probe, object and set of arguments in one database and cluster';
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
