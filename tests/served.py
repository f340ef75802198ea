#!/usr/bin/env -S python3 -B
"""Who served each node's reads, as io_probe_explain says, beside what the OS cache held before and the kernel's account; and how
a query ends that it runs."""

import json
import os
import re
import signal
import time
import unittest
from dataclasses import dataclass, field

from lib import IS_ROOT, VERSION, Failure, Session, call, dense_table, main, read, restart_server, rows_of, segment_file
from lib import wait_for, wait_for_probe
from probes import Holdings
from storage import LoopDevice, cache_only, create_tablespace, every_second_mib, fincore

MIB = 1 << 20
# What is fetched beyond: at the edges of what is cached, by the planner, for visibility maps; a kernel may take cached pages back.
MORE = MIB // 4
TABLES = ["a", "b", "narrow"]
INDEXES = ["narrow_id", "narrow_k", "narrow_m"]


def none(_size):
    return []


def all_of_it(size):
    return [(0, size)]


@dataclass(frozen=True)
class Case:
    """A query that reads all of its relations, and what of these is cached before."""

    query: str
    node: str  # one that the plan must have
    cached: dict = field(default_factory=dict)
    off: tuple = ()  # ways that the planner is not to take
    # Readers of an index that read their table, too.
    both: tuple = ()


CASES = {
    "half of a table": Case("SELECT count(*) FROM a", "Seq Scan", {"a": every_second_mib}),
    "a hash join, its inner side cached": Case("SELECT count(*) FROM a JOIN b USING (id)", "Hash Join", {"b": all_of_it},
                                              ("mergejoin", "nestloop")),
    "a hash join whose scan runs an InitPlan": Case("SELECT count(*) FROM a JOIN b USING (id) WHERE a.id > (SELECT count(*) FROM narrow)",
                                                   "Hash Join", {"b": all_of_it}, ("mergejoin", "nestloop")),
    "a bitmap scan, its index cached": Case("SELECT count(filler) FROM narrow WHERE k < 1000", "Bitmap Heap Scan",
                                           {"narrow_k": all_of_it}, ("seqscan", "indexscan")),
    "a bitmap scan, its table cached": Case("SELECT count(filler) FROM narrow WHERE k < 1000", "Bitmap Heap Scan",
                                           {"narrow": all_of_it}, ("seqscan", "indexscan")),
    "two indexes, one of them cached": Case("SELECT count(filler) FROM narrow WHERE k < 1000 OR m < 7", "BitmapOr",
                                           {"narrow_k": all_of_it, "narrow": every_second_mib}, ("seqscan", "indexscan")),
    "a nested loop": Case("SELECT count(filler) FROM generate_series(1, 300000) g JOIN narrow ON id = g", "Nested Loop",
                          {"narrow_id": all_of_it}, ("hashjoin", "mergejoin", "bitmapscan", "seqscan"), ("Index Scan",)),
    "a CTE that is read twice": Case("WITH c AS MATERIALIZED (SELECT id FROM a) SELECT count(*) FROM c JOIN c d USING (id)",
                                     "CTE Scan"),
    "an InitPlan": Case("SELECT (SELECT count(*) FROM a), count(*) FROM b", "Aggregate", {"a": every_second_mib}),
    "a SubPlan": Case("SELECT count(*) FROM b WHERE id NOT IN (SELECT id FROM a)", "Seq Scan", {"b": every_second_mib}),
    "an append": Case("SELECT count(*) FROM (SELECT id FROM a UNION ALL SELECT id FROM b) s", "Append", {"a": every_second_mib}),
    "a sort that spills": Case("SELECT id FROM narrow ORDER BY filler, id", "Sort", {"narrow": every_second_mib}),
}  # fmt: skip


