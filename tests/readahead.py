#!/usr/bin/env -S python3 -B
"""The curve over readahead windows, against the counters of a device that only these tests read, and its queue's setting.

Needs root, for a loop device.
"""

import os
import re
import shlex
import shutil
import unittest

from lib import BLOCK, Failure, Session, create_extension, dense_table, engines, main, needs_root, progress, repeated
from lib import rows_of, say, segment_file, seqscan, wait_for
from storage import LoopDevice, assert_about, assert_fetched, assert_keeps, cache_only, create_tablespace, fincore, run

# A turn holds each window of these tests a whole number of times.
TURN = 1280
BLOCKS = 3 * TURN
MIB = 1 << 20
LARGEST_REQUEST_KB = 1280
FIGURES = ["mib_s", "block_us", "ci_low", "ci_high", "cache_us", "best"]


def setUpModule():
    needs_root()
    if not shutil.which("fincore"):
        raise unittest.SkipTest("no fincore")


class Readahead(unittest.TestCase):
    """A table on a device of its own."""

    disk_options = {"direct": True}

    @classmethod
    def setUpClass(cls):
        cls.disk = LoopDevice(6 * BLOCKS * BLOCK, **cls.disk_options)
        cls.addClassCleanup(cls.disk.remove)
        cls.name = os.path.basename(cls.disk.device)
        cls.session = Session()
        cls.addClassCleanup(cls.session.close)
        cls.place = create_tablespace(cls.session, "elsewhere", cls.disk.mount_point)
        cls.addClassCleanup(cls.session.run, "DROP TABLESPACE elsewhere")
        dense_table(cls.session, "dense", BLOCKS, cls.place)
        cls.addClassCleanup(cls.session.run, "DROP TABLE dense")
        run("sync", "-f", cls.disk.mount_point)

    def setUp(self):
        self.disk.set_queue(LARGEST_REQUEST_KB, 128)
        # Bytes end a call, not time, however busy the machine is.
        self.session.run("RESET pg_io_probe.engine; SET pg_io_probe.max_duration = '10 min'")

    def rows(self, *windows, turns=1):
        """A call with a warm-up and `turns` further turns of each window. Returns the kernel's row, and the others by window."""
        # In each round the kernel and its twin have a turn.
        options = {"max_bytes": 2 * (1 + turns) * TURN * BLOCK}
        rows = self.session.rows(rows_of("readahead", "dense", windows_kb=list(windows), duration="10 min", options=options))
        (kernel,) = [row for row in rows if row["mode"] == "kernel"]
        emulated = {row["window_kb"]: row for row in rows if row["mode"] == "emulated"}
        self.assertEqual(sorted(emulated), sorted({*windows} - {kernel["window_kb"]}))
        self.assertEqual([row["window_kb"] for row in rows], sorted({*windows, kernel["window_kb"]}))
        for row in rows:
            self.assertEqual((row["device"], row["spcname"]), (self.name, "elsewhere"))
        return kernel, emulated

    def assert_measured(self, row, turns=1):
        # With more bytes a turn is longer, up to the whole table.
        turn = TURN if turns == 1 else BLOCKS
        self.assertEqual((row["status"], row["blks"]), ("ok", row["turns"] * turn), row)
        self.assertTrue(1 <= row["turns"] <= turns, row)
        self.assertAlmostEqual(row["mib_s"] * row["block_us"], BLOCK / MIB * 1e6, delta=10)

    def setting(self):
        """The device's read_ahead_kb, as the server sees it."""
        return self.session.value("SELECT read_ahead_kb FROM io_probe_device_full() WHERE spcname = 'elsewhere'")


