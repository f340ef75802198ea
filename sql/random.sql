--
-- io_probe_random. The direct path is void where O_DIRECT reads memory (tmpfs) and unsupported
-- where a file system refuses it, then without figures; what a kernel doesn't tell is NULL.
--
-- one row a block; VACUUM FULL leaves none of them in shared buffers (with wal_level = minimal only if it need not log)
SET wal_skip_threshold = 0;
CREATE TABLE fetched (id int, filler text) WITH (autovacuum_enabled = off);
ALTER TABLE fetched ALTER filler SET STORAGE PLAIN;
INSERT INTO fetched SELECT i, repeat('x', 7000) FROM generate_series(1, 201) i;
VACUUM FULL fetched;
CREATE UNLOGGED TABLE large (LIKE fetched INCLUDING STORAGE) WITH (autovacuum_enabled = off);
INSERT INTO large SELECT i, repeat('x', 5000) FROM generate_series(1, 10001) i;
VACUUM FULL large;
CHECKPOINT;
-- a session's first call counts its own reads, not those of the catalogs
\c -
SELECT shared_blks_hit, shared_pct, blks, complete FROM io_probe_random_full('fetched', '{server}');
-- now all is in shared buffers
SELECT count(*) FROM fetched;
SELECT shared_blks_hit, os_blks_hit, device_blks_read, shared_pct, os_pct, device_pct, complete, cold,
       num_nulls(os_us, device_us) AS nulls, shared_us = lat_us AS shared_us
  FROM io_probe_random_full('fetched', '{server}');

-- a row for each path, in this order, whatever the order of the argument
SELECT path FROM io_probe_random_full('fetched');
SELECT path FROM io_probe_random_full('fetched', '{os,direct,os}');
-- NULL stands for the default
SELECT path, depth FROM io_probe_random_full('fetched', NULL, NULL, NULL, NULL, NULL, NULL);
SELECT (io_probe_random_full('fetched', '{os}', options => 'null')).path;
-- what they fetch and how
SELECT path, status, blks, hole_blks, blks_total, complete, depth, engine, shared_blks_written IS NOT NULL AS written
  FROM io_probe_random_full('fetched', '{server,os}');
SELECT path, status = 'unsupported' OR status IN ('ok', 'void') AND (blks, complete) = (201, true) AS complete,
       status = 'unsupported' OR (depth, engine) = (1, 'pread') AS engine
  FROM io_probe_random_full('fetched', '{direct}');
-- at a depth: the server reads as far ahead as it may
SET effective_io_concurrency = 3;
SELECT path, status IN ('ok', 'void', 'unsupported') AS status, status = 'unsupported' OR complete AS complete,
       CASE WHEN path = 'server' THEN depth BETWEEN 1 AND 8 ELSE depth = 8 END AS depth,
       status = 'unsupported' OR CASE
         WHEN path <> 'server' THEN engine IN ('io_uring', 'threads')
         WHEN current_setting('server_version_num')::int < 170000 THEN engine = 'PrefetchBuffer'
         ELSE engine LIKE 'read stream%' END AS engine
  FROM io_probe_random_full('fetched', depth => 8);
SHOW effective_io_concurrency;
RESET effective_io_concurrency;
SET pg_io_probe.engine = threads;
SELECT path, status = 'unsupported' OR engine = 'threads' AS threads
  FROM io_probe_random_full('fetched', '{direct,os}', depth => 2);
RESET pg_io_probe.engine;
-- even when the queue is longer than the relation is
SELECT path, complete, blks FROM io_probe_random_full('pg_am', '{server,os}', depth => 128) WHERE blks > 0;

-- the seed decides which blocks: what the first call brought in, the second finds
SELECT seed, blks, shared_blks_hit
  FROM io_probe_random_full('large', '{server}', seed => 1, options => '{"max_bytes": 131072}');
SELECT seed, blks, shared_blks_hit
  FROM io_probe_random_full('large', '{server}', seed => 1, options => '{"max_bytes": 131072}');
-- with another path before it, it starts elsewhere in the order
SELECT path, seed, blks, shared_blks_hit
  FROM io_probe_random_full('large', '{server,os}', seed => 1, options => '{"max_bytes": 131072}') WHERE path = 'server';
SELECT path, seed, blks, shared_blks_hit
  FROM io_probe_random_full('large', '{direct,server}', seed => 1, options => '{"max_bytes": 131072}')
  WHERE path = 'server';
