#!/usr/bin/env -S python3 -B
"""What a limited probe costs those who work beside it: pgbench with and without, in turn.

    pgbench_judges.py PGBENCH       on the server that the environment names, with the table tbl_cost_align;
                                    pgbench_judges.sh starts one
    pgbench_judges.py --self-test

Each probe may take SHARE (5) percent of the MiB a second that it gets without a limit, as found right before on the idle
server; the sync test, of its syncs. So it has the device to do its work for that share of the time, at whatever depth. They
are scans on each path, cold; random fetches on each path, cold; fetches at depth 16; a sync test of the WAL's pattern and of
single writes, by all methods. ONLY names some of them, with commas between.

pgbench runs for SECONDS_EACH (10) seconds, or as long as three calls and what is between them take, with CLIENTS (2)
clients on SCALE (50), and beside it a probe in a loop, on each call of which as long a nothing follows. By pgbench's log of
its transactions, those that ended during a call are compared with those that ended during the nothing: so a pair of figures
is from the same seconds, and what else the device does falls on both. PAIRS (9) runs for each of SCRIPTS
(select-only,tpcb-like). Each line says what became of the transactions a second: the medians, and the median of the ratios
with the least and the greatest. At most 3 % may be lost. The first line of a script has no probe at all: what it shows is
the error of the others. The lines before say what each probe's share is, and how much of a processor it takes for that on
the idle server: where pgbench leaves none free, so much is lost at least.
"""

import bisect
import contextlib
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

from random_judges import run, server_version

PATHS = ["direct", "server", "os"]
LINE = "{:<7} {:<12} {:<17} {:>10} {:>10} {:>7} {:>16} {}"
GOAL_PCT = 3
NOW = "SELECT extract(epoch FROM clock_timestamp()) AS {0} \\gset\n\\echo at :{0}\n"
TIME = r"^at ([0-9.]+)$"
NOTHING = "SELECT FROM pg_sleep(1)"
AS_LONG = "SELECT FROM pg_sleep((:over - :begun)::float8)"
# How many of its transactions pgbench writes down: what it would take of a processor for all of them, it would lose.
SAMPLING = {"select-only": 0.05, "tpcb-like": 1.0}


def number(name, default):
    """A whole number of the environment."""
    return int(os.environ.get(name, default))


def psql(query):
    """What a query gives."""
    return run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", query]).strip()


SCAN = "io_probe_seqscan('tbl_cost_align', '{{{path}}}', duration => '1 s', cold => true{options})"
FETCH = "io_probe_random('tbl_cost_align', '{{{path}}}', duration => '1 s', cold => true, depth => {depth}{options})"
SYNC = "io_probe_sync(duration => '50 ms', sections => '{{one_write,wal_segment}}'{options})"
# Its name, what is called, the column of its rate, and the option that limits that.
PROBES = [(f"seqscan {path}", SCAN, {"path": path}, "mib_per_s", "max_mib_per_s") for path in PATHS]
PROBES += [(f"random {path}", FETCH, {"path": path, "depth": 1}, "mib_per_s", "max_mib_per_s") for path in PATHS]
PROBES += [("random at 16", FETCH, {"path": "direct", "depth": 16}, "mib_per_s", "max_mib_per_s")]
PROBES += [("sync", SYNC, {}, "max(ops_per_s) FILTER (WHERE is_current AND writes = 1 AND write_kb = 8) / 128", "max_mib_per_s")]


def limited(probe, arguments, option, rate):
    """The call that has its share of a rate."""
    most = max(1, round(rate * number("SHARE", 5) / 100))
    return "SELECT FROM " + probe.format(**arguments, options=f""", options => '{{"{option}": {most}}}'""")


def shares():
    """By their names, the calls, each with its share of what it gets alone, and how many seconds each takes."""
    calls = {}
    for name, probe, arguments, column, option in PROBES:
        if name not in os.environ.get("ONLY", name).split(","):
            continue
        rate = float(psql(f"SELECT {column} FROM {probe.format(**arguments, options='')}"))
        call = limited(probe, arguments, option, rate)
        seconds, busy = alone(call)
        print(f"{server_version()}: {100 * busy / seconds:.1f} % of a processor for {seconds:.1f} s: "
              f"{call.removeprefix('SELECT FROM ')}", flush=True)  # fmt: skip
        calls[name] = call, seconds
    return calls


