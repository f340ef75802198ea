--
-- io_probe_page_cost: a row for each way to read a block, and one for the tuple
--
SET wal_skip_threshold = 0;
-- past shared buffers, but in the OS cache
CREATE TABLE priced (id int, filler text) WITH (autovacuum_enabled = off);
INSERT INTO priced SELECT i, repeat('x', 900) FROM generate_series(1, 90000) i;
VACUUM FULL priced;
CREATE INDEX priced_id ON priced (id);
ANALYZE priced;
CREATE TABLE priced_empty (id int);
CREATE TABLE priced_single AS SELECT 1 AS id;
CREATE TEMP TABLE priced_temp AS SELECT id, repeat('x', 900) FROM generate_series(1, 10000) AS id;
CHECKPOINT;
SELECT current_setting('effective_io_concurrency') AS in_force \gset
CREATE FUNCTION cached(name regclass, OUT os bigint, OUT shared bigint) LANGUAGE sql AS
  $$ SELECT os_cached_bytes, shared_blks FROM io_probe_cache(name) $$;

-- with leave to evict all can be measured
CREATE TEMP TABLE held AS SELECT * FROM cached('priced');
CREATE TEMP TABLE result AS SELECT 'cold' AS run, * FROM
  io_probe_page_cost_full('priced', duration => '4 s', cold => true, densities => '{0.1,1}', concurrencies => '{16,0}', seed => 7) WITH ORDINALITY;
SELECT tier, pattern, density, depth FROM result ORDER BY ordinality;
SELECT tier, pattern, depth, status, notes FROM result WHERE block_us IS NULL AND device IS NOT NULL;
-- what was not cached is dropped again; in shared buffers are a few rings, and what the tuples were counted in
SELECT now.os <= held.os AS os, now.shared <= held.shared + 1024 AS shared FROM held, cached('priced') AS now;

-- a table that is cached is left so: of the device only single reads past the cache are measured, and have a row
SET client_min_messages = warning;
DO $$
DECLARE
  before bigint;
BEGIN
  FOR attempt IN 1..3 LOOP -- the kernel may take back a page
    DROP TABLE IF EXISTS pg_temp.kept;
    PERFORM io_probe_seqscan_full('priced', '{os}');
    before := (cached('priced')).os;
    CREATE TEMP TABLE kept AS SELECT * FROM io_probe_page_cost_full('priced', duration => '3 s', densities => '{1}', concurrencies => '{1}');
    EXIT WHEN (cached('priced')).os >= before AND NOT EXISTS (SELECT FROM kept WHERE tier = 'device' AND pattern <> 'random');
    ASSERT attempt < 3, 'evicted';
  END LOOP;
END $$;
RESET client_min_messages;
SELECT tier, pattern, block_us IS NOT NULL AS time, blks > 0 AS blks, status, os_pct,
       notes::text LIKE '%these are reads past it (O_DIRECT)%' AS past_cache FROM kept;
INSERT INTO result SELECT 'cached', * FROM kept, generate_series(1, 1);

-- rows to judge: by default, under limits, with hardly any time, of an index, from the cache
INSERT INTO result SELECT 'default', * FROM io_probe_page_cost_full('priced', duration => '500 ms', cold => true) WITH ORDINALITY;
SELECT depth, array_agg(density ORDER BY ordinality) FROM result
  WHERE run = 'default' AND pattern = 'sparse' AND depth IN (0, 16, 64, 128)
  GROUP BY depth ORDER BY depth;
SELECT count(*) AS in_force FROM result WHERE run = 'default' AND pattern = 'sparse' AND depth::text = :'in_force';
INSERT INTO result SELECT 'brief', * FROM io_probe_page_cost_full('priced', duration => '1 ms', cold => true, densities => '{0.5}', concurrencies => '{1}') WITH ORDINALITY;
INSERT INTO result SELECT 'slow', * FROM io_probe_page_cost_full('priced', duration => '2 s', cold => true, densities => '{1}', concurrencies => '{1}',
  options => '{"max_mib_s": 6, "precision": 0.9, "max_iops": null, "wait": true}') WITH ORDINALITY;
