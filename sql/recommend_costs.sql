--
-- io_probe_recommend: page costs and concurrencies of a tablespace, by times and by what the planner picks
--
SET wal_skip_threshold = 0;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_io_probe_costs LOCATION '';
ALTER TABLESPACE regress_io_probe_costs SET (random_page_cost = 1.75, seq_page_cost = 1.25);
-- of the column mixed only the greatest tenth lies in order
CREATE TABLE asked (id int, shuffled int, mixed int, filler text) WITH (autovacuum_enabled = off);
INSERT INTO asked SELECT i, i::bigint * 7919 % 100000, CASE WHEN i > 90000 THEN i ELSE i::bigint * 7919 % 90000 END, repeat('x', 860)
  FROM generate_series(1, 100000) AS i;
VACUUM FULL asked;
CREATE INDEX asked_id ON asked (id);
CREATE INDEX asked_shuffled ON asked (shuffled);
CREATE INDEX asked_mixed ON asked (mixed DESC);
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
SET pg_io_probe.max_duration = '10min';
LOAD 'plpgsql';
-- (notices of statements are as the times are)
SET client_min_messages = warning;
CREATE TEMP TABLE settings_before AS SELECT name, setting, source FROM pg_settings;
SELECT md5(pg_read_file('postgresql.auto.conf')) AS auto_before \gset
-- beside others who are at work here the times may be too few, or too vague: several tries, each longer than the last
CREATE FUNCTION tries(rel regclass, settings text[], duration interval DEFAULT '8 s')
RETURNS SETOF io_probe_recommend_full_row LANGUAGE plpgsql AS $$
DECLARE
  found io_probe_recommend_full_row[];
BEGIN
  FOR n IN 1..5 LOOP
    found := ARRAY(SELECT r FROM io_probe_recommend_full(rel, settings => settings, duration => (duration * n)::text, cold => true) AS r);
    EXIT WHEN NOT EXISTS (SELECT FROM unnest(found) AS f WHERE f.recommended IS NULL AND f.why ~ 'interval|not all times|were not measured');
  END LOOP;
  RETURN QUERY SELECT * FROM unnest(found);
END $$;
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN ' || query; END $$;

-- a row for each of the three
CREATE TEMP TABLE result AS SELECT 'asked' AS run, t.* FROM tries('asked',
  '{random_page_cost,effective_io_concurrency,maintenance_io_concurrency}') WITH ORDINALITY AS t;
SELECT string_agg(setting, ',' ORDER BY ordinality) FROM result;
SELECT DISTINCT scope, name = :'own_tablespace' AS own, relid, applies FROM result;
-- with the time for it, all three; a device that is too busy for that is told
SELECT setting, num_nulls(recommended, low, high) = 0 OR recommended IS NULL AND why ~ 'interval|not all times|were not measured|too much to be sure'
  AS told FROM result ORDER BY ordinality;
-- within the interval
SELECT run, setting, low, recommended, high FROM result WHERE NOT recommended::float8 BETWEEN low::float8 AND high::float8
  AND recommended <> current;
SELECT run, setting, recommended, current, statement FROM result WHERE recommended IS NULL AND statement IS NOT NULL
  OR (statement IS NOT NULL) <> (recommended <> current) OR why IS NULL OR why = '' OR recommended::float8 < 0;
CREATE TEMP VIEW other_form AS SELECT run, setting, recommended, statement FROM result
  WHERE statement <> format('ALTER TABLESPACE %I SET (%s = %s)', name, setting, recommended);
TABLE other_form;
-- what it rests on
SELECT run, setting, k FROM result,
  unnest('{random_us,sequential_us,os_random_us,os_sequential_us,shared_us,tuple_us}'::text[]) AS k WHERE NOT evidence ? k;
SELECT setting, k FROM result,
  unnest('{queries,tables,indexes,planner_ms,regret,regret_corrected,regret_in_force,regret_in_force_corrected,seq_page_cost,random_page_cost}'::text[]) AS k
  WHERE setting <> 'maintenance_io_concurrency' AND NOT evidence ? k;
SELECT DISTINCT (evidence->'queries')::int > 0 AS queries, evidence->'tables' AS tables
  FROM result WHERE evidence ? 'queries';
SELECT DISTINCT i->>'index' AS index, (i->>'scattered_pct')::float8 > 50 AS scattered
  FROM result, jsonb_array_elements(evidence->'indexes') AS i ORDER BY 1;
