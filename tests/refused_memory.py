#!/usr/bin/env -S python3 -B
"""Each request of a session for memory is refused in turn, alone, or with all that follow: a call works or ends with 53200, the
session goes on, and no process ends. Needs a C compiler.
"""

import mmap
import os
import re
import shutil
import struct
import subprocess
import unittest

import contexts
from lib import LONG, TEST_TMP, Failure, connection, main, read, say, wait_for
from servers import Server

# Of the first requests all are refused in turn, and of later ones, unless in the long mode, one in so many of those before.
FIRST, SHARE = 30, 25
CALLS = [call for signature, call in contexts.CALLS.items()
         if re.match("io_probe_(explain|compare|import|page_cost|random|report_full)", signature)]  # fmt: skip


def setUpModule():
    if not shutil.which("cc"):
        raise unittest.SkipTest("there is no C compiler")


class RefusedMemory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        library, asked = (os.path.join(TEST_TMP, name) for name in ("refuse.so", "asked"))
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, os.path.join(os.path.dirname(__file__), "refuse.c")], check=True)
        with open(asked, "w+b") as file:
            file.truncate(mmap.PAGESIZE)
            cls.asked = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        os.chmod(asked, 0o666)
        cls.server = Server("refused")
        cls.log = os.path.join(cls.server.host, "log")
        cls.addClassCleanup(cls.server.remove)
        cls.server.start(first=lambda: os.environ.update(LD_PRELOAD=library, REFUSE=asked))
        with cls.server.session() as session:
            session.run("""CREATE EXTENSION pg_io_probe; CREATE TABLE probed AS SELECT 1 AS id; CHECKPOINT;
                CREATE TABLE planned (id int PRIMARY KEY);
                CREATE FUNCTION stored() RETURNS bigint LANGUAGE sql RETURN 1;
                CREATE FUNCTION measured() RETURNS jsonb LANGUAGE sql
                BEGIN ATOMIC SELECT io_probe_measure('ping', 'probed', '{"count": 1}'); END;
                CREATE FUNCTION shout() RETURNS int LANGUAGE plpgsql AS $$BEGIN RAISE 'x' USING ERRCODE = 'ZX123',
                    DETAIL = 'd', HINT = 'h'; END$$""")

    def tearDown(self):
        self.assertNotRegex(read(self.log), "terminated by signal|PANIC|memory allocation of|exited with exit code [^1]")

    def refuse(self, pid, left=0, once=False):
        """Lets a process have as many requests; 0 lets all have any number."""
        self.asked[:16] = struct.pack("iil", 0, once, left)
        self.asked[:4] = struct.pack("i", pid)

    def session(self, prepare):
        session = wait_for(lambda: connection(self.server.session), "a session")
        session.run(prepare)
        return session

    def sweep(self, prepare, statement, allowed="53200", fresh=False):
        """Runs the statement, in a session after `prepare`, until it has all memory that it asks for. It may end as `allowed`."""
        for once in [False, True]:
            session, left, is_whole = self.session(prepare), 0, False
            while not is_whole:
                what = f"{statement}, {'one' if once else 'all'} refused after {left}"
                self.refuse(session.pid, left, once)
                half = False
                try:
                    session.run(statement)
                    ended = allowed.split("|")[0]
                except Failure as failure:
                    ended = str(failure.sqlstate)
                    half = "AbortSubTransaction while in START state" in str(failure)
                is_whole = struct.unpack("iil", self.asked[:16])[2] >= 0
                self.refuse(0)
                self.assertRegex(ended, f"^({allowed})$", f"{what}: {read(self.log)[-1000:]}")
                # The server ends a session in which a subtransaction has begun by half, PL/pgSQL's as well as ours.
                if not half:
                    self.assertEqual(session.value("SELECT pg_backend_pid()"), session.pid, what)
                left += 1 if LONG or left < FIRST else left // SHARE
                if fresh or half:
                    session.close()
                    session = self.session(prepare)
            session.close()
            say(f"{left} requests: {statement[:70]}")
            self.assertGreater(left, 1)

    def test_the_first_plan_of_a_session(self):
        """Of one that has the library: a plan reads what is kept of the table's indexes."""
        with self.server.session() as session:
            if session.value("SELECT current_setting('debug_assertions')") == "on":
                self.skipTest("the server's own assertion fails at the end of a session whose statistics had no memory")
        plan = "SELECT FROM planned WHERE id = 1"
        self.sweep(f"{plan}; LOAD 'pg_io_probe'", plan, fresh=True)

    def test_calls(self):
        for call in CALLS:
            with self.subTest(call):
                # The server's regular expressions have a code of their own, and so has a thread without a stack.
                self.sweep("SET pg_io_probe.max_duration = '50 ms'; SELECT FROM io_probe_cache('probed')",
                           f"SELECT FROM {call}", "53200|42704|2201B|58030")  # fmt: skip

    def test_an_error_that_is_caught(self):
        """A subtransaction ends also where there is no memory to copy the ERROR that ended it."""
        explain = "SELECT FROM io_probe_explain('SELECT shout()', true)"
        self.sweep(f"DO $$ BEGIN PERFORM {explain[6:]}; EXCEPTION WHEN OTHERS THEN NULL; END $$", explain, "53200|ZX123")


if __name__ == "__main__":
    main()
