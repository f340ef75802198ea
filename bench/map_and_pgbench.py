#!/usr/bin/env -S python3 -B
"""Does the map of io_probe_mix rank what pgbench then suffers? As root, on an idle machine.

    map_and_pgbench.py [ROUNDS [MODEL]]    on the server that the environment names; run.sh starts one

On a made-up device (`hdd`) pgbench reads single blocks of a table at random, RATE (40) a second, under six loads: with and
without a checkpoint of the blocks of another table, spread over ten seconds, at checkpoint_flush_after 256kB and 0; and each of
these with and without a backup that somebody writes there, BACKUP (40) MiB a second past the page cache. Its 99th percentile is
that of its log, from when a transaction was due; the first second does not count.

The map is that of io_probe_mix with `writing => 'sequential'`. The device's counters tell how many MiB were written in each SLICE
of a run. Its reads take what the histograms of the four cells around RATE and these MiB say, in proportion; the 99th
percentile over all slices is the run's. The loads come in another order in each of ROUNDS (3). Lines have medians, the
least and the greatest, and both ranks. The last line tells how many pairs of loads pgbench tells apart (its rounds do not
overlap), and how many of these the map ranks the same.
"""

import bisect
import collections
import contextlib
import mmap
import os
import random
import statistics
import sys
import tempfile
import threading
import time

import made_up
from commands import give_up, rows, run, server_version
from lib import Session, call, dense_table
from storage import create_tablespace

MIB = 1 << 20
BLOCK, BLOCKS, CHANGED = 8192, 60_000, 20_000
# Of the device: scratch_reserve wants one to stay free.
GIB = 3
RATE = int(os.environ.get("RATE", "40"))
BACKUP = int(os.environ.get("BACKUP", "40"))
WRITE, FILE = 256 << 10, 256 << 20
SECONDS, SLICE = 24, 0.1
SHARES = [0, 10, 25, 50, 75, 100]
SECONDS_A_CELL = 4
# The least checkpoint_timeout; checkpoint_completion_target has it write for a third of that.
EVERY = 30
LOADS = {f"{'checkpoint, flush_after ' + flush if flush else 'no checkpoint'}{', backup beside' if backup else ''}": (flush, backup)
         for flush in [None, "256kB", "0"] for backup in [False, True]}  # fmt: skip
SCRIPT = f"""\\set block random(0, {BLOCKS - 1})
SELECT id FROM probed WHERE ctid = ('(' || :block || ',1)')::tid;
"""
LINE = "{:<42} {:>24} {:>24} {:>5} {:>5}"


class Counters:
    """How many MiB a second are written to a device in each slice of the time."""

    def __init__(self, block):
        self.path = f"/sys/class/block/{os.path.basename(block)}/stat"
        self.slices, self.is_over = [], threading.Event()

    def look(self):
        with open(self.path, encoding="ascii") as file:
            return time.monotonic(), int(file.read().split()[6]) * 512 / MIB

    def watch(self):
        before = self.look()
        while not self.is_over.wait(SLICE):
            now = self.look()
            self.slices.append((now[1] - before[1]) / (now[0] - before[0]))
            before = now

    def __enter__(self):
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


