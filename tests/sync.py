#!/usr/bin/env -S python3 -B
"""Syncs as seen from outside: system calls, storage that fails, a kill, copies of the server. (More kills are in crashes.py.)

Needs root, for a loop device and to kill; and strace, to see system calls and to have them fail.
"""

import collections
import contextlib
import dataclasses
import glob
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest
import zlib

from ddl import Standby
from lib import PGDATA, SYNC_SECTIONS, TEST_TMP, VERSION, Failure, Process, Session, as_server, chance, connection
from lib import dense_table, main, needs_root, progress, read, repeated, rows_of, say, server_ids, server_with
from lib import wait_for, wait_for_probe, wait_until_gone
from servers import Server
from storage import LoopDevice, create_tablespace, filled_but_for

KIB = 1024
MIB = 1 << 20
WAL_BLOCK = 8 * KIB
WAL_SEGMENT = 16 * MIB
# The scratch file of the sections other than wal_segment.
SMALL = MIB
# Milliseconds of a row, which are enough for some turns even under strace.
BRIEF = 20
LONG = 3000
# Names that a server keeps in pg_wal.
WAL_NAMES = re.compile(r"^([0-9A-F]{24}(\.partial)?|[0-9A-F]{8}\.history|archive_status|summaries)$")

METHODS = ["open_datasync", "fdatasync", "fsync", "open_sync"]
# The number of rows of each section.
ROWS = {"one_write": 6, "two_writes": 6, "open_sync_size": 5, "other_fd": 2, "no_sync": 1, "wal_segment": 16}
SYNCHRONOUS = {"open_datasync": "O_DSYNC", "open_sync": "O_SYNC"}
needs_strace = unittest.skipUnless(shutil.which("strace"), "no strace")
setUpModule = needs_root


def sync(*sections, each_ms=BRIEF, **arguments):
    """A query for the rows of some sections, of `each_ms` each."""
    rows = sum(ROWS[section] for section in sections)
    return rows_of("sync", sections=list(sections), duration=f"{each_ms * rows} ms", **arguments)


def foreign_files(directory):
    """Names in a pg_wal that do not belong to the WAL."""
    return [name for name in os.listdir(os.path.join(directory, "pg_wal")) if not WAL_NAMES.match(name)]


class Sync(unittest.TestCase):
    """A session, and what holds after every call."""

    def setUp(self):
        self.session = Session()
        self.addCleanup(lambda: self.session.close())

    @contextlib.contextmanager
    def restarted_with(self, **settings):
        """Meanwhile the server runs with these settings, and there is another session."""
        self.session.close()
        try:
            with server_with(**settings):
                self.session = Session()
                try:
                    yield
                finally:
                    self.session.close()
        finally:
            self.session = Session()

    def held(self):
        process = Process(self.session.pid)
        return process.threads(), process.descriptors()

    def assert_as_before(self, held):
        self.assertEqual(self.held(), held)
        with Session() as control:
            self.assertEqual(control.rows("SELECT * FROM pg_locks WHERE locktype = 'advisory'"), [])
            self.assertEqual(control.rows("SELECT * FROM io_probe_progress()"), [])
        # The server itself may just be making a segment.
        wait_for(lambda: not foreign_files(PGDATA), "nothing but WAL in pg_wal")

    def assert_fails(self, query, sqlstate, *words):
        """The query fails by this SQLSTATE and with these words, and leaves nothing behind."""
        held = self.held()
        self.session.start_rows(query)
        self.assert_has_failed(held, sqlstate, *words)

    def assert_has_failed(self, held, sqlstate, *words):
        failure = self.failure()
        self.assert_is(failure, sqlstate, *words)
        self.assert_as_before(held)

    def failure(self):
        """The failure of the query that was sent; None if it gave rows."""
        try:
            self.session.finish_rows()
        except Failure as failure:
            return failure
        return None

    def assert_is(self, failure, sqlstate, *words):
        self.assertIsNotNone(failure, "no error")
        self.assertEqual(failure.sqlstate, sqlstate, failure)
        for word in words:
            self.assertRegex(str(failure), word)

    def assert_all_ok(self, rows):
        for row in rows:
            self.assertEqual(row["status"], "ok", row)

    def scratch_files(self):
        """Links to the scratch files that the session has open."""
        return scratch_links(self.session.pid)


def scratch_links(pid):
    found = []
    for link in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(FileNotFoundError):
            if re.search(r"/#\d+ \(deleted\)$", os.readlink(link)):
                found.append(link)
    return found


# --- system calls --------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Call:
    """A system call as strace prints it."""

    name: str
    arguments: str
    result: str = "?"

    @property
    def descriptor(self):
        found = re.match(r"(\d+)<", self.arguments)
        return found and int(found.group(1))

    @property
    def path(self):
        """The path of the file that it is about."""
        found = re.match(r'(?:\d+<(.*?)>|[^"]*"(.*?)")', self.arguments)
        return found and (found.group(1) or found.group(2))

    @property
    def opened(self):
        """The descriptor that it gave, and of which file."""
        found = re.match(r"(\d+)<(.*)>", self.result)
        return found and (int(found.group(1)), found.group(2))

    @property
    def flags(self):
        """The flags of openat that say how to write."""
        given = set(re.search(r'", ([A-Z_|]+)', self.arguments).group(1).split("|"))
        return frozenset(given & {"O_DSYNC", "O_SYNC", "O_DIRECT"})

    @property
    def size_and_offset(self):
        """The size and offset of a write."""
        return tuple(int(n) for n in re.search(r", (\d+), (\d+)$", self.arguments).groups())

    @property
    def is_on_scratch(self):
        """Does it make a scratch file, or do something with one?"""
        files = [self.path] + [self.opened[1] if self.opened else None]
        named = any(file and re.search(r"/(#\d+|xlogtemp\.\d+)$", file) for file in files)
        return named or "O_TMPFILE" in self.arguments or self.asks_for_descriptor

    @property
    def asks_for_descriptor(self):
        """Does it open a scratch file once more, through the directory of all descriptors?"""
        return self.name == "openat" and re.match(r'\d+</proc/\d+/fd>, "', self.arguments) is not None

    @property
    def gives_descriptor(self):
        return self.asks_for_descriptor and self.opened is not None

    @property
    def injected(self):
        return "INJECTED" in self.result


