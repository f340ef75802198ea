#!/usr/bin/env -S python3 -B
"""Many calls in one backend: its memory, its descriptors and its threads don't grow. (Many ERRORs are in errors.py.)

CALLS=2000 in the environment makes it longer. In the long mode one backend makes 100,000 calls besides.
"""

import math
import os
import statistics
import time
import unittest

from lib import BLOCK, FUNCTIONS, LONG, PATHS, Process, Session, Watched, call, dense_table, half_of, main
from lib import prepare_examples, say

CALLS = int(os.environ.get("CALLS", "300"))
# In the long mode.
CALLS_OF_ONE_BACKEND = int(os.environ.get("CALLS_OF_ONE_BACKEND", "100000"))
LOOKS = 20
# Calls to see how long one takes.
TIMED = 5
# A leak of 8 bytes in each call, or of a path's name in one of ten, would be more.
BYTES_PER_CALL_OF_MANY = 8
# Before the first look: catalogs and the library's own tables are read in, and malloc finds its size.
WARM_UP = 50
# A leak of a path's name in each call would be more.
BYTES_PER_CALL = 256
SLACK = 256 << 10
# A call may hold two engines, each with its buffers in huge pages; a readahead curve has room for its longest windows.
BUFFERS = 2 * (2 << 20)
BUFFERS_OF_WINDOWS = 64 << 20

BRIEF = {"chunk_kb": 64, "depth": 4, "options": {"max_bytes": 64 * BLOCK}}
FEW = {"depth": 4, "options": {"max_bytes": 64 * BLOCK}}

# The example of each function. Those that write a file are called less often.
EXAMPLES = {function.signature: function.example for function in FUNCTIONS}
WRITING = {function.signature for function in FUNCTIONS if "53100" in function.errors}
# Other ways of some of them.
LIGHT = {
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
    "recommend": call("recommend", "probed", settings=["random_page_cost"], cold=True, duration="5 ms"),
    "ping": call("ping", "probed", count=10, every="0"),
    "ping, os": call("ping", "probed", count=10, every="0", path="os"),
    "measure": call("measure", "probed", probe="seqscan", args=BRIEF),
    "record": call("record", "probed", probe="seqscan", args=BRIEF),
    "report": call("report", "probed", duration="5 ms"),
    "prune": call("prune", keep="10 s", force=True),
}
# Those that write a file, or wait for the device; they are called less often.
HEAVY = {
    "recommend, of the device and the WAL": call("recommend", "probed", cold=True, writes=True, duration="5 ms",
                                                 settings=["read_ahead_kb", "wal_sync_method"]),
    "ping, writing": call("ping", "probed", count=2, every="0", mode="write"),
    "ping, both": call("ping", "probed", count=4, every="0", mode="pingpong"),
    "sync, a segment": call("sync", sections=["wal_segment"], duration="100 us"),
    "sync, together": call("sync", sections=["wal_segment"], depth=4, duration="100 us"),
    "sync, tablespace": call("sync", spcname="pg_default", sections=["one_write"], duration="100 us"),
}  # fmt: skip
VARIANTS = {**LIGHT, **HEAVY}
CASES = {**EXAMPLES, **VARIANTS}


def prepare(session):
    """What the cases are about: a table with an index, and a run, which stays."""
    dense_table(session, "probed", 128)
    session.run("CREATE INDEX probed_id ON probed (id)")
    prepare_examples(session)
    session.run("UPDATE io_probe_runs SET started_at = started_at + interval '1 year'")


