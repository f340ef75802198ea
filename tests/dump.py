#!/usr/bin/env python3
"""What pg_dump keeps of the history, and what another server makes of it."""

import os
import re
import shutil
import unittest

from lib import TEST_TMP, Session, as_server, dense_table, literal, main
from servers import Server

HISTORY = os.path.join(os.path.dirname(__file__), "..", "docs", "history.md")
SHORT = {"duration": "20 ms"}
TABLES = ["io_probe_runs", "io_probe_results"]


class Dump(unittest.TestCase):
    def setUp(self):
        self.session = Session()
        self.addCleanup(self.session.close)
        views = self.session.rows("SELECT relname FROM pg_class WHERE relname ~ '^io_probe_.*_history$' ORDER BY relname")
        self.relations = TABLES + [view["relname"] for view in views]
        self.session.run('DROP SCHEMA IF EXISTS "Gone, too" CASCADE; CREATE SCHEMA "Gone, too"')
        self.session.run("DROP TABLE IF EXISTS here; DELETE FROM io_probe_results; DELETE FROM io_probe_runs")
        dense_table(self.session, "here", 32)
        dense_table(self.session, '"Gone, too"."A table"', 32)

    def record(self, probe, relation=None, label=None, **arguments):
        """Records a run, and returns its number."""
        on = "NULL" if relation is None else literal(relation)
        named = "NULL" if label is None else literal(label)
        return self.session.value(f"SELECT io_probe_record('{probe}', {on}, {literal(arguments)}, {named})")

    def fill(self):
        """Stores some runs of each kind, and returns their numbers."""
        gone = '"Gone, too"."A table"'
        runs = [
            self.record("seqscan", "here", "before the move", **SHORT),
            self.record("seqscan", gone, "Überzug '\"\\ {}\n\t☃", **SHORT),
            self.record("random", gone, **SHORT, seed=7),
            self.record("ping", "here", count=3, every="0"),
            self.record("sync", sections="{one_write}", **SHORT),
        ]
        measured = f"SELECT io_probe_measure('depth', 'here', {literal({**SHORT, 'depths': '{1,2}'})})"
        failed = f"({measured}) || '{{\"status\": \"failed\", \"sqlstate\": \"58030\", \"message\": \"no\", \"rows\": []}}'"
        for value in [f"({measured})", failed]:
            runs.append(self.session.value(f"SELECT io_probe_import({value}, 'from elsewhere')"))
        self.session.run('DROP SCHEMA "Gone, too" CASCADE')
        return runs

    def restored(self, server, *options):
        """Restores the present database on the server, and returns a session in it."""
        dump = os.path.join(TEST_TMP, "dump")
        as_server("pg_dump", "-f", dump, *options, os.environ["PGDATABASE"])
        with server.session() as session:
            session.run("DROP DATABASE IF EXISTS restored; CREATE DATABASE restored")
        if "-Fp" in options:
            as_server("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", dump, server.address("restored"))
        else:
            as_server("pg_restore", "--exit-on-error", "-d", server.address("restored"), dump)
        os.remove(dump)
        return server.session("restored")

    def test_another_server(self):
        """The history is there and as it was, and the next run has a new number."""
        server = Server("other")
        self.addCleanup(server.remove)
        server.start()
        runs = self.fill()
        for options in [["-Fc"], ["-Fp"]]:
            with self.subTest(*options), self.restored(server, *options) as restored:
                for relation in self.relations:
                    with self.subTest(relation):
                        query = f"SELECT * FROM {relation} AS r ORDER BY to_jsonb(r)::text"
                        self.assertEqual(restored.rows(query), self.session.rows(query))
                self.assertEqual(restored.rows("SELECT id FROM io_probe_runs ORDER BY id"), [{"id": n} for n in runs])
                # The dropped table is known by name, whatever has its oid here.
                gone = restored.rows("SELECT * FROM io_probe_seqscan_history WHERE relname = 'A table'")
                self.assertEqual([row["run_id"] for row in gone], [runs[1]] * 3)
                self.assertEqual({row["schemaname"] for row in gone}, {"Gone, too"})
                new = restored.value("SELECT io_probe_record('ping', 'here', '{\"count\": 1}')")
                self.assertEqual(new, runs[-1] + 1)
                # The new run is of another series, that of another cluster.
                series = restored.value("SELECT count(DISTINCT series) FROM io_probe_runs WHERE probe = 'ping'")
                self.assertEqual(series, 2)
                restored.run("DROP TABLE here")
                self.assertEqual(restored.value("SELECT io_probe_prune('0', force => true)"), len(runs) + 1)
                self.assertEqual(restored.value("SELECT count(*) FROM io_probe_results"), 0)

    def test_dropped_and_created(self):
        """The stored runs come back after DROP EXTENSION by the commands of docs/history.md."""
        with open(HISTORY, encoding="utf-8") as file:
            commands = re.findall(r"^(?:pg_dump|pg_restore) .*$", file.read(), re.M)
        server = Server("other")
        self.addCleanup(server.remove)
        server.start()
        runs = self.fill()
        dump = os.path.join(TEST_TMP, "dump")
        place = {"DATABASE": server.address("restored"), "runs.dump": dump}
        dumping, restoring = [[place.get(word, word) for word in command.split()] for command in commands]
        with self.restored(server, "-Fc") as restored:
            before = [restored.rows(f"SELECT * FROM {name} AS r ORDER BY to_jsonb(r)::text") for name in self.relations]
            self.addCleanup(os.remove, dump)
            as_server(*dumping)
            restored.run("DROP EXTENSION pg_io_probe; CREATE EXTENSION pg_io_probe")
            as_server(*restoring)
            for name, rows in zip(self.relations, before):
                self.assertEqual(restored.rows(f"SELECT * FROM {name} AS r ORDER BY to_jsonb(r)::text"), rows)
            self.assertEqual(restored.value("SELECT io_probe_record('ping', 'here', '{\"count\": 1}')"), runs[-1] + 1)

    def test_another_schema(self):
        """The extension may lie in any schema."""
        server = Server("other")
        self.addCleanup(server.remove)
        server.start()
        self.session.run('CREATE SCHEMA "The probes"; ALTER EXTENSION pg_io_probe SET SCHEMA "The probes"')
        self.session.run('SET search_path = "$user", public, "The probes"')
        self.addCleanup(self.session.run, 'DROP SCHEMA "The probes"')
        self.addCleanup(self.session.run, "ALTER EXTENSION pg_io_probe SET SCHEMA public")
        self.fill()
        with self.restored(server, "-Fc") as restored:
            for relation in self.relations:
                query = f'SELECT * FROM "The probes".{relation} AS r ORDER BY to_jsonb(r)::text'
                self.assertEqual(restored.rows(query), self.session.rows(query))

    @unittest.skipUnless(shutil.which("pg_upgrade"), "no pg_upgrade")
    def test_pg_upgrade(self):
        """pg_upgrade puts the files of one cluster into a new one. It makes each object of the extension by itself, not by the
        script."""
        old, new = Server("old"), Server("new")
        self.addCleanup(old.remove)
        self.addCleanup(new.remove)
        old.start()
        self.fill()
        with self.restored(old, "-Fc") as restored:
            before = [restored.rows(f"SELECT * FROM {name} AS r ORDER BY to_jsonb(r)::text") for name in self.relations]
        as_server("pg_ctl", "stop", "-w", "-m", "fast", "-D", old.data)
        work = os.path.join(TEST_TMP, "work")
        as_server("mkdir", work)
        self.addCleanup(shutil.rmtree, work)
        programs = os.environ["PG_BINDIR"]
        as_server("env", "-C", work, "pg_upgrade", "-b", programs, "-B", programs, "-d", old.data, "-D", new.data,
                  "-U", "postgres", "-s", work)
        new.start()
        with new.session("restored") as session:
            for name, rows in zip(self.relations, before):
                self.assertEqual(session.rows(f"SELECT * FROM {name} AS r ORDER BY to_jsonb(r)::text"), rows)
            last = max(row["id"] for row in before[0])
            self.assertEqual(session.value("SELECT io_probe_record('ping', 'here', '{\"count\": 1}')"), last + 1)


if __name__ == "__main__":
    main()
