#!/usr/bin/env -S python3 -B
"""io_probe_mix cell by cell, and io_probe_write, beside fio on the same files. As root, on an idle machine.

    mix_and_fio.py [RUNS [MODEL…]]     on the server that the environment names; run.sh starts one
    mix_and_fio.py sustain             io_probe_sustain on volumes whose caps and buckets are known

The model `disk` is the server's own; others are made-up devices (devices/README.md). Ours and fio take turns, RUNS times
(3). A cell of the mix lasts SECONDS_EACH (2): fio has two jobs with the rates that ours was to send (rate_iops, evenly
spaced, by io_uring), which read the table and write a file beside it. A line is about one figure, over the cells that ours
carried: the median of all ratios ours / fio, and the least and greatest median of a cell. fio counts a latency from when it
sends a request, ours from when it was due if it had to wait for others.
"""

import collections
import contextlib
import json
import os
import statistics
import sys

import made_up
from commands import give_up, rows, run, server_version
from lib import Session, call, dense_table, segment_file
from storage import create_tablespace

BLOCK, BLOCKS, LONG = 8192, 80000, 256 << 10
SECONDS = float(os.environ.get("SECONDS_EACH", "2"))
SHARES = [20, 50, 80]
DEPTH = 16
MODELS = ["disk", "gp3", "gp3 penalty_ms=5 penalty_for_ms=100"]
WRITES = {("random", 1): ("randwrite", BLOCK), ("random", DEPTH): ("randwrite", BLOCK), ("sequential", DEPTH): ("write", LONG)}
# Models, how long, and what is known of each.
BUCKETS = [
    ("burst iops=3000 credits=27000 base=300", 30, {"iops": 300, "burst_iops": 3000, "burst_s": 10, "bucket": 27000}),
    ("burst iops=1000 credits=9000 base=200", 30, {"iops": 200, "burst_iops": 1000, "burst_s": 11.25, "bucket": 9000}),
    ("gp3", 20, {}),
]
LINE = "{:<38} {:<22} {:>6} {:>14} {:>6}"


def fio(*jobs):
    """What came of jobs that run at once; of each its options."""
    runtime = f"--runtime={SECONDS * 1000:.0f}ms"
    options = ["fio", "--direct=1", "--ioengine=io_uring", "--time_based", runtime, "--ramp_time=200ms", "--lat_percentiles=1"]
    options += ["--randrepeat=0", "--norandommap=1", "--output-format=json"]
    for number, job in enumerate(jobs):
        options += [f"--name=job{number}", *job]
    return json.loads(run(options, as_server=True))["jobs"]


def figures(side):
    """Of a job's reads or writes: requests a second, median and 99th percentile of the latency in us."""
    percentile = side["lat_ns"]["percentile"]
    return side["iops"], percentile["50.000000"] / 1000, percentile["99.000000"] / 1000


class Ratios:
    """Ours ÷ fio's, by figure and cell."""

    def __init__(self):
        self.all = collections.defaultdict(lambda: collections.defaultdict(list))

    def add(self, names, cell, ours, theirs):
        for name, our, their in zip(names, ours, theirs):
            if our and their:
                self.all[name][cell].append(our / their)

    def report(self, model):
        for name, cells in self.all.items():
            medians = [statistics.median(ratios) for ratios in cells.values()]
            whole = statistics.median(ratio for ratios in cells.values() for ratio in ratios)
            print(LINE.format(model, name, f"{whole:.2f}", f"{min(medians):.2f} to {max(medians):.2f}", len(cells)), flush=True)


def one_row_each(probe, relation, **arguments):
    return rows(f"SELECT * FROM {call(probe, relation, **arguments)}")


def mix(ratios, table, scratch):
    cells = one_row_each("mix", "probed", shares=SHARES, depth=DEPTH, duration=f"{(len(SHARES) ** 2 + 3) * SECONDS:g} s")
    for row in cells:
        if row["load"] != "cell" or not row["carried"]:
            continue
        common = [f"--bs={BLOCK}", f"--iodepth={DEPTH}"]
        sent = [f"--rate_iops={row[name]:.0f}" for name in ["sent_reads_s", "sent_writes_s"]]
        reads, writes = fio([f"--filename={table}", "--rw=randread", sent[0], *common],
                            [f"--filename={scratch}", "--rw=randwrite", sent[1], *common])  # fmt: skip
        cell = row["read_pct"], row["write_pct"]
        ratios.add(["reads/s", "read p50", "read p99"], cell,
                   [row["reads_s"], row["r_p50_us"], row["r_p99_us"]], figures(reads["read"]))  # fmt: skip
        ratios.add(["writes/s", "write p50", "write p99"], cell,
                   [row["writes_s"], row["w_p50_us"], row["w_p99_us"]], figures(writes["write"]))  # fmt: skip


def write(ratios, spcname, scratch):
    arguments = {"patterns": ["random", "sequential"], "depth": DEPTH, "duration": f"{6 * SECONDS:g} s"}
    for row in one_row_each("write", None, spcname=spcname, **arguments):
        way = row["pattern"], row["depth"]
        pattern, size = WRITES[way]
        (job,) = fio([f"--filename={scratch}", f"--rw={pattern}", f"--bs={size}", f"--iodepth={row['depth']}"])
        ratios.add(["{} writes/s at {}".format(*way)], None, [row["writes_s"]], [figures(job["write"])[0]])


@contextlib.contextmanager
def place(session, model):
    """Meanwhile there are a table `probed` and a file beside it on such a device: the tablespace, and both files."""
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(made_up.device()) if model != "disk" else None
        clause = create_tablespace(session, "made_up", made.mount_point) if made else ""
        if made:
            stack.callback(session.run, "DROP TABLESPACE made_up")
        dense_table(session, "probed", BLOCKS, clause)
        stack.callback(session.run, "DROP TABLE probed")
        table = segment_file(session, "probed")
        scratch = os.path.join(os.path.dirname(table), "written_by_fio")
        stack.callback(lambda: os.path.exists(scratch) and os.remove(scratch))
        fill = ["--rw=write", "--bs=1M", "--size=64M", "--end_fsync=1"]
        run(["fio", "--name=fill", f"--filename={scratch}", *fill], as_server=True)
        if made:
            stack.enter_context(made.meanwhile(model))
        yield "made_up" if made else "pg_default", table, scratch


def sustain(session):
    """A line for each pattern and volume: what was found, by what is known."""
    for model, seconds, known in BUCKETS:
        with place(session, model):
            patterns = ["random"] if "bucket" in known else ["random", "sequential"]
            for row in one_row_each("sustain", "probed", patterns=patterns, depth=DEPTH, duration=f"{seconds} s"):
                if row["slice"] is None:
                    found = {name: f"{row[name]:.5g} of {value}" for name, value in known.items() if row[name]}
                    print(model, row["pattern"], row["verdict"], found, row["doubt"], flush=True)


def main():
    if sys.argv[1:] == ["sustain"]:
        with Session() as session:
            session.run("SET client_min_messages = warning")
            return sustain(session)
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    models = sys.argv[2:] or MODELS
    if models != ["disk"] and (why := made_up.missing()):
        give_up(why)
    print(f"PostgreSQL {server_version()}, {runs} runs")
    print(LINE.format("model", "figure", "ratio", "least to most", "cells"))
    with Session() as session:
        session.run("SET client_min_messages = warning")
        for model in models:
            ratios = Ratios()
            with place(session, model) as (spcname, table, scratch):
                for _ in range(runs):
                    mix(ratios, table, scratch)
                    write(ratios, spcname, scratch)
            ratios.report(model)


if __name__ == "__main__":
    main()
