--
-- io_probe_recommend: page costs and concurrencies of a tablespace, by times and by what the planner picks
--
SET wal_skip_threshold = 0;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_io_probe_costs LOCATION '';
ALTER TABLESPACE regress_io_probe_costs SET (random_page_cost = 1.75, seq_page_cost = 1.25);
CREATE TABLE asked (id int, shuffled int, filler text) WITH (autovacuum_enabled = off);
INSERT INTO asked SELECT i, i::bigint * 7919 % 100000, repeat('x', 860) FROM generate_series(1, 100000) AS i;
VACUUM FULL asked;
CREATE INDEX asked_id ON asked (id);
CREATE INDEX asked_shuffled ON asked (shuffled);
VACUUM ANALYZE asked;
-- neither index nor statistics
CREATE TABLE asked_own (LIKE asked) WITH (autovacuum_enabled = off) TABLESPACE regress_io_probe_costs;
INSERT INTO asked_own SELECT * FROM asked WHERE id % 3 > 0;
VACUUM FULL asked_own;
-- past shared buffers
VACUUM FULL asked;
CHECKPOINT;
SELECT spcname AS own_tablespace FROM pg_database d JOIN pg_tablespace t ON t.oid = d.dattablespace
  WHERE datname = current_database() \gset
LOAD 'pg_io_probe';
LOAD 'plpgsql';
CREATE TEMP TABLE settings_before AS SELECT name, setting, source FROM pg_settings;
SELECT md5(pg_read_file('postgresql.auto.conf')) AS auto_before \gset
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN ' || query; END $$;

-- a row for each of the four, by each kind of cache and unit
CREATE TEMP TABLE result AS SELECT 'seq_page' AS unit, 'planned' AS cache, * FROM io_probe_recommend('asked', 'planned', 'seq_page', cold => true, duration => '12 s',
  settings => '{random_page_cost,seq_page_cost,effective_io_concurrency,maintenance_io_concurrency}') WITH ORDINALITY;
DO $$
DECLARE
  c text; u text;
BEGIN
  FOREACH c IN ARRAY '{cold,current,stats,planned}'::text[] LOOP
    FOREACH u IN ARRAY '{seq_page,cpu}'::text[] LOOP
      INSERT INTO result SELECT u, c, * FROM io_probe_recommend('asked', c, u,
        '{random_page_cost,seq_page_cost,effective_io_concurrency,maintenance_io_concurrency}', '1 s', true) WITH ORDINALITY
        WHERE (u, c) <> ('seq_page', 'planned');
    END LOOP;
  END LOOP;
END $$;
SELECT cache, unit, string_agg(setting, ',' ORDER BY ordinality) FROM result GROUP BY cache, unit ORDER BY cache, unit;
SELECT DISTINCT scope, name = :'own_tablespace' AS own, rel_used, applies FROM result;
-- with the time for it, all four
SELECT setting, recommended IS NOT NULL AS recommended, low IS NOT NULL AS low, high IS NOT NULL AS high FROM result
  WHERE unit = 'seq_page' AND cache = 'planned' ORDER BY ordinality;
-- within the interval; a random page costs no less than one in sequence; the unit stays as it is
SELECT cache, unit, setting, low, recommended, high FROM result WHERE NOT recommended::float8 BETWEEN low::float8 AND high::float8
  AND recommended <> current;
SELECT cache, unit FROM result WHERE setting = 'random_page_cost' AND recommended::float8 <
  (SELECT coalesce(recommended, current)::float8 FROM result AS s WHERE (s.cache, s.unit) = (result.cache, result.unit) AND setting = 'seq_page_cost');
SELECT cache, recommended = current AS unchanged, statement FROM result WHERE setting = 'seq_page_cost' AND unit = 'seq_page' ORDER BY cache;
SELECT cache, unit, setting, recommended, current, statement FROM result WHERE recommended IS NULL AND statement IS NOT NULL
  OR (statement IS NOT NULL) <> (recommended <> current) OR why IS NULL OR why = '' OR recommended::float8 < 0
  OR statement IS DISTINCT FROM format('ALTER TABLESPACE %I SET (%s = %s)', :'own_tablespace', setting, recommended) AND statement IS NOT NULL;
