#!/usr/bin/env -S python3 -B
"""Devices watched from a session, and a query with them, against the kernel's counters, EXPLAIN, and faults.

Needs root, for a loop device of its own.
"""

import json
import mmap
import os
import signal
import time
import unittest
from datetime import datetime

import cgroups
from lib import BLOCK, VERSION, Failure, Session, Watched, call, dense_table, main, needs_root, progress, read, rows_of
from lib import say, server_processes, wait_for, wait_for_probe
from probes import Holdings
from storage import LoopDevice, create_tablespace, run, succeeds

BLOCKS = 4096
BYTES = BLOCKS * BLOCK
MIB = 1 << 20
# Longer than any test lets a probe run.
LONG = "50 s"
# The fields of a block device's stat file, in its order.
STAT = "reads rmerges rsectors rticks writes wmerges wsectors wticks in_flight io_ticks weighted " \
       "discards dmerges dsectors dticks flushes fticks".split()  # fmt: skip
# The device's counters, and the columns that are rates of them. TIMES and SIZES have the rate and the mean of a counter.
RATES = {
    "reads": "r_s", "rmerges": "rrqm_s", "rsectors": "rmib_s",
    "writes": "w_s", "wmerges": "wrqm_s", "wsectors": "wmib_s",
    "discards": "d_s", "dmerges": "drqm_s", "dsectors": "dmib_s", "flushes": "f_s",
}  # fmt: skip
TIMES = {"rticks": ("r_s", "r_await_ms"), "wticks": ("w_s", "w_await_ms"), "dticks": ("d_s", "d_await_ms"),
         "fticks": ("f_s", "f_await_ms")}  # fmt: skip
SIZES = {"rsectors": ("r_s", "rareq_kb"), "wsectors": ("w_s", "wareq_kb"), "dsectors": ("d_s", "dareq_kb")}


def setUpModule():
    needs_root()
    # The file is sparse: what is never written takes no room.
    Iostat.disk = LoopDevice(16 * BYTES, direct=True)
    unittest.addModuleCleanup(Iostat.disk.remove)
    Iostat.name = os.path.basename(Iostat.disk.device)
    Iostat.disk.set_queue(1280, 128)
    with Session() as session:
        place = create_tablespace(session, "elsewhere", Iostat.disk.mount_point)
        dense_table(session, "dense", BLOCKS, place)
    unittest.addModuleCleanup(drop)


def drop():
    with Session() as session:
        session.run("DROP TABLE dense")
        session.run("DROP TABLESPACE elsewhere")


