#!/usr/bin/env -S python3 -B
"""Times of a block and the page costs that follow from them, on storage whose character is known.

The storage is a loop device that takes large requests, or small ones only; and memory. Needs root, to mount. Figures are
printed, and only their order is judged.
"""

import contextlib
import os
import re
import subprocess
import time
import unittest

import cgroups
from lib import BLOCK, TEST_TMP, VERSION, Failure, Session, main, needs_root, rows_of, say, segment_file
from lib import server_ids, server_processes, server_with, wait_for, wait_for_probe
from probes import Holdings
from servers import Server
from storage import LoopDevice, create_tablespace, fincore, run

MIB = 1 << 20
ROWS = 80000
OF_TABLESPACE = ["random_page_cost", "effective_io_concurrency", "maintenance_io_concurrency"]
PATIENCE = 30
# Durations in seconds. With one concurrency, one of these is long enough to have the planner asked: on a busy machine a longer one.
SOON = [2, 4, 8, 16]
QUERY = "SELECT FROM probed WHERE shuffled < 3000"
# A trap: planning an expression of this role's table calls a function, which tells of the call.
TRAP = """CREATE ROLE trapper; CREATE SCHEMA trap AUTHORIZATION trapper; ALTER TABLE probed OWNER TO trapper;
    GRANT EXECUTE ON FUNCTION io_probe_page_cost, io_probe_page_cost_full, io_probe_recommend, io_probe_recommend_full, io_probe_evict TO trapper; SET ROLE trapper;
    CREATE FUNCTION trap.springs() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RAISE INFO 'trap'; RETURN 0; END $$;
    CREATE DOMAIN trap.checked AS int CHECK (VALUE + trap.springs() > 0);
    CREATE FUNCTION trap.equal(int, int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE INFO 'trap'; RETURN false; END $$;
    CREATE OPERATOR trap.<<>> (LEFTARG = int, RIGHTARG = int, FUNCTION = int4ne, RESTRICT = neqsel, NEGATOR = OPERATOR(trap.===));
    CREATE OPERATOR trap.=== (LEFTARG = int, RIGHTARG = int, FUNCTION = trap.equal, NEGATOR = OPERATOR(trap.<<>>));
    CREATE FUNCTION trap.apart(int, int) RETURNS float8 IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RAISE INFO 'trap'; RETURN 1; END $$;
    CREATE TYPE trap.spread AS RANGE (SUBTYPE = int, SUBTYPE_DIFF = trap.apart); CREATE TYPE trap.pair AS (spread trap.spread);
    ALTER TABLE probed ADD spread trap.spread, ADD pair trap.pair; RESET ROLE"""
UNTRAP = "ALTER TABLE probed OWNER TO CURRENT_USER; DROP SCHEMA trap CASCADE; DROP OWNED BY trapper; DROP ROLE trapper"
# What an owner can have the catalogs say of a table and its column id, and why that is left out.
UNLIKE_ANALYZE = "its statistics are too large, or ANALYZE did not make them"
UNCOUNTED = "the number of its rows is not known: ANALYZE the table"
OF_ID = "starelid = '{0}'::regclass AND staattnum = 1"
INDEX = "CREATE INDEX ON {0} (id) WHERE false"
CLAIMS = {
    # Honest: 10,001 bounds of a few bytes each, and of 60 kB as text.
    "exponents": ("""ALTER TABLE {0} ALTER id TYPE numeric USING ('1e' || 10 * id)::numeric, ALTER id SET STATISTICS 10000;
                     ANALYZE {0} (id)""", UNLIKE_ANALYZE),
    "nulls": (f"UPDATE pg_statistic SET stanullfrac = 'NaN' WHERE {OF_ID}", UNLIKE_ANALYZE),
    "correlation": (f"UPDATE pg_statistic SET stanumbers2 = '{{{{7}}}}' WHERE {OF_ID}", UNLIKE_ANALYZE),
    "type": (f"""UPDATE pg_statistic SET stavalues1 = filler.stavalues1 FROM pg_statistic AS filler
                 WHERE {OF_ID.replace("sta", "pg_statistic.sta")} AND filler.starelid = '{{0}}'::regclass AND filler.staattnum = 3""",
             UNLIKE_ANALYZE),
    "rows": ("UPDATE pg_class SET reltuples = 'Infinity' WHERE oid = '{0}'::regclass", UNCOUNTED),
    "pages": ("UPDATE pg_class SET relpages = 0 WHERE oid = '{0}'::regclass", UNCOUNTED),
    "indexes": (f"DO $$ BEGIN FOR n IN 1..200 LOOP {INDEX}; END LOOP; END $$", "its table has over 200 indexes"),
}  # fmt: skip
if VERSION >= 18:
    CLAIMS["restored"] = ("""SELECT pg_restore_relation_stats('schemaname', 'public', 'relname', '{0}', 'relpages', 1000000, 'reltuples', 12000::real),
        pg_restore_attribute_stats('schemaname', 'public', 'relname', '{0}', 'attname', 'id', 'inherited', false, 'null_frac', 0::real,
        'avg_width', 8, 'n_distinct', -1::real, 'histogram_bounds', array_agg(g || repeat('0', 8000) ORDER BY g)::text)
        FROM generate_series(10000, 19000) AS g""", UNLIKE_ANALYZE)  # fmt: skip
