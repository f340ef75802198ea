--
-- What is refused: the message, and after it the SQLSTATE
--
CREATE TABLE plain (id int);
INSERT INTO plain SELECT generate_series(1, 1000);
CREATE VIEW plain_view AS SELECT * FROM plain;
CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE "Parted 1" PARTITION OF parted FOR VALUES FROM (1) TO (10);
CREATE TYPE composite AS (id int);
CREATE SEQUENCE numbers;
CREATE FUNCTION writer() RETURNS int LANGUAGE plpgsql AS 'BEGIN DELETE FROM plain; RETURN 1; END';
CREATE FUNCTION resetter(call text) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
  IF current_setting('server_version_num')::int < 160000 THEN EXECUTE 'RESET transaction_read_only'; END IF; -- refused since
  IF call = 'nextval' THEN RETURN nextval('numbers'); END IF;
  RETURN writer();
END $$;
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
CREATE FOREIGN TABLE elsewhere (id int) SERVER nowhere;

-- paths
SELECT path FROM io_probe_seqscan_full('plain', '{os,disk}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', '{OS}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', '{}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', '{os,NULL}'); \echo :SQLSTATE
-- duration
SELECT path FROM io_probe_seqscan_full('plain', duration => '0'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', duration => '-1 s'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', duration => '61 s'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', duration => '-178000000 years'); \echo :SQLSTATE
-- chunk_kb and depth
SELECT path FROM io_probe_seqscan_full('plain', chunk_kb => 0); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', chunk_kb => -8); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', chunk_kb => 12); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', chunk_kb => 2147483640); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', chunk_kb => 1032, depth => 128); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', depth => 0); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', depth => -2147483648); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', depth => 129); \echo :SQLSTATE
-- options
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_byte": 1}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '["max_bytes"]'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_bytes": 8191}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_bytes": -8192}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_bytes": "1 XB"}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_bytes": 68719476737}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_bytes": 18446744073709551616}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_iops": 0}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_mib_s": 0.5}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_mib_s": 4294967296}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_util_pct": 0}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_util_pct": 100.5}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_util_pct": "5"}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"precision": 0}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"precision": 1}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"wait": "yes"}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"start_blk": -1}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"start_blk": 6}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', options => '{"start_blk": 18446744073709551615}'); \echo :SQLSTATE
-- random fetches
SELECT path FROM io_probe_random_full('plain', '{os,disk}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain', '{}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain', duration => '0'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain', duration => '61 s'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain', depth => 0); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain', depth => -2147483648); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain', depth => 129); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain', options => '{"start_blk": 1}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain', options => '{"seed": 1}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain', options => '{"max_bytes": 8191}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain', options => '{"max_bytes": 68719476737}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain', options => '{"max_iops": -1}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain', options => '{"precision": 1}'); \echo :SQLSTATE
-- depths
SELECT depth FROM io_probe_depth_full('plain', '{}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('plain', '{1,NULL}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('plain', '{1,0}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('plain', '{1,-1}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('plain', '{1,129}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('plain', duration => '-1 s'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('plain', duration => '61 s'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('plain', p99 => '0'); \echo :SQLSTATE
SELECT slice FROM io_probe_sustain_full('plain', '{sideways}'); \echo :SQLSTATE
SELECT slice FROM io_probe_sustain_full('plain', every => '0'); \echo :SQLSTATE
SELECT slice FROM io_probe_sustain_full('plain', every => '1 us'); \echo :SQLSTATE
SELECT slice FROM io_probe_sustain_full('plain', depth => 0); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('plain', options => '{"precision": 0.1}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('plain', options => '{"max_bytes": 0}'); \echo :SQLSTATE
-- pings
SELECT op FROM io_probe_ping_full('plain', count => 0); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', count => -2147483648); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', count => 10001, every => '0'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', every => '-1 us'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', count => 2, every => '61 s'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', count => 602); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', mode => 'trim'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', mode => ''); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', path => 'server'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', path => 'OS'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', options => '{"max_bytes": 8192}'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', options => '{"seed": -1}'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', options => '{"seed": 18446744073709551616}'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('plain', options => '{"wait": 1}'); \echo :SQLSTATE
-- syncs
SELECT section FROM io_probe_sync_full('nowhere'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(''); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(duration => '0'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(duration => '-1 s'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(duration => '61 s'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(write_kb => 0, sections => '{one_write}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(write_kb => -2147483648, sections => '{one_write}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(write_kb => 1025, sections => '{one_write}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(write_kb => 8); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(sections => '{}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(sections => '{no_sync,NULL}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(sections => '{no_sync,fsync}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(sections => '{NO_SYNC}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(depth => 0); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(depth => -2147483648); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(depth => 129); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(sections => '{one_write}', depth => 2); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(sections => '{wal_segment,no_sync}', depth => 2); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(options => '{"seed": 1}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(options => '["direct"]'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(options => '{"direct": 1}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(options => '{"wait": "yes"}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(depth => 2, options => '{"commit_delay": -1}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(depth => 2, options => '{"commit_delay": 100001}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(depth => 2, options => '{"commit_delay": "1 ms"}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(options => '{"commit_delay": 10}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(depth => 2, options => '{"commit_bytes": 0}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(depth => 2, options => '{"commit_bytes": 1048577}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(depth => 1, options => '{"commit_bytes": 100}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(options => '{"max_bytes": 0}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(options => '{"max_bytes": 68719476737}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(options => '{"max_iops": 0}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(options => '{"max_mib_s": 0.5}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(options => '{"precision": 1}'); \echo :SQLSTATE
-- numbers beyond all bounds are wrong values, too, not internal errors
\set VERBOSITY sqlstate
SELECT path FROM io_probe_seqscan_full('plain', duration => '178000000 years');
SELECT path FROM io_probe_seqscan_full('plain', options => '{"max_bytes": 1e400}');
SELECT path FROM io_probe_random_full('plain', duration => '178000000 years');
SELECT op FROM io_probe_ping_full('plain', count => 2147483647, every => '178000000 years');
SELECT op FROM io_probe_ping_full('plain', count => 2147483647, every => '-178000000 years');
SELECT section FROM io_probe_sync_full(duration => '178000000 years', write_kb => 2147483647, depth => 2147483647);
SELECT section FROM io_probe_sync_full(depth => 2, options => '{"commit_delay": 18446744073709551616}');
\set VERBOSITY default

-- a time needs a unit: which arguments of type text refuse a number, in all functions; and none is an interval
CREATE FUNCTION refusal(call text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
  EXECUTE call;
  RETURN NULL;
EXCEPTION WHEN OTHERS THEN
  RETURN SQLERRM;
END $$;
SELECT argument, bool_and(refusal IS NOT DISTINCT FROM 'the time "10" has no unit') AS refused
  FROM (SELECT names[n] AS argument, refusal(format('SELECT * FROM %s(%s)', oid::regproc, (
                 SELECT string_agg(format('%I => %L::%s', names[i], CASE WHEN i = n THEN '10' END, types[i - 1]::regtype), ', ')
                 FROM generate_subscripts(names, 1) AS i WHERE i = n OR i <= pronargs - pronargdefaults)))
        FROM (SELECT p.oid, pronargs, pronargdefaults, proargtypes AS types, proargnames[:pronargs] AS names
                FROM pg_proc AS p JOIN pg_depend ON objid = p.oid AND classid = 'pg_proc'::regclass AND deptype = 'e'
                JOIN pg_extension AS e ON e.oid = refobjid WHERE extname = 'pg_io_probe') AS f,
             generate_subscripts(names, 1) AS n WHERE types[n - 1]::regtype IN ('text', 'interval')) AS called
  GROUP BY argument ORDER BY argument;
SELECT text FROM unnest('{10,1.5,.5,+3,-3,1e3," 10 ","@ 10","10,","1 2"}'::text[]) AS text
  WHERE refusal(format('SELECT io_probe_prune(%L)', text)) NOT LIKE 'the time "%" has no unit';
SELECT io_probe_prune('1'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('plain', duration => '10'); \echo :SQLSTATE
SELECT io_probe_record('seqscan', 'plain', '{"duration": 10}'); \echo :SQLSTATE
SELECT io_probe_measure('seqscan', 'plain', '{"duration": "10"}'); \echo :SQLSTATE
-- 0 needs none; what is no time is the server's to refuse
SELECT io_probe_prune(text, force => true) >= 0 AS taken FROM unnest('{0,0 s,100000:00:00,PT100000H,@ 20 years}'::text[]) AS text; \echo :SQLSTATE
SELECT io_probe_prune('10 ago'); \echo :SQLSTATE
SELECT io_probe_prune(''); \echo :SQLSTATE
SELECT io_probe_prune('10 parsecs'); \echo :SQLSTATE
SELECT io_probe_prune('1e'); \echo :SQLSTATE
-- the same time under each style: in sql_standard, one sign would be that of all fields
SET intervalstyle = sql_standard;
SELECT io_probe_prune('-1 day 2400000:00:00');
RESET intervalstyle;

-- relations that are none, or are gone
SELECT path FROM io_probe_seqscan_full('nothing'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full(NULL); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('-'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full(4294967295); \echo :SQLSTATE
SELECT count(*) FROM io_probe_cache(4294967295); \echo :SQLSTATE
SELECT count(*) FROM io_probe_evict(4294967295); \echo :SQLSTATE
SELECT count(*) FROM io_probe_cache(NULL); \echo :SQLSTATE
SELECT count(*) FROM io_probe_evict(NULL); \echo :SQLSTATE
SELECT path FROM io_probe_random_full(NULL); \echo :SQLSTATE
SELECT path FROM io_probe_random_full(4294967295); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full(NULL); \echo :SQLSTATE
SELECT slice FROM io_probe_sustain_full(NULL); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full(4294967295); \echo :SQLSTATE
-- recommendations
SELECT setting FROM io_probe_recommend_full(settings => '{work_mem}'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend_full(settings => '{}'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend_full(settings => '{wal_sync_method,NULL}'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend_full(duration => '0'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend_full(duration => '61 s'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend_full(options => '{"depth": 1}'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend_full(options => '{"max_bytes": 0}'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend_full(4294967295); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend_full('plain_view'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend_full('parted'); \echo :SQLSTATE
-- relations without storage, or with hardly any
SELECT path FROM io_probe_seqscan_full('plain_view'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('numbers'); \echo :SQLSTATE
SELECT count(*) FROM io_probe_cache('numbers'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('elsewhere'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('composite'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('parted'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('parted_pkey'); \echo :SQLSTATE
SELECT count(*) FROM io_probe_cache('plain_view'); \echo :SQLSTATE
SELECT count(*) FROM io_probe_evict('plain_view'); \echo :SQLSTATE
SELECT count(*) FROM io_probe_cache('parted'); \echo :SQLSTATE
SELECT count(*) FROM io_probe_evict('parted'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('plain_view'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('parted'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('parted_pkey'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('parted', mode => 'write'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('elsewhere'); \echo :SQLSTATE
-- what the hint says works
SELECT p.relname, p.path FROM pg_partition_tree('public.parted') AS t, io_probe_seqscan_full(t.relid) AS p WHERE t.isleaf;

-- queries to explain
SELECT node_id FROM io_probe_explain_full(NULL); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => '[]'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => '{"page_costs": []}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => '{"page_cost": {"tier": "os"}}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => '{"page_cost": [1]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => '{"page_cost": [{"pattern": "random"}]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => '{"page_cost": [{"tier": "os", "pattern": "random"}, {"tier": "tape", "pattern": "random"}]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => '{"page_cost": [{"tier": "os", "pattern": "random", "block_us": "1"}]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => '{"page_cost": [{"tier": "device", "pattern": "sparse", "depth": -1}]}'); \echo :SQLSTATE
\set VERBOSITY terse
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => '{"page_cost": [{"tier": "os", "pattern": "random", "block_us": -1}]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => '{"page_cost": [{"tier": "device", "pattern": "sparse", "density": 0}]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => '{"page_cost": [{"tier": "device", "pattern": "sparse", "density": 1.1}]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => jsonb_build_object('page_cost', repeat('x', 200))); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1', options => jsonb_build_object('page_cost', repeat('x', 1 << 20))); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full(plan => '{"Plan": {"Node Type": "Result"}}', options => '{"page_cost": 1}'); \echo :SQLSTATE
\set VERBOSITY default
-- a plain NULL is no option
SELECT node_id FROM io_probe_explain_full('SELECT 1', false, NULL);
SELECT node_id FROM io_probe_explain_full(''); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full(' -- nothing'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1; DROP TABLE plain'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('DROP TABLE plain'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('CREATE TABLE copy AS SELECT 1', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1 INTO copy', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('(SELECT 1 INTO copy UNION SELECT 2) UNION SELECT 3', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('EXPLAIN SELECT 1'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('DECLARE c CURSOR FOR SELECT 1'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('COPY plain TO STDOUT'); \echo :SQLSTATE
-- what follows EXPLAIN's own options is no query
SELECT node_id FROM io_probe_explain_full('(ANALYZE) SELECT 1'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT $1'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT * FROM nothing'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT 1 / (id - id) FROM plain', true); \echo :SQLSTATE
-- plans have a limit, and a message of their own for it
SELECT string_agg('SELECT * FROM (', NULL) || 'TABLE plain' || string_agg(') AS p' || i || ' LIMIT 10', NULL) AS deep
  FROM generate_series(1, 70) AS i \gset
SELECT node_id FROM io_probe_explain_full(:'deep'); \echo :SQLSTATE
-- writing, in all its forms
SELECT node_id FROM io_probe_explain_full('INSERT INTO plain VALUES (0)', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('UPDATE plain SET id = 0', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('DELETE FROM plain', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('MERGE INTO plain p USING plain q ON p.id = q.id WHEN MATCHED THEN DELETE', true);
\echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('WITH d AS (DELETE FROM plain RETURNING 1) TABLE d', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT id FROM plain FOR UPDATE', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full('SELECT writer()', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full($$SELECT nextval('numbers')$$, true); \echo :SQLSTATE
-- nor can the query give itself the right
SELECT node_id FROM io_probe_explain_full($$SELECT set_config('transaction_read_only', 'off', true)$$, true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full($$SELECT resetter('nextval')$$, true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full($$SELECT resetter('writer')$$, true); \echo :SQLSTATE
SELECT count(*) FROM plain;
SELECT is_called FROM numbers;

-- plans
SELECT node_id FROM io_probe_explain_full(plan => NULL); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full(plan => '1'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full(plan => '[]'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full(plan => '[{"Plan": {}}]'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full(plan => '[{"Plan": {}}, {"Plan": {}}]'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full(plan => '{"Plan": {"Node Type": "Result", "Actual Loops": -1}}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full(plan => '{"Plan": {"Node Type": "Result", "Plans": [1]}}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_full(plan => (repeat('[', 1000) || repeat(']', 1000))::json); \echo :SQLSTATE
SELECT node_id FROM (SELECT string_agg('{"Node Type": "Result"}', ',') FROM generate_series(1, 20000)) AS nodes(list),
  io_probe_explain_full(plan => format('{"Plan": {"Node Type": "Append", "Plans": [%s]}}', list)::json); \echo :SQLSTATE
-- what the server's json accepts and a plan never holds
\set VERBOSITY sqlstate
SELECT node_id FROM io_probe_explain_full(plan => '{"Plan": {"Node Type": "Result", "Plan Rows": 1e400}}');
SELECT node_id FROM io_probe_explain_full(plan => '{"Plan": {"Node Type": "\ud800"}}');
\set VERBOSITY default

-- the session goes on
SELECT path, complete FROM io_probe_seqscan_full('plain', '{os}');
SELECT path, complete FROM io_probe_random_full('plain', '{os}');
SET pg_io_probe.scratch_reserve = 0;
SELECT section FROM io_probe_sync_full(duration => '1 ms', sections => '{no_sync}');

SET client_min_messages = warning;
DROP TABLE plain, parted CASCADE;
DROP TYPE composite;
DROP SEQUENCE numbers;
DROP FUNCTION writer, resetter, refusal;
DROP FOREIGN DATA WRAPPER nowhere CASCADE;
