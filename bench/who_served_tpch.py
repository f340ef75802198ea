#!/usr/bin/env -S python3 -B
"""Who served the reads of the 22 queries of TPC-H, as io_probe_explain says, beside what their device has counted.

    who_served_tpch.py DEVICE [SCALE]
                                on the server that the environment names, whose tablespace `experiment` is on that block
                                device (loop0, say), as nothing else is; run.sh starts one. At SCALE 0.3, the default, tables
                                and indexes take 481 MiB; below 0.1, Q18 finds nothing

Tables and queries are in tpch/. Each query runs by io_probe_explain(…, execute => true), first without and then with 2
parallel workers; on PostgreSQL 18 with each of METHODS (worker sync io_uring) as io_method. It runs `cold`, right after a
restart, when the OS cache holds nothing of the tablespace, and once more at once, `warm`. Temporary files and catalogs are not
on that device. EXPLAIN comes first: what the planner reads, the ends of indexes, is no node's. A line has of either run
    ms              what the query took
    waited          how much of it was waiting for the device, as the NOTICE says
    verdict         of the row of the sums
    buffers         MiB found in shared buffers; what is found again and again counts each time
    OS, device      MiB from the OS cache and from the device
    temp            MiB of temporary files, read and written
and of the cold run
    counted         MiB that the device itself has counted, whoever read them
    saved           by how many ms the warm run was shorter: what it would have gained if all had been cached
A query with * had parallel workers. After each table come the deviations of `device` from `counted`. It is a failure if the
nodes do not sum up to the row of the sums, if the sum is further than 2 % and 0.1 MiB from what was counted, or if a query
finds nothing.
"""

import itertools
import json
import os
import re
import statistics
import sys
from dataclasses import dataclass

from commands import give_up, server_version

MIB, BLOCK = 1 << 20, 8192
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tpch")
METHODS = os.environ.get("METHODS", "worker sync io_uring").split()
WORKERS = [int(number) for number in os.environ.get("WORKERS", "0 2").split()]
SHARE, MORE = 0.02, 0.1
# Deviations in percent are of queries that had so many MiB fetched.
LEAST = 4


def queries_of(text, scale):
    """The queries of a file, by their names."""
    parts = re.split(r"^-- (Q\d+)\n", text.replace(":scale", str(scale)), flags=re.MULTILINE)[1:]
    return {name: query.strip() for name, query in zip(parts[::2], parts[1::2])}


def waited_of(lines):
    """How many ms the NOTICE says were waited for the device; None if it does not."""
    found = re.search(r"waited ([\d,]+) of", "\n".join(lines))
    return found and int(found.group(1).replace(",", ""))


@dataclass
class Run:
    """What was said of a query that was executed, and what the device has counted meanwhile, in MiB."""

    nodes: list
    sums: dict
    waited: int
    planned: float
    counted: float

    @property
    def ms(self):
        return self.sums["total_ms"]

    @property
    def verdict(self):
        return self.sums["node_type"]

    @property
    def is_parallel(self):
        return any("Gather" in node["node_type"] for node in self.nodes)

    @property
    def beyond(self):
        """MiB that were said to come from the device beyond what it has counted."""
        return self.sums["device_mib"] - self.counted

    def failures(self):
        """What is wrong with it."""
        of_nodes = sum(node["device_mib"] for node in self.nodes)
        if abs(of_nodes - self.sums["device_mib"]) > 0.01 + 1e-4 * of_nodes:
            yield f"its nodes had {of_nodes:.2f} MiB fetched, in the row of the sums are {self.sums['device_mib']:.2f}"
        if abs(self.beyond) > SHARE * self.counted + MORE:
            yield f"device_mib is {self.sums['device_mib']:.2f}, the device counted {self.counted:.2f}"
        if not self.nodes[0]["actual_rows"]:
            yield "it found nothing"

    def cells(self):
        """Columns of the table."""
        sums = self.sums
        waited = "-" if self.waited is None else self.waited
        buffers = sums["shared_blks_hit"] * BLOCK / MIB
        amounts = [buffers, sums["os_mib"], sums["device_mib"], sums["temp_mib"]]
        return [f"{self.ms:.0f}", waited, self.verdict, *(amount_of(amount) for amount in amounts)]


def amount_of(mib):
    """An amount with two significant digits, or all before the point."""
    if mib is None or mib < 0.005:
        return "-" if mib is None else "0"
    return f"{mib:.{0 if mib >= 9.95 else 1 if mib >= 0.95 else 2}f}"


