--
-- io_probe_sync. O_DIRECT is not possible on every file system, nor in pieces of every size: those rows may be
-- unsupported, or void where it is accepted and memory takes the writes. All others have to work, except on file
-- systems that do not log a file without a name: there all is unsupported (sync_1.out).
--
-- for file systems that are small
SET pg_io_probe.scratch_reserve = 0;
SELECT DISTINCT coalesce(fs_type, '') IN ('btrfs', 'zfs', 'f2fs') AS unlogged FROM io_probe_device_full()
  WHERE object = 'wal' \gset
\if :unlogged
SELECT count(*), bool_and(status = 'unsupported' AND ops = 0 AND notes <> '{}') AS unsupported
  FROM io_probe_sync_full(sections => '{all}', duration => '40 ms');
\quit
\endif
SELECT current_setting('wal_block_size')::int / 1024 AS wal_kb \gset
-- does the server open its WAL with O_DIRECT under that method? up to 15 if nobody reads it back, then if it is told to
CREATE FUNCTION server_direct(method text) RETURNS boolean LANGUAGE sql AS $$
  SELECT NOT pg_is_in_recovery() AND CASE
    WHEN current_setting('server_version_num')::int < 160000
      THEN method LIKE 'open%' AND current_setting('wal_level') = 'minimal'
    ELSE current_setting('debug_io_direct', true) ~ '\mwal\M' END
$$;

-- a row for each way to make writes durable, in this order (sizes in WAL blocks, those of open_sync_size in kB)
CREATE TABLE result AS SELECT 'all' AS run, * FROM io_probe_sync_full(sections => '{all}', duration => '200 ms') WITH ORDINALITY;
SELECT section, method, CASE WHEN section <> 'wal_segment' THEN direct END AS direct, writes,
       write_kb / CASE WHEN section = 'open_sync_size' THEN 1 ELSE :wal_kb::float8 END AS size,
       status = 'ok' OR direct AND status IN ('unsupported', 'void') AS status
  FROM result ORDER BY ordinality;
-- wal_segment is written as the server would write it
SELECT method, write_kb, direct FROM result WHERE section = 'wal_segment' AND direct <> server_direct(method);
-- sections are picked; their order is not, and each comes once
SELECT section, count(*) FROM io_probe_sync_full(sections => '{no_sync,other_fd,one_write,no_sync}', duration => '1 ms')
  WITH ORDINALITY GROUP BY section ORDER BY min(ordinality);
-- NULL stands for the default: what a commit does, by each method
SELECT count(*), count(DISTINCT method) AS methods, min(section) AS section, max(write_kb) = :wal_kb AS one_block, max(depth) AS depth
  FROM io_probe_sync_full(NULL, duration => '40 ms', write_kb => NULL, sections => NULL, depth => NULL, options => NULL);
SELECT (io_probe_sync_full(duration => '1 ms', sections => '{no_sync}', options => 'null')).section;

-- more rows to judge: long ones, other sizes and flags, committers that share a WAL, a tablespace, a slow rate
INSERT INTO result SELECT 'long', * FROM io_probe_sync_full(duration => '1 s', sections => '{no_sync}')
  WITH ORDINALITY;
INSERT INTO result SELECT 'some', * FROM io_probe_sync_full(duration => '2 s', write_kb => 1, sections => '{other_fd}',
                                                       options => '{"max_bytes": 307200}') WITH ORDINALITY;
INSERT INTO result SELECT 'odd', * FROM io_probe_sync_full(sections => '{all}', duration => '200 ms', write_kb => 3) WITH ORDINALITY;
INSERT INTO result SELECT 'direct', * FROM io_probe_sync_full(duration => '80 ms', sections => '{wal_segment}',
                                                         options => '{"direct": true}') WITH ORDINALITY;
INSERT INTO result SELECT 'cached', * FROM io_probe_sync_full(duration => '80 ms', sections => '{wal_segment}',
                                                         options => '{"direct": false}') WITH ORDINALITY;
INSERT INTO result SELECT 'shared', * FROM io_probe_sync_full(sections => '{all}', duration => '480 ms', depth => 4) WITH ORDINALITY;
INSERT INTO result SELECT 'shared direct', * FROM io_probe_sync_full(duration => '80 ms', depth => 3,
                                                                options => '{"direct": true}') WITH ORDINALITY;
