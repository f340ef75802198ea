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
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
CREATE FOREIGN TABLE elsewhere (id int) SERVER nowhere;

-- paths
SELECT path FROM io_probe_seqscan('plain', '{os,disk}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', '{OS}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', '{}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', '{os,NULL}'); \echo :SQLSTATE
-- fork
SELECT path FROM io_probe_seqscan('plain', fork => 'heap'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', fork => 'init'); \echo :SQLSTATE
-- duration
SELECT path FROM io_probe_seqscan('plain', duration => '0'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', duration => '-1 s'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', duration => '61 s'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', duration => '-178000000 years'); \echo :SQLSTATE
-- chunk_kb and depth
SELECT path FROM io_probe_seqscan('plain', chunk_kb => 0); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', chunk_kb => -8); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', chunk_kb => 12); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', chunk_kb => 2147483640); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', chunk_kb => 1032, depth => 128); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', depth => 0); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', depth => -2147483648); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', depth => 129); \echo :SQLSTATE
-- options
SELECT path FROM io_probe_seqscan('plain', options => '{"max_byte": 1}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '["max_bytes"]'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"max_bytes": 8191}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"max_bytes": -8192}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"max_bytes": "1 MB"}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"max_bytes": 68719476737}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"max_bytes": 18446744073709551616}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"max_iops": 0}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"max_mib_s": 0.5}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"max_mib_s": 4294967296}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"max_util_pct": 0}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"max_util_pct": 100.5}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"max_util_pct": "5"}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"precision": 0}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"precision": 1}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"wait": "yes"}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"start_blk": -1}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"start_blk": 6}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('plain', options => '{"start_blk": 18446744073709551615}'); \echo :SQLSTATE
-- random fetches
SELECT path FROM io_probe_random('plain', '{os,disk}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_series('plain', '{}'); \echo :SQLSTATE
SELECT path FROM io_probe_random('plain', duration => '0'); \echo :SQLSTATE
SELECT path FROM io_probe_random_series('plain', duration => '61 s'); \echo :SQLSTATE
SELECT path FROM io_probe_random('plain', depth => 0); \echo :SQLSTATE
SELECT path FROM io_probe_random('plain', depth => -2147483648); \echo :SQLSTATE
SELECT path FROM io_probe_random_series('plain', depth => 129); \echo :SQLSTATE
SELECT path FROM io_probe_random('plain', options => '{"start_blk": 1}'); \echo :SQLSTATE
SELECT path FROM io_probe_random('plain', options => '{"seed": 1}'); \echo :SQLSTATE
SELECT path FROM io_probe_random('plain', options => '{"max_bytes": 8191}'); \echo :SQLSTATE
SELECT path FROM io_probe_random('plain', options => '{"max_bytes": 68719476737}'); \echo :SQLSTATE
SELECT path FROM io_probe_random('plain', options => '{"max_iops": -1}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_series('plain', options => '{"precision": 1}'); \echo :SQLSTATE
-- depths
SELECT depth FROM io_probe_depth('plain', '{}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth('plain', '{1,NULL}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth('plain', '{1,0}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth('plain', '{1,-1}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth('plain', '{1,129}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth('plain', duration => '-1 s'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth('plain', duration => '61 s'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth('plain', options => '{"precision": 0.1}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth('plain', options => '{"max_bytes": 0}'); \echo :SQLSTATE
-- pings
SELECT op FROM io_probe_ping('plain', 0); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', -2147483648); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', 10001, '0'); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', every => '-1 us'); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', 2, '61 s'); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', 602); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', mode => 'trim'); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', mode => ''); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', path => 'server'); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', path => 'OS'); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', options => '{"max_bytes": 8192}'); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', options => '{"seed": -1}'); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', options => '{"seed": 18446744073709551616}'); \echo :SQLSTATE
SELECT op FROM io_probe_ping('plain', options => '{"wait": 1}'); \echo :SQLSTATE
-- syncs
SELECT section FROM io_probe_sync('disk'); \echo :SQLSTATE
SELECT section FROM io_probe_sync('WAL'); \echo :SQLSTATE
SELECT section FROM io_probe_sync('tablespace'); \echo :SQLSTATE
SELECT section FROM io_probe_sync('tablespace', 'nowhere'); \echo :SQLSTATE
SELECT section FROM io_probe_sync('tablespace', ''); \echo :SQLSTATE
SELECT section FROM io_probe_sync('wal', 'pg_default'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(spcname => 'nowhere'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(duration => '0'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(duration => '-1 s'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(duration => '61 s'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(write_kb => 0); \echo :SQLSTATE
SELECT section FROM io_probe_sync(write_kb => -2147483648); \echo :SQLSTATE
SELECT section FROM io_probe_sync(write_kb => 1025); \echo :SQLSTATE
SELECT section FROM io_probe_sync(sections => '{}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(sections => '{no_sync,NULL}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(sections => '{no_sync,fsync}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(sections => '{NO_SYNC}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(depth => 0); \echo :SQLSTATE
SELECT section FROM io_probe_sync(depth => -2147483648); \echo :SQLSTATE
SELECT section FROM io_probe_sync(depth => 129); \echo :SQLSTATE
SELECT section FROM io_probe_sync(sections => '{one_write}', depth => 2); \echo :SQLSTATE
SELECT section FROM io_probe_sync(sections => '{wal_segment,no_sync}', depth => 2); \echo :SQLSTATE
SELECT section FROM io_probe_sync(options => '{"seed": 1}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(options => '["direct"]'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(options => '{"direct": 1}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(options => '{"wait": "yes"}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(depth => 2, options => '{"commit_delay": -1}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(depth => 2, options => '{"commit_delay": 100001}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(depth => 2, options => '{"commit_delay": "1 ms"}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(options => '{"commit_delay": 10}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(depth => 2, options => '{"commit_bytes": 0}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(depth => 2, options => '{"commit_bytes": 1048577}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(depth => 1, options => '{"commit_bytes": 100}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(options => '{"max_bytes": 0}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(options => '{"max_bytes": 68719476737}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(options => '{"max_iops": 0}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(options => '{"max_mib_s": 0.5}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync(options => '{"precision": 1}'); \echo :SQLSTATE
-- numbers beyond all bounds are wrong values, too, not internal errors
\set VERBOSITY sqlstate
SELECT path FROM io_probe_seqscan('plain', duration => '178000000 years');
SELECT path FROM io_probe_seqscan('plain', options => '{"max_bytes": 1e400}');
SELECT path FROM io_probe_random('plain', duration => '178000000 years');
SELECT op FROM io_probe_ping('plain', 2147483647, '178000000 years');
SELECT op FROM io_probe_ping('plain', 2147483647, '-178000000 years');
SELECT section FROM io_probe_sync(duration => '178000000 years', write_kb => 2147483647, depth => 2147483647);
SELECT section FROM io_probe_sync(depth => 2, options => '{"commit_delay": 18446744073709551616}');
\set VERBOSITY default

-- relations that are none, or are gone
SELECT path FROM io_probe_seqscan('nothing'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan(NULL); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('-'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan(4294967295); \echo :SQLSTATE
SELECT fork FROM io_probe_cache(4294967295); \echo :SQLSTATE
SELECT fork FROM io_probe_evict(4294967295); \echo :SQLSTATE
SELECT fork FROM io_probe_cache(NULL); \echo :SQLSTATE
SELECT fork FROM io_probe_evict(NULL); \echo :SQLSTATE
SELECT path FROM io_probe_random(NULL); \echo :SQLSTATE
SELECT path FROM io_probe_random_series(4294967295); \echo :SQLSTATE
SELECT depth FROM io_probe_depth(NULL); \echo :SQLSTATE
SELECT op FROM io_probe_ping(4294967295); \echo :SQLSTATE
-- recommendations
SELECT setting FROM io_probe_recommend(cache => 'hot'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend(unit => 'ms'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend(settings => '{work_mem}'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend(settings => '{}'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend(settings => '{commit_delay,NULL}'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend(duration => '0'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend(duration => '61 s'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend(options => '{"depth": 1}'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend(options => '{"max_bytes": 0}'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend(4294967295); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend('plain_view'); \echo :SQLSTATE
SELECT setting FROM io_probe_recommend('parted'); \echo :SQLSTATE
-- relations without storage
SELECT path FROM io_probe_seqscan('plain_view'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('elsewhere'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('composite'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('parted'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('parted_pkey'); \echo :SQLSTATE
SELECT fork FROM io_probe_cache('plain_view'); \echo :SQLSTATE
SELECT fork FROM io_probe_evict('plain_view'); \echo :SQLSTATE
SELECT fork FROM io_probe_cache('parted'); \echo :SQLSTATE
SELECT fork FROM io_probe_evict('parted'); \echo :SQLSTATE
SELECT path FROM io_probe_random('plain_view'); \echo :SQLSTATE
SELECT path FROM io_probe_random('parted'); \echo :SQLSTATE
SELECT path FROM io_probe_random_series('parted'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth('parted_pkey'); \echo :SQLSTATE
SELECT op FROM io_probe_ping('parted', mode => 'write'); \echo :SQLSTATE
SELECT op FROM io_probe_ping('elsewhere'); \echo :SQLSTATE
-- what the hint says works
SELECT p.relname, p.path FROM pg_partition_tree('public.parted') AS t, io_probe_seqscan(t.relid) AS p WHERE t.isleaf;

-- queries to explain
SELECT node_id FROM io_probe_explain(NULL); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1', options => '[]'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1', options => '{"page_costs": []}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1', options => '{"page_cost": {"tier": "os"}}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1', options => '{"page_cost": [1]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1', options => '{"page_cost": [{"pattern": "random"}]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1', options => '{"page_cost": [{"tier": "os", "pattern": "random"}, {"tier": "tape", "pattern": "random"}]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1', options => '{"page_cost": [{"tier": "os", "pattern": "random", "block_us": "1"}]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1', options => '{"page_cost": [{"tier": "device", "pattern": "sparse", "depth": -1}]}'); \echo :SQLSTATE
\set VERBOSITY terse
SELECT node_id FROM io_probe_explain('SELECT 1', options => '{"page_cost": [{"tier": "os", "pattern": "random", "block_us": -1}]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1', options => '{"page_cost": [{"tier": "device", "pattern": "sparse", "density": 0}]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1', options => '{"page_cost": [{"tier": "device", "pattern": "sparse", "density": 1.1}]}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1', options => jsonb_build_object('page_cost', repeat('x', 200))); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1', options => jsonb_build_object('page_cost', repeat('x', 1 << 20))); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_json('{"Plan": {"Node Type": "Result"}}', '{"page_cost": 1}'); \echo :SQLSTATE
\set VERBOSITY default
-- a plain NULL is no option
SELECT node_id FROM io_probe_explain('SELECT 1', false, NULL);
SELECT node_id FROM io_probe_explain(''); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain(' -- nothing'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1; DROP TABLE plain'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('DROP TABLE plain'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('CREATE TABLE copy AS SELECT 1', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1 INTO copy', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('(SELECT 1 INTO copy UNION SELECT 2) UNION SELECT 3', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('EXPLAIN SELECT 1'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('DECLARE c CURSOR FOR SELECT 1'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('COPY plain TO STDOUT'); \echo :SQLSTATE
-- what follows EXPLAIN's own options is no query
SELECT node_id FROM io_probe_explain('(ANALYZE) SELECT 1'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT $1'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT * FROM nothing'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT 1 / (id - id) FROM plain', true); \echo :SQLSTATE
-- plans have a limit, and a message of their own for it
SELECT string_agg('SELECT * FROM (', NULL) || 'TABLE plain' || string_agg(') AS p' || i || ' LIMIT 10', NULL) AS deep
  FROM generate_series(1, 70) AS i \gset
SELECT node_id FROM io_probe_explain(:'deep'); \echo :SQLSTATE
-- writing, in all its forms
SELECT node_id FROM io_probe_explain('INSERT INTO plain VALUES (0)', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('UPDATE plain SET id = 0', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('DELETE FROM plain', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('MERGE INTO plain p USING plain q ON p.id = q.id WHEN MATCHED THEN DELETE', true);
\echo :SQLSTATE
SELECT node_id FROM io_probe_explain('WITH d AS (DELETE FROM plain RETURNING 1) TABLE d', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT id FROM plain FOR UPDATE', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain('SELECT writer()', true); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain($$SELECT nextval('numbers')$$, true); \echo :SQLSTATE
-- nor can the query give itself the right
SELECT node_id FROM io_probe_explain($$SELECT set_config('transaction_read_only', 'off', true)$$, true); \echo :SQLSTATE
SELECT count(*) FROM plain;

-- plans
SELECT node_id FROM io_probe_explain_json(NULL); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_json('1'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_json('[]'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_json('[{"Plan": {}}]'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_json('[{"Plan": {}}, {"Plan": {}}]'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_json('{"Plan": {"Node Type": "Result", "Actual Loops": -1}}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_json('{"Plan": {"Node Type": "Result", "Plans": [1]}}'); \echo :SQLSTATE
SELECT node_id FROM io_probe_explain_json((repeat('[', 1000) || repeat(']', 1000))::json); \echo :SQLSTATE
SELECT node_id FROM (SELECT string_agg('{"Node Type": "Result"}', ',') FROM generate_series(1, 20000)) AS nodes(list),
  io_probe_explain_json(format('{"Plan": {"Node Type": "Append", "Plans": [%s]}}', list)::json); \echo :SQLSTATE
-- what the server's json accepts and a plan never holds
\set VERBOSITY sqlstate
SELECT node_id FROM io_probe_explain_json('{"Plan": {"Node Type": "Result", "Plan Rows": 1e400}}');
SELECT node_id FROM io_probe_explain_json('{"Plan": {"Node Type": "\ud800"}}');
\set VERBOSITY default

-- the session goes on
SELECT path, complete FROM io_probe_seqscan('plain', '{os}');
SELECT path, complete FROM io_probe_random('plain', '{os}');
SET pg_io_probe.scratch_reserve = 0;
SELECT section FROM io_probe_sync(duration => '1 ms', sections => '{no_sync}');

SET client_min_messages = warning;
DROP TABLE plain, parted CASCADE;
DROP TYPE composite;
DROP SEQUENCE numbers;
DROP FUNCTION writer;
DROP FOREIGN DATA WRAPPER nowhere CASCADE;
