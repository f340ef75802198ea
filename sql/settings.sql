--
-- Settings: caps for those who may set them, defaults for all
--
CREATE ROLE regress_io_probe_user;
GRANT EXECUTE ON FUNCTION io_probe_seqscan, io_probe_seqscan_full, io_probe_random, io_probe_random_full, io_probe_depth, io_probe_depth_full, io_probe_ping, io_probe_ping_full, io_probe_sync, io_probe_sync_full
  TO regress_io_probe_user;
CREATE TABLE sized (id int, filler text) WITH (autovacuum_enabled = off);
ALTER TABLE sized ALTER filler SET STORAGE PLAIN;
INSERT INTO sized SELECT i, repeat('x', 7000) FROM generate_series(1, 200) i;
GRANT SELECT ON sized TO regress_io_probe_user;
-- what is set before the library is loaded is checked then
\c -
SET pg_io_probe.typo = 1;
SET pg_io_probe.engine = 'steam';
SET ROLE regress_io_probe_user;
SET pg_io_probe.max_depth = 1000;
RESET ROLE;
LOAD 'pg_io_probe';
SHOW pg_io_probe.max_depth;
SHOW pg_io_probe.engine;
-- the settings and their defaults
SELECT name, context, vartype, unit, boot_val, min_val, max_val, enumvals FROM pg_settings
  WHERE name LIKE 'pg\_io\_probe.%' ORDER BY name;
-- all have a description
SELECT name FROM pg_settings WHERE name LIKE 'pg\_io\_probe.%' AND (short_desc = '' OR extra_desc = '') IS NOT FALSE;
-- the prefix is reserved
SET pg_io_probe.typo = 1; \echo :SQLSTATE
-- values are checked
SET pg_io_probe.engine = 'steam'; \echo :SQLSTATE
SET pg_io_probe.max_depth = 0; \echo :SQLSTATE

-- caps are not for everyone
SET ROLE regress_io_probe_user;
SET pg_io_probe.max_bytes = '1TB'; \echo :SQLSTATE
SET pg_io_probe.max_depth = 1; \echo :SQLSTATE
SET pg_io_probe.max_duration = 1; \echo :SQLSTATE
SET pg_io_probe.max_iops = 0; \echo :SQLSTATE
SET pg_io_probe.max_mib_s = 0; \echo :SQLSTATE
SET pg_io_probe.max_util_pct = 0; \echo :SQLSTATE
SET pg_io_probe.max_p99 = 0; \echo :SQLSTATE
SET pg_io_probe.max_busy_pct = 0; \echo :SQLSTATE
SET pg_io_probe.scratch_limit = 1; \echo :SQLSTATE
SET pg_io_probe.scratch_reserve = 0; \echo :SQLSTATE
-- but can be delegated
RESET ROLE;
GRANT SET ON PARAMETER pg_io_probe.max_depth TO regress_io_probe_user;
SET ROLE regress_io_probe_user;
SET pg_io_probe.max_depth = 4;
SELECT path FROM io_probe_seqscan_full('sized', '{os}', depth => 5); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('sized', '{os}', depth => 4);
SELECT path FROM io_probe_random_full('sized', '{os}', depth => 5); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('sized', '{2,5}'); \echo :SQLSTATE
SELECT depth FROM io_probe_sync_full(depth => 5); \echo :SQLSTATE
RESET pg_io_probe.max_depth;
RESET ROLE;
REVOKE SET ON PARAMETER pg_io_probe.max_depth FROM regress_io_probe_user;

