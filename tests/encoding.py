#!/usr/bin/env -S python3 -B
"""Databases of several encodings, with names, values and arguments beyond ASCII."""

import functools
import html
import json
import os
import re
import unittest
from unittest import mock

from lib import BLOCK, Failure, Session, literal, main, rows_of
from servers import Server

# A letter that the encoding has.
LETTERS = {"LATIN1": "ä", "EUC_JP": "か", "SQL_ASCII": "ä", "UTF8": "ä"}


def in_each(test):
    """A test that is called with a session in each database, and its letter."""

    @functools.wraps(test)
    def run(self):
        for encoding, letter in LETTERS.items():
            with self.subTest(encoding):
                test(self, self.sessions[encoding], letter)

    return run


class Encodings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.control = Session()
        cls.addClassCleanup(cls.control.close)
        cls.sessions = {}
        for encoding, letter in LETTERS.items():
            name = f"in_{encoding.lower()}"
            cls.control.run(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'")
            cls.addClassCleanup(cls.control.run, f"DROP DATABASE {name} WITH (FORCE)")
            with mock.patch.dict(os.environ, PGCLIENTENCODING="UTF8"):
                cls.sessions[encoding] = session = Session(name)
            cls.addClassCleanup(session.close)
            session.run(f"""CREATE EXTENSION pg_io_probe;
                CREATE TABLE t{letter} (k{letter} text, filler text);
                INSERT INTO t{letter} SELECT g || '{letter}', repeat('x', 1000) FROM generate_series(1, 30000) AS g;
                CREATE INDEX i{letter} ON t{letter} (k{letter}); VACUUM FULL t{letter}; VACUUM ANALYZE t{letter};
                VACUUM FULL t{letter}; CHECKPOINT""")

    @in_each
    def test_names(self, session, letter):
        rows = session.rows(f"SELECT * FROM io_probe_seqscan_full('t{letter}')")
        self.assertEqual({(row["status"], row["relname"]) for row in rows}, {("ok", f"t{letter}")})

    @in_each
    def test_advice(self, session, letter):
        """The planner is asked about values of the index's histogram."""
        given = {"settings": ["random_page_cost"], "duration": "2 s", "cold": True}
        row = session.row(rows_of("recommend", f"t{letter}", **given))
        self.assertEqual(row["relid"], f'"t{letter}"')
        # Whether the figures suffice for advice is another question.
        self.assertIn("random_us", row["evidence"], row)

    @in_each
    def test_history(self, session, letter):
        record = f"io_probe_record('seqscan', 't{letter}', {literal({'paths': ['os']})}, 'l{letter}')"
        numbers = [session.value(f"SELECT {record}") for _ in range(2)]
        run = session.row(f"SELECT * FROM io_probe_runs WHERE id = {numbers[0]}")
        self.assertEqual((run["status"], run["object"], run["label"]), ("ok", f"public.t{letter}", f"l{letter}"))
        for call in ["changes_full(1)", f"compare_full({numbers[0]}, {numbers[1]})", f"compare_full('l{letter}', 'l{letter}')"]:
            rows = session.rows(f"SELECT * FROM io_probe_{call} WHERE verdict IS NOT NULL")
            self.assertEqual({row["object"] for row in rows}, {f"public.t{letter}"})
        rows = session.rows("SELECT * FROM io_probe_seqscan_history")
        self.assertEqual({row["relname"] for row in rows}, {f"t{letter}"})

    @in_each
    def test_a_page(self, session, letter):
        """It says that it is UTF-8, and is ASCII, which that includes."""
        lines = session.run(f"SELECT * FROM io_probe_report('t{letter}', '1 s', format => 'html')")
        page = "\n".join(line for line in lines if not line.startswith("NOTICE"))
        self.assertTrue(page.isascii(), re.findall(r".*[^\x00-\x7f].*", page))
        self.assertIn(f"t{letter}", html.unescape(page))

    @in_each
    def test_queries(self, session, letter):
        query = f"SELECT '{letter}' FROM t{letter} WHERE k{letter} LIKE '1{letter}%'"
        nodes = session.rows(rows_of("explain", query=query))
        self.assertIn(f'"t{letter}"', {node["relid"] for node in nodes})
        executed = rows_of("explain", query=query, execute=True)
        session.run("SET client_min_messages = warning")
        self.assertEqual(session.row(f"{executed} WHERE node_id = 1")["actual_rows"], 1)
        session.run("RESET client_min_messages")
        plan = [{"Plan": {"Node Type": "Seq Scan", "Relation Name": f"t{letter}"}}]
        plan = json.dumps(plan, ensure_ascii=False)
        self.assertEqual(session.row(rows_of("explain", plan=plan))["relid"], f'"t{letter}"')

    @in_each
    def test_refusals(self, session, letter):
        """Messages of the library and of the server quote what was given."""
        for call, sqlstate in [
            (f"seqscan('t{letter}', '{{{letter}}}')", "22023"),
            (f"random('t{letter}', '{{{letter}}}')", "22023"),
            (f"ping('t{letter}', mode => '{letter}')", "22023"),
            (f"ping('t{letter}', path => '{letter}')", "22023"),
            (f"iostat(options => '{{\"device\": \"{letter}\"}}')", "22023"),
            (f"recommend(settings => '{{{letter}}}')", "22023"),
            (f"sync(sections => '{{{letter}}}')", "22023"),
            (f"sync('{letter}')", "42704"),
            (f"compare('{letter}', '{letter}')", "42704"),
            (f"seqscan('t{letter}', options => '{{\"{letter}\": 1}}')", "22023"),
            (f"record('{letter}')", "22023"),
            (f"measure('{letter}')", "22023"),
            (f"explain('SELECT {letter}')", "42703"),
            (f"explain('{letter}')", "42601"),
            (f"explain('SELECT ''{letter}''::int', true)", "22P02"),
        ]:
            with self.assertRaises(Failure, msg=call) as raised:
                session.run(f"SELECT * FROM io_probe_{call}")
            self.assertEqual(raised.exception.sqlstate, sqlstate, raised.exception)
            self.assertIn(f'"{letter}"', str(raised.exception))

    @in_each
    def test_a_query_that_fails(self, session, letter):
        """The message of its ERROR passes whole."""
        session.run(f"""CREATE OR REPLACE FUNCTION fails() RETURNS int LANGUAGE plpgsql
            AS $$ BEGIN RAISE 'no {letter}' USING ERRCODE = 'ZX123'; END $$""")
        with self.assertRaises(Failure) as raised:
            session.rows(rows_of("explain", query="SELECT fails()", execute=True))
        self.assertEqual(raised.exception.sqlstate, "ZX123")
        self.assertRegex(str(raised.exception), f"no {letter}(?s:.*)PL/pgSQL function fails")

    @in_each
    def test_a_run_that_failed(self, session, letter):
        """The message of the run's ERROR is told as a WARNING, and kept."""
        session.run("DROP TABLE IF EXISTS twice; CREATE TABLE twice AS SELECT 1 AS id FROM generate_series(1, 2)")
        with self.assertRaises(Failure):
            session.run(f"CREATE UNIQUE INDEX CONCURRENTLY half{letter} ON twice (id)")
        told = session.run(f"SELECT io_probe_record('ping', 'half{letter}')")
        self.assertIn(f'index "half{letter}" is not ready', "".join(told))
        kept = session.row("SELECT * FROM io_probe_runs ORDER BY id DESC LIMIT 1")
        self.assertEqual((kept["sqlstate"], kept["message"]), ("55006", f'index "half{letter}" is not ready'))

    @in_each
    def test_what_an_encoding_lacks(self, session, letter):
        """JSON can name characters that a client could not send."""
        plan = '[{"Plan": {"Node Type": "%s Scan", "Alias": "\\u2713%s\\u2713"}}]' % (letter, letter)
        node = session.row(rows_of("explain", plan=plan))
        mark = "?" if letter != "ä" or session is self.sessions["LATIN1"] else "✓"
        self.assertEqual((node["node_type"], node["alias"]), (f"{letter} Scan", f"{mark}{letter}{mark}"))

    def test_names_of_another_database(self):
        """All databases share the names of tablespaces. Each is in the encoding of the database where it was given."""
        creator = self.sessions["UTF8"]
        creator.run("SET allow_in_place_tablespaces = on; CREATE TABLESPACE \"Sä✓\" LOCATION ''")
        self.addCleanup(creator.run, 'DROP TABLESPACE "Sä✓"')
        for encoding, session in self.sessions.items():
            with self.subTest(encoding):
                names = {row["spcname"] for row in session.rows("SELECT * FROM io_probe_device_full()")}
                self.assertTrue([name for name in names if name and name.startswith("S")], names)
                self.assertTrue(session.rows("SELECT * FROM io_probe_check()"))
                self.assertTrue(session.rows(rows_of("recommend", settings=["random_page_cost"], duration="20 ms")))

    def test_paths(self):
        """Paths have the file system's encoding, whatever the database has."""
        server = Server("dätä")
        self.addCleanup(server.remove)
        server.start()
        with server.session() as session:
            session.run("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
        with mock.patch.dict(os.environ, PGCLIENTENCODING="UTF8"), server.session("latin") as session:
            session.run("CREATE EXTENSION pg_io_probe; CREATE TABLE probed AS SELECT 1 AS id; CHECKPOINT")
            rows = session.rows("SELECT * FROM io_probe_seqscan_full('probed')")
            self.assertEqual([row["status"] for row in rows], ["ok"] * 3)
            number = session.value("SELECT io_probe_record('seqscan', 'probed')")
            self.assertEqual(session.value(f"SELECT rel_bytes FROM io_probe_runs WHERE id = {number}"), BLOCK)
            directories = [row["directory"] for row in session.rows("SELECT directory FROM io_probe_device_full()")]
            self.assertTrue(all("/dätä/" in directory for directory in directories), directories)

    def test_bytes_that_are_no_utf8(self):
        """SQL_ASCII takes any bytes."""
        session = self.sessions["SQL_ASCII"]
        session.run("""DO $$ BEGIN
            EXECUTE format('CREATE TABLE %I AS SELECT g || %L AS id FROM generate_series(1, 5000) AS g',
                           'odd' || chr(228), chr(228));
            EXECUTE format('CREATE INDEX odd_id ON %I (id)', 'odd' || chr(228));
            ANALYZE; END $$""")
        odd = "(SELECT oid FROM pg_class WHERE relname LIKE 'odd_' AND relkind = 'r')"
        rows = session.rows(f"SELECT status FROM io_probe_seqscan_full({odd})")
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        self.assertTrue(session.rows(f"SELECT setting FROM io_probe_recommend_full({odd}, duration => '20 ms')"))
        args = f"{odd}, {literal({'paths': ['os']})}, 'odd'"
        number = session.value(f"SELECT io_probe_record('seqscan', {args})")
        self.assertEqual(session.value(f"SELECT status FROM io_probe_runs WHERE id = {number}"), "ok")
        self.assertTrue(session.rows("SELECT metric FROM io_probe_changes(1)"))
        query = "'SELECT ''' || chr(228) || ''''"
        self.assertTrue(session.rows(f"SELECT node_type FROM io_probe_explain_full({query})"))
        session.run(f"DELETE FROM io_probe_runs WHERE id = {number}")

    def test_characters_that_utf8_lacks(self):
        """A query is executed as it was written. Other arguments with such characters are refused; such names are not looked up."""
        for encoding, odd, shown in [
            ("WIN1252", "6181", "a?"),
            ("EUC_JP", "61a9a1", "a?"),
            ("SQL_ASCII", "61e4", "a\N{REPLACEMENT CHARACTER}"),
        ]:
            with self.subTest(encoding):
                database = f"odd_{encoding.lower()}"
                self.control.run(f"CREATE DATABASE {database} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'")
                self.addCleanup(self.control.run, f"DROP DATABASE {database} WITH (FORCE)")
                with mock.patch.dict(os.environ, PGCLIENTENCODING="UTF8"), Session(database) as session:
                    self.check_characters(session, odd, shown)

    def check_characters(self, session, odd, shown):
        session.run(f"""CREATE EXTENSION pg_io_probe; SET client_min_messages = warning;
            CREATE FUNCTION odd() RETURNS text IMMUTABLE LANGUAGE sql
                AS $$ SELECT convert_from('\\x{odd}', getdatabaseencoding()) $$;
            CREATE FUNCTION query() RETURNS text IMMUTABLE LANGUAGE sql
                AS $$ SELECT format('SELECT * FROM %I WHERE k = %L', odd(), odd()) $$;
            CREATE TABLE "{shown}" (k text);
            DO $$ BEGIN
                EXECUTE format('CREATE TABLE %I AS SELECT unnest(ARRAY[%L, %L, %L]) AS k', odd(), odd(), '{shown}', '{shown}');
            END $$;
            CHECKPOINT""")
        node = session.row("SELECT relid, actual_rows FROM io_probe_explain_full(query(), true) WHERE node_id > 0")
        self.assertEqual(node, {"relid": None, "actual_rows": 1})
        scan = "SELECT scan.relname FROM pg_class AS c, io_probe_seqscan_full(c.oid, '{os}') AS scan"
        self.assertEqual(session.row(f"{scan} WHERE c.relname::text = odd()")["relname"], shown)
        for call in [
            f"record('ping', '\"{shown}\"', jsonb_build_object('path', odd()))",
            f"record('ping', '\"{shown}\"', label => odd())",
            "import('{}', odd())",
            "compare(odd(), odd())",
            "sync(odd())",
            f"recommend('\"{shown}\"', settings => ARRAY[odd()])",
        ]:
            with self.subTest(call), self.assertRaises(Failure) as raised:
                session.run(f"SELECT count(*) FROM io_probe_{call}")
            self.assertEqual(raised.exception.sqlstate, "22P05", raised.exception)

    @in_each
    def test_names_that_no_relation_can_have(self, session, _):
        """JSON can name such relations. The text that stands for the name in messages is not looked up."""
        session.run('CREATE TABLE "?" ()')
        self.addCleanup(session.run, 'DROP TABLE "?"')
        for name in [r"\u2713", r"?\u0000"]:
            with self.subTest(name):
                plan = '{"Plan": {"Node Type": "Seq Scan", "Relation Name": "%s"}}' % name
                self.assertIsNone(session.row(rows_of("explain", plan=plan))["relid"])


if __name__ == "__main__":
    main()
