#!/usr/bin/env -S python3 -B
"""Caps hold wherever they are configured, and whatever a role without the right to them sets, before the library is loaded or
after."""

import contextlib
import os
import subprocess
import unittest

from lib import Failure, call, half_of, main, wait_for
from probes import probes
from servers import Server

SETTING = "pg_io_probe.max_iops"
CAP = 7
PLACES = ["SYSTEM", "ROLE ALL", "ROLE prober", "DATABASE postgres", "ROLE prober IN DATABASE postgres"]
# It asks for more than the cap. It ends by HELD if the cap is in force, by REFUSED if the cap is not known, else well.
PROBE = f"""SELECT count(*) FROM io_probe_seqscan_full('probed', '{{os}}', '1 s', options => '{{"max_iops": {CAP + 1}}}')"""
HELD, REFUSED = "22023", "42501"
DENIED = "42501"


def reload_time(session):
    """When the process of the session read the configuration."""
    return session.value("SELECT pg_conf_load_time()")


class Case:
    """One server, on which the library is loaded as `preload` says; a superuser, and a role that may probe."""

    preload = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(cls.__name__)
        cls.addClassCleanup(cls.server.remove)
        cls.server.configure({cls.preload: "pg_io_probe"} if cls.preload else {})
        cls.server.start()
        with cls.server.session() as maker:
            cls.make(maker)
        # This session has not loaded the library, unless all sessions do.
        cls.control = cls.server.session()
        cls.addClassCleanup(cls.control.close)

    @staticmethod
    def make(session):
        """Makes what the tests need."""
        session.run("""
            CREATE EXTENSION pg_io_probe;
            CREATE TABLE probed (id) WITH (autovacuum_enabled = off, parallel_workers = 2)
                AS SELECT generate_series(1, 1000);
            CREATE ROLE prober LOGIN;
            GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO prober;
            GRANT SELECT ON probed TO prober;
            GRANT CREATE ON SCHEMA public TO prober;
            GRANT CREATE ON TABLESPACE pg_default TO prober;
            CREATE ROLE granted LOGIN IN ROLE prober;
            CREATE ROLE boss LOGIN SUPERUSER;
            CREATE DATABASE owned OWNER prober""")
        session.run(f"GRANT SET ON PARAMETER {SETTING} TO granted")

    @contextlib.contextmanager
    def configured(self, place, value=CAP):
        """Meanwhile sessions begin with this value of the cap."""
        self.alter(f"{place} SET {SETTING} = {value}")
        try:
            yield
        finally:
            self.alter(f"{place} RESET {SETTING}")

    def alter(self, what):
        """Changes what sessions begin with."""
        self.control.run(f"ALTER {what}")
        if what.startswith("SYSTEM"):
            before = reload_time(self.control)
            self.control.run("SELECT pg_reload_conf()")
            # The postmaster has read the configuration before any other process does.
            wait_for(lambda: reload_time(self.control) != before, "the reload")

    def each_place(self):
        """Half of the places, or all in the long mode, each with a context in which the cap is configured there."""
        return [(place, self.configured(place)) for place in half_of(PLACES)]

    def session(self, user="prober", **values):
        """A session that brings these values along."""
        return self.server.session(user=user, options=self.options(values))

    @staticmethod
    def options(values):
        """These values as PGOPTIONS, without warnings, which would stand among results."""
        return " ".join(f"-c {name}={value}" for name, value in {"client_min_messages": "error", **values}.items())

    def end(self, session, sql=PROBE):
        """Runs statements, and returns the SQLSTATE by which they end; None when they end well."""
        self.said = ""
        try:
            session.run(sql)
        except Failure as failure:
            self.said = str(failure)
            return failure.sqlstate
        return None

    def assert_end(self, end, session, sql=PROBE):
        """The statements end so, also the second time, when all is loaded."""
        self.assertEqual([self.end(session, sql) for _ in range(2)], [end, end], self.said)

    def test_configured(self):
        for place, configured in self.each_place():
            with self.subTest(place=place), configured, self.session() as session:
                self.assert_end(HELD, session)

    def test_not_configured(self):
        with self.session() as session:
            self.assert_end(None, session)

    def test_with_the_connection(self):
        """A connection can't bring the cap along, not even with the default or the configured value."""
        for value in (0, CAP):
            for place, configured in self.each_place():
                with self.subTest(place=place, value=value), configured:
                    self.connect_with(value)

    def connect_with(self, value):
        """A value that the connection brings along ends all probes."""
        with self.session(**{SETTING: value}) as session:
            self.assert_end(REFUSED, session)
            self.assertRegex(self.said, f"{SETTING} is not known in this session")
            self.assertRegex(self.said, "HINT:  Connect without that value .*shared_preload_libraries")
            for statement in ("RESET ALL", "DISCARD ALL", f"RESET {SETTING}"):
                self.end(session, statement)
                self.assert_end(REFUSED, session)

    def test_with_the_connection_by_who_may(self):
        for user in ("granted", "boss"):
            for place, configured in self.each_place():
                with self.subTest(user=user, place=place), configured, self.session(user, **{SETTING: 0}) as session:
                    self.assert_end(None, session)
                    session.run(f"SET {SETTING} = {CAP}")
                    self.assert_end(HELD, session)

    def test_by_set_before_a_probe(self):
        statements = [
            f"SET {SETTING} = 0",
            f"SET {SETTING} = {CAP + 1}",
            f"SELECT set_config('{SETTING}', '0', false)",
            f"BEGIN; SET LOCAL {SETTING} = 0",
            f"BEGIN; SET {SETTING} = 0; SAVEPOINT below; SET LOCAL {SETTING} = 1",
            f"BEGIN; SET {SETTING} = 0; SELECT io_probe_progress(); COMMIT",
            f"BEGIN; SET {SETTING} = 0; ROLLBACK",
            f"RESET {SETTING}",
        ]
        for place, configured in self.each_place():
            with configured:
                for statement in statements:
                    with self.subTest(place=place, statement=statement), self.session() as session:
                        self.assertIn(self.end(session, statement), (None, DENIED))
                        self.end(session)
                        session.run("ROLLBACK")
                        self.assert_end(HELD, session)
        with self.session() as session:
            self.end(session, statements[0])
            self.assert_end(None, session)

    def test_by_set_after_a_probe(self):
        with self.configured("ROLE prober"), self.session() as session:
            self.assert_end(HELD, session)
            for statement in (
                f"SET {SETTING} = 0",
                f"SET {SETTING} = {CAP}",
                f"SELECT set_config('{SETTING}', '0', true)",
                f"UPDATE pg_settings SET setting = 0 WHERE name = '{SETTING}'",
            ):
                self.assert_end(DENIED, session, statement)
            session.run("RESET ALL")
            self.assert_end(HELD, session)

    def test_by_set_of_who_may(self):
        for user in ("granted", "boss"):
            with self.configured("ROLE ALL"), self.session(user) as session:
                session.run(f"SET {SETTING} = 0")
                self.assert_end(None, session)
                session.run(f"RESET {SETTING}")
                self.assert_end(HELD, session)

    def test_by_who_may_not_configure_it(self):
        """A role can configure the cap neither for itself nor for its database, and trying changes nothing."""
        for first in ("SELECT", "SELECT io_probe_progress()"):
            for what in ("ROLE prober", "DATABASE owned", "SYSTEM"):
                with self.subTest(what=what, first=first), self.configured("ROLE ALL"), self.session() as session:
                    session.run(first)
                    self.assert_end(DENIED, session, f"ALTER {what} SET {SETTING} = 0")
                    self.assert_end(HELD, session)

    def function(self, name, how):
        """A statement that makes a function that probes; `how` may take the cap away."""
        body = PROBE.replace("'", "''")
        return f"CREATE OR REPLACE FUNCTION {name}() RETURNS bigint LANGUAGE sql {how} AS '{body}'"

    def test_of_a_function_by_who_may_not(self):
        with self.configured("ROLE prober"), self.session() as session:
            self.assert_end(DENIED, session, self.function("own", f"SET {SETTING} = 0"))
            session.run(self.function("own", ""))
            self.assert_end(DENIED, session, f"ALTER FUNCTION own() SET {SETTING} = 0")
            self.assert_end(HELD, session, "SELECT own()")

    def test_of_a_function_of_its_caller(self):
        """The server ignores the function's value while the call loads the library, and refuses the call afterwards."""
        self.control.run(self.function("of_caller", f"SET {SETTING} = 0"))
        with self.configured("ROLE prober"), self.session() as session:
            self.assertIn(self.end(session, "SELECT of_caller()"), (HELD, DENIED))
            self.assertEqual(self.end(session, "SELECT of_caller()"), DENIED)
            self.assert_end(HELD, session)

    def test_of_a_function_of_its_owner(self):
        """A superuser has made the function to lift the cap, and it does."""
        self.control.run(self.function("of_owner", f"SECURITY DEFINER SET {SETTING} = 0"))
        with self.configured("ROLE prober"), self.session() as session:
            self.assert_end(None, session, "SELECT of_owner()")
            self.assert_end(HELD, session)

    def test_in_a_parallel_operation(self):
        """A function that is falsely marked parallel safe may load the library, in the leader or a worker. The cap holds."""
        make = """CREATE OR REPLACE FUNCTION {}() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS
            $$ BEGIN RETURN (SELECT count(*) FROM {}); END $$"""
        self.control.run(make.format("loads", "io_probe_progress()"))
        self.control.run(make.format("probes", call("seqscan", "probed", paths=["os"])))
        parallel = "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0"
        for place, configured in self.each_place():
            with self.subTest(place=place), configured:
                with self.session() as session:
                    session.run(f"{parallel}; SET max_parallel_workers = 0")
                    plan = session.run("EXPLAIN (COSTS off) SELECT loads() FROM probed")
                    self.assertIn("Workers Planned", "".join(plan))
                    session.run("SELECT loads() FROM probed LIMIT 1")
                    self.after_parallel_load(session)
                with self.session() as session:
                    session.run(f"{parallel}; SET parallel_leader_participation = off")
                    self.assert_end("25000", session, "SELECT probes() FROM probed")
                    self.assert_end(HELD, session)

    def after_parallel_load(self, session):
        """The library was loaded before, so the cap holds."""
        self.assert_end(HELD, session)


