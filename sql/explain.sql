--
-- io_probe_explain, of a query and of a plan
--
SET client_min_messages = warning;
CREATE TABLE big (id int, grp int, filler text) WITH (autovacuum_enabled = off, parallel_workers = 2);
ALTER TABLE big ALTER filler SET STORAGE PLAIN;
INSERT INTO big SELECT i, i % 10, repeat('x', 800) FROM generate_series(1, 2000) i;
CREATE INDEX big_id ON big (id);
CREATE INDEX big_grp ON big (grp);
CREATE TABLE parted (id int) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (1) TO (100);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100) TO (200);
INSERT INTO parted SELECT generate_series(1, 199);
CREATE TEMP TABLE own AS SELECT id FROM big;
CREATE SCHEMA "Odd ""schema";
CREATE TABLE "Odd ""schema"."A table" ("An id" int);
CREATE INDEX "An index" ON "Odd ""schema"."A table" ("An id");
CREATE TABLE "Odd ""schema".big (id int);
VACUUM ANALYZE big, parted_1, parted_2, own, "Odd ""schema"."A table";
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET track_io_timing = off;

-- nodes in EXPLAIN's order; nothing was executed, so nothing is counted
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT node_id, parent_id, level, node_type, relid, indexid, alias, access, plan_rows > 0 AS plan_rows,
       total_cost >= startup_cost AS costs,
       num_nonnulls(shared_blks_hit, shared_blks_read, temp_blks_read, temp_blks_written, local_blks_hit,
                    local_blks_read, io_ms, self_ms, total_ms, actual_rows, loops) AS counters
  FROM io_probe_explain_full('SELECT * FROM parted p JOIN big b USING (id)');
-- costs are EXPLAIN's
CREATE FUNCTION explain(query text, options text) RETURNS json LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE format('EXPLAIN (%s, FORMAT JSON) %s', options, query) INTO plan;
  RETURN plan;
