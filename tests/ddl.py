#!/usr/bin/env -S python3 -B
"""A probe gives way to sessions that wait for its relation, and delays no others: DDL, other databases, replay."""

import os
import time
import unittest

from lib import PATHS, TEST_TMP, Failure, Session, as_server, dense_table, knows_readahead, main, random_reads, rows_of
from lib import say, seqscan, wait_for, wait_for_probe

BLOCKS = 1024
# Seconds. The probe looks for waiters once a second; a probe that doesn't would go on until it is done.
PATIENCE = 30
LONG = "60 s"
# No byte budget shall end the probe before.
ALL = {"max_bytes": 64 << 30}
NOTE = "another session waits for a lock on this relation"


def slowly(path, relation="probed"):
    """A scan of ten blocks a second."""
    return seqscan(relation, path, duration=LONG, chunk_kb=8, options={"max_iops": 10})


def slowly_at_random(path, relation="probed", depth=1):
    """Random fetches of ten blocks a second."""
    return random_reads(relation, path, duration=LONG, depth=depth, options={"max_iops": 10})


def ping(relation="probed", **arguments):
    """Ten requests a second."""
    return rows_of("ping", relation, count=150, **arguments)


class Ddl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.control = Session()

    @classmethod
    def tearDownClass(cls):
        cls.control.close()

    def setUp(self):
        self.control.run("DROP TABLE IF EXISTS probed")
        dense_table(self.control, "probed", BLOCKS)
        self.control.run("CREATE INDEX probed_id ON probed (id) WITH (fillfactor = 10)")

    def test_what_needs_the_relation_for_itself(self):
        for path, relation, command in [
            ("direct", "probed", "ALTER TABLE probed ADD note text"),
            ("server", "probed", "TRUNCATE probed"),
            ("os", "probed", "VACUUM FULL probed"),
            ("direct", "probed_id", "ALTER TABLE probed ADD remark text"),
            ("server", "probed", "LOCK TABLE probed"),
            ("os", "probed", "DROP TABLE probed"),
        ]:
            with self.subTest(command, path=path), Session() as prober, Session() as other:
                self.control.run("INSERT INTO probed SELECT g, repeat('x', 8000) FROM generate_series(1, 512) AS g")
                self.control.run("CHECKPOINT")
                self.start(prober, slowly(path, relation))
                other.start(f"BEGIN; {command}; COMMIT" if "VACUUM" not in command else command)
                asked = time.monotonic()
                (row,) = prober.finish_rows()
                other.finish()
                say(f"{command} during {path}: waited {(time.monotonic() - asked) * 1000:.0f} ms")
                self.assertLess(time.monotonic() - asked, PATIENCE)
                self.assertEqual((row["status"], row["complete"]), ("partial", False))
                self.assertIn(NOTE, " ".join(row["notes"]))
                self.assertGreater(row["blks"], 0)
                self.assertLess(row["blks"], row["blks_total"])

    def test_a_session_that_others_wait_for(self):
        """The session holds a lock on the relation already, so its probe need not wait behind one that wants a stronger lock."""
        with Session() as prober, Session() as other:
            prober.run("BEGIN; UPDATE probed SET id = id WHERE id = 1; SET LOCAL statement_timeout = '20 s'")
            other.start("ALTER TABLE probed ADD late text")
            waiting = f"SELECT count(*) FROM pg_locks WHERE pid = {other.pid} AND NOT granted"
            wait_for(lambda: self.control.value(waiting) != "0", "someone who waits")
            status = prober.value("SELECT status FROM io_probe_seqscan_full('probed', '{os}', '100 ms')")
            self.assertIn(status, ["ok", "partial"])
            prober.run("COMMIT")
            other.finish()

    def test_what_needs_it_during_random_fetches(self):
        for query, command in [
            (slowly_at_random("direct"), "ALTER TABLE probed ADD note text"),
            (slowly_at_random("direct", depth=32), "LOCK TABLE probed"),
            (slowly_at_random("server", "probed_id"), "REINDEX INDEX probed_id"),
            (slowly_at_random("server", depth=16), "TRUNCATE probed"),
            (slowly_at_random("os"), "VACUUM FULL probed"),
            (slowly_at_random("direct,server,os"), "LOCK TABLE probed"),
            (rows_of("depth", "probed", depths=[1, 8], duration="30 s", options=ALL), "ALTER TABLE probed ADD remark text"),
            (ping(), "LOCK TABLE probed"),
            *[(query, "ALTER TABLE probed ALTER id TYPE bigint") for query in self.readahead()],
            (ping(mode="write"), "DROP TABLE probed"),
        ]:
            with self.subTest(query), Session() as prober, Session() as other:
                self.control.run("INSERT INTO probed SELECT g, repeat('x', 8000) FROM generate_series(1, 512) AS g")
                self.control.run("CHECKPOINT")
                self.start(prober, query)
                other.start(f"BEGIN; {command}; COMMIT" if "VACUUM" not in command else command)
                asked = time.monotonic()
                rows = prober.finish_rows()
                other.finish()
                say(f"{command} during {query}: waited {(time.monotonic() - asked) * 1000:.0f} ms")
                self.assertLess(time.monotonic() - asked, PATIENCE)
                self.assertEqual({row["status"] for row in rows}, {"partial"})
                self.assertIn(NOTE, " ".join(rows[-1]["notes"]))
                self.assertEqual({row.get("complete", False) for row in rows}, {False})

    def test_what_goes_on_beside_a_probe(self):
        """A statement whose lock does not conflict with a reader's does not wait, and the probe goes on."""
        with Session() as prober:
            self.start(prober, slowly("direct"))
            for command in [
                "INSERT INTO probed SELECT g, repeat('y', 8000) FROM generate_series(1, 512) AS g",
                "UPDATE probed SET id = id WHERE id <= 100",
                "CREATE INDEX ON probed (id)",
                "ANALYZE probed",
                "VACUUM (TRUNCATE false) probed",
            ]:
                self.control.run(command)
                self.assertTrue(prober.busy(), command)

    def test_who_waits_for_another_session(self):
        """The waiter's lock does not conflict with a reader's: the probe's end would not help it, so the probe goes on."""
        with Session() as prober, Session() as writer, Session() as other:
            writer.run("BEGIN; INSERT INTO probed VALUES (0, '')")
            other.start("CREATE INDEX ON probed (id)")
            waits = f"SELECT 1 FROM pg_locks WHERE pid = {other.pid} AND NOT granted"
            wait_for(lambda: self.control.rows(waits), "the CREATE INDEX to wait")
            # Two seconds a path.
            rows = prober.rows(seqscan("probed", "direct,server,os", duration="45 s", options={"max_mib_s": 4}))
            self.assertEqual([(row["status"], row["complete"]) for row in rows], [("ok", True)] * 3)
            self.assertTrue(self.control.rows(waits))
            writer.run("COMMIT")
            other.finish()

    def test_growth_during_a_probe(self):
        """The probe reads the blocks that were there when it began."""
        with Session() as prober:
            self.start(prober, seqscan("probed", "direct", options={"max_mib_s": 8}))
            self.control.run("INSERT INTO probed SELECT g, repeat('y', 8000) FROM generate_series(1, 512) AS g")
            (row,) = prober.finish_rows()
            self.assertEqual((row["status"], row["complete"]), ("ok", True))
            self.assertEqual((row["blks"], row["blks_total"]), (BLOCKS, BLOCKS))

    def test_a_path_that_has_not_begun_when_someone_waits(self):
        """All paths of a call give way, not only the one that is running."""
        with Session() as prober, Session() as other:
            self.start(prober, slowly("direct,server,os"))
            other.start("BEGIN; LOCK TABLE probed; COMMIT")
            asked = time.monotonic()
            rows = prober.finish_rows()
            other.finish()
            say(f"LOCK TABLE during all three: waited {(time.monotonic() - asked) * 1000:.0f} ms")
            self.assertLess(time.monotonic() - asked, PATIENCE)
            self.assertEqual([row["complete"] for row in rows], [False] * 3)

    def test_tables_that_nobody_named_are_not_waited_for(self):
        """io_probe_recommend picks its tables itself: it passes over one that is locked, and waits for one that is given."""
        advice = rows_of("recommend", settings=["random_page_cost"], duration="20 ms")
        with Session() as prober, Session() as other:
            dense_table(self.control, "larger", 2 * BLOCKS)
            self.addCleanup(self.control.run, "DROP TABLE larger")
            self.assertEqual([row["relid"] for row in prober.rows(advice)], ["larger"])
            other.run("BEGIN; LOCK TABLE larger")
            self.assertEqual([row["relid"] for row in prober.rows(advice)], ["probed"])
            other.run("LOCK TABLE probed")
            # In another tablespace there is a table as well, which is too small.
            self.control.run("SET allow_in_place_tablespaces = on; CREATE TABLESPACE second LOCATION ''")
            self.addCleanup(self.control.run, "DROP TABLESPACE second")
            self.control.run("CREATE TABLE small (id int) TABLESPACE second")
            self.addCleanup(self.control.run, "DROP TABLE small")
            rows = prober.rows(rows_of("recommend", settings=["random_page_cost"], duration="20 ms"))
            self.assertEqual({(row["relid"], row["recommended"]) for row in rows}, {(None, None)})
            for row in rows:
                self.assertIn("8 MiB" if row["name"] == "second" else "strong locks", row["why"])
            prober.start_rows(rows_of("recommend", "probed", settings=["random_page_cost"], duration="20 ms"))
            time.sleep(0.3)
            self.assertTrue(prober.busy())
            other.run("COMMIT")
            self.assertEqual([row["relid"] for row in prober.finish_rows()], ["probed"])

    def test_databases(self):
        """CREATE DATABASE and DROP DATABASE wait for an answer of every server process. A probe gives it."""
        for query in [*map(slowly, PATHS), *map(slowly_at_random, PATHS), slowly_at_random("server", depth=16),
                      rows_of("depth", "probed", depths=[8], duration=LONG, options=ALL), ping(mode="write"),
                      *self.readahead()]:
            with self.subTest(query), Session() as prober:
                self.start(prober, query)
                for command in ["CREATE DATABASE beside", "DROP DATABASE beside"]:
                    asked = time.monotonic()
                    self.control.run(command)
                    say(f"{command} during {query}: {(time.monotonic() - asked) * 1000:.0f} ms")
                    self.assertLess(time.monotonic() - asked, PATIENCE)
                self.assertTrue(prober.busy())

    def test_standby(self):
        standby = Standby(self.control)
        self.addCleanup(standby.stop)
        standby.start()
        with Session(host=standby.host) as session, Session(host=standby.host) as control:
            session.run("SET pg_io_probe.max_duration = '10 min'")
            rows = session.rows("SELECT * FROM io_probe_seqscan_full('probed', cold => true)")
            self.assertEqual([(row["path"], row["status"]) for row in rows],
                             [("direct", "ok"), ("server", "ok"), ("os", "ok")])
            self.assertEqual([row["blks"] for row in rows], [BLOCKS] * 3)
            self.assertEqual(session.row("SELECT * FROM io_probe_evict('probed')")["os_bytes_after"], 0)
            rows = session.rows(rows_of("random", "probed"))
            self.assertEqual([(row["path"], row["status"], row["blks"]) for row in rows],
                             [(path, "ok", BLOCKS) for path in PATHS])
            if knows_readahead(session):
                rows = session.rows(rows_of("readahead", "probed", windows_kb=[64], duration="400 ms"))
                self.assertEqual({row["status"] for row in rows}, {"ok"})
            rows = session.rows(rows_of("ping", "probed", count=4, every="0", mode="pingpong"))
            self.assertEqual([(row["op"], row["status"]) for row in rows], [("write", "ok"), ("read", "ok")] * 2)

            # Replay that may not wait cancels the probe. To replay that may wait, the probe gives way.
            for delay, query in [
                ("0", slowly("direct", "gone")), ("0", slowly("server", "gone")), ("0", slowly("os", "gone")),
                ("0", slowly_at_random("direct", "gone", 8)), ("0", slowly_at_random("server", "gone")),
                ("0", ping("gone", mode="write")), ("30s", slowly("direct", "gone")), ("30s", slowly("server", "gone")),
                ("30s", slowly_at_random("os", "gone")),
            ]:
                # The server may send the cancel twice. Up to 15 the second one ends an idle session.
                with self.subTest(query, delay=delay), Session(host=standby.host) as session:
                    control.run(f"ALTER SYSTEM SET max_standby_streaming_delay = '{delay}'")
                    control.run("SELECT pg_reload_conf()")
                    self.control.run("DROP TABLE IF EXISTS gone")
                    dense_table(self.control, "gone", 512)
                    standby.catch_up()
                    self.start(session, query, control)
                    self.control.run("DROP TABLE gone")
                    asked = time.monotonic()
                    try:
                        (row,) = session.finish_rows()
                        self.assertEqual((row["status"], delay), ("partial", "30s"))
                        self.assertIn(NOTE, " ".join(row["notes"]))
                        end = row["status"]
                    except Failure as failure:
                        self.assertEqual((failure.sqlstate, delay), ("40001", "0"))
                        end = failure.sqlstate
                    say(f"DROP TABLE on the primary, delay {delay}, {query}: {end} after "
                        f"{(time.monotonic() - asked) * 1000:.0f} ms")
                    self.assertLess(time.monotonic() - asked, PATIENCE)
                    standby.catch_up()
                    self.assertIsNone(control.value("SELECT to_regclass('gone')"))

    def readahead(self):
        """Curves over readahead windows, at full speed and with pauses, if possible here. They don't end when precise."""
        endless = {**ALL, "precision": 1e-6}
        options = [endless, {**endless, "max_mib_s": 4}] if knows_readahead(self.control) else []
        return [rows_of("readahead", "probed", windows_kb=[64], duration="20 s", options=chosen) for chosen in options]

    def start(self, prober, query, control=None):
        """Starts a probe and waits until it reads."""
        prober.start_rows(query)
        wait_for_probe(control or self.control, prober.pid)
        time.sleep(0.2)


