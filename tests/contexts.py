#!/usr/bin/env -S python3 -B
"""Each function of the extension in each place from which the server can be made to call it.

The places are triggers, expressions of indexes and constraints, cursors, subtransactions, workers, and
whatever else evaluates a function. CALLS has the example of each function, CONTEXTS the places. A call there
works, or ends by an SQLSTATE that is named beside the place. After each call the process holds what it held
before, and no server process has crashed.
"""

import itertools
import os
import re
import unittest

from fuzz import TROUBLE, documented
from lib import (
    FUNCTIONS,
    VERSION,
    Failure,
    Process,
    as_server,
    dense_table,
    files_in_data_directory,
    half_of,
    literal,
    main,
    prepare_examples,
    wait_for,
)
from servers import Server

CALLS = {function.signature: function.example for function in FUNCTIONS}
WRITES = {"25006"}
# A probe runs neither in a parallel worker, nor while workers of the same query run.
PARALLEL = {"25000"}
FORCED = "debug_parallel_query" if VERSION >= 16 else "force_parallel_mode"
# A call that is not evaluated before the query is executed.
A_CALL = "calls(id) FROM victim WHERE id = 1"
INSIDE = literal("SELECT public." + A_CALL.replace("victim", "public.victim"))
FIRES = "EXECUTE FUNCTION public.fires()"
# Where functions are called while a transaction commits or is prepared.
WHILE_COMMITTING = ["a cursor that is held", "a trigger before two phases"]
DEFERRED = (f"CREATE CONSTRAINT TRIGGER f AFTER INSERT ON victim INITIALLY DEFERRED FOR EACH ROW {FIRES}; "
            "INSERT INTO victim VALUES (3)")  # fmt: skip

