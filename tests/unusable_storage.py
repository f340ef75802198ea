#!/usr/bin/env -S python3 -B
"""Storage that is full or read-only, or has damage that checksums find; and storage behind links.

Needs root, to mount.
"""

import contextlib
import errno
import os
import time
import unittest

from lib import BLOCK, LONG, TEST_TMP, Session, dense_table, main, needs_root, rows_of, say, server_ids, wait_for
from lib import wait_for_probe
from probes import WRITING, Holdings, Outcomes, all_files, new_files, probes, some
from servers import Server
from storage import LoopDevice, create_tablespace, dirty_bytes, filled_but_for, run, used

MIB = 1 << 20
BLOCKS = 512
# How often each probe is tried; and how often storage gets full while it is written to.
TIMES, FILLED = (4, 20) if LONG else (1, 1)
SLOW = {"max_mib_s": 4}
# Calls with a scratch file that takes a second or more to be made.
SLOWLY_WRITING = {
    "ping": lambda place: rows_of("ping", "probed", count=3, every="0", mode="write"),
    "sync": lambda place: rows_of("sync", sections=["wal_segment"], duration="800 ms", options=SLOW, **place),
    "sync at 8": lambda place: rows_of("sync", sections=["wal_segment"], duration="800 ms", depth=8, options=SLOW, **place),
}  # fmt: skip
setUpModule = needs_root


class UnusableStorage(unittest.TestCase):
    """A table `probed` somewhere, and a session that has loaded what is loaded once."""

    def own_server(self, name, *options):
        """A new server, and two sessions there."""
        server = Server(name, *options)
        self.addCleanup(server.remove)
        server.start()
        session, control = server.session(), server.session()
        self.addCleanup(control.close)
        self.addCleanup(session.close)
        session.run("CREATE EXTENSION pg_io_probe; SET pg_io_probe.scratch_reserve = 0; SET pg_io_probe.scratch_limit = '16MB'")
        return server, session, control

    def prepare(self, session, control, place="", spcname="pg_default"):
        self.session, self.control = session, control
        dense_table(session, "probed", BLOCKS, place)
        self.probes = probes(session, spcname)
        for probe in self.probes:
            session.run(probe.once)
        self.holdings = Holdings(session, control)
        self.outcomes = Outcomes()
        self.addCleanup(self.outcomes.tell)

    def each(self, fault, expected, only=None, always=()):
        """Some probes, or those named in `only`, end as `expected` has it by name, or under None. Returns what came of each."""
        came = {}
        chosen = some(self.probes, TIMES, [*expected, *always])
        for probe in [probe for probe in self.probes * TIMES if probe.name in only] if only else chosen:
            with self.subTest(fault, probe=probe.name):
                ended, came[probe.name] = self.outcomes.of(fault, self.session, probe)
                self.assertRegex(ended, f"^({expected.get(probe.name, expected[None])})$", came[probe.name])
                self.assertEqual(self.holdings.left(), {})
        return came


class Full(UnusableStorage):
    """A tablespace without room."""

    def test_a_file_system(self):
        disk = LoopDevice(64 * MIB)
        self.addCleanup(disk.remove)
        self.check(disk.mount_point, "ext4")

    def test_memory(self):
        directory = os.path.join(TEST_TMP, "memory")
        os.mkdir(directory)
        run("mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", directory)
        self.addCleanup(run, "umount", "--lazy", directory)
        self.check(directory, "tmpfs")

    def check(self, directory, kind):
        session, control = Session(), Session()
        self.addCleanup(control.close)
        self.addCleanup(session.close)
        session.run("SET pg_io_probe.scratch_reserve = 0; SET pg_io_probe.scratch_limit = '16MB'")
        place = create_tablespace(session, "elsewhere", directory)
        self.addCleanup(control.run, "DROP TABLE IF EXISTS probed; DROP TABLESPACE elsewhere")
        self.prepare(session, control, place, "elsewhere")
        self.addCleanup(session.close)
        there = ["ping, write", "ping, both, os", "sync, tablespace", "write", "mix, data", "mix, tablespace"]
        expected = {None: "(ok|unsupported|void|partial|rows)( and (ok|unsupported|partial|void))*"}
        # Probes that only read need no room there.
        with filled_but_for(directory, 0):
            self.each(f"full {kind}", expected | dict.fromkeys(there, "53100"))
        # There is room when the probe begins.
        for name, query in SLOWLY_WRITING.items():
            for _ in range(FILLED):
                with self.subTest(name), contextlib.ExitStack() as stack:
                    before = used(directory)
                    place = {} if name == "ping" else {"spcname": "elsewhere"}
                    session.run(f"SET pg_io_probe.max_mib_s = {4 if name == 'ping' else 0}")
                    session.start_rows(query(place))
                    wait_for(lambda: used(directory) >= before + MIB or not session.busy(), "the scratch file")
                    stack.enter_context(filled_but_for(directory, 0))
                    ended, failure = self.outcomes.note(f"{kind} that gets full", session, self.named(name))
                    self.assertEqual(ended, "53100", failure)
                    why = r'could not write.* scratch file in .*/pg_tblspc/\d+/PG_[^"]*" at offset \d+: No space left'
                    self.assertRegex(str(failure), why)
                    self.assertIn("DETAIL:  errno is 28.", str(failure))
                    self.assertEqual(self.holdings.left(), {})
                self.assertEqual(used(directory), before)
        session.run("RESET pg_io_probe.max_mib_s")
        self.each(f"{kind} with room again", expected, only=there)

    def named(self, name):
        """A probe under whose name the outcome is counted."""
        return next(probe for probe in self.probes if probe.name.startswith(name.partition(" ")[0]))