class Standby:
    """A hot standby of the server, with a socket of its own."""

    def __init__(self, primary):
        self.primary = primary
        self.control = None
        self.host = os.path.join(TEST_TMP, "standby")
        self.data = os.path.join(self.host, "data")

    def start(self):
        as_server("mkdir", self.host)
        # With a slot, the primary keeps the WAL that a slow standby still needs.
        as_server("pg_basebackup", "-D", self.data, "-R", "-C", "-S", "standby", "-c", "fast", "--no-sync")
        as_server("pg_ctl", "start", "-w", "-t", "60", "-D", self.data, "-l", os.path.join(self.host, "log"),
                  "-o", f"-c unix_socket_directories={self.host}")
        self.control = Session(host=self.host)

    def restart(self):
        """Empties its shared buffers, too."""
        self.control.close()
        as_server("pg_ctl", "restart", "-w", "-t", "60", "-D", self.data, "-l", os.path.join(self.host, "log"))
        self.control = Session(host=self.host)

    def catch_up(self):
        """Waits until the standby has replayed what the primary has written."""
        written = self.primary.value("SELECT pg_current_wal_lsn()")
        wait_for(
            lambda: self.control.value(f"SELECT pg_last_wal_replay_lsn() >= '{written}'"), "the standby to catch up", 30
        )

    def stop(self):
        if self.control:
            self.control.close()
        if os.path.exists(os.path.join(self.data, "postmaster.pid")):
            as_server("pg_ctl", "stop", "-m", "immediate", "-D", self.data)
        wait_for(self.drop_slot, "the end of the slot")

    def drop_slot(self):
        """Drops the slot; false while the standby's connection has not ended yet."""
        self.primary.run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active")
        return self.primary.value("SELECT count(*) FROM pg_replication_slots") == 0


if __name__ == "__main__":
    main()
