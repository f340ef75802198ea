#!/usr/bin/env -S python3 -B
"""Layers above a device that swallow syncs, serve blocks by themselves or hold files in other pieces than most: the probes say so,
or do without them.

Needs root, to mount. Each test is skipped where what it needs is not there: a C compiler, libeatmydata, bindfs, mkfs.btrfs,
mkfs.xfs.
"""

import ctypes
import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

from lib import TEST_TMP, Failure, Session, as_server, connection, dense_table, kill_backend, main, needs_root, rows_of
from lib import segment_file, server_ids, wait_for, wait_for_probe
from servers import Server
from storage import LoopDevice, cache_only, create_tablespace, fincore, run

MIB = 1 << 20
# Of a table whose page times are measured.
BLOCKS = 16384
# As Linux numbers them.
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
METHODS = {"open_datasync", "fdatasync", "fsync", "open_sync"}
SWALLOWED = {"fdatasync", "fsync"}
SYNCED = ["one_write", "wal_segment"]
setUpModule = needs_root


def sync(place=None, sections=SYNCED, **arguments):
    return rows_of("sync", **({"spcname": place} if place else {}), sections=sections, **{"duration": "2 s", **arguments})


class Layers(unittest.TestCase):
    def place_on(self, directory):
        """A session of a server, and the clause for a table in a tablespace of the directory."""
        session = Session()
        self.addCleanup(session.close)
        place = create_tablespace(session, "elsewhere", directory)
        self.addCleanup(session.run, "DROP TABLE IF EXISTS probed; DROP TABLESPACE elsewhere")
        session.run("SET pg_io_probe.scratch_reserve = 0; SET client_min_messages = warning")
        return session, place

    def loop_device(self, size, **arguments):
        disk = LoopDevice(size, **arguments)
        self.addCleanup(disk.remove)
        return disk

    def assert_void(self, rows, why, methods=METHODS):
        """Of syncs by these methods there are no figures, and those of others are good."""
        self.assertTrue({row["method"] for row in rows} >= methods)
        for row in rows:
            if row["method"] in methods:
                self.assertEqual((row["status"], row["ops_s"], row["op_us"], row["ci_low"]), ("void", None, None, None), row)
                self.assertRegex("; ".join(row["notes"]), why)
            else:
                self.assertEqual(row["status"], "ok", row)


# What others write to the device meanwhile may hide how few of ours arrive, but then no flush does.
UNSYNCED = "something swallows the syncs|did not flush the device's volatile cache"


