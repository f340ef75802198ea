--
-- io_probe_cache, io_probe_evict
--
-- one row a block
CREATE TABLE cached (id int, filler text) WITH (autovacuum_enabled = off);
ALTER TABLE cached ALTER filler SET STORAGE PLAIN;
INSERT INTO cached SELECT i, repeat('x', 7000) FROM generate_series(1, 200) i;
VACUUM cached;
CHECKPOINT;
CREATE VIEW block AS SELECT current_setting('block_size')::int AS bytes;
-- figures fit each other
SELECT blks_total * bytes = pg_relation_size('cached') AS blks_total,
       shared_blks BETWEEN 0 AND blks_total AS shared_blks,
       abs(shared_pct - 100.0 * shared_blks / blks_total) < 0.01 AS shared_pct,
       os_cached_bytes BETWEEN 0 AND blks_total * bytes AS os_cached,
       abs(os_pct - 100.0 * os_cached_bytes / blks_total / bytes) < 0.01 AS os_pct,
       (os_dirty_bytes BETWEEN 0 AND os_cached_bytes) IS NOT FALSE AS os_dirty
  FROM io_probe_cache('cached'), block;
-- after a checkpoint nothing is a hole
SELECT hole_bytes FROM io_probe_cache('cached');
-- VACUUM FULL leaves nothing of the table in shared buffers, count(*) brings it all in
SET wal_skip_threshold = 0;
VACUUM FULL cached;
SELECT shared_blks, shared_pct FROM io_probe_cache('cached');
SELECT count(*) FROM cached;
SELECT shared_blks, shared_pct FROM io_probe_cache('cached');

-- evict: tells what it found; shared buffers are emptied from 17 on; a note says why something stayed
UPDATE cached SET filler = repeat('y', 7000) WHERE id <= 100;
SELECT blks_total AS blks, shared_blks FROM io_probe_cache('cached') \gset
SELECT shared_blks_before = :shared_blks AS shared_before,
       shared_blks_after = CASE WHEN current_setting('server_version_num')::int < 170000 THEN :shared_blks ELSE 0 END
         AS shared_after,
       os_bytes_before BETWEEN 0 AND :blks * bytes AS os_before,
       os_bytes_after BETWEEN 0 AND :blks * bytes AS os_after,
       complete = (shared_blks_after = 0 AND os_bytes_after = 0) AS complete,
       complete = (cardinality(notes) = 0) AS notes
  FROM io_probe_evict('cached'), block;
SELECT current_setting('server_version_num')::int >= 170000
       OR 'this server version cannot evict from shared buffers' = ANY (notes) AS why
  FROM io_probe_evict('cached');
-- the cache agrees
SELECT shared_blks = shared_blks_after AS shared, os_cached_bytes = os_bytes_after AS os
  FROM io_probe_evict('cached'), io_probe_cache('cached');
-- nothing that was changed is lost
SELECT left(filler, 1) AS filler, count(*) FROM cached GROUP BY 1 ORDER BY 1;
-- a call that comes too late leaves the pages alone, and blames nobody
SET pg_io_probe.max_duration = '100ms';
WITH called AS MATERIALIZED
  (SELECT * FROM io_probe_random_full('cached', '{os}', '100 ms', options => '{"max_iops": 50}'))
SELECT shared_blks_after > 0 AS stay, e.notes::text LIKE '%stopped: this statement has used up%' AS stopped,
       e.notes::text LIKE '%others use%' AS blames
  FROM called, io_probe_evict(called.relid) AS e;
RESET pg_io_probe.max_duration;

-- every kind of relation with storage
CREATE INDEX cached_id ON cached (id);
CREATE MATERIALIZED VIEW cached_view AS SELECT * FROM cached;
CREATE UNLOGGED TABLE cached_unlogged (id int);
CREATE TABLE cached_toast (t text);
CREATE TEMP TABLE cached_temp AS SELECT * FROM cached;
SELECT relkind, relpersistence, blks_total * bytes = pg_relation_size(oid) AS blks_total,
       shared_blks <= blks_total AS shared_blks
  FROM pg_class, io_probe_cache(oid), block
  WHERE (relname LIKE 'cached\_%' OR oid = (SELECT reltoastrelid FROM pg_class WHERE relname = 'cached_toast'))
  ORDER BY relkind, relpersistence;
-- what one might look for in a table, and is elsewhere
ALTER TABLE cached_toast ALTER t SET STORAGE EXTERNAL;
INSERT INTO cached_toast VALUES (repeat('x', 9000)), ('x');
CREATE INDEX ON cached_toast ((length(t)));
CHECKPOINT;
SELECT DISTINCT 'evict' AS call, regexp_replace(note, '[0-9]+', 'N', 'g') AS note
  FROM io_probe_evict('cached_toast') AS e, unnest(e.notes) AS note WHERE note LIKE 'its %'
UNION ALL
SELECT 'seqscan', regexp_replace(note, '[0-9]+', 'N', 'g')
  FROM io_probe_seqscan_full('cached_toast', '{os}') AS s, unnest(s.notes) AS note WHERE note LIKE 'its %'
 ORDER BY call, note;
-- an empty relation has no percentages
SELECT blks_total, shared_blks, shared_pct, os_cached_bytes, os_pct, hole_bytes
  FROM io_probe_cache('cached_unlogged');
-- a temporary table is in the session's own buffers and stays there
SELECT shared_blks, shared_pct FROM io_probe_cache('cached_temp');
SELECT shared_blks_before, shared_blks_after, complete, notes[1] FROM io_probe_evict('cached_temp');
-- in the select list
SELECT (io_probe_cache('cached_id')).blks_total > 0 AS blks_total;

DROP TABLE cached, cached_toast, cached_unlogged, cached_temp CASCADE;
DROP VIEW block;
