#!/usr/bin/env -S python3 -B
"""io_probe_sync side by side with pg_test_fsync, in one directory.

    sync_judges.py PG_TEST_FSYNC DIRECTORY [TABLESPACE]
                                on the server that the environment names; sync_judges.sh starts one. DIRECTORY is
                                pg_wal, or the directory of that tablespace in which the server keeps its files
    sync_judges.py --self-test

Both do what pg_test_fsync does, each row for SECONDS_EACH (1), and they run in turn, PAIRS times (11), in every second
round in reverse order. pg_test_fsync's open_datasync and open_sync are with O_DIRECT, so they stand against our direct
rows. What one of the two can't do, the other must not do either.

Each line is about ours / theirs in operations a second, of which every round gives one: `ratio` is their median, and
between `low` and `high` the true median lies with 95 % at least: the lowest and the highest of 7, the second of each
end of 9, and so on; with fewer than 6 it is less than that. `ours` and `theirs` are the medians of the rates. The
verdict
    met       the ratio is within the goal: 5 %, 10 % below 1,000 operations a second
    MISSED    it is not, and nor is anything between low and high
    open      neither: too few rounds for runs that differ so much
    -         neither of the two can do it

The lines `order` say whether the methods of a section come in the same order: of each two, of which one is faster by
more than 5 % in pg_test_fsync (with all that lies between low and high), the same one must be faster in ours. Only
those that are not are named, with the ratios of their rates (low-high).
"""

import itertools
import json
import math
import os
import re
import statistics
import sys
from dataclasses import dataclass

from random_judges import run, server_version

SECTIONS = {  # by how their headings begin
    "Compare file sync methods using one": "one_write",
    "Compare file sync methods using two": "two_writes",
    "Compare open_sync with different": "open_sync_size",
    "Test if fsync on non-write": "other_fd",
    "Non-sync": "no_sync",
}
TOLERANCE = 0.05
TOLERANCE_OF_SLOW = 0.10
SLOW = 1000
# About so many have each of the two.
ROWS = 18

# --- the two, each as rates by section and method ------------------------------------------------------------------


