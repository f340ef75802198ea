#!/usr/bin/env -S python3 -B
"""What a server may be refused: io_uring and cachestat, descriptors, threads, /sys and /proc.

Needs root, for mount namespaces and for the limits of other processes.
"""

import ctypes
import errno
import itertools
import os
import platform
import struct
import unittest

from lib import LONG, PATHS, VERSION, Session, dense_table, main, needs_root, progress, rows_of, say, wait_for
from probes import WRITING, Holdings, Outcomes, probes, some
from servers import Limited, Server

BLOCKS = 512
TIMES = 4
# Numbers of descriptors that a process may open beyond those that it has.
FURTHER = [*range(16), 24] if LONG else [0, 1, 3]
GOOD = "(ok|partial|unsupported|void|rows)( and (ok|partial|unsupported|void))*"
LIBC = ctypes.CDLL(None, use_errno=True)
SYSTEM_CALLS = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "cachestat": 451}
setUpModule = needs_root


class Refusals(unittest.TestCase):
    def prepare(self, session, control):
        session.run("SET pg_io_probe.scratch_reserve = 0")
        dense_table(session, "probed", BLOCKS)
        self.outcomes = Outcomes()
        self.addCleanup(self.outcomes.tell)
        self.session, self.control = session, control

    def server(self, name, first):
        """A session on a new server, from which `first` has taken something."""
        server = Server(name)
        self.addCleanup(server.remove)
        # The server's own rings are not what this is about.
        server.start(first)
        session, control = server.session(), server.session()
        self.addCleanup(control.close)
        self.addCleanup(session.close)
        session.run("CREATE EXTENSION pg_io_probe")
        self.prepare(session, control)
        return session


class Refused(Refusals):
    """A filter refuses system calls, as the default ones of containers do."""

    @unittest.skipUnless(platform.machine() == "x86_64", "the numbers of system calls are those of x86_64")
    def test_io_uring_and_cachestat(self):
        for number, words in one_kind([
            (errno.EPERM, "not permitted"),
            (errno.ENOSYS, "this kernel has no io_uring"),
            (errno.ENOMEM, "RLIMIT_MEMLOCK"),
            (errno.EMFILE, "Too many open files"),
        ]):
            name = errno.errorcode[number]
            with self.subTest(name):
                refused = list(SYSTEM_CALLS.values())
                session = self.server(f"refused{number}", lambda: refuse(refused, number))
                before = Holdings(session, self.control).before["descriptors"]
                known = probes(session)
                self.assertEqual([probe.name for probe in known if probe.engine == "io_uring"], [])
                for probe in known:
                    session.run(probe.once)
                holdings = Holdings(session, self.control)
                self.assertEqual([name for name in before if "io_uring" in name], [])
                for probe in some(known, TIMES):
                    with self.subTest(name, probe=probe.name):
                        ended, rows = self.outcomes.of(f"io_uring: {name}", session, probe)
                        self.assertRegex(ended, f"^{GOOD}$", rows)
                        self.assertEqual(holdings.left(), {})
                session.run("SET pg_io_probe.engine = auto")
                for row in session.rows(rows_of("random", "probed", paths=["direct"], depth=8)):
                    self.assertEqual((row["status"], row["engine"]), ("ok", "threads"))
                    self.assertIn(words, " ".join(row["notes"]))
                for probe in known:
                    if probe.engine == "threads":
                        session.run("SET pg_io_probe.engine = io_uring")
                        query = f"SELECT row_to_json(r) FROM ({probe.query}) AS r"
                        session.start(query)
                        ended, told = self.outcomes.note("io_uring as asked for", session, probe)
                        self.assertRegex(ended, "^(0A000|unsupported|ok and unsupported|58030)$", told)
                        self.assertEqual(holdings.left(), {})


