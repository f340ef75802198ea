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
-- all functions are volatile and parallel unsafe
SELECT proname FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND p.oid = objid
  WHERE (provolatile, proparallel) <> ('v', 'u');
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
ALTER EXTENSION pg_io_probe DROP VIEW io_probe_recommend_history;
DROP VIEW io_probe_random_history, io_probe_ping_history, io_probe_sync_history, io_probe_recommend_history;
ALTER TYPE io_probe_cache_row DROP ATTRIBUTE shared_pct, DROP ATTRIBUTE hole_bytes, ADD ATTRIBUTE future text;
SELECT blks_total > 0 AS blks_total, future IS NULL AS future FROM io_probe_cache('pg_class') LIMIT 1;
ALTER TYPE io_probe_random_full_row DROP ATTRIBUTE blks, DROP ATTRIBUTE notes, ADD ATTRIBUTE future int;
SELECT path, status, blks_total > 0 AS blks_total, relname, future FROM io_probe_random_full('pg_class', '{server,os}');
ALTER TYPE io_probe_ping_full_row DROP ATTRIBUTE request, ADD ATTRIBUTE future timestamptz;
SELECT op, path, relname, future FROM io_probe_ping_full('pg_class', count => 1, path => 'os');
ALTER TYPE io_probe_sync_full_row DROP ATTRIBUTE method, DROP ATTRIBUTE directory, ADD ATTRIBUTE future text[];
ALTER TYPE io_probe_iostat_full_row DROP ATTRIBUTE sample, DROP ATTRIBUTE notes, ADD ATTRIBUTE future text[];
SELECT DISTINCT elapsed_ms > 0 AS elapsed_ms, future FROM io_probe_iostat_full('10 ms');
ALTER TYPE io_probe_recommend_full_row DROP ATTRIBUTE why, DROP ATTRIBUTE evidence, ADD ATTRIBUTE future jsonb;
SELECT setting, recommended, future FROM io_probe_recommend_full(settings => '{wal_sync_method}');
SET LOCAL pg_io_probe.scratch_reserve = 0;
SELECT section, flushes, depth, future FROM io_probe_sync_full(duration => '1 ms', sections => '{no_sync}');
ROLLBACK;
-- it can be moved
CREATE SCHEMA "Other schema";
ALTER EXTENSION pg_io_probe SET SCHEMA "Other schema";
SELECT count(*) FROM pg_proc WHERE proname LIKE 'io\_probe%' AND pronamespace <> '"Other schema"'::regnamespace;
SELECT count(*) > 0 AS works FROM "Other schema".io_probe_device();
-- and dropped, which leaves nothing
DROP EXTENSION pg_io_probe;
SELECT proname FROM pg_proc WHERE proname LIKE '%io\_probe%'
  UNION ALL SELECT typname FROM pg_type WHERE typname LIKE '%io\_probe%'
  UNION ALL SELECT relname FROM pg_class WHERE relname LIKE '%io\_probe%';

