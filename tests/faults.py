#!/usr/bin/env -S python3 -B
"""Bad luck: devices that fail, files that are gone, processes that are killed, a server that goes down.

Needs root, to mount and to kill.
"""

import contextlib
import os
import random
import re
import signal
import subprocess
import threading
import time
import unittest

from lib import BLOCK, IS_ROOT, PATHS, PGDATA, SEGMENT_BLOCKS, TEST_TMP, Failure, Process, Session, as_server, call
from lib import dense_table, files_in_data_directory, main, read, repeated, say, segment_file, seqscan, server_ids
from lib import sparse_table, start_server, wait_for, wait_for_probe, ways

BLOCKS = 2048
MIB = 1 << 20
CANCELS = 500


def setUpModule():
    if not IS_ROOT:
        raise unittest.SkipTest("not root")


class Storage(unittest.TestCase):
    """Reads that fail."""

    def setUp(self):
        self.session = Session()
        self.addCleanup(self.session.close)

    def assert_fails(self, query, sqlstate, *words):
        """The query fails so, and takes nothing with it."""
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
        self.session.rows("SELECT * FROM io_probe_seqscan('probed')")
        self.session.run("SELECT * FROM io_probe_evict('probed')")
        with disk.cut_short_within(path):
            for way, (route, engine) in ways(self.session).items():
                with self.subTest(way):
                    self.session.run(f"SET pg_io_probe.engine = {engine}")
                    if route == "server":
                        message = r"could not read blocks? .*Input/output error"
                        self.assert_fails(seqscan("probed", route), "58030", message)
                    else:
                        file = re.escape(os.path.relpath(path, PGDATA))
                        message = rf'could not read file "{file}" at offset \d+: Input/output error'
                        self.assert_fails(seqscan("probed", route), "58030", message, r"DETAIL:  errno is 5\.")
        self.assertEqual(self.session.row(seqscan("probed", "direct"))["complete"], True)

    def test_a_segment_that_is_gone(self):
        """The server would take a relation without its middle for a shorter one, so it goes while the probe runs."""
        sparse_table(self.session, "probed", 2 * SEGMENT_BLOCKS + 100)
        self.addCleanup(self.session.run, "DROP TABLE probed")
        with open(segment_file(self.session, "probed"), "r+b") as file:
            file.seek(-4 * MIB, os.SEEK_END)
            file.write(bytes(4 * MIB))
        options = {"start_blk": SEGMENT_BLOCKS - 4 * MIB // BLOCK, "max_mib_per_s": 8}
        missing = segment_file(self.session, "probed", 1)
        message = f'could not open file "{re.escape(os.path.relpath(missing, PGDATA))}"'
        for path in PATHS:
            with self.subTest(path):
                timer = threading.Timer(0.2, os.rename, [missing, missing + ".away"])
                timer.start()
                try:
                    self.assert_fails(seqscan("probed", path, options=options), "58P01", message)
                finally:
                    timer.join()
                    os.rename(missing + ".away", missing)
        self.assertEqual(self.session.row(seqscan("probed", "direct", options=options))["complete"], True)

    def test_a_segment_that_is_too_short(self):
        """It shrinks while it is read, which no server does."""
        self.probed_table(1000)
        path = segment_file(self.session, "probed")
        self.session.start_rows(seqscan("probed", "os", options={"max_mib_per_s": 4}))
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
        self.addCleanup(run, "umount", directory)
        self.probed_table(1000, self.tablespace(directory))
        rows = self.session.rows("SELECT * FROM io_probe_seqscan('probed', cold => true)")
        for row in rows:
            say(f"{row['path']}: {row['status']}, {row['mib_per_s']} MiB/s, {row['notes']}")
            self.assertEqual((row["device"], row["device_bytes"] or 0, row["from_device_pct"] or 0), (None, 0, 0))
        self.assertIn(rows[0]["status"], ["void", "unsupported"])
        self.assertEqual([row["cold"] for row in rows[1:]], [False, False])

    def probed_table(self, blocks, place=""):
        dense_table(self.session, "probed", blocks, place)
        self.addCleanup(self.session.run, "DROP TABLE probed")

    def tablespace(self, directory):
        """Makes a tablespace: the clause for a table in it."""
        os.chown(directory, *server_ids())
        inside = os.path.join(directory, "tablespace")
        as_server("mkdir", inside)
        self.session.run(f"CREATE TABLESPACE elsewhere LOCATION '{inside}'")
        self.addCleanup(self.session.run, "DROP TABLESPACE elsewhere")
        return "TABLESPACE elsewhere"


class Processes(unittest.TestCase):
    """Ends that unwind nothing. Whatever happens, the next test finds a server."""

    def setUp(self):
        self.control = Session()
        # Processes die here, not the machine; recovery would sync each file.
        self.control.run("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf()")
        dense_table(self.control, "probed", BLOCKS)
        self.addCleanup(self.clean_up)
        self.files = files_in_data_directory()
        self.ways = ways(self.control)

    def clean_up(self):
        self.control.close()
        if not server_processes():
            start_server()
        with wait_for(connection, "the server to be back", 60) as session:
            session.run("DROP TABLE probed; ALTER SYSTEM RESET fsync; SELECT pg_reload_conf()")

    def start(self, session, way, state):
        path, engine = self.ways[way]
        session.run(f"SET pg_io_probe.engine = {engine}; {seqscan('probed', path)}")
        session.start(state(path))
        wait_for_probe(self.control, session.pid)
        time.sleep(0.05)
        return Process(session.pid)

    def assert_as_before(self):
        """No file, no lock, and probes work."""
        with Session() as session:
            self.assertEqual(files_in_data_directory() - self.files, set())
            self.assertEqual(session.rows("SELECT * FROM pg_locks WHERE locktype = 'advisory'"), [])
            self.assertEqual(session.rows("SELECT * FROM io_probe_progress()"), [])
            rows = session.rows("SELECT * FROM io_probe_seqscan('probed')")
            self.assertEqual([(row["status"], row["complete"]) for row in rows], [("ok", True)] * 3)

    def test_kill_of_a_backend(self):
        for way in self.ways:
            with self.subTest(way), Session() as session:
                process = self.start(session, way, at_full_speed)
                os.kill(session.pid, signal.SIGKILL)
                wait_for(lambda: not process.exists(), "end of the process")
                self.assertRaises(Failure, session.finish)
                self.control.close()
                self.control = wait_for(connection, "the server to be back", 60)
                self.assert_as_before()

    def test_shutdown(self):
        for mode in ["fast", "immediate"]:
            for way in self.ways:
                with self.subTest(mode, way=way), Session() as session:
                    process = self.start(session, way, at_full_speed if mode == "fast" else pausing)
                    self.control.close()
                    asked = time.monotonic()
                    as_server("pg_ctl", "stop", "-w", "-t", "30", "-m", mode, "-D", PGDATA)
                    say(f"{mode} shutdown during {way}: {(time.monotonic() - asked) * 1000:.0f} ms")
                    self.assertFalse(process.exists())
                    self.assertLess(time.monotonic() - asked, 10)
                    self.assertRaises(Failure, session.finish)
                    start_server()
                    self.control = Session()
                    self.assert_as_before()

    def test_death_of_the_postmaster(self):
        for way in self.ways:
            with self.subTest(way), Session() as session:
                process = self.start(session, way, pausing)
                postmaster = Process(int(read(os.path.join(PGDATA, "postmaster.pid")).split()[0]))
                os.kill(postmaster.pid, signal.SIGKILL)
                asked = time.monotonic()
                wait_for(lambda: not process.exists(), "end of the process")
                say(f"death of the postmaster during {way}: {(time.monotonic() - asked) * 1000:.0f} ms")
                self.control.close()
                wait_for(lambda: not server_processes(), "end of all processes", 30)
                # A new one would take it for alive as long as nobody has reaped it.
                os.remove(os.path.join(PGDATA, "postmaster.pid"))
                os.remove(os.path.join(os.environ["PGHOST"], f".s.PGSQL.{os.environ['PGPORT']}.lock"))
                start_server()
                self.control = Session()
                self.assert_as_before()

    def test_many_cancels(self):
        """At random moments, in one session."""
        with Session() as session:
            process = Process(session.pid)
            for path, engine in self.ways.values():
                session.run(f"SET pg_io_probe.engine = {engine}; {seqscan('probed', path)}")
            before = process.threads(), process.descriptors()
            memory = process.memory()
            seed = random.randrange(1 << 32)
            say(f"seed {seed}")
            moments = random.Random(seed)
            cancelled = 0
            for number in range(CANCELS):
                path, engine = list(self.ways.values())[number % len(self.ways)]
                session.run(f"SET pg_io_probe.engine = {engine}")
                session.start(f"SELECT {call('probed', path, cold=number % 8 >= 4)}")
                time.sleep(moments.uniform(0, 0.015))
                self.control.value(f"SELECT pg_cancel_backend({session.pid})")
                try:
                    session.finish()
                except Failure as failure:
                    self.assertEqual(failure.sqlstate, "57014", failure)
                    cancelled += 1
            say(f"{cancelled} of {CANCELS} came in time; memory grew by {(process.memory() - memory) // 1024} kB")
            self.assertGreater(cancelled, CANCELS // 10)
            self.assertEqual((process.threads(), process.descriptors()), before)
            self.assertLess(process.memory() - memory, 2 * MIB)
        self.assert_as_before()


def at_full_speed(path):
    return repeated("probed", path)


def pausing(path):
    return seqscan("probed", path, duration="60 s", options={"max_mib_per_s": 1})


def connection():
    """A session, or None while the server takes none."""
    try:
        return Session()
    except (Failure, ValueError, BrokenPipeError):
        return None


def server_processes():
    """Processes that have the data directory as their own."""
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and working_directory(pid) == os.path.realpath(PGDATA)]


def working_directory(pid):
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


class LoopDevice:
    """A file system in a file."""

    def __init__(self, size):
        self.size = size
        self.backing = os.path.join(TEST_TMP, "disk")
        self.mount_point = os.path.join(TEST_TMP, "mounted")
        with open(self.backing, "wb") as file:
            file.truncate(size)
        run("mkfs.ext4", "-q", "-b", "4096", "-O", "^has_journal", self.backing)
        os.mkdir(self.mount_point)
        try:
            self.device = run("losetup", "--find", "--show", self.backing).strip()
        except AssertionError as e:
            raise unittest.SkipTest(f"no loop devices here: {e}")
        run("mount", self.device, self.mount_point)

    def remove(self):
        run("umount", self.mount_point)
        run("losetup", "--detach", self.device)

    @contextlib.contextmanager
    def cut_short_within(self, path):
        """Meanwhile the end of a file of this file system can't be read: what backs it is cut off."""
        run("sync", "-f", self.mount_point)
        extents = re.findall(r"^ *\d+: +\d+\.\. *\d+: +(\d+)\.\.", run("filefrag", "-b4096", "-e", path), re.MULTILINE)
        os.truncate(self.backing, max(int(block) for block in extents) * 4096)
        try:
            yield
        finally:
            os.truncate(self.backing, self.size)


def run(*command):
    """Runs a command as root: what it printed."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    main()
