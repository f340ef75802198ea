--
-- io_probe_correlation, io_probe_correct: where the rows of indexes lie, and what the planner takes their correlation for
--
SET client_min_messages = warning;
CREATE TABLE lie (ordered int, anywhere int, jittered int, descending int, seldom int, equal int, pad text) WITH (autovacuum_enabled = off);
INSERT INTO lie SELECT i, abs(hashint4(i)), i + abs(hashint4(i)) % 8000, -i, CASE WHEN i % 10 = 0 THEN i END, i % 5, repeat('x', 40)
  FROM generate_series(1, 200000) AS i;
CREATE INDEX lie_anywhere ON lie (anywhere);
CREATE INDEX lie_brin ON lie USING brin (ordered);
CREATE INDEX lie_descending ON lie (descending DESC);
CREATE INDEX lie_equal ON lie (equal);
CREATE INDEX lie_expression ON lie ((jittered / 3));
CREATE INDEX lie_include ON lie (ordered) INCLUDE (pad);
CREATE INDEX lie_jittered ON lie (jittered);
CREATE INDEX lie_partial ON lie (ordered) WHERE anywhere % 100 = 0;
CREATE INDEX lie_recent ON lie (anywhere) WHERE ordered > 150000;
CREATE INDEX lie_seldom ON lie (seldom);
CREATE INDEX lie_two ON lie (jittered, pad);
CREATE UNIQUE INDEX lie_unique ON lie (ordered);
VACUUM ANALYZE lie;
-- ANALYZE guesses how many rows a partial index has
REINDEX INDEX lie_partial;
-- of the planner's correlation nothing is to be seen of the jitter
SELECT index, abs(correlation) > 0.99 AS correlated, scattered_pct > 90 AS scattered, stretch_blks > 20 AS stretched,
       ordered_blks BETWEEN 15 AND 25 AS ordered, range_blks > 2 * ordered_blks AS more_blks, random_blks > 30 AS random, stored, doubt FROM io_probe_correlation('lie') ORDER BY index::text;
SELECT index, method, relid, status, notes FROM io_probe_correlation_full('lie') WHERE method <> 'btree' OR notes <> '{}' OR (evidence->>'entries')::int < 1000;
SELECT index FROM io_probe_correlation_full('lie') WHERE method = 'btree' AND NOT (scattered_pct BETWEEN (evidence->'scattered_ci_pct'->>0)::float8 AND (evidence->'scattered_ci_pct'->>1)::float8
  AND stretch_blks BETWEEN (evidence->'stretch_ci_blks'->>0)::float8 AND (evidence->'stretch_ci_blks'->>1)::float8
  AND ARRAY(SELECT jsonb_object_keys(evidence->'ranges') COLLATE "C") @> '{0.01,0.1,1,10}' AND (evidence->'ranges'->'1'->>'blks')::bigint = range_blks);
-- what ranges of a hundredth are predicted to visit is what they visit in the mean, but for a half
CREATE FUNCTION visited(key text, condition text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE visited float8;
BEGIN
  EXECUTE format('SELECT avg(blks) FROM (SELECT count(DISTINCT (ctid::text::point)[0]) AS blks FROM (
      SELECT ctid, row_number() OVER (ORDER BY %1$s, ctid) * 100 / (count(*) OVER () + 1) AS hundredth
      FROM lie WHERE %1$s IS NOT NULL AND %2$s) AS l WHERE hundredth %% 10 = 1 GROUP BY hundredth) AS l', key, condition) INTO visited;
  RETURN visited;
END $$;
SELECT index, range_blks, v FROM io_probe_correlation('lie') JOIN (VALUES ('lie_anywhere', 'anywhere', 'true'), ('lie_descending', 'descending', 'true'), ('lie_equal', 'equal', 'true'),
    ('lie_expression', 'jittered / 3', 'true'), ('lie_include', 'ordered', 'true'), ('lie_jittered', 'jittered', 'true'), ('lie_partial', 'ordered', 'anywhere % 100 = 0'),
    ('lie_recent', 'anywhere', 'ordered > 150000'), ('lie_seldom', 'seldom', 'true'), ('lie_two', 'jittered', 'true'), ('lie_unique', 'ordered', 'true')) AS of (name, key, condition)
  ON index = name::regclass, visited(key, condition) AS v WHERE NOT coalesce(range_blks BETWEEN v * 0.6 - 1 AND v * 1.5 + 1, false);
