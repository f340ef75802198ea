#!/usr/bin/env -S python3 -B
"""What io_probe_recommend says of ways of reading beside what the server's own scans take when it is restarted with each.

    io_method.py [PLACE…]     on a server from 18 on that the environment names; run.sh starts one

PLACE is disk (where the server is), loop (a loop device there) or a model of devices/, such as "gp3 iops=500"; for all but disk as
root. Each way of WAYS is set, the server restarted, and three scans run REPEATS times (3): of one page in ten by a bitmap, cold; of
the whole table, cold; and of the table in the OS cache. Then all ways once more, backwards. Then io_probe_recommend is called CALLS
times (3) under io_method = worker with 3 workers, for DURATION (20 s) each. Lines have the medians of each way in ms, and as
multiples of those of 3 workers, the server's and ours; then the pairs of ways whose scans differ by over 10 %, there and back: how
many there are, how many of them we rank right, and the median error of our ratio.
"""

import contextlib
import itertools
import os
import statistics
import sys
import time

import made_up
import storage
from commands import give_up, server_version
from lib import VERSION, Session, call, restart_server, segment_file

ROWS = int(os.environ.get("ROWS", "1500000"))
REPEATS = int(os.environ.get("REPEATS", "3"))
CALLS = int(os.environ.get("CALLS", "3"))
DURATION = os.environ.get("DURATION", "20 s")
IN_FORCE = ("worker", 3)
WAYS = [("sync", 3), ("worker", 1), IN_FORCE, ("worker", 8), ("io_uring", 3)]
SESSION = "SET max_parallel_workers_per_gather = 0; SET jit = off; SET client_min_messages = warning; SET enable_indexscan = off"
# As io_probe_recommend names them: is it cold, and which query. A row in ten pages.
SCANS = {
    "cold bitmap scan": (True, "SET enable_seqscan = off", "SELECT count(filler) FROM probed WHERE k BETWEEN {0} AND {1}"),
    "cold scan": (True, "SET enable_seqscan = on", "SELECT count(filler) FROM probed"),
    "cached scan": (False, "SET enable_seqscan = on", "SELECT count(filler) FROM probed"),
}
MIB = 1 << 20


def restarted(session, way):
    """A session of the server that reads this way."""
    method, workers = way
    names = ["io_workers"] if VERSION < 19 else ["io_min_workers", "io_max_workers"]
    for name, value in [("io_method", method), *((name, workers) for name in names)]:
        session.run(f"ALTER SYSTEM SET {name} = {value}")
    session.close()
    restart_server()
    session = Session()
    session.run(SESSION)
    return session


def milliseconds(session, scan, bounds):
    """Of one scan."""
    is_cold, setting, query = SCANS[scan]
    if is_cold:
        session.run("SELECT io_probe_evict('probed')")
    else:
        with open(segment_file(session, "probed"), "rb") as file:
            while file.read(MIB):
                pass
    session.run(setting)
    began = time.monotonic()
    session.run(query.format(*bounds))
    return 1e3 * (time.monotonic() - began)


def by_server(session, bounds):
    """The median of each way and scan, there and back; and the session that is left."""
    passes = []
    for ways in [WAYS, WAYS[::-1]]:
        times = {}
        for way in ways:
            session = restarted(session, way)
            # The index comes into shared buffers, the session into its caches.
            milliseconds(session, "cold bitmap scan", bounds)
            for scan in SCANS:
                times[way, scan] = statistics.median(milliseconds(session, scan, bounds) for _ in range(REPEATS))
        passes.append(times)
    return session, passes


def by_advice(session):
    """What each way takes of each scan, as a multiple of what is in force; the rows' words."""
    found, said = {}, []
    settings = ["io_method", "io_workers" if VERSION < 19 else "io_max_workers"]
    for _ in range(CALLS):
        arguments = {"settings": settings, "duration": DURATION, "cold": True, "options": {"max_bytes": "60GB"}}
        rows = session.rows(f"SELECT * FROM {call('recommend_full', 'probed', **arguments)}")
        said += [f"{row['setting']}: {row['recommended'] or row['doubt']} ({row['why']})" for row in rows]
        for way in rows[0]["evidence"]["ways"]:
            name = (way["io_method"], way["workers"] or 3)
            for scan in way["scans"]:
                ratio = 1.0 if name == IN_FORCE else scan["ratio"]
                if ratio:
                    found.setdefault((name, scan["scan"]), []).append(ratio)
    return {key: statistics.median(ratios) for key, ratios in found.items()}, said


def judge(session, place, clause):
    session.run(f"CREATE TABLE probed {clause} AS SELECT (hashint4(g)::bigint & 2147483647) % {ROWS} AS k, g, repeat('x', 100) AS filler "
                f"FROM generate_series(1, {ROWS}) g; CREATE INDEX ON probed (k); VACUUM (FREEZE, ANALYZE) probed; CHECKPOINT")  # fmt: skip
    pages = int(session.value("SELECT relpages FROM pg_class WHERE oid = 'probed'::regclass"))
    bounds = ROWS // 3, ROWS // 3 + pages // 10
    session, passes = by_server(session, bounds)
    times = {key: statistics.fmean(found[key] for found in passes) for key in passes[0]}
    session = restarted(session, IN_FORCE)
    ours, said = by_advice(session)
    print(f"{place}, {pages} pages\n{'':<14}" + "".join(f"{scan:>34}" for scan in SCANS))
    for way in WAYS:
        line = f"{way[0]} {way[1] if way[0] == 'worker' else '':<4}"
        for scan in SCANS:
            server = times[way, scan]
            ratio = ours.get((way, scan))
            line += f"{server:12.1f} ms {server / times[IN_FORCE, scan]:7.2f} {ratio if ratio else float('nan'):7.2f}    "
        print(line)
    right, errors = 0, []
    for scan, (one, other) in itertools.product(SCANS, itertools.combinations(WAYS, 2)):
        if (one, scan) not in ours or (other, scan) not in ours:
            continue
        there, back = (found[one, scan] / found[other, scan] for found in passes)
        server, told = times[one, scan] / times[other, scan], ours[one, scan] / ours[other, scan]
        if min(there, back) > 1.1 or max(there, back) < 1 / 1.1:
            right += (server > 1) == (told > 1)
            errors.append(abs(told / server - 1))
    median = f"{100 * statistics.median(errors):.0f} %" if errors else "none"
    print(f"pairs over 10 %: {len(errors)}, ranked right {right}, median error of the ratio {median}")
    print("\n".join(said), flush=True)
    session.run("DROP TABLE probed")
    return session


def disks(place, stack, session):
    """The tablespace's clause on such a device."""
    if place == "disk":
        return ""
    if place == "loop":
        made = storage.LoopDevice(1 << 30)
        stack.callback(made.remove)
        return storage.create_tablespace(session, "made_up", made.mount_point)
    if why := made_up.missing():
        give_up(why)
    made = stack.enter_context(made_up.device())
    clause = storage.create_tablespace(session, "made_up", made.mount_point)
    stack.enter_context(made.meanwhile(place))
    return clause


def main():
    if VERSION < 18:
        give_up("before PostgreSQL 18 there is no io_method")
    print(f"PostgreSQL {server_version()}")
    for place in sys.argv[1:] or ["disk"]:
        with contextlib.ExitStack() as stack:
            session = Session()
            clause = disks(place, stack, session)
            session = judge(session, place, clause)
            if clause:
                session.run("DROP TABLESPACE made_up")
            session.close()


if __name__ == "__main__":
    main()
