"""What the client tests share: psql sessions, tables of a known shape, and a look at a server process from outside.

The environment is that of tools/check.sh. Nothing here knows what a probe should answer.
"""

import contextlib
import glob
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import threading
import time
import unittest
from dataclasses import dataclass

BLOCK = 8192
SEGMENT_BLOCKS = 131072  # 1 GiB
VERSION = int(os.environ["PG_VERSION_NUM"]) // 10000
PGDATA = os.environ["PGDATA"]
TEST_TMP = os.environ["TEST_TMP"]
SERVER_LOG = os.path.join(os.path.dirname(PGDATA), "log")
IS_ROOT = os.geteuid() == 0
# Faults are tried a few times by default, and each twenty times or more in the long mode.
LONG = bool(os.environ.get("PG_IO_PROBE_LONG"))

PATHS = ["direct", "server", "os"]
SYNC_SECTIONS = ["one_write", "two_writes", "open_sync_size", "other_fd", "no_sync", "wal_segment"]


class Runner(unittest.TextTestRunner):
    """SIGTERM ends the run after the present test has cleaned up. The check sends it to a test that takes too long."""

    def _makeResult(self):
        result = super()._makeResult()

        def stop(*_):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it comes twice, to the process and to its group
            result.failfast = True
            result.stop()
            sys.exit("stopped")

        signal.signal(signal.SIGTERM, stop)
        return result


def needs_root():
    """Skips a test, or all of a file as its setUpModule, if the tests are not run as root."""
    if not IS_ROOT:
        raise unittest.SkipTest("not root")


def main():
    """Runs the tests of the calling file; exits with 77 when every one was skipped."""
    result = unittest.main(exit=False, testRunner=Runner(verbosity=2)).result
    skipped, run = result.skipped, result.testsRun
    if not result.wasSuccessful():
        sys.exit(1)
    if len(skipped) >= run:
        print("; ".join(sorted({why for _, why in skipped})) or "no test")
        sys.exit(77)


def half_of(cases, always=lambda case: False):
    """All cases in the long mode. Otherwise every other case, and those for which `always` is true. Servers up to 17 get the half
    that 18 leaves out."""
    left_out = int(VERSION < 18)
    return [case for place, case in enumerate(cases) if LONG or place % 2 != left_out or always(case)]


def chance():
    """A source of chance: the same in each check, another one in each long run. SEED in the environment repeats one."""
    seed = int(os.environ.get("SEED") or (random.randrange(1 << 32) if LONG else 1))
    say(f"SEED={seed}")
    return random.Random(seed)


def say(text):
    """Prints a line among the names of the tests: figures that are not judged."""
    print(f"    {text}", file=sys.stderr)


# --- sessions ------------------------------------------------------------------------------------------------------


class Failure(Exception):
    """An ERROR or FATAL of the server, or the loss of the connection (sqlstate is None)."""

    def __init__(self, text):
        found = re.search(r"(?:ERROR|FATAL|PANIC):  (\w{5}): ", text)
        self.sqlstate = found and found.group(1)
        super().__init__(text)