-- what it rests on
SELECT cache, unit, setting, k FROM result,
  unnest('{random_us,sequential_us,os_random_us,os_sequential_us,shared_us,tuple_us}'::text[]) AS k WHERE NOT evidence ? k;
SELECT cache, unit, evidence->'bitmap_crossing_pct' AS pct, evidence->'bitmap_crossing_ratio' AS ratio FROM result
  WHERE setting = 'random_page_cost' AND NOT ((evidence->>'bitmap_crossing_pct')::float8 BETWEEN 0 AND 100
    AND (evidence->>'bitmap_crossing_ratio')::float8 >= 3 OR evidence->'bitmap_crossing_pct' = 'null' AND evidence->'bitmap_crossing_ratio' = 'null');
SELECT cache, setting, k FROM result,
  unnest('{queries,tables,indexes,planner_ms,regret,regret_in_force,seq_page_cost,random_page_cost}'::text[]) AS k
  WHERE cache = 'planned' AND unit = 'seq_page' AND setting <> 'maintenance_io_concurrency' AND NOT evidence ? k;
SELECT DISTINCT (evidence->'queries')::int > 0 AS queries, evidence->'tables' AS tables, evidence->'indexes' AS indexes
  FROM result WHERE evidence ? 'queries';
-- no plan is better than the best, and what is recommended is no worse than what is set
SELECT cache, unit, evidence->'regret' AS regret, evidence->'regret_in_force' AS in_force FROM result WHERE evidence ? 'regret' AND NOT
  ((evidence->'regret'->>'cold')::float8 >= 0.999 AND (evidence->'regret'->>'warm')::float8 >= 0.999
   AND (evidence->'regret'->>'worst_cold')::float8 >= (evidence->'regret'->>'cold')::float8
   AND (evidence->'regret'->>'cold')::float8 * (evidence->'regret'->>'warm')::float8 <=
       1.01 * (evidence->'regret_in_force'->>'cold')::float8 * (evidence->'regret_in_force'->>'warm')::float8);
-- shares that a cache serves
SELECT cache, unit, setting, evidence FROM result WHERE (evidence ? 'random_hit_ratio') <> (cache IN ('current', 'stats'))
  OR (evidence->>'random_hit_ratio')::float8 NOT BETWEEN 0 AND 1 OR (evidence->>'sequential_hit_ratio')::float8 NOT BETWEEN 0 AND 1;

-- the planner knows nothing of a table without an index
SELECT recommended, statement, why FROM io_probe_recommend('asked_own', settings => '{random_page_cost}', cold => true, duration => '2 s');
-- nor of one without statistics
CREATE INDEX asked_own_shuffled ON asked_own (shuffled) TABLESPACE regress_io_probe_costs;
SELECT recommended, statement, why FROM io_probe_recommend('asked_own', settings => '{random_page_cost}', cold => true, duration => '2 s');
-- a tablespace with costs of its own: the planner is asked all the same
ANALYZE asked_own;
CREATE TEMP TABLE plans_before AS SELECT 'SELECT FROM asked_own WHERE shuffled < 3000' AS query, array_agg(p) AS plan
  FROM plan('SELECT FROM asked_own WHERE shuffled < 3000') AS p;
INSERT INTO result SELECT 'seq_page', 'own', * FROM io_probe_recommend('asked_own', cold => true, duration => '12 s',
  settings => '{random_page_cost,seq_page_cost}') WITH ORDINALITY;
SELECT name, setting, current, current_source, recommended IS NOT NULL AS recommended, (evidence->'queries')::int > 0 AS queries
  FROM result WHERE cache = 'own' ORDER BY ordinality;
SELECT setting, why FROM result WHERE cache = 'own' AND recommended IS NULL;
SELECT setting, statement FROM result WHERE cache = 'own' AND statement <>
  format('ALTER TABLESPACE regress_io_probe_costs SET (%s = %s)', setting, recommended);