class ReadOnly(UnusableStorage):
    """A file system that the kernel has made read-only, since something failed: what is open stays open. A server of its
    own: the tablespace can't be dropped."""

    def test_it(self):
        disk = LoopDevice(64 * MIB)
        self.addCleanup(disk.remove)
        _, session, control = self.own_server("read_only")
        self.prepare(session, control, create_tablespace(session, "elsewhere", disk.mount_point), "elsewhere")
        elsewhere = ["iostat", "sync, wal", "sync, wal at 8"]
        # The server opens relations for reading and writing, whatever it wants to do, and says so itself.
        expected = {None: "42501", "sync, tablespace": "58030", "write": "58030"} | dict.fromkeys(elsewhere, "ok( and unsupported)?")
        run("mount", "-o", "remount,abort", disk.mount_point)
        for name, told in self.each("read-only file system", expected).items():
            if name not in elsewhere:
                self.assertIn("Read-only file system", str(told))


class Lost(UnusableStorage):
    """The server has to hear of data that could not be written: a checkpoint that succeeds meanwhile loses them. The kernel
    tells of it once, to the process that asks first, so no probe may ask. A server of its own: it may stop for that."""

    def test_who_hears_of_it(self):
        disk = LoopDevice(64 * MIB)
        self.addCleanup(disk.remove)
        server, session, control = self.own_server("lost")
        self.prepare(session, control, create_tablespace(session, "elsewhere", disk.mount_point), "elsewhere")
        session.run("VACUUM FREEZE probed; CHECKPOINT")
        path = os.path.join(server.data, session.value("SELECT pg_relation_filepath('probed')"))
        with open(path, "rb") as file:
            begin = file.read(MIB)
        wrote = []
        for probe in [probe for probe in self.probes if probe.on_table]:
            with self.subTest(probe=probe.name):
                session.run("SELECT FROM io_probe_seqscan_full('probed', '{os}')")  # what is read is in the cache
                with disk.cut_off_before(path):
                    rewrite(path, begin)
                    self.assertEqual(dirty_bytes(path), MIB)
                    self.outcomes.of("lost writes", session, probe)
                    is_written = dirty_bytes(path) == 0
                # As the checkpointer may: by a descriptor that is opened after the failure.
                with open(path, "r+b") as file:
                    if is_written:
                        wrote.append(probe.name)
                        with self.assertRaises(OSError) as raised:
                            os.fsync(file.fileno())
                        self.assertEqual(raised.exception.errno, errno.EIO)
                    os.fsync(file.fileno())
        say(f"wrote back: {', '.join(wrote)}")
        self.assertGreater(len(wrote), 5)


def rewrite(path, begin):
    """Writes the beginning of a file once more, as a server process would: whole pages, for which nothing has to be read."""
    with open(path, "r+b", buffering=0) as file:
        assert file.write(begin) == len(begin)


