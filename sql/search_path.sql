--
-- A schema in which every name of pg_catalog means something else, first in search_path: nothing of the extension falls for it
--
SET client_min_messages = error;
CREATE TABLE toasted (id int PRIMARY KEY, t text);
INSERT INTO toasted SELECT g, 'x' FROM generate_series(1, 100) AS g;
ANALYZE toasted;
CREATE TABLE stored AS SELECT io_probe_record('ping', 'toasted', '{"count": 2, "path": "os"}', 'a') AS run,
  io_probe_measure('ping', 'toasted', '{"count": 2, "path": "os"}') AS result,
  io_probe_record('report', 'toasted', '{"duration": "30 ms"}') AS report;
CREATE ROLE regress_io_probe_user;
GRANT SELECT ON toasted, stored TO regress_io_probe_user;
ALTER TABLE toasted OWNER TO regress_io_probe_user;
GRANT EXECUTE ON FUNCTION io_probe_evict, io_probe_sync, io_probe_sync_full, io_probe_measure, io_probe_import, io_probe_record, io_probe_prune, io_probe_correct, io_probe_ping, io_probe_ping_full,
  io_probe_seqscan, io_probe_seqscan_full, io_probe_recommend, io_probe_recommend_full, io_probe_page_cost, io_probe_page_cost_full, io_probe_report, io_probe_report_full TO regress_io_probe_user;
-- a call of each function
CREATE TABLE call (name text, arguments text);
INSERT INTO call VALUES
  ('io_probe_cache', '''public.toasted'''),
  ('io_probe_changes', '1'),
  ('io_probe_check', ''),
  ('io_probe_compare', '(SELECT run FROM public.stored), (SELECT run FROM public.stored)'), ('io_probe_compare', '''a'', ''a'''),
  ('io_probe_correct', '''public.toasted_pkey'', 0.5'),
  ('io_probe_correlation', '''public.toasted'''),
  ('io_probe_counters', ''),
  ('io_probe_depth', '''public.toasted'', ''{1,2}'', ''2 ms'''),
  ('io_probe_device', ''),
  ('io_probe_evict', '''public.toasted'''),
  ('io_probe_explain', '''SELECT FROM public.toasted'', true'),
  ('io_probe_explain_json', '''[{"Plan": {"Node Type": "Seq Scan", "Schema": "public", "Relation Name": "toasted"}}]'''),
  ('io_probe_import', '(SELECT result FROM public.stored)'),
  ('io_probe_iostat', '''10 ms'''),
  ('io_probe_iostat_query', '''SELECT FROM public.toasted'''),
  ('io_probe_measure', '''ping'', ''public.toasted'', ''{"count": 1, "mode": "write", "every": "0"}'''),
  ('io_probe_page_cost', '''public.toasted'', ''{1}'', ''{1}'', ''2 ms'', true'),
  ('io_probe_ping', '''public.toasted'', mode => ''pingpong'', count => 1'),
  ('io_probe_progress', ''),
  ('io_probe_prune', '''1 year'''),
  ('io_probe_random', '''public.toasted'', cold => true'),
  ('io_probe_readahead', '''public.toasted'', ''{64}'', ''10 ms'''),
  ('io_probe_recommend', '''public.toasted'', duration => ''2 ms'', cold => true, writes => true'),
  ('io_probe_record', '''seqscan'', ''public.toasted'', ''{"cold": true}'', ''a'''),
  ('io_probe_report', '''public.toasted'', ''30 ms'', true, true'),
  ('io_probe_seqscan', '''public.toasted'', cold => true'),
  ('io_probe_sync', '''pg_default'', ''{no_sync}'', ''1 ms''');
CREATE VIEW member AS
  SELECT classid, objid FROM pg_depend JOIN pg_extension e ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid
  WHERE extname = 'pg_io_probe' AND deptype = 'e';
INSERT INTO call SELECT proname, arguments FROM call JOIN pg_proc ON proname = name || '_full';
INSERT INTO call VALUES ('io_probe_report', 'run => (SELECT report FROM public.stored)');
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

SET client_min_messages = warning;
SET pg_io_probe.scratch_reserve = 0;
\pset tuples_only on
\pset format unaligned
-- first in search_path, before pg_catalog
SET search_path = trap, pg_catalog, public;
SELECT text FROM public.statement ORDER BY n \gexec
-- as it is for whoever asks himself
SELECT lower('X');
SELECT 1 = 1;
SELECT 1::oid;
SELECT pg_catalog.count(*) FROM pg_class;
-- only in pg_temp, which nobody names
SET search_path = public;
SELECT text FROM public.statement ORDER BY n \gexec
SELECT 1::oid;
SELECT count(*) FROM pg_class;
-- in both, for one who has others' rights for a while
SET ROLE regress_io_probe_user;
SET search_path = pg_temp, trap, pg_catalog, public;
SELECT text FROM public.statement
  WHERE name OPERATOR(pg_catalog.=) ANY ('{io_probe_measure,io_probe_import,io_probe_record,io_probe_prune,io_probe_recommend,io_probe_correct,
    io_probe_page_cost,io_probe_report,io_probe_report_full}'::pg_catalog.text[])
  ORDER BY n \gexec
RESET ROLE;
RESET search_path;
RESET pg_io_probe.scratch_reserve;

SET client_min_messages = error;
DROP SCHEMA trap CASCADE;
DISCARD TEMP;
DROP PROCEDURE lay;
DROP VIEW member;
DROP TABLE toasted, stored, call, statement;
SELECT io_probe_prune('0', force => true) > 0 AS pruned;
DROP OWNED BY regress_io_probe_user;
DROP ROLE regress_io_probe_user;
