--
-- Runs that are kept: io_probe_measure, io_probe_import, io_probe_record, io_probe_prune, and the views of them
--
CREATE TABLE kept (id int, filler text) WITH (autovacuum_enabled = off);
INSERT INTO kept SELECT i, repeat('x', 900) FROM generate_series(1, 4000) i;
VACUUM kept;
CHECKPOINT;
SET pg_io_probe.scratch_reserve = 0;
SET timezone = 'UTC';
-- rows of the views as JSON, but for the relation
CREATE FUNCTION typed(probe text) RETURNS TABLE (run_id bigint, line jsonb) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE format('SELECT v.run_id, to_jsonb(v) - ''{run_id,run_started_at,label,relid}''::text[]
    FROM io_probe_%s_history AS v', probe);
END $$;

-- each probe is called by its name, with the arguments that it has
CREATE TABLE called (id bigint, probe text, on_table boolean);
SET client_min_messages = warning;
INSERT INTO called SELECT io_probe_record(probe, CASE WHEN on_table THEN 'kept'::regclass END, args::jsonb), probe, on_table
  FROM (VALUES ('seqscan', true, '{"paths": ["direct", "os"], "duration": "1 s"}'),
               ('random', true, '{"paths": ["os"], "duration": "20 ms", "depth": 2, "cold": false, "seed": 7}'),
               ('depth', true, '{"depths": [1, 2], "duration": "20 ms"}'),
               ('ping', true, '{"count": 3, "every": "0", "path": null}'),
               ('sync', false, '{"duration": "1 ms", "sections": ["no_sync", "other_fd"]}'),
               ('sync', false, '{"spcname": "pg_default", "duration": "1 ms", "sections": ["no_sync"]}'),
               ('readahead', true, '{"windows_kb": [64], "duration": "50 ms"}'),
               ('page_cost', true, '{"densities": [0.1], "concurrencies": [0], "duration": "300 ms"}'),
               ('recommend', true, '{"settings": ["wal_sync_method"]}'),
               ('recommend', false, '{"settings": ["wal_sync_method"]}'),
               ('iostat', false, '{"every": "10 ms"}'),
               ('device', false, '{}'), ('cache', true, '{}')) AS v(probe, on_table, args);
RESET client_min_messages;
SELECT probe, status, sqlstate, message, object, relid = 'kept'::regclass AS relid, relkind, schemaname, relname,
       rel_bytes = pg_relation_size('kept') AS rel_bytes, spcname = 'pg_default' AS spcname
  FROM io_probe_runs JOIN called USING (id, probe) ORDER BY id;
-- where and by whom
SELECT count(*), count(DISTINCT (kernel, host, server_version, system_identifier, in_recovery, datname, rolname, version)) AS same,
       bool_and(in_recovery IS FALSE AND datname = current_database() AND rolname = current_user) AS here,
       bool_and(server_version = current_setting('server_version') AND cluster_name IS NOT DISTINCT FROM
                nullif(current_setting('cluster_name'), '')) AS server,
       bool_and(system_identifier = (SELECT c.system_identifier::text FROM pg_control_system() AS c)) AS cluster,
       bool_and(kernel = 'Linux ' || trim(E'\n' FROM pg_read_file('/proc/sys/kernel/osrelease', 0, 100))) AS kernel,
       bool_and(host = trim(E'\n' FROM pg_read_file('/proc/sys/kernel/hostname', 0, 100))) AS host,
       bool_and(elapsed_ms > 0 AND started_at <= recorded_at + interval '1 min' AND label IS NULL) AS times,
       bool_and((own_bytes > 0) IS NOT FALSE) FILTER (WHERE probe = 'sync') AS own_bytes,
       bool_and((other_bytes >= 0) IS NOT FALSE) AS other_bytes, bool_and((steal_pct BETWEEN 0 AND 100) IS NOT FALSE) AS steal
  FROM io_probe_runs;
-- the devices and how they are set are those that io_probe_device shows
SELECT count(*) FROM io_probe_runs WHERE object = 'wal' AND (device, leaves) IS DISTINCT FROM
  (SELECT (string_agg(device, ','), coalesce(jsonb_agg(jsonb_build_object('device', device, 'model', model, 'scheduler', scheduler,
            'read_ahead_kb', read_ahead_kb, 'nr_requests', nr_requests, 'max_sectors_kb', max_sectors_kb, 'rotational', rotational,
            'write_cache', write_cache)), '[]')) FROM io_probe_device_full() WHERE object = 'wal' AND device IS NOT NULL);
-- settings are as SHOW prints them, and null where this version has none such
SELECT DISTINCT key FROM io_probe_runs, jsonb_each_text(settings) WHERE key NOT LIKE 'tablespace %' AND value IS DISTINCT FROM current_setting(key, true);
SELECT count(*) > 0 AS some FROM io_probe_runs WHERE settings ? 'shared_buffers' AND settings ? 'pg_io_probe.engine';
-- a view shows what the probe returned, with its types
SELECT DISTINCT probe, (SELECT count(*) FROM typed(probe)) = (SELECT count(*) FROM io_probe_results r JOIN called c ON c.id = run_id
         WHERE c.probe = called.probe) AS rows,
       NOT EXISTS (SELECT run_id, line FROM typed(probe)
                   EXCEPT SELECT run_id, result - 'relid' FROM io_probe_results) AS equal
  FROM called WHERE to_regclass('io_probe_' || probe || '_history') IS NOT NULL ORDER BY probe;
SELECT run_id = id AS run_id, path, relid = 'kept'::regclass::oid AS relid, pg_typeof(relid) AS oid, pg_typeof(notes) AS notes,
       v.started_at BETWEEN run_started_at AND run_started_at + interval '1 min' AS times
  FROM io_probe_seqscan_history v JOIN called ON run_id = id ORDER BY path;
-- advice is stale under another major version or io_method; what is no advice keeps its doubt
CREATE FUNCTION stored_advice(other jsonb) RETURNS TABLE (runs bigint, recommended text, doubt text) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE io_probe_results SET result = result || other FROM called WHERE id = run_id AND probe = 'recommend';
  RETURN QUERY SELECT count(DISTINCT run_id), h.recommended, h.doubt FROM io_probe_recommend_history AS h GROUP BY 2, 3;
END $$;
BEGIN;
SELECT * FROM stored_advice('{}');
SELECT * FROM stored_advice('{"recommended": "fdatasync", "doubt": null}');
SELECT * FROM stored_advice('{"server_version": 14}');
SELECT * FROM stored_advice(jsonb_build_object('server_version', current_setting('server_version_num')::int / 10000, 'io_method', 'another'));
SELECT * FROM stored_advice(jsonb_build_object('io_method', current_setting('io_method', true)));
ROLLBACK;
DROP FUNCTION stored_advice;
-- in what is stored a relation is its oid
SELECT probe, jsonb_typeof(result -> 'relid') AS relid, bool_and((result ->> 'relid')::oid = 'kept'::regclass) AS equal
  FROM io_probe_results JOIN called ON id = run_id WHERE result ->> 'relid' IS NOT NULL GROUP BY 1, 2 ORDER BY 1;
SELECT array_agg(ordinal ORDER BY ordinal) AS ordinals, array_agg((result ->> 'request')::int ORDER BY ordinal) AS requests
  FROM io_probe_results JOIN called ON id = run_id WHERE probe = 'ping';
-- series tell apart what was measured, but not the seed; configurations, under what
SELECT io_probe_record('ping', 'kept', '{"count": 1, "path": "os", "options": {"seed": 1}}') AS a \gset
SELECT io_probe_record('ping', 'kept', '{"path": "os", "options": {"seed": 1}, "count": 1}') AS b \gset
SELECT io_probe_record('ping', 'kept', '{"count": 2, "path": "os", "every": "0"}') AS c \gset
SELECT io_probe_record('random', 'kept', '{"paths": ["os"], "duration": "20 ms", "seed": 8, "cold": false, "depth": 2}') AS d \gset
SELECT (SELECT count(DISTINCT series) FROM io_probe_runs WHERE id IN (:a, :b)) AS "a, b",
       (SELECT count(DISTINCT series) FROM io_probe_runs WHERE id IN (:a, :b, :c)) AS "a, b, c",
       (SELECT count(*) FROM io_probe_runs WHERE series = (SELECT series FROM io_probe_runs WHERE id = :d)) AS d;
SET pg_io_probe.engine = threads;
SELECT io_probe_record('ping', 'kept', '{"count": 1, "path": "os", "options": {"seed": 1}}') AS e \gset
RESET pg_io_probe.engine;
SELECT count(DISTINCT configuration) FROM io_probe_runs WHERE id IN (:a, :b);
SELECT count(DISTINCT configuration), count(DISTINCT series) FROM io_probe_runs WHERE id IN (:a, :e);

-- a value is measured, and stored later, or elsewhere
SELECT io_probe_measure('ping', 'kept', '{"count": 2, "every": "0"}') AS value \gset
SELECT array_agg(key ORDER BY key COLLATE "C") FROM jsonb_object_keys(:'value') AS key;
SELECT io_probe_import(:'value', 'mine') AS id \gset
SELECT label, probe, object, args, status, elapsed_ms = (:'value'::jsonb -> 'elapsed_ms')::float8 AS elapsed_ms,
       started_at = (:'value'::jsonb ->> 'started_at')::timestamptz AS started_at,
       (SELECT jsonb_agg(result ORDER BY ordinal) FROM io_probe_results WHERE run_id = id) = :'value'::jsonb -> 'rows' AS rows
  FROM io_probe_runs WHERE id = :id;
-- from a server that has what this one lacks: a relation, a device, settings, keys of a later version
SELECT io_probe_import(:'value'::jsonb || '{"host": "elsewhere", "later": [1], "version": "9.9.9", "system_identifier": "1",
    "relation": {"relid": 4294967294, "relkind": "r", "schemaname": "s", "relname": "t", "rel_bytes": 8192, "spcname": "fast"}}'
  || jsonb_build_object('rows', jsonb_build_array(:'value'::jsonb #> '{rows,0}' || '{"relid": 4294967295, "later": 1}')), 'theirs') AS id \gset
SELECT r.label, host, version, r.relid, r.schemaname, r.relname, r.spcname, v.relid, v.label, request, v.schemaname
  FROM io_probe_runs r JOIN io_probe_ping_history v ON run_id = id WHERE id = :id;
-- a relation that is gone disturbs nothing
CREATE TABLE gone AS SELECT * FROM kept LIMIT 100;
SELECT io_probe_record('seqscan', 'gone', '{"paths": ["os"]}', 'gone') AS id \gset
DROP TABLE gone;
SELECT label, path, relname, relid > 0 AS relid FROM io_probe_seqscan_history WHERE run_id = :id;
-- what is not a result is refused
\set VERBOSITY terse
SELECT io_probe_import(NULL); \echo :SQLSTATE
SELECT io_probe_import('null'); \echo :SQLSTATE
SELECT io_probe_import('[]'); \echo :SQLSTATE
SELECT io_probe_import('{}'); \echo :SQLSTATE
\set VERBOSITY default
SELECT io_probe_import(:'value'::jsonb || '{"format": 2}'); \echo :SQLSTATE
SELECT io_probe_import(:'value'::jsonb || '{"status": "good"}'); \echo :SQLSTATE
SELECT io_probe_import(:'value'::jsonb || '{"rows": [{}, 1]}'); \echo :SQLSTATE
SELECT io_probe_import(:'value'::jsonb || '{"rows": [{"lat_us": "fast"}]}'); \echo :SQLSTATE
SELECT io_probe_import(:'value'::jsonb || '{"started_at": "once"}'); \echo :SQLSTATE
CREATE FUNCTION refused(value jsonb) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM io_probe_import(value, 'refused');
  RETURN NULL;
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END $$;
SELECT key, refused(:'value'::jsonb - key) AS without, refused(jsonb_set(:'value', ARRAY[key], 'true')) AS wrong FROM unnest(ARRAY[
  'args', 'format', 'leaves', 'object', 'probe', 'rows', 'settings', 'started_at', 'status', 'system_identifier']) AS key;
-- a text of more than 10,000 characters is refused wherever it stands, and so is a part of more than a MiB
SELECT place, refused(merged) AS long, refused(replace(merged::text, repeat('x', 10001), repeat('x', 10000))::jsonb) AS shorter
  FROM (VALUES ('{"object": "x"}'), ('{"device": "x"}'), ('{"relation": {"relname": "x"}}'),
               ('{"settings": {"a": "x"}}'), ('{"settings": {"x": 1}}'), ('{"settings": {"a": {"b": ["x"]}}}'),
               ('{"leaves": [{}, {"model": "x"}]}'), ('{"leaves": [{"x": null}]}'), ('{"args": {"path": "x"}}'), ('{"args": {"x": {}}}'),
               ('{"rows": [{}, {"device": "x"}]}'), ('{"rows": [{"notes": ["", "x"]}]}')) AS v (place),
       LATERAL (SELECT :'value'::jsonb || replace(place, 'x', repeat('x', 10001))::jsonb) AS m (merged);
SELECT part, refused(:'value'::jsonb || jsonb_build_object(part, (SELECT jsonb_object_agg(i, repeat('x', 9000)) FROM generate_series(1, 120) AS i)))
  FROM unnest('{args,settings}'::text[]) AS part;
-- of what no column has nothing is kept, and of a message the start
SELECT refused(:'value'::jsonb || jsonb_build_object('later', repeat('x', 1 << 20), 'rows', jsonb_build_array(jsonb_build_object('later', repeat('x', 1 << 20))),
  'relation', jsonb_build_object('later', repeat('x', 1 << 20)), 'status', 'failed', 'message', repeat('x', 1 << 20))) AS message;
SELECT length(message) AS message, length(result::text) < 1000 AS row FROM io_probe_runs JOIN io_probe_results ON run_id = id
  WHERE label = 'refused' AND status = 'failed';
SELECT io_probe_record('ping', 'kept', jsonb_build_object('path', repeat('x', 10001))); \echo :SQLSTATE
DELETE FROM io_probe_results WHERE run_id IN (SELECT id FROM io_probe_runs WHERE label = 'refused');
DELETE FROM io_probe_runs WHERE label = 'refused';

-- what is stored depends on the result, not on the settings of whoever stores it; and is read under any
CREATE FUNCTION spoilt() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  reader text;
  found text := '';
BEGIN
  FOR reader IN SELECT relname::text FROM pg_class WHERE relkind = 'v' AND relname ~ '^io_probe_.*(_history|latest|metrics)$' UNION ALL
    VALUES ('io_probe_changes(1)'), ('io_probe_changes(10)'), ('io_probe_compare(''odd'', ''odd'')')
  LOOP
    BEGIN
      EXECUTE format('SELECT count(r::text) FROM %s AS r', reader);
    EXCEPTION WHEN OTHERS THEN
      found := concat_ws(' ', found, reader, SQLSTATE);
    END;
  END LOOP;
  RETURN found;
END $$;
CREATE TABLE setting (n serial, datestyle text, timezone text, intervalstyle text, digits text);
INSERT INTO setting (datestyle, timezone, intervalstyle, digits) VALUES ('ISO, MDY', 'UTC', 'postgres', '1'),
  ('SQL, DMY', 'Asia/Tokyo', 'sql_standard', '-15'), ('German, DMY', 'America/New_York', 'iso_8601', '3'), ('Postgres, YMD', 'Europe/Berlin', 'postgres_verbose', '0');
CREATE FUNCTION set_all(n int) RETURNS int LANGUAGE sql AS $$
  SELECT set_all.n FROM setting AS s, set_config('datestyle', datestyle, false) AS a, set_config('timezone', timezone, false) AS b,
    set_config('intervalstyle', intervalstyle, false) AS c, set_config('extra_float_digits', digits, false) AS d WHERE s.n = set_all.n $$;
CREATE TABLE odd AS SELECT n, io_probe_import(result, 'odd') AS run
  FROM generate_series(1, 4) AS n, set_all(n),
       LATERAL (SELECT :'value'::jsonb #> '{rows,0}' || '{"started_at": "2026-01-13 02:03:04.5", "lat_us": "123.45678901234567"}') AS l (line),
       LATERAL (SELECT :'value'::jsonb || '{"started_at": "2026-01-13 02:03", "elapsed_ms": 1234567.890123456}' || jsonb_build_object('rows', jsonb_build_array(line))) AS r (result);
SELECT set_all(1) \g /dev/null
SELECT result -> 'started_at' AS started_at, result -> 'lat_us' AS lat_us, started_at AS header, elapsed_ms, count(*)
  FROM io_probe_runs JOIN io_probe_results ON run_id = id JOIN odd ON run = id GROUP BY 1, 2, 3, 4;
SELECT n, refused(:'value'::jsonb || '{"started_at": "13/01/2026 00:00:00+00"}') AS header,
       refused(jsonb_set(:'value', '{rows,0,started_at}', '"13/01/2026 00:00:00+00"')) AS line,
       refused(jsonb_set(:'value', '{rows,0,started_at}', '"01/02/2026"')) AS ambiguous
  FROM generate_series(1, 4) AS n, set_all(n);
SELECT io_probe_import(jsonb_set(:'value', '{rows,0,started_at}', to_jsonb(said)), 'odd') > 0 AS stored
  FROM unnest('{infinity,-infinity,"4714-11-24 00:00+00 BC","0044-03-15 BC","294276-12-31 23:59:59.999999+00",epoch}'::text[]) AS said;
SELECT n, spoilt() FROM generate_series(1, 4) AS n, set_all(n);
SELECT set_all(1) \g /dev/null
SET intervalstyle = iso_8601;
SELECT io_probe_measure('ping', 'kept', '{"count": 1, "every": "2000 ms"}') -> 'args' AS args;
RESET intervalstyle;
DELETE FROM io_probe_runs WHERE label IN ('odd', 'refused');
DROP FUNCTION spoilt, set_all;
DROP TABLE setting, odd;

-- what is wrong with a call ends it, and nothing is stored
SELECT count(*) AS before FROM io_probe_runs \gset
\set SHOW_CONTEXT never
SELECT io_probe_record(NULL); \echo :SQLSTATE
SELECT io_probe_record('scan', 'kept'); \echo :SQLSTATE
SELECT io_probe_record('evict', 'kept'); \echo :SQLSTATE
SELECT io_probe_record('seqscan'); \echo :SQLSTATE
SELECT io_probe_record('sync', 'kept'); \echo :SQLSTATE
SELECT io_probe_record('seqscan', 0); \echo :SQLSTATE
SELECT io_probe_record('seqscan', 'pg_views'); \echo :SQLSTATE
SELECT io_probe_record('ping', 'kept', '{"count": 1, "paths": ["os"]}'); \echo :SQLSTATE
SELECT io_probe_record('device', args => '{"device": "x"}'); \echo :SQLSTATE
SELECT io_probe_record('ping', 'kept', '{"rel": "kept"}'); \echo :SQLSTATE
SELECT io_probe_record('ping', 'kept', '[]'); \echo :SQLSTATE
SELECT io_probe_record('ping', 'kept', '{"count": 0}'); \echo :SQLSTATE
SELECT io_probe_record('ping', 'kept', '{"options": {"speed": 1}}'); \echo :SQLSTATE
SELECT io_probe_record('ping', 'kept', '{"options": "speed"}'); \echo :SQLSTATE
SELECT io_probe_record('ping', 'kept', '{"path": "it''s\\"}'); \echo :SQLSTATE
\set VERBOSITY sqlstate
SELECT io_probe_record('ping', 'kept', '{"count": "many"}'); \echo :SQLSTATE
SELECT io_probe_record('ping', 'kept', '{"count": [1, 2]}'); \echo :SQLSTATE
SELECT io_probe_record('ping', 'kept', '{"path": "os''; DROP TABLE kept; --"}'); \echo :SQLSTATE
\set VERBOSITY default
-- so does an end that was asked for
SET statement_timeout = '200 ms';
SELECT io_probe_record('ping', 'kept', '{"count": 50, "every": "1 s"}'); \echo :SQLSTATE
RESET statement_timeout;
BEGIN READ ONLY;
SELECT io_probe_record('unknown'); \echo :SQLSTATE
ROLLBACK;
BEGIN READ ONLY;
SELECT io_probe_import('{}'); \echo :SQLSTATE
ROLLBACK;
BEGIN READ ONLY;
SELECT io_probe_prune('1 year'); \echo :SQLSTATE
ROLLBACK;
SELECT count(*) - :before AS stored FROM io_probe_runs;
-- but measured in a read-only transaction
BEGIN READ ONLY;
SELECT io_probe_measure('ping', 'kept', '{"count": 1}') ->> 'status' AS status;
-- equal arguments make one series, however they are written
SELECT DISTINCT io_probe_measure('seqscan', 'kept', args::jsonb) -> 'args' AS args FROM (VALUES
  ('{"paths": ["os"], "duration": "0.1 s", "cold": false, "options": {"max_bytes": "64kB", "max_p99": null}}'),
  ('{"duration": "100 ms", "options": {"max_bytes": 65536}, "paths": "os"}')) AS given (args);
SELECT DISTINCT io_probe_measure('seqscan', 'kept', args::jsonb) -> 'args' AS args FROM (VALUES
  ('{"paths": ["direct", "server", "os"], "options": {}, "depth": null}'), ('{}')) AS given (args);
COMMIT;

-- bad luck is kept, and takes nothing with it
CREATE TABLE twice AS SELECT 1 AS id FROM generate_series(1, 2);
\set VERBOSITY sqlstate
CREATE UNIQUE INDEX CONCURRENTLY half_built ON twice (id);
\set VERBOSITY default
SET pg_io_probe.scratch_reserve = 2147483647;
BEGIN;
CREATE TABLE meanwhile AS SELECT io_probe_record('ping', 'half_built', '{"count": 1}', 'bad') AS id;
SET LOCAL client_min_messages = error;
INSERT INTO meanwhile SELECT io_probe_record('ping', 'kept', '{"count": 1, "mode": "write"}', 'bad');
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
SELECT count(*) FROM io_probe_progress();
COMMIT;
SELECT label, status, sqlstate, regexp_replace(message, '"/.*"(.*) \d+', '"…"\1 …') AS message, elapsed_ms > 0 AS elapsed_ms, object
  FROM io_probe_runs JOIN meanwhile USING (id) ORDER BY id;
SELECT count(*) FROM io_probe_results JOIN meanwhile ON run_id = id;
DROP TABLE meanwhile;
SELECT io_probe_measure('ping', 'half_built', '{"count": 1}') ->> 'status' AS status;
SET pg_io_probe.scratch_reserve = 0;
DROP TABLE twice;
-- the settings are the caller's again
SELECT current_setting('search_path') AS search_path, current_user = session_user AS same_user;
-- whatever stands before it on search_path, pg_temp included, the runs go where they belong
CREATE SCHEMA trap;
CREATE TABLE trap.io_probe_runs (LIKE io_probe_runs);
CREATE TEMP TABLE io_probe_runs (LIKE io_probe_runs);
CREATE FUNCTION trap.io_probe_ping_full(rel regclass, count int) RETURNS SETOF io_probe_ping_full_row LANGUAGE plpgsql AS
  $$ BEGIN RAISE 'trapped'; END $$;
CREATE FUNCTION trap.concat(jsonb, jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
CREATE OPERATOR trap.|| (leftarg = jsonb, rightarg = jsonb, function = trap.concat);
CREATE FUNCTION trap.field(jsonb, text) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
CREATE OPERATOR trap.-> (leftarg = jsonb, rightarg = text, function = trap.field);
SET search_path = trap, pg_temp, pg_catalog, public;
SELECT io_probe_record('ping', 'kept', '{"count": 1}', 'trap') > 0 AS recorded;
SELECT io_probe_prune('100 years');
RESET search_path;
SELECT count(*) FROM trap.io_probe_runs;
SELECT count(*) FROM pg_temp.io_probe_runs;
SELECT count(*) FROM public.io_probe_runs WHERE label = 'trap';
SET client_min_messages = warning;
DROP SCHEMA trap CASCADE;
DROP TABLE pg_temp.io_probe_runs;
RESET client_min_messages;

-- figures that can't be compared are left out, and what has been checked can't be said otherwise by the relation
SELECT io_probe_import(:'value'::jsonb || jsonb_build_object('probe', 'seqscan', 'object', 's.hostile',
  'rows', '[{"path": "direct", "mib_s": "NaN"}, {"path": "server", "mib_s": "Infinity"}, {"mib_s": 7},
    {"path": "os", "mib_s": 5, "ci_low": 1e308, "ci_high": 1e308}]'::jsonb,
  'relation', '{"probe": "ping", "settings": "x", "leaves": 5}'::jsonb)) AS id \gset
SELECT probe, jsonb_typeof(settings) AS settings, jsonb_typeof(leaves) AS leaves FROM io_probe_runs WHERE id = :id;
SELECT item, value, error FROM io_probe_metrics WHERE run_id = :id;
SELECT item, now FROM io_probe_changes_full() WHERE run_id = :id;
SELECT io_probe_import(:'value'::jsonb || '{"started_at": "294276-01-01"}'); \echo :SQLSTATE
\set VERBOSITY terse
SELECT io_probe_import(:'value'::jsonb || '{"started_at": "-infinity"}'); \echo :SQLSTATE
\set VERBOSITY default
SELECT io_probe_import(:'value', repeat('x', 1001)); \echo :SQLSTATE
SELECT io_probe_record('ping', 'kept', label => repeat('x', 1001)); \echo :SQLSTATE

-- pruning goes by when a run started, and takes its rows along
SELECT io_probe_prune(NULL); \echo :SQLSTATE
SELECT io_probe_prune('-1 s', true); \echo :SQLSTATE
SELECT io_probe_prune('10 years');
SELECT io_probe_import(jsonb_set(:'value', '{started_at}', '"2001-01-01"'), 'old') AS id \gset
SELECT io_probe_prune('10 years');
SELECT count(*) FROM io_probe_runs WHERE label = 'old';
SELECT count(*) FROM io_probe_results WHERE run_id = :id;
SELECT count(*) > 20 AS others FROM io_probe_runs;
SELECT io_probe_prune('0'); \echo :SQLSTATE
SELECT io_probe_prune('23:59:59', force => false); \echo :SQLSTATE
SELECT io_probe_prune('1 day', force => NULL);
SELECT io_probe_prune('0', force => true) = count(*) AS all FROM io_probe_runs;
SELECT (SELECT count(*) FROM io_probe_runs) AS runs, (SELECT count(*) FROM io_probe_results) AS results;

DROP FUNCTION typed, refused;
DROP TABLE kept, called;
