"""What the programs here share: how they run commands, and the server's version. A module, not a program."""

import os
import subprocess
import sys


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


def give_up(why):
    """Ends with an error."""
    sys.exit(f"{os.path.basename(sys.argv[0])}: {why}")


def server_version():
    """The server's version as its users write it."""
    major, minor = divmod(int(os.environ["PG_VERSION_NUM"]), 10000)
    return f"{major}.{minor}"
