#!/usr/bin/env -S python3 -B
"""Reads by I/O workers that come and go, against the device's own count: the bytes told are right, or unknown."""

import os
import re
import signal
import time
import unittest

from lib import BLOCK, PF_EXITING, PGDATA, VERSION, Process, Session, dense_table, literal, main, needs_root, random_reads, read
from lib import say, seqscan, wait_for
from storage import LoopDevice, assert_fetched, create_tablespace

BLOCKS = 32768
BYTES = BLOCKS * BLOCK
MIB = 1 << 20
# The least and the most I/O workers.
FEW, MANY = (1, 6)
CONCURRENCY = 64
COUNT = "SELECT count(*) FROM dense"


def read_bytes(pid):
    """Bytes that a process has fetched from storage, and its processes that it has waited for; None if it has ended."""
    text, stat = read(f"/proc/{pid}/io"), read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if not text or not stat or stat[0] in "ZX" or int(stat[6]) & PF_EXITING:
        return None
    return int(re.search(r"^read_bytes: (\d+)$", text, re.MULTILINE).group(1))


def setUpModule():
    if VERSION < 18:
        raise unittest.SkipTest("there are I/O workers from PostgreSQL 18 on")
    needs_root()


class Workers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = Session()
        cls.addClassCleanup(cls.session.close)
        if cls.session.value("SELECT current_setting('io_method')") != "worker":
            raise unittest.SkipTest("this server reads without I/O workers")
        cls.disk = LoopDevice(2 * BYTES + 64 * MIB, direct=True)
        cls.addClassCleanup(cls.disk.remove)
        place = create_tablespace(cls.session, "apart", cls.disk.mount_point)
        cls.addClassCleanup(cls.session.run, "DROP TABLE dense; DROP TABLESPACE apart")
        dense_table(cls.session, "dense", BLOCKS, place)
        cls.session.run(f"VACUUM (FREEZE) dense; CHECKPOINT; SET effective_io_concurrency = {CONCURRENCY}; SET jit = off;"
                        "SET max_parallel_workers_per_gather = 0")

    def setUp(self):
        self.addCleanup(self.reset)
        self.keep(FEW, "50 ms")
        wait_for(lambda: len(self.workers()) == FEW, "few workers", timeout=30)

    # --- the pool --------------------------------------------------------------------------------------------------

    def workers(self):
        with Session() as session:
            return set(session.value("SELECT coalesce(array_agg(pid), '{}') FROM pg_stat_activity WHERE backend_type = 'io worker'"))

    def keep(self, count, idle="1 min"):
        """Has the server keep `count` workers. From 19 on that is the least number: further workers go when idle for `idle`."""
        settings = {"io_workers": count}
        if VERSION >= 19:
            settings = {"io_min_workers": count, "io_max_workers": MANY, "io_worker_idle_timeout": idle,
                        "io_worker_launch_interval": "10 ms"}  # fmt: skip
        with Session() as session:
            for name, value in settings.items():
                session.run(f"ALTER SYSTEM SET {name} = {literal(value)}")
            session.run("SELECT pg_reload_conf()")

    def reset(self):
        with Session() as session:
            session.run("ALTER SYSTEM RESET ALL; SELECT pg_reload_conf()")

    def let_grow(self):
        """From now on there may be MANY workers."""
        self.keep(FEW if VERSION >= 19 else MANY)

    # --- what they read --------------------------------------------------------------------------------------------

    def told(self, query, meanwhile=lambda prober: None):
        """The last row of a query, what the device read for it, and the workers before and after."""
        self.session.run("SELECT io_probe_evict('dense')")
        before, read = self.workers(), self.disk.counters()["bytes"]
        self.session.start_rows(query)
        meanwhile(self.session)
        row = self.session.finish_rows()[-1]
        return row, self.disk.counters()["bytes"] - read, before, self.workers()

    def assert_exact(self, row, read):
        self.assertEqual(row["device_source"], "io_workers", row)
        self.assertGreater(read, BYTES // 2)
        assert_fetched(self, row["device_bytes"], read)

    def test_a_pool_that_grows(self):
        """All reads of new workers count."""
        for what, query in {
            "seqscan": seqscan("dense", "server", cold=True),
            "random": random_reads("dense", "server", cold=True, depth=64, duration="1 min"),
        }.items():
            with self.subTest(what):
                self.keep(FEW, "50 ms")
                wait_for(lambda: len(self.workers()) == FEW, "few workers", timeout=30)
                if VERSION >= 19:
                    self.let_grow()
                    row, read, before, after = self.told(query)
                else:
                    row, read, before, after = self.told(query, lambda _: self.let_grow())
                say(f"{what}: {len(before)} workers before, {len(after)} after, {read} bytes, told {row['device_bytes']}")
                self.assertEqual((before - after, len(before)), (set(), FEW))
                self.assertGreater(len(after), len(before))
                self.assert_exact(row, read)

    def test_a_pool_that_shrinks(self):
        """Workers that go have read something before, and nothing since they were looked at last."""
        self.keep(MANY)
        wait_for(lambda: len(self.workers()) == MANY, "many workers", timeout=30)
        self.session.run(f"SELECT io_probe_evict('dense'); {COUNT}")
        # One worker reads the blocks one after the other: the others have nothing to do.
        self.session.run("SET effective_io_concurrency = 1")
        self.addCleanup(self.session.run, f"SET effective_io_concurrency = {CONCURRENCY}")
        slowly = seqscan("dense", "server", cold=True, duration="1 min", options={"max_mib_s": BYTES // MIB // 10})
        row, read, before, after = self.told(slowly, self.shrink)
        say(f"{len(before)} workers before, {len(after)} after, {read} bytes, told {row['device_bytes']}, {row['notes']}")
        self.assertLess(len(after), len(before))
        # One that ends may need pages of its program. Where memory is short these must be read, too.
        unseen = self.unseen()
        say(f"those that went have read {unseen} bytes more than when they were seen last")
        if VERSION >= 19 and unseen < BLOCK:
            self.assert_exact(row, read)
        else:
            self.assert_right_or_unknown(row, read)

    def shrink(self, prober):
        time.sleep(1)
        # Far longer than from one look to the next, so that none goes between its last read and a look.
        workers, postmaster = self.workers(), int(read(os.path.join(PGDATA, "postmaster.pid")).split()[0])
        before, seen = read_bytes(postmaster), {pid: read_bytes(pid) for pid in workers}
        self.keep(FEW, "3 s")
        # A busy server waits late for those that have ended. It rests for longer than one look takes.
        ends = time.monotonic() + 7
        while time.monotonic() < ends and prober.busy():
            os.kill(postmaster, signal.SIGSTOP)
            for _ in range(8):
                seen.update({pid: found for pid in workers if (found := read_bytes(pid)) is not None})
                time.sleep(0.05)
            os.kill(postmaster, signal.SIGCONT)
            time.sleep(0.1)
        self.unseen = lambda: read_bytes(postmaster) - before - sum(seen[pid] for pid in workers - self.workers())

    def test_one_that_is_ended(self):
        """Workers are ended amid their work, again and again. What one read since it was looked at last is unknown."""
        unknown = 0
        for query in [seqscan("dense", "server", cold=True),
                      random_reads("dense", "server", cold=True, depth=64, duration="1 min")]:  # fmt: skip
            with self.subTest(query):
                row, read, before, after = self.told(query, self.end_workers)
                say(f"{read} bytes, told {row['device_bytes']}, {row['notes']}")
                self.assertTrue(before - after)
                self.assert_right_or_unknown(row, read)
                unknown += row["device_bytes"] is None
        self.assertGreater(unknown, 0)

    def end_workers(self, prober):
        while prober.busy():
            for pid in self.workers():
                if Process(pid).exists():
                    os.kill(pid, signal.SIGINT)
            time.sleep(0.05)

    def assert_right_or_unknown(self, row, read):
        if row["device_bytes"] is None:
            self.assertIn("an I/O worker may have ended meanwhile", "".join(row["notes"]))
        else:
            assert_fetched(self, row["device_bytes"], read)


if __name__ == "__main__":
    main()
