#!/usr/bin/env -S python3 -B
"""Which session uses storage, as io_probe_sessions says, beside the kernel's account of each process. Needs root to look."""

import os
import re
import subprocess
import unittest

from lib import BLOCK, VERSION, Failure, Session, dense_table, main, needs_root, read, rows_of, segment_file, wait_for_probe
from storage import cache_only

MIB = 1 << 20
BLOCKS = 8192


def setUpModule():
    needs_root()
    with Session() as session:
        for name in ["one", "two"]:
            dense_table(session, name, BLOCKS)
            session.run(f"VACUUM {name}")
        session.run("CHECKPOINT")
    unittest.addModuleCleanup(drop)


def drop():
    with Session() as session:
        session.run("DROP TABLE one, two")


class Account:
    """What a session's process has moved since."""

    def __init__(self, session):
        self.pid, self.before = session.pid, self.look(session.pid)

    @staticmethod
    def look(pid):
        return {name: int(value) for name, value in re.findall(r"(\w+): (\d+)", read(f"/proc/{pid}/io"))}

    def moved(self):
        now = self.look(self.pid)
        return {name: now[name] - before for name, before in self.before.items()}


class Sessions(unittest.TestCase):
    """A session that watches, and others that work meanwhile."""

    def setUp(self):
        self.watcher = Session()
        self.addCleanup(self.watcher.close)

    def session(self):
        session = Session()
        self.addCleanup(session.close)
        session.run("SET max_parallel_workers_per_gather = 0; SET client_min_messages = warning")
        return session

    def make_cold(self, name):
        with Session() as session:
            if VERSION >= 17:
                session.run(f"SELECT io_probe_evict('{name}')")
            else:
                session.run(f"VACUUM FULL {name}; CHECKPOINT")
            cache_only(segment_file(session, name), [])

    def watch(self, work, every="500 ms", count=6):
        """The rows while `work` is done, which takes less time."""
        self.watcher.start_rows(rows_of("sessions", every=every, count=count))
        with Session() as control:
            wait_for_probe(control, self.watcher.pid)
        work()
        self.assertTrue(self.watcher.busy(), "it ended too early to see all")
        return self.watcher.finish_rows()

    def total(self, rows, column, **wanted):
        """MiB in all intervals, of the rows of which this is true."""
        chosen = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
        return sum((row[column] or 0) * row["elapsed_ms"] / 1000 for row in chosen)

    def test_each_session_has_what_its_account_says(self):
        self.check_accounts({"rmib_s": lambda moved: moved["read_bytes"], "wmib_s": lambda moved: moved["write_bytes"]})

    def test_what_came_from_the_cache_is_what_its_account_says(self):
        """In one interval: what is read ahead in one and asked for in the next is from the cache there."""
        self.check_accounts({"os_mib_s": lambda moved: max(0, moved["rchar"] - moved["read_bytes"])}, every="3 s", count=1)

    def check_accounts(self, columns, **intervals):
        reader, cached, writer = self.session(), self.session(), self.session()
        self.make_cold("one")
        self.make_cold("two")
        cached.run("SELECT count(*) FROM two")  # into the OS cache, and not all of it into shared buffers
        # Only reads by the process itself are on its own account.
        reader.run("SET effective_io_concurrency = 0")
        cached.run("SET effective_io_concurrency = 0")
        accounts = {session: Account(session) for session in [reader, cached, writer]}

        def work():
            reader.run("SELECT count(*) FROM one")
            cached.run("SELECT count(*) FROM two")
            writer.run("CREATE TABLE written AS SELECT g, repeat(md5(g::text), 50) FROM generate_series(1, 5000) g; "
                       "DROP TABLE written")  # fmt: skip

        rows = self.watch(work, **intervals)
        for session, name in [(reader, "reader"), (cached, "cached"), (writer, "writer")]:
            moved = accounts[session].moved()
            for column, of_account in columns.items():
                expected = of_account(moved)
                with self.subTest(name, column=column):
                    found = self.total(rows, column, pid=session.pid)
                    # What is less than a few blocks an interval is in no row.
                    self.assertAlmostEqual(found, expected / MIB, delta=0.05 * expected / MIB + 0.2)
        self.assertGreater(self.total(rows, "rmib_s", pid=reader.pid), BLOCKS * BLOCK / MIB * 0.95)
        self.assertGreater(self.total(rows, "wmib_s", pid=writer.pid), 5)

    def test_what_io_workers_read_is_the_readers(self):
        readers = [self.session(), self.session()]
        self.make_cold("one")
        self.make_cold("two")

        def work():
            for reader, name in zip(readers, ["one", "two"]):
                # Two seconds, in which it is looked at a hundred times what they hand over.
                reader.start(f"SELECT count(CASE WHEN id % 4 = 0 THEN pg_sleep(0.0002) END) FROM {name}")
            for reader in readers:
                reader.finish()

        rows = self.watch(work, every="2 s", count=3)
        for reader in readers:
            found = self.total(rows, "rmib_s", pid=reader.pid)
            self.assertAlmostEqual(found, BLOCKS * BLOCK / MIB, delta=BLOCKS * BLOCK / MIB * 0.1)

    def test_all_rows_together_are_the_devices(self):
        self.make_cold("one")
        reader = self.session()
        rows = self.watch(lambda: reader.run("SELECT count(*) FROM one"))
        for sample in {row["sample"] for row in rows}:
            of_sample = [row for row in rows if row["sample"] == sample]
            self.assertEqual(of_sample[-2]["process"], "outside this server")
            self.assertRegex(of_sample[-1]["process"], "^(still cached|other writes)$")
            self.assertTrue(all(row["pid"] for row in of_sample[:-2] if row["kind"] not in ["ended", "io worker"]))
        self.assertGreater(self.total(rows, "rmib_s"), BLOCKS * BLOCK / MIB * 0.99)

    def test_one_that_ends_is_not_lost(self):
        self.make_cold("one")
        command = ["psql", "-Xqc", "SET effective_io_concurrency = 0; SET max_parallel_workers_per_gather = 0; SELECT count(*) FROM one"]
        rows = self.watch(lambda: subprocess.run(command, check=True, capture_output=True), every="2 s", count=1)
        self.assertGreater(self.total(rows, "rmib_s", kind="ended"), BLOCKS * BLOCK / MIB * 0.95, rows)

    def test_one_that_ends_is_named(self):
        self.make_cold("one")
        # It is looked at once more before it ends.
        command = ["psql", "-Xqc", "SET max_parallel_workers_per_gather = 0; SELECT count(*), pg_sleep(1.5) FROM one"]
        environment = {**os.environ, "PGAPPNAME": "export"}
        rows = self.watch(lambda: subprocess.run(command, check=True, capture_output=True, env=environment), every="6 s", count=1)
        named = [row for row in rows if row["application_name"] == "export"]
        self.assertEqual([row["process"] for row in named], [f"{os.environ['PGUSER']}@{os.environ['PGDATABASE']}, ended"], rows)
        self.assertGreater(self.total(named, "rmib_s"), BLOCKS * BLOCK / MIB * 0.95, rows)

    def test_one_that_ends_takes_along_what_io_workers_read_for_it(self):
        self.make_cold("one")
        command = ["psql", "-Xqc", "SET max_parallel_workers_per_gather = 0; SELECT count(*) FROM one"]
        rows = self.watch(lambda: subprocess.run(command, check=True, capture_output=True), every="2 s", count=1)
        found = sum(self.total(rows, "rmib_s", kind=kind) for kind in ["ended", "io worker"])
        self.assertGreater(found, BLOCKS * BLOCK / MIB * 0.95, rows)

    def test_parallel_workers_stand_beside_their_leader(self):
        self.make_cold("one")
        leader, other = self.session(), self.session()
        leader.run("SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; "
                   "SET seq_page_cost = 0; SET effective_io_concurrency = 0")  # fmt: skip
        other.start("SELECT count(*) FROM two, pg_sleep(1)")
        rows = self.watch(lambda: leader.run("SELECT count(*), pg_sleep(1) FROM (SELECT count(pg_sleep(0)) FROM one) s"),
                          every="200 ms", count=10)  # fmt: skip
        other.finish()
        for earlier, row in zip(rows, rows[1:]):
            if row["leader_pid"]:
                self.assertIn(row["leader_pid"], [earlier["pid"], earlier["leader_pid"]])

    def test_a_report_names_who_used_the_device_meanwhile(self):
        self.watcher.run("SET client_min_messages = warning")
        with self.session() as writer:
            self.watcher.start_rows(rows_of("report_full", "one", duration="6 s", options={"max_mib_s": 20}))
            while self.watcher.busy():
                writer.run("CREATE TABLE written AS SELECT repeat('x', 900) FROM generate_series(1, 100000); CHECKPOINT; DROP TABLE written")
        trust = [line for line in self.watcher.finish_rows() if line["section"] == "trust"]
        self.assertLessEqual({line["item"] for line in trust}, {"fair", "poor"})
        self.assertRegex(trust[0]["finding"], r"others caused \d+ % of the disk traffic \((client backend|checkpointer) ")

    def test_nobody_sees_more_than_pg_stat_activity_shows(self):
        with Session() as session:
            session.run("CREATE ROLE curious LOGIN")
            self.addCleanup(self.drop_role)
        with Session(user="curious") as curious:
            with self.assertRaises(Failure) as raised:
                curious.rows(rows_of("sessions"))
            self.assertEqual(raised.exception.sqlstate, "42501")
            self.watcher.run("GRANT EXECUTE ON FUNCTION io_probe_sessions, io_probe_sessions_full TO curious")
            reader = self.session()
            self.make_cold("one")
            curious.start_rows(rows_of("sessions", every="1 s"))
            with Session() as control:
                wait_for_probe(control, curious.pid)
            reader.run("SELECT count(*) FROM one")
            rows = [row for row in curious.finish_rows() if row["pid"] == reader.pid]
        self.assertTrue(all(row["query"] in [None, "<insufficient privilege>"] for row in rows), rows)

    def drop_role(self):
        with Session() as session:
            session.run("DROP OWNED BY curious; DROP ROLE curious")


if __name__ == "__main__":
    main()
