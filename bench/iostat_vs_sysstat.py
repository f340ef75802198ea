#!/usr/bin/env -S python3 -B
"""io_probe_iostat beside iostat -x, both on one device at once.

    iostat_vs_sysstat.py DEVICE DIRECTORY OFFSET
                                on the server that the environment names; run.sh starts one. DIRECTORY
                                is on DEVICE (loop0, say), which must be unused beyond OFFSET bytes

They run for SECONDS_ALL (60), a sample a second. fio begins after both have begun. It has ended, and all is synced,
some seconds before the first of the two ends. So both see the same requests, though their intervals begin and end at
different moments. fio reads and writes at
random with fdatasync, reads and writes small neighbours that the kernel merges, and discards.

Each line is about one figure over the whole time: a rate is given as its sum, a mean by request (await, areq) as the
sum over all requests by their number, aqu_sz and util_pct as their sum in seconds, cpu_*_pct as a mean. `kernel` is
what the device's counters say, where they have the figure. The verdict compares `ours` with `iostat`:
    met       it differs by 0.5 % at most, or by what iostat's two decimals, and for cpu_*_pct the moments at which
              iostat began and ended, leave open (`allowed`)
    MISSED    it differs by more
    -         there was nothing to compare
The line `CPU` says how much of one core the session's process used; the goal is less than 0.5 %.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time

from commands import give_up, processor_seconds, psql, run, server_version

TOLERANCE = 0.005
MOST_CPU = 0.005
# Seconds of sampling before fio begins, and after it has ended.
LEAD_SECONDS = 2
TRAIL_SECONDS = 10

# By our column: iostat's name, and for SUMS how many of its units make one of ours, for MEANS the rate of the requests
# that the mean is of; for CPU the names that add up to ours.
SUMS = {
    "r_s": ("r/s", 1), "rmib_s": ("rkB/s", 1024), "rrqm_s": ("rrqm/s", 1),
    "w_s": ("w/s", 1), "wmib_s": ("wkB/s", 1024), "wrqm_s": ("wrqm/s", 1),
    "d_s": ("d/s", 1), "dmib_s": ("dkB/s", 1024), "drqm_s": ("drqm/s", 1),
    "f_s": ("f/s", 1), "aqu_sz": ("aqu-sz", 1), "util_pct": ("util", 100),
}  # fmt: skip
MEANS = {
    "r_await_ms": ("r_await", "r_s"), "rareq_kb": ("rareq-sz", "r_s"),
    "w_await_ms": ("w_await", "w_s"), "wareq_kb": ("wareq-sz", "w_s"),
    "d_await_ms": ("d_await", "d_s"), "dareq_kb": ("dareq-sz", "d_s"), "f_await_ms": ("f_await", "f_s"),
}  # fmt: skip
CPU = {
    "cpu_user_pct": ("user", "nice"), "cpu_system_pct": ("system",), "cpu_iowait_pct": ("iowait",),
    "cpu_idle_pct": ("idle",), "cpu_steal_pct": ("steal",),
}  # fmt: skip
# The fields of a device's stat file, in their order.
COUNTERS = "r_s rrqm_s r_sectors r_ticks w_s wrqm_s w_sectors w_ticks in_flight io_ticks weighted " \
           "d_s drqm_s d_sectors d_ticks f_s f_ticks".split()  # fmt: skip

FIO = """
[global]
ioengine=libaio
direct=1
time_based
runtime={seconds}
randrepeat=0
[mixed]
directory={directory}
rw=randrw
bssplit=4k/20:256k/60:1m/20
size=256M
iodepth=8
rate=20m,12m
fdatasync=4
[neighbours-read]
directory={directory}
rw=read
bs=4k
size=128M
iodepth=32
iodepth_batch_submit=32
iodepth_batch_complete_min=32
rate_iops=400
[neighbours-write]
directory={directory}
rw=write
bs=4k
size=128M
iodepth=32
iodepth_batch_submit=32
iodepth_batch_complete_min=32
rate_iops=200
[discards]
filename=/dev/{device}
allow_mounted_write=1
offset={offset}
size=256M
rw=randtrim
bs=64k
iodepth=4
rate_iops=100
"""

# --- what they say, as sums and means of the whole time --------------------------------------------------------------


def ours(rows):
    """The totals of our rows, each of which tells the length of its interval."""
    seconds = [row["elapsed_ms"] / 1000 for row in rows]
    return totals({column: [row[column] or 0 for row in rows] for column in [*SUMS, *MEANS, *CPU]}, seconds)


def theirs(statistics, interval):
    """The totals of iostat's reports, whose intervals last `interval` seconds in the mean."""
    disks = [report["disk"][0] for report in statistics]
    columns = {column: [disk[name] for disk in disks] for column, (name, _) in {**SUMS, **MEANS}.items()}
    for column, (_, unit) in SUMS.items():
        columns[column] = [value / (unit if unit == 1024 else 1) for value in columns[column]]
    for column, names in CPU.items():
        columns[column] = [sum(report["avg-cpu"][name] for name in names) for report in statistics]
    return totals(columns, [interval] * len(statistics))


