#!/usr/bin/env -S python3 -B
"""Devices watched from a session, against the kernel's counters.

Needs root, for a loop device of its own.
"""

import mmap
import os
import time
import unittest
from datetime import datetime

import cgroups
from lib import BLOCK, Session, dense_table, main, needs_root, progress, read, rows_of, say, server_processes
from lib import wait_for_probe
from storage import LoopDevice, create_tablespace, run, succeeds

BLOCKS = 4096
BYTES = BLOCKS * BLOCK
MIB = 1 << 20
# The fields of a block device's stat file, in its order.
STAT = "reads rmerges rsectors rticks writes wmerges wsectors wticks in_flight io_ticks weighted " \
       "discards dmerges dsectors dticks flushes fticks".split()  # fmt: skip
# The device's counters, and the columns that are rates of them. TIMES and SIZES have the rate and the mean of a counter.
RATES = {
    "reads": "r_s", "rmerges": "rrqm_s", "rsectors": "rmib_s",
    "writes": "w_s", "wmerges": "wrqm_s", "wsectors": "wmib_s",
    "discards": "d_s", "dmerges": "drqm_s", "dsectors": "dmib_s", "flushes": "f_s",
}  # fmt: skip
TIMES = {"rticks": ("r_s", "r_await_ms"), "wticks": ("w_s", "w_await_ms"), "dticks": ("d_s", "d_await_ms"),
         "fticks": ("f_s", "f_await_ms")}  # fmt: skip
SIZES = {"rsectors": ("r_s", "rareq_kb"), "wsectors": ("w_s", "wareq_kb"), "dsectors": ("d_s", "dareq_kb")}


def setUpModule():
    needs_root()
    # The file is sparse: what is never written takes no room.
    Iostat.disk = LoopDevice(16 * BYTES, direct=True)
    unittest.addModuleCleanup(Iostat.disk.remove)
    Iostat.name = os.path.basename(Iostat.disk.device)
    Iostat.disk.set_queue(1280, 128)
    with Session() as session:
        place = create_tablespace(session, "elsewhere", Iostat.disk.mount_point)
        dense_table(session, "dense", BLOCKS, place)
    unittest.addModuleCleanup(drop)


def drop():
    with Session() as session:
        session.run("DROP TABLE dense")
        session.run("DROP TABLESPACE elsewhere")


class Iostat(unittest.TestCase):
    """A session, and a table on a device of its own."""

    def setUp(self):
        self.session = Session()
        self.addCleanup(lambda: self.session.close())
        self.session.run("SET max_parallel_workers_per_gather = 0")

    def make_cold(self):
        self.disk.make_cold(self.session, "dense")

    def stat(self):
        """The device's counters."""
        fields = [int(word) for word in read(f"/sys/class/block/{self.name}/stat").split()]
        return dict(zip(STAT, fields))

    def moved(self, before):
        """What the counters have gained."""
        return {name: now - before[name] for name, now in self.stat().items()}

    def of_device(self, rows):
        """The rows of the device, which are numbered without a gap and follow each other in time."""
        rows = [row for row in rows if row["device"] == self.name]
        self.assertEqual([row["sample"] for row in rows], list(range(1, len(rows) + 1)))
        self.assertEqual({row["status"] for row in rows}, {"ok"}, rows)
        for earlier, row in zip(rows, rows[1:]):
            between = datetime.fromisoformat(row["sampled_at"]) - datetime.fromisoformat(earlier["sampled_at"])
            # Two clocks, and a process that may lose the CPU between them.
            self.assertAlmostEqual(between.total_seconds() * 1000, row["elapsed_ms"], delta=100)
        return rows

    def assert_counted(self, rows, moved):
        """The rows of the device are what its counters say: rates in sum, means weighted by their rates."""
        total = lambda value: sum(value(row) * row["elapsed_ms"] for row in rows)
        for counter, column in RATES.items():
            unit = 2048 if counter.endswith("sectors") else 1
            if counter in moved:
                self.about(total(lambda row: row[column]) / 1000, moved[counter] / unit, column)
        for counter, (rate, mean) in TIMES.items():
            if counter in moved:
                self.about(total(lambda row: row[rate] / 1000 * (row[mean] or 0)), moved[counter], mean)
        for counter, (rate, mean) in SIZES.items():
            if counter in moved:
                self.about(total(lambda row: row[rate] / 1000 * (row[mean] or 0)) * 2, moved[counter], mean)
        self.about(total(lambda row: row["aqu_sz"]), moved["weighted"], "aqu_sz")
        for row in rows:
            # Busy time advances by ticks of up to 10 ms.
            self.assertTrue(0 <= row["util_pct"] <= 100 + 2 * 10 / row["elapsed_ms"] * 100, row)
            shares = [row[f"cpu_{kind}_pct"] for kind in ["user", "system", "iowait", "idle", "steal"]]
            if None not in shares or row["elapsed_ms"] > 100:  # in less, its clock may not have ticked
                self.assertAlmostEqual(sum(shares), 100, delta=0.1)
            some, full = row["io_pressure_pct"], row["io_pressure_full_pct"]
            self.assertTrue(some is None or 0 <= full <= some <= 100, row)
            for rate, mean in [*TIMES.values(), *SIZES.values()]:
                self.assertEqual(row[mean] is None, not row[rate], (mean, row))

    def about(self, value, expected, what):
        """Within 1 %, and a unit for what is counted in milliseconds or rounded."""
        self.assertAlmostEqual(value, expected, delta=expected * 0.01 + (1 if expected else 0), msg=what)