# Planning reads these statistics without a look for interrupts.
SLOW = """DO $$ BEGIN EXECUTE format('CREATE STATISTICS {0}_{1} ON (id = ANY (%L::int[])), id FROM {0}',
    ARRAY(SELECT generate_series(1, 200000))); END $$"""
STATE = """SELECT array_agg(name || '=' || setting || source ORDER BY name) FROM pg_settings
    WHERE name ~ '^(enable_|.*_page_cost$|.*_io_concurrency$|search_path|jit|max_parallel|debug_io)'"""
setUpModule = needs_root


def probed_table(session, place="", rows=ROWS, name="probed"):
    """A table with an index in its order and one in no order; a row is 900 bytes."""
    session.run(f"CREATE TABLE {name} (id int, shuffled int, filler text) WITH (autovacuum_enabled = off) {place}")
    session.run(f"INSERT INTO {name} SELECT g, g * 7919 % {rows}, repeat('x', 860) FROM generate_series(1, {rows}) AS g")
    session.run(f"VACUUM FULL {name}")
    session.run(f"CREATE INDEX {name}_id ON {name} (id) {place}")
    session.run(f"CREATE INDEX {name}_shuffled ON {name} (shuffled) {place}")
    session.run(f"VACUUM ANALYZE {name}")
    session.run("CHECKPOINT")