END $$;
SELECT (p #>> '{0,Plan,Startup Cost}')::float8 = startup_cost AS startup,
       (p #>> '{0,Plan,Total Cost}')::float8 = total_cost AS total
  FROM explain('SELECT max(grp) FROM big', 'COSTS') p, io_probe_explain_full('SELECT max(grp) FROM big') WHERE level = 0;

-- executed: a sequential scan has the table's blocks, of the temporary table in local buffers
SELECT node_type, shared_blks_hit + shared_blks_read AS blks, local_blks_hit + local_blks_read AS local,
       actual_rows, loops, self_ms = total_ms AS time, io_ms
  FROM io_probe_explain_full('SELECT * FROM big', true) WHERE node_id > 0;
SELECT node_type, relid, shared_blks_hit + shared_blks_read AS blks, local_blks_hit + local_blks_read AS local
  FROM io_probe_explain_full('SELECT * FROM own', true) WHERE node_id > 0;
SET track_io_timing = on;
SELECT node_type, io_ms >= 0 AS io_ms FROM io_probe_explain_full('SELECT * FROM big', true) WHERE node_id > 0;
SET track_io_timing = off;

-- names: with quotes, from another schema, of two tables with one name, of partitions
SET enable_seqscan = off;
SELECT node_type, relid, indexid, alias
  FROM io_probe_explain_full('SELECT FROM "Odd ""schema"."A table" AS "An alias" WHERE "An id" = 1');
SELECT relid, alias FROM io_probe_explain_full('SELECT FROM big CROSS JOIN "Odd ""schema".big other')
  WHERE relid IS NOT NULL ORDER BY alias COLLATE "C";
SELECT node_type, relid, alias FROM io_probe_explain_full('SELECT FROM parted');
-- a bitmap's blocks: the index's with the index, the table's with the table
SET enable_indexscan = off;
SELECT node_id, parent_id, node_type, relid, indexid, access, shared_blks_hit + shared_blks_read > 0 AS blks
  FROM io_probe_explain_full('SELECT * FROM big WHERE grp = 1 OR id < 100', true) WHERE node_id > 0;
RESET enable_indexscan;
SELECT node_type, relid, indexid, access FROM io_probe_explain_full('SELECT * FROM big WHERE id = 1');
SELECT node_type, relid, indexid, access FROM io_probe_explain_full('SELECT id FROM big WHERE id > 1 ORDER BY id DESC');
SELECT node_type, relid, indexid, access FROM io_probe_explain_full('SELECT * FROM big WHERE ctid = ''(0,1)''');
RESET enable_seqscan;
-- what writes can be explained, if it is not executed
SELECT node_id, node_type, relid, alias, access FROM io_probe_explain_full('DELETE FROM big');
SELECT node_id, node_type, relid, alias FROM io_probe_explain_full('INSERT INTO big SELECT 1');
SELECT node_id, node_type, relid FROM io_probe_explain_full('WITH d AS (UPDATE big SET id = 0 RETURNING 1) TABLE d');
SELECT count(*) FROM big WHERE id = 0;

-- who paid: what a CTE and an InitPlan read is theirs, not their readers'
RESET enable_hashjoin;
RESET enable_mergejoin;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
CREATE FUNCTION payers(query text) RETURNS TABLE (node_type text, relid regclass, blks bigint) LANGUAGE sql AS $$
  SELECT node_type, relid, shared_blks_hit + shared_blks_read FROM io_probe_explain_full(query, true)
  WHERE shared_blks_hit + shared_blks_read > 0 AND node_id > 0
$$;
SELECT * FROM payers('WITH c AS MATERIALIZED (TABLE big) SELECT count(*) FROM c');
SELECT * FROM payers('WITH c AS MATERIALIZED (TABLE big) SELECT count(*) FROM c JOIN c AS d USING (id)');
SELECT * FROM payers('SELECT (SELECT max(id) FROM big), id FROM parted_1');
SELECT * FROM payers('SELECT FROM parted_1 WHERE id < (SELECT avg(id) FROM big)');
SELECT * FROM payers('SELECT (SELECT count(*) FROM big WHERE grp = p.id) FROM parted_1 p WHERE id < 4');
RESET enable_indexscan;
RESET enable_indexonlyscan;
RESET enable_bitmapscan;

-- whatever the plan, no node has less than nothing, and all together have what EXPLAIN says of the whole
CREATE FUNCTION judge(plan json) RETURNS text LANGUAGE sql AS $$
  SELECT CASE
    WHEN min(least(shared_blks_hit, shared_blks_read, local_blks_hit, local_blks_read,
                   temp_blks_read, temp_blks_written)) < 0 OR min(least(self_ms, total_ms - self_ms)) < -0.001
      THEN 'negative'
    WHEN (sum(shared_blks_hit), sum(shared_blks_read), sum(local_blks_hit), sum(local_blks_read),
          sum(temp_blks_read), sum(temp_blks_written)) =
         ((plan #>> '{0,Plan,Shared Hit Blocks}')::int, (plan #>> '{0,Plan,Shared Read Blocks}')::int,
          (plan #>> '{0,Plan,Local Hit Blocks}')::int, (plan #>> '{0,Plan,Local Read Blocks}')::int,
          (plan #>> '{0,Plan,Temp Read Blocks}')::int, (plan #>> '{0,Plan,Temp Written Blocks}')::int)
      THEN 'fits'
    ELSE 'not the sum' END FROM io_probe_explain_full(plan => plan)
$$;
CREATE FUNCTION counted() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM big); END';
CREATE TABLE tried (has text, query text);
INSERT INTO tried VALUES
  ('Sort', 'SELECT * FROM big ORDER BY filler, id'),
  ('Hash', 'SELECT * FROM big JOIN big b USING (id)'),
  ('Nested Loop', 'SELECT FROM parted p CROSS JOIN LATERAL (SELECT FROM big WHERE id = p.id OFFSET 0) b'),
  ('BitmapOr', 'SELECT * FROM big WHERE grp = 1 OR id < 10'),
  ('Append', 'SELECT count(*) FROM parted'),
  ('CTE Scan', 'WITH c AS MATERIALIZED (TABLE big) SELECT FROM c WHERE id < (SELECT avg(id) FROM c)'),
  ('CTE Scan', 'WITH c AS MATERIALIZED (TABLE big)
                SELECT FROM c JOIN c d USING (id) WHERE c.grp = (SELECT max(grp) FROM big)'),
  ('Recursive Union', 'WITH RECURSIVE r AS
                       (SELECT 1 AS id UNION ALL SELECT id + 1 FROM r JOIN big b USING (id) WHERE id < 50) TABLE r'),
  ('InitPlan', 'SELECT FROM big WHERE id > (SELECT min(id) FROM big) AND grp = (SELECT max(grp) FROM big) LIMIT 5'),
  ('InitPlan', 'SELECT FROM parted WHERE id = (SELECT min(id) FROM big WHERE grp = 7)'),
  ('InitPlan', 'SELECT (SELECT sum(id) FROM big) + (SELECT max(id) FROM parted)'),
  ('SubPlan', 'SELECT id NOT IN (SELECT id FROM big WHERE grp = 3) FROM parted'),
  ('SubPlan', 'SELECT (SELECT count(*) FROM big WHERE id = p.id AND grp > (SELECT avg(grp) FROM big)) FROM parted p'),
  ('Function Scan', 'SELECT FROM counted() c, parted'),
  ('Aggregate', 'SELECT id, count(*) FROM own GROUP BY id'),
  ('WindowAgg', 'SELECT rank() OVER (PARTITION BY grp ORDER BY filler) FROM big'),
  ('Limit', 'SELECT * FROM big b JOIN own USING (id) LIMIT 100');
SET work_mem = '64kB';
SET enable_mergejoin = off;
SELECT judge(plan), count(*) AS plans, array_agg(has) FILTER (WHERE plan::text NOT LIKE '%"' || has || '"%') AS lack
  FROM tried, explain(query, 'ANALYZE, BUFFERS, VERBOSE') AS plan GROUP BY 1 ORDER BY 1;
-- with workers as well
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SELECT judge(plan), count(*) AS plans, count(*) FILTER (WHERE plan::text LIKE '%"Gather%') > 5 AS gather
  FROM tried, explain(query, 'ANALYZE, BUFFERS, VERBOSE') AS plan GROUP BY 1 ORDER BY 1;
SELECT node_type, relid, shared_blks_hit + shared_blks_read AS blks, loops BETWEEN 1 AND 3 AS loops
  FROM io_probe_explain_full('SELECT count(*) FROM big WHERE filler <> ''''', true) WHERE node_id > 0;
-- without VERBOSE there is less to go by, but nothing is lost
SELECT judge(plan), count(*) AS plans FROM tried, explain(query, 'ANALYZE, BUFFERS') AS plan GROUP BY 1 ORDER BY 1;
SET max_parallel_workers_per_gather = 0;

-- a plan from elsewhere, as auto_explain logs it: own blocks, time over all loops; names that are not here are NULL
SELECT node_id, parent_id, node_type, relid, indexid, shared_blks_hit AS hit, shared_blks_read AS read,
       temp_blks_written AS temp, io_ms, self_ms, total_ms, plan_rows, actual_rows, loops
  FROM io_probe_explain_full(plan => '{
  "Query Text": "SELECT * FROM big LIMIT 1;",
  "Plan": {
    "Node Type": "Limit", "Startup Cost": 0.00, "Total Cost": 0.03, "Plan Rows": 1, "Plan Width": 8,
    "Actual Startup Time": 0.5, "Actual Total Time": 9.5, "Actual Rows": 1, "Actual Loops": 1,
    "Shared Hit Blocks": 10, "Shared Read Blocks": 5, "Local Hit Blocks": 0, "Local Read Blocks": 0,
    "Temp Read Blocks": 0, "Temp Written Blocks": 3, "I/O Read Time": 4.25,
    "Plans": [
      {"Node Type": "Index Scan", "Parent Relationship": "Outer", "Index Name": "big_id", "Relation Name": "big",
       "Alias": "big", "Plan Rows": 7, "Actual Total Time": 2.0, "Actual Rows": 6.50, "Actual Loops": 4,
       "Shared Hit Blocks": 8, "Shared Read Blocks": 5, "Local Hit Blocks": 0, "Local Read Blocks": 0,
       "Temp Read Blocks": 0, "Temp Written Blocks": 0, "I/O Read Time": 4.00},
      {"Node Type": "Seq Scan", "Relation Name": "gone", "Schema": "nowhere", "Actual Total Time": 1.25,
       "Actual Loops": 1}
    ]
  }
}');

-- what the blocks of a node would take, by times that were made up: from the OS cache, and from the device
CREATE TEMP TABLE costs (tier text, pattern text, density float8, depth int, block_us float8, samples int);
INSERT INTO costs VALUES
  ('shared', 'random', NULL, 1, 1, 7), ('os', 'sequential', NULL, NULL, 2, 7), ('os', 'random', NULL, 1, 3, 7),
  ('device', 'sequential', NULL, NULL, 8, 7), ('device', 'random', NULL, 1, 64, 7),
  ('device', 'sparse', 0.02, 0, 50, 7), ('device', 'sparse', 1, 0, 10, 7),
  ('device', 'sparse', 0.02, 16, 12, 7), ('device', 'sparse', 1, 16, 14, 7), ('device', 'sparse', 0.5, 32, NULL, 7),
  ('cpu', 'tuple', NULL, NULL, 3, 7);
SELECT jsonb_build_object('page_cost', jsonb_agg(c)) AS measured FROM costs c \gset
CREATE FUNCTION node(kind text, hit bigint, read bigint, more text DEFAULT '') RETURNS json LANGUAGE sql AS $$
  SELECT format('{"Plan": {"Node Type": "%s", "Relation Name": "big", "Actual Loops": 1, "Shared Hit Blocks": %s,
                 "Shared Read Blocks": %s %s}}', kind, hit, read, more)::json
$$;
SET effective_io_concurrency = 16;
SELECT node_type, access, os_ms, device_ms
  FROM unnest('{Seq Scan,Sample Scan,Tid Range Scan,Index Scan,Index Only Scan,Bitmap Index Scan,Tid Scan,Bitmap Heap Scan,
                Sort,ModifyTable}'::text[]) WITH ORDINALITY AS k (kind, n),
       io_probe_explain_full(plan => node(kind, 4000, 1000), options => :'measured') ORDER BY n;
-- a bitmap scan's by the share of the table's blocks, and by the prefetch of its tablespace
CREATE FUNCTION block_us(options jsonb, read bigint, more text DEFAULT '') RETURNS numeric LANGUAGE sql AS $$
  SELECT round((device_ms * 1000 / read)::numeric, 3)
  FROM io_probe_explain_full(plan => node('Bitmap Heap Scan', 0, read, more), options => options)
$$;
SELECT pg_relation_size('big') / current_setting('block_size')::int AS pages \gset
SELECT block_us(:'measured', 1) AS least, block_us(:'measured', :pages) AS all_blocks,
       block_us(:'measured', 3 * :pages) AS more, block_us(:'measured', :pages, ', "Actual Loops": 1000') AS again,
       block_us(:'measured', :pages, ', "Actual Loops": 1000, "Parallel Aware": true') AS by_workers,
       block_us(:'measured', :pages, ', "Schema": "nowhere"') AS elsewhere;
SET effective_io_concurrency = 0;
SELECT block_us(:'measured', :pages / 50) BETWEEN 49 AND 51 AS least, block_us(:'measured', :pages) AS all_blocks;
BEGIN;
ALTER TABLESPACE pg_default SET (effective_io_concurrency = 16);
SELECT block_us(:'measured', :pages) AS all_blocks;
ROLLBACK;
RESET effective_io_concurrency;
-- what is not known is NULL: without times, without one that it takes, unless executed, of temporary tables
SELECT block_us('{}', 1) AS no_option, block_us('{"page_cost": null}', 1) AS null_option,
       block_us('{"page_cost": []}', 1) AS no_times;
SELECT os_ms, device_ms FROM io_probe_explain_full(plan => node('Seq Scan', 10, 0), options => '{"page_cost": []}');
SELECT os_ms, device_ms FROM io_probe_explain_full(plan => node('Seq Scan', 0, 0), options => '{"page_cost": []}');
SELECT os_ms, device_ms FROM io_probe_explain_full(plan => node('Seq Scan', 0, 10),
  options => '{"page_cost": [{"tier": "os", "pattern": "sequential", "block_us": 100, "whatever": [1]}]}');
SELECT os_ms, device_ms FROM io_probe_explain_full('SELECT * FROM big', options => :'measured');
SELECT os_ms, device_ms FROM io_probe_explain_full('SELECT * FROM big', true) WHERE node_id > 0;
SELECT node_type, os_ms, device_ms FROM io_probe_explain_full('SELECT * FROM own', true, :'measured') WHERE node_id > 0;
-- of what was executed, whatever it found in shared buffers
SELECT node_type, shared_blks_hit + shared_blks_read = :pages AS blks,
       round(os_ms * 1000) = shared_blks_hit + shared_blks_read * 2 AS os,
       round(device_ms * 1000) = shared_blks_hit + shared_blks_read * 8 AS device
  FROM io_probe_explain_full('SELECT * FROM big', true, :'measured') WHERE node_id > 0;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT node_type, shared_blks_hit + shared_blks_read > 0 AS blks,
       round(os_ms * 1000) = shared_blks_hit + shared_blks_read * 3 AS os,
       round(device_ms * 1000) = shared_blks_hit + shared_blks_read * 64 AS device
  FROM io_probe_explain_full('SELECT * FROM big WHERE id < 500', true, :'measured') WHERE node_id > 0;
RESET enable_seqscan;
RESET enable_bitmapscan;

-- it ends where a statement ends
SELECT node_type FROM io_probe_explain_full('/* first */ VALUES (1) ; -- last');
SELECT node_type FROM io_probe_explain_full('TABLE parted_1', execute => NULL);
-- probes can be explained, and explaining as well
SELECT node_type, actual_rows::int AS rows
  FROM io_probe_explain_full($$SELECT path FROM io_probe_seqscan_full('big', '{server,os}')$$, true) WHERE node_id > 0;
SELECT node_type, actual_rows::int AS rows
  FROM io_probe_explain_full($$SELECT * FROM io_probe_explain_full('SELECT 1', true)$$, true) WHERE node_id > 0;
-- what a read-only transaction may change all the same does not stay
SELECT node_type FROM io_probe_explain_full('INSERT INTO own VALUES (-1)', true) WHERE node_id > 0;
SELECT node_type FROM io_probe_explain_full($$SELECT set_config('search_path', 'nowhere', false)$$, true) WHERE node_id > 0;
SELECT count(*) FROM own WHERE id = -1;
SHOW search_path;
-- nor does it cost a transaction id
BEGIN;
SELECT node_type FROM io_probe_explain_full('SELECT 1', true) WHERE node_id > 0;
SELECT pg_current_xact_id_if_assigned() IS NULL AS none;
ROLLBACK;
-- the transaction can write before and after, also after an error
BEGIN;
INSERT INTO parted VALUES (1);
SELECT count(*) FROM io_probe_explain_full('TABLE big', true);
INSERT INTO parted VALUES (2);
SAVEPOINT s;
SELECT count(*) FROM io_probe_explain_full('DELETE FROM parted', true);
ROLLBACK TO s;
DELETE FROM parted;
ROLLBACK;
-- one that may not still may not
BEGIN READ ONLY;
SELECT count(*) FROM io_probe_explain_full('TABLE big', true);
DELETE FROM parted;
ROLLBACK;

-- the last row has the sums, and says whether it was the disk, as a NOTICE does; times are measured in any case
CREATE FUNCTION sums(query text) RETURNS text LANGUAGE sql AS $$
  WITH r AS MATERIALIZED (SELECT * FROM io_probe_explain_full(query, true)),
       n AS (SELECT sum(shared_blks_hit) AS hit, sum(shared_blks_read) AS read, sum(temp_blks_written) AS temp, sum(io_ms) AS io,
                    sum(device_mib) AS device, sum(self_ms) AS self FROM r WHERE node_id > 0)
  SELECT CASE WHEN n.hit = r.shared_blks_hit AND n.read = r.shared_blks_read AND n.temp = r.temp_blks_written
                   AND abs(n.io - r.io_ms) < 0.01 AND abs(n.device - r.device_mib) < 0.01 AND n.self <= r.self_ms + 0.01
              THEN 'fits' ELSE concat(n, r) END
    FROM n, r WHERE r.node_id IS NULL
$$;
SELECT sums(query), count(*) FROM tried GROUP BY 1;
SET max_parallel_workers_per_gather = 2;
SELECT sums(query), count(*) FROM tried GROUP BY 1;
SET max_parallel_workers_per_gather = 0;
SELECT regexp_replace(plan, '(cost|actual).*|\d.*', '…') AS plan
  FROM io_probe_explain_text('SELECT count(*) FROM big') AS t (plan) WHERE plan ~ 'Scan|disk';
SELECT node, relid, self_ms >= 0 AS self_ms, io_ms, device_mib FROM io_probe_explain('SELECT 1', execute => true);
SET client_min_messages = notice;
SELECT count(*) FROM io_probe_explain('SELECT FROM big');

SET client_min_messages = warning;
DROP SCHEMA "Odd ""schema" CASCADE;
DROP TABLE big, parted, own, tried, costs;
DROP FUNCTION explain, payers, judge, counted, node, block_us, sums;
