--
-- The extension and its objects
--
CREATE EXTENSION pg_io_probe;
-- needs a superuser, can be moved
SELECT superuser, trusted, relocatable FROM pg_available_extension_versions
  WHERE name = 'pg_io_probe' AND installed;
CREATE VIEW member AS
  SELECT classid, objid, pg_describe_object(classid, objid, 0) AS description FROM pg_depend
  WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
    AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_io_probe');
CREATE VIEW member_type AS
  SELECT c.* FROM member JOIN pg_type t ON classid = 'pg_type'::regclass AND t.oid = objid
    JOIN pg_class c ON c.oid = typrelid AND relkind = 'c';
-- all functions are volatile and parallel unsafe; who may execute them by default
SELECT proname, provolatile, proparallel,
       has_function_privilege('public', p.oid, 'EXECUTE') AS public,
       has_function_privilege('pg_monitor', p.oid, 'EXECUTE') AS pg_monitor
  FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND p.oid = objid ORDER BY proname;
-- who may read its relations
SELECT relname, relkind,
       has_table_privilege('public', c.oid, 'SELECT') AS public,
       has_table_privilege('pg_monitor', c.oid, 'SELECT') AS pg_monitor
  FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND c.oid = objid ORDER BY relname;
-- what has no comment: nothing (array types and row types of views need none)
SELECT description FROM member LEFT JOIN pg_type t ON classid = 'pg_type'::regclass AND t.oid = objid
  WHERE NOT EXISTS (SELECT FROM pg_description d
                    WHERE (d.classoid, d.objoid, d.objsubid) = (member.classid, member.objid, 0))
    AND (t.oid IS NULL OR t.typrelid IN (SELECT oid FROM member_type));
-- nor is there an attribute of a type without one
SELECT relname, attname FROM member_type t JOIN pg_attribute a ON attrelid = t.oid
  WHERE col_description(attrelid, attnum) IS NULL;
-- nor a column of a table or view
SELECT relname, attname FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND c.oid = objid AND relkind IN ('r', 'v')
    JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0
  WHERE col_description(attrelid, attnum) IS NULL;
-- rows fit a catalog that is older or newer than the library
BEGIN;
-- (their views need the attributes)
ALTER EXTENSION pg_io_probe DROP VIEW io_probe_random_history;
ALTER EXTENSION pg_io_probe DROP VIEW io_probe_ping_history;
ALTER EXTENSION pg_io_probe DROP VIEW io_probe_sync_history;
DROP VIEW io_probe_random_history, io_probe_ping_history, io_probe_sync_history;
ALTER TYPE io_probe_cache_row DROP ATTRIBUTE shared_pct, DROP ATTRIBUTE hole_bytes, ADD ATTRIBUTE future text;
SELECT fork, blks_total > 0 AS blks_total, future IS NULL AS future FROM io_probe_cache('pg_class') LIMIT 1;
ALTER TYPE io_probe_random_full_row DROP ATTRIBUTE blks, DROP ATTRIBUTE notes, ADD ATTRIBUTE future int;
SELECT path, status, blks_total > 0 AS blks_total, relname, future FROM io_probe_random_full('pg_class', '{server,os}');
ALTER TYPE io_probe_ping_full_row DROP ATTRIBUTE request, ADD ATTRIBUTE future timestamptz;
SELECT op, path, relname, future FROM io_probe_ping_full('pg_class', count => 1, path => 'os');
ALTER TYPE io_probe_sync_full_row DROP ATTRIBUTE method, DROP ATTRIBUTE directory, ADD ATTRIBUTE future text[];
ALTER TYPE io_probe_iostat_full_row DROP ATTRIBUTE sample, DROP ATTRIBUTE notes, ADD ATTRIBUTE future text[];
SELECT DISTINCT elapsed_ms > 0 AS elapsed_ms, future FROM io_probe_iostat_full('10 ms');
ALTER TYPE io_probe_iostat_query_full_row DROP ATTRIBUTE wal_bytes, DROP ATTRIBUTE notes, ADD ATTRIBUTE future bigint;
SELECT query_rows, future FROM io_probe_iostat_query_full('SELECT 1') WHERE sample IS NULL;
ALTER TYPE io_probe_recommend_full_row DROP ATTRIBUTE why, DROP ATTRIBUTE evidence, ADD ATTRIBUTE future jsonb;
SELECT setting, recommended, future FROM io_probe_recommend_full(settings => '{commit_delay}');
SET LOCAL pg_io_probe.scratch_reserve = 0;
SELECT section, flushes, depth, future FROM io_probe_sync_full(duration => '1 ms', sections => '{no_sync}');
ROLLBACK;
-- it can be moved
CREATE SCHEMA "Other schema";
ALTER EXTENSION pg_io_probe SET SCHEMA "Other schema";
SELECT count(*) FROM pg_proc WHERE proname LIKE 'io\_probe%' AND pronamespace <> '"Other schema"'::regnamespace;
SELECT count(*) >= 0 AS works FROM "Other schema".io_probe_device_counters;
-- and dropped, which leaves nothing
DROP EXTENSION pg_io_probe;
SELECT proname FROM pg_proc WHERE proname LIKE '%io\_probe%'
  UNION ALL SELECT typname FROM pg_type WHERE typname LIKE '%io\_probe%'
  UNION ALL SELECT relname FROM pg_class WHERE relname LIKE '%io\_probe%';