INSERT INTO result SELECT 'bytes', * FROM io_probe_page_cost_full('priced', duration => '5 s', cold => true, densities => '{1}', concurrencies => '{1}',
  options => '{"max_bytes": 100000}') WITH ORDINALITY;
INSERT INTO result SELECT 'index', * FROM io_probe_page_cost_full('priced_id', duration => '1 s', cold => true, densities => '{1}', concurrencies => '{1}') WITH ORDINALITY;
INSERT INTO result SELECT 'temp', * FROM io_probe_page_cost_full('priced_temp', duration => '300 ms', cold => true, densities => '{1}', concurrencies => '{1}') WITH ORDINALITY;
-- no densities or no concurrencies: no such rows
SELECT DISTINCT pattern FROM io_probe_page_cost_full('priced', duration => '20 ms', densities => '{}') ORDER BY 1;
SELECT DISTINCT pattern FROM io_probe_page_cost_full('priced', duration => '20 ms', concurrencies => '{}') ORDER BY 1;
-- each once, ascending; NULLs stand for the defaults
SELECT density, depth FROM io_probe_page_cost_full('priced', duration => '20 ms', densities => '{1,0.25,1}', concurrencies => '{3,2,3}')
  WHERE pattern = 'sparse';
SELECT count(*) BETWEEN 34 AND 48 AS rows, count(DISTINCT seed) AS seeds
  FROM io_probe_page_cost_full('priced', duration => '20 ms', cold => NULL, densities => NULL, concurrencies => NULL, seed => NULL, options => NULL);
-- the usual concurrencies give way to the cap
SET pg_io_probe.max_depth = 16;
SELECT DISTINCT depth FROM io_probe_page_cost_full('priced', duration => '20 ms', densities => '{1}')
  WHERE pattern = 'sparse' AND depth IN (0, 16, 64, 128) ORDER BY depth;
RESET pg_io_probe.max_depth;

-- a time is over 0, and within its interval; without one there are notes
SELECT run, tier, pattern, block_us, ci_low, ci_high FROM result WHERE block_us <= 0
  OR NOT block_us BETWEEN ci_low AND ci_high OR ci_low < 0 OR num_nulls(ci_low, ci_high) = 1
  OR ci_low IS NOT NULL AND block_us IS NULL;
SELECT run, tier, pattern, status, notes FROM result WHERE block_us IS NULL AND (status <> 'partial' OR notes = '{}')
  OR status NOT IN ('ok', 'partial') OR block_us IS NOT NULL AND blks <= 0 OR turns < 0 OR blks < 0;
SELECT run, tier, pattern FROM result WHERE block_us IS NOT NULL AND turns = 0
  OR tuple_us IS NOT NULL AND pattern <> 'tuple' OR tuple_us > block_us;
-- what came from the device was not cached; over many turns shared buffers are faster than the OS cache, and that than the device
SELECT run, tier, pattern, os_pct FROM result WHERE os_pct NOT BETWEEN 0 AND CASE tier WHEN 'device' THEN 1 ELSE 100 END
  OR tier IN ('shared', 'os') AND os_pct <> 100 OR tier = 'cpu' AND os_pct IS NOT NULL;
SELECT run FROM result WHERE pattern = 'random' AND run NOT IN ('slow', 'brief', 'bytes') GROUP BY run
  HAVING min(turns) FILTER (WHERE tier IN ('shared', 'os')) >= 15
         AND NOT max(block_us) FILTER (WHERE tier = 'shared') < max(block_us) FILTER (WHERE tier = 'os')
      OR min(turns) FILTER (WHERE tier IN ('os', 'device')) >= 15
         AND NOT max(block_us) FILTER (WHERE tier = 'os') < max(block_us) FILTER (WHERE tier = 'device');
-- the tuples of the blocks that were counted
SELECT tuple_us > 0 AS per_tuple, round(block_us / tuple_us) AS tuples_per_block, blks > 0 AS blks, status
  FROM result WHERE run = 'cold' AND pattern = 'tuple';
