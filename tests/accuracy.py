#!/usr/bin/env -S python3 -B
"""The figures of probes against other sources: the kernel's tools, the file, the buffer manager, arithmetic."""

import mmap
import os
import shutil
import threading
import time
import unittest

from lib import BLOCK, PATHS, PGDATA, TEST_TMP, VERSION, Session, create_extension, dense_table, engines, main
from lib import say, segment_file, seqscan, wait_for_probe
from storage import assert_about, assert_fetched, assert_keeps, cached, device_counters, every_second_mib, fincore
from storage import locked, shares

BLOCKS = 8192
BYTES = BLOCKS * BLOCK
MIB = 1 << 20


def setUpModule():
    if os.major(os.stat(PGDATA).st_dev) == 0:
        raise unittest.SkipTest("the data directory is on no block device of its own (tmpfs, overlay, btrfs)")


class Accuracy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = Session()
        dense_table(cls.session, "dense", BLOCKS)

    @classmethod
    def tearDownClass(cls):
        cls.session.run("DROP TABLE dense")
        cls.session.close()

    def scan(self, path, relation="dense", status="ok", **arguments):
        row = self.session.row(seqscan(relation, path, **arguments))
        self.assertEqual(row["status"], status, row)
        return row

    def renew(self):
        """Makes a new file of the table, dense, clean and in no shared buffer."""
        self.session.run("VACUUM FULL dense; CHECKPOINT")


