--
-- Who may do what; after a refusal comes the SQLSTATE
--
CREATE ROLE regress_io_probe_plain;
CREATE ROLE regress_io_probe_monitor IN ROLE pg_monitor;
CREATE ROLE regress_io_probe_prober;
GRANT EXECUTE ON FUNCTION io_probe_seqscan, io_probe_seqscan_full, io_probe_random, io_probe_random_full, io_probe_depth, io_probe_depth_full, io_probe_ping, io_probe_ping_full
  TO regress_io_probe_prober;
CREATE TABLE secret (id int PRIMARY KEY, t text);
INSERT INTO secret VALUES (1, 'x');
CREATE VIEW secret_view AS SELECT * FROM secret;
CREATE TABLE secret_parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE SEQUENCE secret_sequence;
CREATE MATERIALIZED VIEW secret_copy AS SELECT * FROM secret;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_io_probe LOCATION '';
SELECT t.spcname AS own_tablespace FROM pg_database d JOIN pg_tablespace t ON t.oid = d.dattablespace
  WHERE d.datname = current_database() \gset
SELECT c.reltoastrelid AS toast, i.indexrelid AS toast_index
  FROM pg_class c JOIN pg_index i ON indrelid = reltoastrelid WHERE c.relname = 'secret' \gset

-- anyone may explain what he may read
SET ROLE regress_io_probe_plain;
SET client_min_messages = warning;
SELECT node_type FROM io_probe_explain_full('SELECT 1', true) WHERE node_id > 0;
RESET client_min_messages;
SELECT node_type FROM io_probe_explain_full(plan => '{"Plan": {"Node Type": "Result"}}');
SELECT node_type FROM io_probe_explain_full('SELECT * FROM secret'); \echo :SQLSTATE
SELECT node_type FROM io_probe_explain_full('SELECT * FROM secret', true); \echo :SQLSTATE

-- pg_monitor sees the facts, even of a table that it can't read
SET ROLE regress_io_probe_monitor;
SELECT count(*) > 0 AS works FROM io_probe_device_full();
SELECT count(*) > 0 AS works FROM io_probe_iostat_full('10 ms');
SELECT count(*) FROM io_probe_progress();
SELECT count(*) FROM io_probe_cache('secret');

-- what is stored it reads and compares
SELECT count(*) FROM io_probe_runs;
SELECT count(*) FROM io_probe_results;
SELECT count(*) FROM io_probe_ping_history;
SELECT count(*) FROM io_probe_latest;
SELECT verdict FROM io_probe_compare(-1, -2); \echo :SQLSTATE

-- who may record runs a probe with his own rights: EXECUTE on that, and what it asks for
RESET ROLE;
GRANT EXECUTE ON FUNCTION io_probe_measure, io_probe_import, io_probe_record, io_probe_prune TO regress_io_probe_prober;
SET ROLE regress_io_probe_prober;
\set SHOW_CONTEXT never
SELECT io_probe_record('cache', 'secret'); \echo :SQLSTATE
SELECT io_probe_record('sync'); \echo :SQLSTATE
SELECT io_probe_measure('iostat'); \echo :SQLSTATE
SELECT io_probe_record('seqscan', 'secret'); \echo :SQLSTATE
SELECT io_probe_record('ping', 'secret_pkey'); \echo :SQLSTATE
SELECT io_probe_measure('depth', :toast); \echo :SQLSTATE
RESET ROLE;
SELECT count(*) FROM io_probe_runs;
GRANT SELECT ON secret TO regress_io_probe_prober;
SET ROLE regress_io_probe_prober;
SELECT io_probe_record('ping', 'secret', '{"count": 1, "path": "os"}') AS id \gset
SELECT io_probe_import(io_probe_measure('ping', 'secret_pkey', '{"count": 1, "path": "os"}'), 'imported') AS imported \gset
-- those that take a right of their own take it here, too
SELECT io_probe_record('seqscan', 'secret', '{"cold": true}'); \echo :SQLSTATE
SELECT io_probe_record('ping', 'secret', '{"mode": "write"}'); \echo :SQLSTATE
-- a query is his
RESET ROLE;
CREATE TABLE guarded ();
CREATE FUNCTION who_am_i() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  RAISE WARNING 'query of %', current_user; END $$;
SET ROLE regress_io_probe_prober;
SET client_min_messages = warning;
SELECT count(*) > 0 AS explained FROM io_probe_explain('SELECT who_am_i()', true);
RESET client_min_messages;
SELECT count(*) FROM io_probe_explain('SELECT FROM guarded', true); \echo :SQLSTATE
SELECT current_user;
RESET ROLE;
DROP FUNCTION who_am_i;
DROP TABLE guarded;
SELECT probe, rolname, label, relname, status FROM io_probe_runs ORDER BY id;
-- what is stored he neither reads nor changes but by these functions
SET ROLE regress_io_probe_prober;
SELECT id FROM io_probe_runs; \echo :SQLSTATE
UPDATE io_probe_runs SET label = 'mine'; \echo :SQLSTATE
INSERT INTO io_probe_runs (id) VALUES (1); \echo :SQLSTATE
SELECT io_probe_prune('0', force => true);
\set SHOW_CONTEXT errors
RESET ROLE;
REVOKE SELECT ON secret FROM regress_io_probe_prober;