-- no plan is better than the best, and what is recommended is no worse than what is set, unless correlations are advised with it
SELECT run, evidence->'regret' AS regret, evidence->'regret_in_force' AS in_force FROM result WHERE evidence ? 'regret' AND NOT
  ((evidence->'regret'->>'cold')::float8 >= 0.999 AND (evidence->'regret'->>'warm')::float8 >= 0.999
   AND (evidence->'regret_corrected' <> 'null' OR (evidence->'regret'->>'cold')::float8 * (evidence->'regret'->>'warm')::float8 <=
       1.01 * (evidence->'regret_in_force'->>'cold')::float8 * (evidence->'regret_in_force'->>'warm')::float8));
SELECT run, setting, why FROM result WHERE (evidence->'regret_corrected' <> 'null') <> (why ~ ' \(with the correlations that are advised [0-9.]+ and [0-9.]+\)')
  AND setting = 'random_page_cost';

-- the planner knows nothing of a table without an index; a concurrency says that it is by the times alone
WITH tried AS MATERIALIZED
  (SELECT * FROM tries('asked_own', '{random_page_cost,effective_io_concurrency}', '4 s'))
SELECT setting, recommended = current AS kept, substring(why FROM 'the planner''s plans .*') AS why
  FROM tried WHERE setting <> 'effective_io_concurrency'
UNION ALL SELECT setting, recommended = current, why
  FROM tried WHERE setting = 'effective_io_concurrency' AND recommended IS NOT NULL
  AND why NOT LIKE '%this rests on timed reads alone, since the planner''s plans could not be judged: no table here has an index and the statistics that%';
-- each index has a row, or is named with a reason; each row says where it holds
CREATE TABLE asked_many WITH (autovacuum_enabled = off) AS SELECT i AS c1, -i AS c2, i / 2 AS c3, i % 30000 AS c4, abs(hashint4(i)) AS c5, i + abs(hashint4(i)) % 900 AS c6,
    i % 2 AS few, repeat('x', 60) AS filler FROM generate_series(1, 100000) AS i;
CREATE INDEX ON asked_many (c1); CREATE INDEX ON asked_many (c2); CREATE INDEX ON asked_many (c3); CREATE INDEX ON asked_many (c4);
CREATE INDEX ON asked_many (c5); CREATE INDEX ON asked_many (c6); CREATE INDEX ON asked_many (few);
CREATE INDEX asked_many_part ON asked_many (c1) WHERE few = 1;
CREATE INDEX asked_many_sum ON asked_many ((c1 + c2));
VACUUM ANALYZE asked_many;
CHECKPOINT;
CREATE TEMP TABLE of_many AS SELECT * FROM tries('asked_many', '{random_page_cost,correlation}');
SELECT i.indexrelid::regclass AS silent FROM pg_index AS i WHERE i.indrelid = 'asked_many'::regclass AND EXISTS (SELECT FROM of_many WHERE evidence ? 'queries')
  AND NOT EXISTS (SELECT FROM of_many WHERE name = format('public.%s', i.indexrelid::regclass) OR why LIKE format('%%public.%s (%%', i.indexrelid::regclass));
SELECT DISTINCT server_version = current_setting('server_version_num')::int / 10000 AS version, io_method IS NOT DISTINCT FROM current_setting('io_method', true) AS io_method
  FROM of_many;
DROP TABLE asked_many, of_many;
-- nor of one without statistics
CREATE INDEX asked_own_shuffled ON asked_own (shuffled) TABLESPACE regress_io_probe_costs;
SELECT recommended, statement, substring(why FROM '; left out: .*') AS left_out FROM tries('asked_own', '{random_page_cost}', '4 s');
-- a tablespace with costs of its own: the planner is asked all the same
ANALYZE asked_own;
CREATE TEMP TABLE plans_before AS SELECT 'SELECT FROM asked_own WHERE shuffled < 3000' AS query, array_agg(p) AS plan
  FROM plan('SELECT FROM asked_own WHERE shuffled < 3000') AS p;
INSERT INTO result SELECT 'own', * FROM tries('asked_own', '{random_page_cost}') WITH ORDINALITY;
SELECT name, setting, current, current_source, recommended IS NOT NULL AS recommended, (evidence->'queries')::int > 0 AS queries, evidence->'seq_page_cost' AS sequential
  FROM result WHERE run = 'own';
SELECT setting, why FROM result WHERE run = 'own' AND recommended IS NULL;
SELECT run, recommended FROM result WHERE setting = 'random_page_cost' AND recommended::float8 < (evidence->'seq_page_cost')::float8;
TABLE other_form;
SELECT b.plan = (SELECT array_agg(p) FROM plan(query) AS p) AS same_plan FROM plans_before AS b;
-- undone, all is as it was
CREATE FUNCTION undone(statement text, undo text) RETURNS boolean STRICT LANGUAGE plpgsql AS $$
DECLARE
  same boolean;