SELECT count(*) FROM io_probe_correlation('lie') WHERE range_blks IS NOT NULL;
DROP FUNCTION visited;
-- of two orders at once one correlation says nothing
CREATE TABLE refilled (id int, pad text) WITH (autovacuum_enabled = off);
INSERT INTO refilled SELECT i, repeat('x', 90) FROM generate_series(1, 40000) AS i;
DELETE FROM refilled WHERE id % 2 = 0;
VACUUM refilled;
INSERT INTO refilled SELECT i, repeat('x', 90) FROM generate_series(1, 15000) AS i;
CREATE INDEX refilled_id ON refilled (id);
VACUUM ANALYZE refilled;
SELECT index, range_blks, doubt, notes FROM io_probe_correlation_full('refilled');
DROP TABLE refilled;
-- the kernel reads ahead in one direction only, also where rows came late; the index grew at one end, so its file is in another order
CREATE TABLE late (at int, pad text) WITH (autovacuum_enabled = off);
CREATE INDEX late_newest ON late (at DESC);
CREATE INDEX late_oldest ON late (at);
INSERT INTO late SELECT i + abs(hashint4(i)) % 8000, repeat('x', 40) FROM generate_series(1, 200000) AS i;
VACUUM ANALYZE late;
SELECT index, (of->>'random_blks')::int BETWEEN 0.7 * (of->>'blks')::int AND (of->>'blks')::int AS at_random, doubt
  FROM io_probe_correlation_full('late'), LATERAL (SELECT evidence->'ranges'->'10' AS of) AS l ORDER BY index::text;
DROP TABLE late;

-- what is stored goes to the planner, of that index alone
CREATE FUNCTION cost(query text, OUT cost float8, OUT index text) LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
  cost := plan->0->'Plan'->>'Total Cost'; index := plan->0->'Plan'->>'Index Name';
END $$;
LOAD 'pg_io_probe';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
DROP INDEX lie_two;
\set range 'SELECT pad FROM lie WHERE jittered BETWEEN 100000 AND 102000'
CREATE TEMP TABLE before AS SELECT * FROM cost(:'range');
CREATE TEMP VIEW after AS SELECT round((c.cost / b.cost)::numeric, 1) AS times, c.index FROM before AS b, cost('SELECT pad FROM lie WHERE jittered BETWEEN 100000 AND 102000') AS c;
SELECT index FROM before;
SELECT io_probe_correct('lie_jittered', 0);
SELECT times > 5 AS dearer FROM after;
SELECT index, stored, doubt FROM io_probe_correlation('lie') WHERE stored IS NOT NULL;
SELECT schemaname, tablename, indexname, correlation FROM io_probe_corrections;
SELECT io_probe_correct('lie_jittered', 1);
SELECT times BETWEEN 0.9 AND 1.1 AS same FROM after;
SELECT count(*) FROM io_probe_corrections;
SELECT io_probe_correct('lie_jittered', 0.5);
SELECT times > 5 AS dearer FROM after;
-- EXPLAIN says when it is off, and then it is
SET pg_io_probe.correct_correlation = off;
SELECT times FROM after;
BEGIN;
SET LOCAL enable_seqscan = on;
SET LOCAL enable_bitmapscan = on;
EXPLAIN (COSTS off, SETTINGS) SELECT pad FROM lie WHERE jittered BETWEEN 100000 AND 102000;
COMMIT;
RESET pg_io_probe.correct_correlation;
-- a plan that is kept is made anew
PREPARE ranged AS SELECT pad FROM lie WHERE jittered BETWEEN 100000 AND 102000;
CREATE TEMP TABLE prepared AS SELECT * FROM cost('EXECUTE ranged');
SELECT io_probe_correct('lie_jittered', NULL);
SELECT a.cost > 5 * b.cost AS cheaper FROM prepared AS a, cost('EXECUTE ranged') AS b;
SELECT times FROM after;
SELECT count(*) FROM io_probe_corrections;
-- what is undone was never there
BEGIN;
SELECT io_probe_correct('lie_jittered', 0);
SELECT times > 5 AS dearer FROM after;
ROLLBACK;
SELECT times FROM after;
-- an index on an expression, of which ANALYZE has statistics of its own
SELECT io_probe_correct('lie_expression', 0);
SELECT index, cost > 5 * (SELECT cost FROM before) AS dearer FROM cost('SELECT pad FROM lie WHERE jittered / 3 BETWEEN 33333 AND 34000');
SELECT times FROM after;

