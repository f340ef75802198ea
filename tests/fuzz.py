#!/usr/bin/env -S python3 -B
"""Random calls of every function of the extension, from several roles, with arguments from plain to hostile: each gives rows
or a documented SQLSTATE, the backend is the same afterwards, and nothing is left behind.

The functions and the types of their arguments are the catalog's, so that a new function is called as well. Each call follows
from the seed and its number alone. In the environment, CALLS is the number of calls (100,000 in `make check-all`), SEED repeats
a run and FIRST begins at a call: a failure prints these and the statement. SHOW=1 prints how the calls of each function ended.
"""

import collections
import json
import os
import random
import re
import threading
import time
import unittest

from fuzz_arguments import ODD_NAMES, ROLES, TIMES, Function, Fuzzer, literal, quoted
from lib import FUNCTIONS, LONG, SERVER_LOG, Failure, Process, Session, files_in_data_directory, main, say

CALLS = int(os.environ.get("CALLS") or (100_000 if LONG else 3000))
# The same in each check, another one in each long run.
SEED = int(os.environ.get("SEED") or (random.SystemRandom().randrange(1 << 32) if LONG else 1))
FIRST = int(os.environ.get("FIRST", "0"))
SHOW = os.environ.get("SHOW")
WORKERS = 2
# Seconds after which a call, each of which is bounded to a fraction of one, counts as hung.
HUNG = 60
# Calls between two looks at what a backend holds.
LOOK_EVERY = 50

# Small bounds, so that thousands of calls take a minute. All but the last two may be changed by a superuser only.
CAPS = {
    "max_duration": "100 ms",
    "max_bytes": "1 MB",
    "max_depth": "32",
    "scratch_limit": "17 MB",
    "scratch_reserve": "0",
    "row_duration": "2 ms",
    "default_max_bytes": "1 MB",
}

# What any call may answer: a bad value, a relation that is none, of the wrong kind, gone, locked or not the caller's,
# another probe, a facility that is missing here, a time limit, a conflict of transactions. LITERALS has the server's own
# errors for a value that is none of its type.
ANYONE = {"22023", "42809", "42P01", "42501", "55P03", "55006", "0A000", "57014", "54000", "40001"}
LITERALS = {
    "regclass": {"22P02", "42601", "42602", "3F000", "22003"},
    "interval": {"22007", "22008", "22015"},
    "json": {"22P02", "22P05", "54001"},
    "jsonb": {"22P02", "22P05", "54000", "54001", "22003"},
    "integer": {"22003", "22P02"},
    "bigint": {"22003", "22P02"},
    "boolean": {"22P02"},
    "integer[]": {"22003", "22P02", "2202E"},
    "double precision[]": {"22003", "22P02", "2202E"},
    "text[]": {"22P02", "2202E"},
    "text": set(),
}
ANY_LITERAL = set().union(*LITERALS.values())
# What some functions may answer besides, by name.
BESIDES = collections.defaultdict(set)
for declared in FUNCTIONS:
    BESIDES[declared.name].update(declared.errors)
    BESIDES[declared.full].update(declared.errors)

# A stored run that failed, or found another probe running, gives a WARNING and no ERROR.
WARNING = re.compile(
    r"^WARNING:  (?P<code>\w{5}): (?P<told>probe \"\w+\" (failed|was skipped): .*\nDETAIL:  SQLSTATE is (?P<state>\w{5}))?",
    re.MULTILINE,
)
TROUBLE = re.compile(
    r"PANIC|TRAP:|was terminated by signal|stack smashing|corrupted|double free| leak|you don't own a lock"
)