class Limits(Refusals):
    """Limits of the process, lowered while it is there."""

    def setUp(self):
        session, control = Session(), Session()
        self.addCleanup(control.close)
        self.addCleanup(session.close)
        self.prepare(session, control)
        self.addCleanup(control.run, "DROP TABLE probed")
        self.addCleanup(session.close)
        self.probes = probes(session)
        for probe in self.probes:
            session.run(probe.once)
        self.holdings = Holdings(session, control)

    def test_descriptors(self):
        """Descriptors run out at each opening: the call fails or does without, and the next call finds all well."""
        for probe in some(self.probes, 1, ["ping, write", "seqscan, direct, threads", "random, server at 16"]):
            for further in FURTHER:
                with self.subTest(probe.name, further=further):
                    with self.limited("nofile", self.number(further)):
                        ended, told = self.outcomes.of("out of descriptors", self.session, probe)
                    self.assert_is_told(probe, ended, told)
                    self.assertNotIn("can't be opened", str(told))
                    self.assertEqual(self.holdings.left(), {})
            self.session.run(probe.once)

    def test_descriptors_while_it_runs(self):
        for probe in some(self.probes, TIMES):
            with self.subTest(probe.name):
                probe.start(self.session, most=20)
                # Some probes are over soon.
                is_there = lambda: progress(self.control, self.session.pid) or not self.session.busy()
                wait_for(is_there, "the probe")
                with self.limited("nofile", self.number(0)):
                    ended, told = self.outcomes.note("out of descriptors meanwhile", self.session, probe)
                self.assert_is_told(probe, ended, told)
                self.assertEqual(self.holdings.left(), {})
                self.session.run(probe.once)

    @unittest.skipIf(VERSION < 18, "io_workers come with 18")
    def test_descriptors_for_workers(self):
        """Each emulated I/O worker opens the relation: those that can't be tried are named, and the others judged."""
        setting = "io_workers" if VERSION == 18 else "io_max_workers"
        dense_table(self.session, "larger", 4 * BLOCKS)
        self.addCleanup(self.control.run, "DROP TABLE larger")
        query = rows_of("recommend_full", "larger", settings=[setting], cold=True, duration="2 s", options={"max_bytes": "1GB"})
        self.session.rows(query)
        with self.limited("nofile", self.number(12)):
            (row,) = self.session.rows(query)
        self.assertEqual(self.holdings.left(), {})
        self.assertIn("ways", row["evidence"], row["why"])
        refused = {way["workers"]: way["refused"] for way in row["evidence"]["ways"]}
        self.assertRegex(refused.pop(32), "Too many open files")
        self.assertIsNone(refused[2], refused)

    def assert_is_told(self, probe, ended, told):
        """Our own errors are 58030, or 0A000 if it was io_uring as asked for; the server's are 53000."""
        refused = "|0A000" if probe.engine == "io_uring" else ""
        self.assertRegex(ended, f"^({GOOD}|no rows|58030|53000|recorded (58030|53000)( and rows)?{refused})$", told)
        if ended in ["58030", "0A000"]:
            self.assertIn("Too many open files", str(told))

    def test_threads(self):
        """The user may start no more threads. That is an error for a probe that must start one, and no other probe hangs."""
        for probe in some(self.probes, TIMES, ["sync, wal at 8", "random, os, threads"]):
            with self.subTest(probe.name):
                with self.limited("nproc", 0):
                    ended, told = self.outcomes.of("out of threads", self.session, probe)
                starts = probe.engine == "threads" or probe.name == "sync, wal at 8"
                self.assertRegex(ended, "^58030$" if starts else f"^({GOOD}|58030)$", told)
                if ended == "58030":
                    self.assertIn("could not start a thread", str(told))
                self.assertEqual(self.holdings.left(), {})
                self.session.run(probe.once)

    def number(self, further):
        """The limit with which the process gets `further` more descriptors. It bounds numbers, and lower ones may be free."""
        taken = {int(number) for number in os.listdir(f"/proc/{self.session.pid}/fd")}
        free = (number for number in itertools.count() if number not in taken)
        return next(itertools.islice(free, further, None))

    def limited(self, limit, most):
        return Limited(self.session.pid, limit, most)


