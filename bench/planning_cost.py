#!/usr/bin/env -S python3 -B
"""What the library costs where it is loaded and nothing is kept: processor time of planning, with it and without it.

    planning_cost.py [--pairs N]      on the server that the environment names; planning_cost.sh starts one

Two sessions take turns: one has loaded the library, the other has not. In each turn both plan the same query (EXPLAIN)
for some tenths of a second; which one begins alternates. The figure is the median of the ratios of the processor times
that /proc shows of the two processes, and its 95 % interval.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))

from arithmetic import Median
from lib import Session

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
    """Nanoseconds of planning it so many times."""
    before = processor_ns(session.pid)
    session.run(f"DO $$ BEGIN FOR i IN 1..{times} LOOP EXECUTE 'EXPLAIN {query}'; END LOOP; END $$")
    return processor_ns(session.pid) - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=31)
    told = parser.parse_args()
    with Session() as control:
        control.run("SET client_min_messages = error")
        for n in range(10):
            control.run(f"""CREATE TABLE joined_{n} AS SELECT i AS id, i % 1000 AS next FROM generate_series(1, 10000) AS i;
                CREATE INDEX ON joined_{n} (id); CREATE INDEX ON joined_{n} (next)""")
        control.run("""CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
            INSERT INTO pgbench_accounts SELECT i, 1, 0, '' FROM generate_series(1, 100000) AS i; VACUUM ANALYZE""")
    with Session() as loaded, Session() as plain:
        loaded.run("LOAD 'pg_io_probe'")
        for session in (loaded, plain):
            session.run("SET join_collapse_limit = 10; SET geqo = off")
        print("| query | with the library, times | 1 % |\n|---|---|---|")
        for name, (query, times) in QUERIES.items():
            for session in (loaded, plain):
                cost(session, query, times)
            ratios = []
            for pair in range(told.pairs):
                of = {session: cost(session, query, times) for session in ((loaded, plain) if pair % 2 else (plain, loaded))}
                ratios.append(of[loaded] / of[plain])
            found = Median(ratios)
            print(f"| {name} | {found} | {found.verdict(0.01)} |")


if __name__ == "__main__":
    main()
