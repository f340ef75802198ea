-- The examples of examples.md, in their order, on a table of 1 GiB that this makes:
--
--     psql -X -d DATABASE -f docs/examples.sql
--
-- as a superuser, in a database that has nothing else in it, on a server of version 15 to 18 with the extension
-- installed. It takes five minutes and 3 GiB. Nothing is set for longer than the session, and no other table is read; at the
-- end it drops what it made. What it can't do by itself it leaves out, unless it is told:
--     -v candidate=DIRECTORY   an empty directory of the server's user on another disk (example 4)
--     -v standby='host=… …'    a standby of this server (example 9; takes dblink)
--     RESTART='pg_ctl …'       in the environment: a command that restarts the server (example 6)

\set ON_ERROR_STOP on
\set QUIET on
\pset null ''
\pset footer off
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
CREATE EXTENSION IF NOT EXISTS pg_io_probe;
-- Breaks long texts into lines.
CREATE FUNCTION wrap(text, integer DEFAULT 90) RETURNS text LANGUAGE sql
  RETURN rtrim(regexp_replace($1, '(.{1,' || $2 || '})( |$)', E'\\1\n', 'g'), E'\n');
CREATE TABLE orders (id bigint, customer_id int, placed_at timestamptz, total numeric(10,2), note text);
INSERT INTO orders
SELECT i, hashint4(i) & 524287, timestamptz '2025-01-01' + i * interval '3 s', (i % 100000) / 100.0, md5(i::text)
  FROM generate_series(1, 10000000) AS i;
CREATE INDEX orders_id ON orders (id);
CREATE INDEX orders_customer_id ON orders (customer_id);
CREATE INDEX orders_placed_at ON orders (placed_at);
VACUUM (FREEZE, ANALYZE) orders;
CHECKPOINT;
-- So that the device has written all of it.
SELECT pg_sleep(15) \g /dev/null

-- 1. Is this storage as fast as promised?

\echo == device
SELECT object, spcname, device, scheduler, read_ahead_kb AS ra_kb, rotational, write_cache, fs_type, mount_point
  FROM io_probe_device_full();

\echo == seqscan
SELECT path, mib_s, block_us, device_pct, cold, rareq_kb, aqu_sz, r_await_ms, util_pct
  FROM io_probe_seqscan_full('orders', cold => true);

\echo == depth
SELECT depth, iops, mib_s, lat_us, p99_us, best
  FROM io_probe_depth_full('orders', duration => '1 s');

-- 2. A slow query: is it the disk?

\echo == times
CREATE TABLE times AS SELECT * FROM io_probe_page_cost('orders', cold => true);
SELECT tier, pattern, density, depth, block_us, ci_low, ci_high
  FROM times WHERE pattern <> 'sparse' AND block_us IS NOT NULL OR depth = 16;

\echo == explain
SET track_io_timing = on;
SELECT FROM io_probe_evict('orders') AS t, io_probe_evict('orders_customer_id') AS i \g /dev/null
SELECT node_type, access, shared_blks_hit AS hit, shared_blks_read AS read, round(self_ms::numeric, 1) AS self_ms,
       round(io_ms::numeric, 1) AS io_ms, round(os_ms::numeric, 1) AS os_ms,
       round(device_ms::numeric, 1) AS device_ms
  FROM io_probe_explain_full($$ SELECT customer_id, sum(total) FROM orders
                            WHERE customer_id BETWEEN 1000 AND 1999 GROUP BY customer_id $$, true,
                        jsonb_build_object('page_cost', (SELECT jsonb_agg(t) FROM times AS t)));

\echo == explain_again
SELECT node_type, access, shared_blks_hit AS hit, shared_blks_read AS read, round(self_ms::numeric, 1) AS self_ms,
       round(io_ms::numeric, 1) AS io_ms, round(os_ms::numeric, 1) AS os_ms,
       round(device_ms::numeric, 1) AS device_ms
  FROM io_probe_explain_full($$ SELECT customer_id, sum(total) FROM orders
                            WHERE customer_id BETWEEN 1000 AND 1999 GROUP BY customer_id $$, true,
                        jsonb_build_object('page_cost', (SELECT jsonb_agg(t) FROM times AS t)));

