#!/usr/bin/env -S python3 -B
"""Relations, tablespaces and databases that come, go and move while each probe runs; standbys that replay that, and
that are promoted."""

import contextlib
import dataclasses
import itertools
import os
import time
import unittest

from ddl import Standby
from lib import LONG, TEST_TMP, Failure, Session, as_server, chance, create_extension, dense_table
from lib import files_in_data_directory, main, say, wait_for
from probes import Holdings, Outcomes, phase, probes, some

BLOCKS = 512
TIMES = 5
PROMOTIONS = 20 if LONG else 1
CONFLICTS = 20
# Seconds. DDL waits until the probe looks for waiters, once a second; then the DDL takes its time itself.
PATIENCE = 30
GOOD = "(ok|partial|unsupported|void|rows)( and (ok|partial|unsupported|void))*"
REFILL = "INSERT INTO probed SELECT g, repeat('x', 8000) FROM generate_series(1, 64) AS g"
ANEW = "CREATE TABLE probed (id int, filler text); CREATE INDEX probed_id ON probed (id) WITH (fillfactor = 10)"
COMMANDS = [
    [f"BEGIN; DROP TABLE probed; {ANEW}; {REFILL}; COMMIT"],
    ["DROP TABLE probed", ANEW, REFILL],
    ["TRUNCATE probed", REFILL],
    ["VACUUM FULL probed"],
    ["ALTER TABLE probed SET TABLESPACE one", "ALTER TABLE probed SET TABLESPACE two"],
    ["ALTER INDEX probed_id SET TABLESPACE one", "ALTER TABLE probed SET TABLESPACE pg_default"],
    ["REINDEX INDEX probed_id"],
    ["REINDEX TABLE probed"],
    ["REINDEX INDEX CONCURRENTLY probed_id"],
    ["ALTER TABLE probed ALTER id TYPE bigint", "ALTER TABLE probed ALTER id TYPE int"],
    ["CREATE TABLESPACE gone LOCATION '{gone}'", "CREATE TABLE there TABLESPACE gone AS SELECT 1", "DROP TABLE there",
     "DROP TABLESPACE gone"],
    ["CREATE DATABASE beside", "DROP DATABASE beside"],
]  # fmt: skip


