#!/usr/bin/env -S python3 -B
"""What a limited probe costs the work beside it: pgbench with and without a probe, in turn.

    pgbench_beside_probes.py PGBENCH
                                on the server that the environment names, with the table tbl_cost_align;
                                run.sh starts one. For fio, as a user that may read the server's files

Each probe may take SHARE (5) percent of the device's time (max_util_pct). The probes are scans on each path, cold; random
fetches on each path, cold; fetches at depth 16; a sync test of the WAL's pattern and of single writes, by all methods. ONLY
names some of them, with commas between.

pgbench runs with CLIENTS (2) clients on SCALE (50), for SECONDS_EACH (10) seconds, or for as long as three calls and their
pauses take. Beside it runs a probe in a loop; a pause of the same length follows each call. By pgbench's log of its
transactions, those that ended during calls are compared with those that ended during pauses. So a pair of figures is from
the same seconds, and what else the device does falls on both. There are PAIRS (9) runs for each of SCRIPTS
(select-only,tpcb-like). Each line is about the transactions a second: the medians, and the loss, which is the median of the
ratios, with the least and the greatest. At most 3 % may be lost. The first line of a script has no probe at all: it shows
the error of the others. The lines before say how much of the device's time each probe takes on the idle server, by the
kernel's counters (io_ticks, as iostat's %util is), and how much of a processor. Where pgbench leaves no processor free, it
loses at least that share of one. With CLIENTS=1 it does leave one free.

After a probe on a direct path, fio takes its place. It reads the table's file directly, as many MiB a second as the probe
did on the idle server, by requests of 512 kB (scan) or 8 kB (random), one by one, evenly spaced, a second in every two. Its
line is like the others: it shows what such reads cost pgbench on this device, whichever program reads. fio is left out
where its requests would be too far apart to tell its turns (PAUSE).
"""

import bisect
import contextlib
import functools
import math
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

from commands import processor_seconds, psql, run, server_version

PATHS = ["direct", "server", "os"]
LINE = "{:<7} {:<12} {:<17} {:>10} {:>10} {:>7} {:>16} {}"
GOAL_PCT = 3
NOW = "SELECT extract(epoch FROM clock_timestamp()) AS {0} \\gset\n\\echo at :{0}\n"
TIME = r"^at ([0-9.]+)$"
NOTHING = "SELECT FROM pg_sleep(1)"
AS_LONG = "SELECT FROM pg_sleep((:over - :begun)::float8)"
# By the name of a probe: fio's --rw for the same reads, and the kB of a request.
FIO = {"seqscan direct": ("read", 512), "random direct": ("randread", 8)}
# Seconds without a request that end a turn of fio: more than between two of its requests, less than between two turns.
PAUSE = 0.3
# Calls that are measured on the idle server: io_ticks tells one short request by chance, many well.
CALLS = 5
# The share of its transactions that pgbench logs: to log all of them, it would lose processor time.
SAMPLING = {"select-only": 0.05, "tpcb-like": 1.0}


def number(name, default):
    """A whole number from the environment."""
    return int(os.environ.get(name, default))


SCAN = "io_probe_seqscan_full('tbl_cost_align', '{{{path}}}', duration => '1 s', cold => true, options => '{options}')"
FETCH = SCAN.replace("seqscan", "random").replace(", options", ", depth => {depth}, options")
SYNC = "io_probe_sync_full(duration => '1150 ms', sections => '{{one_write,wal_segment}}', options => '{options}')"
# The name of each probe, its call, and the arguments.
PROBES = [(f"seqscan {path}", SCAN, {"path": path}) for path in PATHS]
PROBES += [(f"random {path}", FETCH, {"path": path, "depth": 1}) for path in PATHS]
PROBES += [("random at 16", FETCH, {"path": "direct", "depth": 16})]
PROBES += [("sync", SYNC, {})]


def limited(probe, arguments, share):
    """The call of a probe that may take `share` percent of the device's time."""
    return "SELECT FROM " + probe.format(**arguments, options=f'{{"max_util_pct": {share}}}')


