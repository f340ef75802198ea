#!/usr/bin/env -S python3 -B
"""Arguments, plans and results of any size, where the server's memory is bounded: a call works or is refused, and no process
ends."""

import contextlib
import os
import re
import unittest

import contexts
from lib import LONG, Failure, connection, literal, main, read, wait_for
from servers import Limited, Server

MB = 1 << 20
LARGE = 200_000_000
# MB of memory that the server process may take beyond what it has: with few the server's own copies fail, with more Rust's.
FURTHER = [150, 350, 500, 700]

# These values are stored, compressed, so that a call gets no more than a pointer to one.
STORED = {
    "query": f"'/*' || repeat('x', {LARGE}) || '*/ SELECT 1'",
    "plan": f"""('[{{"Plan": {{"Node Type": "' || repeat('x', {LARGE}) || '"}}}}]')::json""",
    "result": f"jsonb_build_object('format', 1, 'probe', repeat('x', {LARGE}))",
    "args": f"jsonb_build_object('query', repeat('x', {LARGE}))",
    "label": f"repeat('x', {LARGE})",
    "numbers": f"array_fill(1, ARRAY[{LARGE // 4}])",
    "words": f"ARRAY[repeat('x', {LARGE})]",
}
CALLS = [
    "explain(query)",
    "explain_text(query)",
    "explain(plan => plan)",
    "import(result)",
    "import('{}', label)",
    "record('ping', 'probed', label => label)",
    "record(label, 'probed')",
    "record('ping', 'probed', args => args)",
    "measure('ping', 'probed', args => args)",
    "compare(label, label)",
    "seqscan('probed', words)",
    "sync(label)",
    "ping('probed', mode => label)",
    "ping('probed', options => args)",
    "report('probed', promised => args)",
    "recommend(settings => words)",
    "depth('probed', numbers)",
    "readahead('probed', numbers)",
    "page_cost('probed', concurrencies => numbers)",
]


