#!/usr/bin/env -S python3 -B
"""Bounds that protect others: a device that others keep busy, and one that answers too slowly.

Needs root, for a device of its own.
"""

import contextlib
import json
import os
import statistics
import subprocess
import time
import unittest

from lib import PATHS, TEST_TMP, Failure, Session, dense_table, main, needs_root, random_reads, rows_of, seqscan
from lib import wait_for
from storage import LoopDevice, create_tablespace, run

MIB = 1 << 20
BLOCKS = 16384
UTIL = 10
SLOW = "stopped early: more than 10 of the last 1000 requests took longer than "
SLOW_NOTE = SLOW + "max_p99"
setUpModule = needs_root


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.disk = LoopDevice(512 * MIB, direct=True)
        cls.addClassCleanup(cls.disk.remove)
        cls.control = Session()
        cls.addClassCleanup(cls.control.close)
        place = create_tablespace(cls.control, "limited", cls.disk.mount_point)
        cls.addClassCleanup(cls.control.run, "DROP TABLE probed; DROP TABLESPACE limited")
        dense_table(cls.control, "probed", BLOCKS, place)
        cls.control.run("CREATE INDEX ON probed (id) TABLESPACE limited; ANALYZE probed")

    def setUp(self):
        self.session = Session()
        self.addCleanup(self.session.close)
        self.session.run("SET pg_io_probe.scratch_reserve = '1MB'")

    def probes(self, longest=None, **options):
        """A short call of each probe on that device; one that a limit ends may take as long as `longest`."""
        options = {"options": options}
        sync = {"spcname": "limited", "duration": longest or "700 ms", "sections": ["one_write"]}
        recommend = {"duration": longest or "500 ms", "cold": True, "settings": ["random_page_cost"]}
        return {
            # Each path has its own call: none begins after another one that was too slow.
            **{f"seqscan, {path}": seqscan("probed", path, duration="1 min", cold=True, **options) for path in PATHS},
            **{
                f"random, {path}, {depth}": random_reads(
                    "probed", path, duration=longest or "200 ms", cold=True, depth=depth, **options
                )
                for path in PATHS
                for depth in [1, 16]
            },
            "depth": rows_of("depth", "probed", depths=[1, 4], duration=longest or "200 ms", **options),
            # Of requests in flight while the process had no processor no latency is known: there must be some others.
            "depth, short rounds": rows_of("depth", "probed", depths=[64], duration="50 ms", **options),
            "ping": rows_of("ping", "probed", count=50, every="0", **options),
            "ping, writes": rows_of("ping", "probed", count=50, every="0", mode="pingpong", **options),
            "sync": rows_of("sync", **sync, **options),
            "sync of four": rows_of("sync", **{**sync, "sections": ["wal_segment"]}, depth=4, **options),
            "readahead": rows_of("readahead", "probed", windows_kb=[128], duration=longest or "1 s", **options),
            "page_cost": rows_of("page_cost", "probed", duration=longest or "500 ms", cold=True, **options),
            "recommend": rows_of("recommend", "probed", **recommend, **options),
        }

    @contextlib.contextmanager
    def load(self):
        """Others keep the device busy meanwhile."""
        # Several at a time, so that one that is not scheduled does not leave the device idle.
        read = f"while :; do dd if={self.disk.device} of=/dev/null bs=1M iflag=direct 2>&1; done & "
        others = subprocess.Popen(["sh", "-c", read * 6 + "wait"], stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            before = self.disk.counters()["reads"]
            wait_for(lambda: self.disk.counters()["reads"] > before + 50, "the load", 60)
            yield
        finally:
            os.killpg(others.pid, 15)
            others.wait()

    def test_a_busy_device(self):
        """A device that others keep busy is left alone; an idle one is not."""
        self.session.run("SET pg_io_probe.max_busy_pct = 30")
        for probe, query in self.probes().items():
            self.disk.settled_counters()
            with self.subTest(probe, others="idle"):
                self.session.rows(query)
        with self.load():
            for probe, query in self.probes().items():
                with self.subTest(probe, others="busy"):
                    with self.assertRaises(Failure) as raised:
                        self.session.rows(query)
                    self.assertEqual(raised.exception.sqlstate, "55000", raised.exception)
                    name = os.path.basename(self.disk.device)
                    self.assertRegex(str(raised.exception), rf'device "{name}" is \d+(\.\d+)? % busy')
                    self.assertIn("max_busy_pct is 30.", str(raised.exception))
            # Without the setting no probe looks how busy the device is.
            self.session.run("RESET pg_io_probe.max_busy_pct")
            self.session.rows(seqscan("probed", "direct"))

    def test_its_own_work_does_not_count(self):
        """A statement that calls a probe for each row is not refused for its own work."""
        self.session.run("SET pg_io_probe.max_busy_pct = 10")
        self.disk.settled_counters()
        query = """SELECT s.status, extract(epoch FROM s.started_at)::float8 AS at FROM generate_series(1, 20) AS n,
            LATERAL io_probe_seqscan_full('probed', '{direct}',
                options => jsonb_build_object('start_blk', n, 'max_bytes', 1048576)) AS s"""
        rows = self.session.rows(query)
        self.assertEqual([row["status"] for row in rows], ["ok"] * 20)
        # A statement looks before its first call only, and another statement looks again.
        gaps = [later["at"] - row["at"] for row, later in zip(rows, rows[1:])]
        self.assertLess(statistics.median(gaps), 0.25)
        again = self.session.rows(query)
        self.assertGreaterEqual(again[0]["at"] - rows[-1]["at"], 0.25)
        self.session.run("SET pg_io_probe.max_busy_pct = 100")
        self.session.rows(seqscan("probed", "direct"))

    def test_a_share_of_the_time(self):
        """A probe keeps the device busy for its share of the time. Others have the rest."""
        self.control.run("CHECKPOINT")
        self.session.run(f"SET pg_io_probe.max_util_pct = {UTIL}")
        for probe, query in self.probes().items():
            with self.subTest(probe):
                # Others can only add to the busy time. One request that a busy machine holds up takes all of the share and of the
                # call's time: so the best of some calls counts.
                calls = []
                while not calls or max(calls[-1]) and len(calls) < 5:
                    calls.append(self.beyond_share(probe, query))
                self.assertEqual(min(calls), (0, False), calls)

    def beyond_share(self, probe, query):
        """Milliseconds that the device was busy beyond the share; and whether the probe fails to say that it rested."""
        before, began = self.disk.counters()["busy_ms"], time.monotonic()
        rows = self.session.rows(query)
        busy, took = self.disk.counters()["busy_ms"] - before, 1000 * (time.monotonic() - began)
        silent = probe not in ["ping", "ping, writes", "recommend"] and "rate-limited" not in json.dumps(rows)
        # The kernel's clock ticks, and the bound is not on what is written back or evicted first.
        return max(0, busy - 1.5 * UTIL / 100 * took - 15), silent

    def test_a_device_that_can_not_be_seen(self):
        """The cap is meant to hold: a probe is refused where the cap can't be checked."""
        mount = os.path.join(TEST_TMP, "memory")
        os.mkdir(mount)
        run("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", mount)
        self.addCleanup(run, "umount", "--lazy", mount)
        place = create_tablespace(self.control, "memory", mount)
        self.addCleanup(self.control.run, "DROP TABLE remembered; DROP TABLESPACE memory")
        dense_table(self.control, "remembered", 100, place)
        self.session.rows(seqscan("remembered", "os"))
        self.session.run("SET pg_io_probe.max_busy_pct = 99")
        with self.assertRaises(Failure) as raised:
            self.session.rows(seqscan("remembered", "os"))
        self.assertEqual(raised.exception.sqlstate, "55000")
        self.assertIn("it is not known how busy the device is", str(raised.exception))
        # A job goes on, and its run is kept as skipped.
        *warning, kept = self.session.run(
            """SELECT io_probe_measure('seqscan', 'remembered', '{"paths": ["os"]}')"""
        )
        self.assertIn("was skipped: it is not known how busy the device is", "\n".join(warning))
        kept = json.loads(kept)
        self.assertEqual((kept["status"], kept["sqlstate"]), ("skipped", "55000"))
        settings = {name: kept["settings"][f"pg_io_probe.{name}"] for name in ["max_busy_pct", "max_p99"]}
        self.assertEqual(settings, {"max_busy_pct": "99", "max_p99": "0"})

    def test_slow_answers(self):
        """No request takes less than a microsecond: each probe ends at once, and says why."""
        for probe, query in self.probes(longest="30 s", max_p99=0.001).items():
            with self.subTest(probe):
                rows = self.session.rows(query)
                if probe == "recommend":
                    self.assertEqual([row["recommended"] for row in rows], [None])
                    self.assertIn(SLOW_NOTE, rows[0]["why"])
                    continue
                notes = [note for row in rows for note in row["notes"]]
                self.assertIn(SLOW_NOTE, notes, rows)
                if not probe.startswith("ping"):
                    self.assertEqual({row["status"] for row in rows} - {"unsupported"}, {"partial"}, rows)
                for row in rows:
                    self.assertFalse(row.get("complete"), row)
                if len(rows) == 1:
                    self.assertGreater(rows[0].get("blks") or rows[0].get("ops") or 1, 0, rows)
                # Where the kernel reads ahead, few requests wait for the device.
                bound = BLOCKS if probe in ["seqscan, os", "seqscan, server"] else BLOCKS / 2
                for row in rows:
                    self.assertLess(row.get("blks") or row.get("ops") or 0, bound, row)

    def test_nothing_else_of_the_statement_begins(self):
        """A device that was too slow for one probe is so for the next ones, until another statement begins."""
        query = """SELECT s.* FROM generate_series(1, 6) AS n, LATERAL io_probe_seqscan_full('probed', '{direct}',
            options => jsonb_build_object('start_blk', n, 'max_p99', 0.001)) AS s"""
        for _ in range(2):
            rows = self.session.rows(query)
            self.assertEqual([(row["status"], row["notes"][-1:]) for row in rows], [("partial", [SLOW_NOTE])] * 6)
            self.assertEqual([(row["blks"] or 0) > 0 for row in rows], [True] + [False] * 5)
        after = """SELECT p.* FROM io_probe_ping_full('probed', count => 20, every => '0', options => '{"max_p99": 0.001}') AS s
            CROSS JOIN LATERAL io_probe_ping_full('probed', count => 1 + s.blkno::int % 2) AS p"""
        self.assertEqual({row["request"] for row in self.session.rows(after)}, {None})
        rows = self.session.rows(
            rows_of("recommend", "probed", cold=True, writes=True, duration="2 s", options={"max_p99": 0.001})
        )
        # What is known without a measurement.
        known = ["checkpoint_completion_target", "autovacuum_vacuum_cost_limit"]
        self.assertEqual({row["recommended"] for row in rows if row["setting"] not in known}, {None})
        begun = {row["setting"] for row in rows if row["evidence"]}
        self.assertNotIn("wal_sync_method", begun, rows)
        for row in rows:
            if row["setting"] in ["read_ahead_kb", "wal_sync_method"]:
                self.assertEqual(row["why"], SLOW_NOTE)

    def test_a_large_readahead(self):
        """Copies of what was read ahead don't hide that the device is slow, and by themselves are never slow."""
        self.disk.set_queue(self.disk.limits[0], 4096)
        self.addCleanup(self.disk.set_queue, *self.disk.limits)
        with self.load():
            for path in ["server", "os"]:
                with self.subTest(path):
                    # The scan is just 32 windows, of which eleven must be waited for.
                    scan = seqscan("probed", path, cold=True, options={"max_p99": 0.3})
                    notes = [note for _ in range(5) for row in self.session.rows(scan) for note in row["notes"]]
                    self.assertIn(SLOW_NOTE, notes)
        self.session.rows(seqscan("probed", "os"))
        (row,) = self.session.rows(seqscan("probed", "os", options={"max_p99": 0.001}))
        self.assertEqual((row["status"], row["complete"]), ("ok", True), row)

    def test_fast_answers(self):
        """A bound that is not passed changes nothing."""
        for probe, query in self.probes(max_p99=60_000).items():
            with self.subTest(probe):
                rows = self.session.rows(query)
                self.assertNotIn(SLOW_NOTE, str(rows))
        for path in PATHS:
            (row,) = self.session.rows(self.probes()[f"seqscan, {path}"])
            self.assertTrue(row["complete"], row)

    def test_the_cap_bounds_those_who_give_none(self):
        """Requests of 4 MiB, 16 at a time, take some ten milliseconds on any device."""
        query = rows_of("seqscan", "probed", paths=["direct", "os"], chunk_kb=4096, depth=16)
        self.session.run("SET pg_io_probe.max_p99 = '1ms'")
        direct, os_path = self.session.rows(query)
        for row in [direct, os_path]:
            self.assertEqual((row["status"], row["complete"]), ("partial", False), row)
        for row in [direct, os_path]:
            self.assertIn(SLOW + "pg_io_probe.max_p99", row["notes"])
        # More patience needs the right to set the cap.
        with self.assertRaises(Failure) as raised:
            self.session.rows(rows_of("seqscan", "probed", options={"max_p99": 1.001}))
        self.assertEqual(raised.exception.sqlstate, "22023")
        self.session.run("SET pg_io_probe.max_p99 = '1min'")
        self.assertEqual([row["complete"] for row in self.session.rows(query)], [True, True])


if __name__ == "__main__":
    main()