-- another seed, another order
SELECT seed, blks, shared_blks_hit < 8 AS others
  FROM io_probe_random_full('large', '{server}', seed => -1, options => '{"max_bytes": 131072}');
-- without one there is one all the same, each time another
SELECT count(DISTINCT seed) AS seeds, bool_and(seed >= 0) AS positive
  FROM generate_series(1, 3) i, io_probe_random_full('fetched', '{server,os}', depth => i);

-- a quantile is given where ten fetches lie above it; the first fetch is warm-up
SELECT n, blks, complete, 'stopped at max_bytes' = ANY (notes) AS stopped, p50_us > 0 AS p50,
       p95_us > 0 AS p95, p99_us > 0 AS p99, p999_us > 0 AS p999, num_nulls(lat_us, max_us) AS nulls
  FROM unnest('{20,21,200,201,1000,1001,10000,10001}'::int[]) n,
       io_probe_random_full('large', '{os}', options => jsonb_build_object('max_bytes', n * 8192 + 8191));

-- rows to judge: warm, cold, at depths, limited; of a table, its index, a temporary and a shared table
CREATE INDEX fetched_id ON fetched (id);
CREATE TEMP TABLE own (LIKE fetched INCLUDING STORAGE);
INSERT INTO own SELECT * FROM fetched;
CREATE TEMP TABLE result AS SELECT * FROM io_probe_random_full('fetched');
INSERT INTO result SELECT * FROM io_probe_random_full('fetched', depth => 8, seed => 7);
INSERT INTO result SELECT * FROM io_probe_random_full('fetched_id');
INSERT INTO result SELECT * FROM io_probe_random_full('own');
INSERT INTO result SELECT * FROM io_probe_random_full('pg_database');
INSERT INTO result SELECT * FROM io_probe_random_full('large', '{server,os}');
INSERT INTO result SELECT * FROM io_probe_random_full('large', '{direct}', '100 ms');
INSERT INTO result SELECT * FROM io_probe_random_full('large', '{server,os}', cold => true, depth => 16,
                                                 options => '{"max_bytes": 8192000}');
INSERT INTO result SELECT * FROM io_probe_random_full('fetched', '{direct,os}', cold => true);
INSERT INTO result SELECT * FROM io_probe_random_full('fetched', duration => '1 s', options => '{"max_iops": 100}');
INSERT INTO result SELECT * FROM io_probe_random_full('fetched', '{direct,os}', '1 s', depth => 4,
                                                 options => '{"max_iops": 200}');
CREATE TEMP VIEW judged AS
  SELECT *, blks - hole_blks AS with_data, notes::text LIKE '%rate-limited%' AS limited,
         status IN ('void', 'unsupported') AS no_figures, path = 'server' AND depth > 1 AS reads_ahead
  FROM result;
SELECT path, status, depth, relname FROM judged WHERE status <> 'ok' AND path <> 'direct';
-- each block at most once; complete is when each was; if not, a note says why
SELECT path, depth, relname FROM judged WHERE blks > blks_total OR hole_blks > blks
  OR complete <> (blks = blks_total AND status <> 'unsupported')
  OR complete = (notes::text ~ 'stopped|passed over' OR status = 'unsupported');
-- each fetch was served by somebody, or nothing is known, which a note says
SELECT path, depth, relname FROM judged WHERE with_data > 0
  AND (shared_blks_hit + os_blks_hit + device_blks_read = with_data
       AND abs(shared_pct - 100.0 * shared_blks_hit / with_data) < 0.01
       AND abs(os_pct - 100.0 * os_blks_hit / with_data) < 0.01
       AND abs(device_pct - 100.0 * device_blks_read / with_data) < 0.01) IS NOT TRUE
  AND NOT (num_nonnulls(shared_blks_hit, os_blks_hit, device_blks_read, shared_pct, os_pct, device_pct,
                        shared_us, os_us, device_us, over_read) = 0
           AND notes::text LIKE '%the tier that served the blocks is unknown%');
SELECT path, depth, relname FROM judged WHERE path <> 'server' AND shared_blks_hit > 0
  OR path = 'direct' AND (status = 'ok') <> (device_pct >= 99.9 OR with_data = 0);