\echo == iostat_query
SELECT FROM io_probe_evict('orders') AS t, io_probe_evict('orders_customer_id') AS i \g /dev/null
SELECT device, elapsed_ms, r_s, rmib_s, rareq_kb, aqu_sz, r_await_ms, util_pct, cpu_idle_pct + cpu_iowait_pct AS cpu_free_pct,
       query_ms, shared_blks_read AS read
  FROM io_probe_iostat_query_full($$ SELECT customer_id, sum(total) FROM orders
                                 WHERE customer_id BETWEEN 1000 AND 1999 GROUP BY customer_id $$, '100 ms');

-- 3. Which random_page_cost and effective_io_concurrency?

\echo == recommend
CREATE TABLE advice AS
SELECT * FROM io_probe_recommend('orders', cold => true,
                                 settings => '{random_page_cost,seq_page_cost,effective_io_concurrency}');
SELECT setting, current, recommended, low, high, applies, wrap(statement, 50) AS statement FROM advice;

\echo == why
SELECT setting, wrap(why) AS why FROM advice;

\echo == evidence
SELECT e.key, e.value FROM advice, jsonb_each(evidence) AS e
 WHERE setting = 'random_page_cost'
   AND key IN ('sequential_us', 'random_us', 'os_random_us', 'regret', 'regret_in_force', 'bitmap_crossing_pct');

\echo == plan_before
SELECT FROM io_probe_evict('orders') AS t, io_probe_evict('orders_customer_id') AS i \g /dev/null
SELECT node_type, indexid, total_cost, shared_blks_read AS read, round(total_ms::numeric) AS total_ms
  FROM io_probe_explain_full('SELECT sum(total) FROM orders WHERE customer_id < 20000', true);

\echo == plan_after
SELECT FROM io_probe_evict('orders') AS t, io_probe_evict('orders_customer_id') AS i \g /dev/null
SELECT set_config(setting, recommended, false) FROM advice WHERE recommended <> current \g /dev/null
SELECT node_type, indexid, total_cost, shared_blks_read AS read, round(total_ms::numeric) AS total_ms
  FROM io_probe_explain_full('SELECT sum(total) FROM orders WHERE customer_id < 20000', true);
RESET random_page_cost;
RESET seq_page_cost;
RESET effective_io_concurrency;

-- 4. Commits are slow.

\echo == sync
SELECT method, write_kb, ops_s, p50_us, p99_us, in_use, write_cache, fua
  FROM io_probe_sync_full(sections => '{wal_segment}', duration => '1 s') WHERE write_kb IN (8, 64);

\if :{?candidate}
\echo == candidate
CREATE TABLESPACE candidate LOCATION :'candidate';
SELECT method, round(wal.ops_s) AS ops_per_s_wal, round(other.ops_s) AS ops_per_s_candidate,
       wal.p99_us AS p99_wal, other.p99_us AS p99_candidate, wal.in_use
  FROM io_probe_sync(sections => '{wal_segment}', duration => '1 s') AS wal
  JOIN io_probe_sync('candidate', sections => '{wal_segment}', duration => '1 s') AS other
       USING (method, write_kb) WHERE write_kb = 8;
DROP TABLESPACE candidate;
\endif

\echo == commit_delay
SELECT delay AS commit_delay, s.ops_s AS commits_per_s, s.p50_us, s.p99_us,
       round(1.0 * s.ops / s.flushes, 1) AS commits_per_flush
  FROM unnest('{0,50,100,200,500}'::int[]) AS delay,
       io_probe_sync_full(sections => '{wal_segment}', depth => 16, duration => '300 ms',
                     options => jsonb_build_object('commit_delay', delay, 'commit_bytes', 300)) AS s
 WHERE s.current AND s.write_kb = 8;

-- 5. Readahead without root.

\echo == readahead
SELECT window_kb, mode, mib_s, ci_low, block_us, ci_high, rareq_kb, aqu_sz, best
  FROM io_probe_readahead_full('orders', duration => '1 s');

\echo == readahead_lines
SELECT window_kb, blockdev_setra, udev_rule
  FROM io_probe_readahead_full('orders', '{128,1024,4096}', duration => '1 s') WHERE best;

-- 6. After a restart: how warm is the cache?

\! eval "${RESTART:-true}" >/dev/null
\connect
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;

\echo == cache
SELECT relation, pg_size_pretty(size) AS size, round(shared_pct::numeric, 1) AS shared_pct,
       round(os_pct::numeric, 1) AS os_pct
  FROM (SELECT oid::regclass AS relation, pg_relation_size(oid) AS size FROM pg_class
         WHERE relkind IN ('r', 'i', 'm', 't') ORDER BY size DESC LIMIT 5) AS largest,
       LATERAL io_probe_cache(relation) WHERE fork = 'main';