SETUP = """
    CREATE TABLE plain (id int, filler text) WITH (autovacuum_enabled = off);
    INSERT INTO plain SELECT g, repeat('x', 1000) FROM generate_series(1, 200) AS g;
    CREATE INDEX plain_id ON plain (id); CREATE INDEX plain_hash ON plain USING hash (id);
    CREATE INDEX brin ON plain USING brin (id);
    CREATE TABLE boxes (b box, t tsvector); CREATE INDEX gist ON boxes USING gist (b); CREATE INDEX gin ON boxes USING gin (t);
    CREATE TABLE empty (id int); CREATE UNLOGGED TABLE unlogged AS SELECT g FROM generate_series(1, 1000) AS g;
    CREATE SEQUENCE logged_sequence;
    CREATE TABLE parted (id int) PARTITION BY RANGE (id); CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (9);
    CREATE INDEX parted_id ON parted (id); ALTER INDEX parted_1_id_idx RENAME TO parted_1_id;
    CREATE VIEW seen AS TABLE plain; CREATE MATERIALIZED VIEW copied AS TABLE plain; CREATE TYPE composite_type AS (a int);
    CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
    CREATE FOREIGN TABLE elsewhere (id int) SERVER nowhere;
    CREATE TABLE locked AS TABLE plain; CREATE TABLE secret AS TABLE plain; CREATE INDEX secret_id ON secret (id);
    CREATE TABLE guarded AS TABLE plain; ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
    ALTER TABLE guarded FORCE ROW LEVEL SECURITY;
    CREATE FUNCTION raises(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RETURN 1 / (200 - $1); END$$;
    CREATE TABLE invalid AS TABLE plain;
    SET allow_in_place_tablespaces = on; CREATE TABLESPACE fuzz_space LOCATION '';
    CREATE TABLESPACE "we""ird space" LOCATION '';
    CREATE ROLE fuzz_super SUPERUSER; CREATE ROLE fuzz_monitor IN ROLE pg_monitor;
    CREATE ROLE fuzz_nobody; CREATE ROLE fuzz_granted;
    GRANT CREATE ON TABLESPACE fuzz_space TO fuzz_granted;
    GRANT pg_monitor TO fuzz_granted;
"""


def documented():
    """The SQLSTATEs of the documentation."""
    page = os.path.join(os.path.dirname(__file__), "..", "docs", "reading.md")
    with open(page, encoding="utf-8") as file:
        errors = re.search(r"^## Errors\n(.*?)(?=^## |\Z)", file.read(), re.MULTILINE | re.DOTALL).group(1)
    return set(re.findall(r"\b[0-9A-Z]{5}\b", errors))


def allowed(function):
    """The SQLSTATEs that a call may end with."""
    names = {name for name, _ in function.arguments}
    types = {"interval" if name in TIMES else type_name for name, type_name in function.arguments}
    own = set().union(*(LITERALS.get(type_name, set()) for type_name in types))
    # Arguments of another function.
    inner = ANY_LITERAL if "args" in names else set()
    return ANYONE | own | inner | BESIDES[function.name]


class Caller:
    """A session of each role, and what it held when it began."""

    def __init__(self, oids):
        self.sessions = {role: self._session(role) for role in ROLES}
        self.before = {role: self._held(session) for role, session in self.sessions.items()}
        self.oids, self.calls = oids, collections.Counter()
        self.outcomes, self.failures = collections.Counter(), {}

    @staticmethod
    def _session(role):
        session = Session()
        for name, value in CAPS.items():
            session.run(f"SET pg_io_probe.{name} = '{value}'")
        session.run("CREATE TEMP TABLE own_temp AS SELECT g FROM generate_series(1, 100) AS g")
        session.run("GRANT SELECT ON own_temp TO PUBLIC; SET lock_timeout = '5 ms'; SET client_min_messages = warning")
        session.run(f"SET SESSION AUTHORIZATION {role}")
        # Loading the libraries adds their settings.
        session.run("SELECT FROM io_probe_explain_full('SELECT 1'); DO $$BEGIN END$$")
        return session

    @staticmethod
    def _held(session):
        """What must be the same after any call."""
        state = session.row("""SELECT pg_backend_pid() AS pid, current_user AS role, session_user AS login,
            (SELECT jsonb_object_agg(name, setting) FROM pg_settings WHERE name NOT LIKE 'transaction%') AS settings,
            (SELECT array_agg(concat_ws(' ', locktype, mode, classid, objid, relation::regclass)) FROM pg_locks
                WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND mode <> 'SIReadLock'
                AND (relation IS NULL OR relation >= 16384)) AS locks,
            (SELECT count(*) FROM pg_cursors) AS cursors, (SELECT count(*) FROM pg_prepared_statements) AS statements""")
        return state, Process(session.pid).threads(), Process(session.pid).descriptors()

    def make(self, number, fuzzer):
        """Makes one call, and judges what came of it."""
        role, function, text = fuzzer.statement(number)
        session = self.sessions[role]
        session.start(text)
        state = "00000"
        try:
            lines = session.finish(HUNG)
            said = "\n".join(lines)
        except Failure as failure:
            said, state = str(failure), failure.sqlstate
        except TimeoutError as failure:
            said, state = str(failure), "hung"
        self.outcomes[(function.name, state)] += 1
        self.calls[role] += 1
        warned = [warning["state"] or warning["code"] for warning in WARNING.finditer(said)]
        if not {state, *warned} <= allowed(function) | {"00000"}:
            # The first failure of each kind is enough.
            self.failures.setdefault(
                (function.name, state), f"{said[:1000]}\nby {role}: {text[:4000]}\nSEED={SEED} FIRST={number} CALLS=1"
            )
        if "BEGIN" in text or "statement_timeout" in text:
            self.reset(session)
        if self.calls[role] % LOOK_EVERY == 0:
            self.look(role, number)

    @staticmethod
    def reset(session):
        """Ends what the statement has begun. On a busy machine the time limit may hit even that."""
        for attempt in range(10):
            try:
                return session.run("ROLLBACK; RESET statement_timeout")
            except Failure:
                assert attempt < 9

    def look(self, role, number):
        """Fails if the backend holds anything else than at first."""
        now = self._held(self.sessions[role])
        if now != self.before[role]:
            was, now = (
                {**held[0].pop("settings"), **held[0], "threads": held[1], "files": held[2]}
                for held in (self.before[role], now)
            )
            changed = {key: (was.get(key), now.get(key)) for key in {**was, **now} if now.get(key) != was.get(key)}
            raise AssertionError(f"{role} before and after: {changed}, at the latest after SEED={SEED} FIRST={number}")

    def close(self):
        for session in self.sessions.values():
            session.close()


