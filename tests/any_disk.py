#!/usr/bin/env -S python3 -B
"""The made-up devices of devices/: what comes out of a block device is what the arithmetic of its model says, and probes meet it.

A busy machine makes answers later, never earlier. So each read takes at least as long as the arithmetic says, and the fastest of
many, or the best of many spans of time, hardly longer. What a model does in detail its own tests show, on a clock of theirs.
"""

import errno
import mmap
import os
import random
import threading
import time
import unittest

import made_up
from lib import BLOCK, Failure, Session, dense_table, main, needs_root, random_reads, seqscan, server_ids
from servers import Server
from storage import create_tablespace

MIB = 1 << 20
# How much slower than the arithmetic the best may be; and what a request costs on top, in seconds.
SLOWER, OVERHEAD = 1.25, 0.0002
BLOCKS = 512


def setUpModule():
    needs_root()
    if why := made_up.missing():
        raise unittest.SkipTest(why)


class Reader:
    """Reads a device past the OS cache, and notes when."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR | os.O_DIRECT)
        self.size = os.lseek(self.file, 0, os.SEEK_END)

    def close(self):
        os.close(self.file)

    def read(self, offset, length=BLOCK):
        """Seconds that a read takes."""
        with mmap.mmap(-1, length) as buffer:
            begin = time.monotonic()
            got = os.preadv(self.file, [buffer], offset)
            assert got == length, f"{got} bytes at {offset}"
            return time.monotonic() - begin

    def write(self, offset, length=BLOCK):
        """Writes zeros."""
        with mmap.mmap(-1, length) as buffer:
            os.pwritev(self.file, [buffer], offset)

    def anywhere(self, length=BLOCK):
        """A place for a read."""
        return random.randrange(self.size // length) * length

    def one_by_one(self, count):
        """Seconds of each of so many reads at random places."""
        return [self.read(self.anywhere()) for _ in range(count)]

    def at_once(self, depth, seconds, length=BLOCK):
        """Reads for so many seconds, `depth` at a time: of each, when it came to an end, and what it took."""
        begin, reads = time.monotonic(), []

        def work():
            while time.monotonic() < begin + seconds:
                took = self.read(self.anywhere(length), length)
                reads.append((time.monotonic() - begin, took))

        threads = [threading.Thread(target=work) for _ in range(depth)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(reads)


def most_within(ends, span):
    """The most reads that ended in a span of so many seconds."""
    return max(sum(end <= at < end + span for at in ends) for end in ends)


class OnDevice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = cls.enterClassContext(made_up.device())

    def setUp(self):
        self.addCleanup(self.device.model, "off")


class Timing(OnDevice):
    def setUp(self):
        super().setUp()
        self.reader = Reader(self.device.block)
        self.addCleanup(self.reader.close)

    def assert_rate(self, reads, rate):
        """So many reads a second, and what a cap allows for 10 ms; the best quarter of a second shows that they come."""
        ends = [end for end, _ in reads]
        self.assertLessEqual(len([end for end in ends if end <= 1]), rate * 1.01 + 1)
        self.assertGreaterEqual(most_within(ends, 0.25), rate * 0.25 / SLOWER)

    def test_one_at_a_time_takes_the_latency(self):
        for words, seconds in [("gp3 jitter=0", 0.0007), ("net jitter=0", 0.00025), ("ssd jitter=0 ms=5", 0.005)]:
            with self.subTest(words):
                self.device.model(words)
                times = self.reader.one_by_one(200)
                self.assertGreaterEqual(min(times), seconds)
                self.assertLessEqual(min(times), seconds * SLOWER + OVERHEAD)

    def test_a_head_has_to_move(self):
        """In the mean: half a turn, and 1 ms + 8 ms * 8 / 15 of a seek."""
        self.device.model("hdd")
        times = self.reader.one_by_one(200)
        self.assertGreaterEqual(sum(times) / len(times), (0.00417 + 0.00527) / SLOWER)
        self.assertLessEqual(min(times), 0.00527)

    def test_a_cap_on_requests(self):
        for depth in [8, 16]:
            self.device.model("gp3 iops=500")
            self.assert_rate(self.reader.at_once(depth, 1.5), 500)

    def test_a_cap_on_bytes(self):
        self.device.model("gp3 mib=40")
        self.assert_rate(self.reader.at_once(4, 1.5, MIB), 40)

    def test_credits_run_out(self):
        self.device.model("burst credits=200 base=100")
        self.assertEqual(self.device.counts()["credits"], 200)
        while self.device.counts()["credits"]:
            self.reader.at_once(8, 0.1)
        self.assert_rate(self.reader.at_once(8, 1.5), 100)

    def test_a_read_after_a_write_takes_longer(self):
        self.device.model("ssd penalty_ms=20 penalty_for_ms=60000")
        self.assertLess(min(self.reader.one_by_one(20)), 0.020)
        self.reader.write(0)
        self.assertGreaterEqual(min(self.reader.one_by_one(20)), 0.020)

    def test_the_second_read_is_fast(self):
        self.device.model("net jitter=0 ms=20 cache=64")
        places = random.sample(range(0, self.reader.size, BLOCK), 20)
        first, second = ([self.reader.read(place) for place in places] for _ in range(2))
        self.assertGreaterEqual(min(first), 0.020)
        self.assertLess(sorted(second)[10], 0.020)

    def test_it_stands_still_once_in_a_while(self):
        self.device.model("gp3 stall=0.5 stall_every=1")
        stalled = [took for _, took in self.reader.at_once(4, 3.2) if took >= 0.25]
        self.assertGreater(len(stalled), 4, "no more than one stall")

    def test_a_part_fails(self):
        self.device.model("off eio_from=1024 eio_to=1025")
        before = self.device.counts()["failed"]
        for place in [1024 * MIB, 1025 * MIB - BLOCK]:
            with self.assertRaises(OSError) as raised:
                self.reader.read(place)
            self.assertEqual(raised.exception.errno, errno.EIO)
        for place in [1024 * MIB - BLOCK, 1025 * MIB]:
            self.reader.read(place)
        self.assertGreaterEqual(self.device.counts()["failed"] - before, 2)

    def test_all_fails_after_a_time(self):
        self.device.model("off eio_after=0.5")
        time.sleep(0.5)
        with self.assertRaises(OSError):
            self.reader.read(0)

    def test_what_is_no_model_is_refused(self):
        self.device.model("gp3 iops=50")
        with self.assertRaisesRegex(AssertionError, 'no parameter "riops"'):
            self.device.model("gp3 riops=500")
        self.assert_rate(self.reader.at_once(4, 1), 50)

    def test_it_has_an_end(self):
        with mmap.mmap(-1, BLOCK) as buffer, open(os.path.join(self.device.control, "disk"), "rb", 0) as disk:
            self.assertEqual(os.preadv(disk.fileno(), [buffer], self.device.size + BLOCK), 0)
            self.assertEqual(os.preadv(disk.fileno(), [buffer], self.device.size - 512), 512)

    def test_what_comes_is_counted(self):
        before = self.device.counts()
        self.reader.one_by_one(50)
        self.reader.write(0)
        os.fsync(self.reader.file)
        counts = {name: number - before[name] for name, number in self.device.counts().items()}
        self.assertEqual((counts["reads"], counts["read_bytes"]), (50, 50 * BLOCK))
        self.assertEqual((counts["writes"], counts["written_bytes"], counts["flushes"]), (1, BLOCK, 1))


class Probes(OnDevice):
    """A table in a tablespace on the device."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.session = Session()
        cls.addClassCleanup(cls.session.close)
        dense_table(cls.session, "probed", BLOCKS, create_tablespace(cls.session, "made_up", cls.device.mount_point))
        cls.addClassCleanup(cls.session.run, "DROP TABLE probed; DROP TABLESPACE made_up")

    def test_the_device_has_counted_the_reads_of_a_probe(self):
        self.device.model("gp3")
        before = self.device.counts()["reads"]
        row = self.session.row(random_reads("probed", "direct", depth=1, options={"max_bytes": 100 * BLOCK}))
        self.assertEqual((row["blks"], self.device.counts()["reads"] - before), (100, 100), row)
        self.assertGreaterEqual(row["lat_us"], 700 * 0.8)

    def test_a_failing_device_is_an_error(self):
        with self.device.meanwhile("off eio_from=0 eio_to=2048"):
            with self.assertRaisesRegex(Failure, "Input/output error"):
                self.session.run(seqscan("probed", "direct"))

    def test_a_server_is_on_it(self):
        os.chown(self.device.mount_point, *server_ids())
        server = Server("made_up", parent=self.device.mount_point)
        self.addCleanup(server.remove)
        server.start()
        before = self.device.counts()["flushes"]
        with server.session() as session:
            session.run("CREATE EXTENSION pg_io_probe; CREATE TABLE t AS SELECT 1 AS id")
        self.assertGreater(self.device.counts()["flushes"], before)


if __name__ == "__main__":
    main()
