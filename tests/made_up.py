"""Block devices with exactly known timing, by devices/device.sh; devices/README.md has their models."""

import atexit
import contextlib
import itertools
import os
import subprocess

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "devices", "device.sh")


def missing():
    """Why there can be no made-up devices here; None where there can."""
    done = subprocess.run([SCRIPT, "check"], check=False, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else None


def _script(*words):
    """Runs the script, and returns what it printed."""
    done = subprocess.run([SCRIPT, *map(str, words)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"device.sh {' '.join(map(str, words))}: {done.stderr}"
    return done.stdout


@contextlib.contextmanager
def device(gib=2):
    """Meanwhile there is a device, under the model `off`."""
    made = Device(gib)
    try:
        yield made
    finally:
        made.remove()


class Device:
    """A made-up device: `block` is its file in /dev, `mount_point` where its file system is, `control` the folder of its control
    files."""

    numbers = itertools.count()

    def __init__(self, gib=2):
        self.name = f"of_{os.getpid()}_{next(self.numbers)}"
        self.size = gib << 30
        self.block, self.mount_point, self.control = _script("up", self.name, gib).splitlines()
        # Also when the tests are stopped where unittest cleans nothing up.
        atexit.register(self.remove)

    def model(self, words):
        """From now on it is such a device, for example "gp3 iops=500". What is due stays due."""
        _script("model", self.name, *words.split())

    @contextlib.contextmanager
    def meanwhile(self, words):
        """Meanwhile it is such a device, and then `off`."""
        self.model(words)
        try:
            yield
        finally:
            self.model("off")

    def readahead(self, kib):
        """Sets its readahead window."""
        _script("readahead", self.name, kib)

    def counts(self):
        """What it has done since it was made: reads, writes, flushes, read_bytes, written_bytes, failed. And how it is: in_flight,
        late_us, and credits where it has some."""
        with open(os.path.join(self.control, "counts"), encoding="ascii") as file:
            return {name: int(number) for name, number in map(str.split, file)}

    def remove(self):
        """Takes it away, with all that is on it."""
        atexit.unregister(self.remove)
        _script("down", self.name)