def totals(columns, seconds):
    """Sums of rates, means over all requests, and means over time."""
    whole = lambda values, weights: sum(value * weight for value, weight in zip(values, weights))
    found = {column: whole(columns[column], seconds) for column in SUMS}
    found["util_pct"] /= 100
    for column, (_, rate) in MEANS.items():
        requests = [number * length for number, length in zip(columns[rate], seconds)]
        found[column] = whole(columns[column], requests) / sum(requests) if sum(requests) else 0
    for column in CPU:
        found[column] = whole(columns[column], seconds) / sum(seconds)
    return found


def kernels(before, after):
    """The totals from the device's counters."""
    moved = {name: now - then for name, then, now in zip(COUNTERS, before, after)}
    found = {column: moved[column] for column in SUMS if column in moved}
    found["aqu_sz"], found["util_pct"] = moved["weighted"] / 1000, moved["io_ticks"] / 1000
    for kind in "rwd":
        requests = moved[f"{kind}_s"]
        found[f"{kind}mib_s"] = moved[f"{kind}_sectors"] / 2048
        if requests:
            found[f"{kind}areq_kb"] = moved[f"{kind}_sectors"] / 2 / requests
            found[f"{kind}_await_ms"] = moved[f"{kind}_ticks"] / requests
    if moved["f_s"]:
        found["f_await_ms"] = moved["f_ticks"] / moved["f_s"]
    return found


def allowed(column, statistics, their, edges):
    """By how much two right figures may differ. iostat rounds to hundredths: three times out of a thousand, a mean is off
    by more than three standard deviations of that. And CPUs do not rest while only one of the two looks."""
    names = CPU.get(column) or [(SUMS.get(column) or MEANS[column])[0]]
    values = [max((report["disk"][0] if column not in CPU else report["avg-cpu"])[name] for name in names)
              for report in statistics]  # fmt: skip
    told = [value for value in values if value]
    if not told:
        return 0
    rounding = 3 * 0.01 / math.sqrt(12) * math.sqrt(len(names)) / math.sqrt(len(told)) / (sum(told) / len(told))
    edge = 100 * edges / len(statistics) if column in CPU else 0
    return max(TOLERANCE * their, rounding * their + edge)


def verdict(value, their, allowed):
    if not their and not value:
        return "-"
    return "met" if abs(value - their) <= allowed else "MISSED"


# --- the observer ----------------------------------------------------------------------------------------------------


def observer():
    """A session in which the function was called once: what a first call costs is not what sampling costs."""
    from lib import Session

    session = Session()
    session.run("SELECT count(*) FROM io_probe_iostat_full('100 ms')")
    return session


