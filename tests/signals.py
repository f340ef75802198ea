#!/usr/bin/env -S python3 -B
"""Cancels, terminations and timeouts at random moments of each probe: an end that unwinds leaves nothing behind."""

import collections
import itertools
import os
import time
import unittest

from lib import LONG, Failure, Session, chance, dense_table, files_in_data_directory, main, say, wait_for
from probes import Holdings, phase, probes, some

BLOCKS = 2048
MIB = 1 << 20
# Cancels in one session, over all probes. Terminations of each probe in the long mode.
CANCELS = 2_000 if LONG else 200
TERMINATIONS = 10


class Signals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.control = Session()
        cls.addClassCleanup(cls.control.close)
        dense_table(cls.control, "probed", BLOCKS)
        cls.addClassCleanup(cls.control.run, "DROP TABLE probed")
        cls.probes = probes(cls.control)

    def setUp(self):
        self.moments = chance()
        self.ends = collections.Counter()
        self.met = collections.Counter()

    def prepared(self, session):
        """Lets a session load what is loaded once. Returns what it holds, and the files that there are."""
        for probe in self.probes:
            session.run(probe.once)
        return Holdings(session, self.control), files_in_data_directory()

    def test_cancels(self):
        """At random moments, in one session."""
        with Session() as session:
            holdings, files = self.prepared(session)
            for number in range(CANCELS):
                probe = self.moments.choice(self.probes)
                timeout = number % 4 == 0
                delay = self.moments.choice([0.003, 0.02, 0.1]) * self.moments.random()
                if number == CANCELS // 2:
                    memory = holdings.process.memory()  # malloc has found its size
                # SET LOCAL ends with the transaction.
                limit = f"BEGIN; SET LOCAL statement_timeout = {max(1, round(delay * 1000))}"
                probe.start(session, limit if timeout else "BEGIN")
                if not timeout:
                    time.sleep(delay)
                    if number % 5 == 1:  # the others come at once
                        self.met[phase(self.control, session.pid)] += 1
                    self.cancel(session)
                try:
                    session.finish()
                    self.ends["ended by itself"] += 1
                except Failure as failure:
                    self.assertEqual(failure.sqlstate, "57014", f"{probe.name}: {failure}")
                    self.ends["timeout" if timeout else "cancel"] += 1
                session.run("ROLLBACK")
                if number % 10 == 0:
                    self.assertEqual(holdings.left(), {}, probe.name)
            grown = holdings.process.memory() - memory
            say(f"{dict(self.ends)}; memory grew by {grown // 1024} kB")
            say(dict(sorted(self.met.items())))
            self.assert_met_probes()
            self.assertGreater(self.ends["cancel"], 0)
            self.assertGreater(self.ends["timeout"], 0)
            self.assertEqual(holdings.left(), {})
            self.assertLess(grown, 4 * MIB)
            self.assertEqual(files_in_data_directory() - files, set())

    def cancel(self, session):
        """Cancels a statement; once more if the first cancel came before it."""
        for again in itertools.count():
            self.control.value(f"SELECT pg_cancel_backend({session.pid})")
            asked = time.monotonic()
            while session.busy():
                time.sleep(0.001)
                if time.monotonic() > asked + 1:
                    break
            else:
                self.ends["cancelled again"] += again
                return
            self.assertLess(again, 3, "it does not listen")

    def test_terminations(self):
        with Session() as session:
            _, files = self.prepared(session)
        kept = "SELECT count(*) FROM io_probe_runs"
        runs = self.control.value(kept)
        for probe in some(self.probes, TERMINATIONS, ["record"]):
            with self.subTest(probe.name), Session() as session:
                holdings = Holdings(session, self.control)
                probe.start(session)
                time.sleep(self.moments.uniform(0, 0.15))
                self.met[phase(self.control, session.pid)] += 1
                self.control.value(f"SELECT pg_terminate_backend({session.pid})")
                with self.assertRaises(Failure) as raised:
                    session.finish()
                self.assertEqual(raised.exception.sqlstate, "57P01", raised.exception)
                wait_for(lambda: not os.path.exists(f"/proc/{session.pid}/task"), "the end of it and its threads")
                self.assertEqual(holdings.after_its_end(), {})
                self.assertEqual(files_in_data_directory() - files, set())
                self.assertEqual(self.control.value(kept), runs)
        say(dict(sorted(self.met.items())))
        self.assert_met_probes()

    def assert_met_probes(self):
        """Not all signals came between two calls."""
        self.assertNotEqual(set(self.met) - {"between two calls"}, set(), self.met)


if __name__ == "__main__":
    main()
