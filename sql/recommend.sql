--
-- io_probe_recommend: a row for each setting in each place, advice or a reason why there is none; nothing is changed
--
SET wal_skip_threshold = 0;
CREATE TABLE advised (id int, filler text) WITH (autovacuum_enabled = off);
ALTER TABLE advised ALTER filler SET STORAGE PLAIN;
INSERT INTO advised SELECT i, repeat('x', 7000) FROM generate_series(1, 2000) i;
VACUUM FULL advised;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_io_probe_advice LOCATION '';
ALTER TABLESPACE regress_io_probe_advice SET (random_page_cost = 1.75, effective_io_concurrency = 7);
CREATE TABLE few (id int) TABLESPACE regress_io_probe_advice;
INSERT INTO few VALUES (1);
-- an unlogged, a temporary table are not looked at, whatever their size
CREATE UNLOGGED TABLE unlogged_advice AS SELECT id, repeat('x', 1000) FROM generate_series(1, 10000) AS id;
CREATE TEMP TABLE own_advice AS SELECT id, repeat('x', 1000) FROM generate_series(1, 10000) AS id;
CHECKPOINT;
SELECT spcname AS own_tablespace FROM pg_database d JOIN pg_tablespace t ON t.oid = d.dattablespace
  WHERE datname = current_database() \gset
LOAD 'pg_io_probe';
LOAD 'plpgsql';
SET pg_io_probe.scratch_reserve = 0;
CREATE TEMP TABLE settings_before AS SELECT name, setting, source FROM pg_settings;
SELECT md5(pg_read_file('postgresql.auto.conf')) AS auto_before \gset

-- a row for each setting, in their order: of each tablespace with tables, of the disks below, of the cluster
CREATE TEMP TABLE result AS SELECT 'all' AS run, * FROM io_probe_recommend_full(duration => '20 ms') WITH ORDINALITY;
SELECT scope, CASE scope WHEN 'tablespace' THEN replace(name, :'own_tablespace', 'own') END AS name, setting, applies
  FROM result WHERE scope <> 'device' AND setting !~ '^io_' ORDER BY ordinality;
SELECT count(*) = CASE WHEN current_setting('server_version_num')::int >= 190000 THEN 6
                       WHEN current_setting('server_version_num')::int >= 180000 THEN 5 ELSE 0 END AS of_reads,
       count(*) FILTER (WHERE doubt <> 'needs cold' OR recommended IS NOT NULL) AS measured
  FROM result WHERE setting ~ '^io_';
SELECT r.setting, applies, context FROM result AS r JOIN pg_settings AS s ON s.name = r.setting
  WHERE r.setting ~ '^io_' AND (applies = 'restart') <> (context = 'postmaster');
SELECT count(*) BETWEEN 1 AND 2 AS disks FROM result WHERE scope = 'device';
SELECT DISTINCT setting, applies FROM result WHERE scope = 'device';
SELECT DISTINCT name FROM result WHERE scope = 'device' EXCEPT SELECT device FROM io_probe_device_full()
  EXCEPT SELECT top_device FROM io_probe_device_full() EXCEPT SELECT NULL;
-- the value in force, and where it comes from
SELECT r.setting, current = current_setting(r.setting) AS current, current_source = source AS source
  FROM result AS r JOIN pg_settings AS s ON s.name = r.setting
  WHERE scope = 'cluster' AND r.setting !~ '^io_' ORDER BY ordinality;
SELECT current, current_source FROM result AS r JOIN pg_settings AS s ON s.name = r.setting
  WHERE (current, current_source) IS DISTINCT FROM (current_setting(r.setting), source) AND r.name IS DISTINCT FROM 'regress_io_probe_advice';
SELECT current, read_ahead_kb FROM result AS r JOIN io_probe_device_full() AS d ON d.device = r.name AND d.object = 'tablespace'
  WHERE r.scope = 'device' AND current IS DISTINCT FROM read_ahead_kb::text AND spcname = evidence->>'tablespace';
SET random_page_cost = 3.25;
SELECT name = 'regress_io_probe_advice' AS has_own, setting, current, current_source FROM
  io_probe_recommend_full(settings => '{random_page_cost}', duration => '20 ms')
  ORDER BY has_own;
