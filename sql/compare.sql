--
-- io_probe_metrics, io_probe_latest, io_probe_compare, io_probe_changes: stored runs with known answers.
--
TRUNCATE io_probe_runs, io_probe_results;
CREATE FUNCTION store(id bigint, minute int, probe text, rows jsonb, label text = NULL, object text = 'public.t',
                      read_ahead_kb int = 128, args jsonb = '{}', status text = 'ok') RETURNS bigint
BEGIN ATOMIC
  INSERT INTO io_probe_runs (id, started_at, probe, object, status, message, label, args, kernel, server_version, host, device,
                             system_identifier, datname, settings, leaves)
    VALUES (id, timestamptz '2026-01-01 00:00+00' + minute * interval '1 min', probe, object, status,
            CASE WHEN status <> 'ok' THEN 'what went wrong' END, label, args, 'Linux 6.1', '15.4', 'here', 'sda', '7', 'postgres',
            '{"shared_buffers": "128MB"}',
            jsonb_build_array(jsonb_build_object('device', 'sda', 'scheduler', 'none', 'read_ahead_kb', read_ahead_kb)));
  INSERT INTO io_probe_results SELECT id, n, row FROM jsonb_array_elements(rows) WITH ORDINALITY AS r (row, n);
  SELECT id;
END;
-- ln is off by this much: eleven of them have the standard deviation 0.1
CREATE FUNCTION off(n int) RETURNS float8 RETURN exp(CASE WHEN n = 0 THEN 0 WHEN n % 2 = 0 THEN 0.1 ELSE -0.1 END);
CREATE FUNCTION seqscan(rate float8) RETURNS jsonb
  RETURN jsonb_build_array(jsonb_build_object('path', 'direct', 'mib_s', rate));

-- one run of each probe: what is compared of it
SELECT store(1, 0, 'seqscan', '[{"path": "direct", "mib_s": 500, "ci_low": 15, "ci_high": 17},
                                {"path": "server", "mib_s": null, "status": "void"},
                                {"path": "os", "mib_s": 250.5, "ci_low": null, "ci_high": null}]');
SELECT store(2, 0, 'random', '[{"path": "direct", "iops": 9000, "ci_low": 8100, "ci_high": 9900, "p50_us": 100,
                                "p99_us": 400}]', 'nightly');
-- (an interval without an upper end is as wide as can be; an item counts once)
SELECT store(3, 0, 'depth', '[{"depth": 1, "iops": 9000}, {"depth": 16, "iops": 90000, "ci_low": 50000, "ci_high": null},
                              {"depth": 1, "iops": 1}]');
SELECT store(4, 0, 'readahead', '[{"window_kb": 128, "mode": "kernel", "mib_s": 1000},
                                  {"window_kb": 128, "mode": "emulated", "mib_s": 990}]');
SELECT store(5, 0, 'sync', '[{"section": "open_sync_size", "method": "open_sync", "writes": 4, "write_kb": 4, "direct": true,
                              "ops_s": 100, "ci_low": 9000, "ci_high": 11000},
                             {"section": "other_fd", "method": "fsync", "writes": 1, "write_kb": 8, "direct": false, "ops_s": 50},
                             {"section": "wal_segment", "method": "open_datasync", "writes": 1, "write_kb": 8, "direct": true,
                              "ops_s": 200, "p99_us": 7000}]', object => 'wal');
SELECT store(6, 0, 'page_cost', '[{"tier": "device", "pattern": "sparse", "density": 0.05, "depth": 4, "block_us": 20},
                                  {"tier": "cpu", "pattern": "tuple", "block_us": 5}]');
SELECT store(7, 0, 'ping', '[{"op": "read", "warmup": true, "lat_us": 900}, {"op": "read", "warmup": false, "lat_us": 100},
                             {"op": "write", "warmup": false, "lat_us": 70}, {"op": "read", "warmup": false, "lat_us": 300},
                             {"op": "read", "warmup": false, "lat_us": null}]');