class Storage(unittest.TestCase):
    """What the storage is like shows in the times and in the advice."""

    def setUp(self):
        self.control = Session()
        self.addCleanup(self.control.close)

    def on_loop_device(self):
        disk = LoopDevice(256 * MIB)
        self.addCleanup(disk.remove)
        self.tablespace(disk.mount_point)
        disk.set_queue(1280, 1024)
        return disk

    def tablespace(self, directory):
        place = create_tablespace(self.control, "elsewhere", directory)
        self.addCleanup(self.control.run, "DROP TABLESPACE elsewhere")
        self.addCleanup(self.control.run, "DROP TABLE IF EXISTS probed")
        probed_table(self.control, place)

    def advice(self, session, **arguments):
        arguments = {"settings": OF_TABLESPACE, "duration": "5 s", "cold": True, **arguments}
        rows = session.rows(rows_of("recommend", "probed", **arguments))
        self.assertEqual([row["setting"] for row in rows], OF_TABLESPACE)
        for row in rows:
            self.assertTrue(row["why"], row)
            self.assertEqual((row["scope"], row["name"]), ("tablespace", "elsewhere"))
            if row["recommended"] in (None, row["current"]):
                self.assertIsNone(row["statement"], row)
            else:
                words = f"{row['setting']} = {row['recommended']}"
                self.assertEqual(row["statement"], f"ALTER TABLESPACE elsewhere SET ({words})")
        return {row["setting"]: row for row in rows}

    def test_small_and_large_requests(self):
        """The device gives 2000 requests a second. Where it takes large ones, reads in order are cheap."""
        disk = self.on_loop_device()
        ratios = {}
        with cgroups.limited_somehow(disk.device, read_iops=2000) as limit:
            if limit is None:
                self.skipTest("no cgroup limits requests here")
            with limit.on(server_processes()):
                # A block takes two small requests, in order or not.
                for name, limits in {"large": (1280, 2048), "small": (4, 4)}.items():
                    disk.set_queue(*limits)
                    with Session() as session:
                        row = self.advice(session, duration="3 s")["random_page_cost"]
                    say(f"{name}: {row['recommended']} ({row['low']} to {row['high']}), {row['why']}")
                    evidence = row["evidence"]
                    ratios[name] = evidence["random_us"] / evidence["sequential_us"]
        say(f"ratios: {ratios}")
        # About 40 times, by the count of requests alone; less where the processor is busy.
        self.assertGreater(ratios["large"], 2 * ratios["small"])

    def test_beside_others_that_read(self):
        """Rows that were read from the device tell of the others in `doubt`, and so does advice that rests on them."""
        disk = self.on_loop_device()
        settings = [*OF_TABLESPACE, "read_ahead_kb"]

        def doubted(session):
            arguments = {"duration": "1 s", "cold": True}
            tiers = session.rows(rows_of("page_cost", "probed", densities=[0.2], concurrencies=[0, 16], **arguments))
            for duration in ["6 s", "20 s", "60 s"]:
                arguments = {"settings": settings, "duration": duration, "cold": True}
                advice = session.rows(rows_of("recommend", "probed", **arguments))
                advice = [row for row in advice if row["recommended"] is not None]
                say(str([(row["setting"], row["recommended"], row["doubt"]) for row in advice]))
                # On a busy machine there is little advice in a short time.
                if len(advice) > 1:
                    break
            self.assertLess(0, len(advice))
            whose = {(row["tier"], "others" in (row["doubt"] or "")) for row in tiers if row["block_us"] is not None}
            return whose, {row["setting"] for row in advice if "others" in (row["doubt"] or "")}, {row["setting"] for row in advice}

        def depths(session):
            rows = session.rows(rows_of("depth", "probed", depths=[1, 4], duration="1 s"))
            return {"others" in (row["doubt"] or "") for row in rows}

        with Session() as session:
            tiers, others, _ = doubted(session)
            self.assertEqual((any(doubt for _, doubt in tiers), others), (False, set()))
            self.assertEqual(depths(session), {False})
            with disk.read_on():
                self.assertEqual(depths(session), {True})
            with disk.read_on(pause=0.01):
                tiers, others, advised = doubted(session)
            self.assertEqual({tier for tier, doubt in tiers if doubt}, {"device"})
            # Scans may be so fast that the others move less than a tenth of the bytes.
            self.assertLessEqual(advised, others | {"read_ahead_kb"})

    def test_readahead_beside_others_that_read(self):
        """Advice on read_ahead_kb tells of the others, too, where they move a tenth of the bytes. Of a device that gives 4000
        requests a second there is advice at once."""
        disk = self.on_loop_device()
        disk.set_queue(1280, 64)
        with cgroups.limited_somehow(disk.device, read_iops=4000) as limit:
            if limit is None:
                self.skipTest("no cgroup limits requests here")
            # The others are not limited.
            with limit.on(server_processes()), Session() as session:
                arguments = {"settings": ["read_ahead_kb"], "duration": "30 s", "cold": True}
                for beside, doubt in [(contextlib.nullcontext, "limited"), (disk.read_on, "others")]:
                    with beside():
                        (row,) = session.rows(rows_of("recommend", "probed", **arguments))
                    self.assertLess(64, int(row["recommended"] or 0), row)
                    self.assertEqual(row["doubt"], doubt, row)

    def test_what_is_read_is_said_and_dropped(self):
        """No less is read from the device than the rows say, and most of it leaves the cache."""
        disk = self.on_loop_device()
        path = segment_file(self.control, "probed")
        with Session() as session:
            for cold in [False, True]:
                with self.subTest(cold=cold):
                    self.control.run("SELECT * FROM io_probe_evict('probed')")
                    self.assertEqual(fincore(path), 0)
                    before = disk.counters()["bytes"]
                    rows = session.rows(rows_of("page_cost", "probed", duration="2 s", cold=cold, densities=[0.5],
                                                concurrencies=[1, 16]))
                    read_bytes, left = disk.counters()["bytes"] - before, fincore(path)
                    rows = [row for row in rows if row["tier"] == "device"]
                    told = sum(row["blks"] for row in rows) * BLOCK
                    say(f"cold {cold}: {read_bytes / MIB:.1f} MiB read, {told / MIB:.1f} MiB in the rows, "
                        f"{left / MIB:.1f} MiB left in the cache")
                    self.assertGreaterEqual(read_bytes, told)
                    # Readahead that was on its way when a stretch was dropped may stay.
                    self.assertLess(left, os.path.getsize(path) / 2)
                    for row in rows:
                        self.assertLessEqual(row["os_pct"] or 0, 1, row)

    def test_cached_is_left_alone(self):
        """Without `cold`, of a cached table single blocks are read past the cache, which keeps what it has."""
        disk = self.on_loop_device()
        path = segment_file(self.control, "probed")
        self.control.run("SELECT * FROM io_probe_evict('probed')")
        self.control.run("SELECT * FROM io_probe_seqscan_full('probed', '{os}')")
        held, before = fincore(path), disk.counters()["bytes"]
        # Some pages may be missing, here and below: nothing keeps them in the cache.
        self.assertGreater(held, os.path.getsize(path) * 0.9)
        with Session() as session:
            rows = session.rows(rows_of("page_cost", "probed", duration="500 ms"))
            (single,) = [row for row in rows if row["tier"] == "device"]
            self.assertEqual((single["pattern"], single["status"]), ("random", "ok"), single)
            for row in rows:
                self.assertGreater(row["block_us"], 0, row)
            told, moved = single["blks"] * BLOCK, disk.counters()["bytes"] - before
            say(f"{moved / MIB:.1f} MiB read, {told / MIB:.1f} MiB in the row")
            self.assertGreaterEqual(moved, told)
            self.assertLess(moved - told, held * 0.1)
            before += moved
            rows = self.advice(session, cold=False, duration="500 ms")
        say(rows["random_page_cost"]["why"])
        self.assertIsNone(rows["random_page_cost"]["recommended"])
        self.assertIn("cold => true", rows["random_page_cost"]["why"])
        self.assertGreater(fincore(path), held * 0.9)
        self.assertLess(disk.counters()["bytes"] - before, held * 0.1)

    def test_a_rate_limit_holds_for_what_the_device_moves(self):
        """The excess is one turn at most, with what the kernel reads ahead without being asked.

        A scan that begins within a file reads a request's size first, and only then in whole windows of 8 MiB. A turn has three of
        these before it is timed, and times two.
        """
        disk = self.on_loop_device()
        disk.set_queue(1280, 8192)
        rate, turn = 4 * MIB, (5 * 8 + 8) * MIB + 1280 * 1024
        with Session() as session:
            before, started = disk.counters()["bytes"], time.monotonic()
            query = rows_of("page_cost", "probed", duration="5 s", cold=True, options={"max_mib_s": rate // MIB})
            rows = session.rows(query)
            moved, took = disk.counters()["bytes"] - before, time.monotonic() - started
        say(f"{moved / MIB:.1f} MiB in {took:.1f} s at {rate // MIB} MiB/s")
        self.assertLessEqual(moved, rate * took + turn, [row for row in rows if row["blks"]])

    def test_a_busy_device(self):
        """A busy device is left alone. For a table that the call does not name, the row gives this reason; else it is an ERROR.
        (limits.py has that of the page costs.)"""
        disk = self.on_loop_device()
        read = f"while :; do dd if={disk.device} of=/dev/null bs=1M iflag=direct 2>&1; done & "
        load = subprocess.Popen(["sh", "-c", read * 6 + "wait"], stdout=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(load.wait)
        self.addCleanup(os.killpg, load.pid, 15)
        before = disk.counters()["reads"]
        wait_for(lambda: disk.counters()["reads"] > before + 1000, "the load")
        arguments = {"cold": True, "duration": "300 ms", "settings": ["random_page_cost", "read_ahead_kb"]}
        name = os.path.basename(disk.device)
        busy = rf'device "{name}" is \d+(\.\d+)? % busy'
        with Session() as session:
            session.run("SET pg_io_probe.max_busy_pct = 20")
            rows = session.rows(rows_of("recommend", **arguments))
            rows = [row for row in rows if row["name"] in ["elsewhere", name]]
            self.assertLessEqual({"random_page_cost", "read_ahead_kb"}, {row["setting"] for row in rows})
            for row in rows:
                self.assertEqual((row["recommended"], row["statement"], row["relid"]), (None, None, "probed"), row)
                self.assertRegex(row["why"], rf"^not measured: {busy} \(pg_io_probe.max_busy_pct is 20\)$")
            with self.assertRaises(Failure) as raised:
                session.rows(rows_of("recommend", "probed", **{**arguments, "settings": ["read_ahead_kb"]}))
            self.assertEqual(raised.exception.sqlstate, "55000", raised.exception)
            self.assertRegex(str(raised.exception), busy)

    def test_a_device_that_can_not_be_seen(self):
        """With max_busy_pct set, such a device is left alone, also if it is the WAL's; other devices are measured."""
        memory = os.path.join(TEST_TMP, "unseen")
        os.makedirs(memory, exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", "size=512m", "tmpfs", memory)
        self.addCleanup(run, "umount", "--lazy", memory)
        os.chown(memory, *server_ids())
        server = Server("leftalone", "-X", os.path.join(memory, "wal"))
        self.addCleanup(server.remove)
        server.configure({"max_wal_size": "64MB", "min_wal_size": "32MB", "shared_buffers": "1MB"})
        server.start()
        unseen = (None, None, "not measured: it is not known how busy the device is "
                  "(pg_io_probe.max_busy_pct is set, but the device itself is not known)")  # fmt: skip
        with server.session() as session:
            session.run("CREATE EXTENSION pg_io_probe")
            # The larger table is in memory.
            probed_table(session, create_tablespace(session, "elsewhere", memory), rows=20000)
            probed_table(session, rows=12000, name="nearby")
            session.run("SET pg_io_probe.max_busy_pct = 100; SET pg_io_probe.scratch_reserve = 0")
            arguments = {"cold": True, "writes": True, "duration": "2 s",
                         "settings": ["random_page_cost", "wal_sync_method"]}
            rows = session.rows(rows_of("recommend", **arguments))
            (nearby,) = [row for row in rows if row["name"] == "pg_default"]
            rows.remove(nearby)
            for row in rows:
                self.assertEqual((row["recommended"], row["statement"], row["why"]), unseen)
            self.assertLessEqual({"random_page_cost", "wal_sync_method"}, {row["setting"] for row in rows})
            say(nearby["why"])
            self.assertEqual(nearby["relid"], "nearby")
            self.assertGreater(nearby["evidence"]["sequential_us"], 0, nearby)
            # The call names a table, not the WAL: its row has the reason.
            _, wal = session.rows(rows_of("recommend", "nearby", **arguments))
            self.assertEqual((wal["recommended"], wal["statement"], wal["why"]), unseen)
            with self.assertRaises(Failure) as raised:
                session.rows(rows_of("recommend", "probed", **arguments))
            self.assertEqual(raised.exception.sqlstate, "55000", raised.exception)
            self.assertIn("it is not known how busy the device is", str(raised.exception))

    def test_memory_is_no_device(self):
        directory = os.path.join(TEST_TMP, "memory")
        os.makedirs(directory, exist_ok=True)
        run("mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", directory)
        self.addCleanup(run, "umount", "--lazy", directory)  # others may have a file of it open still
        self.tablespace(directory)
        with Session() as session:
            for row in session.rows(rows_of("page_cost", "probed", duration="1 s", cold=True)):
                if row["tier"] == "device":
                    self.assertEqual((row["status"], row["block_us"], row["ci_low"]), ("partial", None, None), row)
                    self.assertIn("could not be evicted", str(row["notes"]))
                    self.assertNotIn("cold => true", str(row["notes"]))
            # What was given is not asked for.
            session.run("SET client_min_messages = warning")
            lines = session.rows(rows_of("report_full", "probed", duration="2 s", cold=True))
            self.assertNotRegex(str([line["finding"] for line in lines]), "cold => true|needs cold")
            for row in self.advice(session, duration="1 s").values():
                self.assertNotEqual(row["doubt"], "needs cold", row)
                say(f"{row['setting']}: {row['recommended']}, {row['why']}")
                self.assertIsNone(row["recommended"], row)


class PastTheCache(unittest.TestCase):
    """A server that reads past the OS cache."""

    @unittest.skipIf(VERSION < 16, "no debug_io_direct")
    def test_hits_are_timed(self):
        with Session() as session:
            self.addCleanup(self.drop)
            probed_table(session, rows=20000)
        arguments = {"densities": [1], "concurrencies": [0], "cold": True}
        with server_with(debug_io_direct="data"), Session() as session:
            for duration in SOON:
                rows = session.rows(rows_of("page_cost", "probed", duration=f"{duration} s", **arguments))
                (hit,) = [row for row in rows if row["tier"] == "shared"]
                (read,) = [row for row in rows if (row["tier"], row["pattern"]) == ("device", "random")]
                say(f"hit {hit['block_us']} us, {hit['notes']}; read {read['block_us']} us, {read['notes']}")
                if hit["block_us"] and read["block_us"]:
                    break
        self.assertEqual(hit["status"], "ok", hit)
        self.assertLess(hit["block_us"], read["block_us"] / 4)

    def drop(self):
        with Session() as session:
            session.run("DROP TABLE IF EXISTS probed")


class Manners(unittest.TestCase):
    """A call ends when told to, gives way, and leaves the session as it was. (More cancels are in cancel.py.)"""

    @classmethod
    def setUpClass(cls):
        cls.control = Session()
        probed_table(cls.control)

    @classmethod
    def tearDownClass(cls):
        cls.control.run("DROP TABLE IF EXISTS probed, larger")
        cls.control.close()

    def setUp(self):
        # The rings of each call leave some of a table in shared buffers. Up to 16 no function can evict that.
        if VERSION < 17:
            self.control.run("VACUUM (FULL, ANALYZE) probed")

    def plan(self, session):
        """The plan of QUERY in this session, with its costs: it would show what a call has left behind."""
        return session.run(f"EXPLAIN {QUERY}")

    def test_an_end_at_any_time(self):
        """A call ends while it measures, counts tuples or asks the planner, and the session is as before."""
        with Session() as session:
            session.run("SET search_path = public, pg_catalog; SET enable_nestloop = off; SET seq_page_cost = 1.5")
            session.run("LOAD 'pg_io_probe'")
            session.rows(rows_of("recommend", "probed", settings=OF_TABLESPACE, duration="50 ms", cold=True))
            holdings = Holdings(session, self.control)
            before = session.run(STATE), self.plan(session)
            ends = {}
            for ms in [20, 60, 150, 400, *range(700, 1500, 75)]:
                session.run(f"SET statement_timeout = {ms}")
                try:
                    session.rows(rows_of("recommend", "probed", settings=OF_TABLESPACE, duration="600 ms", cold=True))
                    ends[ms] = "done"
                except Failure as failure:
                    self.assertEqual(failure.sqlstate, "57014", failure)
                    ends[ms] = "cancelled"
                session.run("SET statement_timeout = 0")
                self.assertEqual((session.run(STATE), self.plan(session)), before)
                self.assertEqual(holdings.left(), {})
            say(str(ends))
            self.assertIn("cancelled", ends.values())

    def test_nothing_is_sent_meanwhile(self):
        """A client that does not read what is sent would make a probe wait, beyond its bounds."""
        def printed(query):
            return sum("LOG:" in line for line in session.run(f"SELECT count(*) FROM {query}"))

        with Session() as session:
            session.run("SET client_min_messages = log; SET debug_print_plan = on")
            self.assertEqual(printed("generate_series(1, 2)"), 1)
            arguments = "'probed', cold => true, duration => '600 ms'"
            for probe in [f"io_probe_page_cost({arguments})",
                          f"io_probe_recommend({arguments}, settings => '{{random_page_cost,correlation}}')"]:
                with self.subTest(probe):
                    # Another one may be sent before the probe holds its lock.
                    self.assertLessEqual(printed(probe), 2)

    def nearby_table(self):
        """Makes a smaller table, of which the planner can be asked, too."""
        probed_table(self.control, rows=12000, name="nearby")
        self.addCleanup(self.control.run, "DROP TABLE nearby")

    def options(self, *options):
        """Gives the default tablespace options of its own."""
        self.control.run(f"ALTER TABLESPACE pg_default SET ({', '.join(options)})")
        names = [option.split()[0] for option in options]
        self.addCleanup(self.control.run, f"ALTER TABLESPACE pg_default RESET ({', '.join(names)})")

    def query(self, **arguments):
        """A call of `soon` seconds, which has the planner asked at some time."""
        arguments = {"settings": ["random_page_cost"], **arguments}
        return rows_of("recommend", duration=f"{self.soon} s", cold=True, **arguments)

    def test_functions_of_users_are_not_called(self):
        """Not even those of the table's owner, if the owner calls: the table is left out, and the row says so."""
        self.nearby_table()
        self.control.run(TRAP)
        self.addCleanup(self.control.run, UNTRAP)
        # Of all concurrencies only that of the tablespace is measured, so that the planner is asked soon.
        self.options("effective_io_concurrency = 0")
        counts = rows_of("page_cost", "probed", duration="50 ms", cold=True, densities=[1])
        for role in ["RESET ROLE", "SET ROLE trapper"]:
            for trap in ["STATISTICS trap.set ON (id + trap.springs()) FROM probed",
                         "INDEX set ON probed ((id + trap.springs()))",
                         "INDEX set ON probed (id) WHERE id <> trap.springs()",
                         "INDEX set ON probed ((id + 1::trap.checked))",
                         "INDEX set ON probed (id) WHERE shuffled IS NOT NULL OR id OPERATOR(trap.<<>>) 5",
                         "INDEX set ON probed (id) WHERE shuffled IS NOT NULL OR spread && '[1,2)'",
                         "INDEX set ON probed (id) WHERE shuffled IS NOT NULL OR (pair).spread @> 5"]:
                if VERSION < 17:  # each call leaves blocks in shared buffers
                    self.control.run("VACUUM FULL probed")
                self.control.run(f"CREATE {trap}")
                with self.subTest(trap, role=role), Session() as session:
                    # The server keeps what it has computed of an index, unless that ended by an ERROR.
                    session.run(role)
                    (row,) = [row for row in session.rows(counts) if row["tier"] == "cpu"]
                    self.assertEqual((row["block_us"], row["status"]), (None, "partial"), row)
                    self.assertIn("call a user-defined function", " ".join(row["notes"]))
                    told = session.run(counts)
                    self.assertNotIn("trap", "".join(told))
                    asked = {"settings": ["random_page_cost"], "cold": True}
                    told = "".join(session.run(rows_of("recommend", "probed", duration="1 s", **asked)))
                    self.assertIn("the planner's plans could not be judged", told)
                    self.assertNotIn("trap", told)
                    # The planner is asked of other tables in the tablespace, if there is time.
                    if role == "RESET ROLE" and trap.startswith("STATISTICS"):
                        told = "".join(session.run(rows_of("recommend", "nearby", duration="4 s", **asked)))
                        say(told)
                        self.assertNotIn("trap", told)
                        if '"tables":' in told:
                            self.assertIn('"tables": 1,', told)
                self.control.run(f"DROP {trap.split()[0]} {trap.split()[1] if 'STAT' in trap else 'set'}")
        # Without a trap tuples are counted.
        (row,) = [row for row in self.control.rows(counts) if row["tier"] == "cpu"]
        # (What they take is not told where a busy machine makes hits seem to take all of the time.)
        self.assertNotIn("could not be counted", " ".join(row["notes"]))

    def test_claims_of_the_catalogs(self):
        """What the catalogs say of a table costs no other table its advice, and the row says what was left out."""
        for name, (claim, _) in CLAIMS.items():
            probed_table(self.control, rows=12000, name=name)
            self.addCleanup(self.control.run, f"DROP TABLE {name}")
            self.control.run(f"DROP INDEX {name}_shuffled")
            if name == "restored":
                self.control.run("ALTER TABLE restored ALTER id TYPE numeric")
            self.control.run(claim.format(name))
        self.options("effective_io_concurrency = 0")
        with Session() as session:
            for self.soon in SOON:
                (row,) = [row for row in session.rows(self.query()) if row["relid"]]
                say(row["why"])
                if "tables" in row["evidence"]:
                    break
        self.assertEqual(row["evidence"]["tables"], 1, row)
        for name, (_, why) in CLAIMS.items():
            self.assertIn(f"public.{name}.id ({why})", row["why"])

    def test_expressions_that_take_long(self):
        """Planning computes them, as long as the owner likes: the table is left out by name, others have their rows, and the call
        ends sooner than one plan of that table."""
        for name in ["slow", "computing"]:
            probed_table(self.control, rows=ROWS + 5000, name=name)
            self.addCleanup(self.control.run, f"DROP TABLE {name}")
        for n in range(30):
            self.control.run(SLOW.format("slow", n))
        long = " + ".join(f"factorial({32000 - n})" for n in range(10))
        self.control.run(f"CREATE STATISTICS computing ON (id + length(({long})::text)), id FROM computing")
        started = time.monotonic()
        self.control.run("EXPLAIN SELECT FROM computing")
        one_plan = time.monotonic() - started
        with Session() as session:
            session.run("SET pg_io_probe.max_duration = '1 s'")
            started = time.monotonic()
            rows = session.rows(rows_of("recommend", settings=OF_TABLESPACE, cold=True))
            took = time.monotonic() - started
            of_slow = session.rows(rows_of("recommend", "slow", settings=OF_TABLESPACE, cold=True))
            # The deadline of a timeout that is over lies within the next statement.
            for ms in [100, 200, 400]:
                session.run(f"SET statement_timeout = {ms}")
                session.run("SET statement_timeout = 0")
                session.run(rows_of("recommend", "slow", settings=OF_TABLESPACE, cold=True))
            session.run("SET statement_timeout = 100")
            with self.assertRaises(Failure) as raised:
                session.run(rows_of("recommend", settings=OF_TABLESPACE, cold=True))
            self.assertIn("statement timeout", str(raised.exception))
        say(f"a plan {one_plan:.1f} s, the call {took:.1f} s")
        self.assertLess(took, one_plan)
        self.assertEqual([row["setting"] for row in rows if row["relid"] == "probed"], OF_TABLESPACE, rows)
        for row in rows:
            self.assertIn("public.slow (planning a query of this table takes more than 250 ms)", row["why"])
            self.assertRegex(row["why"], "public.computing \\(its queries could not be planned, .* or compute constants")
        self.assertEqual([row["setting"] for row in of_slow], OF_TABLESPACE)

    def test_a_table_with_more_indexes_than_there_are_locks(self):
        """Planning would lock them all. (So would CREATE INDEX, if it had workers.)"""
        server = Server("fewlocks")
        self.addCleanup(server.remove)
        server.configure({"max_locks_per_transaction": 10, "max_connections": 10, "max_wal_senders": 0,
                          "max_parallel_maintenance_workers": 0})  # fmt: skip
        server.start()
        with server.session() as session:
            session.run("CREATE EXTENSION pg_io_probe")
            probed_table(session, rows=3000)
            for _ in range(1500):
                session.run(INDEX.format("probed"))
            with self.assertRaises(Failure) as raised:
                session.run(f"EXPLAIN {QUERY}")
            self.assertEqual(raised.exception.sqlstate, "53200", raised.exception)
            rows = session.rows(rows_of("page_cost", "probed", duration="50 ms", cold=True, densities=[1], concurrencies=[0]))
            (row,) = [row for row in rows if row["tier"] == "cpu"]
            self.assertIn("there are over 200 indexes", " ".join(row["notes"]))

    def test_an_end_between_two_plans(self):
        """A call ends between two plans. Each of them takes a while in which no interrupt is looked for."""
        self.nearby_table()
        self.control.run(SLOW.format("nearby", 0))
        self.options("effective_io_concurrency = 0")
        locks = "SELECT count(*) FROM pg_locks WHERE pid = {} AND relation = 'nearby'::regclass"
        with Session() as session:
            state = f"SELECT ({STATE})::text || current_user"
            before, holdings = (session.run(state), self.plan(session)), Holdings(session, self.control)
            for self.soon in SOON:
                # More plans of each query are asked for than there is time for.
                query = self.query(settings=OF_TABLESPACE)
                session.start(f"""DO $$ BEGIN PERFORM * FROM ({query}) AS probe;
                    EXCEPTION WHEN query_canceled THEN RAISE INFO 'state: %', ({state}); END $$""")
                started = time.monotonic()
                wait_for(lambda: self.control.value(locks.format(session.pid)) or not session.busy(), "a plan, or the end", 30)
                if session.busy():
                    break
                session.finish()
            else:
                self.fail("it never asked the planner")
            time.sleep(0.2)
            soon = time.monotonic() - started
            asked = time.monotonic()
            self.control.value(f"SELECT pg_cancel_backend({session.pid})")
            lines = session.finish()
            say(f"cancel: {(time.monotonic() - asked) * 1000:.0f} ms, after {soon:.1f} s")
            self.assertLess(time.monotonic() - asked, 10)
            self.assertEqual(re.findall("state: (.*)", "\n".join(lines)), before[0])
            # On a busy machine time may be lacking, and then the planner is not asked.
            first = self.soon
            for self.soon in SOON[SOON.index(first):]:
                limit = soon * self.soon / first + 1
                session.run(f"SET statement_timeout = {limit * 1000:.0f}")
                started = time.monotonic()
                try:
                    session.run(self.query(settings=OF_TABLESPACE))
                except Failure as failure:
                    took = time.monotonic() - started
                    self.assertEqual(failure.sqlstate, "57014", failure)
                    break
            else:
                self.fail("it never asked the planner again")
            say(f"statement_timeout: {(took - limit) * 1000:.0f} ms")
            self.assertLess(took, limit + 10)
            session.run("SET statement_timeout = 0")
            self.assertEqual((session.run(state), self.plan(session)), before)
            self.assertEqual(self.control.value(locks.format(session.pid)), 0)
            self.assertEqual(holdings.after_its_end(), {})

    def test_what_needs_a_table_for_itself(self):
        """A statement that needs the table for itself is let through while a probe measures."""
        for query in [rows_of("page_cost", "probed", duration="60 s", cold=True),
                      rows_of("page_cost", "probed", duration="60 s", cold=True, options={"max_mib_s": 4}),
                      rows_of("recommend", "probed", settings=OF_TABLESPACE, duration="60 s", cold=True)]:
            with self.subTest(query), Session() as prober, Session() as other:
                prober.start_rows(query)
                wait_for_probe(self.control, prober.pid)
                time.sleep(0.3)
                asked = time.monotonic()
                other.run("BEGIN; LOCK TABLE probed; COMMIT")
                waited = time.monotonic() - asked
                rows = prober.finish_rows()
                say(f"LOCK TABLE: waited {waited * 1000:.0f} ms, {query}")
                self.assertLess(waited, PATIENCE)
                if "page_cost(" in query:
                    self.assertEqual({row["status"] for row in rows if row["tier"] == "device"}, {"partial"})
                    self.assertIn("another session waits for a lock", str(rows))

    def test_a_table_that_is_locked_while_the_planner_is_asked(self):
        """A table other than the measured one is left out while another session has it locked. The probe does not wait."""
        self.control.run("CREATE TABLE larger AS SELECT * FROM probed UNION ALL SELECT * FROM probed")
        self.control.run("CREATE INDEX larger_id ON larger (id)")
        self.control.run("ANALYZE larger; CHECKPOINT")
        with Session() as prober, Session() as other:
            other.run("BEGIN; LOCK TABLE probed")
            rows = prober.rows(rows_of("recommend", settings=["random_page_cost"], duration="4 s", cold=True))
            (row,) = [row for row in rows if row["relid"]]
            self.assertEqual(row["relid"], "larger")
            say(row["why"])
            self.assertEqual(row["evidence"].get("tables", 1), 1)
            # Here the lock comes while the probe runs, and stays.
            other.run("COMMIT")
            prober.start_rows(rows_of("recommend", settings=["random_page_cost"], duration="2 s", cold=True))
            wait_for_probe(self.control, prober.pid)
            other.run("BEGIN; DROP TABLE probed")
            rows = prober.finish_rows()
            self.assertEqual([row["relid"] for row in rows if row["relid"]], ["larger"])
            other.run("ROLLBACK")
        self.control.run("DROP TABLE larger")


if __name__ == "__main__":
    main()
