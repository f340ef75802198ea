#!/usr/bin/env -S python3 -B
"""One probe at a time in the whole cluster, and what others see of it."""

import time
import unittest

from lib import BLOCK, PATHS, VERSION, Failure, Session, call, dense_table, main, progress, seqscan, wait_for
from lib import wait_for_probe
from probes import probes

BLOCKS = 4096
BRIEF = seqscan("probed", "direct")
# The first two run beside a probe, and record keeps the refusal as a run.
NEVER_REFUSED = ["iostat", "evict", "record"]


def lasting(path="direct"):
    """A probe that lasts longer than any test."""
    return seqscan("probed", path, duration="60 s", options={"max_mib_s": 1})


def one_of_each(session):
    """A probe of each function that runs alone."""
    each = {probe.probe: probe for probe in probes(session) if probe.name not in NEVER_REFUSED}
    return each.values()


class Lock(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.control = Session()
        dense_table(cls.control, "probed", BLOCKS)

    @classmethod
    def tearDownClass(cls):
        cls.control.close()

    def setUp(self):
        self.first, self.second = Session(), Session()
        self.addCleanup(self.first.close)
        self.addCleanup(self.second.close)

    def start_first(self, query=lasting()):
        self.first.start_rows(query)
        return wait_for_probe(self.control, self.first.pid)

    def lock(self, **columns):
        """The probe's lock as pg_locks shows it."""
        wanted = " AND ".join(f"{name} = {value}" for name, value in columns.items())
        return self.control.rows(f"SELECT * FROM pg_locks WHERE locktype = 'advisory' AND {wanted}")

    def test_the_second_is_refused(self):
        known = one_of_each(self.control)
        self.start_first()
        held = f"SELECT * FROM pg_locks WHERE pid = {self.second.pid} AND locktype IN ('advisory', 'relation')"
        for probe in known:
            with self.subTest(probe.name):
                with self.assertRaises(Failure) as raised:
                    self.second.rows(probe.query)
                self.assertEqual(raised.exception.sqlstate, "55006")
                self.assertRegex(str(raised.exception), rf'DETAIL: .*PID {self.first.pid} \(role ".+"\) has been running '
                                                        r"io_probe_seqscan for \d+ s, and ends it in \d+ s at the latest")
                self.assertRegex(str(raised.exception), "HINT: .*wait")
                self.assertEqual(self.control.rows(held), [])

    def test_wrong_arguments_are_told_before_the_other_probe(self):
        self.start_first()
        wrong = [
            ("io_probe_seqscan('pg_tables')", "42809"),
            ("io_probe_random('pg_tables', options => '{\"wait\": true}')", "42809"),
            ("io_probe_recommend('probed', duration => '1 month')", "22023"),
            ("io_probe_recommend('pg_tables')", "42809"),
            ("io_probe_sync(sections => '{none}')", "22023"),
            ("io_probe_sync(write_kb => 8)", "22023"),
        ]
        for query, sqlstate in wrong:
            with self.subTest(query):
                with self.assertRaises(Failure) as raised:
                    self.second.rows(f"SELECT * FROM {query}")
                self.assertEqual(raised.exception.sqlstate, sqlstate, raised.exception)

    def test_a_report_beside_a_probe_is_refused_as_a_whole(self):
        self.start_first()
        self.second.run("SET client_min_messages = error")
        with self.assertRaises(Failure) as raised:
            self.second.rows("SELECT * FROM io_probe_report_full('probed', '100 ms')")
        self.assertEqual(raised.exception.sqlstate, "55006")
        run = self.second.value("SELECT io_probe_record('report', 'probed', '{\"duration\": \"100 ms\"}')")
        self.assertEqual(self.second.value(f"SELECT status FROM io_probe_runs WHERE id = {run}"), "skipped")
        self.control.value(f"SELECT pg_cancel_backend({self.first.pid})")
        with self.assertRaises(Failure):
            self.first.finish_rows()
        self.assertEqual(self.second.value("SELECT count(*) FROM io_probe_ping('probed', count => 1)"), 1)
        self.assertEqual(self.lock(pid=self.second.pid), [])

    def test_a_report_survives_a_probe_that_fails(self):
        """The transaction goes on, and nothing is left of what failed."""
        self.second.run("SET client_min_messages = error; SET pg_io_probe.scratch_reserve = '1000TB'; BEGIN")
        lines = self.second.rows("SELECT finding FROM io_probe_report_full('probed', '100 ms', writes => true) WHERE section = 'missing'")
        self.assertRegex("\n".join(line["finding"] for line in lines), "not enough room")
        self.assertEqual(self.second.value("SELECT count(*) FROM io_probe_ping('probed', count => 1)"), 1)
        self.assertEqual(self.lock(pid=self.second.pid), [])
        self.second.run("COMMIT")

    def test_the_second_is_refused_in_another_database(self):
        self.control.run("CREATE DATABASE elsewhere")
        self.addCleanup(self.control.run, "DROP DATABASE elsewhere")
        with Session(database="elsewhere") as other:
            other.run("CREATE EXTENSION pg_io_probe; CREATE TABLE probed AS SELECT 1 AS id")
            self.start_first()
            wait_for(lambda: self.on_a_path(self.first), "a path")
            with self.assertRaises(Failure) as raised:
                other.rows(BRIEF)
            self.assertEqual(raised.exception.sqlstate, "55006")
            (seen,) = other.rows("SELECT * FROM io_probe_progress()")
            # The relation's number means nothing in another database.
            self.assertEqual((seen["pid"], seen["relid"], seen["path"]), (self.first.pid, None, "direct"))

    def test_the_lock_is_visible(self):
        self.start_first()
        (lock,) = self.lock(pid=self.first.pid)
        self.assertEqual((lock["database"], lock["mode"], lock["granted"]), ("0", "ExclusiveLock", True))
        # The advisory locks of SQL are per database, so no session can shut out probes by them.
        taken = f"SELECT pg_try_advisory_lock(({lock['classid']}::bigint << 32) | {lock['objid']})"
        self.assertEqual(self.second.run(taken), ["t"])

    def test_the_lock_ends_with_the_call(self):
        """The lock does not last until the transaction ends."""
        self.first.run("BEGIN")
        self.first.rows(BRIEF)
        self.assertEqual(self.lock(database=0), [])
        held = f"SELECT mode FROM pg_locks WHERE pid = {self.first.pid} AND relation = 'probed'::regclass"
        self.assertEqual(self.control.rows(held), [])
        self.assertEqual(self.second.row(BRIEF)["status"], "ok")
        self.first.run("COMMIT")

    def test_waiting(self):
        self.start_first()
        self.second.start_rows(seqscan("probed", "direct", options={"wait": True}))
        wait_for(lambda: self.lock(pid=self.second.pid, granted=False), "the second to wait")
        waits = f"SELECT wait_event_type FROM pg_stat_activity WHERE pid = {self.second.pid}"
        self.assertEqual(self.control.value(waits), "Lock")
        self.assertTrue(self.second.busy())
        self.control.value(f"SELECT pg_cancel_backend({self.first.pid})")
        (row,) = self.second.finish_rows()
        self.assertEqual((row["status"], row["complete"]), ("ok", True))

    def test_lock_timeout(self):
        known = one_of_each(self.control)
        self.start_first()
        self.second.run("SET lock_timeout = 200")
        for probe in known:
            with self.subTest(probe.name):
                waiting = call(probe.probe, probe.relation, **{**probe.arguments, "options": {"wait": True}})
                with self.assertRaises(Failure) as raised:
                    self.second.rows(f"SELECT * FROM {waiting}")
                self.assertEqual(raised.exception.sqlstate, "55P03")
                self.assertEqual(self.lock(pid=self.second.pid), [])

    def test_progress(self):
        relation = {"relid": "probed", "probe": "seqscan", "total": BLOCKS}
        for path in PATHS:
            with self.subTest(path), Session() as session:
                session.start_rows(lasting(path))
                wait_for_probe(self.control, session.pid)
                # At first it is on no path yet.
                first = wait_for(lambda: self.on_a_path(session), "a path")
                self.assertEqual({**first, **relation, "path": path}, first)
                later = wait_for(lambda: self.further_than(first, session), "progress")
                self.assertEqual(later["started_at"], first["started_at"])
                self.assertLessEqual(first["done"], later["done"])
                self.assertLessEqual(later["done"], BLOCKS)
                begun = f"SELECT query_start <= '{first['started_at']}' FROM pg_stat_activity WHERE pid = {session.pid}"
                self.assertTrue(self.control.value(begun))
        self.assertEqual(self.control.rows("SELECT * FROM io_probe_progress()"), [])

    def test_progress_of_requests(self):
        self.start_first(f"SELECT * FROM {call('ping', 'probed', count=40, every='50 ms')}")
        first = wait_for(lambda: self.on_a_path(self.first), "a path")
        later = wait_for(lambda: self.further_than(first, self.first), "progress")
        self.assertEqual((later["path"], later["total"]), ("direct", 40))
        self.assertLessEqual(later["done"], 40)
        self.first.finish_rows()

    def test_progress_names_the_probe_and_its_relation(self):
        for probe in one_of_each(self.control):
            with self.subTest(probe.name), Session() as session:
                probe.start(session)
                seen = wait_for(lambda: progress(self.control, session.pid), "its progress")
                self.assertEqual((seen["probe"], seen["relid"]), (probe.probe, probe.relation))

    def on_a_path(self, session):
        now = progress(self.control, session.pid)
        self.assertIsNotNone(now, "the probe has ended")
        return now["path"] and now

    def further_than(self, seen, session):
        now = progress(self.control, session.pid)
        self.assertIsNotNone(now, "the probe has ended")
        return now["done"] > seen["done"] and now

    def test_progress_of_one_path_after_the_other(self):
        self.first.start_rows(seqscan("probed", "direct,server,os", options={"max_mib_s": BLOCKS * BLOCK >> 20}))
        seen = []
        while self.first.busy():
            now = progress(self.control, self.first.pid)
            if now and now["path"] and now["path"] not in seen:
                seen.append(now["path"])
            time.sleep(0.01)
        self.assertEqual(seen, ["direct", "server", "os"])
        self.assertEqual([row["complete"] for row in self.first.finish_rows()], [True] * 3)

    def test_wait_event(self):
        expected = ("Extension", "IoProbeRead" if VERSION >= 17 else "Extension")
        for path in ["direct", "os"]:
            with self.subTest(path), Session() as session:
                session.start_rows(lasting(path))
                wait_for_probe(self.control, session.pid)
                time.sleep(0.1)
                query = f"SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = {session.pid}"
                row = self.control.row(query)
                self.assertEqual((row["wait_event_type"], row["wait_event"]), expected)
                self.control.value(f"SELECT pg_cancel_backend({session.pid})")
                self.assertRaises(Failure, session.finish)
                # The session runs this query itself, since an idle session waits for its client.
                session.run(f"CREATE TABLE seen_{path} AS {query}")
                row = self.control.row(f"SELECT * FROM seen_{path}")
                self.assertEqual((row["wait_event_type"], row["wait_event"]), (None, None))

    def test_a_copy_keeps_its_own_progress(self):
        """A backend reports one command: the COPY that the probe is the query of."""
        self.first.start(f"COPY (SELECT path FROM ({lasting()}) AS p) TO '/dev/null'")
        copying = f"SELECT type FROM pg_stat_progress_copy WHERE pid = {self.first.pid}"
        wait_for(lambda: self.lock(pid=self.first.pid), "the probe to run")
        self.assertEqual(self.control.run(copying), ["FILE"])
        self.assertIsNone(progress(self.control, self.first.pid))


if __name__ == "__main__":
    main()