class LoadedByTheSession(Case):
    """A session loads the library after it got its first settings, and refuses those that the connection may not set."""

    def test_that_are_no_values(self):
        for user in ("prober", "boss"):
            for value in ("", "many", "-1"):
                with self.subTest(user=user, value=value), self.configured("SYSTEM"):
                    with self.session(user, **{SETTING: value}) as session:
                        self.assert_end(REFUSED, session)

    def test_in_capitals(self):
        with self.configured("SYSTEM"), self.session(**{SETTING.upper(): 0}) as session:
            self.assert_end(REFUSED, session)

    def test_each_cap(self):
        with self.session("boss") as boss:
            boss.run("LOAD 'pg_io_probe'")
            caps = boss.rows("SELECT name, boot_val FROM pg_settings WHERE name ~ '^pg_io_probe' AND context = 'superuser'")
        self.assertEqual(len(caps), 10)
        for cap in caps:
            with self.subTest(cap=cap["name"]), self.session(**{cap["name"]: cap["boot_val"]}) as session:
                self.assert_end(REFUSED, session)
                self.assertIn(f"{cap['name']} is not known", self.said)

    def test_beside_others(self):
        with self.session(**{"pg_io_probe.engine": "threads", "pg_io_probe.default_max_bytes": "1MB"}) as session:
            self.assert_end(None, session)

    def test_set_afterwards_by_who_may(self):
        """The cap is known for as long as a value lasts that an entitled role has set."""
        self.control.run("GRANT boss TO prober")
        self.addCleanup(self.control.run, "REVOKE boss FROM prober")
        with self.configured("ROLE prober"), self.session(**{SETTING: 0}) as session:
            self.assert_end(REFUSED, session)
            session.run(f"SET ROLE boss; SET {SETTING} = {CAP}; RESET ROLE")
            self.assert_end(HELD, session)
            session.run(f"SET ROLE boss; RESET {SETTING}; RESET ROLE")
            self.assert_end(REFUSED, session)
            session.run(f"BEGIN; SET LOCAL ROLE boss; SET LOCAL {SETTING} = {CAP}; SET LOCAL ROLE prober")
            self.assertEqual(self.end(session), HELD)
            session.run("ROLLBACK")
            self.assert_end(REFUSED, session)

    def test_loaded_by_a_function_that_sets_it(self):
        self.control.run(self.function("loads_it", f"SECURITY DEFINER SET {SETTING} = 0"))
        with self.configured("ROLE prober"), self.session(**{SETTING: 0}) as session:
            self.assertIsNone(self.end(session, "SELECT loads_it()"))
            self.assert_end(REFUSED, session)
            self.assertIsNone(self.end(session, "SELECT loads_it()"))

    def test_reload(self):
        """A reload brings back the value of postgresql.conf, but not that of a role, so probes stay refused."""
        with self.configured("ROLE prober"), self.session(**{SETTING: 0}) as session:
            self.assert_end(REFUSED, session)
            before = reload_time(session)
            with self.configured("SYSTEM", 1000):
                wait_for(lambda: reload_time(session) != before, "the reload")
                self.assert_end(REFUSED, session)