SELECT run, tuple_us, status, notes FROM result WHERE run = 'index' AND pattern = 'tuple';
-- limits, and what they do to the rows
SELECT DISTINCT run, notes::text LIKE '%rate-limited: with pauses between turns%' AS paused FROM result
  WHERE tier <> 'cpu' AND run IN ('slow', 'brief') ORDER BY run;
SELECT bool_and(status = 'partial' OR block_us IS NOT NULL) AS told, bool_or(notes::text LIKE '%byte%' OR notes::text LIKE '%max_bytes%') AS why
  FROM result WHERE run = 'bytes' AND tier = 'device';
-- identity, seed, and the device that io_probe_device tells
SELECT DISTINCT relid, schemaname = current_schema AS own_schema, relname, seed = 7 AS seven, count(DISTINCT (seed, started_at)) AS calls
  FROM result WHERE run = 'cold' GROUP BY 1, 2, 3, 4;
SELECT run FROM result WHERE run <> 'temp' AND (device, read_ahead_kb) IS DISTINCT FROM
  (SELECT (string_agg(d.device, ','), min(d.read_ahead_kb)) FROM io_probe_device_full() d
   WHERE d.object = 'tablespace' AND d.spcname = result.spcname);

-- the times are remembered for what explains
SET client_min_messages = warning;
SELECT os_ms > 0 AS os, device_ms > 0 AS device
  FROM io_probe_explain_full('SELECT count(*) FROM priced', true) WHERE node_type = 'Seq Scan';
RESET client_min_messages;
-- calls beside others, and all calls of a statement share pg_io_probe.max_duration
SELECT r.name, count(*) FROM (VALUES ('priced'), ('priced_single'), ('priced')) AS r(name),
  LATERAL io_probe_page_cost_full(r.name::regclass, duration => '30 ms', cold => true, densities => '{1}', concurrencies => '{1}') AS c GROUP BY 1 ORDER BY 1;
SET pg_io_probe.max_duration = '50ms';
WITH first AS MATERIALIZED (SELECT max(depth) AS depth FROM io_probe_page_cost_full('priced', duration => '50 ms', cold => true, densities => '{1}', concurrencies => '{1}'))
SELECT count(*), bool_and(c.status = 'partial') AS partial,
       bool_and('stopped: this statement has used up pg_io_probe.max_duration' = ANY (c.notes)) AS why
  FROM first, io_probe_page_cost_full('priced', duration => '40 ms', cold => true, densities => '{1}', concurrencies => ARRAY[first.depth]) AS c WHERE tier = 'device';
RESET pg_io_probe.max_duration;

-- relations with nothing to measure are no error
SELECT tier, pattern, block_us, blks, status, notes FROM io_probe_page_cost_full('priced_empty', duration => '50 ms', cold => true, densities => '{1}', concurrencies => '{1}');
-- one block can be neither fetched at random nor with gaps
SELECT tier, pattern, block_us, status, notes <> '{}' AS why
  FROM io_probe_page_cost_full('priced_single', duration => '50 ms', cold => true, densities => '{1}', concurrencies => '{1}') WHERE pattern IN ('random', 'sparse') AND tier = 'device';
SELECT tier, pattern, block_us, tuple_us, status, notes
  FROM io_probe_page_cost_full('priced_id', duration => '50 ms', cold => true, densities => '{1}', concurrencies => '{1}') WHERE tier = 'cpu';