class Iostat(unittest.TestCase):
    """A session, and a table on a device of its own."""

    def setUp(self):
        self.session = Session()
        self.addCleanup(lambda: self.session.close())
        self.session.run("SET max_parallel_workers_per_gather = 0")

    def make_cold(self):
        self.disk.make_cold(self.session, "dense")

    def stat(self):
        """The device's counters."""
        fields = [int(word) for word in read(f"/sys/class/block/{self.name}/stat").split()]
        return dict(zip(STAT, fields))

    def moved(self, before):
        """What the counters have gained."""
        return {name: now - before[name] for name, now in self.stat().items()}

    def of_device(self, rows):
        """The rows of the device, which are numbered without a gap and follow each other in time."""
        rows = [row for row in rows if row["device"] == self.name]
        self.assertEqual([row["sample"] for row in rows], list(range(1, len(rows) + 1)))
        self.assertEqual({row["status"] for row in rows}, {"ok"}, rows)
        for earlier, row in zip(rows, rows[1:]):
            between = datetime.fromisoformat(row["sampled_at"]) - datetime.fromisoformat(earlier["sampled_at"])
            # Two clocks, and a process that may lose the CPU between them.
            self.assertAlmostEqual(between.total_seconds() * 1000, row["elapsed_ms"], delta=100)
        return rows

    def assert_counted(self, rows, moved):
        """The rows of the device are what its counters say: rates in sum, means weighted by their rates."""
        total = lambda value: sum(value(row) * row["elapsed_ms"] for row in rows)
        for counter, column in RATES.items():
            unit = 2048 if counter.endswith("sectors") else 1
            if counter in moved:
                self.about(total(lambda row: row[column]) / 1000, moved[counter] / unit, column)
        for counter, (rate, mean) in TIMES.items():
            if counter in moved:
                self.about(total(lambda row: row[rate] / 1000 * (row[mean] or 0)), moved[counter], mean)
        for counter, (rate, mean) in SIZES.items():
            if counter in moved:
                self.about(total(lambda row: row[rate] / 1000 * (row[mean] or 0)) * 2, moved[counter], mean)
        self.about(total(lambda row: row["aqu_sz"]), moved["weighted"], "aqu_sz")
        for row in rows:
            # Busy time advances by ticks of up to 10 ms.
            self.assertTrue(0 <= row["util_pct"] <= 100 + 2 * 10 / row["elapsed_ms"] * 100, row)
            shares = [row[f"cpu_{kind}_pct"] for kind in ["user", "system", "iowait", "idle", "steal"]]
            if None not in shares or row["elapsed_ms"] > 100:  # in less, its clock may not have ticked
                self.assertAlmostEqual(sum(shares), 100, delta=0.1)
            some, full = row["io_pressure_pct"], row["io_pressure_full_pct"]
            self.assertTrue(some is None or 0 <= full <= some <= 100, row)
            for rate, mean in [*TIMES.values(), *SIZES.values()]:
                self.assertEqual(row[mean] is None, not row[rate], (mean, row))

    def about(self, value, expected, what):
        """Within 1 %, and a unit for what is counted in milliseconds or rounded."""
        self.assertAlmostEqual(value, expected, delta=expected * 0.01 + (1 if expected else 0), msg=what)

    def assert_fails(self, query, sqlstate, words=""):
        """The query is refused by this SQLSTATE and with these words."""
        with self.subTest(query), self.assertRaises(Failure, msg=query) as raised:
            self.session.run(query)
        if hasattr(raised, "exception"):
            self.assertEqual(raised.exception.sqlstate, sqlstate, raised.exception)
            self.assertRegex(str(raised.exception), words or "ERROR")