class LoadedWhenNeeded(LoadedByTheSession, unittest.TestCase):
    """The first call loads the library."""

    def after_parallel_load(self, session):
        """Nothing can be set in a parallel operation, not even what is configured."""
        self.assert_end(REFUSED, session)
        self.assertRegex(self.said, "HINT:  Connect again")

    def test_each_probe(self):
        with self.session("boss") as boss:
            calls = {probe.name: probe.query for probe in probes(boss)}
        calls["measure"] = f"SELECT {call('measure', probe='ping', rel='probed')}"
        with self.session(**{"pg_io_probe.scratch_limit": "1TB"}) as session:
            for name, query in calls.items():
                with self.subTest(probe=name):
                    self.assert_end(REFUSED, session, query)
                    self.assertIn("pg_io_probe.scratch_limit is not known", self.said)
            for function in ("io_probe_check", "io_probe_device", "io_probe_progress"):
                self.assert_end(None, session, f"SELECT {function}()")

    def test_configured_value_that_is_none(self):
        """A configured value that can't be read leaves the cap unknown: no probe begins until it is corrected."""
        with self.configured("SYSTEM", "many"), self.session() as session:
            self.assert_end(REFUSED, session)
            self.assertRegex(self.said, "HINT:  .*a superuser has to correct the value")
            before = reload_time(session)
            self.alter(f"SYSTEM SET {SETTING} = {CAP}")
            wait_for(lambda: reload_time(session) != before, "the reload")
            self.assert_end(HELD, session)


class LoadedAtItsBeginning(LoadedByTheSession, unittest.TestCase):
    preload = "session_preload_libraries"


class LoadedByTheServer(Case, unittest.TestCase):
    preload = "shared_preload_libraries"

    def connect_with(self, value):
        """The server refuses such a connection."""
        environment = {**os.environ, "PGHOST": self.server.host, "PGUSER": "prober", "PGDATABASE": "postgres"}
        environment["PGOPTIONS"] = self.options({SETTING: value})
        done = subprocess.run(["psql", "-Xc", "SELECT"], env=environment, check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done)
        self.assertRegex(done.stderr, f'FATAL:  permission denied to set parameter "{SETTING}"')


if __name__ == "__main__":
    main()
