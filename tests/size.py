#!/usr/bin/env -S python3 -B
"""Relations of many segments: bounded time, memory and descriptors. The files are sparse, so no rate is looked at."""

import time
import unittest

from lib import BLOCK, SEGMENT_BLOCKS, Session, Watched, engines, main, say, seqscan, sparse_table

TIB = 1024 * SEGMENT_BLOCKS
MIB = 1 << 20


class Size(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.control = Session()
        try:
            sparse_table(cls.control, "huge", TIB)
        except OSError as e:
            raise unittest.SkipTest(f"the file system takes no sparse files of this size: {e}")
        sparse_table(cls.control, "odd", 2 * SEGMENT_BLOCKS + 1000)
        sparse_table(cls.control, "even", 2 * SEGMENT_BLOCKS)

    @classmethod
    def tearDownClass(cls):
        cls.control.run("DROP TABLE IF EXISTS huge, odd, even")
        cls.control.close()

    def test_a_terabyte_keeps_to_its_duration(self):
        for engine in engines(self.control):
            with self.subTest(engine), Session() as session:
                session.run(f"SET pg_io_probe.engine = {engine}; {seqscan('odd', 'direct')}")
                with Watched(session) as most:
                    asked = time.monotonic()
                    row = session.row(seqscan("huge", "direct", duration="2 s"))
                    seconds = time.monotonic() - asked
                say(f"{engine}: {seconds:.2f} s, {row['blks_scanned']} blocks, {most}")
                self.assertEqual((row["status"], row["complete"], row["blks_total"]), ("ok", False, TIB))
                self.assertGreater(row["blks_scanned"], 0)
                self.assertTrue(1900 <= row["elapsed_ms"] <= 4000, row["elapsed_ms"])
                self.assertLess(seconds, 4)
                self.assertLess(most.memory, 8 * MIB)
                self.assertLess(most.descriptors, 64)

    def test_every_segment_is_opened_and_closed(self):
        """From any block on; descriptors don't add up."""
        with Session() as session, Watched(session) as most:
            start = TIB - 3 * SEGMENT_BLOCKS - 5
            (row,) = session.rows(seqscan("huge", "direct", duration="30 s", options={"start_blk": start}))
            self.assertEqual((row["complete"], row["blks_scanned"]), (True, TIB - start))
            row = session.row("SELECT * FROM io_probe_cache('huge') WHERE fork = 'main'")
            self.assertEqual(row["blks_total"], TIB)
            self.assertGreater(row["hole_bytes"], (TIB - 2) * BLOCK)
            row = session.row("SELECT * FROM io_probe_evict('huge') WHERE fork = 'main'")
            self.assertEqual(row["os_bytes_after"], 0)
            self.assertLess(most.descriptors, 64)

    def test_what_ends_inside_a_segment(self):
        for name, blocks in [("odd", 2 * SEGMENT_BLOCKS + 1000), ("even", 2 * SEGMENT_BLOCKS)]:
            with self.subTest(name):
                row = self.control.row(seqscan(name, "direct", duration="30 s", chunk_kb=1016))
                self.assertEqual((row["complete"], row["blks_scanned"], row["blks_total"]), (True, blocks, blocks))
                self.assertGreater(row["hole_blks"], blocks - 3)

    def test_a_statement_has_an_end(self):
        """However many calls it makes."""
        with Session() as session:
            session.run("SET pg_io_probe.max_duration = '1 s'")
            asked = time.monotonic()
            rows = session.rows(
                "SELECT p.* FROM generate_series(1, 20) AS g, "
                "io_probe_seqscan('huge', '{direct}', g * interval '1 ms' + interval '200 ms') AS p"
            )
            seconds = time.monotonic() - asked
            say(f"20 calls of 200 ms in a statement of 1 s: {seconds:.2f} s")
            self.assertEqual([row["status"] for row in rows][:3] + [rows[-1]["status"]], ["ok"] * 3 + ["partial"])
            self.assertLess(seconds, 4)


if __name__ == "__main__":
    main()
