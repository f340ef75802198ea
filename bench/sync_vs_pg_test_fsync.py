#!/usr/bin/env -S python3 -B
"""io_probe_sync side by side with pg_test_fsync, in one directory.

    sync_vs_pg_test_fsync.py PG_TEST_FSYNC DIRECTORY [TABLESPACE]
                                on the server that the environment names; run.sh starts one.
                                DIRECTORY is pg_wal, or the directory of that tablespace in which the server keeps its
                                files

Both do what pg_test_fsync does, each row for SECONDS_EACH (1), and they run in turn, PAIRS times (11), in every second
round in reverse order. pg_test_fsync's open_datasync and open_sync are with O_DIRECT, so they stand against our direct
rows. What one of the two can't do, the other must not do either.

Each line is about ours / theirs in operations a second, of which every round gives one: `ratio` is their median, and
between `low` and `high` the true median lies with 95 % at least: the lowest and the highest of 7, the second of each
end of 9, and so on; with fewer than 6 it is less than that. `ours` and `theirs` are the medians of the rates. The
verdict
    met       the ratio is within the goal: 5 %, 10 % below 1,000 operations a second
    MISSED    it is not, and nor is anything between low and high
    open      neither: too few rounds for runs that differ as these do
    -         neither of the two can do it

The lines `order` say whether the methods of a section come in the same order. If one of two methods is faster by more
than 5 % in pg_test_fsync (with all that lies between low and high), it must be faster in ours, too. Only pairs in which
it is not are named, with the ratios of their rates (low-high).
"""

import itertools
import math
import os
import re
import statistics
import sys

from arithmetic import Median, verdict_of_order
from commands import give_up, rows, run, server_version

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
# The rows that each of the two has, about.
ROWS = 18

# --- the two, each as rates by section and method ------------------------------------------------------------------


def ours(spcname, seconds, directory):
    """The rates of io_probe_sync; None where a row is unsupported."""
    found = rows(f"""SELECT * FROM io_probe_sync_full({spcname}, sections => '{{{",".join(SECTIONS.values())}}}',
                         duration => '{20 * seconds} s')""")
    for row in found:
        if row["status"] not in ("ok", "unsupported") or row["directory"] != directory:
            give_up(f"not what was asked for, in {directory}: {row}")
    return our_rates(found)


def our_rates(rows):
    """The rates of the rows that have their like in pg_test_fsync."""
    rates = {}
    for row in rows:
        section, method = row["section"], row["method"]
        if method.startswith("open_") and not row["direct"]:
            continue
        if section == "open_sync_size":
            method = pieces(row["writes"], row["write_kb"])
        if (section, method) in rates:
            give_up(f"two rows of {section}, {method}")
        rates[section, method] = row["ops_s"] if row["status"] == "ok" else None
    return rates


def theirs(pg_test_fsync, seconds, directory):
    """The rates of pg_test_fsync; None where it says n/a."""
    command = [pg_test_fsync, "-s", str(seconds), "-f", f"{directory}/pg_test_fsync.out"]
    return their_rates(run(command, as_server=True, LC_ALL="C"))


def their_rates(told):
    """The rates in what pg_test_fsync prints."""
    section, rates = None, {}
    for line in told.splitlines():
        section = next((name for heading, name in SECTIONS.items() if line.startswith(heading)), section)
        found = re.fullmatch(r"\s+(\S.*?)\s+(?:([\d.]+) ops/sec.*|n/a\*?)", line)
        if found:
            method, rate = found.groups()
            if method == "fsync_writethrough":  # on no Linux
                continue
            size = re.fullmatch(r"(\d+) \* +(\d+)kB open_sync writes?", method)
            method = pieces(*size.groups()) if size else method
            rates[section, method] = float(rate) if rate else None
    return rates


def pieces(writes, write_kb):
    """What a row of open_sync_size is called here."""
    return f"open_sync {writes} * {write_kb} kB"


# --- the comparison ------------------------------------------------------------------------------------------------

LINE = "{:<7} {:<4} {:<14} {:<26} {:>2} {:>6} {:>6} {:>6} {:>10} {:>10}  {:<7} {}"


def print_line(section, what, n, median, our, their, verdict, goal=""):
    """Prints a line of the table."""
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
    """Prints a line for each two methods that changed places, or one line if none did."""
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
    spcname = f"'{tablespace}'" if tablespace else "NULL"
    both = {0: lambda: ours(spcname, seconds, directory), 1: lambda: theirs(pg_test_fsync, seconds, directory)}
    print(f"{pairs} rounds, {seconds} s a row: about {math.ceil(pairs * 2 * ROWS * seconds / 60)} minutes")
    print(LINE.format(*"server on section method n ratio low high ours theirs verdict goal".split()))
    sys.stdout.flush()
    rounds = []
    for index in range(pairs):
        rates = {side: both[side]() for side in ((0, 1) if index % 2 else (1, 0))}
        rounds.append((rates[0], rates[1]))
    compare(rounds)


if __name__ == "__main__":
    if len(sys.argv) in (3, 4):
        main(*sys.argv[1:])
    else:
        sys.exit("usage: sync_vs_pg_test_fsync.py PG_TEST_FSYNC DIRECTORY [TABLESPACE]")
