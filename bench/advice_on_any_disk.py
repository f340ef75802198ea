#!/usr/bin/env -S python3 -B
"""What following io_probe_recommend gains or loses on the made-up devices in devices/. As root, on an idle machine.

    advice_on_any_disk.py [CALLS [MODEL…]]     on the server that the environment names, which is started anew before each cold
                                               scan up to 16; run.sh starts one

A table has six columns: in random order, in order, jittered by 1.5 % of the table, nine in ten in order, blocks of order that are
shuffled, and late events that are read from new to old. COLUMNS names some of them. The model `disk` is the server's own. Ranges of each are read by each kind of scan, cold and warm. Then io_probe_recommend is called CALLS times (7), its statements are
run, and EXPLAIN tells which scans the planner now picks. Lines have the regret, which is the time of the pick over that of the best
scan: geometric means cold of each column and of all, warm of all; and the time of the picks over that of the picks under the
defaults, cold and warm; first under the defaults, then after each call, with what was advised. Once at each readahead of
READAHEAD_KB (128 8192). A scan that takes LONGEST seconds (20) is ended and counts as that long.
"""

import contextlib
import itertools
import math
import os
import statistics
import sys
import time

import made_up
from commands import give_up, server_version
from lib import VERSION, Failure, Session, call, restart_server, segment_file
from storage import create_tablespace

READAHEADS_KB = [int(kb) for kb in os.environ.get("READAHEAD_KB", "128 8192").split()]
LONGEST = float(os.environ.get("LONGEST", "20"))
WARM_TIMES = 5
MODELS = ["hdd", "gp3", "net"]
MIB = 1 << 20
ROWS = 1_500_000
# Rows of 1.5 % of the table.
NEAR = ROWS * 15 // 1000
# Rows of a block of order.
ORDERLY = 5000
SHUFFLED = f"((g / {ORDERLY})::bigint * 7919 % {ROWS // ORDERLY} * {ORDERLY} + g % {ORDERLY})"
COLUMNS = {
    "scattered": f"(g::bigint * 7919) % {ROWS}",
    "ordered": "g",
    "jittered": f"g + abs(hashint4(g)) % {NEAR}",
    "nine_in_10": f"CASE WHEN abs(hashint4(g)) % 10 = 0 THEN (g::bigint * 7919) % {ROWS} ELSE g END",
    "shuffled": SHUFFLED,
    # An event is seen some time after it took place: after most in a moment, after a few much later.
    "late": f"{ROWS} - g - (-ln((abs(hashint4(g)::bigint) % 10000 + 1) / 10001.0) * {NEAR / 3})::int",
}
COLUMNS = {name: COLUMNS[name] for name in os.environ.get("COLUMNS", " ".join(COLUMNS)).split()}
SHARES = [0.002, 0.02, 0.2]
WAYS = {"Seq Scan": "seqscan", "Index Scan": "indexscan", "Bitmap Heap Scan": "bitmapscan"}
SETTINGS = "SET max_parallel_workers_per_gather = 0; SET jit = off; SET client_min_messages = warning"
APPLIED = ["random_page_cost", "effective_io_concurrency", "correlation"]