class Session:
    """A psql that stays open."""

    MARK = "=== done"

    def __init__(self, database=None, host=None, user=None, options=None):
        command = ["psql", "-X", "-q", "-A", "-t", "-v", "VERBOSITY=verbose"]
        environment = dict(os.environ)
        environment.update({"PGDATABASE": database} if database else {})
        environment.update({"PGHOST": host} if host else {})
        environment.update({"PGUSER": user} if user else {})
        environment.update({"PGOPTIONS": options} if options else {})
        self.psql = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        # The output that has come, from the end of the line before on, and how much of it has been searched.
        self.pending, self.seen = bytearray(b"\n"), 0
        try:
            self.pid = self.value("SELECT pg_backend_pid()")
            # A slow device is no failure.
            self.run("SET pg_io_probe.row_duration = '1 min'")
        except Exception:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self, sql):
        """Sends statements without waiting for them."""
        self.psql.stdin.write(f"{sql};\n\\echo {self.MARK}\n".encode())
        self.psql.stdin.flush()

    def busy(self):
        """Has what was started not ended yet?"""
        return self._mark() is None and not select.select([self.psql.stdout], [], [], 0)[0]

    def finish(self, timeout=300):
        """Waits for what was started, and returns the lines that it gave. Raises Failure."""
        deadline = time.monotonic() + timeout
        end = self._mark()
        while end is None:
            if not select.select([self.psql.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"nothing after {timeout} s, but: {self.pending[1:].decode()}")
            data = os.read(self.psql.stdout.fileno(), 1 << 20)
            if not data:
                raise Failure(self.pending[1:].decode())
            self.pending += data
            end = self._mark()
        text = self.pending[1 : end + 1].decode()
        self.pending = self.pending[end + len(self.MARK) + 1 :]
        if re.search(r"^(ERROR|FATAL|PANIC):  ", text, re.MULTILINE):
            raise Failure(text)
        return text.splitlines()

    def _mark(self):
        """The end of the output that stands before the mark; None before the mark has come."""
        mark = f"\n{self.MARK}\n".encode()
        found = self.pending.find(mark, max(0, self.seen - len(mark)))
        self.seen = len(self.pending) if found < 0 else 0
        return None if found < 0 else found

    def run(self, sql):
        """Runs statements, and returns the lines that they gave."""
        self.start(sql)
        return self.finish()

    def value(self, query):
        """The one value that a query gives."""
        (line,) = self._answer(self.run(f"SELECT to_json(({query}))"))
        return json.loads(line) if line else None

    def rows(self, query):
        """The rows of a query, each a dictionary."""
        self.start_rows(query)
        return self.finish_rows()

    def start_rows(self, query):
        """Sends a query without waiting for it."""
        self.start(f"SELECT row_to_json(r) FROM ({query}) AS r")

    def finish_rows(self):
        """The rows of the query that was sent."""
        return [json.loads(line) for line in self._answer(self.finish())]

    def _answer(self, lines):
        """These lines without what was told besides."""
        return [line for line in lines if not re.match("(NOTICE|DETAIL|HINT|LOCATION):  ", line)]

    def row(self, query):
        """The one row of a query."""
        (row,) = self.rows(query)
        return row

    def close(self):
        """Ends the session, if it has not ended; a statement that is still running is cancelled."""
        if self.psql.returncode is not None:
            return
        if self.busy():
            self.psql.send_signal(signal.SIGINT)
        try:
            self.psql.communicate(timeout=10)
        except BrokenPipeError:
            self.psql.wait()


def connection(session=Session):
    """A session, or None while the server takes none. `session` opens one of another server."""
    try:
        return session()
    except (Failure, ValueError, BrokenPipeError):
        return None


def create_extension(session, name):
    """Creates an extension of contrib; false when this server does not have it."""
    if not session.value(f"SELECT count(*) FROM pg_available_extensions WHERE name = '{name}'"):
        return False
    session.run(f"CREATE EXTENSION IF NOT EXISTS {name}")
    return True


def engines(session):
    """The engines of the direct path that this kernel, or container, allows."""
    refused = session.value("SELECT status <> 'ok' FROM io_probe_check() WHERE item = 'io_uring'")
    return ["threads"] if refused else ["io_uring", "threads"]


def knows_readahead(session):
    """Is the readahead window of the default tablespace's device known? A container may hide it."""
    device = "SELECT min(read_ahead_kb) FROM io_probe_device_full() WHERE object = 'tablespace' AND spcname = 'pg_default'"
    return session.value(device) is not None


def ways(session):
    """The ways to read, by name: the path, and the engine where there is a choice."""
    direct = {f"direct, {engine}": ("direct", engine) for engine in engines(session)}
    return {**direct, "server": ("server", "auto"), "os": ("os", "auto")}


def seqscan(relation, path, **arguments):
    """A query that scans a relation on one path."""
    return rows_of("seqscan", relation, paths=[path], **arguments)


def random_reads(relation, path, **arguments):
    """A query that fetches blocks of a relation at random on one path."""
    return rows_of("random", relation, paths=[path], **arguments)


def rows_of(probe, relation=None, /, **arguments):
    """A query for the rows of a probe."""
    return f"SELECT * FROM {call(probe, relation, **arguments)}"


def repeated(probe, relation=None, /, **arguments):
    """A query that runs a probe again and again, until the statement's time is used up."""
    # 50000 rows fit into the memory of a query: the server would first write more of them to a file.
    return f"SELECT {call(probe, relation, **arguments)} FROM generate_series(1, 50000)"


@dataclass
class Declared:
    """A function, as surface/ declares it. See there for what the arguments of its example need (`prepare_examples`)."""

    name: str
    types: list
    twin: bool
    who: str
    errors: list
    arguments: str

    @property
    def full(self):
        """The name of the function that returns all columns."""
        return f"{self.name}_full" if self.twin else self.name

    @property
    def signature(self):
        """The same with its types, as regprocedure shows it."""
        return f"{self.full}({','.join(self.types)})"

    @property
    def example(self):
        """A call that takes some milliseconds."""
        return f"{self.full}({self.arguments})"


def declared():
    """All functions."""
    with open(os.path.join(os.path.dirname(__file__), "calls.json"), encoding="utf-8") as file:
        return [Declared(**function) for function in json.load(file)]


FUNCTIONS = declared()
WITH_FULL_ROWS = {function.name.removeprefix("io_probe_") for function in FUNCTIONS if function.twin}


def prepare_examples(session):
    """Makes what the examples need, besides the table `probed`."""
    session.run("""
        CREATE TABLE corrected (id int PRIMARY KEY);
        CREATE TABLE measured AS SELECT io_probe_measure('ping', 'probed', '{"count": 3, "every": "0"}') AS result;
        CREATE FUNCTION measured() RETURNS jsonb LANGUAGE sql AS 'SELECT result FROM public.measured';
        CREATE TABLE stored AS SELECT io_probe_import(measured(), 'first') AS run;
        CREATE FUNCTION stored() RETURNS bigint LANGUAGE sql AS 'SELECT run FROM public.stored';
    """)


def call(probe, relation=None, /, **arguments):
    """A call of a probe with all columns, on a relation or on none."""
    on = {} if relation is None else {"rel": relation}
    given = [f"{name} => {literal(value)}" for name, value in {**on, **arguments}.items()]
    full = "_full" if probe in WITH_FULL_ROWS else ""
    return f"io_probe_{probe}{full}({', '.join(given)})"


def literal(value):
    """A Python value as SQL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"'{{{','.join(map(str, value))}}}'"
    text = json.dumps(value) if isinstance(value, dict) else value
    return "'" + text.replace("'", "''") + "'"


def wait_for(condition, what, timeout=60, pause=0.05):
    """Asks until the answer is true, and returns it. The pauses begin with 5 ms and grow with the time waited, up to `pause`
    seconds."""
    started = time.monotonic()
    while not (answer := condition()):
        waited = time.monotonic() - started
        assert waited < timeout, f"still not after {timeout} s: {what}"
        time.sleep(min(max(waited / 50, 0.005), pause))
    return answer


def progress(session, pid):
    """What the probe of a process reports; None when there is none."""
    rows = session.rows(f"SELECT * FROM io_probe_progress() WHERE pid = {pid}")
    return rows[0] if rows else None


def wait_for_probe(session, pid):
    """Waits until the process runs a probe."""
    return wait_for(lambda: progress(session, pid), f"a probe in process {pid}")


# --- tables --------------------------------------------------------------------------------------------------------


def dense_table(session, name, blocks, place=""):
    """Makes a table with a row a block. All of it is on storage, nothing in shared buffers. (VACUUM FULL writes the new
    file past shared buffers, and syncs it.)"""
    session.run(f"CREATE TABLE {name} (id int, filler text) WITH (autovacuum_enabled = off) {place}")
    session.run(f"ALTER TABLE {name} ALTER filler SET STORAGE PLAIN")
    session.run(f"INSERT INTO {name} SELECT g, repeat('x', 8000) FROM generate_series(1, {blocks}) AS g")
    session.run(f"VACUUM FULL {name}; CHECKPOINT")


def sparse_table(session, name, blocks):
    """Makes a table of `blocks` blocks, of which only the first was ever written."""
    session.run(f"CREATE TABLE {name} WITH (autovacuum_enabled = off) AS SELECT 1 AS id; CHECKPOINT")
    last = (blocks - 1) // SEGMENT_BLOCKS
    for segment in range(last + 1):
        path = segment_file(session, name, segment)
        with open(path, "ab") as file:
            file.truncate((SEGMENT_BLOCKS if segment < last else blocks - last * SEGMENT_BLOCKS) * BLOCK)
        if IS_ROOT:
            os.chown(path, *server_ids())


def segment_file(session, relation, segment=0):
    """The path of a segment file."""
    base = os.path.join(PGDATA, session.value(f"SELECT pg_relation_filepath('{relation}')"))
    return f"{base}.{segment}" if segment else base


# --- processes -----------------------------------------------------------------------------------------------------


PF_IO_WORKER = 0x10
PF_EXITING = 0x4
# What the kernel shows as the name of a file that has none (O_TMPFILE).
SCRATCH = r"/#\d+ \(deleted\)$"


class Process:
    """What a server process holds, seen from outside."""

    def __init__(self, pid):
        self.pid = pid

    def threads(self):
        """Names of its threads. Workers of the kernel's io_uring are left out: they come and go when they like. So are exiting
        threads: a join returns a moment before the kernel has removed the thread."""
        found = []
        for path in glob.glob(f"/proc/{self.pid}/task/*/stat"):
            # Number (name) state parent group session terminal foreground flags …
            name, _, rest = read(path).partition("(")[2].rpartition(")")
            if rest and not int(rest.split()[6]) & (PF_IO_WORKER | PF_EXITING):
                found.append(name)
        return sorted(found)

    def descriptors(self):
        """What its descriptors refer to, without those that the server itself keeps. The server opens the files of
        relations and of the WAL for writing; a probe writes to scratch files only."""
        found = []
        for link in glob.glob(f"/proc/{self.pid}/fd/*"):
            try:
                target = os.readlink(link)
                flags = re.search(r"^flags:\s+(\d+)", read(link.replace("/fd/", "/fdinfo/")), re.MULTILINE)
            except FileNotFoundError:
                continue
            written = flags and int(flags.group(1), 8) & os.O_ACCMODE == os.O_RDWR
            if not (written and target.startswith("/")) or re.search(SCRATCH, target):
                found.append(re.sub(r":\[\d+\]", "", target))
        return sorted(found)

    def memory(self):
        """Bytes of memory that are its own, not shared."""
        return int(re.search(r"^RssAnon:\s+(\d+)", read(f"/proc/{self.pid}/status"), re.MULTILINE).group(1)) * 1024

    def exists(self):
        """Is it there, and no zombie?"""
        state = read(f"/proc/{self.pid}/stat").rpartition(")")[2].split()[:1]
        return state not in ([], ["Z"])


def wait_until_gone(pid):
    """Waits until a process is gone for its postmaster, too, which then takes no new session until it has recovered."""
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the process")


def kill_backend(pid):
    """Kills the process of a session."""
    os.kill(pid, signal.SIGKILL)
    wait_until_gone(pid)


class Watched:
    """The most that a server process holds meanwhile, beyond what it holds at first."""

    def __init__(self, session):
        self.process = Process(session.pid)

    def __enter__(self):
        self.memory = self.descriptors = 0
        self.before = self.process.memory(), len(self.process.descriptors())
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.over.wait(0.02):
            self.memory = max(self.memory, self.process.memory() - self.before[0])
            self.descriptors = max(self.descriptors, len(self.process.descriptors()) - self.before[1])

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def __str__(self):
        return f"at most {self.memory / (1 << 20):.1f} MiB and {self.descriptors} descriptors more"


def read(path):
    """The text of a file; empty when it is gone (a thread or descriptor that ended meanwhile)."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def server_ids():
    """User and group that own the server's files."""
    owner = os.stat(PGDATA)
    return owner.st_uid, owner.st_gid


def as_server(*command, first=None):
    """Runs a command as the user who owns the server, and returns what it printed. The new process first calls `first`."""
    user, group = server_ids()
    ids = {"user": user, "group": group, "extra_groups": []} if IS_ROOT else {}

    def prepare():
        first()
        if IS_ROOT:
            os.setgroups([])
            os.setgid(group)
            os.setuid(user)

    ids = {"preexec_fn": prepare} if first else ids
    done = subprocess.run(command, cwd="/", check=False, capture_output=True, text=True, **ids)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def server_processes(data=PGDATA):
    """Processes whose working directory is a data directory."""
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and _working_directory(pid) == os.path.realpath(data)]


