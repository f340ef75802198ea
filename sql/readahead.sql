--
-- io_probe_readahead: void where the page cache can't be emptied (tmpfs), unsupported where no readahead is known;
-- so are all windows but the one in force where a file system refuses O_DIRECT.
--
SET wal_skip_threshold = 0;
CREATE TABLE ahead (id int, filler text) WITH (autovacuum_enabled = off);
ALTER TABLE ahead ALTER filler SET STORAGE PLAIN;
INSERT INTO ahead SELECT i, repeat('x', 7000) FROM generate_series(1, 2000) i;
VACUUM FULL ahead;
CHECKPOINT;
SELECT pg_relation_size('ahead') / current_setting('block_size')::int AS blks;
SELECT current_setting('block_size')::int / 1024 AS block_kb \gset
SELECT coalesce(min(read_ahead_kb)::text, 'NULL') AS set_kb FROM io_probe_device_full()
  WHERE object = 'tablespace' AND spcname = 'pg_default' \gset

-- by default each window from 16 kB to 4 MB, and the setting in force
CREATE TEMP TABLE result AS
  SELECT 'all' AS run, * FROM io_probe_readahead_full('ahead', duration => '1 s') WITH ORDINALITY;
SELECT w FROM unnest('{16,32,64,128,256,512,1024,2048,4096}'::bigint[]) AS w EXCEPT SELECT window_kb FROM result;
SELECT count(*) - count(*) FILTER (WHERE window_kb = ANY ('{16,32,64,128,256,512,1024,2048,4096}')) <= 1 AS no_other,
       array_agg(window_kb ORDER BY ordinality) = array_agg(window_kb ORDER BY window_kb) AS ascending FROM result;
SELECT window_kb IS NOT DISTINCT FROM :set_kb AS in_force FROM result WHERE mode = 'kernel';
-- as asked for, each once, ascending; the setting in force always
SELECT window_kb FROM io_probe_readahead_full('ahead', '{64,1024,64,24}', '10 ms') WHERE window_kb IN (24, 64, 1024);
-- NULL stands for the default
SELECT count(*) FROM io_probe_readahead_full('ahead', NULL, '10 ms', NULL)
  WHERE window_kb = ANY ('{16,32,64,128,256,512,1024,2048,4096}');

-- rows to judge: readahead off, the widest window, threads, a bound on bytes, a rate limit
INSERT INTO result SELECT 'ends', * FROM io_probe_readahead_full('ahead', '{0,16,16384}', '500 ms') WITH ORDINALITY;
SET pg_io_probe.engine = threads;
INSERT INTO result SELECT 'threads', * FROM io_probe_readahead_full('ahead', '{64}', '200 ms') WITH ORDINALITY;
RESET pg_io_probe.engine;
INSERT INTO result SELECT 'bytes', * FROM io_probe_readahead_full('ahead', '{64,128}', '10 s',
                                                             '{"max_bytes": 65536000, "precision": 0.0001}') WITH ORDINALITY;
INSERT INTO result SELECT 'slow', * FROM io_probe_readahead_full('ahead', '{64}', '1 s',
                                                            '{"max_mib_s": 100, "max_iops": null}') WITH ORDINALITY;
CREATE TEMP VIEW judged AS SELECT *, status IN ('void', 'unsupported') AS no_figures FROM result;
-- one row is the kernel's, read through the page cache; engines of the others
SELECT run, count(*) FILTER (WHERE mode = 'kernel') AS kernel, count(*) FILTER (WHERE mode NOT IN ('kernel', 'emulated')) AS other
  FROM judged GROUP BY run ORDER BY run;
SELECT run, window_kb, engine FROM judged WHERE status <> 'unsupported' AND engine IS DISTINCT FROM
  CASE WHEN mode = 'kernel' THEN 'pread' WHEN run = 'threads' THEN 'threads'
  WHEN engine = 'threads' THEN 'threads' ELSE 'io_uring' END;
-- all windows of a call are measured, save those of which turns of 2,000 blocks hold too few
SELECT run, window_kb, block_us, status, notes FROM judged
  WHERE turns > 0 AND NOT no_figures
    AND (block_us IS NULL OR window_kb * 4 > 2000 * :block_kb)
        <> (block_us IS NULL AND notes::text ~ 'too short to measure this window|no figures are given')
     OR no_figures AND num_nonnulls(block_us, mib_s, ci_low, ci_high, best) > 0
     OR no_figures AND notes = '{}';