SELECT b.plan = (SELECT array_agg(p) FROM plan(query) AS p) AS same_plan FROM plans_before AS b;
-- unless there is no other
VACUUM FULL asked_own;
DROP TABLE plans_before;
CREATE TEMP TABLE plans_before AS SELECT 'SELECT FROM asked_own WHERE shuffled < 3000' AS query, array_agg(p) AS plan
  FROM plan('SELECT FROM asked_own WHERE shuffled < 3000') AS p;
BEGIN;
ALTER TABLESPACE pg_default SET (random_page_cost = 4);
ALTER TABLESPACE pg_global SET (seq_page_cost = 1);
DO $$ BEGIN EXECUTE format('ALTER TABLESPACE %I SET (random_page_cost = 4)',
  (SELECT spcname FROM pg_database d JOIN pg_tablespace t ON t.oid = d.dattablespace WHERE datname = current_database())); END $$;
SELECT recommended, why FROM io_probe_recommend('asked_own', settings => '{random_page_cost}', cold => true, duration => '2 s');
ROLLBACK;
-- with hardly any time there is a reason
SELECT setting, recommended, statement, why <> '' AS why FROM io_probe_recommend('asked', cold => true, duration => '1 ms',
  settings => '{random_page_cost,effective_io_concurrency}');

-- nothing was changed: neither settings nor tablespaces, nor how the planner plans
SELECT name, b.setting, s.setting FROM settings_before AS b FULL JOIN pg_settings AS s USING (name)
  WHERE (b.setting, b.source) IS DISTINCT FROM (s.setting, s.source);
SELECT md5(pg_read_file('postgresql.auto.conf')) = :'auto_before' AS unchanged;
SELECT spcname, spcoptions FROM pg_tablespace WHERE spcoptions IS NOT NULL;
SELECT b.plan = (SELECT array_agg(p) FROM plan(query) AS p) AS same_plan FROM plans_before AS b;
-- not even by a call that ends while the planner is asked
SET statement_timeout = '1600ms';
DO $$ BEGIN PERFORM io_probe_recommend('asked_own', cold => true, duration => '1500 ms', unit => 'cpu');
EXCEPTION WHEN query_canceled THEN NULL; END $$;
RESET statement_timeout;
SELECT b.plan = (SELECT array_agg(p) FROM plan(query) AS p) AS same_plan FROM plans_before AS b;
SELECT name, b.setting, s.setting FROM settings_before AS b FULL JOIN pg_settings AS s USING (name)
  WHERE (b.setting, b.source) IS DISTINCT FROM (s.setting, s.source);

-- the caller's rights: what he may not read is not asked for, what is hidden from him is not known
VACUUM FULL asked;
CREATE ROLE regress_io_probe_asker;
GRANT EXECUTE ON FUNCTION io_probe_recommend, io_probe_evict TO regress_io_probe_asker;
GRANT SELECT ON asked TO regress_io_probe_asker;
SET ROLE regress_io_probe_asker;
SELECT setting FROM io_probe_recommend('asked_own');
SELECT evidence->'tables' AS tables, evidence->'indexes' AS indexes FROM
  io_probe_recommend(cold => true, settings => '{random_page_cost}', duration => '12 s') WHERE rel_used IS NOT NULL;
RESET ROLE;
CREATE FUNCTION tell() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$;
CREATE POLICY tell ON asked USING (tell());
ALTER TABLE asked ENABLE ROW LEVEL SECURITY;
SET ROLE regress_io_probe_asker;
SELECT rel_used, recommended, why ~ '^not all times could be measured: ' AS why FROM
  io_probe_recommend(cold => true, settings => '{random_page_cost}', duration => '1 s')
  WHERE rel_used IS NOT NULL;
RESET ROLE;
DROP OWNED BY regress_io_probe_asker;
DROP ROLE regress_io_probe_asker;

SET client_min_messages = warning;
DROP TABLE asked, asked_own, settings_before, plans_before, result;
DROP FUNCTION tell, plan;
DROP TABLESPACE regress_io_probe_costs;