BEGIN
  CREATE TEMP VIEW options AS SELECT array_agg((oid, o) ORDER BY oid, o)::text AS options FROM pg_tablespace LEFT JOIN unnest(spcoptions) AS o ON true;
  CREATE TEMP TABLE options_before AS TABLE options;
  EXECUTE statement;
  EXECUTE undo;
  SELECT b.options = o.options INTO same FROM options_before AS b, options AS o;
  RAISE 'back';
EXCEPTION WHEN raise_exception THEN RETURN same;
END $$;
SELECT run, setting, statement, undo FROM result WHERE NOT undone(statement, undo);
SELECT undone('ALTER TABLESPACE regress_io_probe_costs SET (seq_page_cost = 2)', 'ALTER TABLESPACE regress_io_probe_costs RESET (random_page_cost)');
-- and for the whole server, where the tablespace's own value does not hide it any more
SELECT run, setting, instead FROM result WHERE statement IS NOT NULL AND NOT coalesce(array_to_string(instead, '; ') ~ (
  CASE current_source WHEN 'tablespace' THEN '^ALTER TABLESPACE \S+ RESET \(' || setting || '\); ' ELSE '^' END || 'ALTER SYSTEM SET ' || setting || ' = [0-9.]+$'), false);
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
SELECT recommended, why FROM tries('asked_own', '{random_page_cost}', '4 s');
ROLLBACK;
-- out of the wrong order: a random page costs no less than one in sequence, whichever rows are wanted
VACUUM FULL asked;
SET seq_page_cost = 20;
SET random_page_cost = 2;
CREATE TEMP TABLE ordered AS SELECT * FROM tries('asked', '{random_page_cost}') UNION ALL SELECT * FROM tries('asked', '{effective_io_concurrency}');
RESET seq_page_cost;
RESET random_page_cost;
SELECT recommended, statement, why FROM ordered WHERE setting = 'random_page_cost' AND (recommended::float8 < 20 OR recommended IS NOT NULL AND statement IS NULL);
SELECT setting, why FROM ordered WHERE recommended IS NOT NULL AND evidence ? 'queries'
  AND why !~ 'at seq_page_cost 20, random_page_cost [0-9.]+ and effective_io_concurrency [0-9]+, by the model, the plan|[0-9]+ queries';
-- an index of which the planner believes that its rows lie in order
CREATE TABLE asked_late (id int, late int, pad text) WITH (autovacuum_enabled = off);
INSERT INTO asked_late SELECT i, i + abs(hashint4(i)) % 20000, repeat('x', 300) FROM generate_series(1, 100000) AS i;
CREATE INDEX asked_late_id ON asked_late (id);
CREATE INDEX asked_late_late ON asked_late (late);
CREATE INDEX asked_late_more ON asked_late (late, id, pad);
VACUUM ANALYZE asked_late;
VACUUM FULL asked_late;
CHECKPOINT;
CREATE TEMP TABLE told AS SELECT t.* FROM tries('asked_late', '{correlation}') AS t;
-- (where the times are too vague there is one row that says so)
DELETE FROM told WHERE name IS NULL AND recommended IS NULL AND why ~ 'intervals|not all times|were not measured';
SELECT count(*) FILTER (WHERE name = 'public.asked_late_late') AS late, count(*) FILTER (WHERE name = 'public.asked_late_id') AS id FROM told
  HAVING count(*) NOT IN (0, 2);
SELECT DISTINCT scope, setting, name, relid, applies, current_source FROM told WHERE name NOT IN ('public.asked_late_id', 'public.asked_late_late') OR scope <> 'index'
  OR setting <> 'correlation' OR relid <> 'asked_late'::regclass OR applies <> 'now' OR current_source <> 'pg_statistic';
SELECT name, low, recommended, high, current FROM told WHERE NOT coalesce(recommended = current OR recommended::float8 BETWEEN low::float8 AND high::float8, false);
-- order stays order
SELECT name, recommended, current FROM told WHERE name ~ 'id$' AND recommended <> current;
SELECT name, k FROM told, unnest('{scattered_pct,scattered_ci_pct,stretch_blks,stretch_ci_blks,regret,regret_in_force,random_page_cost,effective_io_concurrency}'::text[]) AS k WHERE NOT evidence ? k;
-- what sets it sets it for all indexes that begin with the column, and is taken back
SELECT name, statement, undo FROM told WHERE (statement IS NOT NULL) <> (recommended <> current) OR statement IS NOT NULL AND NOT (
  statement = format($$SELECT public.io_probe_correct('public.asked_late_late'::regclass, %1$s::double precision); SELECT public.io_probe_correct('public.asked_late_more'::regclass, %1$s::double precision)$$, recommended)
  AND undo = replace(statement, recommended || '::', 'NULL::'));