-- it stays where the index is made anew, and is found by its name
SELECT io_probe_correct('lie_jittered', 0);
REINDEX INDEX lie_jittered;
SELECT times > 5 AS dearer FROM after;
REINDEX INDEX CONCURRENTLY lie_jittered;
SELECT times > 5 AS dearer FROM after;
ALTER INDEX lie_jittered RENAME TO lie_other;
SELECT times, index FROM after;
ALTER INDEX lie_other RENAME TO lie_jittered;
SELECT times > 5 AS dearer FROM after;
VACUUM ANALYZE lie;
SELECT times > 5 AS dearer FROM after;
-- it is stale under another major version or io_method,
UPDATE io_probe_corrections SET major_version = major_version - 1;
SELECT stored, doubt, notes FROM io_probe_correlation_full('lie') WHERE index = 'lie_jittered'::regclass;
ANALYZE lie;
SELECT times < 2 AS as_analyzed FROM after;
UPDATE io_probe_corrections SET major_version = major_version + 1, io_method = 'another';
SELECT stored, doubt, notes FROM io_probe_correlation_full('lie') WHERE index = 'lie_jittered'::regclass;
UPDATE io_probe_corrections SET io_method = coalesce(current_setting('io_method', true), '');
SELECT stored, doubt FROM io_probe_correlation_full('lie') WHERE index = 'lie_jittered'::regclass;
ANALYZE lie;
SELECT times > 5 AS dearer FROM after;
-- when the table has grown,
INSERT INTO lie SELECT i, abs(hashint4(i)), i + abs(hashint4(i)) % 8000, -i FROM generate_series(200001, 250000) AS i;
VACUUM ANALYZE lie;
SELECT index, stored, doubt, notes FROM io_probe_correlation_full('lie') WHERE stored IS NOT NULL ORDER BY index::text;
SELECT times < 2 AS as_analyzed FROM after;
-- when ANALYZE has found another correlation,
SELECT io_probe_correct('lie_jittered', 0);
SELECT times > 5 AS dearer FROM after;
UPDATE lie SET jittered = abs(hashint4(jittered)) % 200000 WHERE ordered % 2 = 0;
VACUUM ANALYZE lie;
SELECT notes FROM io_probe_correlation_full('lie') WHERE index = 'lie_jittered'::regclass;
-- or when it was rewritten
SELECT io_probe_correct('lie_jittered', 0);
SELECT notes FROM io_probe_correlation_full('lie') WHERE index = 'lie_jittered'::regclass;
VACUUM FULL lie;
SELECT notes FROM io_probe_correlation_full('lie') WHERE index = 'lie_jittered'::regclass;
DROP TABLE lie CASCADE;
SELECT count(*) > 0 AS left_behind FROM io_probe_corrections;

-- tables of nothing, of little, of a session; partitions; what has no indexes
CREATE TABLE small (id int PRIMARY KEY, parent int) WITH (autovacuum_enabled = off);
SELECT index, doubt FROM io_probe_correlation('small');
INSERT INTO small SELECT i FROM generate_series(1, 1000) AS i;
ANALYZE small;
SELECT index, range_blks, doubt, notes FROM io_probe_correlation_full('small');
CREATE TABLE bare AS SELECT i FROM generate_series(1, 10) AS i;
SELECT index FROM io_probe_correlation('bare');
CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000000);
INSERT INTO parted SELECT i FROM generate_series(1, 200000) AS i;
ANALYZE parted_1;
SELECT index, ordered_blks, range_blks > ordered_blks + 1 AS more, doubt FROM io_probe_correlation('parted_1');
SELECT io_probe_correct('parted_1_pkey', 0);
\set VERBOSITY terse
SELECT index FROM io_probe_correlation('parted'); \echo :SQLSTATE
SELECT io_probe_correct('parted_pkey', 0); \echo :SQLSTATE
SELECT index FROM io_probe_correlation('parted_1_pkey'); \echo :SQLSTATE
SELECT index FROM io_probe_correlation(NULL); \echo :SQLSTATE
SELECT io_probe_correct(NULL, 0); \echo :SQLSTATE
SELECT io_probe_correct('small', 0); \echo :SQLSTATE
SELECT io_probe_correct('small_pkey', 1.01); \echo :SQLSTATE
SELECT io_probe_correct('small_pkey', -0.1); \echo :SQLSTATE
SELECT io_probe_correct('small_pkey', 'NaN'); \echo :SQLSTATE
SELECT io_probe_correct(4294967295, 0); \echo :SQLSTATE
CREATE TEMP TABLE own (id int PRIMARY KEY);
SELECT io_probe_correct('own_pkey', 0); \echo :SQLSTATE
CREATE TABLE toasted (pad text);
DO $$
BEGIN
  PERFORM io_probe_correct(indexrelid, 0) FROM pg_index, pg_class AS c WHERE indrelid = c.reltoastrelid AND c.oid = 'toasted'::regclass;