-- the rate is the block size over the time; intervals hold it, and come with six turns
SELECT run, window_kb FROM judged WHERE abs(mib_s * 1048576 * block_us / 1e6 / (:block_kb * 1024) - 1) > 0.001
  OR NOT block_us BETWEEN ci_low AND ci_high OR num_nulls(block_us, mib_s) = 1
  OR block_us IS NOT NULL AND (ci_low IS NULL OR ci_high IS NULL) <> (turns < 3);
-- what the page cache costs is one figure for all emulated rows, and in none of the kernel's
SELECT run, count(DISTINCT cache_us) FROM judged GROUP BY run HAVING count(DISTINCT cache_us) > 1;
SELECT run, window_kb FROM judged WHERE (mode = 'kernel' AND cache_us IS NOT NULL)
  OR mode = 'emulated' AND (cache_us IS NULL) <> (block_us IS NULL) OR cache_us > block_us;
-- the best is one of the windows that have an interval: the first that is as good as the fastest, which all within 5 % are, and
-- none beyond 10 % (but for rounding)
CREATE TEMP VIEW compared AS SELECT *, min(block_us) OVER (PARTITION BY run) AS least FROM judged WHERE ci_low IS NOT NULL;
SELECT run, count(*) FILTER (WHERE best) AS best FROM compared GROUP BY run
  HAVING count(*) FILTER (WHERE best) <> CASE WHEN bool_or(no_figures) OR count(*) < 2 THEN 0 ELSE 1 END
      OR max(block_us) FILTER (WHERE best) > 1.101 * min(block_us);
SELECT run, window_kb FROM judged WHERE ci_low IS NULL AND best IS NOT NULL;
SELECT run, window_kb FROM compared AS r
  WHERE block_us < 1.049 * least AND window_kb < (SELECT window_kb FROM compared WHERE run = r.run AND best);
SELECT run FROM judged WHERE best AND notes::text NOT LIKE '%sessions keep the window with which they opened a file%';
-- how to set each window; on the disk, if there is a partition
SELECT run, window_kb, blockdev_setra, udev_rule FROM judged WHERE blockdev_setra IS NOT NULL AND
     (split_part(blockdev_setra, ' ', 3)::bigint <> window_kb * 2 OR blockdev_setra !~ '^blockdev --setra \d+ /dev/[^ /]+$'
      OR udev_rule !~ format('^ACTION=="add\|change", SUBSYSTEM=="block", KERNEL=="[^"]+", ATTR\{queue/read_ahead_kb\}="%s"$', window_kb)
      OR split_part(udev_rule, '"', 6) <> split_part(blockdev_setra, '/', 3))
  OR num_nulls(blockdev_setra, udev_rule) = 1;
-- all that was asked for was fetched from the device, and by the kernel no less
SELECT run, window_kb, device_pct FROM judged WHERE NOT no_figures AND device_pct < 99
  OR device_bytes < blks * :block_kb * 1024 AND NOT no_figures;
SELECT run, window_kb FROM judged WHERE blks < turns OR turns > 0 AND (elapsed_ms <= 0 OR blks = 0);
-- max_bytes is of one window, of which the kernel has two turns a round, of all 2,000 blocks; the first round is warm-up;
-- and the limit paused it
SELECT run, window_kb, turns FROM judged WHERE run = 'bytes' AND NOT no_figures
  AND turns + coalesce((regexp_match(notes::text, 'other work disturbed them: (\d+)'))[1]::int, 0) <> 1;
SELECT count(*) FROM judged WHERE run = 'bytes' AND NOT no_figures AND notes::text NOT LIKE '%stopped at max_bytes%';
SELECT run, count(*) FILTER (WHERE notes::text LIKE '%rate-limited%') = count(*) FILTER (WHERE status <> 'unsupported') AS limited
  FROM judged WHERE run IN ('all', 'slow') GROUP BY run ORDER BY run;
-- identity, and the device that io_probe_device tells
SELECT DISTINCT relid, schemaname, relname, spcname FROM result;
SELECT count(DISTINCT started_at) = count(DISTINCT run) AS moments FROM result;
SELECT run FROM result WHERE (device, read_ahead_kb) IS DISTINCT FROM
  (SELECT (string_agg(d.device, ','), min(d.read_ahead_kb)) FROM io_probe_device_full() d
   WHERE d.object = 'tablespace' AND d.spcname = result.spcname);