class Trace:
    """What a server process and its threads do with files meanwhile. Options of strace can have calls fail."""

    CALLS = """?open openat ?creat close write writev pwrite64 pwritev pwritev2 fsync fdatasync sync_file_range sync
    syncfs fallocate ftruncate ?rename ?renameat renameat2 ?link linkat ?unlink unlinkat"""
    numbers = itertools.count()

    def __init__(self, pid, *options, calls=CALLS):
        self.pid = pid
        self.file = os.path.join(TEST_TMP, f"strace.{next(Trace.numbers)}")
        # strace says on its own stderr to which processes it is attached.
        self.said = f"{self.file}.said"
        self.command = ["strace", "-f", "--quiet=exit", "-y", "-s", "0", "-e", f"trace={','.join(calls.split())}"]
        self.command += [*options, "-o", self.file, "-p", str(pid)]

    def __enter__(self):
        with open(self.said, "w", encoding="utf-8") as said:
            self.strace = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stderr=said)
        try:
            wait_for(self.is_attached, "strace")
        except Exception:
            self.__exit__()
            raise
        return self

    def is_attached(self):
        has_ended = self.strace.poll() is not None
        said = read(self.said)
        if has_ended:
            assert "Operation not permitted" in said, said
            raise unittest.SkipTest(f"strace may not be used here: {said}")
        # Before that, the kernel may name strace as the tracer of a process that it has not stopped yet, which goes on unseen.
        if f"Process {self.pid} attached" not in said:
            return False
        # The kernel's own threads, such as those of io_uring, can't be traced.
        tasks = glob.glob(f"/proc/{self.pid}/task/*/status")
        traced = [re.search(r"^TracerPid:\s+[1-9]", text, re.MULTILINE) for text in map(read, tasks) if is_ours(text)]
        return traced and all(traced)

    def __exit__(self, *_):
        """Has strace let the process go. It has ended by itself if the process has."""
        self.strace.send_signal(signal.SIGINT)
        self.strace.wait()
        self.calls = list(parsed(read(self.file)))
        for file in [self.file, self.said]:
            with contextlib.suppress(FileNotFoundError):
                os.remove(file)

    def of_scratch(self):
        return [call for call in self.calls if call.is_on_scratch]

    def fill(self):
        """Calls on scratch files before the first that belongs to a row."""
        return list(itertools.takewhile(lambda call: not call.asks_for_descriptor, self.of_scratch()))


def is_ours(status):
    """Is it a thread of the server, or of a probe, by its status?"""
    return not re.match(r"Name:\s+iou-", status)


def parsed(text):
    """The calls, in the order in which they began."""
    calls, unfinished = [], {}
    for line in text.splitlines():
        thread, _, line = line.partition(" ")
        if found := re.match(r" *<\.\.\. (\w+) resumed>(.*)$", line):
            call, start = unfinished.pop(thread)
            line = start + found.group(2)
        elif found := re.match(r" *(.*) <unfinished \.\.\.>$", line):
            call = Call(*found.group(1).partition("(")[::2])
            unfinished[thread] = call, found.group(1)
            calls.append(call)
            continue
        else:
            call = None
        if found := re.match(r" *(\w+)\((.*)\) += (.*)$", line):
            if call is None:
                call = Call("", "")
                calls.append(call)
            call.name, call.arguments, call.result = found.groups()
    return calls


@dataclasses.dataclass
class Turn:
    """What was done through one descriptor of a row: the operations, and a sync after the last where they have none."""

    flags: frozenset
    operations: list = dataclasses.field(default_factory=list)
    settled: str = None

    def kind(self):
        """The flags, the sizes of the writes and the sync, which are the same in each operation of a turn."""
        (kind,) = {(self.flags, tuple(size for size, _ in writes), sync) for writes, sync in self.operations}
        return kind

    def places(self):
        return [place for writes, _ in self.operations for _, place in writes]


def turns_of(calls, op_bytes, syncs=True):
    """The turns. A write through a synchronous descriptor ends an operation if that has `op_bytes` bytes. Without `syncs`,
    each write is an operation."""
    turns, current, pending = [], {}, []
    for call in calls:
        if call.gives_descriptor:
            current = {call.opened[0]: Turn(call.flags)}
            turns += current.values()
        elif call.is_on_scratch and call.descriptor in current:
            turn = current[call.descriptor]
            if call.name == "pwrite64":
                pending.append(call.size_and_offset)
                synchronous = turn.flags & {"O_DSYNC", "O_SYNC"} and sum(size for size, _ in pending) >= op_bytes
                if synchronous or not syncs:
                    turn.operations.append((tuple(pending), None))
                    pending = []
            elif call.name == "close":
                assert not pending, f"never synced: {pending}"
                current = {}
            elif pending or syncs:
                turn.operations.append((tuple(pending), call.name))
                pending = []
            else:
                assert turn.settled is None, call
                turn.settled = call.name
    return turns


def expected_operation(row):
    """The flags, the sizes of the writes and the sync that a row stands for."""
    flags = {SYNCHRONOUS.get(row["method"]), "O_DIRECT" if row["direct"] else None} - {None}
    call = row["method"] if row["method"] in ["fsync", "fdatasync"] else None
    return frozenset(flags), (row["write_kb"] * KIB,) * row["writes"], call


def six(section, writes):
    """The rows of one_write and two_writes, with what pg_test_fsync calls them."""
    methods = [("open_datasync", True), ("open_datasync", False), ("fdatasync", False), ("fsync", False),
               ("open_sync", True), ("open_sync", False)]
    return [(section, method, direct, writes, 8) for method, direct in methods]