-- 7. Did the change change anything?

\echo == record
SELECT count(io_probe_record('seqscan', 'orders', '{"paths": ["server"], "cold": true, "options": {"max_bytes": 268435456}}',
                             'before'))
  FROM generate_series(1, 12);

\echo == after
SET io_combine_limit = '8kB';   -- stands for the upgrade; PostgreSQL 17 and later
SELECT io_probe_record('seqscan', 'orders', '{"paths": ["server"], "cold": true, "options": {"max_bytes": 268435456}}', 'after')
       AS run;

\echo == changed
SELECT probe, object, item, metric, before, now, ratio, verdict, noise_pct, runs FROM io_probe_changes();

\echo == compare
SELECT count(io_probe_record('seqscan', 'orders', '{"paths": ["server"], "cold": true, "options": {"max_bytes": 268435456}}',
                             'after'))
  FROM generate_series(1, 11) \g /dev/null
SELECT item, metric, unit, a, b, ratio, noise_pct, runs, verdict, a_setting, b_setting
  FROM io_probe_compare('before', 'after');
RESET io_combine_limit;

-- 8. The server is slow now, and must not be made slower.

\echo == ping
SELECT op, served_by, count(*), min(time_us), percentile_cont(0.5) WITHIN GROUP (ORDER BY time_us) AS median, max(time_us)
  FROM io_probe_ping_full('orders', count => 50, every => '20 ms') WHERE NOT warmup GROUP BY op, served_by;

\echo == limited
SELECT path, iops, p50_us, p99_us, response_p99_us, blks, complete, status, wrap(notes::text, 40) AS notes
  FROM io_probe_random_full('orders', '{direct}', '2 s', options => '{"max_iops": 100, "max_p99": "5ms"}');

\echo == p99
SELECT path, p50_us, p99_us, blks, round(elapsed_ms) AS elapsed_ms, complete, status, wrap(notes::text, 40) AS notes
  FROM io_probe_random_full('orders', '{direct}', '2 s', options => '{"max_p99": "40us"}');

\echo == busy
SET pg_io_probe.max_busy_pct = 20;
-- Somebody else's work, for the sake of the example.
\setenv PGDATABASE :DBNAME
\setenv PGHOST :HOST
\setenv PGPORT :PORT
\setenv PGUSER :USER
\! (for n in 1 2; do psql -Xqc "SELECT io_probe_evict('orders')" -c 'SELECT max(note) FROM orders'; done) >/dev/null & sleep 1
\set ON_ERROR_STOP off
SELECT path, mib_s FROM io_probe_seqscan('orders', options => '{"max_mib_s": 20}');
\set ON_ERROR_STOP on
RESET pg_io_probe.max_busy_pct;
\! sleep 5

-- 9. A standby, or another server.

\echo == measure
SELECT result->>'probe' AS probe, result->>'status' AS status, result->'rows'->0->>'iops' AS iops, length(result::text) AS bytes
  FROM io_probe_measure('random', 'orders', '{"paths": ["direct"], "duration": "1 s"}') AS result;

\if :{?standby}
\echo == standby
CREATE EXTENSION dblink;
SELECT io_probe_import(result, 'standby') AS run
  FROM dblink(:'standby', $$ SELECT io_probe_measure('random', 'orders', '{"paths": ["direct"], "duration": "1 s"}') $$)
       AS node (result jsonb);
DROP EXTENSION dblink;
\else
SELECT io_probe_import(io_probe_measure('random', 'orders', '{"paths": ["direct"], "duration": "1 s"}'), 'standby') \g /dev/null
\endif
\echo == primary
SELECT io_probe_record('random', 'orders', '{"paths": ["direct"], "duration": "1 s"}', 'primary') AS run;
SELECT r.label, r.in_recovery, r.server_version, h.iops, h.p50_us, h.p99_us
  FROM io_probe_random_history AS h JOIN io_probe_runs AS r ON r.id = run_id WHERE r.label IN ('primary', 'standby');

-- 10. What can this server do?

\echo == check
SELECT item, status, wrap(value, 40) AS value, wrap(what_to_do, 50) AS what_to_do
  FROM io_probe_check() WHERE item !~ '^(EXECUTE|pg_io_probe)';

DROP TABLE orders, times, advice;
DROP FUNCTION wrap;
SELECT count(io_probe_prune('0')) \g /dev/null
