--
-- What a call leaves behind, however it ends: no lock, no progress, no wait event, no thread. (Descriptors, and what it holds
-- while it runs, another session has to see.)
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
SELECT path FROM io_probe_random_full(:toast, '{server,os}', cold => true, depth => 2);
SELECT depth FROM io_probe_depth_full('held_pkey', '{1,3}', '20 ms');
SET pg_io_probe.scratch_reserve = 0;
SELECT op FROM io_probe_ping_full(:toast, count => 2, every => '0', mode => 'pingpong', path => 'os');
SELECT section FROM io_probe_sync_full(duration => '1 ms', sections => '{other_fd,no_sync}');
SELECT DISTINCT section FROM io_probe_sync_full('pg_default', duration => '1 ms', depth => 4);
SELECT count(*) FROM io_probe_cache('held_pkey');
SELECT count(*) FROM io_probe_evict('held_pkey');
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
SELECT path FROM io_probe_seqscan_full('pg_views'); \echo :SQLSTATE
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
RESET pg_io_probe.engine;

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

DROP VIEW left_behind;
DROP TABLE held;
