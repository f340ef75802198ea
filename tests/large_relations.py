#!/usr/bin/env -S python3 -B
"""Relations of many segments: bounded time, memory and descriptors. The files are sparse, so no rate is looked at."""

import time
import unittest

from lib import BLOCK, SEGMENT_BLOCKS, Session, Watched, engines, knows_readahead, main, random_reads, rows_of
from lib import say, seqscan, sparse_table

TIB = 1024 * SEGMENT_BLOCKS
MIB = 1 << 20


def processor_seconds(pid):
    """What a process has had of the processors: the clock is that of clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)


class LargeRelations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.control = Session()
        try:
            sparse_table(cls.control, "huge", TIB)
        except OSError as e:
            raise unittest.SkipTest(f"the file system takes no sparse files of this size: {e}")
        sparse_table(cls.control, "single", SEGMENT_BLOCKS)
        sparse_table(cls.control, "odd", 2 * SEGMENT_BLOCKS + 1000)
        sparse_table(cls.control, "even", 2 * SEGMENT_BLOCKS)

    @classmethod
    def tearDownClass(cls):
        cls.control.run("DROP TABLE IF EXISTS huge, single, odd, even")
        cls.control.close()

    def test_a_terabyte_keeps_to_its_duration(self):
        for engine in engines(self.control):
            with self.subTest(engine), Session() as session:
                session.run(f"SET pg_io_probe.engine = {engine}; {seqscan('odd', 'direct')}")
                with Watched(session) as most:
                    asked = time.monotonic()
                    row = session.row(seqscan("huge", "direct", duration="1 s"))
                    seconds = time.monotonic() - asked
                say(f"{engine}: {seconds:.2f} s, {row['blks']} blocks, {most}")
                self.assertEqual((row["status"], row["complete"], row["blks_total"]), ("ok", False, TIB))
                self.assertGreater(row["blks"], 0)
                self.assertTrue(950 <= row["elapsed_ms"] <= 30_000, row["elapsed_ms"])
                self.assertLess(seconds, 30)
                self.assertLess(most.memory, 8 * MIB)
                self.assertLess(most.descriptors, 64)

    def test_random_fetches_of_a_terabyte(self):
        """The fetches open all of the relation's files, again and again."""
        for name, probe, depth in [
            *((f"random, {path}, depth {depth}", random_reads("huge", path, duration="800 ms", depth=depth), depth)
              for path in ["direct", "os"] for depth in [1, 32]),
            ("random, server", random_reads("huge", "server", duration="800 ms"), 1),
            ("depth", rows_of("depth", "huge", depths=[1, 64], duration="800 ms"), 64),
        ]:
            with self.subTest(name), Session() as session:
                session.run(probe.replace("huge", "odd"))
                with Watched(session) as most:
                    asked = time.monotonic()
                    rows = session.rows(probe)
                    seconds = time.monotonic() - asked
                fetches = sum(row["blks"] for row in rows)
                say(f"{name}: {seconds:.2f} s, {fetches} blocks, {most}")
                for row in rows:
                    self.assertEqual((row["status"], row["iops"]), ("ok", None), row)
                    self.assertEqual(row.get("blks_total", TIB), TIB)
                self.assertGreater(fetches, 1000)
                self.assertGreaterEqual(sum(row["hole_blks"] for row in rows), fetches - 1)
                self.assertTrue(700 <= sum(row["elapsed_ms"] for row in rows) <= 30_000, rows)
                self.assertLess(seconds, 30)
                self.assertLess(most.memory, 8 * MIB)
                self.assertLess(most.descriptors, 64 + depth)

    def test_readahead_over_a_terabyte(self):
        """Next to nothing of the relation was ever written, so no window has figures."""
        if not knows_readahead(self.control):
            self.skipTest("the readahead window is not known here")
        for engine in engines(self.control):
            with self.subTest(engine), Session() as session:
                # No byte budget shall end the probe before.
                arguments = {"windows_kb": [16, 1024], "duration": "1500 ms", "options": {"max_bytes": 64 << 30}}
                probe = rows_of("readahead", "huge", **arguments)
                session.run(f"SET pg_io_probe.engine = {engine}; {probe.replace('huge', 'odd')}")
                with Watched(session) as most:
                    asked = time.monotonic()
                    rows = session.rows(probe)
                    seconds = time.monotonic() - asked
                say(f"{engine}: {seconds:.2f} s for {len(rows)} rows, {most}")
                self.assertTrue({16, 1024} <= {row["window_kb"] for row in rows})
                for row in rows:
                    figures = [row[name] for name in ["mib_s", "block_us", "ci_low", "ci_high", "best"]]
                    self.assertEqual((row["status"], row["turns"], row["blks"], *figures), ("ok", 0, 0, *[None] * 5))
                    notes = " ".join(row["notes"])
                    self.assertRegex(notes, r"\d+ reads of blocks that were never written .*stopped at the end of its duration")
                self.assertLess(seconds, 0.5 * len(rows) + 20)
                # Two buffers of 32 MiB, whatever the windows.
                self.assertLess(most.memory, 68 * MIB)
                self.assertLess(most.descriptors, 64)

    def test_page_costs_of_a_terabyte(self):
        """Next to nothing of the relation was ever written, so nothing comes from the device."""
        for cold in [False, True]:
            with self.subTest(cold=cold), Session() as session:
                probe = rows_of("page_cost", "huge", cold=cold, duration="1 s")
                session.run(probe.replace("huge", "odd"))
                with Watched(session) as most:
                    asked = time.monotonic()
                    rows = session.rows(probe)
                    seconds = time.monotonic() - asked
                say(f"cold {cold}: {seconds:.2f} s, {most}")
                for row in rows:
                    if row["tier"] == "device":
                        self.assertEqual((row["status"], row["block_us"], row["blks"]), ("partial", None, 0), row)
                        self.assertIn("never written", " ".join(row["notes"]))
                self.assertLess(seconds, 30)
                self.assertLess(most.memory, 8 * MIB)
                self.assertLess(most.descriptors, 64)

    def first_fetch(self, name, path):
        """Processor seconds of random fetches in a new session, with time for the first one only. On a busy machine the
        millisecond may be over before it."""
        for _ in range(100):
            with Session() as session:
                session.run(random_reads("odd", path, duration="1 ms"))
                before = processor_seconds(session.pid)
                row = session.row(random_reads(name, path, duration="1 ms"))
                took = processor_seconds(session.pid) - before
            if row["blks"]:
                return took
        self.fail(f"{path}: of {name} nothing was fetched")

    def test_the_first_fetch_of_a_terabyte(self):
        """It costs as much as that of a gibibyte: nothing is done for each block beforehand. A look at each would take longer."""
        took = {}
        for name in ["single", "huge"]:
            for path in ["direct", "os", "server"]:
                took[name, path] = self.first_fetch(name, path)
            with Session() as session:
                # A ping looks for a block that holds data until its time is up; there is one such block.
                session.run(f"SET pg_io_probe.max_duration = '50 ms'; {rows_of('ping', 'odd', count=1)}")
                with Watched(session) as most:
                    before = processor_seconds(session.pid)
                    session.rows(rows_of("ping", name, count=1, options={"seed": 1}))
                    took[name, "ping"] = processor_seconds(session.pid) - before
                say(f"ping, {name}: {most}")
                self.assertLess(most.memory, 8 * MIB)
        for path in ["direct", "os", "server", "ping"]:
            say(f"{path}: {took['single', path] * 1000:.1f} ms, and of 1 TiB {took['huge', path] * 1000:.1f} ms")
            self.assertLess(took["huge", path], took["single", path] + 0.1)

    def test_every_segment_is_opened_and_closed(self):
        """A scan may begin at any block. Descriptors don't add up."""
        with Session() as session, Watched(session) as most:
            start = TIB - 3 * SEGMENT_BLOCKS - 5
            (row,) = session.rows(seqscan("huge", "direct", duration="30 s", options={"start_blk": start}))
            self.assertEqual((row["complete"], row["blks"]), (True, TIB - start))
            row = session.row("SELECT * FROM io_probe_cache('huge')")
            self.assertEqual(row["blks_total"], TIB)
            self.assertGreater(row["hole_bytes"], (TIB - 2) * BLOCK)
            row = session.row("SELECT * FROM io_probe_evict('huge')")
            self.assertEqual(row["os_bytes_after"], 0)
            self.assertLess(most.descriptors, 64)

    def test_what_ends_inside_a_segment(self):
        for name, blocks in [("odd", 2 * SEGMENT_BLOCKS + 1000), ("even", 2 * SEGMENT_BLOCKS)]:
            with self.subTest(name):
                row = self.control.row(seqscan(name, "direct", duration="30 s", chunk_kb=1016))
                self.assertEqual((row["complete"], row["blks"], row["blks_total"]), (True, blocks, blocks))
                self.assertGreater(row["hole_blks"], blocks - 3)

    def test_a_statement_has_an_end(self):
        """A statement ends at max_duration, however many calls it makes."""
        with Session() as session:
            session.run("SET pg_io_probe.max_duration = '1 s'")
            asked = time.monotonic()
            rows = session.rows(
                "SELECT p.* FROM generate_series(1, 20) AS g, "
                "io_probe_seqscan_full('huge', '{direct}', g + 200 || ' ms') AS p"
            )
            seconds = time.monotonic() - asked
            say(f"20 calls of 200 ms in a statement of 1 s: {seconds:.2f} s")
            self.assertEqual((rows[0]["status"], rows[-1]["status"]), ("ok", "partial"))
            self.assertLess(seconds, 30)


if __name__ == "__main__":
    main()
