#!/usr/bin/env -S python3 -B
"""Does the map of io_probe_mix rank what pgbench then suffers? As root, on an idle machine.

    map_and_pgbench.py [ROUNDS [MODEL]]    on the server that the environment names; run.sh starts one

On a made-up device (`gp3`) pgbench reads single blocks of a table at random, RATE (900) a second, under six loads: with and
without a checkpoint of the blocks of another table, spread over some seconds, at checkpoint_flush_after 256kB and 0; and
each of these with and without somebody who copies files of that device, COPIED (40) MiB a second. Its 99th percentile is
that of its log, from when a transaction was due.

The map is that of io_probe_mix with `writing => 'sequential'`. The device's counters tell how many reads came in each tenth
of a second of a run, and how many MiB were written, or read by more than single blocks: both take bandwidth. The cell next
above says what one read in a hundred took then. The first second does not count. Of these
the value that is exceeded for a hundredth of the time is predicted for the run, or that its load is not carried. Lines have medians of ROUNDS (3), and the
ranks of both.
"""

import bisect
import math
import os
import statistics
import sys
import tempfile
import threading
import time

import made_up
from commands import give_up, rows, run, server_version
from lib import Session, call, dense_table, segment_file
from storage import create_tablespace

MIB = 1 << 20
BLOCK, BLOCKS, CHANGED = 8192, 60_000, 20_000
RATE = int(os.environ.get("RATE", "900"))
COPIED = int(os.environ.get("COPIED", "40"))
SECONDS, SLICE = 14, 0.1
SHARES = [0, 10, 25, 50, 75, 100]
# The least checkpoint_timeout; checkpoint_completion_target has it write for a third of that.
EVERY = 30
LOADS = {f"{'checkpoint, flush_after ' + flush if flush else 'no checkpoint'}{', copy beside' if copy else ''}": (flush, copy)
         for flush in [None, "256kB", "0"] for copy in [False, True]}  # fmt: skip
SCRIPT = f"""\\set block random(0, {BLOCKS - 1})
SELECT id FROM probed WHERE ctid = ('(' || :block || ',1)')::tid;
"""
LINE = "{:<42} {:>12} {:>14} {:>6} {:>6}"