SELECT setting, current, current_source FROM io_probe_recommend_full('few',
  settings => '{effective_io_concurrency,random_page_cost}');
RESET random_page_cost;
-- what needs a right that the call does not ask for is not measured, and why says what it takes
SELECT setting, recommended, why ~ CASE setting WHEN 'read_ahead_kb' THEN 'cold => true|not known|debug_io_direct' ELSE 'writes => true' END AS why
  FROM result WHERE setting IN ('read_ahead_kb', 'wal_sync_method') ORDER BY ordinality DESC LIMIT 2;
-- the largest table that may be read, by what its files say
SELECT DISTINCT relid FROM result WHERE name = :'own_tablespace';
SELECT DISTINCT name, recommended, relid, why FROM result WHERE name = 'regress_io_probe_advice';
-- a number with any number of zeros
BEGIN;
DO $$ BEGIN EXECUTE format('ALTER TABLESPACE regress_io_probe_advice SET (random_page_cost = 1.5%s)', repeat('0', 70000000)); END $$;
SELECT current::float8 FROM io_probe_recommend_full('few', settings => '{random_page_cost}');
ROLLBACK;
-- settings as picked, each once, in their order
SELECT setting, recommended FROM io_probe_recommend_full('advised', settings => '{wal_sync_method,random_page_cost,wal_sync_method}');
-- NULLs stand for the defaults
SELECT count(*) FROM io_probe_recommend_full(NULL, settings => '{wal_sync_method}', duration => NULL, cold => NULL, writes => NULL, options => NULL);
-- a relation of one's own choice, and what says too little
SELECT DISTINCT name = :'own_tablespace' AS own, relid FROM io_probe_recommend_full('advised', duration => '20 ms') WHERE scope = 'tablespace';
SELECT recommended, relid, why FROM io_probe_recommend_full('few', settings => '{random_page_cost}');
SELECT recommended, relid, why FROM io_probe_recommend_full('own_advice', settings => '{random_page_cost}');

-- rows to judge: with all rights, of one relation, with little time, under a rate limit
INSERT INTO result SELECT 'may', * FROM io_probe_recommend_full(cold => true, writes => true, duration => '1 s',
  settings => '{read_ahead_kb,wal_sync_method}') WITH ORDINALITY;
INSERT INTO result SELECT 'one', * FROM io_probe_recommend_full('advised', settings => '{read_ahead_kb}',
  duration => '600 ms', cold => true) WITH ORDINALITY;
INSERT INTO result SELECT 'brief', * FROM io_probe_recommend_full(cold => true, writes => true, duration => '1 ms',
  settings => '{read_ahead_kb,wal_sync_method}') WITH ORDINALITY;
INSERT INTO result SELECT 'slow', * FROM io_probe_recommend_full(cold => true, duration => '300 ms', settings => '{read_ahead_kb}',
  options => '{"max_mib_s": 200, "precision": 0.5, "max_iops": null, "max_bytes": 100000000}') WITH ORDINALITY;
-- advice is complete, or there is a reason; to keep takes no statement
SELECT run, setting, why FROM result WHERE why IS NULL OR why = '' OR jsonb_typeof(evidence) <> 'object' OR scope IS NULL
  OR applies NOT IN ('now', 'reload', 'restart', 'root');
SELECT run, setting, recommended, current, statement FROM result
  WHERE (statement IS NOT NULL) <> (recommended <> current) AND current IS NOT NULL OR recommended IS NULL AND statement IS NOT NULL;
SELECT run, setting, statement FROM result WHERE statement !~ CASE scope
  WHEN 'cluster' THEN format('^ALTER SYSTEM SET %s = [^;]+$', setting)
  WHEN 'tablespace' THEN format('^ALTER TABLESPACE \S+ SET \(%s = .+\)$', setting) ELSE '^blockdev --setra \d+ /dev/[^ /]+$' END;
