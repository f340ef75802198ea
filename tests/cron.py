#!/usr/bin/env python3
"""Jobs of pg_cron that record runs: the documented schedule, jobs that overlap, and a server that is killed meanwhile.

pg_cron starts jobs when a minute begins, no sooner. So each part has a server of its own, and all jobs are for the same
minute. The tests run in the order of their names: first the one that has to act while a job runs.
"""

import os
import re
import time
import unittest

from lib import Session, as_server, dense_table, literal, main, say, wait_for
from servers import Server

ROOT = os.path.join(os.path.dirname(__file__), "..")
EACH_MINUTE = "* * * * *"
# Each with the database in which the probes are; pg_cron is in `postgres`.
PARTS = {"documented": "postgres", "overlapping": "app", "killed": "postgres"}
SERVERS = {}


def setUpModule():
    with Session() as session:
        if not session.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_cron'"):
            raise unittest.SkipTest("no pg_cron")
    for name, database in PARTS.items():
        server = SERVERS[name] = Server(name)
        unittest.addModuleCleanup(server.remove)
        server.configure({
            "shared_preload_libraries": "pg_cron",
            "cron.database_name": "postgres",
            "cron.host": server.host,
            "cron.use_background_workers": "off" if name == "documented" else "on",
            "max_worker_processes": 20,
            "pg_io_probe.row_duration": "20ms",
            "pg_io_probe.scratch_reserve": "0",
        })
        server.start()
        with server.session() as session:
            if name != "documented":  # there paste_the_schedule does it
                session.run("CREATE EXTENSION pg_cron")
            if database != "postgres":
                session.run(f"CREATE DATABASE {database}")
        with server.session(database) as session:
            session.run("CREATE EXTENSION pg_io_probe")
            dense_table(session, "tbl", 600)
    # The next minute that begins more than 15 s from now.
    once = f"{time.gmtime(time.time() + 75).tm_min} * * * *"
    paste_the_schedule(once)
    schedule_what_overlaps(once)
    schedule_what_is_killed(once)


def documented(document, start):
    """The SQL that a document tells one to paste: blocks that begin so."""
    with open(os.path.join(ROOT, document), encoding="utf-8") as file:
        blocks = re.findall(rf"^```sql\n({start}.*?)^```$", file.read(), re.M | re.S)
    if not blocks:
        raise AssertionError(f"{document} has no {start}")
    return "".join(blocks)


def paste_the_schedule(once):
    server = SERVERS["documented"]
    with server.session() as session:
        # A run that is too old.
        session.run("SELECT io_probe_import(io_probe_measure('ping', 'tbl', '{\"count\": 1}') "
                    "|| '{\"started_at\": \"2001-01-01\"}', 'old')")
        session.run("CREATE EXTENSION pg_cron; CREATE ROLE jobs LOGIN")
        for document, start in [("README.md", "CREATE ROLE"), ("README.md", "GRANT"), ("docs/history.md", "GRANT")]:
            session.run(documented(document, start))
        pasted = documented("docs/history.md", "SELECT cron.schedule")
        as_server("psql", "-X", "-v", "ON_ERROR_STOP=1", "-c", pasted, server.address(user="jobs"))
        session.run(f"SELECT cron.alter_job(jobid, schedule => '{once}') FROM cron.job")


def schedule_what_overlaps(once):
    """Three jobs that take 3 s each, of which one waits for the others, and one that its role has no right to do."""
    server, database = SERVERS["overlapping"], PARTS["overlapping"]
    with server.session(database) as session:
        session.run("CREATE ROLE prober LOGIN; GRANT SELECT ON tbl TO prober")
        session.run("GRANT EXECUTE ON FUNCTION io_probe_record, io_probe_ping, io_probe_ping_full TO prober")
    with server.session() as session:
        for name, options in {"hasty one": {}, "hasty other": {}, "patient": {"wait": True}}.items():
            command = record("ping", name, count=61, every="50 ms", options=options)
            schedule(session, name, once, command, database)
        schedule(session, "not granted", once, record("random", "not granted"), database)


def schedule_what_is_killed(once):
    with SERVERS["killed"].session() as session:
        session.run("CREATE ROLE prober LOGIN SUPERUSER")
        schedule(session, "short", EACH_MINUTE, record("ping", "short", count=1, options={"wait": True}))
        late = record("ping", "long", count=500, every="50 ms", options={"wait": True}) + " FROM pg_sleep(3)"
        schedule(session, "long", once, late)


def schedule(session, name, when, command, database="postgres"):
    """Makes a job of the role prober."""
    session.run(f"SELECT cron.schedule_in_database({literal(name)}, '{when}', {literal(command)}, '{database}', 'prober')")


def record(probe, label, **arguments):
    """A command that records a run."""
    return f"SELECT io_probe_record('{probe}', 'tbl', {literal(arguments)}, '{label}')"


