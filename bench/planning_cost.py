#!/usr/bin/env -S python3 -B
"""What the library costs where it is loaded and no correlation is stored: processor time of planning, with it and without.

    planning_cost.py [--pairs N] [--neither]
                                      on the server that the environment names; run.sh starts one

No two sessions are equally fast, so each pair is two new ones: one loads the library, the other does not. They plan the
same query (EXPLAIN) for some tenths of a second, TURNS times in turn. Of each session the fastest turn counts, by the
processor time that /proc shows of its process. The figure is the median of the pairs' ratios, and its 95 % interval. With
--neither no session loads the library: what then differs is the error.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))

from arithmetic import Median
from lib import Session

TURNS = 5
QUERIES = {
    "pgbench, select": ("SELECT abalance FROM pgbench_accounts WHERE aid = 4711", 4000),
    "pgbench, update": ("UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = 4711", 4000),
    "join of ten tables": (
        "SELECT count(*) FROM " + ", ".join(f"joined_{n}" for n in range(10)) + " WHERE "
        + " AND ".join(f"joined_{n}.id = joined_{n + 1}.next" for n in range(9)),
        6,
    ),
}  # fmt: skip


def processor_ns(pid):
    """Nanoseconds that a process has run."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def cost(session, query, times):
    """Nanoseconds of planning the query `times` times."""
    before = processor_ns(session.pid)
    session.run(f"DO $$ BEGIN FOR i IN 1..{times} LOOP EXECUTE 'EXPLAIN {query}'; END LOOP; END $$")
    return processor_ns(session.pid) - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=31)
    parser.add_argument("--neither", action="store_true")
    told = parser.parse_args()
    with Session() as control:
        control.run("SET client_min_messages = error")
        for n in range(10):
            control.run(f"""CREATE TABLE joined_{n} AS SELECT i AS id, i % 1000 AS next FROM generate_series(1, 10000) AS i;
                CREATE INDEX ON joined_{n} (id); CREATE INDEX ON joined_{n} (next)""")
        control.run("""CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
            INSERT INTO pgbench_accounts SELECT i, 1, 0, '' FROM generate_series(1, 100000) AS i; VACUUM ANALYZE""")
    ratios = {name: [] for name in QUERIES}
    for pair in range(told.pairs):
        with Session() as loaded, Session() as plain:
            if not told.neither:
                loaded.run("LOAD 'pg_io_probe'")
            sides = (loaded, plain) if pair % 2 else (plain, loaded)
            for session in sides:
                session.run("SET join_collapse_limit = 10; SET geqo = off")
            for name, (query, times) in QUERIES.items():
                took = {session: [] for session in sides}
                # The first turn fills the caches of a session, so that it is never the fastest.
                for turn in range(TURNS + 1):
                    for session in sides if turn % 2 else sides[::-1]:
                        took[session].append(cost(session, query, times))
                ratios[name].append(min(took[loaded]) / min(took[plain]))
    print("| query | with the library, times | 1 % |\n|---|---|---|")
    for name, all_ratios in ratios.items():
        found = Median(all_ratios)
        print(f"| {name} | {found} | {found.verdict(0.01)} |")


if __name__ == "__main__":
    main()