def limited_probes():
    """By name: what runs beside pgbench, and how many seconds a turn of it takes."""
    besides = {}
    for name, probe, arguments in PROBES:
        if name not in os.environ.get("ONLY", name).split(","):
            continue
        call = limited(probe, arguments, number("SHARE", 5))
        cost = alone(call)
        tell_cost(call, cost)
        besides[name] = functools.partial(Beside, call), cost.seconds
        way, kb = FIO.get(name, (None, 0))
        kb_per_s = cost.read_mib_per_s * 1024
        if way and kb / kb_per_s < PAUSE / 2:
            options = [f"--rw={way}", f"--bs={kb}k", f"--rate={kb_per_s:.0f}k"]
            besides[f"fio, {name.split()[0]}"] = functools.partial(Fio, options), 1
    return besides


def tell_cost(call, cost):
    """Prints a line about a call on the idle server."""
    print(f"{server_version()}: {cost.processor_pct:.1f} % of a processor, {cost.device_pct:.1f} % of the device, "
          f"{cost.read_mib_per_s:.1f} MiB/s read, for {cost.seconds:.1f} s: {call.removeprefix('SELECT FROM ')}", flush=True)  # fmt: skip


@dataclass
class Cost:
    """What a call takes."""

    seconds: float
    processor_pct: float
    device_pct: float
    read_mib_per_s: float


def alone(call):
    """What a call costs on the idle server: the mean of CALLS."""
    from lib import Session

    with Session() as session:
        session.run("SELECT FROM io_probe_check()")
        session.run(call)
        look = lambda: (time.monotonic(), processor_seconds(session.pid), *device_counters())
        await_idle_device()
        before = look()
        for _ in range(CALLS):
            session.run(call)
        seconds, processor, device, mib = [now - then for now, then in zip(look(), before)]
        return Cost(seconds / CALLS, 100 * processor / seconds, 100 * device / seconds, mib / seconds)


def device_counters():
    """For how many seconds the device of the data directory has had something to do (io_ticks), and how many MiB it has
    read."""
    device = os.stat(os.environ["PGDATA"]).st_dev
    counters = pathlib.Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    fields = counters.read_text(encoding="ascii").split()
    return int(fields[9]) / 1000, int(fields[2]) / 2048


def await_idle_device():
    """Waits until the device has next to nothing to do for a second."""
    for _ in range(60):
        before, _ = device_counters()
        time.sleep(1)
        if device_counters()[0] - before < 0.01:
            return
    sys.exit("the device does not come to rest: something else uses it")