-- what has no interval has a doubt that says why
SELECT run, window_kb, turns FROM judged WHERE ci_low IS NULL AND doubt IS NULL;
-- two requests in flight are under no smaller cap
SET pg_io_probe.max_depth = 1;
SELECT DISTINCT status, doubt, notes FROM io_probe_readahead_full('ahead', '{64}', '10 ms');
RESET pg_io_probe.max_depth;

-- a window below what a scan reads at a time does nothing for it; io_max_combine_limit (from 18 on) caps that
BEGIN;
SELECT count(set_config('io_combine_limit', '256kB', true)) AS combines FROM pg_settings WHERE name = 'io_combine_limit' \gset
SELECT bool_and(substring(notes::text FROM 'reads (\d+) kB at a time') IS NOT DISTINCT FROM CASE :combines WHEN 1 THEN
                  CASE WHEN current_setting('io_max_combine_limit', true) IS NULL THEN '256' ELSE '128' END END) IS NOT FALSE AS capped
  FROM io_probe_readahead_full('ahead', '{64}', '10 ms') WHERE window_kb = 64 AND status <> 'unsupported';
COMMIT;

-- relations with nothing to measure are no error
CREATE TABLE kind_empty (t text);
SELECT mode, status = 'ok' OR :set_kb IS NULL AS status, doubt = 'short' OR :set_kb IS NULL AS doubt, turns, blks, num_nonnulls(block_us, mib_s, best) AS figures
  FROM io_probe_readahead_full('kind_empty', '{24}', '10 ms') WHERE window_kb = 24;
-- an index, a TOAST table, a table of the session's own
CREATE INDEX ahead_id ON ahead (id);
CREATE TEMP TABLE own AS SELECT * FROM ahead LIMIT 100;
SELECT DISTINCT relname FROM io_probe_readahead_full('ahead_id', '{16}', '10 ms');
SELECT DISTINCT relname FROM io_probe_readahead_full('own', '{16}', '10 ms');
-- what a statement may take is shared by all of its calls, of which none ends before
SET pg_io_probe.max_duration = '200ms';
SELECT DISTINCT status, notes[cardinality(notes)]
  FROM (SELECT g, r.* FROM generate_series(1, 3) AS g,
          LATERAL io_probe_readahead_full('ahead', '{64}', g * 0 + 150 || ' ms', '{"precision": 1e-6}') AS r OFFSET 0) AS calls
  WHERE g = 3 AND :set_kb IS NOT NULL;
RESET pg_io_probe.max_duration;
-- who may not evict may not run it
CREATE ROLE regress_io_probe_reader;
GRANT SELECT ON ahead TO regress_io_probe_reader;
GRANT EXECUTE ON FUNCTION io_probe_readahead, io_probe_readahead_full TO regress_io_probe_reader;
SET ROLE regress_io_probe_reader;
SELECT window_kb FROM io_probe_readahead_full('ahead', '{64}', '10 ms');
RESET ROLE;
DROP OWNED BY regress_io_probe_reader;
DROP ROLE regress_io_probe_reader;
-- arguments
\set VERBOSITY terse
SELECT window_kb FROM io_probe_readahead_full('ahead', '{}'); \echo :SQLSTATE
SELECT window_kb FROM io_probe_readahead_full('ahead', '{64,NULL}'); \echo :SQLSTATE
SELECT window_kb FROM io_probe_readahead_full('ahead', '{64,-8}'); \echo :SQLSTATE
SELECT window_kb FROM io_probe_readahead_full('ahead', '{4}'); \echo :SQLSTATE
SELECT window_kb FROM io_probe_readahead_full('ahead', '{16392}'); \echo :SQLSTATE
SELECT window_kb FROM io_probe_readahead_full('ahead', ARRAY(SELECT g * 8 FROM generate_series(1, 33) AS g)); \echo :SQLSTATE
SELECT window_kb FROM io_probe_readahead_full('ahead', duration => '0'); \echo :SQLSTATE
SELECT window_kb FROM io_probe_readahead_full('ahead', duration => '61 s'); \echo :SQLSTATE
SELECT window_kb FROM io_probe_readahead_full('ahead', options => '{"start_blk": 1}'); \echo :SQLSTATE
SELECT window_kb FROM io_probe_readahead_full('ahead', options => '{"precision": 2}'); \echo :SQLSTATE
SELECT window_kb FROM io_probe_readahead_full(NULL); \echo :SQLSTATE
CREATE VIEW seen AS SELECT 1 AS one;
SELECT window_kb FROM io_probe_readahead_full('seen'); \echo :SQLSTATE
DROP VIEW seen, compared, judged;
DROP TABLE ahead, kind_empty, own;
