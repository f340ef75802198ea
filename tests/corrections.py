#!/usr/bin/env -S python3 -B
"""Other sessions plan with correlations that are stored: beside locks, DDL and rights, on a standby, beside hypopg."""

import os
import threading
import time
import unittest

from ddl import Standby
from lib import LONG, Failure, Session, create_extension, literal, main, read, rows_of
from servers import Limited

RANGE = "SELECT pad FROM ranged WHERE jittered BETWEEN 100000 AND 102000"
# SQLSTATEs that are no fault in a race: deadlock, a lock that is not to be had, an object that is gone or there already.
RACES = {"40P01", "55P03", "42P01", "42704", "42P07", "23505"}
SECONDS = 60 if LONG else 6
LIMITS = 300 if LONG else 30
MIB = 1 << 20


def cost(session, query=RANGE):
    """What the planner charges for a query, by an index scan."""
    plan = session.run(f"EXPLAIN (FORMAT JSON, COSTS) {query}")
    (line,) = [line for line in plan if '"Total Cost"' in line][:1]
    return float(line.split(":")[1].strip(" ,"))


class Corrections(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.control = Session()
        cls.addClassCleanup(cls.control.close)
        cls.control.run("""
            CREATE TABLE ranged (id int, jittered int, pad text) WITH (autovacuum_enabled = off);
            INSERT INTO ranged SELECT i, i + abs(hashint4(i)) % 8000, repeat('x', 40) FROM generate_series(1, 200000) AS i;
            CREATE INDEX ranged_jittered ON ranged (jittered); VACUUM ANALYZE ranged""")
        cls.addClassCleanup(cls.control.run, "DROP TABLE ranged")

    def setUp(self):
        self.planner = self.planning()
        self.addCleanup(self.control.run, "DELETE FROM io_probe_corrections")
        self.analyzed = cost(self.planner)

    def planning(self, **given):
        """A session that has loaded the library, and plans index scans."""
        session = Session(**given)
        self.addCleanup(session.close)
        session.run("LOAD 'pg_io_probe'; SET enable_seqscan = off; SET enable_bitmapscan = off")
        return session

    def keep(self, session=None, correlation=0, index="ranged_jittered"):
        (session or self.control).run(f"SELECT io_probe_correct({literal(index)}, {correlation})")

    def assert_corrected(self, session=None):
        self.assertGreater(cost(session or self.planner), 5 * self.analyzed)

    def assert_analyzed(self, session=None):
        self.assertLess(abs(cost(session or self.planner) / self.analyzed - 1), 0.01)

    def test_other_sessions_hear_of_it_when_it_is_committed(self):
        self.control.run("BEGIN")
        self.keep()
        self.assert_analyzed()
        self.control.run("COMMIT")
        self.assert_corrected()
        with self.subTest("a session that has not loaded the library"):
            with Session() as other:
                other.run("SET enable_seqscan = off; SET enable_bitmapscan = off")
                self.assert_analyzed(other)
        self.keep(correlation="NULL")
        self.assert_analyzed()

    def test_planning_waits_for_nobody(self):
        self.keep()
        self.assert_corrected()
        for held in ["LOCK TABLE io_probe_corrections", "REINDEX INDEX io_probe_corrections_pkey", "LOCK TABLE pg_depend",
                     "LOCK TABLE pg_extension"]:  # fmt: skip
            with self.subTest(held):
                session = self.planning()
                session.run("SET statement_timeout = '5 s'")
                self.control.run(f"BEGIN; {held}")
                self.assert_analyzed(session)
                if "corrections" in held:
                    # A correlation that was read before does not count any more, either, once it may have changed.
                    self.control.run("ALTER TABLE ranged SET (parallel_workers = 1); COMMIT")
                    self.control.run(f"BEGIN; {held}")
                    self.planner.run("SET statement_timeout = '5 s'")
                    self.assert_analyzed()
                self.control.run("COMMIT")
                self.assert_corrected(session)
                self.assert_corrected()

    def test_an_index_that_a_plan_could_not_use(self):
        """When the index becomes valid, other sessions hear of the index, not of its table. They plan with the correction."""
        valid = "UPDATE pg_index SET indisvalid = {} WHERE indexrelid = 'ranged_jittered'::regclass"
        # Without any valid index there would be nothing to correct.
        self.control.run("CREATE INDEX ranged_id ON ranged (id)")
        self.addCleanup(self.control.run, "DROP INDEX ranged_id")
        self.control.run(valid.format("false"))
        self.addCleanup(self.control.run, valid.format("true"))
        self.keep()
        # This session has never known the index.
        session = self.planning()
        for _ in range(2):
            cost(session)
        self.control.run(valid.format("true"))
        self.assert_corrected(session)

    def test_an_index_that_gets_another_name(self):
        self.keep()
        self.assert_corrected()
        self.control.run("ALTER INDEX ranged_jittered RENAME TO ranged_renamed")
        # What is known of the table after the first plan is known without a search after the second.
        for _ in range(3):
            self.assert_analyzed()
        self.control.run("ALTER INDEX ranged_renamed RENAME TO ranged_jittered")
        self.assert_corrected()

    def test_statistics_that_change_alone(self):
        self.addCleanup(self.control.run, "ANALYZE ranged")
        # Without statistics the planner takes 0.
        self.keep(correlation=0.5)
        self.assert_corrected()
        self.control.run("DELETE FROM pg_statistic WHERE starelid = 'ranged'::regclass")
        self.assertEqual(cost(self.planner), cost(self.planning()))

    def test_what_was_undone_is_forgotten(self):
        """This session also forgets a correlation that it has read in the command that failed."""
        self.control.run(f"""CREATE FUNCTION plans() RETURNS void STABLE LANGUAGE plpgsql AS $$ BEGIN
            PERFORM count(*) FROM ({RANGE}) AS r; RAISE 'undone'; END $$""")
        self.addCleanup(self.control.run, "DROP FUNCTION plans")
        session = self.planning()
        with self.assertRaisesRegex(Failure, "undone"):
            session.run("SELECT io_probe_correct('ranged_jittered', 0), plans()")
        self.assert_analyzed(session)

    def test_no_transaction_fails_for_it(self):
        self.planner.run("BEGIN ISOLATION LEVEL SERIALIZABLE")
        self.assert_analyzed()
        self.planner.run("CREATE TEMP TABLE written AS SELECT count(*) FROM ranged")
        with Session() as other:
            other.run("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT FROM ranged")
            with self.assertRaisesRegex(Failure, "in a serializable transaction"):
                self.keep(other)
            other.run("ROLLBACK")
        self.keep()
        self.planner.run("COMMIT")
        self.assert_corrected()

    def test_without_memory_a_plan_fails_and_the_server_goes_on(self):
        """With LIMITS different limits of a session's memory, each a little over what it has."""
        self.keep()
        wide = " UNION ALL ".join([RANGE] * 300)
        started = self.control.value("SELECT pg_postmaster_start_time()")
        lacked = 0
        for step in range(LIMITS):
            session = self.planning()
            most = int(read(f"/proc/{session.pid}/statm").split()[0]) * os.sysconf("SC_PAGE_SIZE")
            with Limited(session.pid, "as", most + (1 + 16 * step // LIMITS) * MIB + 4096 * step):
                try:
                    session.run(f"EXPLAIN (SUMMARY off) {wide}")
                except Failure as failure:
                    self.assertEqual(failure.sqlstate, "53200", failure)
                    lacked += 1
            session.run("SELECT 1")
            session.close()
        self.assertEqual(self.control.value("SELECT pg_postmaster_start_time()"), started)
        self.assertGreater(lacked, 0)

    def test_the_extension_goes_and_comes_back(self):
        self.keep()
        self.assert_corrected()
        with Session() as other:
            other.run("BEGIN; DROP EXTENSION pg_io_probe CASCADE")
            other.run("ROLLBACK")
        self.assert_corrected()
        with self.subTest("in this session"):
            self.planner.run("BEGIN; DROP EXTENSION pg_io_probe CASCADE")
            self.assert_analyzed()
            self.planner.run("ROLLBACK")
            self.assert_corrected()
        self.control.run("DROP EXTENSION pg_io_probe CASCADE")
        self.addCleanup(self.control.run, "CREATE EXTENSION IF NOT EXISTS pg_io_probe")
        self.assert_analyzed()
        with self.subTest("a table of that name that is not the extension's"):
            self.control.run(f"""CREATE TABLE io_probe_corrections AS SELECT 'public'::name AS schemaname, 'ranged'::name AS tablename,
                'ranged_jittered'::name AS indexname, 0::float8 AS correlation, s.correlation AS analyzed, c.relfilenode, c.reltuples,
                current_setting('server_version_num')::int / 10000 AS major_version, coalesce(current_setting('io_method', true), '')::name AS io_method
                FROM pg_class AS c, pg_stats AS s WHERE c.relname = 'ranged' AND s.tablename = 'ranged' AND s.attname = 'jittered'""")
            self.assert_analyzed(self.planning())
            self.control.run("DROP TABLE io_probe_corrections")
        self.control.run("CREATE EXTENSION pg_io_probe")
        self.keep()
        self.assert_corrected()

    def test_nobody_writes_with_the_owners_rights(self):
        self.control.run("""CREATE FUNCTION trapped() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
            CREATE TRIGGER trap BEFORE INSERT ON io_probe_corrections FOR EACH ROW EXECUTE FUNCTION trapped()""")
        self.addCleanup(self.control.run, "DROP FUNCTION trapped CASCADE")
        with self.assertRaisesRegex(Failure, "has triggers"):
            self.keep()

    def test_rights_and_security_stay_as_they_are(self):
        """Only the costs differ. The rows that a role sees and the order of the conditions stay the same."""
        self.control.run("""
            CREATE ROLE corrected_reader; GRANT SELECT ON ranged TO corrected_reader;
            CREATE FUNCTION leaks(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RETURN true; END $$;
            CREATE VIEW barred WITH (security_barrier) AS SELECT * FROM ranged WHERE id % 2 = 0; GRANT SELECT ON barred TO corrected_reader;
            CREATE POLICY half ON ranged USING (id % 2 = 1); ALTER TABLE ranged ENABLE ROW LEVEL SECURITY""")
        self.addCleanup(self.control.run, """DROP POLICY half ON ranged; ALTER TABLE ranged DISABLE ROW LEVEL SECURITY; DROP VIEW barred;
            DROP FUNCTION leaks; DROP OWNED BY corrected_reader; DROP ROLE corrected_reader""")
        self.control.run("GRANT EXECUTE ON FUNCTION io_probe_correlation TO corrected_reader")
        shown = "SELECT count(scattered_pct) FROM io_probe_correlation('ranged')"
        self.assertEqual(self.control.run(shown), ["1"])
        self.planner.run("SET ROLE corrected_reader")
        # pg_stats shows this role nothing of the table, either.
        self.assertEqual(self.planner.run(shown), ["0"])
        queries = [f"SELECT * FROM {of} WHERE jittered BETWEEN 100000 AND 102000 AND leaks(pad)" for of in ["ranged", "barred"]]
        before = [self.planner.run(f"EXPLAIN (COSTS off) {query}; SELECT count(*), sum(id) FROM ({query}) AS q") for query in queries]
        costs = [cost(self.planner, query) for query in queries]
        self.keep()
        after = [self.planner.run(f"EXPLAIN (COSTS off) {query}; SELECT count(*), sum(id) FROM ({query}) AS q") for query in queries]
        self.assertEqual(before, after)
        for query, charged in zip(queries, costs):
            self.assertGreater(cost(self.planner, query), 3 * charged)

    def test_a_standby_plans_with_them(self):
        standby = Standby(self.control)
        self.addCleanup(standby.stop)
        standby.start()
        self.keep()
        standby.catch_up()
        session = self.planning(host=standby.host)
        self.assert_corrected(session)
        self.keep(correlation="NULL")
        standby.catch_up()
        self.assert_analyzed(session)
        with self.assertRaisesRegex(Failure, "during recovery"):
            self.keep(session)
        # So it refuses what io_probe_recommend advises. By such a cost hardly an index is used, which is sure to be wrong.
        # The only tablespace has the setting of its own.
        self.control.run("ALTER TABLESPACE pg_default SET (random_page_cost = 10000)")
        self.addCleanup(self.control.run, "ALTER TABLESPACE pg_default RESET (random_page_cost)")
        # A restart replays what was written since a checkpoint.
        self.control.run("CHECKPOINT")
        standby.catch_up()
        for duration in ["4 s", "12 s", "36 s"]:
            # On a standby nothing can be taken out of shared buffers, and each call leaves some blocks there.
            standby.restart()
            with Session(host=standby.host) as session:
                rows = session.rows(rows_of("recommend", "ranged", settings=["random_page_cost"], cold=True, duration=duration))
            if rows[0]["statement"]:
                break
        self.assertIsNotNone(rows[0]["statement"], rows)
        self.assertRegex(rows[0]["statement"], "^ALTER TABLESPACE")
        self.assertRegex(rows[0]["hides"], "^to be run on the primary; ")

    def test_beside_hypopg(self):
        if not create_extension(self.planner, "hypopg"):
            self.skipTest("no hypopg")
        self.keep()
        self.planner.run("SELECT FROM hypopg_create_index('CREATE INDEX ON ranged (id)')")
        self.assertLess(cost(self.planner, "SELECT pad FROM ranged WHERE id BETWEEN 100000 AND 100100"), 100)
        self.assert_corrected()

    def test_plans_are_made_while_all_changes(self):
        """Beside such changes, planning fails by the SQLSTATEs in RACES only, and in the end all sessions agree."""
        changes = [
            "SELECT io_probe_correct('ranged_jittered', 0)", "SELECT io_probe_correct('ranged_jittered', NULL)",
            "REINDEX INDEX ranged_jittered", "DROP INDEX IF EXISTS ranged_other; CREATE INDEX ranged_other ON ranged (jittered)",
            "SELECT io_probe_correct('ranged_other', 0)", "DROP INDEX CONCURRENTLY IF EXISTS ranged_other",
            "ANALYZE ranged", "VACUUM FULL ranged", "ALTER INDEX ranged_jittered RENAME TO ranged_new",
            "ALTER INDEX ranged_new RENAME TO ranged_jittered", "BEGIN; SELECT io_probe_correct('ranged_jittered', 1); ROLLBACK",
        ]  # fmt: skip
        ends, failures = time.monotonic() + SECONDS, []

        def repeat(statements, session):
            done = 0
            while time.monotonic() < ends or done <= 3:
                try:
                    session.run(statements[done % len(statements)])
                except Failure as failure:
                    if failure.sqlstate not in RACES:
                        failures.append(str(failure))
                    if "ROLLBACK" in statements[done % len(statements)]:
                        session.run("ROLLBACK")
                done += 1
            return done

        counts = []
        sessions = [(changes, self.planning()), (list(reversed(changes)), self.planning())]
        sessions += [([f"EXPLAIN {RANGE}", "SELECT index FROM io_probe_correlation('ranged')"], self.planning()) for _ in range(2)]
        threads = [threading.Thread(target=lambda given=given: counts.append(repeat(*given))) for given in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.control.run("DROP INDEX IF EXISTS ranged_other; ALTER INDEX IF EXISTS ranged_new RENAME TO ranged_jittered; ANALYZE ranged")
        self.assertEqual(failures, [])
        self.assertGreater(min(counts), 3)
        self.keep()
        for _, session in [*sessions, ([], self.planner)]:
            self.assert_corrected(session)


if __name__ == "__main__":
    main()
