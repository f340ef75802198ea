#!/usr/bin/env -S python3 -B
"""What fio says of the made-up devices in devices/, beside the arithmetic of their models. As root, on an idle machine.

usage: any_disk.py [RUNS [MODEL]]: medians of so many runs (7: a quarter of an hour), which go through all cases in turn, or
through those of models that begin with this word
"""

import json
import statistics
import sys
from dataclasses import dataclass

from commands import give_up, run
from made_up import device, missing

MIB = 1 << 20


@dataclass(frozen=True)
class Case:
    """A model, what fio does with it, and what comes out by arithmetic."""

    model: str
    # Requests a second; of 1 MiB, so MiB a second.
    expected: float
    depth: int = 1
    pattern: str = "randread"
    bytes: int = 8192
    seconds: int = 2
    # MiB of the device to which it keeps, and which are read once before; 0: the whole device.
    within: int = 0

    def __str__(self):
        size = "1 MiB" if self.bytes == MIB else f"{self.bytes >> 10} kB"
        return f"{self.model:<38} {self.pattern:<9} {size:<6} {self.depth:>5}"

    def measure(self, made):
        """Requests a second. The model is set just before, so that a model with phases is in its first."""
        made.model(self.model)
        where = [f"--size={self.within or made.size // MIB}M"]
        if self.within:
            self.fio(made, "read", MIB, *where)
        return self.fio(made, self.pattern, self.bytes, *where, "--time_based", f"--runtime={self.seconds}s")

    def fio(self, made, pattern, length, *options):
        """Requests a second that fio has made."""
        engine = ["--ioengine=io_uring", f"--iodepth={self.depth}"] if self.depth > 1 else ["--ioengine=psync"]
        told = run(["fio", "--name=judge", f"--filename={made.block}", f"--rw={pattern}", f"--bs={length}", "--direct=1",
                    "--allow_mounted_write=1", "--norandommap=1", "--randrepeat=0", "--output-format=json",
                    *engine, *options])  # fmt: skip
        (job,) = json.loads(told)["jobs"]
        if job["error"]:
            give_up(f"fio failed: {told}")
        return job["read"]["iops"] + job["write"]["iops"]


def volume(model, latency_ms, iops, mib):
    """Cases of a volume with these caps."""
    for depth in [1, 8, 32]:
        yield Case(model, min(depth * 1000 / latency_ms, iops), depth)
    yield scan(model, mib)


def scan(model, mib):
    """The case of reading 1 MiB after another."""
    return Case(model, mib, pattern="read", bytes=MIB)


CASES = [
    # What the queue gains comes from the model on a simulated clock.
    Case("hdd", 105.4),
    Case("hdd", 137.6, depth=8),
    Case("hdd", 161.1, depth=32),
    scan("hdd", 160e6 / MIB),
    *volume("gp3", 0.7, 3000, 125),
    *volume("burst", 0.7, 3000, 125),
    *volume("burst credits=1", 0.7, 300, 75),
    *volume("net", 0.25, 1e9, 1e9 / MIB),
    *volume("ssd", 0.09, 1e9, 3e9 / MIB),
    # As many reads as writes, one after another: 0.09 ms a write, 2.09 ms a read.
    Case("ssd penalty_ms=2 penalty_for_ms=100", 2000 / (0.09 + 2.09), pattern="randrw"),
    Case("net ms=5 cache=64 hit_ms=1", 1000, within=64),
    # Two seconds of three.
    Case("gp3 stall=1 stall_every=2", 2000, depth=8, seconds=6),
]
LINE = "{:<61} {:>10} {:>9} {:>17} {:>7}"


def main():
    if why := missing():
        give_up(why)
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    cases = [case for case in CASES if len(sys.argv) < 3 or case.model.split()[0] == sys.argv[2]]
    with device() as made:
        rates = [[case.measure(made) for case in cases] for _ in range(runs)]
    print(LINE.format("model, pattern, size, depth", "arithmetic", "fio", "least to most", "ratio"))
    for case, found in zip(cases, zip(*rates)):
        median = statistics.median(found)
        spread = f"{min(found):,.0f} to {max(found):,.0f}"
        print(LINE.format(str(case), f"{case.expected:,.0f}", f"{median:,.0f}", spread, f"{median / case.expected:.2f}"))


if __name__ == "__main__":
    main()