-- EXECUTE alone is not enough: indexes and TOAST tables are judged by their table
SET ROLE regress_io_probe_prober;
SELECT path FROM io_probe_seqscan_full('secret'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('secret_pkey'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full(:toast); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full(:toast_index); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('secret_sequence'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('secret_copy'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('secret_pkey'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full(:toast); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('secret'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full(:toast_index); \echo :SQLSTATE
-- rights come before kinds
SELECT path FROM io_probe_seqscan_full('secret_view'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('secret_parted'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('secret_parted_pkey'); \echo :SQLSTATE
-- one column is not the table
RESET ROLE;
GRANT SELECT (id) ON secret TO regress_io_probe_prober;
SET ROLE regress_io_probe_prober;
SELECT path FROM io_probe_seqscan_full('secret', '{os}'); \echo :SQLSTATE
-- SELECT is enough, for all that belongs to the table
RESET ROLE;
GRANT SELECT ON secret, secret_sequence, secret_view TO regress_io_probe_prober;
SET ROLE regress_io_probe_prober;
SELECT path FROM io_probe_seqscan_full('secret', '{os}');
SELECT path FROM io_probe_seqscan_full('secret_pkey', '{os}');
SELECT path FROM io_probe_seqscan_full(:toast, '{os}');
SELECT path FROM io_probe_seqscan_full(:toast_index, '{os}');
SELECT path FROM io_probe_random_full('secret_pkey', '{os}');
SELECT path FROM io_probe_random_full(:toast_index, '{os}');
SELECT depth FROM io_probe_depth_full('secret', '{1}');
SELECT path FROM io_probe_seqscan_full('secret_sequence', '{os}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('secret_view', '{os}'); \echo :SQLSTATE
-- from 17 on MAINTAIN is enough, too; earlier there is none
RESET ROLE;
REVOKE ALL ON secret FROM regress_io_probe_prober;
SELECT current_setting('server_version_num')::int >= 170000 AS maintain \gset
\if :maintain
GRANT MAINTAIN ON secret TO regress_io_probe_prober;
\else
GRANT SELECT ON secret TO regress_io_probe_prober;
\endif
SET ROLE regress_io_probe_prober;
SELECT path FROM io_probe_seqscan_full('secret_pkey', '{os}');
SELECT path FROM io_probe_random_full('secret_pkey', '{os}');

-- emptying caches is a right of its own
SELECT path FROM io_probe_seqscan_full('secret', '{os}', cold => true); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('secret', '{os}', cold => true); \echo :SQLSTATE
SELECT count(*) FROM io_probe_evict('secret'); \echo :SQLSTATE
RESET ROLE;
GRANT EXECUTE ON FUNCTION io_probe_evict TO regress_io_probe_prober;
SET ROLE regress_io_probe_prober;
SELECT path FROM io_probe_seqscan_full('secret', '{os}', cold => true);
SELECT path FROM io_probe_random_full('secret', '{os}', cold => true);
SELECT count(*) FROM io_probe_evict('secret');
-- so is writing: it takes EXECUTE on the extension's own io_probe_sync, and no other function of this name will do
SELECT op FROM io_probe_ping_full('secret', count => 1, mode => 'write'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('secret', count => 1, mode => 'pingpong', path => 'os'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(); \echo :SQLSTATE
RESET ROLE;
CREATE SCHEMA lookalike AUTHORIZATION regress_io_probe_prober;
SET ROLE regress_io_probe_prober;
CREATE FUNCTION lookalike.io_probe_sync() RETURNS int LANGUAGE sql AS 'SELECT 1';
SET search_path = lookalike, public;
SELECT op FROM io_probe_ping_full('secret', count => 1, mode => 'write', path => 'os'); \echo :SQLSTATE
-- nor does it stand in the way of the right one
RESET ROLE;
SET pg_io_probe.scratch_reserve = 0;
GRANT EXECUTE ON FUNCTION public.io_probe_sync, public.io_probe_sync_full TO regress_io_probe_prober;
REVOKE ALL ON FUNCTION lookalike.io_probe_sync FROM PUBLIC, regress_io_probe_prober;
SET ROLE regress_io_probe_prober;
SELECT op FROM io_probe_ping_full('secret', count => 2, every => '0', mode => 'pingpong', path => 'os');
SELECT section FROM public.io_probe_sync_full(duration => '1 ms', sections => '{no_sync}');
RESET search_path;
-- it is not SELECT on a table, nor does it give it
RESET ROLE;
CREATE TABLE other_secret ();
SET ROLE regress_io_probe_prober;
SELECT op FROM io_probe_ping_full('other_secret', count => 1, every => '0', mode => 'write', path => 'os'); \echo :SQLSTATE
-- in a tablespace it takes CREATE there, except in the database's own
SELECT section FROM io_probe_sync_full('regress_io_probe'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full('pg_global'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('pg_database', count => 1, mode => 'write', path => 'os'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(:'own_tablespace', duration => '1 ms', sections => '{no_sync}');
RESET ROLE;
GRANT CREATE ON TABLESPACE regress_io_probe TO regress_io_probe_prober;
SET ROLE regress_io_probe_prober;
SELECT section FROM io_probe_sync_full('regress_io_probe', duration => '1 ms', sections => '{no_sync}');
-- without EXECUTE it is over
RESET ROLE;
REVOKE EXECUTE ON FUNCTION io_probe_sync, io_probe_sync_full FROM regress_io_probe_prober;
SET ROLE regress_io_probe_prober;
SELECT op FROM io_probe_ping_full('secret', count => 1, mode => 'write', path => 'os'); \echo :SQLSTATE
-- a mode that is none is wrong for everyone
SELECT op FROM io_probe_ping_full('secret', count => 1, mode => 'rewrite'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('secret', count => 1, path => 'os');
-- a superuser may
RESET ROLE;
SELECT op FROM io_probe_ping_full('secret', count => 2, every => '0', mode => 'pingpong', path => 'os');
SELECT section FROM io_probe_sync_full('regress_io_probe', duration => '1 ms', sections => '{no_sync}');
RESET pg_io_probe.scratch_reserve;
-- none of it reaches other tables
RESET ROLE;
REVOKE ALL ON secret FROM regress_io_probe_prober;
SET ROLE regress_io_probe_prober;
SELECT count(*) FROM io_probe_evict('secret'); \echo :SQLSTATE
SELECT count(*) FROM io_probe_evict('secret_pkey'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('secret_pkey', cold => true); \echo :SQLSTATE
RESET ROLE;

DROP OWNED BY regress_io_probe_plain, regress_io_probe_monitor, regress_io_probe_prober;
DROP ROLE regress_io_probe_plain, regress_io_probe_monitor, regress_io_probe_prober;
DROP VIEW secret_view;
DROP MATERIALIZED VIEW secret_copy;
DROP TABLE secret, secret_parted, other_secret;
DROP TABLESPACE regress_io_probe;
DROP SEQUENCE secret_sequence;