class Device(Accuracy):
    """Bytes fetched."""

    def test_direct_fetches_what_it_asks_for(self):
        for engine in engines(self.session):
            with self.subTest(engine):
                self.session.run(f"SET pg_io_probe.engine = {engine}")
                row = self.scan("direct")
                self.assertEqual((row["engine"], row["device_source"], row["hole_blks"]), (engine, "backend", 0))
                self.assertEqual((row["blks"], row["complete"]), (BLOCKS, True))
                assert_about(self, row["device_bytes"], BYTES, 0.001)
                self.assertEqual(shares(row), [0, 0, 100])
                assert_about(self, row["mib_s"] * row["block_us"], 1e6 * BLOCK / MIB, 0.001)
                if row["ci_low"] is not None:  # it needs 20 ms, which a fast device doesn't
                    self.assertTrue(row["ci_low"] <= row["block_us"] <= row["ci_high"], row)
        self.session.run("RESET pg_io_probe.engine")

    def test_a_part_is_accounted_for_as_a_part(self):
        for path in PATHS:
            with self.subTest(path):
                row = self.scan(path, cold=True, options={"max_bytes": BYTES // 4, "start_blk": 100})
                self.assertEqual((row["blks"], row["complete"]), (BLOCKS // 4, False))
                if path == "direct":
                    assert_about(self, row["device_bytes"], BYTES / 4, 0.001)
                else:  # readahead runs past the end
                    self.assertGreaterEqual(row["device_bytes"], BYTES / 4 * 0.99)
                self.assertGreater(row["device_pct"], 99)

    def test_blocks_that_were_never_written_cost_nothing(self):
        """A bulk load reserves blocks, and the checkpointer writes them later."""
        self.session.run(f"COPY dense TO '{TEST_TMP}/rows'; CREATE TABLE loaded (LIKE dense INCLUDING STORAGE)")
        self.session.run(f"COPY loaded FROM '{TEST_TMP}/rows'")
        # The second time, the OS cache holds zero pages for the holes.
        for when in ["after COPY", "once read"]:
            row = self.scan("direct", "loaded")
            say(f"{when} {row['hole_blks']} of {row['blks']} blocks are holes")
            self.assertEqual((row["blks"], row["complete"]), (row["blks_total"], True))
            if VERSION >= 16:
                self.assertGreater(row["hole_blks"], BLOCKS / 10)
            assert_about(self, row["device_bytes"] + row["hole_blks"] * BLOCK, row["blks"] * BLOCK, 0.02)
            row = self.scan("os", "loaded")
            self.assertEqual((row["blks"], row["complete"]), (row["blks_total"], True))
        self.session.run("CHECKPOINT")
        row = self.scan("direct", "loaded")
        self.assertLess(row["hole_blks"], BLOCKS / 20)
        assert_about(self, row["device_bytes"] + row["hole_blks"] * BLOCK, row["blks"] * BLOCK, 0.001)
        self.session.run("DROP TABLE loaded")

    def test_reads_of_others_are_told_apart(self):
        device = self.scan("direct")["device"].split(",")
        at_first = device_counters(device)
        with OtherReader() as other, Session() as prober:
            prober.start_rows(seqscan("dense", "direct", options={"max_mib_s": BYTES // MIB // 4}))
            wait_for_probe(self.session, prober.pid)
            before = other.bytes
            time.sleep(0.5)
            during = other.bytes - before
            self.assertTrue(prober.busy())
            (row,) = prober.finish_rows()
        at_last = device_counters(device)
        say(f"others read {during // MIB} MiB during a part of the probe; other_bytes: {row['other_bytes'] // MIB} MiB")
        assert_about(self, row["device_bytes"], BYTES, 0.001)
        self.assertGreater(during, MIB)
        self.assertGreaterEqual(row["other_bytes"], during)
        self.assertLessEqual(row["other_bytes"] + row["device_bytes"], at_last["bytes"] - at_first["bytes"])
        self.assertGreaterEqual(row["device_ios"], during / (4 * MIB))
        self.assertLessEqual(row["device_ios"], at_last["reads"] - at_first["reads"])
        # The limit was to make this last a second.
        self.assertGreater(row["elapsed_ms"], 900)

    def test_the_server_path_accounts_for_its_reads(self):
        """The reads are in the backend's account or in the I/O workers', by this server's io_method."""
        (method,) = self.session.run("SELECT current_setting('io_method', true)")
        row = self.scan("server", cold=True)
        say(f"{row['engine']}: {row['device_bytes'] / BYTES:.3f} of the bytes by {row['device_source']}")
        self.assertIn(method, row["engine"])
        self.assertEqual(row["device_source"], "io_workers" if method == "worker" else "backend")
        assert_about(self, row["device_bytes"], row["blks"] * BLOCK, 0.01)
        self.assertGreater(row["device_pct"], 99)
        # The OS cache has the table now.
        with locked(segment_file(self.session, "dense"), [(0, BYTES)]):
            row = self.scan("server")
        assert_fetched(self, row["device_bytes"], 0)
        self.assertEqual(row["device_pct"], 0)


class SharedBuffers(Accuracy):
    """Hits and reads."""

    def assert_all_counted(self, row):
        counted = row["shared_blks_hit"] + row["shared_blks_read"]
        self.assertEqual((counted, row["local_blks_hit"], row["local_blks_read"]), (row["blks"], None, None))

    def test_the_first_call_of_a_session_counts_nothing_of_the_catalogs(self):
        resident = self.resident()
        with Session() as session:
            row = session.row(seqscan("dense", "server"))
        self.assert_all_counted(row)
        self.assertEqual((row["blks"], row["shared_blks_hit"]), (BLOCKS, resident))

    def test_half_of_it_in_shared_buffers(self):
        self.renew()
        self.session.run("SET enable_seqscan = off")
        self.session.run(f"SELECT count(*) FROM dense WHERE ctid < '({BLOCKS // 2},0)'")
        resident = self.resident()
        self.assertGreaterEqual(resident, BLOCKS // 2)
        cache = self.session.row("SELECT * FROM io_probe_cache('dense')")
        self.assertEqual((cache["shared_blks"], cache["blks_total"]), (resident, BLOCKS))
        row = self.scan("server")
        self.assert_all_counted(row)
        self.assertEqual(row["shared_blks_hit"], resident)
        assert_about(self, row["shared_pct"], resident * 100 / BLOCKS, 0.01)
        resident = self.resident()
        # With cold these blocks are evicted. A server up to 16 can't do that: the probe passes over them, too many for a rate.
        row = self.scan("server", cold=True, status="ok" if VERSION >= 17 else "partial")
        self.assert_all_counted(row)
        self.assertEqual((row["cold"], row["shared_blks_hit"]), (True, 0))
        self.assertEqual(row["blks"], BLOCKS if VERSION >= 17 else BLOCKS - resident)
        self.assertEqual(row["block_us"] is None, VERSION < 17)
        # The os path does not use shared buffers.
        self.assertEqual(self.scan("os")["blks"], BLOCKS)

    def test_a_scan_that_is_cut_short(self):
        """Blocks that the server has read ahead count, too."""
        for arguments in [
            {"options": {"max_bytes": 1000 * BLOCK}},
            {"options": {"start_blk": 7}},
            {"duration": "1 ms"},
        ]:
            with self.subTest(str(arguments)):
                row = self.scan("server", **arguments)
                self.assert_all_counted(row)
                self.assertGreater(row["blks"], 0)

    def test_temporary_tables(self):
        with Session() as session:
            dense_table(session, "pg_temp.fleeting", 512)
            for _ in range(2):
                rows = session.rows("SELECT * FROM io_probe_seqscan_full('fleeting')")
                self.assertEqual([row["blks"] for row in rows], [512] * 3)
                row = rows[1]
                self.assertEqual(row["local_blks_hit"] + row["local_blks_read"], 512)
                self.assertEqual((row["shared_blks_hit"], row["shared_blks_read"]), (None, None))

    def resident(self):
        """Blocks of the table in shared buffers, by contrib's count."""
        if not create_extension(self.session, "pg_buffercache"):
            self.skipTest("no pg_buffercache")
        return self.session.value(
            """SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('dense')
            AND relforknumber = 0 AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())"""
        )


class OsCache(Accuracy):
    """What the page cache held before a scan, and what it still held for a scan that should be cold."""

    def test_residency_is_what_fincore_says(self):
        for what, ranges in [("nothing", []), ("half", [(0, BYTES // 2)]), ("every second MiB", every_second_mib(BYTES)),
                             ("three pages", [(5 * BLOCK, 4096 * 3)])]:
            with self.subTest(what), self.cached(ranges):
                bytes_cached = fincore(self.file())
                self.assertEqual(bytes_cached, sum(length for _, length in ranges))
                row = self.session.row("SELECT * FROM io_probe_cache('dense')")
                self.assertEqual((row["os_cached_bytes"], row["os_dirty_bytes"]), (bytes_cached, 0))
                for engine in engines(self.session):
                    self.session.run(f"SET pg_io_probe.engine = {engine}")
                    self.assertEqual(self.scan("direct")["os_blks_cached"], -(-bytes_cached // BLOCK))
                # Looking changes nothing, nor do direct reads.
                self.assertEqual(fincore(self.file()), bytes_cached)
        self.session.run("RESET pg_io_probe.engine")

    def test_shares_of_what_is_cached_in_part(self):
        for path in ["server", "os"]:
            for what, ranges in [("half", [(0, BYTES // 2)]), ("every second MiB", every_second_mib(BYTES)),
                                 ("all", [(0, BYTES)]), ("nothing", [])]:
                with self.subTest(path, cached=what):
                    self.renew()
                    with self.cached(ranges):
                        expected = fincore(self.file()) * 100 / BYTES
                        row = self.scan(path)
                    say(f"{path}, {what} cached: shared, os, device {shares(row)}")
                    self.assertEqual(row["shared_pct"], 0)
                    self.assertAlmostEqual(row["os_pct"], expected, delta=1)
                    self.assertAlmostEqual(row["device_pct"], 100 - expected, delta=1)
                    self.assertAlmostEqual(sum(shares(row)), 100, delta=0.01)

    def test_cold_is_cold(self):
        """Also after a scan with readahead, whose large folios can't be dropped block by block, and with dirty pages."""

        def warm():
            self.scan("os")
            assert_keeps(self, fincore(self.file()), os.path.getsize(self.file()))

        def soil():
            # A probe passes over those that its server can't evict: these are few enough.
            self.session.run("UPDATE dense SET id = -id WHERE abs(id) <= 50")

        self.addCleanup(self.renew)
        for state in [warm, soil]:
            for path in PATHS:
                with self.subTest(path, state=state.__name__):
                    state()
                    row = self.scan(path, cold=True)
                    self.assertEqual((row["cold"], row["os_blks_cached"], row["complete"]), (True, 0, True))
                    self.assertGreater(row["device_pct"], 99)
                    # The kernel reads ahead the blocks that the probe passes over.
                    self.assertGreaterEqual(row["device_bytes"], row["blks"] * BLOCK * 0.99)
                    self.assertLessEqual(row["device_bytes"], row["blks_total"] * BLOCK * 1.01)
                    self.assertNotIn("not cold", " ".join(row["notes"]))
                    if path == "direct":
                        self.assertEqual(fincore(self.file()), 0)
        self.scan("os")
        self.assertIs(self.scan("os")["cold"], False)

    def test_eviction(self):
        self.addCleanup(self.renew)
        self.session.run("UPDATE dense SET id = -id WHERE abs(id) <= 50")
        self.scan("os")
        held = fincore(self.file())
        row = self.session.row("SELECT * FROM io_probe_evict('dense')")
        assert_keeps(self, row["os_bytes_before"], held)
        self.assertEqual(row["os_bytes_after"], 0)
        self.assertEqual(fincore(self.file()), 0)
        self.assertGreater(row["shared_blks_before"], 0)
        self.assertEqual((row["shared_blks_after"] == 0, row["complete"]), (VERSION >= 17, VERSION >= 17))

    def file(self):
        return segment_file(self.session, "dense")

    def cached(self, ranges):
        """Meanwhile the OS cache has just these byte ranges of the table's file."""
        self.session.run("CHECKPOINT")
        return cached(self.file(), ranges)

    @classmethod
    def setUpClass(cls):
        if not shutil.which("fincore"):
            raise unittest.SkipTest("no fincore")
        super().setUpClass()


class OtherReader:
    """Reads a file past the OS cache again and again, and counts the bytes."""

    SIZE = 32 * MIB

    def __enter__(self):
        self.path = os.path.join(TEST_TMP, "other")
        with open(self.path, "wb") as file:
            file.write(os.urandom(self.SIZE))
            os.fsync(file.fileno())
        self.bytes = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        return self

    def read(self):
        file = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        buffer = mmap.mmap(-1, MIB)
        while not self.over.is_set():
            self.bytes += os.preadv(file, [buffer], self.bytes % self.SIZE)
        os.close(file)

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        os.unlink(self.path)


if __name__ == "__main__":
    main()