class Damaged(UnusableStorage):
    """Pages that are not as they were written. A server of its own, with checksums."""

    def test_it(self):
        server, session, control = self.own_server("damaged", "--data-checksums")
        self.prepare(session, control)
        path = os.path.join(server.data, session.value("SELECT pg_relation_filepath('probed')"))
        session.run("SELECT io_probe_evict('probed')")
        control.run("CHECKPOINT")
        session.close()
        control.close()
        server.stop()
        for block in range(3, BLOCKS):
            with open(path, "r+b") as file:
                file.seek(block * BLOCK + 4000)
                file.write(b"damage")
        server.start()
        session, control = server.session(), server.session()
        self.addCleanup(control.close)
        self.addCleanup(session.close)
        session.run("SET pg_io_probe.scratch_reserve = 0")
        self.session, self.control = session, control
        for probe in self.probes:
            self.outcomes.of("at first", session, probe)  # loads what is loaded once
        self.holdings = Holdings(session, control)
        # io_probe_recommend recommends nothing of what it could not measure, and that is no ERROR.
        good = "(ok|partial|unsupported|rows)( and (ok|partial|unsupported))*"
        bad = ["seqscan, server", "seqscan, cold", "random, server", "random, server at 16", "random, cold",
               "page_cost"]  # fmt: skip
        expected = {None: good, "record": "recorded XX001 and rows"} | dict.fromkeys(bad, "XX001")
        self.each("damaged pages", expected)
        # With this setting the server itself reads such pages, too.
        session.run("SET ignore_checksum_failure = on")
        self.each("damaged pages, ignored", {None: good})


class Links(UnusableStorage):
    """pg_wal and a tablespace are links to links. A server of its own."""

    def test_it(self):
        disk = LoopDevice(256 * MIB)
        self.addCleanup(disk.remove)
        for name in ["wal", "tablespace"]:
            directory = os.path.join(disk.mount_point, name)
            os.mkdir(directory)
            os.chown(directory, *server_ids())
        link = os.path.join(TEST_TMP, "link")
        os.symlink(disk.mount_point, link)
        self.addCleanup(os.remove, link)
        server = Server("links", "-X", os.path.join(link, "wal"))
        self.addCleanup(server.remove)
        server.configure({"max_wal_size": "64MB", "min_wal_size": "32MB"})
        server.start()
        session, control = server.session(), server.session()
        self.addCleanup(control.close)
        self.addCleanup(session.close)
        session.run("CREATE EXTENSION pg_io_probe; SET pg_io_probe.scratch_reserve = 0")
        session.run(f"CREATE TABLESPACE elsewhere LOCATION '{os.path.join(link, 'tablespace')}'")
        self.prepare(session, control, "TABLESPACE elsewhere", "elsewhere")
        names = all_files(server.data)
        good = {None: "(ok|partial|unsupported|rows)( and (ok|partial|unsupported))*"}
        came = self.each("links", good, always=["sync, wal", "sync, tablespace", "seqscan, os"])
        device = os.path.basename(disk.device)
        for row in session.rows("SELECT * FROM io_probe_device_full() WHERE object = 'wal' OR spcname = 'elsewhere'"):
            self.assertEqual((row["device"], row["mount_point"]), (device, disk.mount_point))
            self.assertTrue(row["directory"].startswith(disk.mount_point), row["directory"])
        for name, where in [("sync, wal", "wal"), ("sync, tablespace", "tablespace")]:
            for row in came[name]:
                self.assertEqual(row["device"], device)
                self.assertTrue(row["directory"].startswith(os.path.join(disk.mount_point, where)), row["directory"])
        self.assertEqual({row["device"] for row in came["seqscan, os"]}, {device})
        # A pg_wal that is full is refused beforehand, or fails in the middle, and the server goes on.
        session.run("SET pg_io_probe.scratch_reserve = '16GB'")
        self.each("pg_wal with too little room", {None: "53100"}, only=["sync, wal", "sync, wal at 8"])
        session.run("SET pg_io_probe.scratch_reserve = 0")
        for _ in range(FILLED):
            session.start_rows(rows_of("sync", sections=["wal_segment"], options=SLOW))
            wait_for_probe(control, session.pid)
            time.sleep(0.05)
            with filled_but_for(disk.mount_point, 0):
                ended, failure = self.outcomes.note("pg_wal that gets full", session, self.named_sync())
                self.assertEqual(ended, "53100", failure)
                self.assertEqual(self.holdings.left(), {})
        session.run("CREATE TABLE written AS SELECT generate_series(1, 100000); DROP TABLE written")
        self.each("links", good, only=WRITING)
        self.assertEqual({name for name in new_files(names, server.data) if "pg_wal" in name}, set())

    def named_sync(self):
        return next(probe for probe in self.probes if probe.name == "sync, wal")


if __name__ == "__main__":
    main()
