--
-- io_probe_ping. Past the page cache it is unsupported where a file system refuses O_DIRECT: then one row says so.
--
SET wal_skip_threshold = 0;
CREATE TABLE pinged (id int, filler text) WITH (autovacuum_enabled = off);
ALTER TABLE pinged ALTER filler SET STORAGE PLAIN;
INSERT INTO pinged SELECT i, repeat('x', 7000) FROM generate_series(1, 200) i;
VACUUM FULL pinged;
CHECKPOINT;
-- for file systems that are small
SET pg_io_probe.scratch_reserve = 0;
-- ten reads, of which the first is warm-up
SELECT count(*), min(request), max(request), min(op) AS op, max(op) AS op, count(DISTINCT path) AS paths,
       min(lat_us) > 0 AS time, clock_timestamp() - min(started_at) >= '180 ms' AS apart
  FROM io_probe_ping_full('pinged', every => '20 ms', path => 'os');
SELECT min(status) = 'unsupported' AND count(*) = 1 AND min(notes::text) <> '{}' AND count(request) = 0
       OR (count(*), max(request), min(op), max(op), min(path)) = (10, 10, 'read', 'read', 'direct')
       AND min(lat_us) > 0 AND count(*) FILTER (WHERE warmup) = 1 AS direct
  FROM io_probe_ping_full('pinged', every => '0');
SELECT request, op, warmup, lat_us > 0 AS time, path, status, notes, served_by IN ('os', 'device') IS NOT FALSE AS by
  FROM io_probe_ping_full('pinged', count => 3, every => '1 ms', path => 'os');
-- NULL stands for the default: ten, a tenth of a second apart
SET pg_io_probe.max_duration = '899ms';
SELECT * FROM io_probe_ping_full('pinged', count => NULL, every => NULL, mode => NULL, path => NULL, options => NULL);
SELECT count(*), string_agg(DISTINCT path, ',') AS path, bool_and(op = 'read') AS read
  FROM io_probe_ping_full('pinged', count => NULL, every => '0', mode => NULL, path => NULL, options => NULL) WHERE status <> 'unsupported'
  HAVING count(*) NOT IN (0, 10) OR NOT bool_and(path = 'direct' AND op = 'read');
RESET pg_io_probe.max_duration;
-- writes go elsewhere; the first of each kind is warm-up
SELECT request, op, warmup, lat_us > 0 AS time, served_by, path, status, notes, blkno
  FROM io_probe_ping_full('pinged', count => 3, every => '0', mode => 'write', path => 'os');
SELECT request, op, warmup, lat_us > 0 AS time, path, status, notes, num_nulls(served_by, blkno) = 2 AS nulls
  FROM io_probe_ping_full('pinged', count => 5, every => '0', mode => 'pingpong', path => 'os');
SELECT min(status) = 'unsupported' OR string_agg(op, ',' ORDER BY request) = 'write,read,write,read'
       AND string_agg(warmup::text, ',' ORDER BY request) = 'true,true,false,false' AS pingpong
  FROM io_probe_ping_full('pinged', count => 4, every => '0', mode => 'pingpong');
SELECT min(status) = 'unsupported' OR string_agg(op, ',') = 'write,write' AS write
  FROM io_probe_ping_full('pinged', count => 2, every => '0', mode => 'write', path => 'direct');
-- nothing of it is left, neither in the relation nor beside it
SELECT count(*), count(*) FILTER (WHERE filler = repeat('x', 7000)) AS whole FROM pinged;
SELECT name FROM pg_ls_tmpdir() WHERE name LIKE '%io\_probe%';
-- the tier is what the page cache tells: a block that was read through it is there the next time
SELECT count(*) FILTER (WHERE served_by = 'device') AS device, count(DISTINCT blkno) AS blocks
  FROM io_probe_seqscan_full('pinged', '{os}') AS s, LATERAL (SELECT * FROM io_probe_ping_full(s.relid, count => 20, every => '0', mode => 'read', path => 'os')) p;
