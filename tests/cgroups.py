"""Control groups of the client tests: they limit what processes may read of a device."""

import contextlib
import os
import re

from lib import read, wait_for
from storage import succeeds

VERSIONS = ["v1", "v2"]
# By limit: its file, and the word before the figure in it.
FILES = {
    "v1": {"read_bps": ("blkio.throttle.read_bps_device", ""), "read_iops": ("blkio.throttle.read_iops_device", "")},
    "v2": {"read_bps": ("io.max", "rbps="), "read_iops": ("io.max", "riops=")},
}


class Limit:
    """A control group that limits what its processes read of a device."""

    def __init__(self, folder):
        self.folder = folder

    @contextlib.contextmanager
    def on(self, pids):
        """Meanwhile these processes, and those that they start, are in the control group."""
        try:
            move(pids, self.folder)
            yield
        finally:
            while inside := read(f"{self.folder}/cgroup.procs").split():
                move(inside, os.path.dirname(self.folder))


@contextlib.contextmanager
def limited(version, device, **limits):
    """A limit by control groups of one version: read_bps is bytes a second, read_iops requests. None where it can't be set."""
    if version == "v1":
        with _limits("/sys/fs/cgroup/blkio", version, device, limits) as limit:
            yield limit
        return
    found = re.search(r"^\S+ (\S+) cgroup2 ", read("/proc/mounts"), re.MULTILINE)
    root = found.group(1) if found else "/nosuch"
    switch = f"{root}/cgroup.subtree_control"
    added = "io" in read(f"{root}/cgroup.controllers").split() and "io" not in read(switch).split()
    with contextlib.suppress(OSError):
        write(switch, "+io" if added else "")
    try:
        with _limits(root, version, device, limits) as limit:
            yield limit
    finally:
        with contextlib.suppress(OSError):
            write(switch, "-io" if added else "")


@contextlib.contextmanager
def limited_somehow(device, **limits):
    """A limit by control groups of either version; None where it can't be set."""
    with contextlib.ExitStack() as groups:
        found = (groups.enter_context(limited(version, device, **limits)) for version in VERSIONS)
        yield next((limit for limit in found if limit), None)


@contextlib.contextmanager
def quota(share):
    """A quota of this share of a processor, by control groups of either version; None where it can't be set."""
    period = 100000
    places = [("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", f"{share * period:.0f}"),
              ("/sys/fs/cgroup", "cpu.max", f"{share * period:.0f} {period}")]
    root, name, value = next(((root, *rest) for root, *rest in places if os.path.exists(f"{root}/cgroup.procs")), places[0])
    with _group(f"{root}/pg_io_probe_test_quota", [(name, value)]) as limit:
        yield limit


def _limits(root, version, device, limits):
    """A group in this folder that limits what is read of a device."""
    number = os.stat(device).st_rdev
    files = [(*FILES[version][name], value) for name, value in limits.items()]
    settings = [(name, f"{os.major(number)}:{os.minor(number)} {word}{value}") for name, word, value in files]
    return _group(f"{root}/pg_io_probe_test_{os.path.basename(device)}", settings)


@contextlib.contextmanager
def _group(folder, settings):
    """Meanwhile there is a group with these files' values; None where it can't be had."""
    try:
        os.mkdir(folder)
    except OSError:
        yield None
        return
    try:
        possible = all(os.path.exists(f"{folder}/{name}") for name, _ in settings)
        for name, value in settings if possible else []:
            write(f"{folder}/{name}", value)
        yield Limit(folder) if possible else None
    finally:
        wait_for(lambda: succeeds("rmdir", folder), "the processes to leave the cgroup")


def move(pids, folder):
    """Moves processes into a control group; some may have ended meanwhile."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            write(f"{folder}/cgroup.procs", pid)


def write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))