INSERT INTO result SELECT 'small', * FROM io_probe_sync_full(duration => '320 ms', depth => 4,
                                                        options => '{"commit_bytes": 100}') WITH ORDINALITY;
INSERT INTO result SELECT 'tablespace', * FROM io_probe_sync_full('pg_default', sections => '{all}', duration => '200 ms') WITH ORDINALITY;
INSERT INTO result SELECT 'slow', * FROM io_probe_sync_full(duration => '240 ms', sections => '{other_fd}',
                                                       options => '{"max_iops": 20}') WITH ORDINALITY;
CREATE VIEW judged AS
  SELECT *, status IN ('void', 'unsupported') AS no_figures, notes::text LIKE '%rate-limited%' AS limited FROM result;
SELECT run, section, method, status FROM judged
  WHERE status NOT IN ('ok', 'void', 'unsupported') OR status <> 'ok' AND NOT direct;
-- what is unsupported has no figures, and a note says why
SELECT run, section, method, status FROM judged WHERE no_figures
  AND (num_nonnulls(ops_s, op_us, p50_us, p95_us, p99_us, max_us, ci_low, ci_high) > 0
       OR notes = '{}' OR status = 'unsupported' AND (ops > 0 OR flushes > 0));
-- what is ok has figures; a rate is one over the time
SELECT run, section, method, write_kb, ops, op_us, ops_s, max_us FROM judged WHERE status = 'ok'
  AND (num_nulls(ops, flushes, elapsed_ms, op_us) > 0 OR least(ops, elapsed_ms, op_us) <= 0
       OR CASE WHEN limited THEN ops_s IS NOT NULL
          ELSE (abs(op_us * ops_s / 1e6 - 1) < 0.001) IS NOT TRUE END
       OR depth = 1 AND (op_us <= max_us * 1.001) IS NOT TRUE);
SELECT run, section, method, ops, elapsed_ms, op_us FROM judged
  WHERE status = 'ok' AND abs(elapsed_ms * 1000 / ops / op_us - 1) > 0.001;
-- what has no interval has a doubt that says why
SELECT run, section, method, ops FROM judged WHERE ci_low IS NULL AND doubt IS NULL;
-- the interval holds the value; it takes three turns of 0.1 s
SELECT run, section, method, ci_low, op_us, ci_high FROM judged
  WHERE num_nulls(ci_low, ci_high) = 1 OR NOT op_us BETWEEN ci_low AND ci_high;
SELECT run, min(num_nulls(ci_low, ci_high)), max(num_nulls(ci_low, ci_high)) FROM judged
  WHERE run IN ('all', 'long', 'shared') GROUP BY run ORDER BY run;
-- quantiles are in order; each is there if ten operations lie above it
SELECT run, section, method, p50_us, p95_us, p99_us, max_us FROM judged
  WHERE p50_us > least(p95_us, max_us) OR p95_us > least(p99_us, max_us)
     OR p99_us > max_us;
SELECT run, section, method, ops, p50_us, p95_us, p99_us FROM judged WHERE status = 'ok' AND depth = 1
  AND (ops < 20, ops < 200, ops < 1000) <> (p50_us IS NULL, p95_us IS NULL, p99_us IS NULL);
-- alone each operation takes its own flush, or one for each write; committers that share a WAL may share it
SELECT run, section, method, depth, ops, flushes FROM judged WHERE status = 'ok'
  AND CASE WHEN section = 'no_sync' THEN flushes <> 0
      WHEN depth = 1 THEN flushes <> ops * CASE WHEN method LIKE 'open%' THEN writes ELSE 1 END
      ELSE flushes NOT BETWEEN 1 AND ops END;
SELECT run, section, method, device_writes_per_op, device_flushes_per_op FROM judged
  WHERE least(device_writes_per_op, device_flushes_per_op) < 0 OR no_figures AND device_writes_per_op > 0
     OR num_nulls(device_writes_per_op, device_flushes_per_op) = 0 AND device IS NULL;
-- what the server does now is marked, in each of the sections where it could stand, and is nothing without fsync
SELECT run, section, method, direct, in_use FROM judged
  WHERE in_use IS DISTINCT FROM
    CASE WHEN section IN ('open_sync_size', 'other_fd', 'no_sync') THEN NULL
         ELSE current_setting('fsync')::boolean AND method = current_setting('wal_sync_method')
              AND direct = server_direct(method) END;