SELECT store(92, 0, 'write', '[{"pattern": "random", "depth": 16, "writes_s": 3000, "ci_low": 2700, "ci_high": 3300, "p99_us": 900},
                               {"pattern": "checkpoint", "depth": 1, "flush_kb": 256, "writes_s": 4000}]', object => 'pg_default');
SELECT store(93, 0, 'mix', '[{"load": "bend", "reads_s": 1500, "r_p99_us": 5},
                             {"load": "reads alone", "reads_s": 3000, "r_p99_us": 9000},
                             {"load": "writes alone", "writes_s": 2000, "w_p99_us": 9000},
                             {"load": "cell", "read_pct": 50, "write_pct": 75, "reads_s": 1500, "r_p99_us": 800,
                              "writes_s": 1500, "w_p99_us": 700}]');
SELECT store(95, 0, 'write', '[{"pattern": "random", "depth": 16, "writes_s": 100, "p99_us": 900, "doubt": "paced"}]', object => 'pg_default');
SELECT store(94, 0, 'sustain', '[{"pattern": "random", "slice": null, "iops": 300, "p99_us": 50000},
                                 {"pattern": "random", "slice": 1, "iops": 3000, "p99_us": 9000}]');
SELECT store(8, 0, 'device', '[{"device": "sda"}]', object => 'devices');
SELECT store(9, 0, 'seqscan', '[]', status => 'failed', object => 'public.bad');
SELECT run_id, probe, object, item, metric, value, unit, error, more_is_better, ordinal FROM io_probe_metrics
  ORDER BY run_id, ordinal, metric;
DELETE FROM io_probe_runs WHERE id > 90;

-- the latest of each series that succeeded: other arguments are another series, another seed is not
SELECT store(10, 1, 'random', '[{"path": "os", "iops": 8000}]', args => '{"seed": 5}');
SELECT store(11, 2, 'random', '[{"path": "direct", "iops": 7000}]', 'deep', args => '{"depth": 8, "seed": 6}');
SELECT store(12, 3, 'random', '[{"path": "direct", "iops": 6000}]', status => 'skipped');
SELECT probe, object, item, metric, value, unit, age = now() - timestamptz '2026-01-01 00:00+00' - interval '1 min' AS a_minute,
       run_id, label, datname, host
  FROM io_probe_latest WHERE probe = 'random' ORDER BY item, metric;
SELECT count(*), count(DISTINCT run_id) FROM io_probe_latest;
TRUNCATE io_probe_runs, io_probe_results;

-- eleven runs before: if they were sure to be independent, t(0.975, 10) = 2.2281 times 0.1 times the root of 2, a factor of
-- 1.3704; that they may be alike makes it somewhat less for neighbours and somewhat more for others
SELECT count(store(n, n, 'seqscan', seqscan(500 * off(n))))
  FROM generate_series(0, 10) n;
SELECT store(20, 20, 'seqscan', seqscan(500)), store(21, 21, 'seqscan', seqscan(688)), store(22, 21, 'seqscan', seqscan(684)),
            store(23, 21, 'seqscan', seqscan(366)), store(24, 21, 'seqscan', seqscan(363)), store(25, 21, 'seqscan', '[]'),
            store(26, 21, 'seqscan', '[{"path": "direct", "mib_s": 900, "ci_low": 6, "ci_high": 14},
                                       {"path": "os", "mib_s": 800}]'),
            store(27, 21, 'seqscan', '[{"path": "direct", "mib_s": 900, "ci_low": 7, "ci_high": 13}]');
SELECT b.id, c.probe, item, metric, unit, a, b, ratio, verdict, noise_pct, runs, object, notes
  FROM generate_series(20, 25) AS b (id), io_probe_compare_full(20, b.id) AS c;
-- the other way round, and beside itself
SELECT a, b, ratio, verdict, noise_pct, runs FROM io_probe_compare_full(24, 20);
-- the error within the runs, when it is the larger one: 0.4, and of both the root of 0.4² + 0.3²
SELECT item, a, b, ratio, verdict, noise_pct, runs, notes FROM io_probe_compare_full(20, 26);
SELECT item, a, b, ratio, verdict, noise_pct, runs FROM io_probe_compare_full(27, 26);

