#!/usr/bin/env -S python3 -B
"""What each probe costs the server that it runs on, seen from outside.

    what_probes_cost.py             on the server that the environment names, which it restarts again and again and
                                    fills with a table of its own; run.sh starts one

Each probe is called RUNS (1) times on a table of MIB (1024) MiB with two indexes, alone on the server. Before each call
the server is restarted, so that shared buffers hold nothing of that table, and all of them are filled with another one
(pg_prewarm). The file of the table is read, or dropped from the OS cache, as the line says. The session is new and has
called io_probe_check() once. A line tells, as differences from right before the call to right after it:
    s               wall clock of the statement
    CPU s           user and system time of the backend with all its threads (/proc/PID/stat, in ticks of 10 ms)
    read, written   MiB that it fetched from storage, and that it wrote (read_bytes, write_bytes of /proc/PID/io);
                    what the page cache serves is in neither
    OS cache        MiB of the table in the OS cache, before and after (io_probe_cache)
    own buffers     shared buffers that hold the table or its indexes afterwards (pg_buffercache)
    pushed out      shared buffers that held the other table before, and no longer do; some hold catalogs then
and, as the most that was seen every 20 ms while it runs:
    memory          MiB of its own, beyond what it had before (RssAnon of /proc/PID/status)
    scratch         MiB in files without a name
    threads         beyond the first, without those that the kernel makes for io_uring
With io_method = worker, the I/O workers' CPU time and I/O are added; nothing else uses the workers then. The heavyweight
locks that it held (pg_locks, a look every 0.2 s, those on catalogs left out) are listed below the table. Of several runs
the median is told, of memory, files, threads and buffers the most. ONLY, a regular expression, picks calls.
"""

import os
import re
import stat
import statistics
import sys
import threading
import time

from commands import processor_seconds

MIB = 1 << 20
# Rows in a block, of 172 bytes each.
ROWS_A_BLOCK = 47
QUERY = "SELECT max(info) FROM probed"

# The calls, and whether the OS cache holds the table before: what a call is to evict has to be there.
CALLS = [
    ("SELECT 1", True),
    ("io_probe_seqscan_full('probed')", False),
    ("io_probe_seqscan_full('probed', cold => true)", True),
    ("""io_probe_seqscan_full('probed', duration => '3 s', options => '{"max_mib_s": 50}')""", False),
    ("io_probe_random_full('probed')", False),
    ("io_probe_random_full('probed', cold => true)", True),
    ("""io_probe_random_full('probed', duration => '3 s', options => '{"max_iops": 200}')""", False),
    ("io_probe_depth_full('probed')", False),
    ("""io_probe_depth_full('probed', duration => '7 s', options => '{"max_iops": 200}')""", False),
    ("io_probe_page_cost_full('probed')", False),
    ("io_probe_page_cost_full('probed', cold => true)", True),
    ("""io_probe_page_cost_full('probed', duration => '5 s', options => '{"max_mib_s": 50}')""", False),
    ("io_probe_readahead_full('probed')", True),
    ("""io_probe_readahead_full('probed', '{128}', '4 s', options => '{"max_mib_s": 50}')""", False),
    ("io_probe_ping_full('probed')", False),
    ("io_probe_ping_full('probed', mode => 'write')", False),
    ("io_probe_sync_full()", True),
    ("io_probe_sync_full(depth => 16, duration => '3.2 s')", True),
    ("""io_probe_sync_full(sections => '{wal_segment}', duration => '3.2 s', options => '{"max_iops": 100}')""", True),
    ("io_probe_write_full()", True),
    ("io_probe_mix_full('probed')", False),
    ("io_probe_sustain_full('probed', duration => '10 s')", False),
    ("io_probe_recommend_full('probed')", False),
    ("io_probe_recommend_full('probed', cold => true, writes => true)", True),
    ("""io_probe_recommend_full('probed', settings => '{random_page_cost}', duration => '5 s', options => '{"max_mib_s": 50}')""",
     False),
    ("io_probe_recommend_full('probed', settings => '{io_method}', cold => true)", True),
    ("io_probe_report_full('probed')", False),
    ("io_probe_report_full('probed', writes => true)", False),
    ("io_probe_correlation_full('probed')", True),
    ("io_probe_evict('probed')", True),
    (f"io_probe_explain_full('{QUERY}', execute => true)", False),
    ("io_probe_record('ping', 'probed')", False),
    ("io_probe_iostat_full()", True),
    ("io_probe_device_full()", True),
    ("io_probe_cache('probed')", True),
    ("io_probe_check()", True),
    ("io_probe_progress()", True),
    (f"io_probe_explain_full('{QUERY}')", True),
    ("io_probe_compare(1, 2)", True),
    ("io_probe_changes()", True),
    ("io_probe_latest", True),
]  # fmt: skip
COLUMNS = ["s", "CPU s", "read", "written", "OS cache", "own buffers", "pushed out", "memory", "scratch", "threads"]


