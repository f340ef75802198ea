"""What the programs here share: how they run commands and queries, and the server's version. A module, not a program."""

import json
import os
import subprocess
import sys

# For `from lib import Session`, only where a server is there: lib wants one in the environment.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))


def run(command, as_server=False, **environment):
    """What a command prints. `as_server` runs it as the owner of the server's files: of other users' files the kernel
    says that all is cached."""
    ids = {}
    if as_server and os.geteuid() == 0:
        owner = os.stat(os.environ["PGDATA"])
        ids = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
    environment = {**os.environ, **environment}
    done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False, **ids)
    if done.returncode != 0:
        give_up(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def psql(query, *options):
    """What a query gives, in a session of its own; options such as `-c` come before it."""
    return run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", *options, "-c", query]).strip()


def rows(query, *options):
    """The rows of a query, each a dictionary, in a session of its own."""
    return json.loads(psql(f"SELECT coalesce(json_agg(r), '[]') FROM ({query}) AS r", *options))


def processor_seconds(pid):
    """User and system time of a process with all its threads."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return seconds_of(file.read())


def seconds_of(stat):
    """The same, of /proc/PID/stat."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def give_up(why):
    """Ends with an error."""
    sys.exit(f"{os.path.basename(sys.argv[0])}: {why}")


def server_version():
    """The server's version as its users write it."""
    major, minor = divmod(int(os.environ["PG_VERSION_NUM"]), 10000)
    return f"{major}.{minor}"
