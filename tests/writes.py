#!/usr/bin/env -S python3 -B
"""Writes of data files, alone (io_probe_write) and beside reads (io_probe_mix), on a device of known timing; and that nothing stays.

A busy machine makes answers later, never earlier: what a cap allows is never exceeded, and what is far below it is carried.
"""

import hashlib
import json
import mmap
import os
import threading
import unittest

import made_up
from lib import BLOCK, Failure, Session, dense_table, main, needs_root, rows_of, segment_file, wait_for_probe
from storage import create_tablespace

BLOCKS = 4096
# Reads and writes that the device of these tests lets through in a second, together.
CAP = 400


def setUpModule():
    needs_root()
    if why := made_up.missing():
        raise unittest.SkipTest(why)


class OnDevice(unittest.TestCase):
    """A table on a device that lets so many requests through."""

    @classmethod
    def setUpClass(cls):
        cls.device = cls.enterClassContext(made_up.device())
        cls.session = Session()
        cls.addClassCleanup(cls.session.close)
        cls.session.run("SET client_min_messages = warning")
        place = create_tablespace(cls.session, "made_up", cls.device.mount_point)
        dense_table(cls.session, "probed", BLOCKS, place)
        cls.session.run("VACUUM probed; CHECKPOINT")
        cls.addClassCleanup(cls.session.run, "DROP TABLE probed; DROP TABLESPACE made_up")
        cls.path = segment_file(cls.session, "probed")

    def rows(self, query, model=f"gp3 iops={CAP}"):
        with self.device.meanwhile(model):
            return self.session.rows(query)

    def files(self):
        return [name for _, _, names in os.walk(self.device.mount_point) for name in names if "pgsql_tmp" in name]

    def assert_cancel_leaves_nothing(self, query):
        with Session() as other, self.device.meanwhile(f"gp3 iops={CAP}"):
            other.run("SET client_min_messages = warning")
            other.start_rows(query)
            wait_for_probe(self.session, other.pid)
            self.session.value(f"SELECT pg_cancel_backend({other.pid})")
            with self.assertRaises(Failure) as raised:
                other.finish(20)
            self.assertEqual(raised.exception.sqlstate, "57014")
            self.assertEqual(len(os.listdir(f"/proc/{other.pid}/task")), 1)
        self.assertEqual(self.files(), [])

    def assert_needs_room(self, query):
        self.session.run("SET pg_io_probe.scratch_reserve = '1TB'")
        self.addCleanup(self.session.run, "RESET pg_io_probe.scratch_reserve")
        with self.assertRaises(Failure) as raised:
            self.rows(query)
        self.assertEqual(raised.exception.sqlstate, "53100")

    def assert_needs_rights(self, probe, query):
        self.session.run(f"CREATE ROLE reader LOGIN; GRANT SELECT ON probed TO reader; GRANT EXECUTE ON FUNCTION {probe}, {probe}_full TO reader")
        self.addCleanup(self.session.run, "DROP OWNED BY reader; DROP ROLE reader")
        with Session(user="reader") as reader, self.assertRaises(Failure) as raised:
            reader.rows(query)
        self.assertEqual(raised.exception.sqlstate, "42501")


