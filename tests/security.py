#!/usr/bin/env -S python3 -B
"""Attacks by roles with little right: docs/security.md has the table.

What could succeed only if a schema is renamed at the right moment is tried while one is renamed all the time.
"""

import os
import threading
import time
import unittest

from lib import LONG, TEST_TMP, Failure, Session, create_extension, dense_table, main, rows_of, say, seqscan, wait_for

# Of an attack that takes its chances.
SECONDS = 60 if LONG else 6
ROWS = 2000
OWNED = os.path.join(TEST_TMP, "owned")
# Planning evaluates it, since it says that it is constant.
TROJAN = f"""
    CREATE FUNCTION home.act() RETURNS boolean LANGUAGE plpgsql VOLATILE AS
        $$ BEGIN EXECUTE 'COPY (SELECT 1) TO PROGRAM ''touch {OWNED}'''; RETURN true; END $$;
    CREATE FUNCTION home.constant(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN RETURN home.act(); EXCEPTION WHEN insufficient_privilege THEN RETURN true; END $$;
    GRANT USAGE ON SCHEMA home TO public
"""


class Swapped:
    """Two schemas change their names, there and back, again and again meanwhile."""

    def __init__(self, first, second, role, database=None):
        self.there = f"BEGIN; ALTER SCHEMA {first} RENAME TO between; ALTER SCHEMA {second} RENAME TO {first}; COMMIT"
        self.back = f"BEGIN; ALTER SCHEMA {first} RENAME TO {second}; ALTER SCHEMA between RENAME TO {first}; COMMIT"
        self.session = Session(database)
        self.session.run(f"SET ROLE {role}")
        self.over, self.times = threading.Event(), 0

    def swap(self):
        while not self.over.is_set():
            self.session.run(self.there)
            self.session.run(self.back)
            self.times += 1

    def __enter__(self):
        self.thread = threading.Thread(target=self.swap)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self.session.close()