-- over a cap is an error
SET pg_io_probe.max_bytes = '1MB';
SET pg_io_probe.max_iops = 100;
SET pg_io_probe.max_mib_s = 10;
SET pg_io_probe.max_duration = '100ms';
SELECT path FROM io_probe_seqscan_full('sized', '{os}', '100.4 ms'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('sized', '{os}', '100 ms', options => '{"max_bytes": 1048577}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('sized', '{os}', '100 ms', options => '{"max_iops": 101}'); \echo :SQLSTATE
SELECT path FROM io_probe_seqscan_full('sized', '{os}', '100 ms', options => '{"max_mib_s": 11}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('sized', '{os}', '101 ms'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('sized', '{os}', '100 ms', options => '{"max_bytes": 1048577}'); \echo :SQLSTATE
SELECT path FROM io_probe_random_full('sized', '{os}', '100 ms', options => '{"max_iops": 101}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('sized', '{1}', '101 ms'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('sized', '{1}', options => '{"max_bytes": 1048577}'); \echo :SQLSTATE
SELECT depth FROM io_probe_depth_full('sized', '{1}', options => '{"max_mib_s": 11}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(duration => '101 ms'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(duration => '100 ms', options => '{"max_bytes": 1048577}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(duration => '100 ms', options => '{"max_iops": 101}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(duration => '100 ms', options => '{"max_mib_s": 11}'); \echo :SQLSTATE
SET pg_io_probe.max_p99 = '20s';
SELECT path FROM io_probe_seqscan_full('sized', '{os}', '100 ms', options => '{"max_p99": 20000.001}'); \echo :SQLSTATE
SELECT op FROM io_probe_ping_full('sized', count => 1, options => '{"max_p99": 20000.001}'); \echo :SQLSTATE
SELECT count(*) FROM io_probe_ping_full('sized', count => 1, path => 'os', options => '{"max_p99": 20000}');
RESET pg_io_probe.max_p99;
SET pg_io_probe.max_util_pct = 20;
SELECT path FROM io_probe_seqscan_full('sized', '{os}', '100 ms', options => '{"max_util_pct": 20.5}'); \echo :SQLSTATE
SELECT section FROM io_probe_sync_full(duration => '100 ms', options => '{"max_util_pct": 100}'); \echo :SQLSTATE
RESET pg_io_probe.max_util_pct;
-- of pings the last is due (count - 1) times every after the first
SELECT op FROM io_probe_ping_full('sized', count => 6, every => '21 ms', path => 'os'); \echo :SQLSTATE
SELECT count(*) FROM io_probe_ping_full('sized', count => 1, every => '1 year', path => 'os');
-- who asks for no limit has that of the cap
SELECT path, complete, notes::text LIKE '%rate-limited%' AS limited,
       blks BETWEEN 1 AND elapsed_ms / 10 + 2 AS rate
  FROM io_probe_seqscan_full('sized', '{os}', '100 ms', options => '{"max_bytes": 1000000}');
-- nor does a default exceed a cap
SET pg_io_probe.max_depth = 4;
SELECT path, complete, elapsed_ms >= 50 AS duration, blks BETWEEN 1 AND elapsed_ms / 10 + 2 AS rate
  FROM io_probe_seqscan_full('sized', '{os}');
SELECT path, complete, elapsed_ms >= 50 AS duration, blks BETWEEN 1 AND elapsed_ms / 10 + 2 AS rate
  FROM io_probe_random_full('sized', '{os}');
RESET pg_io_probe.max_duration;
RESET pg_io_probe.max_iops;
RESET pg_io_probe.max_mib_s;
SELECT path, complete, blks FROM io_probe_seqscan_full('sized', '{os}');
SELECT path, complete, blks FROM io_probe_random_full('sized', '{os}');
RESET pg_io_probe.max_bytes;
-- who asks for no share of the time has that of the cap; what comes from a cache counts, too
SET pg_io_probe.max_util_pct = 20;
SELECT path, status, notes::text LIKE '%rate-limited%' AS limited FROM io_probe_seqscan_full('sized', '{os}');
SELECT path, status, notes::text LIKE '%rate-limited%' AS limited FROM io_probe_random_full('sized', '{os}', options => '{"max_util_pct": 0.5}');
RESET pg_io_probe.max_util_pct;
SELECT path, status, notes::text LIKE '%rate-limited%' AS limited FROM io_probe_seqscan_full('sized', '{os}', options => '{"max_util_pct": 100}');
-- no request takes less than a microsecond: who wants such a p99 has none of it
SELECT path, status, complete, blks < 200 AS early,
       'stopped early: more than 10 of the last 1000 requests took longer than max_p99' = ANY (notes) AS why
  FROM io_probe_random_full('sized', '{os}', options => '{"max_p99": 0.001}');
-- copies of what is in caches are no answers of a device
SELECT path, status, complete FROM io_probe_seqscan_full('sized', '{server,os}', options => '{"max_p99": 0.001}');
SELECT path, status = 'unsupported' OR depth = 4 AS depth FROM io_probe_seqscan_full('sized', '{direct}');
RESET pg_io_probe.max_depth;

-- anyone may set the defaults
SET ROLE regress_io_probe_user;
SET pg_io_probe.default_max_bytes = '1MB';
SELECT path, complete, blks FROM io_probe_seqscan_full('sized', '{os}');
SELECT path, complete, blks FROM io_probe_seqscan_full('sized', '{os}', options => '{"max_bytes": 10000000}');
SELECT path, complete, blks FROM io_probe_random_full('sized', '{os}');
SET pg_io_probe.row_duration = '100ms';
SELECT path, complete, elapsed_ms >= 100 AS duration
  FROM io_probe_seqscan_full('sized', '{os}', options => '{"max_iops": 50}');
RESET pg_io_probe.default_max_bytes;
RESET pg_io_probe.row_duration;
-- the engine of the direct path; one that this kernel lacks is refused
SET pg_io_probe.engine = threads;
SELECT status = 'unsupported' OR engine = 'threads' AS threads FROM io_probe_seqscan_full('sized', '{direct}');
SELECT status = 'unsupported' OR engine = 'pread' AS pread FROM io_probe_seqscan_full('sized', '{direct}', depth => 1);
SELECT path, status = 'unsupported' OR engine = 'pread' AS pread FROM io_probe_random_full('sized', '{direct,os}');
RESET ROLE;
SET pg_io_probe.engine = io_uring;
DO $$
DECLARE
  available boolean := (SELECT status = 'ok' FROM io_probe_check() WHERE item = 'io_uring');
  row io_probe_seqscan_full_row;
BEGIN
  SELECT * INTO row FROM io_probe_seqscan_full('sized', '{direct}');
  ASSERT available AND (row.status = 'unsupported' OR row.engine = 'io_uring'), row;
EXCEPTION WHEN feature_not_supported THEN
  ASSERT NOT available, SQLERRM;
END $$;
DO $$
DECLARE
  available boolean := (SELECT status = 'ok' FROM io_probe_check() WHERE item = 'io_uring');
  engines text[];
BEGIN
  engines := (SELECT array_agg(engine) FROM unnest('{1,2}'::int[]) d, io_probe_random_full('sized', '{os}', depth => d));
  ASSERT available AND engines = '{pread,io_uring}', engines;
EXCEPTION WHEN feature_not_supported THEN
  ASSERT NOT available, SQLERRM;
END $$;
RESET pg_io_probe.engine;

-- sweeps, pings and syncs keep to the caps, too
SET pg_io_probe.scratch_reserve = 0;
SET pg_io_probe.max_iops = 50;
SELECT depth, status IN ('void', 'unsupported') OR blks BETWEEN 1 AND 0.4 * 50 + depth + 1 AS paced, best
  FROM io_probe_depth_full('sized', '{1,2}', '800 ms');
SELECT max(request), clock_timestamp() - min(started_at) >= '80 ms' AS paced
  FROM io_probe_ping_full('sized', count => 5, every => '0', path => 'os');
SELECT method, status = 'unsupported' OR ops BETWEEN 1 AND 6 AS paced
  FROM io_probe_sync_full(duration => '200 ms', sections => '{other_fd}');
RESET pg_io_probe.max_iops;
SET pg_io_probe.max_bytes = '1MB';
SELECT max(request) * current_setting('block_size')::int AS bytes, max(notes[1]) AS note
  FROM io_probe_ping_full('sized', count => 1000, every => '0', mode => 'write', path => 'os');
SELECT method, status = 'unsupported' OR ops * write_kb BETWEEN 1 AND 1023 AS kb,
       status = 'unsupported' OR 'stopped at max_bytes' = ANY (notes) AS why
  FROM io_probe_sync_full(write_kb => 128, sections => '{other_fd}');
RESET pg_io_probe.scratch_reserve;
RESET pg_io_probe.max_bytes;

DROP TABLE sized;
DROP OWNED BY regress_io_probe_user;
DROP ROLE regress_io_probe_user;
