#!/usr/bin/env -S python3 -B
"""Which table a call takes that names none, and what it says where none will do."""

import re
import unittest

from lib import Session, main, rows_of


class WhichTable(unittest.TestCase):
    """Each test has a database of its own, with nothing but its tables."""

    def setUp(self):
        control = Session()
        self.addCleanup(control.close)
        control.run("CREATE DATABASE of_tables TEMPLATE template0")
        self.addCleanup(control.run, "DROP DATABASE of_tables WITH (FORCE)")
        self.session = Session("of_tables")
        self.addCleanup(self.session.close)
        self.session.run("CREATE EXTENSION pg_io_probe; SET client_min_messages = warning")

    def advice(self):
        """The row of random_page_cost, where the largest table is."""
        given = {"settings": ["random_page_cost"], "duration": "500 ms"}
        return self.session.row(rows_of("recommend", **given))

    def reported(self):
        """The relation that a report is of."""
        lines = self.session.rows(rows_of("report_full", duration="1 s"))
        self.assertNotIn("no table was found", str(lines))
        (name,) = [line["finding"] for line in lines if line["item"] == "relation"]
        return name

    def test_values_in_toast(self):
        self.session.run("""CREATE TABLE t (value text); ALTER TABLE t ALTER value SET STORAGE EXTERNAL;
            INSERT INTO t SELECT repeat('x', 8000) FROM generate_series(1, 2000); CHECKPOINT""")
        toast = self.session.value("SELECT reltoastrelid::regclass::text FROM pg_class WHERE relname = 't'")
        row = self.advice()
        self.assertIsNone(row["recommended"])
        self.assertRegex(row["why"], r"TOAST table of \d+ MiB")
        # The call that it names works.
        self.assertIn(f"io_probe_page_cost('{toast}')", row["why"])
        self.assertTrue(self.session.rows(rows_of("page_cost", toast, duration="500 ms")))
        self.assertEqual(self.reported(), toast)

    def test_small_partitions(self):
        self.session.run("CREATE TABLE t (id int, filler text) PARTITION BY LIST (id)")
        for part in range(12):
            self.session.run(f"""CREATE TABLE t{part} PARTITION OF t FOR VALUES IN ({part});
                INSERT INTO t SELECT {part}, repeat('x', 1900) FROM generate_series(1, 500)""")
        self.session.run("CHECKPOINT")
        row = self.advice()
        self.assertIsNone(row["recommended"])
        self.assertRegex(row["why"], r"12 smaller tables have 1\d MiB.* pass its name")
        self.assertTrue(re.fullmatch(r"public\.t\d+", self.reported()))

    def test_unlogged_tables(self):
        self.session.run("""CREATE UNLOGGED TABLE t (filler text);
            INSERT INTO t SELECT repeat('x', 1900) FROM generate_series(1, 5000); CHECKPOINT""")
        self.assertEqual(self.advice()["relid"], "t")
        self.assertEqual(self.reported(), "public.t")


if __name__ == "__main__":
    main()