SELECT section, count(*) FILTER (WHERE in_use) = CASE WHEN NOT current_setting('fsync')::boolean THEN 0
       WHEN section = 'wal_segment' THEN 4
       WHEN current_setting('wal_sync_method') LIKE 'open%' OR NOT server_direct('fsync') THEN 1 ELSE 0 END AS in_use
  FROM judged WHERE run = 'all' AND (section LIKE '%\_write%' OR section = 'wal_segment') GROUP BY 1 ORDER BY 1;
-- a note is a sentence of its own, as all of this extension's are
SELECT DISTINCT note FROM judged, unnest(notes) AS note
  WHERE note !~ '^[[:alnum:]].*[^[:space:].]$' OR length(note) > 160;
SELECT run, section, method, notes FROM judged
  WHERE (notes::text LIKE '%fsync is off%') <> (in_use IS NOT NULL AND NOT current_setting('fsync')::boolean);

-- write_kb is the size of one_write, two_writes, …; open_sync_size has its own
SELECT section, min(write_kb), max(write_kb) FROM judged WHERE run = 'odd' GROUP BY section ORDER BY min(ordinality);
SELECT write_kb, status FROM unnest('{1,1024}'::int[]) AS kb,
  io_probe_sync_full(duration => '1 ms', write_kb => kb, sections => '{no_sync}');
-- options direct: all rows of wal_segment with O_DIRECT, or none
SELECT run, count(*), bool_and(direct) AS direct FROM judged WHERE run IN ('direct', 'shared direct', 'cached')
  GROUP BY run ORDER BY run;
-- at a depth there is only wal_segment; commits that share blocks have one size
SELECT run, section, method, depth, write_kb / :wal_kb::float8 AS blocks FROM judged
  WHERE run IN ('shared', 'small') ORDER BY run, ordinality;
-- identity, and the device that io_probe_device tells
SELECT DISTINCT started_at BETWEEN statement_timestamp() AND clock_timestamp() AS started
  FROM io_probe_sync_full(duration => '1 ms', sections => '{no_sync,other_fd}');
SELECT DISTINCT run FROM judged WHERE (device, fs_type, directory) IS DISTINCT FROM
  (SELECT (string_agg(d.device, ','), min(d.fs_type), min(d.directory)) FROM io_probe_device_full() d
   WHERE CASE WHEN run = 'tablespace' THEN (object, spcname) = ('tablespace', 'pg_default') ELSE object = 'wal' END);
SELECT DISTINCT run, judged.device FROM judged JOIN io_probe_device_full() d
    ON d.device = judged.device AND CASE WHEN run = 'tablespace' THEN spcname = 'pg_default' ELSE object = 'wal' END
  WHERE (judged.scheduler, judged.write_cache, judged.fua) IS DISTINCT FROM (d.scheduler, d.write_cache, d.fua);
SELECT DISTINCT substring(directory, '[^/]*$') AS directory FROM judged WHERE run = 'tablespace';

-- where WAL could go: a tablespace, empty or not
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_io_probe LOCATION '';
SELECT section, method, status, notes, directory ~ '/pg_tblspc/\d+/PG_\d+_\d+$' AS directory
  FROM io_probe_sync_full('regress_io_probe', duration => '1 ms', sections => '{no_sync}');
DROP TABLESPACE regress_io_probe;

-- max_bytes is of one row, its warm-up included
SELECT section, method, status, ops * writes * write_kb BETWEEN 1 AND 63 AS kb,
       'stopped at max_bytes' = ANY (notes) AS why
  FROM io_probe_sync_full(write_kb => 8, sections => '{two_writes,other_fd}', options => '{"max_bytes": 65536}')
  WHERE NOT direct;
-- a rate limit is kept, and leaves no rate where it made a row wait
SELECT bool_and(ops BETWEEN 1 AND 3) AS paced, bool_and((ops_s IS NULL) = limited) AS no_rate, bool_or(limited) AS limited
  FROM judged WHERE run = 'slow';
