#!/usr/bin/env -S python3 -B
"""Attacks by roles with few rights: docs/security.md has the table. They are on what probes read, on what is stored, on
what is called in a superuser's session, on CREATE EXTENSION, and by names that are code.

An attack that could succeed only if a schema is renamed at the right moment is tried while one is renamed all the
time. The tests of RightsAttacks that set a trap show first that it works at all: it springs where nothing of the
extension's keeps it from that.
"""

import collections
import json
import os
import threading
import time
import unittest

from lib import LONG, TEST_TMP, VERSION, Failure, Session, create_extension, dense_table, literal, main, rows_of, say
from lib import seqscan, wait_for

# How long an attack that takes its chances is repeated.
SECONDS = 60 if LONG else 6
ROWS = 2000
OWNED = os.path.join(TEST_TMP, "owned")
# Planning evaluates home.constant(), since that says that it is constant.
TROJAN = f"""
    CREATE FUNCTION home.act() RETURNS boolean LANGUAGE plpgsql VOLATILE AS
        $$ BEGIN EXECUTE 'COPY (SELECT 1) TO PROGRAM ''touch {OWNED}'''; RETURN true; END $$;
    CREATE FUNCTION home.constant(int) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN RETURN home.act(); EXCEPTION WHEN insufficient_privilege THEN RETURN true; END $$;
    GRANT USAGE ON SCHEMA home TO public
"""


# Only a superuser's rights can do this.
ACT = f"""BEGIN EXECUTE 'COPY (SELECT 1) TO ''{OWNED}''';
    EXCEPTION WHEN insufficient_privilege THEN NULL; END"""
# Values for jsonb, as text: they make intervals that lie the wrong way round, and overflow.
EXTREMES = ["5", "-5", "0", "1.7e308", "-1.7e308", '"Infinity"', '"-Infinity"', '"NaN"', "5e-324", "null"]
FLOATS = [json.loads(value) for value in EXTREMES]
# By the type of a column, values that it can hold, over which a reader may stumble, and such as are refused.
ODD_VALUES = {
    "double precision": (FLOATS, ["fast", [1]]),
    "bigint": ([(1 << 63) - 1, -1 << 63, None, "-0"], ["NaN", 1.5, 1 << 63]),
    "integer": ([(1 << 31) - 1, -1 << 31, None, "+1"], ["Infinity", 1 << 31]),
    "boolean": (["yes", "0", None], ["perhaps", 0.5]),
    "text": (["", None, "NaN", "-1", "1e400", "x" * 10000, "\u202e\n", "in use, paced", ["direct"], {"a": 1}], ["x" * 10001]),
    "text[]": ([None, [None], [["a"], ["b"]], "{a,NULL}", "[5:6]={a,b}", ["x" * 10000], [1, {"a": []}]], ["{", ["x" * 10001], 5]),
    "timestamp with time zone": (["infinity", "-infinity", "4714-11-24 00:00 BC", "0044-03-15 BC", "294276-12-31 23:59:59", None,
                                  "10000-01-02 03:04", "now"], ["13/01/2026", "1.2.2026", "2026-01-13 25:00", "never"]),
    "regclass": ([0, (1 << 32) - 1, -1, None], ["-", "pg_class", "none.such", 1 << 32]),
    "jsonb": ([None, [[[[]]]], "x", 1, {"a": {"b": None}}], [{"a": ["x" * 10001]}]),
}  # fmt: skip
# SQLSTATEs: the object is there already; or it is not the one that it should be.
EXISTS = ["42P07", "42710", "42723", "55000"]


class Swapped:
    """Meanwhile two schemas swap their names, there and back, again and again."""

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
        """Repeats an attack while two schemas swap their names. It has to go through at least once."""
        done, tries, end = 0, 0, time.monotonic() + SECONDS
        with swapped:
            while time.monotonic() < end or (not done or swapped.times <= 10) and time.monotonic() < end + 100:
                tries += 1
                try:
                    attack()
                    done += 1
                except Failure as failure:
                    # A schema was renamed, and the statement was not run for that, or it knew the other name.
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
        """Text of a database without an encoding may be no UTF-8. A name that is made so is that of another relation."""
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
        """The session's own pins are counted once."""
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
        """A probe that waits for a table does not hold the lock of probes. One whose role may not read it does not wait at all."""
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
            # The probe goes on once it has the table's lock.
            waiter.start_rows(seqscan("mine", "os"))
            wait_for(lambda: self.control.value(waits), "the lock of the table")
            locker.run("COMMIT")
            (row,) = waiter.finish_rows()
            self.assertEqual((row["status"], row["blks"]), ("ok", 64))


