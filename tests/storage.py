"""What the client tests share about storage: a device of their own, and files and devices seen from outside."""

import atexit
import contextlib
import ctypes
import mmap
import os
import re
import signal
import subprocess
import time
import unittest

from lib import IS_ROOT, TEST_TMP, as_server, read, segment_file, server_ids

MIB = 1 << 20
# Limits of a queue, in this order: a change of the first sets the second to what the kernel thinks best.
LIMITS = ["max_sectors_kb", "read_ahead_kb"]
# The number of Linux 5.14, which Python does not name.
MADV_POPULATE_READ = 22


class LoopDevice:
    """A file system in a file, by default an ext4, mounted with `options` besides. With `direct`, the device reads its file past
    the cache of the file system below. With `journals_data`, the file system writes all data to its journal first, and takes no
    direct I/O."""

    def __init__(self, size, direct=False, journals_data=False, make=None, options=()):
        self.size = size
        self.backing = os.path.join(TEST_TMP, "disk")
        self.mount_point = os.path.join(TEST_TMP, "mounted")
        with open(self.backing, "wb") as file:
            file.truncate(size)
        # What mkfs leaves for later, the kernel would write while a probe measures.
        journal = "has_journal" if journals_data else "^has_journal"
        ext4 = ["mkfs.ext4", "-q", "-b", "4096", "-O", journal, "-E", "lazy_itable_init=0"]
        try:
            run(*(make or ext4), self.backing)
        except FileNotFoundError as e:
            os.remove(self.backing)
            raise unittest.SkipTest(str(e))
        os.mkdir(self.mount_point)
        try:
            self.device = run("losetup", "--find", "--show", f"--direct-io={'on' if direct else 'off'}", self.backing)
        except AssertionError as e:
            raise unittest.SkipTest(f"no loop devices here: {e}")
        self.device = self.device.strip()
        # Also when the tests are stopped where unittest cleans nothing up.
        atexit.register(self.remove)
        # A device has the limits that the last one of its name was given.
        self.inherited = [read(self.limit(name)).strip() for name in LIMITS]
        self.limits = [self.inherited[0], 128]
        self.set_queue(*self.limits)
        if direct and run("losetup", "--noheadings", "--output", "DIO", self.device).strip() != "1":
            raise unittest.SkipTest("the file system of the tests has no O_DIRECT for loop devices")
        options = ["noatime", *(["data=journal"] if journals_data else []), *options]
        try:
            run("mount", "-o", ",".join(options), self.device, self.mount_point)
        except AssertionError as e:
            self.remove()
            raise unittest.SkipTest(f"this kernel does not mount it: {e}")

    def remove(self):
        """Removes all of it. The next device of this name would have the limits of its queue, so they are put back."""
        atexit.unregister(self.remove)
        self.set_queue(*self.inherited)
        for attempt in range(5):
            if not os.path.ismount(self.mount_point) or succeeds("umount", self.mount_point):
                break
            time.sleep(attempt / 10)
        else:
            # A server that is going down may still have files of it open: the mount goes when they are closed.
            run("umount", "--lazy", self.mount_point)
        run("losetup", "--detach", self.device)
        os.rmdir(self.mount_point)
        os.remove(self.backing)

    def set_queue(self, *limits):
        """Sets the limits of its queue, see LIMITS."""
        for name, value in zip(LIMITS, limits):
            with open(self.limit(name), "w", encoding="ascii") as file:
                file.write(str(value))

    def limit(self, name):
        """The file of a limit of its queue."""
        return f"/sys/class/block/{os.path.basename(self.device)}/queue/{name}"

    def counters(self):
        """See device_counters."""
        return device_counters([os.path.basename(self.device)])

    def settled_counters(self):
        """The same, once all is written that the kernel would write later."""
        run("sync", "-f", self.mount_point)
        return self.counters()

    def used(self):
        """See used."""
        return used(self.mount_point)

    def make_cold(self, session, table):
        """Takes a table on it out of shared buffers and the OS cache, and leaves nothing to be written later."""
        session.run(f"VACUUM FULL {table}; CHECKPOINT")
        run("sync", "-f", self.mount_point)
        cache_only(segment_file(session, table), [])

    @contextlib.contextmanager
    def read_on(self, pause=0):
        """Meanwhile another process reads 8 MiB from the device again and again, with `pause` seconds between."""
        path = os.path.join(self.mount_point, "read")
        with open(path, "wb") as file:
            file.write(bytes(8 * MIB))
        script = f"while dd if={path} iflag=direct bs=1M of=/dev/null status=none; do sleep {pause}; done"
        reader = subprocess.Popen(["bash", "-c", script], start_new_session=True)
        try:
            yield
        finally:
            os.killpg(reader.pid, signal.SIGKILL)
            reader.wait()
            os.remove(path)

    @contextlib.contextmanager
    def cut_short_within(self, path, offset=None):
        """Meanwhile the last piece of a file of this file system can't be read, or a file in one piece from `offset` on: the
        device's backing file is cut off there."""
        extents = self._extents(path)
        assert offset is None or len(extents) == 1, f"{path} is in {len(extents)} pieces"
        os.truncate(self.backing, max(extents) + (offset or 0))
        try:
            yield
        finally:
            os.truncate(self.backing, self.size)

    @contextlib.contextmanager
    def cut_off_before(self, path):
        """Meanwhile the device ends where a file of this file system begins: it can be neither read nor written."""
        os.truncate(self.backing, min(self._extents(path)))
        try:
            run("losetup", "--set-capacity", self.device)
            yield
        finally:
            os.truncate(self.backing, self.size)
            run("losetup", "--set-capacity", self.device)
            succeeds("sync", "-f", self.mount_point)  # which reports, once, what could not be written

    def _extents(self, path):
        """Where on the device the pieces of a file begin."""
        run("sync", "-f", self.mount_point)
        found = re.findall(r"^ *\d+: +\d+\.\. *\d+: +(\d+)\.\.", run("filefrag", "-b4096", "-e", path), re.MULTILINE)
        return [int(block) * 4096 for block in found]


