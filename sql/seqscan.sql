--
-- io_probe_seqscan. The direct path is void where O_DIRECT reads memory (tmpfs) and unsupported where a file system
-- refuses it, then without figures; what a kernel doesn't tell is NULL.
--
-- one row a block; VACUUM FULL leaves none of them in shared buffers (with wal_level = minimal only if it need not log)
SET wal_skip_threshold = 0;
CREATE TABLE scanned (id int, filler text) WITH (autovacuum_enabled = off);
ALTER TABLE scanned ALTER filler SET STORAGE PLAIN;
INSERT INTO scanned SELECT i, repeat('x', 7000) FROM generate_series(1, 200) i;
VACUUM FULL scanned;
CHECKPOINT;
-- a session's first call counts its own reads, not those of the catalogs
\c -
SELECT shared_blks_hit, shared_blks_read, blks, complete FROM io_probe_seqscan_full('scanned', '{server}');
-- now all is in shared buffers
SELECT count(*) FROM scanned;
SELECT shared_blks_hit, shared_blks_read, shared_pct, os_pct, device_pct, cold
  FROM io_probe_seqscan_full('scanned', '{server}');

-- a row for each path, in this order, whatever the order of the argument
SELECT path FROM io_probe_seqscan_full('scanned');
SELECT path FROM io_probe_seqscan_full('scanned', '{os,direct,os}');
-- NULL stands for the default
SELECT path FROM io_probe_seqscan_full('scanned', NULL, NULL, NULL, chunk_kb => NULL, depth => NULL, options => NULL);
-- what they read and how
SELECT path, status, blks, complete, chunk_kb, depth, engine = 'pread' AS pread
  FROM io_probe_seqscan_full('scanned', '{server,os}');
SELECT path, status = 'unsupported' OR status IN ('ok', 'void') AND (blks, complete) = (200, true) AS complete,
       status = 'unsupported' OR (chunk_kb, depth) = (512, 8) AS defaults,
       status = 'unsupported' OR engine IN ('io_uring', 'threads') AS engine
  FROM io_probe_seqscan_full('scanned', '{direct}');
SELECT path, status = 'unsupported' OR (chunk_kb, depth, engine) = (64, 1, 'pread') AS depth_1
  FROM io_probe_seqscan_full('scanned', '{direct}', chunk_kb => 64, depth => 1);

-- rows to judge: warm, cold, limited; of a table, its index, a temporary and a shared table
CREATE INDEX scanned_id ON scanned (id);
CREATE TEMP TABLE own AS SELECT * FROM scanned;
CREATE TEMP TABLE result AS SELECT * FROM io_probe_seqscan_full('scanned');
INSERT INTO result SELECT * FROM io_probe_seqscan_full('scanned_id');
INSERT INTO result SELECT * FROM io_probe_seqscan_full('own');
INSERT INTO result SELECT * FROM io_probe_seqscan_full('pg_database');
INSERT INTO result SELECT * FROM io_probe_seqscan_full('scanned', '{direct,os}', cold => true);
INSERT INTO result SELECT * FROM io_probe_seqscan_full('scanned', duration => '300 ms', options => '{"max_iops": 100}');
-- the shares make 100 percent, or none is known, which a note says
SELECT path, relname FROM result WHERE status <> 'unsupported'
  AND (abs(shared_pct + os_pct + device_pct - 100) < 0.01) IS NOT TRUE
  AND NOT (num_nonnulls(shared_pct, os_pct, device_pct) = 0
           AND notes::text LIKE '%the tier that served the blocks is unknown%');
-- the buffer manager counted each block of the server path, and none of another's
SELECT path, relname FROM result
  WHERE CASE WHEN path <> 'server' THEN num_nonnulls(shared_blks_hit, shared_blks_read, local_blks_hit, local_blks_read)
             WHEN relname = 'own' THEN local_blks_hit + local_blks_read - blks + num_nonnulls(shared_blks_hit)
             ELSE shared_blks_hit + shared_blks_read - blks + num_nonnulls(local_blks_hit) END
        IS DISTINCT FROM 0;
-- rate times size is the bandwidth; the interval holds the value; a void row has neither, nor has one with pauses
SELECT path, relname FROM result WHERE CASE
    WHEN status IN ('void', 'unsupported') OR notes::text LIKE '%rate-limited%'
    THEN num_nonnulls(mib_s, block_us, ci_low, ci_high) > 0
    ELSE abs(mib_s * block_us / 1e6 / current_setting('block_size')::int * 1048576 - 1) > 0.001
         OR num_nulls(mib_s, block_us) > 0 END;
