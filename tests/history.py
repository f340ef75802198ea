#!/usr/bin/env -S python3 -B
"""Runs that are kept, whatever happens meanwhile: another probe, a cancel, a device that fails, the end of a process."""

import contextlib
import os
import textwrap
import threading
import time
import unittest
from unittest import mock

from ddl import Standby
from lib import Failure, Process, Session, Watched, chance, connection, dense_table, kill_backend, literal, main
from lib import needs_root, say, segment_file, wait_for, wait_for_probe
from probes import Holdings
from servers import Server
from storage import LoopDevice, create_tablespace

BLOCKS = 1024
MIB = 1 << 20
KILLS = 4
FAILURES = 200
# Half a minute on the table of Keeping.
LASTING = {"paths": ["direct"], "duration": "60 s", "options": {"max_mib_s": 1}}
BRIEF = {"paths": ["direct"], "duration": "100 ms"}


def record(args, probe="seqscan", rel="probed", label=None):
    """A query that records a probe."""
    on = f"rel => {literal(rel)}, " if rel else ""
    named = f", label => {literal(label)}" if label else ""
    return f"SELECT io_probe_record({literal(probe)}, {on}args => {literal(args)}{named})"


def measure(args):
    """A query that measures without storing."""
    return f"SELECT io_probe_measure('seqscan', 'probed', {literal(args)})"


def run_of(session, number):
    """What is stored of a run."""
    return session.row(f"SELECT * FROM io_probe_runs WHERE id = {number}")


def stored(session):
    """The numbers of all runs, each with how many rows it has."""
    rows = session.rows("SELECT id, (SELECT count(*) FROM io_probe_results WHERE run_id = id) AS rows FROM io_probe_runs")
    return {row["id"]: row["rows"] for row in rows}


