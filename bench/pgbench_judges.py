#!/usr/bin/env -S python3 -B
"""What a limited probe costs those who work beside it: pgbench with and without, in turn.

    pgbench_judges.py PGBENCH       on the server that the environment names, with the table tbl_cost_align;
                                    pgbench_judges.sh starts one
    pgbench_judges.py --self-test

The probes may take SHARE (5) percent of what the device gives, in MiB a second and in requests a second, as the probe
itself found both right before on the idle server. They run one after the other in a loop, as long as pgbench does:
scans on each path, random fetches at each depth, cold, sync tests with as many requests at most.

pgbench runs for SECONDS_EACH (20) seconds with CLIENTS (2) clients on SCALE (50), alone and beside that loop, in turn,
and in every second round in reverse order; PAIRS (9) times for each of its scripts, select-only and tpcb-like. Each
line says what became of the transactions a second: the medians, and the median of the ratios with the least and the
greatest. At most 3 % may be lost.
"""

import os
import re
import statistics
import subprocess
import sys
import threading

from random_judges import run, server_version

LINE = "{:<7} {:<12} {:>10} {:>10} {:>7} {:>16} {:<8} {}"
GOAL_PCT = 3


def number(name, default):
    """A whole number of the environment."""
    return int(os.environ.get(name, default))


def psql(query):
    """What a query gives."""
    return run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", query]).strip()


def share_of_device():
    """What a probe may take: MiB a second, and requests a second."""
    share = number("SHARE", 5) / 100
    rate = float(psql("SELECT mib_per_s FROM io_probe_seqscan('tbl_cost_align', '{direct}', cold => true)"))
    most = float(psql("SELECT max(iops) FROM io_probe_depth('tbl_cost_align', '{1,16,64}', '2 s')"))
    return max(1, round(share * rate)), max(1, round(share * most))


def probes(mib_per_s, iops):
    """The calls that make up a round of the loop."""
    limits = f"""options => '{{"max_mib_per_s": {mib_per_s}, "max_iops": {iops}}}'"""
    return [
        f"SELECT FROM io_probe_seqscan('tbl_cost_align', duration => '2 s', cold => true, {limits})",
        f"SELECT FROM io_probe_random('tbl_cost_align', duration => '2 s', cold => true, {limits})",
        f"SELECT FROM io_probe_random('tbl_cost_align', '{{direct}}', '2 s', depth => 16, {limits})",
        f"SELECT FROM io_probe_sync(duration => '1 s', sections => '{{one_write,wal_segment}}', {limits})",
    ]


class Beside:
    """Probes in a loop, until the end of the block."""

    def __init__(self, calls):
        self.calls, self.made = calls, 0

    def __enter__(self):
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()
        return self

    def loop(self):
        while not self.over.is_set():
            for call in self.calls:
                self.psql = subprocess.Popen(["psql", "-Xqc", call], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                if self.over.is_set():
                    self.psql.terminate()
                said = self.psql.communicate()[1]
                if self.over.is_set():
                    return
                assert self.psql.returncode == 0, said
                self.made += 1

    def __exit__(self, *_):
        self.over.set()
        self.psql.send_signal(2)
        self.thread.join()


def tps(told):
    """Transactions a second, as pgbench tells."""
    return float(re.search(r"^tps = ([0-9.]+) ", told, re.MULTILINE).group(1))


def pgbench(program, script):
    """One run of it."""
    clients = str(number("CLIENTS", 2))
    seconds = str(number("SECONDS_EACH", 20))
    return tps(run([program, "-n", "-b", script, "-c", clients, "-j", clients, "-T", seconds]))


def judge(program, script, calls):
    """Pairs of runs of a script."""
    pgbench(program, script)
    alone, beside, made = [], [], 0
    for pair in range(number("PAIRS", 9)):
        for is_beside in [False, True] if pair % 2 == 0 else [True, False]:
            if is_beside:
                with Beside(calls) as loop:
                    beside.append(pgbench(program, script))
                made += loop.made
            else:
                alone.append(pgbench(program, script))
    ratios = [b / a for a, b in zip(alone, beside)]
    loss = 100 * (1 - statistics.median(ratios))
    spread = f"{100 * (1 - max(ratios)):.1f} to {100 * (1 - min(ratios)):.1f}"
    print(LINE.format(server_version(), script, f"{statistics.median(alone):.0f}", f"{statistics.median(beside):.0f}",
                      f"{loss:.1f} %", spread, "met" if loss <= GOAL_PCT else "MISSED",
                      f"{len(ratios)} pairs, {made} calls of probes ended meanwhile"), flush=True)


def self_test():
    """Known answers."""
    assert tps("latency average = 0.100 ms\ntps = 12345.678901 (without initial connection time)\n") == 12345.678901
    limits = probes(150, 4000)[0]
    assert '"max_mib_per_s": 150, "max_iops": 4000' in limits
    print("ok")


def main(program):
    """Both scripts."""
    run([program, "-i", "-q", "-s", str(number("SCALE", 50))])
    psql("VACUUM")
    psql("CHECKPOINT")
    mib_per_s, iops = share_of_device()
    print(f"{server_version()}: probes may take {mib_per_s} MiB/s and {iops} requests/s")
    print(LINE.format("server", "script", "tps alone", "beside", "loss", "of pairs, %", "verdict", ""), flush=True)
    for script in ["select-only", "tpcb-like"]:
        judge(program, script, probes(mib_per_s, iops))


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit("usage: pgbench_judges.py PGBENCH | --self-test")