class Served(unittest.TestCase):
    """Tables of which the OS cache holds what a test says, and shared buffers nothing."""

    @classmethod
    def setUpClass(cls):
        with Session() as session:
            dense_table(session, "a", 4096)
            dense_table(session, "b", 2048)
            session.run("CREATE TABLE narrow WITH (autovacuum_enabled = off) AS SELECT g AS id, g % 1000 AS k, g % 7 AS m, "
                        "repeat('x', 60) AS filler FROM generate_series(1, 300000) g")  # fmt: skip
            for column in ["id", "k", "m"]:
                session.run(f"CREATE INDEX narrow_{column} ON narrow ({column})")
            session.run("VACUUM FULL narrow; VACUUM ANALYZE a; VACUUM ANALYZE b; VACUUM ANALYZE narrow; CHECKPOINT")
            cls.files = {name: segment_file(session, name) for name in TABLES + INDEXES}

    @classmethod
    def tearDownClass(cls):
        with Session() as session:
            session.run(f"DROP TABLE {', '.join(TABLES)}")

    def make_cold(self, case):
        """Returns how many bytes of each relation the OS cache does not hold."""
        if VERSION < 17:
            restart_server()
        else:
            with Session() as session:
                for name in self.files:
                    session.run(f"SELECT io_probe_evict('{name}')")
        missing = {}
        for name, path in self.files.items():
            size = os.path.getsize(path)
            cache_only(path, case.cached.get(name, none)(size))
            missing[name] = size - fincore(path)
        return missing

    def judge(self, case, workers, more=""):
        """Runs it, and compares each relation's readers with what was missing in the cache."""
        missing = self.make_cold(case)
        with Session() as session:
            off = "".join(f"SET enable_{way} = off;" for way in case.off)
            session.run(f"{off} SET client_min_messages = warning; SET work_mem = '1MB'; SET max_parallel_workers_per_gather = {workers}; SET jit = off; "
                        f"{more}; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; "
                        f"SET min_parallel_index_scan_size = 0; {'SET seq_page_cost = 0;' if workers else ''} SET enable_indexonlyscan = off")  # fmt: skip
            account = lambda: int(re.search(r"read_bytes: (\d+)", read(f"/proc/{session.pid}/io")).group(1))
            before = account() if IS_ROOT else None
            options = {"exact": workers > 0}
            *nodes, sums = session.rows(rows_of("explain", query=case.query, execute=True, options=options))
            fetched = account() - before if IS_ROOT else None
        self.assertIn(case.node, " ".join(node["node_type"] for node in nodes))
        self.assertEqual(any("Gather" in node["node_type"] for node in nodes), workers > 0)
        of = {}
        for node in nodes:
            reads_index = node["indexid"] and node["node_type"] not in case.both
            relations = (node["indexid"],) if reads_index else tuple(filter(None, (node["relid"], node["indexid"])))
            if node["node_type"].endswith("Bitmap Heap Scan"):
                relations = (node["relid"],)
            device, other = of.get(relations, (0, 0))
            of[relations] = device + node["device_mib"] * MIB, other + node["os_mib"] * MIB
        for relations, (device, _) in of.items():
            expected = sum(missing[name] for name in relations)
            self.assertAlmostEqual(device, expected, delta=expected * 0.01 + (MORE if relations else 0), msg=(relations, nodes))
        self.assertAlmostEqual(sums["device_mib"], sum(node["device_mib"] for node in nodes), delta=0.01)
        for counter in ["shared_blks_hit", "shared_blks_read", "temp_blks_read", "temp_blks_written"]:
            self.assertEqual(sums[counter], sum(node[counter] for node in nodes), counter)
            self.assertGreaterEqual(min(node[counter] for node in nodes), 0, counter)
        for node in nodes:
            self.assertLessEqual(node["io_ms"] + node["temp_io_ms"], node["self_ms"] + 1, node)
        if IS_ROOT and not workers and not any(w in self.method for w in ["worker"]):
            self.assertAlmostEqual(sums["device_mib"] * MIB, fetched, delta=fetched * 0.02 + MORE)
        return nodes, sums

    def setUp(self):
        with Session() as session:
            self.method = session.value("SELECT coalesce(current_setting('io_method', true), '')")

    def test_each_node_alone(self):
        for name, case in CASES.items():
            with self.subTest(name):
                self.judge(case, 0)

    def test_each_node_with_workers(self):
        for name, case in CASES.items():
            if "Function" not in name and name not in ["a nested loop", "a CTE that is read twice"]:
                with self.subTest(name):
                    self.judge(case, 2)

    def test_workers_alone(self):
        """The leader reads nothing while they do."""
        self.judge(CASES["half of a table"], 2, "SET parallel_leader_participation = off")
        nodes, sums = self.judge(CASES["a sort that spills"], 2, "SET parallel_leader_participation = off")
        self.assertEqual({node["node_type"] for node in nodes if node["temp_mib"]}, {"Sort"})
        self.assertGreater(sums["temp_mib"], 20)

    def test_the_device_counts_the_same(self):
        """Whoever reads: the backend, its parallel workers, the I/O workers, or the kernel's own threads for io_uring, which do it
        where many requests are in flight."""
        if not IS_ROOT:
            self.skipTest("not root")
        disk = LoopDevice(256 * MIB)
        self.addCleanup(disk.remove)
        with Session() as session:
            place = create_tablespace(session, "counted", disk.mount_point)
            self.addCleanup(self.drop, "DROP TABLE on_disk; DROP TABLESPACE counted")
            session.run(f"CREATE TABLE on_disk {place} AS SELECT g AS id, repeat('x', 60) AS filler FROM generate_series(1, 1000000) g")
            session.run("SET client_min_messages = warning; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0")
            for workers in [0, 2]:
                disk.make_cold(session, "on_disk")
                session.run(f"SET max_parallel_workers_per_gather = {workers}")
                before = disk.counters()["bytes"]
                *_, sums = session.rows(rows_of("explain", query="SELECT count(*) FROM on_disk", execute=True))
                counted = disk.counters()["bytes"] - before
                self.assertGreater(counted, 80 * MIB)
                self.assertAlmostEqual(sums["device_mib"] * MIB, counted, delta=counted * 0.01 + MORE, msg=workers)

    @staticmethod
    def drop(statements):
        with Session() as session:
            session.run(statements)

    def test_the_same_words_inside_are_another_query(self):
        """A function that is called at planning, or by workers' leader, runs the very statement, or one with workers of its own."""
        with Session() as session:
            session.run("SET client_min_messages = warning; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; "
                        "SET min_parallel_table_scan_size = 0; SET seq_page_cost = 0; SET max_parallel_workers_per_gather = 2")  # fmt: skip
            statement = "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS, VERBOSE, FORMAT JSON) SELECT count(*) FROM a WHERE id > imm()"
            session.run(f"""CREATE FUNCTION inside() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
                IF current_setting('my.done', true) = '1' THEN RETURN 1; END IF;
                PERFORM set_config('my.done', '1', true);
                BEGIN EXECUTE '{statement}'; EXCEPTION WHEN division_by_zero THEN NULL; END;
                RETURN 1; END $$""")  # fmt: skip
            session.run("CREATE FUNCTION imm() RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS "
                        "$$ BEGIN RETURN inside(); END $$")  # fmt: skip
            session.run("CREATE FUNCTION restricted() RETURNS bigint PARALLEL RESTRICTED LANGUAGE plpgsql AS "
                        "$$ BEGIN RETURN (SELECT count(*) FROM b); END $$")  # fmt: skip
            for query in ["SELECT count(*) FROM a WHERE id > imm()", "SELECT restricted(), count(*) FROM a"]:
                lines = session.run(f"SELECT row_to_json(r) FROM {call('explain', query=query, execute=True)} AS r")
                # No WARNING of memory that is left.
                *nodes, sums = [json.loads(line) for line in lines]
                self.assertIn("Gather", " ".join(node["node_type"] for node in nodes))
                self.assertGreater(sums["shared_blks_hit"] + sums["shared_blks_read"], 4000)
                self.assertLess(sums["shared_blks_hit"] + sums["shared_blks_read"], 4096 + 2048 + 100)

    def test_option_exact(self):
        """Then what others have the I/O workers read is not in it. It is refused where a tablespace does not let it."""
        cached = Case("SELECT count(filler) FROM narrow", "Seq Scan", {"narrow": all_of_it})
        self.make_cold(cached)
        with Session() as session, Session() as other:
            session.run("SET client_min_messages = warning; SET max_parallel_workers_per_gather = 0")
            other.start("SELECT count(CASE WHEN id % 4 = 0 THEN pg_sleep(0.0002) END) FROM a")
            *_, sums = session.rows(rows_of("explain", query=cached.query, execute=True, options={"exact": True}))
            other.finish()
            self.assertLess(sums["device_mib"], 1)
            if VERSION >= 18:
                session.run("BEGIN; ALTER TABLESPACE pg_default SET (effective_io_concurrency = 16)")
                with self.assertRaises(Failure) as raised:
                    session.rows(rows_of("explain", query=cached.query, execute=True, options={"exact": True}))
                self.assertEqual(raised.exception.sqlstate, "0A000")
                session.run("ROLLBACK")

    @unittest.skipIf(VERSION < 18, "no limit on the reads of a process before 18")
    def test_waits_for_a_slot_make_the_disk_possible(self):
        """Where a scan wants more reads than its process may have in flight, the server does not time all of its waits."""
        cold = Case("SELECT count(*) FROM a", "Seq Scan", {})
        for more in [0, 1]:
            self.make_cold(cold)
            with self.subTest(more), Session() as session:
                slots = int(session.value("SELECT current_setting('io_max_concurrency')"))
                session.run(f"SET max_parallel_workers_per_gather = 0; SET effective_io_concurrency = {slots + more}; "
                            "SET client_min_messages = warning")  # fmt: skip
                said = "\n".join(session.run("SET client_min_messages = notice; SELECT node_type FROM "
                                             "io_probe_explain_full('SELECT count(*) FROM a', execute => true)"))  # fmt: skip
                told = "effective_io_concurrency is above io_max_concurrency"
                if more and self.method != "sync":
                    self.assertRegex(said, re.compile(f"^the disk$|{told}.*^unknown$", re.MULTILINE | re.DOTALL))
                else:
                    self.assertNotIn(told, said)

    def test_a_cached_query_tells_how_to_make_it_cold(self):
        with Session() as session:
            query = "SELECT (SELECT count(*) FROM a) + (SELECT count(*) FROM b)"
            session.run(f"SET max_parallel_workers_per_gather = 0; {query}; {query}")
            said = session.run(f"SELECT FROM io_probe_explain('{query}', execute => true)")
            told = re.search(r"first run (SELECT FROM io_probe_evict\('public.a'\).*'public.b'.*); that evicts", "\n".join(said))
            if VERSION >= 17:
                self.assertTrue(told, said)
                session.run(told[1])
                self.assertEqual([fincore(self.files[name]) for name in ["a", "b"]], [0, 0])

    def test_explain_s_own_text_says_it_too(self):
        self.make_cold(CASES["half of a table"])
        with Session() as session:
            session.run("SET client_min_messages = warning; SET max_parallel_workers_per_gather = 0")
            lines = session.run("SELECT plan FROM io_probe_explain_text('SELECT count(*) FROM a')")
        text = "\n".join(lines)
        # Of what the kernel has taken back meanwhile a little more came from the device.
        self.assertRegex(text, r"Buffers: .*\n +I/O: OS cache 1\d MiB, device 1\d MiB \(5\d %\), waited \d+ ms for reads")
        self.assertRegex(lines[-1], r"disk: 32 MiB read, 1\d MiB from the OS cache, 1\d MiB from the device; waited \d+ of \d+ ms for the device")

    def test_temporary_files_are_their_node_s(self):
        nodes, sums = self.judge(CASES["a sort that spills"], 0)
        self.assertEqual([node["node_type"] for node in nodes if node["temp_mib"]], ["Sort"])
        self.assertGreater(sums["temp_mib"], 20)

    def test_times_are_with_who_takes_them(self):
        """Those of few calls, and those of many, which are told by looks."""
        for rows in [10, 400]:
            query = ("SELECT count(*) FROM (SELECT a, pg_sleep(0.3) FROM (SELECT count(*) AS a FROM "
                     f"generate_series(1, {rows}) a, generate_series(1, {rows}) b OFFSET 0) s OFFSET 0) s")  # fmt: skip
            with self.subTest(rows), Session() as session:
                session.run("SET client_min_messages = warning")
                *nodes, sums = session.rows(rows_of("explain", query=query, execute=True))
                sleeper = next(node for node in nodes if node["node_type"] == "Subquery Scan")
                self.assertGreaterEqual(sleeper["self_ms"], 290)
                self.assertAlmostEqual(sum(node["self_ms"] for node in nodes), sums["total_ms"], delta=0.01 + len(nodes) * 0.001)
                self.assertEqual(nodes[0]["total_ms"], sums["total_ms"])
                loops = {node["node_type"]: (node["loops"], node["actual_rows"]) for node in nodes}
                self.assertEqual(loops["Nested Loop"], (1, rows * rows))

    def test_own_tables_are_read_into_local_buffers(self):
        with Session() as session:
            session.run("SET client_min_messages = warning; CREATE TEMP TABLE own (LIKE b INCLUDING STORAGE); "
                        "INSERT INTO own SELECT * FROM b")
            *nodes, sums = session.rows(rows_of("explain", query="UPDATE own SET id = id + 1", execute=True))
            self.assertEqual([node["node_type"] for node in nodes], ["Update", "Seq Scan"])
            self.assertGreater(nodes[1]["local_blks_read"], 1000)
            self.assertEqual(sums["local_blks_read"], nodes[0]["local_blks_read"] + nodes[1]["local_blks_read"])

    def test_nothing_is_left_behind(self):
        """After an ERROR, in a function, in itself, in a cursor: results are the same, and the next call is right."""
        with Session() as session:
            session.run("SET client_min_messages = warning; SET enable_seqscan = off; SET enable_indexscan = off")
            session.run("CREATE FUNCTION inner_one() RETURNS bigint LANGUAGE sql AS "
                        f"$$SELECT count(*) FROM {call('explain', query='SELECT FROM narrow WHERE k < 9', execute=True)}$$")  # fmt: skip
            bitmap = "SELECT count(filler) FROM narrow WHERE k < 100 OR m = 3"
            count = session.value(bitmap)
            for failing, sqlstate in [("SELECT 1 / (k - k) FROM narrow WHERE k < 100", "22012"),
                                      ("SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(9), k FROM narrow WHERE k < 9", "57014")]:  # fmt: skip
                with self.assertRaises(Failure) as raised:
                    session.rows(rows_of("explain", query=failing, execute=True))
                self.assertEqual(raised.exception.sqlstate, sqlstate)
                self.assertEqual(session.value(bitmap), count)
            rows = session.rows(rows_of("explain", query="SELECT inner_one() FROM generate_series(1, 3)", execute=True))
            self.assertEqual(len(rows), 1 + 1)
            session.run(f"BEGIN; DECLARE c CURSOR FOR SELECT * FROM {call('explain', query=bitmap, execute=True)}; FETCH 1 FROM c; "
                        "COMMIT")  # fmt: skip
            self.assertEqual(session.value(bitmap), count)
            *nodes, _ = session.rows(rows_of("explain", query=bitmap, execute=True))
            self.assertEqual([node["actual_rows"] for node in nodes][0], 1)