-- a statement has what takes it back, and says what hides it
SELECT run, setting, statement, undo, instead, hides FROM result WHERE (statement IS NULL) <> (undo IS NULL) OR (statement IS NULL) <> (hides IS NULL)
  OR (instead IS NOT NULL) <> (scope = 'tablespace' AND statement IS NOT NULL) OR undo !~ CASE scope
  WHEN 'cluster' THEN format('^ALTER SYSTEM (RESET %1$s|SET %1$s = ''[^;]+'')$', setting)
  WHEN 'tablespace' THEN '^ALTER TABLESPACE \S+ (RE)?SET \(' ELSE format('^blockdev --setra %s /dev/', current::int * 2) END;
-- windows: what is recommended lies on the plateau
SELECT run, recommended, low, high FROM result WHERE setting = 'read_ahead_kb'
  AND NOT recommended::int BETWEEN low::int AND high::int;
-- ways of reading: what is in force is a ratio of 1 to itself, and what is kept or changed lies on the plateau
INSERT INTO result SELECT 'reads', * FROM io_probe_recommend_full('advised', cold => true, duration => '2 s',
  settings => '{io_method,io_workers,io_min_workers,io_max_workers,io_max_concurrency,io_combine_limit,io_max_combine_limit}') WITH ORDINALITY;
SELECT setting, evidence->'ways'->0->'ratio' AS ratio, why FROM result
  WHERE run = 'reads' AND (evidence->'ways'->0->>'ratio')::float8 <> 1 OR run = 'reads' AND evidence ? 'ways' AND
    evidence->'ways'->0->>'io_method' <> current_setting('io_method', true);
SELECT setting, recommended, low, high FROM result WHERE run = 'reads' AND low ~ '^\d+$' AND NOT recommended::int BETWEEN low::int AND high::int;
SELECT setting, recommended, doubt, why FROM result WHERE run = 'reads' AND (recommended IS NULL) <> (doubt IS NOT NULL AND doubt = 'unknown');
-- with max_depth in the way, more reads in flight are not called as fast
SET effective_io_concurrency = 1000;
SET pg_io_probe.max_depth = 2;
SELECT recommended, why FROM io_probe_recommend_full('advised', cold => true, duration => '2 s', settings => '{io_max_concurrency}')
  WHERE recommended IS NOT NULL;
RESET effective_io_concurrency;
RESET pg_io_probe.max_depth;
-- ways of writing, and what a vacuum may read: without a right to write only what takes none; values are legal, and lie between low and high
SET client_min_messages = warning; -- whether a statement is shown depends on the disk
INSERT INTO result SELECT run, r.* FROM (VALUES ('unwritten', false), ('written', true)) AS runs(run, writes),
  LATERAL io_probe_recommend_full('advised', writes => writes, duration => '3 s', settings =>
    '{checkpoint_flush_after,backend_flush_after,bgwriter_flush_after,checkpoint_completion_target,autovacuum_vacuum_cost_limit}')
  WITH ORDINALITY AS r;
RESET client_min_messages;
SELECT run, setting, applies, doubt FROM result WHERE run = 'unwritten' AND setting !~ 'vacuum'
  OR run = 'written' AND (doubt ~ 'needs' OR (recommended IS NULL) <> (coalesce(doubt, '') = 'unknown')) ORDER BY run, ordinality;
SELECT count(*) FROM result WHERE run = 'written';
SELECT run, r.setting, recommended, low, high FROM result AS r JOIN pg_settings AS s ON s.name = r.setting WHERE run ~ 'written' AND CASE unit
  WHEN '8kB' THEN NOT pg_size_bytes(recommended) / 8192.0 BETWEEN min_val::int AND max_val::int OR pg_size_bytes(recommended) % 8192 <> 0
    OR NOT pg_size_bytes(recommended) BETWEEN pg_size_bytes(low) AND pg_size_bytes(high)
  ELSE NOT recommended::float8 BETWEEN min_val::float8 AND max_val::float8 OR NOT recommended::float8 BETWEEN low::float8 AND high::float8 END;
SELECT setting, evidence FROM result WHERE run = 'written' AND setting ~ 'flush_after' AND doubt IS DISTINCT FROM 'unknown'
  AND (jsonb_path_query_array(evidence, '$.ways[*].flush_after_kb') @> '[0]'
    AND (SELECT count(DISTINCT writes) FROM jsonb_to_recordset(evidence->'ways') AS w(writes int)) = 1) IS NOT TRUE;
