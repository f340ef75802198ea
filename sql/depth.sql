--
-- io_probe_depth: void where O_DIRECT reads memory (tmpfs), unsupported where a file system refuses it.
--
SET wal_skip_threshold = 0;
CREATE TABLE swept (id int, filler text) WITH (autovacuum_enabled = off);
ALTER TABLE swept ALTER filler SET STORAGE PLAIN;
INSERT INTO swept SELECT i, repeat('x', 7000) FROM generate_series(1, 400) i;
VACUUM FULL swept;
CHECKPOINT;
-- by default a row for each power of two up to 64
SELECT depth FROM io_probe_depth_full('swept', duration => '140 ms');
-- as asked for, each once, ascending
SELECT depth FROM io_probe_depth_full('swept', '{9,1,3,1}', '60 ms');
-- NULL stands for the default, and that does not exceed the cap
SET pg_io_probe.max_depth = 5;
SET pg_io_probe.row_duration = '20ms';
SELECT depth FROM io_probe_depth_full('swept', NULL, NULL, NULL, NULL);
RESET pg_io_probe.max_depth;
RESET pg_io_probe.row_duration;

-- rows to judge
CREATE TEMP TABLE result AS SELECT 'all' AS run, * FROM io_probe_depth_full('swept', duration => '280 ms');
SET pg_io_probe.engine = threads;
INSERT INTO result SELECT 'threads', * FROM io_probe_depth_full('swept', '{1,2,128}', '120 ms', -7);
RESET pg_io_probe.engine;
INSERT INTO result SELECT 'single', * FROM io_probe_depth_full('swept', '{1}', '40 ms', 7);
-- one verdict for the whole call
SELECT run, count(*) AS depths, bool_and(status = 'ok') OR bool_and(status = 'void') OR bool_and(status = 'unsupported')
       AS status FROM result GROUP BY run ORDER BY run;
SELECT run, depth FROM result
  WHERE CASE WHEN status = 'unsupported' THEN blks > 0 OR notes = '{}' ELSE blks = 0 END;
-- the engine of each depth
SELECT run, depth, engine FROM result WHERE status <> 'unsupported' AND engine IS DISTINCT FROM
  CASE WHEN depth = 1 THEN 'pread' WHEN run = 'threads' THEN 'threads' WHEN engine = 'threads' THEN 'threads'
  ELSE 'io_uring' END;
-- the knee is one depth, the smallest that is not surely slower than the best by more than 5 %, nor seemingly by more than 10 % (but for rounding)
SELECT run FROM result GROUP BY run
  HAVING count(*) FILTER (WHERE best) <> CASE WHEN count(ci_low) > 1 OR count(ci_low) = count(*) THEN 1 ELSE 0 END
     OR bool_or(best IS NOT NULL AND ci_low IS NULL)
     OR max(iops * iops / ci_low) FILTER (WHERE best)
        < 0.949 * (array_agg(ci_low ORDER BY iops DESC) FILTER (WHERE ci_low IS NOT NULL))[1]
     OR max(iops) FILTER (WHERE best) < 0.908 * max(iops) FILTER (WHERE ci_low IS NOT NULL);
SELECT run, depth FROM result AS r WHERE iops > 0.951 * (SELECT max(iops) FROM result WHERE run = r.run AND ci_low IS NOT NULL)
  AND ci_low IS NOT NULL AND depth < (SELECT min(depth) FROM result WHERE run = r.run AND best);
-- rate times size is the bandwidth; no more is in flight than the depth; the interval holds the value
SELECT run, depth FROM result
  WHERE abs(mib_s * 1048576 / current_setting('block_size')::int / iops - 1) > 0.001
     OR iops * p50_us / 1e6 > depth * 2 AND depth <= 8 OR NOT iops BETWEEN ci_low AND ci_high
     OR num_nulls(iops, mib_s) = 1 OR elapsed_ms <= 0;
-- latencies are in order; void rows have neither rate nor latency
SELECT run, depth FROM result WHERE NOT (p50_us <= p95_us AND p95_us <= p99_us) OR lat_us <= 0
  OR status IN ('void', 'unsupported')
     AND num_nonnulls(iops, mib_s, lat_us, p50_us, p95_us, p99_us, ci_low, ci_high) > 0
  OR status = 'ok' AND depth = 1 AND num_nulls(iops, lat_us) > 0;
SELECT run, depth FROM result WHERE p99_us IS NOT NULL AND blks - hole_blks < 1000
  OR p95_us IS NOT NULL AND blks - hole_blks < 200 OR p50_us IS NOT NULL AND blks - hole_blks < 20;
-- what has no interval has a doubt that says why
SELECT run, depth FROM result WHERE ci_low IS NULL AND doubt IS NULL;
-- all came from the device, or the figures are void
SELECT run, depth FROM result WHERE (status = 'ok') <> (device_pct >= 99.9) OR hole_blks > 0;
-- when all is fetched, it begins again, and says so
SELECT run FROM result WHERE status <> 'unsupported' GROUP BY run
  HAVING (sum(blks) > 400) <> bool_and(notes::text LIKE '%blocks were read up to % times%');