-- latencies are in order; those that there must be, are; the server's are not known when it reads ahead
SELECT path, depth, relname FROM judged
  WHERE NOT (lat_us > 0 AND lat_us <= max_us)
     OR NOT (p50_us > 0 AND p50_us <= p95_us AND p95_us <= p99_us
             AND p99_us <= p999_us AND p999_us <= max_us * 1.01)
     OR p99_us > max_us * 1.01;
SELECT path, depth, relname FROM judged
  WHERE num_nulls(lat_us, max_us) <> CASE
          WHEN no_figures OR reads_ahead OR with_data <= 1 + CASE WHEN depth > 1 THEN 2 * depth ELSE 0 END
          THEN 2 ELSE 0 END
     OR (warmup_us > 0) IS NOT TRUE <> (no_figures OR reads_ahead OR blks = 0)
     OR reads_ahead <> (notes::text LIKE '%single latencies are not known%');
-- a tier that served nothing has no latency; one that served all has that of all
SELECT path, depth, relname FROM judged WHERE shared_us IS NOT NULL AND shared_blks_hit = 0
  OR os_us IS NOT NULL AND os_blks_hit = 0 OR device_us IS NOT NULL AND device_blks_read = 0
  OR shared_us <> lat_us AND shared_blks_hit = with_data OR os_us <> lat_us AND os_blks_hit = with_data
  OR device_us <> lat_us AND device_blks_read = with_data
  OR depth = 1 AND NOT lat_us BETWEEN least(shared_us, os_us, device_us) AND greatest(shared_us, os_us, device_us)
  OR depth > 1 AND num_nonnulls(shared_us, os_us) > 0;
-- rate times size is the bandwidth; the interval holds the value; a void row has none, nor an interval one with pauses
SELECT path, depth, relname FROM judged
  WHERE abs(mib_s * 1048576 / current_setting('block_size')::int / iops - 1) > 0.001
     OR (iops > 0) IS NOT TRUE <> (no_figures OR with_data <= 1 + CASE WHEN depth > 1 THEN 2 * depth ELSE 0 END)
     OR num_nulls(iops, mib_s) = 1 OR NOT iops BETWEEN ci_low AND ci_high
     OR (no_figures OR limited) AND num_nonnulls(ci_low, ci_high) > 0 OR elapsed_ms <= 0;
-- a rate limit is kept
SELECT path, depth, relname, iops FROM judged
  WHERE limited AND NOT no_figures AND (iops <= CASE depth WHEN 1 THEN 100 ELSE 200 END * 1.1) IS NOT TRUE;
SELECT count(*) > 0 AS limited, count(*) = count(*) FILTER (WHERE NOT complete) AS incomplete FROM judged WHERE limited;
-- past the page cache just the blocks are fetched, through it these or parts of them, or what lies around them, too
SELECT path, depth, relname, over_read FROM judged
  WHERE (over_read IS NULL) <> (no_figures OR coalesce(device_blks_read, 0) = 0 OR device_bytes IS NULL)
     OR path = 'direct' AND (over_read < 1 OR over_read > 1.05 AND with_data > 100)
     OR over_read < 0.45 AND device_blks_read > 100;
SELECT path, depth, relname FROM judged WHERE (device_bytes IS NULL) <> (device_source IS NULL)
  OR device_source NOT IN ('backend', 'io_workers') OR device_source <> 'backend' AND NOT reads_ahead;
-- a cold row found no buffer, and in the OS cache at most what readahead had brought in
SELECT path, depth, relname FROM judged WHERE cold AND (shared_blks_hit <> 0
  OR os_blks_hit <> 0 AND notes::text NOT LIKE '%readahead around other fetches had brought in%');
-- what is said of the device is what io_probe_device says
SELECT path, relname FROM judged WHERE (device, read_ahead_kb) IS DISTINCT FROM
  (SELECT (string_agg(d.device, ','), min(d.read_ahead_kb)) FROM io_probe_device_full() d
   WHERE d.object = 'tablespace' AND d.spcname = judged.spcname);
-- identity
SELECT DISTINCT ON (relname) relid, schemaname = relnamespace::regnamespace::text AS schema, relname, spcname
  FROM result JOIN pg_class USING (relname) ORDER BY relname;
-- paths run one after the other
SELECT path, relname FROM (SELECT *, lag(started_at + elapsed_ms * interval '0.99 ms', 1, now() - interval '1 hour')
                             OVER (ORDER BY started_at) AS ended FROM result) AS result
  WHERE started_at NOT BETWEEN ended AND clock_timestamp();