class Table:
    """The table, and how long its queries take by each scan."""

    def __init__(self, session, place):
        self.session = session
        self.times, self.by_default = {}, {}
        session.run(f"CREATE TABLE probed {place} AS SELECT {', '.join(f'{of} AS {name}' for name, of in COLUMNS.items())}, "
                    f"repeat('x', 150) AS filler FROM generate_series(1, {ROWS}) g")  # fmt: skip
        for name in COLUMNS:
            session.run(f"CREATE INDEX probed_{name} ON probed ({name}) {place}")
        session.run(f"VACUUM ANALYZE probed; CHECKPOINT; {SETTINGS}")

    def queries(self):
        for name, share in itertools.product(COLUMNS, SHARES):
            first = ROWS // 3
            yield name, share, f"SELECT count(filler) FROM probed WHERE {name} BETWEEN {first} AND {first + int(ROWS * share)}"

    def evict(self):
        if VERSION < 17:
            self.session.close()
            restart_server()
            self.session = Session()
            self.session.run(SETTINGS)
        for name in ["probed", *(f"probed_{name}" for name in COLUMNS)]:
            self.session.run(f"SELECT io_probe_evict('{name}')")

    def warm_up(self):
        """Brings all files into the OS cache."""
        for name in ["probed", *(f"probed_{name}" for name in COLUMNS)]:
            with open(segment_file(self.session, name), "rb") as file:
                while file.read(MIB):
                    pass

    def concurrency(self):
        return self.session.value("SELECT coalesce((SELECT substring(option FROM 'effective_io_concurrency=(.*)') FROM pg_tablespace, "
                                  "unnest(spcoptions) option WHERE spcname IN ('made_up', 'pg_default') AND option LIKE 'effective_io%'), "
                                  "current_setting('effective_io_concurrency'))")  # fmt: skip

    def seconds(self, query, scan, cold):
        """By this scan, under the concurrency in force: cold once, warm the median of WARM_TIMES."""
        concurrency = self.concurrency() if scan == "Bitmap Heap Scan" else ""
        key = query, scan, cold, concurrency
        if key not in self.times:
            if cold:
                self.evict()
            else:
                self.warm_up()
            off = "".join(f"SET enable_{way} = {'on' if kind == scan else 'off'};" for kind, way in WAYS.items())
            self.session.run(f"{off} SET enable_indexonlyscan = off; SET statement_timeout = '{LONGEST} s'")
            self.times[key] = statistics.median(self.timed(query) for _ in range(1 if cold else WARM_TIMES))
            self.session.run(f"RESET ALL; {SETTINGS}")
        return self.times[key]

    def timed(self, query):
        began = time.monotonic()
        try:
            self.session.run(query)
        except Failure as failure:
            assert failure.sqlstate == "57014", failure
        return time.monotonic() - began

    def pick(self, query):
        lines = self.session.run(f"EXPLAIN (COSTS OFF) {query}")
        return next(scan for line in lines for scan in WAYS if scan in line and "Bitmap Index" not in line)

    def regrets(self, cold):
        """Of each query the column, and the planner's pick: over the best scan, and over the pick under the defaults."""
        found = []
        for name, _, query in self.queries():
            known = {scan: self.seconds(query, scan, cold) for scan in WAYS}
            best = min(seconds for (of_query, _, is_cold, _), seconds in self.times.items() if (of_query, is_cold) == (query, cold))
            picked = known[self.pick(query)]
            found.append((name, picked / best, picked / self.by_default.setdefault((query, cold), picked)))
        return found

    def line(self, call_name, advice):
        cold, warm = self.regrets(True), self.regrets(False)
        mean = lambda values: math.exp(statistics.fmean(map(math.log, values)))
        means = [mean([regret for name, regret, _ in cold if name == column]) for column in COLUMNS]
        means += [mean([regret for _, regret, _ in found]) for found in [cold, warm]]
        means += [mean([ratio for *_, ratio in found]) for found in [cold, warm]]
        print(f"{call_name:<9}" + "".join(f"{value:11.2f}" for value in means) + f"  {advice}", flush=True)


def apply(session, statements):
    for statement in statements:
        session.run(statement)
    session.run("SELECT pg_reload_conf(), pg_sleep(0.5)")


def follow(session):
    """Runs what is advised. Returns that in words, and what takes it back."""
    rows = session.rows(f"SELECT * FROM {call('recommend_full', 'probed', cold=True)}")
    rows = [row for row in rows if row["setting"] in APPLIED]
    apply(session, [row["statement"] for row in rows if row["statement"]])
    said = [f"{row['name'] or ''} {row['setting']} {row['recommended'] if row['statement'] else 'keep' if row['recommended'] else row['doubt']}".strip()
            for row in rows if row["statement"] or not row["recommended"]]  # fmt: skip
    return ", ".join(said) or "keep all", [row["undo"] for row in rows if row["statement"]]


def measure(session, place, made, models, calls):
    table = Table(session, place)
    for model in models:
        for readahead_kb in READAHEADS_KB if made else ["its own"]:
            table.times, table.by_default = {}, {}
            with contextlib.ExitStack() as stack:
                if made:
                    made.readahead(readahead_kb)
                    stack.enter_context(made.meanwhile(model))
                names = [*COLUMNS, "cold", "warm", "÷ d. cold", "÷ d. warm"]
                print(f"{model}, {readahead_kb} kB\n{'':<9}" + "".join(f"{name:>11}" for name in names) + "  advice", flush=True)
                table.line("defaults", "")
                for number in range(1, calls + 1):
                    advice, undo = follow(table.session)
                    table.line(f"call {number}", advice)
                    apply(table.session, undo)


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    models = sys.argv[2:] or MODELS
    print(f"PostgreSQL {server_version()}, {calls} calls")
    with contextlib.ExitStack() as stack, Session() as session:
        made = None
        if models != ["disk"]:
            if why := made_up.missing():
                give_up(why)
            made = stack.enter_context(made_up.device())
        try:
            measure(session, create_tablespace(session, "made_up", made.mount_point) if made else "", made, models, calls)
        finally:
            with Session() as last:
                last.run("DROP TABLE IF EXISTS probed")
                last.run("DROP TABLESPACE IF EXISTS made_up")


if __name__ == "__main__":
    main()