class DdlRaces(unittest.TestCase):
    def setUp(self):
        self.session, self.other, self.control = Session(), Session(), Session()
        for session in [self.control, self.other, self.session]:
            self.addCleanup(session.close)
        self.moments = chance()
        create_extension(self.control, "pg_buffercache")
        dense_table(self.control, "probed", BLOCKS)
        self.control.run("CREATE INDEX probed_id ON probed (id) WITH (fillfactor = 10)")
        self.addCleanup(self.control.run, "DROP TABLE IF EXISTS probed")
        self.session.run("SET pg_io_probe.scratch_reserve = 0")
        self.outcomes = Outcomes()
        self.addCleanup(self.outcomes.tell)

    def test_ddl_at_random(self):
        """Another session runs DDL at random. A probe gives way, or says what is gone."""
        for name in ["one", "two", "gone"]:
            as_server("mkdir", os.path.join(TEST_TMP, name))
        for name in ["one", "two"]:
            self.control.run(f"CREATE TABLESPACE {name} LOCATION '{os.path.join(TEST_TMP, name)}'")
        known = probes(self.session, "gone")
        on_table = [probe for probe in known if probe.probe in ["seqscan", "random", "ping", "depth", "evict"]]
        known += [dataclasses.replace(probe, name=f"{probe.name}, of an index", table="probed_id") for probe in on_table]
        for probe in known:
            self.outcomes.of("", self.session, probe)
        self.outcomes.seen.clear()
        holdings, files = Holdings(self.session, self.control, ["probed", "probed_id"]), files_in_data_directory()
        slowest, ran = 0, 0
        for probe in some(known, TIMES):
            with self.subTest(probe.name):
                self.session.run(f"SET pg_io_probe.engine = {probe.engine}")
                commands = iter(())
                self.session.start(f"SELECT row_to_json(r) FROM ({probe.query}) AS r")
                while True:
                    if (command := next(commands, None)) is None:
                        if not self.session.busy():
                            break
                        commands = iter(self.moments.choice(COMMANDS))
                        continue
                    asked = time.monotonic()
                    self.other.run(command.replace("{gone}", os.path.join(TEST_TMP, "gone")))
                    slowest, ran = max(slowest, time.monotonic() - asked), ran + 1
                ended, told = self.outcomes.note("DDL at random", self.session, probe)
                # The table, or the tablespace, may not have been there at first.
                self.assertRegex(ended, f"^({GOOD}|42P01|42704|recorded 42P01 and rows)$", told)
                self.assertEqual(holdings.left(), {})
        say(f"{ran} commands, the slowest took {slowest * 1000:.0f} ms")
        self.assertLess(slowest, PATIENCE)
        self.assertEqual(files_in_data_directory() - files, set())
        self.control.run("DROP TABLE probed")
        for name in ["one", "two"]:
            self.control.run(f"DROP TABLESPACE {name}")

    def test_a_standby_that_replays(self):
        """Replay that does not wait ends every probe from whose relation it takes something away."""
        standby = Standby(self.control)
        self.addCleanup(as_server, "rm", "-rf", standby.host)
        self.addCleanup(standby.stop)
        standby.start()
        with Session(host=standby.host) as control:
            # Asked before replay can end the query.
            known = [probe for probe in probes(control) if probe.relation and probe.probe != "record"]
            control.run("ALTER SYSTEM SET max_standby_streaming_delay = 0; SELECT pg_reload_conf()")
            conflicts = {
                "a lock": ["ALTER TABLE probed ALTER id TYPE bigint", "ALTER TABLE probed ALTER id TYPE int"],
                "rows that are gone": [REFILL, "DELETE FROM probed WHERE id < 60", "VACUUM (TRUNCATE false) probed"],
            }
            for what, probe in itertools.product(conflicts, some(known, TIMES)):
                # The server may send the cancel twice. Up to 15 the second one ends an idle session.
                with self.subTest(what, probe=probe.name), contextlib.closing(warm_session(standby.host, probe)) as session:
                    holdings = without_conflict(lambda: Holdings(session, control))
                    session.run("SET pg_io_probe.scratch_reserve = 0")
                    probe.start(session)
                    wait_for(lambda: phase(control, session.pid) != "between two calls", "the probe")
                    # Several times: io_probe_recommend holds no lock on the relation while it writes beside the WAL.
                    for _ in range(CONFLICTS):
                        for command in conflicts[what]:
                            self.other.run(command)
                        without_conflict(standby.catch_up)
                        if not session.busy():
                            break
                    ended, told = self.outcomes.note(f"conflict over {what}", session, probe)
                    self.assertEqual(ended, "40001", told)
                    self.assertEqual(without_conflict(holdings.after_its_end), {})
                    without_conflict(standby.catch_up)
            for number in range(TIMES if LONG else 1):
                with self.subTest("a database that is gone"):
                    self.other.run("CREATE DATABASE beside TEMPLATE template0")
                    standby.catch_up()
                    self.check_database(standby, control, known[number % len(known)])

    def check_database(self, standby, control, probe):
        """Replay of DROP DATABASE ends the session of a probe in the database."""
        with Session("beside") as session:
            session.run("CREATE EXTENSION pg_io_probe")
            dense_table(session, "probed", BLOCKS)
        standby.catch_up()
        with Session("beside", standby.host) as session:
            probe.start(session)
            wait_for(lambda: phase(control, session.pid) != "between two calls", "the probe")
            self.other.run("DROP DATABASE beside")
            ended, told = self.outcomes.note("conflict over a database", session, probe)
            self.assertEqual(ended, "57P04", told)
        standby.catch_up()
        self.assertEqual(control.rows("SELECT * FROM pg_locks WHERE locktype = 'advisory'"), [])

    def test_promotion(self):
        """A probe goes on through a promotion. Afterwards io_probe_record can store."""
        for number in range(PROMOTIONS):
            standby = Standby(self.control)
            try:
                standby.start()
                with Session(host=standby.host) as session, Session(host=standby.host) as control:
                    session.run("SET pg_io_probe.scratch_reserve = 0")
                    known = [probe for probe in probes(control) if probe.probe != "record"]
                    probe = known[number % len(known)] if LONG else self.moments.choice(known)
                    with self.subTest(probe.name):
                        session.run(probe.once)
                        holdings = Holdings(session, session)
                        probe.start(session)
                        wait_for(lambda: phase(control, session.pid) != "between two calls", "the probe")
                        # Promoted by a signal: replay could end a query.
                        as_server("pg_ctl", "promote", "-w", "-D", standby.data)
                        time.sleep(0.3)
                        self.assertTrue(session.busy())
                        control.run(f"SELECT pg_cancel_backend({session.pid})")
                        ended, told = self.outcomes.note("promotion, and then a cancel", session, probe)
                        self.assertEqual(ended, "57014", told)
                        self.assertEqual(holdings.left(), {})
                        (number,) = session.run("SELECT io_probe_record('seqscan', 'probed')")
                        self.assertGreater(int(number), 0)
            finally:
                standby.stop()
                as_server("rm", "-rf", standby.host)


def warm_session(host, probe):
    """A session that has run the probe before. Replay may end that run, and the session too if it is in a subtransaction."""
    for left in reversed(range(10)):
        session = Session(host=host)
        try:
            session.run(probe.once)
            return session
        except Failure as failure:
            session.close()
            if failure.sqlstate != "40001" or not left:
                raise


def without_conflict(ask):
    """Asks again if replay has ended that query, too."""
    for left in reversed(range(10)):
        try:
            return ask()
        except Failure as failure:
            if failure.sqlstate != "40001" or not left:
                raise


if __name__ == "__main__":
    main()
