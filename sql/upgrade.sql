--
-- Each version that can be installed, updated to this one, is what a new one is: object by object
--
DROP EXTENSION pg_io_probe;
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
CREATE EXTENSION pg_io_probe;
CREATE TABLE new AS TABLE parts;
SELECT count(*) > 500 AS many, count(*) FILTER (WHERE part = 'index') > 3 AS indexes,
       count(*) FILTER (WHERE part = 'rights' AND "is" LIKE '%pg_monitor%') > 5 AS rights FROM new;
DROP EXTENSION pg_io_probe;
-- in a schema that is not on search_path, and among others' objects of the same names
CREATE SCHEMA "Other schema";
CREATE TABLE io_probe_runs ();
CREATE FUNCTION io_probe_import(jsonb, text) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
CREATE VIEW moved AS SELECT object, part, replace("is", '"Other schema"', 'public') AS "is" FROM parts;
CREATE TABLE difference (version text, object text, part text, "is" text);
DO $$
DECLARE
  this record;
BEGIN
  FOR this IN SELECT version, version = default_version AS is_new FROM pg_available_extensions
      JOIN pg_available_extension_versions USING (name) WHERE name = 'pg_io_probe' ORDER BY version
  LOOP
    EXECUTE format('CREATE EXTENSION pg_io_probe VERSION %L SCHEMA "Other schema"', this.version);
    IF NOT this.is_new THEN
      ALTER EXTENSION pg_io_probe UPDATE;
    END IF;
    -- names are printed as those of the new one were
    SET LOCAL search_path = "Other schema", public;
    INSERT INTO difference SELECT this.version, d.* FROM (TABLE moved EXCEPT ALL TABLE new) AS d;
    INSERT INTO difference SELECT this.version, d.* FROM (TABLE new EXCEPT ALL TABLE moved) AS d;
    RESET search_path;
    DROP EXTENSION pg_io_probe;
  END LOOP;
END
$$;
TABLE difference ORDER BY version, object, part;

DROP SCHEMA "Other schema";
DROP TABLE io_probe_runs, new, difference;
DROP FUNCTION io_probe_import(jsonb, text);
DROP VIEW moved, parts, member_relation, member;
DROP FUNCTION sorted;
-- for the tests that follow
CREATE EXTENSION pg_io_probe;