class RightsAttacks(unittest.TestCase):
    def setUp(self):
        self.control = Session()
        self.addCleanup(self.control.close)
        self.forget()
        self.control.run("CREATE ROLE mallory LOGIN")
        self.addCleanup(self.control.run, "DROP ROLE mallory")

    def forget(self):
        if os.path.exists(OWNED):
            os.remove(OWNED)

    def assert_springs(self, work, session=None):
        """With a superuser's rights the trap does what it can."""
        (session or self.control).run(work)
        self.assertTrue(os.path.exists(OWNED), "the trap is none")
        self.forget()

    def database(self, name="his", more=""):
        """Makes a database of mallory's, and returns a superuser's session in it."""
        self.control.run(f"CREATE DATABASE {name} OWNER mallory {more}")
        self.addCleanup(self.control.run, f"DROP DATABASE {name} WITH (FORCE)")
        session = Session(name)
        self.addCleanup(session.close)
        return session

    def mallory(self, database="his"):
        session = Session(database, user="mallory")
        self.addCleanup(session.close)
        return session

    def test_triggers_of_others_on_the_tables_of_runs(self):
        """A role that may make triggers there, say by a default privilege, makes none that run as the owner."""
        owner = self.database()
        owner.run("ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO mallory")
        owner.run("CREATE EXTENSION pg_io_probe; CREATE TABLE tbl AS SELECT 1 AS id")
        owner.run("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO mallory")
        owner.run("SELECT io_probe_record('ping', 'tbl', '{\"count\": 1}')")
        mallory = self.mallory()
        mallory.run("CREATE SCHEMA home; GRANT USAGE ON SCHEMA home TO public")
        mallory.run(f"CREATE FUNCTION home.act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {ACT}; "
                    "RETURN new; END $$")
        mallory.run("CREATE TABLE home.child (run bigint PRIMARY KEY)")
        mallory.run("CREATE TEMP TABLE run AS "
                    "SELECT io_probe_measure('ping', 'tbl', '{\"count\": 1}') AS run")
        calls = ["SELECT io_probe_import(run) FROM run",
                 "SELECT io_probe_record('ping', 'tbl', '{\"count\": 1}')",
                 "SELECT io_probe_prune('0 s', true)"]
        write = """INSERT INTO io_probe_runs (started_at, probe, object, status, system_identifier)
            VALUES (now(), 'none', 'none', 'failed', '1'); INSERT INTO io_probe_results VALUES (0, 1, '{}');
            DELETE FROM io_probe_results; DELETE FROM io_probe_runs"""
        triggers = ["TRIGGER act BEFORE {} ON {} FOR EACH STATEMENT",
                    "TRIGGER act AFTER {} ON {} FOR EACH ROW",
                    "CONSTRAINT TRIGGER act AFTER {} ON {} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"]
        for trigger in triggers:
            for event in ["INSERT", "DELETE"]:
                for table in ["io_probe_runs", "io_probe_results"]:
                    with self.subTest(trigger.format(event, table)):
                        mallory.run(f"CREATE {trigger.format(event, table)} EXECUTE FUNCTION home.act()")
                        try:
                            self.assert_springs(f"BEGIN; {write}; SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK",
                                                owner)
                            for call in calls:
                                self.may_fail(mallory, call, "55000", "42501")
                                self.assertFalse(os.path.exists(OWNED), call)
                        finally:
                            owner.run(f"DROP TRIGGER act ON {table}")
                            self.forget()
        # A foreign key's own triggers change the attacker's table, whose triggers then run within the statement.
        mallory.run("INSERT INTO home.child SELECT id FROM io_probe_runs")
        mallory.run("CREATE TRIGGER act AFTER DELETE OR UPDATE ON home.child FOR EACH ROW EXECUTE FUNCTION home.act()")
        for action in ["ON DELETE CASCADE", ""]:
            with self.subTest(action):
                mallory.run(f"ALTER TABLE home.child ADD CONSTRAINT key FOREIGN KEY (run) REFERENCES io_probe_runs {action}")
                if action and VERSION < 18:  # later on the trigger runs as the one who deletes
                    self.assert_springs("BEGIN; DELETE FROM io_probe_runs; ROLLBACK", owner)
                self.addCleanup(self.forget)
                for call in calls:
                    with self.assertRaises(Failure, msg=call) as failed:
                        mallory.run(call)
                    self.assertEqual(failed.exception.sqlstate, "55000", call)
                    self.assertFalse(os.path.exists(OWNED), call)
                mallory.run("ALTER TABLE home.child DROP CONSTRAINT key")

    def may_fail(self, session, sql, *sqlstates):
        try:
            session.run(sql)
        except Failure as failure:
            self.assertIn(failure.sqlstate, sqlstates, failure)

    def test_stored_runs_that_spoil_what_others_read(self):
        """Runs that one role could store can be read and compared by the others, however odd they are."""
        owner = self.database()
        owner.run("CREATE EXTENSION pg_io_probe; CREATE TABLE tbl AS SELECT 1 AS id")
        owner.run("GRANT EXECUTE ON FUNCTION io_probe_import TO mallory")
        measured = json.loads(owner.run("SELECT io_probe_measure('ping', 'tbl', '{\"count\": 2}')")[0])
        good = owner.value(f"io_probe_import({literal(json.dumps(measured))}, 'good')")
        mallory = self.mallory()
        rows = {
            "seqscan": '{{"path": "os", "mib_s": {0}, "ci_low": {1}, "ci_high": {2}}}',
            "random": '{{"path": "os", "iops": {0}, "ci_low": {1}, "ci_high": {2}, '
                      '"p50_us": {1}, "p99_us": {2}}}',
            "depth": '{{"depth": 1, "iops": {0}, "ci_low": {1}, "ci_high": {2}}}',
            "sync": '{{"section": "no_sync", "ops_s": {0}, "ci_low": {1}, "ci_high": {2}, '
                    '"p99_us": {1}}}',
            "readahead": '{{"mode": "kernel", "mib_s": {0}, "ci_low": {1}, "ci_high": {2}}}',
            "page_cost": '{{"tier": "os", "block_us": {0}, "ci_low": {1}, "ci_high": {2}}}',
            "ping": '{{"op": "read", "lat_us": {1}}}, {{"op": "read", "lat_us": {2}}}, '
                    '{{"op": "write", "lat_us": {0}}}',
        }
        stored = {}
        for probe, row in rows.items():
            stored[probe] = []
            for value in ["1", "1.7e308"]:
                for low in EXTREMES:
                    for high in EXTREMES:
                        run = json.dumps({**measured, "probe": probe, "rows": "here"})
                        run = run.replace('"here"', f"[{row.format(value, low, high)}]")
                        try:
                            stored[probe].append(mallory.value(f"io_probe_import({literal(run)}, 'odd')"))
                        except Failure as failure:
                            # Refused before it is stored.
                            self.assertIn(failure.sqlstate, ["22003", "22023", "22P02"], failure)
        say(f"{sum(map(len, stored.values()))} odd runs were stored")
        pairs = []
        for probe, runs in stored.items():
            self.assertGreater(len(runs), 10, probe)
            some = runs if LONG else runs[::7]
            pairs += [f"SELECT * FROM io_probe_compare({runs[0]}, {run})" for run in some]
        self.assert_can_be_read(owner, pairs)
        self.assertGreater(owner.value(f"SELECT count(*) FROM io_probe_latest WHERE run_id >= {good}"), 0)

    def assert_can_be_read(self, session, further):
        """Reads all that shows stored runs, with the labels good and odd, and what these further queries show."""
        views = session.run("SELECT oid::regclass FROM pg_class WHERE relkind = 'v' "
                            "AND relname LIKE 'io\\_probe%'")
        self.assertIn("io_probe_metrics", views)
        readers = [f"SELECT v::text, row_to_json(v) FROM {view} AS v" for view in views]
        readers += [f"SELECT * FROM io_probe_changes({last})" for last in [1, 10, 1000]]
        readers += [f"SELECT * FROM io_probe_compare('{label}', 'odd')" for label in ["odd", "good"]]
        spoilt = []
        for reader in readers + further:
            try:
                session.run(reader)
            except Failure as failure:
                spoilt.append(f"{reader}: {failure}")
        self.assertEqual(spoilt, [])

    def test_columns_of_imported_runs(self):
        """Whatever the types of the columns of a run and of its rows hold: others read it, under any settings."""
        owner = self.database()
        owner.run("CREATE EXTENSION pg_io_probe; CREATE TABLE tbl AS SELECT 1 AS id")
        owner.run("GRANT EXECUTE ON FUNCTION io_probe_import TO mallory")
        measured = owner.value("io_probe_measure('ping', 'tbl', '{\"count\": 1}')")
        mallory = self.mallory()
        mallory.run("SET datestyle = 'SQL, DMY'; SET timezone = 'Asia/Kolkata'; SET extra_float_digits = -15")
        columns = owner.rows("""
            SELECT probe, attname AS name, format_type(atttypid, NULL) AS type
            FROM pg_attribute, LATERAL (SELECT substring(attrelid::regclass::text, '^io_probe_(.*)_full_row$')) AS p (probe)
            WHERE attrelid IN (SELECT c.oid FROM pg_class AS c JOIN pg_depend AS d ON d.objid = c.reltype AND d.deptype = 'e'
                               JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'pg_io_probe')
                AND probe NOT IN ('changes', 'compare', 'correlation', 'explain', 'sessions')""")
        stored = collections.Counter()

        def row(probe, number):
            """A row with values of each type, that is an item of its own."""
            values = {"text": f"direct {number}", "text[]": [], "boolean": True, "regclass": 7, "jsonb": {},
                      "timestamp with time zone": "2026-01-13T00:00:00+00:00"}  # fmt: skip
            return {other["name"]: values.get(other["type"], number) for other in columns if other["probe"] == probe}

        for column in columns:
            probe, name = column["probe"], column["name"]
            held, refused = ODD_VALUES[column["type"]]
            rows = [{**row(probe, number), name: value} for number, value in enumerate(held)]
            mallory.value(f"io_probe_import({literal(json.dumps({**measured, 'probe': probe, 'rows': rows}))}, 'odd')")
            stored[probe] += 1
            for value in refused:
                run = json.dumps({**measured, "probe": probe, "rows": [row(probe, 1), {**row(probe, 2), name: value}]})
                with self.assertRaises(Failure, msg=(probe, name, value)) as failed:
                    mallory.value(f"io_probe_import({literal(run)}, 'odd')")
                self.assertIn(failed.exception.sqlstate, ["22003", "22007", "22008", "22023", "22P02"], failed.exception)
        self.assertGreater(stored.keys(), {"seqscan", "ping", "report", "recommend"})
        longs = [-1 << 63, (1 << 63) - 1, 0]
        header = {
            "elapsed_ms": FLOATS, "steal_pct": FLOATS, "own_bytes": longs, "other_bytes": longs, "relid": [-1, 0, None],
            "relkind": ["", "xyz", 0], "started_at": ["4714-11-24 00:00 BC", "epoch", "now"], "object": ["", "x" * 10000],
            "settings": [{}, {"": None, "a": [{}]}], "leaves": [[], [{}, {"": {}}]], "args": [{}, {"options": 5}],
        }  # fmt: skip
        for name, held in header.items():
            for value in held:
                run = {**measured, "probe": "depth", "rows": [row("depth", 1)], name: value}
                mallory.value(f"io_probe_import({literal(json.dumps(run))}, 'odd')")
        owner.value(f"io_probe_import({literal(json.dumps(measured))}, 'good')")
        for settings in [{"datestyle": "ISO, MDY", "timezone": "UTC", "intervalstyle": "postgres"},
                         {"datestyle": "German, DMY", "timezone": "America/New_York", "intervalstyle": "sql_standard"},
                         {"datestyle": "Postgres, YMD", "timezone": "Pacific/Apia", "intervalstyle": "iso_8601"}]:
            with self.subTest(settings):
                owner.run("; ".join(f"SET {name} = '{value}'" for name, value in settings.items()))
                self.assert_can_be_read(owner, [])
        # Nobody sees that by accident.
        for run in owner.rows("SELECT id FROM io_probe_runs WHERE probe = 'report'"):
            self.may_fail(owner, f"SELECT * FROM io_probe_report(run => {run['id']})", "22023")

    def test_a_probe_that_is_another_one_when_it_is_run(self):
        """A run is that of the extension's probe, though a schema on search_path changes its name."""
        owner = self.database()
        owner.run("CREATE EXTENSION pg_io_probe")
        dense_table(owner, "public.tbl", 16)
        oid = owner.value("'public.tbl'::regclass::oid::int8")
        mallory = self.mallory()
        mallory.run(f"""CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO public;
            CREATE FUNCTION evil.io_probe_ping_full(rel regclass, count integer)
                RETURNS TABLE (op text, relid regclass) LANGUAGE plpgsql AS $$ BEGIN {ACT}; END $$""")
        owner.run("SET client_min_messages = error")
        owner.run(f"""CREATE SCHEMA safe; CREATE FUNCTION safe.measure() RETURNS jsonb LANGUAGE sql
                BEGIN ATOMIC SELECT public.io_probe_measure('ping', {oid}, '{{"count": 1}}'); END""")
        self.assertIn("public", owner.run("SHOW search_path")[0])
        self.assert_springs(f"SELECT * FROM evil.io_probe_ping_full({oid}, count => 1)", owner)
        owner.run("""CREATE PROCEDURE safe.attempt(INOUT done int) LANGUAGE plpgsql AS $$ BEGIN
            done := 0;
            FOR n IN 1..50 LOOP BEGIN
                done := done + (safe.measure() ->> 'status' = 'ok')::int;
            EXCEPTION WHEN undefined_function OR undefined_table OR invalid_schema_name OR object_in_use
                OR internal_error THEN NULL;
            END; END LOOP; END $$""")
        done, calls, end = 0, 0, time.monotonic() + SECONDS
        swapped = Swapped("public", "evil", "mallory", "his")
        with swapped:
            while time.monotonic() < end or (not done or swapped.times <= 10) and time.monotonic() < end + 100:
                calls += 1
                done += int(owner.run("CALL safe.attempt(NULL)")[-1])
        say(f"{50 * calls} runs, {done} went through, {swapped.times} swaps")
        self.assertGreater(done, 0)
        self.assertGreater(swapped.times, 10)
        self.assertFalse(os.path.exists(OWNED))

    def test_objects_that_are_there_before_the_extension(self):
        """An object that has the name of the extension's is not taken for that, replaced, taken in or granted."""
        members = """SELECT row_to_json(m) FROM (
            SELECT classid::regclass::text AS catalog, coalesce(proname, relname)::text AS name,
                   pg_get_function_identity_arguments(p.oid) AS arguments
            FROM pg_depend LEFT JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
                LEFT JOIN pg_class AS c ON classid = 'pg_class'::regclass AND c.oid = objid
            WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
                AND classid IN ('pg_proc'::regclass, 'pg_class'::regclass)
                AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_io_probe')
            UNION SELECT 'pg_class', typname, NULL
            FROM pg_type JOIN pg_depend ON classid = 'pg_type'::regclass AND objid = pg_type.oid
            WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND typcategory <> 'A'
                AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_io_probe')) AS m"""
        members = [json.loads(line) for line in self.control.run(members)]
        functions = {"io_probe_" + name for name in ["seqscan", "record", "import", "measure", "changes",
                                                     "cache", "explain"]}
        names = lambda catalog: {member["name"] for member in members if member["catalog"] == catalog}
        self.assertLessEqual(functions, names("pg_proc"))
        self.assertIn("io_probe_runs", names("pg_class"))
        owner = self.database()
        mallory = self.mallory()
        mallory.run("CREATE SCHEMA evil")
        create = "CREATE EXTENSION pg_io_probe SCHEMA evil"
        owner.run(f"{create}; DROP EXTENSION pg_io_probe")
        for member in members if LONG else members[::2]:
            name, arguments = f"evil.{member['name']}", member["arguments"]
            with self.subTest(name, arguments=arguments):
                if member["catalog"] == "pg_proc":
                    # With the same arguments it is in the way of the extension's function.
                    made = f"FUNCTION {name}({arguments})"
                    mallory.run(f"CREATE {made} RETURNS int LANGUAGE sql AS 'SELECT 1'")
                else:
                    made = f"TABLE {name}"
                    mallory.run(f"CREATE {made} ()")
                self.assert_exists(owner, create)
                mallory.run(f"DROP {made}")

    def assert_exists(self, session, sql):
        with self.assertRaises(Failure) as raised:
            session.run(sql)
        self.assertIn(raised.exception.sqlstate, EXISTS, raised.exception)

    def test_names_that_are_code(self):
        """Names and labels stay what they are, however the session writes literals and identifiers."""
        code = r"""a\'b"'); SELECT home.act(); --\"""" + "\n$$ E'\\x"
        name = '"' + code.replace('"', '""') + '"'
        owner = self.database()
        owner.run("CREATE SCHEMA home; CREATE FUNCTION home.act() RETURNS void "
                  f"LANGUAGE plpgsql AS $$ BEGIN {ACT}; END $$")
        self.assert_springs("SELECT home.act()", owner)
        owner.run(f"CREATE SCHEMA {name}; CREATE EXTENSION pg_io_probe SCHEMA {name}")
        dense_table(owner, f"{name}.{name}", 1100)
        owner.run(f"ALTER TABLE {name}.{name} RENAME id TO {name}; "
                  f"CREATE INDEX {name[:20]}i\" ON {name}.{name} ({name}); "
                  f"ANALYZE {name}.{name}")
        oid = owner.value("SELECT oid::int8 FROM pg_class WHERE relkind = 'r' AND relname = "
                          f"'{code.replace(chr(39), chr(39) * 2)}'")
        # From 19 on there is only one way to write literals.
        for strings, identifiers in [("on", "off"), ("on" if VERSION >= 19 else "off", "on")]:
            with self.subTest(strings=strings, identifiers=identifiers), Session("his") as session:
                session.run(f"SET search_path = {name}; SET quote_all_identifiers = {identifiers}")
                if VERSION < 19:
                    session.run("SET escape_string_warning = off")
                session.run(f"PREPARE record (text) AS SELECT io_probe_record('ping', {oid}, "
                            f"'{{\"count\": 5}}', $1)")
                label = f"$label${code}{strings}{identifiers}$label$"
                for _ in range(2):
                    session.run(f"EXECUTE record({label})")
                session.run(f"SET standard_conforming_strings = {strings}; SET backslash_quote = on")
                rows = session.rows(f"SELECT * FROM io_probe_compare_full({label}, {label})")
                self.assertEqual([row["object"] for row in rows], [f"{code}.{code}"])
                rows = session.rows(f"SELECT * FROM io_probe_recommend_full({oid}, '{{random_page_cost}}', '1 s')")
                self.assertEqual([row["setting"] for row in rows], ["random_page_cost"])
                (tuples,) = session.rows(f"SELECT * FROM io_probe_page_cost_full({oid}, '{{1}}', duration => '100 ms') "
                                         "WHERE pattern = 'tuple'")
                self.assertEqual(tuples["relname"], code)
                self.assertEqual(len(session.rows("SELECT * FROM io_probe_changes()")), 1)
                session.run("SELECT io_probe_prune('0 s', true)")
                self.assertEqual(session.run("SELECT count(*) FROM io_probe_runs"), ["0"])
        self.assertFalse(os.path.exists(OWNED))


if __name__ == "__main__":
    main()