class Samples(Iostat):
    """io_probe_iostat."""

    def test_samples_are_what_the_counters_say(self):
        run("sync", "-f", self.disk.mount_point)
        self.session.start_rows(rows_of("iostat", every="2 s", count=5, options={"device": self.name}))
        with Session() as control:
            wait_for_probe(control, self.session.pid)
        before = self.stat()
        self.move_data(seconds=1)
        moved = self.moved(before)
        self.assertTrue(self.session.busy(), "it ended too early to see all")
        rows = self.of_device(self.session.finish_rows())
        say(", ".join(f"{name} {number}" for name, number in moved.items()))
        self.assertEqual(len(rows), 5)
        self.assertGreater(min(moved["reads"], moved["writes"]), 5)
        self.assert_counted(rows, moved)
        # The interval after a late sample is shorter.
        self.assertGreater(sum(row["elapsed_ms"] for row in rows), 5 * 2000 - 10)

    def move_data(self, seconds):
        """Reads, writes and flushes of some sizes, one at a time, for `seconds`; then discards."""
        path = os.path.join(self.disk.mount_point, "moved")
        file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o600)
        buffer = mmap.mmap(-1, MIB)
        over = time.monotonic() + seconds
        size = 4096
        while time.monotonic() < over:
            os.pwritev(file, [memoryview(buffer)[:size]], 0)
            os.preadv(file, [memoryview(buffer)[:size]], 0)
            os.preadv(file, [memoryview(buffer)[:4096]], 0)
            if size == MIB:
                os.fsync(file)
            size = size * 2 if size < MIB else 4096
            time.sleep(0.002)
        os.close(file)
        os.remove(path)
        if not succeeds("fstrim", self.disk.mount_point):
            say("no discards here")
        run("sync", "-f", self.disk.mount_point)

    def test_each_device_of_the_server(self):
        devices = self.session.rows("SELECT DISTINCT device FROM io_probe_device_full() WHERE device IS NOT NULL")
        rows = self.session.rows("SELECT * FROM io_probe_iostat_full('100 ms', count => 3)")
        self.assertIn(self.name, [row["device"] for row in devices])
        for sample in [1, 2, 3]:
            found = sorted(row["device"] for row in rows if row["sample"] == sample)
            self.assertEqual(found, sorted(row["device"] for row in devices))
        self.assertEqual(len({row["sampled_at"] for row in rows}), 3)
        self.of_device(rows)
        # Without `count` it gives one sample, of the interval that begins with the call.
        (row,) = self.of_device(self.session.rows("SELECT * FROM io_probe_iostat_full(every => '200 ms')"))
        self.assertGreater(row["elapsed_ms"], 190)

    def test_progress(self):
        self.session.start_rows(rows_of("iostat", every="200 ms", count=5, options={"device": self.name}))
        with Session() as control:
            seen = self.seen(control)
        self.assertEqual({(row["probe"], row["total"]) for row in seen if row["total"]}, {("iostat", 5)})
        done = [row["done"] for row in seen]
        self.assertEqual(done, sorted(done))
        self.assertTrue(len(set(done)) >= 2 and set(done) <= set(range(6)), set(done))
        self.assertEqual(len(self.session.finish_rows()), 5)

    def test_progress_of_a_query(self):
        self.session.start_rows(rows_of("iostat_query", query="SELECT pg_sleep(1)", every="100 ms"))
        with Session() as control:
            seen = self.seen(control)
        self.assertEqual({row["probe"] for row in seen}, {"iostat_query"})
        self.session.finish_rows()

    def seen(self, control):
        """What another session sees while the probe runs."""
        seen = [wait_for_probe(control, self.session.pid)]
        self.assertIsNotNone(seen[0]["started_at"])
        while (row := progress(control, self.session.pid)) is not None:
            seen.append(row)
            time.sleep(0.01)
        return seen