-- of a latency less is better; what is only rounded is the same
SELECT count(store(n, n, 'random', jsonb_build_array(jsonb_build_object('path', 'os', 'iops', 1000, 'p50_us', 100 * off(n - 30)))))
  FROM generate_series(30, 40) n;
SELECT store(41, 41, 'random', '[{"path": "os", "iops": 1009, "p50_us": 100}]'),
            store(42, 42, 'random', '[{"path": "os", "iops": 1030, "p50_us": 145}]');
SELECT metric, a, b, ratio, verdict, noise_pct, runs FROM io_probe_compare_full(30, 41);
SELECT metric, a, b, ratio, verdict, noise_pct, runs FROM io_probe_compare_full(41, 42);

-- fewer than ten runs before say nothing, and nor do those of another configuration, other arguments, another object, or later ones
SELECT count(store(n, n, 'depth', '[{"depth": 2, "iops": 100}]'))
  FROM generate_series(50, 58) n;
SELECT count(store(100 + n, n, 'depth', '[{"depth": 2, "iops": 100}]', read_ahead_kb => 256))
  FROM generate_series(50, 58) n;
SELECT count(store(200 + n, n, 'depth', '[{"depth": 2, "iops": 100}]', args => '{"duration": "1 s"}'))
  FROM generate_series(50, 58) n;
SELECT count(store(300 + n, n, 'depth', '[{"depth": 2, "iops": 100}]', object => 'public.other'))
  FROM generate_series(50, 58) n;
SELECT count(store(400 + n, n, 'depth', '[{"depth": 2, "iops": 100}]', status => 'failed'))
  FROM generate_series(50, 58) n;
SELECT count(store(n, n, 'depth', '[{"depth": 2, "iops": 100}]'))
  FROM generate_series(62, 70) n;
SELECT store(60, 60, 'depth', '[{"depth": 2, "iops": 100}]'), store(61, 61, 'depth', '[{"depth": 2, "iops": 300}]');
SELECT item, a, b, ratio, verdict, noise_pct, runs, notes FROM io_probe_compare_full(60, 61);
SELECT store(59, 59, 'depth', '[{"depth": 2, "iops": 100}]');
SELECT item, a, b, ratio, verdict, noise_pct, runs, notes FROM io_probe_compare_full(60, 61);
TRUNCATE io_probe_runs, io_probe_results;

-- settings that differ; each configuration has a mean of its own
SELECT count(store(n, n, 'seqscan', seqscan(500 * off(n + 1)))),
       count(store(20 + n, n, 'seqscan', seqscan(50 * off(n + 1)), read_ahead_kb => 0))
  FROM generate_series(0, 5) n;
SELECT store(30, 30, 'seqscan', seqscan(500)), store(31, 31, 'seqscan', seqscan(50), read_ahead_kb => 0);
SELECT * FROM io_probe_compare(30, 31);
UPDATE io_probe_runs SET kernel = 'Linux 6.2', device = 'sda,sdb', host = 'there', in_recovery = false, args = '{"seed": 3}',
  settings = '{"shared_buffers": "256MB", "io_method": "worker"}', leaves = leaves || '{"scheduler": "bfq"}' WHERE id = 31;
SELECT item, a_setting, b_setting FROM io_probe_compare_full(30, 31) WHERE verdict IS NULL;
SELECT item, a_setting, b_setting FROM io_probe_compare_full(31, 31) WHERE verdict IS NULL;

-- a device that was slow for a while is found slow, and found fast again
SELECT count(store(n, n, 'seqscan', seqscan(500 * off(n) / CASE WHEN n BETWEEN 65 AND 74 THEN 2 ELSE 1 END),
                                             object => 'public.slow'))
  FROM generate_series(50, 79) n;
SELECT a.id, b.id, round(ratio::numeric, 2) AS ratio, verdict, round(noise_pct) AS noise_pct, runs
  FROM (VALUES (64, 67), (64, 69), (64, 74), (74, 76), (65, 73), (64, 78)) AS p (a, b), io_probe_compare_full(p.a, p.b) c,
       LATERAL (SELECT p.a) AS a (id), LATERAL (SELECT p.b) AS b (id);
