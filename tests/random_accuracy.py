#!/usr/bin/env -S python3 -B
"""Random fetches against other sources: a device that only these tests read, the OS cache, the buffer manager.

Needs root, for a loop device.
"""

import os
import shutil
import unittest

from lib import BLOCK, PATHS, VERSION, Session, create_extension, dense_table, engines, main, needs_root, random_reads
from lib import rows_of, say, segment_file, server_with
from storage import LoopDevice, assert_about, assert_fetched, assert_keeps, cache_only, cached, create_tablespace
from storage import every_second_mib, fincore, shares

BLOCKS = 2048
BYTES = BLOCKS * BLOCK
MIB = 1 << 20
# Bytes of a page of the kernel's.
PAGE = os.sysconf("SC_PAGE_SIZE")


def setUpModule():
    needs_root()
    if not shutil.which("fincore"):
        raise unittest.SkipTest("no fincore")


class RandomAccuracy(unittest.TestCase):
    """A table on a device of its own, cold, without readahead unless a test sets one."""

    @classmethod
    def setUpClass(cls):
        cls.disk = LoopDevice(16 * BYTES, direct=True)
        cls.addClassCleanup(cls.disk.remove)
        cls.session = Session()
        cls.addClassCleanup(cls.session.close)
        cls.place = create_tablespace(cls.session, "elsewhere", cls.disk.mount_point)
        cls.addClassCleanup(cls.session.run, "DROP TABLESPACE elsewhere")
        dense_table(cls.session, "dense", BLOCKS, cls.place)
        cls.addClassCleanup(cls.session.run, "DROP TABLE dense")

    def setUp(self):
        self.set_queue()
        self.session.run("RESET pg_io_probe.engine; SET pg_io_probe.max_duration = '10 min'")
        self.make_cold()

    def set_queue(self, max_sectors_kb=512, read_ahead_kb=0):
        self.disk.set_queue(max_sectors_kb, read_ahead_kb)

    def file(self):
        return segment_file(self.session, "dense")

    def make_cold(self):
        self.disk.make_cold(self.session, "dense")

    def cached(self, ranges):
        """Meanwhile the OS cache has just these byte ranges of the table's file; at first shared buffers have nothing of it."""
        self.make_cold()
        return cached(self.file(), ranges)

    def fetch(self, path, relation="dense", status="ok", **arguments):
        """Fetches on one path, and checks what holds for every row."""
        row = self.session.row(random_reads(relation, path, **arguments))
        self.assertEqual(row["status"], status, row)
        tiers = [row["shared_blks_hit"], row["os_blks_hit"], row["device_blks_read"]]
        self.assertNotIn(None, tiers, row)
        self.assertEqual(sum(tiers), row["blks"] - row["hole_blks"], row)
        self.assertAlmostEqual(sum(shares(row)), 100, delta=0.01)
        for tier, share in zip(tiers, shares(row)):
            self.assertAlmostEqual(share, tier * 100 / sum(tiers), delta=0.01)
        if row["iops"] is not None:  # it takes more than a few blocks
            assert_about(self, row["mib_s"], row["iops"] * BLOCK / MIB, 0.001)
        return row