class Beside:
    """A call in a loop, in one session, until the end of the `with` block, with a pause of the same length after each.
    `turns` are the seconds at which each call began, at which it ended, and at which its pause ended."""

    def __init__(self, call):
        now = NOW.format
        said = f"{now('begun')}{call};\n{now('over')}{AS_LONG};\n{now('then')}\\echo ended\n" * 1000
        self.psql = subprocess.Popen(
            ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.feed = threading.Thread(target=self.write, args=(said,))
        self.feed.start()

    def write(self, said):
        with contextlib.suppress(BrokenPipeError):
            self.psql.stdin.write(said)
            self.psql.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.psql.send_signal(signal.SIGINT)
        self.feed.join()
        self.psql.stdin = None  # it is not there any more
        out, err = self.psql.communicate()
        assert not re.search("(ERROR|FATAL): (?! 57014)", err), err
        self.turns = turns(out)


class Fio:
    """fio, which reads a second in every two until the end of the `with` block; `turns` are as in Beside."""

    def __init__(self, options):
        path = psql("SELECT current_setting('data_directory') || '/' || pg_relation_filepath('tbl_cost_align')")
        self.folder = tempfile.TemporaryDirectory()
        self.fio = subprocess.Popen(
            ["fio", "--name=beside", f"--filename={path}", "--readonly", "--direct=1", "--ioengine=psync", *options,
             "--thinktime=1s", "--thinktime_iotime=1s", "--rate_ignore_thinktime=1", "--time_based", "--runtime=1h",
             f"--write_bw_log={self.folder.name}/log", "--log_unix_epoch=1"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.fio.send_signal(signal.SIGINT)
        said, _ = self.fio.communicate()
        with self.folder:
            log = pathlib.Path(self.folder.name) / "log_bw.1.log"
            assert log.exists(), said
            # Without the first turn, in which pgbench begins.
            self.turns = bursts(int(line.split(",")[0]) / 1000 for line in log.read_text(encoding="ascii").splitlines())[1:]


def bursts(ended):
    """The turns of fio, whose requests ended at these seconds."""
    found = []
    for end in ended:
        if not found or end - found[-1][1] > PAUSE:
            found.append([end, end])
        found[-1][1] = end
    begins = [begin for begin, _ in found[1:]] + [math.inf]
    return [(begin, over, then) for (begin, over), then in zip(found, begins)]


def turns(out):
    """The turns in a session's output. A time that the last turn did not reach is infinite."""
    times = [list(map(float, re.findall(TIME, turn, re.MULTILINE))) for turn in out.split("ended\n")]
    return [tuple(turn + [math.inf] * (3 - len(turn))) for turn in times]


def ends(log):
    """When the transactions in a log of pgbench's ended, in seconds."""
    for line in log.splitlines():
        _, _, _, _, seconds, micros = line.split()[:6]
        yield int(seconds) + int(micros) / 1e6


def rates(ended, all_turns):
    """Transactions a second beside a probe, and beside nothing."""
    ended = sorted(ended)

    def rate(windows):
        # Only while pgbench ran.
        windows = [(max(begun, ended[0]), min(over, ended[-1])) for begun, over in windows]
        windows = [(begun, over) for begun, over in windows if begun < over]
        count = sum(bisect.bisect_left(ended, over) - bisect.bisect_left(ended, begun) for begun, over in windows)
        return count / sum(over - begun for begun, over in windows)

    # Not the turn in which pgbench began, which is slow.
    later = [turn for turn in all_turns if turn[0] >= ended[0]]
    return rate([turn[:2] for turn in later]), rate([turn[1:] for turn in later])


def pgbench(program, script, beside, seconds=1):
    """One run of pgbench beside `beside`, of which a turn takes `seconds`: transactions a second beside calls, and beside
    nothing."""
    clients = str(number("CLIENTS", 2))
    # The first turn does not count.
    seconds = str(max(number("SECONDS_EACH", 10), math.ceil(3 * 2 * seconds)))
    sampling = SAMPLING[script]
    with tempfile.TemporaryDirectory() as folder, beside() as loop:
        run([program, "-n", "-b", script, "-c", clients, "-j", clients, "-T", seconds,
             "--log", f"--log-prefix={folder}/log", f"--sampling-rate={sampling}"])  # fmt: skip
        ended = [end for log in pathlib.Path(folder).iterdir() for end in ends(log.read_text(encoding="utf-8"))]
    return [rate / sampling for rate in rates(ended, loop.turns)]


def judge(program, script, name, beside, seconds=1):
    """Judges runs of a script beside `beside`, of which a turn takes `seconds`; the ratios."""
    runs = [pgbench(program, script, beside, seconds) for _ in range(number("PAIRS", 9))]
    ratios = [beside / alone for beside, alone in runs]
    beside, alone = [f"{statistics.median(rates):.0f}" for rates in zip(*runs)]
    tell(script, name, alone, beside, ratios)
    return ratios


def tell(script, name, alone, beside, ratios):
    """Prints a line about these pairs."""
    loss = 100 * (1 - statistics.median(ratios))
    spread = f"{100 * (1 - max(ratios)):.1f} to {100 * (1 - min(ratios)):.1f}"
    print(LINE.format(server_version(), script, name, alone, beside, f"{loss:.1f} %", spread,
                      "met" if loss <= GOAL_PCT else "MISSED"), flush=True)  # fmt: skip


def main(program):
    """Runs each script beside each probe."""
    run([program, "-i", "-q", "-s", str(number("SCALE", 50))])
    psql("VACUUM")
    psql("CHECKPOINT")
    besides, nothing = limited_probes(), functools.partial(Beside, NOTHING)
    print(LINE.format("server", "script", "beside", "tps alone", "beside", "loss", "of pairs, %", "verdict"), flush=True)
    for script in os.environ.get("SCRIPTS", "select-only,tpcb-like").split(","):
        pgbench(program, script, nothing)
        judge(program, script, "nothing", nothing)
        ratios = {name: judge(program, script, name, *beside) for name, beside in besides.items()}
        for what, is_of in [("any probe", lambda name: "fio" not in name), ("fio", lambda name: "fio" in name)]:
            of_these = [ratio for name, of_one in ratios.items() if is_of(name) for ratio in of_one]
            if of_these:
                tell(script, what, "", "", of_these)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit("usage: pgbench_beside_probes.py PGBENCH")
