#!/usr/bin/env -S python3 -B
"""Faults: devices that fail, files that are gone, no room. More are in crashes.py, signals.py, unusable_storage.py,
refused.py, ddl_races.py.

Needs root, to mount.
"""

import os
import re
import unittest

from lib import BLOCK, PATHS, PGDATA, SEGMENT_BLOCKS, TEST_TMP, Failure, Process, Session, dense_table, engines, main
from lib import needs_root, random_reads, rows_of, say, segment_file, seqscan, sparse_table, wait_for, wait_for_probe
from lib import ways
from storage import LoopDevice, create_tablespace, filled_but_for, run

BLOCKS = 2048
MIB = 1 << 20
setUpModule = needs_root


class Storage(unittest.TestCase):
    """Reads that fail, and scratch files without room."""

    def setUp(self):
        self.session = Session()
        self.addCleanup(self.session.close)

    def assert_fails(self, query, sqlstate, *words):
        """The query fails by this SQLSTATE and with these words, and leaves nothing behind."""
        process = Process(self.session.pid)
        before = process.threads(), process.descriptors()
        with self.assertRaises(Failure) as raised:
            self.session.rows(query)
        self.assertEqual(raised.exception.sqlstate, sqlstate, raised.exception)
        for word in words:
            self.assertRegex(str(raised.exception), word)
        self.assertEqual((process.threads(), process.descriptors()), before)
        self.assertEqual(self.session.rows("SELECT * FROM pg_locks WHERE locktype = 'advisory'"), [])

    def test_a_device_that_fails(self):
        disk = LoopDevice(64 * MIB)
        self.addCleanup(disk.remove)
        self.probed_table(BLOCKS, self.tablespace(disk.mount_point))
        path = segment_file(self.session, "probed")
        self.session.rows("SELECT * FROM io_probe_seqscan_full('probed')")
        self.session.run("SELECT * FROM io_probe_evict('probed')")
        with disk.cut_short_within(path):
            for way, (route, engine) in ways(self.session).items():
                self.session.run(f"SET pg_io_probe.engine = {engine}")
                for query in [seqscan("probed", route), random_reads("probed", route),
                              random_reads("probed", route, depth=8)]:
                    with self.subTest(query, way=way):
                        self.assert_read_fails(query, route, path)
            with self.subTest("depth"):
                self.assert_read_fails(rows_of("depth", "probed", depths=[1, 8], duration="1 min"), "direct", path)
            for query in [rows_of("page_cost", "probed", duration="10 s"),
                          rows_of("recommend", "probed", settings=["random_page_cost"], cold=True, duration="10 s"),
                          rows_of("explain", query="SELECT count(*) FROM probed", execute=True)]:
                with self.subTest(query):
                    self.session.run("SELECT * FROM io_probe_evict('probed')")
                    self.assert_read_fails(query, "server", path)
            with self.subTest("evict"):
                # Evicting reads nothing.
                self.session.rows("SELECT * FROM io_probe_evict('probed')")
            for route in ["direct", "os"]:
                with self.subTest("ping", path=route):
                    self.assert_read_fails(rows_of("ping", "probed", count=BLOCKS, every="0", path=route), route, path)
        self.assertEqual(self.session.row(seqscan("probed", "direct"))["complete"], True)
        self.assertEqual(self.session.row(random_reads("probed", "direct"))["complete"], True)

    def assert_read_fails(self, query, route, path, offset=r"\d+"):
        """The device gives an error, which is told with the blocks, or the file and offset, that it was about."""
        if route == "server":
            self.assert_fails(query, "58030", r"could not read blocks? .*Input/output error")
        else:
            file = re.escape(os.path.relpath(path, PGDATA))
            message = rf'could not read file "{file}" at offset {offset}: Input/output error'
            self.assert_fails(query, "58030", message, r"DETAIL:  errno is 5\.")

    def test_a_device_that_fails_under_a_readahead_window(self):
        """Each window has its turn: the kernel's in the first third of the table, its twin in the second, then another one."""
        disk = LoopDevice(128 * MIB)
        self.addCleanup(disk.remove)
        turn, window = 1024, 64
        self.probed_table(3 * turn, self.tablespace(disk.mount_point))
        path = segment_file(self.session, "probed")
        query = rows_of("readahead", "probed", windows_kb=[32], duration="1 min", options={"max_bytes": 4 * turn * BLOCK})
        disk.set_queue(1280, window)
        self.session.rows(query)
        for engine in engines(self.session):
            for number in range(3):
                start = number * turn * BLOCK
                with self.subTest(engine, turn=number), disk.cut_short_within(path, start):
                    self.session.run(f"SET pg_io_probe.engine = {engine}; SELECT * FROM io_probe_evict('probed')")
                    # Of the two windows in flight, either may be the first to fail.
                    following = [start + ahead * 1024 for ahead in [0, 32, window]]
                    self.assert_read_fails(query, "os", path, f"({'|'.join(map(str, following))})")
                # What was cut off came back as nothing but zeros.
                self.assertEqual({row["status"] for row in self.session.rows(query)}, {"ok"})

    def test_room_for_scratch_files(self):
        """Scratch files leave the reserve free, and are not begun without room for that."""
        disk = LoopDevice(64 * MIB)
        self.addCleanup(disk.remove)
        place = self.tablespace(disk.mount_point)
        self.probed_table(100, place)
        run("sync", "-f", disk.mount_point)
        before, counters = disk.used(), disk.counters()
        ping = rows_of("ping", "probed", count=3, every="0", mode="write")
        for setting in ["pg_io_probe.scratch_reserve = DEFAULT", "pg_io_probe.scratch_reserve = '50MB'"]:
            with self.subTest(setting):
                self.session.run(f"SET {setting}")
                self.assert_fails(ping, "53100", "not enough room")
                self.assertEqual(disk.used(), before)
        run("sync", "-f", disk.mount_point)
        self.assertLess(disk.counters()["bytes"] - counters["bytes"], MIB)
        self.session.run("SET pg_io_probe.scratch_reserve = 0; SET pg_io_probe.scratch_limit = '1MB'")
        self.session.start_rows(rows_of("ping", "probed", count=60, every="1 s", mode="write"))
        with Session() as control:
            wait_for_probe(control, self.session.pid)
            wait_for(lambda: disk.used() >= before + MIB, "the scratch file")
            self.assertLess(disk.used(), before + 2 * MIB)
            control.value(f"SELECT pg_cancel_backend({self.session.pid})")
        self.assertRaises(Failure, self.session.finish)
        self.assertEqual(disk.used(), before)
        rows = self.session.rows(ping)
        self.assertEqual([(row["op"], row["status"]) for row in rows], [("write", "ok")] * 3)
        # Here there is room for no scratch file at all.
        with filled_but_for(disk.mount_point, MIB // 2):
            self.assert_fails(ping, "53100", "not enough room")

    def test_a_segment_that_is_gone(self):
        """The server would take a relation without its middle for a shorter one, so the segment goes while the probe runs."""
        sparse_table(self.session, "probed", 2 * SEGMENT_BLOCKS + 100)
        self.addCleanup(self.session.run, "DROP TABLE probed")
        with open(segment_file(self.session, "probed"), "r+b") as file:
            file.seek(-4 * MIB, os.SEEK_END)
            file.write(bytes(4 * MIB))
        options = {"start_blk": SEGMENT_BLOCKS - 4 * MIB // BLOCK, "max_mib_s": 1}
        missing = segment_file(self.session, "probed", 1)
        message = f'could not open file "{re.escape(os.path.relpath(missing, PGDATA))}"'
        for path in PATHS:
            with self.subTest(path):
                self.session.start_rows(seqscan("probed", path, options=options))
                with Session() as control:
                    wait_for_probe(control, self.session.pid)
                os.rename(missing, missing + ".away")
                try:
                    with self.assertRaises(Failure) as raised:
                        self.session.finish_rows()
                finally:
                    os.rename(missing + ".away", missing)
                self.assertEqual(raised.exception.sqlstate, "58P01", raised.exception)
                self.assertRegex(str(raised.exception), message)
        del options["max_mib_s"]
        self.assertEqual(self.session.row(seqscan("probed", "direct", options=options))["complete"], True)

    def test_a_segment_that_is_too_short(self):
        """The segment shrinks while it is read, which no server does."""
        self.probed_table(1000)
        path = segment_file(self.session, "probed")
        self.session.start_rows(seqscan("probed", "os", options={"max_mib_s": 4}))
        with Session() as control:
            wait_for_probe(control, self.session.pid)
        os.truncate(path, 500 * BLOCK + 512)
        with self.assertRaises(Failure) as raised:
            self.session.finish_rows()
        os.truncate(path, 1000 * BLOCK)
        self.assertEqual(raised.exception.sqlstate, "58030")
        self.assertIn(f"at offset {500 * BLOCK}: read only 512 of {BLOCK} bytes", str(raised.exception))
        self.assertEqual(self.session.row(seqscan("probed", "os"))["complete"], True)

    def test_memory_is_no_device(self):
        """Recent kernels accept O_DIRECT on a tmpfs, and read memory."""
        directory = os.path.join(TEST_TMP, "memory")
        os.mkdir(directory)
        run("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", directory)
        self.addCleanup(run, "umount", "--lazy", directory)
        self.probed_table(1000, self.tablespace(directory))
        rows = self.session.rows("SELECT * FROM io_probe_seqscan_full('probed', cold => true)")
        for row in rows:
            say(f"{row['path']}: {row['status']}, {row['mib_s']} MiB/s, {row['notes']}")
            self.assertEqual(row["device"], None)
            # A page of the program itself may have to be read back meanwhile.
            self.assertLess(row["device_bytes"] or 0, 1000 * BLOCK / 100)
            self.assertLess(row["device_pct"] or 0, 1)
        self.assertIn(rows[0]["status"], ["void", "unsupported"])
        self.assertEqual([row["cold"] for row in rows[1:]], [False, False])
        # Nor do these blocks become the device's when something ends the run.
        stopped = {"options": {"max_p99": "1us"}}
        for row in [*self.session.rows(rows_of("ping", "probed", every="0", count=1000, **stopped)),
                    *self.session.rows(rows_of("random", "probed", paths=["direct"], **stopped)),
                    *self.session.rows(rows_of("depth", "probed", depths=[1], **stopped))]:
            self.assertIn(row["status"], ["void", "unsupported"])
            self.assertEqual((row["lat_us"], row.get("iops")), (None, None))
        for row in self.session.rows(rows_of("readahead", "probed", windows_kb=[0, 64], duration="300 ms")):
            say(f"readahead, {row['mode']} {row['window_kb']}: {row['status']}, {row['notes']}")
            self.assertIn(row["status"], ["void", "unsupported"])
            self.assertNotEqual(row["notes"], [])
            for name in ["mib_s", "block_us", "ci_low", "ci_high", "best", "blockdev_setra", "udev_rule"]:
                self.assertEqual((name, row[name]), (name, None))

    def probed_table(self, blocks, place=""):
        dense_table(self.session, "probed", blocks, place)
        self.addCleanup(self.session.run, "DROP TABLE probed")

    def tablespace(self, directory):
        """Makes a tablespace, and returns the clause for a table in it."""
        place = create_tablespace(self.session, "elsewhere", directory)
        self.addCleanup(self.session.run, "DROP TABLESPACE elsewhere")
        return place


if __name__ == "__main__":
    main()