class Query(Iostat):
    """io_probe_iostat_query: its figures."""

    def watch(self, query, **arguments):
        """The rows of the device, and the closing one."""
        rows = self.session.rows(rows_of("iostat_query", query=query, **arguments))
        *series, last = rows
        self.assertEqual([row for row in series if row["device"] is None or row["sample"] is None], [])
        self.assertEqual((last["device"], last["sample"]), (None, None))
        closing = [name for name in last if name in CLOSING]
        self.assertEqual(set(closing), set(CLOSING))
        self.assertEqual([row for row in series if any(row[name] is not None for name in closing)], [])
        return self.of_device(series), last

    def explain(self, query):
        """What EXPLAIN counts of a query, by the names of our columns."""
        text = "\n".join(self.session.run(f"EXPLAIN (ANALYZE, BUFFERS, WAL, FORMAT JSON) {query}"))
        plan = json.loads(text)[0]["Plan"]
        return {column: plan[name] for column, name in CLOSING.items() if name}, plan

    def assert_as_explained(self, last, explained):
        # EXPLAIN leaves out what planning looks up in the catalogs, some pages of which it may prune, and what the end of the
        # query writes.
        for name, more in {"shared_blks_hit": 200, "temp_blks_written": 200, "shared_blks_dirtied": 4, "wal_bytes": 4 * 9000}.items():
            if name in explained:
                few = explained.pop(name)
                self.assertTrue(few <= last[name] <= few + more, f"{name}: {few}, {last[name]}")
        self.assertEqual({name: last[name] for name in explained}, explained)

    def test_a_cold_scan(self):
        pausing = "SELECT CASE WHEN id % 8 = 0 THEN pg_sleep(0.001) END FROM dense"
        for query, every in [("SELECT * FROM dense", "1 s"), (pausing, "100 ms")]:
            with self.subTest(query):
                self.cold_scan(query, every)

    def cold_scan(self, query, every):
        self.make_cold()
        explained, _ = self.explain(query)
        self.make_cold()
        before, started = self.stat(), time.monotonic()
        rows, last = self.watch(query, every=every)
        elapsed_ms = (time.monotonic() - started) * 1000
        moved = self.moved(before)
        self.assert_counted(rows, moved)
        self.assertEqual((last["query_rows"], last["shared_blks_read"]), (BLOCKS, BLOCKS))
        self.assert_as_explained(last, explained)
        self.about(last["device_bytes"], moved["rsectors"] * 512, "device_bytes")
        self.about(last["device_bytes"], BYTES, "device_bytes")
        self.assertEqual(last["device_source"], "io_workers" if self.by_workers() else "backend")
        watched_ms = sum(row["elapsed_ms"] for row in rows)
        say(f"{len(rows)} samples of {watched_ms:.0f} ms, {last['elapsed_ms']:.0f} ms in the query, "
            f"{moved['reads']} reads, {last['notes']}")  # fmt: skip
        self.assertLessEqual(last["elapsed_ms"], watched_ms + 1)
        self.assertLessEqual(watched_ms, elapsed_ms)
        if every == "100 ms":
            # BLOCKS / 8 pauses take a millisecond each at least.
            self.assertGreaterEqual(len(rows), BLOCKS / 8 / 100)

    def by_workers(self):
        return VERSION >= 18 and self.session.value("SELECT current_setting('io_method')") == "worker"

    def test_a_parallel_scan(self):
        self.session.run("SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0")
        self.session.run("SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET seq_page_cost = 0")
        query = "SELECT * FROM dense"
        self.make_cold()
        explained, plan = self.explain(query)
        self.assertTrue(plan["Node Type"].startswith("Gather") and plan["Workers Launched"] > 0, plan)
        self.make_cold()
        before = self.stat()
        rows, last = self.watch(query)
        self.assert_counted(rows, self.moved(before))
        self.assert_as_explained(last, explained)
        self.assertEqual(last["query_rows"], BLOCKS)
        self.assertEqual((last["device_bytes"], last["device_source"]), (None, None))
        self.assertRegex("; ".join(last["notes"] or []), "parallel")

    def test_blocks_are_those_of_explain(self):
        self.session.run("CREATE TEMP TABLE passing AS SELECT * FROM dense LIMIT 100; SET work_mem = '64kB'")
        self.session.run("PREPARE nothing AS SELECT 1")
        for query in ["SELECT 1", "VALUES (1), (2)", "TABLE passing", "SELECT count(*) FROM dense",
                      "SELECT md5(id::text) FROM dense ORDER BY 1",
                      "WITH few AS MATERIALIZED (SELECT * FROM dense WHERE id < 200) "
                      "SELECT count(*) FROM few JOIN passing USING (id)",
                      "SELECT g FROM generate_series(1, 100000) g"]:  # fmt: skip
            with self.subTest(query):
                self.session.run(query)
                explained, plan = self.explain(query)
                _, last = self.watch(query)
                self.assert_as_explained(last, explained)
                self.assertEqual(last["query_rows"], plan["Actual Rows"])
        self.assertGreater(last["temp_blks_written"], 0)

    def test_what_a_read_writes(self):
        """A query that reads pages prunes them, and so writes WAL."""
        def seen(name):
            self.session.run(f"CREATE TABLE {name} (id int, filler text) "
                             "WITH (fillfactor = 55, autovacuum_enabled = off)")  # fmt: skip
            self.addCleanup(self.session.run, f"DROP TABLE {name}")
            self.session.run(f"INSERT INTO {name} SELECT g, repeat('x', 100) FROM generate_series(1, 5000) g")
            self.session.run(f"UPDATE {name} SET id = -id; CHECKPOINT")
            return f"SELECT * FROM {name}"

        explained, _ = self.explain(seen("one"))
        _, last = self.watch(seen("other"))
        self.assertGreater(last["wal_bytes"], 0)
        wal = explained.pop("wal_bytes")
        self.assertAlmostEqual(last["wal_bytes"], wal, delta=wal * 0.05)
        self.assert_as_explained(last, explained)

    def test_devices(self):
        every = self.session.rows(rows_of("iostat_query", query="SELECT pg_sleep(1)", every="100 ms"))
        devices = self.session.rows("SELECT DISTINCT device FROM io_probe_device_full() WHERE device IS NOT NULL")
        self.assertEqual({row["device"] for row in every}, {row["device"] for row in devices} | {None})
        # Ten samples, unless the machine is busy.
        self.assertGreaterEqual(max(row["sample"] or 0 for row in every), 3)
        one = self.session.rows(rows_of("iostat_query", query="SELECT 1", options={"device": self.name}))
        self.assertEqual([row["device"] for row in one], [self.name, None])

    def test_rows_are_discarded(self):
        self.session.rows(rows_of("iostat_query", query="SELECT 1"))
        with Watched(self.session) as watched:
            query = "SELECT generate_series(1, 10000000), repeat('x', 100)"
            _, last = self.watch(query)
        say(f"{last['query_rows']} rows in {last['elapsed_ms']:.0f} ms: {watched}")
        self.assertEqual(last["query_rows"], 10000000)
        self.assertLess(watched.memory, 4 * MIB)

    def test_a_probe_is_watched(self):
        self.make_cold()
        before = self.stat()
        rows, last = self.watch("SELECT * FROM io_probe_seqscan_full('dense', paths => '{direct}')")
        self.assert_counted(rows, self.moved(before))
        self.assertEqual(last["query_rows"], 1)
        self.assertGreaterEqual(self.moved(before)["rsectors"] * 512, BYTES)
        _, last = self.watch("SELECT * FROM io_probe_iostat_full('100 ms', count => 2)")
        self.assertGreaterEqual(last["query_rows"], 2)
        _, last = self.watch(f"SELECT * FROM {call('iostat_query', query='SELECT 1')}")
        self.assertGreaterEqual(last["query_rows"], 2)

    def test_what_is_no_query_that_reads(self):
        """Further statements are in sql/iostat.sql."""
        self.session.run("CREATE TABLE target (id int); CREATE SEQUENCE numbers; PREPARE one AS SELECT 1")
        self.addCleanup(self.session.run, "DROP TABLE target; DROP SEQUENCE numbers; DROP FUNCTION writes")
        self.session.run("CREATE FUNCTION writes() RETURNS int LANGUAGE plpgsql AS "
                         "$$ BEGIN INSERT INTO target VALUES (1); RETURN 1; END $$")  # fmt: skip
        refused = {
            "25006": ["UPDATE target SET id = 2", "SELECT writes()",
                      "MERGE INTO target USING (VALUES (1)) v (id) ON target.id = v.id "
                      "WHEN NOT MATCHED THEN INSERT VALUES (1)"],
            "25001": ["SELECT set_config('transaction_read_only', 'off', true), nextval('numbers')"],
            "0A000": ["EXECUTE one", "COPY target TO '/dev/null'", "CALL nosuch()", "DO 'BEGIN END'", "SET work_mem = '1MB'",
                      "SHOW work_mem", "DECLARE c CURSOR FOR SELECT 1", "BEGIN", "ROLLBACK", "VACUUM dense"],
        }  # fmt: skip
        for sqlstate, queries in refused.items():
            for query in queries:
                self.assert_fails(rows_of("iostat_query", query=query), sqlstate)
        self.assertEqual(self.session.value("SELECT count(*) FROM target"), 0)
        self.assertEqual(self.session.value("SELECT is_called FROM numbers"), False)

    def test_rights_are_those_at_the_time_of_the_call(self):
        """Who may call it at all is in sql/privileges.sql and sql/iostat.sql."""
        self.session.run("CREATE ROLE watcher")
        self.addCleanup(self.session.run, "RESET ROLE; DROP OWNED BY watcher; DROP ROLE watcher")
        self.session.run("GRANT EXECUTE ON FUNCTION io_probe_iostat_query, io_probe_iostat_query_full TO watcher")
        query = rows_of("iostat_query", query="SELECT count(*) FROM dense")
        self.session.run("GRANT SELECT ON dense TO watcher; SET ROLE watcher")
        self.assertEqual(self.session.rows(query)[-1]["query_rows"], 1)
        self.session.run("RESET ROLE; REVOKE SELECT ON dense FROM watcher; SET ROLE watcher")
        self.assert_fails(query, "42501", "permission denied for table dense")


