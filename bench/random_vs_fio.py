#!/usr/bin/env -S python3 -B
"""The random fetches of io_probe_random side by side with those of fio and ioping, on the file of tbl_cost_align.

    random_vs_fio.py FILE           on the server that the environment names; run.sh starts one

All read random blocks of 8 kB by O_DIRECT for the same time:
    ours      path direct: at depth 1 one pread at a time; above it io_uring, and once more by threads
    theirs    fio: psync at depth 1, io_uring above it, as it comes; and once with its buffers in huge pages, which
              makes a request one segment to the device. At depth 1 also ioping -R -D
They run in turn, PAIRS times (25) at each of DEPTHS (1 2 4 8 16 32 64 128), each for SECONDS_EACH (1.5), in every
second round in reverse order. A first round does not count: its rates tell whether the time has to be shorter, so that
neither ours nor fio reads a block twice. (ioping does at times: it draws each block anew.) Before each run the script
looks for the file in the OS cache, and gives up if any of it is there.

Each line is about x = ln(ours / theirs), of which every round gives one: `ratio` is exp(mean of x), `lower` and `upper`
are exp(mean of x -+ t(0.95, n-1) * s / sqrt(n)), each a bound of its own that holds with 95 %. `goal` says what they
have to be, and the verdict
    met       the bounds are as the goal says
    MISSED    the opposite is shown: even the other bound is beyond the goal
    open      neither: too few rounds for runs that differ as these do
    -         no goal: shown for the distance
`ours` and `theirs` are the medians of the rates (1/s) or times (us).

The rate `iops` is over the wall clock; `service iops` is over the time spent in requests. fio's `clat` begins after a
request was submitted, its `lat` before that, as ours does: `lat` compares like with like. With io_uring a submission
lasts as long as the driver takes to hand it to the device, which at small depths is a large part of the whole.
"""

import json
import math
import os
import statistics
import sys

from arithmetic import Bounds, Goal
from commands import give_up, rows, run, server_version

BLOCK = 8192
# Seconds that a run takes beyond its measured time, about.
STARTUP_SECONDS = 0.5
# The share of the file's blocks that a run may read.
MOST_OF_THE_FILE = 0.9


# --- the readers ---------------------------------------------------------------------------------------------------


def ours(engine, depth, seconds, file):
    """Figures of io_probe_random by their names."""
    query = f"""SELECT * FROM io_probe_random_full('tbl_cost_align', paths => '{{direct}}', depth => {depth},
                    duration => '{seconds} s', options => '{{"max_bytes": {2 * file.size}}}')"""
    (row,) = rows(query, "-c", f"SET pg_io_probe.engine = '{engine}'")
    if row["status"] != "ok" or row["hole_blks"] or row["blks"] >= file.blocks or row["device_pct"] != 100:
        give_up(f"not what was asked for: {row}")
    if depth > 1 and row["engine"] not in (engine, "io_uring"):
        give_up(f"not by {engine}: {row}")
    p50, p99 = row["p50_us"], row["p99_us"]
    return {
        "iops": row["iops"],
        "service iops": 1e6 / row["lat_us"],
        "p50 clat": p50,
        "p99 clat": p99,
        "p50 lat": p50,
        "p99 lat": p99,
    }