TRUNCATE io_probe_runs, io_probe_results;

-- labels: geometric means; six runs each, at a stretch: independent ones would have 2.2281 times 0.10954 times the root of
-- 1/6 + 1/6, a factor of 1.1514
SELECT count(store(n, n, 'seqscan', seqscan(500 * off(n + 1)), 'before')),
       count(store(10 + n, 10 + n, 'seqscan', seqscan(650 * off(n + 1)), 'after')),
       count(store(20 + n, n, 'random', '[{"path": "os", "iops": 100}]', 'before', args => jsonb_build_object('seed', n))),
       count(store(30 + n, 10 + n, 'random', '[{"path": "os", "iops": 98}]', 'after', args => jsonb_build_object('seed', 30 + n), read_ahead_kb => 0)),
       count(store(40 + n, n, 'depth', '[{"depth": 2, "iops": 100}]', 'before')),
       count(store(50 + n, n, 'depth', '[{"depth": 2, "iops": 100}]', 'else')),
       count(store(60 + n, n, 'seqscan', '[]', 'before', status => 'failed'))
  FROM generate_series(0, 5) n;
SELECT * FROM io_probe_compare('before', 'after');
-- runs of another cluster may bear the label, and runs without one are history, too
UPDATE io_probe_runs SET system_identifier = '8' WHERE label = 'after';
SELECT count(store(n, n - 80, 'seqscan', seqscan(500)))
  FROM generate_series(80, 89) n;
SELECT probe, item, metric, a, b, ratio, verdict, noise_pct, runs, a_setting, b_setting, object, notes
  FROM io_probe_compare_full('before', 'after');
SELECT probe, metric, a, b, ratio, verdict FROM io_probe_compare_full('before', 'before');

-- labels that take turns are compared as pairs, however the device drifts; the drift alone is no
-- difference of labels that ran at a stretch
SELECT count(store(300 + n, 300 + n, 'seqscan', seqscan(500 * off(n / 2) * exp(0.1 * sin(n / 4.0)) * CASE n % 2 WHEN 1 THEN 0.85 ELSE 1 END),
                   CASE n % 2 WHEN 0 THEN 'turn a' ELSE 'turn b' END, object => 'public.drifts')),
       count(store(400 + n, 400 + n, 'seqscan', seqscan(500 * off(n / 2) * exp(0.1 * sin(n / 4.0))),
                   CASE WHEN n < 12 THEN 'block a' ELSE 'block b' END, object => 'public.drifts'))
  FROM generate_series(0, 23) n;
SELECT a, b, ratio, verdict, noise_pct, runs, notes FROM io_probe_compare_full('turn a', 'turn b');
SELECT a, b, ratio, verdict, runs, notes FROM io_probe_compare_full('block a', 'block b');

-- runs that others disturbed are set aside while enough are left, else nothing is said unless both sides had the same neighbours
CREATE FUNCTION shared(rate float8, others bigint) RETURNS jsonb
  RETURN jsonb_build_array(jsonb_build_object('path', 'direct', 'mib_s', rate, 'device_bytes', 1000000000, 'other_bytes', others));
SELECT count(store(500 + n, 500 + n, 'seqscan', shared(500 * off(n + 1), 0), 'alone', object => 'public.busy')),
       count(store(520 + n, 520 + n, 'seqscan', shared(500 * off(n + 1) / CASE WHEN n < 4 THEN 2 ELSE 1 END,
                                                       CASE WHEN n < 4 THEN 1000000000 ELSE 0 END), 'a third', object => 'public.busy')),
       count(store(540 + n, 540 + n, 'seqscan', shared(250 * off(n + 1), 1000000000), 'all', object => 'public.busy')),
       count(store(560 + n, 560 + n, 'seqscan', shared(50 * off(n + 1), 1100000000), 'all, slow', object => 'public.busy'))
  FROM generate_series(0, 11) n;
