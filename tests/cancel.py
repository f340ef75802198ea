#!/usr/bin/env -S python3 -B
"""A probe ends when it is told to, on every path and in every state, and leaves nothing behind.

Times are printed, not judged, save that they stay under a bound that only a probe that doesn't listen would exceed.
"""

import signal
import time
import unittest

from lib import SEGMENT_BLOCKS, Failure, Process, Session, call, create_extension, dense_table
from lib import files_in_data_directory, main, repeated, say, seqscan, sparse_table, wait_for, wait_for_probe, ways

BLOCKS = 4096
BOUND_MS = 2000
TIMEOUT_MS = 300

# What a probe is doing when it is told to end.
AT_FULL_SPEED = ("at full speed", lambda path: repeated("dense", path))
PAUSING = ("pausing", lambda path: seqscan("dense", path, duration="60 s", options={"max_mib_per_s": 1}))
EVICTING = ("evicting", lambda path: repeated("dense", path, cold=True))
IN_A_LONG_FILE = ("in a long file", lambda path: seqscan("sparse", path, duration="60 s"))


class Cancel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.control = Session()
        dense_table(cls.control, "dense", BLOCKS)
        sparse_table(cls.control, "sparse", 256 * SEGMENT_BLOCKS)
        cls.sees_pins = create_extension(cls.control, "pg_buffercache")
        cls.files = files_in_data_directory()

    @classmethod
    def tearDownClass(cls):
        cls.control.close()

    def test_cancel(self):
        for way, state, session in self.running(AT_FULL_SPEED, PAUSING, EVICTING, IN_A_LONG_FILE):
            with self.subTest(way, state=state):
                self.ends(f"cancel, {way}, {state}", session, "57014", "user request", self.cancel)
                self.assert_session_goes_on(session, way)

    def test_interrupt_of_psql(self):
        """Ctrl-C, after which a psql that reads from a pipe leaves."""
        for way, state, session in self.running(AT_FULL_SPEED):
            with self.subTest(way, state=state):
                tell = lambda session: session.psql.send_signal(signal.SIGINT)
                self.ends(f"Ctrl-C, {way}, {state}", session, "57014", "user request", tell)
                self.assert_process_ends(session, way)

    def test_statement_timeout(self):
        for way, state, session in self.running(AT_FULL_SPEED, PAUSING, setup=f"SET statement_timeout = {TIMEOUT_MS}"):
            with self.subTest(way, state=state):
                what = f"statement_timeout, {way}, {state}"
                self.ends(what, session, "57014", "statement timeout", lambda session: None)
                session.run("SET statement_timeout = 0")
                self.assert_session_goes_on(session, way)

    def test_cancel_that_the_transaction_survives(self):
        """A PL/pgSQL block that catches it: only the subtransaction ends, which has to clean up as well."""
        with Session() as session:
            process = Process(session.pid)
            for way, (path, engine) in ways(self.control).items():
                session.run(f"SET pg_io_probe.engine = {engine}; {seqscan('dense', path)}; BEGIN")
                before = holdings(process)
                session.start(
                    f"""DO $$ BEGIN PERFORM {call('dense', path, duration='60 s', options={'max_mib_per_s': 1})};
                    EXCEPTION WHEN query_canceled THEN NULL; END $$"""
                )
                wait_for_probe(self.control, session.pid)
                self.cancel(session)
                session.finish()
                self.assert_free(session, process, before, way)
                session.run("COMMIT")

    def test_terminate(self):
        for way, state, session in self.running(AT_FULL_SPEED, PAUSING, EVICTING, IN_A_LONG_FILE):
            with self.subTest(way, state=state):
                tell = lambda session: self.control.value(f"SELECT pg_terminate_backend({session.pid})")
                self.ends(f"terminate, {way}, {state}", session, "57P01", "administrator command", tell)
                self.assert_process_ends(session, way)

    # What the tests are made of.

    def running(self, *states, setup="SELECT"):
        """For each way to read and each state a session with a running probe."""
        for way, (path, engine) in ways(self.control).items():
            for state, query in states:
                with Session() as session:
                    session.run(f"SET pg_io_probe.engine = {engine}; {seqscan('dense', path)}")
                    session.run(setup)
                    session.before = holdings(Process(session.pid))
                    session.started = time.monotonic()
                    session.start(query(path))
                    wait_for_probe(self.control, session.pid)
                    time.sleep(0.05)
                    yield way, state, session

    def cancel(self, session):
        self.control.value(f"SELECT pg_cancel_backend({session.pid})")

    def ends(self, what, session, sqlstate, words, tell):
        """Tells a running probe to end."""
        told = time.monotonic()
        tell(session)
        with self.assertRaises(Failure, msg=what) as raised:
            session.finish()
        if "timeout" in words:
            told = session.started + TIMEOUT_MS / 1000
        ms = (time.monotonic() - told) * 1000
        say(f"{what}: {ms:.0f} ms")
        self.assertEqual(raised.exception.sqlstate, sqlstate, what)
        self.assertIn(words, str(raised.exception), what)
        self.assertLess(ms, BOUND_MS, what)

    def assert_session_goes_on(self, session, what):
        self.assert_free(session, Process(session.pid), session.before, what)
        row = session.row(seqscan("dense", "direct"))
        self.assertEqual((row["status"], row["complete"], row["blks_scanned"]), ("ok", True, BLOCKS), what)
        self.assert_free_for_others(what)

    def assert_process_ends(self, session, what):
        process = Process(session.pid)
        wait_for(lambda: not process.exists(), f"end of the process: {what}")
        self.assert_free_for_others(what)

    def assert_free(self, session, process, before, what):
        self.assertEqual(holdings(process), before, what)
        locks = self.control.rows(
            f"""SELECT locktype, relation::regclass, mode FROM pg_locks WHERE pid = {session.pid}
            AND (locktype = 'advisory' OR relation IN ('dense'::regclass, 'sparse'::regclass))"""
        )
        self.assertEqual(locks, [], what)

    def assert_free_for_others(self, what):
        """This session has been there all the time, so no process has crashed."""
        self.assertEqual(self.control.rows("SELECT * FROM pg_locks WHERE locktype = 'advisory'"), [], what)
        self.assertEqual(self.control.rows("SELECT * FROM io_probe_progress()"), [], what)
        if self.sees_pins:
            self.assertEqual(self.control.value(PINS), 0, what)
        self.assertEqual(files_in_data_directory() - self.files, set(), what)


PINS = """SELECT count(*) FROM pg_buffercache WHERE pinning_backends > 0 AND relfilenode
    IN (pg_relation_filenode('dense'), pg_relation_filenode('sparse'))"""


def holdings(process):
    return {"threads": process.threads(), "descriptors": process.descriptors()}


if __name__ == "__main__":
    main()
