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
    pg_read_file('/proc/self/task/' || task || '/comm', 0, 100, true) AS name
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
SELECT path FROM io_probe_seqscan('held');
SELECT path FROM io_probe_seqscan('held_pkey', '{server,os}');
SELECT path FROM io_probe_seqscan(:toast, '{server,os}', cold => true);
SELECT fork FROM io_probe_cache('held_pkey');
SELECT fork FROM io_probe_evict('held_pkey');
SELECT * FROM left_behind;
ROLLBACK;
-- a cursor that has not been read to its end
BEGIN;
DECLARE c CURSOR FOR SELECT path FROM io_probe_seqscan('held', '{server,os}');
FETCH c;
SELECT * FROM left_behind;
ROLLBACK;
-- while the statement goes on
SELECT path, (SELECT count(*) FROM left_behind WHERE path IS NOT NULL) AS left_behind
  FROM io_probe_seqscan('held', '{server,os}');
-- errors before a scan
SELECT path FROM io_probe_seqscan('held', fork => 'init'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('held_pkey', options => '{"start_blk": 1000}'); \echo :SQLSTATE
SELECT * FROM left_behind;
-- and in its middle
SET statement_timeout = '200 ms';
SELECT path FROM io_probe_seqscan('held', '{os}', '60 s', options => '{"max_iops": 10}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('held_pkey', '{server}', '60 s', options => '{"max_iops": 1}'); \echo :SQLSTATE
RESET statement_timeout;
SELECT * FROM left_behind;
-- also if the error is caught (direct is not possible everywhere) while the transaction goes on
BEGIN;
SET LOCAL statement_timeout = '200 ms';
DO $$
BEGIN
  PERFORM io_probe_seqscan('held', '{direct}', '60 s', chunk_kb => 8, options => '{"max_iops": 10}');
EXCEPTION WHEN query_canceled THEN
END $$;
SET LOCAL statement_timeout = 0;
SELECT * FROM left_behind;
ROLLBACK;
-- nor does such a call leave descriptors: those of the probe are read only, the server's own are not
CREATE VIEW read_only AS
  SELECT count(*) AS descriptors FROM pg_ls_dir('/proc/self/fdinfo') AS fd,
    pg_read_file('/proc/self/fdinfo/' || fd, 0, 1000, true) AS info WHERE info ~ 'flags:\s*\d*0\n';
CREATE VIEW call AS
  SELECT format($$DO 'BEGIN
      PERFORM io_probe_seqscan(''held'', ''{%s}'', chunk_kb => 8, options => ''{"max_iops": 10}'');
    EXCEPTION WHEN query_canceled THEN END'$$, path)
  FROM unnest('{direct,server,os}'::text[]) AS path, generate_series(1, 2);
SELECT descriptors AS before FROM read_only \gset
SET statement_timeout = '100 ms';
\set ECHO none
TABLE call \gexec
\set ECHO all
RESET statement_timeout;
SELECT count(*) FROM io_probe_seqscan('held', cold => true);
SELECT descriptors - :before AS more FROM read_only;
SELECT * FROM left_behind;
RESET pg_io_probe.engine;

DROP VIEW read_only, call, left_behind;
DROP TABLE held;