EXCEPTION WHEN feature_not_supported THEN
  RAISE WARNING '%', regexp_replace(SQLERRM, '[0-9]+', 'N');
END $$;
CREATE INDEX small_hash ON small USING hash (parent);
SELECT io_probe_correct('small_hash', 0); \echo :SQLSTATE
BEGIN READ ONLY;
SELECT io_probe_correct('small_pkey', 0); \echo :SQLSTATE
ROLLBACK;
\set VERBOSITY default

-- who may maintain a table
CREATE ROLE regress_io_probe_owner;
CREATE ROLE regress_io_probe_reader;
GRANT EXECUTE ON FUNCTION io_probe_correlation, io_probe_correlation_full, io_probe_correct TO regress_io_probe_owner, regress_io_probe_reader;
ALTER TABLE small OWNER TO regress_io_probe_owner;
SET ROLE regress_io_probe_reader;
\set VERBOSITY terse
SELECT index FROM io_probe_correlation('small'); \echo :SQLSTATE
SELECT io_probe_correct('small_pkey', 0); \echo :SQLSTATE
INSERT INTO io_probe_corrections VALUES ('public', 'small', 'small_pkey', 0, 1, 0, 0); \echo :SQLSTATE
\set VERBOSITY default
SET ROLE regress_io_probe_owner;
SELECT io_probe_correct('small_pkey', 0.25);
GRANT SELECT ON small TO regress_io_probe_reader;
SET ROLE regress_io_probe_reader;
SELECT index, correlation IS NOT NULL AS known, stored FROM io_probe_correlation('small') WHERE index = 'small_pkey'::regclass;
\set VERBOSITY terse
SELECT io_probe_correct('small_pkey', 0); \echo :SQLSTATE
\set VERBOSITY default
-- who may not see statistics sees none here, nor what is stored
SET ROLE regress_io_probe_owner;
ALTER TABLE small ENABLE ROW LEVEL SECURITY;
SET ROLE regress_io_probe_reader;
SELECT index, correlation, stored FROM io_probe_correlation('small') WHERE index = 'small_pkey'::regclass;
SET ROLE regress_io_probe_owner;
ALTER TABLE small DISABLE ROW LEVEL SECURITY;
REVOKE SELECT ON small FROM regress_io_probe_reader;
GRANT SELECT (parent) ON small TO regress_io_probe_reader;
SET ROLE regress_io_probe_reader;
\set VERBOSITY terse
SELECT index FROM io_probe_correlation('small'); \echo :SQLSTATE
\set VERBOSITY default
RESET ROLE;
DELETE FROM io_probe_corrections;
-- rows that were not written by the function
INSERT INTO io_probe_corrections SELECT 'public', 'small', index, correlation, 1, 0, 0, current_setting('server_version_num')::int / 10000,
    coalesce(current_setting('io_method', true), '')
  FROM (VALUES ('small_pkey', 'NaN'::float8), ('no_index', 0), ('parted_1_pkey', 0), ('small_hash', -7)) AS v(index, correlation);
SELECT index, stored, doubt FROM io_probe_correlation('small') ORDER BY index::text;
DELETE FROM io_probe_corrections;
-- what the catalogs say may be none
BEGIN;
UPDATE pg_statistic SET stanumbers2 = '{NaN}', stanullfrac = '-Infinity' WHERE starelid = 'parted_1'::regclass;
SELECT index, correlation, range_blks IS NOT NULL AS known, doubt FROM io_probe_correlation('parted_1');
SELECT io_probe_correct('parted_1_pkey', 0);
SELECT analyzed FROM io_probe_corrections;
UPDATE pg_class SET reltuples = 'NaN' WHERE oid = 'parted_1'::regclass;
SELECT index, correlation, range_blks, doubt, notes FROM io_probe_correlation_full('parted_1');
UPDATE pg_class SET reltuples = 1e9, relpages = 1 WHERE oid = 'parted_1'::regclass;
SELECT index, correlation, range_blks, doubt FROM io_probe_correlation('parted_1');
ROLLBACK;

DROP TABLE small, bare, parted, own, before, prepared, toasted CASCADE;
DROP FUNCTION cost;
DROP OWNED BY regress_io_probe_owner, regress_io_probe_reader;
DROP ROLE regress_io_probe_owner, regress_io_probe_reader;
