#!/usr/bin/env -S python3 -B
"""Runs probes of all kinds, again and again, until SIGTERM; then prints how many calls of each there were and how they ended.

    prober.py READY     on the server that the environment names; creates the file READY when probes run

One session probes without a pause. Another probes now and then. There is one probe at a time, so each of the two is refused
while the other probes, or waits for it. A third looks around and evicts. They read tables of their own and catalogs that all
databases share, and write into whatever tablespaces there are at the moment. Exit status 1 means that a call failed in a
way that EXPECTED does not explain, or never succeeded.
"""

import os
import random
import re
import signal
import sys
import threading
import time
from collections import Counter, defaultdict

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))

from growth import VARIANTS, prepare  # noqa: E402
from lib import FUNCTIONS, PATHS, Failure, Session, call  # noqa: E402

TABLES = ["probed", "large", "large_id", "pg_database", "pg_shdepend", "pg_authid", "pg_shdepend_reference_index"]
# SQLSTATEs with which a probe beside others may fail.
EXPECTED = {
    "55006": "another probe runs",
    "42704": "the tablespace is gone meanwhile",
}


def probes():
    """Calls that probe, of which one runs at a time."""
    found = [*VARIANTS.items(), *examples(looking=False)]
    patient = {"options": {"wait": True}}
    for table in TABLES:
        found += [
            ("seqscan of shared", call("seqscan", table, paths=PATHS, cold=True, duration="3 s", **patient)),
            ("random of shared", call("random", table, paths=PATHS, cold=True, depth=8, duration="150 ms", **patient)),
        ]
    everything = {"cold": True, "writes": True, "duration": "300 ms"}
    found += [
        ("recommend everything", call("recommend", **everything)),
        ("page_cost of large", call("page_cost", "large", cold=True, duration="30 ms")),
        ("sync everything", call("sync", duration="120 ms")),
        ("record", call("record", "large", probe="seqscan", args={"cold": True, "duration": "1 s"})),
    ]
    return found


def examples(looking):
    """The examples of functions that only look, or of those that also do something."""
    return [(each.signature, each.example) for each in FUNCTIONS if (each.who != "owner") == looking]


def around():
    """Calls that may run beside a probe."""
    found = examples(looking=True)
    for table in TABLES:
        found += [("evict of shared", call("evict", table)), ("cache of shared", call("cache", table))]
    return found


class Prober(threading.Thread):
    """A session that probes."""

    def __init__(self, calls, over, seed, pause=0.0):
        super().__init__()
        self.calls, self.over, self.pause = calls, over, pause
        self.random = random.Random(seed)
        self.ended = defaultdict(Counter)
        self.unexpected = []

    def run(self):
        try:
            with Session() as session:
                # The suite counts on all parallel workers that there are.
                session.run("SET max_parallel_workers_per_gather = 0; SET pg_io_probe.scratch_reserve = '1MB'")
                while not self.over.is_set():
                    self.round(session)
        except Exception as failure:  # the session is lost
            self.unexpected.append(("session", str(failure)))

    def round(self, session):
        """Makes each call once, in random order."""
        calls = self.calls + self.in_tablespaces(session)
        self.random.shuffle(calls)
        for name, function in calls:
            if self.over.is_set():
                return
            session.run(f"SET pg_io_probe.engine = {'threads' if self.random.random() < 0.3 else 'auto'}")
            try:
                session.start(f"SELECT count(*) FROM {function}")
                said = "\n".join(session.finish(timeout=120))
                # io_probe_measure and _record only warn of what can't be measured.
                warned = re.search(r"^WARNING:  .*\n(?:DETAIL:  SQLSTATE is (\w{5}))?", said, re.MULTILINE)
                if warned and warned.group(1) not in EXPECTED:
                    self.unexpected.append((name, said))
                self.ended[name][f"{warned.group(1)} as a warning" if warned else "ok"] += 1
            except Failure as failure:
                self.ended[name][failure.sqlstate] += 1
                if failure.sqlstate not in EXPECTED:
                    self.unexpected.append((name, str(failure)))
                    if failure.sqlstate is None:
                        raise
            time.sleep(self.pause)

    def in_tablespaces(self, session):
        if not any("sync" in name for name, _ in self.calls):
            return []
        spaces = session.value("SELECT json_agg(spcname) FROM pg_tablespace WHERE spcname <> 'pg_global'")
        return [
            ("sync in any tablespace", call("sync", spcname=name, duration="14 ms", sections=["one_write"]))
            for name in spaces
        ]


def main():
    (ready,) = sys.argv[1:]
    with Session() as session:
        session.run("CREATE EXTENSION IF NOT EXISTS pg_io_probe")
        prepare(session)
        session.run("CREATE TABLE large AS SELECT g AS id, repeat(md5(g::text), 20) AS filler FROM generate_series(1, 100000) AS g")
        session.run("CREATE INDEX large_id ON large (id); VACUUM ANALYZE large; CHECKPOINT")
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    seed = random.randrange(1 << 32)
    probers = [
        Prober(probes(), over, seed),
        Prober(probes(), over, seed + 1, pause=0.2),
        Prober(around(), over, seed + 2, pause=0.02),
    ]
    for prober in probers:
        prober.start()
    started = time.monotonic()
    with open(ready, "w", encoding="utf-8"):
        pass
    while not over.wait(1) and any(prober.is_alive() for prober in probers):
        pass
    for prober in probers:
        prober.join()
    sys.exit(report(probers, time.monotonic() - started, seed))


def report(probers, seconds, seed):
    """Prints the table; did a call fail unexpectedly, or never succeed?"""
    ended = defaultdict(Counter)
    for prober in probers:
        for name, counts in prober.ended.items():
            ended[name].update(counts)
    total = Counter()
    for name, counts in sorted(ended.items()):
        print(f"{name:<40} {counts['ok']:>6} ok" + "".join(f", {n} × {code}" for code, n in sorted(counts.items()) if code != "ok"))
        total.update(counts)
    print(f"{sum(total.values())} calls in {seconds:.0f} s (seed {seed}):", ", ".join(f"{n} × {code}" for code, n in total.most_common()))
    unexpected = [each for prober in probers for each in prober.unexpected]
    for name, text in unexpected[:20]:
        print(f"UNEXPECTED: {name}: {text}")
    never = [name for name, counts in ended.items() if not counts["ok"]]
    if never:
        print("never succeeded:", ", ".join(never))
    return bool(unexpected or never)


if __name__ == "__main__":
    main()