def fio(depth, seconds, file, huge_pages=False):
    """Figures of fio by the same names."""
    engine = ["--ioengine=io_uring", f"--iodepth={depth}"] if depth > 1 else ["--ioengine=psync"]
    more = ["--mem_align=2M"] if huge_pages else []
    # A runtime without a unit is cut to whole seconds.
    told = run(
        ["fio", "--name=judge", f"--filename={file.path}", "--readonly", "--rw=randread", f"--bs={BLOCK}", "--direct=1"]
        + ["--norandommap=0", "--randrepeat=0", "--time_based", f"--runtime={round(seconds * 1000)}ms"]
        + ["--lat_percentiles=1", "--output-format=json", *engine, *more],
        as_server=True,
        **({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"} if huge_pages else {}),
    )
    figures, fetches = fio_figures(told)
    if fetches >= file.blocks:
        give_up(f"fio read {fetches} times in a file of {file.blocks} blocks")
    return figures


def fio_figures(told):
    """The figures in fio's JSON, and the number of its reads."""
    (job,) = json.loads(told)["jobs"]
    if job["error"]:
        give_up(f"fio failed: {told}")
    read = job["read"]
    figures = {"iops": read["iops"]}
    for kind in ("clat", "lat"):
        for name, key in (("p50", "50.000000"), ("p99", "99.000000")):
            figures[f"{name} {kind}"] = read[f"{kind}_ns"]["percentile"][key] / 1000
    return figures, read["total_ios"]


def ioping(_depth, seconds, file):
    """Figures of ioping by the same names, as far as it has them."""
    command = ["ioping", "-R", "-D", "-B", "-s", str(BLOCK), "-S", str(file.size), "-w", str(seconds), file.path]
    return ioping_figures(run(command, as_server=True))


def ioping_figures(told):
    """The figures in ioping's raw statistics: see its manual."""
    fields = [int(field) for field in told.split()]
    return {"iops": fields[8] / (fields[9] / 1e9), "service iops": fields[2]}


class File:
    """The file that all of them read."""

    def __init__(self, path):
        self.path = path
        self.size = os.stat(path).st_size
        self.blocks = self.size // BLOCK

    def expect_cold(self):
        cached = run(["fincore", "--bytes", "--noheadings", "--output", "RES", self.path], as_server=True).strip()
        if cached != "0":
            give_up(f"the OS cache holds {cached} bytes of {self.path}")


# --- the comparisons -----------------------------------------------------------------------------------------------

OURS = "ours"
THREADS = "ours, threads"
FIO = "fio"
FIO_HUGE = "fio, huge pages"
IOPING = "ioping"

READERS = {
    OURS: lambda *run: ours("auto", *run),
    THREADS: lambda *run: ours("threads", *run),
    FIO: fio,
    FIO_HUGE: lambda *run: fio(*run, huge_pages=True),
    IOPING: ioping,
}


def comparisons(depth):
    """Of each comparison: ours, theirs, and the goals by the name of the figure."""
    iops = Goal(least=0.97 if depth in (1, 32) else 0.95)
    p50, p99 = Goal(most=1.05), Goal(most=1.20)
    distance = {"iops": Goal(), "p50 lat": Goal(), "p99 lat": Goal()}
    yield OURS, FIO, {"iops": iops, "p50 clat": Goal(), "p99 clat": Goal(), "p50 lat": p50, "p99 lat": p99}
    yield OURS, FIO_HUGE, distance
    if depth == 1:
        within = Goal(least=0.90, most=1.10)
        yield OURS, IOPING, {"iops": within, "service iops": within}
    else:
        yield THREADS, FIO, distance


def readers(depth):
    """The names of the readers in a round, in turn."""
    names = [name for one, other, _ in comparisons(depth) for name in (one, other)]
    return list(dict.fromkeys(names))


def judge(depth, pairs, seconds, file):
    """Runs all rounds of one depth and prints its lines."""

    def one_round(names, seconds):
        figures = {}
        for name in names:
            file.expect_cold()
            figures[name] = READERS[name](depth, seconds, file)
        return figures

    names = readers(depth)
    warm_up = one_round(names, min(seconds, 0.5))
    fastest = max(figures["iops"] for figures in warm_up.values())
    seconds = min(seconds, round(MOST_OF_THE_FILE * file.blocks / fastest, 2))
    rounds = [one_round(names if index % 2 else names[::-1], seconds) for index in range(pairs)]
    for one, other, goals in comparisons(depth):
        for metric, goal in goals.items():
            figures = [(figures[one][metric], figures[other][metric]) for figures in rounds]
            # A quantile without enough requests beyond it is not known.
            figures = [pair for pair in figures if None not in pair]
            if len(figures) > 1:
                print_line(depth, seconds, f"{one} : {other}", metric, figures, goal)


LINE = "{:<6} {:>5} {:>5} {:<22} {:<12} {:>3} {:>6} {:>6} {:>6} {:>8} {:>8}  {:<7} {}"


def print_line(depth, seconds, who, metric, figures, goal):
    """Prints a line of the table."""
    bounds = Bounds([math.log(one / other) for one, other in figures])
    medians = [f"{statistics.median(side):.{0 if 'iops' in metric else 1}f}" for side in zip(*figures)]
    ratios = [f"{ratio:.3f}" if ratio < 99 else ">99" for ratio in (bounds.ratio, bounds.lower, bounds.upper)]
    verdict = goal.verdict(bounds)
    print(LINE.format(server_version(), depth, seconds, who, metric, len(figures), *ratios, *medians, verdict, goal))
    sys.stdout.flush()


def main():
    file = File(sys.argv[1])
    pairs = int(os.environ.get("PAIRS", 25))
    seconds = float(os.environ.get("SECONDS_EACH", 1.5))
    depths = [int(depth) for depth in os.environ.get("DEPTHS", "1 2 4 8 16 32 64 128").replace(",", " ").split()]
    if pairs < 2:
        give_up("PAIRS must be at least 2: one pair has no spread")
    runs = sum(len(readers(depth)) for depth in depths)
    minutes = runs * (pairs * (seconds + STARTUP_SECONDS) + 1) / 60
    print(f"{pairs} rounds of {runs} runs, {seconds} s each: about {math.ceil(minutes)} minutes")
    head = "server depth s who figure n ratio lower upper ours theirs verdict goal".split()
    print(LINE.format(*head))
    for depth in depths:
        judge(depth, pairs, seconds, file)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main()
    else:
        sys.exit("usage: random_vs_fio.py FILE")