class Counters:
    """How many reads came to a device, and how many MiB were moved beside their single blocks, in each slice of the time."""

    def __init__(self, block):
        self.path = f"/sys/class/block/{os.path.basename(block)}/stat"
        self.slices, self.is_over = [], threading.Event()

    def look(self):
        with open(self.path, encoding="ascii") as file:
            numbers = file.read().split()
        reads, read, written = int(numbers[0]), int(numbers[2]) * 512, int(numbers[6]) * 512
        return time.monotonic(), reads, (written + read - reads * BLOCK) / MIB

    def watch(self):
        before = self.look()
        while not self.is_over.wait(SLICE):
            now = self.look()
            seconds = now[0] - before[0]
            self.slices.append([(after - earlier) / seconds for earlier, after in zip(before[1:], now[1:])])
            before = now

    def __enter__(self):
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def copy(paths, until):
    """Reads files in order, as a backup does, COPIED MiB a second."""
    began, read = time.monotonic(), 0
    while not until.is_set():
        for path in paths:
            with open(path, "rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                while not until.is_set() and (piece := file.read(128 << 10)):
                    read += len(piece)
                    until.wait(max(0, began + read / MIB / COPIED - time.monotonic()))


def pgbench():
    """The 99th percentile of its transactions, in us."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        script = os.path.join(folder, "script")
        with open(script, "w", encoding="ascii") as file:
            file.write(SCRIPT)
        log = os.path.join(folder, "log")
        run(["pgbench", "-nM", "prepared", "-c", "16", "-j", "2", "-T", str(SECONDS), "-R", str(RATE), "-f", script,
             "-l", "--log-prefix", log])  # fmt: skip
        logged = [line.split() for name in os.listdir(folder) if name.startswith("log")
                  for line in open(os.path.join(folder, name), encoding="ascii")]  # fmt: skip
    ended = [(int(line[4]) + int(line[5]) / 1e6, int(line[2])) for line in logged]
    first = min(at for at, _ in ended)
    return statistics.quantiles([took for at, took in ended if at > first + 1], n=100)[98]


def measured(session, made, files, flush, copies):
    """What pgbench took under a load, and what the device's counters saw meanwhile."""
    session.run(f"ALTER SYSTEM SET checkpoint_flush_after = '{flush or '256kB'}'")
    session.run("SELECT pg_reload_conf()")
    session.run("CHECKPOINT; SELECT io_probe_evict('probed')")
    began = time.monotonic()
    if flush:
        session.run("SELECT count(*) FROM (SELECT FROM changed FOR NO KEY UPDATE) AS locked")
        time.sleep(max(0, began + EVERY - 1 - time.monotonic()))
    over = threading.Event()
    thread = threading.Thread(target=copy, args=(files, over)) if copies else None
    if thread:
        thread.start()
    try:
        with Counters(made.block) as counters:
            return pgbench(), counters.slices[round(1 / SLICE) :]
    finally:
        over.set()
        if thread:
            thread.join()


class Map:
    """What one read in a hundred takes, by reads and MiB written a second."""

    def __init__(self):
        seconds = len(SHARES) ** 2 + 2
        cells = rows(f"SELECT * FROM {call('mix', 'probed', writing='sequential', shares=SHARES, duration=f'{seconds} s')}")
        alone = {row["load"]: row for row in cells}
        of_write = alone["writes alone"]["write_kb"] / 1024
        self.reads = [alone["reads alone"]["reads_s"] * share / 100 for share in SHARES]
        self.written = [alone["writes alone"]["writes_s"] * of_write * share / 100 for share in SHARES]
        # What the device does not carry takes ever longer.
        self.p99 = {(row["read_pct"], row["write_pct"]): row["r_p99_us"] if row["carried"] else math.inf
                    for row in cells if row["load"] == "cell"}  # fmt: skip

    def predicted(self, slices):
        """The value that is exceeded for a hundredth of the time."""
        took = sorted(self.at(reads, written) for reads, written in slices)
        return took[min(len(took) - 1, int(0.99 * len(took)))]

    def at(self, reads, written):
        """Of the cell next above."""
        read, write = max(1, above(self.reads, reads)), above(self.written, written)
        return self.p99[SHARES[read], SHARES[write]] or math.nan


def above(places, rate):
    """The first place that is not below a rate, or the last."""
    return min(bisect.bisect_left(places, 0.97 * rate), len(places) - 1)


def ranks(values):
    return [sorted(values).index(value) + 1 for value in values]


def main():
    if why := made_up.missing():
        give_up(why)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    model = sys.argv[2] if len(sys.argv) > 2 else "gp3"
    found, predicted = [{load: [] for load in LOADS} for _ in range(2)]
    with made_up.device() as made, Session() as session:
        session.run("SET client_min_messages = warning")
        place = create_tablespace(session, "made_up", made.mount_point)
        for table, blocks in [("probed", BLOCKS), ("changed", CHANGED)]:
            dense_table(session, table, blocks, place)
        files = [segment_file(session, "probed")]
        with made.meanwhile(model):
            for _ in range(rounds):
                the_map = Map()
                for load, (flush, copies) in LOADS.items():
                    took, slices = measured(session, made, files, flush, copies)
                    found[load].append(took)
                    predicted[load].append(the_map.predicted(slices))
        session.run("DROP TABLE probed, changed; DROP TABLESPACE made_up; ALTER SYSTEM RESET checkpoint_flush_after")
    print(f"PostgreSQL {server_version()}, {model}, {rounds} rounds: 99th percentiles of reads, us")
    print(LINE.format("load", "pgbench", "by the map", "rank", "rank"))
    columns = [[statistics.median(of[load]) for load in LOADS] for of in (found, predicted)]
    for load, took, told, *places in zip(LOADS, *columns, *map(ranks, columns)):
        told = f"{told:,.0f}" if math.isfinite(told) else "not carried"
        print(LINE.format(load, f"{took:,.0f}", told, *places))


if __name__ == "__main__":
    main()