def ours(target, seconds, directory):
    """The rates of io_probe_sync; None where a row is unsupported."""
    query = f"""SELECT json_agg(r) FROM io_probe_sync({target}, sections => '{{{",".join(SECTIONS.values())}}}',
                    duration => '{seconds} s') r"""
    rows = json.loads(run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", query]))
    for row in rows:
        if row["status"] not in ("ok", "unsupported") or row["directory"] != directory:
            give_up(f"not what was asked for, in {directory}: {row}")
    return our_rates(rows)


def our_rates(rows):
    """Those of the rows that have their like in pg_test_fsync."""
    rates = {}
    for row in rows:
        section, method = row["section"], row["method"]
        # A row that can't be has no flags.
        if method.startswith("open_") and not row["direct"]:
            continue
        if section == "open_sync_size":
            method = pieces(row["writes"], row["write_kb"])
        if (section, method) in rates:
            give_up(f"two rows of {section}, {method}")
        rates[section, method] = row["ops_per_s"] if row["status"] == "ok" else None
    return rates


def theirs(pg_test_fsync, seconds, directory):
    """The rates of pg_test_fsync; None where it says n/a."""
    command = [pg_test_fsync, "-s", str(seconds), "-f", f"{directory}/pg_test_fsync.out"]
    return their_rates(run(command, as_server=True, LC_ALL="C"))


def their_rates(told):
    """What it prints."""
    section, rates = None, {}
    for line in told.splitlines():
        section = next((name for heading, name in SECTIONS.items() if line.startswith(heading)), section)
        found = re.fullmatch(r"\s+(\S.*?)\s+(?:([\d.]+) ops/sec.*|n/a\*?)", line)
        if found:
            method, rate = found.groups()
            size = re.fullmatch(r"(\d+) \* +(\d+)kB open_sync writes?", method)
            method = pieces(*size.groups()) if size else method
            rates[section, method] = float(rate) if rate else None
    return rates


def pieces(writes, write_kb):
    """What a row of open_sync_size is called here."""
    return f"open_sync {writes} * {write_kb} kB"


def give_up(why):
    """Ends with an error."""
    sys.exit(f"sync_judges.py: {why}")


# --- statistics ----------------------------------------------------------------------------------------------------


@dataclass
class Median:
    """A median, with the order statistics between which the true one lies with 95 % at least, if there are 6 values or
    more: the sign test's interval."""

    ratio: float
    low: float
    high: float

    def __init__(self, values):
        values, n = sorted(values), len(values)
        # So many values lie outside on each side: the most for which P(Bin(n, 1/2) <= outside) is at most 2.5 %.
        below = itertools.accumulate(math.comb(n, k) / 2**n for k in range(n))
        outside = max(sum(probability <= 0.025 for probability in below) - 1, 0)
        self.ratio, self.low, self.high = statistics.median(values), values[outside], values[n - 1 - outside]

    def __str__(self):
        return f"{self.ratio:.3f} ({self.low:.3f}-{self.high:.3f})"

    def verdict(self, tolerance):
        if abs(self.ratio - 1) <= tolerance:
            return "met"
        return "MISSED" if self.low > 1 + tolerance or self.high < 1 - tolerance else "open"


def verdict_of_order(of_theirs, of_ours):
    """Of the faster by the slower, as they have it."""
    if of_theirs.low <= 1 + TOLERANCE or of_ours.ratio > 1:
        return "met"
    return "MISSED" if of_ours.high < 1 else "open"


# --- who is compared with whom -------------------------------------------------------------------------------------

LINE = "{:<7} {:<4} {:<14} {:<26} {:>2} {:>6} {:>6} {:>6} {:>10} {:>10}  {:<7} {}"


def print_line(section, what, n, median, our, their, verdict, goal=""):
    """A line of the table."""
    ratios = [f"{ratio:.3f}" for ratio in (median.ratio, median.low, median.high)] if median else ["", "", ""]
    medium = os.environ.get("MEDIUM", "disk")
    print(LINE.format(server_version(), medium, section, what, n, *ratios, our, their, verdict, goal))
    sys.stdout.flush()


def compare(rounds):
    """Prints all lines about rounds of (rates of ours, rates of theirs)."""
    for one, other in rounds:
        if one.keys() != other.keys():
            give_up(f"only one of the two has {sorted(one.keys() ^ other.keys())}")
    for section, method in rounds[0][1]:
        pairs = [(one[section, method], other[section, method]) for one, other in rounds]
        if all(pair == (None, None) for pair in pairs):
            print_line(section, method, len(pairs), None, "n/a", "n/a", "-")
            continue
        if any(None in pair for pair in pairs):
            give_up(f"only one of the two can do {section}, {method}: {pairs}")
        median = Median([one / other for one, other in pairs])
        our, their = (statistics.median(side) for side in zip(*pairs))
        tolerance = TOLERANCE if their >= SLOW else TOLERANCE_OF_SLOW
        goal = f"within {tolerance:.0%}"
        print_line(section, method, len(pairs), median, f"{our:.1f}", f"{their:.1f}", median.verdict(tolerance), goal)
    for section in SECTIONS.values():
        compare_order(section, rounds)


def compare_order(section, rounds):
    """A line for each two methods that changed places, or one if none did."""
    methods = [method for name, method in rounds[0][1] if name == section and rounds[0][1][name, method]]
    methods.sort(key=lambda method: -statistics.median(other[section, method] for _, other in rounds))
    all_is_well = True
    for fast, slow in itertools.combinations(methods, 2):
        of_ours, of_theirs = (
            Median([pair[side][section, fast] / pair[side][section, slow] for pair in rounds]) for side in (0, 1)
        )
        verdict = verdict_of_order(of_theirs, of_ours)
        if verdict != "met":
            all_is_well = False
            print(f"order in {section}: {fast} : {slow} is {of_theirs}, ours {of_ours}  {verdict}")
    if all_is_well and len(methods) > 1:
        print(f"order in {section}: met")
    sys.stdout.flush()


def main(pg_test_fsync, directory, tablespace=None):
    pairs = int(os.environ.get("PAIRS", 11))
    seconds = int(os.environ.get("SECONDS_EACH", 1))
    directory = os.path.realpath(directory)
    target = f"'tablespace', '{tablespace}'" if tablespace else "'wal'"
    both = {0: lambda: ours(target, seconds, directory), 1: lambda: theirs(pg_test_fsync, seconds, directory)}
    print(f"{pairs} rounds, {seconds} s a row: about {math.ceil(pairs * 2 * ROWS * seconds / 60)} minutes")
    print(LINE.format(*"server on section method n ratio low high ours theirs verdict goal".split()))
    sys.stdout.flush()
    rounds = []
    for index in range(pairs):
        rates = {side: both[side]() for side in ((0, 1) if index % 2 else (1, 0))}
        rounds.append((rates[0], rates[1]))
    compare(rounds)


# --- itself --------------------------------------------------------------------------------------------------------


def self_test():
    """Known answers."""
    told = """1 second per test
O_DIRECT supported on this platform for open_datasync and open_sync.

Compare file sync methods using one 8kB write:
(in wal_sync_method preference order, except fdatasync is Linux's default)
        open_datasync                      6748.507 ops/sec     148 usecs/op
        fdatasync                          6787.948 ops/sec     147 usecs/op
        fsync_writethrough                              n/a
        open_sync                                      n/a*

Compare open_sync with different write sizes:
(This is designed to compare the cost of writing 16kB in different write
open_sync sizes.)
         1 * 16kB open_sync write          6435.282 ops/sec     155 usecs/op
        16 *  1kB open_sync writes          457.680 ops/sec    2185 usecs/op

Test if fsync on non-write file descriptor is honored:
(If the times are similar, fsync() can sync data written on a different
descriptor.)
        write, fsync, close                7330.900 ops/sec     136 usecs/op

Non-sync'ed 8kB writes:
        write                           3037372.085 ops/sec       0 usecs/op
"""
    their = their_rates(told)
    assert their == {
        ("one_write", "open_datasync"): 6748.507, ("one_write", "fdatasync"): 6787.948,
        ("one_write", "fsync_writethrough"): None, ("one_write", "open_sync"): None,
        ("open_sync_size", "open_sync 1 * 16 kB"): 6435.282, ("open_sync_size", "open_sync 16 * 1 kB"): 457.68,
        ("other_fd", "write, fsync, close"): 7330.9, ("no_sync", "write"): 3037372.085,
    }, their  # fmt: skip

    def row(section, method, direct, rate, writes=1, write_kb=8):
        status = "ok" if rate else "unsupported"
        return {"section": section, "method": method, "direct": direct, "ops_per_s": rate, "status": status,
                "writes": writes, "write_kb": write_kb}  # fmt: skip

    our = our_rates([
        row("one_write", "open_datasync", True, 6700), row("one_write", "open_datasync", False, 1),
        row("one_write", "fdatasync", False, 6800), row("one_write", "fsync_writethrough", False, None),
        row("one_write", "open_sync", True, None), row("one_write", "open_sync", False, 1),
        row("open_sync_size", "open_sync", True, 6400, 1, 16), row("open_sync_size", "open_sync", True, 460, 16, 1),
        row("other_fd", "write, fsync, close", False, 7300), row("no_sync", "write", False, 3e6),
    ])  # fmt: skip
    assert our.keys() == their.keys() and our["one_write", "open_datasync"] == 6700, our
    assert our["open_sync_size", "open_sync 16 * 1 kB"] == 460 and our["one_write", "open_sync"] is None

    # The sign test's intervals: the extremes up to 8 values, the second of each end of 9, the fourth of 15.
    for n, outside in ((1, 0), (6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (15, 3), (25, 7)):
        median = Median(range(n))
        assert (median.low, median.high) == (outside, n - 1 - outside), (n, median)
    assert Median([3, 1, 2]).ratio == 2

    assert Median([0.96, 0.96]).verdict(0.05) == "met" and Median([0.90, 0.94]).verdict(0.05) == "MISSED"
    assert Median([0.7, 0.8, 1.2]).verdict(0.05) == "open" and Median([0.7, 0.92, 1.2]).verdict(0.10) == "met"

    twice, alike, half = Median([2.0, 2.1]), Median([1.0, 1.2]), Median([0.5, 0.6])
    assert verdict_of_order(twice, alike) == "met" and verdict_of_order(alike, half) == "met"
    assert verdict_of_order(twice, half) == "MISSED" and verdict_of_order(twice, Median([0.8, 1.1])) == "open"
    print("ok")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif len(sys.argv) in (3, 4):
        main(*sys.argv[1:])
    else:
        sys.exit("usage: sync_judges.py PG_TEST_FSYNC DIRECTORY [TABLESPACE] | --self-test")