# By place: the SQLSTATEs by which a call may end there, and the statements, in which `calls(int)` makes the
# call. They begin in a transaction, which is undone. The table `victim` has two rows; `probed` is probed.
CONTEXTS = {
    "a query": (set(), f"SELECT {A_CALL}"),
    # Planning evaluates the call, and the call may plan a query of the same table.
    "the planner": ({"54001", "54000"}, "SELECT calls(1); CREATE INDEX ON probed (id) WHERE public.calls(1) > 0; "
                                        "TABLE victim"),
    "a row trigger": (set(), f"CREATE TRIGGER f BEFORE INSERT OR DELETE ON victim FOR EACH ROW {FIRES};"
                      "INSERT INTO victim VALUES (3); DELETE FROM victim WHERE id = 3"),
    "a row trigger, afterwards": (set(), f"CREATE TRIGGER f AFTER UPDATE ON victim FOR EACH ROW {FIRES}; "
                                         "UPDATE victim SET id = 3"),
    "a statement trigger": (set(), f"CREATE TRIGGER f BEFORE TRUNCATE ON victim {FIRES}; TRUNCATE victim"),
    "a trigger of its own table": (set(), f"CREATE TRIGGER f AFTER UPDATE ON probed {FIRES}; "
                                          "UPDATE probed SET id = 1 - id"),
    "a deferred trigger": (set(), f"{DEFERRED}; SET CONSTRAINTS ALL IMMEDIATE"),
    "an index": (set(), "CREATE INDEX ON victim (public.calls(id)); ANALYZE victim; REINDEX TABLE victim"),
    "an index that orders": (set(), "CREATE INDEX f ON victim (public.calls(id)); CLUSTER victim USING f"),
    "the condition of an index": (set(), "CREATE INDEX ON victim (id) WHERE public.calls(id) > 1"),
    "statistics": (set(), "CREATE STATISTICS said ON (public.calls(id)), id FROM victim; ANALYZE victim"),
    "a CHECK": (set(), "ALTER TABLE victim ADD CHECK (public.calls(id) > 0)"),
    "a domain": (set(), "CREATE DOMAIN checked AS int CHECK (public.calls(value) > 0); "
                        "SELECT id::checked FROM victim"),
    "a generated column": (set(), "ALTER TABLE victim ADD twin int "
                                  "GENERATED ALWAYS AS (public.calls(id)) STORED"),
    "a default": (set(), "ALTER TABLE victim ADD twin int DEFAULT public.calls(1); "
                         "INSERT INTO victim VALUES (3)"),
    "a rewrite of its own table": (set(), "ALTER TABLE probed ALTER id TYPE int8 "
                                          "USING CASE id WHEN 9 THEN public.calls(id) ELSE id END"),
    "a policy": (set(), "CREATE POLICY f ON victim USING (public.calls(id) > 0); "
                        "ALTER TABLE victim ENABLE ROW LEVEL SECURITY;"
                 "ALTER TABLE victim FORCE ROW LEVEL SECURITY; UPDATE victim SET id = id + 1"),
    "an aggregate": (set(), "CREATE AGGREGATE adds(int) (sfunc = calls, stype = int, initcond = '1'); "
                            "SELECT adds(id) FROM victim"),
    "a cursor that is left": (set(), "DECLARE c CURSOR FOR SELECT calls(id) FROM victim; FETCH c; CLOSE c"),
    "a cursor that is held": (set(), "DECLARE c CURSOR WITH HOLD FOR SELECT calls(id) FROM victim; FETCH c; "
                                     "COMMIT; FETCH c; CLOSE c"),
    "a cursor of its own table": (set(), "DECLARE c CURSOR FOR SELECT calls(id) FROM probed FOR UPDATE; "
                                         "FETCH c; DELETE FROM probed WHERE CURRENT OF c; FETCH c"),
    "a loop over its own table": (set(), "DO $$DECLARE r record; BEGIN FOR r IN TABLE probed LOOP "
                                         "PERFORM calls(r.id); EXIT WHEN r.id > 1; END LOOP; END$$"),
    "blocks that fail": (set(), f"DO $$BEGIN FOR n IN 1..3 LOOP BEGIN PERFORM {A_CALL}; RAISE 'undone'; "
                                "EXCEPTION WHEN raise_exception THEN END; END LOOP; END$$"),
    "a savepoint": (set(), f"SAVEPOINT a; SELECT {A_CALL}; ROLLBACK TO a; SELECT {A_CALL}; RELEASE a"),
    "a procedure that commits": (set(), "ROLLBACK; CALL commits()"),
    "two phases": (set(), f"SELECT {A_CALL}; PREPARE TRANSACTION 'first'; COMMIT PREPARED 'first'"),
    "a trigger before two phases": (set(), f"{DEFERRED}; PREPARE TRANSACTION 'first'; "
                                           "ROLLBACK PREPARED 'first'"),
    "serializable": (set(), f"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; SELECT {A_CALL}; "
                            f"SELECT {A_CALL}"),
    "read-only": (WRITES, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; "
                          f"SELECT {A_CALL}"),
    "a materialized view": (set(), "CREATE MATERIALIZED VIEW seen AS "
                                   "SELECT public.calls(id) AS id FROM public.victim;"
                                   "CREATE UNIQUE INDEX ON seen (id); "
                                   "REFRESH MATERIALIZED VIEW CONCURRENTLY seen"),
    "COPY": (set(), "COPY (SELECT calls(id) FROM victim) TO STDOUT"),
    "NOTIFY": (set(), f"LISTEN a; NOTIFY a; SELECT {A_CALL}; NOTIFY a, 'again'; COMMIT; UNLISTEN *"),
    "a prepared statement": (set(), f"PREPARE p AS SELECT {A_CALL}; EXECUTE p; EXECUTE p"),
    "events": (set(), "SET LOCAL contexts.events = on; ALTER TABLE victim ALTER id TYPE int8; "
                      "DROP TABLE victim"),
    "the drop of its own table": ({"42P01"}, "SET LOCAL contexts.events = on; DROP TABLE probed"),
    "a worker": (PARALLEL, f"SET LOCAL {FORCED} = on; SELECT {A_CALL}"),
    "beside workers": (PARALLEL, "SET LOCAL min_parallel_table_scan_size = 0; "
                                 "SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; "
                                 "SELECT count(*) FROM probed "
                                 "WHERE CASE id WHEN 9 THEN calls(id) ELSE 1 END > 0"),
    "io_probe_explain": (WRITES, f"SELECT * FROM io_probe_explain_full({INSIDE}, true)"),
    "a short time": ({"57014"}, f"SET LOCAL statement_timeout = '3 ms'; SELECT {A_CALL}"),
    "a transaction that has failed": ({"22012"}, f"SELECT 1 / 0; SELECT {A_CALL}"),
    "a session begun anew": (set(), f"ROLLBACK; SELECT {A_CALL}; DISCARD ALL; SET contexts.call = {{call}}; "
                                    f"SELECT {A_CALL}"),
}
# SQLSTATEs by which one function may end in a place, and others may not.
REFUSED = {("serializable", "io_probe_correct(regclass,double precision)"): {"0A000"}}
SETUP = """
    CREATE FUNCTION calls(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS
        $$ BEGIN EXECUTE pg_catalog.current_setting('contexts.call'); RETURN n; END $$;
    CREATE FUNCTION calls(a int, b int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT public.calls(a) + b';
    CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM public.calls(1); RETURN coalesce(new, old); END $$;
    CREATE PROCEDURE commits() LANGUAGE plpgsql AS
        $$ BEGIN PERFORM calls(1); COMMIT; PERFORM calls(2); ROLLBACK; END $$;
    CREATE TABLE victim (id int); INSERT INTO victim VALUES (1), (2);
    CREATE TABLE calls (call text);
    CREATE FUNCTION calls_all() RETURNS void LANGUAGE plpgsql AS $$
        DECLARE c text; me text;
        BEGIN
            SELECT backend_type INTO me FROM pg_catalog.pg_stat_activity
                WHERE pid = pg_catalog.pg_backend_pid();
            FOR c IN SELECT call FROM public.calls LOOP
                BEGIN
                    EXECUTE c;
                    RAISE LOG 'called by %: 00000 by %', me, c;
                EXCEPTION WHEN OTHERS THEN
                    RAISE LOG 'called by %: % by %', me, sqlstate, c;
                END;
            END LOOP;
        END $$;
    CREATE FUNCTION calls_all(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
        $$ BEGIN
            IF n = 1 AND pg_catalog.current_setting('contexts.off', true) IS NULL THEN
                PERFORM public.calls_all();
            END IF;
            RETURN n;
        END $$;
    CREATE FUNCTION fires_all() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM public.calls_all(); RETURN new; END $$;
    CREATE TABLE sent (id int PRIMARY KEY)
"""
EVENTS = "CREATE FUNCTION happens() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN " \
    "IF current_setting('contexts.events', true) = 'on' THEN PERFORM public.calls(1); END IF; END $$;" \
    + "".join(
        f"CREATE EVENT TRIGGER {event} ON {event} EXECUTE FUNCTION happens();"
        for event in ["ddl_command_start", "ddl_command_end", "sql_drop", "table_rewrite"])
