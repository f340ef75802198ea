"""Further servers of the client tests: each with a folder, a socket and a superuser `postgres` of its own."""

import os
import shutil
import signal

from lib import TEST_TMP, Session, as_server, literal, read, wait_for


class Server:
    """A new server, made with further options of initdb, in a folder below `parent`, which the server's user owns."""

    def __init__(self, name, *options, parent=TEST_TMP):
        self.host = os.path.join(parent, name)
        self.data = os.path.join(self.host, "data")
        as_server("mkdir", self.host)
        as_server("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "--no-locale", "-E", "UTF8", "--no-sync",
                  *options)
        self.configure({"listen_addresses": "", "unix_socket_directories": self.host, "port": os.environ["PGPORT"]})

    def configure(self, settings):
        """Adds settings, which hold from the next start on."""
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as file:
            for name, value in settings.items():
                file.write(f"{name} = {literal(str(value))}\n")

    def start(self, first=None):
        """Starts it, also after kill(). The process that starts it calls `first` before, and the server inherits the effect."""
        log = os.path.join(self.host, "log")
        as_server("pg_ctl", "start", "-w", "-t", "60", "-D", self.data, "-l", log, first=first)

    def stop(self, mode="fast"):
        """Stops it."""
        as_server("pg_ctl", "stop", "-w", "-m", mode, "-D", self.data)

    def session(self, database="postgres", **given):
        """A session there."""
        return Session(database, self.host, **given)

    def address(self, database="postgres", user="postgres"):
        """Its address as libpq reads it."""
        return f"host={self.host} port={os.environ['PGPORT']} user={user} dbname={database}"

    def kill(self):
        """Ends all its processes at once, as if the machine had stopped."""
        postmaster = self.postmaster()
        os.kill(postmaster, signal.SIGSTOP)  # it starts none meanwhile
        children = read(f"/proc/{postmaster}/task/{postmaster}/children").split()
        for pid in [*map(int, children), postmaster]:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children), "the end of its processes")

    def postmaster(self):
        """The number of its first process; None when it does not run."""
        return int((read(os.path.join(self.data, "postmaster.pid")).split() or [0])[0]) or None

    def remove(self):
        """Stops it, and leaves nothing of it."""
        if self.postmaster():
            self.stop("immediate")
        shutil.rmtree(self.host)


class Limited:
    """Meanwhile a process has a lower limit."""

    def __init__(self, pid, limit, most):
        self.on, self.limit, self.most = ["--pid", str(pid)], limit, most

    def __enter__(self):
        (line,) = as_server("prlimit", "--noheadings", "--output", "SOFT", f"--{self.limit}", *self.on).splitlines()
        self.before = line.strip()
        self.set(self.most)
        return self

    def __exit__(self, *_):
        self.set(self.before)

    def set(self, most):
        # Run as the server's user: a container's root may not set the limit.
        as_server("prlimit", f"--{self.limit}={most}:", *self.on)