-- bad input; after a refusal comes the SQLSTATE
SELECT tier FROM io_probe_page_cost_full(NULL); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full(0); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('pg_tables'); \echo :SQLSTATE
CREATE TABLE priced_parted (id int) PARTITION BY RANGE (id);
SELECT tier FROM io_probe_page_cost_full('priced_parted'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', densities => '{0.5,0}'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', densities => '{-0.5}'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', densities => '{1.0001}'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', densities => '{NaN}'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', densities => '{Infinity}'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', densities => '{0.5,NULL}'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', densities => array_fill(0.5, '{17}')); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', concurrencies => '{1,-1}'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', concurrencies => '{1,NULL}'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', concurrencies => array_fill(1, '{17}')); \echo :SQLSTATE
SET pg_io_probe.max_depth = 5;
SELECT tier FROM io_probe_page_cost_full('priced', concurrencies => '{1,6}'); \echo :SQLSTATE
RESET pg_io_probe.max_depth;
SELECT tier FROM io_probe_page_cost_full('priced', concurrencies => '{2147483647}'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', duration => '-1 s'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', duration => '0'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', duration => '1 month'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', options => '{"depth": 1}'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', options => '{"max_bytes": 0}'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', options => '{"precision": -1}'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced', options => '[]'); \echo :SQLSTATE

-- a statement that is cancelled in the middle leaves no lock, and the settings as they were
CREATE TEMP TABLE settings_before AS SELECT name, setting, source FROM pg_settings WHERE name <> 'statement_timeout';
SET statement_timeout = '150ms';
\set VERBOSITY sqlstate
SELECT tier FROM io_probe_page_cost_full('priced', duration => '10 s', cold => true);
\set VERBOSITY default
RESET statement_timeout;
SELECT pid FROM io_probe_progress();
SELECT name, b.setting, s.setting FROM settings_before AS b FULL JOIN pg_settings AS s USING (name)
  WHERE (b.setting, b.source) IS DISTINCT FROM (s.setting, s.source) AND name <> 'statement_timeout';

-- who may
CREATE ROLE regress_io_probe_pricer;
SET ROLE regress_io_probe_pricer;
SELECT tier FROM io_probe_page_cost_full('priced'); \echo :SQLSTATE
RESET ROLE;
GRANT EXECUTE ON FUNCTION io_probe_page_cost, io_probe_page_cost_full TO regress_io_probe_pricer;
GRANT SELECT (id) ON priced TO regress_io_probe_pricer;
SET ROLE regress_io_probe_pricer;
SELECT tier FROM io_probe_page_cost_full('priced'); \echo :SQLSTATE
SELECT tier FROM io_probe_page_cost_full('priced_id'); \echo :SQLSTATE
RESET ROLE;
GRANT SELECT ON priced TO regress_io_probe_pricer;
SET ROLE regress_io_probe_pricer;
SELECT tier FROM io_probe_page_cost_full('priced', cold => true); \echo :SQLSTATE
SELECT pattern, tuple_us > 0 AS per_tuple FROM io_probe_page_cost_full('priced', duration => '1 s', densities => '{1}', concurrencies => '{1}')
  WHERE tier = 'cpu';
RESET ROLE;
-- row-level security hides rows, so they are not counted; nor is a policy's function called
CREATE FUNCTION told() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$;
CREATE POLICY told ON priced USING (told());
ALTER TABLE priced ENABLE ROW LEVEL SECURITY;
SET ROLE regress_io_probe_pricer;
SELECT pattern, block_us, status, notes FROM io_probe_page_cost_full('priced', duration => '50 ms', densities => '{1}', concurrencies => '{1}')
  WHERE tier = 'cpu';
RESET ROLE;
ALTER TABLE priced DISABLE ROW LEVEL SECURITY;
GRANT EXECUTE ON FUNCTION io_probe_evict TO regress_io_probe_pricer;
SET ROLE regress_io_probe_pricer;
SELECT count(*) FROM io_probe_page_cost_full('priced', duration => '20 ms', cold => true, densities => '{1}', concurrencies => '{1}');
RESET ROLE;
DROP OWNED BY regress_io_probe_pricer;
DROP ROLE regress_io_probe_pricer;

SET client_min_messages = warning;
DROP TABLE priced, priced_empty, priced_single, priced_temp, priced_parted, held, kept, result, settings_before;
DROP FUNCTION told, cached;
-- nor are tuples timed that have to be read for it, here into the session's own buffers
\c -
SET temp_buffers = 100;
CREATE TEMP TABLE priced_temp (id int, filler text);
INSERT INTO priced_temp SELECT i, repeat('x', 900) FROM generate_series(1, 10000) i;
SET client_min_messages = warning;
SELECT block_us, notes FROM io_probe_page_cost_full('priced_temp', duration => '100 ms', densities => '{}', concurrencies => '{}') WHERE pattern = 'tuple';
