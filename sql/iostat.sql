--
-- io_probe_iostat, io_probe_iostat_query. What the machine can't tell is NULL, without a device there is one row a sample
--
CREATE TABLE watched (id int, filler text) WITH (autovacuum_enabled = off, parallel_workers = 2);
ALTER TABLE watched ALTER filler SET STORAGE PLAIN;
INSERT INTO watched SELECT i, repeat('x', 2000) FROM generate_series(1, 2000) i;
VACUUM ANALYZE watched;
CREATE SEQUENCE counted;
SET max_parallel_workers_per_gather = 0;

-- a row for each sample and device, the devices being those of io_probe_device
SELECT DISTINCT device FROM io_probe_iostat_full('10 ms', count => 2) EXCEPT SELECT device FROM io_probe_device_full();
SELECT DISTINCT device FROM io_probe_counters() EXCEPT SELECT device FROM io_probe_iostat_full('10 ms');
CREATE TEMP TABLE series AS SELECT * FROM io_probe_iostat_full('20 ms', count => 5) WITH ORDINALITY;
SELECT array_agg(sample ORDER BY ordinality) AS samples FROM series GROUP BY device LIMIT 1;
SELECT count(*) FROM io_probe_iostat_full('10 ms') WHERE sample <> 1;
-- they follow each other on a schedule: the last ends when all intervals are over, whatever was late
SELECT sum(elapsed_ms) >= 99.9 AS all_of_it, min(sampled_at) > statement_timestamp() - '1 min'::interval AS now,
       bool_and(elapsed_ms > 0) AS lengths
  FROM series WHERE device IS NOT DISTINCT FROM (SELECT min(device) FROM series);
SELECT device FROM series a JOIN series b USING (device) WHERE a.sample < b.sample AND a.sampled_at >= b.sampled_at;
-- figures fit each other
SELECT bool_and(status IN ('ok', 'unsupported')) AS known_status,
       bool_and((status = 'ok') = (util_pct IS NOT NULL)) AS status,
       bool_and(device IS NOT NULL OR status = 'unsupported') AS without_device,
       bool_and(status = 'ok' OR cardinality(notes) > 0) AS why,
       bool_and(util_pct >= 0 AND aqu_sz >= 0 AND r_s >= 0 AND w_s >= 0) IS NOT FALSE AS rates,
       bool_and((r_await_ms IS NULL) = (r_s = 0) AND (rareq_kb IS NULL) = (r_s = 0)
                AND (w_await_ms IS NULL) = (w_s = 0) AND (wareq_kb IS NULL) = (w_s = 0)
                AND (d_await_ms IS NULL) = (d_s = 0) AND (f_await_ms IS NULL) = (f_s = 0)) IS NOT FALSE AS ratios,
       bool_and(abs(r_s * rareq_kb / 1024 - rmib_s) <= 0.001 * rmib_s
                AND abs(w_s * wareq_kb / 1024 - wmib_s) <= 0.001 * wmib_s) IS NOT FALSE AS sizes,
       bool_and(abs(cpu_user_pct + cpu_system_pct + cpu_iowait_pct + cpu_idle_pct + cpu_steal_pct - 100) < 0.01)
         IS NOT FALSE AS cpu,
       bool_and(io_pressure_pct BETWEEN 0 AND 100 AND io_pressure_full_pct <= io_pressure_pct + 1) IS NOT FALSE
         AS pressure,
       bool_and(cgroup_rmib_s >= 0 AND cgroup_wmib_s >= 0) IS NOT FALSE AS cgroup
  FROM series;
-- a device by its name, also with the directory that its node is in
SELECT coalesce(min(device), '') AS any_device FROM io_probe_counters() \gset
SELECT count(*) = greatest(count(DISTINCT device), 1) AS once FROM io_probe_iostat_full('10 ms');
SELECT bool_and(device = :'any_device') IS NOT FALSE AS named FROM io_probe_iostat_full('10 ms', count => 2, options => jsonb_build_object('device', nullif(:'any_device', '')));
SELECT bool_and(device = :'any_device') IS NOT FALSE AS named
  FROM io_probe_iostat_full('10 ms', count => 1, options => jsonb_build_object('device', '/dev/' || nullif(:'any_device', '')));
-- nothing else is a device, least of all a file
\set VERBOSITY sqlstate
SELECT device FROM io_probe_iostat_full(options => '{"device": ""}');
SELECT device FROM io_probe_iostat_full(options => '{"device": "no such device"}');
SELECT device FROM io_probe_iostat_full(options => '{"device": ".."}');
SELECT device FROM io_probe_iostat_full(options => '{"device": "../../class/block"}');
SELECT device FROM io_probe_iostat_full(options => '{"device": "/dev/mapper/control"}');
SELECT device FROM io_probe_iostat_full(options => '{"device": "/etc/passwd"}');
SELECT device FROM io_probe_iostat_query_full('SELECT 1', options => '{"device": "/etc/passwd"}');
\set VERBOSITY default
DO $$
DECLARE hint text;
BEGIN
  PERFORM io_probe_iostat_full(options => '{"device": "no such device"}');