class Hidden(Refusals):
    """/sys and /proc, as containers hide them: times are measured all the same."""

    def test_each(self):
        for name, hidden in one_kind([
            ("sys", lambda: hide("/sys")),
            ("proc", lambda: hide("/proc")),
            ("both", lambda: hide("/sys", "/proc")),
            ("unreadable", lambda: hide("/sys", "/proc", mode="0")),
            ("others", lambda: hide("/sys", kind="proc")),
        ]):
            with self.subTest(name):
                self.check(name, hidden)

    def check(self, name, hidden):
        session = self.server(f"hidden_{name}", hidden)
        known = probes(session)
        for probe in known:
            self.outcomes.of("for the first time", session, probe)
        self.outcomes.seen.clear()
        holdings = Holdings(session, self.control)
        what = {"sys": "/sys hidden", "proc": "/proc hidden", "both": "/sys and /proc hidden",
                "unreadable": "/sys and /proc unreadable", "others": "/sys is something else"}[name]  # fmt: skip
        unsupported = {"iostat"} if name != "proc" else set()
        # These open their scratch file again through /proc.
        if name in ["proc", "both", "unreadable"]:
            unsupported |= {"mix", "ping", "sync", "write"}
        for probe in some(known, TIMES, WRITING):
            with self.subTest(name, probe=probe.name):
                ended, rows = self.outcomes.of(what, session, probe)
                self.assertRegex(ended, f"^{GOOD}$", rows)
                if "unsupported" in ended:
                    self.assertIn(probe.probe, unsupported, rows)
                self.assertEqual(holdings.left(), {})
        # A scan and fetches are timed whatever is hidden, and what can't be known is not made up.
        for probe in ["seqscan", "random"]:
            rows = session.rows(rows_of(probe, "probed", paths=PATHS, duration="300 ms"))
            self.assertEqual([row["status"] for row in rows], ["ok"] * 3, rows)
            for row in rows:
                self.assertGreater(row["mib_s"], 0)
                if name != "proc":
                    self.assertEqual((row["scheduler"], row["read_ahead_kb"]), (None, None))
        for function in ["io_probe_device_full()", "io_probe_check()", "io_probe_cache('probed')"]:
            say(f"{what}: {function} has {len(session.rows(f'SELECT * FROM {function}'))} rows")


def one_kind(kinds):
    """All kinds of a fault in the long mode, else one of them, another one on each version: each needs a server of its own."""
    return kinds if LONG else [kinds[VERSION % len(kinds)]]


def hide(*places, kind="tmpfs", mode="755"):
    """Gives this process mounts of its own, and puts something else in these places."""
    assert LIBC.unshare(0x00020000) == 0, os.strerror(ctypes.get_errno())  # CLONE_NEWNS
    assert LIBC.mount(None, b"/", None, 0x4000 | 0x40000, None) == 0  # MS_REC | MS_PRIVATE
    options = f"mode={mode}".encode() if kind == "tmpfs" else None
    for place in places:
        mounted = LIBC.mount(kind.encode(), place.encode(), kind.encode(), 0, options)
        assert mounted == 0, os.strerror(ctypes.get_errno())


def refuse(calls, number):
    """Has the kernel refuse system calls of this process, and of all that it starts, with an errno. See seccomp(2)."""
    load, jump, end = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS; BPF_JMP | BPF_JEQ | BPF_K; BPF_RET | BPF_K
    program = [(load, 0, 0, 0)]
    program += [(jump, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    program += [(end, 0, 0, 0x7FFF0000), (end, 0, 0, 0x00050000 | number)]  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    assert LIBC.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert LIBC.prctl(22, 2, filters, 0, 0) == 0, os.strerror(ctypes.get_errno())  # PR_SET_SECCOMP, mode filter


if __name__ == "__main__":
    main()
