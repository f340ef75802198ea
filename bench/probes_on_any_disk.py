#!/usr/bin/env -S python3 -B
"""What the probes say of the made-up devices in devices/, beside fio on the same file. As root, on an idle machine.

    probes_on_any_disk.py [RUNS [MODEL…]]     on the server that the environment names; run.sh starts one

A probe and fio read (or write and sync) in turn, RUNS times (7), each for SECONDS_EACH (3), on each MODEL, once at each readahead of
READAHEAD_KB (128 8192). The model `limited` is a fast device behind a control group's limit, which holds fio, too. Lines have the
medians of fio's and of our figures, the median of ours / fio's, and the doubts of ours: in how many runs each.
"""

import collections
import contextlib
import json
import os
import statistics
import sys
from dataclasses import dataclass
from typing import Callable

import cgroups
import made_up
from commands import give_up, rows, run, server_version
from lib import Session, call, dense_table, segment_file, server_processes
from storage import create_tablespace

MIB, BLOCK, BLOCKS = 1 << 20, 8192, 80000
SECONDS = float(os.environ.get("SECONDS_EACH", "3"))
READAHEADS_KB = [int(kb) for kb in os.environ.get("READAHEAD_KB", "128 8192").split()]
MODELS = ["hdd", "gp3", "burst credits=1", "net", "limited"]
DURATION = f"{SECONDS:g} s"


def ours(probe, relation="probed", chosen=lambda row: True, **arguments):
    """The one row of a probe that is chosen."""
    (row,) = [row for row in rows(f"SELECT * FROM {call(probe, relation, **arguments)}") if chosen(row)]
    return row


def fio(file, pattern, *options, size=BLOCK):
    """Operations a second, without the first half of a second: a device that was idle may have something in store."""
    told = run(["fio", "--name=judge", f"--filename={file}", f"--rw={pattern}", f"--bs={size}", "--norandommap=1", "--randrepeat=0",
                "--time_based", f"--runtime={SECONDS * 1000:.0f}ms", "--ramp_time=500ms", "--output-format=json", *options],
               as_server=True)  # fmt: skip
    (job,) = json.loads(told)["jobs"]
    return job["read"]["iops"] + job["write"]["iops"]


@dataclass(frozen=True)
class Figure:
    """Something that a probe measures, and how to get it: ours with the doubt, and fio's of this file."""

    name: str
    ours: Callable
    theirs: Callable

    def pair(self, file):
        row, value = self.ours()
        return value, self.theirs(file), row["doubt"]


def random():
    row = ours("random", paths=["direct"], duration=DURATION)
    return row, row["lat_us"]


def depth(count):
    row = ours("depth", depths=[count], duration=DURATION)
    return row, row["iops"]


def scan(path):
    row = ours("seqscan", paths=[path], cold=True, duration=DURATION)
    return row, row["mib_s"]


def readahead():
    # The row of the kernel itself, with the window in force.
    row = ours("readahead", windows_kb=[128], duration=f"{2 * SECONDS:g} s", chosen=lambda row: row["mode"] == "kernel")
    return row, row["mib_s"]


def page_cost(pattern):
    # Both times, and one with gaps, share the duration.
    row = ours("page_cost", densities=[0.5], concurrencies=[16], duration=f"{3 * SECONDS:g} s", cold=True,
               chosen=lambda row: (row["tier"], row["pattern"]) == ("device", pattern))  # fmt: skip
    return row, row["block_us"]


def sync():
    row = ours("sync", None, spcname="made_up", sections=["one_write"], duration=f"{4 * SECONDS:g} s",
               chosen=lambda row: row["method"] == "fdatasync")  # fmt: skip
    return row, row["ops_s"]


def mib_of_scan(file):
    """As the kernel reads ahead for a server: blocks in order, through the OS cache. fio's own hint would double the window."""
    return fio(file, "read", "--ioengine=psync", "--fadvise_hint=0") / MIB * BLOCK


def syncs(file):
    """Of a file beside it, which is there already."""
    judged = f"{file}.judged"
    try:
        return fio(judged, "write", "--size=64M", "--overwrite=1", "--fdatasync=1")
    finally:
        os.remove(judged)


FIGURES = [
    Figure("random, us", random, lambda file: 1e6 / fio(file, "randread", "--direct=1")),
    Figure("depth 8, IOPS", lambda: depth(8), lambda file: fio(file, "randread", "--direct=1", "--ioengine=io_uring", "--iodepth=8")),
    Figure("depth 32, IOPS", lambda: depth(32), lambda file: fio(file, "randread", "--direct=1", "--ioengine=io_uring", "--iodepth=32")),
    Figure("seqscan direct, MiB/s", lambda: scan("direct"),
           lambda file: fio(file, "read", "--direct=1", "--ioengine=io_uring", "--iodepth=16", size=MIB // 4) / 4),
    Figure("seqscan os, MiB/s", lambda: scan("os"), mib_of_scan),
    Figure("readahead, MiB/s", readahead, mib_of_scan),
    Figure("page_cost sequential, us", lambda: page_cost("sequential"), lambda file: BLOCK / MIB * 1e6 / mib_of_scan(file)),
    Figure("page_cost random, us", lambda: page_cost("random"), lambda file: 1e6 / fio(file, "randread")),
    Figure("sync fdatasync, ops/s", sync, syncs),
]  # fmt: skip
LINE = "{:<16} {:>5} {:<25} {:>9} {:>9} {:>6} {:>13}  {}"


@contextlib.contextmanager
def on_model(made, model):
    """Meanwhile the device is such a one."""
    if model != "limited":
        with made.meanwhile(model):
            yield
        return
    with made.meanwhile("ssd"), cgroups.limited_somehow(made.block, read_iops=3000, read_bps=125 * MIB) as limit:
        if not limit:
            give_up("no control group limits requests here")
        with limit.on([os.getpid(), *server_processes()]):
            yield


def report(model, readahead_kb, figure, pairs):
    """A line."""
    known = [(our, their) for our, their, _ in pairs if our is not None]
    doubts = collections.Counter(doubt for *_, doubt in pairs if doubt)
    said = ", ".join(f"{doubt} {count}" for doubt, count in doubts.items())
    if not known:
        print(LINE.format(model, readahead_kb, figure.name, "", "", "", "", said), flush=True)
        return
    ratios = [our / their for our, their in known]
    medians = [f"{statistics.median(side):,.4g}" for side in zip(*known)]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(LINE.format(model, readahead_kb, figure.name, medians[1], medians[0], f"{statistics.median(ratios):.2f}", spread, said),
          flush=True)  # fmt: skip


def main():
    if why := made_up.missing():
        give_up(why)
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    models = sys.argv[2:] or MODELS
    print(f"PostgreSQL {server_version()}, {runs} runs of {SECONDS:g} s")
    print(LINE.format("model", "ra_kb", "figure", "fio", "ours", "ratio", "least to most", "doubts"))
    with made_up.device() as made, Session() as session:
        dense_table(session, "probed", BLOCKS, create_tablespace(session, "made_up", made.mount_point))
        file = segment_file(session, "probed")
        try:
            for model in models:
                for readahead_kb in READAHEADS_KB:
                    made.readahead(readahead_kb)
                    with on_model(made, model):
                        # All figures in turn, so that what is in store is used up before, and the same for each.
                        found = [[figure.pair(file) for figure in FIGURES] for _ in range(runs)]
                    for figure, pairs in zip(FIGURES, zip(*found)):
                        report(model, readahead_kb, figure, pairs)
        finally:
            session.run("DROP TABLE probed; DROP TABLESPACE made_up")


if __name__ == "__main__":
    main()
