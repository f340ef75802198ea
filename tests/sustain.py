#!/usr/bin/env -S python3 -B
"""Loads that go on (io_probe_sustain), on volumes whose caps and credits are known.

A busy machine makes answers later, never earlier: no more than what a volume hands out is ever told.
"""

import unittest

import made_up
from lib import BLOCK, Failure, Session, dense_table, main, needs_root, rows_of, wait_for_probe
from storage import create_tablespace

BLOCKS = 4096
MIB = 1 << 20
VERDICT = r"^(burst of [0-9.]+ s, then )?(cap of [0-9.]+ (IOPS|MiB/s)( or [0-9.]+ MiB/s)?|steady|not steady|too short)$"


class Sustain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        needs_root()
        if why := made_up.missing():
            raise unittest.SkipTest(why)
        cls.device = cls.enterClassContext(made_up.device())
        cls.session = Session()
        cls.addClassCleanup(cls.session.close)
        cls.session.run("SET client_min_messages = warning")
        dense_table(cls.session, "probed", BLOCKS, create_tablespace(cls.session, "made_up", cls.device.mount_point))
        cls.session.run("VACUUM probed; CHECKPOINT")
        cls.addClassCleanup(cls.session.run, "DROP TABLE probed; DROP TABLESPACE made_up")

    def sustain(self, model, **arguments):
        before = self.device.counts()
        with self.device.meanwhile(model):
            rows = self.session.rows(rows_of("sustain", "probed", **arguments))
        after = self.device.counts()
        for row in rows:
            if row["slice"] is None:
                self.assertRegex(row["verdict"], VERDICT)
            else:
                self.assertEqual((row["verdict"], row["burst_iops"]), (None, None))
        # All that it tells was read from the device.
        told = sum(row["iops"] * row["elapsed_ms"] / 1000 * row["read_kb"] * 1024 for row in rows if row["slice"])
        self.assertGreaterEqual(after["read_bytes"] - before["read_bytes"], told * 0.99)
        return rows

    def test_a_bucket_is_emptied(self):
        credits, base, most = 800, 100, 500
        kept, *slices = self.sustain(f"burst iops={most} credits={credits} base={base}", patterns=["random"], duration="10 s")
        self.assertEqual([row["slice"] for row in slices], list(range(1, len(slices) + 1)))
        self.assertTrue(all(a["at_s"] < b["at_s"] for a, b in zip(slices, slices[1:])))
        # Two seconds at least are a burst, and then comes what flows in.
        self.assertIsNotNone(kept["burst_iops"], kept)
        self.assertLessEqual(kept["burst_iops"], most * 1.05)
        self.assertLessEqual(kept["iops"], base * 1.05)
        self.assertLessEqual(kept["bucket"], credits * 1.05 + base)
        self.assertGreaterEqual(kept["at_s"], credits / most * 0.9)
        self.assertTrue(kept["verdict"].startswith("burst of "), kept)
        self.assertEqual(kept["doubt"], None)

    def test_each_size_has_its_cap(self):
        rows = self.sustain("gp3 iops=400 mib=10", every="200 ms", duration="6 s")
        self.assertEqual([row["pattern"] for row in rows if row["slice"] is None], ["random", "sequential"])
        for row in rows:
            self.assertEqual(row["read_kb"], 8 if row["pattern"] == "random" else 256)
            if row["slice"] is None:
                self.assertLessEqual(row["iops"], 400 * 1.05)
                self.assertLessEqual(row["mib_s"], 10 * 1.05)
                self.assertAlmostEqual(row["mib_s"], row["iops"] * row["read_kb"] / 1024, delta=row["mib_s"] / 1000)

    def test_limits_hold(self):
        (kept, *slices) = self.sustain_at_a_rate()
        self.assertLessEqual(kept["iops"], 50 * 1.1)
        self.assertTrue(slices)
        few = {"max_bytes": 100 * BLOCK}
        rows = self.session.rows(rows_of("sustain", "probed", patterns=["random"], duration="30 s", options=few))
        self.assertEqual(rows[0]["status"], "ok")
        self.assertIn("stopped at max_bytes", rows[0]["notes"])

    def sustain_at_a_rate(self):
        with self.device.meanwhile("off"):
            rows = self.session.rows(rows_of("sustain", "probed", patterns=["random"], every="500 ms", duration="3 s",
                                             options={"max_iops": 50}))  # fmt: skip
        self.assertEqual((rows[0]["verdict"], rows[0]["doubt"].split(",")[0]), (None, "paced"))
        return rows

    def test_a_cancel_leaves_nothing(self):
        with Session() as other, self.device.meanwhile("gp3 iops=400"):
            other.start_rows(rows_of("sustain", "probed", duration="50 s"))
            wait_for_probe(self.session, other.pid)
            self.session.value(f"SELECT pg_cancel_backend({other.pid})")
            with self.assertRaises(Failure) as raised:
                other.finish(20)
            self.assertEqual(raised.exception.sqlstate, "57014")


if __name__ == "__main__":
    main()