class Samples(Iostat):
    """io_probe_iostat."""

    def test_samples_are_what_the_counters_say(self):
        run("sync", "-f", self.disk.mount_point)
        self.session.start_rows(rows_of("iostat", every="2 s", count=5, options={"device": self.name}))
        with Session() as control:
            wait_for_probe(control, self.session.pid)
        before = self.stat()
        self.move_data(seconds=1)
        moved = self.moved(before)
        self.assertTrue(self.session.busy(), "it ended too early to see all")
        rows = self.of_device(self.session.finish_rows())
        say(", ".join(f"{name} {number}" for name, number in moved.items()))
        self.assertEqual(len(rows), 5)
        self.assertGreater(min(moved["reads"], moved["writes"]), 5)
        self.assert_counted(rows, moved)
        # The interval after a late sample is shorter.
        self.assertGreater(sum(row["elapsed_ms"] for row in rows), 5 * 2000 - 10)

    def move_data(self, seconds):
        """Reads, writes and flushes of some sizes, one at a time, for `seconds`; then discards."""
        path = os.path.join(self.disk.mount_point, "moved")
        file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o600)
        buffer = mmap.mmap(-1, MIB)
        over = time.monotonic() + seconds
        size = 4096
        while time.monotonic() < over:
            os.pwritev(file, [memoryview(buffer)[:size]], 0)
            os.preadv(file, [memoryview(buffer)[:size]], 0)
            os.preadv(file, [memoryview(buffer)[:4096]], 0)
            if size == MIB:
                os.fsync(file)
            size = size * 2 if size < MIB else 4096
            time.sleep(0.002)
        os.close(file)
        os.remove(path)
        if not succeeds("fstrim", self.disk.mount_point):
            say("no discards here")
        run("sync", "-f", self.disk.mount_point)

    def test_each_device_of_the_server(self):
        devices = self.session.rows("SELECT DISTINCT device FROM io_probe_device_full() WHERE device IS NOT NULL")
        rows = self.session.rows("SELECT * FROM io_probe_iostat_full('100 ms', count => 3)")
        self.assertIn(self.name, [row["device"] for row in devices])
        for sample in [1, 2, 3]:
            found = sorted(row["device"] for row in rows if row["sample"] == sample)
            self.assertEqual(found, sorted(row["device"] for row in devices))
        self.assertEqual(len({row["sampled_at"] for row in rows}), 3)
        self.of_device(rows)
        # Without `count` it gives one sample, of the interval that begins with the call.
        (row,) = self.of_device(self.session.rows("SELECT * FROM io_probe_iostat_full(every => '200 ms')"))
        self.assertGreater(row["elapsed_ms"], 190)

    def test_progress(self):
        self.session.start_rows(rows_of("iostat", every="200 ms", count=5, options={"device": self.name}))
        with Session() as control:
            seen = self.seen(control)
        self.assertEqual({(row["probe"], row["total"]) for row in seen if row["total"]}, {("iostat", 5)})
        done = [row["done"] for row in seen]
        self.assertEqual(done, sorted(done))
        self.assertTrue(len(set(done)) >= 2 and set(done) <= set(range(6)), set(done))
        self.assertEqual(len(self.session.finish_rows()), 5)

    def seen(self, control):
        """What another session sees while the probe runs."""
        seen = [wait_for_probe(control, self.session.pid)]
        self.assertIsNotNone(seen[0]["started_at"])
        while (row := progress(control, self.session.pid)) is not None:
            seen.append(row)
            time.sleep(0.01)
        return seen


class Cgroup(Iostat):
    """A limit on what the server may read of the device."""

    LIMIT = 8 * MIB

    def test_a_limit_is_told(self):
        for version in cgroups.VERSIONS:
            with self.subTest(version), cgroups.limited(version, self.disk.device, read_bps=self.LIMIT) as limit:
                if limit is None:
                    say(f"no cgroup {version} that limits I/O here")
                    continue
                self.read_under_a_limit(limit)

    def read_under_a_limit(self, limit):
        self.make_cold()
        with Session() as reader, limit.on(server_processes()):
            before = self.stat()
            self.session.start_rows(rows_of("iostat", every="500 ms", count=8, options={"device": self.name}))
            wait_for_probe(reader, self.session.pid)
            # The backend reads, or an I/O worker of the server.
            started = time.monotonic()
            reader.run(f"SELECT count(*) FROM (SELECT * FROM dense LIMIT {BLOCKS // 2}) AS half")
            elapsed = time.monotonic() - started
            self.assertTrue(self.session.busy(), "it ended too early to see all")
            series, moved = self.of_device(self.session.finish_rows()), self.moved(before)
            say(f"{elapsed:.1f} s; {series[0]['notes']}")
            # 16 MiB, or somewhat less, are let through at once.
            self.assertGreater(elapsed, BLOCKS // 2 * BLOCK / self.LIMIT / 2)
            self.assertRegex(series[0]["notes"][0], f"cgroup.* reads of {self.name} to 8 MiB/s")
            (row,) = self.session.rows(rows_of("iostat", every="100 ms", count=1, options={"device": self.name}))
            self.assertRegex(row["notes"][0], f"cgroup.* reads of {self.name} to 8 MiB/s")
        (row,) = self.session.rows(rows_of("iostat", every="100 ms", count=1, options={"device": self.name}))
        self.assertNotIn(self.name, "".join(row["notes"]))


if __name__ == "__main__":
    main()
