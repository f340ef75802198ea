#!/usr/bin/env -S python3 -B
"""What io_probe_compare says of equal and of different runs, and how fast the history is.

    history_verdicts.py DEVICE  on the server that the environment names, with a tablespace "experiment" on that
                                loop device; run.sh starts one

It judges cold scans through the OS cache, recorded by io_probe_record.

    idle    RUNS (40) runs one after the other, each compared with each: of those pairs at most 7 % may be called
            different (a pair whose later run has fewer than 10 before it is "can't tell")
    slow    then SLOW_RUNS (10) with read_ahead_kb 0, each compared with each of the last SLOW_RUNS idle ones: all must be
            called "worse"
    half    then SLOW_RUNS with the device throttled by the kernel to LIMIT (200) MiB/s, and SLOW_RUNS with half of that,
            each compared with each: all must be called "worse", and the median of the ratios must be within 5 % of a half
    speed   100,000 stored runs of 20 series: the medians of 9 calls, in milliseconds; goals are 50 ms, and 5 ms for what
            io_probe_record adds to a probe that takes next to no time itself. Planning is included, as is psql's own
            part of the time
"""

import json
import os
import statistics
import sys

from commands import psql, run, server_version

LINE = "{:<6} {:<6} {:<30} {:>12} {:<10} {}"
THROTTLE = "/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device"
GOAL_DIFFERENT_PCT = 7
GOAL_RATIO_PCT = 5
GOAL_MS = 50
GOAL_RECORD_MS = 5


def say(what, about, value, goal, met):
    """Prints a line."""
    print(LINE.format(server_version(), what, about, value, "met" if met else "MISSED", goal), flush=True)


# --- verdicts ------------------------------------------------------------------------------------------------------

SCAN = """'seqscan', 'judged', '{"paths": ["os"], "cold": true, "duration": "1 min"}'"""


def record():
    """Records a scan; the number of the run."""
    return int(psql(f"SELECT io_probe_record({SCAN})"))


def verdicts(earlier, later):
    """Verdicts and ratios of pairs of runs."""
    ids = ["'{%s}'::bigint[]" % ",".join(map(str, runs)) for runs in (earlier, later)]
    pairs = psql(
        f"""SELECT coalesce(json_agg(json_build_array(verdict, ratio)), '[]')
            FROM unnest({ids[0]}) AS one (id), unnest({ids[1]}) AS other (id), LATERAL io_probe_compare(one.id, other.id)
            WHERE one.id < other.id AND verdict IS NOT NULL"""
    )
    return json.loads(pairs)


def share_of_different(found):
    """The share of the pairs that are called different, in percent."""
    return 100 * sum(verdict in ("better", "worse") for verdict, _ in found) / len(found)