def expected_rows(direct):
    """The rows of a default call. `direct` says by method: does the server write its WAL with O_DIRECT?"""
    return [
        *six("one_write", 1), *six("two_writes", 2),
        *[("open_sync_size", "open_sync", True, 16 // kb, kb) for kb in [16, 8, 4, 2, 1]],
        ("other_fd", "write, fsync, close", False, 1, 8), ("other_fd", "write, close, fsync", False, 1, 8),
        ("no_sync", "write", False, 1, 8),
        *[("wal_segment", method, direct[method], 1, 8 * blocks) for blocks in [1, 2, 8, 32] for method in METHODS],
    ]


def identity(row):
    return tuple(row[name] for name in ["section", "method", "direct", "writes", "write_kb"])


@needs_strace
class SystemCalls(Sync):
    """Each row does what it says, and a row with in_use does what the server does."""

    def test_wal_for_a_replica(self):
        self.assertEqual(self.session.value("SELECT current_setting('wal_level')"), "replica")
        self.check_all(dict.fromkeys(METHODS, False))

    def test_minimal_wal(self):
        """No process reads minimal WAL back, so 15 has it pass the page cache where a write is synchronous."""
        with self.restarted_with(wal_level="minimal", max_wal_senders="0"):
            self.check_all({method: VERSION == 15 and method in SYNCHRONOUS for method in METHODS})

    @unittest.skipIf(VERSION < 16, "no debug_io_direct")
    def test_direct_wal(self):
        with self.restarted_with(debug_io_direct="wal"):
            self.check_all(dict.fromkeys(METHODS, True))

    def check_all(self, direct):
        """`direct` says by method: does the server write its WAL with O_DIRECT?"""
        self.session.run("CREATE TABLE IF NOT EXISTS written (id int)")
        rows = self.session.rows(rows_of("sync", sections=["all"], duration="80 ms"))
        self.assertEqual([identity({**row, "direct": bool(row["direct"])}) for row in rows], expected_rows(direct))
        self.assert_all_ok(rows)
        for section in SYNC_SECTIONS:
            with self.subTest(section):
                self.check_calls(section)
        try:
            for method in METHODS:
                with self.subTest(wal_sync_method=method):
                    self.check_method(method, direct[method])
        finally:
            self.change("wal_sync_method", None)

    def check_method(self, method, direct):
        self.change("wal_sync_method", method)
        rows = self.session.rows(rows_of("sync", sections=["all"], duration="80 ms"))
        self.assert_current(rows, method, direct)
        # The row of one WAL block is the server's own commit.
        (row,) = [row for row in rows if row["in_use"] and row["section"] == "wal_segment"
                  and row["write_kb"] * KIB == WAL_BLOCK]
        flags, _, call = expected_operation(row)
        self.assertEqual(self.commit_of_the_server(), (flags, call))

    def test_direct_as_asked_for(self):
        """The option takes the place of what the server does, and in_use compares with the server."""
        for direct in [True, False]:
            with self.subTest(direct=direct):
                self.check_calls("wal_segment", options={"direct": direct})
                rows = self.session.rows(sync("wal_segment", options={"direct": direct}))
                self.assertEqual({row["direct"] for row in rows}, {direct})
                current = {row["method"] for row in rows if row["in_use"]}
                self.assertEqual(current, set() if direct else {"fdatasync"})

    def test_size_as_asked_for(self):
        for section, size in [("one_write", 4), ("two_writes", 64), ("no_sync", 1), ("one_write", 1024)]:
            with self.subTest(section, size=size):
                rows = self.check_calls(section, write_kb=size)
                self.assertEqual({row["write_kb"] for row in rows}, {size})

    def test_rounds(self):
        """The rows come again and again, so that a disk that drifts drifts under all of them."""
        for section in ["one_write", "wal_segment"]:
            with self.subTest(section):
                self.check_calls(section, each_ms=500, rounds=None)

    def test_a_file_smaller_than_a_segment(self):
        """The setting bounds the file, and a note says so."""
        self.session.run("SET pg_io_probe.scratch_limit = '1MB'")
        rows = self.check_calls("wal_segment", size=MIB)
        for row in rows:
            self.assertRegex(" ".join(row["notes"]), r"1024 kB.*not 16384.*scratch_limit")

    def test_a_fill_is_written_back_as_it_goes(self):
        """It is written back every 8 MiB; under a limit, every MiB."""
        for options, step in [({}, 8 * MIB), ({"max_mib_s": 100}, MIB)]:
            with self.subTest(options), Trace(self.session.pid) as trace:
                self.assert_all_ok(self.session.rows(sync("wal_segment", options=options)))
            sizes = [0]
            for call in trace.fill():
                if call.name == "pwrite64":
                    sizes[-1] += call.size_and_offset[0]
                elif call.name == "sync_file_range":
                    sizes.append(0)
            self.assertEqual(sizes, [step] * (WAL_SEGMENT // step) + [0])

    def check_calls(self, section, size=None, rounds=1, **arguments):
        """Checks the calls of a section, one by one, and returns its rows."""
        with Trace(self.session.pid) as trace:
            rows = self.session.rows(sync(section, **arguments))
        self.assert_all_ok(rows)
        size = size or (WAL_SEGMENT if section == "wal_segment" else SMALL)
        self.assert_filled(trace, size)
        if section == "other_fd":
            self.assert_reopened(trace, rows)
        else:
            self.assert_operations(trace, rows, section, size, rounds)
        return rows

    def assert_filled(self, trace, size):
        """Files are made in one go, written from the first byte to the last, and synced, and stay as they are."""
        fill = trace.fill()
        makers = {call.opened[0]: call for call in fill if call.name == "openat"}
        self.assertGreater(len(makers), 0)
        for descriptor, call in makers.items():
            self.assertIn("O_TMPFILE", call.arguments)
            self.assertEqual(call.path, os.path.join(os.path.realpath(PGDATA), "pg_wal"))
            done = [call for call in fill if call.descriptor == descriptor]
            lengths, places = zip(*(call.size_and_offset for call in done if call.name == "pwrite64"))
            self.assertEqual([*places, size], [0, *itertools.accumulate(lengths)])
            self.assertEqual(done[-1].name, "fsync")
        later = {call.name for call in trace.of_scratch()[len(fill) :] if call.descriptor in makers}
        self.assertLessEqual(later, {"close"})

    def assert_operations(self, trace, rows, section, size, rounds):
        """The calls do what the rows say, row by row, and nothing else, in so many rounds; None: in two or more, for which a busy
        machine has room."""
        rows = [row for row in rows if row["status"] == "ok"]
        by_kind = {expected_operation(row): row for row in rows}
        self.assertEqual(len(by_kind), len(rows))
        one = rows[0]
        op_bytes = one["writes"] * one["write_kb"] * KIB if section != "wal_segment" else 1
        turns = turns_of(trace.calls, op_bytes, syncs=section != "no_sync")
        # Round after round, there and back, each row in its turn.
        kinds = list(by_kind)
        if rounds is None:
            rounds = len(turns) // len(kinds)
            self.assertGreaterEqual(rounds, 2)
        order = itertools.chain(*(kinds if number % 2 == 0 else reversed(kinds) for number in range(rounds)))
        self.assertEqual([turn.kind() for turn in turns], list(order))
        for kind, row in by_kind.items():
            own = [turn for turn in turns if turn.kind() == kind]
            # The first operation of a turn is warm-up.
            self.assertEqual(row["ops"], sum(len(turn.operations) for turn in own) - rounds, kind)
            self.assertGreaterEqual(row["ops"], rounds)
            # Where the descriptor is synchronous, each write is a flush.
            each = 0 if section == "no_sync" else row["writes"] if row["method"] in SYNCHRONOUS else 1
            self.assertEqual(row["flushes"], row["ops"] * each)
            self.assertEqual({turn.settled for turn in own}, {"fsync" if section == "no_sync" else None})
            places = [place for turn in own for place in turn.places()]
            step = row["write_kb"] * KIB
            if section == "wal_segment":
                expected = [number * step % size for number in range(len(places))]
            else:
                expected = [number * step for number in range(row["writes"])] * (len(places) // row["writes"])
            self.assertEqual(places, expected, kind)

    def assert_reopened(self, trace, rows):
        """The file is opened twice in each operation, which is synced through the first or the second descriptor."""
        letters = {"openat": "o", "pwrite64": "w", "fsync": "s", "close": "c"}
        calls = trace.of_scratch()[len(trace.fill()) :]
        # The last close lets the file go.
        text = "".join(letters.get(call.name, f"<{call.name}>") for call in calls)[:-1]
        self.assertRegex(text, r"^((owscoc)|(owcosc))+$")
        found = [match.group() for match in re.finditer(r"owscoc|owcosc", text)]
        turns = [(what, len(list(turn))) for what, turn in itertools.groupby(found)]
        for row, what in zip(rows, ["owscoc", "owcosc"]):
            own = [count for kind, count in turns if kind == what]
            self.assertEqual((row["ops"], row["flushes"]), (sum(own) - len(own), row["ops"]))
            self.assertGreater(row["ops"], 0)
        for call in calls:
            if call.name == "openat":
                self.assertEqual(call.flags, frozenset())
            if call.name == "pwrite64":
                self.assertEqual(call.size_and_offset, (8 * KIB, 0))

    def assert_current(self, rows, method, direct):
        for row in rows:
            if row["section"] in ["open_sync_size", "other_fd", "no_sync"]:
                self.assertIsNone(row["in_use"], row)
            else:
                self.assertIs(row["in_use"], (row["method"], row["direct"]) == (method, direct), row)

    def test_a_server_that_does_not_sync(self):
        """With fsync = off, no row is what the server does."""
        self.addCleanup(self.change, "fsync", None)
        self.change("fsync", "off")
        rows = self.session.rows(rows_of("sync", sections=["all"], duration="80 ms"))
        self.assertEqual([row for row in rows if row["in_use"]], [])
        self.assertIn("fsync", " ".join(note for row in rows for note in row["notes"]))

    def change(self, name, value):
        """Changes a setting of the server, or puts it back, and waits until this session has it."""
        self.session.run(f"ALTER SYSTEM SET {name} = {value}" if value else f"ALTER SYSTEM RESET {name}")
        expected = value or self.session.value(f"SELECT boot_val FROM pg_settings WHERE name = '{name}'")
        self.session.run("SELECT pg_reload_conf()")
        wait_for(lambda: self.session.value(f"SELECT current_setting('{name}')") == expected, f"{name} = {expected}")

    def commit_of_the_server(self):
        """How the server syncs a commit: flags of the descriptor, and the call that follows the write."""
        for _ in range(10):
            self.session.run("INSERT INTO written VALUES (1); SELECT pg_switch_wal()")
            with Trace(self.session.pid) as trace:
                self.session.run("INSERT INTO written VALUES (2)")
            flags = {}
            for call, following in zip(trace.calls, trace.calls[1:] + [None]):
                if call.name == "openat" and call.opened:
                    flags[call.opened[0]] = call.flags
                if call.name == "pwrite64" and "/pg_wal/0" in call.path and call.descriptor in flags:
                    same = following and following.descriptor == call.descriptor and "sync" in following.name
                    return flags[call.descriptor], following.name if same else None
            # Another process has written the WAL.
        self.fail("no commit of its own")

    def test_the_offset_wraps(self):
        """The offset goes through the file, and on from its start."""
        self.session.run("SET pg_io_probe.scratch_limit = '1MB'")
        with Trace(self.session.pid) as trace:
            rows = self.session.rows(sync("wal_segment", each_ms=200))
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        turns = turns_of(trace.calls, 1)
        places = {place for turn in turns if turn.kind()[1] == (256 * KIB,) for place in turn.places()}
        self.assertEqual(places, {0, 256 * KIB, 512 * KIB, 768 * KIB})


# --- files ---------------------------------------------------------------------------------------------------------


class Files(Sync):
    """The scratch file."""

    def test_what_is_in_it(self):
        """Data that does not compress, or zeros where a segment of WAL has them; all of it allocated."""
        for section, size in [("one_write", SMALL), ("wal_segment", WAL_SEGMENT)]:
            with self.subTest(section):
                self.session.start_rows(sync(section, each_ms=1000, options={"max_iops": 2000}))
                with Session() as control:
                    wait_for_turns(control, self.session.pid)
                    with open(self.scratch_files()[0], "rb") as file:
                        facts, content = os.fstat(file.fileno()), file.read()
                    control.value(f"SELECT pg_cancel_backend({self.session.pid})")
                self.assertRaises(Failure, self.session.finish)
                self.assertEqual((facts.st_nlink, facts.st_mode & 0o777, facts.st_size), (0, 0o600, size))
                self.assertGreaterEqual(facts.st_blocks * 512, size)
                packed = len(zlib.compress(content, 1))
                if section == "wal_segment":
                    self.assertEqual(content[size // 2 :].count(0), size // 2)
                    self.assertLess(packed, size / 10)
                else:
                    self.assertGreater(packed, size * 0.99)

    def test_one_at_a_time(self):
        with Session() as other:
            self.session.start_rows(sync("one_write", each_ms=LONG))
            wait_for_probe(other, self.session.pid)
            reported = progress(other, self.session.pid)
            self.assertEqual((reported["probe"], reported["relid"]), ("sync", None))
            self.assertIn(reported["path"], [None, "one_write"])
            wait_for_turns(other, self.session.pid)
            self.assertEqual(progress(other, self.session.pid)["path"], "one_write")
            with self.assertRaises(Failure) as raised:
                other.rows(sync("one_write"))
            self.assertEqual(raised.exception.sqlstate, "55006")
            other.value(f"SELECT pg_cancel_backend({self.session.pid})")
        self.assertRaises(Failure, self.session.finish)

    @needs_strace
    def test_the_fallback_s_name_is_gone_before_anything_is_written(self):
        with Trace(self.session.pid, *without_tmpfile(self.session.pid)) as trace:
            rows = self.session.rows(sync("one_write"))
        self.assert_all_ok(rows)
        name = wal_path(f"xlogtemp.{self.session.pid}")
        done = [call.name for call in trace.calls if call.path == name]
        self.assertEqual(done[:2], ["openat", "unlink"])
        first = next(call for call in trace.calls if call.path == wal_path() and call.name == "openat")
        self.assertTrue(first.injected)
        self.assertFalse(os.path.exists(name))


def without_tmpfile(pid, *injections):
    """Options for a trace in which pg_wal has no nameless files, and in which `injections` fail, too."""
    paths = ["-P", wal_path(), "-P", wal_path(f"xlogtemp.{pid}")]
    injections = ["openat:error=EOPNOTSUPP:when=1", *injections]
    return paths + list(itertools.chain(*(("-e", f"inject={injection}") for injection in injections)))


def wal_path(name=""):
    return os.path.join(os.path.realpath(PGDATA), "pg_wal", name).rstrip("/")


def wait_for_turns(session, pid):
    """Waits until a probe has filled its file and opened it again, or started its threads."""
    wait_for_probe(session, pid)
    wait_for(lambda: len(scratch_links(pid)) > 1 or "io_probe_sync" in Process(pid).threads(), "the first turn", 30)


# --- faults --------------------------------------------------------------------------------------------------------


@needs_strace
class Injected(Sync):
    """Calls that fail because strace says so."""

    FILE = r'"[^"]*/pg_wal"'
    DETAIL = r"DETAIL:  errno is {}\."

    def setUp(self):
        super().setUp()
        self.session.rows(rows_of("sync", duration="40 ms"))  # loads what is loaded once
        self.filled = {}

    def fills(self, section):
        """The number of writes that fill the file of a section."""
        if section not in self.filled:
            with Trace(self.session.pid) as trace:
                self.session.rows(sync(section, each_ms=1))
            self.filled[section] = sum(call.name == "pwrite64" for call in trace.fill())
        return self.filled[section]

    def assert_call_fails(self, injection, query, sqlstate, *words, running=False):
        """A probe tells of the call that strace has fail, from the probe's start on or while it is running."""
        held = self.held()
        if running:
            self.session.start_rows(query)
            with Session() as control:
                wait_for_turns(control, self.session.pid)
        with Trace(self.session.pid, "-e", f"inject={injection}") as trace:
            if not running:
                self.session.start_rows(query)
            failure = self.failure()
        self.assertTrue([call for call in trace.calls if call.injected and call.is_on_scratch], "nothing was injected")
        self.assert_is(failure, sqlstate, *words)
        self.assert_as_before(held)
        self.assert_all_ok(self.session.rows(sync("one_write", "wal_segment", each_ms=1)))

    def test_syncs(self):
        for call, section in [("fdatasync", "one_write"), ("fdatasync", "wal_segment"), ("fsync", "two_writes"),
                              ("fsync", "other_fd"), ("fsync", "wal_segment")]:
            with self.subTest(call, section=section):
                words = f"{self.FILE}.*Input/output error", self.DETAIL.format(5)
                later = ":when=2+" if call == "fsync" else ""  # the first is that of the fill
                self.assert_call_fails(f"{call}:error=EIO{later}", sync(section), "58030", *words)
        for call in ["fsync", "sync_file_range"]:
            with self.subTest(call, section="fill"):
                words = f"{self.FILE}.*Input/output error", self.DETAIL.format(5)
                self.assert_call_fails(f"{call}:error=EIO:when=1", sync("one_write"), "58030", *words)
        with self.subTest("no room for what was delayed"):
            self.assert_call_fails("fdatasync:error=ENOSPC", sync("one_write"), "53100", self.DETAIL.format(28))

    def test_writes(self):
        for section in ["one_write", "open_sync_size", "no_sync", "wal_segment"]:
            filled = self.fills(section)
            for when in [1, filled // 2, filled, filled + 1, filled + 2, filled + 20]:
                for error, sqlstate, errno in [("EIO", "58030", 5), ("ENOSPC", "53100", 28), ("EDQUOT", "53100", 122)]:
                    if error != "EIO" and when not in [filled // 2, filled + 20]:
                        continue
                    with self.subTest(section, error=error, when=when, filled=filled):
                        words = rf"{self.FILE}.* at offset \d+: ", self.DETAIL.format(errno)
                        query = sync(section, each_ms=2000)
                        self.assert_call_fails(f"pwrite64:error={error}:when={when}", query, sqlstate, *words)

    def test_short_writes(self):
        for section in ["one_write", "two_writes", "open_sync_size", "other_fd", "no_sync", "wal_segment"]:
            for written in [0, 512]:
                with self.subTest(section, written=written):
                    injection = f"pwrite64:retval={written}:when={self.fills(section) + 3}"
                    words = rf"{self.FILE}.* at offset \d+"
                    self.assert_call_fails(injection, sync(section, each_ms=150), "53100", words)
        with self.subTest("fill"):
            words = f"{self.FILE} at offset 16384"
            self.assert_call_fails("pwrite64:retval=512:when=3", sync("one_write"), "53100", words)

    def test_opens(self):
        wal, own = ["-P", wal_path()], "openat:error={}:when={}"
        for error, sqlstate, errno in [("EIO", "58030", 5), ("ENOSPC", "53100", 28), ("EDQUOT", "53100", 122)]:
            with self.subTest("the scratch file", error=error):
                held = self.held()
                with Trace(self.session.pid, *wal, "-e", f"inject={own.format(error, 1)}") as trace:
                    self.session.start_rows(sync("one_write"))
                    failure = self.failure()
                self.assertTrue(trace.calls[0].injected)
                self.assert_is(failure, sqlstate, self.FILE, self.DETAIL.format(errno))
                self.assert_as_before(held)
        for section in ["one_write", "other_fd", "wal_segment"]:
            with self.subTest("a descriptor of a row", section=section):
                number = self.number_of_open(section)
                self.assert_call_fails(own.format("EIO", number), sync(section), "58030", self.DETAIL.format(5))

    def number_of_open(self, section):
        """The number of the first openat of a probe that belongs to a row."""
        with Trace(self.session.pid) as trace:
            self.session.rows(sync(section))
        opens = [call for call in trace.calls if call.name == "openat"]
        return next(number for number, call in enumerate(opens, 1) if call.asks_for_descriptor)

    def test_o_direct_refused(self):
        """The row says so, and the others go on."""
        with Trace(self.session.pid) as trace:
            self.session.rows(sync("one_write"))
        opens = [call for call in trace.calls if call.name == "openat"]
        number = next(number for number, call in enumerate(opens, 1) if "O_DIRECT" in call.flags)
        with Trace(self.session.pid, "-e", f"inject=openat:error=EINVAL:when={number}") as trace:
            rows = self.session.rows(sync("one_write"))
        (hit,) = [call for call in trace.calls if call.injected]
        self.assertIn("O_DIRECT", hit.flags)
        refused = [row for row in rows if row["status"] == "unsupported"]
        self.assertGreater(len(refused), 0)
        for row in refused:
            self.assertEqual((row["direct"], row["ops"] or 0, row["op_us"]), (True, 0, None))
            self.assertIn("O_DIRECT", " ".join(row["notes"]))
        others = [row for row in rows if not row["direct"]]
        self.assertEqual([row["status"] for row in others], ["ok"] * 4)

    def test_any_call(self):
        """Each kind of call on a scratch file at some moments of a call of all sections: none fails unseen."""
        query = rows_of("sync", sections=["all"], duration="200 ms")
        with Trace(self.session.pid) as trace:
            self.assert_all_ok(self.session.rows(query))
        seen = collections.Counter()
        moments = chance()
        for name, tries in [("openat", 6), ("pwrite64", 10), ("fsync", 6), ("fdatasync", 2), ("sync_file_range", 2)]:
            same = [call for call in trace.calls if call.name == name]
            # Not the last ones: in another run there may be fewer.
            own = [number for number, call in enumerate(same, 1) if call.is_on_scratch][: len(same) * 2 // 3]
            for when in moments.sample(own, min(tries, len(own))):
                with self.subTest(name, when=when):
                    held = self.held()
                    with Trace(self.session.pid, "-e", f"inject={name}:error=EIO:when={when}") as broken:
                        self.session.start_rows(query)
                        failure = self.failure()
                    self.assert_as_before(held)
                    hit = [call for call in broken.calls if call.injected]
                    mine = [call for call in hit if call.is_on_scratch]
                    if mine:
                        self.assert_is(failure, "58030", self.DETAIL.format(5))
                        # It was the last thing done with the files, but for what no_sync leaves to be synced.
                        later = {call.name for call in after(broken.of_scratch(), mine[0])}
                        self.assertLessEqual(later, {"close", "fsync"})
                    elif failure:
                        self.assertIn(failure.sqlstate, ["58030", "0A000"], failure)
                    seen[name, bool(mine)] += 1
        say(f"hit: {dict(seen)}")

    def test_threads(self):
        """At a depth, one thread fails while others wait for it or insert."""
        for injection, sqlstate, words in [
            ("pwrite64:error=EIO", "58030", [r" at offset \d+: ", self.DETAIL.format(5)]),
            ("pwrite64:error=ENOSPC", "53100", [r" at offset \d+: ", self.DETAIL.format(28)]),
            ("pwrite64:retval=512", "53100", [r" at offset \d+"]),
            ("fdatasync:error=EIO", "58030", [self.DETAIL.format(5)]),
            ("fsync:error=EIO", "58030", [self.DETAIL.format(5)]),
        ]:
            for when in ["", ":when=5+"]:
                with self.subTest(injection, when=when):
                    query = sync("wal_segment", each_ms=2000, depth=8)
                    words = [self.FILE, *words]
                    self.assert_call_fails(injection + when, query, sqlstate, *words, running=True)

    def test_the_first_open_at_a_depth(self):
        number = self.number_of_open("wal_segment")
        query = sync("wal_segment", depth=8)
        self.assert_call_fails(f"openat:error=EIO:when={number}", query, "58030", self.DETAIL.format(5))


def after(calls, call):
    return calls[[other is call for other in calls].index(True) + 1 :]


class OwnDevice(Sync):
    """A tablespace on a device of its own."""

    THERE = r'"[^"]*/pg_tblspc/\d+/PG_[^"/]*"'

    def setUp(self):
        super().setUp()
        self.disk = LoopDevice(64 * MIB, direct=True)
        self.addCleanup(self.disk.remove)
        create_tablespace(self.session, "elsewhere", self.disk.mount_point)
        self.addCleanup(self.session.run, "DROP TABLESPACE elsewhere")
        self.session.run("SET pg_io_probe.scratch_reserve = 0")

    def there(self, *sections, **arguments):
        return sync(*sections, spcname="elsewhere", **arguments)

    def test_a_device_that_fails(self):
        for section, depth in [("one_write", 1), ("open_sync_size", 1), ("wal_segment", 1), ("wal_segment", 8)]:
            with self.subTest(section, depth=depth):
                held = self.held()
                self.session.start_rows(self.there(section, each_ms=LONG, depth=depth))
                with Session() as control:
                    wait_for_turns(control, self.session.pid)
                self.halt()
                with self.disk.cut_off_before(self.scratch_files()[0]):
                    os.kill(self.session.pid, signal.SIGCONT)
                    words = f"{self.THERE}.*Input/output error", r"DETAIL:  errno is 5\."
                    self.assert_has_failed(held, "58030", *words)
                self.assert_all_ok(self.session.rows(self.there(section, depth=depth)))

    def halt(self):
        """Stops the process. A write past the end of the device's backing file would make that longer again."""
        os.kill(self.session.pid, signal.SIGSTOP)
        tasks = glob.glob(f"/proc/{self.session.pid}/task/*/stat")
        wait_for(lambda: {read(task).rpartition(")")[2].split()[0] for task in tasks} == {"T"}, "all threads to stop")

    def test_room(self):
        """The scratch file leaves the reserve free, and nothing is written where there is no room."""
        before, counters = self.disk.used(), self.disk.counters()
        for reserve in ["DEFAULT", "'60MB'"]:
            for query in [self.there("one_write"), self.there("wal_segment"), self.there("wal_segment", depth=8)]:
                with self.subTest(query, reserve=reserve):
                    self.session.run(f"SET pg_io_probe.scratch_reserve = {reserve}")
                    message = f"not enough room in directory {self.THERE}"
                    self.assert_fails(query, "53100", message, r"bytes are free.*scratch_reserve")
                    self.assertEqual(self.disk.used(), before)
        self.assertLess(self.disk.counters()["bytes"] - counters["bytes"], MIB)
        self.session.run("SET pg_io_probe.scratch_reserve = '30MB'")
        self.assert_all_ok(self.session.rows(self.there("one_write", "wal_segment")))
        self.assertEqual(self.disk.used(), before)
        # Here there is room for the one file, not for the other.
        self.session.run("SET pg_io_probe.scratch_reserve = 0")
        with filled_but_for(self.disk.mount_point, 4 * MIB):
            self.assert_fails(self.there("wal_segment"), "53100", "not enough room")
            self.assert_all_ok(self.session.rows(self.there("one_write", "no_sync")))
        with filled_but_for(self.disk.mount_point, MIB // 2):
            self.assert_fails(self.there("no_sync"), "53100", "not enough room")
        self.assertEqual(self.disk.used(), before)

    def test_where_it_writes(self):
        """Writes go to the tablespace's own device: in the sections that sync, one or more for each operation."""
        for section, depth in [(section, 1) for section in SYNC_SECTIONS] + [("wal_segment", 8)]:
            with self.subTest(section, depth=depth):
                before = self.disk.counters()
                rows = self.session.rows(self.there(section, depth=depth))
                moved = self.disk.counters()["bytes"] - before["bytes"]
                self.assert_all_ok(rows)
                written = sum((row["ops"] or 0) * row["writes"] * row["write_kb"] * KIB for row in rows)
                size = WAL_SEGMENT if section == "wal_segment" else SMALL
                self.assertGreaterEqual(moved, size + (0 if section == "no_sync" else written))
                for row in rows:
                    self.assertEqual((row["device"], row["fs_type"]), (os.path.basename(self.disk.device), "ext4"))
                    self.assertRegex(row["directory"], rf"^{self.disk.mount_point}/tablespace/PG_{VERSION}_\d+$")
                    if row["ops"] and section != "no_sync" and depth == 1:
                        # Without O_DIRECT, writes side by side may become one.
                        least = row["writes"] if row["direct"] else 1
                        self.assertGreaterEqual(row["device_writes_per_op"], 0.99 * least)
                    if section == "no_sync":
                        self.assertLess(row["device_writes_per_op"], 0.5)

    def test_beside_others_that_read(self):
        """Rows that sync tell of the others in `doubt`. What no_sync writes stays in memory."""
        query = self.there("one_write", "no_sync", each_ms=100)

        def disturbed():
            rows = self.session.rows(query)
            self.assert_all_ok(rows)
            return {row["section"] for row in rows if "others" in (row["doubt"] or "")}

        self.assertEqual(disturbed(), set())
        with self.disk.read_on():
            self.assertEqual(disturbed(), {"one_write"})

    def test_the_wal_s_own_device(self):
        """Without a tablespace, writes go to the device of the WAL."""
        before = self.disk.counters()
        rows = self.session.rows(sync("one_write", "wal_segment"))
        self.assertLess(self.disk.counters()["bytes"] - before["bytes"], MIB)
        self.assertEqual({row["directory"] for row in rows}, {wal_path()})
        device = self.session.value("SELECT device FROM io_probe_device_full() WHERE object = 'wal'")
        self.assertEqual({row["device"] for row in rows}, {device})

    def test_the_default_tablespace(self):
        rows = self.session.rows(sync("one_write", spcname="pg_default"))
        self.assert_all_ok(rows)
        self.assertEqual({row["directory"] for row in rows}, {os.path.join(os.path.realpath(PGDATA), "base")})

    def test_drop_of_the_tablespace(self):
        """The tablespace is empty, also after a cancel, so it can be dropped."""
        self.session.rows(self.there("wal_segment", depth=8))
        self.session.start_rows(self.there("one_write", each_ms=LONG))
        with Session() as control:
            wait_for_turns(control, self.session.pid)
            control.value(f"SELECT pg_cancel_backend({self.session.pid})")
        self.assertRaises(Failure, self.session.finish)
        self.session.run("DROP TABLESPACE elsewhere")
        directory = os.path.join(self.disk.mount_point, "tablespace")
        self.assertEqual(os.listdir(directory), [])
        self.session.run(f"CREATE TABLESPACE elsewhere LOCATION '{directory}'")


class Kill(unittest.TestCase):
    """Whatever happens, pg_wal has nothing but WAL in it."""

    def setUp(self):
        with Session() as session:
            # Processes die here, not the machine: no sync is needed, and recovery would sync each file.
            session.run("ALTER SYSTEM SET fsync = off")
            session.run("SELECT pg_reload_conf()")
        self.addCleanup(self.clean_up)

    def clean_up(self):
        with wait_for(connection, "the server to be back", 60) as session:
            session.run("ALTER SYSTEM RESET fsync")
            session.run("SELECT pg_reload_conf()")

    @needs_strace
    def test_a_kill_before_the_fallback_s_name_is_gone(self):
        """The name is one of the server's own kind, so recovery removes the file."""
        with Session() as session:
            name = wal_path(f"xlogtemp.{session.pid}")
            with Trace(session.pid, *without_tmpfile(session.pid, "unlink,unlinkat:signal=KILL")):
                session.start(sync("one_write"))
                wait_until_gone(session.pid)
            self.assertRaises(Failure, session.finish)
        wait_for(connection, "the server to be back", 60).close()
        self.assertFalse(os.path.exists(name))
        self.assertEqual(foreign_files(PGDATA), [])


# --- copies of the server ------------------------------------------------------------------------------------------


class Copies(Sync):
    def looping(self, session, **arguments):
        """Starts a probe that makes one scratch file after another."""
        session.start(repeated("sync", duration="80 ms", **arguments))
        with Session() as control:
            wait_for_probe(control, session.pid)

    def stop_looping(self, session):
        """Stops a probe that looping() has started, and that has run all the time."""
        self.assertTrue(session.busy())
        with Session() as control:
            control.value(f"SELECT pg_cancel_backend({session.pid})")
        with self.assertRaises(Failure) as raised:
            session.finish()
        self.assertEqual(raised.exception.sqlstate, "57014")

    def test_standby(self):
        standby = Standby(self.session)
        self.addCleanup(shutil.rmtree, standby.host)
        self.addCleanup(standby.stop)
        standby.start()
        for setting in ["wal_sync_method = 'open_sync'"] + (["debug_io_direct = 'wal'"] if VERSION >= 16 else []):
            standby.control.run(f"ALTER SYSTEM SET {setting}")
        standby.control.close()
        as_server("pg_ctl", "restart", "-w", "-D", standby.data, "-l", os.path.join(standby.host, "log"))
        standby.control = Session(host=standby.host)
        self.assertTrue(standby.control.value("SELECT pg_is_in_recovery()"))
        rows = standby.control.rows(rows_of("sync", sections=["all"], duration="200 ms"))
        # What the walreceiver writes, the startup process reads: never past the page cache.
        self.assertEqual([identity({**row, "direct": bool(row["direct"])}) for row in rows],
                         expected_rows(dict.fromkeys(METHODS, False)))
        self.assert_all_ok(rows)
        current = [identity(row)[:3] for row in rows if row["in_use"]]
        self.assertEqual(current, [(section, "open_sync", False) for section in ["one_write", "two_writes"]
                                   + ["wal_segment"] * 4])
        self.assertEqual({row["directory"] for row in rows}, {os.path.join(os.path.realpath(standby.data), "pg_wal")})
        rows = standby.control.rows(sync("wal_segment", depth=8))
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        self.assertEqual(foreign_files(standby.data), [])
        # Replay goes on meanwhile, and after.
        self.looping_on(standby)

    def looping_on(self, standby):
        self.session.run("CREATE TABLE replayed (id int)")
        self.addCleanup(self.session.run, "DROP TABLE replayed")
        standby.catch_up()
        with Session(host=standby.host) as session:
            session.start(repeated("sync", duration="80 ms"))
            wait_for_probe(standby.control, session.pid)
            self.session.run("INSERT INTO replayed SELECT generate_series(1, 100000)")
            standby.catch_up()
            self.assertTrue(session.busy())
            standby.control.value(f"SELECT pg_cancel_backend({session.pid})")
            self.assertRaises(Failure, session.finish)
        self.assertEqual(standby.control.value("SELECT count(*) FROM replayed"), 100000)

    def test_base_backup(self):
        if not shutil.which("pg_verifybackup"):
            self.skipTest("no pg_verifybackup")
        directory = os.path.join(TEST_TMP, "space")
        os.mkdir(directory)
        create_tablespace(self.session, "beside", directory)
        self.addCleanup(self.session.run, "DROP TABLESPACE beside")
        for number, (wal, arguments) in enumerate([
            ("fetch", {}), ("stream", {"sections": ["wal_segment"], "depth": 8}),
            ("fetch", {"spcname": "beside"}),
        ]):
            with self.subTest(wal, **arguments), Session() as prober:
                copy, moved = os.path.join(TEST_TMP, f"copy{number}"), os.path.join(TEST_TMP, f"space{number}")
                self.looping(prober, **arguments)
                as_server("pg_basebackup", "-D", copy, "-T", f"{directory}/tablespace={moved}", "-X", wal, "-c", "fast")
                self.stop_looping(prober)
                as_server("pg_verifybackup", copy)
                self.assertEqual(foreign_files(copy), [])
                walked = itertools.chain(os.walk(copy), os.walk(moved))
                names = {name for _, folders, files in walked for name in folders + files}
                self.assertEqual([name for name in names if re.search(r"^#|pgsql_tmp|xlogtemp|io_probe", name)], [])
                self.assertEqual(foreign_files(PGDATA), [])

    def test_rewind(self):
        """A standby that was promoted by mistake comes back: the server is its source."""
        if not shutil.which("pg_rewind"):
            self.skipTest("no pg_rewind")
        standby = Standby(self.session)
        self.addCleanup(shutil.rmtree, standby.host)
        self.addCleanup(standby.stop)
        standby.start()
        standby.control.run("ALTER SYSTEM SET wal_log_hints = on")
        # pg_rewind has to find the last checkpoint before the two servers parted.
        standby.control.run("ALTER SYSTEM SET wal_keep_size = '1GB'")
        standby.control.close()
        log = os.path.join(standby.host, "log")
        as_server("pg_ctl", "restart", "-w", "-D", standby.data, "-l", log)
        as_server("pg_ctl", "promote", "-w", "-D", standby.data)
        with Session(host=standby.host) as session:
            session.run("CREATE TABLE astray AS SELECT g FROM generate_series(1, 10000) AS g; CHECKPOINT")
        as_server("pg_ctl", "stop", "-w", "-m", "fast", "-D", standby.data)
        dense_table(self.session, "at_the_source", 512)
        self.addCleanup(self.session.run, "DROP TABLE at_the_source")
        with Session() as prober:
            self.looping(prober)
            source = f"host={os.environ['PGHOST']} port={os.environ['PGPORT']} user=postgres dbname=postgres"
            as_server("pg_rewind", "-D", standby.data, "--source-server", source, "-R")
            self.stop_looping(prober)
        self.assertEqual(foreign_files(standby.data), [])
        as_server("pg_ctl", "start", "-w", "-t", "60", "-D", standby.data, "-l", log,
                  "-o", f"-c unix_socket_directories={standby.host}")
        standby.control = Session(host=standby.host)
        standby.catch_up()
        self.assertEqual(standby.control.value("SELECT count(*) FROM at_the_source"), 512)
        self.assertIsNone(standby.control.value("SELECT to_regclass('astray')"))


# --- advice ---------------------------------------------------------------------------------------------------------


@needs_strace
class Advice(unittest.TestCase):
    """What sets wal_sync_method, and what takes it back, are commands that run as they are."""

    def test_statement_and_undo(self):
        disk = LoopDevice(256 * MIB)
        self.addCleanup(disk.remove)
        # Of a device with a volatile cache nothing is advised.
        cache = pathlib.Path(disk.limit("write_cache"))
        self.addCleanup(cache.write_text, cache.read_text())
        cache.write_text("write through")
        os.chown(disk.mount_point, *server_ids())
        server = Server("advised", f"--waldir={disk.mount_point}/wal")
        self.addCleanup(server.remove)
        server.configure({"wal_sync_method": "fdatasync"})
        server.start()
        with server.session() as session:
            session.run("""CREATE EXTENSION pg_io_probe; CREATE ROLE advised; ALTER SYSTEM SET wal_sync_method = 'fsync';
                GRANT EXECUTE ON FUNCTION io_probe_recommend_full, io_probe_recommend, io_probe_sync TO advised;
                SET pg_io_probe.scratch_reserve = 0""")
            session.run("SELECT pg_reload_conf()")
            wait_for(lambda: session.value("SELECT current_setting('wal_sync_method')") == "fsync", "the reload")
            auto = "SELECT pg_read_file('postgresql.auto.conf')"
            before = session.value(auto)
            row = self.advice(session)
            self.assertEqual((row["current"], row["current_source"], row["applies"]), ("fsync", "configuration file", "reload"))
            self.assertIn(row["recommended"], METHODS)
            self.assertEqual(row["statement"], f"ALTER SYSTEM SET wal_sync_method = {row['recommended']}")
            self.assertEqual(row["undo"], "ALTER SYSTEM SET wal_sync_method = 'fsync'")
            session.run(row["statement"])
            self.assertIn(f"wal_sync_method = '{row['recommended']}'", session.value(auto))
            session.run(row["undo"])
            self.assertEqual(session.value(auto), before)
            session.run("SET ROLE advised")
            row = self.advice(session)
            self.assertEqual(row["undo"], "ALTER SYSTEM RESET wal_sync_method")
            self.assertIn("only a superuser may see", row["hides"])

    def advice(self, session):
        """The row, where each fsync takes 20 ms longer than it does."""
        with Trace(session.pid, "-e", "inject=fsync:delay_exit=20000", calls="fsync"):
            row = session.row(rows_of("recommend", settings=["wal_sync_method"], writes=True, duration="4 s"))
        say(row["why"])
        return row


# --- group commit --------------------------------------------------------------------------------------------------


class Flushes:
    """What went through a descriptor that many threads share, by flush."""

    def __init__(self, call):
        self.descriptor, self.flags = call.opened[0], call.flags
        self.flushes, self.pending, self.syncs, self.wraps, self.at = [], 0, set(), 0, 0

    def add(self, call):
        if call.name == "pwrite64":
            size, place = call.size_and_offset
            assert place == self.at, f"not at {self.at}: {call}"
            assert place + size <= WAL_SEGMENT, call
            self.at = (place + size) % WAL_SEGMENT
            self.wraps += self.at == 0
            self.pending += size
        else:
            if call.name == "close":
                return  # perhaps after a write that has no sync, since the turn was over
            assert self.pending, f"a sync of nothing: {call}"
            self.syncs.add(call.name)
        if call.name != "pwrite64" or self.flags & {"O_DSYNC", "O_SYNC"}:
            self.flushes.append(self.pending)
            self.pending = 0


class Depth(Sync):
    """Many committers at once."""

    def test_they_share_their_flushes(self):
        for depth in [2, 8, 32]:
            with self.subTest(depth=depth):
                rows = self.session.rows(sync("wal_segment", depth=depth, each_ms=100))
                self.assertEqual([identity(row) for row in rows], expected_rows(dict.fromkeys(METHODS, False))[-16:])
                for row in rows:
                    self.assertEqual((row["status"], row["depth"]), ("ok", depth))
                    self.assertGreater(row["flushes"], 0)
                    self.assertLessEqual(row["flushes"], row["ops"])
                    # A flush covers each committer once at most, save that of a turn's warm-up.
                    self.assertLessEqual(row["ops"], (row["flushes"] + 10) * depth)
                # Two committers take turns: one inserts while the other flushes. On a busy machine more may do so by one method.
                if depth > 2:
                    flushes, ops = (sum(row[name] for row in rows) for name in ["flushes", "ops"])
                    self.assertLess(flushes, ops)

    @needs_strace
    def test_one_who_waits_lets_others_join(self):
        """A committer waits for commit_delay, given as an option or by the server's setting."""
        delay = 20001
        self.assertGreater(self.naps(delay, options={"commit_delay": delay}), 0)
        self.session.run(f"SET commit_delay = {delay}; SET commit_siblings = 7")
        self.assertGreater(self.naps(delay), 0)
        self.assertEqual(self.naps(delay, options={"commit_delay": 0}), 0)
        # With fewer siblings than commit_siblings, no committer waits.
        self.session.run("SET commit_siblings = 8")
        self.assertEqual(self.naps(delay), 0)

    def naps(self, delay, **arguments):
        """How often eight committers sleep for `delay` microseconds. If they do, more than four share a flush on average."""
        with Trace(self.session.pid, calls="?nanosleep clock_nanosleep") as trace:
            rows = self.session.rows(sync("wal_segment", depth=8, **arguments))
        naps = sum(f"tv_nsec={delay * 1000}}}" in call.arguments for call in trace.calls)
        flushes = sum(row["flushes"] for row in rows)
        if naps:
            self.assertGreaterEqual(naps, flushes)
            self.assertGreater(sum(row["ops"] for row in rows), 4 * flushes)
        return naps

    def test_threads_come_and_go(self):
        before = self.held()
        self.session.start_rows(sync("wal_segment", depth=8, each_ms=1000))
        most = 0
        with Session() as control:
            wait_for_turns(control, self.session.pid)
            while self.session.busy() and most < 8:
                most = max(most, Process(self.session.pid).threads().count("io_probe_sync"))
            self.assertEqual(most, 8)
            control.value(f"SELECT pg_cancel_backend({self.session.pid})")
        self.assertRaises(Failure, self.session.finish)
        self.assert_as_before(before)
        self.session.rows(sync("wal_segment", depth=8))
        self.assert_as_before(before)

    @needs_strace
    def test_what_they_write(self):
        """They write all that they inserted, once, in order."""
        with Trace(self.session.pid) as trace:
            rows = self.session.rows(sync("wal_segment", depth=8))
        turns = [Flushes(call) for call in trace.calls if call.gives_descriptor]
        upcoming, current = iter(turns), None
        for call in trace.of_scratch()[len(trace.fill()) :]:
            if call.gives_descriptor:
                current = next(upcoming)
            elif call.descriptor == current.descriptor:
                current.add(call)
        for row, turn in zip(rows, turns, strict=True):
            flags, _, sync_call = expected_operation(row)
            self.assertEqual((turn.flags, turn.syncs), (flags, {sync_call} - {None}))
            commits = [flush / (row["write_kb"] * KIB) for flush in turn.flushes]
            say(f"{row['method']}: {row['ops']} commits in {row['flushes']} flushes, at most {max(commits)} in one")
            if turn.at == 0 and sum(commits) - commits[0] != row["ops"]:
                # The turn was over when a flush had been written up to the end of the segment, and it did not go on.
                del commits[-1]
            self.assertEqual(sum(commits) - commits[0], row["ops"])
            # A synchronous write on to the end may be a flush of its own, or go on at the start.
            self.assertLessEqual(row["flushes"], len(commits) - 1)
            self.assertGreaterEqual(row["flushes"], len(commits) - 1 - turn.wraps)
            # Seven wait for the flush of the eighth, and all of them may be in the next.
            self.assertTrue(1 <= min(commits) and max(commits) <= 8, commits)

    @needs_strace
    def test_commits_that_share_a_block(self):
        """Whole blocks are written, and one that is not full yet again by the next flush."""
        with Trace(self.session.pid) as trace:
            rows = self.session.rows(sync("wal_segment", depth=8, options={"commit_bytes": 100}))
        self.assertEqual([row["method"] for row in rows], METHODS)
        self.assert_all_ok(rows)
        ends, again, writes = {}, 0, 0
        for call in trace.of_scratch()[len(trace.fill()) :]:
            if call.gives_descriptor:
                ends[call.opened[0]] = 0
            elif call.name == "pwrite64":
                size, place = call.size_and_offset
                end = ends[call.descriptor]
                self.assertEqual((size % WAL_BLOCK, place % WAL_BLOCK), (0, 0))
                self.assertIn(place, [end, end - WAL_BLOCK])
                again += place < end
                # The first write by a method is of a block that no flush has begun.
                writes += end > 0
                ends[call.descriptor] = place + size
        # A block takes 80 commits, a flush 8.
        self.assertGreater(writes, 0)
        self.assertGreater(again, writes * 0.8)

    def test_other_sections_have_none(self):
        for section in SYNC_SECTIONS[:-1]:
            with self.subTest(section):
                self.assert_fails(sync(section, depth=8), "22023")


if __name__ == "__main__":
    main()