def cpu_seconds(pid):
    """CPU seconds of all threads, also of ended ones, to the hundredth; and of the main thread, to the ns."""
    with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as file:
        return processor_seconds(pid), int(file.read().split()[0]) / 1e9


def counters(device):
    with open(f"/sys/class/block/{device}/stat", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


LINE = "{:<7} {:<15} {:>12} {:>12} {:>12} {:>8} {:>9}  {}"


def main(device, directory, offset):
    seconds = int(os.environ.get("SECONDS_ALL", 60))
    work = seconds - LEAD_SECONDS - TRAIL_SECONDS
    if work < 1:
        give_up(f"SECONDS_ALL must be more than {LEAD_SECONDS + TRAIL_SECONDS}")
    session = observer()
    job = tempfile.NamedTemporaryFile("w", suffix=".fio")
    job.write(FIO.format(directory=directory, device=device, offset=offset, seconds=work))
    job.flush()
    run(["fio", "--create_only=1", job.name])
    run(["sync", "-f", directory])
    time.sleep(1)

    cpu_before = cpu_seconds(session.pid)
    before = counters(device)
    options = f"""options => '{{"device": "{device}"}}'"""
    session.start_rows(f"SELECT * FROM io_probe_iostat_full('1 s', {seconds}, {options})")
    command = ["iostat", "-x", "-y", "-o", "JSON", device, "1", str(seconds)]
    environment = {**os.environ, "LC_ALL": "C", "S_COLORS": "never"}
    started = time.time()
    iostat = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    time.sleep(LEAD_SECONDS)
    fio = json.loads(run(["fio", "--output-format=json", job.name]))
    run(["sync", "-f", directory])
    work_ended = time.time()
    told, _ = iostat.communicate()
    ended = time.time()
    rows = session.finish_rows()
    after = counters(device)

    errors = [job["jobname"] for job in fio["jobs"] if job["error"]]
    if errors or iostat.returncode:
        give_up(f"fio or iostat failed: {errors}")
    statistics = json.loads(told)["sysstat"]["hosts"][0]["statistics"]
    if len(statistics) != seconds or work_ended > ended - 2:
        give_up(f"{len(statistics)} reports of iostat; {ended - work_ended:.1f} s after the last request")
    their = theirs(statistics, (ended - started) / seconds)
    kernel = kernels(before, after)
    found = ours(rows)
    lasted = sum(row["elapsed_ms"] for row in rows) / 1000
    if any(row["status"] != "ok" for row in rows) or abs(lasted - seconds) > 1:
        give_up(f"{lasted} s, {set(row['status'] for row in rows)}")
    last = float(psql(f"SELECT extract(epoch FROM '{rows[-1]['sampled_at']}'::timestamptz)"))
    edges = abs(last - ended) + abs(last - lasted - started)
    print(LINE.format(*"server figure ours iostat kernel ours/i allowed verdict".split()))
    for column in [*SUMS, *MEANS, *CPU]:
        most = allowed(column, statistics, their[column], edges)
        ratio = f"{found[column] / their[column]:.4f}" if their[column] else ""
        figures = [f"{value:.3f}" for value in [found[column], their[column]]]
        of_kernel = f"{kernel[column]:.3f}" if column in kernel else ""
        percent = f"{100 * most / their[column]:.2f} %" if their[column] else ""
        print(LINE.format(server_version(), column, *figures, of_kernel, ratio, percent,
                          verdict(found[column], their[column], most)))  # fmt: skip
    used = [now - then for now, then in zip(cpu_seconds(session.pid), cpu_before)]
    said = "met" if used[0] / seconds < MOST_CPU else "MISSED"
    print(f"CPU: {used[0] / seconds:.2%} of a core (its main thread {used[1] / seconds:.3%})  {said}")
    sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) == 4:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit("usage: iostat_vs_sysstat.py DEVICE DIRECTORY OFFSET")