SELECT why FROM result WHERE setting = 'autovacuum_vacuum_cost_limit' AND run ~ 'written' AND why !~ 'reading all of public.advised \(\d.* takes at least';
-- what a session SETs does not count for autovacuum
SET vacuum_cost_limit = 1;
SET vacuum_cost_page_miss = 10000;
SELECT r.evidence = b.evidence AS unchanged FROM result AS b, io_probe_recommend_full('advised', settings => '{autovacuum_vacuum_cost_limit}') AS r
  WHERE run = 'unwritten' AND b.setting = r.setting;
RESET vacuum_cost_limit;
RESET vacuum_cost_page_miss;
SELECT count(*) FROM pg_ls_tmpdir();
-- methods of the WAL: all are compared, one is in force; a volatile cache without FUA changes nothing
SELECT run, evidence->'methods' AS methods FROM result WHERE setting = 'wal_sync_method' AND evidence <> '{}' AND
  jsonb_path_query_array(evidence, '$.methods[*].method') <> '["open_datasync", "fdatasync", "fsync", "open_sync"]';
SELECT run, recommended, evidence FROM result WHERE setting = 'wal_sync_method' AND recommended <> current
  AND (evidence->>'write_cache' LIKE '%write back%' AND evidence->'fua' @> 'false'
       OR NOT EXISTS (SELECT FROM jsonb_to_recordset(evidence->'methods') AS m(method text, ci_low float8, ci_high float8)
                      JOIN jsonb_to_recordset(evidence->'methods') AS n(method text, ci_low float8, ci_high float8)
                        ON m.method = recommended AND n.method = current AND n.ci_low > 1.09 * m.ci_high));
-- without the time for it nothing is said, or little
SELECT count(*) FROM result WHERE run = 'brief' AND setting = 'read_ahead_kb' AND recommended IS NOT NULL;

-- nothing was changed
SELECT name, b.setting, s.setting FROM settings_before AS b FULL JOIN pg_settings AS s USING (name)
  WHERE (b.setting, b.source) IS DISTINCT FROM (s.setting, s.source);
SELECT md5(pg_read_file('postgresql.auto.conf')) = :'auto_before' AS unchanged;
SELECT spcname, spcoptions FROM pg_tablespace WHERE spcoptions IS NOT NULL;
-- nor is anything evicted, or written, that was not asked for
DO $$
DECLARE
  cached bigint;
  fetched bigint;
BEGIN
  FOR attempt IN 1..3 LOOP -- the kernel may take back a page
    PERFORM io_probe_seqscan_full('advised', '{os}');
    cached := (SELECT os_cached_bytes FROM io_probe_cache('advised'));
    PERFORM io_probe_recommend_full(duration => '20 ms');
    -- what is cached is not even read: to read it cold, it would have to be evicted
    fetched := pg_stat_get_xact_blocks_fetched('advised'::regclass);
    PERFORM io_probe_recommend_full(duration => '100 ms', settings => '{read_ahead_kb}');
    ASSERT pg_stat_get_xact_blocks_fetched('advised'::regclass) = fetched, 'read';
    EXIT WHEN (SELECT os_cached_bytes FROM io_probe_cache('advised')) >= cached;
    ASSERT attempt < 3, 'evicted';
  END LOOP;
END $$;
DO $$
DECLARE
  counter text := 'write_bytes: (\d+)';
  before text;
BEGIN
  before := (SELECT substring(convert_from(pg_read_binary_file('/proc/self/io', 0, 4096, true), 'UTF8') FROM counter));
  PERFORM io_probe_recommend_full(duration => '20 ms', settings => '{wal_sync_method,read_ahead_kb}');
  ASSERT before IS NOT DISTINCT FROM
    (SELECT substring(convert_from(pg_read_binary_file('/proc/self/io', 0, 4096, true), 'UTF8') FROM counter)), 'written';