-- cold: if the caches can be emptied, it is; if not, a note says so
DROP INDEX fetched_id;
SET wal_skip_threshold = 0;
VACUUM FULL fetched;
SELECT complete AS emptied FROM io_probe_evict('fetched') \gset
SELECT path, max(blks) AS blks, min(status) AS status, bool_or(cold = :'emptied') IS NOT FALSE AS cold,
       bool_and(cold IS NOT FALSE OR notes::text LIKE '%not cold: %') AS why
  FROM generate_series(1, 3) AS i, io_probe_random_full('fetched', '{server,os}', seed => i, cold => true) GROUP BY path ORDER BY path DESC;
-- up to 16, what is in shared buffers is passed over and counted
VACUUM FULL fetched;
SELECT count(*) FROM fetched WHERE ctid < '(100,0)';
SELECT current_setting('server_version_num')::int < 170000 AS passes_over \gset
SELECT d, CASE WHEN NOT :'passes_over' THEN blks = 201 WHEN d = 1 THEN blks = 101 ELSE blks < 101 END AS left,
       complete <> :'passes_over' AS complete,
       coalesce(substring(notes::text, '(\d+) blocks could not be evicted')::int, 0) + blks AS all,
       coalesce(shared_blks_hit, 0) AS hits
  FROM unnest('{1,4}'::int[]) d, io_probe_random_full('fetched', '{server}', cold => true, depth => d);

-- max_bytes is exact where no hole is; not a reason to stop when it is just enough
SELECT path, status, blks, hole_blks, complete, notes::text LIKE '%stopped at max_bytes%' AS why
  FROM unnest('{1,4}'::int[]) depth,
       io_probe_random_full('fetched', '{server,os}', depth => depth, options => '{"max_bytes": 81920}');
SELECT status = 'unsupported' OR (blks, hole_blks, complete) = (10, 0, false) AS max_bytes
  FROM unnest('{1,4}'::int[]) depth,
       io_probe_random_full('fetched', '{direct}', depth => depth, options => '{"max_bytes": 81920}');
SELECT path, blks, complete, notes::text LIKE '%stopped%' AS stopped
  FROM io_probe_random_full('fetched', '{server,os}', options => '{"max_bytes": 1646592}');
-- rate limits: they are kept, and the duration ends them
SELECT limits, v.depth, path, status, complete, 'stopped at the end of its duration' = ANY (notes) AS why,
       notes::text LIKE '%rate-limited%' AS rate_limited, elapsed_ms >= 100 AS duration,
       blks BETWEEN 1 AND per_s * elapsed_ms / 1000 + 2 AS blks
  FROM (VALUES ('{"max_iops": 64}'::jsonb, 64, 1), ('{"max_mib_s": 1}', 128, 4),
               ('{"max_iops": 64, "max_mib_s": 1}', 64, 1)) AS v(limits, per_s, depth),
       io_probe_random_full('fetched', '{server,os}', '200 ms', depth => v.depth, options => limits);
-- unless all is fetched so fast that there is no saying, it ends as soon as the interval is narrow
SELECT status IN ('void', 'unsupported') OR complete
       OR 'stopped: the confidence interval is as narrow as asked for' = ANY (notes)
          AND iops * (1 / ci_low - 1 / ci_high) / 2 <= 0.51 AS precise
  FROM io_probe_random_full('large', '{direct}', options => '{"precision": 0.5}');
-- under a limit there is no interval, and none is waited for
SELECT path, ci_low, notes::text LIKE '%as narrow as asked for%' AS precise
  FROM io_probe_random_full('large', '{os}', '1500 ms', options => '{"precision": 0.5, "max_iops": 2000}');
-- the other options; null stands for the default
SELECT path, complete FROM io_probe_random_full('fetched', '{os}', options => '{"wait": true, "max_iops": null}');