def alone(call):
    """How many seconds it takes on the idle server, and for how many of them its session is busy."""
    with subprocess.Popen(["psql", "-XqAt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:

        def ask(query):
            session.stdin.write(f"{query};\n\\echo ended\n")
            session.stdin.flush()
            return list(iter(session.stdout.readline, "ended\n"))

        pid = int(ask("SELECT pg_backend_pid()")[0])
        ask("SELECT FROM io_probe_check()")
        ask(call)
        started, before = time.monotonic(), processor_seconds(pid)
        ask(call)
        return time.monotonic() - started, processor_seconds(pid) - before


def processor_seconds(pid):
    """User and system time of a process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Beside:
    """A call in a loop, in one session, until the end of the block, as long a nothing after each; `turns` are the seconds
    of their begin, of their end, and of the end of the nothing."""

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


def turns(out):
    """What a session's output says of its turns. What the last did not come to lasts forever."""
    times = [list(map(float, re.findall(TIME, turn, re.MULTILINE))) for turn in out.split("ended\n")]
    return [tuple(turn + [math.inf] * (3 - len(turn))) for turn in times]


def ends(log):
    """When the transactions of a log of pgbench's ended, in seconds."""
    for line in log.splitlines():
        _, _, _, _, seconds, micros = line.split()[:6]
        yield int(seconds) + int(micros) / 1e6


def rates(ended, all_turns):
    """Transactions a second beside a probe, and beside nothing."""
    ended = sorted(ended)

    def rate(windows):
        # While pgbench was there.
        windows = [(max(begun, ended[0]), min(over, ended[-1])) for begun, over in windows]
        windows = [(begun, over) for begun, over in windows if begun < over]
        count = sum(bisect.bisect_left(ended, over) - bisect.bisect_left(ended, begun) for begun, over in windows)
        return count / sum(over - begun for begun, over in windows)

    # Not the one in which pgbench began, which is slow.
    later = [turn for turn in all_turns if turn[0] >= ended[0]]
    return rate([turn[:2] for turn in later]), rate([turn[1:] for turn in later])


def pgbench(program, script, call=NOTHING, seconds=1):
    """One run of it, beside this, which takes so many seconds: transactions a second beside it, and beside nothing."""
    clients = str(number("CLIENTS", 2))
    # The first turn does not count.
    seconds = str(max(number("SECONDS_EACH", 10), math.ceil(3 * 2 * seconds)))
    sampling = SAMPLING[script]
    with tempfile.TemporaryDirectory() as folder, Beside(call) as loop:
        run([program, "-n", "-b", script, "-c", clients, "-j", clients, "-T", seconds,
             "--log", f"--log-prefix={folder}/log", f"--sampling-rate={sampling}"])  # fmt: skip
        ended = [end for log in pathlib.Path(folder).iterdir() for end in ends(log.read_text(encoding="utf-8"))]
    return [rate / sampling for rate in rates(ended, loop.turns)]


def judge(program, script, name, call, seconds=1):
    """Runs of a script beside a probe that takes so many seconds; the ratios."""
    runs = [pgbench(program, script, call, seconds) for _ in range(number("PAIRS", 9))]
    ratios = [beside / alone for beside, alone in runs]
    beside, alone = [f"{statistics.median(rates):.0f}" for rates in zip(*runs)]
    tell(script, name, alone, beside, ratios)
    return ratios


def tell(script, name, alone, beside, ratios):
    """A line about these pairs."""
    loss = 100 * (1 - statistics.median(ratios))
    spread = f"{100 * (1 - max(ratios)):.1f} to {100 * (1 - min(ratios)):.1f}"
    print(LINE.format(server_version(), script, name, alone, beside, f"{loss:.1f} %", spread,
                      "met" if loss <= GOAL_PCT else "MISSED"), flush=True)  # fmt: skip


def self_test():
    """Known answers."""
    said = "at 10.0\nat 11.0\nat 12.5\nended\nat 12.5\nat 13.5\nat 15.0\nended\nat 15.0\n"
    assert turns(said) == [(10.0, 11.0, 12.5), (12.5, 13.5, 15.0), (15.0, math.inf, math.inf)], turns(said)
    assert list(ends("0 199 2241 0 1175850568 995598\n1 7 9 0 10 5\n")) == [1175850568.995598, 10.000005]
    # pgbench begins in the first turn. Beside: 2 in a second, 4 in one. Beside nothing: 3 in one and a half.
    ended = [10.5, 11.1, 11.7, 12.3, 12.6, 13.4, 13.6, 14.0, 14.4, 15.1, 15.2, 15.3, 15.9, 16.0]
    assert rates(ended, turns(said)) == (3.0, 2.0), rates(ended, turns(said))
    call = limited(*PROBES[0][1:3], "max_mib_per_s", 3010.0)
    assert call == ("SELECT FROM io_probe_seqscan('tbl_cost_align', '{direct}', duration => '1 s', cold => true, "
                    """options => '{"max_mib_per_s": 150}')"""), call
    print("ok")


def main(program):
    """Both scripts."""
    run([program, "-i", "-q", "-s", str(number("SCALE", 50))])
    psql("VACUUM")
    psql("CHECKPOINT")
    calls = shares()
    print(LINE.format("server", "script", "beside", "tps alone", "beside", "loss", "of pairs, %", "verdict"), flush=True)
    for script in os.environ.get("SCRIPTS", "select-only,tpcb-like").split(","):
        pgbench(program, script)
        judge(program, script, "nothing", NOTHING)
        ratios = [ratio for name, call in calls.items() for ratio in judge(program, script, name, *call)]
        if ratios:
            tell(script, "any of these", "", "", ratios)


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit("usage: pgbench_judges.py PGBENCH | --self-test")