SELECT a, b, ratio, verdict, runs, notes FROM io_probe_compare_full('alone', 'a third');
SELECT a, b, ratio, verdict, runs, notes FROM io_probe_compare_full('alone', 'all');
SELECT a, b, ratio, verdict, runs, notes FROM io_probe_compare_full('all', 'all, slow');
DROP FUNCTION shared;
-- what the rows do not know their run does: of the device, and of the processors
CREATE FUNCTION depth(rate float8) RETURNS jsonb
  RETURN jsonb_build_array(jsonb_build_object('depth', 1, 'iops', rate));
SELECT count(store(600 + n, 600 + n, 'depth', depth(500 * off(n + 1)), 'quiet', object => 'public.busy')),
       count(store(620 + n, 620 + n, 'depth', depth(500 * off(n + 1) / CASE WHEN n < 4 THEN 2 ELSE 1 END), 'crowded', object => 'public.busy')),
       count(store(640 + n, 640 + n, 'depth', depth(250 * off(n + 1)), 'stolen', object => 'public.busy'))
  FROM generate_series(0, 11) n;
UPDATE io_probe_runs SET own_bytes = 1000000000, other_bytes = CASE WHEN id BETWEEN 620 AND 623 THEN 1000000000 ELSE 0 END,
       steal_pct = CASE WHEN label = 'stolen' THEN 50::float8 WHEN id = 605 THEN 'NaN' WHEN id = 606 THEN '-Infinity' ELSE 0 END WHERE id >= 600;
SELECT a, b, ratio, verdict, runs, notes FROM io_probe_compare_full('quiet', 'crowded');
SELECT a, b, ratio, verdict, runs, notes FROM io_probe_compare_full('quiet', 'stolen');
DROP FUNCTION depth;
DELETE FROM io_probe_runs WHERE id >= 300;

-- what can't be compared
DO $$
DECLARE
  query text;
  about text;
  hint text;
  detail text;
BEGIN
  FOREACH query IN ARRAY '{"1, 12345678901", "NULL, 1", "1, NULL", "1, 20", "1, 60", "''before'', ''never''",
                           "NULL::text, ''after''", "''after'', ''else''"}'::text[] LOOP
    BEGIN
      EXECUTE format('SELECT FROM io_probe_compare(%s)', query);
      RAISE NOTICE '%: nothing', query;
    EXCEPTION WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS about = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT, detail = PG_EXCEPTION_DETAIL;
      RAISE NOTICE '%: % % % %', query, SQLSTATE, about, detail, hint;
    END;
  END LOOP;
END $$;
TRUNCATE io_probe_runs, io_probe_results;

-- changes: independent runs would have t times 0.1 times the root of 1 + 1/11, where t is that of a level of 5 % over the
-- figures that are not called different
SELECT count(store(n, n, 'seqscan', seqscan(500 * off(n)))),
       count(store(20 + n, n, 'seqscan', seqscan(500 * off(n)), object => 'public.slower')),
       count(store(40 + n, n, 'ping', jsonb_build_array(jsonb_build_object('op', 'read', 'lat_us', 100 * off(n)))))
  FROM generate_series(0, 10) n;
SELECT count(store(n, n, 'seqscan', seqscan(500), object => 'public.new'))
  FROM generate_series(60, 68) n;
SELECT store(80, 80, 'seqscan', seqscan(625)), store(81, 81, 'seqscan', seqscan(250), object => 'public.slower'),
  store(82, 82, 'ping', '[{"op": "read", "lat_us": 40}, {"op": "write", "lat_us": 50}]'),
  store(83, 83, 'seqscan', seqscan(800), object => 'public.new'),
  store(84, 84, 'seqscan', '[]', object => 'public.slower', status => 'failed');
SELECT probe, object, item, metric, unit, before, now, ratio, verdict, noise_pct, runs,
       since - timestamptz '2026-01-01 00:00+00' AS since, run_id, notes FROM io_probe_changes_full();