# --- what the kernel tells of a process ------------------------------------------------------------------------------


def bytes_moved(text):
    """Bytes fetched from storage and written, of /proc/PID/io."""
    fields = dict(line.split(": ") for line in text.splitlines())
    return int(fields["read_bytes"]), int(fields["write_bytes"])


def account(pids):
    """Processor seconds, and bytes read and written, of these processes together."""
    from lib import read

    moved = [bytes_moved(read(f"/proc/{pid}/io")) for pid in pids]
    seconds = sum(processor_seconds(pid) for pid in pids)
    return seconds, sum(one[0] for one in moved), sum(one[1] for one in moved)


def scratch_bytes(pid):
    """Bytes in the regular files without a name that a process has open; each file counts once."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            file = os.stat(f"/proc/{pid}/fd/{name}")
        except FileNotFoundError:
            continue
        if stat.S_ISREG(file.st_mode) and file.st_nlink == 0:
            found[file.st_dev, file.st_ino] = file.st_size
    return sum(found.values())


class Looks:
    """What a server process holds at most while a statement runs."""

    LOCKS = """SELECT DISTINCT CASE WHEN locktype = 'relation' THEN concat(mode, ' on ', relation::regclass)
                                    ELSE concat(locktype, ' ', mode) END AS held
               FROM pg_locks WHERE pid = {} AND locktype <> 'virtualxid' AND (relation IS NULL OR relation >= 16384)"""

    def __init__(self, pid, watcher):
        from lib import Process

        self.process, self.watcher = Process(pid), watcher
        self.memory = self.scratch = self.threads = 0
        self.locks = set()

    def __enter__(self):
        self.before = self.process.memory()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        look = 0
        while not self.over.wait(0.02):
            self.memory = max(self.memory, self.process.memory() - self.before)
            self.scratch = max(self.scratch, scratch_bytes(self.process.pid))
            self.threads = max(self.threads, len(self.process.threads()) - 1)
            if look % 10 == 0:
                self.locks |= {row["held"] for row in self.watcher.rows(self.LOCKS.format(self.process.pid))}
            look += 1

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


# --- one call --------------------------------------------------------------------------------------------------------

BUFFERS = """SELECT count(*) FILTER (WHERE relfilenode = pg_relation_filenode('other')) AS other,
                    count(*) FILTER (WHERE relfilenode IN (pg_relation_filenode('probed'), pg_relation_filenode('probed_id'),
                                                           pg_relation_filenode('probed_key'))) AS own
             FROM pg_buffercache WHERE reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())"""
CACHED = "SELECT os_cached_bytes FROM io_probe_cache('probed')"


def prepare_table(session, mib):
    """Makes the table that is probed, on storage as a whole, and one that fills shared buffers."""
    buffers = session.value("SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers'")
    session.run("SET maintenance_work_mem = '256MB'; CREATE EXTENSION pg_buffercache; CREATE EXTENSION pg_prewarm")
    for name, blocks in [("probed", mib * MIB // 8192), ("other", buffers * 11 // 10)]:
        session.start(f"""CREATE TABLE {name} AS SELECT i AS id, hashint4(i) & 1048575 AS key, repeat(md5(i::text), 4) AS info
                          FROM generate_series(1, {blocks * ROWS_A_BLOCK}) AS i""")  # fmt: skip
        session.finish(timeout=600)
    session.start("""CREATE INDEX probed_id ON probed (id); CREATE INDEX probed_key ON probed (key);
                     VACUUM (FREEZE, ANALYZE); CHECKPOINT""")  # fmt: skip
    session.finish(timeout=600)
    session.run("SELECT io_probe_record('ping', 'probed') FROM generate_series(1, 2)")


def place(path, cached):
    """Reads a file, or drops it from the OS cache."""
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while cached and file.read(MIB):
            pass


def cost(call, cached):
    """The cost of one call, on a server that was just started."""
    from lib import PGDATA, Session, restart_server

    restart_server()
    with Session() as session, Session() as watcher:
        watcher.run("SET jit = off; SELECT pg_prewarm('other')")
        place(os.path.join(PGDATA, watcher.value("SELECT pg_relation_filepath('probed')")), cached)
        # What Session sets for tests is not the default.
        session.run("SELECT FROM io_probe_check(); RESET ALL")
        workers = watcher.value("SELECT json_agg(pid) FROM pg_stat_activity WHERE backend_type = 'io worker'") or []
        cached_before, buffers_before = watcher.value(CACHED), watcher.row(BUFFERS)
        accounts = account([session.pid, *workers])
        with Looks(session.pid, watcher) as looks:
            started = time.monotonic()
            session.start(call if call.startswith("SELECT") else f"SELECT * FROM {call}")
            session.finish(timeout=600)
            seconds = time.monotonic() - started
        processor, read, written = (b - a for a, b in zip(accounts, account([session.pid, *workers])))
        buffers = watcher.row(BUFFERS)
        return {
            "s": seconds, "CPU s": processor, "read": read / MIB, "written": written / MIB,
            "OS cache": (cached_before / MIB, watcher.value(CACHED) / MIB), "own buffers": buffers["own"],
            "pushed out": buffers_before["other"] - buffers["other"], "memory": looks.memory / MIB,
            "scratch": looks.scratch / MIB, "threads": looks.threads, "locks": looks.locks,
        }  # fmt: skip


# --- what is printed -------------------------------------------------------------------------------------------------


def brief(number):
    """A number with as many digits as its size needs."""
    return f"{number:.0f}" if number >= 99.5 or number == 0 else f"{number:.1f}" if number >= 0.95 else f"{number:.2f}"


def line(call, costs):
    """A row of the table, of one or several runs."""
    cells = []
    for column in COLUMNS:
        values = [one[column] for one in costs]
        if column == "OS cache":
            before, after = (statistics.median(side) for side in zip(*values))
            cells.append(f"{brief(before)} → {brief(after)}")
        elif column in ("s", "CPU s", "read", "written"):
            cells.append(brief(statistics.median(values)))
        elif column in ("memory", "scratch"):
            cells.append(brief(max(values)))
        else:
            cells.append(str(max(values)))
    return f"| `{call}` | {' | '.join(cells)} |"


def locks_of(costs):
    """By the locks that were held, the calls that held them."""
    found = {}
    for call, runs in costs.items():
        held = "; ".join(sorted(set().union(*(one["locks"] for one in runs))))
        found.setdefault(held or "none was seen", []).append(call)
    return found


def main():
    """Measures all calls."""
    from lib import Session

    with Session() as session:
        prepare_table(session, int(os.environ.get("MIB", 1024)))
        settings = session.value("""SELECT string_agg(name || ' = ' || current_setting(name), ', ' ORDER BY name) FROM pg_settings
            WHERE name IN ('effective_io_concurrency', 'io_method', 'server_version', 'shared_buffers')""")
    print(settings)
    print(f"\n| call | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}", flush=True)
    costs = {}
    for call, cached in CALLS:
        if not re.search(os.environ.get("ONLY", ""), call):
            continue
        costs[call] = [cost(call, cached) for _ in range(int(os.environ.get("RUNS", 1)))]
        print(line(call, costs[call]), flush=True)
    print("\nLocks:")
    for held, calls in locks_of(costs).items():
        print(f"- {held}: {', '.join(calls)}")


if __name__ == "__main__":
    if not sys.argv[1:]:
        main()
    else:
        sys.exit("usage: what_probes_cost.py")