class Keeping(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.control = Session()
        cls.addClassCleanup(cls.control.close)
        dense_table(cls.control, "probed", 4 * BLOCKS)

    def setUp(self):
        self.first, self.second = Session(), Session()
        self.addCleanup(self.first.close)
        self.addCleanup(self.second.close)

    def test_a_cancel_is_not_swallowed(self):
        """Nor are a statement_timeout, see sql/history.sql, and the end of a session, see signals.py."""
        before, holdings = stored(self.control), Holdings(self.first, self.control)
        for query in [record(LASTING), measure(LASTING)]:
            with self.subTest(query):
                self.first.start(query)
                wait_for_probe(self.control, self.first.pid)
                self.control.value(f"SELECT pg_cancel_backend({self.first.pid})")
                with self.assertRaises(Failure) as raised:
                    self.first.finish()
                self.assertEqual(raised.exception.sqlstate, "57014")
                self.assertEqual(stored(self.control), before)
                self.assertEqual(holdings.after_its_end(), {})
        # A block catches this cancel, and the transaction goes on.
        self.first.start(f"""DO $$ BEGIN PERFORM ({record(LASTING)});
            EXCEPTION WHEN query_canceled THEN PERFORM ({record(BRIEF, label="after")}); END $$""")
        wait_for_probe(self.control, self.first.pid)
        self.control.value(f"SELECT pg_cancel_backend({self.first.pid})")
        self.first.finish()
        (run,) = self.control.rows("SELECT status FROM io_probe_runs WHERE label = 'after'")
        self.assertEqual(run["status"], "ok")

    def test_two_at_once(self):
        """The second is kept as skipped, or waits, as its arguments say."""
        self.first.start(record(LASTING))
        wait_for_probe(self.control, self.first.pid)
        *warning, number = self.second.run(record(BRIEF, label="second"))
        self.assertRegex("\n".join(warning), r"^WARNING:  01000: probe \"seqscan\" was skipped: another probe is running\n"
                                             r"DETAIL:  SQLSTATE is 55006\.")
        run = run_of(self.control, number)
        self.assertEqual((run["status"], run["sqlstate"], run["message"], run["label"], run["object"]),
                         ("skipped", "55006", "another probe is running", "second", "public.probed"))
        self.assertEqual(stored(self.control)[int(number)], 0)
        with self.subTest("in a transaction that goes on"):
            self.second.run("BEGIN; CREATE TABLE other (id bigint)")
            self.second.run(f"INSERT INTO other {record(BRIEF)}")
            self.second.run("COMMIT")
            (run,) = self.second.rows("SELECT status FROM io_probe_runs JOIN other USING (id)")
            self.assertEqual(run["status"], "skipped")
            self.second.run("DROP TABLE other")
        with self.subTest("waiting, but not for ever"):
            patient = {**BRIEF, "options": {"wait": True}}
            self.second.run("SET lock_timeout = 200")
            number = self.second.run(record(patient))[-1]
            self.assertEqual(run_of(self.control, number)["sqlstate"], "55P03")
            self.second.run("RESET lock_timeout")
        with self.subTest("waiting"):
            self.second.start(record(patient))
            waits = f"SELECT * FROM pg_locks WHERE pid = {self.second.pid} AND locktype = 'advisory' AND NOT granted"
            wait_for(lambda: self.control.rows(waits), "the second to wait")
            self.control.value(f"SELECT pg_cancel_backend({self.first.pid})")
            (number,) = self.second.finish()
            self.assertEqual(run_of(self.control, number)["status"], "ok")
        self.assertRaises(Failure, self.first.finish)

    def test_many_failures_in_one_transaction(self):
        """Many skipped runs leave nothing but their rows."""
        self.first.start(record(LASTING))
        wait_for_probe(self.control, self.first.pid)
        self.second.run("SET client_min_messages = error; BEGIN")
        many = f"{record(BRIEF, label='many')} FROM generate_series(1, {FAILURES})"
        self.second.run(many)
        process = Process(self.second.pid)
        held = process.threads(), process.descriptors()
        with Watched(self.second) as watched:
            self.second.run(many)
        say(f"{FAILURES} skipped runs: {watched}")
        self.second.run("COMMIT")
        kept = "SELECT count(*) FROM io_probe_runs WHERE label = 'many' AND status = 'skipped'"
        self.assertEqual(self.control.value(kept), 2 * FAILURES)
        self.assertLess(watched.memory, 16 * MIB)
        self.assertEqual((process.threads(), process.descriptors()), held)

    def test_a_device_that_fails(self):
        needs_root()
        disk = LoopDevice(64 * MIB)
        self.addCleanup(disk.remove)
        place = create_tablespace(self.first, "elsewhere", disk.mount_point)
        self.addCleanup(self.control.run, "DROP TABLE failing; DROP TABLESPACE elsewhere")
        dense_table(self.first, "failing", BLOCKS, place)
        self.first.run("SELECT * FROM io_probe_evict('failing')")
        self.first.run(record(BRIEF))
        holdings = Holdings(self.first, self.control, ["failing"])
        with disk.cut_short_within(segment_file(self.first, "failing")):
            for path, message in [("direct", "could not read file "), ("server", "could not read block"),
                                  ("os", "could not read file ")]:
                with self.subTest(path):
                    *warning, number = self.first.run(record({"paths": [path]}, rel="failing", label="EIO"))
                    self.assertRegex("\n".join(warning), r"^WARNING:  01000: probe \"seqscan\" failed: could not read ")
                    run = run_of(self.control, number)
                    self.assertEqual((run["status"], run["sqlstate"], run["label"]), ("failed", "58030", "EIO"))
                    self.assertTrue(run["message"].startswith(message), run["message"])
                    self.assertEqual((run["spcname"], run["device"]), ("elsewhere", os.path.basename(disk.device)))
                    self.assertEqual(stored(self.control)[int(number)], 0)
                    self.assertEqual(holdings.left(), {})
        (number,) = self.first.run(record({"paths": ["direct"]}, rel="failing"))
        self.assertEqual(run_of(self.control, number)["status"], "ok")

    def test_a_relation_that_goes_meanwhile(self):
        """The relation's names stay in the history."""
        dense_table(self.control, "going", 64)
        (number,) = self.first.run(record(BRIEF, rel="going"))
        self.control.run("DROP TABLE going")
        row = self.second.row(f"SELECT relname, status, relid FROM io_probe_seqscan_history WHERE run_id = {number}")
        self.assertEqual((row["relname"], row["status"]), ("going", "ok"))
        with self.assertRaises(Failure) as raised:
            self.first.run(f"SELECT io_probe_record('seqscan', {row['relid']})")
        self.assertEqual(raised.exception.sqlstate, "42P01")

    def test_triggers_are_seen_before_anything_is_measured(self):
        self.control.run("CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'")
        self.control.run("CREATE TRIGGER fires BEFORE INSERT ON io_probe_results FOR EACH ROW EXECUTE FUNCTION fires()")
        self.addCleanup(self.control.run, "DROP FUNCTION fires CASCADE")
        self.first.run("BEGIN; SET LOCAL statement_timeout = '2 s'")
        with self.assertRaises(Failure) as raised:
            self.first.run(record(LASTING))
        self.first.run("ROLLBACK")
        self.assertEqual(raised.exception.sqlstate, "55000")

    def test_standby(self):
        standby = Standby(self.control)
        self.addCleanup(standby.stop)
        standby.start()
        standby.catch_up()
        with Session(host=standby.host) as session, Session(host=standby.host) as other:
            for query in [record(LASTING), "SELECT io_probe_import('{}')", "SELECT io_probe_prune('1 year')"]:
                with self.subTest(query):
                    with self.assertRaises(Failure) as raised:
                        session.run(query)
                    self.assertEqual(raised.exception.sqlstate, "55000")
                    self.assertRegex(str(raised.exception), r"HINT: .*io_probe_measure.*io_probe_import")
            (value,) = session.run(measure(BRIEF))
            session.start(measure(LASTING))
            wait_for_probe(other, session.pid)
            *warning, skipped = other.run(measure(BRIEF))
            self.assertIn("another probe is running", "\n".join(warning))
        for result, status, rows in [(value, "ok", 1), (skipped, "skipped", 0)]:
            (number,) = self.first.run(f"SELECT io_probe_import({literal(result)}, 'of the standby')")
            run = run_of(self.control, number)
            self.assertEqual((run["status"], run["in_recovery"], run["label"]), (status, True, "of the standby"))
            self.assertEqual(stored(self.control)[int(number)], rows)
            mine = run_of(self.control, self.first.run(record(BRIEF))[-1])
            self.assertEqual(run["system_identifier"], mine["system_identifier"])
            self.assertNotEqual(run["series"], mine["series"])


class Kills(unittest.TestCase):
    """What was committed is there after the next start; what was not has left nothing."""

    def setUp(self):
        needs_root()
        self.server = Server("killed")
        self.addCleanup(self.server.remove)
        self.server.start()
        with self.server.session() as session:
            session.run("CREATE EXTENSION pg_io_probe")
            dense_table(session, "probed", BLOCKS)

    def writer(self, returned):
        """Records until the server is gone, and keeps the numbers that it was given."""
        try:
            with self.server.session() as session:
                while True:
                    returned.append(int(session.run(record({}, probe="device", rel=None))[-1]))
        except (Failure, BrokenPipeError, ValueError):
            pass

    def assert_all_there(self, returned):
        with wait_for(lambda: connection(self.server.session), "the server to be back", 60) as session:
            runs = stored(session)
            self.assertEqual(set(returned) - set(runs), set())
            self.assertNotIn(0, runs.values())
            self.assertEqual(session.value("SELECT count(*) FROM io_probe_runs WHERE label = 'in the middle'"), 0)
            (number,) = session.run(record(BRIEF))
            self.assertGreater(int(number), max(runs))
            self.assertEqual(run_of(session, number)["status"], "ok")

    def test_kills_at_random_moments(self):
        moments = chance()
        returned = []
        for _ in range(KILLS):
            writer = threading.Thread(target=self.writer, args=[returned])
            writer.start()
            wait_for(lambda enough=len(returned) + 3: len(returned) >= enough, "some runs", 30)
            time.sleep(moments.uniform(0, 0.05))
            self.server.kill()
            writer.join()
            self.server.start()
            self.assert_all_there(returned)
        say(f"{len(returned)} runs before {KILLS} kills")

    def test_kill_in_the_middle_of_a_probe(self):
        returned = []
        for kill in [lambda session: kill_backend(session.pid), lambda _: self.server.kill()]:
            with self.server.session() as session, self.server.session() as control:
                returned += [int(session.run(record(BRIEF))[-1]) for _ in range(3)]
                session.start(record(LASTING, label="in the middle"))
                wait_for_probe(control, session.pid)
                kill(session)
                self.assertRaises(Failure, session.finish)
            if not self.is_running():
                self.server.start()
            self.assert_all_there(returned)

    def is_running(self):
        postmaster = self.server.postmaster()
        return postmaster is not None and Process(postmaster).exists()


class Md5(unittest.TestCase):
    """Where OpenSSL obeys FIPS 140 there is no MD5. Runs can be compared without it."""

    # This asks for approved algorithms, which OpenSSL's own are not. Random numbers are exempt: the server needs them to start.
    CONFIGURATION = """
        openssl_conf = all
        [all]
        providers = providers
        random = random
        alg_section = algorithms
        [providers]
        default = own
        [own]
        activate = 1
        [random]
        properties = -fips
        seed_properties = -fips
        [algorithms]
        default_properties = fips=yes
    """

    def test_openssl_without_md5(self):
        server = Server("fips")
        self.addCleanup(server.remove)
        configuration = os.path.join(server.host, "openssl.cnf")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(self.CONFIGURATION))
        with mock.patch.dict(os.environ, OPENSSL_CONF=configuration):
            server.start()
        with server.session() as session:
            session.run("CREATE EXTENSION pg_io_probe; CREATE TABLE probed AS SELECT 1 AS id")
            with contextlib.suppress(Failure):
                session.run("SELECT md5('')")
                self.skipTest("this server's md5() is its own, or an OpenSSL before 3.0")
            numbers = [session.value(record({"paths": ["os"]}, label=label)) for label in "ab"]
            self.assertEqual({run_of(session, number)["status"] for number in numbers}, {"ok"})
            for query in ["io_probe_compare('a', 'b')", "io_probe_changes(1)"]:
                session.rows(f"SELECT * FROM {query}")


if __name__ == "__main__":
    main()