class Windows(Readahead):
    """What reaches the device, and what stays where it is."""

    def curve(self, *windows, turns=1):
        """The rows of a call that all have figures."""
        kernel, emulated = self.rows(*windows, turns=turns)
        for row in [kernel, *emulated.values()]:
            self.assert_measured(row, turns)
        return kernel, emulated

    def test_requests_of_one_window(self):
        for engine in engines(self.session):
            for windows in [[0, 8, 16, 64, 256, 320], [512, 640, 1024, 1280]]:
                with self.subTest(engine, windows=windows):
                    self.session.run(f"SET pg_io_probe.engine = {engine}")
                    self.requests_of_one_window(engine, windows)

    def requests_of_one_window(self, engine, windows):
        before = self.disk.settled_counters()
        kernel, emulated = self.curve(*windows)
        after = self.disk.counters()
        told = {window: row["rareq_kb"] for window, row in emulated.items()}
        say(f"{engine}: the kernel's at {kernel['window_kb']} kB {kernel['rareq_kb']}, emulated {told}")
        self.assertEqual((kernel["window_kb"], kernel["engine"]), (128, "pread"))
        self.assert_near_setting(kernel, 128)
        for window, row in emulated.items():
            self.assertEqual(row["engine"], engine)
            assert_fetched(self, row["device_bytes"], TURN * BLOCK)
            self.assertEqual(row["device_pct"], 100, row)
            # Without readahead each page of a block goes alone.
            request_kb = window or 4
            assert_about(self, row["rareq_kb"], request_kb, 0.01, row)
            assert_about(self, row["ios_per_block"], 8 / request_kb, 0.01, row)
            self.assertEqual(row["device_ios"], round(row["ios_per_block"] * TURN))
            self.assertLess(row["other_bytes"], TURN * BLOCK * 0.01)
        # The kernel's window counts twice, with its twin. Each window has two turns, of which the first is warm-up.
        turns = 2 * (2 + len(windows))
        assert_about(self, after["bytes"] - before["bytes"], turns * TURN * BLOCK, 0.01)

    def test_windows_beyond_the_largest_request_are_split(self):
        self.disk.set_queue(128, 64)
        kernel, emulated = self.curve(128, 512)
        self.assertEqual(kernel["window_kb"], 64)
        for window in [128, 512]:
            assert_about(self, emulated[window]["rareq_kb"], 128, 0.01)
            assert_about(self, emulated[window]["ios_per_block"], 8 / 128, 0.01)
            assert_fetched(self, emulated[window]["device_bytes"], TURN * BLOCK)

    def test_the_setting_in_force(self):
        """A change counts from the next call on, in a session that has the files open. For the twin, half blocks are made whole."""
        for setting, window, request_kb in [(16, 16, 16), (512, 512, 512), (20, 20, 20), (0, 0, 4), (128, 128, 128)]:
            with self.subTest(setting=setting):
                self.disk.set_queue(LARGEST_REQUEST_KB, setting)
                self.the_setting_in_force(setting, window, request_kb)

    def the_setting_in_force(self, setting, window, request_kb):
        kernel, emulated = self.curve(16, 128, 512)
        say(f"at {setting} kB: the kernel's {kernel['rareq_kb']} kB")
        self.assertEqual(kernel["window_kb"], window)
        self.assert_near_setting(kernel, request_kb)
        for row in [kernel, *emulated.values()]:
            self.assertEqual(row["read_ahead_kb"], setting)
        for row in emulated.values():
            assert_about(self, row["rareq_kb"], row["window_kb"], 0.01)
            self.assertEqual("cache_us is only approximate" in " ".join(row["notes"]), setting < 64, row["notes"])

    def assert_near_setting(self, kernel, request_kb):
        """The kernel makes some requests more than that: a scan's first windows are smaller, and the last goes beyond the turn."""
        least = TURN * BLOCK / 1024 / request_kb
        self.assertTrue(least * 0.99 <= kernel["device_ios"] <= least * 1.01 + 10, kernel)
        self.assertGreaterEqual(kernel["device_bytes"], TURN * BLOCK)
        self.assertLessEqual(kernel["device_bytes"], TURN * BLOCK + 2 * 1024 * request_kb)

    def test_how_to_set_a_window(self):
        # The best is told where each has had some turns.
        kernel, emulated = self.curve(16, 64, 1024, turns=60)
        rows = [kernel, *emulated.values()]
        (best,) = [row for row in rows if row["best"]]
        self.assertEqual({row["best"] for row in rows}, {True, False})
        say(f"best {best['window_kb']} of {[(row['window_kb'], row['mib_s']) for row in rows]}")
        for row in [*rows, best]:
            with self.subTest(row["blockdev_setra"]):
                self.disk.set_queue(LARGEST_REQUEST_KB, 256)
                self.assertEqual(self.setting(), 256)
                run(*shlex.split(row["blockdev_setra"]))
                self.assertEqual(self.setting(), row["window_kb"])
            with self.subTest(row["udev_rule"]):
                found = re.fullmatch(
                    r'ACTION=="add\|change", SUBSYSTEM=="block", KERNEL=="(\w+)", ATTR\{([\w/]+)\}="(\d+)"', row["udev_rule"]
                )
                name, attribute, value = found.groups()
                self.assertEqual((name, int(value)), (self.name, row["window_kb"]))
                self.assertTrue(os.path.samefile(f"/sys/class/block/{name}/{attribute}", self.disk.limit("read_ahead_kb")))
        # The best window was set last, and is in force.
        self.assertEqual(self.curve(64)[0]["window_kb"], best["window_kb"])

    def test_only_pages_of_the_relation_are_evicted(self):
        dense_table(self.session, "neighbour", TURN, self.place)
        self.addCleanup(self.session.run, "DROP TABLE neighbour")
        own, neighbour = segment_file(self.session, "dense"), segment_file(self.session, "neighbour")
        cache_only(own, every_mib(BLOCKS))
        cache_only(neighbour, every_mib(TURN))
        before = fincore(neighbour)
        assert_keeps(self, fincore(own), BLOCKS * BLOCK)
        assert_keeps(self, before, TURN * BLOCK)
        self.curve(16, 256)
        # The kernel's turn is the last of all, and reads ahead.
        say(f"cached: {fincore(own) / MIB:.1f} MiB, of the neighbour {fincore(neighbour) / MIB:.1f} of {before / MIB:.1f}")
        self.assertLess(fincore(own), TURN * BLOCK + MIB)
        assert_keeps(self, fincore(neighbour), before)
        cached = self.session.row("SELECT * FROM io_probe_cache('neighbour')")
        assert_keeps(self, cached["os_cached_bytes"], before)

    def test_shared_buffers_are_left_alone(self):
        if not create_extension(self.session, "pg_buffercache"):
            self.skipTest("no pg_buffercache")
        self.session.run("SET enable_seqscan = off; SELECT count(*) FROM dense WHERE ctid < '(500,0)'")
        before = self.session.value(BUFFERS)
        self.assertGreaterEqual(before, 500)
        self.curve(64)
        self.assertEqual(self.session.value(BUFFERS), before)

    def test_progress(self):
        """Other sessions see its progress, and begin no probe meanwhile. (Cancels are in cancel.py.)"""
        with Session() as prober:
            prober.start(repeated("readahead", "dense", windows_kb=[16, 64], duration="30 s"))
            seen = []
            wait_for(lambda: self.both_paths(prober, seen), "a turn of the kernel's, and an emulated one", 30)
            say(f"{len(seen)} looks, the last {(seen[-1]['path'], seen[-1]['done'], seen[-1]['total'])}")
            for row in seen:
                self.assertIn(row["path"], [None, "kernel", "emulated"])
                self.assertEqual((row["probe"], row["relid"]), ("readahead", "dense"))
                self.assertLessEqual(row["done"], row["total"], row)
            for earlier, later in zip(seen, seen[1:]):
                self.assertLessEqual(earlier["done"], later["done"])
            with self.assertRaises(Failure) as raised:
                self.session.run(seqscan("dense", "direct"))
            self.assertEqual(raised.exception.sqlstate, "55006")

    def both_paths(self, prober, seen):
        seen.extend([now] if (now := progress(self.session, prober.pid)) else [])
        return {"kernel", "emulated"} <= {row["path"] for row in seen}