-- created in a schema that is not on search_path, it finds its own and the server's objects, whatever else is there
-- what somebody has put there before is not taken for the extension's own
CREATE TYPE "Other schema".io_probe_counters_full_row AS (relid oid);
CREATE EXTENSION pg_io_probe SCHEMA "Other schema";
SELECT to_regclass('"Other schema".io_probe_counters_history') IS NULL AS ignored;
DROP TYPE "Other schema".io_probe_counters_full_row;
CREATE TABLE toasted (t text);
SELECT reltoastrelid AS toast FROM pg_class WHERE relname = 'toasted' \gset
CREATE ROLE regress_io_probe_user;
GRANT SELECT ON toasted TO regress_io_probe_user;
GRANT USAGE ON SCHEMA "Other schema" TO regress_io_probe_user;
GRANT EXECUTE ON FUNCTION "Other schema".io_probe_evict, "Other schema".io_probe_sync, "Other schema".io_probe_sync_full TO regress_io_probe_user;
CREATE SCHEMA trap;
GRANT USAGE ON SCHEMA trap TO PUBLIC;
CREATE TABLE trap.pg_namespace (LIKE pg_catalog.pg_namespace);
CREATE TABLE trap.pg_class (LIKE pg_catalog.pg_class);
CREATE TABLE trap.pg_depend (LIKE pg_catalog.pg_depend);
CREATE TABLE trap.pg_extension (LIKE pg_catalog.pg_extension);
CREATE TABLE trap.pg_proc (LIKE pg_catalog.pg_proc);
CREATE TABLE trap.pg_type (LIKE pg_catalog.pg_type);
CREATE TABLE trap.pg_attribute (attrelid oid, attname name, attisdropped boolean);
CREATE TABLE trap.io_probe_runs (LIKE pg_catalog.pg_class);
CREATE TABLE trap.pg_settings (LIKE pg_catalog.pg_settings);
CREATE TABLE trap.pg_tablespace (LIKE pg_catalog.pg_tablespace);
CREATE FUNCTION trap.io_probe_evict(regclass) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION trap.io_probe_sync() RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION trap.current_setting(text) RETURNS text LANGUAGE sql AS 'SELECT ''trapped''';
CREATE FUNCTION trap.pg_relation_filepath(oid) RETURNS text LANGUAGE sql AS 'SELECT ''trapped''';
CREATE FUNCTION trap.never("char", "char") RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION trap.never(name, name) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION trap.never(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION trap.never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR trap.= (leftarg = "char", rightarg = "char", function = trap.never);
CREATE OPERATOR trap.<> (leftarg = name, rightarg = name, function = trap.never);
CREATE OPERATOR trap.= (leftarg = oid, rightarg = oid, function = trap.never);
CREATE OPERATOR trap.~~ (leftarg = text, rightarg = text, function = trap.never);
SET search_path = trap, pg_catalog, public;
SELECT DISTINCT object FROM "Other schema".io_probe_device_full() ORDER BY object;
SELECT substring(item, '^EXECUTE on|^pg_io_probe') AS item, bool_and(value <> 'trapped') AS value
  FROM "Other schema".io_probe_check() GROUP BY 1 ORDER BY 1;
SELECT path FROM "Other schema".io_probe_seqscan_full('toasted', cold => true);
SELECT path FROM "Other schema".io_probe_random_full('toasted', cold => true);
SELECT path FROM "Other schema".io_probe_random_series_full('toasted', cold => true);
SELECT depth FROM "Other schema".io_probe_depth_full('toasted', '{1}');
SELECT path FROM "Other schema".io_probe_ping_full('toasted', count => 1);
SET pg_io_probe.scratch_reserve = 0;
SELECT section FROM "Other schema".io_probe_sync_full('pg_default', duration => '1 ms', sections => '{no_sync}');
SELECT count(*) > 0 AS works FROM "Other schema".io_probe_iostat_full('10 ms');
SELECT query_rows FROM "Other schema".io_probe_iostat_query_full('SELECT 1 FROM public.toasted') WHERE sample IS NULL;
SELECT setting, current, relid FROM "Other schema".io_probe_recommend_full(settings => '{seq_page_cost,commit_delay}');
SELECT "Other schema".io_probe_record('ping', 'public.toasted', '{"count": 1}') AS run \gset
SELECT "Other schema".io_probe_record('recommend', args => '{"settings": ["commit_delay"]}') AS run \gset
SELECT relname, op FROM "Other schema".io_probe_ping_history;
SELECT count(*) FROM "Other schema".io_probe_latest;
SELECT verdict FROM "Other schema".io_probe_changes();
SELECT metric FROM "Other schema".io_probe_compare(:run, :run);
SELECT "Other schema".io_probe_prune('0');
SELECT relid FROM "Other schema".io_probe_explain_full('SELECT FROM public.toasted');
SET ROLE regress_io_probe_user;
SELECT fork FROM "Other schema".io_probe_evict(:toast);
SELECT section FROM "Other schema".io_probe_sync_full('pg_default', duration => '1 ms', sections => '{no_sync}');
RESET ROLE;
RESET pg_io_probe.scratch_reserve;
RESET search_path;

SET client_min_messages = warning;
DROP OWNED BY regress_io_probe_user;
DROP ROLE regress_io_probe_user;
DROP SCHEMA trap, "Other schema" CASCADE;
DROP TABLE toasted;
DROP VIEW member_type, member;
-- for the tests that follow
CREATE EXTENSION pg_io_probe;