class Growth(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with Session() as session:
            prepare(session)

    def test_many_statements(self):
        for name, function in half_of(CASES.items()):
            with self.subTest(name), self.session(name) as session:
                self.assert_steady(session, name, lambda times: session.run(f"SELECT {function};\n" * times))

    def test_many_calls_in_one_statement(self):
        """The memory of such a statement is bounded while it runs."""
        for name, function in half_of(CASES.items()):
            with self.subTest(name), self.session(name) as session:
                query = f"SELECT count(*) FROM (SELECT {function} FROM generate_series(1, %d)) AS calls"
                session.run(query % 5)
                with Watched(session) as most:
                    session.run(query % (self.share(name, CALLS) // 3))
                say(f"{name}: {most}")
                buffers = BUFFERS_OF_WINDOWS if "readahead" in name else BUFFERS
                self.assertLess(most.memory, buffers + (1 << 20))

    @unittest.skipUnless(LONG, "takes a quarter of an hour: make check-all")
    def test_a_hundred_thousand_calls(self):
        """All cases in turn in one backend: what it holds does not grow from one look to the next."""
        with self.session("all") as session:
            process = Process(session.pid)
            turns = self.turns(session)
            looks, of_case = [], dict.fromkeys(turns, 0)
            calls = 0
            for turn in range(LOOKS + 1):
                for name, times in turns.items():
                    before = process.memory()
                    self.call_many(session, name, times)
                    of_case[name] += (process.memory() - before) if turn else 0
                    calls += times
                looks.append((calls, process.memory(), self.contexts(session), process.threads(), process.descriptors()))
                say(f"{calls} calls: {looks[-1][1] >> 10} kB, {looks[-1][2] >> 10} kB of it in memory contexts, "
                    f"{len(looks[-1][3])} threads, {len(looks[-1][4])} descriptors")  # fmt: skip
        counts, memory, contexts, threads, descriptors = zip(*looks[1:])
        slopes = [statistics.linear_regression(counts, figures).slope for figures in (memory, contexts)]
        say("bytes more a call: {:.2f}, of which in memory contexts {:.2f}".format(*slopes))
        for name, grown in sorted(of_case.items(), key=lambda case: -case[1])[:8]:
            say(f"{name}: {grown / (turns[name] * LOOKS):.1f} bytes more a call, of {turns[name] * LOOKS} calls")
        self.assertEqual((set(map(tuple, threads)), set(map(tuple, descriptors))), ({tuple(threads[0])}, {tuple(descriptors[0])}))
        for name, grown in of_case.items():
            with self.subTest(name):
                self.assertLess(grown, SLACK + turns[name] * LOOKS * BYTES_PER_CALL)
        for slope in slopes:
            self.assertLess(slope * counts[-1], SLACK + counts[-1] * BYTES_PER_CALL_OF_MANY)

    def turns(self, session):
        """How often to call each case between two looks: a faster case is called more often."""
        seconds = {}
        for name in CASES:
            self.call_many(session, name, self.share(name, WARM_UP))
            started = time.monotonic()
            self.call_many(session, name, TIMED)
            seconds[name] = (time.monotonic() - started) / TIMED
        shares = {name: min(max(1 / took, 10), 200) for name, took in seconds.items()}
        total = sum(shares.values())
        turns = {name: math.ceil(share / total * CALLS_OF_ONE_BACKEND / LOOKS) for name, share in shares.items()}
        for name, times in turns.items():
            say(f"{name}: {seconds[name] * 1000:.1f} ms, {times * LOOKS} times")
        return turns

    def call_many(self, session, name, times):
        session.run(f"SET pg_io_probe.engine = {self.engine(name)}")
        for _ in range(0, times, 50):
            session.start(f"SELECT {CASES[name]};\n" * min(times, 50))
            session.finish(timeout=300)

    def contexts(self, session):
        """Bytes of its memory contexts."""
        return int(session.value("SELECT sum(total_bytes) FROM pg_backend_memory_contexts"))

    def share(self, name, calls):
        return calls // 10 if name in HEAVY or name in WRITING else calls

    def engine(self, name):
        return "threads" if "threads" in name else "auto"

    def session(self, name):
        session = Session()
        # Without the runs of other cases.
        session.run(f"SET pg_io_probe.engine = {self.engine(name)}; SELECT io_probe_prune('0', force => true)")
        return session

    def assert_steady(self, session, name, repeat):
        """The process holds after many calls what it held before."""
        process = Process(session.pid)
        repeat(self.share(name, WARM_UP))
        before = process.threads(), process.descriptors()
        calls = self.share(name, CALLS)
        # A leak grows each time; malloc may take more once, or threads a stack.
        for _ in range(3):
            memory = process.memory()
            repeat(calls)
            grown = process.memory() - memory
            say(f"{name}: {grown // 1024} kB after {calls} calls")
            self.assertEqual((process.threads(), process.descriptors()), before)
            if grown < SLACK + calls * BYTES_PER_CALL:
                return
        self.fail(f"{name}: it grew by {grown} bytes in {calls} calls, and not for the first time")


if __name__ == "__main__":
    main()