EXCEPTION WHEN insufficient_privilege OR undefined_file THEN NULL; -- a container may hide it
END $$;
-- nor in the rest of the transaction
SHOW effective_io_concurrency \gset before_
BEGIN;
SELECT count(*) FROM io_probe_recommend_full('advised', cold => true, duration => '50 ms', settings => '{effective_io_concurrency}');
SELECT current_setting('effective_io_concurrency') = :'before_effective_io_concurrency' AS unchanged;
COMMIT;
-- not even by a call that is cancelled in the middle
SET statement_timeout = '150ms';
\set VERBOSITY sqlstate
SELECT setting FROM io_probe_recommend_full(cold => true, writes => true, duration => '10 s',
  settings => '{effective_io_concurrency,wal_sync_method}', options => '{"max_mib_s": 1}');
\set VERBOSITY default
RESET statement_timeout;
SELECT current_setting('effective_io_concurrency') = :'before_effective_io_concurrency' AS unchanged;
SELECT pid FROM io_probe_progress();

-- what a statement may take is shared by all
SET pg_io_probe.max_duration = '50ms';
SELECT setting, recommended, why FROM (SELECT g, r.* FROM generate_series(1, 4) AS g, LATERAL io_probe_recommend_full(cold => true,
    writes => true, duration => g * 0 + 40 || ' ms', settings => '{read_ahead_kb,wal_sync_method}') AS r
    OFFSET 0) AS calls
  WHERE g = 4 AND why !~ '^not measured: the readahead of';
RESET pg_io_probe.max_duration;

-- who may
CREATE ROLE regress_io_probe_advised;
SET ROLE regress_io_probe_advised;
SELECT setting FROM io_probe_recommend_full();
RESET ROLE;
GRANT EXECUTE ON FUNCTION io_probe_recommend, io_probe_recommend_full TO regress_io_probe_advised;
GRANT SELECT (id) ON advised TO regress_io_probe_advised;
SET ROLE regress_io_probe_advised;
-- not what he may not read, nor evict, nor write
SELECT DISTINCT relid, why FROM io_probe_recommend_full() WHERE scope = 'tablespace';
SELECT setting FROM io_probe_recommend_full('advised');
SELECT setting FROM io_probe_recommend_full(cold => true);
SELECT setting FROM io_probe_recommend_full(writes => true);
RESET ROLE;
GRANT SELECT ON advised TO regress_io_probe_advised;
GRANT EXECUTE ON FUNCTION io_probe_evict TO regress_io_probe_advised;
SET ROLE regress_io_probe_advised;
SELECT DISTINCT relid FROM io_probe_recommend_full(cold => true, duration => '1 ms') WHERE scope = 'tablespace' ORDER BY 1;
SELECT setting FROM io_probe_recommend_full(cold => true, writes => true);
RESET ROLE;
GRANT EXECUTE ON FUNCTION io_probe_sync, io_probe_sync_full TO regress_io_probe_advised;
GRANT SET ON PARAMETER pg_io_probe.scratch_reserve TO regress_io_probe_advised;
SET ROLE regress_io_probe_advised;
SELECT setting FROM io_probe_recommend_full(writes => true, duration => '1 ms', settings => '{wal_sync_method}');
RESET ROLE;
REVOKE ALL ON PARAMETER pg_io_probe.scratch_reserve FROM regress_io_probe_advised;
DROP OWNED BY regress_io_probe_advised;
DROP ROLE regress_io_probe_advised;

-- without a table there is a reason
BEGIN;
DROP TABLE advised, few, unlogged_advice;
SELECT setting, name = :'own_tablespace' AS own, recommended, relid, doubt, why FROM io_probe_recommend_full(settings => '{random_page_cost,correlation}');
ROLLBACK;
RESET pg_io_probe.scratch_reserve;
DROP TABLE advised, few, unlogged_advice, own_advice, settings_before, result;
DROP TABLESPACE regress_io_probe_advice;

-- where there is but one tablespace, a setting is one of the server, unless the tablespace has it already
SELECT count(*) FROM pg_tablespace WHERE spcname NOT IN ('pg_default', 'pg_global');
SELECT setting, scope, name, applies FROM io_probe_recommend_full(duration => '1 ms', settings => '{random_page_cost,effective_io_concurrency}');
ALTER TABLESPACE pg_default SET (random_page_cost = 3);
SELECT setting, scope, name, applies FROM io_probe_recommend_full(duration => '1 ms', settings => '{random_page_cost,effective_io_concurrency}');
ALTER TABLESPACE pg_default RESET (random_page_cost);
