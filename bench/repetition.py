#!/usr/bin/env -S python3 -B
"""Do verdicts and advice survive repetition? Runs are recorded under a neighbour, then cut into groups of which nothing differs,
or by a known factor, and nights are drawn from them. As root; repetition.sh starts the server, PG (the newest of the cache)
is its version.

    repetition.py record CONDITION      records RUNS (600), one every EVERY (2) seconds, and after each tenth one with
                                        read_ahead_kb 16, where it is 128 else. Interrupted, it goes on where it was
    repetition.py judge                 judges all that was recorded, by io_probe_compare and io_probe_changes on copies of the
                                        stored runs: a table for each condition and version, then one of all together
    repetition.py recommend CONDITION   calls io_probe_recommend CALLS (40) times. If effective_io_concurrency is to be changed,
                                        queries under both values in turn say whether that is faster

CONDITION is idle (a loop device of a file in memory), constant, bursts (of 5 to 40 s) or drift (over minutes): the last three have
fio beside the file of the loop device, so that the rows have no evidence of it; with --seen fio is on the device itself. A run
is io_probe_record of seqscan (all paths, cold), random (direct), ping and sync (wal_segment), half a second together.

Groups are of 24 runs in a row. A/A: the first 12 against the last 12 (blocks), and every other one against those between (turns).
A/B: the second side's figures are multiplied in the stored rows. A night is one run of each probe; 30 and a last one are drawn 300
times. An alarm is any figure that io_probe_changes calls different; a night with read_ahead_kb 16 is called if a scan is "worse"
in the first or the second such night. `all` has all_items. What was recorded is in DIR (/var/tmp/repetition).
"""

import argparse
import json
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

from arithmetic import Median, modal, verdict_of_share
from commands import run, server_version
from history_verdicts import psql, set_to
from random_vs_fio import fio_figures

DIR = pathlib.Path(os.environ.get("DIR", "/var/tmp/repetition"))
CONDITIONS = ["idle", "constant", "bursts", "drift"]
GROUP = 24
EVERY_SLOW = 10
NIGHTS, BEFORE = 300, 30
# The least share of differences that is found, by factor; and the most of what is wrong.
FOUND = {0.9: 0.50, 0.8: 0.95, 0.5: 0.99}
DIFFERENT, UNKNOWN, ALARMS, CALLED = 17 / 200, 0.10, 22 / 300, 0.90
OUTSIDE, ADVISED = 3 / 40, 36 / 40
ROUNDS = 20

LOAD = """CREATE TABLE repeated (k int, filler text);
    ALTER TABLE repeated ALTER filler SET STORAGE PLAIN;
    INSERT INTO repeated SELECT hashint4(n) & 1023, repeat('x', 960) FROM generate_series(1, 262144) AS n;
    CREATE INDEX ON repeated (k)"""
PROBES = [
    """'seqscan', 'repeated', '{"paths": ["direct", "os", "server"], "cold": true, "duration": "40 ms"}'""",
    """'random', 'repeated', '{"paths": ["direct"], "duration": "100 ms"}'""",
    """'ping', 'repeated', '{"every": "4 ms"}'""",
    """'sync', NULL, '{"sections": ["wal_segment"], "duration": "6 ms"}'""",
]
STORED = """SELECT jsonb_build_object('turn', {turn}, 'slow', {slow}, 'runs', jsonb_agg(to_jsonb(run) || jsonb_build_object(
        'rows', (SELECT coalesce(jsonb_agg(result ORDER BY ordinal), '[]') FROM io_probe_results WHERE run_id = run.id))))
    FROM io_probe_runs AS run WHERE label = '{label}'"""


# --- neighbours ----------------------------------------------------------------------------------------------------


