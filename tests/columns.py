#!/usr/bin/env -S python3 -B
"""docs/columns.md says what the catalog says: about every function, column, view, table and setting, on each version."""

import difflib
import os
import subprocess
import unittest

from lib import Session, main

CHECKOUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
COMMAND = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-f", os.path.join(CHECKOUT, "tools", "columns.sql")]


def generated():
    """The page as it would be written now."""
    return subprocess.run(COMMAND, check=True, capture_output=True, text=True).stdout


class Columns(unittest.TestCase):
    def test_the_page_is_up_to_date(self):
        with open(os.path.join(CHECKOUT, "docs", "columns.md"), encoding="utf-8") as file:
            kept = file.read()
        differences = difflib.unified_diff(kept.splitlines(), generated().splitlines(), "docs/columns.md", "generated", lineterm="")
        self.assertFalse("\n".join(differences), "run psql -XqAt -f tools/columns.sql >docs/columns.md")

    def test_nothing_is_left_out(self):
        """The page has every name that another query of the catalog finds."""
        page = generated()
        with Session() as session:
            session.run("LOAD 'pg_io_probe'")
            names = session.value("""SELECT json_agg(name) FROM (
                SELECT '### ' || proname FROM pg_proc WHERE proname LIKE 'io\\_probe\\_%'
                UNION SELECT '### ' || relname FROM pg_class WHERE relname LIKE 'io\\_probe\\_%' AND relkind IN ('r', 'v')
                UNION SELECT '| `' || name || '` |' FROM pg_settings WHERE name LIKE 'pg\\_io\\_probe.%'
                UNION SELECT '`' || attname || '`' FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
                 WHERE relname LIKE 'io\\_probe\\_%' AND relkind IN ('c', 'r', 'v') AND attnum > 0 AND NOT attisdropped
                ) AS known (name)""")
        self.assertGreater(len(names), 200)
        self.assertEqual([name for name in names if name not in page], [])

    def test_everything_has_a_comment(self):
        lacking = [line for line in generated().splitlines() if line.endswith("|  |") or line in (".", "Table: .", "View: .")]
        self.assertEqual(lacking, [])


if __name__ == "__main__":
    main()
