#!/usr/bin/env -S python3 -B
"""Many calls in one backend: its memory, its descriptors and its threads don't grow.

CALLS=2000 in the environment makes it longer.
"""

import os
import unittest

from lib import BLOCK, PATHS, Process, Session, Watched, call, dense_table, main, say

CALLS = int(os.environ.get("CALLS", "300"))
# Before the first look: catalogs and the library's own tables are read in, and malloc finds its size.
WARM_UP = 50
# A leak of a path's name in each call would be more.
BYTES_PER_CALL = 256
SLACK = 256 << 10
# A call may hold two engines, each with its buffers in huge pages.
BUFFERS = 2 * (2 << 20)

BRIEF = {"chunk_kb": 64, "depth": 4, "options": {"max_bytes": 64 * BLOCK}}
FEW = {"depth": 4, "options": {"max_bytes": 64 * BLOCK}}
PLAN = '[{"Plan": {"Node Type": "Seq Scan", "Relation Name": "probed", "Plan Rows": 1}}]'

CASES = {
    "seqscan, direct, io_uring": call("seqscan", "probed", paths=["direct"], **BRIEF),
    "seqscan, direct, threads": call("seqscan", "probed", paths=["direct"], **BRIEF),
    "seqscan, direct, pread": call("seqscan", "probed", paths=["direct"], **{**BRIEF, "depth": 1}),
    "seqscan, server": call("seqscan", "probed", paths=["server"], **BRIEF),
    "seqscan, os": call("seqscan", "probed", paths=["os"], **BRIEF),
    "seqscan, cold": call("seqscan", "probed", paths=PATHS, cold=True, **BRIEF),
    "seqscan, index": call("seqscan", "probed_id", paths=PATHS, **BRIEF),
    "random, direct, io_uring": call("random", "probed", paths=["direct"], **FEW),
    "random, direct, threads": call("random", "probed", paths=["direct"], **FEW),
    "random, server": call("random", "probed", paths=["server"], **FEW),
    "random, os": call("random", "probed", paths=["os"], **FEW),
    "random, one by one": call("random", "probed", **{**FEW, "depth": 1}),
    "random_series": call("random_series", "probed", **FEW),
    "depth": call("depth", "probed", depths=[1, 2], duration="10 ms", options={"max_bytes": 64 * BLOCK}),
    "page_cost": call("page_cost", "probed", cold=True, densities=[1], concurrencies=[1, 16], duration="5 ms"),
    "recommend": call("recommend", "probed", settings=["random_page_cost"], cold=True, duration="5 ms"),
    "ping": call("ping", "probed", count=10, every="0"),
    "cache": "io_probe_cache('probed')",
    "evict": "io_probe_evict('probed')",
    "device": "io_probe_device()",
    "counters": "io_probe_counters()",
    "progress": "io_probe_progress()",
    "check": "io_probe_check()",
    "explain": "io_probe_explain('SELECT * FROM probed WHERE id = 1', true)",
    "explain_json": f"io_probe_explain_json('{PLAN}')",
}
REFUSED = {
    "an unknown path": (call("seqscan", "probed", paths=["sideways"]), "22023"),
    "a view": (call("seqscan", "pg_tables", paths=["os"]), "42809"),
    "a write in explain": ("io_probe_explain('DELETE FROM probed', true)", "25006"),
    "no plan": ("io_probe_explain_json('[]')", "22023"),
}


class Growth(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with Session() as session:
            dense_table(session, "probed", 128)
            session.run("CREATE INDEX probed_id ON probed (id)")

    def test_many_statements(self):
        for name, function in CASES.items():
            with self.subTest(name), self.session(name) as session:
                self.assert_steady(session, name, lambda times: session.run(f"SELECT {function};\n" * times))

    def test_many_errors(self):
        for name, (function, sqlstate) in REFUSED.items():
            with self.subTest(name), self.session(name) as session:
                # In blocks that catch them, so that only subtransactions end.
                loop = f"""DO $$ BEGIN FOR n IN 1..%d LOOP BEGIN PERFORM {function};
                    EXCEPTION WHEN SQLSTATE '{sqlstate}' THEN NULL; END; END LOOP; END $$"""
                self.assert_steady(session, name, lambda times: session.run(loop % times))

    def test_many_calls_in_one_statement(self):
        """Its memory at most, while it runs."""
        for name, function in CASES.items():
            with self.subTest(name), self.session(name) as session:
                query = f"SELECT count(*) FROM (SELECT {function} FROM generate_series(1, %d)) AS calls"
                session.run(query % 5)
                with Watched(session) as most:
                    session.run(query % (CALLS // 3))
                say(f"{name}: {most}")
                self.assertLess(most.memory, BUFFERS + (1 << 20))

    def session(self, name):
        session = Session()
        session.run(f"SET pg_io_probe.engine = {'threads' if 'threads' in name else 'auto'}")
        return session

    def assert_steady(self, session, name, repeat):
        """The process holds after many calls what it held before."""
        process = Process(session.pid)
        repeat(WARM_UP)
        before = process.threads(), process.descriptors()
        memory = process.memory()
        repeat(CALLS)
        grown = process.memory() - memory
        say(f"{name}: {grown // 1024} kB after {CALLS} calls")
        self.assertEqual((process.threads(), process.descriptors()), before)
        self.assertLess(grown, SLACK + CALLS * BYTES_PER_CALL)


if __name__ == "__main__":
    main()
