#!/usr/bin/env -S python3 -B
"""io_probe_readahead's emulated windows beside the kernel's own, on the server's table tbl.

    readahead_vs_kernel.py CALIBRATE_AT "DEVICE…"
                                on the server that the environment names; readahead_vs_kernel.sh starts one. The
                                readahead window of these devices is set, in kB, and left at CALIBRATE_AT

    emulated   io_probe_readahead_full('tbl', WINDOWS) with the kernel's window at CALIBRATE_AT. Each row takes SECONDS_EACH
               if that is set, else the probe's default
    real       with the kernel's window at each of WINDOWS (16 32 64 128 256 512 1024), a cold scan of the whole table
               by io_probe_seqscan_full('tbl', '{os}'), in a session of its own: a descriptor keeps the window with which it
               was opened
    dd         after each of those scans, dd bs=8k of the table's file, which is not in the OS cache. Before each scan
               there is another dd, which does not count: a virtual machine may give back memory that has been free for
               some seconds (free page reporting), and to get it again takes longer than to read the device

The real windows are swept before the first emulated curve and after each of PAIRS (11) curves, every second time from
the widest to the narrowest. A pair is a curve and the two sweeps around it, whose geometric mean takes out a drift. First
come a curve and a sweep that do not count. BACKING is a file that is read into the host's cache before each sweep and
curve.

Each line is about one window, of which every pair gives a ratio, emulated / real time per block: `ratio` is their
median, and between `low` and `high` the true median lies with 95 % at least, see sync_vs_pg_test_fsync.py. `of dd` is
the same with dd's times (low-high), not judged. `us` are the medians of the three in us a block; `rareq` and `aqu` those of
emulated : real. The mode `kernel` is the setting in force, which is not emulated. The verdict
    met       the ratio is within the goal: 12 %, 15 % on MEDIUM cached
    MISSED    it is not, and nor is anything between low and high
    open      neither: too few pairs for runs that differ as these do
The line `best` says which windows io_probe_readahead marked, how often, and the real throughput there in percent of the
highest real throughput among all windows, both by their medians: at the worst marked window at least 93 %.
"""

import json
import math
import os
import re
import statistics
import sys
from collections import Counter

from arithmetic import Median
from commands import give_up, psql, rows, run, server_version

BLOCK = 8192
LEAST_AT_BEST = 0.93
TOLERANCE = {"cached": 0.15}
COLUMNS = ["block_us", "rareq_kb", "aqu_sz"]

# --- the readers -----------------------------------------------------------------------------------------------------


def set_window(devices, kb):
    """Sets the kernel's window, and checks that the kernel took it."""
    for device in devices:
        path = f"/sys/block/{device}/queue/read_ahead_kb"
        with open(path, "w", encoding="ascii") as file:
            file.write(str(kb))
        with open(path, encoding="ascii") as file:
            if int(file.read()) != kb:
                give_up(f"{device} does not take a readahead window of {kb} kB")


def emulated(windows):
    """The rows of an emulated curve, by window; and the window that it calls best."""
    seconds = os.environ.get("SECONDS_EACH")
    duration = f", '{float(seconds) * (len(windows) + 1)} s'" if seconds else ""
    query = f"SELECT * FROM io_probe_readahead_full('tbl', '{{{','.join(map(str, windows))}}}'{duration})"
    return curve(rows(query), windows)


def curve(rows, windows):
    """What `emulated` returns, from the rows; gives up if they are no curve of the windows."""
    if any(row["status"] != "ok" for row in rows):
        give_up(f"not ok: {[(row['window_kb'], row['status'], row['notes']) for row in rows]}")
    found = {row["window_kb"]: row for row in rows}
    best = [row["window_kb"] for row in rows if row["best"]]
    if not set(windows) <= set(found) or len(best) != 1 or len(found) != len(rows):
        give_up(f"not a row a window of {windows}, one of them best: {rows}")
    return found, best[0]


def real(window):
    """A cold scan at the setting in force, which the row must say is `window`."""
    (row,) = rows("SELECT * FROM io_probe_seqscan_full('tbl', paths => '{os}', cold => true)")
    if row["status"] != "ok" or not row["cold"] or not row["complete"] or row["read_ahead_kb"] != window:
        give_up(f"not a whole, cold scan at {window} kB: {row}")
    return row


def dd(file):
    """The us a block of a cold dd."""
    psql("SELECT FROM io_probe_evict('tbl')")
    return dd_us(run(["sh", "-c", f"dd if='{file}' of=/dev/null bs=8k 2>&1"], as_server=True, LC_ALL="C"))


def dd_us(told):
    """The us a block, from what dd prints."""
    records, seconds = re.search(r"^(\d+)\+0 records out\n.* copied, ([\d.e-]+) s", told, re.MULTILINE).groups()
    return float(seconds) * 1e6 / int(records)


def sweep(devices, windows, file):
    """Scans at the real windows, in this order; the rows by window."""
    found = {}
    for window in windows:
        set_window(devices, window)
        dd(file)
        found[window] = real(window)
        found[window]["dd"] = dd(file)
    return found