def judge(device):
    """Judges idle, slow and half."""
    psql(
        """CREATE TABLE judged (t text) TABLESPACE experiment;
           ALTER TABLE judged ALTER t SET STORAGE PLAIN;
           INSERT INTO judged SELECT repeat('x', 8000) FROM generate_series(1, 32768)""",
    )
    psql("VACUUM judged")
    psql("CHECKPOINT")
    record()  # not judged: it sets hint bits, and does what else only the first scan does
    psql("DELETE FROM io_probe_runs")
    ids = [record() for _ in range(int(os.environ.get("RUNS", 40)))]
    found = verdicts(ids, ids)
    rates = json.loads(psql("SELECT json_agg(mib_s) FROM io_probe_seqscan_history"))
    cv = 100 * statistics.stdev(rates) / statistics.mean(rates)
    unknown = sum(verdict == "can't tell" for verdict, _ in found)
    say("idle", f"{len(found)} pairs, {unknown} unknown, cv", f"{cv:.1f} %", "", True)
    different = share_of_different(found)
    known = different * len(found) / max(1, len(found) - unknown)
    about = f"called different ({known:.1f} % of known)"
    say("idle", about, f"{different:.1f} %", f"at most {GOAL_DIFFERENT_PCT} %", different <= GOAL_DIFFERENT_PCT)

    setting = f"/sys/block/{device}/queue/read_ahead_kb"
    with open(setting, encoding="ascii") as file:
        before = file.read()
    set_to(setting, "0")
    try:
        slow = [record() for _ in range(int(os.environ.get("SLOW_RUNS", 10)))]
    finally:
        set_to(setting, before)
    say_worse("slow", verdicts(ids[-len(slow) :], slow))

    if not os.path.exists(THROTTLE):
        print("half: not judged, the kernel here has no blkio controller of cgroup v1")
        return
    limit = int(os.environ.get("LIMIT", 200)) << 20
    whole, half = throttled(device, limit, len(slow)), throttled(device, limit // 2, len(slow))
    found = verdicts(whole, half)
    say_worse("half", found)
    ratio = statistics.median(ratio for _, ratio in found)
    say("half", "ratio", f"{ratio:.4f}", f"0.5, within {GOAL_RATIO_PCT} %", abs(ratio / 0.5 - 1) <= GOAL_RATIO_PCT / 100)


def throttled(device, bytes_per_s, runs):
    """Records `runs` runs while the kernel lets at most `bytes_per_s` be read from the device."""
    with open(f"/sys/block/{device}/dev", encoding="ascii") as file:
        number = file.read().strip()
    set_to(THROTTLE, f"{number} {bytes_per_s}")
    try:
        return [record() for _ in range(runs)]
    finally:
        set_to(THROTTLE, f"{number} 0")


def say_worse(what, found):
    """Prints how many pairs are called worse; all must be."""
    worse = sum(verdict == "worse" for verdict, _ in found)
    say(what, "called worse", f"{worse} of {len(found)}", "all", worse == len(found))


def set_to(path, value):
    """Writes a value to a file of /sys."""
    with open(path, "w", encoding="ascii") as file:
        file.write(value)


# --- speed ---------------------------------------------------------------------------------------------------------

# 20 series, five of each of four probes, with a run every 7 minutes; some failed. Every 20,000 runs the kernel changes.
FILL = """
WITH run AS (
    INSERT INTO io_probe_runs (started_at, elapsed_ms, label, probe, object, status, args, rolname, datname, schemaname,
                               relname, spcname, device, kernel, server_version, in_recovery, host, system_identifier,
                               settings, leaves)
    SELECT now() - (100000 - n) * interval '7 min', 5000,
           CASE WHEN n > 99900 THEN 'after' WHEN n > 99800 THEN 'before' WHEN n % 3 = 0 THEN 'nightly' END,
           (ARRAY['seqscan', 'random', 'sync', 'depth'])[1 + n % 20 / 5], 'public.t' || n % 5,
           CASE WHEN n % 97 = 0 THEN 'failed' ELSE 'ok' END, jsonb_build_object('duration', '5 s', 'seed', n), 'postgres',
           'postgres', 'public', 't', 'pg_default', 'sda', 'Linux 6.' || n / 20000, '15.4', false, 'here', '7',
           (SELECT jsonb_object_agg('setting_' || s, '128MB') FROM generate_series(1, 30) s),
           jsonb_build_array(jsonb_build_object('device', 'sda', 'model', 'disk', 'scheduler', 'none', 'read_ahead_kb', 128,
             'nr_requests', 64, 'max_sectors_kb', 512, 'rotational', false, 'write_cache', 'write back'))
    FROM generate_series(1, 100000) n RETURNING id, probe, status
)
INSERT INTO io_probe_results
SELECT id, line.ordinal, line.result FROM run, LATERAL (
    SELECT n AS ordinal, jsonb_build_object('path', (ARRAY['direct', 'server', 'os'])[n], 'mib_s', rate,
        'iops', rate * 100, 'block_us', 1e6 / rate,
        'ci_low', 97 * rate, 'ci_high', 103 * rate, 'lat_us', 1e4 / rate, 'p50_us', 1e4 / rate,
        'p95_us', 2e4 / rate, 'p99_us', 4e4 / rate, 'section', 'one_write', 'method', 'method' || n, 'writes', 1,
        'write_kb', 8, 'direct', n % 2 = 0, 'ops_s', rate, 'depth', 2 ^ n, 'status', 'ok', 'notes', '[]'::jsonb,
        'device', 'sda', 'scheduler', 'none', 'read_ahead_kb', 128, 'schemaname', 'public', 'relname', 't')
    FROM generate_series(1, CASE probe WHEN 'sync' THEN 20 WHEN 'depth' THEN 7 ELSE 3 END) n, LATERAL (
        SELECT 500 * exp(0.07 * sqrt(-2 * ln(1 - random())) * cos(6.2832 * random())) + 0 * id
    ) AS r (rate)
) AS line (ordinal, result)
WHERE run.status = 'ok'
"""

QUERIES = {
    "io_probe_latest": "SELECT * FROM io_probe_latest",
    "compare, runs of seqscan": "SELECT * FROM io_probe_compare(%(last)s - 40, %(last)s - 20)",
    "compare, runs of sync": "SELECT * FROM io_probe_compare(%(last)s - 49, %(last)s - 29)",
    "compare, first and last of sync": "SELECT * FROM io_probe_compare(%(last)s - 99989, %(last)s - 29)",
    "compare, two labels of 100 runs": "SELECT * FROM io_probe_compare('before', 'after')",
    "io_probe_changes": "SELECT * FROM io_probe_changes()",
    "io_probe_changes(10)": "SELECT * FROM io_probe_changes(10)",
    "a run in its typed view": "SELECT * FROM io_probe_sync_history WHERE run_id = %(last)s - 49",
    "a run in io_probe_metrics": "SELECT * FROM io_probe_metrics WHERE run_id = %(last)s - 49",
}


def milliseconds(query, calls=9):
    """The median over some calls in one session, after one that fills the caches of the session."""
    script = ["-c", "\\o /dev/null", "-c", query, "-c", "\\timing on"] + ["-c", query] * calls
    told = run(["psql", "-Xqt", "-v", "ON_ERROR_STOP=1", *script])
    return statistics.median(timings(told))


def timings(told):
    """The times in what psql prints: Time: 61234.567 ms (01:01.235)."""
    return [float(line.split()[1]) for line in told.splitlines() if line.startswith("Time: ")]


def speed():
    """Times queries with many stored runs."""
    psql("DELETE FROM io_probe_runs")
    psql(FILL)
    psql("VACUUM ANALYZE io_probe_runs, io_probe_results")
    psql("CHECKPOINT")
    last = int(psql("SELECT max(id) FROM io_probe_runs"))
    for about, query in QUERIES.items():
        took = milliseconds(query % {"last": last})
        say("speed", about, f"{took:.2f} ms", f"under {GOAL_MS} ms", took < GOAL_MS)
    probe = milliseconds("SELECT * FROM io_probe_cache('judged')")
    took = milliseconds("SELECT io_probe_record('cache', 'judged')") - probe
    say("speed", "added by io_probe_record", f"{took:.2f} ms", f"under {GOAL_RECORD_MS} ms", took < GOAL_RECORD_MS)
    took = timings(run(["psql", "-Xqt", "-c", "\\timing on", "-c", "SELECT io_probe_prune('300 days')"]))[0]
    left = psql("SELECT count(*) FROM io_probe_runs")
    say("speed", f"prune, {left} are left", f"{took:.0f} ms", "one statement", True)


def main():
    """Judges the verdicts, then the speed."""
    print(LINE.format(*"server what about value verdict goal".split()))
    judge(sys.argv[1])
    speed()


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main()
    else:
        sys.exit("usage: history_verdicts.py DEVICE")
