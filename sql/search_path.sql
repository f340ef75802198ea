--
-- A schema in which every name of pg_catalog means something else, first in search_path: nothing of the extension falls for it
--
SET client_min_messages = error;
CREATE TABLE probed (id int PRIMARY KEY, t text);
INSERT INTO probed SELECT g, 'x' FROM generate_series(1, 100) AS g;
ANALYZE probed;
CREATE TABLE corrected (id int PRIMARY KEY);
CREATE TABLE stored AS SELECT io_probe_record('ping', 'probed', '{"count": 2, "path": "os"}', 'first') AS run,
  io_probe_measure('ping', 'probed', '{"count": 2, "path": "os"}') AS result,
  io_probe_record('report', 'probed', '{"duration": "30 ms"}') AS report;
CREATE FUNCTION stored() RETURNS bigint LANGUAGE sql AS 'SELECT run FROM public.stored';
CREATE FUNCTION measured() RETURNS jsonb LANGUAGE sql AS 'SELECT result FROM public.stored';
CREATE ROLE regress_io_probe_user IN ROLE pg_monitor;
GRANT SELECT ON probed, stored TO regress_io_probe_user;
ALTER TABLE probed OWNER TO regress_io_probe_user;
ALTER TABLE corrected OWNER TO regress_io_probe_user;
-- a call of each function, as surface/ declares it, and of its twin
\set calls `cat "$PG_ABS_SRCDIR"/tests/calls.json`
CREATE TABLE call AS SELECT name || suffix AS name, arguments
  FROM jsonb_to_recordset(:'calls') AS c(name text, twin boolean, arguments text),
       unnest(CASE WHEN twin THEN '{"",_full}' ELSE '{""}' END::text[]) AS suffix;
INSERT INTO call VALUES ('io_probe_report', 'run => (SELECT report FROM public.stored)');
CREATE VIEW member AS
  SELECT classid, objid FROM pg_depend JOIN pg_extension e ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid
  WHERE extname = 'pg_io_probe' AND deptype = 'e';
-- functions without a call here
SELECT proname FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid WHERE proname NOT IN (SELECT name FROM call);
-- and of each view
CREATE TABLE statement AS
  SELECT row_number() OVER (ORDER BY name COLLATE "C", text COLLATE "C") AS n, * FROM (
    SELECT name, format('SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>=) 0 AS %I FROM public.%1$I(%s)', name, arguments) AS text FROM call
    UNION ALL
    SELECT relname, format('SELECT pg_catalog.count(shown.*) OPERATOR(pg_catalog.>=) 0 AS %I FROM public.%1$I AS shown', relname)
      FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND objid = c.oid AND relkind = 'v') AS s;
GRANT SELECT ON statement TO regress_io_probe_user;
\set ECHO none
SELECT format('GRANT EXECUTE ON FUNCTION %s TO regress_io_probe_user', objid::regprocedure) FROM member WHERE classid = 'pg_proc'::regclass \gexec
\set ECHO all

CREATE SCHEMA trap;
GRANT USAGE ON SCHEMA trap TO PUBLIC;
CREATE FUNCTION trap.springs(what text) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog AS $$
  BEGIN RAISE WARNING 'trapped: %, as %', what, current_user; RETURN true; END $$;
-- What can't be made is left out, such as a column of a pseudo-type, and counted.
CREATE PROCEDURE lay(what text, statements text) LANGUAGE plpgsql AS $$
DECLARE statement text; laid int := 0;
BEGIN
  FOR statement IN EXECUTE statements LOOP
    BEGIN EXECUTE statement; laid := laid + 1; EXCEPTION WHEN OTHERS THEN NULL; END;
  END LOOP;
  RAISE INFO '%: hundreds: %', what, laid >= 100;
END $$;
-- functions and operators, of pg_catalog and of the extension itself
CALL lay('functions', $$
  SELECT format('CREATE FUNCTION trap.%I(%s) RETURNS %s%s LANGUAGE plpgsql AS %L', proname,
                (SELECT string_agg(format_type(type, NULL), ', ' ORDER BY n) FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS a(type, n)),
                CASE WHEN proretset THEN 'SETOF ' ELSE '' END, format_type(prorettype, NULL),
                format('BEGIN PERFORM trap.springs(%L); %s; END', proname || '()', CASE WHEN proretset THEN 'RETURN' ELSE 'RETURN NULL' END))
    FROM pg_proc WHERE prokind = 'f' AND (pronamespace = 'pg_catalog'::regnamespace OR proname LIKE 'io\_probe%') $$);
CALL lay('operators', $$
  SELECT format('CREATE OPERATOR trap.%s (%sRIGHTARG = %s, FUNCTION = trap.%I)', oprname,
                CASE WHEN oprleft <> 0 THEN 'LEFTARG = ' || format_type(oprleft, NULL) || ', ' ELSE '' END, format_type(oprright, NULL), proname)
    FROM pg_operator JOIN pg_proc p ON p.oid = oprcode WHERE oprnamespace = 'pg_catalog'::regnamespace $$);
-- relations and types, also in pg_temp, which is searched before all others unless search_path says otherwise
CALL lay('relations', $$
  SELECT format('CREATE %s (LIKE %s)', place, oid::regclass)
    FROM pg_class, LATERAL (VALUES (format('TABLE trap.%I', relname)), (format('TEMP TABLE %I', relname))) AS v(place)
    WHERE relkind IN ('r', 'v') AND (relnamespace = 'pg_catalog'::regnamespace OR relname LIKE 'io\_probe%') $$);
CALL lay('types', $$
  SELECT format('CREATE DOMAIN %s.%I AS pg_catalog.%2$I CHECK (trap.springs(%L))', place, typname, typname || ' in ' || place)
    FROM pg_catalog.pg_type, LATERAL (VALUES ('trap'), ('pg_temp')) AS v(place)
    WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typname NOT LIKE '\_%' $$);
GRANT SELECT ON ALL TABLES IN SCHEMA trap TO PUBLIC;

-- each is called, and says nothing
SET client_min_messages = warning;
SET pg_io_probe.scratch_reserve = 0;
\pset tuples_only on
\pset format unaligned
-- first in search_path, before pg_catalog
SET search_path = trap, pg_catalog, public;
\set ECHO none
\o /dev/null
SELECT text FROM public.statement ORDER BY n \gexec
\o
\set ECHO all
-- as it is for whoever asks himself
SELECT lower('X');
SELECT 1 = 1;
SELECT 1::oid;
SELECT pg_catalog.count(*) FROM pg_class;
-- only in pg_temp, which nobody names
SET search_path = public;
\set ECHO none
\o /dev/null
SELECT text FROM public.statement ORDER BY n \gexec
\o
\set ECHO all
SELECT 1::oid;
SELECT count(*) FROM pg_class;
-- in both, for one who may call them all
SET ROLE regress_io_probe_user;
SET search_path = pg_temp, trap, pg_catalog, public;
\set ECHO none
\o /dev/null
SELECT text FROM public.statement ORDER BY n \gexec
\o
\set ECHO all
RESET ROLE;
RESET search_path;
RESET pg_io_probe.scratch_reserve;

SET client_min_messages = error;
DROP SCHEMA trap CASCADE;
DISCARD TEMP;
DROP PROCEDURE lay;
DROP VIEW member;
DROP FUNCTION stored, measured;
DROP TABLE probed, corrected, stored, call, statement;
SELECT io_probe_prune('0', force => true) > 0 AS pruned;
DROP OWNED BY regress_io_probe_user;
DROP ROLE regress_io_probe_user;