class Device(RandomAccuracy):
    """Requests and bytes."""

    def test_direct_fetches_each_block_once(self):
        for engine in engines(self.session):
            for depth in [1, 8]:
                with self.subTest(engine, depth=depth):
                    self.session.run(f"SET pg_io_probe.engine = {engine}")
                    before = self.disk.settled_counters()
                    row = self.fetch("direct", depth=depth)
                    after = self.disk.counters()
                    expected = engine if depth > 1 else "pread"
                    self.assertEqual((row["engine"], row["device_source"]), (expected, "backend"))
                    self.assertEqual((row["blks"], row["complete"], row["hole_blks"]), (BLOCKS, True, 0))
                    self.assertEqual(row["device_blks_read"], BLOCKS)
                    assert_fetched(self, row["device_bytes"], BYTES)
                    self.assertTrue(row["cold"])
                    assert_about(self, row["over_read"], row["device_bytes"] / BYTES, 0.001)
                    assert_about(self, after["bytes"] - before["bytes"], BYTES, 0.001)
                    assert_about(self, row["device_ios"], BLOCKS, 0.001)
                    # None of it came into the OS cache.
                    self.assertEqual(fincore(self.file()), 0)

    def test_what_is_dirty_is_written_back_before_the_looks_at_the_device(self):
        for probe, arguments in [("random", {"paths": ["direct"]}), ("depth", {"depths": [1], "duration": "200 ms"})]:
            with self.subTest(probe):
                self.session.run("VACUUM FULL dense")
                with open(self.file(), "r+b") as file:
                    content = file.read()
                    file.seek(0)
                    file.write(content)
                row = self.session.row(rows_of(probe, "dense", **arguments))
                self.assertTrue(any("were written back first" in note for note in row["notes"]), row)
                self.assertEqual((row["status"], row["device_pct"]), ("ok", 100))
                if probe == "random":
                    self.assertLess(row["other_bytes"], BYTES * 0.01)

    def test_a_part_is_accounted_for_as_a_part(self):
        for path in PATHS:
            for depth in [1, 8]:
                with self.subTest(path, depth=depth):
                    self.make_cold()
                    row = self.fetch(path, depth=depth, options={"max_bytes": BYTES // 8})
                    self.assertEqual((row["blks"], row["complete"]), (BLOCKS // 8, False))
                    self.assertEqual(row["device_blks_read"], BLOCKS // 8)
                    if row["device_source"] == "io_workers":  # which serve everyone
                        assert_about(self, row["device_bytes"], BYTES // 8, 0.01)
                    else:
                        assert_fetched(self, row["device_bytes"], BYTES // 8)

    def test_splits(self):
        """A block in one request or in two, by the limits of the queue."""
        for path, limits, expected in [
            ("os", {"read_ahead_kb": 0}, 2),  # which makes the kernel read page by page
            ("os", {"read_ahead_kb": 16}, 1),
            ("os", {"read_ahead_kb": 16, "max_sectors_kb": 4}, 2),
            ("direct", {"read_ahead_kb": 0}, 1),
            ("direct", {"read_ahead_kb": 16, "max_sectors_kb": 4}, 2),
        ]:
            with self.subTest(path, **limits):
                self.set_queue(**limits)
                before = self.disk.settled_counters()
                row = self.fetch(path, cold=True, seed=1, options={"max_bytes": BYTES // 8})
                after = self.disk.counters()
                say(f"{path}, {limits}: {row['ios_per_block']} requests a block of {row['rareq_kb']} kB")
                # Nearly all of these reads were ours; the others are the file system's, which may look something up.
                others = row["other_bytes"] / (BYTES // 8)
                assert_about(self, row["ios_per_block"], expected, 0.01 + others)
                assert_about(self, row["rareq_kb"], BLOCK / 1024 / expected, 0.01 + others)
                assert_about(self, row["device_ios"], after["reads"] - before["reads"], 0.01)
                assert_about(self, row["device_bytes"], BYTES // 8, 0.01)
                self.assertLess(others, 0.05)

    def test_over_read(self):
        """Readahead of a large window reads around the blocks, and more so if more of the file is cached already."""
        found = {}
        for read_ahead_kb, percent in [(16, 2), (16, 40), (128, 2), (128, 40), (4096, 2), (4096, 40)]:
            self.set_queue(read_ahead_kb=read_ahead_kb)
            row = self.fetch("os", cold=True, seed=1, options={"max_bytes": BYTES * percent // 100})
            say(f"read_ahead_kb {read_ahead_kb}, {percent} %: over_read {row['over_read']}, {row['os_blks_hit']} hits")
            assert_about(self, row["over_read"], row["device_bytes"] / (row["device_blks_read"] * BLOCK), 0.001)
            # What was fetched is in the OS cache now, and nothing else.
            assert_keeps(self, fincore(self.file()), row["device_bytes"])
            found[read_ahead_kb, percent] = row["over_read"]
        for read_ahead_kb in [16, 128]:
            assert_about(self, found[read_ahead_kb, 2], 1, 0.01)
        self.assertGreater(found[4096, 40], 1.05)
        self.assertGreater(found[4096, 40], found[4096, 2])

    def test_blocks_that_were_never_written(self):
        dense_table(self.session, "ending_in_a_hole", 256, self.place)
        self.addCleanup(self.session.run, "DROP TABLE ending_in_a_hole")
        os.truncate(segment_file(self.session, "ending_in_a_hole"), 1024 * BLOCK)
        for path in PATHS:
            for depth in [1, 8]:
                with self.subTest(path, depth=depth):
                    row = self.fetch(path, "ending_in_a_hole", depth=depth)
                    self.assertEqual((row["blks"], row["hole_blks"], row["blks_total"]), (1024, 768, 1024))
                    self.assertEqual(row["complete"], True)

    def test_depths(self):
        for engine in engines(self.session):
            with self.subTest(engine):
                self.session.run(f"SET pg_io_probe.engine = {engine}")
                before = self.disk.settled_counters()
                rows = self.session.rows(rows_of("depth", "dense", depths=[4, 1], duration="1 s"))
                after = self.disk.counters()
                self.assertEqual([(row["depth"], row["engine"]) for row in rows], [(1, "pread"), (4, engine)])
                for row in rows:
                    self.assertEqual((row["status"], row["device_pct"]), ("ok", 100))
                    assert_about(self, row["mib_s"], row["iops"] * BLOCK / MIB, 0.001)
                    self.assertGreater(row["blks"], row["depth"])
                # A probe goes through a small table again and again. The depths share the time, not evenly.
                self.assertGreaterEqual(sum(row["elapsed_ms"] for row in rows), 960)
                fetches = sum(row["blks"] for row in rows)
                assert_about(self, after["reads"] - before["reads"], fetches, 0.01)
                assert_about(self, after["bytes"] - before["bytes"], fetches * BLOCK, 0.01)


class Order(RandomAccuracy):
    """Which blocks are fetched."""

    def test_a_ping_reads_each_block_once_in_the_order_of_its_seed(self):
        orders = [self.order(seed) for seed in [7, 7, 8]]
        self.assertEqual(sorted(orders[0]), list(range(BLOCKS)))
        self.assertEqual(sorted(orders[2]), list(range(BLOCKS)))
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])
        self.assertNotEqual(orders[0], sorted(orders[0]))

    def test_the_seed_of_random_fetches(self):
        """The same seed fetches the same blocks: they are found in the OS cache."""
        tenth = {"max_bytes": BYTES // 10}
        given = self.fetch("os", options=tenth)["seed"]
        for path in ["os", "server"]:
            # Nothing keeps the blocks in the cache.
            self.assertGreater(self.fetch(path, seed=given, options=tenth)["os_pct"], 90)
        # Another seed fetches other blocks: a tenth of these are the same by chance, give or take 2 of 100.
        self.assertLess(self.fetch("os", seed=given + 1, options=tenth)["os_pct"], 25)
        # A ping with this seed reads the same blocks.
        served_by = [row["served_by"] for row in self.ping(100, given, "os")]
        self.assertGreater(served_by.count("os"), 90)

    def test_paths_of_a_call_keep_out_of_each_other_s_way(self):
        third = {"max_bytes": BYTES // 3}
        rows = self.session.rows(rows_of("random", "dense", options=third))
        self.assertEqual([(row["path"], row["device_pct"]) for row in rows], [(path, 100) for path in PATHS])
        assert_keeps(self, fincore(self.file()), 2 * (BLOCKS // 3) * BLOCK)

    def order(self, seed):
        return [row["blkno"] for row in self.ping(BLOCKS, seed)]

    def ping(self, count, seed, path="direct"):
        query = rows_of("ping", "dense", count=count, every="0", path=path, options={"seed": seed})
        return self.session.rows(query)


class Tiers(RandomAccuracy):
    """Which tier served a fetch."""

    def test_shares_of_what_is_cached_in_part(self):
        for path, depth in [("server", 1), ("os", 1), ("os", 8)]:
            for what, ranges in [("half", [(0, BYTES // 2)]), ("every second MiB", every_second_mib(BYTES)),
                                 ("all", [(0, BYTES)]), ("nothing", [])]:
                with self.subTest(path, cached=what, depth=depth):
                    with self.cached(ranges):
                        expected = fincore(self.file()) * 100 / BYTES
                        row = self.fetch(path, depth=depth)
                    self.assertEqual(row["complete"], True)
                    self.assertEqual(row["shared_pct"], 0)
                    self.assertAlmostEqual(row["os_pct"], expected, delta=1)
                    self.assertAlmostEqual(row["device_pct"], 100 - expected, delta=1)
                    self.assert_times(f"{path}, {what} cached, depth {depth}", row)

    def test_half_of_a_block_is_cached(self):
        """A page of the kernel's is half of a block. Every sixteenth block lacks one page, which is read."""
        blocks = BLOCKS // 16
        for path, depth in [("os", 1), ("server", 1), ("server", 16)]:
            with self.subTest(path, depth=depth):
                with self.cached(but_for_a_page(0)):
                    row = self.fetch(path, depth=depth)
                assert_fetched(self, row["device_bytes"], blocks * PAGE)
                self.assertEqual(row["device_blks_read"], blocks)

    def test_three_tiers(self):
        """The first half is in shared buffers, and of each half every fourth MiB is in the OS cache."""
        self.fill_buffers(BLOCKS // 2)
        with cached(self.file(), every_second_mib(BYTES)[::2]):
            in_buffers = self.resident()
            row = self.fetch("server")
        self.assertEqual(row["shared_blks_hit"], in_buffers)
        assert_about(self, row["os_blks_hit"], BLOCKS // 8, 0.01)
        assert_about(self, row["device_blks_read"], BLOCKS // 8 * 3, 0.01)
        assert_fetched(self, row["device_bytes"], row["device_blks_read"] * BLOCK)
        self.assert_times("three tiers", row)

    def test_all_in_shared_buffers(self):
        dense_table(self.session, "small", 512, self.place)
        self.addCleanup(self.session.run, "DROP TABLE small")
        self.session.run("SELECT count(*) FROM small")
        cache_only(segment_file(self.session, "small"), [])
        for depth in [1, 16]:
            with self.subTest(depth=depth):
                row = self.fetch("server", "small", depth=depth)
                self.assertEqual((row["blks"], row["complete"]), (512, True))
                assert_fetched(self, row["device_bytes"], 0)
                self.assertEqual((shares(row), row["cold"]), ([100, 0, 0], False))
                if depth == 1:
                    self.assert_times("all in shared buffers", row)
        # The os path does not use shared buffers.
        self.assertEqual(shares(self.fetch("os", "small")), [0, 0, 100])

    def test_the_server_at_a_depth(self):
        """The server doesn't tell when it reads which block: there are sums, but no times."""
        (method,) = self.session.run("SELECT current_setting('io_method', true)")
        for what, ranges in [("nothing", []), ("every second MiB", every_second_mib(BYTES)), ("all", [(0, BYTES)])]:
            with self.subTest(cached=what):
                with self.cached(ranges):
                    row = self.fetch("server", depth=16)
                say(f"{what} cached, {row['engine']}: {row['iops']} IOPS, shared, os, device {shares(row)}")
                self.assertEqual((row["blks"], row["complete"], row["depth"]), (BLOCKS, True, 16))
                self.assertIn(method, row["engine"])
                self.assertEqual({row[name] for name in row if name.startswith("lat_") or name.endswith("_us")}, {None})
                self.assertEqual(row["device_source"], "io_workers" if method == "worker" else "backend")
                missing = BLOCKS - sum(length for _, length in ranges) // BLOCK
                self.assertAlmostEqual(row["device_blks_read"], missing, delta=BLOCKS / 100)
                self.assertAlmostEqual(row["device_bytes"], missing * BLOCK, delta=BYTES / 100)

    def test_who_served_a_ping(self):
        for path in ["os", "direct"]:
            with self.cached(every_second_mib(BYTES)):
                rows = self.session.rows(rows_of("ping", "dense", count=500, every="0", path=path))
            self.assertEqual(len(rows), 500)
            for row in rows:
                in_cache = path == "os" and row["blkno"] * BLOCK // MIB % 2 == 0
                self.assertEqual(row["served_by"], "os" if in_cache else "device", row)

    def test_cold_is_cold(self):
        """Also after a scan with readahead, whose large folios can't be dropped block by block."""
        for path in ["server", "os"]:
            for read_ahead_kb in [0, 16]:
                with self.subTest(path, read_ahead_kb=read_ahead_kb):
                    self.set_queue(read_ahead_kb=1024)
                    with open(self.file(), "rb") as file:
                        while file.read(MIB):
                            pass
                    assert_keeps(self, fincore(self.file()), BYTES)
                    self.set_queue(read_ahead_kb=read_ahead_kb)
                    row = self.fetch(path, cold=True, options={"max_bytes": BYTES // 4})
                    self.assertIs(row["cold"], True)
                    self.assertGreater(row["device_pct"], 99)
                    self.assertGreater(row["blks"], BLOCKS // 5)
                    # Readahead brings in a few of the neighbours.
                    self.assertTrue(0.99 <= row["device_bytes"] / (row["blks"] * BLOCK) <= 1.1, row)
                    assert_keeps(self, fincore(self.file()), row["device_bytes"])
                    # Printed, not judged: they should differ by no more than 10 % and 3 us.
                    direct = self.fetch("direct", options={"max_bytes": BYTES // 4})
                    say(f"{path}, readahead {read_ahead_kb}: {row['device_us']} us, direct {direct['device_us']} us")

    def assert_times(self, what, row):
        """Each tier has its own mean, and together they make the mean of all."""
        counts = [row["shared_blks_hit"], row["os_blks_hit"], row["device_blks_read"]]
        times = [row["shared_us"], row["os_us"], row["device_us"]]
        say(f"{what}: blocks {counts}, us {times}")
        if row["depth"] > 1:  # where a hit waits until it is seen
            self.assertEqual([time is None for time in times], [True, True, counts[2] == 0])
            return
        self.assertEqual([time is None for time in times], [count == 0 for count in counts])
        total = sum(count * time for count, time in zip(counts, times) if count)
        assert_about(self, row["lat_us"], total / sum(counts), 0.02)

    def fill_buffers(self, blocks):
        """Reads the first blocks of the table into shared buffers."""
        self.session.run("SET enable_seqscan = off")
        self.session.run(f"SELECT count(*) FROM dense WHERE ctid < '({blocks},0)'")
        self.session.run("RESET enable_seqscan")

    def resident(self):
        """Blocks of the table in shared buffers, by contrib's count."""
        if not create_extension(self.session, "pg_buffercache"):
            self.skipTest("no pg_buffercache")
        return self.session.value(
            """SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('dense')
            AND relforknumber = 0 AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())"""
        )


class PastTheCache(unittest.TestCase):
    """A server that reads past the OS cache."""

    def test_what_is_cached_does_not_matter(self):
        if VERSION < 16:
            self.skipTest("no debug_io_direct")
        with server_with(debug_io_direct="data"), Session() as session:
            dense_table(session, "past", BLOCKS)
            self.addCleanup(drop, "past")
            for depth in [1, 16]:
                session.run("VACUUM FULL past; CHECKPOINT")
                # Whole blocks are cached, and some blocks but for a page.
                cache_only(segment_file(session, "past"), [(0, BYTES // 2), *but_for_a_page(BYTES // 2)])
                row = session.row(random_reads("past", "server", depth=depth))
                self.assertEqual(shares(row), [0, 0, 100], row)
                self.assertEqual(row["device_blks_read"], BLOCKS, row)
                assert_fetched(self, row["device_bytes"], BYTES)


def drop(table):
    with Session() as session:
        session.run(f"DROP TABLE {table}")


def but_for_a_page(start):
    """From `start` on, all but the first page of every sixteenth block."""
    stride = 16 * BLOCK
    return [(place + PAGE, stride - PAGE) for place in range(start, BYTES, stride)]


if __name__ == "__main__":
    main()