class Swallowed(Layers):
    """A library that swallows syncs, preloaded into a server of its own."""

    def server_with(self, library):
        server = Server("swallows")
        self.addCleanup(server.remove)
        server.start(first=lambda: os.environ.update(LD_PRELOAD=library))
        session = server.session()
        self.addCleanup(session.close)
        session.run("CREATE EXTENSION pg_io_probe; SET client_min_messages = warning")
        return session

    def test_calls_that_sync(self):
        if not shutil.which("cc"):
            raise unittest.SkipTest("there is no C compiler")
        library, source = os.path.join(TEST_TMP, "no_sync.so"), os.path.join(os.path.dirname(__file__), "no_sync.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        session = self.server_with(library)
        for depth, sections in [(1, SYNCED), (8, ["wal_segment"])]:
            with self.subTest(depth):
                rows = session.rows(sync(sections=sections, depth=depth))
                self.assert_void(rows, UNSYNCED, SWALLOWED)
        # No advice and no verdict rest on them.
        row = session.row(rows_of("recommend", settings=["wal_sync_method"], writes=True, duration="2 s"))
        self.assertEqual((row["current"], row["recommended"], row["statement"]), ("fdatasync", None, None))
        self.assertRegex(row["why"], UNSYNCED)
        lines = session.rows(rows_of("report_full", writes=True, duration="4 s"))
        (line,) = [line for line in lines if re.search(UNSYNCED, line["finding"] or "")]
        self.assertEqual((line["section"], line["item"]), ("missing", "wal_sync_method, commits"))
        self.assertNotIn("commit", [line["item"] for line in lines if line["section"] == "verdict"])

    def test_libeatmydata(self):
        libraries = [path for lib in ["lib", "lib64", "lib/*"] for path in glob.glob(f"/usr/{lib}/libeatmydata.so*")]
        if not libraries:
            raise unittest.SkipTest("no libeatmydata")
        # Descriptors that sync by themselves it does not know in each way to open them.
        rows = [row for row in self.server_with(libraries[0]).rows(sync()) if row["method"] in SWALLOWED]
        self.assert_void(rows, UNSYNCED, SWALLOWED)


class Durability(Layers):
    """File systems that do not keep what they sync."""

    def test_without_barriers(self):
        """A loop device has a volatile cache: the one of the file system below."""
        disk = self.loop_device(128 * MIB, options=["nobarrier"])
        session, _ = self.place_on(disk.mount_point)
        rows = session.rows(sync("elsewhere", options={"max_bytes": 16 * MIB}))
        if rows[0]["write_cache"] != "write back" or rows[0]["device_flushes_per_op"] is None and rows[0]["status"] == "ok":
            raise unittest.SkipTest("no volatile cache, or flushes are not counted")
        self.assert_void(rows, "did not flush")

    def test_with_barriers(self):
        disk = self.loop_device(128 * MIB)
        session, _ = self.place_on(disk.mount_point)
        self.assertEqual({row["status"] for row in session.rows(sync("elsewhere"))}, {"ok"})

    def test_memory(self):
        directory = os.path.join(TEST_TMP, "memory")
        os.mkdir(directory)
        run("mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", directory)
        self.addCleanup(run, "umount", "--lazy", directory)
        session, place = self.place_on(directory)
        rows = [row for row in session.rows(sync("elsewhere")) if row["status"] != "unsupported"]
        self.assert_void(rows, "in memory", METHODS & {row["method"] for row in rows} | {"fdatasync"})
        dense_table(session, "probed", 16, place)
        for mode in ["write", "pingpong"]:
            rows = session.rows(rows_of("ping", "probed", mode=mode, path="os", count=4, every="0"))
            self.assertEqual({(row["status"], row["lat_us"]) for row in rows}, {("void", None)})
            self.assertIn("in memory", "; ".join(rows[-1]["notes"]))


class Named(Layers):
    """On btrfs a scratch file has a name, since one without is not synced as others are."""

    def setUp(self):
        self.disk = self.loop_device(512 * MIB, make=["mkfs.btrfs", "-q", "-f"])
        os.chown(self.disk.mount_point, *server_ids())

    def scratch_files(self):
        return [path for path in glob.glob(f"{self.disk.mount_point}/**", recursive=True) if "pgsql_tmp" in os.path.basename(path)]

    def own_server(self):
        """A server of its own, and a session there, with a tablespace on the device."""
        server = Server("named")
        self.addCleanup(server.remove)
        server.start()
        session = server.session()
        self.addCleanup(session.close)
        session.run("CREATE EXTENSION pg_io_probe; ALTER SYSTEM SET pg_io_probe.scratch_reserve = 0; SELECT pg_reload_conf()")
        create_tablespace(session, "elsewhere", self.disk.mount_point)
        return server, session

    def named(self):
        return [path for path in self.scratch_files() if os.path.isfile(path)]

    def test_it_is_measured(self):
        session, _ = self.place_on(self.disk.mount_point)
        for depth, sections in [(1, [*SYNCED, "other_fd"]), (4, ["wal_segment"])]:
            rows = session.rows(sync("elsewhere", sections=sections, depth=depth))
            self.assertEqual({row["status"] for row in rows}, {"ok"}, rows)
            # A sync of a file without a name writes none of it.
            self.assertTrue(all(row["device_writes_per_op"] > 0.9 for row in rows if depth == 1), rows)
            self.assertEqual(self.named(), [])

    def test_however_it_ends(self):
        """The name is gone after a cancel, and after a session was ended; the server removes it when it starts after a kill."""
        server, session = self.own_server()
        ends = {
            "cancel": lambda: control.run(f"SELECT pg_cancel_backend({session.pid})"),
            "terminate": lambda: control.run(f"SELECT pg_terminate_backend({session.pid})"),
            "kill": lambda: kill_backend(session.pid),
        }
        for name, end in ends.items():
            with self.subTest(name):
                control = server.session()
                session.start_rows(sync("elsewhere", duration="30 s"))
                wait_for_probe(control, session.pid)
                wait_for(self.named, "a scratch file with a name")
                end()
                with self.assertRaises(Failure):
                    session.finish_rows()
                session.close()
                control.close()
                session = wait_for(lambda: connection(server.session), "a session")
                self.assertEqual(self.named(), [])
        session.close()


class Below(Layers):
    """What serves blocks below the OS cache may be no device: then no page times are called a device's."""

    def check(self, directory):
        session, place = self.place_on(directory)
        dense_table(session, "probed", BLOCKS, place)
        given = {"duration": "3 s", "cold": True}
        rows = session.rows(rows_of("page_cost", "probed", **given))
        of_device = [row for row in rows if row["tier"] == "device" and row["block_us"] is not None]
        self.assertTrue(of_device, rows)
        for row in of_device:
            self.assertIn("tiers unknown", row["doubt"] or "", row)
            self.assertIn("unknown where the blocks came from", "; ".join(row["notes"]))
        settings = ["random_page_cost", "effective_io_concurrency"]
        for row in session.rows(rows_of("recommend", "probed", settings=settings, **given)):
            self.assertEqual((row["recommended"], row["statement"]), (None, None), row)
            self.assertIn("unknown where the blocks came from", row["why"])
        return session

    def test_fuse(self):
        if not shutil.which("bindfs"):
            raise unittest.SkipTest("no bindfs")
        below, directory = (os.path.join(TEST_TMP, name) for name in ("below", "fuse"))
        as_server("mkdir", below, directory)
        try:
            run("bindfs", below, directory)
        except AssertionError as e:
            raise unittest.SkipTest(f"no FUSE here: {e}")
        self.addCleanup(shutil.rmtree, below)
        self.addCleanup(run, "umount", "--lazy", directory)
        session = self.check(directory)
        lines = session.rows(rows_of("report_full", "probed", duration="4 s"))
        # A machine without time for it may be worse than unknown.
        trust = {line["item"] for line in lines if line["section"] == "trust"}
        self.assertTrue(trust and trust <= {"unknown", "poor"}, trust)

    def test_compression(self):
        disk = self.loop_device(1024 * MIB, make=["mkfs.btrfs", "-q", "-f"], options=["compress-force=zstd"])
        self.check(disk.mount_point)


class Processes(Layers):
    """What a container may show of the kernel's account, or may not."""

    def server_in_namespace(self):
        """A session of a server that sees nothing in /proc but processes."""
        libc = ctypes.CDLL(None, use_errno=True)

        def hide():
            libc.unshare(CLONE_NEWNS)
            libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
            if libc.mount(b"proc", b"/proc", b"proc", ctypes.c_ulong(0), b"subset=pid") != 0:
                sys.exit("can't mount")

        server = Server("hidden")
        self.addCleanup(server.remove)
        server.start(first=hide)
        session = server.session()
        self.addCleanup(session.close)
        session.run("CREATE EXTENSION pg_io_probe")
        return session

    def test_processes_alone(self):
        session = self.server_in_namespace()
        kernel = session.row("SELECT * FROM io_probe_check() WHERE item = 'kernel'")
        self.assertNotEqual(kernel["status"], "ok", "its /proc has no more than processes")
        self.assertIn("subset=pid", kernel["what_to_do"])
        self.assertEqual({row["status"] for row in session.rows(sync())}, {"ok"})

    def test_no_account(self):
        """Without it nobody is blamed for what is found in the OS cache."""
        session = self.server_in_namespace()
        run("nsenter", "-m", "-t", str(session.pid), "mount", "--bind", "/dev/null", f"/proc/{session.pid}/io")
        dense_table(session, "probed", 2048)
        rows = session.rows(rows_of("random", "probed", paths=["os"], cold=True, duration="1 s"))
        self.assertEqual(rows[0]["device_bytes"], None)
        self.assertNotIn(": others had brought", "; ".join(rows[0]["notes"]))


class Pieces(Layers):
    """The OS cache holds a file in pieces that may be larger than a block. It is left as it was found all the same."""

    def check(self, **arguments):
        disk = self.loop_device(1024 * MIB, **arguments)
        session, place = self.place_on(disk.mount_point)
        dense_table(session, "probed", BLOCKS, place)
        path = os.path.realpath(segment_file(session, "probed"))
        cache_only(path, [])
        self.assertEqual(fincore(path), 0)
        for call in range(3):
            rows = session.rows(rows_of("page_cost", "probed", duration="3 s", concurrencies=[0, 16]))
            device = [row for row in rows if row["tier"] == "device"]
            # On a slow machine reads with gaps may be left out, which their notes say.
            left_out = [row for row in device if "left out, since turns take long" in "; ".join(row["notes"] or [])]
            self.assertLessEqual({row["pattern"] for row in left_out}, {"sparse"}, call)
            self.assertTrue(all(row["block_us"] for row in device if row not in left_out), (call, rows))
            # What is read ahead may come when its stretch has been dropped.
            self.assertLess(fincore(path), MIB, call)

    def test_blocks_of_64_kb(self):
        self.check(make=["mkfs.xfs", "-q", "-f", "-b", "size=64k"])

    def test_blocks_of_4_kb(self):
        self.check()


if __name__ == "__main__":
    main()