# --- the comparison --------------------------------------------------------------------------------------------------


def pairs_of(sweeps, curves, column, of="block_us"):
    """By window, the ratio of each curve to the sweeps around it, left out where one of them has no figure."""
    found = {}
    for window in sweeps[0]:
        ratios = []
        for number, (rows, _) in enumerate(curves):
            one, before, after = rows[window][of], sweeps[number][window][column], sweeps[number + 1][window][column]
            if one and before and after:
                ratios.append(one / math.sqrt(before * after))
        found[window] = ratios
    return found


def at_best(sweeps, curves):
    """The windows that were called best, how often, and the share of the best throughput at the worst of them."""
    us = {window: statistics.median(one[window]["block_us"] for one in sweeps) for window in sweeps[0]}
    marked = Counter(best for _, best in curves)
    return marked, min(min(us.values()) / us[window] for window in marked)


def median_of(rows, column):
    """The median of a column, of the rows that have it."""
    values = [row[column] for row in rows if row[column] is not None]
    return statistics.median(values) if values else math.nan


LINE = "{:<7} {:<7} {:>6} {:>6} {:<8} {:>2} {:>6} {:>6} {:>6}  {:<19} {:>22}  {:>15} {:>13}  {}"


def compare(medium, calibrate_at, sweeps, curves):
    """Prints all lines."""
    tolerance = TOLERANCE.get(medium, 0.12)
    ratios, of_dd = pairs_of(sweeps, curves, "block_us"), pairs_of(sweeps, curves, "dd")
    columns = "server medium set window mode n ratio low high of|dd us|emul:real:dd rareq|emul:real aqu|emul:real"
    print(LINE.format(*(word.replace("|", " ") for word in columns.split()), "verdict"))
    for window in sorted(ratios):
        median, second = Median(ratios[window]), Median(of_dd[window])
        emulated_rows, real_rows = [rows[window] for rows, _ in curves], [one[window] for one in sweeps]
        us, rareq, aqu = (
            f"{median_of(emulated_rows, column):.2f} : {median_of(real_rows, column):.2f}" for column in COLUMNS
        )
        print(LINE.format(
            server_version(), medium, calibrate_at, window, emulated_rows[0]["mode"], len(ratios[window]),
            *(f"{ratio:.3f}" for ratio in (median.ratio, median.low, median.high)), str(second),
            f"{us} : {median_of(real_rows, 'dd'):.2f}", rareq, aqu, median.verdict(tolerance),
        ))  # fmt: skip
    marked, share = at_best(sweeps, curves)
    named = ", ".join(f"{window} kB {times} times" for window, times in sorted(marked.items()))
    verdict = "met" if share >= LEAST_AT_BEST else "MISSED"
    print(f"best: {named}; at worst {share:.1%} of the best real throughput  {verdict}")
    said = (note for rows, _ in curves for row in rows.values() for note in row["notes"] or [])
    notes = Counter(re.sub(r"\d+", "N", note) for note in said)
    for note, times in notes.most_common():
        print(f"note, {times} times: {note}")
    sys.stdout.flush()


def main(calibrate_at, devices):
    medium = os.environ.get("MEDIUM", "disk")
    pairs = int(os.environ.get("PAIRS", 11))
    windows = [int(word) for word in os.environ.get("WINDOWS", "16 32 64 128 256 512 1024").replace(",", " ").split()]
    backing = os.environ.get("BACKING")
    file = os.path.join(os.environ["PGDATA"], psql("SELECT pg_relation_filepath('tbl')"))

    def warm():
        if backing:
            run(["dd", f"if={backing}", "of=/dev/null", "bs=1M"])

    def one_curve():
        warm()
        set_window(devices, calibrate_at)
        return emulated(windows)

    # The setting in force may be the best, so it is swept too.
    swept = windows + ([] if calibrate_at in windows else [calibrate_at])

    def one_sweep(number):
        warm()
        return sweep(devices, swept[::-1] if number % 2 else swept, file)

    one_curve()
    one_sweep(0)
    sweeps, curves = [one_sweep(0)], []
    for number in range(pairs):
        curves.append(one_curve())
        sweeps.append(one_sweep(number + 1))
    set_window(devices, calibrate_at)
    if calibrate_at not in windows and any(calibrate_at not in rows for rows, _ in curves):
        sweeps = [{window: one[window] for window in windows} for one in sweeps]
    compare(medium, calibrate_at, sweeps, curves)
    if os.environ.get("JSON"):
        with open(os.environ["JSON"], "a", encoding="ascii") as out:
            json.dump({"medium": medium, "set": calibrate_at, "sweeps": sweeps, "curves": curves}, out)
            out.write("\n")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        main(int(sys.argv[1]), sys.argv[2].split())
    else:
        sys.exit('usage: readahead_vs_kernel.py CALIBRATE_AT "DEVICE…"')