SELECT path, relname FROM result WHERE (block_us BETWEEN ci_low AND ci_high) IS FALSE OR elapsed_ms <= 0;
-- counts are within bounds, bytes have a source, a cold row found nothing in the caches and got nothing from there
SELECT path, relname FROM result WHERE blks > blks_total OR os_blks_cached > blks
  OR hole_blks > blks OR complete <> (blks = blks_total);
SELECT path, relname FROM result WHERE (device_bytes IS NULL) <> (device_source IS NULL)
  OR device_source NOT IN ('backend', 'io_workers') OR device_source <> 'backend' AND path <> 'server';
SELECT path, relname FROM result WHERE cold AND
  (coalesce(shared_blks_hit, 0) + coalesce(local_blks_hit, 0) + os_blks_cached <> 0 OR os_pct > 50
   OR os_pct IS NULL);
-- what is said of the device is what io_probe_device says
SELECT path, relname FROM result WHERE (device, read_ahead_kb) IS DISTINCT FROM
  (SELECT (string_agg(d.device, ','), min(d.read_ahead_kb)) FROM io_probe_device_full() d
   WHERE d.object = 'tablespace' AND d.spcname = result.spcname);
-- identity
SELECT DISTINCT ON (relname) relid, schemaname = relnamespace::regnamespace::text AS schema, relname, spcname
  FROM result JOIN pg_class USING (relname) ORDER BY relname;
-- paths run one after the other
SELECT path, relname FROM (SELECT *, lag(started_at + elapsed_ms * interval '0.99 ms', 1, now() - interval '1 hour')
                             OVER (ORDER BY started_at) AS ended FROM result) AS result
  WHERE started_at NOT BETWEEN ended AND clock_timestamp();

-- cold: if the caches can be emptied, it is; if not, a note says so
DROP INDEX scanned_id;
SET wal_skip_threshold = 0;
VACUUM FULL scanned;
SELECT complete AS emptied FROM io_probe_evict('scanned') \gset
SELECT path, max(blks) AS blks, bool_or(cold = :'emptied') IS NOT FALSE AS cold,
       bool_and(cold IS NOT FALSE OR notes::text LIKE '%not cold: %') AS why
  FROM generate_series(1, 3) AS i, io_probe_seqscan_full('scanned', '{server,os}', i * 5 || ' s', cold => true)
  GROUP BY path ORDER BY path DESC;
-- up to 16, what is in shared buffers is passed over and counted
SELECT count(*) FROM scanned;
SELECT current_setting('server_version_num')::int < 170000 AS passes_over \gset
SELECT CASE WHEN :'passes_over' THEN substring(notes::text, '(\d+) blocks could not be evicted')::int
            ELSE blks END AS blocks,
       status = CASE WHEN :'passes_over' THEN 'partial' ELSE 'ok' END AS status
  FROM io_probe_seqscan_full('scanned', '{server}', cold => true);

-- only what the limits let it read leaves shared buffers: by its bytes, and by its rate and duration
SELECT count(*) FROM scanned;
SELECT blks FROM io_probe_seqscan_full('scanned', '{os}', cold => true, options => '{"max_bytes": 819200}');
SELECT shared_blks + CASE WHEN :'passes_over' THEN 0 ELSE 100 END AS blks FROM io_probe_cache('scanned');
SELECT count(*) FROM scanned;
SELECT blks <= 29 AS few FROM io_probe_seqscan_full('scanned', '{os}', '200 ms', true, options => '{"max_mib_s": 1}');
SELECT shared_blks + CASE WHEN :'passes_over' THEN 0 ELSE 29 END AS blks FROM io_probe_cache('scanned');

-- start_blk, up to the very end
SELECT i, blks, complete, status FROM unnest('{0,199,200}'::int[]) i,
  io_probe_seqscan_full('scanned', '{os}', options => jsonb_build_object('start_blk', i));
-- max_bytes: where the relation is three times as large, each path has blocks of its own
SELECT path, status, blks, complete, 'stopped at max_bytes' = ANY (notes) AS why,
       substring(notes::text, 'each path read blocks of its own, this one from block \d+') AS own_blocks
  FROM io_probe_seqscan_full('scanned', '{os,server}', options => '{"max_bytes": 81920, "start_blk": 5}');
SELECT bytes, path, blks, complete, notes::text LIKE '%this one from block %' AS own_blocks
  FROM unnest('{540672,548864}'::int[]) bytes,
       io_probe_seqscan_full('scanned', '{os,server}', options => jsonb_build_object('max_bytes', bytes));
-- a path alone has the whole relation
SELECT path, blks, complete, notes::text LIKE '%this one from block %' AS own_blocks
  FROM io_probe_seqscan_full('scanned', '{os}', options => '{"max_bytes": 81920}');
-- not a reason to stop when it is just enough
SELECT complete, notes::text LIKE '%stopped%' AS stopped
  FROM io_probe_seqscan_full('scanned', '{os}', options => '{"max_bytes": 1638400}');