class Bench:
    """Tables of this scale, and a device that counts."""

    def __init__(self, device, scale):
        from lib import Session

        self.device, self.scale = device, scale
        with open(os.path.join(FOLDER, "queries.sql"), encoding="utf-8") as file:
            self.queries = queries_of(file.read(), scale)
        with Session() as session:
            session.run("SET default_tablespace = experiment")
            os.setpriority(os.PRIO_PROCESS, session.pid, 10)
            session.start(f"\\set scale {scale}\n\\i {os.path.join(FOLDER, 'tables.sql')}\n")
            session.finish(3600)
            oid = "SELECT oid FROM pg_tablespace WHERE spcname = 'experiment'"
            self.folder = session.value(f"SELECT pg_tablespace_location(({oid}))")
            size = session.value(f"SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE reltablespace = ({oid})")
        print(f"scale {scale}: {size / MIB:,.0f} MiB of tables and indexes, read_ahead_kb {self.read_ahead_kb()}", flush=True)

    def read_ahead_kb(self):
        """The readahead window of the device."""
        with open(f"/sys/class/block/{self.device}/queue/read_ahead_kb", encoding="ascii") as file:
            return int(file.read())

    def make_cold(self):
        """Neither shared buffers nor the OS cache hold anything of the tables."""
        from lib import restart_server
        from storage import cache_only, fincore

        restart_server()
        files = [os.path.join(folder, name) for folder, _, names in os.walk(self.folder) for name in names]
        for path in files:
            cache_only(path, [])
        held = sum(map(fincore, files))
        if held:
            give_up(f"the OS cache still holds {held} bytes of {self.folder}")

    def run(self, query, workers):
        """Runs a query, whatever is cached."""
        from lib import Session, rows_of
        from storage import device_counters

        with Session() as session:
            session.run(f"SET max_parallel_workers_per_gather = {workers}; SET client_min_messages = warning")
            # The first call of a session loads what the extension needs.
            session.run(rows_of("explain", query="SELECT 1", execute=True))
            session.run("SET client_min_messages = notice")
            counts = [device_counters([self.device])["bytes"] / MIB]
            session.run(f"EXPLAIN {query}")
            counts.append(device_counters([self.device])["bytes"] / MIB)
            session.start_rows(rows_of("explain", query=query, execute=True))
            lines = session.finish(1800)
            counts.append(device_counters([self.device])["bytes"] / MIB)
        *nodes, sums = [json.loads(line) for line in lines if line.startswith("{")]
        planned, counted = (after - before for before, after in itertools.pairwise(counts))
        return Run(nodes, sums, waited_of(lines), planned, counted)

    def table(self, workers):
        """Prints a table. Returns the failures."""
        beside = ["ms", "waited", "verdict", "buffers", "OS", "device", "temp"]
        header = ["", *beside, "counted", "saved", *(f"{name}, warm" for name in beside)]
        print(f"\n| {' | '.join(header)} |\n|{'---|' * len(header)}", flush=True)
        failures, colds, warms = [], [], []
        for name, query in self.queries.items():
            self.make_cold()
            cold, warm = self.run(query, workers), self.run(query, workers)
            mark = "*" if cold.is_parallel else ""
            cells = [name + mark, *cold.cells(), amount_of(cold.counted), f"{cold.ms - warm.ms:.0f}", *warm.cells()]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
            for state, one in [("cold", cold), ("warm", warm)]:
                failures += [f"{name}, {state}: {failure}" for failure in one.failures()]
            colds.append(cold)
            warms.append(warm)
        print(f"\n{sentence(colds, warms)}")
        return failures


def sentence(colds, warms):
    """How far the sums were from what the device has counted."""
    percents = [100 * abs(cold.beyond) / cold.counted for cold in colds if cold.counted >= LEAST] or [0]
    furthest = max(colds + warms, key=lambda run: abs(run.beyond))
    sums, counted = sum(cold.sums["device_mib"] for cold in colds), sum(cold.counted for cold in colds)
    return (
        f"cold: device / counted deviates by {statistics.median(percents):.2f} % (median), {max(percents):.2f} % (most); "
        f"all queries together {sums:.1f} and {counted:.1f} MiB, and {sum(cold.planned for cold in colds):.1f} of the planner; "
        f"furthest of all runs {furthest.beyond:+.3f} MiB of {furthest.counted:.1f}; "
        f"warm: {sum(warm.counted for warm in warms):.1f} MiB counted, "
        f"{sum(warm.verdict == 'not the disk' for warm in warms)} of {len(warms)} not the disk"
    )


def main():
    from lib import VERSION, server_with

    if len(sys.argv) not in [2, 3] or not re.fullmatch(r"\d*\.?\d+", (sys.argv[2:] or ["1"])[0]):
        sys.exit("usage: who_served_tpch.py DEVICE [SCALE]")
    bench = Bench(sys.argv[1], (sys.argv[2:] or ["0.3"])[0])
    failures = []
    for method in METHODS if VERSION >= 18 else [None]:
        with server_with(**({"io_method": method} if method else {})):
            for workers in WORKERS:
                how = ", ".join(filter(None, [server_version(), method, f"{workers} parallel workers"]))
                print(f"\n{how}")
                failures += [f"{how}, {failure}" for failure in bench.table(workers)]
    print("\n" + "\n".join(failures or ["no failures"]))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