-- created in a schema that is not on search_path, it finds its own and the server's objects, whatever else is there
-- what somebody has put there before is not taken for the extension's own
CREATE TYPE "Other schema".io_probe_cache_full_row AS (relid oid);
CREATE EXTENSION pg_io_probe SCHEMA "Other schema";
SELECT to_regclass('"Other schema".io_probe_cache_history') IS NULL AS ignored;
DROP TYPE "Other schema".io_probe_cache_full_row;
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
SELECT path FROM "Other schema".io_probe_seqscan_full('toasted', cold => true);
SELECT path FROM "Other schema".io_probe_random_full('toasted', cold => true);
SELECT depth FROM "Other schema".io_probe_depth_full('toasted', '{1}');
SELECT path FROM "Other schema".io_probe_ping_full('toasted', count => 1);
SET pg_io_probe.scratch_reserve = 0;
SELECT section FROM "Other schema".io_probe_sync_full('pg_default', duration => '1 ms', sections => '{no_sync}');
SELECT count(*) > 0 AS works FROM "Other schema".io_probe_iostat_full('10 ms');
SELECT setting, current, relid FROM "Other schema".io_probe_recommend_full(settings => '{random_page_cost}');
SELECT "Other schema".io_probe_record('ping', 'public.toasted', '{"count": 1}') AS run \gset
SELECT "Other schema".io_probe_record('recommend', args => '{"settings": ["wal_sync_method"]}') AS run \gset
SELECT relname, op FROM "Other schema".io_probe_ping_history;
SELECT count(*) FROM "Other schema".io_probe_latest;
SELECT verdict FROM "Other schema".io_probe_changes();
SELECT verdict FROM "Other schema".io_probe_compare(:run, :run);
SELECT "Other schema".io_probe_prune('0', force => true);
SELECT relid FROM "Other schema".io_probe_explain_full('SELECT FROM public.toasted');
SET client_min_messages = warning;
SELECT actual_rows FROM "Other schema".io_probe_explain_full('SELECT FROM public.toasted', true) WHERE node_id = 1;
RESET client_min_messages;
SET ROLE regress_io_probe_user;
SELECT count(*) FROM "Other schema".io_probe_evict(:toast);
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

RESET client_min_messages;
--
-- The conventions of docs/interface.md: short rows for people beside full ones, one name a quantity, one order of arguments.
--
CREATE TEMP VIEW probe AS
  SELECT short.oid AS short, complete.oid AS complete, short.proname AS name
    FROM pg_depend JOIN pg_extension e ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid
    JOIN pg_proc AS short ON classid = 'pg_proc'::regclass AND objid = short.oid
    JOIN pg_proc AS complete ON complete.proname = short.proname || '_full' AND complete.pronamespace = short.pronamespace
     AND complete.proargtypes = short.proargtypes
   WHERE extname = 'pg_io_probe' AND deptype = 'e' AND short.proname <> 'io_probe_report';
CREATE TEMP VIEW columns AS
  SELECT p.oid AS function, p.proname AS name, attname, atttypid::regtype AS type, attnum FROM pg_proc AS p
    JOIN pg_type t ON t.oid = p.prorettype JOIN pg_attribute ON attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped
   WHERE p.oid IN (SELECT short FROM probe UNION SELECT complete FROM probe);
SELECT name FROM probe ORDER BY 1;
-- both measure in the same way, and the same roles may call them
SELECT p.name FROM probe AS p JOIN pg_proc AS a ON a.oid = short JOIN pg_proc AS b ON b.oid = complete
 WHERE (a.prosrc, a.probin, a.proargtypes::oid[], a.proargnames, pg_get_expr(a.proargdefaults, 0), a.provolatile, a.proparallel, a.prorows,
        a.proowner, a.prosecdef, replace(a.proacl::text, a.proname, ''))
       IS DISTINCT FROM
       (b.prosrc, b.probin, b.proargtypes::oid[], b.proargnames, pg_get_expr(b.proargdefaults, 0), b.provolatile, b.proparallel, b.prorows,
        b.proowner, b.prosecdef, replace(b.proacl::text, b.proname, ''));
-- at most ten columns, each of which the full row has as well, in the same type
SELECT name FROM columns WHERE function IN (SELECT short FROM probe) GROUP BY name, function HAVING count(*) > 10;
SELECT s.name, s.attname FROM probe JOIN columns AS s ON s.function = short
 WHERE NOT EXISTS (SELECT FROM columns AS c WHERE c.function = complete AND (c.attname, c.type) = (s.attname, s.type));
-- they end with what speaks against the figures
SELECT name, attname FROM columns AS c WHERE function IN (SELECT short FROM probe)
   AND attnum = (SELECT max(attnum) FROM columns WHERE function = c.function) AND attname <> 'doubt' ORDER BY 1;