class Ends(unittest.TestCase):
    """However a query ends, nothing stays."""

    SLOWLY = "SELECT * FROM io_probe_seqscan_full('probed', '{direct}', '50 s', options => '{\"max_mib_s\": 1}')"
    STATES = {
        state: rows_of("explain", query=query, execute=True)
        for state, query in {
            "asleep": "SELECT pg_sleep(50)",
            "at work": "SELECT generate_series(1, 10000000000)",
            "in a function": "SELECT works()",
            "in a probe": SLOWLY,
        }.items()
    }

    @classmethod
    def setUpClass(cls):
        cls.control = Session()
        cls.addClassCleanup(cls.control.close)
        dense_table(cls.control, "probed", 4096)
        cls.addClassCleanup(cls.control.run, "DROP TABLE probed")
        cls.control.run("CREATE FUNCTION works() RETURNS int LANGUAGE plpgsql AS $$ BEGIN LOOP PERFORM 1; END LOOP; END $$")

    def setUp(self):
        self.session = Session()
        self.addCleanup(self.session.close)

    def start(self, session, query, setup="SELECT"):
        """Starts a query, and waits until it runs. Returns what the process held before."""
        session.run(f"""SET client_min_messages = warning; SELECT FROM io_probe_explain('SELECT 1', true);
            SELECT FROM io_probe_seqscan('probed', '{{direct}}', '20 ms'); DO $$ BEGIN END $$; {setup}""")
        holdings = Holdings(session, self.control)
        session.start(query)
        running = f"SELECT FROM pg_stat_activity WHERE pid = {session.pid} AND state = 'active' AND query LIKE '%io_probe_explain%'"
        # It may time out before that could be seen.
        wait_for(lambda: self.control.run(f"SELECT 1 WHERE EXISTS ({running})") or not session.busy(), "the query")
        if "io_probe_seqscan" in query and "timeout" not in setup:
            wait_for_probe(self.control, session.pid)
        time.sleep(0.1)
        return holdings

    def assert_ends(self, session, sqlstate):
        with self.assertRaises(Failure) as raised:
            session.finish(20)
        self.assertEqual(raised.exception.sqlstate, sqlstate, raised.exception)

    def test_cancel(self):
        for state, query in self.STATES.items():
            with self.subTest(state):
                holdings = self.start(self.session, query)
                self.control.value(f"SELECT pg_cancel_backend({self.session.pid})")
                self.assert_ends(self.session, "57014")
                self.assertEqual(holdings.left(), {})
                self.assertEqual(self.session.value("SELECT 1"), 1)

    def test_statement_timeout(self):
        for state, query in self.STATES.items():
            with self.subTest(state):
                holdings = self.start(self.session, query, "SET statement_timeout = 700")
                self.assert_ends(self.session, "57014")
                self.assertEqual(holdings.left(), {})
                self.session.run("SET statement_timeout = 0")

    def test_cancel_that_the_transaction_survives(self):
        for state, query in self.STATES.items():
            with self.subTest(state):
                catching = f"DO $$ BEGIN PERFORM * FROM ({query}) r; EXCEPTION WHEN query_canceled THEN NULL; END $$"
                holdings = self.start(self.session, catching, "BEGIN")
                self.control.value(f"SELECT pg_cancel_backend({self.session.pid})")
                self.session.finish(20)
                self.assertEqual(holdings.left(), {})
                self.session.run("CREATE TEMP TABLE written (id int); ROLLBACK")

    def test_terminate(self):
        for state, query in self.STATES.items():
            with self.subTest(state), Session() as session:
                holdings = self.start(session, query)
                self.control.value(f"SELECT pg_terminate_backend({session.pid})")
                self.assert_ends(session, "57P01")
                wait_for(lambda: not holdings.process.exists(), "the end of the process")
                self.assertEqual(holdings.after_its_end(), {})

    def test_a_client_that_leaves(self):
        with Session() as session:
            holdings = self.start(session, self.STATES["asleep"], "SET client_connection_check_interval = '100 ms'")
            session.psql.send_signal(signal.SIGKILL)
            wait_for(lambda: not holdings.process.exists(), "the end of the process")

    def test_errors_of_the_query(self):
        for sqlstate, query in {
            "22012": "SELECT 1 / (3 - id) FROM (SELECT id, pg_sleep(0.1) FROM probed LIMIT 5) AS r",
            "22003": "SELECT generate_series(2147483000, 2147483647) + 10",
            "53400": "SELECT * FROM generate_series(1, 10000000)",
        }.items():
            with self.subTest(query):
                query = rows_of("explain", query=query, execute=True)
                self.session.run("SET client_min_messages = warning; SELECT FROM io_probe_explain('SELECT 1', true); "
                                 "SET temp_file_limit = '1MB'; DO $$ BEGIN END $$")  # fmt: skip
                holdings = Holdings(self.session, self.control)
                with self.assertRaises(Failure) as raised:
                    self.session.run(query)
                self.assertEqual(raised.exception.sqlstate, sqlstate)
                self.assertEqual(holdings.left(), {})
                catching = f"EXCEPTION WHEN SQLSTATE '{sqlstate}' THEN NULL"
                self.session.run(f"DO $$ BEGIN PERFORM * FROM ({query}) r; {catching}; END $$")
                self.assertEqual(holdings.left(), {})


if __name__ == "__main__":
    main()
