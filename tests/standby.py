#!/usr/bin/env python3
"""Measured on a standby and on another server, kept on the primary."""

import json
import subprocess
import unittest

from ddl import Standby
from lib import Failure, Session, create_extension, dense_table, literal, main
from servers import Server

SHORT = {"duration": "20 ms"}
MEASURE = f"SELECT io_probe_measure('seqscan', 'nodes_own', {literal(SHORT)})"


class OtherNodes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.primary = Session()
        cls.addClassCleanup(cls.primary.close)
        for name in ["dblink", "postgres_fdw"]:
            if not create_extension(cls.primary, name):
                raise unittest.SkipTest(f"no {name}")
        dense_table(cls.primary, "nodes_own", 64)
        cls.other = Server("other")
        cls.addClassCleanup(cls.other.remove)
        cls.other.configure({"cluster_name": "other node"})
        cls.other.start()
        cls.remote = cls.other.session()
        cls.addClassCleanup(cls.remote.close)
        cls.remote.run("CREATE EXTENSION pg_io_probe")
        dense_table(cls.remote, "nodes_own", 128)
        cls.standby = Standby(cls.primary)
        cls.addClassCleanup(cls.standby.stop)
        cls.standby.start()
        cls.standby.catch_up()

    def node(self, host, database):
        return f"host={host} port={self.primary.value('SELECT current_setting($$port$$)')} user=postgres dbname={database}"

    def nodes(self):
        """The addresses by which the primary reaches the other nodes."""
        database = self.primary.value("SELECT current_database()")
        return {"other": self.other.address(), "standby": self.node(self.standby.host, database)}

    def run_of(self, number):
        return self.primary.row(f"SELECT * FROM io_probe_runs WHERE id = {number}")

    def identity(self, session):
        return session.value("SELECT system_identifier FROM pg_control_system()")

    def assert_from(self, number, node):
        """All of the run is of that node, and it is stored here only."""
        run = self.run_of(number)
        session, blocks = (self.remote, 128) if node == "other" else (self.standby.control, 64)
        self.assertEqual((run["status"], run["probe"], run["object"]), ("ok", "seqscan", "public.nodes_own"))
        self.assertEqual(run["in_recovery"], node == "standby")
        self.assertEqual(run["system_identifier"], str(self.identity(session)))
        self.assertEqual(run["cluster_name"] or "", session.value("SELECT current_setting('cluster_name')"))
        self.assertEqual(run["datname"], session.value("SELECT current_database()"))
        self.assertEqual(run["relid"], session.value("SELECT 'nodes_own'::regclass::oid"))
        rows = self.primary.rows(f"SELECT * FROM io_probe_seqscan_history WHERE run_id = {number}")
        self.assertEqual([row["path"] for row in rows], ["direct", "server", "os"])
        self.assertEqual([row["blks_total"] for row in rows], [blocks] * 3)
        if node == "other":
            self.assertEqual(session.value("SELECT count(*) FROM io_probe_runs"), 0)

    def test_dblink(self):
        for node, address in self.nodes().items():
            with self.subTest(node):
                number = self.primary.value(
                    f"SELECT io_probe_import(result, 'by dblink') "
                    f"FROM dblink({literal(address)}, {literal(MEASURE)}) AS node (result jsonb)"
                )
                self.assert_from(number, node)
                self.assertEqual(self.run_of(number)["label"], "by dblink")

    def test_postgres_fdw(self):
        """There is a view on the node, and a foreign table here. The view of the standby was made on its primary."""
        for session in [self.primary, self.remote]:
            session.run(f"CREATE VIEW measured AS {MEASURE} AS result")
            self.addCleanup(session.run, "DROP VIEW measured")
        self.standby.catch_up()
        for node, address in self.nodes().items():
            with self.subTest(node):
                options = dict(part.split("=") for part in address.split())
                user = options.pop("user")
                listed = ", ".join(f"{name} {literal(value)}" for name, value in options.items())
                self.primary.run(f"CREATE SERVER {node} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({listed})")
                self.addCleanup(self.primary.run, f"DROP SERVER {node} CASCADE")
                self.primary.run(f"CREATE USER MAPPING FOR CURRENT_USER SERVER {node} OPTIONS (user '{user}')")
                self.primary.run(f"CREATE FOREIGN TABLE on_{node} (result jsonb) SERVER {node} "
                                 f"OPTIONS (table_name 'measured')")
                number = self.primary.value(f"SELECT io_probe_import(result, 'by postgres_fdw') FROM on_{node}")
                self.assert_from(number, node)

    def test_one_value_a_node(self):
        """As run_command_on_workers wants it: one row of one column, which travels as text."""
        for node, address in self.nodes().items():
            with self.subTest(node):
                done = subprocess.run(["psql", "-X", "-A", "-t", "-q", "-c", MEASURE, address],
                                      check=True, capture_output=True, text=True)
                (line,) = done.stdout.splitlines()
                self.assertEqual(json.loads(line)["probe"], "seqscan")
                self.assert_from(self.primary.value(f"SELECT io_probe_import({literal(line)})"), node)

    def test_all_nodes_at_once(self):
        """A function of the name and the result that Citus's has, over dblink."""
        self.primary.run("CREATE TABLE node (name text, address text)")
        self.addCleanup(self.primary.run, "DROP TABLE node; DROP FUNCTION run_command_on_workers")
        for node, address in {**self.nodes(), "down": "host=/nonexistent"}.items():
            self.primary.run(f"INSERT INTO node VALUES ({literal(node)}, {literal(address)})")
        self.primary.run("""
            CREATE FUNCTION run_command_on_workers(command text, OUT nodename text, OUT success boolean, OUT result text)
            RETURNS SETOF record LANGUAGE plpgsql AS $$
            DECLARE node node;
            BEGIN
                FOR node IN TABLE node LOOP
                    nodename := node.name;
                    BEGIN
                        SELECT answer INTO STRICT result FROM dblink(node.address, command) AS of_node (answer text);
                        success := true;
                    EXCEPTION WHEN OTHERS THEN
                        success := false;
                        result := SQLERRM;
                    END;
                    RETURN NEXT;
                END LOOP;
            END $$""")
        rows = self.primary.rows(
            f"SELECT nodename, io_probe_import(result::jsonb, 'fleet') AS id "
            f"FROM run_command_on_workers({literal(MEASURE)}) WHERE success"
        )
        self.assertEqual({row["nodename"] for row in rows}, set(self.nodes()))
        for row in rows:
            self.assert_from(row["id"], row["nodename"])
        # Each node is a series of its own, though the standby has its primary's system identifier. So io_probe_latest
        # keeps them apart.
        here = self.primary.value(f"SELECT io_probe_record('seqscan', 'nodes_own', {literal(SHORT)})")
        numbers = ", ".join(str(number) for number in [here, *(row["id"] for row in rows)])
        series = f"SELECT count(DISTINCT series) FROM io_probe_runs WHERE id IN ({numbers})"
        self.assertEqual(self.primary.value(series), 3)

    def test_a_standby_stores_nothing(self):
        for query in [f"SELECT io_probe_record('seqscan', 'nodes_own', {literal(SHORT)})",
                      f"SELECT io_probe_import(({MEASURE}))"]:
            with self.subTest(query), self.assertRaises(Failure) as raised:
                self.standby.control.run(query)
            self.assertEqual(raised.exception.sqlstate, "55000")

    def test_the_history_reads_on_a_standby(self):
        number = self.primary.value(f"SELECT io_probe_record('seqscan', 'nodes_own', {literal(SHORT)})")
        self.standby.catch_up()
        for relation in ["io_probe_seqscan_history WHERE run_id", "io_probe_runs WHERE id"]:
            query = f"SELECT * FROM {relation} = {number} ORDER BY 1, 4"
            self.assertEqual(self.standby.control.rows(query), self.primary.rows(query))


if __name__ == "__main__":
    main()