-- a name has one type
SELECT attname, array_agg(DISTINCT type) AS types FROM columns GROUP BY 1 HAVING count(DISTINCT type) > 1 ORDER BY 1;
-- times, rates and shares say their unit
SELECT DISTINCT attname FROM columns WHERE type = 'double precision'::regtype
   AND attname !~ '(_us|_ms|_pct|_s|_kb|_mib|_per_block|_per_op|_cost|_rows|iops)$' ORDER BY 1;
-- arguments come in one order: no two in one order here and in the other there
WITH argument AS (
  SELECT short, p.name AS function, a.name, a.n FROM probe AS p JOIN pg_proc ON oid = short, unnest(proargnames) WITH ORDINALITY AS a(name, n)
), pair AS (
  SELECT a.function, a.name AS first, b.name AS second FROM argument AS a JOIN argument AS b ON a.short = b.short AND a.n < b.n
)
SELECT here.function, here.first, here.second FROM pair AS here JOIN pair AS there ON (here.first, here.second) = (there.second, there.first);

-- what speaks against figures, the worst first, at most two
CREATE TABLE doubted WITH (autovacuum_enabled = off) AS SELECT g FROM generate_series(1, 20000) AS g;
CHECKPOINT;
SELECT path, doubt ~ '^paced' AS paced, mib_s IS NULL AS no_rate FROM io_probe_seqscan('doubted', '{os}', options => '{"max_iops": 300}');
SELECT path, doubt ~ 'paced' AS paced FROM io_probe_random('doubted', '{os}', options => '{"max_iops": 300, "max_bytes": "800kB"}');
SELECT path, doubt ~ '^partial' AS partial FROM io_probe_random('doubted', '{os}', options => '{"max_p99": "1us", "max_bytes": "800kB"}');
SELECT path, bool_or(doubt ~ 'warmed') AS warmed FROM io_probe_seqscan('doubted', '{server,os}') GROUP BY 1 ORDER BY 1;
-- an amount has the units of a setting
SELECT path, blks, notes FROM io_probe_random_full('doubted', '{server}', options => '{"max_bytes": "64kB"}') WHERE blks <> 8;
SELECT path FROM io_probe_seqscan('doubted', options => '{"max_bytes": "1 parsec"}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('doubted', options => '{"max_p99": "5 MB"}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('doubted', options => '{"max_p99": 0}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('doubted', options => '{"max_p99": "-1ms"}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('doubted', options => '{"max_bytes": true}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan('doubted', options => '{"max_bytes": "NaN"}'); \echo :SQLSTATE
DROP TABLE doubted;

--
-- The rights on each object of the extension: read from the catalog, so that none is forgotten
--
SET client_min_messages = warning;
CREATE VIEW member AS
  SELECT classid, objid FROM pg_depend JOIN pg_extension e ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid
  WHERE extname = 'pg_io_probe' AND deptype = 'e';
-- the comment of each function begins with its group
SELECT proname FROM member JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND objid = p.oid
  WHERE coalesce(obj_description(p.oid, 'pg_proc'), '') !~ '^\[(Measure|Look|Advise|Keep)\] ';
-- what is documented; nobody but the owner has any other right
CREATE TABLE documented AS
  SELECT 'public' AS role, 'function' AS kind, unnest('{io_probe_explain,io_probe_explain_full,io_probe_explain_text}'::text[]) AS name, 'EXECUTE' AS privilege
  UNION ALL SELECT 'pg_monitor', 'function', unnest('{io_probe_cache,io_probe_changes,io_probe_changes_full,io_probe_check,io_probe_compare,io_probe_compare_full,
    io_probe_device,io_probe_device_full,io_probe_iostat,io_probe_iostat_full,io_probe_progress,io_probe_sessions,io_probe_sessions_full}'::text[]), 'EXECUTE'
  UNION ALL SELECT 'pg_monitor', 'relation', relname, 'SELECT' FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND objid = c.oid
    WHERE relkind IN ('r', 'v') AND relname <> 'io_probe_corrections';
CREATE VIEW granted AS
  WITH object(kind, name, owner, acl) AS (
    SELECT 'function', proname::text, proowner, COALESCE(proacl, acldefault('f', proowner))
      FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
    UNION ALL SELECT CASE relkind WHEN 'S' THEN 'sequence' ELSE 'relation' END, relname, relowner,
        COALESCE(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner))
      FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND objid = c.oid AND relkind NOT IN ('i', 'c')
    UNION ALL SELECT 'column', relname || '.' || attname, relowner, attacl
      FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND objid = c.oid JOIN pg_attribute ON attrelid = c.oid AND attacl IS NOT NULL)
  SELECT COALESCE(rolname, 'public') AS role, kind, name, privilege_type || CASE WHEN is_grantable THEN ', grantable' ELSE '' END AS privilege
    FROM object, aclexplode(acl) AS x LEFT JOIN pg_roles r ON r.oid = grantee WHERE grantee <> owner;
-- granted and not documented
SELECT * FROM granted EXCEPT SELECT * FROM documented;
-- documented and not granted
SELECT * FROM documented EXCEPT SELECT * FROM granted;
-- functions of one name whose rights differ
SELECT proname FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
  GROUP BY proname HAVING count(DISTINCT COALESCE(proacl::text, '')) > 1;
-- what would run with the rights or the settings of another than the caller
SELECT proname FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid WHERE prosecdef OR proconfig IS NOT NULL;
-- functions in a language of which the body is SQL
SELECT proname FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid JOIN pg_language l ON l.oid = prolang
  WHERE lanname <> 'c';
-- predefined roles, pg_monitor aside, that may execute more than everyone
SELECT rolname, proname FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid, pg_roles
  WHERE rolname LIKE 'pg\_%' AND rolname <> 'pg_monitor' AND has_function_privilege(rolname, p.oid, 'EXECUTE')
    AND NOT has_function_privilege('public', p.oid, 'EXECUTE');

-- and each function is called by each role
CREATE ROLE regress_io_probe_nobody;
CREATE ROLE regress_io_probe_monitor IN ROLE pg_monitor;
CREATE ROLE regress_io_probe_one;
CREATE TABLE call AS
  SELECT p.oid, p.proname AS name, format('SELECT count(*) FROM %s(%s)', p.oid::regproc,
           (SELECT string_agg('NULL::' || format_type(type, NULL), ', ' ORDER BY n)
              FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS a(type, n))) AS text
    FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid;
-- May the role call it? Arguments that are NULL are mostly refused, but that comes later.
CREATE FUNCTION may(role text, text text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE said text;
BEGIN
  PERFORM set_config('role', role, true);
  EXECUTE text;
  RAISE EXCEPTION 'done';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS said = MESSAGE_TEXT;
  RETURN NOT (SQLSTATE = '42501' AND said LIKE 'permission denied for function %');
END $$;
SET pg_io_probe.max_duration = '1 ms';
SELECT name, may('regress_io_probe_nobody', text) AS nobody, may('regress_io_probe_monitor', text) AS monitor,
       may(current_user, text) AS superuser
  FROM call ORDER BY name, text;
-- EXECUTE on one is the right to that one: whom it opens another to, or what it does not open
DO $$
DECLARE one record; other record; allowed boolean;
BEGIN
  FOR one IN TABLE call LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO regress_io_probe_one', one.oid::regprocedure);
    FOR other IN TABLE call LOOP
      IF other.oid = one.oid OR NOT has_function_privilege('public', other.oid, 'EXECUTE') THEN
        allowed := may('regress_io_probe_one', other.text);
        IF allowed <> (other.oid = one.oid) THEN RAISE WARNING '% for %: %', one.name, other.name, allowed; END IF;
      END IF;
    END LOOP;
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM regress_io_probe_one', one.oid::regprocedure);
  END LOOP;
END $$;
RESET pg_io_probe.max_duration;

DROP FUNCTION may;
DROP TABLE call, documented;
DROP VIEW granted, member;
DROP ROLE regress_io_probe_nobody, regress_io_probe_monitor, regress_io_probe_one;