# Columns of the closing row alone, and what EXPLAIN calls them.
CLOSING = {
    "query_rows": None, "device_bytes": None, "device_source": None,
    "shared_blks_hit": "Shared Hit Blocks", "shared_blks_read": "Shared Read Blocks",
    "shared_blks_dirtied": "Shared Dirtied Blocks", "shared_blks_written": "Shared Written Blocks",
    "local_blks_hit": "Local Hit Blocks", "local_blks_read": "Local Read Blocks",
    "local_blks_written": "Local Written Blocks", "temp_blks_read": "Temp Read Blocks",
    "temp_blks_written": "Temp Written Blocks", "wal_bytes": "WAL Bytes",
}  # fmt: skip


class Ends(Iostat):
    """However a call ends, nothing stays. (Kills and shutdowns are in crashes.py, many calls in growth.py.)"""

    STATES = {
        "samples": "SELECT * FROM io_probe_iostat_full('1 s', count => 50)",
        "asleep": rows_of("iostat_query", query="SELECT pg_sleep(50)", every="100 ms"),
        "in a long interval": rows_of("iostat_query", query="SELECT pg_sleep(50)", every="50 s"),
        "at work": rows_of("iostat_query", query="SELECT generate_series(1, 10000000000)"),
        "in a function": rows_of("iostat_query", query="SELECT works()"),
        "in a probe": rows_of("iostat_query", query="SELECT * FROM io_probe_seqscan_full('dense', paths => '{direct}', "
                              f"duration => '{LONG}', options => '{{\"max_mib_s\": 1}}')"),
    }  # fmt: skip

    def setUp(self):
        super().setUp()
        self.control = Session()
        self.addCleanup(lambda: self.control.close())
        self.control.run("CREATE OR REPLACE FUNCTION works() RETURNS int LANGUAGE plpgsql AS "
                         "$$ BEGIN LOOP PERFORM 1; END LOOP; END $$")  # fmt: skip

    def start(self, session, query, setup="SELECT"):
        """Starts a query, and waits until it runs. Returns what the process held before."""
        session.run("SELECT * FROM io_probe_iostat_query_full('SELECT 1'); "
                    "SELECT * FROM io_probe_seqscan_full('dense', paths => '{direct}', duration => '50 ms')")  # fmt: skip
        session.run(setup)
        holdings = self.holdings(session)
        session.start(query)
        wait_for_probe(self.control, session.pid)
        if "iostat_query" in query and "timeout" not in setup:
            # The check for leftovers would see the thread.
            threads = len(holdings.before["threads"])
            wait_for(lambda: len(holdings.process.threads()) > threads, "the thread that takes samples")
        return holdings

    def holdings(self, session):
        return Holdings(session, self.control, ["dense"])

    def assert_ends(self, session, sqlstate, what):
        asked = time.monotonic()
        with self.assertRaises(Failure, msg=what) as raised:
            session.finish(20)
        say(f"{what}: {(time.monotonic() - asked) * 1000:.0f} ms")
        self.assertEqual(raised.exception.sqlstate, sqlstate, raised.exception)

    def test_cancel(self):
        for state, query in self.STATES.items():
            with self.subTest(state):
                holdings = self.start(self.session, query)
                self.control.value(f"SELECT pg_cancel_backend({self.session.pid})")
                self.assert_ends(self.session, "57014", f"cancel, {state}")
                self.assertEqual(holdings.left(), {})
                self.assertEqual(self.session.value("SELECT 1"), 1)

    def test_statement_timeout(self):
        for state, query in self.STATES.items():
            with self.subTest(state):
                holdings = self.start(self.session, query, "SET statement_timeout = 700")
                self.assert_ends(self.session, "57014", f"statement_timeout, {state}")
                self.assertEqual(holdings.left(), {})
                self.session.run("SET statement_timeout = 0")

    def test_cancel_that_the_transaction_survives(self):
        for state, query in self.STATES.items():
            with self.subTest(state):
                catching = f"DO $$ BEGIN PERFORM * FROM ({query}) r; EXCEPTION WHEN query_canceled THEN NULL; END $$"
                holdings = self.start(self.session, f"BEGIN; {catching}")
                self.control.value(f"SELECT pg_cancel_backend({self.session.pid})")
                self.session.finish(20)
                self.assertEqual(holdings.left(), {})
                self.session.run("CREATE TEMP TABLE written (id int); ROLLBACK")

    def test_terminate(self):
        for state, query in self.STATES.items():
            with self.subTest(state), Session() as session:
                holdings = self.start(session, query)
                self.control.value(f"SELECT pg_terminate_backend({session.pid})")
                self.assert_ends(session, "57P01", f"terminate, {state}")
                wait_for(lambda: not os.path.exists(f"/proc/{session.pid}/task"), "end of the process and its threads")
                self.assertEqual(holdings.after_its_end(), {})

    def test_a_client_that_leaves(self):
        with Session() as session:
            self.start(session, self.STATES["asleep"], "SET client_connection_check_interval = '100 ms'")
            session.psql.send_signal(signal.SIGKILL)
            wait_for(lambda: not os.path.exists(f"/proc/{session.pid}"), "end of the process")

    def test_errors_of_the_query(self):
        self.control.run("CREATE OR REPLACE FUNCTION fails() RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
                         "PERFORM pg_sleep(0.3); RAISE EXCEPTION 'out of luck' "
                         "USING ERRCODE = 'ZX123', DETAIL = 'the detail', HINT = 'the hint'; END $$")  # fmt: skip
        failing = {
            "22012": ("SELECT 1 / (3 - id) FROM (SELECT id, pg_sleep(0.1) FROM dense LIMIT 5) r", "division by zero"),
            "ZX123": ("SELECT fails()", "(?s)out of luck.*the detail.*the hint.*fails\\(\\)"),
            "22003": ("SELECT generate_series(2147483000, 2147483647) + 10", "integer out of range"),
            "53400": ("SELECT * FROM generate_series(1, 10000000)", "temporary file size"),
        }
        for sqlstate, (query, words) in failing.items():
            with self.subTest(query):
                query = rows_of("iostat_query", query=query, every="100 ms")
                holdings = self.holdings_unseen("SET temp_file_limit = '1MB'")
                self.assert_fails(query, sqlstate, words)
                self.assertEqual(holdings.left(), {})
                catching = f"EXCEPTION WHEN SQLSTATE '{sqlstate}' THEN NULL"
                self.session.run(f"DO $$ BEGIN PERFORM * FROM ({query}) r; {catching}; END $$")
                self.assertEqual(holdings.left(), {})

    def test_an_error_that_is_raised_again(self):
        """PL/pgSQL's RAISE without arguments raises the first error, whatever else was raised meanwhile."""
        again = "CREATE OR REPLACE FUNCTION again() RETURNS int LANGUAGE plpgsql AS $$ BEGIN {}; EXCEPTION WHEN others THEN " \
                "BEGIN PERFORM 'a'::int; EXCEPTION WHEN others THEN NULL; END; RAISE; END $$"  # fmt: skip
        query = rows_of("iostat_query", query="SELECT again()")
        for statement, sqlstate, words in [
            ("RETURN 1 / 0", "22012", "division by zero"),
            ("RAISE division_by_zero USING MESSAGE = 'no', DETAIL = 'the detail'", "22012", "no"),
        ]:
            with self.subTest(statement):
                self.control.run(again.format(statement))
                self.assert_fails(query, sqlstate, f"(?s){words}(?!.*'a'::int)")

    def holdings_unseen(self, setup):
        """What the process holds before a call that may be over too soon to be seen."""
        self.session.run(f"SELECT * FROM io_probe_iostat_query_full('SELECT 1'); {setup}")
        return self.holdings(self.session)

    def test_a_part_of_the_rows(self):
        """The caller reads only a part of the rows, and nothing stays."""
        holdings = self.holdings_unseen("SELECT")
        part = rows_of("iostat_query", query="SELECT pg_sleep(0.3)", every="100 ms")
        self.assertEqual(len(self.session.rows(f"{part} LIMIT 1")), 1)
        self.assertEqual(holdings.left(), {}, "LIMIT")
        self.session.run(f"BEGIN; DECLARE c CURSOR FOR {part}; FETCH 1 FROM c; CLOSE c; COMMIT")
        self.assertEqual(holdings.left(), {}, "cursor")
        self.session.rows(f"SELECT {call('iostat_query', query='SELECT 1')} AS r LIMIT 1")
        self.assertEqual(holdings.left(), {}, "target list")