# With these a call takes some milliseconds.
CAPS = {"max_duration": "5 s", "scratch_limit": "1 MB", "scratch_reserve": "0", "row_duration": "3 ms"}
SERVER = None


def setUpModule():
    global SERVER
    SERVER = Server("contexts")
    unittest.addModuleCleanup(SERVER.remove)
    SERVER.configure({
        "max_prepared_transactions": 4, "wal_level": "logical", "autovacuum_naptime": "1s",
        "client_connection_check_interval": "20ms",
        "max_worker_processes": 20, **{f"pg_io_probe.{name}": value for name, value in CAPS.items()},
    })
    SERVER.start()
    with SERVER.session() as session:
        session.run("CREATE DATABASE receiver")
    for database in ["postgres", "receiver"]:
        with SERVER.session(database) as session:
            session.run("SET client_min_messages = error; CREATE EXTENSION pg_io_probe; "
                        "RESET pg_io_probe.row_duration")
            dense_table(session, "probed", 100)
            prepare_examples(session)
            session.run(SETUP)
            for call in CALLS.values():
                session.run(f"INSERT INTO calls VALUES ({literal(query(call))})")
            if database == "postgres":
                session.run("CREATE ROLE caller LOGIN IN ROLE pg_monitor")
                session.run(EVENTS)
            session.run("GRANT ALL ON SCHEMA public TO caller; GRANT ALL ON ALL FUNCTIONS IN SCHEMA public "
                        "TO caller")
            session.run("ALTER TABLE victim OWNER TO caller; ALTER TABLE probed OWNER TO caller; "
                        "ALTER TABLE corrected OWNER TO caller; "
                        "GRANT SELECT ON measured, stored TO caller")


def query(call):
    """A call as a query that needs no search_path."""
    return f"SELECT FROM public.{call}"


def log():
    """What the server has written."""
    with open(os.path.join(SERVER.host, "log"), encoding="utf-8", errors="replace") as file:
        return file.read()


def succeeds(session, statements):
    """Runs statements; do they give no ERROR?"""
    try:
        session.run(statements)
    except Failure:
        return False
    return True


