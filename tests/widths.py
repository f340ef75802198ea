#!/usr/bin/env -S python3 -B
"""What everyday calls print fits a terminal of 100 columns, with names and figures as they usually are."""

import subprocess
import unittest

from lib import Session, main

COLUMNS = 100
SCAN = '{"duration": "20 ms"}'
CALLS = [
    "io_probe_recommend('orders', duration => '200 ms')",
    "io_probe_recommend('orders', duration => '2 s', cold => true, writes => true)",
    "io_probe_check()",
    "io_probe_explain('SELECT count(*) FROM orders o JOIN orders c USING (customer) WHERE o.id < 9000 AND c.id % 3 = 0', true)",
    "io_probe_compare('before', 'after')",
    "io_probe_compare((SELECT min(id) FROM io_probe_runs), (SELECT max(id) FROM io_probe_runs WHERE probe = 'seqscan'))",
    "io_probe_changes()",
    "io_probe_report('orders', duration => '300 ms', promised => '{\"mib_s\": 500, \"iops\": 20000}', writes => true)",
]


class Widths(unittest.TestCase):
    def test_rows_fit(self):
        with Session() as session:
            session.run("""CREATE TABLE orders AS SELECT i AS id, i * 7919 % 20000 AS customer, repeat('x', 500) AS filler
                               FROM generate_series(1, 20000) AS i;
                           CREATE INDEX orders_customer ON orders (customer);
                           ANALYZE orders; CHECKPOINT; SET client_min_messages = warning""")
            for label, setting in [("before", 16), ("after", 64)]:
                session.run(f"SET effective_io_concurrency = {setting}")
                session.run(f"SELECT io_probe_record('seqscan', 'orders', '{SCAN}', '{label}') FROM generate_series(1, 3)")
                session.run(f"SELECT io_probe_record('sync', NULL, '{SCAN}', '{label}') FROM generate_series(1, 3)")
        for call in CALLS:
            with self.subTest(call):
                shown = subprocess.run(["psql", "-X", "-q", "-P", "pager=off", "-c", f"SELECT * FROM {call}"],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
                lines = shown.stdout.splitlines()
                self.assertGreater(len(lines), 3)
                self.assertLessEqual(max(map(len, lines)), COLUMNS, shown.stdout)


if __name__ == "__main__":
    main()