SELECT object, item, verdict FROM io_probe_changes_full() WHERE verdict IN ('better', 'worse');
-- of the last two
SELECT object, item, before, now, ratio, verdict, noise_pct, runs, since - timestamptz '2026-01-01 00:00+00' AS since, run_id
  FROM io_probe_changes_full(2);
SELECT count(*), bool_and(verdict = 'can''t tell' AND before IS NULL) FROM io_probe_changes_full(1000);
SELECT FROM io_probe_changes(0);
SELECT FROM io_probe_changes(1001);
SELECT count(*) FROM io_probe_changes(NULL);
-- of each run what is in use, and all of it if nothing is
SELECT count(store(200 + n, 200 + n, 'sync', jsonb_build_array(
         jsonb_build_object('section', 'wal_segment', 'method', 'fsync', 'writes', 1, 'write_kb', 8, 'in_use', false, 'ops_s', 100 * off(n)),
         jsonb_build_object('section', 'wal_segment', 'method', 'fdatasync', 'writes', 1, 'write_kb', 8, 'in_use', true, 'ops_s', 100 * off(n)),
         jsonb_build_object('section', 'no_sync', 'method', 'none', 'writes', 1, 'write_kb', 8, 'in_use', null, 'ops_s', 100 * off(n))),
         object => 'wal')),
       count(store(220 + n, 220 + n, 'random', '[{"path": "direct", "iops": 100}, {"path": "server", "iops": 90}, {"path": "os", "iops": 80}]',
                   object => 'public.used')),
       count(store(240 + n, 240 + n, 'random', '[{"path": "os", "iops": 80}]', object => 'public.os')),
       count(store(260 + n, 260 + n, 'readahead', '[{"window_kb": 128, "mode": "kernel", "mib_s": 100},
                                                    {"window_kb": 256, "mode": "emulated", "mib_s": 120}]', object => 'public.used'))
  FROM generate_series(0, 1) n;
SELECT probe, object, item, verdict, notes FROM io_probe_changes_full() WHERE run_id > 200;
SELECT probe, object, item, verdict FROM io_probe_changes_full(all_items => true) WHERE run_id > 200;
-- what came from memory is another item, and what a limit allowed is none
SELECT count(store(280 + n, 280 + n, 'seqscan', jsonb_build_array(jsonb_build_object('path', 'server', 'mib_s', 4000 - 3000 * n, 'device_pct', 100 * n)),
                   object => 'public.cached')),
       count(store(290 + n, 290 + n, 'random', jsonb_build_array(jsonb_build_object('path', 'direct', 'iops', 500, 'p50_us', 100, 'doubt', 'others,paced')),
                   object => 'public.paced')),
       count(store(300 + n, 300 + n, 'report', jsonb_build_array(
         jsonb_build_object('section', 'scan', 'item', 'server', 'value', 4000, 'mark', CASE n WHEN 0 THEN 'from memory' END),
         jsonb_build_object('section', 'depth', 'item', '8', 'value', 500, 'doubt', 'paced')), object => 'public.cached'))
  FROM generate_series(0, 1) n;
SELECT probe, object, item, metric, value FROM io_probe_metrics WHERE run_id >= 280 ORDER BY run_id, item, metric;
SELECT probe, object, item, metric, verdict, notes FROM io_probe_changes_full() WHERE run_id >= 280;
SELECT count(*) = (SELECT count(*) FROM io_probe_changes()) AS null_is_the_default FROM io_probe_changes(NULL, NULL);
DELETE FROM io_probe_runs WHERE id >= 200;
-- of more than thirty runs before, the latest thirty count; one that is far off is noise
SELECT count(store(n, n, 'seqscan', seqscan(CASE WHEN n < 140 THEN 5 ELSE 500 END), object => 'public.long'))
  FROM generate_series(100, 170) n;
SELECT before, now, verdict, noise_pct, runs FROM io_probe_changes_full() WHERE object = 'public.long';
SELECT a, b, verdict, noise_pct, runs FROM io_probe_compare_full(169, 170);

-- what is lacking where nothing can be told: runs, a partner, an argument
CREATE FUNCTION scans(series int, first int, runs int, spread float8, label text, args jsonb = '{}', read_ahead_kb int = 128) RETURNS bigint
  RETURN (SELECT count(store(series + n, series + n, 'seqscan', jsonb_build_array(
            jsonb_build_object('path', 'direct', 'mib_s', 500 * off(n) ^ spread), jsonb_build_object('path', 'server', 'mib_s', 400)),
            label, 'public.asked', read_ahead_kb, args)) FROM generate_series(first, first + runs - 1) AS n);
SELECT scans(1000, 1, 4, 1, 'some'), scans(1010, 1, 2, 1, 'more'), scans(1020, 1, 6, 1, 'many'), scans(1030, 1, 12, 8, 'wild'),
       scans(1050, 1, 12, 8, 'wilder'), scans(1100, 1, 3, 1, 'many', '{"cold": true, "duration": "1 s"}');
SELECT * FROM io_probe_compare('some', 'more');
SELECT item, verdict, remark, noise_pct FROM io_probe_compare_full('wild', 'wilder');
SELECT item, verdict, remark, notes FROM io_probe_compare_full('some', 'many');
SELECT item, verdict, remark, notes FROM io_probe_compare_full(1001, 1101);
-- series of other arguments are told apart
SELECT * FROM io_probe_changes() WHERE object = 'public.asked';
-- a figure that the changed setting can't touch has another cause
UPDATE io_probe_results SET result = result || '{"mib_s": 100}' WHERE run_id BETWEEN 1020 AND 1029 OR run_id BETWEEN 1000 AND 1009 AND result->>'path' = 'server';
UPDATE io_probe_runs SET leaves = jsonb_set(leaves, '{0,read_ahead_kb}', '8192') WHERE id BETWEEN 1020 AND 1029;
SELECT item, metric, verdict, remark, notes FROM io_probe_compare_full('some', 'many') WHERE verdict <> 'can''t tell' OR metric IS NULL;
DROP FUNCTION scans;
DELETE FROM io_probe_runs WHERE id >= 1000;

-- who may: pg_monitor reads all of it
CREATE ROLE regress_io_probe_nobody;
SET ROLE pg_monitor;
SELECT count(*) > 0 AS metrics FROM io_probe_metrics;
SELECT count(*) > 0 AS latest FROM io_probe_latest;
SELECT count(*) AS changed FROM io_probe_changes();
SELECT count(*) AS compared FROM io_probe_compare(1, 80);
SET ROLE regress_io_probe_nobody;
SELECT FROM io_probe_metrics;
SELECT FROM io_probe_latest;
SELECT FROM io_probe_compare(1, 80);
SELECT FROM io_probe_compare('a', 'b');
SELECT FROM io_probe_changes();
-- nor does EXECUTE alone do: the runs are read with the caller's rights
RESET ROLE;
GRANT EXECUTE ON FUNCTION io_probe_compare(bigint, bigint), io_probe_changes(integer, boolean) TO regress_io_probe_nobody;
SET ROLE regress_io_probe_nobody;
SELECT FROM io_probe_compare(1, 80);
SELECT FROM io_probe_changes();
RESET ROLE;
DROP OWNED BY regress_io_probe_nobody;
DROP ROLE regress_io_probe_nobody;

-- wherever the extension is, and whatever search_path says
CREATE SCHEMA "Elsewhere of it";
CREATE SCHEMA trap;
CREATE FUNCTION trap.io_probe_equal(text, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.io_probe_equal);
ALTER EXTENSION pg_io_probe SET SCHEMA "Elsewhere of it";
SET search_path = trap, pg_catalog, "Elsewhere of it";
SELECT count(*) AS compared FROM io_probe_compare(1, 80);
SELECT count(*) AS changed FROM io_probe_changes();
RESET search_path;
ALTER EXTENSION pg_io_probe SET SCHEMA public;
DROP SCHEMA trap CASCADE;
DROP SCHEMA "Elsewhere of it";
TRUNCATE io_probe_runs, io_probe_results;
DROP FUNCTION store, off, seqscan;