class ArgumentSizes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A server of its own, so that the log is about these tests alone.
        cls.server = Server("large")
        cls.addClassCleanup(cls.server.remove)
        # A backtrace of Rust's takes memory, too.
        cls.server.start(first=lambda: os.environ.update(RUST_BACKTRACE="1"))
        with cls.server.session() as session:
            session.run("""CREATE EXTENSION pg_io_probe; CREATE TABLE probed AS SELECT 1 AS id; CHECKPOINT;
                CREATE TABLE large (query text, plan json, result jsonb, args jsonb, label text, numbers int[],
                                    words text[]);
                INSERT INTO large DEFAULT VALUES""")
            # One by one: the server holds no row of more than a GB in memory.
            for name, value in STORED.items():
                session.run(f"UPDATE large SET {name} = {value}")

    def setUp(self):
        self.before = len(self.log())
        self.addCleanup(self.check_log)

    def log(self):
        return read(os.path.join(self.server.host, "log"))

    def check_log(self):
        told = self.log()[self.before :]
        self.assertIsNone(re.search("terminated by signal|PANIC|memory allocation of", told), told[-2000:])

    def session(self):
        session = wait_for(lambda: connection(self.server.session), "a session")
        self.addCleanup(session.close)
        return session

    def ends(self, session, statement):
        """Runs a statement, after which the session goes on. Returns how it ended, an SQLSTATE or "ok", and what was told."""
        try:
            ended = "ok", session.run(statement)
        except Failure as e:
            ended = str(e.sqlstate), str(e)[:1000]
        self.assertEqual(session.value("SELECT pg_backend_pid()"), session.pid)
        return ended

    def assert_ends(self, session, statement, expected):
        """The statement ends as the pattern `expected` says."""
        ended, told = self.ends(session, statement)
        self.assertRegex(ended, f"^({expected})$", f"{statement}: {told}")
        return ended, told

    def test_arguments(self):
        session = self.session()
        for call in CALLS:
            for further in FURTHER:
                with self.subTest(call, further=further), bounded(session, further):
                    self.assert_ends(session, f"SELECT found FROM large, LATERAL io_probe_{call} AS found", "54000")

    def test_what_is_just_too_large(self):
        """The bounds on sizes are those of the documentation."""
        session = self.session()
        for call, most, value, else_ in [
            ("explain(value)", MB, "rpad('SELECT 1', {})", "ok"),
            ("explain(plan => value::json)", 16 * MB, """rpad('{{"Plan": {{"Node Type": "Result"}}}}', {})""", "ok"),
            ("compare(value, 'a')", MB, "repeat('x', {})", "42704"),
        ]:
            with self.subTest(call):
                query = f"SELECT count(*) FROM (SELECT {value} AS value) AS given, LATERAL io_probe_{call}"
                self.assert_ends(session, query.format(most), else_)
                _, told = self.assert_ends(session, query.format(most + 1), "54000")
                self.assertIn(f"It has {most + 1} bytes, but at most {most} are allowed.", told)

    def test_arrays_of_nulls(self):
        """Each NULL takes a bit of the array. The call is refused."""
        session = self.session()
        for call in [f"{probe}('probed', array_fill(NULL::{element}, ARRAY[8000000]))"
                     for probe, element in [("depth", "int"), ("seqscan", "text")]]:  # fmt: skip
            with self.subTest(call), bounded(session, 100):
                self.assert_ends(session, f"SELECT * FROM io_probe_{call}", "54000")

    def test_plans_that_take_many_times_their_size(self):
        session = self.session()
        session.run("CREATE TABLE plans (name text, plan json)")
        for name, node, expected in [
            ("objects", """"Output": [' || repeat('{"": 0},', 900000) || '0]""", "54000"),
            ("numbers", """"Output": [' || repeat('0,', 3900000) || '0]""", "ok|54000|53200"),
            ("parameters", """"Filter": "' || repeat('$1', 3900000) || '\"""", "ok|53200"),
            ("subplans", """"Filter": "' || repeat('(InitPlan ', 700000) || ')\"""", "ok|53200"),
            ("names", """"Parent Relationship": "InitPlan", "Subplan Name": "InitPlan 1 (returns ' || repeat(',', 16700000) || ')\"""",
             "54000|53200"),
            # Each index scan below repeats the alias.
            ("alias", """"Alias": "' || repeat('x', 5000000)
                || '", "Plans": [' || repeat('{"Node Type": "Bitmap Index Scan"},', 19990) || '0]""", "22023|53200"),
        ]:
            plan = """'{"Plan": {"Node Type": "Bitmap Heap Scan", """ + node + "}}'"
            session.run(f"INSERT INTO plans SELECT '{name}', ({plan})::json")
            for further in [150, 400, 800, 3000]:
                with self.subTest(name, further=further), bounded(session, further):
                    query = f"SELECT count(*) FROM plans, LATERAL io_probe_explain_full(plan => plan) WHERE name = '{name}'"
                    self.assert_ends(session, query, expected)

    def test_results_that_take_many_times_their_size(self):
        session = self.session()
        session.run("CREATE TABLE results (name text, result jsonb)")
        header = {"format": 1, "probe": "ping", "status": "ok", "started_at": "now", "object": "x", "args": {},
                  "system_identifier": "1", "settings": {}, "leaves": [], "rows": []}  # fmt: skip
        for part, value, expected in [
            ("leaves", "jsonb_agg('{\"\": 0}'::jsonb) FROM generate_series(1, 1000000)", "22023|53200"),
            ("settings", "jsonb_object_agg(i, 0) FROM generate_series(1, 1000000) AS i", "22023|53200"),
            ("status", "to_jsonb(repeat('x', 60000000))", "22023|53200"),
            ("probe", "to_jsonb(repeat('x', 60000000))", "22023|53200"),
            # Printed, these arguments are 262 MB.
            ("args", "jsonb_object_agg(i, 1e131000) FROM generate_series(1, 2000) AS i", "54000|53200"),
        ]:
            session.run(f"""INSERT INTO results
                SELECT '{part}', {literal(header)}::jsonb || jsonb_build_object('{part}', (SELECT {value}))""")
            for further in [100, 200, 300, 600]:
                with self.subTest(part, further=further), bounded(session, further):
                    query = f"SELECT io_probe_import(result) FROM results WHERE name = '{part}'"
                    self.assert_ends(session, query, expected)

    def test_output_of_explain(self):
        """The planner computes long constants from a short query, and EXPLAIN prints them."""
        session = self.session()
        for length in [20_000_000, 100_000_000]:
            query = f"SELECT * FROM io_probe_explain_full('SELECT repeat(''x'', {length})')"
            for further in [250, 450, 650, 1500]:
                with self.subTest(length=length, further=further), bounded(session, further):
                    self.assert_ends(session, query, "54000|53200")
            self.assert_ends(session, query, "54000")

    def test_memory_that_is_full(self):
        """Memory is full but for a few kB: a call works, or says that there is none, and does not wait for itself."""
        self.assertIn("RUST_BACKTRACE=1", read(f"/proc/{self.server.postmaster()}/environ").split("\0"))
        call = "BEGIN PERFORM FROM io_probe_explain_full('SELECT 1'); EXCEPTION WHEN out_of_memory THEN NULL; END;"
        for kb in [64, 16, 8, 4]:
            with self.subTest(f"{kb} kB"):
                session = self.session()
                session.run("SELECT FROM io_probe_explain_full('SELECT 1')")
                with bounded(session, 100):
                    self.assert_ends(session, FILL % (kb << 10, call), "ok")

    def test_any_amount_of_free_memory(self):
        """From nothing to 8 MiB is free when a function is called that takes what a user sizes: the session goes on."""
        with self.server.session() as session:
            session.run("""CREATE FUNCTION measured() RETURNS jsonb LANGUAGE sql
                BEGIN ATOMIC SELECT io_probe_measure('ping', 'probed', '{"count": 1}'); END""")
        calls = [call for signature, call in contexts.CALLS.items() if re.search(r"text|json|\[", signature)]
        for call in calls:
            with self.subTest(call):
                session = self.session()
                session.run("SELECT FROM io_probe_cache('probed'); SET pg_io_probe.max_duration = '50 ms'")
                with bounded(session, 100) as limit:
                    session.run(FILL % (4 << 10, ""))
                    # Probes that have buffers, or threads, need more.
                    for free in [*range(0, 8 * MB, (64 if LONG else 256) << 10), *range(8 * MB, 48 * MB, 4 * MB)]:
                        limit.set(limit.most + free)
                        with contextlib.suppress(Failure):
                            session.run(f"SELECT FROM {call}")
                self.assertEqual(session.value("SELECT pg_backend_pid()"), session.pid)

    def test_messages(self):
        """An ERROR that a query raises passes whole, if the server has memory for it."""
        session = self.session()
        session.run(f"""CREATE FUNCTION shout(size int DEFAULT {LARGE}) RETURNS int LANGUAGE plpgsql AS
                $$BEGIN RAISE 'x%', repeat('x', size) USING ERRCODE = 'ZX123'; END$$;
            CREATE FUNCTION caught(query text, OUT code text, OUT length int) LANGUAGE plpgsql AS
                $$BEGIN EXECUTE query; EXCEPTION WHEN OTHERS THEN code := SQLSTATE; length := length(SQLERRM); END$$""")
        query = literal("SELECT * FROM io_probe_explain('SELECT shout()', true)")
        self.assertEqual(session.row(f"SELECT * FROM caught({query})"), {"code": "ZX123", "length": LARGE + 1})
        for size in range(10, 255, 5 if LONG else 60):
            for further in [150, 350, 700]:
                query = literal(f"SELECT FROM io_probe_explain('SELECT shout({size * 1_000_000})', true)")
                with self.subTest(query, further=further), bounded(session, further):
                    ended, told = self.ends(session, f"SELECT code FROM caught({query})")
                    self.assertIn(ended if ended != "ok" else told[0], ["53200", "ZX123"])


# Takes all memory but for pieces of some bytes, and then goes on.
FILL = """DO $$ DECLARE size int := 1 << 25; number int := 0; BEGIN
    WHILE size >= %s LOOP
        BEGIN number := number + 1; PERFORM set_config('full.x' || number, repeat('x', size), false);
        EXCEPTION WHEN out_of_memory THEN size := size / 2; END;
    END LOOP; %s END $$"""


@contextlib.contextmanager
def bounded(session, further):
    """Meanwhile the session's process may take `further` MB of address space more than it has."""
    pages = int(read(f"/proc/{session.pid}/statm").split()[0])
    with Limited(session.pid, "as", pages * os.sysconf("SC_PAGE_SIZE") + further * MB) as limit:
        yield limit


if __name__ == "__main__":
    main()
