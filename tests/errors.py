#!/usr/bin/env -S python3 -B
"""ERRORs pass through the extension whole, and leave nothing behind.

ERRORS=10000 in the environment raises more of each kind.
"""

import contextlib
import os
import unittest
from unittest import mock

from lib import LONG, SERVER_LOG, VERSION, Failure, Process, Session, literal, main, read, say
from servers import Server

ERRORS = int(os.environ.get("ERRORS", "10000" if LONG else "1000"))
# A leak of a message, or of the name of a function, would be more.
BYTES_PER_ERROR = 16
SLACK = 256 << 10
MIB = 1 << 20

# What GET STACKED DIAGNOSTICS tells, CONTEXT apart.
FIELDS = """RETURNED_SQLSTATE MESSAGE_TEXT PG_EXCEPTION_DETAIL PG_EXCEPTION_HINT COLUMN_NAME CONSTRAINT_NAME
    PG_DATATYPE_NAME TABLE_NAME SCHEMA_NAME""".split()

# The function's ERROR says everything an ERROR can say, by a SQLSTATE that no other code raises.
FAILS = """CREATE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
    RAISE 'no ä' USING ERRCODE = 'ZX123', DETAIL = 'detail ä', HINT = 'hint ä', COLUMN = 'cä', CONSTRAINT = 'nä',
        DATATYPE = 'dä', TABLE = 'tä', SCHEMA = 'sä'; END $$"""

# How an ERROR comes about and where it passes, with its SQLSTATE.
WAYS = {
    "ours": ("io_probe_seqscan_full('probed', '{ä}')", "22023"),
    "ours, of a relation": ("io_probe_seqscan_full('pg_tables')", "42809"),
    "ours, of a plan": ("io_probe_explain_full(plan => '[]')", "22023"),
    "the server's": ("io_probe_seqscan_full('locked')", "55P03"),
    "in a subtransaction": ("io_probe_explain_full('SELECT fails()', true)", "ZX123"),
    "in a subtransaction, while planned": ("io_probe_explain_full('SELECT 1/0')", "22012"),
    "in the executor's hook": ("io_probe_explain_full('DELETE FROM probed', true)", "25006"),
    "in the parser": ("io_probe_explain_full('ä SELEC')", "42601"),
    "ours, in a subtransaction": ("io_probe_measure('seqscan', 'probed', '{\"paths\": [\"ä\"]}')", "22023"),
    "of a probe in a query in a probe": (
        "io_probe_explain_full('SELECT io_probe_explain_full(''SELECT fails()'', true)', true)", "ZX123"),
    "in a statement of ours": ("io_probe_import(result || '{\"started_at\": \"ä\"}')", "22007"),
}  # fmt: skip
# A run that failed so is a result: the ERROR is caught, and told as a WARNING.
CAUGHT = "io_probe_measure('ping', 'hälf_built')"