def _working_directory(pid):
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def start_server():
    """Starts the server after a test has stopped it."""
    as_server("pg_ctl", "start", "-w", "-t", "60", "-D", PGDATA, "-l", SERVER_LOG)


@contextlib.contextmanager
def server_with(**settings):
    """Meanwhile the server runs with these settings. It is restarted before and after, which ends all sessions."""
    try:
        with Session() as session:
            for name, value in settings.items():
                session.run(f"ALTER SYSTEM SET {name} = {literal(value)}")
        restart_server()
        yield
    finally:
        with Session() as session:
            for name in settings:
                session.run(f"ALTER SYSTEM RESET {name}")
        restart_server()


def restart_server():
    """Stops the server and starts it again."""
    as_server("pg_ctl", "stop", "-w", "-m", "fast", "-D", PGDATA)
    start_server()


# What the server writes in its daily work: its WAL, statistics and caches, and the relations themselves.
DAILY = re.compile(
    r"^(pg_wal|pg_stat|pg_stat_tmp|pg_xact|pg_subtrans|pg_logical)/|(^|/)(pg_internal\.init|\d+(_\w+)?(\.\d+)?)$"
)


def files_in_data_directory(data=PGDATA):
    """All files there that DAILY does not match, and all with "tmp" in the name."""
    found = set()
    for directory, _, names in os.walk(data):
        for name in names:
            path = os.path.relpath(os.path.join(directory, name), data)
            if "tmp" in name or not DAILY.search(path):
                found.add(path)
    return found