-- the seed is reported; without one there is one all the same
SELECT run, count(DISTINCT seed) AS seeds, CASE run WHEN 'all' THEN min(seed) >= 0 WHEN 'single' THEN min(seed) = 7
       ELSE min(seed) = -7 END AS seed FROM result GROUP BY run ORDER BY run;
-- identity, and the device that io_probe_device tells
SELECT DISTINCT relid, schemaname, relname, spcname FROM result;
SELECT run FROM result WHERE (device, read_ahead_kb) IS DISTINCT FROM
  (SELECT (string_agg(d.device, ','), min(d.read_ahead_kb)) FROM io_probe_device_full() d
   WHERE d.object = 'tablespace' AND d.spcname = result.spcname);

-- the histogram holds each latency: as many as lie beyond p99 are in its ranges up to there
SELECT run, depth FROM result, LATERAL
  (SELECT sum(count) AS all, sum(count) FILTER (WHERE low_us <= p99_us * 1.02) AS up_to, bool_and(low_us < high_us) AS ordered
   FROM jsonb_to_recordset(histogram) AS r(low_us float8, high_us float8, count bigint)) AS counted
  WHERE ordered IS FALSE OR counted.all > blks OR up_to < 0.99 * counted.all OR (coalesce(histogram, '[]') = '[]') <> (lat_us IS NULL);
-- within a p99 the most: of all depths, of none, and without a bound
SELECT bound, count(*) FILTER (WHERE best_within) <= 1 AS one, bool_and(best_within IS NULL OR bound IS NOT NULL) AS bounded,
       coalesce(bool_or(best_within), false) = (count(*) FILTER (WHERE iops IS NOT NULL AND p99_us <= us) > 0) AS found,
       max(iops) FILTER (WHERE best_within) IS NOT DISTINCT FROM max(iops) FILTER (WHERE p99_us <= us) AS most
  FROM (VALUES ('1 h', 3.6e9), ('1 us', 1), (NULL, 0)) AS b(bound, us),
       io_probe_depth_full('swept', '{1,4}', '600 ms', p99 => bound) AS d
  GROUP BY bound ORDER BY bound;
-- max_bytes is of one depth, and split evenly over the twenty rounds
SELECT depth, status = 'unsupported' OR blks = 80 AS blks
  FROM io_probe_depth_full('swept', '{1,2,3}', options => '{"max_bytes": 655360}');
-- the depths share the duration; under a rate limit there is no interval
SELECT depth, status = 'unsupported' OR blks BETWEEN 1 AND 0.3 * 50 + depth + 1 AS half,
       status IN ('void', 'unsupported') OR notes::text LIKE '%rate-limited%' AS limited,
       num_nonnulls(ci_low, ci_high) AS interval
  FROM io_probe_depth_full('swept', '{1,2}', '600 ms', options => '{"max_iops": 50}');
SELECT depth FROM io_probe_depth_full('swept', '{2}', '20 ms', options => '{"wait": true, "max_mib_s": null}');

-- relations with nothing to measure are no error
CREATE TABLE kind_empty (t text);
SELECT depth, doubt, status, blks, iops, lat_us, best FROM io_probe_depth_full('kind_empty', '{1,4}');
CREATE TABLE kind_single AS SELECT 1 AS one;
CHECKPOINT;
SELECT depth, iops, lat_us, best, status IN ('void', 'unsupported') OR blks = 20
         AND notes::text LIKE '%too few blocks for a rate%' AS why
  FROM io_probe_depth_full('kind_single', '{1,4}');
-- an index, a TOAST table, a temporary table
CREATE INDEX swept_id ON swept (id);
CREATE TABLE kind_toast (t text);
CREATE TEMP TABLE kind_temp AS SELECT * FROM swept;
SELECT c.relkind, d.depth FROM pg_class c, io_probe_depth_full(c.oid, '{2}', '10 ms') d
  WHERE c.relname IN ('swept_id', 'kind_temp')
     OR c.oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'kind_toast') ORDER BY c.relkind;

-- all calls of a statement share pg_io_probe.max_duration
SET pg_io_probe.max_duration = '100ms';
WITH called AS MATERIALIZED
  (SELECT * FROM generate_series(1, 2) i, io_probe_depth_full('swept', '{1,2}', '80 ms', i, options => '{"max_iops": 1000}'))
SELECT depth, status = 'unsupported' OR
         'stopped: this statement has used up pg_io_probe.max_duration' = ANY (notes) AND status <> 'ok' AS stopped
  FROM called WHERE i = 2;
-- a call that comes too late fetches nothing
WITH called AS MATERIALIZED
  (SELECT * FROM io_probe_random_full('swept', '{os}', '100 ms', options => '{"max_iops": 50}'))
SELECT d.depth, d.status, d.blks, d.notes::text LIKE '%stopped: this statement has used up%' AS why
  FROM called, io_probe_depth_full('swept', ARRAY[called.depth, 2]) d;
RESET pg_io_probe.max_duration;

SET client_min_messages = warning;
DROP TABLE swept, result, kind_empty, kind_single, kind_toast, kind_temp;