class Security(unittest.TestCase):
    def setUp(self):
        self.control = Session()
        self.addCleanup(self.control.close)
        if os.path.exists(OWNED):
            os.remove(OWNED)
        self.control.run("CREATE ROLE mallory")
        self.addCleanup(self.drop_role)

    def drop_role(self):
        self.control.run("DROP OWNED BY mallory CASCADE; DROP ROLE mallory")

    def as_mallory(self, database=None):
        session = Session(database)
        self.addCleanup(session.close)
        session.run("SET ROLE mallory")
        return session

    def again_and_again(self, swapped, attack):
        """How often it was tried, and did not fail."""
        done, tries, end = 0, 0, time.monotonic() + SECONDS
        with swapped:
            while time.monotonic() < end:
                tries += 1
                try:
                    attack()
                    done += 1
                except Failure as failure:
                    # A schema that was renamed, and the statement that was not run for it, or that knew the other name.
                    self.assertIn(failure.sqlstate, ["55006", "42P01", "42883", "3F000", "40P01", "XX000"], failure)
        say(f"{tries} tries, {done} went through, {swapped.times} swaps")
        # An attack that is always refused for another reason would show nothing.
        self.assertGreater(done, 0)
        self.assertGreater(swapped.times, 10)

    def test_a_table_that_is_another_one_when_it_is_asked_about(self):
        """What is planned or executed with the rights of a table's owner is about that table."""
        database = self.control.value("current_database()")
        self.control.run(f"GRANT CREATE ON DATABASE {database} TO mallory")
        self.control.run("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO mallory")
        mallory = self.as_mallory()
        mallory.run(f"CREATE SCHEMA app; CREATE SCHEMA app_evil; CREATE SCHEMA home; {TROJAN}")
        mallory.run("CREATE VIEW app_evil.t AS SELECT g AS id, '(0,1)'::tid AS ctid, ''::text AS filler "
                    "FROM generate_series(1, 10) AS g WHERE home.constant(1)")
        dense_table(self.control, "app.t", ROWS)
        self.control.run("CREATE INDEX ON app.t (id); ANALYZE app.t; GRANT SELECT ON app.t TO mallory")
        oid = self.control.value("'app.t'::regclass::oid::int8")
        attacks = [
            rows_of("page_cost", duration="20 ms", densities=[1], concurrencies=[1]).replace("(", f"({oid}, ", 1),
            rows_of("recommend", settings=["random_page_cost"], duration="200 ms").replace("(", f"({oid}, ", 1),
        ]

        def attack():
            for query in attacks:
                mallory.rows(query)

        self.again_and_again(Swapped("app", "app_evil", "mallory"), attack)
        self.assertFalse(os.path.exists(OWNED))

    def test_a_table_whose_name_can_not_be_written(self):
        """Text of a database without an encoding may be no UTF-8: a name that is made so is another's."""
        self.control.run("CREATE DATABASE bytes ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'")
        self.addCleanup(self.control.run, "DROP DATABASE bytes WITH (FORCE)")
        with Session("bytes") as owner:
            owner.run("CREATE EXTENSION pg_io_probe; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO mallory")
            owner.run("GRANT CREATE ON DATABASE bytes TO mallory")
            mallory = self.as_mallory("bytes")
            mallory.run(f"CREATE SCHEMA app; CREATE SCHEMA home; {TROJAN}")
            mallory.run("CREATE VIEW app.t\ufffd AS SELECT g AS id, '(0,1)'::tid AS ctid FROM generate_series(1, 10) AS g "
                        "WHERE home.constant(1)")
            dense_table(owner, "app.t", ROWS)
            owner.run("CREATE INDEX ON app.t (id); ANALYZE app.t; GRANT SELECT ON app.t TO mallory")
            owner.run(r"""DO $$ BEGIN EXECUTE E'ALTER TABLE app.t RENAME TO "t\351"'; END $$""")
            oid = owner.value("SELECT oid::int8 FROM pg_class WHERE relkind = 'r' AND relnamespace = 'app'::regnamespace")
            mallory.rows(f"SELECT tier, blks FROM io_probe_page_cost_full({oid}, duration => '200 ms', densities => '{{1}}')")
            mallory.rows(f"SELECT name FROM io_probe_recommend_full({oid}, duration => '500 ms')")
            self.assertFalse(os.path.exists(OWNED))

    def test_tables_that_are_others_when_a_run_is_stored(self):
        """What is written with the rights of the extension's owner goes into its tables."""
        self.control.run("CREATE DATABASE his OWNER mallory")
        self.addCleanup(self.control.run, "DROP DATABASE his WITH (FORCE)")
        with Session("his") as owner:
            owner.run("CREATE EXTENSION pg_io_probe; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO mallory")
            owner.run("CREATE TABLE public.tbl AS SELECT 1 AS id")
            owner.run("GRANT SELECT ON public.tbl, public.io_probe_runs, public.io_probe_results TO mallory")
        mallory = self.as_mallory("his")
        mallory.run("""CREATE SCHEMA home; CREATE SCHEMA evil; GRANT USAGE ON SCHEMA home, evil TO public;
            CREATE FUNCTION home.act() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN EXECUTE 'ALTER ROLE mallory SUPERUSER'; RETURN new; END $$;
            CREATE TABLE evil.io_probe_runs (LIKE public.io_probe_runs INCLUDING IDENTITY INCLUDING GENERATED);
            CREATE TABLE evil.io_probe_results (LIKE public.io_probe_results);
            CREATE TRIGGER act BEFORE INSERT OR DELETE ON evil.io_probe_runs FOR EACH STATEMENT EXECUTE FUNCTION home.act();
            CREATE TRIGGER act BEFORE INSERT OR DELETE ON evil.io_probe_results FOR EACH STATEMENT EXECUTE FUNCTION home.act();
            GRANT ALL ON ALL TABLES IN SCHEMA evil TO public;
            CREATE FUNCTION home.store(run jsonb) RETURNS bigint LANGUAGE sql
                BEGIN ATOMIC SELECT public.io_probe_import(run); END;
            CREATE FUNCTION home.prune() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT public.io_probe_prune('1 day'); END""")
        mallory.run("CREATE TEMP TABLE run AS SELECT public.io_probe_measure('ping', 'tbl', '{\"count\": 1}') AS run")

        def attack():
            mallory.run("DO $$ BEGIN FOR n IN 1..20 LOOP "
                        "BEGIN PERFORM home.store(run), home.prune() FROM pg_temp.run; "
                        "EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$")

        self.again_and_again(Swapped("public", "evil", "mallory", "his"), attack)
        with Session("his") as owner:
            stored = owner.value("SELECT count(*) FROM io_probe_runs")
            say(f"{stored} runs were stored")
            self.assertGreater(stored, 0)
            self.assertEqual(owner.value("SELECT count(*) FROM evil.io_probe_runs"), 0)
        self.assertFalse(self.control.value("SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"))

    def test_a_session_that_uses_what_it_evicts(self):
        """Its own pins are counted once."""
        dense_table(self.control, "pinned", 200)
        self.addCleanup(self.control.run, "DROP TABLE pinned")
        scans = ["io_probe_evict('pinned')", "io_probe_random_full('pinned', cold => true, duration => '10 ms')",
                 "io_probe_page_cost_full('pinned', cold => true, duration => '10 ms')",
                 "io_probe_seqscan_full('pinned', cold => true)", "io_probe_readahead_full('pinned', duration => '10 ms')"]
        for scan in scans:
            with self.subTest(scan), Session() as session:
                session.run("BEGIN")
                self.open_cursors(session, range(5))
                session.run("UPDATE pinned SET id = -id")
                self.open_cursors(session, range(5, 10))
                session.run(f"SELECT FROM {scan}")
                self.open_cursors(session, range(10, 50))
                session.run(f"DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM pinned LOOP PERFORM * FROM {scan}; EXIT; "
                            "END LOOP; END $$")
                session.run("COMMIT")
                self.assertEqual(session.value("SELECT count(*) FROM pinned"), 200)
        self.control.run("SELECT c.oid FROM pg_class AS c, LATERAL io_probe_evict(c.oid) WHERE relkind = 'r'")
        if create_extension(self.control, "pg_buffercache"):
            self.assertEqual(self.control.value("SELECT count(*) FROM pg_buffercache WHERE pinning_backends > 0 "
                                                "AND relfilenode = pg_relation_filenode('pinned')"), 0)

    def open_cursors(self, session, numbers):
        for number in numbers:
            session.run(f"DECLARE c{number} CURSOR FOR SELECT * FROM pinned; MOVE {number * 3 + 1} IN c{number}")

    def test_a_lock_keeps_nobody_else_from_probing(self):
        """Who waits for a table does not hold the lock of probes; and who may not read it does not wait at all."""
        for name in ["mine", "others"]:
            dense_table(self.control, name, 64)
            self.addCleanup(self.control.run, f"DROP TABLE {name}")
        self.control.run("GRANT EXECUTE ON FUNCTION io_probe_seqscan, io_probe_seqscan_full TO mallory")
        with Session() as locker, Session() as waiter:
            locker.run("BEGIN; LOCK TABLE mine")
            waits = f"SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = {waiter.pid}"
            for probe in ["seqscan", "random", "depth", "page_cost", "readahead", "ping", "recommend"]:
                with self.subTest(probe):
                    waiter.start_rows(rows_of(probe, "mine"))
                    wait_for(lambda: self.control.value(waits), "the lock of the table")
                    self.assertEqual(self.control.row(seqscan("others", "os"))["status"], "ok")
                    self.control.value(f"SELECT pg_cancel_backend({waiter.pid})")
                    with self.assertRaises(Failure) as raised:
                        waiter.finish_rows()
                    self.assertEqual(raised.exception.sqlstate, "57014")
            with self.assertRaises(Failure) as raised:
                self.as_mallory().rows(seqscan("mine", "os"))
            self.assertEqual(raised.exception.sqlstate, "42501")
            # It goes on as soon as it can.
            waiter.start_rows(seqscan("mine", "os"))
            wait_for(lambda: self.control.value(waits), "the lock of the table")
            locker.run("COMMIT")
            (row,) = waiter.finish_rows()
            self.assertEqual((row["status"], row["blks"]), ("ok", 64))


if __name__ == "__main__":
    main()