class Cgroup(Iostat):
    """A limit on what the server may read of the device."""

    LIMIT = 8 * MIB

    def test_a_limit_is_told(self):
        for version in cgroups.VERSIONS:
            with self.subTest(version), cgroups.limited(version, self.disk.device, read_bps=self.LIMIT) as limit:
                if limit is None:
                    say(f"no cgroup {version} that limits I/O here")
                    continue
                self.read_under_a_limit(limit)

    def read_under_a_limit(self, limit):
        self.make_cold()
        # The backend reads, or an I/O worker of the server.
        with limit.on(server_processes()):
            before = self.stat()
            query = f"SELECT * FROM dense LIMIT {BLOCKS // 2}"
            rows = self.session.rows(rows_of("iostat_query", query=query, every="500 ms"))
            series, moved = self.of_device(rows), self.moved(before)
            say(f"{rows[-1]['elapsed_ms']:.0f} ms; {series[0]['notes']}")
            # 16 MiB, or somewhat less, are let through at once.
            self.assertGreater(rows[-1]["elapsed_ms"], BLOCKS // 2 * BLOCK / self.LIMIT * 1000 / 2)
            self.assertRegex(series[0]["notes"][0], f"cgroup.* reads of {self.name} to 8 MiB/s")
            by_us = sum(row["cgroup_rmib_s"] * row["elapsed_ms"] / 1000 for row in series)
            self.about(by_us, moved["rsectors"] / 2048, "cgroup_rmib_s")
            (row,) = self.session.rows(rows_of("iostat", every="100 ms", count=1, options={"device": self.name}))
            self.assertRegex(row["notes"][0], f"cgroup.* reads of {self.name} to 8 MiB/s")
        (row,) = self.session.rows(rows_of("iostat", every="100 ms", count=1, options={"device": self.name}))
        self.assertNotIn(self.name, "".join(row["notes"]))


if __name__ == "__main__":
    main()
