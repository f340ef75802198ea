#!/usr/bin/env -S python3 -B
"""Bad luck: devices that fail, files that are gone, processes that are killed, a server that goes down.

Needs root, to mount and to kill.
"""

import itertools
import os
import random
import re
import signal
import threading
import time
import unittest

from lib import BLOCK, IS_ROOT, PATHS, PGDATA, SEGMENT_BLOCKS, TEST_TMP, Failure, Process, Session, as_server
from lib import dense_table, engines, files_in_data_directory, main, random_reads, read, repeated, rows_of, say
from lib import segment_file, seqscan, sparse_table, start_server, wait_for, wait_for_probe, ways
from storage import LoopDevice, create_tablespace, run

BLOCKS = 2048
MIB = 1 << 20
CANCELS = 500
KILLS = 8
# New WAL, and what is read of catalogs and statistics.
RECOVERY = re.compile(r"/(pg_wal/[0-9A-F]{24}|pg_internal\.init|postmaster\.pid|pg_stat(_tmp)?/\w+\.(stat|tmp))$")


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
                self.session.run(f"SET pg_io_probe.engine = {engine}")
                for query in [seqscan("probed", route), random_reads("probed", route),
                              random_reads("probed", route, depth=8)]:
                    with self.subTest(query, way=way):
                        self.assert_read_fails(query, route, path)
            with self.subTest("depth"):
                self.assert_read_fails(rows_of("depth", "probed", depths=[1, 8], duration="1 min"), "direct", path)
            with self.subTest("page_cost"):
                self.assert_read_fails(rows_of("page_cost", "probed", duration="10 s"), "server", path)
            for route in ["direct", "os"]:
                with self.subTest("ping", path=route):
                    self.assert_read_fails(rows_of("ping", "probed", count=BLOCKS, every="0", path=route), route, path)
        self.assertEqual(self.session.row(seqscan("probed", "direct"))["complete"], True)
        self.assertEqual(self.session.row(random_reads("probed", "direct"))["complete"], True)

    def assert_read_fails(self, query, route, path, offset=r"\d+"):
        """The device gives an error, which is told with what it was about."""
        if route == "server":
            self.assert_fails(query, "58030", r"could not read blocks? .*Input/output error")
        else:
            file = re.escape(os.path.relpath(path, PGDATA))
            message = rf'could not read file "{file}" at offset {offset}: Input/output error'
            self.assert_fails(query, "58030", message, r"DETAIL:  errno is 5\.")

    def test_a_device_that_fails_under_a_readahead_window(self):
        """Each has its turn: the kernel's in the first third of the table, its twin in the second, then another's."""
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
        """They leave what is to be left, and are not begun without."""
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
        # With room for none at all.
        filler = os.path.join(disk.mount_point, "filler")
        with open(filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, os.statvfs(disk.mount_point).f_bavail * 4096 - MIB // 2)
        self.assert_fails(ping, "53100", "not enough room")
        os.remove(filler)

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
            self.assertEqual(row["device"], None)
            # A page of the program itself may have to be read back meanwhile.
            self.assertLess(row["device_bytes"] or 0, 1000 * BLOCK / 100)
            self.assertLess(row["from_device_pct"] or 0, 1)
        self.assertIn(rows[0]["status"], ["void", "unsupported"])
        self.assertEqual([row["cold"] for row in rows[1:]], [False, False])
        for row in self.session.rows(rows_of("readahead", "probed", windows_kb=[0, 64], duration="100 ms")):
            say(f"readahead, {row['mode']} {row['window_kb']}: {row['status']}, {row['notes']}")
            self.assertIn(row["status"], ["void", "unsupported"])
            self.assertNotEqual(row["notes"], [])
            for name in ["mib_per_s", "us_per_block", "ci_low_us", "ci_high_us", "best", "blockdev_setra", "udev_rule"]:
                self.assertEqual((name, row[name]), (name, None))

    def probed_table(self, blocks, place=""):
        dense_table(self.session, "probed", blocks, place)
        self.addCleanup(self.session.run, "DROP TABLE probed")

    def tablespace(self, directory):
        """Makes a tablespace: the clause for a table in it."""
        place = create_tablespace(self.session, "elsewhere", directory)
        self.addCleanup(self.session.run, "DROP TABLESPACE elsewhere")
        return place


class Processes(unittest.TestCase):
    """Ends that unwind nothing. Whatever happens, the next test finds a server."""

    crashes = 0

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
        return self.start_probe(session, f"SET pg_io_probe.engine = {engine}; {seqscan('probed', path)}", state(path))

    def start_probe(self, session, before, query):
        session.run(before)
        session.start(query)
        wait_for_probe(self.control, session.pid)
        time.sleep(0.05)
        return Process(session.pid)

    def wait_for_recovery(self):
        """After the crash of a backend."""
        self.control.close()
        self.control = wait_for(connection, "the server to be back", 60)
        Processes.crashes += 1
        if Processes.crashes % 4 == 0:
            # With io_uring, the postmaster of 18 keeps the rings from before each crash: the sixth is its last.
            self.control.close()
            as_server("pg_ctl", "stop", "-w", "-D", PGDATA)
            start_server()
            self.control = Session()

    def assert_as_before(self):
        """No file, no lock, and probes work."""
        with Session() as session:
            self.assertEqual(files_in_data_directory() - self.files, set())
            self.assertEqual(session.rows("SELECT * FROM pg_locks WHERE locktype = 'advisory'"), [])
            self.assertEqual(session.rows("SELECT * FROM io_probe_progress()"), [])
            for probe in ["seqscan", "random"]:
                rows = session.rows(rows_of(probe, "probed"))
                self.assertEqual([(row["status"], row["complete"]) for row in rows], [("ok", True)] * 3)

    def test_kill_of_a_backend(self):
        for way, state in itertools.product(self.ways, [at_full_speed, at_random]):
            with self.subTest(way, state=state.__name__), Session() as session:
                process = self.start(session, way, state)
                os.kill(session.pid, signal.SIGKILL)
                wait_for(lambda: not process.exists(), "end of the process")
                self.assertRaises(Failure, session.finish)
                self.wait_for_recovery()
                self.assert_as_before()

    def test_kill_of_a_backend_that_writes(self):
        """Its scratch file has no name, so nobody has to sweep it up."""
        for query in [rows_of("ping", "probed", count=60, every="1 s", mode="write"),
                      rows_of("ping", "probed", count=10000, every="1 ms", mode="pingpong", path="os")]:
            with self.subTest(query), Session() as session:
                process = self.start_probe(session, "SELECT", query)
                # It holds one, in the folder of the database.
                folder = os.path.dirname(segment_file(self.control, "probed"))
                is_there = lambda: any(name.startswith(f"{folder}/#") for name in process.descriptors())
                wait_for(is_there, "a scratch file")
                names = all_files()
                os.kill(session.pid, signal.SIGKILL)
                wait_for(lambda: not process.exists(), "end of the process")
                self.assertEqual(new_files(names), set(), "left by the kill")
                self.assertRaises(Failure, session.finish)
                self.wait_for_recovery()
                self.assertEqual(new_files(names), set(), "after recovery")
                self.assert_as_before()

    def test_kills_while_a_scratch_file_is_made(self):
        """At random moments, which the server's recovery follows."""
        seed = random.randrange(1 << 32)
        say(f"seed {seed}")
        moments = random.Random(seed)
        for _ in range(KILLS):
            with Session() as session:
                names = all_files()
                session.start(rows_of("ping", "probed", count=1, mode="write"))
                time.sleep(moments.uniform(0, 0.03))
                os.kill(session.pid, signal.SIGKILL)
                wait_for(lambda: not Process(session.pid).exists(), "end of the process")
                self.assertEqual(new_files(names), set())
                self.wait_for_recovery()
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
        for way, state in itertools.product(self.ways, [pausing, pausing_at_random]):
            with self.subTest(way, state=state.__name__), Session() as session:
                process = self.start(session, way, state)
                postmaster = Process(int(read(os.path.join(PGDATA, "postmaster.pid")).split()[0]))
                os.kill(postmaster.pid, signal.SIGKILL)
                asked = time.monotonic()
                wait_for(lambda: not process.exists(), "end of the process")
                ms = (time.monotonic() - asked) * 1000
                say(f"death of the postmaster during {way}, {state.__name__}: {ms:.0f} ms")
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
                once = f"{seqscan('probed', path)}; {random_reads('probed', path, depth=8)}"
                session.run(f"SET pg_io_probe.engine = {engine}; {once}")
            before = process.threads(), process.descriptors()
            memory = process.memory()
            seed = random.randrange(1 << 32)
            say(f"seed {seed}")
            moments = random.Random(seed)
            cancelled = 0
            for number in range(CANCELS):
                path, engine = list(self.ways.values())[number % len(self.ways)]
                session.run(f"SET pg_io_probe.engine = {engine}")
                if number % 16 < 8:
                    session.start(seqscan("probed", path, cold=number % 8 >= 4))
                else:
                    session.start(random_reads("probed", path, cold=number % 8 >= 4, depth=8))
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
    return repeated("seqscan", "probed", paths=[path])


def pausing(path):
    return seqscan("probed", path, duration="60 s", options={"max_mib_per_s": 1})


def at_random(path):
    return repeated("random", "probed", paths=[path], depth=8)


def pausing_at_random(path):
    return random_reads("probed", path, duration="60 s", depth=8, options={"max_mib_per_s": 1})


def all_files():
    """Names of all files in the data directory, and where its tablespaces are."""
    walked = os.walk(PGDATA, followlinks=True)
    return {os.path.join(directory, name) for directory, folders, names in walked for name in names + folders}


def new_files(before):
    """Those that are new, other than what a server writes when it recovers."""
    return {name for name in all_files() - before if not RECOVERY.search(name)}


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


if __name__ == "__main__":
    main()