class Write(OnDevice):
    def write(self, model=f"gp3 iops={CAP}", **arguments):
        return self.rows(rows_of("write", spcname="made_up", **arguments), model)

    def test_no_more_is_written_than_the_device_takes(self):
        before = self.device.counts()
        rows = self.write(duration="12 s")
        self.assertEqual([(row["pattern"], row["path"]) for row in rows],
                         [("random", "direct")] * 2 + [("sequential", "direct"), ("checkpoint", "os"), ("backend", "os"), ("copy", "os")])  # fmt: skip
        for row in rows:
            with self.subTest(row["pattern"], depth=row["depth"]):
                self.assertGreater(row["ops"], 0)
                self.assertNotIn("void", row["doubt"] or "")
                self.assertEqual(row["fsync_ms"] is None, row["path"] == "direct")
                if row["path"] == "direct":
                    self.assertLessEqual(row["writes_s"], CAP * 1.05)
        alone, together, *_ = rows
        self.assertGreater(together["writes_s"], alone["writes_s"] * 0.9)
        written = sum(row["ops"] * row["write_kb"] * 1024 for row in rows if row["path"] == "direct")
        self.assertGreaterEqual(self.device.counts()["written_bytes"] - before["written_bytes"], written)
        self.assertLessEqual({row["scratch_mib"] for row in rows}, {64})

    def test_a_cache_may_hold_a_small_file(self):
        self.addCleanup(self.session.run, "RESET pg_io_probe.scratch_limit")
        for mib, small in [(255, {"direct"}), (256, set())]:
            self.session.run(f"SET pg_io_probe.scratch_limit = '{mib}MB'")
            rows = self.write(model="off", patterns=["random", "copy"], duration="1 s")
            self.assertEqual({row["path"] for row in rows if row["ops"]}, {"direct", "os"})
            self.assertEqual({row["path"] for row in rows for note in row["notes"] if "may fit the caches" in note}, small)

    def test_limits_hold(self):
        for row in self.write(model="off", duration="6 s", options={"max_iops": 50}):
            self.assertLessEqual(row["writes_s"], 50 * 1.2)
            self.assertIn("paced", row["doubt"])
        rows = self.write(model="off", duration="30 s", patterns=["random", "copy"], options={"max_bytes": 100 * BLOCK})
        self.assertEqual({row["ops"] for row in rows if row["path"] == "os"}, {100})
        self.assertLessEqual(max(row["ops"] for row in rows), 100)

    def test_nothing_stays(self):
        query = rows_of("write", spcname="made_up", duration="50 s")
        self.assert_cancel_leaves_nothing(query)
        self.assert_needs_room(query)
        self.assert_needs_rights("io_probe_write", query)


class Report(OnDevice):
    def test_it_tells_what_a_volume_takes(self):
        promised = {"write_iops": CAP / 8, "write_mib_s": 1e6, "commit_us": 1e9, "commit_p99_us": 1e9}
        # So long that a turn has 330 answers or more: all 16 in flight come at once when a stall ends.
        self.session.run("SET pg_io_probe.max_duration = '3min'")
        self.addCleanup(self.session.run, "RESET pg_io_probe.max_duration")
        lines = self.rows(rows_of("report_full", "probed", duration="2 min", writes=True, promised=promised))
        kept = {line["section"]: line["kept"] for line in lines if line["promised"]}
        self.assertEqual(sorted(kept), ["commit", "commit_p99", "long_write", "write"])
        self.assertIsNot(kept["commit"], False)
        # A cache may hold the file.
        self.assertIsNone(kept["write"])
        self.assertIsNot(kept["long_write"], True)
        rates = [line for line in lines if line["section"] in ("write", "load")]
        self.assertEqual([line["item"] for line in rates], ["1", "16", "reads", "writes"])
        for line in rates:
            self.assertLessEqual(line["value"], CAP * 1.05, line)
        # Each side alone reaches what both may have together.
        marks = {(line["item"], line["write_pct"]): line["mark"] for line in lines if line["section"] == "load_p50"}
        self.assertEqual(marks["80", 80], "not carried")
        (told,) = [line["finding"] for line in lines if (line["section"], line["item"]) == ("verdict", "bend")]
        self.assertNotIn("at once", told)
        self.assertEqual(self.files(), [])

    def test_a_promise_of_writes_needs_a_large_file(self):
        self.session.run("SET pg_io_probe.scratch_limit = '256MB'")
        self.addCleanup(self.session.run, "RESET pg_io_probe.scratch_limit")
        lines = self.rows(rows_of("report_full", "probed", duration="20 s", writes=True, promised={"write_iops": CAP / 8}))
        (judged,) = [line for line in lines if line["promised"]]
        (told,) = [line["finding"] for line in lines if line["item"] == "promise"]
        self.assertIn(f"Random writes with {judged['item']} in flight: ", told)
        # What is kept beside others is kept, but a device that slows down was faster for a part of the time only.
        slowed = any("slowed down" in line["finding"] for line in lines if line["section"] == "trust")
        self.assertEqual(judged["kept"], None if slowed or "short" in (judged["doubt"] or "") else True)
        self.assertEqual([line["item"] for line in lines].count("credits"), 1 if judged["kept"] else 0)


