--
-- From an earlier version to this one
--
DROP EXTENSION pg_io_probe;
-- a way leads from each version to this one
SELECT source, target FROM pg_extension_update_paths('pg_io_probe')
  WHERE target = (SELECT default_version FROM pg_available_extensions WHERE name = 'pg_io_probe')
    AND source <> target AND path IS NULL;
-- all that makes up the extension, an object or a part of one a line
CREATE VIEW member AS
  SELECT classid, objid, pg_describe_object(classid, objid, 0) AS object FROM pg_depend
  WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
    AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_io_probe');
CREATE VIEW member_relation AS
  SELECT c.*, object FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND c.oid = objid
  UNION ALL
  SELECT c.*, object FROM member JOIN pg_type t ON classid = 'pg_type'::regclass AND t.oid = objid
    JOIN pg_class c ON c.oid = typrelid AND relkind = 'c';
CREATE FUNCTION sorted(aclitem[]) RETURNS text LANGUAGE sql
  AS 'SELECT string_agg(item::text, '' '' ORDER BY item::text) FROM unnest($1) AS item';
CREATE VIEW parts AS
  SELECT object, 'comment' AS part, obj_description(objid, classid::regclass::name) AS "is" FROM member
  UNION ALL
  SELECT object, 'rights at first', sorted(initprivs) FROM member
    JOIN pg_init_privs i ON (i.classoid, i.objoid, i.objsubid) = (classid, objid, 0)
  UNION ALL
  SELECT object, 'rights', concat_ws(' | ', proowner::regrole, sorted(coalesce(proacl, acldefault('f', proowner))))
    FROM member JOIN pg_proc f ON classid = 'pg_proc'::regclass AND f.oid = objid
  UNION ALL
  SELECT object, 'rights', concat_ws(' | ', typowner::regrole, sorted(coalesce(typacl, acldefault('T', typowner))))
    FROM member JOIN pg_type t ON classid = 'pg_type'::regclass AND t.oid = objid
  UNION ALL
  SELECT object, 'rights', concat_ws(' | ', relowner::regrole,
      sorted(coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner))))
    FROM member_relation WHERE relkind <> 'c'
  UNION ALL
  SELECT object, 'function', pg_get_functiondef(f.oid)
    FROM member JOIN pg_proc f ON classid = 'pg_proc'::regclass AND f.oid = objid
  UNION ALL
  SELECT object, 'type', typtype::text FROM member JOIN pg_type t ON classid = 'pg_type'::regclass AND t.oid = objid
  UNION ALL
  SELECT object, 'relation', concat_ws(' | ', relkind, relpersistence, relreplident, relrowsecurity, relforcerowsecurity,
      relispartition, reloptions) FROM member_relation
  UNION ALL
  SELECT object, 'column ' || row_number() OVER (PARTITION BY attrelid ORDER BY attnum), concat_ws(' | ', attname,
      format_type(atttypid, atttypmod), attcollation::regcollation, attnotnull, attidentity, attgenerated, attstorage,
      attcompression, pg_get_expr(adbin, adrelid), sorted(attacl), col_description(attrelid, attnum))
    FROM member_relation r JOIN pg_attribute ON attrelid = r.oid AND attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
  UNION ALL
  SELECT object, 'index', concat_ws(' | ', pg_get_indexdef(indexrelid), indisvalid, indisclustered)
    FROM member_relation r JOIN pg_index ON indrelid = r.oid
  UNION ALL
  SELECT object, 'constraint ' || conname, pg_get_constraintdef(c.oid)
    FROM member_relation r JOIN pg_constraint c ON conrelid = r.oid
  UNION ALL
  SELECT object, 'rule', pg_get_ruledef(w.oid) FROM member_relation r JOIN pg_rewrite w ON ev_class = r.oid
  UNION ALL
  SELECT object, 'trigger', pg_get_triggerdef(t.oid)
    FROM member_relation r JOIN pg_trigger t ON tgrelid = r.oid AND NOT tgisinternal
  UNION ALL
  SELECT object, 'sequence', concat_ws(' | ', seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle)
    FROM member_relation r JOIN pg_sequence ON seqrelid = r.oid
  UNION ALL
  SELECT 'extension', 'dumped ' || config.relation, condition
    FROM pg_extension, unnest(extconfig::regclass[], extcondition) AS config (relation, condition)
    WHERE extname = 'pg_io_probe'
  UNION ALL
  SELECT 'extension', 'itself', concat_ws(' | ', extversion, extrelocatable, extnamespace::regnamespace, extowner::regrole,
      obj_description(oid, 'pg_extension')) FROM pg_extension WHERE extname = 'pg_io_probe';

--
-- 0.1.0, with what is built upon it
--
CREATE EXTENSION pg_io_probe VERSION '0.1.0';
CREATE TABLE upgraded_table AS SELECT g AS id FROM generate_series(1, 1000) AS g;
CREATE VIEW a_scan AS SELECT * FROM io_probe_seqscan('upgraded_table', '{os}');
CREATE VIEW the_devices AS SELECT d, (d).device FROM io_probe_device() AS d;
CREATE VIEW the_counters AS SELECT * FROM io_probe_device_counters;
CREATE FUNCTION share(io_probe_cache_row) RETURNS double precision LANGUAGE sql AS 'SELECT $1.os_cached_pct';
CREATE ROLE regress_io_probe_user;
GRANT EXECUTE ON FUNCTION io_probe_seqscan, io_probe_counters TO regress_io_probe_user;
GRANT USAGE ON TYPE io_probe_seqscan_row TO regress_io_probe_user;
GRANT SELECT ON io_probe_device_counters, a_scan, upgraded_table TO regress_io_probe_user;
REVOKE EXECUTE ON FUNCTION io_probe_explain FROM PUBLIC;