SELECT bool_and(ops BETWEEN 1 AND 2) AS paced, bool_and((ops_s IS NULL) = (notes::text LIKE '%rate-limited%')) AS no_rate,
       bool_or(notes::text LIKE '%rate-limited%') AS limited
  FROM io_probe_sync_full(duration => '300 ms', write_kb => 100, sections => '{other_fd}',
                     options => '{"max_mib_s": 1}');
-- commit_delay: the leader waits until all have joined, and flushes for all; the server's own is taken if so many are
-- active that it would wait, and if it syncs at all
SELECT count(*), string_agg(DISTINCT status, ',') AS status, sum(ops) > 2.8 * sum(flushes) AS together
  FROM io_probe_sync_full(duration => '1600 ms', depth => 4, options => '{"commit_delay": 10000, "direct": false}');
SET commit_delay = 10000;
SET commit_siblings = 3;
SELECT count(*), string_agg(DISTINCT status, ',') AS status,
       (sum(ops) > 2.8 * sum(flushes)) = current_setting('fsync')::boolean AS together
  FROM io_probe_sync_full(duration => '1600 ms', depth => 4, options => '{"direct": false}');
RESET commit_delay;
RESET commit_siblings;
-- other options
SELECT method, status FROM io_probe_sync_full(duration => '1 ms', sections => '{no_sync}',
  options => '{"wait": true, "precision": 0.5, "max_bytes": null}');

-- the scratch file keeps within its bounds, and leaves its reserve
SET pg_io_probe.scratch_reserve = 2147483647;
\set VERBOSITY terse
DO $$
BEGIN
  PERFORM io_probe_sync_full(sections => '{all}', duration => '40 ms');
EXCEPTION WHEN disk_full THEN
  RAISE NOTICE '%', regexp_replace(SQLERRM, '"/.*"(.*) \d+', '"..."\1 ...');
END $$;
SET pg_io_probe.scratch_reserve = 0;
SET pg_io_probe.scratch_limit = '1MB';
SELECT DISTINCT status, substring(notes::text, 'the segment was \d+ kB long') AS why
  FROM io_probe_sync_full(duration => '80 ms', sections => '{wal_segment}', options => '{"direct": false}');
DO $$
BEGIN
  PERFORM io_probe_sync_full(sections => '{all}', duration => '40 ms', write_kb => 1024);
EXCEPTION WHEN OTHERS THEN
  RAISE NOTICE '%', SQLERRM;
END $$;
RESET pg_io_probe.scratch_limit;
\set VERBOSITY default
-- nothing of it is left
SELECT name FROM pg_ls_tmpdir() WHERE name LIKE '%io\_probe%';
SELECT name FROM pg_ls_waldir() WHERE name LIKE 'xlogtemp.' || pg_backend_pid() || '%';
-- it writes no WAL, nor anything that a read-only transaction could not
BEGIN READ ONLY;
SELECT count(*) FROM io_probe_sync_full(duration => '1 ms', sections => '{no_sync}');
COMMIT;

-- without a duration all rows together leave half of pg_io_probe.max_duration
SET pg_io_probe.max_duration = '1s';
SELECT method, status, ops BETWEEN 1 AND 0.25 * 50 + 2 AS half
  FROM io_probe_sync_full(sections => '{other_fd}', options => '{"max_iops": 50}');
SET pg_io_probe.row_duration = '40ms';
SELECT method, status, ops BETWEEN 1 AND 5 AS short
  FROM io_probe_sync_full(sections => '{other_fd}', options => '{"max_iops": 50}');
RESET pg_io_probe.row_duration;
-- all calls of a statement share it
SET pg_io_probe.max_duration = '3s';
WITH called AS MATERIALIZED
  (SELECT i, s.* FROM generate_series(1, 5) i,
     io_probe_sync_full(duration => '1400 ms', write_kb => i, sections => '{no_sync}') s)
SELECT i, status, ops > 0 AS ops, 'stopped: this statement has used up pg_io_probe.max_duration' = ANY (notes) AS why
  FROM called WHERE i IN (1, 5);
RESET pg_io_probe.max_duration;
-- a call's duration is shared by its rows
SELECT section, method, status, elapsed_ms < 1600 AS part
  FROM io_probe_sync_full(duration => '1600 ms', sections => '{one_write,no_sync}')
  WHERE NOT direct;

DROP VIEW judged;
DROP TABLE result;
DROP FUNCTION server_direct;