class Mix(OnDevice):
    def mix(self, model=f"gp3 iops={CAP}", **arguments):
        return self.rows(rows_of("mix", "probed", **arguments), model)

    def content(self):
        with open(self.path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def test_it_bends_at_what_the_device_lets_through(self):
        content, before = self.content(), self.device.counts()
        rows = self.mix(shares=[20, 80], duration="12 s")
        self.assertEqual([row["load"] for row in rows], ["bend", "reads alone", "writes alone"] + ["cell"] * 4)
        bend, reads, writes, *cells = rows
        carried = {(row["read_pct"], row["write_pct"]): row["carried"] for row in cells}
        # Half of what each side reaches alone is what both may have together.
        self.assertTrue(carried[20, 20], rows)
        self.assertFalse(carried[80, 80], rows)
        self.assertGreaterEqual((bend["read_pct"], bend["write_pct"]), (20, 20))
        for row in rows:
            with self.subTest(row["load"], read=row["read_pct"], write=row["write_pct"]):
                self.assertLessEqual((row["reads_s"] or 0) + (row["writes_s"] or 0), CAP * 1.05)
                for side in "rw":
                    quantiles = [row[f"{side}_{name}_us"] for name in ["p50", "p95", "p99"]]
                    self.assertEqual(sorted(filter(None, quantiles)), list(filter(None, quantiles)))
        # One that is due waits behind those that were: far longer than the device takes for one.
        (overloaded,) = [row for row in cells if (row["read_pct"], row["write_pct"]) == (80, 80)]
        self.assertGreater(overloaded["r_p50_us"], 10 * 700)
        after = self.device.counts()
        answered = [sum((row[name] or 0) * row["elapsed_ms"] / 1000 for row in rows[1:]) for name in ["reads_s", "writes_s"]]
        self.assertGreaterEqual(after["read_bytes"] - before["read_bytes"], answered[0] * BLOCK * 0.99)
        self.assertGreaterEqual(after["written_bytes"] - before["written_bytes"], answered[1] * BLOCK * 0.99)
        # No block of the relation was written.
        self.assertEqual(self.content(), content)
        self.assertEqual((reads["doubt"], writes["doubt"]), (None, None))

    def test_each_kind_of_writes(self):
        sizes = {}
        for writing in ["data", "sequential", "wal"]:
            with self.subTest(writing):
                rows = self.mix(writing=writing, shares=[0, 50], duration="3 s")
                self.assertEqual({row["writing"] for row in rows}, {writing})
                self.assertEqual(len(rows), 3 + 3)
                (alone,) = [row for row in rows if row["load"] == "writes alone"]
                sizes[writing] = alone["write_kb"]
                self.assertTrue(alone["writes_s"], rows)
                self.assertEqual(alone["reads_s"], None)
        self.assertEqual(sizes, {"data": 8, "sequential": 256, "wal": 8})

    def test_it_is_like_what_others_send(self):
        # A read each 10 ms, or later.
        ended, block = threading.Event(), mmap.mmap(-1, BLOCK)

        def read_now_and_then():
            file = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
            number = 0
            while not ended.wait(0.01):
                os.preadv(file, [block], number % BLOCKS * BLOCK)
                number += 1
            os.close(file)

        reader = threading.Thread(target=read_now_and_then)
        reader.start()
        try:
            rows = self.mix(like="now", shares=[100, 200], duration="12 s")
        finally:
            ended.set()
            reader.join()
        self.assertEqual([row["load"] for row in rows], ["bend", "others", "reads alone", "writes alone", "cell", "cell"])
        now, cells = rows[1], rows[4:]
        self.assertGreater(now["reads_s"], 0)
        self.assertLessEqual(now["reads_s"], 100 * 1.1)
        self.assertEqual({row["read_kb"] for row in rows}, {8})
        for cell, times in zip(cells, [1, 2]):
            self.assertEqual(cell["read_pct"], 100 * times)
            self.assertAlmostEqual(cell["sent_reads_s"], now["reads_s"] * times, delta=0.01 * now["reads_s"])
        for like, sqlstate in [("then", "22023"), ("1e3", "22023"), ("", "22023"), ("0", "42704"), (str(2**63), "22023")]:
            with self.subTest(like), self.assertRaises(Failure) as raised:
                self.mix(like=like)
            self.assertEqual(raised.exception.sqlstate, sqlstate)

    def test_it_is_like_what_a_stored_run_saw(self):
        run = self.session.value("SELECT io_probe_record('iostat', args => '{\"every\": \"10 ms\"}')")
        device = f"'{os.path.basename(self.device.block)}'"
        seen = {"device": os.path.basename(self.device.block), "elapsed_ms": 1000, "r_s": 120, "rareq_kb": 16, "w_s": 40, "wareq_kb": 8}
        twice = [seen, {**seen, "elapsed_ms": 3000, "r_s": 80}]
        for ordinal, row in enumerate(twice, 1000):
            self.session.run(f"INSERT INTO io_probe_results VALUES ({run}, {ordinal}, '{json.dumps(row)}')")
        self.session.run(f"DELETE FROM io_probe_results WHERE run_id = {run} AND ordinal < 1000 AND result ->> 'device' = {device}")
        rows = self.mix(like=str(run), shares=[100], duration="6 s")
        self.assertEqual([row["load"] for row in rows], ["bend", "others", "reads alone", "writes alone", "cell"])
        others, cell = rows[1], rows[4]
        self.assertEqual((others["reads_s"], others["writes_s"]), (90, 40))
        self.assertEqual((cell["sent_reads_s"], cell["sent_writes_s"]), (90, 40))
        self.assertEqual({(row["read_kb"], row["write_kb"]) for row in rows}, {(16, 8)})
        # What was stored may be anything, and no number is too large.
        self.session.run(f"UPDATE io_probe_results SET result = result || '{{\"r_s\": 1e300}}' WHERE run_id = {run}")
        self.assertEqual(self.mix(like=str(run), shares=[100], duration="1 s")[1]["reads_s"], 1e12)

    def test_another_tablespace_is_tried(self):
        dense_table(self.session, "elsewhere", 64)
        self.addCleanup(self.session.run, "DROP TABLE elsewhere")
        read = self.device.counts()["read_bytes"]
        rows = self.rows(rows_of("mix", "elsewhere", spcname="made_up", shares=[50], duration="3 s"), f"gp3 iops={CAP}")
        self.assertEqual({(row["spcname"], row["relname"], row["device"]) for row in rows},
                         {("made_up", "elsewhere", os.path.basename(self.device.block))})  # fmt: skip
        self.assertLessEqual(max(row["reads_s"] or 0 for row in rows), CAP * 1.05)
        self.assertGreater(self.device.counts()["read_bytes"], read)

    def test_limits_hold(self):
        rows = self.mix(shares=[50], duration="3 s", model="off", options={"max_iops": 50})
        for row in rows:
            self.assertLessEqual((row["reads_s"] or 0) + (row["writes_s"] or 0), 50 * 1.1)
        self.assertIn("paced", rows[0]["doubt"])
        before = self.device.counts()
        self.mix(shares=[50], duration="30 s", model="off", options={"max_bytes": 100 * BLOCK})
        self.assertLess(self.device.counts()["read_bytes"] - before["read_bytes"], 300 * BLOCK)
        for wrong in [{"depth": 100_000}, {"depth": 0}, {"shares": [0]}, {"shares": []}, {"writing": "tape"}]:
            with self.subTest(wrong), self.assertRaises(Failure) as raised:
                self.mix(**wrong)
            self.assertEqual(raised.exception.sqlstate, "22023")

    def test_nothing_stays(self):
        query = rows_of("mix", "probed", duration="50 s")
        self.assert_cancel_leaves_nothing(query)
        self.assert_needs_room(query)
        self.assert_needs_rights("io_probe_mix", query)


if __name__ == "__main__":
    main()
