#!/usr/bin/env -S python3 -B
"""Every probe ends on every path when it is told to, and leaves nothing behind.

Times are printed. They are judged only by a bound that a probe exceeds if it doesn't listen. Each run tries one half of
the cases, see half_of(); the long mode all.
"""

import itertools
import os
import signal
import time
import unittest

from lib import SEGMENT_BLOCKS, SYNC_SECTIONS, Failure, Session, dense_table, engines, files_in_data_directory, half_of
from lib import knows_readahead, main, progress, repeated, rows_of, say, segment_file, seqscan, sparse_table, wait_for
from lib import wait_for_probe, ways
from probes import Holdings

BLOCKS = 4096
BOUND_MS = 4000
TIMEOUT_MS = 300
LONG = "60 s"
SLOW = {"max_mib_s": 1}
TABLES = ["dense", "sparse"]
# A DO block loads PL/pgSQL, and its settings.
SETTINGS = "SELECT array_agg(name || '=' || setting ORDER BY name) FROM pg_settings WHERE name NOT LIKE 'plpgsql.%'"

# What a scan is doing when it is told to end.
AT_FULL_SPEED = ("at full speed", lambda path: repeated("seqscan", "dense", paths=[path]))
PAUSING = ("pausing", lambda path: seqscan("dense", path, duration=LONG, options=SLOW))
EVICTING = ("evicting", lambda path: repeated("seqscan", "dense", paths=[path], cold=True))
IN_A_LONG_FILE = ("in a long file", lambda path: seqscan("sparse", path, duration=LONG))


def other(probe, engine="auto", table="dense", **arguments):
    """A call of another probe, with no table if it takes none."""
    return probe, engine, table, arguments


# The list has each path and engine, each kind of pause and each table, but not all combinations.
OTHERS = [
    other("random", paths=["direct"]),
    other("random", "io_uring", paths=["direct"], depth=32),
    other("random", "threads", paths=["direct"], depth=32, cold=True),
    other("random", paths=["server"]),
    other("random", paths=["server"], depth=32, cold=True),
    other("random", paths=["os"], cold=True),
    other("random", "io_uring", paths=["os"], depth=32),
    other("random", "threads", paths=["os"], depth=32),
    other("random", paths=["direct"], duration=LONG, options={"max_iops": 10}),
    other("random", paths=["server"], depth=32, duration=LONG, options=SLOW),
    other("random", paths=["os"], depth=32, duration=LONG, options=SLOW),
    other("random", table="sparse", paths=["direct"], duration=LONG),
    other("random", table="sparse", paths=["os"], depth=32, duration=LONG),
    other("depth", "io_uring", depths=[1, 32], duration="40 s"),
    other("depth", "threads", depths=[2, 32], duration="40 s"),
    other("ping", count=60, every="1 s"),
    other("ping", count=60, every="1 s", mode="pingpong"),
    other("ping", count=10000, every="0", mode="write"),
    other("ping", count=1, mode="write", path="os"),
    other("iostat", table=None, every="100 ms", count=300),
    other("sync", table=None),
    *[other("sync", table=None, sections=[section]) for section in SYNC_SECTIONS],
    other("sync", table=None, sections=["wal_segment"], depth=16),
    other("sync", table=None, sections=["one_write"], duration="5 s", options={"max_iops": 10}),
    other("readahead", windows_kb=[64], duration="15 s", options=SLOW),
    other("readahead", "io_uring", windows_kb=[64, 1024], duration="15 s"),
    other("readahead", table="sparse", windows_kb=[64], duration="15 s"),
    other("readahead", windows_kb=[0], duration="15 s"),
    other("readahead", "threads", windows_kb=[64, 1024], duration="15 s"),
    other("page_cost", cold=True, duration=LONG),
    other("page_cost", cold=True, densities=[0.03, 1], concurrencies=[0, 128], duration=LONG, options=SLOW),
    other("page_cost", table="sparse", duration=LONG),
    other("recommend", settings=["random_page_cost"], cold=True, duration="20 s"),
    other("report", cold=True, duration="20 s"),
    other("recommend", cold=True, writes=True, duration="15 s", settings=["wal_sync_method"]),
    other("recommend", writes=True, duration="15 s", settings=["checkpoint_flush_after", "backend_flush_after"]),
    other("recommend", cold=True, duration="15 s", settings=["read_ahead_kb"], options=SLOW),
]