EXCEPTION WHEN invalid_parameter_value THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  RAISE NOTICE '%: %', SQLERRM, hint ~ '^The kernel''s names of the devices here are|^The kernel shows no device here';
END $$;
-- arguments
SELECT device FROM io_probe_iostat_full('9 ms');
SELECT device FROM io_probe_iostat_full('0');
SELECT device FROM io_probe_iostat_full('-1 s');
SELECT device FROM io_probe_iostat_full(count => 0);
SELECT device FROM io_probe_iostat_full('10 ms', count => 10001);
SELECT device FROM io_probe_iostat_full('10 ms', count => 2147483647);
SELECT device FROM io_probe_iostat_full(options => '{"interval": 1}');
SELECT device FROM io_probe_iostat_full('1 s', count => 61);
SELECT count(*) > 0 AS defaults FROM io_probe_iostat_full(NULL, count => NULL, options => NULL);
-- it shares the time of the statement with all other probes, and says when that was too little
SET pg_io_probe.max_duration = '1600ms';
SELECT every, count(*) > 0 AS rows, max(sample) AS samples,
       bool_or('stopped: this statement has used up pg_io_probe.max_duration' = ANY (notes)) AS why
  FROM unnest('{800 ms,1560 ms,400 ms}'::interval[]) WITH ORDINALITY AS u(every, turn), io_probe_iostat_full(every::text)
  WHERE status <> 'unsupported' OR device IS NULL GROUP BY turn, every ORDER BY turn;
RESET pg_io_probe.max_duration;

-- a query: its rows are discarded and counted, its own figures close the series
CREATE TEMP TABLE query AS
  SELECT * FROM io_probe_iostat_query_full('SELECT *, pg_sleep(0.0003) FROM watched', '20 ms') WITH ORDINALITY;
SELECT query_rows, elapsed_ms > 600 AS elapsed_ms,
       shared_blks_hit + shared_blks_read >= pg_relation_size('watched') / current_setting('block_size')::int AS blks,
       num_nulls(shared_blks_dirtied, shared_blks_written, local_blks_hit, local_blks_read, local_blks_written,
                 temp_blks_read, temp_blks_written, wal_bytes) AS nulls,
       num_nonnulls(device, sample, util_pct, r_s, cpu_user_pct, io_pressure_pct, cgroup_rmib_s) AS others,
       (device_bytes IS NULL) = (device_source IS NULL) AS source, status,
       ordinality = (SELECT max(ordinality) FROM query) AS last
  FROM query WHERE sample IS NULL;
SELECT num_nonnulls(query_rows, shared_blks_hit, wal_bytes, device_bytes, device_source) AS figures,
       bool_and(status IN ('ok', 'unsupported')) AS known_status, count(*) > 4 AS samples
  FROM query WHERE sample IS NOT NULL GROUP BY 1;
-- the samples span the query, without gaps
SELECT bool_and(span.elapsed_ms >= q.elapsed_ms * 0.9998) AS spans, bool_and(samples = last_sample) AS all_of_them
  FROM query q, (SELECT device, sum(elapsed_ms) AS elapsed_ms, count(*) AS samples, max(sample) AS last_sample FROM query
                 WHERE sample IS NOT NULL GROUP BY device) AS span
  WHERE q.sample IS NULL;
-- a short one is one sample
SELECT max(sample) AS samples, max(query_rows) AS rows FROM io_probe_iostat_query_full('VALUES (1), (2)');
SELECT max(sample) AS samples, max(query_rows) AS rows FROM io_probe_iostat_query_full('SELECT 1 WHERE false;', '1 year');
-- of one device
SELECT bool_and(device = :'any_device') IS NOT FALSE AS named
  FROM io_probe_iostat_query_full('SELECT 1', options => jsonb_build_object('device', nullif(:'any_device', '')));
-- blocks of temporary tables and files
CREATE TEMP TABLE own AS SELECT * FROM watched;
SELECT local_blks_hit + local_blks_read > 400 AS local, shared_blks_dirtied
  FROM io_probe_iostat_query_full('SELECT * FROM own') WHERE sample IS NULL;
SET work_mem = '64kB';
SELECT temp_blks_written > 400 AS written, temp_blks_read > 400 AS read
  FROM io_probe_iostat_query_full('SELECT * FROM watched ORDER BY filler, id DESC') WHERE sample IS NULL;
RESET work_mem;
-- what parallel workers fetch is in no account; their blocks are counted
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE FUNCTION scan_inside() RETURNS SETOF watched LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT * FROM watched;
END $$;
SELECT shared_blks_hit + shared_blks_read >= 400 AS blks, query_rows, device_bytes, device_source, notes
  FROM unnest('{SELECT * FROM watched,SELECT * FROM scan_inside()}'::text[]) AS q, io_probe_iostat_query_full(q)
  WHERE sample IS NULL;