-- this version's library serves that catalog
SET pg_io_probe.default_duration = '10 ms';
SET pg_io_probe.scratch_reserve = 0;
SELECT DISTINCT object FROM io_probe_device() ORDER BY object;
SELECT count(*) >= 0 AS works FROM io_probe_counters();
SELECT count(*) >= 0 AS works FROM io_probe_device_counters;
SELECT fork, blks_total > 0 AS blks_total FROM io_probe_cache('upgraded_table') WHERE fork = 'main';
SELECT fork FROM io_probe_evict('upgraded_table') WHERE fork = 'main';
SELECT count(*) > 0 AS works FROM io_probe_check();
SELECT count(*) FROM io_probe_progress();
SELECT path, blks_scanned > 0 AS blks_scanned FROM io_probe_seqscan('upgraded_table');
SELECT path, relname FROM io_probe_random('upgraded_table');
SELECT DISTINCT path FROM io_probe_random_series('upgraded_table', '{os}');
SELECT depth FROM io_probe_depth('upgraded_table', '{1}');
SELECT op FROM io_probe_ping('upgraded_table', 1);
SELECT section FROM io_probe_sync(sections => '{no_sync}');
SELECT DISTINCT mode FROM io_probe_readahead('upgraded_table', '{32}') WHERE mode = 'emulated';
SELECT count(*) > 0 AS works FROM io_probe_page_cost('upgraded_table', densities => '{}', concurrencies => '{}');
SELECT setting FROM io_probe_recommend(settings => '{commit_delay}');
SELECT count(*) > 0 AS works FROM io_probe_iostat('10 ms');
SELECT query_rows FROM io_probe_iostat_query('SELECT 1') WHERE sample IS NULL;
SELECT node_type FROM io_probe_explain('SELECT 1', true);
SELECT node_type FROM io_probe_explain_json('{"Plan": {"Node Type": "Result"}}');

--
-- Updated: what is built upon it is there, and what was granted or revoked is as it was
--
CREATE TABLE before AS SELECT * FROM parts WHERE part = 'rights';
ALTER EXTENSION pg_io_probe UPDATE;
SELECT extversion = default_version AS updated FROM pg_extension JOIN pg_available_extensions ON name = extname
  WHERE extname = 'pg_io_probe';
SELECT count(*) > 0 AS checked FROM before;
TABLE before EXCEPT SELECT * FROM parts;
SELECT count(*) >= 0 AS works FROM the_devices;
SELECT count(*) >= 0 AS works FROM the_counters;
SELECT share(c) >= 0 AS works FROM io_probe_cache('upgraded_table') AS c WHERE fork = 'main';
SET ROLE regress_io_probe_user;
SELECT path, blks_total > 0 AS blks_total FROM a_scan;
SELECT path, blks_total > 0 AS blks_total FROM io_probe_seqscan('upgraded_table', '{os}');
SELECT count(*) >= 0 AS works FROM io_probe_device_counters;
SELECT node_type FROM io_probe_explain('SELECT 1'); \echo :SQLSTATE
RESET ROLE;
-- without that, it is what a new one is
GRANT EXECUTE ON FUNCTION io_probe_explain TO PUBLIC;
REVOKE ALL ON FUNCTION io_probe_seqscan, io_probe_counters FROM regress_io_probe_user;
REVOKE ALL ON TYPE io_probe_seqscan_row FROM regress_io_probe_user;
REVOKE ALL ON io_probe_device_counters FROM regress_io_probe_user;
DROP VIEW a_scan, the_devices, the_counters;
DROP FUNCTION share;
CREATE TABLE upgraded AS TABLE parts;
DROP EXTENSION pg_io_probe;
CREATE EXTENSION pg_io_probe;
SELECT count(*) > 500 AS many, count(*) FILTER (WHERE part = 'index') > 3 AS indexes,
       count(*) FILTER (WHERE part = 'rights' AND "is" LIKE '%pg_monitor%') > 5 AS rights FROM parts;
TABLE upgraded EXCEPT ALL TABLE parts;
TABLE parts EXCEPT ALL TABLE upgraded;

--
-- In a schema that is not on search_path, and among others' objects of the same names
--
DROP EXTENSION pg_io_probe;
CREATE SCHEMA "Other schema";
CREATE EXTENSION pg_io_probe VERSION '0.1.0' SCHEMA "Other schema";
CREATE TABLE io_probe_runs ();
CREATE FUNCTION io_probe_import(jsonb, text) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
ALTER EXTENSION pg_io_probe UPDATE;
SELECT object FROM upgraded
  WHERE object <> 'extension' AND object NOT IN (SELECT replace(object, '"Other schema".', '') FROM member);
SELECT object FROM member WHERE object NOT LIKE '%"Other schema".%';

SET client_min_messages = warning;
DROP SCHEMA "Other schema" CASCADE;
DROP TABLE io_probe_runs, before, upgraded, upgraded_table;
DROP FUNCTION io_probe_import(jsonb, text);
DROP VIEW parts, member_relation, member;
DROP FUNCTION sorted;
DROP ROLE regress_io_probe_user;
-- for the tests that follow
CREATE EXTENSION pg_io_probe;