SET client_min_messages = warning;
DO $$ DECLARE s text; BEGIN FOR s IN SELECT statement FROM told WHERE statement IS NOT NULL LOOP EXECUTE s; END LOOP; END $$;
SELECT name, recommended FROM told WHERE statement IS NOT NULL AND NOT EXISTS (SELECT FROM io_probe_correlation('asked_late') WHERE stored = recommended::float8);
SELECT current_source, current = (SELECT recommended FROM told WHERE statement IS NOT NULL) AS as_told FROM tries('asked_late', '{correlation}', '2 s')
  WHERE name ~ 'late_late$' AND EXISTS (SELECT FROM told WHERE statement IS NOT NULL) AND NOT (current_source = 'io_probe_corrections' AND current = (SELECT recommended FROM told WHERE statement IS NOT NULL));
DO $$ DECLARE s text; BEGIN FOR s IN SELECT undo FROM told WHERE statement IS NOT NULL LOOP EXECUTE s; END LOOP; END $$;
SELECT count(*) FROM io_probe_corrections;
-- from 18 on the statistics can be set instead, where the planner takes them as they are
SELECT name, instead FROM told WHERE statement IS NOT NULL AND current_setting('server_version_num')::int >= 180000
  AND instead IS DISTINCT FROM ARRAY[format($$SELECT pg_catalog.pg_restore_attribute_stats('schemaname', 'public', 'relname', 'asked_late', 'attname', 'late', 'inherited', false, 'correlation', %s::real)$$, recommended)];
DROP TABLE asked_late, told;
-- with hardly any time there is a reason
SELECT setting, recommended, statement, why <> '' AS why FROM io_probe_recommend_full('asked', cold => true, duration => '1 ms',
  settings => '{random_page_cost,effective_io_concurrency}');

-- nothing was changed: neither settings nor tablespaces, nor how the planner plans
SELECT name, b.setting, s.setting FROM settings_before AS b FULL JOIN pg_settings AS s USING (name)
  WHERE (b.setting, b.source) IS DISTINCT FROM (s.setting, s.source);
SELECT md5(pg_read_file('postgresql.auto.conf')) = :'auto_before' AS unchanged;
SELECT spcname, spcoptions FROM pg_tablespace WHERE spcoptions IS NOT NULL;
SELECT b.plan = (SELECT array_agg(p) FROM plan(query) AS p) AS same_plan FROM plans_before AS b;
-- not even by a call that ends while the planner is asked
SET statement_timeout = '1600ms';
DO $$ BEGIN PERFORM io_probe_recommend_full('asked_own', cold => true, duration => '1500 ms');
EXCEPTION WHEN query_canceled THEN NULL; END $$;
RESET statement_timeout;
SELECT b.plan = (SELECT array_agg(p) FROM plan(query) AS p) AS same_plan FROM plans_before AS b;
SELECT name, b.setting, s.setting FROM settings_before AS b FULL JOIN pg_settings AS s USING (name)
  WHERE (b.setting, b.source) IS DISTINCT FROM (s.setting, s.source);

-- the caller's rights: what he may not read is not asked for, what is hidden from him is not known
VACUUM FULL asked;
CREATE ROLE regress_io_probe_asker;
GRANT EXECUTE ON FUNCTION io_probe_recommend, io_probe_recommend_full, io_probe_evict TO regress_io_probe_asker;
GRANT SELECT ON asked TO regress_io_probe_asker;
SET ROLE regress_io_probe_asker;
SELECT setting FROM io_probe_recommend_full('asked_own');
SELECT evidence->'tables' AS tables, jsonb_array_length(evidence->'indexes') AS indexes FROM
  tries(NULL, '{random_page_cost}') WHERE relid IS NOT NULL;
RESET ROLE;
CREATE FUNCTION tell() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$;
CREATE POLICY tell ON asked USING (tell());
ALTER TABLE asked ENABLE ROW LEVEL SECURITY;
SET ROLE regress_io_probe_asker;
SELECT relid, recommended, why ~ '^the planner''s plans could not be judged: (not all times could be measured|the times have no confidence intervals): ' AS why FROM
  io_probe_recommend_full(cold => true, settings => '{random_page_cost}', duration => '1 s')
  WHERE relid IS NOT NULL;
RESET ROLE;
DROP OWNED BY regress_io_probe_asker;
DROP ROLE regress_io_probe_asker;

SET client_min_messages = warning;
DROP VIEW other_form;
DROP TABLE asked, asked_own, settings_before, plans_before, result, ordered;
DROP FUNCTION tell, plan, tries, undone;
DROP TABLESPACE regress_io_probe_costs;
