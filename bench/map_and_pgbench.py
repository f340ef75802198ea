#!/usr/bin/env -S python3 -B
"""Does the map of io_probe_mix rank what pgbench then suffers? As root, on an idle machine.

    map_and_pgbench.py [ROUNDS [MODEL]]    on the server that the environment names; run.sh starts one

On a made-up device (`hdd`) pgbench reads single blocks of a table at random, RATE (40) a second, under six loads: with and
without a checkpoint of the blocks of another table, spread over ten seconds, at checkpoint_flush_after 256kB and 0; and each of
these with and without somebody who copies a file of that device, COPIED (40) MiB a second. Its 99th percentile is that of
its log, from when a transaction was due; the first second does not count.

The map is that of io_probe_mix with `writing => 'sequential'`. The device's counters tell how many reads came in each SLICE of
a run, and how many MiB were moved beside their single blocks: both take bandwidth. A slice's reads take what the histograms of
the four cells around it say, in proportion; the 99th percentile of all reads is the run's. The loads come in another order in
each of ROUNDS (3). Lines have medians, the least and the greatest, and both ranks.
"""

import bisect
import collections
import contextlib
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
COPIED = int(os.environ.get("COPIED", "40"))
SECONDS, SLICE = 24, 0.1
SHARES = [0, 10, 20, 35, 50, 75, 100]
SECONDS_A_CELL = 2
# The least checkpoint_timeout; checkpoint_completion_target has it write for a third of that.
EVERY = 30
LOADS = {f"{'checkpoint, flush_after ' + flush if flush else 'no checkpoint'}{', copy beside' if copies else ''}": (flush, copies)
         for flush in [None, "256kB", "0"] for copies in [False, True]}  # fmt: skip
SCRIPT = f"""\\set block random(0, {BLOCKS - 1})
SELECT id FROM probed WHERE ctid = ('(' || :block || ',1)')::tid;
"""
LINE = "{:<42} {:>24} {:>24} {:>5} {:>5}"


class Counters:
    """How many reads came to a device, and how many MiB were moved beside their single blocks: a second, in each slice."""

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


@contextlib.contextmanager
def copied(path):
    """Meanwhile somebody reads a file in order, as a backup does."""
    over = threading.Event()
    thread = threading.Thread(target=copy, args=(path, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def copy(path, over):
    began, read = time.monotonic(), 0
    with open(path, "rb", buffering=0) as file:
        while not over.is_set():
            file.seek(0)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while not over.is_set() and (piece := file.read(128 << 10)):
                read += len(piece)
                over.wait(max(0, began + read / MIB / COPIED - time.monotonic()))


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


def measured(session, block, path, flush, copies):
    """What pgbench took under a load, and what the device's counters saw meanwhile."""
    session.run(f"ALTER SYSTEM SET checkpoint_flush_after = '{flush or '256kB'}'")
    session.run("SELECT pg_reload_conf()")
    session.run("CHECKPOINT; SELECT io_probe_evict('probed')")
    began = time.monotonic()
    if flush:
        session.run("SELECT count(*) FROM (SELECT FROM changed FOR NO KEY UPDATE) AS locked")
        time.sleep(max(0, began + EVERY - 1 - time.monotonic()))
    with copied(path) if copies else contextlib.nullcontext(), Counters(block) as counters:
        return pgbench(), counters.slices[round(1 / SLICE) :]


class Map:
    """How long reads take, by reads and MiB a second beside them."""

    def __init__(self):
        seconds = (len(SHARES) ** 2 + 2) * SECONDS_A_CELL
        arguments = {"writing": "sequential", "shares": SHARES, "duration": f"{seconds} s"}
        cells = rows(f"SELECT * FROM {call('mix', 'probed', **arguments)}")
        alone = {row["load"]: row for row in cells}
        self.reads = [alone["reads alone"]["reads_s"] * share / 100 for share in SHARES]
        greatest = alone["writes alone"]["writes_s"] * alone["writes alone"]["write_kb"] / 1024
        self.moved = [greatest * share / 100 for share in SHARES]
        self.histograms = {(row["read_pct"], row["write_pct"]): row["r_histogram"] for row in cells if row["load"] == "cell"}

    def predicted(self, slices):
        """The 99th percentile of the reads of all slices, in us."""
        parts = collections.Counter()
        for reads, moved in slices:
            for cell, share in self.around(reads, moved):
                histogram = self.histograms[cell]
                counted = sum(part["count"] for part in histogram)
                for part in histogram:
                    parts[part["low_us"], part["high_us"]] += reads * share * part["count"] / counted
        return quantile(sorted(parts.items()), 0.99)

    def around(self, reads, moved):
        """The cells around a load, with their shares."""
        for read, read_share in between(self.reads[1:], reads):
            for write, write_share in between(self.moved, moved):
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
        path = os.path.join(made.mount_point, "copied")
        run(["dd", "if=/dev/zero", f"of={path}", "bs=1M", "count=256", "conv=fsync"])
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


if __name__ == "__main__":
    main()