-- every kind of relation with storage
CREATE TABLE kind_empty (t text);
CREATE UNLOGGED TABLE kind_unlogged AS SELECT 1 AS one;
CREATE MATERIALIZED VIEW kind_view AS SELECT * FROM fetched;
CREATE TABLE kind_single AS SELECT 1 AS one;
CREATE TABLE kind_toast (t text);
ALTER TABLE kind_toast ALTER t SET STORAGE EXTERNAL;
INSERT INTO kind_toast VALUES (repeat('x', 100000));
CREATE TEMP TABLE kind_temp AS SELECT * FROM fetched;
CREATE INDEX kind_index ON fetched (id) WHERE id = 0;
SELECT c.relname, c.relkind, r.path, r.status, r.complete,
       r.blks = pg_relation_size(c.oid) / current_setting('block_size')::int AS blks
  FROM pg_class c, io_probe_random_full(c.oid, '{server,os}') r
  WHERE c.relname LIKE 'kind\_%' ORDER BY c.relname, r.path DESC;
SELECT c.relkind, r.path, r.status, r.complete, r.blks > 10 AS blks
  FROM pg_class c, io_probe_random_full(c.oid, '{server,os}') r
  WHERE c.oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'kind_toast');
-- a temporary table is in the session's own buffers
SELECT shared_blks_hit, shared_pct FROM io_probe_random_full('kind_temp', '{server}');
-- an empty relation is no error, on no path, at no depth
SELECT path, status, blks, complete, iops, lat_us, warmup_us, os_pct, cold
  FROM io_probe_random_full('kind_empty');
SELECT path, doubt, status, blks, complete FROM io_probe_random_full('kind_empty', '{server,os}', cold => true, depth => 4);
-- a single block is warm-up
SELECT path, blks, complete, warmup_us > 0 AS warmup, iops, lat_us,
       notes::text LIKE '%too few blocks for a rate%' AS why
  FROM io_probe_random_full('kind_single', '{server,os}');
-- holes count as fetched, and nowhere else (up to 15 there are none; whoever writes buffers back fills them)
CREATE TABLE sparse AS SELECT i::char(1000) FROM generate_series(1, 2000) i;
SELECT hole_bytes / 8192 AS before FROM io_probe_cache('sparse') \gset
CREATE TEMP TABLE holes AS SELECT * FROM io_probe_random_full('sparse', '{os}');
SELECT hole_bytes / 8192 AS after FROM io_probe_cache('sparse') \gset
SELECT blks = blks_total AS blks, complete, hole_blks BETWEEN :after AND :before AS hole_blks,
       (hole_blks > 0) = (notes::text LIKE '% reads of blocks that were never written to the file (holes)%') AS note,
       (shared_blks_hit + os_blks_hit + device_blks_read = blks - hole_blks) IS NOT FALSE AS others
  FROM holes;
-- a name that needs quotes, in a schema that is not on search_path
CREATE SCHEMA "Odd ""schema";
CREATE TABLE "Odd ""schema"."A table" ();
SELECT relid, schemaname, relname FROM io_probe_random_full('"Odd ""schema"."A table"', '{os}');

-- NULL stands for the default
SELECT path, blks, status FROM io_probe_random_full('kind_empty', NULL, NULL, NULL, NULL, NULL, NULL);

-- all calls of a statement share pg_io_probe.max_duration: in the end nothing is fetched any more
SET pg_io_probe.max_duration = '150ms';
WITH called AS MATERIALIZED
  (SELECT i, r.* FROM generate_series(1, 5) i,
     io_probe_random_full('fetched', '{os}', '60 ms', seed => i, options => '{"max_iops": 50}') r)
SELECT i, status, blks > 0 AS blks, complete,
       'stopped: this statement has used up pg_io_probe.max_duration' = ANY (notes) AS why
  FROM called WHERE i IN (1, 5);
RESET pg_io_probe.max_duration;
-- the paths of a call share its duration
SELECT path, status, blks BETWEEN 1 AND 0.2 * 50 + 2 AS half
  FROM io_probe_random_full('fetched', '{server,os}', '400 ms', options => '{"max_iops": 50}');

SET client_min_messages = warning;
DROP SCHEMA "Odd ""schema" CASCADE;
DROP TABLE fetched, large, own, result, kind_empty, kind_unlogged, kind_single, kind_toast, kind_temp, sparse, holes CASCADE;
-- of the session's own buffers, too, the server pins only so many (PostgreSQL 15 and 16 pin none ahead)
\c -
SET temp_buffers = 100;
CREATE TEMP TABLE own AS SELECT i::char(1000) FROM generate_series(1, 2000) i;
SELECT depth <= 100 OR current_setting('server_version_num')::int < 170000 AS few FROM io_probe_random_full('own', '{server}', depth => 128);