SELECT complete AS emptied FROM io_probe_evict('pinged') \gset
SELECT served_by = 'device' OR NOT :'emptied' OR served_by IS NULL AS device
  FROM io_probe_ping_full('pinged', count => 1, every => '0', path => 'os');

-- the seed decides the order, whatever else; each block comes once
CREATE FUNCTION blocks(seed bigint, mode text DEFAULT 'read', path text DEFAULT 'os') RETURNS bigint[] LANGUAGE sql AS
  $$SELECT array_agg(blkno ORDER BY request) FROM io_probe_ping_full('pinged', count => 40, every => '0', mode => mode, path => path,
                                                                options => jsonb_build_object('seed', seed)) WHERE op = 'read'$$;
SELECT blocks(1) = blocks(1) AS same, blocks(1) <> blocks(2) AS another,
       coalesce(blocks(1, path => 'direct') = blocks(1), true) AS path,
       blocks(1, 'pingpong') = (blocks(1))[1:20] AS pingpong, blocks(9223372036854775807) <> blocks(0) AS great;
-- a seed that could not be reported is refused
SELECT seed FROM io_probe_ping_full('pinged', options => '{"seed": 9223372036854775808}'); \echo :SQLSTATE
-- without one, any
SELECT count(DISTINCT blocks(NULL)) > 1 AS any FROM generate_series(1, 5);
SELECT count(*) AS reads, count(DISTINCT blkno) AS blocks, min(blkno), max(blkno), max(request) AS request,
       string_agg(request::text, ' ') FILTER (WHERE notes::text LIKE '%every block % has been read%') AS why
  FROM io_probe_ping_full('pinged', count => 1000, every => '0', path => 'os');
SELECT min(status) = 'unsupported' OR count(DISTINCT blkno) = 200 AND max(blkno) = 199 AS direct
  FROM io_probe_ping_full('pinged', count => 300, every => '0');
-- writes go round
SELECT count(*), count(DISTINCT op) AS ops FROM io_probe_ping_full('pinged', count => 1500, every => '0', mode => 'write', path => 'os');

-- relations with nothing to read: a row that says so
CREATE TABLE kind_empty (t text);
SELECT request, op, warmup, lat_us, blkno, path, status, doubt, notes[1] ~ 'every block .* has been read' AS why,
       device IS NOT NULL OR cardinality(notes) > 2 AS device
  FROM io_probe_ping_full('kind_empty', count => 2, path => 'os');
SELECT request, op, notes <> '{}' AS notes FROM io_probe_ping_full('kind_empty', count => 4, every => '0', mode => 'pingpong', path => 'os');
SELECT request, op, notes <> '{}' AS notes FROM io_probe_ping_full('kind_empty', count => 2, every => '0', mode => 'write', path => 'os');
-- every kind of relation with storage
CREATE MATERIALIZED VIEW kind_view AS SELECT 1 AS one;
CREATE TABLE kind_toast (t text);
ALTER TABLE kind_toast ALTER t SET STORAGE EXTERNAL;
INSERT INTO kind_toast VALUES (repeat('x', 100000));
CREATE TEMP TABLE kind_temp AS SELECT 1 AS one;
CREATE INDEX kind_index ON pinged (id);
CHECKPOINT;
SELECT c.relname, c.relkind, p.request, p.op, p.warmup FROM pg_class c, io_probe_ping_full(c.oid, count => 2, every => '0', mode => 'write', path => 'os') p
  WHERE c.relname LIKE 'kind\_%' ORDER BY c.relname, p.request;
SELECT c.relkind, p.request, p.op, p.blkno BETWEEN 0 AND 20 AS blkno
  FROM pg_class c, io_probe_ping_full(c.oid, count => 2, every => '0', path => 'os') p
  WHERE c.relname = 'kind_index' OR c.oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'kind_toast')
  ORDER BY c.relkind, p.request;