def jobs_that_ended(session):
    """The jobs that have run, by name, with what pg_cron says of them."""
    rows = session.rows("SELECT jobname, status, return_message FROM cron.job_run_details JOIN cron.job USING (jobid) "
                        "WHERE end_time IS NOT NULL ORDER BY start_time DESC")
    return {row["jobname"]: (row["status"], row["return_message"]) for row in rows}


def stored(session):
    """All that is stored."""
    return [session.rows(f"SELECT * FROM {table} ORDER BY 1, 2") for table in ["io_probe_runs", "io_probe_results"]]


class Cron(unittest.TestCase):
    def connect(self, name, database="postgres"):
        session = SERVERS[name].session(database)
        self.addCleanup(session.close)
        return session

    def wait_for_jobs(self, session, count):
        """Waits until `count` jobs have ended."""
        return wait_for(lambda: (jobs := jobs_that_ended(session)) and len(jobs) >= count and jobs,
                        f"the end of {count} jobs", 120)

    def test_a_server_is_killed(self):
        """What was committed is there afterwards, and what was not is not."""
        server = SERVERS["killed"]
        with server.session() as session:
            # (pg_cron may notice the end of a job only when another one ends.)
            wait_for(lambda: session.value("SELECT count(*) FROM io_probe_runs") > 0, "a short job", 90)
            # A short job ends at once.
            long = "SELECT count(*) FROM io_probe_progress() WHERE started_at < clock_timestamp() - interval '1 s'"
            wait_for(lambda: session.value(long) == 1, "the long job", 120)
            before = stored(session)
            self.assertIn("short", {run["label"] for run in before[0]})
        server.kill()
        server.start()
        session = self.connect("killed")
        self.assertEqual(stored(session), before)

    def test_jobs_that_overlap(self):
        """A job that is not told to wait is stored as skipped if another one runs. A job that waits gets its turn."""
        ended = self.wait_for_jobs(self.connect("overlapping"), 4)
        session = self.connect("overlapping", PARTS["overlapping"])
        status, message = ended.pop("not granted")
        self.assertEqual(status, "failed")
        self.assertRegex(message, "permission denied for function io_probe_random")
        self.assertEqual({status for status, _ in ended.values()}, {"succeeded"}, ended)
        runs = {run["label"]: run for run in session.rows("SELECT * FROM io_probe_runs")}
        self.assertEqual(set(runs), {"hasty one", "hasty other", "patient"})
        say(", ".join(f"{label}: {run['status']}" for label, run in runs.items()))
        self.assertEqual(runs["patient"]["status"], "ok")
        hasty = [runs["hasty one"], runs["hasty other"]]
        skipped = [run for run in hasty if run["status"] == "skipped"]
        self.assertIn(len(skipped), [1, 2])  # both, when the one that waits came first
        for run in skipped:
            self.assertEqual((run["sqlstate"], run["rolname"]), ("55006", "prober"))
            self.assertRegex(run["message"], "another probe is running")
        results = "SELECT run_id, count(*) FROM io_probe_results GROUP BY 1 ORDER BY 1"
        measured = sorted(run["id"] for run in runs.values() if run["status"] == "ok")
        self.assertEqual(session.rows(results), [{"run_id": number, "count": 61} for number in measured])
        # No two measured at the same time: 61 requests, one each 50 ms, take 3 s.
        if len(measured) > 1:
            between = "SELECT extract(epoch FROM max(started_at) - min(started_at)) FROM io_probe_ping_history"
            self.assertGreaterEqual(session.value(between), 3)

    def test_the_documented_schedule(self):
        """The schedule is pasted as it stands by the role that is to have it, and each of its jobs does its work."""
        session = self.connect("documented")
        jobs = session.rows("SELECT jobname, username, command FROM cron.job")
        self.assertEqual(len(jobs), 4)
        ended = self.wait_for_jobs(session, 4)
        self.assertEqual({status for status, _ in ended.values()}, {"succeeded"}, ended)
        runs = session.rows("SELECT * FROM io_probe_runs ORDER BY probe")
        self.assertEqual([run["probe"] for run in runs], ["random", "seqscan", "sync"])
        for run in runs:
            with self.subTest(run["probe"]):
                self.assertEqual((run["status"], run["label"], run["rolname"]), ("ok", "nightly", "jobs"))
                view = f"SELECT count(*) FROM io_probe_{run['probe']}_history WHERE run_id = {run['id']} AND status = 'ok'"
                self.assertGreater(session.value(view), 0)
        self.assertEqual(session.value("SELECT count(*) FROM io_probe_changes() WHERE verdict IN ('better', 'worse')"), 0)

    def test_the_jobs_of_the_killed_server_go_on(self):
        session = self.connect("killed")
        before = stored(session)
        wait_for(lambda: session.value("SELECT count(*) FROM io_probe_runs") > len(before[0]), "a job afterwards", 90)
        after = stored(session)
        self.assertEqual(after[0][: len(before[0])], before[0])
        self.assertEqual({(run["label"], run["status"]) for run in after[0][len(before[0]) :]}, {("short", "ok")})


if __name__ == "__main__":
    main()