class Fuzz(unittest.TestCase):
    def setUp(self):
        self.session = Session()
        self.addCleanup(self.session.close)
        self.session.run("SET client_min_messages = error")
        self.addCleanup(self.tear_down_roles)
        self.session.run(SETUP)
        for name in ODD_NAMES:
            self.session.run(f"CREATE TABLE {quoted(name)} AS SELECT g, repeat('y', 2000) FROM generate_series(1, 50) AS g")
        columns = ", ".join(f"c{n} text" for n in range(1500))
        self.session.run(f"CREATE TABLE many_columns ({columns}); INSERT INTO many_columns DEFAULT VALUES")
        with self.assertRaises(Failure):
            self.session.run("CREATE UNIQUE INDEX CONCURRENTLY invalid_index ON invalid (raises(id))")
        self.session.run(
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO fuzz_granted; REVOKE ALL ON secret FROM fuzz_granted"
        )
        self.session.run(
            "REVOKE ALL ON io_probe_runs, io_probe_results FROM fuzz_granted; GRANT SELECT ON plain TO fuzz_monitor"
        )
        self.functions = self.members()
        for function in self.functions:
            self.session.run(f"GRANT EXECUTE ON FUNCTION {function} TO fuzz_granted")

    def tear_down_roles(self):
        """Drops roles and tablespaces, which are the cluster's."""
        with Session() as session:
            session.run("SET client_min_messages = error")
            for role in ROLES:
                session.run(f"DROP OWNED BY {role}; DROP ROLE {role}")
            session.run('DROP TABLESPACE fuzz_space; DROP TABLESPACE "we""ird space"')

    def members(self):
        """The functions of the extension."""
        rows = self.session.rows("""SELECT p.proname AS name, p.proretset AS returns_set, p.pronargdefaults AS defaults,
                p.proargnames[:p.pronargs] AS names,
                (SELECT array_agg(format_type(t, NULL) ORDER BY n)
                    FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a(t, n)) AS types
            FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
            JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
            WHERE e.extname = 'pg_io_probe' ORDER BY p.oid::regprocedure::text""")
        return [Function(row) for row in rows]

    def results(self):
        """Stores runs. Returns their numbers, results to import, and devices."""
        made = {"runs": [], "measured": []}
        known = "SELECT DISTINCT device FROM io_probe_device_full() WHERE device IS NOT NULL ORDER BY 1"
        made["devices"] = [row["device"] for row in self.session.rows(known)] or ["sda"]
        for probe, relation, args in [
            ("ping", "plain", {"count": 2, "every": "0"}),
            ("seqscan", "plain", {"paths": ["os"]}),
            ("random", "plain_id", {"paths": ["os", "server"]}),
            ("device", None, {}),
            ("cache", "plain", {}),
            ("depth", "plain", {"depths": [1]}),
        ]:
            on = f"'{relation}'" if relation else "NULL"
            call = f"('{probe}', {on}, {literal(json.dumps(args), 'jsonb')}"
            made["measured"].append(self.session.value(f"SELECT io_probe_measure{call})"))
            result = literal(json.dumps(made["measured"][-1]), "jsonb")
            made["runs"] += [
                self.session.value(f"SELECT io_probe_import({result}, '{label}')") for label in ["before", "after", "fuzz"]
            ]
        # Far ahead of what is pruned.
        self.session.run("UPDATE io_probe_runs SET started_at = '9999-01-01'")
        return made

    def oids(self):
        """Oids of TOAST relations, of another session's table, and of relations that are gone."""
        self.other = Session()
        self.addCleanup(self.other.close)
        self.other.run("CREATE TEMP TABLE theirs AS SELECT 1")
        self.session.run("CREATE TABLE gone (id int PRIMARY KEY)")
        oid = lambda name: self.session.value(f"SELECT '{name}'::regclass::oid::bigint")
        found = {
            "toast": self.session.value("SELECT reltoastrelid::bigint FROM pg_class WHERE oid = 'plain'::regclass"),
            "toast_index": self.session.value(
                """SELECT indexrelid::bigint FROM pg_index JOIN pg_class AS c ON indrelid = reltoastrelid
                WHERE c.oid = 'plain'::regclass"""
            ),
            "theirs": self.other.value("SELECT 'theirs'::regclass::oid::bigint"),
            "gone": oid("gone"),
            "gone_index": oid("gone_pkey"),
        }
        self.session.run("DROP TABLE gone")
        return found

    def test_calls(self):
        say(f"SEED={SEED}, {CALLS} calls of {len(self.functions)} functions")
        self.assertGreater(len(self.functions), 20)
        for function in self.functions:
            self.assertLessEqual(allowed(function), documented(), function)
        self.session.run("SET pg_io_probe.row_duration = '2 ms'")
        results = self.results()
        oids = self.oids()
        files = files_in_data_directory()
        log = os.path.getsize(SERVER_LOG)
        self.other.run("BEGIN; LOCK TABLE locked")

        callers = [Caller(oids) for _ in range(WORKERS)]
        memory = [Process(session.pid).memory() for caller in callers for session in caller.sessions.values()]
        started, broken = time.monotonic(), []

        def work(worker):
            try:
                fuzzer = Fuzzer(callers[worker].sessions["fuzz_super"], self.functions, oids, results, SEED)
                for number in range(FIRST + worker, FIRST + CALLS, WORKERS):
                    if broken:
                        return
                    callers[worker].make(number, fuzzer)
            except BaseException as failure:
                broken.append(failure)

        threads = [threading.Thread(target=work, args=[worker]) for worker in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        outcomes = sum((caller.outcomes for caller in callers), collections.Counter())
        self.show(outcomes, time.monotonic() - started)
        failures = [text for caller in callers for text in caller.failures.values()]
        failures += map(str, broken)
        self.assertEqual(failures, [], "\n\n".join(failures))

        grown = [
            Process(session.pid).memory() - before
            for session, before in zip([s for c in callers for s in c.sessions.values()], memory)
        ]
        say(f"memory of the backends: {max(grown) >> 10} kB more at most")
        for caller in callers:
            for role in ROLES:
                caller.look(role, FIRST + CALLS)
        self.assertEqual(self.session.rows("SELECT * FROM io_probe_progress()"), [])
        self.assertEqual(self.session.rows("SELECT * FROM pg_locks WHERE locktype = 'advisory' AND database = 0"), [])
        for caller in callers:
            caller.close()
        self.assertEqual(
            {path for path in files_in_data_directory() - files if "pgsql_tmp" in path or "deleted" in path}, set()
        )
        with open(SERVER_LOG, encoding="utf-8", errors="replace") as file:
            file.seek(log)
            trouble = [line for line in file if TROUBLE.search(line) and "STATEMENT" not in line]
        self.assertEqual(trouble, [])
        # Each function worked, and each that takes something refused something.
        if CALLS >= 2000:
            for function in self.functions:
                states = {state for name, state in outcomes if name == function.name}
                self.assertIn("00000", states, function)
                self.assertTrue(
                    not function.arguments or states & {"22023", "42809", "42P01", "22P02", "0A000", "22008"}, function
                )

    @staticmethod
    def show(outcomes, seconds):
        """Prints how the calls ended."""
        states = collections.Counter()
        for (_, state), count in outcomes.items():
            states[state] += count
        say(
            f"{sum(states.values())} calls in {seconds:.0f} s: "
            + ", ".join(f"{state} {n}" for state, n in states.most_common())
        )
        if SHOW:
            for name in sorted({name for name, _ in outcomes}):
                of_it = sorted((state, n) for (other, state), n in outcomes.items() if other == name)
                say(f"{name}: " + ", ".join(f"{state} {n}" for state, n in of_it))


if __name__ == "__main__":
    main()
