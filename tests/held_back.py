#!/usr/bin/env -S python3 -B
"""What the server's control group holds back: each probe says so. The storage is a loop device. Needs root, to mount."""

import contextlib
import unittest

import cgroups
from lib import Session, dense_table, main, needs_root, rows_of, server_processes
from storage import LoopDevice, create_tablespace

MIB = 1 << 20
BLOCKS = 20000
setUpModule = needs_root
# By probe, arguments that keep the device busy long enough for a limit to show.
PROBES = {
    "seqscan": {"paths": ["direct"], "cold": True},
    "random": {"paths": ["direct"], "depth": 8, "duration": "1 s"},
    "depth": {"depths": [4, 16], "duration": "1 s"},
    "page_cost": {"densities": [0.5], "concurrencies": [16], "cold": True, "duration": "10 s"},
    "readahead": {"windows_kb": [64], "duration": "2 s"},
    "ping": {"count": 100, "every": "0"},
}


class HeldBack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.disk = LoopDevice(512 * MIB)
        cls.addClassCleanup(cls.disk.remove)
        cls.control = Session()
        cls.addClassCleanup(cls.control.close)
        place = create_tablespace(cls.control, "elsewhere", cls.disk.mount_point)
        cls.addClassCleanup(cls.control.run, "DROP TABLE probed; DROP TABLESPACE elsewhere")
        dense_table(cls.control, "probed", BLOCKS, place)

    def doubts(self, probe, session):
        """The doubts of the rows that come from the device, and their notes."""
        rows = session.rows(rows_of(probe, "probed", **PROBES[probe]))
        rows = [row for row in rows if row.get("tier", "device") == "device"]
        return [row["doubt"] or "" for row in rows], " ".join(note for row in rows for note in row["notes"])

    def test_a_limit_on_reads_is_told_by_each_probe(self):
        with cgroups.limited_somehow(self.disk.device, read_iops=500) as limit:
            if limit is None:
                self.skipTest("no cgroup limits requests here")
            with Session() as session:
                for probe in PROBES:
                    with self.subTest(probe):
                        doubts, notes = self.doubts(probe, session)
                        self.assertNotIn("limited", " ".join(doubts) + notes)
                        with limit.on(server_processes()):
                            doubts, notes = self.doubts(probe, session)
                        self.assertIn("limited", " ".join(doubts))
                        self.assertRegex(notes, "cgroup .* limits reads of .* 500 requests per second")

    def test_the_report_names_the_limit(self):
        with cgroups.limited_somehow(self.disk.device, read_iops=500) as limit:
            if limit is None:
                self.skipTest("no cgroup limits requests here")
            with limit.on(server_processes()), Session() as session:
                session.run("SET client_min_messages = warning")
                lines = session.rows(rows_of("report_full", "probed", duration="8 s", cold=True))
        of = {section: [line for line in lines if line["section"] == section] for section in ["trust", "verdict"]}
        self.assertIn("cgroup's limit", of["trust"][0]["finding"])
        self.assertIn(of["trust"][0]["item"], ["fair", "poor"])
        self.assertRegex(" ".join(line["finding"] for line in of["verdict"]), "limits reads of .* 500 requests per second")

    def test_a_quota_of_cpu_time_is_told(self):
        calls = {"seqscan": {"paths": ["os"]}, "random": {"paths": ["os"], "duration": "2 s"}}
        with Session() as session:
            session.run("SET client_min_messages = warning; SELECT count(*) FROM probed")
            # Out of memory the table is read within a tenth of a second of processor time.
            with self.quota(0.03):
                for probe, arguments in calls.items():
                    with self.subTest(probe):
                        (row,) = session.rows(rows_of(probe, "probed", **arguments))
                        self.assertIn("cpu quota", row["doubt"] or "", row)
                        self.assertRegex(" ".join(row["notes"]), "used up its CPU quota in .* periods")
            with self.quota(0.15):
                lines = session.rows(rows_of("report_full", "probed", duration="3 s"))
            trust = [line for line in lines if line["section"] == "trust"]
            self.assertEqual({line["item"] for line in trust}, {"poor"}, trust)
            for line in trust:
                self.assertIn("CPU quota", line["finding"])

    @contextlib.contextmanager
    def quota(self, share):
        """Meanwhile the server has this share of a processor."""
        with cgroups.quota(share) as limit:
            if limit is None:
                self.skipTest("no cgroup limits CPU time here")
            with limit.on(server_processes()):
                yield


if __name__ == "__main__":
    main()