def create_tablespace(session, name, directory):
    """Makes a tablespace below a directory, and returns the clause for a table in it."""
    os.chown(directory, *server_ids())
    inside = os.path.join(directory, "tablespace")
    as_server("mkdir", inside)
    session.run(f"CREATE TABLESPACE {name} LOCATION '{inside}'")
    return f"TABLESPACE {name}"


def used(directory):
    """Bytes that are not free on the file system of a directory."""
    facts = os.statvfs(directory)
    return (facts.f_blocks - facts.f_bfree) * facts.f_frsize


def room(directory):
    """Bytes that the server may still take there. (A file system may keep some more for root.)"""
    facts = os.statvfs(directory)
    return facts.f_bavail * facts.f_frsize


@contextlib.contextmanager
def filled_but_for(directory, size):
    """Meanwhile the file system of a directory has just `size` bytes of room, even if other files are being made."""
    filler = os.path.join(directory, "filler")
    with open(filler, "wb", buffering=0) as file:
        end = 0
        for step in [4 * MIB >> halved for halved in range(11)]:
            with contextlib.suppress(OSError):  # others may take it meanwhile
                while room(directory) >= size + step:
                    os.posix_fallocate(file.fileno(), end, step)
                    end += step
    try:
        yield
    finally:
        os.remove(filler)


def run(*command):
    """Runs a command, and returns what it printed."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


def succeeds(*command):
    """Does a command succeed?"""
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def device_counters(names):
    """Reads, bytes read and written, and how long there were requests in flight, of some devices since boot."""
    fields = [[int(n) for n in read(f"/sys/class/block/{name}/stat").split()] for name in names]
    return {
        "reads": sum(f[0] for f in fields),
        "bytes": sum(512 * (f[2] + f[6]) for f in fields),
        "busy_ms": sum(f[9] for f in fields),
    }


def shares(row):
    """Percent of a row's blocks that came from shared buffers, from the OS cache and from the device."""
    return [row["shared_pct"], row["os_pct"], row["device_pct"]]


def assert_about(test, value, expected, share, what=None):
    """A value is within a share of what is expected."""
    test.assertAlmostEqual(value, expected, delta=expected * share, msg=what)


def fincore(path):
    """Bytes of a file in the OS cache."""
    return int(run("fincore", "-b", "-n", "-o", "RES", path))


def assert_keeps(test, found, held):
    """The OS cache still holds what it held, but for pages that a kernel has taken back. It gets no more by itself."""
    test.assertLessEqual(found, held)
    test.assertGreater(found, held * 0.9)


def assert_fetched(test, found, expected):
    """A process has `expected` bytes on its account, and perhaps pages of its own program, which a kernel had taken from it."""
    test.assertGreaterEqual(found, expected)
    test.assertLessEqual(found, expected + 128 * 1024)


def dirty_bytes(path):
    """Bytes of a file in the OS cache that differ from the storage, or are just being written: by cachestat(2)."""
    counts = (ctypes.c_uint64 * 5)()
    whole = (ctypes.c_uint64 * 2)(0, 0)
    with open(path, "rb") as file:
        if ctypes.CDLL(None).syscall(451, file.fileno(), whole, counts, 0) != 0:
            raise unittest.SkipTest("no cachestat here")
    return (counts[1] + counts[2]) * 4096


def every_second_mib(size):
    """Every second MiB of a file of this size, as ranges for `cached`."""
    return [(start, MIB) for start in range(0, size, 2 * MIB)]


@contextlib.contextmanager
def cached(path, ranges):
    """Meanwhile the OS cache has just these byte ranges of a file, each a start and a length, nothing dirty, and loses none of
    them: they are locked. A kernel takes back other pages at any time, memory free or not. (Locked pages can't be evicted.)"""
    cache_only(path, ranges)
    with locked(path, ranges):
        yield


@contextlib.contextmanager
def locked(path, ranges):
    """Meanwhile the OS cache has these byte ranges of a file, and loses none of them."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    size, file = os.path.getsize(path), os.open(path, os.O_RDONLY)
    try:
        start = libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, file, ctypes.c_long(0))
        assert start not in (None, ctypes.c_void_p(-1).value), os.strerror(ctypes.get_errno())
    finally:
        os.close(file)
    try:
        # A page that is missing comes in alone, without its neighbours.
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), mmap.MADV_RANDOM)
        for place, length in ranges:
            where, length = ctypes.c_void_p(start + place), ctypes.c_size_t(length)
            if libc.mlock(where, length) != 0:
                # Without root a process may lock little. A kernel is less likely to take back pages that are mapped.
                assert not IS_ROOT, os.strerror(ctypes.get_errno())
                libc.madvise(where, length, MADV_POPULATE_READ)
        yield
    finally:
        libc.munmap(ctypes.c_void_p(start), ctypes.c_size_t(size))


def cache_only(path, ranges):
    """Leaves in the OS cache just these byte ranges of a file, each a start and a length, and nothing dirty; see `cached`."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)  # no readahead
        for start, length in ranges:
            os.pread(file, length, start)
    finally:
        os.close(file)