class Journal(Readahead):
    """A file system that journals data refuses O_DIRECT."""

    disk_options = {"journals_data": True}

    def test_only_the_setting_in_force_is_measured(self):
        kernel, emulated = self.rows(16, 64, 512)
        say(f"kernel {kernel['rareq_kb']}, {emulated[16]['notes']}")
        self.assertEqual((kernel["window_kb"], kernel["engine"], kernel["best"]), (128, "pread", None))
        self.assert_measured(kernel)
        for row in emulated.values():
            self.assertEqual((row["status"], row["doubt"]), ("unsupported", "unsupported"))
            (note,) = row["notes"]
            self.assertTrue(note.startswith("O_DIRECT is not available: "), note)
            self.assertEqual({row[name] for name in FIGURES}, {None})
            self.assertEqual((row["turns"], row["blks"], row["engine"]), (0, 0, None))
        (advice,) = self.session.rows(rows_of("recommend", "dense", settings=["read_ahead_kb"], cold=True, duration="10 s"))
        self.assertIsNone(advice["recommended"])
        self.assertIn("no other window can be measured: O_DIRECT", advice["why"])


def every_mib(blocks):
    return [(start, MIB) for start in range(0, blocks * BLOCK, MIB)]


BUFFERS = "SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('dense')"


if __name__ == "__main__":
    main()