def steps(condition, dice):
    """What the neighbour does: seconds, and the share of the disk that it takes in them, without an end unless idle."""
    if condition == "constant":
        while True:
            yield 600.0, 0.4
    while condition == "bursts":
        yield dice.uniform(10, 60), 0.0
        yield dice.uniform(5, 40), dice.uniform(0.4, 0.9)
    while condition == "drift":
        period = 10 * dice.randint(12, 48)
        for at in range(0, period, 10):
            yield 10.0, round(0.4 - 0.38 * math.cos(2 * math.pi * at / period), 3)


class Neighbour(threading.Thread):
    """fio, step by step, until it is left."""

    def __init__(self, condition, seed, file):
        super().__init__(daemon=True)
        self.steps = steps(condition, random.Random(seed))
        self.over = threading.Event()
        self.command = ["fio", "--name=neighbour", f"--filename={file}", "--size=512M", "--rw=randrw", "--rwmixread=75"]
        self.command += ["--bs=64k", "--direct=1", "--ioengine=io_uring", "--iodepth=8", "--time_based", "--output-format=json"]
        told = "" if condition == "idle" else run([*self.command, "--lat_percentiles=1", "--runtime=3"])
        self.most = told and fio_figures(told)[0]["iops"]

    def run(self):
        for seconds, share in self.steps:
            if not share:
                self.over.wait(seconds)
            elif not self.over.is_set():
                self.take(seconds, share)
            if self.over.is_set():
                return

    def take(self, seconds, share):
        reads = max(3, round(share * self.most))
        rates = [f"--rate_iops={reads},{reads // 3}", f"--runtime={round(1000 * seconds)}ms"]
        with subprocess.Popen([*self.command, *rates], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as fio:
            while fio.poll() is None and not self.over.wait(0.1):
                pass
            fio.terminate()

    def __enter__(self):
        self.start()

    def __exit__(self, *_):
        self.over.set()
        self.join()


# --- recording -----------------------------------------------------------------------------------------------------


def kept(given, what):
    """The file of what is recorded, and what it holds so far."""
    DIR.mkdir(exist_ok=True)
    seen = "-seen" if given.seen else ""
    file = DIR / f"{given.condition}{seen}-{server_version().partition('.')[0]}.{what}"
    return file, [json.loads(line) for line in file.open(encoding="ascii")] if file.exists() else []


def add(file, line):
    with file.open("a", encoding="ascii") as kept_so_far:
        kept_so_far.write(json.dumps(line) + "\n")


def prepare(given, done):
    """The table, and the neighbour."""
    psql(LOAD)
    # Synced, in one piece, and in no buffer.
    psql("CHECKPOINT", "-c", "VACUUM FULL repeated", "-c", "VACUUM ANALYZE repeated")
    place = pathlib.Path(os.environ["WORK"]) / ("mount/neighbour" if given.seen else "neighbour")
    return Neighbour(given.condition, f"{given.condition} {done}", place)


def turns(runs):
    """Which run is next, and whether it is one with little readahead."""
    for turn in range(runs):
        yield turn, False
        if turn % EVERY_SLOW == EVERY_SLOW - 1:
            yield turn, True


def record(given):
    file, lines = kept(given, "runs")
    done = {(line["turn"], line["slow"]) for line in lines}
    with prepare(given, len(done)):
        measure(-1, False)  # hint bits, and whatever else is new
        due = time.monotonic()
        for turn, slow in turns(given.runs):
            if (turn, slow) in done:
                continue
            time.sleep(max(0, due - time.monotonic()))
            due = max(due, time.monotonic()) + given.every
            add(file, measure(turn, slow))
    print(f"{file}: {len(kept(given, 'runs')[1])} runs")


def measure(turn, slow):
    """One run of each probe, as it was stored."""
    label = f"{turn} {slow}"
    calls = [option for probe in PROBES for option in ("-c", f"SELECT io_probe_record({probe}, '{label}')")]
    window = f"/sys/block/{os.environ['DEVICE']}/queue/read_ahead_kb"
    set_to(window, "16" if slow else "128")
    try:
        told = psql(STORED.format(turn=turn, slow=slow, label=label), *calls)
    finally:
        set_to(window, "128")
    return json.loads(told.splitlines()[-1])


# --- judging -------------------------------------------------------------------------------------------------------

# Copies of stored runs: at their own times, or from a night on, with figures times a factor. The devices and the cluster are
# left out: each time that recording went on, it did so on others.
JUDGE = """
CREATE TABLE lines (line jsonb);
CREATE TABLE kept (turn int, slow bool, run jsonb, rows jsonb);
CREATE FUNCTION scaled(result jsonb, factor float8) RETURNS jsonb RETURN result || (
    SELECT coalesce(jsonb_object_agg(key, factor * value::float8), '{{}}') FROM jsonb_each(result)
    WHERE key = ANY ('{{mib_s,iops,ops_s,ci_low,ci_high,p50_us,p99_us,lat_us}}') AND jsonb_typeof(value) = 'number');
CREATE FUNCTION put(turns int[], is_slow bool, label text, factor float8, night int) RETURNS void LANGUAGE sql AS $$
    WITH copy AS (
        SELECT nextval('io_probe_runs_id_seq') AS id, kept.run, kept.rows, 
               timestamptz '2024-01-01' + (night + place) * interval '1 day' AS at
        FROM unnest(turns) WITH ORDINALITY AS chosen (turn, place) JOIN kept ON kept.turn = chosen.turn AND kept.slow = is_slow
    ), stored AS (
        INSERT INTO io_probe_runs ({columns}) SELECT {columns} FROM (
            SELECT made.* FROM copy, jsonb_populate_record(NULL::io_probe_runs, copy.run || jsonb_build_object('id', copy.id,
                'label', label, 'started_at', coalesce(to_jsonb(copy.at), copy.run -> 'started_at'))) AS made) AS made
    )
    INSERT INTO io_probe_results SELECT copy.id, ordinal, scaled(result, factor)
    FROM copy, jsonb_array_elements(copy.rows) WITH ORDINALITY AS row (result, ordinal) $$
"""
COLUMNS = """SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
    WHERE attrelid = 'io_probe_runs'::regclass AND attnum > 0 AND attgenerated = '' AND NOT attisdropped"""
KEEP = """INSERT INTO kept SELECT (line ->> 'turn')::int, (line ->> 'slow')::bool,
        run - 'rows' || '{"system_identifier": "1", "leaves": []}', run -> 'rows'
    FROM lines, jsonb_array_elements(line -> 'runs') AS run"""
FORGET = "TRUNCATE io_probe_runs, io_probe_results"
SAID = """SELECT coalesce(jsonb_agg(jsonb_build_array(concat_ws(' ', probe, item, metric), verdict, ratio)), '[]')
    FROM {} WHERE verdict IS NOT NULL"""
CHANGES = [SAID.format(f"io_probe_changes(1, {all_items})") for all_items in ("false", "true")]


def put(runs, slow=False, label="night", factor=1.0, night=None):
    """A call that copies these runs."""
    night = "NULL" if night is None else night
    return f"SELECT put('{{{','.join(map(str, runs))}}}', {slow}, '{label}', {factor}, {night})"


def said(*queries):
    """What those of the queries give that are about verdicts."""
    told = psql("", *(option for query in queries for option in ("-c", query)))
    return [json.loads(line) for line in told.splitlines() if line.startswith("[")]


def sides(runs, take_turns):
    """Two halves of a group."""
    return (runs[::2], runs[1::2]) if take_turns else (runs[: len(runs) // 2], runs[len(runs) // 2 :])


def kind(verdict, ratio, factor):
    """What a verdict is where the second side was multiplied by a factor of at most 1: wrong is the other way round."""
    if verdict in ("same", "unknown"):
        return verdict
    return "wrong" if factor < 1 < ratio else "different"


def judge_groups(runs):
    """How often each figure got each verdict, by the factor and by whether the sides took turns."""
    counts = {}
    for start in range(0, len(runs) - GROUP + 1, GROUP):
        for take_turns in (False, True):
            a, b = sides(runs[start : start + GROUP], take_turns)
            for factor in (1.0, *FOUND):
                (found,) = said(FORGET, put(a, label="a"), put(b, label="b", factor=factor), SAID.format("io_probe_compare('a', 'b')"))
                for figure, verdict, ratio in found:
                    counts.setdefault(figure, {}).setdefault((factor, take_turns), Counter())[kind(verdict, ratio, factor)] += 1
    return counts


def judge_nights(runs, slow, dice):
    """Of NIGHTS, how often there was an alarm, and how often little readahead was called: each of what is in use, and of all."""
    alarms, called = [0, 0], [0, 0]
    for _ in range(NIGHTS):
        *before, last = dice.sample(runs, min(BEFORE + 1, len(runs)))
        query = [FORGET, put(before, night=0), put([last], label="last", night=len(before)), *CHANGES]
        query += ["DELETE FROM io_probe_runs WHERE label = 'last'"]
        for night, turn in enumerate(dice.sample(slow, 2), len(before)):
            query += [put([turn], slow=True, night=night), *CHANGES]
        found = said(*query)
        for place in (0, 1):
            alarms[place] += any(verdict in ("better", "worse") for _, verdict, _ in found[place])
            scans = [one for slow_night in found[place + 2 :: 2] for one in slow_night if one[0].startswith("seqscan")]
            called[place] += any(verdict == "worse" for _, verdict, _ in scans)
    return alarms, called


def share(counts, of):
    """How many of some counts are of a kind, out of how many."""
    return sum(count[of] for count in counts), sum(count.total() for count in counts)


def say(about, count, total, least=0.0, most=1.0):
    print(f"  {about:<44} {count:>6} of {total:<6} {verdict_of_share(count, total, least, most)}", flush=True)


def print_groups(counts):
    """Of each figure, how often it was called different, and unknown."""
    cases = [(factor, take_turns) for factor in (1.0, *FOUND) for take_turns in (False, True)]
    heads = [f"{'A/A' if factor == 1 else f'x {factor}'} {'turns' if take_turns else 'blocks'}" for factor, take_turns in cases]
    print(f"  {'called different':<44}" + "".join(f"{head:>13}" for head in heads) + f"{'unknown':>13}")
    for figure in sorted(counts):
        cells = [share([counts[figure].get(case, Counter())], "different") for case in cases]
        cells.append(share(counts[figure].values(), "unknown"))
        print(f"  {figure:<44}" + "".join(f"{f'{count} of {total}':>13}" for count, total in cells))


def judge(_given):
    psql(JUDGE.format(columns=psql(COLUMNS)))
    pooled = {}
    for file in sorted(DIR.glob("*.runs")):
        copy = f"\\copy lines FROM '{file}' (FORMAT csv, QUOTE e'\\x01', DELIMITER e'\\x02')"
        psql(KEEP, "-c", "TRUNCATE lines, kept", "-c", copy)
        runs, slow = (json.loads(psql(f"SELECT jsonb_agg(DISTINCT turn) FROM kept WHERE slow = {slow}")) for slow in (False, True))
        print(f"\n{file.stem}: {len(runs)} runs, {len(slow)} with read_ahead_kb 16")
        counts = judge_groups(runs)
        print_groups(counts)
        is_idle = file.stem.startswith("idle")
        all_counts = [count for of_figure in counts.values() for count in of_figure.values()]
        say("unknown", *share(all_counts, "unknown"), most=UNKNOWN if is_idle else 1)
        say("called different the other way round", *share(all_counts, "wrong"))
        for factor, least in FOUND.items():
            for take_turns in (False, True):
                found = [of_figure.get((factor, take_turns), Counter()) for of_figure in counts.values()]
                order = "turns" if take_turns else "blocks"
                say(f"x {factor} in {order}, found", *share(found, "different"), least=least if is_idle else 0)
        alarms, called = judge_nights(runs, slow, random.Random(file.stem))
        for place, which in enumerate(("", ", all")):
            say(f"nights with a false alarm{which}", alarms[place], NIGHTS, most=ALARMS)
            say(f"nights with read_ahead_kb 16, called{which}", called[place], NIGHTS, least=CALLED)
        for figure, of_figure in counts.items():
            for take_turns in (False, True):
                pooled.setdefault((take_turns, figure), []).append(of_figure.get((1.0, take_turns), Counter()))
    print("\nA/A, all conditions together: called different")
    for (take_turns, figure), found in sorted(pooled.items()):
        say(f"{'turns' if take_turns else 'blocks'}, {figure}", *share(found, "different"), most=DIFFERENT)


# --- advice --------------------------------------------------------------------------------------------------------

ADVICE = """SELECT jsonb_agg(jsonb_build_array(concat_ws(' ', scope, name, setting), current, recommended, low, high))
    FROM io_probe_recommend_full('repeated', cold => true, writes => true)"""


def recommend(given):
    file, lines = kept(given, "advice")
    with prepare(given, len(lines)):
        for _ in range(len(lines), given.calls):
            add(file, json.loads(psql(ADVICE)))
        calls = kept(given, "advice")[1]
        print(f"{file.stem}: {len(calls)} calls")
        for setting in sorted({row[0] for call in calls for row in call}):
            answers = [row[1:] for call in calls for row in call if row[0] == setting]
            current, known = answers[-1][0], [answer[1:] for answer in answers if answer[1] is not None]
            say(f"{setting}: no answer", len(answers) - len(known), len(answers))
            if known:
                best, low, high, outside = modal(known)
                say(f"  outside of {low} to {high} of {best}", outside, len(known), most=OUTSIDE)
                advised = sum(answer[0] != current for answer in known)
                least = ADVISED if setting.endswith("effective_io_concurrency") and current == "1" else 0
                say(f"  another value than {current}", advised, len(answers), least=least)
                if setting.endswith("effective_io_concurrency") and best != current:
                    confirm(current, best)


def confirm(current, best):
    """Bitmap scans under both in turn, each of rows of its own: is the recommended one faster?"""
    ratios = []
    for turn in range(ROUNDS):
        pair = list(enumerate((current, best), 2 * turn))
        took = {eic: bitmap_ms(eic, place) for place, eic in (pair if turn % 2 else pair[::-1])}
        ratios.append(took[current] / took[best])
    ratio = Median(ratios)
    print(f"    time under {current} / under {best}: {ratio} {'met' if ratio.low > 1 else 'MISSED'}", flush=True)


def bitmap_ms(eic, place):
    """Time of a cold bitmap scan of a hundredth of the rows."""
    query = f"EXPLAIN (ANALYZE, FORMAT json) SELECT count(filler) FROM repeated WHERE k BETWEEN {10 * place} AND {10 * place + 9}"
    plan = f"SET enable_seqscan = off; SET enable_indexscan = off; SET effective_io_concurrency = {eic}"
    told = psql(query, "-c", plan, "-c", "SELECT FROM io_probe_evict('repeated')")
    return json.loads(told)[0]["Execution Time"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for function in (record, recommend, judge):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function, condition="none")
        if function is not judge:
            command.add_argument("condition", choices=CONDITIONS)
            command.add_argument("--seen", action="store_true")
    commands.choices["record"].add_argument("--runs", type=int, default=600)
    commands.choices["record"].add_argument("--every", type=float, default=2)
    commands.choices["recommend"].add_argument("--calls", type=int, default=40)
    given = parser.parse_args()
    if "ON_SERVER" in os.environ:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        given.function(given)
    else:
        program = os.path.abspath(__file__)
        starter = program.removesuffix(".py") + ".sh"
        os.execvp("bash", ["bash", starter, given.condition, program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