class Contexts(unittest.TestCase):
    def setUp(self):
        self.control = SERVER.session()
        self.addCleanup(lambda: self.control.close())
        self.since = len(log())
        self.files = files_in_data_directory(SERVER.data)
        self.addCleanup(self.look)

    def look(self):
        """Nothing is left, and no process has ended that should not."""
        left = self.control.rows("SELECT * FROM pg_locks WHERE locktype = 'advisory'")
        left += self.control.rows("SELECT * FROM io_probe_progress()")
        left += self.control.rows("SELECT * FROM pg_prepared_xacts")
        files = files_in_data_directory(SERVER.data) - self.files
        left += [path for path in files if "tmp" in path or "deleted" in path]
        lines = log()[self.since:].splitlines()
        left += [line for line in lines if TROUBLE.search(line) and "STATEMENT" not in line]
        self.assertEqual(left, [])

    def test_each_function_has_a_call(self):
        found = self.control.run("""SELECT p.oid::regprocedure FROM pg_proc AS p JOIN pg_depend AS d
            ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
            JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
            WHERE e.extname = 'pg_io_probe'""")
        # The variant with fewer columns is the same function of the library.
        found = {name for name in found if name.replace("(", "_full(", 1) not in found}
        self.assertEqual(set(CALLS), found)
        self.assertLessEqual(set().union(*(allowed for allowed, _ in CONTEXTS.values())) - {"22012"},
                             documented())

    def test_each_place(self):
        with SERVER.session(user="caller") as session:
            held = lambda: (Process(session.pid).threads(), Process(session.pid).descriptors())
            locks = f"SELECT * FROM pg_locks WHERE pid = {session.pid} AND locktype <> 'virtualxid'"
            before = None
            # Two places in a row get different halves of the functions.
            cases = [(place, function) for turn, place in enumerate(CONTEXTS)
                     for function in [*CALLS][turn % 2:] + [*CALLS][:turn % 2]]
            cases = half_of(cases, lambda case: case[0] == "a query")
            if session.value("SELECT current_setting('debug_assertions')") == "on":
                # PL/pgSQL's own EXCEPTION, too, fails an assertion of such a server if it is called while a transaction
                # commits or is prepared: RollbackAndReleaseCurrentSubTransaction does not expect that.
                cases = [case for case in cases if case[0] not in WHILE_COMMITTING]
            for place, group in itertools.groupby(cases, lambda case: case[0]):
                allowed, statements = CONTEXTS[place]
                for _, function in group:
                    with self.subTest(place=place, function=function):
                        states = self.states(session, CALLS[function], statements)
                        self.assertLessEqual(states - {"25P02"}, allowed | REFUSED.get((place, function), set()))
                        # The first calls have loaded what there is to load.
                        if before:
                            self.assertEqual(held(), before)
                before = before or held()
                self.assertEqual(self.control.rows(locks), [])
            self.assertEqual(session.value("pg_backend_pid()"), session.pid)

    @staticmethod
    def states(session, call, statements):
        """Runs the statements of a place with a call, and returns the SQLSTATEs of their ERRORs."""
        try:
            call = literal(query(call))
            session.run(f"SET contexts.call = {call}; RESET pg_io_probe.row_duration; "
                        f"SET client_min_messages = error; BEGIN; {statements.replace('{call}', call)}")
            return set()
        except Failure as failure:
            states = re.findall(r"^(?:ERROR|FATAL):  (\w{5}): ", str(failure), re.MULTILINE)
            return set(states) or {str(failure)}
        finally:
            # A time-out of milliseconds may end these statements, too.
            wait_for(lambda: succeeds(session, "ROLLBACK; DEALLOCATE ALL"), "the end of the transaction")

    def test_an_index_that_is_being_built(self):
        """Probes refuse an index until it is built. It is written past shared buffers: a page of zeros would stay in them."""
        probes = ["seqscan", "random", "depth", "ping", "page_cost", "readahead"]
        with SERVER.session() as builder, SERVER.session(user="caller") as session:
            self.control.run("SELECT pg_advisory_lock(1); CREATE FUNCTION waits(n int) RETURNS int "
                             "LANGUAGE plpgsql IMMUTABLE AS "
                             "$$ BEGIN PERFORM pg_catalog.pg_advisory_xact_lock_shared(1); RETURN n; END $$")
            self.addCleanup(self.control.run, "SELECT pg_advisory_unlock_all(); DROP INDEX growing; "
                                              "DROP FUNCTION waits")
            builder.start("CREATE INDEX CONCURRENTLY growing ON probed (public.waits(id))")
            waiting = "SELECT * FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            wait_for(lambda: self.control.rows(waiting), "the build")
            for probe in probes:
                with self.subTest(probe), self.assertRaises(Failure) as raised:
                    session.rows(f"SELECT * FROM io_probe_{probe}('growing')")
                self.assertEqual(raised.exception.sqlstate, "55006")
            rows = session.rows("SELECT * FROM io_probe_evict('growing'), io_probe_cache('growing')")
            self.assertEqual(len(rows), 1)
            self.control.run("SELECT pg_advisory_unlock_all()")
            builder.finish()
            session.run("SET pg_io_probe.row_duration = '3 ms'")
            for probe in probes:
                session.rows(f"SELECT * FROM io_probe_{probe}('growing')")

    def outcomes(self, process, calls=len(CALLS)):
        """Waits until a process of this kind has made all calls, and returns those that failed, with their SQLSTATEs."""
        made = lambda: re.findall(rf"called by {process}: (\w{{5}}) by SELECT FROM public\.(\w+)",
                                  log()[self.since:])
        wait_for(lambda: len(made()) >= calls, f"the calls of {process}", timeout=120)
        return {(function, state) for state, function in made() if state != "00000"}

    def test_autovacuum(self):
        # Only the row with 1 makes calls. Autovacuum sees it, INSERT does not.
        self.control.run("CREATE TABLE vacuumed AS SELECT g FROM generate_series(1, 100) AS g; "
                         "SET contexts.off = on;"
                         "CREATE INDEX ON vacuumed (public.calls_all(g)); "
                         "INSERT INTO vacuumed SELECT 2 FROM generate_series(1, 100)")
        self.addCleanup(self.control.run, "DROP TABLE vacuumed")
        self.assertEqual(self.outcomes("autovacuum worker"), set())

    def test_an_apply_worker(self):
        self.control.run("CREATE PUBLICATION sends FOR TABLE sent; "
                         "SELECT pg_create_logical_replication_slot('sends', 'pgoutput')")
        with SERVER.session("receiver") as session:
            session.run(f"CREATE TRIGGER f AFTER INSERT ON sent FOR EACH ROW EXECUTE FUNCTION fires_all();"
                        "ALTER TABLE sent ENABLE ALWAYS TRIGGER f; "
                        f"CREATE SUBSCRIPTION receives CONNECTION {literal(SERVER.address())} "
                        "PUBLICATION sends WITH (create_slot = false, slot_name = 'sends', "
                        "copy_data = false)")
            self.control.run("INSERT INTO sent VALUES (1)")
            self.assertEqual(self.outcomes("logical replication (?:apply )?worker"), set())
            wait_for(lambda: session.value("(SELECT count(*) FROM sent)"), "the row")
            session.run("DROP SUBSCRIPTION receives")

    def test_a_single_user(self):
        self.control.close()
        SERVER.stop()
        command = f"postgres --single -D {SERVER.data} postgres >>{SERVER.host}/log 2>&1"
        command = f"echo 'SELECT public.calls_all()' | {command}"
        as_server("env", f"PATH={os.environ['PATH']}", "sh", "-c", command)
        SERVER.start()
        self.control = SERVER.session()
        self.assertEqual(self.outcomes("(?:standalone backend|not initialized)"), set())

    def test_a_client_that_is_gone(self):
        """A process whose client is gone does not go on, nor one whose transaction has lasted too long."""
        for call in ["io_probe_ping_full('probed', count => 40, every => '100 ms')", "io_probe_iostat_full('1 s', count => 4)",
                     "io_probe_sync_full(duration => '4 s')",
                     "io_probe_random_full('probed', '{os}', '4 s', options => '{\"max_iops\": 50}')"]:
            for end in ["kill", *(["transaction_timeout"] if VERSION >= 17 else [])]:
                with self.subTest(call, end=end), SERVER.session(user="caller") as session:
                    if end != "kill":
                        session.run(f"SET {end} = '150 ms'")
                    session.start(f"SELECT * FROM {call}")
                    if end == "kill":
                        running = f"SELECT * FROM io_probe_progress() WHERE pid = {session.pid}"
                        wait_for(lambda: self.control.rows(running), "a probe")
                        session.psql.kill()
                        session.psql.wait()
                    wait_for(lambda: not Process(session.pid).exists(), "the end of the process", timeout=3)


if __name__ == "__main__":
    main()