-- rate limits: they are kept, and the duration ends them
SELECT limits, path, status, complete, 'stopped at the end of its duration' = ANY (notes) AS why,
       notes::text LIKE '%rate-limited%' AS rate_limited, elapsed_ms >= 200 AS duration,
       blks BETWEEN 1 AND per_s * elapsed_ms / 1000 + 2 AS blocks
  FROM (VALUES ('{"max_iops": 64}'::jsonb, 64), ('{"max_mib_s": 1}', 128),
               ('{"max_iops": 64, "max_mib_s": 1}', 64)) AS v(limits, per_s),
       io_probe_seqscan_full('scanned', '{server,os}', '400 ms', options => limits);
-- the other options; null stands for the default
SELECT path, complete
  FROM io_probe_seqscan_full('scanned', '{os}', options => '{"wait": true, "precision": 0.01, "max_iops": null}');

-- every kind of relation with storage
CREATE TABLE kind_empty (t text);
CREATE UNLOGGED TABLE kind_unlogged AS SELECT 1 AS one;
CREATE MATERIALIZED VIEW kind_view AS SELECT * FROM scanned;
CREATE TABLE kind_toast (t text);
ALTER TABLE kind_toast ALTER t SET STORAGE EXTERNAL;
INSERT INTO kind_toast VALUES (repeat('x', 100000));
CREATE TEMP TABLE kind_temp AS SELECT 1 AS one;
CREATE INDEX kind_index ON scanned (id) WHERE id = 0;
SELECT c.relname, c.relkind, s.path, s.status, s.complete,
       s.blks = pg_relation_size(c.oid) / current_setting('block_size')::int AS blks
  FROM pg_class c, io_probe_seqscan_full(c.oid, '{server,os}') s
  WHERE c.relname LIKE 'kind\_%' ORDER BY c.relname, s.path DESC;
SELECT c.relkind, s.path, s.status, s.complete, s.blks > 10 AS blks
  FROM pg_class c, io_probe_seqscan_full(c.oid, '{server,os}') s
  WHERE c.oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'kind_toast');
-- an empty relation is no error, on no path
SELECT path, doubt, status, blks, complete, block_us, os_pct, cold FROM io_probe_seqscan_full('kind_empty');
-- a name that needs quotes, in a schema that is not on search_path
CREATE SCHEMA "Odd ""schema";
CREATE TABLE "Odd ""schema"."A table" ();
SELECT relid, schemaname, relname FROM io_probe_seqscan_full('"Odd ""schema"."A table"', '{os}');

-- all calls of a statement share pg_io_probe.max_duration: in the end nothing is read any more
SET pg_io_probe.max_duration = '250ms';
WITH called AS MATERIALIZED
  (SELECT * FROM generate_series(1, 5) i,
     io_probe_seqscan_full('scanned', '{os}', '100 ms', options => jsonb_build_object('max_iops', 50, 'start_blk', i)))
SELECT i, status, blks > 0 AS blocks, complete,
       'stopped: this statement has used up pg_io_probe.max_duration' = ANY (notes) AS why
  FROM called WHERE i IN (1, 5);
-- and the statements of a function
DO $$
DECLARE states text[];
BEGIN
  FOR i IN 1..4 LOOP
    states := states || (SELECT status FROM io_probe_seqscan_full('scanned', '{os}', '100 ms',
                                                             options => '{"max_iops": 50}'));
  END LOOP;
  RAISE NOTICE 'first %, last %', states[1], states[4];
END $$;
-- the next statement has a time of its own
SELECT path, status FROM io_probe_seqscan_full('scanned', '{os}', '100 ms', options => '{"max_iops": 50}');
-- each relation has a row, whether the time was enough or not
SELECT count(*) - count(DISTINCT oid) AS doubles, count(*) FILTER (WHERE status = 'partial') > 0 AS partial,
       count(*) FILTER (WHERE status NOT IN ('ok', 'partial')) AS others,
       count(*) FILTER (WHERE (status = 'partial') <> (notes::text LIKE '%stopped: this statement%')) AS unsaid
  FROM pg_class, io_probe_seqscan_full(oid, '{os}', '100 ms', options => '{"max_iops": 200}')
  WHERE relkind IN ('r', 'i', 't', 'm');
RESET pg_io_probe.max_duration;
-- the paths of a call share its duration
SELECT path, status, blks BETWEEN 1 AND 0.2 * 50 + 2 AS half
  FROM io_probe_seqscan_full('scanned', '{server,os}', '400 ms', options => '{"max_iops": 50}');

SET client_min_messages = warning;
DROP SCHEMA "Odd ""schema" CASCADE;
DROP TABLE scanned, own, result, kind_empty, kind_unlogged, kind_toast, kind_temp CASCADE;