SET client_min_messages = warning;
SELECT notes FROM io_probe_iostat_query_full('SELECT * FROM io_probe_explain_full(''SELECT * FROM watched'', true)')
  WHERE sample IS NULL;
RESET client_min_messages;
-- those of a plan that is only explained fetch nothing, nor do those of another query
SELECT count(*) FROM watched;
SELECT notes::text LIKE '%parallel%' AS parallel
  FROM io_probe_iostat_query_full('SELECT * FROM io_probe_explain_full(''SELECT * FROM watched'')') WHERE sample IS NULL;
SET max_parallel_workers_per_gather = 0;
SELECT notes::text LIKE '%parallel%' AS parallel FROM io_probe_iostat_query_full('SELECT * FROM watched')
  WHERE sample IS NULL;
-- a query that calls for another to be watched
SELECT max(query_rows) >= 2 AS rows
  FROM io_probe_iostat_query_full('SELECT * FROM io_probe_iostat_query_full(''SELECT 1'')');
-- a probe can be watched, under its own bounds
SELECT query_rows FROM io_probe_iostat_query_full('SELECT * FROM io_probe_seqscan_full(''watched'', ''{server,os}'')')
  WHERE sample IS NULL;
SELECT query_rows FROM io_probe_iostat_query_full('SELECT * FROM io_probe_seqscan_full(''watched'', duration => ''2 min'')');
SET pg_io_probe.max_duration = '50ms';
SELECT query_rows, elapsed_ms >= 200 AS longer FROM io_probe_iostat_query_full('SELECT pg_sleep(0.2)') WHERE sample IS NULL;
RESET pg_io_probe.max_duration;

-- its errors are its own
SELECT 1 FROM io_probe_iostat_query_full('SELECT 1/0'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('SELECT * FROM no_such_table'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('SELEC 1'); \echo :SQLSTATE
SET statement_timeout = '50ms';
SELECT 1 FROM io_probe_iostat_query_full('SELECT pg_sleep(60)'); \echo :SQLSTATE
RESET statement_timeout;
-- it reads, and nothing else
SELECT 1 FROM io_probe_iostat_query_full('INSERT INTO watched VALUES (0)'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('DELETE FROM watched RETURNING *'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('WITH gone AS (DELETE FROM watched RETURNING *) TABLE gone'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('SELECT * FROM watched FOR UPDATE'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('SELECT nextval(''counted'')'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('SELECT * INTO copied FROM watched'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('CREATE TABLE copied AS SELECT 1'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('EXPLAIN SELECT 1'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('COMMIT'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('SELECT 1; DROP TABLE watched'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full(''); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full(NULL); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('SELECT $1'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('SELECT 1', '9 ms'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('SELECT 1', options => '{"samples": 1}'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('SELECT 1', options => '{"device": 1}'); \echo :SQLSTATE
-- and what it changed for the session is undone
SELECT query_rows FROM io_probe_iostat_query_full('SELECT set_config(''work_mem'', ''77MB'', false)') WHERE sample IS NULL;
SHOW work_mem;
-- four calls may run within one another
CREATE FUNCTION nested(calls int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
  RETURN CASE calls WHEN 0 THEN 0 ELSE (SELECT sum(query_rows) FROM io_probe_iostat_query_full(format('SELECT nested(%s)', calls - 1))) END; END $$;
SELECT nested(4);
\set VERBOSITY terse
SELECT nested(5);
\set VERBOSITY default
SELECT nested(4);
DROP FUNCTION nested;
-- the transaction goes on, and may write
BEGIN;
SELECT query_rows FROM io_probe_iostat_query_full('SELECT 1') WHERE sample IS NULL;
SAVEPOINT before;
SELECT 1 FROM io_probe_iostat_query_full('SELECT 1/0');
ROLLBACK TO before;
INSERT INTO watched VALUES (0);
COMMIT;
SELECT count(*), (SELECT last_value FROM counted) AS last_value FROM watched;
-- nothing is left behind: no progress, no lock
SELECT count(*) FROM io_probe_progress();
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';

-- with the caller's rights
CREATE ROLE regress_io_probe_user;
GRANT EXECUTE ON FUNCTION io_probe_iostat_query, io_probe_iostat_query_full TO regress_io_probe_user;
SET ROLE regress_io_probe_user;
SELECT query_rows FROM io_probe_iostat_query_full('SELECT 1') WHERE sample IS NULL;
SELECT 1 FROM io_probe_iostat_query_full('SELECT * FROM watched'); \echo :SQLSTATE
SELECT 1 FROM io_probe_iostat_query_full('SELECT * FROM io_probe_iostat_full()'); \echo :SQLSTATE
RESET ROLE;
DROP OWNED BY regress_io_probe_user;
DROP ROLE regress_io_probe_user;
DROP FUNCTION scan_inside;
DROP SEQUENCE counted;
DROP TABLE watched;
