--
-- io_probe_iostat. What the machine can't tell is NULL, without a device there is one row a sample
--
-- a row for each sample and device, the devices being those of io_probe_device
SELECT DISTINCT device FROM io_probe_iostat_full('10 ms', count => 2) EXCEPT SELECT device FROM io_probe_device_full();
SELECT device FROM io_probe_device_full() WHERE device IS NOT NULL EXCEPT SELECT device FROM io_probe_iostat_full('10 ms');
CREATE TEMP TABLE series AS SELECT * FROM io_probe_iostat_full('20 ms', count => 5) WITH ORDINALITY;
SELECT array_agg(sample ORDER BY ordinality) AS samples FROM series GROUP BY device LIMIT 1;
SELECT count(*) FROM io_probe_iostat_full('10 ms') WHERE sample <> 1;
-- they follow each other on a schedule: the last ends when all intervals are over, whatever was late
SELECT sum(elapsed_ms) >= 99.9 AS all_of_it, min(sampled_at) > statement_timestamp() - '1 min'::interval AS now,
       bool_and(elapsed_ms > 0) AS lengths
  FROM series WHERE device IS NOT DISTINCT FROM (SELECT min(device) FROM series);
SELECT device FROM series a JOIN series b USING (device) WHERE a.sample < b.sample AND a.sampled_at >= b.sampled_at;
-- the time is the server's, whatever the session's formats
SET TimeZone = 'Asia/Kathmandu';
SET DateStyle = 'German';
SELECT device FROM io_probe_iostat_full('10 ms') WHERE sampled_at NOT BETWEEN statement_timestamp() AND clock_timestamp();
RESET TimeZone;
RESET DateStyle;
-- figures fit each other
SELECT bool_and(status IN ('ok', 'unsupported')) AS known_status,
       bool_and((status = 'ok') = (util_pct IS NOT NULL)) AS status,
       bool_and(device IS NOT NULL OR status = 'unsupported') AS without_device,
       bool_and(status = 'ok' OR cardinality(notes) > 0) AS why,
       bool_and(util_pct >= 0 AND aqu_sz >= 0 AND r_s >= 0 AND w_s >= 0) IS NOT FALSE AS rates,
       bool_and((r_await_ms IS NULL) = (r_s = 0) AND (rareq_kb IS NULL) = (r_s = 0)
                AND (w_await_ms IS NULL) = (w_s = 0) AND (wareq_kb IS NULL) = (w_s = 0)
                AND (d_await_ms IS NULL) = (d_s = 0) AND (f_await_ms IS NULL) = (f_s = 0)) IS NOT FALSE AS ratios,
       bool_and(abs(r_s * rareq_kb / 1024 - rmib_s) <= 0.001 * rmib_s
                AND abs(w_s * wareq_kb / 1024 - wmib_s) <= 0.001 * wmib_s) IS NOT FALSE AS sizes,
       bool_and(abs(cpu_user_pct + cpu_system_pct + cpu_iowait_pct + cpu_idle_pct + cpu_steal_pct - 100) < 0.01)
         IS NOT FALSE AS cpu,
       bool_and(io_pressure_pct BETWEEN 0 AND 100 AND io_pressure_full_pct <= io_pressure_pct + 1) IS NOT FALSE
         AS pressure
  FROM series;
-- a device by its name, also with the directory that its node is in
SELECT coalesce(min(device), '') AS any_device FROM io_probe_device_full() \gset
SELECT count(*) = greatest(count(DISTINCT device), 1) AS once FROM io_probe_iostat_full('10 ms');
SELECT bool_and(device = :'any_device') IS NOT FALSE AS named FROM io_probe_iostat_full('10 ms', count => 2, options => jsonb_build_object('device', nullif(:'any_device', '')));
SELECT bool_and(device = :'any_device') IS NOT FALSE AS named
  FROM io_probe_iostat_full('10 ms', count => 1, options => jsonb_build_object('device', '/dev/' || nullif(:'any_device', '')));
-- nothing else is a device, least of all a file
\set VERBOSITY sqlstate
SELECT device FROM io_probe_iostat_full(options => '{"device": ""}');
SELECT device FROM io_probe_iostat_full(options => '{"device": "no such device"}');
SELECT device FROM io_probe_iostat_full(options => '{"device": ".."}');
SELECT device FROM io_probe_iostat_full(options => '{"device": "../../class/block"}');
SELECT device FROM io_probe_iostat_full(options => '{"device": "/dev/mapper/control"}');
SELECT device FROM io_probe_iostat_full(options => '{"device": "/etc/passwd"}');
\set VERBOSITY default
SELECT device FROM io_probe_iostat_full(options => '{"device": "no such device"}');
-- arguments
SELECT device FROM io_probe_iostat_full('9 ms');
SELECT device FROM io_probe_iostat_full('0');
SELECT device FROM io_probe_iostat_full('-1 s');
SELECT device FROM io_probe_iostat_full(count => 0);
SELECT device FROM io_probe_iostat_full('10 ms', count => 10001);
SELECT device FROM io_probe_iostat_full('10 ms', count => 2147483647);
SELECT device FROM io_probe_iostat_full(options => '{"interval": 1}');
SELECT device FROM io_probe_iostat_full(options => '{"device": 1}');
SELECT device FROM io_probe_iostat_full('1 s', count => 61);
SELECT count(*) > 0 AS defaults FROM io_probe_iostat_full(NULL, count => NULL, options => NULL);
-- it shares the time of the statement with all other probes, and says when that was too little
SET pg_io_probe.max_duration = '1600ms';
SELECT every, count(*) > 0 AS rows, max(sample) AS samples,
       bool_or('stopped: this statement has used up pg_io_probe.max_duration' = ANY (notes)) AS why
  FROM unnest('{800 ms,1560 ms,400 ms}'::interval[]) WITH ORDINALITY AS u(every, turn), io_probe_iostat_full(every::text)
  WHERE status <> 'unsupported' OR device IS NULL GROUP BY turn, every ORDER BY turn;
RESET pg_io_probe.max_duration;
