#!/usr/bin/env -S python3 -B
"""Ends that unwind nothing: kill -9 of a process and of the postmaster, and shutdowns, in each phase of each probe.

Needs root, to kill.
"""

import collections
import os
import signal
import time
import unittest

from lib import LONG, PGDATA, Failure, Process, Session, as_server, chance, connection, dense_table
from lib import files_in_data_directory, kill_backend, main, needs_root, read, restart_server, say, server_processes
from lib import start_server, wait_for
from probes import all_files, new_files, phase, phases, probes, some

BLOCKS = 2048
# In the long mode: kills in each phase of each probe; kills of each at random moments, from before it begins; deaths of
# the postmaster and shutdowns of each kind during each.
IN_A_PHASE, AT_RANDOM, DEATHS, SHUTDOWNS = 20, 5, 2, 2
# Files that a killed postmaster leaves. Until its process is reaped, a new postmaster would take it for alive.
STALE = [
    os.path.join(PGDATA, "postmaster.pid"), os.path.join(os.environ["PGHOST"], f".s.PGSQL.{os.environ['PGPORT']}.lock")
]  # fmt: skip
setUpModule = needs_root


class Crash(unittest.TestCase):
    """Whatever happens, the next test finds a server."""

    crashes = 0

    def setUp(self):
        self.control = Session()
        # Processes die here, not the machine: no sync is needed, and recovery would sync each file.
        self.control.run("ALTER SYSTEM SET fsync = off; SELECT pg_reload_conf()")
        dense_table(self.control, "probed", BLOCKS)
        self.addCleanup(self.clean_up)
        self.probes = probes(self.control)
        for probe in self.probes:
            self.control.run(probe.once)  # what it loads once may make files
        self.names, self.files = all_files(), files_in_data_directory()
        self.moments = chance()
        self.seen = collections.Counter()

    def clean_up(self):
        self.control.close()
        if not server_processes():
            self.start()
            self.control.close()
        with wait_for(connection, "the server to be back", 60) as session:
            session.run("DROP TABLE probed; ALTER SYSTEM RESET fsync; SELECT pg_reload_conf()")
        say(f"{sum(self.seen.values())} in all: {dict(sorted(self.seen.items()))}")

    def session(self):
        """A new session, also if the last attempt has failed and left no server."""
        if not server_processes():
            self.start()
        self.control.close()
        self.control = wait_for(connection, "a server", 60)
        return Session()

    def start(self):
        """Starts the server again."""
        self.control.close()
        for left in STALE:
            if os.path.exists(left):
                os.remove(left)
        start_server()
        self.control = Session()

    def meet(self, session, probe, wanted=None):
        """Starts a probe, and returns its process when it is in the phase `wanted`, or in any."""
        probe.start(session)
        is_there = lambda: phase(self.control, session.pid) == wanted if wanted else progress_of(self.control, session)
        # A phase may be over in a few milliseconds.
        wait_for(is_there, f"{probe.name}: {wanted or 'any phase'}", 120, 0.005)
        if not wanted:
            time.sleep(self.moments.uniform(0, 0.2))
        self.seen[f"{probe.name}: {phase(self.control, session.pid)}"] += 1
        return Process(session.pid)

    def kill(self, session):
        """Kills the process of a session; the server recovers from that."""
        kill_backend(session.pid)
        self.assertEqual(new_files(self.names), set(), "left by the kill")
        self.assert_ends(session, None)
        self.control.close()
        self.control = wait_for(connection, "the server to be back", 60)
        Crash.crashes += 1
        if Crash.crashes % 4 == 0:
            # With io_uring, the postmaster of 18 keeps the rings from before each crash: the sixth crash is its last.
            self.control.close()
            restart_server()
            self.control = Session()

    def assert_ends(self, session, sqlstate):
        """The caller loses the connection, and is told this SQLSTATE if a process is left to tell it."""
        with self.assertRaises(Failure) as raised:
            session.finish()
        self.assertEqual(raised.exception.sqlstate, sqlstate, raised.exception)

    def assert_as_before(self, probe):
        """No file and no lock is left, and the probe works."""
        self.assertEqual(new_files(self.names), set(), "after the start")
        self.assertEqual(files_in_data_directory() - self.files, set(), "after the start")
        self.assertEqual(self.control.rows("SELECT * FROM pg_locks WHERE locktype = 'advisory'"), [])
        self.assertEqual(self.control.rows("SELECT * FROM io_probe_progress()"), [])
        self.control.run(probe.once)

    def test_kill_in_each_phase(self):
        for probe in some(self.probes, 1, ["sync, wal", "ping, write"]):
            where = phases(probe) if LONG else [self.moments.choice(phases(probe))]
            for wanted in where * (IN_A_PHASE if LONG else 1):
                with self.subTest(probe.name, phase=wanted), self.session() as session:
                    self.meet(session, probe, wanted)
                    self.kill(session)
                    self.assert_as_before(probe)

    def test_kill_at_random_moments(self):
        """Some kills come before the probe begins."""
        for probe in some(self.probes, AT_RANDOM):
            with self.subTest(probe.name), self.session() as session:
                probe.start(session)
                time.sleep(self.moments.uniform(0, 0.05))
                self.seen[phase(self.control, session.pid)] += 1
                self.kill(session)
                self.assert_as_before(probe)

    def test_death_of_the_postmaster(self):
        """A probe ends soon after the postmaster, also if nothing makes the probe wait, and the server starts again."""
        slowest = 0
        for probe in some(self.probes, DEATHS):
            with self.subTest(probe.name), self.session() as session:
                process = self.meet(session, probe)
                os.kill(int(read(os.path.join(PGDATA, "postmaster.pid")).split()[0]), signal.SIGKILL)
                asked = time.monotonic()
                wait_for(lambda: not process.exists(), "end of the process")
                slowest = max(slowest, time.monotonic() - asked)
                self.assert_ends(session, None)
                self.control.close()
                wait_for(lambda: not server_processes(), "end of all processes", 30)
                self.assertEqual(new_files(self.names), set(), "left by the kill")
                self.start()
                self.assert_as_before(probe)
        say(f"the slowest took {slowest * 1000:.0f} ms")

    def test_shutdown(self):
        for mode in ["fast", "immediate"]:
            slowest = 0
            for probe in some(self.probes, SHUTDOWNS):
                with self.subTest(mode, probe=probe.name), self.session() as session:
                    process = self.meet(session, probe)
                    self.control.close()
                    asked = time.monotonic()
                    as_server("pg_ctl", "stop", "-w", "-t", "30", "-m", mode, "-D", PGDATA)
                    slowest = max(slowest, time.monotonic() - asked)
                    self.assertFalse(process.exists())
                    self.assertLess(slowest, 10)
                    # A server that is stopped at once sends its clients no error.
                    self.assert_ends(session, "57P01" if mode == "fast" else None)
                    self.assertEqual(new_files(self.names), set(), "left by the shutdown")
                    self.start()
                    self.assert_as_before(probe)
            say(f"{mode}: the slowest took {slowest * 1000:.0f} ms")


def progress_of(control, session):
    return phase(control, session.pid) != "between two calls"


if __name__ == "__main__":
    main()