@contextlib.contextmanager
def backed_up(path):
    """Meanwhile somebody writes a file again and again."""
    over = threading.Event()
    thread = threading.Thread(target=back_up, args=(path, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def back_up(path, over):
    file = os.open(path, os.O_WRONLY | os.O_DIRECT)
    began, written = time.monotonic(), 0
    try:
        with mmap.mmap(-1, WRITE) as piece:
            while not over.wait(max(0, began + written / MIB / BACKUP - time.monotonic())):
                written += os.pwrite(file, piece, written % FILE)
    finally:
        os.close(file)


def pgbench():
    """The 99th percentile of its transactions, in us."""
    with tempfile.TemporaryDirectory() as folder:
        script, log = os.path.join(folder, "script"), os.path.join(folder, "log")
        with open(script, "w", encoding="ascii") as file:
            file.write(SCRIPT)
        run(["pgbench", "-nM", "prepared", "-c", "16", "-j", "2", "-T", str(SECONDS), "-R", str(RATE), "-f", script,
             "-l", "--log-prefix", log])  # fmt: skip
        logged = [line.split() for name in os.listdir(folder) if name.startswith("log")
                  for line in open(os.path.join(folder, name), encoding="ascii")]  # fmt: skip
    ended = [(int(line[4]) + int(line[5]) / 1e6, int(line[2])) for line in logged]
    first = min(at for at, _ in ended)
    return statistics.quantiles([took for at, took in ended if at > first + 1], n=100)[98]


def measured(session, block, path, flush, backup):
    """What pgbench took under a load, and what was written in each slice meanwhile."""
    session.run(f"ALTER SYSTEM SET checkpoint_flush_after = '{flush or '256kB'}'")
    session.run("SELECT pg_reload_conf()")
    session.run("CHECKPOINT; SELECT io_probe_evict('probed')")
    began = time.monotonic()
    if flush:
        session.run("SELECT count(*) FROM (SELECT FROM changed FOR NO KEY UPDATE) AS locked")
        time.sleep(max(0, began + EVERY - 1 - time.monotonic()))
    with backed_up(path) if backup else contextlib.nullcontext(), Counters(block) as counters:
        return pgbench(), counters.slices[round(1 / SLICE) :]


class Map:
    """How long reads take, by the MiB a second that are written beside RATE of them."""

    def __init__(self):
        seconds = (len(SHARES) ** 2 + 2) * SECONDS_A_CELL
        arguments = {"writing": "sequential", "shares": SHARES, "duration": f"{seconds} s"}
        cells = rows(f"SELECT * FROM {call('mix', 'probed', **arguments)}")
        alone = {row["load"]: row for row in cells}
        self.reads = [alone["reads alone"]["reads_s"] * share / 100 for share in SHARES[1:]]
        greatest = alone["writes alone"]["writes_s"] * WRITE / MIB
        self.written = [greatest * share / 100 for share in SHARES]
        self.histograms = {(row["read_pct"], row["write_pct"]): row["r_histogram"] for row in cells if row["load"] == "cell"}

    def predicted(self, slices):
        """The 99th percentile of the reads of all slices, in us."""
        parts = collections.Counter()
        for written in slices:
            for cell, share in self.around(written):
                histogram = self.histograms[cell]
                counted = sum(part["count"] for part in histogram)
                for part in histogram:
                    parts[part["low_us"], part["high_us"]] += share * part["count"] / counted
        return quantile(sorted(parts.items()), 0.99)

    def around(self, written):
        """The cells around a load, with their shares."""
        for read, read_share in between(self.reads, RATE):
            for write, write_share in between(self.written, written):
                yield (SHARES[1 + read], SHARES[write]), read_share * write_share


def between(places, value):
    """The places around a value, and how near it is to each; the first or the last if it is beyond."""
    value = min(max(value, places[0]), places[-1])
    above = max(1, bisect.bisect_left(places, value))
    share = (value - places[above - 1]) / (places[above] - places[above - 1])
    return [(above - 1, 1 - share), (above, share)]


def quantile(parts, share):
    """Of a histogram; within a part its counts are even."""
    left = share * sum(count for _, count in parts)
    for (low, high), count in parts:
        if left <= count:
            return low + (high - low) * left / count
        left -= count
    return high


def ranks(values):
    return [sorted(values).index(value) + 1 for value in values]


def pairs(found, predicted):
    """How many pairs pgbench tells apart, and how many of them have the same order on the map."""
    apart = [(a, b) for a in LOADS for b in LOADS if max(found[a]) < min(found[b])]
    same = [pair for pair in apart if statistics.median(predicted[pair[0]]) < statistics.median(predicted[pair[1]])]
    return len(apart), len(same)


def spread(values):
    """In ms."""
    middle, least, greatest = (of(values) / 1000 for of in (statistics.median, min, max))
    return f"{middle:,.1f} ({least:,.1f} to {greatest:,.1f})"


def main():
    if why := made_up.missing():
        give_up(why)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    model = sys.argv[2] if len(sys.argv) > 2 else "hdd"
    found, predicted = [{load: [] for load in LOADS} for _ in range(2)]
    with made_up.device(GIB) as made, Session() as session:
        session.run("SET client_min_messages = warning")
        place = create_tablespace(session, "made_up", made.mount_point)
        for table, blocks in [("probed", BLOCKS), ("changed", CHANGED)]:
            dense_table(session, table, blocks, place)
        path = os.path.join(made.mount_point, "backup")
        run(["dd", "if=/dev/zero", f"of={path}", "bs=1M", f"count={FILE // MIB}", "conv=fsync"])
        with made.meanwhile(model):
            for _ in range(rounds):
                the_map = Map()
                for load in random.sample(list(LOADS), len(LOADS)):
                    took, slices = measured(session, made.block, path, *LOADS[load])
                    found[load].append(took)
                    predicted[load].append(the_map.predicted(slices))
        session.run("DROP TABLE probed, changed; DROP TABLESPACE made_up; ALTER SYSTEM RESET checkpoint_flush_after")
    print(f"PostgreSQL {server_version()}, {model}, {rounds} rounds: 99th percentiles of reads, ms")
    print(LINE.format("load", "pgbench", "by the map", "rank", "rank"))
    places = [ranks([statistics.median(of[load]) for load in LOADS]) for of in (found, predicted)]
    for load, *of_both in zip(LOADS, *places):
        print(LINE.format(load, spread(found[load]), spread(predicted[load]), *of_both))
    print("pairs told apart: {}; ranked the same: {}".format(*pairs(found, predicted)))


if __name__ == "__main__":
    main()