SELECT c.relname, p.request, p.op, p.blkno FROM pg_class c, io_probe_ping_full(c.oid, count => 1, every => '0', path => 'os') p
  WHERE c.relname = 'kind_view';
-- blocks that were never written to the file are passed over (up to 15 there are none)
CREATE TABLE sparse AS SELECT i::char(1000) FROM generate_series(1, 2000) i;
SELECT blks_total AS blks, hole_bytes / 8192 AS before FROM io_probe_cache('sparse') \gset
SELECT count(blkno) AS reads FROM io_probe_ping_full('sparse', count => 1000, every => '0', path => 'os') \gset
SELECT :reads BETWEEN :blks - :before AND :blks - hole_bytes / 8192 AS reads FROM io_probe_cache('sparse');

-- identity, and the device that io_probe_device tells
SELECT DISTINCT relid, relname, spcname, started_at BETWEEN statement_timestamp() AND clock_timestamp() AS started
  FROM io_probe_ping_full('pinged', count => 2, every => '0', path => 'os');
SELECT request FROM io_probe_ping_full('pinged', count => 2, every => '0', path => 'os') p WHERE (device, read_ahead_kb) IS DISTINCT FROM
  (SELECT (string_agg(d.device, ','), min(d.read_ahead_kb)) FROM io_probe_device_full() d
   WHERE d.object = 'tablespace' AND d.spcname = p.spcname);

-- the scratch file keeps within its bounds, and leaves its reserve
SET pg_io_probe.scratch_reserve = 2147483647;
\set VERBOSITY terse
DO $$
BEGIN
  PERFORM io_probe_ping_full('pinged', count => 1, every => '0', mode => 'write', path => 'os');
EXCEPTION WHEN disk_full THEN
  RAISE NOTICE '%', regexp_replace(SQLERRM, '"/.*"', '"..."');
END $$;
SET pg_io_probe.scratch_reserve = 0;
SET pg_io_probe.scratch_limit = '1MB';
SELECT count(*) FROM io_probe_ping_full('pinged', count => 200, every => '0', mode => 'write', path => 'os');
RESET pg_io_probe.scratch_limit;
\set VERBOSITY default

-- all calls of a statement share pg_io_probe.max_duration
SET pg_io_probe.max_duration = '1500ms';
WITH called AS MATERIALIZED
  (SELECT i, p.* FROM generate_series(1, 4) i,
     io_probe_ping_full('pinged', count => 3, every => '400 ms', path => 'os', options => jsonb_build_object('seed', i)) p)
SELECT i, count(request) AS requests, string_agg(status, ',') AS status,
       max(notes::text) = '{"stopped: this statement has used up pg_io_probe.max_duration"}' AS why
  FROM called WHERE i IN (1, 4) GROUP BY i ORDER BY i;
WITH called AS MATERIALIZED
  (SELECT i, p.* FROM generate_series(1, 4) i,
     io_probe_ping_full('pinged', count => 3, every => '400 ms', mode => 'pingpong', path => 'os', options => jsonb_build_object('seed', i)) p)
SELECT i, count(request) AS requests, min(status) AS status FROM called WHERE i = 4 GROUP BY i;
-- nothing else bounds the time of a call
SET pg_io_probe.max_duration = '5ms';
SELECT count(request) < 10000 AS ended, string_agg(DISTINCT status, ',' ORDER BY status) AS status, min(notes::text) AS why
  FROM io_probe_ping_full('pinged', count => 10000, every => '0 s', mode => 'write', path => 'os');
RESET pg_io_probe.max_duration;

SET client_min_messages = warning;
DROP FUNCTION blocks;
DROP TABLE pinged, kind_empty, kind_toast, kind_temp, sparse CASCADE;
DROP MATERIALIZED VIEW kind_view;