class Errors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sessions = {}
        with Session() as control:
            for encoding in ["UTF8", "LATIN1", "SQL_ASCII"]:
                name = f"errors_{encoding.lower()}"
                control.run(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'")
                with mock.patch.dict(os.environ, PGCLIENTENCODING="UTF8"):
                    cls.sessions[encoding] = session = Session(name)
                    holder = Session(name)
                cls.addClassCleanup(session.close)
                cls.addClassCleanup(holder.close)
                with contextlib.suppress(Failure):
                    session.run("""CREATE TABLE twice AS SELECT 1 AS id FROM generate_series(1, 2);
                        CREATE UNIQUE INDEX CONCURRENTLY hälf_built ON twice (id)""")
                session.run(f"""CREATE EXTENSION pg_io_probe; CREATE TABLE probed AS SELECT 1 AS id; CREATE TABLE locked (); CHECKPOINT;
                    SET lock_timeout = '1 ms'; {FAILS};
                    CREATE TABLE results AS SELECT io_probe_measure('cache', 'probed') AS result;
                    CREATE FUNCTION caught(statement text, OUT error jsonb) LANGUAGE plpgsql AS $$
                    DECLARE {"".join(f"{field.lower()}_ text; " for field in FIELDS)} context_ text;
                    BEGIN EXECUTE statement; EXCEPTION WHEN OTHERS THEN
                        GET STACKED DIAGNOSTICS context_ = PG_EXCEPTION_CONTEXT,
                            {", ".join(f"{field.lower()}_ = {field}" for field in FIELDS)};
                        error := jsonb_build_object('context', context_,
                            {", ".join(f"'{field}', {field.lower()}_" for field in FIELDS)});
                    END $$""")
                holder.run("BEGIN; LOCK TABLE locked")

    def setUp(self):
        self.log = os.path.getsize(SERVER_LOG)

    def tearDown(self):
        with open(SERVER_LOG, encoding="utf-8", errors="replace") as log:
            log.seek(self.log)
            self.assertNotRegex(log.read(), "errstart was not called|ERRORDATA_STACK_SIZE|terminated by signal")

    def caught(self, session, call):
        return session.value(f"SELECT caught({literal(self.statement(call))})")

    def statement(self, call):
        return f"SELECT count(*) FROM results, {call}"

    def test_it_passes_whole(self):
        """Whatever code of ours an ERROR passes through, it says what it says without that."""
        for encoding, session in self.sessions.items():
            plain = self.caught(session, "fails()")
            self.assertEqual((plain["RETURNED_SQLSTATE"], plain["SCHEMA_NAME"]), ("ZX123", "sä"))
            inner = plain["context"].splitlines()[0]
            for way, (call, sqlstate) in WAYS.items():
                with self.subTest(way, encoding=encoding):
                    error = self.caught(session, call)
                    if sqlstate == "ZX123":
                        self.assertEqual({**error, "context": ""}, {**plain, "context": ""})
                        self.assertEqual(error["context"].splitlines()[0], inner)
                    else:
                        self.assertEqual(error["RETURNED_SQLSTATE"], sqlstate, error)
                    if "ä" in call:
                        self.assertIn("ä", error["MESSAGE_TEXT"])
                    self.assertIn("PL/pgSQL function caught", error["context"].splitlines()[-1])

    def test_one_that_is_raised_again(self):
        """PL/pgSQL's RAISE without arguments raises the first error, whatever else was raised meanwhile."""
        session = self.sessions["UTF8"]
        for statement, sqlstate, words in [
            ("RETURN 1 / 0", "22012", "division by zero"),
            ("RAISE division_by_zero USING MESSAGE = 'no', DETAIL = 'the detail'", "22012", "no"),
        ]:
            with self.subTest(statement):
                session.run(f"""CREATE OR REPLACE FUNCTION again() RETURNS int LANGUAGE plpgsql AS $$ BEGIN {statement};
                    EXCEPTION WHEN others THEN
                        BEGIN PERFORM 'a'::int; EXCEPTION WHEN others THEN NULL; END; RAISE; END $$""")
                error = self.caught(session, "io_probe_explain_full('SELECT again()', true)")
                self.assertEqual((error["RETURNED_SQLSTATE"], error["MESSAGE_TEXT"]), (sqlstate, words))
                self.assertNotIn("'a'::int", error["context"])

    def test_what_a_run_that_failed_says(self):
        for encoding, session in self.sessions.items():
            with self.subTest(encoding):
                told = "".join(session.run(f"CREATE TABLE run AS SELECT {CAUGHT} AS result"))
                self.assertRegex(told, 'WARNING: .*"hälf_built" is not ready')
                run = session.value("SELECT result FROM run")
                self.assertEqual((run["sqlstate"], run["message"]), ("55006", 'index "hälf_built" is not ready'))

    def test_our_statements_are_not_shown(self):
        for encoding, session in self.sessions.items():
            with self.subTest(encoding):
                error = self.caught(session, WAYS["in a statement of ours"][0])
                self.assertEqual([line for line in error["context"].splitlines() if "timestamptz" in line], [])
                # The user's own statement is shown.
                error = self.caught(session, "io_probe_explain_full('SELECT fails()', true)")
                self.assertRegex(error["context"], r'SQL statement "EXPLAIN \(.*\) SELECT fails\(\)"')

    def test_it_points_into_the_query(self):
        session = self.sessions["UTF8"]
        for call in ["explain('  SELEC 1')", "explain_text('  SELEC 1')"]:
            with self.subTest(call), self.assertRaises(Failure) as raised:
                session.run(f"SELECT * FROM io_probe_{call}")
            self.assertRegex(str(raised.exception), r"LINE 1:   SELEC 1\n +\^\n(.*\n)*QUERY:    SELEC 1")

    @unittest.skipIf(VERSION < 18, "the catalog keeps no expression that is so long")
    def test_an_expression_too_deep_to_look_at_fails_no_probe(self):
        """The server needs less of the stack for the expressions of an index than we need to look at them."""
        session = self.sessions["UTF8"]
        session.run(f"""CREATE TABLE deep AS SELECT generate_series(1, 20000) AS id; CHECKPOINT;
            CREATE INDEX ON deep ((id{"+ 1" * 3000}))""")
        call = "io_probe_page_cost('deep', duration => '20 ms')"
        self.assertGreater(int(session.value(f"SELECT count(*) FROM {call}")), 0)
        self.assert_steady(session, "deep", f"SELECT count(*) FROM {call}", 20)
        session.run("CREATE TABLE writable (); DROP TABLE writable")

    def test_nothing_stays(self):
        """Neither the transaction nor the process keeps anything of an ERROR."""
        for encoding in ["UTF8", "LATIN1"]:
            session = self.sessions[encoding]
            for way, call in [*((way, call) for way, (call, _) in WAYS.items()), ("caught", CAUGHT)]:
                with self.subTest(way, encoding=encoding):
                    self.assert_steady(session, way, self.statement(call), ERRORS)

    def test_nothing_stays_of_large_ones(self):
        """The message and the DETAIL have a MiB each; all ERRORs are in one transaction."""
        session = self.sessions["UTF8"]
        session.run(f"""CREATE FUNCTION shouts() RETURNS int LANGUAGE plpgsql AS
            $$ BEGIN RAISE '%', repeat('x', {MIB}) USING DETAIL = repeat('y', {MIB}); END $$""")
        for call in ["explain('SELECT shouts()', true)", "explain_text('SELECT shouts()')"]:
            with self.subTest(call):
                self.assert_steady(session, call, self.statement(f"io_probe_{call}"), 100, slack=16 * MIB)

    def assert_steady(self, session, way, statement, times, slack=SLACK):
        """In one transaction, the process and its memory contexts hold after many ERRORs what they held after some."""
        loop = f"""SET LOCAL client_min_messages = error; DO $$ BEGIN FOR n IN 1..%d LOOP
            BEGIN EXECUTE {literal(statement)}; EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$"""
        process = Process(session.pid)
        contexts = "SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts"
        grown = ()
        # A leak grows each time; malloc may take more once.
        for _ in range(3):
            session.run("BEGIN")
            held = []
            for count in [max(times // 10, 20), times]:
                session.start(loop % count)
                session.finish(timeout=500)
                held.append((process.memory(), int(session.value(contexts))))
            session.run("COMMIT")
            grown = tuple(after - before for before, after in zip(*held))
            say(f"{way}: {times} more ERRORs, {grown[0] >> 10} kB more, {grown[1] >> 10} kB of it in memory contexts")
            if max(grown) < slack + times * BYTES_PER_ERROR:
                return
        self.fail(f"{way}: it grew by {grown} bytes in {times} ERRORs, and not for the first time")


class Stacks(unittest.TestCase):
    def test_none_is_shown(self):
        """No message and no log line has a backtrace, whatever RUST_BACKTRACE says where the server was started."""
        server = Server("stacks")
        self.addCleanup(server.remove)
        with mock.patch.dict(os.environ, RUST_BACKTRACE="full"):
            server.start()
        self.assertIn("RUST_BACKTRACE=full", read(f"/proc/{server.postmaster()}/environ"))
        with server.session() as session:
            session.run(f"CREATE EXTENSION pg_io_probe; CREATE TABLE probed AS SELECT 1 AS id; {FAILS}")
            for call, sqlstate in WAYS.values():
                if "locked" in call or "result" in call:
                    continue
                with self.subTest(call), self.assertRaises(Failure) as raised:
                    session.run(f"SELECT {call}")
                self.assertEqual(raised.exception.sqlstate, sqlstate)
                self.assertNotRegex(str(raised.exception), r"(?m)^ *\d+: |backtrace")
        self.assertNotRegex(read(os.path.join(server.host, "log")), r"(?m)^ *\d+: |backtrace|panicked")


if __name__ == "__main__":
    main()
