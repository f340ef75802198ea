--
-- What a call leaves behind, however it ends: nothing. (What it holds while it runs, another session has to see.)
--
CREATE TABLE held (id int PRIMARY KEY, inside text, outside text) WITH (autovacuum_enabled = off);
ALTER TABLE held ALTER inside SET STORAGE PLAIN, ALTER outside SET STORAGE EXTERNAL;
INSERT INTO held SELECT i, repeat('x', 4000), repeat('y', 4000) FROM generate_series(1, 200) i;
SELECT reltoastrelid AS toast FROM pg_class WHERE relname = 'held' \gset
CREATE VIEW left_behind AS
  SELECT 'lock' AS what, concat_ws(' ', locktype, database = 0, relation::regclass, mode) AS name FROM pg_locks
    WHERE pid = pg_backend_pid()
      AND (locktype = 'advisory' OR relation IN ('held'::regclass, 'held_pkey'::regclass)
           OR relation = (SELECT reltoastrelid FROM pg_class WHERE relname = 'held'))
  UNION ALL
  SELECT 'progress', probe FROM io_probe_progress()
  UNION ALL
  SELECT 'wait event', wait_event FROM pg_stat_activity WHERE pid = pg_backend_pid() AND wait_event IS NOT NULL
  UNION ALL
  SELECT 'thread', name FROM pg_ls_dir('/proc/self/task') AS task,
    -- what has been joined may be there for a moment yet
    pg_read_file(CASE WHEN pg_sleep(0.05) IS NOT NULL THEN '/proc/self/task/' || task || '/comm' END, 0, 100, true) AS name
    WHERE task <> pg_backend_pid()::text AND name NOT LIKE 'iou-%';
-- the view sees locks
BEGIN;
LOCK TABLE held IN ACCESS SHARE MODE;
SELECT pg_advisory_xact_lock(1);
SELECT * FROM left_behind ORDER BY name;
ROLLBACK;

-- calls that end well, still in their transaction
SET pg_io_probe.engine = threads;
BEGIN;
SELECT path FROM io_probe_seqscan_full('held');
SELECT path FROM io_probe_seqscan_full('held_pkey', '{server,os}');
SELECT path FROM io_probe_seqscan_full(:toast, '{server,os}', cold => true);
SELECT path FROM io_probe_random_full('held');
SELECT path FROM io_probe_random_full('held', '{os}', depth => 4);
SELECT path FROM io_probe_random_series_full(:toast, '{server,os}', cold => true, depth => 2);
SELECT depth FROM io_probe_depth_full('held_pkey', '{1,3}', '20 ms');
SET pg_io_probe.scratch_reserve = 0;
SELECT op FROM io_probe_ping_full(:toast, count => 2, every => '0', mode => 'pingpong', path => 'os');
SELECT section FROM io_probe_sync_full(duration => '1 ms', sections => '{other_fd,no_sync}');
SELECT DISTINCT section FROM io_probe_sync_full('pg_default', duration => '1 ms', depth => 4);
SELECT fork FROM io_probe_cache('held_pkey');
SELECT fork FROM io_probe_evict('held_pkey');
SELECT * FROM left_behind;
ROLLBACK;
-- a cursor that has not been read to its end
BEGIN;
DECLARE c CURSOR FOR SELECT path FROM io_probe_seqscan_full('held', '{server,os}');
FETCH c;
SELECT * FROM left_behind;
DECLARE d CURSOR FOR SELECT op FROM io_probe_ping_full('held', count => 3, every => '0', path => 'os');
FETCH d;
SELECT * FROM left_behind;
ROLLBACK;
-- while the statement goes on
SELECT path, (SELECT count(*) FROM left_behind WHERE path IS NOT NULL) AS left_behind
  FROM io_probe_seqscan_full('held', '{server,os}');