class Cancel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.control = Session()
        dense_table(cls.control, "dense", BLOCKS)
        sparse_table(cls.control, "sparse", 256 * SEGMENT_BLOCKS)
        cls.files = files_in_data_directory()

    @classmethod
    def tearDownClass(cls):
        cls.control.close()

    def test_cancel(self):
        for what, session in self.running(self.scans(AT_FULL_SPEED, PAUSING, EVICTING, IN_A_LONG_FILE), self.others()):
            with self.subTest(what):
                self.ends(f"cancel, {what}", session, "57014", "user request", self.cancel)
                self.assert_session_goes_on(session, what)

    def test_interrupt_of_psql(self):
        """Ctrl-C ends the probe. A psql that reads from a pipe leaves after it."""
        for what, session in self.running(self.scans(AT_FULL_SPEED), self.others()):
            with self.subTest(what):
                tell = lambda session: session.psql.send_signal(signal.SIGINT)
                self.ends(f"Ctrl-C, {what}", session, "57014", "user request", tell)
                self.assert_process_ends(session, what)

    def test_statement_timeout(self):
        probes = self.scans(AT_FULL_SPEED, PAUSING), self.others()
        for what, session in self.running(*probes, setup=f"SET statement_timeout = {TIMEOUT_MS}"):
            with self.subTest(what):
                self.ends(f"statement_timeout, {what}", session, "57014", "statement timeout", lambda session: None)
                session.run("SET statement_timeout = 0")
                self.assert_session_goes_on(session, what)

    def test_cancel_that_the_transaction_survives(self):
        """A PL/pgSQL block catches the cancel: only the subtransaction ends, which has to clean up as well."""
        with Session() as session:
            for what, engine, before, query in half_of([*self.scans(PAUSING), *self.others()]):
                session.run(f"SET pg_io_probe.engine = {engine}; {before}; BEGIN")
                settings, holdings = session.run(SETTINGS), Holdings(session, self.control, TABLES)
                session.start(
                    f"""DO $$ BEGIN PERFORM * FROM ({query}) AS probe;
                    EXCEPTION WHEN query_canceled THEN NULL; END $$"""
                )
                wait_for_probe(self.control, session.pid)
                self.cancel(session)
                session.finish()
                self.assertEqual(holdings.left(), {}, what)
                self.assertEqual(session.run(SETTINGS), settings, what)
                session.run("COMMIT")

    def test_terminate(self):
        for what, session in self.running(self.scans(AT_FULL_SPEED, PAUSING, EVICTING, IN_A_LONG_FILE), self.others()):
            with self.subTest(what):
                tell = lambda session: self.control.value(f"SELECT pg_terminate_backend({session.pid})")
                self.ends(f"terminate, {what}", session, "57P01", "administrator command", tell)
                self.assert_process_ends(session, what)

    def test_a_scratch_file_is_seen(self):
        """The check for leftovers would see a scratch file."""
        query = rows_of("ping", "dense", count=60, every="1 s", mode="write")
        for what, session in self.running([("ping, writing", "auto", "SELECT", query)]):
            scratch = os.path.dirname(segment_file(self.control, "dense")) + "/#"
            held = lambda: session.holdings.process.descriptors()
            wait_for(lambda: any(name.startswith(scratch) for name in held()), "the scratch file")
            self.cancel(session)
            self.assertRaises(Failure, session.finish)
            self.assert_session_goes_on(session, what)

    # What the tests are made of.

    def scans(self, *states):
        """Each way to scan in each state: a name, the engine, a brief query and one that lasts."""
        for way, (path, engine) in ways(self.control).items():
            for state, query in states:
                yield f"seqscan, {way}, {state}", engine, seqscan("dense", path), query(path)

    def others(self):
        """The same for the other probes."""
        known = knows_readahead(self.control)
        for probe, engine, table, arguments in OTHERS:
            if engine in ["auto", *engines(self.control)] and (known or probe != "readahead"):
                words = [probe, engine, table or "no table", *(f"{name} {value}" for name, value in arguments.items())]
                brief = {**arguments, **({"count": 1} if probe in ["ping", "iostat"] else {"duration": "20 ms"})}
                before = rows_of(probe, table and "dense", **brief)
                yield ", ".join(words), engine, before, repeated(probe, table, **arguments)

    def running(self, *probes, setup="SELECT"):
        """For each probe, or for a half of them, a session in which it is running."""
        for what, engine, before, query in half_of(itertools.chain(*probes)):
            with Session() as session:
                session.run(f"SET pg_io_probe.engine = {engine}; {before}")
                session.run(setup)
                session.holdings = Holdings(session, self.control, TABLES)
                session.started = time.monotonic()
                session.start(query)
                # A probe may time out before its progress could be seen.
                wait_for(lambda: progress(self.control, session.pid) or not session.busy(), "the probe")
                time.sleep(0.05)
                yield what, session

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
        self.assertEqual(session.holdings.left(), {}, what)
        row = session.row(seqscan("dense", "direct"))
        self.assertEqual((row["status"], row["complete"], row["blks"]), ("ok", True, BLOCKS), what)
        self.assert_free_for_others(session, what)

    def assert_process_ends(self, session, what):
        wait_for(lambda: not session.holdings.process.exists(), f"end of the process: {what}")
        self.assert_free_for_others(session, what)

    def assert_free_for_others(self, session, what):
        """The control session has been there all the time, so no process has crashed."""
        self.assertEqual(session.holdings.after_its_end(), {}, what)
        self.assertEqual(files_in_data_directory() - self.files, set(), what)


if __name__ == "__main__":
    main()