-- errors before a scan
SELECT path FROM io_probe_seqscan_full('held', fork => 'init'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('held_pkey', options => '{"start_blk": 1000}'); \echo :SQLSTATE
SET pg_io_probe.scratch_reserve = 2147483647;
\set VERBOSITY sqlstate
SELECT op FROM io_probe_ping_full('held', count => 1, every => '0', mode => 'pingpong', path => 'os');
SELECT section FROM io_probe_sync_full(depth => 4);
\set VERBOSITY default
SET pg_io_probe.scratch_reserve = 0;
SELECT * FROM left_behind;
-- and in its middle
SET statement_timeout = '100 ms';
SELECT path FROM io_probe_seqscan_full('held', '{os}', '60 s', options => '{"max_iops": 10}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('held_pkey', '{server}', '60 s', options => '{"max_iops": 1}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('held', '{os}', '60 s', depth => 4, options => '{"max_iops": 10}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full(:toast, '{server}', '60 s', options => '{"max_iops": 10}'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('held', count => 60, every => '1 s', mode => 'write', path => 'os'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(duration => '60 s', sections => '{no_sync}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(duration => '60 s', sections => '{other_fd}', options => '{"max_iops": 1}');
\echo :SQLSTATE
SELECT section FROM io_probe_sync_full(duration => '60 s', depth => 4, options => '{"direct": false}'); \echo :SQLSTATE
RESET statement_timeout;
SELECT * FROM left_behind;
-- also if the error is caught (direct is not possible everywhere) while the transaction goes on
BEGIN;
SET LOCAL statement_timeout = '200 ms';
DO $$
BEGIN
  PERFORM io_probe_seqscan_full('held', '{direct}', '60 s', chunk_kb => 8, options => '{"max_iops": 10}');
EXCEPTION WHEN query_canceled THEN
END $$;
SET LOCAL statement_timeout = 0;
SELECT * FROM left_behind;
ROLLBACK;
-- nor does such a call leave descriptors: most of the probe's are read only, or open with O_TMPFILE, O_DSYNC, O_DIRECT;
-- the server's own are not
CREATE VIEW own AS
  SELECT count(*) AS descriptors FROM pg_ls_dir('/proc/self/fdinfo') AS fd,
    pg_read_file('/proc/self/fdinfo/' || fd, 0, 1000, true) AS info
    WHERE info ~ 'flags:\s*\d*(0|[2367]\d{7}|[145]\d{4})\n';
CREATE VIEW call AS
  SELECT format($$DO 'BEGIN
      PERFORM io_probe_%s;
    EXCEPTION WHEN query_canceled THEN END'$$, what)
  FROM unnest(ARRAY[
    $$seqscan(''held'', ''{direct}'', chunk_kb => 8, options => ''{"max_iops": 10}'')$$,
    $$seqscan(''held'', ''{server}'', options => ''{"max_iops": 10}'')$$,
    $$seqscan(''held'', ''{os}'', options => ''{"max_iops": 10}'')$$,
    $$random(''held'', ''{direct}'', depth => 4, options => ''{"max_iops": 10}'')$$,
    $$random(''held'', ''{server}'', depth => 4, options => ''{"max_iops": 10}'')$$,
    $$random_series(''held'', ''{os}'', options => ''{"max_iops": 10}'')$$,
    $$depth(''held'', ''{4}'', options => ''{"max_iops": 10}'')$$,
    $$ping(''held'', ''os'', ''pingpong'', ''1 s'', 50)$$,
    $$sync(duration => ''60 s'', sections => ''{one_write,other_fd,no_sync}'')$$,
    $$sync(''pg_default'', duration => ''60 s'', depth => 4)$$]) AS what;
SELECT descriptors AS before FROM own \gset
SET statement_timeout = '100 ms';
\set ECHO none
TABLE call \gexec
\set ECHO all
RESET statement_timeout;
SELECT count(*) FROM io_probe_seqscan_full('held', cold => true);
SELECT count(*) FROM io_probe_random_full('held', cold => true, depth => 2);
SELECT count(*) FROM io_probe_ping_full('held', count => 2, every => '0', mode => 'write', path => 'os');
SELECT count(*) FROM io_probe_sync_full(duration => '40 ms');
SELECT count(*) > 0 AS rows FROM io_probe_sync_full(duration => '1 ms', depth => 3);
SELECT descriptors - :before AS more FROM own;
SELECT * FROM left_behind;
RESET pg_io_probe.engine;

-- while another session probes this one can't, and sees what that is doing; the other one runs this program once more
\setenv PGDATABASE :DBNAME
CREATE VIEW other AS SELECT pid, probe, relid, path FROM io_probe_progress() WHERE path IS NOT NULL;
CREATE PROCEDURE await(present boolean) LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..1000 LOOP
    EXIT WHEN EXISTS (TABLE other) = present;
    PERFORM pg_sleep(0.01);
  END LOOP;
END $$;
\setenv QUERY 'SELECT io_probe_random_full(''held'', ''{os}'', ''60 s'', options => ''{"max_iops": 20}'')'
\! exec /proc/$PPID/exe -Xc "$QUERY" >/dev/null 2>&1 &
CALL await(true);
SELECT probe, relid, path FROM other;
\set VERBOSITY terse
SELECT path FROM io_probe_seqscan_full('held_pkey'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('held_pkey', '{os}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_series_full('held_pkey', '{server}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('held_pkey'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('held_pkey', mode => 'write'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(); \echo :SQLSTATE
\set VERBOSITY default
SELECT * FROM left_behind WHERE what <> 'progress';
SELECT pg_terminate_backend(pid) FROM other;
CALL await(false);
-- it waits if it is told to
\setenv QUERY 'SELECT io_probe_random_series_full(''held'', ''{os}'', ''3 s'', options => ''{"max_iops": 20}'')'
\! exec /proc/$PPID/exe -Xc "$QUERY" >/dev/null 2>&1 &
CALL await(true);
SELECT probe, relid, path FROM other;
SELECT op FROM io_probe_ping_full('held_pkey', count => 1, path => 'os', options => '{"wait": true}');
TABLE other;
\setenv QUERY 'SELECT io_probe_ping_full(''held'', count => 60, every => ''1 s'', mode => ''read'', path => ''os'')'
\! exec /proc/$PPID/exe -Xc "$QUERY" >/dev/null 2>&1 &
CALL await(true);
SELECT probe, relid, path FROM other;
SELECT pg_terminate_backend(pid) FROM other;
CALL await(false);
\setenv QUERY 'SELECT io_probe_sync_full(duration => ''60 s'', sections => ''{other_fd}'')'
\! exec /proc/$PPID/exe -Xc "$QUERY" >/dev/null 2>&1 &
CALL await(true);
SELECT probe, relid, path FROM other;
\set VERBOSITY terse
SELECT section FROM io_probe_sync_full(sections => '{wal_segment}', depth => 2); \echo :SQLSTATE
\set VERBOSITY default
SELECT pg_terminate_backend(pid) FROM other;
CALL await(false);
DROP VIEW other;
DROP PROCEDURE await;

-- the processes of a parallel query would not be kept apart: a function that hides a probe from the planner fails
CREATE FUNCTION hidden(relation regclass) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE
  AS 'BEGIN RETURN (SELECT count(*) FROM io_probe_random_full(relation, ''{os}'', ''1 ms'')); END';
BEGIN;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
\set VERBOSITY sqlstate
SELECT hidden('held') FROM held LIMIT 2;
\set VERBOSITY default
ROLLBACK;
DROP FUNCTION hidden;

DROP VIEW own, call, left_behind;
DROP TABLE held;
